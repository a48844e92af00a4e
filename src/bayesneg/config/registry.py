"""Names → classes: samplers, priors, likelihoods and models that text can name.

Built-in samplers, priors and likelihoods are those of :mod:`bayesneg.samplers.registry`, where a class is registered by
the names it declares. Other packages add samplers by entry points of the group ``bayesneg.samplers``,
which are loaded when their name is used.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import metadata
from types import MappingProxyType
from typing import Any, Final

from bayesneg.config.custom import custom_class, is_custom
from bayesneg.config.docstrings import summary
from bayesneg.config.settings import Settings, check_known
from bayesneg.errors import BayesnegError, InputError
from bayesneg.interfaces import Model, NegativeSampler, Prior
from bayesneg.models.baseline import Baseline
from bayesneg.models.baselines import ALS, EASE, GFCF, ItemKNN, MostPopular, RP3Beta
from bayesneg.models.mf import MF
from bayesneg.models.torch.lightgcn import LightGCN, TorchMF
from bayesneg.samplers import registry
from bayesneg.samplers.bns import BNS
from bayesneg.samplers.posterior.likelihoods import Likelihood
from bayesneg.samplers.schedules import WarmStart

GROUP: Final = "bayesneg.samplers"
MODELS: Final[Mapping[str, type[Model]]] = {
    "mf": MF,
    "lightgcn": LightGCN,
    "torch-mf": TorchMF,
    "popularity": MostPopular,
    "item-knn": ItemKNN,
    "rp3beta": RP3Beta,
    "ease": EASE,
    "gfcf": GFCF,
    "als": ALS,
}
# as the BNS paper trains them
PAPER: Final[Mapping[str, Callable[..., Model]]] = {
    **MODELS,
    "mf": MF.paper,
    "lightgcn": LightGCN.paper,
    "torch-mf": TorchMF.paper,
}
PAPER_SAMPLERS: Final = {"cdf": "exact"}  # the paper computes F exactly, whatever the number of items
BASELINES: Final = tuple(name for name, kind in MODELS.items() if issubclass(kind, Baseline))


@dataclass(frozen=True)
class NamedSampler:
    """A named sampler: a class, and the settings that the name implies."""

    kind: type[NegativeSampler]
    about: str
    presets: Settings = field(default_factory=dict)


def sampler_named(name: str) -> NamedSampler:
    """The sampler of a name: built in, of a plug-in, or ``file.py:Class``.

    Args:
        name: As on the command line, without settings.

    Returns:
        The class with the settings that the name means.

    Raises:
        InputError: There is no sampler of this name, or the plug-in that has it cannot be loaded.
    """
    if is_custom(name):
        kind = custom_class(name)
        return NamedSampler(kind, summary(kind.__doc__))
    plug_ins = _entry_points()
    if name in built_in_samplers():
        if name in plug_ins:
            raise InputError(
                f"sampler {name} is built in, and {_origin(plug_ins[name])} registers another; uninstall it"
            )
        return built_in_samplers()[name]
    check_known(name, sampler_names(), "sampler")
    return _loaded(plug_ins[name])


def paper_settings(name: str, given: Settings) -> dict[str, Any]:
    """The settings of a named sampler on top of the paper's, where plain defaults differ from them.

    >>> paper_settings("bns", {"candidates": 10})
    {'cdf': 'exact', 'candidates': 10}
    >>> paper_settings("dns", {})
    {}
    """
    has_cdf = sampler_named(name).kind in (BNS, WarmStart)
    return {**(PAPER_SAMPLERS if has_cdf else {}), **given}


def sampler_names() -> list[str]:
    """Every name of a built-in sampler and of a plug-in; no plug-in is loaded for it."""
    return sorted({*built_in_samplers(), *_entry_points()})


@cache
def built_in_samplers() -> Mapping[str, NamedSampler]:
    """Name → built-in sampler."""
    found = registry.samplers().items()
    return MappingProxyType({name: NamedSampler(kind, *preset) for name, (kind, preset) in found})


@cache
def priors() -> Mapping[str, type[Prior]]:
    """Name → built-in prior."""
    return MappingProxyType(registry.priors())


@cache
def likelihoods() -> Mapping[str, type[Likelihood]]:
    """Name → built-in likelihood."""
    return MappingProxyType(registry.likelihoods())


def name_of(kind: type[Any], names: Mapping[str, type[Any]]) -> str | None:
    """The name under which a class is registered; None where it is not."""
    return next((name for name, other in names.items() if other is kind), None)


def main_name(kind: type[NegativeSampler]) -> str | None:
    """The first name that a built-in sampler declares: ``bns`` for :class:`BNS`."""
    own = vars(kind).get("NAMES", {})
    return next(iter(own), None) if kind in {named.kind for named in built_in_samplers().values()} else None


def _entry_points() -> Mapping[str, metadata.EntryPoint]:
    return _entry_points_on(tuple(sys.path))


@cache
def _entry_points_on(path: tuple[str, ...]) -> Mapping[str, metadata.EntryPoint]:
    """Searched once for each search path: a scan reads the metadata of every installed distribution."""
    return {point.name: point for point in metadata.entry_points(group=GROUP)}


def _loaded(point: metadata.EntryPoint) -> NamedSampler:
    where = f"sampler {point.name} of {_origin(point)}"
    try:
        kind = point.load()
    except BayesnegError:
        raise
    except Exception as error:  # whatever the plug-in does when it is imported
        raise InputError(f"{where} cannot be loaded: {type(error).__name__}: {error}") from error
    if not (isinstance(kind, type) and issubclass(kind, NegativeSampler)):
        raise InputError(f"{where} must be a subclass of bayesneg.NegativeSampler, got {point.value}")
    return NamedSampler(kind, summary(kind.__doc__))


def _origin(point: metadata.EntryPoint) -> str:
    return f"the plug-in {point.dist.name if point.dist else point.value}"
