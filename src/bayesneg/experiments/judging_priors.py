"""Priors by name, judged on training data hidden from them."""

from __future__ import annotations

from bayesneg.data.splits import Split
from bayesneg.experiments.building_priors import built_prior
from bayesneg.experiments.spec import parse_priors
from bayesneg.sampling.priors.reliability import Calibration, calibration_of


def judged_priors(text: str, split: Split, *, share: float, seed: int) -> dict[str, Calibration]:
    """Label → calibration, for ``rate,learned:hidden=0.25``; nothing but ``split.train`` is used to judge."""
    return {
        label: calibration_of(built_prior(settings, split), split.train, share=share, seed=seed)
        for label, settings in parse_priors(text).items()
    }
