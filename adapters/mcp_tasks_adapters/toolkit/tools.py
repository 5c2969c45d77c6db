"""A declared tool: its definition, its schemas, its handler."""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

from mcp_tasks_adapters.toolkit.calls import ToolCall
from mcp_tasks_adapters.toolkit.content import error_text, structured, text
from mcp_tasks_adapters.toolkit.schemas import Schema
from mcp_tasks_adapters.toolkit.values import check_text, complete_result, wire_value
from mcp_tasks_proto.settings import TaskSupport, ToolDeclaration

__all__ = ["Tool", "ToolHandler", "is_async"]

ToolHandler = Callable[[ToolCall], Awaitable[Any]]
"""``async def handler(call)``: returns a result, ``call.task(...)`` or ``call.input_required(...)``."""

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}")


class Tool:
    """One tool. Made by :meth:`Server.tool`, which says what the arguments mean and what is raised."""

    def __init__(
        self,
        handler: ToolHandler,
        *,
        name: str,
        task: str,
        resumable: bool,
        definition: Mapping[str, Any],
        input_schema: Mapping[str, Any] | None,
        output_schema: Mapping[str, Any] | None,
    ) -> None:
        if not _NAME.fullmatch(name):
            raise ValueError(f"tool name {name!r}: use 1 to 128 of A-Z a-z 0-9 _ - .")
        if not is_async(handler):
            raise TypeError(f"tool {name}: the handler must be an async function")
        owner = f"tool {name}"
        self.name = name
        self.handler = handler
        self._input = None if input_schema is None else _input_schema(input_schema, owner)
        self._output = None if output_schema is None else Schema(output_schema, owner=owner)
        shown = {
            "name": name,
            "inputSchema": input_schema or {"type": "object"},
            "outputSchema": output_schema,
        }
        given = {field: value for field, value in {**shown, **definition}.items() if value is not None}
        self.declaration = ToolDeclaration(
            name=name, definition=wire_value(given), task=_support(task, owner), resumable=resumable
        )
        """The tool as an engine knows it."""

    def argument_problem(self, arguments: Mapping[str, Any]) -> str | None:
        """Return what is wrong with the arguments of a call, or ``None``."""
        return None if self._input is None else self._input.problem(arguments, "arguments")

    def result(self, returned: Any) -> dict[str, Any]:
        """Return the tool result that a handler's, or a task's, return value stands for.

        * An object with a list as ``content``, or with ``structuredContent``, is a result already.
        * With an output schema, any other JSON value is structured content.
        * Without one, a string is text and ``None`` an empty result.

        What does not fit the output schema is the tool's own fault, and a result with ``isError`` says so.
        Raises ``TypeError`` for anything else, ``ValueError`` for what is not JSON.
        """
        if self._output is None and isinstance(returned, str):
            check_text("the text of a result", returned)
            return text(returned)
        result = self._result(returned)
        if self._output is None or result.get("isError") is True:
            return result
        if "structuredContent" not in result:
            return error_text(
                "The tool failed: its result has no structured content, as its output schema asks."
            )
        problem = self._output.problem(result["structuredContent"], "result")
        if problem is not None:
            return error_text(f"The tool failed: its result does not fit its output schema.\n{problem}")
        return result

    def _result(self, returned: Any) -> dict[str, Any]:
        if isinstance(returned, Mapping) and _is_result(returned):
            result = complete_result(returned)
            if "content" not in result:
                result["content"] = structured(result["structuredContent"])["content"]
            return result
        if self._output is not None:
            return structured(wire_value(returned))
        if returned is None:
            return text()
        raise TypeError(
            "a tool without an output schema returns text, or an object whose content is a list, "
            f"not {type(returned).__name__}"
        )


def _is_result(returned: Mapping[str, Any]) -> bool:
    return "structuredContent" in returned or isinstance(returned.get("content"), list)


def is_async(handler: Any) -> bool:
    """Whether calling ``handler`` makes a coroutine, as far as can be told beforehand."""
    called = handler if inspect.isroutine(handler) or isinstance(handler, partial) else type(handler).__call__
    return inspect.iscoroutinefunction(called)


def _input_schema(definition: Mapping[str, Any], owner: str) -> Schema:
    if definition.get("type") != "object":
        raise ValueError(f'{owner}: an input schema says "type": "object" at its root')
    return Schema(definition, owner=owner)


def _support(task: str, owner: str) -> TaskSupport:
    try:
        return TaskSupport(task)
    except ValueError:
        words = ", ".join(support.value for support in TaskSupport)
        raise ValueError(f"{owner}: task={task!r} is none of {words}") from None
