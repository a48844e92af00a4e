"""What loops pass: types, views, precision, users without negatives, compiled steps, checkpoints."""

from __future__ import annotations

import numpy as np
import pytest

import bayesneg as bn

torch = pytest.importorskip("torch")

import bayesneg.torch as bnt  # noqa: E402
from tests.torch_loops.test_sampler import SAMPLERS, SPLIT, TRAIN, loop  # noqa: E402

USERS, ITEMS = (torch.tensor(part[:64]).long() for part in (TRAIN.users, TRAIN.indices))
POOL = bn.BNS(candidates=30, shared=True, weighting="posterior", cdf="pool")


def tables(dtype=torch.float32):
    generator = torch.Generator().manual_seed(0)
    return tuple(torch.randn(n, 8, generator=generator).to(dtype) for n in (TRAIN.n_users, TRAIN.n_items))


def sampled(sampler, users=USERS, items=ITEMS, vectors=None):
    return bnt.Sampler(sampler, TRAIN, seed=1)(users, items, *(vectors or tables()))


@pytest.mark.parametrize("sampler", [bn.BNS(), POOL], ids=["each", "shared"])
@pytest.mark.parametrize(
    "change",
    [
        lambda U, V: (U.requires_grad_(), V.requires_grad_()),
        lambda U, V: (U.t().contiguous().t(), V.t().contiguous().t()),
        lambda U, V: (torch.cat([U, U])[: len(U)], torch.cat([V, V], dim=1)[:, :8]),
        lambda U, V: (U.double(), V.double()),
        lambda U, V: (U * torch.nn.Parameter(torch.ones(8)), V),
    ],
    ids=["leaves", "transposed", "views", "double", "results"],
)
def test_tables_of_any_layout_give_the_same_negatives(change, sampler):
    plain, other = sampled(sampler), sampled(sampler, vectors=change(*tables()))
    torch.testing.assert_close(tuple(plain[:2]), tuple(other[:2]))
    assert not other.weights.requires_grad


def test_ids_may_be_of_any_integer_type():
    plain = sampled(bn.BNS())
    for kind in (torch.int32, torch.int16):
        torch.testing.assert_close(tuple(sampled(bn.BNS(), USERS.to(kind), ITEMS.to(kind))), tuple(plain))


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("shared", [False, True])
def test_scores_of_half_precision_are_computed_in_float32(kind, shared):
    """Embeddings in half precision are rounded once: the loss is that of the rounded embeddings in float32."""
    U, V = (table.requires_grad_() for table in tables(kind))
    exact_U, exact_V = (table.detach().float().requires_grad_() for table in (U, V))
    negatives = sampled(POOL if shared else bn.RNS(negatives=4), vectors=(U, V))
    settings = {"temperature": 0.1, "similarity": "cosine"}
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = bnt.losses.softmax(U[USERS], V[ITEMS], V, negatives, **settings)
    exact = bnt.losses.softmax(exact_U[USERS], exact_V[ITEMS], exact_V, negatives, **settings)
    assert loss.dtype == torch.float32
    torch.testing.assert_close(loss, exact)
    loss.backward()
    exact.backward()
    assert V.grad.dtype == kind
    torch.testing.assert_close(V.grad.float(), exact_V.grad, rtol=0.02, atol=1e-3)


# ------------------------------------------------------------------------------------------ users without a negative


FULL = bn.Interactions.from_numbers(  # user 0 has all five items, user 1 two, user 2 none
    np.array([0, 0, 0, 0, 0, 1, 1]),
    np.array([0, 1, 2, 3, 4, 0, 2]),
    user_ids=np.arange(3),
    item_ids=np.arange(5),
)


