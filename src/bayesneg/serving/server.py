"""Serving a folder: the port, the signals and the server."""

from __future__ import annotations

import errno
import os
import signal
import socket
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from bayesneg.checks import number
from bayesneg.errors import InputError
from bayesneg.serving.limits import Limits
from bayesneg.serving.reloading import Reloader
from bayesneg.serving.telemetry import Telemetry

LOOPBACK = ("127.0.0.1", "localhost", "::1")


def require_fastapi() -> None:
    """An error that names the extra where fastapi or uvicorn is missing."""
    for library in ("fastapi", "uvicorn"):
        if find_spec(library) is None:
            raise InputError(f"serving needs {library}, which is not installed; run: pip install 'bayesneg[serve]'")


def serve(
    folder: Path,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    index: bool = True,
    watch: float = 2.0,
    limits: Limits | None = None,
    say: Callable[[str], None] = print,
) -> None:
    """Answer requests until the process is interrupted.

    Args:
        folder: A run or an export.
        host: Address to listen on.
        port: Port to listen on; 0 for any free one.
        index: Whether to search by the index of an export.
        watch: Seconds between two looks at the folder for a new model; 0 to reload on SIGHUP only.
        limits: Bounds on requests.
        say: Called with each sentence of the log.
    """
    require_fastapi()
    number("watch", watch, least=0)
    import uvicorn

    from bayesneg.serving.app import create_app

    with listening(host, port) as opened:  # before a model is loaded, which may take long
        telemetry = Telemetry()
        reloader = Reloader(folder, index=index, watch=watch, telemetry=telemetry, say=say)
        app = create_app(reloader, limits or Limits())
        config = uvicorn.Config(
            app, log_level="warning", access_log=False, server_header=False, timeout_graceful_shutdown=10
        )
        if sys.platform != "win32":
            signal.signal(signal.SIGHUP, lambda *_: reloader.ask())
        shown = f"[{host}]" if ":" in host else host
        model = reloader.current.model
        train = model.run.split.train
        search = "exact search" if model.index is None else "search by index"
        say(f"serving {model.run!r}: {train.n_users:,} users, {train.n_items:,} items, {search}")
        say(
            f"http://{shown}:{opened.getsockname()[1]}/recommend?user={train.user_ids[0]}&k=10, OpenAPI page at /docs; "
            f"Ctrl-C stops, kill -HUP {os.getpid()} reloads"
        )
        if not model.has_interactions:
            say(
                "note: the export has no interactions, so that items which users already have are recommended too; "
                "name them in exclude (POST /recommend), or export the run with its interactions"
            )
        if host not in LOOPBACK:
            say(f"{host} is not a loopback address: whoever reaches it can ask, there is no authentication")
        reloader.start()
        try:
            uvicorn.Server(config).run(sockets=[opened])
        finally:
            reloader.stop()


def listening(host: str, port: int) -> socket.socket:
    """A socket that listens; an error that says why it cannot."""
    if not 0 <= port <= 65535:
        raise InputError(f"port must be from 0 to 65535, got {port}")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except (socket.gaierror, UnicodeError):
        raise InputError(f"host {host!r} is not an address of this machine; 127.0.0.1 is the loopback") from None
    opened = socket.socket(family, kind, protocol)
    try:
        if sys.platform != "win32":
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind(address)
        opened.listen(2048)
    except OSError as error:
        opened.close()
        match error.errno:
            case errno.EADDRINUSE:
                what = f"port {port} on {host} is in use; name another with --port, or stop what listens there"
            case errno.EACCES:
                what = f"port {port} needs rights that this user does not have; name one of 1024 or more with --port"
            case errno.EADDRNOTAVAIL:
                what = f"host {host!r} is not an address of this machine; 127.0.0.1 is the loopback"
            case _:
                what = f"{host}:{port} cannot be listened on ({error.strerror}); name another --host or --port"
        raise InputError(what) from None
    return opened
