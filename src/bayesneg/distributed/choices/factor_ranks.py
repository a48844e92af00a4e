"""AOBPR by the ranks of factors: the list of a factor, all items sorted by it, is with one process.

Processes have ranges of factors. To sort, each sends every owner the columns of its items; a look-up asks the owner of
the factor. Sorting follows the choices of all processes together, in their order in the mini-batch.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from bayesneg.distributed.choices.base import Block, ChoosingFirst, Tools, UserScores, with_negative
from bayesneg.distributed.group import ProcessGroup
from bayesneg.distributed.sharding.owners import Owners
from bayesneg.interfaces import Batch, Negatives, Share
from bayesneg.kernels.torch.choices.aobpr import TorchAtFactorRank, drawn_ranks
from bayesneg.kernels.torch.choices.base import DrawTensors, FactorRanksInParts, TorchChoice
from bayesneg.kernels.torch.score_lists import TrainingRows, contains
from bayesneg.kernels.torch.selections import TorchOne
from bayesneg.models.torch.negatives import on_device

AHEAD = 64  # places of a list that are looked up at once after the last rejection


class FactorRanks:
    """The lists of all factors, each with its owner.

    Args:
        group: The processes.
        items: Which of them has which items.
        factors: Which of them has the lists of which factors.
    """

    def __init__(self, group: ProcessGroup, items: Owners, factors: Owners) -> None:
        self.group, self.items, self.factors = group, items, factors
        self.first, self.last = factors.range_of(group.rank)
        self.n_items = int(items.bounds[-1])

    def sort(self, choice: TorchAtFactorRank, shard: Tensor) -> None:
        """Sort all items by each factor, from the embeddings of this process's items (n, d)."""
        widths, own = np.diff(self.items.bounds), self.last - self.first
        to, of = np.diff(self.factors.bounds) * len(shard), widths * own
        sent = shard.T.contiguous().flatten()
        got = self.group.exchange(sent, to.tolist(), of.tolist(), "factors")
        begins = np.cumsum(of) - of
        parts = [got[begin : begin + own * n].view(own, n) for begin, n in zip(begins, widths.tolist(), strict=True)]
        spreads = torch.zeros(own, dtype=torch.float64, device=shard.device)
        for factor, column in enumerate(torch.cat(parts, dim=1)):
            choice.orders[factor] = (-column).argsort(stable=True).int()
            spreads[factor] = column.double().std(correction=0)
        choice.spreads.copy_(self.group.gather(spreads, np.diff(self.factors.bounds).tolist(), "factors"))

    def looked_up(self, orders: Tensor, factors: Tensor, places: Tensor) -> Tensor:
        """The items at places of the factors' lists, asked of their owners; both tensors have one shape."""
        device, size = factors.device, self.group.size
        bounds = torch.from_numpy(self.factors.bounds[1:-1]).to(device)
        owner = torch.searchsorted(bounds, factors.flatten().contiguous(), right=True)
        order = owner.argsort(stable=True)
        counts = torch.bincount(owner, minlength=size)
        to, of = torch.stack([counts, self.group.exchanged_counts(counts)]).tolist()
        asked = torch.stack([factors.flatten(), places.flatten()], dim=1)[order].int()
        got = self.group.exchange(asked, to, of, "ranks").long()
        answers = self.group.exchange(orders[got[:, 0] - self.first, got[:, 1]], of, to, "ranks")
        return torch.empty_like(order).index_copy_(0, order, answers.long()).view_as(factors)

    def choose(
        self, choice: TorchAtFactorRank, w: Tensor, draws: DrawTensors, users: Tensor, rows: TrainingRows
    ) -> Tensor:
        """The item (b,) at a drawn rank of a drawn factor's list; the first of eight draws that is unobserved."""
        ranks, factors, rising = drawn_ranks(w, choice.rule.scale, choice.spreads, self.n_items, draws.uniforms)

        def items_at(which: Tensor, factor: Tensor, up: Tensor) -> Tensor:
            return self.looked_up(choice.orders, factor, torch.where(up, which, self.n_items - 1 - which))

        items = items_at(ranks, factors, rising)
        free = ~contains(rows, users, items)
        chosen = items.gather(1, free.long().argmax(dim=1, keepdim=True))[:, 0]
        waiting = ~free.any(dim=1) & (draws.sizes > 0)
        rank, ahead = ranks[:, -1:], torch.arange(1, AHEAD + 1, device=w.device)
        while int(self.group.sum(waiting.sum())):
            which = waiting.nonzero()[:, 0]
            further = (rank[which] + ahead) % self.n_items
            factor, up = (part[which, -1:].expand_as(further) for part in (factors, rising))
            items = items_at(further, factor, up)
            free = ~contains(rows, users[which], items)
            chosen[which] = items.gather(1, free.long().argmax(dim=1, keepdim=True))[:, 0]
            waiting[which] = ~free.any(dim=1)
            rank = rank + AHEAD
        return chosen


