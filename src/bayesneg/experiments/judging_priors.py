"""Priors by name, judged on training data hidden from them."""

from __future__ import annotations

from bayesneg.data.splits import Split
from bayesneg.experiments.building_priors import built_prior
from bayesneg.experiments.spec import parse_priors
from bayesneg.sampling.priors.reliability import Calibration, calibration_of, check_judgeable


def judged_priors(text: str, split: Split, *, share: float, seed: int) -> dict[str, Calibration]:
    """Label → calibration, for ``rate,learned:hidden=0.25``; nothing but ``split.train`` is used to judge."""
    priors = {label: built_prior(settings, split) for label, settings in parse_priors(text).items()}
    for prior in priors.values():
        check_judgeable(prior)  # all of them, before the first is learned
    return {label: calibration_of(prior, split.train, share=share, seed=seed) for label, prior in priors.items()}
