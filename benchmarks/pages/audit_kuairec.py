"""docs/explanation/audit-kuairec.md, its tables and figures, from results/audit_kuairec.parquet."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from bayesneg.evaluation.calibration import EDGES
from bayesneg.evaluation.picks import RELIABILITY
from bayesneg.evaluation.statistics import Estimate
from bayesneg.report.audit_page.rows import (
    CALIBRATION,
    PICKS,
    AuditedSplit,
    audit_finding,
    audited,
    bins,
    measured,
    short_names,
)
from bayesneg.report.groups import RunGroup
from bayesneg.report.names import UNIFORM
from bayesneg.report.summary import final_estimate
from benchmarks import archive
from benchmarks.machine import RESULTS
from benchmarks.pages.publish import DOCS, keep, keep_pictures
from benchmarks.pages.text import MADE, comma_separated, folded, page, table

MIDDLE: Final = 1  # the split of which calibration is shown
FEWEST: Final = 30  # picks that a bin needs to be shown
CANDIDATES: Final = tuple(f"candidates_{key}" for key in list(CALIBRATION)[:3])


def publish(*, check: bool) -> None:
    found = audited([entry.record for entry in archive.read(RESULTS / "audit_kuairec.parquet").values()])
    keep_pictures(DOCS / "images" / "audit", partial(draw, found), check=check)
    keep(DOCS / "audit-kuairec.md", document(found), check=check)
    tables = {"audit-kuairec": measures(found), "audit-kuairec-bins": reliability(found)}
    for name, rows in tables.items():
        keep(DOCS / "tables" / f"{name}.csv", comma_separated(rows), check=check)


def document(found: Sequence[AuditedSplit]) -> str:
    middle = found[MIDDLE]
    return page(
        "# Audit on KuaiRec: which sampler picks false negatives",
        _about(found),
        "\n".join(f"- {split.name}: {audit_finding(split)}" for split in found),
        f"- {_calibration(middle)}",
        "![Share of false negatives by sampler and hidden share](images/audit/across.svg)",
        folded("Share of false negatives among the sampled negatives, all samplers", _false_negatives(found)),
        folded(
            f"Reliability diagram and calibration of unbias, {middle.name}",
            "![Reliability diagram](images/audit/reliability.svg)",
            _calibration_table(middle),
        ),
        "All measures (hardness, popularity of the picks, TNR, INF, NDCG@20, calibration of picks and candidates) are in "
        "[tables/audit-kuairec.csv](tables/audit-kuairec.csv), the bins of the reliability diagrams in "
        "[tables/audit-kuairec-bins.csv](tables/audit-kuairec-bins.csv). [audit.md](../how-to/audit.md) defines the measures; "
        f"`python -m benchmarks.studies.audit_kuairec` runs the study. {MADE}",
    )


def _about(found: Sequence[AuditedSplit]) -> str:
    run = found[0].runs[0]
    n_seeds = sorted({len(group.runs) for split in found for group in split.groups})
    facts = [split.runs[0].data for split in found]
    *ratios, last = (f"{data['n_test'] / data['n_train']:.2f}" for data in facts)
    return (
        f"In the small matrix of KuaiRec ({run.data['n_users']:,} users, {run.data['n_items']:,} videos) nearly every "
        "pair was observed, so it is known whether the user likes the video (watch ratio above 2). A share of each "
        "user's positives is hidden from training; these are all false negatives, so every rate is the true one. The "
        "hidden-to-observed ratios of the three splits are "
        f"{', '.join(ratios)} and {last}. The rate and the learned prior assume 0.25; rows marked *with the true hidden "
        "ratio* are given the ratio of the split and nothing else from the hidden labels. The data has no user columns, "
        "so there are no group priors, and exposure is not recorded, so there is no exposure prior. "
        f"{run.model}, epoch {run.epochs[-1]['epoch']}, {' or '.join(map(str, n_seeds))} seeds, ± half of the 95% "
        "interval over seeds. Runs of learned priors predate a fix of the top bin of the isotonic calibration curve."
    )


def _calibration(split: AuditedSplit) -> str:
    """Whose unbias has a lower Brier score than a constant."""
    gaps = {group.marked_name: _gap(group) for group in split.with_posterior}
    better = [name for name, gap in gaps.items() if gap < 0]
    listed = ", ".join(better) or "none"
    return (
        f"Calibration, {split.name}: the unbias of {len(better)} of {len(gaps)} samplers has a lower Brier score on "
        f"their picks than a constant that knows the base rate: {listed}."
    )


def _gap(group: RunGroup) -> float:
    return float(np.mean([run.last("brier") - run.last("brier_constant") for run in group.runs]))


def _false_negatives(found: Sequence[AuditedSplit]) -> str:
    rows = [
        [group.marked_name, *(_text(measured(split.groups[place], "fn")) for split in found)]
        for place, group in enumerate(found[0].groups)
    ]
    rows.append([UNIFORM, *(f"{split.uniform:.4f}" for split in found)])
    return table(["sampler", *short_names(found)], rows)


def _calibration_table(split: AuditedSplit) -> str:
    rows = [
        [group.marked_name, *(_text(measured(group, key)) for key in CALIBRATION)] for group in split.with_posterior
    ]
    return table(["sampler", *CALIBRATION.values()], rows)


def _text(value: Estimate) -> str:
    return f"{value.mean:.4f} ± {value.half_width:.4f}" if value.has_interval else f"{value.mean:.4f}"


def measures(found: Sequence[AuditedSplit]) -> list[dict[str, Any]]:
    """Every measure of every sampler, as means over seeds with half-widths."""
    rows = []
    for split in found:
        for group in split.groups:
            values = {key: measured(group, key) for key in (*PICKS, *CALIBRATION, *CANDIDATES)}
            for key, value in {**values, "ndcg@20": final_estimate(group, "ndcg@20")}.items():
                if np.isfinite(value.mean):
                    where = {"split": split.name, "sampler": group.marked_name, "measure": key}
                    rows.append({**where, "seeds": len(group.runs), "mean": value.mean, "half_width": value.half_width})
    return rows


def reliability(found: Sequence[AuditedSplit]) -> list[dict[str, Any]]:
    """Picks by their probability of being a true negative: how many, the mean prediction, the observed rate."""
    rows = []
    for split in found:
        for group in split.with_posterior:
            pooled = bins(group, RELIABILITY["picked"])
            for place, (n, predicted, observed) in enumerate(zip(*pooled, strict=True) if pooled else ()):
                if n >= FEWEST:
                    ends = {"from": float(1 - EDGES[place + 1]), "to": float(1 - EDGES[place])}
                    values = {"picks": int(n), "mean_predicted": float(predicted), "observed_rate": float(observed)}
                    rows.append({"split": split.name, "sampler": group.marked_name, **ends, **values})
    return rows


def draw(found: Sequence[AuditedSplit], folder: Path) -> None:
    """The two figures of the page, as SVG."""
    from bayesneg.report.audit_page import plots
    from bayesneg.report.figures.canvas import still

    drawn = {
        "across": plots.across(found, prefix="across"),
        "reliability": plots.reliability(found[MIDDLE].groups, RELIABILITY["picked"], prefix="reliability"),
    }
    for name, drawing in drawn.items():
        (folder / f"{name}.svg").write_text(still(drawing), encoding="utf-8")
