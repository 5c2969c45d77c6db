"""What is said in conversations, as readable calls: facts of the server's world, and what it must do."""

from __future__ import annotations

from typing import Any, Final

from docs.vector_sources.making import Vector, conversation

EXTENSION: Final = "io.modelcontextprotocol/tasks"
VERSION: Final = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES: Final = "io.modelcontextprotocol/clientCapabilities"
SERVER_INFO: Final = "io.modelcontextprotocol/serverInfo"
SUBSCRIPTION: Final = "io.modelcontextprotocol/subscriptionId"
MODERN: Final = "2026-07-28"

TASKS: Final[dict[str, Any]] = {"extensions": {EXTENSION: {}}}
USUAL: Final[dict[str, Any]] = {**TASKS, "elicitation": {}}
"""What a client declares unless a vector says otherwise: tasks, and forms."""
TEXT: Final[dict[str, Any]] = {"$any": "string"}
ANY: Final[dict[str, Any]] = {"$any": "value"}
ACCEPT: Final[dict[str, Any]] = {"action": "accept", "content": {"ok": True}}
DECLINE: Final[dict[str, Any]] = {"action": "decline"}
DONE: Final[dict[str, Any]] = {"content": [{"type": "text", "text": "done"}]}

Given = dict[str, Any]
Output = dict[str, Any]
Step = dict[str, Any]

TOOLS: Final[dict[str, Any]] = {
    "tools": [
        {"name": "render", "task": "optional"},
        {"name": "bake", "task": "required"},
        {"name": "ping", "task": "forbidden"},
    ]
}
"""The tools of a server unless a vector says otherwise."""


def form(message: str = "Go on?") -> dict[str, Any]:
    """Return a question that is a form with one field, ``ok``."""
    schema = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
    params = {"mode": "form", "message": message, "requestedSchema": schema}
    return {"method": "elicitation/create", "params": params}


# -- steps -----------------------------------------------------------------------------------------------


def step(given: Given, *expect: Output, at: int | None = None) -> Step:
    """Return a step: what happens, what is to come of it, and when if time has passed since the last one."""
    return {**({} if at is None else {"at_ms": at}), "given": given, "expect": list(expect)}


def server(id_: str, says: str, *steps: Step | list[Step], rules: str, source: str, **setup: Any) -> Vector:
    """Return a conversation with a server; a list among the steps stands for its own."""
    flat = [one for part in steps for one in (part if isinstance(part, list) else [part])]
    return conversation(
        "server",
        f"{rules.split()[0]}/server/{id_}",
        says,
        flat,
        rules=rules,
        source=source,
        setup={**TOOLS, **setup},
    )


# -- facts -----------------------------------------------------------------------------------------------


def message_of(
    exchange: str, method: str, params: dict[str, Any], declared: Any = None, **more: Any
) -> dict[str, Any]:
    """Return a request whose id is the exchange's number."""
    meta = {VERSION: MODERN, CAPABILITIES: USUAL if declared is None else declared, **more.pop("meta", {})}
    return {
        "jsonrpc": "2.0",
        "id": more.get("id", int(exchange)),
        "method": method,
        "params": {**params, "_meta": meta},
    }


def ask(
    exchange: str, method: str, params: dict[str, Any] | None = None, declared: Any = None, **facts: Any
) -> Given:
    """Return that a request comes in; ``id`` and ``meta`` are its own, the rest says how it came."""
    own = {name: facts.pop(name) for name in ("id", "meta") if name in facts}
    return receive(exchange, message_of(exchange, method, params or {}, declared, **own), **facts)


def receive(exchange: str, message: Any, **facts: Any) -> Given:
    """Return that any message comes in."""
    return {"type": "receive", "exchange": exchange, "message": message, **facts}


def call(
    exchange: str, tool: str = "render", declared: Any = None, arguments: Any = None, **facts: Any
) -> Given:
    """Return that a tool is called."""
    return ask(exchange, "tools/call", {"name": tool, "arguments": arguments or {}}, declared, **facts)


