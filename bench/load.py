"""The load: keep-alive HTTP connections, each with one request under way at any time.

It runs in the benchmark's own process, on a core of its own, and costs as little as it can: requests are
bytes made beforehand, a reply is searched for its length and its marker and not parsed any further.
"""

from __future__ import annotations

import re
import selectors
import socket
import time
from collections.abc import Callable, Sequence
from typing import Final

from attrs import frozen

__all__ = [
    "CONNECTIONS",
    "Load",
    "Measured",
    "WrongReplyError",
    "drive",
    "exchange",
    "http_request",
    "send",
    "waits",
]

CONNECTIONS: Final = 32
TIMEOUT_SECONDS: Final = 60.0

_HEAD_END: Final = b"\r\n\r\n"
_LENGTH: Final = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)


class WrongReplyError(Exception):
    """A server answered something else than what is being measured."""


@frozen(kw_only=True)
class Load:
    """What is sent to a server, and how its replies are known to be right."""

    requests: Sequence[bytes]
    """Complete HTTP requests; connection ``n`` sends the ``n``-th again and again, in turn."""
    marker: bytes
    """What the body of every good reply contains."""


@frozen
class Measured:
    """What one run gave."""

    replies: int
    seconds: float
    last_bodies: tuple[bytes, ...]
    """The last reply's body on each connection."""
    used: float = 0.0
    """How much more ``used`` said at the end than at the start."""

    @property
    def rate(self) -> float:
        """Replies a second."""
        return self.replies / self.seconds


class _Connection:
    __slots__ = ("body", "received", "request", "sock")

    def __init__(self, port: int, request: bytes) -> None:
        self.sock = socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_SECONDS)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.request = request
        self.received = b""
        self.body = b""

    def take(self, marker: bytes) -> bool:
        """Read what is there; return whether a reply is complete."""
        data = self.sock.recv(65536)
        if not data:
            raise WrongReplyError("the server closed the connection")
        data = self.received + data
        head = data.find(_HEAD_END)
        if head < 0:
            self.received = data
            return False
        length = _LENGTH.search(data, 0, head)
        if length is None:
            raise WrongReplyError(f"no content-length: {data[:500]!r}")
        body = data[head + 4 :]
        if len(body) < int(length[1]):
            self.received = data
            return False
        if not data.startswith(b"HTTP/1.1 200") or marker not in body:
            raise WrongReplyError(repr(data[:1000]))
        self.received = b""
        self.body = body
        return True


def http_request(port: int, body: bytes, headers: Sequence[tuple[str, str]]) -> bytes:
    """Return the bytes of a POST to ``/mcp``."""
    lines = [
        "POST /mcp HTTP/1.1",
        f"Host: 127.0.0.1:{port}",
        "Content-Type: application/json",
        "Accept: application/json, text/event-stream",
        *(f"{name}: {value}" for name, value in headers),
        f"Content-Length: {len(body)}",
    ]
    return "\r\n".join(lines).encode("ascii") + _HEAD_END + body


def exchange(port: int, request: bytes, marker: bytes = b"") -> bytes:
    """Send one request on a connection of its own; return the body of its reply."""
    connection = _Connection(port, request)
    with connection.sock:
        connection.sock.sendall(request)
        while not connection.take(marker):
            pass
    return connection.body


def drive(
    port: int, load: Load, *, seconds: float, warm_up: float, used: Callable[[], float] = lambda: 0.0
) -> Measured:
    """Keep every connection busy, and count for ``seconds`` after ``warm_up`` seconds.

    ``used`` tells what a server has used so far, of whatever is counted besides. Raises
    :class:`WrongReplyError` when a reply is not what the load expects.
    """
    with _Connections(port, load) as connections:
        connections.pump(until=_clock_reaches(time.perf_counter() + warm_up))
        start, used_before = time.perf_counter(), used()
        replies = connections.pump(until=_clock_reaches(start + seconds))
        took, more = time.perf_counter() - start, used() - used_before
        connections.drain()
    return Measured(replies, took, connections.last_bodies, more)


def waits(port: int, load: Load, *, seconds: float) -> Sequence[float]:
    """Send the first request again and again on one connection; return how long each reply took, in seconds.

    Raises :class:`WrongReplyError` when a reply is not what the load expects.
    """
    connection = _Connection(port, load.requests[0])
    took: list[float] = []
    end = time.perf_counter() + seconds
    with connection.sock:
        while not took or time.perf_counter() < end:
            start = time.perf_counter()
            connection.sock.sendall(connection.request)
            while not connection.take(load.marker):
                pass
            took.append(time.perf_counter() - start)
    return took


def send(port: int, load: Load, *, replies: int) -> Measured:
    """Keep every connection busy until at least ``replies`` came, and let those under way come as well.

    Raises :class:`WrongReplyError` when a reply is not what the load expects.
    """
    start = time.perf_counter()
    with _Connections(port, load) as connections:
        came = connections.pump(until=lambda count: count >= replies - CONNECTIONS)
        came += connections.drain()
    return Measured(came, time.perf_counter() - start, connections.last_bodies)


def _clock_reaches(end: float) -> Callable[[int], bool]:
    return lambda _count: time.perf_counter() >= end


class _Connections:
    """All connections of a load, each with a request under way from the start."""

    def __init__(self, port: int, load: Load) -> None:
        self._marker = load.marker
        self._selector = selectors.DefaultSelector()
        self._all = [_Connection(port, load.requests[n % len(load.requests)]) for n in range(CONNECTIONS)]
        for connection in self._all:
            self._selector.register(connection.sock, selectors.EVENT_READ, connection)
            connection.sock.sendall(connection.request)

    def __enter__(self) -> _Connections:
        return self

    def __exit__(self, *_exc: object) -> None:
        self._selector.close()
        for connection in self._all:
            connection.sock.close()

    @property
    def last_bodies(self) -> tuple[bytes, ...]:
        return tuple(connection.body for connection in self._all)

    def pump(self, *, until: Callable[[int], bool]) -> int:
        """Follow every reply with the next request; return how many replies came."""
        replies = 0
        while not until(replies):
            for connection in self._ready():
                if connection.take(self._marker):
                    replies += 1
                    connection.sock.sendall(connection.request)
        return replies

    def drain(self) -> int:
        """Wait for the replies under way and send nothing more; return how many came."""
        replies = 0
        while self._selector.get_map():
            for connection in self._ready():
                if connection.take(self._marker):
                    replies += 1
                    self._selector.unregister(connection.sock)
        return replies

    def _ready(self) -> list[_Connection]:
        ready = self._selector.select(TIMEOUT_SECONDS)
        if not ready:
            raise WrongReplyError(f"no reply within {TIMEOUT_SECONDS:.0f} s")
        return [key.data for key, _events in ready]
