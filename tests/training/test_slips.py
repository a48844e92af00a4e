"""Slips of the hand in Python: each gets a sentence with the way out, or simply works."""

from __future__ import annotations

import bz2
import gzip
import lzma

import numpy as np
import polars as pl
import pytest

import bayesneg as bn
from bayesneg.errors import InputError
from bayesneg.models.scorers import EmbeddingScorer


@pytest.fixture(scope="module")
def data():
    return bn.synthetic(60, 80, seed=0)


@pytest.fixture(scope="module")
def split(data):
    return bn.split(data, test=0.2, validation=0.1, seed=0)


@pytest.fixture(scope="module")
def run(split):
    return bn.fit(bn.MF(dim=4), split, bn.RNS(), epochs=2, progress=False)


@pytest.mark.parametrize(
    ("slip", "said"),
    [
        (lambda data, split, run: bn.fit(bn.MF(), data), r"got Interactions; .*bn\.split\(data\) makes a split"),
        (lambda data, split, run: bn.split("file.csv"), r"got 'file\.csv'; .* bn\.split\(bn\.load\('file\.csv'\)\)"),
        (lambda data, split, run: bn.split(split), r"data must be interactions.*got Split"),
        (lambda data, split, run: run.recommend(user=["u1", "u2"]), r"user must be one identifier, got \['u1', 'u2'\]"),
        (lambda data, split, run: run.recommend(user=np.array([1, 2])), "user must be one identifier, got array"),
        (lambda data, split, run: run.recommend(user=(1, 2)), "user must be one identifier"),
        (lambda data, split, run: bn.write_report(["run"], "x.html"), "each must be a run or the record of one"),
        (lambda data, split, run: bn.write_report(3, "x.html"), "records must be runs, .* got 3"),
        (lambda data, split, run: run.evaluate().mean["ndcg@7"], r"'ndcg@7' was not evaluated; .*evaluate\(k=7\)"),
        (lambda data, split, run: run.evaluate().values["ndgc@5"], "'ndgc@5' was not evaluated; this report has prec"),
        (lambda data, split, run: bn.compare(split, "rns,dns"), r"in this order: bn\.compare\(bn\.MF\(\), split, "),
        (lambda data, split, run: bn.audit(split, "rns,dns"), r"in this order: bn\.audit\(bn\.MF\(\), split, "),
        (
            lambda data, split, run: bn.fit(split),
            r"got a split alone; bn\.fit\(None, split\) trains what is recommended",
        ),
        (
            lambda data, split, run: bn.compare(split),
            r"got a split alone; give a model: bn\.compare\(bn\.MF\(\), split",
        ),
        (
            lambda data, split, run: bn.fit(data),
            r"the split that bn\.split\(data\) makes, and got no split; bn\.fit\(None",
        ),
        (lambda data, split, run: bn.fit(), r"and got no split; "),
        (
            lambda data, split, run: bn.evaluate(
                (np.full((split.train.n_users, 2), np.nan), np.ones((split.train.n_items, 2))), split
            ),
            r"must be finite numbers, row 0 of U is not",
        ),
        (lambda data, split, run: bn.tune(split), r"got a split alone; bn\.tune\(None, split\) searches"),
        (lambda data, split, run: bn.audit(split), r"got a split alone; give a model: bn\.audit\(bn\.MF\(\), split"),
        (
            lambda data, split, run: bn.TorchMF(init="als"),
            r"TorchMF has no setting init; bn\.MF\(init='als'\) starts from",
        ),
        (
            lambda data, split, run: bn.MF(dims=3),
            r"MF has no setting dims; did you mean dim\? it has dim, learning_rate",
        ),
        (lambda data, split, run: bn.MF.paper(dims=3), "MF has no setting dims"),
        (
            lambda data, split, run: bn.BNS(candidate=3),
            r"BNS has no setting candidate; did you mean candidates\? it has",
        ),
        (lambda data, split, run: bn.baselines.EASE(xyz=3), "EASE has no setting xyz; it has l2, form"),
        (lambda data, split, run: bn.MF(init="alz"), r"init must be one of normal, als, got 'alz'; did you mean als\?"),
        (lambda data, split, run: run.recommend("u1", exclude=[12.0]), r"item must be one identifier, .* got 12\.0"),
        (
            lambda data, split, run: run.recommend_all(users=pl.DataFrame({"user": ["u1"]})),
            r"its column, table\['user'\]",
        ),
        (lambda data, split, run: run.fold_in(users=["u1"]).recommend_to(k="a"), "k must be a whole number, got 'a'"),
        (lambda data, split, run: run.fold_in(users=["u1"]).recommend_to(k=999), "at most the number of users 60"),
        (
            lambda data, split, run: run.export("never", licence=3),
            "licence must be an identifier such as cc-by-4.0, got 3",
        ),
        (lambda data, split, run: bn.load_run(None), "path must be the path of a folder, got None"),
        (lambda data, split, run: bn.load_export(3), "path must be the path of a folder, got 3"),
        (
            lambda data, split, run: bn.fit(bn.MF(), split, bn.RNS(), progress="yes"),
            "progress must be True, False or a",
        ),
        (lambda data, split, run: bn.compare(bn.MF(), data, "rns"), "split must be a split, got Interactions"),
        (lambda data, split, run: bn.evaluate(run, split), r"such as run\.scorer, .*got Run"),
        (lambda data, split, run: bn.evaluate(run.scorer, data), "split must be a split, got Interactions"),
    ],
)
def test_a_slip_gets_a_sentence(data, split, run, slip, said):
    with pytest.raises(InputError, match=said):
        slip(data, split, run)


