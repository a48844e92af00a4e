"""What every rule has: draws, a specification, and executions that are found by its module's name."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

if TYPE_CHECKING:
    from bayesneg.interfaces import Batch

Chooser = Callable[[int], int]  # the item chosen for the b-th example of a batch


class Draws(NamedTuple):
    """Everything random or independent of the model about B choices, drawn before a score is computed."""

    candidates: np.ndarray  # (B, m) int32, valid up to sizes
    sizes: np.ndarray  # (B,) int32; 0 where the user has no unobserved item
    priors: np.ndarray  # (B, m) float64 probabilities of a false negative, or (B, 0)
    uniforms: np.ndarray  # (B, r) float64 in [0, 1), or (B, 0)


class Rule(Protocol):
    """How a negative is chosen from draws and scores; every implementation is a ``NamedTuple``."""

    def chooser(self, draws: Draws, batch: Batch) -> Chooser:
        """The specification: a function from an example of the batch to the item chosen for it."""
        ...


def choose_batch(rule: Rule, draws: Draws, batch: Batch) -> np.ndarray:
    """The item (B,) that the rule chooses for each pair of the batch, −1 where the user has no unobserved item."""
    chosen = np.full(len(batch.users), -1, dtype=np.int32)
    choose = rule.chooser(draws, batch)
    for b in np.flatnonzero(draws.sizes):
        chosen[b] = choose(int(b))
    return chosen


def load_execution(rule: type, package: str) -> None:
    """Import the module of ``package`` that executes a rule: the one with the name of the rule's module."""
    import_module(f"{package}.{rule.__module__.rpartition('.')[2]}")
