"""DENS: its gates, its choice and its four tasks by hand, against finite differences and autograd, and in torch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bayesneg as bn
from bayesneg.kernels.reference import disentangled as reference
from bayesneg.kernels.reference.choices.base import Draws
from bayesneg.kernels.reference.disentangled import FactorAware
from bayesneg.models.scorers import EmbeddingScorer
from worlds import batch_of, interactions, random_interactions

OPEN, SHUT = 40.0, -40.0  # a gate of 1 and of 0, but for rounding


def vectors(n: int = 7, k: int = 3, d: int = 5, seed: int = 0) -> tuple[np.ndarray, ...]:
    """Gates, users, positives, negatives and which of these count; the first example has none."""
    rng = np.random.default_rng(seed)
    there = np.arange(k) < rng.integers(1, k + 1, n)[:, None]
    there[0] = False
    shapes = (4, d, d), (n, d), (n, d), (n, k, d)
    return (*(rng.normal(size=shape) for shape in shapes), there)


def rule_for(d: int, *, balance: float = 0.7, negatives: int = 1, kind: Any = np.float64, seed: int = 0) -> FactorAware:
    gates = np.random.default_rng(seed).normal(0.0, d**-0.5, (4, d, d)).astype(kind)
    return FactorAware(balance, negatives, 0.05, gates, np.zeros((2, 4, d, d), kind), np.zeros(1, np.int64))


# ---- by hand


def test_the_relevant_factors_of_a_negative_depend_on_those_of_the_positive() -> None:
    gates = np.zeros((4, 2, 2))
    w2, w4 = gates[1], gates[3]
    w2[0, 0], w2[1, 0] = (
        OPEN,
        SHUT,
    )  # what matters to this user is the first factor
    w4[0, 0], w4[1, 0] = OPEN, SHUT  # what is relevant of the positive is so of the negative
    found = reference.disentangle(gates, np.array([[1.0, 3.0]]), np.array([[2.0, 5.0]]), np.array([[[7.0, 11.0]]]))
    np.testing.assert_allclose(found.positive, [[2.0, 0.0]], atol=1e-12)
    np.testing.assert_allclose(found.negative, [[[7.0, 0.0]]], atol=1e-12)
    w4[:] = 0.0
    found = reference.disentangle(gates, np.array([[1.0, 3.0]]), np.array([[2.0, 5.0]]), np.array([[[7.0, 11.0]]]))
    np.testing.assert_allclose(found.negative, [[[3.5, 5.5]]])  # half-open gates


def test_the_choice_is_alike_in_irrelevant_factors_and_unlike_in_relevant_ones() -> None:
    """One user (1, 0) with the positive 0; its first factor is relevant and its second one is not."""
    items = np.array([[2.0, 3.0], [4.0, 0.0], [1.0, 1.0], [-1.0, 2.0]], dtype=np.float32)
    train = interactions([[0]], 4)
    batch = batch_of(train, EmbeddingScorer(np.array([[1.0, 0.0]], np.float32), items), np.random.default_rng(0))
    draws = Draws(np.array([[1, 2, 3]], np.int32), np.array([3], np.int32), np.empty((1, 0)), np.empty((1, 0)))
    chosen = {}
    for balance in (0.0, 0.5, 1.0):
        rule = rule_for(2, balance=balance, negatives=3)
        rule.gates[:] = 0.0
        rule.gates[[1, 3], 0, 0], rule.gates[[1, 3], 1, 0] = OPEN, SHUT
        u, p, n = (part.astype(np.float64) for part in (batch.scorer.embeddings().users, items[:1], items[None, 1:]))
        by_hand = [[4.0, 1.0, -1.0], [-2.0, 1.0, 3.5], [-8.0, 1.0, 8.0]][int(2 * balance)]
        # at balance 1: 3·0 − 2·4, 3·1 − 2·1, 3·2 + 2·1
        np.testing.assert_allclose(reference.merit(rule.gates, u, p, n, balance), [by_hand], atol=1e-10)
        chosen[balance] = rule.select(draws, batch).items.tolist()
    assert chosen == {0.0: [[1, 2, 3]], 0.5: [[3, 2, 1]], 1.0: [[3, 2, 1]]}


def test_the_loss_is_the_mean_of_four_softplus() -> None:
    gates, (u, p, n) = np.zeros((4, 1, 1)), ([[2.0]], [[3.0]], [[[5.0]]])  # gates of ½: a = b = 3, c = e = 5
    value, _ = reference.contrast(gates, np.array(u), np.array(p), np.array(n), np.array([[True]]))
    soft = np.logaddexp(0.0, [0.0, 0.0, 2.0, -2.0])  # b − a, c − e, c − a, b − e
    assert value == pytest.approx(soft.mean())


# ---- gradients


def test_the_gradient_is_that_of_finite_differences() -> None:
    gates, *rest = vectors()
    _, gradient = reference.contrast(gates, *rest)
    found, step = np.empty_like(gates), 1e-6
    for place in np.ndindex(gates.shape):
        sides = []
        for sign in (step, -step):
            moved = gates.copy()
            moved[place] += sign
            sides.append(reference.contrast(moved, *rest)[0])
        found[place] = (sides[0] - sides[1]) / (2 * step)
    np.testing.assert_allclose(gradient, found, rtol=1e-6, atol=1e-9)
    assert (np.abs(gradient).max(axis=(1, 2)) > 1e-3).all()  # every matrix is trained


def test_without_a_negative_nothing_is_learned() -> None:
    gates, *rest, there = vectors()
    value, gradient = reference.contrast(gates, *rest, np.zeros_like(there))
    assert value == 0.0
    assert not gradient.any()


def test_the_tasks_are_learned_on_a_fixed_world() -> None:
    gates, *rest = vectors(n=60, d=6)
    moments, steps, values = np.zeros((2, *gates.shape)), np.zeros(1, np.int64), []
    for _ in range(200):
        value, gradient = reference.contrast(gates, *rest)
        reference.adam_step(gates, moments, steps, gradient, 0.01)
        values.append(value)
    assert values[-1] < 0.6 * values[0]
    assert steps[0] == 200


# ---- in torch

torch = pytest.importorskip("torch")

from bayesneg.kernels.torch import disentangled as in_torch  # noqa: E402
from bayesneg.kernels.torch.selections import torch_selection  # noqa: E402
from tests.kernels.test_selections import on_device, world  # noqa: E402


def test_both_gradients_are_that_of_autograd() -> None:
    arrays = vectors()
    gates, u, p, n, there = (torch.from_numpy(part) for part in arrays)
    gates.requires_grad_()
    found, soft = in_torch.disentangle(gates, u, p, n), torch.nn.functional.softplus
    a, b = ((u * part).sum(dim=1, keepdim=True) for part in (found.positive, p - found.positive))
    c, e = ((u[:, None] * part).sum(dim=2) for part in (found.negative, n - found.negative))
    loss = (soft(b - a) + soft(c - e) + soft(c - a) + soft(b - e))[there].mean() / 4
    loss.backward()
    value, gradient = reference.contrast(*arrays)
    assert value == pytest.approx(loss.item())
    np.testing.assert_allclose(gradient, gates.grad.numpy(), rtol=1e-9, atol=1e-12)
    with torch.no_grad():
        np.testing.assert_allclose(in_torch.contrast_gradient(gates, u, p, n, there).numpy(), gradient, rtol=1e-9)


def test_a_step_is_that_of_torch_s_adam() -> None:
    gates, *rest = vectors()
    wanted = torch.nn.Parameter(torch.from_numpy(gates.copy()))
    optimizer = torch.optim.Adam([wanted], lr=0.05)
    mine, moments, steps = gates.copy(), np.zeros((2, *gates.shape)), np.zeros(1, np.int64)
    on_torch = [torch.from_numpy(part.copy()) for part in (mine, moments, steps)]
    for _ in range(3):
        _, gradient = reference.contrast(mine, *rest)
        wanted.grad = torch.from_numpy(gradient)
        optimizer.step()
        reference.adam_step(mine, moments, steps, gradient, 0.05)
        in_torch.adam_step(*on_torch, torch.from_numpy(gradient), 0.05)
        for found in (mine, on_torch[0].numpy()):
            np.testing.assert_allclose(found, wanted.detach().numpy(), rtol=1e-7)


@pytest.mark.parametrize("kind", [np.float64, np.float32])
@pytest.mark.parametrize("negatives", [1, 3])
@pytest.mark.parametrize("balance", [0.0, 0.6, 1.0])
def test_torch_chooses_and_learns_the_same(balance: float, negatives: int, kind: Any, monkeypatch) -> None:
    monkeypatch.setattr(in_torch, "NUMBERS", 100)  # so that candidates come in parts
    wanted, rule = (rule_for(4, balance=balance, negatives=negatives, kind=kind) for _ in range(2))
    selection = torch_selection(rule, torch.device("cpu"))
    selection.load(rule)
    for seed in range(4):
        batch, draws = world(seed, n=12, m=8)
        draws.sizes[0] = 0
        one, two = wanted.select(draws, batch), selection.select(*on_device(batch, draws))
        np.testing.assert_array_equal(two.items.numpy(), one.items)
        np.testing.assert_array_equal(two.weights.numpy(), one.weights)
    assert not rule.steps[0]
    selection.store()
    for mine, theirs in zip(rule[3:], wanted[3:], strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-9 if kind is np.float64 else 1e-3, atol=1e-6)
    assert rule.steps[0] == 4


def test_embeddings_of_another_width_are_refused() -> None:
    batch, draws = world()
    for select in (
        lambda rule: rule.select(draws, batch),
        lambda rule: torch_selection(rule, torch.device("cpu")).select(*on_device(batch, draws)),
    ):
        with pytest.raises(bn.BayesnegError, match="made for embeddings of width 3, and these have 4"):
            select(rule_for(3))


def test_both_executions_of_the_sampler_agree_over_epochs() -> None:
    """The sampler in NumPy, as compiled MF calls it, and the same one in torch."""
    rng = np.random.default_rng(3)
    train = random_interactions(rng, 15, 30, most=0.5)
    scorer = EmbeddingScorer(*(rng.normal(size=(n, 6)).astype(np.float32) for n in (15, 30)))
    one, two = (bn.samplers.DENS(warmup=2).prepare(train, rng=np.random.default_rng(5)) for _ in range(2))
    selection = None
    for epoch in (1, 2, 3):
        batch = batch_of(train, scorer, np.random.default_rng(epoch), epoch=epoch)
        draws = one.draws(batch)
        tensors, _, scores = on_device(batch, draws)
        rule = two.rule(batch)
        assert rule.balance == pytest.approx(0.5 * min(1.0, (epoch - 1) / 2))
        selection = selection or torch_selection(rule, torch.device("cpu"))
        selection.load(rule)
        np.testing.assert_array_equal(
            selection.select(tensors, None, scores).items.numpy(), one.rule(batch).select(draws, batch).items
        )
        selection.store()
    np.testing.assert_allclose(two.state_dict()["gates"], one.state_dict()["gates"], rtol=1e-3, atol=1e-6)
