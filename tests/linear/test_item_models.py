"""Item models against what their formulas say, written out plainly."""

from __future__ import annotations

import numpy as np
import pytest

from bayesneg.errors import InputError
from bayesneg.linear.ease import dense_ease, ease, low_rank_ease
from bayesneg.linear.item_models import item_model_of
from bayesneg.linear.neighbours import item_neighbours
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
    again = item_model_of(model.kind, model.arrays())
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
