"""What is searched by default: the winners of the study, each with a model that suits it, with torch and without."""

from __future__ import annotations

import shlex
from importlib.util import find_spec

import numpy as np
import pytest

import bayesneg as bn
from bayesneg.errors import InputError
from bayesneg.models.torch import settings as torch_settings
from bayesneg.tuning.portfolio import EQUAL, POSTERIOR, Portfolio
from bayesneg.tuning.space import family
from worlds import interactions

pytest.importorskip("optuna", reason="optuna is not installed (the extra 'tune')")
needs_torch = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed (the extra 'torch')")

FEW = {"trials": 6, "epochs": 2, "seeds": 1, "baselines": (), "progress": False}
WITHOUT_TORCH = ["MF + RNS + BPR", "MF + BNS (recommended) + BPR"]
WITH_TORCH = [
    "TorchMF + RNS (shared pool) + Softmax",
    "TorchMF + BNS (shared pool, posterior) + Softmax",
    "TorchMF + InBatch + Softmax",
    "TorchMF + InBatch (posterior) + Softmax",
]


@pytest.fixture(scope="module")
def split() -> bn.Split:
    return bn.split(bn.synthetic(60, 50, seed=0), test=0.2, validation=0.2, seed=0)


@pytest.fixture(scope="module")
def tuning(split, tmp_path_factory):
    pytest.importorskip("torch", reason="torch is not installed (the extra 'torch')")
    return bn.tune(None, split, **FEW, out=tmp_path_factory.mktemp("portfolio") / "out")


@pytest.fixture
def no_torch(monkeypatch):
    monkeypatch.setattr(torch_settings, "find_spec", lambda name: None)


def test_losses_samplers_and_models_are_those_of_the_study(tuning):
    assert [trial.family for trial in tuning.trials] == [*WITHOUT_TORCH, *WITH_TORCH]
    assert tuning.plan["patience"] == 10
    used = {record.label.split(" (temp")[0]: record.spec for record in tuning.records}
    assert {label: spec["model"]["class"] for label, spec in used.items()} == {
        **dict.fromkeys(["MF + RNS + BPR", "MF + BNS (recommended, weight=5) + BPR"], "MF"),
        **dict.fromkeys(WITH_TORCH, "TorchMF"),
    }
    softmax = [used[label] for label in WITH_TORCH]
    assert {(spec["model"]["similarity"], spec["model"]["dim"], spec["loss"]["class"]) for spec in softmax} == {
        ("cosine", 64, "Softmax")
    }
    assert [spec["sampler"].get("weighting", "none") for spec in softmax] == ["none", "posterior", "none", "posterior"]
    assert (
        used[WITH_TORCH[1]]["sampler"]["prior"]["class"]
        == used[WITH_TORCH[3]]["sampler"]["prior"]["class"]
        == "Learned"
    )
    assert bn.MF.recommended() == bn.MF(
        **{
            key: used["MF + RNS + BPR"]["model"][key]
            for key in ("dim", "learning_rate", "regularization", "init", "init_scale")
        }
    )


def test_the_first_trial_of_each_has_a_temperature_of_the_study_and_weights_search_lower_ones(split):
    searched, left_out = Portfolio().searched(split.train)
    families = [family(each, split) for each in searched]
    assert left_out == ([] if find_spec("torch") else left_out)
    assert POSTERIOR.low < EQUAL.low
    assert POSTERIOR.high < EQUAL.high
    for each in families[2:]:
        values = POSTERIOR if "posterior" in each.name else EQUAL
        assert each.ranges["loss temperature"] == values
        assert each.ranges.keys() == each.usual.keys() == {"loss temperature", "loss negative_weight"}
        first = each.at(each.usual).loss.build()
        assert values.low < first.temperature < values.high
        assert first.negative_weight == 1.1
    assert families[1].usual == {"weight": 5.0}
    assert families[0].ranges == {}


@needs_torch
@pytest.mark.parametrize(
    ("n_items", "n_train", "pool", "batch"), [(1682, 72_000, 1010, 512), (3706, 720_000, 2048, 2048), (2, 3, 2, 512)]
)
def test_pool_and_batches_go_by_the_size_of_the_data(n_items, n_train, pool, batch):
    class Sized:
        def __init__(self):
            self.n_items = n_items

        def __len__(self):
            return n_train

    searched, _ = Portfolio().searched(Sized())
    given = searched[3].given
    assert (given.sampler.base.candidates, given.model.batch_size) == (pool, batch)


@needs_torch
def test_the_first_trial_of_each_is_never_pruned(split):
    """Losses converge at different rates: in-batch negatives lie below the median for longer than these epochs."""
    found = bn.tune(None, split, **{**FEW, "epochs": 6})
    assert [trial.state for trial in found.trials] == ["complete"] * 6


