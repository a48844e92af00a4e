"""Training in mini-batches with torch: any module that gives embeddings or scores, any sampler, CPU or GPU.

A block of many batches is drawn at once, since draws do not depend on scores; then each batch is chosen for and
learned from. On the CPU compiled code chooses; on a GPU, and for models without embeddings, torch does.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from bayesneg.data.interactions import Interactions
from bayesneg.errors import InputError
from bayesneg.interfaces import (
    BPR_LOSS,
    NO_LABELS,
    Batch,
    Embeddings,
    Loss,
    Measured,
    NegativeSampler,
    RuleSampler,
    Sampled,
)
from bayesneg.kernels.reference.choices.base import Draws, Rule
from bayesneg.kernels.reference.losses import PairwiseLogistic
from bayesneg.kernels.torch.choices.base import torch_choice
from bayesneg.kernels.torch.formulas import kth_highest, unit
from bayesneg.kernels.torch.score_lists import TrainingRows
from bayesneg.models.scorers import EmbeddingScorer, cold_in, unit_rows
from bayesneg.models.thresholds import thresholds_of
from bayesneg.models.torch.batch_scores import NO_EMBEDDINGS
from bayesneg.models.torch.device import EmbeddingsRankedOnGPU, memory_named, one_ahead, rows_on
from bayesneg.models.torch.graph import KeptUsers, SmoothedEmbeddings
from bayesneg.models.torch.settings import TorchSettings
from bayesneg.models.torch.steps import CompiledSteps, Packed, TorchSteps, largest_batch, pack
from bayesneg.models.torch.summaries import TorchSummaries
from bayesneg.models.torch.trainable import Trainable
from bayesneg.models.torch.weighted import WeightedSteps
from bayesneg.models.validate import single, validate_negatives

EXAMPLES = 1 << 15  # per block at most, unless a batch has more
NUMBERS = 1 << 18  # drawn numbers per block at most
THRESHOLDS = ".thresholds"  # their key in a state, which is the name of no parameter or buffer


class TorchLearner:
    """A module in training; also the scorer that samplers and evaluation see."""

    def __init__(
        self,
        settings: TorchSettings,
        train: Interactions,
        module: nn.Module,
        *,
        scores: bool = False,
        ensemble_size: int = 1,
    ) -> None:
        self.settings, self.train, self.scores = settings, train, scores
        shape = (train.n_users, train.n_items)
        self.trainable = Trainable(settings, module, shape, gives_scores=scores, ensemble_size=ensemble_size)
        self.device = self.trainable.device
        # while a GPU works, the cores are free to draw
        self._drawing_threads = (os.cpu_count() or 1) if self.device.type == "cuda" else 1
        self._compiled_steps: CompiledSteps | None = None
        self._torch_steps: TorchSteps | None = None
        self._summaries: TorchSummaries | None = None
        self._weighted: WeightedSteps | None = None
        self._thresholds: Tensor | None = None  # (n_users,), for losses that ask for them
        self._known: tuple[np.ndarray, np.ndarray] | None = None  # users and items that an earlier run has learned
        self._kept: KeptUsers | None = None
        self._seen: EmbeddingScorer | None = None  # the current embeddings on the host, copied when asked for

    # ---------------------------------------------------------------------------------------------------- as a scorer

    @property
    def n_users(self) -> int:
        return self.train.n_users

    @property
    def n_items(self) -> int:
        return self.train.n_items

    @property
    def module(self) -> nn.Module:
        return self.trainable.module

    def score(self, users: np.ndarray, items: np.ndarray) -> np.ndarray:
        if self.scores:
            return np.take_along_axis(self.score_all(users), np.asarray(items), axis=1)
        return self._vectors().score(users, items)

    def score_all(self, users: np.ndarray) -> np.ndarray:
        if not self.scores:
            return self._vectors().score_all(users)
        with self.trainable.evaluating():
            which = torch.as_tensor(np.asarray(users, dtype=np.int64), device=self.device)
            return self.trainable.forward(which).chunk(0, self.n_items).float().cpu().numpy()

    def embeddings(self) -> Embeddings:
        if self.scores:
            raise InputError(NO_EMBEDDINGS)
        return self._vectors().embeddings()

    @property
    def n_layers(self) -> int:
        """As declared by :class:`~bayesneg.interfaces.LayeredScorer`."""
        return self.trainable.n_layers

    def refreshed_knots(
        self, batch: Batch, ranks: np.ndarray, *, moved: float, pool: int, over_all: bool
    ) -> Tensor | None:
        """As declared by :class:`~bayesneg.interfaces.RefreshesOnDevice`; refused for a model without embeddings."""
        if self.scores:
            raise InputError(NO_EMBEDDINGS)
        how = {"moved": moved, "pool": pool, "over_all": over_all}
        return None if self.device.type == "cpu" else self._knots_on_device(batch, ranks, **how)

    def _knots_on_device(self, batch: Batch, ranks: np.ndarray, **how: Any) -> Tensor:
        with self.trainable.evaluating():
            make = unit if self.settings.similarity == "cosine" else Tensor.float
            users, items = (make(vectors.float()) for vectors in self.trainable.embeddings())
            if self._summaries is None:
                self._summaries = TorchSummaries(self._rows, ranks, users.shape[1], self.device)
            which = torch.from_numpy(batch.users).to(self.device)
            return self._summaries.refresh(which, (users, items), batch.epoch, **how)

    def _vectors(self) -> EmbeddingScorer:
        if self._seen is None:
            with self.trainable.evaluating():
                given = [vectors.detach() for vectors in self.trainable.embeddings()]  # they may be the parameters
            self._seen = EmbeddingScorer(*(vectors.float().cpu().contiguous().numpy() for vectors in given))
        if self.settings.similarity == "cosine":
            return EmbeddingScorer(*(unit_rows(vectors) for vectors in self._seen.embeddings()))
        return self._seen

    # ------------------------------------------------------------------------------------------------------- training

    def train_epoch(
        self,
        sampler: NegativeSampler,
        *,
        epoch: int,
        order: np.ndarray,
        rng: np.random.Generator,
        loss: Loss = BPR_LOSS,
        labels: Mapping[str, Interactions] = NO_LABELS,
    ) -> Iterator[Sampled | Measured]:
        self.trainable.set_learning_rate(self.settings.rate_at(epoch))
        if learns_one(self.settings, sampler, loss):
            return self._train_on_one(sampler, epoch, order, rng)
        return self._train_weighted(sampler, epoch, order, rng, loss, labels)

    def _train_weighted(
        self,
        sampler: NegativeSampler,
        epoch: int,
        order: np.ndarray,
        rng: np.random.Generator,
        loss: Loss,
        labels: Mapping[str, Interactions],
    ) -> Iterator[Measured]:
        size = self.settings.batch_size
        with memory_named(self.device, self.settings):
            if self._weighted is None:
                self._weighted = WeightedSteps(self.trainable, self.train, self._rows, loss, labels)
            self._refresh_thresholds(loss, epoch)
            self._weighted.thresholds = self._thresholds
            for part in self._weighted.run(sampler, self._blocks(order, size, epoch, rng)):
                self._seen = None
                yield part

    def _refresh_thresholds(self, loss: Loss, epoch: int) -> None:
        """The users' K-th highest scores, where the loss asks for them; recomputed every few epochs."""
        rank = loss.threshold_at
        if rank is None or (self._thresholds is not None and (epoch - 1) % loss.threshold_every):
            return
        with self.trainable.evaluating():

            def lists(users: np.ndarray) -> Tensor:
                return self.trainable.forward(torch.from_numpy(users).to(self.device)).chunk(0, self.n_items)

            sizes = {"n_users": self.n_users, "n_items": self.n_items, "scores_at_once": self.settings.chunk}
            self._thresholds = torch.cat(thresholds_of(lists, kth_highest, rank, **sizes))

    def _train_on_one(
        self, sampler: NegativeSampler, epoch: int, order: np.ndarray, rng: np.random.Generator
    ) -> Iterator[Sampled]:
        size = self.settings.batch_size
        if isinstance(sampler, RuleSampler):
            size *= max(1, min(EXAMPLES, NUMBERS // sampler.width(self.n_items)) // size)
        blocks = self._blocks(order, size, epoch, rng)
        with memory_named(self.device, self.settings):
            sampled: Iterator[Sampled]
            if not isinstance(sampler, RuleSampler):
                sampled = (self._sampled_by(sampler, block) for block in blocks)
            elif self._compiled_chooses:
                sampled = (self._chosen_by_compiled_code(sampler, block) for block in blocks)
            else:
                sampled = self._chosen_by_torch(sampler, blocks, min(size, len(order)))
            for part in sampled:
                yield part
                self._seen = None

    def _blocks(self, order: np.ndarray, size: int, epoch: int, rng: np.random.Generator) -> Iterator[Batch]:
        for start in range(0, len(order), size):
            positions = order[start : start + size]
            users, positives = self.train.users[positions], self.train.indices[positions]
            yield Batch(users, positives, positions, epoch, self.train, self, rng, self._drawing_threads)

    def _sampled_by(self, sampler: NegativeSampler, batch: Batch) -> Sampled:
        """One batch with the negatives of a custom sampler."""
        negatives = validate_negatives(single(sampler.sample(batch), sampler), batch).astype(np.int32)
        users, positives, chosen = (
            torch.from_numpy(array.astype(np.int64)).to(self.device)
            for array in (batch.users, batch.positives, negatives)
        )
        infos = self.trainable.update(self.trainable.forward(users), positives, chosen)
        return Sampled(batch.users, negatives, infos.cpu().numpy())

    @property
    def _compiled_chooses(self) -> bool:
        """Compiled code reads embeddings in host memory; torch chooses for all other models."""
        return self.device.type == "cpu" and not self.scores

    def _chosen_by_compiled_code(self, sampler: RuleSampler, block: Batch) -> Sampled:
        rule, draws = sampler.rule(block), sampler.draws(block)
        if self._compiled_steps is None or not self._compiled_steps.choice.fits(rule):
            self._compiled_steps = CompiledSteps(self.trainable, self.train, rule)
        return self._compiled_steps.run(rule, draws, block)

    def _chosen_by_torch(self, sampler: RuleSampler, blocks: Iterator[Batch], room: int) -> Iterator[Sampled]:
        """Each block is yielded once the next one is on its way, so that a GPU never waits."""
        before = None
        for first, (block, draws, packed) in enumerate(self._drawn_ahead(sampler, blocks)):
            rule = sampler.rule(block)
            steps = self._steps_for(rule, draws, block, room, new_epoch=first == 0)
            pending = steps.run(rule, block, packed)
            self._seen = None
            if before is not None:
                yield before.sampled()
            before = pending
        if before is not None:
            yield before.sampled()
            steps.choice.store()

    def _drawn_ahead(self, sampler: RuleSampler, blocks: Iterator[Batch]) -> Iterator[tuple[Batch, Draws, Packed]]:
        """Each block with its draws; the next one is drawn while the GPU works."""
        first = next(blocks, None)
        if first is None:
            return
        firsts = torch_choice(sampler.rule(first)).needs_firsts

        def drawn(block: Batch) -> tuple[Batch, Draws, Packed]:
            draws = sampler.draws(block)
            return block, draws, pack(draws, block, self.settings.batch_size, self.device, firsts=firsts)

        yield from one_ahead(drawn, chain([first], blocks), self.device)

    def _steps_for(self, rule: Rule, draws: Draws, block: Batch, room: int, *, new_epoch: bool) -> TorchSteps:
        """The steps of earlier blocks where they fit; a rule's state is loaded at the start of an epoch."""
        capacity = largest_batch(self.train.counts[block.users], self.settings.batch_size)
        most_rank = torch_choice(rule).highest_rank(rule, draws, self.n_items)
        steps = self._torch_steps
        if steps is None or not steps.fits(rule, draws, capacity, most_rank):
            if steps is not None and not new_epoch:
                steps.choice.store()
            capacity += capacity // 8  # so that another order of examples seldom needs more
            steps = TorchSteps(
                self.trainable, self._rows, rule, draws, room=room, capacity=capacity, most_rank=most_rank
            )
            self._torch_steps = steps
        if new_epoch:
            steps.choice.load(rule)
        return steps

    @cached_property
    def _rows(self) -> TrainingRows:
        return rows_on(self.train, self.device)

    # ---------------------------------------------------------------------------------------------------------- state

    def state_dict(self) -> dict[str, np.ndarray]:
        self._restore_kept()
        more = {} if self._thresholds is None else {THRESHOLDS: self._thresholds}
        return {key: value.detach().cpu().numpy().copy() for key, value in (self.trainable.tensors() | more).items()}

    def load_state_dict(self, state: Mapping[str, np.ndarray]) -> None:
        self.trainable.load(state)
        found = state.get(THRESHOLDS)
        self._thresholds = None if found is None else torch.from_numpy(np.array(found)).to(self.device)
        self._seen = None

    def trained_embeddings(self) -> Embeddings | None:
        self._restore_kept()
        found = self.trainable.first_layer()
        return None if found is None else Embeddings(*(part.detach().cpu().numpy().copy() for part in found))

    def start_from(self, embeddings: Embeddings, known: tuple[np.ndarray, np.ndarray]) -> None:
        self._known = known
        self.trainable.set_first_layer(np.concatenate(embeddings))
        self._seen = None

    def keep_users(self, users: np.ndarray, ranked_by: np.ndarray) -> None:
        assert isinstance(self.module, SmoothedEmbeddings)
        rows = torch.from_numpy(users).to(self.device)
        self._kept = KeptUsers(users, rows, self.module.first.detach()[rows], ranked_by)

    def _restore_kept(self) -> None:
        if self._kept is not None and isinstance(self.module, SmoothedEmbeddings):
            self._kept.restore(self.module)

    def is_finite(self) -> bool:
        return self.trainable.is_finite()

    def frozen(self) -> EmbeddingScorer | TorchLearner:
        if self.scores:
            return self
        self._vectors()
        assert self._seen is not None
        users, items = (np.copy(vectors) for vectors in self._seen.embeddings())
        if self._kept is not None:
            users[self._kept.users] = self._kept.ranked_by
        if self.settings.ranks_by_cosine:
            users, items = unit_rows(users), unit_rows(items)
        cold = cold_in(self.train, self._known) if isinstance(self.module, SmoothedEmbeddings) else None
        if self.device.type == "cpu":
            return EmbeddingScorer(users, items, cold=cold)
        return EmbeddingsRankedOnGPU(users, items, self.device, self.settings.chunk, cold=cold)


def learns_one(settings: TorchSettings, sampler: NegativeSampler, loss: Loss) -> bool:
    """Whether each example has one negative and the BPR loss, for which there are special kernels."""
    plain = type(loss.form()) is PairwiseLogistic and settings.similarity == "inner"
    if not isinstance(sampler, RuleSampler):
        return plain and not sampler.gives_weights
    return plain and not sampler.is_shared and not sampler.gives_weights
