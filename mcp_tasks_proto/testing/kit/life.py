"""Checks of what a task is, and what becomes of it (LIFE)."""

from __future__ import annotations

from collections.abc import Mapping
from re import ASCII
from re import compile as pattern
from typing import Any, Final

from mcp_tasks_proto.testing.kit.acts import Script
from mcp_tasks_proto.testing.kit.checks import Answer, Check, Need, Strength, check
from mcp_tasks_proto.testing.kit.desk import TERMINAL, Desk, Role, status_of, task_of
from mcp_tasks_proto.testing.kit.judging import (
    carried_out,
    demand,
    described,
    differing,
    named_views,
    object_of,
    result_of,
    seen,
    view_of,
    views,
)
from mcp_tasks_proto.vocabulary import RELATED_TASK

__all__ = ["CHECKS", "WATCHES"]

TASKS: Final = (Need.MODERN, Need.TASKS)
STATUSES: Final = TERMINAL | {"working", "input_required"}
PAYLOADS: Final[Mapping[str, str]] = {
    "completed": "result",
    "failed": "error",
    "input_required": "inputRequests",
}
"""What a task of a status shows beside what all tasks show."""
TASK: Final = "Tasks extension: Tasks"
STATUS: Final = "Tasks extension: Task Status"
POLLING: Final = "Tasks extension: Task Polling"
EXECUTION_ERRORS: Final = "Tasks extension: Task Execution Errors"

