"""What a number was measured on."""

from __future__ import annotations

import json
import os
import platform
from pathlib import Path
from typing import Any

from bayesneg.runs.record import jsonable, versions

RESULTS = Path(__file__).parent / "results"


def machine() -> dict[str, Any]:
    return {"processor": _processor(), "cores": os.cpu_count(), "system": platform.system(), "versions": versions()}


def write_result(name: str, value: dict[str, Any]) -> Path:
    """Keep a result beside the script, with the machine it comes from."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps(jsonable({"machine": machine(), **value}), indent=1) + "\n", encoding="utf-8")
    return path


def data_folder() -> Path:
    """Where the real datasets lie; benchmarks need them."""
    folder = os.environ.get("BAYESNEG_DATA")
    if folder is None or not (Path(folder) / "bns-100k-split").is_dir():
        raise SystemExit("set BAYESNEG_DATA to the folder that holds bns-100k-split (the paper's split of ML-100K)")
    return Path(folder)


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())
