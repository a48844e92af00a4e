"""Going on with training on newer data: known users and items start from the embeddings of an earlier run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from bayesneg.data.identifiers import find
from bayesneg.data.interactions import Interactions
from bayesneg.errors import InputError
from bayesneg.interfaces import Embeddings, KeepsUsers, Learner, Model, Scorer, StartsFromEmbeddings, StartsInParts
from bayesneg.models.baseline import Baseline
from bayesneg.models.mf import MF
from bayesneg.models.scorers import EmbeddingScorer
from bayesneg.runs import folder as files
from bayesneg.runs.record import describe
from bayesneg.runs.run import Run

NEW_SCALE = 0.1  # standard deviation of the initial embeddings of new users and items, where ALS would give others
SHAPE = ("dim", "ensemble_size")  # settings that must be those of the earlier run


@dataclass(frozen=True)
class Start:
    """An earlier run to start from, checked against the model and the data of the new one.

    Args:
        run: The earlier run.
        model: The model to train.
        train: The new training interactions, whose users and items may have changed.
        held_out: The new validation and test interactions.
    """

    run: Run
    model: Model
    train: Interactions
    held_out: Interactions

    def __post_init__(self) -> None:
        if not isinstance(self.run, Run):
            raise InputError(f"start must be a run, such as bn.load_run(folder), got {type(self.run).__name__}")
        name = type(self.model).__name__
        if isinstance(self.model, Baseline):
            raise InputError(f"{name} is solved from all data at once; call fit without start")
        before = self._settings.get("class", "unknown")
        if before != name:
            raise InputError(
                f"start is a run of {before}, and the model is {name}; train {before}, or start from a run of {name}"
            )
        own = describe(self.model)
        for key in SHAPE:
            if key in own and own[key] != self._settings.get(key):
                was = self._settings.get(key)
                raise InputError(
                    f"start has {key} {was}, and the model has {key} {own[key]}; give {key}={was} (--set {key}={was})"
                )
        if not (self._users[1].size or self._items[1].size):
            raise InputError(
                "start knows no user and no item of the data; start from a run whose identifiers are like those of the "
                f"data, such as {', '.join(map(repr, self.train.user_ids[:3].tolist()))}"
            )

    @property
    def facts(self) -> dict[str, Any]:
        """What the new run's record says of the start."""
        record, train = self.run.record, self.train
        known_users, known_items = len(self._users[0]), len(self._items[0])
        return {
            "label": record.label,
            "dataset": record.dataset,
            "fingerprint": record.data.get("fingerprint"),
            "reported_epoch": record.reported_epoch,
            "n_known_users": known_users,
            "n_new_users": train.n_users - known_users,
            "n_known_items": known_items,
            "n_new_items": train.n_items - known_items,
            "n_held_out": len(self.held_out),
            "n_held_out_seen": self.n_seen,
        }

    @property
    def n_seen(self) -> int:
        """The number of held-out interactions that the earlier run was trained on: they make metrics too high."""
        numbers = []
        for (here, there), n in ((self._users, self.train.n_users), (self._items, self.train.n_items)):
            earlier = np.full(n, -1, dtype=np.int64)
            earlier[here] = there
            numbers.append(earlier)
        users, items = numbers[0][self.held_out.users], numbers[1][self.held_out.indices]
        known = (users >= 0) & (items >= 0)
        return int(np.count_nonzero(self.run.split.train.contains(users[known], items[known])))

    def begin(self, train: Interactions, *, rng: np.random.Generator) -> Learner:
        """The model with the earlier embeddings of known users and items; new ones start at random."""
        model = self.model
        if isinstance(model, MF) and model.init == "als":
            model = replace(model, init="normal", init_scale=NEW_SCALE)  # those of ALS would have other directions
        learner = model.start(train, rng=rng)
        self._apply(learner)
        return learner

    def _apply(self, learner: Learner) -> None:
        fresh = learner.trained_embeddings() if isinstance(learner, StartsFromEmbeddings) else None
        if fresh is None or not isinstance(learner, StartsFromEmbeddings):
            raise InputError(
                f"{type(self.model).__name__} keeps parameters that belong to no user or item; start works with MF, "
                "TorchMF and LightGCN"
            )
        earlier = trained_embeddings_of(self.run)
        started = Embeddings(fresh.users.copy(), fresh.items.copy())
        for now, before, (here, there) in zip(started, earlier, (self._users, self._items), strict=True):
            _check_width(before, now.shape[1])
            now[here] = before[there]
        learned = self._learned()
        learner.start_from(started, learned)
        self._keep_idle(learner, learned)

    def begin_part(self, learner: StartsInParts) -> None:
        """Give a learner that is divided among processes, each of which reads the whole run, its earlier embeddings."""
        earlier, learned = trained_embeddings_of(self.run), self._learned()
        _check_width(earlier.users, learner.own_part().dim)
        learner.start_part_from(earlier, (self._users, self._items), learned)
        self._keep_idle(learner, learned)

    def _keep_idle(self, learner: Learner | StartsInParts, learned: tuple[np.ndarray, np.ndarray]) -> None:
        """Users of the earlier run without a training interaction now are ranked as it ranked them."""
        idle = np.flatnonzero(learned[0] & (self.train.counts == 0))
        if len(idle) and isinstance(learner, KeepsUsers):
            here, there = self._users
            learner.keep_users(idle, self.run.scorer.embeddings().users[there[np.searchsorted(here, idle)]])

    def _learned(self) -> tuple[np.ndarray, np.ndarray]:
        """True (n_users,) and (n_items,) for those whom the earlier run has learned about."""
        scorer, train = self.run.scorer, self.train
        cold = scorer.cold if isinstance(scorer, EmbeddingScorer) else None
        learned = np.zeros(train.n_users, dtype=bool), np.zeros(train.n_items, dtype=bool)
        for place, (here, there) in enumerate((self._users, self._items)):
            learned[place][here] = True if cold is None else ~cold[place][there]
        return learned

    @property
    def _settings(self) -> Mapping[str, Any]:
        return self.run.record.spec.get("model") or {}

    @cached_property
    def _users(self) -> tuple[np.ndarray, np.ndarray]:
        return _matched(self.train.user_ids, self.run.split.train.numbers_of_users)

    @cached_property
    def _items(self) -> tuple[np.ndarray, np.ndarray]:
        return _matched(self.train.item_ids, self.run.split.train.numbers_of_items)


