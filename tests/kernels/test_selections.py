"""Several weighted negatives: worked examples of the specification, compiled code and torch against it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bayesneg.data.interactions import Interactions
from bayesneg.interfaces import Batch
from bayesneg.kernels.numba import scoring
from bayesneg.kernels.numba import selections as compiled_selections
from bayesneg.kernels.reference import selections
from bayesneg.kernels.reference.choices.base import Draws, choose_batch
from bayesneg.kernels.reference.choices.posterior import LeastRisk, LeastRiskBySummary
from bayesneg.kernels.reference.choices.take import TakeHighest
from bayesneg.kernels.reference.formulas import ALL, UNOBSERVED, AsCounted, OfMixture
from bayesneg.models.scorers import EmbeddingScorer

torch = pytest.importorskip("torch")

from bayesneg.kernels.torch.choices.base import DrawTensors, TensorBatch  # noqa: E402
from bayesneg.kernels.torch.score_lists import TrainingRows  # noqa: E402
from bayesneg.kernels.torch.selections import torch_selection  # noqa: E402
from bayesneg.models.torch.batch_scores import EmbeddingScores  # noqa: E402

N_USERS, N_ITEMS, DIM = 12, 40, 4
KNOTS = np.sort(np.random.default_rng(5).normal(size=(N_USERS, 6)), axis=1)[:, ::-1].astype(np.float32).copy()
RANKS = np.array([1, 3, 8, 15, 25, 36])
EXACT = LeastRisk(5.0, UNOBSERVED, AsCounted())
RULES: dict[str, Any] = {
    "all": selections.TakeAll(),
    "highest": selections.TakeSeveralHighest(top=4, negatives=3),
    "highest, as many as the top": selections.TakeSeveralHighest(top=3, negatives=3),
    "resampled": selections.TakeSeveralResampled(0.7, np.empty(0), negatives=3),
    "resampled, by popularity": selections.TakeSeveralResampled(2.0, np.log(np.arange(1.0, N_ITEMS + 1)), negatives=2),
    "least risks": selections.LeastRisks(EXACT, negatives=3),
    "least risks, summary": selections.LeastRisks(
        LeastRiskBySummary(2.0, UNOBSERVED, OfMixture(0.1), KNOTS, RANKS), negatives=2
    ),
    "posterior": selections.PosteriorWeights(EXACT, ramp=False),
    "posterior over all": selections.PosteriorWeights(LeastRisk(5.0, ALL, OfMixture(0.05)), ramp=False),
    "risk": selections.PosteriorWeights(EXACT, ramp=True),
}


def world(seed: int = 0, n: int = 9, m: int = 6) -> tuple[Batch, Draws]:
    """Random embeddings, training rows and draws; the last user has few unobserved items."""
    rng = np.random.default_rng(seed)
    pairs = rng.random((N_USERS, N_ITEMS)) < 0.2
    pairs[:, 0] = True
    pairs[-1, 4:] = pairs[0, :4] = True
    train = Interactions.from_pairs(*np.nonzero(pairs))
    scorer = EmbeddingScorer(*(rng.normal(size=(size, DIM)).astype(np.float32) for size in (N_USERS, N_ITEMS)))
    positions = np.concatenate((rng.choice(len(train), n - 2, replace=False), [len(train) - 1, len(train) - 2]))
    users, positives = train.users[positions], train.indices[positions]
    candidates, sizes = np.full((n, m), -1, dtype=np.int32), np.empty(n, dtype=np.int32)
    for b, user in enumerate(users):
        free = rng.permutation(np.setdiff1d(np.arange(N_ITEMS), train.row(user)))[:m]
        candidates[b, : len(free)], sizes[b] = free, len(free)
    draws = Draws(candidates, sizes, rng.uniform(0, 0.3, (n, m)), rng.random((n, 3)))
    return Batch(users, positives, positions, 1, train, scorer, rng), draws


def on_device(batch: Batch, draws: Draws) -> tuple[TensorBatch, TrainingRows, EmbeddingScores]:
    whole = [torch.from_numpy(part.astype(np.int64)) for part in (batch.users, batch.positives)]
    starts, counts = batch.train.indptr[batch.users], batch.train.counts[batch.users]
    tensors = DrawTensors(
        torch.from_numpy(draws.candidates.astype(np.int64)), torch.from_numpy(draws.sizes.astype(np.int64)),
        torch.from_numpy(draws.priors), torch.from_numpy(draws.uniforms),
    )  # fmt: skip
    rows = TrainingRows(
        torch.from_numpy(batch.train.indptr.copy()), torch.from_numpy(batch.train.indices.copy()), N_ITEMS,
        int(batch.train.counts.max()),
    )  # fmt: skip
    vectors = batch.scorer.embeddings()
    scores = EmbeddingScores(torch.from_numpy(vectors.users), torch.from_numpy(vectors.items), whole[0])
    firsts = torch.zeros_like(whole[0])
    where = torch.from_numpy(starts.astype(np.int64)), torch.from_numpy(counts.astype(np.int64))
    return TensorBatch(*whole, *where, firsts, tensors, int(counts.sum()), 0, 1 << 20), rows, scores


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", RULES)
def test_torch_selects_the_same(name: str, seed: int) -> None:
    batch, draws = world(seed)
    wanted = selections.select_batch(RULES[name], draws, batch)
    found = torch_selection(RULES[name], torch.device("cpu")).select(*on_device(batch, draws))
    np.testing.assert_array_equal(found.items.numpy(), wanted.items)
    np.testing.assert_allclose(found.weights.numpy(), wanted.weights, rtol=1e-6)


def compiled(rule: Any, draws: Draws, batch: Batch) -> selections.Several:
    facts, train, vectors = compiled_selections.compiled_selection(rule, draws), batch.train, batch.scorer.embeddings()
    tiled = scoring.no_tiles()
    if facts.sweeps:
        tiled = scoring.tile_items(vectors.items, scoring.tile_layout(train.users, train.indices, train.n_items))
    found = selections.Several(
        np.empty((len(batch.users), facts.negatives), dtype=np.int32), np.empty((len(batch.users), facts.negatives))
    )
    compiled_selections.select_block(
        rule, batch.users, batch.positives, draws, train.indptr, train.indices, scoring.Factors(*vectors, tiled), *found
    )
    return found


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", RULES)
def test_compiled_code_selects_the_same(name: str, seed: int) -> None:
    batch, draws = world(seed)
    draws.sizes[0] = 0  # no unobserved item
    wanted = selections.select_batch(RULES[name], draws, batch)
    found = compiled(RULES[name], draws, batch)
    np.testing.assert_array_equal(found.items, wanted.items)
    np.testing.assert_allclose(found.weights, wanted.weights, rtol=1e-6)


def test_a_rule_that_chooses_one_is_a_selection_of_one() -> None:
    rule = TakeHighest(2)
    batch, draws = world()
    draws.sizes[0] = 0
    found = compiled(rule, draws, batch)
    np.testing.assert_array_equal(found.items[:, 0], choose_batch(rule, draws, batch))
    np.testing.assert_array_equal(found.weights[:, 0], found.items[:, 0] >= 0)


def test_several_of_least_risk_begin_with_the_one_of_least_risk() -> None:
    batch, draws = world()
    several = selections.select_batch(selections.LeastRisks(EXACT, 3), draws, batch)
    one = [EXACT.chooser(draws, batch)(b) for b in range(len(batch.users))]
    np.testing.assert_array_equal(several.items[:, 0], one)


def test_risk_tends_to_posterior_for_a_large_weight() -> None:
    batch, draws = world()
    posterior = selections.select_batch(selections.PosteriorWeights(EXACT, ramp=False), draws, batch)
    risk = selections.select_batch(selections.PosteriorWeights(EXACT._replace(weight=1e9), ramp=True), draws, batch)
    np.testing.assert_allclose(risk.weights, posterior.weights, atol=1e-8)


def test_without_false_negatives_all_weights_are_1() -> None:
    batch, draws = world()
    for ramp in (False, True):
        rule = selections.PosteriorWeights(EXACT, ramp)
        several = selections.select_batch(rule, draws._replace(priors=np.zeros_like(draws.priors)), batch)
        np.testing.assert_array_equal(several.weights, several.items >= 0)
