"""How checks look at answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from mcp_tasks_proto.testing.kit.checks import Answer, Broken, Unseen
from mcp_tasks_proto.testing.kit.desk import SILENT, Desk, requests_of
from mcp_tasks_proto.vocabulary import CLIENT_CAPABILITIES, TASKS_EXTENSION

__all__ = [
    "acknowledged",
    "asks_nothing",
    "carried_out",
    "declares_tasks",
    "demand",
    "described",
    "differing",
    "modern_results",
    "named_views",
    "object_of",
    "refused",
    "result_of",
    "same_questions",
    "seen",
    "view_of",
    "views",
]

TASK_METHODS: Final = frozenset({"tasks/get", "tasks/update", "tasks/cancel"})


def demand(condition: object, reason: str, *answers: Answer) -> None:
    """Raise :class:`Broken` unless the condition holds."""
    if not condition:
        raise Broken(reason, *answers)


def seen(condition: object, reason: str) -> None:
    """Raise :class:`Unseen` unless the condition holds."""
    if not condition:
        raise Unseen(reason)


def object_of(value: Any) -> Mapping[str, Any]:
    """Return a value that is an object, and an empty object for any other."""
    return value if isinstance(value, Mapping) else {}


def described(answer: Answer) -> str:
    """Say in brief what came."""
    http = "" if answer.status is None else f" (HTTP {answer.status})"
    if answer.error is not None:
        return f"error {answer.code}{http}"
    if answer.result is not None:
        return f"a result with resultType {answer.result.get('resultType')!r}{http}"
    nothing = "no JSON-RPC response"
    if answer.status is not None:
        nothing = f"HTTP {answer.status} without a JSON-RPC response"
    return nothing if answer.trouble is None else f"{nothing}: {answer.trouble}"


def result_of(answer: Answer) -> Mapping[str, Any]:
    """Return the result. Raises :class:`Broken` where there is none."""
    if answer.result is None:
        raise Broken(f"there came {described(answer)} where a result was due", answer)
    return answer.result


def carried_out(answer: Answer) -> Answer:
    """Return the answer to a call. Raises :class:`Unseen` where there is none yet: a tool takes its time."""
    seen(answer.trouble != SILENT, "the tool takes too long to answer")
    return answer


def view_of(answer: Answer, *others: Answer) -> dict[str, Any]:
    """Return the task that a result shows, without what every result has."""
    result = answer.result
    if result is None:
        raise Broken(f"there came {described(answer)} where a task was due", *others, answer)
    return {name: value for name, value in result.items() if name not in ("resultType", "_meta")}


def refused(answer: Answer, *codes: int, status: int | None = None) -> Mapping[str, Any]:
    """Return the error. Raises :class:`Broken` unless it has one of these codes, and its HTTP status."""
    wanted = " or ".join(str(code) for code in codes)
    if answer.error is None or answer.code not in codes:
        raise Broken(f"there came {described(answer)}, not error {wanted}", answer)
    if status is not None and answer.status not in (None, status):
        raise Broken(f"error {answer.code} came with HTTP {answer.status}, not {status}", answer)
    return answer.error


def acknowledged(answer: Answer, *others: Answer) -> None:
    """Raise :class:`Broken` unless it is a result without contents of its own."""
    result = answer.result
    if result is None:
        raise Broken(f"there came {described(answer)}, not an acknowledgement", *others, answer)
    more = sorted(set(result) - {"resultType", "_meta"})
    demand(not more, f"the acknowledgement has members of its own: {', '.join(more)}", *others, answer)


def asks_nothing(answer: Answer, *before: Answer) -> None:
    """Raise :class:`Broken` where a client is asked for something that has declared nothing."""
    asked = sorted({str(object_of(one).get("method")) for one in requests_of(answer).values()})
    named = " and ".join(asked)
    demand(not asked, f"the client was asked for what it did not declare: {named}", *before, answer)


def same_questions(before: Answer, *more: Answer) -> None:
    """Raise :class:`Broken` unless all answers show a task that asks the same."""
    for answer in more:
        view_of(answer, before)
        same = dict(requests_of(answer)) == dict(requests_of(before))
        demand(same, "the outstanding input requests are not what they were", before, answer)


def differing(one: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    """Return the names of the members in which two objects differ."""
    names = sorted({*one, *other})
    return ", ".join(
        name for name in names if one.get(name) != other.get(name) or (name in one) != (name in other)
    )


# -- everything that was said --------------------------------------------------------------------------------


def modern_results(desk: Desk) -> Iterator[tuple[Answer, Mapping[str, Any]]]:
    """Yield each result of a modern request. Raises :class:`Unseen` where there is none."""
    found = [(one, one.result) for one in desk.log if one.post.era == "modern" and one.result is not None]
    seen(found, "no request of 2026-07-28 had a result")
    yield from found


def views(desk: Desk) -> Iterator[tuple[Answer, Mapping[str, Any]]]:
    """Yield each task as modern clients were shown it, in order. Raises :class:`Unseen` for none at all."""
    found: list[tuple[int, Answer, Mapping[str, Any]]] = []
    for answer in desk.log:
        if answer.post.era == "modern":
            for place, message in zip(answer.places, answer.messages, strict=True):
                view = _view_in(object_of(message), answer.post.method)
                if view is not None:
                    found.append((place, answer, view))
    seen(found, "no task was seen")
    found.sort(key=lambda one: one[0])  # streams are over long after what was said on them
    yield from ((answer, view) for _, answer, view in found)


def named_views(desk: Desk) -> Iterator[tuple[Answer, Mapping[str, Any], str]]:
    """Yield each task as above, with its id, where it has one by which it can be known again (LIFE.3)."""
    found = [(answer, view, view.get("taskId")) for answer, view in views(desk)]
    named = [(answer, view, task_id) for answer, view, task_id in found if isinstance(task_id, str)]
    seen(named, "no task has an id that is a string")
    yield from named


def _view_in(message: Mapping[str, Any], method: str | None) -> Mapping[str, Any] | None:
    """Return the task that a message shows, if it does."""
    if message.get("method") == "notifications/tasks":
        return object_of(message.get("params"))
    result = object_of(message.get("result"))
    return result if result.get("resultType") == "task" or (method == "tasks/get" and result) else None


def declares_tasks(answer: Answer) -> bool:
    """Whether the request of an answer declares the Tasks extension."""
    capabilities = object_of(object_of(answer.post.params.get("_meta")).get(CLIENT_CAPABILITIES))
    return isinstance(object_of(capabilities.get("extensions")).get(TASKS_EXTENSION), Mapping)
