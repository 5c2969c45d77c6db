"""A task and a call as the reference model of a requester has them, and what it says of them."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

from attrs import define, field, frozen

from mcp_tasks_proto.testing.model.received import ModelOutcome

__all__ = [
    "Ended",
    "Flight",
    "ModelCall",
    "SavedTask",
    "Shown",
    "Told",
    "Viewed",
    "WatchedTask",
    "Withdrawn",
]


# -- what a caller is told ---------------------------------------------------------------------------------


@frozen(kw_only=True)
class Shown:
    """A question was put to somebody (REQ.4)."""

    call: Hashable
    key: str
    request: Mapping[str, Any]


@frozen
class Withdrawn:
    """A question was taken off the screen."""

    call: Hashable
    key: str


@frozen
class Viewed:
    """A task's view is new."""

    call: Hashable
    view: Mapping[str, Any]


@frozen
class Ended:
    """A call is over (REQ.6)."""

    call: Hashable
    outcome: ModelOutcome


Told = Shown | Withdrawn | Viewed | Ended


# -- what is kept ------------------------------------------------------------------------------------------


@frozen(kw_only=True)
class SavedTask:
    """What another process needs to go on with a task (REQ.6)."""

    task_id: str
    tool: str
    capabilities: Mapping[str, Any]
    """What the call that made it declared."""
    created_ms: int
    """When its handle came."""
    ttl_ms: int | None
    hint_ms: int | None
    answers: Mapping[str, Mapping[str, Any] | None] = field(factory=dict)
    """By key of all that was asked: the answer that the server may not have; else ``None``."""
    sent: frozenset[str] = frozenset()
    """The keys of which nothing is left to do: the server has the answer, or no longer waits for it."""


@define(eq=False, kw_only=True)
class WatchedTask:
    """A task that a call has become."""

    saved: SavedTask
    view: Mapping[str, Any] | None = None
    last_poll_ms: int = 0
    failures: int = 0
    """Polls that failed since it was last heard of."""
    quiet_until_ms: int = 0
    """Until when the server asked not to be polled (REQ.2)."""
    expires_ms: int | None = None
    overdue: bool = False
    """Whether its time has passed without news since (REQ.5)."""
    denied: set[str] = field(factory=set)
    """Which of its requests were last denied for want of other credentials."""
    listening: bool = False
    """Whether a stream brings its news."""
    overtaken: bool = False
    """Whether a stream has brought news since the last poll was sent."""
    untold: bool = False
    """Whether a stream has said that there is news, and not which."""
    cancelling: bool = False
    prompted: set[str] = field(factory=set)
    """Keys that this process has put to somebody."""
    on_show: dict[str, Mapping[str, Any]] = field(factory=dict)
    update_failures: int = 0
    one_by_one: bool = False
    """Whether the server refused several answers together."""
    refused: dict[str, Mapping[str, Any]] = field(factory=dict)
    """The error for an answer that it refused alone, by key."""

    @property
    def unsent(self) -> dict[str, Mapping[str, Any]]:
        """The answers that the server may not have."""
        return {key: answer for key, answer in self.saved.answers.items() if answer is not None}


@define(eq=False, kw_only=True)
class ModelCall:
    """A call that is not over."""

    params: dict[str, Any]
    """What is sent next."""
    deadline_ms: int | None = None
    rounds: int = 0
    asked: dict[str, Mapping[str, Any]] = field(factory=dict)
    """Questions of this round that nobody has answered (MRTR)."""
    mended: bool = False
    """Whether it was sent again in a version that both sides speak."""
    task: WatchedTask | None = None


@define(eq=False, kw_only=True)
class Flight:
    """A request that awaits its answer."""

    kind: str
    """``call``, ``poll``, ``update`` or ``cancel``."""
    owner: Hashable
    """The call; of a cancellation, its number."""
    until_ms: int
    """When it is given up."""
    submitted: tuple[str, ...] = ()
    """Of an update: the keys."""
