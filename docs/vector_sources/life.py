"""LIFE, TTL: the table of the lifecycle, views, times, and how long a task can be read."""

from __future__ import annotations

from typing import Any, Final

from docs.vector_sources.making import Vector, decided, table, tasks_spec

STATUSES: Final = ("working", "input_required", "completed", "failed", "cancelled")

CELLS: Final = """
                          working         input_required  completed  failed   cancelled
work_progressed           stay            stay            ignore     ignore   ignore
input_asked               input_required  stay            reject     reject   reject
input_asked_after_cancel  reject          reject          reject     reject   reject
input_asked_again         stay            stay            reject     reject   reject
inputs_partly_answered    ignore          stay            ignore     ignore   ignore
inputs_fully_answered     ignore          working         ignore     ignore   ignore
nothing_answered          ignore          ignore          ignore     ignore   ignore
inputs_partly_withdrawn   ignore          stay            ignore     ignore   ignore
inputs_fully_withdrawn    ignore          working         ignore     ignore   ignore
cancel_requested          stay            stay            ignore     ignore   ignore
ttl_changed               stay            stay            stay       stay     stay
work_completed            completed       completed       ignore     ignore   ignore
work_failed               failed          failed          ignore     ignore   ignore
work_stopped              cancelled       cancelled       ignore     ignore   ignore
work_lost                 failed          failed          ignore     ignore   ignore
work_resumed              stay            stay            ignore     ignore   ignore
grace_elapsed             cancelled       cancelled       ignore     ignore   ignore
host_cancelled            cancelled       cancelled       reject     reject   reject
host_failed               failed          failed          reject     reject   reject
"""
"""What each fact does to a task in each status. A status: it goes there."""


def cells() -> list[tuple[str, str, Any, Any]]:
    """Return a row for each cell."""
    heading, *rows = CELLS.strip().splitlines()
    assert tuple(heading.split()) == STATUSES
    found = []
    for row in rows:
        trigger, *verdicts = row.split()
        for status, verdict in zip(STATUSES, verdicts, strict=True):
            goes = verdict in STATUSES
            expect = {"verdict": "goto", "status": verdict} if goes else {"verdict": verdict}
            says = f"{trigger} while {status}"
            found.append((f"{status}-{trigger}", says, {"status": status, "trigger": trigger}, expect))
    return found


TIMES: Final = [
    (
        "start",
        "with milliseconds, in UTC",
        {"unix_ms": 1_700_000_000_000},
        {"text": "2023-11-14T22:13:20.000Z"},
    ),
    ("milliseconds", "three digits", {"unix_ms": 1_700_000_000_007}, {"text": "2023-11-14T22:13:20.007Z"}),
    ("epoch", "the beginning", {"unix_ms": 0}, {"text": "1970-01-01T00:00:00.000Z"}),
    ("before-epoch", "before the beginning", {"unix_ms": -1}, {"text": "1969-12-31T23:59:59.999Z"}),
    ("leap-day", "a leap day", {"unix_ms": 1_709_164_800_000}, {"text": "2024-02-29T00:00:00.000Z"}),
    (
        "last",
        "the last moment that RFC 3339 can say",
        {"unix_ms": 253_402_300_799_999},
        {"text": "9999-12-31T23:59:59.999Z"},
    ),
]

# -- views -----------------------------------------------------------------------------------------------

FORM: Final[dict[str, Any]] = {
    "method": "elicitation/create",
    "params": {"mode": "form", "message": "Go on?", "requestedSchema": {"type": "object", "properties": {}}},
}
TASK: Final[dict[str, Any]] = {
    "task_id": "t-0123456789abcdef0123456789",
    "status": "working",
    "created_at_ms": 1_700_000_000_000,
    "last_updated_at_ms": 1_700_000_000_250,
    "ttl_ms": 60_000,
    "poll_interval_ms": 1000,
}
VIEW: Final[dict[str, Any]] = {
    "taskId": "t-0123456789abcdef0123456789",
    "status": "working",
    "createdAt": "2023-11-14T22:13:20.000Z",
    "lastUpdatedAt": "2023-11-14T22:13:20.250Z",
    "ttlMs": 60_000,
    "pollIntervalMs": 1000,
}
RESULT: Final[dict[str, Any]] = {"content": [{"type": "text", "text": "done"}]}
ERROR: Final[dict[str, Any]] = {"code": -32099, "message": "out of paper", "data": {"tray": 2}}


def stored(form: str, **changes: Any) -> dict[str, Any]:
    """Return what a view is made of."""
    return {"form": form, "task": {**TASK, **changes}}


def seen(**changes: Any) -> dict[str, Any]:
    """Return what is seen, ``status`` and so on changed; ``...`` leaves a member out."""
    members = {**VIEW, **changes}
    return {"view": {name: value for name, value in members.items() if value is not ...}}


