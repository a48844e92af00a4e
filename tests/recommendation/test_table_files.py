"""Files of recommendations."""

from __future__ import annotations

import polars as pl
import pytest

from bayesneg.recommendation.table_files import write_frames

IDS = ["=HYPERLINK(1)", "@name", "+x", "-x", "\tx", "-5", "+1e3", "plain", "a=b", None]
SAFE = ["'=HYPERLINK(1)", "'@name", "'+x", "'-x", "'\tx", "-5", "+1e3", "plain", "a=b", None]


def test_no_text_of_a_csv_file_is_a_formula(tmp_path):
    frame = pl.DataFrame({"user": IDS, "rank": range(len(IDS))})
    write_frames([frame, frame], tmp_path / "recs.csv")
    read = pl.read_csv(tmp_path / "recs.csv", schema={"user": pl.String, "rank": pl.Int64})
    assert read["user"].to_list() == SAFE * 2
    assert read["rank"].to_list() == [*range(len(IDS))] * 2


@pytest.mark.parametrize(("ending", "read"), [(".parquet", pl.read_parquet), (".jsonl", pl.read_ndjson)])
def test_files_for_programs_have_identifiers_as_they_are(tmp_path, ending, read):
    write_frames([pl.DataFrame({"user": IDS})], tmp_path / f"recs{ending}")
    assert read(tmp_path / f"recs{ending}")["user"].to_list() == IDS
