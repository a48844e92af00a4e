"""The journal of a search: Optuna's file of JSON lines, which may be damaged, cut off, or on a full disk."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bayesneg.errors import BayesnegError, InputError, first_line, naming
from bayesneg.whole_files import without_links

if TYPE_CHECKING:
    import optuna

JOURNAL: Final = "search.jsonl"


def open_journal(path: Path) -> optuna.storages.JournalStorage:
    """Optuna's journal of a search, without half a line of a killed process."""
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock

    class Lock(JournalFileOpenLock):
        """Removes half a line of a killed process, and keeps a Ctrl-C during the release: Optuna would raise an error
        about its missing lock file instead.
        """

        def acquire(self) -> bool:
            found = super().acquire()
            try:
                _mend(path)
            except BaseException:
                self.release()
                raise
            return found

        def release(self) -> None:
            try:
                super().release()
            except FileNotFoundError as error:
                raise error.__context__ or error from None

    class Backend(JournalFileBackend):
        """Names the file where the disk is full."""

        def append_logs(self, logs: list[dict[str, Any]]) -> None:
            with naming(path):
                super().append_logs(logs)

    whole = str(path.resolve())
    lock = Lock(whole)
    lock.acquire()  # which mends the file before it is read
    lock.release()
    return JournalStorage(Backend(whole, lock_obj=lock))


def _mend(journal: Path) -> None:
    """Removes the incomplete last line that a killed process may leave."""
    if not journal.exists() or journal.stat().st_size == 0:
        return
    with open(journal, "rb+", opener=without_links) as lines:
        lines.seek(-1, 2)
        if lines.read(1) == b"\n":
            return
        lines.seek(0)
        content = lines.read()
        lines.truncate(content.rfind(b"\n") + 1)


@contextmanager
def damage_named(journal: Path) -> Iterator[None]:
    """Whatever Optuna raises over a damaged journal is one sentence."""
    try:
        yield
    except (BayesnegError, OSError):
        raise
    except Exception as error:
        raise InputError(
            f"{journal} is damaged ({type(error).__name__}: {first_line(error)}); put back a copy of it, or begin the "
            "search again with another --out"
        ) from error


def check_trials(study: optuna.Study) -> None:
    """An error unless each trial has what a search records of it, of the right types."""
    texts, numbers = ("sampler", "label", "family", "loss"), int | float
    for trial in study.get_trials(deepcopy=False):
        own = trial.user_attrs
        if trial.state.name not in ("COMPLETE", "PRUNED") or "place" not in own:
            continue  # it is not read
        kinds = dict.fromkeys(texts, str) | dict.fromkeys(("settings", "loss_settings"), dict)
        for key, kind in (kinds | {"place": int, "seconds": numbers}).items():
            if not isinstance(own.get(key), kind):
                raise ValueError(f"{key} of trial {trial.number} is {own.get(key)!r:.40}")
        curve = trial.intermediate_values
        if not all(isinstance(epoch, int) and isinstance(value, numbers) for epoch, value in curve.items()):
            raise ValueError(f"a score of trial {trial.number} is no number")
        if trial.state.name == "COMPLETE" and not ("failed" in own or (curve and trial.value == max(curve.values()))):
            raise ValueError(f"the result of trial {trial.number} is none of its scores")
