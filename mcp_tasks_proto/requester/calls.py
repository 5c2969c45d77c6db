"""What a requester remembers: the calls under way, and the requests it had sent for them."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from enum import Enum
from typing import Any

from attrs import define, field

from mcp_tasks_proto.requester.reference import TaskReference
from mcp_tasks_proto.wire.schema import TaskView

__all__ = ["Call", "Purpose", "Sent", "Watch"]


class Purpose(Enum):
    """Why a request was sent."""

    CALL = "call"
    """It is what the caller wants."""
    LIST_TOOLS = "list tools"
    """To learn which arguments are mirrored into headers."""
    POLL = "poll"
    UPDATE = "update"
    CANCEL = "cancel"
    LISTEN = "listen"

    __hash__ = object.__hash__


@define(eq=False, kw_only=True)
class Watch:
    """A task that is being watched."""

    reference: TaskReference
    view: TaskView | None = None
    """The newest view."""
    seen: str = ""
    """When the newest view was made, by the server's clock."""
    failures: int = 0
    """Polls that failed since the last that did not."""
    update_failures: int = 0
    polling: int | None = None
    """The poll in flight."""
    updating: int | None = None
    """The update in flight."""
    submitted: tuple[str, ...] = ()
    """The keys whose answers are in that update."""
    stream: int | None = None
    """The listen stream that was asked to bring its news."""
    listening: bool = False
    """Whether that stream agreed."""
    last_poll_ms: int = 0
    """When the last poll was sent, or the handle came."""
    cancelling: bool = False
    """The caller has cancelled and waits for the end: nobody is prompted any more."""

    @property
    def task_id(self) -> str:
        """The task's id."""
        return self.reference.task_id


@define(eq=False, kw_only=True)
class Call:
    """One thing the caller wants done."""

    key: Hashable
    method: str
    params: Mapping[str, Any]
    meta: Mapping[str, Any] = field(factory=dict)
    request: int | None = None
    """The request in flight that carries the call itself."""
    rounds: int = 0
    asked: dict[str, Mapping[str, Any]] = field(factory=dict)
    """Input requests of the present round that wait for an answer, by key."""
    answers: dict[str, Mapping[str, Any]] = field(factory=dict)
    """Answers of the present round."""
    state: str | None = None
    """The server's ``requestState`` of the present round."""
    retried: bool = False
    """Whether it was sent again after the server found fault with its version or headers."""
    watch: Watch | None = None
    """The task it became."""

    @property
    def tool(self) -> str | None:
        """The tool that is called, if one is."""
        return self.params["name"] if self.method == "tools/call" else None


@define(eq=False)
class Sent:
    """A request in flight."""

    purpose: Purpose
    call: Call | None
    """Whose it is; ``None`` for what is sent on everybody's behalf."""
    calls: dict[str, Call] = field(factory=dict)
    """For a listen stream: the calls it brings news of, by task id."""
    attempts: int = 0
    """For a cancellation nobody waits for: how often it failed."""
    task_id: str | None = None
    acknowledged: bool = False
