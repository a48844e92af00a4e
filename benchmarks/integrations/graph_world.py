"""A generated knowledge graph in which it is known which triples are true but missing."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class GraphWorld(NamedTuple):
    """True triples in three parts; those kept out of ``train`` are its false negatives."""

    train: np.ndarray  # (n, 3) head, relation, tail
    validation: np.ndarray
    test: np.ndarray
    n_entities: int
    n_relations: int


def graph_world(
    *, entities: int = 80, relations: int = 6, groups: int = 5, share: float = 0.2, hidden: float = 0.3, seed: int = 0
) -> GraphWorld:
    """Entities in groups of unequal popularity; each relation joins some groups, with probability ∝ popularity.

    ``share`` scales how dense a joined block is, ``hidden`` is the share of the true triples that is kept out of the
    training part, half of it for validation and half for the test.
    """
    rng = np.random.default_rng(seed)
    group = rng.integers(groups, size=entities)
    popularity = rng.pareto(2.0, size=entities) + 0.2
    popularity /= popularity.mean()
    found = []
    for relation in range(relations):
        joined = rng.random((groups, groups)) < 0.3
        chance = np.minimum(share * np.outer(popularity, popularity), 0.9) * joined[group][:, group]
        heads, tails = np.nonzero((rng.random(chance.shape) < chance) & ~np.eye(entities, dtype=bool))
        found.append(np.column_stack((heads, np.full(len(heads), relation), tails)))
    triples = rng.permutation(np.concatenate(found))
    kept = np.isin(np.arange(entities), triples[: len(triples) * 7 // 10, [0, 2]])
    assert kept.mean() > 0.5, "nearly every entity must be in the training part"
    known = kept[triples[:, 0]] & kept[triples[:, 2]]
    n_train = round((1 - hidden) * len(triples))
    rest = triples[n_train:][known[n_train:]]
    middle = len(rest) // 2
    return GraphWorld(triples[:n_train], rest[:middle], rest[middle:], entities, relations)
