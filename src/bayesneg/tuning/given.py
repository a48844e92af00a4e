"""What ``tune`` is given, read: samplers and losses as combinations, and baselines with their main setting tuned."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from importlib import metadata
from typing import Any, Final, NamedTuple

from bayesneg.checks import number, whole
from bayesneg.config.loss_specs import LossSpec, check_loss, parse_losses
from bayesneg.config.recommended import PATIENCE
from bayesneg.config.specs import SamplerSpec, baseline_specs, labelled, parse_samplers
from bayesneg.data.splits import Split
from bayesneg.errors import InputError
from bayesneg.experiments.contenders import Baselines, by_label, check_order, named_baselines, named_models
from bayesneg.experiments.datasets import blind
from bayesneg.interfaces import BPR_LOSS, Model, NegativeSampler
from bayesneg.models.baseline import Baseline
from bayesneg.models.mf import MF
from bayesneg.models.mf_several import check_one_by_one
from bayesneg.models.validate import check_several
from bayesneg.runs.record import describe, settings_text
from bayesneg.samplers.static import RNS
from bayesneg.training import fit
from bayesneg.tuning.portfolio import Portfolio
from bayesneg.tuning.space import Combination, Family, Searched, family, variants

PLAIN: Final = SamplerSpec("rns", {})
BPR: Final = LossSpec("bpr", {})


def check(split: Any, model: Any, counts: Mapping[str, int | None], minutes: float | None) -> None:
    """Of the arguments of a search, those that need no data."""
    check_order("tune", model)
    if not isinstance(split, Split):
        raise InputError(f"split must be a split, got {type(split).__name__}; bn.split(data, validation=0.1) makes one")
    for name, count in counts.items():
        whole(name, 1 if count is None else count)
    if minutes is not None:
        number("minutes", minutes, above=0.0)


class Asked(NamedTuple):
    """A search as it was asked for, checked."""

    hidden: Split
    searched: Sequence[Searched]
    families: Mapping[str, Family]
    left_out: Sequence[str]
    plan: Mapping[str, Any]
    epochs: int
    evaluate_every: int
    patience: int | None
    seed: int


def read(
    model: Any,
    split: Split,
    samplers: Any,
    loss: Any,
    trials: int,
    epochs: int,
    evaluate_every: int,
    patience: int | None,
    seed: int,
) -> Asked:
    """Everything that determines the trials, checked before the first of them."""
    for name, count in (("evaluate_every", evaluate_every), ("patience", 1 if patience is None else patience)):
        whole(name, count)
    whole("seed", seed, least=0)
    epochs, evaluate_every, seed = map(int, (epochs, evaluate_every, seed))  # NumPy integers are not JSON
    hidden = blind(split)
    if model is None and samplers is None and loss is None:
        samplers = Portfolio()
    if patience is None and isinstance(samplers, Portfolio):
        patience = PATIENCE
    searched, left_out = combinations(model, samplers, loss, split)
    for said in left_out:
        warnings.warn(said, stacklevel=3)
    for combination in (each.given for each in searched):
        if isinstance(combination.model, MF):
            check_one_by_one(combination.sampler.build(hidden))
    families = {each.given.label: family(each, hidden) for each in searched}
    for each in families.values():
        check_several(each.given.model, each.with_most_negatives().sampler.build(hidden), each.given.loss.build())
    _check_trials(trials, families)
    plan = _plan(hidden, families, epochs=epochs, evaluate_every=evaluate_every, patience=patience, seed=seed)
    return Asked(hidden, searched, families, left_out, plan, epochs, evaluate_every, patience, seed)


def combinations(model: Any, samplers: Any, loss: Any, split: Split) -> tuple[list[Searched], list[str]]:
    """Every combination, plain RNS with BPR first, and sentences on what was left out."""
    if isinstance(samplers, Portfolio):
        return samplers.searched(split.train)
    built = _one_model("mf" if model is None else model)
    specs = _specs("rns,dns,bns" if samplers is None else samplers, split)
    return [Searched(each) for each in _with_plain(built, specs, _losses(loss))], []


def _one_model(model: Any) -> Model:
    models = list(named_models(model).values())
    if len(models) > 1:
        raise InputError(f"model must be one model, got {len(models)}; tune each in turn")
    return models[0]


def _specs(samplers: Any, split: Split) -> list[SamplerSpec]:
    """Each sampler with its label, whether given as text or as an object."""

    def read(label: str | None, given: Any) -> Iterator[tuple[str, SamplerSpec]]:
        if isinstance(given, str):
            for spec in parse_samplers(given):
                yield _labelled(spec if label is None else SamplerSpec(label, {}, spec.build(split)))
        elif isinstance(given, NegativeSampler):
            yield _labelled(SamplerSpec(label or settings_text(given), {}, given))
        elif isinstance(given, SamplerSpec):
            yield _labelled(given)
        else:
            where = f"samplers: {label}" if label else "samplers: each"
            raise InputError(f'{where} must be a sampler such as bn.BNS(), or text such as "rns,bns", got {given!r}')

    specs = list(by_label("samplers", samplers, read).values())
    if not specs:
        raise InputError("samplers must name at least one sampler, got none")
    for spec in specs:
        spec.build(split)  # before the search: only the whole split shows test pairs in a file of rejected pairs
    return specs


def _labelled(spec: SamplerSpec) -> tuple[str, SamplerSpec]:
    return spec.label, spec


def _losses(loss: Any) -> list[LossSpec]:
    """Each loss with its label, whether given as text or as an object."""

    def read(label: str | None, given: Any) -> Iterator[tuple[str, LossSpec]]:
        if isinstance(given, str):
            for spec in parse_losses(given):
                spec = spec if label is None else LossSpec(label, {}, spec.build())
                yield spec.label, spec
        else:
            check_loss(given)
            spec = LossSpec(label or settings_text(given), {}, given)
            yield spec.label, spec

    specs = list(by_label("loss", "bpr" if loss is None else loss, read).values())
    if not specs:
        raise InputError("loss must name at least one loss, got none; leave it out for BPR")
    for spec in specs:
        spec.build()  # before the search
    return specs


def _with_plain(model: Model, samplers: Sequence[SamplerSpec], losses: Sequence[LossSpec]) -> list[Combination]:
    """All combinations, plain RNS with BPR, the reference of the comparison, in the first place."""
    bpr = next((spec for spec in losses if spec.build() == BPR_LOSS), BPR)
    rns = next((spec for spec in samplers if spec == PLAIN or spec.base == RNS()), PLAIN)
    several = len({spec.label for spec in (bpr, *losses)}) > 1
    plain = Combination(model, rns, bpr, several)
    found = [Combination(model, sampler, loss, several) for sampler in samplers for loss in losses]
    others = [each for each in found if each != plain]
    if plain.label in {each.label for each in others}:
        raise InputError(f"samplers: {plain.label} is the label of plain RNS, which is always compared; choose another")
    return [plain, *others]


def tuned_baselines(baselines: Baselines, hidden: Split, seed: int) -> dict[str, Baseline]:
    """Each baseline with the main setting that is best on validation, the first of equals, labelled with it."""
    named = named_baselines(baselines)
    kept = set(_given_settings(baselines)) if named else set()
    found: dict[str, Baseline] = {}
    for label, baseline in named.items():
        key, tried = ("", [baseline]) if label in kept else variants(baseline)
        if len(tried) > 1:
            baseline = max(tried, key=lambda one: _validated(one, hidden, seed))
            label = labelled(label, {key: f"{getattr(baseline, key):g}"})
        if found.setdefault(label, baseline) != baseline:
            raise InputError(f"baselines has {label} twice once it is tuned; give them other labels")
    return found


def _given_settings(baselines: Any) -> Iterator[str]:
    """Labels of the baselines whose settings were written out, defaults as well."""
    for part in [baselines] if isinstance(baselines, str) else baselines if isinstance(baselines, list | tuple) else []:
        if isinstance(part, str):
            yield from (label for label, (_, settings) in baseline_specs(part).items() if settings)


def _validated(baseline: Baseline, hidden: Split, seed: int) -> float:
    line = fit(baseline, hidden, seed=seed, progress=False).record.epochs[-1]
    return next(float(value) for key, value in line.items() if key.startswith("ndcg@"))


def _check_trials(trials: int, families: Collection[str]) -> None:
    if trials < len(families):
        raise InputError(
            f"trials must be at least {len(families)}, one for the defaults of each sampler (plain RNS is always one "
            f"of them), got {trials}"
        )


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
