"""Recording a run as it trains: its folder, its checkpoints, and what must hold to resume it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np

from bayesneg.data.splits import Split
from bayesneg.errors import InputError
from bayesneg.evaluation.results import EvaluationReport
from bayesneg.integrity.locks import FileLock
from bayesneg.interfaces import Loss, Model, NegativeSampler
from bayesneg.models.torch.settings import TorchSettings, require_torch
from bayesneg.runs import folder as files
from bayesneg.runs.record import RunRecord, data_facts, describe, machine, settings_text, versions
from bayesneg.runs.run import Run
from bayesneg.whole_files import remove_unfinished

EPOCHS_DONE = "epochs_done"  # the key of a checkpoint that holds their number


class Resumable(Protocol):
    """Training that a checkpoint can store."""

    @property
    def lines(self) -> Sequence[Mapping[str, Any]]:
        """The epochs' lines so far."""
        ...

    def state_dict(self) -> dict[str, np.ndarray]: ...

    def load_state_dict(self, state: Mapping[str, np.ndarray]) -> None: ...


class Recorder:
    """Writes a run to its folder as it trains, or nothing where there is no folder.

    Args:
        folder: Folder of the run; None to record nothing.
        resume: Continue the run in the folder, where there is one.
        record: What is known of the run before its first epoch.
        split: The data, which the folder keeps.
        training: Where training stands; a resumed run's checkpoint is loaded into it.
        epochs: Number of epochs that the run will have in the end.
    """

    def __init__(
        self, folder: Path | None, *, resume: bool, record: RunRecord, split: Split, training: Resumable, epochs: int
    ) -> None:
        if folder is None and resume:
            raise InputError("resume needs out, the folder of the run to resume")
        self._folder, self._training = folder, training
        self._lock: FileLock | None = None
        self._resumed = folder is not None and resume and files.holds_run(folder)
        if folder is None:
            return
        if not self._resumed:
            self._lock = files.begin(folder, record, split)
            return
        self._lock = files.locked(folder)
        try:
            self._resume(folder, record, split, epochs)
        except BaseException:
            self.close()
            raise

    def _resume(self, folder: Path, record: RunRecord, split: Split, epochs: int) -> None:
        check_resumable(folder, record, epochs)
        with files.reading(folder):
            checkpoint = files.read_checkpoint(folder, mend=True)
            if checkpoint is not None:
                with files.damage_named(folder / files.CHECKPOINT):
                    self._training.load_state_dict(checkpoint)
        remove_unfinished(folder)
        files.write_run_file(folder, record.run_file)  # a resumed run may have more epochs
        files.write_split(folder, split)  # a killed process may not have come so far
        files.seal(folder, (files.HEAD,))  # the run is unfinished until it ends again
        files.write_lines(folder / files.EPOCHS, self._training.lines)
        (folder / files.METRICS).unlink(missing_ok=True)

    def close(self) -> None:
        """Let other processes write to the folder."""
        if self._lock is not None:
            self._lock.release()

    def add(self, line: Mapping[str, Any]) -> None:
        """An epoch's line."""
        if self._folder is not None:
            files.append_line(self._folder / files.EPOCHS, line)

    def checkpoint(self) -> None:
        if self._folder is not None:
            files.write_checkpoint(self._folder, self._training.state_dict())

    def discard(self) -> None:
        """Remove a new run that failed, so that its folder is free for the next attempt."""
        if self._folder is not None and not self._resumed:
            files.remove(self._folder)

    def finish(self, run: Run, report: EvaluationReport) -> None:
        if self._folder is not None:
            run.save_result(self._folder, report)


def begun_record(
    model: Model,
    split: Split,
    sampler: NegativeSampler | None,
    loss: Loss,
    *,
    seed: int,
    select: str | None,
    evaluate_every: int,
    label: str | None,
    evaluate_users: int | None = None,
    patience: int | None = None,
    start: Mapping[str, Any] | None = None,
) -> RunRecord:
    """What is known of a run before its first epoch; a baseline has no sampler, and few runs start from another."""
    wanted = 0 if sampler is None else sampler.wanted(split.train.n_items)
    return RunRecord(
        label=label or settings_text(model if sampler is None else sampler),
        seed=seed,
        dataset=split.train.name,
        sampler="" if sampler is None else type(sampler).__name__.lower(),
        model=settings_text(model),
        loss="" if sampler is None else settings_text(loss),
        spec={
            "model": describe(model),
            "sampler": None if sampler is None else describe(sampler.resolved(split.train)),
            "loss": None if sampler is None else describe(loss),
            "evaluate_every": evaluate_every,
            **({} if evaluate_users is None else {"evaluate_users": evaluate_users}),
            **({} if patience is None else {"patience": patience}),
            **({} if start is None else {"start": dict(start)}),
        },
        versions=versions(_gpu(model)) | machine(),
        data=data_facts(split, wanted),
        select=_selection(select, split),
        uses_test_labels=sampler is not None and sampler.uses_test_labels,
    )


def check_resumable(folder: Path, record: RunRecord, epochs: int) -> None:
    """An error unless the run in ``folder`` began as ``record`` says and has at most ``epochs`` epochs."""
    with files.reading(folder):
        _check_same(files.read_head(folder), record.to_dict(), folder)
        checkpoint = files.read_checkpoint(folder)
        if checkpoint is not None:
            done = int(checkpoint[EPOCHS_DONE])
            if done > epochs:
                raise InputError(f"{folder} already holds {done} epochs; resume it with at least as many")


def _check_same(begun: Mapping[str, Any], now: Mapping[str, Any], folder: Path) -> None:
    for part in ("model", "sampler", "loss"):
        before, after = begun["spec"].get(part) or {}, now["spec"][part] or {}
        for key in sorted({*before, *after}):
            if before.get(key) != after.get(key):
                raise InputError(
                    f"{folder} holds a run with other settings: {part} {key} was {before.get(key)}, now it is "
                    f"{after.get(key)}; resume it with the settings it began with"
                )
    for key in sorted({*begun["spec"], *now["spec"]} - {"model", "sampler", "loss"}):
        if begun["spec"].get(key) != now["spec"].get(key):
            raise InputError(
                f"{folder} holds a run with other settings: {key} was {begun['spec'].get(key)}, now it is "
                f"{now['spec'].get(key)}; resume it as it began"
            )
    for key, what in (("label", "label"), ("seed", "seed"), ("select", "epoch selection")):
        if begun[key] != now[key]:
            raise InputError(
                f"{folder} holds a run with another {what} ({begun[key]}, now {now[key]}); resume it as it began"
            )
    if begun["data"]["fingerprint"] != now["data"]["fingerprint"]:
        raise InputError(f"{folder} holds a run on other data; resume it with the data and split it began with")
    before, after = (each["data"].get("user_columns") or {} for each in (begun, now))
    for name in sorted({*before, *after}):
        if before.get(name) != after.get(name):
            what = "was not there" if name not in before else "is not there now" if name not in after else "has changed"
            raise InputError(
                f"{folder} holds a run on other data: the user column {name!r} {what}; resume it with the user columns "
                "it began with"
            )


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
