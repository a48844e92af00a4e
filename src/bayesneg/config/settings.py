"""The settings of a sampler, model, prior or likelihood, read off its class.

Names, types and defaults are those of the dataclass fields, the sentence of each is in the ``Args:`` section of the
class docstring. A value written as text is converted by pydantic to the annotated type.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, Final, Literal, Union, get_args, get_origin, get_type_hints

from bayesneg.checks import nearest
from bayesneg.config.docstrings import field_sentences, plain
from bayesneg.errors import InputError
from bayesneg.samplers.schedules import LinearDecay, Schedule

Settings = Mapping[str, Any]
PLAIN: Final = (int, float, str, bool, NoneType)
_NUMBERS: Final = {  # kind of pydantic's error → what the value must be
    "float_parsing": "it must be a number",
    "float_type": "it must be a number",
    "int_parsing": "it must be a whole number",
    "int_type": "it must be a whole number",
    "int_from_float": "it must be a whole number",
}
REQUIRED: Final = object()  # the default of a setting that must be given


@dataclass(frozen=True)
class Setting:
    """One field of a class: what it may be, its default, and the sentence about it."""

    name: str
    annotation: Any
    default: Any  # REQUIRED where there is none
    sentence: str

    @property
    def leaves(self) -> tuple[Any, ...]:
        """The types of a union, or the annotation alone."""
        union = get_origin(self.annotation) in (Union, UnionType)
        return get_args(self.annotation) if union else (self.annotation,)

    @property
    def is_schedule(self) -> bool:
        return Schedule in self.leaves

    @property
    def is_text(self) -> bool:
        """Whether a value can be written as text: numbers, texts, named choices and schedules, but no constant."""
        is_constant = len(self.leaves) == len(self.choices) == 1
        return not is_constant and all(
            leaf in PLAIN or leaf in (Any, Schedule) or get_origin(leaf) is Literal for leaf in self.leaves
        )

    @property
    def choices(self) -> tuple[Any, ...]:
        """The values of every Literal in the type."""
        return tuple(value for leaf in self.leaves if get_origin(leaf) is Literal for value in get_args(leaf))

    def convert(self, value: Any, where: str) -> Any:
        """The value with its type, or one sentence about what is wrong with it."""
        if Any in self.leaves:
            return literal(value)
        if self.is_schedule:
            return _weight(value)
        from pydantic import TypeAdapter, ValidationError

        try:
            return TypeAdapter(self.annotation).validate_python(value)
        except ValidationError as error:
            if self.choices and all(leaf is NoneType or get_origin(leaf) is Literal for leaf in self.leaves):
                raise self._not_a_choice(value, where) from None
            first = error.errors()[0]
            message = _NUMBERS.get(first["type"]) or _said(first["msg"])
        about = f" ({plain(self.sentence).rstrip('.')})" if self.sentence else ""
        shown = str(value).lower() if str(value) in ("True", "False") else value  # as TOML writes it
        raise InputError(f"{where}: {self.name}={shown}{about}: {message}")

    def _not_a_choice(self, value: Any, where: str) -> InputError:
        names = [str(choice) for choice in self.choices]
        meant = nearest(value, names)
        hint = f"; did you mean {meant}?" if meant else ""
        return InputError(f"{where}: {self.name} must be one of {', '.join(names)}, got {value!r}{hint}")


def settings_of(kind: Any) -> dict[str, Setting]:
    """The public settings of a class: its fields that take part in comparisons, or the arguments of its constructor.

    Args:
        kind: A dataclass, or any class whose constructor has named arguments.

    Returns:
        Name → setting, in the order of the fields.

    >>> from bayesneg.samplers.dns import DNS
    >>> [(each.name, each.default) for each in settings_of(DNS).values() if each.is_text]
    [('candidates', 2), ('top', 1), ('negatives', 1)]
    """
    return _read(kind)


@cache
def _read(kind: Any) -> dict[str, Setting]:
    declared = {each.name: each for each in fields(kind)} if is_dataclass(kind) else {}
    parameters = inspect.signature(kind).parameters.values()
    if not declared.keys() >= {each.name for each in parameters}:  # a constructor that was written by hand
        declared = {}
    hints = _hints(kind if declared else kind.__init__)
    sentences = field_sentences(kind)
    return {
        each.name: Setting(
            each.name,
            hints.get(each.name, Any),
            _default(declared[each.name]) if declared else REQUIRED if each.default is each.empty else each.default,
            sentences.get(each.name, ""),
        )
        for each in parameters
        if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)
        if not declared or declared[each.name].compare
    }


def changed(value: Any) -> dict[str, Any]:
    """Those settings of an object that differ from their defaults.

    >>> from bayesneg.models.mf import MF
    >>> changed(MF(dim=8))
    {'dim': 8}
    """
    own = {name: (getattr(value, name), setting.default) for name, setting in settings_of(type(value)).items()}
    return {name: now for name, (now, usual) in own.items() if usual is REQUIRED or (now is not usual and now != usual)}


def schedule(weight: float | str) -> float | Schedule:
    """A number, ``linear`` (the paper's BNS-1) or ``linear/START/RATE/FLOOR``."""
    try:
        return float(weight)
    except ValueError:
        kind, *numbers = str(weight).split("/")
    try:
        if kind == "linear" and len(numbers) in (0, 3):
            return LinearDecay(*(float(number) for number in numbers))
    except ValueError:
        pass
    raise InputError(f"weight must be a number, linear, or linear/START/RATE/FLOOR, got {weight!r}")


def assignments(parts: Iterable[str], where: str) -> dict[str, str]:
    """``["dim=8"]`` → ``{"dim": "8"}``."""
    found: dict[str, str] = {}
    for part in parts:
        key, equals, value = part.partition("=")
        key = key.strip().replace("-", "_")
        if not equals or not key or not value.strip():
            raise InputError(f"{where}: {part!r} is not of the form key=value")
        if key in found:
            raise InputError(f"{where}: {key} is given twice")
        found[key] = value.strip()
    return found


def check_known(name: str, valid: Iterable[str], noun: str) -> None:
    """An error that lists the valid names, unless the name is one of them."""
    names = sorted(valid)
    if name in names:
        return
    meant = nearest(name, names)
    hint = f"did you mean {meant}? " if meant else ""
    raise InputError(f"{name!r} is not a {noun}; {hint}valid: {', '.join(names) or 'none'}")


def literal(value: Any) -> Any:
    """A text that is a Python literal as its value, any other text as it is."""
    if not isinstance(value, str):
        return value
    try:
        return ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return value


def _weight(value: Any) -> Any:
    """The number or the text of a schedule, once it is sure to be one."""
    found = schedule(value)
    return value if isinstance(found, LinearDecay) else found


def _said(message: str) -> str:
    """pydantic's message in one clause, without the code of the type that failed."""
    text = re.sub(r"^Value error, ", "", message)
    return text[0].lower() + text[1:]


def _hints(source: Any) -> dict[str, Any]:
    """The annotations of a class or constructor; none where they name what their file does not import."""
    try:
        return get_type_hints(source)
    except NameError:
        return {}


def _default(field: Any) -> Any:
    if field.default is not MISSING:
        return field.default
    return REQUIRED if field.default_factory is MISSING else field.default_factory()
