"""A prior for exposure data: items that users were shown and did not interact with."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from bayesneg.checks import number
from bayesneg.data.interactions import Interactions
from bayesneg.data.splits import TIMED, Split
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


def passed_over(shown: Interactions, interactions: Interactions, split: Split | None = None) -> Interactions:
    """The pairs that were shown without an interaction, less those that belong to the held-out parts of a split.

    Pairs must be held out as the interactions are: otherwise those missing from what was shown would be the test
    labels, and the prior would leak them. Where a random share of the interactions is held out, the same share of these
    pairs is. Where the newest are, so are the pairs that were shown last at the time of the first held-out interaction
    or later; where the last of each user are, at the time of the user's first.
    """
    left = ~matched(interactions, shown).contains(shown.users, shown.indices)
    if split is not None:
        left &= _is_known(shown, split)
    return Interactions.from_numbers(
        shown.users[left], shown.indices[left], user_ids=shown.user_ids, item_ids=shown.item_ids, name=shown.name
    )


def _is_known(shown: Interactions, split: Split) -> np.ndarray:
    """True (n,) for the shown pairs that belong to the training part, by the rules that its interactions follow."""
    parts = {"test": split.test, "validation": split.validation}
    held_out = {name: part for name, part in parts.items() if part is not None and len(part)}
    timed = {name: part for name, part in held_out.items() if split.rule_of(name) in TIMED}
    known = np.ones(len(shown), dtype=bool)
    for name, part in timed.items():
        known &= _is_before(shown, part, per_user=split.rule_of(name) == "last")
    n_random = sum(len(part) for name, part in held_out.items() if name not in timed)
    n_split = n_random + len(split.train) + (len(timed["validation"]) if "validation" in timed else 0)
    return known & (stream(0, "shown").random(len(shown)) >= n_random / max(1, n_split))


def _is_before(shown: Interactions, held_out: Interactions, *, per_user: bool) -> np.ndarray:
    """True (n,) for pairs that were last shown before the first held-out interaction, of the same user or of any."""
    if shown.times is None or held_out.times is None or np.isnan(shown.times).any():
        what = held_out.name if held_out.times is None else shown.name
        raise InputError(
            f"{what} has no time for every pair, but the split holds out the newest interactions: pairs that were "
            "shown as late must be held out too; add a column named time, or split by interaction or user"
        )
    if not per_user:
        return np.asarray(shown.times < held_out.times.min())
    first = np.full(shown.n_users, np.inf)
    users = _numbers(held_out.user_ids, shown.user_ids)[held_out.users]
    np.minimum.at(first, users[users >= 0], held_out.times[users >= 0])
    return np.asarray(shown.times < first[shown.users])


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
