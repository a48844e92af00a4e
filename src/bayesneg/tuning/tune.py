"""``tune``: search samplers and losses on validation data, compare the best over seeds, recommend one."""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from bayesneg.config.recommended import EPOCHS, PATIENCE
from bayesneg.config.registry import MODELS, name_of
from bayesneg.config.settings import changed
from bayesneg.config.specs import SamplerSpec
from bayesneg.data.splits import Split
from bayesneg.errors import BayesnegError, InputError
from bayesneg.experiments.compare import run_contenders
from bayesneg.experiments.contenders import Baselines, Contender, Losses
from bayesneg.experiments.runner import runs_at_once
from bayesneg.interfaces import BPR_LOSS, Model, NegativeSampler
from bayesneg.models.torch.settings import TorchSettings
from bayesneg.progress import bars, tell
from bayesneg.runs.folder import write_json
from bayesneg.runs.tuning_result import Trial, TuningResult
from bayesneg.training.arguments import model_first
from bayesneg.tuning.advice import advise
from bayesneg.tuning.given import Asked, check, read, tuned_baselines
from bayesneg.tuning.pace import Pace
from bayesneg.tuning.portfolio import Portfolio
from bayesneg.tuning.search import BAR, Search, best_of
from bayesneg.tuning.space import Combination, Family, Searched
from bayesneg.tuning.studies import STUDY, Shared, opened, require_optuna

FINAL, RESULT = "final", "tuning.json"  # in the out folder
Tunable = str | NegativeSampler | SamplerSpec


