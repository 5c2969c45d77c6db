"""The client's driver when something on this side goes wrong: nobody waits in vain, and nothing is left."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from mcp_tasks_adapters.client import (
    AnswerError,
    Cancelled,
    Failed,
    Fault,
    NoResultError,
    ObservationLost,
    RequesterLimits,
    accept,
)

from tests.adapters.client_farm import Farm, with_farm
from tests.adapters.client_harness import (
    DONE,
    LOOPS,
    QUICK,
    Reply,
    against,
    answers,
    handle,
    no_tools,
    run,
    scripted,
    task,
)

LONE_SURROGATE = "\ud800"


@pytest.fixture(params=LOOPS)
def loop(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


class BrokenEngine:
    def handle(self, fact: Any, *, now: int) -> Any:
        raise LookupError("a bug")


def test_an_error_of_the_engine_ends_every_call(loop: str) -> None:
    async def scenario(on: Any, farm: Farm, url: str) -> None:
        async with on.connect(url, requester_limits=QUICK) as client:
            call = await client.call_tool("work")
            client._driver._feeder.engine = BrokenEngine()
            call.abandon()
            assert isinstance(await call.settle(), ObservationLost)
            with pytest.raises(NoResultError, match="within this client"):
                await client.discover()

    with_farm(loop, scenario)


@pytest.mark.parametrize("arguments", [{"a": LONE_SURROGATE}, {"a": float("nan")}, {7: 7}, {"a": {1, 2}}])
def test_what_is_not_json_is_refused_before_it_is_sent(loop: str, arguments: Any) -> None:
    async def scenario(on: Any, client: Any) -> None:
        with pytest.raises(ValueError, match="not JSON"):
            await client.call_tool("t", arguments)
        with pytest.raises(ValueError, match="not JSON"):
            await client.call_tool("t", meta=arguments)
        with pytest.raises(ValueError, match="not JSON"):
            await client.update_task("x", arguments)

    server = scripted()
    against(loop, server, scenario)
    assert not server.asked


def test_names_that_no_message_can_carry_are_refused(loop: str) -> None:
    async def scenario(on: Any, client: Any) -> None:
        for method in (client.call_tool, client.request, client.get_task):
            with pytest.raises(ValueError, match="surrogate"):
                await method(LONE_SURROGATE)
        with pytest.raises(ValueError, match="surrogate"):
            client.watch(LONE_SURROGATE)
        with pytest.raises(TypeError):
            await client.call_tool(7)

    server = scripted()
    against(loop, server, scenario)
    assert not server.asked


def test_a_method_that_no_header_can_carry_is_the_callers_fault(loop: str) -> None:
    async def scenario(on: Any, client: Any) -> None:
        with pytest.raises(NoResultError) as caught:
            await client.request("a\nb")
        assert isinstance(caught.value.outcome, Failed)
        assert caught.value.outcome.fault is Fault.CALLER

    against(loop, scripted(), scenario)


def test_a_reference_with_what_no_message_can_carry(loop: str, tmp_path: Path) -> None:
    """From a file, say, that somebody has changed."""

    async def main(on: Any) -> None:
        async with on.connect_stdio([sys.executable, "-c", "input()"], requester_limits=QUICK) as client:
            watched = client.watch("x")
            outcome = client.resume({**watched.reference(), "taskId": LONE_SURROGATE}, timeout=0.05)
            assert isinstance(await outcome.settle(), ObservationLost)

    run(loop, main)


def test_too_many_calls(loop: str) -> None:
    """LIM.3."""

    async def scenario(on: Any, farm: Farm, url: str) -> None:
        async with on.connect(url, requester_limits=RequesterLimits(calls=2)) as client:
            calls = [await client.call_tool("work") for _ in range(3)]
            assert [type(call.outcome) for call in calls] == [type(None), type(None), Failed]

    with_farm(loop, scenario)


def test_functions_of_the_caller_that_raise_end_their_call_alone(loop: str) -> None:
    async def scenario(on: Any, farm: Farm, url: str) -> None:
        def listen(method: str, params: Any) -> None:
            raise LookupError("mine")

        async with on.connect(url, requester_limits=QUICK) as client:
            other = await client.call_tool("work")
            with pytest.raises(LookupError, match="mine"):
                await client.call_tool("wait", on_notification=listen)
            await farm.stopped.wait()
            assert other.outcome is None

    with_farm(loop, scenario)


def test_an_answer_function_that_raises_in_its_cancellation_harms_nobody(loop: str) -> None:
    async def scenario(on: Any, farm: Farm, url: str) -> None:
        shown, over = on.event(), on.event()

        async def answer(request: Any) -> Any:
            shown.set()
            try:
                await on.event().wait()
            finally:
                over.set()
                raise LookupError("while cleaning up")

        async with on.connect(url, answer=answer, requester_limits=QUICK) as client:
            call = await client.call_tool("ask")
            await shown.wait()
            assert isinstance(await call.cancel(), Cancelled)
            await over.wait()
            assert (await client.discover())["supportedVersions"]

    with_farm(loop, scenario)


def test_an_answer_function_with_a_nursery_or_task_group_of_its_own(loop: str) -> None:
    """Its cancellation comes in a group, beside an error perhaps."""

    async def scenario(on: Any, farm: Farm, url: str) -> None:
        shown, over = on.event(), on.event()

        async def fail_at_the_end() -> None:
            try:
                await on.event().wait()
            finally:
                raise LookupError("beside the cancellation")

        async def answer(request: Any) -> Any:
            shown.set()
            try:
                if loop == "trio":
                    import trio

                    async with trio.open_nursery() as nursery:
                        nursery.start_soon(fail_at_the_end)
                        nursery.start_soon(trio.sleep_forever)
                else:
                    import asyncio

                    async with asyncio.TaskGroup() as group:
                        group.create_task(fail_at_the_end())
            finally:
                over.set()

        async with on.connect(url, answer=answer, requester_limits=QUICK) as client:
            call = await client.call_tool("ask")
            await shown.wait()
            await on.sleep(0.01)
            assert isinstance(await call.cancel(), Cancelled)
            await over.wait()
            assert (await client.discover())["supportedVersions"]

    with_farm(loop, scenario)


def test_a_late_answer_is_nobodys(loop: str) -> None:
    """The question was withdrawn, but its function did not care."""
    question = {"method": "elicitation/create", "params": {"message": "?", "requestedSchema": {}}}
    question["params"]["requestedSchema"] = {"type": "object", "properties": {}}  # type: ignore[index]
    asking = task("input_required", inputRequests={"k": question})
    server = scripted(tools_call=handle, tasks_get=answers(asking), tasks_cancel=answers({}))

    async def scenario(on: Any, client: Any) -> None:
        call = await client.call_tool("t")
        await shown[0].wait()
        await call.cancel()
        await on.sleep(0.05)
        assert isinstance(call.outcome, Cancelled)

    shown: list[Any] = []

    async def main(on: Any) -> None:
        shown.append(on.event())

        async def answer(request: Any) -> Any:
            shown[0].set()
            try:
                await on.event().wait()
            except on.cancelled():
                return accept()

        async with on.connect(server.url, answer=answer, requester_limits=QUICK) as client:
            await scenario(on, client)

    with server:
        run(loop, main)
    assert server.count("tasks/update") == 0
    assert server.count("tasks/cancel") == 1


def test_cancellations_that_do_not_get_through_do_not_keep_a_client_open_for_ever(
    loop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcp_tasks_adapters.client.driver.CLOSING_SECONDS", 0.1)
    server = scripted(tools_call=handle, tasks_cancel=Reply.hang, tasks_get=answers(task()))

    async def scenario(on: Any, client: Any) -> None:
        call = await client.call_tool("t")
        await call.cancel()

    against(loop, server, scenario)
    assert server.count("tasks/cancel") == 1


def test_calls_are_forgotten_when_they_are_over(loop: str) -> None:
    async def scenario(on: Any, client: Any) -> None:
        for _ in range(20):
            await client.call_tool("t")
        driver = client._driver
        left = [driver._calls, driver._in_flight, driver._questions, driver._transport._orders]
        assert not any(left)

    against(loop, scripted(tools_list=no_tools, tools_call=answers(DONE)), scenario)


def test_an_exception_says_what_is_wrong() -> None:
    assert issubclass(AnswerError, Exception)
    assert str(NoResultError(Cancelled())) == "cancelled"
    assert str(NoResultError(ObservationLost(reason="gone"))) == "gone"
