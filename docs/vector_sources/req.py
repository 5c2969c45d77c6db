"""REQ: how a requester copes with a call, from its first request to its outcome."""

from __future__ import annotations

from typing import Any, Final

from docs.vector_sources.making import Vector, conversation
from docs.vector_sources.origins import ORIGINS
from docs.vector_sources.speaking import (
    CAPABILITIES,
    DECLINE,
    DONE,
    EXTENSION,
    MODERN,
    VERSION,
    Step,
    form,
    has,
    step,
)

Given = dict[str, Any]
Output = dict[str, Any]

HINT: Final = 5_000
FORMS: Final[dict[str, Any]] = {"elicitation": {}}
ACCEPT: Final[dict[str, Any]] = {"action": "accept", "content": {"ok": True}}
TASK: Final = "task-0123456789abcdefghijk"
OTHER: Final = "other-0123456789abcdefghijk"


def requester(
    id_: str, says: str, *steps: Step | list[Step], rules: str, source: str | None = None, **setup: Any
) -> Vector:
    """Return a conversation with a requester, which can show forms unless told otherwise, and polls."""
    flat = [one for part in steps for one in (part if isinstance(part, list) else [part])]
    first = rules.split()[0]
    return conversation(
        "requester",
        f"{first}/requester/{id_}",
        says,
        flat,
        rules=rules,
        source=source or ORIGINS[first],
        setup={"capabilities": FORMS, "listen": False, **setup},
    )


# -- facts -----------------------------------------------------------------------------------------------


def want(call: str = "a", tool: str = "render", **more: Any) -> Given:
    """Return that somebody wants a tool called."""
    return {"type": "want_call", "call": call, "tool": tool, "arguments": {"frames": 3}, **more}


def result(request: str, told: Any, **more: Any) -> Given:
    """Return that a request was answered."""
    return {
        "type": "response",
        "request": f"${request}",
        "message": {"jsonrpc": "2.0", "id": f"${request}", "result": told},
        **more,
    }


def fails(request: str, code: int, message: str = "no", data: Any = None, **more: Any) -> Given:
    """Return that a request was refused."""
    error = {"code": code, "message": message, **({} if data is None else {"data": data})}
    return {
        "type": "response",
        "request": f"${request}",
        "message": {"jsonrpc": "2.0", "id": f"${request}", "error": error},
        **more,
    }


def http(request: str, status: int, **more: Any) -> Given:
    """Return that a request was answered by a status, without a message."""
    return {"type": "response", "request": f"${request}", "http_status": status, **more}


def breaks(request: str, *, sent: bool = True) -> Given:
    """Return that a connection broke."""
    return {"type": "broken", "request": f"${request}", "sent": sent}


def notified(request: str, method: str, params: Any) -> Given:
    """Return that a notification came on the way to the answer of a request."""
    return {"type": "notification", "request": f"${request}", "method": method, "params": params}


def answers(key: str, response: Any = ACCEPT, call: str = "a") -> Given:
    """Return that somebody answered."""
    return {"type": "answer", "call": call, "key": key, "response": response}


def waits() -> Given:
    """Return that only time passes."""
    return {"type": "wait"}


def stamp(second: int) -> str:
    """Return the server's time, so many seconds after its tasks began."""
    return f"2023-11-14T22:13:{20 + second:02}.000Z"


def task(status: str = "working", *, at: int = 0, id: str = TASK, **more: Any) -> dict[str, Any]:  # noqa: A002
    """Return a task as it stands at that second; ``...`` leaves a member out."""
    members = {
        "taskId": id,
        "status": status,
        "createdAt": stamp(0),
        "lastUpdatedAt": stamp(at),
        "ttlMs": None,
        "pollIntervalMs": HINT,
        **more,
    }
    return {name: value for name, value in members.items() if value is not ...}


def handle(**more: Any) -> dict[str, Any]:
    """Return the result of a call that became a task."""
    return {"resultType": "task", **task(**more)}


def got(status: str = "working", **more: Any) -> dict[str, Any]:
    """Return the result of a poll."""
    return {"resultType": "complete", **task(status, **more)}


def done(**more: Any) -> dict[str, Any]:
    """Return that of the last one."""
    return got("completed", result={"resultType": "complete", **DONE}, **more)


# -- outputs ---------------------------------------------------------------------------------------------


