"""PRX: conversations of a proxy with its callers on one side and its upstreams on the other."""

from __future__ import annotations

from typing import Any, Final

from docs.vector_sources.making import Vector, conversation
from docs.vector_sources.origins import ORIGINS
from docs.vector_sources.speaking import (
    ACCEPT,
    ANY,
    CAPABILITIES,
    DONE,
    EXTENSION,
    MODERN,
    SERVER_INFO,
    SUBSCRIPTION,
    TASKS,
    Given,
    Output,
    Step,
    acked,
    acknowledges,
    ask,
    call,
    cancel,
    completed,
    created,
    error,
    final,
    form,
    get,
    has,
    leaves,
    listen,
    reply,
    seen,
    step,
    store,
    tells,
    unknown,
    update,
    wait,
)

ONE: Final = [{"name": "renderer", "tools": ["render"], "tasks": True}]
PLAIN: Final = [{"name": "renderer", "tools": ["render"], "tasks": False}]
TWO: Final = [
    {"name": "first", "tools": ["render"], "tasks": True},
    {"name": "second", "tools": ["render"], "tasks": True},
]
ADA: Final[dict[str, Any]] = {"principal": "ada"}
HOUR_MS: Final = 3_600_000


def proxy(
    id_: str, says: str, *steps: Step | list[Step], rules: str, source: str | None = None, **setup: Any
) -> Vector:
    """Return a conversation with a proxy before one upstream that has tasks, unless told otherwise."""
    flat = [one for part in steps for one in (part if isinstance(part, list) else [part])]
    first = rules.split()[0]
    return conversation(
        "proxy",
        f"{first}/proxy/{id_}",
        says,
        flat,
        rules=rules,
        source=source or ORIGINS[first],
        setup={"upstreams": ONE, **setup},
    )


# -- upstream --------------------------------------------------------------------------------------------


def up(
    request: str,
    method: str,
    *,
    declares: bool = True,
    upstream: str = "renderer",
    task_path: bool | None = None,
    **params: Any,
) -> Output:
    """Return a request to an upstream, which is called so from now on."""
    capabilities = has((), extensions=has((), **{EXTENSION: ANY})) if declares else has(("extensions",))
    meta = has((SERVER_INFO, SUBSCRIPTION), **{CAPABILITIES: capabilities, **params.pop("meta", {})})
    message = has((), jsonrpc="2.0", method=method, params=has((), **params, _meta=meta))
    path = {} if task_path is None else {"task_path": task_path}
    return {
        "type": "upstream_request",
        "upstream": upstream,
        "request": f"${request}",
        "message": message,
        **path,
    }


def calls(request: str = "up", **more: Any) -> Output:
    """Return that the tool is called upstream."""
    return up(request, "tools/call", **{"name": "render", **more})


def polls(request: str, id_: str = "up-7", **more: Any) -> Output:
    """Return that a task is asked for upstream."""
    return up(request, "tasks/get", taskId=id_, **more)


def returns(request: str, result: Any) -> Given:
    """Return that an upstream answers."""
    return {"type": "upstream", "request": f"${request}", "does": "return", "result": result}


def refuses(request: str, code: int, message: str = "no", **more: Any) -> Given:
    """Return that it refuses."""
    return {
        "type": "upstream",
        "request": f"${request}",
        "does": "fail",
        "error": {"code": code, "message": message, **more},
    }


def breaks(request: str, *, sent: bool = True) -> Given:
    """Return that the connection broke."""
    return {"type": "upstream", "request": f"${request}", "does": "break", "sent": sent}


def pushes(request: str, method: str, params: Any) -> Given:
    """Return that it notifies."""
    return {
        "type": "upstream",
        "request": f"${request}",
        "does": "notify",
        "method": method,
        "params": params,
    }


def upstream_task(status: str = "working", *, id: str = "up-7", at: int = 0, **more: Any) -> dict[str, Any]:  # noqa: A002
    """Return a task as its upstream shows it; it changed that many seconds after the beginning."""
    return {
        "taskId": id,
        "status": status,
        "createdAt": "2023-11-14T22:13:20.000Z",
        "lastUpdatedAt": f"2023-11-14T22:13:{20 + at:02}.000Z",
        "ttlMs": 60_000,
        "pollIntervalMs": 1000,
        **more,
    }


