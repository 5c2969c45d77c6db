"""One requester and what its server says: handles, views, questions, answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from mcp_tasks_proto.requester import (
    Outcome,
    RequesterEngine,
    RequesterLimits,
    RequesterSettings,
    Settle,
)
from mcp_tasks_proto.testing import RequesterHost

START: Final = 1_700_000_000_000
"""When every test begins, in Unix milliseconds."""

ENDPOINT: Final = "https://example.com/mcp"
TASK: Final = "task-one"
OTHER: Final = "task-two"

HINT: Final = 5_000
"""The poll interval that the server suggests unless a test says otherwise, in milliseconds."""

FORMS: Final[dict[str, Any]] = {"elicitation": {}}
"""Client capabilities with which forms may be asked."""
ACCEPTED: Final = {"action": "accept", "content": {"name": "Ada"}}
DECLINED: Final = {"action": "decline"}
DONE: Final = {"content": [{"type": "text", "text": "done"}]}

TASKS: Final = "notifications/tasks"
ACKNOWLEDGED: Final = "notifications/subscriptions/acknowledged"


def make_engine(limits: RequesterLimits | None = None, **settings: Any) -> RequesterEngine:
    """Return an engine that declares forms and does not listen, unless told otherwise."""
    chosen = {"capabilities": FORMS, "listen": False, "endpoint": ENDPOINT, **settings}
    return RequesterEngine(
        settings=RequesterSettings(name="test", version="1", limits=limits or RequesterLimits(), **chosen)
    )


def make_host(limits: RequesterLimits | None = None, *, now: int = START, **settings: Any) -> RequesterHost:
    """Return a host of such an engine."""
    return RequesterHost(engine=make_engine(limits, **settings), now=now)


def stamp(second: int) -> str:
    """Return the server's time so many seconds after its tasks begin."""
    return f"2023-11-14T22:{13 + second // 60:02}:{second % 60:02}.000Z"


def task(status: str = "working", *, at: int = 0, task_id: str = TASK, **more: Any) -> dict[str, Any]:
    """Return a task as it stands ``at`` that second. ``None`` leaves a member out; ``ttlMs`` stays."""
    members = {
        "taskId": task_id,
        "status": status,
        "createdAt": stamp(0),
        "lastUpdatedAt": stamp(at),
        "ttlMs": None,
        "pollIntervalMs": HINT,
        **more,
    }
    return {name: value for name, value in members.items() if value is not None or name == "ttlMs"}


def handle(status: str = "working", **more: Any) -> dict[str, Any]:
    """Return the result of a call that became a task."""
    return {"resultType": "task", **task(status, **more)}


def got(status: str = "working", **more: Any) -> dict[str, Any]:
    """Return the result of ``tasks/get``."""
    return {"resultType": "complete", **task(status, **more)}


def completed(result: Mapping[str, Any] = DONE, **more: Any) -> dict[str, Any]:
    """Return the result of ``tasks/get`` for a task that is done."""
    return got("completed", result={"resultType": "complete", **result}, **more)


def asking(*keys: str, **more: Any) -> dict[str, Any]:
    """Return the result of ``tasks/get`` for a task that asks a form for each key."""
    return got("input_required", inputRequests={key: form() for key in keys}, **more)


def form(message: str = "Your name?") -> dict[str, Any]:
    """Return a request for a form with one required field, ``name``."""
    schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    return {
        "method": "elicitation/create",
        "params": {"mode": "form", "message": message, "requestedSchema": schema},
    }


def sampling() -> dict[str, Any]:
    """Return a request for a model's words."""
    messages = [{"role": "user", "content": {"type": "text", "text": "Hello?"}}]
    return {"method": "sampling/createMessage", "params": {"messages": messages, "maxTokens": 10}}


def asks(*keys: str, state: Any = None, requests: Any = None, **more: Any) -> dict[str, Any]:
    """Return a result that asks for input before there is another (MRTR)."""
    result: dict[str, Any] = {"resultType": "input_required", **more}
    if keys or requests is not None:
        result["inputRequests"] = requests if requests is not None else {key: form() for key in keys}
    if state is not None:
        result["requestState"] = state
    return result


def working(host: RequesterHost, **facts: Any) -> int:
    """Make a call whose task goes on, and return the call."""
    call = host.call()
    host.reply(max(host.waiting("tools/call")), handle(**facts))
    return call


def polled(host: RequesterHost, result: Mapping[str, Any]) -> None:
    """Wait for the next poll of the only task, and answer it."""
    host.advance(until_poll(host))
    host.reply("tasks/get", result)


def until_poll(host: RequesterHost) -> int:
    """Return in how many milliseconds the next poll comes, when nothing else is due before."""
    assert host.deadline is not None
    return max(host.deadline - host.now, 0)


def parked(host: RequesterHost, *keys: str, **facts: Any) -> int:
    """Make a call whose task asks these questions, and return the call."""
    call = working(host, **facts)
    polled(host, asking(*(keys or ("confirm",)), at=1))
    return call


def acknowledge(host: RequesterHost, *task_ids: str) -> None:
    """Agree to bring news of these tasks on the only stream."""
    host.notify("subscriptions/listen", ACKNOWLEDGED, {"notifications": {"taskIds": list(task_ids)}})


def news(host: RequesterHost, status: str = "working", **more: Any) -> None:
    """Send a task on the only stream."""
    host.notify("subscriptions/listen", TASKS, task(status, **more))


def listening(host: RequesterHost, **facts: Any) -> int:
    """Make a call whose task has a stream that brings its news, and return the call."""
    call = working(host, **facts)
    host.advance(20)
    acknowledge(host, TASK)
    return call


def outcome(host: RequesterHost, call: int) -> Outcome:
    """Return how a call ended, which it must have; nothing is left of it."""
    assert call in host.outcomes, [type(effect).__name__ for effect in host.effects]
    return host.outcomes[call]


def at_rest(host: RequesterHost) -> None:
    """Check that an engine whose calls are over holds nothing and wants nothing."""
    assert not host.in_flight, host.in_flight
    assert not host.on_show
    assert host.deadline is None, host.deadline - host.now


def settled(effects: Any) -> list[Outcome]:
    """Return the outcomes among some effects."""
    return [effect.outcome for effect in effects if isinstance(effect, Settle)]