def sends(request: str, method: str, **params: Any) -> Output:
    """Return that a request is sent, which is called so from now on."""
    message = {"jsonrpc": "2.0", "id": f"${request}", "method": method, "params": has((), **params)}
    return {"type": "send_request", "request": f"${request}", "message": message}


def calls(request: str = "call", **params: Any) -> Output:
    """Return that the tool is called."""
    return sends(request, "tools/call", **{"name": "render", "arguments": {"frames": 3}, **params})


def polls(request: str, id: str = TASK) -> Output:  # noqa: A002
    """Return that a task is asked for."""
    return sends(request, "tasks/get", taskId=id)


def updates(request: str, responses: Any) -> Output:
    """Return that answers are sent."""
    return sends(request, "tasks/update", taskId=TASK, inputResponses=responses)


def prompts(key: str, request: Any = None, call: str = "a") -> Output:
    """Return that a question is to be shown."""
    return {"type": "prompt", "call": call, "key": key, "request": form() if request is None else request}


def withdraws(key: str) -> Output:
    """Return that a question is to be taken away."""
    return {"type": "withdraw_prompt", "call": "a", "key": key}


def settles(outcome: str, call: str = "a", **more: Any) -> Output:
    """Return how a call ended; code, message and data are an error's."""
    error = {name: more.pop(name) for name in ("code", "message", "data") if name in more}
    return {
        "type": "settle",
        "call": call,
        "outcome": outcome,
        **({"error": has((), **error)} if error else {}),
        **more,
    }


def completes(call: str = "a") -> Output:
    """Return that it has its result."""
    return settles("completed", call, result=has((), **DONE))


def made(**more: Any) -> list[Step]:
    """Return the steps in which a call becomes a task."""
    return [step(want(), calls()), step(result("call", handle(**more)))]


def asking(*keys: str, at: int = 1, **more: Any) -> dict[str, Any]:
    """Return the result of a poll of a task that asks."""
    return got("input_required", at=at, inputRequests={key: form() for key in keys}, **more)


def parked(*keys: str) -> list[Step]:
    """Return the steps in which a task asks."""
    return [
        *made(),
        step(waits(), polls("get1"), at=HINT),
        step(result("get1", asking(*keys)), *(prompts(key) for key in keys)),
    ]


# -- by rule ---------------------------------------------------------------------------------------------


