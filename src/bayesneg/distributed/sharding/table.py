"""The rows of a table of embeddings that one process owns, with their Adam."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor, nn

from bayesneg.models.torch.adam import Adam
from bayesneg.models.torch.settings import TorchSettings

ROWS = 1 << 14  # of initial embeddings drawn at once


class OwnedRows:
    """Rows of a table and the moments of Adam, all of one process.

    With ``adam_rows="all"`` a step moves every row, as on a single process: a row without a gradient follows its
    moments and the weight decay. This is work of the owner alone and sends nothing. With ``"touched"`` a step moves the
    rows that have a gradient.

    Args:
        first: The initial rows (n, d) float32.
        settings: Learning rate, weight decay and which rows a step moves.
        device: Where the rows are.
    """

    def __init__(self, first: np.ndarray, settings: TorchSettings, device: torch.device) -> None:
        self.weight = nn.Parameter(torch.from_numpy(first).to(device))
        on_gpu = device.type == "cuda"
        rate = settings.learning_rate
        self.optimizer = Adam(
            [self.weight],
            lr=torch.tensor(rate, device=device) if on_gpu else rate,
            weight_decay=settings.strength if settings.penalty == "weight_decay" else 0.0,
            fused=True,
            capturable=on_gpu,
            rows=settings.adam_rows,
        )
        self._gradient: Tensor | None = None

    @property
    def rows(self) -> Tensor:
        """The rows without gradients."""
        return self.weight.detach()

    def step(self, touched: Tensor, gradients: Tensor) -> None:
        """A step of Adam.

        Args:
            touched: Rows (t,) with a gradient, each once.
            gradients: Their gradients (t, d).
        """
        if self.optimizer.moves_all_rows:
            if self._gradient is None:
                self._gradient = torch.zeros_like(self.weight)
            self._gradient.zero_().index_copy_(0, touched, gradients)
            self.weight.grad = self._gradient
            self.optimizer.step()
        else:
            self.optimizer.step_rows(self.weight, touched, gradients)

    def step_with(self, gradient: Tensor) -> None:
        """A step of Adam with a gradient (n, d) of every row."""
        self.weight.grad = gradient
        self.optimizer.step()

    def set_learning_rate(self, rate: float) -> None:
        for group in self.optimizer.param_groups:
            if isinstance(group["lr"], Tensor):
                group["lr"].fill_(rate)
            else:
                group["lr"] = rate

    def state(self) -> dict[str, Tensor]:
        """The rows, the moments and the number of steps; writing to them changes the table."""
        self.optimizer.begin(self.weight)
        found = self.optimizer.state[self.weight]
        return {"rows": self.rows, "mean": found["exp_avg"], "square": found["exp_avg_sq"], "step": found["step"]}


def initial_rows(
    rng: np.random.Generator,
    scale: float,
    ranges: tuple[tuple[int, int], tuple[int, int]],
    n_users: int,
    n: int,
    d: int,
) -> tuple[np.ndarray, np.ndarray]:
    """The initial embeddings of a range of users and of one of items: those that one process alone would draw.

    Every process draws the whole stream in blocks and keeps its rows: a normal deviate takes a varying number of bits,
    so that no part of the stream can be skipped.

    Args:
        rng: The stream of initial embeddings.
        scale: The standard deviation.
        ranges: The first and the last number of the users, and of the items, of this process.
        n_users: The number of users, whose rows come first.
        n: The number of users and items.
        d: The width of a row.

    Returns:
        The rows of users and of items, float32.
    """
    (u0, u1), (i0, i1) = ranges
    kept = [(u0, u1), (n_users + i0, n_users + i1)]
    found = [np.empty((stop - start, d), dtype=np.float32) for start, stop in kept]
    for first, block in _blocks(rng, scale, n, d):
        for (start, stop), rows in zip(kept, found, strict=True):
            low, high = max(start, first), min(stop, first + len(block))
            if low < high:
                rows[low - start : high - start] = block[low - first : high - first]
    return found[0], found[1]


def _blocks(rng: np.random.Generator, scale: float, n: int, d: int) -> Iterator[tuple[int, np.ndarray]]:
    for first in range(0, n, ROWS):
        yield first, rng.normal(0.0, scale, (min(ROWS, n - first), d)).astype(np.float32)
