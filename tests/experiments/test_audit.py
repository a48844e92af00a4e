"""An audit from Python: known answers, several splits, what is kept."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import bayesneg as bn
from bayesneg.errors import InputError
from bayesneg.runs import ledger


class FirstUnseen(bn.NegativeSampler):
    """The unseen item of the lowest number: what it picks is known beforehand."""

    def sample(self, batch):
        items = np.arange(batch.train.n_items)
        return np.array([np.setdiff1d(items, batch.train.row(user))[0] for user in batch.users])


class Refusing(bn.NegativeSampler):
    def sample(self, batch):
        raise AssertionError("nothing was to be trained")


@dataclass(frozen=True)
class Sometimes(bn.NegativeSampler):
    """No negative for users of even numbers."""

    def sample(self, batch):
        return np.where(batch.users % 2 == 0, bn.NO_NEGATIVE, FirstUnseen().sample(batch))


@pytest.fixture(scope="module")
def world():
    return bn.synthetic(60, 50, seed=0)


def audit(split, samplers, **more):
    settings = {"model": bn.MF(dim=4, sampling_batch=64), "seeds": 1, "epochs": 2, "probes": 50, "progress": False}
    return bn.audit(split=split, samplers=samplers, **(settings | more))


def test_the_false_negatives_are_those_of_the_truth(world):
    split = bn.split(world, test=0.3, by="user", seed=0)
    (record,) = audit(split, {"first": FirstUnseen()}).records
    picks = {u: next(i for i in range(50) if i not in split.train.row(u)) for u in range(60) if split.train.counts[u]}
    false = sum(int(split.train.counts[u]) for u, item in picks.items() if bool(split.truth.likes(u, item)))
    assert [line["fn"] for line in record.epochs] == pytest.approx([false / len(split.train)] * 2)
    held_out = sum(int(split.train.counts[u]) for u, item in picks.items() if item in split.test.row(u))
    assert record.epochs[-1]["tnr"] == pytest.approx(1 - held_out / len(split.train))


def test_where_the_truth_is_unknown_only_the_hidden_positives_count(world):
    from dataclasses import replace

    split = bn.split(replace(world, truth=None), test=0.3, by="user", seed=0)
    (record,) = audit(split, {"first": FirstUnseen()}).records
    assert record.data["truth_known"] is False
    assert record.last("fn") == pytest.approx(1 - record.last("tnr"))


def test_with_everything_observed_what_is_hidden_is_what_is_false(real_data):
    """KuaiRec: the hidden positives are all the false negatives there are."""
    data = bn.load("kuairec", data_dir=real_data)
    (record,) = audit(bn.hide(data, [0.3]), {"DNS": bn.DNS()}, epochs=1).records
    assert record.data["truth_known"] is True
    assert record.last("fn") == pytest.approx(1 - record.last("tnr"))
    assert record.last("fn_uniform") == pytest.approx(1 - record.last("tnr_uniform"))


def test_skipped_examples_are_a_share_of_all(world):
    split = bn.split(world, test=0.3, by="user", seed=0)
    (record,) = audit(split, {"sometimes": Sometimes()}).records
    even = split.train.counts[::2].sum() / len(split.train)
    assert record.last("skipped_share") == pytest.approx(even)


def test_hiding_takes_from_every_user_and_names_the_share(world):
    splits = bn.hide(world, [0.1, 0.5])
    assert list(splits) == ["synthetic, 10% hidden", "synthetic, 50% hidden"]
    for share, split in zip((0.1, 0.5), splits.values(), strict=True):
        hidden = np.minimum(np.rint(share * world.counts), np.maximum(world.counts - 1, 0))
        np.testing.assert_array_equal(split.test.counts, hidden)


def test_a_record_says_of_how_many_users_something_is_hidden(world):
    (split,) = bn.hide(world, [0.1]).values()
    (record,) = audit(split, {"RNS": bn.RNS()}).records
    assert record.data["n_users_with_hidden"] == sum(len(split.test.row(user)) > 0 for user in range(60)) < 60


def test_a_sampler_may_be_made_for_each_split(world):
    found = audit(bn.hide(world, [0.2, 0.4]), {"oracle": lambda s: bn.BNS(prior=bn.priors.Oracle(s.held_out))})
    assert [record.dataset for record in found.records] == ["synthetic, 20% hidden", "synthetic, 40% hidden"]
    assert all(record.uses_test_labels for record in found.records)
    assert len({str(record.spec["sampler"]) for record in found.records}) == 2  # each has the labels of its own split


def test_the_frames_have_a_row_for_every_epoch_and_bin(world):
    found = audit(bn.hide(world, [0.2]), {"RNS": bn.RNS(), "BNS": bn.BNS()}, seeds=2)
    frame = found.frame
    assert frame.height == 2 * 2 * 2
    assert {"dataset", "sampler", "seed", "epoch", "fn", "hardness", "head", "mean_predicted", "ece"} <= set(
        frame.columns
    )
    assert frame.filter(frame["sampler"] == "RNS")["mean_predicted"].null_count() == 4
    bins = found.reliability
    assert set(bins["sampler"]) == {"BNS"}
    assert bins.filter(bins["population"] == "picked")["n"].sum() == 50 * 2 * 2
    assert ((bins["mean_predicted"] >= bins["from"] - 1e-6) & (bins["mean_predicted"] <= bins["to"] + 1e-6)).all()


def test_a_torch_model_is_audited_as_well(world):
    pytest.importorskip("torch", reason="torch is not installed (the extra 'torch')")
    samplers = {"SRNS": bn.SRNS(memory=3, fresh=4), "BNS": bn.BNS()}
    found = audit(bn.hide(world, [0.2]), samplers, model=bn.LightGCN(dim=4, device="cpu"))
    assert all(0 <= record.last("hardness") <= 1 for record in found.records)
    assert 0 < found.records[1].last("mean_predicted") <= 1


def test_the_number_of_jobs_changes_no_number(world):
    samplers = {"RNS": bn.RNS(), "SRNS": bn.SRNS(memory=3, fresh=4), "BNS": bn.BNS()}
    one, three = (audit(bn.hide(world, [0.2]), samplers, jobs=jobs).records for jobs in (1, 3))
    strip = [[{**line, "seconds": 0} for line in record.epochs] for record in one]
    assert strip == [[{**line, "seconds": 0} for line in record.epochs] for record in three]


def test_finished_runs_are_kept_and_not_trained_again(world, tmp_path):
    out, split = tmp_path / "audit.jsonl", bn.hide(world, [0.2])
    first = audit(split, {"mine": FirstUnseen()}, out=out)
    assert len(ledger.read(out)) == 1
    more = audit(split, {"mine": FirstUnseen(), "RNS": bn.RNS()}, out=out, resume=True)
    assert list(more.records[0].epochs) == list(first.records[0].epochs)
    assert [record.label for record in more.records] == ["mine", "RNS"]
    assert len(ledger.read(out)) == 2


def test_samplers_that_look_the_same_are_distinguished_by_their_labels(world, tmp_path):
    out, split = tmp_path / "audit.jsonl", bn.hide(world, [0.2])
    never, always = (bn.BNS(prior=lambda users, items, p=p: np.full(items.shape, p)) for p in (0.0, 1.0))
    first = audit(split, {"never": never, "always": always}, out=out)
    again = audit(split, {"always": always, "never": never}, out=out, resume=True)
    called = [record.last("mean_predicted") for record in first.records]
    assert called[0] != called[1]
    assert [record.last("mean_predicted") for record in again.records] == called[::-1]
    assert len(ledger.read(out)) == 2


def test_the_same_split_twice_is_refused(world):
    (split,) = bn.hide(world, [0.2]).values()
    with pytest.raises(InputError, match="'a' and 'b' are the same"):
        audit({"a": split, "b": split}, {"refusing": Refusing()})


def test_a_sampler_is_made_once_for_each_split(world):
    made = []
    audit(bn.hide(world, [0.2, 0.4]), {"RNS": lambda split: made.append(split) or bn.RNS()}, seeds=3)
    assert len(made) == 2


@pytest.mark.parametrize("content", [b"notes of mine\n", b"\xff\xfe\x00"])
def test_a_file_of_something_else_is_not_written_to(world, tmp_path, content):
    out = tmp_path / "notes.txt"
    out.write_bytes(content)
    with pytest.raises(InputError, match=r"notes.txt holds no finished run"):
        audit(bn.hide(world, [0.2]), {"refusing": Refusing()}, out=out, resume=True)
    assert out.read_bytes() == content


@pytest.mark.parametrize(
    ("shares", "expected"),
    [(0.2, "shares must be a list"), ([0.2, 0.2 + 1e-10], "two of 20%")],
)
def test_shares_that_cannot_be_told_apart_are_refused(world, shares, expected):
    with pytest.raises(InputError, match=expected):
        bn.hide(world, shares)


def test_an_error_keeps_the_runs_that_were_finished(world, tmp_path):
    out = tmp_path / "audit.jsonl"
    with pytest.raises(AssertionError):
        audit(bn.hide(world, [0.2]), {"RNS": bn.RNS(), "refusing": Refusing()}, jobs=1, out=out)
    assert [entry.record.label for entry in ledger.read(out).values()] == ["RNS"]


@pytest.mark.parametrize("change", [{"epochs": 3}, {"probes": 40}, {"model": bn.MF(dim=5, sampling_batch=64)}], ids=str)
def test_what_changes_a_number_is_run_anew(world, tmp_path, change):
    out, split = tmp_path / "audit.jsonl", bn.hide(world, [0.2])
    audit(split, {"RNS": bn.RNS()}, out=out)
    audit(split, {"RNS": bn.RNS()}, out=out, resume=True, **change)
    assert len(ledger.read(out)) == 2


def test_a_file_that_exists_is_not_written_to_unless_asked(world, tmp_path):
    out = tmp_path / "audit.jsonl"
    out.write_text("")
    with pytest.raises(InputError, match=r"audit.jsonl exists; choose another out"):
        audit(bn.hide(world, [0.2]), {"refusing": Refusing()}, out=out)


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        ({"samplers": {}}, "at least one sampler"),
        ({"epochs": 0}, "epochs"),
        ({"probes": 0}, "probes"),
        ({"jobs": 0}, "jobs"),
        ({"seeds": 0}, "seeds must be at least 1"),
        ({"seeds": [1, 0, 1]}, "seeds must differ"),
    ],
)
def test_wrong_arguments_are_named(world, wrong, expected):
    with pytest.raises(InputError, match=expected):
        audit(bn.hide(world, [0.2]), **({"samplers": {"RNS": bn.RNS()}} | wrong))


@pytest.mark.parametrize(
    ("given", "samplers", "error"),
    [
        ("split", {"a": 3}, "samplers: a must be a sampler, or a function of a split, got 3"),
        ("split", [3], "samplers: each must be a sampler, or a function of a split, got 3"),
        ("split", [bn.RNS(), "rns"], "samplers has RNS twice"),
        ("split", {}, "at least one sampler"),
        ("split", {"r": bn.RNS}, r"samplers: r is the class RNS; give a sampler, RNS\(\)"),
        ("split", {"r": lambda split: "rns"}, r"the function r must return a sampler, such as bn.RNS\(\), got 'rns'"),
        ("split", {1: bn.RNS()}, "samplers: a label must be text, got 1; write '1'"),
        ("train", {"RNS": bn.RNS()}, r"split must be a split, or several by name, got Interactions; bn.hide"),
        ("none", {"RNS": bn.RNS()}, r"split must hold at least one split, got none; bn.hide"),
        ("numbered", {"RNS": bn.RNS()}, "split: a name must be text, got 2; write '2'"),
    ],
)
def test_what_cannot_be_audited_is_told(world, given, samplers, error):
    split = bn.split(world, test=0.2, seed=0)
    with pytest.raises(InputError, match=error):
        audit({"split": split, "train": split.train, "none": {}, "numbered": {2: split}}[given], samplers)


def test_what_cannot_be_hidden_from_is_told(world):
    with pytest.raises(InputError, match=r"data must be interactions, as bn.load\(…\) gives them, got Split"):
        bn.hide(bn.split(world, test=0.2, seed=0), [0.2])


def test_a_share_that_is_no_number_is_told(world):
    with pytest.raises(InputError, match="shares must be a number above 0"):
        bn.hide(world, [0.2, "a"])


def test_another_loss_is_another_run_of_the_same_label(world, tmp_path):
    for loss in ("bpr", "logistic"):
        found = audit(bn.hide(world, [0.2]), {"RNS": bn.RNS()}, loss=loss, out=tmp_path / "a.jsonl", resume=True)
        assert found.frame["loss"].unique().to_list() == [{"bpr": "BPR", "logistic": "Logistic"}[loss]]
    assert len(ledger.read(tmp_path / "a.jsonl")) == 2
