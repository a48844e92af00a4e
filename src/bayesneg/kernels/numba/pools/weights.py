"""The rules of ``kernels/reference/pools.py`` that rank a pool in itself, compiled: weights (B, N) of a shared pool.

The examples are shared among threads; what is computed for one does not depend on the others.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bayesneg.kernels.numba.compiling import entry_point, in_parts, kernel, lent
from bayesneg.kernels.numba.formulas import base_cdf, unbias
from bayesneg.kernels.numba.pools.ranks import count_at_most, rank_space, sort_row
from bayesneg.kernels.numba.selections import weight_of
from bayesneg.kernels.reference.formulas import LikelihoodForm, OfMixture, Tabled

NOTHING = np.empty(0)
TABLES = 16  # of F by count, for lists of so many lengths


class PooledRows(NamedTuple):
    """A few items of each user, and where the items lie in a pool."""

    users: np.ndarray  # (B,) int64
    indptr: np.ndarray  # (n_users + 1,) int64
    items: np.ndarray  # (n,) int32
    slots: np.ndarray  # (n_items,) int64, the first position of an item in the pool, −1 outside it


class PoolPrior(NamedTuple):
    """The prior of a pool: a row of probabilities for each example, and a few items of its user with another one."""

    which: np.ndarray  # (B,) int64, the row of each example
    rows: np.ndarray  # (r, N) float64, or (r, 1) where all items have the same
    likelier: PooledRows
    values: np.ndarray  # (n,) those of ``likelier``


class AnyLikelihood(NamedTuple):
    """A likelihood by number, for compiled code that serves them all."""

    kind: int  # 0 as counted, 1 of the mixture, 2 from a table
    share: float
    at: np.ndarray
    values: np.ndarray
    slopes: np.ndarray


def any_likelihood(form: LikelihoodForm) -> AnyLikelihood:
    """The likelihood by number.

    >>> any_likelihood(OfMixture(0.1))[:2]
    (1, 0.1)
    """
    if isinstance(form, Tabled):
        return AnyLikelihood(2, 0.0, *(np.ascontiguousarray(part, dtype=np.float64) for part in form))
    if isinstance(form, OfMixture):
        return AnyLikelihood(1, float(form.share), NOTHING, NOTHING, NOTHING)
    return AnyLikelihood(0, 0.0, NOTHING, NOTHING, NOTHING)


def equal_weights(pool: np.ndarray, rows: PooledRows, *, threads: int, found: np.ndarray) -> None:
    """Write 1 where an item of the pool (N,) counts, otherwise 0, into (B, N) float32."""
    repeated = np.flatnonzero(rows.slots[pool] != np.arange(len(pool)))

    def fill(first: int, last: int) -> None:
        write_equal(repeated, rows, first, last, found)

    in_parts(fill, len(found), len(pool), threads)


def weights_by_rank(
    x: np.ndarray,
    pool: np.ndarray,
    log_q: np.ndarray | None,
    rows: PooledRows,
    prior: PoolPrior,
    likelihood: LikelihoodForm,
    *,
    weight: float,
    ramp: bool,
    threads: int,
    found: np.ndarray,
) -> None:
    """Write the posterior weights (B, N) float32 of a pool (N,) whose scores are x (B, N) float32."""
    repeated = np.flatnonzero(rows.slots[pool] != np.arange(len(pool)))
    stands_for = NOTHING if log_q is None else np.exp(-(log_q - log_q.min()).astype(np.float64))
    form = any_likelihood(likelihood)

    def fill(first: int, last: int) -> None:
        write_by_rank(
            x, repeated, stands_for, rows, prior, form, float(weight), bool(ramp), first, last, found
        )  # fmt: skip

    in_parts(fill, len(x), len(pool), threads)


# ------------------------------------------------------------------------------------------------------- compiled


@entry_point
def write_equal(repeated, rows, first, last, found):  # type: ignore[no-untyped-def]
    outside = np.empty(found.shape[1], dtype=np.int64)
    for b in range(first, last):
        found[b] = 1.0
        for k in not_counting(repeated, rows, b, outside):
            found[b, k] = 0.0


@entry_point
def write_by_rank(x, repeated, stands_for, rows, prior, likelihood, weight, ramp, first, last, found):  # type: ignore[no-untyped-def]
    rows, prior, likelihood = lent(rows), lent(prior), lent(likelihood)
    n_pool = x.shape[1]
    space, outside = rank_space(n_pool), np.empty(n_pool, dtype=np.int64)
    F, at_most = np.empty(n_pool, dtype=np.float64), np.empty(n_pool, dtype=np.uint32)
    tables, known = np.empty((TABLES, n_pool + 1), dtype=np.float64), np.full(TABLES, -1)
    by_count = np.empty(n_pool + 1, dtype=np.float32)
    for b in range(first, last):
        hidden = not_counting(repeated, rows, b, outside)
        n, row = n_pool - len(hidden), prior.rows[prior.which[b]]
        if len(stands_for) > 0:
            share_of_mass(x[b], hidden, stands_for, space, F)
            to_base_cdf(likelihood, F)
            weigh_row(F, row, weight, ramp, found[b])
        else:
            table = table_of(n, likelihood, tables, known)
            count_at_most(x[b], hidden, space, at_most)
            if len(row) == 1:  # items of the same count have the same weight
                weigh_row(table[: n + 1], row, weight, ramp, by_count[: n + 1])
                for k in range(n_pool):
                    found[b, k] = by_count[at_most[k]]
            else:
                for k in range(n_pool):
                    F[k] = table[at_most[k]]
                weigh_row(F, row, weight, ramp, found[b])
        likelier = prior.likelier
        if len(prior.values) > 0:
            user = likelier.users[b]
            for place in range(likelier.indptr[user], likelier.indptr[user + 1]):
                k = likelier.slots[likelier.items[place]]
                if k >= 0:
                    at = F[k] if len(stands_for) > 0 else tables[n % TABLES, at_most[k]]
                    found[b, k] = weight_of(unbias(at, np.float64(prior.values[place])), weight, ramp)
        for k in hidden:
            found[b, k] = 0.0


@kernel
def table_of(n, likelihood, tables, known):  # type: ignore[no-untyped-def]
    """F for each count of n items; the last tables are kept, since few users have many training items in a pool."""
    table = tables[n % TABLES]
    if known[n % TABLES] != n:
        for count in range(n + 1):
            table[count] = count / (n + 1)
        to_base_cdf(likelihood, table[: n + 1])
        known[n % TABLES] = n
    return table


@kernel
def weigh_row(F, row, weight, ramp, found):  # type: ignore[no-untyped-def]
    """Write the weight at each F, with the prior of the same position, or with one prior for all."""
    if len(row) == 1:
        p = row[0]
        for k in range(len(F)):
            found[k] = weight_of(unbias(F[k], p), weight, ramp)
    else:
        for k in range(len(F)):
            found[k] = weight_of(unbias(F[k], row[k]), weight, ramp)


@kernel
def not_counting(repeated, rows, b, outside):  # type: ignore[no-untyped-def]
    """The positions in the pool that do not count for an example: its user's training items, and repeated items."""
    n = len(repeated)
    outside[:n] = repeated
    user = rows.users[b]
    for place in range(rows.indptr[user], rows.indptr[user + 1]):
        slot = rows.slots[rows.items[place]]
        if slot >= 0:
            outside[n] = slot
            n += 1
    return outside[:n]


@kernel
def share_of_mass(x, outside, stands_for, space, M):  # type: ignore[no-untyped-def]
    """The share M of the mass at or below each score, over the mass of all times 1 + 1/n."""
    n = len(x) - len(outside)
    sort_row(x, outside, space)
    slots, places = space.slots, space.places
    total, first = 0.0, 0
    for s in range(n):
        total += stands_for[places[s]]
        if s + 1 == n or slots[s + 1] > slots[s]:  # the last of equal scores
            for tied in range(first, s + 1):
                M[places[tied]] = total
            first = s + 1
    whole = total * (1.0 + 1.0 / max(1, n))
    for s in range(n):
        M[places[s]] /= whole
    for k in outside:
        M[k] = 0.0


@kernel
def to_base_cdf(likelihood, M):  # type: ignore[no-untyped-def]
    """Replace shares M by F."""
    if likelihood.kind == 1:
        form = OfMixture(likelihood.share)
        for k in range(len(M)):
            M[k] = base_cdf(form, M[k])
    elif likelihood.kind == 2:
        table = Tabled(likelihood.at, likelihood.values, likelihood.slopes)
        for k in range(len(M)):
            M[k] = base_cdf(table, M[k])
