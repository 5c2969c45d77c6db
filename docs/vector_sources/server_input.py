"""INP: input that is asked for, before there is a task and of one."""

from __future__ import annotations

from typing import Any, Final

from docs.vector_sources.making import Vector, decided, spec, tasks_spec
from docs.vector_sources.speaking import (
    ACCEPT,
    DECLINE,
    DONE,
    TASKS,
    acked,
    ask,
    asks,
    call,
    completed,
    created,
    delivers,
    error,
    form,
    get,
    handler,
    has,
    made,
    refused,
    reply,
    seen,
    server,
    starts,
    step,
    update,
    worker,
    works,
)

MRTR: Final = spec("basic/patterns/mrtr", "server-requirements-basic-workflow")
STATE: Final = spec("basic/patterns/mrtr", "security-considerations")
UPDATES: Final = tasks_spec("task-update-requests")


def asked_of(exchange: str, state: str = "$state", **requests: Any) -> dict[str, Any]:
    """Return that a call asks before it can go on."""
    asked = has(("taskId",), resultType="input_required", inputRequests=requests, requestState=state)
    return reply(exchange, asked, http_status=200)


def again(
    exchange: str, answers: Any, state: Any = "$state", tool: str = "render", **more: Any
) -> dict[str, Any]:
    """Return that a call is sent again, with answers."""
    arguments = more.pop("arguments", {})
    params = {"name": tool, "arguments": arguments, "requestState": state, "inputResponses": answers}
    return ask(exchange, "tools/call", params, **more)


def inputs() -> list[Vector]:
    """Return those of INP."""
    begun = [
        step(call("1"), starts("1")),
        step(
            handler("1", "ask", requests={"confirm": form()}, state={"at": 2}), asked_of("1", confirm=form())
        ),
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
            step(
                update("5", {"confirm.2": DECLINE}),
                delivers(("confirm", DECLINE), question="second"),
                acked("5"),
            ),
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
            step(
                get("3", "$other"), seen("3", "input_required", "$other", inputRequests={"confirm": form()})
            ),
            step(update("4", {"confirm": ACCEPT}), delivers(("confirm", ACCEPT)), acked("4")),
            step(
                get("5", "$other"), seen("5", "input_required", "$other", inputRequests={"confirm": form()})
            ),
            rules="INP.1",
            source=UPDATES,
        ),
        server(
            "several",
            "several at once are answered one at a time; the last takes the task on",
            made(),
            step(asks(a=form("a?"), b=form("b?"), c=form("c?"))),
            step(
                get("2"),
                seen(
                    "2", "input_required", inputRequests={"a": form("a?"), "b": form("b?"), "c": form("c?")}
                ),
            ),
            step(update("3", {"b": ACCEPT}), delivers(("b", ACCEPT)), acked("3")),
            step(get("4"), seen("4", "input_required", inputRequests={"a": form("a?"), "c": form("c?")})),
            step(
                update("5", {"a": ACCEPT, "c": DECLINE}), delivers(("a", ACCEPT), ("c", DECLINE)), acked("5")
            ),
            step(get("6"), seen("6")),
            rules="INP.3 INP.1 UPD.5",
            source=UPDATES,
        ),
        server(
            "two-questions",
            "the tool may ask on while one question is open",
            made(),
            step(asks(confirm=form())),
            step(asks("second", size=form("Size?"))),
            step(
                get("2"),
                seen("2", "input_required", inputRequests={"confirm": form(), "size": form("Size?")}),
            ),
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
            step(
                get("2", declared=TASKS),
                error("2", -32021, 400, data={"requiredCapabilities": {"elicitation": {"form": {}}}}),
            ),
            step(get("3"), seen("3", "input_required", inputRequests={"confirm": form()})),
            rules="INP.2",
            source=decided("INP.2"),
            input_visibility="strict",
        ),
        server(
            "before-a-task",
            "trap 8: a question before there is a task makes none, and the call goes on with its answer",
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
                (
                    "other-arguments",
                    "the state of a call with other arguments",
                    1,
                    {"arguments": {"frames": 4}, "principal": "ada"},
                ),
                (
                    "other-tool",
                    "the state of a call of another tool",
                    1,
                    {"arguments": {"frames": 3}, "principal": "ada", "tool": "ping"},
                ),
                (
                    "expired",
                    "a state that is past its time",
                    1000,
                    {"arguments": {"frames": 3}, "principal": "ada"},
                ),
                (
                    "made-up",
                    "a state that nobody sealed",
                    1,
                    {"arguments": {"frames": 3}, "principal": "ada", "state": "v1.e30.AAAA"},
                ),
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
