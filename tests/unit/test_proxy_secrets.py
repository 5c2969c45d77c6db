"""What the proxy must not tell: one answer for all denials, hostile ids, canaries (PRX.5, PRX.7, PRX.8)."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from mcp_tasks_proto import Reply, Send
from mcp_tasks_proto.history import entry_to_json
from mcp_tasks_proto.proxy import (
    Access,
    HandleCodec,
    HandleKey,
    LoadTask,
    Note,
    ProxyLimits,
    SealedHandles,
    SettingsChanged,
    StoredHandles,
    ToolProfile,
    Upstream,
    snapshot_to_json,
)
from mcp_tasks_proto.testing import ProxyHost
from mcp_tasks_proto.vocabulary import RELATED_TASK, SERVER_INFO
from mcp_tasks_proto.wire.http import encode_header_value
from mcp_tasks_proto.wire.jsonrpc import encode
from tests.unit.proxy_world import (
    LATER,
    ToyAead,
    ToySealer,
    ask,
    call,
    create,
    discover,
    get,
    handed_out,
    make_proxy,
    make_settings,
    methods,
    result,
    sent_up,
    task,
    view,
)
from tests.unit.world import ACCEPTED, form

CODECS: dict[str, HandleCodec] = {
    "stored": StoredHandles(),
    "sealed": SealedHandles([HandleKey("a", ToyAead(b"k"))]),
}
OTHER_KEY = SealedHandles([HandleKey("a", ToyAead(b"other"))])
METHODS = ("tasks/get", "tasks/update", "tasks/cancel")


@pytest.fixture(params=list(CODECS.values()), ids=list(CODECS))
def codec(request: pytest.FixtureRequest) -> HandleCodec:
    found: HandleCodec = request.param
    return found


# -- the oracle --------------------------------------------------------------------------------------------

Denial = Callable[[ProxyHost, str], tuple[str, dict[str, Any]]]
"""Makes a denial out of a task of Alice's: what to ask for, and how."""


def forged(host: ProxyHost, handle: str) -> tuple[str, dict[str, Any]]:
    """Well formed, and nobody's."""
    if handle.startswith("p1."):
        binding = host.engine.codec.open(handle)
        assert binding is not None
        return OTHER_KEY.issue(binding, bytes(32)), {}
    return "A" * 43, {}


def malformed(_: ProxyHost, handle: str) -> tuple[str, dict[str, Any]]:
    return handle + "!", {}


def expired(host: ProxyHost, handle: str) -> tuple[str, dict[str, Any]]:
    host.now += 700_000_000
    return handle, {}


def settings_changed(host: ProxyHost, **more: Any) -> None:
    host.give(SettingsChanged(make_settings(**more)))


def upstream_gone(host: ProxyHost, handle: str) -> tuple[str, dict[str, Any]]:
    host.give(SettingsChanged(make_settings(Upstream(name="other"))))
    return handle, {}


def withdrawn(host: ProxyHost, handle: str) -> tuple[str, dict[str, Any]]:
    settings_changed(host, profiles={"default": ToolProfile(tools=frozenset())})
    return handle, {}


DENIALS: dict[str, Denial] = {
    "forged": forged,
    "malformed": malformed,
    "expired": expired,
    "foreign": lambda _, handle: (handle, {"principal": "mallory"}),
    "nobody's": lambda _, handle: (handle, {"principal": None}),
    "upstream gone": upstream_gone,
}
READ_DENIALS: dict[str, Denial] = {
    "tool withdrawn": withdrawn,
    "another project": lambda _, handle: (handle, {"access": Access(project="film")}),
    "upstream hidden": lambda _, handle: (handle, {"access": Access(authorizations={})}),
    "authorization changed": lambda _, handle: (handle, {"access": Access(authorizations={"renderer": "x"})}),
}


@pytest.mark.parametrize("method", METHODS)
def test_prx_every_denial_answers_the_same_bytes_but_for_the_id(codec: HandleCodec, method: str) -> None:
    denials = dict(DENIALS) if method == "tasks/cancel" else {**DENIALS, **READ_DENIALS}
    answers = set()
    for number, denial in enumerate(denials.values()):
        host = make_proxy(codec=codec)
        handle, facts = denial(host, handed_out(host))
        before = len(host.effects)
        params = {"inputResponses": {"a": ACCEPTED}} if method == "tasks/update" else {}
        exchange = ask(host, method, handle, params=params, id=number, **facts)
        reply = host.reply_to(exchange)
        assert reply.pop("id") == number
        (effect,) = host.effects[before:]
        assert isinstance(effect, Reply)
        answers.add((encode(reply), effect.http_status))
    assert answers == {(b'{"jsonrpc":"2.0","error":{"code":-32602,"message":"Task not found"}}', 200)}


