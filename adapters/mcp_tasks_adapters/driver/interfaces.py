"""What a driver needs of an event loop and of its peers, and what it is to them."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Hashable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from attrs import frozen

from mcp_tasks_adapters.storing import LoopThread
from mcp_tasks_proto.inputs import HttpHead
from mcp_tasks_proto.wire.pages import PageHead

__all__ = ["Channel", "Job", "Loop", "Pages", "RequestFacts", "Service", "SessionService"]


@frozen(kw_only=True)
class RequestFacts:
    """What a ``principal=`` or ``enabled=`` function may look at."""

    transport: str
    """``"http"`` or ``"stdio"``."""
    headers: Mapping[str, str]
    """HTTP headers, names in lower case; empty on stdio."""
    peer: str | None = None
    """The peer's address, where there is one."""


class Job(Protocol):
    """A coroutine that was started."""

    def cancel(self) -> object:
        """Cancel it, the loop's own way. Harmless once it has ended; called once."""


class Loop(LoopThread, Protocol):
    """What the driver needs of an event loop."""

    @property
    def cancelled(self) -> type[BaseException]:
        """What is raised in a job that is cancelled."""

    def now_ms(self) -> int:
        """Unix milliseconds."""

    def spawn(self, run: Callable[[], Coroutine[Any, Any, None]]) -> Job:
        """Start ``run`` soon, in the caller's nursery or task group. ``run`` handles its own errors."""

    def wake_at(self, deadline_ms: int | None) -> None:
        """Call ``driver.wake()`` at that time; replaces what was asked for before; ``None``: never.

        A time in the past means soon: never from within this call.
        """

    async def checkpoint(self) -> None:
        """Let others run once: ``trio.lowlevel.checkpoint()``, ``asyncio.sleep(0)``."""


class Channel(Protocol):
    """The way back to the peer for one exchange. Neither method waits or raises."""

    def reply(
        self,
        message: dict[str, Any] | None,
        http_status: int,
        headers: Sequence[tuple[str, str]] = (),
        event_id: str | None = None,
    ) -> None:
        """Send the last message; ``None``: none, as for a notification, or a request that was cancelled.

        ``headers`` are HTTP headers to add, names in lower case (``www-authenticate`` beside a 401); a
        transport that has no status and headers leaves both out. ``event_id`` is that of its server-sent
        event, for clients of 2025-11-25.
        """

    def send(self, message: dict[str, Any], event_id: str | None = None) -> None:
        """Send a message on the stream; call ``driver.ready(exchange)`` when it has left."""

    def open(self) -> None:
        """Make the response a stream before there is a message to send (2025-11-25, HTTP)."""


class Pages(Protocol):
    """What answers requests that are no messages, below a path of its own."""

    @property
    def prefix(self) -> str:
        """What the paths of these requests begin with."""

    def receive(
        self, head: PageHead, body: bytes | bytearray, channel: Channel, facts: RequestFacts | None
    ) -> None:
        """Take in a complete request; it is answered on its channel, now or later."""


class Service(Protocol):
    """What an endpoint hands messages to: the driver of a server, or of a proxy. See :class:`Driver`."""

    @property
    def asks_who_calls(self) -> bool:
        """Whether a function looks at requests, who then must come with their facts."""

    @property
    def pages(self) -> Pages | None:
        """What is served beside the MCP endpoint, on the same port."""

    def receive(
        self,
        message: Any,
        channel: Channel,
        *,
        facts: RequestFacts | None,
        connection: Hashable | None = None,
        http: HttpHead | None = None,
    ) -> int:
        """Take in a parsed JSON value; return the exchange it opened."""

    def closed(self, exchange: int) -> None:
        """The peer of this exchange is gone."""

    def connection_closed(self, connection: Hashable) -> None:
        """A shared channel has ended."""

    def ready(self, exchange: int) -> None:
        """What was sent on this exchange's stream has been written."""

    def shutdown(self) -> None:
        """End the listen streams gracefully and refuse new requests."""

    def stop_calls(self) -> None:
        """Answer whoever still waits."""


@runtime_checkable
class SessionService(Service, Protocol):
    """A service with sessions: they have requests without a message."""

    def receive_head(self, channel: Channel, *, facts: RequestFacts | None, http: HttpHead) -> int:
        """Take in a GET or DELETE; return the exchange it opened."""
