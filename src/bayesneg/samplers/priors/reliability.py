"""The calibration of a prior, on training data hidden from it: reliability diagram, Brier score, ECE."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bayesneg.checks import number, whole
from bayesneg.data.interactions import Interactions
from bayesneg.data.splits import Split
from bayesneg.errors import InputError
from bayesneg.interfaces import Prior
from bayesneg.samplers.priors.basic import PriorLike, as_prior, checked
from bayesneg.samplers.priors.cross_fitting import unobserved_pairs
from bayesneg.seeding import stream

CLIP = 1e-9  # no probability counts as surer than this in the log loss, which would be infinite


@dataclass(frozen=True, eq=False)
class Calibration:
    """The reliability diagram of a prior over unobserved pairs, with summary statistics.

    The bins go from the least to the most probable pairs and have about the same expected number of positives each, so
    that the few probable pairs are not lost among the many improbable ones.

    Args:
        mean_predicted: Mean predicted probability of each bin (bins,).
        observed_rate: Share of hidden positives in each bin (bins,).
        count: Number of pairs in each bin (bins,).
        predicted_rate: Mean predicted probability over all unobserved pairs.
        base_rate: Share of hidden positives among all unobserved pairs.
        brier: Brier score, the mean squared error of the probabilities.
        log_loss: Mean negative log likelihood of the labels, probabilities clipped to 1e-9 … 1 − 1e-9.
        share: Share of the training data that was hidden.
    """

    mean_predicted: np.ndarray
    observed_rate: np.ndarray
    count: np.ndarray
    predicted_rate: float
    base_rate: float
    brier: float
    log_loss: float
    share: float

    @property
    def skill(self) -> float:
        """Brier skill score: 1 − brier / (base_rate·(1 − base_rate)), relative to the constant base rate.

        Undefined (nan) where every unobserved pair is a hidden positive, or none.
        """
        reference = self.base_rate * (1.0 - self.base_rate)
        return 1.0 - self.brier / reference if reference > 0 else math.nan

    @property
    def ece(self) -> float:
        """Expected calibration error: the mean of |mean_predicted − observed_rate| over pairs."""
        return float(np.average(np.abs(self.mean_predicted - self.observed_rate), weights=self.count))

    def to_dict(self) -> dict[str, Any]:
        """Convert to plain values, for JSON.

        Returns:
            The summary measures, and one entry per bin under ``bins``.
        """
        bins = zip(self.mean_predicted.tolist(), self.observed_rate.tolist(), self.count.tolist(), strict=True)
        return {
            "bins": [dict(zip(("mean_predicted", "observed_rate", "count"), each, strict=True)) for each in bins],
            "predicted_rate": self.predicted_rate,
            "base_rate": self.base_rate,
            "brier": self.brier,
            "log_loss": self.log_loss,
            "skill": self.skill,
            "ece": self.ece,
            "share": self.share,
        }


def calibration(
    prior: PriorLike,
    train: Interactions,
    *,
    share: float = 0.2,
    bins: int = 10,
    seed: int = 0,
    learn: Callable[[Prior, Split], Prior] | None = None,
) -> Calibration:
    """The calibration of a prior that is fitted to a part of the training data, on the rest.

    Any prior can be evaluated, custom ones too, unless it uses test labels or a model's scores. It is fitted to the
    visible part and asked for the probability of pairs outside it: all of a small catalogue, a uniform sample of a
    large one. No label outside ``train`` is used. The ratio of hidden to observed positives is share / (1 − share),
    0.25 by default; a prior that assumes another ratio is off by that factor.

    Args:
        prior: A prior, a function ``(users, items) → probability``, or the name of a prior.
        train: Training interactions, such as ``split.train``.
        share: Share of the training interactions that is hidden.
        bins: Number of bins of the reliability diagram, fewer where many pairs have the same probability.
        seed: Seed of the hidden share.
        learn: Fits the prior to the train part of a split whose test part is the hidden share, if ``fit`` of the prior
            is not enough.

    Returns:
        The reliability diagram and its summary statistics.

    >>> from bayesneg.data.synthetic import synthetic
    >>> from bayesneg.samplers.priors.rates import Rate
    >>> found = calibration(Rate(hidden=0.25), synthetic(80, 60, seed=0))
    >>> bool(abs(found.predicted_rate / found.base_rate - 1) < 0.5)
    True
    """
    if not isinstance(train, Interactions):
        raise InputError(f"train must be interactions, as split.train or bn.load(…) are, got {type(train).__name__}")
    prior = as_prior(prior)
    check_calibratable(prior, with_model=learn is not None)
    number("share", share, above=0, most=0.9)
    whole("bins", bins)
    rng = stream(seed, "calibration of a prior")
    hidden_count = round(share * len(train))
    if not 0 < hidden_count < len(train):
        raise InputError(
            f"share {share} of {len(train)} training interactions leaves none to hide or none to fit the prior to"
        )
    is_hidden = rng.permutation(len(train)) < hidden_count
    shown = replace(train, truth=None)  # a prior is never shown the truth behind synthetic data
    parts = Split(shown.select(~is_hidden), shown.select(is_hidden))
    pairs = unobserved_pairs(parts.train, parts.test, rng)
    fitted = prior.fit(parts.train) if learn is None else learn(prior, parts)
    probabilities = checked(fitted.probability(pairs.users, pairs.items), pairs.users.shape)
    return _binned(probabilities, pairs.hidden.astype(np.float64), pairs.weights, bins, share)


def check_calibratable(prior: Prior, *, with_model: bool = False) -> None:
    """An error for a prior that cannot be evaluated on training data alone, or with a model trained on it."""
    name = type(prior).__name__
    if prior.uses_test_labels:
        raise InputError(f"{name} uses test labels, so its calibration on training data is meaningless; leave it out")
    if prior.follows_training and not with_model:
        raise InputError(
            f"{name} follows the model during training, and no model is trained here; `bayesneg priors` trains one"
        )


def _binned(p: np.ndarray, hidden: np.ndarray, weights: np.ndarray, bins: int, share: float) -> Calibration:
    order = np.argsort(p, kind="stable")
    mass = np.cumsum((p * weights)[order])
    cuts = p[order][np.searchsorted(mass, mass[-1] * np.arange(1, bins) / bins)]  # equal probabilities share a bin
    bin_ = np.unique(np.searchsorted(np.unique(cuts), p, side="left"), return_inverse=True)[1]
    count = np.bincount(bin_, weights)
    likely = np.clip(p, CLIP, 1.0 - CLIP)
    return Calibration(
        mean_predicted=np.bincount(bin_, weights * p) / count,
        observed_rate=np.bincount(bin_, weights * hidden) / count,
        count=count,
        predicted_rate=float(np.average(p, weights=weights)),
        base_rate=float(np.average(hidden, weights=weights)),
        brier=float(np.average((p - hidden) ** 2, weights=weights)),
        log_loss=float(np.average(-np.log(np.where(hidden > 0, likely, 1.0 - likely)), weights=weights)),
        share=share,
    )
