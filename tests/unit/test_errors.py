"""The errors of this package: their codes, HTTP statuses, words and data (contract "Codes", HTTP.5)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import pytest

from mcp_tasks_proto.errors import (
    ERROR_TABLE,
    ErrorCode,
    ErrorObject,
    LimitExceeded,
    LocalProtocolError,
    RemoteProtocolError,
    header_mismatch,
    internal_error,
    invalid_params,
    invalid_request,
    limit_reached,
    method_not_found,
    missing_capability,
    parse_error,
    unknown_task,
    unsupported_version,
)

TASKS: Final[Mapping[str, Any]] = {"extensions": {"io.modelcontextprotocol/tasks": {}}}


@pytest.mark.parametrize(
    ("error", "http_status", "wire"),
    [
        (parse_error("why"), 400, {"code": -32700, "message": "Parse error: why"}),
        (invalid_request("why"), 400, {"code": -32600, "message": "Invalid request: why"}),
        (method_not_found("a/b"), 404, {"code": -32601, "message": "Method not found: a/b"}),
        (invalid_params("why"), 200, {"code": -32602, "message": "Invalid params: why"}),
        (unknown_task(), 200, {"code": -32602, "message": "Task not found"}),
        (internal_error("why"), 200, {"code": -32603, "message": "Internal error: why"}),
        (
            internal_error("why", reason="store_unavailable"),
            200,
            {"code": -32603, "message": "Internal error: why", "data": {"reason": "store_unavailable"}},
        ),
        (
            limit_reached("tasks"),
            200,
            {
                "code": -32603,
                "message": "Internal error: the server is at its limit (tasks)",
                "data": {"reason": "tasks"},
            },
        ),
        (header_mismatch("why"), 400, {"code": -32020, "message": "Header mismatch: why"}),
        (
            missing_capability(),
            400,
            {
                "code": -32021,
                "message": "Missing required client capability: io.modelcontextprotocol/tasks",
                "data": {"requiredCapabilities": TASKS},
            },
        ),
        (
            missing_capability({"elicitation": {"form": {}}, "roots": {}}),
            400,
            {
                "code": -32021,
                "message": "Missing required client capability: elicitation (form), roots",
                "data": {"requiredCapabilities": {"elicitation": {"form": {}}, "roots": {}}},
            },
        ),
        (
            unsupported_version("1999-12-31", ("2026-07-28", "2025-11-25")),
            400,
            {
                "code": -32022,
                "message": "Unsupported protocol version; this server speaks 2026-07-28, 2025-11-25",
                "data": {"supported": ["2026-07-28", "2025-11-25"], "requested": "1999-12-31"},
            },
        ),
    ],
    ids=lambda value: str(value["code"]) if isinstance(value, dict) else None,
)
def test_errors_on_the_wire(error: ErrorObject, http_status: int, wire: dict[str, Any]) -> None:
    """HTTP.5, NEG.2, NEG.5, GET.2, TTL.2."""
    assert error.to_wire() == wire
    assert list(error.to_wire()) == list(wire)
    assert error.http_status == http_status


def test_no_other_code_is_made_here() -> None:
    """-32002, -32042 and -32000 to -32019 are never emitted."""
    assert {int(code) for code in ErrorCode} == {
        -32700,
        -32600,
        -32601,
        -32602,
        -32603,
        -32020,
        -32021,
        -32022,
    }
    assert set(ERROR_TABLE) == set(ErrorCode)
    assert all(meaning for _, meaning in ERROR_TABLE.values())


def test_a_code_is_a_plain_number_on_the_wire() -> None:
    assert type(parse_error("why").to_wire()["code"]) is int


def test_a_version_that_is_no_string_is_named_as_it_came() -> None:
    data = unsupported_version(None, ("2026-07-28",)).to_wire()["data"]
    assert data == {"supported": ["2026-07-28"], "requested": None}


# -- errors of others ------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [0, 1, -1, -32000, -32002, 2**53])
def test_a_tool_fails_with_a_code_of_its_own(code: int) -> None:
    """LIFE.2: exactly that code, message and data; as a reply it is an application's error, so 200."""
    error = ErrorObject(code, "out of paint", {"colour": "red"})
    assert error.to_wire() == {"code": code, "message": "out of paint", "data": {"colour": "red"}}
    assert error.http_status == 200


@pytest.mark.parametrize("data", [0, False, "", [], {}], ids=repr)
def test_empty_data_is_data(data: Any) -> None:
    assert ErrorObject(1, "x", data).to_wire() == {"code": 1, "message": "x", "data": data}


def test_unknown_members_are_kept_and_hide_nothing() -> None:
    """WIRE.5."""
    error = ErrorObject(1, "x", extra={"later": {"a": 1}, "code": 2, "message": "y", "data": None})
    assert error.to_wire() == {"code": 1, "message": "x", "later": {"a": 1}, "data": None}
    assert ErrorObject(1, "x", extra={}).to_wire() == {"code": 1, "message": "x"}


def test_the_wire_object_is_fresh() -> None:
    error = invalid_params("why")
    error.to_wire()["message"] = "changed"
    assert error.to_wire()["message"] == "Invalid params: why"


def test_a_plain_number_has_the_status_of_its_code() -> None:
    assert ErrorObject(-32601, "x").http_status == 404


def test_neg5_a_capability_is_named_as_a_person_knows_it() -> None:
    """An extension by its own name, any other with what is wanted of it."""
    named = missing_capability({**TASKS, "roots": {}, "elicitation": {"form": {}, "url": {}}}).message
    assert named.endswith(": io.modelcontextprotocol/tasks, roots, elicitation (form, url)")


@pytest.mark.parametrize("make", [unknown_task, lambda: limit_reached("tasks"), missing_capability])
def test_errors_are_values(make: Callable[[], ErrorObject]) -> None:
    assert make() == make()


# -- exceptions --------------------------------------------------------------------------------------------


def test_what_a_codec_raises_says_what_to_answer() -> None:
    error = parse_error("why")
    raised = RemoteProtocolError(error, 7)
    assert (raised.error, raised.request_id, str(raised)) == (error, 7, "Parse error: why")
    assert RemoteProtocolError(error).request_id is None


def test_a_limit_says_which() -> None:
    error = invalid_request("too large")
    raised = LimitExceeded(error, "message_bytes")
    assert isinstance(raised, RemoteProtocolError)
    assert (raised.error, raised.limit, raised.request_id) == (error, "message_bytes", None)


def test_misuse_is_not_a_peer_s_doing() -> None:
    assert not issubclass(LocalProtocolError, RemoteProtocolError)
    assert not issubclass(RemoteProtocolError, LocalProtocolError)
