"""One step of compiled SGD with several weighted negatives: its gradient, its penalty, and the kernels of BPR."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

from bayesneg.kernels.numba import scoring, sgd, sgd_several
from bayesneg.kernels.numba.losses import any_loss
from bayesneg.kernels.numba.selections import Given
from bayesneg.kernels.reference import losses
from bayesneg.kernels.reference.choices.base import Draws
from bayesneg.kernels.reference.choices.take import TakeFirst
from bayesneg.kernels.reference.losses import Scores

N_USERS, N_ITEMS, DIM = 3, 12, 6
SOFTMAX = losses.SampledSoftmax(0.4, 1.2, include_positive=True)
FORMS: dict[str, Any] = {
    "bpr": losses.PairwiseLogistic(),
    "logistic": losses.PointwiseLogistic(),
    "ccl": losses.CosineHinges(-0.2, 2.0),
    "softmax": SOFTMAX,
    "softmax at k": losses.ThresholdedSoftmax(SOFTMAX._replace(include_positive=False), 0.7),
    "psl": losses.PairwiseSurrogate(0.5, 1),
    "hcl": losses.DebiasedSoftmax(0.5, 0.05, 0.6),
}
ITEMS = np.array([[4, 5, -1, 7], [2, 8, 9, 10]], dtype=np.int32)
WEIGHTS = np.array([[1.0, 0.5, 0.0, 0.2], [0.3, 0.0, 0.7, 1.0]])
USERS, POSITIVES = np.array([0, 2], dtype=np.int32), np.array([1, 3], dtype=np.int32)
LOGS = np.log(np.random.default_rng(3).uniform(0.1, 1, ITEMS.shape))
THRESHOLDS = np.array([0.1, 0.2, -0.3])


class Trained(NamedTuple):
    raw: sgd_several.Raw
    factors: scoring.Factors
    outcome: sgd_several.Outcome


def start(seed: int = 0) -> sgd_several.Raw:
    rng = np.random.default_rng(seed)
    return sgd_several.Raw(*(rng.normal(0, 0.7, (n, DIM)).astype(np.float32) for n in (N_USERS, N_ITEMS)))


def config(**changes: Any) -> sgd_several.SeveralConfig:
    """A step of size 1 without a penalty, which changes each embedding by its negative gradient."""
    given = {"simultaneous": True, "ensemble_size": 1, "cosine": False, **changes}
    return sgd_several.SeveralConfig(given.pop("learning_rate", 1.0), given.pop("regularization", 0.0), **given)


def factors_of(raw: sgd_several.Raw, settings: sgd_several.SeveralConfig) -> scoring.Factors:
    seen = [sgd_several.normalised(part, settings.ensemble_size) if settings.cosine else part for part in raw]
    return scoring.Factors(*seen, scoring.no_tiles())


def nothing(n: int, k: int) -> sgd_several.Outcome:
    return sgd_several.Outcome(
        np.empty((n, k), np.int32), np.empty((n, k)), np.empty((n, k), np.float32), np.empty((n, k), np.float32)
    )


def train(
    form: Any, settings: sgd_several.SeveralConfig, *, items: Any = ITEMS, weights: Any = WEIGHTS, logs: Any = LOGS
) -> Trained:
    raw, n = start(), len(items)
    factors, outcome = factors_of(raw, settings), nothing(*items.shape)
    draws = Draws(np.zeros((n, 1), np.int32), np.ones(n, np.int32), np.empty((n, 0)), np.empty((n, 0)))
    sgd_several.train_several(
        any_loss(form), Given(items, weights), USERS[:n], POSITIVES[:n], draws,
        sgd_several.DrawLogs(np.empty(0), logs[:n]), THRESHOLDS,
        np.zeros(N_USERS + 1, np.int64), np.empty(0, np.int32), factors, raw, settings, outcome,
    )  # fmt: skip
    return Trained(raw, factors, outcome)


def loss_of(form: Any, b: int, users: np.ndarray, items: np.ndarray, *, cosine: bool) -> float:
    """The specification: the loss of the b-th example as a function of the embeddings."""
    if cosine:
        users, items = (part / np.linalg.norm(part, axis=1, keepdims=True) for part in (users, items))
    x = items @ users[USERS[b]]
    given = Scores(x[POSITIVES[b]][None], x[ITEMS[b]][None], WEIGHTS[b][None], LOGS[b], THRESHOLDS[USERS[b]][None])
    return float(form.evaluate(given).value[0])


def numerical_gradient(form: Any, *, cosine: bool, size: float = 1e-5) -> list[np.ndarray]:
    """The gradients of the first example's loss by all embeddings."""
    point = [part.astype(np.float64) for part in start()]
    found = [np.zeros(part.shape) for part in point]
    for part, gradient in zip(point, found, strict=True):
        for place in np.ndindex(part.shape):
            there = part[place]
            values = []
            for part[place] in (there + size, there - size):
                values.append(loss_of(form, 0, *point, cosine=cosine))
            part[place] = there
            gradient[place] = (values[0] - values[1]) / (2 * size)
    return found


