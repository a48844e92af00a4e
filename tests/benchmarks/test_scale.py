"""What docs/how-to/data.md and docs/how-to/scale.md say is what was recorded; the goals are met."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.machine import read_result

DOCS = Path(__file__).parent.parent.parent / "docs"
PAGE, PROCESSES = ((DOCS / name).read_text(encoding="utf-8") for name in ("how-to/data.md", "how-to/scale.md"))
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


def test_an_epoch_of_two_hundred_million_pairs_fits_and_the_page_says_so():
    small, large = (read_result(f"scale/bench_large_epoch-{millions}") for millions in (20, 200))
    for found in (small, large):
        size = f"{found['interactions'] / 1e6:.0f} million, {found['users'] / 1e6:g} million"
        size = size.replace("199 million", "200 million")  # pairs drawn twice are collapsed
        figures = f"{found['processor seconds']:,.0f} s | {found['seconds']:,.0f}"
        assert f"| {size} | {found['peak resident, GiB']:.1f} GiB | {figures} |" in PROCESSES
    growth = large["processor seconds"] / small["processor seconds"]
    assert f"grows by {growth:.1f}" in PROCESSES
    assert growth < 12
    assert large["peak resident, GiB"] * 2**30 < 10e9


def test_the_page_has_the_bytes_of_several_processes_and_they_follow_the_formula():
    found = read_result("scale/bench_ranks-bytes")
    cells = []
    for kind in ("RNS", "BNS"):
        for n in ("2", "4"):
            counted, formula = (found[n][kind][name] for name in ("bytes per step of all processes", "formula"))
            together = sum(counted.values()), sum(formula.values())
            assert together[0] == pytest.approx(together[1], rel=0.1)
            assert all(counted[name] == pytest.approx(formula[name], rel=0.1) for name in formula)
            cells.append(f"{together[0]:,.0f} / {together[1]:,.0f}")
    assert f"| {cells[0]} | {cells[1]} |" in PROCESSES
    assert f"| {cells[2]} | {cells[3]} |" in PROCESSES
    carried = [f"{found[n]['RNS']['loopback per step']:,.0f}" for n in ("2", "4")]
    assert f"| {carried[0]} | {carried[1]} |" in PROCESSES


def test_the_page_has_the_quality_and_memory_of_several_processes():
    quality, memory, overhead = (read_result(f"scale/bench_ranks-{name}") for name in ("quality", "memory", "overhead"))
    one = quality["1"]["ndcg@20"]
    assert quality["2"]["ndcg@20"] == one == quality["4"]["ndcg@20"]
    assert f"| {sum(one) / len(one):.4f} | the same in all digits | the same in all digits |" in PROCESSES
    sizes = [memory[n]["MiB"] for n in ("1", "2", "4")]
    assert f"| {' | '.join(f'{size:.0f} MiB' for size in sizes)} |" in PROCESSES
    assert sizes == sorted(sizes, reverse=True)
    ratios = [overhead["1"][name]["ratio"] for name in ("RNS", "BNS, refreshed")]
    assert f"takes {ratios[0]:.1f} times (RNS) and {ratios[1]:.1f} times (refreshed BNS)" in PROCESSES.replace(
        "\n", " "
    )


def test_killed_processes_change_nothing():
    runs = read_result("scale/bench_kills")["runs"]
    assert [run["same bytes"] for run in runs] == [True] * 10


def test_the_page_has_the_memory_of_both_orders():
    found = read_result("scale/bench_order")
    for name in ("permutation", "keyed"):
        sizes = [found[n][name]["MiB"] for n in ("1", "2", "4")]
        assert f"| {' | '.join(f'{size:.0f} MiB' for size in sizes)} |" in PROCESSES
    assert sizes[0] > 1.9 * sizes[1] > 3.6 * sizes[2]
