"""Priors from interaction rates: the share of users with an interaction, overall or in the user's group.

Assume ``hidden`` unobserved positives for each observed one, distributed as the observed ones. If a share r of the
users interacted with an item, then hidden · r of its pairs are hidden positives, among the 1 − r that are unobserved.
An unobserved pair is thus a false negative with probability hidden · r / (1 − r).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from bayesneg.checks import number
from bayesneg.data.interactions import Interactions
from bayesneg.interfaces import Prior
from bayesneg.kernels.reference.pools import PerGroup
from bayesneg.samplers.priors.basic import Item, group_counts, group_form, unfitted
from bayesneg.samplers.priors.calibration_curves import hidden_share


@dataclass(frozen=True)
class Rate(Prior):
    """A prior from the item's interaction rate: p_l = hidden · r / (1 − r) with r = pop_l / n_users.

    The paper's pop_l/N is the item's share of all interactions, smaller by the mean number of interactions per user.

    Args:
        hidden: Assumed ratio of hidden to observed positives.

    Example:
        >>> from bayesneg.data.synthetic import synthetic
        >>> Rate(hidden=0.5).fit(synthetic(20, 30, seed=0)).probabilities.shape
        (30,)
    """

    NAME: ClassVar = "rate"
    hidden: float = 0.25

    def __post_init__(self) -> None:
        number("hidden", self.hidden, above=0)

    def fit(self, train: Interactions) -> Item:
        return Item(hidden_share(train.popularity / train.n_users, self.hidden))

    def probability(self, users: np.ndarray, items: np.ndarray) -> np.ndarray:
        raise unfitted(self)


@dataclass(frozen=True)
class SmoothedGroup(Prior):
    """The rate prior by user group, with shrinkage: p_ul = hidden · r / (1 − r) with r = (c_gl + a·r_l) / (n_g + a).

    c_gl of the n_g users in the group interacted with l; r is shrunk towards the item's overall rate r_l. The strength
    of the shrinkage ``a``, in users, is estimated by empirical Bayes: group rates follow a beta distribution around
    r_l, counts are binomial, and ``a`` is fitted by the method of moments. Where groups do not differ beyond chance the
    prior is :class:`Rate`.

    Args:
        column: User column whose values are the groups, by default occupation or else the first user column.
        hidden: Assumed ratio of hidden to observed positives.

    Example:
        >>> SmoothedGroup("age_group").hidden
        0.25
    """

    NAME: ClassVar = "smoothed"
    column: str | None = None
    hidden: float = 0.25
    groups: np.ndarray | None = field(default=None, repr=False, compare=False)  # (n_users,)
    table: np.ndarray | None = field(default=None, repr=False, compare=False)  # (n_groups, n_items)

    def __post_init__(self) -> None:
        number("hidden", self.hidden, above=0)

    def fit(self, train: Interactions) -> SmoothedGroup:
        groups, counts = group_counts(train, self.column)
        sizes = np.bincount(groups, minlength=len(counts))[:, None]  # (n_groups, 1)
        overall = train.popularity / train.n_users
        weight = shrinkage(counts, sizes, overall)
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

    def form(self) -> PerGroup:
        return group_form(self, self.groups, self.table)


def shrinkage(counts: np.ndarray, sizes: np.ndarray, overall: np.ndarray) -> float:
    """The number of users a that the overall rate counts for; infinite where groups differ no more than by chance.

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
