"""A block of batches, step by step: who chooses the negatives, and what that needs on its device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from bayesneg.interfaces import Batch, Sampled
from bayesneg.kernels.rules import (
    AtFactorRank,
    AtScoreRank,
    Draws,
    FromMemory,
    LeastRisk,
    LeastRiskBySummary,
    MostUnbiased,
    Rule,
    Tabled,
)
from bayesneg.kernels.torch.choices import numbers
from bayesneg.kernels.torch.dispatch import DrawTensors, Examples, choose_batch
from bayesneg.models.torch.state import FromVectors

if TYPE_CHECKING:
    from bayesneg.kernels.numba.scoring import Places
    from bayesneg.models.torch.learner import TorchLearner

CHANGING = ("weight", "variance_weight")  # numbers of a rule that follow the epoch
NOBODY = np.empty(0, dtype=np.int64)


class CompiledSteps:
    """On the CPU the compiled kernels choose, from the vectors that the step has just computed."""

    def __init__(self, learner: TorchLearner, rule: Rule) -> None:
        from bayesneg.kernels.numba import scoring, sgd

        train = learner.train
        self.learner, self.batch_size, self.kind = learner, learner.settings.batch_size, type(rule)
        self.places: Places | None = None
        if isinstance(rule, sgd.SWEEPING):
            self.places = scoring.places_of(train.users, train.indices, train.n_items)

    def fits(self, rule: Rule) -> bool:
        return type(rule) is self.kind

    def run(self, rule: Rule, draws: Draws, block: Batch) -> Sampled:
        n = len(block.users)
        negatives, infos = np.empty(n, dtype=np.int32), np.empty(n, dtype=np.float32)
        for first in range(0, n, self.batch_size):
            part = slice(first, first + self.batch_size)
            users, positives = (torch.from_numpy(a[part].astype(np.int64)) for a in (block.users, block.positives))
            state = self.learner.forward(users)
            assert isinstance(state, FromVectors)
            self._choose(rule, Draws(*(array[part] for array in draws)), block, part, state, negatives[part])
            chosen = torch.from_numpy(negatives[part].astype(np.int64))
            infos[part] = self.learner.update(state, positives, chosen).numpy()
        return Sampled(block.users, negatives, infos)

    def _choose(
        self, rule: Rule, draws: Draws, block: Batch, part: slice, state: FromVectors, negatives: np.ndarray
    ) -> None:
        from bayesneg.kernels.numba import scoring, sgd

        w, h = state.users.numpy(), state.items.numpy()
        mirror = scoring.no_mirror() if self.places is None else scoring.mirror_of(h, self.places)
        users, train = block.users[part], self.learner.train
        firsts = np.flatnonzero(first_of_its_user(users)) if isinstance(rule, FromMemory) else NOBODY
        sgd.choose_block(
            rule, users, block.positives[part], draws, firsts,
            train.indptr, train.indices, sgd.Factors(w, h, mirror), negatives,
        )  # fmt: skip

    def close(self) -> None:
        """Nothing is kept anywhere else."""


class Buffers(NamedTuple):
    """A block on the device, in places that never move, so that a recorded step finds them again."""

    whole: Tensor  # (N, 6 + m) int64: user, positive, row's start, row's length, first of its user, size, candidates
    real: Tensor  # (N, p + r) float64: priors, uniforms
    negatives: Tensor  # (N,) int64, written by the steps
    infos: Tensor  # (N,) float32, likewise
    cursor: Tensor  # (1,) int64, the first example of the next batch


class Packed(NamedTuple):
    """A block as it goes into the buffers."""

    whole: Tensor  # (n, 6 + m)
    real: Tensor  # (n, p + r)


def pack(draws: Draws, block: Batch, batch_size: int, device: torch.device, *, memory: bool) -> Packed:
    """Everything about a block in two arrays; ``memory`` says whether the first example of each user matters."""
    n, train = len(block.users), block.train
    packed = Packed(
        _on_host((n, 6 + draws.candidates.shape[1]), torch.int64, device),
        _on_host((n, draws.priors.shape[1] + draws.uniforms.shape[1]), torch.float64, device),
    )
    whole, real = (tensor.numpy() for tensor in packed)
    whole[:, 0], whole[:, 1] = block.users, block.positives
    whole[:, 2], whole[:, 3] = train.indptr[block.users], train.counts[block.users]
    whole[:, 4], whole[:, 5], whole[:, 6:] = 0, draws.sizes, draws.candidates
    if memory:
        for first in range(0, n, batch_size):
            part = slice(first, first + batch_size)
            whole[part, 4] = first_of_its_user(block.users[part])
    np.concatenate((draws.priors, draws.uniforms), axis=1, out=real)
    return packed


def _on_host(shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> Tensor:
    """Memory that a GPU copies from and to while the processor goes on."""
    return torch.empty(shape, dtype=dtype, pin_memory=device.type == "cuda")


class Coming(NamedTuple):
    """What a block's steps will have chosen once the device is done."""

    users: np.ndarray  # (n,)
    negatives: Tensor  # (n,) int32, on the host
    infos: Tensor  # (n,) float32, likewise
    done: torch.cuda.Event | None

    def sampled(self) -> Sampled:
        if self.done is not None:
            self.done.synchronize()
        return Sampled(self.users, self.negatives.numpy(), self.infos.numpy())


