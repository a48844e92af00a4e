"""The density of held-out pairs over the score list, relative to that of unobserved items."""

from __future__ import annotations

import numpy as np

from bayesneg.samplers.posterior.held_out import Ranks

POINTS = 48  # of a table over the score list, at most
MIN_PER_BIN = 25  # held-out pairs in a bin


def rising_density(ranks: Ranks, n_items: int) -> tuple[np.ndarray, np.ndarray]:
    """The density h of held-out pairs over M, relative to uniform: points from 0 to 1, and the non-decreasing h there.

    M of a pair is (n − above)/(n + 1). Bins with fixed edges, geometric in 1−M, are merged from the top until each has
    enough pairs; h is their number over the number expected if ranks were uniform.
    """
    from scipy.optimize import isotonic_regression

    edges = np.concatenate(([0.0], np.geomspace(1.5 / (n_items + 1), 1.0, POINTS - 1)))  # of 1−M
    tails = (ranks.above + 1) / (ranks.n + 1)
    counts = np.histogram(tails, edges)[0]
    last = np.clip(np.floor(edges[:, None] * (ranks.n + 1) * (1 + 1e-12)), 0, ranks.n)  # (E, P), last rank in each bin
    uniform = (np.diff(last, axis=0) / ranks.n).sum(axis=1)
    counts, uniform, edges = _merged(counts, uniform, edges)
    h = isotonic_regression(counts / uniform, weights=uniform, increasing=False).x
    middles = 1.0 - (edges[:-1] + edges[1:]) / 2.0
    return np.concatenate(([0.0], middles[::-1])), np.concatenate((h[-1:], h[::-1]))


def _merged(counts: np.ndarray, uniform: np.ndarray, edges: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Bins merged with the next, from the first on, until each has enough pairs; the last takes the rest."""
    ends, found, expected = [0], 0, 0.0
    for bin_ in range(len(counts)):
        found, expected = found + counts[bin_], expected + uniform[bin_]
        if found >= MIN_PER_BIN and expected > 0:
            ends.append(bin_ + 1)
            found, expected = 0, 0.0
    if len(ends) > 1:
        ends.pop()
    ends.append(len(counts))
    return np.add.reduceat(counts, ends[:-1]), np.add.reduceat(uniform, ends[:-1]), edges[ends]