def test_prx_a_denial_costs_as_much_whatever_its_cause(codec: HandleCodec) -> None:
    """The timing class: what has the form of a stored handle is looked up, whoever's it is; a sealed one is
    not, be it forged or somebody else's. No denial asks the upstream."""
    costs = set()
    for name in ("forged", "foreign", "nobody's", "upstream gone"):
        host = make_proxy(codec=codec)
        handle, facts = DENIALS[name](host, handed_out(host))
        host.held = True
        sent = len(methods(host))
        ask(host, "tasks/get", handle, **facts)
        costs.add(tuple(type(one) for one in host.asked))
        assert len(methods(host)) == sent
    assert costs == {(LoadTask,) if codec.stored else ()}


def test_prx_a_listen_acknowledgement_tells_nothing(codec: HandleCodec) -> None:
    agreed = set()
    for name, denial in {**DENIALS, **READ_DENIALS}.items():
        host = make_proxy(codec=codec)
        handle, facts = denial(host, handed_out(host))
        params = {"notifications": {"taskIds": [handle]}}
        facts = {"principal": "alice", **facts}
        exchange = host.request("subscriptions/listen", params, id="s", **facts)
        agreed.add(encode({"sent": host.sent_on(exchange)}))
        assert "subscriptions/listen" not in methods(host), name
    assert len(agreed) == 1


# -- hostile ids -------------------------------------------------------------------------------------------

HOSTILE = [
    "x" * 4096,
    "é☃ \U0001f600",
    "+",
    "a b",
    "../../etc/passwd",
    "=?base64?aGk=?=",
    "\r\nX: y",
    "task",
    "null",
    "A" * 43,
    "p1.a.zzzz",
]


@pytest.mark.parametrize("hostile", HOSTILE, ids=[ascii(one)[:12] for one in HOSTILE])
def test_prx5_hostile_upstream_ids_come_back_to_their_upstream_exactly(
    codec: HandleCodec, hostile: str
) -> None:
    host = make_proxy(codec=codec)
    handle = handed_out(host, hostile)
    assert encode_header_value(handle) == handle
    assert hostile not in handle
    assert view(get(host, handle, task(task_id=hostile)))["taskId"] == handle
    assert sent_up(host, "tasks/get")[0]["taskId"] == hostile


@pytest.mark.parametrize("hostile", [*HOSTILE, "", None, 7, ["x"], {}], ids=lambda one: ascii(one)[:12])
@pytest.mark.parametrize("method", METHODS)
def test_prx5_hostile_handles_are_unknown(codec: HandleCodec, method: str, hostile: Any) -> None:
    host = make_proxy(codec=codec)
    exchange = host.request(method, {"taskId": hostile, "inputResponses": {}}, principal="alice")
    assert host.reply_to(exchange)["error"] == {"code": -32602, "message": "Task not found"}


def test_prx5_equal_ids_of_two_upstreams_stay_apart(codec: HandleCodec) -> None:
    host = make_proxy(Upstream(name="first"), Upstream(name="second"), codec=codec)
    handles = {}
    for name in ("first", "second"):
        exchange = host.request("tools/call", {"name": f"{name}__render"}, principal="alice")
        discover(host, upstream=name)
        host.answer("tools/call", create("same"))
        handles[name] = result(host.reply_to(exchange))["taskId"]
    assert len(set(handles.values())) == 2
    for name, handle in handles.items():
        exchange = ask(host, "tasks/get", handle)
        assert host.waiting("tasks/get").upstream == name
        host.answer("tasks/get", task("completed", "same", result={"from": name}))
        assert view(host.reply_to(exchange))["result"]["from"] == name


def test_lim3_a_sealed_handle_may_be_so_long() -> None:
    host = make_proxy(codec=CODECS["sealed"], limits=ProxyLimits(handle_chars=1024))
    exchange = call(host)
    host.answer("tools/call", create("x" * 2000))
    assert host.reply_to(exchange)["error"]["data"] == {"reason": "handle_chars"}
    assert sent_up(host, "tasks/cancel")[0]["taskId"] == "x" * 2000


# -- leak canaries -----------------------------------------------------------------------------------------

CANARIES = {
    "task id": "canary-task-8d1f",
    "second task id": "canary-task-77aa",
    "upstream name": "canary-upstream-name",
    "upstream identity": "canary-address.example",
    "authorization": "canary-authorization",
    "server name": "canary-server-name",
    "upstream state": "canary-upstream-state",
    "instructions": "canary-instructions",
    "error text": "canary-error-text",
}


def everything_told(host: ProxyHost) -> str:
    """Return all that callers, the ledger and the kept ends were told, as text."""
    frames: list[Any] = [one.message for one in host.effects if isinstance(one, (Reply, Send))]
    columns: list[Any] = [entry_to_json(entry) for entry in host.store.entries.values()]
    columns += [snapshot_to_json(kept) for kept in host.store.snapshots.values()]
    notes = [repr(one) for one in host.effects if isinstance(one, Note)]
    return json.dumps([frames, columns, notes])


