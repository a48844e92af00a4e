"""A custom loss written in torch, differentiated by autograd."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bayesneg.errors import InputError
from bayesneg.interfaces.loss import Loss
from bayesneg.kernels.reference.losses import LossValues, Scores

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class TorchLoss(Loss):
    """A custom loss: a torch function of scores. Autograd computes its gradients.

    Args:
        function: Function of :class:`Scores`, whose fields are tensors, which returns the loss (B,) of each example. A
            negative of weight 0 must not count.

    Example:
        >>> hinge = TorchLoss(lambda s: (s.weights * (1 + s.negatives - s.positive[:, None]).relu()).sum(dim=1))
    """

    function: Callable[[Scores], Tensor]

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise InputError(f"function must be a function of the scores, got {self.function!r}")

    @property
    def takes_tensors(self) -> bool:
        return True

    def evaluate(self, scores: Scores) -> LossValues:
        """As :meth:`Loss.evaluate`; the scores are arrays or tensors, and so are the results.

        Args:
            scores: The scores, weights and log-probabilities of a batch.

        Returns:
            The loss and its derivatives, detached.
        """
        import numpy as np
        import torch

        arrays = isinstance(scores.positive, np.ndarray)
        given = Scores(*(None if part is None else torch.as_tensor(part) for part in scores))
        with torch.enable_grad():
            positive, negatives = (part.detach().requires_grad_() for part in (given.positive, given.negatives))
            value = self.function(given._replace(positive=positive, negatives=negatives))
            if not isinstance(value, torch.Tensor) or value.shape != positive.shape:
                got = tuple(value.shape) if isinstance(value, torch.Tensor) else type(value).__name__
                raise InputError(f"the loss must be a tensor with one number per example, {len(positive)}, got {got}")
            slopes = torch.autograd.grad(value.sum(), (positive, negatives), allow_unused=True)
        by_positive, by_negatives = (
            torch.zeros_like(at) if slope is None else slope
            for slope, at in zip(slopes, (positive, negatives), strict=True)
        )
        found = LossValues(value.detach(), by_positive, by_negatives)
        return LossValues(*(part.numpy() for part in found)) if arrays else found
