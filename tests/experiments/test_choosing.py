"""How benchmarks/beyond.py chooses a setting on validation, and that its page keeps apart what differs."""

import sys
from pathlib import Path

import numpy as np
import pytest

from bayesneg.runs.ledger import Entry
from bayesneg.runs.record import RunRecord

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
import beyond
import beyond_page
import choosing
from choosing import Choice, Tenths

TENTHS = ("blind", "blind2", "blind3")


def chosen(found):
    return choosing.chosen(found, Tenths(1, 3))


def is_settled(found):
    return choosing.is_settled(found, Tenths(1, 3))


def entry(values, *, view="blind", seed=0, sampler="bns", model="mf", label="x", dataset="ml-100k", **settings):
    lines = [{"epoch": epoch, "ndcg@20": value} for epoch, value in values.items()]
    last = lines[-1]["ndcg@20"]
    record = RunRecord(
        label=label, seed=seed, dataset="x", sampler=sampler, model=model, spec={}, versions={}, data={"n_train": 9},
        epochs=lines, final=dict.fromkeys(beyond_page.SHOWN, last), per_user={"ndcg@20": np.array([last, last + 0.1])},
    )  # fmt: skip
    of_sampler = {key: value for key, value in settings.items() if sampler and key not in ("dim",)}
    of_model = {key: value for key, value in settings.items() if key not in of_sampler}
    cell = {"view": view, "sampler": sampler, "seed": seed, "model": model, "dataset": dataset, "label": label,
            "epochs": lines[-1]["epoch"], "sampler_settings": of_sampler, "model_settings": of_model}  # fmt: skip
    return Entry(f"{view}{seed}{sampler}{settings}{dataset}{label}", cell, record)


def learned(values, **how):
    return entry(values, **{"prior": "learned", "weight": 10.0, **how})


def everywhere(values, **how):
    """The same curve on every tenth."""
    return [learned(values, view=view, **how) for view in TENTHS]


def ease(l2=400.0, value=0.1, views=TENTHS):
    return [entry({1: value}, view=view, sampler="", model="ease", label="ease", l2=l2) for view in views]


def test_the_best_setting_and_its_first_best_epoch_are_chosen():
    found = [*everywhere({5: 0.2, 10: 0.4, 15: 0.4}, candidates=5), *everywhere({5: 0.3, 15: 0.3}, candidates=10)]
    assert chosen([*found, *ease()]) == (({"prior": "learned", "weight": 10.0, "candidates": 5}, {}), 10, 400.0)


def test_test_labels_have_no_say():
    found = [*everywhere({5: 0.2}, candidates=5), learned({5: 0.9}, view="last", candidates=10), *ease()]
    assert chosen(found).setting[0]["candidates"] == 5


def test_a_lucky_tenth_bows_to_a_mean_over_tenths():
    lucky = [learned({5: value}, view=view, candidates=20) for view, value in zip(TENTHS, (0.9, 0.1, 0.1), strict=True)]
    steady = everywhere({5: 0.4, 10: 0.5}, candidates=5)
    assert chosen([*lucky, *steady, *ease()])[:2] == (({"prior": "learned", "weight": 10.0, "candidates": 5}, {}), 10)


def test_a_tenth_counts_once_however_many_seeds_it_has():
    seeds = [learned({5: 0.9, 10: 0.1}, seed=seed) for seed in range(3)]
    others = [learned({5: 0.1, 10: 0.8}, view=view) for view in TENTHS[1:]]
    assert chosen([*seeds, *others, *ease()]).epoch == 10


def test_nothing_is_chosen_before_every_finalist_was_judged_on_every_tenth():
    found = [*everywhere({5: 0.2}, candidates=5), learned({5: 0.9}, candidates=10), *ease()]
    assert not is_settled(found)
    with pytest.raises(SystemExit, match=r"beyond\.py finalists"):
        chosen(found)
    complete = [*found, *(learned({5: 0.9}, view=view, candidates=10) for view in TENTHS[1:])]
    assert chosen(complete).setting[0]["candidates"] == 10
    assert not is_settled([*complete, *ease(800.0, views=TENTHS[:1])])


def test_finalists_are_the_best_on_all_tenths_that_every_setting_is_judged_on():
    lucky = [learned({5: value}, view=view, candidates=20) for view, value in zip(TENTHS, (0.9, 0.1, 0.1), strict=True)]
    partly = learned({5: 0.95}, candidates=50)
    steady = [one for m in range(2, 6) for one in everywhere({5: 0.6}, candidates=m)]
    found = [*lucky, partly, *steady]
    named = lambda tenths: {one.setting[0]["candidates"] for one in choosing.finalists(found, tenths)}  # noqa: E731
    assert {20, 50} < named(Tenths(1, 3))
    assert named(Tenths(2, 3)) == {2, 3, 4, 5}


def test_the_papers_own_setting_is_no_candidate():
    assert chosen([entry({5: 0.9}), *everywhere({5: 0.2}, candidates=5), *ease()]).setting[0]["candidates"] == 5


