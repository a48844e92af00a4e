"""A model's scores for the users of one batch, with gradients."""

from __future__ import annotations

from torch import Tensor

from bayesneg.errors import InputError


class FromVectors:
    """x_ui = w_u · h_i."""

    def __init__(self, users: Tensor, items: Tensor, which: Tensor) -> None:
        self.users, self.items = users, items  # (n_users, d), (n_items, d)
        self.own = users.index_select(0, which)  # (B, d)

    def of(self, items: Tensor) -> Tensor:
        vectors = self.items.index_select(0, items.reshape(-1)).view(*items.shape, -1)  # (B, m, d)
        return (self.own[:, None, :] * vectors).sum(dim=2)

    def chunk(self, first: int, last: int) -> Tensor:
        return self.own @ self.items[first:last].T

    def rows(self, part: slice) -> Tensor:
        return self.own[part] @ self.items.T

    def user_vectors(self) -> Tensor:
        return self.own

    def item_vectors(self) -> Tensor:
        return self.items

    def touched(self, items: Tensor) -> Tensor:
        """|·|² (B,) of the vectors of the user and of ``items`` (B, m) together."""
        vectors = self.items.index_select(0, items.reshape(-1)).view(*items.shape, -1)
        return self.own.square().sum(dim=1) + vectors.square().sum(dim=(1, 2))


class FromScores:
    """Whatever scores (B, n_items) the model gives."""

    def __init__(self, scores: Tensor) -> None:
        self.scores = scores

    def of(self, items: Tensor) -> Tensor:
        return self.scores.gather(1, items)

    def chunk(self, first: int, last: int) -> Tensor:
        return self.scores[:, first:last].clone()  # the caller may write to it

    def rows(self, part: slice) -> Tensor:
        return self.scores[part].clone()

    def user_vectors(self) -> Tensor:
        raise InputError("this model gives scores and no vectors; AOBPR by factor needs vectors, use rank='score'")

    item_vectors = user_vectors

    def touched(self, items: Tensor) -> Tensor:
        raise InputError("this model gives scores and no vectors; use penalty='weight_decay'")


State = FromVectors | FromScores
