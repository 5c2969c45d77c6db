"""What a client needs of an event loop and of its connections. The loop modules have all of it."""

from __future__ import annotations

import os
import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from mcp_tasks_adapters.driver import Loop
from mcp_tasks_adapters.http_exchange import HttpAddress
from mcp_tasks_proto.legacy.messages import ConnectionLost, SendLegacy, ServerAsked
from mcp_tasks_proto.requester import NotificationReceived, SendRequest

if TYPE_CHECKING:
    from mcp_tasks_proto.proxy import SendUpstream

__all__ = ["ClientLoop", "NetworkLoop", "Outgoing", "Process", "Stream", "Unasked"]

Outgoing: TypeAlias = "SendRequest | SendUpstream | SendLegacy"
"""What a client, or a proxy, sends to a server."""

Unasked = ServerAsked | NotificationReceived | ConnectionLost
"""What a server says, or does, that belongs to no request of its client's."""


class ClientLoop(Loop, Protocol):
    """An event loop, as servers need it, and with timeouts."""

    async def within(self, seconds: float | None, run: Callable[[], Awaitable[object]]) -> bool:
        """Await ``run()`` for at most so long, or as long as it takes; return whether it came to its end.

        When the time is up it is cancelled, the loop's own way.
        """


class NetworkLoop(ClientLoop, Protocol):
    """An event loop with a way out, as a loop module makes one for a client or a proxy."""

    def start(self, wake: Callable[[], None]) -> None:
        """Call ``wake`` at the times given to :meth:`wake_at`, until :meth:`close`."""

    def close(self) -> None:
        """Wake nobody any more."""

    async def finish(self, seconds: float | None, run: Callable[[], Awaitable[object]]) -> None:
        """Await ``run()`` as :meth:`within` does, at an end: one that was cancelled has still time for it."""

    async def open_stream(
        self, address: HttpAddress, context: ssl.SSLContext | None, patience: float
    ) -> Stream:
        """Connect, over TLS where there is a ``context``. Raises ``OSError``.

        ``patience``: how many seconds the peer may take to read what is sent.
        """

    async def start_process(
        self,
        command: Sequence[str],
        *,
        env: Mapping[str, str] | None,
        cwd: str | os.PathLike[str] | None,
        stderr: Any,
        own_session: bool = False,
    ) -> Process:
        """Start a process with pipes to its stdin and from its stdout. Raises ``OSError``.

        With ``own_session``, where the system has sessions, nothing that is typed at a terminal reaches it,
        and what it has started itself is told to end, and is killed, with it.
        """


class Stream(Protocol):
    """A connection, over TLS or not. Nothing here waits; what goes wrong with it is its end."""

    @property
    def error(self) -> OSError | None:
        """Why it ended, or why what was written did not leave; ``None``: nothing is wrong, or the peer just
        ended it. A ``TimeoutError``: the peer did not read in time."""

    def start(self, heard: Callable[[bytes], None]) -> None:
        """Hand over what comes, from now on; ``b""``, once: no more does. ``heard`` raises nothing."""

    def write(self, data: bytes) -> None:
        """Write, now or as soon as the peer takes it."""

    def idle(self) -> bool:
        """Whether the connection stands, and nothing has come that was not handed over yet."""

    def close(self) -> None:
        """Close at once, whatever has not been written; nothing is handed over any more."""


class Process(Protocol):
    """A process and the pipes to its stdin and from its stdout."""

    async def send(self, data: bytes) -> None:
        """Write to its stdin; ``OSError``: it does not read any more."""

    async def receive(self) -> bytes:
        """Return what comes next from its stdout; ``b""``: nothing will."""

    async def close_input(self) -> None:
        """Close its stdin, which asks it to end. May be called twice."""

    async def wait(self) -> int:
        """Wait for its end; return its exit code, negative for a signal."""

    def terminate(self) -> None:
        """Ask it to end less kindly. Harmless once it has ended, as is :meth:`kill`."""

    def kill(self) -> None:
        """End it."""

    async def close(self) -> None:
        """Let go of the pipes."""
