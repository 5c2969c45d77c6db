"""The official Python SDK, PyPI ``mcp``, as a client of our server: over HTTP and stdio, on both loops.

The SDK is no dependency of this project and has an environment of its own, so the client is a process of its
own, ``sdk_client.py``. It runs once for each way to be connected, goes through its scenarios there and
reports; each test here is about one of them. ``make test`` makes the environment and says where it is.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from attrs import frozen

ROOT: Final = Path(__file__).resolve().parents[2]
FARM: Final = "tests/interop/farm.py:server"
MODERN: Final = "2026-07-28"
TASKS: Final = "io.modelcontextprotocol/tasks"
META: Final = "io.modelcontextprotocol/"
SERVER_INFO: Final = {"name": "interop-farm", "version": "1.0", "title": "The farm"}

SCENARIOS_PATIENCE_S: Final = 240.0
PATIENCE_S: Final = 60.0

Json = dict[str, Any]

# What the SDK makes of a listen stream whose server stops.
ENDED: Final[Json] = {"ended after": []}
LOST: Final = "lost"


@frozen(kw_only=True)
class Connection:
    """A way to be connected to the server of ``farm.py``."""

    name: str
    command: tuple[str, ...]
    """Runs the server."""
    url: str = ""
    """A pattern that finds its URL in what it says once it is ready; empty for stdio."""
    path: str = ""
    when_it_stops: Any = ENDED
    """What listeners see when the server stops."""


def _serve(loop: str, *options: str) -> tuple[str, ...]:
    return (sys.executable, "-m", "mcp_tasks_adapters.cli", "serve", FARM, "--loop", loop, *options)


CONNECTIONS: Final = (
    *(
        Connection(name=f"http-{loop}", command=_serve(loop), url=r"listening on (\S+)")
        for loop in ("trio", "asyncio")
    ),
    *(
        # The specification wants `notifications/cancelled` for the listen request here, beside its result.
        # To this SDK, which itself sends the result alone, that notification means an abrupt end.
        Connection(name=f"stdio-{loop}", command=_serve(loop, "--stdio"))
        for loop in ("trio", "asyncio")
    ),
    Connection(
        name="asgi-uvicorn",
        command=(
            *(sys.executable, "-m", "uvicorn", "tests.interop.farm:app", "--port", "0"),
            *("--no-access-log", "--timeout-graceful-shutdown", "1"),
        ),
        url=r"running on (\S+)",
        path="/mcp",
        when_it_stops=LOST,  # An ASGI server does not tell its application in time.
    ),
)


@frozen(kw_only=True)
class Report:
    """What a client of the SDK went through on one connection."""

    connection: Connection
    sdk: str
    outcomes: dict[str, Json]
    messages: dict[str, list[Json]]
    """What each client sent."""
    requests: dict[str, list[Json]]
    """The HTTP requests it sent them with: ``method`` and ``headers``."""

    def returned(self, scenario: str) -> Any:
        """Return what a scenario returned."""
        return self._outcome(scenario, "returned")

    def error(self, scenario: str) -> Json:
        """Return the JSON-RPC error that a scenario ended with."""
        error: Json = self._outcome(scenario, "error")
        return error

    def _outcome(self, scenario: str, expected: str) -> Any:
        outcome = self.outcomes[scenario]
        if expected not in outcome:
            pytest.fail(f"{scenario}, {self.connection.name}: {outcome.get('traceback', outcome)}")
        return outcome[expected]

    def sent(self, client: str) -> list[str]:
        """Return the methods of a client's messages."""
        return [message["method"] for message in self.messages[client]]


@pytest.fixture(scope="module")
def sdk_python() -> str:
    """The interpreter that has the SDK."""
    python = os.environ.get("MCP_SDK_PYTHON")
    if not python:
        pytest.fail(
            "These tests need the official SDK. `make test` installs it and runs them; or set MCP_SDK_PYTHON "
            "to a Python interpreter that has 'mcp>=2.3'.",
            pytrace=False,
        )
    return python


@pytest.fixture(scope="module", params=CONNECTIONS, ids=lambda connection: connection.name)
def sdk(request: pytest.FixtureRequest, sdk_python: str) -> Report:
    connection: Connection = request.param
    if not connection.url:
        return run_client(sdk_python, connection, "stdio", *connection.command)
    with serving(connection) as url:
        return run_client(sdk_python, connection, "http", url)


