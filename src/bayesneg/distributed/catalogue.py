"""A trained model in parts: scores, rankings and metrics over the items of all processes.

Every process ranks its users. The embeddings of a block of users of all processes are gathered, each process finds the
best of its items for all of them, and the lists go back to the users' owners, who merge them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from bayesneg.data.interactions import Interactions
from bayesneg.distributed.counting import Counting, Hidden, rows_of
from bayesneg.distributed.sharding.exchange import Exchange
from bayesneg.distributed.sharding.owners import Owners
from bayesneg.errors import InputError
from bayesneg.evaluation._topk import top_k
from bayesneg.interfaces import Embeddings
from bayesneg.kernels.numba.distributed import counts as compiled
from bayesneg.kernels.torch.ranking import top_items
from bayesneg.kernels.torch.score_lists import TrainingRows

SCORES = 1 << 24  # held at once
NOT_WHOLE = "the embeddings are divided among processes and no process has them all; export the run and load it"


class ShardedScorer:
    """x_ui = w_u · h_i of embeddings that are divided among processes, which call every method together.

    Args:
        users: The embeddings of this process's users.
        items: The embeddings of this process's items.
        exchange: Who has which items, and how their rows are exchanged.
        owners: Who has which users.
        train: The training pairs of this process's users, under their numbers.
        cold: Whether users without a training pair are ranked by popularity.
        known: True (n_users,) and (n_items,) for those whom an earlier run has learned about: they are not cold.
    """

    def __init__(
        self,
        users: Tensor,
        items: Tensor,
        exchange: Exchange,
        owners: Owners,
        train: Interactions,
        *,
        cold: bool = False,
        known: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> None:
        self.users, self.items, self.group = users, items, exchange.group
        self.plain_users, self.plain_items, self.known = users, items, known
        self.owners, self.exchange = owners, exchange
        self.first, self.last = owners.range_of(self.group.rank)
        self.n_users, self.n_items = train.n_users, train.n_items
        self.counting = Counting(self.group, exchange.owners, train)
        self.n_cold = 0  # of this process's users, ranked by popularity
        if cold:
            self._rank_cold_users_by_popularity(train)

    def _rank_cold_users_by_popularity(self, train: Interactions) -> None:
        """One more column: the popularity of an item, and 1 for users of whom nothing else is known."""
        unseen = np.diff(train.indptr[self.first : self.last + 1]) == 0
        if self.known is not None:
            unseen &= ~self.known[0][self.first : self.last]
        self.n_cold = int(np.count_nonzero(unseen))
        is_cold = torch.from_numpy(unseen).to(self.users.device)
        any_cold = self.group.sum(is_cold.any().long())
        if int(any_cold) == 0:
            return
        popularity = self.group.sum(torch.tensor(train.popularity, device=self.group.device), "popularity")
        low, high = self.exchange.first, self.exchange.last
        self.items = torch.cat([self.items, popularity[low:high, None].float()], dim=1)
        users = torch.where(is_cold[:, None], 0.0, self.users)
        self.users = torch.cat([users, is_cold[:, None].float()], dim=1)

    def embeddings(self) -> Embeddings:
        raise InputError(NOT_WHOLE)

    # --------------------------------------------------------------------------------------- the same users everywhere

    def score_all(self, users: np.ndarray) -> np.ndarray:
        """As :meth:`~bayesneg.interfaces.Scorer.score_all`; all processes give the same users."""
        w = self._vectors_of(users)
        x = (w @ self.items.T).T.contiguous()  # (n, B)
        counts = np.diff(self.exchange.owners.bounds).tolist()
        return self.group.gather(x, counts, "scores").T.contiguous().cpu().numpy()

    def score(self, users: np.ndarray, items: np.ndarray) -> np.ndarray:
        """As :meth:`~bayesneg.interfaces.Scorer.score`; all processes give the same users and items."""
        w, which = self._vectors_of(users), torch.as_tensor(np.asarray(items, dtype=np.int64)).to(self.items.device)
        low, high = self.exchange.first, self.exchange.last
        inside = (which >= low) & (which < high)
        rows = self.items[(which - low).clamp(0, high - low - 1)]
        x = torch.where(inside, (w[:, None, :] * rows).sum(dim=2), 0.0)
        return self.group.sum(x, "scores").cpu().numpy()

    def _vectors_of(self, users: np.ndarray) -> Tensor:
        """The embeddings (B, d) of any users, on all processes."""
        which = torch.as_tensor(np.asarray(users, dtype=np.int64)).to(self.users.device)
        inside = (which >= self.first) & (which < self.last)
        rows = self.users[(which - self.first).clamp(0, self.last - self.first - 1)]
        return self.group.sum(torch.where(inside[:, None], rows, 0.0), "users and scores")

    # ------------------------------------------------------------------------------------------- each process its users

    def own_part(self, users: np.ndarray) -> slice:
        """Where this process's users stand among these ascending ones."""
        low, high = np.searchsorted(users, [self.first, self.last])
        return slice(int(low), int(high))

    def rounds(self, n: int) -> int:
        """The most rounds that any process needs, of which this one needs n: all take part in each."""
        return self.group.most(n)

    def ranked(
        self, users: np.ndarray, labels: Interactions, seen: Interactions, k: int, *, with_auc: bool
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The best items of this process's users, and the counts behind the AUC.

        Args:
            users: Some users of this process; others give theirs.
            labels: The pairs to be found.
            seen: The pairs that are not ranked.
            k: The length of a list; 0 for none.
            with_auc: Whether to count for the AUC.

        Returns:
            Items (B, k) int32, −1 where fewer are left; the pairs of a test item and a negative in the right order
            (B,), a tie as half; the negatives (B,).
        """
        ordered, n_negatives = np.zeros(len(users)), np.zeros(len(users), dtype=np.int64)
        items = self.top(users, seen, k)[0] if k else np.empty((len(users), 0), dtype=np.int32)
        if with_auc:
            for part in self._parts(len(users)):
                ordered[part], n_negatives[part] = self._auc_counts(users[part], labels, seen)
        return items, ordered, n_negatives

    def top(self, users: np.ndarray, seen: Interactions | None, k: int) -> tuple[np.ndarray, np.ndarray]:
        """The best items (B, k) of this process's users and their scores, by score and then by item number."""
        items, scores = np.empty((len(users), k), dtype=np.int32), np.empty((len(users), k), dtype=np.float32)
        for part in self._parts(len(users)):
            items[part], scores[part] = self._top_of_block(users[part], seen, k)
        return items, scores

    def kth_highest(self, k: int) -> np.ndarray:
        """The k-th highest score of each of this process's users over the whole catalogue."""
        return self.top(np.arange(self.first, self.last), None, k)[1][:, -1]

    def _parts(self, n: int) -> Iterator[slice]:
        """Slices of n users whose scores are held at once; as many, some empty, in each process."""
        step = max(1, SCORES // self.n_items)
        for number in range(self.rounds(-(-n // step))):
            yield slice(number * step, (number + 1) * step)

    def _top_of_block(self, users: np.ndarray, seen: Interactions | None, k: int) -> tuple[np.ndarray, np.ndarray]:
        """The best items (B, k) of this process's users and their scores, by score and then by item number."""
        counts, hidden, w = self._gathered(users, seen)
        width = min(k, len(self.items))
        found, x = self._best_of_shard(w, hidden, width)
        # a shard may have fewer items than k: lists of all processes have one width
        found, x = (
            np.pad(part, ((0, 0), (0, k - width)), constant_values=fill) for part, fill in ((found, -1), (x, 0))
        )
        x = np.where(found >= 0, x, -np.inf).astype(np.float32)
        found = np.where(found >= 0, found + self.exchange.first, -1)
        to, of = list(counts), [len(users)] * self.group.size
        lists, scores = (
            self.group.exchange(torch.from_numpy(np.ascontiguousarray(part)).to(self.group.device), to, of, "lists")
            .view(self.group.size, len(users), k).permute(1, 0, 2).flatten(1).cpu().numpy()
            for part in (found.astype(np.int32), x)
        )  # fmt: skip
        # processes have ascending ranges of items, so that of equal scores the lower number comes first
        order = np.lexsort((np.where(lists < 0, 1, 0), -scores), axis=1)[:, :k]
        return np.take_along_axis(lists, order, axis=1), np.take_along_axis(scores, order, axis=1)

    def _gathered(self, users: np.ndarray, seen: Interactions | None) -> tuple[list[int], Hidden, Tensor]:
        """How many users each process gives, what is not counted here, and the embeddings of all."""
        counts = self._counts(len(users))
        (hidden,) = self.counting.hidden([users], np.array([counts]), seen)
        own = self.users[torch.from_numpy(users - self.first).to(self.users.device)]
        if sum(counts) == 0:
            return counts, hidden, own
        return counts, hidden, self.group.gather(own, counts, "users and scores")

    def _best_of_shard(self, w: Tensor, hidden: Hidden, k: int) -> tuple[np.ndarray, np.ndarray]:
        """The best of this process's items for all gathered users, and their scores."""
        everybody = np.arange(len(w))
        if w.device.type == "cpu":
            x = (w @ self.items.T).numpy()
            found = top_k(x, everybody, hidden.starts, hidden.rows.astype(np.int32), k)
            return found, np.take_along_axis(x, np.maximum(found, 0), axis=1)
        indptr, rows = (torch.from_numpy(part).to(w.device) for part in (hidden.starts, hidden.rows.astype(np.int32)))
        longest = int(np.diff(hidden.starts).max(initial=0))
        which = torch.from_numpy(everybody).to(w.device)
        best = top_items(
            w, self.items, which, TrainingRows(indptr, rows, len(self.items), longest), k, scores_at_once=SCORES
        ).long()
        scores = (w[:, None, :] * self.items[best.clamp(min=0)]).sum(dim=2)
        return best.cpu().numpy(), scores.cpu().numpy()

    def _auc_counts(self, users: np.ndarray, labels: Interactions, seen: Interactions) -> tuple[np.ndarray, np.ndarray]:
        """Ordered pairs and negatives of each user; the negatives are neither seen nor to be found."""
        known = _merged(users, seen, labels)
        tests = labels.indptr[users + 1] - labels.indptr[users]
        width = self.group.most(int(tests.max(initial=0)))
        items = np.full((len(users), width), -1, dtype=np.int64)
        there = np.arange(width) < tests[:, None]
        items[there] = np.concatenate([labels.row(user) for user in users.tolist()] or [np.empty(0, dtype=np.int32)])
        ids = np.unique(items[there])
        (route,) = self.exchange.routes([torch.from_numpy(ids.astype(np.int32)).to(self.items.device)])
        rows = self.exchange.fetch(self.items, route)
        counts = self._counts(len(users))
        (hidden,) = self.counting.hidden([np.arange(len(users))], np.array([counts]), known)
        w = self.users[torch.from_numpy(users - self.first).to(self.users.device)]
        places = np.searchsorted(ids, items).clip(0, max(0, len(ids) - 1))
        if w.device.type == "cpu":
            x = compiled.scores_of_rows(w.numpy(), rows.numpy(), places)
        else:
            x = (w[:, None, :] * rows[torch.from_numpy(places).to(w.device)]).sum(dim=2).cpu().numpy()
        x = np.where(there, x, np.nan).astype(np.float32)
        both = torch.from_numpy(np.concatenate([x, np.nextafter(x, np.float32(-np.inf))], axis=1)).to(w.device)
        nothing = torch.full(both.shape, -1, dtype=torch.int64, device=w.device)
        found = self.counting.at_most(w, both, nothing, self.items, counts, hidden).cpu().numpy()
        return found.sum(axis=1) / 2, self.n_items - np.diff(known.indptr)

    def _counts(self, n: int) -> list[int]:
        """How many users each process gives, of which this one gives n."""
        found = torch.zeros(self.group.size, dtype=torch.int64, device=self.group.device)
        found[self.group.rank] = n
        return [int(count) for count in self.group.sum(found, "counts").tolist()]

    def joined(self, values: Mapping[str, np.ndarray], reached: np.ndarray) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """The values of all processes' users, one process after the other, and what any of them has reached."""
        names: Sequence[str] = list(values)
        n = len(next(iter(values.values()))) if names else 0
        own = torch.from_numpy(np.stack([values[name] for name in names], axis=1) if names else np.empty((n, 0)))
        counts = [int(count) for count in self.group.objects(n)]
        whole = self.group.gather(own.to(self.group.device), counts, "metrics").cpu().numpy()
        found = self.group.sum(torch.from_numpy(reached.astype(np.int32)).to(self.group.device), "metrics")
        return {name: whole[:, place].copy() for place, name in enumerate(names)}, found.cpu().numpy() > 0


def _merged(users: np.ndarray, one: Interactions, other: Interactions) -> Interactions:
    """The pairs of either, for these users, who become 0, 1, …"""
    n_items = one.n_items
    keys = []
    for data in (one, other):
        lengths, items = rows_of(data, users)
        keys.append(np.repeat(np.arange(len(users)), lengths).astype(np.int64) * n_items + items)
    both = np.unique(np.concatenate(keys))
    counts = np.bincount(both // n_items, minlength=len(users))
    return replace(
        one, indptr=np.concatenate(([0], np.cumsum(counts))), indices=(both % n_items).astype(np.int32),
        user_ids=one.user_ids[users], times=None, user_columns={}, truth=None, origin=None, prepared=None,
    )  # fmt: skip
