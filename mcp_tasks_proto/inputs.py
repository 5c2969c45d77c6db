"""What a host tells an engine: facts, in the past tense.

Four groups. *Transport* facts come from whoever owns the sockets, *call* facts from the code that
answers a request, *work* facts from the worker of a task, *store* facts from wherever records are kept.

``exchange`` names one request awaiting its reply (or one listen stream); the host chooses it, hashable
and never used twice in an engine's life. ``token`` names one thing the engine asked for; the host hands
it back untouched. In a work fact it is the other way round: the host chooses it, the engine hands it back;
with ``None`` it hands nothing back, for nobody waits.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from enum import Enum
from typing import Any, Final

from attrs import field, frozen

from mcp_tasks_proto.errors import ErrorObject
from mcp_tasks_proto.records import TaskRecord

__all__ = [
    "DEFAULT",
    "KEEP",
    "CallAskedInput",
    "CallBecameTask",
    "CallFailed",
    "CallInput",
    "CallNotified",
    "CallReturned",
    "ConnectionClosed",
    "Default",
    "ExchangeClosed",
    "ExpiredFound",
    "HttpHead",
    "Input",
    "Keep",
    "LegacyInput",
    "LoadFailed",
    "Loaded",
    "MessageReceived",
    "RecordChanged",
    "RecordRemoved",
    "SaveConflict",
    "SaveFailed",
    "SaveRefused",
    "Saved",
    "SessionEnded",
    "ShutdownStarted",
    "StoreInput",
    "StreamReady",
    "StreamRequested",
    "TaskEnded",
    "TasksListed",
    "TimePassed",
    "ToolsChanged",
    "TtlChanged",
    "WorkAskedInput",
    "WorkCheckpointed",
    "WorkCompleted",
    "WorkFailed",
    "WorkInput",
    "WorkLost",
    "WorkProgressed",
    "WorkStopped",
    "WorkWithdrewInput",
]


class Default(Enum):
    """The type of :data:`DEFAULT`."""

    DEFAULT = "default"


class Keep(Enum):
    """The type of :data:`KEEP`."""

    KEEP = "keep"


DEFAULT: Final = Default.DEFAULT
"""Take the value that ``Limits`` gives (``None`` means "unlimited" or "no hint" here)."""
KEEP: Final = Keep.KEEP
"""Leave the field as it is (``None`` means "remove it" or "unlimited" here)."""


# -- transport -----------------------------------------------------------------------------------


@frozen(kw_only=True)
class HttpHead:
    """What the engine must know of the HTTP request that carried a message (HTTP.2, HTTP.3)."""

    headers: Mapping[str, str]
    """Names in lower case; values without the whitespace around them."""
    repeated: frozenset[str] = frozenset()
    """Names of headers that stood there more than once."""
    accepts_stream: bool = True
    """Whether the client takes ``text/event-stream``; without it no notifications are sent."""
    method: str = "POST"
    """``GET`` and ``DELETE`` are of 2025-11-25: see :class:`StreamRequested` and :class:`SessionEnded`."""


@frozen(kw_only=True, slots=False)
class MessageReceived:
    """A JSON value came in. What it is - request, notification, nonsense - the engine finds out.

    ``connection`` names the shared channel it came on (stdio): ids in flight must differ on it and
    ``notifications/cancelled`` refers to it. Over HTTP, where each request has a channel of its own,
    it is ``None`` and ``http`` is given.
    """

    exchange: Hashable
    message: Any
    connection: Hashable | None = None
    http: HttpHead | None = None
    principal: str | None = None
    """The authenticated caller (SEC.1)."""
    tasks_enabled: bool = True
    """Whether the Tasks extension is on for this request (NEG.7)."""
    new_session: str | None = None
    """The id of a session, should this message open one over HTTP (LEG.2): as hard to guess as a task id.

    Only :class:`~mcp_tasks_proto.legacy.server.DualEraServer` looks at it, and only where a message is an
    ``initialize``.
    """


@frozen
class ExchangeClosed:
    """The client cannot be answered any more: its stream or connection is gone."""

    exchange: Hashable


@frozen
class StreamReady:
    """All that was sent on this exchange has left; there is room for more (SUB.2)."""

    exchange: Hashable


# -- transport of 2025-11-25 (for ``legacy.server.DualEraServer`` alone) -------------------------------------


@frozen(kw_only=True)
class StreamRequested:
    """A client opens a stream that belongs to no request of its own: HTTP GET (LEG.2).

    With a ``Last-Event-ID`` header it takes up a stream whose connection was lost.
    """

    exchange: Hashable
    http: HttpHead
    principal: str | None = None


@frozen(kw_only=True)
class SessionEnded:
    """A client ends its session: HTTP DELETE (LEG.2)."""

    exchange: Hashable
    http: HttpHead
    principal: str | None = None


@frozen
class ConnectionClosed:
    """A shared channel (stdio) has ended, and with it the session on it, if one was opened."""

    connection: Hashable


# -- calls: what came of a StartTool or a Forward ----------------------------------------------------


@frozen(slots=False)
class CallReturned:
    """The handler returned a result, a tool's ``isError`` included."""

    exchange: Hashable
    result: Mapping[str, Any]
    """JSON, which is not looked at here, for that would cost as much as writing it: whoever writes the reply
    finds out."""


