"""What a sampler answers for a mini-batch, on the model's device: the same for ``fit`` and for any other loop.

Rules, custom samplers, pools and held-out pairs are handled here. Where draws come from is the caller's choice: the
sampler's draws in host memory (:class:`HostDraws`), or draws that the device makes itself.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from bayesneg.data.interactions import Interactions
from bayesneg.errors import InputError
from bayesneg.interfaces import Batch, Negatives, NegativeSampler, RuleSampler
from bayesneg.kernels.reference import draws as reference_draws
from bayesneg.kernels.reference.choices.base import Draws
from bayesneg.kernels.reference.mixing import Mixing
from bayesneg.kernels.reference.plans import PoolPlan
from bayesneg.kernels.reference.pools import SharedPool
from bayesneg.kernels.reference.selections import Selection
from bayesneg.kernels.torch.choices.base import BatchScores, DrawTensors, LearnsInParts, TensorBatch
from bayesneg.kernels.torch.draws import first_of_its_user
from bayesneg.kernels.torch.pools import TorchPoolWeights
from bayesneg.kernels.torch.score_lists import TrainingRows
from bayesneg.kernels.torch.selections import TorchSelection, learns, torch_selection
from bayesneg.models.torch.batch_scores import NO_VECTORS, EmbeddingScores, MixesEmbeddings
from bayesneg.models.torch.steps import ChoiceOnHost
from bayesneg.models.validate import validate_weighted


class BatchScorer(BatchScores, Protocol):
    """Scores of a batch, also of a pool that its examples share."""

    def of_pool(self, pool: Tensor) -> Tensor:
        """Scores (B, N) of a pool (N,), without gradients."""
        ...


class DrawSource(Protocol):
    """Where the draws of a mini-batch come from."""

    def draws(self, sampler: RuleSampler, batch: Batch, users: Tensor, positives: Tensor) -> Draws | DrawTensors:
        """What is drawn for each example, without candidates for pairs that are held out of training."""
        ...

    def pool(self, sampler: RuleSampler, batch: Batch, positives: Tensor) -> SharedPool:
        """The pool that the batch shares, on the device."""
        ...

    def trained_on(self, sampler: RuleSampler, batch: Batch, users: Tensor, positives: Tensor) -> Tensor:
        """False (B,) where the sampler holds the pair out of training."""
        ...


class HostDraws:
    """The draws of the sampler itself, in host memory."""

    def __init__(self, device: torch.device) -> None:
        self.device = device

    def draws(self, sampler: RuleSampler, batch: Batch, users: Tensor, positives: Tensor) -> Draws:
        return sampler.draws(batch)

    def pool(self, sampler: RuleSampler, batch: Batch, positives: Tensor) -> SharedPool:
        pool = sampler.pool(batch)
        log_q = None if pool.log_q is None else on_device(pool.log_q, torch.float32, self.device)
        return SharedPool(on_device(pool.items, torch.int64, self.device), log_q, pool.corrects)

    def trained_on(self, sampler: RuleSampler, batch: Batch, users: Tensor, positives: Tensor) -> Tensor:
        return on_device(~held_out_pairs(sampler, batch), torch.bool, self.device)


class BatchNegatives:
    """The negatives of mini-batches, epoch after epoch, by one sampler.

    Args:
        train: The training interactions.
        rows: The same on the device.
        source: Where draws come from.
        scores_at_once: Number of scores held at once where a rule reads whole score lists.
    """

    def __init__(self, train: Interactions, rows: TrainingRows, source: DrawSource, *, scores_at_once: int) -> None:
        self.train, self.rows, self.source, self.scores_at_once = train, rows, source, scores_at_once
        self.device = rows.items.device
        self._epoch, self._loaded = 0, 0
        self._weigher: TorchPoolWeights | None = None
        self._selection: TorchSelection | None = None
        self._compiled: ChoiceOnHost | None = None
        self._log_q: Tensor | None = None  # (n_items,)

    def of(
        self,
        sampler: NegativeSampler,
        batch: Batch,
        users: Tensor,
        positives: Tensor,
        scores: BatchScorer,
        pool: SharedPool | None = None,
    ) -> Negatives:
        """Sample for a batch, in a context without gradients.

        Args:
            sampler: The prepared sampler.
            batch: The batch in host memory; only for draws made on a device its pairs may be missing.
            users: The users (B,) on the device.
            positives: The positives (B,) on the device.
            scores: The scores of the batch.
            pool: The pool that the batch shares, on the device, where it was drawn before.

        Returns:
            The negatives on the device, with weights; −1 is no item.
        """
        if not isinstance(sampler, RuleSampler):
            return self._given(sampler.sample(batch), batch, scores)
        starts, self._epoch = batch.epoch != self._epoch, batch.epoch
        rule = sampler.rule(batch)
        if sampler.is_shared:
            if pool is None:
                pool = self.source.pool(sampler, batch, positives)
            return self._weighed(sampler, rule, pool, batch, users, positives, scores, starts=starts)
        draws = self.source.draws(sampler, batch, users, positives)
        if isinstance(rule, Mixing):
            return self._mixed(rule, draws, positives, scores)
        if self._compiled_chooses(rule, draws, scores):
            found = self._chosen(rule, draws, batch, scores)
        else:
            found = self._selected(rule, draws, batch, users, positives, scores)
        return found._replace(log_q=self._log_q_of(sampler, batch, found.items, starts=starts))

    def recordable(self, sampler: NegativeSampler, n_examples: int) -> bool:
        """Whether a CUDA graph can hold :meth:`of` for batches of so many examples, given their pool."""
        if not isinstance(sampler, RuleSampler) or not sampler.is_shared or sampler.holds_out:
            return False
        return self._weigher is not None and self._weigher.recordable(n_examples, self.rows)

    @property
    def replays(self) -> bool:
        """Whether a CUDA graph can hold :meth:`of` for the rest of the epoch, where the device makes the draws."""
        return self._selection is not None and self._selection.is_recordable

    def begin(self, rule: Any, epoch: int) -> TorchSelection:
        """The execution of a rule, which has taken over the rule's state at the start of the epoch.

        Args:
            rule: A rule that chooses or selects.
            epoch: The current epoch.
        """
        if self._selection is None or type(self._selection.rule) is not type(rule):
            self.store()
            self._selection, self._loaded = torch_selection(rule, self.device), 0
        if epoch != self._loaded:
            self._selection.load(rule)
            self._loaded = epoch
        return self._selection

    def join(self, rule: Any, epoch: int, scores: LearnsInParts) -> None:
        """Learn what other processes learn from a mini-batch in which this one has no example.

        Args:
            rule: The rule of the mini-batch.
            epoch: The current epoch.
            scores: The scores of no example.
        """
        if learns(rule):
            self.begin(rule, epoch).join(scores)

    def store(self) -> None:
        """Write the state of a rule on the device back to the sampler, as at the end of an epoch."""
        if self._selection is not None:
            self._selection.store()

    # --------------------------------------------------------------------------------------------------------- a pool

    def _weighed(
        self,
        sampler: RuleSampler,
        rule: Any,
        pool: SharedPool,
        batch: Batch,
        users: Tensor,
        positives: Tensor,
        scores: BatchScorer,
        *,
        starts: bool,
    ) -> Negatives:
        # a prior that follows training has another form in each epoch
        if self._weigher is None or type(self._weigher.rule) is not type(rule) or (starts and sampler.holds_out):
            self._weigher = TorchPoolWeights(rule, self.device)
        elif starts:
            self._weigher.load(rule)
        empty = torch.empty(len(users), 0, dtype=torch.float64, device=self.device)
        draws = DrawTensors(empty.long(), users[:0], empty, empty)
        tensors = self._tensors(batch, users, positives, draws, users[:0], 0)
        weights = self._weigher.weigh(pool, tensors, self.rows, scores, scores.of_pool(pool.items))
        if sampler.holds_out:
            weights *= self.source.trained_on(sampler, batch, users, positives)[:, None]
        return Negatives(pool.items, weights, pool.log_q if pool.corrects else None)

    # ---------------------------------------------------------------------------------------- negatives of each example

    def _compiled_chooses(self, rule: Any, draws: Draws | DrawTensors, scores: BatchScorer) -> bool:
        """Compiled code chooses one negative from embeddings and draws in host memory; torch does all else."""
        if self.device.type != "cpu" or not isinstance(draws, Draws) or not isinstance(scores, EmbeddingScores):
            return False
        return (self._compiled is not None and self._compiled.fits(rule)) or not isinstance(rule, Selection)

    def _chosen(self, rule: Any, draws: Any, batch: Batch, scores: Any) -> Negatives:
        if self._compiled is None or not self._compiled.fits(rule):
            self._compiled = ChoiceOnHost(self.train, rule)
        items = np.empty(len(batch.users), dtype=np.int32)
        self._compiled.choose(rule, draws, batch.users, batch.positives, scores, items)
        found = torch.from_numpy(items).long()[:, None]
        return Negatives(found, (found >= 0).float())

    def _selected(
        self,
        rule: Any,
        draws: Draws | DrawTensors,
        batch: Batch,
        users: Tensor,
        positives: Tensor,
        scores: BatchScorer,
    ) -> Negatives:
        selection = self.begin(rule, batch.epoch)
        on_host = draws if isinstance(draws, Draws) else None
        most_rank = selection.highest_rank(on_host, self.rows.n_items)
        firsts = self._firsts(batch, users) if selection.needs_firsts else users[:0]
        drawn = draws if isinstance(draws, DrawTensors) else self._copied(draws)
        tensors = self._tensors(batch, users, positives, drawn, firsts, most_rank)
        return Negatives(*selection.select(tensors, self.rows, scores))

    def _firsts(self, batch: Batch, users: Tensor) -> Tensor:
        """1 (B,) for the first example of its user in the batch, otherwise 0."""
        if len(batch.users) == len(users):
            return on_device(reference_draws.first_of_its_user(batch.users), torch.int64, self.device)
        return first_of_its_user(users, self.train.n_users)

    def _mixed(self, rule: Any, draws: Draws | DrawTensors, positives: Tensor, scores: BatchScorer) -> Negatives:
        """Synthetic negatives, through which gradients flow."""
        if not isinstance(scores, MixesEmbeddings):
            raise InputError(NO_VECTORS)
        drawn = draws if isinstance(draws, DrawTensors) else self._copied(draws)
        with torch.enable_grad():
            items, vectors = scores.mixed(rule, drawn, positives)
        return Negatives(items, (items >= 0).float(), None, vectors)

    def _log_q_of(self, sampler: RuleSampler, batch: Batch, items: Tensor, *, starts: bool) -> Tensor | None:
        """The log-probabilities of the items, from a table that is copied to the device once an epoch."""
        if starts:
            table = sampler.log_q(batch)
            self._log_q = None if table is None else on_device(table, torch.float32, self.device)
        return None if self._log_q is None else self._log_q[items.clamp(min=0)]

    # -------------------------------------------------------------------------------------------------------- tensors

    def _tensors(
        self, batch: Batch, users: Tensor, positives: Tensor, draws: DrawTensors, firsts: Tensor, most_rank: int
    ) -> TensorBatch:
        starts = self.rows.indptr[users]
        counts = self.rows.indptr[users + 1] - starts
        known = len(batch.users) == len(users)
        bounds = self.train.indptr
        pairs = len(users) * self.rows.longest
        if known:
            pairs = int((bounds[batch.users + 1] - bounds[batch.users]).sum())
        chunk = max(1, self.scores_at_once // len(users))
        return TensorBatch(users, positives, starts, counts, firsts, draws, _rounded_up(pairs), most_rank, chunk)

    def _copied(self, draws: Draws) -> DrawTensors:
        kinds = torch.int64, torch.int64, torch.float64, torch.float64
        return DrawTensors(*(on_device(part, kind, self.device) for part, kind in zip(draws, kinds, strict=True)))

    def _given(self, answer: Any, batch: Batch, scores: BatchScorer) -> Negatives:
        """The answer of a custom sampler, on the device."""
        found = validate_weighted(answer, batch)
        if found.vectors is not None:
            self._check_vectors(found, scores)
        items, weights = (
            on_device(part, kind, self.device)
            for part, kind in ((found.items, torch.int64), (found.weights, torch.float32))
        )
        log_q = None if found.log_q is None else on_device(found.log_q, torch.float32, self.device)
        return Negatives(items, weights, log_q, found.vectors)

    def _check_vectors(self, negatives: Negatives, scores: BatchScorer) -> None:
        """The synthetic negatives of a custom sampler fit the model."""
        if not isinstance(scores, EmbeddingScores):
            raise InputError(NO_VECTORS)
        vectors, shape = negatives.vectors, (*negatives.weights.shape, scores.given[1].shape[1])
        if not isinstance(vectors, Tensor) or not vectors.is_floating_point():
            raise InputError(
                f"Negatives.vectors must be a tensor of floating-point numbers, got {type(vectors).__name__}; return "
                "None for the items themselves"
            )
        if tuple(vectors.shape) != shape or vectors.device != self.device:
            raise InputError(
                f"Negatives.vectors must have the shape {shape} on {self.device}, an embedding for each negative, got "
                f"{tuple(vectors.shape)} on {vectors.device}"
            )


def on_device(array: np.ndarray, kind: torch.dtype, device: torch.device) -> Tensor:
    """A copy of an array; to a GPU through pinned memory, so that nothing waits."""
    found = torch.from_numpy(np.ascontiguousarray(array)).to(kind)
    return found.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else found


def held_out_pairs(sampler: RuleSampler, batch: Batch) -> np.ndarray:
    """True (B,) where the sampler holds a pair out of training."""
    n = len(batch.users)
    empty = np.empty((n, 0))
    one_each = Draws(np.zeros((n, 1), dtype=np.int32), np.ones(n, dtype=np.int32), empty, empty)
    return sampler.without_held_out(one_each, batch).sizes == 0


def check_batch_size(sampler: NegativeSampler, batch: Batch, batch_size: int) -> None:
    """The positives of other examples are negatives only where there are other examples."""
    if batch_size > 1 or not isinstance(sampler, RuleSampler):
        return
    plan = sampler.plan(batch)
    if isinstance(plan, PoolPlan) and plan.size is None:
        raise InputError(
            f"{type(sampler).__name__} takes the positives of the other examples of a batch as negatives, and the "
            "batch has one; set batch_size to 2 or more, and drop the last batch of a loader (drop_last=True)"
        )


def _rounded_up(n: int) -> int:
    """At least ``n``, with three significant bits: tensors of few sizes are kept between batches."""
    shift = max(0, n.bit_length() - 3)
    return max(1, -(-n >> shift) << shift)
