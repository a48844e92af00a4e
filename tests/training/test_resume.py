"""A run that is interrupted and resumed ends in the same bytes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import bayesneg as bn
from bayesneg.config.specs import SamplerSpec
from bayesneg.errors import DivergedError, InputError
from bayesneg.integrity.sources import code_digest
from bayesneg.runs import folder as files
from fits import fit, without_seconds


@pytest.mark.parametrize(
    "sampler",
    [
        bn.BNS(),
        bn.SRNS(memory=3, fresh=5),
        bn.AOBPR(scale=5, rank="factor"),
        bn.samplers.DENS(warmup=1, gate_learning_rate=0.5),
    ],
    ids=str,
)
@pytest.mark.parametrize("stop", [3, 5])
def test_a_resumed_run_ends_in_the_same_bytes(validated, tmp_path, sampler, stop):
    class StoppedError(Exception):
        pass

    def stopping(line):
        if line["epoch"] == stop:
            raise StoppedError

    whole = fit(validated, sampler, epochs=7, out=tmp_path / "whole", checkpoint_every=2)
    with pytest.raises(StoppedError):
        fit(validated, sampler, epochs=7, out=tmp_path / "cut", checkpoint_every=2, progress=stopping)
    assert not (tmp_path / "cut" / files.METRICS).exists()
    resumed = fit(validated, sampler, epochs=7, out=tmp_path / "cut", checkpoint_every=2, resume=True)
    assert resumed.scorer.users.tobytes() == whole.scorer.users.tobytes()
    assert without_seconds(resumed.record.epochs) == without_seconds(whole.record.epochs)
    assert resumed.record.final == whole.record.final
    assert (tmp_path / "cut" / "metrics.json").read_bytes() == (tmp_path / "whole" / "metrics.json").read_bytes()


def test_the_best_epoch_survives_an_interruption_after_it(validated, tmp_path):
    """The model over-fits, so that the best epoch lies before the checkpoint that training is resumed from."""
    model = bn.MF(dim=32, learning_rate=0.3, regularization=1e-4, init_scale=0.1)
    settings = {"sampler": bn.DNS(candidates=5), "model": model, "checkpoint_every": 10}
    whole = fit(validated, epochs=30, **settings)
    fit(validated, epochs=20, out=tmp_path / "run", **settings)
    resumed = fit(validated, epochs=30, out=tmp_path / "run", resume=True, **settings)
    assert whole.record.reported_epoch <= 20
    assert resumed.record.reported_epoch == whole.record.reported_epoch
    assert resumed.scorer.users.tobytes() == whole.scorer.users.tobytes()


def test_a_resumed_run_that_diverges_is_kept(split, tmp_path):
    wild = bn.MF(dim=4, learning_rate=1.5, regularization=0.5, init_scale=0.1)
    fit(split, epochs=1, out=tmp_path / "run", model=wild)
    with pytest.raises(DivergedError):
        fit(split, epochs=400, out=tmp_path / "run", resume=True, model=wild)
    assert (tmp_path / "run" / "run.json").exists()


def test_an_extension_that_was_interrupted_is_not_taken_for_finished(split, recorded):
    def interrupting(line):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit(split, epochs=9, out=recorded[1], resume=True, progress=interrupting)
    with pytest.raises(InputError, match="was not finished"):
        bn.load_run(recorded[1])


def test_a_line_lost_before_the_checkpoint_is_written_again(split, recorded, six_epochs):
    lines = (recorded[1] / "epochs.jsonl").read_text().splitlines(keepends=True)
    (recorded[1] / "epochs.jsonl").write_text("".join(lines[:2]))
    resumed = fit(split, epochs=6, out=recorded[1], resume=True)
    assert without_seconds(resumed.record.epochs) == without_seconds(six_epochs.record.epochs)
    assert len((recorded[1] / "epochs.jsonl").read_text().splitlines()) == 6


def test_an_interrupt_leaves_a_checkpoint(split, tmp_path):
    def interrupting(line):
        if line["epoch"] == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit(split, out=tmp_path / "run", progress=interrupting)
    assert int(files.read_arrays(tmp_path / "run" / files.CHECKPOINT)["epochs_done"]) == 2


def test_a_finished_run_can_be_trained_further(split, recorded, six_epochs):
    longer = fit(split, epochs=6, out=recorded[1], resume=True)
    np.testing.assert_array_equal(longer.scorer.users, six_epochs.scorer.users)


@pytest.mark.parametrize(
    ("change", "words"),
    [({"seed": 9}, "another seed"), ({"model": bn.MF(dim=5)}, "model dim was 4, now it is 5")],
)
def test_resuming_as_another_run_is_refused(split, recorded, change, words):
    with pytest.raises(InputError, match=words):
        fit(split, out=recorded[1], resume=True, **change)


def test_resuming_with_fewer_epochs_than_were_trained_is_refused(split, recorded):
    with pytest.raises(InputError, match="already holds 4 epochs"):
        fit(split, epochs=3, out=recorded[1], resume=True)


def test_a_line_that_a_killed_process_left_unfinished_does_not_count(split, recorded, six_epochs):
    with (recorded[1] / "epochs.jsonl").open("a") as lines:
        lines.write('{"epoch": 5, "tn')
    resumed = fit(split, epochs=6, out=recorded[1], resume=True)
    assert without_seconds(resumed.record.epochs) == without_seconds(six_epochs.record.epochs)


def test_a_run_killed_before_its_split_was_written_can_be_resumed(split, recorded):
    for name in ("split.parquet", "checkpoint.safetensors", "metrics.json"):
        (recorded[1] / name).unlink()
    fit(split, out=recorded[1], resume=True)
    assert bn.load_run(recorded[1]).split.fingerprint == split.fingerprint


def test_resuming_on_other_data_is_refused(validated, recorded):
    with pytest.raises(InputError, match="other data"):
        fit(validated, out=recorded[1], resume=True, select="last")


def test_resuming_with_other_user_columns_is_refused(split, recorded):
    groups = split.train.user_columns["group"]
    for columns, what in (
        ({"group": groups[::-1]}, "'group' has changed"),
        ({}, "'group' is not there now"),
        ({"group": groups, "age": groups}, "'age' was not there"),
    ):
        other = replace(split, train=replace(split.train, user_columns=columns))
        assert other.fingerprint == split.fingerprint
        with pytest.raises(InputError, match=f"user column {what}; resume it with the user columns"):
            fit(other, out=recorded[1], resume=True)


CODE = """
import numpy as np
import bayesneg as bn

