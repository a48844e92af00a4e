"""One search in several processes, by a PostgreSQL server on this machine: throughput, trials made twice, trials lost.

    python -m benchmarks.scale.searches [--trials 24 --sleep 2]

A trial is an MF of a small world for four epochs. ``waiting``: each epoch also sleeps, as a trial does that waits for a
GPU or runs on another machine; one and four processes then show what sharing costs, whatever the cores. ``computing``:
a larger world without sleep, one thread a process, for one and two processes. Processes start together, after their
imports; a throughput is of the time from the first trial's begin to the last one's end, as the database has them.
``killed``: of four processes one gets SIGKILL once it has claimed two trials. The trials of every search are compared
with those of a search without a storage. Writes results/scale/searches.json.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import bayesneg as bn
from bayesneg.runs.tuning_result import Trial
from bayesneg.tuning import search, store, studies
from bayesneg.tuning.tune import run_trials
from benchmarks.machine import write_result
from benchmarks.scale.postgres import Server, missing, running

WORLDS: Final = {"small": (60, 50), "large": (800, 400)}
EPOCHS: Final = 4
FACTS: Final = ("number", "label", "state", "curve")


def work(storage: str, world: str, trials: int, sleep: float) -> list[Trial]:
    """The trials of a search, as one process finds them."""
    plain = bn.fit

    def slow(*given: Any, **how: Any) -> Any:
        def after_epoch(line: dict[str, Any]) -> None:
            time.sleep(sleep)
            how["progress"](line)

        return plain(*given, **{**how, "progress": after_epoch})

    setattr(search, "fit", slow)  # noqa: B010 - as the tests do
    split = bn.split(bn.synthetic(*WORLDS[world], seed=0), test=0.2, validation=0.2, seed=0)
    how: dict[str, Any] = {"trials": trials, "epochs": EPOCHS, "progress": False}
    try:
        if storage:
            return run_trials(bn.MF(), split, "rns,dns,bns", storage=storage, **how)
        return [*bn.tune(bn.MF(), split, "rns,dns,bns", baselines=(), seeds=1, **how).trials]
    finally:
        setattr(search, "fit", plain)  # noqa: B010


def process(storage: str, world: str, trials: int, sleep: float, go: Path) -> None:
    """One of several: compiled and ready it waits for the others."""
    work("", world, 3, 0.0)
    (go.parent / f"ready {os.getpid()}").touch()
    while not go.exists():
        time.sleep(0.01)
    work(storage, world, trials, sleep)


def searched(
    server: Server, world: str, processes: int, trials: int, sleep: float, alone: Sequence[Trial], *, kill: bool = False
) -> dict[str, Any]:
    """The search by several processes, and what the database says of it."""
    storage = server.place()
    with tempfile.TemporaryDirectory() as folder:
        go = Path(folder) / "go"
        command = [sys.executable, "-m", "benchmarks.scale.searches", "--process", storage, world, str(go)]
        command += ["--trials", str(trials), "--sleep", str(sleep)]
        begun = [subprocess.Popen(command) for _ in range(processes)]
        while len([*Path(folder).glob("ready *")]) < processes:
            time.sleep(0.05)
        go.touch()
        victim = begun[0] if kill else None
        if victim is not None:
            while len(mine(storage, victim.pid)) < 2:
                time.sleep(0.05)
            victim.send_signal(signal.SIGKILL)
        codes = [each.wait() for each in begun if each is not victim]
    assert not any(codes), codes
    every = recorded(storage)
    ended = [each for each in every if each.state.name in ("COMPLETE", "PRUNED")]
    seconds = (max(t.datetime_complete for t in ended) - min(t.datetime_start for t in every)).total_seconds()
    found = work(storage, world, trials, 0.0)  # nothing is left to do: it reads
    facts = [[[getattr(trial, key) for key in FACTS] for trial in each] for each in (found, alone)]
    places = [each.user_attrs["place"] for each in ended]
    return {
        "world": world,
        "processes": processes,
        "sleep": sleep,
        "trials": len(ended),
        "seconds": seconds,
        "per_minute": 60 * len(ended) / seconds,
        "made_twice": len(places) - len(set(places)),
        "lost": trials - len(set(places)),
        "given_up": len(every) - len(ended),
        "by_process": sorted(
            sum(t.user_attrs["by"] == by for t in ended) for by in {t.user_attrs["by"] for t in every}
        ),
        "as_without_storage": facts[0] == facts[1],
        "load": os.getloadavg()[0],
    }


def recorded(storage: str) -> list[Any]:
    import optuna

    with studies.Shared(storage).opened() as opened:
        try:
            return optuna.load_study(study_name=studies.STUDY, storage=opened).get_trials()
        except KeyError:  # there is none yet
            return []


def mine(storage: str, pid: int) -> list[Any]:
    return [each for each in recorded(storage) if each.user_attrs["by"].endswith(f" {pid}")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=24)
    parser.add_argument("--sleep", type=float, default=2.0)
    parser.add_argument("--process", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.process:
        storage, world, go = given.process
        process(storage, world, given.trials, given.sleep, Path(go))
        return
    if reason := missing():
        raise SystemExit(reason)
    alone = {world: work("", world, given.trials, 0.0) for world in WORLDS}
    result: dict[str, Any] = {"trials": given.trials, "grace": store.GRACE, "beat": store.BEAT}
    with running() as server:
        for name, runs in {
            "waiting": [{"world": "small", "processes": n, "sleep": given.sleep} for n in (1, 4)],
            "computing": [{"world": "large", "processes": n, "sleep": 0.0} for n in (1, 2)],
            "killed": [{"world": "small", "processes": 4, "sleep": given.sleep, "kill": True}],
        }.items():
            found = [searched(server, trials=given.trials, alone=alone[str(each["world"])], **each) for each in runs]
            speedup = {"times_as_fast": found[1]["per_minute"] / found[0]["per_minute"]} if len(found) > 1 else {}
            result[name] = {"searches": found, **speedup}
            print(name, result[name], flush=True)
    print(write_result(__file__, result))


if __name__ == "__main__":
    main()
