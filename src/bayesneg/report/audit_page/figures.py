"""Which figures an audit gets, each with a caption and a description for those who cannot see it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bayesneg.evaluation.picks import RELIABILITY
from bayesneg.report.audit_page import plots
from bayesneg.report.audit_page.rows import AuditedSplit, measured
from bayesneg.report.figures import plots as curves
from bayesneg.report.figures.captions import drawing, listed
from bayesneg.report.groups import RunGroup
from bayesneg.report.pages import Drawing

CURVES = {  # key → name of the figure, caption
    "fn": (
        "False negatives over epochs",
        "The share of an epoch's picks that are positives. Lower is better.",
    ),
    "fn_gradient": (
        "Gradient on false negatives over epochs",
        "The share of the loss's gradient on negatives that falls on false negatives. Lower is better.",
    ),
    "inf": ("INF over epochs", "Mean gradient magnitude, with a negative sign for held-out positives."),
    "hardness": ("Hardness over epochs", "Mean normalized rank of the picks; 1 is the highest score."),
    "ece": (
        "Calibration error over epochs",
        "Of the posterior on the picks. Lower is better.",
    ),
}


def across(found: Sequence[AuditedSplit]) -> Drawing:
    """False negatives against what is hidden."""
    ends = listed((group.marked_name, measured(group, "fn").mean) for group in found[-1].groups)
    caption = "Dotted: the expectation of uniform sampling."
    drawn = plots.across(found, prefix="across")
    return drawing(drawn, "across", "False negatives against what is hidden", caption, ends)


def of_picks(split: AuditedSplit, prefix: str) -> Iterator[Drawing]:
    """Four curves over epochs, the ranks, and the popularity of the picks."""
    for key, expected in (("fn", "fn_uniform"), ("fn_gradient", None), ("inf", None), ("hardness", None)):
        yield from _curve(split.groups, key, prefix, expected)
    slug = f"{prefix}-ranks"
    ends = listed((group.marked_name, measured(group, "hardness").mean) for group in split.groups)
    caption = "Probes of the last five epochs. Dotted: uniform sampling."
    yield drawing(plots.ranks(split.groups, prefix=slug), slug, "Ranks of the picks", caption, ends)
    slug = f"{prefix}-cohorts"
    ends = listed((group.marked_name, measured(group, "head").mean) for group in split.groups)
    caption = "Head, middle and tail have about a third of the training interactions each."
    yield drawing(plots.cohorts(split.groups, prefix=slug), slug, "Popularity of the picks", caption, ends)


def of_calibration(split: AuditedSplit, prefix: str) -> Iterator[Drawing]:
    """Calibration of the posterior, on the picks and on uniform candidates, and over epochs."""
    titles = {"picked": "Reliability diagram, picks", "candidates": "Reliability diagram, uniform candidates"}
    for population, key in RELIABILITY.items():
        slug = f"{prefix}-{population}"
        which = "ece" if population == "picked" else "candidates_ece"
        ends = listed((f"error of {group.marked_name}", measured(group, which).mean) for group in split.with_posterior)
        caption = "Above the dotted line: more false negatives than predicted. The last five epochs, log scales."
        drawn = plots.reliability(split.groups, key, prefix=slug)  # all, so that each keeps its colour
        yield drawing(drawn, slug, titles[population], caption, ends)
    yield from _curve(split.groups, "ece", prefix, None)


def _curve(groups: Sequence[RunGroup], key: str, prefix: str, expected: str | None) -> Iterator[Drawing]:
    if not curves.has_curve(groups, key):
        return
    name, caption = CURVES[key]
    slug = f"{prefix}-{key}"
    ends = listed((group.marked_name, measured(group, key).mean) for group in groups)
    name_of_axis, percent = name.removesuffix(" over epochs"), key.startswith("fn")
    drawn = curves.curves(groups, key, prefix=slug, name=name_of_axis, expected=expected, percent=percent)
    yield drawing(drawn, slug, name, caption, ends)
