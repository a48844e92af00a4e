"""The calibration of priors by name, on training data hidden from them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from bayesneg.config.build import build_prior
from bayesneg.config.specs import parse_priors
from bayesneg.data.splits import Split
from bayesneg.interfaces import Measured, NegativeSampler, Prior, Sampled, Scorer
from bayesneg.models.mf import MF
from bayesneg.samplers.bns import BNS
from bayesneg.samplers.priors.reliability import Calibration, calibration, check_calibratable
from bayesneg.training import fit

EPOCHS: Final = 30  # of the model for a prior that follows training


def calibrated_priors(text: str, split: Split, *, share: float, seed: int) -> dict[str, Calibration]:
    """Label → calibration, for ``rate,learned:hidden=0.25``; no label outside ``split.train`` is used.

    Args:
        text: Priors as on the command line.
        split: Data whose training part is used.
        share: Share of the training interactions that is hidden from the priors.
        seed: Seed of the hidden share and of the model that a prior follows.

    Returns:
        The calibration of each prior, by its label.
    """
    priors = {label: build_prior(settings, split) for label, settings in parse_priors(text).items()}
    for prior in priors.values():
        check_calibratable(prior, with_model=True)  # all of them, before the first is fitted
    learn = partial(_fitted, seed=seed)
    return {
        label: calibration(prior, split.train, share=share, seed=seed, learn=learn) for label, prior in priors.items()
    }


class _SamplerObserver:
    """Keeps the sampler of a fit, for the prior that it has when training ends."""

    sampler: BNS

    def see(self, sampled: Sampled | Measured) -> None:
        return

    def end_epoch(self, epoch: int, sampler: NegativeSampler, scorer: Scorer) -> Mapping[str, Any]:
        assert isinstance(sampler, BNS)
        self.sampler = sampler
        return {}


def _fitted(prior: Prior, parts: Split, *, seed: int) -> Prior:
    """The fitted prior; one that follows training is fitted together with MF."""
    if not prior.follows_training:
        return prior.fit(parts.train)
    sampler = BNS.paper(prior=prior, likelihood="uninformative" if prior.uses_scores else "paper")
    observer = _SamplerObserver()
    fit(MF.paper(), parts, sampler, epochs=EPOCHS, seed=seed, evaluate_every=EPOCHS, progress=False, observer=observer)
    trained = observer.sampler.prior
    assert isinstance(trained, Prior)
    return trained
