"""Samplers, priors and likelihoods are registered by existing, and their docstrings define their settings."""

from __future__ import annotations

import inspect
import re

import pytest

import bayesneg as bn
from bayesneg.config.settings import settings_of
from bayesneg.samplers import registry

COMPOSED = (bn.priors.Item, bn.priors.Function, bn.priors.Combined, bn.priors.Scaled, bn.priors.Exposure)
KINDS = {
    *(found.kind for found in registry.samplers().values()),
    *registry.priors().values(),
    *registry.likelihoods().values(),
    *COMPOSED,
    bn.samplers.LinearDecay,
    bn.samplers.Refresh,
}


@pytest.mark.parametrize("kind", sorted(KINDS, key=lambda kind: kind.__name__), ids=lambda kind: kind.__name__)
def test_the_docstring_has_one_sentence_for_each_setting(kind):
    sections = re.split(r"^(\w+):$", inspect.getdoc(kind) or "", flags=re.MULTILINE)
    entries = re.findall(r"^    (\w+): ", dict(zip(sections[1::2], sections[2::2], strict=True)).get("Args", ""), re.M)
    assert entries == list(settings_of(kind))
    assert "Example" in sections


def test_the_paper_and_its_baselines_are_registered():
    assert {"rns", "pns", "aobpr", "dns", "srns", "bns", "bns-1", "bns-2", "bns-3", "bns-4"} <= set(registry.samplers())
    assert list(registry.likelihoods()) == ["bcl", "empirical", "mixture", "paper", "uninformative"]
    assert {"popularity", "flat", "group", "oracle", "rate", "smoothed", "learned", "self"} == set(registry.priors())


@pytest.mark.parametrize(
    "kind", sorted({found.kind for found in registry.samplers().values()}, key=lambda k: k.__name__)
)
def test_every_sampler_has_the_settings_of_the_paper(kind):
    sampler = kind.paper()
    for part in (sampler, getattr(sampler, "then", sampler)):
        assert getattr(part, "cdf", "exact") == "exact"
    assert isinstance(sampler, kind)
