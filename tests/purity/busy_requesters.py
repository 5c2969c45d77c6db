"""Busy days of a requester, of one era and of both."""

from __future__ import annotations

from typing import Any, Final

from mcp_tasks_proto.requester import CallWanted, RequesterLimits
from mcp_tasks_proto.testing import RequesterHost
from tests.purity.writing_down import Begin
from tests.unit import legacy_requester_world, requester_world
from tests.unit.requester_world import ACCEPTED, DECLINED, DONE, form

__all__ = ["requester", "requester_of_both_eras"]

TASKS: Final = tuple(f"task-{number}" for number in range(10))
KEYS: Final = ("confirm", "again", "colour", "size")
LISTEN: Final = "subscriptions/listen"
GET: Final = "tasks/get"
TEXTS: Final = ("One?", "Two?", "Three?", "Four?")
EVERYTHING: Final[dict[str, Any]] = {"elicitation": {}, "sampling": {}, "roots": {}}


def requester(begin: Begin) -> None:
    """Ten tasks on four streams that end at once, four questions each, many that are given up together."""
    world = requester_world
    limits = RequesterLimits(listen_streams=4, stream_tasks=3, cancel_attempts=2)
    host = world.make_host(limits, listen=True, mirror_arguments=True)
    begin(host)
    calls = [called(host, f"tool-{number}") for number in range(len(TASKS))]
    tools = [{"name": f"tool-{number}", "inputSchema": {"type": "object"}} for number in range(len(TASKS))]
    host.reply("tools/list", {"tools": tools, "ttlMs": 5_000})
    for task_id in TASKS:
        host.reply(min(host.waiting("tools/call")), world.handle(task_id=task_id))
    host.advance(20)
    for stream in host.waiting(LISTEN):
        listened = host.params_of(stream)["notifications"]["taskIds"]
        host.notify(stream, world.ACKNOWLEDGED, {"notifications": {"taskIds": listened[1:]}})
        for task_id in listened:
            host.notify(stream, world.TASKS, world.task("input_required", at=1, task_id=task_id, **asks()))
    for key in ("size", "confirm"):
        for call in calls[:6]:
            if (call, key) in host.on_show:
                host.answer(call, key, ACCEPTED)
    for update in host.waiting("tasks/update"):
        host.reply(update, {"resultType": "complete"})
    for stream in host.waiting(LISTEN):
        host.fail(stream)
    host.advance(10_000)
    for poll in host.waiting(GET):
        task_id = host.params_of(poll)["taskId"]
        host.reply(poll, world.got("input_required", at=2, task_id=task_id, **asks("colour", "new", "newer")))
    for call in calls[:3]:
        host.cancel(call, wait=call == calls[0])
    for cancellation in host.waiting("tasks/cancel"):
        host.fail(cancellation)
    for call in calls[3:5]:
        host.abandon(call)
    for call in calls[3:5]:
        host.resume(host.references[call])
    rounds = called(host, "tool-0")
    host.reply("tools/call", world.asks(*KEYS, state="sealed"))
    for key in reversed(KEYS):
        host.answer(rounds, key, DECLINED)
    unlike = {"model": world.sampling(), "roots": {"method": "roots/list"}, "form": form()}
    host.reply("tools/call", world.asks(requests=unlike))
    host.advance(120_000)
    for stream in host.waiting(LISTEN):
        host.refuse(stream, -32601)
    for poll in host.waiting(GET):
        host.reply(poll, world.completed(at=3, task_id=host.params_of(poll)["taskId"]))
    host.advance(600_000)


def called(host: RequesterHost, tool: str) -> Any:
    """Call a tool, by a name that is a text: such hosts there are too."""
    name = f"{tool}/{host.now}"
    host.give(CallWanted(call=name, tool=tool, deadline_ms=host.now + 300_000))
    return name


def asks(*keys: str) -> dict[str, Any]:
    """Return what a task asks that asks this, or all there is."""
    return {"inputRequests": {key: form(f"{key}?") for key in keys or KEYS}}


def requester_of_both_eras(begin: Begin) -> None:
    """Six tasks of a 2025-11-25 server, four questions each, a session that ends, four tasks made here."""
    world = legacy_requester_world
    host = world.make_dual(capabilities=EVERYTHING)
    begin(host)
    host.ask("tools/list")
    host.answer_http("tools/list", 400)
    host.greet()
    host.reply("tools/list", world.tools(render="optional", plain=None))
    calls = []
    for task_id in TASKS[:6]:
        calls.append(host.call())
        host.reply("tools/call", world.nested(task_id=task_id))
    plain = host.call("plain")
    for number, text in enumerate(TEXTS):
        host.ask_client("elicitation/create", world.elicitation(text), message_id=number, on="tools/call")
    stand(host, "input_required", at=1)
    question = 10
    for stream in host.waiting("tasks/result"):
        task_id = host.params_of(stream)["taskId"]
        for text in TEXTS:
            params = world.related(world.elicitation(text), task_id)
            host.ask_client("elicitation/create", params, message_id=question, on=stream)
            question += 1
    for number, text in enumerate(TEXTS):
        made = {**world.elicitation(text), "task": {"ttl": 5_000}}
        host.ask_client(
            "elicitation/create", made, message_id=f"made-{number}", on="tools/call", new_id=f"here-{number}"
        )
    stand(host, "input_required", at=2)
    for call, key in list(host.on_show):
        if call in (calls[1], plain):
            host.answer(call, key, ACCEPTED)
    host.take_all()
    asked = [key for call, key in host.on_show if call == calls[2]]
    answers = dict.fromkeys(asked, ACCEPTED)
    host.ask("tasks/update", {"taskId": TASKS[2], "inputResponses": answers})
    host.take_all()
    stand(host, "working", at=3)
    for call in calls[3:5]:
        host.cancel(call)
    host.answer_http("tasks/cancel", 404)
    host.greet(session="s-2")
    stand(host, "input_required", at=4)
    host.advance(10_000)
    stand(host, "completed", at=5)
    for stream in host.waiting("tasks/result"):
        host.reply(stream, world.related(DONE, host.params_of(stream)["taskId"]))
    host.die()
    host.close()
    host.advance(600_000)


def stand(host: legacy_requester_world.LegacyHost, status: str, *, at: int) -> None:
    """Wait for the next polls, and say to each that its task stands so."""
    host.advance(1_000)
    for poll in host.waiting(GET):
        task_id = host.params_of(poll)["taskId"]
        host.reply(poll, legacy_requester_world.legacy_task(status, task_id=task_id, at=at))
