"""Choices from rows that the draws name; what all processes do for the choices of a mini-batch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from bayesneg.distributed.counting import Counting, Hidden
from bayesneg.distributed.group import ProcessGroup
from bayesneg.distributed.parts import DrawnPart, OwnPairs, Part, PartDraws
from bayesneg.distributed.scores import FetchedScores
from bayesneg.distributed.sharding.exchange import Route
from bayesneg.distributed.sharding.owners import distinct
from bayesneg.distributed.sharding.vectors import ShardedVectors
from bayesneg.interfaces import Batch, Negatives, RuleSampler
from bayesneg.kernels.reference.choices.posterior import LeastRisk, LeastRiskBySummary, MostUnbiased
from bayesneg.kernels.reference.pools import SharedPool, WeightsByList
from bayesneg.kernels.reference.selections import LeastRisks, PosteriorWeights
from bayesneg.kernels.torch.choices.base import DrawTensors
from bayesneg.models.torch.negatives import BatchNegatives


class Tools(NamedTuple):
    """What a process chooses with."""

    vectors: ShardedVectors
    pairs: OwnPairs
    counting: Counting
    source: PartDraws
    negatives: BatchNegatives

    @property
    def group(self) -> ProcessGroup:
        return self.vectors.group


class Block(NamedTuple):
    """A block of mini-batches, with all that is drawn for it before a score is computed."""

    sampler: RuleSampler
    rule: Any
    given: DrawnPart
    pool: SharedPool | None  # that all examples share

    @property
    def part(self) -> Part:
        return self.given.part

    def pairs(self, number: int) -> tuple[Tensor, Tensor]:
        """The users (b,) and positives (b,) of this process's examples of one mini-batch."""
        rows = self.part.slices[number]
        return self.given.users[rows], self.given.positives[rows]

    def drawn(self, number: int) -> DrawTensors | None:
        """What is drawn for this process's examples of one mini-batch."""
        if self.given.draws is None:
            return None
        return DrawTensors(*(tensor[self.part.slices[number]] for tensor in self.given.draws))


class Choosing:
    """Choices from rows that the draws name, so that the routes of a whole block are planned together.

    All processes call its methods together, also those without an example in a mini-batch.

    Args:
        tools: What this process chooses with.
        block: The mini-batches.
    """

    def __init__(self, tools: Tools, block: Block) -> None:
        self.tools, self.block, self.part, self.group = tools, block, block.part, tools.group
        self.hidden = self._hidden()

    def routes(self) -> Iterator[tuple[Route, Negatives | None]]:
        """The rows that each mini-batch needs, and its negatives where they are chosen before rows are fetched.

        The mini-batch before has been learned from when the next one is asked for.
        """
        wanted = [self._wanted(number) for number in range(len(self.part.slices))]
        for route in self.tools.vectors.exchange.routes(wanted):
            yield route, None

    def support(self, number: int, route: Route, scores: FetchedScores | None) -> None:
        """Do what all processes do together for the choices from fetched rows, or say how it is done.

        Args:
            number: The mini-batch.
            route: The rows that were fetched.
            scores: The scores of this process's examples; None where it has none.
        """
        self._show_draws(number)
        if self.hidden is None:
            return
        counts, hidden = self.part.counts[number].tolist(), self.hidden[number]
        if scores is not None:
            scores.counts_by(self.tools.counting, self.tools.vectors.items(), counts, hidden)
        else:
            self._join_counting(counts, hidden)

    # ------------------------------------------------------------------------------------------------- for subclasses

    def _judged_over(self) -> bool | None:
        """Whether F is counted with the users' training items; None where it is not counted over the catalogue."""
        judging = judging_rule(self.block.rule)
        if judging is None or isinstance(judging, LeastRiskBySummary):
            return None
        return judging.over.with_observed

    def _hidden(self) -> list[Hidden] | None:
        """What is not counted in each mini-batch, where something is counted over the whole catalogue."""
        over_all = self._judged_over()
        if over_all is None:
            return None
        users = [self.part.batch.users[rows] for rows in self.part.slices]
        return self.tools.counting.hidden(users, self.part.counts, None if over_all else self.tools.pairs.rows)

    def _wanted(self, number: int, *more: Tensor) -> Tensor:
        """The items that a mini-batch needs rows of, ascending; none where this process has no example in it.

        Args:
            number: The mini-batch.
            more: Further items (b, …) of each example, −1 for none.
        """
        _, positives = self.block.pairs(number)
        if not len(positives):
            return positives.int()
        drawn = self.block.drawn(number)
        of_examples = more if drawn is None else (*more, drawn.candidates)
        needed = [positives, *(instead_of_none(items, positives) for items in of_examples)]
        if self.block.pool is not None:
            needed.append(self.block.pool.items)
        return distinct(torch.cat(needed).int())

    def _show_draws(self, number: int) -> None:
        """Give the draws of a mini-batch to whoever chooses."""
        self.tools.source.drawn = self.block.drawn(number)

    def _join_counting(self, counts: list[int], hidden: Hidden) -> None:
        """Count for the others in a mini-batch without an example of this process."""
        draws, pool, vectors = self.block.given.draws, self.block.pool, self.tools.vectors
        m = draws.candidates.shape[1] if draws is not None else len(pool.items) if pool is not None else 0
        shard = vectors.items()
        nothing = shard.new_empty(0, m)
        self.tools.counting.at_most(shard[:0], nothing, nothing.long(), vectors.unit(shard), counts, hidden)


