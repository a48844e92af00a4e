"""A search: blind to test labels, deterministic, resumable, and modest in what it recommends."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

import bayesneg as bn
from bayesneg.config.loss_specs import LossSpec
from bayesneg.config.specs import SamplerSpec
from bayesneg.errors import InputError
from bayesneg.tuning import given, pace, search, space, studies, tune
from bayesneg.tuning.journal import JOURNAL, open_journal
from worlds import interactions, random_interactions

pytest.importorskip("optuna", reason="optuna is not installed (the extra 'tune')")

MODEL = bn.MF.paper()
FEW = {"trials": 9, "epochs": 6, "seeds": 2, "baselines": (), "progress": False}


@pytest.fixture(scope="module")
def split() -> bn.Split:
    return bn.split(bn.synthetic(60, 50, seed=0), test=0.2, validation=0.2, seed=0)


@pytest.fixture(scope="module")
def tuning(split):
    return bn.tune(MODEL, split, **FEW)


def facts(tuning):
    """All of the trials but the seconds."""
    return [replace(trial, seconds=0.0) for trial in tuning.trials]


def test_a_trial_is_what_fit_finds_on_the_validation_part(split, tuning):
    for trial in tuning.trials[:3]:
        sampler = SamplerSpec.parse(trial.sampler).build(split)
        run = bn.fit(MODEL, split, sampler, epochs=6, seed=0, progress=False)
        assert trial.curve == run.record.at_epochs("validation_ndcg@20")
        assert trial.value == run.record.at_epochs("validation_ndcg@20")[run.record.reported_epoch]


def test_other_test_labels_give_the_same_trials_and_another_comparison(split, tuning):
    kept = np.arange(len(split.test)) % 3 == 0
    other = bn.tune(MODEL, bn.Split(split.train, split.test.select(kept), split.validation), **FEW)
    assert facts(other) == facts(tuning)
    assert other.records[0].final != tuning.records[0].final


def test_the_usual_setting_of_every_sampler_comes_first(tuning):
    usual = ["rns", "dns:candidates=2", "bns:candidates=5:weight=5:prior=popularity:likelihood=paper"]
    assert [trial.sampler for trial in tuning.trials[:3]] == usual
    best = [max(trial.value for trial in tuning.trials if trial.family == name) for name in tuning.best]
    assert [trial.value for trial in tuning.best.values()] == best


def test_trials_and_final_runs_end_where_they_no_longer_improve(split):
    few = {**FEW, "trials": 2, "epochs": 40, "seeds": 1}
    found = bn.tune(bn.MF(learning_rate=0.1), split, "dns", **few, patience=2)
    assert found.plan["patience"] == 2
    for trial, record in zip(found.trials, found.records, strict=True):
        assert trial.state == "complete"
        assert len(trial.curve) == len(record.epochs) < 40
        assert max(trial.curve, key=trial.curve.get) == len(trial.curve) - 2 == record.reported_epoch
    assert found.command.endswith("--epochs 200 --patience 2"), "as long as it improves"


def test_the_same_seed_gives_the_same_trials_and_another_gives_others(split, tuning):
    assert facts(bn.tune(MODEL, split, **FEW)) == facts(tuning)
    assert [t.sampler for t in bn.tune(MODEL, split, **FEW, seed=1).trials] != [t.sampler for t in tuning.trials]


def test_a_trial_below_the_median_is_given_up(split):
    found = bn.tune(MODEL, split, **{**FEW, "trials": 16, "seeds": 1})
    pruned = [trial for trial in found.trials if trial.state == "pruned"]
    assert pruned
    assert all(2 <= len(trial.curve) < 6 for trial in pruned)  # never in the first third


class Clock:
    """Each reading is ten seconds after the one before it."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        self.now += 10.0
        return self.now


def paced(*given, **more):
    return pace.Pace(*given, **{**more, "clock": Clock(), "began": 0.0})


