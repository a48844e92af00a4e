"""How good the sampled negatives were, epoch by epoch: TNR and INF.

From "Bayesian Negative Sampling for Recommendation" (Liu and Wang, ICDE 2023), section "Evaluation Metrics"::

    TNR = #TN / (#TN + #FN)        INF = Σ_j info(j) · sgn(j) / (#TN + #FN)

A sampled item is a false negative (FN, sgn = −1) if the user is known to like it, and a true negative (TN, sgn = 1)
otherwise. Labels are the held-out part of the split and, where it is known, the ground truth (``tnr_true``,
``inf_true``): held-out labels miss items that a user likes but never interacted with. Of several weighted negatives
each counts by its share of the example's weights, so that all examples count alike.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np

from bayesneg.data import lookup
from bayesneg.interfaces import NO_NEGATIVE, Measured, Sampled, Sums
from bayesneg.kernels.numba import draws
from bayesneg.seeding import seed_from, stream

if TYPE_CHECKING:
    from bayesneg.data.interactions import Interactions, Truth
    from bayesneg.data.splits import Split

MOST_PAIRS: Final = 50_000_000  # up to here the truth of every pair is used, beyond it that of a sample
PAIRS_AT_ONCE: Final = 250_000
SAMPLE_SIZE: Final = 1_000_000


class SamplingQuality:
    """Counts true and false negatives over an epoch.

    Args:
        split: The split whose held-out part, and ground truth, label the negatives.

    >>> from bayesneg.data.interactions import Interactions
    >>> from bayesneg.data.splits import Split
    >>> from bayesneg.interfaces import Sampled
    >>> data = Interactions.from_pairs([1, 1, 2, 2], ["a", "b", "a", "c"])
    >>> split = Split(train=data.select(data.indices == 0), test=data.select(data.indices > 0))
    >>> quality = SamplingQuality(split)
    >>> users, negatives = np.array([0, 1]), np.array([1, 1])  # "b" twice: held out of user 1, not of user 2
    >>> quality.add(Sampled(users, negatives, info=np.array([0.5, 0.25])))
    >>> quality.result()  # doctest: +ELLIPSIS
    {'tnr': 0.5, 'inf': -0.125, 'gradient_fn': 0.666..., 'tnr_uniform': 0.5, 'skipped': 0}
    """

    def __init__(self, split: Split) -> None:
        self._split = split
        self.start_epoch()

    def start_epoch(self) -> None:
        """Reset the counts."""
        self._held_out, self._truth, self._skipped = Tally(), Tally(), 0

    def add(self, sampled: Sampled | Measured) -> None:
        """Count one block of sampled negatives; examples without a negative are counted as skipped."""
        if isinstance(sampled, Measured):
            self._skipped += sampled.skipped
            for name, tally in (("held_out", self._held_out), ("truth", self._truth)):
                if name in sampled.false:
                    tally.add_sums(sampled.all, sampled.false[name])
            return
        picked, weights = sampled.negatives != NO_NEGATIVE, None
        if picked.ndim == 2:
            weights = _shares(picked if sampled.weights is None else np.where(picked, sampled.weights, 0.0))
            picked = weights > 0
        self._skipped += int((~picked.reshape(len(picked), -1).any(axis=1)).sum())
        users = np.broadcast_to(sampled.users.reshape(-1, *(1,) * (picked.ndim - 1)), picked.shape)[picked]
        items, info = sampled.negatives[picked], sampled.info[picked]
        weights, gradient = (None if part is None else part[picked] for part in (weights, sampled.gradient))
        self._held_out.add(_contains(self._split.held_out, users, items), info, weights, gradient)
        if self._split.truth is not None:
            self._truth.add(self._split.truth.likes(users, items), info, weights, gradient)

    @cached_property
    def labels(self) -> dict[str, Interactions]:
        """Known false negatives as rows of users, for learners that measure what they sample themselves."""
        found = {"held_out": self._split.held_out}
        train, truth = self._split.train, self._split.truth
        if truth is not None and train.n_users * train.n_items <= MOST_PAIRS:
            found["truth"] = _liked_unobserved(train, truth)
        return found

    @property
    def skipped(self) -> int:
        """The number of examples of the epoch without a negative that counts."""
        return self._skipped

    def result(self) -> dict[str, float]:
        """TNR and INF of the epoch, the expected TNR of uniform sampling, and the number of skipped examples."""
        result: dict[str, float] = {}
        if len(self._split.held_out):  # without labels every negative would count as true
            result |= {
                "tnr": self._held_out.tnr,
                "inf": self._held_out.inf,
                "gradient_fn": self._held_out.gradient_fn,
                "tnr_uniform": self.tnr_uniform,
            }
        result["skipped"] = self._skipped
        if self._split.truth is not None:
            result |= {
                "tnr_true": self._truth.tnr,
                "inf_true": self._truth.inf,
                "gradient_fn_true": self._truth.gradient_fn,
                "tnr_uniform_true": self.tnr_uniform_true,
            }
        return result

    @cached_property
    def tnr_uniform(self) -> float:
        """1 − the mean over training examples of |held_out(u)| / n_u, n_u the user's unobserved items."""
        return _expected_tnr(self._split.train, self._split.held_out.counts)

    @cached_property
    def tnr_uniform_true(self) -> float:
        """The same against the ground truth: exact for small data, else estimated from a sample."""
        train, truth = self._split.train, self._split.truth
        if truth is None:
            return float("nan")
        if train.n_users * train.n_items <= MOST_PAIRS:
            return _expected_tnr(train, _n_liked_unobserved(train, truth))
        return _sampled_tnr(train, truth)


