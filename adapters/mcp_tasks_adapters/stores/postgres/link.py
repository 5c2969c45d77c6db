"""A connection that comes back after trouble, and that nobody waits for longer than is bounded.

While the server cannot be reached, requests fail at once; attempts to reach it are made with growing pauses,
by whoever asks next. A statement that the server does not end, and that no answer comes to, ends because
:class:`Watchdog` cuts the connection.
"""

from __future__ import annotations

import logging
import os
import random
import selectors
import socket
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from threading import Event, Lock, Thread
from time import monotonic
from typing import Any, Final, TypeVar

import psycopg
from psycopg import sql

from mcp_tasks_adapters.stores.postgres.place import Place, UnreachableError, what_is_wrong

__all__ = ["Link", "Watchdog", "readable"]

FIRST_PAUSE_S: Final = 0.05
LONGEST_PAUSE_S: Final = 2.0
PROMPT_S: Final = 0.25
"""How long a request waits for a connection."""
GRACE_S: Final = 1.0
"""How much longer than the server's own timeout a statement may take until the connection is cut."""
LOOK_S: Final = 0.5
"""From one look of the watchdog to the next."""

_Found = TypeVar("_Found")

_log = logging.getLogger("mcp_tasks_adapters")


class Link:
    """One connection at a time, for one thread; ``doing`` is what it is for, in the log."""

    def __init__(self, place: Place, doing: str) -> None:
        self._place = place
        self._doing = doing
        self._connection: psycopg.Connection | None = None
        self._attempt: Future[psycopg.Connection] | None = None
        self._pause_s = 0.0
        self._not_before = 0.0
        self._trouble: str | None = None
        self._busy_since: float | None = None
        self.number = 0
        """Which connection it is, or was last: the how many-th."""
        self.pid = 0
        """Who we are to the server; other connections get the number once this one has ended."""
        self._lock = Lock()
        """Held while the connection is let go of or cut: another one may get its number."""

    @property
    def connected(self) -> bool:
        """Whether there is a connection, as far as anybody knows."""
        return self._connection is not None

    @property
    def retry_s(self) -> float:
        """How long it is until another attempt to connect may be made."""
        return max(0.0, self._not_before - monotonic())

    def connection(self, patience_s: float = PROMPT_S) -> psycopg.Connection:
        """Return the connection. Raises :class:`UnreachableError`, and :class:`psycopg.Error`.

        ``patience_s`` is how long an attempt to connect is waited for; the attempt itself may take longer.
        """
        if self._connection is None:
            self._connection = self._connected(patience_s)
            self.number += 1
            self.pid = self._connection.info.backend_pid
            try:
                self._timed(self._place.set_up, self._connection)
            except Exception as error:
                self.report(error)
                self._drop()
                raise
        return self._connection

    def run(self, query: str | sql.Composed, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run one statement, and return what it found. Raises as :meth:`connection` does.

        If it raises, and :attr:`connected` is still true, then nothing has come of the statement; otherwise
        nobody knows.
        """
        connection = self.connection()
        try:
            found = self._timed(_run, connection, query, values)
        except Exception as error:
            self.report(error)
            if connection.closed or connection.broken:
                self._drop()
            raise
        self._pause_s = 0.0
        self._trouble = None
        return found

    @property
    def socket(self) -> int | None:
        """What becomes readable when the server says something."""
        with suppress(psycopg.Error):
            return None if self._connection is None else self._connection.fileno()
        return None

    def listen(self) -> Sequence[int]:
        """Take in what the server has said by itself; return who notified.

        If the connection has ended meanwhile, that is noticed here. Raises as :meth:`connection` does.
        """
        connection = self.connection()
        try:
            while readable([connection.fileno()], 0):
                connection.pgconn.consume_input()
        except psycopg.Error as error:
            self.report(error)
            self._drop()
            raise
        pids = []
        while (notification := connection.pgconn.notifies()) is not None:
            pids.append(notification.be_pid)
        return pids

    def report(self, error: Exception) -> None:
        """Log what is wrong; once, however often it is met."""
        trouble = what_is_wrong(error)
        if trouble != self._trouble:
            self._trouble = trouble
            _log.error("the store cannot %s: %s", self._doing, trouble)

    def close(self) -> None:
        """Let go of the connection; whoever asks next opens another."""
        with self._lock:
            connection, self._connection, self.pid = self._connection, None, 0
            if connection is not None:
                connection.close()
        attempt, self._attempt = self._attempt, None
        if attempt is not None:
            attempt.add_done_callback(_discard)

    def cut_if_stuck(self) -> None:
        """Cut the connection if it has been waited for too long; on any thread."""
        with self._lock, suppress(OSError, psycopg.Error):
            since, connection = self._busy_since, self._connection
            stuck = since is not None and monotonic() - since > self._place.timeout_s + GRACE_S
            if stuck and connection is not None:
                with socket.socket(fileno=os.dup(connection.fileno())) as ours:
                    ours.shutdown(socket.SHUT_RDWR)

    # ------------------------------------------------------------------------------------------------------

    def _timed(self, do: Callable[..., _Found], *values: Any) -> _Found:
        self._busy_since = monotonic()
        try:
            return do(*values)
        finally:
            self._busy_since = None

    def _connected(self, patience_s: float) -> psycopg.Connection:
        """Return a new connection, if one can be had soon."""
        if self._attempt is None:
            if self.retry_s:
                raise UnreachableError("no connection; the next attempt is to come")
            self._attempt = _attempt(self._place)
        try:
            connection = self._attempt.result(patience_s)
        except TimeoutError:
            raise UnreachableError("no connection yet") from None
        except Exception as error:
            self._attempt = None
            self._wait_longer()
            self.report(error)
            raise UnreachableError(what_is_wrong(error)) from None
        self._attempt = None
        return connection

    def _drop(self) -> None:
        self.close()
        self._wait_longer()

    def _wait_longer(self) -> None:
        """Let the next pause be longer, and none like those of the other nodes."""
        self._not_before = monotonic() + self._pause_s * random.uniform(0.5, 1.0)
        self._pause_s = min(max(FIRST_PAUSE_S, 2 * self._pause_s), LONGEST_PAUSE_S)


def readable(sources: Sequence[int], timeout_s: float) -> Sequence[int]:
    """Wait until there is something to read from one of these; return from which."""
    # Not select(), which knows no number above 1023 where there is anything else.
    with getattr(selectors, "PollSelector", selectors.SelectSelector)() as selector:
        for source in sources:
            selector.register(source, selectors.EVENT_READ)
        return [key.fd for key, _ in selector.select(timeout_s)]


def _run(
    connection: psycopg.Connection, query: str | sql.Composed, values: Sequence[Any]
) -> list[tuple[Any, ...]]:
    cursor = connection.execute(query.encode() if isinstance(query, str) else query, values or None)
    return cursor.fetchall() if cursor.description else []


def _discard(attempt: Future[psycopg.Connection]) -> None:
    if attempt.exception() is None:
        attempt.result().close()


def _attempt(place: Place) -> Future[psycopg.Connection]:
    """Begin to connect, on a thread; it takes as long as the DSN allows."""
    attempt: Future[psycopg.Connection] = Future()

    def connect() -> None:
        try:
            attempt.set_result(place.connect())
        except Exception as error:
            attempt.set_exception(error)

    Thread(target=connect, name="mcp-tasks-connect", daemon=True).start()
    return attempt


class Watchdog:
    """Looks after some links, on a thread of its own, from :meth:`start` to :meth:`stop`."""

    def __init__(self, links: Sequence[Link]) -> None:
        self._links = links
        self._over = Event()

    def start(self) -> None:
        """Begin."""
        Thread(target=self._run, name="mcp-tasks-watchdog", daemon=True).start()

    def stop(self) -> None:
        """End."""
        self._over.set()

    def _run(self) -> None:
        while not self._over.wait(LOOK_S):
            for link in self._links:
                link.cut_if_stuck()
