"""bayesneg.torch.Sampler and losses, used as a stranger would."""

from __future__ import annotations

import numpy as np
import pytest

import bayesneg as bn
from bayesneg.interfaces import weighted_pairs

torch = pytest.importorskip("torch")

import bayesneg.torch as bnt  # noqa: E402
from bayesneg.kernels.torch.draws import RowKeys, WeightedKeys, uniform_candidates  # noqa: E402
from bayesneg.models.torch.device import rows_on  # noqa: E402

SPLIT = bn.split(bn.synthetic(80, 60, seed=0), test=0.2, seed=0)
TRAIN = SPLIT.train
DEVICES = [
    "cpu",
    pytest.param("cuda", marks=[pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")]),
]
SAMPLERS = {
    "rns": bn.RNS(),
    "rns, several": bn.RNS(negatives=4),
    "rns, shared": bn.RNS(negatives=30, shared=True),
    "pns": bn.PNS(),
    "pns, several": bn.PNS(negatives=4),
    "pns, shared": bn.PNS(negatives=30, shared=True),
    "dns": bn.DNS(candidates=4),
    "dns, several": bn.DNS(candidates=6, top=4, negatives=3),
    "aobpr": bn.AOBPR(scale=10.0),
    "aobpr by factor": bn.AOBPR(rank="factor", scale=10.0),
    "srns": bn.SRNS(memory=5, fresh=5),
    "bns": bn.BNS(),
    "bns, refreshed": bn.BNS(cdf="refreshed"),
    "bns, learned": bn.BNS(prior="learned", candidates=6, negatives=2),
    "bns, risk": bn.BNS(candidates=6, weighting="risk", likelihood="mixture"),
    "bns, shared": bn.BNS(candidates=30, weighting="posterior", shared=True, cdf="pool"),
    "bns, shared, exact": bn.BNS(candidates=30, weighting="posterior", shared=True, cdf="exact", prior="learned"),
    "bns, empirical": bn.BNS(likelihood="empirical"),
    "posterior": bn.Posterior(),
    "in-batch": bn.samplers.InBatch(weighting="posterior"),
    "oracle": bn.BNS(prior=bn.priors.Oracle(SPLIT.test)),
    "ahns": bn.samplers.AHNS(candidates=4),
    "dens": bn.samplers.DENS(candidates=4, warmup=0, gate_learning_rate=0.5, negatives=2),
    "mixgcf": bn.samplers.MixGCF(candidates=4, negatives=2),
    "sir": bn.samplers.SIR(candidates=6),
    "sir, several": bn.samplers.SIR(candidates=6, proposal="popularity", negatives=3),
}


def loop(sampler, device="cpu", *, epochs=2, loss=bnt.losses.bpr, seed=0, steps_before=None):
    """A bare loop; yields what was sampled, and the embeddings at the end."""
    torch.manual_seed(seed)
    U, V = (torch.nn.Parameter(0.1 * torch.randn(n, 8, device=device)) for n in (TRAIN.n_users, TRAIN.n_items))
    optimizer = torch.optim.Adam([U, V], lr=0.02)
    users, items = (torch.from_numpy(part.astype(np.int64)).to(device) for part in (TRAIN.users, TRAIN.indices))
    order = torch.randperm(len(users), generator=torch.Generator().manual_seed(1)).to(device)
    seen = []
    for _ in range(epochs):
        for batch in order.split(128):
            negatives = sampler(users[batch], items[batch], U, V)
            loss(U[users[batch]], V[items[batch]], V, negatives).backward()
            optimizer.step()
            optimizer.zero_grad()
            seen.append((users[batch].cpu().numpy(), negatives))
        sampler.end_epoch(U, V)
    return seen, (U.detach().cpu(), V.detach().cpu())


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", SAMPLERS)
def test_every_sampler_works_in_a_bare_loop_and_is_deterministic_by_seed(name, device):
    (seen, one), (_, two) = (loop(bnt.Sampler(SAMPLERS[name], TRAIN, seed=3), device) for _ in range(2))
    if device == "cpu":
        torch.testing.assert_close(one, two, rtol=0, atol=0)
    for users, negatives in seen:
        assert negatives.items.device.type == device
        assert not negatives.items.requires_grad
        moved = bn.Negatives(*(None if part is None else part.detach().cpu().numpy() for part in negatives))
        items, weights = weighted_pairs(moved, len(users))
        wide = np.broadcast_to(users[:, None], items.shape)
        assert not TRAIN.contains(wide[weights > 0], items[weights > 0]).any()
        assert (weights >= 0).all()
        if "empirical" not in name:  # which holds pairs out of training
            assert (weights.sum(axis=1) > 0).all()


@pytest.mark.parametrize("name", ["rns", "dns", "bns", "bns, shared", "srns", "pns"])
def test_another_seed_gives_other_negatives(name):
    one, two = (loop(bnt.Sampler(SAMPLERS[name], TRAIN, seed=seed), epochs=1)[1] for seed in (0, 1))
    assert not torch.equal(one[0], two[0])


@pytest.mark.parametrize("name", ["rns", "bns", "srns", "dens", "aobpr by factor", "bns, shared", "bns, empirical"])
def test_a_sampler_goes_on_from_its_state(name):
    whole = bnt.Sampler(SAMPLERS[name], TRAIN, seed=0)
    loop(whole, epochs=1)
    state = whole.state_dict()
    restored = bnt.Sampler(SAMPLERS[name], TRAIN, seed=99)
    restored.load_state_dict(torch.load(_saved(state), weights_only=True))
    (_, one), (_, two) = loop(whole), loop(restored)
    torch.testing.assert_close(one, two, rtol=0, atol=0)


def _saved(state):
    import io

    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    return file


def test_global_random_state_is_left_alone():
    U, V = torch.randn(80, 4), torch.randn(60, 4)
    users, items = (torch.from_numpy(part[:9].astype(np.int64)) for part in (TRAIN.users, TRAIN.indices))
    before = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    bnt.Sampler(bn.BNS(), TRAIN)(users, items, U, V)
    assert torch.equal(torch.get_rng_state(), before[0])
    np.testing.assert_array_equal(np.random.get_state()[1], before[1])  # noqa: NPY002


# --------------------------------------------------------------------------------------------------------- the draws


def test_candidates_are_unobserved_distinct_and_uniform():
    keys = RowKeys(rows_on(TRAIN, torch.device("cpu")))
    user = int(np.argmax(TRAIN.counts))
    free = np.setdiff1d(np.arange(TRAIN.n_items), TRAIN.row(user))
    users = torch.full((40_000,), user)
    items, sizes = uniform_candidates(users, keys, 3, torch.Generator().manual_seed(0))
    assert (sizes == 3).all()
    assert (items.sort(dim=1).values.diff(dim=1) > 0).all()
    for k in range(3):
        counts = np.bincount(items[:, k].numpy(), minlength=TRAIN.n_items)
        assert set(np.flatnonzero(counts)) == set(free)
        expected = 40_000 / len(free)
        assert ((counts[free] - expected) ** 2 / expected).sum() < len(free) + 5 * np.sqrt(2 * len(free))


def test_a_user_with_few_unobserved_items_gets_all_of_them():
    pairs = np.array([[1, 0, 1, 1, 0, 1], [0, 1, 0, 0, 1, 0]])
    data = bn.Interactions.from_pairs(*np.nonzero(pairs))
    keys = RowKeys(rows_on(data, torch.device("cpu")))
    items, sizes = uniform_candidates(torch.tensor([0, 1]), keys, 4, torch.Generator().manual_seed(0))
    assert sizes.tolist() == [2, 4]
    names = data.item_ids[items[0, :2].numpy()].tolist()
    assert sorted(names) == [1, 4]
    assert items[0, 2:].tolist() == [-1, -1]


def test_weighted_candidates_follow_their_weights():
    keys = RowKeys(rows_on(TRAIN, torch.device("cpu")))
    weights = torch.arange(1.0, TRAIN.n_items + 1)
    users = torch.zeros(40_000, dtype=torch.int64)
    items, _ = WeightedKeys(keys, weights).drawn(users, 1, torch.Generator().manual_seed(0))
    free = np.setdiff1d(np.arange(TRAIN.n_items), TRAIN.row(0))
    counts = np.bincount(items[:, 0].numpy(), minlength=TRAIN.n_items)
    expected = 40_000 * weights.numpy()[free] / weights.numpy()[free].sum()
    assert counts.sum() == counts[free].sum()
    assert ((counts[free] - expected) ** 2 / expected).sum() < len(free) + 5 * np.sqrt(2 * len(free))


def test_the_choice_is_that_of_the_specification():
    """BNS over all unobserved items has no chance in it: fit's h* and the torch sampler choose the same."""
    U, V = (
        torch.randn(80, 6, generator=torch.Generator().manual_seed(0)),
        torch.randn(60, 6, generator=torch.Generator().manual_seed(1)),
    )
    users, items = (torch.from_numpy(part.astype(np.int64)) for part in (TRAIN.users[:200], TRAIN.indices[:200]))
    found = bnt.Sampler(bn.BNS(candidates="all", cdf="exact"), TRAIN)(users, items, U, V)
    from bayesneg.models.scorers import EmbeddingScorer

    scorer = EmbeddingScorer(U.numpy(), V.numpy())
    batch = bn.Batch(TRAIN.users[:200], TRAIN.indices[:200], np.arange(200), 1, TRAIN, scorer, np.random.default_rng(0))
    wanted = bn.BNS(candidates="all", cdf="exact").prepare(TRAIN, rng=np.random.default_rng(0)).sample(batch)
    np.testing.assert_array_equal(found.items[:, 0].numpy(), wanted)


# ------------------------------------------------------------------------------------------------------------- losses


LOSSES = ["bpr", "softmax", "ccl", "psl", "logistic", "dcl", "hcl"]


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("similarity", ["inner", "cosine"])
@pytest.mark.parametrize("name", LOSSES)
def test_gradients_of_embeddings_agree_with_finite_differences(name, similarity, shared):
    generator = torch.Generator().manual_seed(0)
    w, h, table = (
        torch.randn(n, 3, dtype=torch.float64, generator=generator).mul(0.4).requires_grad_() for n in (4, 4, 9)
    )
    items = torch.tensor([8, 1, 5]) if shared else torch.tensor([[0, 1], [2, 2], [7, 8], [3, -1]])
    weights = torch.rand(4, items.shape[-1], dtype=torch.float64, generator=generator)
    if not shared:
        weights[3, 1] = 0
    negatives = bnt.Negatives(items, weights)
    loss = getattr(bnt.losses, name)
    assert torch.autograd.gradcheck(
        lambda *args: loss(*args, negatives, similarity=similarity), (w, h, table), eps=1e-6
    )


def test_the_loss_of_fit_is_the_loss_of_a_loop():
    generator = torch.Generator().manual_seed(0)
    w, h, table = (torch.randn(n, 5, generator=generator).requires_grad_() for n in (6, 6, 20))
    negatives = bnt.Negatives(torch.arange(10), torch.rand(6, 10, generator=generator))
    found = bnt.losses.softmax(w, h, table, negatives, temperature=0.5, negative_weight=1.2, reduction="none")
    scores = bn.losses.Scores(
        (w * h).sum(1).detach().numpy(), (w @ table[:10].T).detach().numpy(), negatives.weights.numpy()
    )
    np.testing.assert_allclose(found.detach().numpy(), bn.losses.Softmax(0.5, 1.2).evaluate(scores).value, rtol=1e-5)


def test_vectors_take_the_place_of_items():
    w, h = torch.ones(2, 3, requires_grad=True), torch.ones(2, 3, requires_grad=True)
    vectors = torch.zeros(2, 1, 3, requires_grad=True)
    bnt.losses.bpr(w, h, None, bnt.Negatives(torch.zeros(2, 1, dtype=torch.int64), None, None, vectors)).backward()
    assert vectors.grad.abs().sum() > 0


@pytest.mark.filterwarnings("ignore")  # torch.compile looks at attributes that warn
def test_the_loop_works_under_autocast_and_compile():
    settings = bn.BNS(candidates=30, shared=True, weighting="posterior", cdf="pool")
    U, V = (torch.randn(n, 8, requires_grad=True) for n in (80, 60))
    users, items = (torch.from_numpy(part[:64].astype(np.int64)) for part in (TRAIN.users, TRAIN.indices))

    def step(U, V, sampler=None):
        negatives = (sampler or bnt.Sampler(settings, TRAIN))(users, items, U, V)
        return bnt.losses.softmax(U[users], V[items], V, negatives, temperature=0.5)

    plain = step(U, V)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = step(U, V)
    assert loss.dtype == torch.float32
    loss.backward()
    assert torch.isfinite(U.grad).all()
    assert abs(loss.item() - plain.item()) < 0.5
    compiled = torch.compile(step, backend="eager")
    assert compiled(U, V, bnt.Sampler(settings, TRAIN)).item() == pytest.approx(plain.item(), rel=1e-5)


# ---------------------------------------------------------------------------------------------------------- bad input


USERS, ITEMS = TRAIN.users[:2].tolist(), TRAIN.indices[:2].tolist()  # two training pairs
OTHER = int(np.setdiff1d(np.arange(TRAIN.n_items), TRAIN.row(USERS[0]))[0])


def call(users=USERS, positives=ITEMS, U=None, V=None, sampler="bns", **changes):
    U, V = torch.randn(80, 4) if U is None else U, torch.randn(60, 4) if V is None else V
    return bnt.Sampler(sampler, TRAIN, **changes)(torch.tensor(users), torch.tensor(positives), U, V)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: call(users=(0, 80)), "users must be dense numbers from 0 to 79, got 80; pass the numbers"),
        (lambda: call(positives=(0, -1)), "positives must be dense numbers from 0 to 59, got -1"),
        (lambda: call(users=(0.0, 1.0)), r"users must be a tensor \(B,\) of whole numbers, got torch.float32"),
        (lambda: call(users=(0, 1, 2)), "users and positives must be of one length, got 3 and 2"),
        (lambda: call(U=torch.randn(79, 4)), r"user_vectors must be the embeddings \(80, d\)"),
        (
            lambda: call(V=torch.randn(60, 4, device="meta")),
            "must be on one device, got .* item_vectors on meta",
        ),
        (
            lambda: call(users=USERS[:1], positives=ITEMS[:1], sampler="in-batch"),
            r"batch_size to 2 .*\(drop_last=True\)",
        ),
        (
            lambda: call(positives=(OTHER, ITEMS[1])),
            f"must be training items .* item {OTHER} is none of user",
        ),
        (lambda: call(users=(), positives=()), "users must be a tensor"),
        (lambda: call(V=torch.randn(60, 5)), "user_vectors and item_vectors must have one width, got 4 and 5"),
        (lambda: call(similarity="dot"), "similarity must be one of inner, cosine, got 'dot'"),
        (lambda: bnt.Sampler("bns", [[0, 1]]), "train must be interactions"),
        (lambda: bnt.Sampler("hard", TRAIN), "sampler must be one of"),
    ],
)
def test_wrong_input_is_refused_with_a_sentence(make, said):
    with pytest.raises(bn.BayesnegError, match=said):
        make()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"negatives": bnt.Negatives(torch.tensor([[9]]), None)}, "negatives.items must be item numbers from 0 to 4"),
        ({"negatives": bnt.Negatives(torch.tensor([[0]]), torch.tensor([[-1.0]]))}, "finite and at least 0"),
        ({"negatives": bnt.Negatives(torch.tensor([[0]]), torch.tensor([[float("nan")]]))}, "finite and at least 0"),
        ({"negatives": torch.tensor([[0]])}, "negatives must be Negatives, as a Sampler returns them"),
        ({"users": torch.ones(1, 3), "positives": torch.ones(1, 3), "items": torch.ones(5, 3)}, "need a gradient"),
        ({"temperature": 0}, "temperature must be a number above 0, got 0"),
        ({"reduction": "max"}, "reduction must be one of mean, sum, none"),
    ],
)
def test_a_loss_refuses_what_it_cannot_learn_from(change, said):
    given = {
        "users": torch.ones(1, 3, requires_grad=True),
        "positives": torch.ones(1, 3, requires_grad=True),
        "items": torch.ones(5, 3, requires_grad=True),
        "negatives": bnt.Negatives(torch.tensor([[0]])),
    }
    with pytest.raises(bn.BayesnegError, match=said):
        bnt.losses.softmax(**{**given, **change})


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
@pytest.mark.parametrize("name", [name for name in SAMPLERS if name not in ("bns, refreshed", "aobpr by factor")])
def test_nothing_waits_for_the_gpu(name, nothing_waits):
    sampler = bnt.Sampler(SAMPLERS[name], TRAIN)
    U, V = torch.randn(80, 8, device="cuda"), torch.randn(60, 8, device="cuda")
    users, items = (torch.from_numpy(part[:64].astype(np.int64)).cuda() for part in (TRAIN.users, TRAIN.indices))
    sampler(users, items, U, V)  # binds, compiles
    with nothing_waits():
        sampler(users, items, U, V)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
