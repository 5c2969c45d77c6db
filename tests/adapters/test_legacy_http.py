"""2025-11-25 over HTTP, on both loops and under an ASGI server (LEG.2 to LEG.9)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from mcp_tasks_adapters.toolkit import Limits

from tests.adapters.http_harness import VERSION, call, passes, post, raw
from tests.adapters.http_harness import message as modern
from tests.adapters.legacy_harness import (
    HOSTS,
    Place,
    Session,
    event,
    initialize,
    message,
    place,
    session,
)

RELATED = "io.modelcontextprotocol/related-task"
NAME = {"action": "accept", "content": {"name": "Ada"}}


@pytest.fixture(scope="module", params=HOSTS)
def host(request: pytest.FixtureRequest) -> Iterator[Place]:
    with place(request.param) as found:
        yield found


@pytest.fixture
def client(host: Place) -> Iterator[Session]:
    with session(host.port) as opened:
        yield opened


def tools_call(name: str, *, id: int = 7, **params: object) -> dict[str, object]:  # noqa: A002
    return message("tools/call", {"name": name, **params}, id=id)


def task_of(client: Session, name: str, **arguments: object) -> str:
    """Call a tool as a task, and return the task's id."""
    answer = client.ask(tools_call(name, arguments=arguments, task={"ttl": 60_000})).json
    task_id: str = answer["result"]["task"]["taskId"]
    return task_id


# -- sessions --------------------------------------------------------------------------------------------


def test_leg2_a_session_from_its_beginning_to_its_end(host: Place) -> None:
    client = Session(host.port)
    result = client.open()
    assert result["protocolVersion"] == "2025-11-25"
    assert result["capabilities"]["tasks"] == {"cancel": {}, "requests": {"tools": {"call": {}}}}
    assert len(client.id) >= 22
    assert client.id.isascii()
    assert client.id.isprintable()
    assert client.result("ping") == {}
    assert client.ask(method="DELETE").status == 200
    for answer in (client.ask(message("ping", id=1)), client.ask(method="DELETE"), client.ask(method="GET")):
        assert answer.status == 404
    client.close()


def test_leg2_each_session_has_an_id_of_its_own(host: Place) -> None:
    with session(host.port) as one, session(host.port) as other:
        assert one.id != other.id
        one.ask(method="DELETE")
        assert other.result("ping") == {}


def test_leg2_without_a_session_a_request_is_refused(client: Session) -> None:
    answer = client.ask(message("ping", id=1), ("MCP-Protocol-Version", "2025-11-25"), session="")
    assert (answer.status, answer.json["error"]["code"]) == (400, -32600)
    assert client.ask(method="GET", session="").status == 405
    assert client.ask(method="DELETE", session="").status == 405
    assert client.ask(method="PUT").status == 405


def test_leg2_another_revision_is_refused_naming_what_is_served(client: Session) -> None:
    answer = client.ask(
        message("ping", id=1),
        ("Mcp-Session-Id", client.id),
        ("MCP-Protocol-Version", "2025-06-18"),
        session="",
    )
    assert answer.status == 400
    assert answer.json["error"]["data"] == {"supported": ["2026-07-28", "2025-11-25"]}


def test_leg2_a_get_that_takes_no_stream_is_refused(client: Session) -> None:
    connection = client.send(message("ping", id=1))
    assert connection.response().status == 200
    headers = [("Host", "localhost"), ("Accept", "application/json"), ("Mcp-Session-Id", client.id)]
    connection.send(raw(b"", headers, method="GET"))
    assert connection.response().status == 406


def test_http1_a_session_is_no_way_around_the_check_of_hosts(client: Session) -> None:
    answer = client.ask(None, ("Origin", "http://evil.example"), method="GET")
    assert answer.status == 403


# -- streams ---------------------------------------------------------------------------------------------


def test_leg2_a_get_tells_of_changed_tools(client: Session) -> None:
    stream = client.send(method="GET")
    status, headers = stream.head()
    assert (status, headers["content-type"]) == (200, "text/event-stream")
    client.ask(tools_call("grow", arguments={"name": f"tool-{client.id[:8]}"}))
    assert event(stream) == (None, message("notifications/tools/list_changed", {}))
    client.ask(method="DELETE")
    stream.end_of_stream()


def test_leg2_a_stream_that_was_lost_is_taken_up_again(host: Place, client: Session) -> None:
    meta = {"progressToken": "p"}
    lost = client.send(tools_call("count", arguments={"to": 2, "wait": True}, _meta=meta))
    lost.head()
    first, progress = event(lost)
    assert first is not None
    assert progress["params"] == {"progress": 0, "progressToken": "p"}
    assert passes(host.tools.started)
    lost.close()
    host.release()
    again = client.send(None, ("Last-Event-ID", first), method="GET")
    assert again.head()[0] == 200
    seen = [event(again)]
    while "result" not in seen[-1][1]:
        seen.append(event(again))
    again.end_of_stream()
    assert seen[-1][1]["id"] == 7
    ids = [first, *(name for name, _ in seen)]
    assert len(set(ids)) == len(ids)
    assert client.ask(None, ("Last-Event-ID", "nonsense"), method="GET").status == 400


def test_leg2_a_lost_connection_cancels_nothing(host: Place, client: Session) -> None:
    lost = client.send(tools_call("wait"))
    assert passes(host.tools.started)
    lost.close()
    assert client.result("ping") == {}
    assert not host.tools.cancelled.acquire(timeout=0)
    assert client.ask(message("notifications/cancelled", {"requestId": 7})).status == 202
    assert passes(host.tools.cancelled)


