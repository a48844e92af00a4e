"""Settings that check themselves: each function returns the value or says which argument breaks which rule."""

from __future__ import annotations

import difflib
import functools
import math
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Final, TypeVar

from bayesneg.errors import InputError

Class = TypeVar("Class", bound=type)


LARGEST: Final = 2**63 - 1  # of a whole number: arrays count in 64 bits


def whole(name: str, value: Any, *, least: int = 1) -> None:
    """A whole number of at least ``least``, which 64 bits can hold.

    >>> whole("candidates", 0)
    Traceback (most recent call last):
    bayesneg.errors.InputError: candidates must be a whole number of at least 1, got 0
    """
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise InputError(f"{name} must be a whole number of at least {least}, got {value!r}")
    if int(value) > LARGEST:
        raise InputError(f"{name} must be a whole number of at most 2^63 - 1, got {value!r}")


def number(
    name: str, value: Any, *, above: float | None = None, least: float | None = None, most: float = math.inf
) -> None:
    """A finite number, above ``above`` or at least ``least``, and at most ``most``."""
    fits = not isinstance(value, bool) and isinstance(value, Real) and math.isfinite(value)
    if fits and (above is None or value > above) and (least is None or value >= least) and value <= most:
        return
    rule = f"above {above:g}" if above is not None else f"of at least {least:g}" if least is not None else ""
    upper = f" and at most {most:g}" if most < math.inf else ""
    raise InputError(f"{name} must be a number {rule}{upper}, got {value!r}")


def boolean(name: str, value: Any) -> None:
    if not isinstance(value, bool):
        raise InputError(f"{name} must be True or False, got {value!r}")


def one_of(name: str, value: Any, valid: Sequence[str]) -> None:
    """One of a few texts.

    >>> one_of("init", "alz", ("normal", "als"))
    Traceback (most recent call last):
    bayesneg.errors.InputError: init must be one of normal, als, got 'alz'; did you mean als?
    """
    if value not in valid:
        meant = nearest(value, valid)
        hint = f"; did you mean {meant}?" if meant else ""
        raise InputError(f"{name} must be one of {', '.join(valid)}, got {value!r}{hint}")


def nearest(name: object, valid: Iterable[str]) -> str | None:
    """The valid name that a misspelt one is closest to; None where none is close."""
    return next(iter(difflib.get_close_matches(str(name), valid, n=1)), None)


def known_settings(**elsewhere: str) -> Callable[[Class], Class]:
    """Decorate a dataclass: a keyword that is none of its fields gets a sentence in place of a ``TypeError``.

    Args:
        **elsewhere: Setting that the class does not have → where there is one.
    """

    def decorated(kind: Class) -> Class:
        made = kind.__init__  # type: ignore[misc]
        names = [field.name for field in fields(kind) if field.init]
        shown = [field.name for field in fields(kind) if field.init and field.compare]

        @functools.wraps(made)
        def init(self: Any, *args: Any, **settings: Any) -> None:
            for name in settings:
                if name in names:
                    continue
                meant = None if name in elsewhere else nearest(name, shown)
                way_out = elsewhere.get(name) or (f"did you mean {meant}?" if meant else "")
                raise InputError(
                    f"{kind.__name__} has no setting {name}; {way_out}{' ' if meant else '; ' if way_out else ''}"
                    f"it has {', '.join(shown) or 'none'}"
                )
            made(self, *args, **settings)

        kind.__init__ = init  # type: ignore[misc]
        return kind

    return decorated


def a_path(path: Any) -> Path:
    """The path of a folder, given as text or as a path."""
    if not isinstance(path, str | os.PathLike):
        raise InputError(f"path must be the path of a folder, got {path!r:.60}")
    return Path(path)


def an_object(name: str, value: Any, example: str) -> None:
    """Not the name of something, nor its class.

    >>> an_object("model", "mf", "bn.MF()")
    Traceback (most recent call last):
    bayesneg.errors.InputError: model must be an object such as bn.MF(), got 'mf'
    """
    if isinstance(value, (str, type)):
        raise InputError(f"{name} must be an object such as {example}, got {value!r}")
