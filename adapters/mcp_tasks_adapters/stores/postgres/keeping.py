"""Keeping the node alive: its lease is renewed, news are listened for, and the other nodes are judged.

The lease runs by the server's clock. A node that cannot renew it in time is gone to the others, and writes
nothing any more, until it is back and has renewed it: from then on others leave alone what names it.

Who was away itself judges nobody at first: the server may have been away for everybody, and the others
deserve the time of a lease to come back too.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from socket import socket, socketpair
from threading import Event, Thread
from time import monotonic
from typing import Final

import psycopg
from attrs import define, field
from psycopg import sql

from mcp_tasks_adapters.stores.postgres.link import Link, readable
from mcp_tasks_adapters.stores.postgres.place import UnreachableError

__all__ = ["Keeper"]

RENEWALS: Final = 4
"""How often a lease is renewed while it lasts."""
LEAST_NAP_S: Final = 0.1
"""After trouble."""

RENEW: Final = """
    UPDATE nodes SET lease_until = clock_timestamp() + %s * interval '1 ms'
    WHERE writer = %s AND lease_until > clock_timestamp() RETURNING writer
"""
REVIVE: Final = """
    UPDATE nodes SET lease_until = clock_timestamp() + %s * interval '1 ms', settled = false
    WHERE writer = %s RETURNING writer
"""

_log = logging.getLogger("mcp_tasks_adapters")


@define(eq=False, kw_only=True)
class Keeper:
    """Works on a thread of its own, from :meth:`start` to :meth:`stop`.

    ``changed`` is called when others may have changed something, ``judge`` when it is time to see whether
    others are gone; both on the thread.
    """

    link: Link
    writer: int
    lease_ms: int
    channel: str
    is_ours: Callable[[int], bool]
    """Whether a process of the server's works for this node: what that one says is no news."""
    changed: Callable[[], None]
    judge: Callable[[], None]
    _over: Event = field(init=False, factory=Event)
    _ended: Event = field(init=False, factory=Event)
    _bell: tuple[socket, socket] = field(init=False, factory=socketpair)
    """Rung, by whoever stops it, to wake the thread."""
    _listening_since: float = field(init=False, default=0.0)
    _listening_on: int = field(init=False, default=0)
    """Which connection listens."""

    def start(self) -> None:
        """Begin."""
        Thread(target=self._run, name="mcp-tasks-keeper", daemon=True).start()

    def stop(self) -> None:
        """End; from now on the lease runs out."""
        self._over.set()
        with suppress(OSError):  # it has ended already
            self._bell[1].send(b"!")

    def wait(self, patience_s: float) -> None:
        """Wait until it has ended; on another thread."""
        self._ended.wait(patience_s)

    def close(self) -> None:
        """Let go of everything; where it was started, its thread does that at its end."""
        self.link.close()
        for end in self._bell:
            end.close()

    def _run(self) -> None:
        while not self._over.is_set():
            try:
                nap_s = self._keep()
            except (UnreachableError, psycopg.Error):
                nap_s = max(LEAST_NAP_S, self.link.retry_s)
            self._nap(monotonic() + nap_s)
        self.close()
        self._ended.set()

    def _keep(self) -> float:
        """Renew the lease, and see to what goes with it; return when that has to be done again."""
        self.link.connection()
        if self._listening_on != self.link.number:
            self.link.run(sql.SQL("LISTEN {}").format(sql.Identifier(self.channel)))
            self._listening_on = self.link.number
            self._listening_since = monotonic()
        if not self.link.run(RENEW, (self.lease_ms, self.writer)) and not self._over.is_set():
            self._come_back()
        self.changed()  # what was said before anybody listened
        if monotonic() - self._listening_since > self.lease_ms / 1000:
            self.judge()
        return self.lease_ms / 1000 / RENEWALS

    def _come_back(self) -> None:
        self._listening_since = monotonic()
        if not self.link.run(REVIVE, (self.lease_ms, self.writer)):
            error = UnreachableError("the others have forgotten this node: restart this process")
            self.link.report(error)
            raise error
        _log.error("the lease of this node ran out, and others may have ended its tasks; it is back now")

    def _nap(self, until: float) -> None:
        """Wait until then, for the bell, and for news."""
        while not self._over.is_set() and (rest := until - monotonic()) > 0:
            bell, connection = self._bell[0].fileno(), self.link.socket
            heard = readable([bell] if connection is None else [bell, connection], rest)
            if connection in heard and not self._hear():
                return

    def _hear(self) -> bool:
        """Take in what was said; return whether the connection is still there."""
        try:
            pids = self.link.listen()
        except (UnreachableError, psycopg.Error):
            return False
        if any(not self.is_ours(pid) for pid in pids):
            self.changed()
        return True
