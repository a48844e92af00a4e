"""Rows of a sharded table for a mini-batch: asked for by unique number, fetched, and their gradients sent back.

Which rows a mini-batch needs follows from its draws, so that the routes of a whole block of mini-batches are made
before a score is computed, with two exchanges. A mini-batch then takes two: rows, and gradients.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from bayesneg.distributed.group import ProcessGroup
from bayesneg.distributed.sharding.owners import Owners, distinct


class Route(NamedTuple):
    """The rows that a mini-batch needs, and those that other processes need of this one."""

    ids: Tensor  # (k,) int64, ascending: what this process asks for
    asked: list[int]  # how many of them each owner has
    given: list[int]  # how many rows each process asks for here
    rows: Tensor  # (g,) these rows, of process 0 first
    touched: Tensor  # (t,) the same rows ascending, each once
    slots: Tensor  # (g,) where each row stands among ``touched``


class Exchange:
    """Rows of one table.

    Args:
        group: The processes.
        owners: Which of them has which rows.
    """

    def __init__(self, group: ProcessGroup, owners: Owners) -> None:
        self.group, self.owners = group, owners
        self.first, self.last = owners.range_of(group.rank)

    def routes(self, wanted: Sequence[Tensor]) -> list[Route]:
        """The routes of several mini-batches, planned together.

        Args:
            wanted: The ascending, unique row numbers that each mini-batch needs, int32, on the device of the group.
        """
        size = self.group.size
        counts, given = self._counts(wanted)
        # to each owner its ids of all mini-batches, one mini-batch after the other
        starts = np.cumsum(counts, axis=1) - counts
        parts = [
            ids[start : start + count]
            for owner in range(size)
            for ids, start, count in zip(wanted, starts[:, owner], counts[:, owner], strict=True)
        ]
        to, of = counts.sum(axis=0).tolist(), given.sum(axis=0).tolist()
        received = self.group.exchange(torch.cat(parts), to, of, "ids") - self.first
        found, begin = [], np.concatenate(([0], np.cumsum(of)))[:-1]
        for place, ids in enumerate(wanted):
            rows = torch.cat([received[begin[rank] : begin[rank] + given[place, rank]] for rank in range(size)])
            begin = begin + given[place]
            touched = rows if size == 1 else distinct(rows)  # one process asks for a row once
            slots = torch.searchsorted(touched, rows)
            asked = counts[place].tolist(), given[place].tolist()
            found.append(Route(ids.long(), *asked, rows.long(), touched.long(), slots))
        return found

    def _counts(self, wanted: Sequence[Tensor]) -> tuple[np.ndarray, np.ndarray]:
        """How many rows each mini-batch asks of each process, and each process asks for here, (n, size) each."""
        if self.group.size == 1:  # nothing waits for a GPU
            own = np.array([[len(ids)] for ids in wanted])
            return own, own
        asked = torch.stack([self.owners.counts(ids) for ids in wanted])
        given = self.group.exchanged_counts(asked.T.contiguous()).T
        both = torch.stack([asked, given]).cpu().numpy()
        return both[0], both[1]

    def fetch(self, shard: Tensor, route: Route) -> Tensor:
        """The rows (k, d) that the mini-batch asks for, in the order of their numbers.

        Args:
            shard: The rows of this process.
            route: The route of the mini-batch.
        """
        return self.group.exchange(shard.index_select(0, route.rows), route.given, route.asked, "rows")

    def send_back(self, gradients: Tensor, route: Route) -> Tensor:
        """Gradients (k, d) of fetched rows go to their owners; what arrives here is summed, (t, d) of ``touched``.

        The sum has a fixed order, that of the processes.
        """
        received = self.group.exchange(gradients, route.asked, route.given, "gradients")
        total = received.new_zeros((len(route.touched), received.shape[1]))
        place = 0
        for count in route.given:  # a process asks for a row once, so that no two additions meet
            part = slice(place, place + count)
            total.index_add_(0, route.slots[part], received[part])
            place += count
        return total
