"""What ``sampling/createMessage`` asks and gets (core, "Sampling")."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from mcp_tasks_proto.input_requests.shapes import (
    BOOLEAN,
    NUMBER,
    OBJECT,
    STRING,
    STRINGS,
    array_of,
    by_tag,
    choice,
    is_array,
    is_integer,
    is_number,
    members,
    value,
)

__all__ = ["SAMPLED", "check_params"]

_TEXT: Final = members({"text": STRING})
_MEDIA: Final = members({"data": STRING, "mimeType": STRING})

_RESULT_BLOCK: Final = by_tag(
    "type",
    {
        "text": _TEXT,
        "image": _MEDIA,
        "audio": _MEDIA,
        "resource_link": members({"uri": STRING, "name": STRING}),
        "resource": members({"resource": members({"uri": STRING})}),
    },
)
_BLOCK: Final = by_tag(
    "type",
    {
        "text": _TEXT,
        "image": _MEDIA,
        "audio": _MEDIA,
        "tool_use": members({"id": STRING, "name": STRING, "input": OBJECT}),
        "tool_result": members(
            {"toolUseId": STRING, "content": array_of(_RESULT_BLOCK)}, optional={"isError": BOOLEAN}
        ),
    },
)
_BLOCKS: Final = array_of(_BLOCK)


def _content(candidate: Any) -> str | None:
    """Accept one block, or an array of them."""
    return (_BLOCKS if is_array(candidate) else _BLOCK)(candidate)


_ROLE: Final = choice("user", "assistant")
_MESSAGE: Final = members({"role": _ROLE, "content": _content})
_FRACTION: Final = value(
    lambda candidate: is_number(candidate) and 0 <= candidate <= 1, "a number from 0 to 1"
)
_TOOL: Final = members(
    {"name": STRING, "inputSchema": members({"type": choice("object")})}, optional={"description": STRING}
)
_PARAMS: Final = members(
    {
        "messages": array_of(_MESSAGE),
        "maxTokens": value(
            lambda candidate: is_integer(candidate) and candidate > 0, "a whole number greater than 0"
        ),
    },
    optional={
        "modelPreferences": members(
            {},
            optional={
                "hints": array_of(members({}, optional={"name": STRING})),
                "costPriority": _FRACTION,
                "speedPriority": _FRACTION,
                "intelligencePriority": _FRACTION,
            },
        ),
        "systemPrompt": STRING,
        "includeContext": choice("none", "thisServer", "allServers"),
        "temperature": NUMBER,
        "stopSequences": STRINGS,
        "metadata": OBJECT,
        "tools": array_of(_TOOL),
        "toolChoice": members({}, optional={"mode": choice("auto", "required", "none")}),
    },
)

SAMPLED: Final = members(
    {"role": _ROLE, "content": _content, "model": STRING}, optional={"stopReason": STRING}
)
"""Accepts the client's result."""


def check_params(params: Any) -> str | None:
    """Accept the params of a request, the order of tool uses and their results included."""
    return _PARAMS(params) or _check_tool_uses(params["messages"])


def _check_tool_uses(messages: Sequence[Mapping[str, Any]]) -> str | None:
    """The message after one that uses tools holds the results of exactly those uses, and nothing else."""
    used: set[str] = set()
    for index, message in enumerate(messages):
        content = message["content"]
        blocks = content if is_array(content) else [content]
        results = [block["toolUseId"] for block in blocks if block["type"] == "tool_result"]
        where = f".messages[{index}]"
        if results and (message["role"] != "user" or len(results) != len(blocks)):
            return f"{where} has tool results, so it must be the user's and have nothing else"
        if set(results) != used or len(results) != len(used):
            return f"{where} must have one result for each tool use of the message before, and for no other"
        used = {block["id"] for block in blocks if block["type"] == "tool_use"}
        if used and message["role"] != "assistant":
            return f"{where} uses tools, so it must be the assistant's"
    return ".messages must end with the results of the tools that its last message uses" if used else None
