"""A fit in several processes: what all must agree on, who writes, and checkpoints that any number can read.

Rank 0 writes the folder of the run; all processes write their parts of checkpoints and weights. All of them return an
equal run, whose scorer they use together.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from bayesneg.data.interactions import Interactions
from bayesneg.data.splits import Split
from bayesneg.distributed import JOB, this_job
from bayesneg.distributed.catalogue import ShardedScorer
from bayesneg.distributed.checkpoints import epochs_in, load, newest, remove_all, save, usable
from bayesneg.distributed.group import ProcessGroup, check_same, raised_by_all
from bayesneg.distributed.learner import DistributedLearner
from bayesneg.distributed.sharding.past_embeddings import reread
from bayesneg.distributed.supported import check_supported
from bayesneg.distributed.weights import write_weights
from bayesneg.errors import InputError
from bayesneg.evaluation.results import EvaluationReport
from bayesneg.integrity.locks import FileLock
from bayesneg.interfaces import Loss, Model, NegativeSampler
from bayesneg.models.torch.device import pick_device
from bayesneg.runs import folder as files
from bayesneg.runs.record import RunRecord, describe, jsonable, versions
from bayesneg.runs.recorder import check_resumable
from bayesneg.runs.run import Run
from bayesneg.runs.starting import Start
from bayesneg.training.state import TrainingState
from bayesneg.whole_files import remove_unfinished, write_text


def begun(
    model: Model,
    split: Split,
    sampler: NegativeSampler | None,
    loss: Loss,
    train: Interactions,
    rng: np.random.Generator,
    earlier: Start | None,
    **others: Any,
) -> tuple[ProcessGroup, DistributedLearner]:
    """The group of this process and the model in training, after all were found to train the same.

    Args:
        model: The model.
        split: The data.
        sampler: The sampler.
        loss: The loss.
        train: The training pairs, without the ground truth.
        rng: The stream of initial embeddings.
        earlier: A run to start from, which every process reads.
        **others: Further arguments of the fit that must be equal.
    """
    found = check_supported(model, sampler)
    group = ProcessGroup(pick_device(found.device))
    facts: dict[str, Any] = {"the data with its split": split.fingerprint, **others, **versions()}
    facts["start"] = None if earlier is None else json.dumps(jsonable(earlier.facts))
    for name, part in (("model", model), ("sampler", sampler), ("loss", loss)):
        facts |= {f"{name} {key}": json.dumps(jsonable(value)) for key, value in describe(part).items()}
    check_same(group, facts)
    learner = DistributedLearner(found, train, rng, group)
    if earlier is not None:
        earlier.begin_part(learner)
    return group, learner


class DistributedRecorder:
    """Writes a run of several processes: its folder by rank 0, checkpoints and weights by all.

    Args:
        folder: Folder of the run, on a disk that all processes share; None to record nothing.
        resume: Continue the run in the folder, where there is one.
        record: What is known of the run before its first epoch.
        split: The data, which the folder keeps.
        training: Where training stands; a resumed run's checkpoint is loaded into it.
        epochs: Number of epochs that the run will have in the end.
        group: The processes.
    """

    def __init__(
        self,
        folder: Path | None,
        *,
        resume: bool,
        record: RunRecord,
        split: Split,
        training: TrainingState,
        epochs: int,
        group: ProcessGroup,
    ) -> None:
        if folder is None and resume:
            raise InputError("resume needs out, the folder of the run to resume")
        self._folder, self._training, self._group = folder, training, group
        self._resumed = False
        self._lock: FileLock | None = None
        if folder is None:
            return
        self._resumed = self._by_first(lambda: self._begin(folder, resume, record, split, epochs))
        checkpoint = usable(folder, group) if self._resumed else None
        if checkpoint is not None:
            training.load_state_dict(raised_by_all(lambda: self._read(checkpoint)))
            reread(training.sampler, training.learner)
        if self._resumed:
            self._by_first(lambda: self._go_on(folder))
        group.wait()

    def _begin(self, folder: Path, resume: bool, record: RunRecord, split: Split, epochs: int) -> bool:
        """Make the folder, or check the run that is in it; whether it is resumed."""
        if not (resume and files.holds_run(folder)):
            self._lock = files.begin(folder, record, split)
            _name_job(folder)
            return False
        self._lock = files.locked(folder)
        check_resumable(folder, record, epochs)
        if (folder / files.CHECKPOINT).exists():
            raise InputError(f"{folder} was trained in one process; resume it without torchrun")
        checkpoint = newest(folder)
        if checkpoint is not None and epochs_in(checkpoint) > epochs:
            raise InputError(f"{folder} already holds {epochs_in(checkpoint)} epochs; resume it with at least as many")
        remove_unfinished(folder)
        files.write_run_file(folder, record.run_file)
        files.write_split(folder, split)
        files.seal(folder, (files.HEAD,))
        _name_job(folder)
        return True

    def _read(self, checkpoint: Path) -> dict[str, np.ndarray]:
        """This process's part of a checkpoint, checked."""
        with files.damage_named(checkpoint):
            state = load(checkpoint, self._ranges())
            self._training.check_state(state)
        return state

    def _go_on(self, folder: Path) -> None:
        """Bring the files of a resumed run to where its checkpoint is."""
        (folder / files.METRICS).unlink(missing_ok=True)  # the run is unfinished until it ends again
        files.write_lines(folder / files.EPOCHS, self._training.lines)

    def close(self) -> None:
        """Let other processes write to the folder, which rank 0 holds."""
        if self._lock is not None:
            self._lock.release()

    def _by_first(self, work: Callable[[], Any]) -> Any:
        """What rank 0 finds; its error is raised by all."""
        answer = raised_by_all(lambda: work() if self._group.rank == 0 else None)
        return self._group.objects(answer)[0]

    def _ranges(self) -> Mapping[str, tuple[int, int]]:
        learner = self._training.learner
        assert isinstance(learner, DistributedLearner)
        part = learner.own_part()
        own = {f"{state}.{kind}": part.range_of(kind) for state in ("model", "best") for kind in ("users", "items")}
        divided = self._training.sampler.divided_state
        return own | {f"sampler.{name}": part.range_of(kind) for name, kind in divided.items()}

    def add(self, line: Mapping[str, Any]) -> None:
        """An epoch's line."""
        if self._folder is not None:
            path = self._folder / files.EPOCHS
            self._by_first(lambda: files.append_line(path, line))

    def checkpoint(self) -> None:
        if self._folder is not None:
            state = self._training.state_dict()
            save(self._folder, self._training.epoch, state, self._ranges(), self._group)

    def discard(self) -> None:
        """Remove a new run that failed, so that its folder is free for the next attempt."""
        if self._folder is not None and not self._resumed and self._group.rank == 0:
            remove_all(self._folder)
            (self._folder / JOB).unlink(missing_ok=True)
            files.remove(self._folder)

    def finish(self, run: Run, report: EvaluationReport) -> None:
        """Write the weights, each process its rows, into one ordinary file; then the metrics."""
        if self._folder is None:
            return
        assert isinstance(run.scorer, ShardedScorer)
        write_weights(self._folder / files.WEIGHTS, run.scorer, run.split.train)

        def write_result() -> None:
            assert self._folder is not None
            files.write_whole(self._folder / files.PER_USER, report.per_user.write_parquet)
            found = {"reported_epoch": run.record.reported_epoch, **report.to_dict()}
            files.write_json(self._folder / files.METRICS, found)
            files.seal(self._folder)

        self._by_first(write_result)


def _name_job(folder: Path) -> None:
    """Leave word that this job trains the run: only then may its processes, started again, resume it unasked."""
    write_text(folder / JOB, this_job())