def handle(**more: Any) -> dict[str, Any]:
    """Return the answer to a call that became a task upstream."""
    return {"resultType": "task", **upstream_task(**more)}


def got(status: str = "working", **more: Any) -> dict[str, Any]:
    """Return that to a poll."""
    return {"resultType": "complete", **upstream_task(status, **more)}


def made(exchange: str = "1", name: str = "$task", **facts: Any) -> list[Step]:
    """Return the steps in which a call becomes a task upstream, and here."""
    facts = facts or ADA
    return [
        step(call(exchange, **facts), calls(f"made{exchange}")),
        step(returns(f"made{exchange}", handle()), created(exchange, name)),
    ]


def vectors() -> list[Vector]:
    """Return all of them."""
    return [*paths(), *tasks(), *options()]


def paths() -> list[Vector]:
    """Return those of PRX.1 to PRX.6, PRX.9 and PRX.15."""
    return [
        proxy(
            "meta",
            "an upstream hears the proxy, not the caller; trace and application keys pass",
            step(
                ask(
                    "1",
                    "tools/call",
                    {"name": "render", "arguments": {}},
                    meta={
                        "io.modelcontextprotocol/clientInfo": {"name": "caller", "version": "9"},
                        "traceparent": "00-1",
                        "app/x": 1,
                    },
                    **ADA,
                ),
                calls(
                    meta={
                        "io.modelcontextprotocol/clientInfo": has((), name="vectors"),
                        "traceparent": "00-1",
                        "app/x": 1,
                    }
                ),
            ),
            rules="PRX.1",
        ),
        proxy(
            "intersection",
            "an upstream hears of no more than the caller declares",
            step(
                call("1", declared={}, **ADA),
                calls(declares=False, meta={CAPABILITIES: has(("elicitation", "extensions", "sampling"))}),
            ),
            rules="PRX.1 PRX.10",
        ),
        proxy(
            "advertised",
            "tasks are advertised where an upstream has them",
            made(),
            step(
                ask("2", "server/discover", **ADA),
                reply("2", has((), capabilities=has(("tasks",), extensions=has((), **{EXTENSION: ANY})))),
            ),
            rules="PRX.2 NEG.9",
        ),
        proxy(
            "not-advertised",
            "and where none has, they are not, and their methods are unknown",
            step(call("1", **ADA), calls(declares=False)),
            step(returns("up", DONE), completed("1", **DONE)),
            step(ask("2", "server/discover", **ADA), reply("2", has((), capabilities=has(("extensions",))))),
            step(get("3", "x", **ADA), error("3", -32601, 404)),
            rules="PRX.2 NEG.7",
            upstreams=PLAIN,
        ),
        proxy(
            "task-path",
            "what may become a task goes past every cache, also where it completes at once",
            step(call("1", **ADA), calls("one", task_path=True)),
            step(returns("one", {**DONE, "ttlMs": HOUR_MS, "cacheScope": "public"}), completed("1", **DONE)),
            step(call("2", **ADA), calls("two", task_path=True)),
            rules="PRX.3",
            cached_methods=["tools/call"],
        ),
        proxy(
            "ordinary-cache",
            "an ordinary call keeps its cache",
            step(call("1", declared={}, **ADA), calls("one", declares=False, task_path=False)),
            step(returns("one", {**DONE, "ttlMs": 5000, "cacheScope": "private"}), completed("1", **DONE)),
            step(call("2", declared={}, **ADA), completed("2", **DONE), at=4999),
            step(call("3", declared={}, **ADA), calls("two", declares=False), at=5000),
            rules="PRX.3",
            cached_methods=["tools/call"],
        ),
        proxy(
            "sent-once",
            "a call that was sent and not answered is not sent again",
            step(call("1", **ADA), calls()),
            step(breaks("up"), error("1", -32603, data={"reason": "outcome_unknown", "retryable": False})),
            rules="PRX.4",
        ),
        proxy(
            "sent-again",
            "one that provably was not sent is",
            step(call("1", **ADA), calls("one")),
            step(breaks("one", sent=False), calls("two")),
            step(returns("two", DONE), completed("1", **DONE)),
            rules="PRX.4",
        ),
        proxy(
            "handles",
            "handles are the proxy's own, header-safe and never the upstream's; two tasks have two",
            step(call("1", **ADA), calls("one")),
            step(
                returns("one", handle(id="up-7")),
                reply("1", has((), resultType="task", taskId={"$pattern": "[!-~]{22,}"})),
            ),
            step(call("2", **ADA), calls("two")),
            step(returns("two", handle(id="up-8")), created("2", "$second")),
            step(call("3", **ADA), calls("three")),
            step(returns("three", handle(id="up-9")), reply("3", has((), taskId={"$other_than": "$second"}))),
            rules="PRX.5 LIFE.6",
        ),
        proxy(
            "echoed",
            "what is presented is echoed",
            made(),
            step(get("2", **ADA), polls("poll")),
            step(returns("poll", got()), seen("2")),
            step({"type": "host", "does": "restart"}),
            step(get("3", **ADA), polls("again")),
            step(returns("again", got()), seen("3")),
            rules="PRX.5 PRX.6",
        ),
        proxy(
            "durable-first",
            "a handle is released once its binding is durable",
            step(call("1", **ADA), calls()),
            step(returns("up", handle())),
            step(store("commit"), created("1")),
            rules="PRX.6",
            store="held",
        ),
        proxy(
            "not-durable",
            "where that fails, the upstream is told to cancel, and the caller gets an error",
            step(call("1", **ADA), calls()),
            step(returns("up", handle())),
            step(store("fail"), up("cancel", "tasks/cancel", taskId="up-7"), error("1", -32603)),
            rules="PRX.6",
            store="held",
        ),
        proxy(
            "trap-26-gone",
            "trap 26: a caller who has gone before its handle was durable: the upstream is told to cancel",
            step(call("1", **ADA), calls()),
            step(returns("up", handle())),
            step(leaves("1")),
            step(store("commit"), up("cancel", "tasks/cancel", taskId="up-7")),
            rules="PRX.6 CAN.7",
            store="held",
        ),
        proxy(
            "headers-checked",
            "headers are checked against the handle; what goes up has the upstream's id",
            made(),
            step(
                get(
                    "2",
                    headers=[
                        ["MCP-Protocol-Version", MODERN],
                        ["Mcp-Method", "tasks/get"],
                        ["Mcp-Name", "$task"],
                    ],
                    **ADA,
                ),
                polls("poll"),
            ),
            step(returns("poll", got()), seen("2")),
            step(
                get(
                    "3",
                    headers=[
                        ["MCP-Protocol-Version", MODERN],
                        ["Mcp-Method", "tasks/get"],
                        ["Mcp-Name", "up-7"],
                    ],
                    **ADA,
                ),
                error("3", -32020, 400),
            ),
            step(
                get("4", headers=[["MCP-Protocol-Version", MODERN], ["Mcp-Method", "tasks/get"]], **ADA),
                error("4", -32020, 400),
            ),
            rules="PRX.9 HTTP.2",
        ),
        proxy(
            "two-upstreams",
            "tools of several upstreams have their names in front",
            step(
                ask("1", "tools/list", **ADA),
                reply("1", has((), tools=[has((), name="first__render"), has((), name="second__render")])),
            ),
            step(call("2", "second__render", **ADA), calls("up", upstream="second")),
            step(returns("up", handle()), created("2")),
            step(get("3", **ADA), polls("poll", upstream="second")),
            rules="PRX.15",
            upstreams=TWO,
        ),
        proxy(
            "plain-name",
            "those of a single one have their own",
            step(ask("1", "tools/list", **ADA), reply("1", has((), tools=[has((), name="render")]))),
            rules="PRX.15",
        ),
        proxy(
            "same-id-twice",
            "two upstreams may have tasks of the same id: each handle leads to its own",
            step(call("1", "first__render", **ADA), calls("one", upstream="first")),
            step(returns("one", handle()), created("1", "$a")),
            step(call("2", "second__render", **ADA), calls("two", upstream="second")),
            step(returns("two", handle()), created("2", "$b")),
            step(get("3", "$a", **ADA), polls("poll1", upstream="first")),
            step(get("4", "$b", **ADA), polls("poll2", upstream="second")),
            rules="PRX.15 PRX.7",
            upstreams=TWO,
        ),
    ]


