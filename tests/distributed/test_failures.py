"""What the world does to several processes: a port in use, a disk that fills, an old torch."""

from __future__ import annotations

import re
import socket
import sys

import pytest

import bayesneg as bn

pytest.importorskip("torch", reason="torch is not installed (the extra 'torch')")

import torch
from launching import finished, started, torchrun

from bayesneg.distributed import group


@pytest.fixture
def occupied():
    """A port on which somebody else listens, and says nothing."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        yield taken.getsockname()[1]


BY_HAND = (
    sys.executable,
    "-m",
    "bayesneg",
    "train",
    "synthetic",
    "--model",
    "torch-mf",
    "--device",
    "cpu",
    "--epochs",
    1,
)


def test_a_port_in_use_is_one_sentence_of_rank_0_and_the_others_end_in_time(occupied):
    """Started by hand, as a job script does: rank 0 cannot listen, and rank 1 meets somebody who does not answer."""
    meeting = {"WORLD_SIZE": 2, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": occupied}
    ranks = [started([*BY_HAND, "--ranks-timeout", 5], RANK=rank, **meeting) for rank in (0, 1)]
    for rank, process in enumerate(ranks):
        _, err = finished(process, 120)
        assert process.returncode == 2, err
        said = [line for line in err.splitlines() if line.startswith("error: ")]
        assert len(said) == 1, err
        assert said[0].startswith(f"error: the processes cannot meet at 127.0.0.1:{occupied} (")
        assert said[0].endswith("start as many processes as WORLD_SIZE says")
        assert "Traceback" not in err
        if rank == 0:
            assert "address already in use" in said[0]


def test_torchrun_itself_refuses_a_port_in_use(occupied):
    process = torchrun(2, *BY_HAND[1:], meeting=("--master-addr", "127.0.0.1", "--master-port", occupied))
    _, err = finished(process, 120)
    assert process.returncode == 1
    assert "address already in use" in err


@pytest.mark.parametrize(("variables", "expected"), [({"MASTER_PORT": "here"}, "here"), ({"RANK": ""}, "RANK")])
def test_variables_that_cannot_be_meant_are_refused(variables, expected):
    meeting = {"RANK": 0, "WORLD_SIZE": 1, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": 0, **variables}
    _, err = finished(process := started([*BY_HAND], **meeting), 120)
    assert process.returncode == 2, err
    assert err.startswith("error: the processes cannot meet at 127.0.0.1:")
    assert expected in err


@pytest.mark.parametrize("version", ["2.8.0", "2.5.1+cpu", "1.13"])
def test_an_old_torch_is_refused_before_anything_is_done(version, monkeypatch):
    monkeypatch.setattr(torch, "__version__", version)
    for attempt in (lambda: group.begin("cpu", 5.0), lambda: group.ProcessGroup(torch.device("cpu"))):
        with pytest.raises(
            bn.BayesnegError, match=rf"several processes need torch 2\.9 or newer, .* this is {re.escape(version)}"
        ):
            attempt()


@pytest.mark.parametrize("version", ["2.9.0", "2.13.0a0+git1234", "3.0"])
def test_a_newer_torch_is_not(version, monkeypatch):
    monkeypatch.setattr(torch, "__version__", version)
    group.check_torch()
