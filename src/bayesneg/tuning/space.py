"""The search space: one table by the name of a setting, and its part that applies to a sampler on given data.

The settings of a sampler that are in the table and were not given are searched. A new setting is one line of the table;
the values of a setting with ``EVERY`` are read off its class, so that new priors and likelihoods are searched too.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, NamedTuple

from bayesneg.config.build import default_of
from bayesneg.config.custom import is_custom
from bayesneg.config.settings import settings_of
from bayesneg.config.specs import SamplerSpec
from bayesneg.data.splits import Split
from bayesneg.errors import InputError
from bayesneg.interfaces import NegativeSampler
from bayesneg.models.baseline import Baseline
from bayesneg.models.baselines import ALS, EASE, ItemKNN
from bayesneg.runs.record import describe, jsonable


class Between(NamedTuple):
    """Numbers from ``low`` to ``high``, on a logarithmic scale."""

    low: float
    high: float


class WholeBetween(NamedTuple):
    """Whole numbers from ``low`` to ``high``, on a logarithmic scale."""

    low: int
    high: int


class Among(NamedTuple):
    """One of these."""

    values: tuple[str | int | float, ...]


EVERY: Final = "every value that the class of the setting names"
Range = Between | WholeBetween | Among
SPACE: Final[Mapping[str, Range | str]] = {
    "candidates": WholeBetween(2, 40),  # m
    "weight": Between(0.5, 100.0),  # λ
    "prior": EVERY,
    "likelihood": EVERY,
    "power": Between(0.1, 1.0),
    "scale": Between(10.0, 1000.0),
    "alpha": Between(0.5, 50.0),
    "temperature": Between(1.0, 100.0),
    "sir:temperature": Between(0.05, 5.0),  # of one sampler, in place of the line above
    "shift": Between(0.1, 10.0),
    "level": Between(0.05, 5.0),
    "exponent": Among((-1.5, -2.0, -3.0)),
}
BASELINES: Final[Mapping[type[Baseline], tuple[str, tuple[float, ...]]]] = {
    EASE: ("l2", (100.0, 200.0, 400.0, 800.0, 1600.0)),
    ItemKNN: ("neighbours", (50, 100, 200, 400)),
    ALS: ("regularization", (10.0, 20.0, 50.0, 100.0, 200.0)),
}


def variants(baseline: Baseline) -> tuple[str, list[Baseline]]:
    """The main setting of a baseline, and the baseline with each value; alone where it was given another value."""
    key, values = BASELINES.get(type(baseline), ("", ()))
    if not values or getattr(baseline, key) != settings_of(type(baseline))[key].default:
        return key, [baseline]
    others = (value for value in values if value != getattr(baseline, key))
    return key, [baseline, *(replace(baseline, **{key: value}) for value in others)]  # type: ignore[type-var]


@dataclass(frozen=True)
class Family:
    """A sampler as the user gave it, and the ranges of the settings that were not given."""

    spec: SamplerSpec
    ranges: Mapping[str, Range]
    left_out: Mapping[str, str]  # "prior=group" → why it is not tried
    content: str  # a digest of the sampler as it was given, with the content of the files that it names

    @property
    def name(self) -> str:
        return self.spec.label

    @property
    def usual(self) -> dict[str, Any]:
        """The searched settings at their defaults, where those lie within the range."""
        known = self.spec.known()
        defaults = {key: default_of(known[key]) for key in self.ranges}
        return {key: value for key, value in defaults.items() if _holds(self.ranges[key], value)}

    def at(self, settings: Mapping[str, Any]) -> SamplerSpec:
        """The sampler with a value for every searched setting."""
        return _with(self.spec, {key: _written(value) for key, value in settings.items()})


def family(spec: SamplerSpec, split: Split) -> Family:
    """What is searched for a sampler; a custom sampler is tried as it was given."""
    sampler = spec.build(split)
    if sampler.uses_test_labels:
        raise InputError(f"{spec.label} uses the labels it is evaluated on and cannot be tuned; drop it")
    content = _content(spec, sampler.resolved(split.train))
    if spec.is_custom:
        return Family(spec, {}, {}, content)
    ranges: dict[str, Range] = {}
    left_out: dict[str, str] = {}
    for key in SPACE.keys() & spec.known().keys() - spec.fixed:
        values = SPACE.get(f"{spec.name}:{key}", SPACE[key])
        found = Among(tuple(spec.choices(key))) if isinstance(values, str) else values
        if isinstance(found, Among):
            found = _buildable(spec, key, found, split, left_out)
        if not isinstance(found, Among) or len(found.values) > 1:
            ranges[key] = found
    return Family(spec, {key: ranges[key] for key in SPACE if key in ranges}, left_out, content)


def _content(spec: SamplerSpec, sampler: NegativeSampler) -> str:
    """A digest of the description of a sampler and of the custom files it names, whose code no description shows."""
    named = [spec.name] if is_custom(spec.name) else str(spec.settings.get("prior", "")).split("+")
    code = [Path(each.partition(":")[0]).read_bytes() for each in named if is_custom(each)]
    own = [describe(sampler), *(hashlib.sha256(each).hexdigest() for each in code)]
    return hashlib.sha256(json.dumps(jsonable(own), sort_keys=True).encode()).hexdigest()[:16]


def _buildable(spec: SamplerSpec, key: str, found: Among, split: Split, left_out: dict[str, str]) -> Among:
    """The values for which this data has what they need, without those that use labels."""
    kept = []
    for value in found.values:
        try:
            sampler = _with(spec, {key: value}).build(split)
        except InputError as error:
            left_out[f"{key}={value}"] = str(error)
            continue
        if sampler.uses_test_labels:
            left_out[f"{key}={value}"] = "it uses the labels it is evaluated on"
        else:
            kept.append(value)
    return Among(tuple(kept))


def _with(spec: SamplerSpec, settings: Mapping[str, Any]) -> SamplerSpec:
    """The sampler with some settings; the self-estimated prior depends on the scores and needs one likelihood."""
    if settings.get("prior") == "self" and "likelihood" in spec.known() and "likelihood" not in spec.fixed:
        settings = {**settings, "likelihood": "uninformative"}
    return spec.with_settings(settings)


def _holds(values: Range, value: Any) -> bool:
    if isinstance(values, Among):
        return value in values.values
    return isinstance(value, int | float) and values.low <= value <= values.high


def _written(value: Any) -> str:
    """Three figures are enough for a number that was searched."""
    return f"{value:.3g}" if isinstance(value, float) else str(value)
