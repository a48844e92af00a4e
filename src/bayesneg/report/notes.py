"""Warnings that belong to a comparison."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from bayesneg.evaluation.metric_names import metric_name
from bayesneg.report.groups import RunGroup, final_value, run_groups
from bayesneg.report.names import counted, joined, primary_key
from bayesneg.report.summary import final_keys
from bayesneg.runs.record import RunRecord, is_number
from bayesneg.runs.reported import measured_before, ranking_of_cold_users


def notes(runs: Sequence[RunRecord]) -> list[str]:
    """Sentences about one study; empty where there is no warning."""
    groups = run_groups(runs)
    return [
        *_final(runs),
        *_unmeasured(groups),
        *_oracles(groups),
        *_unlike(groups),
        *_skipped(runs),
        *_test_only(runs),
    ]


def _final(runs: Sequence[RunRecord]) -> Iterator[str]:
    for run in runs:
        if before := measured_before(run):
            yield f"{run.label} was trained on all data, so that nothing is left to measure it with; {before}."


def _unmeasured(groups: Sequence[RunGroup]) -> Iterator[str]:
    """Runs that no mean of the metric that ranks includes, where others have it: no winner is ahead of those."""
    key = primary_key(final_keys([run for group in groups for run in group.runs]))
    if key is None:
        return
    for group in groups:
        missing = [run for run in group.runs if not is_number(final_value(run, key)) and not measured_before(run)]
        if missing:
            seeds = f"{'seed' if len(missing) == 1 else 'seeds'} {joined(str(run.seed) for run in missing)}"
            yield f"{group.name} has no {metric_name(key)} with {seeds}: the ranking and its means leave this out."


def _oracles(groups: Sequence[RunGroup]) -> Iterator[str]:
    seeing = [group.name for group in groups if group.uses_test_labels]
    if seeing:
        sees = "sees" if len(seeing) == 1 else "see"
        yield f"{joined(seeing)} {sees} the test labels on purpose, as an upper bound: no fair competitor."


def _unlike(groups: Sequence[RunGroup]) -> Iterator[str]:
    """Ways in which the groups differ besides their sampler."""
    trained = [group for group in groups if not group.is_baseline]
    stops = all(run.spec.get("patience") for group in trained for run in group.runs)  # early, each where it is done
    if _differ(trained, lambda run: len(run.epochs)) and not stops:
        lengths = joined(f"{group.name} {len(group.runs[0].epochs)}" for group in trained)
        yield f"Trained for different numbers of epochs: {lengths}."
    if _differ(groups, lambda run: run.select):
        yield "Some runs report their last epoch, others the best on validation data: compare with care."
    if len({group.seeds for group in groups}) > 1:
        seeds = joined(f"{group.name} {', '.join(map(str, group.seeds))}" for group in groups)
        yield f"The samplers were run with different seeds: {seeds}. Differences use the shared ones."
    by_seed: dict[int, set[object]] = {}
    for run in (run for group in groups for run in group.runs):
        by_seed.setdefault(run.seed, set()).add(run.data.get("fingerprint"))
    if any(len(fingerprints) > 1 for fingerprints in by_seed.values()):
        yield "Runs of the same seed were evaluated on different data, so their differences are not shown."


def _differ(groups: Sequence[RunGroup], of: Callable[[RunRecord], object]) -> bool:
    return len({of(run) for group in groups for run in group.runs}) > 1


def _skipped(runs: Sequence[RunRecord]) -> Iterator[str]:
    skipped = sum(int(n) for run in runs for n in run.at_epochs("skipped").values())
    if skipped:
        yield (f"{counted(skipped, 'training example')} (over all epochs and runs) had no negative and were skipped.")


def _test_only(runs: Sequence[RunRecord]) -> Iterator[str]:
    consequences = {
        "user": f"and {{are}} {ranking_of_cold_users(runs)}",
        "item": "so nothing was learned about {them}",
    }
    for noun, consequence in consequences.items():
        n = max((_count(run.data.get(f"n_test_only_{noun}s")) for run in runs), default=0)
        if n:
            words = {"are": "is", "them": "it"} if n == 1 else {"are": "are", "them": "them"}
            have = "has" if n == 1 else "have"
            yield f"{counted(n, f'test {noun}')} {have} no training interaction, {consequence.format(**words)}."


def _count(value: Any) -> int:
    return int(value) if is_number(value) else 0
