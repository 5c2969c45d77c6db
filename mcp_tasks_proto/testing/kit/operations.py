"""Checks of tasks/get, tasks/update and tasks/cancel (GET, UPD, CAN)."""

from __future__ import annotations

from typing import Any, Final

from mcp_tasks_proto.testing.kit.acts import Script
from mcp_tasks_proto.testing.kit.checks import Answer, Broken, Check, Need, Strength, check
from mcp_tasks_proto.testing.kit.desk import (
    TERMINAL,
    Desk,
    Role,
    input_response,
    requests_of,
    status_of,
    task_of,
)
from mcp_tasks_proto.testing.kit.judging import (
    acknowledged,
    demand,
    described,
    differing,
    refused,
    same_questions,
    seen,
    view_of,
)
from mcp_tasks_proto.testing.kit.listening import agreed

__all__ = ["CHECKS"]

TASKS: Final = (Need.MODERN, Need.TASKS)
NO_TASK: Final = "kit-no-such-task-0123456789abcdef"
MALFORMED: Final = "kit: no\u00a0id ✓"
"""An id that no server gives."""
PROTOCOL_ERRORS: Final = "Tasks extension: Protocol Errors"
UPDATE: Final = "Tasks extension: Task Update Requests"
CANCEL: Final = "Tasks extension: Task Cancellation"

PARAMS: Final[tuple[tuple[str, dict[str, Any]], ...]] = (
    ("tasks/get", {}),
    ("tasks/update", {"inputResponses": {}}),
    ("tasks/cancel", {}),
)
"""What each method takes beside a task id."""


# -- get -----------------------------------------------------------------------------------------------------


@check(
    "GET.1",
    strength=Strength.CHOICE,
    needs=TASKS,
    asks="Looking at a task changes nothing: two looks at a task that stands still show the same.",
    source="Tasks extension: Task Polling (it is not said that a poll changes nothing)",
)
def a_look_changes_nothing(desk: Desk) -> Script[None]:
    first = yield from _standing_still(desk)
    task_id = str((first.result or {}).get("taskId"))
    yield from desk.pause(50)
    second = yield from desk.get(task_id)
    changed = differing(view_of(first), view_of(second, first))
    # A task that works may have got on in between; one that waits does not.
    stands = status_of(view_of(first)) != "working" or changed in ("", "lastUpdatedAt")
    seen(stands, f"the task does not stand still: {changed}")
    demand(not changed, f"it changed: {changed}", first, second)


def _standing_still(desk: Desk) -> Script[Answer]:
    """Return a view of a task that waits for input, or works for long."""
    made = yield from desk.create(Role.ASKING, Role.SLOW)
    task_id = str(task_of(made))
    if Role.ASKING in desk.calls:
        return (yield from desk.until(task_id, "input_required"))
    return (yield from desk.get(task_id))


@check(
    "GET.2",
    strength=Strength.MUST,
    needs=TASKS,
    asks="tasks/get with an id that there is not, or that is none, is answered with -32602.",
    source=PROTOCOL_ERRORS,
)
def getting_an_unknown_task(desk: Desk) -> Script[None]:
    for wrong in (NO_TASK, MALFORMED):
        refused((yield from desk.get(wrong)), -32602)
    # An empty Mcp-Name may count as none.
    refused((yield from desk.get("")), -32602, *((-32020,) if desk.speaks_http else ()))


@check(
    "GET.2",
    strength=Strength.SHOULD,
    needs=TASKS,
    asks="tasks/update and tasks/cancel with an id that there is not are answered with -32602.",
    source=PROTOCOL_ERRORS,
)
def updating_an_unknown_task(desk: Desk) -> Script[None]:
    refused((yield from desk.update(NO_TASK, {})), -32602)
    refused((yield from desk.cancel(NO_TASK)), -32602)


@check(
    "GET.2",
    strength=Strength.CHOICE,
    needs=TASKS,
    asks="Unknown and malformed ids get the same answer, to the letter, from all three methods: nobody can "
    "tell a guess from a find.",
    source=f"{PROTOCOL_ERRORS} (the texts are left open)",
)
def one_answer_for_all_unknown(desk: Desk) -> Script[None]:
    first: Answer | None = None
    for method, more in PARAMS:
        for task_id in (NO_TASK, MALFORMED):
            answer = yield from desk.ask(desk.request(method, {"taskId": task_id, **more}))
            first = first or answer
            demand(answer.error is not None, f"there came {described(answer)}", answer)
            demand(answer.error == first.error, "the answers differ", first, answer)


@check(
    "GET.2",
    strength=Strength.CHOICE,
    needs=TASKS,
    asks="A taskId that is no string, or none at all, is answered with -32602.",
    source="Tasks extension: schema (taskId is a string); JSON-RPC 2.0, section 5.1",
)
def params_without_an_id(desk: Desk) -> Script[None]:
    good = desk.request("tasks/get", {"taskId": "7"})
    for wrong in ({"taskId": 7}, {}):
        params = {"_meta": good.params["_meta"], **wrong}
        refused((yield from desk.ask(desk.changed(good, params=params))), -32602, -32020)


