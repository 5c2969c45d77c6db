"""A requester of both eras, and a server that says anything at all: nothing it says raises (REQ.6, LIM.3)."""

from __future__ import annotations

from typing import Any, Final

from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_tasks_proto.legacy.messages import SendLegacy, ServerAsked
from mcp_tasks_proto.requester import (
    HttpReply,
    KeepReference,
    NotificationReceived,
    RequesterLimits,
    RequestFailed,
    ResponseReceived,
)
from tests.unit.legacy_requester_world import (
    CAPABILITIES,
    LegacyHost,
    elicitation,
    initialized,
    legacy_task,
    make_dual,
    nested,
    related,
    tools,
)
from tests.unit.requester_world import ACCEPTED, DECLINED, DONE, TASK

ANYTHING: Final = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["", "t1", TASK, "working", "cancel"]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(["task", "taskId", "status", "tools", "_meta", "content", "name"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=6,
)
RESULTS: Final = st.sampled_from(
    [
        initialized(),
        initialized({}),
        tools(render="required"),
        tools(render=None) | {"nextCursor": "more"},
        nested(),
        DONE,
        related(),
        {**DONE, "isError": True},
        {"resultType": "complete", "supportedVersions": ["2026-07-28"]},
        *(
            legacy_task(status, at=at)
            for status in ("working", "input_required", "completed", "failed", "cancelled")
            for at in (0, 1)
        ),
    ]
)
ASKED: Final = st.sampled_from(
    [
        ("ping", {}),
        ("roots/list", {}),
        ("elicitation/create", elicitation()),
        ("elicitation/create", elicitation(task={"ttl": 500})),
        ("elicitation/create", related(elicitation())),
        ("elicitation/create", related(elicitation("Age?", task={}))),
        ("tasks/list", {}),
        ("tasks/get", {"taskId": "n1"}),
        ("tasks/result", {"taskId": "n1"}),
        ("tasks/cancel", {"taskId": "n1"}),
    ]
)
CODES: Final = st.sampled_from([-32601, -32602, -32603, -32022, -32020, 7])
STATUSES: Final = st.sampled_from([None, 200, 202, 400, 401, 404, 405, 500])
LIMITS: Final = RequesterLimits(
    ledger_keys=3, received_tasks=2, calls=6, tool_pages=2, stream_attempts=2, input_rounds=3
)


def reply_of(status: int | None, number: int) -> HttpReply | None:
    """Return what HTTP says beside a message."""
    return None if status is None else HttpReply(status=status, session=f"s-{number % 2}")


def in_flight(data: st.DataObject, host: LegacyHost) -> int | None:
    """Draw something that is in flight, if anything is."""
    return data.draw(st.sampled_from(sorted(host.in_flight))) if host.in_flight else None


def answer(data: st.DataObject, host: LegacyHost) -> None:
    """Answer something with what may or may not be an answer to it."""
    number = in_flight(data, host)
    if number is None:
        return
    http = reply_of(data.draw(STATUSES), number)
    match data.draw(st.integers(0, 4)):
        case 0:
            message = data.draw(ANYTHING)
        case 1:
            error = {"code": data.draw(CODES), "message": "no", "data": data.draw(ANYTHING)}
            message = {"jsonrpc": "2.0", "id": number, "error": error}
        case 2:
            message = {"jsonrpc": "2.0", "id": number, "result": data.draw(ANYTHING)}
        case _:
            message = {"jsonrpc": "2.0", "id": number, "result": fitting(data, host, number)}
    host.give(ResponseReceived(request=number, message=message, http=http))


def fitting(data: st.DataObject, host: LegacyHost, number: int) -> Any:
    """Return a result that a request may well have, or another's."""
    sent: Any = host.in_flight[number]
    method = None if sent.message is None else sent.message.get("method")
    if method == "initialize" and data.draw(st.booleans()):
        return initialized(CAPABILITIES)
    if method == "tools/list" and data.draw(st.booleans()):
        return tools(render="optional")
    return data.draw(RESULTS)


def break_off(data: st.DataObject, host: LegacyHost) -> None:
    """Break something off, perhaps so that it can be taken up again."""
    number = in_flight(data, host)
    if number is not None:
        event = data.draw(st.sampled_from([None, "e1", "e2"]))
        if not host.engine.http or not isinstance(host.in_flight[number], SendLegacy):
            event = None
        host.give(RequestFailed(number, "broken", data.draw(st.booleans()), last_event_id=event))


def say(data: st.DataObject, host: LegacyHost) -> None:
    """Have the server ask or say something."""
    stream = data.draw(st.sampled_from([0, *sorted(host.in_flight)]))
    if data.draw(st.booleans()):
        method, params = data.draw(ASKED)
        message_id = data.draw(st.integers(0, 3))
        message = {"jsonrpc": "2.0", "id": message_id, "method": method, "params": params}
        if data.draw(st.integers(0, 5)) == 0:
            message["params"] = data.draw(ANYTHING)
        new_id = data.draw(st.sampled_from(["n1", "n2", "n3"]))
        host.give_dual(ServerAsked(request=stream, message=message, new_id=new_id))
    else:
        method = data.draw(
            st.sampled_from(
                ["notifications/cancelled", "notifications/tools/list_changed", "notifications/progress"]
            )
        )
        params = {"requestId": data.draw(st.integers(0, 3))}
        host.give(NotificationReceived(stream, {"jsonrpc": "2.0", "method": method, "params": params}))


def want(data: st.DataObject, host: LegacyHost) -> None:
    """Have somebody here want something."""
    open_calls = sorted(key for key in host.begun if key not in host.outcomes)
    match data.draw(st.integers(0, 6)):
        case 0:
            host.begun.append(host.call())
        case 1:
            methods = ["tools/list", "server/discover", "tasks/cancel", "prompts/get"]
            method = data.draw(st.sampled_from(methods))
            host.begun.append(host.ask(method, {"taskId": TASK, "name": "a"}))
        case 2 if open_calls:
            host.cancel(data.draw(st.sampled_from(open_calls)), wait=data.draw(st.booleans()))
        case 3 if open_calls:
            host.abandon(data.draw(st.sampled_from(open_calls)))
        case 4 if host.of(KeepReference):
            host.begun.append(host.resume(host.of(KeepReference)[-1].reference))
        case 5:
            host.die()
        case _ if host.on_show:
            call, key = data.draw(st.sampled_from(sorted(host.on_show, key=str)))
            host.answer(call, key, data.draw(st.sampled_from([ACCEPTED, DECLINED])))


@settings(max_examples=200, deadline=None)
@given(data=st.data(), http=st.booleans(), era=st.sampled_from([None, "legacy"]))
def test_nothing_that_a_server_says_raises_and_every_call_ends(
    data: st.DataObject, http: bool, era: Any
) -> None:
    host = make_dual(http=http, era=era, limits=LIMITS)
    host.begun.append(host.call())
    for _ in range(data.draw(st.integers(5, 40))):
        match data.draw(st.integers(0, 9)):
            case 0 | 1:
                want(data, host)
            case 2:
                break_off(data, host)
            case 3 | 4:
                say(data, host)
            case 5:
                host.advance(data.draw(st.sampled_from([0, 20, 1_000, 60_000])))
            case 6:
                host.take_all()
            case _:
                answer(data, host)
    for call in host.begun:
        if call not in host.outcomes:
            host.abandon(call)
    host.close()
    assert set(host.outcomes) == set(host.begun)
    assert not host.on_show
    host.advance(LIMITS.received_ttl_ms * 2)
    assert not [sent for sent in host.in_flight.values() if getattr(sent, "verb", "POST") != "GET"]