class ByFactorRank(UserScores, FactorRanksInParts):
    """The users of a mini-batch, for whom lists of factors are looked up.

    Args:
        lists: The lists.
        w: The embeddings (b, d) of the users.
        shard: The embeddings of this process's items.
        share: Where this process's examples stand in the mini-batch.
        n_choices: The choices of all processes in the mini-batch.
        first_user: The number of this process's first user.
    """

    def __init__(
        self, lists: FactorRanks, w: Tensor, shard: Tensor, share: Share, n_choices: int, *, first_user: int
    ) -> None:
        super().__init__(w, group=lists.group, first_user=first_user)
        self.lists, self.shard, self.share, self.n_choices = lists, shard, share, n_choices

    def at_factor_ranks(self, choice: TorchChoice, draws: DrawTensors, users: Tensor, rows: TrainingRows) -> Tensor:
        """Lists are sorted before the choice that a whole number of periods precede."""
        assert isinstance(choice, TorchAtFactorRank)
        given = self.user_vectors(), draws, users, rows
        clock, period = choice.rule.clock, choice.rule.period
        before = int(-clock[0] % period)  # choices that read the lists as they are
        clock[0] += self.n_choices
        if before >= self.n_choices:
            return self.lists.choose(choice, *given)
        earlier = self.lists.choose(choice, *given) if before else None
        self.lists.sort(choice, self.shard)
        found = self.lists.choose(choice, *given)
        return found if earlier is None else torch.where(self._made(draws) < before, earlier, found)

    def _made(self, draws: DrawTensors) -> Tensor:
        """The choices (b,) of the mini-batch before each of this process's."""
        places = on_device(self.share.places, torch.int64, draws.sizes.device)
        made = torch.zeros(self.share.total, dtype=torch.int32, device=draws.sizes.device)
        made[places] = (draws.sizes > 0).int()
        whole = self.lists.group.sum(made)
        return (whole.cumsum(0) - whole)[places]


class ChoosingAtFactorRanks(ChoosingFirst):
    """AOBPR by the ranks of factors."""

    def __init__(self, tools: Tools, block: Block) -> None:
        super().__init__(tools, block)
        self.n_choices = with_negative(self.group, block)[:, 1].tolist()
        self.lists = FactorRanks(self.group, tools.vectors.item_owners, tools.vectors.factor_owners)

    def _chosen(self, number: int, batch: Batch, w: Tensor, shard: Tensor) -> Negatives | None:
        assert batch.share is not None
        first_user = self.tools.pairs.first
        scores = ByFactorRank(self.lists, w, shard, batch.share, self.n_choices[number], first_user=first_user)
        selection = self.tools.negatives.begin(self.block.rule, batch.epoch)
        assert isinstance(selection, TorchOne)
        if len(w):
            return self._of(number, batch, scores)
        users = torch.empty(0, dtype=torch.int64, device=w.device)
        draws = self.tools.source.draws(self.block.sampler, batch, users, users)
        scores.at_factor_ranks(selection.choice, draws, users, self.tools.negatives.rows)
        return None
