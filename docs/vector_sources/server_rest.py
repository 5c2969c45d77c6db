"""INP, TTL, SUB, SEC, LIM, and what WIRE, NEG, HTTP and STD ask of a whole server."""

from __future__ import annotations

from typing import Any, Final

from docs.vector_sources.making import Vector, decided, spec, tasks_spec
from docs.vector_sources.speaking import (
    ACCEPT,
    ANY,
    CAPABILITIES,
    DECLINE,
    DONE,
    EXTENSION,
    MODERN,
    SERVER_INFO,
    TASKS,
    VERSION,
    acked,
    acknowledges,
    ask,
    asks,
    call,
    cancel,
    completed,
    created,
    delivers,
    error,
    final,
    form,
    get,
    handler,
    has,
    host,
    leaves,
    listen,
    made,
    on_stream,
    receive,
    refused,
    reply,
    seen,
    sends,
    server,
    starts,
    step,
    stops,
    store,
    taken,
    tells,
    unknown,
    update,
    wait,
    worker,
    works,
)

MRTR: Final = spec("basic/patterns/mrtr", "server-requirements-basic-workflow")
STATE: Final = spec("basic/patterns/mrtr", "security-considerations")
UPDATES: Final = tasks_spec("task-update-requests")
TASK: Final = tasks_spec("tasks-1")
LISTEN: Final = spec("basic/patterns/subscriptions", "acknowledgment")
NEWS: Final = tasks_spec("task-status-notifications")
CLOSURE: Final = spec("basic/patterns/subscriptions", "graceful-closure")
REQUESTS: Final = spec("basic/index", "requests")
SECURITY: Final = tasks_spec("security-considerations")
NEGOTIATION: Final = tasks_spec("capability-negotiation")
NOBODYS: Final = "nobodys-0123456789abcdefghijk"


# -- input ---------------------------------------------------------------------------------------------------------


def asked_of(exchange: str, state: str = "$state", **requests: Any) -> dict[str, Any]:
    """Return that a call asks before it can go on."""
    asked = has(("taskId",), resultType="input_required", inputRequests=requests, requestState=state)
    return reply(exchange, asked, http_status=200)


def again(exchange: str, answers: Any, state: Any = "$state", tool: str = "render", **more: Any) -> dict[str, Any]:
    """Return that a call is sent again, with answers."""
    arguments = more.pop("arguments", {})
    params = {"name": tool, "arguments": arguments, "requestState": state, "inputResponses": answers}
    return ask(exchange, "tools/call", params, **more)


