"""Checks of what clients of 2025-11-25 get (LEG)."""

from __future__ import annotations

from typing import Any, Final

from mcp_tasks_proto.testing.kit.acts import Script
from mcp_tasks_proto.testing.kit.arguments import sample
from mcp_tasks_proto.testing.kit.checks import Answer, Broken, Check, Need, Strength, Unseen, check
from mcp_tasks_proto.testing.kit.desk import SILENT, TERMINAL, Desk, Role, input_response, status_of
from mcp_tasks_proto.testing.kit.judging import (
    carried_out,
    demand,
    described,
    object_of,
    refused,
    result_of,
    seen,
)
from mcp_tasks_proto.vocabulary import RELATED_TASK

__all__ = ["CHECKS"]

LEGACY: Final = (Need.LEGACY,)
TASKS: Final = (Need.LEGACY, Need.LEGACY_TASKS)
NO_TASK: Final = "kit-no-such-task-0123456789abcdef"
SPECIFIED: Final = "MCP 2025-11-25, Tasks"


def _call(desk: Desk, tool: str, **more: Any) -> Script[Answer]:
    named = [call for call in desk.calls.values() if call.tool == tool and call.arguments is not None]
    schema = desk.legacy_tools.get(tool, {}).get("inputSchema")
    arguments = named[0].arguments if named else sample(schema) or {}
    return (yield from desk.ask(desk.legacy("tools/call", {"name": tool, "arguments": arguments, **more})))


def _supporting(desk: Desk, *roles: Role, support: tuple[str, ...] = ("optional", "required")) -> str:
    """Return a tool with one of these roles that supports tasks so. Raises ``Unseen`` where there is none."""
    for role in roles:
        if role in desk.calls:
            tool = desk.legacy_tools.get(desk.calls[role].tool, {})
            if object_of(tool.get("execution")).get("taskSupport", "forbidden") in support:
                return desk.calls[role].tool
    raise Unseen(f"no tool is known whose taskSupport is {' or '.join(support)} and that {roles[0].meaning}")


def _created(desk: Desk, *roles: Role) -> Script[Answer]:
    """Make a task as 2025-11-25 does; return the answer."""
    answer = yield from _call(desk, _supporting(desk, *roles), task={"ttl": 60_000})
    if not isinstance(object_of(result_of(answer).get("task")).get("taskId"), str):
        raise Broken("the result has no task with a taskId", answer)
    return answer


def _id(made: Answer) -> str:
    return str(object_of((made.result or {}).get("task")).get("taskId"))


def _get(desk: Desk, task_id: str) -> Script[Answer]:
    return (yield from desk.ask(desk.legacy("tasks/get", {"taskId": task_id})))


def _result(desk: Desk, task_id: str) -> Script[Answer]:
    """Wait for the result of a task. Raises ``Unseen`` where it is still at work when the time is up."""
    answer = yield from desk.ask(desk.legacy("tasks/result", {"taskId": task_id}), desk.settings.task_ms)
    if answer.trouble == SILENT:
        yield from _not_at_work(desk, task_id)
    return answer


def _not_at_work(desk: Desk, task_id: str) -> Script[None]:
    """Raise ``Unseen`` where a task that nothing came of is still at work."""
    status = status_of(object_of((yield from _get(desk, task_id)).result))
    seen(status != "working", f"the task is at work for more than {desk.settings.task_ms} ms")


def _cancel(desk: Desk, task_id: str) -> Script[Answer]:
    return (yield from desk.ask(desk.legacy("tasks/cancel", {"taskId": task_id})))


@check(
    "LEG.1",
    strength=Strength.MUST,
    needs=LEGACY,
    asks="A server that does not declare the capability ignores params.task, and a call gives its plain "
    "result.",
    source=f"{SPECIFIED}: Task Support and Handling 1",
)
def tasks_that_are_not_declared(desk: Desk) -> Script[None]:
    seen(Need.LEGACY_TASKS in desk.lacking, "the server declares tasks for 2025-11-25")
    call = desk.tool(Role.PLAIN)
    answer = carried_out((yield from _call(desk, call.tool, task={"ttl": 60_000})))
    demand("task" not in result_of(answer), "it made a task", answer)


@check(
    "LEG.2",
    strength=Strength.MUST,
    needs=TASKS,
    asks="The capability tasks says what is served: requests.tools.call, and list and cancel as objects.",
    source=f"{SPECIFIED}: Server Capabilities",
)
def the_capability(desk: Desk) -> None:
    for name in ("list", "cancel"):
        fits = isinstance(desk.legacy_tasks.get(name, {}), dict)
        demand(fits, f"tasks.{name} is no object", *desk.initialized)


