"""User–item interactions: a frozen, sorted CSR matrix of users × items with its raw identifiers.

Dense numbers (0 … n−1) are used everywhere inside; raw identifiers live here and at the edges.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from bayesneg.data.blocks import released, row_blocks
from bayesneg.data.identifiers import number_of
from bayesneg.data.numbering import check_numbers, collapsed, numbered
from bayesneg.errors import DataError, InputError

if TYPE_CHECKING:
    from bayesneg.kernels.numba.observed import Observed


class Truth(Protocol):
    """Whether a user likes an item, known for every pair: a generated world, or a fully observed matrix."""

    def likes(self, users: np.ndarray, items: np.ndarray) -> np.ndarray:
        """True where the user likes the item; ``users`` and ``items`` broadcast."""
        ...


@dataclass(frozen=True, eq=False)
class Interactions:
    """User–item interactions as a CSR matrix; every part of a split shares the same identifiers and dense numbers.

    Build one with :func:`bayesneg.load` or :meth:`from_pairs`.

    Args:
        indptr: Start of each user's row in ``indices``, (n_users + 1,) int64.
        indices: Items, ascending within a user, (n,) int32.
        user_ids: Raw user identifiers, integers or strings, (n_users,).
        item_ids: Raw item identifiers, (n_items,).
        times: Time of each interaction, (n,) in the order of ``indices``.
        user_columns: User features, name → (n_users,).
        truth: Whether a user likes an item, where that is known for every pair.
        name: Name of the dataset.
        n_duplicates: Number of repeated pairs that were collapsed.
        n_below_min_rating: Number of rows dropped for their rating.
        origin: What :func:`bayesneg.load` was given, as the keys of a run file; None for a part or data in memory.
        prepared: Folder that the arrays are mapped from, where :func:`bayesneg.prepare` wrote them; None in memory.

    Example:
        >>> data = Interactions.from_pairs(["b", "a", "b", "b"], [7, 7, 9, 7])
        >>> data.n_users, data.n_items, len(data), data.n_duplicates
        (2, 2, 3, 1)
        >>> data.row(0), data.user_ids[0]
        (array([0, 1], dtype=int32), 'b')
    """

    indptr: np.ndarray
    indices: np.ndarray
    user_ids: np.ndarray
    item_ids: np.ndarray
    times: np.ndarray | None = None
    user_columns: Mapping[str, np.ndarray] = field(default_factory=dict)
    truth: Truth | None = None
    name: str = "data"
    n_duplicates: int = 0
    n_below_min_rating: int = 0
    origin: Mapping[str, Any] | None = field(default=None, repr=False)
    prepared: Path | None = field(default=None, repr=False)

    @classmethod
    def from_pairs(
        cls,
        user_ids: Any,
        item_ids: Any,
        *,
        times: Any = None,
        user_columns: Mapping[str, Mapping[Any, Any]] | None = None,
        name: str = "data",
    ) -> Interactions:
        """Number raw identifiers in order of first appearance, and collapse repeated pairs.

        Args:
            user_ids: Raw user identifier of each interaction, (n,).
            item_ids: Raw item identifier of each interaction, (n,).
            times: Time of each interaction, (n,); the latest of a repeated pair is kept.
            user_columns: User features, name → {user id: value}.
            name: Name of the dataset.

        Returns:
            The interactions.
        """
        users, known_users = numbered(user_ids)
        items, known_items = numbered(item_ids)
        columns = {
            column: np.array([values.get(user) for user in known_users.tolist()], dtype=object)
            for column, values in (user_columns or {}).items()
        }
        return cls.from_numbers(
            users, items, user_ids=known_users, item_ids=known_items, times=times, user_columns=columns, name=name
        )

    @classmethod
    def from_numbers(
        cls,
        users: np.ndarray,
        items: np.ndarray,
        *,
        user_ids: np.ndarray,
        item_ids: np.ndarray,
        times: Any = None,
        user_columns: Mapping[str, np.ndarray] | None = None,
        truth: Truth | None = None,
        name: str = "data",
        n_below_min_rating: int = 0,
    ) -> Interactions:
        """Sort pairs of dense numbers, and collapse repeated ones.

        Args:
            users: User number of each interaction, (n,).
            items: Item number of each interaction, (n,).
            user_ids: Raw user identifiers, (n_users,).
            item_ids: Raw item identifiers, (n_items,).
            times: Time of each interaction, (n,); the latest of a repeated pair is kept.
            user_columns: User features, name → (n_users,).
            truth: Whether a user likes an item, where that is known for every pair.
            name: Name of the dataset.
            n_below_min_rating: Number of rows dropped for their rating.

        Returns:
            The interactions.
        """
        if len(users) == 0:
            raise DataError(f"{name}: no interactions; there is nothing to learn from")
        if len(item_ids) > np.iinfo(np.int32).max:
            raise DataError(f"{name}: {len(item_ids)} items are more than item numbers can hold (2^31 - 1)")
        for argument, numbers, n in (("users", users, len(user_ids)), ("items", items, len(item_ids))):
            check_numbers(argument, np.asarray(numbers), n, name)
        keys = np.asarray(users, dtype=np.int64) * len(item_ids) + np.asarray(items, dtype=np.int64)
        kept, kept_times = collapsed(keys, times)
        counts = np.bincount(kept // len(item_ids), minlength=len(user_ids))
        return cls(
            indptr=np.concatenate(([0], np.cumsum(counts))).astype(np.int64),
            indices=(kept % len(item_ids)).astype(np.int32),
            user_ids=user_ids,
            item_ids=item_ids,
            times=kept_times,
            user_columns=dict(user_columns or {}),
            truth=truth,
            name=name,
            n_duplicates=len(users) - len(kept),
            n_below_min_rating=n_below_min_rating,
        )

    def __post_init__(self) -> None:
        for array in (self.indptr, self.indices, self.times):
            if array is not None:
                array.flags.writeable = False

    def __len__(self) -> int:
        return len(self.indices)

    def __repr__(self) -> str:
        return f"Interactions({self.name!r}: {len(self):,} of {self.n_users:,} users with {self.n_items:,} items)"

    @property
    def n_users(self) -> int:
        return len(self.user_ids)

    @property
    def n_items(self) -> int:
        return len(self.item_ids)

    @property
    def counts(self) -> np.ndarray:
        """Interactions per user, (n_users,)."""
        return np.diff(self.indptr)

    @cached_property
    def users(self) -> np.ndarray:
        """The user of each interaction, (n,) int32, in the order of ``indices``."""
        return np.repeat(np.arange(self.n_users, dtype=np.int32), self.counts)

    @cached_property
    def popularity(self) -> np.ndarray:
        """Interactions per item, (n_items,) int64."""
        return np.bincount(self.indices, minlength=self.n_items)

    def row(self, user: int) -> np.ndarray:
        """The items of one user.

        Args:
            user: The number of the user.

        Returns:
            The items (n,) int32, ascending.
        """
        return self.indices[self.indptr[user] : self.indptr[user + 1]]

    @cached_property
    def observed(self) -> Observed:
        """The pairs as compiled draws look them up, two bytes per pair."""
        from bayesneg.kernels.numba.observed import observed_pairs

        if self.prepared is not None:  # the digests of large files are not compared when they are mapped
            for part in released(row_blocks(len(self)), self.indices):
                check_numbers("items", self.indices[part], self.n_items, str(self.prepared))
        return observed_pairs(self.indptr, self.indices, self.n_items)

    @cached_property
    def _keys(self) -> np.ndarray:
        return self.users.astype(np.int64) * self.n_items + self.indices

    def contains(self, users: np.ndarray, items: np.ndarray) -> np.ndarray:
        """Look pairs up.

        Args:
            users: The numbers of the users, any shape.
            items: The numbers of the items, of a shape that broadcasts against that of the users.

        Returns:
            True where the user interacted with the item, of the broadcast shape.
        """
        wanted = np.asarray(users, dtype=np.int64) * self.n_items + np.asarray(items, dtype=np.int64)
        if len(self) == 0:
            return np.zeros(wanted.shape, dtype=bool)
        found = np.searchsorted(self._keys, wanted)
        return self._keys[np.minimum(found, len(self) - 1)] == wanted

    def select(self, mask: np.ndarray) -> Interactions:
        """Keep a part of the interactions.

        Args:
            mask: True (n,) for the interactions to keep.

        Returns:
            These interactions, over the same users and items.
        """
        counts = np.bincount(self.users[mask], minlength=self.n_users)
        return replace(
            self,
            indptr=np.concatenate(([0], np.cumsum(counts))).astype(np.int64),
            indices=self.indices[mask],
            times=None if self.times is None else self.times[mask],
            origin=None,
            prepared=None,
        )

    def user_range(self, start: int, stop: int) -> Interactions:
        """The interactions of a range of users, such as those of one process of many; nothing is copied.

        Args:
            start: Number of the first user.
            stop: Number after that of the last user.

        Returns:
            Their interactions as views of the same arrays; user ``start`` is number 0, and items keep their numbers.

        Example:
            >>> data = Interactions.from_pairs(["b", "a", "b", "c"], [7, 7, 9, 9])
            >>> data.user_range(1, 3).user_ids.tolist(), data.user_range(1, 3).indices.tolist()
            (['a', 'c'], [0, 1])
        """
        if not 0 <= start <= stop <= self.n_users:
            raise InputError(
                f"start and stop must be user numbers with 0 <= start <= stop <= {self.n_users:,}, got {start}, {stop}"
            )
        rows = slice(int(self.indptr[start]), int(self.indptr[stop]))
        return replace(
            self,
            indptr=self.indptr[start : stop + 1] - self.indptr[start],
            indices=self.indices[rows],
            times=None if self.times is None else self.times[rows],
            user_ids=self.user_ids[start:stop],
            user_columns={name: values[start:stop] for name, values in self.user_columns.items()},
            truth=None,  # it knows all users by their numbers
            origin=None,
            prepared=None,
        )

    def union(self, other: Interactions) -> Interactions:
        """Merge two parts of one dataset.

        Args:
            other: The other part, with the same identifiers.

        Returns:
            The interactions of both, each once.
        """
        if self.user_ids is not other.user_ids or self.item_ids is not other.item_ids:
            raise InputError("union needs two parts of one dataset; these have different identifiers")
        merged = Interactions.from_numbers(
            np.concatenate((self.users, other.users)), np.concatenate((self.indices, other.indices)),
            user_ids=self.user_ids, item_ids=self.item_ids, user_columns=self.user_columns,
            truth=self.truth, name=self.name,
        )  # fmt: skip
        return replace(merged, n_duplicates=self.n_duplicates, n_below_min_rating=self.n_below_min_rating)

    @cached_property
    def numbers_of_users(self) -> dict[Any, int]:
        """Raw identifier → number."""
        return {user: number for number, user in enumerate(self.user_ids.tolist())}

    @cached_property
    def numbers_of_items(self) -> dict[Any, int]:
        """Raw identifier → number."""
        return {item: number for number, item in enumerate(self.item_ids.tolist())}

    def user_number(self, user_id: Any) -> int:
        """Look a user up.

        Args:
            user_id: The raw identifier; an integer and its decimal string are the same.

        Returns:
            The number of the user.
        """
        return number_of(user_id, self.numbers_of_users, "user")

    def item_number(self, item_id: Any) -> int:
        """Look an item up.

        Args:
            item_id: The raw identifier; an integer and its decimal string are the same.

        Returns:
            The number of the item.
        """
        return number_of(item_id, self.numbers_of_items, "item")

    @cached_property
    def fingerprint(self) -> str:
        """A short sha256 over rows and identifiers, the same on every machine."""
        digest = hashlib.sha256()
        for array, form in ((self.indptr, "<i8"), (self.indices, "<i4")):
            for part in released(row_blocks(len(array)), array):  # a mapped array is never read as a whole
                digest.update(array[part].astype(form).tobytes())
        for ids in (self.user_ids, self.item_ids):
            for part in row_blocks(len(ids)):
                joint = "\x1f" if part.start else ""
                digest.update((joint + "\x1f".join(map(str, ids[part].tolist()))).encode())
        return digest.hexdigest()[:16]
