"""What a requester remembers: calls under way, the tasks they became, the requests sent for them."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

from attrs import define, field

from mcp_tasks_proto.errors import ErrorObject
from mcp_tasks_proto.requester.reference import TaskReference
from mcp_tasks_proto.requester.rounds import Round
from mcp_tasks_proto.wire.schema import TaskView

__all__ = [
    "Call",
    "Sent",
    "SentCall",
    "SentCancel",
    "SentListen",
    "SentPoll",
    "SentToolList",
    "SentUpdate",
    "Watch",
]


@define(eq=False, repr=False, kw_only=True)
class Call:
    """One thing the caller wants done."""

    key: Hashable
    method: str
    params: Mapping[str, Any]
    meta: Mapping[str, Any] = field(factory=dict)
    request: int | None = None
    """The request in flight that carries the call itself."""
    rounds: int = 0
    """How often it was answered with questions (MRTR)."""
    round: Round | None = None
    """The last of these."""
    answers: dict[str, Mapping[str, Any]] = field(factory=dict)
    """Answers of that round."""
    mended: set[int] = field(factory=set)
    """Error codes after which it was put right and sent again."""
    watch: Watch | None = None
    """The task it became."""

    @property
    def tool(self) -> str | None:
        """The tool that is called, if one is."""
        return self.params.get("name") if self.method == "tools/call" else None

    @property
    def asked(self) -> dict[str, Mapping[str, Any]]:
        """The questions of the round that wait for an answer, by key."""
        requests = {} if self.round is None else self.round.requests
        return {key: request for key, request in requests.items() if key not in self.answers}

    @property
    def view(self) -> TaskView | None:
        """The newest view of the task it became, if it did and there is one."""
        return None if self.watch is None else self.watch.view


@define(eq=False, repr=False, kw_only=True)
class Watch:
    """A task that is being watched."""

    call: Call
    reference: TaskReference
    view: TaskView | None = None
    """The newest view."""
    seen: str = ""
    """When the newest view was made, by the server's clock."""
    polling: int | None = None
    """The poll in flight; while there is none, the next one is planned."""
    last_poll_ms: int = 0
    """When the last poll was sent, or the handle came."""
    next_poll_ms: int = 0
    """When the next one is planned."""
    quiet_until_ms: int = 0
    """Until when the server asked to be left alone."""
    failures: int = 0
    """Polls that failed since the task was last heard of."""
    trouble: str | None = None
    """Why the last of these failed."""
    overtaken: bool = False
    """Whether a stream brought news since the poll in flight was sent: what it brings may be older."""
    untold: bool = False
    """Whether a stream brought news without saying which: the next poll has to tell."""
    overdue: bool = False
    """Whether the time to live has passed, and nothing was heard since."""
    updating: int | None = None
    """The update in flight."""
    submitted: tuple[str, ...] = ()
    """The keys whose answers are in that update."""
    denied: set[type[SentPoll | SentUpdate]] = field(factory=set)
    """Which of its requests were last denied, for want of other credentials."""
    update_failures: int = 0
    """Updates that failed since the last that did not."""
    one_by_one: bool = False
    """Whether answers are sent alone, because the server refused several together."""
    refused: dict[str, ErrorObject] = field(factory=dict)
    """Why the server refused an answer, by key."""
    stream: SentListen | None = None
    """The listen stream that was asked to bring its news."""
    listening: bool = False
    """Whether that stream agreed."""
    cancelling: bool = False
    """The caller has cancelled and waits for the end: nobody is prompted any more."""
    cancellation: SentCancel | None = None
    """What tells the server so, until it knows."""

    @property
    def task_id(self) -> str:
        """The task's id."""
        return self.reference.task_id


# -- requests in flight ------------------------------------------------------------------------------


@define(eq=False, repr=False, kw_only=True)
class _Sent:
    """What all requests in flight have; each kind of them says whose it is."""

    name: int = field(init=False)
    """The engine's name for it."""
    version: str = field(init=False)
    """The protocol version it was said in."""
    since_ms: int = field(init=False)
    """When it was sent."""


@define(eq=False, repr=False, kw_only=True)
class SentCall(_Sent):
    """What the caller wants."""

    call: Call


@define(eq=False, repr=False, kw_only=True)
class SentToolList(_Sent):
    """``tools/list``, to learn which arguments are mirrored into headers."""

    first: bool
    """Whether it is for the first page."""


@define(eq=False, repr=False, kw_only=True)
class SentPoll(_Sent):
    """``tasks/get``."""

    watch: Watch


@define(eq=False, repr=False, kw_only=True)
class SentUpdate(_Sent):
    """``tasks/update``."""

    watch: Watch


@define(eq=False, repr=False, kw_only=True)
class SentCancel(_Sent):
    """``tasks/cancel``; the same one while it is tried again."""

    task_id: str
    watch: Watch | None
    """The task that is watched until it ends; ``None``: nobody waits for it."""
    attempts: int = 0
    """How often it failed."""


@define(eq=False, repr=False, kw_only=True)
class SentListen(_Sent):
    """``subscriptions/listen``, a stream of news."""

    watches: dict[str, Watch]
    """The tasks it brings news of, by id."""
    acknowledged: bool = False


Sent = SentCall | SentToolList | SentPoll | SentUpdate | SentCancel | SentListen
