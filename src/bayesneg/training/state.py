"""The state of a fit: the learner, the sampler, the lines of the epochs so far, and the best epoch."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bayesneg.data.splits import Split
from bayesneg.errors import DamagedError, DivergedError, InputError
from bayesneg.evaluation import ranking
from bayesneg.evaluation.sampling_quality import SamplingQuality
from bayesneg.integrity.arrays import ArraySpec, Specs, check_arrays, prefixed, specs_like
from bayesneg.interfaces import Learner, Loss, Model, NegativeSampler, Observer, ScorerInParts, own_part
from bayesneg.models.baseline import Baseline
from bayesneg.runs.record import jsonable, settings_text
from bayesneg.runs.recorder import EPOCHS_DONE
from bayesneg.runs.reported import cutoffs
from bayesneg.seeding import stream

EpochLine = dict[str, Any]
COUNTERS: Specs = {
    EPOCHS_DONE: ArraySpec((), "integer", least=0),
    "best_epoch": ArraySpec((), "integer", least=0),
    "best_value": ArraySpec((), finite=False),  # minus infinity before the first
    "lines": ArraySpec(("characters",), "uint8"),
}
Ordering = Callable[[np.random.Generator, int], Any]  # takes the number of pairs; their order, as the learner takes it


@dataclass
class TrainingState:
    """Where a fit stands, and its next epoch."""

    model: Model
    split: Split
    learner: Learner
    sampler: NegativeSampler
    loss: Loss
    seed: int
    select: str
    observers: Sequence[Observer] = ()
    evaluate_users: int | None = None
    ordering: Ordering = np.random.Generator.permutation
    epoch: int = 0  # epochs done
    lines: list[EpochLine] = field(default_factory=list)
    best_epoch: int = 0
    best_value: float = -np.inf
    best: dict[str, np.ndarray] = field(default_factory=dict)  # the learner's state at the best epoch

    def __post_init__(self) -> None:
        self.quality = SamplingQuality(self.split)
        if not self.learner.is_finite():
            raise InputError("the model starts with numbers that are not finite; check its initialization")

    def advance(self, *, evaluate: bool) -> EpochLine:
        """Train one epoch and return its line."""
        self.epoch += 1
        self.quality.start_epoch()
        started = time.perf_counter()
        measuring = 0.0
        rng = stream(self.seed, "sampler", self.epoch)
        for sampled in self.learner.train_epoch(
            self.sampler,
            epoch=self.epoch,
            order=self._order(),
            rng=rng,
            loss=self.loss,
            labels=self.quality.labels,
        ):
            trained = time.perf_counter()
            self.quality.add(sampled)
            for observer in self.observers:
                observer.see(sampled)
            measuring += time.perf_counter() - trained
        self.sampler.end_epoch(self.epoch, self.learner)
        seconds = time.perf_counter() - started - measuring
        self._check_finite()
        self._check_learned()
        measured = {} if isinstance(self.model, Baseline) else self.quality.result()
        line: EpochLine = {"epoch": self.epoch, **measured, "seconds": seconds}
        for observer in self.observers:
            line |= observer.end_epoch(self.epoch, self.sampler, self.learner.frozen())
        if evaluate:
            line |= self._evaluate()
        self.lines.append(line)
        return line

    def stalled(self, patience: int | None) -> bool:
        """Whether as many evaluations as ``patience`` have followed the best one."""
        if patience is None:
            return False
        later = (line for line in self.lines if line["epoch"] > self.best_epoch)
        return sum(any(key.startswith("validation_") for key in line) for line in later) >= patience

    def restore_reported(self) -> int:
        """Give the learner the state of the epoch to report; its number."""
        if self.select == "best" and self.best:
            self.learner.load_state_dict(self.best)
            return self.best_epoch
        return self.epoch

    def _order(self) -> Any:
        """The order of training examples (n_train,)."""
        counters = (self.epoch,) if self.model.shuffle == "epoch" else ()
        return self.ordering(stream(self.seed, "order", *counters), len(self.split.train))

    def _evaluate(self) -> EpochLine:
        k = cutoffs(self.learner)[-1]
        found = {f"ndcg@{k}": self._ndcg("test", k)} if len(self.split.test) else {}
        if self.split.validation is not None:
            value = self._ndcg("validation", k)
            found[f"validation_ndcg@{k}"] = value
            if self.select == "best" and value > self.best_value:
                self.best_epoch, self.best_value = self.epoch, value
                self.best = {key: array.copy() for key, array in self.learner.state_dict().items()}
        return found

    def _ndcg(self, part: str, k: int) -> float:
        found = ranking.evaluate(
            self.learner.frozen(), self.split, k=k, part=part, metrics="ndcg", sample=self.evaluate_users
        )
        return found.mean[f"ndcg@{k}"]

    def _check_learned(self) -> None:
        train = self.split.train
        if isinstance(self.model, Baseline) or self.quality.skipped < len(train):
            return
        if not ((train.counts > 0) & (train.counts < train.n_items)).any():
            return  # users without unobserved items are skipped, and the record counts them
        name = type(self.sampler).__name__
        raise InputError(
            f"nothing was learned in epoch {self.epoch}: {name} gave no training pair a negative that counts, since "
            "all negatives are training items of their users or have weight 0; draw more negatives, or check the "
            "sampler"
        )

    def _check_finite(self) -> None:
        if not self.learner.is_finite():
            custom = (
                ""
                if self.loss.form() is not None
                else f"check that {settings_text(self.loss)} has finite gradients, or "
            )
            raise DivergedError(
                f"training diverged in epoch {self.epoch}: the factors are no longer finite numbers; "
                f"{custom}lower learning_rate, or regularization if that is large"
            )

    def state_dict(self) -> dict[str, np.ndarray]:
        lines = np.frombuffer(json.dumps(jsonable(self.lines)).encode(), dtype=np.uint8)
        best = {"best_epoch": np.array(self.best_epoch), "best_value": np.array(self.best_value)}
        parts = {"model": self.learner.state_dict(), "sampler": self.sampler.state_dict(), "best": self.best}
        arrays = {f"{part}.{key}": value for part, state in parts.items() for key, value in state.items()}
        return {EPOCHS_DONE: np.array(self.epoch), **best, "lines": lines, **arrays}

    def check_state(self, state: Mapping[str, np.ndarray]) -> None:
        """Refuse a state that is not one of this training: nothing has been changed then.

        Args:
            state: As :meth:`load_state_dict` takes it.
        """
        live, best = self.learner.state_dict(), _part(state, "best")
        specs = {**COUNTERS, **prefixed(_specs(live, _part(state, "model")), "model.")}
        if best:
            specs |= prefixed(_specs(live, best), "best.")
        of_sampler = self.sampler.state_specs(self.split.train)
        sizes = _sizes(self.learner, dim=any("dim" in spec.shape for spec in of_sampler.values()))
        check_arrays(state, specs | prefixed(of_sampler, "sampler."), sizes)
        try:
            lines = json.loads(state["lines"].tobytes())
            numbers = [line["epoch"] for line in lines]
        except (ValueError, TypeError, KeyError, RecursionError):
            raise DamagedError("lines are not those of epochs") from None
        done = int(state[EPOCHS_DONE])
        if numbers != list(range(1, done + 1)) or int(state["best_epoch"]) > done:
            raise DamagedError(f"its lines are not those of {done} epochs")

    def load_state_dict(self, state: Mapping[str, np.ndarray]) -> None:
        self.check_state(state)
        self.epoch, self.best_epoch = int(state[EPOCHS_DONE]), int(state["best_epoch"])
        self.best_value = float(state["best_value"])
        self.learner.load_state_dict(_part(state, "model"))
        self.sampler.load_state_dict(_part(state, "sampler"))
        self.best = _part(state, "best")
        self.lines = json.loads(state["lines"].tobytes())


def _specs(live: Mapping[str, np.ndarray], stored: Mapping[str, np.ndarray]) -> Specs:
    """What the stored state of a model must look like: as it is now; an optimizer's arrays are like the parameters'."""
    found = specs_like(live)
    for key in stored.keys() - live.keys():
        owner = key.rpartition(".")[0]
        if owner in live and stored[key].ndim:
            found[key] = ArraySpec(live[owner].shape)
        elif key.endswith("thresholds"):
            found[key] = ArraySpec(("users",), finite=False)
    return found


def _sizes(learner: Learner, *, dim: bool) -> dict[str, int]:
    """The lengths that arrays of a state have, in this process; that of the embeddings where it is asked for."""
    if not (dim or isinstance(learner, ScorerInParts)):
        return {"users": learner.n_users, "items": learner.n_items}
    part = own_part(learner)
    ranges = {kind: part.range_of(kind) for kind in ("users", "items", "factors")}
    return {"dim": part.dim, **{kind: last - first for kind, (first, last) in ranges.items()}}


def _part(state: Mapping[str, np.ndarray], name: str) -> dict[str, np.ndarray]:
    prefix = f"{name}."
    return {key.removeprefix(prefix): value for key, value in state.items() if key.startswith(prefix)}
