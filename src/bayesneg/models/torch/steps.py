"""A block of mini-batches, step by step: the negatives are chosen, then the module learns from them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch import Tensor

from bayesneg.data.interactions import Interactions
from bayesneg.interfaces import Batch, Sampled
from bayesneg.kernels.reference.choices.base import Draws, Rule
from bayesneg.kernels.reference.draws import first_of_its_user
from bayesneg.kernels.torch.choices.base import DrawTensors, TensorBatch, torch_choice
from bayesneg.kernels.torch.score_lists import TrainingRows, numbers
from bayesneg.models.torch.batch_scores import EmbeddingScores
from bayesneg.models.torch.trainable import Trainable

if TYPE_CHECKING:
    from bayesneg.kernels.numba.scoring import TileLayout

NOBODY = np.empty(0, dtype=np.int64)


class ChoiceOnHost:
    """A rule that chooses one negative, by compiled code, from embeddings in host memory."""

    def __init__(self, train: Interactions, rule: Rule) -> None:
        from bayesneg.kernels.numba import scoring
        from bayesneg.kernels.numba.choices.base import compiled

        self.train, self.kind = train, type(rule)
        self.remembers = compiled(rule).remembers
        self.layout: TileLayout | None = None
        if compiled(rule).sweeps:
            self.layout = scoring.tile_layout(train.users, train.indices, train.n_items)

    def fits(self, rule: Rule) -> bool:
        return type(rule) is self.kind

    def choose(
        self,
        rule: Rule,
        draws: Draws,
        users: np.ndarray,
        positives: np.ndarray,
        scores: EmbeddingScores,
        negatives: np.ndarray,
    ) -> None:
        """Write the negatives (B,) int32 of a batch, −1 where there is none."""
        from bayesneg.kernels.numba import scoring, sgd

        w, h = scores.users.numpy(), scores.items.numpy()
        tiled = scoring.no_tiles() if self.layout is None else scoring.tile_items(h, self.layout)
        firsts = np.flatnonzero(first_of_its_user(users)) if self.remembers else NOBODY
        sgd.choose_block(
            rule, users, positives, draws, firsts,
            self.train.indptr, self.train.indices, scoring.Factors(w, h, tiled), negatives,
        )  # fmt: skip


class CompiledSteps:
    """On the CPU compiled code chooses, from the embeddings that the forward pass has just computed."""

    def __init__(self, trainable: Trainable, train: Interactions, rule: Rule) -> None:
        self.trainable, self.choice = trainable, ChoiceOnHost(train, rule)

    def run(self, rule: Rule, draws: Draws, block: Batch) -> Sampled:
        n, batch_size = len(block.users), self.trainable.settings.batch_size
        negatives, infos = np.empty(n, dtype=np.int32), np.empty(n, dtype=np.float32)
        for first in range(0, n, batch_size):
            part = slice(first, first + batch_size)
            users, positives = (torch.from_numpy(a[part].astype(np.int64)) for a in (block.users, block.positives))
            scores = self.trainable.forward(users)
            assert isinstance(scores, EmbeddingScores)
            drawn = Draws(*(array[part] for array in draws))
            self.choice.choose(rule, drawn, block.users[part], block.positives[part], scores, negatives[part])
            chosen = torch.from_numpy(negatives[part].astype(np.int64))
            infos[part] = self.trainable.update(scores, positives, chosen).numpy()
        return Sampled(block.users, negatives, infos)


class Buffers(NamedTuple):
    """A block on the device at fixed addresses, which a recorded step reads and writes."""

    whole: Tensor  # (N, 6 + m) int64: user, positive, row's start, row's length, first of its user, size, candidates
    real: Tensor  # (N, p + r) float64: priors, uniforms
    negatives: Tensor  # (N,) int64, written by the steps
    infos: Tensor  # (N,) float32, written by the steps
    cursor: Tensor  # (1,) int64, the first example of the next batch


class Packed(NamedTuple):
    """A block as it is copied into the buffers."""

    whole: Tensor  # (n, 6 + m)
    real: Tensor  # (n, p + r)


def pack(draws: Draws, block: Batch, batch_size: int, device: torch.device, *, firsts: bool) -> Packed:
    """A block as two arrays; ``firsts`` says whether the first example of each user is to be marked."""
    n, train = len(block.users), block.train
    packed = Packed(
        _on_host((n, 6 + draws.candidates.shape[1]), torch.int64, device),
        _on_host((n, draws.priors.shape[1] + draws.uniforms.shape[1]), torch.float64, device),
    )
    whole, real = (tensor.numpy() for tensor in packed)
    whole[:, 0], whole[:, 1] = block.users, block.positives
    whole[:, 2], whole[:, 3] = train.indptr[block.users], train.counts[block.users]
    whole[:, 4], whole[:, 5], whole[:, 6:] = 0, draws.sizes, draws.candidates
    if firsts:
        for first in range(0, n, batch_size):
            part = slice(first, first + batch_size)
            whole[part, 4] = first_of_its_user(block.users[part])
    np.concatenate((draws.priors, draws.uniforms), axis=1, out=real)
    return packed


def _on_host(shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> Tensor:
    """Host memory, pinned for a GPU so that copies are asynchronous."""
    return torch.empty(shape, dtype=dtype, pin_memory=device.type == "cuda")


class Pending(NamedTuple):
    """The choices of a block, complete once the device is done."""

    users: np.ndarray  # (n,)
    negatives: Tensor  # (n,) int32, on the host
    infos: Tensor  # (n,) float32, on the host
    done: torch.cuda.Event | None

    @classmethod
    def of(cls, users: np.ndarray, negatives: Tensor, infos: Tensor) -> Pending:
        """Begin to copy the choices (n,) of a block from their device; they may be overwritten afterwards."""
        device, done = negatives.device, None
        chosen, updated = (_on_host((len(users),), dtype, device) for dtype in (torch.int32, torch.float32))
        chosen.copy_(negatives.int(), non_blocking=True)
        updated.copy_(infos, non_blocking=True)
        if device.type == "cuda":
            done = torch.cuda.Event()  # type: ignore[no-untyped-call]
            done.record()
        return cls(users, chosen, updated, done)

    def sampled(self) -> Sampled:
        if self.done is not None:
            self.done.synchronize()
        return Sampled(self.users, self.negatives.numpy(), self.infos.numpy())


class TorchSteps:
    """Torch chooses. On a GPU the first step is recorded as a CUDA graph, which the others replay."""

    def __init__(
        self,
        trainable: Trainable,
        rows: TrainingRows,
        rule: Rule,
        draws: Draws,
        *,
        room: int,
        capacity: int,
        most_rank: int,
    ) -> None:
        self.trainable, self.rows, self.device = trainable, rows, trainable.device
        self.batch_size = trainable.settings.batch_size
        self.choice = torch_choice(rule)(rule, self.device)
        self.capacity, self.most_rank = capacity, most_rank
        self.widths = _widths(draws)
        self.buffers = _buffers(room, self.widths, self.device)
        self.graph: torch.cuda.CUDAGraph | None = None

    def fits(self, rule: Rule, draws: Draws, capacity: int, most_rank: int) -> bool:
        """Whether a block can use the same buffers and the same recorded step."""
        room = len(draws.sizes) <= len(self.buffers.whole)
        same = self.choice.fits(rule) and _widths(draws) == self.widths
        return room and same and capacity <= self.capacity and most_rank <= self.most_rank

    def run(self, rule: Rule, block: Batch, packed: Packed) -> Pending:
        """Start the steps of a block; returns before a GPU is done, so that the next block can follow at once."""
        self.choice.update(rule)
        n = len(block.users)
        self.buffers.whole[:n].copy_(packed.whole, non_blocking=True)
        self.buffers.real[:n].copy_(packed.real, non_blocking=True)
        self.buffers.cursor.zero_()
        for _ in range(n // self.batch_size):
            self._step()
        if n % self.batch_size:
            self._eager_step(n % self.batch_size)
        return Pending.of(block.users, self.buffers.negatives[:n], self.buffers.infos[:n])

    def _step(self) -> None:
        if self.device.type != "cuda" or not self.choice.recordable:
            self._eager_step()
        elif self.graph is None:
            self.graph = self.trainable.recorded(self._eager_step, [self.buffers.cursor, *self.choice.state])
        else:
            self.graph.replay()

    def _eager_step(self, size: int | None = None) -> None:
        """The next batch, or what is left of the block."""
        size = size or self.batch_size
        buffers, (_, p, _) = self.buffers, self.widths
        where = buffers.cursor + numbers(size, self.device)
        whole, real = buffers.whole.index_select(0, where), buffers.real.index_select(0, where)
        users, positives, starts, counts, firsts, sizes = whole[:, :6].unbind(dim=1)
        draws = DrawTensors(whole[:, 6:], sizes, real[:, :p], real[:, p:])
        scores = self.trainable.forward(users)
        chunk = max(1, self.trainable.settings.chunk // size)
        with torch.no_grad():
            batch = TensorBatch(users, positives, starts, counts, firsts, draws, self.capacity, self.most_rank, chunk)
            negatives = self.choice.choose(batch, self.rows, scores)
        infos = self.trainable.update(scores, positives, negatives)
        buffers.negatives.index_copy_(0, where, negatives)
        buffers.infos.index_copy_(0, where, infos)
        buffers.cursor.add_(size)


def largest_batch(counts: np.ndarray, batch_size: int) -> int:
    """The largest number of observed pairs that the users of a batch of the block have together."""
    return int(np.add.reduceat(counts, np.arange(0, len(counts), batch_size)).max())


def _widths(draws: Draws) -> tuple[int, int, int]:
    return draws.candidates.shape[1], draws.priors.shape[1], draws.uniforms.shape[1]


def _buffers(n: int, widths: tuple[int, int, int], device: torch.device) -> Buffers:
    m, p, r = widths
    return Buffers(
        torch.zeros(n, 6 + m, dtype=torch.int64, device=device),
        torch.zeros(n, p + r, dtype=torch.float64, device=device),
        torch.zeros(n, dtype=torch.int64, device=device),
        torch.zeros(n, dtype=torch.float32, device=device),
        torch.zeros(1, dtype=torch.int64, device=device),
    )
