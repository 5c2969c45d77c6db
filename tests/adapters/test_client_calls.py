"""Clients of our own server, over HTTP on both loops: calls, tasks, waiting, single requests (REQ)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from mcp_tasks_adapters.client import (
    Cancelled,
    Completed,
    Failed,
    Fault,
    InputRequest,
    NoResultError,
    ObservationLost,
    TraceEntry,
)

from tests.adapters.client_farm import Farm, with_farm
from tests.adapters.client_harness import LOOPS, PATIENCE_SECONDS, QUICK, failure, texts


@pytest.fixture(params=LOOPS)
def loop(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


# -- calls ---------------------------------------------------------------------------------------------------


def test_a_plain_call_is_over_when_it_returns(loop: str) -> None:
    async def scenario(on: Any, farm: Farm, url: str) -> None:
        async with on.connect(url) as client:
            call = await client.call_tool("add", {"a": 1, "b": 2})
            assert call.outcome == await call.settle()
            assert call.outcome.result["structuredContent"] == {"sum": 3}
            assert (call.tool, call.view, call.reference(), call.task_id) == ("add", None, None, None)
            assert [view async for view in call.updates()] == []

    with_farm(loop, scenario)


def test_failures_are_outcomes(loop: str) -> None:
    """REQ.6: a tool's own error is a result; everything else says whose fault it is."""

    async def scenario(on: Any, farm: Farm, url: str) -> None:
        async with on.connect(url) as client:
            outcome = await (await client.call_tool("fail")).settle()
            assert isinstance(outcome, Completed)
            assert outcome.result["isError"] is True
            broken = await (await client.call_tool("break_down")).settle()
            assert broken == Failed(code=-31_000, message="broken", data={"node": 7}, fault=Fault.SERVER)
            unknown = await (await client.call_tool("nowhere")).settle()
            assert (unknown.code, unknown.fault) == (-32602, Fault.CALLER)

    with_farm(loop, scenario)


def test_arguments_that_are_not_json_are_refused_at_once(loop: str) -> None:
    async def scenario(on: Any, farm: Farm, url: str) -> None:
        async with on.connect(url) as client:
            with pytest.raises(ValueError, match="not JSON"):
                await client.call_tool("add", {"a": object()})
            with pytest.raises(ValueError, match="call_tool"):
                await client.request("tools/call", {"name": "add"})

    with_farm(loop, scenario)


def test_a_task_is_watched_to_its_end(loop: str) -> None:
    async def scenario(on: Any, farm: Farm, url: str) -> None:
        async with on.connect(url, requester_limits=QUICK) as client:
            call = await client.call_tool("work")
            assert call.outcome is None
            assert call.task_id == call.reference()["taskId"]
            statuses = []
            async for view in call.updates():
                statuses.append(view.status.value)
                if view.status_message == "at it":
                    farm.release.set()
            assert statuses[0] == "working"
            assert statuses[-1] == "completed"
            outcome = await call.settle()
            assert texts(outcome.result) == ["worked"]
            assert call.view.status.value == "completed"
            # Who comes later gets the last view all the same.
            assert [view.status.value async for view in call.updates()] == ["completed"]

    with_farm(loop, scenario)


def test_without_listening_a_task_is_polled(loop: str) -> None:
    async def scenario(on: Any, farm: Farm, url: str) -> None:
        entries: list[TraceEntry] = []
        async with on.connect(url, listen=False, requester_limits=QUICK, on_trace=entries.append) as client:
            call = await client.call_tool("work")
            while call.next_poll_ms is None:  # while a poll is under way
                await on.sleep(0)
            farm.release.set()
            assert texts((await call.settle()).result) == ["worked"]
            assert call.next_poll_ms is None
        methods = {entry.message["method"] for entry in entries if entry.event == "sent"}
        assert methods == {"tools/list", "tools/call", "tasks/get"}

    with_farm(loop, scenario)


def test_without_tasks_the_server_makes_none(loop: str) -> None:
    """NEG.5, seen from the other side."""

    async def scenario(on: Any, farm: Farm, url: str) -> None:
        async with on.connect(url, tasks=False) as client:
            assert texts((await (await client.call_tool("work")).settle()).result) == ["at once"]
            outcome = await (await client.call_tool("ask")).settle()
            assert (outcome.code, outcome.http_status, outcome.fault) == (-32021, 400, Fault.CALLER)

    with_farm(loop, scenario)


def test_many_calls_at_once(loop: str) -> None:
    async def scenario(on: Any, farm: Farm, url: str) -> None:
        async with on.connect(url, requester_limits=QUICK) as client:
            calls = [await client.call_tool("work") for _ in range(50)]
            sums = [await client.call_tool("add", {"a": n, "b": n}) for n in range(50)]
            farm.release.set()
            assert [one.outcome.result["structuredContent"]["sum"] for one in sums] == list(range(0, 100, 2))
            assert all([isinstance(await call.settle(), Completed) for call in calls])

    with_farm(loop, scenario)


