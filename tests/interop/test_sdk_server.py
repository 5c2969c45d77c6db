"""Our clients with a server without tasks, on the official Python SDK: ``sdk_server.py``.

Each scenario runs on both loops: over HTTP with a client of its own, and on stdio all at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, Final

import pytest
from mcp_tasks_adapters.client import Failed, Fault, ObservationLost, decline

from tests.adapters.client_harness import LOOPS
from tests.interop.servers import Elsewhere
from tests.interop.visitor import PATIENCE_S, Scenario, Visitor, all_on_stdio, over_http, said

SDK: Final = Elsewhere(
    module="tests.interop.sdk_server", python_variable="MCP_SDK_PYTHON", needs="the official SDK ('mcp>=2.3')"
)


# -- scenarios -------------------------------------------------------------------------------------------


async def results(visitor: Visitor) -> None:
    """REQ.1, REQ.8: text, what its tool's schema describes, and a tool's own errors."""
    assert said(await visitor.outcome("greet", {"name": "Žofie"})) == "Hello, Žofie!"
    measured = await visitor.outcome("measure")
    assert measured.result["structuredContent"] == {"width": 1920, "height": 1080}
    assert "Out of colour." in said(await visitor.outcome("refuse"), is_error=True)
    assert "secret" not in said(await visitor.outcome("crash"), is_error=True)
    said(await visitor.outcome("greet", {"name": 7}), is_error=True)
    said(await visitor.outcome("no such tool"), is_error=True)


async def discovers_and_lists(visitor: Visitor) -> None:
    """NEG.9"""
    found = await visitor.client.discover()
    assert found["supportedVersions"] == ["2026-07-28"]
    assert not found["capabilities"].get("extensions")
    tools = {tool["name"]: tool for tool in await visitor.client.list_tools()}
    assert {"greet", "count", "measure", "publish"} <= set(tools)
    assert tools["greet"]["inputSchema"]["required"] == ["name"]


async def protocol_errors(visitor: Visitor) -> None:
    """REQ.6: and methods of tasks, which are unknown here."""
    broken = await visitor.outcome("break_down")
    assert isinstance(broken, Failed)
    assert (broken.code, broken.message, broken.data) == (
        -32603,
        "The mill broke down.",
        {"part": "wheel"},
    )
    assert broken.fault is Fault.SERVER
    for method in ("no/such", "tasks/get"):
        assert (await visitor.refusal(method, {"taskId": "1"})).code == -32601
    watched = await visitor.client.watch("1").settle(PATIENCE_S)
    assert isinstance(watched, ObservationLost)


async def progress(visitor: Visitor) -> None:
    heard: list[tuple[str, Any]] = []
    call = await visitor.client.call_tool(
        "count", timeout=PATIENCE_S, on_notification=lambda method, params: heard.append((method, params))
    )
    assert said(await call.settle()) == "Counted to 3."
    assert [method for method, _ in heard] == ["notifications/progress"] * 3
    assert [params["progress"] for _, params in heard] == [1, 2, 3]


async def arguments_in_headers(visitor: Visitor) -> None:
    """HTTP.3"""
    for region in ("eu-north", "Zürich", " padded ", "=?base64?eA==?="):
        assert said(await visitor.outcome("ship", {"region": region})) == f"Shipped to {region}."


async def rounds_of_questions(visitor: Visitor) -> None:
    """REQ.1"""
    assert said(await visitor.outcome("publish")) == "On private, sure."
    assert visitor.questions("publish") == ["Where to?", "Are you sure?"]


async def a_call_is_given_up_and_others_go_on(visitor: Visitor) -> None:
    """REQ.7: where there is no task, the request itself is cancelled."""
    begun, ended = visitor.on.event(), visitor.on.event()

    async def wait() -> None:
        try:
            await visitor.client.call_tool("wait", on_notification=lambda *_: begun.set())
        finally:
            ended.set()

    waiting = visitor.on.spawn(wait)
    await begun.wait()
    waiting.cancel()
    await ended.wait()
    assert said(await visitor.outcome("greet", {"name": "Job"})) == "Hello, Job!"


async def many_calls_at_once(visitor: Visitor) -> None:
    names = [f"guest {number}" for number in range(20)]
    greeted: list[str] = []
    all_greeted = visitor.on.event()

    async def greet(name: str) -> None:
        greeted.append(said(await visitor.outcome("greet", {"name": name})))
        if len(greeted) == len(names):
            all_greeted.set()

    for name in names:
        visitor.on.spawn(partial(greet, name))
    await all_greeted.wait()
    assert sorted(greeted) == sorted(f"Hello, {name}!" for name in names)


SCENARIOS: Final[tuple[Scenario, ...]] = (
    results,
    discovers_and_lists,
    protocol_errors,
    progress,
    arguments_in_headers,
    rounds_of_questions,
    a_call_is_given_up_and_others_go_on,
    many_calls_at_once,
)


# -- running them ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with SDK.serving(tmp_path_factory.mktemp("sdk") / "server.log") as url:
        yield url


@pytest.fixture(params=LOOPS)
def loop(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_over_http(loop: str, url: str, scenario: Scenario) -> None:
    over_http(loop, url, scenario)


def test_on_stdio(loop: str) -> None:
    """STD: all at once, over one process."""
    assert all_on_stdio(loop, SDK, SCENARIOS) == {}


# -- what is only tried over HTTP ------------------------------------------------------------------------


def test_a_question_is_declined(loop: str, url: str) -> None:
    async def scenario(visitor: Visitor) -> None:
        visitor.answers["Where to?"] = decline()
        assert await visitor.text("publish") == "Kept."

    over_http(loop, url, scenario)
