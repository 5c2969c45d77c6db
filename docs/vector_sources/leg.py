"""LEG: what a client of 2025-11-25 sees of a server of both eras."""

from __future__ import annotations

from typing import Any, Final

from docs.vector_sources.making import Vector, conversation, legacy_spec, tasks_spec
from docs.vector_sources.origins import ORIGINS
from docs.vector_sources.speaking import (
    ACCEPT,
    ANY,
    DONE,
    TASKS,
    TEXT,
    TOOLS,
    Given,
    Output,
    Step,
    acked,
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
    receive,
    reply,
    seen,
    starts,
    step,
    stops,
    taken,
    update,
    worker,
    works,
)

LEGACY: Final = "2025-11-25"
SERVED: Final[dict[str, Any]] = {"cancel": {}, "requests": {"tools": {"call": {}}}}
RELATED: Final = "io.modelcontextprotocol/related-task"
ALL: Final[dict[str, Any]] = {"elicitation": {}, "sampling": {}, "roots": {}}
BOOM: Final[dict[str, Any]] = {"code": -32099, "message": "out of paper", "data": {"tray": 2}}
NOBODYS: Final = "nobodys-0123456789abcdefghijk"
STATUS: Final = "notifications/tasks/status"


def legacy(
    id_: str, says: str, *steps: Step | list[Step], rules: str, source: str | None = None, **setup: Any
) -> Vector:
    """Return a conversation with a server that serves 2025-11-25 as well."""
    flat = [one for part in steps for one in (part if isinstance(part, list) else [part])]
    first = rules.split()[0]
    return conversation(
        "server",
        f"{first}/legacy/{id_}",
        says,
        flat,
        rules=rules,
        source=source or ORIGINS[first],
        setup={**TOOLS, "legacy": "serve", "ignored_notifications": [STATUS], **setup},
    )


# -- facts -----------------------------------------------------------------------------------------------


def said(exchange: str, method: str, params: Any = None, **facts: Any) -> Given:
    """Return that a request of 2025-11-25 comes in, on stdio unless it came over HTTP."""
    message = {"jsonrpc": "2.0", "id": int(exchange), "method": method, "params": params or {}}
    return receive(exchange, message, **({} if "headers" in facts else {"channel": "old"}), **facts)


def initialize(exchange: str, capabilities: Any = None, version: Any = LEGACY, **facts: Any) -> Given:
    """Return that a session is to be opened."""
    declared = ALL if capabilities is None else capabilities
    params = {
        "protocolVersion": version,
        "capabilities": declared,
        "clientInfo": {"name": "old", "version": "1"},
    }
    return said(exchange, "initialize", params, **facts)


def initialized(exchange: str, **facts: Any) -> Given:
    """Return that the client has seen it."""
    message = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    return receive(exchange, message, **({} if "headers" in facts else {"channel": "old"}), **facts)


def answers(exchange: str, id_: str, **outcome: Any) -> Given:
    """Return that the client answers a request of the server's."""
    return receive(exchange, {"jsonrpc": "2.0", "id": id_, **outcome}, channel="old")


def wants(exchange: str, tool: str = "render", **more: Any) -> Given:
    """Return that a tool is called; with ``task`` as a task."""
    return said(exchange, "tools/call", {"name": tool, "arguments": {}, **more})


def opened(capabilities: Any = None, **facts: Any) -> list[Step]:
    """Return the steps that open a session."""
    return [
        step(
            initialize("1", capabilities, **facts), reply("1", has(("resultType",), protocolVersion=LEGACY))
        ),
        step(initialized("2", **facts)),
    ]


# -- outputs ---------------------------------------------------------------------------------------------


def task(status: str = "working", id_: Any = "$task", **members: Any) -> dict[str, Any]:
    """Return a task as this version shows it: flat, and without what came of it."""
    lacks = ("ttlMs", "pollIntervalMs", "result", "error", "inputRequests", "resultType")
    shown = {
        "taskId": id_,
        "status": status,
        "createdAt": TEXT,
        "lastUpdatedAt": TEXT,
        "ttl": {"$any": "integer or null"},
        **members,
    }
    return has(lacks, **shown)


