"""A weight λ is a number or a function of the epoch; a sampler may give way to another after some epochs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from bayesneg.checks import number, whole
from bayesneg.data.interactions import Interactions
from bayesneg.errors import InputError
from bayesneg.interfaces import Batch, NegativeSampler, RuleSampler, Scorer
from bayesneg.kernels.rules import Draws, Rule

Schedule = Callable[[int], float]


@dataclass(frozen=True)
class LinearDecay:
    """λ(epoch) = max(start − rate·epoch, floor); the defaults are the paper's BNS-1.

    >>> LinearDecay()(1), LinearDecay()(100)
    (9.9, 2.0)
    """

    start: float = 10.0
    rate: float = 0.1
    floor: float = 2.0

    def __call__(self, epoch: int) -> float:
        return max(self.start - self.rate * epoch, self.floor)


def weight_at(weight: float | Schedule, epoch: int) -> float:
    """The number in force at ``epoch``, checked."""
    value = weight(epoch) if callable(weight) else weight
    number("weight", value, least=0)
    return float(value)


@dataclass(frozen=True)
class WarmStart(RuleSampler):
    """``first`` for some epochs, ``then`` afterwards; with RNS and BNS this is the paper's BNS-2."""

    first: RuleSampler
    then: RuleSampler
    epochs: int = 10

    def __post_init__(self) -> None:
        whole("epochs", self.epochs, least=0)
        for name in ("first", "then"):
            if not isinstance(getattr(self, name), RuleSampler):
                raise InputError(
                    f"{name} must be a built-in sampler such as RNS() or BNS(), got {getattr(self, name)!r}"
                )

    def _at(self, epoch: int) -> RuleSampler:
        return self.first if epoch <= self.epochs else self.then

    def prepare(self, train: Interactions, *, rng: np.random.Generator) -> WarmStart:
        first, then = (sampler.prepare(train, rng=rng) for sampler in (self.first, self.then))
        assert isinstance(first, RuleSampler)
        assert isinstance(then, RuleSampler)
        return replace(self, first=first, then=then)

    def resolved(self, train: Interactions) -> WarmStart:
        first, then = (sampler.resolved(train) for sampler in (self.first, self.then))
        assert isinstance(first, RuleSampler)
        assert isinstance(then, RuleSampler)
        return replace(self, first=first, then=then)

    def rule(self, batch: Batch) -> Rule:
        return self._at(batch.epoch).rule(batch)

    def width(self, n_items: int) -> int:
        return max(self.first.width(n_items), self.then.width(n_items))

    def wanted(self, n_items: int) -> int:
        return max(sampler.wanted(n_items) for sampler in self._both())

    def draws(self, batch: Batch) -> Draws:
        drawn = self._at(batch.epoch).draws(batch)
        for sampler in (self.first, self.then):  # what one of them keeps out, it keeps out from the first epoch on
            drawn = sampler.kept_out(drawn, batch)
        return drawn

    def unbias(self, batch: Batch, items: np.ndarray) -> np.ndarray | None:
        return self._at(batch.epoch).unbias(batch, items)

    def end_epoch(self, epoch: int, scorer: Scorer) -> None:
        for sampler in self._both():
            sampler.end_epoch(epoch, scorer)

    def state_dict(self) -> dict[str, np.ndarray]:
        return {
            f"{number}.{key}": value
            for number, sampler in enumerate(self._both())
            for key, value in sampler.state_dict().items()
        }

    def load_state_dict(self, state: Mapping[str, np.ndarray]) -> None:
        for place, sampler in enumerate(self._both()):
            own = {key.split(".", 1)[1]: value for key, value in state.items() if key.startswith(f"{place}.")}
            sampler.load_state_dict(own)

    def _both(self) -> tuple[NegativeSampler, NegativeSampler]:
        return self.first, self.then

    @property
    def uses_test_labels(self) -> bool:
        return any(sampler.uses_test_labels for sampler in self._both())