def tasks() -> list[Vector]:
    """Return those of PRX.7 to PRX.14."""
    listened = [
        *made(),
        step(
            listen("2", "$task", **ADA),
            acknowledges("2", "$task"),
            up("listen", "subscriptions/listen", notifications={"taskIds": ["up-7"]}),
            polls("poll"),
        ),
        step(
            pushes(
                "listen", "notifications/subscriptions/acknowledged", {"notifications": {"taskIds": ["up-7"]}}
            )
        ),
        step(returns("poll", got()), tells("2")),
    ]
    return [
        proxy(
            "owner",
            "the owner, and nobody else; no upstream is asked",
            made(),
            step(get("2", principal="bob"), unknown("2")),
            step(update("3", {"confirm": ACCEPT}, principal="bob"), unknown("3")),
            step(cancel("4", principal="bob"), unknown("4")),
            step(get("5"), unknown("5")),
            rules="PRX.7 SEC.1 GET.2",
        ),
        proxy(
            "upstream-id",
            "the upstream's own id is nobody's handle",
            made(),
            step(get("2", "up-7", **ADA), unknown("2")),
            step(cancel("3", "up-7", **ADA), unknown("3")),
            rules="PRX.7 PRX.5",
        ),
        proxy(
            "undeclared",
            "a request that does not declare tasks may not ask for one",
            made(),
            step(get("2", declared={}, **ADA), error("2", -32021, 400, data={"requiredCapabilities": TASKS})),
            rules="PRX.7 NEG.6",
        ),
        proxy(
            "cancel",
            "an empty acknowledgement, no invented status; the handle stays",
            made(),
            step(cancel("2", **ADA), up("cancel", "tasks/cancel", taskId="up-7")),
            step(returns("cancel", {"resultType": "complete"}), acked("2")),
            step(get("3", **ADA), polls("poll")),
            step(returns("poll", got()), seen("3")),
            rules="PRX.11 CAN.6",
        ),
        proxy(
            "cancel-ended",
            "after the end too, without asking the upstream",
            made(),
            step(get("2", **ADA), polls("poll")),
            step(
                returns("poll", got("completed", at=1, result=DONE)), seen("2", "completed", result=final())
            ),
            step(cancel("3", **ADA), acked("3")),
            step(get("4", **ADA), seen("4", "completed", result=final())),
            rules="PRX.11 PRX.13",
        ),
        proxy(
            "end-kept",
            "an end is kept before it is told, and served from then on, whatever the upstream does",
            made(),
            step(get("2", **ADA), polls("poll")),
            step(
                returns("poll", got("completed", at=1, result=DONE)), seen("2", "completed", result=final())
            ),
            step(get("3", **ADA), seen("3", "completed", result=final()), at=70_000),
            step(get("4", principal="bob"), unknown("4")),
            rules="PRX.13",
        ),
        proxy(
            "end-kept-a-day",
            "for a day at most",
            made(),
            step(get("2", **ADA), polls("poll")),
            step(
                returns("poll", got("completed", at=1, result=DONE)), seen("2", "completed", result=final())
            ),
            step(get("3", **ADA), seen("3", "completed", result=final()), at=24 * HOUR_MS - 1),
            step(get("4", **ADA), polls("again"), at=24 * HOUR_MS),
            step(refuses("again", -32602), unknown("4")),
            rules="PRX.13 HIS.4",
        ),
        proxy(
            "nothing-else-kept",
            "a view that is no end is asked for each time",
            made(),
            step(get("2", **ADA), polls("one")),
            step(returns("one", got(at=1, statusMessage="half done")), seen("2", statusMessage="half done")),
            step(get("3", **ADA), polls("two")),
            step(breaks("two"), polls("three")),
            step(
                breaks("three"),
                error("3", -32603, data={"reason": "upstream_unavailable", "retryable": True}),
            ),
            rules="PRX.13 PRX.4",
            limits={"attempts": 2},
        ),
        proxy(
            "lost-upstream",
            "a task that its upstream no longer knows, before its time: an error of its own, not unknown",
            made(),
            step(get("2", **ADA), polls("poll")),
            step(refuses("poll", -32602), error("2", -32603, data={"reason": "upstream_lost_task"})),
            rules="PRX.13",
        ),
        proxy(
            "listening",
            "pushed by the upstream, restamped for the caller; after an end nothing more",
            listened,
            step(
                pushes("listen", "notifications/tasks", upstream_task(at=1, statusMessage="up-7 half")),
                tells("2", statusMessage={"$pattern": "[!-~]{22,} half"}),
            ),
            step(
                pushes("listen", "notifications/tasks", upstream_task("completed", at=2, result=DONE)),
                tells("2", "completed", result=final()),
                {"type": "upstream_stop", "request": "$listen"},
            ),
            rules="PRX.14 SUB.1 SUB.2",
        ),
        proxy(
            "listening-no-regression",
            "what is older than what was told is not told",
            listened,
            step(
                pushes("listen", "notifications/tasks", upstream_task(at=5, statusMessage="late")),
                tells("2", statusMessage="late"),
            ),
            step(pushes("listen", "notifications/tasks", upstream_task(at=3, statusMessage="early"))),
            rules="PRX.14",
        ),
        proxy(
            "listening-polled",
            "an upstream that cannot push is polled, and its changes are pushed",
            made(),
            step(
                listen("2", "$task", **ADA),
                acknowledges("2", "$task"),
                up("listen", "subscriptions/listen", notifications={"taskIds": ["up-7"]}),
                polls("one"),
            ),
            step(refuses("listen", -32601)),
            step(returns("one", got()), tells("2")),
            step(wait(), polls("two"), at=1000),
            step(returns("two", got(at=1, statusMessage="half")), tells("2", statusMessage="half")),
            step(wait(), polls("three"), at=2000),
            step(
                returns("three", got("completed", at=2, result=DONE)), tells("2", "completed", result=final())
            ),
            rules="PRX.14",
        ),
        proxy(
            "listening-owned",
            "only ids that the caller owns",
            made(),
            step(
                listen("2", "$task", principal="bob"),
                {
                    "type": "send",
                    "exchange": "2",
                    "message": has(
                        (),
                        method="notifications/subscriptions/acknowledged",
                        params=has((), notifications=has(("toolsListChanged",))),
                    ),
                },
            ),
            rules="PRX.14 SUB.1",
        ),
    ]


