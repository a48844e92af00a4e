"""A sampler that is watched: after chosen epochs the model's scores are looked at, and nothing else changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from bayesneg.data.interactions import Interactions
from bayesneg.data.splits import Split
from bayesneg.evaluation.score_densities import score_densities
from bayesneg.interfaces import Batch, RuleSampler, Scorer
from bayesneg.kernels.reference.choices import Draws, Rule

DENSITIES = "densities"  # the key of an epoch's line that holds them


@dataclass(frozen=True, eq=False)
class Watched(RuleSampler):
    """``inner``, whose draws and choices it passes on; ``seen`` fills with the densities of scores."""

    inner: RuleSampler
    split: Split = field(repr=False)
    at: tuple[int, ...]  # epochs
    seen: dict[int, dict[str, Any]] = field(default_factory=dict, repr=False)

    def prepare(self, train: Interactions, *, rng: np.random.Generator) -> Watched:
        inner = self.inner.prepare(train, rng=rng)
        assert isinstance(inner, RuleSampler)
        return replace(self, inner=inner)

    def rule(self, batch: Batch) -> Rule:
        return self.inner.rule(batch)

    def draws(self, batch: Batch) -> Draws:
        return self.inner.draws(batch)

    def width(self, n_items: int) -> int:
        return self.inner.width(n_items)

    def wanted(self, n_items: int) -> int:
        return self.inner.wanted(n_items)

    def end_epoch(self, epoch: int, scorer: Scorer) -> None:
        self.inner.end_epoch(epoch, scorer)
        if epoch in self.at:
            self.seen[epoch] = score_densities(scorer, self.split)

    def state_dict(self) -> dict[str, np.ndarray]:
        return self.inner.state_dict()

    def load_state_dict(self, state: Mapping[str, np.ndarray]) -> None:
        self.inner.load_state_dict(state)

    @property
    def uses_test_labels(self) -> bool:
        return self.inner.uses_test_labels

    def added_to(self, epochs: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """The epochs' lines, with what was seen after each."""
        return [
            {**line, DENSITIES: self.seen[line["epoch"]]} if line["epoch"] in self.seen else dict(line)
            for line in epochs
        ]
