"""Samplers, priors and likelihoods are registered by existing, and their docstrings define their settings."""

from __future__ import annotations

import inspect
import re
from importlib.metadata import EntryPoint

import pytest

import bayesneg as bn
from bayesneg.errors import InputError
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
    assert entries == [item.name for item in registry.setting_fields(kind)]
    assert "Example" in sections


def test_the_paper_and_its_baselines_are_registered():
    assert {"rns", "pns", "aobpr", "dns", "srns", "bns", "bns-1", "bns-2", "bns-3", "bns-4"} <= set(registry.samplers())
    assert list(registry.likelihoods()) == ["paper", "uninformative", "mixture", "empirical"]
    assert {"popularity", "flat", "group", "oracle", "rate", "smoothed", "learned", "self"} == set(registry.priors())


@pytest.fixture
def plugged_in(monkeypatch):
    """Registers entry points as an installed package would."""

    def plug(**values: str) -> dict[str, registry.Registered]:
        entries = [EntryPoint(name, value, registry.GROUP) for name, value in values.items()]
        monkeypatch.setattr(registry, "entry_points", lambda group: entries if group == registry.GROUP else [])
        registry.samplers.cache_clear()
        return registry.samplers()

    yield plug
    registry.samplers.cache_clear()


def test_a_plug_in_is_registered_by_its_entry_point(plugged_in):
    found = plugged_in(hardest="worlds:Hardest")["hardest"]
    assert issubclass(found.kind, bn.NegativeSampler)
    assert found.preset.about == "The highest-scored unobserved item: the docs' example of a custom sampler"


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("bns", "worlds:Hardest", "registers the sampler 'bns', which BNS already has; rename"),
        ("mine", "worlds:interactions", "must be a subclass of bayesneg.NegativeSampler"),
        ("mine", "no_such_package:Sampler", "could not be loaded: ModuleNotFoundError: No module named"),
    ],
)
def test_a_wrong_plug_in_is_named(plugged_in, name, value, message):
    with pytest.raises(InputError, match=message):
        plugged_in(**{name: value})
