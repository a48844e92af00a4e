"""The trackers of a run: told what the record holds; one that fails is left out, and the run goes on."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bayesneg.errors import BayesnegError, InputError
from bayesneg.interfaces.tracking import Status, TrackedRun, Tracker
from bayesneg.runs import folder as files
from bayesneg.runs.record import RunRecord, is_number


def check_trackers(trackers: Sequence[Tracker]) -> None:
    """Before anything is computed: every store is there, and each once."""
    stores = [tracker.store for tracker in trackers]
    if twice := {store for store in stores if stores.count(store) > 1}:
        raise InputError(f"{min(twice)} is given twice as a tracker; give each store once")
    for tracker in trackers:
        with _sentences(tracker):
            tracker.check()


@dataclass
class TrackedTraining:
    """The trackers that still work."""

    trackers: list[Tracker] = field(default_factory=list)

    def log(self, line: Mapping[str, Any]) -> None:
        """An epoch's line."""
        for tracker in list(self.trackers):
            self._guarded(tracker, f"epoch {line['epoch']}", lambda to: to.log(int(line["epoch"]), metrics_of(line)))

    def finish(self, status: Status, final: Mapping[str, Any] | None = None) -> None:
        """The end of training, once."""
        while self.trackers:
            tracker = self.trackers[0]
            self._guarded(tracker, "the end", lambda to: to.finish(status, metrics_of(final or {})))
            self.trackers = [other for other in self.trackers if other is not tracker]

    def _guarded(self, tracker: Tracker, when: str, call: Any) -> None:
        try:
            call(tracker)
        except Exception as error:  # whatever a library or the network does: the run is worth more
            self.trackers = [other for other in self.trackers if other is not tracker]
            warnings.warn(
                f"{tracker.store} failed in {when} and is not used any more; training goes on "
                f"({type(error).__name__}: {str(error).strip()[:300]})",
                stacklevel=2,
            )


@contextmanager
def tracked(
    trackers: Sequence[Tracker], record: RunRecord, folder: Path | None, done: Sequence[Mapping[str, Any]]
) -> Iterator[TrackedTraining]:
    """Begin a run in every store, or continue it, and end it however the block ends.

    Args:
        trackers: The trackers, which were checked.
        record: What is known of the run before its first epoch.
        folder: Its folder, which remembers the runs of the stores; None where there is none.
        done: The lines of the epochs before a checkpoint; a tracker that is new to the run is told of them.
    """
    if not trackers:
        yield TrackedTraining()
        return
    known = _known(folder)
    parameters, tags = flat_parameters(record.run_file), tags_of(record, folder)
    started = TrackedTraining()
    try:
        for tracker in trackers:
            continued = known.get(tracker.store) if done else None
            run = TrackedRun(record.label, parameters, tags, 0 if continued is None else len(done), continued)
            with _sentences(tracker):
                known[tracker.store] = tracker.start(run)
            started.trackers.append(tracker)
            if continued is None:
                for line in done:
                    tracker.log(int(line["epoch"]), metrics_of(line))
    except BaseException:
        started.finish("failed")
        raise
    if folder is not None:
        files.write_json(folder / files.TRACKED, known)
    status: Status = "failed"
    try:
        yield started
    except KeyboardInterrupt:
        status = "interrupted"
        raise
    finally:
        started.finish(status)  # nothing is left to do after a run that finished


def metrics_of(line: Mapping[str, Any]) -> dict[str, float]:
    """The finite numbers of an epoch's line or of the final metrics."""
    return {
        key: float(value)
        for key, value in line.items()
        if key != "epoch" and not isinstance(value, bool) and is_number(value)
    }


def flat_parameters(run_file: Mapping[str, Any]) -> dict[str, Any]:
    """``{"model": {"name": "mf", "dim": 8}}`` → ``{"model": "mf", "model.dim": 8}``.

    >>> flat_parameters({"epochs": 3, "model": {"name": "mf", "dim": 8}, "user_columns": ["a", "b"]})
    {'epochs': 3, 'model': 'mf', 'model.dim': 8, 'user_columns': 'a,b'}
    """
    found: dict[str, Any] = {}
    for key, value in run_file.items():
        if isinstance(value, Mapping):
            found |= {key if name == "name" else f"{key}.{name}": each for name, each in value.items()}
        else:
            found[key] = ",".join(map(str, value)) if isinstance(value, list) else value
    return found


def tags_of(record: RunRecord, folder: Path | None) -> dict[str, str]:
    """What a person looks for a run by."""
    facts = {
        "dataset": record.dataset,
        "fingerprint": str(record.data.get("fingerprint", "")),
        "model": record.model,
        "sampler": record.sampler,
        "loss": record.loss,
        "sees_test_labels": "yes" if record.uses_test_labels else "",
        "folder": "" if folder is None else str(folder.resolve()),
        **{name: str(record.versions.get(name, "")) for name in ("bayesneg", "device")},
    }
    return {key: value for key, value in facts.items() if value}


def _known(folder: Path | None) -> dict[str, str]:
    """Store → run, of a run that is resumed."""
    try:
        found = {} if folder is None else json.loads((folder / files.TRACKED).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (ValueError, RecursionError) as error:
        raise InputError(f"{folder}: {files.TRACKED} is damaged ({error}); remove it to track as a new run") from None
    return {str(store): str(run) for store, run in found.items()} if isinstance(found, dict) else {}


@contextmanager
def _sentences(tracker: Tracker) -> Iterator[None]:
    """What a library raises before training begins becomes one sentence."""
    try:
        yield
    except BayesnegError:
        raise
    except Exception as error:
        what = str(error).strip().splitlines()[0][:300] if str(error).strip() else ""
        raise InputError(f"{tracker.store} cannot be used: {type(error).__name__}: {what}") from error
