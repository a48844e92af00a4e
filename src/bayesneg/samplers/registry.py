"""Samplers, priors and likelihoods by their command-line names, found from the classes themselves.

A class in a module of ``samplers/`` is registered by declaring its names: ``NAMES`` of a sampler, ``NAME`` of a prior
or a likelihood. Another package registers a sampler by an entry point::

    [project.entry-points."bayesneg.samplers"]
    my-sampler = "my_package.samplers:MySampler"

The name of the entry point is the command-line name, unless the class declares ``NAMES``.

A *setting* of a registered class is a dataclass field that takes part in comparison (:func:`setting_fields`); fields
with ``compare=False`` are state. The ``Args:`` section of the class docstring defines what each setting means.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import Field, fields
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pkgutil import walk_packages
from typing import Any, NamedTuple

from bayesneg.errors import InputError
from bayesneg.interfaces import NegativeSampler, Preset, Prior
from bayesneg.samplers.likelihoods import Likelihood

GROUP = "bayesneg.samplers"


class Registered(NamedTuple):
    """A sampler class under one of its names."""

    kind: type[NegativeSampler]
    preset: Preset


@cache
def samplers() -> dict[str, Registered]:
    """Name → class and preset, built-in samplers and plug-ins."""
    found = {
        name: Registered(kind, preset)
        for kind in _declared(NegativeSampler, "NAMES")
        for name, preset in kind.NAMES.items()
    }
    for entry in entry_points(group=GROUP):
        for name, plugin in _plugged_in(entry).items():
            if name in found:
                raise InputError(
                    f"the plug-in {entry.value} registers the sampler {name!r}, which {found[name].kind.__name__} "
                    "already has; rename its entry point or its NAMES"
                )
            found[name] = plugin
    return dict(sorted(found.items()))


@cache
def priors() -> dict[str, type[Prior]]:
    """Name → class of the built-in priors."""
    return {kind.NAME: kind for kind in _declared(Prior, "NAME")}


@cache
def likelihoods() -> dict[str, type[Likelihood]]:
    """Name → class of the built-in likelihoods."""
    return {kind.NAME: kind for kind in _declared(Likelihood, "NAME")}


def as_sampler(sampler: NegativeSampler | str) -> NegativeSampler:
    """A sampler as it is, a name as the sampler with the settings of that name.

    >>> as_sampler("aobpr-factor")
    AOBPR(scale=200.0, fraction=None, rank='factor')
    """
    if isinstance(sampler, NegativeSampler):
        return sampler
    if isinstance(sampler, str) and sampler in samplers():
        kind, preset = samplers()[sampler]
        return kind(**preset.settings)
    raise InputError(f"sampler must be one of {', '.join(samplers())}, or an object such as bn.BNS(), got {sampler!r}")


def setting_fields(kind: type) -> list[Field[Any]]:
    """The fields of a dataclass that are settings; state is left out."""
    return [item for item in fields(kind) if item.init and item.compare]


def _plugged_in(entry: EntryPoint) -> dict[str, Registered]:
    try:
        kind = entry.load()
    except Exception as error:
        raise InputError(f"the plug-in {entry.value} could not be loaded: {type(error).__name__}: {error}") from error
    if not (inspect.isclass(kind) and issubclass(kind, NegativeSampler)):
        raise InputError(f"the plug-in {entry.value} must be a subclass of bayesneg.NegativeSampler, got {kind!r}")
    summary = (inspect.getdoc(kind) or entry.value).partition("\n")[0].rstrip(".")
    names = kind.NAMES or {entry.name: Preset(summary)}
    return {name: Registered(kind, preset) for name, preset in names.items()}


def _declared(base: type[Any], attribute: str) -> Iterator[type[Any]]:
    """The subclasses of ``base`` in the modules of ``samplers/`` that declare their names."""
    package = import_module("bayesneg.samplers")
    for module in walk_packages(package.__path__, f"{package.__name__}."):
        for kind in vars(import_module(module.name)).values():
            here = inspect.isclass(kind) and issubclass(kind, base) and kind.__module__ == module.name
            if here and vars(kind).get(attribute):
                yield kind
