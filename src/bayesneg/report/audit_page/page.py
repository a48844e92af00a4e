"""The page of an audit: which sampler picks what, in one HTML file that opens offline, made from records alone."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from bayesneg.errors import InputError
from bayesneg.report.audit_page.drill_down import Names, item_names, section
from bayesneg.report.audit_page.rows import (
    CALIBRATION,
    MEANINGS,
    PICKS,
    AuditedSplit,
    audit_finding,
    audited,
    calibration_finding,
    caution,
    gradient_finding,
    hidden_note,
    measured,
    short_names,
)
from bayesneg.report.details import loss_facts
from bayesneg.report.groups import RunGroup, as_records, unsaid_losses
from bayesneg.report.names import NOTHING, UNIFORM, counted, joined
from bayesneg.report.notes import notes
from bayesneg.report.pages import Headline, Section, Table, TableCell, render_page, write_page
from bayesneg.report.tables import estimate_cell, group_cell, number_cell
from bayesneg.runs.record import RunRecord

NO_NAMES: Names = MappingProxyType({})
CANDIDATES = ("mean_predicted", "observed_rate", "ece")  # what is shown of uniform candidates too


def write_audit(
    records: Sequence[RunRecord], path: str | Path, *, title: str | None = None, item_data: str | Path | None = None
) -> Path:
    """Write the HTML page of an audit: which negatives each sampler picks, and how calibrated its posterior is.

    Where the audit recorded picks one by one (``users=``), the page shows those of a user sampler by sampler.

    Args:
        records: The runs of an audit, as ``bayesneg.audit(...).records`` holds them.
        path: The file to write; folders on the way are created, an existing file is replaced in one step.
        title: The heading of the page; by default the audited splits.
        item_data: A table of items with a column item or id and another one, such as a title, which is shown beside
            the identifiers of picked items.

    Returns:
        The path of the file.
    """
    return write_page(render(as_records(records), title=title, names=item_names(item_data)), path)


def render(records: Sequence[RunRecord], *, title: str | None = None, names: Names = NO_NAMES) -> str:
    """The page of :func:`write_audit` as text; the same records give the same bytes.

    Args:
        records: The runs of an audit.
        title: The heading of the page.
        names: Identifier of an item → what is shown in its place.
    """
    found = audited(records)
    if not found:
        raise InputError("records must hold at least one run of an audit, got none")
    several = len(found) > 1
    sections = [
        part for place, split in enumerate(found, 1) for part in _split_sections(split, place, names, several=several)
    ]
    return render_page(
        title or f"What each sampler picks: {joined(split.name for split in found)}",
        _headlines(found),
        [*_across(found), *sections],
        glossary=MEANINGS,
        footer=f"Written by bayesneg audit from the records of {counted(len(records), 'run')}.",
    )


def _headlines(found: Sequence[AuditedSplit]) -> list[Headline]:
    """One finding per split; the facts and the warnings of all follow the last."""
    run = found[0].runs[0]
    seeds = max(len(group.runs) for split in found for group in split.groups)
    losses = loss_facts([run for split in found for run in split.runs])
    facts = f"{run.model} · {losses} · {counted(len(run.epochs), 'epoch')} · {counted(seeds, 'seed')} · last epoch"
    headlines = [
        Headline(audit_finding(split), also=[gradient_finding(split)], lead=split.name if len(found) > 1 else "")
        for split in found
    ]
    return [*headlines[:-1], replace(headlines[-1], facts=facts, notes=_warnings(found))]


def _warnings(found: Sequence[AuditedSplit]) -> list[str]:
    """What a careful reader should know; what is not so of every split is said with the split's name."""
    own = [[note for note in (hidden_note(split), caution(split), *notes(split.runs)) if note] for split in found]
    shared = [note for note in own[0] if all(note in others for others in own)]
    return shared + [
        f"{split.name}: {note}" for split, each in zip(found, own, strict=True) for note in each if note not in shared
    ]


def _across(found: Sequence[AuditedSplit]) -> Iterator[Section]:
    """The false-negative rate by how much is hidden."""
    if len(found) < 2:
        return
    from bayesneg.report.audit_page import figures

    by_name = {group.name: group for split in found for group in split.groups}
    here = [{group.name: estimate_cell(measured(group, "fn")) for group in split.groups} for split in found]
    rows = [
        [group_cell(group), *(cells.get(name, TableCell(NOTHING)) for cells in here)] for name, group in by_name.items()
    ]
    rows.append([TableCell(UNIFORM, UNIFORM), *(number_cell(split.uniform) for split in found)])
    caption = f"The share of false negatives among the picks of the last epoch.{_spread(found)}"
    table = Table("False negatives across splits", caption, ["Sampler", *short_names(found)], rows)
    yield Section("Across splits", tables=[table], drawings=[figures.across(found)])


def _split_sections(split: AuditedSplit, place: int, names: Names, *, several: bool) -> Iterator[Section]:
    from bayesneg.report.audit_page import figures

    prefix, of = f"s{place}", f": {split.name}" if several else ""
    yield Section(f"What is picked{of}", tables=[_picks(split)], drawings=list(figures.of_picks(split, prefix)))
    if split.with_posterior:
        drawings = list(figures.of_calibration(split, prefix))
        text = calibration_finding(split)
        yield Section(
            f"Is the posterior calibrated?{f' ({split.name})' if several else ''}",
            text=text,
            tables=[_calibration_table(split)],
            drawings=drawings,
        )
    if drill_down := section(split, f"The picks of one user{of}", names):
        yield drill_down


def _picks(split: AuditedSplit) -> Table:
    unsaid = unsaid_losses(split.groups)
    rows = [[group_cell(group, loss=unsaid.get(group.name, "")), *_values(group, PICKS)] for group in split.groups]
    rows.append([TableCell(UNIFORM, UNIFORM), number_cell(split.uniform), *[TableCell("")] * (len(PICKS) - 1)])
    bound = "" if split.truth_known else " Lower bounds: the ground truth is unknown."
    caption = (
        "Last epoch. All picks are counted, of shared pools those of some examples; hardness is measured "
        f"on probes after the epoch.{bound}{_spread([split])}"
    )
    return Table(f"Picks: {split.name}", caption, ["Sampler", *PICKS.values()], rows)


def _calibration_table(split: AuditedSplit) -> Table:
    rows = [
        [group_cell(group), *_values(group, CALIBRATION), *_values(group, [f"candidates_{key}" for key in CANDIDATES])]
        for group in split.with_posterior
    ]
    heads = ["Sampler", *CALIBRATION.values(), *(f"{CALIBRATION[key]}, candidates" for key in CANDIDATES)]
    caption = (
        "Probes after the last epoch: the sampler's picks, and uniform candidates beside them. Samplers without a "
        f"posterior are left out.{_spread([split])}"
    )
    return Table(f"Calibration: {split.name}", caption, heads, rows)


def _values(group: RunGroup, keys: Mapping[str, str] | Sequence[str]) -> list[TableCell]:
    return [estimate_cell(measured(group, key)) for key in keys]


def _spread(found: Sequence[AuditedSplit]) -> str:
    several = any(math.isfinite(measured(group, "fn").low) for split in found for group in split.groups)
    return " Mean ± half-width of the 95% interval over seeds." if several else ""