def results() -> list[Vector]:
    """Return those of REQ.1 and REQ.8."""
    return [
        requester(
            "complete",
            "a result ends the call",
            step(want(), calls()),
            step(result("call", {"resultType": "complete", **DONE}), completes()),
            rules="REQ.1",
        ),
        requester(
            "absent-type",
            "no resultType means complete",
            step(want(), calls()),
            step(result("call", DONE), completes()),
            rules="REQ.1",
            source="docs/specification/2026-07-28/basic/index.mdx#resulttype",
        ),
        requester(
            "is-error",
            "a tool's own error is a result",
            step(want(), calls()),
            step(
                result("call", {**DONE, "isError": True}), settles("completed", result=has((), isError=True))
            ),
            rules="REQ.1",
        ),
        requester(
            "error",
            "a protocol error is a failure, with code, message and data",
            step(want(), calls()),
            step(
                fails("call", -32602, "no such tool", {"x": 1}),
                settles("failed", code=-32602, message="no such tool", data={"x": 1}),
            ),
            rules="REQ.6 REQ.1",
        ),
        requester(
            "stale-code",
            "a draft's -32003 with requiredCapabilities reads as -32021",
            step(want(), calls()),
            step(
                fails("call", -32003, "no", {"requiredCapabilities": {"extensions": {EXTENSION: {}}}}),
                settles(
                    "failed", code=-32021, data={"requiredCapabilities": {"extensions": {EXTENSION: {}}}}
                ),
            ),
            rules="REQ.6",
        ),
        requester(
            "declares",
            "every request says its version and what it declares, the extension beside the rest",
            step(
                want(),
                calls(
                    _meta=has((), **{VERSION: MODERN, CAPABILITIES: {**FORMS, "extensions": {EXTENSION: {}}}})
                ),
            ),
            step(result("call", handle())),
            step(
                waits(),
                sends(
                    "get1",
                    "tasks/get",
                    taskId=TASK,
                    _meta=has(
                        (), **{VERSION: MODERN, CAPABILITIES: {**FORMS, "extensions": {EXTENSION: {}}}}
                    ),
                ),
                at=HINT,
            ),
            rules="REQ.1 NEG.1 NEG.4",
        ),
        requester(
            "declares-no-tasks",
            "who takes no tasks declares none",
            step(want(), calls(_meta=has((), **{CAPABILITIES: FORMS}))),
            step(result("call", DONE), completes()),
            rules="REQ.1 NEG.4",
            tasks=False,
        ),
        requester(
            "task",
            "a task is watched to its end",
            made(),
            step(waits(), polls("get1"), at=HINT),
            step(result("get1", done()), completes()),
            rules="REQ.1",
        ),
        requester(
            "task-failed",
            "a task that failed, with its error",
            made(),
            step(waits(), polls("get1"), at=HINT),
            step(
                result("get1", got("failed", error={"code": -32099, "message": "broke", "data": [1]})),
                settles("failed", code=-32099, message="broke", data=[1]),
            ),
            rules="REQ.6 LIFE.2",
        ),
        requester(
            "task-cancelled",
            "a task that was cancelled",
            made(),
            step(waits(), polls("get1"), at=HINT),
            step(result("get1", got("cancelled")), settles("cancelled")),
            rules="REQ.6",
        ),
        requester(
            "inner-type-absent",
            "the result inside is read with or without resultType",
            made(),
            step(waits(), polls("get1"), at=HINT),
            step(result("get1", got("completed", result=DONE)), completes()),
            rules="REQ.1 LIFE.7",
        ),
        requester(
            "ended-at-once",
            "a handle of a task that has ended: its result is fetched",
            step(want(), calls()),
            step(result("call", handle(status="completed")), polls("get1")),
            step(result("get1", done()), completes()),
            rules="REQ.1 LIFE.3",
        ),
        *(
            requester(
                f"unknown-type-{word}",
                "a resultType that nobody knows: an invalid response, no empty success",
                step(want(), calls()),
                step(result("call", {"resultType": kind, "content": []}), settles("failed", fault="server")),
                rules="REQ.1",
            )
            for word, kind in (("word", "stream"), ("null", None), ("number", 1), ("case", "Complete"))
        ),
        *(
            requester(
                f"bad-handle-{word}",
                "trap 9: a handle that cannot be read: an invalid response, no empty success",
                step(want(), calls()),
                step(result("call", handle(**spoilt)), settles("failed", fault="server")),
                rules="REQ.1",
            )
            for word, spoilt in (
                ("no-id", {"taskId": ...}),
                ("id-number", {"taskId": 7}),
                ("no-status", {"status": ...}),
                ("status", {"status": "dreaming"}),
            )
        ),
        requester(
            "undeclared-task",
            "a task for who declared none is an invalid response",
            step(want(), calls()),
            step(result("call", handle()), settles("failed", fault="server")),
            rules="REQ.1",
            tasks=False,
        ),
        requester(
            "task-for-another-method",
            "a task in answer to anything but a tool call is an invalid response",
            step(
                {
                    "type": "want_request",
                    "call": "a",
                    "method": "resources/read",
                    "params": {"uri": "file:///a"},
                },
                sends("read", "resources/read", uri="file:///a"),
            ),
            step(result("read", handle()), settles("failed", fault="server")),
            rules="REQ.1",
        ),
        requester(
            "rounds",
            "input before there is a result: answered, and the call goes out again with the state",
            step(want(), calls()),
            step(
                result(
                    "call",
                    {
                        "resultType": "input_required",
                        "inputRequests": {"confirm": form()},
                        "requestState": "s-1",
                    },
                ),
                prompts("confirm"),
            ),
            step(answers("confirm"), calls("again", inputResponses={"confirm": ACCEPT}, requestState="s-1")),
            step(result("again", DONE), completes()),
            rules="REQ.1 INP.4",
            source="docs/specification/2026-07-28/basic/patterns/mrtr.mdx#client-requirements-basic-workflow",
        ),
        requester(
            "two-rounds",
            "each round has its own keys and its own state",
            step(want(), calls()),
            step(
                result(
                    "call",
                    {
                        "resultType": "input_required",
                        "inputRequests": {"k": form("One?")},
                        "requestState": "s-1",
                    },
                ),
                prompts("k", form("One?")),
            ),
            step(answers("k"), calls("second", inputResponses={"k": ACCEPT}, requestState="s-1")),
            step(
                result(
                    "second",
                    {
                        "resultType": "input_required",
                        "inputRequests": {"k": form("Two?")},
                        "requestState": "s-2",
                    },
                ),
                prompts("k", form("Two?")),
            ),
            step(answers("k", DECLINE), calls("third", inputResponses={"k": DECLINE}, requestState="s-2")),
            step(result("third", DONE), completes()),
            rules="REQ.1 INP.4",
            source="docs/specification/2026-07-28/basic/patterns/mrtr.mdx#client-requirements-basic-workflow",
        ),
        requester(
            "round-then-task",
            "a round, and then a task whose keys are its own",
            step(want(), calls()),
            step(
                result(
                    "call",
                    {"resultType": "input_required", "inputRequests": {"k": form()}, "requestState": "s-1"},
                ),
                prompts("k"),
            ),
            step(answers("k"), calls("again", inputResponses={"k": ACCEPT})),
            step(result("again", handle())),
            step(waits(), polls("get1"), at=HINT),
            step(result("get1", asking("k")), prompts("k")),
            rules="REQ.1 INP.4",
        ),
        requester(
            "output-schema",
            "trap 10: a handle is no result to hold an output schema against",
            step(want(), calls()),
            step(result("call", handle())),
            step(waits(), polls("get1"), at=HINT),
            step(
                result("get1", got("completed", result={**DONE, "structuredContent": {"frames": 3}})),
                settles("completed", result=has((), structuredContent={"frames": 3})),
            ),
            rules="REQ.8 REQ.1",
        ),
    ]


