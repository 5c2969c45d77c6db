"""Our clients with a tasks server that others wrote: ``fastmcp_server.py``.

Each scenario runs on both loops: over HTTP with a client of its own, and on stdio all at once.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Final

import pytest
from mcp_tasks_adapters.client import (
    Answer,
    Cancelled,
    Expired,
    Failed,
    Fault,
    cancel,
    decline,
    load_reference,
)

from mcp_tasks_proto.lifecycle import Status
from tests.adapters.client_harness import LOOPS
from tests.interop.leaving_client import ANSWER
from tests.interop.servers import ROOT, Elsewhere
from tests.interop.visitor import PATIENCE_S, Scenario, Visitor, all_on_stdio, over_http, said

FASTMCP: Final = Elsewhere(
    module="tests.interop.fastmcp_server",
    python_variable="FASTMCP_PYTHON",
    needs="fastmcp==4.1.4, fastmcp-tasks==4.1.4 and uvicorn",
)
TASKS: Final = "io.modelcontextprotocol/tasks"


# -- scenarios -------------------------------------------------------------------------------------------


async def discovers_the_extension(visitor: Visitor) -> None:
    """NEG.9"""
    found = await visitor.client.discover()
    assert found["supportedVersions"] == ["2026-07-28"]
    assert TASKS in found["capabilities"]["extensions"]


async def lists_tools(visitor: Visitor) -> None:
    names = {tool["name"] for tool in await visitor.client.list_tools()}
    assert {"greet", "render", "choose", "interview"} <= names


async def calls_a_tool_that_is_never_a_task(visitor: Visitor) -> None:
    """REQ.1"""
    call = await visitor.client.call_tool("greet", {"name": "Žofie"})
    assert call.task_id is None
    assert said(await call.settle(PATIENCE_S)) == "Hello, Žofie!"


async def a_task_completes(visitor: Visitor) -> None:
    """REQ.1, REQ.2: the server's hint is a floor of the time between polls."""
    call = await visitor.client.call_tool("render")
    assert call.task_id is not None
    views = [view async for view in call.updates()]
    assert said(await call.settle(PATIENCE_S)) == "Rendered."
    assert views[0].status is Status.WORKING
    assert views[-1].status is Status.COMPLETED
    assert {view.task_id for view in views} == {call.task_id}
    polls = [entry.at_ms for entry in visitor.sent("tasks/get", taskId=call.task_id)]
    assert polls
    assert all(later - earlier >= 50 for earlier, later in pairwise(polls))


async def a_task_says_how_it_stands(visitor: Visitor) -> None:
    call = await visitor.client.call_tool("idle")
    async for view in call.updates():
        if view.status_message == "Idling":
            break
    assert call.outcome is None
    await call.cancel()


async def a_task_has_structured_content(visitor: Visitor) -> None:
    """REQ.8"""
    outcome = await visitor.outcome("tally")
    assert outcome.result["structuredContent"] == {"frames": 24}


async def a_tool_error_completes_its_task(visitor: Visitor) -> None:
    """REQ.6"""
    assert said(await visitor.outcome("spoil"), is_error=True) == "Burnt."
    assert "by accident" in said(await visitor.outcome("crash"), is_error=True)


async def a_task_fails(visitor: Visitor) -> None:
    """REQ.6"""
    outcome = await visitor.outcome("collapse")
    assert isinstance(outcome, Failed)
    assert (outcome.code, outcome.message, outcome.data) == (-32603, "The roof fell in.", {"floor": 2})


async def a_task_is_cancelled(visitor: Visitor) -> None:
    """REQ.7: without waiting, and with."""
    call = await visitor.client.call_tool("idle")
    assert isinstance(await call.cancel(), Cancelled)
    call = await visitor.client.call_tool("idle")
    assert call.task_id is not None
    assert isinstance(await call.cancel(wait=True, timeout=PATIENCE_S), Cancelled)
    assert (await visitor.client.get_task(call.task_id)).status is Status.CANCELLED


async def somebody_else_cancels_a_task(visitor: Visitor) -> None:
    """REQ.5"""
    call = await visitor.client.call_tool("idle")
    assert call.task_id is not None
    await visitor.client.cancel_task(call.task_id)
    assert isinstance(await call.settle(PATIENCE_S), Cancelled)


async def a_wait_is_abandoned_and_the_task_goes_on(visitor: Visitor) -> None:
    """REQ.7, REQ.6: and is taken up again."""
    call = await visitor.client.call_tool("render")
    saved = call.reference()
    assert saved is not None
    call.abandon()
    assert said(await visitor.client.resume(saved).settle(PATIENCE_S)) == "Rendered."
    assert not visitor.sent("tasks/cancel", taskId=call.task_id)


async def a_task_asks_one_question(visitor: Visitor) -> None:
    """REQ.4"""
    assert await visitor.text("choose") == "To private."
    assert visitor.questions("choose") == ["Where to?"]


async def a_task_asks_two_questions_at_once(visitor: Visitor) -> None:
    """REQ.4"""
    assert await visitor.text("commission") == "private, sure"
    assert sorted(str(message) for message in visitor.questions("commission")) == [
        "Are you sure?",
        "Where to?",
    ]