def nested(exchange: str, **members: Any) -> Output:
    """Return the answer to a call as a task."""
    return reply(exchange, has(("resultType", "content"), task=task(**members)))


def runs(exchange: str = "$inner", *, must: bool, tool: str = "render") -> Output:
    """Return that the tool is to be run."""
    return {**starts(exchange, tool, may=must), "must_become_task": must}


def made(exchange: str = "3", **wish: Any) -> list[Step]:
    """Return the steps in which a call becomes a task."""
    return [
        step(wants(exchange, task=wish), runs(must=True)),
        step(handler("$inner", "become_task"), nested(exchange), works("$inner")),
    ]


def related(**members: Any) -> dict[str, Any]:
    """Return a result that says whose it is."""
    return has(("resultType",), **members, _meta=has((), **{RELATED: {"taskId": "$task"}}))


def work(does: str, **more: Any) -> Given:
    """Return what the work of the task does."""
    return worker(does, "$inner", **more)


def asks(**requests: Any) -> Given:
    """Return that it asks."""
    return work("ask", question="first", requests=requests)


def asked(exchange: str, id_: str, request: Any) -> Output:
    """Return that the server asks on the stream of a result."""
    params = {**request.get("params", {}), "_meta": has((), **{RELATED: {"taskId": "$task"}})}
    message = {"jsonrpc": "2.0", "id": id_, "method": request["method"], "params": params}
    return {"type": "send", "exchange": exchange, "message": message}


def of_task(exchange: str, method: str, id_: Any = "$task", **facts: Any) -> Given:
    """Return a request about a task."""
    return said(exchange, method, {"taskId": id_}, **facts)


def unknown(exchange: str) -> Output:
    """Return the one answer to every id that is not the caller's task's."""
    return error(exchange, -32602, text="$unknown", data=...)


