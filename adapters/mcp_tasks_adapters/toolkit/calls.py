"""What a handler is given, and the two promises it may return instead of a result."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Mapping
from functools import cached_property
from typing import Any

from attrs import frozen

from mcp_tasks_adapters.toolkit.content import Answer
from mcp_tasks_adapters.toolkit.tasks import TaskContext
from mcp_tasks_adapters.toolkit.values import check_milliseconds, check_text, wire_value
from mcp_tasks_proto.effects import Forward, StartTool
from mcp_tasks_proto.input_requests import check_requests
from mcp_tasks_proto.inputs import DEFAULT, Default
from mcp_tasks_proto.server.exchange import LOG_LEVELS

__all__ = ["InputRequired", "Notify", "Request", "TaskOffer", "ToolCall", "Work"]

Work = Callable[[TaskContext], Awaitable[Any]]
"""The work of a task: an async function of a :class:`TaskContext` that returns what a handler may return."""


Notify = Callable[[Hashable, str, Mapping[str, Any]], Awaitable[None]]
"""Sends a notification (its method, its params) about the request of an exchange, then lets others run."""


@frozen
class InputRequired:
    """Returned by a handler: answer with a round of questions (INP.4). Made by ``call.input_required``."""

    requests: Mapping[str, Mapping[str, Any]]
    state: Any = None


@frozen(kw_only=True, slots=False)
class TaskOffer:
    """Returned by a handler: go on as a task, with ``run`` as its work. Made by ``call.task``."""

    run: Work
    status_message: str | None = None
    ttl_ms: int | Default | None = DEFAULT
    poll_interval_ms: int | Default | None = DEFAULT

    def __attrs_post_init__(self) -> None:
        if self.status_message is not None:
            check_text("status_message", self.status_message)
        if self.ttl_ms is not DEFAULT:
            check_milliseconds("ttl_ms", self.ttl_ms)
        if self.poll_interval_ms is not DEFAULT:
            check_milliseconds("poll_interval_ms", self.poll_interval_ms)


class Request:
    """One request that a handler answers."""

    def __init__(self, effect: StartTool | Forward, notify: Notify) -> None:
        self._effect = effect
        self._send = notify

    @cached_property
    def params(self) -> Mapping[str, Any]:
        """The request's params as they came, ``_meta`` and unknown fields included; a copy."""
        params: Mapping[str, Any] = wire_value(self._effect.params)
        return params

    @property
    def method(self) -> str:
        """The request's method."""
        return "tools/call" if isinstance(self._effect, StartTool) else self._effect.method

    @cached_property
    def client_capabilities(self) -> Mapping[str, Any]:
        """What this request's client declares; a copy."""
        declared: Mapping[str, Any] = wire_value(self._effect.client_capabilities)
        return declared

    @property
    def principal(self) -> str | None:
        """The authenticated caller, as the server's ``principal=`` function named it."""
        return self._effect.principal

    @cached_property
    def answers(self) -> Mapping[str, Answer]:
        """Answers to what a round before asked, by name; empty on the first round."""
        return {name: Answer(wire_value(response)) for name, response in self._effect.answers.items()}

    @property
    def state(self) -> Any:
        """What the round before gave as ``state``; ``None`` on the first round."""
        return self._effect.state

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Tell the caller how far it is. Nothing is sent when the request did not ask for progress."""
        params: dict[str, Any] = {"progress": progress}
        if total is not None:
            params["total"] = total
        if message is not None:
            params["message"] = message
        await self._notify("notifications/progress", params)

    async def log(self, level: str, data: Any, logger: str | None = None) -> None:
        """Send the caller a log message. Nothing is sent when the request asked for none of this level.

        A server that calls this declares ``capabilities={"logging": {}}``. ``data`` is any JSON value.
        Raises ``ValueError`` for a level that is none of the specification's, or data that is not JSON.
        """
        if level not in LOG_LEVELS:
            raise ValueError(f"a log message's level is one of {', '.join(LOG_LEVELS)}")
        params: dict[str, Any] = {"level": level, "data": data}
        if logger is not None:
            params["logger"] = logger
        await self._notify("notifications/message", params)

    async def _notify(self, method: str, params: dict[str, Any]) -> None:
        await self._send(self._effect.exchange, method, wire_value(params))

    def input_required(self, requests: Mapping[str, Mapping[str, Any]], state: Any = None) -> InputRequired:
        """Return this from the handler to ask the client and be called anew with its ``answers``.

        ``requests`` maps names of your own to what :func:`elicit` and its siblings build; ``state`` is any
        JSON value, given back as :attr:`state`. It travels through the client, who cannot change it but can
        read it (INP.4). Only tool calls, ``prompts/get`` and ``resources/read`` may ask. Raises
        ``ValueError`` when ``requests`` are not such a mapping, or ``state`` is not JSON.
        """
        copied = wire_value(requests)
        if problem := check_requests(copied):
            raise ValueError(problem)
        return InputRequired(copied, wire_value(state))


class ToolCall(Request):
    """One call of a tool."""

    _effect: StartTool

    def __init__(self, effect: StartTool, notify: Notify, *, resumed: bool = False) -> None:
        Request.__init__(self, effect, notify)
        self.arguments: Mapping[str, Any] = effect.arguments
        """The arguments, which fit the input schema. The engine keeps its own copy of them."""
        self.resumed = resumed
        """Whether this call became a task before, whose process is gone: return ``call.task(...)`` again.

        The task keeps its times and its message, whatever is given there. What is asked before, the task
        asks; a result, or an error, ends it. Nobody hears of progress, or reads what is logged."""

    @property
    def can_create_task(self) -> bool:
        """Whether :meth:`task` may be used: the tool allows it and the caller declares tasks (NEG.5)."""
        return self._effect.can_create_task

    def task(
        self,
        run: Work,
        *,
        status_message: str | None = None,
        ttl_ms: int | Default | None = DEFAULT,
        poll_interval_ms: int | Default | None = DEFAULT,
    ) -> TaskOffer:
        """Return this from the handler to go on as a task: the caller gets a handle, ``run`` starts.

        Nothing exists before the handler has returned (LIFE.8). ``ttl_ms`` is the lifetime from then,
        ``None`` unlimited; ``poll_interval_ms`` the hint for pollers, ``None`` no hint. Raises
        ``RuntimeError`` when this call cannot become a task, ``ValueError`` or ``TypeError`` for a message
        or times that are none.
        """
        if not self._effect.can_create_task:
            raise RuntimeError(
                "this call cannot become a task: look at call.can_create_task first, "
                'or declare the tool with task="required"'
            )
        return TaskOffer(
            run=run, status_message=status_message, ttl_ms=ttl_ms, poll_interval_ms=poll_interval_ms
        )
