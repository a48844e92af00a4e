"""docs/beyond.md and its figures from the records in results/beyond/ alone.

python benchmarks/beyond_page.py            write the page and docs/images/beyond/*.svg
python benchmarks/beyond_page.py --check    exit 1 if the page is not what the records give
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from bayesneg.evaluation.intervals import Difference, mean_interval, paired_difference
from bayesneg.lab.markdown import grid, short
from bayesneg.lab.published import published
from bayesneg.lab.studies import DATASETS
from bayesneg.report import canvas
from bayesneg.report.names import number, signed
from bayesneg.report.plots import look
from bayesneg.runs import ledger
from bayesneg.runs.ledger import Entry
from bayesneg.runs.record import RunRecord
from beyond import (
    CURVE,
    MAIN,
    OWN,
    PRIORS,
    RESULTS,
    SIZED,
    SIZES,
    Setting,
    best_epoch,
    chosen,
    setting_of,
    tried,
    written,
)
from pages import keep, only_check

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PAGE: Final = Path(__file__).parent.parent / "docs" / "beyond.md"
IMAGES: Final = PAGE.parent / "images" / "beyond"
SHOWN: Final = ("ndcg@5", "ndcg@10", "ndcg@20", "precision@20", "recall@20")
NAMES: Final = {"mf": "MF", "lightgcn": "LightGCN"}
ROWS: Final = ("RNS", "PNS", "AOBPR", "DNS", "SRNS", "BNS")


def main() -> None:
    check = only_check(__doc__)
    if not check:
        draw()
    keep(PAGE, page(), check=check)


def page() -> str:
    parts = [
        "# Beyond the paper",
        "Written by `python benchmarks/beyond_page.py` from the records in `benchmarks/results/beyond/`; `--check` "
        "tells whether it is current. `benchmarks/beyond.py` makes the records: settings and epoch are chosen on a "
        "tenth of the training part, in a split that has no test labels in it: every setting on one tenth, the best "
        "four and EASE on three. The test labels stand in the tables of the final runs alone, which train on the whole "
        "training part. Where a wider grid was searched after final runs of another setting had been made, those stay "
        "in the table.",
    ]
    for name, found in measured():
        dataset, model = name.rsplit("-", 1)
        parts += [f"## {DATASETS.get(dataset, dataset)}, {NAMES[model]}", *study(name, found, dataset)]
    return "\n\n".join(parts) + "\n"


def measured() -> Iterator[tuple[str, list[Entry]]]:
    """Every dataset and model that has records."""
    for path in sorted(RESULTS.glob("*.jsonl")):
        yield path.stem, list(ledger.read(path).values())


def study(name: str, found: Sequence[Entry], dataset: str) -> list[str]:
    setting, epoch, l2 = chosen(found)
    judged = [entry for entry in found if entry.cell["view"] == "last" and entry.cell["dataset"] == dataset]
    return [
        f"Chosen on validation: {text_of(setting)}; epoch {epoch}; EASE with l2 = {l2:g}.",
        *final(judged, dataset, (setting, epoch), l2),
        *curve(name, judged),
        *sizes(found, dataset),
        *search(found),
    ]


def text_of(setting: Setting) -> str:
    return written({**setting[0], **setting[1]})


def final(found: Sequence[Entry], dataset: str, choice: tuple[Setting, int], l2: float) -> list[str]:
    rows: dict[str, list[RunRecord]] = {OWN: []}
    for entry in found:
        label = entry.cell["label"]
        if label == OWN and (setting_of(entry), entry.cell["epochs"]) != choice:
            label = f"chosen before: {text_of(setting_of(entry))}; epoch {entry.cell['epochs']}"
        if entry.cell["model"] == "ease":
            label = f"EASE, l2 = {entry.cell['model_settings']['l2']:g}"
        if not label.startswith(PRIORS):
            rows.setdefault(label, []).append(entry.record)
    own = rows[OWN]
    if not own:
        return ["The final runs are not there yet: `benchmarks/beyond.py final`."]
    head = ["", "seeds", *map(short, SHOWN)]
    lines = [
        [label, str(len(records)), *(estimate(records, key) for key in SHOWN)]
        for label, records in sorted(rows.items(), key=lambda row: (row[0] != OWN, -mean_of(row[1])))
    ]
    parts = ["### Final runs", grid([head, ["---", "---:", *("---:" for _ in SHOWN)], *lines])]
    solved = {label: records[0] for label, records in rows.items() if label.startswith("EASE")}
    if solved:
        parts.append(against_ease(own, solved, f"EASE, l2 = {l2:g}"))
    parts.append(against_paper(own, dataset))
    return parts


def mean_of(records: Sequence[RunRecord]) -> float:
    return float(np.mean([record.final[MAIN] or 0.0 for record in records]))


def estimate(records: Sequence[RunRecord], key: str) -> str:
    values = np.array([record.final[key] for record in records], dtype=np.float64)
    if len(values) == 1:
        return number(float(values[0]), 4)
    low, high = mean_interval(values)
    return f"{number(float(values.mean()), 4)} ± {number((high - low) / 2, 4)}"


def against_ease(own: Sequence[RunRecord], solved: Mapping[str, RunRecord], by_validation: str) -> str:
    """Against the EASE that validation chose, and the best there could have been; EASE has no seed."""
    in_hindsight = max(solved, key=lambda label: solved[label].final[MAIN] or 0.0)
    named = {by_validation: "chosen on validation", in_hindsight: "the best on the test labels"}
    if by_validation == in_hindsight:
        named = {by_validation: "chosen on validation, and the best on the test labels"}
    texts = []
    for label, why in named.items():
        if label not in solved:
            continue
        users, (low, high), clear = difference(own, solved[label])
        verdict = "clearly above" if clear else "not clearly above" if users.high > 0 else "below"
        texts.append(
            f"NDCG@20 minus that of {label} ({why}): {signed(users.mean, 4)}, 95% interval over users "
            f"{signed(users.low, 4)} to {signed(users.high, 4)}, over seeds {signed(low, 4)} to {signed(high, 4)}: "
            f"**{verdict}**."
        )
    return " ".join(texts)


def difference(own: Sequence[RunRecord], ease: RunRecord) -> tuple[Difference, tuple[float, float], bool]:
    """Over users (each user's mean over the seeds), the interval over seeds, and whether both lie above 0."""
    mean = np.mean([(run.per_user or {})[MAIN] for run in own], axis=0)
    users = paired_difference(mean, (ease.per_user or {})[MAIN])
    seeds = mean_interval(np.array([(run.final[MAIN] or 0.0) - (ease.final[MAIN] or 0.0) for run in own]))
    return users, seeds, min(users.low, seeds[0]) > 0


def against_paper(own: Sequence[RunRecord], dataset: str) -> str:
    best = {
        NAMES[model]: max(published(f"table2/{row}", dataset, model).get(MAIN, 0.0) for row in ROWS) for model in NAMES
    }
    low, _ = mean_interval(np.array([run.final[MAIN] for run in own], dtype=np.float64))
    texts = [
        f"{number(value, 4)} ({name}): {'above' if low > value else 'not clearly above'}"
        for name, value in best.items()
    ]
    return f"The paper's best NDCG@20 on this data: {'; '.join(texts)} (interval over seeds)."


def curves(found: Sequence[Entry]) -> dict[str, dict[int, list[RunRecord]]]:
    """For each prior the runs with every number of candidates."""
    rows: dict[str, dict[int, list[RunRecord]]] = {}
    for entry in found:
        prior, _, m = entry.cell["label"].partition(", m = ")
        if prior in PRIORS:
            rows.setdefault(prior, {}).setdefault(int(m), []).append(entry.record)
    return rows


def curve(name: str, found: Sequence[Entry]) -> list[str]:
    rows = curves(found)
    if not rows:
        return []
    head = ["NDCG@20", *(f"m = {m}" for m in CURVE)]
    lines = [[prior, *(estimate(own[m], MAIN) if m in own else "" for m in CURVE)] for prior, own in rows.items()]
    n_seeds = max(len(records) for own in rows.values() for records in own.values())
    return [
        "### More candidates",
        f"The chosen setting and the paper's prior, likelihood and λ of the chosen setting, {n_seeds} seeds, at the "
        "chosen epoch.",
        grid([head, ["---", *("---:" for _ in CURVE)], *lines]),
        f"![NDCG@20 against the number of candidates, for both priors](images/beyond/{name}.svg)",
    ]


def sizes(found: Sequence[Entry], dataset: str) -> list[str]:
    """The chosen setting and EASE with less and less data."""
    lines = []
    for percent in SIZES:
        own = [entry for entry in found if entry.cell["dataset"] == f"{dataset}@{percent}"]
        runs = [entry.record for entry in own if entry.cell["label"] == SIZED]
        solved = [entry for entry in own if entry.cell["model"] == "ease"]
        if not runs or not solved:
            continue
        best = max(solved, key=lambda entry: entry.record.final[MAIN] or 0.0)
        users, _, clear = difference(runs, best.record)
        ease = f"{number(best.record.final[MAIN], 4)} (l2 = {best.cell['model_settings']['l2']:g})"
        gap = f"{signed(users.mean, 4)} ({signed(users.low, 4)} to {signed(users.high, 4)})"
        verdict = "above" if clear else "below" if users.high < 0 else "not told apart"
        lines.append([f"{percent}%", f"{runs[0].data['n_train']:,}", estimate(runs, MAIN), ease, gap, verdict])
    if not lines:
        return []
    head = ["training part", "pairs", "chosen on validation", "EASE, best l2 on test", "difference, over users", ""]
    return [
        "### Less data",
        "NDCG@20 on the whole test part after training on a random share of the training part, with the setting and "
        "the epoch chosen on all of it; EASE has the l2 that is best on the test labels of each row.",
        grid([head, ["---", *("---:" for _ in head[1:])], *lines]),
    ]


def draw() -> None:
    """The curves, as SVG."""
    IMAGES.mkdir(parents=True, exist_ok=True)
    for name, found in measured():
        rows = curves([entry for entry in found if entry.cell["view"] == "last"])
        if rows:
            (IMAGES / f"{name}.svg").write_text(canvas.svg(partial(draw_curves, rows), name) + "\n", encoding="utf-8")


def draw_curves(rows: Mapping[str, Mapping[int, Sequence[RunRecord]]], axes: Axes) -> None:
    for place, (prior, own) in enumerate(rows.items()):
        candidates = sorted(own)
        values = [np.array([record.final[MAIN] for record in own[m]], dtype=np.float64) for m in candidates]
        spread = [
            (high - low) / 2 if len(found) > 1 else 0.0 for found in values for low, high in [mean_interval(found)]
        ]
        axes.errorbar(candidates, [found.mean() for found in values], spread, label=prior, capsize=3, **look(place))
    axes.set_xscale("log")
    axes.set_xticks(CURVE, [str(m) for m in CURVE])
    axes.minorticks_off()
    axes.set_xlabel("candidates m")
    axes.set_ylabel("NDCG@20")
    axes.legend(frameon=False)


def search(found: Sequence[Entry]) -> list[str]:
    """The settings judged on the most tenths first: on one alone a setting may be lucky."""
    lines = []
    for kind, name in (("", text_of), ("ease", lambda setting: f"EASE, {text_of(setting)}")):
        ordered = sorted(tried(found, kind=kind), key=lambda one: (-len(one[1]), -best_epoch(one[1])[0]))
        for setting, runs in ordered:
            value, epoch = best_epoch(runs)
            n_runs = sum(map(len, runs.values()))
            lines.append([name(setting), str(len(runs)), str(n_runs), number(value, 4), "" if kind else str(epoch)])
    head = ["setting", "tenths", "runs", "NDCG@20 on validation", "best epoch"]
    table = grid([head, ["---", *("---:" for _ in head[1:])], *lines])
    return [f"<details><summary>What was tried on validation</summary>\n\n{table}\n\n</details>"]


if __name__ == "__main__":
    main()
