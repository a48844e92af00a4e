"""Candidate draws: the items among which a sampler chooses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeVar

import numpy as np

from bayesneg.checks import whole
from bayesneg.data.interactions import Interactions
from bayesneg.errors import InputError
from bayesneg.interfaces import Batch, CandidateDraw
from bayesneg.seeding import seed_from

State = TypeVar("State")


@dataclass(frozen=True)
class UniformDraw:
    """Candidates drawn uniformly without replacement from the user's unobserved items."""

    def draw(
        self, users: np.ndarray, size: int, *, train: Interactions, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        return uniform_candidates(users, size, train=train, rng=rng)


def uniform_candidates(
    users: np.ndarray,
    size: int,
    *,
    train: Interactions,
    rng: np.random.Generator,
    threads: int = 1,
    places: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """What :class:`UniformDraw` draws, the same for any number of threads; ``places`` are those in a larger batch."""
    from bayesneg.kernels.numba import draws

    return draws.uniform_candidates(users, train.observed, size, seed_from(rng), threads=threads, places=places)


def evenly_spread(train: Interactions, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Users (n,) and items (n,) of at most ``most`` unobserved pairs, evenly spaced in the list of all of them."""
    ends = np.cumsum(train.n_items - train.counts)
    n = min(most, int(ends[-1]))
    places = ((2 * np.arange(n) + 1) * int(ends[-1])) // (2 * max(n, 1))
    users = np.searchsorted(ends, places, side="right")
    ranks = places - (ends - (train.n_items - train.counts))[users]  # among the user's unobserved items
    # unobserved items before each observed one; with the user in front they ascend over all rows
    before = train.indices - (np.arange(len(train)) - train.indptr[train.users])
    rows = train.users.astype(np.int64) * train.n_items
    passed = np.searchsorted(rows + before, users * train.n_items + ranks, side="right")
    return users.astype(np.int32), (ranks + passed - train.indptr[users]).astype(np.int32)


def check_candidates(candidates: int | Literal["all"]) -> None:
    """``candidates`` is a whole number of at least 1, or "all" for every unobserved item."""
    if candidates != "all":
        whole("candidates", candidates)


def candidate_count(candidates: int | Literal["all"], n_items: int) -> int:
    return n_items if candidates == "all" else min(int(candidates), n_items)


def drawn_by(draw: CandidateDraw, batch: Batch, size: int) -> tuple[np.ndarray, np.ndarray]:
    """The draw's candidates and sizes; those of a custom draw are checked, since compiled code relies on them."""
    places = None if batch.share is None else batch.share.places
    if isinstance(draw, UniformDraw):
        return uniform_candidates(
            batch.users, size, train=batch.train, rng=batch.rng, threads=batch.threads, places=places
        )
    if places is not None:
        raise InputError(
            f"{type(draw).__name__} draws for all pairs of a batch at once, and each process has a part of them; train "
            "in one process, or with the default draw"
        )
    candidates, sizes = draw.draw(batch.users, size, train=batch.train, rng=batch.rng)
    items, sizes = np.asarray(candidates), np.asarray(sizes)
    if items.shape != (len(batch.users), size) or sizes.shape != (len(batch.users),):
        raise InputError(
            f"draw must give candidates of shape {(len(batch.users), size)} and one size for each user, "
            f"got {items.shape} and {sizes.shape}"
        )
    if not all(np.issubdtype(array.dtype, np.integer) for array in (items, sizes)):
        raise InputError(f"draw must give whole numbers, got {items.dtype} and {sizes.dtype}")
    valid = np.arange(size) < sizes[:, None]
    if ((sizes < 0) | (sizes > size)).any() or (valid & ((items < 0) | (items >= batch.train.n_items))).any():
        raise InputError(f"draw must give items from 0 to {batch.train.n_items - 1} and sizes from 0 to {size}")
    if (valid & batch.train.contains(batch.users[:, None], np.where(valid, items, 0))).any():
        raise InputError("draw gave a training item of the user; a candidate must be an unobserved item")
    return np.where(valid, items, -1).astype(np.int32), sizes.astype(np.int32)


def no_numbers(n_examples: int) -> np.ndarray:
    """The empty (B, 0) in place of priors or uniform numbers that a rule does not use."""
    return np.empty((n_examples, 0), dtype=np.float64)


def prepared(state: State | None) -> State:
    """The state that ``prepare`` creates, or an error that says to call it."""
    if state is None:
        raise InputError("the sampler is not prepared; call sampler.prepare(train, rng=rng), as fit does")
    return state