def sessions() -> list[Vector]:
    """Return those of LEG.1 and LEG.2."""
    session = "s-0123456789abcdefghijklmnop"
    head = [["MCP-Protocol-Version", LEGACY], ["Mcp-Session-Id", session]]
    return [
        legacy(
            "initialize",
            "what is served: cancelling and tool calls as tasks",
            step(
                initialize("1"),
                reply(
                    "1",
                    has(
                        ("resultType",),
                        protocolVersion=LEGACY,
                        serverInfo=has((), name="vectors"),
                        capabilities=has((), tools=ANY, tasks=SERVED),
                    ),
                ),
            ),
            rules="LEG.2",
        ),
        legacy(
            "initialize-named",
            "and listing, where callers can be told apart",
            step(
                initialize("1", principal="ada"),
                reply("1", has((), capabilities=has((), tasks={"list": {}, **SERVED}))),
            ),
            rules="LEG.2 LEG.7",
        ),
        legacy(
            "ignore",
            "who keeps tasks to itself shows none: no capability, a plain call, no methods",
            step(
                initialize("1", principal="ada"),
                reply("1", has((), capabilities=has(("tasks", "extensions")))),
            ),
            step(initialized("2", principal="ada")),
            step(
                said(
                    "3",
                    "tools/call",
                    {"name": "render", "arguments": {}, "task": {"ttl": 1000}},
                    principal="ada",
                ),
                runs(must=False),
            ),
            step(handler("$inner", "return", result=DONE), reply("3", has(("task", "resultType"), **DONE))),
            step(of_task("4", "tasks/get", NOBODYS, principal="ada"), error("4", -32601)),
            step(of_task("5", "tasks/result", NOBODYS, principal="ada"), error("5", -32601)),
            step(said("6", "tasks/list", principal="ada"), error("6", -32601)),
            step(of_task("7", "tasks/cancel", NOBODYS, principal="ada"), error("7", -32601)),
            rules="LEG.1 LEG.3",
            legacy="ignore",
        ),
        legacy(
            "extension-means-nothing",
            "the extension declared under this version counts for nothing",
            opened({**ALL, "extensions": {"io.modelcontextprotocol/tasks": {}}}),
            step(wants("3"), runs(must=False)),
            step(handler("$inner", "return", result=DONE), reply("3", has(("task", "resultType"), **DONE))),
            rules="LEG.1",
        ),
        *(
            legacy(
                f"version-{word}",
                "whatever version is asked for, the one that is served is answered",
                step(initialize("1", version=version), reply("1", has((), protocolVersion=LEGACY))),
                rules="LEG.2",
                source=legacy_spec("basic/lifecycle", "version-negotiation"),
            )
            for word, version in (("older", "2025-06-18"), ("newer", "2099-01-01"), ("modern", "2026-07-28"))
        ),
        *(
            legacy(
                f"initialize-{word}",
                "an initialize without what it needs is refused",
                step(initialize("1", capabilities, version), error("1", -32602)),
                rules="LEG.2",
            )
            for word, capabilities, version in (("version", {}, 1), ("capabilities", [], LEGACY))
        ),
        legacy(
            "session",
            "over HTTP a session has an id, which every request has to name",
            step(
                initialize("1", headers=[], new_session=session),
                reply("1", has((), protocolVersion=LEGACY), session=session, http_status=200),
            ),
            step(initialized("2", headers=head), taken("2")),
            step(said("3", "ping", headers=head), reply("3", {}, http_status=200)),
            step(said("4", "ping", headers=head[:1]), error("4", -32600, 400)),
            step(
                said("5", "ping", headers=[head[0], ["Mcp-Session-Id", "another-0123456789"]]),
                error("5", -32600, 404),
            ),
            rules="LEG.2",
            source=legacy_spec("basic/transports", "session-management"),
        ),
        legacy(
            "session-owner",
            "somebody else's session is unknown",
            step(
                initialize("1", headers=[], new_session=session, principal="ada"),
                reply("1", ANY, session=session),
            ),
            step(said("2", "ping", headers=head, principal="bob"), error("2", -32600, 404)),
            step(said("3", "ping", headers=head, principal="ada"), reply("3", {})),
            rules="LEG.2 SEC.1",
            source=legacy_spec("basic/transports", "session-management"),
        ),
        legacy(
            "session-ends",
            "DELETE ends a session; it is unknown from then on",
            step(initialize("1", headers=[], new_session=session), reply("1", ANY, session=session)),
            step(
                {"type": "end_session", "exchange": "2", "headers": head},
                {"type": "reply", "exchange": "2", "message": None},
            ),
            step(said("3", "ping", headers=head), error("3", -32600, 404)),
            rules="LEG.2",
            source=legacy_spec("basic/transports", "session-management"),
        ),
        legacy(
            "tools",
            "each tool says whether it takes tasks",
            opened(),
            step(
                said("3", "tools/list"),
                reply(
                    "3",
                    has(
                        ("resultType", "ttlMs"),
                        tools=[
                            has((), name="render", execution=has((), taskSupport="optional")),
                            has((), name="bake", execution=has((), taskSupport="required")),
                            has((), name="ping", execution=has((), taskSupport="forbidden")),
                        ],
                    ),
                ),
            ),
            rules="LEG.3",
            source=legacy_spec("basic/utilities/tasks", "tool-level-negotiation"),
        ),
    ]


