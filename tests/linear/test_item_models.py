"""Item models against what their formulas say, written out plainly."""

from __future__ import annotations

import numpy as np
import pytest

from bayesneg.errors import InputError
from bayesneg.linear.ease import dense_ease, ease, low_rank_ease
from bayesneg.linear.graph_filter import graph_filter
from bayesneg.linear.item_models import item_model_of
from bayesneg.linear.neighbours import item_neighbours
from bayesneg.linear.random_walks import random_walks
from worlds import interactions, random_interactions


def chosen(train) -> np.ndarray:
    X = np.zeros((train.n_users, train.n_items))
    X[train.users, train.indices] = 1.0
    return X


def plain_ease(X: np.ndarray, l2: float) -> np.ndarray:
    P = np.linalg.inv(X.T @ X + l2 * np.eye(X.shape[1]))
    B = -P / np.diag(P)
    np.fill_diagonal(B, 0.0)
    return B


def plain_neighbours(X: np.ndarray, neighbours: int, shrink: float) -> np.ndarray:
    common = X.T @ X
    similar = common / (np.sqrt(np.outer(np.diag(common), np.diag(common))) + shrink + 1e-300)
    np.fill_diagonal(similar, 0.0)
    B = np.zeros_like(similar)
    for item in range(len(B)):
        best = np.argsort(-similar[:, item], kind="stable")[:neighbours]
        B[best, item] = similar[best, item]
    return B


def plain_walks(X: np.ndarray, alpha: float, beta: float, neighbours: int, normalize: bool) -> np.ndarray:
    to_user, to_item = X.T / X.sum(axis=0)[:, None], X / X.sum(axis=1)[:, None]
    B = (to_user**alpha @ to_item**alpha) / X.sum(axis=0) ** beta
    np.fill_diagonal(B, 0.0)
    for row in B:
        row[np.argsort(-row, kind="stable")[neighbours:]] = 0.0
    return B / B.sum(axis=1, keepdims=True) if normalize else B


def plain_filter(X: np.ndarray, alpha: float, rank: int) -> np.ndarray:
    items = X.sum(axis=0)
    R = X / np.sqrt(X.sum(axis=1))[:, None] / np.sqrt(items)
    V = np.linalg.svd(R)[2][:rank].T
    return R.T @ R + alpha * (V / np.sqrt(items)[:, None]) @ (V * np.sqrt(items)[:, None]).T


@pytest.fixture
def train():
    return random_interactions(np.random.default_rng(0), 50, 30, most=0.4)


MODELS = {
    "dense": (lambda train: dense_ease(train, l2=3.0), lambda X: plain_ease(X, 3.0)),
    "low rank": (lambda train: low_rank_ease(train, l2=3.0, rank=30), lambda X: plain_ease(X, 3.0)),
    "neighbours": (
        lambda train: item_neighbours(train, neighbours=5, shrink=2.0),
        lambda X: plain_neighbours(X, 5, 2.0),
    ),
    "walks": (
        lambda train: random_walks(train, alpha=0.7, beta=0.4, neighbours=5),
        lambda X: plain_walks(X, 0.7, 0.4, 5, False),
    ),
    "normalized walks": (
        lambda train: random_walks(train, alpha=1.0, beta=0.2, neighbours=40, normalize=True),
        lambda X: plain_walks(X, 1.0, 0.2, 40, True),
    ),
    "graph filter, Lanczos": (lambda train: graph_filter(train, alpha=0.3, rank=4), lambda X: plain_filter(X, 0.3, 4)),
    "graph filter": (lambda train: graph_filter(train, alpha=2.0, rank=20), lambda X: plain_filter(X, 2.0, 20)),
    "graph filter, linear": (lambda train: graph_filter(train, alpha=0.0, rank=9), lambda X: plain_filter(X, 0.0, 0)),
}


