"""Busy days of a server and of a proxy, printed: run by ``test_determinism.py`` under different hash seeds.

It goes where order could leak in: many tasks on one stream, several keys at once, several principals,
expiry of many at the same moment, an end with many streams open.
"""

from __future__ import annotations

from typing import Any

from mcp_tasks_proto import (
    MODERN_VERSION,
    TASKS_EXTENSION,
    HmacSealer,
    Limits,
    ServerEngine,
    ServerSettings,
    ShutdownStarted,
    TaskSupport,
    ToolDeclaration,
    WorkAskedInput,
    WorkCompleted,
    WorkProgressed,
    WorkStopped,
)
from mcp_tasks_proto.proxy import InputKind, ProxyEngine, ProxySettings, SettingsChanged, Upstream
from mcp_tasks_proto.testing.host import ServerHost
from mcp_tasks_proto.testing.messages import request
from mcp_tasks_proto.testing.proxy_host import ProxyHost

TASKS = [f"task-{number:02}-0123456789abcdefghij" for number in range(12)]
PRINCIPALS = ["alice", "bob", None]
FORM = {
    "method": "elicitation/create",
    "params": {"mode": "form", "message": "Go on?", "requestedSchema": {"type": "object", "properties": {}}},
}


def busy_day() -> ServerHost:
    """Live through it; return the host, which kept every effect."""
    settings = ServerSettings(
        name="test",
        version="1",
        sealer=HmacSealer([b"k" * 32]),
        limits=Limits(ttl_ms=60_000, cancel_grace_ms=500),
    )
    tools = [
        ToolDeclaration(
            name=(name := f"tool-{support.value}"), definition={"name": name, "inputSchema": {}}, task=support
        )
        for support in TaskSupport
    ]
    host = ServerHost(engine=ServerEngine(settings=settings, tools=tools))
    host.ask("server/discover")
    host.ask("tools/list")
    for number, task_id in enumerate(TASKS):
        host.create_task(
            "tool-optional",
            task_id=task_id,
            principal=PRINCIPALS[number % 3],
            capabilities={"elicitation": {}},
        )
    for principal in PRINCIPALS:
        listen = request(
            "subscriptions/listen", {"notifications": {"taskIds": TASKS, "toolsListChanged": True}}
        )
        host.send(listen, principal=principal)
    for number, task_id in enumerate(TASKS):
        questions = dict.fromkeys(("confirm", "again", "colour", "size"), FORM)
        host.give(WorkAskedInput(task_id=task_id, token=f"a{number}", ask="1", requests=questions))
    for number, task_id in enumerate(TASKS):
        answers = {name: {"action": "accept", "content": {}} for name in ("size", "confirm", "unknown")}
        host.ask(
            "tasks/update", {"taskId": task_id, "inputResponses": answers}, principal=PRINCIPALS[number % 3]
        )
    for number, task_id in enumerate(TASKS[:8]):
        host.ask("tasks/cancel", {"taskId": task_id}, principal=PRINCIPALS[number % 3])
    host.give(WorkStopped(task_id=TASKS[0], token="s"))
    host.give(WorkCompleted(task_id=TASKS[1], token="c", result={"content": []}))
    host.give(WorkProgressed(task_id=TASKS[11], token="p", status_message="busy"))
    host.advance(1_000)
    host.give(ShutdownStarted())
    host.advance(120_000)
    return host


def busy_proxy() -> ProxyHost:
    """Live through a day of a proxy before three upstreams; return the host, which kept every effect."""
    settings = ProxySettings(
        name="test",
        version="1",
        sealer=HmacSealer([b"k" * 32]),
        upstreams=tuple(Upstream(name=name) for name in ("c", "a", "b")),
        input_kinds=frozenset(InputKind),
        extensions=frozenset({"x", "y", "z"}),
    )
    host = ProxyHost(engine=ProxyEngine(settings=settings))
    everything: dict[str, Any] = {"tools": {}, "extensions": {TASKS_EXTENSION: {}, "x": {}, "y": {}, "z": {}}}
    cached = {"ttlMs": 10_000_000}
    host.request("tools/list")
    for name in ("b", "c", "a"):
        discovered = {"supportedVersions": [MODERN_VERSION], "capabilities": everything, **cached}
        host.answer("server/discover", discovered, upstream=name)
        listed = [{"name": f"tool-{number}"} for number in range(4)]
        host.answer("tools/list", {"tools": listed, **cached}, upstream=name)
    declared: dict[str, Any] = {
        "elicitation": {"form": {}, "url": {}},
        "sampling": {},
        "roots": {},
        "extensions": {"z": {}, "x": {}},
    }
    times = {"createdAt": "2023-11-14T22:13:20.000Z", "lastUpdatedAt": "2023-11-14T22:13:20.000Z"}
    handles = []
    for number, task_id in enumerate(TASKS):
        tool = f"{'abc'[number % 3]}__tool-1"
        exchange = host.request("tools/call", {"name": tool}, principal="alice", capabilities=declared)
        working = {"taskId": task_id, "status": "working", "ttlMs": None, **times}
        host.answer("tools/call", {"resultType": "task", **working})
        handles.append(host.reply_to(exchange)["result"]["taskId"])
    for principal in PRINCIPALS:
        wanted = {"notifications": {"taskIds": handles, "toolsListChanged": True}}
        host.request("subscriptions/listen", wanted, principal=principal)
    host.advance(1_000)  # the upstreams have had their time to agree
    for sent in [one for one in host.in_flight.values() if one.message["method"] == "tasks/get"]:
        task_id = sent.message["params"]["taskId"]
        working = {"taskId": task_id, "status": "working", "ttlMs": None, **times}
        host.answer("tasks/get", working)
    host.advance(100_000)
    host.give(SettingsChanged(settings))
    host.give(ShutdownStarted())
    host.advance(100_000)
    return host


if __name__ == "__main__":
    for effect in [*busy_day().effects, *busy_proxy().effects]:
        print(effect)