def calls() -> list[Vector]:
    """Return those of LEG.3 and LEG.9."""
    return [
        legacy(
            "as-a-task",
            "a call as a task: nested, working, with the lifetime asked for and this version's names",
            opened(),
            step(wants("3", task={"ttl": 5000}), runs(must=True)),
            step(
                handler("$inner", "become_task"),
                nested("3", ttl=5000, pollInterval={"$any": "integer"}),
                works("$inner"),
            ),
            rules="LEG.3",
        ),
        legacy(
            "plain",
            "trap 22: a plain call stays plain",
            opened(),
            step(wants("3"), runs(must=False)),
            step(handler("$inner", "return", result=DONE), reply("3", has(("task", "resultType"), **DONE))),
            rules="LEG.3",
        ),
        legacy(
            "forbidden",
            "a tool that forbids tasks, called as one",
            opened(),
            step(wants("3", "ping", task={}), error("3", -32601)),
            rules="LEG.3",
            source=legacy_spec("basic/utilities/tasks", "tool-level-negotiation"),
        ),
        legacy(
            "required",
            "a tool that needs tasks, called plainly",
            opened(),
            step(wants("3", "bake"), error("3", -32601)),
            step(wants("4", "bake", task={}), runs(must=True, tool="bake")),
            rules="LEG.3",
            source=legacy_spec("basic/utilities/tasks", "tool-level-negotiation"),
        ),
        *(
            legacy(
                f"wish-{word}",
                "a wish that makes no sense",
                opened(),
                step(wants("3", task=wish), error("3", -32602)),
                rules="LEG.3",
            )
            for word, wish in (("string", "yes"), ("ttl-string", {"ttl": "long"}))
        ),
        legacy(
            "modern-sees-it",
            "a task made here is there for requests of the modern era, by the same owner",
            opened(),
            made(),
            step(get("4"), seen("4")),
            step(work("complete", result=DONE)),
            step(get("5"), seen("5", "completed", result=final())),
            rules="LEG.9",
        ),
        legacy(
            "modern-task-here",
            "and a task of the modern era is there for a session",
            opened(),
            step(call("3"), starts("3")),
            step(handler("3", "become_task"), created("3"), works("3")),
            step(of_task("4", "tasks/get"), reply("4", task())),
            step(worker("complete", "3", result=DONE)),
            step(of_task("5", "tasks/result"), reply("5", related(**DONE))),
            rules="LEG.9",
        ),
        legacy(
            "both-at-once",
            "one endpoint serves both, and advertises to each its own",
            opened(),
            step(
                {
                    "type": "receive",
                    "exchange": "3",
                    "message": {
                        "jsonrpc": "2.0",
                        "id": 3,
                        "method": "server/discover",
                        "params": {
                            "_meta": {
                                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                                "io.modelcontextprotocol/clientCapabilities": TASKS,
                            }
                        },
                    },
                },
                reply(
                    "3",
                    has((), capabilities=has(("tasks",), extensions={"io.modelcontextprotocol/tasks": {}})),
                ),
            ),
            step(call("4", declared={"tasks": {}}), starts("4", may=False)),
            step(handler("4", "return", result=DONE), completed("4", **DONE)),
            rules="LEG.9 NEG.9",
        ),
    ]


