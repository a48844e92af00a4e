"""The paper's figures on the authors' split of ML-100K: mean of seeds 0, 1 and 2, as in docs/explanation/results.md."""

from __future__ import annotations

import numpy as np
import pytest

import bayesneg as bn

pytestmark = pytest.mark.real


@pytest.fixture
def authors_split(real_data):
    folder = real_data / "bns-100k-split"
    return bn.read_split(folder / "100k_train.csv", folder / "100k_test.csv", user_file=folder / "mapping_users.csv")


@pytest.mark.parametrize(
    ("sampler", "ndcg", "tnr"),
    [
        (bn.RNS(), 0.4016, 0.971),
        (bn.DNS(), 0.4084, 0.950),
        (bn.BNS.paper(), 0.4184, 0.913),
        (bn.PNS(), 0.2942, 0.926),
    ],
    ids=["rns", "dns", "bns", "pns"],
)
def test_the_last_epoch_is_where_the_paper_found_it(authors_split, sampler, ndcg, tnr):
    runs = [
        bn.fit(bn.MF.paper(), authors_split, sampler, epochs=100, seed=seed, evaluate_every=100, progress=False).record
        for seed in range(3)  # one seed alone can lie 0.009 away (RNS, seed 0)
    ]
    assert np.mean([run.final["ndcg@20"] for run in runs]) == pytest.approx(ndcg, abs=0.006)
    assert np.mean([run.last("tnr") for run in runs]) == pytest.approx(tnr, abs=0.004)


def test_the_split_is_the_paper_s(authors_split):
    train = authors_split.train
    assert (train.n_users, train.n_items, len(train), len(authors_split.test)) == (943, 1682, 80_000, 20_000)
    assert len(set(train.user_columns["occupation"].tolist())) == 21


def test_ease_is_as_good_as_recorded(authors_split):
    final = bn.fit(bn.baselines.EASE(l2=400), authors_split, progress=False).record.final
    found = [final[f"ndcg@{k}"] for k in (5, 10, 20)]
    assert found == pytest.approx([0.4835, 0.4536, 0.4498], abs=0.0005)
