"""The k best items of each user in torch, in the order of ``evaluation/_topk.py``: by score, then by item number."""

from __future__ import annotations

import torch
from torch import Tensor

from bayesneg.kernels.torch.score_lists import TrainingRows

LOWEST = torch.finfo(torch.float32).min  # of a score; a masked item is below it


def top_items(
    users: Tensor, items: Tensor, which: Tensor, rows: TrainingRows, k: int, *, scores_at_once: int
) -> Tensor:
    """The k best items (B, k) int32 of each user that are not in the user's row, −1 where there are fewer.

    Args:
        users: The users' embeddings (n_users, d).
        items: The items' embeddings (n_items, d).
        which: The numbers (B,) of the users to rank for.
        rows: The items to leave out.
        k: The length of a ranking.
        scores_at_once: The number of scores held at once.
    """
    size = max(1, scores_at_once // len(items))
    return torch.cat([_top_of_scores(users[part] @ items.T, part, rows, k) for part in torch.split(which, size)])


def _top_of_scores(scores: Tensor, users: Tensor, rows: TrainingRows, k: int) -> Tensor:
    """The same from scores (B, n_items), which are overwritten."""
    scores.nan_to_num_(nan=LOWEST, posinf=torch.inf, neginf=LOWEST)
    counts, starts = rows.counts(users), rows.indptr[users]
    example = torch.repeat_interleave(counts)
    first = counts.cumsum(0) - counts
    place = torch.arange(len(example), device=scores.device) + (starts - first)[example]
    scores[example, rows.items[place].long()] = -torch.inf
    best, found = scores.topk(min(k + 1, scores.shape[1]), dim=1)
    by_number = found[:, :k].sort(dim=1)
    values = best[:, :k].gather(1, by_number.indices)
    order = values.sort(dim=1, descending=True, stable=True)
    listed = by_number.values.gather(1, order.indices).masked_fill_(order.values == -torch.inf, -1)
    if best.shape[1] > k:  # which of several equal scores are listed, topk leaves open
        tied = (best[:, k - 1] == best[:, k]) & (best[:, k] > -torch.inf)
        if bool(tied.any()):
            again = scores[tied].sort(dim=1, descending=True, stable=True)
            listed[tied] = again.indices[:, :k]
    return listed.int()
