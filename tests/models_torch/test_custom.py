"""Samplers and models that a user writes with torch."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np
import pytest

import bayesneg as bn
from bayesneg.errors import BayesnegError, InputError
from bayesneg.runs import folder as files
from worlds import random_interactions

torch = pytest.importorskip("torch", reason="torch is not installed (the extra 'torch')")

from torch import nn  # noqa: E402

from bayesneg.models.torch import learner  # noqa: E402


@pytest.fixture(scope="module")
def split():
    return bn.split(bn.synthetic(60, 70, seed=1), test=0.2, seed=0)


def fit(model, split, sampler, **more):
    return bn.fit(model, split, sampler, **{"epochs": 2, "progress": False} | more)


# ----------------------------------------------------------------------------------------------------- a user's sampler


@dataclass(frozen=True)
class Softmax(bn.NegativeSampler):
    """One of a few candidates, drawn in proportion to exp(score)."""

    candidates: int = 5
    as_tensor: bool = True

    def sample(self, batch):
        items, sizes = bn.samplers.UniformDraw().draw(batch.users, self.candidates, train=batch.train, rng=batch.rng)
        scores = torch.from_numpy(batch.score(np.maximum(items, 0)))
        valid = torch.arange(items.shape[1]) < torch.from_numpy(sizes)[:, None]
        noise = torch.from_numpy(batch.rng.gumbel(size=items.shape))
        chosen = (scores + noise).masked_fill(~valid, -torch.inf).argmax(dim=1)
        negatives = torch.from_numpy(items).gather(1, chosen[:, None])[:, 0]
        return negatives if self.as_tensor else negatives.numpy()


MODELS = {
    "mf": bn.MF(dim=4, sampling_batch=64),
    "lightgcn": bn.LightGCN(dim=4, device="cpu"),
    "torch-mf": bn.TorchMF(dim=4, device="cpu"),
}


@pytest.mark.parametrize("as_tensor", [True, False], ids=["tensor", "array"])
@pytest.mark.parametrize("name", MODELS)
def test_a_sampler_written_with_torch_works_with_every_model(split, name, as_tensor):
    one, two = (fit(MODELS[name], split, Softmax(as_tensor=as_tensor)) for _ in range(2))
    assert one.scorer.users.tobytes() == two.scorer.users.tobytes()
    assert [line["skipped"] for line in one.record.epochs] == [0, 0]


def test_the_sampler_sees_the_scores_of_the_moment(split):
    """Its scores are those of the vectors after the steps of all earlier batches."""
    seen = []

    class Watching(Softmax):
        def sample(self, batch):
            users, items = batch.scorer.embeddings()
            np.testing.assert_allclose(batch.score_all(), users[batch.users] @ items.T, rtol=1e-5, atol=1e-6)
            np.testing.assert_allclose(batch.score_positives(), batch.score(batch.positives[:, None])[:, 0])
            seen.append(items.copy())
            return super().sample(batch)

    fit(MODELS["lightgcn"], split, Watching(), epochs=1)
    assert len(seen) > 1
    assert all((one != two).any() for one, two in pairwise(seen))


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (lambda batch: torch.from_numpy(batch.positives), "a training item of that user"),
        (lambda batch: torch.full((len(batch.users),), 10**6), "item numbers from 0 to 69"),
        (lambda batch: torch.zeros(len(batch.users)), "float32 of shape"),
        (lambda batch: torch.zeros((len(batch.users), 2), dtype=torch.int64), "one for each pair"),
    ],
)
def test_a_sampler_that_answers_nonsense_is_told_so(split, name, answer, words):
    class Wrong(bn.NegativeSampler):
        def sample(self, batch):
            return answer(batch)

    with pytest.raises(InputError, match=words):
        fit(MODELS[name], split, Wrong())


# ------------------------------------------------------------------------------------------------------- a user's model


class TwoTower(nn.Module):
    """Each side its own little network; the score is the inner product."""

    def __init__(self, train, dim=6):
        super().__init__()
        self.users, self.items = nn.Embedding(train.n_users, dim), nn.Embedding(train.n_items, dim)
        self.user_tower = nn.Sequential(nn.Linear(dim, dim), nn.ReLU(), nn.Linear(dim, dim))
        self.item_tower = nn.Sequential(nn.Linear(dim, dim), nn.ReLU(), nn.Linear(dim, dim))

    def forward(self):
        return self.user_tower(self.users.weight), self.item_tower(self.items.weight)


class Scores(nn.Module):
    """No inner product: a matrix of its own for each layer."""

    def __init__(self, train, dim=6):
        super().__init__()
        self.users = nn.Embedding(train.n_users, dim)
        self.out = nn.Sequential(nn.Tanh(), nn.Linear(dim, train.n_items))

    def scores(self, users):
        return self.out(self.users(users))


VECTORS = bn.TorchModel(build=TwoTower, device="cpu", batch_size=64)
SCORES = bn.TorchModel(build=Scores, gives="scores", device="cpu", batch_size=64)
SAMPLERS = {
    "rns": bn.RNS(),
    "pns": bn.PNS(),
    "aobpr": bn.AOBPR(scale=5.0),
    "aobpr by factor": bn.AOBPR(scale=5.0, rank="factor"),
    "dns": bn.DNS(candidates=5),
    "dns of all": bn.DNS(candidates="all"),
    "srns": bn.SRNS(memory=3, fresh=4),
    "bns": bn.BNS(),
    "bns, refreshed": bn.BNS(cdf="refreshed"),
    "bns, empirical, refreshed": bn.BNS(likelihood="empirical", cdf="refreshed"),
    "bns of all": bn.BNS(candidates="all"),
    "bns with a schedule": bn.BNS(weight=bn.samplers.LinearDecay()),
    "bns after rns": bn.WarmStart(bn.RNS(), bn.BNS(), warmup=1),
    "posterior": bn.Posterior(),
    "custom": Softmax(),
}
NEED_VECTORS = {"aobpr by factor", "srns", "bns, refreshed", "bns, empirical, refreshed"}


@pytest.mark.parametrize("name", SAMPLERS)
def test_a_module_that_gives_vectors_works_with_every_sampler(split, name):
    one, two = (fit(VECTORS, split, SAMPLERS[name]) for _ in range(2))
    assert one.scorer.users.shape == (60, 6)
    assert one.scorer.users.tobytes() == two.scorer.users.tobytes()
    assert np.isfinite(one.record.final["ndcg@20"])


@pytest.mark.parametrize("name", sorted(SAMPLERS.keys() - NEED_VECTORS))
def test_a_module_that_gives_scores_works_with_every_sampler_that_looks_at_scores(split, name):
    one, two = (fit(SCORES, split, SAMPLERS[name]) for _ in range(2))
    assert one.record.final == two.record.final
    assert np.isfinite(one.record.final["ndcg@20"])
    assert len(one.recommend(split.train.user_ids[0], k=5)) == 5


def test_scores_and_vectors_of_one_model_train_alike(split):
    class Both(nn.Module):
        def __init__(self, train):
            super().__init__()
            self.users, self.items = (nn.Parameter(torch.randn(n, 4) / 10) for n in (train.n_users, train.n_items))

        def forward(self):
            return self.users, self.items

        def scores(self, users):
            return self.users[users] @ self.items.T

    vectors, scores = (
        fit(bn.TorchModel(build=Both, gives=gives, device="cpu"), split, bn.BNS()) for gives in ("vectors", "scores")
    )
    users = np.arange(60)
    np.testing.assert_allclose(vectors.scorer.score_all(users), scores.scorer.score_all(users), atol=1e-4)


@pytest.mark.parametrize("model", [VECTORS, SCORES], ids=["vectors", "scores"])
def test_a_custom_model_learns(split, model):
    curve = fit(model, split, bn.RNS(), epochs=15).record.at_epochs("ndcg@20")
    assert curve[15] > 1.2 * curve[1]


@pytest.mark.parametrize("model", [VECTORS, SCORES], ids=["vectors", "scores"])
def test_a_resumed_run_ends_in_the_same_bytes(split, tmp_path, model):
    whole = fit(model, split, bn.BNS(), epochs=4, out=tmp_path / "whole")
    fit(model, split, bn.BNS(), epochs=2, out=tmp_path / "parts")
    fit(model, split, bn.BNS(), epochs=4, out=tmp_path / "parts", resume=True)
    for name in (files.METRICS, files.WEIGHTS, files.PER_USER):
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "parts" / name).read_bytes()
    assert whole.record.model.startswith("TorchModel (")


def test_a_run_of_vectors_is_read_back_without_the_module(split, tmp_path):
    run = fit(VECTORS, split, bn.BNS(), out=tmp_path / "run")
    assert bn.load_run(tmp_path / "run").scorer.users.tobytes() == run.scorer.users.tobytes()


def test_a_run_of_scores_keeps_its_record_and_parameters_and_says_that_it_cannot_be_loaded(split, tmp_path):
    run = fit(SCORES, split, bn.BNS(), out=tmp_path / "run")
    record = files.read_record(tmp_path / "run")
    assert record.final == run.record.final
    stored = files.read_arrays(tmp_path / "run" / files.WEIGHTS)
    np.testing.assert_array_equal(stored["parameter.users.weight"], run.scorer.module.users.weight.detach().numpy())
    assert "BNS" in bn.write_report([record], tmp_path / "report.html").read_text()
    with pytest.raises(InputError, match="a custom model without embeddings cannot be rebuilt"):
        bn.load_run(tmp_path / "run")
    run.save(tmp_path / "saved")
    assert (tmp_path / "saved" / files.WEIGHTS).read_bytes() == (tmp_path / "run" / files.WEIGHTS).read_bytes()


# ------------------------------------------------------------------------------------------------------ what is refused


@pytest.mark.parametrize("name", sorted(NEED_VECTORS))
def test_a_sampler_that_needs_vectors_says_so(split, tmp_path, name):
    with pytest.raises(InputError, match="gives scores and no vectors"):
        fit(SCORES, split, SAMPLERS[name], out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_penalty_on_vectors_needs_vectors(split, tmp_path):
    model = bn.TorchModel(build=Scores, gives="scores", penalty="batch", device="cpu")
    with pytest.raises(InputError, match="gives scores and no vectors; use penalty='weight_decay'"):
        fit(model, split, bn.RNS(), out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_penalty_on_the_first_layer_needs_lightgcn():
    with pytest.raises(InputError, match="penalty='first_layer' needs LightGCN"):
        bn.TorchModel(build=Scores, penalty="first_layer")


def module(forward=None, scores=None):
    class Odd(nn.Module):
        def __init__(self, train):
            super().__init__()
            self.users, self.items = (nn.Parameter(torch.randn(n, 4)) for n in (train.n_users, train.n_items))

    Odd.forward = forward or (lambda self: (self.users, self.items))
    Odd.scores = scores or (lambda self, users: self.users[users] @ self.items.T)
    return Odd


WRONG = {
    "too few users": (module(lambda self: (self.users[:-1], self.items)), "vectors", r"\(59, 4\).*60 users and 70"),
    "too many items": (module(lambda self: (self.users, self.items.repeat(2, 1))), "vectors", r"\(140, 4\)"),
    "two widths": (module(lambda self: (self.users, self.items[:, :3])), "vectors", "both need one width"),
    "no matrix": (module(lambda self: (self.users[0], self.items[0])), "vectors", r"shape \(4,\)"),
    "scores of too few items": (
        module(scores=lambda self, users: self.users[users]), "scores", r"must give \d+ × 70 numbers.*got \(\d+, 4\)",
    ),
    "no module": (lambda train: torch.zeros(3), "vectors", "build must make a torch.nn.Module, got Tensor"),
    "nothing": (lambda train: None, "vectors", "build must make a torch.nn.Module, got NoneType"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_a_model_that_does_not_fit_the_data_is_refused_in_a_sentence(split, tmp_path, case):
    build, gives, words = WRONG[case]
    with pytest.raises(InputError, match=words):
        fit(bn.TorchModel(build=build, gives=gives, device="cpu"), split, bn.BNS(), out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_build_that_is_no_function_is_refused():
    with pytest.raises(InputError, match="build must be a function"):
        bn.TorchModel(build=nn.Linear(2, 2).weight)


def test_a_mistake_in_the_user_s_own_module_keeps_its_traceback_and_leaves_nothing(split, tmp_path):
    def crash(self):
        raise RuntimeError("a mistake in my own code")

    with pytest.raises(RuntimeError, match="a mistake in my own code"):
        fit(bn.TorchModel(build=module(crash), device="cpu"), split, bn.RNS(), out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_vectors_that_become_nan_name_the_epoch(split, tmp_path):
    build = module(lambda self: (self.users / 0, self.items))
    with pytest.raises(BayesnegError, match="diverged in epoch 1"):
        fit(bn.TorchModel(build=build, device="cpu"), split, bn.RNS(), out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


class Dropping(nn.Module):
    """Vectors that dropout would change from call to call."""

    def __init__(self, train):
        super().__init__()
        self.users, self.items = nn.Embedding(train.n_users, 4), nn.Embedding(train.n_items, 4)
        self.drop = nn.Dropout(0.5)

    def forward(self):
        return self.drop(self.users.weight), self.drop(self.items.weight)


def test_dropout_is_off_where_the_model_is_judged():
    train = random_interactions(np.random.default_rng(0), 10, 12, most=0.5)
    learner = bn.TorchModel(build=Dropping, device="cpu").start(train, rng=np.random.default_rng(0))
    np.testing.assert_array_equal(learner.embeddings().users, learner.module.users.weight.detach().numpy())
    assert learner.module.training


@pytest.mark.parametrize(
    ("build", "gives", "words"),
    [
        (lambda train: nn.Embedding(3, 2), "scores", "has no method scores"),
        (lambda train: nn.ReLU(), "vectors", "no parameters to train"),
    ],
)
def test_a_module_that_cannot_be_trained_is_told_so(build, gives, words):
    split = bn.split(bn.synthetic(40, 50, seed=0), test=0.2, seed=0)
    with pytest.raises(InputError, match=words):
        bn.fit(bn.TorchModel(build=build, gives=gives, device="cpu"), split, bn.RNS(), epochs=1, progress=False)


def test_a_rehearsed_step_leaves_no_trace_even_in_a_block_of_one_batch():
    """Recording a CUDA graph rehearses steps; here the same on the CPU, where nothing is recorded."""
    from bayesneg.models.torch.steps import TorchSteps, largest_batch, pack

    train = random_interactions(np.random.default_rng(0), 10, 12, most=0.5)
    learner = bn.LightGCN(dim=3, batch_size=len(train), device="cpu").start(train, rng=np.random.default_rng(0))
    sampler = bn.SRNS(memory=2, fresh=2).prepare(train, rng=np.random.default_rng(0))
    positions = np.arange(len(train))
    batch = bn.Batch(train.users, train.indices, positions, 1, train, learner, np.random.default_rng(0))
    rule, draws = sampler.rule(batch), sampler.draws(batch)
    capacity = largest_batch(train.counts[train.users], len(train))
    trainable = learner.trainable
    steps = TorchSteps(trainable, learner._rows, rule, draws, room=len(train), capacity=capacity, most_rank=0)
    packed = pack(draws, batch, len(train), torch.device("cpu"), firsts=True)
    steps.buffers.whole.copy_(packed.whole)
    steps.buffers.real.copy_(packed.real)
    trainable.begin_optimizer()
    before = learner.state_dict(), steps.choice.memory.clone()
    for _ in range(3):
        trainable.rehearse(steps._eager_step, [steps.buffers.cursor, steps.choice.memory])
    assert steps.buffers.cursor.item() == 0
    assert torch.equal(steps.choice.memory, before[1])
    for key, value in learner.state_dict().items():
        np.testing.assert_array_equal(value, before[0][key])


class Scores(nn.Module):
    """Scores in the odd ways that modules give them."""

    def __init__(self, train, *, columns=False, dtype=torch.float32, detached=False):
        super().__init__()
        self.users, self.items = (
            nn.Embedding(train.n_users, 4, dtype=dtype),
            nn.Embedding(train.n_items, 4, dtype=dtype),
        )
        self.columns, self.detached, self.seen = columns, detached, []

    def forward(self):
        vectors = self.users.weight, self.items.weight
        return tuple(part.detach() for part in vectors) if self.detached else vectors

    def scores(self, users):
        self.seen.append(len(users))
        w, h = self.users(users), self.items.weight
        scores = (h @ w.T).T if self.columns else w @ h.T
        return scores.detach() if self.detached else scores


@pytest.mark.parametrize("sampler", [bn.BNS(), bn.AOBPR(scale=5.0), bn.DNS()], ids=lambda s: type(s).__name__)
def test_scores_that_lie_column_by_column_are_read_as_others(split, sampler):
    scorers = []
    for columns in (False, True):
        model = bn.TorchModel(build=partial(Scores, columns=columns), gives="scores", device="cpu", batch_size=64)
        run = bn.fit(model, split, sampler, epochs=2, progress=False, select="last")
        scorers.append(run.scorer.score_all(np.arange(10)))
    np.testing.assert_allclose(*scorers, atol=1e-5)


@pytest.mark.parametrize("gives", ["vectors", "scores"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16], ids=str)
def test_other_precisions_train(split, gives, dtype):
    model = bn.TorchModel(build=partial(Scores, dtype=dtype), gives=gives, device="cpu", batch_size=64)
    for sampler in (bn.RNS(), bn.BNS()):
        assert np.isfinite(bn.fit(model, split, sampler, epochs=1, progress=False).record.final["ndcg@20"])


@pytest.mark.parametrize("gives", ["vectors", "scores"])
def test_a_model_without_gradients_is_an_error(split, gives):
    model = bn.TorchModel(build=partial(Scores, detached=True), gives=gives, device="cpu")
    with pytest.raises(InputError, match="do not depend on its parameters"):
        bn.fit(model, split, bn.RNS(), epochs=1, progress=False)


def test_a_model_is_asked_for_the_users_of_the_batch_and_no_others(split):
    made = []

    def build(train):
        made.append(Scores(train))
        return made[-1]

    model = bn.TorchModel(build=build, gives="scores", device="cpu", batch_size=80)
    learner = model.start(split.train, rng=np.random.default_rng(0))
    sampler = bn.BNS().prepare(split.train, rng=np.random.default_rng(0))
    list(learner.train_epoch(sampler, epoch=1, order=np.arange(200), rng=np.random.default_rng(0)))
    assert made[0].seen == [80, 80, 40]


@pytest.mark.parametrize(
    ("first", "then"),
    [
        (bn.DNS(candidates=5, top=5), bn.DNS(candidates=5)),
        (bn.AOBPR(scale=50.0), bn.AOBPR(scale=1.0)),
        (bn.BNS(cdf_over="all"), bn.BNS()),
        (bn.SRNS(memory=3, fresh=4), bn.SRNS(memory=4, fresh=3)),
    ],
    ids=["top", "scale", "cdf_over", "memory"],
)
def test_a_warm_start_goes_over_to_another_sampler_of_the_same_kind(split, monkeypatch, first, then):
    """Torch chooses: what a step holds fast of the first sampler must not stay."""
    monkeypatch.setattr(learner.TorchLearner, "_compiled_chooses", property(lambda self: False))
    vectors = []
    for second in (first, then):
        sampler = bn.WarmStart(first, second, warmup=1)
        run = bn.fit(bn.TorchMF(dim=4, device="cpu"), split, sampler, epochs=2, progress=False, select="last")
        vectors.append(run.scorer.items)
    assert not np.allclose(*vectors)


def test_out_of_memory_on_the_cpu_is_named(split, tmp_path):
    class Greedy(Scores):
        def forward(self):
            torch.empty(1 << 50)
            return super().forward()

    with pytest.raises(BayesnegError, match="out of memory on cpu: lower batch_size"):
        bn.fit(bn.TorchModel(build=Greedy, device="cpu"), split, bn.RNS(), epochs=1, progress=False, out=tmp_path / "r")
    assert not (tmp_path / "r").exists()


def test_a_model_that_starts_with_nan_is_told_so(split):
    class Spoilt(Scores):
        def __init__(self, train):
            super().__init__(train)
            with torch.no_grad():
                self.users.weight[0, 0] = float("nan")

    with pytest.raises(InputError, match="starts with numbers that are not finite"):
        bn.fit(bn.TorchModel(build=Spoilt, device="cpu"), split, bn.RNS(), epochs=1, progress=False)
