"""Cross-fitting: folds of the training data that are hidden, so that a prior is learned without other labels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from bayesneg.data.interactions import Interactions
from bayesneg.errors import InputError

MOST_PAIRS = 1 << 20  # more unobserved pairs than this are sampled uniformly


class UnobservedPairs(NamedTuple):
    """Pairs outside the visible part: all hidden ones, and a weighted sample of the others."""

    users: np.ndarray  # (P,) int64, ascending
    items: np.ndarray  # (P,) int64
    hidden: np.ndarray  # (P,) bool, whether the pair is one of the hidden
    weights: np.ndarray  # (P,) sampling weights


def folds_of(train: Interactions, folds: int, rng: np.random.Generator) -> Iterator[tuple[Interactions, Interactions]]:
    """Visible and hidden parts of the training data; each pair is hidden once."""
    if len(train) < folds:
        raise InputError(
            f"a learned prior hides each of its {folds} folds of the training interactions once, and there are only "
            f"{len(train)}; give more data, or a prior that is not learned, such as bn.BNS() has (--sampler bns)"
        )
    fold = rng.permutation(len(train)) % folds
    return ((train.select(fold != place), train.select(fold == place)) for place in range(folds))


def unobserved_pairs(
    seen: Interactions, hidden: Interactions | None, rng: np.random.Generator, *, most: int | None = None
) -> UnobservedPairs:
    """Pairs outside ``seen``: all of them for a small catalogue, a weighted sample otherwise."""
    limit = MOST_PAIRS if most is None else most
    n_pairs = seen.n_users * seen.n_items
    cells = np.arange(n_pairs) if n_pairs <= limit else np.sort(rng.integers(n_pairs, size=limit))
    users, items = cells // seen.n_items, cells % seen.n_items
    n_hidden = 0 if hidden is None else len(hidden)
    outside = ~seen.contains(users, items)
    if hidden is not None:
        outside &= ~hidden.contains(users, items)
    users, items = users[outside], items[outside]
    weight = (n_pairs - len(seen) - n_hidden) / max(len(users), 1)
    if hidden is not None:
        users, items = np.concatenate((hidden.users, users)), np.concatenate((hidden.indices, items))
    marks = np.arange(len(users)) < n_hidden
    order = np.argsort(users, kind="stable")
    return UnobservedPairs(
        users[order].astype(np.int64), items[order].astype(np.int64), marks[order], np.where(marks, 1.0, weight)[order]
    )
