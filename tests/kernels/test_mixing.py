"""Synthetic negatives: worked examples of the specification, torch against it, and gradients through the vectors."""

from __future__ import annotations

import numpy as np
import pytest

from bayesneg.interfaces import Batch
from bayesneg.kernels.reference.choices.base import Draws
from bayesneg.kernels.reference.mixing import HopMixing, Layers
from bayesneg.models.scorers import EmbeddingScorer
from worlds import interactions

torch = pytest.importorskip("torch", reason="torch is not installed (the extra 'torch')")

from bayesneg.kernels.torch.choices.base import DrawTensors  # noqa: E402
from bayesneg.kernels.torch.mixing import mixed  # noqa: E402

TRAIN = interactions([[0], [0, 1], [0, 1, 2, 3, 4, 5], [0]], 8)
NO_PRIORS = np.empty((1, 0))


def batch_of(users, layers):
    users = np.array(users, dtype=np.int32)
    scorer = EmbeddingScorer(layers.users[0].astype(np.float32), layers.items[0].astype(np.float32))
    return Batch(users, np.zeros_like(users), users * 0, 1, TRAIN, scorer, np.random.default_rng(0))


def test_a_mixed_negative_by_hand():
    # two layers, d = 1; the positive (item 0) is at 4 and 8, candidates 1 and 2 at 2, 0 and at −4, 6; e_u = 1
    layers = Layers([np.ones((4, 1))] * 2, [np.array([[4.0], [2.0], [0.0]]), np.array([[8.0], [-4.0], [6.0]])])
    draws = Draws(np.array([[1, 2]]), np.array([2]), NO_PRIORS, np.array([[0.25, 0.9, 0.5, 0.5]]))
    # layer 0: 0.25·4 + 0.75·2 = 2.5 against 0.9·4 + 0.1·0 = 3.6; layer 1: 0.5·8 − 0.5·4 = 2 against 0.5·8 + 0.5·6 = 7
    made = HopMixing(1).mix(draws, batch_of([0], layers), layers)
    np.testing.assert_allclose(made.vectors, [[[(3.6 + 7.0) / 2]]])
    assert made.items.tolist() == [[2]]
    # a user at −1 wants the lowest: 2.5 and 2, both of candidate 1
    lower = layers._replace(users=[-np.ones((4, 1))] * 2)
    made = HopMixing(1).mix(draws, batch_of([0], lower), lower)
    np.testing.assert_allclose(made.vectors, [[[(2.5 + 2.0) / 2]]])
    assert made.items.tolist() == [[1]]


def test_layers_may_choose_other_candidates_and_the_most_frequent_is_reported():
    items = [np.array([[0.0], [1.0], [2.0]]), np.array([[0.0], [3.0], [2.0]]), np.array([[0.0], [5.0], [2.0]])]
    layers = Layers([np.ones((4, 1))] * 3, items)
    draws = Draws(np.array([[1, 2]]), np.array([2]), NO_PRIORS, np.zeros((1, 6)))
    made = HopMixing(1).mix(draws, batch_of([0], layers), layers)
    np.testing.assert_allclose(made.vectors, [[[(2.0 + 3.0 + 5.0) / 3]]])
    assert made.items.tolist() == [[1]]


def world(seed, n_layers, negatives, m=3):
    """Users with few unobserved items among them: user 2 has two, fewer than one negative's candidates."""
    rng = np.random.default_rng(seed)
    tables = [[rng.normal(size=(n, 5)).astype(np.float32) for _ in range(n_layers)] for n in (4, 8)]
    users = np.array([0, 1, 2, 3, 2])
    candidates, sizes = np.full((5, m * negatives), -1, dtype=np.int32), np.empty(5, dtype=np.int32)
    for b, user in enumerate(users):
        free = rng.permutation(np.setdiff1d(np.arange(8), TRAIN.row(user)))[: m * negatives]
        candidates[b, : len(free)], sizes[b] = free, len(free)
    draws = Draws(candidates, sizes, np.empty((5, 0)), rng.random((5, n_layers * m * negatives)))
    return batch_of(users, Layers(*tables)), draws, Layers(*tables)


def on_device(draws, batch, layers, dtype=torch.float32):
    drawn = DrawTensors(
        torch.from_numpy(draws.candidates.astype(np.int64)), torch.from_numpy(draws.sizes.astype(np.int64)),
        torch.from_numpy(draws.priors), torch.from_numpy(draws.uniforms),
    )  # fmt: skip
    tables = Layers(*([torch.from_numpy(layer).to(dtype).requires_grad_() for layer in part] for part in layers))
    w = torch.stack([layer.detach() for layer in tables.users]).mean(dim=0)[torch.from_numpy(batch.users).long()]
    return drawn, w, torch.from_numpy(batch.positives).long(), tables


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("n_layers", "negatives"), [(1, 1), (3, 1), (1, 2), (4, 2)])
def test_torch_makes_the_same_negatives(n_layers, negatives, seed):
    batch, draws, layers = world(seed, n_layers, negatives)
    wanted = HopMixing(negatives).mix(draws, batch, layers)
    items, vectors = mixed(HopMixing(negatives), *on_device(draws, batch, layers))
    np.testing.assert_array_equal(items.numpy(), wanted.items)
    there = wanted.items >= 0
    np.testing.assert_allclose(vectors.detach().numpy()[there], wanted.vectors[there], rtol=1e-5, atol=1e-6)
    assert there[:, 0].all()
    assert there[:4, -1].tolist() == [True, True, negatives == 1, True]


def test_the_negative_is_the_highest_scored_that_the_candidates_can_make():
    batch, draws, layers = world(0, 2, 1)
    _, w, _, _ = on_device(draws, batch, layers)
    _, vectors = mixed(HopMixing(1), *on_device(draws, batch, layers))
    found = (vectors[:, 0] * w).sum(dim=1).detach().numpy()
    shares = draws.uniforms.reshape(5, 2, 3)
    for b, size in enumerate(draws.sizes):
        for one in range(size):
            for two in range(size):
                parts = [
                    shares[b, layer, j] * layers.items[layer][0]
                    + (1 - shares[b, layer, j]) * layers.items[layer][draws.candidates[b, j]]
                    for layer, j in enumerate((one, two))
                ]
                assert np.mean(parts, axis=0) @ w[b].numpy() <= found[b] + 1e-5


def test_gradients_flow_to_the_positive_and_to_what_was_chosen_in_each_layer():
    batch, draws, layers = world(1, 2, 1)
    drawn, w, positives, tables = on_device(draws, batch, layers)
    items, vectors = mixed(HopMixing(1), drawn, w, positives, tables)
    (vectors[:1] * w[:1, None]).sum().backward()
    shares = draws.uniforms.reshape(5, 2, 3)[0]
    for layer, table in enumerate(tables.items):
        rows = np.flatnonzero(table.grad.abs().sum(dim=1).numpy())
        chosen = set(rows.tolist()) - {0}
        assert len(chosen) == 1
        share = shares[layer, draws.candidates[0].tolist().index(chosen.pop())]
        np.testing.assert_allclose(table.grad[0].numpy(), share * w[0].numpy() / 2, rtol=1e-5)
    assert items[0, 0] in draws.candidates[0]