@check(
    "LEG.3",
    strength=Strength.MUST,
    needs=TASKS,
    asks="A call with params.task gives a task within the result, which is working, with ttl, createdAt and "
    "lastUpdatedAt, and no names of the extension.",
    source=f"{SPECIFIED}: Creating Tasks; Task Status Lifecycle 1; TTL and Resource Management",
)
def a_call_with_a_task(desk: Desk) -> Script[None]:
    made = yield from _created(desk, Role.COMPLETING, Role.SLOW, Role.ASKING)
    task = object_of((made.result or {}).get("task"))
    demand(status_of(task) == "working", f"the task is {task.get('status')!r}", made)
    missing = sorted({"ttl", "createdAt", "lastUpdatedAt"} - set(task))
    demand(not missing, f"the task has no {', '.join(missing)}", made)
    more = sorted({"ttlMs", "pollIntervalMs"} & set(task))
    demand(not more, f"the task has {', '.join(more)}", made)


@check(
    "LEG.3",
    strength=Strength.MUST,
    needs=TASKS,
    asks="A plain call of a tool whose taskSupport is required is answered with -32601.",
    source=f"{SPECIFIED}: Tool-Level Negotiation",
)
def a_plain_call_of_a_task_tool(desk: Desk) -> Script[None]:
    tool = _tool_that(desk, "required")
    refused((yield from _call(desk, tool)), -32601)


@check(
    "LEG.3",
    strength=Strength.SHOULD,
    needs=TASKS,
    asks="A call with params.task of a tool whose taskSupport is forbidden is answered with -32601.",
    source=f"{SPECIFIED}: Tool-Level Negotiation",
)
def a_task_of_a_plain_tool(desk: Desk) -> Script[None]:
    tool = _tool_that(desk, "forbidden")
    refused((yield from _call(desk, tool, task={"ttl": 60_000})), -32601)


def _tool_that(desk: Desk, support: str) -> str:
    for name, tool in desk.legacy_tools.items():
        if object_of(tool.get("execution")).get("taskSupport", "forbidden") == support:
            return name
    raise Unseen(f"no tool has the taskSupport {support}")


@check(
    "LEG.4",
    strength=Strength.MUST,
    needs=TASKS,
    asks="tasks/result waits for the end, and gives the result of the call, with related-task in its _meta.",
    source=f"{SPECIFIED}: Result Retrieval; Associating Task-Related Messages",
)
def the_result_of_a_task(desk: Desk) -> Script[None]:
    made = yield from _created(desk, Role.COMPLETING)
    answer = yield from _result(desk, _id(made))
    result = result_of(answer)
    demand(isinstance(result.get("content"), list), "there is no result of a tool", answer)
    related = object_of(object_of(result.get("_meta")).get(RELATED_TASK)).get("taskId")
    demand(related == _id(made), f"{RELATED_TASK} does not name the task", answer)
    after = yield from _get(desk, _id(made))
    demand(status_of(result_of(after)) in TERMINAL, "the task has not ended", answer, after)


@check(
    "LEG.5",
    strength=Strength.MUST,
    needs=TASKS,
    asks="tasks/cancel answers with the task, which is cancelled by then; a second one is answered with "
    "-32602.",
    source=f"{SPECIFIED}: Task Cancellation",
)
def a_task_is_cancelled(desk: Desk) -> Script[None]:
    seen("cancel" in desk.legacy_tasks, "the server does not cancel tasks of 2025-11-25")
    made = yield from _created(desk, Role.SLOW, Role.ASKING)
    answer = yield from _cancel(desk, _id(made))
    if answer.code == -32602:
        ended = status_of(object_of((yield from _get(desk, _id(made))).result))
        seen(ended not in TERMINAL - {"cancelled"}, f"the task was {ended} before it was cancelled")
    demand(status_of(result_of(answer)) == "cancelled", "the task is not cancelled", made, answer)
    refused((yield from _cancel(desk, _id(made))), -32602)


@check(
    "LEG.6",
    strength=Strength.SHOULD,
    needs=TASKS,
    asks="A task whose tool says isError is failed, and tasks/result gives that result all the same.",
    source="MCP 2025-11-25, schema: TaskStatus; Tasks: Result Retrieval",
)
def a_tool_error(desk: Desk) -> Script[None]:
    made = yield from _created(desk, Role.ERRING)
    answer = yield from _result(desk, _id(made))
    demand(result_of(answer).get("isError") is True, "the result has no isError", answer)
    after = yield from _get(desk, _id(made))
    demand(status_of(result_of(after)) == "failed", "the task is not failed", after)


