"""From the records of two methods to their paired difference.

Users differ far more than samplers do, and so do seeds; two runs of one seed on the same data share both.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from bayesneg.evaluation.statistics import NOT_MEASURED, Estimate, PairedDifference, paired_difference
from bayesneg.runs.record import RunRecord, is_number

RunPair = tuple[RunRecord, RunRecord]


def paired(one: Sequence[RunRecord], other: Sequence[RunRecord], key: str) -> PairedDifference | None:
    """``one`` minus ``other`` in the metric ``key``; None where they share no seed on the same data.

    Args:
        one: The runs of a method, one per seed.
        other: The runs of the method to subtract.
        key: A metric of ``RunRecord.final``, such as ``"ndcg@20"``.
    """
    pairs = _pairs(one, other)
    if not pairs:
        return None
    over_seeds = paired_over_seeds(one, other, lambda run: _number(run.final.get(key)))
    return PairedDifference(_over_users(pairs, key), over_seeds, len(pairs))


def paired_over_seeds(
    one: Sequence[RunRecord], other: Sequence[RunRecord], value: Callable[[RunRecord], float]
) -> Estimate:
    """``one`` minus ``other`` in any value of a run, over the seeds that both have on the same data.

    Args:
        one: The runs of a method, one per seed.
        other: The runs of the method to subtract.
        value: The value of a run; nan where it was not measured.
    """
    pairs = _pairs(one, other)
    mine, theirs = (np.array([value(pair[side]) for pair in pairs], dtype=np.float64) for side in (0, 1))
    return paired_difference(mine, theirs, over="seeds")


def _pairs(one: Sequence[RunRecord], other: Sequence[RunRecord]) -> list[RunPair]:
    by_seed = {run.seed: run for run in other}
    return [
        (run, by_seed[run.seed])
        for run in sorted(one, key=lambda run: run.seed)
        if run.seed in by_seed and run.data.get("fingerprint") == by_seed[run.seed].data.get("fingerprint")
    ]


def _over_users(pairs: Sequence[RunPair], key: str) -> Estimate:
    """Of each user's mean over the seeds."""
    sides = [[(run.per_user or {}).get(key) for run in side] for side in zip(*pairs, strict=True)]
    lengths = {None if values is None else len(values) for side in sides for values in side}
    if len(lengths) > 1 or None in lengths:  # without values per user, or of different users
        return NOT_MEASURED
    mine, theirs = (np.mean(np.array(side, dtype=np.float64), axis=0) for side in sides)
    return paired_difference(mine, theirs, over="users")


def _number(value: float | None) -> float:
    return float(value) if value is not None and is_number(value) else math.nan
