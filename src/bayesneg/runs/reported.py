"""What is reported of a run: the usual list lengths, and the record with its result."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesneg.evaluation.metric_names import metric_name
from bayesneg.evaluation.results import EvaluationReport
from bayesneg.interfaces import Scorer
from bayesneg.runs.record import RunRecord

if TYPE_CHECKING:
    from bayesneg.runs.run import Run

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


def metrics_of(run: Run | None) -> dict[str, Any]:
    """What a final model keeps of the run that was measured; nothing where there is none."""
    if run is None:
        return {}
    record = run.record
    line = next((line for line in record.epochs if line["epoch"] == record.reported_epoch), {})
    prefix = "validation_"
    return {
        "reported_epoch": record.reported_epoch,
        "select": record.select,
        "final": dict(record.final),
        "intervals": dict(record.intervals),
        "validation": {key.removeprefix(prefix): value for key, value in line.items() if key.startswith(prefix)},
        "last_epoch": dict(record.epochs[-1]) if record.epochs else {},
        "n_train": record.data.get("n_train"),
        "fingerprint": record.data.get("fingerprint"),
    }


def measured_before(record: RunRecord) -> str:
    """``NDCG@20 was 0.2143 before the final fit, without the held-out part``; empty where nothing was measured."""
    before = record.before_final.get("final", {})
    key = next((key for key in reversed(list(before)) if key.startswith("ndcg@")), None)
    if key is None:
        return ""
    return f"{metric_name(key)} was {before[key]:.4f} before the final fit, without the held-out part"


def ranking_of_cold_users(records: Iterable[RunRecord]) -> str:
    """How users without a training interaction are ranked."""
    ways: dict[str, None] = {}
    for record in records:
        if (record.spec.get("model") or {}).get("class") == "TorchModel":
            ways["by what the custom model gives"] = None
        elif "start" in record.spec:
            ways["by the vector that the start has learned, or by popularity"] = None
        else:
            ways["by popularity"] = None
    return "ranked " + ", or ".join(ways)


def cutoffs(scorer: Scorer) -> tuple[int, ...]:
    """The usual list lengths, as far as the catalogue is long enough."""
    return tuple(sorted({min(k, scorer.n_items) for k in CUTOFFS}))