def test_progress_is_passed_on(loop: str) -> None:
    async def scenario(on: Any, farm: Farm, url: str) -> None:
        said: list[tuple[str, Mapping[str, Any]]] = []

        def listen(method: str, params: Mapping[str, Any]) -> None:
            said.append((method, params))
            farm.release.set()

        async with on.connect(url) as client:
            call = await client.call_tool("wait", on_notification=listen)
            assert texts(call.outcome.result) == ["waited"]
            [(method, params)] = said
            assert method == "notifications/progress"
            assert (params["progress"], params["message"]) == (1, "half")

    with_farm(loop, scenario)


def test_no_two_calls_share_a_progress_token_whoever_makes_them(loop: str) -> None:
    """Processes may be in one session of 2025-11-25, where it must be unique while its task is active."""

    async def scenario(on: Any, farm: Farm, url: str) -> None:
        tokens: list[Any] = []

        def note(entry: TraceEntry) -> None:
            if entry.event == "sent" and entry.message["method"] == "tools/call":
                tokens.append(entry.message["params"]["_meta"]["progressToken"])

        for _ in range(2):
            async with on.connect(url, on_trace=note) as client:
                for number in range(2):
                    await client.call_tool("add", {"a": number, "b": 1}, on_notification=lambda *_: None)
        assert len(set(tokens)) == len(tokens) == 4

    with_farm(loop, scenario)


# -- waiting -------------------------------------------------------------------------------------------------


def test_a_wait_that_takes_too_long_changes_nothing(loop: str) -> None:
    """REQ.7: an abandoned wait does not cancel the task."""

    async def scenario(on: Any, farm: Farm, url: str) -> None:
        async with on.connect(url, requester_limits=QUICK) as client:
            call = await client.call_tool("work")
            with pytest.raises(TimeoutError):
                await call.settle(timeout=0.01)
            assert call.outcome is None
            farm.release.set()
            assert isinstance(await call.settle(timeout=PATIENCE_SECONDS), Completed)

    with_farm(loop, scenario)


def test_a_wait_that_is_cancelled_changes_nothing(loop: str) -> None:
    async def scenario(on: Any, farm: Farm, url: str) -> None:
        async with on.connect(url, requester_limits=QUICK) as client:
            call = await client.call_tool("work")
            waiting = on.event()

            async def wait() -> None:
                waiting.set()
                await call.settle()

            job = on.spawn(wait)
            await waiting.wait()
            job.cancel()
            await on.sleep(0)
            farm.release.set()
            assert isinstance(await call.settle(), Completed)

    with_farm(loop, scenario)


def test_after_its_deadline_a_call_is_lost_and_its_task_goes_on(loop: str) -> None:
    """REQ.3."""

    async def scenario(on: Any, farm: Farm, url: str) -> None:
        async with on.connect(url, requester_limits=QUICK) as client:
            call = await client.call_tool("work", timeout=0.3)
            outcome = await call.settle()
            assert isinstance(outcome, ObservationLost)
            assert outcome.view is not None
            assert (await client.get_task(call.task_id)).status.value == "working"

    with_farm(loop, scenario)


def test_an_abandoned_call_leaves_its_task_alone(loop: str) -> None:
    """REQ.7."""

    async def scenario(on: Any, farm: Farm, url: str) -> None:
        async with on.connect(url, requester_limits=QUICK) as client:
            call = await client.call_tool("work")
            call.abandon()
            call.abandon()
            assert isinstance(await call.settle(), ObservationLost)
            again = client.resume(call.reference())
            farm.release.set()
            assert isinstance(await again.settle(), Completed)

    with_farm(loop, scenario)


# -- cancelling ----------------------------------------------------------------------------------------------


def test_cancelling_without_waiting_is_over_at_once_and_reaches_the_server(loop: str) -> None:
    """REQ.7, also when the client is closed right away."""

    async def scenario(on: Any, farm: Farm, url: str) -> None:
        async with on.connect(url, requester_limits=QUICK) as client:
            call = await client.call_tool("work")
            await farm.started.wait()
            assert isinstance(await call.cancel(), Cancelled)
        await farm.stopped.wait()

    with_farm(loop, scenario)


def test_cancelling_and_waiting_tells_how_it_ended(loop: str) -> None:
    async def scenario(on: Any, farm: Farm, url: str) -> None:
        async with on.connect(url, requester_limits=QUICK) as client:
            call = await client.call_tool("work")
            await farm.started.wait()
            outcome = await call.cancel(wait=True, timeout=PATIENCE_SECONDS)
            assert isinstance(outcome, Cancelled)
            assert outcome.view is not None
            assert outcome.view.status.value == "cancelled"
            assert await call.cancel() == outcome

    with_farm(loop, scenario)


