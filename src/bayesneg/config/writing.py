"""Objects → settings: the flat settings, and the text, that give a sampler, model or loss again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from types import FunctionType
from typing import Any, Final

import numpy as np

from bayesneg.config.build import build_sampler, part_kinds, typed
from bayesneg.config.custom import name_in_file
from bayesneg.config.registry import MODELS, built_in_samplers, main_name, name_of, priors
from bayesneg.config.settings import changed, settings_of
from bayesneg.data.interactions import Interactions
from bayesneg.data.splits import Split
from bayesneg.interfaces import Loss, Model, NegativeSampler, Prior
from bayesneg.losses import TorchLoss, losses
from bayesneg.samplers.priors import Combined, Exposure, Scaled
from bayesneg.samplers.priors.basic import Function, as_prior
from bayesneg.samplers.schedules import LinearDecay

OBJECT: Final = "python:"  # before the class of an object that no settings give
Plain = bool | int | float | str
Table = dict[str, Any]  # name, and the settings


def as_text(sampler: NegativeSampler, split: Split) -> str | None:
    """The sampler as the command line takes it; None where no text gives the same sampler.

    >>> from bayesneg.data.splits import split
    >>> from bayesneg.data.synthetic import synthetic
    >>> from bayesneg.samplers import BNS
    >>> from bayesneg.samplers.priors import Rate
    >>> as_text(BNS(candidates=10, prior=Rate(0.5)), split(synthetic(20, 30, seed=0), test=0.2, seed=0))
    'bns:candidates=10:prior=rate:hidden=0.5'
    """
    name = main_name(type(sampler))
    if name is None:
        return None
    flat = {key: value_text(value) for key, value in _flat(sampler).items()}
    if not _gives(sampler, name, flat, split):
        return None
    presets = built_in_samplers()[name].presets
    return ":".join((name, *(f"{key}={value}" for key, value in flat.items() if presets.get(key) != value)))


def value_text(value: Any) -> str:
    """A setting as text that gives it again."""
    if isinstance(value, LinearDecay):
        return "/".join(("linear", *(f"{number:g}" for number in (value.start, value.rate, value.floor))))
    return f"{value:g}" if isinstance(value, float) and float(f"{value:g}") == value else str(value)


def sampler_table(sampler: NegativeSampler, split: Split) -> Table | str:
    """The name and every setting of a sampler, defaults included: they may change from version to version.

    Args:
        sampler: Any sampler.
        split: Data it is used with, which an oracle needs.

    Returns:
        What builds the same sampler: ``{"name": "dns", "candidates": 2, …}``; text that begins with
        ``python:`` where no settings do.
    """
    name = main_name(type(sampler)) or name_in_file(type(sampler))
    if name is None:
        return _object(sampler)
    for settings in (_flat(sampler, defaults=True, fixed=True), _flat(sampler, defaults=True), _flat(sampler)):
        table = _plain(settings)
        if table is not None and _gives(sampler, name, table, split):
            return {"name": name, **table}
    return _object(sampler)


def model_table(model: Model) -> Table | str:
    """The name and every setting of a model, as :func:`sampler_table`."""
    name = name_of(type(model), MODELS)
    if name is None:
        return _object(model)
    table = _plain({key: getattr(model, key) for key, each in settings_of(type(model)).items() if each.is_text})
    if table is None or not _builds(model, lambda: MODELS[name](**typed(MODELS[name], table, name))):
        return _object(model)
    return {"name": name, **table}


def loss_table(loss: Loss) -> Table | str:
    """The name and every setting of a loss, as :func:`sampler_table`."""
    if isinstance(loss, TorchLoss) and isinstance(loss.function, FunctionType):
        name = name_in_file(loss.function)
        return _object(loss) if name is None else {"name": name}
    name = name_of(type(loss), losses()) or name_in_file(type(loss))
    table = None if name is None else _plain(_flat(loss, defaults=True))
    if name is None or table is None or not _builds(loss, lambda: type(loss)(**typed(type(loss), table, name))):
        return _object(loss)
    return {"name": name, **table}


def _object(value: Any) -> str:
    return f"{OBJECT}{type(value).__module__}.{type(value).__qualname__}"


def _gives(sampler: NegativeSampler, name: str, settings: Mapping[str, Any], split: Split) -> bool:
    return _builds(sampler, lambda: build_sampler(name, typed(type(sampler), settings, name), split))


def _builds(value: Any, build: Callable[[], Any]) -> bool:
    """Whether the same object is built, which the constructor of a custom class may refuse in any way."""
    try:
        return _same(build(), value)
    except Exception:
        return False


def _same(one: Any, other: Any) -> bool:
    """Equal, with interactions by their content, and objects that are no dataclass by their attributes."""
    if type(one) is not type(other):
        return False
    if isinstance(one, Interactions):
        return one.fingerprint == other.fingerprint
    if is_dataclass(one):
        compared = [item.name for item in fields(one) if item.compare]
        return all(_same(getattr(one, name), getattr(other, name)) for name in compared)
    if isinstance(one, NegativeSampler | Prior | Loss):
        return bool(vars(one) == vars(other))
    return bool(np.array_equal(one, other)) if isinstance(one, np.ndarray) else bool(one == other)


def _flat(value: Any, *, defaults: bool = False, fixed: bool = False) -> dict[str, Any]:
    """The settings of an object, those of its parts included.

    Args:
        value: A sampler, loss, prior or likelihood.
        defaults: Also those that have their default value.
        fixed: With ``defaults``, also those of parts that are always of one class.
    """
    found: dict[str, Any] = {}
    known = settings_of(type(value))
    own = _attributes(value) if defaults else changed(value)
    for name, now in own.items():
        kinds = part_kinds(known[name])
        if kinds is None:
            found |= {name: now} if not defaults or known[name].is_text else {}
        elif kinds is priors():
            found |= _flat_prior(now, defaults=defaults)
        elif kinds:
            found |= {name: name_of(type(now), kinds)} | _flat(now, defaults=defaults, fixed=fixed)
        else:
            found |= _flat(now, defaults=defaults and fixed, fixed=fixed)
    return found


def _flat_prior(prior: Prior, *, defaults: bool = False) -> dict[str, Any]:
    if isinstance(prior, Scaled):
        return {**_flat_prior(as_prior(prior.prior), defaults=defaults), "strength": prior.strength}
    if isinstance(prior, Exposure):
        around = {**(prior.rejected.origin or {"rejected": None}), "seen": prior.seen}
        return {**_flat_prior(as_prior(prior.base), defaults=defaults), **around}
    parts = prior.priors if isinstance(prior, Combined) else [prior]
    own: dict[str, Any] = {}
    for part in parts:
        if type(part) in priors().values() or name_in_file(type(part)):
            settings = _attributes(part) if defaults else changed(part)
            own |= {key: value for key, value in settings.items() if settings_of(type(part))[key].is_text}
    return {"prior": "+".join(_prior_name(as_prior(part)) for part in parts), **own}


def _prior_name(prior: Prior) -> str:
    if isinstance(prior, Function) and isinstance(prior.function, FunctionType):
        return name_in_file(prior.function) or type(prior).__name__
    return name_of(type(prior), priors()) or name_in_file(type(prior)) or type(prior).__name__


def _attributes(value: Any) -> dict[str, Any]:
    """The settings of an object; those of a class without fields as far as it keeps them under their names."""
    names = settings_of(type(value))
    if is_dataclass(value):
        return {name: getattr(value, name) for name in names}
    return {name: vars(value)[name] for name in names if name in vars(value)}


def _plain(settings: Mapping[str, Any]) -> Table | None:
    """The settings as a file can hold them; None where one is an object. A setting of None is left to its default."""
    found: Table = {}
    for key, given in settings.items():
        value = given.item() if isinstance(given, np.generic) else given
        value = value_text(value) if isinstance(value, LinearDecay) else value
        if value is not None and not isinstance(value, Plain):
            return None
        found |= {} if value is None else {key: value}
    return found
