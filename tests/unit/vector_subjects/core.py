"""Pure functions about messages, negotiation, the life of a task, and input requests."""

from __future__ import annotations

from base64 import b64decode
from typing import Any, Final

from mcp_tasks_proto.errors import ErrorObject, LimitExceeded, RemoteProtocolError
from mcp_tasks_proto.input_requests import check_response, missing_capabilities, unique_key
from mcp_tasks_proto.lifecycle import Goto, Status, Trigger, transition
from mcp_tasks_proto.limits import Limits
from mcp_tasks_proto.negotiation import Accepted, Reason, negotiate
from mcp_tasks_proto.records import InputEntry, TaskRecord
from mcp_tasks_proto.request_state import HmacSealer
from mcp_tasks_proto.settings import ServerSettings, TaskSupport, ToolDeclaration
from mcp_tasks_proto.wire.jsonrpc import (
    Malformed,
    Notification,
    Request,
    Response,
    decode,
    encode,
    error_message,
    parse_message,
)
from mcp_tasks_proto.wire.schema import create_result, task_view, timestamp
from mcp_tasks_proto.wire.stdio import LineDecoder, frame
from tests.unit.vector_subjects.http import head_of

__all__ = ["FUNCTIONS", "tool_of"]

Given = dict[str, Any]


# -- messages --------------------------------------------------------------------------------------------


def _read_message(given: Given) -> Given:
    data = given["text"].encode() if "text" in given else b64decode(given["base64"])
    try:
        value = decode(data, Limits(**given.get("limits", {})))
    except RemoteProtocolError as problem:
        return {"reply": error_message(problem.request_id, problem.error)}
    match parse_message(value):
        case Request(id=id_, method=method):
            return {"kind": "request", "id": id_, "method": method}
        case Notification(method=method):
            return {"kind": "notification", "method": method}
        case Response(id=id_):
            return {"kind": "response", "id": id_}
        case Malformed(error=error, id=id_):
            return {"reply": error_message(id_, error)}


def _read_lines(given: Given) -> Given:
    decoder = LineDecoder(Limits(**given.get("limits", {})))
    found = [one for chunk in given["chunks"] for one in decoder.feed(chunk.encode())]
    return {
        "lines": [
            {"too_long": True} if isinstance(one, LimitExceeded) else {"text": one.decode()} for one in found
        ],
        "cut_off": decoder.close(),
    }


def _write_line(given: Given) -> Given:
    return {"text": frame(encode(given["message"])).decode()}


# -- negotiation -----------------------------------------------------------------------------------------

_CHECKS: Final = {
    Reason.ERA: "era",
    Reason.METADATA: "metadata",
    Reason.VERSION_HEADER: "headers",
    Reason.VERSION: "version",
    Reason.METHOD: "method",
    Reason.STANDARD_HEADERS: "headers",
    Reason.PARAMETER_HEADERS: "headers",
    Reason.CAPABILITY: "capability",
}


def tool_of(declared: Given) -> ToolDeclaration:
    """Return a tool of a server."""
    schema = declared.get("input_schema", {"type": "object"})
    return ToolDeclaration(
        name=declared["name"],
        definition={"name": declared["name"], "inputSchema": schema},
        task=TaskSupport(declared.get("task", "optional")),
    )


def _negotiate(given: Given) -> Given:
    server = given["server"]
    settings = ServerSettings(
        name="vectors",
        version="1",
        sealer=HmacSealer([bytes(32)]),
        versions=tuple(server["versions"]),
        methods=frozenset(server["methods"]),
    )
    request = parse_message(given["message"])
    assert isinstance(request, Request)
    decision = negotiate(
        request,
        http=head_of(given["headers"]) if "headers" in given else None,
        tasks_enabled=given["tasks_enabled"],
        settings=settings,
        tools={one["name"]: tool_of(one) for one in server["tools"]},
    )
    if isinstance(decision, Accepted):
        return {"accepted": True, "tasks": decision.declares_tasks}
    return {
        "code": int(decision.error.code),
        "http_status": decision.http_status,
        "check": _CHECKS[decision.reason],
        "data": decision.error.data,
    }


# -- the life of a task ----------------------------------------------------------------------------------


def _transition(given: Given) -> Given:
    triggers = {one.name.lower(): one for one in Trigger}
    verdict = transition(Status(given["status"]), triggers[given["trigger"]])
    if isinstance(verdict, Goto):
        return {"verdict": "goto", "status": verdict.status.value}
    return {"verdict": str(verdict)}


def _timestamp(given: Given) -> Given:
    return {"text": timestamp(given["unix_ms"])}


def _record(task: Given) -> TaskRecord:
    members = dict(task)
    error = members.pop("error", None)
    return TaskRecord(
        **{
            "version": 1,
            "principal": None,
            "tool": "render",
            "arguments": {},
            "client_capabilities": {},
            **members,
            "status": Status(members["status"]),
            "error": None if error is None else ErrorObject(**error),
            "inputs": tuple(
                InputEntry(name=one["key"], ask="first", **one) for one in members.get("inputs", ())
            ),
        }
    )


def _task_view(given: Given) -> Given:
    record = _record(given["task"])
    match given["form"]:
        case "create":
            return {"view": create_result(record)}
        case "get":
            return {"view": {"resultType": "complete", **task_view(record)}}
    return {"view": task_view(record)}


def _readable(given: Given) -> Given:
    made = given["created_at_ms"]
    record = _record(
        {
            "task_id": "t",
            "status": "working",
            "created_at_ms": made,
            "last_updated_at_ms": made,
            "ttl_ms": given["ttl_ms"],
        }
    )
    return {"readable": not record.expired(given["now_ms"])}


# -- input requests --------------------------------------------------------------------------------------


def _check_response(given: Given) -> Given:
    return {"accepted": check_response(given["request"], given["response"]) is None}


def _missing_capabilities(given: Given) -> Given:
    return {"required": missing_capabilities(given["requests"], given["client_capabilities"])}


def _unique_key(given: Given) -> Given:
    return {"key": unique_key(given["name"], given["used"])}


FUNCTIONS = {
    "read_message": _read_message,
    "read_lines": _read_lines,
    "write_line": _write_line,
    "negotiate": _negotiate,
    "transition": _transition,
    "timestamp": _timestamp,
    "task_view": _task_view,
    "readable": _readable,
    "check_response": _check_response,
    "missing_capabilities": _missing_capabilities,
    "unique_key": _unique_key,
}
