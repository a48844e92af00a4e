"""What docs/how-to/tuning.md says of searches over machines is what was measured."""

from __future__ import annotations

from pathlib import Path

from benchmarks.machine import read_result

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "tuning.md").read_text(encoding="utf-8")


def test_the_page_has_the_figures_of_the_record():
    found = read_result("scale/searches")
    for name in ("waiting", "computing", "killed"):
        for each in found[name]["searches"]:
            made = f"{each['trials']} | {each['seconds']:.0f} s | {each['made_twice']} | {each['lost']} |"
            assert f"| {each['processes']} | {made}" in PAGE
            assert each["as_without_storage"]
    for name in ("waiting", "computing"):
        assert f"{found[name]['times_as_fast']:.2f} times" in PAGE
    assert f"load average of {found['waiting']['searches'][1]['load']:.0f}" in PAGE


def test_no_trial_of_the_record_is_lost_or_made_twice():
    found = read_result("scale/searches")
    every = [each for name in ("waiting", "computing", "killed") for each in found[name]["searches"]]
    assert [(each["made_twice"], each["lost"]) for each in every] == [(0, 0)] * len(every)
    assert [sum(each["by_process"]) for each in every] == [found["trials"]] * len(every)
