"""Running an author's code: whatever it does, one outcome comes of it.

=====================================  ======================  =============================
the code                               of a call               of a task
=====================================  ======================  =============================
returns                                a result                ``completed``
raises :class:`ToolError`              a result, ``isError``   ``completed``, ``isError``
raises :class:`ProtocolError`          an error response       ``failed``
raises anything else                   a result, ``isError``   ``completed``, ``isError``
is cancelled                           nothing: raised on      nothing: raised on
=====================================  ======================  =============================

"Anything else" is every exception there is, ``SystemExit`` included, but for ``KeyboardInterrupt``: that is
meant for the whole process, and raised on as the loop's cancellation is.

A handler of ``on_request`` has no ``isError``: anything but a :class:`ProtocolError` is -32603.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from attrs import evolve

from mcp_tasks_adapters.toolkit.calls import InputRequired, Notify, Request, TaskOffer, ToolCall, Work
from mcp_tasks_adapters.toolkit.content import error_text
from mcp_tasks_adapters.toolkit.errors import ProtocolError, ToolError
from mcp_tasks_adapters.toolkit.tasks import TaskContext
from mcp_tasks_adapters.toolkit.values import complete_result, wire_value
from mcp_tasks_proto.effects import StartTool
from mcp_tasks_proto.errors import ErrorObject, internal_error
from mcp_tasks_proto.inputs import DEFAULT, KEEP
from mcp_tasks_proto.wire.jsonrpc import parse_error_object

if TYPE_CHECKING:
    from mcp_tasks_adapters.toolkit.tools import Tool

__all__ = ["Ending", "Outcome", "describe", "handler_as_work", "run_request", "run_tool", "run_work"]

Ending = dict[str, Any] | ErrorObject
"""A result, or a protocol error."""
Outcome = Ending | InputRequired | TaskOffer
"""What may come of a call."""

Cancelled = type[BaseException]
"""What the loop raises in what it cancels."""

_log = logging.getLogger("mcp_tasks_adapters")


async def run_tool(tool: Tool, call: ToolCall, cancelled: Cancelled) -> Outcome:
    """Run a tool's handler."""
    try:
        problem = tool.argument_problem(call.arguments)
        if problem is not None:
            return error_text(f"The arguments do not fit the tool's input schema.\n{problem}")
        returned = await tool.handler(call)
        if isinstance(returned, (TaskOffer, InputRequired)):
            return returned
        return tool.result(returned)
    except BaseException as error:
        return _tool_failure(_own_error(error, cancelled), tool.name)


async def run_work(tool: Tool, work: Work, context: TaskContext, cancelled: Cancelled) -> Ending:
    """Run the work of a task."""
    try:
        return tool.result(await work(context))
    except BaseException as error:
        return _tool_failure(_own_error(error, cancelled), tool.name)


def handler_as_work(tool: Tool, start: StartTool, notify: Notify, *, resumed: bool = False) -> Work:
    """Return a handler as the work of a task that is there before the handler begins.

    Its caller was owed the task (LEG.3), or the work is ``resumed``. What the handler asks, it asks through
    the task; what it offers to go on with, goes on in the same task.
    """

    async def run(task: TaskContext) -> Any:
        effect = start
        problem = tool.argument_problem(start.arguments)
        if problem is not None:
            return error_text(f"The arguments do not fit the tool's input schema.\n{problem}")
        while True:
            returned = await tool.handler(ToolCall(effect, notify, resumed=resumed))
            if isinstance(returned, TaskOffer):
                if not resumed:
                    await _take_over(task, returned)
                return await returned.run(task)
            if not isinstance(returned, InputRequired):
                return returned
            answers = await task.request_input(returned.requests)
            given = {name: answer.response for name, answer in answers.items()}
            effect = evolve(start, answers=given, state=returned.state)

    return run


async def _take_over(task: TaskContext, offer: TaskOffer) -> None:
    """Let a task that is there already say what the offered one would have said."""
    ttl_ms = KEEP if offer.ttl_ms is DEFAULT else offer.ttl_ms
    poll_interval_ms = KEEP if offer.poll_interval_ms is DEFAULT else offer.poll_interval_ms
    message = KEEP if offer.status_message is None else offer.status_message
    await task.update(message, ttl_ms=ttl_ms, poll_interval_ms=poll_interval_ms)


async def run_request(
    handler: Callable[[Request], Awaitable[Any]], request: Request, method: str, cancelled: Cancelled
) -> Outcome:
    """Run a handler of ``on_request``."""
    try:
        returned = await handler(request)
        if isinstance(returned, InputRequired):
            return returned
        if not isinstance(returned, Mapping):
            raise TypeError(f"a handler of {method} returns a result object, not {type(returned).__name__}")
        return complete_result(returned)
    except BaseException as error:
        return _request_failure(_own_error(error, cancelled), method)


def _own_error(error: BaseException, cancelled: Cancelled) -> BaseException:
    """Return the error that the code is to answer for; raise on a cancellation and its like."""
    raised_on = (cancelled, KeyboardInterrupt)
    if isinstance(error, raised_on):
        raise error
    if isinstance(error, BaseExceptionGroup):
        others, errors = error.split(raised_on)
        if others is not None:
            if errors is not None:
                _log.error("an error was lost in a cancellation: %s", describe(_unwrapped(errors)))
            raise _unwrapped(others) from None
    return _unwrapped(error)


def _unwrapped(error: BaseException) -> BaseException:
    """Return the one exception of a group of one, as nurseries and task groups raise."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


def _tool_failure(error: BaseException, tool: str) -> Ending:
    if isinstance(error, ProtocolError):
        return _protocol_error(error) or internal_error(f"tool {tool} failed")
    if isinstance(error, ToolError):
        return error_text(_printable(_message(error)))
    _log.error("tool %s raised %s", tool, describe(error))
    return error_text(_printable(f"{type(error).__name__}: {_message(error)}"))


def _request_failure(error: BaseException, method: str) -> Ending:
    if isinstance(error, ProtocolError) and (wanted := _protocol_error(error)):
        return wanted
    _log.error("the handler of %s raised %s", method, describe(error))
    return internal_error(f"the handler of {method} failed")


def _protocol_error(error: ProtocolError) -> ErrorObject | None:
    """Return what the author wants answered; ``None``: a class or a change of theirs spoilt it."""
    try:
        return parse_error_object(wire_value(error.error.to_wire()))
    except (AttributeError, TypeError, ValueError):
        _log.error("a protocol error cannot be sent as it is: %s", describe(error))
        return None


def _message(error: BaseException) -> str:
    """Return an exception's text, which its author's own code writes."""
    try:
        return str(error)
    except Exception as failed:
        _log.error("an exception has no text: %s", describe(failed))
        return "(no text)"


def _printable(text: str) -> str:
    """Return what UTF-8 can carry: a text that quotes a file name, say, may hold more."""
    return text.encode(errors="backslashreplace").decode()


def describe(error: BaseException) -> str:
    """Return an exception's type and where it came from. Its message may hold payloads, so it is left out."""
    error = _unwrapped(error)
    places = (f"{frame.filename}:{frame.lineno}" for frame in traceback.extract_tb(error.__traceback__))
    return " <- ".join([type(error).__name__, *reversed(list(places))])
