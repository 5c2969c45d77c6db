"""The requests that are measured, and the tool they call."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from bench.load import Load, http_request

__all__ = [
    "COMPLETED",
    "CREATED",
    "TOOL",
    "VERSION",
    "call_body",
    "call_load",
    "get_body",
    "get_load",
    "task_of",
    "tool_request",
]

TOOL: Final = "hello"
"""Takes no arguments, becomes a task at once, and the task completes at once with a small text."""

CREATED: Final = b'"taskId"'
COMPLETED: Final = b'"completed"'

VERSION: Final = "2026-07-28"
_META: Final = {
    "io.modelcontextprotocol/protocolVersion": VERSION,
    "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1.0"},
    "io.modelcontextprotocol/clientCapabilities": {"extensions": {"io.modelcontextprotocol/tasks": {}}},
}


def call_body() -> bytes:
    """Return the ``tools/call`` that makes a task."""
    return _body("tools/call", {"name": TOOL, "arguments": {}})


def get_body(task_id: str) -> bytes:
    """Return the ``tasks/get`` of a task."""
    return _body("tasks/get", {"taskId": task_id})


def call_load(port: int) -> Load:
    """Return the load that makes tasks, one after another."""
    return Load(requests=[_post(port, "tools/call", TOOL, call_body())], marker=CREATED)


def tool_request(port: int, tool: str) -> bytes:
    """Return the HTTP request that calls a tool without arguments."""
    return _post(port, "tools/call", tool, _body("tools/call", {"name": tool, "arguments": {}}))


def get_load(port: int, task_ids: Sequence[str]) -> Load:
    """Return the load that polls these tasks, which have completed."""
    requests = [_post(port, "tasks/get", task_id, get_body(task_id)) for task_id in task_ids]
    return Load(requests=requests, marker=COMPLETED)


def task_of(body: bytes) -> str:
    """Return the id of the task that a ``tools/call`` made."""
    task_id: str = json.loads(body)["result"]["taskId"]
    return task_id


def _body(method: str, params: Mapping[str, Any]) -> bytes:
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": _META}}
    return json.dumps(message, separators=(",", ":")).encode()


def _post(port: int, method: str, name: str, body: bytes) -> bytes:
    headers = [("MCP-Protocol-Version", VERSION), ("Mcp-Method", method), ("Mcp-Name", name)]
    return http_request(port, body, headers)