def run_client(python: str, connection: Connection, *arguments: str, left_out: str = "") -> Report:
    """Run the SDK's client against a server, but for one scenario where one is left out."""
    ran = subprocess.run(
        [python, "-m", "tests.interop.sdk_client", *arguments],
        cwd=ROOT,
        env={**os.environ, "LEFT_OUT": left_out},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=SCENARIOS_PATIENCE_S,
        check=False,
    )
    if ran.returncode != 0:
        pytest.fail(f"The client got nowhere, {connection.name}:\n{ran.stderr}", pytrace=False)
    return Report(connection=connection, **json.loads(ran.stdout))


@contextmanager
def serving(connection: Connection) -> Iterator[str]:
    """Run a server until it is stopped, as the last scenario does."""
    pipe = subprocess.PIPE
    with subprocess.Popen(connection.command, cwd=ROOT, stdout=pipe, stderr=pipe, text=True) as process:
        try:
            assert process.stderr is not None
            log = ""
            while (ready := re.search(connection.url, log)) is None:
                line = process.stderr.readline()
                assert line, f"the server ended before it was ready:\n{log}"
                log += line
            yield ready[1] + connection.path
            process.terminate()  # It has stopped already, unless the last scenario failed.
            _, log = process.communicate(timeout=PATIENCE_S)
            assert "Traceback" not in log, log
        finally:
            process.kill()


def said(result: Json) -> str:
    """Return the text of a result that is nothing but text."""
    assert result["isError"] is False
    assert result["resultType"] == "complete"
    [block] = result["content"]
    assert block["type"] == "text"
    text: str = block["text"]
    return text


def complaint(result: Json) -> str:
    """Return the text of a tool error."""
    assert result["isError"] is True
    [block] = result["content"]
    text: str = block["text"]
    return text


# -- how it connects -------------------------------------------------------------------------------------


def test_this_is_the_sdk_that_speaks_the_modern_protocol(sdk: Report) -> None:
    assert tuple(int(part) for part in sdk.sdk.split(".")[:2]) >= (2, 3)


def test_discovers_and_agrees_on_the_modern_protocol(sdk: Report) -> None:
    """NEG.9: by default the SDK asks, and would fall back to the handshake of 2025 were the answer amiss."""
    found = sdk.returned("discover")
    assert found["version"] == MODERN
    assert found["initialized"] is False
    discovered = found["discovered"]
    assert discovered["supportedVersions"] == [MODERN]
    assert discovered["capabilities"]["extensions"] == {TASKS: {}}
    assert discovered["capabilities"]["tools"] == {"listChanged": True}
    assert "tasks" not in discovered["capabilities"]
    assert discovered["instructions"] == "Ask for anything."
    assert discovered["_meta"][f"{META}serverInfo"] == SERVER_INFO


def test_every_message_is_modern(sdk: Report) -> None:
    """NEG.1: what the SDK sent, from the first message to the last."""
    assert sdk.sent("plain")[0] == "server/discover"
    for client, messages in sdk.messages.items():
        if client == "legacy":
            continue
        for message in messages:
            assert message["method"] not in {"initialize", "notifications/initialized"}
            if "id" in message:
                assert message["params"]["_meta"][f"{META}protocolVersion"] == MODERN


def test_the_server_sees_what_each_client_is_able_to_do(sdk: Report) -> None:
    """NEG.4: the metadata of three calls, as they reached their handler."""
    plain, asking, tasking = (result["structuredContent"] for result in sdk.returned("metadata"))
    for metadata in (plain, asking, tasking):
        assert metadata[f"{META}protocolVersion"] == MODERN
        assert metadata[f"{META}clientInfo"]["name"] == "mcp"
    assert plain[f"{META}clientCapabilities"] == {}
    assert set(asking[f"{META}clientCapabilities"]) == {"elicitation", "sampling", "roots"}
    assert tasking[f"{META}clientCapabilities"]["extensions"] == {TASKS: {}}


