"""``bayesneg train``, and baselines trained alone and beside samplers."""

from __future__ import annotations

import json
import warnings

import pytest

import bayesneg as bn
from bayesneg.cli.show import show_run


def test_json_is_one_object_with_the_record_and_nothing_else_on_stdout(bayesneg, ratings):
    found = bayesneg("train", ratings, "--sampler", "dns", "--set", "candidates=3", "--epochs", 2, "--json").json
    assert (found["label"], found["seed"], found["out"]) == ("DNS (candidates=3)", 0, None)
    assert [line["epoch"] for line in found["epochs"]] == [1, 2]
    assert 0 < found["final"]["ndcg@20"] < 1
    assert found["data"]["n_train"] + found["data"]["n_validation"] + found["data"]["n_test"] == 360


def test_without_json_the_tables_are_on_stdout_without_control_characters(bayesneg, ratings):
    done = bayesneg("train", ratings, "--epochs", 2)
    assert done.code == 0
    assert "BNS (recommended) on ratings, loss BPR, epoch" in done.out
    assert "uniform, expected" in done.out
    assert "\x1b" not in done.out + done.err
    assert "\r" not in done.out + done.err


def test_out_records_the_run_that_json_shows(bayesneg, ratings):
    shown = bayesneg("train", ratings, "--epochs", 2, "--out", "run", "--json").json
    metrics = json.loads((ratings.parent / "run" / "metrics.json").read_text())
    assert shown["final"] == metrics["mean"]
    assert shown["out"] == "run"


def test_a_setting_changes_one_thing_of_what_is_recommended(bayesneg, ratings):
    options = ("--set", "dim=16", "--set", "candidates=3", "--loss", "bpr", "--epochs", 2, "--out", "run")
    assert bayesneg("train", ratings, *options).code == 0
    spec, wanted = bn.load_run(ratings.parent / "run").record.spec, bn.MF.recommended()
    assert (spec["model"]["dim"], spec["model"]["init"]) == (16, wanted.init)
    assert spec["model"]["learning_rate"] == wanted.learning_rate
    assert (spec["sampler"]["candidates"], spec["sampler"]["prior"]["class"]) == (3, "Learned")
    plain = bayesneg("train", ratings, "--sampler", "bns", "--epochs", 1, "--json").json
    assert plain["spec"]["model"]["init"] == "normal"


def test_what_turns_the_recommended_settings_off_is_noted(bayesneg, ratings):
    said = "the plain defaults were trained, here MF"
    done = bayesneg("train", ratings, "--sampler", "rns", "--epochs", 1, "-q")
    assert f"note: with --sampler {said}; drop --sampler for the recommended settings" in done.err
    done = bayesneg("train", ratings, "--sampler", "rns", "--loss", "bpr", "--set", "dim=8", "--epochs", 1, "-q")
    assert f"note: with --sampler and --loss {said} (dim=8)" in done.err
    for options in ([], ["--loss", "bpr"], ["--sampler", "rns", "--model", "mf"], ["--model", "ease"]):
        assert said not in bayesneg("train", ratings, *options, "--epochs", 1, "-q").err


def test_training_can_start_from_als(bayesneg, ratings):
    bayesneg("train", ratings, "--model", "mf", "--set", "init=als", "--epochs", 1, "--out", "run")
    assert bn.load_run(ratings.parent / "run").record.spec["model"]["init"] == "als"


def test_an_out_that_holds_a_run_is_left_alone(bayesneg, ratings, finished):
    before = {path.name: path.read_bytes() for path in finished.iterdir()}
    error = bayesneg("train", ratings, "--epochs", 2, "--out", finished).error
    assert "already holds a run" in error
    assert "--resume" in error
    assert {path.name: path.read_bytes() for path in finished.iterdir()} == before