async def a_task_asks_one_question_after_another(visitor: Visitor) -> None:
    """REQ.4: this server may show the first one still while it makes the second."""
    assert await visitor.text("interview") == "private, sure"
    assert visitor.questions("interview") == ["Where to?", "Are you sure?"]
    keys = [question.key for question in visitor.asked if question.tool == "interview"]
    assert len(set(keys)) == 2


async def a_question_comes_first_and_a_task_then(visitor: Visitor) -> None:
    """REQ.1: a round of input before there is a task."""
    call = await visitor.client.call_tool("book")
    assert call.task_id is not None
    assert said(await call.settle(PATIENCE_S)) == "Booked."
    assert visitor.questions("book") == ["Are you sure?"]
    first, second = visitor.sent("tools/call", name="book")
    assert first.message["id"] != second.message["id"]


async def unknown_tasks_and_methods(visitor: Visitor) -> None:
    """REQ.6: what is not known is expired when watched, and an error when asked for."""
    assert isinstance(await visitor.client.watch("no-such-task").settle(PATIENCE_S), Expired)
    assert (await visitor.refusal("tasks/get", {"taskId": "no-such-task"})).code == -32602
    assert (await visitor.refusal("tasks/list")).code == -32601


SCENARIOS: Final[tuple[Scenario, ...]] = (
    discovers_the_extension,
    lists_tools,
    calls_a_tool_that_is_never_a_task,
    a_task_completes,
    a_task_says_how_it_stands,
    a_task_has_structured_content,
    a_tool_error_completes_its_task,
    a_task_fails,
    a_task_is_cancelled,
    somebody_else_cancels_a_task,
    a_wait_is_abandoned_and_the_task_goes_on,
    a_task_asks_one_question,
    a_task_asks_two_questions_at_once,
    a_task_asks_one_question_after_another,
    a_question_comes_first_and_a_task_then,
    unknown_tasks_and_methods,
)


# -- running them ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with FASTMCP.serving(tmp_path_factory.mktemp("fastmcp") / "server.log") as url:
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
    assert all_on_stdio(loop, FASTMCP, SCENARIOS) == {}


# -- what is only tried over HTTP ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "result"), [(decline(), "Nowhere."), (cancel(), "Nowhere.")], ids=["declined", "put aside"]
)
def test_a_question_is_not_answered_with_yes(loop: str, url: str, answer: Answer, result: str) -> None:
    async def scenario(visitor: Visitor) -> None:
        visitor.answers["Where to?"] = answer
        assert await visitor.text("choose") == result

    over_http(loop, url, scenario)


def test_a_question_before_a_task_is_declined(loop: str, url: str) -> None:
    async def scenario(visitor: Visitor) -> None:
        visitor.answers["Are you sure?"] = decline()
        call = await visitor.client.call_tool("book")
        assert call.task_id is None
        assert said(await call.settle(PATIENCE_S)) == "Not booked."

    over_http(loop, url, scenario)


def test_who_does_not_declare_tasks_gets_none(loop: str, url: str) -> None:
    """NEG.5"""

    async def scenario(visitor: Visitor) -> None:
        assert await visitor.text("render") == "Rendered."
        outcome = await visitor.outcome("idle")
        assert isinstance(outcome, Failed)
        assert outcome.code == -32021
        assert outcome.fault is Fault.CALLER

    over_http(loop, url, scenario, tasks=False)


def test_polls_where_nobody_listens(loop: str, url: str) -> None:
    """SUB, REQ.2: this server has no listen streams; told so once, the client does not ask again."""

    async def scenario(visitor: Visitor) -> None:
        for _ in range(2):
            assert await visitor.text("choose") == "To private."
            assert await visitor.text("render") == "Rendered."
        assert len(visitor.sent("subscriptions/listen")) == 1

    over_http(loop, url, scenario)


def test_fifty_tasks_at_once(loop: str, url: str) -> None:
    """REQ.2, REQ.4: each on its own schedule, each with its own question."""

    async def scenario(visitor: Visitor) -> None:
        calls = [await visitor.client.call_tool("choose") for _ in range(50)]
        for call in calls:
            assert said(await call.settle(PATIENCE_S)) == "To private."
        assert len({call.task_id for call in calls}) == 50
        assert len({question.key for question in visitor.asked}) == len(visitor.asked) == 50

    over_http(loop, url, scenario)


def test_goes_on_after_its_process_was_killed(loop: str, url: str, tmp_path: Path) -> None:
    """REQ.4, REQ.6: what was answered is not asked again; what was on show is."""
    file = tmp_path / "reference.json"
    command = [sys.executable, "-m", "tests.interop.leaving_client", loop, url, "interview", str(file)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        process.kill()
    assert line == "asked again\n"

    async def scenario(visitor: Visitor) -> None:
        call = visitor.client.resume(load_reference(file))
        assert said(await call.settle(PATIENCE_S)) == f"{ANSWER['channel']}, sure"
        assert [(question.message, question.again) for question in visitor.asked] == [("Are you sure?", True)]

    over_http(loop, url, scenario)
