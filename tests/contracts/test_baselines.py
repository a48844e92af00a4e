"""What every baseline promises. A new one joins by a line."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import bayesneg as bn
from bayesneg.errors import InputError
from bayesneg.evaluation.picks import PickObserver
from bayesneg.models.scorers import EmbeddingScorer
from tests.worlds import interactions


@dataclass(frozen=True)
class Constant(bn.baselines.Baseline):
    """A custom baseline: items in the order of their numbers."""

    def solve(self, train, *, rng):
        return EmbeddingScorer(np.ones((train.n_users, 1), np.float32), -np.arange(train.n_items)[:, None])


BASELINES = {
    "popularity": bn.baselines.MostPopular(),
    "item-knn": bn.baselines.ItemKNN(neighbours=5, shrink=1.0),
    "rp3beta": bn.baselines.RP3Beta(neighbours=5, beta=0.4),
    "ease": bn.baselines.EASE(l2=20.0),
    "gfcf": bn.baselines.GFCF(rank=8),
    "als": bn.baselines.ALS(dim=4),
    "custom": Constant(),
}
HISTORY_ONLY = (bn.baselines.ItemKNN, bn.baselines.RP3Beta, bn.baselines.EASE, bn.baselines.GFCF)


@pytest.fixture(params=BASELINES, ids=str)
def baseline(request):
    return BASELINES[request.param]


@pytest.fixture(scope="module")
def split():
    return bn.split(bn.synthetic(60, 80, seed=0), test=0.2, validation=0.1, seed=0)


def fit(baseline, split, **more):
    return bn.fit(baseline, split, progress=False, **more)


def test_it_is_fitted_at_once_and_evaluated_as_any_run(baseline, split):
    run = fit(baseline, split)
    assert [line["epoch"] for line in run.record.epochs] == [run.record.reported_epoch] == [1]
    assert "tnr" not in run.record.epochs[0]
    assert run.record.is_baseline
    assert run.record.label.startswith(type(baseline).__name__)
    assert run.evaluate(k=5).mean["ndcg@5"] == pytest.approx(run.record.final["ndcg@5"])


def test_single_scores_are_entries_of_the_rows(baseline, split):
    scorer, users = fit(baseline, split).scorer, np.array([3, 0, 3])
    items = np.array([[1, 2], [0, 79], [2, 2]])
    rows = np.take_along_axis(scorer.score_all(users), items, axis=1)
    np.testing.assert_allclose(scorer.score(users, items), rows, rtol=1e-5)


def test_a_saved_run_recommends_the_same(baseline, split, tmp_path):
    run = fit(baseline, split)
    run.save(tmp_path / "run")
    again = bn.load_run(tmp_path / "run")
    users = np.arange(split.train.n_users)
    np.testing.assert_array_equal(again.scorer.score_all(users), run.scorer.score_all(users))
    user = split.train.user_ids[7]
    assert again.recommend(user, k=5) == run.recommend(user, k=5)
    assert again.record.is_baseline


def test_a_finished_run_can_be_resumed(baseline, split, tmp_path):
    first = fit(baseline, split, out=tmp_path / "run")
    again = fit(baseline, split, out=tmp_path / "run", resume=True)
    assert again.record.final == first.record.final
    assert len(again.record.epochs) == 1


def test_same_seed_same_scores_and_global_random_state_is_untouched(baseline, split):
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    one, two = (fit(baseline, split, seed=4).scorer.score_all(np.arange(60)) for _ in range(2))
    np.testing.assert_array_equal(one, two)
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


def test_held_out_labels_never_reach_it(baseline, split):
    other = bn.Split(train=split.train, test=split.validation, validation=split.test)
    one, two = (fit(baseline, part).scorer.score_all(np.arange(60)) for part in (split, other))
    np.testing.assert_array_equal(one, two)


def test_users_and_items_without_history_have_finite_scores(baseline):
    train = interactions([[0, 1], [], [1, 2], [0, 2], [1, 3]], 5)  # nobody has item 4
    scores = baseline.solve(train, rng=np.random.default_rng(0)).score_all(np.arange(5))
    assert np.isfinite(scores).all()
    if isinstance(baseline, HISTORY_ONLY):
        assert scores[1].tolist() == [2, 3, 2, 1, 0]  # popularity


def test_a_sampler_is_refused(baseline, split):
    with pytest.raises(InputError, match="samples no negatives; call fit without a sampler"):
        bn.fit(baseline, split, bn.RNS(), progress=False)


def test_an_observer_is_refused_since_no_negative_is_sampled(baseline, split):
    with pytest.raises(InputError, match="samples no negatives; call fit without an observer"):
        fit(baseline, split, observer=PickObserver(split, seed=0))


def test_other_models_need_a_sampler(split):
    with pytest.raises(InputError, match="MF is trained with sampled negatives; give fit a sampler"):
        bn.fit(bn.MF(), split, progress=False)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: bn.baselines.EASE(l2=0), "l2 must be a number above 0"),
        (lambda: bn.baselines.ItemKNN(neighbours=0), "neighbours must be a whole number"),
        (lambda: bn.baselines.ItemKNN(shrink=-1), "shrink must be a number of at least 0"),
        (lambda: bn.baselines.RP3Beta(neighbours=0), "neighbours must be a whole number"),
        (lambda: bn.baselines.RP3Beta(alpha=-1), "alpha must be a number of at least 0"),
        (lambda: bn.baselines.RP3Beta(beta=-1), "beta must be a number of at least 0"),
        (lambda: bn.baselines.GFCF(rank=0), "rank must be a whole number"),
        (lambda: bn.baselines.GFCF(alpha=-1), "alpha must be a number of at least 0"),
        (lambda: bn.baselines.ALS(dim=0), "dim must be"),
        (lambda: bn.baselines.ALS(alpha=0), "alpha must be"),
    ],
)
def test_impossible_settings_are_refused(make, message):
    with pytest.raises(InputError, match=message):
        make()


def test_each_beats_popularity_where_users_differ():
    split = bn.split(bn.synthetic(300, 200, seed=1), test=0.2, seed=0)
    popular, *others = (
        fit(model, split).record.final["ndcg@20"]
        for model in (
            bn.baselines.MostPopular(),
            bn.baselines.EASE(l2=100.0),
            bn.baselines.ItemKNN(),
            bn.baselines.RP3Beta(),
            bn.baselines.GFCF(),
        )
    )
    assert min(others) > popular
