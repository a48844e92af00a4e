"""docs/results.md, and the short table in README.md, from the result files alone.

Every number is read from the records of the reproduction (results/reproduction/ml-100k-mf.parquet) and from
results/speed/bench_epoch.json, and where they exist from the result files of LightGCN (lightgcn_speed.py); the
paper's are those of bayesneg.reproduction.published.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from bayesneg.evaluation.statistics import mean_interval, paired_difference
from bayesneg.reproduction.published import published
from bayesneg.reproduction.studies import NEAR
from benchmarks import archive
from benchmarks.machine import RESULTS, read_result
from benchmarks.pages import lightgcn_speed
from benchmarks.pages.publish import keep

HERE: Final = Path(__file__).parent.parent
PAGE: Final = HERE.parent / "docs" / "results.md"
README: Final = HERE.parent / "README.md"
BEGIN: Final = "<!-- begin: written by benchmarks.pages -->"
END: Final = "<!-- end: written by benchmarks.pages -->"

# NDCG@5, @10, @20 of MF on MovieLens-100K as published; table 2 (comparison) and table 3 (study of BNS)
PAPER: Final = {
    label: tuple(published(f"{table}/{label}", "ml-100k", "mf")[f"ndcg@{k}"] for k in (5, 10, 20))
    for table, labels in (("table2", "RNS PNS AOBPR DNS SRNS BNS"), ("table3", "BNS-1 BNS-2 BNS-3 BNS-4"))
    for label in labels.split()
}
CUTOFFS: Final = (5, 10, 20)
MAIN: Final = "ndcg@20"
LOOK: Final = 20  # epochs between two looks at the test labels that every row has
LEAKY: Final = "highest NDCG@20 seen on test"
ROWS: Final = ("RNS", "PNS", "AOBPR", "AOBPR (rank by factor)", "DNS", "DNS (m = 5)", "SRNS", "BNS",
               "BNS (F over all items)", "BNS-1", "BNS-2", "BNS-3", "BNS-4", "Posterior")  # fmt: skip
RIVAL: Final = "DNS (m = 5)"  # as many candidates as BNS
SPEED_GOAL: Final = 40.0  # times faster than the plain NumPy loop, set before anything was measured
SHORT: Final = ("RNS", "PNS", "AOBPR", "SRNS", "DNS", RIVAL, "BNS")  # the README's rows
MINUS: Final = "−"

Run = dict[str, Any]


def publish(*, check: bool) -> None:
    runs, speed = _measured(), read_result("speed/bench_epoch") or {}
    keep(PAGE, page(runs, speed), check=check)
    keep(README, with_table(README.read_text(encoding="utf-8"), runs), check=check)


def page(runs: Sequence[Run], speed: dict[str, Any]) -> str:
    _check_alike(runs)
    parts = [
        "# Results",
        "This page is written by `python -m benchmarks.pages` from the files in `benchmarks/results/`. "
        "Do not edit it by hand; `--check` tells whether it is current.",
        *_ranking(runs),
        *_negatives(runs),
        *_leaky(runs),
        *_speed(speed),
        *lightgcn_speed.sections(),
        *_how(runs, speed),
    ]
    return "\n\n".join(parts) + "\n"


def with_table(readme: str, runs: Sequence[Run]) -> str:
    """The README with its short table made anew between the two marks."""
    before, begin, rest = readme.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"README.md must hold the two marks {BEGIN} and {END}")
    groups = _by_label(runs)
    rows = [
        [label, str(len(own)), _mean(_finals(own, MAIN)), _paper(label, 20), _mean(_values(own, "tnr"))]
        for label, own in groups.items()
        if label in SHORT
    ]
    table = _table(["sampler", "seeds", "NDCG@20", "paper", "TNR"], rows)
    return f"{before}{begin}\n{table}\n{end}{after}"


# ---------------------------------------------------------------------------------------------------------- sections


def _ranking(runs: Sequence[Run]) -> list[str]:
    rows = [
        [
            label,
            str(len(own)),
            *(_mean(_finals(own, f"ndcg@{k}")) for k in CUTOFFS),
            _paper(label, 20),
            _signed(float(_finals(own, MAIN).mean()) - PAPER[label][2]) if label in PAPER else "",
        ]
        for label, own in _by_label(runs).items()
    ]
    head = ["sampler", "seeds", *(f"NDCG@{k}" for k in CUTOFFS), "paper, NDCG@20", "ours − paper"]
    return [
        "## Recommendation quality on MovieLens-100K",
        "MF at the paper's settings on the split the paper's authors published, epoch 100, mean ± half of the 95% "
        "interval (Student t) over seeds. A seed sets the first vectors, the order of examples and every "
        "draw; the split is one and the same, so the intervals say nothing about other splits or other users. "
        "Rows with a paper value use the settings of the paper's row as far as it states them. [reproduction.md]"
        "(reproduction.md) has every table of the paper, the readings, LightGCN and MovieLens-1M.",
        _table(head, rows),
        _reproduced(runs),
        *_findings(runs),
    ]


def _reproduced(runs: Sequence[Run]) -> str:
    """Which published rows these runs meet, and which they do not."""
    gaps = {
        label: float(_finals(own, MAIN).mean()) - PAPER[label][2]
        for label, own in _by_label(runs).items()
        if label in PAPER
    }
    near = [label for label, gap in gaps.items() if abs(gap) < NEAR]
    far = [f"{label} ({_signed(gap)})" for label, gap in gaps.items() if abs(gap) >= NEAR]
    said = f"Within {NEAR} of the published NDCG@20: {', '.join(near) or 'none'}."
    if not far:
        return said
    return (
        f"{said} **Not reproduced**: {', '.join(far)}. The paper leaves room in how they are read and set; "
        "[reproduction.md](reproduction.md) has readings that were measured."
    )


def _findings(runs: Sequence[Run]) -> list[str]:
    """What the table says, worked out from the runs, so that no sentence outlives its number."""
    groups = _by_label(runs)
    leaders = []
    for k in CUTOFFS:
        means = {label: float(_finals(own, f"ndcg@{k}").mean()) for label, own in groups.items()}
        first = max(means, key=lambda label: means[label])
        leaders.append(f"{first} at {k} ({means[first]:.4f})")
    if "BNS" not in groups:
        return [f"Highest mean NDCG: {', '.join(leaders)}."]
    rows = []
    for label, own in groups.items():
        if label == "BNS":
            continue
        here, there = _shared(groups["BNS"], own)
        difference = paired_difference(_finals(here, MAIN), _finals(there, MAIN))
        verdict = "not distinguishable"
        if difference.low > 0 or difference.high < 0:
            verdict = "BNS higher" if difference.mean > 0 else "BNS lower"
        interval = f"{_signed(difference.low)} to {_signed(difference.high)}"
        rows.append([label, _signed(difference.mean), interval, verdict])
    return [
        f"Highest mean NDCG: {', '.join(leaders)}.",
        "How far BNS (5 candidates, λ = 5, popularity prior) is above each other sampler in NDCG@20, paired by the "
        "seeds that both have. With few seeds only clear differences show; no correction is made for looking at many "
        f"rows. {RIVAL} is the closest relative: the same number of candidates, and no prior.",
        _table(["BNS against", "difference", "95% interval", "reading"], rows),
    ]


def _negatives(runs: Sequence[Run]) -> list[str]:
    rows = [
        [label, _mean(_values(own, "tnr")), f"{_values(own, 'tnr_uniform').mean():.4f}", _mean(_values(own, "inf"))]
        for label, own in _by_label(runs).items()
    ]
    return [
        "## Sampled negatives, epoch 100",
        "TNR is the share of sampled negatives that are not among the held-out positives; beside it the TNR that "
        "uniform sampling has in expectation. INF is the mean gradient size of the sampled negatives, those that are "
        "held-out positives counted with a minus. A hard sampler buys a larger INF with a lower TNR." + _compared(runs),
        _table(["sampler", "TNR", "TNR if uniform", "INF"], rows),
    ]


def _compared(runs: Sequence[Run]) -> str:
    """Whether BNS avoids false negatives, as the numbers have it."""
    tnr = {label: float(_values(own, "tnr").mean()) for label, own in _by_label(runs).items()}
    said = ""
    if {"RNS", "BNS"} <= tnr.keys():
        more, than = ("more", "not fewer") if tnr["BNS"] < tnr["RNS"] else ("fewer", "not more")
        said += f" BNS samples {more} false negatives than RNS, {than} ({tnr['BNS']:.4f} against {tnr['RNS']:.4f})."
    if "Posterior" in tnr:
        said += f" Posterior takes the safest candidate, hard or not, and has a TNR of {tnr['Posterior']:.4f}."
    return said


def _leaky(runs: Sequence[Run]) -> list[str]:
    rows = []
    for label, own in _by_label(runs).items():
        last, best = _finals(own, MAIN), _values(own, LEAKY)
        rows.append([label, f"{last.mean():.4f}", f"{best.mean():.4f}", _signed(float((last - best).mean()))])
    return [
        "## Over-fitting: the last epoch against the best one seen on test",
        "**The middle column is leakage** and no result: it looks at the test labels every "
        f"{LOOK} epochs and keeps the highest value. It stands here only to show how much each sampler has lost by "
        "epoch 100. A large loss means that the sampler over-fits, and that part of another sampler's lead at the "
        "last epoch is only that it does so later. The library itself chooses epochs on validation data or takes the "
        "last, never on test.",
        _table(["sampler", "NDCG@20, epoch 100", "highest on the way (leaky)", "lost since"], rows),
        *_lead(runs),
    ]


def _lead(runs: Sequence[Run]) -> list[str]:
    """How much of BNS's lead over DNS with as many candidates is later over-fitting."""
    groups = _by_label(runs)
    if not {"BNS", RIVAL} <= groups.keys():
        return []
    own, other = _shared(groups["BNS"], groups[RIVAL])
    last = float((_finals(own, MAIN) - _finals(other, MAIN)).mean())
    best = float((_values(own, LEAKY) - _values(other, LEAKY)).mean())
    return [
        f"BNS is {_signed(last)} above {RIVAL} at the last epoch, and {_signed(best)} between the best epochs of both: "
        "the rest of the lead is that BNS over-fits later."
        if last > best > 0
        else f"BNS against {RIVAL}: {_signed(last)} at the last epoch, {_signed(best)} between the best epochs of both."
    ]