def test_resume_goes_on_to_the_same_bytes_as_one_run(bayesneg, ratings):
    for out, epochs in (("whole", [4]), ("parts", [2, 4])):
        for until in epochs:
            assert bayesneg("train", ratings, "--epochs", until, "--out", out, "--resume", "-q").code == 0
    whole, parts = ratings.parent / "whole", ratings.parent / "parts"
    for name in ("weights.safetensors", "metrics.json", "per_user.parquet"):
        assert (whole / name).read_bytes() == (parts / name).read_bytes(), name


@pytest.mark.parametrize(
    "other", [("--seed", 1), ("--sampler", "rns"), ("--set", "dim=8"), ("--split-seed", 1), ("--select", "last")]
)
def test_resume_with_other_settings_is_refused(bayesneg, ratings, finished, other):
    error = bayesneg("train", ratings, "--epochs", 3, "--out", finished, "--resume", *other).error
    assert "other" in error


@pytest.mark.parametrize("sampler", ["rns", "srns", "bns"])
def test_a_diverging_run_names_the_epoch_and_what_to_lower_and_leaves_no_folder(bayesneg, ratings, sampler):
    settings = ("--set", "learning_rate=1000", "--sampler", sampler)
    error = bayesneg("train", ratings, "--epochs", 5, "--out", "run", *settings).error
    assert "diverged in epoch 1" in error
    assert "lower learning_rate" in error
    assert [path.name for path in ratings.parent.iterdir()] == ["ratings.csv"]


def test_users_and_items_that_occur_only_in_test_are_counted(bayesneg, place):
    (place / "train.csv").write_text("user,item\na,1\na,2\nb,1\nb,3\nc,2\n")
    (place / "test.csv").write_text("user,item\na,3\nb,2\nd,1\nc,9\n")
    given = ("train", "train.csv", "--test", "test.csv", "--select", "last", "--epochs", 2)
    facts = bayesneg(*given, "--json").json["data"]
    assert (facts["n_test_only_users"], facts["n_test_only_items"]) == (1, 1)
    said = bayesneg(*given).err
    assert "1 user has no training interaction and is ranked by popularity" in said
    assert "1 item occurs only in test" in said


@pytest.mark.parametrize("sampler", ["rns", "dns", "srns", "bns", "optimal"])
def test_users_without_or_short_of_unseen_items_are_skipped_and_counted(bayesneg, place, sampler):
    greedy = [("all", item) for item in "abcdef"] + [("most", item) for item in "abcde"] + [("few", "a"), ("few", "b")]
    (place / "train.csv").write_text("user,item\n" + "".join(f"{user},{item}\n" for user, item in greedy))
    (place / "test.csv").write_text("user,item\nfew,c\n")
    given = ("train", "train.csv", "--test", "test.csv", "--select", "last", "--epochs", 2, "--sampler", sampler)
    facts = bayesneg(*given, "--json").json["data"]
    assert facts["n_users_without_negatives"] == 1
    assert facts["n_users_short_of_candidates"] == {"rns": 0, "dns": 1, "srns": 2, "bns": 2, "optimal": 0}[sampler]
    assert "1 user has no unobserved item and was skipped" in bayesneg(*given).err


@pytest.mark.parametrize(("rows", "n_users", "n_items"), [("one,{}", 1, 8), ("{},one", 8, 1)])
def test_a_single_user_or_item_is_no_crash(bayesneg, place, rows, n_users, n_items):
    (place / "data.csv").write_text("user,item\n" + "".join(rows.format(letter) + "\n" for letter in "abcdefgh"))
    facts = bayesneg("train", "data.csv", "--epochs", 2, "--json").json["data"]
    assert (facts["n_users"], facts["n_items"]) == (n_users, n_items)
    assert bayesneg("train", "data.csv", "--epochs", 2).code == 0


def test_data_of_a_few_rows_gets_a_sentence_with_the_way_out(bayesneg, place):
    (place / "five.csv").write_text("user,item\nu1,a\nu1,b\nu2,a\nu2,c\nu1,c\n")
    error = bayesneg("train", "five.csv", "--validation", "0.1").error
    assert "give --validation 0.15, which holds out 1" in error
    error = bayesneg("train", "five.csv", "--select", "last").error
    assert "there are only 4; give more data, or a prior that is not learned" in error
    assert bayesneg("train", "five.csv", "--select", "last", "--sampler", "bns", "--epochs", 1).code == 0


