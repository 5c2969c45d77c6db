"""Peers that say anything at all: nothing that a caller or an upstream says makes the proxy raise (LIM.3)."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_tasks_proto import ExchangeClosed, Reply, StreamReady
from mcp_tasks_proto.proxy import (
    HandleCodec,
    HandleKey,
    ProxyLimits,
    SealedHandles,
    StoredHandles,
    UpstreamAnswered,
    UpstreamFailed,
    UpstreamNotified,
)
from mcp_tasks_proto.testing import ProxyHost, request
from tests.unit.proxy_world import FORMS, LATER, ToyAead, discover, make_proxy, task
from tests.unit.world import ACCEPTED, form

CODECS: list[HandleCodec] = [StoredHandles(), SealedHandles([HandleKey("a", ToyAead(b"k"))])]

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
ids = st.sampled_from(["up-1", "up-2"]) | anything
sound: dict[str, Any] = {
    "resultType": "task",
    **task(),
    "inputRequests": {"a": form()},
    "requestState": "state",
    "result": {"content": []},
    "error": {"code": -32603, "message": "no"},
    "notifications": {"taskIds": ["up-1"]},
    "_meta": {},
    "supportedVersions": ["2026-07-28"],
    "capabilities": {"tools": {}},
    "tools": [{"name": "render"}],
    "content": [],
}
statuses = st.sampled_from(["working", "input_required", "completed", "failed", "cancelled"])
results = st.builds(
    lambda names, task_id, status, kind, odd: {
        **{name: sound[name] for name in names},
        "taskId": task_id,
        "status": status,
        "lastUpdatedAt": LATER,
        "resultType": kind,
        **odd,
    },
    st.sets(st.sampled_from(sorted(sound))),
    ids,
    statuses,
    st.sampled_from(["task", "complete", "input_required"]) | anything,
    st.dictionaries(st.sampled_from(sorted(sound)), anything, max_size=1),
)
errors = st.fixed_dictionaries(
    {
        "code": st.sampled_from([-32601, -32602, -32603, -32021, -32022, -32003, 7]),
        "message": st.text(),
        "data": anything
        | st.just({"requiredCapabilities": {"extensions": {"io.modelcontextprotocol/tasks": {}}}}),
    }
)
notifications = st.sampled_from(
    [
        "notifications/tasks",
        "notifications/progress",
        "notifications/message",
        "notifications/tools/list_changed",
        "notifications/subscriptions/acknowledged",
    ]
)
methods = st.sampled_from(
    [
        "tools/call",
        "tasks/get",
        "tasks/update",
        "tasks/cancel",
        "subscriptions/listen",
        "prompts/get",
        "tools/list",
        "server/discover",
    ]
)


def handed_out(host: ProxyHost) -> list[str]:
    """Return the handles that callers have got."""
    results = [(reply.message or {}).get("result", {}) for reply in host.of(Reply)]
    return [result["taskId"] for result in results if "taskId" in result]


def caller_speaks(host: ProxyHost, data: st.DataObject) -> None:
    method = data.draw(methods)
    handles = handed_out(host)
    handle = data.draw(st.sampled_from(handles) if handles else st.text())
    wanted: dict[str, dict[str, Any]] = {
        "tools/call": {"name": "render", "arguments": {}},
        "tasks/update": {"taskId": handle, "inputResponses": {"a": ACCEPTED}},
        "subscriptions/listen": {"notifications": {"taskIds": [handle], "toolsListChanged": True}},
        "prompts/get": {"name": "p"},
    }
    params = dict(wanted.get(method, {"taskId": handle}))
    params |= data.draw(
        st.dictionaries(st.sampled_from(["requestState", "inputResponses", "x"]), anything, max_size=1)
    )
    message = request(method, params, tasks=data.draw(st.booleans()), capabilities=FORMS)
    host.send(message, principal=data.draw(st.sampled_from(["alice", "bob"])))


def upstream_speaks(host: ProxyHost, data: st.DataObject) -> None:
    if not host.in_flight:
        return
    name = data.draw(st.sampled_from(sorted(host.in_flight)))
    match data.draw(st.integers(0, 5)):
        case 0:
            host.give(UpstreamAnswered(request=name, message=data.draw(anything)))
        case 1 | 2:
            message = {"jsonrpc": "2.0", "id": name, "result": data.draw(results)}
            host.give(UpstreamAnswered(request=name, message=message))
        case 3:
            message = {"jsonrpc": "2.0", "id": name, "error": data.draw(errors)}
            host.give(UpstreamAnswered(request=name, message=message))
        case 4:
            params = data.draw(results)
            message = {"jsonrpc": "2.0", "method": data.draw(notifications), "params": params}
            host.give(UpstreamNotified(name, message))
        case _:
            host.give(UpstreamFailed(name, sent=data.draw(st.booleans())))


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_no_peer_makes_the_proxy_raise(data: st.DataObject) -> None:
    host = make_proxy(
        codec=data.draw(st.sampled_from(CODECS)),
        collapse=data.draw(st.booleans()),
        promote_after_ms=data.draw(st.sampled_from([None, 1000])),
        limits=ProxyLimits(attempts=2, upstream_requests=8, stream_tasks=2),
        node="node",
    )
    host.request("tools/list")
    discover(host, tasks=data.draw(st.booleans()))
    for _ in range(data.draw(st.integers(1, 20))):
        match data.draw(st.integers(0, 5)):
            case 0 | 1:
                caller_speaks(host, data)
            case 2 | 3:
                upstream_speaks(host, data)
            case 4:
                host.advance(data.draw(st.sampled_from([1, 500, 1000, 30_000, 400_000])))
            case _:
                exchange = data.draw(st.integers(1, 20))
                gone = data.draw(st.booleans())
                host.give(ExchangeClosed(exchange) if gone else StreamReady(exchange))
    counted: dict[Any, int] = {}
    for reply in host.of(Reply):
        counted[reply.exchange] = counted.get(reply.exchange, 0) + 1
    assert set(counted.values()) <= {1}, "a request is answered once"