def inputs() -> list[Vector]:
    """Return those of INP."""
    begun = [
        step(call("1"), starts("1")),
        step(handler("1", "ask", requests={"confirm": form()}, state={"at": 2}), asked_of("1", confirm=form())),
    ]
    sealed = [
        step(call("1", arguments={"frames": 3}, principal="ada"), starts("1")),
        step(handler("1", "ask", requests={"confirm": form()}), asked_of("1", confirm=form())),
    ]
    return [
        server(
            "keys-are-new",
            "asked twice, two keys: an old answer never passes for a new one",
            made(),
            step(asks(confirm=form())),
            step(update("2", {"confirm": ACCEPT}), delivers(("confirm", ACCEPT)), acked("2")),
            step(asks("second", confirm=form("Really?"))),
            step(get("3"), seen("3", "input_required", inputRequests={"confirm.2": form("Really?")})),
            step(update("4", {"confirm": DECLINE}), acked("4")),
            step(update("5", {"confirm.2": DECLINE}), delivers(("confirm", DECLINE), question="second"), acked("5")),
            step(asks("third", confirm=form("Sure?"))),
            step(get("6"), seen("6", "input_required", inputRequests={"confirm.3": form("Sure?")})),
            rules="INP.1 INP.3",
            source=UPDATES,
        ),
        server(
            "withdrawn-keys",
            "the key of what was withdrawn is not used again either",
            made(),
            step(asks(confirm=form())),
            step(worker("withdraw", question="first")),
            step(asks("second", confirm=form())),
            step(get("2"), seen("2", "input_required", inputRequests={"confirm.2": form()})),
            rules="INP.1",
            source=UPDATES,
        ),
        server(
            "two-tasks",
            "keys are of one task: another has its own",
            made(),
            made("2", "$other"),
            step(asks(confirm=form())),
            step(asks(of="2", confirm=form())),
            step(get("3", "$other"), seen("3", "input_required", "$other", inputRequests={"confirm": form()})),
            step(update("4", {"confirm": ACCEPT}), delivers(("confirm", ACCEPT)), acked("4")),
            step(get("5", "$other"), seen("5", "input_required", "$other", inputRequests={"confirm": form()})),
            rules="INP.1",
            source=UPDATES,
        ),
        server(
            "several",
            "several at once are answered one at a time; the last takes the task on",
            made(),
            step(asks(a=form("a?"), b=form("b?"), c=form("c?"))),
            step(get("2"), seen("2", "input_required", inputRequests={"a": form("a?"), "b": form("b?"), "c": form("c?")})),
            step(update("3", {"b": ACCEPT}), delivers(("b", ACCEPT)), acked("3")),
            step(get("4"), seen("4", "input_required", inputRequests={"a": form("a?"), "c": form("c?")})),
            step(update("5", {"a": ACCEPT, "c": DECLINE}), delivers(("a", ACCEPT), ("c", DECLINE)), acked("5")),
            step(get("6"), seen("6")),
            rules="INP.3 INP.1",
            source=UPDATES,
        ),
        server(
            "two-questions",
            "the tool may ask on while one question is open",
            made(),
            step(asks(confirm=form())),
            step(asks("second", size=form("Size?"))),
            step(get("2"), seen("2", "input_required", inputRequests={"confirm": form(), "size": form("Size?")})),
            step(update("3", {"confirm": ACCEPT}), delivers(("confirm", ACCEPT)), acked("3")),
            step(get("4"), seen("4", "input_required", inputRequests={"size": form("Size?")})),
            step(worker("withdraw", question="second")),
            step(get("5"), seen("5")),
            rules="INP.3",
            source=UPDATES,
        ),
        server(
            "undeclared-kind",
            "only what the creating call declared is asked: anything else is the tool author's error",
            made(),
            step(asks(where={"method": "roots/list"}), refused()),
            step(get("2"), seen("2")),
            rules="INP.2",
            source=MRTR,
        ),
        server(
            "declared-by-the-call",
            "what the creating call declared counts, not what a poll declares",
            made(declared=TASKS),
            step(get("2", declared={**TASKS, "elicitation": {}, "roots": {}}), seen("2")),
            step(asks(confirm=form()), refused()),
            rules="INP.2",
            source=MRTR,
        ),
        server(
            "owner-sees",
            "the owner sees what is asked, whatever a poll declares",
            made(),
            step(asks(confirm=form())),
            step(get("2", declared=TASKS), seen("2", "input_required", inputRequests={"confirm": form()})),
            step(update("3", {"confirm": ACCEPT}, declared=TASKS), delivers(("confirm", ACCEPT)), acked("3")),
            rules="INP.2",
            source=decided("INP.2"),
        ),
        server(
            "strict",
            "or, by policy, only polls that could answer, and others are told what is missing",
            made(),
            step(asks(confirm=form())),
            step(get("2", declared=TASKS), error("2", -32021, 400, data={"requiredCapabilities": {"elicitation": {"form": {}}}})),
            step(get("3"), seen("3", "input_required", inputRequests={"confirm": form()})),
            rules="INP.2",
            source=decided("INP.2"),
            input_visibility="strict",
        ),
        server(
            "before-a-task",
            "trap 8: a question before there is a task: no task is made, and the call goes on with its answer",
            begun,
            step(again("2", {"confirm": ACCEPT}), starts("2", answers={"confirm": ACCEPT}, state={"at": 2})),
            step(handler("2", "become_task"), created("2"), works("2")),
            step(get("3"), seen("3")),
            rules="INP.4 LIFE.8",
            source=MRTR,
        ),
        server(
            "before-a-task-plain",
            "or with a plain result",
            begun,
            step(again("2", {"confirm": DECLINE}), starts("2", answers={"confirm": DECLINE})),
            step(handler("2", "return", result=DONE), completed("2", **DONE)),
            rules="INP.4",
            source=MRTR,
        ),
        server(
            "before-a-task-undeclared",
            "nobody is asked what they did not declare",
            step(call("1", declared=TASKS), starts("1")),
            step(
                handler("1", "ask", requests={"confirm": form()}),
                error("1", -32021, 400, data={"requiredCapabilities": {"elicitation": {"form": {}}}}),
            ),
            rules="INP.2 NEG.10",
            source=MRTR,
        ),
        *(
            server(
                f"state-{word}",
                says,
                sealed,
                step(again("2", {"confirm": ACCEPT}, **changes), error("2", -32602, 200), at=at),
                rules="INP.4",
                source=STATE,
                limits={"request_state_ms": 1000},
            )
            for word, says, at, changes in (
                ("foreign", "another caller's state", 1, {"arguments": {"frames": 3}, "principal": "bob"}),
                ("anonymous", "nobody's state", 1, {"arguments": {"frames": 3}}),
                ("other-arguments", "the state of a call with other arguments", 1, {"arguments": {"frames": 4}, "principal": "ada"}),
                ("other-tool", "the state of a call of another tool", 1, {"arguments": {"frames": 3}, "principal": "ada", "tool": "ping"}),
                ("expired", "a state that is past its time", 1000, {"arguments": {"frames": 3}, "principal": "ada"}),
                ("made-up", "a state that nobody sealed", 1, {"arguments": {"frames": 3}, "principal": "ada", "state": "v1.e30.AAAA"}),
                ("empty", "no state in it", 1, {"arguments": {"frames": 3}, "principal": "ada", "state": ""}),
            )
        ),
        server(
            "state-in-time",
            "a state that is the caller's own, in time",
            sealed,
            step(
                again("2", {"confirm": ACCEPT}, arguments={"frames": 3}, principal="ada"),
                starts("2", answers={"confirm": ACCEPT}),
                at=999,
            ),
            rules="INP.4",
            source=STATE,
            limits={"request_state_ms": 1000},
        ),
        server(
            "answers-malformed",
            "an answer that does not fit is refused here as well",
            begun,
            step(again("2", {"confirm": {"action": "maybe"}}), error("2", -32602, 200)),
            rules="INP.4 UPD.4",
            source=spec("basic/patterns/mrtr", "error-handling"),
        ),
        server(
            "keys-apart",
            "keys before a task are apart from the task's",
            begun,
            step(again("2", {"confirm": ACCEPT}), starts("2", answers={"confirm": ACCEPT})),
            step(handler("2", "become_task"), created("2"), works("2")),
            step(asks(of="2", confirm=form())),
            step(get("3"), seen("3", "input_required", inputRequests={"confirm": form()})),
            rules="INP.4 INP.1",
            source=MRTR,
        ),
    ]


# -- lifetimes -------------------------------------------------------------------------------------------------------


