"""The study of weighted pools records what it ran on, and its page says what was recorded."""

from __future__ import annotations

import pytest

import bayesneg as bn
from benchmarks import machine
from benchmarks.pages.weighted_pools import _machines

pytest.importorskip("torch")

from benchmarks.studies import weighted_pools


def test_a_run_records_the_machine_it_ran_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "processor", lambda: "a processor")
    monkeypatch.setattr(machine, "device_name", lambda: "a device")
    split = bn.split(bn.synthetic(40, 30, seed=0), test=0.2, seed=0)
    run = weighted_pools.trained("none", 0, 0.005, split, bn.priors.Popularity(), 1)
    assert run["machine"] == machine.machine("a device")
    assert run["machine"]["processor"] == "a processor"
    assert run["machine"]["device"] == "a device"
    said = _machines([run])
    assert said.startswith("one a device (processor: a processor, ")
    assert f"torch {run['machine']['versions']['torch']}" in said


def test_the_page_names_every_machine_once() -> None:
    one = {"processor": "A", "cores": 2, "system": "Linux", "versions": {"torch": "2.0"}, "device": "cpu"}
    other = {**one, "device": "a GPU"}
    said = _machines([{"machine": own} for own in (one, one, other)])
    assert said == (
        "one cpu (processor: A, 2 cores, Linux; torch 2.0) and one a GPU (processor: A, 2 cores, Linux; torch 2.0)"
    )


def test_a_result_has_no_device_unless_one_is_named() -> None:
    assert "device" not in machine.machine()
