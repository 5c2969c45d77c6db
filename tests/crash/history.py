"""What a client saw and did, and what the tools noted: all that the checker goes by.

A *life* is one server process, numbered from 1. Events about one task are in the order in which they
happened, since one customer sees to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import frozen

__all__ = [
    "AnswerAcknowledged",
    "AnswerSent",
    "Began",
    "CancelAcknowledged",
    "CancelSent",
    "Checkpointed",
    "Created",
    "Delivered",
    "Event",
    "Killed",
    "Note",
    "Refused",
    "View",
    "Viewed",
]

View = Mapping[str, Any]


@frozen(kw_only=True)
class Created:
    """A handle was received: an acknowledged creation."""

    task_id: str
    life: int
    kind: str
    view: View


@frozen(kw_only=True)
class Viewed:
    """A task was asked for, and this is how it stood; ``None``: the server knows no such task."""

    task_id: str
    life: int
    asked_at_ms: int
    answered_at_ms: int
    view: View | None


@frozen(kw_only=True)
class AnswerSent:
    """An answer is on its way."""

    task_id: str
    life: int
    key: str
    question: str
    value: str


@frozen(kw_only=True)
class AnswerAcknowledged:
    """The answer that was sent last under this key was acknowledged."""

    task_id: str
    life: int
    key: str


@frozen(kw_only=True)
class CancelSent:
    """A cancellation is on its way."""

    task_id: str
    life: int


@frozen(kw_only=True)
class CancelAcknowledged:
    """It was acknowledged."""

    task_id: str
    life: int


@frozen(kw_only=True)
class Refused:
    """The server, alive, did not do as it was asked, though nothing was wrong with the request."""

    life: int
    method: str
    why: str


@frozen(kw_only=True)
class Killed:
    """A server is about to be killed: it may be gone from here on, and is soon."""

    life: int


Event = (
    Killed | Created | Viewed | AnswerSent | AnswerAcknowledged | CancelSent | CancelAcknowledged | Refused
)


@frozen(kw_only=True)
class Began:
    """A worker noted that it begins, or goes on from a checkpoint; in which process, and at which round."""

    task_id: str
    kind: str
    process: str
    round: int = 0


@frozen(kw_only=True)
class Delivered:
    """A worker noted an answer that reached it."""

    task_id: str
    process: str
    question: str
    value: str


@frozen(kw_only=True)
class Checkpointed:
    """A worker noted that a checkpoint of its is durable: it needs to begin at no earlier round any more."""

    task_id: str
    round: int


Note = Began | Delivered | Checkpointed