def test_columns_without_names_are_given_by_position(bayesneg, place):
    (place / "bare.txt").write_text(
        "".join(f"{5 - rating};i{item};u{item % 5}\n" for item, rating in enumerate([1] * 40))
    )
    options = ("--separator", ";", "--no-header", "--user-column", 2, "--item-column", 1)
    facts = bayesneg("train", "bare.txt", *options, "--epochs", 1, "--json").json["data"]
    assert (facts["n_users"], facts["n_items"]) == (5, 40)


def test_a_baseline_is_trained_without_sampler_and_epochs(bayesneg, ratings):
    found = bayesneg("train", ratings, "--model", "ease", "--set", "l2=20", "--out", "run", "--json").json
    assert (found["label"], found["sampler"], len(found["epochs"])) == ("EASE (l2=20)", "", 1)
    assert found["spec"]["model"]["l2"] == 20
    assert bayesneg("evaluate", "run", "--json").json["mean"]["ndcg@20"] == pytest.approx(found["final"]["ndcg@20"])
    assert len(bayesneg("recommend", "run", "--user", "u3", "--json").json["items"]) == 10


def test_the_table_of_a_baseline_says_nothing_of_negatives(bayesneg, ratings):
    done = bayesneg("train", ratings, "--model", "popularity")
    assert done.code == 0
    assert "POPULARITY" in done.out
    assert "sampled negatives" not in done.out


def test_baselines_are_rows_of_the_comparison_and_of_the_report(bayesneg, ratings):
    options = ("--samplers", "rns,bns", "--baselines", "popularity, Ease:l2=20", "--epochs", 3, "--seeds", 2)
    done = bayesneg("compare", ratings, *options)
    assert done.code == 0, done.err
    table, _, quality = done.out.partition("sampled negatives")
    for label in ("POPULARITY", "EASE (l2=20)"):
        assert label in table
        assert label not in quality
    page = (ratings.parent / "report.html").read_text()
    assert "EASE (l2=20)" in page
    assert "different numbers of epochs" not in page
    assert "BNS · MF" not in page
    runs = bayesneg("compare", ratings, *options, "--json").json["runs"]
    assert [(run["label"], run["seed"]) for run in runs[4:]] == [
        ("POPULARITY", 0), ("POPULARITY", 1), ("EASE (l2=20)", 0), ("EASE (l2=20)", 1)
    ]  # fmt: skip


def test_a_comparison_with_baselines_is_resumed(bayesneg, ratings):
    command = ("compare", ratings, "--samplers", "rns", "--baselines", "ease", "--epochs", 2, "--seeds", 1)
    first = bayesneg(*command, "--out", "runs", "--json").json["runs"]
    again = bayesneg(*command, "--out", "runs", "--resume", "--json").json["runs"]
    assert [run["final"] for run in first] == [run["final"] for run in again]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("train", "--model", "ease", "--sampler", "rns"), "model ease samples no negatives; drop --sampler"),
        (("train", "--model", "ease", "--set", "candidates=3"), "'candidates' is not a setting of ease"),
        (("compare", "--model", "ease"), "compare shows it with --baselines ease"),
        (("compare", "--baselines", "mf"), "'mf' is not a baseline"),
        (("compare", "--baselines", "ease,ease"), "--baselines has EASE twice"),
        (("compare", "--baselines", "ease:l2=no"), "l2=no"),
    ],
)
def test_mistakes_with_baselines_are_errors(bayesneg, ratings, arguments, error):
    command, *rest = arguments
    assert error in bayesneg(command, ratings, *rest).error


# ------------------------------------------------------------------------------------- baselines beside, and --final