@pytest.mark.parametrize(
    "sampler",
    [
        bn.RNS(),
        bn.PNS(),
        bn.DNS(),
        bn.SRNS(memory=2, fresh=2),
        bn.AOBPR(scale=2.0),
        bn.AOBPR(rank="factor", scale=2.0),
        bn.BNS(),
        bn.BNS(cdf="exact"),
        bn.BNS(weighting="posterior", candidates=3),
        bn.RNS(negatives=5, shared=True),
        bn.BNS(candidates=5, shared=True, weighting="posterior"),
        bn.samplers.InBatch(),
    ],
    ids=lambda sampler: repr(sampler)[:40],
)
def test_an_example_without_a_negative_adds_nothing(sampler):
    U, V = torch.randn(3, 4, requires_grad=True), torch.randn(5, 4, requires_grad=True)
    bound = bnt.Sampler(sampler, FULL)
    users, items = torch.tensor([0, 1, 1]), torch.tensor([1, 0, 2])
    with pytest.warns(UserWarning, match="1 of 3 examples, one of user 0, have no negative that counts"):
        negatives = bound(users, items, U, V)
    assert negatives.weights[0].sum() == 0
    losses = bnt.losses.softmax(
        U[users], V[items], V, negatives, temperature=0.5, similarity="cosine", reduction="none"
    )
    assert losses[0] == 0
    mean = bnt.losses.softmax(U[users], V[items], V, negatives, temperature=0.5, similarity="cosine")
    counted = (negatives.weights > 0).any(dim=1)
    torch.testing.assert_close(mean, losses.sum() / counted.sum().clamp(min=1))
    mean.backward()
    assert (U.grad[0] == 0).all()
    alone = bound(users[:1].repeat(2), items[:1].repeat(2), U, V)  # no example has a negative
    loss = bnt.losses.bpr(U[users[:1].repeat(2)], V[items[:1].repeat(2)], V, alone)
    assert loss.item() == 0
    loss.backward()


def test_fit_skips_users_without_negatives_and_says_how_many():
    ids = {"user_ids": FULL.user_ids, "item_ids": FULL.item_ids}
    split = bn.Split(train=FULL, test=bn.Interactions.from_numbers(np.array([1]), np.array([3]), **ids))
    model = bn.TorchMF(dim=4, device="cpu", batch_size=2)
    several = bn.RNS(negatives=3, shared=True), bn.BNS(candidates=3, weighting="posterior"), bn.samplers.InBatch()
    for sampler in several:
        run = bn.fit(model, split, sampler, loss="softmax", epochs=1, progress=False, select="last")
        assert run.record.epochs[0]["skipped"] >= 5
        assert all(np.isfinite(part).all() for part in run.scorer.embeddings())


# -------------------------------------------------------------------------------------------------- compiled, restored


@pytest.mark.filterwarnings("ignore")  # torch.compile looks at attributes that warn
@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("name", ["bpr", "softmax", "ccl", "psl", "logistic", "dcl", "hcl"])
def test_a_loss_compiles_in_one_graph(name, shared):
    U, V = (table.requires_grad_() for table in tables())
    negatives, loss = sampled(POOL if shared else bn.RNS(negatives=3)), getattr(bnt.losses, name)

    def step(U, V, negatives):
        return loss(U[USERS], V[ITEMS], V, negatives)

    torch._dynamo.reset()
    found, plain = torch.compile(step, backend="aot_eager", fullgraph=True)(U, V, negatives), step(U, V, negatives)
    torch.testing.assert_close(found, plain)
    torch.testing.assert_close(torch.autograd.grad(found, (U, V)), torch.autograd.grad(plain, (U, V)))


def test_a_state_of_the_middle_of_an_epoch_goes_on():
    for name in ("bns", "srns", "aobpr by factor"):
        whole = bnt.Sampler(SAMPLERS[name], TRAIN, seed=2)
        vectors = tables()
        whole(USERS, ITEMS, *vectors)
        state = whole.state_dict()
        restored = bnt.Sampler(SAMPLERS[name], TRAIN)
        restored.load_state_dict(state)
        assert restored.state_dict()["step"] == 1  # before the first call, too
        torch.testing.assert_close(
            tuple(whole(USERS, ITEMS, *vectors)[:2]), tuple(restored(USERS, ITEMS, *vectors)[:2]), rtol=0, atol=0
        )


