"""What the trackers share: their libraries, which may be missing or talkative, and their servers, which may be away."""

from __future__ import annotations

import logging
import socket
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Final
from urllib.parse import urlsplit

from bayesneg.errors import InputError

PORTS: Final = {"http": 80, "https": 443}
PATIENCE: Final = 5.0  # seconds until a server that does not answer is away


def require(module: str, store: str) -> None:
    """An error that names the extra, unless the library is installed."""
    if find_spec(module) is None:
        raise InputError(
            f"{store} needs the package {module}, which is not installed; pip install 'bayesneg[{module}]'"
        )


def check_server(url: str, store: str) -> None:
    """An error unless a server listens at the address of the URL."""
    parts = urlsplit(url)
    try:
        with socket.create_connection((parts.hostname or "", parts.port or PORTS[parts.scheme]), timeout=PATIENCE):
            pass
    except (OSError, ValueError) as error:
        raise InputError(
            f"{store}: there is no server at {parts.scheme}://{parts.hostname}:{parts.port or PORTS.get(parts.scheme)} "
            f"({error}); start it, or name another store"
        ) from None


@contextmanager
def quietly() -> Iterator[None]:
    """Without the warnings and the log of a library, which are about itself."""
    before = logging.root.manager.disable
    logging.disable(max(before, logging.INFO))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
