"""Rows of a sharded table for a mini-batch: asked for by unique number, fetched, and their gradients sent back.

Which rows a mini-batch needs follows from its draws, so that the routes of a whole block of mini-batches are made on
the host before a score is computed, with two exchanges. A mini-batch then takes two: rows, and gradients.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from bayesneg.distributed.group import ProcessGroup
from bayesneg.distributed.sharding.owners import Owners, distinct
from bayesneg.models.torch.negatives import on_device


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

    def routes(self, wanted: Sequence[np.ndarray]) -> list[Route]:
        """The routes of several mini-batches, planned together.

        Args:
            wanted: The ascending, unique row numbers that each mini-batch needs.
        """
        size, n = self.group.size, len(wanted)
        counts = np.array([self.owners.counts(ids) for ids in wanted], dtype=np.int64).reshape(n, size)
        given = self._from_others(counts.T).T  # (n, size): what each process asks for here
        # to each owner its ids of all mini-batches, one mini-batch after the other
        starts = np.cumsum(counts, axis=1) - counts
        parts = [
            ids[start : start + count]
            for owner in range(size)
            for ids, start, count in zip(wanted, starts[:, owner], counts[:, owner], strict=True)
        ]
        whole = np.concatenate(parts).astype(np.int32) if parts else np.empty(0, dtype=np.int32)
        to, of = counts.sum(axis=0).tolist(), given.sum(axis=0).tolist()
        sent = on_device(whole, torch.int32, self.group.device)
        received = self.group.exchange(sent, to, of, "ids").cpu().numpy().astype(np.int64)
        found, begin = [], np.concatenate(([0], np.cumsum(of)))[:-1]
        for place, ids in enumerate(wanted):
            rows = np.concatenate([received[begin[rank] : begin[rank] + given[place, rank]] for rank in range(size)])
            begin = begin + given[place]
            rows -= self.first
            touched = distinct(rows)
            tensors = (ids, rows, touched, np.searchsorted(touched, rows))
            on = [on_device(np.asarray(part, dtype=np.int64), torch.int64, self.group.device) for part in tensors]
            found.append(Route(on[0], counts[place].tolist(), given[place].tolist(), *on[1:]))
        return found

    def _from_others(self, counts: np.ndarray) -> np.ndarray:
        """Row r of counts (size, n) goes to process r; the rows that come from the others."""
        if self.group.size == 1:
            return counts
        given = on_device(np.ascontiguousarray(counts), torch.int64, self.group.device)
        return self.group.exchanged_counts(given).cpu().numpy()

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