@pytest.mark.parametrize("cosine", [False, True], ids=["inner", "cosine"])
@pytest.mark.parametrize("name", FORMS)
def test_a_step_follows_the_numerical_gradient(name: str, cosine: bool) -> None:
    after = train(FORMS[name], config(cosine=cosine), items=ITEMS[:1], weights=WEIGHTS[:1]).raw
    gradients = numerical_gradient(FORMS[name], cosine=cosine)
    for before, new, gradient in zip(start(), after, gradients, strict=True):
        np.testing.assert_allclose(before - new, gradient, rtol=1e-3, atol=3e-6)
        assert np.abs(gradient).max() > 0.01


def test_the_outcome_has_info_and_the_gradient_by_each_negative() -> None:
    found = train(SOFTMAX, config(), items=ITEMS[:1], weights=WEIGHTS[:1]).outcome
    x = start().items @ start().users[USERS[0]]
    wanted = SOFTMAX.evaluate(Scores(x[POSITIVES[:1]], x[ITEMS[:1]], WEIGHTS[:1], LOGS[:1]))
    np.testing.assert_allclose(found.gradient, np.abs(wanted.by_negatives), rtol=1e-5)
    np.testing.assert_allclose(found.info[0], (WEIGHTS[0] > 0) / (1 + np.exp(x[POSITIVES[0]] - x[ITEMS[0]])), rtol=1e-5)
    np.testing.assert_array_equal(found.items, ITEMS[:1])
    np.testing.assert_array_equal(found.weights, WEIGHTS[:1])


def test_the_penalty_on_negatives_is_shared_by_weight() -> None:
    plain = train(FORMS["bpr"], config(learning_rate=0.1), items=ITEMS[:1], weights=WEIGHTS[:1]).raw
    penalised = train(
        FORMS["bpr"], config(learning_rate=0.1, regularization=0.5), items=ITEMS[:1], weights=WEIGHTS[:1]
    ).raw
    before = start()
    shares = np.zeros(N_ITEMS)
    shares[POSITIVES[0]] = 1.0
    shares[ITEMS[0, [0, 1, 3]]] = WEIGHTS[0, [0, 1, 3]] / WEIGHTS[0].sum()
    np.testing.assert_allclose(plain.items - penalised.items, 0.05 * shares[:, None] * before.items, atol=1e-6)
    np.testing.assert_allclose((plain.users - penalised.users)[0], 0.05 * before.users[0], atol=1e-6)


