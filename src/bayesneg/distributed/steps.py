"""The mini-batches of an epoch in several processes: rows are fetched, negatives chosen, gradients sent back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from bayesneg.data import lookup
from bayesneg.data.interactions import Interactions
from bayesneg.distributed.counting import Counting, Hidden
from bayesneg.distributed.parts import OwnPairs, Part, PartDraws
from bayesneg.distributed.scores import FetchedScores
from bayesneg.distributed.sharding.exchange import Route
from bayesneg.distributed.sharding.owners import distinct, window
from bayesneg.distributed.sharding.vectors import Leaves, ShardedVectors
from bayesneg.interfaces import Batch, Loss, Measured, RuleSampler, Sums
from bayesneg.kernels.reference.choices.base import Draws
from bayesneg.kernels.reference.choices.posterior import LeastRisk, LeastRiskBySummary, MostUnbiased
from bayesneg.kernels.reference.pools import SharedPool, WeightsByList
from bayesneg.kernels.reference.selections import LeastRisks, PosteriorWeights
from bayesneg.kernels.torch.losses import counted
from bayesneg.models.torch.device import rows_on
from bayesneg.models.torch.negatives import BatchNegatives, check_batch_size, on_device
from bayesneg.models.torch.trainable import backpropagate
from bayesneg.models.torch.weighted import MEASURED, MEASURED_EVERY, SampledSums


class DistributedSteps:
    """The steps of this process, epoch after epoch.

    Args:
        vectors: The embeddings.
        pairs: The training pairs of this process's users.
        labels: Known false negatives, by the name of the measure.
    """

    def __init__(self, vectors: ShardedVectors, pairs: OwnPairs, labels: Mapping[str, Interactions]) -> None:
        self.vectors, self.pairs, self.group = vectors, pairs, vectors.group
        self.settings, self.device = vectors.settings, vectors.group.device
        self.labels = {name: window(data, pairs.first, pairs.last) for name, data in labels.items()}
        self.source = PartDraws(self.group)
        rows = rows_on(pairs.rows, self.device)
        self.negatives = BatchNegatives(pairs.rows, rows, self.source, scores_at_once=self.settings.chunk)
        self.counting = Counting(self.group, vectors.item_owners, pairs.rows)
        self.every = max(1, min(MEASURED_EVERY, self.settings.batch_size // MEASURED))
        self.measured = SampledSums(self.labels, self.device)
        self.one = OneSums(self.labels)
        self.thresholds: Tensor | None = None  # of this process's users
        self._chosen: list[tuple[np.ndarray, Tensor, Tensor]] = []  # of the block, so that a GPU is waited for once

    def run(self, sampler: RuleSampler, blocks: Iterable[Part], loss: Loss | None) -> Measured:
        """Train on all mini-batches; with a loss they have weighted negatives, without one a single one and BPR.

        Returns:
            What was sampled, of all processes.
        """
        done = 0
        for part in blocks:
            rule = sampler.rule(part.batch)  # all processes refresh their summaries together
            pool, draws = None, None
            if sampler.is_shared:
                check_batch_size(sampler, part.batch, self.settings.batch_size)
                pool = self.source.pool(sampler, part.of(0), torch.empty(0))
            else:
                draws = sampler.draws(part.batch)
            routes = self.vectors.exchange.routes(self._wanted(part, draws, pool))
            hidden = self._hidden(part, rule)
            totals = None if loss is not None or draws is None else self._with_negative(part, draws)
            for number, route in enumerate(routes):
                shown = None if hidden is None else hidden[number]
                leaves, users = self._leaves(part, number, route)
                if draws is not None:
                    self.source.drawn = Draws(*(array[part.slices[number]] for array in draws))
                share: Tensor | float = 0.0
                scores = self._scores(part, number, route, leaves, users[1])
                if len(leaves.users):
                    if shown is not None:
                        scores.counts_by(self.counting, self.vectors.items(), part.counts[number].tolist(), shown)
                    share = self._learn(sampler, part.of(number), scores, loss, pool, measured=done % self.every == 0)
                else:
                    if shown is not None:
                        self._join_counting(part, number, shown, draws, pool)
                    self.negatives.join(rule, part.batch.epoch, scores)
                if totals is not None:
                    own, whole = totals[number].tolist()
                    share = own / max(whole, 1)
                else:
                    share = self._share_of_all(share)
                self.vectors.step(leaves, users[0], route, share)
                done += 1
            self._measure_chosen()
        self.negatives.store()
        return self._of_all(loss is not None)

    # --------------------------------------------------------------------------------------------- planning of a block

    def _wanted(self, part: Part, draws: Draws | None, pool: SharedPool | None) -> list[np.ndarray]:
        """The items that each mini-batch needs rows of, ascending; none where this process has no example in it."""
        found = []
        pool_items = None if pool is None else pool.items.cpu().numpy()
        for rows in part.slices:
            needed = [part.batch.positives[rows]]
            if draws is not None:
                drawn = draws.candidates[rows]
                needed.append(drawn[drawn >= 0])
            if pool_items is not None:
                needed.append(pool_items)
            found.append(distinct(np.concatenate(needed)) if len(needed[0]) else np.empty(0, dtype=np.int32))
        return found

    def _hidden(self, part: Part, rule: Any) -> list[Hidden] | None:
        """What is not counted, where F is counted over the whole catalogue."""
        judging = judging_rule(rule)
        if judging is None or isinstance(judging, LeastRiskBySummary):
            return None
        users = [part.batch.users[rows] for rows in part.slices]
        return self.counting.hidden(users, part.counts, None if judging.over.with_observed else self.pairs.rows)

    def _with_negative(self, part: Part, draws: Draws) -> Tensor:
        """Examples with a negative in each mini-batch (n, 2): of this process, and of all."""
        own = torch.tensor([np.count_nonzero(draws.sizes[rows]) for rows in part.slices], device=self.device)
        return torch.stack([own, self.group.sum(own.clone())], dim=1).cpu()

    # ------------------------------------------------------------------------------------------------------- one batch

    def _leaves(self, part: Part, number: int, route: Route) -> tuple[Leaves, tuple[Tensor, Tensor]]:
        """The rows of a mini-batch; its users within this process, each once, and the place of each example's."""
        own = part.batch.users[part.slices[number]]
        ids = distinct(own)
        which = np.searchsorted(ids, own)
        users = on_device(ids - self.pairs.first, torch.int64, self.device)
        return self.vectors.leaves(users, route), (users, on_device(which, torch.int64, self.device))

    def _scores(self, part: Part, number: int, route: Route, leaves: Leaves, which: Tensor) -> FetchedScores:
        return FetchedScores(
            leaves.users, leaves.items, which, route.ids,
            group=self.group,
            first_user=self.pairs.first,
            cosine=self.settings.similarity == "cosine",
            ensemble_size=self.settings.ensemble_size,
            first_layer=leaves.first_layer,
        )  # fmt: skip

    def _learn(
        self,
        sampler: RuleSampler,
        batch: Batch,
        scores: FetchedScores,
        loss: Loss | None,
        pool: SharedPool | None,
        *,
        measured: bool,
    ) -> Tensor | float:
        """Choose negatives and accumulate gradients; how many examples count."""
        users, positives = (on_device(part, torch.int64, self.device) for part in (batch.users, batch.positives))
        with torch.no_grad():
            negatives = self.negatives.of(sampler, batch, users, positives, scores, pool)
        strength = 0.0 if self.settings.penalty == "weight_decay" else self.settings.strength
        if loss is None:
            chosen = negatives.items[:, 0]
            infos = scores.backward(positives, chosen, strength)
            self._chosen.append((batch.users, chosen, infos))
            return 0.0
        more: dict[str, Any] = {}
        if self.thresholds is not None:
            more["threshold"] = self.thresholds[users - self.pairs.first]
        given, values = backpropagate(scores, positives, negatives, loss, strength, **more)
        self.measured.count(given)
        if measured:
            assert batch.share is not None
            self.measured.examples = int(np.searchsorted(batch.share.places, MEASURED * self.every))
            self.measured.add(users, negatives, given, values)
        return counted(given.weights).sum()

    def _share_of_all(self, own: Tensor | float) -> Tensor:
        """The share of this process in the examples that count."""
        n = torch.as_tensor(own, dtype=torch.float32, device=self.device)
        return n / self.group.sum(n.clone()).clamp(min=1)

    def _join_counting(
        self, part: Part, number: int, hidden: Hidden, draws: Draws | None, pool: SharedPool | None
    ) -> None:
        """Count for the others in a mini-batch without an example of this process."""
        m = draws.candidates.shape[1] if draws is not None else len(pool.items) if pool is not None else 0
        shard = self.vectors.items()
        nothing = shard.new_empty(0, m)
        scores = self.vectors.unit(shard)
        self.counting.at_most(shard[:0], nothing, nothing.long(), scores, part.counts[number].tolist(), hidden)

    # -------------------------------------------------------------------------------------------------------- measures

    def _measure_chosen(self) -> None:
        """Measure the single negatives of a block."""
        if not self._chosen:
            return
        users, chosen, infos = zip(*self._chosen, strict=True)
        self.one.add(np.concatenate(users), torch.cat(chosen).cpu().numpy(), torch.cat(infos).cpu().numpy())
        self._chosen.clear()

    def _of_all(self, weighted: bool) -> Measured:
        """What was sampled in the epoch, summed over all processes."""
        own = self.measured.fetched() if weighted else self.one.fetched()
        numbers = [own.examples, own.skipped, *own.all, *(x for sums in own.false.values() for x in sums)]
        total = torch.tensor(numbers, dtype=torch.float64, device=self.device)
        examples, skipped, *rest = self.group.sum(total).tolist()
        sums = [Sums(*rest[first : first + 3]) for first in range(0, len(rest), 3)]
        return Measured(int(examples), int(skipped), sums[0], dict(zip(own.false, sums[1:], strict=True)))


