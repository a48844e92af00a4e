"""A finished run: the trained model with its data and its record."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from bayesneg.checks import a_path
from bayesneg.data.identifiers import Unknown, numbers_of
from bayesneg.data.splits import Split
from bayesneg.errors import InputError
from bayesneg.evaluation import ranking
from bayesneg.evaluation.results import EvaluationReport
from bayesneg.interfaces import Embeddings, Scorer
from bayesneg.models.scorers import EmbeddingScorer
from bayesneg.models.serialization import scorer_from, weights_of
from bayesneg.recommendation.bulk import frames
from bayesneg.recommendation.fold_in import FoldsIn, fold_in_of
from bayesneg.recommendation.lists import check_length, item_lists
from bayesneg.recommendation.newcomers import NewItem, NewUser, new_item, new_user, pairs
from bayesneg.recommendation.restrictions import allowed_items, seen_by
from bayesneg.recommendation.similar import similar_items
from bayesneg.runs import folder as files
from bayesneg.runs.record import RunRecord
from bayesneg.runs.reported import NOTHING_HELD_OUT, cutoffs

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, eq=False, repr=False)
class Run:
    """A finished run, as :func:`bayesneg.fit` returns it and :func:`bayesneg.load_run` reads it.

    Args:
        scorer: The trained model at the reported epoch; ``scorer.score_all(users)`` gives scores (B, n_items).
        split: The data it was trained and evaluated on.
        record: Settings, measures of every epoch, and test metrics.
        trained: The embeddings that training moves, where they are not those of the scorer (normalised, smoothed).
        folder: The folder that it was read from, by :func:`bayesneg.load_run`.

    >>> import bayesneg as bn
    >>> run = bn.fit(bn.MF(dim=8), bn.split(bn.synthetic(60, 80, seed=0)), bn.BNS(), epochs=2, progress=False)
    >>> run.evaluate(k=5).mean["ndcg@5"] > 0
    True
    """

    scorer: Scorer
    split: Split
    record: RunRecord
    trained: Embeddings | None = None
    folder: Path | None = None

    def __repr__(self) -> str:
        return repr(self.record).replace("RunRecord", "Run", 1)

    def _repr_html_(self) -> str:
        return self.record._repr_html_()

    def evaluate(self, *, k: int | Iterable[int] | None = None, part: str = "test") -> EvaluationReport:
        """Evaluate over the full catalogue.

        Args:
            k: List length, or several; 5, 10 and 20 unless given.
            part: ``"test"`` or ``"validation"``.

        Returns:
            Every metric, with its mean, its interval over users and its values per user.
        """
        return ranking.evaluate(self.scorer, self.split, k=cutoffs(self.scorer) if k is None else k, part=part)

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
        """The highest-scored items that the user has not interacted with, as far as the run's data knows.

        Args:
            user: The raw identifier of a user.
            k: How many items.
            exclude: Identifiers of items that are never recommended.
            only: Identifiers of the only items that may be recommended.
            include_seen: Also recommend items that the user has interacted with.
            include_held_out: Also recommend items of the user's validation and test part, which were held out of
                training; unless given, every interaction of the split is excluded.

        Returns:
            Pairs of raw item identifier and score, best first; fewer than ``k`` where the catalogue has no more.
        """
        number = self.split.train.user_number(user)
        allowed = allowed_items(self.split.train, exclude, only)
        seen = seen_by(self.split, include_seen=include_seen, include_held_out=include_held_out)
        found = item_lists(self.scorer, seen, np.array([number]), k, allowed=allowed)
        return pairs(found, self.split.train.item_ids)

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
        """The recommendations of many users, the same as :meth:`recommend` gives each of them.

        Args:
            k: How many items for each user.
            users: Identifiers of the users; all users of the data unless given.
            exclude: Identifiers of items that are never recommended.
            only: Identifiers of the only items that may be recommended.
            include_seen: Also recommend items that a user has interacted with.
            include_held_out: Also recommend items of the users' validation and test part.
            unknown: Whether a user, or an item in ``only``, that the run does not know is an ``"error"`` or is left
                out (``"skip"``).

        Returns:
            A frame with the columns user, rank (from 1), item and score; identifiers have the type of the data.
        """
        import polars as pl

        return pl.concat(
            self.recommend_in_chunks(
                k=k,
                users=users,
                exclude=exclude,
                only=only,
                include_seen=include_seen,
                include_held_out=include_held_out,
                unknown=unknown,
            )
        )

    def recommend_in_chunks(
        self,
        *,
        k: int = 20,
        users: Iterable[Any] | None = None,
        exclude: Iterable[Any] | None = None,
        only: Iterable[Any] | None = None,
        include_seen: bool = False,
        include_held_out: bool = False,
        unknown: Unknown = "error",
    ) -> Iterator[pl.DataFrame]:
        """The frame of :meth:`recommend_all` in parts of some hundred thousand rows, for more users than fit memory.

        Args:
            k: How many items for each user.
            users: Identifiers of the users; all users of the data unless given.
            exclude: Identifiers of items that are never recommended.
            only: Identifiers of the only items that may be recommended.
            include_seen: Also recommend items that a user has interacted with.
            include_held_out: Also recommend items of the users' validation and test part.
            unknown: Whether an unknown user, or item in ``only``, is an ``"error"`` or is left out (``"skip"``).

        Returns:
            The parts, each computed when it is asked for; arguments are checked at once.
        """
        train = self.split.train
        numbers = np.arange(train.n_users)
        if users is not None:
            numbers, _ = numbers_of(users, train.numbers_of_users, argument="users", noun="user", unknown=unknown)
        allowed = allowed_items(train, exclude, only, unknown=unknown)
        seen = seen_by(self.split, include_seen=include_seen, include_held_out=include_held_out)
        check_length(k, self.scorer.n_items)
        return frames(self.scorer, train, seen, numbers, k, allowed=allowed)

    def similar(self, item: Any, k: int = 10) -> list[tuple[Any, float]]:
        """The items that are most similar to one.

        The similarity is the cosine of the items' vectors. For an item model such as EASE it is the weight of the item
        in the other's score, and only items with a weight above 0 are listed.

        Args:
            item: The raw identifier of an item.
            k: How many items.

        Returns:
            Pairs of raw item identifier and similarity, best first.

        Raises:
            BayesnegError: the item is unknown or has no training interaction, or the model does not compare items, as
                one by popularity.
        """
        train = self.split.train
        found = similar_items(self.scorer, train, train.item_number(item), k, model=self._model_name)
        return pairs(found, train.item_ids)

    @overload
    def fold_in(self, items: Iterable[Any], *, unknown: Unknown = "error") -> NewUser: ...

    @overload
    def fold_in(self, *, users: Iterable[Any], unknown: Unknown = "error") -> NewItem: ...

    def fold_in(
        self,
        items: Iterable[Any] | None = None,
        *,
        users: Iterable[Any] | None = None,
        unknown: Unknown = "error",
    ) -> NewUser | NewItem:
        """A user or an item that training has not seen, without training again.

        Give the items of a new user, or the users of a new item. A model with vectors gets a vector in closed form
        (:mod:`bayesneg.recommendation.fold_in`); an item model such as EASE scores the new items directly. What has no
        training interaction has no effect, and is named by ``untrained`` of the result.

        Args:
            items: Identifiers of the items of a new user.
            users: Identifiers of the users of a new item.
            unknown: Whether an identifier that the run does not know is an ``"error"`` or is left out (``"skip"``).

        Returns:
            The new user, with ``recommend(k=10)``, or the new item, with ``similar(k=10)`` and ``recommend_to(k=10)``.

        >>> import bayesneg as bn
        >>> data = bn.split(bn.synthetic(60, 80, seed=0), test=0.2, seed=0)
        >>> run = bn.fit(bn.baselines.EASE(), data, progress=False)
        >>> user = run.fold_in(data.train.item_ids[data.train.row(5)[:3]])
        >>> user, len(user.recommend(k=5))
        (NewUser(3 items), 5)
        """
        train = self.split.train
        if (items is None) == (users is None):
            raise InputError("fold_in takes either items, of a new user, or users, of a new item; give one of them")
        if items is not None:
            numbers, left_out = numbers_of(
                items, train.numbers_of_items, argument="items", noun="item", unknown=unknown
            )
            return new_user(self.scorer, train, numbers, left_out, self._user_fold_in)
        assert users is not None
        numbers, left_out = numbers_of(users, train.numbers_of_users, argument="users", noun="user", unknown=unknown)
        if self._item_fold_in is None or not isinstance(self.scorer, EmbeddingScorer):
            raise InputError(
                f"{self._model_name} has no vectors of users, so a new item cannot be folded in; train it again with "
                "the new item"
            )
        return new_item(self.scorer, train, numbers, left_out, self._item_fold_in, self._model_name)

    @property
    def _model_name(self) -> str:
        return self.record.model.partition(" ")[0] or "this model"

    @cached_property
    def _user_fold_in(self) -> FoldsIn | None:
        return fold_in_of(self.scorer, self.split.train, self.record.spec.get("model"), of="users")

    @cached_property
    def _item_fold_in(self) -> FoldsIn | None:
        return fold_in_of(self.scorer, self.split.train, self.record.spec.get("model"), of="items")

    def save(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write the run to a folder, for :func:`bayesneg.load_run`.

        Args:
            path: A folder that does not exist or is empty, or with ``overwrite`` one that holds a run.
            overwrite: Replace the run in the folder; a folder that holds something else is never written to.

        Returns:
            The folder.
        """
        target, report = Path(path), self.evaluate() if len(self.split.test) else NOTHING_HELD_OUT
        if files.holds_run(target):
            if not overwrite:
                raise InputError(f"{target} already holds a run; choose another, or overwrite=True to replace it")
            with files.locked(target):
                files.remove(target)
        with files.begin(target, self.record, self.split):
            files.write_lines(target / files.EPOCHS, self.record.epochs)
            if self.trained is not None:
                files.write_arrays(target / files.TRAINED, self.trained._asdict())
            self.save_result(target, report)
        return target

    def save_result(self, target: Path, report: EvaluationReport) -> None:
        """Write the weights and metrics of the reported epoch; the manifest comes last and marks the run as finished.

        Args:
            target: The folder of the run.
            report: The evaluation of the reported epoch.
        """
        files.write_arrays(target / files.WEIGHTS, weights_of(self.scorer))
        files.write_whole(target / files.PER_USER, report.per_user.write_parquet)
        files.write_json(target / files.METRICS, {"reported_epoch": self.record.reported_epoch, **report.to_dict()})
        files.seal(target)

    def export(
        self,
        path: str | Path,
        *,
        index: str | None = None,
        interactions: bool = True,
        licence: str | None = None,
        overwrite: bool = False,
    ) -> Path:
        """Write the model to a folder that other programs read, for :func:`bayesneg.load_export` and the Hub.

        Args:
            path: A folder that does not exist or is empty, or with ``overwrite`` one that holds an export.
            index: ``"usearch"`` adds an index of the items for approximate search, with its recall in the card.
            interactions: Whether to add the interactions, whose items are excluded from recommendations.
            licence: Licence of the data for the card, such as ``"cc-by-4.0"``; that of a built-in dataset is known.
            overwrite: Replace the export in the folder.

        Returns:
            The folder.
        """
        from bayesneg.runs.exports.exporting import export_run

        return export_run(self, path, index=index, interactions=interactions, licence=licence, overwrite=overwrite)


def load_run(path: str | Path) -> Run:
    """Read a run from its folder.

    Args:
        path: The folder that ``fit(out=…)``, ``Run.save`` or ``bayesneg train --out`` wrote.

    Returns:
        The run; its scorer gives the same scores as the one that was saved.

    Raises:
        BayesnegError: the folder holds no finished run, is damaged, has another schema, or holds a custom model that
            scores without embeddings.
    """
    source = a_path(path)
    with files.reading(source):
        record = files.read_record(source)
        split = files.split_of(source, record)
        with files.damage_named(source / files.WEIGHTS):
            scorer = scorer_from(files.read_arrays(files.checked(source, files.WEIGHTS)), split.train)
    if scorer is None:
        raise InputError(
            f"{source}: a custom model without embeddings cannot be rebuilt from its folder; its parameters are in "
            f"{files.WEIGHTS}, and bayesneg report reads everything else"
        )
    return Run(scorer, split, record, folder=source)