class TorchSteps:
    """Torch chooses. On a GPU the first step is recorded as a CUDA graph and every other one replays it."""

    def __init__(
        self, learner: TorchLearner, rule: Rule, draws: Draws, room: int, capacity: int, most_rank: int
    ) -> None:
        self.learner, self.device = learner, learner.device
        self.batch_size = learner.settings.batch_size
        self.rule: Any = on_device(rule, self.device)
        self.original = rule
        self.capacity, self.most_rank = capacity, most_rank
        self.widths = _widths(draws)
        self.buffers = _buffers(room, self.widths, self.device)
        self.graph: torch.cuda.CUDAGraph | None = None

    def fits(self, rule: Rule, draws: Draws, capacity: int, most_rank: int) -> bool:
        """Whether a block can go through the same buffers and the same recorded step."""
        room = len(draws.sizes) <= len(self.buffers.whole)
        same = constants(rule) == constants(self.original) and _widths(draws) == self.widths
        return room and same and capacity <= self.capacity and most_rank <= self.most_rank

    def run(self, rule: Rule, block: Batch, packed: Packed) -> Coming:
        """Set the device to work; a GPU is not waited for, so that the next block can follow at once."""
        self._update_rule(rule)
        n = len(block.users)
        self.buffers.whole[:n].copy_(packed.whole, non_blocking=True)
        self.buffers.real[:n].copy_(packed.real, non_blocking=True)
        self.buffers.cursor.zero_()
        for _ in range(n // self.batch_size):
            self._step()
        if n % self.batch_size:
            self._eager_step(n % self.batch_size)
        negatives, infos = (_on_host((n,), dtype, self.device) for dtype in (torch.int32, torch.float32))
        negatives.copy_(self.buffers.negatives[:n].int(), non_blocking=True)
        infos.copy_(self.buffers.infos[:n], non_blocking=True)
        done = None
        if self.device.type == "cuda":
            done = torch.cuda.Event()  # type: ignore[no-untyped-call]
            done.record()
        return Coming(block.users, negatives, infos, done)

    def _step(self) -> None:
        if self.device.type != "cuda" or isinstance(self.original, AtFactorRank):
            self._eager_step()
        elif self.graph is None:
            memory = [self.rule.memory] if isinstance(self.original, FromMemory) else []
            self.graph = self.learner.recorded(self._eager_step, [self.buffers.cursor, *memory])
        else:
            self.graph.replay()

    def _eager_step(self, size: int | None = None) -> None:
        """The next batch, or as much of one as is left of the block."""
        size = size or self.batch_size
        own, (_, p, _) = self.buffers, self.widths
        places = own.cursor + numbers(size, self.device)
        whole, real = own.whole.index_select(0, places), own.real.index_select(0, places)
        users, positives, starts, counts, firsts, sizes = whole[:, :6].unbind(dim=1)
        draws = DrawTensors(whole[:, 6:], sizes, real[:, :p], real[:, p:])
        state = self.learner.forward(users)
        chunk = max(1, self.learner.settings.chunk // size)
        with torch.no_grad():
            batch = Examples(users, positives, starts, counts, firsts, draws, self.capacity, self.most_rank, chunk)
            negatives = choose_batch(self.rule, batch, self.learner.rows, state)
        infos = self.learner.update(state, positives, negatives)
        own.negatives.index_copy_(0, places, negatives)
        own.infos.index_copy_(0, places, infos)
        own.cursor.add_(size)

    def _update_rule(self, rule: Rule) -> None:
        """Numbers that change with the epoch go where the recorded step reads them."""
        if isinstance(rule, LeastRisk | LeastRiskBySummary):
            self.rule.weight.fill_(rule.weight)
        if isinstance(rule, LeastRisk | LeastRiskBySummary | MostUnbiased) and isinstance(rule.likelihood, Tabled):
            for tensor, array in zip(self.rule.likelihood, rule.likelihood, strict=True):
                tensor.copy_(torch.from_numpy(array))
        if isinstance(rule, FromMemory):
            self.rule.variance_weight.fill_(rule.variance_weight)

    def open(self, rule: Rule) -> None:
        """Take what the rule remembers from where the sampler keeps it."""
        self.original = rule
        if isinstance(rule, FromMemory):
            for tensor, array in zip(self.rule[:3], rule[:3], strict=True):
                tensor[: len(array)].copy_(torch.from_numpy(array))
        if isinstance(rule, AtFactorRank):
            self.rule = on_device(rule, self.device)

    def close(self) -> None:
        """What the rule remembers goes back to where the sampler keeps it."""
        self.write_back(self.rule, self.original)

    @staticmethod
    def write_back(rule: Any, original: Rule) -> None:
        if isinstance(original, FromMemory):
            original.memory[:] = rule.memory[:-1].cpu().numpy()
        if isinstance(original, AtFactorRank):
            original.orders[:] = rule.orders.cpu().numpy()
            original.spreads[:] = rule.spreads.cpu().numpy()


def first_of_its_user(users: np.ndarray) -> np.ndarray:
    """True (B,) where no earlier example of the batch has the same user."""
    first = np.zeros(len(users), dtype=bool)
    first[np.unique(users, return_index=True)[1]] = True
    return first


def largest_batch(counts: np.ndarray, batch_size: int) -> int:
    """The most observed pairs that the users of any batch of the block have together."""
    return int(np.add.reduceat(counts, np.arange(0, len(counts), batch_size)).max())


def highest_rank(rule: Rule, draws: Draws, n_items: int) -> int:
    """At least every rank that the block draws, rounded up so that it seldom changes."""
    if not isinstance(rule, AtScoreRank):
        return 0
    highest = -rule.scale * np.log1p(draws.uniforms[:, 0].max() * np.expm1(-n_items / rule.scale))
    return min(n_items - 1, 1 << int(highest + 1).bit_length())


def constants(rule: Rule) -> tuple[Any, ...]:
    """What a recorded step holds fast of a rule: all but what arrays hold and the numbers that follow the epoch."""
    held = (value for name, value in rule._asdict().items() if name not in CHANGING)
    return type(rule), *(_without_contents(value) for value in held)


def _without_contents(value: Any) -> Any:
    """The shape of an array; a tuple with its arrays replaced so; any other value as it is."""
    if isinstance(value, tuple):
        return type(value), *(_without_contents(part) for part in value)
    return tuple(value.shape) if hasattr(value, "shape") else value


def on_device(rule: Rule, device: torch.device) -> Any:
    """The rule with its arrays, and the numbers that change with the epoch, as tensors."""
    given: Any = rule

    def number(value: float) -> Tensor:
        return torch.tensor(value, dtype=torch.float64, device=device)

    if isinstance(rule, LeastRisk | LeastRiskBySummary | MostUnbiased):
        given = given._replace(likelihood=_likelihood_on(rule.likelihood, device))
    if isinstance(rule, LeastRisk):
        return given._replace(weight=number(rule.weight))
    if isinstance(rule, LeastRiskBySummary):  # the knots are on the device already, unless a caller holds them
        knots, ranks = torch.as_tensor(rule.knots, device=device), torch.as_tensor(rule.ranks, device=device)
        return given._replace(weight=number(rule.weight), knots=knots, ranks=ranks)
    if isinstance(rule, FromMemory):
        arrays = (np.concatenate((rule.memory, rule.memory[:1])), rule.past_users, rule.past_items)  # a row of nobody's
        memory, past_users, past_items = (torch.from_numpy(array).to(device) for array in arrays)
        weight = number(rule.variance_weight)
        return given._replace(memory=memory, past_users=past_users, past_items=past_items, variance_weight=weight)
    if isinstance(rule, AtFactorRank):
        orders, spreads = (torch.from_numpy(array).to(device) for array in (rule.orders, rule.spreads))
        return given._replace(orders=orders, spreads=spreads)
    return given


def _likelihood_on(likelihood: Any, device: torch.device) -> Any:
    """Its numbers as tensors of float64, none where there are none."""
    own = (torch.tensor(value, dtype=torch.float64, device=device) for value in likelihood)
    return type(likelihood)(*own)


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