@pytest.mark.parametrize("name", MODELS)
def test_scores_agree_with_the_formula(train, name):
    model, plain = (build(given) for build, given in zip(MODELS[name], (train, chosen(train)), strict=True))
    expected = chosen(train) @ plain
    unseen = chosen(train) == 0
    rows = model.rows(train, np.arange(train.n_users))
    np.testing.assert_allclose(rows[unseen], expected[unseen], atol=2e-5)


@pytest.mark.parametrize("name", MODELS)
def test_pairs_are_entries_of_the_rows(train, name):
    model = MODELS[name][0](train)
    users, items = (values.ravel() for values in np.indices((train.n_users, train.n_items)))
    rows = model.rows(train, np.arange(train.n_users))
    exact = model.rows_are_pairs
    shuffled = np.random.default_rng(0).permutation(len(users))
    np.testing.assert_allclose(
        model.pairs(train, users[shuffled], items[shuffled]), rows.ravel()[shuffled], rtol=0, atol=0 if exact else 1e-6
    )


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("wrong", [-1, 10**7])
def test_users_and_items_out_of_range_are_refused(train, name, wrong):
    model, good, bad = MODELS[name][0](train), np.zeros(2, dtype=np.int64), np.array([0, wrong])
    with pytest.raises(InputError, match=f"users must be numbers from 0 to 49, got {wrong}"):
        model.rows(train, bad)
    with pytest.raises(InputError, match=f"users must be numbers from 0 to 49, got {wrong}"):
        model.pairs(train, bad, good)
    with pytest.raises(InputError, match=f"items must be numbers from 0 to 29, got {wrong}"):
        model.pairs(train, good, bad)


@pytest.mark.parametrize("name", MODELS)
def test_a_model_is_restored_from_its_arrays(train, name):
    model = MODELS[name][0](train)
    again = item_model_of(model.kind, model.arrays(), train)
    users = np.arange(train.n_users)
    np.testing.assert_array_equal(again.rows(train, users), model.rows(train, users))
    assert again.n_items == train.n_items


def test_low_rank_nears_the_exact_model_as_the_rank_grows(train):
    exact, users = dense_ease(train, l2=3.0).rows(train, np.arange(50)), np.arange(50)
    unseen = chosen(train) == 0
    errors = [
        np.abs(low_rank_ease(train, l2=3.0, rank=rank).rows(train, users) - exact)[unseen].max() for rank in (3, 15, 30)
    ]
    assert errors[0] > errors[1] > errors[2]


def test_low_rank_is_the_same_for_any_block_of_users(train, monkeypatch):
    whole = low_rank_ease(train, l2=3.0, rank=8).rows(train, np.arange(50))
    monkeypatch.setattr("bayesneg.linear.ease.USERS", 7)
    np.testing.assert_allclose(low_rank_ease(train, l2=3.0, rank=8).rows(train, np.arange(50)), whole, atol=1e-5)


def test_a_large_catalogue_gets_a_model_of_low_rank():
    train = interactions([[0, 5], [0, 7], [5, 7]], 9000)
    assert ease(train, l2=1.0).kind == "low-rank"
    assert ease(interactions([[0, 5], [0, 7]], 9), l2=1.0).kind == "dense"


def test_the_form_can_be_set(train, monkeypatch):
    assert ease(train, l2=3.0, form="low-rank").kind == "low-rank"
    monkeypatch.setattr("bayesneg.linear.ease.DENSE_ITEMS", 10)
    assert ease(train, l2=3.0).kind == "low-rank"
    whole, users = ease(train, l2=3.0, form="dense"), np.arange(train.n_users)
    assert whole.kind == "dense"
    np.testing.assert_allclose(whole.rows(train, users), chosen(train) @ plain_ease(chosen(train), 3.0), atol=1e-5)


def test_mirrored_blocks_are_the_whole(train, monkeypatch):
    whole = dense_ease(train, l2=3.0)
    monkeypatch.setattr("bayesneg.linear.inverse.BLOCK", 7)
    np.testing.assert_array_equal(dense_ease(train, l2=3.0).weights, whole.weights)


