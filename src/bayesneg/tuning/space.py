"""The search space: tables by the name of a setting, and their part that applies to a sampler and a loss.

The settings of a sampler and of a loss that are in the tables and were not given are searched. A new setting is one
line of a table; the values of a setting with ``EVERY`` are read off its class, so that new priors and likelihoods are
searched too.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

from bayesneg.config.build import default_of
from bayesneg.config.loss_specs import LossSpec
from bayesneg.config.settings import settings_of
from bayesneg.config.specs import SamplerSpec
from bayesneg.data.splits import Split
from bayesneg.errors import InputError
from bayesneg.experiments.contenders import joint_label
from bayesneg.interfaces import BPR_LOSS, Model, NegativeSampler, RuleSampler
from bayesneg.models.baseline import Baseline
from bayesneg.models.baselines import ALS, EASE, GFCF, ItemKNN, RP3Beta
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
    "sir temperature": Between(0.05, 5.0),  # of one sampler, in place of the line above
    "shift": Between(0.1, 10.0),
    "level": Between(0.05, 5.0),
    "exponent": Among((-1.5, -2.0, -3.0)),
    "balance": Among((0.1, 0.25, 0.5, 0.75, 1.0)),
    "weighting": EVERY,  # of a shared pool, or with a loss other than BPR
    "negatives": WholeBetween(1, 64),  # likewise, of samplers that draw no candidates
}
POOL: Final = WholeBetween(256, 4096)  # negatives or candidates that a batch shares, in a large catalogue
OF_SEVERAL: Final = ("weighting", "negatives")  # settings for several negatives
DECIDES: Final = "weighting"  # a searched setting beside which others may have no effect
LOSS_SPACE: Final[Mapping[str, Range | str]] = {
    "temperature": Between(0.04, 1.0),  # τ
    "negative_weight": Between(0.8, 1.6),  # b
    "ccl negative_weight": Between(1.0, 1000.0),
    "margin": Between(0.1, 0.95),
    "surrogate": EVERY,
    "weight_temperature": Between(0.2, 5.0),
    "positive_rate": Between(1e-4, 0.1),
    "hardness": Between(0.1, 2.0),
}
OF_LOSS: Final = "loss "  # begins the keys of a loss's settings in Family.ranges
BASELINES: Final[Mapping[type[Baseline], tuple[str, tuple[float, ...]]]] = {
    EASE: ("l2", (100.0, 200.0, 400.0, 800.0, 1600.0)),
    ItemKNN: ("neighbours", (50, 100, 200, 400)),
    RP3Beta: ("beta", (0.2, 0.4, 0.6, 0.8)),
    GFCF: ("alpha", (0.1, 0.3, 1.0, 3.0)),
    ALS: ("regularization", (10.0, 20.0, 50.0, 100.0, 200.0)),
}


def variants(baseline: Baseline) -> tuple[str, list[Baseline]]:
    """The main setting of a baseline, and the baseline with each value; alone where it was given another value."""
    key, values = BASELINES.get(type(baseline), ("", ()))
    if not values or getattr(baseline, key) != settings_of(type(baseline))[key].default:
        return key, [baseline]
    others = (value for value in values if value != getattr(baseline, key))
    return key, [baseline, *(replace(baseline, **{key: value}) for value in others)]  # type: ignore[type-var]


class Combination(NamedTuple):
    """A model with a sampler and a loss."""

    model: Model
    sampler: SamplerSpec
    loss: LossSpec
    names_loss: bool = False  # whether the label says which loss it is
    names_model: bool = False

    @property
    def label(self) -> str:
        model = _class(self.model) if self.names_model else ""
        return joint_label(self.sampler.label, model=model, loss=self.loss.label if self.names_loss else "")

    @property
    def described(self) -> str:
        """As a sentence names it: ``the loss BPR with the sampler BNS and the model MF``."""
        return f"the loss {self.loss.label} with the sampler {self.sampler.label} and the model {_class(self.model)}"


@dataclass(frozen=True)
class Family:
    """A sampler and a loss as the user gave them, and the ranges of the settings that were not given."""

    given: Combination
    ranges: Mapping[str, Range]
    left_out: Mapping[str, str]  # "prior=group" → why it is not tried
    content: str  # a digest of both as they were given, with the content of the files that they name
    first: Mapping[str, Any] = field(default_factory=dict)  # what the first trial has in place of the defaults

    @property
    def name(self) -> str:
        return self.given.label

    @property
    def usual(self) -> dict[str, Any]:
        """The searched settings at their defaults, where those lie within the range."""
        known = self.given.sampler.known() | {f"{OF_LOSS}{key}": each for key, each in self.given.loss.known().items()}
        defaults = {key: self.first.get(key, default_of(known[key])) for key in self.ranges}
        return {key: value for key, value in defaults.items() if _holds(self.ranges[key], value)}

    def at(self, settings: Mapping[str, Any]) -> Combination:
        """The sampler and the loss with a value for every searched setting."""
        texts = {key: _written(value) for key, value in settings.items()}
        of_loss = {key.removeprefix(OF_LOSS): text for key, text in texts.items() if key.startswith(OF_LOSS)}
        of_sampler = {key: text for key, text in texts.items() if not key.startswith(OF_LOSS)}
        sampler, loss = _with(self.given.sampler, of_sampler), self.given.loss.with_settings(of_loss)
        return self.given._replace(sampler=sampler, loss=loss)

    def suggested(self, suggest: Callable[[str], Any], split: Split) -> Combination:
        """The sampler and the loss with a value for every searched setting that has an effect.

        Args:
            suggest: The value of a setting by its key; called for ``weighting`` first.
            split: The data that the sampler is built for.
        """
        first = {key: suggest(key) for key in self.ranges if key == DECIDES}
        unused = self.at(first).sampler.build(split).unused_settings if first else frozenset()
        others = {key: suggest(key) for key in self.ranges if key not in first and key not in unused}
        return self.at({**first, **others})

    def with_most_negatives(self) -> Combination:
        """The sampler with as many negatives as the search may give it, for a check before it."""
        ends = {key: self.ranges[key] for key in OF_SEVERAL if key in self.ranges}
        return self.at({key: each.values[-1] if isinstance(each, Among) else each.high for key, each in ends.items()})


class Searched(NamedTuple):
    """A combination with the ranges of what is searched, where they are not those of the tables."""

    given: Combination
    ranges: Mapping[str, Range] | None = None  # keys of a loss's settings begin with "loss "; None: by the tables
    first: Mapping[str, Any] = {}  # what the first trial has


def family(searched: Searched, split: Split) -> Family:
    """What is searched for a sampler and a loss; custom ones are tried as they were given."""
    given, chosen, first = searched
    spec = given.sampler
    sampler = spec.build(split)
    if sampler.uses_test_labels:
        raise InputError(f"{spec.label} uses the labels it is evaluated on and cannot be tuned; drop it")
    left_out: dict[str, str] = {}
    content = _content(given, sampler.resolved(split.train))
    if chosen is not None:
        free = {key: values for key, values in chosen.items() if key not in spec.settings}
        return Family(given, free, left_out, content, first)
    ranges = {} if spec.is_custom else _sampler_ranges(given, sampler, split, left_out)
    ranges |= {f"{OF_LOSS}{key}": found for key, found in _loss_ranges(given.loss).items()}
    return Family(given, ranges, left_out, content)


def _sampler_ranges(
    given: Combination, sampler: NegativeSampler, split: Split, left_out: dict[str, str]
) -> dict[str, Range]:
    spec = given.sampler
    is_shared = isinstance(sampler, RuleSampler) and sampler.is_shared
    size = "candidates" if "candidates" in spec.known() else "negatives"
    loss = given.loss.build()
    single = not is_shared and loss == BPR_LOSS
    ranges: dict[str, Range] = {}
    for key in [key for key in SPACE if key in spec.known() and key not in spec.fixed]:
        if key in OF_SEVERAL and (single or (key == "negatives" and size != key)):
            continue
        values = SPACE.get(f"{spec.name} {key}", SPACE[key])
        found = Among(tuple(spec.choices(key))) if isinstance(values, str) else values
        if key == size and is_shared:
            n_items = split.train.n_items
            found = WholeBetween(min(POOL.low, max(1 + loss.needs_several, n_items // 4)), min(POOL.high, n_items))
        if key == size == "negatives" and not is_shared and loss.needs_several:
            found = WholeBetween(2, 64)
        if key == "weighting" and loss.needs_several and not sampler.gives_several:
            found = Among(tuple(value for value in spec.choices(key) if value != "none"))
            left_out["weighting=none"] = f"{type(loss).__name__} needs several negatives"
        if isinstance(found, Among):
            found = _buildable(spec, key, found, split, left_out)
        if len(found.values) > 1 if isinstance(found, Among) else found.low < found.high:
            ranges[key] = found
    # while a setting is searched that decides which others have an effect, a trial leaves out those that have none
    unused = frozenset() if DECIDES in ranges else sampler.unused_settings
    return {key: found for key, found in ranges.items() if key not in unused}


def _loss_ranges(spec: LossSpec) -> dict[str, Range]:
    if spec.is_custom:
        return {}
    ranges: dict[str, Range] = {}
    for key, setting in spec.known().items():
        values = LOSS_SPACE.get(f"{spec.kind.NAME} {key}", LOSS_SPACE.get(key))
        if values is not None and key not in spec.fixed:
            ranges[key] = Among(setting.choices) if isinstance(values, str) else values
    return ranges


def _class(model: Model) -> str:
    return type(model).__name__


def _content(given: Combination, sampler: NegativeSampler) -> str:
    """A digest of the descriptions of both, with those of custom code."""
    own = [describe(sampler), describe(given.loss.build())]
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
