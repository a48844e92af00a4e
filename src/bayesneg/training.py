"""``fit``: the only training loop.

Each epoch is trained, its negatives are judged, its ranking is evaluated, and a line is recorded. The epoch to
report is the last, or the best on validation data; test labels are never looked at to choose.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from bayesneg.checks import an_object, whole
from bayesneg.data.splits import Split
from bayesneg.errors import DivergedError, InputError
from bayesneg.evaluation import ranking
from bayesneg.evaluation.sampling_quality import SamplingQuality
from bayesneg.interfaces import Learner, Model, NegativeSampler, Observer
from bayesneg.models.baseline import Baseline, NoSampler
from bayesneg.models.torch.settings import TorchSettings, require_torch
from bayesneg.progress import epoch_bar
from bayesneg.runs import folder as files
from bayesneg.runs.record import RunRecord, comparable, data_facts, describe, jsonable, settings_text, versions
from bayesneg.runs.run import Run, cutoffs, with_result
from bayesneg.seeding import stream

EpochLine = dict[str, Any]


def fit(
    model: Model,
    split: Split,
    sampler: NegativeSampler | None = None,
    *,
    epochs: int = 100,
    seed: int = 0,
    select: Literal["last", "best"] | None = None,
    evaluate_every: int = 1,
    label: str | None = None,
    out: str | Path | None = None,
    resume: bool = False,
    checkpoint_every: int = 10,
    progress: bool | Callable[[EpochLine], None] = True,
    observer: Observer | None = None,
) -> Run:
    """Train ``model`` on ``split.train`` with the negatives of ``sampler``.

    Args:
        model: settings such as ``MF(dim=32)``; a baseline such as ``EASE()`` takes no sampler and is solved at once,
            in the one epoch it has.
        split: parts over the same users and items.
        sampler: a built-in sampler, or your own :class:`~bayesneg.interfaces.NegativeSampler`.
        epochs: passes over the training interactions.
        seed: of the initial factors, the order of examples and every draw; same seed, same bytes.
        select: report the ``"last"`` epoch or the ``"best"`` on validation (NDCG@20); unless given, ``"best"`` where
            the split has a validation part.
        evaluate_every: rank and record NDCG@20 every so many epochs, and after the last.
        label: the run's name in tables; the sampler's settings unless given.
        out: a folder to record the run in as it goes, with checkpoints; needed to resume.
        resume: go on with the run in ``out``; ends in the same bytes as a run that was never interrupted.
        checkpoint_every: epochs between checkpoints.
        progress: a bar on a terminal's stderr (True), nothing (False), or a function called with each epoch's line.
        observer: is shown every pick and each epoch's end; what it answers joins the epoch's line.
    """
    whole("epochs", epochs)
    whole("evaluate_every", evaluate_every)
    whole("checkpoint_every", checkpoint_every)
    _check_sampler(model, sampler)
    if observer is not None and isinstance(model, Baseline):
        raise InputError(f"{type(model).__name__} samples no negatives to look at; call fit without an observer")
    epochs = 1 if isinstance(model, Baseline) else epochs
    record = begun_record(model, split, sampler, seed=seed, select=select, evaluate_every=evaluate_every, label=label)
    seen = replace(split.train, truth=None)  # a sampler is never shown the truth behind the data
    training = _Training(
        model=model,
        split=split,
        learner=model.start(seen, rng=stream(seed, "init")),
        sampler=(sampler or NoSampler()).prepare(seen, rng=stream(seed, "sampler")),
        seed=seed,
        select=record.select,
        observer=observer,
    )
    keeper = _Keeper.open(None if out is None else Path(out), resume, record, training, epochs)
    with epoch_bar(progress, record.label, epochs, done=training.epoch) as show:
        try:
            while training.epoch < epochs:
                last = training.epoch + 1 == epochs
                line = training.advance(evaluate=last or (training.epoch + 1) % evaluate_every == 0)
                keeper.keep(line, training, checkpoint=last or training.epoch % checkpoint_every == 0)
                show(line)
        except DivergedError:
            keeper.discard()
            raise
        except Exception:
            if not training.lines:
                keeper.discard()  # wrong from the start: nothing is left behind
            raise
        except KeyboardInterrupt:
            if len(training.lines) == training.epoch:  # between two epochs; within one the last checkpoint stands
                keeper.checkpoint(training)
            raise
    return keeper.finish(training, record)


def begun_record(
    model: Model,
    split: Split,
    sampler: NegativeSampler | None,
    *,
    seed: int,
    select: str | None,
    evaluate_every: int,
    label: str | None,
) -> RunRecord:
    """What is known of a run before its first epoch; a baseline has no sampler."""
    wanted = 0 if sampler is None else sampler.wanted(split.train.n_items)
    return RunRecord(
        label=label or settings_text(model if sampler is None else sampler),
        seed=seed,
        dataset=split.train.name,
        sampler="" if sampler is None else type(sampler).__name__.lower(),
        model=settings_text(model),
        spec={
            "model": describe(model),
            "sampler": None if sampler is None else describe(sampler.resolved(split.train)),
            "evaluate_every": evaluate_every,
        },
        versions=versions(_gpu(model)),
        data=data_facts(split, wanted),
        select=_selection(select, split),
        uses_test_labels=sampler is not None and sampler.uses_test_labels,
    )


def check_resumable(folder: Path, record: RunRecord, epochs: int) -> None:
    """An error unless the run in ``folder`` was begun as ``record`` says and has no more than ``epochs`` epochs."""
    with files.reading(folder):
        _check_same(files.read_head(folder), record, folder)
        if (folder / files.CHECKPOINT).exists():
            done = int(files.read_arrays(folder / files.CHECKPOINT)["progress"][0])
            if done > epochs:
                raise InputError(f"{folder} already holds {done} epochs; resume it with at least as many")


@dataclass
class _Training:
    """Where a fit stands."""

    model: Model
    split: Split
    learner: Learner
    sampler: NegativeSampler
    seed: int
    select: str
    observer: Observer | None = None
    epoch: int = 0  # epochs done
    lines: list[EpochLine] = field(default_factory=list)
    best_epoch: int = 0
    best_value: float = -np.inf
    best: dict[str, np.ndarray] = field(default_factory=dict)  # the learner at the best epoch

    def __post_init__(self) -> None:
        self.quality = SamplingQuality(self.split)
        if not self.learner.is_finite():
            raise InputError("the model starts with numbers that are not finite; look at how it is made")

    def advance(self, *, evaluate: bool) -> EpochLine:
        """One epoch more; its line."""
        self.epoch += 1
        self.quality.start_epoch()
        started = time.perf_counter()
        judging = 0.0
        rng = stream(self.seed, "sampler", self.epoch)
        for sampled in self.learner.train_epoch(self.sampler, epoch=self.epoch, order=self._order(), rng=rng):
            picked = time.perf_counter()
            self.quality.add(sampled)
            if self.observer is not None:
                self.observer.see(sampled)
            judging += time.perf_counter() - picked
        self.sampler.end_epoch(self.epoch, self.learner)
        seconds = time.perf_counter() - started - judging
        self._check_finite()
        judged = {} if isinstance(self.model, Baseline) else self.quality.result()
        line: EpochLine = {"epoch": self.epoch, **judged, "seconds": seconds}
        if self.observer is not None:
            line |= self.observer.end_epoch(self.epoch, self.sampler, self.learner.frozen())
        if evaluate:
            line |= self._evaluate()
        self.lines.append(line)
        return line

    def _order(self) -> np.ndarray:
        counters = (self.epoch,) if self.model.shuffle == "epoch" else ()
        return stream(self.seed, "order", *counters).permutation(len(self.split.train))

    def _evaluate(self) -> EpochLine:
        k = cutoffs(self.learner)[-1]
        found = {f"ndcg@{k}": self._ndcg("test", k)}
        if self.split.validation is not None:
            value = self._ndcg("validation", k)
            found[f"validation_ndcg@{k}"] = value
            if self.select == "best" and value > self.best_value:
                self.best_epoch, self.best_value = self.epoch, value
                self.best = {key: array.copy() for key, array in self.learner.state_dict().items()}
        return found

    def _ndcg(self, part: str, k: int) -> float:
        return ranking.evaluate(self.learner, self.split, k=k, part=part, metrics="ndcg").mean[f"ndcg@{k}"]

    def _check_finite(self) -> None:
        if not self.learner.is_finite():
            raise DivergedError(
                f"training diverged in epoch {self.epoch}: the factors are no longer finite numbers; "
                "lower learning_rate, or regularization if that is large"
            )

    def state_dict(self) -> dict[str, np.ndarray]:
        numbers = np.array([self.epoch, self.best_epoch, self.best_value], dtype=np.float64)
        lines = np.frombuffer(json.dumps(jsonable(self.lines)).encode(), dtype=np.uint8)
        parts = {"model": self.learner.state_dict(), "sampler": self.sampler.state_dict(), "best": self.best}
        arrays = {f"{part}.{key}": value for part, own in parts.items() for key, value in own.items()}
        return {"progress": numbers, "lines": lines, **arrays}

    def load_state_dict(self, state: Mapping[str, np.ndarray]) -> None:
        self.epoch, self.best_epoch = int(state["progress"][0]), int(state["progress"][1])
        self.best_value = float(state["progress"][2])
        self.learner.load_state_dict(_part(state, "model"))
        self.sampler.load_state_dict(_part(state, "sampler"))
        self.best = _part(state, "best")
        self.lines = json.loads(state["lines"].tobytes())


@dataclass
class _Keeper:
    """Writes the run as it goes, or nothing where there is no folder to write to."""

    folder: Path | None
    resumed: bool = False

    @classmethod
    def open(cls, folder: Path | None, resume: bool, record: RunRecord, training: _Training, epochs: int) -> _Keeper:
        if folder is None:
            if resume:
                raise InputError("resume needs out, the folder of the run to go on with")
            return cls(None)
        if not (resume and files.holds_run(folder)):
            files.new_folder(folder)
            files.write_head(folder, record)
            files.write_split(folder, training.split)
            return cls(folder)
        check_resumable(folder, record, epochs)
        with files.reading(folder):
            files.write_split(folder, training.split)  # a killed process may not have come so far
            if (folder / files.CHECKPOINT).exists():
                training.load_state_dict(files.read_arrays(folder / files.CHECKPOINT))
        (folder / files.METRICS).unlink(missing_ok=True)  # the run is unfinished until it ends again
        files.write_lines(folder / files.EPOCHS, training.lines)
        return cls(folder, resumed=True)

    def keep(self, line: EpochLine, training: _Training, *, checkpoint: bool) -> None:
        if self.folder is not None:
            files.append_line(self.folder / files.EPOCHS, line)
            if checkpoint:
                self.checkpoint(training)

    def checkpoint(self, training: _Training) -> None:
        if self.folder is not None:
            files.write_arrays(self.folder / files.CHECKPOINT, training.state_dict())

    def discard(self) -> None:
        """A run that failed is worth nothing, and its folder would stand in the way of the next try."""
        if self.folder is not None and not self.resumed:
            files.remove(self.folder)

    def finish(self, training: _Training, record: RunRecord) -> Run:
        reported = training.epoch
        if training.select == "best" and training.best:
            reported = training.best_epoch
            training.learner.load_state_dict(training.best)
        run = Run(
            training.learner.frozen(), training.split, replace(record, epochs=training.lines, reported_epoch=reported)
        )
        report = run.evaluate()
        if self.folder is not None:
            run.save_result(self.folder, report)
        return replace(run, record=with_result(run.record, report))


def _part(state: Mapping[str, np.ndarray], name: str) -> dict[str, np.ndarray]:
    prefix = f"{name}."
    return {key.removeprefix(prefix): value for key, value in state.items() if key.startswith(prefix)}


def _gpu(model: Model) -> str:
    """The name of the GPU that a torch model will train on; empty for the CPU."""
    if not isinstance(model, TorchSettings):
        return ""
    require_torch(type(model).__name__)
    from bayesneg.models.torch.device import device_name

    return device_name(model.device)


def _selection(select: str | None, split: Split) -> Literal["last", "best"]:
    if select is None:
        return "last" if split.validation is None else "best"
    if select == "best":
        if split.validation is None:
            raise InputError("select='best' needs a validation part; split with validation=0.1, or select='last'")
        return "best"
    if select == "last":
        return "last"
    raise InputError(f"select must be 'last' or 'best', got {select!r}")


def _check_sampler(model: Model, sampler: NegativeSampler | None) -> None:
    an_object("model", model, "bn.MF()")
    an_object("sampler", sampler, "bn.BNS()")
    if isinstance(model, Baseline) and sampler is not None:
        raise InputError(f"{type(model).__name__} samples no negatives; call fit without a sampler")
    if sampler is None and not isinstance(model, Baseline):
        raise InputError(
            f"{type(model).__name__} is trained with sampled negatives; give fit a sampler, such as bn.BNS()"
        )


def _check_same(head: Mapping[str, Any], record: RunRecord, folder: Path) -> None:
    own, head = ({**one, "spec": comparable(one["spec"])} for one in (record.to_dict(), head))
    for part in ("model", "sampler"):
        begun, now = head["spec"][part], own["spec"][part]
        for key in sorted({*begun, *now}):
            if begun.get(key) != now.get(key):
                raise InputError(
                    f"{folder} holds a run with other settings: {part} {key} was {begun.get(key)}, now it is "
                    f"{now.get(key)}; resume it as it was begun"
                )
    for key, what in (("spec", "settings"), ("label", "label"), ("seed", "seed"), ("select", "epoch selection")):
        if head[key] != own[key]:
            raise InputError(
                f"{folder} holds a run with another {what} ({head[key]}, now {own[key]}); resume it as it was begun"
            )
    if head["data"]["fingerprint"] != own["data"]["fingerprint"]:
        raise InputError(f"{folder} holds a run on other data; resume it with the data and split it was begun with")
