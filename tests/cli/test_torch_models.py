"""``--model lightgcn`` and ``--device``, with and without torch."""

from __future__ import annotations

import importlib.util
import subprocess
import sys

import pytest

SMALL = ("--epochs", 2, "--set", "dim=4")
needs_torch = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None, reason="torch is not installed (the extra 'torch')"
)
# a finder that knows every package but torch stands in for an installation without it
WITHOUT_TORCH = """
import sys
from importlib.machinery import PathFinder

class Finder(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition(".")[0] == "torch" else super().find_spec(name, path, target)

sys.meta_path[sys.meta_path.index(PathFinder)] = Finder
from bayesneg.cli import main
main(sys.argv[1:])
"""


def without_torch(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", WITHOUT_TORCH, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_without_torch_lightgcn_says_how_to_install_it(place):
    for command in ("train", "compare"):
        done = without_torch(command, "nowhere.csv", "--model", "lightgcn", "--out", "run")
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == (
            "error: model lightgcn needs torch, which is not installed; run: pip install 'bayesneg[torch]'\n"
        )
    assert list(place.iterdir()) == []


def test_without_torch_everything_else_works(ratings):
    assert without_torch("train", ratings, *SMALL, "--device", "auto").returncode == 0
    shown = without_torch("train", "--help")
    assert "lightgcn" in shown.stdout


@pytest.mark.parametrize("command", ["train", "compare"])
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--device", "cuda"], "model mf runs on the CPU only"),
        (["--device", "gpu"], "--device must be auto, cpu or cuda, got 'gpu'"),
        (["--model", "lightgcn", "--device", "cpu", "--set", "device=cpu"], "given twice"),
        (["--model", "lightgcn", "--set", "device=tpu"], "device must be one of auto, cpu, cuda, got 'tpu'"),
        (["--model", "lightgcn", "--set", "threads=2"], "'threads' is not a setting of"),
        (["--model", "torch-mf", "--set", "layers=1"], "'layers' is not a setting of"),
        (["--model", "lightgcn", "--set", "batch_size=0"], "batch_size must be a whole number of at least 1"),
        (
            ["--model", "lightgcn", "--set", "penalty=l1"],
            "penalty must be one of weight_decay, batch, first_layer, got 'l1'",
        ),
        (["--model", "lightgcn", "--set", "scale_regularization=perhaps"], "scale_regularization=perhaps"),
    ],
)
def test_a_wrong_model_or_device_gets_a_sentence_and_nothing_is_written(bayesneg, ratings, command, options, expected):
    assert expected in bayesneg(command, ratings, "--epochs", 1, "--out", "run", *options).error
    assert [path.name for path in ratings.parent.iterdir()] == ["ratings.csv"]


@needs_torch
@pytest.mark.parametrize("command", ["train", "compare"])
def test_a_gpu_that_is_not_there_gets_a_sentence(bayesneg, ratings, command):
    import torch

    if torch.cuda.is_available():
        pytest.skip("there is a GPU here")
    error = bayesneg(command, ratings, "--model", "lightgcn", "--device", "cuda", "--out", "run").error
    assert error == "device is 'cuda', but torch sees no GPU here; use --device cpu or 'auto'"
    assert [path.name for path in ratings.parent.iterdir()] == ["ratings.csv"]


@needs_torch
@pytest.mark.parametrize("model", ["lightgcn", "torch-mf"])
def test_settings_and_device_reach_the_model(bayesneg, ratings, model):
    options = ("--set", "batch-size=50", "--set", "scale_regularization=no", "--device", "cpu")
    found = bayesneg("train", ratings, "--model", model, *SMALL, *options, "--json").json
    own = found["spec"]["model"]
    assert (own["dim"], own["batch_size"], own["scale_regularization"], own["device"]) == (4, 50, False, "cpu")
    assert [line["epoch"] for line in found["epochs"]] == [1, 2]


@needs_torch
def test_a_run_is_recorded_resumed_evaluated_and_recommended_from(bayesneg, ratings):
    given = ("--model", "lightgcn", "--device", "cpu", "--set", "dim=4", "--sampler", "srns", "--out")
    for out, epochs in (("whole", [4]), ("parts", [2, 4])):
        for until in epochs:
            assert bayesneg("train", ratings, *given, out, "--epochs", until, "--resume", "-q").code == 0
    whole, parts = ratings.parent / "whole", ratings.parent / "parts"
    for name in ("weights.safetensors", "metrics.json", "per_user.parquet"):
        assert (whole / name).read_bytes() == (parts / name).read_bytes(), name
    assert bayesneg("evaluate", "whole", "--json").json["mean"]
    assert len(bayesneg("recommend", "whole", "--user", "u3", "-k", 3, "--json").json["items"]) == 3
    assert bayesneg("report", "whole", "-o", "report.html").code == 0


@needs_torch
def test_compare_works_with_every_model_and_jobs_change_no_number(bayesneg, ratings):
    given = (
        "compare",
        ratings,
        "--model",
        "lightgcn",
        "--device",
        "cpu",
        *SMALL,
        "--seeds",
        2,
        "--samplers",
        "rns,bns",
    )
    one, two = (bayesneg(*given, "--jobs", jobs, "--json").json["runs"] for jobs in (1, 2))
    assert [run["final"] for run in one] == [run["final"] for run in two]


@needs_torch
def test_a_diverging_run_names_the_epoch_and_leaves_no_folder(bayesneg, ratings):
    options = ("--model", "lightgcn", "--device", "cpu", "--set", "learning_rate=1e30", "--out", "run")
    error = bayesneg("train", ratings, "--epochs", 3, *options).error
    assert "diverged in epoch" in error
    assert "lower learning_rate" in error
    assert [path.name for path in ratings.parent.iterdir()] == ["ratings.csv"]
