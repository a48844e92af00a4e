"""A sampler for any torch loop: tensors in, tensors out, on their device.

Draws, scores, weights and choices are computed where the embeddings are. Five things need the host: a prior given as a
NumPy function, a custom draw or sampler written in NumPy, the first call of an epoch, the recording of a CUDA graph,
and :meth:`Sampler.end_epoch` of a sampler with a state.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from bayesneg.checks import one_of, whole
from bayesneg.data import lookup
from bayesneg.data.interactions import Interactions
from bayesneg.errors import DamagedError, InputError
from bayesneg.integrity.arrays import check_arrays
from bayesneg.interfaces import Batch, Negatives, NegativeSampler, RuleSampler
from bayesneg.kernels.reference.mixing import Layers
from bayesneg.models.torch.batch_scores import EmbeddingScores, pooled
from bayesneg.models.torch.device import rows_on
from bayesneg.models.torch.negatives import BatchNegatives, HostDraws, check_batch_size
from bayesneg.samplers.bns import BNS
from bayesneg.samplers.registry import as_sampler
from bayesneg.seeding import seed_from, stream
from bayesneg.torch.device_draws import DeviceDraws
from bayesneg.torch.recorded_call import RecordedCalls
from bayesneg.torch.tensor_scorer import TensorScorer
from bayesneg.torch.validation import (
    check_lengths,
    check_numbers,
    check_table,
    check_tensors,
    readable,
    same_device,
    training_data,
)

LayerTables = Tensor | Sequence[Tensor]
EXACT_ON_GPU = 1 << 18  # items up to which cdf="auto" of BNS is exact on a GPU; on a CPU summaries are faster
COUNTERS = {"seed": 0, "epoch": 1, "step": 0}  # of a state, with the least value of each
SCORES = 1 << 26  # held at once where a rule reads whole score lists


class Sampler:
    """Negatives for a training loop of your own.

    Args:
        sampler: A sampler such as ``bn.BNS()``, or its name; a custom :class:`~bayesneg.NegativeSampler` is called with
            arrays in host memory.
        train: The training interactions, whose numbers of users and items the loop uses too; a SciPy sparse matrix
            (n_users, n_items) is taken as well.
        seed: Seed of every draw.
        similarity: What a score is: the ``"inner"`` product of embeddings, or their ``"cosine"``.

    Example:
        >>> import bayesneg as bn, bayesneg.torch as bnt
        >>> train = bn.synthetic(50, 40, seed=0)
        >>> sampler = bnt.Sampler(bn.BNS(candidates=5), train, seed=0)
        >>> U, V = torch.randn(50, 8), torch.randn(40, 8)
        >>> users, positives = torch.tensor([0, 1]), torch.tensor(train.indices[train.indptr[:2]]).long()
        >>> sampler(users, positives, U, V).items.shape
        torch.Size([2, 1])
    """

    def __init__(
        self, sampler: NegativeSampler | str, train: Interactions, *, seed: int = 0, similarity: str = "inner"
    ) -> None:
        one_of("similarity", similarity, ("inner", "cosine"))
        self.train = replace(training_data("train", train), truth=None)
        self.seed, self.epoch, self.step, self.cosine = seed, 1, 0, similarity == "cosine"
        self._given = as_sampler(sampler)
        self._sampler: NegativeSampler | None = None  # bound at the first call, when the device is known
        self._saved: dict[str, np.ndarray] | None = None
        self._summaries: Mapping[str, Tensor] | None = None  # saved ones of a GPU

    def _bind(self, device: torch.device, dim: int) -> None:
        """Prepare the sampler for a device; a state that it has learned goes with it."""
        if self._sampler is not None:
            self._saved, self._summaries = self._stored(), self._stored_summaries()
        given, self._device = self._given, device
        if isinstance(given, BNS) and given.cdf == "auto" and not given.shared:
            exact = device.type == "cuda" and self.train.n_items <= EXACT_ON_GPU
            given = replace(given, cdf="exact" if exact else "refreshed")
        self._sampler = given.prepare(self.train, rng=stream(self.seed, "sampler"))
        if self._saved is not None:
            self._restore(self._sampler, self._saved, dim)
        rows = rows_on(self.train, device)
        self._scorer = TensorScorer(self.train, rows, self._summaries)
        self._on_device = draws_itself(device) and self._plans(self._sampler)
        self._source = DeviceDraws(self.train, rows) if self._on_device else HostDraws(device)
        self._negatives = BatchNegatives(self.train, rows, self._source, scores_at_once=SCORES)
        self._recorded: RecordedCalls | None = None
        if isinstance(self._source, DeviceDraws) and device.type == "cuda":
            self._recorded = RecordedCalls(self._source.generator)

    def _restore(self, sampler: NegativeSampler, state: Mapping[str, np.ndarray], dim: int) -> None:
        """Give the sampler its state, after its arrays were checked: compiled code looks up whatever is in them."""
        sizes = {"users": self.train.n_users, "items": self.train.n_items, "dim": dim, "factors": dim}
        try:
            check_arrays(state, sampler.state_specs(self.train), sizes)
        except DamagedError as error:
            self._sampler = None
            what = "the state does not fit the sampler, its data and the embeddings, or is damaged"
            raise InputError(f"{what} ({error}); load that of a sampler with the same settings and data") from error
        sampler.load_state_dict(state)

    def _plans(self, sampler: NegativeSampler) -> bool:
        """Whether a device can make the draws itself."""
        rng = stream(self.seed, "sampler", self.epoch)
        batch = Batch(NOBODY, NOBODY, NOBODY, self.epoch, self.train, self._scorer, rng)
        return isinstance(sampler, RuleSampler) and sampler.plan(batch) is not None

    # ------------------------------------------------------------------------------------------------------- sampling

    def __call__(
        self, users: Tensor, positives: Tensor, user_vectors: LayerTables, item_vectors: LayerTables
    ) -> Negatives:
        """Sample the negatives of a batch.

        Args:
            users: The users (B,), dense numbers.
            positives: The positives (B,), dense numbers.
            user_vectors: The embeddings (n_users, d) of all users; a list of those of every layer for samplers that mix
                layers, which stands for their mean.
            item_vectors: The embeddings (n_items, d) of all items, or a list as long.

        Returns:
            Items (B, K), or (N,) where the batch shares a pool, with their weights and log-probabilities, on the
            device of the embeddings and without gradients. An item of weight 0 does not count; −1 is no item.
            Synthetic negatives are vectors (B, K, d) with gradients.
        """
        if torch.compiler.is_compiling():
            return self._outside_the_graph(users, positives, user_vectors, item_vectors)
        return self._checked(users, positives, user_vectors, item_vectors)

    @torch.compiler.disable
    def _outside_the_graph(self, *given: Any) -> Negatives:
        return self._checked(*given)

    def _checked(
        self, users: Tensor, positives: Tensor, user_vectors: LayerTables, item_vectors: LayerTables
    ) -> Negatives:
        n_users, n_items = self.train.n_users, self.train.n_items
        layers = self._layers(user_vectors, item_vectors)
        same_device(users=users, positives=positives, user_vectors=layers.users[0])
        check_numbers("users", users, 0, n_users)
        check_numbers("positives", positives, 0, n_items)
        check_lengths(users, positives)
        if self._sampler is None or self._device != users.device:
            self._bind(users.device, layers.users[0].shape[1])
        with torch.no_grad(), in_full_precision(users.device.type), current(users.device):
            return self._sample(users.long(), positives.long(), layers)

    def _layers(self, user_vectors: LayerTables, item_vectors: LayerTables) -> Layers:
        """The embeddings of every layer; those of a model without layers are one."""
        layers = Layers(*(list(v) if isinstance(v, list | tuple) else [v] for v in (user_vectors, item_vectors)))
        if len(layers.users) != len(layers.items) or not layers.users:
            raise InputError(
                "user_vectors and item_vectors must be lists of one tensor for each layer, of one length, got "
                f"{len(layers.users)} and {len(layers.items)}"
            )
        for users, items in zip(*layers, strict=True):
            check_table("user_vectors", users, self.train.n_users)
            check_table("item_vectors", items, self.train.n_items)
            same_device(user_vectors=users, item_vectors=items, first_layer=layers.users[0])
            if len({part.shape[1] for part in (users, items, layers.users[0])}) > 1:
                raise InputError(
                    f"user_vectors and item_vectors must have one width, got {users.shape[1]} and {items.shape[1]}"
                )
        return layers

    def _sample(self, users: Tensor, positives: Tensor, layers: Layers) -> Negatives:
        assert self._sampler is not None
        batch = self._batch(users, positives)
        check_batch_size(self._sampler, batch, len(users))
        if isinstance(self._source, DeviceDraws):
            self._source.generator.manual_seed(seed_from(batch.rng) >> 1)
        self.step += 1

        def call(users: Tensor, positives: Tensor) -> Negatives:
            assert self._sampler is not None
            scores = EmbeddingScores(*pooled(layers), users, cosine=self.cosine, layers=layers)
            self._scorer.see(scores)
            return self._negatives.of(self._sampler, batch, users, positives, scores)

        if self._recorded is not None and self._is_replayed(len(users), layers):
            return self._recorded.of(call, users, positives, (layers.users[0], layers.items[0]))
        found = call(users, positives)
        if self.step == 1 and readable(users):
            self._check_usable(users, found)
        return found

    def _check_usable(self, users: Tensor, found: Negatives) -> None:
        """Warn in the first batch of an epoch if a user has no negative that counts."""
        if found.weights is None or (isinstance(self._sampler, RuleSampler) and self._sampler.holds_out):
            return
        without = users[found.weights.amax(dim=1) == 0]
        if len(without):
            warnings.warn(
                f"{len(without)} of {len(users)} examples, one of user {int(without[0])}, have no negative that counts "
                "and add nothing to the loss: all that were drawn are training items of the user or have weight 0; "
                "draw a larger pool or more candidates, and leave out users who have every item",
                stacklevel=5,
            )

    def _is_replayed(self, n_examples: int, layers: Layers) -> bool:
        """Whether the calls of an epoch differ in their examples and draws alone; its first one prepares the rest."""
        if self.step == 1 or len(layers.users) > 1 or n_examples * self.train.n_items > SCORES:
            return False
        sampler = self._sampler
        if isinstance(sampler, RuleSampler) and (sampler.is_shared or sampler.holds_out or sampler.makes_vectors):
            return False
        return self._negatives.replays

    def _batch(self, users: Tensor, positives: Tensor) -> Batch:
        """The batch in host memory; where a GPU draws, its numbers stay there."""
        rng = stream(self.seed, "sampler", self.epoch, self.step)
        parts = NOBODY, NOBODY, NOBODY
        if not self._on_device:
            parts = self._on_host(users, positives)
        return Batch(*parts, self.epoch, self.train, self._scorer, rng)

    def _on_host(self, users: Tensor, positives: Tensor) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Users, positives and positions; rules do not read positions, and looking them up takes long.

        Positives are checked in the first batch of an epoch, which shows when they are numbered in another way.
        """
        which, items = (part.cpu().numpy().astype(np.int32) for part in (users, positives))
        if self.step and isinstance(self._sampler, RuleSampler) and not self._sampler.holds_out:
            return which, items, NOBODY
        positions = lookup.positions(self.train.indptr, self.train.indices, which, items)
        if (positions < 0).any():
            wrong = int(np.flatnonzero(positions < 0)[0])
            raise InputError(
                f"positives must be training items of their users, and item {items[wrong]} is none of user "
                f"{which[wrong]}; give the Sampler the interactions that the loop trains on"
            )
        return which, items, positions

    # ---------------------------------------------------------------------------------------------------------- state

    @torch.no_grad()
    def end_epoch(self, user_vectors: LayerTables, item_vectors: LayerTables) -> None:
        """Tell the sampler that an epoch has ended: schedules go on, and samplers with a state learn from the model.

        Args:
            user_vectors: The embeddings (n_users, d) of all users, or a list of those of every layer.
            item_vectors: The embeddings (n_items, d) of all items, or a list as long.
        """
        vectors = pooled(self._layers(user_vectors, item_vectors))
        if self._sampler is None or self._device != vectors[0].device:
            self._bind(vectors[0].device, vectors[0].shape[1])
        assert self._sampler is not None
        self._negatives.store()
        nobody = torch.zeros(0, dtype=torch.int64, device=self._device)
        with in_full_precision(self._device.type), current(self._device):
            self._scorer.see(EmbeddingScores(*vectors, nobody, cosine=self.cosine))
            self._sampler.end_epoch(self.epoch, self._scorer)
        self.epoch, self.step = self.epoch + 1, 0
        if self._recorded is not None:
            self._recorded.begin_epoch()

    def _stored(self) -> dict[str, np.ndarray] | None:
        """The state of the sampler, with what a rule keeps on the device; None before it has one."""
        if self._sampler is None:
            return self._saved
        self._negatives.store()
        return {key: np.array(value) for key, value in self._sampler.state_dict().items()}

    def _stored_summaries(self) -> Mapping[str, Tensor] | None:
        """The summaries of score lists that a GPU keeps within an epoch; on a CPU the sampler has them."""
        if self.step == 0:
            return None
        return self._summaries if self._sampler is None else self._scorer.saved_summaries()

    def state_dict(self) -> dict[str, Any]:
        """Everything that a checkpoint must keep, between two epochs or within one.

        It can be loaded on another device. A GPU draws other numbers than a CPU; and the summaries of ``BNS`` with
        ``cdf="refreshed"`` stay with their kind of device: the other computes them anew.

        Returns:
            The seed, the epoch, the steps of the epoch, the state of the sampler and the summaries of a GPU, as plain
            values and tensors.
        """
        stored, summaries = self._stored(), self._stored_summaries()
        return {
            "seed": self.seed,
            "epoch": self.epoch,
            "step": self.step,
            "sampler": None if stored is None else {key: torch.from_numpy(value) for key, value in stored.items()},
            "summaries": None if summaries is None else dict(summaries),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a state.

        Shapes, types, ranges and finite numbers are checked, those of arrays at the next call, when the width of the
        embeddings is known. A state has no digest: what writes the file must notice a flipped bit.

        Args:
            state: What :meth:`state_dict` returned.
        """
        missing = [key for key in (*COUNTERS, "sampler", "summaries") if key not in state]
        if missing:
            raise InputError(f"state must be what state_dict() of a Sampler returned; it has no {missing[0]!r}")
        counters = {key: state[key].item() if isinstance(state[key], Tensor) else state[key] for key in COUNTERS}
        for key, least in COUNTERS.items():
            whole(key, counters[key], least=least)
        for key in ("sampler", "summaries"):
            check_tensors(key, state[key])
        self.seed, self.epoch, self.step = map(int, counters.values())
        saved = state["sampler"]
        self._saved = None if saved is None else {key: value.cpu().numpy() for key, value in saved.items()}
        self._summaries = state["summaries"]
        self._sampler = None  # bound again at the next call


def in_full_precision(kind: str) -> AbstractContextManager[Any]:
    """Without autocast, where it is on: to leave it takes longer than to ask."""
    return torch.autocast(kind, enabled=False) if torch.is_autocast_enabled(kind) else nullcontext()


def current(device: torch.device) -> AbstractContextManager[Any]:
    """With the GPU as the current one, on which Triton launches and CUDA graphs are recorded."""
    return torch.cuda.device(device) if device.type == "cuda" else nullcontext()


def draws_itself(device: torch.device) -> bool:
    """Whether draws are made on the device; on a CPU those of the sampler, in compiled code, are faster."""
    return device.type != "cpu"


NOBODY = np.empty(0, dtype=np.int64)
