"""Similar items."""

from __future__ import annotations

import numpy as np
import pytest

import bayesneg as bn


@pytest.mark.parametrize("name", ["mf", "cosine"])
def test_items_are_compared_by_the_cosine_of_their_vectors(run_of, name):
    run = run_of(name)
    vectors = run.scorer.items.astype(np.float64)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = vectors @ vectors[4]
    cosines[[4, *np.flatnonzero(run.split.train.popularity == 0)]] = -2  # itself, and what nothing was learned of
    best = np.argsort(-cosines)[:6]
    found = run.similar(run.split.train.item_ids[4], k=6)
    assert [item for item, _ in found] == run.split.train.item_ids[best].tolist()
    assert [value for _, value in found] == pytest.approx(cosines[best].tolist(), abs=1e-6)


def test_items_of_ease_are_compared_by_their_weights(run_of):
    run = run_of("ease")
    item = int(np.argmax(run.split.train.popularity))
    weights = run.scorer.model.weights[item]
    found = run.similar(run.split.train.item_ids[item], k=6)
    best = [each for each in np.argsort(-weights, kind="stable")[:6] if weights[each] > 0]
    assert len(best) > 3
    assert [each for each, _ in found] == run.split.train.item_ids[best].tolist()
    assert [value for _, value in found] == weights[best].tolist()


def test_items_without_a_weight_are_not_listed(run_of):
    run = run_of("item-knn")
    item = int(np.argmax(run.split.train.popularity))
    found = run.similar(run.split.train.item_ids[item], k=run.split.train.n_items)
    assert 0 < len(found) < run.split.train.n_items
    assert all(value > 0 for _, value in found)


def test_popularity_compares_no_items(run_of):
    with pytest.raises(bn.BayesnegError, match=r"MostPopular knows one number of an item.*train a model"):
        run_of("popularity").similar(1)


def test_an_unknown_item_is_named_with_its_nearest(run_of):
    with pytest.raises(bn.BayesnegError, match="item 125 is not in the data; the nearest items are 119, 118, 117"):
        run_of("mf").similar(125)
