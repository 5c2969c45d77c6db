"""From what a modern engine says to what 2025-11-25 calls it, as pure functions (LEG.3 to LEG.7).

A task is flat there, without its result or its questions; it is nested where a call makes it; ``isError`` is
a failure; and what came of it is told by ``tasks/result``, exactly as the call would have told it.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Protocol

from mcp_tasks_proto.errors import ErrorCode, ErrorObject, internal_error
from mcp_tasks_proto.settings import TaskSupport
from mcp_tasks_proto.vocabulary import (
    CLIENT_CAPABILITIES,
    LEGACY_VERSION,
    LOG_LEVEL,
    MODERN_VERSION,
    PROTOCOL_VERSION,
    RELATED_TASK,
    SERVER_INFO,
    TASKS_EXTENSION,
)
from mcp_tasks_proto.wire.jsonrpc import parse_error_object

__all__ = [
    "created_task",
    "expiry_ms",
    "final_answer",
    "initialize_result",
    "legacy_error",
    "legacy_task",
    "listed_tools",
    "modern_capabilities",
    "modern_params",
    "plain_result",
    "with_related_task",
    "without_related_task",
]

Object = Mapping[str, Any]

TASK_NAMES: Final[Mapping[str, str]] = {
    "taskId": "taskId",
    "status": "status",
    "statusMessage": "statusMessage",
    "createdAt": "createdAt",
    "lastUpdatedAt": "lastUpdatedAt",
    "ttlMs": "ttl",
    "pollIntervalMs": "pollInterval",
}
"""Members of a modern view that a legacy task has as well, and what they are called there."""

DIAGNOSIS_CHARS: Final = 1024
"""How much of a failed tool's own text goes into the status message."""

MODERN_ONLY: Final = frozenset({"resultType", "ttlMs", "cacheScope"})
"""Members of a result that 2025-11-25 does not know."""

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


# -- what a client is told -----------------------------------------------------------------------------


class Introduced(Protocol):
    """What a client is told of a server, or a proxy."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def version(self) -> str:
        """Its version."""

    @property
    def info(self) -> Mapping[str, Any]:
        """More of ``serverInfo``."""

    @property
    def instructions(self) -> str | None:
        """For the client's model."""

    @property
    def capabilities(self) -> Mapping[str, Any]:
        """Capabilities beside tasks."""


def initialize_result(settings: Introduced, *, tasks: bool, list_tasks: bool) -> dict[str, Any]:
    """Return the result of ``initialize`` (LEG.2).

    ``tasks``: whether tasks are served at all; ``list_tasks``: whether callers can be told apart, too.
    Extensions are not of this era, and logging is not served in it.
    """
    own = {name: it for name, it in settings.capabilities.items() if name not in ("extensions", "logging")}
    capabilities: dict[str, Any] = {"tools": {"listChanged": True}, **own}
    if tasks:
        served: dict[str, Any] = {"cancel": {}, "requests": {"tools": {"call": {}}}}
        capabilities["tasks"] = {"list": {}, **served} if list_tasks else served
    result: dict[str, Any] = {
        "protocolVersion": LEGACY_VERSION,
        "capabilities": capabilities,
        "serverInfo": {**settings.info, "name": settings.name, "version": settings.version},
    }
    if settings.instructions is not None:
        result["instructions"] = settings.instructions
    return result


def plain_result(result: Object) -> dict[str, Any]:
    """Return a result without what only the modern era says of it."""
    plain = {name: value for name, value in result.items() if name not in MODERN_ONLY}
    if "_meta" in plain:
        meta = {name: value for name, value in plain.pop("_meta").items() if name != SERVER_INFO}
        if meta:
            plain["_meta"] = meta
    return plain


def listed_tools(result: Object, support: Mapping[str, TaskSupport]) -> dict[str, Any]:
    """Return the result of ``tools/list``; each tool says what its ``support`` is (LEG.3).

    Tools that are not in ``support`` say nothing, which is "forbidden".
    """
    listed = plain_result(result)
    listed["tools"] = [_listed_tool(tool, support.get(tool["name"])) for tool in result["tools"]]
    return listed


def _listed_tool(tool: Object, support: TaskSupport | None) -> dict[str, Any]:
    if support is None:
        return dict(tool)
    return {**tool, "execution": {**tool.get("execution", {}), "taskSupport": support.value}}


