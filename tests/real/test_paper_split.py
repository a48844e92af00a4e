"""The paper's figures on the authors' own split of ML-100K, one seed of each; the docs have three and intervals."""

from __future__ import annotations

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
        (bn.BNS(), 0.4184, 0.913),
        (bn.PNS(), 0.2942, 0.926),
    ],
    ids=["rns", "dns", "bns", "pns"],
)
def test_the_last_epoch_is_where_probes_and_paper_found_it(authors_split, sampler, ndcg, tnr):
    run = bn.fit(bn.MF(), authors_split, sampler, epochs=100, seed=2, evaluate_every=100, progress=False)
    assert run.record.final["ndcg@20"] == pytest.approx(ndcg, abs=0.008)  # one seed: spread about 0.004
    assert run.record.epochs[-1]["tnr"] == pytest.approx(tnr, abs=0.004)


def test_the_split_is_the_paper_s(authors_split):
    train = authors_split.train
    assert (train.n_users, train.n_items, len(train), len(authors_split.test)) == (943, 1682, 80_000, 20_000)
    assert len(set(train.user_columns["occupation"].tolist())) == 21
