"""The mini-batches of an epoch in several processes: rows are fetched, negatives chosen, gradients sent back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from bayesneg.data import lookup
from bayesneg.data.interactions import Interactions
from bayesneg.distributed.choices.base import Block, Tools, with_negative
from bayesneg.distributed.choices.kinds import choosing_by
from bayesneg.distributed.counting import Counting
from bayesneg.distributed.parts import DrawnPart, OwnPairs, PartDraws
from bayesneg.distributed.scores import FetchedScores
from bayesneg.distributed.sharding.exchange import Route
from bayesneg.distributed.sharding.owners import distinct, window
from bayesneg.distributed.sharding.vectors import Leaves, ShardedVectors
from bayesneg.interfaces import Batch, Loss, Measured, Negatives, RuleSampler, Sums
from bayesneg.kernels.torch.losses import counted
from bayesneg.models.torch.device import rows_on
from bayesneg.models.torch.negatives import BatchNegatives, check_batch_size
from bayesneg.models.torch.steps import Pending
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
        counting = Counting(self.group, vectors.item_owners, pairs.rows)
        self.tools = Tools(vectors, pairs, counting, self.source, self.negatives)
        self.every = max(1, min(MEASURED_EVERY, self.settings.batch_size // MEASURED))
        self.measured = SampledSums(self.labels, self.device)
        self.one = OneSums(self.labels)
        self.thresholds: Tensor | None = None  # of this process's users
        self._chosen: list[tuple[np.ndarray, Tensor, Tensor]] = []  # of the block
        self._before: Pending | None = None  # the choices of the block before, so that a GPU is not waited for

    def run(self, sampler: RuleSampler, blocks: Iterable[DrawnPart], loss: Loss | None) -> Measured:
        """Train on all mini-batches; with a loss they have weighted negatives, without one a single one and BPR.

        Returns:
            What was sampled, of all processes.
        """
        done = 0
        for given in blocks:
            block, part = self._block(sampler, given), given.part
            choosing = choosing_by(block.rule)(self.tools, block)
            totals = None if loss is not None or given.sizes is None else with_negative(self.group, block)
            for number, (route, chosen) in enumerate(choosing.routes()):
                pairs = block.pairs(number)
                leaves, users = self._leaves(pairs[0], route)
                scores, there = self._scores(route, leaves, users[1]), len(leaves.users) > 0
                choosing.support(number, route, scores if there else None)
                share: Tensor | float = 0.0
                if there:
                    batch = part.of(number)
                    negatives = self._negatives(block, batch, pairs, scores) if chosen is None else chosen
                    share = self._learn(batch, pairs, scores, negatives, loss, measured=done % self.every == 0)
                else:
                    self.negatives.join(block.rule, part.batch.epoch, scores)
                if totals is not None:
                    own, whole = totals[number].tolist()
                    share = own / max(whole, 1)
                else:
                    share = self._share_of_all(share)
                self.vectors.step(leaves, users[0], route, share)
                done += 1
            self._measure_chosen()
        self._measure_before()
        self.negatives.store()
        return self._of_all(loss is not None)

    def _block(self, sampler: RuleSampler, given: DrawnPart) -> Block:
        """A block with its rule, and with the pool that its examples share."""
        rule = sampler.rule(given.part.batch)  # all processes refresh their summaries together
        if not sampler.is_shared:
            return Block(sampler, rule, given, None)
        check_batch_size(sampler, given.part.batch, self.settings.batch_size)
        return Block(sampler, rule, given, self.source.pool(sampler, given.part.of(0), torch.empty(0)))

    # ------------------------------------------------------------------------------------------------------- one batch

    def _leaves(self, own: Tensor, route: Route) -> tuple[Leaves, tuple[Tensor, Tensor]]:
        """The rows of a mini-batch; its users within this process, each once, and the place of each example's."""
        within = (own - self.pairs.first).int()
        users = distinct(within)
        which = torch.searchsorted(users, within)
        return self.vectors.leaves(users.long(), route), (users.long(), which)

    def _scores(self, route: Route, leaves: Leaves, which: Tensor) -> FetchedScores:
        return FetchedScores(
            leaves.users, leaves.items, which, route.ids,
            group=self.group,
            first_user=self.pairs.first,
            cosine=self.settings.similarity == "cosine",
            ensemble_size=self.settings.ensemble_size,
            first_layer=leaves.first_layer,
        )  # fmt: skip

    def _negatives(self, block: Block, batch: Batch, pairs: tuple[Tensor, Tensor], scores: FetchedScores) -> Negatives:
        with torch.no_grad():
            return self.negatives.of(block.sampler, batch, *pairs, scores, block.pool)

    def _learn(
        self,
        batch: Batch,
        pairs: tuple[Tensor, Tensor],
        scores: FetchedScores,
        negatives: Negatives,
        loss: Loss | None,
        *,
        measured: bool,
    ) -> Tensor | float:
        """Accumulate gradients; how many examples count."""
        users, positives = pairs
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

    # -------------------------------------------------------------------------------------------------------- measures

    def _measure_chosen(self) -> None:
        """Begin to copy the single negatives of a block, and measure those of the block before."""
        if not self._chosen:
            return
        users, chosen, infos = zip(*self._chosen, strict=True)
        pending = Pending.of(np.concatenate(users), torch.cat(chosen), torch.cat(infos))
        self._chosen.clear()
        self._measure_before()
        self._before = pending

    def _measure_before(self) -> None:
        if self._before is not None:
            self.one.add(*self._before.sampled()[:3])
        self._before = None

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
