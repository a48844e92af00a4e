"""Several samplers over several seeds, called from Python."""

from __future__ import annotations

import html

import numpy as np
import pytest

import bayesneg as bn
from bayesneg.errors import DivergedError, InputError
from bayesneg.experiments.compare import compare
from bayesneg.runs.verdict import comparison_verdict
from worlds import random_interactions


@pytest.fixture(scope="module")
def split() -> bn.Split:
    return bn.split(random_interactions(np.random.default_rng(0), 20, 30, most=0.5), test=0.2, seed=0)


def run(split, samplers, **more):
    settings = {"model": bn.MF(), "epochs": 2, "seeds": 2, "baselines": (), "progress": False}
    return compare(split=split, samplers=samplers, **(settings | more))


def test_a_cell_is_what_fit_gives_alone(split):
    records = run(split, {"RNS": bn.RNS(), "mine": bn.BNS()}, seeds=[3, 1])
    assert [(record.label, record.seed) for record in records] == [("RNS", 3), ("RNS", 1), ("mine", 3), ("mine", 1)]
    alone = bn.fit(bn.MF(), split, bn.BNS(), epochs=2, seed=1, progress=False)
    assert records[3].final == alone.record.final


def test_labels_in_any_script_get_folders_of_their_own(split, tmp_path):
    run(split, {"α = 1": bn.RNS(), "β": bn.DNS()}, out=tmp_path / "runs", seeds=1)
    assert {path.name for path in (tmp_path / "runs").iterdir()} == {"α-=-1-seed0", "β-seed0"}


@pytest.mark.parametrize("labels", [("BNS", "bns"), ("a b", "a-b")])
def test_labels_that_would_share_a_folder_are_refused(split, tmp_path, labels):
    with pytest.raises(InputError, match="would both be recorded"):
        run(split, dict.fromkeys(labels, bn.RNS()), out=tmp_path / "runs")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        ({"seeds": 0}, "seeds must be at least 1"),
        ({"seeds": []}, "seeds must be at least 1"),
        ({"seeds": -1}, "seeds must be at least 1"),
        ({"epochs": 0}, "epochs must be a whole number of at least 1"),
        ({"jobs": 0}, "jobs must be a whole number of at least 1"),
        ({"evaluate_every": 0}, "evaluate_every must be a whole number of at least 1"),
    ],
)
def test_numbers_below_one_are_refused(split, wrong, expected):
    with pytest.raises(InputError, match=expected):
        run(split, {"RNS": bn.RNS()}, **wrong)


def test_no_samplers_are_refused(split):
    with pytest.raises(InputError, match="at least one sampler"):
        run(split, {})


