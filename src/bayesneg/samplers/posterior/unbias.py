"""The posterior of a sampler for any items: the unbias that its rule computes.

Training computes it inside compiled choices and does not keep it. This is the same number for a few items, which an
audit compares with the truth.
"""

from __future__ import annotations

import numpy as np

from bayesneg.interfaces import Batch
from bayesneg.kernels.reference.choices.posterior import PosteriorRule
from bayesneg.kernels.reference.formulas import counted_unbias


def posterior_unbias(rule: PosteriorRule, batch: Batch, items: np.ndarray, p: np.ndarray) -> np.ndarray:
    """The probability (B, m) that each of ``items`` (B, m) is a true negative, given the prior ``p`` (B, m)."""
    _, counts, n = rule.counts(batch, items)
    return counted_unbias(rule.likelihood, counts, n[:, None], p)