def results() -> list[Vector]:
    """Return those of LEG.4 to LEG.7."""
    failed = {"content": [{"type": "text", "text": "No disk"}], "isError": True}
    ada = {"principal": "ada"}
    return [
        legacy(
            "result-waits",
            "tasks/result waits for the end, and then gives what the call would have given",
            opened(),
            made(),
            step(of_task("4", "tasks/result")),
            step(of_task("5", "tasks/get"), reply("5", task()), at=100),
            step(
                work("complete", result={**DONE, "_meta": {"a": 1}}),
                reply("4", has(("resultType",), **DONE, _meta={"a": 1, RELATED: {"taskId": "$task"}})),
                at=200,
            ),
            step(of_task("6", "tasks/result"), reply("6", related(**DONE))),
            rules="LEG.4",
        ),
        legacy(
            "several-wait",
            "several who wait all get it",
            opened(),
            made(),
            step(of_task("4", "tasks/result")),
            step(of_task("5", "tasks/result")),
            step(work("complete", result=DONE), reply("4", related(**DONE)), reply("5", related(**DONE))),
            rules="LEG.4",
        ),
        legacy(
            "error",
            "an error is that very error",
            opened(),
            made(),
            step(of_task("4", "tasks/result")),
            step(work("fail", error=BOOM), error("4", -32099, text="out of paper", data={"tray": 2})),
            step(of_task("5", "tasks/get"), reply("5", task("failed", statusMessage="out of paper"))),
            rules="LEG.4 LEG.6",
        ),
        legacy(
            "is-error",
            "trap 21: a tool's own error: failed, and the result is there all the same",
            opened(),
            made(),
            step(of_task("4", "tasks/result")),
            step(work("complete", result=failed), reply("4", related(**failed))),
            step(of_task("5", "tasks/get"), reply("5", task("failed", statusMessage=TEXT))),
            step(of_task("6", "tasks/result"), reply("6", related(**failed))),
            step(get("7"), seen("7", "completed", result=final(**failed))),
            rules="LEG.6 LEG.4",
        ),
        legacy(
            "cancelled-has-no-result",
            "a cancelled task has no result: an error",
            opened(),
            made(),
            step(of_task("4", "tasks/result")),
            step(
                of_task("5", "tasks/cancel"),
                stops("$inner"),
                error("4", -32602),
                reply("5", task("cancelled")),
            ),
            step(of_task("6", "tasks/result"), error("6", -32602)),
            rules="LEG.4 LEG.5",
        ),
        legacy(
            "cancel",
            "cancelled before the answer says so; a late result changes nothing",
            opened(),
            made(),
            step(of_task("4", "tasks/cancel"), stops("$inner"), reply("4", task("cancelled"))),
            step(work("complete", result=DONE)),
            step(of_task("5", "tasks/get"), reply("5", task("cancelled"))),
            rules="LEG.5",
        ),
        *(
            legacy(
                f"cancel-{status}",
                "a task that has ended cannot be cancelled",
                opened(),
                made(),
                step(work(does, **more)),
                step(of_task("4", "tasks/cancel"), error("4", -32602)),
                step(of_task("5", "tasks/get"), reply("5", task(status))),
                rules="LEG.5",
            )
            for status, does, more in (
                ("completed", "complete", {"result": DONE}),
                ("failed", "fail", {"error": BOOM}),
                ("cancelled", "stop", {}),
            )
        ),
        legacy(
            "unknown",
            "unknown, foreign and malformed ids are one to all methods",
            opened(),
            made(),
            *(
                step(of_task(str(number), method, id_), unknown(str(number)))
                for number, (method, id_) in enumerate(
                    [
                        (method, id_)
                        for id_ in (NOBODYS, 7, "x")
                        for method in ("tasks/get", "tasks/result", "tasks/cancel")
                    ],
                    start=4,
                )
            ),
            rules="LEG.7 GET.2",
            source=legacy_spec("basic/utilities/tasks", "protocol-errors"),
        ),
        legacy(
            "expired",
            "trap 23: a task that expires is unknown to who waits for it, and to every later request",
            opened(),
            made(ttl=5000),
            step(of_task("4", "tasks/result")),
            step({"type": "wait"}, unknown("4"), stops("$inner"), at=5000),
            step(of_task("5", "tasks/result"), unknown("5")),
            step(of_task("6", "tasks/get"), unknown("6")),
            rules="LEG.7 TTL.1",
            source=legacy_spec("basic/utilities/tasks", "protocol-errors"),
        ),
        legacy(
            "list",
            "only the caller's tasks, and pages by opaque cursors",
            opened(**ada),
            step(
                said("3", "tools/call", {"name": "render", "arguments": {}, "task": {}}, **ada),
                runs("$one", must=True),
            ),
            step(
                handler("$one", "become_task"),
                reply("3", has((), task=has((), taskId="$first"))),
                works("$one"),
            ),
            step(
                said("4", "tools/call", {"name": "render", "arguments": {}, "task": {}}, **ada),
                runs("$two", must=True),
            ),
            step(
                handler("$two", "become_task"),
                reply("4", has((), task=has((), taskId="$second"))),
                works("$two"),
            ),
            step(call("5", principal="bob"), starts("5")),
            step(handler("5", "become_task"), created("5", "$bobs"), works("5")),
            step(
                said("6", "tasks/list", **ada),
                reply("6", has((), tasks=[task(id_="$a")], nextCursor="$cursor")),
            ),
            step(
                said("7", "tasks/list", {"cursor": "$cursor"}, **ada),
                reply("7", has(("nextCursor",), tasks=[has((), taskId={"$other_than": "$a"})])),
            ),
            step(said("8", "tasks/list", {"cursor": "nonsense"}, **ada), error("8", -32602)),
            step(said("9", "tasks/list", {"cursor": 7}, **ada), error("9", -32602)),
            rules="LEG.7",
            page_size=1,
        ),
        legacy(
            "list-nameless",
            "where callers cannot be told apart, there is no list",
            opened(),
            step(said("3", "tasks/list"), error("3", -32601)),
            rules="LEG.7 LEG.2",
        ),
    ]