def _speed(speed: dict[str, Any]) -> list[str]:
    rows = [
        [name, _milliseconds(seconds), _span(speed["all_seconds"][name])]
        for name, seconds in speed["seconds_per_epoch"].items()
    ]
    ratios = [[name, f"{value:.2f}" if value < 10 else f"{value:.1f}"] for name, value in speed["ratios"].items()]
    measured = float(speed["ratios"]["plain NumPy, candidate by candidate / exact BNS"])
    first = float(speed["ratios"]["plain NumPy, candidate by candidate / exact BNS, first epochs"])
    reached = "reached" if measured >= SPEED_GOAL else "**not reached**"
    n_repeats = len(next(iter(speed["all_seconds"].values())))
    compiled = int(speed["compilations_in_second_process"])
    return [
        "## Speed",
        f"One epoch of MF on the 80,000 training pairs of the same split, d = 32, one thread, median of {n_repeats} "
        "repeats in one process; each repeat times every contender once. Exact BNS is the mean over a training of 100 "
        "epochs; its first epochs, in which the early proof of [equations.md](equations.md) helps least, are a row of "
        "their own. All others cost the same in every epoch and are timed near the start. The plain NumPy loops are "
        "the paper's algorithm one example at a time, once with F counted candidate by candidate and once for all "
        "candidates together; they see a part of the examples and are scaled up. implicit's BPR is a yardstick and "
        "not a like-for-like race: it draws its negatives in proportion to popularity, and skips an example whose "
        "negative turns out to be a training positive, where RNS draws an unobserved item every time.",
        _table(["contender", "ms per epoch", "fastest to slowest"], rows),
        _table(["ratio of medians", ""], ratios),
        f"The goal for exact BNS was {SPEED_GOAL:g} times the plain loop, candidate by candidate: {reached} over a "
        f"training of 100 epochs ({measured:.1f}); in the first epochs alone it is {first:.1f}. "
        f"Kernels compiled by a second process: {compiled}"
        f"{' (they come from the disk cache)' if compiled == 0 else ''}.",
    ]


