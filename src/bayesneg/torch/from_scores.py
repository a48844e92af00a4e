"""The posterior from a matrix of scores, for models without a table of item embeddings.

Row b has the scores of one example: its positive, items that are known not to be negatives, and the rest, which are the
unobserved items. F is the share of the rest at or below a score, and the posterior that of the BNS paper:
B. Liu and B. Wang, "Bayesian Negative Sampling for Recommendation", ICDE 2023.

Tensors stay on their device and nothing is copied to the host. So values are checked on the CPU only; a prior outside
[0, 1] on another device gives NaN.
"""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import Tensor

from bayesneg.checks import number, whole
from bayesneg.errors import InputError
from bayesneg.kernels.reference.formulas import AsCounted, OfMixture, risk, unbias
from bayesneg.kernels.torch.formulas import base_cdf, info
from bayesneg.kernels.torch.score_lists import INFINITY
from bayesneg.samplers.posterior.likelihoods import Likelihood, Mixture, as_likelihood
from bayesneg.torch.validation import readable


@torch.no_grad()
def log_unbias(
    scores: Tensor,
    *,
    prior: float | Tensor,
    positives: Tensor | None = None,
    mask: Tensor | None = None,
    likelihood: Likelihood | str = "paper",
    log_q: Tensor | None = None,
) -> Tensor:
    """The log of the posterior probability of a true negative, to add to the logits of a contrastive loss.

    log ω = log (1−F)(1−p) / (1 − F − p + 2Fp), where F = #{x ≤ x_k} / (n + 1) counts the n scores of the row that are
    neither its positive nor masked. Adding log ω to a logit multiplies the negative's term of a softmax by ω. No
    gradient flows through it.

    Args:
        scores: Scores (B, n) of n columns for B examples: cosines, inner products or logits; only their order in a row
            matters.
        prior: Prior probability that a column is a false negative for the example: a number, (n,), or (B, n).
        positives: The column (B,) of each example's positive, by default the diagonal, as with in-batch negatives.
        mask: True (B, n) where a column is known to be no negative of the example, such as a copy of its positive.
        likelihood: Step from the counted share to F: ``"paper"``, ``"mixture"`` (inverts the mixture of true and false
            negatives, with the mean of the prior as the share of false ones), or an object such as
            ``bn.likelihoods.Mixture(0.02)``.
        log_q: Log-probabilities (n,), up to a constant, that a column is in the batch, where they are unequal: F then
            counts each column 1/q times.

    Returns:
        log ω (B, n) in float32 or float64 on the device of the scores; 0 for positives, −∞ where masked.

    Example:
        >>> scores = torch.tensor([[0.9, 0.8, 0.1], [0.2, 0.7, 0.3], [0.1, 0.0, 0.9]])
        >>> log_unbias(scores, prior=0.2).exp()
        tensor([[1.0000, 0.6667, 0.8889],
                [0.8889, 1.0000, 0.6667],
                [0.6667, 0.8889, 1.0000]])
    """
    check_scores(scores)
    B, n = scores.shape
    if n < 2:
        raise InputError(
            "scores have one column, the positive: in-batch negatives need two examples or more; raise the batch size "
            "or drop the last batch (drop_last=True)"
        )
    if positives is None and n < B:
        raise InputError(f"scores (B, n) have {n} columns for {B} examples; give positives (B,), the columns of theirs")
    columns = torch.arange(B, device=scores.device) if positives is None else checked_columns(positives, scores)
    counts = torch.ones_like(scores, dtype=torch.bool).scatter(1, columns[:, None], False)
    if mask is not None:
        counts = counts & ~checked_flags("mask", mask, scores)
    x, p = checked_values(scores, counts), checked_prior(prior, scores)
    found = true_negative(x, counts, x, p, likelihood, checked_log_q(log_q, scores)).log()
    found = found.masked_fill(~counts, -INFINITY).scatter(1, columns[:, None], 0.0)
    return found.to(x.dtype)