def questions() -> list[Vector]:
    """Return those of LEG.8."""
    return [
        legacy(
            "asked-on-the-result",
            "while a result is waited for, its task asks on that stream, and the answer takes it on",
            opened(),
            made(),
            step(of_task("4", "tasks/result")),
            step(asks(confirm=form()), asked("4", "$question", form())),
            step(of_task("5", "tasks/get"), reply("5", task("input_required"))),
            step(answers("6", "$question", result=ACCEPT), delivers(("confirm", ACCEPT), of="$inner")),
            step(of_task("7", "tasks/get"), reply("7", task())),
            step(work("complete", result=DONE), reply("4", related(**DONE))),
            rules="LEG.8",
        ),
        legacy(
            "asked-when-waited-for",
            "a question that waits is asked once a result is waited for",
            opened(),
            made(),
            step(asks(confirm=form())),
            step(of_task("4", "tasks/get"), reply("4", task("input_required"))),
            step(of_task("5", "tasks/result"), asked("5", "$question", form())),
            step(answers("6", "$question", result=ACCEPT), delivers(("confirm", ACCEPT), of="$inner")),
            rules="LEG.8",
        ),
        legacy(
            "asked-once",
            "trap 24: however many wait and poll, it is asked once",
            opened(),
            made(),
            step(of_task("4", "tasks/result")),
            step(of_task("5", "tasks/result")),
            step(asks(confirm=form()), asked("4", "$question", form())),
            step(of_task("6", "tasks/get"), reply("6", task("input_required"))),
            step(of_task("7", "tasks/get"), reply("7", task("input_required"))),
            step(answers("8", "$question", result=ACCEPT), delivers(("confirm", ACCEPT), of="$inner")),
            step(answers("9", "$question", result={"action": "decline"})),
            rules="LEG.8",
        ),
        legacy(
            "answered-in-the-other-era",
            "a modern request may answer it as well; then it is taken back",
            opened(),
            made(),
            step(of_task("4", "tasks/result")),
            step(asks(confirm=form()), asked("4", "$question", form())),
            step(
                update("5", {"confirm": ACCEPT}),
                delivers(("confirm", ACCEPT), of="$inner"),
                acked("5"),
                {
                    "type": "send",
                    "exchange": "4",
                    "message": has(
                        (), method="notifications/cancelled", params=has((), requestId="$question")
                    ),
                },
            ),
            rules="LEG.8 LEG.9",
            source=tasks_spec("backwards-compatibility"),
        ),
        legacy(
            "modern-cancel",
            "cancelled by a modern request, which is cooperative: who waits learns it when the work stops",
            opened(),
            made(),
            step(of_task("4", "tasks/result")),
            step(cancel("5"), stops("$inner", "requested"), acked("5")),
            step(work("stop"), error("4", -32602)),
            rules="LEG.9 CAN.6",
        ),
    ]


def vectors() -> list[Vector]:
    """Return all of them."""
    return [*sessions(), *calls(), *results(), *questions()]
