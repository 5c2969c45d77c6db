"""What a requester of both eras is told, and asks for, beside what the modern one knows.

Over HTTP a legacy server sends requests of its own, on any stream; they are answered by a POST. On stdio all
of it goes over the one channel.
"""

from __future__ import annotations

from typing import Any, Literal

from attrs import frozen

from mcp_tasks_proto.requester.effects import RequesterEffect
from mcp_tasks_proto.requester.inputs import RequesterInput

__all__ = [
    "Closing",
    "ConnectionLost",
    "DualEraEffect",
    "DualEraInput",
    "DualEraStep",
    "Era",
    "SendLegacy",
    "ServerAsked",
    "StreamOpened",
]

Era = Literal["modern", "legacy"]
"""2026-07-28 or 2025-11-25."""


# -- facts -------------------------------------------------------------------------------------------------


@frozen(kw_only=True)
class ServerAsked:
    """A request of the server's came in."""

    request: int = 0
    """The request of this side on whose stream it came; 0: on none, or on the channel that all share."""
    message: Any
    """The parsed JSON."""
    new_id: str
    """Random data, 122 bits or more in header-safe ASCII: the id of the task that it may become (LIFE.6)."""


@frozen
class StreamOpened:
    """The server has begun the event stream that a GET asked for; what it says from now on arrives."""

    request: int


@frozen
class ConnectionLost:
    """The server's process has ended, and its session with it; another is started for the next message."""


@frozen
class Closing:
    """The client is about to close: a session that nobody needs any more can be ended."""


DualEraInput = RequesterInput | ServerAsked | StreamOpened | ConnectionLost | Closing


# -- commands ----------------------------------------------------------------------------------------------


@frozen(kw_only=True)
class SendLegacy:
    """Send a message of 2025-11-25, or what its Streamable HTTP has beside messages.

    Report as for ``SendRequest``. What is no request is over as soon as it is sent, or HTTP has answered:
    report ``ResponseReceived`` without a message. ``StopRequest`` may end any of them.
    """

    request: int
    """Its name; the id of a request."""
    message: dict[str, Any] | None = None
    """A request, a notification or a response; ``None`` with GET and DELETE."""
    verb: Literal["POST", "GET", "DELETE"] = "POST"
    """GET opens a stream for what the server says unasked, DELETE ends the session; both on HTTP only."""
    version: str | None = None
    """For ``MCP-Protocol-Version``."""
    session: str | None = None
    """For ``Mcp-Session-Id``: a secret, as good as a credential."""
    last_event_id: str | None = None
    """For ``Last-Event-ID``."""

    @property
    def awaits_response(self) -> bool:
        """Whether it is a request."""
        return self.message is not None and "method" in self.message and "id" in self.message


DualEraEffect = RequesterEffect | SendLegacy


@frozen
class DualEraStep:
    """What is to be done about one input."""

    effects: tuple[DualEraEffect, ...] = ()
    deadline: int | None = None
    """Unix milliseconds at which to hand in ``TimePassed``; ``None``: no need."""
