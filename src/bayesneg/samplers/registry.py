"""The built-in samplers, priors and likelihoods by name, found from the classes themselves.

A class in a module of ``samplers/`` is registered by declaring its names: ``NAMES`` of a sampler, ``NAME`` of a prior
or a likelihood. :mod:`bayesneg.config` adds the samplers of other packages.

A *setting* of a registered class is a dataclass field that takes part in comparison; fields
with ``compare=False`` are state. The ``Args:`` section of the class docstring defines what each setting means.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pkgutil import walk_packages
from typing import Any, NamedTuple

from bayesneg.errors import InputError
from bayesneg.interfaces import NegativeSampler, Preset, Prior
from bayesneg.samplers.posterior.likelihoods import Likelihood


class RegisteredSampler(NamedTuple):
    """A sampler class under one of its names."""

    kind: type[NegativeSampler]
    preset: Preset


@cache
def samplers() -> dict[str, RegisteredSampler]:
    """Name → class and preset, in alphabetical order."""
    found = {
        name: RegisteredSampler(kind, preset)
        for kind in _declared(NegativeSampler, "NAMES")
        for name, preset in kind.NAMES.items()
    }
    return dict(sorted(found.items()))


@cache
def priors() -> dict[str, type[Prior]]:
    """Name → class, in alphabetical order."""
    return dict(sorted((kind.NAME, kind) for kind in _declared(Prior, "NAME")))


@cache
def likelihoods() -> dict[str, type[Likelihood]]:
    """Name → class, in alphabetical order."""
    return dict(sorted((kind.NAME, kind) for kind in _declared(Likelihood, "NAME")))


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


def _declared(base: type[Any], attribute: str) -> Iterator[type[Any]]:
    """The subclasses of ``base`` in the modules of ``samplers/`` that declare their names."""
    package = import_module("bayesneg.samplers")
    for module in walk_packages(package.__path__, f"{package.__name__}."):
        for kind in vars(import_module(module.name)).values():
            here = isinstance(kind, type) and issubclass(kind, base) and kind.__module__ == module.name
            if here and vars(kind).get(attribute):
                yield kind