_TIME: Final = r"\d\d:\d\d(:\d\d)?([.,]\d+)?([Zz]|[+-]\d\d(:?\d\d)?)?"
_BASIC_TIME: Final = r"\d\d\d\d(\d\d)?([.,]\d+)?([Zz]|[+-]\d\d(\d\d)?)?"
ISO_8601: Final = pattern(rf"\d{{4}}-\d\d-\d\d[Tt]{_TIME}|\d{{8}}[Tt]{_BASIC_TIME}", ASCII)
"""A date and a time of day, of any precision, in the extended or the basic format."""
UTC_MILLISECONDS: Final = pattern(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
HEADER_SAFE: Final = pattern(r"[!-~]+")
HEXADECIMAL: Final = pattern(r"[0-9a-fA-F-]+")


# -- lives ---------------------------------------------------------------------------------------------------


@check(
    "LIFE.4",
    strength=Strength.MUST,
    needs=TASKS,
    asks="tasks/get finds a task at once when the call that made it has been answered.",
    source="Tasks extension: Task Creation",
)
def a_task_is_there_at_once(desk: Desk) -> Script[None]:
    made = yield from desk.create(Role.COMPLETING, Role.SLOW, Role.ASKING, Role.ERRING, Role.FAILING)
    view_of((yield from desk.get(str(task_of(made)))), made)


@check(
    "LIFE.2",
    strength=Strength.MUST,
    needs=TASKS,
    asks="A task that completes shows its result, as the call would have given it.",
    source=f"{POLLING}: Response 3",
)
def a_task_completes(desk: Desk) -> Script[None]:
    made = yield from desk.create(Role.COMPLETING)
    last = yield from desk.ended(str(task_of(made)))
    result = view_of(last).get("result")
    demand(view_of(last).get("status") == "completed", "the task did not complete", last)
    demand(isinstance(result, dict), "there is no result", last)
    demand(
        isinstance(object_of(result).get("content"), list), "the result has no content, as a tool's has", last
    )


@check(
    "LIFE.2",
    strength=Strength.MUST,
    needs=TASKS,
    asks="What a tool says with isError is a result: the task is completed, never failed.",
    source=EXECUTION_ERRORS,
)
def a_tool_error_is_a_result(desk: Desk) -> Script[None]:
    made = yield from desk.create(Role.ERRING)
    last = yield from desk.ended(str(task_of(made)))
    demand(view_of(last).get("status") == "completed", "the task is not completed", last)
    demand(object_of(view_of(last).get("result")).get("isError") is True, "the result has no isError", last)


@check(
    "LIFE.2",
    strength=Strength.MUST,
    needs=TASKS,
    asks="A task that fails shows the JSON-RPC error: an integer code and a message.",
    source=f"{EXECUTION_ERRORS}; {POLLING}: Response 5",
)
def a_task_fails(desk: Desk) -> Script[None]:
    made = yield from desk.create(Role.FAILING)
    last = yield from desk.ended(str(task_of(made)))
    demand(view_of(last).get("status") == "failed", "the task did not fail", last)
    error = object_of(view_of(last).get("error"))
    fits = type(error.get("code")) is int and isinstance(error.get("message"), str)
    demand(fits, "the error has no integer code, or no message", last)


@check(
    "LIFE.2",
    strength=Strength.SHOULD,
    needs=TASKS,
    asks="A failed task has a statusMessage that says what went wrong.",
    source=EXECUTION_ERRORS,
)
def a_failed_task_says_why(desk: Desk) -> Script[None]:
    made = yield from desk.create(Role.FAILING)
    last = yield from desk.ended(str(task_of(made)))
    message = view_of(last).get("statusMessage")
    demand(isinstance(message, str) and message, "there is no statusMessage", last)


@check(
    "LIFE.7",
    strength=Strength.CHOICE,
    needs=TASKS,
    asks="The result within a completed task says resultType complete, and nothing of a related task.",
    source=f"{EXECUTION_ERRORS} (exactly what the request would have returned)",
)
def the_result_within(desk: Desk) -> Script[None]:
    made = yield from desk.create(Role.COMPLETING)
    last = yield from desk.ended(str(task_of(made)))
    result = object_of(view_of(last).get("result"))
    demand(result.get("resultType") == "complete", "the result within has no resultType complete", last)
    demand(RELATED_TASK not in object_of(result.get("_meta")), f"it has {RELATED_TASK} in _meta", last)


@check(
    "LIFE.1",
    strength=Strength.MUST,
    needs=TASKS,
    asks="A task that has ended keeps its status, whatever is done to it.",
    source=f"{STATUS}: State Diagram",
)
def an_end_is_an_end(desk: Desk) -> Script[None]:
    made = yield from desk.create(Role.COMPLETING, Role.ERRING, Role.FAILING)
    task_id = str(task_of(made))
    ended = yield from desk.ended(task_id)
    yield from desk.update(task_id, {"kit": {"action": "accept", "content": {}}})
    yield from desk.cancel(task_id)
    yield from desk.pause(desk.settings.quiet_ms)
    after = yield from desk.get(task_id)
    same = view_of(after, ended).get("status") == view_of(ended).get("status")
    demand(same, "the status changed", ended, after)


@check(
    "LIFE.1",
    strength=Strength.CHOICE,
    needs=TASKS,
    asks="A task that has ended is shown the same for ever, in every field.",
    source=f"{STATUS} (the status is terminal; of other fields nothing is said)",
)
def an_end_is_the_same_for_ever(desk: Desk) -> Script[None]:
    made = yield from desk.create(Role.COMPLETING, Role.ERRING, Role.FAILING)
    task_id = str(task_of(made))
    ended = yield from desk.ended(task_id)
    yield from desk.pause(desk.settings.quiet_ms)
    after = yield from desk.get(task_id)
    changed = differing(view_of(ended), view_of(after, ended))
    demand(not changed, f"it changed: {changed}", ended, after)


@check(
    "LIFE.8",
    strength=Strength.CHOICE,
    needs=TASKS,
    asks="A call of a tool that there is not makes no task, and is an error or a result with isError.",
    source="MCP 2026-07-28, Tools: Error Handling",
)
def a_call_that_fails_first(desk: Desk) -> Script[None]:
    answer = yield from desk.ask(desk.request("tools/call", {"name": "kit no such tool", "arguments": {}}))
    demand(task_of(answer) is None, "it made a task", answer)
    erred = object_of(answer.result).get("isError") is True
    demand(answer.error is not None or erred, f"there came {described(answer)}", answer)


@check(
    "LIFE.8",
    strength=Strength.CHOICE,
    needs=TASKS,
    asks="A tool that is done at once gives its plain result also to who declares tasks.",
    source="Tasks extension: Capability Negotiation (the server decides for each request)",
)
def plain_results_stay_plain(desk: Desk) -> Script[None]:
    answer = carried_out((yield from desk.ask(desk.call(desk.tool(Role.PLAIN)))))
    demand(result_of(answer).get("resultType") == "complete", f"there came {described(answer)}", answer)


# -- every task that was seen --------------------------------------------------------------------------------


@check(
    "LIFE.1",
    strength=Strength.MUST,
    asks="A status is working, input_required, completed, failed or cancelled.",
    source=STATUS,
)
def five_statuses(desk: Desk) -> None:
    for answer, view in views(desk):
        demand(status_of(view) in STATUSES, f"a task has the status {view.get('status')!r}", answer)


@check(
    "LIFE.1",
    strength=Strength.MUST,
    asks="No task is ever seen in another status after it was seen to end.",
    source=f"{STATUS}: State Diagram",
)
def no_status_after_the_end(desk: Desk) -> None:
    ends: dict[str, list[tuple[Answer, str]]] = {}
    for answer, view, task_id in named_views(desk):
        status, seen_before = status_of(view), ends.setdefault(task_id, [])
        for before, end in seen_before:
            # What lay in a stream when the end was seen elsewhere may be older.
            later = answer is before or answer.sent_ms >= before.at_ms
            demand(status == end or not later, f"a task was {status!r} after it was {end!r}", before, answer)
        if status in TERMINAL:
            seen_before.append((answer, status))


@check(
    "LIFE.3",
    strength=Strength.MUST,
    asks="A create result is flat: resultType task, with taskId and the other fields of the task beside it.",
    source="Tasks extension: Task Creation (CreateTaskResult = Result & Task)",
)
def create_results_are_flat(desk: Desk) -> None:
    for answer, view in _created(desk):
        demand(isinstance(view.get("taskId"), str) and "task" not in view, "it is not flat", answer)


@check(
    "LIFE.3",
    strength=Strength.CHOICE,
    asks="A create result has no result, error, inputRequests or requestState.",
    source="Tasks extension: Task Creation (Task has none of them; an example shows an error all the same)",
)
def create_results_are_seeds(desk: Desk) -> None:
    for answer, view in _created(desk):
        more = sorted({"result", "error", "inputRequests", "requestState"} & set(view))
        demand(not more, f"it has {', '.join(more)}", answer)


def _created(desk: Desk) -> list[tuple[Answer, Mapping[str, Any]]]:
    found = [(one, view) for one, view in views(desk) if view.get("resultType") == "task"]
    seen(found, "no call became a task")
    return found


@check(
    "GET.1",
    strength=Strength.MUST,
    asks="A task shows what belongs to its status, and nothing of another: result when completed, error "
    "when failed, inputRequests when input_required.",
    source=f"{STATUS} (derived shapes); {POLLING}: Response",
)
def fields_fit_the_status(desk: Desk) -> None:
    for answer, view in views(desk):
        due = PAYLOADS.get(status_of(view))
        if view.get("resultType") != "task":
            demand(due is None or isinstance(view.get(due), dict), f"{due} is missing, or no object", answer)
            more = sorted((set(PAYLOADS.values()) - {due}) & set(view))
            demand(not more, f"a task that is {view.get('status')} has {', '.join(more)}", answer)


@check(
    "LIFE.5",
    strength=Strength.MUST,
    asks="ttlMs is always there: an integer, or null. pollIntervalMs is an integer where it is there.",
    source=TASK,
)
def durations(desk: Desk) -> None:
    for answer, view in views(desk):
        demand("ttlMs" in view, "ttlMs is missing", answer)
        ttl_ms, interval = view["ttlMs"], view.get("pollIntervalMs", 1)
        demand(ttl_ms is None or type(ttl_ms) is int, f"ttlMs is {ttl_ms!r}", answer)
        demand(type(interval) is int, f"pollIntervalMs is {interval!r}", answer)


@check(
    "LIFE.5",
    strength=Strength.CHOICE,
    asks="ttlMs and pollIntervalMs, where they are integers, are positive.",
    source=f"{TASK} (integers, of any kind)",
)
def durations_are_positive(desk: Desk) -> None:
    for answer, view in views(desk):
        for name in ("ttlMs", "pollIntervalMs"):
            value = view.get(name)
            demand(type(value) is not int or value > 0, f"{name} is {value!r}", answer)


@check(
    "LIFE.5",
    strength=Strength.MUST,
    asks="createdAt and lastUpdatedAt are ISO 8601 timestamps, and createdAt never changes.",
    source=TASK,
)
def timestamps(desk: Desk) -> None:
    created: dict[str, tuple[Answer, Any]] = {}
    for answer, view in views(desk):
        for name in ("createdAt", "lastUpdatedAt"):
            fits = isinstance(view.get(name), str) and ISO_8601.fullmatch(view[name])
            demand(fits, f"{name} is no timestamp: {view.get(name)!r}", answer)
    for answer, view, task_id in named_views(desk):
        before, when = created.setdefault(task_id, (answer, view["createdAt"]))
        demand(when == view["createdAt"], "createdAt changed", before, answer)


@check(
    "LIFE.5",
    strength=Strength.CHOICE,
    asks="Timestamps are RFC 3339, in UTC, with milliseconds: 2026-07-28T00:00:00.000Z. They sort as text.",
    source=f"{TASK} (ISO 8601, of any kind)",
)
def timestamps_of_one_kind(desk: Desk) -> None:
    for answer, view in views(desk):
        for name in ("createdAt", "lastUpdatedAt"):
            fits = UTC_MILLISECONDS.fullmatch(str(view.get(name)))
            demand(fits, f"{name} is {view.get(name)!r}", answer)


@check(
    "LIFE.5",
    strength=Strength.CHOICE,
    asks="lastUpdatedAt moves when the task does, and only then.",
    source=f"{TASK} (when the task was last updated)",
)
def last_updated_at_moves_with_the_task(desk: Desk) -> None:
    last: dict[str, tuple[Answer, Mapping[str, Any]]] = {}
    seen(len(list(views(desk))) > 1, "no task was seen twice")
    for answer, view, task_id in named_views(desk):
        if view.get("resultType") == "task":
            continue  # a seed shows less than a view does
        if task_id in last:
            before, old = last[task_id]
            moved = view.get("lastUpdatedAt") != old.get("lastUpdatedAt")
            changed = differing(_what_it_shows(old), _what_it_shows(view))
            demand(moved or not changed, f"{changed} changed, lastUpdatedAt did not", before, answer)
            demand(changed or not moved, "lastUpdatedAt moved, and nothing else", before, answer)
        last[task_id] = answer, view


def _what_it_shows(view: Mapping[str, Any]) -> Mapping[str, Any]:
    return {name: view[name] for name in view if name not in ("resultType", "_meta", "lastUpdatedAt")}


@check(
    "LIFE.5",
    strength=Strength.MUST,
    asks="No field has a name of 2025-11-25: ttl, pollInterval.",
    source=TASK,
)
def no_legacy_names(desk: Desk) -> None:
    for answer, view in views(desk):
        demand("ttl" not in view and "pollInterval" not in view, "a task has ttl or pollInterval", answer)


@check(
    "LIFE.6",
    strength=Strength.MUST,
    asks="Task ids cannot be guessed. (What can be seen: in how many places a few of them differ.)",
    source="Tasks extension: Security Considerations, Task ID unguessability",
)
def ids_cannot_be_guessed(desk: Desk) -> None:
    known: dict[str, Answer] = {}
    for answer, view in _created(desk):
        task_id = view.get("taskId")
        if isinstance(task_id, str):
            first = known.setdefault(task_id, answer)
            demand(first is answer, "two tasks have the same id", first, answer)
    ids = sorted(known)
    seen(len(ids) >= 4, "fewer than four tasks were made")
    places = sum(len(set(column)) > 1 for column in zip(*ids, strict=False))
    bits = places * (4 if all(HEXADECIMAL.fullmatch(one) for one in ids) else 6)
    reason = f"{len(ids)} ids differ in {places} places, some {bits} bits"
    demand(bits >= 64, reason, *list(known.values())[:3])


@check(
    "LIFE.6",
    strength=Strength.CHOICE,
    asks="Task ids are ASCII without spaces, so that they stand in the header Mcp-Name as they are.",
    source="Tasks extension: Routing Headers (others have to be encoded there)",
)
def ids_fit_a_header(desk: Desk) -> None:
    for answer, view in _created(desk):
        demand(HEADER_SAFE.fullmatch(str(view.get("taskId"))), "a task id does not fit", answer)


@check(
    "LIFE.7",
    strength=Strength.MUST,
    asks="Results of tasks/get, tasks/update and tasks/cancel say resultType complete.",
    source=f"{POLLING}: Response; Tasks extension: Task Update Requests, Task Cancellation",
)
def task_results_say_complete(desk: Desk) -> None:
    methods = ("tasks/get", "tasks/update", "tasks/cancel")
    found = [one for one in desk.log if one.post.method in methods and one.post.era == "modern"]
    found = [one for one in found if one.result is not None]
    seen(found, "there was no result of tasks/*")
    for answer in found:
        demand(
            (answer.result or {}).get("resultType") == "complete", f"there came {described(answer)}", answer
        )


CHECKS: Final[tuple[Check, ...]] = (
    a_task_is_there_at_once,
    a_task_completes,
    a_tool_error_is_a_result,
    a_task_fails,
    a_failed_task_says_why,
    the_result_within,
    an_end_is_an_end,
    an_end_is_the_same_for_ever,
    a_call_that_fails_first,
    plain_results_stay_plain,
)
WATCHES: Final[tuple[Check, ...]] = (
    five_statuses,
    no_status_after_the_end,
    create_results_are_flat,
    create_results_are_seeds,
    fields_fit_the_status,
    durations,
    durations_are_positive,
    timestamps,
    timestamps_of_one_kind,
    last_updated_at_moves_with_the_task,
    no_legacy_names,
    ids_cannot_be_guessed,
    ids_fit_a_header,
    task_results_say_complete,
)
