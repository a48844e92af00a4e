"""What a search may try: one table by the name of a setting, and what is left of it for a sampler on given data.

A sampler's settings that stand in the table and were not given with it are searched. A new setting joins by one line;
new values of a setting whose line is ``EVERY`` join by themselves, as they are read off its options.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from types import UnionType
from typing import Any, Final, Literal, NamedTuple, Union, get_args, get_origin

from bayesneg.config.build_priors import PRIORS
from bayesneg.config.custom import is_own
from bayesneg.config.names import SAMPLERS, SamplerSpec
from bayesneg.data.splits import Split
from bayesneg.errors import InputError
from bayesneg.interfaces import NegativeSampler
from bayesneg.models.baseline import Baseline
from bayesneg.models.baselines import ALS, EASE, ItemKNN
from bayesneg.runs.record import as_before, describe, jsonable


class Between(NamedTuple):
    """Numbers from ``low`` to ``high``; logarithmic, so that every doubling is as likely as another."""

    low: float
    high: float


class WholeBetween(NamedTuple):
    """The same for whole numbers."""

    low: int
    high: int


class Among(NamedTuple):
    """One of these."""

    values: tuple[str | int | float, ...]


EVERY: Final = "every value that the setting's options name"
Range = Between | WholeBetween | Among
SPACE: Final[Mapping[str, Range | str]] = {
    "candidates": WholeBetween(2, 40),  # m
    "weight": Between(0.5, 100.0),  # λ
    "prior": Among(tuple(PRIORS)),
    "likelihood": EVERY,
    "power": Between(0.1, 1.0),
    "scale": Between(10.0, 1000.0),
    "alpha": Between(0.5, 50.0),
    "temperature": Between(1.0, 100.0),
}
BASELINES: Final[Mapping[type[Baseline], tuple[str, tuple[float, ...]]]] = {
    EASE: ("l2", (100.0, 200.0, 400.0, 800.0, 1600.0)),
    ItemKNN: ("neighbours", (50, 100, 200, 400)),
    ALS: ("regularization", (10.0, 20.0, 50.0, 100.0, 200.0)),
}


def variants(baseline: Baseline) -> tuple[str, list[Baseline]]:
    """Its main setting, and the baseline, then it with other values; alone where it has none or another than usual."""
    key, values = BASELINES.get(type(baseline), ("", ()))
    usual = {each.name: each.default for each in fields(baseline)}  # type: ignore[arg-type]
    if not values or getattr(baseline, key) != usual[key]:
        return key, [baseline]
    others = (value for value in values if value != usual[key])
    return key, [baseline, *(replace(baseline, **{key: value}) for value in others)]  # type: ignore[type-var]


@dataclass(frozen=True)
class Family:
    """A sampler as the user named it, and the ranges of what is left open."""

    spec: SamplerSpec
    ranges: Mapping[str, Range]
    left_out: Mapping[str, str]  # "prior=group" → why it is not tried
    content: str  # a digest of the sampler as it was given, of what stands in its files as well

    @property
    def name(self) -> str:
        return self.spec.label

    @property
    def usual(self) -> dict[str, Any]:
        """The searched settings at the options' own defaults, where those lie within the range."""
        fields = SAMPLERS[self.spec.name].options.model_fields if self.ranges else {}
        defaults = {key: fields[key].default for key in self.ranges}
        return {key: value for key, value in defaults.items() if _holds(self.ranges[key], value)}

    def at(self, settings: Mapping[str, Any]) -> SamplerSpec:
        """The sampler with a value for everything that is searched."""
        return _with(self.spec, {key: _written(value) for key, value in settings.items()})


def family(spec: SamplerSpec, split: Split) -> Family:
    """What is searched for a sampler; one of the user's own is tried as it was given."""
    sampler = spec.build(split)
    if sampler.uses_test_labels:
        raise InputError(f"{spec.label} looks at the labels it is judged by and cannot be tuned; drop it")
    content = _content(spec, sampler.resolved(split.train))
    if is_own(spec.name):
        return Family(spec, {}, {}, content)
    ranges: dict[str, Range] = {}
    left_out: dict[str, str] = {}
    for key in spec.known:
        if key in spec.fixed or key not in SPACE:
            continue
        found = _range(spec, key)
        if isinstance(found, Among):
            found = _buildable(spec, key, found, split, left_out)
        if not isinstance(found, Among) or len(found.values) > 1:
            ranges[key] = found
    return Family(spec, ranges, left_out, content)


def _content(spec: SamplerSpec, sampler: NegativeSampler) -> str:
    """A digest of its description, and of files of one's own, since a description does not see into code."""
    named = [spec.name] if is_own(spec.name) else str(spec.settings.get("prior", "")).split("+")
    code = [Path(each.partition(":")[0]).read_bytes() for each in named if is_own(each)]
    own = [as_before(describe(sampler)), *(hashlib.sha256(each).hexdigest() for each in code)]
    return hashlib.sha256(json.dumps(jsonable(own), sort_keys=True).encode()).hexdigest()[:16]


def _range(spec: SamplerSpec, key: str) -> Range:
    values = SPACE[key]
    if isinstance(values, str):
        return Among(_literals(SAMPLERS[spec.name].options.model_fields[key].annotation))
    return values


def _buildable(spec: SamplerSpec, key: str, found: Among, split: Split, left_out: dict[str, str]) -> Among:
    """Those values that this data has what they need for, without those that see labels."""
    kept = []
    for value in found.values:
        try:
            sampler = _with(spec, {key: value}).build(split)
        except InputError as error:
            left_out[f"{key}={value}"] = str(error)
            continue
        if sampler.uses_test_labels:
            left_out[f"{key}={value}"] = "it looks at the labels it is judged by"
        else:
            kept.append(value)
    return Among(tuple(kept))


def _with(spec: SamplerSpec, settings: Mapping[str, Any]) -> SamplerSpec:
    """The sampler with some settings; the self-estimated prior has the scores in it and goes with one likelihood."""
    of_self = (
        {"likelihood": "uninformative"} if settings.get("prior") == "self" and "likelihood" not in spec.fixed else {}
    )
    return spec.with_settings({**settings, **{key: value for key, value in of_self.items() if key in spec.known}})


def _literals(annotation: Any) -> tuple[Any, ...]:
    """The values of every Literal in a type."""
    if get_origin(annotation) is Literal:
        return get_args(annotation)
    if get_origin(annotation) in (Union, UnionType):
        return tuple(value for part in get_args(annotation) for value in _literals(part))
    return ()


def _holds(values: Range, value: Any) -> bool:
    if isinstance(values, Among):
        return value in values.values
    return isinstance(value, int | float) and values.low <= value <= values.high


def _written(value: Any) -> str:
    """As a person would write it: three figures are enough for a number that was searched."""
    return f"{value:.3g}" if isinstance(value, float) else str(value)
