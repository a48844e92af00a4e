"""What is said when a custom loss returns what cannot be trained with."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bayesneg as bn

torch = pytest.importorskip("torch")

SPLIT = bn.split(bn.synthetic(40, 50, seed=0), test=0.2, seed=0)
MODELS = {"mf": bn.MF(dim=2, sampling_batch=64), "torch": bn.TorchMF(dim=2, device="cpu")}


def numpy_loss(answer: Any) -> bn.losses.Loss:
    class Mine(bn.losses.Loss):
        def evaluate(self, scores: bn.losses.Scores) -> Any:
            return answer(scores)

    return Mine()


def constant(scores: Any) -> Any:
    return torch.ones(len(scores.positive))


def detached(scores: Any) -> Any:
    return scores.negatives.detach().sum(dim=1) * torch.ones(1, dtype=scores.negatives.dtype, requires_grad=True)


def undefined(scores: Any) -> Any:
    return (scores.positive - scores.positive).log() + scores.negatives.sum(dim=1)


def steep(scores: Any) -> Any:
    return (scores.positive - scores.positive.detach()).sqrt()  # finite, with a derivative that is not


def with_nan(place: int) -> Any:
    def answer(s: Any) -> bn.losses.LossValues:
        parts = [s.positive * 0, s.positive * 0, s.negatives * 0]
        parts[place] = parts[place] + np.nan
        return bn.losses.LossValues(*parts)

    return answer


CASES = {
    "one array": (numpy_loss(lambda s: s.positive), r"Mine.evaluate must return LossValues\(.*\), .* got ndarray"),
    "two parts": (numpy_loss(lambda s: (s.positive, s.positive)), "Mine.evaluate must return LossValues.* got 2 parts"),
    "nothing": (numpy_loss(lambda s: None), "Mine.evaluate must return LossValues.* got NoneType"),
    "text": (numpy_loss(lambda s: ("a", "b", "c")), "Mine.evaluate: value must be an array of numbers, got str"),
    "nan value": (numpy_loss(with_nan(0)), "Mine.evaluate: value is not finite for finite scores"),
    "nan by positive": (numpy_loss(with_nan(1)), "Mine.evaluate: by_positive is not finite for finite scores"),
    "nan by negatives": (numpy_loss(with_nan(2)), "Mine.evaluate: by_negatives is not finite for finite scores"),
    "constant": (bn.losses.TorchLoss(constant), "the loss constant does not depend on the scores"),
    "detached": (bn.losses.TorchLoss(detached), "the loss detached does not depend on the scores"),
    "nan in torch": (bn.losses.TorchLoss(undefined), "the loss undefined: value is not finite for finite scores"),
    "nan gradient": (bn.losses.TorchLoss(steep), "the loss steep: by_positive is not finite for finite scores"),
}


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("name", CASES)
def test_the_sentence_names_the_loss(name: str, model: str) -> None:
    loss, said = CASES[name]
    with pytest.raises(bn.BayesnegError, match=said):
        bn.fit(MODELS[model], SPLIT, bn.RNS(negatives=3), loss=loss, epochs=1, progress=False)


def test_a_training_that_diverges_with_a_custom_loss_names_it(monkeypatch: Any) -> None:
    """On a GPU a loss is not looked at in each step; the end of the epoch shows it."""
    monkeypatch.setattr(bn.losses.TorchLoss, "_check_finite", lambda *given: None)
    with pytest.raises(
        bn.BayesnegError, match=r"check that TorchLoss .*undefined.* has finite gradients, or lower learn"
    ):
        bn.fit(
            MODELS["torch"], SPLIT, bn.RNS(negatives=3), loss=bn.losses.TorchLoss(undefined), epochs=1, progress=False
        )
