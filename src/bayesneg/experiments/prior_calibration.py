"""Priors by name, judged on training data hidden from them."""

from __future__ import annotations

from functools import partial
from typing import Final

from bayesneg.config.build_priors import built_prior
from bayesneg.config.names import parse_priors
from bayesneg.data.interactions import Interactions
from bayesneg.data.splits import Split
from bayesneg.interfaces import Prior
from bayesneg.models.mf import MF
from bayesneg.samplers.bns import BNS
from bayesneg.samplers.likelihoods import LikelihoodName
from bayesneg.samplers.priors import as_prior
from bayesneg.samplers.priors.basic import follows_training
from bayesneg.samplers.priors.calibration import Calibration, calibration_of, check_judgeable
from bayesneg.seeding import stream

EPOCHS: Final = 30  # that a model trains for a prior which learns from it


def judged_priors(text: str, split: Split, *, share: float, seed: int) -> dict[str, Calibration]:
    """Label → calibration, for ``rate,learned:hidden=0.25``; nothing but ``split.train`` is used to judge."""
    priors = {label: built_prior(settings, split) for label, settings in parse_priors(text).items()}
    for prior in priors.values():
        check_judgeable(prior, with_model=True)  # all of them, before the first is learned
    learn = partial(_learned, seed=seed)
    return {
        label: calibration_of(prior, split.train, share=share, seed=seed, learn=learn)
        for label, prior in priors.items()
    }


def _learned(prior: Prior, seen: Interactions, *, seed: int) -> Prior:
    """Fitted, and where it learns from a model, after some epochs of MF that is trained with it."""
    if not follows_training(prior):
        return prior.fit(seen)
    learner = MF().start(seen, rng=stream(seed, "init"))
    likelihood: LikelihoodName = "uninformative" if prior.weighs_scores else "paper"
    sampler = BNS(prior=prior, likelihood=likelihood).prepare(seen, rng=stream(seed, "sampler"))
    order = stream(seed, "order").permutation(len(seen))
    for epoch in range(1, EPOCHS + 1):
        for _ in learner.train_epoch(sampler, epoch=epoch, order=order, rng=stream(seed, "sampler", epoch)):
            pass
        sampler.end_epoch(epoch, learner)
    return as_prior(sampler.prior)
