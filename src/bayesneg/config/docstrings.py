"""Reads Google-style docstrings: the sentence of each argument, and which sections there are."""

from __future__ import annotations

import inspect
import re
from typing import Any, Final

SECTION: Final = re.compile(r"^(\w[\w ]*):$")
ENTRY: Final = re.compile(r"^(\*{0,2}\w+(?:, \*{0,2}\w+)*)(?: \([^)]*\))?:(?: (.*))?$")
ROLE: Final = re.compile(r":\w+:`~?(?:[^`]*\.)?([^`]*)`")


def arguments(doc: str | None) -> dict[str, str]:
    """The ``Args:`` section of a docstring: name → what it says about it.

    Args:
        doc: A docstring with Google-style sections, or None.

    Returns:
        The text of each argument in the order of the section, line breaks removed; empty without the section.

    >>> arguments("A thing.\\n\\nArgs:\\n    size: How large\\n        it is.\\n    name, other: Two texts.\\n")
    {'size': 'How large it is.', 'name': 'Two texts.', 'other': 'Two texts.'}
    """
    found: dict[str, str] = {}
    names: list[str] = []
    lines = sections(doc).get("Args", [])
    indent = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    for line in lines:
        entry = ENTRY.match(line[indent:])
        if entry:
            names = [name.strip("* ") for name in entry[1].split(",")]
            found.update(dict.fromkeys(names, (entry[2] or "").strip()))
        elif line.strip():
            found.update({name: f"{found[name]} {line.strip()}".strip() for name in names})
    return found


def sections(doc: str | None) -> dict[str, list[str]]:
    """The indented lines below each heading (``Args:``, ``Returns:``, …) of a docstring."""
    found: dict[str, list[str]] = {}
    current: list[str] = []
    for line in inspect.cleandoc(doc or "").splitlines():
        if heading := SECTION.match(line):
            current = found.setdefault(heading[1], [])
        elif line.startswith(" ") or not line.strip():
            current.append(line)
        else:
            current = []
    return found


def summary(doc: str | None) -> str:
    """The first sentence of a docstring, without its full stop."""
    first = inspect.cleandoc(doc or "").split("\n\n")[0]
    return plain(" ".join(first.split())).partition(". ")[0].rstrip(".")


def plain(text: str) -> str:
    """Without the marks of reStructuredText: ``"auto"`` and :class:`Prior` become "auto" and Prior."""
    return ROLE.sub(r"\1", text).replace("``", "")


def field_sentences(kind: type[Any]) -> dict[str, str]:
    """What the ``Args:`` sections of a class and of its bases say about its fields; the class has the last word."""
    found: dict[str, str] = {}
    for each in reversed(kind.__mro__):
        found.update(arguments(each.__dict__.get("__doc__")))
    return found