class ChoosingFirst(Choosing, ABC):
    """Negatives are chosen before rows are fetched; then those of positives and negatives are routed and learned from.

    Routes are planned for each mini-batch by itself.
    """

    def routes(self) -> Iterator[tuple[Route, Negatives | None]]:
        vectors, first = self.tools.vectors, self.tools.pairs.first
        for number in range(len(self.part.slices)):
            batch = self.part.of(number)
            self._show_draws(number)
            with torch.no_grad():
                # all processes ask for the vectors: those of a graph are made together
                users, _ = self.block.pairs(number)
                w, shard = vectors.unit(vectors.users().index_select(0, users - first)), vectors.unit(vectors.items())
                negatives = self._chosen(number, batch, w, shard)
            chosen = () if negatives is None else (negatives.items,)
            (route,) = vectors.exchange.routes([self._wanted(number, *chosen)])
            yield route, negatives

    def support(self, number: int, route: Route, scores: FetchedScores | None) -> None:
        return

    @abstractmethod
    def _chosen(self, number: int, batch: Batch, w: Tensor, shard: Tensor) -> Negatives | None:
        """The negatives of this process's examples; None where it has none.

        Args:
            number: The mini-batch.
            batch: This process's examples.
            w: The embeddings (b, d) of their users.
            shard: The embeddings of this process's items.
        """

    def _of(self, number: int, batch: Batch, scores: FetchedScores) -> Negatives:
        return self.tools.negatives.of(self.block.sampler, batch, *self.block.pairs(number), scores)


class UserScores(FetchedScores):
    """The users of a mini-batch, before rows of items are fetched.

    Args:
        w: Their embeddings (b, d), as scores are made of them.
        group: The processes.
        first_user: The number of this process's first user.
    """

    def __init__(self, w: Tensor, *, group: ProcessGroup, first_user: int) -> None:
        which = torch.arange(len(w), device=w.device)
        super().__init__(w, w[:0], which, which[:0], group=group, first_user=first_user)


def with_negative(group: ProcessGroup, block: Block) -> Tensor:
    """Examples with a negative in each mini-batch (n, 2): of this process, and of all."""
    assert block.given.sizes is not None
    own = torch.tensor([np.count_nonzero(block.given.sizes[rows]) for rows in block.part.slices])
    if group.size == 1:  # nothing waits for a GPU
        return torch.stack([own, own], dim=1)
    return torch.stack([own, group.sum(own.to(group.device, copy=True)).cpu()], dim=1)


def instead_of_none(items: Tensor, positives: Tensor) -> Tensor:
    """Items (b, …) of examples as one list, with the positive (b,) of its example for each −1."""
    return torch.where(items >= 0, items, positives.view(-1, *[1] * (items.dim() - 1))).flatten()


def judging_rule(rule: Any) -> MostUnbiased | LeastRisk | LeastRiskBySummary | None:
    """The rule that asks for F; None where none does."""
    if isinstance(rule, LeastRisks | PosteriorWeights | WeightsByList):
        rule = rule.rule
    return rule if isinstance(rule, MostUnbiased | LeastRisk | LeastRiskBySummary) else None
