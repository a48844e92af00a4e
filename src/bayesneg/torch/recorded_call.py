"""The calls of a sampler on a GPU as one CUDA graph: its kernels take less time than launching them one by one."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import Tensor

from bayesneg.interfaces import Negatives

RECORDINGS = 4  # in an epoch; a loop whose embeddings move about in memory is better left alone


class RecordedCalls:
    """Replays a call that is made again with as many examples, the embeddings at the same addresses, in one stream.

    The negatives are those of the call itself. It must depend on the examples, the memory at these addresses and the
    generator alone.

    Args:
        generator: The generator of all draws, on the GPU.
    """

    def __init__(self, generator: torch.Generator) -> None:
        self.generator = generator
        self.begin_epoch()

    def begin_epoch(self) -> None:
        """Forget the recording: schedules go on with the epoch."""
        self._graph: torch.cuda.CUDAGraph | None = None
        self._recorded: Any = None  # what the recorded call was made with
        self._last: Any = None  # what the last call was made with
        self._left = RECORDINGS

    def of(
        self,
        call: Callable[[Tensor, Tensor], Negatives],
        users: Tensor,
        positives: Tensor,
        embeddings: tuple[Tensor, Tensor],
    ) -> Negatives:
        """The negatives of a batch.

        Args:
            call: Samples for users (B,) and positives (B,); the embeddings are those it reads.
            users: The users (B,), int64.
            positives: The positives (B,), int64.
            embeddings: The embeddings of all users and of all items.
        """
        if torch.is_inference_mode_enabled():  # what is recorded there cannot be written to elsewhere
            return call(users, positives)
        where = ((part.data_ptr(), part.shape, part.stride(), part.dtype) for part in embeddings)
        same = torch.cuda.current_stream(users.device).cuda_stream, len(users), *where
        if self._graph is None or same != self._recorded:
            again, self._last = same == self._last, same
            if not again or self._left == 0 or torch.cuda.is_current_stream_capturing():
                return call(users, positives)
            self._record(call, users)
            self._recorded = same
        torch.stack((users, positives), out=self._given)
        assert self._graph is not None
        self._graph.replay()
        return Negatives(*(None if part is None else part.clone() for part in self._found))

    def _record(self, call: Callable[[Tensor, Tensor], Negatives], users: Tensor) -> None:
        """Record the call; nothing is sampled yet."""
        self._left -= 1
        self._graph = self._recorded = None  # until it is recorded: memory may run out
        self._given = torch.zeros(2, len(users), dtype=torch.int64, device=users.device)
        graph = torch.cuda.CUDAGraph()
        graph.register_generator_state(self.generator)
        with torch.cuda.graph(graph, stream=stream_on(users.device), capture_error_mode="thread_local"):
            self._found = call(*self._given.unbind())
        self._graph = graph


@cache
def stream_on(device: torch.device) -> torch.cuda.Stream:
    """The stream that graphs of a GPU are recorded in; that of torch belongs to whichever GPU recorded first."""
    return torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
