"""docs/explanation/study.md, its tables and figures, from the archive in results/study/."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from benchmarks.pages.beyond import page as one_negative
from benchmarks.pages.beyond.study import studies
from benchmarks.pages.publish import DOCS, keep, keep_pictures
from benchmarks.pages.study import context, tables
from benchmarks.pages.study.comparisons import Combination, combinations, secondary
from benchmarks.pages.study.figures import draw, figures
from benchmarks.pages.study.findings import Tests, findings
from benchmarks.pages.study.records import Dataset, pairs, read
from benchmarks.pages.text import MADE, comma_separated, folded
from benchmarks.pages.text import page as joined
from benchmarks.studies.negatives.contenders import CONTENDERS


def publish(*, check: bool) -> None:
    found = read()
    one_negative.publish_tables(studies(), check=check)
    sixteen, tests = combinations(found), tests_of(found)
    keep_pictures(DOCS / "images" / "study", partial(draw, found), check=check)
    plan = (DOCS / "study-plan.md").read_text(encoding="utf-8")
    appendix = [
        folded("Time, end to end", *context.times()),
        folded("Priors", *context.priors(found)),
        folded("The test parts of Gowalla and Yelp2018", *context.splits()),
        folded("Before this study: BPR with one negative", *one_negative.parts(studies())),
    ]
    keep(DOCS / "study.md", page(found, sixteen, tests, plan, appendix), check=check)
    every = [one for group in ([both.posterior, both.oracle] for both in sixteen) for one in group]
    measured = [one.row() for one in (*every, *(one for own in tests.values() for one in own)) if one.is_measured]
    for name, rows in (("study-search", tables.search_rows(found)), ("study-tests", measured)):
        if rows:
            keep(DOCS / "tables" / f"{name}.csv", comma_separated(rows), check=check)


def tests_of(found: Sequence[Dataset]) -> Tests:
    return {(dataset.name, records.model): secondary(dataset, records) for dataset, records in pairs(found)}


def page(
    found: Sequence[Dataset],
    sixteen: Sequence[Combination],
    tests: Tests,
    plan: str,
    appendix: Sequence[str] = (),
) -> str:
    """The page; ``plan`` is the text of docs/explanation/study-plan.md, ``appendix`` what was measured apart from the study."""
    return joined(
        "# What knowing the false negatives is worth",
        f"MF and LightGCN on four datasets, trained with {len(CONTENDERS)} pairs of loss and sampler under one budget, with posterior weights of "
        "the negatives and without. Everything is chosen on a validation part. [study-plan.md](study-plan.md) was "
        "registered before the runs, its ranges after probes that looked at the test parts of Gowalla and Yelp2018; "
        "what was changed since is listed below. Contenders are named as there; ours are **bold**.",
        *findings(found, sixteen, tests),
        *figures(found),
        "## Tables",
        folded("Search", *tables.search(found)),
        folded("Final runs", *tables.final_runs(found), *tables.looks(found)),
        folded("Baselines", *tables.baselines(found)),
        folded("What did not work", *tables.below(found)),
        *appendix,
        folded("Changes of the plan", *tables.changes(plan)),
        folded("Machines", *tables.machines(found)),
        "`python -m benchmarks.studies.negatives` runs the study ([its stages](study-plan.md#stages)). " + MADE,
    )
