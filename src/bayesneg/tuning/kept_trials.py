"""The trials that a process ended, kept in its folder while the database of a shared study is away."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from bayesneg.errors import InputError, first_line
from bayesneg.whole_files import write_text

KEPT: Final = "trials.jsonl"  # in the out folder of a process: the trials that it ended


def kept_trials(folder: Path | None) -> list[dict[str, Any]]:
    """The trials that were kept in a folder; half a line of a killed process does not count."""
    path = None if folder is None else folder / KEPT
    if path is None or not path.exists():
        if path is not None:
            path.touch()  # shows that the folder is that of a search
        return []
    content = path.read_bytes()
    whole = content[: content.rfind(b"\n") + 1]
    found = []
    for number, line in enumerate(whole.splitlines(), 1):
        try:
            kept = json.loads(line)
            _check(kept)
        except (ValueError, RecursionError, TypeError, KeyError, AttributeError) as error:
            raise InputError(
                f"{path} line {number} is damaged ({first_line(error)}); delete the line, its trial is run again where "
                "the study does not have it"
            ) from None
        found.append(kept)
    if whole != content:
        write_text(path, whole.decode())
    return found


def _check(line: Mapping[str, Any]) -> None:
    """An error unless a line has what a trial was kept with."""
    texts = dict.fromkeys(("label", "claim", "state", "failed"), str)
    for key, kind in (texts | {"place": int, "curve": dict, "seconds": float | int}).items():
        if not isinstance(line[key], kind):
            raise TypeError(f"{key} is {line[key]!r:.40}")
    for epoch, score in line["curve"].items():
        if not epoch.isdecimal() or not isinstance(score, float | int):
            raise TypeError(f"the score of epoch {epoch!r:.20} is {score!r:.40}")
