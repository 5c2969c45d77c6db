"""Checks of what tools ask, within tasks and before them (INP)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from mcp_tasks_proto.testing.kit.acts import Script
from mcp_tasks_proto.testing.kit.checks import Answer, Broken, Check, Need, Strength, Unseen, check
from mcp_tasks_proto.testing.kit.desk import Desk, Role, input_response, requests_of, status_of, task_of
from mcp_tasks_proto.testing.kit.judging import (
    acknowledged,
    asks_nothing,
    carried_out,
    demand,
    described,
    object_of,
    refused,
    result_of,
    seen,
    view_of,
)
from mcp_tasks_proto.testing.kit.operations import answered

__all__ = ["CHECKS", "WATCHES"]

TASKS: Final = (Need.MODERN, Need.TASKS)
METHODS: Final = ("elicitation/create", "sampling/createMessage", "roots/list")
UPDATE: Final = "Tasks extension: Task Update Requests"
ROUNDS: Final = "MCP 2026-07-28, Multi Round-Trip Requests"
MOST_ROUNDS: Final = 10
"""After so many rounds of questions a task is left alone."""


@check(
    "INP.1",
    strength=Strength.MUST,
    needs=TASKS,
    asks="A task that waits shows what it asks, each under its key: a request for elicitation, sampling or "
    "roots.",
    source="Tasks extension: Task Polling, Response 2; " + ROUNDS,
)
def what_is_asked_is_shown(desk: Desk) -> Script[None]:
    made = yield from desk.create(Role.ASKING)
    view = yield from desk.until(str(task_of(made)), "input_required")
    demand(requests_of(view), "a task waits for input, and shows no input requests", view)
    _fit(view, requests_of(view))


def _fit(answer: Answer, requests: Mapping[str, Any]) -> None:
    for request in requests.values():
        method = object_of(request).get("method")
        demand(method in METHODS, f"an input request has the method {method!r}", answer)


@check(
    "INP.3",
    strength=Strength.MUST,
    needs=TASKS,
    asks="A task whose questions are all answered goes on to its end, in as many rounds as it takes.",
    source=UPDATE,
)
def a_task_goes_on_when_all_is_answered(desk: Desk) -> Script[None]:
    made = yield from desk.create(Role.ASKING)
    task_id = str(task_of(made))
    for _ in range(MOST_ROUNDS):
        view = yield from desk.until(task_id, "input_required", "completed", "failed", "cancelled")
        if status_of(view.result or {}) != "input_required":
            status = status_of(view.result or {})
            demand(status == "completed", f"the task ended as {status}", view)
            return
        yield from answered(desk, view)
    raise Unseen(f"the task asked more than {MOST_ROUNDS} times")


@check(
    "INP.3",
    strength=Strength.CHOICE,
    needs=TASKS,
    asks="Of several questions one can be answered alone; the others stay.",
    source=f"{UPDATE}: Response (a server may accept a part)",
)
def one_answer_of_several(desk: Desk) -> Script[None]:
    made = yield from desk.create(Role.ASKING)
    task_id = str(task_of(made))
    before = yield from desk.until(task_id, "input_required")
    asked = requests_of(before)
    seen(len(asked) > 1, "the task asks one thing at a time (--asking names one that asks two at once)")
    first = next(iter(asked))
    acknowledged((yield from desk.update(task_id, {first: input_response(asked[first])})), before)
    yield from desk.pause(desk.settings.quiet_ms)
    after = yield from desk.get(task_id)
    view_of(after, before)
    left = {key: one for key, one in asked.items() if key != first}
    demand(dict(requests_of(after)) == left, "what is left is not what was not answered", before, after)
    yield from answered(desk, after)


@check(
    "INP.2",
    strength=Strength.MUST,
    needs=TASKS,
    asks="A task is never made to ask its client what the call did not declare.",
    source=f"{ROUNDS}: Server Requirements; MCP 2026-07-28, Overview: _meta (undeclared capabilities)",
)
def nothing_undeclared_is_asked(desk: Desk) -> Script[None]:
    answer = carried_out((yield from desk.ask(desk.call(desk.tool(Role.ASKING), capabilities={}))))
    task_id = task_of(answer)
    if task_id is None:
        seen(answer.response is not None, f"there came {described(answer)}")
        asks_nothing(answer)
        return
    try:
        view = yield from desk.watch(task_id, "input_required")
    except Broken as error:
        # Not to be shown the task is another matter, and of other checks: nothing is asked by an error.
        raise Unseen(f"there came {described(error.answers[-1])} where the task was due") from error
    if view is not None:
        asks_nothing(view, answer)


@check(
    "INP.4",
    strength=Strength.MUST,
    needs=(Need.MODERN,),
    asks="resultType input_required comes with inputRequests or requestState, and each request is one for "
    "elicitation, sampling or roots.",
    source=f"{ROUNDS}: Server Requirements",
)
def a_round_before_a_result(desk: Desk) -> Script[None]:
    answer = yield from _round(desk)
    _fit(answer, requests_of(answer))


def _round(desk: Desk) -> Script[Answer]:
    """Return a round of input that a tool asks for, before anything else."""
    answer = carried_out((yield from desk.ask(desk.call(desk.tool(Role.ASKING_FIRST)))))
    result = result_of(answer)
    seen(result.get("resultType") == "input_required", f"there came {described(answer)} this time")
    some = requests_of(answer) or isinstance(result.get("requestState"), str)
    demand(some, "it has neither inputRequests nor requestState", answer)
    return answer


def _retry(answer: Answer, *, tampered: bool = False) -> dict[str, Any]:
    """Return the params that answer a round."""
    result = answer.result or {}
    params: dict[str, Any] = {
        "inputResponses": {key: input_response(one) for key, one in requests_of(answer).items()}
    }
    state = result.get("requestState")
    if isinstance(state, str):
        params["requestState"] = _tampered(state) if tampered else state
    return params


def _tampered(state: str) -> str:
    """Change one character in the middle, to another that could have stood there."""
    middle = len(state) // 2
    return state[:middle] + ("A" if state[middle : middle + 1] != "A" else "B") + state[middle + 1 :]


@check(
    "INP.4",
    strength=Strength.MUST,
    needs=(Need.MODERN,),
    asks="The same call, with the answers and the requestState, goes on.",
    source=f"{ROUNDS}: Basic Workflow",
)
def a_round_is_answered(desk: Desk) -> Script[None]:
    call = desk.tool(Role.ASKING_FIRST)
    answer = yield from _round(desk)
    for _ in range(MOST_ROUNDS):
        answer = carried_out((yield from desk.ask(desk.call(call, params=_retry(answer)))))
        if result_of(answer).get("resultType") != "input_required":
            return
    raise Unseen(f"the tool asked more than {MOST_ROUNDS} times")


@check(
    "INP.4",
    strength=Strength.CHOICE,
    needs=(Need.MODERN,),
    asks="A requestState that was tampered with is refused, be it with isError.",
    source=f"{ROUNDS}: Server Requirements (must be rejected, unless nothing worse than a failure can come "
    "of it, which does not show)",
)
def a_state_that_was_tampered_with(desk: Desk) -> Script[None]:
    answer = yield from _tampered_round(desk)
    said = (answer.result or {}).get("isError") is True
    demand(answer.error is not None or said, f"there came {described(answer)}, not an error", answer)


@check(
    "INP.4",
    strength=Strength.CHOICE,
    needs=(Need.MODERN,),
    asks="A requestState that was tampered with is answered with -32602.",
    source=f"{ROUNDS}: Server Requirements (must be rejected; how is left open)",
)
def how_a_state_is_refused(desk: Desk) -> Script[None]:
    refused((yield from _tampered_round(desk)), -32602)


def _tampered_round(desk: Desk) -> Script[Answer]:
    """Answer a round with a state that was tampered with; return what comes."""
    call = desk.tool(Role.ASKING_FIRST)
    answer = yield from _round(desk)
    seen(isinstance((answer.result or {}).get("requestState"), str), "the tool gives no requestState")
    return (yield from desk.ask(desk.call(call, params=_retry(answer, tampered=True))))


@check(
    "INP.1",
    strength=Strength.MUST,
    asks="A key stands for one request over the life of its task, and does not come back once it was gone.",
    source=UPDATE,
)
def keys_are_never_used_again(desk: Desk) -> None:
    known: dict[tuple[str, str], Any] = {}
    outstanding: dict[str, Mapping[str, Any]] = {}
    for answer in desk.log:
        result = answer.result or {}
        if answer.post.method != "tasks/get" or answer.post.era != "modern" or "taskId" not in result:
            continue
        task_id, asked = str(result["taskId"]), requests_of(answer)
        before = outstanding.get(task_id, {})
        for key, request in asked.items():
            old = known.setdefault((task_id, key), request)
            demand(old == request, f"the key {key!r} stands for two requests", answer)
            back = key not in before and old is not request
            demand(not back, f"the key {key!r} came back", answer)
        outstanding[task_id] = asked
    seen(known, "no task was seen to ask for input")


CHECKS: Final[tuple[Check, ...]] = (
    what_is_asked_is_shown,
    a_task_goes_on_when_all_is_answered,
    one_answer_of_several,
    nothing_undeclared_is_asked,
    a_round_before_a_result,
    a_round_is_answered,
    a_state_that_was_tampered_with,
    how_a_state_is_refused,
)
WATCHES: Final[tuple[Check, ...]] = (keys_are_never_used_again,)