def test_a_place_that_is_taken_is_refused_before_any_training(split, tmp_path):
    (tmp_path / "rns-seed1").mkdir()
    (tmp_path / "rns-seed1" / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match="not an empty folder"):
        run(split, {"RNS": bn.RNS()}, out=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["rns-seed1"]


def test_an_error_names_the_sampler_and_seed_and_leaves_nothing_behind(split, tmp_path):
    with pytest.raises(DivergedError, match=r"^RNS, seed \d: training diverged in epoch 1"):
        run(split, {"RNS": bn.RNS()}, model=bn.MF(learning_rate=1e6), out=tmp_path / "runs")
    assert list(tmp_path.iterdir()) == []


def test_baselines_come_after_the_samplers_and_have_one_epoch(split):
    records = run(split, {"RNS": bn.RNS()}, baselines={"EASE": bn.baselines.EASE(l2=20.0)}, seeds=2)
    assert [(record.label, record.seed, len(record.epochs)) for record in records] == [
        ("RNS", 0, 2), ("RNS", 1, 2), ("EASE", 0, 1), ("EASE", 1, 1)
    ]  # fmt: skip
    assert records[2].final == bn.fit(bn.baselines.EASE(l2=20.0), split, progress=False).record.final


def test_popularity_and_ease_stand_beside_unless_others_or_none_are_given(split):
    usual = bn.compare(bn.MF(), split, "rns", epochs=1, seeds=1, progress=False)
    assert [record.label for record in usual] == ["RNS", "POPULARITY", "EASE"]
    for none in ((), "none"):
        assert [record.label for record in run(split, "rns", seeds=1, epochs=1, baselines=none)] == ["RNS"]


def test_the_verdict_says_where_a_baseline_is_better_and_what_was_still_rising():
    data = bn.split(bn.synthetic(200, 60, seed=0), test=0.2, validation=0.2, seed=0)
    found = run(data, "rns,bns", epochs=1, baselines="popularity,ease")
    assert found.verdict.startswith("A baseline is better: ")
    assert ", the best of the samplers, by 0." in found.verdict
    assert found.verdict.endswith(" in NDCG@20 on test data; use it, or search better settings with bayesneg tune.")
    assert found.verdict in html.unescape(found._repr_html_())
    alone = run(data, "rns", epochs=1, seeds=1)
    assert alone.verdict == "", "one epoch shows no trend, and no baseline is there"
    seeing = run(data, "rns,oracle", epochs=1, baselines="ease")
    assert "EASE is ahead of RNS by 0." in seeing.verdict, "a sampler that sees the labels does not count"


def test_no_verdict_where_the_sampler_is_better_and_done(split):
    def record(label, value, best, noise=0.001, **more):
        draws = np.random.default_rng(0).standard_normal(50)
        users = value + noise * (draws - draws.mean())
        epochs = [{"epoch": epoch, "validation_ndcg@20": 0.1} for epoch in (1, 2, 3)]
        return bn.RunRecord(
            label, 0, "toy", epochs=epochs, final={"ndcg@20": value}, per_user={"ndcg@20": users},
            reported_epoch=best, select="best", **more,
        )  # fmt: skip

    ease = record("EASE", 0.3, 3, spec={"sampler": None})
    assert comparison_verdict([record("BNS", 0.4, 2), ease]) == ""
    assert comparison_verdict([record("BNS", 0.3, 2), ease]) == "", "equal is not better"
    assert comparison_verdict([record("BNS", 0.29, 2, noise=0.2), ease]) == "", "nor is ahead by chance"
    rising = comparison_verdict([record("BNS", 0.4, 3), record("RNS", 0.2, 2), ease])
    assert rising == "Still improving at the last epoch: BNS; more epochs (--epochs) may change the result."
    better = comparison_verdict([record("BNS", 0.2, 2), record("RNS", 0.1, 2), ease])
    assert "EASE is ahead of BNS, the best of the samplers, by 0.1000 (95% over users 0.1000 to 0.1000)" in better


def test_a_label_belongs_to_one_contender(split):
    with pytest.raises(InputError, match="a label of both"):
        run(split, {"EASE": bn.RNS()}, baselines={"EASE": bn.baselines.EASE()})


def test_several_models_are_named_in_the_labels(split, tmp_path):
    records = run(split, "rns", model=[bn.MF(), bn.MF(dim=4)], seeds=1, epochs=1, out=tmp_path, baselines="ease")
    assert [record.label for record in records] == ["MF + RNS", "MF (dim=4) + RNS", "EASE"]
    assert records[1].spec["model"]["dim"] == 4
    assert {path.name for path in tmp_path.iterdir()} == {"mf-rns-seed0", "mf-dim=4-rns-seed0", "ease-seed0"}
    named = run(split, [bn.RNS()], model={"small": bn.MF(dim=4), "text": "mf:dim=4"}, seeds=1, epochs=1)
    assert [record.label for record in named] == ["small + RNS", "text + RNS"]
    assert named[0].final == named[1].final == records[1].final


@pytest.mark.parametrize(
    "samplers",
    [
        {"RNS": bn.RNS(), "BNS (candidates=3)": bn.BNS(candidates=3)},
        [bn.RNS(), bn.BNS(candidates=3)],
        "rns, bns:candidates=3",
        ["rns", bn.BNS(candidates=3)],
        {"RNS": "rns", "BNS (candidates=3)": lambda split: bn.BNS(candidates=3)},
    ],
)
def test_samplers_are_objects_or_text_in_any_form(split, samplers):
    records = run(split, samplers, seeds=1, epochs=1)
    assert [(record.label, record.sampler) for record in records] == [("RNS", "rns"), ("BNS (candidates=3)", "bns")]


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        ({"model": bn.MF}, r"model must be a model such as bn.MF\(\)"),
        ({"model": []}, r"model must be a model such as bn.MF\(\), or several, got none"),
        ({"model": bn.baselines.EASE()}, "EASE samples no negatives; compare and tune take it in baselines"),
        ({"model": "xf"}, "'xf' is not a model"),
        ({"model": [bn.MF(), bn.MF()]}, "model has MF twice"),
        ({"samplers": "bnz"}, "'bnz' is not a sampler; did you mean bns"),
        ({"baselines": [bn.MF()]}, "baselines: each must be a model without sampler"),
        ({"baselines": {"x": 3}}, "baselines: x must be a model without sampler"),
    ],
)
def test_what_cannot_be_compared_is_named(split, wrong, expected):
    with pytest.raises(InputError, match=expected):
        run(split, **({"samplers": [bn.RNS()]} | wrong))
