"""What several processes can train; anything else is refused before it starts."""

from __future__ import annotations

from typing import Any

from bayesneg.errors import InputError
from bayesneg.interfaces import Model, NegativeSampler, RuleSampler
from bayesneg.models.torch.lightgcn import LightGCN
from bayesneg.samplers.posterior.sampler import PosteriorSampler
from bayesneg.samplers.priors.self_estimated import SelfEstimated
from bayesneg.samplers.schedules import WarmStart


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
                f"{name} is a custom sampler, which samples for whole batches in one process; train in one process, or "
                "give a built-in sampler"
            )
        if part.makes_vectors and model.layers:
            raise InputError(
                f"{name} mixes the embeddings of every layer, and several processes exchange the mean of them; "
                "train TorchMF (--model torch-mf), which has one layer, or give another sampler"
            )
        prior = part.parts().prior if isinstance(part, PosteriorSampler) else None
        if prior is not None and prior.uses_scores and not isinstance(prior, SelfEstimated):
            raise InputError(
                f"{type(prior).__name__} is a custom prior that depends on scores, of which each process has a part; "
                "give bn.priors.SelfEstimated(), or a prior without scores such as bn.priors.Learned()"
            )
    return model


def draws_together(sampler: NegativeSampler) -> bool:
    """Whether all processes draw together: a prior that follows scores reads embeddings of other processes."""
    return any(isinstance(part, PosteriorSampler) and part.parts().prior.uses_scores for part in parts_of(sampler))


def parts_of(sampler: NegativeSampler) -> list[Any]:
    """The samplers of a warm start, else the sampler itself."""
    return [sampler.first, sampler.then] if isinstance(sampler, WarmStart) else [sampler]
