"""Which sampler is better than which, and how sure that is: paired tests over users and over seeds.

Users differ far more than samplers do, and so do seeds; a pair of runs on the same data shares both. A difference is
called clear only if it is clear over the users (each user's mean over the seeds) and over the seeds (each seed's mean
over the users), after Holm's correction for all pairs of the study.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

import numpy as np

from bayesneg.evaluation.intervals import Difference, holm, paired_difference
from bayesneg.lab.published import MAIN
from bayesneg.lab.studies import Line, Study
from bayesneg.report.runs import final_value
from bayesneg.runs.record import RunRecord

LEVEL: Final = 0.05


@dataclass(frozen=True)
class Contest:
    """Two samplers of a study; the p-values are corrected."""

    one: str
    other: str
    over_users: Difference
    p_users: float
    p_seeds: float  # nan where they share one seed only
    n_seeds: int

    @property
    def is_clear(self) -> bool:
        return self.p_users < LEVEL and (math.isnan(self.p_seeds) or self.p_seeds < LEVEL)

    @property
    def verdict(self) -> str:
        if not self.is_clear:
            return "not distinguishable"
        winner = self.one if self.over_users.mean > 0 else self.other
        return f"{winner} is better" + ("" if self.n_seeds > 1 else ", as far as one seed can tell")


def contests(study: Study) -> list[Contest]:
    """Every pair of samplers that share a seed on the same data, in NDCG@20.

    Rows that stand beside different published rows by choice, as readings do, are not each other's rivals.
    """
    rivals = [pair for pair in combinations(study.lines, 2) if pair[0].row.paper == pair[1].row.paper]
    pairs = [(one, other, seeds) for one, other in rivals if (seeds := _shared(one, other))]
    over_users = [
        paired_difference(_by_user(one.runs, seeds), _by_user(other.runs, seeds)) for one, other, seeds in pairs
    ]
    over_seeds = [
        paired_difference(_by_seed(one.runs, seeds), _by_seed(other.runs, seeds)) for one, other, seeds in pairs
    ]
    p_users, p_seeds = (holm([test.p_value for test in tests]) for tests in (over_users, over_seeds))
    return [
        Contest(one.label, other.label, over_users[place], p_users[place], p_seeds[place], len(seeds))
        for place, (one, other, seeds) in enumerate(pairs)
    ]


def _shared(one: Line, other: Line) -> list[int]:
    """The seeds with which both were judged on the same data."""
    data = [{run.seed: run.data["fingerprint"] for run in line.runs} for line in (one, other)]
    return [seed for seed, fingerprint in data[0].items() if data[1].get(seed) == fingerprint]


def _by_user(runs: Iterable[RunRecord], seeds: Sequence[int]) -> np.ndarray:
    """Each user's mean over the seeds, (n_users,)."""
    return np.mean([(run.per_user or {})[MAIN] for run in runs if run.seed in seeds], axis=0)


def _by_seed(runs: Iterable[RunRecord], seeds: Sequence[int]) -> np.ndarray:
    """Each seed's mean over the users, (n_seeds,)."""
    return np.array([final_value(run, MAIN) for run in runs if run.seed in seeds])
