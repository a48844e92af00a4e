"""The posterior of a sampler for any items: the unbias that its rule computes.

Training computes it inside compiled choices and does not keep it. This is the same number for a few items, which an
audit compares with the truth.
"""

from __future__ import annotations

import numpy as np

from bayesneg.interfaces import Batch
from bayesneg.kernels.reference import choices as reference
from bayesneg.kernels.reference.ranks import counted_below, observed_mask
from bayesneg.kernels.rules import SHORTEST, LeastRisk, LeastRiskBySummary, MostUnbiased

Weighing = LeastRisk | LeastRiskBySummary | MostUnbiased


def posterior_unbias(rule: Weighing, batch: Batch, items: np.ndarray, p: np.ndarray) -> np.ndarray:
    """The probability (B, m) that each of ``items`` (B, m) is a true negative, given the prior ``p`` (B, m)."""
    train = batch.train
    n_counted, n = reference.list_sizes(rule.over, train.n_items, train.counts[batch.users][:, None])  # (B, 1)
    if isinstance(rule, LeastRiskBySummary):
        counts = n_counted - np.minimum(_above(rule, batch, items), n_counted - 1)
    else:
        all_count = rule.over.with_observed
        left_out = None if all_count else observed_mask(batch.users, train.indptr, train.indices, train.n_items)
        counts = counted_below(batch.score_all(), items, left_out)[1]
    return reference.counted_unbias(rule.likelihood, counts, n, p)


def _above(rule: LeastRiskBySummary, batch: Batch, items: np.ndarray) -> np.ndarray:
    """The number of items with a higher score, by the users' summaries."""
    w = batch.scorer.embeddings().users[batch.users]
    lengths = np.maximum(np.sqrt((w * w).sum(axis=1)), np.float32(SHORTEST))
    z = batch.score(items) / lengths[:, None]
    return np.array(
        [reference.items_above(rule.knots[user], rule.ranks, row) for user, row in zip(batch.users, z, strict=True)]
    )
