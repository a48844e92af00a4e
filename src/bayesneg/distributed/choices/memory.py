"""SRNS in parts: the memory of this process's users, past embeddings of items fetched from their owners."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from bayesneg.distributed.choices.base import Block, Choosing, Tools, instead_of_none
from bayesneg.distributed.scores import FetchedScores
from bayesneg.distributed.sharding.exchange import Route
from bayesneg.distributed.sharding.owners import distinct
from bayesneg.interfaces import Negatives
from bayesneg.kernels.torch.choices.srns import TorchFromMemory
from bayesneg.kernels.torch.selections import TorchOne


class ChoosingFromMemory(Choosing):
    """Choices from the memory of each user, which changes with every mini-batch.

    Which rows a mini-batch needs is known when the one before is done. Those of positives and memory are fetched with
    the embeddings of past epoch ends, and their gradients are sent back; those of items that may enter the memory are
    fetched for their scores alone.
    """

    def __init__(self, tools: Tools, block: Block) -> None:
        super().__init__(tools, block)
        self._fresh: Route | None = None  # of the current mini-batch

    def routes(self) -> Iterator[tuple[Route, Negatives | None]]:
        for number in range(len(self.part.slices)):
            wanted = self._kept_and_fresh(number)
            route, self._fresh = self.tools.vectors.exchange.routes(wanted)
            yield route, None

    def support(self, number: int, route: Route, scores: FetchedScores | None) -> None:
        self._show_draws(number)
        assert self._fresh is not None
        exchange, n_past = self.tools.vectors.exchange, self.block.rule.n_past
        fresh = exchange.fetch(self.tools.vectors.items(), self._fresh)
        if scores is not None:
            scores.scores_also(self._fresh.ids, fresh)
        if n_past:
            asked = self._choice().past_items[:n_past].index_select(1, route.rows)  # (t, g, d)
            sent = asked.transpose(0, 1).contiguous()
            found = self.group.exchange(sent, route.given, route.asked, "past rows").transpose(0, 1)  # (t, k, d)
            if scores is not None:
                scores.past = found

    def _kept_and_fresh(self, number: int) -> tuple[Tensor, Tensor]:
        """The positives and the memory of a mini-batch, and other items that were drawn; each ascending."""
        (users, positives), drawn = self.block.pairs(number), self.block.drawn(number)
        if not len(users):
            return positives.int(), positives.int()
        assert drawn is not None
        memory = self._choice().memory[users - self.tools.pairs.first]
        kept = distinct(torch.cat([positives, instead_of_none(memory, positives)]).int())
        fresh = distinct(instead_of_none(drawn.candidates, positives).int())
        return kept, fresh[torch.isin(fresh, kept, assume_unique=True, invert=True)]

    def _choice(self) -> TorchFromMemory:
        """Where the memory and the past embeddings are; also in a process that has not yet had an example."""
        selection = self.tools.negatives.begin(self.block.rule, self.part.batch.epoch)
        assert isinstance(selection, TorchOne)
        assert isinstance(selection.choice, TorchFromMemory)
        return selection.choice
