"""Whether a probability can be taken at its word: of what was called a true negative with probability p, how much was?

Beliefs are sorted into bins by 1 − p, the probability of a false negative, with edges close together near 0: that is
where a prior of a few in a thousand puts nearly all of them, and equal bins would hide it in one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

EDGES: Final = (0.0, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)


class Reliability:
    """Counts beliefs and what became of them.

    >>> found = Reliability()
    >>> found.add(np.array([0.9, 0.9, 0.9, 0.2]), np.array([True, True, False, False]))
    >>> {key: round(value, 4) for key, value in found.summary().items()}
    {'called': 0.725, 'were': 0.5, 'brier': 0.2175, 'brier_constant': 0.25, 'ece': 0.225}
    """

    def __init__(self) -> None:
        n = len(EDGES) - 1
        self._n, self._called, self._true = np.zeros(n, dtype=np.int64), np.zeros(n), np.zeros(n, dtype=np.int64)
        self._squares = 0.0

    def add(self, called: np.ndarray, is_true: np.ndarray) -> None:
        """``called`` (B,) probabilities of a true negative, and whether each was one (B,)."""
        bins = np.clip(np.searchsorted(EDGES, 1.0 - called, side="right") - 1, 0, len(EDGES) - 2)
        self._n += np.bincount(bins, minlength=len(self._n))
        self._called += np.bincount(bins, weights=called, minlength=len(self._n))
        self._true += np.bincount(bins, weights=is_true, minlength=len(self._n)).astype(np.int64)
        self._squares += float(((called - is_true) ** 2).sum())

    def summary(self) -> dict[str, float]:
        """Mean belief, share that was true, Brier score (and that of a constant), expected calibration error."""
        n = int(self._n.sum())
        if n == 0:
            return {}
        were = float(self._true.sum() / n)
        return {
            "called": float(self._called.sum() / n),
            "were": were,
            "brier": self._squares / n,
            "brier_constant": were * (1.0 - were),
            "ece": float(np.abs(self._called - self._true).sum() / n),
        }

    def bins(self) -> dict[str, list[Any]]:
        """How many beliefs each bin has, their mean, and how many of them were true; the bins are those of EDGES."""
        called = np.divide(self._called, self._n, out=np.zeros(len(self._n)), where=self._n > 0)
        return {"n": self._n.tolist(), "called": called.round(6).tolist(), "true": self._true.tolist()}


def pooled(tables: Sequence[Mapping[str, Sequence[float]]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Several tables of :meth:`Reliability.bins` as one: counts, mean beliefs and shares that were true, (bins,) each.

    A bin without a belief is nan.
    """
    n = np.sum([table["n"] for table in tables], axis=0)
    called = np.sum([np.multiply(table["n"], table["called"]) for table in tables], axis=0)
    true = np.sum([table["true"] for table in tables], axis=0)
    whole = np.where(n > 0, n, np.nan)
    return n, called / whole, true / whole
