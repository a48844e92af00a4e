"""The options that commands share, and the data and split they ask for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from bayesneg.data.splits import Split
from bayesneg.errors import InputError

READING, SPLITTING, TRAINING = "Reading", "Splitting", "Training"

Data = Annotated[str, typer.Argument(help="synthetic, ml-100k, ml-1m, yahoo-r3, kuairec, …, or a file or folder")]
UserColumn = Annotated[str | None, typer.Option(help="name of the user column", rich_help_panel=READING)]
ItemColumn = Annotated[str | None, typer.Option(help="name of the item column", rich_help_panel=READING)]
RatingColumn = Annotated[str | None, typer.Option(help="name of the rating column", rich_help_panel=READING)]
TimeColumn = Annotated[str | None, typer.Option(help="name of the time column", rich_help_panel=READING)]
UserColumns = Annotated[str | None, typer.Option(help="user columns to keep for group priors, comma-separated")]
Separator = Annotated[str | None, typer.Option(help="between fields; guessed unless given")]
Header = Annotated[bool | None, typer.Option("--header/--no-header", help="first line names the columns; guessed")]
MinRating = Annotated[float | None, typer.Option(help="keep only rows rated so or higher")]
DataDir = Annotated[Path | None, typer.Option(help="where built-in datasets lie; BAYESNEG_DATA unless given")]
UserFile = Annotated[Path | None, typer.Option(help="a table of users with their columns, beside --test")]
TestFile = Annotated[Path | None, typer.Option("--test", help="a given test part; DATA is then the training part")]
TestShare = Annotated[float | None, typer.Option(help="share held out for testing; 0.2 unless given")]
SplitBy = Annotated[str, typer.Option(help="interaction, user, last or time: which interactions are held out")]
SplitSeed = Annotated[int, typer.Option(help="seed of the split")]
Validation = Annotated[
    float | None,
    typer.Option(help="share of training set aside to choose the epoch; 0.1 with --select best, 0 with last"),
]
Select = Annotated[
    str, typer.Option(help="epoch to report: best on validation data, or last (the paper's). Never chosen on test data")
]
ModelName = Annotated[str, typer.Option("--model", help="mf")]
Epochs = Annotated[int, typer.Option(help="passes over the training interactions")]
EvaluateEvery = Annotated[int, typer.Option(help="rank and record every so many epochs")]
Settings = Annotated[
    list[str] | None, typer.Option("--set", help="a setting of the model or sampler, key=value; may be repeated")
]
Json = Annotated[bool, typer.Option("--json", help="print one JSON object on stdout, and nothing else there")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="no progress bars")]


@dataclass(frozen=True)
class DataChoice:
    """DATA and everything said about how to read and split it."""

    source: str
    columns: dict[str, Any]
    data_dir: Path | None
    user_file: Path | None
    test_file: Path | None
    test_share: float | None
    by: str
    seed: int
    validation: float | None
    select: str

    def split(self) -> Split:
        from bayesneg.data.given import read_split
        from bayesneg.data.load import load
        from bayesneg.data.splits import split

        if self.test_file is not None:
            if self.test_share is not None or self.by != "interaction":
                raise InputError("--test gives the test part; drop --test-share and --split-by, or drop --test")
            return read_split(
                self.source,
                self.test_file,
                validation=self._validation,
                seed=self.seed,
                user_file=self.user_file,
                **self.columns,
            )
        if self.user_file is not None:
            raise InputError("--user-file goes with --test; a table's own user columns are kept with --user-columns")
        data = load(self.source, data_dir=self.data_dir, **self.columns)
        return split(data, test=self.test_share, validation=self._validation, by=self.by, seed=self.seed)

    @property
    def selection(self) -> Literal["last", "best"]:
        if self.select == "best":
            if self.validation == 0:
                raise InputError("--select best needs validation data; give --validation 0.1, or --select last")
            return "best"
        if self.select == "last":
            return "last"
        raise InputError(f"--select must be best or last, got {self.select!r}")

    @property
    def _validation(self) -> float:
        if self.validation is not None:
            return self.validation
        return 0.1 if self.selection == "best" else 0.0


def column_options(
    user_column: str | None,
    item_column: str | None,
    rating_column: str | None,
    time_column: str | None,
    user_columns: str | None,
    separator: str | None,
    header: bool | None,
    min_rating: float | None,
) -> dict[str, Any]:
    """As the keywords of ``load``; a column given as a number is a position."""
    return {
        "user_column": _column(user_column),
        "item_column": _column(item_column),
        "rating_column": _column(rating_column),
        "time_column": _column(time_column),
        "user_columns": None if user_columns is None else [name.strip() for name in user_columns.split(",")],
        "separator": None if separator is None else separator.replace("\\t", "\t"),
        "header": header,
        "min_rating": min_rating,
    }


def _column(text: str | None) -> str | int | None:
    return int(text) if text is not None and text.isdecimal() else text
