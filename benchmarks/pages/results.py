"""docs/explanation/results.md, from the archive of the reproduction on MovieLens-100K with MF."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np

from bayesneg.evaluation.statistics import paired_difference
from bayesneg.reproduction.published import published
from bayesneg.reproduction.studies import NEAR
from benchmarks import archive
from benchmarks.machine import RESULTS
from benchmarks.pages.publish import DOCS, keep
from benchmarks.pages.text import MADE, folded, signed, table, with_interval
from benchmarks.pages.text import page as joined

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

Run = dict[str, Any]


def publish(*, check: bool) -> None:
    runs = _measured()
    keep(DOCS / "results.md", page(runs), check=check)


def page(runs: Sequence[Run]) -> str:
    _check_alike(runs)
    first = runs[0]
    model = ", ".join(f"{key}={value}" for key, value in first["spec"]["model"].items() if key != "class")
    return joined(
        "# Results on MovieLens-100K",
        *_ranking(runs),
        folded("BNS against every other sampler", *_findings(runs)),
        "## Sampled negatives",
        *_negatives(runs),
        "## Over-fitting",
        *_leaky(runs),
        f"Model: MF with {model}. Fingerprint of the split: `{first['fingerprint']}`. [reproduction.md](reproduction.md) "
        "has every table of the paper, LightGCN and MovieLens-1M; [speed.md](speed.md) has times. `BAYESNEG_DATA` must "
        "name a folder with the authors' files `bns-100k-split/100k_train.csv`, `100k_test.csv` and "
        "`mapping_users.csv`; `bayesneg reproduce table2 --dataset ml-100k --model mf` (likewise `table3`, `readings`, "
        f"`fig4`) runs the rows again. {MADE}",
    )


def _ranking(runs: Sequence[Run]) -> list[str]:
    rows = [
        [
            label,
            str(len(own)),
            *(with_interval(_finals(own, f"ndcg@{k}")) for k in CUTOFFS),
            _paper(label, 20),
            signed(float(_finals(own, MAIN).mean()) - PAPER[label][2]) if label in PAPER else "",
        ]
        for label, own in _by_label(runs).items()
    ]
    head = ["sampler", "seeds", *(f"NDCG@{k}" for k in CUTOFFS), "paper, NDCG@20", "ours − paper"]
    return [
        "MF at the paper's settings on the authors' split, epoch 100; mean ± half of the 95% interval (Student t) over "
        "seeds of training on this one split.",
        table(head, rows),
        _reproduced(runs),
    ]


def _reproduced(runs: Sequence[Run]) -> str:
    """Which published rows these runs meet, and which they do not."""
    gaps = {
        label: float(_finals(own, MAIN).mean()) - PAPER[label][2]
        for label, own in _by_label(runs).items()
        if label in PAPER
    }
    near = [label for label, gap in gaps.items() if abs(gap) < NEAR]
    far = [f"{label} ({signed(gap)})" for label, gap in gaps.items() if abs(gap) >= NEAR]
    said = f"Within {NEAR} of the published NDCG@20: {', '.join(near) or 'none'}."
    if not far:
        return said
    return (
        f"{said} **Not reproduced**: {', '.join(far)}; [reproduction.md](reproduction.md) has other readings of them."
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
        interval = f"{signed(difference.low)} to {signed(difference.high)}"
        rows.append([label, signed(difference.mean), interval, verdict])
    return [
        f"Highest mean NDCG: {', '.join(leaders)}.",
        "BNS (m = 5, λ = 5, popularity prior) minus each sampler in NDCG@20, paired by seed, without correction for "
        f"multiple comparisons. {RIVAL} has the same number of candidates and no prior.",
        table(["BNS against", "difference", "95% interval", "verdict"], rows),
    ]


def _negatives(runs: Sequence[Run]) -> list[str]:
    rows = [
        [
            label,
            with_interval(_values(own, "tnr")),
            f"{_values(own, 'tnr_uniform').mean():.4f}",
            with_interval(_values(own, "inf")),
        ]
        for label, own in _by_label(runs).items()
    ]
    return [
        "TNR is the share of sampled negatives that are not held-out positives, INF their mean gradient magnitude, counted "
        "negative for held-out positives; epoch 100." + _compared(runs),
        folded("TNR and INF of every sampler", table(["sampler", "TNR", "TNR if uniform", "INF"], rows)),
    ]


def _compared(runs: Sequence[Run]) -> str:
    """Whether BNS avoids false negatives, as the numbers have it."""
    tnr = {label: float(_values(own, "tnr").mean()) for label, own in _by_label(runs).items()}
    said = ""
    if {"RNS", "BNS"} <= tnr.keys():
        more = "more" if tnr["BNS"] < tnr["RNS"] else "fewer"
        said += f" BNS samples {more} false negatives than RNS (TNR {tnr['BNS']:.4f} against {tnr['RNS']:.4f})."
    if "Posterior" in tnr:
        said += f" Posterior, which takes the safest candidate, has a TNR of {tnr['Posterior']:.4f}."
    return said


def _leaky(runs: Sequence[Run]) -> list[str]:
    rows = []
    for label, own in _by_label(runs).items():
        last, best = _finals(own, MAIN), _values(own, LEAKY)
        rows.append([label, f"{last.mean():.4f}", f"{best.mean():.4f}", signed(float((last - best).mean()))])
    return [
        f"How much each sampler has lost by epoch 100 against its best epoch on test labels (evaluated every {LOOK} epochs). "
        "**The best epoch is chosen on test labels and is no result.** " + _lead(runs),
        folded(
            "Last and best epoch of every sampler",
            table(["sampler", "NDCG@20, epoch 100", "best epoch on test (leaky)", "difference"], rows),
        ),
    ]


def _lead(runs: Sequence[Run]) -> str:
    """How much of BNS's lead over DNS with as many candidates is later over-fitting."""
    groups = _by_label(runs)
    if not {"BNS", RIVAL} <= groups.keys():
        return ""
    own, other = _shared(groups["BNS"], groups[RIVAL])
    last = float((_finals(own, MAIN) - _finals(other, MAIN)).mean())
    best = float((_values(own, LEAKY) - _values(other, LEAKY)).mean())
    return (
        f"BNS minus {RIVAL}: {signed(last)} at epoch 100, {signed(best)} between their best epochs; the rest is that BNS "
        "over-fits later."
    )


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
            raise SystemExit(f"the records mix runs with different {what}; run them again")
    for label, own in _by_label(runs).items():
        if len({json.dumps(run["settings"], sort_keys=True) for run in own}) != 1:
            raise SystemExit(f"the records of {label} mix different settings of the sampler; run them again")


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


def _paper(label: str, k: int) -> str:
    return f"{PAPER[label][CUTOFFS.index(k)]:.4f}" if label in PAPER else ""