def trained_apart(learner: Learner, scorer: Scorer) -> Embeddings | None:
    """The embeddings that training moves, where they are not simply those of the scorer."""
    found = learner.trained_embeddings() if isinstance(learner, StartsFromEmbeddings) else None
    if found is None or all(map(np.array_equal, found, scorer.embeddings())):
        return None
    return Embeddings(found.users.copy(), found.items.copy())


def trained_embeddings_of(run: Run) -> Embeddings:
    """The embeddings that training moved, at the reported epoch: of the run, of its folder, or those of its scorer."""
    if run.trained is not None:
        return run.trained
    if run.folder is not None:
        with files.reading(run.folder):
            found = files.read_trained(run.folder, run.split.train.n_users, best=run.record.select == "best")
        if found is not None:
            return Embeddings(*found)
        settings = run.record.spec.get("model") or {}
        if settings.get("layers") or settings.get("ranking", "same") != "same" or settings.get("ensemble_size", 1) > 1:
            raise InputError(
                f"{run.folder} lacks {files.CHECKPOINT}, which has the embeddings that training moves; train it again"
            )
    return run.scorer.embeddings()


def _check_width(earlier: np.ndarray, width: int) -> None:
    if earlier.shape[1] != width:
        raise InputError(
            f"start has vectors of {earlier.shape[1]} numbers, and the model has {width}; give both the same dim"
        )


def _matched(ids: np.ndarray, earlier: Mapping[Any, int]) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of known identifiers now, and in the earlier run."""
    found = [find(raw, earlier) for raw in ids.tolist()]
    here = [number for number, there in enumerate(found) if there is not None]
    return np.array(here, dtype=np.int64), np.array([there for there in found if there is not None], dtype=np.int64)


def folder_of(start: Run | None) -> str | None:
    """The folder of an earlier run, as a run file names it; text that cannot be read where it was never saved."""
    if start is None:
        return None
    return "python:run" if start.folder is None else str(start.folder.resolve())