def schedule() -> list[Vector]:
    """Return those of REQ.2 and REQ.3."""
    return [
        requester(
            "first-poll",
            "the first poll honours the hint, and so do the others",
            made(),
            step(waits(), at=HINT - 1),
            step(waits(), polls("get1"), at=HINT),
            step(result("get1", got(at=1))),
            step(waits(), at=2 * HINT - 1),
            step(waits(), polls("get2"), at=2 * HINT),
            rules="REQ.2",
        ),
        requester(
            "no-hint",
            "without a hint its own interval counts",
            made(pollIntervalMs=...),
            step(waits(), at=699),
            step(waits(), polls("get1"), at=700),
            rules="REQ.2",
            limits={"poll_interval_ms": 700},
        ),
        *(
            requester(
                f"hint-{word}",
                "trap 16: a hint that is not positive makes no hot loop",
                made(pollIntervalMs=hint),
                step(waits(), at=999),
                step(waits(), polls("get1"), at=1000),
                step(result("get1", got(at=1, pollIntervalMs=hint))),
                step(waits(), at=1999),
                step(waits(), polls("get2"), at=2000),
                rules="REQ.2",
                limits={"poll_interval_ms": 1000},
            )
            for word, hint in (("zero", 0), ("negative", -1), ("very-negative", -(2**53) + 1))
        ),
        requester(
            "tiny-hint",
            "a tiny hint is held to its own minimum",
            made(pollIntervalMs=1),
            step(waits(), at=249),
            step(waits(), polls("get1"), at=250),
            rules="REQ.2",
            limits={"poll_floor_ms": 250},
        ),
        requester(
            "hint-changes",
            "a hint may change, and is in force with the answer that brings it",
            made(pollIntervalMs=1000),
            step(waits(), polls("get1"), at=1000),
            step(result("get1", got(at=1, pollIntervalMs=30_000))),
            step(waits(), at=30_999),
            step(waits(), polls("get2"), at=31_000),
            step(result("get2", got(at=2, pollIntervalMs=2000))),
            step(waits(), polls("get3"), at=33_000),
            rules="REQ.2",
        ),
        requester(
            "hint-stays",
            "an answer without a hint leaves the last one in force",
            made(pollIntervalMs=7000),
            step(waits(), polls("get1"), at=7000),
            step(result("get1", got(at=1, pollIntervalMs=...))),
            step(waits(), at=13_999),
            step(waits(), polls("get2"), at=14_000),
            rules="REQ.2",
        ),
        requester(
            "two-schedules",
            "trap 17: each task has its own schedule",
            step(want(), calls("one")),
            step(result("one", handle(pollIntervalMs=500))),
            step(want("b"), calls("two")),
            step(result("two", handle(id=OTHER, pollIntervalMs=1200))),
            step(waits(), polls("get1"), at=500),
            step(result("get1", got(at=1, pollIntervalMs=500))),
            step(waits(), polls("get2"), at=1000),
            step(result("get2", got(at=2, pollIntervalMs=500))),
            step(waits(), polls("get3", OTHER), at=1200),
            step(waits(), polls("get4"), at=1500),
            rules="REQ.2",
        ),
        requester(
            "one-at-a-time",
            "a slow server has one poll of a task at a time",
            made(pollIntervalMs=100),
            step(waits(), polls("get1"), at=100),
            step(waits(), at=20_000),
            rules="REQ.2",
        ),
        *(
            requester(
                f"retry-after-{status}",
                "Retry-After is honoured",
                made(),
                step(waits(), polls("get1"), at=HINT),
                step(http("get1", status, retry_after_ms=120_000)),
                step(waits(), at=HINT + 119_999),
                step(waits(), polls("get2"), at=HINT + 120_000),
                rules="REQ.2",
            )
            for status in (429, 503)
        ),
        *(
            requester(
                f"failed-poll-{word}",
                "trap 18: a failed poll is not the end of the task",
                made(),
                step(waits(), polls("get1"), at=HINT),
                step(failure),
                step(waits(), polls("get2"), at=3 * HINT),
                step(result("get2", done(at=2)), completes()),
                rules="REQ.3",
            )
            for word, failure in (
                ("reset", breaks("get1")),
                ("unsent", breaks("get1", sent=False)),
                ("error", fails("get1", -32603)),
                ("unknown-error", fails("get1", -32000)),
                ("status", http("get1", 502)),
                ("unknown-status", result("get1", got("running", at=1))),
                ("unknown-type", result("get1", {**got(at=1), "resultType": "partial"})),
                ("handle", result("get1", {**got(at=1), "resultType": "task"})),
                ("empty", result("get1", {})),
            )
        ),
        requester(
            "backoff",
            "failed polls back off, and an answer ends that",
            made(pollIntervalMs=1000),
            step(waits(), polls("get1"), at=1000),
            step(fails("get1", -32603)),
            step(waits(), polls("get2"), at=3000),
            step(fails("get2", -32603)),
            step(waits(), at=6999),
            step(waits(), polls("get3"), at=7000),
            step(fails("get3", -32603)),
            step(waits(), at=10_999),
            step(waits(), polls("get4"), at=11_000),
            step(result("get4", got(at=1, pollIntervalMs=1000))),
            step(waits(), polls("get5"), at=12_000),
            rules="REQ.3 REQ.2",
            limits={"first_backoff_ms": 2000, "last_backoff_ms": 4000},
        ),
        requester(
            "deadline",
            "past the caller's deadline: the observation is lost, which is no failure",
            step(want(deadline_ms=7000), calls()),
            step(result("call", handle())),
            step(waits(), polls("get1"), at=HINT),
            step(fails("get1", -32603)),
            step(waits(), settles("observation_lost"), at=7000),
            rules="REQ.3 REQ.6",
        ),
        requester(
            "outcome-unknown",
            "a call that was sent and got no answer is not sent again",
            step(want(), calls()),
            step(breaks("call"), settles("observation_lost")),
            rules="REQ.3",
        ),
        requester(
            "never-sent",
            "a call that never left has failed",
            step(want(), calls()),
            step(breaks("call", sent=False), settles("failed", fault="network")),
            rules="REQ.3",
        ),
        *(
            requester(
                f"error{code}",
                "an error that would come again ends the observation, and is no failure of the task",
                made(),
                step(waits(), polls("get1"), at=HINT),
                step(fails("get1", code), settles("observation_lost")),
                rules="REQ.3",
            )
            for code in (-32601, -32021, -32022, -32020)
        ),
    ]


