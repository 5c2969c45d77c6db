"""Checks of listen streams (SUB)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from mcp_tasks_proto.testing.kit.acts import Script
from mcp_tasks_proto.testing.kit.checks import Answer, Broken, Check, Need, Strength, Unseen, check
from mcp_tasks_proto.testing.kit.desk import TERMINAL, Desk, Role, Stream, status_of, task_of
from mcp_tasks_proto.testing.kit.judging import demand, differing, object_of, seen, view_of
from mcp_tasks_proto.vocabulary import SUBSCRIPTION_ID

__all__ = ["CHECKS", "WATCHES", "agreed"]

LISTEN: Final = (Need.MODERN, Need.LISTEN)
TASKS: Final = (*LISTEN, Need.TASKS)
ACKNOWLEDGED: Final = "notifications/subscriptions/acknowledged"
TASK_NEWS: Final = "notifications/tasks"
NO_TASK: Final = "kit-no-such-task-0123456789abcdef"
SUBSCRIPTIONS: Final = "MCP 2026-07-28, Subscriptions"
NOTIFICATIONS: Final = "Tasks extension: Task Status Notifications"


def _listen(desk: Desk, *task_ids: str, **options: Any) -> Script[tuple[Stream, Any]]:
    """Open a stream for tasks; return it, and the first message on it."""
    wanted = {"notifications": {"taskIds": list(task_ids)}}
    stream = yield from desk.opened(desk.request("subscriptions/listen", wanted, **options))
    return stream, (yield from desk.next_message(stream))


def agreed(message: Any) -> list[Any]:
    """Return the task ids of an acknowledgement."""
    taken = object_of(object_of(object_of(message).get("params")).get("notifications")).get("taskIds")
    return taken if isinstance(taken, list) else []


@check(
    "SUB.1",
    strength=Strength.MUST,
    needs=LISTEN,
    asks="The acknowledgement comes first, and names the subscription by the id of its request, of the same "
    "type.",
    source=f"{SUBSCRIPTIONS}: Acknowledgment, Receiving Notifications",
)
def the_acknowledgement_comes_first(desk: Desk) -> Script[None]:
    for id_ in (desk.new_id(), f"kit-{desk.new_id()}"):
        wanted = {"notifications": {"toolsListChanged": True}}
        stream = yield from desk.opened(desk.request("subscriptions/listen", wanted, id=id_))
        message = object_of((yield from desk.next_message(stream)))
        answer = yield from desk.closed(stream)
        demand(message.get("method") == ACKNOWLEDGED, "the first message is no acknowledgement", answer)
        named = object_of(object_of(message.get("params")).get("_meta")).get(SUBSCRIPTION_ID)
        same = named == id_ and type(named) is type(id_)
        demand(same, "it does not name the subscription by the id of its request", answer)


@check(
    "SUB.1",
    strength=Strength.MUST,
    needs=TASKS,
    asks="The acknowledgement lists the tasks that will be told of; one that there is not is left out.",
    source=f"{NOTIFICATIONS}; {SUBSCRIPTIONS}: Acknowledgment",
)
def unknown_tasks_are_left_out(desk: Desk) -> Script[None]:
    made = yield from desk.create(Role.SLOW, Role.ASKING, Role.COMPLETING)
    task_id = str(task_of(made))
    stream, message = yield from _listen(desk, NO_TASK, task_id)
    answer = yield from desk.closed(stream)
    demand(object_of(message).get("method") == ACKNOWLEDGED, "there is no acknowledgement", answer)
    demand(NO_TASK not in agreed(message), "it lists a task that there is not", answer)
    seen(task_id in agreed(message), "the server tells of no tasks")


@check(
    "SUB.1",
    strength=Strength.MUST,
    needs=LISTEN,
    asks="Kinds of notifications that nobody knows are left out of the acknowledgement.",
    source=f"{SUBSCRIPTIONS}: Acknowledgment",
)
def unknown_filters_are_left_out(desk: Desk) -> Script[None]:
    post = desk.request("subscriptions/listen", {"notifications": {"kitChanged": True}})
    stream = yield from desk.opened(post)
    message = object_of((yield from desk.next_message(stream)))
    answer = yield from desk.closed(stream)
    demand(message.get("method") == ACKNOWLEDGED, "there is no acknowledgement", answer)
    taken = object_of(object_of(message.get("params")).get("notifications"))
    demand("kitChanged" not in taken, "it lists a kind that there is not", answer)


@check(
    "SUB.2",
    strength=Strength.CHOICE,
    needs=TASKS,
    asks="After the acknowledgement each task is shown once as it stands, so that nothing is missed in "
    "between.",
    source=f"{NOTIFICATIONS} (nothing is said of a first notification)",
)
def a_snapshot_comes_first(desk: Desk) -> Script[None]:
    made = yield from desk.create(Role.SLOW, Role.ASKING)
    task_id = str(task_of(made))
    stream, first = yield from _listen(desk, task_id)
    seen(task_id in agreed(first), "the server tells of no tasks")
    message = object_of((yield from desk.next_message(stream, desk.settings.look_ms)))
    answer = yield from desk.closed(stream)
    shown = object_of(message.get("params"))
    fits = message.get("method") == TASK_NEWS and shown.get("taskId") == task_id
    demand(fits, "the task is not shown after the acknowledgement", answer)


@check(
    "SUB.2",
    "SUB.3",
    strength=Strength.MUST,
    needs=TASKS,
    asks="The end of a task is told, in full: as tasks/get shows it. Nothing is told of it afterwards.",
    source=NOTIFICATIONS,
)
def the_end_is_told_in_full(desk: Desk) -> Script[None]:
    made = yield from desk.create(Role.COMPLETING, Role.ERRING, Role.FAILING)
    task_id = str(task_of(made))
    stream, first = yield from _listen(desk, task_id)
    seen(task_id in agreed(first), "the server tells of no tasks")
    begun = yield from desk.get(task_id)
    told: Mapping[str, Any] = {}
    until = desk.now_ms + desk.settings.task_ms
    while status_of(told) not in TERMINAL and desk.now_ms < until and not stream.over:
        message = object_of((yield from desk.next_message(stream, until - desk.now_ms)))
        told = object_of(message.get("params"))
    yield from desk.next_message(stream, desk.settings.quiet_ms)
    got = yield from desk.get(task_id)
    answer = yield from desk.closed(stream)
    if status_of(told) not in TERMINAL:
        seen(status_of(view_of(begun)) not in TERMINAL, "the task had ended before anybody listened")
        demand(status_of(view_of(got)) not in TERMINAL, "the task ended, and that was not told", answer, got)
        raise Unseen("the task takes too long")
    last = object_of(answer.messages[-1])
    demand(object_of(last.get("params")) == told, "something was told after the end", answer)
    changed = differing(_lasting(told), _lasting(view_of(got)))
    demand(not changed, f"what was told is not what tasks/get shows: {changed}", answer, got)


MOVING: Final = frozenset({"resultType", "_meta", "ttlMs", "pollIntervalMs", "lastUpdatedAt"})
"""What may be another thing a moment later, or does not belong to the task."""


def _lasting(view: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in view.items() if name not in MOVING}


@check(
    "SUB.4",
    "CAN.7",
    strength=Strength.MUST,
    needs=TASKS,
    asks="Whoever stops listening stops listening, and the task goes on.",
    source=f"{SUBSCRIPTIONS}: Cancellation; {NOTIFICATIONS}",
)
def hanging_up_leaves_the_task(desk: Desk) -> Script[None]:
    made = yield from desk.create(Role.SLOW, Role.ASKING)
    task_id = str(task_of(made))
    stream, first = yield from _listen(desk, task_id)
    yield from desk.closed(stream)
    seen(task_id in agreed(first), "the server tells of no tasks")
    yield from desk.pause(desk.settings.quiet_ms)
    after = yield from desk.get(task_id)
    demand(status_of(view_of(after, made)) != "cancelled", "the task was cancelled", made, after)


@check(
    "SUB.4",
    strength=Strength.MUST,
    needs=(*LISTEN, Need.STDIO),
    asks="On stdio a stream ends with notifications/cancelled for its request, and nothing more comes on it.",
    source=f"{SUBSCRIPTIONS}: Cancellation; MCP 2026-07-28, stdio: Cancellation",
)
def a_stream_is_cancelled(desk: Desk) -> Script[None]:
    made = yield from desk.create(Role.SLOW, Role.ASKING)
    task_id = str(task_of(made))
    stream, first = yield from _listen(desk, task_id)
    seen(task_id in agreed(first), "the server tells of no tasks")
    params = {"requestId": stream.post.message["id"]}
    yield from desk.told(desk.post({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}))
    while (yield from desk.next_message(stream, desk.settings.quiet_ms)) is not None:
        pass  # what was on its way
    before = len(stream.messages)
    yield from desk.cancel(task_id)
    last = yield from desk.watch(task_id, *TERMINAL)
    yield from desk.next_message(stream, desk.settings.quiet_ms)
    answer = yield from desk.closed(stream)
    demand(len(answer.messages) == before, "something came on a stream that was cancelled", answer)
    seen(last is not None, "the task did not change, so that there was nothing to tell")


@check(
    "SUB.1",
    strength=Strength.MUST,
    asks="Everything on a listen stream names its subscription in _meta.",
    source=f"{SUBSCRIPTIONS}: Receiving Notifications; MCP 2026-07-28, Overview: _meta",
)
def all_of_a_stream_is_named(desk: Desk) -> None:
    for answer, message in _on_streams(desk):
        body = object_of(message.get("params", message.get("result")))
        named = object_of(body.get("_meta")).get(SUBSCRIPTION_ID)
        demand(named == answer.post.message["id"], "a message does not name its subscription", answer)


@check(
    "SUB.3",
    strength=Strength.MUST,
    asks="On a listen stream there are no notifications of progress, nor log messages, nor anything that "
    "was not asked for.",
    source=f"{NOTIFICATIONS}; {SUBSCRIPTIONS}: Opening a Stream",
)
def only_what_was_asked_for(desk: Desk) -> None:
    for answer, message in _on_streams(desk):
        asked = object_of(answer.post.params.get("notifications"))
        allowed = {ACKNOWLEDGED: True, TASK_NEWS: "taskIds" in asked}
        allowed["notifications/tools/list_changed"] = "toolsListChanged" in asked
        if "method" in message:
            method = str(message["method"])
            demand(allowed.get(method), f"there came {method}", answer)


@check(
    "SUB.3",
    strength=Strength.MUST,
    asks="notifications/tasks carry the task itself as params: taskId and status are there.",
    source=NOTIFICATIONS,
)
def news_of_tasks_are_flat(desk: Desk) -> None:
    news = [one for one in _on_streams(desk) if one[1].get("method") == TASK_NEWS]
    seen(news, "no notification of a task was seen")
    for answer, message in news:
        told = object_of(message.get("params"))
        demand(
            isinstance(told.get("taskId"), str) and status_of(told),
            "a task is not told as it should be",
            answer,
        )


def _on_streams(desk: Desk) -> list[tuple[Answer, Mapping[str, Any]]]:
    """Return all that was said on listen streams which were agreed to."""
    found = []
    for answer in desk.log:
        if (
            answer.post.method == "subscriptions/listen"
            and answer.post.era == "modern"
            and answer.error is None
        ):
            for message in answer.messages:
                if not isinstance(message, Mapping):
                    raise Broken("there came something that is no message", answer)
                found.append((answer, message))
    seen(found, "there was no listen stream")
    return found


CHECKS: Final[tuple[Check, ...]] = (
    the_acknowledgement_comes_first,
    unknown_tasks_are_left_out,
    unknown_filters_are_left_out,
    a_snapshot_comes_first,
    the_end_is_told_in_full,
    hanging_up_leaves_the_task,
    a_stream_is_cancelled,
)
WATCHES: Final[tuple[Check, ...]] = (
    all_of_a_stream_is_named,
    only_what_was_asked_for,
    news_of_tasks_are_flat,
)
