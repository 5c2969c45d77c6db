"""What a host tells a requester engine: facts, in the past tense.

``call`` names one thing the caller wants done, from its first request to its outcome; the host chooses it,
hashable and never used twice. ``request`` is the engine's name for one message it had sent.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

from attrs import field, frozen

from mcp_tasks_proto.inputs import TimePassed
from mcp_tasks_proto.requester.outcomes import Fault

__all__ = [
    "AnswerGiven",
    "CallWanted",
    "CancelWanted",
    "HttpReply",
    "NotificationReceived",
    "RequestFailed",
    "RequestWanted",
    "RequesterInput",
    "ResponseReceived",
    "ResumeWanted",
    "TimePassed",
    "WaitAbandoned",
]


# -- the caller's wishes ---------------------------------------------------------------------------


@frozen(kw_only=True)
class CallWanted:
    """Somebody wants a tool called, and to know what comes of it (REQ.1)."""

    call: Hashable
    tool: str
    arguments: Mapping[str, Any] = field(factory=dict)
    meta: Mapping[str, Any] = field(factory=dict)
    """Keys for the request's ``_meta``: trace context, a progress token, an application's own."""
    deadline_ms: int | None = None
    """Unix milliseconds after which nobody waits any more (REQ.3)."""


@frozen(kw_only=True)
class RequestWanted:
    """Somebody wants one request of any other method answered."""

    call: Hashable
    method: str
    params: Mapping[str, Any] = field(factory=dict)
    meta: Mapping[str, Any] = field(factory=dict)
    deadline_ms: int | None = None


@frozen(kw_only=True)
class ResumeWanted:
    """Somebody wants to go on with a task of which only a saved reference is left (REQ.6)."""

    call: Hashable
    reference: Any
    """What ``KeepReference`` gave, as JSON.

    Anything else settles the call as failed, by the caller; so does a reference to another server's task,
    for whoever knows a task's id may be able to use it.
    """
    deadline_ms: int | None = None


@frozen
class CancelWanted:
    """The caller no longer wants the result (REQ.7).

    With ``wait`` the call settles as the task ends, cancelled or not; without, at once.
    """

    call: Hashable
    wait: bool = False


@frozen
class WaitAbandoned:
    """The caller stops watching. The task goes on, and can be resumed from its reference (REQ.7)."""

    call: Hashable


@frozen
class AnswerGiven:
    """The person, or the program, that was prompted gave this answer, and approves of sending it."""

    call: Hashable
    key: str
    response: Mapping[str, Any]


# -- the network's facts -----------------------------------------------------------------------------


@frozen(kw_only=True)
class HttpReply:
    """What the engine must know of an HTTP response beside its body."""

    status: int
    retry_after_ms: int | None = None
    session: str | None = None
    """The ``Mcp-Session-Id`` that it gives. Only 2025-11-25 has sessions."""


@frozen(kw_only=True)
class ResponseReceived:
    """A request was answered."""

    request: int
    message: Any
    """The parsed JSON, nested as ``wire.jsonrpc.decode`` allows (WIRE.2); ``None``: the body was none."""
    http: HttpReply | None = None


@frozen
class NotificationReceived:
    """A notification came in on the way to the answer of ``request``, or on its listen stream."""

    request: int
    message: Any


@frozen
class RequestFailed:
    """A request will not be answered: no connection, a broken one, a timeout, garbage.

    ``sent``: whether any of it may have reached the server. ``fault``: who has to act, where it is not the
    network's doing: a request that no transport can carry is its caller's.
    """

    request: int
    reason: str
    sent: bool = True
    fault: Fault = Fault.NETWORK
    last_event_id: str | None = None
    """Where its event stream broke off; only those of 2025-11-25 can be taken up again. One that was taken
    up, and on which nothing new has come, breaks off where it was taken up."""
    retry_ms: int | None = None
    """How long that stream asked to be left alone before."""


RequesterInput = (
    CallWanted
    | RequestWanted
    | ResumeWanted
    | CancelWanted
    | WaitAbandoned
    | AnswerGiven
    | ResponseReceived
    | NotificationReceived
    | RequestFailed
    | TimePassed
)
