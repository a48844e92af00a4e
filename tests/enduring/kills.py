"""Commands killed by ``kill -9`` at random moments, twice each, and resumed: their results are those of whole ones."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from enduring.commands import comparable, ended, results_in, started, world

MODEL = ("--set", "dim=8", "--baselines", "none")
RECIPE = """
title = "Two samplers"
datasets = ["{data}"]
views = ["last"]
seeds = 2
epochs = 8

[[samplers]]
label = "RNS"
use = "rns"

[[samplers]]
label = "BNS"
use = "bns"
"""


class Kind(NamedTuple):
    """A command that can be resumed."""

    arguments: Callable[[Path, Path], list[Any]]  # of the data and the folder to write
    resume: tuple[str, ...]  # added to go on
    result: Callable[[Path, str], Any]  # of the folder and of stdout: what must be equal
    processes: int = 0


def _runs(out: Path, said: str) -> Any:
    return results_in(out)


def _said(out: Path, said: str) -> Any:
    return comparable(json.loads(said)), results_in(out)


def _tables(out: Path, said: str) -> Any:
    return {path.name: path.read_bytes() for path in out.glob("*.csv")}


def _files(out: Path, said: str) -> Any:
    return {str(path.relative_to(out)): path.read_bytes() for path in out.rglob("*") if path.is_file()}


KINDS = {
    "train": Kind(lambda data, out: ["train", data, "--sampler", "srns", "--epochs", 60,
                                     *MODEL, "--out", out], ("--resume",), _runs),
    "train, torch": Kind(lambda data, out: ["train", data, "--model", "torch-mf", "--device", "cpu", "--sampler", "bns",
                                            "--epochs", 15, *MODEL, "--out", out], ("--resume",), _runs),
    "distributed": Kind(lambda data, out: ["train", data, "--model", "torch-mf", "--device", "cpu", "--sampler", "bns",
                                           "--epochs", 15, *MODEL, "--out", out], ("--resume",), _runs, 2),
    "compare": Kind(lambda data, out: ["compare", data, "--samplers", "rns,bns", "--seeds", 2, "--epochs", 8, *MODEL,
                                       "--json", "--out", out], ("--resume",), _said),
    "tune": Kind(lambda data, out: ["tune", data, "--samplers", "rns,bns", "--trials", 6, "--seeds", 1, "--epochs", 6,
                                    "--baselines", "none", "--json", "--out", out], ("--resume",), _said),
    "reproduce": Kind(lambda data, out: ["reproduce", data.with_suffix(".toml"), "--jobs", 2, "-q", "--out", out], (),
                      _tables),
    "prepare": Kind(lambda data, out: ["data", "prepare", data, "--out", out], (), _files),
}  # fmt: skip


def run(place: Path, count: int, seed: int, kinds: tuple[str, ...] = tuple(KINDS)) -> int:
    """Kill ``count`` times, of each kind about as often; how often the result was another one."""
    rng, data = random.Random(seed), world(place / "pairs.csv")
    data.with_suffix(".toml").write_text(RECIPE.format(data=data), encoding="utf-8")
    failed = killed = 0
    for place_of, name in enumerate(kinds):
        kind, folder = KINDS[name], place / f"kind {place_of}"
        folder.mkdir()
        ended(started(kind.arguments(data, folder / "warm"), folder=data.parent, processes=kind.processes))  # compiles
        begun = time.monotonic()
        said, _ = ended(started(kind.arguments(data, folder / "whole"), folder=data.parent, processes=kind.processes))
        usual, whole = time.monotonic() - begun, kind.result(folder / "whole", said)
        own = count // len(kinds) + (place_of < count % len(kinds))
        wrong, number = 0, 0
        while own > 0:
            kills = min(own, 1 + number % 2)
            same, n = _killed_and_resumed(kind, data, folder / f"killed {number}", kills, usual, whole, rng)
            own, killed, wrong, number = own - kills, killed + n, wrong + (not same), number + 1
        print(f"{name}: {usual:.1f} s whole, {number} runs killed and resumed, {wrong} with another result", flush=True)
        failed += wrong
    print(f"{killed} kills, {failed} runs with another result")
    return failed


def _killed_and_resumed(
    kind: Kind, data: Path, out: Path, kills: int, usual: float, whole: Any, rng: random.Random
) -> tuple[bool, int]:
    """Whether the result is the whole one's, and how often it was killed before it ended."""
    n = 0
    for _ in range(kills):
        process = started(_arguments(kind, data, out), folder=data.parent, processes=kind.processes)
        until = time.monotonic() + usual * rng.uniform(0.05, 1.0)
        while time.monotonic() < until and process.poll() is None:
            time.sleep(0.005)
        if process.poll() is None:
            for pid in (process.pid, *_descendants(process.pid)):  # torchrun's are in sessions of their own
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            n += 1
        process.communicate()
    try:
        said, _ = ended(started(_arguments(kind, data, out), folder=data.parent, processes=kind.processes))
    except RuntimeError as error:
        print(f"{out.name}: {error}", flush=True)
        return False, n
    return kind.result(out, said) == whole, n


def _descendants(pid: int) -> list[int]:
    """The processes that a process has started, and those that they have started."""
    try:
        children = [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []
    return [found for child in children for found in (child, *_descendants(child))]


def _arguments(kind: Kind, data: Path, out: Path) -> list[Any]:
    return [*kind.arguments(data, out), *(kind.resume if out.exists() else ())]