@pytest.mark.parametrize("name", SAMPLERS)
def test_a_replayed_call_samples_what_the_call_itself_does(name):
    replaying, launching = (bnt.Sampler(SAMPLERS[name], TRAIN, seed=3) for _ in range(2))
    U, V = torch.randn(80, 8, device="cuda"), torch.randn(60, 8, device="cuda")
    users, items = (torch.from_numpy(part.astype(np.int64)).cuda() for part in (TRAIN.users, TRAIN.indices))
    order = torch.randperm(len(users), generator=torch.Generator().manual_seed(1)).cuda()
    replayed = 0
    for _ in range(2):
        for batch in (*order.split(64)[:5], order[:30]):
            U += 0.1 * torch.randn_like(U)  # in place, as an optimizer does
            V += 0.1 * torch.randn_like(V)
            found = replaying(users[batch], items[batch], U, V)
            launching._recorded = None
            expected = launching(users[batch], items[batch], U, V)
            replayed += replaying._recorded is not None and replaying._recorded._graph is not None
            for one, two in zip(found, expected, strict=True):
                assert (one is None) == (two is None)
                if one is not None:
                    torch.testing.assert_close(one, two, rtol=1e-5, atol=1e-6)
        for sampler in (replaying, launching):
            sampler.end_epoch(U, V)
    if name in ("rns", "dns", "bns", "pns"):
        assert replayed >= 4  # the first two calls of an epoch prepare it


def test_a_pool_without_a_usable_negative_is_named():
    rows = [(0, item) for item in range(6)] + [(1, 0)]
    train = bn.Interactions.from_numbers(
        np.array([user for user, _ in rows]), np.array([item for _, item in rows]),
        user_ids=np.arange(2), item_ids=np.arange(6),
    )  # fmt: skip
    sampler = bnt.Sampler(bn.RNS(negatives=3, shared=True), train)
    U, V = torch.randn(2, 4), torch.randn(6, 4)
    with pytest.warns(UserWarning, match="1 of 2 examples, one of user 0, have no negative that counts.*larger pool"):
        sampler(torch.tensor([0, 1]), torch.tensor([1, 0]), U, V)


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: bn.RNS(shared="yes"), "shared"),
        (lambda: bn.PNS(shared=1), "shared"),
        (lambda: bn.losses.Softmax(include_positive="no"), "include_positive"),
        (lambda: bn.samplers.InBatch(corrected="no"), "corrected"),
        (lambda: bn.baselines.RP3Beta(normalize="no"), "normalize"),
    ],
)
def test_a_switch_is_true_or_false(make, name):
    with pytest.raises(bn.BayesnegError, match=f"{name} must be True or False, got"):
        make()
