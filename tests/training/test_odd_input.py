"""Users without negatives, samplers that give nonsense, settings that cannot be."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import bayesneg as bn
from bayesneg.data.splits import Split
from bayesneg.errors import InputError
from fits import fit
from worlds import interactions


def _given(train, test):
    return Split(train=train, test=replace(test, user_ids=train.user_ids, item_ids=train.item_ids))


@pytest.mark.parametrize(
    "sampler", [bn.RNS(), bn.PNS(), bn.DNS(candidates=5), bn.SRNS(), bn.BNS(), bn.AOBPR()], ids=str
)
def test_a_user_who_chose_everything_is_skipped_and_counted(sampler):
    train = interactions([[0, 1, 2, 3, 4], [0, 1], [2]], 5)
    test = interactions([[], [2], [0]], 5)
    run = bn.fit(bn.MF(dim=2), _given(train, test), sampler, epochs=2, progress=False)
    assert run.record.data["n_users_without_negatives"] == 1
    assert [line["skipped"] for line in run.record.epochs] == [5, 5]


def test_users_with_fewer_unseen_items_than_candidates_are_counted():
    train = interactions([[0, 1, 2, 3], [0]], 5)
    test = interactions([[], [2]], 5)
    run = bn.fit(bn.MF(dim=2), _given(train, test), bn.BNS(candidates=3), epochs=1, progress=False)
    assert run.record.data["n_users_short_of_candidates"] == 1
    assert run.record.epochs[0]["skipped"] == 0


def test_users_and_items_only_in_test_are_counted():
    train, test = interactions([[0, 1], [], [1]], 4), interactions([[2], [0], [3]], 4)
    record = bn.fit(bn.MF(dim=2), _given(train, test), bn.BNS(), epochs=1, progress=False).record
    assert (record.data["n_test_only_users"], record.data["n_test_only_items"]) == (1, 2)


def test_a_single_user_works():
    split = _given(interactions([[0, 1]], 4), interactions([[2]], 4))
    assert bn.fit(bn.MF(dim=2), split, bn.BNS(), epochs=2, progress=False).evaluate(k=2).n_users == 1


def test_a_sampler_that_picks_a_positive_is_told_so(split):
    class Wrong(bn.NegativeSampler):
        def sample(self, batch):
            return batch.positives

    with pytest.raises(InputError, match="a training item of that user"):
        fit(split, Wrong())


@pytest.mark.parametrize("answer", [lambda n: np.zeros(n + 1, int), lambda n: np.zeros(n), lambda n: np.full(n, 10**6)])
def test_a_sampler_that_answers_nonsense_is_told_so(split, answer):
    class Wrong(bn.NegativeSampler):
        def sample(self, batch):
            return answer(len(batch.users))

    with pytest.raises(InputError, match="sample must return"):
        fit(split, Wrong())


def test_a_custom_sampler_gets_as_many_examples_at_once_as_asked_for(split):
    sizes = []

    class Watching(bn.NegativeSampler):
        def sample(self, batch):
            sizes.append(len(batch.users))
            return bn.RNS().sample(batch)

    fit(split, Watching(), epochs=1, model=bn.MF(dim=2, sampling_batch=100))
    assert max(sizes) == 100
    assert sum(sizes) == len(split.train)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"dim": 0}, "dim must be"),
        ({"learning_rate": 0}, "learning_rate must be"),
        ({"regularization": -1}, "regularization must be"),
        ({"regularization": 0}, "give init_scale"),
        ({"learning_rate": "x"}, "learning_rate must be a number"),
        ({"update": "both"}, "update must be"),
        ({"shuffle": "never"}, "shuffle must be"),
        ({"threads": 0}, "threads must be"),
    ],
)
def test_a_wrong_model_setting_is_refused(settings, words):
    with pytest.raises(InputError, match=words):
        bn.MF(**settings)


@pytest.mark.parametrize(
    ("model", "sampler"), [("mf", bn.RNS()), (bn.MF, bn.RNS()), (bn.MF(), "rns"), (bn.MF(), bn.RNS)]
)
def test_a_name_or_a_class_is_not_taken_for_an_object(model, sampler):
    split = bn.split(bn.synthetic(30, 40, seed=0), test=0.2, seed=0)
    with pytest.raises(InputError, match=r"(model|sampler) must be an object such as bn\.(MF|BNS)\(\), got "):
        bn.fit(model, split, sampler, epochs=1, progress=False)


def test_arguments_in_another_order_or_of_another_kind_are_refused(split):
    with pytest.raises(InputError, match="split must be a split, got MF; fit takes model, split, sampler"):
        bn.fit(split, bn.MF(), bn.RNS(), progress=False)
    with pytest.raises(InputError, match="split must be a split, got Interactions"):
        bn.fit(bn.MF(), split.train, bn.RNS(), progress=False)
    with pytest.raises(InputError, match=r"observer must be an object with the methods of .*, a tracker .*, got 3"):
        bn.fit(bn.MF(), split, bn.RNS(), observer=3, progress=False)
