"""docs/beyond.md from the records in results/beyond/ alone.

python benchmarks/beyond_page.py            write the page
python benchmarks/beyond_page.py --check    exit 1 if the page is not what the records give
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from bayesneg.evaluation.intervals import mean_interval, paired_difference
from bayesneg.lab.markdown import grid, short
from bayesneg.lab.published import published
from bayesneg.lab.studies import DATASETS
from bayesneg.report.names import number, signed
from bayesneg.runs import ledger
from bayesneg.runs.ledger import Entry
from bayesneg.runs.record import RunRecord
from beyond import CURVE, MAIN, RESULTS, best_epoch, chosen, written
from pages import keep, only_check

PAGE: Final = Path(__file__).parent.parent / "docs" / "beyond.md"
SHOWN: Final = ("ndcg@5", "ndcg@10", "ndcg@20", "precision@20", "recall@20")
NAMES: Final = {"mf": "MF", "lightgcn": "LightGCN"}
ROWS: Final = ("RNS", "PNS", "AOBPR", "DNS", "SRNS", "BNS")


def main() -> None:
    keep(PAGE, page(), check=only_check(__doc__))


def page() -> str:
    parts = [
        "# Beyond the paper",
        "Written by `python benchmarks/beyond_page.py` from the records in `benchmarks/results/beyond/`; `--check` "
        "tells whether it is current. `benchmarks/beyond.py` makes the records: settings and epoch are chosen on a "
        "tenth of the training part, in a split that has no test labels in it; the test labels are looked at once, in "
        "the tables of the final runs, which train on the whole training part.",
    ]
    for path in sorted(RESULTS.glob("*.jsonl")):
        found = list(ledger.read(path).values())
        dataset, model = re.fullmatch(r"(.+)-(mf|lightgcn)", path.stem).groups()  # type: ignore[union-attr]
        parts += [f"## {DATASETS.get(dataset, dataset)}, {NAMES[model]}", *study(found, dataset)]
    return "\n\n".join(parts) + "\n"


def study(found: Sequence[Entry], dataset: str) -> list[str]:
    setting, epoch, l2 = chosen(found)
    searched = [entry for entry in found if entry.cell["view"] == "blind"]
    by_label: dict[str, list[Entry]] = {}
    for entry in found:
        if entry.cell["view"] == "last":
            by_label.setdefault(entry.cell["label"], []).append(entry)
    text = written({**setting[0], **setting[1]})
    return [
        f"Chosen on validation: {text}; epoch {epoch}; EASE with l2 = {l2:g}.",
        *final(by_label, dataset, epoch),
        *curve(by_label),
        *search(searched),
    ]


def final(rows: Mapping[str, Sequence[Entry]], dataset: str, epoch: int) -> list[str]:
    kept = {label: rows[label] for label in ("chosen on validation", "the paper's BNS") if label in rows}
    if not kept:
        return ["The final runs are not there yet: `benchmarks/beyond.py final`."]
    kept |= {label: rows[label] for label in ("ease", "item-knn", "popularity") if label in rows}
    head = ["", "seeds", *map(short, SHOWN)]
    lines = [
        [label, str(len(entries)), *(estimate([entry.record for entry in entries], key) for key in SHOWN)]
        for label, entries in kept.items()
    ]
    parts = ["### Final runs", grid([head, ["---", "---:", *("---:" for _ in SHOWN)], *lines])]
    own = [entry.record for entry in kept["chosen on validation"]]
    if "ease" in kept:
        parts.append(against_ease(own, kept["ease"][0].record))
    parts.append(against_paper(own, dataset))
    return parts


def estimate(records: Sequence[RunRecord], key: str) -> str:
    values = np.array([record.final[key] for record in records], dtype=np.float64)
    if len(values) == 1:
        return number(float(values[0]), 4)
    low, high = mean_interval(values)
    return f"{number(float(values.mean()), 4)} ± {number((high - low) / 2, 4)}"


def against_ease(own: Sequence[RunRecord], ease: RunRecord) -> str:
    """Paired over users (each user's mean over the seeds) and over seeds; EASE has no seed."""
    users = paired_difference(np.mean([(run.per_user or {})[MAIN] for run in own], axis=0), (ease.per_user or {})[MAIN])
    low, high = mean_interval(np.array([(run.final[MAIN] or 0.0) - (ease.final[MAIN] or 0.0) for run in own]))
    clear = min(users.low, low) > 0
    verdict = "clearly above EASE" if clear else "not clearly above EASE" if users.high > 0 else "below EASE"
    return (
        f"NDCG@20 minus EASE's: {signed(users.mean, 4)}, 95% interval over users {signed(users.low, 4)} to "
        f"{signed(users.high, 4)}, over seeds {signed(low, 4)} to {signed(high, 4)}: **{verdict}**."
    )


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


def curve(rows: Mapping[str, Sequence[Entry]]) -> list[str]:
    priors = ("learned prior", "the paper's prior")
    if not any(label.startswith(priors) for label in rows):
        return []
    head = ["NDCG@20", *(f"m = {m}" for m in CURVE)]
    lines = [
        [prior, *(estimate([entry.record for entry in rows.get(f"{prior}, m = {m}", [])], MAIN)
                  if f"{prior}, m = {m}" in rows else "" for m in CURVE)]
        for prior in priors
    ]  # fmt: skip
    return ["### More candidates", grid([head, ["---", *("---:" for _ in CURVE)], *lines])]


def search(found: Sequence[Entry]) -> list[str]:
    trained = sorted((entry for entry in found if entry.cell["sampler"]), key=lambda e: -best_epoch(e.record)[0])
    lines = [
        [written({**entry.cell["sampler_settings"], **entry.cell["model_settings"]}),
         *(f"{value:.4f}" if place == 0 else str(value) for place, value in enumerate(best_epoch(entry.record)))]
        for entry in trained
    ]  # fmt: skip
    lines += [
        [f"EASE, l2={entry.cell['model_settings']['l2']:g}", number(entry.record.final[MAIN], 4), ""]
        for entry in found
        if entry.cell["model"] == "ease"
    ]
    table = grid([["setting", "NDCG@20 on validation", "best epoch"], ["---", "---:", "---:"], *lines])
    return [f"<details><summary>What was tried on validation</summary>\n\n{table}\n\n</details>"]


if __name__ == "__main__":
    main()