def test_requests_carry_their_headers_over_http(sdk: Report) -> None:
    """HTTP.2: and there are no sessions, no streams beside the requests, and nothing to delete."""
    assert bool(sdk.requests) == bool(sdk.connection.url), "there is no HTTP on stdio"
    for client, requests in sdk.requests.items():
        if client == "legacy":
            continue
        assert {request["method"] for request in requests} == {"POST"}
        heads = [request["headers"] for request in requests]
        assert {head["mcp-protocol-version"] for head in heads} == {MODERN}
        assert not any("mcp-session-id" in head for head in heads)
        asked = [message["method"] for message in sdk.messages[client] if "id" in message]
        assert Counter(head["mcp-method"] for head in heads) == Counter(asked)


def test_a_pinned_version_needs_no_discovery(sdk: Report) -> None:
    assert complaint(sdk.returned("pin_the_version")) == "Out of colour."
    assert sdk.sent("pinned") == ["tools/call"]


def test_the_handshake_of_2025_opens_a_session_without_tasks(sdk: Report) -> None:
    """LEG.1, LEG.2: what a server does that says nothing of its own about it."""
    found = sdk.returned("connect_as_of_old")
    assert found["version"] == "2025-11-25"
    assert "Ada" in found["greeting"]["content"][0]["text"]
    assert sdk.sent("legacy")[:2] == ["initialize", "notifications/initialized"]


# -- tools -----------------------------------------------------------------------------------------------


def test_lists_tools(sdk: Report) -> None:
    listed = sdk.returned("list_tools")
    tools = {tool["name"]: tool for tool in listed["first"]["tools"]}
    assert {"greet", "count", "measure", "ship", "publish", "render", "idle"} <= set(tools)
    assert tools["greet"] == {
        "name": "greet",
        "title": "Greeter",
        "description": "Greet somebody",
        "inputSchema": {
            "type": "object",
            "properties": {"name": {"type": "string"}},
            "required": ["name"],
        },
        "annotations": {"readOnlyHint": True},
    }
    assert tools["measure"]["outputSchema"]["required"] == ["width", "height"]


def test_a_list_is_cached_as_long_as_we_say(sdk: Report) -> None:
    listed = sdk.returned("list_tools")
    assert listed["first"]["ttlMs"] > 0
    assert listed["second"] == listed["first"]
    assert listed["sent"].count("tools/list") <= 1


def test_calls_a_tool(sdk: Report) -> None:
    result = sdk.returned("plain")
    assert said(result) == "Hello, Žofie\r\n\n\u2028data: \U0001f33e!"
    assert result["_meta"] == {f"{META}serverInfo": SERVER_INFO}


def test_is_told_of_progress(sdk: Report) -> None:
    """Later news may replace earlier news that has not left yet, but never the other way round."""
    went = sdk.returned("progress")
    reports = went["reports"]
    assert reports[-1] == [3.0, 3.0, "Step 3"]
    assert reports == sorted(reports)
    assert said(went["result"]) == "Counted to 3."


def test_structured_content_fits_its_schema(sdk: Report) -> None:
    result = sdk.returned("structured")
    assert result["structuredContent"] == {"width": 1920, "height": 1080}
    assert said(result) == "Full HD"


def test_structured_content_that_does_not_fit_stays_here(sdk: Report) -> None:
    """The SDK would raise for a result that breaks the schema; it gets a tool error instead."""
    assert "result.width: 'wide' is not of type 'integer'" in complaint(sdk.returned("broken_promise"))


def test_header_parameters(sdk: Report) -> None:
    """HTTP.3: a value that HTTP cannot carry as it is comes encoded, and arrives as it was."""
    arrived = [said(result) for result in sdk.returned("header_parameter")]
    assert arrived == [
        "Shipped to eu-north.",
        "Shipped to Zürich.",
        "Shipped to  padded .",
        "Shipped to =?base64?eA==?=.",
    ]
    calls = [
        request["headers"].get("mcp-param-region")
        for request in sdk.requests.get("shipping", ())
        if request["headers"]["mcp-method"] == "tools/call"
    ]
    if sdk.connection.url:
        # The first one came without the header, which the SDK had not yet read of; -32020 told it to.
        assert calls == [
            None,
            "eu-north",
            "=?base64?WsO8cmljaA==?=",
            "=?base64?IHBhZGRlZCA=?=",
            "=?base64?PT9iYXNlNjQ/ZUE9PT89?=",
        ]
        assert sdk.sent("shipping")[:4] == ["server/discover", "tools/call", "tools/list", "tools/call"]


