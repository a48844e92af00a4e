"""What the page of a class says of its parameters: those that are settings, each with its sentence and its default.

A dataclass has further fields for what it learns, which nobody passes; a subclass inherits settings whose sentences
stand in the docstring of its base. Both are settled here, by the same reading of the class that the command line has.
"""

from __future__ import annotations

import builtins
import inspect
from dataclasses import is_dataclass
from typing import TYPE_CHECKING, Any

from bayesneg.config.docstrings import arguments, field_sentences
from bayesneg.config.settings import REQUIRED, settings_of

if TYPE_CHECKING:
    from sphinx.application import Sphinx


def parameters(value: Any) -> list[str]:
    """The names of what a user may pass to a class or a function."""
    if is_dataclass(value):
        return list(settings_of(value))
    made = value.__init__ if inspect.isclass(value) else value
    if inspect.isclass(value) and any(
        made is getattr(kind, "__init__", None) for kind in vars(builtins).values() if kind is not object
    ):
        return []  # a list, an exception: they take what those take
    if getattr(value, "_is_protocol", False) or inspect.isabstract(value):
        return []
    return list(inspect.signature(value).parameters)


def add_inherited(app: Sphinx, what: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    """The sentences of inherited settings, after those of the class itself."""
    if what != "class" or not is_dataclass(value):
        return
    here, said = arguments("\n".join(lines)), field_sentences(value)
    missing = [each for each in settings_of(value) if each not in here and said.get(each)]
    if not missing:
        return
    added = [f"    {each}: {said[each]}" for each in missing]
    if "Args:" in lines:
        start = lines.index("Args:") + 1
        end = next((at for at in range(start, len(lines)) if not lines[at].startswith(" ")), len(lines))
        lines[end:end] = added
    else:
        lines += ["", "Args:", *added, ""]


def readable(app: Sphinx, what: str, name: str, value: Any, options: Any, given: str, returned: str) -> Any:
    """The signature of a dataclass with its settings alone, and their defaults as one would write them."""
    if what != "class" or not is_dataclass(value):
        return None
    keyword = [each for each in inspect.signature(value).parameters.values() if each.kind is each.KEYWORD_ONLY]
    parts = []
    for setting in settings_of(value).values():
        if keyword and setting.name == keyword[0].name:
            parts.append("*")
        parts.append(setting.name if setting.default is REQUIRED else f"{setting.name}={setting.default!r}")
    return f"({', '.join(parts)})", returned


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("autodoc-process-docstring", add_inherited, priority=400)  # before napoleon reads the sections
    app.connect("autodoc-process-signature", readable)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
