"""The learned prior on the authors' split of ML-100K, judged by labels it never saw."""

from __future__ import annotations

import numpy as np
import pytest

import bayesneg as bn

pytestmark = pytest.mark.real


def test_it_expects_about_as_many_false_negatives_as_the_test_part_holds(real_data):
    folder = real_data / "bns-100k-split"
    split = bn.read_split(folder / "100k_train.csv", folder / "100k_test.csv")
    users, items = np.indices((split.train.n_users, split.train.n_items))
    outside = ~split.train.contains(users, items)
    found = bn.LearnedPrior().fit(split.train).probability(users, items)[outside]
    truth = split.test.contains(users, items)[outside]
    assert found.mean() == pytest.approx(0.0131, abs=0.0003)
    assert truth.mean() == pytest.approx(0.0133, abs=0.0001)
    likely = found > np.quantile(found, 0.99)
    assert truth[likely].mean() == pytest.approx(found[likely].mean(), rel=0.25)
