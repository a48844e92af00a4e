"""A small world and a short sweep over it, for tests of sweeps and of what is made from them."""

from __future__ import annotations

import random
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import numpy as np

from bayesneg.reproduction.sweeps.recipe import Recipe

TOML = """
title = "Three samplers"
datasets = ["{dataset}"]
views = ["last", "best"]
seeds = 2
epochs = {epochs}
evaluate_every = 1

[[samplers]]
label = "RNS"
use = "rns"

[[samplers]]
label = "DNS"
use = "dns:candidates=3"

[[samplers]]
label = "BNS"
use = "bns"
"""


def killed(process: subprocess.Popen, path: Path, moment: random.Random) -> None:
    """Kill a sweep at a random moment: a little after its ledger has a few lines more, or right at the start."""
    before = n_lines(path)
    more, until = moment.randrange(4), time.monotonic() + 60
    while n_lines(path) < before + more:
        assert process.poll() is None, "it ended before it could be killed"
        assert time.monotonic() < until
        time.sleep(0.005)
    time.sleep(moment.uniform(0.0, 0.1 if more else 2.0))
    process.kill()
    process.wait()


def n_lines(path: Path) -> int:
    return path.read_text().count("\n") if path.exists() else 0


def world(folder: Path, *, n_users: int = 60, n_items: int = 90) -> Path:
    """Pairs of a few groups of users with tastes of their own."""
    rng = np.random.default_rng(0)
    liked = rng.random((4, n_items)) < 0.3
    rows = [
        f"{user},{item}"
        for user in range(n_users)
        for item in np.flatnonzero(liked[user % 4] | (rng.random(n_items) < 0.05))
        if rng.random() < 0.7
    ]
    path = folder / "world.csv"
    path.write_text("\n".join(["user,item", *rows, ""]))
    return path


def recipe(folder: Path, *, epochs: int = 3) -> Path:
    path = folder / "three.toml"
    path.write_text(TOML.format(dataset=world(folder), epochs=epochs))
    return path


def read(folder: Path, *, epochs: int = 3) -> Recipe:
    return Recipe.read(recipe(folder, epochs=epochs))


def children(process: int) -> list[int]:
    """The worker processes; multiprocessing has another one."""
    found = []
    for threads in Path(f"/proc/{process}/task").glob("*/children"):
        with suppress(OSError):
            found += [int(number) for number in threads.read_text().split()]
    return [number for number in found if b"spawn_main" in command_of(number)]


def command_of(number: int) -> bytes:
    try:
        return Path(f"/proc/{number}/cmdline").read_bytes()
    except OSError:
        return b""


def is_running(number: int) -> bool:
    return bool(command_of(number))  # that of a zombie is empty
