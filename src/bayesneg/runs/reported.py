"""What is reported of a run: the usual list lengths, and the record with its result."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bayesneg.evaluation.results import EvaluationReport
from bayesneg.interfaces import Scorer
from bayesneg.runs.record import RunRecord

CUTOFFS = (5, 10, 20)
NOTHING_HELD_OUT = EvaluationReport(
    part="test", mean={}, values={}, user_ids=np.empty(0, dtype=np.int64), n_users_without_training=0
)


def with_result(record: RunRecord, report: EvaluationReport) -> RunRecord:
    """The record with the metrics that a final evaluation found."""
    return replace(
        record,
        final=dict(report.mean),
        intervals={key: report.interval(key) for key in report.values},
        per_user=dict(report.values),
    )


def cutoffs(scorer: Scorer) -> tuple[int, ...]:
    """The usual list lengths, as far as the catalogue is long enough."""
    return tuple(sorted({min(k, scorer.n_items) for k in CUTOFFS}))
