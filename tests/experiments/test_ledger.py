"""A record survives its line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from bayesneg.errors import InputError
from bayesneg.runs import ledger
from bayesneg.runs.ledger import Entry, Writer
from bayesneg.runs.record import RunRecord

RECORD = RunRecord(
    label="BNS",
    seed=3,
    dataset="toy",
    spec={"model": {"regularization": 1.25e-6}},
    epochs=[
        {"epoch": 1, "tnr": 0.912345678, "skipped": 0},
        {"epoch": 2, "tnr": None, "skipped": 0, "ndcg@20": 0.3, "densities": {"true": [0.1, 0.2]}},
    ],
    final={"ndcg@20": 0.123456789, "auc": float("nan")},
    intervals={"ndcg@20": (0.1, 0.2), "auc": (float("nan"), 0.3)},
    reported_epoch=2,
    per_user={"ndcg@20": np.array([0.0, 0.25, 1 / 3]), "recall@20": np.array([1.0, 1.0, 1.0])},
)


def test_a_line_gives_the_record_back_without_what_is_not_kept(tmp_path: Path):
    path = tmp_path / "records.jsonl"
    Writer(path).add(Entry("k", {"label": "BNS"}, RECORD))
    assert path.read_text().count("\n") == 1
    back = ledger.read(path)["k"]
    assert (back.key, back.cell) == ("k", {"label": "BNS"})
    assert back.record.to_dict() == RECORD.to_dict()
    assert np.isnan(back.record.final["auc"])
    assert np.isnan(back.record.intervals["auc"][0])
    assert list(back.record.per_user) == ["ndcg@20"]
    assert back.record.per_user["ndcg@20"] == pytest.approx([0, 0.25, 1 / 3], abs=1e-6)


def test_what_is_returned_is_what_will_be_read(tmp_path: Path):
    path = tmp_path / "records.jsonl"
    written = Writer(path).add(Entry("k", {}, RECORD))
    assert written.to_dict() == ledger.read(path)["k"].to_dict()


def test_broken_lines_do_not_count_and_the_later_of_two_does(tmp_path: Path):
    path = tmp_path / "records.jsonl"
    path.write_text(json.dumps(Entry("k", {"try": 0}, RECORD).to_dict())[:100])
    assert ledger.read(path) == {}
    for number in (1, 2):
        Writer(path).add(Entry("k", {"try": number}, RECORD))
        assert ledger.read([path, tmp_path / "missing.jsonl"])["k"].cell == {"try": number}
    assert path.read_text().count("\n") == 3


def test_a_line_cut_inside_a_character_does_not_count_and_the_others_do(tmp_path: Path):
    path, writer = tmp_path / "records.jsonl", Writer(tmp_path / "records.jsonl")
    writer.add(Entry("k", {"label": "λ = 5\u2028"}, RECORD))
    with path.open("ab") as file:
        file.write('{"schema":2,"key":"other","cell":{"label":"λ'.encode()[:-1])
    assert ledger.read(path)["k"].cell == {"label": "λ = 5\u2028"}
    writer.add(Entry("last", {}, RECORD))
    assert list(ledger.read(path)) == ["k", "last"]


def test_a_changed_line_is_refused_by_its_number(tmp_path: Path):
    path = tmp_path / "records.jsonl"
    with Writer(path) as writer:
        writer.add(Entry("k", {}, RECORD))
        writer.add(Entry("other", {}, RECORD))
    lines = path.read_text().splitlines(keepends=True)
    path.write_text(lines[0] + lines[1].replace("0.123456789", "0.923456789"))
    with pytest.raises(InputError, match=r"records.jsonl is damaged: .*delete line 2, its run is trained again"):
        ledger.read(path)


def test_a_second_process_does_not_write_to_a_ledger(tmp_path: Path):
    path = tmp_path / "records.jsonl"
    with Writer(path), pytest.raises(InputError, match="another process; wait until it ends, or choose another file"):
        Writer(path)
    assert not path.exists()  # nothing was finished
    with Writer(path):
        pass


def test_a_ledger_of_another_schema_is_refused(tmp_path: Path):
    path = tmp_path / "records.jsonl"
    stored = Entry("k", {}, RECORD).to_dict()
    path.write_text(json.dumps({key: value for key, value in stored.items() if key != "schema"}) + "\n")
    with pytest.raises(InputError, match=r"records.jsonl has schema 1, this version of bayesneg reads schema 2"):
        ledger.read(path)
