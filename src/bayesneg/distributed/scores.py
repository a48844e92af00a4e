"""The scores of this process's part of a mini-batch, from rows that were fetched."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from bayesneg.distributed.counting import Counting, Hidden
from bayesneg.distributed.group import ProcessGroup
from bayesneg.errors import InputError
from bayesneg.interfaces import Negatives
from bayesneg.kernels.numba.distributed import counts as compiled
from bayesneg.kernels.reference.mixing import HopMixing, Synthetic
from bayesneg.kernels.torch.choices.base import CountsInParts, DrawTensors, LearnsInParts
from bayesneg.models.torch.batch_scores import EmbeddingScores, MixesEmbeddings, ScoredBatch

WHOLE_LISTS = (
    "this sampler reads whole lists of scores, or of embeddings, and each process has a part of the catalogue; train "
    "in one process"
)


class FetchedScores(CountsInParts, LearnsInParts, MixesEmbeddings):
    """Scores x_ui = w_u · h_i with the numbers of the whole data, computed from few rows.

    Args:
        users: The embeddings (k, d) of the users of the batch, each once, with gradients.
        items: The embeddings (k', d) of the items that the batch needs, with gradients.
        which: The row (b,) of each example's user.
        ids: The numbers (k',) of the items, ascending.
        group: The processes.
        first_user: The number of this process's first user.
        counting: Counts over the whole catalogue, and what it needs for this batch; None for rules that do not count.
        more: Further arguments of :class:`~bayesneg.models.torch.batch_scores.EmbeddingScores`.
    """

    def __init__(
        self,
        users: Tensor,
        items: Tensor,
        which: Tensor,
        ids: Tensor,
        *,
        group: ProcessGroup,
        first_user: int,
        cosine: bool = False,
        ensemble_size: int = 1,
        first_layer: tuple[Tensor, Tensor] | None = None,
    ) -> None:
        self.within = EmbeddingScores(
            users, items, which, cosine=cosine, ensemble_size=ensemble_size, first_layer=first_layer
        )
        self.ids, self.group, self.first_user = ids, group, first_user
        self.counting: tuple[Counting, Tensor, Sequence[int], Hidden] | None = None
        self.past: Tensor | None = None  # (t, k', d) embeddings of the same items at earlier epoch ends
        self._pool: tuple[Tensor, Tensor] | None = None  # as given, and its rows
        self._scored: tuple[Tensor, EmbeddingScores] | None = None  # numbers, ascending, of more items than are learned

    def counts_by(self, counting: Counting, shard: Tensor, counts: Sequence[int], hidden: Hidden) -> None:
        """Say how F is counted for this batch."""
        self.counting = counting, shard, counts, hidden

    def scores_also(self, ids: Tensor, rows: Tensor) -> None:
        """Score further items with these numbers (n,) and embeddings (n, d), without gradients."""
        users, items = (part.detach() for part in self.within.given)
        every, order = torch.cat([self.ids, ids]).sort()
        table = torch.cat([items, rows]).index_select(0, order)
        self._scored = every, EmbeddingScores(users, table, self.within.which, cosine=self.within.cosine)

    def rows_of(self, items: Tensor) -> Tensor:
        """Where the items stand among the fetched rows; any place for −1."""
        return _places(self.ids, items)

    def kept_rows(self, users: Tensor) -> Tensor:
        return users - self.first_user

    def kept_items(self, table: Tensor, items: Tensor) -> Tensor:
        """Of the rows of ``table`` that were fetched as :attr:`past`."""
        if self.past is None:
            return table.new_empty(0, *items.shape, table.shape[2])
        return self.past[:, self.rows_of(items)]

    def of(self, items: Tensor) -> Tensor:
        ids, within = (self.ids, self.within) if self._scored is None else self._scored
        return within.of(_places(ids, items))

    def of_pool(self, pool: Tensor) -> Tensor:
        """Scores (b, N) of a pool (N,) of items that the batch shares, without gradients."""
        return self.within.of_pool(self._rows_of_pool(pool))

    def _rows_of_pool(self, pool: Tensor) -> Tensor:
        """The same tensor for the same pool, by which its scores are found again."""
        if self._pool is None or self._pool[0] is not pool:
            self._pool = pool, self.rows_of(pool)
        return self._pool[1]

    def counts_at_most(self, items: Tensor) -> tuple[Tensor, Tensor]:
        assert self.counting is not None
        counting, shard, counts, hidden = self.counting
        rows, w = self.rows_of(items), self.within.batch_users
        if w.device.type == "cpu":
            x = torch.from_numpy(compiled.scores_of_rows(w.numpy(), self.within.items.numpy(), rows.numpy()))
        else:
            x = self.within.of(rows)
        shard = self.within._unit(shard)
        return x, counting.at_most(w, x[:, 1:], items[:, 1:], shard, counts, hidden)

    def user_vectors(self) -> Tensor:
        return self.within.user_vectors()

    def item_vectors(self) -> Tensor:
        raise InputError(WHOLE_LISTS)

    def table_of(self, items: Tensor) -> tuple[Tensor, Tensor]:
        return self.within.items, self.rows_of(items)

    def mean_of_all(self, mean: Tensor, n: Tensor) -> Tensor:
        total = self.group.sum(torch.cat([(mean * n).flatten(), n.to(mean.dtype)[None]]), "gates")
        return (total[:-1] / total[-1].clamp(min=1)).view_as(mean)

    def mixed(self, rule: HopMixing, draws: DrawTensors, positives: Tensor) -> Synthetic:
        within = draws._replace(candidates=self.rows_of(draws.candidates.clamp(min=0)))
        places, vectors = self.within.mixed(rule, within, self.rows_of(positives))
        return Synthetic(torch.where(places >= 0, self.ids[places.clamp(min=0)], -1), vectors)

    def chunk(self, first: int, last: int) -> Tensor:
        raise InputError(WHOLE_LISTS)

    def rows(self, part: slice) -> Tensor:
        raise InputError(WHOLE_LISTS)

    def backward(self, positives: Tensor, negatives: Tensor, strength: float) -> Tensor:
        """As :meth:`EmbeddingScores.backward`."""
        rows = torch.where(negatives >= 0, self.rows_of(negatives), -1)
        return self.within.backward(self.rows_of(positives), rows, strength)

    def scored(self, positives: Tensor, negatives: Negatives) -> ScoredBatch:
        """As :meth:`EmbeddingScores.scored`."""
        return self.within.scored(self.rows_of(positives), self._within(negatives))

    def penalty(self, positives: Tensor, negatives: Negatives, shares: Tensor, strength: float) -> Tensor:
        """As :meth:`EmbeddingScores.penalty`."""
        return self.within.penalty(self.rows_of(positives), self._within(negatives), shares, strength)

    def _within(self, negatives: Negatives) -> Negatives:
        if negatives.is_shared:
            return negatives._replace(items=self._rows_of_pool(negatives.items))
        return negatives._replace(items=torch.where(negatives.items >= 0, self.rows_of(negatives.items), -1))


def _places(ids: Tensor, items: Tensor) -> Tensor:
    """Where items stand among ascending numbers; any place for one that is not there."""
    return torch.searchsorted(ids, items.contiguous()).clamp(max=len(ids) - 1)
