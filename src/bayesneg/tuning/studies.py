"""Where trials are recorded: in memory, in the folder of a search, or in a store that several processes share.

A shared study is Optuna's journal on a shared disk or its tables in PostgreSQL. Processes that join it must agree on
everything that determines a trial (the plan); the study keeps it and refuses others, naming the difference.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bayesneg.errors import InputError
from bayesneg.integrity.locks import FileLock
from bayesneg.tuning.journal import JOURNAL, check_trials, damage_named, open_journal
from bayesneg.tuning.store import KEPT, Store, reaching

if TYPE_CHECKING:
    import optuna
    from sqlalchemy import URL

STUDY: Final = "tune"  # the name of a study, unless one is given
BEGINNING: Final = 0x6261796573  # PostgreSQL's number of the lock under which a study begins
EXAMPLE: Final = "postgresql://user@host:5432/database"
CONNECTION: Final = {  # a server that does not answer is noticed within a minute
    "connect_timeout": 10,
    "keepalives_idle": 20,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 40_000,
}


def require_optuna() -> None:
    """Import it, without the warning of a progress bar that is not used: in a notebook tqdm misses ipywidgets."""
    if find_spec("optuna") is None:
        raise InputError("tuning needs optuna, which is not installed; run: pip install 'bayesneg[tune]'")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="IProgress not found")
        import_module("optuna.storages")
        import_module("optuna.progress_bar")


@dataclass(frozen=True)
class Shared:
    """A study that processes on several machines share.

    Args:
        storage: ``postgresql://…``, or a file on a disk that all of them see.
        study: Name of the study; a storage may hold several.
    """

    storage: str | Path
    study: str = STUDY

    def __post_init__(self) -> None:
        if not isinstance(self.study, str) or not self.study.strip():
            raise InputError(f"study must be a name, got {self.study!r}")
        if not isinstance(self.storage, str | Path) or not str(self.storage).strip():
            raise InputError(f"storage must be {EXAMPLE} or a file, got {self.storage!r}")
        if self.is_database:
            self.url  # noqa: B018 - checked before any data is read
            try:
                import psycopg  # noqa: F401
            except ImportError:
                raise InputError(
                    "storage in PostgreSQL needs psycopg, which is not installed; run: pip install 'bayesneg[postgres]'"
                ) from None
        elif self.path.is_dir() or not self.path.resolve().parent.is_dir():
            raise InputError(f"storage {self.path} must be {EXAMPLE}, or a file in an existing folder")

    @property
    def is_database(self) -> bool:
        return bool(re.match(r"[A-Za-z][\w+.-]*:/", str(self.storage)))

    @property
    def path(self) -> Path:
        return Path(self.storage)

    @property
    def url(self) -> URL:
        """The address with the driver that is installed."""
        from sqlalchemy import make_url
        from sqlalchemy.exc import ArgumentError

        scheme = str(self.storage).partition(":")[0]
        if scheme not in ("postgresql", "postgres", "postgresql+psycopg"):
            raise InputError(f"storage must be {EXAMPLE} or a file, got an address that begins with {scheme}:")
        try:
            found = make_url(str(self.storage))
        except (ArgumentError, ValueError):
            raise InputError(f"storage is not a valid address of a database; write {EXAMPLE}") from None
        if not found.database:
            raise InputError(f"storage {_hidden(found)} names no database; write {EXAMPLE}")
        return found.set(drivername="postgresql+psycopg")

    @property
    def place(self) -> str:
        """What messages call it: without the password."""
        return _hidden(self.url) if self.is_database else str(self.path)

    @property
    def secrets(self) -> list[str]:
        """What no message may hold."""
        if not self.is_database:
            return []
        url = self.url
        asked = url.query.get("password", ())
        return [each for each in (str(url.password or ""), *((asked,) if isinstance(asked, str) else asked)) if each]

    @contextmanager
    def opened(self) -> Iterator[optuna.storages.BaseStorage]:
        """The storage; tables and files are made where they are missing."""
        if not self.is_database:
            with self.reaching():
                journal = open_journal(self.path)
            yield journal
            return
        from optuna.storages import RDBStorage

        with self.reaching(), self.alone():
            storage = RDBStorage(self.url.render_as_string(hide_password=False), self._options())
        try:
            yield storage
        finally:
            storage.scoped_session.remove()
            storage.engine.dispose()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """One process at a time: those that start together must not make the same tables, or record two plans."""
        if not self.is_database:
            from optuna.storages.journal import JournalFileOpenLock

            lock = JournalFileOpenLock(f"{self.path.resolve()}.begin")
            lock.acquire()
            try:
                yield
            finally:
                lock.release()
            return
        from sqlalchemy import create_engine, text

        engine = create_engine(self.url, **self._options())
        try:
            with engine.begin() as connection:
                connection.execute(text(f"SELECT pg_advisory_xact_lock({BEGINNING})"))
                yield
        finally:
            engine.dispose()

    def check(self) -> None:
        """An error, before any work, where a database cannot be reached."""
        if self.is_database:
            with self.opened():
                pass

    def _options(self) -> dict[str, Any]:
        given = {key: value for key, value in CONNECTION.items() if key not in self.url.query}
        # pre-ping: a connection that the server has closed is replaced, and not used
        return {"connect_args": given, "pool_pre_ping": True, "pool_size": 2}

    def reaching(self) -> AbstractContextManager[None]:
        """Errors while the storage is opened become one sentence."""
        return reaching(self.place, self.secrets, "check that it is there and that the address is right")


@contextmanager
def opened(
    folder: Path | None, plan: Mapping[str, Any], *, resume: bool, shared: Shared | None = None
) -> Iterator[Store]:
    """The study of a search: shared, in ``folder``, or in memory. An existing one is continued with the same plan.

    Args:
        folder: The folder of the search.
        plan: Everything that determines a trial, in plain values.
        resume: Whether ``folder`` may hold a search already.
        shared: The storage of a shared study.

    Raises:
        InputError: The folder or the study holds another search.
        StorageError: The database cannot be reached.
    """
    import optuna

    said = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)  # the progress bar shows trials; errors are raised
    try:
        if folder is not None:
            _check_place(folder, resume, JOURNAL if shared is None else KEPT)
        if shared is None:
            with _held(folder):
                yield _alone(folder, plan)
        else:
            with shared.opened() as storage:
                yield _joined(shared, storage, plan, folder)
    finally:
        optuna.logging.set_verbosity(said)


def _held(folder: Path | None) -> AbstractContextManager[object]:
    """The folder of a search that is not shared: one process at a time."""
    if folder is None:
        return nullcontext()
    folder.mkdir(parents=True, exist_ok=True)
    way_out = "wait until it ends, or let both share a study: storage (--storage)"
    return FileLock(folder, way_out=way_out)


def _alone(folder: Path | None, plan: Mapping[str, Any]) -> Store:
    """A study that this process alone uses: a trial that is not ended was interrupted."""
    from optuna.storages import InMemoryStorage

    if folder is None:
        return Store(_created(InMemoryStorage(), STUDY, plan, "this search", "--out"))
    journal = folder / JOURNAL
    journal.with_name(f"{journal.name}.lock").unlink(missing_ok=True)  # of a killed process
    with damage_named(journal):
        storage = open_journal(journal)
        if journal.exists() and journal.stat().st_size and not storage.get_all_studies():
            raise ValueError("its beginning is missing")
        study = _created(storage, STUDY, plan, str(folder), "--out")
        check_trials(study)
    return Store(study)


def _joined(
    shared: Shared, storage: optuna.storages.BaseStorage, plan: Mapping[str, Any], folder: Path | None
) -> Store:
    with shared.reaching(), shared.alone():
        study = _created(storage, shared.study, plan, f"the study {shared.study} in {shared.place}", "--study")
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    return Store(study, shared.place, tuple(shared.secrets), folder)


def _created(
    storage: optuna.storages.BaseStorage, name: str, plan: Mapping[str, Any], place: str, option: str
) -> optuna.Study:
    from optuna import create_study
    from optuna.samplers import RandomSampler

    study = create_study(
        study_name=name, storage=storage, direction="maximize", sampler=RandomSampler(0), load_if_exists=True
    )
    known = study.user_attrs
    for key, value in plan.items():
        begun = known.get(key, value)  # missing where the process was killed before it was recorded
        if begun != value:
            raise InputError(
                f"{place} holds a search with another {key} ({begun}, now {value}); resume it as it was begun, or "
                f"choose another {option}"
            )
    for key in plan:  # only now: a refused search stays unchanged
        if key not in known:
            study.set_user_attr(key, plan[key])
    return study


def _check_place(folder: Path, resume: bool, name: str) -> None:
    held = folder / name
    if held.exists() and not resume:
        raise InputError(f"{folder} already holds a search; choose another --out, or add --resume to resume it")
    if folder.exists() and not held.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder} exists and is not an empty folder; choose another --out")


def _hidden(url: URL) -> str:
    """The address without the password, the driver and the options."""
    return url.set(drivername="postgresql", query={}).render_as_string(hide_password=True)