@check(
    "SEC.1",
    "GET.2",
    strength=Strength.MUST,
    needs=(*TASKS, Need.OTHER_CALLER),
    asks="A task of one caller is unknown to another, whatever is tried on it.",
    source="Tasks extension: Security Considerations, Auth binding",
)
def tasks_of_others(desk: Desk) -> Script[None]:
    made = yield from desk.create(Role.SLOW, Role.ASKING, Role.COMPLETING)
    task_id = str(task_of(made))
    known = yield from desk.ask(desk.of_other_caller(desk.request("server/discover")))
    seen(known.result is not None, f"the other caller is let in nowhere: there came {described(known)}")
    for method, more in PARAMS:
        post = desk.request(method, {"taskId": task_id, **more})
        answer = yield from desk.ask(desk.of_other_caller(post))
        demand(answer.error is not None, f"there came {described(answer)}", made, answer)
    if Need.LISTEN not in desk.lacking:
        post = desk.request("subscriptions/listen", {"notifications": {"taskIds": [task_id]}})
        stream = yield from desk.opened(desk.of_other_caller(post))
        message = yield from desk.next_message(stream)
        answer = yield from desk.closed(stream)
        demand(task_id not in agreed(message), "the other caller may listen to it", made, answer)
    yield from desk.pause(desk.settings.quiet_ms)
    after = yield from desk.get(task_id)
    demand(status_of(view_of(after)) != "cancelled", "the other caller cancelled it", made, after)


# -- update --------------------------------------------------------------------------------------------------


@check(
    "UPD.3",
    strength=Strength.MUST,
    needs=TASKS,
    asks="tasks/update with no answers is acknowledged with an empty result, and the task waits as before.",
    source=f"{UPDATE}: Response",
)
def an_update_of_nothing(desk: Desk) -> Script[None]:
    before = yield from _waiting(desk)
    task_id = str((before.result or {}).get("taskId"))
    acknowledged((yield from desk.update(task_id, {})), before)
    yield from desk.pause(desk.settings.quiet_ms)
    same_questions(before, (yield from desk.get(task_id)))


def _waiting(desk: Desk) -> Script[Answer]:
    """Return a view of a task that waits for input."""
    made = yield from desk.create(Role.ASKING)
    return (yield from desk.until(str(task_of(made)), "input_required"))


@check(
    "UPD.3",
    strength=Strength.SHOULD,
    needs=TASKS,
    asks="Answers to what was not asked are acknowledged, and ignored.",
    source=UPDATE,
)
def answers_to_what_was_not_asked(desk: Desk) -> Script[None]:
    before = yield from _waiting(desk)
    task_id = str((before.result or {}).get("taskId"))
    answers = {"kit no such key": {"action": "accept", "content": {}}}
    acknowledged((yield from desk.update(task_id, answers)), before)
    yield from desk.pause(desk.settings.quiet_ms)
    same_questions(before, (yield from desk.get(task_id)))


@check(
    "UPD.3",
    strength=Strength.MUST,
    needs=TASKS,
    asks="An answer to an outstanding key is acknowledged, and reaches the task: the key is outstanding no "
    "more.",
    source=f"{UPDATE}: Response",
)
def an_answer_reaches_its_task(desk: Desk) -> Script[None]:
    before = yield from _waiting(desk)
    yield from answered(desk, before)


def answered(desk: Desk, before: Answer) -> Script[Answer]:
    """Answer all that is asked, and return the first view that does not show it any more."""
    task_id = str((before.result or {}).get("taskId"))
    asked = requests_of(before)
    sent = yield from desk.update(task_id, {key: input_response(one) for key, one in asked.items()})
    acknowledged(sent, before)
    until = desk.now_ms + desk.settings.task_ms
    while True:
        after = yield from desk.get(task_id)
        view_of(after, before, sent)
        if not set(requests_of(after)) & set(asked):
            return after
        demand(desk.now_ms < until, "what was answered is still asked", before, sent, after)
        yield from desk.pause(100)


@check(
    "UPD.3",
    strength=Strength.SHOULD,
    needs=TASKS,
    asks="The same answer a second time is acknowledged, and ignored.",
    source=UPDATE,
)
def the_same_answer_twice(desk: Desk) -> Script[None]:
    before = yield from _waiting(desk)
    after = yield from answered(desk, before)
    task_id = str((before.result or {}).get("taskId"))
    answers = {key: input_response(one) for key, one in requests_of(before).items()}
    acknowledged((yield from desk.update(task_id, answers)), before, after)


@check(
    "UPD.4",
    strength=Strength.CHOICE,
    needs=TASKS,
    asks="An answer that cannot be one is answered with -32602 that names its key, and nothing is applied.",
    source="MCP 2026-07-28, Multi Round-Trip Requests: Error Handling (should be an error; which is left "
    "open)",
)
def an_answer_that_is_none(desk: Desk) -> Script[None]:
    before = yield from _waiting(desk)
    task_id = str((before.result or {}).get("taskId"))
    for key in list(requests_of(before))[:1]:
        error = refused((answer := (yield from desk.update(task_id, {key: {"kit": True}}))), -32602)
        demand(key in str(error), "the error does not name the key", before, answer)
    same_questions(before, (yield from desk.get(task_id)))


