"""Trackers as text: ``tensorboard:DIR``, ``mlflow:URI``, ``wandb:PROJECT``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from bayesneg.config.settings import check_known
from bayesneg.errors import InputError
from bayesneg.interfaces.tracking import Tracker
from bayesneg.tracking.mlflow import MLflow
from bayesneg.tracking.tensorboard import TensorBoard
from bayesneg.tracking.wandb import WandB

TRACKERS: Final[Mapping[str, tuple[Callable[[str], Tracker], str]]] = {  # name → how it is made, and an example
    "tensorboard": (TensorBoard, "tensorboard:logs"),
    "mlflow": (MLflow, "mlflow:sqlite:///mlflow.db"),
    "wandb": (WandB, "wandb:my-project"),
}


def tracker_from(text: str) -> Tracker:
    """The tracker that a text names.

    Args:
        text: A name and, after a colon, a folder, a URI or a project; ``mlflow`` alone takes the URI of the
            environment.

    Returns:
        The tracker, not checked yet.

    >>> tracker_from("tensorboard:logs")
    TensorBoard(folder='logs')
    """
    name, _, where = text.partition(":")
    check_known(name, TRACKERS, "tracker")
    make, example = TRACKERS[name]
    if not where and name != "mlflow":
        raise InputError(f"{text!r} does not say where to; write for example {example}")
    return make(where)