VIEWS: Final = [
    ("working", "a working task", stored("get"), seen(resultType="complete")),
    (
        "message",
        "its message",
        stored("get", status_message="half done"),
        seen(resultType="complete", statusMessage="half done"),
    ),
    (
        "unlimited",
        "trap 15: null is said",
        stored("get", ttl_ms=None),
        seen(resultType="complete", ttlMs=None),
    ),
    (
        "huge-ttl",
        "trap 15: a huge lifetime is a number",
        stored("get", ttl_ms=2**53 - 1),
        seen(resultType="complete", ttlMs=2**53 - 1),
    ),
    (
        "no-hint",
        "a hint may be missing",
        stored("get", poll_interval_ms=None),
        seen(resultType="complete", pollIntervalMs=...),
    ),
    (
        "input-required",
        "outstanding requests, and only those",
        stored(
            "get",
            status="input_required",
            inputs=[
                {"key": "size", "request": FORM, "response": {"action": "decline"}},
                {"key": "confirm", "request": FORM},
                {"key": "old", "request": FORM, "withdrawn": True},
            ],
        ),
        seen(resultType="complete", status="input_required", inputRequests={"confirm": FORM}),
    ),
    (
        "completed",
        "the result says that it is complete",
        stored("get", status="completed", result=RESULT),
        seen(resultType="complete", status="completed", result={**RESULT, "resultType": "complete"}),
    ),
    (
        "completed-is-error",
        "a tool's own error is a result",
        stored("get", status="completed", result={**RESULT, "isError": True}),
        seen(
            resultType="complete",
            status="completed",
            result={**RESULT, "isError": True, "resultType": "complete"},
        ),
    ),
    (
        "failed",
        "the error, exactly, and a message",
        stored("get", status="failed", error=ERROR, status_message="it broke"),
        seen(resultType="complete", status="failed", error=ERROR, statusMessage="it broke"),
    ),
    (
        "failed-without-message",
        "a failed task always says something",
        stored("get", status="failed", error=ERROR),
        seen(resultType="complete", status="failed", error=ERROR, statusMessage="out of paper"),
    ),
    (
        "cancelled",
        "neither result nor error",
        stored("get", status="cancelled"),
        seen(resultType="complete", status="cancelled"),
    ),
    ("notification", "a notification has the same view, flat", stored("notification"), seen()),
    (
        "notification-completed",
        "with the result",
        stored("notification", status="completed", result=RESULT),
        seen(status="completed", result={**RESULT, "resultType": "complete"}),
    ),
]

CREATED: Final = [
    ("create", "flat, and said to be a task", stored("create"), seen(resultType="task")),
    (
        "create-message",
        "with its message",
        stored("create", status_message="queued"),
        seen(resultType="task", statusMessage="queued"),
    ),
    (
        "create-completed",
        "ended already, and without its payload",
        stored("create", status="completed", result=RESULT),
        seen(resultType="task", status="completed"),
    ),
    (
        "create-failed",
        "ended already, and without its payload",
        stored("create", status="failed", error=ERROR, status_message="it broke"),
        seen(resultType="task", status="failed", statusMessage="it broke"),
    ),
    (
        "create-input-required",
        "asking already, and without the requests",
        stored("create", status="input_required", inputs=[{"key": "confirm", "request": FORM}]),
        seen(resultType="task", status="input_required"),
    ),
]

EXPIRY: Final = [
    (
        word,
        says,
        {"created_at_ms": 1_700_000_000_000, "ttl_ms": ttl_ms, "now_ms": 1_700_000_000_000 + after},
        {"readable": readable},
    )
    for word, says, ttl_ms, after, readable in (
        ("new", "just made", 60_000, 0, True),
        ("last-moment", "never unreadable before its end", 60_000, 59_999, True),
        ("end", "unknown from its end on", 60_000, 60_000, False),
        ("after", "and for ever after", 60_000, 10**12, False),
        ("shortest", "one millisecond", 1, 0, True),
        ("shortest-end", "one millisecond", 1, 1, False),
        ("unlimited", "null has no end", None, 10**12, True),
        (
            "days-25",
            "25 days are more than 31 bits of milliseconds",
            25 * 86_400_000,
            25 * 86_400_000 - 1,
            True,
        ),
        (
            "days-25-end",
            "25 days are more than 31 bits of milliseconds",
            25 * 86_400_000,
            25 * 86_400_000,
            False,
        ),
        ("huge", "a huge one does not overflow", 2**53 - 1, 10**12, True),
    )
]


EXPIRED: Final = ("end", "after", "shortest-end", "days-25-end")
"""The specification lets a server keep a task for longer."""
SEEDS: Final = ("create-completed", "create-failed", "create-input-required")
"""It shows one whose payload comes with its creation."""


def vectors() -> list[Vector]:
    """Return all of them."""
    return [
        *table("transition", "LIFE.1", tasks_spec("task-status"), cells()),
        *table("timestamp", "LIFE.5", decided("LIFE.5"), TIMES),
        *table("task_view", "GET.1 LIFE.5 LIFE.7", tasks_spec("task-polling"), VIEWS),
        *table("readable", "TTL.1", tasks_spec("tasks-1"), EXPIRY, ours=EXPIRED),
        *table("task_view", "LIFE.3", tasks_spec("task-creation"), CREATED, ours=SEEDS),
    ]
