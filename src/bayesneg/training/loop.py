"""The training loop.

Each epoch trains the model, measures the sampled negatives, evaluates the ranking and records a line. The reported
epoch is the last, or the best on validation data; test labels never choose it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from bayesneg.checks import whole
from bayesneg.config.loss_specs import as_loss
from bayesneg.config.recommended import EPOCHS, EVALUATED_USERS, PATIENCE, recommended
from bayesneg.config.run_description import run_description
from bayesneg.data.splits import Split
from bayesneg.distributed import has_checkpoints, is_distributed
from bayesneg.errors import DivergedError, InputError
from bayesneg.interfaces import Learner, Loss, Model, NegativeSampler, Observer, Tracker
from bayesneg.models.baseline import Baseline, NoSampler
from bayesneg.models.validate import check_several
from bayesneg.progress import epoch_bar
from bayesneg.runs.recorder import Recorder, begun_record
from bayesneg.runs.reported import NOTHING_HELD_OUT, metrics_of, with_result
from bayesneg.runs.run import Run
from bayesneg.runs.starting import Start, folder_of, trained_apart
from bayesneg.runs.tracked import check_trackers, tracked
from bayesneg.seeding import stream
from bayesneg.training.arguments import (
    check_given,
    check_measured,
    sorted_observers,
    stopping_early,
    tells_epochs_apart,
    warn_of_cold_validation,
)
from bayesneg.training.state import EpochLine, Ordering, TrainingState

if TYPE_CHECKING:
    from bayesneg.distributed.group import ProcessGroup
    from bayesneg.training.processes import DistributedRecorder


def fit(
    model: Model | None,
    split: Split,
    sampler: NegativeSampler | None = None,
    *,
    loss: Loss | str | None = None,
    epochs: int | None = None,
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
    measured_by: Run | None = None,
) -> Run:
    """Train a model on ``split.train`` with the negatives of a sampler.

    Args:
        model: Settings such as ``MF(dim=32)``. A baseline such as ``EASE()`` takes no sampler and has one epoch. None
            trains what ``bayesneg train`` does, ``MF.recommended()`` with ``BNS.recommended()`` and early stopping, on
            a tenth of the training part where the split has no validation part.
        split: The training, test and, if there is one, validation part, over the same users and items.
        sampler: A built-in sampler, or a custom :class:`~bayesneg.interfaces.NegativeSampler`.
        loss: Loss of a positive and its negatives, such as ``bn.losses.Softmax(temperature=0.1)``, or text as on the
            command line, ``"softmax:temperature=0.1"``; BPR unless given.
        epochs: Passes over the training interactions, 100 unless given; 200 without a model, where early stopping ends
            them.
        seed: Of the initial embeddings, the order of examples and every draw. The same seed gives the same bytes on a
            CPU.
        select: Report the ``"last"`` epoch, or the ``"best"`` by NDCG@20 on validation data. Unless given, ``"best"``
            where the split has a validation part whose users have training interactions.
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
        measured_by: Of a final model, trained on ``split.whole()``: the run with a test part that chose its settings,
            whose metrics the record keeps as ``before_final``.

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
    if model is None and isinstance(split, Split):
        if epochs is None and select != "last":
            split = stopping_early(split)
        model, spec = recommended()
        label, sampler = (label or spec.label, spec.build(split)) if sampler is None else (label, sampler)
        evaluate_users = EVALUATED_USERS if evaluate_users is None else evaluate_users
        epochs = EPOCHS if epochs is None else epochs
        if patience is None and select != "last" and split.validation is not None:
            patience = PATIENCE
    epochs = 100 if epochs is None else epochs
    for name, count in (("epochs", epochs), ("evaluate_every", evaluate_every), ("checkpoint_every", checkpoint_every)):
        whole(name, count)
    observers, trackers = sorted_observers(observer)
    check_given(model, split, sampler, loss, observers, patience)
    check_measured(split, measured_by)
    check_trackers(trackers)
    epochs = 1 if isinstance(model, Baseline) else epochs
    loss = as_loss(loss)
    if sampler is not None:
        check_several(model, sampler, loss)
    for name, amount in (("evaluate_users", evaluate_users), ("patience", patience)):
        if amount is not None:
            whole(name, amount)
    earlier = None if start is None else Start(start, model, split.train, split.held_out)
    train = replace(split.train, truth=None)  # a sampler never sees the ground truth
    fresh, group = stream(seed, "init"), None
    learner: Learner
    ordering: Ordering = np.random.Generator.permutation
    if is_distributed():
        from bayesneg.distributed.sharding.order import order_of as ordering
        from bayesneg.training.processes import begun

        others = {"epochs": epochs, "seed": seed, "select": select, "evaluate_every": evaluate_every, "out": out}
        others |= {"evaluate_users": evaluate_users, "patience": patience, "checkpoint_every": checkpoint_every}
        others |= {"resume": resume, "label": label}
        group, learner = begun(model, split, sampler, loss, train, fresh, earlier, **others)
        if group.rank != 0:  # rank 0 speaks
            progress, trackers = False, []
    else:
        learner = model.start(train, rng=fresh) if earlier is None else earlier.begin(train, rng=fresh)
    if epochs > 1 and select != "last" and not tells_epochs_apart(learner, split, evaluate_users):
        warn_of_cold_validation(epochs, split)
        select, patience = "last", None
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
    record = replace(record, run_file=described, before_final=metrics_of(measured_by))
    training = TrainingState(
        model=model,
        split=split,
        learner=learner,
        sampler=(sampler or NoSampler()).prepare(train, rng=stream(seed, "sampler")),
        loss=loss,
        seed=seed,
        select=record.select,
        observers=observers,
        evaluate_users=evaluate_users,
        ordering=ordering,
    )
    folder = None if out is None else Path(out)
    recording = {"resume": resume, "record": record, "split": split, "training": training, "epochs": epochs}
    recorder = recorder_of(group, folder, **recording)
    with ExitStack() as stack:
        stack.callback(recorder.close)
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
            if (
                group is None and len(training.lines) == training.epoch
            ):  # between two epochs; within one the last checkpoint is kept
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


def recorder_of(group: ProcessGroup | None, folder: Path | None, **recording: Any) -> Recorder | DistributedRecorder:
    """What writes the run: of one process, or of several together."""
    if group is None:
        if folder is not None and recording["resume"] and has_checkpoints(folder):
            raise InputError(
                f"{folder} was trained by processes of torchrun; resume it by them, one is enough "
                "(torchrun --nproc-per-node 1)"
            )
        return Recorder(folder, **recording)
    from bayesneg.training.processes import DistributedRecorder

    return DistributedRecorder(folder, group=group, **recording)
