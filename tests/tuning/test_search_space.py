"""What is searched follows from the class of a sampler, from what was given, and from the data."""

from __future__ import annotations

import numpy as np
import pytest

import bayesneg as bn
from bayesneg.config.registry import built_in_samplers, priors
from bayesneg.config.specs import SamplerSpec
from bayesneg.tuning.space import EVERY, SPACE, Among, WholeBetween, family
from worlds import random_interactions


@pytest.fixture(scope="module")
def split() -> bn.Split:
    """Without a user column."""
    return bn.split(random_interactions(np.random.default_rng(0), 20, 30, most=0.5), test=0.2, seed=0)


def searched(text, split):
    return family(SamplerSpec.parse(text), split)


def test_every_prior_is_tried_but_those_that_see_labels_or_lack_a_column(split):
    found = searched("bns", split)
    left_out = {text.removeprefix("prior=") for text in found.left_out if text.startswith("prior=")}
    assert set(found.ranges["prior"].values) == set(priors()) - left_out
    assert {"group", "oracle"} <= left_out
    assert "self" not in left_out, "it goes with a likelihood of its own"
    assert (
        found.at({"prior": "self", "likelihood": "paper"}).build(split).likelihood
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
        assert found.at(found.usual).checked().keys() >= found.ranges.keys() | dict(named.presets).keys()


def test_a_setting_is_written_as_a_person_would(split):
    found = searched("bns:prior=flat", split)
    assert isinstance(found.ranges["candidates"], WholeBetween)
    assert found.at({"candidates": 7, "weight": 3.14159}).written == "bns:candidates=7:weight=3.14:prior=flat"


def test_a_custom_sampler_is_tried_as_it_was_given(split, tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(
        "import bayesneg as bn\n\n\nclass Mine(bn.NegativeSampler):\n    def __init__(self, candidates=2):\n"
        "        self.candidates = candidates\n\n    def sample(self, batch):\n        return batch.positives * 0 - 1\n"
    )
    found = searched(f"{path}:Mine:candidates=3", split)
    assert found.ranges == {}
    assert found.at({}).written == f"{path}:Mine:candidates=3"