def test_vectors_of_users_and_items_are_evaluated_as_the_model_they_come_from(split, run):
    vectors = run.scorer.embeddings()
    model = EmbeddingScorer(*vectors)  # without popularity for users that have no training interaction
    assert bn.evaluate((vectors.users, vectors.items), split).mean == bn.evaluate(model, split).mean
    assert bn.evaluate([vectors.users.tolist(), vectors.items], split, k=5, metrics="ndcg").mean.keys() == {"ndcg@5"}


@pytest.mark.parametrize(
    ("users", "items", "said"),
    [
        (np.ones((60, 4)), np.ones((80, 5)), r"got \(60, 4\) and \(80, 5\)"),
        (np.ones(60), np.ones((80, 5)), r"got \(60,\) and"),
        (np.ones((80, 4)), np.ones((60, 4)), "scores 80 users and 60 items, the data has 60 and 80"),
        ([["a"]], [["b"]], "must be arrays of numbers"),
    ],
)
def test_vectors_of_other_shapes_get_a_sentence(split, users, items, said):
    with pytest.raises(InputError, match=said):
        bn.evaluate((users, items), split)


def test_a_report_takes_runs_as_well_as_their_records(run, tmp_path):
    pages = [bn.write_report(given, tmp_path / "page.html").read_bytes() for given in (run, [run], [run.record])]
    assert pages[0] == pages[1] == pages[2]


def test_a_prior_may_be_given_by_its_name():
    assert bn.BNS(prior="learned").prior == bn.priors.Learned()


def test_samplers_and_baselines_of_a_comparison_have_a_default(split):
    records = bn.compare(bn.MF(dim=4), split, seeds=1, epochs=1, progress=False)
    assert [record.label for record in records] == ["RNS", "DNS", "BNS", "POPULARITY", "EASE"]


def test_a_run_and_its_record_are_shown_in_a_line(run):
    assert repr(run.record).startswith("RunRecord('RNS' on 'synthetic', seed 0, epoch ")
    assert f"ndcg@20 {run.record.final['ndcg@20']:.4f}" in repr(run)
    assert len(repr(run)) < 120


@pytest.mark.parametrize(
    ("pack", "kind"), [(gzip.compress, "gzip"), (bz2.compress, "bzip2"), (lzma.compress, "xz")], ids=["gz", "bz2", "xz"]
)
def test_a_compressed_table_is_refused_by_name(tmp_path, pack, kind):
    path = tmp_path / "ratings.csv.packed"
    path.write_bytes(pack(b"user,item\n" + b"".join(b"u%d,i%d\n" % (n, n % 7) for n in range(200))))
    with pytest.raises(InputError, match=rf"ratings\.csv\.packed: this file is compressed \({kind}\); unpack it"):
        bn.load(path)
