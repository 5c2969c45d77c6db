"""Our clients with a server of 2025-11-25, on the official Python SDK 1.x: ``sdk1_server.py``.

Each scenario runs on both loops: over HTTP with a client of its own, and on stdio all at once. The client
finds out by itself which era the server is of.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, Final

import pytest
from mcp_tasks_adapters.client import (
    Answer,
    Cancelled,
    Completed,
    Expired,
    Failed,
    NoResultError,
    accept,
    decline,
)

from tests.adapters.client_harness import LOOPS, On, run
from tests.interop.servers import Elsewhere
from tests.interop.visitor import PATIENCE_S, Scenario, Visitor, all_on_stdio, over_http, said

SDK1: Final = Elsewhere(
    module="tests.interop.sdk1_server",
    python_variable="MCP_SDK1_PYTHON",
    needs="the official SDK 1.x ('mcp>=1.30,<2')",
)
DREAM: Final = {"role": "assistant", "content": {"type": "text", "text": "Sheep."}, "model": "none"}
CAPABILITIES: Final[dict[str, Any]] = {"elicitation": {"form": {}}, "sampling": {}}


# -- scenarios -------------------------------------------------------------------------------------------


async def results(visitor: Visitor) -> None:
    """REQ.1, trap 22: plain calls stay plain."""
    assert said(await visitor.outcome("greet", {"name": "Žofie"})) == "Hello, Žofie!"
    assert visitor.client.era == "legacy"
    assert "Out of colour." in said(await visitor.outcome("refuse"), is_error=True)
    assert "broke down" in said(await visitor.outcome("break_down"), is_error=True)
    calls = visitor.sent("tools/call", name="greet")
    assert not any("task" in call.message["params"] for call in calls)


async def discovers_and_lists(visitor: Visitor) -> None:
    """LEG.2: what ``initialize`` said."""
    found = await visitor.client.discover()
    assert found["supportedVersions"] == ["2025-11-25"]
    assert found["capabilities"]["extensions"] == {"io.modelcontextprotocol/tasks": {}}
    assert found["serverInfo"]["name"] == "sdk1-farm"
    tools = {tool["name"]: tool for tool in await visitor.client.list_tools()}
    assert tools["approve"]["execution"] == {"taskSupport": "required"}
    assert (await visitor.refusal("no/such")).code == -32602


async def progress(visitor: Visitor) -> None:
    heard: list[Any] = []
    call = await visitor.client.call_tool(
        "count", timeout=PATIENCE_S, on_notification=lambda _, params: heard.append(params["progress"])
    )
    assert said(await call.settle()) == "Counted to 3."
    assert heard == [1, 2, 3]


async def a_task_from_its_creation_to_its_result(visitor: Visitor) -> None:
    """LEG.3, LEG.4: the very scenario of a modern server."""
    call = await visitor.client.call_tool("render", {"frames": 3}, timeout=PATIENCE_S)
    assert call.task_id is not None
    messages = [view.status_message async for view in call.updates()]
    assert messages[0] is None
    assert said(await call.settle()) == "Rendered 3 frames."
    assert len(visitor.sent("tasks/result", taskId=call.task_id)) == 1


async def a_task_that_asks(visitor: Visitor) -> None:
    """LEG.8, trap 24: one question after the other, on one open ``tasks/result``."""
    call = await visitor.client.call_tool("approve", timeout=PATIENCE_S)
    assert said(await call.settle()) == "Approved on private: True."
    assert visitor.questions("approve") == ["Where to?", "Are you sure?"]
    assert len(visitor.sent("tasks/result", taskId=call.task_id)) == 1


async def a_tool_s_own_error_in_a_task(visitor: Visitor) -> None:
    """Trap 21; LIFE.2."""
    assert said(await visitor.outcome("spoil"), is_error=True) == "Out of colour."


async def an_exception_in_a_task(visitor: Visitor) -> None:
    crashed = await visitor.outcome("crash")
    assert isinstance(crashed, Failed)
    assert crashed.message == "the mill has no wheel"


async def a_task_that_is_cancelled(visitor: Visitor) -> None:
    """LEG.5, CAN.6: to cancel it once more is acknowledged, and one that never was is refused."""
    call = await visitor.client.call_tool("loiter", timeout=PATIENCE_S)
    assert isinstance(await call.cancel(wait=True), Cancelled)
    assert call.task_id is not None
    await visitor.client.cancel_task(call.task_id)
    assert (await visitor.client.get_task(call.task_id)).status.value == "cancelled"
    with pytest.raises(NoResultError) as raised:
        await visitor.client.cancel_task("never")
    assert raised.value.outcome.code == -32602  # type: ignore[union-attr]


async def tasks_are_listed(visitor: Visitor) -> None:
    """LEG.7: a method of this era alone goes through."""
    call = await visitor.client.call_tool("render", timeout=PATIENCE_S)
    await call.settle()
    listed = await visitor.client.request("tasks/list")
    assert call.task_id in [task["taskId"] for task in listed["tasks"]]


async def questions_in_a_plain_call(visitor: Visitor) -> None:
    """REQ.1: requests of the server's on the call's own stream are rounds of questions."""
    assert await visitor.text("publish") == "On private, sure."
    assert visitor.questions("publish") == ["Where to?", "Are you sure?"]


async def sampling_in_a_plain_call(visitor: Visitor) -> None:
    assert await visitor.text("dream") == "Dreamt: Sheep."


async def a_question_that_is_a_task_of_ours(visitor: Visitor) -> None:
    """LEG.10: the server polls the client, and fetches the answer."""
    text = await visitor.text("delegate")
    assert text == "Delegated: accept {'channel': 'private'}."
    [response] = [
        entry.message["result"]
        for entry in visitor.trace
        if entry.event == "sent" and entry.message and "task" in entry.message.get("result", {})
    ]
    assert response["task"]["status"] == "working"


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


async def many_tasks_at_once(visitor: Visitor) -> None:
    rendered: list[str] = []
    all_rendered = visitor.on.event()

    async def render(frames: int) -> None:
        rendered.append(await visitor.text("render", {"frames": frames}))
        if len(rendered) == 8:
            all_rendered.set()

    for frames in range(1, 9):
        visitor.on.spawn(partial(render, frames))
    await all_rendered.wait()
    assert sorted(rendered) == sorted(f"Rendered {frames} frames." for frames in range(1, 9))


SCENARIOS: Final[tuple[Scenario, ...]] = (
    results,
    discovers_and_lists,
    progress,
    a_task_from_its_creation_to_its_result,
    a_task_that_asks,
    a_tool_s_own_error_in_a_task,
    an_exception_in_a_task,
    a_task_that_is_cancelled,
    tasks_are_listed,
    a_call_is_given_up_and_others_go_on,
    many_tasks_at_once,
)
WITH_QUESTIONS: Final[tuple[Scenario, ...]] = (
    questions_in_a_plain_call,
    sampling_in_a_plain_call,
    a_question_that_is_a_task_of_ours,
)
"""On stdio, where all streams are one, nobody could tell which of several calls these are of."""


# -- running them ----------------------------------------------------------------------------------------


class Dreamer(Visitor):
    """Answers what models are asked as well."""

    async def answer(self, question: Any) -> Answer:
        """Answer by what is asked."""
        if question.method == "sampling/createMessage":
            return Answer(DREAM)
        return await super().answer(question)


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with SDK1.serving(tmp_path_factory.mktemp("sdk1") / "server.log") as url:
        yield url


@pytest.fixture(params=LOOPS)
def loop(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.mark.parametrize("scenario", [*SCENARIOS, *WITH_QUESTIONS], ids=lambda scenario: scenario.__name__)
def test_over_http(loop: str, url: str, scenario: Scenario) -> None:
    over_http(loop, url, scenario, visitor_class=Dreamer, capabilities=CAPABILITIES)


def test_on_stdio(loop: str) -> None:
    """STD: all at once, over one process."""
    assert all_on_stdio(loop, SDK1, SCENARIOS) == {}


@pytest.mark.parametrize("scenario", WITH_QUESTIONS, ids=lambda scenario: scenario.__name__)
def test_questions_on_stdio(loop: str, scenario: Scenario) -> None:
    failed = all_on_stdio(loop, SDK1, [scenario], visitor_class=Dreamer, capabilities=CAPABILITIES)
    assert failed == {}


# -- what is only tried over HTTP ------------------------------------------------------------------------


def test_questions_on_the_stream_of_no_request(loop: str, url: str) -> None:
    """LEG.8: clients are to expect them on any stream."""

    async def scenario(visitor: Visitor) -> None:
        assert await visitor.text("publish_aside") == "On private, sure."

    over_http(loop, url, scenario)


def test_a_question_is_declined(loop: str, url: str) -> None:
    async def scenario(visitor: Visitor) -> None:
        visitor.answers["Where to?"] = decline()
        assert await visitor.text("publish") == "Kept."
        assert await visitor.text("approve") == "Kept."

    over_http(loop, url, scenario)


def test_a_task_is_resumed_in_the_session_that_it_is_of(loop: str, url: str) -> None:
    """REQ.6: its reference holds what another process needs; an unknown one is expired."""

    async def visit(on: On) -> None:
        async with on.connect(url) as client:
            call = await client.call_tool("render", {"frames": 20})
            reference = call.reference()
        assert reference is not None
        async with on.connect(url) as client:
            outcome = await client.resume(reference).settle(PATIENCE_S)
            assert isinstance(outcome, Completed)
            assert client.era == "legacy"
        async with on.connect(url, era="legacy") as client:
            gone = await client.resume({**reference, "session": None}).settle(PATIENCE_S)
            assert isinstance(gone, Expired)

    run(loop, visit)


def test_a_client_of_the_modern_era_alone_fails(loop: str, url: str) -> None:
    """NEG.2: as the compatibility matrix has it."""

    async def visit(on: On) -> None:
        async with on.connect(url, era="modern") as client:
            call = await client.call_tool("greet", {"name": "Ada"})
            assert isinstance(await call.settle(PATIENCE_S), Failed)

    run(loop, visit)


def test_an_era_that_is_known_is_not_found_out(loop: str, url: str) -> None:
    async def scenario(visitor: Visitor) -> None:
        visitor.answers["Where to?"] = accept({"channel": "public"})
        assert await visitor.text("approve") == "Approved on public: True."
        first = visitor.trace[0]
        assert first.message["method"] == "initialize"

    over_http(loop, url, scenario, era="legacy")
