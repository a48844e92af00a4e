"""What several processes can train; anything else is refused before it starts."""

from __future__ import annotations

from typing import Any

from bayesneg.errors import InputError
from bayesneg.interfaces import Model, NegativeSampler, RuleSampler
from bayesneg.models.torch.lightgcn import LightGCN
from bayesneg.samplers.aobpr import AOBPR
from bayesneg.samplers.posterior.sampler import PosteriorSampler
from bayesneg.samplers.priors.self_estimated import SelfEstimated
from bayesneg.samplers.schedules import WarmStart
from bayesneg.samplers.srns import SRNS

WORKING = "RNS, PNS, DNS, AHNS, SIR, DENS, MixGCF (TorchMF), BNS, Posterior, InBatch and WarmStart of these"
WHY = {
    SRNS: "keeps past embeddings of all users and items",
    AOBPR: "reads a user's whole list of scores",
}


def check_supported(model: Model, sampler: NegativeSampler | None) -> LightGCN:
    """The model, or an error that says what several processes can train."""
    if not isinstance(model, LightGCN):
        raise InputError(
            f"{type(model).__name__} trains in one process; several train TorchMF (--model torch-mf) and LightGCN"
        )
    assert sampler is not None
    for part in parts_of(sampler):
        name = type(part).__name__
        if not isinstance(part, RuleSampler):
            raise InputError(
                f"{name} is a custom sampler, which samples for whole batches in one process; in several these work: "
                f"{WORKING}"
            )
        if part.makes_vectors and model.layers:
            raise InputError(
                f"{name} mixes the embeddings of every layer, and several processes exchange the mean of them; "
                f"train TorchMF (--model torch-mf), which has one layer, or with another sampler: {WORKING}"
            )
        for kind, why in WHY.items():
            if isinstance(part, kind):
                raise InputError(f"{name} {why}, which no process has; in several processes these work: {WORKING}")
        prior = part.parts().prior if isinstance(part, PosteriorSampler) else None
        if prior is not None and prior.uses_scores and not isinstance(prior, SelfEstimated):
            raise InputError(
                f"{type(prior).__name__} is a custom prior that depends on scores, of which each process has a part; "
                "give bn.priors.SelfEstimated(), or a prior without scores such as bn.priors.Learned()"
            )
    return model


def parts_of(sampler: NegativeSampler) -> list[Any]:
    """The samplers of a warm start, else the sampler itself."""
    return [sampler.first, sampler.then] if isinstance(sampler, WarmStart) else [sampler]
