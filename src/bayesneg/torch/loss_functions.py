"""Losses of weighted negatives as torch functions of embeddings.

Each takes the embeddings of users and positives, the table of all items and what a sampler answered. Per-example
negatives are scored in parts, so that their (B, K, d) embeddings are never held at once.
"""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import Tensor

from bayesneg.checks import one_of
from bayesneg.errors import InputError
from bayesneg.interfaces import Negatives
from bayesneg.interfaces.loss import BuiltInLoss, check_has_minimum
from bayesneg.kernels.reference.losses import LossForm, Scores
from bayesneg.kernels.torch.losses import effective_weights, evaluate
from bayesneg.kernels.torch.pair_scores import scores_of
from bayesneg.losses import BPR, CCL, DCL, HCL, PSL, Logistic, Softmax, SoftmaxAtK
from bayesneg.torch.validation import check_loss_input

Reduction = Literal["mean", "sum", "none"]
Similarity = Literal["inner", "cosine"]


class _FromScores(torch.autograd.Function):
    """A loss (B,) whose derivatives by the scores are computed with its value."""

    @staticmethod
    def forward(ctx: Any, positive: Tensor, negatives: Tensor, form: LossForm, rest: tuple[Any, ...]) -> Tensor:
        values = evaluate(form, Scores(positive, negatives, *rest))
        ctx.save_for_backward(values.by_positive, values.by_negatives)
        return values.value

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None, None]:
        by_positive, by_negatives = ctx.saved_tensors
        return gradients[0] * by_positive, gradients[0][:, None] * by_negatives, None, None


def _loss(
    loss: BuiltInLoss,
    users: Tensor,
    positives: Tensor,
    items: Tensor | None,
    negatives: Negatives,
    similarity: Similarity,
    reduction: Reduction,
    threshold: Tensor | None = None,
) -> Tensor:
    one_of("similarity", similarity, ("inner", "cosine"))
    one_of("reduction", reduction, ("mean", "sum", "none"))
    check_loss_input(users, positives, items, negatives, threshold)
    check_has_minimum(loss, negatives, len(users), cosine=similarity == "cosine", given="negatives.items has one")
    which, kind = negatives.items.clamp(min=0), torch.promote_types(users.dtype, torch.float32)
    with torch.autocast(users.device.type, enabled=False):  # a temperature magnifies the rounding of scores
        x_positive, x = scores_of(
            users.to(kind), positives.to(kind), items, which, negatives.vectors, cosine=similarity == "cosine"
        )
        weights = effective_weights(negatives.items, negatives.weights, len(users)).to(kind)
        log_q = None if negatives.log_q is None else negatives.log_q.masked_fill(negatives.items < 0, 0)
        rest = (weights, log_q, threshold)
        values: Tensor = _FromScores.apply(x_positive, x, loss.form(), rest)  # type: ignore[no-untyped-call]
    if reduction == "none":
        return values
    total = values.sum()
    return total if reduction == "sum" else total / (weights > 0).any(dim=1).sum().clamp(min=1)


def bpr(
    users: Tensor,
    positives: Tensor,
    items: Tensor | None,
    negatives: Negatives,
    *,
    similarity: Similarity = "inner",
    reduction: Reduction = "mean",
) -> Tensor:
    """The BPR loss: Σ_k ω_k · softplus(s_k − s_i) / Σ_k ω_k.

    Args:
        users: The users' embeddings (B, d), with gradients.
        positives: The positives' embeddings (B, d), with gradients.
        items: The embeddings (n_items, d) of all items, with gradients; None where negatives are vectors.
        negatives: What :class:`~bayesneg.torch.Sampler` returned.
        similarity: What a score is: the ``"inner"`` product of embeddings, or their ``"cosine"``.
        reduction: ``"mean"`` over the examples with a negative that counts, ``"sum"``, or ``"none"`` for (B,).

    Returns:
        The loss, a scalar or (B,).

    Example:
        >>> w, h, table = torch.ones(1, 2, requires_grad=True), torch.ones(1, 2), torch.zeros(3, 2)
        >>> round(bpr(w, h, table, Negatives(torch.tensor([[2]]))).item(), 4)
        0.1269
    """
    return _loss(BPR(), users, positives, items, negatives, similarity, reduction)