def lifetimes() -> list[Vector]:
    """Return those of TTL."""
    short = {"becomes": {"ttl_ms": 500}}
    full = "$reason"
    return [
        server(
            "readable-to-the-end",
            "readable to the last moment, unknown from then on; the work is told to stop",
            made(**short),
            step(get("2"), seen("2"), at=499),
            step(get("3"), stops(reason="expired"), unknown("3"), at=500),
            step(worker("complete", result=DONE), at=600),
            step(get("4"), unknown("4")),
            rules="TTL.1",
            source=TASK,
        ),
        server(
            "parked",
            "trap 6: a task that waits for input is told to stop; nothing stays parked",
            made(**short),
            step(asks(confirm=form())),
            step(wait(), stops(reason="expired"), at=500),
            step(update("2", {"confirm": ACCEPT}), unknown("2")),
            step(get("3"), unknown("3")),
            rules="TTL.1",
            source=TASK,
        ),
        server(
            "ended",
            "a task that has ended stays readable for its time",
            made(**short),
            step(worker("complete", result=DONE), at=100),
            step(get("2"), seen("2", "completed", result=final()), at=499),
            step(get("3"), unknown("3"), at=500),
            rules="TTL.3 TTL.1",
            source=TASK,
        ),
        server(
            "unlimited",
            "null: for ever",
            made(becomes={"ttl_ms": None}),
            step(worker("complete", result=DONE)),
            step(get("2"), seen("2", "completed", result=final(), ttlMs=None), at=10**12),
            rules="TTL.1",
            source=TASK,
        ),
        server(
            "trap-15-huge",
            "trap 15: 25 days and more do not overflow",
            step(call("1"), starts("1")),
            step(handler("1", "become_task", ttl_ms=2_160_000_000), created("1", ttlMs=2_160_000_000), works()),
            step(get("2"), seen("2", ttlMs=2_160_000_000), at=2_159_999_999),
            step(get("3"), stops(reason="expired"), unknown("3"), at=2_160_000_000),
            rules="TTL.1 LIFE.5",
            source=TASK,
        ),
        server(
            "ceiling",
            "no lifetime is longer than the server's longest",
            step(call("1"), starts("1")),
            step(handler("1", "become_task", ttl_ms=90_000), created("1", ttlMs=60_000), works()),
            step(call("2"), starts("2")),
            step(handler("2", "become_task", ttl_ms=None), created("2", "$other", ttlMs=60_000), works("2")),
            rules="TTL.3",
            source=decided("TTL.3"),
            limits={"ttl_ceiling_ms": 60_000},
        ),
        server(
            "shortened",
            "the host may shorten a lifetime, and it is seen",
            made(),
            step(host("set_ttl", of="1", ttl_ms=1000), at=100),
            step(get("2"), seen("2", ttlMs=1000, lastUpdatedAt={"$time": 100}), at=999),
            step(get("3"), stops(reason="expired"), unknown("3"), at=1000),
            rules="TTL.3",
            source=TASK,
        ),
        server(
            "extended",
            "or extend it, also of a task that has ended",
            made(**short),
            step(worker("complete", result=DONE), at=100),
            step(host("set_ttl", of="1", ttl_ms=5000), at=200),
            step(get("2"), seen("2", "completed", result=final(), ttlMs=5000), at=4999),
            step(get("3"), unknown("3"), at=5000),
            rules="TTL.3",
            source=TASK,
        ),
        server(
            "too-late-to-extend",
            "what is past its time is gone",
            made(**short),
            step(wait(), stops(reason="expired"), at=500),
            step(host("set_ttl", of="1", ttl_ms=5000), at=501),
            step(get("2"), unknown("2")),
            rules="TTL.3 TTL.1",
            source=TASK,
        ),
        *(
            server(
                f"cap-{limit}",
                f"at the bound {limit} creation fails and names it; no work starts, and what is there stays",
                made(principal="ada", arguments=arguments),
                step(call("2", principal="ada", arguments=arguments), starts("2")),
                step(handler("2", "become_task"), error("2", -32603, 200, data={"reason": limit})),
                step(get("3", principal="ada"), seen("3")),
                rules="TTL.2 LIM.3",
                source=decided("TTL.2"),
                limits={limit: most},
            )
            for limit, most, arguments in (
                ("tasks", 1, {}),
                ("tasks_per_principal", 1, {}),
                ("task_bytes", 1500, {"text": "x" * 1000}),
            )
        ),
        server(
            "cap-of-one-principal",
            "the bound of one principal is nobody else's",
            made(principal="ada"),
            made("2", "$other", principal="bob"),
            rules="TTL.2 LIM.3",
            source=decided("TTL.2"),
            limits={"tasks_per_principal": 1},
        ),
        server(
            "room-after-expiry",
            "there is room again once something has expired",
            made(**short),
            step(call("2"), starts("2"), at=499),
            step(handler("2", "become_task"), error("2", -32603, 200, data={"reason": "tasks"})),
            step(wait(), stops(reason="expired"), at=500),
            made("3", "$other", at=600),
            rules="TTL.2",
            source=decided("TTL.2"),
            limits={"tasks": 1},
        ),
    ]


# -- listening -------------------------------------------------------------------------------------------------------