def test_methods_of_the_servers_author(sdk: Report) -> None:
    """WIRE.5, INP.4: ``prompts/get``, which asks first, and ``resources/read``."""
    got = sdk.returned("prompt_and_resource")
    [message] = got["prompt"]["messages"]
    assert message["content"]["text"] == "Sure: True"
    [contents] = got["resource"]["contents"]
    assert contents["text"] == "Rain on Sunday."


def test_log_messages_come_to_who_asked_for_their_level(sdk: Report) -> None:
    assert sdk.returned("logging") == [{"level": "warning", "logger": "farm", "data": {"fuel": "low"}}]


# -- errors ----------------------------------------------------------------------------------------------


def test_a_tool_error_is_a_result(sdk: Report) -> None:
    assert complaint(sdk.returned("tool_error")) == "Out of colour."


def test_wrong_arguments_are_a_tool_error(sdk: Report) -> None:
    assert "arguments.name: 7 is not of type 'string'" in complaint(sdk.returned("wrong_arguments"))


def test_a_protocol_error_is_an_error(sdk: Report) -> None:
    assert sdk.error("protocol_error") == {
        "code": -32603,
        "message": "The mill broke down.",
        "data": {"part": "wheel"},
    }


def test_an_unknown_tool(sdk: Report) -> None:
    assert sdk.error("unknown_tool")["code"] == -32602


def test_an_unknown_method(sdk: Report) -> None:
    """NEG.10"""
    assert sdk.error("unknown_method")["code"] == -32601


def test_a_tool_that_needs_tasks_refuses_who_does_not_declare_them(sdk: Report) -> None:
    """NEG.5"""
    error = sdk.error("task_required")
    assert error["code"] == -32021
    assert error["data"] == {"requiredCapabilities": {"extensions": {TASKS: {}}}}


def test_a_tool_that_can_do_without_tasks_does(sdk: Report) -> None:
    """NEG.5"""
    assert said(sdk.returned("task_optional")) == "Rendered at once."


def test_who_cannot_be_asked_is_not(sdk: Report) -> None:
    """NEG.10"""
    error = sdk.error("cannot_be_asked")
    assert error["code"] == -32021
    assert error["data"] == {"requiredCapabilities": {"elicitation": {"form": {}}}}


# -- questions before an answer --------------------------------------------------------------------------


def test_two_rounds_of_questions(sdk: Report) -> None:
    """INP.4: the SDK answers with its callback and calls anew, with the state it was given."""
    went = sdk.returned("two_rounds")
    assert said(went["result"]) == "3 on public."
    assert [asked["message"] for asked in went["asked"]] == ["Where to?", "Are you sure?"]
    assert went["asked"][0]["mode"] == "form"
    assert went["asked"][0]["requestedSchema"]["properties"]["copies"] == {
        "type": "integer",
        "minimum": 1,
        "default": 1,
    }


def test_a_form_may_be_declined_or_left(sdk: Report) -> None:
    assert [said(result) for result in sdk.returned("unwilling")] == ["Declined.", "Left unanswered."]


def test_three_kinds_of_questions_at_once(sdk: Report) -> None:
    assert sdk.returned("three_kinds")["structuredContent"] == {
        "accepted": True,
        "said": "Yes.",
        "roots": ["file:///farm"],
    }


def test_the_state_of_one_call_is_not_for_another(sdk: Report) -> None:
    """INP.4"""
    assert sdk.error("misplaced_state")["code"] == -32602


# -- several at once, and giving up ----------------------------------------------------------------------


def test_ten_calls_at_once(sdk: Report) -> None:
    """None of them returns before all are there."""
    answers = sdk.returned("at_once")
    assert len(answers) == 10
    assert all(said(result) == f"Enchanted, {name}." for name, result in answers.items())


def test_a_call_that_is_given_up_is_cancelled(sdk: Report) -> None:
    """HTTP.4, STD: by closing its response over HTTP, by a notification on stdio."""
    went = sdk.returned("give_up")
    assert went["cancelled"] is True
    assert said(went["seen"]) == "Given up."


