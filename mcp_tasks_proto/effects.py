"""What an engine asks of its host: commands, in the imperative.

What an effect carries may be the engine's own: read it, never change it.

A :class:`Step` is the answer to one input: the commands, to be carried out in order, and the time at
which the engine wants to hear :class:`~mcp_tasks_proto.inputs.TimePassed`.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from enum import Enum
from typing import Any

from attrs import field, frozen

from mcp_tasks_proto.records import TaskRecord

__all__ = [
    "AcceptReport",
    "CancelReason",
    "Delete",
    "DeliverInput",
    "Effect",
    "FindExpired",
    "Forward",
    "InputAnswer",
    "ListTasks",
    "Load",
    "OpenStream",
    "Quota",
    "RejectReport",
    "Reply",
    "RequestCancel",
    "ResumeWork",
    "Save",
    "Send",
    "StartTool",
    "StartWork",
    "Step",
    "StopCall",
    "StoreEffect",
]


# -- to the peer -------------------------------------------------------------------------------------


@frozen(slots=False)
class Reply:
    """Send the last message of an exchange, which ends with it: its response, as a rule.

    ``message`` is ``None`` for an accepted notification: HTTP answers an empty 202, stdio nothing.
    On an exchange that has become a stream the message goes on it, and ``http_status`` has no use.
    """

    exchange: Hashable
    message: dict[str, Any] | None
    http_status: int
    session: str | None = None
    """The id of the session that this reply opens, for the header ``Mcp-Session-Id`` (LEG.2)."""
    event_id: str | None = None
    """The id of its event, where it goes on a stream that can be taken up again (LEG.2)."""


@frozen
class Send:
    """Send a message on the stream of an exchange that goes on, then report ``StreamReady``."""

    exchange: Hashable
    message: dict[str, Any]
    event_id: str | None = None
    """The id of its event, where the stream can be taken up again (LEG.2)."""


@frozen
class OpenStream:
    """Make the exchange a stream now, before there is a message to send on it (LEG.2).

    Only :class:`~mcp_tasks_proto.legacy.server.DualEraServer` asks for it, and only over HTTP.
    """

    exchange: Hashable


# -- to the code that answers requests ------------------------------------------------------------------


@frozen(kw_only=True, slots=False)
class StartTool:
    """Run a tool's handler; its outcome comes back as one of the call inputs."""

    exchange: Hashable
    tool: str
    arguments: Mapping[str, Any]
    can_create_task: bool
    """Whether ``CallBecameTask`` is allowed (NEG.5)."""
    client_capabilities: Mapping[str, Any]
    principal: str | None
    answers: Mapping[str, Any] = field(factory=dict)
    """Answers to what this call asked before (MRTR), by name; checked."""
    state: Any = None
    """What the handler gave as ``state`` then."""
    params: Mapping[str, Any] = field(factory=dict)
    """The request's params as they came, ``_meta`` and unknown fields included (WIRE.5)."""
    must_create_task: bool = False
    """The caller is owed a task (LEG.3): report ``CallBecameTask`` at once, and let the handler run as its
    work. Only a caller of 2025-11-25 can ask for that."""


@frozen(kw_only=True)
class Forward:
    """Answer a method that the engine does not own; its outcome comes back as a call input."""

    exchange: Hashable
    method: str
    params: Mapping[str, Any]
    client_capabilities: Mapping[str, Any]
    principal: str | None
    answers: Mapping[str, Any] = field(factory=dict)
    state: Any = None


@frozen
class StopCall:
    """Stop the handler of this exchange: nobody waits for it any more. No outcome is expected.

    On a channel that goes on, the exchange is over without a reply (CAN.7).
    """

    exchange: Hashable


# -- to the workers -----------------------------------------------------------------------------------------


@frozen(slots=False)
class StartWork:
    """The task is durable: start the work that the handler of ``exchange`` offered."""

    exchange: Hashable
    task_id: str


