"""The folded tables of docs/explanation/study.md, and its tables as CSV."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from benchmarks.pages.study.comparisons import against, with_interval
from benchmarks.pages.study.records import Dataset, FinalRuns, Records, Search, is_oracle, named, pairs
from benchmarks.pages.text import signed, table
from benchmarks.studies.beyond import written
from benchmarks.studies.negatives.choosing import best_epoch
from benchmarks.studies.negatives.contenders import Setting
from benchmarks.studies.negatives.plan import BLIND, EQUAL, SEEDS

UNSAID: Final = ("batch_size", "form")  # settings that follow from the dataset
NOTHING: Final = "–"
REFERENCE: Final = "bsl"  # what a contender without knowledge of false negatives has to pass


def setting_text(setting: Setting, shared: Mapping[str, Any] = {}) -> str:
    """What is peculiar to a setting: not what all contenders of a model share."""
    parts = {**setting.model, **setting.loss, **setting.sampler}
    said = {key: value for key, value in parts.items() if key not in UNSAID and shared.get(key) != value}
    return written(said)


# ----------------------------------------------------------------------------------------------------------- search


def search(found: Sequence[Dataset]) -> list[str]:
    parts = []
    for _, records in pairs(found):
        begun = [one for one in records.searches.values() if one.best]
        if begun:
            parts += [
                f"**{records.title}**; all with cosine scores share {written(records.shared)}, by the pilot.",
                table(SEARCH_HEAD, [_searched(one, records) for one in begun], text_columns=2),
            ]
    if not parts:
        return ["No search has begun."]
    return [
        "The best setting and epoch of each contender on the validation part, one seed. *Settings* are the trainings "
        "finished, of those that the plan asks for so far; a search that ended at an edge was widened. *Gradient* is "
        "the share of Σ|∂L/∂s| over the negatives that falls on held-out positives, at that epoch. Every training: "
        "[tables/study-search.csv](tables/study-search.csv).",
        *parts,
    ]


SEARCH_HEAD: Final = (
    "", "best setting", "settings", "epoch", "NDCG@20, validation", "gradient", "s / epoch", "best at an edge"
)  # fmt: skip


def _searched(one: Search, records: Records) -> list[str]:
    assert one.best is not None
    done = str(len(one.runs)) if one.is_complete else f"{len(one.runs)} of {len(one.trials)}"
    return [
        marked(one.name),
        setting_text(one.best.trial.setting, records.shared),
        done,
        str(one.best.epoch),
        f"{one.best.value:.4f}",
        _share(one.best.share),
        f"{one.best.seconds / one.best.epoch:.2f}",
        ", ".join(one.edges),
    ]


def search_rows(found: Sequence[Dataset]) -> list[dict[str, Any]]:
    """Every training on the validation part."""
    return [_search_row(run) for records in _all(found) for run in records.runs.values() if _is_search(run)]


def _search_row(run: Mapping[str, Any]) -> dict[str, Any]:
    trial, (value, epoch) = run["trial"], best_epoch(run)
    line = next(line for line in run["epochs"] if line["epoch"] == epoch)
    share = line.get("gradient_fn")
    return {
        "stage": trial["stage"],
        "dataset": trial["dataset"],
        "model": trial["model"],
        "contender": trial["contender"],
        "setting": setting_text(Setting(**trial["setting"])),
        "best_epoch": epoch,
        "epochs": trial["epochs"],
        "validation_ndcg@20": value,
        "gradient_on_held_out": "" if share is None else float(share),
        "seconds_per_epoch": float(run["training_seconds"]) / trial["epochs"],
        "device": run["machine"]["device"],
    }


def _is_search(run: Mapping[str, Any]) -> bool:
    return bool(run["trial"]["view"] == BLIND[run["trial"]["dataset"]])


# ------------------------------------------------------------------------------------------------------- final runs


def final_runs(found: Sequence[Dataset]) -> list[str]:
    parts = []
    for _, records in pairs(found):
        rows = [_final_row(marked(name), runs) for name, runs in records.finals.items()]
        for name, without in EQUAL.items():
            runs = records.final(name, equal=True)
            if runs is not None:
                rows.append(_final_row(f"{marked(name)}, setting of {named(without)}", runs))
        if rows:
            parts += [f"**{records.title}**", table(FINAL_HEAD, rows, text_columns=2)]
    if not parts:
        return ["There are no final runs yet."]
    return [
        f"Trained on the whole training part up to the chosen epoch, {SEEDS} seeds, of the oracles with LightGCN one. NDCG@20 is the mean over seeds ± half "
        "of the 95% interval over users; the other columns are means over seeds. *Gradient* is the share that falls on "
        "test positives in the last epoch. Seconds are those of training, without evaluation and without fitting a "
        "learned prior, which all trainings of a dataset share.",
        *parts,
    ]


FINAL_HEAD: Final = (
    "", "setting", "epoch", "NDCG@20, test", "Recall@20, test", "gradient", "s / epoch", "seconds"
)  # fmt: skip


def _final_row(name: str, runs: FinalRuns) -> list[str]:
    recall = runs.mean("recall@20")
    return [
        name,
        setting_text(runs.trial.setting),
        str(runs.trial.epochs),
        _tested(runs),
        NOTHING if recall is None else f"{recall:.4f}",
        _share(runs.share),
        f"{runs.seconds / runs.trial.epochs:.2f}",
        f"{runs.seconds:,.0f}",
    ]


def _tested(runs: FinalRuns | None) -> str:
    if runs is None:
        return NOTHING
    found = runs.value
    return f"{found.mean:.4f} ± {found.half_width:.4f}" if found.has_interval else f"{found.mean:.4f}"


def looks(found: Sequence[Dataset]) -> list[str]:
    """Runs on test labels that the search does not ask for: the labels were read more than once."""
    counts = Counter(
        f"{records.title}, {named(run['trial']['contender'])}" for records in _all(found) for run in records.unasked
    )
    if not counts:
        return []
    listed = "; ".join(f"{where}: {n} {'run' if n == 1 else 'runs'}" for where, n in counts.items())
    return [
        "The archive has runs on test labels that the search, as it stands, does not choose. They are in no table and "
        f"no figure: {listed}."
    ]


# -------------------------------------------------------------------------------------------------------- baselines


def baselines(found: Sequence[Dataset]) -> list[str]:
    rows = []
    for dataset in found:
        for name, one in dataset.baselines.searches.items():
            if one.best is None:
                continue
            runs = dataset.baselines.final(name)
            recall = None if runs is None else runs.mean("recall@20")
            rows.append([
                dataset.title,
                named(name),
                setting_text(one.best.trial.setting),
                str(len(one.runs)) if one.is_complete else f"{len(one.runs)} of {len(one.trials)}",
                f"{one.best.value:.4f}",
                _tested(runs),
                NOTHING if recall is None else f"{recall:.4f}",
                f"{one.best.seconds:,.1f}, {_device(one.best.run)}",
                ", ".join(one.edges),
            ])  # fmt: skip
    head = [
        "", "baseline", "best setting", "settings", "NDCG@20, validation", "NDCG@20, test", "Recall@20, test",
        "seconds", "best at an edge",
    ]  # fmt: skip
    if not rows:
        return ["No baseline has been run."]
    return [
        "Chosen on the same part, and widened in the same way. The last column names what still lies at an edge. "
        "Seconds are those of one fit on validation.",
        table(head, rows, text_columns=3),
    ]


# --------------------------------------------------------------------------------------------------- what did not work


def below(found: Sequence[Dataset]) -> list[str]:
    """Contenders below the reference, each at its best: on the test part where both were run, else on validation."""
    tested, validated = [], []
    for dataset, records in pairs(found):
        reference = records.searches.get(REFERENCE)
        for name, one in records.searches.items():
            if name == REFERENCE:
                continue
            found_gap = against(dataset, records, name, REFERENCE)
            if found_gap.is_measured:
                if found_gap.difference.mean < 0:
                    tested.append([records.title, marked(name), with_interval(found_gap.difference)])
            elif reference and reference.best and one.best and one.best.value < reference.best.value:
                unfinished = "" if one.is_complete and reference.is_complete else "unfinished"
                gap = one.best.value - reference.best.value
                validated.append([records.title, marked(name), signed(gap), unfinished])
    parts = []
    if tested:
        head = ["", "contender", f"minus `{REFERENCE}`, NDCG@20, test"]
        parts += [
            "On the test part, with 95% intervals over users, which are not corrected for their number:",
            table(head, tested, text_columns=2),
        ]
    if validated:
        head = ["", "contender", f"minus `{REFERENCE}`, NDCG@20, validation", "search"]
        parts += [
            "On **validation**, one seed, where final runs are missing:",
            table(head, validated, text_columns=2),
        ]
    return parts or [f"No contender that was run is below `{REFERENCE}`."]


# ------------------------------------------------------------------------------------------------- plan and machines


def changes(plan: str) -> list[str]:
    """What docs/explanation/study-plan.md says below "Changes"."""
    section = re.search(r"^## Changes\n(.*?)(?=^## |\Z)", plan, flags=re.DOTALL | re.MULTILINE)
    if section is None:
        raise SystemExit('docs/explanation/study-plan.md has no section "## Changes"; the page of the study prints it')
    return [section[1].strip() or "None."]


def machines(found: Sequence[Dataset]) -> list[str]:
    counts: Counter[str] = Counter()
    seconds: defaultdict[str, float] = defaultdict(float)
    for records in _all(found):
        for run in records.runs.values():
            own = json.dumps(run["machine"], sort_keys=True)
            counts[own] += 1
            seconds[own] += float(run["seconds"])
    rows = []
    for own, n in counts.most_common():
        machine = json.loads(own)
        versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
        where = f"{machine['processor']}, {machine['cores']} cores, {machine['system']}"
        rows.append([machine["device"], where, versions, str(n), f"{seconds[own] / 3600:.1f}"])
    return [
        "Hours are the sum over trainings, evaluation included. Records do not say how many trainings shared a device; compare "
        "seconds as orders of magnitude.",
        table(["device", "machine", "versions", "trainings", "hours"], rows, text_columns=3),
    ]


def marked(name: str) -> str:
    """The name, and whether it sees the labels."""
    return f"{named(name)} (upper bound)" if is_oracle(name) else named(name)


def _device(run: Mapping[str, Any]) -> str:
    device = run["machine"]["device"]
    return "CPU" if device == "cpu" else str(device)


def _share(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.2%}"


def _all(found: Sequence[Dataset]) -> Iterator[Records]:
    return (records for dataset in found for records in dataset.all)
