"""Settings that check themselves: each function returns the value or says which argument breaks which rule."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

from bayesneg.errors import InputError


def whole(name: str, value: Any, *, least: int = 1) -> None:
    """A whole number of at least ``least``.

    >>> whole("candidates", 0)
    Traceback (most recent call last):
    bayesneg.errors.InputError: candidates must be a whole number of at least 1, got 0
    """
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise InputError(f"{name} must be a whole number of at least {least}, got {value!r}")


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
    if value not in valid:
        raise InputError(f"{name} must be one of {', '.join(valid)}, got {value!r}")


def an_object(name: str, value: Any, example: str) -> None:
    """Not the name of something, nor its class.

    >>> an_object("model", "mf", "bn.MF()")
    Traceback (most recent call last):
    bayesneg.errors.InputError: model must be an object such as bn.MF(), got 'mf'
    """
    if isinstance(value, (str, type)):
        raise InputError(f"{name} must be an object such as {example}, got {value!r}")
