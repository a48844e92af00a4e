"""Which sampler is better than which, and how sure that is: paired tests over users and over seeds.

Users differ far more than samplers do, and so do seeds; a pair of runs on the same data shares both. A difference is
called clear only if it is clear over the users (each user's mean over the seeds) and over the seeds (each seed's mean
over the users), after Holm's correction for all pairs of the study; in a study of readings, for those of the same
published row.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations
from typing import Final

from bayesneg.evaluation.statistics import Difference, holm
from bayesneg.reproduction.published import MAIN
from bayesneg.reproduction.studies import Study
from bayesneg.runs.pairing import paired

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
            return f"not shown with {self.n_seeds} {'seed' if self.n_seeds == 1 else 'seeds'}"
        winner = self.one if self.over_users.mean > 0 else self.other
        return f"{winner} is better" + ("" if self.n_seeds > 1 else ", as far as one seed can tell")


def corrected_within(study: Study) -> str:
    """Among which pairs the p-values are corrected."""
    return "the readings of one row" if study.readings else "this table"


def contests(study: Study) -> list[Contest]:
    """Every pair of samplers that share a seed on the same data, in NDCG@20.

    Readings of different published rows are not each other's rivals.
    """
    rivals = [
        pair for pair in combinations(study.lines, 2) if not study.readings or pair[0].row.paper == pair[1].row.paper
    ]
    pairs = [(one, other, found) for one, other in rivals if (found := paired(one.runs, other.runs, MAIN)) is not None]
    families: dict[str, list[int]] = {}
    for place, (one, *_) in enumerate(pairs):
        families.setdefault(one.row.paper if study.readings and one.row.paper else "", []).append(place)
    p_users, p_seeds = [math.nan] * len(pairs), [math.nan] * len(pairs)
    for places in families.values():
        own = [pairs[place][2] for place in places]
        for place, of_users, of_seeds in zip(
            places,
            holm([found.over_users.p_value for found in own]),
            holm([found.over_seeds.p_value for found in own]),
            strict=True,
        ):
            p_users[place], p_seeds[place] = of_users, of_seeds
    return [
        Contest(one.label, other.label, found.over_users, p_users[place], p_seeds[place], found.n_seeds)
        for place, (one, other, found) in enumerate(pairs)
    ]
