"""``tune``: search the settings of samplers on validation data, compare the best over seeds, and say what to use."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, Final

from bayesneg.checks import an_object, whole
from bayesneg.config.specs import SamplerSpec, baseline_specs, build_baselines, labelled, parse_samplers
from bayesneg.data.splits import Split
from bayesneg.errors import BayesnegError, InputError
from bayesneg.experiments.compare import compare
from bayesneg.experiments.datasets import blind
from bayesneg.interfaces import Model
from bayesneg.models.baseline import Baseline
from bayesneg.models.mf import MF
from bayesneg.progress import search_bar
from bayesneg.runs.folder import write_json
from bayesneg.runs.record import describe
from bayesneg.runs.tuning_result import Tuning
from bayesneg.training import fit
from bayesneg.tuning.advice import advise
from bayesneg.tuning.search import Search, best_of, opened, require_optuna
from bayesneg.tuning.space import Family, family, variants

BESIDE: Final = "popularity,item-knn,ease"  # baselines of the final comparison unless others are given
FINAL, RESULT = "final", "tuning.json"  # in the out folder
PLAIN: Final = SamplerSpec("rns", {})


def tune(
    split: Split,
    samplers: str | Sequence[SamplerSpec] = "rns,dns,bns",
    *,
    model: Model | None = None,
    baselines: Mapping[str, Baseline] | None = None,
    as_given: Collection[str] = (),
    trials: int = 25,
    seeds: int = 5,
    epochs: int = 100,
    evaluate_every: int = 1,
    seed: int = 0,
    jobs: int | None = None,
    out: str | Path | None = None,
    resume: bool = False,
    progress: bool = True,
) -> Tuning:
    """Search sampler, candidates, λ and prior on validation data, and recommend a setting with its evidence.

    The test labels are looked at once, in the final comparison of the best setting of each sampler with plain RNS and
    the baselines. What is not clearly better there than something simpler is not recommended.

    Args:
        split: with a validation part, by which everything is chosen.
        samplers: as on the command line; what is given with a sampler (``bns:prior=flat``) is kept, the rest searched.
        model: ``MF()`` unless given; its settings are kept.
        baselines: label → baseline, such as ``{"EASE": bn.baselines.EASE()}``; judged in the final comparison, those
        at their
            default as ``EASE (l2=800)``, with the main setting that is best on validation. Popularity, item-knn and
            EASE unless given; ``{}`` for none.
        as_given: labels of baselines whose main setting is kept though it is the default.
        trials: settings to try, one after the other, the usual one of each sampler first.
        seeds: of the final comparison, 0, 1, …
        epochs, evaluate_every: as in :func:`bayesneg.fit`, in trials as in the final comparison.
        seed: of the search; the same seed gives the same trials.
        jobs: runs at a time in the final comparison.
        out: a folder that keeps every trial as it ends, the final runs, and the result.
        resume: go on with the search in ``out``, which ends as if it had not been interrupted.
        progress: a bar on stderr.
    """
    require_optuna()
    _check_given(split, samplers, model, baselines)
    counts = {"trials": trials, "seeds": seeds, "epochs": epochs, "evaluate_every": evaluate_every}
    for name, count in (*counts.items(), ("jobs", 1 if jobs is None else jobs)):
        whole(name, count)
    whole("seed", seed, least=0)
    if resume and out is None:
        raise InputError("resume needs out, the folder of the search to go on with")
    trials, seeds, epochs, evaluate_every, seed = map(int, (*counts.values(), seed))  # NumPy's are no ints to a file
    hidden = blind(split)
    built = model or MF()
    specs = parse_samplers(samplers) if isinstance(samplers, str) else list(samplers)
    for spec in specs:
        spec.build(split)  # before the search: pairs of the test part in a file are found by the whole split only
    families = [family(spec, hidden) for spec in _with_plain(specs)]
    _check_trials(trials, families)
    beside = build_baselines(baseline_specs(BESIDE)) if baselines is None else baselines
    rivals = _rivals(beside, as_given, hidden, seed)  # before the long part: what cannot be built says so now
    folder = None if out is None else Path(out)
    plan = _plan(hidden, families, built, epochs=epochs, evaluate_every=evaluate_every, seed=seed)
    with opened(folder, plan, resume=resume) as study, search_bar(progress, trials) as bar:
        done = Search(families, built, hidden, epochs, evaluate_every, seed, study).run(trials, bar)
    best = best_of(done)
    if not best:
        raise BayesnegError(f"no trial came to its end; the first: {done[0].label}: {done[0].why}")
    finalists = {PLAIN.label: PLAIN} | {trial.label: SamplerSpec.parse(trial.sampler) for trial in best.values()}
    records = compare(
        built,
        split,
        {label: spec.build for label, spec in finalists.items()},
        baselines=rivals,
        seeds=seeds,
        epochs=epochs,
        select="best",
        evaluate_every=evaluate_every,
        jobs=jobs,
        out=None if folder is None else folder / FINAL,
        resume=resume,
        progress=progress,
    )
    advice = advise(records, simpler={PLAIN.label, *rivals})
    advised = finalists.get(advice.label)
    found = Tuning(
        trials=done,
        best=best,
        records=records,
        advice=advice,
        model=rivals.get(advice.label, built),
        sampler=None if advised is None else advised.build(split),
        written="" if advised is None else advised.written,
        plan=plan,
    )
    if folder is not None:
        write_json(folder / RESULT, found.to_dict())
    return found


def _check_given(split: object, samplers: object, model: object, baselines: object) -> None:
    """An error that says what to give, where something else was."""
    if not isinstance(split, Split):
        raise InputError(f"split must be a split, got {type(split).__name__}; bn.split(data, validation=0.1) makes one")
    specs = isinstance(samplers, Sequence) and all(isinstance(each, SamplerSpec) for each in samplers)
    if not isinstance(samplers, str) and not specs:
        raise InputError(f'samplers must be a text as on the command line, such as "rns,dns,bns", got {samplers!r}')
    an_object("model", model, "bn.MF()")
    if isinstance(model, Baseline):
        name = type(model).__name__
        raise InputError(f'model: {name} samples no negatives; give it as a baseline, baselines={{"{name}": …}}')
    if baselines is not None and not isinstance(baselines, Mapping):
        raise InputError(
            f'baselines must be labels with baselines, as {{"EASE": bn.baselines.EASE()}}, got {baselines!r}'
        )
    for label, baseline in (baselines or {}).items():
        if not isinstance(baseline, Baseline):
            raise InputError(
                f"baselines: {label} must be a model that needs no sampler, such as bn.baselines.EASE(), got "
                f"{baseline!r}"
            )


def _with_plain(specs: Sequence[SamplerSpec]) -> list[SamplerSpec]:
    """Plain RNS is always among them, and first: everything is compared with it."""
    labels = [spec.label for spec in specs]
    if twice := {label for label in labels if labels.count(label) > 1}:
        raise InputError(f"samplers has {min(twice)} twice; give each once, or with other settings")
    return [PLAIN, *(spec for spec in specs if spec.label != PLAIN.label)]


def _rivals(
    baselines: Mapping[str, Baseline], as_given: Collection[str], hidden: Split, seed: int
) -> dict[str, Baseline]:
    """Each baseline with the main setting that is best on validation, the first of equals, and named after it."""
    found: dict[str, Baseline] = {}
    for label, baseline in baselines.items():
        key, tried = ("", [baseline]) if label in as_given else variants(baseline)
        if len(tried) > 1:
            baseline = max(tried, key=lambda one: _judged(one, hidden, seed))
            label = labelled(label, {key: f"{getattr(baseline, key):g}"})
        if found.setdefault(label, baseline) != baseline:
            raise InputError(f"baselines has {label} twice once it is tuned; give them other labels")
    return found


def _judged(baseline: Baseline, hidden: Split, seed: int) -> float:
    line = fit(baseline, hidden, seed=seed, progress=False).record.epochs[-1]
    return next(float(value) for key, value in line.items() if key.startswith("ndcg@"))


def _check_trials(trials: int, families: Sequence[Family]) -> None:
    if trials < len(families):
        raise InputError(
            f"trials must be at least {len(families)}, one for the usual setting of each sampler (plain RNS is always "
            f"one of them), got {trials}"
        )


def _plan(hidden: Split, families: Sequence[Family], model: Model, **numbers: int) -> dict[str, Any]:
    """Everything that decides a trial's numbers, in plain values: a search is gone on with by the same plan only."""
    return {
        **numbers,
        "data": hidden.fingerprint,
        "model": describe(model),
        "samplers": {each.name: {key: repr(values) for key, values in each.ranges.items()} for each in families},
        "left_out": {each.name: dict(each.left_out) for each in families if each.left_out},
        **{f"content of {each.name}": each.content for each in families},
        "optuna": metadata.version("optuna"),
    }
