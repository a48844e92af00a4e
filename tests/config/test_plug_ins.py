"""Samplers of other packages: found by entry points, loaded when their name is used."""

from __future__ import annotations

import pytest

import bayesneg as bn
from bayesneg.config.listing import sampler_lines
from bayesneg.config.registry import sampler_names
from bayesneg.config.specs import SamplerSpec
from bayesneg.errors import InputError
from worlds import interactions

CODE = """
from dataclasses import dataclass

import bayesneg as bn


@dataclass(frozen=True)
class Nearest(bn.NegativeSampler):
    \"\"\"The nearest unobserved item.

    Args:
        distance: How far it may be.
    \"\"\"

    distance: int = 1

    def sample(self, batch):
        return batch.positives * 0 - 1


number = 3
"""


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Installs a package with these entry points."""

    def install(**points: str) -> None:
        (tmp_path / "nearby_negatives.py").write_text(CODE)
        information = tmp_path / "nearby_negatives-1.0.dist-info"
        information.mkdir()
        (information / "METADATA").write_text("Metadata-Version: 2.1\nName: nearby-negatives\nVersion: 1.0\n")
        lines = [f"{name} = {value}" for name, value in points.items()]
        (information / "entry_points.txt").write_text("\n".join(["[bayesneg.samplers]", *lines, ""]))
        monkeypatch.syspath_prepend(tmp_path)

    return install


@pytest.fixture(scope="module")
def split() -> bn.Split:
    return bn.split(interactions([[0, 1, 2, 3, 4]] * 4, 9), test=0.2, seed=0)


def test_a_plug_in_is_a_sampler_by_its_name_with_its_settings(installed, split):
    installed(nearest="nearby_negatives:Nearest")
    spec = SamplerSpec.parse("nearest:distance=4")
    assert (spec.build(split).distance, spec.label) == (4, "NEAREST (distance=4)")
    assert dict(sampler_lines())["nearest"] == "The nearest unobserved item (distance=1)"
    with pytest.raises(InputError, match=r"distance=far \(How far it may be\): it must be a whole number"):
        SamplerSpec.parse("nearest:distance=far").build(split)
    with pytest.raises(InputError, match=r"'nearst' is not a sampler; did you mean nearest\?"):
        SamplerSpec.parse("nearst")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (
            "nearby_negatives:Furthest",
            "sampler broken of the plug-in nearby-negatives cannot be loaded: Attrib",
        ),
        ("not_installed:Nearest", "cannot be loaded: ModuleNotFoundError: No module named 'not_installed'"),
        ("nearby_negatives:number", "must be a subclass of bayesneg.NegativeSampler, got nearby_negatives:number"),
    ],
)
def test_a_broken_plug_in_is_a_sentence_only_when_its_name_is_used(installed, split, value, expected):
    installed(broken=value)
    assert SamplerSpec.parse("bns").build(split) == bn.BNS()
    assert "broken" in sampler_names()
    assert expected in dict(sampler_lines())["broken"]
    with pytest.raises(InputError) as error:
        SamplerSpec.parse("broken").build(split)
    assert expected in str(error.value)


def test_a_plug_in_with_the_name_of_a_built_in_sampler_is_refused(installed, split):
    installed(dns="nearby_negatives:Nearest")
    with pytest.raises(InputError, match="sampler dns is built in, and the plug-in nearby-negatives registers another"):
        SamplerSpec.parse("dns").build(split)
    assert SamplerSpec.parse("rns").build(split) == bn.RNS()
