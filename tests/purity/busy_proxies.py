"""Busy days of a proxy, of one era and of both."""

from __future__ import annotations

from typing import Any, Final

from mcp_tasks_proto import (
    MODERN_VERSION,
    TASKS_EXTENSION,
    HttpHead,
    Send,
    ShutdownStarted,
    StreamReady,
    StreamRequested,
)
from mcp_tasks_proto.legacy.messages import ServerAsked
from mcp_tasks_proto.legacy.proxy import DualEraProxy, UpstreamsClosing
from mcp_tasks_proto.proxy import (
    InputKind,
    ProxyEngine,
    ProxyLimits,
    SettingsChanged,
    Upstream,
    UpstreamAnswered,
)
from mcp_tasks_proto.testing import ProxyHost
from mcp_tasks_proto.wire.jsonrpc import request_message, result_message
from tests.purity.writing_down import Begin
from tests.unit.dual_era_proxy_world import DualEraHost, legacy_task, legacy_tool, session_headers
from tests.unit.proxy_world import DONE, START, create, make_settings, result, task
from tests.unit.world import ACCEPTED, form

__all__ = ["proxy", "proxy_of_both_eras"]

TASKS: Final = tuple(f"up-{number:02}" for number in range(12))
PRINCIPALS: Final = ("alice", "bob", None)
UPSTREAMS: Final = tuple(Upstream(name=name) for name in ("c", "a", "b"))
DECLARED: Final[dict[str, Any]] = {
    "elicitation": {"form": {}, "url": {}},
    "sampling": {},
    "roots": {},
    "extensions": {"z": {}, "x": {}},
}
GET: Final = "tasks/get"
QUESTIONS: Final = ("One?", "Two?", "Three?", "Four?")
DAY_MS: Final = 86_400_000
"""For as long ends are kept."""


def describe(host: ProxyHost, name: str) -> None:
    """Answer what a proxy wants to know of a modern upstream: it has everything, and four tools."""
    extensions: dict[str, Any] = {extension: {} for extension in (TASKS_EXTENSION, "x", "y", "z")}
    cached = {"ttlMs": 10_000_000}
    capabilities = {"tools": {}, "extensions": extensions}
    discovered = {"supportedVersions": [MODERN_VERSION], "capabilities": capabilities, **cached}
    host.answer("server/discover", discovered, upstream=name)
    listed = [{"name": f"tool-{number}"} for number in range(4)]
    host.answer("tools/list", {"tools": listed, **cached}, upstream=name)


def stand(host: ProxyHost, status: str, **more: Any) -> None:
    """Say to all polls of modern upstreams that their tasks stand so."""
    for sent in [one for one in host.in_flight.values() if one.message["method"] == GET]:
        host.answer(GET, task(status, sent.message["params"]["taskId"], **more))


def proxy(begin: Begin) -> None:
    """Twelve tasks of three upstreams on nine streams of three callers, and ends that nobody has read."""
    facts: dict[str, Any] = {
        "limits": ProxyLimits(purge_interval_ms=DAY_MS),
        "input_kinds": frozenset(InputKind),
        "extensions": frozenset({"x", "y", "z"}),
    }
    host = ProxyHost(engine=ProxyEngine(settings=make_settings(*UPSTREAMS, **facts)), now=START)
    begin(host)
    host.request("tools/list")
    for upstream in ("b", "c", "a"):
        describe(host, upstream)
    handles = []
    for number, task_id in enumerate(TASKS):
        name = f"{'abc'[number % 3]}__tool-1"
        exchange = host.request("tools/call", {"name": name}, principal="alice", capabilities=DECLARED)
        host.answer("tools/call", create(task_id))
        handles.append(result(host.reply_to(exchange))["taskId"])
    wanted = {"notifications": {"taskIds": handles, "toolsListChanged": True}}
    streams = [
        host.request("subscriptions/listen", wanted, principal=principal)
        for principal in PRINCIPALS
        for _ in range(3)
    ]
    host.advance(1_000)  # the upstreams have had their time to agree
    stand(host, "working")
    for stream in streams:
        host.give(StreamReady(stream))
    host.advance(1_000)
    stand(host, "completed", result=dict(DONE))
    for handle in handles[:6]:
        host.request("tasks/cancel", {"taskId": handle}, principal="alice")
    deleted = frozenset({"p", "q", "r"})
    host.give(SettingsChanged(make_settings(*UPSTREAMS[1:], deleted_projects=deleted, **facts)))
    host.advance(DAY_MS)
    host.give(ShutdownStarted())
    host.advance(100_000)


