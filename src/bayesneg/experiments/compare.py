"""Several samplers over several seeds on one split."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any, Literal

from bayesneg.data.splits import Split
from bayesneg.errors import BayesnegError, InputError
from bayesneg.experiments.threads import chosen_seeds, in_threads, runs_at_once
from bayesneg.interfaces import Model, NegativeSampler
from bayesneg.models.baseline import Baseline
from bayesneg.models.mf import MF
from bayesneg.progress import cell_bars
from bayesneg.runs import folder as files
from bayesneg.runs.record import RunRecord
from bayesneg.training import begun_record, check_resumable, fit


def compare(
    split: Split,
    samplers: Mapping[str, NegativeSampler],
    *,
    model: Model | None = None,
    baselines: Mapping[str, Baseline] | None = None,
    seeds: int | Iterable[int] = 5,
    epochs: int = 100,
    select: Literal["last", "best"] | None = None,
    evaluate_every: int = 1,
    jobs: int | None = None,
    out: str | Path | None = None,
    resume: bool = False,
    progress: bool = True,
) -> list[RunRecord]:
    """Train every sampler with every seed and return the records, sampler by sampler, then baseline by baseline.

    Args:
        split: the same for every run.
        samplers: label → sampler; the first is what the others are compared with.
        model: ``MF()`` unless given.
        baselines: label → baseline, such as ``{"EASE": bn.baselines.EASE()}``, to be shown beside the samplers.
        seeds: how many (0, 1, …) or which.
        epochs, select, evaluate_every: as in :func:`bayesneg.fit`.
        jobs: runs at a time, as many as there are cores unless given, and one on a GPU; never changes a number but
            the seconds.
        out: a folder that gets one run folder per cell.
        resume: keep the finished cells in ``out`` and go on with the rest.
        progress: a bar per sampler on stderr.
    """
    chosen = chosen_seeds(seeds)
    if not samplers:
        raise InputError("samplers must name at least one sampler, got none")
    for name, count in (("epochs", epochs), ("evaluate_every", evaluate_every), ("jobs", 1 if jobs is None else jobs)):
        if count < 1:
            raise InputError(f"{name} must be at least 1, got {count}")
    at_once = runs_at_once(model, jobs)
    contenders = _contenders(samplers, model or MF(), baselines or {})
    cells = [(label, *what, seed, _cell(out, label, seed)) for label, what in contenders.items() for seed in chosen]
    folders = [folder for *_, folder in cells if folder is not None]
    _check_places(folders, resume)
    for label, own, sampler, seed, folder in cells:
        if folder is not None and files.holds_run(folder):
            begun = begun_record(
                own, split, sampler, seed=seed, select=select, evaluate_every=evaluate_every, label=label
            )
            check_resumable(folder, begun, epochs)
    new = [folder for folder in folders if not files.holds_run(folder)]
    stop = Event()
    n_epochs = {label: len(chosen) * (epochs if label in samplers else 1) for label in contenders}
    with cell_bars(progress, n_epochs) as advance:
        one = partial(
            _one,
            split=split,
            epochs=epochs,
            select=select,
            evaluate_every=evaluate_every,
            resume=resume,
            advance=advance,
            stop=stop,
        )
        try:
            return in_threads([partial(one, *cell) for cell in cells], at_once, stop)
        except BayesnegError:
            _remove_unfinished(new)
            raise


def _one(
    label: str,
    model: Model,
    sampler: NegativeSampler | None,
    seed: int,
    out: Path | None,
    *,
    split: Split,
    epochs: int,
    select: Literal["last", "best"] | None,
    evaluate_every: int,
    resume: bool,
    advance: Callable[[str, dict[str, Any]], None],
    stop: Event,
) -> RunRecord:
    def show(line: dict[str, Any]) -> None:
        advance(label, line)
        if stop.is_set():
            raise KeyboardInterrupt  # between two epochs, so that the checkpoint is whole

    try:
        run = fit(
            model,
            split,
            sampler,
            epochs=epochs,
            seed=seed,
            select=select,
            evaluate_every=evaluate_every,
            label=label,
            out=out,
            resume=resume and out is not None,
            progress=show,
        )
    except BayesnegError as error:
        error.args = (f"{label}, seed {seed}: {error}",)
        raise
    return run.record


def _contenders(
    samplers: Mapping[str, NegativeSampler], model: Model, baselines: Mapping[str, Baseline]
) -> dict[str, tuple[Model, NegativeSampler | None]]:
    """Label → what is trained with which sampler."""
    if both := samplers.keys() & baselines.keys():
        raise InputError(f"{min(both)} is a label of both samplers and baselines; give one of them another")
    return {label: (model, sampler) for label, sampler in samplers.items()} | {
        label: (baseline, None) for label, baseline in baselines.items()
    }


def _cell(out: str | Path | None, label: str, seed: int) -> Path | None:
    if out is None:
        return None
    slug = re.sub(r"[^\w.=-]+", "-", label.lower()).strip("-")
    return Path(out) / f"{slug}-seed{seed}"


def _check_places(folders: Sequence[Path], resume: bool) -> None:
    """Nothing is trained before it is sure that every cell has a place of its own to go."""
    for parent in {folder.parent for folder in folders}:
        if files.holds_run(parent):
            raise InputError(f"{parent} already holds a run; choose another --out")
    for place, folder in enumerate(folders):
        if folder in folders[:place]:
            raise InputError(f"two samplers or seeds would both be recorded in {folder}; give them other labels")
        if files.holds_run(folder):
            if not resume:
                raise InputError(
                    f"{folder} already holds a run; choose another --out, or add --resume to keep what is there"
                )
        elif folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise InputError(f"{folder} exists and is not an empty folder; choose another --out")


def _remove_unfinished(folders: Sequence[Path]) -> None:
    """After an error nothing is left but the runs that were finished before it."""
    for folder in folders:
        if files.holds_run(folder) and not (folder / files.METRICS).exists():
            files.remove(folder)
    for parent in {folder.parent for folder in folders}:
        if parent.is_dir() and not any(parent.iterdir()):
            parent.rmdir()
