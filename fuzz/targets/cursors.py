"""Cursors, and requests to the dashboard. Line 1 says whose reader it is for.

``ada``, ``bob``, ``state`` or ``deep``, and then changes as :mod:`fuzz.editing` has them: a cursor that a
server of 2025-11-25 gave to Ada or Bob, or a request state under the same key, plain or deeply nested. Only
Ada's own cursor, unchanged, has a next page for Ada; all else is -32602, also as a cursor of tools (LEG.7).

A request line for the dashboard, and then a body: only ``RefusedError`` is raised, what is read is within its
bounds, and a place in a list is written as it is read (HIS.2).
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from mcp_tasks_adapters.dashboard.requests import (
    MOST_ROWS,
    NAME_CHARS,
    AssignOne,
    ControlOne,
    ListSome,
    RefusedError,
    read_request,
    written_place,
)

from fuzz.editing import edited
from mcp_tasks_proto import (
    HmacSealer,
    ServerSettings,
    ToolDeclaration,
)
from mcp_tasks_proto.legacy.server import DualEraServer, LegacyPolicy
from mcp_tasks_proto.limits import Limits
from mcp_tasks_proto.request_state import seal_state
from mcp_tasks_proto.testing import ServerHost
from mcp_tasks_proto.wire.http import EndpointPolicy, Refusal
from mcp_tasks_proto.wire.pages import check_page_head

LIMITS: Final = Limits(message_bytes=512)
SEALER: Final = HmacSealer([b"k" * 32])
DEEP: Final = 70


def check(data: bytes) -> None:
    """Ask whoever is meant."""
    first, _, rest = data.partition(b"\n")
    given = _cursors().get(str(first, "latin-1"))
    if given is not None:
        _check_cursor(given, edited(given, rest))
        return
    _check_cursor("", str(first, "latin-1"))
    method, _, target = first.partition(b" ")
    _check_dashboard(method, target, rest)


# -- lists of 2025-11-25 -------------------------------------------------------------------------------------


@cache
def _host() -> ServerHost:
    """Return a server on which Ada and Bob have two tasks each, shown one at a time."""
    settings = ServerSettings(name="fuzz", version="1", sealer=SEALER, page_size=1)
    tools = [
        ToolDeclaration(name=name, definition={"name": name, "inputSchema": {}}) for name in ("ada", "render")
    ]
    host = ServerHost(engine=DualEraServer(settings=settings, tools=tools, policy=LegacyPolicy.SERVE))
    for principal in ("ada", "bob"):
        greeting = {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "fuzz", "version": "1"},
        }
        _ask(principal, "initialize", greeting, host)
        for number in range(2):
            name = f"task-of-{principal}-{number:014}"
            host.create_task("render", task_id=name, ttl_ms=None, principal=principal)
    return host


def _ask(
    principal: str, method: str, params: dict[str, Any], host: ServerHost | None = None
) -> dict[str, Any]:
    server = host or _host()
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    exchange = server.send(message, principal=principal, connection=principal)
    reply = server.reply_to(exchange)
    server.effects.clear()
    return reply


@cache
def _cursors() -> dict[str, str]:
    def state(contents: Any) -> str:
        return seal_state(
            SEALER,
            principal="ada",
            method="tools/call",
            params={},
            asked={},
            state=contents,
            expires_at_ms=2**53,
        )

    nested: Any = 0
    for _ in range(DEEP):
        nested = [nested]
    pages = {principal: _ask(principal, "tasks/list", {}) for principal in ("ada", "bob")}
    given = {principal: page["result"]["nextCursor"] for principal, page in pages.items()}
    return {**given, "state": state({"tasks/list": "ada", "after": "task"}), "deep": state(nested)}


def _check_cursor(given: str, cursor: str) -> None:
    reply = _ask("ada", "tasks/list", {"cursor": cursor})
    if given == cursor == _cursors()["ada"]:
        (task,) = reply["result"]["tasks"]
        assert task["taskId"] == f"task-of-ada-{1:014}", "LEG.7: another page than the next"
    else:
        assert reply["error"]["code"] == -32602, "LEG.7: a cursor that was not given to this caller"
    listed = _ask("ada", "tools/list", {"cursor": cursor})
    known = cursor in ("ada", "render")
    assert known == ("result" in listed), "LEG.7: a cursor of tools"
    assert known or listed["error"]["code"] == -32602


# -- the dashboard -------------------------------------------------------------------------------------------


def _check_dashboard(method: bytes, target: bytes, body: bytes) -> None:
    headers = [(b"Host", b"localhost"), (b"Content-Type", b"application/json")]
    head = check_page_head(method, target, headers, EndpointPolicy(), LIMITS)
    if isinstance(head, Refusal):
        return
    try:
        asked = read_request(head, body, LIMITS)
    except RefusedError as refused:
        assert 400 <= refused.answer.status < 500, "HIS.5: whoever asks in a wrong way is told so"
        return
    match asked:
        case ListSome():
            assert 0 < asked.most <= MOST_ROWS, "LIM.3: more rows than may be"
            if asked.after is not None:
                again = f"{target.decode('latin-1').partition('?')[0]}?cursor={written_place(asked.after)}"
                second = check_page_head(b"GET", again, headers, EndpointPolicy(), LIMITS)
                assert not isinstance(second, Refusal)
                found = read_request(second, b"", LIMITS)
                assert isinstance(found, ListSome)
                assert found.after == asked.after, "HIS.2: another place than was written"
        case AssignOne(assignee=str(name)):
            assert 0 < len(name) <= NAME_CHARS, "LIM.3: a longer name than may be"
        case ControlOne(responses=responses):
            assert (responses is not None) == target.partition(b"?")[0].endswith(b"/answers")
