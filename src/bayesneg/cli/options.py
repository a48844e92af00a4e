"""The options that commands share, and the data and split they ask for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from bayesneg.cli.training import completions
from bayesneg.data.interactions import Interactions
from bayesneg.data.splits import Split
from bayesneg.errors import InputError

BESIDE = "popularity,ease"  # baselines beside what is trained, as in Python; experiments would take long to import here
READING, SPLITTING, TRAINING, TUNING = "Reading the data", "Data split", "Training", "Tuning"
VALIDATION = 0.1  # share held out by the commands


def training_option(help: str, *names: str, default: str | bool = True, **more: Any) -> Any:
    return typer.Option(*names, help=help, show_default=default, rich_help_panel=TRAINING, **more)


def losses_option(help: str) -> Any:
    return training_option(
        help, "--loss", "--losses", metavar="NAMES", default="bpr", autocompletion=completions.losses
    )


Model = Annotated[
    str | None,
    training_option(
        "mf, lightgcn or torch-mf (the extra torch), or a baseline, which needs no sampler: popularity, item-knn, "
        "rp3beta, ease, gfcf, als",
        metavar="NAME",
        default="mf",
        autocompletion=completions.models,
    ),
]
ModelOfSamplers = Annotated[
    str,
    training_option("mf, lightgcn or torch-mf (the extra torch)", metavar="NAME", autocompletion=completions.models),
]
Device = Annotated[
    str | None,
    training_option(
        "device of a torch model; auto uses a GPU if there is one", metavar="auto|cpu|cuda", default="auto"
    ),
]
Epochs = Annotated[int, training_option("number of passes over the training interactions")]
EvaluateEvery = Annotated[int, training_option("epochs between two evaluations; the last epoch is always evaluated")]
Settings = Annotated[
    list[str] | None,
    training_option(
        "setting of the model, or of every sampler that has it; may be repeated", "--set", metavar="KEY=VALUE"
    ),
]
Loss = Annotated[
    str | None,
    training_option(
        "bpr, softmax, ccl and others, settings after colons: softmax:temperature=0.1, or file.py:Class",
        metavar="NAME",
        default="bpr",
        autocompletion=completions.losses,
    ),
]
Losses = Annotated[
    str | None,
    losses_option(
        "losses, comma-separated, each with every sampler: bpr,softmax:temperature=0.1; bayesneg train --help-all "
        "lists them all"
    ),
]
Seeds = Annotated[int, training_option("runs per sampler, with the seeds 0, 1, …")]
Jobs = Annotated[int | None, training_option("runs at a time", default="one per core; on a GPU 1")]
DataDir = Annotated[
    Path | None,
    typer.Option(
        help="folder of the built-in datasets",
        show_default="BAYESNEG_DATA, or ~/.local/share/bayesneg",
        rich_help_panel=READING,
    ),
]
Report = Annotated[
    Path | None,
    typer.Option(help="HTML report to write", show_default="report.html, or report-2.html … where that exists"),
]
Force = Annotated[bool, typer.Option("--force", help="replace the report if it exists")]
AllowCode = Annotated[bool, typer.Option("--allow-code", help="run the Python files that a TOML file names")]
Json = Annotated[bool, typer.Option("--json", help="print one JSON object on stdout")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="show no progress on stderr")]


def _reading(help: str, *, default: str | bool = True) -> Any:
    return typer.Option(help=help, show_default=default, rich_help_panel=READING)


def splitting_option(help: str, *names: str, default: str | bool = True) -> Any:
    return typer.Option(*names, help=help, show_default=default, rich_help_panel=SPLITTING)


ValidationShare = Annotated[
    float | None, splitting_option("share of the training interactions held out for validation", default="0.1")
]
TestShare = Annotated[
    float | None,
    splitting_option(
        "share of the interactions held out for testing", default="0.2; with --split-by last one per user"
    ),
]
UserFile = Annotated[Path | None, splitting_option("with --test: table of users and their attributes")]


def check_user_file(user_file: Path | None, test: Path | None) -> None:
    """Before any data is read: a table of users has a given part beside it."""
    if user_file is not None and test is None:
        raise InputError("--user-file goes with --test; user columns of a table are kept with --user-columns")


@dataclass(frozen=True, kw_only=True)
class TableOptions:
    """How tables are read."""

    user_column: Annotated[str | None, _reading("name or position (from 0) of the user column", default="inferred")] = (
        None
    )
    item_column: Annotated[str | None, _reading("name or position of the item column", default="inferred")] = None
    rating_column: Annotated[str | None, _reading("name or position of the rating column", default="inferred")] = None
    time_column: Annotated[str | None, _reading("name or position of the time column", default="inferred")] = None
    user_columns: Annotated[
        str | None, _reading("columns of user attributes to keep for group priors, comma-separated")
    ] = None
    separator: Annotated[str | None, _reading("field separator, such as ; or \\t", default="inferred")] = None
    header: Annotated[
        bool | None,
        typer.Option(
            "--header/--no-header",
            help="whether the first line names the columns",
            show_default="inferred",
            rich_help_panel=READING,
        ),
    ] = None
    min_rating: Annotated[float | None, _reading("lowest rating that counts as an interaction", default="all rows")] = (
        None
    )
    format: Annotated[
        str | None, _reading("table, parquet or adjacency (lines of: user item item …)", default="inferred")
    ] = None

    @property
    def columns(self) -> dict[str, Any]:
        """As the keywords of ``load``; a column given as a number is a position."""
        return {
            "user_column": _column(self.user_column),
            "item_column": _column(self.item_column),
            "rating_column": _column(self.rating_column),
            "time_column": _column(self.time_column),
            "user_columns": None if self.user_columns is None else _names(self.user_columns),
            "separator": None if self.separator is None else self.separator.replace("\\t", "\t"),
            "header": self.header,
            "min_rating": self.min_rating,
            "format": self.format,
        }


@dataclass(frozen=True, kw_only=True)
class Reading(TableOptions):
    """DATA and how it is read."""

    data: Annotated[
        str,
        typer.Argument(
            metavar="DATA",
            help="built-in dataset (synthetic, ml-100k, ml-1m, yahoo-r3, kuairec, gowalla, yelp2018), or a file or "
            "folder (CSV, TSV, ::, Parquet, adjacency lists, prepared data)",
        ),
    ]
    data_dir: DataDir = None

    def load(self) -> Interactions:
        from bayesneg.cli.output import named_as_options
        from bayesneg.data.load import load

        with named_as_options(*self.columns):
            return load(self.data, data_dir=self.data_dir, **self.columns)


@dataclass(frozen=True)
class Splitting:
    """The data split."""

    validation: ValidationShare = None
    test: Annotated[
        Path | None, splitting_option("file with the test interactions; DATA then has the training interactions")
    ] = None
    test_share: Annotated[
        float | None,
        splitting_option(
            "share of the interactions held out for testing", default="0.2; with --split-by last one per user"
        ),
    ] = None
    split_by: Annotated[
        str,
        splitting_option(
            "interaction (random), user (random within each user), last (latest of each user) or time (latest of all)"
        ),
    ] = "interaction"
    split_seed: Annotated[int, splitting_option("seed of the split")] = 0
    user_file: UserFile = None

    def split(self, reading: Reading) -> Split:
        from bayesneg.cli.output import named_as_options

        with named_as_options("validation", test="--test-share", by="--split-by"):
            return self._split(reading)

    def _split(self, reading: Reading) -> Split:
        from bayesneg.data.load import read_split
        from bayesneg.data.splits import split

        check_user_file(self.user_file, self.test)
        if self.test is not None:
            if self.test_share is not None or self.split_by != "interaction":
                raise InputError("--test gives the test interactions; drop --test-share and --split-by, or drop --test")
            share, seed = self._validation, self.split_seed
            own = reading.columns
            return read_split(reading.data, self.test, validation=share, seed=seed, user_file=self.user_file, **own)
        data = reading.load()
        test, validation = self._shares(data)
        return split(data, test=test, validation=validation, by=self.split_by, seed=self.split_seed)

    def _shares(self, data: Interactions) -> tuple[float, float]:
        """The test and the validation share: those given, else usual ones, or others where those hold out nothing."""
        from bayesneg.cli.output import say
        from bayesneg.data.shares import OPTIONS, Shares, shares_that_work

        usual = 1 if self.split_by == "last" else 0.2
        asked = Shares(usual if self.test_share is None else self.test_share, self._validation, self.split_by)
        given = {"test": self.test_share, "validation": self.validation}
        found = shares_that_work(data.counts, asked, free=[part for part, share in given.items() if share is None])
        for part, option in OPTIONS.items():
            if getattr(found, part) != getattr(asked, part):
                say(
                    f"note: the usual {part} share of {getattr(asked, part)} would leave a part of so few interactions "
                    f"empty: {getattr(found, part)} is held out, as with {option} {getattr(found, part)}"
                )
        return found.test, found.validation

    @property
    def _validation(self) -> float:
        return VALIDATION if self.validation is None else self.validation


@dataclass(frozen=True)
class Selecting(Splitting):
    """The data split, and the epoch that is reported."""

    validation: Annotated[
        float | None,
        splitting_option(
            "share of the training interactions held out to select the epoch", default="0.1 with --select best, else 0"
        ),
    ] = None
    select: Annotated[str, splitting_option("epoch to report: best (on validation data) or last (as in the paper)")] = (
        "best"
    )

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
        return 0.0 if self.validation is None and self.selection == "last" else super()._validation


def _column(text: str | None) -> str | int | None:
    return int(text) if text is not None and text.isdecimal() else text


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]
