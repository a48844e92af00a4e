"""How many interactions a test or validation share holds out, and which shares work where one holds out none."""

from __future__ import annotations

from collections.abc import Collection
from itertools import chain
from typing import Final, NamedTuple

import numpy as np

from bayesneg.errors import InputError

PER_USER: Final = ("user", "last")  # rules that round per user and leave each user one training interaction
OPTIONS: Final = {"test": "--test-share", "validation": "--validation"}
USUAL: Final = tuple(place / 20 for place in range(1, 20))  # shares that are proposed: 0.05, 0.1, …


class Shares(NamedTuple):
    """What is asked for: a test share, a validation share (0 for none), and the rule."""

    test: float  # 0 where the test part is given
    validation: float
    by: str


def n_held_out(sizes: np.ndarray, amount: float, by: str, *, argument: str = "share") -> np.ndarray:
    """How many interactions are held out of each size: of each user, or of all.

    Args:
        sizes: Numbers of interactions: one for each user with ``user`` and ``last``, otherwise that of all.
        amount: A share, or with ``last`` a count.
        by: The rule.
        argument: What an error calls the amount.

    >>> n_held_out(np.array([1, 2, 10]), 0.3, "user")
    array([0, 1, 3])
    """
    if by == "last" and is_count(amount):
        wanted = np.full(len(sizes), int(amount))
    else:
        wanted = np.rint(_share(amount, argument, by) * sizes).astype(np.int64)
    return np.maximum(np.minimum(wanted, sizes - 1), 0) if by in PER_USER else wanted


def way_out(counts: np.ndarray, asked: Shares) -> str:
    """What to give in place of shares that leave a part empty, tried on these numbers of interactions.

    Args:
        counts: Interactions of each user, (n_users,), before a part is held out.
        asked: What was asked for, and does not work.

    Returns:
        The end of a sentence: ``give validation=0.3 (--validation 0.3), which holds out 40``.

    >>> way_out(np.full(40, 3), Shares(0.2, 0.1, "user"))
    'give validation=0.3 (--validation 0.3), which holds out 40'
    """
    if (shares := _nearest_that_work(counts, asked)) is not None:
        return f"give {_advice(counts, asked, shares)}"
    parts = "a test and a validation part" if asked.test and asked.validation else "such a part"
    why = f"no share leaves {parts} with by={asked.by!r}"
    if asked.by in PER_USER:
        why += ", which keeps one training interaction of every user"
    ways = [*_by_interaction(counts, asked), *_without_validation(counts, asked), "give more data"]
    return f"{why}; {', or '.join(ways)}"


def shares_that_work(counts: np.ndarray, asked: Shares, *, free: Collection[str]) -> Shares:
    """What was asked for, or the nearest that leaves no part empty and has other shares of the ``free`` parts alone.

    Args:
        counts: Interactions of each user, (n_users,), before a part is held out.
        asked: What was asked for.
        free: ``"test"``, ``"validation"`` or both: the parts whose shares nobody gave.

    Returns:
        What was asked for where nothing works, or where a share is none: an error about it is better.

    >>> shares_that_work(np.full(40, 3), Shares(0.2, 0.1, "user"), free=["validation"])
    Shares(test=0.2, validation=0.3, by='user')
    """
    if any(amount and not valid_or_none(amount, asked.by) for amount in (asked.test, asked.validation)):
        return asked
    return _nearest_that_work(counts, asked, free) or asked


def valid_or_none(amount: object, by: str) -> float:
    """A share, or with ``last`` a count, as it is; 0 for anything else."""
    if not is_number(amount):
        return 0
    number: float = amount  # type: ignore[assignment]
    return number if 0 < number < 1 or (by == "last" and is_count(number)) else 0


def is_count(amount: float) -> bool:
    return is_number(amount) and 1 <= amount < np.inf and amount == np.floor(amount)


def is_number(value: object) -> bool:
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


def _share(amount: float, argument: str, by: str) -> float:
    if not (is_number(amount) and 0 < amount < 1):
        hint = "; with by='last' a count of 1, 2, … is also allowed" if by == "last" else "; 0.2 is usual"
        raise InputError(f"{argument} must be a share strictly between 0 and 1, got {amount!r}{hint}")
    return float(amount)


def _nearest_that_work(counts: np.ndarray, asked: Shares, free: Collection[str] = tuple(OPTIONS)) -> Shares | None:
    """The same shares, others of one part, or of both, the nearest first; None where nothing works with this rule."""
    tests, validations = (_others(getattr(asked, part) if part in free else 0, asked.by) for part in OPTIONS)
    proposals = chain(
        [asked],
        (asked._replace(validation=share) for share in validations),
        (asked._replace(test=share) for share in tests),
        (asked._replace(test=one, validation=other) for one in tests for other in validations),
    )
    return next((shares for shares in proposals if _held(counts, shares) is not None), None)


def _by_interaction(counts: np.ndarray, asked: Shares) -> list[str]:
    """The advice to split by interaction, where that works."""
    test = 0.2 if asked.test >= 1 else asked.test  # a count is for last alone
    usual = Shares(test, 0.1 if asked.validation >= 1 else asked.validation, "interaction")
    shares = _nearest_that_work(counts, usual)
    if asked.by == "interaction" or shares is None:
        return []
    given = [f"{name}={amount} ({OPTIONS[name]} {amount})" for name, amount in _changed(asked, shares).items()]
    return [" and ".join(["split with by='interaction' (--split-by interaction)", *given])]


def _without_validation(counts: np.ndarray, asked: Shares) -> list[str]:
    """The advice to hold out no validation part, where that works."""
    rest = asked._replace(validation=0)
    shares = _nearest_that_work(counts, rest)
    if not asked.validation or shares is None:
        return []
    without = "train without a validation part, validation=0 (--select last)"
    return [without if shares == rest else f"give {_advice(counts, rest, shares)}, and {without}"]


def _others(amount: float, by: str) -> list[float]:
    """The amounts to try in place of one; none where no part is wanted."""
    if not amount:
        return []
    return sorted((*([1] if by == "last" else []), *USUAL), key=lambda share: (abs(share - amount), share))


def _held(counts: np.ndarray, shares: Shares) -> dict[str, int] | None:
    """How many interactions each part has; None where one is empty, or training is."""
    sizes, n_of = np.unique(counts if shares.by in PER_USER else counts.sum(), return_counts=True)
    held = {}
    for argument, amount in (("test", shares.test), ("validation", shares.validation)):
        if not amount:
            continue
        part = n_held_out(sizes, amount, shares.by)
        if not 0 < part @ n_of < sizes @ n_of:
            return None
        held[argument], sizes = int(part @ n_of), sizes - part
    return held


def _changed(asked: Shares, shares: Shares) -> dict[str, float]:
    return {name: getattr(shares, name) for name in OPTIONS if getattr(asked, name) != getattr(shares, name)}


def _advice(counts: np.ndarray, asked: Shares, shares: Shares) -> str:
    amounts, held = _changed(asked, shares), _held(counts, shares) or {}
    given = " and ".join(f"{name}={amount} ({OPTIONS[name]} {amount})" for name, amount in amounts.items())
    n_held = " and ".join(f"{held[name]:,}" for name in amounts)
    return f"{given}, which {'holds' if len(amounts) == 1 else 'hold'} out {n_held}"
