"""Error codes, the JSON-RPC error object, and the exceptions of this package.

Three kinds of trouble, kept apart as h11 keeps them apart:

* A peer sent something wrong. That is never an exception here: it becomes an
  :class:`ErrorObject` in a reply, for a peer cannot make an engine raise.
* The host misused an engine: :class:`LocalProtocolError`.
* Bytes from a peer could not be read as a message: :class:`RemoteProtocolError`, raised only
  by the codecs in :mod:`mcp_tasks_proto.wire`, which have no exchange to answer on.
  :class:`LimitExceeded` is the one that says a bound of :class:`~mcp_tasks_proto.limits.Limits`
  was hit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import IntEnum
from typing import Any, Final

from attrs import frozen

from mcp_tasks_proto.vocabulary import TASKS_EXTENSION

__all__ = [
    "ERROR_TABLE",
    "STOPPING",
    "STORE_UNAVAILABLE",
    "WORKER_LOST",
    "ErrorCode",
    "ErrorObject",
    "LimitExceeded",
    "LocalProtocolError",
    "RemoteProtocolError",
    "header_mismatch",
    "internal_error",
    "invalid_params",
    "invalid_request",
    "limit_reached",
    "method_not_found",
    "missing_capability",
    "parse_error",
    "unknown_task",
    "unsupported_version",
]


class ErrorCode(IntEnum):
    """The codes this package emits, and no others."""

    PARSE_ERROR = -32700
    INVALID_REQUEST = -32600
    METHOD_NOT_FOUND = -32601
    INVALID_PARAMS = -32602
    INTERNAL_ERROR = -32603
    HEADER_MISMATCH = -32020
    MISSING_CLIENT_CAPABILITY = -32021
    UNSUPPORTED_PROTOCOL_VERSION = -32022


ERROR_TABLE: Mapping[ErrorCode, tuple[int, str]] = {
    ErrorCode.PARSE_ERROR: (400, "the body is not JSON in UTF-8"),
    ErrorCode.INVALID_REQUEST: (400, "the JSON is no object, or no JSON-RPC 2.0 request or notification"),
    ErrorCode.METHOD_NOT_FOUND: (404, "the method is not served to this caller"),
    ErrorCode.INVALID_PARAMS: (200, "the params do not fit the method, or name an unknown task"),
    ErrorCode.INTERNAL_ERROR: (200, "the server could not do it; data.reason says why, if known"),
    ErrorCode.HEADER_MISMATCH: (400, "a required HTTP header is missing, or differs from the body"),
    ErrorCode.MISSING_CLIENT_CAPABILITY: (400, "the request declares too few client capabilities"),
    ErrorCode.UNSUPPORTED_PROTOCOL_VERSION: (400, "the protocol version is not served here"),
}
"""Code -> (HTTP status when nothing says otherwise, what it means). Contract HTTP.5.

``INVALID_PARAMS`` about the request's own metadata is sent with 400 instead (NEG.1).
"""


# -- data.reason, where more than one part of this package says it -----------------------------------------

STORE_UNAVAILABLE: Final = "store_unavailable"
"""The store did not answer, or could not keep what it was given."""
STOPPING: Final = "shutting_down"
"""This side is about to end, and takes no more requests."""
WORKER_LOST: Final = "worker_lost"
"""Whatever did the work of a task is gone, and nobody goes on with it."""


@frozen
class ErrorObject:
    """A JSON-RPC error, as it stands under ``error`` in a response or in a failed task.

    ``code`` is any integer: a tool may fail with a code of its own. ``data`` is absent from
    the wire when it is ``None`` here.
    """

    code: int
    message: str
    data: Any = None
    extra: Mapping[str, Any] | None = None

    def to_wire(self) -> dict[str, Any]:
        """Return the JSON object; a fresh one, so the caller may change it."""
        wire: dict[str, Any] = {"code": int(self.code), "message": self.message}
        if self.data is not None:
            wire["data"] = self.data
        if self.extra:
            for name, value in self.extra.items():
                wire.setdefault(name, value)
        return wire

    @property
    def http_status(self) -> int:
        """The HTTP status of a reply that carries this error (HTTP.5)."""
        row = ERROR_TABLE.get(self.code)  # type: ignore[call-overload]
        return 200 if row is None else int(row[0])


class LocalProtocolError(Exception):
    """The host broke the engine's rules; the message names the input and the rule."""


