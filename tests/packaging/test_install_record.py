"""The record of an install: a part measured anew keeps the rest, and what was not timed is a dash on the page."""

from __future__ import annotations

import pytest

from benchmarks.packaging.bench_install import with_recorded
from benchmarks.pages.install import _row

ONE = {"packages": {"a": {"version": "1", "licence": "MIT", "bytes": 2_000_000}}}
TIMED = {**ONE, "seconds": 3.4, "import": 0.0123, "help": 0.3}


def test_an_extra_that_is_measured_anew_leaves_the_others_and_the_required_packages():
    recorded = {"3.11.7": {"": TIMED, "tune": TIMED}, "3.13.0": {"": TIMED}}
    found = with_recorded(recorded, {"3.11.7": {"": ONE, "wandb": ONE}})
    assert found == {"3.11.7": {"": TIMED, "tune": TIMED, "wandb": ONE}, "3.13.0": {"": TIMED}}


def test_a_python_that_is_not_in_the_record_is_refused():
    with pytest.raises(SystemExit, match=r"the record has Python 3\.11\.7 and not 3\.12\.1"):
        with_recorded({"3.11.7": {"": TIMED}}, {"3.12.1": {"": ONE}})


def test_what_was_not_timed_is_a_dash():
    assert _row("tune", TIMED)[2:] == ["1", "2", "3", "12", "300"]
    assert _row("tune", ONE)[2:] == ["1", "2", "–", "–", "–"]