def questions() -> list[Vector]:
    """Return those of REQ.4."""
    return [
        requester(
            "asked-once",
            "a question is shown once, however often it is seen",
            parked("confirm"),
            step(waits(), polls("get2"), at=2 * HINT),
            step(result("get2", asking("confirm", at=1))),
            rules="REQ.4",
        ),
        requester(
            "answered-once",
            "an answer is sent once, also where the question is still there when the next view comes",
            parked("confirm"),
            step(answers("confirm"), updates("update", {"confirm": ACCEPT})),
            step(result("update", {"resultType": "complete"})),
            step(waits(), polls("get2"), at=2 * HINT),
            step(result("get2", asking("confirm", at=1))),
            step(waits(), polls("get3"), at=3 * HINT),
            step(result("get3", done(at=2)), completes()),
            rules="REQ.4",
        ),
        requester(
            "several",
            "several are shown at once, and answered as they come",
            parked("a", "b"),
            step(answers("b"), updates("first", {"b": ACCEPT})),
            step(result("first", {"resultType": "complete"})),
            step(answers("a", DECLINE), updates("second", {"a": DECLINE})),
            rules="REQ.4 INP.3",
        ),
        requester(
            "new-keys",
            "a key that is new is a new question",
            parked("confirm"),
            step(answers("confirm"), updates("update", {"confirm": ACCEPT})),
            step(result("update", {"resultType": "complete"})),
            step(waits(), polls("get2"), at=2 * HINT),
            step(result("get2", asking("confirm.2", at=2)), prompts("confirm.2")),
            rules="REQ.4 INP.1",
        ),
        requester(
            "withdrawn-at-the-end",
            "a question is taken away when the task ends",
            parked("confirm"),
            step(waits(), polls("get2"), at=2 * HINT),
            step(result("get2", done(at=2)), withdraws("confirm"), completes()),
            rules="REQ.4",
        ),
        requester(
            "withdrawn",
            "and when it is no longer asked",
            parked("confirm"),
            step(waits(), polls("get2"), at=2 * HINT),
            step(result("get2", got(at=2)), withdraws("confirm")),
            rules="REQ.4",
        ),
        requester(
            "answer-not-heard",
            "an answer that may not have arrived is sent again, the same under the same key",
            parked("confirm"),
            step(answers("confirm"), updates("first", {"confirm": ACCEPT})),
            step(breaks("first")),
            step(waits(), updates("second", {"confirm": ACCEPT}), at=HINT + 500),
            rules="REQ.4",
            limits={"first_backoff_ms": 500},
        ),
        requester(
            "after-a-restart",
            "what was answered before a restart is not asked again",
            parked("confirm"),
            step(answers("confirm"), updates("update", {"confirm": ACCEPT})),
            step(result("update", {"resultType": "complete"})),
            step({"type": "restart"}),
            step({"type": "resume", "call": "b", "of": "a"}, polls("get2")),
            step(result("get2", asking("confirm"))),
            step(waits(), polls("get3"), at=2 * HINT),
            step(result("get3", done(at=2)), completes("b")),
            rules="REQ.4 REQ.6",
        ),
        requester(
            "unanswered-before-a-restart",
            "what was shown and not answered is shown again, and said to be so",
            parked("confirm"),
            step({"type": "restart"}),
            step({"type": "resume", "call": "b", "of": "a"}, polls("get2")),
            step(result("get2", asking("confirm")), {**prompts("confirm", call="b"), "again": True}),
            step(answers("confirm", call="b"), updates("update", {"confirm": ACCEPT})),
            rules="REQ.4 REQ.6",
        ),
        requester(
            "answered-before-a-restart",
            "an answer that was given and not sent for sure is sent, and not asked again",
            parked("confirm"),
            step(answers("confirm"), updates("first", {"confirm": ACCEPT})),
            step({"type": "restart"}),
            step({"type": "resume", "call": "b", "of": "a"}, polls("get2")),
            step(result("get2", asking("confirm")), updates("second", {"confirm": ACCEPT})),
            rules="REQ.4 REQ.6",
        ),
    ]


