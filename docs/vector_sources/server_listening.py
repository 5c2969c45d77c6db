"""SUB: streams of news."""

from __future__ import annotations

from typing import Any, Final

from docs.vector_sources.making import Vector, decided, spec, tasks_spec
from docs.vector_sources.speaking import (
    ACCEPT,
    DONE,
    MODERN,
    acked,
    acknowledges,
    ask,
    asks,
    cancel,
    delivers,
    error,
    final,
    form,
    get,
    has,
    host,
    leaves,
    listen,
    made,
    on_stream,
    receive,
    reply,
    seen,
    sends,
    server,
    step,
    stops,
    tells,
    update,
    worker,
)

LISTEN: Final = spec("basic/patterns/subscriptions", "acknowledgment")
NEWS: Final = tasks_spec("task-status-notifications")
CLOSURE: Final = spec("basic/patterns/subscriptions", "graceful-closure")
NOBODYS: Final = "nobodys-0123456789abcdefghijk"


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
            step(
                asks(confirm=form()), tells("2", "input_required", inputRequests={"confirm": form()}), at=300
            ),
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
                ask(
                    "1",
                    "subscriptions/listen",
                    {
                        "notifications": {
                            "toolsListChanged": True,
                            "resourceSubscriptions": ["a"],
                            "promptsListChanged": True,
                        }
                    },
                ),
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
                receive(
                    "3",
                    {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}},
                    channel="stdio",
                ),
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