@model_first("bn.tune(None, split) searches the winners of the study")
def tune(
    model: str | Model | None,
    split: Split,
    samplers: Tunable | Mapping[str, Tunable] | Iterable[Tunable] | Portfolio | None = None,
    *,
    loss: Losses | None = None,
    baselines: Baselines = "popularity,item-knn,ease",
    trials: int = 30,
    seeds: int = 5,
    epochs: int = 100,
    evaluate_every: int = 1,
    patience: int | None = None,
    seed: int = 0,
    jobs: int | None = None,
    out: str | Path | None = None,
    resume: bool = False,
    minutes: float | None = None,
    storage: str | Path | None = None,
    study: str = STUDY,
    progress: bool = True,
) -> TuningResult:
    """Search the settings of samplers and losses on validation data, and recommend one with its evidence.

    ``bn.tune(None, split)`` searches the winners of docs/explanation/study.md: a softmax over a shared uniform pool or
    in-batch negatives, with posterior weights and without, beside BPR with RNS and BNS, each with a model that suits
    it. What needs torch is left out where torch is not installed, and a warning says so.

    The test labels are used once, in the final comparison of the best setting of each sampler with plain RNS (one
    negative, BPR) and the baselines. A setting that is not clearly better there than something simpler is not
    recommended. Needs the extra ``tune`` (Optuna).

    Args:
        model: Model such as ``bn.MF()``, or text such as ``"mf:dim=64"``; its settings are kept. None is the model of
            each default contender, and MF where samplers or losses are given.
        split: Data with a validation part, on which everything is chosen.
        samplers: Samplers to tune: a list, a mapping label → sampler, or text as on the command line; RNS, DNS and BNS
            where only a model or a loss is given. What is written with a name (``"bns:prior=flat"``) is kept, and so
            is every field of an object that differs from its default (``bn.BNS(prior=bn.priors.Flat())``); the other
            settings are searched. A custom sampler is tried as it is given.
        loss: Losses to tune with each given sampler, given in the same ways, by default BPR. What is given with a loss
            (``"softmax:temperature=0.1"``) is kept; its other settings are searched, and so are the number of negatives
            and the weighting of samplers that have them.
        baselines: Baselines of the final comparison, given in the same ways, by default MostPopular, ItemKNN and EASE;
            ``()`` for none. The main setting of a baseline (``l2`` of EASE) is the best on validation data, unless it
            was given.
        trials: Number of settings to try; the defaults of each sampler are tried first.
        seeds: Number of seeds of the final comparison.
        epochs: Number of epochs of each trial and of each run of the final comparison.
        evaluate_every: Number of epochs between two evaluations.
        patience: Number of evaluations without a better one on validation data after which a trial, and a run of the
            final comparison, ends; 10 with the default contenders, else ``epochs``, unless given.
        seed: Seed of the search; the same seed gives the same trials.
        jobs: Number of runs at a time in the final comparison, by default one per core, and one on a GPU.
        out: Folder that records every trial as it ends, the final runs, and the result.
        resume: Whether to resume the search in ``out``; it ends as if it had not been interrupted.
        minutes: Time for everything, by default without limit. The search ends early enough for the final comparison,
            which is then made of what is finished; a trial that is under way does not count.
        storage: Where a study is that several processes, on any machine, work on: ``"postgresql://user@host/database"``
            (the extra ``postgres``) or a file on a disk that they share. Each process calls ``tune`` in the same way,
            and each finds the same trials and the same recommendation as one alone; ``trials`` is the number of all
            together, the highest that any asks for. By default the study is this process's.
        study: Name of the study in ``storage``.
        progress: Whether to show a progress bar on stderr, and to say after the first trials how long the rest takes.

    Returns:
        The recommendation with its evidence, every trial and the runs of the final comparison.

    Raises:
        InputError: An argument is wrong, or ``out`` or the study holds another search.
        StorageError: The database of ``storage`` cannot be reached.
    """
    require_optuna()
    shared = None if storage is None else Shared(storage, study)
    check(split, model, {"trials": trials, "seeds": seeds, "epochs": epochs, "jobs": jobs}, minutes)
    if resume and out is None:
        raise InputError("resume needs out, the folder of the search")
    if shared is not None:
        shared.check()
    began = time.monotonic()
    asked = read(model, split, samplers, loss, trials, epochs, evaluate_every, patience, seed)
    rivals = tuned_baselines(baselines, asked.hidden, seed)  # before the search: an error should not come after it
    folder = None if out is None else Path(out)
    families, plain = asked.families, asked.searched[0].given
    epochs, evaluate_every, patience = asked.epochs, asked.evaluate_every, asked.patience
    pace = Pace([*families], seeds, at_once=_side_by_side(asked.searched, jobs), minutes=minutes, began=began)
    trials, seeds = int(trials), int(seeds)
    done = _searched(asked, trials, pace, folder, resume, shared, progress)
    notes = [*asked.left_out]
    if len(done) < trials and pace.is_over(done):
        notes.append(_ended_early(done, trials, families, pace))
    best = best_of(done)
    if not best:
        raise BayesnegError(f"every trial failed; the first: {done[0].label}: {done[0].why}")
    finalists = {plain.label: plain} | {trial.label: _tried(trial, families) for trial in best.values()}
    contenders = {
        label: Contender(each.model, each.sampler.build(split), each.loss.build()) for label, each in finalists.items()
    }
    if both := contenders.keys() & rivals.keys():
        raise InputError(f"{min(both)} is a label of both samplers and baselines; give one of them another")
    records = run_contenders(
        contenders | {label: Contender(rival, None, None) for label, rival in rivals.items()},
        split,
        seeds=seeds,
        epochs=epochs,
        select="best",
        evaluate_every=evaluate_every,
        jobs=jobs,
        out=None if folder is None else folder / FINAL,
        resume=resume,
        progress=progress,
        patience=patience,
    )
    described = {label: each.described for label, each in finalists.items()}
    advice = advise(records, {plain.label, *rivals}, described)
    advice = replace(advice, notes=[*advice.notes, *notes])
    advised = finalists.get(advice.label)
    used = rivals[advice.label] if advised is None else advised.model
    found = TuningResult(
        trials=done,
        best=best,
        records=records,
        advice=advice,
        model=used,
        sampler=None if advised is None else advised.sampler.build(split),
        loss=None if advised is None else advised.loss.build(),
        options=_train_options(used, advised, split, epochs, evaluate_every, patience),
        plan=asked.plan,
    )
    if folder is not None:
        write_json(folder / RESULT, found.to_dict())
    return found


