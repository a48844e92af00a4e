"""The device that a torch model trains on, ranking there, and the error when its memory is full."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import islice
from typing import TypeVar

import numpy as np
import torch

from bayesneg.data.interactions import Interactions
from bayesneg.errors import BayesnegError, InputError
from bayesneg.kernels.torch.ranking import top_items
from bayesneg.kernels.torch.score_lists import TrainingRows
from bayesneg.models.scorers import Cold, EmbeddingScorer
from bayesneg.models.torch.settings import TorchSettings

Given = TypeVar("Given")
Made = TypeVar("Made")


def pick_device(name: str) -> torch.device:
    if name == "cuda" and not torch.cuda.is_available():
        raise InputError("device is 'cuda', but torch sees no GPU here; use device='cpu' (--device cpu) or 'auto'")
    return torch.device("cuda" if name == "cuda" or (name == "auto" and torch.cuda.is_available()) else "cpu")


def device_name(name: str) -> str:
    """The name of the GPU that ``name`` leads to; empty for the CPU."""
    device = pick_device(name)
    return torch.cuda.get_device_name(device) if device.type == "cuda" else ""


@contextmanager
def memory_named(device: torch.device, settings: TorchSettings) -> Iterator[None]:
    """Turn an out-of-memory error into one that says which settings to lower."""
    try:
        yield
    except (torch.OutOfMemoryError, MemoryError, RuntimeError) as error:
        if type(error) is RuntimeError and "DefaultCPUAllocator" not in str(error):
            raise
        raise BayesnegError(
            f"out of memory on {device.type}: lower batch_size (now {settings.batch_size}), "
            f"chunk (now {settings.chunk}) or the dimension of the embeddings"
        ) from error


def rows_on(data: Interactions, device: torch.device) -> TrainingRows:
    """Interactions on a device."""
    indptr, items = torch.from_numpy(data.indptr.copy()), torch.from_numpy(data.indices.copy())
    return TrainingRows(indptr.to(device), items.to(device), data.n_items, int(data.counts.max(initial=0)))


class EmbeddingsRankedOnGPU(EmbeddingScorer):
    """x_ui = w_u · h_i, in host memory; a GPU ranks the catalogue.

    Args:
        users: The users' embeddings (n_users, d) float32.
        items: The items' embeddings (n_items, d) float32.
        device: The GPU.
        scores_at_once: The number of scores that are held there at once.
        cold: Users and items whose embeddings say nothing; None where there are none.
    """

    def __init__(
        self,
        users: np.ndarray,
        items: np.ndarray,
        device: torch.device,
        scores_at_once: int,
        *,
        cold: Cold | None = None,
    ) -> None:
        super().__init__(users, items, cold=cold)
        self.device, self.scores_at_once = device, scores_at_once

    def top_items(self, users: np.ndarray, seen: Interactions, k: int) -> np.ndarray:
        """As declared by :class:`~bayesneg.interfaces.RanksOnDevice`."""
        vectors, items, which = (torch.from_numpy(part).to(self.device) for part in (self.users, self.items, users))
        rows, at_once = rows_on(seen, self.device), self.scores_at_once
        found = top_items(vectors, items, which, rows, k, scores_at_once=at_once)
        if self.cold is not None and (cold := self.cold.users[users]).any():
            same = torch.from_numpy(self.cold.popularity[:, None]).to(self.device)
            ones, is_cold = vectors.new_ones(len(vectors), 1), torch.from_numpy(cold).to(self.device)
            found[is_cold] = top_items(ones, same, which[is_cold], rows, k, scores_at_once=at_once)
        return found.cpu().numpy()


def one_ahead(make: Callable[[Given], Made], given: Iterable[Given], device: torch.device) -> Iterator[Made]:
    """What ``make`` makes of each, the next one in a thread while this one is used: host and GPU work side by side.

    Args:
        make: Called in the thread.
        given: Read in the thread of the caller.
        device: The GPU, or the CPU, that ``make`` copies to.
    """

    def begin() -> None:
        if device.type == "cuda":
            torch.cuda.set_device(device)  # a thread has its own current device

    rest = iter(given)
    with ThreadPoolExecutor(1, initializer=begin) as pool:
        coming = [pool.submit(make, one) for one in islice(rest, 1)]
        while coming:
            ready = coming.pop().result()
            coming = [pool.submit(make, one) for one in islice(rest, 1)]
            yield ready
