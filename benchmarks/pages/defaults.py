"""docs/explanation/defaults.md: what `bayesneg train DATA` gives out of the box, from ``benchmarks.quality.defaults``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from benchmarks.machine import read_result
from benchmarks.pages.publish import DOCS, keep
from benchmarks.pages.text import MADE, page, signed, table
from benchmarks.quality.defaults import (
    BASELINES,
    CANDIDATES,
    CHOOSING,
    DATASETS,
    HELD_BACK,
    RECOMMENDED,
)

TITLES: Final = {"popularity": "popularity", "item-knn": "item-kNN", "ease": "EASE", "als": "ALS"}
METRIC: Final = "ndcg@20"
VALIDATION: Final = f"validation_{METRIC}"
MOST_RATIO: Final = 10.0  # of the time of EASE, the goal


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
    slow = [name for name, one in measured.items() if _ratio(one["methods"]) > MOST_RATIO]
    tried = [data[name]["methods"] for name in CHOOSING]
    gains = [one[RECOMMENDED][VALIDATION] - one["random negatives"][VALIDATION] for one in tried]
    return page(
        "# Good out of the box",
        "`bayesneg train DATA` without other options trains `bn.MF.recommended()` with `bn.BNS.recommended()`: 128 "
        "dimensions, started from the embeddings of ALS, whose penalty and weight are chosen on hidden training pairs, a prior learned from the training data by ALS, ten candidates, "
        "at most 200 epochs with early stopping. In Python:",
        "```python\nimport bayesneg as bn\n\n"
        "split = bn.split(bn.synthetic(200, 150, seed=0), test=0.2, validation=0.1, seed=0)\n"
        "run = bn.fit(None, split, progress=False)\n```",
        f"On test data the recommended settings are {said}. NDCG@20 on a random fifth of the interactions, one seed and "
        "no interval: a difference of a thousandth says nothing. Baselines have their defaults.",
        f"**How they were chosen.** By the validation parts of {_listed(CHOOSING)}, after probes that looked at the test "
        "part of ml-100k, and after the test part of kuairec, held back at first, had shown that one setting of ALS does "
        f"not suit all data. {_listed(HELD_BACK)} chose nothing; the first two were measured before that change and "
        "after it. *5k* is a part of 5,000 users; *sparse* keeps 2% to 15% of the interactions of at most 20,000 users, three "
        "each in the median.",
        "**Few interactions, strong popularity.** Where most users have a handful of interactions and popularity is the best "
        "baseline, as on kuairec-sparse and ml-1m-sparse, it is as good as the recommended settings or better; `bayesneg "
        "train` says so where the difference is clear.",
        table(
            ["", "users", "items", "interactions", *TITLES.values(), "recommended", "minus the best baseline"],
            [_row(name, one) for name, one in measured.items()],
        ),
        "Seconds of a fit with its evaluation on one core, while another process used the other one; of the recommended "
        "settings with the start by ALS, the learned prior and early stopping. The goal, ten times EASE, is missed on "
        f"{_listed(slow)}.",
        table(
            ["", "EASE", "recommended", "ratio", "epochs"],
            [_time_row(name, one["methods"]) for name, one in measured.items()],
        ),
        "## What else was tried",
        "NDCG@20 on the validation part, all users, at the epoch that early stopping chose. Each column changes one of the "
        "recommended settings; *plain defaults* are `bn.MF()` with `bn.BNS()`. Most of the gain comes from the start: from "
        f"the same start BNS is worth {signed(min(gains))} to {signed(max(gains))} over random negatives.",
        table(
            ["", *TITLES.values(), *CANDIDATES],
            [_tried(name, one["methods"]) for name, one in measured.items() if name in CHOOSING],
        ),
        f"`python -m benchmarks.quality.defaults` measures it. {MADE}",
    )


def _listed(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}"


def _best(methods: Mapping[str, Any]) -> float:
    return max(float(methods[name][METRIC]) for name in BASELINES if name in methods)


def _gap(methods: Mapping[str, Any]) -> float:
    return round(float(methods[RECOMMENDED][METRIC]), 4) - round(_best(methods), 4)


def _row(name: str, one: Mapping[str, Any]) -> list[str]:
    methods = one["methods"]
    label = f"{name}, held back" if name in HELD_BACK else name
    counts = [f"{one[key]:,}" for key in ("users", "items", "interactions")]
    values = [f"{methods[key][METRIC]:.4f}" if key in methods else "–" for key in (*BASELINES, RECOMMENDED)]
    return [label, *counts, *values, signed(_gap(methods))]


def _ratio(methods: Mapping[str, Any]) -> float:
    return float(methods[RECOMMENDED]["seconds"]) / float(methods["ease"]["seconds"])


def _time_row(name: str, methods: Mapping[str, Any]) -> list[str]:
    seconds = [f"{methods[key]['seconds']:.1f}" for key in ("ease", RECOMMENDED)]
    return [name, *seconds, f"{_ratio(methods):.1f}", str(methods[RECOMMENDED]["epochs"])]


def _tried(name: str, methods: Mapping[str, Any]) -> list[str]:
    """The row of a dataset on its validation part, the best in bold."""
    values = [f"{methods[key][VALIDATION]:.4f}" if key in methods else "–" for key in (*BASELINES, *CANDIDATES)]
    best = max(value for value in values if value != "–")
    return [name, *(f"**{value}**" if value == best else value for value in values)]
