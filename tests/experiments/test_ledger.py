"""A record survives its line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bayesneg.runs import ledger
from bayesneg.runs.ledger import Entry
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
    intervals={"ndcg@20": (0.1, 0.2)},
    reported_epoch=2,
    per_user={"ndcg@20": np.array([0.0, 0.25, 1.0]), "recall@20": np.array([1.0, 1.0, 1.0])},
)


def test_a_line_gives_the_record_back_rounded_and_without_what_is_not_kept():
    line = Entry("k", {"label": "BNS"}, RECORD).to_line()
    assert line.count("\n") == 1
    back = Entry.from_line(line)
    assert (back.key, back.cell) == ("k", {"label": "BNS"})
    assert back.record.epochs == [
        {"epoch": 1, "tnr": 0.91235, "skipped": 0},
        {"epoch": 2, "tnr": None, "skipped": 0, "ndcg@20": 0.3, "densities": {"true": [0.1, 0.2]}},
    ]
    assert back.record.spec == RECORD.spec  # settings are not rounded
    assert back.record.final["ndcg@20"] == 0.123457
    assert np.isnan(back.record.final["auc"])
    assert back.record.per_user is not None
    assert list(back.record.per_user) == ["ndcg@20"]
    assert back.record.per_user["ndcg@20"] == pytest.approx([0, 0.25, 1], abs=1e-5)
    assert (back.record.seed, back.record.reported_epoch) == (3, 2)


def test_one_epoch_keeps_its_numbers():
    short = RunRecord(label="RNS", seed=0, dataset="toy", epochs=[{"epoch": 1, "tnr": 0.9}])
    assert Entry.from_line(Entry("k", {}, short).to_line()).record.epochs == short.epochs


def test_broken_lines_do_not_count_and_the_later_of_two_does(tmp_path: Path):
    path = tmp_path / "records.jsonl"
    first, second = (Entry("k", {"try": number}, RECORD) for number in (1, 2))
    path.write_text(first.to_line()[:100])
    assert ledger.read(path) == {}
    ledger.Writer(path).add(first)
    assert ledger.read(path)["k"].cell == {"try": 1}
    ledger.Writer(path).add(second)
    assert ledger.read([path, tmp_path / "missing.jsonl"])["k"].cell == {"try": 2}
    assert path.read_text().count("\n") == 3


def test_a_line_cut_inside_a_letter_does_not_count_and_the_others_do(tmp_path: Path):
    path = tmp_path / "records.jsonl"
    whole = Entry("k", {"label": "λ = 5\u2028"}, RECORD)
    cut = Entry("other", {"label": "λ"}, RECORD).to_line().encode()
    ledger.Writer(path).add(whole)
    with path.open("ab") as file:
        file.write(cut[: cut.index("λ".encode()) + 1])
    assert ledger.read(path)["k"].cell == {"label": "λ = 5\u2028"}
    ledger.Writer(path).add(Entry("last", {}, RECORD))
    assert list(ledger.read(path)) == ["k", "last"]
