"""Studies as tidy frames: one row per sampler and metric, and one per pair of samplers. Their CSV is for programs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from bayesneg.reproduction.pairwise import pairwise_tests
from bayesneg.reproduction.published import MAIN
from bayesneg.reproduction.studies import PaperStudy

if TYPE_CHECKING:
    import polars as pl


STUDY: Final = ("dataset", "model", "view")
RESULTS: Final = (*STUDY, "sampler", "metric", "seeds", "mean", "low", "high", "paper", "difference", "off")
TESTS: Final = (*STUDY, "one", "other", "metric", "seeds", "difference", "low", "high", "p_users", "p_seeds", "verdict")


def results_frame(studies: Iterable[PaperStudy]) -> pl.DataFrame:
    """What was measured beside what was published, one row per sampler and metric.

    Args:
        studies: The studies, in the order of the rows.

    Returns:
        A frame with the mean over seeds, its interval (null with one seed), the paper's number (null where there is
        none), the difference, and ``off``: 1 where the paper's number lies outside the interval by more than 0.01.
    """
    rows = []
    for study in studies:
        for line in study.lines:
            for key, value in line.values.items():
                numbers = (value.here.mean, value.here.low, value.here.high, value.paper, value.difference)
                rows.append((*_key(study), line.label, key, len(line.runs), *numbers, int(value.is_off)))
    return _frame(RESULTS, rows)


def tests_frame(studies: Iterable[PaperStudy]) -> pl.DataFrame:
    """The pairwise tests in NDCG@20: one − other with its interval over users, and Holm-corrected p-values."""
    rows = []
    for study in studies:
        for pair in pairwise_tests(study):
            found, over = pair.difference, pair.difference.over_users
            numbers = (found.n_seeds, over.mean, over.low, over.high, over.p_value, found.over_seeds.p_value)
            rows.append((*_key(study), pair.one, pair.other, MAIN, *numbers, pair.verdict))
    return _frame(TESTS, rows)


def csv_text(frame: pl.DataFrame) -> str:
    """The frame as CSV, numbers with six decimals; an empty field where there is none."""
    return frame.write_csv(float_precision=6)


def _key(study: PaperStudy) -> tuple[str, str, str]:
    return study.dataset, study.model, study.view


def _frame(columns: Sequence[str], rows: Sequence[tuple[object, ...]]) -> pl.DataFrame:
    import polars as pl
    import polars.selectors as cs

    frame = pl.DataFrame(rows, schema=columns, orient="row", infer_schema_length=None)
    return frame.with_columns(cs.float().fill_nan(None))
