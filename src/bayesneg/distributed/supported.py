"""What several processes can train; anything else is refused before it starts."""

from __future__ import annotations

from bayesneg.errors import InputError
from bayesneg.interfaces import Model, NegativeSampler, RuleSampler
from bayesneg.models.torch.lightgcn import LightGCN
from bayesneg.samplers.bns import BNS
from bayesneg.samplers.dens import DENS
from bayesneg.samplers.posterior.sampler import PosteriorSampler
from bayesneg.samplers.schedules import WarmStart

WORKING = "RNS, PNS, DNS, AOBPR, SRNS, AHNS, SIR, BNS, Posterior, InBatch and WarmStart of these"
WHY = {
    DENS: "learns gates from the embeddings of all candidates of a batch",
}


def check_supported(model: Model, sampler: NegativeSampler | None) -> LightGCN:
    """The model, or an error that says what several processes can train."""
    if not isinstance(model, LightGCN):
        raise InputError(
            f"{type(model).__name__} trains in one process; several train TorchMF (--model torch-mf) and LightGCN"
        )
    assert sampler is not None
    parts = [sampler.first, sampler.then] if isinstance(sampler, WarmStart) else [sampler]
    for part in parts:
        name = type(part).__name__
        if not isinstance(part, RuleSampler):
            raise InputError(
                f"{name} is a custom sampler, which samples for whole batches in one process; in several these work: "
                f"{WORKING}"
            )
        if part.makes_vectors:
            raise InputError(f"{name} mixes embeddings of all candidates; in several processes these work: {WORKING}")
        for kind, why in WHY.items():
            if isinstance(part, kind):
                raise InputError(f"{name} {why}, which no process has; in several processes these work: {WORKING}")
        if isinstance(part, PosteriorSampler) and part.parts().prior.uses_scores:
            raise InputError(
                f"the prior {type(part.parts().prior).__name__} reads the embeddings of all users, which no process "
                "has; give another prior, such as bn.priors.Learned()"
            )
        if isinstance(part, BNS) and part.shared and part.cdf == "refreshed":
            raise InputError(
                "BNS with shared=True and cdf='refreshed' reads summaries for a whole pool; in several processes give "
                "cdf='pool' or 'exact'"
            )
    return model
