"""Losses as text ↔ objects."""

from __future__ import annotations

import pytest

import bayesneg as bn
from bayesneg.config.loss_specs import LossSpec, as_loss, loss_text, parse_losses
from bayesneg.config.settings import settings_of
from bayesneg.errors import InputError

BUILT = {
    "bpr": bn.losses.BPR(),
    "Logistic": bn.losses.Logistic(),
    "softmax": bn.losses.Softmax(),
    "softmax:temperature=0.08:negative-weight=1.22": bn.losses.Softmax(0.08, 1.22),
    "softmax:include_positive=true": bn.losses.Softmax(include_positive=True),
    "softmax-at-k:k=10": bn.losses.SoftmaxAtK(k=10),
    "psl:surrogate=atan": bn.losses.PSL(surrogate="atan"),
    "ccl:margin=0.9": bn.losses.CCL(margin=0.9),
    "dcl:positive_rate=0.01": bn.losses.DCL(positive_rate=0.01),
    "hcl:hardness=0": bn.losses.HCL(hardness=0.0),
}
OWN = """
from dataclasses import dataclass

import bayesneg as bn


@dataclass(frozen=True)
class Hinge(bn.losses.Loss):
    margin: float = 1.0

    def evaluate(self, scores):
        gaps = self.margin + scores.negatives - scores.positive[:, None]
        slopes = scores.weights * (gaps > 0)
        return bn.losses.LossValues((slopes * gaps).sum(axis=1), -slopes.sum(axis=1), slopes)


def squared(scores):
    return (scores.weights * (1 + scores.negatives - scores.positive[:, None]).relu() ** 2).sum(dim=1)
"""


@pytest.fixture
def own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.py").write_text(OWN)


@pytest.mark.parametrize("text", BUILT)
def test_a_name_with_settings_builds_the_loss_that_it_says_and_is_written_again(text):
    loss = as_loss(text)
    assert loss == BUILT[text]
    assert as_loss(loss_text(loss)) == loss


def test_every_built_in_loss_is_built_above_and_its_settings_are_its_fields():
    assert {text.partition(":")[0].lower() for text in BUILT} >= {"bpr", "softmax", "ccl", "psl", "dcl", "hcl"}
    for name, kind in bn.losses.losses().items():
        shown = {key: str(each.default) for key, each in settings_of(kind).items()}
        assert LossSpec(name, shown).build() == kind(), name
        assert all(each.sentence for each in settings_of(kind).values()), name


def test_what_is_given_as_an_object_stays_and_nothing_is_bpr():
    loss = bn.losses.Softmax(0.3)
    assert as_loss(loss) is loss
    assert as_loss(None) == bn.losses.BPR()


def test_a_class_or_a_function_in_a_file_is_a_loss(own):
    hinge = as_loss("own.py:Hinge:margin=0.5")
    assert (type(hinge).__name__, hinge.margin) == ("Hinge", 0.5)
    squared = as_loss("own.py:squared")
    assert isinstance(squared, bn.losses.TorchLoss)
    assert [spec.label for spec in parse_losses("own.py:Hinge:margin=0.5,own.py:squared")] == [
        "Hinge (margin=0.5)",
        "squared",
    ]
    assert loss_text(hinge) is None


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("softmx", "'softmx' is not a loss; did you mean softmax? valid: bpr, ccl"),
        ("softmax:temprature=1", "'temprature' is not a setting of loss softmax; did you mean temperature?"),
        ("softmax:temperature=hot", "loss softmax: temperature=hot (Temperature τ; lower values put"),
        ("softmax:temperature=0", "temperature must be a number above 0"),
        ("psl:surrogate=exp", "loss psl: surrogate must be one of relu, tanh, atan, got 'exp'"),
        ("softmax:temperature", "loss softmax: 'temperature' is not of the form key=value"),
        ("bpr,softmax", "loss must be one loss, got 2 in 'bpr,softmax'; bn.compare takes several"),
        (" ", "no loss is named"),
        ("own.py:Nope", "own.py has no loss 'Nope'; it has: Hinge, squared"),
        ("own.py:squared:margin=1", "'margin' is not a setting of own.py:squared"),
        (bn.losses.Softmax, "loss is the class Softmax; give an object, Softmax()"),
        (lambda scores: scores.positive, "loss is a function; wrap a torch function of the scores"),
        (3, "loss must be one of bpr, ccl"),
    ],
)
def test_what_is_no_loss_is_refused_with_a_sentence(own, given, said):
    with pytest.raises(InputError) as error:
        as_loss(given)
    assert said in str(error.value)
