"""The exact score CDF over a sharded catalogue: every process counts its items for the users of all processes.

The embeddings of the batch's users are gathered with the scores to compare with; each process counts the scores of its
items that are at most as high; the counts, whole numbers, go back to the users' owners and are added. A user's training
items are left out: their numbers are sent to the owners of the items, for a block of mini-batches at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from bayesneg.data.interactions import Interactions
from bayesneg.distributed.group import ProcessGroup
from bayesneg.distributed.sharding.owners import Owners
from bayesneg.kernels.numba.distributed import counts as compiled
from bayesneg.kernels.torch.score_lists import ObservedPairs, count_at_most, hide, score_chunks

SCORES = 1 << 24  # held at once on a GPU


class Hidden(NamedTuple):
    """The items of this process that are not counted, for the users of a mini-batch of all processes."""

    starts: np.ndarray  # (B + 1,) int64
    rows: np.ndarray  # numbers within the shard, ascending for each user


class Counting:
    """Counts over the items of all processes.

    Args:
        group: The processes.
        owners: Which of them has which items.
        train: The training pairs of this process's users.
    """

    def __init__(self, group: ProcessGroup, owners: Owners, train: Interactions) -> None:
        self.group, self.owners, self.train = group, owners, train
        self.first = owners.range_of(group.rank)[0]

    def hidden(self, users: Sequence[np.ndarray], counts: np.ndarray, rows: Interactions | None) -> list[Hidden]:
        """What is not counted, for several mini-batches, planned together.

        Args:
            users: This process's users (b,) of each mini-batch.
            counts: How many users each process has in each mini-batch, (n, size).
            rows: The pairs whose items are left out; None to count every item.
        """
        size, n_batches = self.group.size, len(users)
        if rows is None:
            empty = np.empty(0, dtype=np.int64)
            return [Hidden(np.zeros(int(total) + 1, dtype=np.int64), empty) for total in counts.sum(axis=1)]
        own = np.concatenate([*users, np.empty(0, dtype=np.int32)])
        lengths, items = rows_of(rows, own)
        row = np.repeat(np.arange(len(own)), lengths)
        owner = np.searchsorted(self.owners.bounds[1:-1], items, side="right")
        per_owner = np.zeros((size, len(own)), dtype=np.int32)
        np.add.at(per_owner, (owner, row), 1)
        order = np.argsort(owner, kind="stable")
        of_examples = counts.sum(axis=0)  # examples of each process in the block
        device, to_all = self.group.device, [len(own)] * size
        got_lengths = (
            self.group.exchange(
                torch.from_numpy(per_owner.reshape(-1)).to(device), to_all, of_examples.tolist(), "hidden"
            )
            .cpu()
            .numpy()
        )
        bounds = np.concatenate(([0], np.cumsum(of_examples)))
        of = [int(got_lengths[bounds[r] : bounds[r + 1]].sum()) for r in range(size)]
        sent = torch.from_numpy(items[order].astype(np.int32)).to(device)
        got = self.group.exchange(sent, per_owner.sum(axis=1).tolist(), of, "hidden").cpu().numpy()
        return self._by_batch(got_lengths, got.astype(np.int64) - self.first, bounds, counts, n_batches)

    def _by_batch(
        self, lengths: np.ndarray, rows: np.ndarray, bounds: np.ndarray, counts: np.ndarray, n_batches: int
    ) -> list[Hidden]:
        """What came from each process, mini-batch by mini-batch."""
        ends = np.concatenate(([0], np.cumsum(lengths)))
        place, found = bounds[:-1].copy(), []
        for batch in range(n_batches):
            parts = [slice(place[r], place[r] + counts[batch, r]) for r in range(self.group.size)]
            place = place + counts[batch]
            each = np.concatenate([lengths[part] for part in parts])
            chosen = np.concatenate([rows[ends[part.start] : ends[part.stop]] for part in parts])
            found.append(Hidden(np.concatenate(([0], np.cumsum(each))), chosen))
        return found

    def at_most(
        self, w: Tensor, x: Tensor, items: Tensor, shard: Tensor, counts: Sequence[int], hidden: Hidden
    ) -> Tensor:
        """#{scores ≤ x_l} (b, m) int64 over the whole catalogue, for this process's users of a mini-batch.

        Args:
            w: Their embeddings (b, d).
            x: Scores (b, m) of some items.
            items: The items (b, m) that have these scores; each counts itself.
            shard: The embeddings of this process's items.
            counts: How many users each process has in the mini-batch.
            hidden: What is not counted here.
        """
        d, m = shard.shape[1], x.shape[1]
        gathered = self.group.gather(torch.cat([w, x], dim=1), counts, "users and scores")
        if w.device.type == "cpu":
            everybody, theirs = gathered[:, :d].contiguous().numpy(), gathered[:, d:].contiguous().numpy()
            tiles = compiled.tiled_rows(shard.numpy())
            found = torch.from_numpy(
                compiled.counts_at_most(everybody, tiles, len(shard), hidden.starts, hidden.rows, theirs)
            )
        else:
            which = self.group.gather(items.int(), counts, "candidates").long() - self.first
            found = _counted_by_torch(gathered[:, :d], gathered[:, d:], which, shard, hidden).int()
        each = self.group.exchange(found, list(counts), [len(w)] * self.group.size, "counts of F")
        return each.view(self.group.size, len(w), m).sum(dim=0)


def _counted_by_torch(w: Tensor, x: Tensor, items: Tensor, shard: Tensor, hidden: Hidden) -> Tensor:
    """The counts of this process's items, by matrix products; an item counts itself whatever the rounding."""
    n_items, device = len(shard), w.device
    lengths = np.diff(hidden.starts)
    examples = torch.from_numpy(np.repeat(np.arange(len(lengths), dtype=np.int32), lengths)).to(device)
    rows = torch.from_numpy(hidden.rows.astype(np.int32)).to(device)
    pairs = ObservedPairs(examples, rows, torch.tensor(len(rows), device=device))
    chunk = max(1, SCORES // max(1, len(w) * x.shape[1]))
    found = torch.zeros_like(items)
    for first, block in score_chunks(lambda low, high: w @ shard[low:high].T, n_items, chunk):
        inside = (items >= first) & (items < first + block.shape[1])
        own = block.gather(1, (items - first).clamp(0, block.shape[1] - 1))
        found += (inside & ~(own <= x)).long() + count_at_most(hide(block, pairs, first), x)
    return found


def rows_of(data: Interactions, users: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The lengths (B,) of the users' rows, and their items, one row after the other."""
    starts = data.indptr[users]
    lengths = data.indptr[users + 1] - starts
    ends = np.cumsum(lengths)
    places = np.arange(int(ends[-1]) if len(ends) else 0) + np.repeat(starts - (ends - lengths), lengths)
    return lengths, data.indices[places]
