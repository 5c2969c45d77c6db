"""What is said to messages that are not let in, by whoever turns them away."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_tasks_proto.errors import invalid_request
from mcp_tasks_proto.exchanges import refusal_of
from mcp_tasks_proto.inputs import HttpHead, MessageReceived, SessionEnded
from mcp_tasks_proto.wire.jsonrpc import error_message

ERROR = invalid_request("not authorized")
REQUEST = {"jsonrpc": "2.0", "id": "a", "method": "tools/list"}
MALFORMED = {"jsonrpc": "2.0", "id": 7, "method": 7}
NOTIFICATION = {"jsonrpc": "2.0", "method": "notifications/cancelled"}
RESPONSE = {"jsonrpc": "2.0", "id": 1, "result": {}}


@pytest.mark.parametrize(
    ("message", "connection", "said"),
    [
        (REQUEST, None, error_message("a", ERROR)),
        (REQUEST, "stdio", error_message("a", ERROR)),
        (MALFORMED, "stdio", error_message(7, ERROR)),
        (NOTIFICATION, None, None),
        (NOTIFICATION, "stdio", None),
        (RESPONSE, None, error_message(None, ERROR)),
        (RESPONSE, "stdio", None),
    ],
)
def test_wire1_who_is_owed_nothing_gets_nothing(message: Any, connection: str | None, said: Any) -> None:
    assert refusal_of(MessageReceived(exchange=1, message=message, connection=connection), ERROR) == said


def test_leg2_a_request_without_a_message_is_told_as_well() -> None:
    ended = SessionEnded(exchange=1, http=HttpHead(headers={}, method="DELETE"))
    assert refusal_of(ended, ERROR) == error_message(None, ERROR)