def legacy_error(error: Object) -> dict[str, Any]:
    """Return an error as this era has it: a capability that is not declared is -32602 there."""
    undeclared = error["code"] == ErrorCode.MISSING_CLIENT_CAPABILITY
    return {**error, "code": int(ErrorCode.INVALID_PARAMS)} if undeclared else dict(error)


# -- tasks ---------------------------------------------------------------------------------------------


def legacy_task(view: Object) -> dict[str, Any]:
    """Return a modern view, or a create result, as a task of this era (LEG.6)."""
    task = {legacy: view[modern] for modern, legacy in TASK_NAMES.items() if modern in view}
    if view["status"] == "completed" and view["result"].get("isError") is True:
        task["status"] = "failed"
        task["statusMessage"] = _diagnosis(view["result"]) or task.get(
            "statusMessage", "The tool reported an error."
        )
    return task


def _diagnosis(result: Object) -> str | None:
    """Return the first text in a tool's result."""
    content = result.get("content")
    for block in content if isinstance(content, (list, tuple)) else ():
        if isinstance(block, Mapping) and isinstance(block.get("text"), str):
            return str(block["text"])[:DIAGNOSIS_CHARS]
    return None


def created_task(result: Object) -> dict[str, Any]:
    """Return a create result nested, as a task-augmented call is answered: every task begins as working there
    (LEG.3)."""
    return {"task": legacy_task({**result, "status": "working"})}


def final_answer(view: Object) -> dict[str, Any] | ErrorObject:
    """Return what the call would have returned: the answer to ``tasks/result`` (LEG.4).

    ``view`` is terminal. Raises ``KeyError`` when it lacks what its status promises.
    """
    task_id = view["taskId"]
    match view["status"]:
        case "completed":
            return with_related_task(plain_result(view["result"]), task_id)
        case "failed":
            error = parse_error_object(view["error"])
            return error or internal_error("the task failed, and it is not known why")
    return ErrorObject(ErrorCode.INVALID_PARAMS, "The task was cancelled: it has no result")


def with_related_task(members: Object, task_id: str) -> dict[str, Any]:
    """Return a result, or the params of a request, tied to a task."""
    meta = members.get("_meta")
    own = meta if isinstance(meta, Mapping) else {}
    return {**members, "_meta": {**own, RELATED_TASK: {"taskId": task_id}}}


def without_related_task(members: Object) -> dict[str, Any]:
    """Return a result or params, of whatever peer, without the note of whose task they are."""
    kept = {name: value for name, value in members.items() if name != "_meta"}
    given = members.get("_meta")
    own = given if isinstance(given, Mapping) else {}
    meta = {name: value for name, value in own.items() if name != RELATED_TASK}
    return {**kept, "_meta": meta} if meta else kept


def expiry_ms(view: Object) -> int | None:
    """Return when a task may be gone, in Unix milliseconds; ``None``: never."""
    if view["ttlMs"] is None:
        return None
    created = datetime.fromisoformat(view["createdAt"])
    return (created - EPOCH) // timedelta(milliseconds=1) + int(view["ttlMs"])


# -- what a modern engine is told ------------------------------------------------------------------------


def modern_capabilities(declared: Object) -> dict[str, Any]:
    """Return what a client declared in ``initialize``, as a modern request may declare it.

    Without the extension, which counts for nothing here (LEG.1), and without this era's own ``tasks``.
    This era does not know ``extensions``, so what is no object there is no fault: it declares nothing.
    """
    capabilities = {name: value for name, value in declared.items() if name not in ("tasks", "extensions")}
    extensions = declared.get("extensions")
    if isinstance(extensions, Mapping):
        others = {name: value for name, value in extensions.items() if name != TASKS_EXTENSION}
        capabilities["extensions"] = others
    return capabilities


def modern_params(params: Object, capabilities: Object, *, tasks: bool) -> dict[str, Any]:
    """Return a request's params with the metadata that a modern one carries.

    ``capabilities`` are the session's; ``tasks`` declares the extension beside them.
    """
    given = params.get("_meta")
    meta = dict(given) if isinstance(given, Mapping) else {}
    if tasks:
        extensions = {**capabilities.get("extensions", {}), TASKS_EXTENSION: {}}
        capabilities = {**capabilities, "extensions": extensions}
    meta.pop(LOG_LEVEL, None)
    meta[PROTOCOL_VERSION] = MODERN_VERSION
    meta[CLIENT_CAPABILITIES] = capabilities
    return {**params, "_meta": meta}