@torch.no_grad()
def choose(
    scores: Tensor,
    positives: Tensor,
    *,
    prior: float | Tensor,
    observed: Tensor | None = None,
    candidates: int | Literal["all"] | Tensor = 5,
    weight: float = 5.0,
    likelihood: Likelihood | str = "paper",
    negatives: int = 1,
    generator: torch.Generator | None = None,
) -> Tensor:
    """The negatives of least sampling risk: BNS from a matrix of scores.

    A few candidates are drawn uniformly from the row's unobserved items. Those of least info·(1 − (1+λ)·unbias) are
    returned, info = 1 − σ(x_positive − x_candidate), with F counted over the row's unobserved items.

    Args:
        scores: Scores (B, n) of all n items for B examples.
        positives: The item (B,) that is each example's positive.
        prior: Prior probability that an item is a false negative for the example: a number, (n,), or (B, n).
        observed: True (B, n) where an item is observed for the example and so no negative; positives are, always.
        candidates: Number of candidates drawn per example, ``"all"`` for every unobserved item, or the candidates
            (B, m) themselves, −1 where there is none.
        weight: Weight λ of the posterior in the sampling risk.
        likelihood: Step from the counted share to F: ``"paper"``, ``"mixture"``, or an object.
        negatives: Number of negatives per example.
        generator: Source of randomness, on the device of the scores; by default that of torch.

    Returns:
        Items (B,), or (B, K) for K > 1 negatives in ascending order of risk; −1 where there is no unobserved item left.

    Example:
        >>> scores = torch.tensor([[2.0, 1.0, 0.9, -3.0]])
        >>> choose(scores, torch.tensor([0]), prior=torch.tensor([0.1, 0.9, 0.1, 0.1]), candidates="all")
        tensor([2])
    """
    check_scores(scores)
    number("weight", weight, least=0)
    whole("negatives", negatives)
    columns = checked_columns(positives, scores)
    counts = torch.ones_like(scores, dtype=torch.bool)
    if observed is not None:
        counts = ~checked_flags("observed", observed, scores)
    counts = counts.scatter(1, columns[:, None], False)
    items = drawn_candidates(candidates, counts, generator)  # (B, m)
    if items.shape[1] < negatives:
        raise InputError(f"negatives must be at most the {items.shape[1]} candidates, got {negatives}; draw more")
    there, items = items >= 0, items.clamp(min=0)
    x = checked_values(scores, counts.scatter(1, columns[:, None], True))
    p = checked_prior(prior, scores)
    x_candidates, x_positive = x.gather(1, items), x.gather(1, columns[:, None])
    true = true_negative(x, counts, x_candidates, p, likelihood, None, items)
    risks = risk(info(x_positive, x_candidates), true, weight).masked_fill(~there, INFINITY)
    order = risks.sort(dim=1, stable=True).indices[:, :negatives]
    chosen = torch.where(there, items, -1).gather(1, order)
    return chosen[:, 0] if negatives == 1 else chosen


# ------------------------------------------------------------------------------------------------------ the posterior


def true_negative(
    x: Tensor,
    counts: Tensor,
    at: Tensor,
    prior: Tensor,
    likelihood: Likelihood | str,
    log_q: Tensor | None,
    items: Tensor | None = None,
) -> Tensor:
    """unbias (B, m) at the scores ``at`` (B, m) of ``items`` (B, m), by default of all; in float64.

    F counts the scores x (B, n) where ``counts`` (B, n) is True.
    """
    ascending, order = x.masked_fill(~counts, INFINITY).sort(dim=1)
    mass = counts.to(prior.dtype)  # what an item stands for
    if log_q is not None:
        mass = mass * torch.exp(log_q.min() - log_q)
    mass = torch.nn.functional.pad(mass.gather(1, order).cumsum(dim=1), (1, 0))
    at_most = mass.gather(1, torch.searchsorted(ascending, at.contiguous(), right=True))
    total, n = mass[:, -1:], counts.sum(dim=1, keepdim=True).clamp(min=1)
    M = at_most / (total + total / n).clamp(min=1e-300)  # at_most / (n + 1) where all stand for one
    form = tensor_form(likelihood, prior, counts)
    return unbias(base_cdf(form, M), prior if items is None else prior.expand_as(x).gather(1, items))


def tensor_form(likelihood: Likelihood | str, prior: Tensor, counts: Tensor) -> Any:
    """The likelihood with tensors as its numbers."""
    if likelihood == "paper":
        return AsCounted()
    if likelihood == "mixture" or (isinstance(likelihood, Mixture) and likelihood.false_share is None):
        return OfMixture(share_of(prior, counts))  # type: ignore[arg-type]
    given = as_likelihood(likelihood)
    try:
        form: Any = given.form()
    except InputError as error:
        raise InputError(
            "likelihood must be one that works without a sampler: 'paper', 'mixture', 'uninformative', or an object "
            f"such as bn.likelihoods.Mixture(0.02) or BCL(auc=0.9), got {likelihood!r}, which is learned during "
            "training; bnt.Sampler with bn.BNS takes it"
        ) from error
    return type(form)(*(torch.as_tensor(part, dtype=prior.dtype, device=prior.device) for part in form))


def share_of(prior: Tensor, counts: Tensor) -> Tensor:
    """θ: the mean of the prior over what counts."""
    return torch.where(counts, prior, 0.0).sum() / counts.sum().clamp(min=1)


def drawn_candidates(candidates: int | str | Tensor, counts: Tensor, generator: torch.Generator | None) -> Tensor:
    """Items (B, m) where ``counts`` (B, n) is True, uniformly and without replacement; −1 where there are no more."""
    if isinstance(candidates, Tensor):
        return checked_candidates(candidates, counts)
    if candidates == "all":
        return torch.where(counts, torch.arange(counts.shape[1], device=counts.device), -1)
    whole("candidates", candidates)
    if generator is not None and generator.device.type != counts.device.type:
        raise InputError(
            f"generator is on {generator.device}, scores are on {counts.device}; "
            f"give torch.Generator('{counts.device}')"
        )
    keys = torch.rand(counts.shape, generator=generator, device=counts.device).masked_fill(~counts, -1.0)
    highest, items = keys.topk(min(int(candidates), counts.shape[1]), dim=1)
    return torch.where(highest >= 0, items, -1)


