"""The item at a given rank of a user's score list, over a catalogue of which each process has a part.

The embeddings of the batch's users and their ranks are gathered. Each process scores its items, without the users'
training items, and keeps the highest as whole numbers that ascend with the score and, among equal scores, with a lower
item number: the order of the specification. The number at the rank is then found a few bits at a time: every process
counts its numbers above each possible continuation, and the counts are summed over all. Its last bits are the item.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from bayesneg.distributed.choices.base import ChoosingFirst, UserScores
from bayesneg.distributed.counting import Hidden
from bayesneg.distributed.group import ProcessGroup
from bayesneg.distributed.sharding.owners import Owners
from bayesneg.interfaces import Batch, Negatives
from bayesneg.kernels.numba.distributed import counts as compiled
from bayesneg.kernels.torch.choices.base import ScoreRanksInParts
from bayesneg.models.torch.negatives import on_device

KEYS = 1 << 23  # held at once
DIGIT = 4  # bits that are found in one round
SCORE_BITS = 32


class ScoreRanks:
    """Items by their ranks, over the items of all processes.

    Args:
        group: The processes.
        owners: Which of them has which items.
    """

    def __init__(self, group: ProcessGroup, owners: Owners) -> None:
        self.group, self.first = group, owners.range_of(group.rank)[0]
        self.largest = int(np.diff(owners.bounds).max())  # number of items of a process
        self.item_bits = max(1, int(owners.bounds[-1] - 1).bit_length())

    def at(self, w: Tensor, ranks: Tensor, shard: Tensor, counts: Sequence[int], hidden: Hidden) -> Tensor:
        """The item (b,) at each rank, for this process's users of a mini-batch.

        Args:
            w: Their embeddings (b, d).
            ranks: A rank (b,) for each; any item is found for a user without items.
            shard: The embeddings of this process's items.
            counts: How many users each process has in the mini-batch.
            hidden: The items of this process that are in no list, for the users of all.
        """
        everybody = self.group.gather(w, counts, "users and scores")
        theirs = self.group.gather(ranks.int(), counts, "ranks").long()
        tiles = compiled.tiled_rows(shard.numpy()) if shard.device.type == "cpu" else None
        width = min(int(theirs.max()) + 1, self.largest)
        found, at_once = [], max(1, KEYS // width)
        for first in range(0, len(theirs), at_once):
            part = slice(first, min(first + at_once, len(theirs)))
            found.append(self._searched(self._highest(everybody, part, shard, tiles, hidden, width), theirs[part]))
        own = sum(counts[: self.group.rank])
        return torch.cat(found)[own : own + len(w)]

    def _searched(self, highest: Tensor, ranks: Tensor) -> Tensor:
        """The item at each rank (b,), from this process's highest keys (b, k), ascending."""
        found, left = torch.zeros_like(ranks), SCORE_BITS + self.item_bits
        while left:
            bits = min(DIGIT, left)
            left -= bits
            digits = torch.arange(1, 1 << bits, device=ranks.device) << left
            reached = highest.shape[1] - torch.searchsorted(highest, found[:, None] + digits)
            total = self.group.sum(reached.int(), "counts of ranks")
            found = found + ((total > ranks[:, None]).sum(dim=1) << left)
        mask = (1 << self.item_bits) - 1
        return mask - (found & mask)

    def _highest(
        self, w: Tensor, part: slice, shard: Tensor, tiles: np.ndarray | None, hidden: Hidden, width: int
    ) -> Tensor:
        """The ``width`` highest keys of this process's items for some users, ascending."""
        at_once, found = max(1, KEYS // len(shard)), []
        for first in range(part.start, part.stop, at_once):
            last = min(first + at_once, part.stop)
            starts = hidden.starts[first : last + 1]
            if tiles is None:
                x = _without(w[first:last] @ shard.T, starts, hidden.rows)
            else:
                users = w[first:last].contiguous().numpy()
                x = torch.from_numpy(compiled.scores_of_shard(users, tiles, len(shard), starts, hidden.rows))
            found.append(self._keys(x).topk(min(width, len(shard)), dim=1).values.flip(1))
        return torch.cat(found)

    def _keys(self, x: Tensor) -> Tensor:
        """Whole numbers that have the order of the scores (b, n), then of the items downwards; −1 for NaN."""
        bits = (x + 0.0).view(torch.int32).long()  # 0 and −0 are equal
        ascending = torch.where(bits >= 0, bits + (1 << SCORE_BITS - 1), -1 - bits)
        last = (1 << self.item_bits) - 1
        items = torch.arange(self.first, self.first + x.shape[1], device=x.device)
        return torch.where(x.isnan(), -1, (ascending << self.item_bits) + (last - items))


def _without(x: Tensor, starts: np.ndarray, rows: np.ndarray) -> Tensor:
    """Scores with NaN for hidden rows, in place."""
    lengths = np.diff(starts)
    examples = np.repeat(np.arange(len(lengths)), lengths) * x.shape[1]
    flat = on_device(examples + rows[starts[0] : starts[-1]], torch.int64, x.device)
    return x.view(-1).index_fill_(0, flat, float("nan")).view_as(x)


class ByScoreRank(UserScores, ScoreRanksInParts):
    """The users of a mini-batch, whose lists are looked up by rank.

    Args:
        lists: Where they are looked up.
        w: The embeddings (b, d) of the users.
        shard: The embeddings of this process's items.
        counts: How many users each process has in the mini-batch.
        hidden: The items of this process that are in no list.
        first_user: The number of this process's first user.
    """

    def __init__(
        self, lists: ScoreRanks, w: Tensor, shard: Tensor, counts: Sequence[int], hidden: Hidden, *, first_user: int
    ) -> None:
        super().__init__(w, group=lists.group, first_user=first_user)
        self.lists, self.more = lists, (shard, counts, hidden)

    def at_score_ranks(self, ranks: Tensor) -> Tensor:
        return self.lists.at(self.user_vectors(), ranks, *self.more)


class ChoosingAtScoreRanks(ChoosingFirst):
    """AOBPR by the ranks of score lists."""

    def _judged_over(self) -> bool:
        return False  # a user's training items are in no list

    def _chosen(self, number: int, batch: Batch, w: Tensor, shard: Tensor) -> Negatives | None:
        assert self.hidden is not None
        lists = ScoreRanks(self.group, self.tools.vectors.item_owners)
        counts, hidden = self.part.counts[number].tolist(), self.hidden[number]
        if not len(w):
            lists.at(w, w.new_empty(0).long(), shard, counts, hidden)
            return None
        return self._of(number, batch, ByScoreRank(lists, w, shard, counts, hidden, first_user=self.tools.pairs.first))
