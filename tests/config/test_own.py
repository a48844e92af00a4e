"""Samplers from a user's own file."""

from __future__ import annotations

import pytest

from bayesneg.config.custom import own_prior, own_sampler, own_settings
from bayesneg.errors import InputError

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


class Unfinished(bn.NegativeSampler):
    pass
"""


@pytest.fixture
def own(tmp_path):
    path = tmp_path / "own.py"
    path.write_text(GOOD)
    return path


def test_settings_become_arguments_and_numbers_are_read_as_numbers(own):
    sampler = own_sampler(f"{own}:Mine", {"power": "0.5", "name": "blue"})
    assert (sampler.power, sampler.name) == (0.5, "blue")
    assert own_settings(f"{own}:Mine") == ["power", "name"]


def test_a_file_is_run_once(own):
    assert type(own_sampler(f"{own}:Mine", {})) is type(own_sampler(f"{own}:Mine", {}))


def test_a_class_that_is_not_there_lists_the_samplers_that_are(own):
    for name in ("Yours", "", "RNS", "Unfinished"):
        with pytest.raises(InputError, match=rf"no sampler '{name}'; it has: Mine, Picky \("):
            own_sampler(f"{own}:{name}", {})


@pytest.mark.parametrize(
    ("settings", "expected"), [({"size": "0"}, "size must be at least 1"), ({}, "missing"), ({"sise": "1"}, "sise")]
)
def test_arguments_that_the_class_refuses_are_a_sentence(own, settings, expected):
    with pytest.raises(InputError, match=expected):
        own_sampler(f"{own}:Picky", settings)


@pytest.mark.parametrize(
    ("line", "expected"),
    [("{}['no']", "KeyError: 'no'"), ("bn.priors.Rate(-1)", "hidden must be"), ("int('x')", "invalid literal")],
)
def test_a_prior_that_cannot_be_made_is_a_sentence(tmp_path, line, expected):
    path = tmp_path / "prior.py"
    path.write_text(
        "import bayesneg as bn\n\n\nclass Mine(bn.Prior):\n"
        f"    def __init__(self):\n        {line}\n\n    def probability(self, users, items):\n        return 0.1\n"
    )
    with pytest.raises(InputError, match=expected):
        own_prior(f"{path}:Mine")


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("import numpy\nclass X(:\n", "line 2: SyntaxError"),
        ("import numpy\n\nimport no_such_module\n", "line 3: ModuleNotFoundError: No module named 'no_such_module'"),
        ("def f():\n    return 1 / 0\nf()\n", "line 2: ZeroDivisionError"),
    ],
)
def test_a_mistake_in_the_file_is_named_with_its_line(tmp_path, code, expected):
    path = tmp_path / "broken.py"
    path.write_text(code)
    for _ in range(2):  # nothing half-made is remembered
        with pytest.raises(InputError) as error:
            own_sampler(f"{path}:X", {})
        assert f"{path} {expected}" in str(error.value)


def test_a_file_that_does_not_exist_is_named(tmp_path):
    with pytest.raises(InputError, match=r"nowhere\.py does not exist"):
        own_sampler(f"{tmp_path}/nowhere.py:X", {})
