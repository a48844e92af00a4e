"""Priors from how many users chose an item: of all of them, or of a user's group.

If for each observed positive there are ``hidden`` unobserved ones, spread as the observed, then of an item that a share
r of the users chose, hidden · r of all pairs are hidden positives. They are among the unobserved 1 − r, so that an
unobserved pair is one with probability hidden · r / (1 − r).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from bayesneg.checks import number
from bayesneg.data.interactions import Interactions
from bayesneg.interfaces import Prior
from bayesneg.samplers.priors.basic import Item, group_counts, unfitted
from bayesneg.samplers.priors.calibration_curves import hidden_share


@dataclass(frozen=True)
class Rate(Prior):
    """hidden · r / (1 − r) with r = pop_l / n_users; ``hidden`` is the believed ratio of hidden to observed positives.

    The paper's pop_l/N is the item's share of interactions, which is smaller by the number of interactions per user.
    """

    hidden: float = 0.25

    def __post_init__(self) -> None:
        number("hidden", self.hidden, above=0)

    def fit(self, train: Interactions) -> Item:
        return Item(hidden_share(train.popularity / train.n_users, self.hidden))

    def probability(self, users: np.ndarray, items: np.ndarray) -> np.ndarray:
        raise unfitted(self)


@dataclass(frozen=True)
class SmoothedGroup(Prior):
    """hidden · r / (1 − r) with r = (c_gl + a·r_l) / (n_g + a), the item's rate in the user's group.

    c_gl of the n_g users in the group chose l, and r is shrunk towards the item's rate r_l overall. ``a`` is the number
    of users the overall rate counts for, estimated from how much groups differ beyond chance (empirical Bayes: rates of
    groups follow a beta distribution around r_l, counts are binomial; by the method of moments). Where groups do not
    differ it is the :class:`Rate`.
    """

    column: str = "occupation"
    hidden: float = 0.25
    groups: np.ndarray | None = field(default=None, repr=False, compare=False)  # (n_users,)
    table: np.ndarray | None = field(default=None, repr=False, compare=False)  # (n_groups, n_items)

    def __post_init__(self) -> None:
        number("hidden", self.hidden, above=0)

    def fit(self, train: Interactions) -> SmoothedGroup:
        groups, counts = group_counts(train, self.column)
        sizes = np.bincount(groups, minlength=len(counts))[:, None]  # (n_groups, 1)
        overall = train.popularity / train.n_users
        weight = pull(counts, sizes, overall)
        rates = (
            (counts + weight * overall) / (sizes + weight)
            if np.isfinite(weight)
            else np.tile(overall, (len(counts), 1))
        )
        return replace(self, groups=groups, table=hidden_share(rates, self.hidden))

    def probability(self, users: np.ndarray, items: np.ndarray) -> np.ndarray:
        if self.groups is None or self.table is None:
            raise unfitted(self)
        return self.table[self.groups[users], items]


def pull(counts: np.ndarray, sizes: np.ndarray, overall: np.ndarray) -> float:
    """How many users the overall rate counts for, a; infinite where groups differ no more than by chance.

    With ρ = 1 / (a + 1) a count has variance n r (1 − r) (1 + (n − 1) ρ); ρ is such that the squared deviations over
    all groups and items sum up to what they are. The rate r̂ over all N users stands for r, and comes from the same
    counts: a group that is a part h of the users lies nearer to r̂ than to r, by the factor 1 − 2h + Σh², and
    r̂ (1 − r̂) is on average r (1 − r) (1 − 1/N − ρ Σn(n − 1)/N²). Both matter where groups are few.
    """
    n_users = int(sizes.sum())
    part = sizes / n_users
    nearer = 1.0 - 2.0 * part + (part**2).sum()
    binomial = overall * (1.0 - overall)  # (n_items,)
    others = sizes * (sizes - 1)
    squares = float(((counts - sizes * overall) ** 2).sum())
    excess = squares * (1.0 - 1.0 / n_users) - float((nearer * sizes * binomial).sum())
    possible = float((nearer * others * binomial).sum()) + squares * float(others.sum()) / n_users**2
    if excess <= 0.0 or possible <= 0.0:
        return float("inf")
    return max(possible / excess - 1.0, 0.0)