# ---------------------------------------------------------------------------------------------------------- the checks


def check_scores(scores: Tensor) -> None:
    if not isinstance(scores, Tensor) or scores.dim() != 2 or not scores.is_floating_point() or not scores.numel():
        found = tuple(scores.shape) if isinstance(scores, Tensor) else type(scores).__name__
        kind = f" {scores.dtype}" if isinstance(scores, Tensor) else ""
        raise InputError(f"scores must be a tensor (B, n) of floating-point numbers, got {found}{kind}")


def checked_values(scores: Tensor, counts: Tensor) -> Tensor:
    """The scores in float32 or float64; NaN only where nothing counts."""
    x = scores if scores.dtype == torch.float64 else scores.float()
    if readable(x) and bool((x.isnan() & counts).any()):
        raise InputError("scores contain NaN; lower the learning rate, or mask those columns if they are no negatives")
    return x


def checked_prior(prior: float | Tensor, scores: Tensor) -> Tensor:
    """The prior in float64, (B, n) or of a shape that broadcasts to it."""
    dtype = torch.float32 if scores.device.type == "mps" else torch.float64
    if not isinstance(prior, Tensor):
        number("prior", prior, least=0, most=1)
        return torch.full((1, 1), float(prior), dtype=dtype, device=scores.device)
    check_device("prior", prior, scores)
    B, n = scores.shape
    if tuple(prior.shape) not in ((), (n,), (B, n), (B, 1)):
        raise InputError(f"prior must be a number or of shape ({n},) or {(B, n)}, got {tuple(prior.shape)}")
    valid = (prior >= 0) & (prior <= 1)
    if readable(prior) and not bool(valid.all()):
        raise InputError(f"prior must be probabilities from 0 to 1, got {prior[~valid].flatten()[0].item():g}")
    return torch.where(valid, prior.to(dtype), float("nan")).expand(B, n)


def checked_columns(positives: Tensor, scores: Tensor) -> Tensor:
    check_device("positives", positives, scores)
    if tuple(positives.shape) != (len(scores),) or positives.is_floating_point() or positives.dtype == torch.bool:
        raise InputError(
            f"positives must be whole numbers ({len(scores)},), one per row of scores, "
            f"got {tuple(positives.shape)} {positives.dtype}"
        )
    check_range("positives", positives, scores.shape[1], least=0)
    return positives.long()


def checked_candidates(candidates: Tensor, counts: Tensor) -> Tensor:
    check_device("candidates", candidates, counts)
    if candidates.dim() != 2 or len(candidates) != len(counts) or candidates.is_floating_point():
        raise InputError(
            f"candidates must be whole numbers ({len(counts)}, m), got {tuple(candidates.shape)} {candidates.dtype}"
        )
    check_range("candidates", candidates, counts.shape[1], least=-1)
    items = candidates.long()
    return torch.where(counts.gather(1, items.clamp(min=0)), items, -1)


def checked_flags(name: str, flags: Tensor, scores: Tensor) -> Tensor:
    check_device(name, flags, scores)
    if flags.shape != scores.shape or flags.dtype != torch.bool:
        raise InputError(
            f"{name} must be True or False for each score {tuple(scores.shape)}, got {tuple(flags.shape)} {flags.dtype}"
        )
    return flags


def checked_log_q(log_q: Tensor | None, scores: Tensor) -> Tensor | None:
    if log_q is None:
        return None
    check_device("log_q", log_q, scores)
    if tuple(log_q.shape) != (scores.shape[1],):
        raise InputError(f"log_q must have one number per column ({scores.shape[1]},), got {tuple(log_q.shape)}")
    if readable(log_q) and not bool(log_q.isfinite().all()):
        raise InputError("log_q must be finite: a column with probability 0 cannot be in the batch")
    return log_q.to(torch.float32 if scores.device.type == "mps" else torch.float64)


def check_device(name: str, value: Tensor, scores: Tensor) -> None:
    if not isinstance(value, Tensor):
        raise InputError(f"{name} must be a tensor, got {type(value).__name__}; try torch.as_tensor({name})")
    if value.device != scores.device:
        raise InputError(
            f"{name} is on {value.device}, scores are on {scores.device}; move one of them, "
            f"as in {name}.to(scores.device)"
        )


def check_range(name: str, items: Tensor, n: int, *, least: int) -> None:
    if readable(items) and items.numel() and (int(items.min()) < least or int(items.max()) >= n):
        wrong = items[(items < least) | (items >= n)].flatten()[0].item()
        raise InputError(f"{name} must be columns of scores, from {least} to {n - 1}, got {wrong}")
