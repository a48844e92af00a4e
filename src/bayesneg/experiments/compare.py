"""Several samplers over several seeds on one split."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any, Literal

from bayesneg.data.splits import Split
from bayesneg.errors import InputError
from bayesneg.interfaces import Model, NegativeSampler
from bayesneg.models.mf import MF
from bayesneg.progress import cell_bars
from bayesneg.runs import folder as files
from bayesneg.runs.record import RunRecord
from bayesneg.training import fit


def compare(
    split: Split,
    samplers: Mapping[str, NegativeSampler],
    *,
    model: Model | None = None,
    seeds: int | Iterable[int] = 5,
    epochs: int = 100,
    select: Literal["last", "best"] | None = None,
    evaluate_every: int = 1,
    jobs: int | None = None,
    out: str | Path | None = None,
    resume: bool = False,
    progress: bool = True,
) -> list[RunRecord]:
    """Train every sampler with every seed and return the records, sampler by sampler.

    Args:
        split: the same for every run.
        samplers: label → sampler; the first is what the others are compared with.
        model: ``MF()`` unless given.
        seeds: how many (0, 1, …) or which.
        epochs, select, evaluate_every: as in :func:`bayesneg.fit`.
        jobs: runs at a time, as many as there are cores unless given; never changes a number but the seconds.
        out: a folder that gets one run folder per cell.
        resume: keep the finished cells in ``out`` and go on with the rest.
        progress: a bar per sampler on stderr.
    """
    chosen = list(range(seeds)) if isinstance(seeds, int) else list(seeds)
    if not chosen:
        raise InputError("seeds must be at least 1, or a list of them, got none")
    if not samplers:
        raise InputError("samplers must name at least one sampler, got none")
    if jobs is not None and jobs < 1:
        raise InputError(f"jobs must be at least 1, got {jobs}")
    stop = Event()
    with cell_bars(progress, list(samplers), len(chosen) * epochs) as advance:
        one = partial(
            _one,
            split=split,
            model=model or MF(),
            epochs=epochs,
            select=select,
            evaluate_every=evaluate_every,
            resume=resume,
            advance=advance,
            stop=stop,
        )
        cells = [
            (label, sampler, seed, _cell(out, label, seed)) for label, sampler in samplers.items() for seed in chosen
        ]
        _check_free(cells, resume)
        with ThreadPoolExecutor(jobs or os.cpu_count() or 1) as pool:
            running = [pool.submit(one, *cell) for cell in cells]
            try:
                return [run.result() for run in running]
            except BaseException:
                stop.set()
                pool.shutdown(wait=True, cancel_futures=True)
                raise


def _one(
    label: str,
    sampler: NegativeSampler,
    seed: int,
    out: Path | None,
    *,
    split: Split,
    model: Model,
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
            raise KeyboardInterrupt

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
    return run.record


def _cell(out: str | Path | None, label: str, seed: int) -> Path | None:
    if out is None:
        return None
    slug = re.sub(r"[^a-z0-9.=_-]+", "-", label.lower()).strip("-")
    return Path(out) / f"{slug}-seed{seed}"


def _check_free(cells: list[tuple[str, NegativeSampler, int, Path | None]], resume: bool) -> None:
    """Nothing is trained before it is sure that every cell has a place to go."""
    for _, _, _, folder in cells:
        if folder is not None and files.holds_run(folder) and not resume:
            raise InputError(
                f"{folder} already holds a run; choose another --out, or add --resume to keep what is there"
            )
