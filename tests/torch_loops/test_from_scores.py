"""The posterior from a score matrix: equal to the specification, and usable where torch is used."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (the extra 'torch')")

import bayesneg as bn  # noqa: E402
import bayesneg.torch as bnt  # noqa: E402
from bayesneg.data.interactions import Interactions  # noqa: E402
from bayesneg.errors import InputError  # noqa: E402
from bayesneg.kernels.reference.choices.base import Draws, choose_batch  # noqa: E402
from bayesneg.kernels.reference.choices.posterior import LeastRisk  # noqa: E402
from bayesneg.kernels.reference.formulas import (  # noqa: E402
    UNOBSERVED,
    AsCounted,
    OfMixture,
    base_cdf,
    counted_unbias,
    info,
    risk,
    unbias,
)

FORMS = {"paper": AsCounted(), "uninformative": bn.likelihoods.Uninformative().form()}


def tied_scores(B: int, n: int, seed: int = 0) -> torch.Tensor:
    """Scores of which several in a row are equal."""
    return torch.from_numpy(np.round(np.random.default_rng(seed).normal(size=(B, n)), 1).astype(np.float32))


def by_hand(scores, p, positives, mask, form):
    """log ω with a loop over every entry."""
    found = np.full(scores.shape, -np.inf)
    for b, row in enumerate(scores):
        counted = ~mask[b] & (np.arange(len(row)) != positives[b])
        for k in np.flatnonzero(counted):
            F = base_cdf(form, np.sum(row[counted] <= row[k]) / (counted.sum() + 1))
            found[b, k] = np.log(unbias(F, p[b, k]))
        found[b, positives[b]] = 0.0
    return found


@pytest.mark.parametrize("likelihood", ["paper", "mixture", "uninformative", bn.likelihoods.Mixture(0.03)])
@pytest.mark.parametrize("shape", [(7, 7), (5, 40)])
def test_log_unbias_is_the_log_of_the_specification(likelihood, shape):
    rng = np.random.default_rng(1)
    scores, p, mask = tied_scores(*shape), rng.random(shape), rng.random(shape) < 0.2
    positives = np.arange(shape[0])
    counted = ~mask & (np.arange(shape[1]) != positives[:, None])
    share = p[counted].mean() if likelihood == "mixture" else 0.03
    form = FORMS.get(likelihood, OfMixture(share))
    found = bnt.log_unbias(scores, prior=torch.from_numpy(p), mask=torch.from_numpy(mask), likelihood=likelihood)
    assert found.dtype == torch.float32
    np.testing.assert_allclose(found, by_hand(scores.numpy(), p, positives, mask, form), rtol=1e-6)


def test_a_prior_is_a_number_one_per_column_or_one_per_pair():
    scores, p = tied_scores(4, 6), torch.linspace(0, 1, 6)
    each = bnt.log_unbias(scores, prior=p)
    assert torch.equal(each, bnt.log_unbias(scores, prior=p.expand(4, 6)))
    assert torch.equal(
        bnt.log_unbias(scores, prior=0.3), bnt.log_unbias(scores, prior=torch.full((6,), 0.3, dtype=torch.float64))
    )
    assert torch.equal(bnt.log_unbias(scores, prior=0), torch.zeros(4, 6))
    assert (each[:, 5] == -torch.inf).all()


def test_positives_are_given_or_on_the_diagonal():
    scores = tied_scores(4, 6)
    order = torch.tensor([5, 0, 3, 1, 2, 4])
    moved = bnt.log_unbias(scores[:, order], prior=0.2, positives=order.argsort()[:4])
    assert torch.equal(moved, bnt.log_unbias(scores, prior=0.2)[:, order])


def test_the_positive_and_what_is_masked_count_in_no_rank():
    scores = tied_scores(3, 8)
    mask = torch.zeros(3, 8, dtype=torch.bool)
    mask[:, 7] = True
    found = bnt.log_unbias(scores, prior=0.2, mask=mask)
    changed = scores.clone()
    changed[:, 7] = torch.nan
    changed[range(3), range(3)] -= 100.0
    assert torch.equal(found, bnt.log_unbias(changed, prior=0.2, mask=mask))
    assert torch.equal(found[:, :7], bnt.log_unbias(scores[:, :7], prior=0.2))
    alone = bnt.log_unbias(scores, prior=0.2, mask=~torch.eye(3, 8, dtype=torch.bool))
    assert torch.equal(alone.exp(), torch.eye(3, 8))  # no negative left: the softmax is 1


def test_columns_drawn_by_popularity_count_by_what_they_stand_for():
    """A pool in which each column occurs as often as it is popular gives nearly the F of one without copies."""
    rng = np.random.default_rng(0)
    n, times = 400, rng.integers(1, 20, size=400)
    row = torch.from_numpy(rng.normal(size=n))
    repeated = torch.from_numpy(np.repeat(np.arange(n), times))
    scores = torch.cat([torch.zeros(1), row[repeated]])[None, :]
    log_q = torch.cat([torch.zeros(1), torch.from_numpy(np.log(np.repeat(times, times)))])
    found = bnt.log_unbias(scores.double(), prior=0.3, log_q=log_q)[0, 1:]
    plain = bnt.log_unbias(torch.cat([torch.zeros(1), row])[None, :].double(), prior=0.3)[0, 1:]
    below_top = row < row.quantile(0.8)
    assert (found - plain[repeated]).abs()[below_top[repeated]].max() < 0.02
    uncorrected = bnt.log_unbias(scores.double(), prior=0.3)[0, 1:]
    assert (uncorrected - plain[repeated]).abs()[below_top[repeated]].max() > 0.05
    assert torch.equal(
        bnt.log_unbias(scores, prior=0.3, log_q=torch.full_like(log_q, -3.0)), bnt.log_unbias(scores, prior=0.3)
    )


def test_no_gradient_flows_through_the_weights():
    scores = tied_scores(4, 4).requires_grad_()
    logits = scores / 0.1 + bnt.log_unbias(scores, prior=0.2)
    torch.nn.functional.cross_entropy(logits, torch.arange(4)).backward()
    assert not bnt.log_unbias(scores, prior=0.2).requires_grad
    weights = bnt.log_unbias(scores, prior=0.2).exp() * (scores.detach() / 0.1).exp()
    by_hand = (weights / weights.sum(1, keepdim=True) - torch.eye(4)) / 0.1 / 4
    torch.testing.assert_close(scores.grad, by_hand)


def test_half_precision_and_autocast_rank_in_float32():
    vectors = torch.randn(6, 4, generator=torch.Generator().manual_seed(0))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        scores = vectors @ vectors.T
        found = bnt.log_unbias(scores, prior=0.2)
    assert (scores.dtype, found.dtype) == (torch.bfloat16, torch.float32)
    assert torch.equal(found, bnt.log_unbias(scores.float(), prior=0.2))
    assert bnt.log_unbias(scores.double(), prior=0.2).dtype == torch.float64


@pytest.mark.parametrize("likelihood", ["paper", "mixture", bn.likelihoods.Mixture(0.03)])
def test_it_is_part_of_a_compiled_graph(likelihood):
    scores = tied_scores(4, 9)

    def loss(scores):
        logits = scores / 0.1 + bnt.log_unbias(scores, prior=0.2, likelihood=likelihood)
        return torch.nn.functional.cross_entropy(logits, torch.arange(4))

    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(scores), loss(scores))


# ------------------------------------------------------------------------------------------------------------- choose


class OfMatrix:
    """A scorer that reads a matrix."""

    def __init__(self, scores):
        self.scores = scores

    def score(self, users, items):
        return self.scores[users[:, None], items]

    def score_all(self, users):
        return self.scores[users]


def observed_world(seed=0, B=30, n=25):
    rng = np.random.default_rng(seed)
    observed = rng.random((B, n)) < 0.3
    positives = rng.integers(0, n, size=B)
    observed[np.arange(B), positives] = True
    return tied_scores(B, n, seed), torch.from_numpy(positives), torch.from_numpy(observed), rng


@pytest.mark.parametrize("likelihood", [AsCounted(), OfMixture(0.05)])
def test_choose_is_the_choice_of_the_specification(likelihood):
    scores, positives, observed, rng = observed_world()
    B, n = scores.shape
    p = rng.random((B, n))
    candidates = np.stack([rng.choice(np.flatnonzero(~row), size=4, replace=False) for row in observed.numpy()])
    train = Interactions.from_numbers(*np.nonzero(observed.numpy()), user_ids=np.arange(B), item_ids=np.arange(n))
    draws = Draws(
        candidates.astype(np.int32), np.full(B, 4, dtype=np.int32), np.take_along_axis(p, candidates, 1), None
    )
    batch = bn.Batch(np.arange(B), positives.numpy(), np.arange(B), 1, train, OfMatrix(scores.numpy()), rng)
    expected = choose_batch(LeastRisk(5.0, UNOBSERVED, likelihood), draws, batch)
    given = "paper" if likelihood == AsCounted() else bn.likelihoods.Mixture(0.05)
    settings = {"observed": observed, "prior": torch.from_numpy(p), "likelihood": given}
    found = bnt.choose(scores, positives, candidates=torch.from_numpy(candidates), **settings)
    assert found.tolist() == expected.tolist()


def test_several_negatives_come_in_order_of_risk():
    scores, positives, observed, rng = observed_world(1)
    p = rng.random(scores.shape)
    found = bnt.choose(scores, positives, observed=observed, prior=torch.from_numpy(p), candidates="all", negatives=6)
    x = scores.numpy()
    for b, chosen in enumerate(found.numpy()):
        free = np.flatnonzero(~observed[b].numpy())
        counts = (x[b, free][None, :] <= x[b, free][:, None]).sum(axis=1)
        risks = risk(
            info(x[b, positives[b]], x[b, free]), counted_unbias(AsCounted(), counts, len(free), p[b, free]), 5.0
        )
        assert chosen.tolist() == free[np.argsort(risks, kind="stable")[:6]].tolist()


def test_candidates_are_uniform_over_unobserved_items_and_follow_the_generator():
    scores = torch.zeros(20_000, 6)
    positives, observed = torch.zeros(20_000, dtype=torch.long), torch.zeros(20_000, 6, dtype=torch.bool)
    observed[:, 3] = True

    def chosen(seed):
        generator = torch.Generator().manual_seed(seed)
        return bnt.choose(scores, positives, observed=observed, prior=0.1, candidates=2, generator=generator)

    counts = torch.bincount(chosen(0), minlength=6)
    assert counts[0] == counts[3] == 0
    assert (counts[[1, 2, 4, 5]] - 5000).abs().max() < 5 * (20_000 * 0.25 * 0.75) ** 0.5
    assert torch.equal(chosen(0), chosen(0))
    assert not torch.equal(chosen(0), chosen(1))


def test_no_negative_is_minus_one():
    observed = torch.tensor([[True, True, True], [True, False, True]])
    settings = {"observed": observed, "prior": 0.1}
    positives = torch.tensor([0, 2])
    assert bnt.choose(torch.zeros(2, 3), positives, **settings).tolist() == [bn.NO_NEGATIVE, 1]
    assert bnt.choose(torch.zeros(2, 3), positives, **settings, negatives=2).tolist() == [[-1, -1], [1, -1]]


# ---------------------------------------------------------------------------------------------------------- bad input

SQUARE, FIRST = torch.zeros(3, 3), torch.zeros(3, dtype=torch.long)
META = torch.device("meta")  # a second device, on any machine


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: bnt.log_unbias(SQUARE[0], prior=0.1), r"scores must be a tensor \(B, n\) .* got \(3,\)"),
        (lambda: bnt.log_unbias(SQUARE.numpy(), prior=0.1), "scores must be a tensor .* got ndarray"),
        (lambda: bnt.log_unbias(torch.zeros(1, 1), prior=0.1), "two examples or more; raise the batch size"),
        (lambda: bnt.log_unbias(torch.zeros(3, 2), prior=0.1), "2 columns for 3 examples; give positives"),
        (lambda: bnt.log_unbias(SQUARE * torch.nan, prior=0.1), "scores contain NaN; lower the learning rate"),
        (lambda: bnt.log_unbias(SQUARE, prior=1.5), "prior must be a number of at least 0 and at most 1, got 1.5"),
        (lambda: bnt.log_unbias(SQUARE, prior=torch.tensor([0.1, -0.5, 0.1])), "from 0 to 1, got -0.5"),
        (lambda: bnt.log_unbias(SQUARE, prior=torch.tensor([0.1, 0.1])), r"shape \(3,\) or \(3, 3\), got \(2,\)"),
        (lambda: bnt.log_unbias(SQUARE, prior=FIRST.to(META)), "prior is on meta, scores are on cpu; move one"),
        (lambda: bnt.log_unbias(SQUARE, prior=0.1, positives=FIRST.to(META)), r"positives.to\(scores.device\)"),
        (lambda: bnt.log_unbias(SQUARE, prior=0.1, positives=FIRST + 3), "positives must be columns .* 0 to 2, got 3"),
        (lambda: bnt.log_unbias(SQUARE, prior=0.1, positives=FIRST.double()), "positives must be whole numbers"),
        (lambda: bnt.log_unbias(SQUARE, prior=0.1, mask=SQUARE), "mask must be True or False for each score"),
        (lambda: bnt.log_unbias(SQUARE, prior=0.1, log_q=SQUARE), "log_q must have one number per column"),
        (lambda: bnt.log_unbias(SQUARE, prior=0.1, log_q=-torch.inf * SQUARE[0].add(1)), "log_q must be finite"),
        (lambda: bnt.log_unbias(SQUARE, prior=0.1, likelihood="best"), "likelihood must be one of"),
        (lambda: bnt.choose(SQUARE, [0, 0, 0], prior=0.1), "positives must be a tensor, got list"),
        (lambda: bnt.choose(SQUARE, FIRST - 1, prior=0.1), "positives must be columns of scores, from 0 to 2, got -1"),
        (lambda: bnt.choose(SQUARE, FIRST, prior=0.1, observed=SQUARE), "observed must be True or False"),
        (lambda: bnt.choose(SQUARE, FIRST, prior=0.1, candidates=0), "candidates must be a whole number"),
        (lambda: bnt.choose(SQUARE, FIRST, prior=0.1, candidates=SQUARE.long() + 3), "from -1 to 2, got 3"),
        (lambda: bnt.choose(SQUARE, FIRST, prior=0.1, candidates=SQUARE), "candidates must be whole numbers"),
        (lambda: bnt.choose(SQUARE, FIRST, prior=0.1, candidates=2, negatives=3), "at most the 2 candidates, got 3"),
        (lambda: bnt.choose(SQUARE, FIRST, prior=0.1, weight=-1.0), "weight must be a number of at least 0"),
    ],
)  # fmt: skip
def test_bad_input_is_answered_with_a_sentence(call, message):
    with pytest.raises(InputError, match=message):
        call()


@pytest.mark.gpu
def test_on_a_gpu_the_numbers_are_those_of_the_cpu_and_nothing_is_copied_to_the_host(nothing_waits):
    scores, p = tied_scores(300, 300), torch.rand(300)
    on_gpu = scores.cuda(), p.cuda()
    with nothing_waits():
        with torch.autocast("cuda"):
            found = bnt.log_unbias(on_gpu[0], prior=on_gpu[1])
        chosen = bnt.choose(on_gpu[0], torch.zeros(300, dtype=torch.long, device="cuda"), prior=0.1)
        wrong = bnt.log_unbias(on_gpu[0], prior=on_gpu[1] + 1)
    torch.testing.assert_close(found.cpu(), bnt.log_unbias(scores, prior=p))
    assert found.is_cuda
    assert (chosen > 0).all()
    assert wrong[0, 1:].isnan().any()
    with pytest.raises(InputError, match="generator is on cpu, scores are on cuda:0"):
        bnt.choose(on_gpu[0], torch.zeros(300, dtype=torch.long, device="cuda"), prior=0.1, generator=torch.Generator())
