"""From the records of two methods to their paired difference.

Users differ far more than samplers do, and so do seeds; two runs of one seed on the same data share both.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bayesneg.evaluation.statistics import NOT_MEASURED, Estimate, PairedDifference, paired_difference
from bayesneg.runs.record import RunRecord, is_number

RunPair = tuple[RunRecord, RunRecord]


def paired(one: Sequence[RunRecord], other: Sequence[RunRecord], key: str) -> PairedDifference | None:
    """``one`` minus ``other`` in the metric ``key``; None where they share no seed on the same data.

    Args:
        one: the runs of a method, one per seed.
        other: the runs of the method to subtract.
        key: a metric of ``RunRecord.final``, such as ``"ndcg@20"``.
    """
    by_seed = {run.seed: run for run in other}
    pairs = [
        (run, by_seed[run.seed])
        for run in sorted(one, key=lambda run: run.seed)
        if run.seed in by_seed and run.data.get("fingerprint") == by_seed[run.seed].data.get("fingerprint")
    ]
    return PairedDifference(_over_users(pairs, key), _over_seeds(pairs, key), len(pairs)) if pairs else None


def _over_users(pairs: Sequence[RunPair], key: str) -> Estimate:
    """Of each user's mean over the seeds."""
    sides = [[(run.per_user or {}).get(key) for run in side] for side in zip(*pairs, strict=True)]
    lengths = {None if values is None else len(values) for side in sides for values in side}
    if len(lengths) > 1 or None in lengths:  # without values per user, or of different users
        return NOT_MEASURED
    mine, theirs = (np.mean(np.array(side, dtype=np.float64), axis=0) for side in sides)
    return paired_difference(mine, theirs, over="users")


def _over_seeds(pairs: Sequence[RunPair], key: str) -> Estimate:
    """Of each seed's mean over the users."""
    values = [[run.final.get(key) for run in side] for side in zip(*pairs, strict=True)]
    mine, theirs = (np.array([v if is_number(v) else np.nan for v in side], dtype=np.float64) for side in values)
    return paired_difference(mine, theirs, over="seeds")
