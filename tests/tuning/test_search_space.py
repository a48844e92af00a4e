"""What is searched follows from the class of a sampler, from what was given, and from the data."""

from __future__ import annotations

import numpy as np
import pytest

import bayesneg as bn
from bayesneg.config.loss_specs import LossSpec
from bayesneg.config.registry import built_in_samplers, priors
from bayesneg.config.specs import SamplerSpec
from bayesneg.tuning import space
from bayesneg.tuning.space import EVERY, LOSS_SPACE, SPACE, Among, Between, Combination, Searched, WholeBetween, family
from worlds import random_interactions


@pytest.fixture(scope="module")
def split() -> bn.Split:
    """Without a user column."""
    return bn.split(random_interactions(np.random.default_rng(0), 20, 30, most=0.5), test=0.2, seed=0)


def searched(text, split, loss="bpr"):
    given = Combination(bn.MF(), SamplerSpec.parse(text), LossSpec.parse(loss), names_loss=loss != "bpr")
    return family(Searched(given), split)


def test_every_prior_is_tried_but_those_that_see_labels_or_lack_a_column(split):
    found = searched("bns", split)
    left_out = {text.removeprefix("prior=") for text in found.left_out if text.startswith("prior=")}
    assert set(found.ranges["prior"].values) == set(priors()) - left_out
    assert {"group", "oracle"} <= left_out
    assert "self" not in left_out, "it goes with a likelihood of its own"
    assert (
        found.at({"prior": "self", "likelihood": "paper"}).sampler.build(split).likelihood
        == bn.BNS(likelihood="uninformative").likelihood
    )
    assert "needs a user column" in found.left_out["prior=group"]
    assert "uses the labels" in found.left_out["prior=oracle"]


def test_a_prior_whose_column_is_there_is_tried():
    split = bn.split(bn.synthetic(60, 50, seed=0), test=0.2, seed=0)
    assert "group" in searched("bns", split).ranges["prior"].values


def test_every_value_that_a_class_names_is_searched(split, monkeypatch):
    monkeypatch.setattr("bayesneg.tuning.space.SPACE", {**SPACE, "cdf": EVERY})
    assert searched("bns", split).ranges["cdf"] == Among(("exact", "refreshed", "auto"))


def test_what_is_given_or_meant_by_the_name_is_not_searched(split):
    assert set(searched("bns:prior=flat:weight=2", split).ranges) == {"candidates", "likelihood"}
    assert "prior" not in searched("bns-3", split).ranges
    assert searched("rns", split).ranges == {}


def test_the_ranges_hold_the_usual_settings(split):
    for name, named in built_in_samplers().items():
        if name in ("oracle", "bns-4"):
            continue
        found = searched(name, split)
        assert set(found.usual) == set(found.ranges), f"{name}: a default lies outside of its range"
        assert found.at(found.usual).sampler.checked().keys() >= found.ranges.keys() | dict(named.presets).keys()


def test_a_setting_is_written_as_a_person_would(split):
    found = searched("bns:prior=flat", split)
    assert isinstance(found.ranges["candidates"], WholeBetween)
    assert found.at({"candidates": 7, "weight": 3.14159}).sampler.written == "bns:candidates=7:weight=3.14:prior=flat"


