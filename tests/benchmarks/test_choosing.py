"""How benchmarks.studies.beyond chooses a setting on validation, and that its page keeps apart what differs."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
import sweeps

from bayesneg.config.build import build_sampler
from bayesneg.config.registry import PAPER
from bayesneg.runs.ledger import Entry
from bayesneg.runs.record import RunRecord
from benchmarks.pages.beyond import page as beyond_page
from benchmarks.studies import beyond, choosing, plans
from benchmarks.studies.choosing import Choice, SearchSpace, UnsettledError
from benchmarks.studies.splits import StudySource

TENTHS = ("blind", "blind2", "blind3")
PLANS = plans.PLANS


def chosen(found, *, epochs=None, l2=None, n_first=1, n_all=3):
    """Of a space between all learned settings that were judged, unless something is asked for."""
    blind = [one for one in found if one.cell["view"] in TENTHS]
    ours = [one for one in blind if "prior" in one.cell["sampler_settings"]]
    settings = []
    for one in ours:
        if (setting := choosing.setting_of(one)) not in settings:
            settings.append(setting)
    solved = {one.cell["model_settings"]["l2"] for one in blind if one.cell["model"] == "ease"}
    length = epochs or max((one.cell["epochs"] for one in ours), default=5)
    return choosing.chosen(
        found, SearchSpace(settings, length, [{"l2": value} for value in l2 or sorted(solved)], n_first, n_all)
    )


def is_settled(found, **how):
    try:
        return bool(chosen(found, **how))
    except UnsettledError:
        return False


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


def ease(l2=400.0, value=0.1, views=TENTHS, **how):
    return [entry({1: value}, view=view, sampler="", model="ease", label="ease", l2=l2, **how) for view in views]


def als(value, dim, *, view="blind"):
    return entry({1: value}, view=view, sampler="", model="als", label="als", dim=dim)


def test_the_best_setting_and_its_first_best_epoch_are_chosen():
    found = [*everywhere({5: 0.2, 10: 0.4, 15: 0.4}, candidates=5), *everywhere({5: 0.3, 15: 0.3}, candidates=10)]
    assert chosen([*found, *ease()]) == (({"prior": "learned", "weight": 10.0, "candidates": 5}, {}), 10, 400.0)


def test_test_labels_have_no_say():
    found = [*everywhere({5: 0.2}, candidates=5), learned({5: 0.9}, view="last", candidates=10), *ease()]
    assert chosen(found).setting[0]["candidates"] == 5


def test_a_lucky_tenth_bows_to_a_mean_over_tenths():
    values = zip(TENTHS, (0.9, 0.1, 0.1), strict=True)
    lucky = [learned({5: value, 10: 0.0}, view=view, candidates=20) for view, value in values]
    steady = everywhere({5: 0.4, 10: 0.5}, candidates=5)
    assert chosen([*lucky, *steady, *ease()])[:2] == (({"prior": "learned", "weight": 10.0, "candidates": 5}, {}), 10)


def test_a_tenth_counts_once_however_many_seeds_it_has():
    seeds = [learned({5: 0.9, 10: 0.1}, seed=seed) for seed in range(3)]
    others = [learned({5: 0.1, 10: 0.8}, view=view) for view in TENTHS[1:]]
    assert chosen([*seeds, *others, *ease()]).epoch == 10


def test_nothing_is_chosen_before_every_finalist_was_judged_on_every_tenth():
    found = [*everywhere({5: 0.2}, candidates=5), learned({5: 0.9}, candidates=10), *ease()]
    with pytest.raises(UnsettledError, match="run `finalists`"):
        chosen(found)
    complete = [*found, *(learned({5: 0.9}, view=view, candidates=10) for view in TENTHS[1:])]
    assert chosen(complete).setting[0]["candidates"] == 10
    assert not is_settled([*complete, *ease(800.0, views=TENTHS[:1])])
    assert not is_settled(complete, l2=(400.0, 800.0)), "EASE with l2 = 800 is of the space and was not judged"


def test_an_unfinished_search_decides_nothing():
    found = [*everywhere({5: 0.2}, candidates=5), *ease()]
    planned = [({"prior": "learned", "weight": 10.0, "candidates": m}, {}) for m in (5, 10)]
    with pytest.raises(UnsettledError, match="1 of 2 settings are not evaluated yet: run `search`"):
        choosing.chosen(found, SearchSpace(planned, 5, [{"l2": 400.0}]))


def test_what_is_not_of_the_contest_has_no_say():
    own = everywhere({5: 0.2}, candidates=5)
    found = [*own, *everywhere({5: 0.9}, candidates=10), *everywhere({5: 0.9, 10: 0.9}, candidates=5), *ease()]
    space = SearchSpace([choosing.setting_of(own[0])], 5, [{"l2": 400.0}])
    assert choosing.chosen([*found, *ease(800.0, 0.9)], space) == (space.settings[0], 5, 400.0)


def test_finalists_are_the_best_on_all_tenths_that_every_setting_is_judged_on():
    lucky = [learned({5: value}, view=view, candidates=20) for view, value in zip(TENTHS, (0.9, 0.1, 0.1), strict=True)]
    steady = [one for m in range(2, 6) for one in everywhere({5: 0.6}, candidates=m)]
    settings = [({"prior": "learned", "weight": 10.0, "candidates": m}, {}) for m in (2, 3, 4, 5, 20)]
    named = lambda n_first: {  # noqa: E731
        one.setting[0]["candidates"]
        for one in choosing.finalists([*lucky, *steady], SearchSpace(settings, 5, [{"l2": 400.0}], n_first))
    }
    assert 20 in named(1)
    assert named(2) == {2, 3, 4, 5}


def test_tenths_beyond_those_of_the_contest_do_not_count():
    found = [*everywhere({5: 0.4}, candidates=5), *everywhere({5: 0.5}, candidates=10), *ease()]
    assert chosen([*found, learned({5: 0.9}, view="blind4", candidates=5)]).setting[0]["candidates"] == 10


def test_the_papers_own_setting_is_no_candidate():
    assert chosen([entry({5: 0.9}), *everywhere({5: 0.2}, candidates=5), *ease()]).setting[0]["candidates"] == 5


def test_runs_of_different_length_are_different_settings():
    found = [*everywhere({5: 0.2, 10: 0.3}, candidates=5), learned({5: 0.9}, candidates=5), *ease()]
    assert chosen(found, epochs=10).epoch == 10
    assert not is_settled(found, epochs=5)


def test_the_penalty_of_ease_is_the_best_on_validation():
    elsewhere = ease(100.0, 0.9, views=("last",))
    assert chosen([*everywhere({5: 0.2}), *ease(), *ease(800.0, 0.2), *elsewhere]).l2 == 800.0


def test_every_plan_names_settings_that_can_be_built(monkeypatch, tmp_path):
    pytest.importorskip("torch", reason="torch is not installed (the extra 'torch')")
    monkeypatch.setattr(plans, "PLANS", PLANS)
    split = StudySource().split(str(sweeps.world(tmp_path)), "blind")
    for dataset, model in plans.PLANS:
        space = plans.plan_of(f"{dataset}@50", model).space()
        assert space.settings == [one.setting for one in beyond.searched(dataset, model)[:-1]]
        assert len({str(one) for one in space.settings}) == len(space.settings)
        assert 1 <= space.n_first <= space.n_all <= 10
        assert space.ease
        for of_sampler, of_model in space.settings:
            PAPER[model](**of_model)
            build_sampler("bns", of_sampler, split)
    with pytest.raises(SystemExit, match="no plan for kuairec with mf, only for: ml-100k mf; "):
        plans.plan_of("kuairec", "mf")


SETTING = {"prior": "learned", "weight": 10.0, "candidates": 10}


def judged(value, *, seed=0, epoch=10, label="chosen on validation", **how):
    return learned({epoch: value}, view="last", seed=seed, label=label, **{"candidates": 10, **how})


@pytest.fixture(autouse=True)
def _small_plan(monkeypatch):
    """One setting and one l2, so that a study is settled by a few entries."""
    small = plans.Plan(10, [SETTING], [], l2=(400.0,), als=[{"dim": 32}, {"dim": 64}])
    monkeypatch.setattr(plans, "PLANS", {**plans.PLANS, ("ml-100k", "mf"): small})


def study(*more):
    return beyond_page.DatasetStudy("ml-100k", "mf", [*everywhere({5: 0.2, 10: 0.3}, candidates=10), *ease(), *more])


def test_the_page_keeps_final_runs_of_other_settings_apart():
    now = [judged(0.4, seed=seed) for seed in range(2)]
    before = [judged(0.6, seed=seed, epoch=5) for seed in range(2)] + [judged(0.8, dim=64)]
    text = "\n".join(beyond_page.final_runs(study(*now, *before, *ease(views=("last",)))))
    assert "| **chosen on validation** | 2 | 10 | 0.4000 ± 0.0000" in text
    assert "chosen before: prior=learned, weight=10.0, candidates=10, epoch 5 | 2 | 5 | 0.6000 ± 0.0000" in text
    assert "candidates=10, dim=64, epoch 10 | 1 | 10 | 0.8000" in text
    assert "l2 = 400 (chosen on validation): " in text, "one l2 cannot be the best on the test labels"
    assert "best on the test labels" not in text


def test_the_page_says_how_often_the_test_part_was_looked_at_and_what_the_sampler_adds(monkeypatch):
    now = [judged(0.4, seed=seed) for seed in range(2)]
    text = "\n".join(beyond_page.final_runs(study(*now)))
    assert "so far" not in text
    assert "with that model" not in text
    text = "\n".join(beyond_page.final_runs(study(*now, judged(0.6, epoch=5))))
    assert "2 choices have been evaluated on this test part so far" in text
    wide = plans.plan_of("ml-100k", "mf")._replace(samplers=[], both=[(SETTING, {"dim": 64})])
    monkeypatch.setattr(plans, "PLANS", {("ml-100k", "mf"): wide})
    tried = [learned({10: 0.3}, view=view, candidates=10, dim=64) for view in TENTHS]
    runs = [judged(0.4, seed=seed, dim=64) for seed in range(2)]
    same = [entry({10: 0.1}, view="last", seed=seed, label=beyond.SAME_MODEL, dim=64) for seed in range(2)]
    text = "\n".join(beyond_page.final_runs(beyond_page.DatasetStudy("ml-100k", "mf", [*tried, *ease(), *runs, *same])))
    assert "minus that of the paper's BNS with that model: +0.3000 (+0.3000 to +0.3000) over users" in text


def test_earlier_final_runs_stay_while_those_of_the_choice_are_missing():
    text = "\n".join(beyond_page.final_runs(study(judged(0.6, epoch=5))))
    assert "chosen before: " in text
    assert "has not been run on the test split" in text


def test_the_curve_has_the_final_runs_of_the_chosen_m_and_nothing_of_other_settings():
    choice = Choice((SETTING, {}), 10, 400.0)
    of_curve = beyond.studied("ml-100k", "mf", choice)
    curve = beyond.curve("ml-100k", "mf", *of_curve)["learned prior"][10]
    final = beyond.final("ml-100k", "mf", choice)[0]
    assert final[1:] == curve[1:], "the sweep trains once what both have"
    own = [judged(0.4), judged(0.5, candidates=20, label="learned prior, m = 20")]
    stale = judged(0.9, candidates=50, epoch=5, label="learned prior, m = 50")
    papers = [entry({10: 0.2}, view="last", weight=10.0, candidates=m) for m in (10, 20)]
    found = study(*own, stale, *papers).curves()
    values = {prior: {m: runs[0].final["ndcg@20"] for m, runs in by_m.items()} for prior, by_m in found.items()}
    assert values == {"learned prior": {10: 0.4, 20: 0.5}, "the paper's prior": {10: 0.2, 20: 0.2}}


def test_a_plan_can_name_what_the_curve_and_the_sizes_are_trained_with(monkeypatch):
    named, choice = ((SETTING, {"dim": 64}), 5), Choice((SETTING, {}), 10, 400.0)
    assert beyond.studied("ml-100k", "mf", choice) == ((SETTING, {}), 10)
    assert beyond.studied("ml-100k", "mf", None) is None
    monkeypatch.setitem(plans.PLANS, ("ml-100k", "mf"), plans.plan_of("ml-100k", "mf")._replace(studied=named))
    assert beyond.studied("ml-100k", "mf", None) == beyond.studied("ml-100k", "mf", choice) == named


def test_the_final_runs_tell_the_sampler_s_part_from_the_model_s():
    alone, both = (beyond.final("ml-100k", "mf", Choice((SETTING, of), 10, 400.0)) for of in ({}, {"ensemble_size": 4}))
    papers, random = [row for row in both if row.label not in {row.label for row in alone}]
    assert (papers.setting, papers.epochs) == (({}, {"ensemble_size": 4}), both[0].epochs)
    assert (random.setting, random.epochs) == (({"candidates": 1}, {"ensemble_size": 4}), both[0].epochs)


def test_less_data_is_compared_with_ease_on_the_same_share():
    own = judged(0.4, dataset="ml-100k@20")
    solved = entry({1: 0.3}, view="last", sampler="", model="ease", dataset="ml-100k@20", l2=400.0)
    whole = entry({1: 0.9}, view="last", sampler="", model="ease", l2=400.0)
    stale = judged(0.9, dataset="ml-100k@20", epoch=5)
    text = "\n".join(beyond_page.less_data(study(own, stale, solved, whole)))
    assert "| 20% | 9 | 0.4000 | 0.3000 (l2 = 400) | +0.1000" in text


def test_no_paper_no_claim_against_it():
    runs = [judged(0.4).record, judged(0.5).record]
    assert beyond_page.against_paper(runs, beyond_page.DatasetStudy("gowalla", "mf", [])) == []
    assert "0.4176" in beyond_page.against_paper(runs, study())[0]


def test_a_gain_is_over_the_tenths_that_both_settings_were_judged_on():
    start, first = plans.MIDDLE, TENTHS[:1]
    judged_on = lambda views, value, **more: [  # noqa: E731
        entry({10: value}, view=view, **{**start, **more}) for view in views
    ]
    found = [*judged_on(TENTHS, 0.4), *judged_on(first, 0.3, weight=20.0), *judged_on(first, 0.5, candidates=20)]
    found += [entry({10: 0.2}), *judged_on(("blind4",), 0.1, weight=5.0), *judged_on(first, 0.4, hidden=0.25)]
    rows = beyond_page.search(beyond_page.DatasetStudy("ml-100k", "mf", found))
    gains = {(row["setting"], row["tenths"]): row["gain"] and round(row["gain"], 4) for row in rows}
    begun = "prior=learned, likelihood=mixture"
    assert gains == {
        (f"{begun}, candidates=10, weight=10.0", 3): "",
        (f"{begun}, candidates=20, weight=10.0", 1): 0.1,
        (f"{begun}, candidates=10, weight=10.0, hidden=0.25", 1): 0.0,
        (f"{begun}, candidates=10, weight=20.0", 1): -0.1,
        (f"{begun}, candidates=10, weight=5.0", 1): "",
        ("the paper's BNS", 1): -0.2,
    }
    assert [row["in_space"] for row in rows if row["setting"] != "the paper's BNS"] == [0] * 5
    assert all(row["in_space"] for row in beyond_page.search(study()))


def test_one_seed_is_never_distinguishable_from_ease():
    solved = ease(value=0.3, views=("last",))[0].record
    assert beyond_page.Against(([judged(0.4).record], solved)).verdict == "not distinguishable"
    for value, verdict in ((0.4, "above"), (0.2, "below")):
        own = [judged(value, seed=seed).record for seed in range(2)]
        assert beyond_page.Against((own, solved)).verdict == verdict


def test_other_test_parts_are_shown_by_repetition_once_all_folds_of_it_are_there():
    parts = {part: f"ml-100k#{part}" for part in range(1, 11)}
    best = {5: 0.4, 10: 0.5}
    runs = [judged(best.get(part, 0.3), seed=seed, dataset=parts[part]) for part in parts for seed in range(2)]
    solved = [one for name in parts.values() for one in ease(value=0.3, views=("last",), dataset=name)]
    *_, table = beyond_page.other_test_parts(study(*runs, *solved))
    assert "| repetition 1 | 0.3200 | 0.3000 | +0.0200 (+0.0200 to +0.0200) | above |" in table
    assert table.endswith("| all 2 | 0.3300 | 0.3000 | +0.0300 (+0.0300 to +0.0300) | above |")
    for found in (study(*runs, *solved[:-1]), study(*runs[:-1], *solved)):
        *_, table = beyond_page.other_test_parts(found)
        assert "repetition 1" in table
        assert "repetition 2" not in table
        assert "all" not in table
    assert beyond_page.other_test_parts(study(*runs, *solved[6:])) == []


def test_the_overview_has_what_was_chosen_and_nothing_without_its_runs():
    runs = [judged(0.5, seed=seed) for seed in range(2)]
    solved = ease(value=0.3, views=("last",))
    (_, table) = beyond_page.overview([study(*runs, *solved)])
    assert "| MovieLens-100K, MF | 2 | 0.5000 ± 0.0000 | 0.4383 |  | 0.3000 | +0.2000 (" in table
    assert table.rstrip().endswith("| above |  |")
    for missing in (study(*runs), study(*solved), beyond_page.DatasetStudy("ml-100k", "mf", [*runs, *solved])):
        assert beyond_page.overview([missing]) == []


def test_als_stands_beside_as_validation_chose_it_and_not_before_all_of_it_was_judged():
    found = [*(judged(0.5, seed=seed) for seed in range(2)), *ease(value=0.3, views=("last",))]
    blind = [als(0.2, 32), als(0.3, 64)]
    tested = [als(0.45, 32, view="last"), als(0.4, 64, view="last")]
    (_, table) = beyond_page.overview([study(*found, *blind, *tested)])
    assert "| 0.4383 | 0.4000 | 0.3000 | +0.2000 (" in table, "0.45 is better on test labels alone"
    text = "\n".join(beyond_page.final_runs(study(*found, *blind, *tested)))
    assert "| ALS, dim=64 | 1 | 1 | 0.4000" in text
    assert "NDCG@20 minus that of ALS: +0.1000 (" in text
    (_, table) = beyond_page.overview([study(*found, *blind[1:], *tested)])
    assert "| 0.4383 |  | 0.3000 |" in table


def test_the_search_judges_als_and_the_final_runs_have_the_best_of_it(tmp_path, monkeypatch):
    world = SimpleNamespace(fingerprint=lambda *of: "the same data")
    monkeypatch.setattr(beyond, "RESULTS", tmp_path)
    searched = [cell for cell in beyond.planned("search", world, "ml-100k", "mf", None) if cell.model == "als"]
    assert [cell.model_settings for cell in searched] == [{"dim": 32}, {"dim": 64}]
    assert {cell.view for cell in searched} == {"blind"}
    monkeypatch.setattr(beyond, "RUNS", tmp_path)
    path = beyond.ledger_of("ml-100k", "mf")
    for judged_als, expected in ([als(0.3, 64)], []), ([als(0.3, 64), als(0.2, 32)], [{"dim": 64}]):
        path.write_text("".join(json.dumps(one.to_dict()) + "\n" for one in [*study().found, *judged_als]))
        last = beyond.planned("final", world, "ml-100k", "mf", 1)
        assert [cell.model_settings for cell in last if cell.model == "als"] == expected


def test_runs_of_another_length_do_not_join_a_row_of_the_same_name():
    now = [entry({10: 0.1}, view="last", label="the paper's BNS", seed=seed) for seed in range(2)]
    before = [entry({5: 0.3}, view="last", label="the paper's BNS", seed=seed) for seed in range(2, 4)]
    text = "\n".join(beyond_page.final_runs(study(judged(0.4), *now, *before)))
    assert "| the paper's BNS | 2 | 10 | 0.1000" in text
    assert "| the paper's BNS, before: as it is, epoch 5 | 2 | 5 | 0.3000" in text
