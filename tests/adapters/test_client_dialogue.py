"""What is said with a server on stdio, without I/O: who an answer is for, and what was sent (STD.1)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from mcp_tasks_adapters.stdio_client import StdioDialogue

from mcp_tasks_proto.limits import Limits
from mcp_tasks_proto.requester import NotificationReceived, RequestFailed, ResponseReceived, SendRequest
from mcp_tasks_proto.wire.jsonrpc import notification_message, request_message


def ask(dialogue: StdioDialogue, name: int, method: str = "tools/call", **meta: Any) -> None:
    params = {"_meta": meta}
    dialogue.ask(SendRequest(request=name, message=request_message(name, method, params)))


def asked(*methods: str) -> StdioDialogue:
    """Return a dialogue in which these have been sent, named 1, 2, 3 and so on."""
    dialogue = StdioDialogue(Limits())
    for name, method in enumerate(methods, start=1):
        ask(dialogue, name, method)
        assert dialogue.take_output()
    return dialogue


def line(message: Any) -> bytes:
    return json.dumps(message).encode() + b"\n"


def result(name: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": name, "result": {}}


def test_messages_leave_one_a_line_in_order() -> None:
    dialogue = StdioDialogue(Limits())
    ask(dialogue, 1)
    ask(dialogue, 2)
    assert dialogue.has_output
    assert [json.loads(dialogue.take_output())["id"] for _ in range(2)] == [1, 2]
    assert not dialogue.has_output
    assert dialogue.take_output() == b""


def test_answers_find_their_requests_once() -> None:
    dialogue = asked("a", "b")
    assert dialogue.receive(line(result(2)) + line(result(1)) + line(result(1))) == [
        ResponseReceived(request=2, message=result(2)),
        ResponseReceived(request=1, message=result(1)),
    ]


def test_ids_keep_their_types() -> None:
    """WIRE.3."""
    for stranger in ("1", 1.0, True, None, 3):
        assert asked("a").receive(line(result(stranger))) == []


def test_an_error_without_an_id_is_nobodys() -> None:
    error = {"jsonrpc": "2.0", "error": {"code": -32700, "message": "what?"}}
    assert asked("a").receive(line(error)) == []


def test_notifications_of_a_subscription_find_its_listen_request() -> None:
    """SUB.1: there may be several on the channel."""
    dialogue = asked("subscriptions/listen", "subscriptions/listen")
    for name in (1, 2):
        meta = {"io.modelcontextprotocol/subscriptionId": name}
        news = notification_message("notifications/tasks", {"_meta": meta})
        assert dialogue.receive(line(news)) == [NotificationReceived(name, news)]
    strangers: list[Any] = [3, "1", True, None, [1]]
    for stranger in strangers:
        meta = {"io.modelcontextprotocol/subscriptionId": stranger}
        assert dialogue.receive(line(notification_message("notifications/tasks", {"_meta": meta}))) == []


def test_progress_finds_its_request_by_its_token() -> None:
    dialogue = StdioDialogue(Limits())
    ask(dialogue, 1, progressToken="p")
    ask(dialogue, 2, progressToken=7)
    ask(dialogue, 3)
    for token, name in (("p", 1), (7, 2)):
        progress = notification_message("notifications/progress", {"progressToken": token})
        assert dialogue.receive(line(progress)) == [NotificationReceived(name, progress)]
    strangers: list[Any] = ["7", None, []]
    for stranger in strangers:
        progress = notification_message("notifications/progress", {"progressToken": stranger})
        assert dialogue.receive(line(progress)) == []


def test_a_log_message_is_the_only_calls_or_nobodys() -> None:
    note = notification_message("notifications/message", {"data": 1})
    assert asked("tasks/get", "tools/call").receive(line(note)) == [NotificationReceived(2, note)]
    assert asked("tools/call", "tools/call").receive(line(note)) == []
    assert asked("tasks/get").receive(line(note)) == []


def test_a_server_may_end_a_listen_stream_and_nothing_else() -> None:
    """SUB.4: with a notification, which its result follows or not."""
    dialogue = asked("subscriptions/listen", "tools/call")
    for name in (1, 2, "1", None):
        dialogue_facts = dialogue.receive(
            line(notification_message("notifications/cancelled", {"requestId": name}))
        )
        # What else it takes back can only be a request of its own, as 2025-11-25 has them.
        kind = RequestFailed if name == 1 else NotificationReceived
        assert [(type(fact), fact.request) for fact in dialogue_facts] == [(kind, 1 if name == 1 else 0)]
    assert dialogue.receive(line(result(1))) == []
    assert len(dialogue.receive(line(result(2)))) == 1


def test_what_was_not_written_is_dropped_without_a_word() -> None:
    dialogue = StdioDialogue(Limits())
    ask(dialogue, 1)
    assert dialogue.drop(1) is None
    assert not dialogue.has_output


def test_what_was_written_is_cancelled_by_a_message() -> None:
    dialogue = asked("tools/call")
    message = dialogue.drop(1)
    assert message == notification_message("notifications/cancelled", {"requestId": 1})
    assert json.loads(dialogue.take_output()) == message
    assert dialogue.drop(1) is None
    assert dialogue.receive(line(result(1))) == []


def test_when_the_server_is_gone_what_it_was_sent_fails_and_the_rest_waits() -> None:
    dialogue = asked("a", "b")
    dialogue.drop(2)
    ask(dialogue, 3)
    dialogue.receive(b'{"half of a')
    assert dialogue.lost("it ended") == [RequestFailed(1, "it ended", sent=True)]
    assert json.loads(dialogue.take_output())["id"] == 3  # and nobody is told of what was cancelled
    assert not dialogue.has_output
    assert len(dialogue.receive(line(result(3)))) == 1


def test_without_a_server_what_waits_fails_and_was_not_sent() -> None:
    dialogue = StdioDialogue(Limits())
    ask(dialogue, 1)
    assert dialogue.refuse("no such command") == [RequestFailed(1, "no such command", sent=False)]
    assert not dialogue.has_output


def test_an_over_long_line_belongs_to_the_only_one_that_waits() -> None:
    small = StdioDialogue(Limits(message_bytes=200))
    for name, method in enumerate(("subscriptions/listen", "tools/call"), start=1):
        ask(small, name, method)
        small.take_output()
    ask(small, 3)  # not written: it cannot be for this one
    [fact] = small.receive(b"x" * 1000 + b"\n")
    assert isinstance(fact, RequestFailed)
    assert (fact.request, "Limits.message_bytes" in fact.reason) == (2, True)
    small.take_output()
    ask(small, 4)
    small.take_output()
    assert small.receive(b"x" * 1000 + b"\n") == []  # it could be for either
    assert len(small.receive(line(result(3)) + line(result(4)))) == 2


def test_lim3_the_log_has_so_many_complaints_of_a_server(caplog: pytest.LogCaptureFixture) -> None:
    dialogue = asked("a")
    assert dialogue.receive(b"no message\n" * 1000) == []
    assert len(caplog.records) == 17
    assert caplog.messages[-1] == "no more is said of what this server writes"
    assert dialogue.receive(line(result(1))) == [ResponseReceived(request=1, message=result(1))]


def test_std1_what_was_not_written_yet_cannot_be_answered() -> None:
    """A server may guess ids; what it guessed is asked all the same, and answered once."""
    dialogue = StdioDialogue(Limits())
    ask(dialogue, 1)
    ask(dialogue, 2, "subscriptions/listen")
    guesses = [result(1), result(2), notification_message("notifications/cancelled", {"requestId": 2})]
    dialogue.receive(b"".join(map(line, guesses)))
    assert [json.loads(dialogue.take_output())["id"] for _ in range(2)] == [1, 2]
    assert dialogue.receive(line(result(1))) == [ResponseReceived(request=1, message=result(1))]