def test_a_custom_sampler_is_tried_as_it_was_given(split, tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(
        "import bayesneg as bn\n\n\nclass Mine(bn.NegativeSampler):\n    def __init__(self, candidates=2):\n"
        "        self.candidates = candidates\n\n    def sample(self, batch):\n        return batch.positives * 0 - 1\n"
    )
    found = searched(f"{path}:Mine:candidates=3", split)
    assert found.ranges == {}
    assert found.at({}).sampler.written == f"{path}:Mine:candidates=3"


def test_the_settings_of_a_loss_are_searched_beside_those_of_the_sampler(split):
    found = searched("dns", split, "softmax:negative_weight=1.1")
    assert found.ranges["loss temperature"] == LOSS_SPACE["temperature"]
    assert "loss negative_weight" not in found.ranges, "it was given"
    at = found.at({"candidates": 3, "loss temperature": 0.0512345})
    assert (at.sampler.written, at.loss.text()) == (
        "dns:candidates=3",
        "softmax:temperature=0.0512:negative_weight=1.1",
    )
    assert at.label == "DNS (candidates=3) + Softmax (temperature=0.0512, negative_weight=1.1)"
    assert found.name == "DNS + Softmax (negative_weight=1.1)"


def test_the_temperatures_of_srns_and_of_a_loss_are_two_settings(split):
    found = searched("srns", split, "psl")
    at = found.at({"temperature": 5.0, "loss temperature": 0.2, "loss surrogate": "atan"})
    assert at.sampler.settings["temperature"] == "5"
    assert at.loss.build() == bn.losses.PSL(0.2, "atan")
    assert found.ranges["loss surrogate"] == Among(("relu", "tanh", "atan"))


def test_the_weight_of_the_negatives_has_another_scale_in_ccl(split):
    ranges = searched("rns", split, "ccl").ranges
    assert ranges["loss negative_weight"] == Between(1.0, 1000.0)
    assert searched("rns", split, "softmax").ranges["loss negative_weight"] == LOSS_SPACE["negative_weight"]


@pytest.mark.parametrize("name", [name for name in bn.losses.losses() if name != "bpr"])
def test_the_ranges_of_a_loss_hold_its_defaults(split, name):
    found = searched("rns", split, name)
    assert set(found.usual) == set(found.ranges) - ({"negatives"} if found.given.loss.build().needs_several else set())
    assert found.at(found.usual).loss.build() == bn.losses.losses()[name]()


def test_several_negatives_are_searched_where_there_are_several(split):
    assert "negatives" not in searched("rns", split).ranges, "one negative and BPR is plain"
    assert searched("rns", split, "ccl").ranges["negatives"] == WholeBetween(1, 64)
    assert searched("rns", split, "softmax").ranges["negatives"] == WholeBetween(2, 64)
    assert "weighting" not in searched("bns", split).ranges
    assert searched("bns", split, "ccl").ranges["weighting"] == Among(("none", "posterior", "risk"))
    softmax = searched("bns", split, "softmax")
    assert softmax.ranges["weighting"] == Among(("posterior", "risk"))
    assert softmax.left_out["weighting=none"] == "Softmax needs several negatives"
    assert "weighting=none" not in searched("bns:negatives=2", split, "softmax").left_out
    assert "negatives" not in searched("bns", split, "softmax").ranges, "the candidates give their number"
    assert searched("in-batch", split).ranges["weighting"] == Among(("none", "posterior", "risk"))


def test_the_size_of_a_shared_pool_is_searched_up_to_the_catalogue(split):
    wide = bn.split(bn.synthetic(30, 2000, seed=0), test=0.2, seed=0)
    for text, key in (("rns:shared=true", "negatives"), ("bns:shared=true:weighting=posterior", "candidates")):
        assert searched(text, wide).ranges[key] == WholeBetween(256, 2000)
        assert searched(text, split).ranges[key] == WholeBetween(7, 30)


@pytest.mark.parametrize(
    ("text", "unused"),
    [
        ("bns:shared=true:weighting=posterior", {"weight"}),
        ("bns:weighting=posterior", {"weight"}),
        ("bns:weighting=risk", set()),
        ("bns", set()),
        ("bns-2:weighting=posterior", {"weight"}),
        ("in-batch:weighting=none", {"weight", "prior", "likelihood"}),
        ("in-batch:weighting=posterior", {"weight"}),
        ("in-batch:weighting=risk", set()),
        ("sir", {"power"}),
        ("sir:proposal=popularity", set()),
        ("aobpr:fraction=0.1", {"scale"}),
    ],
)
def test_settings_without_effect_are_not_searched(split, text, unused):
    found, sampler = searched(text, split), SamplerSpec.parse(text).build(split)
    of_sampler = set(SPACE) & set(found.given.sampler.known()) - {"weighting", "negatives"} - found.given.sampler.fixed
    assert of_sampler - set(found.ranges) == unused == sampler.unused_settings & of_sampler


@pytest.mark.parametrize("text", ["bns", "in-batch"])
def test_a_trial_leaves_out_what_its_weighting_does_not_read(split, text):
    found = searched(text, split, "ccl")
    assert {"weighting", "weight"} <= found.ranges.keys()
    for weighting in found.ranges["weighting"].values:
        values = {**found.usual, "weighting": weighting}
        asked = []
        tried = found.suggested(lambda key, values=values, asked=asked: asked.append(key) or values[key], split)
        unused = tried.sampler.build(split).unused_settings
        assert asked[0] == "weighting"
        assert set(asked) == set(found.ranges) - unused
        assert ("weight" in tried.sampler.settings) is ("weight" not in unused)


def test_a_custom_loss_is_tried_as_it_was_given(split):
    loss = LossSpec("mine", {}, bn.losses.TorchLoss(lambda s: s.positive))
    given = Combination(bn.MF(), SamplerSpec.parse("rns:negatives=2"), loss)
    assert family(Searched(given), split).ranges == {}


@pytest.mark.parametrize("baseline", [kind() for kind in space.BASELINES], ids=lambda each: type(each).__name__)
def test_the_main_setting_of_a_baseline_is_tried_around_its_default(baseline):
    key, tried = space.variants(baseline)
    values = [getattr(each, key) for each in tried]
    assert tried[0] == baseline
    assert min(values) < values[0] < max(values)
    assert len(set(values)) == len(values) == len(space.BASELINES[type(baseline)][1])  # the default is one of them