class Mine(bn.NegativeSampler):
    def prepare(self, train, *, rng):
        self._within = bn.RNS().prepare(train, rng=rng)
        return self

    def sample(self, batch):
        return self._within.sample(batch)

def prior(users, items):
    return np.full(np.broadcast_shapes(users.shape, items.shape), 0.1)
"""


@pytest.fixture
def named(split, tmp_path):
    """Makes the sampler that a text with a Python file names, of the file as it is now."""
    path = tmp_path / "mine.py"

    def build(text: str, code: str) -> bn.NegativeSampler:
        path.write_text(code)
        return SamplerSpec.parse(text.replace("FILE", str(path))).build(split)

    return build


@pytest.mark.parametrize("text", ["FILE:Mine", "bns:prior=FILE:prior"])
def test_resuming_with_other_code_in_a_named_file_is_refused(split, tmp_path, named, text):
    fit(split, named(text, CODE), epochs=1, out=tmp_path / "run")
    fit(split, named(text, CODE), epochs=2, out=tmp_path / "run", resume=True)
    changed = named(text, CODE.replace("0.1", "0.2"))
    with pytest.raises(InputError, match="source sha256"):
        fit(split, changed, epochs=3, out=tmp_path / "run", resume=True)


def flat(users, items):
    return np.full(np.broadcast_shapes(users.shape, items.shape), 0.1)


def test_resuming_with_other_code_of_a_python_object_is_refused(split, tmp_path):
    def flat_too(users, items):
        return np.full(np.broadcast_shapes(users.shape, items.shape), 0.2)

    flat_too.__qualname__ = "flat"  # the same name: only the source tells them apart
    fit(split, bn.BNS(prior=flat), epochs=1, out=tmp_path / "run")
    fit(split, bn.BNS(prior=flat), epochs=2, out=tmp_path / "run", resume=True)
    with pytest.raises(InputError, match="source sha256"):
        fit(split, bn.BNS(prior=flat_too), epochs=3, out=tmp_path / "run", resume=True)


def test_a_lambda_is_known_by_its_expression_and_not_by_its_line():
    first, again = (lambda users: users + 1), 5
    second = lambda users: users + 1  # noqa: E731
    other = lambda users: users + 2  # noqa: E731
    assert code_digest(first) == code_digest(second) != code_digest(other)
    assert again == 5
    assert code_digest(bn.MF) is None
    assert code_digest(eval("lambda users: users")) is None, "there is no source"
