"""WIRE, NEG, HTTP: what is asked of a whole server."""

from __future__ import annotations

from typing import Any, Final

from docs.vector_sources.making import Vector, decided, spec, tasks_spec
from docs.vector_sources.server_listening import acknowledges_nothing
from docs.vector_sources.speaking import (
    ANY,
    CAPABILITIES,
    DONE,
    EXTENSION,
    MODERN,
    SERVER_INFO,
    TASKS,
    VERSION,
    ask,
    call,
    cancel,
    completed,
    error,
    get,
    handler,
    has,
    leaves,
    listen,
    made,
    receive,
    reply,
    seen,
    sends,
    server,
    starts,
    step,
    taken,
    update,
    works,
)

REQUESTS: Final = spec("basic/index", "requests")
NEGOTIATION: Final = tasks_spec("capability-negotiation")
NOBODYS: Final = "nobodys-0123456789abcdefghijk"


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
                {
                    "type": "reply",
                    "exchange": "2",
                    "message": {"jsonrpc": "2.0", "error": has((), code=-32600)},
                    "http_status": 400,
                },
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
                    (
                        step(
                            ask("1", "server/discover"),
                            reply("1", has((), resultType="complete", _meta=has((), **{SERVER_INFO: ANY}))),
                        ),
                    ),
                ),
                (
                    "tools",
                    (
                        step(
                            ask("1", "tools/list"),
                            reply("1", has((), resultType="complete", _meta=has((), **{SERVER_INFO: ANY}))),
                        ),
                    ),
                ),
                (
                    "call",
                    (
                        step(call("1"), starts("1")),
                        step(
                            handler("1", "return", result={"content": []}),
                            reply(
                                "1", {"resultType": "complete", "content": [], "_meta": {SERVER_INFO: ANY}}
                            ),
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
            "what the server does not know reaches the tool, and the peer, as it came",
            step(
                ask(
                    "1",
                    "tools/call",
                    {"name": "render", "arguments": {}, "x": [1]},
                    meta={"app/y": {"z": None}},
                ),
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
                {
                    "type": "forward",
                    "exchange": "1",
                    "method": "resources/read",
                    "params": has((), uri="file:///a", x=1),
                },
            ),
            step(
                handler("1", "return", result={"contents": []}),
                reply("1", has((), contents=[], resultType="complete")),
            ),
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
    legacy_slot: dict[str, Any] = {"tasks": {"requests": {"tools": {"call": {}}}}}
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
            step(
                call("1", "bake", declared={}), error("1", -32021, 400, data={"requiredCapabilities": TASKS})
            ),
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
            step(
                get("2", declared=legacy_slot), error("2", -32021, 400, data={"requiredCapabilities": TASKS})
            ),
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
            "discovery: versions, capabilities with the extension, how long all that holds",
            step(
                ask("1", "server/discover", declared={}),
                reply(
                    "1",
                    has(
                        (),
                        resultType="complete",
                        supportedVersions=[MODERN],
                        capabilities={
                            "$has": {"extensions": {EXTENSION: {}}, "tools": ANY},
                            "$lacks": ["tasks"],
                        },
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
                receive(
                    "1",
                    {
                        "jsonrpc": "2.0",
                        "id": 1,
                        "method": "initialize",
                        "params": {"protocolVersion": "2025-11-25", "capabilities": {}},
                    },
                ),
                error("1", -32022, 400, data={"supported": [MODERN], "requested": "2025-11-25"}),
            ),
            rules="NEG.9",
            source=spec("basic/versioning", "backward-compatibility-with-initialization-based-versions"),
        ),
        server(
            "no-metadata",
            "a request without its metadata",
            step(
                receive("1", {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}),
                error("1", -32602, 400),
            ),
            step(
                receive(
                    "2",
                    {
                        "jsonrpc": "2.0",
                        "id": 2,
                        "method": "tools/list",
                        "params": {"_meta": {VERSION: MODERN}},
                    },
                ),
                error("2", -32602, 400),
            ),
            step(
                receive(
                    "3",
                    {
                        "jsonrpc": "2.0",
                        "id": 3,
                        "method": "tools/list",
                        "params": {"_meta": {CAPABILITIES: {}}},
                    },
                ),
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
                "input_schema": {
                    "type": "object",
                    "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
                },
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
            step(
                get("6", headers=[["Mcp-Method", "tasks/get"], ["Mcp-Name", "$task"]]),
                error("6", -32020, 400),
            ),
            step(cancel("7", headers=over_http("tasks/cancel")), error("7", -32020, 400)),
            step(
                get("8", headers=[*over_http("tasks/get", "$task"), ["Mcp-Session-Id", "x"]]),
                seen("8", lastUpdatedAt={"$time": 0}),
            ),
            rules="HTTP.2 HTTP.3",
            source=tasks_spec("streamable-http-routing-headers"),
        ),
        server(
            "parameter-headers",
            "the header of an annotated argument has to be there and equal it, before the tool runs",
            step(
                call(
                    "1",
                    arguments={"region": "us"},
                    headers=[*over_http("tools/call", "render"), ["Mcp-Param-Region", "us"]],
                ),
                starts("1"),
            ),
            step(
                call("2", arguments={"region": "us"}, headers=over_http("tools/call", "render")),
                error("2", -32020, 400),
            ),
            step(
                call(
                    "3",
                    arguments={"region": "us"},
                    headers=[*over_http("tools/call", "render"), ["Mcp-Param-Region", "eu"]],
                ),
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
            step(
                receive(
                    "1", {"jsonrpc": "2.0", "method": "notifications/x"}, headers=over_http("notifications/x")
                ),
                taken("1"),
            ),
            rules="HTTP.4",
            source=spec("basic/transports/streamable-http", "sending-messages"),
        ),
        server(
            "progress",
            "a call that was asked to reports on the way, on its stream, and then answers",
            step(
                call("1", meta={"progressToken": "p"}, headers=over_http("tools/call", "render")), starts("1")
            ),
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
                call(
                    "1",
                    meta={"progressToken": "p"},
                    headers=over_http("tools/call", "render"),
                    accepts_stream=False,
                ),
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
            step(
                receive("6", {"jsonrpc": "2.0", "id": 6, "method": "a", "params": []}),
                error("6", -32600, 400),
            ),
            step(receive("7", {"jsonrpc": "2.0", "id": 7, "method": "tools/list"}), error("7", -32602, 400)),
            rules="HTTP.5",
            source=spec("basic/index", "error-codes"),
        ),
    ]