def listening() -> list[Vector]:
    """Return those of SUB."""
    return [
        server(
            "snapshot",
            "the acknowledgement first, then how each task stands",
            made(),
            step(worker("report", status_message="half done"), at=100),
            step(listen("2", "$task"), acknowledges("2", "$task"), tells("2", statusMessage="half done")),
            rules="SUB.1 SUB.2 SUB.3",
            source=LISTEN,
        ),
        server(
            "changes",
            "then one notification for each change of the view, and none after the end",
            made(),
            step(listen("2", "$task"), acknowledges("2", "$task"), tells("2")),
            step(worker("report", status_message="half done"), tells("2", statusMessage="half done"), at=100),
            step(worker("report", status_message="half done"), at=200),
            step(asks(confirm=form()), tells("2", "input_required", inputRequests={"confirm": form()}), at=300),
            step(update("3", {"confirm": ACCEPT}), delivers(("confirm", ACCEPT)), tells("2"), acked("3")),
            step(worker("complete", result=DONE), tells("2", "completed", result=final()), at=400),
            step(cancel("4"), acked("4")),
            step(host("set_ttl", of="1", ttl_ms=90_000)),
            rules="SUB.2 SUB.3",
            source=NEWS,
        ),
        server(
            "ended-already",
            "a task that has ended is told once",
            made(),
            step(worker("fail", error={"code": -1, "message": "broken"})),
            step(
                listen("2", "$task"),
                acknowledges("2", "$task"),
                tells("2", "failed", error={"code": -1, "message": "broken"}),
            ),
            rules="SUB.2",
            source=NEWS,
        ),
        server(
            "only-owned",
            "ids that are unknown or somebody else's are left out without a hint",
            made(principal="ada"),
            step(listen("2", "$task", NOBODYS, "x", principal="bob"), acknowledges_nothing("2")),
            step(listen("3", NOBODYS, "$task", principal="ada"), acknowledges("3", "$task"), tells("3")),
            step(worker("complete", result=DONE), tells("3", "completed", result=final())),
            rules="SUB.1 SEC.1",
            source=NEWS,
        ),
        server(
            "expired",
            "an id that is past its time is left out",
            made(becomes={"ttl_ms": 500}),
            step(listen("2", "$task"), stops(), acknowledges_nothing("2"), at=500),
            rules="SUB.1",
            source=NEWS,
        ),
        server(
            "twice-in-a-list",
            "an id that stands there twice counts once",
            made(),
            step(listen("2", "$task", "$task"), acknowledges("2", "$task"), tells("2")),
            rules="SUB.1",
            source=NEWS,
        ),
        server(
            "string-id",
            "the subscription is the request's id, its type kept",
            made(),
            step(listen("2", "$task", id="7"), acknowledges("2", "$task", id="7"), tells("2", id="7")),
            rules="SUB.1 WIRE.3",
            source=LISTEN,
        ),
        server(
            "two-streams",
            "two streams, each under its own id",
            made(),
            step(listen("2", "$task"), acknowledges("2", "$task"), tells("2")),
            step(listen("3", "$task"), acknowledges("3", "$task"), tells("3")),
            step(
                worker("complete", result=DONE),
                tells("2", "completed", result=final()),
                tells("3", "completed", result=final()),
            ),
            rules="SUB.1",
            source=spec("basic/patterns/subscriptions", "multiple-concurrent-subscriptions"),
        ),
        server(
            "unsupported",
            "filters that are not served are left out",
            step(
                ask("1", "subscriptions/listen", {"notifications": {"toolsListChanged": True, "resourceSubscriptions": ["a"], "promptsListChanged": True}}),
                acknowledges("1", tools=True),
            ),
            rules="SUB.1",
            source=LISTEN,
        ),
        server(
            "nothing",
            "who asks for nothing is told so",
            step(ask("1", "subscriptions/listen", {"notifications": {}}), acknowledges_nothing("1")),
            rules="SUB.1",
            source=LISTEN,
        ),
        *(
            server(
                f"params-{word}",
                "params that do not fit",
                step(ask("1", "subscriptions/listen", params), error("1", -32602, 200)),
                rules="SUB.1",
                source=spec("basic/patterns/subscriptions", "notification-filter"),
            )
            for word, params in (
                ("none", {}),
                ("array", {"notifications": []}),
                ("ids-string", {"notifications": {"taskIds": "x"}}),
                ("ids-number", {"notifications": {"taskIds": [7]}}),
            )
        ),
        server(
            "slow-reader",
            "a slow reader gets the latest view, and always the last, never a queue of old ones",
            made(),
            step(listen("2", "$task"), acknowledges("2", "$task")),
            step(worker("report", status_message="one"), at=100),
            step(worker("report", status_message="two"), at=200),
            step({"type": "drained", "exchange": "2"}, tells("2", statusMessage="two"), at=300),
            step(worker("report", status_message="three"), at=400),
            step(worker("complete", result=DONE), at=500),
            step({"type": "drained", "exchange": "2"}, tells("2", "completed", result=final()), at=600),
            step({"type": "drained", "exchange": "2"}, at=700),
            rules="SUB.2",
            source=decided("SUB.2"),
            readers="slow",
        ),
        server(
            "client-closes",
            "the client closes it: nothing more is sent, and the task goes on",
            made(),
            step(listen("2", "$task"), acknowledges("2", "$task"), tells("2")),
            step(leaves("2")),
            step(worker("complete", result=DONE)),
            step(get("3"), seen("3", "completed", result=final())),
            rules="SUB.4 CAN.7",
            source=spec("basic/patterns/subscriptions", "cancellation"),
        ),
        server(
            "client-cancels",
            "on stdio the client cancels the request",
            made(channel="stdio"),
            step(listen("2", "$task", channel="stdio"), acknowledges("2", "$task"), tells("2")),
            step(
                receive("3", {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}}, channel="stdio"),
                {"type": "stop_call", "exchange": "2"},
            ),
            step(worker("complete", result=DONE)),
            rules="SUB.4",
            source=spec("basic/patterns/subscriptions", "cancellation"),
        ),
        server(
            "server-ends",
            "the server ends it with a result that names the subscription",
            made(),
            step(listen("2", "$task"), acknowledges("2", "$task"), tells("2")),
            step(host("shut_down"), reply("2", has((), resultType="complete", _meta=on_stream(2)))),
            step(get("3"), error("3", -32603)),
            rules="SUB.4",
            source=CLOSURE,
        ),
        server(
            "not-json",
            "who takes no event stream cannot listen",
            step(
                listen(
                    "1",
                    tools=True,
                    headers=[["MCP-Protocol-Version", MODERN], ["Mcp-Method", "subscriptions/listen"]],
                    accepts_stream=False,
                ),
                error("1", -32600, 406),
            ),
            rules="SUB.4 HTTP.1",
            source=spec("basic/patterns/subscriptions", "opening-a-stream"),
        ),
    ]


