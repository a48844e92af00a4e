"""The tables of the commands, from the same rows as the HTML report's."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from bayesneg.cli.output import counted, say, show, show_table
from bayesneg.evaluation.results import EvaluationReport
from bayesneg.evaluation.statistics import Estimate, estimate
from bayesneg.report.details import loss_facts
from bayesneg.report.finding import finding
from bayesneg.report.names import UNIFORM, decimals, number, percent
from bayesneg.report.summary import final_keys, summarise
from bayesneg.runs.record import RunRecord, is_number
from bayesneg.runs.reported import ranking_of_cold_users

SHOWN = ("ndcg", "recall")  # what fits a narrow terminal; the report has every metric
QUALITY = {  # key → the key of what uniform sampling is expected to have
    "tnr": "tnr_uniform",
    "tnr_true": "tnr_uniform_true",
    "inf": None,
    "inf_true": None,
    "gradient_fn": None,
    "gradient_fn_true": None,
}
ODD = {  # key of a record's data facts → singular, plural
    "n_duplicates": ("repeated pair was collapsed", "repeated pairs were collapsed"),
    "n_below_min_rating": ("row below --min-rating was dropped", "rows below --min-rating were dropped"),
    "n_test_only_users": (
        "user has no training interaction and is {ranked}",
        "users have no training interaction and are {ranked}",
    ),
    "n_users_not_evaluated": (
        "user with test interactions was not evaluated: a sample is drawn of so many",
        "users with test interactions were not evaluated: a sample is drawn of so many",
    ),
    "n_test_only_items": ("item occurs only in test", "items occur only in test"),
    "n_users_without_negatives": (
        "user has no unobserved item and was skipped",
        "users have no unobserved item and were skipped",
    ),
    "n_users_short_of_candidates": (
        "user has fewer unobserved items than the sampler draws candidates: all were used",
        "users have fewer unobserved items than the sampler draws candidates: all were used",
    ),
}


def show_comparison(records: Sequence[RunRecord], *, with_finding: bool = True) -> None:
    """Rows samplers; columns the metrics at the longest list, the paired difference to the first row, and the
    false-negative rate of the picks; then what was found, in words, unless that was said before.
    """
    available = final_keys(records)
    longest = max(int(key.split("@")[1]) for key in available if "@" in key)
    keys = [key for key in (f"{name}@{longest}" for name in SHOWN) if key in available]
    rows = summarise(records, keys)
    main = keys[0]
    rates = any(is_number(row.false_negatives.mean) for row in rows)
    with_loss = any(row.unsaid_loss for row in rows)
    table = [
        (
            row.label + (" (sees test labels)" if row.uses_test_labels else ""),
            *([row.loss] if with_loss else []),
            *(mean_text(row.values[key], best=key in row.best) for key in keys),
            mean_text(row.differences[main]) if row.differences else "",
            *([percent(row.false_negatives.mean, row.false_negatives.half_width)] if rates else []),
        )
        for row in rows
    ]
    title = f"{records[0].dataset}: mean ± 95% interval over {_over(rows[0].values[main])}, * highest mean"
    heads = (
        "sampler",
        *(["loss"] if with_loss else []),
        *keys,
        f"{main} − {rows[0].label}",
        *(["false negatives"] if rates else []),
    )
    show_table(title, heads, table, n_text=2 if with_loss else 1)
    chosen = "the last epoch" if records[0].select == "last" else "the epoch that was best on validation data"
    show(f"reported: {chosen}; differences are paired; {loss_facts(records)}")
    if rates:
        bound = "by the ground truth" if all(row.truth_known for row in rows) else "by held-out labels, a lower bound"
        show(f"false negatives: their share of the last epoch's picks, {bound}")
    _say_odd(records[0].data, records)
    if with_finding:
        show(finding(records, main))


def show_quality(records: Sequence[RunRecord]) -> None:
    """What was sampled in the last epoch, above what uniform sampling would be expected to give; baselines left out."""
    records = [record for record in records if not record.is_baseline]
    if not records:
        return
    labels = list(dict.fromkeys(record.label for record in records))
    keys = [key for key in QUALITY if any(record.at_epochs(key) for record in records)]
    if not keys:  # a final model: there are no labels
        return
    rows = []
    for label in labels:
        own = [record for record in records if record.label == label]
        name = f"{label} (sees test labels)" if own[0].uses_test_labels else label
        rows.append((name, *(mean_text(estimate(record.last(key) for record in own)) for key in keys)))
    uniform = [records[0].last(QUALITY[key] or "") for key in keys]
    rows.append((UNIFORM, *("" if math.isnan(value) else number(value) for value in uniform)))
    show_table("sampled negatives, last epoch", ("sampler", *keys), rows)


def show_run(record: RunRecord) -> None:
    where = "last" if record.select == "last" else "best on validation data"
    note = ", sees test labels" if record.uses_test_labels else ""
    loss = f", loss {record.loss}" if record.loss else ""
    title = f"{record.label} on {record.dataset}{loss}, epoch {record.reported_epoch} ({where}){note}"
    if record.final:
        _show_metrics(title, record.final, record.intervals)
    else:
        show(f"{title}: trained on all data; nothing is held out, so {_measured_before(record)}")
        if record.before_final:
            _show_metrics("without the held-out part", record.before_final["final"], record.before_final["intervals"])
    show_quality([record])
    _say_odd(record.data, [record])


def _measured_before(record: RunRecord) -> str:
    if not record.before_final:
        return "nothing was measured"
    return f"metrics were measured before, at epoch {record.before_final['reported_epoch']}"


def show_report(report: EvaluationReport, record: RunRecord) -> None:
    intervals = {key: report.interval(key) for key in report.values}
    _show_metrics(f"{report.part}: {counted(report.n_users, 'user', 'users')}", report.mean, intervals)
    facts = {
        "n_test_only_users": report.n_users_without_training,
        "n_users_not_evaluated": report.n_users_not_evaluated,
    }
    _say_odd(facts, [record])


def _show_metrics(title: str, means: Mapping[str, float | None], intervals: Mapping[str, Any]) -> None:
    """Rows metrics, columns list lengths."""
    lengths = list(dict.fromkeys(key.partition("@")[2] for key in means if "@" in key))
    names = list(dict.fromkeys(key.partition("@")[0] for key in means))

    def cell(key: str) -> str:
        low, high = intervals.get(key) or (None, None)
        return mean_text(_estimate(means[key], low, high)) if key in means else ""

    rows = [(name, *(cell(f"{name}@{length}") for length in lengths)) for name in names if name not in means]
    alone = [(name, *[""] * (len(lengths) - 1), cell(name)) for name in names if name in means]
    show_table(title, ("mean ±95%", *(f"@{length}" for length in lengths)), [*rows, *alone])


def _estimate(mean: float | None, low: float | None, high: float | None) -> Estimate:
    value = math.nan if mean is None else mean
    if low is None or high is None or not (is_number(low) and is_number(high)):
        return Estimate(value)
    return Estimate(value, low, high, "users")


def _say_odd(facts: Mapping[str, Any], records: Sequence[RunRecord]) -> None:
    for key, (one, many) in ODD.items():
        if count := facts.get(key, 0):
            say(counted(count, one, many).format(ranked=ranking_of_cold_users(records)))


def mean_text(value: Estimate, *, best: bool = False) -> str:
    digits = decimals(value.mean)
    width = f" ±{number(value.half_width, digits)}" if value.has_interval else ""
    return f"{number(value.mean)}{width}{'*' if best else ''}"


def _over(value: Estimate) -> str:
    return f"{value.n} {value.over}" if value.has_interval else "nothing (one run)"
