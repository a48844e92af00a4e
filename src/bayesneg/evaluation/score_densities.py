"""Densities of the scores of true and false negatives: the paper's figure 1."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from bayesneg.data.splits import Split
    from bayesneg.interfaces import Measured, NegativeSampler, Sampled, Scorer

SCORES_AT_ONCE: Final = 1 << 21
DENSITIES: Final = "densities"  # the key of an epoch's line that holds them


@dataclass(frozen=True)
class ScoreDensities:
    """An :class:`~bayesneg.interfaces.Observer` that records the densities of scores after some epochs."""

    split: Split
    epochs: tuple[int, ...]

    def see(self, sampled: Sampled | Measured) -> None:
        return

    def end_epoch(self, epoch: int, sampler: NegativeSampler, scorer: Scorer) -> dict[str, Any]:
        return {DENSITIES: score_densities(scorer, self.split)} if epoch in self.epochs else {}


def score_densities(scorer: Scorer, split: Split, *, bins: int = 60) -> dict[str, Any]:
    """Densities of the scores of true and of false negatives over one grid of ``bins`` bins.

    A false negative is a held-out item, a true negative any other unobserved one. Two passes, one for the range and
    one for the counts, keep no more than a block of scores in memory.

    Args:
        scorer: The model.
        split: Its training and held-out parts.
        bins: Of the grid.

    Returns:
        ``low`` and ``high``, the ends of the grid; ``true`` and ``false`` (bins,), densities of integral one; and
        ``share``, how often a false negative scores above a true one over all users, ties within a bin counted half.
    """
    low, high = np.inf, -np.inf
    for scores, _ in _unobserved(scorer, split):
        low, high = min(low, float(scores.min())), max(high, float(scores.max()))
    counts = np.zeros((2, bins), dtype=np.int64)
    for scores, is_false in _unobserved(scorer, split):
        for row, kind in enumerate((scores[~is_false], scores[is_false])):
            counts[row] += np.histogram(kind, bins=bins, range=(low, high))[0]
    shares = counts / counts.sum(axis=1, keepdims=True)  # (2, bins)
    true, false = shares * (bins / (high - low))
    below = np.cumsum(shares[0]) - shares[0] / 2
    share = float((shares[1] * below).sum())
    return {"low": low, "high": high, "true": true.tolist(), "false": false.tolist(), "share": share}


def _unobserved(scorer: Scorer, split: Split) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Blocks of the scores of unobserved pairs (n,), and which of them are false negatives."""
    users, items = np.flatnonzero(split.train.counts), np.arange(split.train.n_items)
    step = max(1, SCORES_AT_ONCE // len(items))
    for start in range(0, len(users), step):
        block = users[start : start + step]
        free = ~split.train.contains(block[:, None], items)
        is_false = split.held_out.contains(block[:, None], items)
        yield scorer.score_all(block)[free], is_false[free]
