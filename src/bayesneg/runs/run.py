"""A finished run: the trained model with its data and its record."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from bayesneg.data.splits import Split
from bayesneg.errors import InputError
from bayesneg.evaluation import ranking
from bayesneg.evaluation.results import EvaluationReport
from bayesneg.interfaces import Scorer
from bayesneg.models.serialization import scorer_from, weights_of
from bayesneg.runs import folder as files
from bayesneg.runs.record import RunRecord

CUTOFFS = (5, 10, 20)


@dataclass(frozen=True, eq=False, repr=False)
class Run:
    """A finished run, as :func:`bayesneg.fit` returns it and :func:`bayesneg.load_run` reads it.

    Args:
        scorer: The trained model at the reported epoch; ``scorer.score_all(users)`` gives scores (B, n_items).
        split: The data it was trained and evaluated on.
        record: Settings, measures of every epoch, and test metrics.

    >>> import bayesneg as bn
    >>> data = bn.split(bn.synthetic(60, 80, seed=0), test=0.2, seed=0)
    >>> run = bn.fit(bn.MF(dim=8), data, bn.BNS(), epochs=2, progress=False)
    >>> len(run.recommend(data.train.user_ids[0], k=3)), "ndcg@5" in run.evaluate(k=5).mean
    (3, True)
    """

    scorer: Scorer
    split: Split
    record: RunRecord

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

    def recommend(self, user: Any, *, k: int = 10, include_held_out: bool = False) -> list[tuple[Any, float]]:
        """The highest-scored items that the user has not interacted with, as far as the run's data knows.

        Args:
            user: The raw identifier of a user.
            k: How many items.
            include_held_out: Also recommend items of the user's validation and test part, which were held out of
                training; unless given, every interaction of the split is excluded.

        Returns:
            Pairs of raw item identifier and score, best first; fewer than ``k`` where the catalogue has no more.
        """
        number = self.split.train.user_number(user)
        excluded = self.split.train if include_held_out else self.split.known
        items, scores = ranking.recommend(self.scorer, excluded, np.array([number]), k)
        ids = self.split.train.item_ids
        return [(_plain(ids[item]), float(score)) for item, score in zip(items[0], scores[0], strict=True) if item >= 0]

    def save(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write the run to a folder, for :func:`bayesneg.load_run`.

        Args:
            path: A folder that does not exist or is empty, or with ``overwrite`` one that holds a run.
            overwrite: Replace the run in the folder; a folder that holds something else is never written to.

        Returns:
            The folder.
        """
        target, report = Path(path), self.evaluate()
        if files.holds_run(target):
            if not overwrite:
                raise InputError(
                    f"{target} already holds a run; choose another folder, or overwrite=True to replace it"
                )
            files.remove(target)
        files.new_folder(target)
        files.write_head(target, self.record)
        files.write_split(target, self.split)
        files.write_lines(target / files.EPOCHS, self.record.epochs)
        self.save_result(target, report)
        return target

    def save_result(self, target: Path, report: EvaluationReport) -> None:
        """Write the weights and metrics of the reported epoch; the metrics come last and mark the run as finished.

        Args:
            target: The folder of the run.
            report: The evaluation of the reported epoch.
        """
        files.write_arrays(target / files.WEIGHTS, weights_of(self.scorer))
        files.write_whole(target / files.PER_USER, report.per_user.write_parquet)
        files.write_json(target / files.METRICS, {"reported_epoch": self.record.reported_epoch, **report.to_dict()})


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
    source = Path(path)
    with files.reading(source):
        record = files.read_record(source)
        split = files.read_split(source, name=record.dataset, how=str(record.data.get("split", "given")))
        arrays = files.read_arrays(source / files.WEIGHTS)
    scorer = scorer_from(arrays, split.train)
    if scorer is None:
        raise InputError(
            f"{source}: a custom model without embeddings cannot be rebuilt from its folder; its parameters are in "
            f"{files.WEIGHTS}, and bayesneg report reads everything else"
        )
    return Run(scorer, split, record)


def with_result(record: RunRecord, report: EvaluationReport) -> RunRecord:
    """The record with the metrics that a final evaluation found."""
    return replace(
        record,
        final=dict(report.mean),
        intervals={key: report.interval(key) for key in report.values},
        per_user=dict(report.values),
    )


def cutoffs(scorer: Scorer) -> tuple[int, ...]:
    """The usual list lengths, as far as the catalogue is long enough."""
    return tuple(sorted({min(k, scorer.n_items) for k in CUTOFFS}))


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
