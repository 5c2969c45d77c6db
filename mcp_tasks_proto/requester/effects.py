"""What a requester engine asks of its host: commands, in the imperative."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

from attrs import frozen

from mcp_tasks_proto.requester.outcomes import Outcome
from mcp_tasks_proto.wire.http import HeaderParameter
from mcp_tasks_proto.wire.schema import TaskView

__all__ = [
    "KeepReference",
    "PassOn",
    "Prompt",
    "RequesterEffect",
    "RequesterStep",
    "SendRequest",
    "Settle",
    "ShowView",
    "StopRequest",
    "WithdrawPrompt",
]


@frozen(kw_only=True)
class SendRequest:
    """Send a request; report ``ResponseReceived`` or ``RequestFailed``, and notifications before it."""

    request: int
    message: dict[str, Any]
    parameters: tuple[HeaderParameter, ...] = ()
    """Arguments to mirror into HTTP headers (HTTP.3); for ``wire.http.request_headers``."""
    streams: bool = False
    """Whether it is a listen stream, which stays open for long."""


@frozen
class StopRequest:
    """Nobody waits for this request any more: close its stream, or cancel it on a shared channel.

    Nothing more is expected of it.
    """

    request: int


@frozen(kw_only=True)
class Prompt:
    """Put an input request to the person or program that answers them; then ``AnswerGiven`` (REQ.4)."""

    call: Hashable
    key: str
    request: Mapping[str, Any]
    again: bool = False
    """Whether a process that has ended had it on show, without an answer."""


@frozen
class WithdrawPrompt:
    """The prompt is moot: take it off the screen."""

    call: Hashable
    key: str


@frozen
class ShowView:
    """The task's view is new."""

    call: Hashable
    view: TaskView


@frozen
class PassOn:
    """The server says something on the way: ``notifications/progress`` or ``notifications/message``."""

    call: Hashable
    method: str
    params: Mapping[str, Any]


@frozen
class KeepReference:
    """What a new process needs to go on has changed: save it in place of the last one (REQ.6)."""

    call: Hashable
    reference: dict[str, Any]


@frozen
class Settle:
    """The call is over; it is the last that is heard of it."""

    call: Hashable
    outcome: Outcome


RequesterEffect = (
    SendRequest | StopRequest | Prompt | WithdrawPrompt | ShowView | PassOn | KeepReference | Settle
)


@frozen
class RequesterStep:
    """The engine's answer to one input."""

    effects: tuple[RequesterEffect, ...] = ()
    deadline: int | None = None
    """Unix milliseconds at which to hand in ``TimePassed``; ``None``: no need."""