def softmax(
    users: Tensor,
    positives: Tensor,
    items: Tensor | None,
    negatives: Negatives,
    *,
    temperature: float = 0.1,
    negative_weight: float = 1.0,
    include_positive: bool = False,
    similarity: Similarity = "inner",
    reduction: Reduction = "mean",
) -> Tensor:
    """The sampled softmax loss: −s_i/τ + b · log(Σ_k ω_k · exp(s_k/τ − log q_k) [+ exp(s_i/τ)]).

    Args:
        users: The users' embeddings (B, d), with gradients.
        positives: The positives' embeddings (B, d), with gradients.
        items: The embeddings (n_items, d) of all items, with gradients; None where negatives are vectors.
        negatives: What :class:`~bayesneg.torch.Sampler` returned.
        temperature: Temperature τ.
        negative_weight: Weight b of the negative part (BSL).
        include_positive: Whether the positive is a term of the sum (InfoNCE).
        similarity: What a score is: the ``"inner"`` product of embeddings, or their ``"cosine"``.
        reduction: ``"mean"`` over the examples with a negative that counts, ``"sum"``, or ``"none"`` for (B,).

    Returns:
        The loss, a scalar or (B,).
    """
    loss = Softmax(temperature, negative_weight, include_positive)
    return _loss(loss, users, positives, items, negatives, similarity, reduction)


def softmax_at_k(
    users: Tensor,
    positives: Tensor,
    items: Tensor | None,
    negatives: Negatives,
    *,
    threshold: Tensor,
    temperature: float = 0.1,
    weight_temperature: float = 1.0,
    similarity: Similarity = "inner",
    reduction: Reduction = "mean",
) -> Tensor:
    """SL@K: σ((s_i − β_u)/τ_w) · softmax loss, with β_u the user's K-th highest score.

    Args:
        users: The users' embeddings (B, d), with gradients.
        positives: The positives' embeddings (B, d), with gradients.
        items: The embeddings (n_items, d) of all items, with gradients; None where negatives are vectors.
        negatives: What :class:`~bayesneg.torch.Sampler` returned.
        threshold: The K-th highest score β_u (B,) of each user, which the caller refreshes now and then.
        temperature: Temperature τ of the softmax.
        weight_temperature: Temperature τ_w of the weight of an example.
        similarity: What a score is: the ``"inner"`` product of embeddings, or their ``"cosine"``.
        reduction: ``"mean"`` over the examples with a negative that counts, ``"sum"``, or ``"none"`` for (B,).

    Returns:
        The loss, a scalar or (B,).
    """
    if threshold is None:
        raise InputError("threshold must be a tensor (B,), the K-th highest score of each example's user, got None")
    loss = SoftmaxAtK(temperature, weight_temperature=weight_temperature)
    return _loss(loss, users, positives, items, negatives, similarity, reduction, threshold)


def ccl(
    users: Tensor,
    positives: Tensor,
    items: Tensor | None,
    negatives: Negatives,
    *,
    margin: float = 0.8,
    negative_weight: float = 150.0,
    similarity: Similarity = "cosine",
    reduction: Reduction = "mean",
) -> Tensor:
    """The cosine contrastive loss of SimpleX: relu(1 − s_i) + w · Σ_k ω_k · relu(s_k − m) / Σ_k ω_k.

    Args:
        users: The users' embeddings (B, d), with gradients.
        positives: The positives' embeddings (B, d), with gradients.
        items: The embeddings (n_items, d) of all items, with gradients; None where negatives are vectors.
        negatives: What :class:`~bayesneg.torch.Sampler` returned.
        margin: Score m above which a negative is pushed down.
        negative_weight: Weight w of the negative part.
        similarity: What a score is: the ``"inner"`` product of embeddings, or their ``"cosine"``.
        reduction: ``"mean"`` over the examples with a negative that counts, ``"sum"``, or ``"none"`` for (B,).

    Returns:
        The loss, a scalar or (B,).
    """
    return _loss(CCL(margin, negative_weight), users, positives, items, negatives, similarity, reduction)


