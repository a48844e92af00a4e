"""What a request may ask for, and the middleware that counts requests and refuses large bodies."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Collection, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from bayesneg.checks import whole
from bayesneg.errors import InputError
from bayesneg.serving.telemetry import Telemetry

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]

DISCARDED: Final = 16  # bodies over the limit are read up to this many times the limit
OTHER: Final = "other"  # the label of paths that do not exist, whose number has no bound


@dataclass(frozen=True)
class Limits:
    """Bounds on requests.

    Args:
        max_k: Longest list.
        max_users: Most users of one request.
        max_ids: Most identifiers of items in one list of a request.
        max_body: Largest body, in bytes.
    """

    max_k: int = 1_000
    max_users: int = 1_000
    max_ids: int = 10_000
    max_body: int = 1 << 20

    def __post_init__(self) -> None:
        for name in ("max_k", "max_users", "max_ids", "max_body"):
            whole(name, getattr(self, name))

    def check(self, **lists: Sequence[Any] | int | None) -> None:
        """An error where ``k``, ``users`` or a list of items is over its bound."""
        for name, given in lists.items():
            if isinstance(given, int):
                if given > self.max_k:
                    raise InputError(f"{name} must be at most {self.max_k:,}, got {given:,}")
            elif given is not None and len(given) > (most := self.max_users if name == "users" else self.max_ids):
                raise InputError(f"{name} must have at most {most:,} identifiers, got {len(given):,}")


class Guard:
    """Counts every request, and answers 413 to a body over the limit.

    Args:
        app: The application.
        telemetry: Where requests are counted.
        max_body: Largest body, in bytes.
        paths: The paths that there are.
    """

    def __init__(self, app: App, telemetry: Telemetry, max_body: int, paths: Collection[str]) -> None:
        self.app, self.telemetry, self.max_body, self.paths = app, telemetry, max_body, frozenset(paths)

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        path = scope["path"] if scope["path"] in self.paths else OTHER
        started, status = self.telemetry.start(), 500

        async def watched(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            body = await self._body(receive)
            if body is None:
                await _refuse(watched, f"the body must have at most {self.max_body:,} bytes; send fewer identifiers")
            else:
                await self.app(scope, _replayed(body, receive), watched)
        finally:
            self.telemetry.end(path, status, started)

    async def _body(self, receive: Receive) -> bytes | None:
        """The whole body; None where it is larger than it may be.

        A client that still sends when the connection closes may never see the answer, so some of what is too much is
        read and thrown away.
        """
        parts: list[bytes] = []
        n_bytes, more = 0, True
        while more and n_bytes <= DISCARDED * self.max_body:
            message = await receive()
            part = message.get("body", b"")
            n_bytes += len(part)
            if n_bytes <= self.max_body:
                parts.append(part)
            more = message["type"] == "http.request" and message.get("more_body", False)
        return b"".join(parts) if n_bytes <= self.max_body else None


def _replayed(body: bytes, receive: Receive) -> Receive:
    """What the application receives: the body that was read, then whatever comes."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def next_message() -> Message:
        return messages.pop() if messages else await receive()

    return next_message


async def _refuse(send: Send, sentence: str) -> None:
    body = json.dumps({"error": sentence}).encode()
    headers = [(b"content-type", b"application/json"), (b"connection", b"close")]  # the rest of the body is not read
    await send({"type": "http.response.start", "status": 413, "headers": headers})
    await send({"type": "http.response.body", "body": body})
