"""Losses: functions of the scores of a positive and its weighted negatives."""

from bayesneg.interfaces.loss import BPR, Loss
from bayesneg.kernels.reference.losses import LossValues, Scores
from bayesneg.losses.by_name import losses
from bayesneg.losses.contrastive import DCL, HCL, PSL, Softmax, SoftmaxAtK
from bayesneg.losses.means import CCL, Logistic
from bayesneg.losses.torch_loss import TorchLoss

__all__ = [
    "BPR",
    "CCL",
    "DCL",
    "HCL",
    "PSL",
    "Logistic",
    "Loss",
    "LossValues",
    "Scores",
    "Softmax",
    "SoftmaxAtK",
    "TorchLoss",
    "losses",
]
