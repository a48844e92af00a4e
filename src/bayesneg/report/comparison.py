"""The comparison report: one HTML file that opens offline, made from records alone.

matplotlib and jinja2 are imported when a report is rendered, not before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from bayesneg.errors import InputError
from bayesneg.report import tables
from bayesneg.report.details import details, epoch_choice, loss_facts
from bayesneg.report.finding import LabelPairs, false_negative_finding, quality_finding
from bayesneg.report.glossary import glossary
from bayesneg.report.groups import as_records, run_groups, studies
from bayesneg.report.names import base_of, counted, cutoff, joined, primary_key
from bayesneg.report.notes import notes
from bayesneg.report.pages import Headline, Section, free_path, render_page, write_page
from bayesneg.report.summary import final_keys, summarise
from bayesneg.runs.record import RunRecord, is_number
from bayesneg.runs.run import Run
from bayesneg.runs.verdict import comparison_verdict

SectionsOfDatasets = Mapping[str, Sequence[Section]]  # dataset → sections beside those of its records
_LEADING = ("ndcg", "precision", "recall", "auc")


def write_report(
    records: Run | RunRecord | Sequence[Run | RunRecord],
    path: str | Path | None = None,
    *,
    title: str | None = None,
    first: SectionsOfDatasets | None = None,
    indistinguishable: Mapping[str, LabelPairs] | None = None,
    item_data: str | Path | None = None,
) -> Path:
    """Write the HTML report of a comparison: one file that opens offline.

    Args:
        records: The runs to compare, as :func:`bayesneg.compare` or :func:`bayesneg.fit` returns them, one or several;
            runs of several datasets are compared dataset by dataset.
        path: The file to write; folders on the way are created, an existing file is replaced in one step. By default
            ``report.html``, or ``report-2.html``, … where that exists.
        title: The heading of the page; by default the samplers and the datasets.
        first: Dataset → sections that come before those made from its records.
        indistinguishable: Dataset → pairs of labels that a stricter test could not distinguish; the headline then
            names no winner between them.
        item_data: A table of items with a column item or id and others, such as titles; adds recommendations of a few
            users, with these columns. Needs runs with their models, as :func:`bayesneg.load_run` reads them.

    Returns:
        The path of the file.

    Example:
        >>> import bayesneg as bn  # doctest: +SKIP
        >>> runs = bn.compare(bn.MF(), bn.load("synthetic"), "rns,bns", seeds=3)  # doctest: +SKIP
        >>> bn.write_report(runs, "report.html")  # doctest: +SKIP
    """
    found = as_records(records)
    last = None
    if item_data is not None:
        from bayesneg.report.examples import example_sections

        runs = [
            each for each in ([records] if isinstance(records, Run | RunRecord) else records) if isinstance(each, Run)
        ]
        if not runs:
            raise InputError(
                "item_data shows what models recommend, and records have no model; give runs, such as "
                "bn.load_run(folder), or leave item_data out"
            )
        last = example_sections(runs, item_data)
    page = render(found, title=title, first=first, indistinguishable=indistinguishable, last=last)
    return write_page(page, free_path(Path("report.html")) if path is None else path)


def render(
    records: Sequence[RunRecord],
    *,
    title: str | None = None,
    first: SectionsOfDatasets | None = None,
    indistinguishable: Mapping[str, LabelPairs] | None = None,
    last: SectionsOfDatasets | None = None,
    recommended: Headline | None = None,
    after_table: Sequence[Section] = (),
) -> str:
    """The page of :func:`write_report` as text; the same records give the same bytes.

    ``recommended`` is what a search found, in place of the finding; ``after_table`` are its sections.
    """
    if not records:
        raise InputError("records must hold at least one run, got none")
    found = studies(records)
    several = len(found) > 1
    headlines, sections = [], []
    for place, (dataset, runs) in enumerate(found.items(), 1):
        anchor = f"s{place}"  # starts every id of the study, and is where its link leads
        key = primary_key(final_keys(runs))
        found_best = quality_finding(runs, key, (indistinguishable or {}).get(dataset, frozenset()))
        beside = [comparison_verdict(runs), false_negative_finding(runs, key)]
        headline = Headline(found_best, also=beside) if recommended is None else recommended
        headlines.append(
            replace(
                headline,
                lead=dataset if several else "",
                anchor=anchor if several else "",
                facts=_facts(runs),
                notes=[*headline.notes, *notes(runs)],
            )
        )
        sections += [Section(dataset, anchor=anchor)] if several else []
        study = [*_study(runs, anchor, of=f": {dataset}" if several else "")]
        sections += [*(first or {}).get(dataset, ()), *study[:1], *after_table, *study[1:]]
        sections += (last or {}).get(dataset, ())
    return render_page(
        title or _title(found),
        headlines,
        sections,
        glossary=glossary(records),
        details=details(found),
        footer=f"Written by bayesneg from the records of {counted(len(records), 'run')}.",
    )


def _title(found: Mapping[str, Sequence[RunRecord]]) -> str:
    samplers = list(dict.fromkeys(group.name for runs in found.values() for group in run_groups(runs)))
    who = joined(samplers) if len(samplers) <= 6 else counted(len(samplers), "sampler")
    return f"{who} on {joined(found)}"


def _facts(runs: Sequence[RunRecord]) -> str:
    """One line: data, model, epochs, and which of them is reported."""
    data = runs[0].data
    size = [
        f"{data[key]:,} {noun}"
        for key, noun in (("n_users", "users"), ("n_items", "items"), ("n_train", "training interactions"))
        if is_number(data.get(key))
    ]
    models = joined(dict.fromkeys(run.model for run in runs if run.model))
    losses = loss_facts(runs)
    return " · ".join(part for part in (runs[0].dataset, joined(size), models, losses, epoch_choice(runs)) if part)


def _study(runs: Sequence[RunRecord], prefix: str, *, of: str) -> Iterator[Section]:
    from bayesneg.report.figures import captions

    groups, keys = run_groups(runs), final_keys(runs)
    key = primary_key(keys)
    if keys:
        leading, others = _split_keys(keys, key)
        rows = summarise(runs, keys)
        main = tables.comparison(rows, leading, name=f"Main metrics{of}", with_rates=True)
        more = [tables.comparison(rows, others, name=f"Other metrics{of}")] if others else []
        folds = [Section("Other metrics and cut-offs", tables=more)] if more else []
        yield Section(f"{'Comparison' if len(groups) > 1 else 'Result'}{of}", tables=[main], folds=folds)
    if results := list(captions.result_figures(groups, key, prefix=prefix)):
        on_validation = list(captions.validation_figures(groups, key, prefix=prefix))
        folds = [Section("The same on validation data", drawings=on_validation)] if on_validation else []
        yield Section(f"Recommendation quality{of}", drawings=results, folds=folds)
    if quality := tables.quality(groups):
        drawn = list(captions.quality_figures(groups, prefix=prefix))
        yield Section(f"Quality of the sampled negatives{of}", tables=[quality], drawings=drawn)


def _split_keys(keys: Sequence[str], primary: str | None) -> tuple[list[str], list[str]]:
    """The few metrics of the main table, and all others."""
    k = cutoff(primary) if primary else None
    leading = [key for key in keys if cutoff(key) in (k, None) and (base_of(key) in _LEADING or key == primary)]
    return leading, [key for key in keys if key not in leading]