def acknowledges_nothing(exchange: str) -> dict[str, Any]:
    """Return an acknowledgement without any task."""
    told = has((), notifications={"$has": {}, "$lacks": ["toolsListChanged"]}, _meta=on_stream(int(exchange)))
    return sends(exchange, "notifications/subscriptions/acknowledged", {**told, "$lacks": ["taskId"]})


# -- security and bounds -----------------------------------------------------------------------------------------------


def security() -> list[Vector]:
    """Return those of SEC and LIM."""
    return [
        server(
            "owner",
            "the owner, and nobody else, on every operation",
            made(principal="ada"),
            step(asks(confirm=form())),
            step(get("2", principal="bob"), unknown("2")),
            step(update("3", {"confirm": ACCEPT}, principal="bob"), unknown("3")),
            step(cancel("4", principal="bob"), unknown("4")),
            step(get("5"), unknown("5")),
            step(get("6", principal=""), unknown("6")),
            step(get("7", principal="Ada"), unknown("7")),
            step(get("8", principal="ada"), seen("8", "input_required", inputRequests={"confirm": form()})),
            rules="SEC.1 GET.2",
            source=SECURITY,
        ),
        server(
            "nobody",
            "no principal matches no principal only",
            made(),
            step(get("2", principal="ada"), unknown("2")),
            step(cancel("3", principal=""), unknown("3")),
            step(get("4"), seen("4")),
            rules="SEC.1",
            source=decided("SEC.1"),
        ),
        server(
            "keys-rotate",
            "a state that an old key sealed opens while that key is there, and not afterwards",
            step(call("1"), starts("1")),
            step(handler("1", "ask", requests={"confirm": form()}), asked_of("1", confirm=form())),
            step(host("rotate_keys")),
            step(host("restart")),
            step(again("2", {"confirm": ACCEPT}), starts("2", answers={"confirm": ACCEPT})),
            step(host("drop_keys")),
            step(host("restart")),
            step(again("3", {"confirm": ACCEPT}), error("3", -32602, 200)),
            rules="SEC.2 INP.4",
            source=decided("SEC.2"),
        ),
        server(
            "no-ids-in-errors",
            "an error about a task does not repeat its id",
            made(principal="ada"),
            step(
                get("2", "secret-name-0123456789abcdef", principal="ada"),
                error("2", -32602, 200, text={"$pattern": "(?:(?!secret-name).)*"}),
            ),
            rules="SEC.2",
            source=decided("SEC.2"),
        ),
        *(
            server(
                f"cap-{limit}",
                f"at the bound {limit} the caller concerned is told, and nobody else is disturbed",
                *steps,
                rules="LIM.3",
                source=decided("LIM.3"),
                limits={limit: most},
            )
            for limit, most, steps in (
                (
                    "exchanges",
                    1,
                    (
                        step(call("1"), starts("1")),
                        step(call("2"), error("2", -32603, 200, data={"reason": "exchanges"})),
                        step(handler("1", "return", result=DONE), completed("1", **DONE)),
                        step(call("3"), starts("3")),
                    ),
                ),
                (
                    "streams",
                    1,
                    (
                        step(listen("1", tools=True), acknowledges("1", tools=True)),
                        step(listen("2", tools=True), error("2", -32603, 200, data={"reason": "streams"})),
                        step(leaves("1")),
                        step(listen("3", tools=True), acknowledges("3", tools=True)),
                    ),
                ),
                (
                    "streams_per_principal",
                    1,
                    (
                        step(listen("1", tools=True, principal="ada"), acknowledges("1", tools=True)),
                        step(
                            listen("2", tools=True, principal="ada"),
                            error("2", -32603, 200, data={"reason": "streams_per_principal"}),
                        ),
                        step(listen("3", tools=True, principal="bob"), acknowledges("3", tools=True)),
                    ),
                ),
                (
                    "stream_tasks",
                    1,
                    (
                        *made(),
                        step(listen("2", "$task", NOBODYS), error("2", -32603, 200, data={"reason": "stream_tasks"})),
                        step(listen("3", "$task"), acknowledges("3", "$task"), tells("3")),
                    ),
                ),
                (
                    "workers",
                    1,
                    (
                        *made(),
                        step(call("2"), starts("2")),
                        step(handler("2", "become_task"), error("2", -32603, 200, data={"reason": "workers"})),
                        step(get("3"), seen("3")),
                    ),
                ),
                (
                    "input_keys",
                    2,
                    (
                        *made(),
                        step(asks(a=form(), b=form())),
                        step(asks("second", c=form()), refused()),
                        step(get("2"), seen("2", "input_required", inputRequests={"a": form(), "b": form()})),
                    ),
                ),
            )
        ),
    ]


# -- a whole server ------------------------------------------------------------------------------------------------------


