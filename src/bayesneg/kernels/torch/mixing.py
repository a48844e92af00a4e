"""The rules of ``kernels/reference/mixing.py`` in torch: synthetic negatives as parts of the graph.

What is chosen is found from scores without gradients, so that the mixed vectors of all candidates never exist; only
those that were chosen are mixed with gradients.
"""

from __future__ import annotations

import torch
from torch import Tensor

from bayesneg.kernels.reference.mixing import HopMixing, Layers, Synthetic
from bayesneg.kernels.torch.choices.base import DrawTensors
from bayesneg.kernels.torch.pair_scores import pair_scores
from bayesneg.kernels.torch.score_lists import INFINITY, numbers


def mixed(rule: HopMixing, draws: DrawTensors, w: Tensor, positives: Tensor, layers: Layers) -> Synthetic:
    """The synthetic negatives of a batch.

    Args:
        rule: The rule.
        draws: Candidates (B, K·m) and uniform numbers (B, L·K·m), of each layer and candidate.
        w: The users' embeddings (B, d), without gradients.
        positives: The positives (B,).
        layers: The embeddings of every layer, with gradients.

    Returns:
        The item with most part in each negative (B, K), and the vectors (B, K, d) with gradients.
    """
    n, K, n_layers = len(positives), rule.negatives, len(layers.items)
    candidates = draws.candidates.clamp(min=0).view(n, K, -1)
    m = candidates.shape[2]
    a = draws.uniforms.view(n, n_layers, K, m)
    there = (numbers(K * m, candidates.device) < draws.sizes[:, None]).view(n, K, m)
    chosen, vectors = [], []
    for layer, e in enumerate(layers.items):
        at = highest(a[:, layer], w, e.detach(), positives, candidates, there)  # (B, K, 1)
        chosen.append(at[:, :, 0])
        share = a[:, layer].gather(2, at).to(w.dtype)  # (B, K, 1)
        items = candidates.gather(2, at)[:, :, 0]
        negative = e.index_select(0, items.flatten()).float().view(n, K, -1)
        positive = e.index_select(0, positives).float()[:, None, :]
        vectors.append(share * positive + (1 - share) * negative)
    at = most_frequent(torch.stack(chosen, dim=2))
    items = torch.where(there[:, :, 0], candidates.gather(2, at)[:, :, 0], -1)
    return Synthetic(items, torch.stack(vectors).mean(dim=0))


@torch.no_grad()
def highest(a: Tensor, w: Tensor, table: Tensor, positives: Tensor, candidates: Tensor, there: Tensor) -> Tensor:
    """Position (B, K, 1) of the candidate that scores highest when mixed with the positive in shares a (B, K, m)."""
    x = pair_scores(w, table, candidates.flatten(1)).view_as(a)
    x_positive = (w * table.index_select(0, positives).to(w.dtype)).sum(dim=1)[:, None, None]
    return (a * x_positive + (1 - a) * x).masked_fill(~there, -INFINITY).argmax(dim=2, keepdim=True)


def most_frequent(chosen: Tensor) -> Tensor:
    """The value (B, K, 1) that occurs most often in (B, K, L), the earlier on ties."""
    counts = (chosen[:, :, :, None] == chosen[:, :, None, :]).sum(dim=3)
    earlier = numbers(chosen.shape[2], chosen.device)
    return chosen.gather(2, (counts * chosen.shape[2] - earlier).argmax(dim=2, keepdim=True))
