"""Writing the files of a run, each whole; arrays as safetensors."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bayesneg.errors import naming
from bayesneg.runs.record import jsonable


def write_whole(path: Path, write: Callable[[Path], Any]) -> None:
    """Write beside the target and move into place, so that a reader never sees half a file."""
    part = path.with_name(f".{path.name}.part")
    try:
        with naming(path):
            write(part)
            part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)  # what fills a disk is not left on it
        raise


def write_json(path: Path, value: Any) -> None:
    text = json.dumps(jsonable(value), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    write_whole(path, lambda part: part.write_text(text, encoding="utf-8"))


def append_line(path: Path, value: Any) -> None:
    with naming(path), path.open("a", encoding="utf-8") as lines:
        lines.write(json.dumps(jsonable(value), ensure_ascii=False, allow_nan=False) + "\n")


def write_lines(path: Path, values: Sequence[Any]) -> None:
    text = "".join(json.dumps(jsonable(value), ensure_ascii=False, allow_nan=False) + "\n" for value in values)
    write_whole(path, lambda part: part.write_text(text, encoding="utf-8"))


def write_arrays(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    from safetensors.numpy import save

    whole = {key: np.asarray(value, order="C") for key, value in arrays.items()}
    write_whole(path, lambda part: part.write_bytes(save(whole)))


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    from safetensors.numpy import load_file

    return dict(load_file(path))
