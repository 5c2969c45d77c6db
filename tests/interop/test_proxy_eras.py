"""Our proxy between the eras: with clients and servers of 2025-11-25 that others wrote, on both loops.

The clients are those of ``test_legacy_clients.py``, before a modern server; the servers those of
``test_npm_server.py`` and ``test_sdk1_server.py``, behind a proxy that our modern client takes for modern.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from inspect import signature
from itertools import product
from subprocess import DEVNULL
from typing import Any

import pytest
from mcp_tasks_adapters.client import Answer, InputRequest, decline
from mcp_tasks_adapters.proxy import Proxy, StdioUpstream

from tests.adapters.client_harness import LOOPS
from tests.adapters.client_harness import run as run_on
from tests.adapters.proxy_harness import proxying
from tests.adapters.test_cli_proxy import running
from tests.interop import test_npm_server as npm
from tests.interop import test_official_sdk as official
from tests.interop import test_sdk1_server as sdk1
from tests.interop.servers import ROOT, needed, serving
from tests.interop.test_legacy_clients import (
    RELATED,
    Report,
    client_command,
    complaint,
    run,
    said,
    server_command,
)
from tests.interop.visitor import PATIENCE_S, Scenario, Visitor, over_http
from tests.interop.visitor import said as said_by_tool

# -- callers of 2025-11-25 -----------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=product(("python", "npm"), LOOPS), ids="-".join)
def bridged(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Report:
    """A client that others wrote, bridged to our server, which is modern to the proxy."""
    sdk, loop = request.param
    folder = tmp_path_factory.mktemp("bridged")
    with serving(server_command(loop, "--legacy", "refuse"), folder / "server.log") as url:
        proxy = [sys.executable, "-m", "tests.interop.bridging_proxy", loop, url]
        with serving(proxy, folder / "proxy.log") as proxied:
            report = run([*client_command(sdk), "http", proxied], on_stdio=False)
    assert "Traceback" not in (folder / "proxy.log").read_text()
    return report


def test_leg2_prx2_a_session_has_what_is_behind_the_proxy(bridged: Report) -> None:
    found = bridged.returned("connect")
    assert bridged.sdk.startswith("1.")
    assert found["serverInfo"]["name"] == "mcp-tasks-proxy"
    assert found["capabilities"]["tasks"] == {"cancel": {}, "requests": {"tools": {"call": {}}}}
    assert bridged.returned("ping") == {}
    assert set(bridged.returned("tools").values()) == {"optional"}


def test_a_plain_call_is_a_plain_one(bridged: Report) -> None:
    """Trap 22; and LEG.8: it asks on its stream."""
    assert said(bridged.returned("plain")) == "Hello, Žofie!"
    assert said(bridged.returned("plain_tool_error"), is_error=True) == "Out of colour."
    found = bridged.returned("plain_questions")
    assert found["asked"] == ["Where to?", "Are you sure?"]
    assert said(found["result"]) == "3 on public."
    kinds = bridged.returned("three_kinds")["structuredContent"]
    assert kinds == {"accepted": True, "said": "Yes.", "roots": ["file:///farm"]}


def test_leg3_leg4_a_task_from_its_creation_to_its_result(bridged: Report) -> None:
    found = bridged.returned("task")
    assert found["created"]["status"] == "working"
    assert found["last"] == "completed"
    assert said(found["result"]) == "Rendered as a task."
    assert found["result"]["_meta"] == {RELATED: {"taskId": found["created"]["taskId"]}}


def test_leg8_a_task_asks_through_the_proxy(bridged: Report) -> None:
    found = bridged.returned("task_with_questions")
    assert found["asked"] == ["Are you sure?", "Where to?"]
    assert said(found["result"]) == "public, sure"
    before = bridged.returned("task_after_questions")
    assert before["asked"] == ["Where to?"]
    assert said(before["result"]) == "Booked on public."


def test_leg6_leg4_failures(bridged: Report) -> None:
    found = bridged.returned("task_with_tool_error")
    assert found["last"] == "failed"
    assert said(found["result"], is_error=True) == "Burnt."
    failed = bridged.returned("task_failed")
    assert "The roof fell in." in complaint(failed["error"], -32603)


def test_leg5_a_cancellation_is_answered_when_the_upstream_has_cancelled(bridged: Report) -> None:
    found = bridged.returned("task_cancelled")
    assert found["cancelled"]["status"] == "cancelled"
    assert found["view"] == found["cancelled"]
    assert "it is cancelled" in complaint(found["again"], -32602)
    [waited] = found["waited"]
    assert "cancelled" in complaint(waited, -32602)


def test_leg7_sec1_ids(bridged: Report) -> None:
    for error in bridged.returned("task_unknown").values():
        assert "Task not found" in complaint(error, -32602)
    found = bridged.returned("tasks_of_one_s_own")
    assert len(found["made"]) == 3
    assert (found["capability"], found["ann"], found["bob"]) == ({}, found["made"], {"tasks": []})
    complaint(found["cursor"], -32602)
    assert "Task not found" in complaint(found["get"], -32602)
    assert "Task not found" in complaint(found["cancel"], -32602)
    complaint(bridged.returned("task_list"), -32601)


def test_leg2_news_of_tools_comes_through(bridged: Report) -> None:
    assert bridged.returned("tools_change") == "notifications/tools/list_changed"


# -- upstreams of 2025-11-25 ---------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=LOOPS)
def before_npm(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, str, str]]:
    """The loop, and the URLs of a proxy before each of npm's examples."""
    loop, folder = request.param, tmp_path_factory.mktemp("npm")
    options = ("--loop", loop, "--store", "memory:", "--input", "form", "--input", "sampling")
    with (
        npm.serving("simpleTaskInteractive", "PORT", folder / "one.log") as one,
        npm.serving("simpleStreamableHttp", "MCP_PORT", folder / "other.log") as other,
        running("proxy", "--upstream", one, *options) as interactive,
        running("proxy", "--upstream", other, *options) as simple,
    ):
        yield loop, interactive.url, simple.url


