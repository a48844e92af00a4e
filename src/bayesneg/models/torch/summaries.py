"""Summaries of the users' score lists on a GPU, as ``kernels/numba/summaries.py`` computes them on the CPU."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from bayesneg.integrity.arrays import ArraySpec, check_arrays
from bayesneg.kernels.torch.formulas import lengths_of, summarise
from bayesneg.kernels.torch.score_lists import TrainingRows

SCORES = 1 << 24  # held at once while summaries are computed
STATE = "knots", "then", "made", "items", "weights", "slots"


class TorchSummaries:
    """The knots (n_users, K) of all users, with the epoch and the embedding of the last computation of each."""

    def __init__(self, rows: TrainingRows, ranks: np.ndarray, dim: int, device: torch.device) -> None:
        n_users = len(rows.indptr) - 1
        self.rows, self.ranks = rows, torch.from_numpy(ranks).to(device)
        self.knots = torch.zeros(n_users, len(ranks), device=device)
        self.then = torch.zeros(n_users, dim, device=device)
        self.made = torch.full((n_users,), -1, dtype=torch.int32, device=device)
        self.epoch = -1

    def state_dict(self) -> dict[str, Tensor]:
        """What the rest of an epoch needs, on the device."""
        kept = {name: getattr(self, name) for name in STATE}
        return {**kept, "epoch": torch.tensor(self.epoch)}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Restore a state, from any device, after it was checked."""
        (n_users, n_knots), n_items = self.knots.shape, self.rows.n_items
        specs = {
            "knots": ArraySpec((n_users, n_knots), "float32"),
            "then": ArraySpec((n_users, self.then.shape[1]), "float32"),
            "made": ArraySpec((n_users,), "int32", least=-1),
            "items": ArraySpec(("pool",), "integer", least=0, below=n_items),
            "weights": ArraySpec(("pool",), "integer", least=0),
            "slots": ArraySpec((n_items,), "integer", least=-1, below="pool"),
            "epoch": ArraySpec((), "integer", least=-1),
        }
        check_arrays({key: value.cpu().numpy() for key, value in state.items()}, specs, {}, only=True)
        for name in STATE:
            setattr(self, name, state[name].to(self.knots.device, copy=True))
        self.epoch = int(state["epoch"])

    def refresh(
        self, which: Tensor, vectors: tuple[Tensor, Tensor], epoch: int, *, moved: float, pool: int, over_all: bool
    ) -> Tensor:
        """Refresh the knots of the users ``which``: once an epoch, and where an embedding has moved too far."""
        users, items = vectors
        if epoch != self.epoch:
            self.epoch = epoch
            self._choose_pool(users, items, pool)
        which = which.unique()  # type: ignore[no-untyped-call]
        gone = (users[which] - self.then[which]).norm(dim=1) / lengths_of(self.then[which])[:, 0]
        due = which[(self.made[which] != epoch) | (gone > moved)]
        pooled = self._pooled(items)
        for part in due.split(max(1, SCORES // len(pooled))):  # type: ignore[no-untyped-call]
            own = users[part]
            x, weights = own @ pooled.T, self.weights.repeat(len(part), 1)
            if not over_all:
                self._leave_out_observed(part, weights)
            self.knots[part] = summarise(x, weights, self.ranks) / lengths_of(own)
        self.then[due], self.made[due] = users[due], epoch
        return self.knots

    def _pooled(self, items: Tensor) -> Tensor:
        """The embeddings of the pool's items."""
        return items[self.items]

    def _choose_pool(self, users: Tensor, items: Tensor, size: int) -> None:
        from bayesneg.kernels.numba.summaries import pool_of

        chosen = pool_of(users.cpu().numpy(), items.cpu().numpy(), size)
        self.items, self.weights, self.slots = (torch.from_numpy(array).to(users.device) for array in chosen)

    def _leave_out_observed(self, part: Tensor, weights: Tensor) -> None:
        """Set the weights (B, P) of observed items to 0."""
        counts = self.rows.counts(part)
        examples = torch.arange(len(part), device=part.device).repeat_interleave(counts)
        shifts = self.rows.indptr[part] - (counts.cumsum(0) - counts)
        where = torch.arange(len(examples), device=part.device) + shifts[examples]
        places = self.slots[self.rows.items[where].long()]
        weights[examples[places >= 0], places[places >= 0].long()] = 0
