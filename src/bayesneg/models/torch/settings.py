"""The training settings that all torch models share."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from typing import Literal

from bayesneg.checks import number, one_of, whole
from bayesneg.errors import InputError

REFERENCE_BATCH = 128  # of ``scale_regularization``: the batch size of the BNS paper on ML-100K


def require_torch(what: str) -> None:
    if find_spec("torch") is None:
        raise InputError(f"{what} needs torch, which is not installed; run: pip install 'bayesneg[torch]'")


@dataclass(frozen=True, kw_only=True)
class TorchSettings:
    """How a torch model is trained: mini-batches, the loss averaged over the batch, Adam.

    Args:
        learning_rate: The step size of Adam.
        decay: The factor by which the learning rate is multiplied every ``decay_every`` epochs; 1 keeps it constant.
        decay_every: The number of epochs between two decays of the learning rate.
        regularization: The strength of the L2 penalty.
        penalty: What the L2 penalty is on: ``"weight_decay"`` all parameters, inside Adam; ``"batch"`` the embeddings
            of the mini-batch, as a term of the loss; ``"first_layer"`` the first-layer embeddings of the mini-batch,
            as in the original LightGCN.
        scale_regularization: Whether the penalty is multiplied by 128 / ``batch_size``, so that an epoch, which takes
            fewer steps with larger batches, shrinks the parameters as much.
        adam_rows: Which embeddings a step of Adam moves: ``"all"``, also those without a gradient, by their moments and
            the weight decay; or the ``"touched"`` ones of the mini-batch, which takes time in proportion to it.
        batch_size: The number of training pairs per step, of all processes together.
        shuffle: ``"epoch"`` draws a new order of the training pairs for each epoch; ``"once"`` keeps one order.
        device: Where the model trains: ``"cuda"``, ``"cpu"``, or ``"auto"``, a GPU where there is one.
        chunk: The number of scores held at once where a sampler looks at the whole catalogue.
        similarity: What a score is in training: the ``"inner"`` product of embeddings, or their ``"cosine"``.
        ranking: What items are ranked by after training: the ``"same"`` score, ``"inner"`` or ``"cosine"``.
    """

    learning_rate: float = 0.01
    decay: float = 1.0
    decay_every: int = 20
    regularization: float = 1e-5
    penalty: Literal["weight_decay", "batch", "first_layer"] = "weight_decay"
    scale_regularization: bool = False
    adam_rows: Literal["all", "touched"] = "all"
    batch_size: int = 128
    shuffle: Literal["once", "epoch"] = "epoch"
    device: Literal["auto", "cpu", "cuda"] = "auto"
    chunk: int = 1 << 24
    similarity: Literal["inner", "cosine"] = "inner"
    ranking: Literal["same", "inner", "cosine"] = "same"

    def __post_init__(self) -> None:
        for name in ("batch_size", "decay_every", "chunk"):
            whole(name, getattr(self, name))
        number("learning_rate", self.learning_rate, above=0)
        number("decay", self.decay, above=0)
        number("regularization", self.regularization, least=0)
        one_of("penalty", self.penalty, ("weight_decay", "batch", "first_layer"))
        one_of("adam_rows", self.adam_rows, ("all", "touched"))
        one_of("shuffle", self.shuffle, ("once", "epoch"))
        one_of("device", self.device, ("auto", "cpu", "cuda"))
        one_of("similarity", self.similarity, ("inner", "cosine"))
        one_of("ranking", self.ranking, ("same", "inner", "cosine"))

    @property
    def strength(self) -> float:
        """The weight of the L2 penalty in the loss, after scaling."""
        return self.regularization * (REFERENCE_BATCH / self.batch_size if self.scale_regularization else 1.0)

    @property
    def ranks_by_cosine(self) -> bool:
        """Whether items are ranked by cosines after training."""
        return (self.similarity if self.ranking == "same" else self.ranking) == "cosine"

    def rate_at(self, epoch: int) -> float:
        """The learning rate of an epoch, counted from 1."""
        return self.learning_rate * self.decay ** ((epoch - 1) // self.decay_every)
