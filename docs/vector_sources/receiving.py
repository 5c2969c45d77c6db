"""LEG.10: a client in a session of 2025-11-25, whose server asks it something as a task."""

from __future__ import annotations

from typing import Any, Final

from docs.vector_sources.making import Vector, conversation, legacy_spec
from docs.vector_sources.origins import ORIGINS
from docs.vector_sources.speaking import ACCEPT, DECLINE, TEXT, Given, Output, Step, form, has, step

RELATED: Final = "io.modelcontextprotocol/related-task"
NOBODYS: Final = "nobodys-0123456789abcdefghijk"
SAMPLE: Final[dict[str, Any]] = {
    "messages": [{"role": "user", "content": {"type": "text", "text": "Hello?"}}],
    "maxTokens": 10,
}
PAGE: Final = "basic/utilities/tasks"


def receiver(
    id_: str, says: str, *steps: Step, rules: str, source: str | None = None, **setup: Any
) -> Vector:
    """Return a conversation with a client that can show forms, one call of whose is under way."""
    return conversation(
        "receiver",
        f"LEG.10/receiver/{id_}",
        says,
        steps,
        rules=rules,
        source=source or ORIGINS["LEG.10"],
        setup={"capabilities": {"elicitation": {}}, **setup},
    )


def asks(id_: int, task: Any = None, *, method: str = "elicitation/create", params: Any = None) -> Given:
    """Return that the server asks, as a task if there is one."""
    asked = form()["params"] if params is None else params
    return server_says(id_, method, {**asked, **({} if task is None else {"task": task})})


def server_says(id_: int, method: str, params: Any = None) -> Given:
    """Return that the server sends a request."""
    message = {"jsonrpc": "2.0", "id": id_, "method": method, "params": params or {}}
    return {"type": "server_request", "message": message}


def of_task(id_: int, method: str, task: Any = "$task") -> Given:
    """Return that it asks about a task of the client's."""
    return server_says(id_, method, {"taskId": task})


def answers(response: Any = ACCEPT) -> Given:
    """Return that somebody answers what is shown."""
    return {"type": "answer", "key": "$key", "response": response}


def waits() -> Given:
    """Return that only time passes."""
    return {"type": "wait"}


def responds(id_: int, result: Any) -> Output:
    """Return that the client answers its server."""
    return {"type": "respond", "message": {"jsonrpc": "2.0", "id": id_, "result": result}}


def refuses(id_: int, code: int, text: Any = TEXT) -> Output:
    """Return that it refuses."""
    refused = has((), code=code, message=text)
    return {"type": "respond", "message": {"jsonrpc": "2.0", "id": id_, "error": refused}}


def prompts() -> Output:
    """Return that a question is to be shown."""
    return {"type": "prompt", "key": "$key", "request": form()}


def withdraws() -> Output:
    """Return that it is to be taken away."""
    return {"type": "withdraw_prompt", "key": "$key"}


def task(status: str = "working", **members: Any) -> dict[str, Any]:
    """Return a task as this version shows it."""
    lacks = ("result", "ttlMs", "pollIntervalMs")
    shown = {"createdAt": TEXT, "lastUpdatedAt": TEXT, "ttl": {"$any": "integer or null"}, **members}
    return has(lacks, taskId="$task", status=status, **shown)


def related(**members: Any) -> dict[str, Any]:
    """Return a result that says whose it is."""
    return has((), **members, _meta=has((), **{RELATED: {"taskId": "$task"}}))


MADE: Final = step(asks(1, {"ttl": 60_000}), responds(1, has((), task=task(ttl=60_000))), prompts())


