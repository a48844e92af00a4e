"""Read an export back: the same recommendations, exactly or by its index."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from bayesneg.checks import a_path
from bayesneg.data.identifiers import Unknown, plain
from bayesneg.data.interactions import Interactions
from bayesneg.data.splits import Split
from bayesneg.errors import InputError, first_line, no_panic
from bayesneg.integrity.digests import check_seal, file_digest
from bayesneg.models.scorers import EmbeddingScorer
from bayesneg.models.serialization import scorer_from
from bayesneg.recommendation.lists import is_cold
from bayesneg.recommendation.newcomers import NewUser
from bayesneg.recommendation.restrictions import seen_by
from bayesneg.runs import folder as files
from bayesneg.runs.exports import exporting
from bayesneg.runs.exports.item_index import ItemIndex
from bayesneg.runs.record import RunRecord
from bayesneg.runs.run import Run

if TYPE_CHECKING:
    import polars as pl

NOTHING: Final = np.empty(0, dtype=np.int32)


@dataclass(frozen=True, eq=False, repr=False)
class ExportedModel:
    """A model read from an export, as :func:`bayesneg.load_export` returns it.

    Args:
        run: The run it was exported from; without its interactions where those were left out.
        index: The index of its items, or None where there is none or exact search is asked for.
        config: The content of ``config.json``.
    """

    run: Run
    index: ItemIndex | None
    config: Mapping[str, Any]

    def __repr__(self) -> str:
        search = "exact search" if self.index is None else "search by index"
        seen = "" if self.has_interactions else ", no interactions: items that users already have are not excluded"
        return f"ExportedModel({self.run!r}, {search}{seen})"

    @property
    def has_interactions(self) -> bool:
        """Whether the export has the interactions, whose items are excluded."""
        return bool(self.config.get("has_interactions", True))

    def recommend(
        self,
        user: Any,
        *,
        k: int = 10,
        exclude: Iterable[Any] | None = None,
        only: Iterable[Any] | None = None,
        include_seen: bool = False,
        include_held_out: bool = False,
    ) -> list[tuple[Any, float]]:
        """The highest-scored items that the user has not interacted with.

        Args:
            user: The raw identifier of a user.
            k: How many items.
            exclude: Identifiers of items that are never recommended; with them search is exact.
            only: Identifiers of the only items that may be recommended; with them search is exact.
            include_seen: Also recommend items that the user has interacted with.
            include_held_out: Also recommend items of the user's validation and test part.

        Returns:
            Pairs of raw item identifier and score, best first: those of :meth:`bayesneg.Run.recommend`, or with an
            index nearly all of them; where the export has no interactions, nothing is excluded.
        """
        run, number = self.run, self.run.split.train.user_number(user)
        unrestricted = exclude is None and only is None and not is_cold(run.scorer, np.array([number]))[0]
        if unrestricted and isinstance(run.scorer, EmbeddingScorer):
            seen = seen_by(run.split, include_seen=include_seen, include_held_out=include_held_out)
            found = self._by_index(run.scorer.users[number], NOTHING if seen is None else seen.row(number), k)
            if found is not None:
                return found
        return run.recommend(
            user, k=k, exclude=exclude, only=only, include_seen=include_seen, include_held_out=include_held_out
        )

    def recommend_all(
        self,
        *,
        k: int = 20,
        users: Iterable[Any] | None = None,
        exclude: Iterable[Any] | None = None,
        only: Iterable[Any] | None = None,
        include_seen: bool = False,
        include_held_out: bool = False,
        unknown: Unknown = "error",
    ) -> pl.DataFrame:
        """The recommendations of many users, by exact search, as :meth:`bayesneg.Run.recommend_all` gives them.

        An export without interactions does not know what users already have, and recommends it too: drop those rows,
        or export with the interactions.

        Args:
            k: How many items for each user.
            users: Identifiers of the users; all users of the data unless given.
            exclude: Identifiers of items that are never recommended.
            only: Identifiers of the only items that may be recommended.
            include_seen: Also recommend items that a user has interacted with.
            include_held_out: Also recommend items of the users' validation and test part.
            unknown: Whether an unknown user, or item in ``only``, is an ``"error"`` or is left out (``"skip"``).

        Returns:
            A frame with the columns user, rank (from 1), item and score; where the export has no interactions, nothing
            is excluded.
        """
        return self.run.recommend_all(
            k=k,
            users=users,
            exclude=exclude,
            only=only,
            include_seen=include_seen,
            include_held_out=include_held_out,
            unknown=unknown,
        )

    def similar(self, item: Any, k: int = 10) -> list[tuple[Any, float]]:
        """The items that are most similar to one, by exact search, as :meth:`bayesneg.Run.similar` gives them.

        Args:
            item: The raw identifier of an item.
            k: How many items.

        Returns:
            Pairs of raw item identifier and similarity, best first.
        """
        return self.run.similar(item, k)

    def fold_in(self, items: Iterable[Any], *, unknown: Unknown = "error") -> NewUser:
        """A user that training has not seen, as :meth:`bayesneg.Run.fold_in` gives it.

        Args:
            items: Identifiers of the items of a new user.
            unknown: Whether an item that the model does not know is an ``"error"`` or is left out (``"skip"``).

        Returns:
            The new user; its ``recommend`` searches exactly, :meth:`recommend_to` by the index.
        """
        self.check_fold_in()
        return self.run.fold_in(items, unknown=unknown)

    def check_fold_in(self) -> None:
        """Raise an error where the export lacks the interactions that folding in is fitted to."""
        if not self.has_interactions:
            raise InputError(
                "a new user cannot be folded in by an export without interactions, which the fold-in is fitted to; "
                "export the run with them"
            )

    def recommend_to(
        self, user: NewUser, *, k: int = 10, exclude: Iterable[Any] | None = None, only: Iterable[Any] | None = None
    ) -> list[tuple[Any, float]]:
        """The highest-scored items for a user that was folded in, by the index where there is one.

        Args:
            user: What :meth:`fold_in` returned.
            k: How many items.
            exclude: Identifiers of items that are never recommended; with them search is exact.
            only: Identifiers of the only items that may be recommended; with them search is exact.

        Returns:
            Pairs of raw item identifier and score, best first.
        """
        if not isinstance(user, NewUser):
            raise InputError(
                f"user must be a new user, as fold_in(items) gives one, got {user!r:.60}; recommend(user) is for users "
                "of the data"
            )
        if exclude is None and only is None and user.vector is not None:
            found = self._by_index(user.vector, user.history.indices, k)
            if found is not None:
                return found
        return user.recommend(k=k, exclude=exclude, only=only)

    def _by_index(self, vector: np.ndarray, excluded: np.ndarray, k: int) -> list[tuple[Any, float]] | None:
        """None where search is exact."""
        if self.index is None or not isinstance(k, int) or not 1 <= k <= self.run.scorer.n_items:
            return None  # exact search says what is wrong with k
        found = self.index.best(vector, excluded, k)
        ids = self.run.split.train.item_ids
        return None if found is None else [(plain(ids[item]), float(score)) for item, score in zip(*found, strict=True)]


def load_export(path: str | Path, *, index: bool = True) -> ExportedModel:
    """Read a model from the folder of an export.

    Args:
        path: The folder that ``run.export`` or ``bayesneg export`` wrote.
        index: Whether to search by the index, where the export has one; False searches exactly.

    Returns:
        The model; without an index its recommendations are those of the run.

    Raises:
        BayesnegError: the folder holds no export, a file of it is missing or is not the one that was exported, or the
            index is that of other vectors.
    """
    source = a_path(path)
    config = read_config(source)
    wanted = {name for name in config["files"] if index or name != exporting.INDEX}
    for name in sorted(wanted):
        _check_file(source, name, config)
    try:
        record = RunRecord.from_dict(json.loads((source / exporting.RECORD).read_text(encoding="utf-8")))
        with no_panic():
            split = _split(source, config, name=record.dataset)
        if config["has_interactions"] and config["fingerprint"] != split.fingerprint:
            raise InputError(f"{source}: {exporting.INTERACTIONS} is not the split that was exported; export it again")
        with files.damage_named(source / exporting.MODEL, "export the run again", what="export"):
            scorer = scorer_from(files.read_arrays(source / exporting.MODEL), split.train)
        if scorer is None:
            raise InputError(f"{source}: the vectors in {exporting.MODEL} are not those of its users and items")
    except InputError:
        raise
    except Exception as error:
        raise InputError(
            f"{source}: the export is damaged, export the run again ({type(error).__name__}: {first_line(error)})"
        ) from error
    graph = None
    if index and config["index"] is not None and isinstance(scorer, EmbeddingScorer):
        if config["index"]["vectors_sha256"] != config["files"][exporting.MODEL]["sha256"]:
            raise InputError(
                f"{source / exporting.INDEX} was built for other vectors than {exporting.MODEL}; export the run again, "
                "or load it without the index: index=False, or --exact on the command line"
            )
        graph = ItemIndex.load(source / exporting.INDEX, scorer.items)
    return ExportedModel(Run(scorer, split, record), graph, config)


def holds_export(folder: Path) -> bool:
    """Whether there is a ``config.json`` of an export."""
    try:
        read_config(folder)
    except InputError:
        return False
    return True


def read_config(folder: Path) -> dict[str, Any]:
    """The content of ``config.json``, checked to be that of an export that this version reads."""
    path, way_out = folder / exporting.CONFIG, "give a folder that 'bayesneg export' wrote"
    if not path.is_file():
        if files.holds_run(folder):
            raise InputError(f"{folder} holds a run, not an export; export it first, or read it with bn.load_run")
        raise InputError(f"{folder} holds no export: {exporting.CONFIG} is missing; {way_out}")
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        raise InputError(f"{path} cannot be read as JSON; export the run again") from None
    if not isinstance(config, dict) or config.get("format") != exporting.FORMAT:
        raise InputError(f"{path} is not that of a bayesneg export; {way_out}")
    if config.get("schema") != exporting.SCHEMA:
        raise InputError(
            f"{path} has schema {config.get('schema')}, this version of bayesneg reads schema {exporting.SCHEMA}; "
            "export the run again, or read it with the version that wrote it"
        )
    check_seal(config, path, way_out="export the run again")
    needed = {exporting.MODEL, exporting.USERS, exporting.ITEMS, exporting.RECORD}
    listed = config.get("files")
    if not isinstance(listed, dict) or not needed <= listed.keys() or "index" not in config:
        raise InputError(f"{path} is incomplete; export the run again")
    if foreign := sorted(set(listed) - set(exporting.CONTENT)):
        raise InputError(f"{path} lists {foreign[0]!r}, which is not part of an export; export the run again")
    return config


def _check_file(folder: Path, name: str, config: Mapping[str, Any]) -> None:
    path = folder / name
    without = ", or load it without the index: index=False, or --exact on the command line"
    hint = without if name == exporting.INDEX else ""
    if not path.is_file():
        raise InputError(f"{folder}: {name} is missing; the export is incomplete, export the run again{hint}")
    if file_digest(path) == config["files"][name]["sha256"]:
        return
    what = f"does not fit the vectors in {exporting.MODEL}: it" if name == exporting.INDEX else "was changed: it"
    raise InputError(
        f"{path} {what} is not the file that was exported (its sha256 differs); export the run again{hint}"
    )


def _split(folder: Path, config: Mapping[str, Any], *, name: str) -> Split:
    how = str(config.get("split", "given"))
    if config["has_interactions"]:
        return files.read_split(folder, name=name, how=how)
    import polars as pl

    users, items = (pl.read_parquet(folder / each)["id"].to_numpy() for each in (exporting.USERS, exporting.ITEMS))
    none = Interactions(np.zeros(len(users) + 1, np.int64), np.empty(0, np.int32), users, items, name=name)
    return Split(train=none, test=none, how=how)
