"""Every protocol: :mod:`sampling`, :mod:`rule_sampler`, :mod:`sampler_parts`, :mod:`learning` and :mod:`loss`.

A model starts a *learner*; a learner scores (it is a :class:`Scorer`) and trains one epoch at a time; a sampler gets a
:class:`Batch` of (user, positive) pairs with a lazy scorer and returns one negative for each pair. A prior is the
probability of a false negative before scores are seen; a candidate draw proposes the items that BNS chooses from.

A custom sampler subclasses :class:`NegativeSampler`::

    class Hardest(bn.NegativeSampler):
        def sample(self, batch):
            scores = batch.score_all()                                  # (B, n_items)
            for row, user in enumerate(batch.users):
                scores[row, batch.train.row(user)] = -np.inf            # never a training positive
            free = scores.max(axis=1) > -np.inf                         # False without unobserved items
            return np.where(free, scores.argmax(axis=1), bn.NO_NEGATIVE)  # (B,)
"""

from __future__ import annotations

from bayesneg.interfaces.inner_products import InnerProducts
from bayesneg.interfaces.layers import LayeredModule, LayeredScorer, n_layers_of
from bayesneg.interfaces.learning import (
    NO_LABELS,
    KeepsUsers,
    Learner,
    Measured,
    Model,
    Observer,
    RanksInParts,
    RanksOnDevice,
    RefreshesOnDevice,
    Sampled,
    StartsFromEmbeddings,
    Sums,
)
from bayesneg.interfaces.loss import BPR_LOSS, Loss
from bayesneg.interfaces.negatives import Negatives, weighted_pairs
from bayesneg.interfaces.parts import EmbeddingsInParts, OwnPart, ScorerInParts, StartsInParts, own_embeddings, own_part
from bayesneg.interfaces.rule_sampler import RuleSampler
from bayesneg.interfaces.sampler_parts import CandidateDraw, FollowsTraining, Prior
from bayesneg.interfaces.sampling import (
    NO_NEGATIVE,
    Batch,
    Embeddings,
    NegativeSampler,
    Preset,
    Scorer,
    Share,
)
from bayesneg.interfaces.tracking import TrackedRun, Tracker

__all__ = [
    "BPR_LOSS",
    "NO_LABELS",
    "NO_NEGATIVE",
    "Batch",
    "CandidateDraw",
    "Embeddings",
    "EmbeddingsInParts",
    "FollowsTraining",
    "InnerProducts",
    "KeepsUsers",
    "LayeredModule",
    "LayeredScorer",
    "Learner",
    "Loss",
    "Measured",
    "Model",
    "NegativeSampler",
    "Negatives",
    "Observer",
    "OwnPart",
    "Preset",
    "Prior",
    "RanksInParts",
    "RanksOnDevice",
    "RefreshesOnDevice",
    "RuleSampler",
    "Sampled",
    "Scorer",
    "ScorerInParts",
    "Share",
    "StartsFromEmbeddings",
    "StartsInParts",
    "Sums",
    "TrackedRun",
    "Tracker",
    "n_layers_of",
    "own_embeddings",
    "own_part",
    "weighted_pairs",
]
