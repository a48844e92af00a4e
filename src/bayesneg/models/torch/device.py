"""The device that a torch model trains on, and the error when its memory is full."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from bayesneg.errors import BayesnegError, InputError
from bayesneg.models.torch.settings import TorchSettings


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
