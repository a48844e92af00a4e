"""What every model trained with torch can be told."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from typing import Literal

from bayesneg.checks import number, one_of, whole
from bayesneg.errors import InputError

REFERENCE_BATCH = 128  # of ``scale_regularization``: the paper's batch on ML-100K


def require_torch(what: str) -> None:
    if find_spec("torch") is None:
        raise InputError(f"{what} needs torch, which is not installed; run: pip install 'bayesneg[torch]'")


@dataclass(frozen=True, kw_only=True)
class TorchSettings:
    """Mini-batches of ``batch_size``, the BPR loss averaged over the batch, Adam.

    The learning rate is multiplied by ``decay`` every ``decay_every`` epochs. ``penalty="weight_decay"`` pulls all
    parameters towards 0 inside Adam; ``"batch"`` only the embeddings of the batch, as a term of the loss. With
    ``scale_regularization`` the strength is ``regularization`` · 128 / ``batch_size``, so that an epoch, which takes
    fewer steps with larger batches, pulls as much. ``device`` is "auto", "cpu" or "cuda". ``chunk`` is how many scores
    are held at once where a sampler looks at the whole catalogue.
    """

    learning_rate: float = 0.01
    decay: float = 0.1
    decay_every: int = 20
    regularization: float = 1e-5
    penalty: Literal["weight_decay", "batch"] = "weight_decay"
    scale_regularization: bool = True
    batch_size: int = 128
    shuffle: Literal["once", "epoch"] = "epoch"
    device: Literal["auto", "cpu", "cuda"] = "auto"
    chunk: int = 1 << 24

    def __post_init__(self) -> None:
        for name in ("batch_size", "decay_every", "chunk"):
            whole(name, getattr(self, name))
        number("learning_rate", self.learning_rate, above=0)
        number("decay", self.decay, above=0)
        number("regularization", self.regularization, least=0)
        one_of("penalty", self.penalty, ("weight_decay", "batch"))
        one_of("shuffle", self.shuffle, ("once", "epoch"))
        one_of("device", self.device, ("auto", "cpu", "cuda"))

    @property
    def strength(self) -> float:
        """The regularization in force, after scaling."""
        return self.regularization * (REFERENCE_BATCH / self.batch_size if self.scale_regularization else 1.0)

    def rate_at(self, epoch: int) -> float:
        """The learning rate of an epoch, from 1."""
        return self.learning_rate * self.decay ** ((epoch - 1) // self.decay_every)
