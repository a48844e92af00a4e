"""The splits of a study: more views and datasets than those of the paper.

The view ``blind`` is for tuning: the training part without a random tenth, which is evaluated; the test labels are not
in it. ``blind2`` to ``blind10`` hold out another random tenth each. ``fifth`` holds out a random fifth of each user's
training items. ``ml-100k@50`` is the same split with a random half
of its training part. ``ml-100k#1`` to ``ml-100k#5`` are the folds of a five-fold cross-validation over all pairs,
``ml-100k#6`` to ``ml-100k#10`` those of another one, and so on.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np

from bayesneg.data.interactions import Interactions
from bayesneg.data.splits import Split, carve_validation
from bayesneg.errors import InputError
from bayesneg.experiments.datasets import VALIDATION_SHARE, Source, blind
from bayesneg.seeding import stream

FOLDS: Final = 5  # of a cross-validation
FIFTH: Final = "fifth"
TENTHS: Final[Mapping[str, int]] = {f"blind{number}" if number > 1 else "blind": number - 1 for number in range(1, 11)}


@dataclass(frozen=True)
class StudySource(Source):
    """Splits by the names above."""

    def make(self, dataset: str, view: str) -> Split:
        if view in TENTHS:
            return blind(carve_validation(self.split(dataset, "last"), VALIDATION_SHARE, seed=TENTHS[view]))
        if view == FIFTH:
            return blind(carve_validation(self.split(dataset, "last"), 0.2, by="user"))
        other = re.fullmatch(r"(.+)([@#])(\d{1,3})", dataset)
        if view == "last" and other is not None and not Path(dataset).exists():
            whole, number = self.split(other[1], "last"), int(other[3])
            return thinned(whole, number / 100) if other[2] == "@" else folded(whole, number)
        return super().make(dataset, view)


def thinned(split: Split, share: float) -> Split:
    """The same test part with a random share of the training pairs, always the same.

    The pairs left out become the validation part, so that they are not recommended either.
    """
    if not 0 < share <= 1:
        raise InputError(f"the share of the training part must lie in (0, 1], got {share}; write NAME@50 for half")
    n_kept = max(1, round(share * len(split.train)))
    kept = np.zeros(len(split.train), dtype=bool)
    kept[stream(0, "thinned").permutation(len(split.train))[:n_kept]] = True
    left_out = None if kept.all() else split.train.select(~kept)
    how = f"{split.how}; {share:.0%} of the training part, the rest is validation"
    return replace(split, train=split.train.select(kept), validation=left_out, how=how)


def folded(split: Split, number: int) -> Split:
    """Five-fold cross-validation, stratified by user: the ``number``-th fold is the test part.

    Folds 6 to 10 are those of another random assignment, 11 to 15 of a third.
    """
    if number < 1:
        raise InputError(f"folds are numbered from 1, got {number}; write NAME#1 for the first")
    repeat, fold = divmod(number - 1, FOLDS)
    users, items = (np.concatenate((a, b)) for a, b in zip(_pairs(split.train), _pairs(split.test), strict=True))
    rng = stream(repeat, "folds")
    order = rng.permutation(len(users))
    order = order[np.argsort(users[order], kind="stable")]
    first = np.concatenate(([0], np.cumsum(np.bincount(users, minlength=split.train.n_users))))
    position = np.arange(len(users)) - first[users[order]] + rng.integers(FOLDS, size=split.train.n_users)[users[order]]
    tested = np.empty(len(users), dtype=bool)
    tested[order] = position % FOLDS == fold

    own = split.train

    def part(kept: np.ndarray) -> Interactions:
        return Interactions.from_numbers(
            users[kept],
            items[kept],
            user_ids=own.user_ids,
            item_ids=own.item_ids,
            user_columns=own.user_columns,
            name=own.name,
        )

    return Split(part(~tested), part(tested), how=f"fold {fold + 1} of {FOLDS} over all pairs, repeat {repeat + 1}")


def _pairs(part: Interactions) -> tuple[np.ndarray, np.ndarray]:
    return part.users, part.indices
