"""From one request's own metadata to one decision, with its reason (NEG).

Nothing is remembered: not an earlier request, not the connection. The checks run in the order of NEG.3
and the first that fails decides; the stages after it (params, lookup, ownership) belong to the method.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, Final, Protocol

from attrs import evolve, frozen

from mcp_tasks_proto.errors import (
    ErrorObject,
    invalid_params,
    method_not_found,
    missing_capability,
    unsupported_version,
)
from mcp_tasks_proto.inputs import HttpHead
from mcp_tasks_proto.settings import TaskSupport, ToolDeclaration
from mcp_tasks_proto.vocabulary import CLIENT_CAPABILITIES, PROTOCOL_VERSION, TASKS_EXTENSION
from mcp_tasks_proto.wire.http import check_parameter_headers, check_standard_headers, check_version_header
from mcp_tasks_proto.wire.jsonrpc import Request

__all__ = [
    "OWNED_METHODS",
    "TASK_METHODS",
    "Accepted",
    "Decision",
    "Reason",
    "Refused",
    "Served",
    "declares_tasks",
    "negotiate",
]

TASK_METHODS: Final = frozenset({"tasks/get", "tasks/update", "tasks/cancel"})

OWNED_METHODS: Final = TASK_METHODS | {"server/discover", "tools/list", "tools/call", "subscriptions/listen"}
"""The methods an engine answers by itself; every other one is the host's (WIRE.5)."""


class Served(Protocol):
    """What a server or a proxy serves, as far as the checks need to know."""

    @property
    def versions(self) -> tuple[str, ...]:
        """Protocol versions."""

    @property
    def methods(self) -> frozenset[str]:
        """Methods beside those of :data:`OWNED_METHODS`."""


class Reason(Enum):
    """Which check refused a request."""

    ERA = "it opens the session of an era that is not served"
    METADATA = "its _meta lacks what every request must carry"
    VERSION_HEADER = "its MCP-Protocol-Version header is not the version in its body"
    VERSION = "its protocol version is not served"
    METHOD = "its method is not served"
    STANDARD_HEADERS = "its Mcp-Method or Mcp-Name header is not what its body says"
    PARAMETER_HEADERS = "an Mcp-Param header is not what its arguments say"
    CAPABILITY = "it declares too few client capabilities"


@frozen
class Accepted:
    """The request may go on to its method."""

    capabilities: Mapping[str, Any]
    """What this request's client declares."""
    declares_tasks: bool
    """Whether it may be given, or ask for, tasks: declared, and on for this request."""


@frozen
class Refused:
    """The request is answered with ``error``."""

    error: ErrorObject
    reason: Reason
    http_status: int


Decision = Accepted | Refused


def declares_tasks(capabilities: Mapping[str, Any]) -> bool:
    """Whether these client capabilities declare the Tasks extension: any object value does (NEG.4)."""
    extensions = capabilities.get("extensions")
    return isinstance(extensions, dict) and isinstance(extensions.get(TASKS_EXTENSION), dict)


def negotiate(
    request: Request,
    *,
    http: HttpHead | None,
    tasks_enabled: bool,
    settings: Served,
    tools: Mapping[str, ToolDeclaration],
) -> Decision:
    """Decide whether ``request`` goes on to its method; the order of checks is NEG.3's."""
    method, params = request.method, request.params
    meta = params.get("_meta")
    if method == "initialize" and not (isinstance(meta, dict) and PROTOCOL_VERSION in meta):
        # A legacy client cannot fall forward: the versions served are all the help there is (NEG.9).
        return _refuse(unsupported_version(params.get("protocolVersion"), settings.versions), Reason.ERA)
    if not isinstance(meta, dict):
        spoken = " or ".join(settings.versions)  # who speaks another version may not know what this is about
        return _refuse_metadata(
            f"_meta must be an object that carries {PROTOCOL_VERSION} and {CLIENT_CAPABILITIES}, "
            f"as in every request of {spoken}"
        )
    version = meta.get(PROTOCOL_VERSION)
    if not isinstance(version, str):
        return _refuse_metadata(f"_meta must carry {PROTOCOL_VERSION}, a string")
    capabilities = meta.get(CLIENT_CAPABILITIES)
    if not isinstance(capabilities, dict):
        return _refuse_metadata(f"_meta must carry {CLIENT_CAPABILITIES}, an object")

    if http is not None and (mismatch := check_version_header(http, version)):
        return _refuse(mismatch, Reason.VERSION_HEADER)
    if version not in settings.versions:
        return _refuse(unsupported_version(version, settings.versions), Reason.VERSION)

    if not _serves(method, tasks_enabled, settings):
        error = method_not_found(method)
        if method == "initialize":
            error = evolve(error, data={"supported": list(settings.versions)})
        return _refuse(error, Reason.METHOD)

    name = params.get("name") if method == "tools/call" else None
    tool = tools.get(name) if isinstance(name, str) else None
    if http is not None:
        if mismatch := check_standard_headers(http, method, params):
            return _refuse(mismatch, Reason.STANDARD_HEADERS)
        if tool is not None and tool.header_parameters:
            mismatch = check_parameter_headers(http, tool.header_parameters, params.get("arguments"))
            if mismatch:
                return _refuse(mismatch, Reason.PARAMETER_HEADERS)

    may_use_tasks = tasks_enabled and declares_tasks(capabilities)
    if not may_use_tasks and _needs_tasks(method, params, tool, tasks_enabled):
        return _refuse(missing_capability(), Reason.CAPABILITY)
    return Accepted(capabilities, may_use_tasks)


def _serves(method: str, tasks_enabled: bool, settings: Served) -> bool:
    if method in OWNED_METHODS:
        return tasks_enabled or method not in TASK_METHODS
    return method in settings.methods


def _needs_tasks(
    method: str, params: Mapping[str, Any], tool: ToolDeclaration | None, tasks_enabled: bool
) -> bool:
    """Whether the request cannot be served to a caller who may not use tasks (NEG.5, NEG.6)."""
    if method in TASK_METHODS:
        return True
    if method == "subscriptions/listen":
        # Where the extension is off, taskIds is one more filter that is not supported (NEG.7).
        wanted = params.get("notifications")
        return tasks_enabled and isinstance(wanted, dict) and "taskIds" in wanted
    return tool is not None and tool.task is TaskSupport.REQUIRED


def _refuse(error: ErrorObject, reason: Reason) -> Refused:
    return Refused(error, reason, error.http_status)


def _refuse_metadata(detail: str) -> Refused:
    return Refused(invalid_params(detail), Reason.METADATA, 400)
