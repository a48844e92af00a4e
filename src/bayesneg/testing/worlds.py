"""Small random worlds for the contract checks, and what the checks share."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from bayesneg.data.interactions import Interactions
from bayesneg.data.splits import Split, split
from bayesneg.errors import InputError
from bayesneg.interfaces import Batch, Model, NegativeSampler
from bayesneg.models.scorers import EmbeddingScorer
from bayesneg.runs.run import Run
from bayesneg.seeding import stream
from bayesneg.training import fit


class World(NamedTuple):
    """Training data and a fixed model."""

    train: Interactions
    scorer: EmbeddingScorer

    def batch(self, seed: int = 0, *, epoch: int = 1) -> Batch:
        """All training pairs of the world."""
        positions, train = np.arange(len(self.train)), self.train
        rng = stream(seed, "draws", epoch)
        return Batch(train.users.copy(), train.indices.copy(), positions, epoch, train, self.scorer, rng)


def worlds_of(train: Interactions | None) -> list[World]:
    """Worlds of every density, with a user who has interacted with everything, and one as in practice."""
    if train is not None:
        return [world_of(train, 0)]
    return [world_of(_interactions(seed, most), seed) for seed, most in ((0, 1.0), (1, 1.0), (2, 0.3))]


def world_of(train: Interactions, seed: int) -> World:
    rng = stream(seed, "scorer")
    users, items = (rng.normal(size=(n, 4)).astype(np.float32) for n in (train.n_users, train.n_items))
    return World(train, EmbeddingScorer(users, items))


def _interactions(seed: int, most: float, n_users: int = 30, n_items: int = 40) -> Interactions:
    """Users with one item up to a share ``most`` of all items; the first has that share."""
    rng = stream(seed, "world")
    sizes = np.append(int(most * n_items), rng.integers(1, int(most * n_items) + 1, n_users - 1))
    rows = [rng.choice(n_items, size, replace=False) for size in sizes]
    return Interactions.from_numbers(
        np.repeat(np.arange(n_users), sizes), np.concatenate(rows),
        user_ids=np.arange(n_users), item_ids=np.arange(n_items),
        user_columns={"group": rng.choice(["a", "b", "c"], n_users)}, name="contract",
    )  # fmt: skip


def parts_of(train: Interactions) -> Split:
    return split(train, test=0.2, seed=0)


def run_fit(model: Model, parts: Split, sampler: NegativeSampler, where: str, **options: Any) -> Run:
    try:
        return fit(model, parts, sampler, progress=False, **options)
    except InputError as error:
        raise AssertionError(f"{where}: {error}") from error


@contextmanager
def global_random_state(name: str) -> Iterator[None]:
    """Fails if the block draws from the global random state of Python, NumPy or torch."""

    def state() -> list[bytes]:
        torch = sys.modules.get("torch")
        drawn = np.random.get_state(legacy=False)["state"]  # noqa: NPY002
        found = [repr(random.getstate()).encode(), drawn["key"].tobytes() + bytes([drawn["pos"] % 256])]
        return found if torch is None else [*found, torch.get_rng_state().numpy().tobytes()]

    before = state()
    yield
    require(
        before == state(), f"{name} draws from global random state; draw from batch.rng, the rng of prepare, or a seed"
    )


def name_of(part: object) -> str:
    return type(part).__name__


@contextmanager
def errors_named(where: str) -> Iterator[None]:
    """An exception of the checked object becomes a sentence that says where it was raised."""
    try:
        yield
    except AssertionError:
        raise
    except Exception as error:
        raise AssertionError(f"{where}, raised {type(error).__name__}: {error}; see the traceback above") from error


def require(condition: bool, sentence: str) -> None:
    if not condition:
        raise AssertionError(sentence)
