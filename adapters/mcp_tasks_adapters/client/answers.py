"""Questions that a server asks on the way to a result, and the answers to them (INP, REQ.4)."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from attrs import field, frozen

from mcp_tasks_adapters.toolkit.content import Answer
from mcp_tasks_adapters.toolkit.outcomes import describe
from mcp_tasks_adapters.toolkit.values import wire_value
from mcp_tasks_proto.input_requests import check_response

__all__ = ["AnswerError", "AnswerFunction", "InputRequest", "accept", "ask", "cancel", "decline"]

_log = logging.getLogger("mcp_tasks_adapters")


def accept(content: Mapping[str, Any] | None = None) -> Answer:
    """Return a yes: to a form with its ``content``, or to going to a URL."""
    return Answer({"action": "accept"} if content is None else {"action": "accept", "content": content})


def decline() -> Answer:
    """Return a no."""
    return Answer({"action": "decline"})


def cancel() -> Answer:
    """Return that the question was put aside without a choice."""
    return Answer({"action": "cancel"})


class AnswerError(Exception):
    """An ``answer`` function gave what is no answer to its question; the message says why."""


@frozen(kw_only=True)
class InputRequest:
    """One question of a server.

    A user must be told who asks (``endpoint``), and can always decline. A URL is never fetched, and is opened
    only after the user has seen all of it and agreed (core, "Elicitation").
    """

    key: str
    """Names it for the life of its task, or for this round of its call."""
    raw: Mapping[str, Any]
    """The request as it came: ``method`` and ``params``."""
    endpoint: str
    """The server that asks."""
    tool: str | None = None
    """The tool that was called, if one was."""
    again: bool = False
    """Whether a process that has ended had it on show, without an answer."""
    method: str = field(init=False)
    """``elicitation/create``, or ``sampling/createMessage`` or ``roots/list`` where they were declared."""
    message: str | None = field(init=False)
    """What an elicitation says to the user."""
    schema: Mapping[str, Any] | None = field(init=False)
    """The fields of a form, as a flat JSON Schema; ``None``: it is no form."""
    url: str | None = field(init=False)
    """Where the user is asked to go; ``None``: nowhere."""

    @method.default
    def _method(self) -> Any:
        return self.raw["method"]

    @message.default
    def _message(self) -> Any:
        return self._param("message")

    @schema.default
    def _schema(self) -> Any:
        return None if self._param("mode") == "url" else self._param("requestedSchema")

    @url.default
    def _url(self) -> Any:
        return self._param("url") if self._param("mode") == "url" else None

    def _param(self, name: str) -> Any:
        params = self.raw.get("params", {})
        return params.get(name) if self.method == "elicitation/create" else None

    def problem(self, answer: Answer | Mapping[str, Any]) -> str | None:
        """Say what is wrong with an answer, for who gave it; ``None``: it can be sent."""
        return check_response(self.raw, answer.response if isinstance(answer, Answer) else answer)


AnswerFunction = Callable[[InputRequest], Answer | Mapping[str, Any] | Awaitable[Answer | Mapping[str, Any]]]
"""Answers questions: with :func:`accept`, :func:`decline` or :func:`cancel`, or with a whole response object,
as sampling and roots need one.

It may be async, and then is cancelled, its loop's own way, when its question is withdrawn. Several questions
may be asked at once, in the server's order. What it raises is raised to whoever waits for the call; the
question stays open.
"""


async def ask(function: AnswerFunction, request: InputRequest) -> Mapping[str, Any] | Exception:
    """Return the response that ``function`` gives, fit to be sent, or what it raised instead."""
    try:
        given = function(request)
        if inspect.isawaitable(given):
            given = await given
        return _response(request, given)
    except Exception as error:
        return error
    except BaseExceptionGroup as group:
        errors, others = group.split(Exception)
        if errors is not None:
            _log.error("an answer function raised while it was cancelled: %s", describe(errors))
        assert others is not None  # else it were an ExceptionGroup
        raise others from None


def _response(request: InputRequest, given: Any) -> Mapping[str, Any]:
    if not isinstance(given, Answer | Mapping):
        raise AnswerError(f"an answer is accept(), decline(), cancel() or an object, not {given!r:.100}")
    response = given.response if isinstance(given, Answer) else given
    if request.schema is not None and response.get("action") == "accept":
        response = {**response, "content": response.get("content", {})}
    if problem := request.problem(response):
        raise AnswerError(f"the answer to {request.key!r} cannot be sent: {problem}")
    try:
        sent: dict[str, Any] = wire_value(response)
    except ValueError as error:
        raise AnswerError(f"the answer to {request.key!r} cannot be sent: {error}") from None
    return sent
