"""What a legacy server says, read as modern; and what is said to it, written as legacy.

All functions are pure. What cannot be what it should is passed on as it is: the requester engine finds fault
with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from mcp_tasks_proto.errors import ErrorObject
from mcp_tasks_proto.legacy.translation import without_related_task
from mcp_tasks_proto.requester.settings import RequesterSettings
from mcp_tasks_proto.vocabulary import (
    CLIENT_CAPABILITIES,
    CLIENT_INFO,
    LEGACY_VERSION,
    PROTOCOL_VERSION,
    RELATED_TASK,
    SERVER_INFO,
    TASKS_EXTENSION,
)

__all__ = [
    "asks_for_task",
    "at",
    "client_capabilities",
    "complete",
    "create_result",
    "discover_result",
    "ended_view",
    "initialize_params",
    "legacy_params",
    "modern_task",
    "question_in",
    "related_task",
    "task_support",
]

_MODERN_META: Final = frozenset({PROTOCOL_VERSION, CLIENT_CAPABILITIES, CLIENT_INFO})
_MODERN_PARAMS: Final = frozenset({"_meta", "inputResponses", "requestState"})
_MODERN_NAMES: Final[Mapping[str, str]] = {"ttl": "ttlMs", "pollInterval": "pollIntervalMs"}
_TASK_REQUESTS: Final[Mapping[str, str]] = {"sampling": "createMessage", "elicitation": "create"}


def at(value: Any, *names: str) -> Any:
    """Return the member at a path of objects; ``None``: something on the way is not there, or no object."""
    for name in names:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


# -- opening a session ---------------------------------------------------------------------------------------


def client_capabilities(settings: RequesterSettings) -> dict[str, Any]:
    """Return what ``initialize`` declares: the same kinds of input, each as a task too (LEG.10)."""
    declared = {name: value for name, value in settings.capabilities.items() if name != "extensions"}
    asked: dict[str, Any] = {
        name: {method: {}} for name, method in _TASK_REQUESTS.items() if name in declared
    }
    if asked and settings.tasks:
        declared["tasks"] = {"list": {}, "cancel": {}, "requests": asked}
    return declared


def initialize_params(settings: RequesterSettings) -> dict[str, Any]:
    """Return the params of ``initialize``."""
    return {
        "protocolVersion": LEGACY_VERSION,
        "capabilities": client_capabilities(settings),
        "clientInfo": {"name": settings.name, "version": settings.version},
    }


def discover_result(initialized: Mapping[str, Any]) -> dict[str, Any]:
    """Return what ``server/discover`` would say of a server that has answered ``initialize``.

    The extension stands there when tools can be called as tasks.
    """
    declared = at(initialized, "capabilities")
    capabilities = dict(declared) if isinstance(declared, Mapping) else {}
    if at(capabilities.pop("tasks", None), "requests", "tools", "call") is not None:
        extensions = at(capabilities, "extensions")
        known = extensions if isinstance(extensions, Mapping) else {}
        capabilities["extensions"] = {**known, TASKS_EXTENSION: {}}
    found = {"supportedVersions": [LEGACY_VERSION], "capabilities": capabilities}
    for name in ("serverInfo", "instructions"):
        if name in initialized:
            found[name] = initialized[name]
    if "serverInfo" in initialized:
        found["_meta"] = {SERVER_INFO: initialized["serverInfo"]}
    return complete(found)


# -- requests ------------------------------------------------------------------------------------------------


def legacy_params(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return params without what only modern requests carry."""
    kept = {name: value for name, value in params.items() if name not in _MODERN_PARAMS}
    meta = {name: value for name, value in params["_meta"].items() if name not in _MODERN_META}
    return {**kept, "_meta": meta} if meta else kept


def task_support(result: Mapping[str, Any]) -> dict[str, bool]:
    """Return which tools of a page of ``tools/list`` can be called as tasks (LEG.3)."""
    tools = result.get("tools")
    return {
        tool["name"]: at(tool, "execution", "taskSupport") in ("optional", "required")
        for tool in (tools if isinstance(tools, list) else ())
        if isinstance(tool, Mapping) and isinstance(tool.get("name"), str)
    }


# -- results -------------------------------------------------------------------------------------------------


def complete(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return a result as final; what a legacy server says under ``resultType`` means nothing."""
    return {**result, "resultType": "complete"}


def modern_task(task: Mapping[str, Any]) -> dict[str, Any]:
    """Return a task in modern words."""
    return {"ttlMs": None} | {_MODERN_NAMES.get(name, name): value for name, value in task.items()}


def create_result(result: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the modern handle that a nested ``{task: …}`` result is; ``None``: it is none (LEG.3)."""
    task = result.get("task")
    if not isinstance(task, Mapping):
        return None
    return {**modern_task(task), "resultType": "task"}


def ended_view(
    task: Mapping[str, Any], result: Mapping[str, Any] | None, error: ErrorObject | None
) -> dict[str, Any]:
    """Return the view of a task that has ended, from its ``tasks/get`` and its ``tasks/result``.

    ``failed`` stands for a tool's own error, too: that one is a result, and completed (LEG.6, LIFE.2).
    Exactly one of ``result`` and ``error`` is there.
    """
    view = complete(modern_task(task))
    if result is None:
        assert error is not None
        return {**view, "status": "failed", "error": error.to_wire()}
    payload = without_related_task(result)
    if task.get("status") == "failed":
        if "content" not in payload and "structuredContent" not in payload:
            return view
        payload["isError"] = True
    return {**view, "status": "completed", "result": complete(payload)}


# -- questions -----------------------------------------------------------------------------------------------


def related_task(params: Mapping[str, Any]) -> str | None:
    """Return the id of the task that a message says it belongs to."""
    task_id = at(params, "_meta", RELATED_TASK, "taskId")
    return task_id if isinstance(task_id, str) else None


def asks_for_task(params: Mapping[str, Any]) -> bool:
    """Whether a request is to become a task of its receiver."""
    return isinstance(params.get("task"), Mapping)


def question_in(method: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the input request that a request of a server's is."""
    own = without_related_task(params)
    own.pop("task", None)
    return {"method": method, "params": own}
