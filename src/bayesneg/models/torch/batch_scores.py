"""The scores of one mini-batch, and the backward pass through them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor, nn

from bayesneg.errors import InputError
from bayesneg.interfaces import Negatives
from bayesneg.kernels.reference.losses import LossValues
from bayesneg.kernels.reference.mixing import HopMixing, Layers, Synthetic
from bayesneg.kernels.torch.choices.base import DrawTensors
from bayesneg.kernels.torch.formulas import unit
from bayesneg.kernels.torch.gradients import bpr_gradients, fused_for, penalty_gradients
from bayesneg.kernels.torch.mixing import mixed
from bayesneg.kernels.torch.pair_scores import scores_of

NUMBERS = 1 << 26  # of gathered embeddings held at once
NO_EMBEDDINGS = (
    "this model gives scores and no vectors; choose a sampler that needs none (BNS: cdf='exact', AOBPR: rank='score')"
)
NO_VECTORS = "this model gives scores and no vectors; a sampler of synthetic negatives needs vectors"
NO_GRADIENT = "the model's vectors do not depend on its parameters; return them without detach()"


def _plain(given: Tensor) -> Tensor:
    """As kernels read it: float32, contiguous, detached."""
    return given.detach().float().contiguous()


class PairScores(NamedTuple):
    """Scores that are part of the graph."""

    positive: Tensor  # (B,)
    negatives: Tensor  # (B, K)

    def pulled(self, values: LossValues, share: Tensor) -> tuple[list[Tensor], list[Tensor]]:
        """Tensors of the graph and the derivatives by them, of Σ_b share_b · loss_b with ``share`` (B,)."""
        return list(self), [values.by_positive * share, values.by_negatives * share[:, None]]


class PoolScores(NamedTuple):
    """Scores of a shared pool; the graph begins at the embeddings, so that nothing of the size B × N is in it."""

    positive: Tensor  # (B,)
    negatives: Tensor  # (B, N), without gradients
    users: Tensor  # (B, d)
    pool: Tensor  # (N, d)

    @classmethod
    def of(cls, users: Tensor, positives: Tensor, pool: Tensor, x: Tensor) -> PoolScores:
        """From the embeddings (B, d), (B, d), (N, d) and the scores (B, N) of the pool."""
        return cls((users * positives).sum(dim=1), x, users, pool)

    def pulled(self, values: LossValues, share: Tensor) -> tuple[list[Tensor], list[Tensor]]:
        """As :meth:`PairScores.pulled`."""
        slopes, column = values.by_negatives, share[:, None]
        by_users = slopes @ self.pool.detach() * column
        by_pool = ((self.users.detach() * column).T @ slopes).T
        return [self.positive, self.users, self.pool], [values.by_positive * share, by_users, by_pool]


ScoredBatch = PairScores | PoolScores


def pooled(layers: Layers) -> tuple[Tensor, Tensor]:
    """The final embeddings of users and items: the means over the layers."""
    users, items = (part[0] if len(part) == 1 else torch.stack(tuple(part)).mean(dim=0) for part in layers)
    return users, items


class MixesEmbeddings(ABC):
    """Scores of a model with embeddings, of which synthetic negatives are made."""

    @abstractmethod
    def mixed(self, rule: HopMixing, draws: DrawTensors, positives: Tensor) -> Synthetic:
        """The synthetic negatives of the batch, with gradients; as :func:`~bayesneg.kernels.torch.mixing.mixed`."""


class EmbeddingScores(MixesEmbeddings):
    """Scores x_ui = w_u · h_i of a model that gives embeddings.

    Args:
        users: The embeddings (n_users, d) of all users, with gradients.
        items: The embeddings (n_items, d) of all items, with gradients.
        which: The users (B,) of the batch.
        ensemble_size: Number of models concatenated in the embeddings.
        first_layer: The first-layer embeddings of users and items, where the penalty is on them.
        cosine: Whether scores are cosines and not inner products.
        layers: The embeddings of every layer, where ``users`` and ``items`` are their means; by default one layer.
    """

    def __init__(
        self,
        users: Tensor,
        items: Tensor,
        which: Tensor,
        *,
        ensemble_size: int = 1,
        first_layer: tuple[Tensor, Tensor] | None = None,
        cosine: bool = False,
        layers: Layers | None = None,
    ) -> None:
        self.given, self.ensemble_size, self.first_layer = (users, items), ensemble_size, first_layer
        self.layers = layers or Layers([users], [items])
        self.which = which  # (B,)
        self.cosine = cosine
        self.last_pool: tuple[Tensor, Tensor] | None = None

    @cached_property
    def users(self) -> Tensor:
        """The embeddings (n_users, d) of all users, without gradients."""
        return self._unit(_plain(self.given[0]))

    @cached_property
    def items(self) -> Tensor:
        """The embeddings (n_items, d) of all items, without gradients."""
        return self._unit(_plain(self.given[1]))

    @cached_property
    def batch_users(self) -> Tensor:
        """The embeddings (B, d) of the batch's users, without gradients."""
        return self._unit(_plain(self.given[0]).index_select(0, self.which))

    def _unit(self, vectors: Tensor) -> Tensor:
        """Of norm 1 where scores are cosines."""
        return unit(vectors) if self.cosine else vectors

    def of(self, items: Tensor) -> Tensor:
        at_once = max(1, NUMBERS // (items.shape[1] * self.items.shape[1]))  # examples
        if len(items) > at_once:
            parts = zip(self.batch_users.split(at_once), items.split(at_once), strict=True)  # type: ignore[no-untyped-call]
            return torch.cat([self._of(users, part) for users, part in parts])
        return self._of(self.batch_users, items)

    def _of(self, users: Tensor, items: Tensor) -> Tensor:
        vectors = self.items.index_select(0, items.reshape(-1)).view(*items.shape, -1)  # (B, m, d)
        return (users[:, None, :] * vectors).sum(dim=2)

    def chunk(self, first: int, last: int) -> Tensor:
        return self.batch_users @ self.items[first:last].T

    def rows(self, part: slice) -> Tensor:
        return self.batch_users[part] @ self.items.T

    def of_pool(self, pool: Tensor) -> Tensor:
        """Scores (B, N) of a pool (N,) of items that the batch shares, without gradients."""
        x = self.batch_users @ self._unit(_plain(self.given[1]).index_select(0, pool)).T
        self.last_pool = pool, x
        return x

    def kept_rows(self, users: Tensor) -> Tensor:
        return users

    def kept_items(self, table: Tensor, items: Tensor) -> Tensor:
        return table[:, items]

    def user_vectors(self) -> Tensor:
        return self.batch_users

    def item_vectors(self) -> Tensor:
        return self.items

    def table_of(self, items: Tensor) -> tuple[Tensor, Tensor]:
        return self.items, items

    def mixed(self, rule: HopMixing, draws: DrawTensors, positives: Tensor) -> Synthetic:
        return mixed(rule, draws, self.batch_users, positives, self.layers)

    def backward(self, positives: Tensor, negatives: Tensor, strength: float) -> Tensor:
        """Accumulate the gradients of the loss in the parameters.

        Args:
            positives: The positives (B,).
            negatives: The negatives (B,), −1 where an example has none.
            strength: The L2 penalty on the batch's embeddings: those of the first layer where given.

        Returns:
            1 − σ(x_i − x_j) (B,), 0 where there is no negative.
        """
        batch = self.which, positives, negatives
        on_scores = strength if self.first_layer is None else 0.0
        fused = fused_for(self.users.device) if self.ensemble_size == 1 else None
        if fused is None:
            *found, infos = bpr_gradients(self.users, self.items, *batch, on_scores, self.ensemble_size)
        else:
            *found, infos = fused.bpr_gradients(self.users, self.items, *batch, on_scores)
        learnt = [pair for pair in zip(self.given, found, strict=True) if pair[0].requires_grad]
        if not learnt:
            raise InputError(NO_GRADIENT)
        if self.first_layer is not None and strength:
            learnt += zip(self.first_layer, penalty_gradients(*self.first_layer, *batch, strength), strict=True)
        torch.autograd.backward(
            [given for given, _ in learnt], [gradient.to(given.dtype) for given, gradient in learnt]
        )
        return infos

    def scored(self, positives: Tensor, negatives: Negatives) -> ScoredBatch:
        """The scores of the positives (B,) and of the negatives (B, K), and what they are computed from."""
        users, items = self.given
        if not (users.requires_grad or items.requires_grad):
            raise InputError(NO_GRADIENT)
        w = users.index_select(0, self.which).float()
        if negatives.vectors is None and negatives.is_shared:
            # the rows of positives and pool together: the gradient by the table is then made once
            rows = items.index_select(0, torch.cat([positives, negatives.items])).float()
            h, pool = self._unit(rows).split([len(positives), len(negatives.items)])  # type: ignore[no-untyped-call]
            return PoolScores.of(self._unit(w), h, pool, self._pooled(negatives.items))
        return PairScores(*self.of_negatives(positives, negatives))

    def _pooled(self, pool: Tensor) -> Tensor:
        """Scores (B, N) of a pool, which were computed when it was weighed."""
        if self.last_pool is not None and self.last_pool[0] is pool:
            return self.last_pool[1]
        return self.of_pool(pool)

    def of_negatives(self, positives: Tensor, negatives: Negatives) -> tuple[Tensor, Tensor]:
        """The scores of the positives (B,) and of the negatives (B, K)."""
        users, items = self.given
        w, h = users.index_select(0, self.which).float(), items.index_select(0, positives).float()
        return scores_of(w, h, items, negatives.items.clamp(min=0), negatives.vectors, cosine=self.cosine)

    def penalty(self, positives: Tensor, negatives: Negatives, shares: Tensor, strength: float) -> Tensor:
        """½ · strength · Σ_b (share_b · (|w_u|² + |h_i|²) + Σ_k share_bk · |h_k|²), of the first layer where given.

        Args:
            positives: The positives (B,).
            negatives: The negatives.
            shares: The share (B, K) of each negative in the loss of the batch.
            strength: The weight of the penalty.
        """
        users, items = self.given if self.first_layer is None else self.first_layer
        of_users, of_items = (vectors.float().square().sum(dim=1) for vectors in (users, items))
        examples = shares.sum(dim=1)
        which = negatives.items.expand_as(shares).clamp(min=0)
        total = (examples * (of_users[self.which] + of_items[positives])).sum() + (shares * of_items[which]).sum()
        return 0.5 * strength * total


class DirectScores:
    """The scores (B, n_items) that a model without embeddings gives."""

    def __init__(self, scores: Tensor) -> None:
        self.given, self.scores = scores, _plain(scores)

    def of(self, items: Tensor) -> Tensor:
        return self.scores.gather(1, items)

    def chunk(self, first: int, last: int) -> Tensor:
        return self.scores[:, first:last].clone()  # the caller may write to it

    def rows(self, part: slice) -> Tensor:
        return self.scores[part].clone()

    def of_pool(self, pool: Tensor) -> Tensor:
        return self.scores.index_select(1, pool)

    def scored(self, positives: Tensor, negatives: Negatives) -> ScoredBatch:
        """As :meth:`EmbeddingScores.scored`."""
        if not self.given.requires_grad:
            raise InputError("the model's scores do not depend on its parameters; return them without detach()")
        if negatives.vectors is not None:
            raise InputError(NO_VECTORS)
        given, items = self.given.float(), negatives.items.clamp(min=0)
        found = given.index_select(1, items) if negatives.is_shared else given.gather(1, items)
        return PairScores(given.gather(1, positives[:, None])[:, 0], found)

    def penalty(self, positives: Tensor, negatives: Negatives, shares: Tensor, strength: float) -> Tensor:
        raise InputError("this model gives scores and no vectors; use penalty='weight_decay'")

    def kept_rows(self, users: Tensor) -> Tensor:
        return users

    def kept_items(self, table: Tensor, items: Tensor) -> Tensor:
        return table[:, items]

    def user_vectors(self) -> Tensor:
        raise InputError(
            "this model gives scores and no vectors; DENS, AOBPR by factor and a refreshed F need vectors, "
            "use rank='score' or cdf='exact'"
        )

    item_vectors = user_vectors

    def table_of(self, items: Tensor) -> tuple[Tensor, Tensor]:
        return self.item_vectors(), items

    def backward(self, positives: Tensor, negatives: Tensor, strength: float) -> Tensor:
        """As :meth:`EmbeddingScores.backward`; a penalty on embeddings is an error."""
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
