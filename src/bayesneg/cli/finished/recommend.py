"""``bayesneg recommend``: for one user, for many, or for a new one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from bayesneg.cli import options as opt
from bayesneg.cli.finished.arguments import ItemColumns, ItemDataFile, RunFolder, ids_in, item_data, separated
from bayesneg.cli.finished.in_parts import check_parts, write_parts
from bayesneg.cli.finished.listing import list_rows, show_list
from bayesneg.cli.groups import command
from bayesneg.cli.output import check_file, counted, named_as_options, say, show, show_json
from bayesneg.cli.training.processes import TIMEOUT, is_first, is_started_by_torchrun, join, one_after_another
from bayesneg.data.interactions import Interactions
from bayesneg.distributed import is_distributed
from bayesneg.errors import InputError

if TYPE_CHECKING:
    import polars as pl

    from bayesneg.recommendation.item_data import ItemData
    from bayesneg.runs.run import Run

SHOWN = 10  # items of a new user that the heading names
WHOM, WHAT, WHERE = "For whom", "Which items", "Where to"
DEVICES = ("auto", "cpu", "cuda")


def _option(help: str, *names: str, panel: str, metavar: str | None = None) -> Any:
    return typer.Option(*names, metavar=metavar, help=help, rich_help_panel=panel)


@dataclass(frozen=True)
class Whom:
    """For whom to recommend."""

    user: Annotated[str | None, _option("user identifier, as in the data", panel=WHOM, metavar="ID")] = None
    users: Annotated[
        Path | None, _option("file of users: one per line, or a table with a column user", panel=WHOM, metavar="FILE")
    ] = None
    all_users: Annotated[bool, _option("every user of the data", "--all-users", panel=WHOM)] = False
    items: Annotated[
        str | None,
        _option(
            "a new user, given by the items it has: 12,99,3; one that has a comma is in double quotes, as in CSV "
            "(titles are --item-data)",
            panel=WHOM,
            metavar="IDS",
        ),
    ] = None
    skip_unknown: Annotated[
        bool, _option("leave out users and items that the run does not know", "--skip-unknown", panel=WHOM)
    ] = False

    def __post_init__(self) -> None:
        given = {"--user": self.user, "--users": self.users, "--all-users": self.all_users, "--items": self.items}
        named = [name for name, value in given.items() if value not in (None, False)]
        if len(named) != 1:
            got = "none" if not named else " and ".join(named)
            raise InputError(f"give one of --user ID, --users FILE, --all-users and --items IDS, got {got}")


@dataclass(frozen=True)
class Which:
    """Which items may be recommended."""

    exclude: Annotated[Path | None, _option("file of items that are never recommended", panel=WHAT, metavar="FILE")] = (
        None
    )
    only: Annotated[
        Path | None, _option("file of the only items that may be recommended", panel=WHAT, metavar="FILE")
    ] = None
    include_seen: Annotated[
        bool, _option("also recommend items that the user already has", "--include-seen", panel=WHAT)
    ] = False
    include_held_out: Annotated[
        bool,
        _option("also recommend items of the user's validation and test part", "--include-held-out", panel=WHAT),
    ] = False

    def read(self, train: Interactions, *, skip_unknown: bool) -> dict[str, Any]:
        """The keywords of ``Run.recommend``."""
        found: dict[str, Any] = {"include_seen": self.include_seen, "include_held_out": self.include_held_out}
        if self.exclude is not None:
            from bayesneg.data.identifiers import find
            from bayesneg.recommendation.small_tables import read_ids

            found["exclude"] = read_ids(self.exclude, "item", option="--exclude")
            unknown = sum(find(each, train.numbers_of_items) is None for each in found["exclude"])
            if unknown:
                n = counted(unknown, f"item of {self.exclude} is", f"items of {self.exclude} are")
                say(f"{n} not in the data: nothing to exclude")
        if self.only is not None:
            found["only"] = ids_in(self.only, train, noun="item", option="--only", skip_unknown=skip_unknown)
        return found


@command
def recommend(
    *,
    run: RunFolder,
    whom: Whom,
    k: Annotated[int, typer.Option("-k", "--k", metavar="N", help="number of items for each user")] = 10,
    which: Which,
    out: Annotated[
        Path | None,
        _option("file for the rows user, rank, item, score: .parquet, .csv or .jsonl", panel=WHERE, metavar="FILE"),
    ] = None,
    force: Annotated[bool, _option("replace --out if it exists", "--force", panel=WHERE)] = False,
    item_data_file: ItemDataFile = None,
    item_columns: ItemColumns = None,
    device: Annotated[
        str | None,
        _option(
            "with torchrun: where the processes score; auto uses GPUs if there are any",
            panel=WHERE,
            metavar="auto|cpu|cuda",
        ),
    ] = None,
    json: opt.Json = False,
    quiet: opt.Quiet = False,
) -> None:
    """Recommend items that a user has not interacted with: everything known of the user is excluded.

    \b
    Examples:
      bayesneg recommend runs/bns --user 196 -k 10 --item-data movies.csv
      bayesneg recommend runs/bns --all-users -k 20 --out recs.parquet
      bayesneg recommend runs/bns --users some.csv --only in-stock.txt --out recs.csv
      bayesneg recommend runs/bns --items 12,99,3
    """
    from bayesneg.runs.run import load_run

    _check_device(device)
    join(device, TIMEOUT)
    one_after_another(lambda: _check_out(out, whom, which, force))
    if is_distributed():
        if item_data_file is not None or item_columns is not None:
            raise InputError("--item-data and --item-columns are for one process; leave them out with torchrun")
        assert out is not None
        _write_parts(run, k, which, out, json=json)
        return
    loaded = load_run(run)
    train = loaded.split.train
    restrictions = which.read(train, skip_unknown=whom.skip_unknown)
    titles = item_data(item_data_file, item_columns, train)
    if out is not None:
        users = None if whom.all_users else _users(whom, train)
        found = _write(loaded, users, k, restrictions, titles, out, quiet=quiet)
        _say_written(out, k, found, json=json)
    elif whom.items is not None:
        _for_new_user(loaded, whom, k, restrictions, titles, json=json)
    else:
        _for_one(loaded, whom.user, k, restrictions, titles, json=json)


def _write_parts(folder: Path, k: int, which: Which, out: Path, *, json: bool) -> None:
    """With torchrun: each process writes a Parquet file in the folder ``out``."""
    found = write_parts(folder, out, k=k, include_seen=which.include_seen, include_held_out=which.include_held_out)
    if is_first():
        _say_written(out, k, found, json=json)


def _say_written(out: Path, k: int, found: dict[str, int], *, json: bool) -> None:
    """Notes on short lists and cold users, and what was written."""
    most = found["n_users"] * k
    if found["n_rows"] < most:
        say(f"some users have fewer than {k} items left: {found['n_rows']:,} rows instead of {most:,}")
    if found["n_cold_users"]:
        say(
            f"{counted(found['n_cold_users'], 'user has', 'users have')} no training interaction: the most popular "
            "items, scored by their number of interactions"
        )
    if json:
        show_json({"out": str(out), "k": k, **found})
    else:
        show(f"{counted(found['n_users'], 'user', 'users')}, {counted(found['n_rows'], 'row', 'rows')}: {out}")


def _check_out(out: Path | None, whom: Whom, which: Which, force: bool) -> None:
    """Before the run is read."""
    from bayesneg.recommendation.table_files import check_ending

    if is_distributed():
        if which.exclude is not None or which.only is not None:
            raise InputError("--exclude and --only restrict the catalogue of one process; leave them out with torchrun")
        check_parts(out if whom.all_users else None, force=force)
        return
    if out is None:
        if whom.all_users or whom.users is not None:
            raise InputError("recommendations for many users go to a file; name it with --out recs.parquet")
        if force:
            raise InputError("--force goes with --out, the file to replace")
        return
    if whom.items is not None:
        raise InputError("--out is for users of the data; for a new user (--items) use --json")
    check_ending(out, "--out")
    if out.is_file() and not force:
        raise InputError(f"--out {out} exists; name another file, or replace it with --force")
    check_file(out, "--out")


def _users(whom: Whom, train: Interactions) -> list[Any]:
    if whom.users is not None:
        return ids_in(whom.users, train, noun="user", option="--users", skip_unknown=whom.skip_unknown)
    return [train.user_ids[train.user_number(whom.user)]]


def _write(
    run: Run,
    users: list[Any] | None,
    k: int,
    restrictions: dict[str, Any],
    titles: ItemData | None,
    out: Path,
    *,
    quiet: bool,
) -> dict[str, int]:
    from bayesneg.progress import bars
    from bayesneg.recommendation.lists import is_cold
    from bayesneg.recommendation.table_files import write_frames

    n_users = run.split.train.n_users if users is None else len(users)
    chunks = run.recommend_in_chunks(k=k, users=users, **restrictions)
    with bars(not quiet, {"recommend": n_users}, unit="users") as update:

        def shown() -> Iterator[pl.DataFrame]:
            done = 0
            for frame in chunks:
                yield frame if titles is None else titles.beside(frame)
                done += frame["user"].n_unique()
                update("recommend", done, "")

        n_rows = write_frames(shown(), out)
        update("recommend", n_users, "")
    train = run.split.train
    numbers = np.arange(n_users) if users is None else np.array([train.user_number(user) for user in users], dtype=int)
    return {"n_users": n_users, "n_rows": n_rows, "n_cold_users": int(is_cold(run.scorer, numbers).sum())}


def _for_new_user(
    run: Run, whom: Whom, k: int, restrictions: dict[str, Any], titles: ItemData | None, *, json: bool
) -> None:
    if restrictions.pop("include_held_out"):
        raise InputError("--include-held-out is for users of the data; a new user (--items) has no held-out part")
    given = separated(whom.items or "")
    with named_as_options("items"), _commas_explained(run):
        user = run.fold_in(given, unknown="skip" if whom.skip_unknown else "error")
    if user.unknown:
        say(f"not in the data and left out: {', '.join(map(str, user.unknown))}")
    if user.untrained:
        say(f"without a training interaction and of no effect: {', '.join(map(str, user.untrained))}")
    best = user.recommend(k=k, **restrictions)
    _say_short(best, k)
    if json:
        left_out = {"unknown": user.unknown, "untrained": user.untrained}
        show_json({"items_of_user": user.items, **left_out, "items": list_rows(run, best, titles)})
    else:
        few = ", ".join(map(str, user.items[:SHOWN]))
        more = f" and {len(user.items) - SHOWN:,} more" if len(user.items) > SHOWN else ""
        show_list(run, f"for a new user with {few}{more}", best, titles)


def _check_device(device: str | None) -> None:
    if device is not None and device not in DEVICES:
        raise InputError(f"--device must be one of {', '.join(DEVICES)}, got {device!r}")
    if device not in (None, "cpu") and not is_started_by_torchrun():
        raise InputError(f"--device {device} is for processes of torchrun; one process recommends on the CPU")


@contextmanager
def _commas_explained(run: Run) -> Iterator[None]:
    """An error about items ends with how one is written that has a comma, where there is one."""
    try:
        yield
    except InputError as error:
        with_comma = next((each for each in run.split.train.item_ids.tolist() if "," in str(each)), None)
        if with_comma is None:
            raise
        quoted = str(with_comma).replace('"', '""')
        raise InputError(f"{error}; an item with a comma is in double quotes: --items '\"{quoted}\"'") from error


def _for_one(run: Run, user: Any, k: int, restrictions: dict[str, Any], titles: ItemData | None, *, json: bool) -> None:
    from bayesneg.recommendation.lists import is_cold

    best = run.recommend(user, k=k, **restrictions)
    split = run.split
    number_of = split.train.user_number(user)
    parts = {"training": split.train, "validation": split.validation, "test": split.test}
    known = {name: 0 if part is None else int(part.counts[number_of]) for name, part in parts.items()}
    excluded = {name: n for name, n in known.items() if name == "training" or not restrictions["include_held_out"]}
    excluded = {} if restrictions["include_seen"] else excluded
    if known["training"] == 0:
        how = "the most popular items" if is_cold(run.scorer, np.array([number_of]))[0] else "by the vector of --start"
        say(f"user {user} has no training interactions: the list is {how}")
    _say_short(best, k, user)
    if json:
        show_json(
            {
                "user": split.train.user_ids[number_of],
                "n_training_interactions": known["training"],
                "excluded": excluded,
                "items": list_rows(run, best, titles),
            }
        )
        return
    named = ", ".join(f"{n:,} {name}" for name, n in excluded.items() if n) or "none"
    show_list(run, f"for user {user}", best, titles)
    show(f"items of the user excluded: {named}")


def _say_short(best: list[tuple[Any, float]], k: int, user: Any = "") -> None:
    if len(best) < k:
        who = f"user {user}" if user else "the new user"
        say(f"{who} has only {counted(len(best), 'item', 'items')} left that may be recommended")
