"""The learned prior on the authors' split of ML-100K, judged by labels it never saw."""

from __future__ import annotations

import numpy as np
import pytest

import bayesneg as bn

pytestmark = pytest.mark.real


@pytest.mark.parametrize(
    ("prior", "mean", "top"),
    [
        (bn.priors.Learned(), 0.0131, 0.32),  # as cross-fitted: right on the whole, too low at the top
        (bn.priors.Learned(hidden=0.25), 0.0149, 0.45),  # told the ratio: an eighth high on the whole, right at the top
    ],
    ids=["as cross-fitted", "told the ratio"],
)
def test_what_it_expects_of_the_test_part(real_data, prior, mean, top):
    folder = real_data / "bns-100k-split"
    split = bn.read_split(folder / "100k_train.csv", folder / "100k_test.csv")
    users, items = np.indices((split.train.n_users, split.train.n_items))
    outside = ~split.train.contains(users, items)
    found = prior.fit(split.train).probability(users, items)[outside]
    truth = split.test.contains(users, items)[outside]
    likely = found > np.quantile(found, 0.99)
    assert truth.mean() == pytest.approx(0.0133, abs=0.0001)
    assert truth[likely].mean() == pytest.approx(0.45, abs=0.01)
    assert found.mean() == pytest.approx(mean, abs=0.0005)
    assert found[likely].mean() == pytest.approx(top, abs=0.02)