def test_a_weak_run_is_said_to_be_weak(bayesneg):
    done = bayesneg("train", "synthetic", "--epochs", "1", "--sampler", "rns")
    assert "NDCG@20 on test data: RNS" in done.out
    assert "EASE is better than this run by" in done.out
    assert "--model ease" in done.out
    assert "still improving" not in done.out  # one epoch shows no trend
    assert "It was trained for one epoch: more --epochs may help." in done.out
    other = bayesneg("train", "synthetic", "--epochs", "1", "--sampler", "rns", "--baselines", "ease:l2=50")
    assert "train it with --model ease --set l2=50," in other.out


def test_json_has_the_baselines(bayesneg):
    done = bayesneg("train", "synthetic", "--epochs", "2", "--baselines", "popularity", "--json")
    found = done.json
    assert set(found["baselines"]) == {"POPULARITY"}
    assert found["baselines"]["POPULARITY"]["ndcg@20"] > 0
    assert "still improving at its last epoch" in found["verdict"]
    assert bayesneg("train", "synthetic", "--epochs", "1", "--baselines", "none", "--json").json["baselines"] == {}


def test_an_unknown_baseline_is_refused_before_training(bayesneg):
    done = bayesneg("train", "synthetic", "--baselines", "eese")
    assert done.code == 2
    assert "ease" in done.err
    assert done.out == ""


def test_final_trains_on_all_data(bayesneg, tmp_path):
    out = tmp_path / "final"
    done = bayesneg("train", "synthetic", "--epochs", "4", "--patience", "2", "--final", "--out", str(out))
    assert "ndcg" in done.out
    run = bn.load_run(out)
    assert len(run.split.test) == 0
    assert f"training on all {len(run.split.train):,} interactions for {len(run.record.epochs)} epochs" in done.err
    error = bayesneg("evaluate", out).error
    before = run.record.before_final["final"]["ndcg@20"]
    assert f"NDCG@20 was {before:.4f} before the final fit, without the held-out part" in error
    card = (run.export(tmp_path / "exported") / "README.md").read_text()
    assert "**Measured before the final fit.**" in card
    assert f"| NDCG@20 | {before:.4f} |" in card
    assert "nothing was measured" not in card
    assert "## Sampled negatives\n\nIn the last epoch of the fit before the final one, " in card
    assert "model-index" not in card  # the metrics are not of this model
    again = bayesneg("train", out, "--select", "last", "--epochs", 1, "--out", tmp_path / "again")
    assert "nothing is held out, so nothing was measured" in again.out


def test_the_metrics_of_a_final_model_are_shown_as_measured_before(bayesneg, capsys):
    split = bn.split(bn.synthetic(60, 80, seed=0), seed=0)
    run = bn.fit(bn.MF(dim=4), split, bn.RNS(), epochs=2, progress=False)
    final = bn.fit(bn.MF(dim=4), split.whole(), bn.RNS(), epochs=2, progress=False, measured_by=run)
    show_run(final.record)
    shown = capsys.readouterr().out
    assert "metrics were measured before, at epoch 2" in shown
    assert f"{run.record.final['ndcg@20']:.4f}" in shown


@pytest.mark.parametrize("options", [("--patience", 5), ("--epochs", 40), ("--evaluate-users", 9)])
def test_a_baseline_takes_no_options_of_epochs(bayesneg, ratings, finished, options):
    error = bayesneg("train", ratings, "--model", "ease", *options).error
    assert error == f"model ease is solved at once, without epochs; drop {options[0]}"
    error = bayesneg("train", ratings, "--model", "ease", "--start", finished).error
    assert error == "model ease is solved from all data at once; drop --start"
    again = bayesneg("train", finished / "run.toml", "--model", "ease", "--out", "ease")  # as the file does without
    assert again.code == 0, again.err
    assert bayesneg("train", "ease/run.toml").code == 0