def psl(
    users: Tensor,
    positives: Tensor,
    items: Tensor | None,
    negatives: Negatives,
    *,
    temperature: float = 0.1,
    surrogate: Literal["relu", "tanh", "atan"] = "tanh",
    similarity: Similarity = "cosine",
    reduction: Reduction = "mean",
) -> Tensor:
    """The pairwise softmax loss: log Σ_k ω_k · g(s_k − s_i)^(1/τ).

    Args:
        users: The users' embeddings (B, d), with gradients.
        positives: The positives' embeddings (B, d), with gradients.
        items: The embeddings (n_items, d) of all items, with gradients; None where negatives are vectors.
        negatives: What :class:`~bayesneg.torch.Sampler` returned.
        temperature: Temperature τ.
        surrogate: The function g of the score difference: ``"relu"``, ``"tanh"`` or ``"atan"``.
        similarity: What a score is: the ``"inner"`` product of embeddings, or their ``"cosine"``.
        reduction: ``"mean"`` over the examples with a negative that counts, ``"sum"``, or ``"none"`` for (B,).

    Returns:
        The loss, a scalar or (B,).
    """
    return _loss(PSL(temperature, surrogate), users, positives, items, negatives, similarity, reduction)


def logistic(
    users: Tensor,
    positives: Tensor,
    items: Tensor | None,
    negatives: Negatives,
    *,
    similarity: Similarity = "inner",
    reduction: Reduction = "mean",
) -> Tensor:
    """The pointwise logistic loss: softplus(−s_i) + Σ_k ω_k · softplus(s_k) / Σ_k ω_k.

    Args:
        users: The users' embeddings (B, d), with gradients.
        positives: The positives' embeddings (B, d), with gradients.
        items: The embeddings (n_items, d) of all items, with gradients; None where negatives are vectors.
        negatives: What :class:`~bayesneg.torch.Sampler` returned.
        similarity: What a score is: the ``"inner"`` product of embeddings, or their ``"cosine"``.
        reduction: ``"mean"`` over the examples with a negative that counts, ``"sum"``, or ``"none"`` for (B,).

    Returns:
        The loss, a scalar or (B,).
    """
    return _loss(Logistic(), users, positives, items, negatives, similarity, reduction)


def dcl(
    users: Tensor,
    positives: Tensor,
    items: Tensor | None,
    negatives: Negatives,
    *,
    temperature: float = 0.1,
    positive_rate: float = 0.001,
    similarity: Similarity = "cosine",
    reduction: Reduction = "mean",
) -> Tensor:
    """The debiased contrastive loss (see :class:`bayesneg.losses.DCL`).

    Args:
        users: The users' embeddings (B, d), with gradients.
        positives: The positives' embeddings (B, d), with gradients.
        items: The embeddings (n_items, d) of all items, with gradients; None where negatives are vectors.
        negatives: What :class:`~bayesneg.torch.Sampler` returned.
        temperature: Temperature τ.
        positive_rate: Assumed probability τ⁺ that a negative is a false negative.
        similarity: What a score is: the ``"inner"`` product of embeddings, or their ``"cosine"``.
        reduction: ``"mean"`` over the examples with a negative that counts, ``"sum"``, or ``"none"`` for (B,).

    Returns:
        The loss, a scalar or (B,).
    """
    return _loss(DCL(temperature, positive_rate), users, positives, items, negatives, similarity, reduction)


def hcl(
    users: Tensor,
    positives: Tensor,
    items: Tensor | None,
    negatives: Negatives,
    *,
    temperature: float = 0.1,
    positive_rate: float = 0.001,
    hardness: float = 1.0,
    similarity: Similarity = "cosine",
    reduction: Reduction = "mean",
) -> Tensor:
    """The hard-negative contrastive loss (see :class:`bayesneg.losses.HCL`).

    Args:
        users: The users' embeddings (B, d), with gradients.
        positives: The positives' embeddings (B, d), with gradients.
        items: The embeddings (n_items, d) of all items, with gradients; None where negatives are vectors.
        negatives: What :class:`~bayesneg.torch.Sampler` returned.
        temperature: Temperature τ.
        positive_rate: Assumed probability τ⁺ that a negative is a false negative.
        hardness: Concentration β on high-scored negatives.
        similarity: What a score is: the ``"inner"`` product of embeddings, or their ``"cosine"``.
        reduction: ``"mean"`` over the examples with a negative that counts, ``"sum"``, or ``"none"`` for (B,).

    Returns:
        The loss, a scalar or (B,).
    """
    return _loss(HCL(temperature, positive_rate, hardness), users, positives, items, negatives, similarity, reduction)
