"""A client of ours on a visit to a server that others wrote: scenarios, and the ways to run them.

A scenario is an async function that gets a :class:`Visitor`.
"""

from __future__ import annotations

import subprocess
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, Final

import pytest
from attrs import define, field
from mcp_tasks_adapters.client import (
    Answer,
    Client,
    Completed,
    Failed,
    InputRequest,
    NoResultError,
    TraceEntry,
    accept,
)

from tests.adapters.client_harness import On, run
from tests.interop.servers import ROOT, Elsewhere

__all__ = ["PATIENCE_S", "Scenario", "Visitor", "all_on_stdio", "over_http", "said"]

PATIENCE_S: Final = 120.0


def _answers() -> dict[str, Answer]:
    return {"Where to?": accept({"channel": "private"}), "Are you sure?": accept({"sure": True})}


@define(eq=False)
class Visitor:
    """A client, who answers the server's questions for it, and what went over the wire."""

    on: On
    answers: dict[str, Answer] = field(factory=_answers)
    """By what is asked."""
    asked: list[InputRequest] = field(factory=list)
    trace: list[TraceEntry] = field(factory=list)
    client: Client = field(init=False)

    async def answer(self, question: InputRequest) -> Answer:
        """Answer by what is asked."""
        self.asked.append(question)
        assert question.message is not None
        return self.answers[question.message]

    def questions(self, tool: str) -> list[str | None]:
        """Return what a tool has asked."""
        return [question.message for question in self.asked if question.tool == tool]

    def sent(self, method: str, **params: Any) -> list[TraceEntry]:
        """Return the requests that were sent by this method, with these params among others."""
        return [
            entry
            for entry in self.trace
            if entry.event == "sent"
            and entry.message is not None
            and entry.message.get("method") == method
            and params.items() <= entry.message["params"].items()
        ]

    async def outcome(self, tool: str, arguments: dict[str, Any] | None = None) -> Any:
        """Call a tool and return how it ended."""
        return await (await self.client.call_tool(tool, arguments)).settle(PATIENCE_S)

    async def text(self, tool: str, arguments: dict[str, Any] | None = None) -> str:
        """Call a tool and return what it says."""
        return said(await self.outcome(tool, arguments))

    async def refusal(self, method: str, params: dict[str, Any] | None = None) -> Failed:
        """Ask for what the server does not have; return what it says."""
        with pytest.raises(NoResultError) as raised:
            await self.client.request(method, params)
        assert isinstance(raised.value.outcome, Failed)
        return raised.value.outcome


def said(outcome: Any, *, is_error: bool = False) -> str:
    """Return the text of a result."""
    assert isinstance(outcome, Completed), outcome
    assert outcome.result["isError"] is is_error
    [block] = outcome.result["content"]
    text: str = block["text"]
    return text


Scenario = Callable[[Visitor], Awaitable[None]]


def over_http(
    loop: str, url: str, scenario: Scenario, *, visitor_class: type[Visitor] = Visitor, **options: Any
) -> None:
    """Run a scenario, with a client of its own."""

    async def visit(on: On) -> None:
        visitor = visitor_class(on)
        options_now = {"answer": visitor.answer, "on_trace": visitor.trace.append, **options}
        async with on.connect(url, **options_now) as visitor.client:
            await scenario(visitor)

    run(loop, visit)


def all_on_stdio(
    loop: str,
    server: Elsewhere,
    scenarios: Sequence[Scenario],
    *,
    visitor_class: type[Visitor] = Visitor,
    **options: Any,
) -> dict[str, Exception]:
    """Run scenarios, all at once, with one client of one process; return what went wrong, by name."""
    failed: dict[str, Exception] = {}
    left = {scenario.__name__ for scenario in scenarios}
    command = server.command("stdio")

    async def visit(on: On) -> None:
        visitor, done = visitor_class(on), on.event()

        async def tried(scenario: Scenario) -> None:
            try:
                await scenario(visitor)
            except Exception as error:
                failed[scenario.__name__] = error
            left.remove(scenario.__name__)
            if not left:
                done.set()

        async with on.connect_stdio(
            command,
            answer=visitor.answer,
            on_trace=visitor.trace.append,
            cwd=ROOT,
            stderr=subprocess.DEVNULL,
            **options,
        ) as visitor.client:
            for scenario in scenarios:
                on.spawn(partial(tried, scenario))
            await done.wait()

    run(loop, visit)
    return failed
