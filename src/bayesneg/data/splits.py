"""Train, test and, where asked for, validation parts of one dataset.

Four rules select the held-out interactions; all give exact counts, and the same parts for the same seed:

- ``interaction``: a random share of all interactions (the paper's);
- ``user``: a random share of each user's interactions;
- ``last``: the last interactions of each user by time, a count or a share;
- ``time``: the newest share of all interactions.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from bayesneg.checks import one_of
from bayesneg.data.blocks import row_blocks, user_blocks
from bayesneg.data.interactions import Interactions, Truth
from bayesneg.data.shares import PER_USER, Shares, is_number, n_held_out, valid_or_none, way_out
from bayesneg.errors import InputError
from bayesneg.notebooks import html_table
from bayesneg.seeding import stream

RULES = ("interaction", "user", "last", "time")
TIMED = ("last", "time")


@dataclass(frozen=True, eq=False)
class Split:
    """Disjoint parts of one dataset over the same users and items.

    Args:
        train: Interactions to train on.
        test: Interactions held out for the final evaluation.
        validation: Interactions held out of training for early stopping and tuning, or None.
        how: How the split was made, for the record.
        origin: What the data was read and split with, as the keys of a run file; None where it was in memory.

    Example:
        >>> data = Interactions.from_pairs([1, 1, 1, 2, 2], ["a", "b", "c", "a", "d"])
        >>> parts = split(data, test=0.4, seed=0)
        >>> len(parts.train), len(parts.test), parts.how
        (3, 2, 'by=interaction test=0.4 seed=0')
    """

    train: Interactions
    test: Interactions
    validation: Interactions | None = None
    how: str = "given"
    origin: Mapping[str, Any] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        _check_apart(self.train, self.test, "train and test")
        if self.validation is not None:
            _check_apart(self.train, self.validation, "train and validation")
            _check_apart(self.test, self.validation, "test and validation")

    def _repr_html_(self) -> str:
        named = {"train": self.train, "validation": self.validation, "test": self.test}
        rows = [
            (name, f"{len(part):,}", f"{np.count_nonzero(part.counts):,}", f"{np.count_nonzero(part.popularity):,}")
            for name, part in named.items()
            if part is not None
        ]
        whole = f"{self.train.name}: {self.train.n_users:,} users, {self.train.n_items:,} items"
        return html_table(whole, ("part", "interactions", "users", "items"), rows, notes=[f"split: {self.how}"])

    @property
    def truth(self) -> Truth | None:
        """Whether a user likes an item, where that is known for every pair."""
        return self.train.truth

    @cached_property
    def held_out(self) -> Interactions:
        """Every known positive outside training: test and validation together."""
        return self.test if self.validation is None else self.test.union(self.validation)

    @cached_property
    def seen(self) -> Interactions:
        """The items excluded from recommendation at test time: training and validation together."""
        return self.train if self.validation is None else self.train.union(self.validation)

    @cached_property
    def known(self) -> Interactions:
        """Everything known of the users: training, validation and test together."""
        return self.train.union(self.held_out) if len(self.held_out) else self.train

    @cached_property
    def fingerprint(self) -> str:
        """A short sha256 over the parts: equal for two runs on the same data and split."""
        parts = (self.train, self.test, self.validation)
        marks = "/".join("-" if part is None else part.fingerprint for part in parts)
        return hashlib.sha256(marks.encode()).hexdigest()[:16]

    def rule_of(self, part: str) -> str:
        """How a part was held out, as ``how`` says; a part that was given counts as random.

        Args:
            part: ``"test"`` or ``"validation"``.

        Returns:
            ``"interaction"``, ``"user"``, ``"last"`` or ``"time"``.
        """
        for step in self.how.split(";"):
            words = dict(word.partition("=")[::2] for word in step.split())
            if part in words and "by" in words:
                return words["by"]
        return "interaction"

    def whole(self) -> Split:
        """Everything known as training data, with nothing held out: for a final model, which cannot be evaluated.

        Returns:
            The split; its test part is empty.
        """
        nothing = np.zeros(len(self.test), dtype=bool)
        return Split(train=self.known, test=self.test.select(nothing), how=f"{self.how}; all of it is training data")

    @property
    def n_test_only_users(self) -> int:
        """Number of test users without a training interaction."""
        return int(np.count_nonzero((self.test.counts > 0) & (self.train.counts == 0)))

    @property
    def n_test_only_items(self) -> int:
        """Number of test items without a training interaction."""
        return int(np.count_nonzero((self.test.popularity > 0) & (self.train.popularity == 0)))


def split(
    data: Interactions,
    *,
    test: float | None = None,
    validation: float = 0.0,
    by: str = "interaction",
    seed: int = 0,
) -> Split:
    """Hold out a test part and, of the training that remains, a validation part.

    Args:
        data: The interactions; ``last`` and ``time`` need their times. Of equal times the higher item number is the
            later, then the higher user number. The parts of prepared data are stored in its folder, once.
        test: Share to hold out, strictly between 0 and 1: round(test · n) interactions, rounded per user with ``user``
            and ``last``. With ``last`` also a count per user: 1, 2, … The default is 0.2, and 1 with ``last``.
        validation: The same for the validation part; 0 for none.
        by: ``"interaction"`` (a random share of all interactions), ``"user"`` (a random share per user), ``"last"``
            (the last interactions per user) or ``"time"`` (the newest share of all interactions). With ``user`` and
            ``last`` every user keeps at least one training interaction.
        seed: Seed of the random rules.

    Returns:
        Disjoint parts that together are the data.

    Example:
        >>> data = Interactions.from_pairs([1, 1, 1, 2, 2, 3], list("abcadb"), times=[9, 5, 7, 1, 2, 4])
        >>> parts = split(data, by="last")
        >>> parts.test.users, parts.test.indices
        (array([0, 1], dtype=int32), array([0, 3], dtype=int32))
        >>> len(split(data, by="time", test=0.5).train), parts.n_test_only_items
        (3, 1)
    """
    if not isinstance(data, Interactions):
        raise _not_interactions(data)
    amount = (1 if by == "last" else 0.2) if test is None else test
    asked = Shares(amount, valid_or_none(validation, by), by)
    if data.prepared is not None:
        made = _stored(data, amount, validation, by, seed)
    else:
        check_rule(data, by)
        held = held_positions(data, amount, by, stream(seed, "split"), argument="test")
        train, tested = _parts(data, held, "test", amount, whole=data, asked=asked)
        made = Split(train, tested, how=_how("test", amount, by, seed))
        if not (is_number(validation) and validation == 0):
            carved = _carved(made, validation, seed=seed, by=by, whole=data, asked=asked)
            made = replace(carved, how=f"{made.how} validation={validation}")
    if data.origin is None:
        return made
    given = {"test_share": float(amount), "validation": float(validation), "split_by": by, "split_seed": seed}
    return replace(made, origin={**data.origin, **given})


def _stored(data: Interactions, amount: float, validation: float, by: str, seed: int) -> Split:
    """The split of prepared data, which is stored beside it."""
    from bayesneg.data.prepared.splitting import split_prepared

    how = _how("test", amount, by, seed)
    held_out = {"test": amount}
    if not (is_number(validation) and validation == 0):
        how, held_out["validation"] = f"{how} validation={validation}", validation
    parts = split_prepared(data, held_out, by=by, seed=seed, how=how)
    return Split(parts["train"], parts["test"], parts.get("validation"), how)


def carve_validation(split: Split, share: float, *, seed: int = 0, by: str = "interaction") -> Split:
    """Hold a validation part out of the training part, by the rules of :func:`split`.

    >>> data = Interactions.from_pairs([1, 1, 1, 2, 2], ["a", "b", "c", "a", "d"])
    >>> parts = carve_validation(Split(data.select(data.indices < 3), data.select(data.indices == 3)), 0.25)
    >>> len(parts.train), len(parts.validation), len(parts.test), parts.how
    (3, 1, 1, 'given; by=interaction validation=0.25 seed=0')
    """
    if split.validation is not None:
        raise InputError(
            f"split must have no validation part yet, got one of {len(split.validation):,} interactions; "
            "carve from a split without one"
        )
    return _carved(split, share, seed=seed, by=by, whole=split.train, asked=Shares(0, share, by))


def _carved(split: Split, share: float, *, seed: int, by: str, whole: Interactions, asked: Shares) -> Split:
    """As :func:`carve_validation`; an error proposes other shares of ``whole``."""
    check_rule(split.train, by)
    held = held_positions(split.train, share, by, stream(seed, "split", 1), argument="validation")
    train, validation = _parts(split.train, held, "validation", share, whole=whole, asked=asked)
    how = f"{split.how}; {_how('validation', share, by, seed)}"
    return Split(train, split.test, validation, how)


def _not_interactions(data: object) -> InputError:
    given, source = (repr(data), repr(data)) if isinstance(data, str) else (type(data).__name__, "…")
    return InputError(
        f"data must be interactions, got {given}; bn.load reads files, folders and frames: bn.split(bn.load({source}))"
    )


def _how(argument: str, amount: float, by: str, seed: int) -> str:
    return f"by={by} {argument}={amount}" + ("" if by in TIMED else f" seed={seed}")


def held_positions(
    data: Interactions, amount: float, by: str, rng: np.random.Generator, *, argument: str
) -> np.ndarray:
    """The positions (n_held,) of the interactions that ``by`` holds out of ``data``."""
    if by not in PER_USER:
        n_kept = len(data) - int(n_held_out(np.array([len(data)]), amount, by, argument=argument)[0])
        order = rng.permutation(len(data)) if by == "interaction" else _newest_last(data)
        return order[n_kept:]
    n_held_of = n_held_out(data.counts, amount, by, argument=argument)  # (n_users,)
    order = _shuffled_within_users(data, rng) if by == "user" else _newest_last_within_users(data)
    left = np.repeat(data.indptr[1:], data.counts) - np.arange(len(data))  # (n,) to the end of the user's row
    return order[left <= np.repeat(n_held_of, data.counts)]


def _shuffled_within_users(data: Interactions, rng: np.random.Generator) -> np.ndarray:
    return np.lexsort((rng.random(len(data)), data.users))


def _newest_last_within_users(data: Interactions) -> np.ndarray:
    assert data.times is not None  # by check_rule
    if data.times.dtype not in (np.int64, np.float64):
        return np.lexsort((data.times, data.users))  # stable, and rows ascend by item: ties go by item number
    import polars as pl  # the same order on all cores

    rows = pl.DataFrame({"user": data.users, "time": data.times})
    return rows.select(pl.arg_sort_by("user", "time", maintain_order=True)).to_series().to_numpy()


def _newest_last(data: Interactions) -> np.ndarray:
    assert data.times is not None  # by check_rule
    return np.lexsort((data.users, data.indices, data.times))


def _parts(
    data: Interactions, held: np.ndarray, argument: str, amount: float, *, whole: Interactions, asked: Shares
) -> tuple[Interactions, Interactions]:
    """What is kept and what is held out; ``asked`` of ``whole`` is what an error proposes another of."""
    check_sizes(len(held), len(data), argument, amount, whole=whole, asked=asked)
    mask = np.zeros(len(data), dtype=bool)
    mask[held] = True
    return data.select(~mask), data.select(mask)


def check_sizes(n_held: int, n: int, argument: str, amount: float, *, whole: Interactions, asked: Shares) -> None:
    """An error where one of the two parts is empty; it proposes another share of ``whole`` than ``asked``."""
    if not 0 < n_held < n:
        empty = argument if n_held == 0 else "training"
        raise InputError(
            f"{argument}={amount} leaves no {empty} interactions out of {n:,}; {way_out(whole.counts, asked)}"
        )


def check_rule(data: Interactions, by: str) -> None:
    one_of("by", by, RULES)
    n_missing = _n_missing_times(data) if by in TIMED else 0
    if n_missing:
        raise InputError(
            f"by={by!r} needs a time for every interaction, but {n_missing:,} of {len(data):,} in "
            f"{data.name} have none; read it with a time column, or split by interaction or user"
        )


def _n_missing_times(data: Interactions) -> int:
    if data.times is None:
        return len(data)
    if data.times.dtype.kind not in "fmM":
        return 0
    return sum(int(np.count_nonzero(np.isnan(data.times[part]))) for part in row_blocks(len(data)))


def _check_apart(one: Interactions, other: Interactions, names: str) -> None:
    if one.user_ids is not other.user_ids or one.item_ids is not other.item_ids:
        raise InputError(f"{names} must be parts of one dataset, but their identifiers differ; use split or read_split")
    if one.prepared is not None and other.prepared is not None and one.prepared.parent == other.prepared.parent:
        return  # parts of a stored split are apart since they were written
    n_shared, first = 0, (0, 0)
    bare, looked_up = (replace(each, user_columns={}, truth=None) for each in (one, other))
    for start, stop in user_blocks(one.indptr + other.indptr):  # mapped parts need not fit into memory
        asked = looked_up.user_range(start, stop)
        shared = np.flatnonzero(bare.user_range(start, stop).contains(asked.users, asked.indices))
        if n_shared == 0 and len(shared):
            first = start + int(asked.users[shared[0]]), int(asked.indices[shared[0]])
        n_shared += len(shared)
    if n_shared:
        user, item = other.user_ids[first[0]], other.item_ids[first[1]]
        raise InputError(
            f"{names} must not overlap, but share {n_shared:,} pairs, "
            f"the first of them user {user!r} with item {item!r}; drop them from one part"
        )
