"""The folded end of the report: what is needed to check or repeat the runs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bayesneg.report import tables
from bayesneg.report.groups import RunGroup, run_groups
from bayesneg.report.names import joined
from bayesneg.report.pages import CodeBlock, Section
from bayesneg.report.summary import final_keys
from bayesneg.runs.record import RunRecord

_DATA_NAMES = {
    "name": "Name",
    "n_users": "Users",
    "n_items": "Items",
    "n_train": "Training interactions",
    "n_validation": "Validation interactions",
    "n_test": "Test interactions",
    "n_duplicates": "Duplicates removed",
    "n_test_only_users": "Users only in test",
    "n_test_only_items": "Items only in test",
    "n_below_min_rating": "Interactions below the minimum rating",
    "n_users_without_negatives": "Users who have interacted with every item",
    "n_users_short_of_candidates": "Users with fewer unobserved items than candidates",
    "truth_known": "Ground truth of every pair known",
    "split": "Split",
    "fingerprint": "Fingerprint",
}


def details(found: Mapping[str, Sequence[RunRecord]]) -> Section:
    """Data, runs, settings and versions of all studies, folded."""
    folds: list[Section] = []
    for dataset, runs in found.items():
        of = f": {dataset}" if len(found) > 1 else ""
        groups = run_groups(runs)
        choice = epoch_choice(runs)
        folds += [
            Section(f"Dataset{of}", tables=[tables.facts(f"Dataset {dataset}", _data_facts(runs))]),
            Section(f"Every run{of}", tables=[tables.every_run(groups, final_keys(runs))]),
            Section(
                f"Settings{of}",
                text=f"{choice[0].upper()}{choice[1:]}.",
                code=[block for group in groups for block in _settings(group)],
            ),
        ]
    if versions := _merged([run.versions for runs in found.values() for run in runs]):
        software = tables.facts("Software and machine of the runs", list(versions.items()))
        folds.append(Section("Versions", tables=[software]))
    return Section("Details", folds=folds)


def _data_facts(runs: Sequence[RunRecord]) -> list[tuple[str, str]]:
    merged = _merged([run.data for run in runs])
    known = [key for key in _DATA_NAMES if key in merged]
    rest = [key for key in merged if key not in _DATA_NAMES]
    return [(_DATA_NAMES.get(key, key.replace("_", " ")), merged[key]) for key in (*known, *rest)]


def _merged(mappings: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Key → its value as text; the distinct values side by side where runs differ."""
    merged: dict[str, dict[str, None]] = {}
    for mapping in mappings:
        for key, value in mapping.items():
            merged.setdefault(key, {})[_text(value)] = None
    return {key: "; ".join(values) for key, values in merged.items()}


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _settings(group: RunGroup) -> Iterator[CodeBlock]:
    """The settings of each run, once where only the seed differs."""
    specs: dict[str, list[int]] = {}
    for run in group.runs:
        spec = {key: value for key, value in run.spec.items() if key != "seed"}
        specs.setdefault(json.dumps(spec, indent=2, ensure_ascii=False, default=str), []).append(run.seed)
    for place, (text, seeds) in enumerate(specs.items()):
        loss = f", loss {group.loss}" if group.loss else ""
        said = f"Seed {joined(map(str, seeds))}. {group.runs[0].model}{loss}"
        yield CodeBlock("" if place else group.marked_name, said, text)


def loss_facts(runs: Sequence[RunRecord]) -> str:
    """``loss BPR``, or all of them; empty where nothing was trained with negatives."""
    losses = list(dict.fromkeys(run.loss for run in runs if not run.is_baseline))
    return f"{'loss' if len(losses) == 1 else 'losses'} {joined(losses)}" if losses else ""


def epoch_choice(runs: Sequence[RunRecord]) -> str:
    """Which epoch is reported, and how it was chosen."""
    epochs = sorted({run.reported_epoch for run in runs if not run.is_baseline})
    if not epochs:
        return "fitted without epochs"
    which = f"epoch {epochs[0]}" if len(epochs) == 1 else f"epochs {epochs[0]} to {epochs[-1]}"
    choices = {run.select for run in runs}
    if choices == {"last"}:
        return f"last epoch reported ({which})"
    if choices == {"best"}:
        return f"best epoch on validation data reported ({which}); test labels were not used to choose"
    return f"last epoch or best on validation data reported ({which}); test labels were not used to choose"
