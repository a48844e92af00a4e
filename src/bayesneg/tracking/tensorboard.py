"""TensorBoard: one folder of event files for each run."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain, count
from pathlib import Path
from typing import Any

from bayesneg.errors import InputError
from bayesneg.interfaces.tracking import Status, TrackedRun, Tracker
from bayesneg.tracking.libraries import quietly, require


@dataclass
class TensorBoard(Tracker):
    """Write event files that ``tensorboard --logdir`` shows; needs the extra ``tensorboard``.

    Scalars have the names of the record (``ndcg@20``, ``tnr``), final metrics ``final/ndcg@20``. Parameters and tags
    are in the tabs HParams and Text.

    Args:
        folder: Folder of all runs, made where it is missing; each run gets one inside.
    """

    folder: str | Path
    _writer: Any = field(default=None, init=False, repr=False, compare=False)
    _last: int = field(default=0, init=False, repr=False, compare=False)

    @property
    def store(self) -> str:
        return f"tensorboard:{Path(self.folder).resolve()}"

    def check(self) -> None:
        """Raise an error unless the library is installed and the folder can be written."""
        require("tensorboard", self.store)
        folder = Path(self.folder).resolve()
        there = next(each for each in (folder, *folder.parents) if each.exists())  # the rest is made when a run begins
        if not there.is_dir():
            raise InputError(f"{self.store} cannot be made: {there} is a file; name another folder")
        if not os.access(there, os.W_OK | os.X_OK):
            raise InputError(f"{self.store} cannot be written; name another folder")

    def start(self, run: TrackedRun) -> str:
        with quietly():
            from tensorboard.compat.proto.event_pb2 import SessionLog
            from tensorboard.plugins.hparams.summary_v2 import hparams_pb
            from tensorboard.summary.writer.event_file_writer import EventFileWriter

            name = run.continued or self._new(run.name)
            self._writer = EventFileWriter(str(Path(self.folder) / name))
            if run.continued is None:
                self._add(summary=hparams_pb(dict(run.parameters), trial_id=name))
                self._add(summary=_text({**run.tags, **run.parameters}))
            else:  # the epochs after the checkpoint are trained again: what was written of them does not count
                self._add(session_log=SessionLog(status=SessionLog.START), step=run.epochs_done + 1)
            self._writer.flush()
        self._last = run.epochs_done
        return name

    def log(self, epoch: int, metrics: Mapping[str, float]) -> None:
        self._scalars(epoch, metrics)
        self._last = epoch

    def finish(self, status: Status, metrics: Mapping[str, float]) -> None:
        self._scalars(self._last, {f"final/{key}": value for key, value in metrics.items()})
        self._writer.close()

    def _scalars(self, step: int, values: Mapping[str, float]) -> None:
        from tensorboard.compat.proto.summary_pb2 import Summary

        found = [Summary.Value(tag=key, simple_value=value) for key, value in values.items()]
        self._add(summary=Summary(value=found), step=step)
        self._writer.flush()  # a process that is killed later has written this epoch

    def _add(self, *, step: int = 0, **what: Any) -> None:
        from tensorboard.compat.proto.event_pb2 import Event

        self._writer.add_event(Event(wall_time=time.time(), step=step, **what))

    def _new(self, label: str) -> str:
        """A folder that no other run has."""
        Path(self.folder).mkdir(parents=True, exist_ok=True)
        slug = re.sub(r"[^\w.=-]+", "-", label.lower()).strip("-.")[:80] or "run"
        for name in chain([slug], (f"{slug}-{number}" for number in count(2))):
            try:
                (Path(self.folder) / name).mkdir()
            except FileExistsError:
                continue
            return name
        raise AssertionError("the names never end")


def _text(values: Mapping[str, Any]) -> Any:
    """The values as a table of the tab Text."""
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.compat.proto.tensor_pb2 import TensorProto
    from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
    from tensorboard.compat.proto.types_pb2 import DataType
    from tensorboard.plugins.text import metadata

    rows = [f"| {key} | {_escaped(value)} |" for key, value in values.items()]
    table = "\n".join(["| | |", "|---|---|", *rows])
    return Summary(
        value=[
            Summary.Value(
                tag="run/text_summary",
                metadata=metadata.create_summary_metadata(display_name="run", description=""),
                tensor=TensorProto(
                    dtype=DataType.DT_STRING,
                    tensor_shape=TensorShapeProto(dim=[TensorShapeProto.Dim(size=1)]),
                    string_val=[table.encode()],
                ),
            )
        ]
    )


def _escaped(value: object) -> str:
    """As the cell of a Markdown table, which TensorBoard also cleans of HTML."""
    return re.sub(r"([|\\`*_<>\[\]])", r"\\\1", " ".join(str(value).split()))
