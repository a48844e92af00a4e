"""A PostgreSQL server of its own for tests and measurements, from the binaries of this machine."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

PASSWORD: Final = "open-sesame"


def binaries() -> Path | None:
    """The folder of initdb and postgres; Debian keeps them out of the path."""
    folders = [Path(found).resolve().parent] if (found := shutil.which("initdb")) else []
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((each for each in folders if (each / "initdb").exists() and (each / "postgres").exists()), None)


def missing() -> str:
    """Why there can be no server here; empty where there can."""
    if binaries() is None:
        return "PostgreSQL is not installed (Debian: apt-get install postgresql)"
    try:
        import psycopg  # noqa: F401
    except ImportError:
        return "psycopg is not installed (the extra 'postgres')"
    return "" if os.getuid() or _user() else "PostgreSQL does not run as root, and there is no other user"


def _user() -> dict[str, Any]:
    """The user to run as: PostgreSQL refuses root."""
    if os.getuid():
        return {}
    for name in ("postgres", "nobody"):
        try:
            found = pwd.getpwnam(name)
        except KeyError:
            continue
        return {"user": found.pw_uid, "group": found.pw_gid, "extra_groups": []}
    return {}


class Server:
    """A server in a temporary folder, on a free port of this machine."""

    def __init__(self, folder: Path, programs: Path) -> None:
        self.programs = programs
        self.folder, self.data = folder, folder / "data"
        self.process: subprocess.Popen[bytes] | None = None
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        word = folder / "password"
        word.write_text(PASSWORD)
        if not os.getuid():
            for path in (folder, word):
                os.chown(path, _user()["user"], _user()["group"])
        self._call("initdb", "-D", self.data, "-U", "tester", "-A", "scram-sha-256", f"--pwfile={word}", "--no-sync")
        self.n_places = 0

    def url(self, database: str = "postgres", password: str = PASSWORD) -> str:
        return f"postgresql://tester:{password}@127.0.0.1:{self.port}/{database}"

    def place(self) -> str:
        """The address of a new schema: an empty place, made faster than a database."""
        import psycopg

        self.n_places += 1
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA search{self.n_places}")
        return f"{self.url()}?options=-csearch_path%3Dsearch{self.n_places}"

    def start(self) -> None:
        options = [f"-p{self.port}", "-clisten_addresses=127.0.0.1", f"-cunix_socket_directories={self.folder}", "-F"]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [self.programs / "postgres", "-D", self.data, *options],
                stdout=log,
                stderr=log,
                cwd=self.folder,
                **_user(),
            )
        until = time.monotonic() + 120
        while not self._answers():
            assert self.process.poll() is None, (self.folder / "log").read_text()
            assert time.monotonic() < until
            time.sleep(0.05)

    def stop(self, how: int = signal.SIGINT) -> None:
        """At once: connections are closed. With SIGQUIT nothing is written any more."""
        if self.process is not None:
            self.process.send_signal(how)
            self.process.wait(120)
            self.process = None

    def _answers(self) -> bool:
        import psycopg

        try:
            psycopg.connect(self.url(), connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True

    def _call(self, name: str, *arguments: object) -> None:
        done = subprocess.run(
            [self.programs / name, *map(str, arguments)], capture_output=True, cwd=self.folder, timeout=300, **_user()
        )
        assert done.returncode == 0, done.stderr.decode()


@contextmanager
def running() -> Iterator[Server]:
    """A server that runs until the end of the block."""
    folder = Path(tempfile.mkdtemp(prefix="postgres-"))  # that of pytest is closed to other users
    programs = binaries()
    assert programs is not None
    server = Server(folder, programs)
    try:
        server.start()
        yield server
    finally:
        server.stop(signal.SIGQUIT)
        shutil.rmtree(folder)
