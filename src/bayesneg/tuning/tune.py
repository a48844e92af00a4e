"""``tune``: search samplers and losses on validation data, compare the best over seeds, recommend one."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import Any

from bayesneg.checks import number, whole
from bayesneg.config.recommended import EPOCHS, PATIENCE
from bayesneg.config.registry import MODELS, name_of
from bayesneg.config.settings import changed
from bayesneg.config.specs import SamplerSpec
from bayesneg.data.splits import Split
from bayesneg.errors import BayesnegError, InputError
from bayesneg.experiments.compare import run_contenders
from bayesneg.experiments.contenders import Baselines, Contender, Losses, check_order
from bayesneg.experiments.datasets import blind
from bayesneg.experiments.runner import runs_at_once
from bayesneg.interfaces import BPR_LOSS, Model, NegativeSampler
from bayesneg.models.mf import MF
from bayesneg.models.mf_several import check_one_by_one
from bayesneg.models.torch.settings import TorchSettings
from bayesneg.models.validate import check_several
from bayesneg.progress import bars, tell
from bayesneg.runs.folder import write_json
from bayesneg.runs.record import describe
from bayesneg.runs.tuning_result import Trial, TuningResult
from bayesneg.tuning.advice import advise
from bayesneg.tuning.given import combinations, tuned_baselines
from bayesneg.tuning.pace import Pace
from bayesneg.tuning.portfolio import Portfolio
from bayesneg.tuning.search import BAR, Search, best_of, opened, require_optuna
from bayesneg.tuning.space import Combination, Family, Searched, family

FINAL, RESULT = "final", "tuning.json"  # in the out folder
Tunable = str | NegativeSampler | SamplerSpec


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
    progress: bool = True,
) -> TuningResult:
    """Search the settings of samplers and losses on validation data, and recommend one with its evidence.

    ``bn.tune(None, split)`` searches the winners of docs/study.md: a softmax over a shared uniform pool or in-batch
    negatives, with posterior weights and without, beside BPR with RNS and BNS, each with a model that suits it. What
    needs torch is left out where torch is not installed, and a warning says so.

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
        progress: Whether to show a progress bar on stderr, and to say after the first trials how long the rest takes.

    Returns:
        The recommendation with its evidence, every trial and the runs of the final comparison.

    Raises:
        InputError: An argument is wrong, or ``out`` holds another search.
    """
    require_optuna()
    check_order("tune", model)
    if not isinstance(split, Split):
        raise InputError(f"split must be a split, got {type(split).__name__}; bn.split(data, validation=0.1) makes one")
    counts = {"trials": trials, "seeds": seeds, "epochs": epochs, "evaluate_every": evaluate_every}
    for name, count in (*counts.items(), ("jobs", jobs), ("patience", patience)):
        whole(name, 1 if count is None else count)
    whole("seed", seed, least=0)
    if minutes is not None:
        number("minutes", minutes, above=0.0)
    if resume and out is None:
        raise InputError("resume needs out, the folder of the search")
    trials, seeds, epochs, evaluate_every, seed = map(int, (*counts.values(), seed))  # NumPy integers are not JSON
    began = time.monotonic()
    hidden = blind(split)
    if model is None and samplers is None and loss is None:
        samplers = Portfolio()
    if patience is None and isinstance(samplers, Portfolio):
        patience = PATIENCE
    searched, left_out = combinations(model, samplers, loss, split)
    for said in left_out:
        warnings.warn(said, stacklevel=2)
    plain = searched[0].given
    for combination in (each.given for each in searched):
        if isinstance(combination.model, MF):
            check_one_by_one(combination.sampler.build(hidden))
    families = {each.given.label: family(each, hidden) for each in searched}
    for each in families.values():
        check_several(each.given.model, each.with_most_negatives().sampler.build(hidden), each.given.loss.build())
    _check_trials(trials, families)
    rivals = tuned_baselines(baselines, hidden, seed)  # before the search: an error in them should not come after it
    folder = None if out is None else Path(out)
    plan = _plan(hidden, families, epochs=epochs, evaluate_every=evaluate_every, patience=patience, seed=seed)
    pace = Pace([*families], seeds, at_once=_side_by_side(searched, jobs), minutes=minutes, began=began)
    with opened(folder, plan, resume=resume) as study, bars(progress, {BAR: trials}, unit="trials") as bar:
        search = Search([*families.values()], hidden, epochs, evaluate_every, patience, seed, study, pace)
        done = search.run(trials, bar, tell if progress else lambda line: None)
    if len(done) < trials and pace.is_over(done):
        left_out = [*left_out, _ended_early(done, trials, families, pace)]
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
    advice = replace(advice, notes=[*advice.notes, *left_out])
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
        plan=plan,
    )
    if folder is not None:
        write_json(folder / RESULT, found.to_dict())
    return found


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


def _check_trials(trials: int, families: Collection[str]) -> None:
    if trials < len(families):
        raise InputError(
            f"trials must be at least {len(families)}, one for the defaults of each sampler (plain RNS is always one "
            f"of them), got {trials}"
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


def _plan(hidden: Split, families: Mapping[str, Family], **numbers: int | None) -> dict[str, Any]:
    """Everything that determines the trials, in plain values: a search is resumed with the same plan only."""
    models = {name: describe(each.given.model) for name, each in families.items()}
    one = next(iter(models.values()))
    return {
        **numbers,
        "data": hidden.fingerprint,
        "model": one if all(each == one for each in models.values()) else models,
        "loss": list(dict.fromkeys(each.given.loss.label for each in families.values())),
        "samplers": {
            name: {key: repr(values) for key, values in each.ranges.items()} for name, each in families.items()
        },
        "left_out": {name: dict(each.left_out) for name, each in families.items() if each.left_out},
        **{f"content of {name}": each.content for name, each in families.items()},
        "optuna": metadata.version("optuna"),
    }
