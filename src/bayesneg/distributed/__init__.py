"""Training in several processes, launched by ``torchrun``: tables of embeddings sharded by row, plain collectives.

A user, with its training pairs and its embedding, belongs to one process; items are divided by number. All processes
see the same mini-batches and each trains the examples of its users. Rows of items are fetched from their owners and
gradients are sent back, for each mini-batch.
"""

from __future__ import annotations

import sys


def is_distributed() -> bool:
    """Whether this process is one of a group of torch; torch is not imported for it."""
    torch = sys.modules.get("torch")
    return torch is not None and torch.distributed.is_available() and torch.distributed.is_initialized()