def run_trials(
    model: str | Model | None,
    split: Split,
    samplers: Tunable | Mapping[str, Tunable] | Iterable[Tunable] | Portfolio | None = None,
    *,
    storage: str | Path,
    study: str = STUDY,
    loss: Losses | None = None,
    trials: int = 30,
    epochs: int = 100,
    evaluate_every: int = 1,
    patience: int | None = None,
    seed: int = 0,
    out: str | Path | None = None,
    resume: bool = False,
    minutes: float | None = None,
    progress: bool = True,
) -> list[Trial]:
    """Work on the trials of a shared study, without the final comparison: another process makes it with :func:`tune`.

    Args:
        model: As in :func:`tune`, and so are the other arguments.
        split: The data.
        samplers: Samplers to tune.
        storage: Where the study is.
        study: Its name.
        loss: Losses to tune.
        trials: Number of trials of all processes together.
        epochs: Number of epochs of each trial.
        evaluate_every: Number of epochs between two evaluations.
        patience: Number of evaluations without a better one after which a trial ends.
        seed: Seed of the search.
        out: Folder that keeps the trials of this process.
        resume: Whether ``out`` may hold some.
        minutes: Time for this process.
        progress: Whether to show a progress bar.

    Returns:
        The trials that ended, of all processes.
    """
    require_optuna()
    shared = Shared(storage, study)
    check(split, model, {"trials": trials, "epochs": epochs}, minutes)
    began = time.monotonic()
    asked = read(model, split, samplers, loss, trials, epochs, evaluate_every, patience, seed)
    pace = Pace([*asked.families], 0, minutes=minutes, began=began)
    return _searched(asked, trials, pace, None if out is None else Path(out), resume, shared, progress)


def _searched(
    asked: Asked, trials: int, pace: Pace, folder: Path | None, resume: bool, shared: Shared | None, progress: bool
) -> list[Trial]:
    families, hidden = [*asked.families.values()], asked.hidden
    with (
        opened(folder, asked.plan, resume=resume, shared=shared) as store,
        bars(progress, {BAR: trials}, unit="trials") as bar,
    ):
        search = Search(families, hidden, asked.epochs, asked.evaluate_every, asked.patience, asked.seed, store, pace)
        return search.run(trials, bar, tell if progress else lambda line: None)


def _side_by_side(searched: Sequence[Searched], jobs: int | None) -> int:
    """How many final runs share the machine without slowing each other down: a torch model takes all cores."""
    models = [each.given.model for each in searched]
    at_once = runs_at_once(models, jobs)
    return 1 if any(isinstance(model, TorchSettings) for model in models) else at_once


def _ended_early(done: Sequence[Trial], trials: int, families: Collection[str], pace: Pace) -> str:
    """That time was up, and what was therefore not tried."""
    missing = [name for name in families if name not in {trial.family for trial in done}]
    text = f"The search ended after {len(done)} of {trials} trials, when its {pace.minutes:g} minutes were used"
    return f"{text}; not tried: {'; '.join(missing)}." if missing else f"{text}."


def _tried(trial: Trial, families: Mapping[str, Family]) -> Combination:
    given = families[trial.family].given
    return given._replace(
        sampler=given.sampler.with_settings(trial.settings), loss=given.loss.with_settings(trial.loss_settings)
    )


def _train_options(
    model: Model,
    chosen: Combination | None,
    split: Split,
    epochs: int,
    evaluate_every: int,
    patience: int | None = None,
) -> list[str] | None:
    """The options of ``bayesneg train`` for a model, a sampler and a loss; None where text cannot name one of them.

    They train at least as long as the search did, and on where that was not long enough, until nothing improves.
    """
    name = name_of(type(model), MODELS)
    sampler, loss = (None, None) if chosen is None else (chosen.sampler.text(split), chosen.loss.text())
    if name is None or (chosen is not None and None in (sampler, loss)):
        return None
    options = ["--model", name]
    options += [part for key, value in changed(model).items() for part in ("--set", f"{key}={value}")]
    if chosen is not None:
        options += ["--sampler", str(sampler)]
        options += [] if chosen.loss.build() == BPR_LOSS else ["--loss", str(loss)]
        options += ["--epochs", str(max(epochs, EPOCHS))]
        options += [] if evaluate_every == 1 else ["--evaluate-every", str(evaluate_every)]  # it decides the best epoch
        all_of_them = math.ceil(epochs / evaluate_every)  # a search without patience had all its epochs
        options += ["--patience", str(max(PATIENCE, all_of_them) if patience is None else patience)]
    return options