def test_a_state_is_refused_where_it_is_none():
    with pytest.raises(bn.BayesnegError, match="state must be what state_dict"):
        bnt.Sampler("bns", TRAIN).load_state_dict({"epoch": 3})


@pytest.mark.parametrize(
    ("name", "key", "damage", "words"),
    [
        ("srns", "items", lambda array: array.fill_(2**30), "items has the value 1073741824, and all must be below"),
        ("srns", "items", lambda array: array[:-1], "items has the shape"),
        ("aobpr by factor", "orders", lambda array: array.fill_(2**30), "orders has the value 1073741824"),
        ("aobpr by factor", "orders", lambda array: array[:-1], "orders has the shape"),
        ("aobpr by factor", "spreads", lambda array: array * np.nan, "spreads has numbers that are not finite"),
        ("bns", "summaries.knots", lambda array: array * np.inf, "knots has numbers that are not finite"),
    ],
)
def test_a_damaged_state_is_refused_before_compiled_code_sees_it(name, key, damage, words):
    whole, vectors = bnt.Sampler(SAMPLERS[name], TRAIN, seed=2), tables()
    whole(USERS, ITEMS, *vectors)
    state = whole.state_dict()
    state["sampler"][key] = damage(state["sampler"][key].clone())
    restored = bnt.Sampler(SAMPLERS[name], TRAIN)
    restored.load_state_dict(state)
    for _ in range(2):  # a second call does not get through either
        with pytest.raises(bn.BayesnegError, match=words):
            restored(USERS, ITEMS, *vectors)


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("epoch", -1, "epoch must be a whole number of at least 1"),
        ("seed", "x", "seed must be a whole number"),
        ("sampler", [1], "sampler of a state must be tensors by name"),
        ("summaries", {"knots": 1}, "summaries of a state must be tensors by name"),
    ],
)
def test_a_state_of_other_types_is_refused(key, value, words):
    state = bnt.Sampler("bns", TRAIN).state_dict()
    with pytest.raises(bn.BayesnegError, match=words):
        bnt.Sampler("bns", TRAIN).load_state_dict({**state, key: value})


def test_draws_depend_on_seed_epoch_and_step_alone():
    """A batch of another size before does not change what the next one draws."""
    one, two = (bnt.Sampler(bn.RNS(), TRAIN, seed=4) for _ in range(2))
    one(USERS, ITEMS, *tables())
    two(USERS[:5], ITEMS[:5], *tables())
    assert torch.equal(one(USERS, ITEMS, *tables()).items, two(USERS, ITEMS, *tables()).items)


def test_srns_reads_the_scores_of_past_epochs_with_any_loss():
    """α weighs the deviation over past epochs: without them it would change nothing."""
    model = bn.TorchMF(dim=4, device="cpu", batch_size=128, learning_rate=0.05, similarity="cosine")

    def trained(alpha):
        sampler = bn.SRNS(memory=5, fresh=5, alpha=alpha, warmup=1)
        run = bn.fit(model, SPLIT, sampler, loss="softmax", epochs=4, progress=False, select="last")
        return run.scorer.embeddings().users

    assert not np.array_equal(trained(0.0), trained(50.0))


def test_a_loop_with_a_learned_state_is_restored_between_epochs():
    whole = bnt.Sampler(bn.BNS(prior="self", likelihood="uninformative"), TRAIN, seed=0)
    loop(whole, epochs=1)
    restored = bnt.Sampler(bn.BNS(prior="self", likelihood="uninformative"), TRAIN)
    restored.load_state_dict(whole.state_dict())
    (_, one), (_, two) = loop(whole, epochs=1), loop(restored, epochs=1)
    torch.testing.assert_close(one, two, rtol=0, atol=0)