def get(exchange: str, task: Any = "$task", declared: Any = None, **facts: Any) -> Given:
    """Return that a task is asked for."""
    return ask(exchange, "tasks/get", {"taskId": task}, declared, **facts)


def update(exchange: str, answers: Any, task: Any = "$task", declared: Any = None, **facts: Any) -> Given:
    """Return that answers come in."""
    return ask(exchange, "tasks/update", {"taskId": task, "inputResponses": answers}, declared, **facts)


def cancel(exchange: str, task: Any = "$task", declared: Any = None, **facts: Any) -> Given:
    """Return that a task is to be cancelled."""
    return ask(exchange, "tasks/cancel", {"taskId": task}, declared, **facts)


def listen(exchange: str, *tasks: Any, declared: Any = None, tools: bool = False, **facts: Any) -> Given:
    """Return that a stream is opened."""
    wanted = {**({"taskIds": list(tasks)} if tasks else {}), **({"toolsListChanged": True} if tools else {})}
    return ask(exchange, "subscriptions/listen", {"notifications": wanted}, declared, **facts)


def handler(exchange: str, does: str, **more: Any) -> Given:
    """Return what the handler of a request does: return, fail, ask, notify, become_task."""
    return {"type": "handler", "exchange": exchange, "does": does, **more}


def worker(does: str, of: str = "1", **more: Any) -> Given:
    """Return what the work of a task does: report, ask, withdraw, complete, fail, stop."""
    return {"type": "worker", "of": of, "does": does, **more}


def asks(question: str = "first", of: str = "1", **requests: Any) -> Given:
    """Return that the work of a task asks."""
    return worker("ask", of, question=question, requests=requests)


def wait() -> Given:
    """Return that only time passes."""
    return {"type": "wait"}


def leaves(exchange: str) -> Given:
    """Return that a client goes away."""
    return {"type": "disconnect", "exchange": exchange}


def store(does: str) -> Given:
    """Return what the store does with the oldest write: commit, fail."""
    return {"type": "store", "does": does}


def host(does: str, **more: Any) -> Given:
    """Return what the host does: restart, shut_down, set_ttl, rotate_keys, drop_keys."""
    return {"type": "host", "does": does, **more}


# -- outputs ---------------------------------------------------------------------------------------------


def has(lacks: tuple[str, ...] = (), **members: Any) -> dict[str, Any]:
    """Return an object with these members at least, and without some."""
    return {"$has": members, **({"$lacks": list(lacks)} if lacks else {})}


def reply(exchange: str, result: Any, *, id: Any = None, **more: Any) -> Output:  # noqa: A002
    """Return a result."""
    id_ = int(exchange) if id is None else id
    return {
        "type": "reply",
        "exchange": exchange,
        "message": {"jsonrpc": "2.0", "id": id_, "result": result},
        **more,
    }


def taken(exchange: str) -> Output:
    """Return that a notification was taken: 202 over HTTP, nothing elsewhere."""
    return {"type": "reply", "exchange": exchange, "message": None, "http_status": 202}


def error(
    exchange: str,
    code: int,
    http: int | None = None,
    *,
    id: Any = None,  # noqa: A002 - the wire's own word
    text: Any = TEXT,
    data: Any = None,
) -> Output:
    """Return an error; its ``data`` is looked at where it is said, ``...``: there is none."""
    id_ = int(exchange) if id is None else id
    members = {"code": code, "message": text, **({} if data is None or data is ... else {"data": data})}
    told = has(("data",), **members) if data is ... else has((), **members)
    status = {} if http is None else {"http_status": http}
    return {
        "type": "reply",
        "exchange": exchange,
        "message": {"jsonrpc": "2.0", "id": id_, "error": told},
        **status,
    }


def unknown(exchange: str, **more: Any) -> Output:
    """Return the one answer to every id that is not the caller's task's."""
    return error(exchange, -32602, 200, text="$unknown", data=..., **more)


PAYLOADS: Final = ("result", "error", "inputRequests", "requestState")


