"""What a server's words mean to a requester, as plainly as the reference model needs it (WIRE.1, REQ.1)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from attrs import frozen

from mcp_tasks_proto.testing.model.forms import may_be_asked

__all__ = [
    "CALLERS_FAULT",
    "ModelOutcome",
    "error_of",
    "is_earlier",
    "is_input_request",
    "lacks_payload",
    "outcome_of",
    "result_of",
    "somebody_can_answer",
    "view_of",
]

STATUSES: Final = ("working", "input_required", "completed", "failed", "cancelled")
ENDED: Final = STATUSES[2:]
CALLERS_FAULT: Final = frozenset({-32700, -32600, -32601, -32602, -32020, -32021, -32022, -32002})
"""Codes of errors that would come again, however often the same is asked."""
PAYLOADS: Final = {"completed": "result", "failed": "error", "input_required": "inputRequests"}
"""What a view has for the sake of its status (GET.1)."""


@frozen(kw_only=True)
class ModelOutcome:
    """How a call has ended (REQ.6)."""

    kind: str
    """``completed``, ``failed``, ``cancelled``, ``expired`` or ``observation_lost``."""
    result: Mapping[str, Any] | None = None
    """With ``completed``."""
    code: int | None = None
    """With ``failed``; ``None``: the server sent no error, the requester tells what is wrong."""
    data: Any = None


# -- messages ----------------------------------------------------------------------------------------------


def result_of(message: Any, request: int) -> Mapping[str, Any] | None:
    """Return the result in a message, if it is one to this request."""
    if not _answers(message, "result") or message.get("id") != request or type(message["id"]) is not int:
        return None
    result = message["result"]
    return result if isinstance(result, dict) else None


def error_of(message: Any, request: int) -> Mapping[str, Any] | None:
    """Return the error in a message, if it is one to this request, or to one whose id was not readable.

    A draft's code for a capability that is missing is read as what became of it.
    """
    if not _answers(message, "error") or message.get("id") not in (request, None):
        return None
    error = message["error"]
    if not _is_error(error) or type(message.get("id", 0)) not in (int, type(None)):
        return None
    data = error.get("data")
    if error["code"] == -32003 and isinstance(data, dict) and "requiredCapabilities" in data:
        return {**error, "code": -32021}
    return error  # type: ignore[no-any-return]


def _answers(message: Any, name: str) -> bool:
    return (
        isinstance(message, dict)
        and message.get("jsonrpc") == "2.0"
        and "method" not in message
        and [member for member in ("result", "error") if member in message] == [name]
    )


def _is_error(value: Any) -> bool:
    return (
        isinstance(value, dict) and type(value.get("code")) is int and isinstance(value.get("message"), str)
    )


# -- views -------------------------------------------------------------------------------------------------


def view_of(members: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the view in a result or a notification; ``None``: it is none (LIFE.5)."""
    view = {name: value for name, value in members.items() if name not in ("_meta", "resultType")}
    texts = [view.get(name) for name in ("taskId", "createdAt", "lastUpdatedAt")]
    texts += [view[name] for name in ("statusMessage",) if name in view]
    numbers = [view[name] for name in ("pollIntervalMs",) if name in view]
    numbers += [view["ttlMs"]] if view.get("ttlMs") is not None else []
    objects = [view[name] for name in ("result", "inputRequests") if name in view]
    fits = (
        view.get("status") in STATUSES
        and all(isinstance(text, str) for text in texts)
        and all(type(number) is int for number in numbers)
        and all(isinstance(value, dict) for value in objects)
        and all(isinstance(request, dict) for request in view.get("inputRequests", {}).values())
        and ("error" not in view or _is_error(view["error"]))
    )
    return view if fits else None


def outcome_of(view: Mapping[str, Any]) -> ModelOutcome | None:
    """Return how the task of a view has ended; ``None``: it has not. Nothing is made up (LIFE.2)."""
    status = view["status"]
    if status not in ENDED:
        return None
    if status == "cancelled":
        return ModelOutcome(kind="cancelled")
    if status == "failed":
        error = error_of({"jsonrpc": "2.0", "error": view.get("error")}, 0)
        return ModelOutcome(kind="failed") if error is None else failed(error)
    result = view.get("result")
    if result is None or result.get("resultType", "complete") != "complete":
        return ModelOutcome(kind="failed")
    return ModelOutcome(kind="completed", result=result)


def failed(error: Mapping[str, Any]) -> ModelOutcome:
    """Return the outcome that an error is."""
    return ModelOutcome(kind="failed", code=error["code"], data=error.get("data"))


def lacks_payload(view: Mapping[str, Any]) -> bool:
    """Whether a view lacks what its status is about."""
    return view["status"] in PAYLOADS and PAYLOADS[view["status"]] not in view


def is_earlier(one: str, other: str) -> bool:
    """Whether one time is before another; one that cannot be read never is."""
    try:
        return datetime.fromisoformat(one) < datetime.fromisoformat(other)
    except (ValueError, TypeError):
        return False


# -- input requests ----------------------------------------------------------------------------------------


def is_input_request(request: Any) -> bool:
    """Whether this is one: of its members only those are looked at without which nobody can be asked."""
    if not isinstance(request, dict):
        return False
    method, params = request.get("method"), request.get("params", {})
    if method == "roots/list":
        return isinstance(params, dict)
    if method not in ("elicitation/create", "sampling/createMessage") or not isinstance(params, dict):
        return False
    if method == "sampling/createMessage":
        return isinstance(params.get("messages"), list) and type(params.get("maxTokens")) is int
    if not isinstance(params.get("message"), str):
        return False
    if params.get("mode", "form") == "url":
        return isinstance(params.get("url"), str)
    schema = params.get("requestedSchema")
    return (
        params.get("mode", "form") == "form"
        and isinstance(schema, dict)
        and schema.get("type") == "object"
        and isinstance(schema.get("properties"), dict)
    )


def somebody_can_answer(request: Any, capabilities: Mapping[str, Any]) -> bool:
    """Whether whoever declares these capabilities can be asked this (INP.2)."""
    return is_input_request(request) and may_be_asked(request, capabilities)