@check(
    "LEG.7",
    strength=Strength.MUST,
    needs=TASKS,
    asks="tasks/get, tasks/result and, where it is declared, tasks/cancel of a task that there is not are "
    "answered with -32602.",
    source=f"{SPECIFIED}: Error Handling",
)
def unknown_tasks(desk: Desk) -> Script[None]:
    declared = ("tasks/cancel",) if "cancel" in desk.legacy_tasks else ()
    for method in ("tasks/get", "tasks/result", *declared):
        refused((yield from desk.ask(desk.legacy(method, {"taskId": NO_TASK}))), -32602)


@check(
    "LEG.7",
    strength=Strength.MUST,
    needs=TASKS,
    asks="Where tasks.list is declared, tasks/list has the tasks that tasks/get finds, and refuses a cursor "
    "that it has not given with -32602.",
    source=f"{SPECIFIED}: Task Listing; Error Handling",
)
def tasks_are_listed(desk: Desk) -> Script[None]:
    seen("list" in desk.legacy_tasks, "the server does not list tasks")
    made = yield from _created(desk, Role.COMPLETING, Role.SLOW, Role.ASKING)
    answer = yield from desk.ask(desk.legacy("tasks/list", {}))
    listed = result_of(answer).get("tasks")
    demand(isinstance(listed, list), "there is no list", answer)
    ids = [object_of(one).get("taskId") for one in listed or ()]
    more = result_of(answer).get("nextCursor") is not None
    demand(_id(made) in ids or more, "the task is not listed", made, answer)
    refused((yield from desk.ask(desk.legacy("tasks/list", {"cursor": "kit no such cursor"}))), -32602)


@check(
    "LEG.8",
    strength=Strength.MUST,
    needs=TASKS,
    asks="A question of a task comes as a request on the stream of tasks/result, with related-task; its "
    "answer lets the task go on.",
    source=f"{SPECIFIED}: Input Required Status (which leaves the stream open: on another one a question is "
    "not seen)",
)
def a_task_asks(desk: Desk) -> Script[None]:
    made = yield from _created(desk, Role.ASKING)
    stream = yield from desk.opened(desk.legacy("tasks/result", {"taskId": _id(made)}))
    question: Any = None
    asked = 0
    while stream.response is None and asked < 10:
        question = yield from desk.next_message(stream, desk.settings.task_ms)
        if question is None:
            break
        question = object_of(question)
        if "id" in question and "method" in question:
            asked += 1
            related = object_of(object_of(object_of(question.get("params")).get("_meta")).get(RELATED_TASK))
            if related.get("taskId") != _id(made):
                answer = yield from desk.closed(stream)
                raise Broken(f"a question has no {RELATED_TASK} with the task", answer)
            said = {"jsonrpc": "2.0", "id": question["id"], "result": input_response(question)}
            yield from desk.told(desk.legacy_post(said))
    answer = yield from desk.closed(stream)
    if answer.response is None and answer.trouble is None:  # it was not waited for any longer
        yield from _not_at_work(desk, _id(made))
        elsewhere = "no question came with tasks/result; on HTTP it may come on any stream"
        seen(asked or not desk.speaks_http, elsewhere)
    demand(asked, f"nothing was asked; there came {described(answer)}", made, answer)
    demand(answer.result is not None, f"there came {described(answer)} after the answers", answer)


@check(
    "LEG.9",
    strength=Strength.CHOICE,
    needs=(*TASKS, Need.MODERN, Need.TASKS, Need.HTTP),
    asks="A task made in a session of 2025-11-25 is found by tasks/get of 2026-07-28 as well, and is shown "
    "as the extension shows tasks.",
    source="SEP-2663: Backward Compatibility (such tasks should stay within reach; of whom is not clear)",
)
def a_task_in_both_eras(desk: Desk) -> Script[None]:
    made = yield from _created(desk, Role.COMPLETING, Role.SLOW, Role.ASKING)
    answer = yield from desk.get(_id(made))
    view = result_of(answer)
    shown = view.get("taskId") == _id(made) and "ttlMs" in view
    demand(shown, "it is not shown as the extension does", answer)


CHECKS: Final[tuple[Check, ...]] = (
    tasks_that_are_not_declared,
    the_capability,
    a_call_with_a_task,
    a_plain_call_of_a_task_tool,
    a_task_of_a_plain_tool,
    the_result_of_a_task,
    a_task_is_cancelled,
    a_tool_error,
    unknown_tasks,
    tasks_are_listed,
    a_task_asks,
    a_task_in_both_eras,
)
