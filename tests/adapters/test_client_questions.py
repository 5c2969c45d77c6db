"""Questions and references, with our own server over HTTP on both loops (REQ.4, REQ.6)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from mcp_tasks_adapters.client import (
    AnswerError,
    Cancelled,
    Completed,
    Expired,
    Failed,
    Fault,
    InputRequest,
    TraceEntry,
    accept,
    cancel,
    decline,
    load_reference,
    save_reference,
)

from tests.adapters.client_farm import NAME_FORM, Farm, with_farm
from tests.adapters.client_harness import LOOPS, QUICK, texts


@pytest.fixture(params=LOOPS)
def loop(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


# -- questions -----------------------------------------------------------------------------------------------


def test_a_question_is_answered(loop: str) -> None:
    """REQ.4."""

    async def scenario(on: Any, farm: Farm, url: str) -> None:
        asked: list[InputRequest] = []

        async def answer(request: InputRequest) -> Any:
            asked.append(request)
            await on.sleep(0)
            return accept({"name": "Ada"})

        async with on.connect(url, answer=answer, requester_limits=QUICK) as client:
            outcome = await (await client.call_tool("ask")).settle()
            assert texts(outcome.result) == [str({"action": "accept", "content": {"name": "Ada"}})]
        [request] = asked
        assert (request.key, request.message, request.schema) == ("who", "Who?", NAME_FORM)
        assert (request.tool, request.endpoint, request.url, request.again) == ("ask", url, None, False)
        assert request.method == "elicitation/create"
        assert request.problem(accept({"name": 7})) is not None
        assert request.problem({"action": "decline"}) is None

    with_farm(loop, scenario)


@pytest.mark.parametrize("given", [decline(), cancel(), {"action": "decline"}])
def test_no_is_an_answer(loop: str, given: Any) -> None:
    async def scenario(on: Any, farm: Farm, url: str) -> None:
        async with on.connect(url, answer=lambda _: given, requester_limits=QUICK) as client:
            outcome = await (await client.call_tool("ask")).settle()
            assert texts(outcome.result) == [str(dict(getattr(given, "response", given)))]

    with_farm(loop, scenario)


def test_several_questions_and_a_url(loop: str) -> None:
    """INP.3."""

    async def scenario(on: Any, farm: Farm, url: str) -> None:
        both = on.event()
        shown = 0

        async def answer(request: InputRequest) -> Any:
            nonlocal shown
            if request.url is not None:
                assert request.schema is None
                assert request.url == "https://x.example/"
                return accept()
            shown += 1
            if shown == 2:
                both.set()
            await both.wait()
            return accept({"name": request.key})

        async with on.connect(url, answer=answer, requester_limits=QUICK) as client:
            outcome = await (await client.call_tool("ask_much")).settle()
            assert texts(outcome.result) == [
                str({"action": "accept", "content": {"name": "a"}}),
                str({"action": "accept", "content": {"name": "b"}}),
                str({"action": "accept"}),
            ]

    with_farm(loop, scenario)


def test_a_question_before_there_is_a_task(loop: str) -> None:
    """REQ.1: a round of input, within call_tool."""

    async def scenario(on: Any, farm: Farm, url: str) -> None:
        async with on.connect(url, answer=lambda _: accept({"name": "Ada"})) as client:
            call = await client.call_tool("ask_first")
            assert texts(call.outcome.result) == [str({"action": "accept", "content": {"name": "Ada"}})]

    with_farm(loop, scenario)


def test_without_an_answer_function_no_question_is_invited(loop: str) -> None:
    """INP.2, NEG.10."""

    async def scenario(on: Any, farm: Farm, url: str) -> None:
        async with on.connect(url, requester_limits=QUICK) as client:
            outcome = await (await client.call_tool("ask_first")).settle()
            assert (outcome.code, outcome.data) == (
                -32021,
                {"requiredCapabilities": {"elicitation": {"form": {}}}},
            )

    with_farm(loop, scenario)


def test_capabilities_can_promise_less_but_not_without_an_answer(loop: str) -> None:
    async def scenario(on: Any, farm: Farm, url: str) -> None:
        form_only: dict[str, Any] = {"elicitation": {"form": {}}}
        async with on.connect(
            url, answer=lambda _: accept({"name": "x"}), capabilities=form_only, requester_limits=QUICK
        ) as client:
            outcome = await (await client.call_tool("ask_much")).settle()
            assert outcome.result["isError"] is True  # its author asked for what was not declared
        with pytest.raises(ValueError, match="answer="):
            async with on.connect(url, capabilities=form_only):
                pass

    with_farm(loop, scenario)


def test_a_question_is_withdrawn_when_its_call_is_cancelled(loop: str) -> None:
    """REQ.4, trap 20."""

    async def scenario(on: Any, farm: Farm, url: str) -> None:
        shown, withdrawn = on.event(), on.event()

        async def answer(request: InputRequest) -> Any:
            shown.set()
            try:
                await on.event().wait()
            except on.cancelled():
                withdrawn.set()
                raise

        async with on.connect(url, answer=answer, requester_limits=QUICK) as client:
            call = await client.call_tool("ask")
            await shown.wait()
            assert isinstance(await call.cancel(), Cancelled)
            await withdrawn.wait()

    with_farm(loop, scenario)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (accept({"name": 7}), "name"),
        (accept(), "name"),
        ({"action": "maybe"}, "action"),
        (accept({"name": "x", "more": object()}), "who"),
        (None, "not None"),
        ("accept", "not 'accept'"),
    ],
)
def test_what_is_no_answer_is_not_sent(loop: str, given: Any, says: str) -> None:
    """Whoever waits is told; the question stays open, for another process to answer."""

    async def scenario(on: Any, farm: Farm, url: str) -> None:
        async with on.connect(url, answer=lambda _: given, requester_limits=QUICK) as client:
            call = await client.call_tool("ask")
            with pytest.raises(AnswerError, match=says):
                await call.settle()
            with pytest.raises(AnswerError):
                [view async for view in call.updates()]
            view = await client.get_task(call.task_id)
            assert list(view.input_requests) == ["who"]
        asked: list[InputRequest] = []

        def answer(request: InputRequest) -> Any:
            asked.append(request)
            return accept({"name": "Ada"})

        async with on.connect(url, answer=answer, requester_limits=QUICK) as client:
            assert isinstance(await client.resume(call.reference()).settle(), Completed)
        assert [request.again for request in asked] == [True]

    with_farm(loop, scenario)


def test_what_an_answer_function_raises_is_raised_to_whoever_waits(loop: str) -> None:
    async def scenario(on: Any, farm: Farm, url: str) -> None:
        async def answer(request: InputRequest) -> Any:
            raise LookupError("no one here")

        async with on.connect(url, answer=answer, requester_limits=QUICK) as client:
            call = await client.call_tool("ask")
            with pytest.raises(LookupError, match="no one here"):
                await call.settle()
            with pytest.raises(LookupError):
                await client.call_tool("ask_first")

    with_farm(loop, scenario)


# -- references ----------------------------------------------------------------------------------------------


def test_a_new_process_goes_on_and_asks_nothing_twice(loop: str, tmp_path: Path) -> None:
    """REQ.4, REQ.6."""
    file = tmp_path / "task.json"

    async def scenario(on: Any, farm: Farm, url: str) -> None:
        answered = on.event()

        async def answer_one(request: InputRequest) -> Any:
            if request.key != "a":
                await on.event().wait()
            answered.set()
            return accept({"name": "first process"})

        def save(reference: dict[str, Any]) -> None:
            save_reference(file, reference)

        async with on.connect(url, answer=answer_one, requester_limits=QUICK) as client:
            call = await client.call_tool("ask_much", on_reference=save)
            assert load_reference(file)["taskId"] == call.task_id
            await answered.wait()
            while load_reference(file)["keys"]["a"]["state"] == "shown":
                await on.sleep(0)
        asked: list[str] = []

        def answer_the_rest(request: InputRequest) -> Any:
            asked.append(request.key)
            return accept() if request.url else accept({"name": "second process"})

        async with on.connect(url, answer=answer_the_rest, requester_limits=QUICK) as client:
            again = client.resume(load_reference(file), on_reference=save)
            outcome = await again.settle()
            assert "first process" in texts(outcome.result)[0]
            assert "second process" in texts(outcome.result)[1]
        assert asked == ["b", "url"]

    with_farm(loop, scenario)


def test_a_task_that_is_gone_is_expired(loop: str) -> None:
    """REQ.6."""

    async def scenario(on: Any, farm: Farm, url: str) -> None:
        async with on.connect(url, requester_limits=QUICK) as client:
            call = client.watch("no-such-task-anywhere-at-all")
            assert isinstance(await call.settle(), Expired)

    with_farm(loop, scenario)


@pytest.mark.parametrize("reference", [None, {}, {"schema": 99}, "x"])
def test_what_is_no_reference_fails(loop: str, reference: Any) -> None:
    async def scenario(on: Any, farm: Farm, url: str) -> None:
        async with on.connect(url) as client:
            outcome = await client.resume(reference).settle()
            assert isinstance(outcome, Failed)
            assert outcome.fault is Fault.CALLER

    with_farm(loop, scenario)


def test_a_reference_is_not_sent_to_another_server(loop: str) -> None:
    async def scenario(on: Any, farm: Farm, url: str) -> None:
        entries: list[TraceEntry] = []
        async with on.connect(url, on_trace=entries.append) as client:
            call = client.watch("x")
            elsewhere = {**call.reference(), "endpoint": "http://elsewhere.example/mcp"}
            call.abandon()
            entries.clear()
            outcome = await client.resume(elsewhere).settle()
            assert (type(outcome), outcome.fault) == (Failed, Fault.CALLER)
        assert not entries

    with_farm(loop, scenario)


def test_a_reference_that_cannot_be_saved_ends_the_watch(loop: str) -> None:
    async def scenario(on: Any, farm: Farm, url: str) -> None:
        def save(reference: dict[str, Any]) -> None:
            raise PermissionError("read-only")

        async with on.connect(url, requester_limits=QUICK) as client:
            with pytest.raises(PermissionError):
                await client.call_tool("work", on_reference=save)

    with_farm(loop, scenario)
