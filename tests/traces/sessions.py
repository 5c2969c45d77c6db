"""A short life of each engine, in virtual time, as it is recorded for ``tests/traces/recordings``.

Each goes where an engine does most: tasks, questions, rounds with sealed states, listen streams,
cancellation, time that runs out, a peer that errs and a host that does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import pytest

from mcp_tasks_proto import (
    TASKS_EXTENSION,
    CallAskedInput,
    CallReturned,
    ExchangeClosed,
    Limits,
    LocalProtocolError,
    Saved,
    SaveFailed,
    ServerEngine,
    ShutdownStarted,
    TimePassed,
    ToolsChanged,
    WorkCheckpointed,
    WorkCompleted,
    WorkLost,
    WorkProgressed,
)
from mcp_tasks_proto.legacy.server import DualEraServer, LegacyPolicy
from mcp_tasks_proto.proxy import HandleKey, ProxyLimits, SealedHandles, SettingsChanged, Upstream
from mcp_tasks_proto.requester import HttpReply
from mcp_tasks_proto.testing import Recorder, ServerHost, request
from tests.unit import (
    dual_era_proxy_world,
    legacy_requester_world,
    legacy_world,
    proxy_world,
    requester_world,
)
from tests.unit.world import ACCEPTED, DONE, FORMS, OTHER, START, TASK, TOOLS, asked, form, head, make_engine

__all__ = ["SESSIONS", "live"]


def server(lines: list[str]) -> None:
    """A node of a server: two tasks with questions, a round before a task, a listener, a lost node."""
    made = make_engine(Limits(cancel_grace_ms=2_000, ttl_ms=60_000))
    host = ServerHost(
        engine=Recorder(ServerEngine(settings=made.settings, tools=TOOLS, node="n1"), lines.append)
    )
    host.give(TimePassed())
    host.ask("server/discover")
    call = request("tools/call", {"name": "optional", "arguments": {"frames": 3}}, capabilities=FORMS)
    begun = host.send(call, http=head(call), principal="ada")
    host.give(CallAskedInput(begun, {"confirm": form()}, {"step": 1}))
    state = host.reply_to(begun)["result"]["requestState"]
    again = {
        **call,
        "params": {**call["params"], "requestState": state, "inputResponses": {"confirm": ACCEPTED}},
    }
    host.give(CallReturned(host.send(again, principal="ada"), DONE))
    host.send({**again, "params": {**again["params"], "requestState": state[:-1]}}, principal="ada")
    host.create_task("optional", {"frames": 3}, task_id=TASK, principal="ada", capabilities=FORMS)
    listen = request("subscriptions/listen", {"notifications": {"taskIds": [TASK], "toolsListChanged": True}})
    stream = host.send(listen, principal="ada")
    host.give(asked("first", "where", "when"))
    host.ask("tasks/get", {"taskId": TASK}, principal="ada")
    host.ask("tasks/get", {"taskId": TASK}, principal="bob")
    host.ask("tasks/update", {"taskId": TASK, "inputResponses": {"where": ACCEPTED}}, principal="ada")
    host.advance(400)
    host.give(
        WorkCheckpointed(task_id=TASK, token=("run", 0, 1), value=[1, {"half": True}], received=["first"])
    )
    host.give(WorkProgressed(task_id=TASK, token=object(), status_message="Half of it"))
    host.ask("tasks/cancel", {"taskId": TASK}, principal="ada")
    host.advance(5_000)  # it does not stop by itself
    with pytest.raises(LocalProtocolError):
        host.give(Saved("of nothing"))
    host.create_task("required", task_id=OTHER, ttl_ms=None, principal="bob", connection="pipe")
    host.give(WorkCompleted(task_id=OTHER, token=None, result=DONE))
    host.give(WorkLost(OTHER, "n0"))
    host.give(ToolsChanged(TOOLS[:1]))
    host.give(ExchangeClosed(stream))
    host.send({"jsonrpc": "2.0", "id": None, "method": 7})
    host.advance(120_000)
    host.give(ShutdownStarted())


def server_of_both_eras(lines: list[str]) -> None:
    """Sessions of 2025-11-25: a task, its questions on the stream of its result, a stream of a GET."""
    made = make_engine()
    engine = DualEraServer(settings=made.settings, tools=TOOLS, policy=LegacyPolicy.SERVE)
    host = ServerHost(engine=Recorder(engine, lines.append), now=START)
    host.give(TimePassed())
    client = legacy_world.opened(host, principal="ada")
    stream = client.get()
    legacy_world.created(client, ttl=60_000)
    waiting = client.request("tasks/result", {"taskId": TASK})
    host.give(asked("first", "name"))
    (question,) = client.questions(waiting)
    client.respond(question, ACCEPTED)
    legacy_world.completed(client)
    client.ask("tasks/list")
    legacy_world.call(client)
    host.give(CallReturned(legacy_world.started(host).exchange, DONE))
    host.ask("tasks/get", {"taskId": TASK}, principal="ada")
    client.read(stream)
    client.delete()
    other = legacy_world.opened(host, session="s2", connection="pipe")
    other.hang_up()
    host.advance(120_000)
    host.give(ShutdownStarted())


def requester(lines: list[str]) -> None:
    """A client: a call with a round, a task that is listened to, one that is resumed and cannot be polled."""
    world = requester_world
    host = world.make_host(listen=True, mirror_arguments=True)
    host.engine = Recorder(host.engine, lines.append)
    plain = host.call(meta={"traceparent": "00-1"})
    host.reply(
        "tools/list", {"tools": [{"name": "render", "inputSchema": {"type": "object"}}], "ttlMs": 5_000}
    )
    host.reply("tools/call", world.asks("confirm", state="sealed"))
    host.answer(plain, "confirm", ACCEPTED)
    host.reply("tools/call", {"resultType": "complete", **DONE}, http=HttpReply(status=200))
    watched = world.working(host)
    host.advance(20)
    world.acknowledge(host, world.TASK)
    world.news(host, "input_required", at=1, inputRequests={"name": world.form()})
    host.answer(watched, "name", ACCEPTED)
    host.reply("tasks/update", {"resultType": "complete"})
    world.news(host, "completed", at=2, result=dict(DONE))
    resumed = host.resume({**host.references[watched], "taskId": world.OTHER, "keys": {}})
    host.refuse("tasks/get", -32603)
    host.advance(10_000)
    host.fail("tasks/get")
    host.advance(10_000)
    host.answer_http("tasks/get", 503, retry_after_ms=2_000)
    host.advance(10_000)
    host.cancel(resumed)
    with pytest.raises(LocalProtocolError):
        host.ask("tools/call")
    host.resume({"schema": 99})
    host.advance(60_000)


def requester_of_both_eras(lines: list[str]) -> None:
    """A client whose server is found to be of 2025-11-25: a session, a task, a question, a task made here."""
    world = legacy_requester_world
    host = world.make_dual()
    host.engine = Recorder(host.engine, lines.append)
    host.ask("tools/list")
    host.answer_http("tools/list", 400)
    host.greet()
    host.reply("tools/list", world.tools(render="optional"))
    call = host.call()
    host.reply("tools/call", world.nested())
    host.advance(1_000)
    host.reply("tasks/get", world.legacy_task("input_required", at=1))
    host.ask_client("elicitation/create", world.related(world.elicitation()), on="tasks/result")
    ((_, key),) = [one for one in host.on_show if one[0] == call]
    host.answer(call, key, ACCEPTED)
    host.take_all()
    host.ask_client(
        "elicitation/create", {**world.elicitation("Later?"), "task": {"ttl": 1_000}}, message_id=1
    )
    host.reply("tasks/result", world.related())
    host.close()
    host.advance(60_000)


def proxy(lines: list[str]) -> None:
    """A proxy with sealed handles: a task, one that is hidden in rounds, other settings, an end."""
    world = proxy_world
    host = world.make_proxy(
        codec=SealedHandles([HandleKey("k1", world.ToyAead(b"a key that nobody must see"))]),
        sealer=world.ToySealer(),
        collapse=True,
        limits=ProxyLimits(collapse_ms=1_500),
        node="n1",
    )
    host.engine = Recorder(host.engine, lines.append)
    handle = world.handed_out(host)
    world.get(host, handle, world.task())
    listen = {"notifications": {"taskIds": [handle]}}
    stream = host.request("subscriptions/listen", listen, principal="alice")
    host.answer("tasks/get", world.task())
    host.give(ExchangeClosed(stream))
    world.get(host, handle, principal="bob")
    world.get(host, handle[:-2])
    hidden = world.call(host, tasks=False, principal="alice")
    needs: Any = {"requiredCapabilities": {"extensions": {TASKS_EXTENSION: {}}}}
    host.refuse("tools/call", {"code": -32021, "message": "Missing", "data": needs})
    host.answer("tools/call", world.create("hidden-1"))
    host.answer("tasks/get", world.task(task_id="hidden-1"))
    host.advance(1_000)
    host.answer("tasks/get", world.task(task_id="hidden-1"))
    host.advance(500)
    host.answer("tasks/get", world.task(task_id="hidden-1"))
    round_ = world.result(host.reply_to(hidden))
    params = {"name": "render", "arguments": {"frames": 3}, "requestState": round_["requestState"]}
    host.give(SettingsChanged(world.make_settings(sealer=world.ToySealer(), collapse=True)))
    host.request("tools/call", params, tasks=False, principal="alice", capabilities=FORMS)
    host.answer("tasks/get", world.completed(task_id="hidden-1"))
    world.get(host, handle, world.completed())
    host.give(ShutdownStarted())
    host.advance(100_000)


def proxy_of_both_eras(lines: list[str]) -> None:
    """A proxy before an upstream of 2025-11-25, and a caller of that version before the proxy."""
    world = dual_era_proxy_world
    host = world.make_dual_era(Upstream(name="renderer", listen=False), bridging=True)
    host.engine = Recorder(host.engine, lines.append)
    host.initialize({"elicitation": {}}, principal="ada")
    host.turn_legacy(world.legacy_tool("render", "optional"))
    made = host.ask("tools/call", {"name": "render", "arguments": {}, "task": {}}, principal="ada")
    host.streams_open()
    host.answer("tools/call", {"task": world.legacy_task()})
    handle = host.reply_to(made)["result"]["task"]["taskId"]
    host.ask("tasks/get", {"taskId": handle}, id=3, principal="ada")
    host.answer("tasks/get", world.legacy_task("working"))
    host.ask("tasks/result", {"taskId": handle}, id=4, principal="ada")
    host.advance(1_000)
    host.answer("tasks/get", world.legacy_task("completed"))
    host.answer("tasks/result", dict(DONE))
    host.held = True
    host.ask("tools/call", {"name": "render", "arguments": {}, "task": {}}, id=5, principal="ada")
    host.answer("tools/call", {"task": world.legacy_task(task_id="old-8")})
    for one in list(host.asked):
        host.asked.remove(one)
        host.give(SaveFailed(one.token) if hasattr(one, "binding") else host.store.answer(one))
    host.head("DELETE", principal="ada")
    host.give(ShutdownStarted())
    host.advance(100_000)


SESSIONS: Final[Mapping[str, Callable[[list[str]], None]]] = {
    "server": server,
    "server-of-both-eras": server_of_both_eras,
    "requester": requester,
    "requester-of-both-eras": requester_of_both_eras,
    "proxy": proxy,
    "proxy-of-both-eras": proxy_of_both_eras,
}


def live(name: str) -> list[str]:
    """Live through a session, and return its recording."""
    lines: list[str] = []
    SESSIONS[name](lines)
    return lines