def ends() -> list[Vector]:
    """Return those of REQ.5 and REQ.6."""
    listened = [
        *made(),
        step(waits(), sends("listen", "subscriptions/listen", notifications={"taskIds": [TASK]}), at=20),
        step(
            notified(
                "listen", "notifications/subscriptions/acknowledged", {"notifications": {"taskIds": [TASK]}}
            )
        ),
    ]
    listening: dict[str, Any] = {"listen": True, "limits": {"listen_delay_ms": 20}}
    return [
        requester(
            "by-notification",
            "trap 19: completion by notification: one outcome, and nothing is heard of it again",
            listened,
            step(
                notified("listen", "notifications/tasks", task("completed", at=1, result=DONE)),
                completes(),
                {"type": "stop_request", "request": "$listen"},
            ),
            step(waits(), at=100_000),
            rules="REQ.5",
            **listening,
        ),
        requester(
            "other-task",
            "a view of another task changes nothing",
            made(),
            step(waits(), polls("get1"), at=HINT),
            step(result("get1", done(at=1, id=OTHER))),
            step(waits(), polls("get2"), at=3 * HINT),
            step(result("get2", done(at=1)), completes()),
            rules="REQ.5",
        ),
        requester(
            "other-task-by-notification",
            "nor does a notification of one",
            listened,
            step(notified("listen", "notifications/tasks", task("completed", at=1, id=OTHER, result=DONE))),
            rules="REQ.5",
            **listening,
        ),
        requester(
            "stale-view",
            "a poll that was answered before newer news came changes nothing when it arrives after them",
            listened,
            step(waits(), polls("get1"), at=HINT),
            step(
                notified(
                    "listen", "notifications/tasks", task("input_required", at=9, inputRequests={"k": form()})
                ),
                prompts("k"),
            ),
            step(result("get1", got(at=4))),
            rules="REQ.5",
            **listening,
        ),
        requester(
            "lifetime-without-news",
            "past its lifetime without news: the next poll is the last, and the task has expired",
            made(ttlMs=12_000),
            step(waits(), polls("get1"), at=HINT),
            step(breaks("get1")),
            step(waits(), polls("get2"), at=2 * HINT),
            step(breaks("get2")),
            step(waits(), polls("get3"), at=15_000),
            step(breaks("get3"), settles("expired")),
            rules="REQ.5",
        ),
        requester(
            "unlimited",
            "trap 15: null is no lifetime of zero",
            made(ttlMs=None),
            step(waits(), polls("get1"), at=HINT),
            step(result("get1", got(at=1, ttlMs=None))),
            step(waits(), polls("get2"), at=2 * HINT),
            rules="REQ.5",
        ),
        requester(
            "unknown",
            "a task that the server does not know has expired",
            made(),
            step(waits(), polls("get1"), at=HINT),
            step(fails("get1", -32602, "Task not found"), settles("expired")),
            rules="REQ.6",
        ),
        requester(
            "resumed",
            "a saved reference goes on in a new process, and asks at once",
            made(),
            step({"type": "restart"}),
            step({"type": "resume", "call": "b", "of": "a"}, polls("get1")),
            step(result("get1", got(at=1))),
            step(waits(), polls("get2"), at=HINT),
            step(result("get2", done(at=2)), completes("b")),
            rules="REQ.6",
        ),
        requester(
            "resumed-unknown",
            "a task that is unknown by then has expired, which is no exception",
            made(),
            step({"type": "restart"}),
            step({"type": "resume", "call": "b", "of": "a"}, polls("get1")),
            step(fails("get1", -32602), settles("expired", "b")),
            rules="REQ.6",
        ),
        *(
            requester(
                f"no-reference-{word}",
                "what is no reference is its caller's fault, and nothing is sent",
                step(
                    {"type": "resume", "call": "a", "reference": reference}, settles("failed", fault="caller")
                ),
                rules="REQ.6",
            )
            for word, reference in (("null", None), ("text", "x"), ("empty", {}), ("array", []))
        ),
    ]


