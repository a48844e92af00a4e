"""Small worlds with known answers, shared by tests."""

from __future__ import annotations

import numpy as np

from bayesneg.data.interactions import Interactions
from bayesneg.interfaces import NO_NEGATIVE, Batch, NegativeSampler
from bayesneg.models.scorers import EmbeddingScorer


def interactions(rows: list[list[int]], n_items: int, **more) -> Interactions:
    """``rows[u]`` are the items of user u; dense numbers are their own identifiers."""
    users = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
    items = np.array([item for row in rows for item in row], dtype=np.int64)
    return Interactions.from_numbers(
        users, items, user_ids=np.arange(len(rows)), item_ids=np.arange(n_items), name="tiny", **more
    )


def random_interactions(rng: np.random.Generator, n_users: int, n_items: int, *, most: float = 1.0) -> Interactions:
    """Every density from one item to ``most`` of the catalogue."""
    sizes = rng.integers(1, max(2, int(most * n_items)) + 1, n_users).clip(max=n_items)
    return interactions([rng.choice(n_items, size, replace=False).tolist() for size in sizes], n_items)


def exact_scorer(rng: np.random.Generator, n_users: int, n_items: int, *, scale: float = 1.0, dim: int = 6):
    """Factors on a grid, so that every order of summing gives the same score to the bit, ties included."""
    users = (rng.integers(-8, 9, (n_users, dim)) / 8 * scale).astype(np.float32)
    items = (rng.integers(-8, 9, (n_items, dim)) / 8).astype(np.float32)
    return EmbeddingScorer(users, items)


def fixed_scorer(scores: np.ndarray) -> EmbeddingScorer:
    """A scorer whose score of (u, i) is ``scores[u, i]``."""
    return EmbeddingScorer(np.eye(len(scores), dtype=np.float32), np.asarray(scores, dtype=np.float32).T.copy())


def batch_of(
    train: Interactions,
    scorer: EmbeddingScorer,
    rng: np.random.Generator,
    *,
    size: int | None = None,
    user: int | None = None,
    epoch: int = 1,
) -> Batch:
    """``size`` training pairs, of one user where given."""
    own = np.arange(len(train)) if user is None else np.arange(train.indptr[user], train.indptr[user + 1])
    positions = own if size is None else rng.choice(own, size)
    return Batch(train.users[positions], train.indices[positions], positions, epoch, train, scorer, rng)


def compiled_choice(rule, drawn, batch: Batch) -> tuple[np.ndarray, np.ndarray]:
    """What the compiled kernel picks, and info, with a learning rate of 0, so that the scores stay what they are."""
    from bayesneg.kernels.numba import scoring, sgd

    train, vectors = batch.train, batch.scorer.embeddings()
    negatives, infos = np.empty(len(batch.users), np.int32), np.empty(len(batch.users), np.float32)
    layout = scoring.tile_layout(train.users, train.indices, train.n_items)
    tiled = scoring.tile_items(vectors.items, layout)
    factors = scoring.Factors(vectors.users.copy(), vectors.items.copy(), tiled)
    sgd.train_block(
        rule, batch.users, batch.positives, drawn, train.indptr, train.indices, factors,
        sgd.SGDConfig(0.0, 0.0, simultaneous=False, ensemble_size=1), negatives, infos,
    )  # fmt: skip
    return negatives, infos


class Hardest(NegativeSampler):
    """The highest-scored unobserved item: the docs' example of a custom sampler."""

    def sample(self, batch):
        scores = batch.score_all()
        for row, user in enumerate(batch.users):
            scores[row, batch.train.row(user)] = -np.inf
        best = scores.argmax(axis=1)
        return np.where(np.isfinite(scores.max(axis=1)), best, NO_NEGATIVE)
