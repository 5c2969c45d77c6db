"""Clients of 2025-11-25 that others wrote, with ``mcp-tasks serve --legacy serve``: over HTTP and on stdio.

They are the official SDKs 1.x, of Python (``sdk1_client.py``) and of npm (``npm_client.mjs``). Each is a
process of its own that goes through the same scenarios and reports; each test here is about one of them.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from itertools import product
from typing import Any, Final

import pytest
from attrs import frozen

from tests.adapters.client_harness import LOOPS
from tests.interop.servers import ROOT, needed, serving

PATIENCE_S: Final = 240.0
RELATED: Final = "io.modelcontextprotocol/related-task"

Json = dict[str, Any]


def client_command(sdk: str) -> list[str]:
    """Return what runs a client."""
    if sdk == "python":
        python = needed("MCP_SDK1_PYTHON", "a Python interpreter with the official SDK 1.x ('mcp>=1.30,<2')")
        return [python, "-W", "ignore", "-m", "tests.interop.sdk1_client"]
    node = needed("MCP_NODE", "Node.js 22 or newer")
    folder = needed("MCP_NPM", "a folder with npm's @modelcontextprotocol/sdk 1.x")
    return [node, "tests/interop/npm_client.mjs", folder]


def server_command(loop: str, *options: str) -> list[str]:
    """Return what runs the server."""
    serve = ["-m", "mcp_tasks_adapters.cli", "serve", "tests/interop/farm.py:server"]
    return [sys.executable, *serve, "--legacy", "serve", "--loop", loop, "--store", "memory:", *options]


@frozen(kw_only=True)
class Report:
    """What a client went through."""

    sdk: str
    """Its version."""
    on_stdio: bool
    outcomes: dict[str, Json]

    def returned(self, scenario: str) -> Any:
        """Return what a scenario returned."""
        outcome = self.outcomes[scenario]
        if "returned" not in outcome:
            pytest.fail(f"{scenario}: {outcome['traceback']}", pytrace=False)
        return outcome["returned"]


@pytest.fixture(scope="module", params=product(("python", "npm"), ("http", "stdio"), LOOPS), ids="-".join)
def client(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Report]:
    sdk, transport, loop = request.param
    command = client_command(sdk)
    if transport == "stdio":
        yield run([*command, "stdio", *server_command(loop, "--stdio")], on_stdio=True)
        return
    log = tmp_path_factory.mktemp("server") / "log"
    with serving(server_command(loop), log) as url:
        report = run([*command, "http", url], on_stdio=False)
    assert "Traceback" not in log.read_text()
    yield report


def run(command: list[str], *, on_stdio: bool) -> Report:
    """Run a client."""
    ran = subprocess.run(
        command,
        cwd=ROOT,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=PATIENCE_S,
        check=False,
    )
    if ran.returncode != 0:
        pytest.fail(f"The client got nowhere:\n{ran.stderr}", pytrace=False)
    assert "Traceback" not in ran.stderr
    return Report(on_stdio=on_stdio, **json.loads(ran.stdout))


def said(result: Json, *, is_error: bool = False) -> str:
    """Return the text of a result that is nothing but text."""
    assert result.get("isError", False) is is_error
    [block] = result["content"]
    text: str = block["text"]
    return text


def complaint(error: Json, code: int) -> str:
    """Return what an error with this code says."""
    assert error["code"] == code
    message: str = error["message"]
    return message


# -- sessions and plain calls ----------------------------------------------------------------------------


def test_this_is_an_sdk_of_the_generation_before(client: Report) -> None:
    assert client.sdk.startswith("1.")


def test_leg2_a_session_is_opened_with_tasks(client: Report) -> None:
    """But without ``tasks/list``: nobody here has a name."""
    found = client.returned("connect")
    assert found["serverInfo"] == {"name": "interop-farm", "version": "1.0", "title": "The farm"}
    assert found["instructions"] == "Ask for anything."
    assert found["capabilities"]["tasks"] == {"cancel": {}, "requests": {"tools": {"call": {}}}}
    assert found["capabilities"]["tools"] == {"listChanged": True}
    assert client.returned("ping") == {}


def test_leg3_each_tool_says_whether_it_runs_as_a_task(client: Report) -> None:
    tools = client.returned("tools")
    assert {tools[name] for name in ("greet", "publish", "refuse")} == {"forbidden"}
    assert tools["render"] == "optional"
    assert {tools[name] for name in ("commission", "book", "spoil", "collapse", "idle")} == {"required"}


def test_trap22_a_plain_call_has_a_plain_result(client: Report) -> None:
    assert said(client.returned("plain")) == "Hello, Žofie!"
    assert said(client.returned("plain_tool_error"), is_error=True) == "Out of colour."


def test_leg8_a_plain_call_asks_on_its_stream(client: Report) -> None:
    found = client.returned("plain_questions")
    assert found["asked"] == ["Where to?", "Are you sure?"]
    assert said(found["result"]) == "3 on public."


def test_leg8_the_user_the_model_and_the_client_are_asked(client: Report) -> None:
    found = client.returned("three_kinds")["structuredContent"]
    assert found == {"accepted": True, "said": "Yes.", "roots": ["file:///farm"]}


def test_the_client_hears_of_tools_that_change(client: Report) -> None:
    assert client.returned("tools_change") == "notifications/tools/list_changed"


# -- tasks -----------------------------------------------------------------------------------------------


def test_leg3_leg4_a_task_from_its_creation_to_its_result(client: Report) -> None:
    found = client.returned("task")
    assert found["created"]["status"] == "working"
    assert found["created"]["ttl"] == 90_000
    assert found["last"] == "completed"
    assert said(found["result"]) == "Rendered as a task."
    assert found["result"]["_meta"] == {RELATED: {"taskId": found["created"]["taskId"]}}


def test_leg8_trap24_a_task_asks_each_question_once(client: Report) -> None:
    found = client.returned("task_with_questions")
    assert found["asked"] == ["Are you sure?", "Where to?"]
    assert said(found["result"]) == "public, sure"
    assert found["last"] == "completed"


def test_leg8_a_tool_that_asks_before_it_makes_a_task_asks_through_the_task(client: Report) -> None:
    found = client.returned("task_after_questions")
    assert found["asked"] == ["Where to?"]
    assert said(found["result"]) == "Booked on public."


def test_leg6_trap21_a_tool_s_own_error_is_a_failure_and_there_to_be_read(client: Report) -> None:
    found = client.returned("task_with_tool_error")
    assert found["last"] == "failed"
    assert said(found["result"], is_error=True) == "Burnt."


def test_leg4_a_protocol_error_is_what_the_call_would_have_ended_with(client: Report) -> None:
    found = client.returned("task_failed")
    assert found["last"] == "failed"
    assert "The roof fell in." in complaint(found["error"], -32603)
    assert found["error"]["data"] == {"floor": 2}


def test_leg5_a_task_is_cancelled_at_once_and_but_once(client: Report) -> None:
    found = client.returned("task_cancelled")
    assert found["cancelled"]["status"] == "cancelled"
    assert found["view"] == found["cancelled"]
    assert "it is cancelled" in complaint(found["again"], -32602)
    [waited] = found["waited"]
    assert "cancelled" in complaint(waited, -32602)


def test_leg7_an_unknown_task(client: Report) -> None:
    found = client.returned("task_unknown")
    assert len(found) == 3
    for error in found.values():
        assert "Task not found" in complaint(error, -32602)


def test_leg7_sec1_who_has_a_name_sees_the_tasks_of_that_name(client: Report) -> None:
    """Over HTTP, where there are names."""
    found = client.returned("tasks_of_one_s_own")
    assert (found is None) is client.on_stdio
    if found is not None:
        assert found["capability"] == {}
        assert found["ann"] == found["made"]
        assert len(found["made"]) == 3
        assert found["bob"] == {"tasks": []}
        assert "Task not found" in complaint(found["get"], -32602)
        assert "Task not found" in complaint(found["cancel"], -32602)
        complaint(found["cursor"], -32602)


def test_leg7_nobody_is_shown_everybody_s_tasks(client: Report) -> None:
    complaint(client.returned("task_list"), -32601)


def test_leg3_a_tool_refuses_the_way_it_does_not_run(client: Report) -> None:
    found = client.returned("wrong_way")
    assert "never runs as one" in complaint(found["as task"], -32601)
    assert "runs only as one" in complaint(found["plain"], -32601)