class OneSums:
    """What was sampled where each example has one negative and the BPR loss.

    Args:
        labels: Known false negatives, by the name of the measure.
    """

    def __init__(self, labels: Mapping[str, Interactions]) -> None:
        self.labels = labels
        self.counts = np.zeros(2, dtype=np.int64)  # examples, skipped
        self.sums = np.zeros((1 + len(labels), 3))

    def add(self, users: np.ndarray, negatives: np.ndarray, infos: np.ndarray) -> None:
        """Add the examples of a mini-batch, −1 without a negative."""
        there = negatives >= 0
        self.counts += np.count_nonzero(there), np.count_nonzero(~there)
        users, negatives, infos = users[there].astype(np.int64), negatives[there], infos[there].astype(np.float64)
        self.sums[0] += len(users), infos.sum(), infos.sum()
        for place, data in enumerate(self.labels.values(), start=1):
            false = infos[lookup.contains(data.indptr, data.indices, users, negatives.astype(np.int64))]
            self.sums[place] += len(false), false.sum(), false.sum()

    def fetched(self) -> Measured:
        """The sums, which begin again."""
        sums = [Sums(*row) for row in self.sums.tolist()]
        examples, skipped = self.counts.tolist()
        self.counts[:], self.sums[:] = 0, 0.0
        return Measured(examples, skipped, sums[0], dict(zip(self.labels, sums[1:], strict=True)))


def judging_rule(rule: Any) -> MostUnbiased | LeastRisk | LeastRiskBySummary | None:
    """The rule that asks for F; None where none does."""
    if isinstance(rule, LeastRisks | PosteriorWeights | WeightsByList):
        rule = rule.rule
    return rule if isinstance(rule, MostUnbiased | LeastRisk | LeastRiskBySummary) else None
