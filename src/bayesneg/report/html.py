"""The report: one HTML file that opens offline, made from records alone.

Nothing is fetched (a content security policy forbids it) and the page reads without its script, which only
sorts tables. matplotlib is imported when a report is rendered, not before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from bayesneg.errors import InputError
from bayesneg.report import tables
from bayesneg.report.details import details, epoch_choice
from bayesneg.report.finding import Pairs, finding
from bayesneg.report.glossary import glossary
from bayesneg.report.markup import Markup, element, fold, grid, section
from bayesneg.report.names import base_of, counted, cutoff, joined, primary_key
from bayesneg.report.notes import notes
from bayesneg.report.pages import page, write_page
from bayesneg.report.runs import group, studies
from bayesneg.report.summary import final_keys, summarise
from bayesneg.runs.record import RunRecord, is_number

First = Mapping[str, Sequence[Markup]]
_LEADING = ("ndcg", "precision", "recall", "auc", "coverage", "popularity")


def write_report(
    records: Sequence[RunRecord],
    path: str | Path,
    *,
    title: str | None = None,
    first: First | None = None,
    alike: Mapping[str, Pairs] | None = None,
) -> Path:
    """Render and write the report; a reader never sees half a file. Returns the path."""
    return write_page(render(records, title=title, first=first, alike=alike), path)


def render(
    records: Sequence[RunRecord],
    *,
    title: str | None = None,
    first: First | None = None,
    alike: Mapping[str, Pairs] | None = None,
) -> str:
    """The whole page as text; the same records give the same bytes.

    ``first`` maps a dataset to sections that come before those made from its records; ``alike`` to pairs of samplers
    that tests in those sections could not tell apart.
    """
    if not records:
        raise InputError("a report needs at least one run, got none")
    found = studies(records)
    heading = title or _title(found)
    sections = [
        part
        for place, (dataset, runs) in enumerate(found.items(), 1)
        for part in (
            *_anchor(place, found),
            *(first or {}).get(dataset, ()),
            *_study(runs, prefix=_name(place), of=f": {dataset}" if len(found) > 1 else ""),
        )
    ]
    return page(
        heading, _header(heading, found, alike or {}), *sections, glossary(records), details(found), _footer(records)
    )


def _name(place: int) -> str:
    """What starts every id of a study, and is where a link leads."""
    return f"s{place}"


def _anchor(place: int, found: Mapping[str, Sequence[RunRecord]]) -> list[Markup]:
    """Where a study begins, if there are several to jump between."""
    if len(found) == 1:
        return []
    return [element("h2", {"id": _name(place), "class": "study"}, list(found)[place - 1])]


def _title(found: Mapping[str, Sequence[RunRecord]]) -> str:
    samplers = list(dict.fromkeys(member.name for runs in found.values() for member in group(runs)))
    who = joined(samplers) if len(samplers) <= 6 else counted(len(samplers), "sampler")
    return f"{who} on {joined(found)}"


def _header(title: str, found: Mapping[str, Sequence[RunRecord]], alike: Mapping[str, Pairs]) -> Markup:
    parts: list[Markup] = [element("h1", {}, title)]
    for place, (dataset, runs) in enumerate(found.items(), 1):
        link = element("a", {"href": f"#{_name(place)}"}, f"{dataset}:")
        lead = [element("strong", {}, link), " "] if len(found) > 1 else []
        said = finding(runs, primary_key(final_keys(runs)), alike.get(dataset, frozenset()))
        parts.append(element("p", {"class": "finding"}, *lead, said))
        parts.append(element("p", {"class": "facts"}, _facts(runs)))
        if beware := notes(runs):
            parts.append(element("ul", {"class": "notes"}, *(element("li", {}, note) for note in beware)))
    return element("header", {}, *parts)


def _facts(runs: Sequence[RunRecord]) -> str:
    """One line: data, model, epochs, and which of them is reported."""
    data = runs[0].data
    size = [
        f"{data[key]:,} {noun}"
        for key, noun in (("n_users", "users"), ("n_items", "items"), ("n_train", "training interactions"))
        if is_number(data.get(key))
    ]
    models = joined(dict.fromkeys(run.model for run in runs if run.model))
    return " · ".join(part for part in (runs[0].dataset, joined(size), models, epoch_choice(runs)) if part)


def _study(runs: Sequence[RunRecord], *, prefix: str, of: str) -> Iterator[Markup]:
    from bayesneg.report import figures

    groups, keys = group(runs), final_keys(runs)
    key = primary_key(keys)
    if keys:
        leading, others = _split_keys(keys, key)
        rows = summarise(runs, keys)
        parts = [tables.comparison(rows, leading, name=f"Main metrics{of}")]
        if others:
            more = tables.comparison(rows, others, name=f"Other metrics{of}")
            parts.append(fold("Other metrics and cut-offs", more))
        yield section(f"{'Comparison' if len(groups) > 1 else 'Result'}{of}", *parts)
    if results := list(figures.result_figures(groups, key, prefix=prefix)):
        on_validation = list(figures.validation_figures(groups, key, prefix=prefix))
        folded = [fold("The same on validation", grid(*on_validation))] if on_validation else []
        yield section(f"Recommendation quality{of}", grid(*results), *folded)
    quality = tables.quality(groups)
    if quality:
        drawn = figures.quality_figures(groups, prefix=prefix)
        yield section(f"Quality of the sampled negatives{of}", quality, grid(*drawn))


def _split_keys(keys: Sequence[str], primary: str | None) -> tuple[list[str], list[str]]:
    """The few metrics of the main table, and all others."""
    k = cutoff(primary) if primary else None
    leading = [key for key in keys if cutoff(key) in (k, None) and (base_of(key) in _LEADING or key == primary)]
    return leading, [key for key in keys if key not in leading]


def _footer(records: Sequence[RunRecord]) -> Markup:
    return element("footer", {}, f"Made by bayesneg from the records of {counted(len(records), 'run')} alone.")