@check(
    "UPD.5",
    strength=Strength.CHOICE,
    needs=TASKS,
    asks="tasks/update of a task that has ended is acknowledged.",
    source=f"{UPDATE} (answers to what is not outstanding should be ignored)",
)
def updating_what_has_ended(desk: Desk) -> Script[None]:
    made = yield from desk.create(Role.COMPLETING, Role.ERRING, Role.FAILING)
    ended = yield from desk.ended(str(task_of(made)))
    acknowledged((yield from desk.update(str(task_of(made)), {})), ended)


# -- cancel --------------------------------------------------------------------------------------------------


@check(
    "CAN.6",
    strength=Strength.MUST,
    needs=TASKS,
    asks="tasks/cancel is acknowledged with an empty result.",
    source=f"{CANCEL}: Response",
)
def cancelling_is_acknowledged(desk: Desk) -> Script[None]:
    made = yield from desk.create(Role.SLOW, Role.ASKING)
    acknowledged((yield from desk.cancel(str(task_of(made)))), made)


@check(
    "CAN.6",
    strength=Strength.CHOICE,
    needs=TASKS,
    asks="A task that is cancelled while it works ends, by itself or by deadline.",
    source=f"{CANCEL} (cooperative: an end is not guaranteed)",
)
def a_cancelled_task_ends(desk: Desk) -> Script[None]:
    made = yield from desk.create(Role.SLOW)
    yield from _ends_once_cancelled(desk, made)


def _ends_once_cancelled(desk: Desk, made: Answer) -> Script[Answer]:
    task_id = str(task_of(made) or (made.result or {}).get("taskId"))
    sent = yield from desk.cancel(task_id)
    acknowledged(sent, made)
    last = yield from desk.watch(task_id, *TERMINAL, within_ms=max(desk.settings.task_ms, 15_000))
    if last is None:
        raise Broken("the task goes on", sent, desk.log[-1])
    return last


@check(
    "CAN.6",
    strength=Strength.CHOICE,
    needs=TASKS,
    asks="A task that waits for input ends as cancelled when it is cancelled, and an answer does not revive "
    "it.",
    source=f"{CANCEL}; Tasks extension: Task Status (terminal)",
)
def a_waiting_task_is_cancelled(desk: Desk) -> Script[None]:
    before = yield from _waiting(desk)
    task_id = str((before.result or {}).get("taskId"))
    last = yield from _ends_once_cancelled(desk, before)
    answers = {key: input_response(one) for key, one in requests_of(before).items()}
    yield from desk.update(task_id, answers)
    yield from desk.pause(desk.settings.quiet_ms)
    after = yield from desk.get(task_id)
    demand(status_of(view_of(last)) == "cancelled", "the task is not cancelled", last)
    demand(status_of(view_of(after, last)) == "cancelled", "the answer revived it", last, after)


@check(
    "CAN.6",
    strength=Strength.MUST,
    needs=TASKS,
    asks="tasks/cancel of a task that has ended is acknowledged, and the task keeps its status.",
    source=f"{CANCEL}: Response; Tasks extension: Task Status (terminal)",
)
def cancelling_what_has_ended(desk: Desk) -> Script[None]:
    made = yield from desk.create(Role.COMPLETING, Role.ERRING, Role.FAILING)
    task_id = str(task_of(made))
    ended = yield from desk.ended(task_id)
    acknowledged((yield from desk.cancel(task_id)), ended)
    after = yield from desk.get(task_id)
    same = status_of(view_of(after, ended)) == status_of(view_of(ended))
    demand(same, "the status changed", ended, after)


@check(
    "CAN.7",
    strength=Strength.MUST,
    needs=TASKS,
    asks="notifications/cancelled, for the request that made a task, does not cancel the task.",
    source=CANCEL,
)
def a_notification_cancels_no_task(desk: Desk) -> Script[None]:
    made = yield from desk.create(Role.SLOW, Role.ASKING)
    params = {"requestId": made.post.message["id"]}
    post = desk.post({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})
    sent = yield from desk.told(post)
    yield from desk.pause(desk.settings.quiet_ms)
    after = yield from desk.get(str(task_of(made)))
    demand(status_of(view_of(after)) != "cancelled", "the task is cancelled", made, sent, after)


CHECKS: Final[tuple[Check, ...]] = (
    a_look_changes_nothing,
    getting_an_unknown_task,
    updating_an_unknown_task,
    one_answer_for_all_unknown,
    params_without_an_id,
    tasks_of_others,
    an_update_of_nothing,
    answers_to_what_was_not_asked,
    an_answer_reaches_its_task,
    the_same_answer_twice,
    an_answer_that_is_none,
    updating_what_has_ended,
    cancelling_is_acknowledged,
    a_cancelled_task_ends,
    a_waiting_task_is_cancelled,
    cancelling_what_has_ended,
    a_notification_cancels_no_task,
)
