"""The watch names processes that are late, without a process that hangs."""

from __future__ import annotations

import time

import pytest

pytest.importorskip("torch", reason="torch is not installed (the extra 'torch')")

from launching import finished, torchrun
from torch.distributed import HashStore

from bayesneg.distributed.watch import Watch


class Watched:
    """Processes of one group, with how many collectives each has begun; their watches share a store."""

    def __init__(self, *begun: int, timeout: float = 0.2) -> None:
        self.begun, self.said, self.ended = list(begun), [], []
        store = HashStore()
        self.watches = [
            Watch(
                lambda rank=rank: self.begun[rank], store, rank=rank, size=len(begun), timeout=timeout,
                say=self.said.append, end=lambda code, rank=rank: self.ended.append((rank, code)),
            )
            for rank in range(len(begun))
        ]  # fmt: skip

    def after(self, seconds: float) -> Watched:
        time.sleep(seconds)
        for watch in self.watches:
            watch.stop()
        return self

    def until_ended(self, n: int) -> Watched:
        until = time.monotonic() + 30
        while len(self.ended) < n and time.monotonic() < until:
            time.sleep(0.01)
        return self.after(0)


def test_a_late_process_is_named_once_and_those_that_wait_end():
    found = Watched(7, 6, 7, 7).until_ended(3)
    assert sorted(found.ended) == [(0, 1), (2, 1), (3, 1)]
    assert len(found.said) == 1
    assert found.said[0].startswith("no answer from rank 1 for 0.2 s")


def test_processes_that_all_compute_are_left_alone():
    found = Watched(7, 7, 7).after(1.0)
    assert (found.said, found.ended) == ([], [])


def test_a_process_that_moves_on_is_not_late():
    found = Watched(1, 0, timeout=0.6)
    for step in range(1, 15):
        found.begun = [step + 1, step]
        time.sleep(0.05)
    found.after(0)
    assert (found.said, found.ended) == ([], [])


def test_a_process_that_never_posted_is_late():
    said, ended = [], []
    watch = Watch(lambda: 3, HashStore(), rank=0, size=2, timeout=0.1, say=said.append, end=ended.append)
    until = time.monotonic() + 30
    while not ended and time.monotonic() < until:
        time.sleep(0.01)
    watch.stop()
    assert ended == [1]
    assert "no answer from rank 1 " in said[0]


HANGING = """
import sys, time
import torch.distributed as dist
from bayesneg.distributed.group import begin, watched
begin("cpu", 100.0)
watched(1.0, lambda text: print(text, file=sys.stderr))
dist.barrier()
if dist.get_rank() == 1:
    time.sleep(60)
dist.barrier()
"""


def test_a_process_that_waits_in_a_collective_is_ended(tmp_path):
    script = tmp_path / "hanging.py"
    script.write_text(HANGING, encoding="utf-8")
    process = torchrun(2, script)
    _, err = finished(process)
    assert process.returncode == 1
    assert "no answer from rank 1 for 1 s" in err
