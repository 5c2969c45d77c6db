"""Busy days of a server, of one era and of both."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from mcp_tasks_proto import (
    CallAskedInput,
    HmacSealer,
    Limits,
    ServerEngine,
    ServerSettings,
    ShutdownStarted,
    StreamReady,
    TimePassed,
    ToolsChanged,
    WorkAskedInput,
    WorkCompleted,
    WorkProgressed,
    WorkStopped,
    WorkWithdrewInput,
)
from mcp_tasks_proto.legacy.server import DualEraServer, LegacyPolicy
from mcp_tasks_proto.testing import ServerHost, request
from tests.purity.writing_down import Begin
from tests.unit.legacy_world import LegacyClient, created, opened
from tests.unit.world import ACCEPTED, DONE, TOOLS, form

__all__ = ["server", "server_of_both_eras"]

TASKS: Final = [f"task-{number:02}-0123456789abcdefghij" for number in range(12)]
PRINCIPALS: Final = ("alice", "bob", None)
KEYS: Final = ("confirm", "again", "colour", "size")
SETTINGS: Final = ServerSettings(
    name="test",
    version="1",
    sealer=HmacSealer([b"k" * 32]),
    limits=Limits(ttl_ms=60_000, cancel_grace_ms=500),
)

UNDECLARED: Final[Mapping[str, Any]] = {
    "model": {
        "method": "sampling/createMessage",
        "params": {"messages": [], "maxTokens": 1, "tools": [], "includeContext": "thisServer"},
    },
    "roots": {"method": "roots/list"},
    "url": {
        "method": "elicitation/create",
        "params": {"mode": "url", "message": "Log in", "url": "https://example.com", "elicitationId": "1"},
    },
    "form": form(),
}
"""Questions that need every capability there is, with all of its parts."""


def asking(number: int, task_id: str, *keys: str) -> WorkAskedInput:
    """Return a worker's questions, each with a text of its own."""
    questions = {key: form(f"{key}?") for key in keys}
    return WorkAskedInput(task_id=task_id, token=f"a{number}", ask="1", requests=questions)


def server(begin: Begin) -> None:
    """Twelve tasks of three callers on nine streams, four questions each, many wishes to cancel."""
    host = ServerHost(engine=ServerEngine(settings=SETTINGS, tools=TOOLS))
    begin(host)
    host.ask("server/discover")
    host.ask("tools/list")
    begun = host.send(request("tools/call", {"name": "optional"}, capabilities={}))
    host.give(CallAskedInput(begun, UNDECLARED))
    for number, task_id in enumerate(TASKS):
        host.create_task(
            "optional", task_id=task_id, principal=PRINCIPALS[number % 3], capabilities={"elicitation": {}}
        )
    wanted = {"notifications": {"taskIds": TASKS, "toolsListChanged": True}}
    streams = [
        host.send(request("subscriptions/listen", wanted), principal=principal)
        for principal in PRINCIPALS
        for _ in range(3)
    ]
    for number, task_id in enumerate(TASKS):
        host.give(asking(number, task_id, *KEYS))
    for number, task_id in enumerate(TASKS):
        answers = dict.fromkeys(("size", "confirm", "unknown"), ACCEPTED)
        host.ask(
            "tasks/update", {"taskId": task_id, "inputResponses": answers}, principal=PRINCIPALS[number % 3]
        )
    host.give(WorkWithdrewInput(task_id=TASKS[10], token="w", ask="1"))
    for stream in streams:
        host.give(StreamReady(stream))
    for number, task_id in enumerate(TASKS[:8]):
        host.ask("tasks/cancel", {"taskId": task_id}, principal=PRINCIPALS[number % 3])
    host.give(WorkStopped(task_id=TASKS[0], token="s"))
    host.give(WorkCompleted(task_id=TASKS[1], token="c", result=DONE))
    host.give(WorkProgressed(task_id=TASKS[11], token="p", status_message="busy"))
    host.give(ToolsChanged(TOOLS[:1]))
    host.advance(1_000)
    host.give(ShutdownStarted())
    host.advance(120_000)


def server_of_both_eras(begin: Begin) -> None:
    """Six tasks whose results two of nine sessions wait for, and questions to both."""
    engine = DualEraServer(settings=SETTINGS, tools=TOOLS, policy=LegacyPolicy.SERVE)
    host = ServerHost(engine=engine)
    begin(host)
    host.give(TimePassed())
    clients = [
        opened(host, session=f"session-{name}-0123456789abcdef", principal="ann") for name in "abcdefgh"
    ]
    ann, again, *_ = clients
    bob = opened(host, session="bob", connection="pipe", principal="bob")
    unasked = {client.get(): client for client in clients}
    waiting = dict[str, LegacyClient]()
    for task_id in TASKS[:6]:
        created(ann, task_id=task_id, ttl=30_000)
        for client in (ann, again):
            waiting[client.request("tasks/result", {"taskId": task_id})] = client
    created(bob, task_id=TASKS[6])
    for number, task_id in enumerate(TASKS[:6]):
        host.give(asking(number, task_id, *KEYS))
    read_all(waiting)
    for task_id in TASKS[:2]:
        host.give(WorkWithdrewInput(task_id=task_id, token="w", ask="1"))
    ann.delete()
    for question in read_all(waiting):
        again.respond(question, ACCEPTED)
    again.ask("tasks/list")
    for task_id in TASKS[2:5]:
        again.ask("tasks/cancel", {"taskId": task_id})
    host.give(WorkCompleted(task_id=TASKS[5], token="c", result=DONE))
    host.give(ToolsChanged(TOOLS[:1]))
    read_all(unasked)
    host.advance(1_000)
    bob.hang_up()
    host.give(ShutdownStarted())
    host.advance(120_000)


def read_all(streams: Mapping[str, LegacyClient]) -> list[Any]:
    """Read all there is on some streams; return the questions that ever came on them."""
    return [question for exchange, client in streams.items() for question in client.questions(exchange)]