def visit(loop: str, url: str, scenario: Any) -> None:
    """Run a scenario; the proxy is modern to our client."""

    async def modern(visitor: Visitor) -> None:
        await scenario(visitor)
        assert visitor.client.era == "modern"

    npm.visit(loop, url, modern)


def test_prx_translate_a_task_that_asks_a_form(before_npm: tuple[str, str, str]) -> None:
    async def scenario(visitor: Visitor) -> None:
        call = await visitor.client.call_tool("confirm_delete", {"filename": "a.txt"}, timeout=PATIENCE_S)
        assert call.task_id is not None
        assert npm.words(await call.settle()) == "Deleted 'a.txt'"
        assert visitor.questions("confirm_delete") == ["Are you sure you want to delete 'a.txt'?"]
        visitor.answers["Are you sure you want to delete 'b.txt'?"] = decline()
        declined = await visitor.outcome("confirm_delete", {"filename": "b.txt"})
        assert npm.words(declined) == "Deletion cancelled"

    loop, interactive, _ = before_npm
    visit(loop, interactive, scenario)


def test_prx_translate_a_task_that_asks_a_model(before_npm: tuple[str, str, str]) -> None:
    async def scenario(visitor: Visitor) -> None:
        assert npm.words(await visitor.outcome("write_haiku", {"topic": "ponds"})) == "Haiku:\nAn old pond."

    loop, interactive, _ = before_npm
    visit(loop, interactive, scenario)


def test_prx_translate_plain_calls_and_tasks_side_by_side(before_npm: tuple[str, str, str]) -> None:
    async def scenario(visitor: Visitor) -> None:
        assert npm.words(await visitor.outcome("greet", {"name": "Ada"})) == "Hello, Ada!"
        assert {"greet", "delay"} <= {tool["name"] for tool in await visitor.client.list_tools()}
        call = await visitor.client.call_tool("delay", {"duration": 300}, timeout=PATIENCE_S)
        assert call.task_id is not None
        assert npm.words(await call.settle()) == "Completed 300ms delay"

    loop, _, simple = before_npm
    visit(loop, simple, scenario)


def test_inp4_a_plain_call_of_an_upstream_asks_in_rounds(before_npm: tuple[str, str, str]) -> None:
    async def scenario(visitor: Visitor) -> None:
        outcome = await visitor.outcome("collect-user-info", {"infoType": "preferences"})
        assert "declined" in npm.words(outcome)
        assert len(visitor.asked) == 1

    class Decliner(npm.Guest):
        async def answer(self, question: InputRequest) -> Answer:
            self.asked.append(question)
            return decline()

    loop, _, simple = before_npm
    over_http(loop, simple, scenario, visitor_class=Decliner, capabilities=npm.CAPABILITIES)


async def a_task_that_asks(visitor: Visitor) -> None:
    """LEG.8: one question after the other."""
    assert said_by_tool(await visitor.outcome("approve")) == "Approved on private: True."
    assert visitor.questions("approve") == ["Where to?", "Are you sure?"]