def test_a_search_whose_minutes_are_used_ends_with_advice_from_what_is_finished(split, tuning, tmp_path, monkeypatch):
    with monkeypatch.context() as slow:
        slow.setattr(tune, "Pace", paced)
        found = bn.tune(MODEL, split, **FEW, minutes=5, out=tmp_path)
    n_done = len(found.trials)
    assert 1 <= n_done < FEW["trials"]
    assert facts(found) == facts(tuning)[:n_done], "the trial under way does not count"
    said = f"The search ended after {n_done} of 9 trials, when its 5 minutes were used"
    assert any(note.startswith(said) for note in found.advice.notes)
    assert {record.label for record in found.records} == {"RNS", *(trial.label for trial in found.best.values())}
    assert facts(bn.tune(MODEL, split, **FEW, out=tmp_path, resume=True)) == facts(tuning), "it goes on without a limit"


def test_what_was_not_tried_in_time_is_named(split, monkeypatch):
    monkeypatch.setattr(tune, "Pace", paced)
    found = bn.tune(MODEL, split, **FEW, minutes=0.1)
    assert len(found.trials) == 1, "the first trial is always made"
    assert found.advice.notes[-1].endswith("of 9 trials, when its 0.1 minutes were used; not tried: DNS; BNS.")


@pytest.mark.parametrize("stopped_in_trial", [2, 6])
def test_an_interrupted_search_ends_as_if_it_had_not_been(split, tuning, tmp_path, monkeypatch, stopped_in_trial):
    begun = []

    def interrupted(*given, **options):
        begun.append(options["label"])
        if len(begun) == stopped_in_trial:
            options["epochs"] = 1
            bn.fit(*given, **options)
            raise KeyboardInterrupt
        return bn.fit(*given, **options)

    monkeypatch.setattr(search, "fit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        bn.tune(MODEL, split, **FEW, out=tmp_path / "out")
    resumed = bn.tune(MODEL, split, **FEW, out=tmp_path / "out", resume=True)
    assert facts(resumed) == facts(tuning)
    assert resumed.advice == tuning.advice
    assert len(begun) == len({trial.sampler for trial in tuning.trials}) + 1  # nothing but the stopped one again


def test_a_search_goes_on_with_more_trials(split, tuning, tmp_path):
    short = bn.tune(MODEL, split, **{**FEW, "trials": 5}, out=tmp_path)
    assert facts(short) == facts(tuning)[:5]
    assert facts(bn.tune(MODEL, split, **FEW, out=tmp_path, resume=True)) == facts(tuning)


def test_half_a_line_and_the_lock_that_a_killed_process_left_are_no_hindrance(split, tuning, tmp_path):
    bn.tune(MODEL, split, **{**FEW, "trials": 4}, out=tmp_path)
    with (tmp_path / JOURNAL).open("a") as journal:
        journal.write('{"op_code": 4, "wor')
    (tmp_path / f"{JOURNAL}.lock").symlink_to(tmp_path / JOURNAL)
    assert facts(bn.tune(MODEL, split, **FEW, out=tmp_path, resume=True)) == facts(tuning)


def test_a_search_is_resumed_as_it_was_begun_or_not_at_all(split, tmp_path):
    least = {**FEW, "trials": 3, "seeds": 1, "out": tmp_path}
    bn.tune(MODEL, split, **least)
    with pytest.raises(InputError, match=r"already holds a search; .* add --resume"):
        bn.tune(MODEL, split, **least)
    with pytest.raises(InputError, match=r"another epochs \(6, now 7\)"):
        bn.tune(MODEL, split, **{**least, "epochs": 7}, resume=True)
    with pytest.raises(InputError, match="another model"):
        bn.tune(bn.MF.paper(dim=8), split, **least, resume=True)


OWN = "import numpy as np\nimport bayesneg as bn\n\n\n"
PRIOR = OWN + "def wary(users, items):\n    return np.full(np.broadcast(users, items).shape, {})\n"
SAMPLER = OWN + "class Mine(bn.RNS):\n    # {}\n    pass\n"


@pytest.mark.parametrize(
    ("sampler", "file", "text"),
    [
        ("bns:prior=rate:rejected={}", "passed.csv", "user,item\n{},{}\n"),
        ("bns:prior=rate:strength=2:rejected={}", "passed.csv", "user,item\n{},{}\n"),
        ("bns:prior={}:wary", "priors.py", PRIOR),
        ("bns:prior=rate+{}:wary", "more.py", PRIOR),
        ("{}:Mine", "mine.py", SAMPLER),
    ],
    ids=["rejected", "rejected, scaled", "own prior", "own prior among others", "own sampler"],
)
def test_a_search_is_not_resumed_with_other_content_of_a_file(split, tmp_path, sampler, file, text):
    path, train = tmp_path / file, split.train
    numbers = [(train.user_ids[train.users[place]], train.item_ids[train.indices[place]]) for place in (0, 1)]
    of_file = [text.format(*pair) if file.endswith("csv") else text.format(0.1 + n) for n, pair in enumerate(numbers)]
    path.write_text(of_file[0])
    least = {**FEW, "trials": 2, "epochs": 1, "seeds": 1, "out": tmp_path / "out"}
    begun = bn.tune(MODEL, split, sampler.format(path), **least)
    path.write_text(of_file[1])
    with pytest.raises(InputError, match=r"another content of .*; resume it as it was begun, or choose another --out"):
        bn.tune(MODEL, split, sampler.format(path), **least, resume=True)
    path.write_text(of_file[0])
    assert facts(bn.tune(MODEL, split, sampler.format(path), **least, resume=True)) == facts(begun)


def test_a_search_that_is_refused_stays_as_it_is(split, tuning, tmp_path, monkeypatch):
    bn.tune(MODEL, split, **{**FEW, "trials": 4}, out=tmp_path)
    with monkeypatch.context() as other:
        other.setattr(given.metadata, "version", lambda name: "0.1")
        with pytest.raises(InputError, match="another optuna"):
            bn.tune(MODEL, split, **FEW, out=tmp_path, resume=True)
    assert facts(bn.tune(MODEL, split, **FEW, out=tmp_path, resume=True)) == facts(tuning)


def test_a_folder_with_other_things_in_it_is_left_alone(split, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match="not an empty folder"):
        bn.tune(MODEL, split, **FEW, out=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_objects_and_text_are_tuned_alike(split, tuning):
    objects = bn.tune(MODEL, split, [bn.RNS(), "dns", bn.BNS()], **FEW)
    one, other = ([replace(trial, sampler=None) for trial in facts(each)] for each in (objects, tuning))
    assert one == other
    assert objects.advice == tuning.advice
    assert (objects.model, objects.sampler) == (tuning.model, tuning.sampler)


def test_the_fields_of_an_object_that_differ_from_the_default_are_kept(split):
    def constant(users, items):
        return np.full(np.broadcast(users, items).shape, 0.01)

    given = {"mine": bn.BNS(prior=constant, candidates=3), "DNS (top 2)": "dns:top=2"}
    found = bn.tune(MODEL, split, given, **{**FEW, "trials": 6, "epochs": 2, "seeds": 1})
    mine = [trial for trial in found.trials if trial.family == "mine"]
    assert len(mine) > 1
    assert all(trial.settings.keys() == {"weight", "likelihood"} for trial in mine)
    assert all(trial.sampler is None for trial in mine), "no text gives a function"
    best = {record.label: record for record in found.records}[found.best["mine"].label]
    assert best.spec["sampler"]["candidates"] == 3
    assert next(trial.label for trial in found.trials if trial.family == "DNS (top 2)") == "DNS (top 2, candidates=2)"


def test_rns_is_advised_where_nothing_is_better(split):
    found = bn.tune(MODEL, split, "dns:candidates=1", **{**FEW, "seeds": 3})  # which is RNS by another name
    assert [trial.family for trial in found.trials] == ["RNS", "DNS (candidates=1)"]  # nothing to search
    assert found.advice.label == "RNS"
    assert found.recommendation.startswith("Use the loss BPR with the sampler RNS and the model MF: it is ")
    assert isinstance(found.sampler, bn.RNS)


def test_no_setting_is_tried_twice_and_the_search_ends_where_none_is_left(split, monkeypatch):
    monkeypatch.setattr(space, "SPACE", {"candidates": space.WholeBetween(2, 4)})
    found = bn.tune(MODEL, split, "dns", **{**FEW, "seeds": 1})
    assert sorted(trial.sampler for trial in found.trials) == [
        "dns:candidates=2",
        "dns:candidates=3",
        "dns:candidates=4",
        "rns",
    ]


def test_a_sampler_with_nothing_new_gives_its_turn_away(split, monkeypatch):
    few = {"candidates": space.WholeBetween(2, 3), "power": space.Between(0.1, 1.0)}
    monkeypatch.setattr(space, "SPACE", few)
    found = bn.tune(MODEL, split, "dns,pns", **{**FEW, "seeds": 1})
    assert [trial.family for trial in found.trials].count("DNS") == 2
    assert len(found.trials) == FEW["trials"]


def test_turns_go_by_the_number_of_settings_to_search(tuning):
    assert [trial.family for trial in tuning.trials[3:]] == ["DNS", "BNS", "BNS", "BNS", "BNS", "DNS"]


def test_a_setting_that_fails_is_a_finding_and_not_the_end(split, tmp_path):
    (tmp_path / "bad.py").write_text(
        "import numpy as np\nimport bayesneg as bn\n\n\nclass Bad(bn.NegativeSampler):\n"
        "    def sample(self, batch):\n        return np.full(len(batch.users), 10**6)\n"
    )
    found = bn.tune(MODEL, split, f"{tmp_path / 'bad.py'}:Bad,dns", **{**FEW, "seeds": 1})
    assert [trial.state for trial in found.trials[:3]] == ["complete", "failed", "complete"]
    assert "sample must return item numbers" in found.trials[1].why
    assert "Bad" not in found.best


def test_a_baseline_is_judged_with_the_others_and_advised_where_it_is_better(split):
    found = bn.tune(MODEL, split, "rns", **{**FEW, "epochs": 1, "baselines": {"POPULAR": bn.baselines.MostPopular()}})
    labels = [record.label for record in found.records]
    assert labels == ["RNS", "RNS", "POPULAR", "POPULAR"]
    assert found.advice.label == "POPULAR"  # one epoch from random vectors learns next to nothing
    assert found.model == bn.baselines.MostPopular()
    assert (found.sampler, found.to_dict()["recommended"]["sampler"]) == (None, None)
    assert found.command == "bayesneg train DATA --model popularity"
    assert bn.fit(found.model, split, found.sampler, progress=False).record.final == found.records[-1].final


def test_popularity_item_neighbours_and_ease_stand_beside_unless_others_are_given(split):
    few = {"trials": 1, "epochs": 1, "seeds": 1, "progress": False}
    beside = {"POPULARITY": bn.baselines.MostPopular(), "ITEM-KNN": bn.baselines.ItemKNN(), "EASE": bn.baselines.EASE()}
    found = bn.tune(MODEL, split, "rns", **few)
    assert found.advice.test == bn.tune(MODEL, split, "rns", **few, baselines=beside).advice.test  # label → score
    assert [record.model.split(" ")[0] for record in found.records] == ["MF", "MostPopular", "ItemKNN", "EASE"]
    assert [record.label for record in bn.tune(MODEL, split, "rns", **few, baselines=()).records] == ["RNS"]


def test_the_main_setting_of_a_baseline_is_the_best_on_validation_unless_it_was_given(split, monkeypatch):
    monkeypatch.setitem(space.BASELINES, bn.baselines.EASE, ("l2", (1.0, 30.0, 400.0)))
    rivals = [bn.baselines.EASE(), bn.baselines.EASE(l2=7.0), bn.baselines.MostPopular()]
    found = bn.tune(MODEL, split, "rns", **{**FEW, "epochs": 1, "seeds": 1, "baselines": [*rivals, "ease:l2=400"]})
    judged = {one.l2: _on_validation(one, split) for one in space.variants(bn.baselines.EASE())[1]}
    best = max(judged, key=judged.__getitem__)
    assert judged[best] > judged[bn.baselines.EASE().l2], "a world in which the default is best shows nothing"
    used = {record.label: record.spec["model"].get("l2") for record in found.records}
    assert used == {
        "RNS": None,
        f"EASE (l2={best:g})": best,
        "EASE (l2=7)": 7.0,
        "EASE (l2=400)": 400.0,
        "MostPopular": None,
    }


def test_a_baseline_that_tuning_makes_equal_to_another_stands_once(split, monkeypatch):
    monkeypatch.setitem(space.BASELINES, bn.baselines.EASE, ("l2", (30.0, 400.0)))
    few = {"trials": 1, "epochs": 1, "seeds": 1, "progress": False}
    found = bn.tune(
        MODEL, split, "rns", **few, baselines={"EASE": bn.baselines.EASE(), "EASE (l2=30)": bn.baselines.EASE(l2=30.0)}
    )
    assert [record.label for record in found.records] == ["RNS", "EASE (l2=30)"]
    monkeypatch.setattr(search.Search, "run", lambda *_: pytest.fail("the search began"))
    with pytest.raises(InputError, match=r"EASE \(l2=30\) twice once it is tuned; give them other labels"):
        bn.tune(
            MODEL,
            split,
            "rns",
            **few,
            baselines={"EASE": bn.baselines.EASE(), "EASE (l2=30)": bn.baselines.EASE(l2=31.0)},
        )


def _on_validation(model, split):
    return bn.fit(model, split, progress=False).record.epochs[-1]["validation_ndcg@20"]


def test_trials_share_what_a_prior_learned(split, monkeypatch):
    learned, learn = [], bn.priors.Learned._learned
    monkeypatch.setattr(bn.priors.Learned, "_learned", lambda self, train: learned.append(self) or learn(self, train))
    found = bn.tune(MODEL, split, "bns-learned,bns-learned:hidden=0.5", **{**FEW, "trials": 5, "epochs": 1, "seeds": 1})
    assert [trial.family for trial in found.trials].count("BNS-LEARNED") == 3
    assert len(learned) == 4  # each of the two settings in the search, and again in the final comparison


def pairs_file(path, *parts):
    """A file with the first pairs of each part, by their raw identifiers."""
    rows = [
        f"{part.user_ids[user]},{part.item_ids[item]}\n"
        for part, n_pairs in parts
        for user, item in zip(part.users[:n_pairs], part.indices[:n_pairs], strict=True)
    ]
    path.write_text("user,item\n" + "".join(rows))
    return path


@pytest.mark.parametrize(("n_test", "n_validation"), [(5, 0), (5, 2)])
def test_rejected_pairs_of_the_test_part_are_refused_before_the_first_trial(
    split, tmp_path, monkeypatch, n_test, n_validation
):
    monkeypatch.setattr(search.Search, "run", lambda *_: pytest.fail("the search began"))
    path = pairs_file(tmp_path / "passed.csv", (split.test, n_test), (split.validation, n_validation))
    with pytest.raises(InputError, match=f"holds {n_test + n_validation} pairs of the test or validation part"):
        bn.tune(MODEL, split, f"bns:prior=rate:rejected={path}", **FEW, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_second_process_is_refused_the_folder_of_a_search(tmp_path):
    with studies.opened(tmp_path / "found", {}, resume=False):
        again = studies.opened(tmp_path / "found", {}, resume=True)
        with pytest.raises(InputError, match=r"found is being written by another process; .*--storage"), again:
            pass
    with studies.opened(tmp_path / "found", {}, resume=True):
        pass


def test_without_optuna_the_way_out_is_named(split, monkeypatch):
    monkeypatch.setattr(studies, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"needs optuna.*pip install 'bayesneg\[tune\]'"):
        bn.tune(MODEL, split, **FEW)


def test_wrong_arguments_are_named():
    plain = bn.split(random_interactions(np.random.default_rng(0), 20, 30, most=0.5), test=0.2, seed=0)
    with pytest.raises(InputError, match=r"validation=0\.1"):
        bn.tune(MODEL, plain, **FEW)
    judged = bn.split(bn.synthetic(30, 40, seed=0), test=0.2, validation=0.2, seed=0)
    with pytest.raises(InputError, match="trials must be at least 3"):
        bn.tune(MODEL, judged, **{**FEW, "trials": 2})
    with pytest.raises(InputError, match="ORACLE uses the labels"):
        bn.tune(MODEL, judged, "rns,oracle", **FEW)
    with pytest.raises(InputError, match="DNS twice"):
        bn.tune(MODEL, judged, "dns,dns", **FEW)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"trials": "a"}, r"trials must be a whole number of at least 1, got 'a'"),
        ({"seeds": "a"}, r"seeds must be a whole number of at least 1, got 'a'"),
        ({"seeds": 0}, r"seeds must be a whole number of at least 1, got 0"),
        ({"epochs": 2.5}, r"epochs must be a whole number of at least 1, got 2\.5"),
        ({"evaluate_every": 0}, r"evaluate_every must be a whole number of at least 1, got 0"),
        ({"patience": 0}, r"patience must be a whole number of at least 1, got 0"),
        ({"jobs": 0}, r"jobs must be a whole number of at least 1, got 0"),
        ({"minutes": 0}, r"minutes must be a number above 0, got 0"),
        ({"seed": -1}, r"seed must be a whole number of at least 0, got -1"),
        ({"samplers": [3]}, r'samplers: each must be a sampler such as bn\.BNS\(\), or text such as "rns,bns", got 3'),
        ({"samplers": {"r": bn.RNS}}, r"samplers: r must be a sampler such as bn\.BNS\(\), .* got <class"),
        ({"samplers": []}, r"samplers must name at least one sampler, got none"),
        ({"samplers": {"RNS": bn.DNS()}}, r"RNS is the label of plain RNS, which is always compared; choose another"),
        ({"split": interactions([[0]], 2)}, r"split must be a split, got Interactions; bn\.split\(data, valida"),
        ({"baselines": {"MF": bn.MF()}}, r"baselines: MF must be a model without sampler, .* got MF\("),
        ({"model": "lightgcm"}, r"'lightgcm' is not a model; did you mean lightgcn"),
        ({"model": "mf,mf:dim=8"}, r"model must be one model, got 2; tune each in turn"),
        ({"model": bn.baselines.EASE()}, r"model: EASE samples no negatives; compare and tune take it in baselines"),
        ({"resume": True}, r"resume needs out, the folder of the search"),
        ({"samplers": [bn.RNS(negatives=20, shared=True)]}, r"MF takes a step for each example by itself"),
    ],
)
def test_what_cannot_be_meant_is_refused_before_the_search(split, monkeypatch, given, expected):
    monkeypatch.setattr(search.Search, "run", lambda *_: pytest.fail("the search began"))
    with pytest.raises(InputError, match=expected):
        bn.tune(**{"model": MODEL, "split": split, **FEW, **given})


