"""Checks of HTTP: verbs, headers, status codes (HTTP)."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import Any, Final

from mcp_tasks_proto.testing.kit.acts import Post, Script
from mcp_tasks_proto.testing.kit.arguments import sample
from mcp_tasks_proto.testing.kit.checks import Answer, Check, Need, Strength, Unseen, check
from mcp_tasks_proto.testing.kit.desk import Desk, Role, task_of
from mcp_tasks_proto.testing.kit.judging import (
    demand,
    described,
    object_of,
    refused,
    result_of,
    seen,
    view_of,
)
from mcp_tasks_proto.vocabulary import LEGACY_VERSION
from mcp_tasks_proto.wire.http import HeaderParameter, header_parameters

__all__ = ["CHECKS", "WATCHES"]

HTTP: Final = (Need.MODERN, Need.HTTP)
TASKS: Final = (*HTTP, Need.TASKS)
MISMATCH: Final = -32020
NO_TASK: Final = "kit-no-such-task-0123456789abcdef"
SPECIFIED: Final = "MCP 2026-07-28, Streamable HTTP"
VALIDATION: Final = f"{SPECIFIED}: Server Validation"
STATUSES: Final[Mapping[int, tuple[int, Strength]]] = {
    -32601: (404, Strength.MUST),
    -32020: (400, Strength.MUST),
    -32021: (400, Strength.MUST),
    -32022: (400, Strength.MUST),
    -32700: (400, Strength.CHOICE),
    -32600: (400, Strength.CHOICE),
}
"""The status of each code, and how strongly it is asked for."""
OF_THE_HEAD: Final = frozenset({401, 403, 404, 405, 406, 408, 413, 415, 429, 431})
"""Statuses that say what is wrong with the head of a request, whatever the error in the body."""


def _refused_head(desk: Desk, post: Post, status: int) -> Script[None]:
    answer = yield from desk.ask(post)
    demand(answer.status == status, f"there came {described(answer)}, not HTTP {status}", answer)


def _kind_of(answer: Answer) -> str:
    return answer.headers.get("content-type", "").partition(";")[0].strip().lower()


@check(
    "HTTP.1",
    strength=Strength.SHOULD,
    needs=HTTP,
    asks="GET and DELETE, which belong to sessions of 2025-11-25, are answered with 405 outside one. A "
    "server that has sessions may also say that one is missing (400, 404), or open a stream for GET without.",
    source=f"{SPECIFIED}: Earlier Streamable HTTP Revisions (of who supports no other revision); "
    "MCP 2025-11-25, Streamable HTTP: Session Management, Listening for Messages from the Server",
)
def other_verbs(desk: Desk) -> Script[None]:
    headers = (("Accept", "text/event-stream"),)
    for verb in ("GET", "DELETE"):
        post = Post(verb=verb, headers=headers, era="none")
        if Need.LEGACY in desk.lacking:
            yield from _refused_head(desk, post, 405)
            continue
        answer = yield from desk.ask(post, desk.settings.look_ms)
        streams = verb == "GET" and _kind_of(answer) == "text/event-stream"
        refuses = answer.status in (400, 404, 405)
        demand(refuses or streams, f"there came {described(answer)}, not HTTP 405", answer)


@check(
    "HTTP.1",
    strength=Strength.MUST,
    needs=HTTP,
    asks="A request with an Origin that is not allowed is answered with 403.",
    source=f"{SPECIFIED}: Security & Endpoint",
)
def a_foreign_origin(desk: Desk) -> Script[None]:
    post = desk.request("server/discover").with_header("Origin", "https://kit.invalid")
    yield from _refused_head(desk, post, 403)


@check(
    "HTTP.1",
    strength=Strength.CHOICE,
    needs=HTTP,
    asks="A body that is not application/json is answered with 415.",
    source=f"{SPECIFIED}: Sending Messages (the status is left open); RFC 9110, 415",
)
def another_content_type(desk: Desk) -> Script[None]:
    post = desk.request("server/discover").with_header("Content-Type", "text/plain")
    yield from _refused_head(desk, post, 415)


@check(
    "HTTP.1",
    strength=Strength.CHOICE,
    needs=HTTP,
    asks="A client that accepts neither JSON nor event streams is answered with 406.",
    source=f"{SPECIFIED}: Sending Messages (the status is left open); RFC 9110, 406",
)
def an_accept_that_takes_nothing(desk: Desk) -> Script[None]:
    post = desk.request("server/discover").with_header("Accept", "text/html")
    yield from _refused_head(desk, post, 406)


@check(
    "HTTP.2",
    strength=Strength.MUST,
    needs=HTTP,
    asks="A request without MCP-Protocol-Version or Mcp-Method is answered with -32020, HTTP 400. A server "
    "that serves older versions too may take the first for one of theirs, and refuse it in their way.",
    source=f"{VALIDATION}; {SPECIFIED}: Protocol Version Header",
)
def headers_that_are_missing(desk: Desk) -> Script[None]:
    good = desk.request("server/discover")
    refused((yield from desk.ask(good.with_header("Mcp-Method"))), MISMATCH, status=400)
    answer = yield from desk.ask(good.with_header("MCP-Protocol-Version"))
    if Need.LEGACY in desk.lacking:
        refused(answer, MISMATCH, status=400)
    else:
        demand(answer.result is None, "it was answered as if the header were there", answer)


@check(
    "HTTP.2",
    strength=Strength.MUST,
    needs=HTTP,
    asks="A request whose MCP-Protocol-Version or Mcp-Method differs from the body, be it by upper and "
    "lower case, is answered with -32020, HTTP 400.",
    source=f"{VALIDATION}; {SPECIFIED}: Case Sensitivity",
)
def headers_that_differ(desk: Desk) -> Script[None]:
    good = desk.request("server/discover")
    for name, value in (
        ("Mcp-Method", "tools/list"),
        ("Mcp-Method", "Server/Discover"),
        ("MCP-Protocol-Version", LEGACY_VERSION),
    ):
        refused((yield from desk.ask(good.with_header(name, value))), MISMATCH, status=400)


@check(
    "HTTP.2",
    strength=Strength.CHOICE,
    needs=HTTP,
    asks="A standard header that stands there twice is answered with -32020, HTTP 400, be both the same.",
    source=f"{VALIDATION} (repetition is not mentioned); RFC 9110, section 5.3",
)
def headers_that_are_repeated(desk: Desk) -> Script[None]:
    good = desk.request("server/discover")
    post = good.with_header("Mcp-Method", "server/discover", "server/discover")
    refused((yield from desk.ask(post)), MISMATCH, status=400)


@check(
    "HTTP.2",
    strength=Strength.MUST,
    needs=HTTP,
    asks="tools/call without Mcp-Name, or with the name of another tool, is answered with -32020, HTTP 400.",
    source=f"{VALIDATION}; {SPECIFIED}: Standard Request Headers",
)
def the_name_of_a_tool(desk: Desk) -> Script[None]:
    call = desk.tool(Role.PLAIN, Role.COMPLETING, Role.ASKING_FIRST)
    for values in ((), ("kit no such tool",), ("=?base64?!?=",)):
        answer = yield from desk.ask(desk.call(call).with_header("Mcp-Name", *values))
        refused(answer, MISMATCH, status=400)


@check(
    "HTTP.2",
    strength=Strength.MUST,
    needs=TASKS,
    asks="tasks/get, tasks/update and tasks/cancel with an Mcp-Name that is not the taskId are answered "
    "with -32020, HTTP 400.",
    source=f"Tasks extension: Routing Headers; {VALIDATION}",
)
def the_name_of_another_task(desk: Desk) -> Script[None]:
    for method in ("tasks/get", "tasks/update", "tasks/cancel"):
        post = desk.request(method, {"taskId": NO_TASK, "inputResponses": {}})
        refused((yield from desk.ask(post.with_header("Mcp-Name", "another"))), MISMATCH, status=400)


@check(
    "HTTP.2",
    strength=Strength.CHOICE,
    needs=TASKS,
    asks="tasks/get without Mcp-Name is answered with -32020, HTTP 400.",
    source="Tasks extension: Routing Headers (clients must send it; what a server does is left open)",
)
def a_task_without_its_name(desk: Desk) -> Script[None]:
    post = desk.request("tasks/get", {"taskId": NO_TASK}).with_header("Mcp-Name")
    refused((yield from desk.ask(post)), MISMATCH, status=400)


@check(
    "HTTP.2",
    strength=Strength.MUST,
    needs=TASKS,
    asks="Names of headers are read whatever their case, values with or without spaces around them, and "
    "Mcp-Name also in Base64: =?base64?…?=.",
    source=f"{SPECIFIED}: Value Encoding, Case Sensitivity; RFC 9110, section 5.5",
)
def headers_in_other_clothes(desk: Desk) -> Script[None]:
    made = yield from desk.create(Role.COMPLETING, Role.SLOW, Role.ASKING)
    task_id = str(task_of(made))
    good = desk.request("tasks/get", {"taskId": task_id})
    encoded = b64encode(task_id.encode()).decode()
    for post in (
        good.with_header("Mcp-Name", f"=?base64?{encoded}?="),
        good.with_header("Mcp-Name").with_header("mcp-NAME", f"  {task_id} "),
    ):
        view_of((yield from desk.ask(post)))


@check(
    "HTTP.3",
    strength=Strength.MUST,
    needs=HTTP,
    asks="An argument that its tool wants in a header (x-mcp-header) has to be there, and the same: or "
    "-32020, HTTP 400.",
    source=f"{SPECIFIED}: Custom Headers from Tool Parameters, Server Behavior",
)
def mirrored_arguments(desk: Desk) -> Script[None]:
    name, parameter = _mirrored(desk)
    schema = desk.tools[name].get("inputSchema")
    wanted = object_of(schema)
    for part in parameter.path:
        wanted = object_of(object_of(wanted.get("properties")).get(part))
    value = sample(wanted)
    seen(value is not None, "no value is known for the parameter that has x-mcp-header")
    arguments = _with_member(sample(schema), parameter.path, value)
    good = desk.request("tools/call", {"name": name, "arguments": arguments})
    for values in ((), ("another",)):
        answer = yield from desk.ask(good.with_header(parameter.header, *values))
        refused(answer, MISMATCH, status=400)


def _with_member(arguments: Any, path: Sequence[str], value: Any) -> Any:
    """Return arguments which have a member at the end of this path: their own, or else this one."""
    if not path:
        return value if arguments is None else arguments
    held = object_of(arguments)
    return {**held, path[0]: _with_member(held.get(path[0]), path[1:], value)}


def _mirrored(desk: Desk) -> tuple[str, HeaderParameter]:
    """Return a tool with an annotated parameter, and that parameter."""
    for name, tool in desk.tools.items():
        try:
            parameters = header_parameters(tool.get("inputSchema", {}))
        except ValueError:
            parameters = ()
        if parameters:
            return name, parameters[0]
    raise Unseen("no tool has a parameter with x-mcp-header")


@check(
    "HTTP.3",
    strength=Strength.SHOULD,
    needs=HTTP,
    asks="Mcp-Session-Id and Last-Event-ID, which belong to 2025-11-25, are ignored in a modern request, "
    "and no session is opened.",
    source=f"{SPECIFIED}: Earlier Streamable HTTP Revisions",
)
def headers_of_sessions(desk: Desk) -> Script[None]:
    good = desk.request("server/discover")
    answer = yield from desk.ask(good.with_header("Mcp-Session-Id", "kit").with_header("Last-Event-ID", "1"))
    result_of(answer)
    demand("mcp-session-id" not in answer.headers, "the response has an Mcp-Session-Id", answer)


@check(
    "HTTP.4",
    strength=Strength.MUST,
    needs=HTTP,
    asks="A notification is answered with 202 and no body, or, where it cannot be accepted, with a status "
    "of 400 or more.",
    source=f"{SPECIFIED}: Sending Messages 5",
)
def a_notification(desk: Desk) -> Script[None]:
    message = {"jsonrpc": "2.0", "method": "notifications/kit", "params": {}}
    answer = yield from desk.told(desk.post(message, era="none"))
    if answer.status == 202:
        empty = answer.headers.get("content-length", "0").strip() in ("", "0")
        demand(
            empty and not answer.messages and answer.trouble is None,
            "202 came with a body",
            answer,
        )
    else:
        demand((answer.status or 0) >= 400, f"there came {described(answer)}", answer)


@check(
    "HTTP.4",
    strength=Strength.MUST,
    asks="A response is application/json, or text/event-stream.",
    source=f"{SPECIFIED}: Sending Messages 6",
)
def kinds_of_bodies(desk: Desk) -> None:
    found = [one for one in desk.log if one.response is not None and one.status is not None]
    seen(found, Need.HTTP.value)
    for answer in found:
        kind = _kind_of(answer)
        demand(kind in ("application/json", "text/event-stream"), f"the response is {kind!r}", answer)


@check(
    "HTTP.4",
    strength=Strength.SHOULD,
    needs=(Need.MODERN,),
    asks="Event streams come with X-Accel-Buffering: no.",
    source=f"{SPECIFIED}: Receiving Messages",
)
def streams_are_not_buffered(desk: Desk) -> None:
    streams = [one for one in desk.log if _kind_of(one) == "text/event-stream" and one.post.era == "modern"]
    seen(streams, "there was no event stream")
    for answer in streams:
        demand(answer.headers.get("x-accel-buffering") == "no", "a stream comes without it", answer)


@check(
    "HTTP.5",
    strength=Strength.MUST,
    needs=(Need.MODERN,),
    asks="-32601 comes with HTTP 404; -32020, -32021 and -32022 with 400; results with 200.",
    source=f"{SPECIFIED}: Protocol Version Header, Server Validation; MCP 2026-07-28, Overview: _meta",
)
def status_codes(desk: Desk) -> None:
    _statuses(desk, Strength.MUST)


@check(
    "HTTP.5",
    strength=Strength.CHOICE,
    needs=(Need.MODERN,),
    asks="-32700 and -32600 come with HTTP 400, unless it is the head that is wrong.",
    source=f"{SPECIFIED} (not said for a request; 400 for a notification that cannot be accepted)",
)
def status_codes_of_malformed_requests(desk: Desk) -> None:
    _statuses(desk, Strength.CHOICE)


def _statuses(desk: Desk, strength: Strength) -> None:
    judged = False
    for answer in desk.log:
        due = _status_due(answer, strength) if answer.post.era != "legacy" else None
        if due is not None and answer.status is not None:
            judged = True
            demand(answer.status == due, f"there came {described(answer)}, not HTTP {due}", answer)
    seen(judged, Need.HTTP.value if not desk.speaks_http else "no such answer came")


def _status_due(answer: Answer, strength: Strength) -> int | None:
    """Return the status that an answer has to have, as far as it is asked for so strongly."""
    if answer.result is not None:
        return 200 if strength is Strength.MUST else None
    for code, (status, asked) in STATUSES.items():
        of_the_head = asked is Strength.CHOICE and answer.status in OF_THE_HEAD
        if answer.code == code and asked is strength and not of_the_head:
            return status
    return None


CHECKS: Final[tuple[Check, ...]] = (
    other_verbs,
    a_foreign_origin,
    another_content_type,
    an_accept_that_takes_nothing,
    headers_that_are_missing,
    headers_that_differ,
    headers_that_are_repeated,
    the_name_of_a_tool,
    the_name_of_another_task,
    a_task_without_its_name,
    headers_in_other_clothes,
    mirrored_arguments,
    headers_of_sessions,
    a_notification,
)
WATCHES: Final[tuple[Check, ...]] = (
    kinds_of_bodies,
    streams_are_not_buffered,
    status_codes,
    status_codes_of_malformed_requests,
)
