"""What docs/data.md says of prepared data is what was recorded; the goals are met."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.machine import read_result

PAGE = (Path(__file__).parent.parent.parent / "docs" / "data.md").read_text(encoding="utf-8")
RULES = ("interaction", "last", "time")


def cell(found: dict[str, float]) -> str:
    return f"{found['seconds']:.0f} s, {found['peak resident, GiB']:.1f} GiB"


@pytest.mark.parametrize(
    ("name", "ids"), [("20", "integers"), ("200", "integers"), ("20-text", "text"), ("200-text", "text")]
)
def test_the_page_has_the_recorded_figures(name, ids):
    found = read_result(f"scale/bench_prepare-{name}")
    prepared = found["prepare"]
    size = f"{found['rows'] / 1e6:.0f} million rows, {prepared['users'] / 1e6:g} million users, {ids}"
    splits = [cell(found[f"split by {rule}"]) if f"split by {rule}" in found else "–" for rule in RULES]
    opened = f"{found['load']['seconds']:.3f} s" if ids == "integers" else f"{found['load']['seconds']:.1f} s"
    assert f"| {' | '.join((size, cell(prepared), opened, *splits))} |" in PAGE


def test_two_hundred_million_rows_fit_and_time_grows_with_the_rows():
    small, large = (read_result(f"scale/bench_prepare-{millions}")["prepare"] for millions in (20, 200))
    assert large["peak resident, GiB"] < 6
    assert large["seconds"] < 600
    assert large["processor seconds"] / small["processor seconds"] < 12
