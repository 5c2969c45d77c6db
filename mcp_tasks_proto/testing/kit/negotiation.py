"""Checks of what a request declares, and what it gets for it (NEG)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from mcp_tasks_proto.testing.kit.acts import Post, Script
from mcp_tasks_proto.testing.kit.checks import Answer, Check, Need, Strength, Unseen, check
from mcp_tasks_proto.testing.kit.desk import Desk, Role, task_of
from mcp_tasks_proto.testing.kit.judging import (
    asks_nothing,
    carried_out,
    declares_tasks,
    demand,
    described,
    object_of,
    refused,
    result_of,
    seen,
    view_of,
)
from mcp_tasks_proto.vocabulary import (
    CLIENT_CAPABILITIES,
    LEGACY_VERSION,
    MODERN_VERSION,
    PROTOCOL_VERSION,
    TASKS_EXTENSION,
)

__all__ = ["CHECKS", "WATCHES"]

MODERN: Final = (Need.MODERN,)
TASKS: Final = (Need.MODERN, Need.TASKS)
OLD_VERSION: Final = "1900-01-01"
MISSING: Final = -32021
MISMATCH: Final = -32020
NEGOTIATION: Final = "Tasks extension: Capability Negotiation"
PROTOCOL_ERRORS: Final = "Tasks extension: Protocol Errors"
REQUIRED: Final[Mapping[str, Any]] = {"extensions": {TASKS_EXTENSION: {}}}
NO_TASK: Final = "kit-no-such-task-0123456789abcdef"


@check(
    "NEG.1",
    strength=Strength.MUST,
    needs=MODERN,
    asks="A request without protocolVersion or clientCapabilities in _meta is answered with -32602, HTTP "
    "400. Where there is no version that its header could be compared with, -32020 is as good.",
    source="MCP 2026-07-28, Overview: _meta, Per-request protocol fields",
)
def metadata_that_is_missing(desk: Desk) -> Script[None]:
    post = desk.request("server/discover", meta={CLIENT_CAPABILITIES: None})
    refused((yield from desk.ask(post)), -32602, status=400)
    codes = (-32602, -32020) if desk.speaks_http else (-32602,)
    post = desk.request("server/discover", meta={PROTOCOL_VERSION: None})
    refused((yield from desk.ask(post)), *codes, status=400)


@check(
    "NEG.1",
    strength=Strength.CHOICE,
    needs=MODERN,
    asks="A protocolVersion that is no string, or clientCapabilities that are no object, are answered with "
    "-32602, HTTP 400.",
    source="MCP 2026-07-28, Overview: _meta (it types the fields, and says the code for missing ones)",
)
def metadata_of_another_type(desk: Desk) -> Script[None]:
    for key in (CLIENT_CAPABILITIES, PROTOCOL_VERSION):
        post = desk.request("server/discover", meta={key: 1})
        refused((yield from desk.ask(post)), -32602, status=400)


def _old(post: Post) -> Post:
    return post.with_header("MCP-Protocol-Version", OLD_VERSION)


@check(
    "NEG.2",
    strength=Strength.MUST,
    needs=MODERN,
    asks="A version that is not served is answered with -32022, HTTP 400; data names the versions that are, "
    "and the one that was asked for.",
    source="MCP 2026-07-28, Versioning: Protocol Version Negotiation; Streamable HTTP: Protocol Version "
    "Header",
)
def a_version_that_is_not_served(desk: Desk) -> Script[None]:
    post = _old(desk.request("server/discover", meta={PROTOCOL_VERSION: OLD_VERSION}))
    answer = yield from desk.ask(post)
    data = object_of(refused(answer, -32022, status=400).get("data"))
    demand(
        data.get("requested") == OLD_VERSION, "data.requested is not the version that was asked for", answer
    )
    served = data.get("supported")
    fits = isinstance(served, list) and MODERN_VERSION in served
    demand(fits, f"data.supported does not name {MODERN_VERSION}, which is served", answer)


@check(
    "NEG.3",
    strength=Strength.CHOICE,
    needs=MODERN,
    asks="Of several things that are wrong the first decides: metadata, then version, then method, then "
    "capability, then params; and metadata before the header that has the same.",
    source="The specification gives no order",
)
def the_order_of_the_checks(desk: Desk) -> Script[None]:
    unversioned = desk.request("server/discover", meta={PROTOCOL_VERSION: None})
    refused((yield from desk.ask(unversioned)), -32602)
    old = desk.request("kit/unknown", meta={PROTOCOL_VERSION: OLD_VERSION})
    refused((yield from desk.ask(_old(old))), -32022)
    unknown = desk.request("tasks/unknown", tasks=False)
    refused((yield from desk.ask(unknown)), -32601)
    if Need.TASKS not in desk.lacking:
        undeclared = desk.request("tasks/get", {"taskId": NO_TASK}, tasks=False)
        refused((yield from desk.ask(undeclared)), MISSING)


@check(
    "NEG.4",
    strength=Strength.MUST,
    needs=TASKS,
    asks="Any object declares the extension, whatever settings it holds.",
    source=f"{NEGOTIATION} (no settings are defined)",
)
def unknown_settings_declare_too(desk: Desk) -> Script[None]:
    capabilities = {"extensions": {TASKS_EXTENSION: {"kit": True}}}
    post = desk.request("tasks/get", {"taskId": NO_TASK}, capabilities=capabilities)
    refused((yield from desk.ask(post)), -32602)


@check(
    "NEG.4",
    "NEG.6",
    strength=Strength.MUST,
    needs=TASKS,
    asks="tasks/get, tasks/update and tasks/cancel of who does not declare the extension are answered with "
    "-32021, HTTP 400, whatever was declared before; capabilities.tasks, of 2025-11-25, declares nothing.",
    source=f"{PROTOCOL_ERRORS}; SEP-2663: Backward Compatibility; MCP 2026-07-28, Overview: Statelessness",
)
def task_methods_undeclared(desk: Desk) -> Script[None]:
    legacy: Mapping[str, Any] = {"tasks": {"list": {}, "cancel": {}}}
    for method in ("tasks/get", "tasks/update", "tasks/cancel"):
        for capabilities in ({}, legacy):
            params = {"taskId": NO_TASK, "inputResponses": {}}
            post = desk.request(method, params, tasks=False, capabilities=capabilities)
            _names_the_extension((yield from desk.ask(post)))


def _names_the_extension(answer: Answer) -> None:
    data = object_of(refused(answer, MISSING, status=400).get("data"))
    named = object_of(object_of(data.get("requiredCapabilities")).get("extensions")).get(TASKS_EXTENSION)
    demand(isinstance(named, dict), f"data.requiredCapabilities is not {REQUIRED}", answer)


@check(
    "NEG.6",
    strength=Strength.MUST,
    needs=TASKS,
    asks="What a caller tries on a task without declaring the extension leaves the task as it was.",
    source=PROTOCOL_ERRORS,
)
def undeclared_cancellation_does_nothing(desk: Desk) -> Script[None]:
    made = yield from desk.create(Role.SLOW, Role.ASKING)
    task_id = str(task_of(made))
    tried = yield from desk.cancel(task_id, tasks=False)
    yield from desk.pause(desk.settings.quiet_ms)
    after = yield from desk.get(task_id)
    status = view_of(after).get("status")
    demand(status != "cancelled", "the task was cancelled", tried, after)


@check(
    "NEG.6",
    strength=Strength.MUST,
    needs=(*TASKS, Need.LISTEN),
    asks="subscriptions/listen with taskIds, of who does not declare the extension, is answered with -32021.",
    source="Tasks extension: Task Status Notifications",
)
def listening_to_tasks_undeclared(desk: Desk) -> Script[None]:
    params = {"notifications": {"taskIds": [NO_TASK]}}
    answer = yield from desk.ask(
        desk.request("subscriptions/listen", params, tasks=False), desk.settings.answer_ms
    )
    _names_the_extension(answer)


@check(
    "NEG.5",
    strength=Strength.MUST,
    needs=TASKS,
    asks="A tool that gives tasks answers who does not declare the extension with a plain result, or with "
    "-32021 (HTTP 400) whose data.requiredCapabilities names it.",
    source=NEGOTIATION,
)
def a_task_tool_undeclared(desk: Desk) -> Script[None]:
    call = desk.tool(Role.COMPLETING, Role.ASKING, Role.ERRING, Role.SLOW)
    answer = carried_out((yield from desk.ask(desk.call(call, tasks=False))))
    if answer.result is not None:
        demand(task_of(answer) is None, "a caller who does not declare tasks was given one", answer)
        return
    _names_the_extension(answer)


@check(
    "NEG.7",
    strength=Strength.MUST,
    needs=MODERN,
    asks="A server that does not advertise the extension does not know tasks/*: -32601.",
    source="MCP 2026-07-28, Streamable HTTP: Protocol Version Header (unknown methods)",
)
def tasks_that_are_not_advertised(desk: Desk) -> Script[None]:
    seen(desk.discovered, "the server does not say what it advertises")
    seen(Need.TASKS in desk.lacking, "the server advertises the extension to everybody")
    answer = yield from desk.ask(desk.request("tasks/get", {"taskId": NO_TASK}))
    refused(answer, -32601, status=404)


@check(
    "NEG.8",
    strength=Strength.MUST,
    needs=MODERN,
    asks="tasks/result, tasks/list and other methods that the extension does not have are answered with "
    "-32601, HTTP 404.",
    source="SEP-2663: Backward Compatibility; MCP 2026-07-28, Streamable HTTP: Protocol Version Header",
)
def task_methods_of_another_revision(desk: Desk) -> Script[None]:
    for method in ("tasks/result", "tasks/list", "tasks/unknown"):
        params = {"taskId": NO_TASK}
        refused((yield from desk.ask(desk.request(method, params))), -32601, status=404)


@check(
    "NEG.8",
    strength=Strength.MUST,
    needs=TASKS,
    asks="params.task, which asks for a task in 2025-11-25, asks for nothing: a plain result stays one.",
    source=f"SEP-2663: Backward Compatibility; {NEGOTIATION}",
)
def asking_for_a_task(desk: Desk) -> Script[None]:
    call = desk.tool(Role.PLAIN)
    answer = carried_out((yield from desk.ask(desk.call(call, params={"task": {"ttl": 60_000}}))))
    result_of(answer)
    demand(task_of(answer) is None, "it made a task", answer)
    demand("task" not in (answer.result or {}), "it was answered as in 2025-11-25", answer)


@check(
    "NEG.9",
    strength=Strength.MUST,
    asks="server/discover is answered, with supportedVersions, capabilities, ttlMs and cacheScope.",
    source="MCP 2026-07-28, Discovery; Caching",
)
def discovery(desk: Desk) -> Script[None]:
    seen(Need.MODERN not in desk.lacking or Need.LEGACY in desk.lacking, "the server serves 2025-11-25 alone")
    answer = yield from desk.ask(desk.request("server/discover", tasks=False, capabilities={}))
    result = result_of(answer)
    served = result.get("supportedVersions")
    fits = isinstance(served, list) and MODERN_VERSION in served
    demand(fits, f"supportedVersions does not name {MODERN_VERSION}", answer)
    demand(isinstance(result.get("capabilities"), dict), "capabilities is no object", answer)
    ttl_ms = result.get("ttlMs")
    demand(type(ttl_ms) is int and ttl_ms >= 0, "ttlMs is no integer of 0 or more", answer)
    demand(
        result.get("cacheScope") in ("public", "private"), "cacheScope is neither public nor private", answer
    )


@check(
    "NEG.9",
    strength=Strength.MUST,
    needs=MODERN,
    asks="The extension is advertised with an object, and there is no slot tasks, of 2025-11-25, beside it.",
    source=f"{NEGOTIATION}; SEP-2663: Backward Compatibility",
)
def what_is_advertised(desk: Desk) -> Script[None]:
    answer = yield from desk.ask(desk.request("server/discover"))
    capabilities = object_of(result_of(answer).get("capabilities"))
    demand("tasks" not in capabilities, "capabilities has a slot tasks", answer)
    settings = object_of(capabilities.get("extensions")).get(TASKS_EXTENSION, {})
    demand(isinstance(settings, Mapping), "what advertises the extension is no object", answer)


@check(
    "NEG.9",
    strength=Strength.CHOICE,
    needs=TASKS,
    asks="The extension is advertised with settings {}: there are none that a client could know.",
    source=f"{NEGOTIATION} (no settings are defined)",
)
def settings_of_the_extension(desk: Desk) -> Script[None]:
    answer = yield from desk.ask(desk.request("server/discover"))
    extensions = object_of(object_of(result_of(answer).get("capabilities")).get("extensions"))
    demand(not extensions.get(TASKS_EXTENSION), "the extension has settings", answer)


@check(
    "NEG.9",
    strength=Strength.CHOICE,
    needs=MODERN,
    asks="A server that does not serve 2025-11-25 answers initialize with an error that names what it "
    "serves.",
    source="MCP 2026-07-28, Versioning: Backward Compatibility (an error; which one is left open)",
)
def initialize_where_it_is_not_served(desk: Desk) -> Script[None]:
    seen(Need.LEGACY in desk.lacking, "the server serves 2025-11-25 as well")
    params = {
        "protocolVersion": LEGACY_VERSION,
        "capabilities": {},
        "clientInfo": {"name": "kit", "version": "1"},
    }
    post = desk.legacy("initialize", params).with_header("MCP-Protocol-Version")
    answer = yield from desk.ask(post)
    other = object_of(answer.result).get("protocolVersion")
    seen(not isinstance(other, str), f"the server serves another version: {other}")
    demand(answer.error is not None, f"there came {described(answer)}", answer)
    demand(MODERN_VERSION in str(answer.error), f"the error does not name {MODERN_VERSION}", answer)


@check(
    "NEG.10",
    strength=Strength.MUST,
    needs=MODERN,
    asks="A method that nobody knows is answered with -32601, HTTP 404.",
    source="MCP 2026-07-28, Streamable HTTP: Protocol Version Header",
)
def unknown_methods(desk: Desk) -> Script[None]:
    refused((yield from desk.ask(desk.request("kit/unknown"))), -32601, status=404)


@check(
    "NEG.10",
    "INP.2",
    strength=Strength.MUST,
    needs=MODERN,
    asks="A call that needs input of a kind that the request does not declare is answered with -32021, HTTP "
    "400, and data.requiredCapabilities; or it does without.",
    source="MCP 2026-07-28, Overview: _meta; Multi Round-Trip Requests: Server Requirements",
)
def input_that_was_not_declared(desk: Desk) -> Script[None]:
    call = desk.tool(Role.ASKING_FIRST)
    answer = carried_out((yield from desk.ask(desk.call(call, capabilities={}))))
    if answer.result is not None:
        asks_nothing(answer)
        return
    data = object_of(refused(answer, MISSING, status=400).get("data"))
    named = data.get("requiredCapabilities")
    demand(isinstance(named, dict) and named, "data.requiredCapabilities names nothing", answer)


@check(
    "NEG.5",
    strength=Strength.MUST,
    asks="Nobody is given a task whose request did not declare the extension.",
    source=NEGOTIATION,
)
def no_handles_for_others(desk: Desk) -> None:
    undeclared = [one for one in desk.log if one.post.era == "modern" and not declares_tasks(one)]
    if not any(one.post.method == "tools/call" and one.response is not None for one in undeclared):
        raise Unseen("no tool was called without declaring the extension")
    for answer in undeclared:
        demand((answer.result or {}).get("resultType") != "task", "there came a task", answer)


CHECKS: Final[tuple[Check, ...]] = (
    metadata_that_is_missing,
    metadata_of_another_type,
    a_version_that_is_not_served,
    the_order_of_the_checks,
    unknown_settings_declare_too,
    task_methods_undeclared,
    undeclared_cancellation_does_nothing,
    listening_to_tasks_undeclared,
    a_task_tool_undeclared,
    tasks_that_are_not_advertised,
    task_methods_of_another_revision,
    asking_for_a_task,
    discovery,
    what_is_advertised,
    settings_of_the_extension,
    initialize_where_it_is_not_served,
    unknown_methods,
    input_that_was_not_declared,
)
WATCHES: Final[tuple[Check, ...]] = (no_handles_for_others,)
