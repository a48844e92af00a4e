"""DENS as a sampler: its settings, its state, and the models it works with."""

from __future__ import annotations

import numpy as np
import pytest

import bayesneg as bn
from bayesneg.kernels.reference.disentangled import contrast
from worlds import batch_of, exact_scorer, random_interactions

DENS = bn.samplers.DENS
SPLIT = bn.split(bn.synthetic(60, 50, seed=0), test=0.2, seed=0)


@pytest.fixture(scope="module")
def world():
    rng = np.random.default_rng(0)
    train = random_interactions(rng, 20, 40, most=0.6)
    return train, exact_scorer(rng, 20, 40)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"candidates": 0}, "candidates must be a whole number of at least 1, got 0"),
        ({"candidates": "all"}, "candidates must be a whole number of at least 1, got 'all'"),
        ({"balance": 1.5}, "balance must be a number of at least 0 and at most 1, got 1.5"),
        ({"balance": -0.1}, "balance must be a number of at least 0 and at most 1, got -0.1"),
        ({"balance": float("nan")}, "balance must be a number of at least 0 and at most 1, got nan"),
        ({"warmup": -1}, "warmup must be a whole number of at least 0, got -1"),
        ({"gate_learning_rate": 0.0}, "gate_learning_rate must be a number above 0, got 0.0"),
        ({"pairs_at_once": 0}, "pairs_at_once must be a whole number of at least 1, got 0"),
        ({"candidates": 3, "negatives": 4}, r"negatives must be at most candidates \(3\), .* set candidates=4 or more"),
    ],
)
def test_settings_out_of_range_are_refused(settings, said):
    with pytest.raises(bn.BayesnegError, match=said):
        DENS(**settings)


def test_a_sampler_that_is_not_prepared_says_so(world):
    train, scorer = world
    with pytest.raises(bn.BayesnegError, match="the sampler is not prepared"):
        DENS().sample(batch_of(train, scorer, np.random.default_rng(0)))


@pytest.mark.parametrize(("settings", "epoch"), [({"balance": 0.0}, 9), ({"balance": 1.0, "warmup": 3}, 1)])
def test_without_weight_on_the_factors_it_is_dns(world, settings, epoch):
    train, scorer = world
    dens = DENS(candidates=4, **settings).prepare(train, rng=np.random.default_rng(1))
    one = dens.sample(batch_of(train, scorer, np.random.default_rng(2), epoch=epoch)).items[:, 0]
    two = bn.DNS(candidates=4).sample(batch_of(train, scorer, np.random.default_rng(2), epoch=epoch))
    np.testing.assert_array_equal(one, two)
    factors = DENS(candidates=4, balance=1.0, warmup=0).prepare(train, rng=np.random.default_rng(1))
    assert (factors.sample(batch_of(train, scorer, np.random.default_rng(2))).items[:, 0] != two).mean() > 0.3


def test_the_weight_of_the_factors_grows_over_the_warm_up(world):
    train, scorer = world
    sampler = DENS(balance=0.8, warmup=4).prepare(train, rng=np.random.default_rng(0))
    batches = [batch_of(train, scorer, np.random.default_rng(0), epoch=epoch) for epoch in (1, 2, 3, 5, 50)]
    assert [sampler.rule(batch).balance for batch in batches] == pytest.approx([0.0, 0.2, 0.4, 0.8, 0.8])


def test_the_gates_come_from_the_rng_of_prepare_and_learn_once_a_batch(world):
    train, scorer = world
    batch = batch_of(train, scorer, np.random.default_rng(0))
    one, two, other = (DENS().prepare(train, rng=np.random.default_rng(seed)) for seed in (0, 0, 1))
    gates = [sampler.rule(batch).gates.copy() for sampler in (one, two, other)]
    np.testing.assert_array_equal(gates[0], gates[1])
    assert (gates[0] != gates[2]).any()
    for steps in (1, 2):
        one.sample(batch)
        assert one.state_dict()["steps"] == steps
    assert (one.state_dict()["gates"] != gates[0]).all(axis=(1, 2)).all()


def test_a_state_from_before_the_first_batch_keeps_the_gates_to_come(world):
    train, scorer = world
    batch = batch_of(train, scorer, np.random.default_rng(0))
    one, two = (DENS().prepare(train, rng=np.random.default_rng(seed)) for seed in (0, 1))
    two.load_state_dict(one.state_dict())
    np.testing.assert_array_equal(one.rule(batch).gates, two.rule(batch).gates)


def test_mf_samples_for_several_pairs_at_once():
    steps = []

    class Watching:
        def see(self, sampled):
            return

        def end_epoch(self, epoch, sampler, scorer):
            steps.append(int(sampler.state_dict()["steps"][0]))
            return {}

    run = bn.fit(bn.MF(dim=4), SPLIT, DENS(pairs_at_once=50), epochs=2, progress=False, observer=Watching())
    a_batch = -(-len(SPLIT.train) // 50)
    assert steps == [a_batch, 2 * a_batch]
    assert run.record.epochs[-1]["tnr"] > 0


@pytest.mark.parametrize("loss", [bn.losses.BPR(), bn.losses.Softmax(temperature=0.5)], ids=["bpr", "softmax"])
def test_several_negatives_with_any_loss(loss):
    run = bn.fit(bn.MF(dim=4), SPLIT, DENS(candidates=6, negatives=3), loss=loss, epochs=2, progress=False)
    assert np.isfinite(run.scorer.embeddings().users).all()


def test_the_gates_learn_their_tasks_while_a_model_is_trained():
    kept = {}

    class Keeping:
        def see(self, sampled):
            return

        def end_epoch(self, epoch, sampler, scorer):
            kept[epoch] = sampler.state_dict()["gates"].copy()
            return {}

    sampler = DENS(gate_learning_rate=0.05, pairs_at_once=32)
    model = bn.MF(dim=8, learning_rate=0.05, regularization=0.001, init_scale=0.1)
    run = bn.fit(model, SPLIT, sampler, epochs=30, progress=False, observer=Keeping())
    users, items = run.scorer.embeddings()
    train, rng = SPLIT.train, np.random.default_rng(0)
    negatives, sizes = bn.samplers.UniformDraw().draw(train.users, 1, train=train, rng=rng)
    given = users[train.users], items[train.indices], items[negatives], (sizes > 0)[:, None]
    assert contrast(kept[30], *given)[0] < 0.9 * contrast(kept[1], *given)[0]


def test_graph_models_ensembles_and_cosines_serve():
    pytest.importorskip("torch")
    for model in (
        bn.LightGCN(dim=4, layers=2, device="cpu"),
        bn.TorchMF(dim=4, similarity="cosine", device="cpu"),
        bn.MF(dim=4, similarity="cosine"),
        bn.MF(dim=4, ensemble_size=2, threads=2),
    ):
        run = bn.fit(model, SPLIT, DENS(warmup=0), epochs=2, progress=False)
        assert len(run.record.epochs) == 2


def test_a_model_without_embeddings_is_refused():
    torch = pytest.importorskip("torch")

    class Scores(torch.nn.Module):
        def __init__(self, train):
            super().__init__()
            self.table = torch.nn.Parameter(torch.zeros(train.n_users, train.n_items))

        def scores(self, users):
            return self.table[users]

    model = bn.TorchModel(build=Scores, gives="scores", device="cpu")
    with pytest.raises(bn.BayesnegError, match="gives scores and no vectors; choose a sampler that needs none"):
        bn.fit(model, SPLIT, DENS(), epochs=1, progress=False)
