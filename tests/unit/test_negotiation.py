"""From one request's own metadata to one decision: NEG.1 to NEG.10, HTTP.2, HTTP.3, TRAPS 11 to 14."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve

from mcp_tasks_proto import (
    TASKS_EXTENSION,
    CallAskedInput,
    CallBecameTask,
    ErrorCode,
    Forward,
    HttpHead,
    Load,
    Reply,
    StartTool,
    TaskSupport,
    ToolDeclaration,
    ToolsChanged,
)
from mcp_tasks_proto.negotiation import Accepted, Reason, Refused, declares_tasks, negotiate
from mcp_tasks_proto.testing import ServerHost, request
from mcp_tasks_proto.vocabulary import CLIENT_CAPABILITIES, PROTOCOL_VERSION
from mcp_tasks_proto.wire.jsonrpc import Request
from tests.unit.world import (
    FORMS,
    NEVER,
    TASK,
    TOOLS,
    call,
    error,
    form,
    forwarded,
    head,
    make_engine,
    make_host,
    result,
    update,
    view,
    working,
)

NEEDED: dict[str, Any] = {"requiredCapabilities": {"extensions": {TASKS_EXTENSION: {}}}}
TASK_REQUESTS = [
    ("tasks/get", {"taskId": TASK}),
    ("tasks/update", {"taskId": TASK, "inputResponses": {}}),
    ("tasks/cancel", {"taskId": TASK}),
]


def send(host: ServerHost, message: dict[str, Any], **facts: Any) -> tuple[dict[str, Any], int]:
    """Send a message and return the reply with its HTTP status."""
    exchange = host.send(message, **facts)
    reply = next(one for one in host.of(Reply) if one.exchange == exchange)
    assert reply.message is not None
    return reply.message, reply.http_status


# -- metadata (NEG.1, NEG.2) -----------------------------------------------------------------------


@pytest.mark.parametrize("method", ["tools/list", "tools/call", "tasks/get", "server/discover", "no/such"])
@pytest.mark.parametrize(
    "meta",
    [
        None,
        [],
        "meta",
        {},
        {CLIENT_CAPABILITIES: {}},
        {PROTOCOL_VERSION: None, CLIENT_CAPABILITIES: {}},
        {PROTOCOL_VERSION: 20260728, CLIENT_CAPABILITIES: {}},
        {PROTOCOL_VERSION: "2026-07-28"},
        {PROTOCOL_VERSION: "2026-07-28", CLIENT_CAPABILITIES: None},
        {PROTOCOL_VERSION: "2026-07-28", CLIENT_CAPABILITIES: ["elicitation"]},
        {"protocolVersion": "2026-07-28", "clientCapabilities": {}},
    ],
    ids=repr,
)
def test_neg1_every_request_carries_its_version_and_capabilities(method: str, meta: Any) -> None:
    """NEG.1, and TRAP 13: capabilities under another key are not there."""
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"_meta": meta}}
    reply, status = send(make_host(), message)
    assert error(reply)["code"] == ErrorCode.INVALID_PARAMS
    assert status == 400


def test_neg1_a_request_without_params_has_no_metadata() -> None:
    reply, status = send(make_host(), {"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
    assert (error(reply)["code"], status) == (ErrorCode.INVALID_PARAMS, 400)


@pytest.mark.parametrize("version", ["2025-11-25", "2099-01-01", "", "latest"])
def test_neg2_an_unsupported_version_is_answered_with_those_served(version: str) -> None:
    reply, status = send(make_host(), request("tools/list", meta={PROTOCOL_VERSION: version}))
    assert error(reply)["code"] == ErrorCode.UNSUPPORTED_PROTOCOL_VERSION
    assert error(reply)["data"] == {"supported": ["2026-07-28"], "requested": version}
    assert status == 400


def test_neg1_whoever_speaks_another_version_learns_what_is_spoken() -> None:
    host = make_host(versions=("2027-03-26", "2026-07-28"))
    reply, _ = send(host, {"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
    assert error(reply)["message"].endswith("as in every request of 2027-03-26 or 2026-07-28")


# -- the order of checks (NEG.3) -------------------------------------------------------------------


def decide(
    method: str,
    params: dict[str, Any] | None = None,
    *,
    http: HttpHead | None = None,
    tasks_enabled: bool = True,
    tool: ToolDeclaration | None = None,
    **facts: Any,
) -> Accepted | Refused:
    """Negotiate one request."""
    tools = TOOLS if tool is None else (*TOOLS, tool)
    return negotiate(
        Request(1, method, request(method, params, **facts)["params"]),
        http=http,
        tasks_enabled=tasks_enabled,
        settings=make_engine(methods=frozenset({"prompts/get"})).settings,
        tools={one.name: one for one in tools},
    )


REGIONAL = ToolDeclaration(
    name="regional",
    definition={
        "name": "regional",
        "inputSchema": {
            "type": "object",
            "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
        },
    },
    task=TOOLS[1].task,
)

GOOD = {
    "mcp-protocol-version": "2026-07-28",
    "mcp-method": "tools/call",
    "mcp-name": "regional",
    "mcp-param-region": "north",
}
ORDER: list[tuple[Reason, dict[str, Any]]] = [
    (Reason.METADATA, {"meta": {PROTOCOL_VERSION: 1}}),
    (Reason.VERSION_HEADER, {"headers": {"mcp-protocol-version": "1999-12-31"}}),
    (
        Reason.VERSION,
        {"meta": {PROTOCOL_VERSION: "1999-01-01"}, "headers": {"mcp-protocol-version": "1999-01-01"}},
    ),
    (Reason.METHOD, {"method": "no/such"}),
    (Reason.STANDARD_HEADERS, {"headers": {"mcp-name": "another"}}),
    (Reason.PARAMETER_HEADERS, {"headers": {"mcp-param-region": "south"}}),
    (Reason.CAPABILITY, {"tasks": False}),
]


@pytest.mark.parametrize("first", range(len(ORDER)), ids=[reason.name for reason, _ in ORDER])
def test_neg3_the_first_check_that_fails_decides(first: int) -> None:
    """Everything from one check on is wrong at once; that check is the one that answers."""
    method, tasks = "tools/call", True
    meta: dict[str, Any] = {}
    headers = dict(GOOD)
    for _, wrong in reversed(ORDER[first:]):
        method = wrong.get("method", method)
        meta = {**meta, **wrong.get("meta", {})}
        headers = {**headers, **wrong.get("headers", {})}
        tasks = wrong.get("tasks", tasks)
    decision = decide(
        method,
        {"name": "regional", "arguments": {"region": "north"}},
        http=HttpHead(headers=headers),
        tool=REGIONAL,
        meta=meta,
        tasks=tasks,
    )
    assert isinstance(decision, Refused)
    assert decision.reason is ORDER[first][0]


def test_neg3_a_request_that_is_right_in_all_is_accepted() -> None:
    decision = decide(
        "tools/call",
        {"name": "regional", "arguments": {"region": "north"}},
        http=HttpHead(headers=GOOD),
        tool=REGIONAL,
        capabilities=FORMS,
    )
    assert decision == Accepted({**FORMS, "extensions": {TASKS_EXTENSION: {}}}, declares_tasks=True)


def test_neg3_params_come_after_the_capability() -> None:
    """A call of a tool that is not there, by somebody who declares nothing, is about its params."""
    reply, _ = send(make_host(), request("tools/call", {"name": "no such tool"}, tasks=False))
    assert error(reply)["code"] == ErrorCode.INVALID_PARAMS
    reply, _ = send(make_host(), request("tasks/update", {"taskId": 5}, tasks=False))
    assert error(reply)["code"] == ErrorCode.MISSING_CLIENT_CAPABILITY


def test_neg3_lookup_comes_last() -> None:
    """A request that fails an earlier check never reaches the store."""
    host = make_host(held=True)
    for wrong in (
        request("tasks/get", {"taskId": TASK}, tasks=False),
        request("tasks/get", {"taskId": TASK}, meta={PROTOCOL_VERSION: "1"}),
        request("tasks/update", {"taskId": TASK, "inputResponses": []}),
    ):
        host.send(wrong)
    assert host.asked == []
    host.send(request("tasks/get", {"taskId": TASK}))
    assert [type(effect) for effect in host.asked] == [Load]


# -- headers (HTTP.2, HTTP.3, TRAPS 11 and 12) -----------------------------------------------------


@pytest.mark.parametrize(("method", "params"), TASK_REQUESTS, ids=[method for method, _ in TASK_REQUESTS])
@pytest.mark.parametrize("name", [None, NEVER, "", f"x{TASK}"])
def test_http2_a_task_request_names_its_task_in_a_header(
    method: str, params: dict[str, Any], name: str | None
) -> None:
    """TRAP 11: without ``Mcp-Name``, or with another one, -32020 and 400."""
    host = make_host()
    working(host)
    message = request(method, params)
    reply, status = send(host, message, http=head(message, mcp_name=name))
    assert (error(reply)["code"], status) == (ErrorCode.HEADER_MISMATCH, 400)
    assert "result" in host.reply_to(host.send(message, http=head(message)))


@pytest.mark.parametrize(
    "changed",
    [{"mcp_method": None}, {"mcp_method": "tasks/cancel"}, {"mcp_method": "TASKS/GET"}],
    ids=repr,
)
def test_http2_the_method_header_is_the_method(changed: dict[str, str | None]) -> None:
    host = make_host()
    working(host)
    message = request("tasks/get", {"taskId": TASK})
    reply, status = send(host, message, http=head(message, **changed))
    assert (error(reply)["code"], status) == (ErrorCode.HEADER_MISMATCH, 400)


@pytest.mark.parametrize("version", [None, "2025-11-25", "2026-07-28 "])
def test_http2_the_version_header_is_the_version(version: str | None) -> None:
    message = request("tools/list")
    reply, status = send(make_host(), message, http=head(message, mcp_protocol_version=version))
    assert (error(reply)["code"], status) == (ErrorCode.HEADER_MISMATCH, 400)


def test_http2_a_header_that_stands_there_twice_is_refused() -> None:
    message = request("tools/list")
    twice = evolve(head(message), repeated=frozenset({"mcp-method"}))
    reply, status = send(make_host(), message, http=twice)
    assert (error(reply)["code"], status) == (ErrorCode.HEADER_MISMATCH, 400)


def test_http2_an_encoded_name_is_decoded() -> None:
    """TRAP 12."""
    host = make_host()
    working(host)
    message = request("tasks/get", {"taskId": TASK})
    encoded = "=?base64?dGFzay1vbmUtMDEyMzQ1Njc4OWFiY2RlZg==?="
    assert "result" in host.reply_to(host.send(message, http=head(message, mcp_name=encoded)))


def test_http2_stdio_has_no_headers() -> None:
    host = make_host()
    assert "result" in host.ask("tools/list", connection="stdio")


def test_http3_a_parameter_in_the_body_is_in_the_header_too() -> None:
    host = make_host()
    host.give(ToolsChanged((REGIONAL,)))
    message = request("tools/call", {"name": "regional", "arguments": {"region": "north"}})
    reply, status = send(host, message, http=head(message))
    assert (error(reply)["code"], status) == (ErrorCode.HEADER_MISMATCH, 400)
    host.send(message, http=head(message, mcp_param_region="north"))
    assert [started.arguments for started in host.of(StartTool)] == [{"region": "north"}]


# -- declaring (NEG.4, NEG.5, NEG.6, TRAPS 13 and 14) ----------------------------------------------


@pytest.mark.parametrize("settings", [{}, {"unknown": 1}, {"deep": {"er": [1]}}], ids=repr)
def test_neg4_any_object_declares(settings: dict[str, Any]) -> None:
    capabilities = {"extensions": {TASKS_EXTENSION: settings}}
    host = make_host()
    working(host, tasks=False, capabilities=capabilities)
    assert view(host, tasks=False, capabilities=capabilities)["status"] == "working"


UNDECLARED: list[dict[str, Any]] = [
    {},
    {"extensions": {}},
    {"extensions": {TASKS_EXTENSION: None}},
    {"extensions": {TASKS_EXTENSION: True}},
    {"extensions": {TASKS_EXTENSION: []}},
    {"extensions": [TASKS_EXTENSION]},
    {"extensions": {"io.modelcontextprotocol/Tasks": {}}},
    {"experimental": {TASKS_EXTENSION: {}}},
    {TASKS_EXTENSION: {}},
    {"tasks": {"requests": {"tools": {"call": {}}}}},
]


@pytest.mark.parametrize("capabilities", UNDECLARED, ids=repr)
def test_neg4_nothing_else_declares(capabilities: dict[str, Any]) -> None:
    """TRAP 14 among them: the legacy capability counts for nothing."""
    assert not declares_tasks(capabilities)
    host = make_host()
    reply, status = send(
        host, request("tasks/get", {"taskId": NEVER}, tasks=False, capabilities=capabilities)
    )
    assert (error(reply)["code"], status) == (ErrorCode.MISSING_CLIENT_CAPABILITY, 400)


def test_neg4_an_earlier_declaration_does_not_count() -> None:
    host = make_host()
    working(host, connection="stdio")
    reply = host.ask("tasks/get", {"taskId": TASK}, tasks=False, connection="stdio")
    assert error(reply)["code"] == ErrorCode.MISSING_CLIENT_CAPABILITY
    exchange = call(host, tasks=False, connection="stdio")
    assert not host.of(StartTool)[-1].can_create_task
    host.give(CallAskedInput(exchange, {"confirm": form()}))


@pytest.mark.parametrize("capabilities", UNDECLARED, ids=repr)
def test_neg5_a_tool_that_needs_a_task_is_refused_before_it_runs(capabilities: dict[str, Any]) -> None:
    host = make_host()
    reply, status = send(
        host, request("tools/call", {"name": "required"}, tasks=False, capabilities=capabilities)
    )
    assert (error(reply)["code"], status) == (ErrorCode.MISSING_CLIENT_CAPABILITY, 400)
    assert error(reply)["data"] == NEEDED
    assert not host.of(StartTool)


@pytest.mark.parametrize(
    ("tool", "tasks", "allowed"),
    [
        ("optional", True, True),
        ("optional", False, False),
        ("required", True, True),
        ("forbidden", True, False),
        ("forbidden", False, False),
    ],
)
def test_neg5_a_handler_is_told_whether_it_may_create_a_task(tool: str, tasks: bool, allowed: bool) -> None:
    host = make_host()
    call(host, tool, tasks=tasks)
    assert host.of(StartTool)[-1].can_create_task is allowed


@pytest.mark.parametrize(("method", "params"), TASK_REQUESTS, ids=[method for method, _ in TASK_REQUESTS])
def test_neg6_a_task_is_out_of_reach_without_declaring(method: str, params: dict[str, Any]) -> None:
    host = make_host()
    working(host)
    before = view(host)
    reply, status = send(host, request(method, params, tasks=False))
    assert (error(reply)["code"], status) == (ErrorCode.MISSING_CLIENT_CAPABILITY, 400)
    assert error(reply)["data"] == NEEDED
    assert view(host) == before


@pytest.mark.parametrize("task_ids", [[TASK], []], ids=["some", "none"])
def test_neg6_listening_to_tasks_needs_declaring(task_ids: list[str]) -> None:
    message = request("subscriptions/listen", {"notifications": {"taskIds": task_ids}}, tasks=False)
    reply, status = send(make_host(), message)
    assert (error(reply)["code"], status) == (ErrorCode.MISSING_CLIENT_CAPABILITY, 400)


def test_neg6_listening_to_anything_else_does_not() -> None:
    host = make_host()
    message = request("subscriptions/listen", {"notifications": {"toolsListChanged": True}}, tasks=False)
    assert host.sent_on(host.send(message))


# -- the extension switched off (NEG.7) ------------------------------------------------------------


@pytest.mark.parametrize("tasks", [True, False], ids=["declared", "undeclared"])
@pytest.mark.parametrize(("method", "params"), TASK_REQUESTS, ids=[method for method, _ in TASK_REQUESTS])
def test_neg7_switched_off_there_are_no_task_methods(
    method: str, params: dict[str, Any], tasks: bool
) -> None:
    host = make_host()
    working(host)
    reply, status = send(host, request(method, params, tasks=tasks), tasks_enabled=False)
    assert (error(reply)["code"], status) == (ErrorCode.METHOD_NOT_FOUND, 404)


def test_neg7_switched_off_there_are_no_handles() -> None:
    host = make_host()
    host.send(request("tools/call", {"name": "optional"}), tasks_enabled=False)
    assert not host.of(StartTool)[-1].can_create_task
    reply, status = send(host, request("tools/call", {"name": "required"}), tasks_enabled=False)
    assert (error(reply)["code"], status) == (ErrorCode.MISSING_CLIENT_CAPABILITY, 400)


@pytest.mark.parametrize("tasks", [True, False], ids=["declared", "undeclared"])
def test_neg7_switched_off_no_task_is_listened_to(tasks: bool) -> None:
    host = make_host()
    working(host)
    wanted = {"notifications": {"taskIds": [TASK], "toolsListChanged": True}}
    exchange = host.send(request("subscriptions/listen", wanted, tasks=tasks), tasks_enabled=False)
    (acknowledged,) = host.sent_on(exchange)
    assert acknowledged["params"]["notifications"] == {"toolsListChanged": True}


def test_neg7_switched_off_discovery_does_not_advertise_it() -> None:
    other: dict[str, Any] = {"extensions": {"com.example/x": {}}}
    host = make_host(capabilities=other)
    on = result(host.ask("server/discover"))["capabilities"]
    assert on["extensions"] == {"com.example/x": {}, TASKS_EXTENSION: {}}
    off = result(host.ask("server/discover", tasks_enabled=False))["capabilities"]
    assert off["extensions"] == {"com.example/x": {}}


# -- methods (NEG.8, NEG.9, NEG.10) ----------------------------------------------------------------


@pytest.mark.parametrize(
    "method", ["tasks/result", "tasks/list", "tasks/anything", "tasks/", "ping", "no/such", ""]
)
def test_neg8_neg10_other_methods_are_not_found(method: str) -> None:
    reply, status = send(make_host(), request(method, {"taskId": TASK}))
    assert (error(reply)["code"], status) == (ErrorCode.METHOD_NOT_FOUND, 404)


def test_neg8_the_legacy_hint_is_an_unknown_field() -> None:
    """``params.task`` is ignored, and passed on as any field that is not known (WIRE.5)."""
    host = make_host()
    hint = {"ttl": 60_000}
    host.send(request("tools/call", {"name": "optional", "task": hint, "x": [1]}, tasks=False))
    (started,) = host.of(StartTool)
    assert not started.can_create_task
    assert started.params["task"] == hint
    assert started.params["x"] == [1]


def test_neg9_discovery_says_what_is_served() -> None:
    host = make_host(
        instructions="Ask nicely.",
        info={"title": "A test"},
        capabilities={"prompts": {}},
        discovery_ttl_ms=5_000,
        cache_scope="public",
    )
    assert result(host.ask("server/discover", tasks=False)) == {
        "resultType": "complete",
        "supportedVersions": ["2026-07-28"],
        "capabilities": {
            "tools": {"listChanged": True},
            "prompts": {},
            "extensions": {TASKS_EXTENSION: {}},
        },
        "instructions": "Ask nicely.",
        "ttlMs": 5_000,
        "cacheScope": "public",
        "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "test", "version": "1", "title": "A test"}},
    }


def test_neg9_discovery_has_no_legacy_slot_and_needs_no_instructions() -> None:
    found = result(make_host().ask("server/discover"))
    assert "tasks" not in found["capabilities"]
    assert "instructions" not in found


def test_neg9_a_legacy_client_is_told_the_versions() -> None:
    legacy = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "old", "version": "1"},
    }
    reply, status = send(make_host(), {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": legacy})
    assert (error(reply)["code"], status) == (ErrorCode.UNSUPPORTED_PROTOCOL_VERSION, 400)
    assert error(reply)["data"] == {"supported": ["2026-07-28"], "requested": "2025-11-25"}


def test_neg9_what_keeps_a_legacy_client_out_is_its_era() -> None:
    decision = negotiate(
        Request(1, "initialize", {"protocolVersion": "2025-11-25"}),
        http=None,
        tasks_enabled=True,
        settings=make_engine().settings,
        tools={},
    )
    assert isinstance(decision, Refused)
    assert decision.reason is Reason.ERA


def test_neg9_a_modern_client_does_not_initialize() -> None:
    reply, status = send(make_host(), request("initialize"))
    assert (error(reply)["code"], status) == (ErrorCode.METHOD_NOT_FOUND, 404)
    assert error(reply)["data"] == {"supported": ["2026-07-28"]}


def test_neg10_input_that_the_client_cannot_give_is_not_asked() -> None:
    host = make_host()
    exchange = call(host)
    host.give(CallAskedInput(exchange, {"confirm": form()}))
    (reply,) = host.of(Reply)
    assert reply.http_status == 400
    assert error(host.reply_to(exchange)) == {
        "code": ErrorCode.MISSING_CLIENT_CAPABILITY,
        "message": "Missing required client capability: elicitation (form)",
        "data": {"requiredCapabilities": {"elicitation": {"form": {}}}},
    }


def test_neg5_http3_what_is_not_called_is_no_tool() -> None:
    """A prompt may have the name of a tool: what that needs is not asked of it."""
    headers = {"mcp-protocol-version": "2026-07-28", "mcp-method": "prompts/get", "mcp-name": "regional"}
    params = {"name": "regional", "arguments": {"region": "north"}}
    needy = evolve(REGIONAL, task=TaskSupport.REQUIRED)
    decision = decide("prompts/get", params, http=HttpHead(headers=headers), tool=needy, tasks=False)
    assert isinstance(decision, Accepted)


def test_neg10_methods_of_the_host_are_passed_on() -> None:
    """WIRE.5: with everything that came, known or not."""
    host = make_host(methods=frozenset({"prompts/get", "x/y"}))
    forwarded(host, "prompts/get", {"name": "greet", "unknown": {"a": None}}, meta={"vendor/key": 1})
    forwarded(host, "x/y", {"deep": [[]]})
    first, second = host.of(Forward)
    assert (first.method, first.params["unknown"]) == ("prompts/get", {"a": None})
    assert first.params["_meta"]["vendor/key"] == 1
    assert (second.method, second.params["deep"]) == ("x/y", [[]])


def test_a_task_made_by_one_declaring_request_is_open_to_the_next() -> None:
    host = make_host()
    host.give(CallBecameTask(exchange=call(host), task_id=TASK))
    assert result(update(host, {})) == {
        "resultType": "complete",
        "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "test", "version": "1"}},
    }
