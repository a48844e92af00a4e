"""Trackers: where the numbers of a run go while it trains.

Each needs its extra, such as ``pip install 'bayesneg[tensorboard]'``, which is imported when it is used.
"""

from bayesneg.interfaces.tracking import TrackedRun, Tracker
from bayesneg.tracking.mlflow import MLflow
from bayesneg.tracking.tensorboard import TensorBoard
from bayesneg.tracking.wandb import WandB

__all__ = ["MLflow", "TensorBoard", "TrackedRun", "Tracker", "WandB"]