@pytest.mark.parametrize("simultaneous", [False, True])
@pytest.mark.parametrize("ensemble_size", [1, 2])
def test_one_negative_with_bpr_is_the_step_of_the_old_kernels(simultaneous: bool, ensemble_size: int) -> None:
    settings = config(learning_rate=0.05, regularization=0.02, simultaneous=simultaneous, ensemble_size=ensemble_size)
    one = ITEMS[:, :1].copy()
    new = train(FORMS["bpr"], settings, items=one, weights=np.ones((2, 1)), logs=np.empty((2, 0)))
    old, chosen, infos = start(), np.empty(2, np.int32), np.empty(2, np.float32)
    draws = Draws(one, np.ones(2, np.int32), np.empty((2, 0)), np.empty((2, 0)))
    sgd.train_block(
        TakeFirst(), USERS, POSITIVES, draws, np.zeros(N_USERS + 1, np.int64), np.empty(0, np.int32),
        scoring.Factors(*old, scoring.no_tiles()), sgd.SGDConfig(*settings[:4]), chosen, infos,
    )  # fmt: skip
    for found, wanted in zip(new.raw, old, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(new.outcome.info[:, 0], infos, rtol=1e-6)


@pytest.mark.parametrize("cosine", [False, True], ids=["inner", "cosine"])
def test_the_models_of_an_ensemble_step_on_their_own(cosine: bool) -> None:
    """Each half of the embeddings, scaled to a model of its own, takes the step that the model alone would take."""
    together = train(SOFTMAX, config(cosine=cosine, ensemble_size=2), items=ITEMS[:1], weights=WEIGHTS[:1]).raw
    for half in (slice(0, DIM // 2), slice(DIM // 2, DIM)):
        alone = sgd_several.Raw(*(np.ascontiguousarray(part[:, half] * np.float32(np.sqrt(2))) for part in start()))
        settings = config(cosine=cosine)
        draws = Draws(np.zeros((1, 1), np.int32), np.ones(1, np.int32), np.empty((1, 0)), np.empty((1, 0)))
        sgd_several.train_several(
            any_loss(SOFTMAX), Given(ITEMS[:1], WEIGHTS[:1]), USERS[:1], POSITIVES[:1], draws,
            sgd_several.DrawLogs(np.empty(0), LOGS[:1]), THRESHOLDS, np.zeros(N_USERS + 1, np.int64),
            np.empty(0, np.int32), factors_of(alone, settings), alone, settings, nothing(1, 4),
        )  # fmt: skip
        for whole, part in zip(together, alone, strict=True):
            np.testing.assert_allclose(whole[:, half] * np.sqrt(2), part, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("ensemble_size", [1, 2])
@pytest.mark.parametrize("cosine", [False, True], ids=["inner", "cosine"])
def test_the_halves_for_custom_losses_are_the_same_step(cosine: bool, ensemble_size: int) -> None:
    settings = config(cosine=cosine, ensemble_size=ensemble_size, regularization=0.1, simultaneous=False)
    whole = train(SOFTMAX, settings, items=ITEMS[:1], weights=WEIGHTS[:1])
    raw = start()
    factors = factors_of(raw, settings)
    block = USERS[:1], POSITIVES[:1], ITEMS[:1], WEIGHTS[:1]
    positive, negatives, infos = np.empty((ensemble_size, 1)), np.empty((ensemble_size, 1, 4)), np.empty((1, 4), "f4")
    sgd_several.score_several(*block, factors, raw, settings, positive, negatives, infos)
    found = [SOFTMAX.evaluate(Scores(s, x, WEIGHTS[:1], LOGS[:1])) for s, x in zip(positive, negatives, strict=True)]
    slopes = [np.stack(parts) for parts in list(zip(*found, strict=True))[1:]]
    sgd_several.learn_slopes(*block, *slopes, factors, raw, settings)
    for one, other in zip((*whole.raw, whole.outcome.info), (*raw, infos), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def test_under_the_cosine_the_factors_stay_normalised() -> None:
    found = train(SOFTMAX, config(cosine=True, regularization=0.1))
    for seen, part in zip(found.factors[:2], found.raw, strict=True):
        np.testing.assert_allclose(seen, sgd_several.normalised(part), rtol=1e-5)
        assert not np.allclose(np.linalg.norm(part, axis=1), 1.0)


def test_an_example_without_a_negative_that_counts_changes_nothing() -> None:
    found = train(SOFTMAX, config(regularization=0.1), items=ITEMS[:1], weights=np.zeros((1, 4)))
    for part, before in zip(found.raw, start(), strict=True):
        np.testing.assert_array_equal(part, before)
    assert not found.outcome.info.any()
    assert not found.outcome.gradient.any()