def messages() -> list[Vector]:
    """Return what WIRE asks of a server."""
    return [
        server(
            "string-id",
            "ids are echoed with their type",
            step(ask("1", "server/discover", id="1"), reply("1", has((), resultType="complete"), id="1")),
            step(ask("2", "server/discover", id=1), reply("2", has((), resultType="complete"), id=1)),
            step(ask("3", "tasks/get", {"taskId": "x"}, id=""), error("3", -32602, 200, id="")),
            step(ask("4", "tasks/get", {"taskId": "x"}, id=-7), error("4", -32602, 200, id=-7)),
            rules="WIRE.3",
            source=REQUESTS,
        ),
        server(
            "id-in-flight",
            "an id that is in flight on a channel: refused, and the first is untouched",
            step(call("1", channel="stdio", id=5), starts("1")),
            step(call("2", channel="stdio", id=5), error("2", -32600, 400, id=5)),
            step(call("3", channel="stdio", id="5"), starts("3")),
            step(handler("1", "return", result=DONE), reply("1", has((), **DONE), id=5)),
            step(call("4", channel="stdio", id=5), starts("4")),
            rules="WIRE.3",
            source=REQUESTS,
        ),
        server(
            "id-on-two-channels",
            "over HTTP each request has a channel of its own",
            step(call("1", id=5), starts("1")),
            step(call("2", id=5), starts("2")),
            rules="WIRE.3",
            source=REQUESTS,
        ),
        *(
            server(
                f"notification-{word}",
                "a notification gets no reply, whatever it says",
                step(receive("1", {"jsonrpc": "2.0", "method": method, **more}), taken("1")),
                rules="WIRE.3",
                source=spec("basic/index", "notifications"),
            )
            for word, method, more in (
                ("unknown", "notifications/nobody/knows", {}),
                ("tasks-get", "tasks/get", {"params": {"taskId": "x"}}),
                ("tools-call", "tools/call", {"params": {"name": "render"}}),
                ("cancelled-unknown", "notifications/cancelled", {"params": {"requestId": 99}}),
                ("cancelled-empty", "notifications/cancelled", {}),
                ("initialized", "notifications/initialized", {"params": {}}),
            )
        ),
        server(
            "malformed",
            "what is no message is refused, with its id where it could be read",
            step(receive("1", {"jsonrpc": "2.0", "id": 7, "method": 7}), error("1", -32600, 400, id=7)),
            step(
                receive("2", []),
                {"type": "reply", "exchange": "2", "message": {"jsonrpc": "2.0", "error": has((), code=-32600)}, "http_status": 400},
            ),
            rules="WIRE.1 HTTP.5",
            source=REQUESTS,
        ),
        *(
            server(
                f"result-type-{word}",
                "every result says what it is, and who gave it",
                *steps,
                rules="WIRE.4",
                source=spec("basic/index", "resulttype"),
            )
            for word, steps in (
                (
                    "discover",
                    (step(ask("1", "server/discover"), reply("1", has((), resultType="complete", _meta=has((), **{SERVER_INFO: ANY})))),),
                ),
                (
                    "tools",
                    (step(ask("1", "tools/list"), reply("1", has((), resultType="complete", _meta=has((), **{SERVER_INFO: ANY})))),),
                ),
                (
                    "call",
                    (
                        step(call("1"), starts("1")),
                        step(
                            handler("1", "return", result={"content": []}),
                            reply("1", {"resultType": "complete", "content": [], "_meta": {SERVER_INFO: ANY}}),
                        ),
                    ),
                ),
                (
                    "task",
                    (
                        step(call("1"), starts("1")),
                        step(
                            handler("1", "become_task"),
                            reply("1", has((), resultType="task", _meta=has((), **{SERVER_INFO: ANY}))),
                            works(),
                        ),
                    ),
                ),
            )
        ),
        server(
            "unknown-fields",
            "what the server does not know of a call reaches the tool, and what it does not know of a result the peer",
            step(
                ask("1", "tools/call", {"name": "render", "arguments": {}, "x": [1]}, meta={"app/y": {"z": None}}),
                starts("1", params=has((), x=[1], _meta=has((), **{"app/y": {"z": None}}))),
            ),
            step(
                handler("1", "return", result={"content": [], "w": {"v": 1}, "_meta": {"app/u": 2}}),
                reply("1", has((), content=[], w={"v": 1}, _meta=has((), **{"app/u": 2}))),
            ),
            rules="WIRE.5",
            source=decided("WIRE.5"),
        ),
        server(
            "host-methods",
            "a method of the host's own goes to it, params and all",
            step(
                ask("1", "resources/read", {"uri": "file:///a", "x": 1}),
                {"type": "forward", "exchange": "1", "method": "resources/read", "params": has((), uri="file:///a", x=1)},
            ),
            step(handler("1", "return", result={"contents": []}), reply("1", has((), contents=[], resultType="complete"))),
            rules="WIRE.5",
            source=decided("WIRE.5"),
            methods=["resources/read"],
        ),
        server(
            "answers-nobody-asked-for",
            "a response to nothing is no request",
            step(receive("1", {"jsonrpc": "2.0", "id": 1, "result": {}}, channel="stdio")),
            rules="WIRE.1",
            source=spec("basic/index", "responses"),
        ),
    ]


