"""A busy day of one server engine, printed: run by ``test_determinism.py`` under different hash seeds.

It goes where order could leak in: many tasks on one stream, several keys at once, several principals,
expiry of many at the same moment, an end with many streams open.
"""

from __future__ import annotations

from mcp_tasks_proto import (
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
from mcp_tasks_proto.testing.host import ServerHost
from mcp_tasks_proto.testing.messages import request

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


if __name__ == "__main__":
    for effect in busy_day().effects:
        print(effect)
