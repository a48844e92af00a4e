"""Weights of a shared pool: worked examples of the specification, compiled code and torch against it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bayesneg.data.interactions import Interactions
from bayesneg.interfaces import Batch
from bayesneg.kernels.numba.compiling import entry_point
from bayesneg.kernels.numba.pools import ranks
from bayesneg.kernels.reference import pools
from bayesneg.kernels.reference.choices.posterior import LeastRisk, LeastRiskBySummary
from bayesneg.kernels.reference.formulas import UNOBSERVED, AsCounted, OfMixture, Tabled
from bayesneg.models.scorers import EmbeddingScorer
from bayesneg.samplers.posterior.likelihoods import BCL

torch = pytest.importorskip("torch")

from bayesneg.kernels.torch.choices.base import DrawTensors, TensorBatch  # noqa: E402
from bayesneg.kernels.torch.pools import TorchPoolWeights, TorchPrior, slots_of  # noqa: E402
from bayesneg.kernels.torch.score_lists import TrainingRows  # noqa: E402
from bayesneg.models.torch.batch_scores import EmbeddingScores  # noqa: E402

CPU = torch.device("cpu")
N_USERS, N_ITEMS, DIM, N_EXAMPLES = 12, 40, 4, 9
KNOTS = np.sort(np.random.default_rng(5).normal(size=(N_USERS, 6)), axis=1)[:, ::-1].astype(np.float32).copy()
RANKS = np.array([1, 3, 8, 15, 25, 36])
EXACT = LeastRisk(5.0, UNOBSERVED, AsCounted())
TABLE = Tabled(np.array([0.0, 0.5]), np.array([0.0, 0.3]), np.array([0.6, 1.2]))


def world(seed: int = 0, *, whole: bool = False) -> Batch:
    """Random embeddings and training rows; the last user has few unobserved items. Whole numbers give many ties."""
    rng = np.random.default_rng(seed)
    pairs = rng.random((N_USERS, N_ITEMS)) < 0.2
    pairs[:, 0] = True
    pairs[-1, 4:] = pairs[0, :4] = True
    train = Interactions.from_pairs(*np.nonzero(pairs))
    vectors = [rng.normal(size=(size, DIM)) for size in (N_USERS, N_ITEMS)]
    scorer = EmbeddingScorer(*((part.round() if whole else part).astype(np.float32) for part in vectors))
    positions = np.concatenate((rng.choice(len(train), N_EXAMPLES - 2, replace=False), len(train) - np.arange(1, 3)))
    return Batch(train.users[positions], train.indices[positions], positions, 1, train, scorer, rng)


def on_device(batch: Batch) -> tuple[TensorBatch, TrainingRows, EmbeddingScores]:
    users, positives = (torch.from_numpy(part.astype(np.int64)) for part in (batch.users, batch.positives))
    train, vectors = batch.train, batch.scorer.embeddings()
    rows = TrainingRows(
        torch.from_numpy(train.indptr.copy()), torch.from_numpy(train.indices.copy()), N_ITEMS, int(train.counts.max())
    )
    scores = EmbeddingScores(torch.from_numpy(vectors.users), torch.from_numpy(vectors.items), users)
    counts, empty = rows.counts(users), torch.zeros(len(users), 0, dtype=torch.float64)
    draws = DrawTensors(empty.long(), torch.zeros_like(users), empty, empty)
    where = rows.indptr[users], counts, torch.zeros_like(users)
    return TensorBatch(users, positives, *where, draws, int(counts.sum()), 0, 1 << 20), rows, scores


def forms() -> dict[str, pools.PriorForm]:
    rng = np.random.default_rng(1)
    per_item = pools.PerItem(rng.uniform(0, 0.3, N_ITEMS))
    per_group = pools.PerGroup(rng.integers(0, 3, N_USERS), rng.uniform(0, 0.3, (3, N_ITEMS)))
    chosen = rng.random((N_USERS, N_ITEMS)) < 0.1
    indptr = np.insert(np.cumsum(chosen.sum(axis=1)), 0, 0)
    likelier = indptr, np.nonzero(chosen)[1].astype(np.int32), rng.uniform(0, 1, chosen.sum())
    sparse = pools.SparseRows(rng.uniform(0, 0.05, N_USERS), *likelier)
    return {
        "per item": per_item,
        "per group": per_group,
        "sparse": sparse,
        "sparse over items": pools.SparseRows(per_item, *likelier),
        "sparse over groups": pools.SparseRows(per_group, *likelier),
        "sparse without pairs": pools.SparseRows(sparse.base, np.zeros_like(indptr), *(p[:0] for p in likelier[1:])),
        "mean of log odds": pools.MeanOfForms((sparse, per_item), (0.3, 0.7), True),
        "mean": pools.MeanOfForms((sparse, per_group), (0.5, 0.5), False),
        "computed": pools.Computed(lambda users, items: 0.1 + 0.001 * items + 0.01 * users),
    }


FORMS = forms()
RULES: dict[str, Any] = {
    "equal": pools.EqualWeights(),
    "rank, per item": pools.WeightsByPoolRank(5.0, False, AsCounted(), FORMS["per item"]),
    "rank, sparse": pools.WeightsByPoolRank(5.0, False, OfMixture(0.1), FORMS["sparse"]),
    "rank, bcl": pools.WeightsByPoolRank(5.0, False, BCL(0.8).form(), FORMS["sparse"]),
    "rank, sparse over items": pools.WeightsByPoolRank(2.0, True, OfMixture(0.1), FORMS["sparse over items"]),
    "rank, table": pools.WeightsByPoolRank(5.0, True, TABLE, FORMS["per group"]),
    "rank, computed": pools.WeightsByPoolRank(5.0, True, AsCounted(), FORMS["computed"]),
    "rank, mean": pools.WeightsByPoolRank(5.0, False, OfMixture(0.02), FORMS["mean of log odds"]),
    "list, sparse": pools.WeightsByList(EXACT, False, FORMS["sparse"]),
    "summary, sparse": pools.WeightsByList(
        LeastRiskBySummary(2.0, UNOBSERVED, OfMixture(0.1), KNOTS, RANKS), True, FORMS["sparse"]
    ),
}


@pytest.mark.parametrize("log_q", [False, True])
@pytest.mark.parametrize("whole", [False, True], ids=["distinct", "ties"])
@pytest.mark.parametrize("name", RULES)
def test_torch_and_compiled_code_weigh_a_pool_the_same(name: str, whole: bool, log_q: bool) -> None:
    batch, rule = world(whole=whole), RULES[name]
    rng = np.random.default_rng(2)
    items = rng.integers(0, N_ITEMS, 25)  # some are repeated
    pool = pools.SharedPool(items, np.log(rng.uniform(0.05, 1, N_ITEMS))[items] if log_q else None)
    wanted = rule.weigh(pool, batch)
    tensors, rows, scores = on_device(batch)
    tensor_pool = pools.SharedPool(*(None if part is None else torch.from_numpy(part) for part in pool[:2]))
    x, weights = scores.of_pool(tensor_pool.items), TorchPoolWeights(rule, CPU)
    found = weights.weigh_by_torch(tensor_pool, tensors, rows, scores, x)
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-5, atol=1e-7)
    compiled = weights.weigh(tensor_pool, tensors, rows, scores, x)
    np.testing.assert_allclose(compiled.numpy(), wanted, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("name", FORMS)
def test_a_form_gives_the_same_for_a_pool_and_for_pairs(name: str) -> None:
    users, items = np.array([3, 0, 11]), np.array([7, 0, 39, 12])
    wanted = FORMS[name].of(users, items)
    prior = TorchPrior(FORMS[name], CPU)
    which, pool = torch.from_numpy(users), torch.from_numpy(items)
    found = prior.of(which, pool, slots_of(pool, N_ITEMS)).expand(3, 4)
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-6)
    np.testing.assert_allclose(prior.of_pairs(which, pool.expand(3, -1)).numpy(), wanted, rtol=1e-12)


def test_threads_weigh_what_one_weighs() -> None:
    rng = np.random.default_rng(0)
    train = Interactions.from_pairs(rng.integers(0, 400, 4000), rng.integers(0, 900, 4000))
    users, pool = (
        torch.from_numpy(rng.integers(0, train.n_users, 512)),
        torch.from_numpy(rng.permutation(train.n_items)),
    )
    rows = TrainingRows(torch.from_numpy(train.indptr.copy()), torch.from_numpy(train.indices.copy()), train.n_items)
    x, weights = torch.from_numpy(rng.normal(size=(512, len(pool))).astype(np.float32)), TorchPoolWeights(
        pools.WeightsByPoolRank(5.0, False, OfMixture(0.1), pools.PerItem(rng.random(train.n_items))), CPU
    )  # fmt: skip
    before, found = torch.get_num_threads(), []
    try:
        for threads in (1, 3):
            torch.set_num_threads(threads)
            found.append(weights.weigh_by_compiled_code(pools.SharedPool(pool), users, rows, x))
    finally:
        torch.set_num_threads(before)
    assert torch.equal(*found)


# ----------------------------------------------------------------------------------------------------------- ranks


@entry_point
def ranked(x, outside, at_most):  # type: ignore[no-untyped-def]
    ranks.count_at_most(x, outside, ranks.rank_space(len(x)), at_most)


@entry_point
def sorted_row(x, outside, values, places):  # type: ignore[no-untyped-def]
    space = ranks.rank_space(len(x))
    ranks.sort_row(x, outside, space)
    values[:], places[:] = space.slots[: len(values)], space.places[: len(values)]


LISTS = {
    "normal": np.random.default_rng(0).normal(size=700),
    "ties": np.random.default_rng(1).integers(0, 60, 700),
    "equal": np.zeros(700),
    "crowded": np.append(np.random.default_rng(2).normal(size=699), 1e6),
    "one": np.array([0.3]),
}


@pytest.mark.parametrize("n_outside", [0, 1, 90])
@pytest.mark.parametrize("name", LISTS)
def test_ranks_are_exact_whatever_the_scores(name: str, n_outside: int) -> None:
    x = LISTS[name].astype(np.float32)
    outside = np.random.default_rng(3).permutation(len(x))[:n_outside]
    inside = np.setdiff1d(np.arange(len(x)), outside)
    at_most = np.empty(len(x), dtype=np.int32)
    ranked(x, outside, at_most)
    np.testing.assert_array_equal(at_most[inside], np.searchsorted(np.sort(x[inside]), x[inside], side="right"))
    values, places = np.empty(len(inside), dtype=np.float32), np.empty(len(inside), dtype=np.int64)
    sorted_row(x, outside, values, places)
    np.testing.assert_array_equal(values, np.sort(x[inside]))
    np.testing.assert_array_equal(x[places], values)
    np.testing.assert_array_equal(np.sort(places), inside)


def test_scores_that_are_not_finite_crash_nothing() -> None:
    x, at_most = np.array([1.0, np.nan, np.inf, -np.inf, 2.0], dtype=np.float32), np.empty(5, dtype=np.int32)
    ranked(x, np.empty(0, dtype=np.int64), at_most)
    assert ((at_most >= 0) & (at_most <= 5)).all()


# ------------------------------------------------------------------------------------------------------ what counts


def test_an_item_of_the_pool_counts_once_and_not_for_users_who_have_it() -> None:
    batch = world()
    pool = pools.SharedPool(np.array([0, 7, 9, 7]))
    counts = pools.counting(pool, batch)
    assert not counts[:, 0].any()  # everybody has item 0
    assert not counts[:, 3].any()  # item 7 is there already
    np.testing.assert_array_equal(counts[:, 1], ~batch.train.contains(batch.users, np.full(len(batch.users), 7)))


def test_a_uniform_pool_of_all_items_ranks_like_the_list() -> None:
    batch = world()
    prior = pools.PerItem(np.linspace(0, 0.5, N_ITEMS))
    pool = pools.SharedPool(np.arange(N_ITEMS))
    by_pool = pools.WeightsByPoolRank(5.0, False, AsCounted(), prior).weigh(pool, batch)
    by_list = pools.WeightsByList(EXACT, False, prior).weigh(pool, batch)
    np.testing.assert_allclose(by_pool, by_list, rtol=1e-12)
