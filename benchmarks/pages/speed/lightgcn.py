"""The parts of docs/explanation/speed.md about LightGCN's speed, each only where its result file exists."""

from __future__ import annotations

from typing import Any, Final

from benchmarks.machine import read_result
from benchmarks.pages.text import table, versions_of

NAMES: Final = {"ml-100k": "MovieLens-100K", "ml-1m": "MovieLens-1M"}
DEVICES: Final = {"cpu": "on the CPU", "cuda": "on a GPU"}
RATIO: Final = "BNS / RNS"
GOAL: Final = 1.5  # of that ratio, at most; set before anything was measured

Result = dict[str, Any]


def sections() -> list[str]:
    """What the result files give; nothing where there are none."""
    parts: list[str] = []
    for device in DEVICES:
        speed = read_result(f"speed/bench_lightgcn_{device}")
        parts += [] if speed is None else _speed(speed, device)
    return parts


def _speed(result: Result, device: str) -> list[str]:
    rows, ratios, whole = [], [], []
    for dataset in (name for name in NAMES if name in result):
        found = result[dataset]
        rows += [[NAMES[dataset], label, f"{value:.3f}"] for label, value in found["seconds_per_epoch"].items()]
        reached = "reached" if found[RATIO] <= GOAL else "**not reached**"
        ratios.append(f"{NAMES[dataset]} {found[RATIO]:.2f} ({reached})")
        extra = {key: value for key, value in found.items() if key not in ("seconds_per_epoch", RATIO)}
        whole += [[NAMES[dataset], key, f"{value:,.2f}"] for key, value in extra.items() if _is_number(value)]
    million = [
        [name, key, f"{value:,.2f}"]
        for name in ("a million items", "a million items, refreshed F")
        for key, value in result.get(name, {}).items()
    ]
    parts = [
        f"## Speed of LightGCN {DEVICES[device]}",
        f"Device: {result['device']}. Seconds of one epoch without evaluation, median over repeats in one process.",
        table(["data", "sampler", "seconds per epoch"], rows),
        f"BNS over RNS, of medians; the goal was at most {GOAL:g}: {', '.join(ratios) or 'not measured'}.",
    ]
    if whole or million:
        parts.append(table(["what", "measured", "value"], [*whole, *million]))
    return [*parts, versions_of(result["machine"]), *_note(result)]


def _note(result: Result) -> list[str]:
    """What a reader must know of how the file came about."""
    return [str(result["note"])] if "note" in result else []


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
