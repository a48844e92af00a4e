"""Two ways of training judged on the same data, paired over users and over seeds.

Users differ far more than samplers do, and so do seeds; two runs of one seed on the same data share both.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from bayesneg.evaluation.statistics import Difference, paired_difference
from bayesneg.runs.record import RunRecord, is_number


@dataclass(frozen=True)
class Paired:
    """How much more one reaches than the other, over users and over the seeds they share."""

    over_users: Difference  # of each user's mean over the seeds
    over_seeds: Difference  # of each seed's mean over the users; no interval where they share one seed only
    n_seeds: int

    @property
    def mean(self) -> float:
        return self.over_users.mean

    @property
    def is_clear(self) -> bool:
        """The interval over users lies on one side of zero, and that over seeds, where there is one, as well."""
        seeds_agree = self.n_seeds == 1 or _apart(self.over_seeds)
        return _apart(self.over_users) and seeds_agree


def paired(one: Sequence[RunRecord], other: Sequence[RunRecord], key: str) -> Paired | None:
    """``one`` minus ``other`` in the metric ``key``; None where they share no seed on the same data."""
    seeds = _shared(one, other)
    if not seeds:
        return None
    return Paired(
        paired_difference(_by_user(one, seeds, key), _by_user(other, seeds, key)),
        paired_difference(_by_seed(one, seeds, key), _by_seed(other, seeds, key)),
        len(seeds),
    )


def _apart(difference: Difference) -> bool:
    return difference.low > 0 or difference.high < 0


def _shared(one: Iterable[RunRecord], other: Iterable[RunRecord]) -> list[int]:
    """The seeds with which both were judged on the same data."""
    data = [{run.seed: run.data["fingerprint"] for run in runs} for runs in (one, other)]
    return sorted(seed for seed, fingerprint in data[0].items() if data[1].get(seed) == fingerprint)


def _by_user(runs: Iterable[RunRecord], seeds: Sequence[int], key: str) -> np.ndarray:
    """Each user's mean over the seeds, (n_users,)."""
    return np.mean([(run.per_user or {})[key] for run in _in_order(runs, seeds)], axis=0)


def _by_seed(runs: Iterable[RunRecord], seeds: Sequence[int], key: str) -> np.ndarray:
    """Each seed's mean over the users, (n_seeds,)."""
    values = [run.final.get(key) for run in _in_order(runs, seeds)]
    return np.array([value if is_number(value) else np.nan for value in values], dtype=np.float64)


def _in_order(runs: Iterable[RunRecord], seeds: Sequence[int]) -> list[RunRecord]:
    return sorted((run for run in runs if run.seed in seeds), key=lambda run: run.seed)
