"""The contenders of the study: a loss and a sampler each, with what their settings change."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import bayesneg as bn
from bayesneg.interfaces import Loss, NegativeSampler
from bayesneg.samplers.posterior.sampler import Weighting

Settings = Mapping[str, Any]
SHARED: Final = {"dim": 64, "batch_size": 2048, "similarity": "cosine", "regularization": 0.0}
ONE_NEGATIVE: Final = {**SHARED, "similarity": "inner", "penalty": "first_layer"}


class Given(NamedTuple):
    """What a sampler is made from."""

    split: bn.Split
    prior: bn.Prior
    pool: int


Make = Callable[[Settings, Given], NegativeSampler]


class Contender(NamedTuple):
    """A loss with a sampler."""

    loss: Callable[..., Loss]
    sampler: Make
    model: Settings = SHARED
    is_oracle: bool = False  # an upper bound: it knows the labels that it is judged by


def uniform(settings: Settings, given: Given) -> NegativeSampler:
    return bn.RNS(negatives=given.pool, shared=True, **settings)


def weighed(weighting: Weighting, **fixed: Any) -> Make:
    """A uniform pool with weights."""

    def make(settings: Settings, given: Given) -> NegativeSampler:
        prior = bn.priors.Oracle(given.split.test) if weighting == "oracle" else given.prior
        chosen = {"prior": prior, "likelihood": "mixture", **fixed, **settings}
        return bn.BNS(candidates=given.pool, shared=True, weighting=weighting, cdf="pool", **chosen)

    return make


def in_batch(weighting: Weighting) -> Make:
    def make(settings: Settings, given: Given) -> NegativeSampler:
        prior = bn.priors.Oracle(given.split.test) if weighting == "oracle" else given.prior
        return bn.samplers.InBatch(weighting=weighting, prior=prior, likelihood="mixture", **settings)

    return make


def one(kind: Callable[..., NegativeSampler]) -> Make:
    return lambda settings, given: kind(**settings)


def one_bns(settings: Settings, given: Given) -> NegativeSampler:
    return bn.BNS(prior=given.prior, cdf="exact", **settings)


losses = bn.losses
CONTENDERS: Final[Mapping[str, Contender]] = {
    "bpr": Contender(losses.BPR, one(bn.RNS), ONE_NEGATIVE),
    "dns": Contender(losses.BPR, one(bn.DNS), ONE_NEGATIVE),
    "ahns": Contender(losses.BPR, one(bn.samplers.AHNS), ONE_NEGATIVE),
    "mixgcf": Contender(losses.BPR, one(bn.samplers.MixGCF), ONE_NEGATIVE),
    "bns": Contender(losses.BPR, one_bns, ONE_NEGATIVE),
    "softmax": Contender(losses.Softmax, uniform),
    "bsl": Contender(losses.Softmax, uniform),
    "ccl": Contender(losses.CCL, uniform),
    "psl": Contender(losses.PSL, uniform),
    "sl@k": Contender(losses.SoftmaxAtK, uniform),
    "dcl": Contender(losses.DCL, uniform),
    "bcl": Contender(losses.Softmax, weighed("posterior", likelihood="bcl", prior=bn.priors.Flat())),
    "posterior": Contender(losses.Softmax, weighed("posterior")),
    "risk": Contender(losses.Softmax, weighed("risk")),
    "oracle": Contender(losses.Softmax, weighed("oracle"), is_oracle=True),
    "in-batch": Contender(losses.Softmax, in_batch("none")),
    "in-batch posterior": Contender(losses.Softmax, in_batch("posterior")),
    "in-batch oracle": Contender(losses.Softmax, in_batch("oracle"), is_oracle=True),
}


NEED_PRIOR: Final = ("bns", "posterior", "risk", "in-batch posterior")  # a learned one
PRIOR: Final = "ease"  # the item model of the learned prior, unless a setting of the sampler names another
BASELINES: Final[Mapping[str, Callable[..., Any]]] = {
    "ease": bn.baselines.EASE,
    "als": bn.baselines.ALS,
    "rp3beta": bn.baselines.RP3Beta,
    "gfcf": bn.baselines.GFCF,
}


class Setting(NamedTuple):
    """What a trial changes of a contender."""

    model: dict[str, Any]
    loss: dict[str, Any]
    sampler: dict[str, Any]


class Parts(NamedTuple):
    """What ``bn.fit`` is given."""

    model: Any
    sampler: NegativeSampler | None
    loss: Loss | None


def parts_of(name: str, model: str, setting: Setting, given: Given) -> Parts:
    """The contender with a setting; ``model`` is mf or lightgcn, or baseline."""
    if name in BASELINES:
        return Parts(BASELINES[name](**setting.model), None, None)
    contender = CONTENDERS[name]
    kind = bn.TorchMF if model == "mf" else bn.LightGCN
    return Parts(
        kind(**{**contender.model, **setting.model}),
        contender.sampler(setting.sampler, given),
        contender.loss(**setting.loss),
    )
