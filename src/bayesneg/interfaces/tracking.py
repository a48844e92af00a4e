"""What receives the numbers of a run while it trains: TensorBoard, MLflow, Weights & Biases, or a custom tracker."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Literal, NamedTuple

Status = Literal["finished", "interrupted", "failed"]


class TrackedRun(NamedTuple):
    """A run as a tracker is told of it, before its first epoch.

    Args:
        name: The label of the run.
        parameters: What ``run.toml`` holds, settings as ``model.dim``.
        tags: Facts about the run, such as the dataset.
        epochs_done: Epochs that a resumed run has trained before.
        continued: What ``Tracker.start`` returned when the resumed run began.
    """

    name: str
    parameters: Mapping[str, bool | int | float | str]
    tags: Mapping[str, str]
    epochs_done: int = 0
    continued: str | None = None


class Tracker(ABC):
    """Receives parameters, the metrics of every epoch, and the final metrics.

    Pass one, or several, as ``bn.fit(…, observer=…)``. What it raises in ``check`` and ``start`` ends the call before
    training begins; afterwards it ends the tracking, with a warning, and never the run.
    """

    @property
    @abstractmethod
    def store(self) -> str:
        """The store as the command line names it, such as ``"tensorboard:logs"``."""

    def check(self) -> None:
        """Raise an error unless the store can be used; called before anything is computed."""
        return

    @abstractmethod
    def start(self, run: TrackedRun) -> str:
        """Begin a run in the store, or continue one.

        Args:
            run: Name, parameters and tags, and for a resumed run what it continues.

        Returns:
            What identifies the run in the store, for ``run.continued`` when it is resumed.
        """

    @abstractmethod
    def log(self, epoch: int, metrics: Mapping[str, float]) -> None:
        """Store the metrics of an epoch.

        Args:
            epoch: The epoch, counted from 1.
            metrics: Name → finite number, with the names of the record.
        """

    @abstractmethod
    def finish(self, status: Status, metrics: Mapping[str, float]) -> None:
        """End the run in the store.

        Args:
            status: How it ended.
            metrics: Test metrics of the reported epoch; empty unless it is finished.
        """