def test_the_cpu_solves_what_does_not_fit_on_the_gpu(train, monkeypatch):
    torch = pytest.importorskip("torch", reason="torch is not installed (the extra 'torch')")
    asked = []

    def no_room(self, device):
        asked.append(device)
        raise torch.OutOfMemoryError

    exact = dense_ease(train, l2=3.0).weights
    monkeypatch.setattr("bayesneg.linear.ease.DENSE_ITEMS", 10)
    monkeypatch.setattr("bayesneg.linear.ease.sees_gpu", lambda: True)
    monkeypatch.setattr(torch.Tensor, "to", no_room)
    np.testing.assert_array_equal(dense_ease(train, l2=3.0).weights, exact)
    assert asked == ["cuda"]


@pytest.mark.gpu
def test_a_gpu_solves_the_same(train, monkeypatch):
    exact = dense_ease(train, l2=3.0).weights
    monkeypatch.setattr("bayesneg.linear.ease.DENSE_ITEMS", 10)
    monkeypatch.setattr("bayesneg.linear.inverse._by_lapack", None)  # not to be asked
    np.testing.assert_allclose(dense_ease(train, l2=3.0).weights, exact, atol=1e-5)


def test_neighbours_are_the_same_for_any_block(train, monkeypatch):
    whole = item_neighbours(train, neighbours=4, shrink=1.0)
    monkeypatch.setattr("bayesneg.linear.neighbours.AT_ONCE", 100)
    parts = item_neighbours(train, neighbours=4, shrink=1.0)
    for one, other in zip(whole.arrays().values(), parts.arrays().values(), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("shape", [(20, 60), (60, 20)])
@pytest.mark.parametrize("rank", [3, 15, 20, 90])
def test_the_low_pass_filter_is_that_of_the_leading_singular_vectors(shape, rank):
    train = random_interactions(np.random.default_rng(1), *shape, most=0.5)
    model, X = graph_filter(train, alpha=0.5, rank=rank), chosen(train)[:, : train.n_items]
    kept = X.sum(axis=0) > 0  # items without users have no weights at all
    B = plain_filter(X[:, kept], 0.5, rank)
    rows = model.rows(train, np.arange(train.n_users))
    np.testing.assert_allclose(rows[:, kept], X[:, kept] @ B, atol=2e-5)
    assert not rows[:, ~kept].any()


def test_a_graph_filter_scores_other_histories_than_it_was_fitted_to(train):
    model, other = graph_filter(train, alpha=0.3, rank=8), interactions([[3, 5, 9], []], 30)
    expected = chosen(other) @ plain_filter(chosen(train), 0.3, 8)
    np.testing.assert_allclose(model.rows(other, np.arange(2)), expected, atol=2e-5)


def test_walks_keep_the_lower_of_equal_items():
    train = interactions([[0, 1, 2, 3]], 4)  # every weight is the same
    model = random_walks(train, alpha=1.0, beta=0.0, neighbours=2)
    np.testing.assert_array_equal(model.neighbours, [1, 2, 3, 0, 2, 3, 0, 1])  # the sources of items 0, 1 and 2
    np.testing.assert_array_equal(model.starts, [0, 3, 6, 8, 8])


def test_walks_are_the_same_for_any_block(train, monkeypatch):
    whole = random_walks(train, alpha=0.8, beta=0.3, neighbours=4)
    monkeypatch.setattr("bayesneg.linear.random_walks.AT_ONCE", 25)
    parts = random_walks(train, alpha=0.8, beta=0.3, neighbours=4)
    for one, other in zip(whole.arrays().values(), parts.arrays().values(), strict=True):
        np.testing.assert_array_equal(one, other)


def test_walks_of_extreme_exponents_are_finite(train):
    model = random_walks(train, alpha=400.0, beta=50.0, neighbours=4)
    assert np.isfinite(model.weights).all()