def test_a_call_that_is_cancelled_before_its_answer_is_cancelled_at_the_server(loop: str) -> None:
    """CAN.7, HTTP.4: closing the stream cancels the request."""

    async def scenario(on: Any, farm: Farm, url: str) -> None:
        async with on.connect(url) as client:

            async def call() -> None:
                await client.call_tool("wait")

            job = on.spawn(call)
            await farm.started.wait()
            job.cancel()
            await farm.stopped.wait()
            assert (await client.discover())["supportedVersions"]

    with_farm(loop, scenario)


def test_leaving_the_block_closes_what_is_open_and_leaves_tasks_alone(loop: str) -> None:
    async def scenario(on: Any, farm: Farm, url: str) -> None:
        async with on.connect(url, requester_limits=QUICK) as client:
            call = await client.call_tool("work")
        assert isinstance(await call.settle(), ObservationLost)
        with pytest.raises(RuntimeError, match="closed"):
            await client.discover()
        async with on.connect(url, requester_limits=QUICK) as client:
            farm.release.set()
            assert isinstance(await client.resume(call.reference()).settle(), Completed)

    with_farm(loop, scenario)


def test_exceptions_leave_the_block_as_they_are(loop: str) -> None:
    async def scenario(on: Any, farm: Farm, url: str) -> None:
        async def fail() -> None:
            async with on.connect(url, requester_limits=QUICK) as client:
                await client.call_tool("work")
                raise LookupError("mine")

        with pytest.raises(LookupError, match="mine"):
            await fail()

    with_farm(loop, scenario)


# -- single requests -----------------------------------------------------------------------------------------


def test_tasks_by_their_ids(loop: str) -> None:
    async def scenario(on: Any, farm: Farm, url: str) -> None:
        silent = on.event()

        async def never(request: InputRequest) -> Any:
            await silent.wait()

        async with on.connect(url, answer=never, requester_limits=QUICK) as maker:
            call = await maker.call_tool("ask")
            async for view in call.updates():
                if view.input_requests:
                    break
            async with on.connect(url, requester_limits=QUICK) as client:
                view = await client.get_task(call.task_id)
                assert view.status.value == "input_required"
                # Whoever only watches answers nothing, not even with cancel.
                watched = client.watch(call.task_id)
                seen = [view.status.value async for view in _first(watched.updates())]
                assert seen == ["input_required"]
                await client.update_task(
                    call.task_id, {"who": {"action": "accept", "content": {"name": "by hand"}}}
                )
                outcome = await watched.settle()
                assert "by hand" in texts(outcome.result)[0]
                await client.cancel_task(call.task_id)
                with pytest.raises(NoResultError) as caught:
                    await client.get_task("no-such-task-anywhere")
                failed = failure(caught.value.outcome)
                assert (failed.code, failed.fault) == (-32602, Fault.CALLER)
                assert str(caught.value) == "Task not found"

    with_farm(loop, scenario)


async def _first(views: Any) -> Any:
    async for view in views:
        yield view
        return


def test_discovery_and_tools(loop: str) -> None:
    async def scenario(on: Any, farm: Farm, url: str) -> None:
        async with on.connect(url) as client:
            assert client.endpoint == url
            discovered = await client.discover()
            assert "io.modelcontextprotocol/tasks" in discovered["capabilities"]["extensions"]
            names = [tool["name"] for tool in await client.list_tools()]
            assert names == list(farm.server.tools)
            with pytest.raises(NoResultError, match="Method not found"):
                await client.request("prompts/list")

    with_farm(loop, scenario)


def test_the_trace_tells_what_was_said(loop: str) -> None:
    async def scenario(on: Any, farm: Farm, url: str) -> None:
        entries: list[TraceEntry] = []

        def trace(entry: TraceEntry) -> None:
            entries.append(entry)
            raise LookupError("a bug in a trace changes nothing")

        async with on.connect(url, on_trace=trace, headers={"Authorization": "Bearer secret"}) as client:
            await client.call_tool("add", {"a": 1, "b": 1})
        told = [entry.to_json() for entry in entries]
        assert [one["event"] for one in told] == ["sent", "received", "sent", "received"]
        assert [one["request"] for one in told] == [1, 1, 2, 2]
        assert told[2]["message"]["method"] == "tools/call"
        assert told[3]["message"]["result"]["structuredContent"] == {"sum": 2}
        assert told[3]["httpStatus"] == 200
        assert "secret" not in str(told)

    with_farm(loop, scenario)
