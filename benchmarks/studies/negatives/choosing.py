"""What the study chooses, on validation data alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.studies.negatives.plan import BASES, MORE, SEARCHING, TEST, WIDENED, Trial, beyond
from benchmarks.studies.negatives.store import Finished


def best_epoch(run: Mapping[str, Any]) -> tuple[float, int]:
    """The highest NDCG@20 of a run, and the first epoch that has it."""
    curve = {int(line["epoch"]): float(line["ndcg@20"]) for line in run["epochs"] if "ndcg@20" in line}
    epoch = max(curve, key=lambda at: (curve[at], -at))
    return curve[epoch], epoch


def best_of(finished: Finished, trials: Sequence[Trial]) -> tuple[Trial, int, float]:
    """The best of some trials on validation, its epoch and its value; all must be there."""
    missing = [trial for trial in trials if trial.key not in finished]
    if missing:
        raise SystemExit(
            f"{len(missing)} of {len(trials)} trainings of {missing[0].stage} {missing[0].dataset} {missing[0].model} "
            f"{missing[0].contender} are missing; run that stage first"
        )
    assert all(trial.view != TEST for trial in trials)
    judged = [(trial, *best_epoch(finished[trial.key])) for trial in trials]
    trial, value, epoch = max(judged, key=lambda one: one[1])
    return trial, epoch, value


def of_pilot(finished: Finished, trials: Sequence[Trial]) -> dict[str, Any]:
    """The settings of the model that all contenders share."""
    trial, _, _ = best_of(finished, trials)
    return {key: value for key, value in trial.setting.model.items() if key != "batch_size"}


def widened(finished: Finished, trials: Sequence[Trial]) -> list[Trial]:
    """The trials of a search, with those beyond the edge where a contender's best lies there."""
    found = []
    for name in dict.fromkeys(trial.contender for trial in trials):
        own = [trial for trial in trials if trial.contender == name]
        for _ in range(WIDENED):
            if any(trial.key not in finished for trial in own):
                break
            more = beyond(best_of(finished, own)[0], own)
            if not more:
                break
            own += more
        found += own
    return found


def for_lightgcn(finished: Finished, trials: Sequence[Trial]) -> list[str]:
    """The contenders that are searched with LightGCN, those without weights first.

    Args:
        finished: The runs with MF.
        trials: The search with MF, widened.

    Returns:
        Their names; those that follow from the search with MF once it is finished.
    """
    if not trials or len(complete(finished, trials)) < len(trials):
        return list(BASES)
    others = [name for name in SEARCHING if name not in BASES]
    best = {name: best_of(finished, [one for one in trials if one.contender == name])[2] for name in others}
    return [*BASES, *sorted(others, key=lambda name: -best[name])[:MORE]]


def complete(finished: Finished, trials: Sequence[Trial]) -> list[Trial]:
    """The trials of those contenders whose search is finished."""
    missing = {trial.contender for trial in trials if trial.key not in finished}
    return [trial for trial in trials if trial.contender not in missing]


def of_search(finished: Finished, trials: Sequence[Trial]) -> dict[str, tuple[Trial, int]]:
    """The best setting and epoch of each contender."""
    names = dict.fromkeys(trial.contender for trial in trials)
    found = {name: best_of(finished, [trial for trial in trials if trial.contender == name]) for name in names}
    return {name: (trial, epoch) for name, (trial, epoch, _) in found.items()}