def test_errors_of_arguments_name_the_options(bayesneg, ratings, finished):
    for options, expected in (
        (("--patience", 2, "--select", "last"), "--patience stops on validation data; give --select best, or drop"),
        (("--patience", 0), "--patience must be a whole number of at least 1, got 0"),
        (("--epochs", 0), "--epochs must be"),
        (("--evaluate-every", 0), "--evaluate-every must be"),
        (("--start", finished, "--model", "torch-mf"), "--start is a run of MF, and the model is TorchMF"),
    ):
        assert expected in bayesneg("train", ratings, *options).error
    assert bayesneg("train", ratings, "--select", "last", "--epochs", 1, "--sampler", "rns", "--out", "last").code == 0
    error = bayesneg("train", "last", "--epochs", 1).error
    assert error == "--select best needs validation data, and last has none; give --select last"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--test-share", 2), "--test-share must be a share strictly between 0 and 1, got 2.0"),
        (
            ("--split-by", "usr"),
            "--split-by must be one of interaction, user, last, time, got 'usr'; did you mean user?",
        ),
        (("--validation", -1), "--validation must be a share"),
        (("--user-column", "foo"), "--user-column: ratings.csv has no column 'foo'"),
    ],
)
def test_errors_of_data_and_split_name_the_options(bayesneg, ratings, options, said):
    assert bayesneg("train", "ratings.csv", *options).error.startswith(said)


def test_cold_validation_users_are_noted_and_the_final_model_has_every_epoch(bayesneg, place):
    rows = [(user, item, 1) for user in range(30) for item in range(user % 5, user % 5 + 8)]
    rows += [(user, item, user) for user in range(30, 40) for item in range(6)]
    (place / "late.csv").write_text("user,item,time\n" + "".join(f"{u},{i},{t}\n" for u, i, t in rows))
    given = ("--split-by", "time", "--test-share", 0.1, "--validation", 0.1112, "--epochs", 4, "--patience", 1)
    done = bayesneg("train", "late.csv", *given, "--final", "--out", "run", "--sampler", "rns")
    assert "note: no validation user that is evaluated has a training interaction" in done.err
    assert "interactions for 4 epochs" in done.err
    assert len(bn.load_run("run").record.epochs) == 4


def test_what_the_final_fit_warns_of_is_a_note(bayesneg, ratings, monkeypatch):
    def warned(self, train, *, rng):
        warnings.warn(f"seen {len(train)}", UserWarning, stacklevel=1)
        return started(self, train, rng=rng)

    started = bn.MF.start
    monkeypatch.setattr(bn.MF, "start", warned)
    done = bayesneg("train", ratings, "--sampler", "rns", "--epochs", 1, "--final", "--out", "run")
    assert done.code == 0, done.err
    assert "note: seen 360" in done.err
    assert "UserWarning" not in done.err


def test_training_goes_on_from_a_run_on_newer_data(bayesneg, ratings, finished, place):
    newer = ratings.read_text() + "u7,new item,5,9000\nnew user,i3,4,9001\nnew user,i5,4,9002\nnew user,i9,4,9003\n"
    (place / "newer.csv").write_text(newer)
    done = bayesneg("train", "newer.csv", "--start", finished, "--epochs", 2, "--out", "next")
    assert done.code == 0, done.err
    assert "30 known and 1 new users, 40 known and 1 new items" in done.err
    assert json.loads((place / "next" / "run.json").read_text())["record"]["spec"]["start"]["n_new_items"] == 1
    wrong = bayesneg("train", "newer.csv", "--start", finished, "--set", "dim=7", "--epochs", 2).error
    assert "--start has dim 128, and the model has dim 7; " in wrong
    assert "nowhere holds no run" in bayesneg("train", "newer.csv", "--start", "nowhere").error


def test_final_is_refused_before_training_where_it_cannot_be_kept(bayesneg, ratings, finished):
    assert "--final needs --out" in bayesneg("train", ratings, "--final").error
    assert "already holds a run" in bayesneg("train", ratings, "--final", "--out", finished).error


def test_a_start_that_saw_held_out_interactions_gets_no_verdict(bayesneg, ratings, finished):
    done = bayesneg("train", ratings, "--split-seed", 3, "--start", finished, "--epochs", 1, "--out", "leak")
    assert "No verdict: " in done.out
    assert "the metrics are too high; split by time" in " ".join(done.out.split())
    again = bayesneg("train", "leak/run.toml", "--out", "leak2")
    assert again.code == 0, again.err
