"""Checks of how long a task is there (TTL)."""

from __future__ import annotations

from typing import Any, Final

from mcp_tasks_proto.testing.kit.acts import Script
from mcp_tasks_proto.testing.kit.checks import Answer, Check, Need, Strength, check
from mcp_tasks_proto.testing.kit.desk import Desk, Role, task_of
from mcp_tasks_proto.testing.kit.judging import demand, named_views, refused, seen

__all__ = ["CHECKS", "WATCHES"]

TASKS: Final = (Need.MODERN, Need.TASKS)
POLLING: Final = "Tasks extension: Task Polling, Response"
LATE_MS: Final = 1_500
"""So much later than its time a task is looked for: clocks of servers differ a little, and so do networks."""


@check(
    "TTL.1",
    strength=Strength.CHOICE,
    needs=TASKS,
    asks="A task whose createdAt + ttlMs has passed is unknown: -32602.",
    source=f"{POLLING} (a server may keep it for longer)",
)
def an_expired_task_is_unknown(desk: Desk) -> Script[None]:
    made = yield from desk.create(Role.EXPIRING)
    ttl_ms = (made.result or {}).get("ttlMs")
    short = isinstance(ttl_ms, int) and ttl_ms <= desk.settings.task_ms
    seen(short, "the task lives longer than anybody waits here")
    yield from desk.pause((ttl_ms or 0) + LATE_MS)
    refused((yield from desk.get(str(task_of(made)))), -32602)


@check(
    "TTL.1",
    strength=Strength.MUST,
    asks="No task is unknown before createdAt + ttlMs.",
    source=f"{POLLING}; Tasks extension: Tasks (ttlMs)",
)
def no_task_goes_before_its_time(desk: Desk) -> None:
    known: dict[str, tuple[Answer, Any]] = {}
    for answer, view, task_id in named_views(desk):
        made, _ = known.get(task_id, (answer, None))
        known[task_id] = made, view.get("ttlMs")
    made_here = {task_id for task_id, (made, _) in known.items() if made.post.method == "tools/call"}
    for answer in desk.log:
        own = answer.post.method == "tasks/get" and answer.post.era == "modern" and answer.post.caller == 0
        task_id = str(answer.post.params.get("taskId"))
        if own and task_id in made_here and answer.code == -32602:
            made, ttl_ms = known[task_id]
            lived_ms = answer.at_ms - made.sent_ms  # at most: the answer may have taken its time
            expired = isinstance(ttl_ms, int) and lived_ms >= ttl_ms - LATE_MS
            demand(expired, f"a task was unknown after {lived_ms} ms; its ttlMs is {ttl_ms}", made, answer)


CHECKS: Final[tuple[Check, ...]] = (an_expired_task_is_unknown,)
WATCHES: Final[tuple[Check, ...]] = (no_task_goes_before_its_time,)