def test_counts_of_numpy_are_counts(split, tmp_path):
    least = dict.fromkeys(("trials", "seeds", "epochs", "evaluate_every", "seed"), np.int64(1))
    assert len(bn.tune(MODEL, split, "rns", **least, out=tmp_path, progress=False).trials) == 1


@pytest.mark.parametrize("moment", ["rename", "unlink"])
def test_ctrl_c_while_the_journal_is_let_go_is_no_error_of_a_file(moment, tmp_path, monkeypatch):
    from optuna.study import StudyDirection

    storage = open_journal(tmp_path / "search.jsonl")
    storage.create_new_study([StudyDirection.MAXIMIZE], "before")
    plain = getattr(os, moment)

    def interrupted(*paths):
        if moment == "unlink":
            plain(*paths)
        monkeypatch.undo()
        raise KeyboardInterrupt

    monkeypatch.setattr(os, moment, interrupted)
    with pytest.raises(KeyboardInterrupt):
        storage.create_new_study([StudyDirection.MAXIMIZE], "now")


def test_losses_are_tuned_with_the_sampler_and_the_command_names_the_loss(split, tmp_path):
    few = {**FEW, "trials": 5, "seeds": 1, "epochs": 2, "out": tmp_path / "tuned"}
    found = bn.tune(MODEL, split, "dns:candidates=3:top=2:negatives=2", loss=bn.losses.Softmax(temperature=0.5), **few)
    assert [trial.family for trial in found.trials[:2]] == [
        "RNS + BPR",
        "DNS (candidates=3, top=2, negatives=2) + Softmax (temperature=0.5)",
    ]
    assert {record.loss.partition(" ")[0] for record in found.records} == {"BPR", "Softmax"}
    tried = [trial for trial in found.trials if trial.loss != "bpr"]
    assert len({trial.loss for trial in tried}) == len(tried) == 4
    assert all(trial.loss.startswith("softmax:temperature=0.5") for trial in tried)
    assert found.to_dict()["trials"][1]["loss"].startswith("softmax")
    again = bn.tune(
        MODEL, split, "dns:candidates=3:top=2:negatives=2", loss=bn.losses.Softmax(temperature=0.5), resume=True, **few
    )
    assert facts(again) == facts(found)
    with pytest.raises(InputError, match="holds a search with another loss"):
        bn.tune(MODEL, split, "dns:candidates=3:top=2:negatives=2", loss="psl", resume=True, **few)


