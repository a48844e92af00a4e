"""Summaries of the users' score lists, refreshed by a stated rule: F without scoring the catalogue for each example.

A user's summary is computed when the user is first met in an epoch, and again once the user's embedding has moved by
more than a given share of its norm. Otherwise the cost of an example is independent of the size of the catalogue.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from typing import cast

import numpy as np

from bayesneg.checks import number, whole
from bayesneg.integrity.arrays import ArraySpec, Specs
from bayesneg.interfaces import Batch, Embeddings, RefreshesOnDevice
from bayesneg.kernels.reference.choices.posterior import LeastRiskBySummary
from bayesneg.kernels.reference.formulas import LikelihoodForm, Population

SCORES = 1 << 17  # held at once while summaries are computed, so that they stay in the cache
LEAST_POOL, POOL_SHARE = 160, 1024
WORTH_A_THREAD = 256  # users


@dataclass(frozen=True)
class Refresh:
    """When the summary of a user's score list is recomputed, and from how many items.

    A summary is computed when the user is first met in an epoch, and again once |w_u − w_u'| > moved · |w_u'|, with
    w_u' the user's embedding at the last computation.

    Args:
        moved: Relative distance by which a user's embedding may move before the summary is recomputed.
        pool: Number of items with the highest possible scores that are all scored for a summary, by default one in
            1,024 items and at least 160; the other items are sampled.

    Example:
        >>> Refresh(moved=0.05)
        Refresh(moved=0.05, pool=None)
    """

    moved: float = 0.12
    pool: int | None = None

    def __post_init__(self) -> None:
        number("moved", self.moved, least=0)
        if self.pool is not None:
            whole("pool", self.pool)


@cache
def refreshes_on_device(kind: type) -> bool:
    """Whether scorers of this class are :class:`~bayesneg.interfaces.RefreshesOnDevice`; to ask takes long."""
    return issubclass(kind, RefreshesOnDevice)


class Summaries:
    """The summaries of all users, 4·(K + d + 1) bytes each with K ≤ 32 knots and d-dimensional embeddings."""

    def __init__(self, refresh: Refresh, n_users: int, n_items: int) -> None:
        from bayesneg.kernels.numba import summaries

        self.moved = float(refresh.moved)
        self.size = max(LEAST_POOL, n_items // POOL_SHARE) if refresh.pool is None else refresh.pool
        self.ranks, self.n_items = summaries.knot_ranks(n_items), n_items
        self.knots = np.zeros((n_users, len(self.ranks)), dtype=np.float32)
        self.then = np.empty((n_users, 0), dtype=np.float32)  # the users' embeddings at the last computation
        self.made = np.full(n_users, -1, dtype=np.int32)  # the epoch of the last computation
        self.epoch = -1
        self.ended = 0  # the last epoch that has ended

    def state_dict(self) -> dict[str, np.ndarray]:
        """The summaries in the middle of an epoch; empty between two, since the next one computes them anew."""
        if self.epoch <= self.ended:
            return {}
        pool = {f"pool_{name}": part for name, part in self.pool._asdict().items()}
        return {"knots": self.knots, "then": self.then, "made": self.made, "epoch": np.array(self.epoch), **pool}

    def state_specs(self) -> Specs:
        """What the arrays must look like; there are none between two epochs."""
        found = {
            "knots": ArraySpec(("users", len(self.ranks)), "float32"),
            "then": ArraySpec(("users", "dim"), "float32"),
            "made": ArraySpec(("users",), "int32", least=-1),
            "epoch": ArraySpec((), "integer", least=0),
            "pool_items": ArraySpec(("pool",), "integer", least=0, below=self.n_items),
            "pool_weights": ArraySpec(("pool",), "integer", least=0),
            "pool_slots": ArraySpec((self.n_items,), "integer", least=-1, below="pool"),
        }
        return {name: replace(spec, optional=True) for name, spec in found.items()}

    def load_state_dict(self, state: Mapping[str, np.ndarray]) -> None:
        """Restore a state; an empty one leaves all summaries to be computed."""
        from bayesneg.kernels.numba.summaries import Pool

        if not state:
            return
        self.knots[:], self.made[:] = state["knots"], state["made"]
        self.then, self.epoch = state["then"].copy(), int(state["epoch"])
        self.pool = Pool(*(state[f"pool_{name}"].copy() for name in Pool._fields))

    def up_to_date(
        self, batch: Batch, *, weight: float, over: Population, likelihood: LikelihoodForm
    ) -> LeastRiskBySummary:
        """The rule, after refreshing the summaries of the batch's users; the model must have embeddings."""
        from bayesneg.kernels.numba import summaries

        if refreshes_on_device(type(batch.scorer)):
            knots = cast(RefreshesOnDevice, batch.scorer).refreshed_knots(
                batch, self.ranks, moved=self.moved, pool=self.size, over_all=over.with_observed
            )
            if knots is not None:
                return LeastRiskBySummary(weight, over, likelihood, knots, self.ranks)
        vectors = batch.scorer.embeddings()
        if self.then.shape[1] != vectors.users.shape[1]:
            self.then = np.zeros_like(vectors.users)
        if self.epoch != batch.epoch:
            self.epoch = batch.epoch
            self.pool = summaries.pool_of(vectors.users, vectors.items, self.size)
        due = summaries.due_users(batch.users, batch.epoch, vectors.users, self.then, self.made, self.moved)
        self._make(due, vectors, batch, over.with_observed)
        return LeastRiskBySummary(weight, over, likelihood, self.knots, self.ranks)

    def _make(self, due: np.ndarray, vectors: Embeddings, batch: Batch, over_all: bool) -> None:
        """In as many threads as the batch allows, each with its share of the users."""
        if len(due) == 0:
            return
        items = vectors.items[self.pool.items]  # (P, d)
        threads = min(batch.threads, len(due) // WORTH_A_THREAD)
        if threads <= 1:
            self._make_part(due, items, vectors, batch, over_all)
            return
        with ThreadPoolExecutor(threads) as pool:
            parts = np.array_split(due, threads)
            list(pool.map(lambda users: self._make_part(users, items, vectors, batch, over_all), parts))

    def _make_part(self, due: np.ndarray, items: np.ndarray, vectors: Embeddings, batch: Batch, over_all: bool) -> None:
        from bayesneg.kernels.numba import summaries

        at_once = max(1, SCORES // len(items))
        room = np.empty((min(at_once, len(due)), len(items)), dtype=np.float32)
        for first in range(0, len(due), at_once):
            users = due[first : first + at_once]
            x = np.matmul(vectors.users[users], items.T, out=room[: len(users)])
            summaries.summarise(
                x, x.max(axis=1), x.min(axis=1), users, vectors.users, self.pool,
                batch.train.indptr, batch.train.indices, over_all, self.ranks, self.knots,
            )  # fmt: skip