def test_a_call_that_times_out_leaves_the_connection_as_it_was(sdk: Report) -> None:
    went = sdk.returned("time_out")
    assert went["error"]["code"] == -32001, "the SDK's own error for it"
    assert said(went["after"]) == "Hello, Job!"


# -- listening -------------------------------------------------------------------------------------------


def test_is_told_that_the_list_of_tools_has_changed(sdk: Report) -> None:
    """SUB.1: what is not offered, changes of prompts here, is left out of the acknowledgement."""
    went = sdk.returned("listen")
    assert went["honored"] == {"toolsListChanged": True}
    assert went["events"] == ["ToolsListChanged", "ToolsListChanged"]
    assert went["has temp"] == [False, True, False]


def test_a_listen_stream_ends_with_its_server(sdk: Report) -> None:
    """SUB.4"""
    assert sdk.returned("stop") == sdk.connection.when_it_stops


# -- tasks: an extension on the SDK's own extension interface --------------------------------------------


def test_a_call_becomes_a_task(sdk: Report) -> None:
    """LIFE.3: the handle is one that the SDK knows as an extension's, and the result is the task's."""
    went = sdk.returned("task")
    assert went["created"]["resultType"] == "task"
    assert went["created"]["status"] == "working"
    assert went["created"]["statusMessage"] == "Queued"
    assert went["last"]["status"] == "completed"
    assert said(went["result"]) == "Rendered as a task."


def test_task_requests_name_their_task_over_http(sdk: Report) -> None:
    """HTTP.2: the SDK does so by itself."""
    task_id = sdk.returned("task")["created"]["taskId"]
    named = [
        request["headers"]["mcp-name"]
        for request in sdk.requests.get("tasking", ())
        if request["headers"]["mcp-method"] == "tasks/get"
    ]
    assert (task_id in named) == bool(sdk.connection.url)


def test_a_task_asks(sdk: Report) -> None:
    """INP.3: the SDK's own callback answers both."""
    went = sdk.returned("task_with_questions")
    assert sorted(asked["message"] for asked in went["asked"]) == ["Are you sure?", "Where to?"]
    assert said(went["result"]) == "public, sure"
    assert "tasks/update" in sdk.sent("tasking")


def test_questions_before_a_task(sdk: Report) -> None:
    """INP.4, LIFE.8"""
    went = sdk.returned("task_after_questions")
    assert [asked["message"] for asked in went["asked"]] == ["Where to?"]
    assert went["created"]["resultType"] == "task"
    assert said(went["result"]) == "Booked on public."


def test_a_tool_error_completes_its_task(sdk: Report) -> None:
    """LIFE.2"""
    went = sdk.returned("task_with_tool_error")
    assert went["last"]["status"] == "completed"
    assert complaint(went["result"]) == "Burnt."


def test_the_result_of_a_task_fits_its_schema(sdk: Report) -> None:
    """The SDK would raise for one that does not."""
    assert sdk.returned("task_with_output_schema")["result"]["structuredContent"] == {"frames": 24}


def test_a_protocol_error_fails_its_task(sdk: Report) -> None:
    """LIFE.2"""
    assert sdk.error("task_failed") == {"code": -32603, "message": "The roof fell in.", "data": {"floor": 2}}


def test_a_task_is_cancelled(sdk: Report) -> None:
    """CAN.6"""
    went = sdk.returned("task_cancelled")
    assert went["acknowledged"]["resultType"] == "complete"
    assert went["last"]["status"] == "cancelled"


def test_an_unknown_task(sdk: Report) -> None:
    """GET.2"""
    assert sdk.error("task_unknown")["code"] == -32602


def test_notifications_about_a_task(sdk: Report) -> None:
    """SUB.2, SUB.3: a snapshot first, the end last, and that one as ``tasks/get`` shows it."""
    went = sdk.returned("task_notifications")
    notified, shown = went["notified"], went["shown"]
    assert notified[0]["status"] == "working"
    assert notified[-1]["status"] == "cancelled"
    only_in_results = {"resultType", "_meta"}
    assert {key: notified[-1][key] for key in notified[-1] if key not in only_in_results} == {
        key: shown[key] for key in shown if key not in only_in_results
    }
