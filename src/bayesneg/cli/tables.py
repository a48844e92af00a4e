"""The tables of the commands, from the same rows as the HTML report's."""

from __future__ import annotations

from collections.abc import Sequence

from bayesneg.cli.output import number, say, show_table
from bayesneg.evaluation.results import Report
from bayesneg.report.summary import Estimate, estimate, final_keys, summarise
from bayesneg.runs.record import RunRecord

SHOWN = ("ndcg", "precision", "recall")  # what fits a narrow terminal; the report has every metric
QUALITY = ("tnr", "tnr_uniform", "tnr_true", "tnr_uniform_true", "inf", "inf_true")


def show_comparison(records: Sequence[RunRecord]) -> None:
    """Rows samplers, columns the metrics at the longest list, and the paired difference to the first row."""
    available = final_keys(records)
    longest = max(int(key.split("@")[1]) for key in available if "@" in key)
    keys = [key for key in (f"{name}@{longest}" for name in SHOWN) if key in available]
    rows = summarise(records, keys)
    main = keys[0]
    table = [
        (
            row.label + (" (sees test labels)" if row.uses_test_labels else ""),
            *(_mean(row.values[key], best=key in row.best) for key in keys),
            _mean(row.differences[main]) if row.differences else "",
        )
        for row in rows
    ]
    title = f"{records[0].dataset}: mean ± 95% interval over {_over(rows[0].values[main])}, * best"
    show_table(title, ("sampler", *keys, f"{main} − {rows[0].label}"), table)
    chosen = "the last epoch" if records[0].select == "last" else "the epoch that was best on validation data"
    say(f"reported: {chosen}; differences are paired by seed")


def show_quality(records: Sequence[RunRecord]) -> None:
    """What was sampled in the last epoch."""
    labels = list(dict.fromkeys(record.label for record in records))
    keys = [key for key in QUALITY if any(record.at_epochs(key) for record in records)]
    rows = []
    for label in labels:
        own = [record for record in records if record.label == label]
        rows.append((label, *(_mean(estimate(record.last(key) for record in own)) for key in keys)))
    show_table("sampled negatives, last epoch", ("sampler", *keys), rows)


def show_run(record: RunRecord) -> None:
    keys = list(record.final)
    rows = [(key, number(record.final[key]), _interval(record, key)) for key in keys]
    where = "last epoch" if record.select == "last" else "best on validation data"
    note = ", sees test labels" if record.uses_test_labels else ""
    show_table(f"{record.label} on {record.dataset}, epoch {record.reported_epoch} ({where}){note}", HEADS, rows)
    show_quality([record])
    for key, what in ODD.items():
        if count := record.data.get(key, 0):
            say(f"{count:,} {what}")


HEADS = ("metric", "mean", "95% over users")
ODD = {
    "n_duplicates": "repeated pairs were collapsed",
    "n_below_min_rating": "rows below --min-rating were dropped",
    "n_test_only_users": "users occur only in test: nothing could be learned about them",
    "n_test_only_items": "items occur only in test",
    "n_users_without_negatives": "users chose every item: they have no negatives and were skipped",
    "n_users_short_of_candidates": "users have fewer unseen items than the sampler wants: it took all they have",
}


def show_metrics(report: Report) -> None:
    rows = []
    for key, mean in report.mean.items():
        low, high = report.interval(key) if key in report.values else (float("nan"), float("nan"))
        rows.append((key, number(mean), f"{number(low)} to {number(high)}" if key in report.values else ""))
    show_table(f"{report.part}: {report.n_users:,} users", HEADS, rows)


def _interval(record: RunRecord, key: str) -> str:
    low, high = record.intervals.get(key) or (None, None)
    if low is None or high is None:
        return ""
    return f"{number(low)} to {number(high)}"


def _mean(value: Estimate, *, best: bool = False) -> str:
    width = f" ±{number(value.half_width)}" if value.has_interval else ""
    return f"{number(value.mean)}{width}{'*' if best else ''}"


def _over(value: Estimate) -> str:
    return f"{value.n} {value.over}" if value.has_interval else "nothing (one run)"
