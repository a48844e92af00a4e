"""The model that answers, and its replacement while requests go on.

A request takes the model once, at its start. A new one is loaded beside it in a thread and put in its place by one
assignment; the old one is freed when the last request that has it ends.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from typing import Final

from bayesneg.errors import InputError
from bayesneg.runs import folder as files
from bayesneg.runs.exports import exporting
from bayesneg.runs.exports.loading import ExportedModel, load_export
from bayesneg.runs.run import load_run
from bayesneg.serving.telemetry import Telemetry

WATCHED: Final = (exporting.CONFIG, files.METRICS, files.WEIGHTS, files.MANIFEST)  # written last, or large
Signature = tuple[tuple[int, int, int] | None, ...]
Say = Callable[[str], None]


@dataclass(frozen=True, eq=False)
class LoadedModel:
    """A model with the time and the files it was loaded from.

    Args:
        model: The model; a run is an export without an index.
        signature: Time, size and number of the files that are watched.
        loaded_at: Seconds since 1970.
    """

    model: ExportedModel
    signature: Signature
    loaded_at: float


def load_model(folder: Path, *, index: bool) -> LoadedModel:
    """Read a run or an export, so that its first request waits for nothing."""
    while True:
        signature = signature_of(folder)
        try:
            model = _read(folder, index=index)
        except InputError:
            if signature_of(folder) == signature:
                raise
            continue  # the folder was replaced meanwhile
        if signature_of(folder) == signature:
            break
    _warm_up(model)
    return LoadedModel(model, signature, time.time())


def _read(folder: Path, *, index: bool) -> ExportedModel:
    if files.holds_run(folder):
        return ExportedModel(load_run(folder), None, {})
    if (folder / exporting.CONFIG).is_file():
        return load_export(folder, index=index)
    raise InputError(
        f"{folder} holds no run and no export; give a folder that 'bayesneg train --out' or 'export' wrote"
    )


def _warm_up(model: ExportedModel) -> None:
    """Compile, and compute what is kept: tables of identifiers, and the fit behind fold-in."""
    train = model.run.split.train
    user, item = train.user_ids[:1].tolist()[0], train.item_ids[:1].tolist()[0]
    model.recommend(user, k=1)
    with suppress(InputError):  # a model that does not compare items
        model.similar(item, k=1)
    with suppress(InputError):  # an export without interactions
        model.recommend_to(model.fold_in([item]), k=1)


def signature_of(folder: Path) -> Signature:
    """Time, size and number of each watched file; None where it is missing."""

    def of(path: Path) -> tuple[int, int, int] | None:
        try:
            found = path.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino

    return tuple(of(folder / name) for name in WATCHED)


class Reloader:
    """Holds the model, and replaces it when asked to or when its folder has changed.

    Args:
        folder: A run or an export.
        index: Whether to search by the index of an export.
        watch: Seconds between two looks at the folder; 0 to look only when asked to.
        telemetry: Where reloads are counted.
        say: Called with a sentence about each reload.
    """

    def __init__(self, folder: Path, *, index: bool, watch: float, telemetry: Telemetry, say: Say) -> None:
        self.folder, self.index, self.watch, self.telemetry, self.say = folder, index, watch, telemetry, say
        self.current = load_model(folder, index=index)
        self._asked, self._stop = Event(), Event()
        self._failed: Signature | None = None
        self._thread = Thread(target=self._run, name="reload", daemon=True)

    def start(self) -> None:
        """Begin to look for changes."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread."""
        self._stop.set()
        self._asked.set()
        self._thread.join()

    def ask(self) -> None:
        """Reload, changed or not; safe in a signal handler."""
        self._asked.set()

    def _run(self) -> None:
        last = self.current.signature
        while True:
            asked = self._asked.wait(self.watch or None)
            self._asked.clear()
            if self._stop.is_set():
                return
            found = signature_of(self.folder)
            if asked or self.is_due(found, last):
                self.reload()
            last = found

    def is_due(self, found: Signature, last: Signature) -> bool:
        """Whether the folder holds something new that has not changed since the last look: it is wholly written."""
        return any(found) and found == last and found not in (self.current.signature, self._failed)

    def reload(self) -> bool:
        """Load beside the current model and put the new one in its place; False, and the old one stays, on an error."""
        try:
            self.current, self._failed = load_model(self.folder, index=self.index), None
        except Exception as error:  # the server goes on with what it has
            self._failed = signature_of(self.folder)
            self.telemetry.reloaded("failed")
            self.say(f"reload failed, the old model goes on: {error}")
            return False
        self.telemetry.reloaded("loaded")
        self.say(f"reloaded {self.current.model.run!r}")
        return True
