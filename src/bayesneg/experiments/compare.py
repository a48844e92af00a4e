"""Several samplers and losses over several seeds on one split."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

from bayesneg.checks import whole
from bayesneg.data.splits import Split
from bayesneg.errors import BayesnegError, InputError
from bayesneg.experiments.contenders import (
    YARDSTICKS,
    Baselines,
    Contender,
    Losses,
    Models,
    Samplers,
    check_order,
    contenders,
    named_baselines,
    named_losses,
    named_models,
    named_samplers,
)
from bayesneg.experiments.runner import chosen_seeds, naming, run_all, runs_at_once
from bayesneg.interfaces import BPR_LOSS, Loss, Model, NegativeSampler
from bayesneg.progress import ShowEpoch, run_bars
from bayesneg.runs import folder as files
from bayesneg.runs.comparison_table import Comparison
from bayesneg.runs.record import RunRecord
from bayesneg.runs.recorder import begun_record, check_resumable
from bayesneg.training import fit
from bayesneg.training.arguments import model_first


@model_first("give a model: bn.compare(bn.MF(), split, 'rns,bns')")
def compare(
    model: Models,
    split: Split,
    samplers: Samplers = "rns,dns,bns",
    *,
    loss: Losses | None = None,
    baselines: Baselines = YARDSTICKS,
    seeds: int | Iterable[int] = 5,
    epochs: int = 100,
    select: Literal["last", "best"] | None = None,
    evaluate_every: int = 1,
    jobs: int | None = None,
    out: str | Path | None = None,
    resume: bool = False,
    progress: bool = True,
) -> Comparison:
    """Train each model with each sampler, each loss and each seed, and each baseline.

    Args:
        model: One model such as ``MF()``, or several: a list, or a mapping label → model. With several, the label of a
            run says which model it is: ``LightGCN + BNS``. Text as on the command line is taken as well:
            ``"mf,lightgcn:layers=2"``.
        split: The parts of the data, the same for every run.
        samplers: A mapping label → sampler, a list of samplers, whose settings label them, or text as on the command
            line: ``"rns,bns:candidates=10"``; by default RNS, DNS and BNS. A function of the split that returns
            a sampler is accepted too. The first is the one that reports compare the others with.
        loss: One loss such as ``bn.losses.Softmax()``, by default BPR, or several: a list, a mapping label → loss, or
            text as on the command line, ``"bpr,softmax:temperature=0.1"``. With several, the label of a run says which
            loss it is: ``BNS + Softmax``.
        baselines: Models that need no sampler, given in the same ways: ``[bn.baselines.EASE()]``, ``"ease"``; by
            default popularity and EASE, ``()`` for none.
        seeds: How many (0, 1, …), or which.
        epochs: Passes over the training interactions.
        select: The epoch to report, as in :func:`bayesneg.fit`.
        evaluate_every: Epochs between two evaluations, as in :func:`bayesneg.fit`.
        jobs: Runs at a time; one per core unless given, and one on a GPU. Results do not depend on it.
        out: A folder that gets one run folder for each run.
        resume: Keep the finished runs in ``out`` and resume the others.
        progress: Show a progress bar for each label on stderr.

    Returns:
        A list with one record per run, sampler by sampler, loss by loss, seed by seed; the baselines last. Its
        ``verdict`` says where a baseline is better, and which runs were still improving.

    >>> from bayesneg.data.splits import split
    >>> from bayesneg.data.synthetic import synthetic
    >>> from bayesneg.models.mf import MF
    >>> data = split(synthetic(60, 80, seed=0), test=0.2, seed=0)
    >>> records = compare(MF(dim=8), data, "rns,bns", seeds=1, epochs=2, progress=False)
    >>> [(record.label, record.seed) for record in records]
    [('RNS', 0), ('BNS', 0), ('POPULARITY', 0), ('EASE', 0)]
    """
    check_order("compare", model)
    if not isinstance(split, Split):
        raise InputError(f"split must be a split, got {type(split).__name__}; bn.split(data, validation=0.1) makes one")
    found = contenders(
        named_models(model), named_samplers(samplers), named_losses(loss), named_baselines(baselines), split
    )
    records = run_contenders(
        found,
        split,
        seeds=seeds,
        epochs=epochs,
        select=select,
        evaluate_every=evaluate_every,
        jobs=jobs,
        out=out,
        resume=resume,
        progress=progress,
    )
    return Comparison(records)


def run_contenders(
    contenders: Mapping[str, Contender],
    split: Split,
    *,
    seeds: int | Iterable[int],
    epochs: int,
    select: Literal["last", "best"] | None,
    evaluate_every: int,
    jobs: int | None,
    out: str | Path | None,
    resume: bool,
    progress: bool,
    patience: int | None = None,
) -> list[RunRecord]:
    """Train each contender with each seed, as :func:`compare` does; ``patience`` as in :func:`bayesneg.fit`."""
    if len(split.test) == 0:
        raise InputError(
            "split has an empty test part, so there is nothing to compare on; compare before split.whole()"
        )
    chosen = chosen_seeds(seeds)
    for name, count in (("epochs", epochs), ("evaluate_every", evaluate_every), ("jobs", 1 if jobs is None else jobs)):
        whole(name, count)
    at_once = runs_at_once([one.model for one in contenders.values()], jobs)
    runs = [
        _Run(label, *what, seed, _folder(out, label, seed)) for label, what in contenders.items() for seed in chosen
    ]
    folders = [run.folder for run in runs if run.folder is not None]
    _check_folders(folders, resume)

    def how(run: _Run) -> dict[str, Any]:
        stops = {} if run.sampler is None else {"patience": patience}
        return {"select": select, "evaluate_every": evaluate_every, **stops}

    for run in runs:
        if run.folder is not None and files.holds_run(run.folder):
            begun = begun_record(
                run.model, split, run.sampler, run.loss or BPR_LOSS, seed=run.seed, label=run.label, **how(run)
            )
            check_resumable(run.folder, begun, epochs)
    new = [folder for folder in folders if not files.holds_run(folder)]

    def one(run: _Run, show: ShowEpoch) -> RunRecord:
        resumed = resume and run.folder is not None
        recorded: dict[str, Any] = {"seed": run.seed, "label": run.label, "out": run.folder, "resume": resumed}
        with naming(run.label, run.seed):
            found = fit(
                run.model, split, run.sampler, loss=run.loss, epochs=epochs, progress=show, **recorded, **how(run)
            )
            return found.record

    n_epochs = [1 if run.sampler is None else epochs for run in runs]
    with run_bars(progress, [run.label for run in runs], n_epochs) as show:
        try:
            return run_all([partial(one, run) for run in runs], jobs=at_once, show=show)
        except BayesnegError:
            _remove_unfinished(new)
            raise


class _Run(NamedTuple):
    label: str
    model: Model
    sampler: NegativeSampler | None  # None: the model is a baseline
    loss: Loss | None
    seed: int
    folder: Path | None


def _folder(out: str | Path | None, label: str, seed: int) -> Path | None:
    if out is None:
        return None
    slug = re.sub(r"[^\w.=-]+", "-", label.lower()).strip("-")
    return Path(out) / f"{slug}-seed{seed}"


def _check_folders(folders: Sequence[Path], resume: bool) -> None:
    """Before any training: each run has a separate folder."""
    for parent in {folder.parent for folder in folders}:
        if files.holds_run(parent):
            raise InputError(f"{parent} already holds a run; choose another --out")
    for position, folder in enumerate(folders):
        if folder in folders[:position]:
            raise InputError(
                f"two samplers, losses or seeds would both be recorded in {folder}; give them other labels"
            )
        if files.holds_run(folder):
            if not resume:
                raise InputError(
                    f"{folder} already holds a run; choose another --out, or add --resume to keep what is there"
                )
        elif folder.exists() and not files.is_empty(folder):
            raise InputError(f"{folder} exists and is not an empty folder; choose another --out")


def _remove_unfinished(folders: Sequence[Path]) -> None:
    """After an error nothing is left but the runs that were finished before it."""
    for folder in folders:
        if files.holds_run(folder) and not (folder / files.METRICS).exists():
            files.remove(folder)
    for parent in {folder.parent for folder in folders}:
        if parent.is_dir() and not any(parent.iterdir()):
            parent.rmdir()