def negotiation() -> list[Vector]:
    """Return what NEG asks of a server."""
    legacy_slot = {"tasks": {"requests": {"tools": {"call": {}}}}}
    return [
        server(
            "each-request-for-itself",
            "an earlier request declares nothing for a later one",
            made(),
            step(get("2", declared={}), error("2", -32021, 400, data={"requiredCapabilities": TASKS})),
            step(update("3", {}, declared={}), error("3", -32021, 400)),
            step(cancel("4", declared={}), error("4", -32021, 400)),
            step(call("5", declared={}), starts("5", may=False)),
            step(get("6", declared=TASKS), seen("6")),
            rules="NEG.4 NEG.6",
            source=NEGOTIATION,
        ),
        server(
            "same-channel",
            "nor does one on the same channel",
            made(channel="stdio"),
            step(get("2", declared={}, channel="stdio"), error("2", -32021)),
            rules="NEG.4",
            source=NEGOTIATION,
        ),
        server(
            "no-handle",
            "a tool is not allowed a task for a caller who takes none",
            step(call("1", declared={}), starts("1", may=False)),
            step(handler("1", "return", result=DONE), completed("1", **DONE)),
            rules="NEG.5",
            source=NEGOTIATION,
        ),
        server(
            "needs-tasks",
            "a tool that cannot do without is not run",
            step(call("1", "bake", declared={}), error("1", -32021, 400, data={"requiredCapabilities": TASKS})),
            step(call("2", "bake"), starts("2", "bake")),
            rules="NEG.5",
            source=NEGOTIATION,
        ),
        server(
            "forbids-tasks",
            "a tool that never makes one is not allowed to",
            step(call("1", "ping"), starts("1", "ping", may=False)),
            rules="NEG.5",
            source=decided("NEG.5"),
        ),
        server(
            "trap-14",
            "trap 14: the slot of 2025-11-25 declares nothing",
            made(),
            step(get("2", declared=legacy_slot), error("2", -32021, 400, data={"requiredCapabilities": TASKS})),
            step(call("3", declared=legacy_slot), starts("3", may=False)),
            step(call("4", "bake", declared=legacy_slot), error("4", -32021, 400)),
            rules="NEG.4 NEG.6",
            source=NEGOTIATION,
        ),
        server(
            "untouched",
            "who may not cancel does not",
            made(),
            step(cancel("2", declared={}), error("2", -32021, 400)),
            step(get("3"), seen("3", lastUpdatedAt={"$time": 0}), at=100),
            rules="NEG.6",
            source=NEGOTIATION,
        ),
        server(
            "off",
            "where the extension is off, there is none: no methods, no handles, no filter, no advertisement",
            made(),
            step(get("2", tasks_enabled=False), error("2", -32601, 404)),
            step(update("3", {}, tasks_enabled=False), error("3", -32601, 404)),
            step(cancel("4", tasks_enabled=False), error("4", -32601, 404)),
            step(call("5", tasks_enabled=False), starts("5", may=False)),
            step(listen("6", "$task", tasks_enabled=False), acknowledges_nothing("6")),
            step(
                ask("7", "server/discover", tasks_enabled=False),
                reply("7", has((), capabilities={"$has": {}, "$lacks": ["tasks", "extensions"]})),
            ),
            step(get("8"), seen("8")),
            rules="NEG.7",
            source=NEGOTIATION,
        ),
        server(
            "legacy-methods",
            "tasks/result and tasks/list are not of this version",
            made(),
            step(ask("2", "tasks/result", {"taskId": "$task"}), error("2", -32601, 404)),
            step(ask("3", "tasks/list"), error("3", -32601, 404)),
            rules="NEG.8",
            source=tasks_spec("reservations"),
        ),
        server(
            "task-param",
            "params.task makes no task, and reaches the tool",
            step(
                ask("1", "tools/call", {"name": "render", "arguments": {}, "task": {"ttl": 5}}, {}),
                starts("1", may=False, params=has((), task={"ttl": 5})),
            ),
            step(handler("1", "return", result=DONE), completed("1", **DONE)),
            rules="NEG.8",
            source=tasks_spec("backwards-compatibility"),
        ),
        server(
            "discover",
            "discovery: versions, capabilities with the extension and without the slot of 2025-11-25, how long it holds",
            step(
                ask("1", "server/discover", declared={}),
                reply(
                    "1",
                    has(
                        (),
                        resultType="complete",
                        supportedVersions=[MODERN],
                        capabilities={"$has": {"extensions": {EXTENSION: {}}, "tools": ANY}, "$lacks": ["tasks"]},
                        ttlMs={"$any": "integer"},
                        cacheScope="private",
                        _meta=has((), **{SERVER_INFO: has((), name="vectors", version="1")}),
                    ),
                    http_status=200,
                ),
            ),
            rules="NEG.9",
            source=spec("server/discover", "response"),
        ),
        server(
            "initialize",
            "a client that only knows initialize is told which versions there are",
            step(
                receive("1", {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25", "capabilities": {}}}),
                error("1", -32022, 400, data={"supported": [MODERN], "requested": "2025-11-25"}),
            ),
            rules="NEG.9",
            source=spec("basic/versioning", "backward-compatibility-with-initialization-based-versions"),
        ),
        server(
            "no-metadata",
            "a request without its metadata",
            step(receive("1", {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}), error("1", -32602, 400)),
            step(
                receive("2", {"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {"_meta": {VERSION: MODERN}}}),
                error("2", -32602, 400),
            ),
            step(
                receive("3", {"jsonrpc": "2.0", "id": 3, "method": "tools/list", "params": {"_meta": {CAPABILITIES: {}}}}),
                error("3", -32602, 400),
            ),
            rules="NEG.1",
            source=spec("basic/index", "_meta"),
        ),
        server(
            "unknown-tool",
            "a tool that there is not",
            step(call("1", "nobody"), error("1", -32602, 200)),
            step(ask("2", "tools/call", {"arguments": {}}), error("2", -32602, 200)),
            step(ask("3", "tools/call", {"name": 7}), error("3", -32602, 200)),
            step(ask("4", "tools/call", {"name": "render", "arguments": []}), error("4", -32602, 200)),
            rules="NEG.10",
            source=spec("server/tools", "error-handling"),
        ),
    ]


def over_http(method: str, name: str | None = None) -> list[list[str]]:
    """Return the headers of a request."""
    named = [] if name is None else [["Mcp-Name", name]]
    return [["MCP-Protocol-Version", MODERN], ["Mcp-Method", method], *named]


def http() -> list[Vector]:
    """Return what HTTP asks of a server."""
    with_region = {
        "tools": [
            {
                "name": "render",
                "task": "optional",
                "input_schema": {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}},
            }
        ]
    }
    return [
        server(
            "headers",
            "trap 11: headers that are missing or say something else than the body; trap 12: encoded ones",
            made(),
            step(get("2", headers=over_http("tasks/get", "$task")), seen("2")),
            step(get("3", headers=over_http("tasks/get")), error("3", -32020, 400)),
            step(get("4", headers=over_http("tasks/get", NOBODYS)), error("4", -32020, 400)),
            step(get("5", headers=over_http("tasks/cancel", "$task")), error("5", -32020, 400)),
            step(get("6", headers=[["Mcp-Method", "tasks/get"], ["Mcp-Name", "$task"]]), error("6", -32020, 400)),
            step(cancel("7", headers=over_http("tasks/cancel")), error("7", -32020, 400)),
            step(get("8", headers=[*over_http("tasks/get", "$task"), ["Mcp-Session-Id", "x"]]), seen("8", lastUpdatedAt={"$time": 0})),
            rules="HTTP.2 HTTP.3",
            source=tasks_spec("streamable-http-routing-headers"),
        ),
        server(
            "parameter-headers",
            "the header of an annotated argument has to be there and equal it, before the tool runs",
            step(call("1", arguments={"region": "us"}, headers=[*over_http("tools/call", "render"), ["Mcp-Param-Region", "us"]]), starts("1")),
            step(call("2", arguments={"region": "us"}, headers=over_http("tools/call", "render")), error("2", -32020, 400)),
            step(
                call("3", arguments={"region": "us"}, headers=[*over_http("tools/call", "render"), ["Mcp-Param-Region", "eu"]]),
                error("3", -32020, 400),
            ),
            step(call("4", headers=over_http("tools/call", "render")), starts("4")),
            rules="HTTP.3",
            source=spec("basic/transports/streamable-http", "server-behavior-for-custom-headers"),
            **with_region,
        ),
        server(
            "notification",
            "a notification is taken with 202 and no body",
            step(receive("1", {"jsonrpc": "2.0", "method": "notifications/x"}, headers=over_http("notifications/x")), taken("1")),
            rules="HTTP.4",
            source=spec("basic/transports/streamable-http", "sending-messages"),
        ),
        server(
            "progress",
            "a call that was asked to reports on the way, on its stream, and then answers",
            step(call("1", meta={"progressToken": "p"}, headers=over_http("tools/call", "render")), starts("1")),
            step(
                handler("1", "notify", method="notifications/progress", params={"progress": 1}),
                sends("1", "notifications/progress", has((), progress=1, progressToken="p")),
            ),
            step(handler("1", "return", result=DONE), completed("1", **DONE)),
            rules="HTTP.4",
            source=spec("basic/transports/streamable-http", "sending-messages"),
        ),
        server(
            "no-progress-for-json",
            "to who takes JSON alone nothing is sent on the way",
            step(
                call("1", meta={"progressToken": "p"}, headers=over_http("tools/call", "render"), accepts_stream=False),
                starts("1"),
            ),
            step(handler("1", "notify", method="notifications/progress", params={"progress": 1})),
            step(handler("1", "return", result=DONE), completed("1", **DONE)),
            rules="HTTP.4",
            source=spec("basic/transports/streamable-http", "sending-messages"),
        ),
        server(
            "closing",
            "closing a stream cancels that request only",
            step(call("1"), starts("1")),
            step(call("2"), starts("2")),
            step(leaves("1"), {"type": "stop_call", "exchange": "1"}),
            step(handler("2", "return", result=DONE), completed("2", **DONE)),
            rules="HTTP.4 CAN.7",
            source=spec("basic/transports/streamable-http", "cancellation"),
        ),
        server(
            "statuses",
            "each kind of answer has its status",
            step(ask("1", "server/discover"), reply("1", ANY, http_status=200)),
            step(ask("2", "nobody/knows"), error("2", -32601, 404)),
            step(ask("3", "tasks/get", {"taskId": "x"}), error("3", -32602, 200)),
            step(ask("4", "tasks/get", {"taskId": "x"}, {}), error("4", -32021, 400)),
            step(ask("5", "tools/list", headers=[]), error("5", -32020, 400)),
            step(receive("6", {"jsonrpc": "2.0", "id": 6, "method": "a", "params": []}), error("6", -32600, 400)),
            step(receive("7", {"jsonrpc": "2.0", "id": 7, "method": "tools/list"}), error("7", -32602, 400)),
            rules="HTTP.5",
            source=spec("basic/index", "error-codes"),
        ),
    ]


def store_trouble() -> list[Vector]:
    """Return what becomes of a call whose client leaves while its task is being written."""
    return [
        server(
            "leaves-while-written",
            "a client that leaves while its task is being written: the record goes again, and no work starts",
            step(call("1"), starts("1")),
            step(handler("1", "become_task")),
            step(leaves("1")),
            step(store("commit")),
            step(store("commit")),
            rules="CAN.7 LIFE.4",
            source=tasks_spec("task-creation"),
            store="held",
        )
    ]