def news() -> list[Vector]:
    """Return what SUB and HTTP.3 ask of a requester."""
    opened = [
        *made(),
        step(waits(), sends("listen", "subscriptions/listen", notifications={"taskIds": [TASK]}), at=20),
    ]
    agreed = step(
        notified("listen", "notifications/subscriptions/acknowledged", {"notifications": {"taskIds": [TASK]}})
    )
    listening: dict[str, Any] = {"listen": True, "limits": {"listen_delay_ms": 20}}
    good = {"name": "good", "inputSchema": {"type": "object"}}
    bad = {
        "name": "bad",
        "inputSchema": {"type": "object", "properties": {"a": {"type": "number", "x-mcp-header": "A"}}},
    }
    listed = {"type": "want_request", "call": "a", "method": "tools/list", "params": {}}
    return [
        requester(
            "listening-refused",
            "a server that does not know listen streams: its tasks are polled",
            opened,
            step(fails("listen", -32601)),
            step(waits(), polls("get1"), at=HINT),
            step(result("get1", done(at=1)), completes()),
            rules="SUB.1 REQ.2",
            **listening,
        ),
        requester(
            "listening-left-out",
            "a task that is not agreed to is polled",
            opened,
            step(
                notified("listen", "notifications/subscriptions/acknowledged", {"notifications": {}}),
                {"type": "stop_request", "request": "$listen"},
            ),
            step(waits(), polls("get1"), at=HINT),
            rules="SUB.1 REQ.2",
            **listening,
        ),
        requester(
            "before-the-acknowledgement",
            "nothing on a stream counts before the acknowledgement",
            opened,
            step(notified("listen", "notifications/tasks", task("completed", at=1, result=DONE))),
            agreed,
            step(
                notified("listen", "notifications/tasks", task("completed", at=1, result=DONE)),
                completes(),
                {"type": "stop_request", "request": "$listen"},
            ),
            rules="SUB.1",
            **listening,
        ),
        requester(
            "asked-by-notification",
            "a question may come by notification, and is answered once",
            opened,
            agreed,
            step(
                notified(
                    "listen",
                    "notifications/tasks",
                    task("input_required", at=1, inputRequests={"confirm": form()}),
                ),
                prompts("confirm"),
            ),
            step(answers("confirm"), updates("update", {"confirm": ACCEPT})),
            step(result("update", {"resultType": "complete"})),
            step(
                notified(
                    "listen",
                    "notifications/tasks",
                    task("input_required", at=1, inputRequests={"confirm": form()}),
                )
            ),
            rules="REQ.4 SUB.2",
            **listening,
        ),
        requester(
            "other-notifications",
            "what is no news of a task changes nothing",
            opened,
            agreed,
            step(notified("listen", "notifications/message", {"level": "error", "data": "x"})),
            step(notified("listen", "notifications/tasks", {"taskId": 7})),
            step(notified("listen", "notifications/tasks", {})),
            rules="REQ.5 SUB.3",
            **listening,
        ),
        requester(
            "wrongly-annotated-tools",
            "a tool whose annotation is invalid is left out of what is listed",
            step(listed, sends("list", "tools/list")),
            step(
                result("list", {"resultType": "complete", "tools": [bad, good]}),
                settles("completed", result=has((), tools=[good])),
            ),
            rules="HTTP.3",
            source="docs/specification/2026-07-28/basic/transports/streamable-http.mdx#schema-extension",
            mirror_arguments=True,
        ),
    ]


