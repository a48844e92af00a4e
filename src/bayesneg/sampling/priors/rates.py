"""Priors from how many users chose an item: of all of them, or of a user's group.

If for each observed positive there are ``hidden`` unobserved ones, spread as the observed, then a user has not been
seen to choose an item it likes with probability hidden · (the share of users who chose it).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from bayesneg.checks import number
from bayesneg.data.interactions import Interactions
from bayesneg.interfaces import Prior
from bayesneg.sampling.priors.basic import ItemPrior, group_counts, unfitted


@dataclass(frozen=True)
class RatePrior(Prior):
    """hidden · pop_l / n_users; ``hidden`` is the believed ratio of hidden to observed positives.

    The paper's pop_l/N is the item's share of interactions, which is smaller by the number of interactions per user.
    """

    hidden: float = 0.25

    def __post_init__(self) -> None:
        number("hidden", self.hidden, above=0)

    def fit(self, train: Interactions) -> ItemPrior:
        return ItemPrior(np.minimum(self.hidden * train.popularity / train.n_users, 1.0))

    def probability(self, users: np.ndarray, items: np.ndarray) -> np.ndarray:
        raise unfitted(self)


@dataclass(frozen=True)
class SmoothedGroupPrior(Prior):
    """hidden · (c_gl + a·r_l) / (n_g + a): the item's rate in the user's group, shrunk towards its rate r_l overall.

    c_gl of the n_g users in the group chose l. ``a`` is the number of users the overall rate counts for, estimated from
    how much groups differ beyond chance (empirical Bayes: rates of groups follow a beta distribution around r_l, counts
    are binomial; by the method of moments). Where groups do not differ it is the :class:`RatePrior`.
    """

    column: str = "occupation"
    hidden: float = 0.25
    groups: np.ndarray | None = field(default=None, repr=False, compare=False)  # (n_users,)
    table: np.ndarray | None = field(default=None, repr=False, compare=False)  # (n_groups, n_items)

    def __post_init__(self) -> None:
        number("hidden", self.hidden, above=0)

    def fit(self, train: Interactions) -> SmoothedGroupPrior:
        groups, counts = group_counts(train, self.column)
        sizes = np.bincount(groups, minlength=len(counts))[:, None]  # (n_groups, 1)
        overall = train.popularity / train.n_users
        weight = pull(counts, sizes, overall)
        rates = (
            (counts + weight * overall) / (sizes + weight)
            if np.isfinite(weight)
            else np.tile(overall, (len(counts), 1))
        )
        return replace(self, groups=groups, table=np.minimum(self.hidden * rates, 1.0))

    def probability(self, users: np.ndarray, items: np.ndarray) -> np.ndarray:
        if self.groups is None or self.table is None:
            raise unfitted(self)
        return self.table[self.groups[users], items]


def pull(counts: np.ndarray, sizes: np.ndarray, overall: np.ndarray) -> float:
    """How many users the overall rate counts for, a; infinite where groups differ no more than by chance.

    With ρ = 1 / (a + 1) a count has variance n r (1 − r) (1 + (n − 1) ρ); ρ is such that the squared deviations over
    all groups and items sum up to what they are.
    """
    binomial = overall * (1.0 - overall)  # (n_items,)
    excess = float(((counts - sizes * overall) ** 2).sum() - (sizes * binomial).sum())
    possible = float((sizes * (sizes - 1) * binomial).sum())
    if excess <= 0.0 or possible <= 0.0:
        return float("inf")
    return max(possible / excess - 1.0, 0.0)