@frozen(kw_only=True)
class ResumeWork:
    """The node that ran this task's work is gone, and the work is this node's now: run the tool again.

    Its handler is given what it was given first, and its work reports with this ``resumption``. What it asks
    again is not asked anew: the answers that there are come at once, by ``DeliverInput`` (INP.1).
    """

    task_id: str
    resumption: int
    tool: str
    arguments: Mapping[str, Any]
    client_capabilities: Mapping[str, Any]
    principal: str | None
    checkpoint: Any = None
    """What the work saved last (``WorkCheckpointed``); ``None``: nothing."""
    answers: Mapping[str, Any] = field(factory=dict)
    """What ``StartTool`` carried when the call became a task."""
    state: Any = None
    """Likewise."""


@frozen
class InputAnswer:
    """One answer on its way to a worker, who asked for it as ``name`` in its question ``ask``."""

    key: str
    ask: str
    name: str
    response: Mapping[str, Any]


@frozen
class DeliverInput:
    """Hand these answers to the worker. Each comes once."""

    task_id: str
    answers: tuple[InputAnswer, ...]


class CancelReason(Enum):
    """Why a worker is told to stop."""

    REQUESTED = "requested"
    EXPIRED = "expired"
    """Its time to live has passed; its record is gone, or about to go."""
    ENDED = "ended"
    """The task has ended without this worker: cancelled by deadline, or by another node."""
    TAKEN_OVER = "taken over"
    """Another node runs the work now: this worker's was taken for gone, and what it reports is not taken."""

    __hash__ = object.__hash__


@frozen
class RequestCancel:
    """Tell the worker to stop. It is told once."""

    task_id: str
    reason: CancelReason


@frozen
class AcceptReport:
    """The report with this token is durable (or was too late to matter)."""

    token: Hashable


@frozen
class RejectReport:
    """The report with this token was not taken; ``reason`` is a sentence for the tool's author."""

    token: Hashable
    reason: str


# -- to the store ------------------------------------------------------------------------------------


@frozen(slots=False)
class Load:
    """Answer with ``Loaded`` or ``LoadFailed``."""

    task_id: str
    token: Hashable


@frozen(kw_only=True)
class Quota:
    """Refuse the save if, with it, the store would hold more than this (TTL.2)."""

    tasks: int
    tasks_per_principal: int
    task_bytes: int


@frozen(slots=False)
class Save:
    """Write ``record`` if the stored version is ``expected_version`` (``None``: there is none yet).

    Answer with ``Saved``, ``SaveConflict``, ``SaveFailed`` or, when a quota is given, ``SaveRefused``.
    """

    record: TaskRecord
    expected_version: int | None
    token: Hashable
    quota: Quota | None = None


@frozen
class Delete:
    """Remove the record if its version is ``expected_version``; answered as ``Save`` is."""

    task_id: str
    expected_version: int
    token: Hashable


@frozen
class FindExpired:
    """Answer with ``ExpiredFound``: at most ``limit`` records that are expired at ``now_ms``, and the
    earliest expiry among the records not returned. Or ``LoadFailed``."""

    now_ms: int
    limit: int
    token: Hashable


@frozen(kw_only=True)
class ListTasks:
    """Answer with ``TasksListed``: at most ``limit`` records of ``principal``, in order of their ids, the
    first being the first after ``after``; or with ``LoadFailed`` (LEG.7)."""

    principal: str
    after: str | None
    """A task id, whether there is such a task or not; ``None``: from the beginning."""
    limit: int
    token: Hashable


StoreEffect = Load | Save | Delete | FindExpired | ListTasks
"""What a store is asked. What comes of it has the same token."""
Effect = (
    Reply
    | Send
    | OpenStream
    | StartTool
    | Forward
    | StopCall
    | StartWork
    | ResumeWork
    | DeliverInput
    | RequestCancel
    | AcceptReport
    | RejectReport
    | StoreEffect
)


@frozen(slots=False)
class Step:
    """The engine's answer to one input."""

    effects: tuple[Effect, ...] = ()
    deadline: int | None = None
    """Unix milliseconds at which to hand in ``TimePassed``; ``None``: no need."""
