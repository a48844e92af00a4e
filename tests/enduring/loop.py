"""An hour of train, resume, evaluate, recommend, serve and report in one process: memory does not grow."""

from __future__ import annotations

import gc
import re
import shutil
import time
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

import bayesneg as bn

WARM = 20  # rounds before memory is compared
GROWTH = 0.01


def run(place: Path, seconds: float) -> int:
    """Go round for some seconds; 1 where memory has grown by more than 1%."""
    split = bn.split(bn.synthetic(150, 200, seed=0), validation=0.1, seed=0)
    begun, sizes, rounds = time.monotonic(), [], 0
    while time.monotonic() - begun < seconds or rounds < WARM + 2:
        _round(split, place / "run", place / "report.html")
        rounds += 1
        gc.collect()
        sizes.append(_resident())
        if rounds % 50 == 0:
            print(f"{time.monotonic() - begun:.0f} s, {rounds} rounds, {sizes[-1] / 2**20:.1f} MiB", flush=True)
    # single rounds differ by what the allocator holds back: medians of the first and the last tenth
    some = max(1, (rounds - WARM) // 10)
    first, last = (sorted(part)[len(part) // 2] for part in (sizes[WARM : WARM + some], sizes[-some:]))
    print(f"{rounds} rounds in {time.monotonic() - begun:.0f} s, {first / 2**20:.1f} to {last / 2**20:.1f} MiB, "
          f"{last / first - 1:+.2%}")  # fmt: skip
    return int(last > (1 + GROWTH) * first)


def _round(split: bn.Split, out: Path, report: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of newer versions, about httpx
        from starlette.testclient import TestClient

    from bayesneg.serving.app import create_app
    from bayesneg.serving.limits import Limits
    from bayesneg.serving.reloading import Reloader
    from bayesneg.serving.telemetry import Telemetry

    shutil.rmtree(out, ignore_errors=True)
    how: dict[str, Any] = {"seed": 0, "epochs": 4, "evaluate_every": 2, "select": "last", "out": out}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with suppress(KeyboardInterrupt):
            bn.fit(bn.MF(dim=8), split, bn.BNS(), progress=_interrupt, checkpoint_every=1, **how)
        run = bn.fit(bn.MF(dim=8), split, bn.BNS(), progress=False, resume=True, **how)
        loaded = bn.load_run(out)
        bn.evaluate(loaded.scorer, split)
        loaded.recommend_all(k=5)
        bn.write_report([run, loaded], report)
        served = Reloader(out, index=False, watch=0.0, telemetry=Telemetry(), say=print)
        with TestClient(create_app(served, Limits())) as client:
            for user in range(20):
                client.get(f"/recommend?user={user}&k=5")
            client.post("/fold-in", json={"items": [1, 2, 3]})


def _interrupt(line: dict[str, Any]) -> None:
    if line["epoch"] == 2:
        raise KeyboardInterrupt


def _resident() -> int:
    found = re.search(r"VmRSS:\s+(\d+)", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) * 1024