def _how(runs: Sequence[Run], speed: dict[str, Any]) -> list[str]:
    first = runs[0]
    model = ", ".join(f"{key}={value}" for key, value in first["spec"]["model"].items() if key != "class")
    n_repeats = len(next(iter(speed["all_seconds"].values())))
    return [
        "## Machine, versions, settings",
        _table(["result", "processor", "cores", "system", "versions"], [["speed", *_machine(speed["machine"])]]),
        f"Every record names its own versions. Model: MF with {model}. Data fingerprint (a hash over both parts of the "
        f"split): `{first['fingerprint']}`.",
        "## Commands",
        "`BAYESNEG_DATA` names a folder that holds `bns-100k-split` with the authors' `100k_train.csv` and "
        "`100k_test.csv` (columns user, item, rating) and `mapping_users.csv` (columns user, occupation and more, from "
        "MovieLens-100K's `u.user`, for BNS-4). None of it may be passed on with this project.",
        "```sh\n"
        "BAYESNEG_DATA=data .venv/bin/bayesneg reproduce table2 --dataset ml-100k --model mf\n"
        "# likewise table3, readings and fig4; then the lines of reproduction/records.jsonl with this dataset and\n"
        "# model go to benchmarks/results/reproduction/ml-100k-mf.jsonl\n"
        f"BAYESNEG_DATA=data .venv/bin/python -m benchmarks.speed.bench_epoch --repeats {n_repeats}   "
        "# needs the extra: pip install -e '.[bench]'\n"
        "BAYESNEG_DATA=data .venv/bin/python -m benchmarks.speed.bench_lightgcn --device cuda  # or cpu\n"
        ".venv/bin/python -m benchmarks.pages results\n"
        "```",
    ]


