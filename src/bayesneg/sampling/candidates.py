"""Where a sampler looks for a negative."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeVar

import numpy as np

from bayesneg.data.interactions import Interactions
from bayesneg.errors import InputError

State = TypeVar("State")


@dataclass(frozen=True)
class UniformDraw:
    """Uniformly over the user's unobserved items, without replacement."""

    def draw(
        self, users: np.ndarray, size: int, *, train: Interactions, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        from bayesneg.kernels import draws

        uniforms = rng.random((len(users), size))
        return draws.uniform_candidates(users, train.indptr, train.indices, train.n_items, uniforms)


def check_candidates(candidates: int | Literal["all"]) -> None:
    """``candidates`` is a whole number of at least 1, or "all" for every unobserved item."""
    if candidates == "all":
        return
    if isinstance(candidates, bool) or not isinstance(candidates, int) or candidates < 1:
        raise InputError(f"candidates must be a whole number of at least 1, or 'all', got {candidates!r}")


def candidate_count(candidates: int | Literal["all"], n_items: int) -> int:
    return n_items if candidates == "all" else min(candidates, n_items)


def no_numbers(n_examples: int) -> np.ndarray:
    """The empty (B, 0) that stands for priors or uniform numbers a rule does not ask for."""
    return np.empty((n_examples, 0), dtype=np.float64)


def prepared(state: State | None) -> State:
    """The state that ``prepare`` made, or an error that says to call it."""
    if state is None:
        raise InputError("this sampler is not bound to data yet; call sampler.prepare(train, rng=rng), as fit does")
    return state
