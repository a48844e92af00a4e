"""The page of an audit: which sampler picks what, in one HTML file that opens offline, made from records alone."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from bayesneg.errors import InputError
from bayesneg.report.audit_page.rows import (
    BELIEF,
    MEANINGS,
    PICKS,
    UNIFORM,
    Study,
    audited,
    calibration_finding,
    caution,
    finding,
    hidden_note,
    measured,
    short_names,
)
from bayesneg.report.markup import Markup, element, grid, section
from bayesneg.report.names import counted, joined
from bayesneg.report.notes import notes
from bayesneg.report.pages import page, write_page
from bayesneg.report.runs import Group
from bayesneg.report.tables import Cell, estimate_cell, group_cell, number_cell, table
from bayesneg.runs.record import RunRecord

CANDIDATES = ("mean_predicted", "observed_rate", "ece")  # what is shown of uniform candidates too


def write_audit(records: Sequence[RunRecord], path: str | Path, *, title: str | None = None) -> Path:
    """Render the records of an audit and write the page. Returns the path."""
    return write_page(render(records, title=title), path)


def render(records: Sequence[RunRecord], *, title: str | None = None) -> str:
    """The whole page as text; the same records give the same bytes."""
    found = audited(records)
    if not found:
        raise InputError("the page of an audit needs at least one run, got none")
    heading = title or f"Which sampler picks what: {joined(study.name for study in found)}"
    parts = [part for place, study in enumerate(found, 1) for part in _study(study, place, several=len(found) > 1)]
    return page(heading, _header(heading, found), *_across(found), *parts, _glossary(), _footer(records))


def _header(title: str, found: Sequence[Study]) -> Markup:
    parts: list[Markup] = [element("h1", {}, title)]
    for study in found:
        lead = [element("strong", {}, f"{study.name}: ")] if len(found) > 1 else []
        parts.append(element("p", {"class": "finding"}, *lead, finding(study)))
    run = found[0].runs[0]
    seeds = max(len(member.runs) for study in found for member in study.groups)
    facts = f"{run.model} · {counted(len(run.epochs), 'epoch')} · {counted(seeds, 'seed')} · last epoch"
    parts.append(element("p", {"class": "facts"}, facts))
    if beware := _beware(found):
        parts.append(element("ul", {"class": "notes"}, *(element("li", {}, note) for note in beware)))
    return element("header", {}, *parts)


def _beware(found: Sequence[Study]) -> list[str]:
    """What a careful reader should know; what is not so of every split is said with the split's name."""
    own = [[note for note in (hidden_note(study), caution(study), *notes(study.runs)) if note] for study in found]
    shared = [note for note in own[0] if all(note in others for others in own)]
    return shared + [
        f"{study.name}: {note}" for study, each in zip(found, own, strict=True) for note in each if note not in shared
    ]


def _across(found: Sequence[Study]) -> Iterator[Markup]:
    """How the share of false negatives follows what is hidden."""
    if len(found) < 2:
        return
    from bayesneg.report.audit_page import figures

    members = {member.name: member for study in found for member in study.groups}
    rows = [
        [
            group_cell(member),
            *(
                next((estimate_cell(measured(own, "fn")) for own in study.groups if own.name == name), Cell("–"))
                for study in found
            ),
        ]
        for name, member in members.items()
    ]
    rows.append([Cell(UNIFORM, UNIFORM), *(number_cell(study.uniform) for study in found)])
    heads = ["Sampler", *short_names(found)]
    caption = f"The share of false negatives among the picks of the last epoch.{_spread(found)}"
    yield section(
        "Across splits",
        table(caption, heads, rows, name="False negatives across splits"),
        grid(figures.across(found)),
    )


def _study(study: Study, place: int, *, several: bool) -> Iterator[Markup]:
    from bayesneg.report.audit_page import figures

    prefix, of = f"s{place}", f": {study.name}" if several else ""
    yield section(f"What is picked{of}", _picks(study), grid(*figures.of_picks(study, prefix)))
    if study.believers:
        said = element("p", {}, calibration_finding(study))
        yield section(f"Is unbias calibrated?{of}", said, _beliefs(study), grid(*figures.of_beliefs(study, prefix)))


def _picks(study: Study) -> Markup:
    rows = [[group_cell(member), *_values(member, PICKS)] for member in study.groups]
    rows.append([Cell(UNIFORM, UNIFORM), number_cell(study.uniform), *[Cell("")] * (len(PICKS) - 1)])
    bound = "" if study.truth_known else " Lower bounds: the truth is unknown."
    caption = f"Last epoch. All picks are counted; hardness is of probes after the epoch.{bound}{_spread([study])}"
    return table(caption, ["Sampler", *PICKS.values()], rows, name=f"Picks: {study.name}")


def _beliefs(study: Study) -> Markup:
    rows = [
        [group_cell(member), *_values(member, BELIEF), *_values(member, [f"candidates_{key}" for key in CANDIDATES])]
        for member in study.believers
    ]
    heads = ["Sampler", *BELIEF.values(), *(f"{BELIEF[key]}, candidates" for key in CANDIDATES)]
    caption = (
        "Probes after the last epoch: the sampler's own picks, and uniform candidates beside them. Samplers that form "
        f"no belief are left out.{_spread([study])}"
    )
    return table(caption, heads, rows, name=f"Calibration: {study.name}")


def _values(member: Group, keys: Mapping[str, str] | Sequence[str]) -> list[Cell]:
    return [estimate_cell(measured(member, key)) for key in keys]


def _spread(found: Sequence[Study]) -> str:
    several = any(math.isfinite(measured(member, "fn").low) for study in found for member in study.groups)
    return " Mean ± half of the 95% interval over seeds." if several else ""


def _glossary() -> Markup:
    items = [part for name, text in MEANINGS.items() for part in (element("dt", {}, name), element("dd", {}, text))]
    return section("How to read this", element("dl", {}, *items))


def _footer(records: Sequence[RunRecord]) -> Markup:
    return element("footer", {}, f"Made by bayesneg audit from the records of {counted(len(records), 'run')} alone.")
