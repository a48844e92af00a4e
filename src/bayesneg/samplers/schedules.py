"""Schedules: a weight λ that depends on the epoch, and a sampler that replaces another after some epochs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from bayesneg.checks import known_settings, number, whole
from bayesneg.data.interactions import Interactions
from bayesneg.errors import InputError
from bayesneg.integrity.arrays import Specs, prefixed
from bayesneg.interfaces import Batch, NegativeSampler, Preset, RuleSampler, Scorer
from bayesneg.kernels.reference.choices.base import Draws, Rule
from bayesneg.kernels.reference.plans import DrawPlan

Schedule = Callable[[int], float]


@dataclass(frozen=True)
class LinearDecay:
    """Linear decay: λ(epoch) = max(start − rate·epoch, floor), with epochs from 1; the defaults are the paper's BNS-1.

    Args:
        start: Value before the first epoch.
        rate: Decrease per epoch.
        floor: Smallest value.

    Example:
        >>> LinearDecay()(1), LinearDecay()(100)
        (9.9, 2.0)

    Reference:
        B. Liu and B. Wang, "Bayesian Negative Sampling for Recommendation", ICDE 2023.
    """

    start: float = 10.0
    rate: float = 0.1
    floor: float = 2.0

    def __call__(self, epoch: int) -> float:
        return max(self.start - self.rate * epoch, self.floor)


def as_schedule(weight: float | str | Schedule) -> float | Schedule:
    """A number or function as it is; ``linear`` or ``linear/START/RATE/FLOOR`` as :class:`LinearDecay`.

    >>> as_schedule("linear/8/0.5/1")
    LinearDecay(start=8.0, rate=0.5, floor=1.0)
    """
    if not isinstance(weight, str):
        return weight
    kind, *numbers = weight.split("/")
    try:
        if kind == "linear" and len(numbers) in (0, 3):
            return LinearDecay(*(float(number) for number in numbers))
        return float(weight)
    except ValueError:
        raise InputError(f"weight must be a number, linear, or linear/START/RATE/FLOOR, got {weight!r}") from None


def weight_at(weight: float | str | Schedule, epoch: int) -> float:
    """The value at ``epoch``, checked."""
    value = weight(epoch) if callable(weight) else weight
    number("weight", value, least=0)
    return float(value)


@known_settings()
@dataclass(frozen=True)
class WarmStart(RuleSampler):
    """Warm start: one sampler for the first epochs, another afterwards; with RNS and BNS this is the paper's BNS-2.

    Args:
        first: Sampler of the warm-up epochs.
        then: Sampler of all later epochs.
        warmup: Number of warm-up epochs.

    Example:
        >>> from bayesneg.samplers import BNS, RNS
        >>> WarmStart(RNS(), BNS(), warmup=5).warmup
        5

    Reference:
        B. Liu and B. Wang, "Bayesian Negative Sampling for Recommendation", ICDE 2023.
    """

    NAMES: ClassVar = {"bns-2": Preset("some epochs of RNS, then BNS", {"first": "rns", "then": "bns"})}

    first: NegativeSampler | str
    then: NegativeSampler | str
    warmup: int = 10

    @classmethod
    def paper(cls, **changes: Any) -> Self:
        """The paper's BNS-2: ten epochs of RNS, then BNS with the paper's settings.

        Args:
            **changes: Settings that differ from the paper's.

        Returns:
            The sampler with the paper's settings and these changes.
        """
        from bayesneg.samplers.bns import BNS

        return cls(**{"first": "rns", "then": BNS.paper(), **changes})

    def __post_init__(self) -> None:
        from bayesneg.samplers.registry import as_sampler

        whole("warmup", self.warmup, least=0)
        for name in ("first", "then"):
            sampler = as_sampler(getattr(self, name))
            if not isinstance(sampler, RuleSampler):
                raise InputError(f"{name} must be a built-in sampler such as RNS() or BNS(), got {sampler!r}")
            if sampler.is_shared:
                raise InputError(f"{name} must draw negatives for each example; set shared=False, got {sampler!r}")
            object.__setattr__(self, name, sampler)

    def _both(self) -> tuple[RuleSampler, RuleSampler]:
        """The two samplers, which were converted at construction."""
        assert isinstance(self.first, RuleSampler)
        assert isinstance(self.then, RuleSampler)
        return self.first, self.then

    def _at(self, epoch: int) -> RuleSampler:
        return self._both()[epoch > self.warmup]

    def prepare(self, train: Interactions, *, rng: np.random.Generator) -> WarmStart:
        first, then = (sampler.prepare(train, rng=rng) for sampler in self._both())
        return replace(self, first=first, then=then)

    def resolved(self, train: Interactions) -> WarmStart:
        first, then = (sampler.resolved(train) for sampler in self._both())
        return replace(self, first=first, then=then)

    def rule(self, batch: Batch) -> Rule:
        return self._at(batch.epoch).rule(batch)

    def width(self, n_items: int) -> int:
        return max(sampler.width(n_items) for sampler in self._both())

    def wanted(self, n_items: int) -> int:
        return max(sampler.wanted(n_items) for sampler in self._both())

    def plan(self, batch: Batch) -> DrawPlan | None:
        plans = [sampler.plan(batch) for sampler in self._both()]
        return None if None in plans else plans[batch.epoch > self.warmup]

    def draws(self, batch: Batch) -> Draws:
        drawn = self._at(batch.epoch).draws(batch)
        for sampler in self._both():  # pairs held out by either are held out from the first epoch on
            drawn = sampler.without_held_out(drawn, batch)
        return drawn

    def log_q(self, batch: Batch) -> np.ndarray | None:
        return self._at(batch.epoch).log_q(batch)

    def unbias(self, batch: Batch, items: np.ndarray) -> np.ndarray | None:
        return self._at(batch.epoch).unbias(batch, items)

    def prior_probability(self, batch: Batch, items: np.ndarray) -> np.ndarray | None:
        return self._at(batch.epoch).prior_probability(batch, items)

    def end_epoch(self, epoch: int, scorer: Scorer) -> None:
        for sampler in self._both():
            sampler.end_epoch(epoch, scorer)

    def state_dict(self) -> dict[str, np.ndarray]:
        states = enumerate(sampler.state_dict() for sampler in self._both())
        return {f"{place}.{key}": value for place, state in states for key, value in state.items()}

    @property
    def divided_state(self) -> dict[str, str]:
        parts = enumerate(sampler.divided_state for sampler in self._both())
        return {f"{place}.{key}": kind for place, state in parts for key, kind in state.items()}

    def state_specs(self, train: Interactions) -> Specs:
        specs = (prefixed(each.state_specs(train), f"{place}.") for place, each in enumerate(self._both()))
        return {name: spec for each in specs for name, spec in each.items()}

    def load_state_dict(self, state: Mapping[str, np.ndarray]) -> None:
        for place, sampler in enumerate(self._both()):
            prefix = f"{place}."
            sampler.load_state_dict({key.removeprefix(prefix): state[key] for key in state if key.startswith(prefix)})

    @property
    def gives_weights(self) -> bool:
        return any(sampler.gives_weights for sampler in self._both())

    @property
    def pairs_at_once(self) -> int | None:
        return max(sampler.pairs_at_once or 0 for sampler in self._both()) or None

    @property
    def gives_several(self) -> bool:
        return all(sampler.gives_several for sampler in self._both())

    @property
    def unused_settings(self) -> frozenset[str]:
        return self._both()[1].unused_settings  # the settings of ``first`` are part of its name

    @property
    def makes_vectors(self) -> bool:
        return any(sampler.makes_vectors for sampler in self._both())

    @property
    def holds_out(self) -> bool:
        return any(sampler.holds_out for sampler in self._both())

    @property
    def uses_test_labels(self) -> bool:
        return any(sampler.uses_test_labels for sampler in self._both())