@frozen
class CallFailed:
    """The handler ended with a protocol error."""

    exchange: Hashable
    error: ErrorObject


@frozen
class CallNotified:
    """The handler reports on the way: ``notifications/progress`` or ``notifications/message``.

    Dropped when the request did not ask for it. The engine fills in the progress token.
    """

    exchange: Hashable
    method: str
    params: Mapping[str, Any]


@frozen
class CallAskedInput:
    """The handler needs the client's input before it can go on (MRTR, INP.4).

    ``requests`` maps a name to ``{"method": …, "params": …}``; ``state`` is any JSON value, given back
    to the handler of the retry.
    """

    exchange: Hashable
    requests: Mapping[str, Mapping[str, Any]]
    state: Any = None


@frozen(kw_only=True, slots=False)
class CallBecameTask:
    """The handler decided to go on as a task (LIFE.8).

    ``task_id`` is the host's: at least 122 random bits in header-safe ASCII (LIFE.6). The work starts
    only when the engine says :class:`~mcp_tasks_proto.effects.StartWork`.
    """

    exchange: Hashable
    task_id: str
    status_message: str | None = None
    ttl_ms: int | Default | None = DEFAULT
    """Lifetime from now; ``None``: unlimited."""
    poll_interval_ms: int | Default | None = DEFAULT


# -- work: what the worker of a task does -------------------------------------------------------------
#
# ``resumption`` says which run of the work speaks: 0 the one of StartWork, later ones what ResumeWork said.
# Once the work was taken over, what an earlier run says is rejected.


@frozen(kw_only=True)
class WorkProgressed:
    """The worker says how it stands."""

    task_id: str
    token: Hashable
    status_message: str | Keep | None = KEEP
    ttl_ms: int | Keep | None = KEEP
    """New lifetime, counted from creation."""
    poll_interval_ms: int | Keep | None = KEEP
    resumption: int = 0


@frozen(kw_only=True)
class WorkCheckpointed:
    """The worker saves a small value for the next run, in case its node is gone some day."""

    task_id: str
    token: Hashable
    value: Any
    """Any JSON value, in place of the one before; ``None``: there is none."""
    received: Sequence[str] = ()
    """Its questions (``ask``) so far whose answers the value takes into account: the next run will not ask
    them, and their answers are kept back from questions that look the same."""
    resumption: int = 0


@frozen(kw_only=True)
class WorkAskedInput:
    """The worker needs input. ``ask`` is a name of its own for this question, for life.

    What a resumed worker asks under the same names and with the same requests as the worker before is the
    same question: it keeps its key, and its answer if it has one (INP.1).
    """

    task_id: str
    token: Hashable
    ask: str
    requests: Mapping[str, Mapping[str, Any]]
    resumption: int = 0


@frozen(kw_only=True)
class WorkWithdrewInput:
    """The worker no longer waits for what it asked under ``ask``."""

    task_id: str
    token: Hashable
    ask: str
    resumption: int = 0


@frozen(kw_only=True, slots=False)
class WorkCompleted:
    """The worker ended with a result (LIFE.2)."""

    task_id: str
    token: Hashable
    result: Mapping[str, Any]
    status_message: str | Keep | None = KEEP
    resumption: int = 0


@frozen(kw_only=True)
class WorkFailed:
    """The worker ended with a protocol error (LIFE.2)."""

    task_id: str
    token: Hashable
    error: ErrorObject
    status_message: str | None = None
    """``None``: the error's message is used; a failed task always says something."""
    resumption: int = 0


