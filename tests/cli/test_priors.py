"""Priors on the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import bayesneg as bn
from bayesneg.config.build import build_prior
from bayesneg.data.splits import carve_validation
from bayesneg.errors import InputError
from bayesneg.samplers.priors.exposure import passed_over


@pytest.mark.parametrize("prior", ["rate", "learned", "learned+rate"])
def test_a_prior_is_named_and_recorded(bayesneg, ratings, prior):
    found = bayesneg("train", ratings, "--set", f"prior={prior}", "--set", "hidden=0.5", "--epochs", 2, "--json").json
    recorded = found["spec"]["sampler"]["prior"]
    parts = recorded["priors"] if "+" in prior else [recorded]
    assert [part["hidden"] for part in parts] == [0.5] * len(parts)


def test_names_with_a_learned_prior_are_compared(bayesneg, ratings):
    samplers = "bns,bns-learned:item_model=neighbours,bns:prior=rate:strength=2"
    few = ("--baselines", "none", "--epochs", 2, "--seeds", 2, "--json")
    runs = bayesneg("compare", ratings, "--samplers", samplers, *few).json["runs"]
    assert [run["spec"]["sampler"]["prior"]["class"] for run in runs[::2]] == [
        "Popularity", "Learned", "Scaled"
    ]  # fmt: skip


def test_what_was_shown_and_not_chosen_is_read_from_a_file(bayesneg, ratings):
    (ratings.parent / "passed.csv").write_text("user,item\nu1,i3\nu2,i4\nu999,i3\n")
    options = ("--set", "prior=rate", "--set", "rejected=passed.csv", "--set", "seen=0.2")
    prior = bayesneg("train", ratings, *options, "--epochs", 2, "--json").json["spec"]["sampler"]["prior"]
    assert (prior["class"], prior["seen"], prior["base"]["class"]) == ("Exposure", 0.2, "Rate")


@pytest.mark.parametrize(
    ("setting", "error"),
    [
        ("prior=lerned", "'lerned' is not a prior; did you mean learned? valid: file.py:Class, flat, group, learned"),
        ("prior=rate+no", "'no' is not a prior"),
        ("hidden=0.5", "hidden is a setting of the prior learned, rate, self or smoothed; set prior=learned with it"),
        ("seen=0.5", "seen goes with rejected"),
        ("rejected=nowhere.csv", "nowhere.csv"),
        ("strength=0", "strength must be a number above 0"),
    ],
)
def test_mistakes_are_told(bayesneg, ratings, setting, error):
    assert error in bayesneg("train", ratings, "--sampler", "bns", "--set", setting).error


def test_the_calibration_of_priors_on_hidden_training_data(bayesneg, ratings):
    found = bayesneg("priors", ratings, "--priors", "rate,learned:hidden=0.25,rate+flat", "--json").json["priors"]
    assert list(found) == ["rate", "learned (hidden=0.25)", "rate+flat"]
    assert found["rate"]["base_rate"] == found["learned (hidden=0.25)"]["base_rate"] > 0
    assert {"mean_predicted", "observed_rate", "count"} == set(found["rate"]["bins"][0])
    done = bayesneg("priors", ratings)
    assert (done.code, done.err) == (0, "")
    assert "popularity" in done.out
    assert "skill" in done.out


def test_the_top_bin_of_a_constant_prior_holds_all_pairs(bayesneg, ratings):
    (only,) = bayesneg("priors", ratings, "--priors", "flat", "--json").json["priors"]["flat"]["bins"]
    said = bayesneg("priors", ratings, "--priors", "flat").out
    assert only["mean_predicted"] * only["count"] > 0  # all expected positives, not a tenth
    assert "all of them where all pairs are equally probable" in said


def test_the_calibration_of_a_custom_prior(bayesneg, ratings):
    (ratings.parent / "my.py").write_text("def tenth(users, items):\n    return 0.1 + 0.0 * items\n")
    found = bayesneg("priors", ratings, "--priors", "my.py:tenth,my.py:tenth:strength=2", "--json").json["priors"]
    assert found["my.py:tenth"]["predicted_rate"] == pytest.approx(0.1)
    assert found["my.py:tenth (strength=2)"]["predicted_rate"] == pytest.approx(0.2 / 1.1)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (("--priors", "lerned"), "'lerned' is not a prior"),
        (("--priors", ","), "no prior is named"),
        (("--priors", "rate:strenght=2"), "did you mean strength"),
        (("--priors", "learned:prior=rate"), "the prior is named before the colon; drop prior=rate"),
        (("--priors", "rate,flat,rate"), "--priors has rate twice"),
        (("--priors", "learned,oracle"), "Oracle uses test labels"),
        (("--share", 0), "share must be a number above 0"),
    ],
)
def test_wrong_options_of_priors_are_named(bayesneg, ratings, options, error):
    assert error in bayesneg("priors", ratings, *options).error


def test_the_self_estimated_prior_is_evaluated_after_training(bayesneg, ratings, monkeypatch):
    found = bayesneg("priors", ratings, "--priors", "flat,self:hidden=0.25", "--json").json["priors"]
    assert found["self (hidden=0.25)"]["skill"] > found["flat"]["skill"]
    assert len(found["self (hidden=0.25)"]["bins"]) > 1
    monkeypatch.setattr("bayesneg.experiments.prior_calibration.EPOCHS", 1)
    hardly_trained = bayesneg("priors", ratings, "--priors", "self:hidden=0.25", "--json").json["priors"]
    assert hardly_trained["self (hidden=0.25)"]["brier"] != found["self (hidden=0.25)"]["brier"]


def test_a_custom_prior_that_follows_training_is_evaluated_after_it(bayesneg, ratings, tmp_path):
    own = tmp_path / "own.py"
    own.write_text(
        "import numpy as np\n"
        "import bayesneg as bn\n"
        "class Later(bn.Prior):\n"
        "    epochs = 0\n"
        "    follows_training = True\n"
        "    def end_epoch(self, scorer):\n"
        "        self.epochs += 1\n"
        "    def probability(self, users, items):\n"
        "        return np.full(np.broadcast_shapes(users.shape, items.shape), 0.01 * self.epochs)\n",
        encoding="utf-8",
    )
    found = bayesneg("priors", ratings, "--priors", f"{own}:Later", "--json").json["priors"][f"{own}:Later"]
    assert found["predicted_rate"] == pytest.approx(0.3)


def test_a_file_of_rejected_pairs_may_not_hold_what_is_kept_back(bayesneg, ratings):
    said = bayesneg("train", ratings, "--epochs", 1, "--set", "prior=rate", "--set", f"rejected={ratings}").error
    assert "pairs of the test or validation part" in said
    assert "leave them out of the file" in said


def test_a_column_tells_what_was_shown_and_not_chosen(bayesneg, tmp_path):
    rng = np.random.default_rng(0)
    rows = {(f"u{user}", f"i{item}", int(rng.random() < 0.4)) for user in range(20) for item in rng.integers(0, 30, 25)}
    shown = tmp_path / "shown.csv"
    shown.write_text("user,item,clicked\n" + "".join(f"{u},{i},{c}\n" for u, i, c in sorted(rows)), encoding="utf-8")
    given = ("train", shown, "--rating-column", "clicked", "--min-rating", 1, "--epochs", 1, "--set", "prior=rate")
    about = ("--set", f"rejected={shown}")
    assert "name the column that marks interactions with chosen_column" in bayesneg(*given, *about).error
    never = bayesneg(*given, *about, "--set", "chosen_column=clicked", "--set", "seen=0", "--json").json
    usual = bayesneg(*given, "--json").json
    assert never["epochs"][-1]["tnr"] > usual["epochs"][-1]["tnr"]
    wrong = bayesneg(*given, *about, "--set", "chosen_column=bought").error
    assert "chosen_column=bought: " in wrong
    assert "has no column 'bought'" in wrong
    assert "chosen_column goes with rejected" in bayesneg(*given, "--set", "chosen_column=clicked").error


def test_a_pair_that_was_chosen_once_was_not_passed_over():
    shown = bn.Interactions.from_pairs(["a", "a", "b", "b"], [1, 2, 1, 3])
    left = passed_over(shown, bn.Interactions.from_pairs(["a", "b"], [2, 1]))
    assert [
        (shown.user_ids[user], shown.item_ids[item]) for user, item in zip(left.users, left.indices, strict=True)
    ] == [
        ("a", 1),
        ("b", 3),
    ]


def test_as_much_of_the_passed_over_is_held_out_as_of_the_chosen(tmp_path):
    data = bn.synthetic(100, 60, seed=0)
    users, items = (axis.ravel() for axis in np.indices((100, 60)))
    clicked = data.contains(users, items)
    shown = tmp_path / "shown.csv"
    rows = zip(data.user_ids[users], data.item_ids[items], clicked.astype(int), strict=True)
    shown.write_text("user,item,clicked\n" + "".join(f"{u},{i},{c}\n" for u, i, c in rows), encoding="utf-8")
    split = bn.split(data, test=0.25, seed=0)
    about = {"prior": "rate", "rejected": str(shown), "chosen_column": "clicked", "seen": 0.0}
    prior = build_prior(about, split).fit(split.train)
    missing = ~prior.rejected.contains(users, items) & ~split.train.contains(users, items)
    held_out = split.test.contains(users, items)
    assert missing[held_out].all()
    assert np.mean(missing[~clicked]) == pytest.approx(0.25, abs=0.03)


def timed_world(
    folder: Path, column: str = "when", **split: Any
) -> tuple[bn.Split, Path, np.ndarray, np.ndarray, np.ndarray]:
    """Every pair was shown once, at a random time; the split, the file of impressions, and their columns."""
    rng = np.random.default_rng(0)
    users, items = (axis.ravel() for axis in np.indices((30, 40)))
    times = rng.permutation(len(users))
    clicked = rng.random(len(users)) < 0.2
    path = folder / "impressions.csv"
    columns = {"user": users, "item": items, column: times, "clicked": clicked.astype(int)}
    pl.DataFrame(columns).write_csv(path)
    data = bn.load(path, time_column=column, rating_column="clicked", min_rating=1)
    return bn.split(data, **split), path, users, items, times


@pytest.mark.parametrize("by", ["time", "last"])
@pytest.mark.parametrize("validation", [0.0, 0.25])
def test_what_was_passed_over_is_held_out_by_time_where_interactions_are(tmp_path, by, validation):
    parts, path, users, items, times = timed_world(tmp_path, by=by, test=0.25, validation=validation)
    about = {"prior": "rate", "rejected": str(path), "chosen_column": "clicked", "seen": 0.0}
    rejected = build_prior(about, parts).fit(parts.train).rejected
    number_of_user = {raw: number for number, raw in enumerate(parts.train.user_ids.tolist())}
    number_of_item = {raw: number for number, raw in enumerate(parts.train.item_ids.tolist())}
    users = np.array([number_of_user[user] for user in users])
    items = np.array([number_of_item[item] for item in items])
    held = [part for part in (parts.test, parts.validation) if part is not None]
    first = np.full(parts.train.n_users, np.inf)
    for part in held:
        np.minimum.at(first, part.users, part.times)
    bound = first[users] if by == "last" else np.full(len(users), first.min())
    chosen = sum(part.contains(users, items) for part in (parts.train, *held)).astype(bool)
    np.testing.assert_array_equal(rejected.contains(users, items), ~chosen & (times < bound))


def test_a_random_validation_part_of_a_split_by_time_drops_a_random_share_before_it(tmp_path):
    parts, path, *_ = timed_world(tmp_path, "time", by="time", test=0.25)
    about = {"prior": "rate", "rejected": str(path), "chosen_column": "clicked", "seen": 0.0}
    before = build_prior(about, parts).fit(parts.train).rejected
    carved = carve_validation(parts, 0.25)
    after = build_prior(about, carved).fit(carved.train).rejected
    assert before.contains(after.users, after.indices).all()
    assert len(after) == pytest.approx(0.75 * len(before), rel=0.1)


def test_impressions_without_times_are_refused_where_the_newest_are_held_out(tmp_path):
    parts, path, *_ = timed_world(tmp_path, by="time", test=0.25)
    timeless = tmp_path / "timeless.csv"
    pl.read_csv(path).drop("when").write_csv(timeless)
    about = {"prior": "rate", "rejected": str(timeless), "chosen_column": "clicked", "seen": 0.0}
    with pytest.raises(
        InputError, match=r"timeless.* has no time for every pair.*; add a column named time, or split by"
    ):
        build_prior(about, parts)
