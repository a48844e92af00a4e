"""benchmarks/beyond.py: how a setting is chosen from the runs on the blind split."""

import sys
from pathlib import Path

import pytest

from bayesneg.runs.ledger import Entry
from bayesneg.runs.record import RunRecord

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
import beyond


def entry(values, *, view="blind", seed=0, sampler="bns", model="mf", **settings):
    lines = [{"epoch": epoch, "ndcg@20": value} for epoch, value in values.items()]
    record = RunRecord(
        label="x", seed=seed, dataset="x", sampler=sampler, model=model, spec={}, versions={}, data={}, epochs=lines,
        final={"ndcg@20": lines[-1]["ndcg@20"]},
    )  # fmt: skip
    cell = {"view": view, "sampler": sampler, "seed": seed, "model": model,
            "sampler_settings": settings if sampler else {}, "model_settings": {} if sampler else settings}  # fmt: skip
    return Entry(f"{view}{seed}{sampler}{settings}", cell, record)


EASE = entry({1: 0.1}, sampler="", model="ease", l2=400.0)


def test_the_best_setting_and_its_first_best_epoch_are_chosen():
    found = [entry({5: 0.2, 10: 0.4, 15: 0.4}, candidates=5), entry({5: 0.3, 10: 0.3, 15: 0.3}, candidates=10), EASE]
    assert beyond.chosen(found) == (({"candidates": 5}, {}), 10, 400.0)


def test_test_labels_have_no_say():
    found = [entry({5: 0.2}, candidates=5), entry({5: 0.9}, view="last", candidates=10), EASE]
    assert beyond.chosen(found)[0] == ({"candidates": 5}, {})


def test_a_lucky_tenth_bows_to_a_mean_over_tenths():
    lucky = entry({5: 0.9, 10: 0.9}, candidates=20)
    values = zip(("blind", "blind2", "blind3"), (0.8, 0.1, 0.1), strict=True)
    steady = [entry({5: value, 10: 0.4}, view=view, candidates=5) for view, value in values]
    assert beyond.chosen([lucky, *steady, EASE]) == (({"candidates": 5}, {}), 10, 400.0)


def test_a_tenth_counts_once_however_many_seeds_it_has():
    seeds = [entry({5: 0.9, 10: 0.1}, seed=seed) for seed in range(3)]
    runs = [*seeds, entry({5: 0.1, 10: 0.8}, view="blind2"), entry({5: 0.1, 10: 0.8}, view="blind3")]
    assert beyond.chosen([*runs, EASE])[1] == 10


def test_the_penalty_of_ease_is_the_best_on_validation():
    better = entry({1: 0.2}, sampler="", model="ease", l2=800.0)
    elsewhere = entry({1: 0.9}, view="last", sampler="", model="ease", l2=100.0)
    assert beyond.chosen([entry({5: 0.2}), EASE, better, elsewhere])[2] == 800.0


def test_without_a_search_the_way_out_is_named():
    with pytest.raises(SystemExit, match=r"beyond\.py search"):
        beyond.chosen([EASE])