def _shares(weights: np.ndarray) -> np.ndarray:
    """Weights (B, K) divided by their sum, so that an example counts as one; 0 where none is above 0."""
    total = weights.sum(axis=1, keepdims=True, dtype=np.float64)
    return weights / np.where(total > 0, total, 1.0)


class Tally:
    """Running sums over true and false negatives: their weights, the information they carry, their gradients."""

    def __init__(self) -> None:
        self.n, self.n_false, self.signed_info = 0.0, 0.0, 0.0
        self.gradient, self.false_gradient = 0.0, 0.0

    def add(
        self,
        is_false: np.ndarray,
        info: np.ndarray,
        weights: np.ndarray | None = None,
        gradient: np.ndarray | None = None,
    ) -> None:
        gradient = info if gradient is None else gradient
        if weights is None:
            self.n += len(is_false)
            self.n_false += int(np.count_nonzero(is_false))
            self.signed_info += float(np.where(is_false, -info, info).sum(dtype=np.float64))
        else:
            self.n += float(weights.sum(dtype=np.float64))
            self.n_false += float(weights[is_false].sum(dtype=np.float64))
            self.signed_info += float((weights * np.where(is_false, -info, info)).sum(dtype=np.float64))
        self.gradient += float(gradient.sum(dtype=np.float64))
        self.false_gradient += float(gradient[is_false].sum(dtype=np.float64))

    def add_sums(self, all_: Sums, false: Sums) -> None:
        """Add what a learner has measured itself: sums over all negatives, and over false ones."""
        self.n, self.n_false = self.n + all_.weight, self.n_false + false.weight
        self.signed_info += all_.info - 2.0 * false.info
        self.gradient, self.false_gradient = self.gradient + all_.gradient, self.false_gradient + false.gradient

    @property
    def tnr(self) -> float:
        return (self.n - self.n_false) / self.n if self.n else float("nan")

    @property
    def inf(self) -> float:
        return self.signed_info / self.n if self.n else float("nan")

    @property
    def gradient_fn(self) -> float:
        """The share of the gradient that falls on false negatives."""
        return self.false_gradient / self.gradient if self.gradient else float("nan")


def _contains(data: Interactions, users: np.ndarray, items: np.ndarray) -> np.ndarray:
    return lookup.contains(data.indptr, data.indices, users.astype(np.int64), items.astype(np.int64))


def _expected_tnr(train: Interactions, n_false: np.ndarray) -> float:
    """The TNR of uniform sampling if ``n_false`` (n_users,) of each user's unobserved items are false."""
    n_unobserved = train.n_items - train.counts
    weights = np.where(n_unobserved > 0, train.counts, 0)  # one draw for each training example
    if weights.sum() == 0:
        return float("nan")
    return 1.0 - float(np.average(n_false / np.maximum(n_unobserved, 1), weights=weights))


def _n_liked_unobserved(train: Interactions, truth: Truth) -> np.ndarray:
    """Number of items outside training that each user likes, (n_users,), in chunks of users."""
    liked = np.zeros(train.n_users, dtype=np.int64)
    for start, likes in _likes_in_chunks(train, truth):
        liked[start : start + len(likes)] = np.count_nonzero(likes, axis=1)
    return liked


def _liked_unobserved(train: Interactions, truth: Truth) -> Interactions:
    """The pairs outside training that users like."""
    from bayesneg.data.interactions import Interactions

    users, items = [], []
    for start, likes in _likes_in_chunks(train, truth):
        found = np.nonzero(likes)
        users.append(found[0] + start)
        items.append(found[1])
    return Interactions.from_numbers(
        np.concatenate(users), np.concatenate(items), user_ids=train.user_ids, item_ids=train.item_ids
    )


def _likes_in_chunks(train: Interactions, truth: Truth) -> Iterator[tuple[int, np.ndarray]]:
    """For chunks of users, the first user and what they like outside training, (step, n_items)."""
    items = np.arange(train.n_items)
    step = max(1, PAIRS_AT_ONCE // train.n_items)
    for start in range(0, train.n_users, step):
        users = np.arange(start, min(start + step, train.n_users))
        likes = np.array(truth.likes(users[:, None], items[None, :]))
        observed = slice(train.indptr[start], train.indptr[users[-1] + 1])
        likes[train.users[observed] - start, train.indices[observed]] = False
        yield start, likes


def _sampled_tnr(train: Interactions, truth: Truth) -> float:
    """From a fixed sample of (training example, uniform unobserved item) pairs; the error is below 0.0005."""
    n_unobserved = train.n_items - train.counts
    examples = np.flatnonzero(n_unobserved[train.users] > 0)
    if len(examples) == 0:
        return float("nan")
    rng = stream(0, "tnr_uniform_true")
    users = train.users[rng.choice(examples, SAMPLE_SIZE)].astype(np.int64)
    items = draws.uniform_candidates(users, train.observed, 1, seed_from(rng))[0][:, 0]
    n_false = sum(
        np.count_nonzero(truth.likes(users[start : start + PAIRS_AT_ONCE], items[start : start + PAIRS_AT_ONCE]))
        for start in range(0, SAMPLE_SIZE, PAIRS_AT_ONCE)
    )
    return 1.0 - n_false / SAMPLE_SIZE
