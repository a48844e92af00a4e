"""A run that is interrupted and resumed ends in the same bytes."""

from __future__ import annotations

import numpy as np
import pytest

import bayesneg as bn
from bayesneg.errors import DivergedError, InputError
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
