"""The basic priors: probabilities that an unobserved pair is a false negative, before its score is seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from bayesneg.data.interactions import Interactions
from bayesneg.errors import InputError
from bayesneg.interfaces import Prior
from bayesneg.kernels.reference.pools import PerGroup, PerItem, SparseRows

PriorFunction = Callable[[np.ndarray, np.ndarray], np.ndarray]
PriorLike = Prior | PriorFunction | str
MOST_GROUPS = 1000  # the table of a group prior has one row per group


@dataclass(frozen=True)
class Item(Prior):
    """One probability p_l per item, the same for every user.

    Args:
        probabilities: Probabilities (n_items,), each in [0, 1].

    Example:
        >>> Item(np.array([0.1, 0.2])).probability(np.array([0]), np.array([1]))
        array([0.2])
    """

    probabilities: np.ndarray = field(repr=False)

    def __post_init__(self) -> None:
        if np.ndim(self.probabilities) != 1:
            raise InputError(f"Item needs one probability per item, got shape {np.shape(self.probabilities)}")
        object.__setattr__(self, "probabilities", checked(self.probabilities, np.shape(self.probabilities)).copy())

    def probability(self, users: np.ndarray, items: np.ndarray) -> np.ndarray:
        found = self.probabilities.take(items)
        shape = np.broadcast_shapes(np.shape(users), found.shape)
        return found if found.shape == shape else np.broadcast_to(found, shape)

    def form(self) -> PerItem:
        return PerItem(self.probabilities)

    def fit(self, train: Interactions) -> Item:
        if len(self.probabilities) != train.n_items:
            raise InputError(f"the prior has {len(self.probabilities)} items, the data {train.n_items}; give one each")
        return self


@dataclass(frozen=True)
class Popularity(Prior):
    """The paper's prior: p_l = pop_l / N, the item's share of the N training interactions.

    Example:
        >>> from bayesneg.data.synthetic import synthetic
        >>> prior = Popularity().fit(synthetic(20, 30, seed=0))
        >>> round(float(prior.probabilities.sum()), 6)
        1.0

    Reference:
        B. Liu and B. Wang, "Bayesian Negative Sampling for Recommendation", ICDE 2023.
    """

    NAME: ClassVar = "popularity"

    def fit(self, train: Interactions) -> Item:
        return Item(train.popularity / len(train))

    def probability(self, users: np.ndarray, items: np.ndarray) -> np.ndarray:
        raise unfitted(self)


@dataclass(frozen=True)
class Flat(Prior):
    """The same probability for every pair: p = 1/|I| unless given, the paper's BNS-3.

    Args:
        value: Probability of a false negative, by default 1/|I|.

    Example:
        >>> Flat(0.1).probability(np.array([0, 1]), np.array([0, 1]))
        array([0.1, 0.1])

    Reference:
        B. Liu and B. Wang, "Bayesian Negative Sampling for Recommendation", ICDE 2023.
    """

    NAME: ClassVar = "flat"
    value: float | None = None

    def __post_init__(self) -> None:
        if self.value is not None:
            checked(np.asarray(self.value, dtype=np.float64), ())

    def fit(self, train: Interactions) -> Item:
        return Item(np.full(train.n_items, 1.0 / train.n_items if self.value is None else self.value))

    def probability(self, users: np.ndarray, items: np.ndarray) -> np.ndarray:
        if self.value is None:
            raise unfitted(self)
        return np.full(np.broadcast_shapes(np.shape(users), np.shape(items)), self.value)


@dataclass(frozen=True)
class Group(Prior):
    """The popularity prior by user group: p_ul = pop_l/N · (1 + (o_ul − mean_o(l)) / max_o(l)), the paper's BNS-4.

    o_ul counts the training interactions with l by users of u's group; mean and max are over the groups. Users without
    a value form one group.

    Args:
        column: User column whose values are the groups, by default occupation or else the first user column.

    Example:
        >>> Group("age_group").column
        'age_group'

    Reference:
        B. Liu and B. Wang, "Bayesian Negative Sampling for Recommendation", ICDE 2023.
    """

    NAME: ClassVar = "group"
    column: str | None = None
    groups: np.ndarray | None = field(default=None, repr=False, compare=False)  # (n_users,)
    table: np.ndarray | None = field(default=None, repr=False, compare=False)  # (n_groups, n_items)

    def fit(self, train: Interactions) -> Group:
        groups, counts = group_counts(train, self.column)
        deviation = (counts - counts.mean(axis=0)) / np.maximum(counts.max(axis=0), 1)
        table = np.clip(train.popularity / len(train) * (1.0 + deviation), 0.0, 1.0)
        return replace(self, groups=groups, table=table)

    def probability(self, users: np.ndarray, items: np.ndarray) -> np.ndarray:
        if self.groups is None or self.table is None:
            raise unfitted(self)
        return self.table[self.groups[users], items]

    def form(self) -> PerGroup:
        return group_form(self, self.groups, self.table)


@dataclass(frozen=True)
class Oracle(Prior):
    """The paper's upper bound, which uses the test labels: p = (label − 0.2)², 0.64 on held-out pairs, 0.04 elsewhere.

    Args:
        labels: Held-out interactions, which are taken to be the false negatives.
        positive: Probability of the pairs in ``labels``.
        negative: Probability of all other pairs.

    Example:
        >>> from bayesneg.data.synthetic import synthetic
        >>> Oracle(synthetic(20, 30, seed=0)).uses_test_labels
        True

    Reference:
        B. Liu and B. Wang, "Bayesian Negative Sampling for Recommendation", ICDE 2023.
    """

    NAME: ClassVar = "oracle"
    labels: Interactions = field(repr=False)
    positive: float = 0.64
    negative: float = 0.04

    def __post_init__(self) -> None:
        checked(np.array([self.positive, self.negative]), (2,))

    def fit(self, train: Interactions) -> Oracle:
        given, wanted = ((data.n_users, data.n_items) for data in (self.labels, train))
        if given != wanted:
            raise InputError(
                f"labels has {given[0]} users and {given[1]} items, the training data {wanted[0]} and {wanted[1]}; "
                "give the held-out part of the same split"
            )
        return self

    def probability(self, users: np.ndarray, items: np.ndarray) -> np.ndarray:
        from bayesneg.data.lookup import contains

        users, items = np.broadcast_arrays(users, items)
        pairs = users.ravel().astype(np.int64), items.ravel().astype(np.int64)
        found = contains(self.labels.indptr, self.labels.indices, *pairs)
        return np.where(found.reshape(items.shape), self.positive, self.negative)

    def form(self) -> SparseRows:
        return self._form

    @cached_property
    def _form(self) -> SparseRows:
        labels = self.labels
        base, values = np.full(labels.n_users, self.negative), np.full(len(labels), self.positive)
        return SparseRows(base, labels.indptr, labels.indices, values)

    @property
    def uses_test_labels(self) -> bool:
        return True


@dataclass(frozen=True)
class Function(Prior):
    """A prior from a function: p_ul = function(users, items).

    Args:
        function: Function of dense user and item numbers of the same shape, which returns probabilities of that shape.
        sees_test_labels: Whether the function uses test labels, so that records and tables mark the run.

    Example:
        >>> Function(lambda users, items: np.full(items.shape, 0.1)).probability(np.array([[0], [1]]), np.array([2, 3]))
        array([[0.1, 0.1],
               [0.1, 0.1]])
    """

    function: PriorFunction
    sees_test_labels: bool = False

    def probability(self, users: np.ndarray, items: np.ndarray) -> np.ndarray:
        return self.function(*np.broadcast_arrays(users, items))

    @property
    def uses_test_labels(self) -> bool:
        return self.sees_test_labels


CHECKED = (Item, Group, Oracle)  # their probabilities are checked at construction


def group_counts(train: Interactions, column: str | None) -> tuple[np.ndarray, np.ndarray]:
    """The group of each user (n_users,), by its value of a user column, and interactions (n_groups, n_items)."""
    if column is None:
        if not train.user_columns:
            raise InputError("the group prior needs a user column (occupation, age, …), and this data has none")
        column = "occupation" if "occupation" in train.user_columns else next(iter(train.user_columns))
    if column not in train.user_columns:
        known = ", ".join(train.user_columns) or "none"
        raise InputError(f"the data has no user column {column!r} to group by; it has: {known}")
    values = np.array([str(value) for value in train.user_columns[column].tolist()])
    _, groups = np.unique(values, return_inverse=True)
    n_groups = int(groups.max()) + 1
    if n_groups > MOST_GROUPS:
        raise InputError(
            f"the user column {column!r} has {n_groups:,} different values; a group prior needs few groups, at most "
            f"{MOST_GROUPS:,}"
        )
    cells = groups[train.users] * train.n_items + train.indices
    return groups, np.bincount(cells, minlength=n_groups * train.n_items).reshape(-1, train.n_items)


def group_form(prior: Prior, groups: np.ndarray | None, table: np.ndarray | None) -> PerGroup:
    """The form of a fitted prior by group of users."""
    if groups is None or table is None:
        raise unfitted(prior)
    return PerGroup(groups, table)


def as_prior(prior: PriorLike) -> Prior:
    """A prior as it is, a function as :class:`Function`, a name as the prior with its default settings.

    >>> as_prior("flat")
    Flat(value=None)
    """
    if isinstance(prior, Prior):
        return prior
    if isinstance(prior, str):
        return _named(prior)
    if callable(prior):
        return Function(prior)
    raise InputError(f"prior must be a Prior, a name or a function (users, items) → probability, got {prior!r}")


def _named(name: str) -> Prior:
    from bayesneg.samplers.registry import priors

    if name not in priors():
        raise InputError(
            f"prior must be one of {', '.join(priors())}, or an object such as bn.priors.Flat(), got {name!r}"
        )
    try:
        return priors()[name]()
    except TypeError:
        kind = priors()[name].__name__
        raise InputError(f"the prior {name!r} needs settings; give an object, bn.priors.{kind}(…)") from None


def converted(prior: PriorLike) -> Prior:
    """A field that :func:`as_prior` converted at construction, as type checkers must be told."""
    assert isinstance(prior, Prior)
    return prior


def component(prior: PriorLike, within: str) -> Prior:
    """A prior inside another, which uses its probabilities only: one that follows training is refused."""
    inner = as_prior(prior)
    if inner.follows_training:
        raise InputError(
            f"{type(inner).__name__} follows the model during training and cannot be a part of another prior; use it "
            f"without {within}"
        )
    return inner


def component_probability(prior: PriorLike, users: np.ndarray, items: np.ndarray) -> np.ndarray:
    """The probabilities of a prior inside another, checked before they are used."""
    probabilities = converted(prior).probability(users, items)
    if type(prior) in CHECKED:
        return probabilities
    return checked(probabilities, np.broadcast_shapes(users.shape, items.shape))


def probabilities_of(prior: Prior, users: np.ndarray, candidates: np.ndarray) -> np.ndarray:
    """The probabilities of candidates (B, m) of users (B,); any value where a candidate is −1.

    Built-in priors check their values at construction. Those of a custom prior are checked here, since compiled code
    relies on them.
    """
    if type(prior) is Item:
        from bayesneg.kernels.numba import draws

        return draws.looked_up(prior.probabilities, candidates)
    probabilities = prior.probability(users[:, None], np.maximum(candidates, 0))
    return probabilities if type(prior) in CHECKED else checked(probabilities, candidates.shape)


def checked(probabilities: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """The probabilities as float64 (…), each in [0, 1]; an error names the first that is not."""
    try:
        values = np.require(probabilities, np.float64, ["C", "W"])
        if values.shape != shape:
            values = np.array(np.broadcast_to(values, shape))
    except (TypeError, ValueError):
        got = np.asarray(probabilities)
        raise InputError(f"a prior must give numbers of shape {shape}, got {got.dtype} of shape {got.shape}") from None
    if values.size and not (values.min() >= 0.0 and values.max() <= 1.0):  # NaN fails as well
        wrong = ~((values >= 0.0) & (values <= 1.0))
        raise InputError(f"a prior must be a probability between 0 and 1, got {values[wrong].flat[0]}")
    return values


def unfitted(prior: Prior) -> InputError:
    return InputError(f"{type(prior).__name__} learns from training data; call prior.fit(train) first, as fit does")