def proxy_of_both_eras(begin: Begin) -> None:
    """Nine sessions, in two of which results are waited for, before two legacy upstreams and a modern one."""
    settings = make_settings(*UPSTREAMS, bridging=True)
    host = DualEraHost(engine=DualEraProxy(settings=settings, node="node-1"), now=START)
    begin(host)
    host.reads = True
    callers: list[dict[str, Any]] = [
        {"session": f"session-{number}", "principal": "alice"} for number in range(1, 9)
    ]
    for _ in callers:
        host.initialize({"elicitation": {}}, principal="alice")
    host.initialize({"elicitation": {}}, principal="alice", connection="pipe")
    for upstream in ("c", "b"):
        host.turn_legacy(*(legacy_tool(f"tool-{n}", "optional") for n in range(4)), upstream=upstream)
    describe(host, "a")
    for caller in callers:
        http = HttpHead(headers=session_headers(caller["session"]), method="GET")
        host.give(StreamRequested(exchange=f"unasked in {caller['session']}", http=http, principal="alice"))
    host.ask("tools/list", **callers[0])
    handles = []
    for number, task_id in enumerate(TASKS[:9]):
        upstream = "abc"[number % 3]
        called = {"name": f"{upstream}__tool-1", "arguments": {}, "task": {}}
        made = host.ask("tools/call", called, id=f"call-{number}", **callers[0])
        host.streams_open()
        handed: dict[str, Any] = (
            create(task_id) if upstream == "a" else {"task": legacy_task(task_id=task_id)}
        )
        host.answer("tools/call", handed)
        handles.append(result(host.reply_to(made))["task"]["taskId"])
    for caller in callers[:2]:
        for handle in handles:
            host.ask("tasks/result", {"taskId": handle}, id=f"result of {handle}", **caller)
    settle(host, "working")
    host.ask("tasks/list", id="list", **callers[0])
    settle(host, "input_required")
    for sent in [one for one in host.in_flight.values() if one.message["method"] == "tasks/result"]:
        for text in QUESTIONS:
            related = {"_meta": {"io.modelcontextprotocol/related-task": sent.message["params"]}}
            params = {**form(text)["params"], **related}
            asked = request_message(f"{text} {sent.request}", "elicitation/create", params)
            host.give(ServerAsked(request=sent.request, message=asked, new_id="t" * 30))
    settle(host, "input_required")
    questions = [one.message["id"] for one in host.of(Send) if "id" in one.message][-2:]
    for question in questions:
        answer = {"jsonrpc": "2.0", "id": question, "result": ACCEPTED}
        host.arrive(answer, **callers[0])
    for handle in handles[:5]:
        host.ask("tasks/cancel", {"taskId": handle}, id=f"cancel {handle}", **callers[1])
    host.head("DELETE", principal="alice")
    settle(host, "working")
    host.give(SettingsChanged(make_settings(*UPSTREAMS[:2], bridging=True)))
    host.advance(10_000)
    settle(host, "completed")
    host.give(UpstreamsClosing())
    host.give(ShutdownStarted())
    host.advance(100_000)


def settle(host: DualEraHost, status: str) -> None:
    """Wait for the next polls, and say to each that its task stands so, in the words of its upstream."""
    host.advance(2_000)
    for sent in [one for one in host.in_flight.values() if one.message["method"] == GET]:
        task_id = sent.message["params"]["taskId"]
        view = legacy_task(status, task_id)
        if sent.upstream == "a":
            asks = {"inputRequests": {text: form(text) for text in QUESTIONS}}
            view = task(status, task_id, **(asks if status == "input_required" else {}))
        answer = result_message(sent.request, view)
        host.give(UpstreamAnswered(request=sent.request, message=answer))
