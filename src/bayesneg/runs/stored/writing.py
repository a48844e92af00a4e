"""Writing the files of a run, each whole; arrays as safetensors."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bayesneg.errors import naming
from bayesneg.runs.record import jsonable
from bayesneg.whole_files import without_links, write_text, write_whole


def write_json(path: Path, value: Any) -> None:
    text = json.dumps(jsonable(value), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    write_text(path, text)


def append_line(path: Path, value: Any) -> None:
    with naming(path), open(path, "a", encoding="utf-8", opener=without_links) as lines:
        lines.write(json.dumps(jsonable(value), ensure_ascii=False, allow_nan=False) + "\n")


def write_lines(path: Path, values: Sequence[Any]) -> None:
    text = "".join(json.dumps(jsonable(value), ensure_ascii=False, allow_nan=False) + "\n" for value in values)
    write_text(path, text)


def write_arrays(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    from safetensors.numpy import save

    whole = {key: np.asarray(value, order="C") for key, value in arrays.items()}
    write_whole(path, lambda part: part.write_bytes(save(whole)))


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    from safetensors.numpy import load_file

    return dict(load_file(path))