def cancellations() -> list[Vector]:
    """Return those of REQ.7."""
    return [
        requester(
            "cancel",
            "intent is sent, and the call is over at once",
            made(),
            step(
                {"type": "cancel", "call": "a"},
                sends("cancel", "tasks/cancel", taskId=TASK),
                settles("cancelled"),
            ),
            step(result("cancel", {"resultType": "complete"})),
            step(waits(), at=10 * HINT),
            rules="REQ.7",
        ),
        requester(
            "cancel-and-wait",
            "or as the task ends",
            made(),
            step({"type": "cancel", "call": "a", "wait": True}, sends("cancel", "tasks/cancel", taskId=TASK)),
            step(result("cancel", {"resultType": "complete"})),
            step(waits(), polls("get1"), at=HINT),
            step(result("get1", got("cancelled", at=1)), settles("cancelled")),
            rules="REQ.7",
        ),
        requester(
            "cancel-and-wait-done",
            "which may have been done first",
            made(),
            step({"type": "cancel", "call": "a", "wait": True}, sends("cancel", "tasks/cancel", taskId=TASK)),
            step(result("cancel", {"resultType": "complete"})),
            step(waits(), polls("get1"), at=HINT),
            step(result("get1", done(at=1)), completes()),
            rules="REQ.7",
        ),
        requester(
            "cancel-while-asked",
            "trap 20: the question is taken away; a late completion undoes nothing",
            parked("confirm"),
            step(
                {"type": "cancel", "call": "a"},
                withdraws("confirm"),
                sends("cancel", "tasks/cancel", taskId=TASK),
                settles("cancelled"),
            ),
            step(answers("confirm")),
            step(result("cancel", {"resultType": "complete"})),
            step(waits(), at=10 * HINT),
            rules="REQ.7 REQ.4",
        ),
        requester(
            "cancel-before-a-task",
            "a call that is not answered yet: its request is stopped, and there is no task to cancel",
            step(want(), calls()),
            step(
                {"type": "cancel", "call": "a"},
                {"type": "stop_request", "request": "$call"},
                settles("cancelled"),
            ),
            rules="REQ.7",
        ),
        requester(
            "abandon",
            "a wait that is abandoned cancels no task",
            made(),
            step({"type": "abandon", "call": "a"}, settles("observation_lost")),
            step(waits(), at=10 * HINT),
            rules="REQ.7",
        ),
        requester(
            "abandon-and-resume",
            "and it can be gone on with",
            made(),
            step({"type": "abandon", "call": "a"}, settles("observation_lost")),
            step({"type": "resume", "call": "b", "of": "a"}, polls("get1")),
            step(result("get1", done(at=1)), completes("b")),
            rules="REQ.7 REQ.6",
        ),
    ]


def vectors() -> list[Vector]:
    """Return all of them."""
    return [*results(), *schedule(), *questions(), *ends(), *news(), *cancellations()]
