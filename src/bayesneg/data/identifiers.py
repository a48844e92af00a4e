"""Looking raw identifiers up, and naming the nearest ones where one is unknown."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Set
from difflib import get_close_matches
from string import ascii_letters, digits, punctuation
from typing import Any, Literal

import numpy as np

from bayesneg.checks import one_of
from bayesneg.errors import InputError

COMPARED = 5_000  # identifiers at most that a misspelt text is compared with
EDITED = 100  # beyond that, characters of it that are varied
LETTERS = f" {ascii_letters}{digits}{punctuation}"  # and what with
Unknown = Literal["error", "skip"]


def find(raw: Any, numbers: Mapping[Any, int]) -> int | None:
    """The dense number of an identifier; an integer and its decimal text are the same. None for an unknown one."""
    for candidate in (raw, str(raw), _as_integer(raw)):
        if candidate is not None and candidate in numbers:
            return numbers[candidate]
    return None


def number_of(raw: Any, numbers: Mapping[Any, int], noun: str) -> int:
    """The dense number of an identifier; an error that names the nearest ones where it is unknown."""
    check_identifier(raw, numbers, noun)
    number = find(raw, numbers)
    if number is None:
        raise InputError(f"{noun} {raw!r} is not in the data; {_hint(raw, numbers, noun)}")
    return number


def numbers_of(
    raws: Iterable[Any], numbers: Mapping[Any, int], *, argument: str, noun: str, unknown: Unknown = "error"
) -> tuple[np.ndarray, list[Any]]:
    """The dense numbers (n,) int64 of identifiers, each once and in their order, and those that are unknown.

    An unknown one is an error unless ``unknown`` is ``"skip"``; that all are unknown, or none is given, always is.
    """
    one_of("unknown", unknown, ("error", "skip"))
    if type(raws).__name__ in ("DataFrame", "Table"):  # of pandas, polars or Arrow
        raise InputError(f"{argument} must be identifiers of {noun}s, got a table; give its column, table[{noun!r}]")
    if isinstance(raws, str | bytes | Mapping) or not isinstance(raws, Iterable):
        raise InputError(
            f"{argument} must be several identifiers of {noun}s, such as [{_examples(numbers)}], got {raws!r:.60}"
        )
    found: dict[int, None] = {}
    missing: dict[Any, None] = {}
    for raw in raws:
        check_identifier(raw, numbers, noun)
        number = find(raw, numbers)
        if number is None:
            missing[raw] = None
        else:
            found[number] = None
    if not found and not missing:
        raise InputError(f"{argument} must name at least one {noun}, got none; {noun}s look like {_examples(numbers)}")
    if missing and (unknown == "error" or not found):
        raise InputError(_are_unknown(list(missing), numbers, argument, noun, all_of_them=not found))
    return np.fromiter(found, dtype=np.int64, count=len(found)), list(missing)


def plain(value: Any) -> Any:
    """A NumPy number as Python's."""
    return value.item() if isinstance(value, np.generic) else value


def nearest(raw: Any, known: Collection[Any], count: int = 3) -> list[Any]:
    """The known identifiers nearest to an unknown one: in value among integers, in spelling among texts.

    >>> nearest(12, [1, 10, 14, 90]), nearest("Matrx", ["Matrix", "Alien"])
    ([10, 14, 1], ['Matrix'])
    """
    if len(known) > COMPARED:
        return _nearest_of_many(raw, known, count)
    integer = _as_integer(raw)
    if integer is not None and all(isinstance(each, int) for each in known):
        return sorted(known, key=lambda each: (abs(each - integer), each))[:count]
    texts = {str(each): each for each in known}
    folded = {text.casefold(): text for text in texts}
    return [texts[folded[match]] for match in get_close_matches(str(raw).casefold(), folded, n=count, cutoff=0.6)]


def _nearest_of_many(raw: Any, known: Collection[Any], count: int) -> list[Any]:
    """The same without a look at every spelling, which takes seconds: a server answers others meanwhile."""
    integer = _as_integer(raw)
    if not isinstance(next(iter(known)), int):
        among = known if isinstance(known, Set) else set(known)
        near = dict.fromkeys(text for text in _one_edit_from(str(raw)[:EDITED]) if text in among)
        return list(near)[:count]
    if integer is None or abs(integer) >= 2**62:
        return []
    values = np.fromiter(known, dtype=np.int64, count=len(known))
    distances = np.abs(values - integer)
    nearest_ones = np.argpartition(distances, count)[:count]
    return sorted(values[nearest_ones].tolist(), key=lambda each: (abs(each - integer), each))


def _one_edit_from(text: str) -> Iterator[str]:
    """Texts with one character changed, added or left out, two exchanged, or all in another case."""
    yield from dict.fromkeys((text.lower(), text.upper(), text.title(), text.strip()))
    for place in range(len(text) + 1):
        head, tail = text[:place], text[place:]
        if tail:
            yield head + tail[1:]
            yield from (head + letter + tail[1:] for letter in LETTERS)
        if len(tail) > 1:
            yield head + tail[1] + tail[0] + tail[2:]
        yield from (head + letter + tail for letter in LETTERS)


def check_identifier(raw: Any, numbers: Mapping[Any, int], noun: str) -> None:
    if isinstance(raw, int | np.integer | str) and not isinstance(raw, bool):
        return
    if isinstance(raw, Iterable):
        raise InputError(f"{noun} must be one identifier, got {raw!r:.60}; ask for one {noun} at a time")
    raise InputError(
        f"{noun} must be one identifier, a whole number or a text, got {raw!r:.60} ({type(raw).__name__}); "
        f"{noun}s look like {_examples(numbers)}"
    )


def _as_integer(raw: Any) -> int | None:
    try:
        return int(raw)
    except (TypeError, ValueError):
        return None


def _examples(numbers: Mapping[Any, int]) -> str:
    return ", ".join(repr(each) for _, each in zip(range(3), numbers, strict=False))


def _hint(raw: Any, numbers: Mapping[Any, int], noun: str) -> str:
    near = nearest(raw, numbers.keys())
    if near:
        return f"the nearest {noun}{'s are' if len(near) > 1 else ' is'} {', '.join(map(str, near))}"
    return f"{noun}s look like {', '.join(str(each) for each in list(numbers)[:3])}"


def _are_unknown(missing: list[Any], numbers: Mapping[Any, int], argument: str, noun: str, *, all_of_them: bool) -> str:
    hint = _hint(missing[0], numbers, noun)
    if all_of_them:
        who = f"{noun} {missing[0]!r}" if len(missing) == 1 else f"none of its {len(missing):,} {noun}s"
        verb = "is not in the data" if len(missing) == 1 else f"is in the data (the first is {missing[0]!r})"
        return f"{argument}: {who} {verb}; {hint}"
    more = f" and {len(missing) - 1:,} more {noun}s are" if len(missing) > 1 else " is"
    return (
        f"{argument}: {noun} {missing[0]!r}{more} not in the data; {hint}; correct them, or leave them out with "
        "unknown='skip' (--skip-unknown)"
    )
