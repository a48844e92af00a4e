"""A prior for exposure data: items that users were shown and did not interact with."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from bayesneg.checks import number
from bayesneg.data.interactions import Interactions
from bayesneg.errors import InputError
from bayesneg.interfaces import Prior
from bayesneg.kernels.reference.pools import Computed, PriorForm, SparseRows
from bayesneg.samplers.priors.basic import PriorLike, component, component_probability, converted
from bayesneg.samplers.priors.calibration_curves import scale_odds
from bayesneg.samplers.priors.rates import Rate
from bayesneg.seeding import stream


@dataclass(frozen=True)
class Exposure(Prior):
    """A prior with the odds of rejected pairs scaled: p/(1−p) · seen for pairs that were shown without an interaction.

    An unobserved item that was never shown may well be relevant; one that the user passed over probably is not. The
    identifiers of the rejected pairs are matched with those of the training data in ``fit``, and pairs of unknown users
    or items are dropped. Rejected pairs must not contain held-out interactions: that would leak test labels.

    Args:
        rejected: Pairs that were shown without an interaction, as :func:`bayesneg.load` reads them.
        base: Prior of all pairs, as an object or a function ``(users, items) → probability``.
        seen: Factor on the odds of the rejected pairs, from 0 to 1.

    Example:
        >>> from bayesneg.data.synthetic import synthetic
        >>> from bayesneg.samplers.priors.basic import Flat
        >>> world = synthetic(20, 30, seed=0)
        >>> prior = Exposure(world, base=Flat(0.5), seen=0.1).fit(world)
        >>> round(float(prior.probability(world.users[:1], world.indices[:1])[0]), 6)
        0.090909
    """

    rejected: Interactions = field(repr=False)
    base: PriorLike = field(default_factory=Rate)
    seen: float = 0.1

    def __post_init__(self) -> None:
        number("seen", self.seen, least=0, most=1)
        if not isinstance(self.rejected, Interactions):
            raise InputError(
                f"rejected must be interactions, got {type(self.rejected).__name__}; bn.load reads a file or a frame"
            )
        object.__setattr__(self, "base", component(self.base, "Exposure"))

    def fit(self, train: Interactions) -> Exposure:
        return replace(self, rejected=matched(self.rejected, train), base=converted(self.base).fit(train))

    def probability(self, users: np.ndarray, items: np.ndarray) -> np.ndarray:
        if np.max(users, initial=0) >= self.rejected.n_users or np.max(items, initial=0) >= self.rejected.n_items:
            raise InputError("Exposure numbers users and items by the training data; call prior.fit(train) first")
        base = component_probability(self.base, users, items)
        return np.where(self.rejected.contains(users, items), scale_odds(base, self.seen), base)

    def form(self) -> PriorForm:
        return self._form

    @cached_property
    def _form(self) -> PriorForm:
        base, rejected = converted(self.base).form(), self.rejected
        if isinstance(base, Computed):
            return Computed(self.probability)
        values = self.probability(rejected.users, rejected.indices)
        return SparseRows(base, rejected.indptr, rejected.indices, values)

    @property
    def uses_test_labels(self) -> bool:
        return converted(self.base).uses_test_labels


def passed_over(shown: Interactions, interactions: Interactions, *, held_out: float = 0.0) -> Interactions:
    """The pairs that were shown without an interaction, less a random share ``held_out`` of them.

    Where a share of the interactions is held out, the same share of these pairs must be: otherwise the pairs missing
    from what was shown would be exactly the test labels, and the prior would leak them.
    """
    left = ~matched(interactions, shown).contains(shown.users, shown.indices)
    left &= stream(0, "shown").random(len(left)) >= held_out
    return Interactions.from_numbers(
        shown.users[left], shown.indices[left], user_ids=shown.user_ids, item_ids=shown.item_ids, name=shown.name
    )


def matched(pairs: Interactions, train: Interactions) -> Interactions:
    """The pairs whose user and item are in the training data, in its dense numbers."""
    if pairs.user_ids is train.user_ids and pairs.item_ids is train.item_ids:
        return pairs
    users = _numbers(pairs.user_ids, train.user_ids)[pairs.users]
    items = _numbers(pairs.item_ids, train.item_ids)[pairs.indices]
    known = (users >= 0) & (items >= 0)
    if not known.any():
        raise InputError(
            f"{pairs.name}: no pair has a user and an item of the training data; are the identifiers the same?"
        )
    return Interactions.from_numbers(
        users[known], items[known], user_ids=train.user_ids, item_ids=train.item_ids, name=pairs.name
    )


def _numbers(ids: np.ndarray, known: np.ndarray) -> np.ndarray:
    """The dense number of each identifier, −1 where it is unknown; integers and their decimal strings are the same."""
    places = {str(raw): number for number, raw in enumerate(known.tolist())}
    return np.array([places.get(str(raw), -1) for raw in ids.tolist()], dtype=np.int64)
