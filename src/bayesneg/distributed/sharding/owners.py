"""Who owns which users and items: contiguous ranges, one for each process."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from bayesneg.data.interactions import Interactions
from bayesneg.errors import InputError


@dataclass(frozen=True)
class Owners:
    """Ranges of numbers, one after the other.

    Args:
        bounds: The first number of each process, and after the last the count of all, (size + 1,) int64.
    """

    bounds: np.ndarray

    @classmethod
    def evenly(cls, n: int, size: int) -> Owners:
        """Ranges whose sizes differ by at most one.

        >>> Owners.evenly(10, 4).bounds.tolist()
        [0, 2, 5, 7, 10]
        """
        return cls(np.arange(size + 1) * n // size)

    @classmethod
    def balanced(cls, indptr: np.ndarray, size: int) -> Owners:
        """Ranges of users with about as many pairs each; every process has at least one user.

        >>> Owners.balanced(np.array([0, 90, 92, 94, 100]), 2).bounds.tolist()
        [0, 1, 4]
        """
        n = len(indptr) - 1
        inner = [int(np.searchsorted(indptr, indptr[-1] * rank / size)) for rank in range(1, size)]
        bounds = np.array([0, *inner, n])
        for rank in range(1, size):  # no range is empty
            bounds[rank] = min(max(bounds[rank], bounds[rank - 1] + 1), n - size + rank)
        return cls(bounds)

    def range_of(self, rank: int) -> tuple[int, int]:
        """The first number of a process, and the one after its last."""
        return int(self.bounds[rank]), int(self.bounds[rank + 1])

    def counts(self, ascending: Tensor) -> Tensor:
        """How many of these ascending int32 numbers belong to each process, (size,)."""
        bounds = torch.from_numpy(self.bounds.astype(np.int32)).to(ascending.device)
        return torch.searchsorted(ascending, bounds).diff()


def check_sizes(train: Interactions, size: int) -> None:
    """An error where a process would have no user or no item."""
    for n, what in ((train.n_users, "users"), (train.n_items, "items")):
        if n < size:
            raise InputError(
                f"the data has {n:,} {what}, too few for {size} processes, each of which owns a range of them; "
                "start fewer (--nproc-per-node)"
            )


def window(train: Interactions, first: int, last: int) -> Interactions:
    """The pairs of the users from ``first`` to ``last``, under their numbers: all other users have none.

    Nothing but the starts of rows is copied, so that of mapped data only the pages of these users are read.
    """
    start, stop = int(train.indptr[first]), int(train.indptr[last])
    indptr = np.clip(train.indptr, start, stop) - start
    return replace(
        train,
        indptr=indptr,
        indices=train.indices[start:stop],
        times=None,
        truth=None,
        origin=None,
        prepared=None,
    )


def distinct(numbers: Tensor) -> Tensor:
    """Each number once, ascending.

    >>> distinct(torch.tensor([3, 1, 3, 2])).tolist()
    [1, 2, 3]
    """
    if numbers.device.type != "cpu" or not len(numbers):
        return torch.unique(numbers)
    ascending = np.sort(numbers.numpy())  # for hundreds of thousands much faster than torch.unique on a CPU
    return torch.from_numpy(ascending[np.concatenate(([True], ascending[1:] != ascending[:-1]))])