# ------------------------------------------------------------------------------------------------ reading the records


def _measured() -> list[Run]:
    """The runs of every row, one for each seed, at the last epoch."""
    found: dict[tuple[str, int], Run] = {}
    for entry in archive.read(RESULTS / "reproduction" / "ml-100k-mf.parquet").values():
        cell, record = entry.cell, entry.record
        if cell["view"] != "last" or cell["label"] not in ROWS or cell["model_settings"]:
            continue
        seen = {epoch: value for epoch, value in record.at_epochs(MAIN).items() if epoch % LOOK == 0}
        key = (cell["label"], record.seed)
        if key in found and len(seen) < len(found[key]["seen"]):
            continue  # the same row of another table, looked at less often
        found[key] = {
            "label": cell["label"],
            "seed": record.seed,
            "fingerprint": record.data["fingerprint"],
            "spec": record.spec,
            "final": record.final,
            **{key: record.last(key) for key in ("tnr", "tnr_uniform", "inf")},
            "epochs": cell["epochs"],
            "settings": cell["sampler_settings"],
            "seen": seen,
            LEAKY: max(seen.values()),
        }
    return sorted(found.values(), key=lambda run: (ROWS.index(run["label"]), run["seed"]))


def _check_alike(runs: Sequence[Run]) -> None:
    """Rows of one table must share data and model."""
    for what, values in (
        ("data", {run["fingerprint"] for run in runs}),
        ("numbers of epochs", {run["epochs"] for run in runs}),
        ("looks at the test labels", {tuple(run["seen"]) for run in runs}),
        ("model settings", {json.dumps(run["spec"]["model"], sort_keys=True) for run in runs}),
    ):
        if len(values) != 1:
            raise SystemExit(f"the records mix runs with different {what}; make them anew")
    for label, own in _by_label(runs).items():
        if len({json.dumps(run["settings"], sort_keys=True) for run in own}) != 1:
            raise SystemExit(f"the records of {label} mix different settings of the sampler; make them anew")


def _shared(one: Sequence[Run], other: Sequence[Run]) -> tuple[list[Run], list[Run]]:
    """The runs of the seeds that both have."""
    seeds = {run["seed"] for run in one} & {run["seed"] for run in other}
    first, second = ([run for run in runs if run["seed"] in seeds] for runs in (one, other))
    return first, second


def _by_label(runs: Sequence[Run]) -> dict[str, list[Run]]:
    """Sampler → its runs by seed, in the order of the file."""
    groups: dict[str, list[Run]] = {}
    for run in runs:
        groups.setdefault(str(run["label"]), []).append(run)
    return {label: sorted(own, key=lambda run: int(run["seed"])) for label, own in groups.items()}


def _finals(runs: Iterable[Run], key: str) -> np.ndarray:
    return np.array([run["final"][key] for run in runs], dtype=np.float64)


def _values(runs: Iterable[Run], key: str) -> np.ndarray:
    return np.array([run[key] for run in runs], dtype=np.float64)


# -------------------------------------------------------------------------------------------------- numbers as text


def _mean(values: np.ndarray) -> str:
    low, high = mean_interval(values)
    half = "" if math.isnan(low) else f" ± {(high - low) / 2:.4f}"
    return f"{values.mean():.4f}{half}"


def _paper(label: str, k: int) -> str:
    return f"{PAPER[label][CUTOFFS.index(k)]:.4f}" if label in PAPER else ""


def _signed(value: float) -> str:
    if math.isnan(value):
        return "–"
    rounded = round(value, 4)
    sign = "+" if rounded > 0 else MINUS if rounded < 0 else ""
    return f"{sign}{abs(rounded):.4f}"


def _milliseconds(seconds: float) -> str:
    value = seconds * 1000
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


def _span(seconds: Sequence[float]) -> str:
    return f"{_milliseconds(min(seconds))} to {_milliseconds(max(seconds))}"


def _machine(machine: dict[str, Any]) -> list[str]:
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    return [str(machine["processor"]), str(machine["cores"]), str(machine["system"]), versions]


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    rule = ["---", *("---:" for _ in head[1:])]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, rule, *rows))