class RemoteProtocolError(Exception):
    """A peer's bytes could not be read as a message.

    ``error`` is what to answer the peer; ``request_id`` is the id, where one could be read.
    """

    def __init__(self, error: ErrorObject, request_id: str | int | None = None) -> None:
        super().__init__(error.message)
        self.error = error
        self.request_id = request_id


class LimitExceeded(RemoteProtocolError):
    """A peer's bytes ran over a bound; ``limit`` is the name of the field in ``Limits``."""

    def __init__(self, error: ErrorObject, limit: str) -> None:
        super().__init__(error)
        self.limit = limit


def parse_error(detail: str) -> ErrorObject:
    """-32700: the bytes are not JSON (WIRE.1, WIRE.2)."""
    return ErrorObject(ErrorCode.PARSE_ERROR, f"Parse error: {detail}")


def invalid_request(detail: str) -> ErrorObject:
    """-32600: JSON, but not a JSON-RPC 2.0 request or notification (WIRE.1)."""
    return ErrorObject(ErrorCode.INVALID_REQUEST, f"Invalid request: {detail}")


def method_not_found(method: str) -> ErrorObject:
    """-32601: nobody serves ``method`` here (NEG.7, NEG.8, NEG.10)."""
    return ErrorObject(ErrorCode.METHOD_NOT_FOUND, f"Method not found: {method}")


def invalid_params(detail: str) -> ErrorObject:
    """-32602: the params do not fit the method."""
    return ErrorObject(ErrorCode.INVALID_PARAMS, f"Invalid params: {detail}")


def unknown_task() -> ErrorObject:
    """-32602 for an unknown, expired, foreign or malformed task id: one text for all (GET.2)."""
    return ErrorObject(ErrorCode.INVALID_PARAMS, "Task not found")


def internal_error(detail: str, *, reason: str | None = None) -> ErrorObject:
    """-32603: this side failed. ``reason`` is a stable word for programs, in ``data.reason``."""
    data = None if reason is None else {"reason": reason}
    return ErrorObject(ErrorCode.INTERNAL_ERROR, f"Internal error: {detail}", data)


def limit_reached(limit: str) -> ErrorObject:
    """-32603 for a bound of this server; ``data.reason`` is the bound's name (TTL.2, LIM.3)."""
    return internal_error(f"the server is at its limit ({limit})", reason=limit)


def header_mismatch(detail: str) -> ErrorObject:
    """-32020: an HTTP header is missing, malformed, repeated or differs from the body (HTTP.2)."""
    return ErrorObject(ErrorCode.HEADER_MISMATCH, f"Header mismatch: {detail}")


def missing_capability(required: Mapping[str, Any] | None = None) -> ErrorObject:
    """-32021: the request declares too little. ``required`` defaults to the Tasks extension."""
    if required is None:
        required = {"extensions": {TASKS_EXTENSION: {}}}
    return ErrorObject(
        ErrorCode.MISSING_CLIENT_CAPABILITY,
        f"Missing required client capability: {', '.join(_capability_names(required))}",
        {"requiredCapabilities": required},
    )


def _capability_names(required: Mapping[str, Any]) -> Iterator[str]:
    """Name capabilities for a person: an extension by its own name, others with what is wanted of them."""
    for name, wanted in required.items():
        if name == "extensions":
            yield from wanted
        else:
            yield f"{name} ({', '.join(wanted)})" if wanted else name


def unsupported_version(requested: Any, supported: tuple[str, ...]) -> ErrorObject:
    """-32022: ``data`` names what is served and what was asked for (NEG.2)."""
    return ErrorObject(
        ErrorCode.UNSUPPORTED_PROTOCOL_VERSION,
        f"Unsupported protocol version; this server speaks {', '.join(supported)}",
        {"supported": list(supported), "requested": requested},
    )
