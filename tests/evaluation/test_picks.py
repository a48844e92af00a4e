"""What an audit sees of the picks, against answers computed by hand."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

import bayesneg as bn
from bayesneg.data.readers.kuairec import FullyObserved
from bayesneg.data.splits import Split
from bayesneg.errors import InputError
from bayesneg.evaluation.calibration import EDGES, Reliability, pooled
from bayesneg.evaluation.cohorts import cohort_of
from bayesneg.evaluation.picks import PickObserver, hardness
from bayesneg.interfaces import Measured, Sampled, Sums
from bayesneg.seeding import stream
from worlds import batch_of, fixed_scorer, interactions, random_interactions


def test_cohorts_hold_a_third_of_the_interactions_each():
    popularity = np.random.default_rng(0).zipf(1.6, 500)
    cohorts = cohort_of(popularity)
    shares = np.bincount(cohorts, weights=popularity) / popularity.sum()
    largest = popularity.max() / popularity.sum()
    assert np.abs(shares - 1 / 3).max() <= largest
    assert popularity[cohorts == 0].min() >= popularity[cohorts == 1].max()
    assert popularity[cohorts == 1].min() >= popularity[cohorts == 2].max()


def test_an_item_without_interactions_is_tail():
    assert cohort_of(np.array([5, 0, 0])).tolist() == [0, 2, 2]
    assert cohort_of(np.array([0, 0])).tolist() == [2, 2]


def test_hardness_is_the_share_of_other_unobserved_items_below():
    rng = np.random.default_rng(0)
    train = random_interactions(rng, 12, 15)
    scores = rng.integers(0, 5, (12, 15)).astype(float)  # with ties
    batch = batch_of(train, fixed_scorer(scores), stream(0, "draws"))
    free = train.counts[batch.users] < 15
    batch = replace(batch, users=batch.users[free], positives=batch.positives[free], positions=batch.positions[free])
    picks = bn.RNS().sample(batch)
    for got, user, item in zip(hardness(batch, picks), batch.users, picks, strict=True):
        others = [scores[user, other] for other in range(15) if other not in train.row(user) and other != item]
        worth = [1.0 if x < scores[user, item] else 0.5 if x == scores[user, item] else 0.0 for x in others]
        assert got == pytest.approx(np.mean(worth) if worth else 0.5)


def test_bins_keep_every_belief_and_the_extremes():
    found = Reliability()
    called = np.array([1.0, 0.0, 0.5, 1 - 2 * EDGES[1]])
    found.add(called, np.array([True, False, True, True]))
    bins = found.bins()
    assert sum(bins["n"]) == 4
    assert (bins["n"][0], bins["n"][-1]) == (1, 1)
    assert found.summary()["brier"] == pytest.approx(((called - [1, 0, 1, 1]) ** 2).mean())


def test_a_perfect_belief_has_no_calibration_error_and_a_constant_lie_all_of_it():
    right, wrong = Reliability(), Reliability()
    truth = np.array([True] * 9 + [False])
    right.add(np.full(10, 0.9), truth)
    wrong.add(np.full(10, 1.0), truth)
    assert right.summary()["ece"] == pytest.approx(0.0)
    assert right.summary()["brier"] == pytest.approx(right.summary()["brier_constant"])
    assert wrong.summary()["ece"] == pytest.approx(0.1)


def test_pooled_tables_weigh_by_count():
    one, two = Reliability(), Reliability()
    one.add(np.array([0.95]), np.array([True]))
    two.add(np.array([0.93, 0.94, 0.96]), np.array([False, False, True]))
    n, called, were = pooled([one.bins(), two.bins()])
    both = Reliability()
    both.add(np.array([0.95, 0.93, 0.94, 0.96]), np.array([True, False, False, True]))
    np.testing.assert_array_equal(n, both.bins()["n"])
    there = n > 0
    np.testing.assert_allclose(called[there], np.array(both.bins()["mean_predicted"])[there], atol=1e-5)
    np.testing.assert_allclose(were[there], np.array(both.bins()["true"])[there] / n[there])


def test_cohorts_count_every_pick_and_start_anew_each_epoch():
    train = interactions([[0], [0], [1], [0, 2]], 5)  # popularity 3, 1, 1, 0, 0: item 0 head, 1 middle, others tail
    observer = PickObserver(Split(train, interactions_like(train, [[1], [], [], []])), seed=0, probes=2)
    scorer = fixed_scorer(np.zeros((4, 5)))
    picks = np.array([1, 1, 3, -1, 4], dtype=np.int32)
    observer.see(Sampled(np.zeros(5, dtype=np.int32), picks, np.zeros(5)))
    line = observer.end_epoch(1, bn.RNS(), scorer)
    expected = np.bincount(cohort_of(train.popularity)[picks[picks >= 0]], minlength=3) / 4
    assert [line["head"], line["middle"], line["tail"]] == expected.tolist()
    assert observer.end_epoch(2, bn.RNS(), scorer)["tail"] == 0.0


def interactions_like(train, rows):
    """Other pairs over the same users and items."""
    users = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
    items = np.array([item for row in rows for item in row], dtype=np.int64)
    return bn.Interactions.from_numbers(users, items, user_ids=train.user_ids, item_ids=train.item_ids)


@dataclass(frozen=True)
class Sure(bn.NegativeSampler):
    """Uniform picks with a belief that is right, or that is always ``claim``."""

    world: object
    claim: float | None = None

    def sample(self, batch):
        return bn.RNS().sample(batch)

    def unbias(self, batch, items):
        if self.claim is not None:
            return np.full(items.shape, self.claim)
        return 1.0 - self.world.preference(batch.users[:, None], items)


def world_split():
    return bn.split(bn.synthetic(300, 200, seed=1), test=0.2, by="user", seed=0)


def probed(split, sampler, probes=4000):
    scorer = fixed_scorer(np.random.default_rng(0).normal(size=(split.train.n_users, split.train.n_items)))
    return PickObserver(split, seed=0, probes=probes).end_epoch(1, sampler, scorer)


def test_a_belief_that_is_the_truth_s_own_probability_is_calibrated():
    """What was not observed is liked less often than at random, since a liked item may have been seen."""
    split = world_split()
    line = probed(split, Sure(split.truth))
    assert line["mean_predicted"] == pytest.approx(line["observed_rate"], abs=0.03)
    assert line["ece"] < 0.05
    assert line["brier"] < line["brier_constant"]
    assert probed(split, Sure(split.truth, claim=0.5))["ece"] > 0.3


def test_uniform_picks_stand_everywhere_in_the_list_and_are_as_often_false_as_expected():
    split = world_split()
    line = probed(split, bn.RNS())
    assert line["hardness"] == pytest.approx(0.5, abs=0.02)
    np.testing.assert_allclose(line["deciles"]["share"], 0.1, atol=0.02)
    liked = split.truth.likes(np.arange(300)[:, None], np.arange(200)[None, :])
    rates = [liked[u, np.setdiff1d(np.arange(200), split.train.row(u))].mean() for u in range(300)]
    expected = np.average(rates, weights=split.train.counts)
    assert line["probe_fn"] == pytest.approx(expected, abs=0.02)


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (lambda items: np.full(items.shape, 1.5), r"Saying\.unbias must be probabilities between 0 and 1, got 1\.5"),
        (lambda items: np.full(items.shape, np.nan), "got nan"),
        (lambda items: np.zeros(len(items) + 1), r"must give numbers of shape \(10, 1\), got float64 of shape \(11,\)"),
        (lambda items: np.full(items.shape, "sure"), "must give numbers"),
    ],
    ids=["above 1", "nan", "shape", "text"],
)
def test_a_belief_that_is_no_probability_is_refused(said, expected):
    class Saying(Second):
        def unbias(self, batch, items):
            return said(items)

    with pytest.raises(InputError, match=expected):
        probed(world_split(), Saying(), probes=10)


def test_a_sampler_without_a_belief_gets_none():
    assert not {"mean_predicted", "ece", "reliability"} & set(probed(world_split(), bn.RNS(), probes=10))


def test_where_the_truth_is_known_it_judges_and_not_the_held_out_part():
    full = interactions([[0, 1, 2, 3]], 5)
    train, test = full.select(full.indices < 1), full.select(full.indices == 1)
    scorer = fixed_scorer(np.zeros((1, 5)))
    known = Split(replace(train, truth=FullyObserved(full)), test)
    shares = [PickObserver(s, seed=0).end_epoch(1, Second(), scorer)["probe_fn"] for s in (Split(train, test), known)]
    assert shares == [0.0, 1.0]


class Second(bn.NegativeSampler):
    def sample(self, batch):
        assert batch.train.truth is None  # no sampler is shown the truth
        return np.full(len(batch.users), 2)


def test_cohorts_of_several_negatives_count_by_their_weights():
    train = interactions([[0], [0], [1], [0, 2]], 5)
    observer = PickObserver(Split(train, interactions_like(train, [[1], [], [], []])), seed=0, probes=2)
    picks = np.array([[1, 3], [4, -1]], dtype=np.int32)  # middle and tail; tail and nothing
    weights = np.array([[0.5, 0.25], [0.25, 1.0]])
    observer.see(Sampled(np.array([0, 1], dtype=np.int32), picks, np.zeros((2, 2)), weights))
    line = observer.end_epoch(1, bn.RNS(), fixed_scorer(np.zeros((4, 5))))
    assert [line["head"], line["middle"], line["tail"]] == pytest.approx([0.0, 0.5, 0.5])


def test_of_several_weighted_negatives_a_probe_picks_by_weight():
    """Item 4 has three quarters of the weight of every example."""

    class Weighted(bn.NegativeSampler):
        def sample(self, batch):
            items = np.tile([3, 4], (len(batch.users), 1))
            return bn.Negatives(items, np.tile([0.25, 0.75], (len(batch.users), 1)))

    train = interactions([[0, 1, 2]] * 400, 5)
    scores = np.tile([0.0, 0.0, 0.0, 1.0, 2.0], (400, 1))
    observer = PickObserver(Split(train, interactions_like(train, [[3]] * 400)), seed=0, probes=1200)
    line = observer.end_epoch(1, Weighted(), fixed_scorer(scores))
    assert line["hardness"] == pytest.approx(0.75, abs=0.04)  # item 4 ranks above the other one, item 3 below it
    assert line["probe_fn"] == pytest.approx(0.25, abs=0.04)


def test_a_shared_pool_is_probed_in_any_catalogue(monkeypatch):
    """In-batch negatives are the positives of other probes, so that some probes are taken at once."""
    monkeypatch.setattr("bayesneg.evaluation.picks.SCORES_AT_ONCE", 1)
    split = world_split()
    sampler = bn.samplers.InBatch(weighting="posterior", prior="rate").prepare(split.train, rng=stream(0, "sampler"))
    observer = PickObserver(split, seed=0, probes=100)
    observer.see(Measured(1, 0, Sums(1.0, 0.5, 0.5), {}))  # training gives sums: cohorts are those of the probes
    line = observer.end_epoch(1, sampler, fixed_scorer(np.random.default_rng(0).normal(size=(300, 200))))
    assert 0 < line["hardness"] < 1
    assert sum(line["reliability"]["n"]) >= 90
    assert line["head"] > 0.1, "in-batch negatives are popular items"
