"""A custom loss written in torch, differentiated by autograd."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import FunctionType
from typing import TYPE_CHECKING

from bayesneg.errors import DivergedError, InputError
from bayesneg.interfaces.loss import Loss, not_finite
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

    @property
    def _name(self) -> str:
        return self.function.__name__ if isinstance(self.function, FunctionType) else type(self.function).__name__

    def _check_finite(self, found: LossValues, given: Scores) -> None:
        if bool(given.positive.isfinite().all()) and bool(given.negatives.isfinite().all()):
            for field, part in zip(LossValues._fields, found, strict=True):
                if not bool(part.isfinite().all()):
                    raise DivergedError(not_finite(f"the loss {self._name}", field))

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
            slopes: tuple[Tensor | None, ...] = (None, None)
            if value.requires_grad:
                slopes = torch.autograd.grad(value.sum(), (positive, negatives), allow_unused=True)
            if all(slope is None for slope in slopes):
                raise InputError(
                    f"the loss {self._name} does not depend on the scores, and has no gradient; compute it from "
                    "scores.positive and scores.negatives with torch, without detach(), item() or NumPy"
                )
        by_positive, by_negatives = (
            torch.zeros_like(at) if slope is None else slope
            for slope, at in zip(slopes, (positive, negatives), strict=True)
        )
        found = LossValues(value.detach(), by_positive, by_negatives)
        if value.device.type == "cpu" and not torch.compiler.is_compiling():  # on a GPU the step would wait for it
            self._check_finite(found, given)
        return LossValues(*(part.numpy() for part in found)) if arrays else found
