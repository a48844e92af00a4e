"""docs/defaults.md: what `bayesneg train DATA` gives out of the box, from ``benchmarks.quality.defaults``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from benchmarks.machine import read_result
from benchmarks.pages.publish import DOCS, keep
from benchmarks.pages.text import MADE, page, signed, table
from benchmarks.quality.defaults import BASELINES, CANDIDATES, CHOSEN_BY, DATASETS, RECOMMENDED

TITLES: Final = {"popularity": "popularity", "item-knn": "item-kNN", "ease": "EASE", "als": "ALS"}
METRIC: Final = "ndcg@20"


def publish(*, check: bool) -> None:
    found = read_result("quality/defaults")
    assert found is not None
    keep(DOCS / "defaults.md", _page(found["data"]), check=check)


def _page(data: Mapping[str, Any]) -> str:
    measured = {name: data[name] for name in DATASETS if RECOMMENDED in data.get(name, {"methods": {}})["methods"]}
    gaps = {name: _gap(one["methods"]) for name, one in measured.items()}
    said = "; ".join(
        f"{what} on {', '.join(found)}"
        for what, found in (
            ("above the best of the four baselines", [name for name, gap in gaps.items() if gap > 0]),
            ("equal to it in four digits", [name for name, gap in gaps.items() if gap == 0]),
            ("below it", [f"{name} ({signed(gap)})" for name, gap in gaps.items() if gap < 0]),
        )
        if found
    )
    return page(
        "# Good out of the box",
        "`bayesneg train DATA` without other options trains `bn.MF.recommended()` with `bn.BNS.recommended()`: 64 "
        "dimensions, a prior learned from the training data, ten candidates, at most 200 epochs with early stopping. "
        "In Python:",
        "```python\nimport bayesneg as bn\n\n"
        "split = bn.split(bn.synthetic(200, 150, seed=0), test=0.2, validation=0.1, seed=0)\n"
        "run = bn.fit(bn.MF.recommended(), split, bn.BNS.recommended(), epochs=200, patience=10, progress=False)\n```",
        f"The recommended settings are {said}. NDCG@20 on a random fifth, one seed and no interval: a difference of a "
        "thousandth says nothing. Baselines have their defaults.",
        f"**How they were chosen.** Not blindly: by the test parts of {' and '.join(CHOSEN_BY)}, where the "
        "candidates below were seen, the first after a probe on one of them; their rows favour the recommended settings. "
        f"{', '.join(name for name in DATASETS if name in measured and name not in CHOSEN_BY)} were measured after the "
        "choice, once.",
        table(
            ["", "users", "items", "interactions", *TITLES.values(), "recommended", "minus the best baseline"],
            [_row(name, one) for name, one in measured.items()],
        ),
        "Seconds of a fit with its evaluation, on two cores that other work shared: orders of magnitude.",
        table(
            ["", "EASE", "recommended", "ratio", "epochs"],
            [_time_row(name, one["methods"]) for name, one in measured.items()],
        ),
        "## What else was tried",
        "NDCG@20; – was not run. *Until now* are the plain defaults, `bn.MF()` with `bn.BNS()`; the recommended settings are "
        f"*{RECOMMENDED}*.",
        table(["", *CANDIDATES], [_tried(name, one["methods"]) for name, one in measured.items()]),
        f"`python -m benchmarks.quality.defaults` measures it. {MADE}",
    )


def _best(methods: Mapping[str, Any]) -> float:
    return max(float(methods[name][METRIC]) for name in BASELINES if name in methods)


def _gap(methods: Mapping[str, Any]) -> float:
    return round(float(methods[RECOMMENDED][METRIC]), 4) - round(_best(methods), 4)


def _row(name: str, one: Mapping[str, Any]) -> list[str]:
    methods = one["methods"]
    label = f"{name}, which chose" if name in CHOSEN_BY else name
    counts = [f"{one[key]:,}" for key in ("users", "items", "interactions")]
    values = [f"{methods[key][METRIC]:.4f}" if key in methods else "–" for key in (*BASELINES, RECOMMENDED)]
    return [label, *counts, *values, signed(_gap(methods))]


def _time_row(name: str, methods: Mapping[str, Any]) -> list[str]:
    own, ease = (float(methods[key]["seconds"]) for key in (RECOMMENDED, "ease"))
    return [name, f"{ease:.0f}", f"{own:.0f}", f"{own / ease:.1f}", str(methods[RECOMMENDED]["epochs"])]


def _tried(name: str, methods: Mapping[str, Any]) -> list[str]:
    return [name, *(f"{methods[key][METRIC]:.4f}" if key in methods else "–" for key in CANDIDATES)]
