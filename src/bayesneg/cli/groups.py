"""Options that several commands share: a dataclass of options is one parameter of a command."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, get_type_hints

from bayesneg.checks import LARGEST
from bayesneg.errors import InputError


def command(function: Callable[..., None]) -> Callable[..., None]:
    """The command with the fields of its dataclass parameters as separate options, for typer to read."""
    hints = get_type_hints(function, include_extras=True)
    groups: dict[str, Any] = {name: kind for name, kind in hints.items() if is_dataclass(kind)}

    @functools.wraps(function)
    def run(**given: Any) -> None:
        for name, kind in groups.items():
            given[name] = kind(**{item.name: given.pop(item.name) for item in fields(kind)})
        function(**given)

    options = [
        option
        for parameter in inspect.signature(function).parameters.values()
        for option in (
            _options(groups[parameter.name])
            if parameter.name in groups
            else [parameter.replace(annotation=hints[parameter.name], kind=parameter.KEYWORD_ONLY)]
        )
    ]
    run.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
    run.__annotations__ = {option.name: option.annotation for option in options}
    return run


def bounded(function: Callable[..., None]) -> Callable[..., None]:
    """The command, with an error for a whole number that 64 bits cannot hold, whichever option or run file gave it."""

    @functools.wraps(function)
    def run(**given: Any) -> None:
        for name, value in given.items():
            if isinstance(value, int) and abs(value) > LARGEST:
                raise InputError(f"--{name.replace('_', '-')} must be at most 2^63 - 1, got {value}")
        function(**given)

    return run


def _options(kind: Any) -> list[inspect.Parameter]:
    hints = get_type_hints(kind, include_extras=True)
    return [
        inspect.Parameter(
            item.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if item.default is MISSING else item.default,
            annotation=hints[item.name],
        )
        for item in fields(kind)
    ]