THROUGH = (
    a_task_that_asks,
    sdk1.a_tool_s_own_error_in_a_task,
    sdk1.an_exception_in_a_task,
    sdk1.a_call_is_given_up_and_others_go_on,
    sdk1.many_tasks_at_once,
    sdk1.questions_in_a_plain_call,
    sdk1.sampling_in_a_plain_call,
)
"""Scenarios of ``test_sdk1_server.py`` that are about what happens, and not about how it is said."""


@pytest.fixture(scope="module", params=LOOPS)
def before_sdk1(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, str]]:
    """The loop, and the URL of a proxy before a server on the official Python SDK 1.x."""
    loop, log = request.param, tmp_path_factory.mktemp("sdk1") / "server.log"
    options = ("--loop", loop, "--store", "memory:", "--input", "form", "--input", "sampling")
    with sdk1.SDK1.serving(log) as url, running("proxy", "--upstream", url, *options) as proxy:
        yield loop, proxy.url


@pytest.mark.parametrize("scenario", THROUGH, ids=lambda scenario: scenario.__name__)
def test_before_a_server_of_the_python_sdk_1(before_sdk1: tuple[str, str], scenario: Scenario) -> None:
    loop, url = before_sdk1
    over_http(loop, url, scenario, visitor_class=sdk1.Dreamer, capabilities=sdk1.CAPABILITIES)


# -- a modern client that others wrote -----------------------------------------------------------------------

OTHERWISE = frozenset(
    {
        official.test_a_listen_stream_ends_with_its_server,  # that one is left out: the server is another
        official.test_calls_a_tool,  # the proxy gives its own name
        official.test_discovers_and_agrees_on_the_modern_protocol,  # likewise
        official.test_the_server_sees_what_each_client_is_able_to_do,  # it sees the proxy (PRX.1)
    }
)
CHECKS = [
    check
    for name, check in vars(official).items()
    if name.startswith("test_") and check not in OTHERWISE and list(signature(check).parameters) == ["sdk"]
]
"""Everything that ``test_official_sdk.py`` says of one run of the official Python SDK 2.x."""


@pytest.fixture(scope="module", params=LOOPS)
def modern(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> official.Report:
    loop, folder = request.param, tmp_path_factory.mktemp("modern")
    python = needed("MCP_SDK_PYTHON", "a Python interpreter with the official SDK 2.x ('mcp>=2.3')")
    serve = [sys.executable, "-m", "mcp_tasks_adapters.cli", "serve", official.FARM, "--loop", loop]
    with serving([*serve, "--store", "memory:"], folder / "server.log") as url:
        proxy = [sys.executable, "-m", "tests.interop.bridging_proxy", loop, url]
        with serving(proxy, folder / "proxy.log") as proxied:
            connection = official.Connection(name=f"proxy-{loop}", command=(), url="through a proxy")
            return official.run_client(python, connection, "http", proxied, left_out="stop")


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__.removeprefix("test_"))
def test_the_python_sdk_2_through_the_proxy(modern: official.Report, check: Any) -> None:
    check(modern)


def test_prx1_the_upstream_hears_the_proxy_and_what_each_caller_declares(modern: official.Report) -> None:
    plain, asking, tasking = (result["structuredContent"] for result in modern.returned("metadata"))
    meta, capabilities = official.META, f"{official.META}clientCapabilities"
    for metadata in (plain, asking, tasking):
        assert metadata[f"{meta}clientInfo"] == {"name": "mcp-tasks-proxy", "version": "0"}
    assert plain[capabilities] == {}
    assert set(asking[capabilities]) == {"elicitation", "sampling", "roots"}
    assert tasking[capabilities]["extensions"] == {official.TASKS: {}}


@pytest.mark.parametrize("loop", LOOPS)
def test_std1_an_upstream_of_2025_on_stdio(loop: str) -> None:
    """One process and one session for all callers."""

    async def go(on: Any) -> None:
        upstream = StdioUpstream(name="old", command=sdk1.SDK1.command("stdio"), cwd=ROOT, stderr=DEVNULL)
        async with proxying(on, Proxy([upstream])) as url:
            visitor = sdk1.Dreamer(on)
            async with on.connect(url, answer=visitor.answer) as visitor.client:
                assert said_by_tool(await visitor.outcome("greet", {"name": "Ada"})) == "Hello, Ada!"
                await a_task_that_asks(visitor)

    run_on(loop, go)
