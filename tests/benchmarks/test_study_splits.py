"""Splits of a study: tuned without the test labels, with less data, and with other test parts."""

from __future__ import annotations

import numpy as np
import pytest
import sweeps

from bayesneg.experiments.datasets import blind
from bayesneg.reproduction.sweeps.cells import Cell, run_cell
from benchmarks.studies.splits import FIFTH, TENTHS, StudySource


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> tuple[StudySource, str]:
    return StudySource(), str(sweeps.world(tmp_path_factory.mktemp("data")))


def pairs(part) -> set[tuple[int, int]]:
    return set(zip(part.users.tolist(), part.indices.tolist(), strict=True))


def test_a_blind_split_is_judged_on_validation_and_holds_no_test_label(source):
    source, dataset = source
    seeing, hidden = source.split(dataset, "best"), source.split(dataset, "blind")
    assert pairs(hidden.train) == pairs(seeing.train)
    assert pairs(hidden.test) == pairs(seeing.validation)
    assert hidden.validation is None
    assert not pairs(seeing.test) & (pairs(hidden.train) | pairs(hidden.test))
    with pytest.raises(Exception, match="needs a validation part"):
        blind(source.split(dataset, "last"))


def test_each_blind_split_holds_out_another_part_of_the_same_training_pairs(source):
    source, dataset = source
    own = [source.split(dataset, view) for view in TENTHS]
    for one in own:
        assert pairs(one.train) | pairs(one.test) == pairs(source.split(dataset, "last").train)
    assert len({frozenset(pairs(one.test)) for one in own}) == len(TENTHS) == 10


def test_a_fifth_is_held_out_of_each_users_training_items(source):
    source, dataset = source
    whole, part = source.split(dataset, "last"), source.split(dataset, FIFTH)
    assert pairs(part.train) | pairs(part.test) == pairs(whole.train)
    assert part.validation is None
    np.testing.assert_array_equal(part.test.counts, np.rint(0.2 * whole.train.counts))


def test_less_data_is_part_of_the_training_pairs_and_is_judged_on_the_same_test_part(source):
    source, dataset = source
    whole, half = source.split(dataset, "last"), source.split(f"{dataset}@50", "last")
    assert pairs(half.train) < pairs(whole.train)
    assert len(half.train) == round(len(whole.train) / 2)
    assert pairs(half.test) == pairs(whole.test)
    assert pairs(half.seen) == pairs(whole.seen), "what is left out of training is no candidate for the test part"
    assert source.split(f"{dataset}@100", "last").validation is None
    assert pairs(source.split(f"{dataset}@25", "last").train) < pairs(half.train)
    assert pairs(source.split(f"{dataset}@100", "last").train) == pairs(whole.train)
    with pytest.raises(Exception, match=r"must lie in \(0, 1\]"):
        source.split(f"{dataset}@101", "last")


@pytest.mark.parametrize("first", [1, 6])
def test_other_test_parts_are_every_pair_once_and_spare_no_user(source, first):
    source, dataset = source
    whole = source.split(dataset, "last")
    everything = pairs(whole.train) | pairs(whole.test)
    own = [source.split(f"{dataset}#{number}", "last") for number in range(first, first + 5)]
    assert sum(len(one.test) for one in own) == len(everything)
    n_chosen = np.bincount([user for user, _ in everything], minlength=whole.train.n_users)
    for one in own:
        assert pairs(one.train) | pairs(one.test) == everything
        assert not pairs(one.train) & pairs(one.test)
        assert (np.abs(one.test.counts - n_chosen / 5) < 1).all()  # of each user a fifth
    assert len({one.fingerprint for one in own}) == 5
    other = source.split(f"{dataset}#{first % 10 + 5}", "last")
    assert other.fingerprint not in {one.fingerprint for one in own}
    with pytest.raises(Exception, match=r"numbered from 1, got 0"):
        source.split(f"{dataset}#0", "last")


def test_a_file_with_an_at_sign_in_its_name_is_a_file(tmp_path):
    (tmp_path / "me@20").mkdir()
    path = tmp_path / "me@20" / "ratings@50"
    path.write_text("user,item\n" + "".join(f"{user},{item}\n" for user in range(5) for item in range(6)))
    assert len(StudySource().split(str(path), "last").train) == 24


def test_a_blind_cell_reports_the_last_epoch_and_its_curve_on_validation(source):
    source, dataset = source
    fingerprint = source.fingerprint(dataset, "blind")
    cell = Cell(dataset, fingerprint, "blind", model="mf", sampler="rns", label="x", epochs=2, seed=0)
    record = run_cell(cell, source.split(dataset, "blind"), progress=lambda line: None)
    assert (record.select, record.reported_epoch) == ("last", 2)
    assert [line["ndcg@20"] for line in record.epochs][-1] == pytest.approx(record.final["ndcg@20"])
    assert record.data["n_test"] == len(source.split(dataset, "best").validation)
