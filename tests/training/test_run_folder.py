"""The folder of a run: what it holds, and what is said where it is damaged."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import bayesneg as bn
from bayesneg.errors import DivergedError, InputError
from bayesneg.runs import folder as files
from fits import fit


def test_a_run_is_recorded_as_it_goes_and_read_back(split, recorded):
    run, folder = recorded
    again = bn.load_run(folder)
    assert again.record.to_dict() == run.record.to_dict()
    np.testing.assert_array_equal(again.scorer.users, run.scorer.users)
    user = split.train.user_ids[7]
    assert again.recommend(user, k=5) == run.recommend(user, k=5)
    assert again.split.fingerprint == split.fingerprint


def test_saving_later_writes_the_same_as_recording(recorded, tmp_path):
    run, folder = recorded
    run.save(tmp_path / "saved")
    for name in ("run.json", "epochs.jsonl", "metrics.json", "weights.safetensors", "split.parquet"):
        assert (folder / name).read_bytes() == (tmp_path / "saved" / name).read_bytes()


def test_a_saved_run_is_replaced_where_asked_and_other_files_are_not(split, recorded, tmp_path):
    run, _ = recorded
    target = run.save(tmp_path / "saved")
    (target / "checkpoint.safetensors").write_bytes(b"of the old run")
    other = fit(split, seed=9)
    assert other.save(target, overwrite=True) == target
    assert bn.load_run(target).record.seed == 9
    assert not (target / "checkpoint.safetensors").exists()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("all of it")
    with pytest.raises(InputError, match="not an empty folder"):
        run.save(tmp_path / "mine", overwrite=True)


def test_a_folder_that_holds_a_run_is_left_alone(split, recorded):
    run, folder = recorded
    before = (folder / "run.json").read_bytes()
    for again in (lambda: fit(split, out=folder, seed=9), lambda: run.save(folder)):
        with pytest.raises(InputError, match="already holds a run"):
            again()
    assert (folder / "run.json").read_bytes() == before


@pytest.mark.parametrize("name", ["run.json", "checkpoint.safetensors"])
def test_a_spoiled_run_is_called_damaged(split, recorded, name):
    (recorded[1] / name).write_bytes(b"{]")
    with pytest.raises(InputError, match="the run is damaged"):
        fit(split, out=recorded[1], resume=True)


def test_an_unfinished_run_says_how_to_finish_it(recorded):
    (recorded[1] / "metrics.json").unlink()
    with pytest.raises(InputError, match="was not finished"):
        bn.load_run(recorded[1])


def test_records_are_json_without_nan(recorded):
    for line in (recorded[1] / "epochs.jsonl").read_text().splitlines():
        json.loads(line, parse_constant=lambda name: pytest.fail(name))


def test_a_diverging_run_names_the_epoch_and_what_to_lower_and_leaves_nothing(split, tmp_path):
    with pytest.raises(DivergedError, match=r"epoch \d+.*lower learning_rate"):
        fit(split, model=bn.MF(learning_rate=1e6), out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_run_of_another_schema_is_refused(split, recorded):
    head = recorded[1] / files.HEAD
    head.write_text(json.dumps({**json.loads(head.read_text()), "schema": 1}))
    for read in (lambda: bn.load_run(recorded[1]), lambda: fit(split, out=recorded[1], resume=True)):
        with pytest.raises(
            InputError, match=r"run.json has schema 1, .* reads schema 2; train it again, or read it with"
        ):
            read()


@pytest.mark.parametrize(
    "sampler",
    [bn.SRNS(memory=3, fresh=5), bn.AOBPR(scale=5, rank="factor"), bn.BNS(cdf="refreshed"), bn.DNS()],
    ids=str,
)
def test_an_ensemble_trains_with_every_kind_of_sampler_and_is_stored_as_one_model(split, tmp_path, sampler):
    ensemble = bn.MF(dim=3, ensemble_size=2, learning_rate=0.05)
    run = fit(split, sampler, model=ensemble, epochs=2, out=tmp_path / "run")
    again = bn.load_run(tmp_path / "run")
    assert run.scorer.users.shape[1] == 6
    assert again.evaluate(k=5).mean == run.evaluate(k=5).mean
    assert again.recommend(split.train.user_ids[0], k=3) == run.recommend(split.train.user_ids[0], k=3)
    several = fit(split, sampler, model=replace(ensemble, threads=2), epochs=2)
    assert np.isfinite(several.scorer.users).all()
