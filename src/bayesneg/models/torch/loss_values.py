"""Any loss, built in or custom, on tensors."""

from __future__ import annotations

import numpy as np
import torch

from bayesneg.errors import InputError
from bayesneg.interfaces import Loss
from bayesneg.kernels.reference.losses import LossValues, Scores
from bayesneg.kernels.torch import losses


def evaluate_loss(loss: Loss, scores: Scores) -> LossValues:
    """The loss of each example and its derivatives by the scores, on their device.

    A custom loss in NumPy is given arrays in host memory.
    """
    form = loss.form()
    if form is not None:
        return losses.evaluate(form, scores)
    if loss.takes_tensors:
        return loss.evaluate(scores)
    device = scores.positive.device
    arrays = Scores(*(None if part is None else part.double().cpu().numpy() for part in scores))
    found = LossValues(*(np.asarray(part, dtype=np.float64) for part in loss.evaluate(arrays)))
    shapes = [arrays.positive.shape, arrays.positive.shape, arrays.negatives.shape]
    for name, part, shape in zip(LossValues._fields, found, shapes, strict=True):
        if part.shape != shape:
            raise InputError(f"{type(loss).__name__}.evaluate: {name} must have the shape {shape}, got {part.shape}")
    return LossValues(*(torch.from_numpy(part).to(device, scores.positive.dtype) for part in found))
