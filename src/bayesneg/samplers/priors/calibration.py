"""Whether a prior is right: what it expects beside what turns out, on training data hidden from it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bayesneg.checks import number, whole
from bayesneg.data.interactions import Interactions
from bayesneg.errors import InputError
from bayesneg.interfaces import Prior
from bayesneg.samplers.priors.basic import as_prior, checked, follows_training
from bayesneg.samplers.priors.cross_fitting import unobserved_pairs
from bayesneg.seeding import stream


@dataclass(frozen=True, eq=False)
class Calibration:
    """The reliability curve of a prior, and its sums.

    The bins go from the least to the most probable pairs and expect about the same number of positives each, so that
    the few probable pairs are not lost among the many improbable ones.
    """

    expected: np.ndarray  # (bins,) mean probability
    observed: np.ndarray  # (bins,) share of hidden positives
    count: np.ndarray  # (bins,) pairs
    expected_rate: float  # mean probability over all unobserved pairs
    observed_rate: float  # share of hidden positives among them
    brier: float  # mean squared error of the probabilities
    brier_of_rate: float  # the same for a prior that says the observed rate of every pair
    share: float  # of the training data that was hidden

    @property
    def skill(self) -> float:
        """1 − brier / brier_of_rate: the part of the error that the prior takes away; below 0 it adds some.

        Undefined (nan) where every unobserved pair is a hidden positive, or none.
        """
        return 1.0 - self.brier / self.brier_of_rate if self.brier_of_rate > 0 else math.nan

    def to_dict(self) -> dict[str, Any]:
        return {
            "bins": [
                {"expected": float(e), "observed": float(o), "count": float(n)}
                for e, o, n in zip(self.expected, self.observed, self.count, strict=True)
            ],
            "expected_rate": self.expected_rate,
            "observed_rate": self.observed_rate,
            "brier": self.brier,
            "brier_of_rate": self.brier_of_rate,
            "skill": self.skill,
            "share": self.share,
        }


def calibration_of(
    prior: Prior | Callable[[np.ndarray, np.ndarray], np.ndarray],
    train: Interactions,
    *,
    share: float = 0.2,
    bins: int = 10,
    seed: int = 0,
    learn: Callable[[Prior, Interactions], Prior] | None = None,
) -> Calibration:
    """How well a prior that sees the rest of the training data expects a hidden ``share`` of it.

    Any prior can be judged, one of your own too, unless it looks at test labels or at a model's scores: it is fitted on
    the rest, and asked about pairs outside it (all of a small catalogue, a uniform sample of a large one). No label
    outside ``train`` is touched. The ratio of hidden to observed positives is here share / (1 − share), 0.25 unless
    given; a prior that is told another ratio will be off by that much. ``learn`` gives the prior that has seen the
    rest, if that takes more than its ``fit``.

    >>> from bayesneg.data.synthetic import synthetic
    >>> from bayesneg.samplers.priors.rates import Rate
    >>> found = calibration_of(Rate(hidden=0.25), synthetic(80, 60, seed=0))
    >>> bool(abs(found.expected_rate / found.observed_rate - 1) < 0.5)
    True
    """
    if not isinstance(train, Interactions):
        raise InputError(f"train must be interactions, as split.train or bn.load(…) are, got {type(train).__name__}")
    check_judgeable(as_prior(prior), with_model=learn is not None)
    number("share", share, above=0, most=0.9)
    whole("bins", bins)
    rng = stream(seed, "calibration of a prior")
    hidden_count = round(share * len(train))
    if not 0 < hidden_count < len(train):
        raise InputError(
            f"share {share} of {len(train)} training interactions leaves nothing to hide, or to learn from"
        )
    is_hidden = rng.permutation(len(train)) < hidden_count
    shown = replace(train, truth=None)  # a prior is never shown the truth behind the data
    seen, hidden = shown.select(~is_hidden), shown.select(is_hidden)
    pairs = unobserved_pairs(seen, hidden, rng)
    learned = as_prior(prior).fit(seen) if learn is None else learn(as_prior(prior), seen)
    probabilities = checked(learned.probability(pairs.users, pairs.items), pairs.users.shape)
    return _judged(probabilities, pairs.hidden.astype(np.float64), pairs.weights, bins, share)


def check_judgeable(prior: Prior, *, with_model: bool = False) -> None:
    """An error for a prior that training data alone, or with a model that trains on it, cannot judge."""
    name = type(prior).__name__
    if prior.uses_test_labels:
        raise InputError(f"{name} looks at test labels, of which judging on training data says nothing; leave it out")
    if follows_training(prior) and not with_model:
        raise InputError(
            f"{name} is learned from a model as it trains, and there is none here; `bayesneg priors` trains one, and "
            "an audit judges a sampler with it"
        )


def _judged(p: np.ndarray, hidden: np.ndarray, weights: np.ndarray, bins: int, share: float) -> Calibration:
    rate = float(np.average(hidden, weights=weights))
    order = np.argsort(p, kind="stable")
    mass = np.cumsum((p * weights)[order])
    cuts = p[order][np.searchsorted(mass, mass[-1] * np.arange(1, bins) / bins)]  # equal probabilities stay together
    place = np.unique(np.searchsorted(np.unique(cuts), p, side="left"), return_inverse=True)[1]
    count = np.bincount(place, weights)
    return Calibration(
        expected=np.bincount(place, weights * p) / count,
        observed=np.bincount(place, weights * hidden) / count,
        count=count,
        expected_rate=float(np.average(p, weights=weights)),
        observed_rate=rate,
        brier=float(np.average((p - hidden) ** 2, weights=weights)),
        brier_of_rate=rate * (1.0 - rate),
        share=share,
    )