def vectors() -> list[Vector]:
    """Return all of them."""
    return [
        receiver(
            "made",
            "a question as a task is answered with one, and then put to somebody",
            MADE,
            step(of_task(2, "tasks/get"), responds(2, task(ttl=60_000))),
            rules="LEG.10 LEG.3",
        ),
        receiver(
            "plain",
            "a question without the wish for a task is a question",
            step(asks(1), prompts()),
            step(answers(), responds(1, ACCEPT)),
            rules="LEG.10 LEG.3",
        ),
        receiver(
            "result-waits",
            "tasks/result waits for the answer, and is what the question would have been answered with",
            MADE,
            step(of_task(2, "tasks/result")),
            step(of_task(3, "tasks/result")),
            step(
                answers(),
                responds(2, related(**ACCEPT)),
                responds(3, related(**ACCEPT)),
                at=1000,
            ),
            step(of_task(4, "tasks/get"), responds(4, task("completed", lastUpdatedAt={"$time": 1000}))),
            step(of_task(5, "tasks/result"), responds(5, related(**ACCEPT))),
            rules="LEG.10 LEG.4",
        ),
        receiver(
            "declined",
            "an answer that declines is an answer",
            MADE,
            step(answers(DECLINE)),
            step(of_task(2, "tasks/result"), responds(2, related(**DECLINE))),
            rules="LEG.10 LEG.4",
        ),
        receiver(
            "cancelled",
            "cancelled before the answer says so; the question is taken away, and who waits gets an error",
            MADE,
            step(of_task(2, "tasks/result")),
            step(of_task(3, "tasks/cancel"), withdraws(), refuses(2, -32602), responds(3, task("cancelled"))),
            step(of_task(4, "tasks/result"), refuses(4, -32602)),
            rules="LEG.10 LEG.5",
        ),
        receiver(
            "ended",
            "what has ended cannot be cancelled",
            MADE,
            step(answers()),
            step(of_task(2, "tasks/cancel"), refuses(2, -32602)),
            step(of_task(3, "tasks/get"), responds(3, task("completed"))),
            rules="LEG.10 LEG.5",
        ),
        *(
            receiver(
                f"unknown-{word}",
                "an id that is not one of its tasks is unknown to all methods",
                MADE,
                step(of_task(2, "tasks/get", id_), refuses(2, -32602, "$unknown")),
                step(of_task(3, "tasks/result", id_), refuses(3, -32602, "$unknown")),
                step(of_task(4, "tasks/cancel", id_), refuses(4, -32602, "$unknown")),
                rules="LEG.10 LEG.7",
                source=legacy_spec(PAGE, "protocol-errors"),
            )
            for word, id_ in (("other", NOBODYS), ("number", 7), ("null", None))
        ),
        receiver(
            "expired",
            "past its lifetime it is unknown, also to who waits for it, and the question is taken away",
            MADE,
            step(of_task(2, "tasks/result")),
            step(of_task(3, "tasks/get"), responds(3, task()), at=59_999),
            step(waits(), withdraws(), refuses(2, -32602), at=60_000),
            step(of_task(4, "tasks/get"), refuses(4, -32602)),
            rules="LEG.10 LEG.7",
            source=legacy_spec(PAGE, "ttl-and-resource-management"),
        ),
        receiver(
            "listed",
            "its tasks are listed; a cursor that it did not give is refused",
            MADE,
            step(server_says(2, "tasks/list"), responds(2, has(("nextCursor",), tasks=[task()]))),
            step(server_says(3, "tasks/list", {"cursor": "nonsense"}), refuses(3, -32602)),
            rules="LEG.10 LEG.7",
            source=legacy_spec(PAGE, "task-listing"),
        ),
        receiver(
            "undeclared-kind",
            "a kind of question that was not declared makes no task",
            step(asks(1, {}, method="sampling/createMessage", params=SAMPLE), refuses(1, -32601)),
            step(server_says(2, "tasks/list"), responds(2, has((), tasks=[]))),
            rules="LEG.10 INP.2",
        ),
        receiver(
            "bound",
            "there is a bound, which is named",
            step(asks(1, {}), responds(1, has((), task=task())), prompts()),
            step(asks(2, {}), refuses(2, -32603)),
            step(of_task(3, "tasks/get"), responds(3, task())),
            rules="LEG.10 LIM.3",
            limits={"received_tasks": 1},
        ),
        receiver(
            "not-served",
            "who declares no tasks has none: the wish is ignored, and their methods are unknown",
            step(asks(1, {"ttl": 60_000}), prompts()),
            step(answers(), responds(1, ACCEPT)),
            step(of_task(2, "tasks/get", NOBODYS), refuses(2, -32601)),
            rules="LEG.10 LEG.3",
            tasks=False,
        ),
    ]