def options() -> list[Vector]:
    """Return those of PRX.16 and PRX.17."""
    need = {"data": {"requiredCapabilities": TASKS}}
    return [
        proxy(
            "promoted",
            "past the soft deadline a call becomes a task of the proxy's own, and ends as the call does",
            step(call("1", **ADA), calls(declares=False)),
            step(wait(), at=4999),
            step(wait(), created("1"), at=5000),
            step(get("2", **ADA), seen("2"), at=6000),
            step(returns("up", DONE), at=7000),
            step(get("3", **ADA), seen("3", "completed", result=final())),
            rules="PRX.16",
            upstreams=PLAIN,
            promote_after_ms=5000,
        ),
        proxy(
            "promoted-fails",
            "an error of the call is that of the task",
            step(call("1", **ADA), calls(declares=False)),
            step(wait(), created("1"), at=5000),
            step(refuses("up", -32099, "out of paper"), at=6000),
            step(get("2", **ADA), seen("2", "failed", error=has((), code=-32099, message="out of paper"))),
            rules="PRX.16 LIFE.2",
            upstreams=PLAIN,
            promote_after_ms=5000,
        ),
        proxy(
            "promoted-durable",
            "it is durable before its handle is told",
            step(call("1", **ADA), calls(declares=False)),
            step(wait(), at=5000),
            step(store("commit"), created("1")),
            rules="PRX.16",
            upstreams=PLAIN,
            promote_after_ms=5000,
            store="held",
        ),
        proxy(
            "promoted-cancelled",
            "it can be cancelled: nobody waits for the call any more",
            step(call("1", **ADA), calls(declares=False)),
            step(wait(), created("1"), at=5000),
            step(cancel("2", **ADA), {"type": "upstream_stop", "request": "$up"}, acked("2"), at=6000),
            step(get("3", **ADA), seen("3", "cancelled")),
            rules="PRX.16",
            upstreams=PLAIN,
            promote_after_ms=5000,
        ),
        proxy(
            "not-promoted-in-time",
            "a call that is done in time is a plain one",
            step(call("1", **ADA), calls(declares=False)),
            step(returns("up", DONE), completed("1", **DONE), at=4999),
            rules="PRX.16",
            upstreams=PLAIN,
            promote_after_ms=5000,
        ),
        proxy(
            "not-promoted-undeclared",
            "nor does a caller who takes no tasks get one",
            step(call("1", declared={}, **ADA), calls(declares=False)),
            step(wait(), at=5000),
            step(returns("up", DONE), completed("1", **DONE), at=6000),
            rules="PRX.16 NEG.5",
            upstreams=PLAIN,
            promote_after_ms=5000,
        ),
        proxy(
            "collapsed",
            "a task for a caller who takes none: rounds of input, and the handle hidden in the state",
            step(call("1", declared={"elicitation": {}}, **ADA), calls("one", declares=False)),
            step(refuses("one", -32021, "needs tasks", **need), calls("two")),
            step(returns("two", handle()), polls("three")),
            step(
                returns("three", got("input_required", inputRequests={"confirm": form()})),
                reply(
                    "1",
                    has(
                        ("taskId",),
                        resultType="input_required",
                        inputRequests={"confirm": form()},
                        requestState="$state",
                    ),
                ),
            ),
            step(
                ask(
                    "2",
                    "tools/call",
                    {
                        "name": "render",
                        "arguments": {},
                        "requestState": "$state",
                        "inputResponses": {"confirm": ACCEPT},
                    },
                    {"elicitation": {}},
                    **ADA,
                ),
                polls("four"),
            ),
            step(
                returns("four", got("input_required", inputRequests={"confirm": form()})),
                up("five", "tasks/update", taskId="up-7", inputResponses={"confirm": ACCEPT}),
            ),
            step(returns("five", {"resultType": "complete"}), polls("six")),
            step(returns("six", got("completed", at=1, result=DONE)), completed("2", **DONE)),
            rules="PRX.17 INP.4",
            collapse=True,
        ),
        proxy(
            "collapsed-done",
            "a task that is done without a question is a plain result",
            step(call("1", declared={}, **ADA), calls("one", declares=False)),
            step(refuses("one", -32021, "needs tasks", **need), calls("two")),
            step(returns("two", handle()), polls("three")),
            step(returns("three", got("completed", result=DONE)), completed("1", **DONE)),
            rules="PRX.17",
            collapse=True,
        ),
        proxy(
            "not-collapsed",
            "where that policy is off, the refusal is relayed",
            step(call("1", declared={}, **ADA), calls(declares=False)),
            step(
                refuses("up", -32021, "needs tasks", **need),
                error("1", -32021, 400, data={"requiredCapabilities": TASKS}),
            ),
            rules="PRX.17 PRX.1",
        ),
        proxy(
            "collapsed-state-of-another",
            "the state of a round is its caller's own",
            step(call("1", declared={"elicitation": {}}, **ADA), calls("one", declares=False)),
            step(refuses("one", -32021, "needs tasks", **need), calls("two")),
            step(returns("two", handle()), polls("three")),
            step(
                returns("three", got("input_required", inputRequests={"confirm": form()})),
                reply("1", has((), resultType="input_required", requestState="$state")),
            ),
            step(
                ask(
                    "2",
                    "tools/call",
                    {
                        "name": "render",
                        "arguments": {},
                        "requestState": "$state",
                        "inputResponses": {"confirm": ACCEPT},
                    },
                    {"elicitation": {}},
                    principal="bob",
                ),
                error("2", -32602),
            ),
            rules="PRX.17 INP.4 SEC.1",
            collapse=True,
        ),
    ]
