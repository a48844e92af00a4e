"""A model's scores for the users of one batch, and how the loss goes back through them."""

from __future__ import annotations

from functools import cached_property

import torch
from torch import Tensor, nn

from bayesneg.errors import InputError
from bayesneg.kernels.torch import choices as batched

NUMBERS = 1 << 26  # of vectors held at once


def _plain(given: Tensor) -> Tensor:
    """As kernels read it: float32, row by row, without its history."""
    return given.detach().float().contiguous()


class FromVectors:
    """x_ui = w_u · h_i."""

    def __init__(self, users: Tensor, items: Tensor, which: Tensor, *, ensemble_size: int = 1) -> None:
        self.given, self.ensemble_size = (users, items), ensemble_size  # with their history
        self.users, self.items = _plain(users), _plain(items)  # (n_users, d), (n_items, d)
        self.which = which  # (B,)

    @cached_property
    def own(self) -> Tensor:
        """The vectors (B, d) of the batch's users."""
        return self.users.index_select(0, self.which)

    def of(self, items: Tensor) -> Tensor:
        at_once = max(1, NUMBERS // (items.shape[1] * self.items.shape[1]))  # examples
        if len(items) > at_once:
            parts = zip(self.own.split(at_once), items.split(at_once), strict=True)  # type: ignore[no-untyped-call]
            return torch.cat([self._of(own, part) for own, part in parts])
        return self._of(self.own, items)

    def _of(self, own: Tensor, items: Tensor) -> Tensor:
        vectors = self.items.index_select(0, items.reshape(-1)).view(*items.shape, -1)  # (B, m, d)
        return (own[:, None, :] * vectors).sum(dim=2)

    def chunk(self, first: int, last: int) -> Tensor:
        return self.own @ self.items[first:last].T

    def rows(self, part: slice) -> Tensor:
        return self.own[part] @ self.items.T

    def user_vectors(self) -> Tensor:
        return self.own

    def item_vectors(self) -> Tensor:
        return self.items

    def backward(self, positives: Tensor, negatives: Tensor, strength: float) -> Tensor:
        """Leave the loss's gradients with the parameters; infos (B,). ``strength`` pulls on the batch's vectors."""
        given = self.users, self.items, self.which, positives, negatives, strength
        fused = batched.fused_for(self.users.device) if self.ensemble_size == 1 else None
        *gradients, infos = fused.bpr_gradients(*given) if fused else batched.bpr_gradients(*given, self.ensemble_size)
        learnt = [pair for pair in zip(self.given, gradients, strict=True) if pair[0].requires_grad]
        if not learnt:
            raise InputError("the model's vectors do not depend on its parameters; return them without detach()")
        torch.autograd.backward(
            [given for given, _ in learnt], [gradient.to(given.dtype) for given, gradient in learnt]
        )
        return infos


class FromScores:
    """Whatever scores (B, n_items) the model gives."""

    def __init__(self, scores: Tensor) -> None:
        self.given, self.scores = scores, _plain(scores)

    def of(self, items: Tensor) -> Tensor:
        return self.scores.gather(1, items)

    def chunk(self, first: int, last: int) -> Tensor:
        return self.scores[:, first:last].clone()  # the caller may write to it

    def rows(self, part: slice) -> Tensor:
        return self.scores[part].clone()

    def user_vectors(self) -> Tensor:
        raise InputError(
            "this model gives scores and no vectors; AOBPR by factor and a refreshed F need vectors, "
            "use rank='score' or cdf='exact'"
        )

    item_vectors = user_vectors

    def backward(self, positives: Tensor, negatives: Tensor, strength: float) -> Tensor:
        if strength:
            raise InputError("this model gives scores and no vectors; use penalty='weight_decay'")
        if not self.given.requires_grad:
            raise InputError("the model's scores do not depend on its parameters; return them without detach()")
        keep = negatives >= 0
        x = self.given.float().gather(1, torch.stack([positives, negatives.clamp(min=0)], dim=1))
        gap = x[:, 0] - x[:, 1]
        loss = (nn.functional.softplus(-gap) * (keep / keep.sum().clamp(min=1))).sum()
        loss.backward()  # type: ignore[no-untyped-call]
        return torch.sigmoid(-gap.detach()) * keep


State = FromVectors | FromScores
