"""Weights & Biases: a run of a project."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from netrc import NetrcParseError, netrc
from pathlib import Path
from typing import Any, Final, Literal
from urllib.parse import urlsplit

from bayesneg.errors import InputError
from bayesneg.interfaces.tracking import Status, TrackedRun, Tracker
from bayesneg.tracking.libraries import check_server, quietly, require

SERVER: Final = "https://api.wandb.ai"
TAG_LENGTH: Final = 64  # Weights & Biases takes no longer ones


@dataclass
class WandB(Tracker):
    """Log to Weights & Biases; needs the extra ``wandb``.

    Final metrics are in the summary of the run, as ``final/ndcg@20``.

    Args:
        project: Name of the project.
        entity: User or team that the project belongs to; the default of the account unless given.
        mode: ``"online"``, ``"offline"`` (written to ``folder``, for ``wandb sync`` later) or ``"disabled"``; the
            environment variable ``WANDB_MODE`` unless given, or ``"online"``.
        folder: Folder for the files of ``wandb``, which must exist; the current one unless given.
    """

    project: str
    entity: str | None = None
    mode: Literal["online", "offline", "disabled"] | None = None
    folder: str | Path | None = None
    _run: Any = field(default=None, init=False, repr=False, compare=False)

    @property
    def store(self) -> str:
        return f"wandb:{self.project}"

    def check(self) -> None:
        """Raise an error unless the library is installed and, online, a person is logged in and the server is there."""
        require("wandb", self.store)
        if not self.project:
            raise InputError("wandb needs the name of a project, such as wandb:my-project")
        if (self.mode or os.environ.get("WANDB_MODE", "online")) != "online":
            return
        server = os.environ.get("WANDB_BASE_URL", SERVER)
        if not os.environ.get("WANDB_API_KEY") and not _has_login(server):
            raise InputError(
                f"{self.store}: nobody is logged in at {server}; run wandb login, or set WANDB_MODE=offline to keep "
                "the run on this machine"
            )
        check_server(server, self.store)

    def start(self, run: TrackedRun) -> str:
        with quietly():
            import wandb

            self._run = wandb.init(
                project=self.project,
                entity=self.entity,
                name=run.name,
                config=dict(run.parameters),
                tags=[f"{key}:{value}"[:TAG_LENGTH] for key, value in run.tags.items()],
                id=run.continued,
                resume=None if run.continued is None else "allow",
                mode=self.mode,
                dir=None if self.folder is None else str(self.folder),
                settings=wandb.Settings(silent=True, console="off"),
            )
        return str(self._run.id)

    def log(self, epoch: int, metrics: Mapping[str, float]) -> None:
        with quietly():
            self._run.log({"epoch": epoch, **metrics}, step=epoch)

    def finish(self, status: Status, metrics: Mapping[str, float]) -> None:
        with quietly():
            self._run.summary.update({f"final/{key}": value for key, value in metrics.items()})
            self._run.finish(exit_code=0 if status == "finished" else 1)


def _has_login(server: str) -> bool:
    """Whether ``wandb login`` left a key for the server."""
    try:
        return netrc().authenticators(urlsplit(server).hostname or "") is not None
    except (OSError, NetrcParseError):
        return False