def view(status: str = "working", task: Any = "$task", **members: Any) -> dict[str, Any]:
    """Return a task as it is seen: with these members, and without those of another status."""
    lacks = tuple(name for name in PAYLOADS if name not in members)
    return has(lacks, **{"taskId": task, "status": status, "ttlMs": {"$any": "integer or null"}, **members})


def seen(exchange: str, status: str = "working", task: Any = "$task", **members: Any) -> Output:
    """Return the answer of ``tasks/get``."""
    inner = view(status, task, resultType="complete", **members)
    return reply(exchange, inner, http_status=200)


def created(exchange: str, task: Any = "$task", status: str = "working", **members: Any) -> Output:
    """Return the handle of a new task: flat, and without a payload."""
    return reply(exchange, view(status, task, resultType="task", **members), http_status=200)


def acked(exchange: str) -> Output:
    """Return the acknowledgement of an update or a cancellation."""
    lacks = ("taskId", "status", "task", "result")
    return reply(exchange, has(lacks, resultType="complete"), http_status=200)


def completed(exchange: str, **members: Any) -> Output:
    """Return an ordinary result."""
    return reply(exchange, has(("taskId",), resultType="complete", **members), http_status=200)


def starts(exchange: str, tool: str = "render", *, may: bool = True, **more: Any) -> Output:
    """Return that a tool is to be run."""
    return {"type": "start_tool", "exchange": exchange, "tool": tool, "may_become_task": may, **more}


def works(of: str = "1") -> Output:
    """Return that the work of a task is to begin."""
    return {"type": "start_work", "of": of}


def delivers(*answers: tuple[str, Any], of: str = "1", question: str = "first") -> Output:
    """Return that answers go to the work."""
    told = [{"question": question, "name": name, "response": response} for name, response in answers]
    return {"type": "deliver", "of": of, "answers": told}


def stops(of: str = "1", reason: str | None = None) -> Output:
    """Return that the work is told to stop."""
    return {"type": "stop_work", "of": of, **({} if reason is None else {"reason": reason})}


def refused(of: str = "1") -> Output:
    """Return that what the work said was not taken."""
    return {"type": "report_refused", "of": of}


def sends(exchange: str, method: str, params: Any) -> Output:
    """Return a notification on a stream."""
    return {
        "type": "send",
        "exchange": exchange,
        "message": {"jsonrpc": "2.0", "method": method, "params": params},
    }


def on_stream(id_: Any) -> dict[str, Any]:
    """Return the ``_meta`` of what is sent on a stream."""
    return {"$has": {SUBSCRIPTION: id_}}


def acknowledges(exchange: str, *tasks: Any, tools: bool = False, id: Any = None) -> Output:  # noqa: A002
    """Return the first message of a stream."""
    agreed = {
        **({"taskIds": {"$unordered": list(tasks)}} if tasks else {}),
        **({"toolsListChanged": True} if tools else {}),
    }
    meta = on_stream(int(exchange) if id is None else id)
    return sends(
        exchange, "notifications/subscriptions/acknowledged", has((), notifications=agreed, _meta=meta)
    )


def tells(
    exchange: str,
    status: str = "working",
    task: Any = "$task",
    *,
    id: Any = None,  # noqa: A002 - the wire's own word
    **members: Any,
) -> Output:
    """Return a task's view on a stream."""
    meta = on_stream(int(exchange) if id is None else id)
    return sends(exchange, "notifications/tasks", view(status, task, _meta=meta, **members))


def final(**members: Any) -> dict[str, Any]:
    """Return the result inside a completed task."""
    return has((), resultType="complete", **(members or DONE))


# -- what often comes first ------------------------------------------------------------------------------


def made(
    exchange: str = "1", task: str = "$task", at: int | None = None, becomes: Any = None, **facts: Any
) -> list[Step]:
    """Return the steps in which a call becomes a task."""
    return [
        step(call(exchange, **facts), starts(exchange, facts.get("tool", "render")), at=at),
        step(handler(exchange, "become_task", **(becomes or {})), created(exchange, task), works(exchange)),
    ]
