"""The picks of some users, one by one: known answers, bounds, and what a record keeps."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import bayesneg as bn
from bayesneg.errors import InputError
from bayesneg.experiments.drill_down import MOST_PICKS, chosen_users, user_picks
from bayesneg.report.audit_page.page import render
from bayesneg.runs import ledger
from worlds import fixed_scorer


class FirstUnseen(bn.NegativeSampler):
    """The unseen item of the lowest number."""

    def sample(self, batch):
        items = np.arange(batch.train.n_items)
        return np.array([np.setdiff1d(items, batch.train.row(user))[0] for user in batch.users])


class Nothing(bn.NegativeSampler):
    def sample(self, batch):
        return np.full(len(batch.users), bn.NO_NEGATIVE)


@pytest.fixture(scope="module")
def split():
    return bn.split(bn.synthetic(60, 50, n_interactions=800, liked_share=0.4, seed=0), test=0.3, by="user", seed=0)


@pytest.fixture(scope="module")
def scores(split):
    return np.random.default_rng(0).normal(size=(split.train.n_users, split.train.n_items)).astype(np.float32)


def picked(split, sampler, scores, n_users=5, seed=0):
    sampler = sampler.prepare(split.train, rng=np.random.default_rng(0))
    return user_picks(split, sampler, fixed_scorer(scores), epoch=3, n_users=n_users, seed=seed)


def audit(split, samplers, **more):
    settings = {"model": bn.MF(dim=4, sampling_batch=64), "seeds": 1, "epochs": 2, "probes": 50, "progress": False}
    return bn.audit(split=split, samplers=samplers, **(settings | more))


def test_what_is_recorded_of_a_pick_is_what_is_known_of_it(split, scores):
    found = picked(split, FirstUnseen(), scores)
    users = chosen_users(split, 5)
    train, test = split.train, split.held_out
    assert found["users"]["id"] == [str(train.user_ids[user]) for user in users]
    assert found["users"]["n_train"] == train.counts[users].tolist()
    assert found["users"]["n_held_out"] == test.counts[users].tolist()
    picks = found["picks"]
    assert set(picks) == {"user", "positive", "negative", "score", "positive_score", "hardness", "false", "held_out"}
    for row in range(len(picks["user"])):
        user = users[picks["user"][row]]
        positive, negative = (
            train.item_number(type(train.item_ids[0])(picks[key][row])) for key in ("positive", "negative")
        )
        assert positive in train.row(user)
        assert negative == np.setdiff1d(np.arange(50), train.row(user))[0]
        assert picks["score"][row] == pytest.approx(float(scores[user, negative]), rel=1e-4)
        assert picks["positive_score"][row] == pytest.approx(float(scores[user, positive]), rel=1e-4)
        others = np.setdiff1d(np.arange(50), [*train.row(user), negative])
        assert picks["hardness"][row] == pytest.approx((scores[user, others] < scores[user, negative]).mean(), rel=1e-4)
        assert picks["false"][row] == bool(split.truth.likes(user, negative))
        assert picks["held_out"][row] == (negative in test.row(user))


def test_prior_and_posterior_are_those_of_the_sampler(split, scores):
    """With F = ½ the posterior is the prior: unbias = 1 − p."""
    picks = picked(split, bn.BNS(likelihood="uninformative"), scores)["picks"]
    train = split.train
    share = {str(id): n / len(train) for id, n in zip(train.item_ids, train.popularity, strict=True)}
    assert picks["prior"] == pytest.approx([share[item] for item in picks["negative"]], rel=1e-4)
    assert picks["unbias"] == pytest.approx([1 - share[item] for item in picks["negative"]], rel=1e-4)
    late = picked(split, bn.WarmStart("rns", bn.BNS(likelihood="uninformative"), warmup=2), scores)["picks"]
    assert late["unbias"] == pytest.approx([1 - share[item] for item in late["negative"]], rel=1e-4)
    assert "prior" not in picked(split, bn.WarmStart("rns", "bns", warmup=9), scores)["picks"]


def test_users_are_the_same_for_all_and_what_is_kept_is_bounded(split, scores):
    by_seed = [picked(split, sampler, scores, seed=seed) for sampler in (bn.RNS(), bn.BNS()) for seed in (0, 1)]
    assert len({tuple(found["users"]["id"]) for found in by_seed}) == 1
    assert by_seed[0]["picks"]["negative"] != by_seed[1]["picks"]["negative"]
    assert (split.held_out.counts[chosen_users(split, 5)] > 0).all()
    everyone = picked(split, bn.RNS(), scores, n_users=1000)
    counts = np.bincount(everyone["picks"]["user"])
    wanted = [min(n, MOST_PICKS) for n in everyone["users"]["n_train"]]
    assert counts.tolist() == wanted
    assert max(everyone["users"]["n_train"]) > MOST_PICKS, "the bound is met in this world"


@pytest.mark.parametrize(
    "sampler",
    [
        bn.SRNS(memory=3, fresh=4),
        bn.DNS(candidates=6, negatives=3, top=3),
        bn.BNS(candidates=20, shared=True, weighting="posterior"),
        bn.samplers.InBatch(weighting="posterior", prior="rate"),
    ],
    ids=lambda sampler: type(sampler).__name__,
)
def test_samplers_with_state_several_negatives_or_a_pool_are_asked_as_well(split, scores, sampler):
    prepared = sampler.prepare(split.train, rng=np.random.default_rng(0))
    before = {key: value.copy() for key, value in prepared.state_dict().items()}
    found = user_picks(split, prepared, fixed_scorer(scores), epoch=3, n_users=5, seed=0)
    assert {key: value.tolist() for key, value in prepared.state_dict().items()} == {
        k: v.tolist() for k, v in before.items()
    }
    users = chosen_users(split, 5)
    rows = [{str(split.train.item_ids[item]) for item in split.train.row(user)} for user in users]
    picks = found["picks"]
    assert len(picks["negative"]) > 20
    assert not any(item in rows[user] for user, item in zip(picks["user"], picks["negative"], strict=True))
    assert ("unbias" in picks) == isinstance(sampler, bn.BNS | bn.samplers.InBatch)


def test_no_pick_leaves_nothing_to_show(split, scores):
    found = picked(split, Nothing(), scores)
    assert found["picks"] == {}
    assert len(found["users"]["id"]) == 5


def test_the_drill_down_changes_no_other_number(split):
    without, with_users = (
        audit(split, {"SRNS": bn.SRNS(memory=3, fresh=4)}, users=users).records[0] for users in (0, 5)
    )
    kept = [
        {key: value for key, value in line.items() if key not in ("seconds", "drill_down")}
        for line in with_users.epochs
    ]
    assert kept == [{key: value for key, value in line.items() if key != "seconds"} for line in without.epochs]
    assert ["drill_down" in line for line in with_users.epochs] == [False, True]
    assert with_users.final == without.final


def test_picks_are_a_frame_with_a_row_each(split):
    found = audit(split, {"RNS": bn.RNS(), "BNS": bn.BNS()}, users=4, seeds=2)
    frame = found.picks
    assert frame.columns[:5] == ["dataset", "sampler", "loss", "seed", "user"]
    assert frame.group_by("sampler", "seed").len()["len"].n_unique() == 1
    assert frame.filter(frame["sampler"] == "RNS")["prior"].null_count() == frame.height // 2
    assert frame.filter(frame["sampler"] == "BNS")["unbias"].is_between(0, 1).all()
    assert frame["user"].n_unique() == 4
    none = audit(split, {"RNS": bn.RNS()}, users=0).picks
    assert (none.height, none.columns) == (0, frame.columns)


def test_the_page_is_the_same_from_the_finished_runs_of_a_file(split, tmp_path):
    out = tmp_path / "audit.jsonl"
    records = audit(split, {"RNS": bn.RNS(), "BNS": bn.BNS()}, users=4, seeds=2, out=out).records
    stored = [entry.record for entry in ledger.read(out).values()]
    stored.sort(key=lambda record: (["RNS", "BNS"].index(record.label), -record.seed))  # as they may finish
    assert render(stored) == render(records)
    assert "The picks of one user" in render(stored)
    size = out.stat().st_size / len(records)
    assert size < 30_000


def test_another_number_of_users_is_another_run_and_the_usual_one_is_not(split, tmp_path):
    out = tmp_path / "audit.jsonl"
    for users in (20, 3, 3):
        audit(split, {"RNS": bn.RNS()}, users=users, out=out, resume=True)
    assert len(ledger.read(out)) == 2


def test_a_wrong_number_of_users_is_named(split):
    with pytest.raises(InputError, match="users must be a whole number of at least 0, got -1"):
        audit(split, {"RNS": bn.RNS()}, users=-1)


def test_where_the_truth_is_unknown_only_held_out_positives_are_false(split, scores):
    unknown = replace(split, train=replace(split.train, truth=None))
    picks = picked(unknown, FirstUnseen(), scores)["picks"]
    assert picks["false"] == picks["held_out"]
    assert sum(picked(split, FirstUnseen(), scores)["picks"]["false"]) > sum(picks["false"])


def test_a_prior_that_is_no_probability_is_refused(split, scores):
    class Saying(FirstUnseen):
        def prior_probability(self, batch, items):
            return np.full(items.shape, 1.5)

    with pytest.raises(InputError, match=r"Saying\.prior_probability must be probabilities between 0 and 1, got 1\.5"):
        picked(split, Saying(), scores)