def test_runs_of_different_length_are_different_settings():
    found = [*everywhere({5: 0.2, 10: 0.3}, candidates=5), learned({5: 0.1}, candidates=5), *ease()]
    assert not is_settled(found)
    assert chosen(found[:3] + found[4:]).epoch == 10


def test_the_penalty_of_ease_is_the_best_on_validation():
    elsewhere = ease(100.0, 0.9, views=("last",))
    assert chosen([*everywhere({5: 0.2}), *ease(), *ease(800.0, 0.2), *elsewhere]).l2 == 800.0


def test_without_a_search_the_way_out_is_named():
    with pytest.raises(SystemExit, match=r"beyond\.py search"):
        chosen(ease())


SETTING = {"prior": "learned", "weight": 10.0, "candidates": 10}


def judged(value, *, seed=0, epoch=10, label="chosen on validation", **how):
    return learned({epoch: value}, view="last", seed=seed, label=label, **{"candidates": 10, **how})


def study(*more):
    return beyond_page.Study("ml-100k", "mf", [*everywhere({5: 0.2, 10: 0.3}, candidates=10), *ease(), *more])


def test_the_page_keeps_final_runs_of_other_settings_apart():
    now = [judged(0.4, seed=seed) for seed in range(2)]
    before = [judged(0.6, seed=seed, epoch=5) for seed in range(2)] + [judged(0.8, dim=64)]
    text = "\n".join(beyond_page.final_runs(study(*now, *before, *ease(views=("last",)))))
    assert "| **chosen on validation** | 2 | 10 | 0.4000 ± 0.0000" in text
    assert "chosen before: prior=learned, weight=10.0, candidates=10 | 2 | 5 | 0.6000 ± 0.0000" in text
    assert "candidates=10, dim=64 | 1 | 10 | 0.8000" in text
    assert "l2 = 400 (chosen on validation): " in text, "one l2 cannot be the best on the test labels"
    assert "best on the test labels" not in text


def test_earlier_final_runs_stay_while_those_of_the_choice_are_missing():
    text = "\n".join(beyond_page.final_runs(study(judged(0.6, epoch=5))))
    assert "chosen before: " in text
    assert "are not there yet" in text


def test_the_curve_has_the_final_runs_of_the_chosen_m_and_nothing_of_other_settings():
    choice = Choice((SETTING, {}), 10, 400.0)
    final, curve = beyond.final("ml-100k", "mf", choice)[0], beyond.curve("ml-100k", "mf", choice)["learned prior"][10]
    assert final[1:] == curve[1:], "the sweep trains once what both have"
    own = [judged(0.4), judged(0.5, candidates=20, label="learned prior, m = 20")]
    stale = judged(0.9, candidates=50, epoch=5, label="learned prior, m = 50")
    papers = [entry({10: 0.2}, view="last", weight=10.0, candidates=m) for m in (10, 20)]
    found = study(*own, stale, *papers).curves()
    values = {prior: {m: runs[0].final["ndcg@20"] for m, runs in by_m.items()} for prior, by_m in found.items()}
    assert values == {"learned prior": {10: 0.4, 20: 0.5}, "the paper's prior": {10: 0.2, 20: 0.2}}


def test_less_data_is_compared_with_ease_on_the_same_share():
    own = judged(0.4, dataset="ml-100k@20")
    solved = entry({1: 0.3}, view="last", sampler="", model="ease", dataset="ml-100k@20", l2=400.0)
    whole = entry({1: 0.9}, view="last", sampler="", model="ease", l2=400.0)
    stale = judged(0.9, dataset="ml-100k@20", epoch=5)
    text = "\n".join(beyond_page.less_data(study(own, stale, solved, whole)))
    assert "| 20% | 9 | 0.4000 | 0.3000 (l2 = 400) | +0.1000" in text


def test_no_paper_no_claim_against_it():
    assert beyond_page.against_paper([judged(0.4).record], "gowalla") == []
    assert "0.4176" in beyond_page.against_paper([judged(0.4).record, judged(0.5).record], "ml-100k")[0]


def test_what_did_not_help_is_told_on_the_tenths_that_both_were_judged_on():
    start = beyond.MIDDLE
    judged_on = lambda views, value, **more: [  # noqa: E731
        entry({5: value}, view=view, **{**start, **more}) for view in views
    ]
    found = [
        *judged_on(TENTHS, 0.4),
        *judged_on(TENTHS[:1], 0.3, weight=20.0),
        *judged_on(TENTHS[:1], 0.5, candidates=20),
    ]
    found += [entry({5: 0.2}), entry({5: 0.9}, view="blind2", **{**start, "weight": 5.0})]
    text, table = beyond_page.search(beyond_page.Study("ml-100k", "mf", found))
    assert text.endswith(": the paper's BNS: −0.2000; weight=20.0: −0.1000.")
    assert "candidates=20, weight=10.0 | 1 | 1 | 0.5000 | +0.1000 | 5 |" in table
    assert "candidates=10, weight=10.0 | 3 | 3 | 0.4000 |  | 5 |" in table