@frozen(kw_only=True)
class WorkStopped:
    """The worker stopped without a result, as a cancelled one does."""

    task_id: str
    token: Hashable
    status_message: str | Keep | None = KEEP
    resumption: int = 0


@frozen(kw_only=True)
class TaskEnded:
    """The host ends a task now, whatever its worker does; the worker is told to stop (LEG.5).

    Rejected where the task has ended already, or is gone. Unlike the cancellation of the modern era this
    waits for nobody (CAN.6), and what the worker reports afterwards changes nothing.
    """

    task_id: str
    token: Hashable
    error: ErrorObject | None = None
    """The task fails with it; ``None``: the task is cancelled."""
    status_message: str | None = None
    """``None``: the error's message, or what the task said last."""


# -- store ----------------------------------------------------------------------------------------------


@frozen(slots=False)
class Loaded:
    """Answer to ``Load``: the record, or ``None`` where there is none."""

    token: Hashable
    record: TaskRecord | None


@frozen
class LoadFailed:
    """Answer to ``Load`` or ``FindExpired``: the store could not tell."""

    token: Hashable


@frozen(slots=False)
class Saved:
    """Answer to ``Save`` or ``Delete``: it is durable, and every node would read it so."""

    token: Hashable


@frozen
class SaveConflict:
    """Answer to ``Save`` or ``Delete``: another version is current (``None``: the record is gone)."""

    token: Hashable
    current: TaskRecord | None


@frozen
class SaveFailed:
    """Answer to ``Save`` or ``Delete``: not written, and nobody will ever read it."""

    token: Hashable


@frozen
class SaveRefused:
    """Answer to a ``Save`` with a quota: not written; ``limit`` is the ``Limits`` field that is full."""

    token: Hashable
    limit: str


@frozen
class ExpiredFound:
    """Answer to ``FindExpired``: some expired records, and when the next one will be."""

    token: Hashable
    records: Sequence[TaskRecord]
    next_expiry_ms: int | None
    """The earliest expiry among the others, in the past or not; ``None``: none of them expires."""


@frozen
class TasksListed:
    """Answer to ``ListTasks``: records in order of their ids, and whether there are more after them."""

    token: Hashable
    records: Sequence[TaskRecord]
    more: bool


@frozen
class RecordChanged:
    """Another node saved this record."""

    record: TaskRecord


@frozen
class RecordRemoved:
    """Another node removed this record."""

    task_id: str


@frozen
class WorkLost:
    """The node that ran the work of this task is gone, and will save nothing more.

    Told again from time to time for as long as the record names that ``node``: the engine that could not
    save what follows from it, or has no room for one more worker, waits for the next time. Harmless once the
    work is somebody else's, or done.
    """

    task_id: str
    node: str


# -- time and operation -----------------------------------------------------------------------------------


@frozen
class TimePassed:
    """The deadline of the last step was reached."""


@frozen(kw_only=True)
class TtlChanged:
    """The host gave a task another lifetime, from its creation; ``None``: unlimited (TTL.3)."""

    task_id: str
    ttl_ms: int | None
    token: Hashable


@frozen
class ToolsChanged:
    """The set of tools is now this one."""

    tools: Sequence[Any] = field(factory=tuple)
    """:class:`~mcp_tasks_proto.settings.ToolDeclaration` objects."""


@frozen
class ShutdownStarted:
    """The host is about to stop: listen streams end gracefully, new requests are refused."""


CallInput = CallReturned | CallFailed | CallNotified | CallAskedInput | CallBecameTask
WorkInput = (
    WorkProgressed
    | WorkCheckpointed
    | WorkAskedInput
    | WorkWithdrewInput
    | WorkCompleted
    | WorkFailed
    | WorkStopped
    | TtlChanged
    | TaskEnded
)
StoreInput = (
    Loaded
    | LoadFailed
    | Saved
    | SaveConflict
    | SaveFailed
    | SaveRefused
    | ExpiredFound
    | TasksListed
    | RecordChanged
    | RecordRemoved
    | WorkLost
)
Input = (
    MessageReceived
    | ExchangeClosed
    | StreamReady
    | CallInput
    | WorkInput
    | StoreInput
    | TimePassed
    | ToolsChanged
    | ShutdownStarted
)
"""What every engine of a server takes."""
LegacyInput = StreamRequested | SessionEnded | ConnectionClosed
"""What an engine takes that serves 2025-11-25 as well."""
