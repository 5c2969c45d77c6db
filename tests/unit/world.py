"""One server and what tests say to it: three tools, some task ids, forms, answers."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any, Final

import pytest

from mcp_tasks_proto import (
    Forward,
    HmacSealer,
    HttpHead,
    Input,
    Limits,
    LocalProtocolError,
    ServerEngine,
    ServerSettings,
    StartTool,
    Step,
    StreamReady,
    TaskSupport,
    TimePassed,
    ToolDeclaration,
    WorkAskedInput,
)
from mcp_tasks_proto.testing import DictStore, ServerHost, request
from mcp_tasks_proto.wire.http import request_headers

START: Final = 1_700_000_000_000
"""When every test begins, in Unix milliseconds."""
START_TEXT: Final = "2023-11-14T22:13:20"
"""The same, but for its milliseconds."""

TASK: Final = "task-one-0123456789abcdef"
OTHER: Final = "task-two-0123456789abcdef"
THIRD: Final = "task-three-0123456789abcd"
NEVER: Final = "task-never-0123456789abcd"
"""A well-formed id that no task has."""

FORMS: Final[Mapping[str, Any]] = {"elicitation": {}}
"""Client capabilities with which forms may be asked."""

ACCEPTED: Final = {"action": "accept", "content": {"name": "Ada"}}
DECLINED: Final = {"action": "decline"}
DONE: Final = {"content": [{"type": "text", "text": "done"}]}

TOOLS: Final = tuple(
    ToolDeclaration(
        name=support.value,
        definition={"name": support.value, "inputSchema": {"type": "object"}},
        task=support,
    )
    for support in (TaskSupport.OPTIONAL, TaskSupport.REQUIRED, TaskSupport.FORBIDDEN)
)


def make_engine(limits: Limits | None = None, **settings: Any) -> ServerEngine:
    """Return an engine with a tool for each kind of task support, named after it."""
    return ServerEngine(
        settings=ServerSettings(
            name="test", version="1", sealer=HmacSealer([b"k" * 32]), limits=limits or Limits(), **settings
        ),
        tools=TOOLS,
    )


def make_host(
    limits: Limits | None = None, *, store: DictStore | None = None, held: bool = False, **settings: Any
) -> ServerHost:
    """Return a host whose engine has looked for expired records already."""
    host = ServerHost(engine=make_engine(limits, **settings), store=store or DictStore(), now=START)
    host.give(TimePassed())
    host.held = held
    return host


def form(message: str = "Your name?", **more: Any) -> dict[str, Any]:
    """Return a request for a form with one required field, ``name``."""
    schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    params = {"mode": "form", "message": message, "requestedSchema": schema, **more}
    return {"method": "elicitation/create", "params": params}


def asked(
    ask: str, *names: str, task_id: str = TASK, token: Hashable = "asked", **requests: Mapping[str, Any]
) -> WorkAskedInput:
    """Return a worker's question: a form for each name, and ``requests``."""
    wanted = {**{name: form() for name in names}, **requests}
    return WorkAskedInput(task_id=task_id, token=token, ask=ask, requests=wanted)


def working(host: ServerHost, task_id: str = TASK, **facts: Any) -> dict[str, Any]:
    """Make a task whose client takes forms, and return the result that the client got."""
    facts.setdefault("capabilities", FORMS)
    return result(host.create_task("optional", {"frames": 3}, task_id=task_id, **facts))


def parked(host: ServerHost, *names: str, task_id: str = TASK, **facts: Any) -> None:
    """Make a task that waits for answers to these."""
    working(host, task_id, **facts)
    host.give(asked("first", *(names or ("confirm",)), task_id=task_id))


def view(host: ServerHost, task_id: str = TASK, **facts: Any) -> dict[str, Any]:
    """Return what ``tasks/get`` shows, without what every result has."""
    shown = result(host.ask("tasks/get", {"taskId": task_id}, **facts))
    return {name: value for name, value in shown.items() if name not in ("resultType", "_meta")}


def update(host: ServerHost, answers: Mapping[str, Any], task_id: str = TASK, **facts: Any) -> dict[str, Any]:
    """Send ``tasks/update`` and return the reply."""
    return host.ask("tasks/update", {"taskId": task_id, "inputResponses": answers}, **facts)


def cancel(host: ServerHost, task_id: str = TASK, **facts: Any) -> dict[str, Any]:
    """Send ``tasks/cancel`` and return the reply."""
    return host.ask("tasks/cancel", {"taskId": task_id}, **facts)


def call(host: ServerHost, tool: str = "optional", arguments: Any = None, **facts: Any) -> int:
    """Call a tool and return the exchange, in which its handler runs now."""
    transport = {name: facts.pop(name) for name in ("principal", "connection", "http") if name in facts}
    message = request("tools/call", {"name": tool, "arguments": arguments or {}}, **facts)
    exchange = host.send(message, **transport)
    assert any(started.exchange == exchange for started in host.of(StartTool)), host.effects[-1]
    return exchange


def forwarded(host: ServerHost, method: str, params: Mapping[str, Any] | None = None, **facts: Any) -> int:
    """Send a request that the host answers, and return the exchange."""
    exchange = host.send(request(method, params, **facts))
    assert any(one.exchange == exchange for one in host.of(Forward)), host.effects[-1]
    return exchange


def listen(host: ServerHost, *task_ids: str, principal: str | None = None, **filters: Any) -> int:
    """Open a listen stream on these tasks and return its exchange."""
    wanted: dict[str, Any] = dict(filters)
    if task_ids:
        wanted["taskIds"] = list(task_ids)
    return host.send(
        request("subscriptions/listen", {"notifications": wanted}, id="stream"), principal=principal
    )


def read(host: ServerHost, exchange: int) -> list[dict[str, Any]]:
    """Let the client read all there is on a stream, and return everything it has got on it."""
    while host.give(StreamReady(exchange)):
        pass
    return host.sent_on(exchange)


def result(reply: Mapping[str, Any]) -> dict[str, Any]:
    """Return the result in a reply, which must have one."""
    assert "result" in reply, reply
    found: dict[str, Any] = reply["result"]
    return found


def error(reply: Mapping[str, Any]) -> dict[str, Any]:
    """Return the error in a reply, which must have one."""
    assert "error" in reply, reply
    found: dict[str, Any] = reply["error"]
    return found


def head(message: Mapping[str, Any], **changed: str | None) -> HttpHead:
    """Return the head that a well-behaved client sends with a message, some headers changed or left out."""
    sent = request_headers(message["method"], message["params"], "2026-07-28")
    headers: dict[str, str | None] = {name.lower(): value for name, value in sent}
    headers |= {name.replace("_", "-"): value for name, value in changed.items()}
    return HttpHead(headers={name: value for name, value in headers.items() if value is not None})


def refused(host: ServerHost, fact: Input) -> str:
    """Hand in what the host must not say now, and return the complaint."""
    with pytest.raises(LocalProtocolError) as caught:
        host.give(fact)
    return str(caught.value)


def steps(engine: ServerEngine, facts: list[tuple[int, Input]]) -> list[Step]:
    """Hand in facts, each at its own time, and return what came of them."""
    return [engine.handle(fact, now=now) for now, fact in facts]


Script = Callable[[ServerHost], object]
"""What a test does to a host."""
