"""Custom samplers and priors from a Python file."""

from __future__ import annotations

import pytest

import bayesneg as bn
from bayesneg.config.specs import SamplerSpec
from bayesneg.errors import InputError
from worlds import interactions

GOOD = """
from __future__ import annotations

from dataclasses import dataclass

import bayesneg as bn
from bayesneg import RNS


@dataclass(frozen=True)
class Mine(bn.NegativeSampler):
    power: float = 1.0
    name: str = "x"

    def sample(self, batch):
        return batch.positives


class Picky(Mine):
    def __init__(self, size: int):
        if size < 1:
            raise ValueError("size must be at least 1")
        super().__init__()
        object.__setattr__(self, "size", size)


class Unfinished(bn.NegativeSampler):
    pass
"""


@pytest.fixture(scope="module")
def split() -> bn.Split:
    return bn.split(interactions([[0, 1, 2, 3, 4]] * 4, 9), test=0.2, seed=0)


@pytest.fixture
def own(tmp_path):
    path = tmp_path / "own.py"
    path.write_text(GOOD)
    return path


@pytest.fixture
def built(split):
    return lambda text: SamplerSpec.parse(text).build(split)


def test_settings_become_arguments_with_their_types(own, built):
    sampler = built(f"{own}:Mine:power=0.5:name=blue")
    assert (sampler.power, sampler.name) == (0.5, "blue")
    assert built(f"{own}:Picky:size=3").size == 3
    assert list(SamplerSpec.parse(f"{own}:Mine").known()) == ["power", "name"]


def test_a_file_is_run_once(own, built):
    assert type(built(f"{own}:Mine")) is type(built(f"{own}:Mine"))


def test_a_class_that_is_not_there_lists_the_samplers_that_are(own, built):
    for name in ("Yours", "", "RNS", "Unfinished"):
        with pytest.raises(InputError, match=rf"no sampler '{name}'; it has: Mine, Picky \("):
            built(f"{own}:{name}")


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (":size=0", "size must be at least 1"),
        (":size=few", "size=few: it must be a whole number"),
        ("", "missing"),
        (":sise=1", "'sise' is not a setting of .*did you mean size"),
    ],
)
def test_arguments_that_the_class_refuses_are_a_sentence(own, built, settings, expected):
    with pytest.raises(InputError, match=expected):
        built(f"{own}:Picky{settings}")


@pytest.mark.parametrize(
    ("line", "expected"),
    [("{}['no']", "KeyError: 'no'"), ("bn.priors.Rate(-1)", "hidden must be"), ("int('x')", "invalid literal")],
)
def test_a_prior_that_cannot_be_made_is_a_sentence(tmp_path, built, line, expected):
    path = tmp_path / "prior.py"
    path.write_text(
        "import bayesneg as bn\n\n\nclass Mine(bn.Prior):\n"
        f"    def __init__(self):\n        {line}\n\n    def probability(self, users, items):\n        return 0.1\n"
    )
    with pytest.raises(InputError, match=expected):
        built(f"bns:prior={path}:Mine")


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("import numpy\nclass X(:\n", "line 2: SyntaxError"),
        ("import numpy\n\nimport no_such_module\n", "line 3: ModuleNotFoundError: No module named 'no_such_module'"),
        ("def f():\n    return 1 / 0\nf()\n", "line 2: ZeroDivisionError"),
    ],
)
def test_a_mistake_in_the_file_is_named_with_its_line(tmp_path, built, code, expected):
    path = tmp_path / "broken.py"
    path.write_text(code)
    for _ in range(2):  # nothing half-made is remembered
        with pytest.raises(InputError) as error:
            built(f"{path}:X")
        assert f"{path} {expected}" in str(error.value)


def test_a_file_that_does_not_exist_is_named(tmp_path, built):
    with pytest.raises(InputError, match=r"nowhere\.py does not exist"):
        built(f"{tmp_path}/nowhere.py:X")


def test_a_custom_prior_takes_its_arguments_beside_the_settings_of_the_sampler(tmp_path, built):
    path = tmp_path / "wary.py"
    path.write_text(
        "from dataclasses import dataclass\nimport bayesneg as bn\n\n\n@dataclass(frozen=True)\n"
        "class Wary(bn.Prior):\n    share: float = 0.1\n\n"
        "    def probability(self, users, items):\n        return self.share\n"
    )
    found = built(f"bns:prior={path}:Wary:share=0.3:candidates=7")
    assert (found.prior.share, found.candidates) == (0.3, 7)
