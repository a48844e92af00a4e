"""MLflow: a run in the store of a tracking URI."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from bayesneg.errors import InputError
from bayesneg.interfaces.tracking import Status, TrackedRun, Tracker
from bayesneg.tracking.libraries import check_server, quietly, require

AT_ONCE: Final = 100  # parameters in one request, of which MLflow takes no more
ENDED: Final[Mapping[Status, str]] = {"finished": "FINISHED", "interrupted": "KILLED", "failed": "FAILED"}
RETRIES: Final = "MLFLOW_HTTP_REQUEST_MAX_RETRIES"  # 7 unless set: a server that is gone would hold up an epoch


@dataclass
class MLflow(Tracker):
    """Log to an MLflow tracking store; needs the extra ``mlflow``.

    MLflow allows no @ in a name: ``ndcg@20`` is ``ndcg_at_20`` there, and the final metric ``final/ndcg_at_20``.

    Args:
        uri: Tracking URI, such as ``"sqlite:///mlflow.db"`` or ``"http://localhost:5000"``; the environment variable
            ``MLFLOW_TRACKING_URI`` unless given.
        experiment: Name of the experiment, made where it is missing; the environment variable
            ``MLFLOW_EXPERIMENT_NAME`` unless given, or ``bayesneg``.
    """

    uri: str = ""
    experiment: str = ""
    _client: Any = field(default=None, init=False, repr=False, compare=False)
    _run: str = field(default="", init=False, repr=False, compare=False)
    _last: int = field(default=0, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self.uri = self.uri or os.environ.get("MLFLOW_TRACKING_URI", "")
        self.experiment = self.experiment or os.environ.get("MLFLOW_EXPERIMENT_NAME", "") or "bayesneg"

    @property
    def store(self) -> str:
        if not self.uri:
            return "mlflow"
        return f"mlflow:{re.sub('//[^/@]*@', '//…@', self.uri)}"  # a password is neither shown nor kept

    def check(self) -> None:
        """Raise an error unless the library is installed and the store is there."""
        require("mlflow", self.store)
        if not self.uri:
            raise InputError(
                "mlflow needs a tracking URI, such as mlflow:sqlite:///mlflow.db, or the environment variable "
                "MLFLOW_TRACKING_URI"
            )
        if self.uri.startswith(("http://", "https://")):
            check_server(self.uri, self.store)
        if self.uri.startswith("sqlite:///"):
            path = Path(self.uri.removeprefix("sqlite:///"))
            if not path.resolve().parent.is_dir():
                raise InputError(f"{self.store}: the folder of the database does not exist; make it, or name another")
        try:
            with quietly():
                self._connect().search_experiments(max_results=1)
        except Exception as error:
            raise InputError(
                f"{self.store} cannot be used: {_said(error)}; a database file always works, mlflow:sqlite:///mlflow.db"
            ) from error

    def start(self, run: TrackedRun) -> str:
        from mlflow.entities import Param, RunTag

        with quietly():
            client = self._connect()
            if run.continued is not None:
                self._run = client.get_run(run.continued).info.run_id
                client.update_run(self._run, status="RUNNING")
                steps = [each.step for each in client.get_metric_history(self._run, "seconds")]
                self._last = max(steps, default=0)
                return self._run
            self._run = client.create_run(self._experiment(), run_name=run.name).info.run_id
            self._last = 0
            parameters = [Param(_name(key), str(value)) for key, value in run.parameters.items()]
            for first in range(0, len(parameters), AT_ONCE):
                client.log_batch(self._run, params=parameters[first : first + AT_ONCE])
            client.log_batch(self._run, tags=[RunTag(_name(key), value) for key, value in run.tags.items()])
        return self._run

    def log(self, epoch: int, metrics: Mapping[str, float]) -> None:
        if epoch > self._last:  # a resumed run may train epochs again whose metrics are there, and the same
            self._log(epoch, metrics)
            self._last = epoch

    def finish(self, status: Status, metrics: Mapping[str, float]) -> None:
        if metrics:
            self._log(self._last, {f"final/{key}": value for key, value in metrics.items()})
        with quietly():
            self._client.set_terminated(self._run, status=ENDED[status])

    def _log(self, step: int, metrics: Mapping[str, float]) -> None:
        from mlflow.entities import Metric

        now = int(time.time() * 1000)
        with quietly():
            found = [Metric(_name(key), value, now, step) for key, value in metrics.items()]
            self._client.log_batch(self._run, metrics=found)

    def _connect(self) -> Any:
        from mlflow.tracking import MlflowClient

        os.environ.setdefault(RETRIES, "2")
        self._client = self._client or MlflowClient(tracking_uri=self.uri)
        return self._client

    def _experiment(self) -> str:
        found = self._client.get_experiment_by_name(self.experiment)
        return str(self._client.create_experiment(self.experiment) if found is None else found.experiment_id)


def _name(key: str) -> str:
    """A name that MLflow allows."""
    return re.sub(r"[^\w\-. :/]", "_", key.replace("@", "_at_"))


def _said(error: Exception) -> str:
    """The first sentence of what a library says."""
    return re.split(r"(?<=\w)[.;](?:\s|$)|\n", str(error).strip() or type(error).__name__, maxsplit=1)[0][:300]
