"""docs/explanation/reproduction.md from a few records of a short sweep."""

from __future__ import annotations

from dataclasses import replace

import pytest
import sweeps

from bayesneg.errors import InputError
from bayesneg.experiments.datasets import Source
from bayesneg.reproduction.reproduce import recipe_of
from bayesneg.reproduction.sweeps.sweep import sweep
from bayesneg.runs import ledger
from bayesneg.runs.ledger import Entry
from benchmarks.pages.reproduction.document import chapters, document, numbers, paired_tests

AT = ("table2", "BNS", "last", "ndcg@20")


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Entry]:
    """Two rows of table 3 as if they had been measured on ML-100K."""
    folder = tmp_path_factory.mktemp("records")
    recipe = recipe_of("table3").narrowed(datasets=[str(sweeps.world(folder))], samplers=["rns", "bns"], seeds=2)
    short = recipe.narrowed(epochs=1).cells(Source().fingerprint)
    path = folder / "records.jsonl"
    assert sweep(short, path, Source(), jobs=2, progress=False) == []
    return dict(_as_published(ledger.read(path)))


def _as_published(short: dict[str, Entry]):
    from bayesneg.reproduction.sweeps.cells import Cell

    for entry in short.values():
        cell = replace(Cell.from_dict(entry.cell), dataset="ml-100k", epochs=100)
        yield cell.key, Entry(cell.key, cell.to_dict(), entry.record)


def test_the_page_says_row_by_row_what_reproduces_and_what_was_not_measured(found):
    text = document(found, {"fig2": "images/fig2.svg"})
    lead = text.split("\n\n")[1]
    assert lead.startswith("**With the settings that the paper states, ")
    assert " of 36 published numbers (" in lead  # two rows of nine, printed in tables 2 and 3
    assert "- BNS: does not reproduce: " in text
    assert "Not measured yet: `bayesneg reproduce table2`." not in text  # it shares the two rows
    assert "Not measured yet: `bayesneg reproduce table4`." in text
    assert "![Figure 2: densities in theory](images/fig2.svg)" in text
    assert "Not drawn yet: fig1, fig3, fig4, fig5." in text
    assert "| 0.01 | 0.9900 | 0.9900 | 0.9628 |" in text
    assert "of the 8 records" in text
    assert "Not measured yet: table2, MovieLens-100K, MF: PNS, AOBPR, DNS, SRNS;" in text


def test_the_tables_hold_both_views_and_the_paper_s_number(found):
    rows = numbers(chapters(found))
    assert {row["view"] for row in rows} == {"last", "best"}
    (bns,) = [row for row in rows if (row["table"], row["row"], row["view"], row["metric"]) == AT]
    assert (bns["seeds"], bns["paper"]) == (2, 0.4176)
    assert {(row["one"], row["other"]) for row in paired_tests(chapters(found))} == {("RNS", "BNS")}


def test_a_row_of_a_table_has_the_same_runs_among_the_readings(found):
    """They are evaluated less often on their way there."""
    made = {chapter.name: chapter for chapter in chapters(found)}
    (in_table,) = [line for line in made["table3"].studies[0].lines if line.label == "BNS"]
    (as_reading,) = made["readings"].studies[0].lines
    assert made["readings"].recipe.evaluate_every != made["table3"].recipe.evaluate_every
    assert (as_reading.label, len(as_reading.runs)) == ("BNS", 2)
    assert [run.final for run in as_reading.runs] == [run.final for run in in_table.runs]


def test_the_page_does_not_depend_on_the_order_of_the_records(found):
    assert document(dict(reversed(found.items())), {}) == document(found, {})


def test_records_of_two_versions_of_the_data_are_not_mixed(found):
    first = next(iter(found.values()))
    other = Entry("other", {**first.cell, "fingerprint": "of other data"}, first.record)
    with pytest.raises(InputError, match="two versions of the data"):
        document({**found, "other": other}, {})


def test_without_records_the_page_says_so():
    assert "No cell of the paper's tables has been measured yet." in document({}, {})
