"""Calibration of unbias, the predicted probability of a true negative: reliability diagram, Brier score, ECE.

Predictions are binned by 1 − p, the probability of a false negative, with narrow bins near 0, where a prior of a few in
a thousand puts nearly all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

EDGES: Final = (0.0, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)


class Reliability:
    """Counts predictions and outcomes.

    >>> found = Reliability()
    >>> found.add(np.array([0.9, 0.9, 0.9, 0.2]), np.array([True, True, False, False]))
    >>> {key: round(value, 4) for key, value in found.summary().items()}
    {'mean_predicted': 0.725, 'observed_rate': 0.5, 'brier': 0.2175, 'brier_constant': 0.25, 'ece': 0.225}
    """

    def __init__(self) -> None:
        n = len(EDGES) - 1
        self._n, self._predicted, self._true = np.zeros(n, dtype=np.int64), np.zeros(n), np.zeros(n, dtype=np.int64)
        self._squares = 0.0

    def add(self, predicted: np.ndarray, is_true: np.ndarray) -> None:
        """``predicted`` (B,) probabilities of a true negative, and whether each is one (B,)."""
        bins = np.clip(np.searchsorted(EDGES, 1.0 - predicted, side="right") - 1, 0, len(EDGES) - 2)
        self._n += np.bincount(bins, minlength=len(self._n))
        self._predicted += np.bincount(bins, weights=predicted, minlength=len(self._n))
        self._true += np.bincount(bins, weights=is_true, minlength=len(self._n)).astype(np.int64)
        self._squares += float(((predicted - is_true) ** 2).sum())

    def summary(self) -> dict[str, float]:
        """Mean prediction, observed rate, Brier score and that of a constant, expected calibration error."""
        n = int(self._n.sum())
        if n == 0:
            return {}
        rate = float(self._true.sum() / n)
        return {
            "mean_predicted": float(self._predicted.sum() / n),
            "observed_rate": rate,
            "brier": self._squares / n,
            "brier_constant": rate * (1.0 - rate),
            "ece": float(np.abs(self._predicted - self._true).sum() / n),
        }

    def bins(self) -> dict[str, list[Any]]:
        """Of each bin of EDGES: the number of predictions, their mean, and how many were true negatives."""
        mean = np.divide(self._predicted, self._n, out=np.zeros(len(self._n)), where=self._n > 0)
        return {"n": self._n.tolist(), "mean_predicted": mean.round(6).tolist(), "true": self._true.tolist()}


def pooled(tables: Sequence[Mapping[str, Sequence[float]]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Several tables of :meth:`Reliability.bins` as one: counts, mean predictions and observed rates, (bins,) each.

    An empty bin is nan.
    """
    n = np.sum([table["n"] for table in tables], axis=0)
    predicted = np.sum([np.multiply(table["n"], table["mean_predicted"]) for table in tables], axis=0)
    true = np.sum([table["true"] for table in tables], axis=0)
    whole = np.where(n > 0, n, np.nan)
    return n, predicted / whole, true / whole
