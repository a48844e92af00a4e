"""The parts of docs/results.md about LightGCN, each only where its result file exists.

The paper's numbers are the LightGCN rows of its table 2; the probes' were measured before this
code was written, one seed each.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from bayesneg.evaluation.intervals import mean_interval
from bayesneg.lab.published import published

HERE: Final = Path(__file__).parent
CUTOFFS: Final = (5, 10, 20)
MAIN: Final = "ndcg@20"
PROBES: Final = {  # NDCG@20; ML-1M at epoch 45
    "ml-100k": {"RNS": 0.4301, "PNS": 0.3767, "DNS": 0.4313, "BNS": 0.4270},
    "ml-1m": {"RNS": 0.3768, "DNS": 0.3856, "BNS": 0.3958},
}
NAMES: Final = {"ml-100k": "MovieLens-100K", "ml-1m": "MovieLens-1M"}
DEVICES: Final = {"cpu": "on the CPU", "cuda": "on a GPU"}
RATIO: Final = "BNS / RNS"
GOAL: Final = 1.5  # of that ratio, at most; set before anything was measured

Result = dict[str, Any]


def sections(folder: Path = HERE / "results") -> list[str]:
    """Whatever the result files in ``folder`` give; nothing where there are none."""
    quality = _read(folder / "quality_lightgcn.json")
    parts = [] if quality is None else _quality(quality)
    for device in DEVICES:
        speed = _read(folder / f"bench_lightgcn_{device}.json")
        parts += [] if speed is None else _speed(speed, device)
    return parts


def _quality(result: Result) -> list[str]:
    parts = ["## LightGCN"]
    for dataset in dict.fromkeys(run["dataset"] for run in result["runs"]):
        runs = [run for run in result["runs"] if run["dataset"] == dataset]
        n_seeds = len({run["seed"] for run in runs})
        rows = []
        for label in dict.fromkeys(run["label"] for run in runs):
            own = sorted((run for run in runs if run["label"] == label), key=lambda run: int(run["seed"]))
            mean = float(_finals(own, MAIN).mean())
            paper = published(f"table2/{label}", dataset, "lightgcn").get(MAIN)
            known = (paper, PROBES.get(dataset, {}).get(label))
            beside = [cell for value in known for cell in _beside(mean, value)]
            tnr = np.array([run["tnr"] for run in own], dtype=np.float64)
            rows.append([label, *(_mean(_finals(own, f"ndcg@{k}")) for k in CUTOFFS), _mean(tnr), *beside])
        head = ["sampler", *(f"NDCG@{k}" for k in CUTOFFS), "TNR"]
        head += ["paper, NDCG@20", "ours − paper", "probe, NDCG@20", "ours − probe"]
        parts += [
            f"### {NAMES.get(dataset, dataset)}",
            f"LightGCN at the paper's settings, epoch {_epochs(runs)}, mean ± half of the 95% interval (Student t) "
            f"over {n_seeds} seeds, on {result.get('device', 'cpu')}. "
            f"The probe is one seed{', epoch 45' if dataset == 'ml-1m' else ''}.",
            _table(head, rows),
        ]
    return [*parts, _machine(result["machine"]), *_note(result)]


def _epochs(runs: Sequence[Result]) -> int:
    found = {int(run["epochs"]) for run in runs}
    if len(found) != 1:
        raise SystemExit(f"quality_lightgcn.json mixes runs of {sorted(found)} epochs; make it anew")
    return found.pop()


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
        _table(["data", "sampler", "seconds per epoch"], rows),
        f"BNS over RNS, of medians; the goal was at most {GOAL:g}: {', '.join(ratios) or 'not measured'}.",
    ]
    if whole or million:
        parts.append(_table(["what", "measured", "value"], [*whole, *million]))
    return [*parts, _machine(result["machine"]), *_note(result)]


def _note(result: Result) -> list[str]:
    """What a reader must know of how the file came about."""
    return [str(result["note"])] if "note" in result else []


def _read(path: Path) -> Result | None:
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def _finals(runs: Iterable[Result], key: str) -> np.ndarray:
    return np.array([run["final"][key] for run in runs], dtype=np.float64)


def _beside(mean: float, known: float | None) -> tuple[str, str]:
    if known is None:
        return "", ""
    gap = round(mean - known, 4)
    sign = "+" if gap > 0 else "−" if gap < 0 else ""
    return f"{known:.4f}", f"{sign}{abs(gap):.4f}"


def _mean(values: np.ndarray) -> str:
    low, high = mean_interval(values)
    half = "" if math.isnan(low) else f" ± {(high - low) / 2:.4f}"
    return f"{values.mean():.4f}{half}"


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _machine(machine: Result) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    return f"Measured on {machine['processor']}, {machine['cores']} cores, {machine['system']}; {versions}."


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    rule = ["---", *("---:" for _ in head[1:])]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, rule, *rows))
