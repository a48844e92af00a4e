"""Models, samplers and baselines to compare, given as objects, lists, mappings or text, under one label each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from bayesneg.config.settings import assignments
from bayesneg.config.specs import baseline_specs, build_baselines, build_model, parse_samplers
from bayesneg.data.splits import Split
from bayesneg.errors import InputError
from bayesneg.interfaces import Model, NegativeSampler
from bayesneg.models.baseline import Baseline
from bayesneg.runs.record import settings_text

MakeSampler = Callable[[Split], NegativeSampler]
SamplerLike = str | NegativeSampler | MakeSampler
Samplers = SamplerLike | Mapping[str, SamplerLike] | Iterable[SamplerLike]
Models = str | Model | Mapping[str, str | Model] | Iterable[str | Model]
Baselines = str | Baseline | Mapping[str, str | Baseline] | Iterable[str | Baseline]


def named_samplers(samplers: Samplers) -> dict[str, MakeSampler]:
    """Label → function that makes the sampler for a split.

    >>> list(named_samplers("rns,bns:candidates=10"))
    ['RNS', 'BNS (candidates=10)']
    """
    found = by_label("samplers", samplers, _sampler)
    if not found:
        raise InputError("samplers must name at least one sampler, got none")
    return found


def named_models(model: Models) -> dict[str, Model]:
    """Label → model that is trained with sampled negatives.

    >>> from bayesneg.models.mf import MF
    >>> list(named_models([MF(), MF(dim=8)]))
    ['MF', 'MF (dim=8)']
    """
    found = by_label("model", model, _model)
    if not found:
        raise InputError("model must be a model such as bn.MF(), or several, got none")
    return found


def named_baselines(baselines: Baselines) -> dict[str, Baseline]:
    """Label → baseline, which needs no sampler.

    >>> named_baselines("ease:l2=200")
    {'EASE (l2=200)': EASE(l2=200.0, form='auto')}
    """
    return by_label("baselines", baselines, _baseline)


def _sampler(label: str | None, given: Any) -> Iterator[tuple[str, MakeSampler]]:
    if isinstance(given, str):
        yield from ((label or spec.label, spec.build) for spec in parse_samplers(given))
    elif isinstance(given, NegativeSampler):
        yield label or settings_text(given), lambda split: given
    elif isinstance(given, type) and issubclass(given, NegativeSampler):
        name = given.__name__
        raise InputError(f"samplers: {label or name} is the class {name}; give a sampler, {name}()")
    elif callable(given):
        name = label or given.__name__
        yield name, lambda split: _made(name, given, split)
    else:
        where = f"samplers: {label}" if label else "samplers: each"
        raise InputError(f"{where} must be a sampler, or a function of a split, got {given!r}")


def _made(label: str, make: MakeSampler, split: Split) -> NegativeSampler:
    sampler = make(split)
    if not isinstance(sampler, NegativeSampler):
        raise InputError(f"samplers: the function {label} must return a sampler, such as bn.RNS(), got {sampler!r}")
    return sampler


def _model(label: str | None, given: Any) -> Iterator[tuple[str, Model]]:
    if isinstance(given, str):
        for part in filter(None, (part.strip() for part in given.split(","))):
            name, *rest = part.split(":")
            yield from _model(label, build_model(name.lower(), assignments(rest, f"model {name}")))
    elif given is None or isinstance(given, type | Split | NegativeSampler):
        raise InputError(f"model must be a model such as bn.MF(), or several, got {given!r:.60}")
    elif isinstance(given, Baseline):
        name = type(given).__name__
        raise InputError(f"model: {name} samples no negatives; compare and tune take it in baselines=[…]")
    else:
        yield label or settings_text(given), given


def _baseline(label: str | None, given: Any) -> Iterator[tuple[str, Baseline]]:
    if isinstance(given, str):
        yield from ((label or name, built) for name, built in build_baselines(baseline_specs(given)).items())
    elif isinstance(given, Baseline):
        yield label or settings_text(given), given
    else:
        where = f"baselines: {label}" if label else "baselines: each"
        raise InputError(f"{where} must be a model without sampler, such as bn.baselines.EASE(), got {given!r}")


def by_label(argument: str, given: Any, read: Callable[[str | None, Any], Iterator[tuple[str, Any]]]) -> Any:
    """Label → object, for a mapping, a list or one of them; each label once."""
    pairs: Iterable[tuple[Any, Any]] = (
        given.items()
        if isinstance(given, Mapping)
        else ((None, each) for each in (given if isinstance(given, list | tuple) else [given]))
    )
    found: dict[str, Any] = {}
    for key, each in pairs:
        if key is not None and not isinstance(key, str):
            raise InputError(f"{argument}: a label must be text, got {key!r}; write {str(key)!r}")
        for label, one in read(key, each):
            if label in found:
                raise InputError(f"{argument} has {label} twice; give each once, or as a mapping with other labels")
            found[label] = one
    return found
