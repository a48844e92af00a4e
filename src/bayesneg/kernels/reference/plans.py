"""What a sampler draws, as plain tuples: for a device that draws it itself instead of copying it from the host."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bayesneg.kernels.reference.pools import PriorForm


class CandidatePlan(NamedTuple):
    """Items and numbers that are drawn for each example."""

    candidates: int  # m unobserved items of the user
    uniforms: int = 0  # numbers in [0, 1)
    probabilities: Any = None  # (n_items,) of independent draws; None for uniform draws without replacement
    prior: PriorForm | None = None  # of the candidates, where the rule reads it


class PoolPlan(NamedTuple):
    """A pool that all examples of a batch share."""

    size: int | None  # N items; None for the positives of the batch
    probabilities: Any = None  # (n_items,) of independent draws; None for uniform draws without replacement
    corrects: bool = True  # whether a loss is corrected by the probabilities


DrawPlan = CandidatePlan | PoolPlan


def log_inclusion(p: np.ndarray, draws: int) -> np.ndarray:
    """log(1 − (1 − p)^n): the log-probability that an item is among n independent draws.

    >>> np.exp(log_inclusion(np.array([0.5, 1.0]), 2))
    array([0.75, 1.  ])
    """
    with np.errstate(divide="ignore"):
        return np.log(-np.expm1(draws * np.log1p(-np.minimum(p, 1.0))))


def pool_log_q(p: np.ndarray, draws: int, n_drawable: int) -> np.ndarray:
    """log q of items in a pool of independent draws: their inclusion against that of a uniform pool of the same size.

    A uniform pool without replacement holds each of the n drawable items with probability min(draws, n) / n.

    >>> np.exp(pool_log_q(np.array([0.5, 0.25]), 2, 3)).round(4)
    array([1.125 , 0.6562])
    """
    return log_inclusion(p, draws) - np.log(min(draws, n_drawable) / n_drawable)
