"""The graph of who chose what, and smoothing over it."""

from __future__ import annotations

import time

import numpy as np
import pytest

import bayesneg as bn
from bayesneg.data.interactions import Interactions
from worlds import interactions, random_interactions

torch = pytest.importorskip("torch", reason="torch is not installed (the extra 'torch')")

from bayesneg.models.torch.graph import Smooth, SmoothedEmbeddings, normalised_adjacency  # noqa: E402


def dense_adjacency(train: Interactions) -> np.ndarray:
    """D^(−1/2) A D^(−1/2), cell by cell."""
    n = train.n_users + train.n_items
    A = np.zeros((n, n))
    for user, item in zip(train.users, train.indices, strict=True):
        A[user, train.n_users + item] = A[train.n_users + item, user] = 1
    degrees = A.sum(axis=1)
    for row in range(n):
        for column in range(n):
            A[row, column] /= max(1, degrees[row]) ** 0.5 * max(1, degrees[column]) ** 0.5
    return A


def test_the_adjacency_of_two_users_and_two_items_by_hand():
    train = interactions([[0, 1], [0]], 2)  # degrees: users 2 and 1, items 2 and 1
    half, root = 1 / 2, 1 / 2**0.5
    expected = [
        [0, 0, half, root],  # user 0 – item 0: 1/√(2·2); user 0 – item 1: 1/√(2·1)
        [0, 0, root, 0],  # user 1 – item 0: 1/√(1·2)
        [half, root, 0, 0],
        [root, 0, 0, 0],
    ]
    np.testing.assert_allclose(normalised_adjacency(train).to_dense().numpy(), expected, rtol=1e-6)


def test_users_and_items_without_interactions_have_empty_rows():
    train = interactions([[], [2], []], 4)
    found = normalised_adjacency(train).to_dense().numpy()
    expected = np.zeros((7, 7))
    expected[1, 5] = expected[5, 1] = 1.0
    np.testing.assert_array_equal(found, expected)


def test_the_adjacency_is_symmetric_and_the_one_written_cell_by_cell():
    for seed in range(3):
        train = random_interactions(np.random.default_rng(seed), 9, 7)
        found = normalised_adjacency(train)
        np.testing.assert_allclose(found.to_dense().numpy(), dense_adjacency(train), rtol=1e-6)
        np.testing.assert_array_equal(found.to_dense().numpy(), found.to_dense().numpy().T)
        assert len(found.values()) == 2 * len(train)


def test_the_graph_costs_what_the_interactions_cost():
    """400,000 × 400,000 nodes would be 640 GB as a matrix of floats."""
    n, rng = 200_000, np.random.default_rng(0)
    train = Interactions.from_numbers(
        rng.integers(0, n, 50_000), rng.integers(0, n, 50_000), user_ids=np.arange(n), item_ids=np.arange(n)
    )
    started = time.perf_counter()
    assert len(normalised_adjacency(train).values()) == 2 * len(train)
    assert time.perf_counter() - started < 2


@pytest.mark.parametrize("layers", [0, 1, 3])
def test_vectors_are_the_mean_over_the_layers(layers):
    rng = np.random.default_rng(1)
    train = random_interactions(rng, 6, 5)
    first = rng.normal(size=(11, 4)).astype(np.float32)
    users, items = SmoothedEmbeddings(first, train, layers)()
    A = dense_adjacency(train)
    expected = sum(np.linalg.matrix_power(A, k) @ first for k in range(layers + 1)) / (layers + 1)
    np.testing.assert_allclose(torch.cat([users, items]).detach().numpy(), expected, rtol=1e-5, atol=1e-6)


def test_the_gradient_of_smoothing_is_that_of_a_dense_matrix():
    rng = np.random.default_rng(2)
    train = random_interactions(rng, 6, 5)
    first, weights = (torch.from_numpy(rng.normal(size=(11, 3)).astype(np.float32)) for _ in range(2))
    A = torch.from_numpy(dense_adjacency(train).astype(np.float32))
    gradients = []
    for smooth in (
        lambda x: Smooth.apply(normalised_adjacency(train), 2, x),
        lambda x: (x + A @ x + A @ A @ x) / 3,
    ):
        x = first.clone().requires_grad_()
        (smooth(x).pow(2) * weights).sum().backward()
        gradients.append(x.grad.numpy())
    np.testing.assert_allclose(*gradients, rtol=1e-4, atol=1e-5)


def test_without_layers_lightgcn_is_torch_mf():
    split = bn.split(bn.synthetic(60, 80, seed=0), test=0.2, seed=0)
    plain, none = (
        bn.fit(model, split, bn.BNS(), epochs=2, progress=False).scorer
        for model in (bn.TorchMF(dim=8, device="cpu"), bn.LightGCN(dim=8, layers=0, device="cpu"))
    )
    assert plain.users.tobytes() == none.users.tobytes()
    assert plain.items.tobytes() == none.items.tobytes()


def test_without_layers_no_graph_is_built():
    train = interactions([[0, 1], [0]], 2)
    assert bn.TorchMF(dim=2, device="cpu").start(train, rng=np.random.default_rng(0)).module.adjacency is None