def test_the_command_trains_the_recommendation(tuning, split):
    advised = next(record for record in tuning.records if record.label == tuning.advice.label)
    run = bn.fit(tuning.model, split, tuning.sampler, loss=tuning.loss, epochs=2, progress=False)
    assert run.record.final == advised.final
    options = shlex.split(tuning.command)
    assert "--model" in options
    assert str(tuning).startswith(f"{tuning.recommendation}\n\n{tuning.command}\n\n")
    assert tuning._repr_html_().index("Use ") < tuning._repr_html_().index("<table")
    for part in ("the loss ", " with the sampler ", " and the model "):
        assert part in tuning.recommendation


def test_a_search_of_the_default_is_resumed(tuning, split, tmp_path):
    begun = {**FEW, "baselines": (), "out": tmp_path / "out"}
    bn.tune(None, split, **begun)
    again = bn.tune(None, split, **begun, resume=True)
    assert [trial.curve for trial in again.trials] == [trial.curve for trial in tuning.trials]
    with pytest.raises(InputError, match="holds a search with another model"):
        bn.tune(None, split, Portfolio(("dim=8",)), **begun, resume=True)


def test_without_torch_the_rest_is_searched_and_a_warning_says_what_was_left_out(split, no_torch):
    with pytest.warns(UserWarning, match=r"Left out .*InBatch \(posterior\).*pip install 'bayesneg\[torch\]'"):
        found = bn.tune(None, split, **{**FEW, "trials": 3})
    assert {trial.family for trial in found.trials} == set(WITHOUT_TORCH)
    assert "needs torch, which is not installed" in found.advice.notes[-1]
    assert found.advice.label in {record.label for record in found.records}


def test_settings_reach_every_model_and_sampler_that_has_them():
    given = Portfolio(("dim=8", "weight=3", "batch_size=64"), device="cpu")
    searched, _ = given.searched(interactions([[0, 1], [2]], 9))
    models = [each.given.model for each in searched]
    assert {model.dim for model in models} == {8}
    assert {model.batch_size for model in models if isinstance(model, bn.TorchMF)} <= {64}
    assert searched[1].given.sampler.settings == {"weight": "3"}
    assert "weight" not in family(searched[1], bn.split(bn.synthetic(20, 30, seed=0), test=0.2, seed=0)).ranges


@needs_torch
def test_a_gpu_that_is_not_there_is_refused_before_the_search(split):
    import torch

    if torch.cuda.is_available():
        pytest.skip("there is a GPU here")
    with pytest.raises(InputError, match="device is 'cuda', but torch sees no GPU here"):
        bn.tune(None, split, Portfolio(device="cuda"), **FEW)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (("dimm=8",), "'dimm' is not a setting of what is searched by default; did you mean dim"),
        (("dim=x",), "dim=x"),
        (("learning_rate=-1",), "learning_rate must be"),
    ],
)
def test_settings_that_cannot_be_meant_are_refused(given, expected):
    with pytest.raises(InputError, match=expected):
        Portfolio(given)


def test_given_models_samplers_and_losses_are_searched_instead(split, monkeypatch):
    from bayesneg.tuning import given as reading

    def families(*given, **more):
        return [each.given.label for each in reading.combinations(*given, more.get("loss"), split)[0]]

    assert families(bn.MF(), None) == families(None, "rns,dns,bns") == ["RNS", "DNS", "BNS"]
    assert families(None, None, loss="bpr,logistic")[:2] == ["RNS + BPR", "RNS + Logistic"]


def test_users_without_history_are_ranked_by_popularity_in_everything_that_is_judged():
    """Most test users have no history; what is liked is popularity alone, so EASE has only noise to add."""
    rng = np.random.default_rng(0)
    shares = 1 / np.arange(1, 61) ** 1.2
    rows = [
        rng.choice(60, rng.choice([1, 1, 1, 2]), replace=False, p=shares / shares.sum()).tolist() for _ in range(700)
    ]
    data = interactions(rows, 60)
    split = bn.split(data, test=0.5, validation=0.2, seed=0)
    cold = split.train.counts[split.test.counts > 0] == 0  # of the test users, whose values a record has
    assert cold.mean() > 0.5
    few = {"epochs": 2, "seeds": 2, "trials": 6 if find_spec("torch") else 2, "progress": False}
    found = bn.tune(None, split, Portfolio(("dim=8",)), **few, baselines="popularity,ease:l2=1")
    judged = {record.label: record.per_user["ndcg@20"] for record in found.records}
    for label, values in judged.items():
        np.testing.assert_array_equal(values[cold], judged["POPULARITY"][cold], err_msg=label)
    assert found.advice.validation["EASE (l2=1)"] < found.advice.validation["POPULARITY"]
    assert found.advice.label != "EASE (l2=1)"