def test_leg2_the_end_of_a_session_fails_its_calls(host: Place, client: Session) -> None:
    waiting = client.send(tools_call("wait"))
    assert passes(host.tools.started)
    client.ask(method="DELETE")
    assert passes(host.tools.cancelled)
    failed = waiting.response()  # no 404, which would say that nothing was done
    assert (failed.status, failed.json["error"]["code"]) == (200, -32603)


# -- calls and tasks ---------------------------------------------------------------------------------------


def test_leg3_a_plain_call(client: Session) -> None:
    answer = client.ask(tools_call("echo", arguments={"text": "x"})).json
    assert answer["result"] == {"content": [{"type": "text", "text": "x"}]}
    refused = client.ask(tools_call("work"))
    assert (refused.status, refused.json["error"]["code"]) == (200, -32601)


def test_a_call_asks_on_its_stream(client: Session) -> None:
    stream = client.send(tools_call("ask"))
    stream.head()
    _, question = event(stream)
    assert question["method"] == "elicitation/create"
    assert client.ask({"jsonrpc": "2.0", "id": question["id"], "result": NAME}).status == 202
    _, answer = event(stream)
    assert answer["result"]["content"][0]["text"] == "Hello, Ada!"


def test_leg3_leg4_a_task_from_its_call_to_its_result(host: Place, client: Session) -> None:
    task_id = task_of(client, "work", ttl_ms=70_000)
    assert passes(host.tools.started)
    shown = client.result("tasks/get", {"taskId": task_id})
    assert (shown["status"], shown["ttl"]) == ("working", 70_000)
    waiting = client.send(message("tasks/result", {"taskId": task_id}, id=1))
    waiting.head()
    assert event(waiting)[1]["params"] == shown
    host.release()
    answer = event(waiting)[1]["result"]
    assert answer["content"][0]["text"] == "worked"
    assert answer["_meta"] == {RELATED: {"taskId": task_id}}
    assert client.result("tasks/get", {"taskId": task_id})["status"] == "completed"
    assert client.result("tasks/result", {"taskId": task_id}) == answer


def test_leg3_a_tool_that_answers_at_once_becomes_a_task_all_the_same(client: Session) -> None:
    task_id = task_of(client, "echo", text="x")
    assert client.result("tasks/get", {"taskId": task_id})["ttl"] == 60_000
    answer = client.ask(message("tasks/result", {"taskId": task_id}, id=1))
    found = answer.events[-1] if answer.headers["content-type"] == "text/event-stream" else answer.json
    assert found["result"]["content"][0]["text"] == "x"


def test_leg5_a_task_is_cancelled_at_once(host: Place, client: Session) -> None:
    task_id = task_of(client, "work")
    assert passes(host.tools.started)
    assert client.result("tasks/cancel", {"taskId": task_id})["status"] == "cancelled"
    assert passes(host.tools.cancelled)
    refused = client.ask(message("tasks/cancel", {"taskId": task_id}, id=1)).json
    assert refused["error"]["code"] == -32602


def test_leg8_a_task_asks_on_an_open_result_stream(client: Session) -> None:
    task_id = task_of(client, "ask")
    waiting = client.send(message("tasks/result", {"taskId": task_id}, id=1))
    waiting.head()
    _, news = event(waiting)
    while news.get("method") != "elicitation/create":
        _, news = event(waiting)
    assert news["params"]["_meta"] == {RELATED: {"taskId": task_id}}
    client.ask({"jsonrpc": "2.0", "id": news["id"], "result": NAME})
    while "result" not in news:
        _, news = event(waiting)
    assert news["result"]["content"][0]["text"] == "Hello, Ada!"


# -- both eras ---------------------------------------------------------------------------------------------


def test_leg9_both_eras_on_one_port(host: Place, client: Session) -> None:
    task_id = task_of(client, "work")
    assert passes(host.tools.started)
    other = client.send(None, session="", method="PUT")
    assert other.response().status == 405
    other.send(post(modern("tasks/get", {"taskId": task_id}), ("Mcp-Session-Id", "nonsense")))
    assert other.response().json["result"]["status"] == "working"
    other.send(post(call("echo", text="modern")))
    assert other.response().json["result"]["resultType"] == "complete"
    other.send(post(modern("initialize", {"protocolVersion": VERSION})))
    assert other.response().status == 404


@pytest.mark.parametrize("name", HOSTS)
def test_leg1_under_ignore_there_are_no_tasks(name: str) -> None:
    with place(name, legacy="ignore") as found, session(found.port) as client:
        assert "tasks" not in client.open()["capabilities"]
        answer = client.ask(tools_call("echo", arguments={"text": "x"}, task={})).json
        assert answer["result"] == {"content": [{"type": "text", "text": "x"}]}
        for method in ("tasks/get", "tasks/result", "tasks/list", "tasks/cancel"):
            assert client.ask(message(method, {"taskId": "x"}, id=1)).json["error"]["code"] == -32601


@pytest.mark.parametrize("name", HOSTS)
def test_neg9_a_server_that_refuses_names_what_it_speaks(name: str) -> None:
    with place(name, legacy="refuse") as found:
        client = Session(found.port)
        answer = client.ask(initialize())
        assert (answer.status, answer.json["error"]["data"]["supported"]) == (400, ["2026-07-28"])
        for method in ("GET", "DELETE"):
            assert client.ask(method=method, session="anything").status == 405
        client.close()


@pytest.mark.parametrize("name", HOSTS)
def test_lim3_sessions_that_are_idle_make_room(name: str) -> None:
    with place(name, limits=Limits(sessions=1, session_idle_ms=50)) as found:
        first = Session(found.port)
        first.open()
        later = Session(found.port)
        while (answer := later.ask(initialize())).status == 503:
            assert answer.json["error"]["data"] == {"reason": "sessions"}
        assert answer.status == 200
        assert first.ask(message("ping", id=1)).status == 404
        first.close()
        later.close()