def test_the_recommended_loss_is_an_object_and_an_option(split):
    dns = SamplerSpec.parse("dns")
    bpr, softmax = (space.Combination(MODEL, dns, LossSpec.parse(text)) for text in ("bpr", "psl"))
    assert "--loss" not in tune._train_options(MODEL, bpr, split, 5, 1)
    options = tune._train_options(MODEL, softmax, split, 5, 1)
    assert options[options.index("--loss") + 1] == "psl"
    custom = bpr._replace(loss=LossSpec("mine", {}, bn.losses.TorchLoss(lambda s: s.positive)))
    assert tune._train_options(MODEL, custom, split, 5, 1) is None, "no text gives a function"


def test_the_loss_of_the_result_trains_what_is_recommended(split, tuning):
    assert tuning.loss == bn.losses.BPR()
    run = bn.fit(tuning.model, split, tuning.sampler, loss=tuning.loss, epochs=1, progress=False)
    assert run.record.loss == "BPR"


NOTEBOOK = """
import sys, types
shell = types.SimpleNamespace(config={"IPKernelApp": {}})
sys.modules["IPython"] = types.ModuleType("IPython")
sys.modules["IPython"].get_ipython = lambda: shell
sys.modules |= dict.fromkeys(("ipywidgets", "IPython.html.widgets"))
sys.modules["ipykernel.zmqshell"] = types.ModuleType("zmqshell")
import bayesneg.tuning.studies
bayesneg.tuning.studies.require_optuna()
print("tqdm.notebook" in sys.modules)
"""


def test_a_search_in_a_notebook_without_widgets_begins_without_a_warning():
    found = subprocess.run([sys.executable, "-c", NOTEBOOK], capture_output=True, text=True, check=True)
    assert (found.stdout.strip(), found.stderr) == ("True", ""), "tqdm took it for a notebook"