def busy_day(codec: HandleCodec) -> ProxyHost:
    """Live through every flow there is, with an upstream that says all of its secrets wherever it can."""
    secret = CANARIES
    upstream = Upstream(name=secret["upstream name"], label="renderer", identity=secret["upstream identity"])
    access = Access(authorizations={upstream.name: secret["authorization"]}, project="film")
    facts: dict[str, Any] = {"access": access, "principal": "alice", "capabilities": {"elicitation": {}}}
    host = make_proxy(
        upstream, codec=codec, sealer=ToySealer(), collapse=True, promote_after_ms=5000, node="node"
    )
    host.reads = True
    meta = {
        SERVER_INFO: {"name": secret["server name"]},
        RELATED_TASK: {"taskId": secret["task id"]},
    }
    says = f"{secret['task id']} goes on"

    def seen(status: str, **more: Any) -> dict[str, Any]:
        return task(status, secret["task id"], statusMessage=says, _meta=meta, note=says, **more)

    listed = host.request("tools/list", **facts)
    host.answer(
        "server/discover",
        {
            "supportedVersions": ["2026-07-28"],
            "capabilities": {"tools": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}},
            "instructions": secret["instructions"],
            "ttlMs": 10_000_000,
            "_meta": meta,
        },
    )
    host.answer("tools/list", {"tools": [{"name": "render"}], "ttlMs": 10_000_000, "_meta": meta})
    assert result(host.reply_to(listed))["tools"] == [{"name": "render"}]
    host.request("server/discover", **facts)

    params = {"name": "render", "arguments": {}}
    made = host.request("tools/call", params, **facts)
    host.answer("tools/call", {**seen("working"), "resultType": "task"})
    handle = result(host.reply_to(made))["taskId"]
    stream = host.request("subscriptions/listen", {"notifications": {"taskIds": [handle]}}, id="s", **facts)
    host.answer("tasks/get", seen("working"))
    host.notify("subscriptions/listen", "notifications/tasks", seen("working", lastUpdatedAt=LATER))
    question = {"a": form(_meta=meta)}
    asking = seen("input_required", lastUpdatedAt=LATER, inputRequests=question)
    get(host, handle, asking, **facts)
    for method in ("tasks/get", "tasks/cancel"):
        ask(host, method, handle, **facts)
        host.refuse(method, {"code": -32603, "message": f"{secret['error text']} {secret['task id']}"})
    updated = ask(host, "tasks/update", handle, params={"inputResponses": {"a": ACCEPTED}}, **facts)
    host.answer("tasks/get", asking)
    host.refuse("tasks/update", {"code": -32602, "message": f"bad answer for {secret['task id']}"})
    assert handle in str(host.reply_to(updated))
    get(host, handle, seen("completed", lastUpdatedAt=LATER, result={"content": [], "_meta": meta}), **facts)
    assert host.sent_on(stream)

    failing = host.request("tools/call", params, **facts)
    host.answer("tools/call", create(secret["second task id"]))
    failed = result(host.reply_to(failing))["taskId"]
    broken = {"code": 7, "message": f"{secret['second task id']} broke", "data": [secret["second task id"]]}
    get(host, failed, task("failed", secret["second task id"], error=broken), **facts)

    asked = host.request("tools/call", params, **facts)
    state = {"requestState": secret["upstream state"], "inputRequests": question, "_meta": meta}
    host.answer("tools/call", {"resultType": "input_required", **state})
    assert result(host.reply_to(asked))["requestState"]

    plain = {**facts, "tasks": False}
    unasked = host.request("tools/call", params, **plain)
    host.answer("tools/call", create(secret["task id"]))
    assert "error" in host.reply_to(unasked)
    collapsed = host.request("tools/call", params, **plain)
    if any(sent.message["method"] == "server/discover" for sent in host.in_flight.values()):
        discover(host)
    needs: dict[str, Any] = {"requiredCapabilities": {"extensions": {"io.modelcontextprotocol/tasks": {}}}}
    host.refuse("tools/call", {"code": -32021, "message": "needs tasks", "data": needs})
    host.answer("tools/call", create(secret["task id"]))
    host.answer("tasks/get", asking)
    assert result(host.reply_to(collapsed))["inputRequests"]

    host.fail("tasks/cancel", sent=True)
    lost = host.request("tools/call", params, **facts)
    discover(host)
    host.fail("tools/call")
    assert "error" in host.reply_to(lost)
    return host


def test_prx_no_canary_gets_out(codec: HandleCodec) -> None:
    told = everything_told(busy_day(codec))
    assert {name for name, canary in CANARIES.items() if canary in told} == set()


def test_prx_the_canaries_were_there_to_be_told(codec: HandleCodec) -> None:
    """The check above can fail: all that is secret did come down, or went up."""
    host = busy_day(codec)
    up = repr([one for one in host.effects if not isinstance(one, (Reply, Send, Note))])
    bindings = repr(list(host.store.bindings.values()))
    for name in ("task id", "upstream name", "authorization"):
        assert CANARIES[name] in up
    if codec.stored:
        assert CANARIES["upstream identity"] in bindings
