"""What a stored array must look like, and the one function that checks it before anything computes with it.

Models, item models and samplers declare their arrays: name → :class:`ArraySpec`. Compiled code looks up whatever number
it is given, so that an item number out of range would read or write foreign memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bayesneg.errors import DamagedError

Length = int | str  # a name stands for a length that is the same wherever it is used; "items + 1" is one more
FAMILIES = {"float": "f", "integer": "iu", "number": "fiu"}  # families of types, by numpy's kinds


@dataclass(frozen=True)
class ArraySpec:
    """What a stored array must look like.

    Args:
        shape: Its lengths: numbers, or names such as ``"users"``, ``"items"`` and ``"dim"``.
        dtype: ``"float"``, ``"integer"`` or ``"number"`` for any of the family, or the exact name of a type.
        least: Least value; None for no bound.
        most: Largest value; None for no bound.
        below: Number, or name of a length, that every value is below; None for no bound.
        starts_of: Name of the array whose rows it starts: it ascends from 0 to the length of that array.
        finite: Whether NaN and infinite values are refused.
        optional: Whether it may be missing.
        or_empty: Whether an array without values is right too, whatever its shape.
    """

    shape: tuple[Length, ...]
    dtype: str = "float"
    least: float | None = None
    most: float | None = None
    below: Length | None = None
    starts_of: str | None = None
    finite: bool = True
    optional: bool = False
    or_empty: bool = False


Specs = Mapping[str, ArraySpec]


def prefixed(specs: Specs, prefix: str) -> dict[str, ArraySpec]:
    """The same arrays under longer names.

    Args:
        specs: What they must look like.
        prefix: What their names begin with, ``"sampler."``.

    Returns:
        The specs, by the longer names.
    """
    moved = (replace(one, starts_of=one.starts_of and f"{prefix}{one.starts_of}") for one in specs.values())
    return {f"{prefix}{name}": spec for name, spec in zip(specs, moved, strict=True)}


def specs_like(arrays: Mapping[str, np.ndarray]) -> dict[str, ArraySpec]:
    """Specs of arrays that replace these: the same shapes and types, and finite where these are.

    Args:
        arrays: The arrays, by name.

    Returns:
        The specs, by name.
    """
    return {
        name: ArraySpec(array.shape, str(array.dtype), finite=_is_finite(*_extremes(array)))
        for name, array in arrays.items()
    }


def check_arrays(
    arrays: Mapping[str, np.ndarray], specs: Specs, sizes: Mapping[str, int], *, only: bool = False
) -> None:
    """Refuse arrays that are missing, or have another shape, type or range than declared.

    Args:
        arrays: The arrays as they were read, by name.
        specs: What they must look like, by name.
        sizes: Lengths that are known; the others must agree among the arrays.
        only: Whether an array that is not declared is refused.

    Raises:
        DamagedError: The sentence names the array and the rule.
    """
    if only and (unknown := sorted(arrays.keys() - specs.keys())):
        raise DamagedError(f"{unknown[0]!r} is no array of it")
    known = dict(sizes)
    for name, spec in specs.items():
        if name in arrays:
            _check(name, arrays[name], spec, known, arrays)
        elif not spec.optional:
            raise DamagedError(f"{name} is missing")


def _check(
    name: str, array: np.ndarray, spec: ArraySpec, known: dict[str, int], arrays: Mapping[str, np.ndarray]
) -> None:
    kinds = FAMILIES.get(spec.dtype)
    if array.dtype.kind not in kinds if kinds else str(array.dtype) != spec.dtype:
        raise DamagedError(f"{name} has the type {array.dtype}, and must have {spec.dtype}")
    if spec.or_empty and array.size == 0:
        return
    wanted = tuple(_length(length, found, known) for length, found in zip(spec.shape, array.shape, strict=False))
    if array.ndim != len(spec.shape) or wanted != array.shape:
        rule = ", ".join(str(_length(length, length, dict(known))) for length in spec.shape)
        raise DamagedError(f"{name} has the shape {array.shape}, and must have ({rule})")
    if array.dtype.kind == "b" or array.size == 0:
        return
    low, high = _extremes(array)
    if spec.finite and not _is_finite(low, high):
        raise DamagedError(f"{name} has numbers that are not finite")
    if spec.least is not None and not low >= spec.least:
        raise DamagedError(f"{name} has the value {low}, and all must be at least {spec.least:g}")
    if spec.most is not None and not high <= spec.most:
        raise DamagedError(f"{name} has the value {high}, and all must be at most {spec.most:g}")
    if spec.below is not None:
        bound = known[spec.below] if isinstance(spec.below, str) else spec.below
        if high >= bound:
            raise DamagedError(f"{name} has the value {high}, and all must be below {bound}")
    if spec.starts_of is not None:
        check_starts(name, array, len(arrays[spec.starts_of]) if spec.starts_of in arrays else 0)


def check_starts(name: str, starts: np.ndarray, length: int) -> None:
    """Refuse starts of rows that do not ascend from 0 to the length of what they start in.

    Args:
        name: Name of the array.
        starts: The starts of the rows, and the end of the last.
        length: The length of the array that the rows are in.
    """
    if len(starts) == 0 or starts[0] != 0 or starts[-1] != length or (np.diff(starts) < 0).any():
        raise DamagedError(f"{name} must ascend from 0 to {length}, and does not")


def _length(length: Length, found: Any, known: dict[str, int]) -> Any:
    """The length as a number; a name that is not known yet stands for what was found."""
    if not isinstance(length, str):
        return length
    name, more = (length.removesuffix(" + 1"), 1) if length.endswith(" + 1") else (length, 0)
    if name not in known and isinstance(found, int):
        known[name] = found - more
    return known[name] + more if name in known else length


def _extremes(array: np.ndarray) -> tuple[Any, Any]:
    """The least and the largest value, NaN where there is one; nothing as large as the array is allocated."""
    if array.size == 0 or array.dtype.kind not in "fiub":
        return 0, 0
    with np.errstate(invalid="ignore"):
        return array.min(), array.max()


def _is_finite(low: Any, high: Any) -> bool:
    return bool(np.isfinite(low) and np.isfinite(high))
