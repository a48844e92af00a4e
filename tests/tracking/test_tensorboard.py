"""TensorBoard's event files, written and read back."""

from __future__ import annotations

import os
import re

import pytest

import bayesneg as bn
from bayesneg.errors import InputError
from fits import fit

pytest.importorskip("tensorboard", reason="tensorboard is not installed (the extra 'tensorboard')")
pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.filterwarnings("error:.*is not used any more")]


@pytest.fixture(scope="module")
def split():
    return bn.split(bn.synthetic(60, 80, seed=3), test=0.2, validation=0.2, seed=0)


def events(folder):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    found = EventAccumulator(str(folder), size_guidance={"scalars": 0})
    found.Reload()
    return found


def curve(found, tag):
    return {event.step: event.value for event in found.Scalars(tag)}


def test_every_number_of_the_record_is_in_the_event_files(split, tmp_path):
    run = fit(split, epochs=3, observer=bn.tracking.TensorBoard(tmp_path / "logs"), label="BNS, all | of it")
    (folder,) = (tmp_path / "logs").iterdir()
    assert folder.name == "bns-all-of-it"
    found = events(folder)
    for key in ("validation_ndcg@20", "tnr", "seconds"):
        assert curve(found, key) == pytest.approx(run.record.at_epochs(key))
    assert curve(found, "final/ndcg@20") == {3: pytest.approx(run.record.final["ndcg@20"])}
    assert {f"final/{key}" for key in run.record.final} <= set(found.Tags()["scalars"])


def test_parameters_and_tags_are_in_the_tabs_for_them(split, tmp_path):
    from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData

    fit(split, bn.BNS(candidates=3), epochs=1, observer=bn.tracking.TensorBoard(tmp_path), label="a | b <script>")
    found = events(next(tmp_path.iterdir()))
    (content,) = found.PluginTagToContent("hparams").values()
    hparams = HParamsPluginData.FromString(content).session_start_info.hparams
    assert hparams["sampler.candidates"].number_value == 3
    assert hparams["model"].string_value == "mf"
    (text,) = found.Tensors("run/text_summary")[0].tensor_proto.string_val
    assert "| dataset | synthetic |" in text.decode()
    assert r"a \| b \<script\>" in text.decode()


def test_a_resumed_run_goes_on_in_its_folder_without_doubled_epochs(split, tmp_path):
    """The run is cut in epoch 3, after a checkpoint at epoch 2: epoch 3 is trained and written twice."""

    def stop(line):
        if line["epoch"] == 3:
            raise RuntimeError("killed")

    given = {"out": tmp_path / "run", "checkpoint_every": 2}
    with pytest.raises(RuntimeError):
        fit(split, epochs=4, observer=bn.tracking.TensorBoard(tmp_path / "logs"), progress=stop, **given)
    run = fit(split, epochs=4, resume=True, observer=bn.tracking.TensorBoard(tmp_path / "logs"), **given)
    (folder,) = (tmp_path / "logs").iterdir()
    assert len(list(folder.iterdir())) == 2
    steps = [event.step for event in events(folder).Scalars("tnr")]
    assert steps == [1, 2, 3, 4]
    assert curve(events(folder), "ndcg@20") == pytest.approx(run.record.at_epochs("ndcg@20"))


def test_two_runs_of_one_name_have_two_folders(split, tmp_path):
    for _ in range(2):
        fit(split, epochs=1, observer=bn.tracking.TensorBoard(tmp_path), label="same")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["same", "same-2"]


def test_a_folder_that_cannot_be_written_is_named_before_training(split, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=re.escape("is a file; name another folder")):
        fit(split, observer=bn.tracking.TensorBoard(tmp_path / "file"))
    if os.geteuid() != 0:
        tmp_path.chmod(0o500)
        with pytest.raises(InputError, match="cannot be"):
            fit(split, observer=bn.tracking.TensorBoard(tmp_path / "logs"))
