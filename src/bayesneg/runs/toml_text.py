"""Plain values as TOML, which the standard library reads and does not write."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any


def toml_text(values: Mapping[str, Any], *, comment: str = "") -> str:
    """The values as a TOML file: plain ones first, then a table for each mapping.

    Args:
        values: Text, numbers, truth values, lists of these, and mappings of these.
        comment: The first line.

    Returns:
        The text of the file.

    >>> print(toml_text({"epochs": 2, "model": {"name": "mf"}, "data": 'a "b"'}, comment="two epochs"), end="")
    # two epochs
    epochs = 2
    data = "a \\"b\\""
    <BLANKLINE>
    [model]
    name = "mf"
    """
    lines = [f"# {comment}"] if comment else []
    lines += [f"{_key(key)} = {_value(value)}" for key, value in values.items() if not isinstance(value, Mapping)]
    for key, table in values.items():
        if isinstance(table, Mapping):
            lines += ["", f"[{_key(key)}]", *(f"{_key(name)} = {_value(value)}" for name, value in table.items())]
    return "\n".join(lines) + "\n"


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _value(name)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else str(value)
    if isinstance(value, int):
        return str(value)
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")
