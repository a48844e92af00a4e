"""``fit``: the only training loop.

Each epoch trains the model, measures the sampled negatives, evaluates the ranking and records a line. The reported
epoch is the last, or the best on validation data; test labels never choose it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from bayesneg.checks import an_object, whole
from bayesneg.config.loss_specs import as_loss
from bayesneg.config.run_description import run_description
from bayesneg.data.splits import Split
from bayesneg.errors import DivergedError, InputError
from bayesneg.evaluation import ranking
from bayesneg.evaluation.sampling_quality import SamplingQuality
from bayesneg.interfaces import Learner, Loss, Model, NegativeSampler, Observer, Tracker
from bayesneg.models.baseline import Baseline, NoSampler
from bayesneg.models.validate import check_several
from bayesneg.progress import epoch_bar
from bayesneg.runs.record import jsonable, settings_text
from bayesneg.runs.recorder import EPOCHS_DONE, Recorder, begun_record
from bayesneg.runs.reported import NOTHING_HELD_OUT, cutoffs, with_result
from bayesneg.runs.run import Run
from bayesneg.runs.starting import Start, folder_of, trained_apart
from bayesneg.runs.tracked import check_trackers, tracked
from bayesneg.seeding import stream

EpochLine = dict[str, Any]


def fit(
    model: Model,
    split: Split,
    sampler: NegativeSampler | None = None,
    *,
    loss: Loss | str | None = None,
    epochs: int = 100,
    seed: int = 0,
    select: Literal["last", "best"] | None = None,
    evaluate_every: int = 1,
    evaluate_users: int | None = None,
    patience: int | None = None,
    label: str | None = None,
    out: str | Path | None = None,
    resume: bool = False,
    checkpoint_every: int = 10,
    progress: bool | Callable[[EpochLine], None] = True,
    observer: Observer | Tracker | Sequence[Observer | Tracker] | None = None,
    start: Run | None = None,
) -> Run:
    """Train a model on ``split.train`` with the negatives of a sampler.

    Args:
        model: Settings such as ``MF(dim=32)``. A baseline such as ``EASE()`` takes no sampler and has one epoch.
        split: The training, test and, if there is one, validation part, over the same users and items.
        sampler: A built-in sampler, or a custom :class:`~bayesneg.interfaces.NegativeSampler`.
        loss: Loss of a positive and its negatives, such as ``bn.losses.Softmax(temperature=0.1)``, or text as on the
            command line, ``"softmax:temperature=0.1"``; BPR unless given.
        epochs: Passes over the training interactions.
        seed: Of the initial embeddings, the order of examples and every draw. The same seed gives the same bytes on a
            CPU.
        select: Report the ``"last"`` epoch, or the ``"best"`` by NDCG@20 on validation data. Unless given, ``"best"``
            where the split has a validation part.
        evaluate_every: Epochs between two evaluations (NDCG@20); the last epoch is always evaluated.
        evaluate_users: Users whose ranking is evaluated between epochs, drawn at random and always the same; all unless
            given. The reported epoch is evaluated on all users.
        patience: Stop early once this many evaluations in a row have not raised NDCG@20 on validation data; needs
            ``select="best"``. ``epochs`` unless given.
        label: The run's name in tables; the sampler's settings unless given.
        out: A folder that records the run, with checkpoints; needed to resume.
        resume: Resume the run in ``out``. It ends in the same bytes as a run that was never interrupted.
        checkpoint_every: Epochs between two checkpoints.
        progress: Show a progress bar on stderr, show nothing, or call this function with each epoch's line.
        observer: Sees every sampled block and each epoch's end; what it returns joins the epoch's line. Or a tracker,
            such as ``bn.tracking.TensorBoard("logs")``, which receives parameters and metrics. Or several of both.
        start: An earlier run to go on from, on data whose users and items may have grown: known ones start from its
            embeddings, new ones afresh. The model must have the same class and dimension; the optimizer and the sampler
            start anew.

    Returns:
        The trained model at the reported epoch, with the data and a record of all measures.

    >>> from bayesneg.data.splits import split
    >>> from bayesneg.data.synthetic import synthetic
    >>> from bayesneg.models.mf import MF
    >>> from bayesneg.samplers.bns import BNS
    >>> data = split(synthetic(60, 80, seed=0), test=0.2, seed=0)
    >>> run = fit(MF(dim=8), data, BNS(), epochs=2, progress=False)
    >>> run.record.label, len(run.record.epochs), sorted(run.record.final)[:2]
    ('BNS', 2, ['auc', 'coverage@10'])
    """
    for name, count in (("epochs", epochs), ("evaluate_every", evaluate_every), ("checkpoint_every", checkpoint_every)):
        whole(name, count)
    observers, trackers = _sorted(observer)
    _check_given(model, split, sampler, loss, observers)
    check_trackers(trackers)
    epochs = 1 if isinstance(model, Baseline) else epochs
    loss = as_loss(loss)
    if sampler is not None:
        check_several(model, sampler, loss)
    for name, amount in (("evaluate_users", evaluate_users), ("patience", patience)):
        if amount is not None:
            whole(name, amount)
    earlier = None if start is None else Start(start, model, split.train, split.held_out)
    record = begun_record(
        model, split, sampler, loss, seed=seed, select=select, label=label, evaluate_every=evaluate_every,
        evaluate_users=evaluate_users, patience=patience, start=None if earlier is None else earlier.facts,
    )  # fmt: skip
    if patience is not None and record.select != "best":
        raise InputError(
            "patience stops on validation data; split with validation=0.1 and select='best', or drop patience"
        )
    how: dict[str, Any] = {"epochs": epochs, "seed": seed, "select": record.select, "evaluate_every": evaluate_every}
    how |= {"evaluate_users": evaluate_users, "patience": patience, "start": folder_of(start)}
    described = run_description(model, split, sampler, loss, label=record.label, **how)
    record = replace(record, run_file=described)
    train = replace(split.train, truth=None)  # a sampler never sees the ground truth
    fresh = stream(seed, "init")
    learner = model.start(train, rng=fresh) if earlier is None else earlier.begin(train, rng=fresh)
    training = _Training(
        model=model,
        split=split,
        learner=learner,
        sampler=(sampler or NoSampler()).prepare(train, rng=stream(seed, "sampler")),
        loss=loss,
        seed=seed,
        select=record.select,
        observers=observers,
        evaluate_users=evaluate_users,
    )
    folder = None if out is None else Path(out)
    recorder = Recorder(folder, resume=resume, record=record, split=split, training=training, epochs=epochs)
    with ExitStack() as stack:
        try:
            tracking = stack.enter_context(tracked(trackers, record, folder, training.lines))
            show = stack.enter_context(epoch_bar(progress, record.label, epochs, done=training.epoch))
            while training.epoch < epochs and not training.stalled(patience):
                epoch = training.epoch + 1
                line = training.advance(evaluate=epoch == epochs or epoch % evaluate_every == 0)
                recorder.add(line)
                if epoch == epochs or epoch % checkpoint_every == 0 or training.stalled(patience):
                    recorder.checkpoint()
                tracking.log(line)
                show(line)
        except DivergedError:
            recorder.discard()
            raise
        except Exception:
            if not training.lines:
                recorder.discard()  # it never worked: nothing is left behind
            raise
        except KeyboardInterrupt:
            if len(training.lines) == training.epoch:  # between two epochs; within one the last checkpoint is kept
                recorder.checkpoint()
            raise
        reported = training.restore_reported()
        scorer = training.learner.frozen()
        finished = replace(record, epochs=training.lines, reported_epoch=reported)
        run = Run(scorer, split, finished, trained=trained_apart(training.learner, scorer))
        report = run.evaluate() if len(split.test) else NOTHING_HELD_OUT
        recorder.finish(run, report)
        tracking.finish("finished", report.mean)
    return replace(run, record=with_result(run.record, report))


@dataclass
class _Training:
    """The state of a fit."""

    model: Model
    split: Split
    learner: Learner
    sampler: NegativeSampler
    loss: Loss
    seed: int
    select: str
    observers: Sequence[Observer] = ()
    evaluate_users: int | None = None
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

    def _order(self) -> np.ndarray:
        """The order of training examples (n_train,)."""
        counters = (self.epoch,) if self.model.shuffle == "epoch" else ()
        return stream(self.seed, "order", *counters).permutation(len(self.split.train))

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

    def load_state_dict(self, state: Mapping[str, np.ndarray]) -> None:
        self.epoch, self.best_epoch = int(state[EPOCHS_DONE]), int(state["best_epoch"])
        self.best_value = float(state["best_value"])
        self.learner.load_state_dict(_part(state, "model"))
        self.sampler.load_state_dict(_part(state, "sampler"))
        self.best = _part(state, "best")
        self.lines = json.loads(state["lines"].tobytes())


def _part(state: Mapping[str, np.ndarray], name: str) -> dict[str, np.ndarray]:
    prefix = f"{name}."
    return {key.removeprefix(prefix): value for key, value in state.items() if key.startswith(prefix)}


def _sorted(given: object) -> tuple[list[Observer], list[Tracker]]:
    """Observers and trackers, which may be given one by one or together."""
    observers: list[Observer] = []
    trackers: list[Tracker] = []
    for one in [] if given is None else list(given) if isinstance(given, list | tuple) else [given]:
        if isinstance(one, Tracker):
            trackers.append(one)
        elif isinstance(one, Observer) and not isinstance(one, type):
            observers.append(one)
        else:
            raise InputError(
                "observer must be an object with the methods of bn.Observer, a tracker such as "
                f"bn.tracking.TensorBoard('logs'), or a list of these, got {one!r}"
            )
    return observers, trackers


def _check_given(
    model: Model, split: Split, sampler: NegativeSampler | None, loss: object, observers: Sequence[Observer]
) -> None:
    an_object("model", model, "bn.MF()")
    an_object("sampler", sampler, "bn.BNS()")
    if not isinstance(split, Split):
        raise InputError(
            f"split must be a split, got {type(split).__name__}; fit takes model, split, sampler, in this order, and "
            "bn.split(data) makes a split"
        )
    name = type(model).__name__
    if isinstance(model, Baseline):
        observed = observers or None
        for argument, given in (("a sampler", sampler), ("a loss", loss), ("an observer", observed)):
            if given is not None:
                raise InputError(f"{name} samples no negatives; call fit without {argument}")
    elif sampler is None:
        raise InputError(f"{name} is trained with sampled negatives; give fit a sampler, such as bn.BNS()")
