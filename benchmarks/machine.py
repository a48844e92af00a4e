"""What a number was measured on."""

from __future__ import annotations

import json
import os
import platform
from pathlib import Path
from typing import Any, Final

from bayesneg.runs.record import jsonable, processor, versions

ROOT: Final = Path(__file__).parent.parent
BENCHMARKS: Final = Path(__file__).parent
RESULTS = BENCHMARKS / "results"


def machine(device: str = "") -> dict[str, Any]:
    """The machine; ``device``, where given, is what trained, by :func:`device_name`."""
    found = {"processor": processor(), "cores": os.cpu_count(), "system": platform.system(), "versions": versions()}
    return found | ({"device": device} if device else {})


def device_name() -> str:
    """The device that torch trains on unless told otherwise: the name of the GPU, or ``cpu``."""
    import torch

    return torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu"


def result_path(script: str, suffix: str = "") -> Path:
    """Where a script of ``ROOM/``, or of a folder in it, keeps its result: ``results/ROOM/SCRIPT.json``."""
    room = Path(script).resolve().relative_to(Path(__file__).resolve().parent).parts[0]
    return RESULTS / room / f"{Path(script).stem}{suffix}.json"


def write_result(script: str, value: dict[str, Any], *, suffix: str = "") -> Path:
    """Write what ``script`` (its ``__file__``) measured, with the machine that it ran on."""
    path = result_path(script, suffix)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(jsonable({"machine": machine(), **value}), indent=1) + "\n", encoding="utf-8")
    return path


def read_result(name: str) -> dict[str, Any] | None:
    """A result by its name, ``speed/bench_epoch``; None if it was not measured."""
    path = RESULTS / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def data_folder() -> Path:
    """The folder of the real datasets."""
    folder = os.environ.get("BAYESNEG_DATA")
    if folder is None or not (Path(folder) / "bns-100k-split").is_dir():
        raise SystemExit("set BAYESNEG_DATA to the folder that holds bns-100k-split (the paper's split of ML-100K)")
    return Path(folder)
