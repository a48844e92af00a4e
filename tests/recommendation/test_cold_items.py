"""Items without a training interaction: nothing was learned of them, and they are not guessed at."""

from __future__ import annotations

import numpy as np
import pytest

import bayesneg as bn
from commands import bayesneg as bayesneg
from tests.fits import feature_model

COLD = [118, 119]  # the last items of the catalogue


@pytest.fixture(scope="module")
def split(world) -> bn.Split:
    """Every interaction with the cold items is in the test part, and so is all of user 0; every other item has some."""
    whole = world.known
    more = np.arange(COLD[0])
    pairs = np.concatenate((whole.users, np.full(len(more), 1))), np.concatenate((whole.indices, more))
    whole = bn.Interactions.from_numbers(*pairs, user_ids=whole.user_ids, item_ids=whole.item_ids)
    held = np.isin(whole.indices, COLD) | (whole.users == 0)
    return bn.Split(train=whole.select(~held), test=whole.select(held))


@pytest.fixture(scope="module", params=["mf", "ease", "als"])
def run(request, split) -> bn.Run:
    model = {"mf": bn.MF(dim=8), "ease": bn.baselines.EASE(l2=20.0), "als": bn.baselines.ALS(dim=8)}[request.param]
    sampler = bn.RNS() if request.param == "mf" else None
    return bn.fit(model, split, sampler, epochs=2, progress=False)


def test_a_cold_item_has_no_similar_ones_and_is_similar_to_none(run, split, tmp_path):
    for each in (run, bn.load_run(run.save(tmp_path / "run")), bn.load_export(run.export(tmp_path / "export"))):
        with pytest.raises(bn.BayesnegError, match=r"item 118 has no training interaction, .*--final trains on all"):
            each.similar(118)
        found = [item for item, _ in each.similar(5, k=split.train.n_items)]
        assert len(found) > 20
        assert not set(found) & set(COLD)


def test_an_export_without_interactions_knows_its_cold_items(split, tmp_path):
    run = bn.fit(bn.MF(dim=8), split, bn.RNS(), epochs=1, progress=False)
    loaded = bn.load_export(run.export(tmp_path / "export", interactions=False))
    with pytest.raises(bn.BayesnegError, match="item 118 has no training interaction"):
        loaded.similar(118)
    assert loaded.similar(5) == run.similar(5)
    assert len(loaded.recommend(0)) == 10  # which user is cold is not part of it


def test_a_cold_item_has_no_effect_on_a_new_user_and_is_not_recommended(run):
    without, user = run.fold_in([3, 9]), run.fold_in([3, 118, 9])
    assert (user.items, user.untrained, repr(user)) == ([3, 9], [118], "NewUser(2 items, 1 untrained)")
    assert without.untrained == []
    assert user.recommend(k=20) == [each for each in without.recommend(k=21) if each[0] != 118][:20]
    everything = [item for item, _ in user.recommend(k=117)]
    assert 118 not in everything
    with pytest.raises(bn.BayesnegError, match=r"item 118 has no training interaction, so there is nothing to fold in"):
        run.fold_in([118])
    with pytest.raises(bn.BayesnegError, match=r"the 2 items have no training interaction"):
        run.fold_in(COLD)


def test_a_cold_user_has_no_effect_on_a_new_item_and_is_not_recommended_to(split):
    run = bn.fit(bn.MF(dim=8), split, bn.RNS(), epochs=2, progress=False)
    without, item = run.fold_in(users=[3, 9]), run.fold_in(users=[3, 9, 0])
    assert (item.users, item.untrained, repr(item)) == ([3, 9], [0], "NewItem(2 users, 1 untrained)")
    np.testing.assert_array_equal(item.vector, without.vector)
    assert 0 not in [user for user, _ in without.recommend_to(k=split.train.n_users)]
    assert not set(COLD) & {other for other, _ in item.similar(k=split.train.n_items)}


def test_a_model_with_features_says_itself_what_it_knows_of_cold_items(split):
    run = bn.fit(feature_model(), split, bn.RNS(), epochs=1, progress=False)
    assert len(run.similar(118)) == 10
    assert run.fold_in([118]).items == [118]


def test_the_commands_say_the_same(split, bayesneg, tmp_path):
    folder = bn.fit(bn.MF(dim=8), split, bn.RNS(), epochs=1, progress=False).save(tmp_path / "run")
    assert "item 118 has no training interaction" in bayesneg("similar", folder, "118").error
    found = bayesneg("recommend", folder, "--items", "3,118", "--json")
    assert "without a training interaction and of no effect: 118" in found.err
    assert (found.json["items_of_user"], found.json["untrained"]) == ([3], [118])
    assert "nothing to fold in" in bayesneg("recommend", folder, "--items", "118").error
