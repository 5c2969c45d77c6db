"""A dashboard whose store, people or engine fail: whoever asks is told that, and no more (SEC.2)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from attrs import define, field
from mcp_tasks_adapters import RequestFacts
from mcp_tasks_adapters.asyncio_h11.loop import AsyncioLoop
from mcp_tasks_adapters.dashboard import Dashboard
from mcp_tasks_adapters.proxy import Caller, HttpUpstream, MemoryProxyStore, Proxy
from mcp_tasks_adapters.proxy.storing import (
    AssignTask,
    EntriesRead,
    ProxyStoreEffect,
    ProxyStoreFact,
    ReadEntries,
    ReadEntry,
    failed,
)

from mcp_tasks_proto.errors import internal_error, limit_reached
from mcp_tasks_proto.proxy import Access, ProxyLimits
from mcp_tasks_proto.wire.jsonrpc import error_message
from mcp_tasks_proto.wire.pages import PageHead
from tests.adapters.dashboard_harness import Town
from tests.adapters.proxy_harness import NOW, save

SECRET = "canary-secret"


@define(eq=False)
class Channel:
    """What a client gets."""

    replies: list[tuple[Any, int, dict[str, str]]] = field(factory=list)

    def reply(
        self,
        message: dict[str, Any] | None,
        http_status: int,
        headers: Sequence[tuple[str, str]] = (),
        event_id: str | None = None,
    ) -> None:
        self.replies.append((message, http_status, dict(headers)))

    def send(self, message: dict[str, Any], event_id: str | None = None) -> None:
        raise AssertionError

    def open(self) -> None:
        raise AssertionError

    @property
    def refused(self) -> tuple[int, str]:
        ((message, status, _),) = self.replies
        return status, message["error"]["reason"]


@define(eq=False)
class FakeEngine:
    """A store that may fail, and an engine that says what the test wants."""

    store: MemoryProxyStore = field(factory=MemoryProxyStore)
    fails: type | None = None
    says: Any = None
    loses: bool = False
    """Whether an entry is gone when it is to be assigned."""
    stretches: list[int] = field(factory=list)
    """How many entries were asked for, for each page."""
    meanwhile: Callable[[], None] = field(default=lambda: None)
    """Happens before the store answers."""

    def submit(self, effect: ProxyStoreEffect, answer: Callable[[ProxyStoreFact], None]) -> None:
        self.meanwhile()
        if isinstance(effect, ReadEntries):
            self.stretches.append(effect.most)
        if self.fails is not None and isinstance(effect, self.fails):
            fact = failed(effect)
            assert fact is not None
            answer(fact)
        elif self.loses and isinstance(effect, AssignTask):
            answer(EntriesRead(effect.token, ()))
        else:
            self.store.submit(effect, answer)

    def receive_from(self, message: Any, channel: Any, *, principal: str | None, access: Access) -> int:
        channel.send({"jsonrpc": "2.0", "method": "notifications/message"})
        channel.open()
        channel.reply(self.says, 200)
        return 1


ALICE = RequestFacts(transport="http", headers={"x-who": "alice"})


def proxy_of(town: Any, authenticate: Any = None, **options: Any) -> Proxy:
    upstream = HttpUpstream(name="farm", url="http://localhost:1/mcp")
    return Proxy([upstream], authenticate=authenticate or town.authenticate, members=town, **options)


def head_of(path: str, method: str = "GET") -> PageHead:
    return PageHead(method=method, path=f"/projects/film{path}", query="", headers={})


async def asked(
    engine: FakeEngine,
    path: str = "/tasks/h1",
    method: str = "GET",
    town: Any = None,
    authenticate: Any = None,
    stop: bool = False,
) -> Channel:
    """Ask a dashboard for something of a project with one task of Alice's."""
    engine.store.submit(save(), lambda _: None)
    channel = Channel()
    async with asyncio.TaskGroup() as group:
        proxy = proxy_of(town or Town(), authenticate)
        dashboard = Dashboard(proxy, engine=engine, loop=AsyncioLoop(group, lambda: NOW))
        dashboard.receive(head_of(path, method), b"", channel, ALICE)
        if stop:
            await asyncio.sleep(0)
            dashboard.stop()
    return channel


def test_a_store_that_does_not_answer() -> None:
    for fails, method, path in (
        (ReadEntry, "GET", "/tasks/h1"),
        (AssignTask, "DELETE", "/tasks/h1/assignee"),
    ):
        channel = asyncio.run(asked(FakeEngine(fails=fails), path, method))
        assert channel.refused == (503, "store_unavailable")


def test_a_task_that_goes_while_it_is_assigned() -> None:
    channel = asyncio.run(asked(FakeEngine(loses=True), "/tasks/h1/assignee", "DELETE"))
    assert channel.refused == (404, "not_found")


def test_sec2_people_who_cannot_be_told(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(Town):
        def viewer(self, caller: Caller, project: str) -> Any:
            raise RuntimeError(SECRET)

    channel = asyncio.run(asked(FakeEngine(), town=Broken()))
    assert channel.refused == (500, "failed")
    assert "RuntimeError" in caplog.text
    assert SECRET not in caplog.text


def test_his3_somebody_without_access_to_their_own_task() -> None:
    class Barred(Town):
        def access(self, caller: Caller, project: str) -> Any:
            return None

    channel = asyncio.run(asked(FakeEngine(), "/tasks/h1/cancel", "POST", town=Barred(label="farm")))
    assert channel.refused == (403, "not_allowed")


@pytest.mark.parametrize(
    ("error", "refused"),
    [
        (internal_error("x", reason="upstream_invalid"), (502, "upstream_invalid")),
        (internal_error("x", reason="shutting_down"), (503, "shutting_down")),
        (limit_reached("exchanges"), (503, "exchanges")),
        (internal_error("x"), (500, "failed")),
        (None, (500, "failed")),
    ],
)
def test_what_the_engine_says_has_a_status(error: Any, refused: tuple[int, str]) -> None:
    engine = FakeEngine(says=None if error is None else error_message(1, error))
    channel = asyncio.run(asked(engine, "/tasks/h1/cancel", "POST", town=Town(label="farm")))
    assert channel.refused == refused


# -- who asks ------------------------------------------------------------------------------------------------


async def later(facts: RequestFacts) -> Caller:
    await asyncio.sleep(0)
    return Town().authenticate(facts)


def test_sec1_a_function_that_takes_its_time_names_the_caller() -> None:
    channel = asyncio.run(asked(FakeEngine(), authenticate=later))
    assert channel.replies[0][0]["task"]["taskId"] == "h1"


def test_other_people_are_in_force_at_once() -> None:
    async def go() -> Channel:
        before, after = proxy_of(Town(team=frozenset())), proxy_of(Town())
        engine, channel = FakeEngine(), Channel()
        engine.store.submit(save(), lambda _: None)
        async with asyncio.TaskGroup() as group:
            dashboard = Dashboard(before, engine=engine, loop=AsyncioLoop(group, lambda: NOW))
            for _ in range(2):
                dashboard.receive(head_of("/tasks/h1"), b"", channel, ALICE)
                dashboard.change(after)
        return channel

    assert [status for _, status, _ in asyncio.run(go()).replies] == [404, 200]


def test_lim3_a_page_reads_as_many_entries_as_were_asked_for_whatever_changes_meanwhile() -> None:
    few, many = (proxy_of(Town(), proxy_limits=ProxyLimits(ledger_page_entries=most)) for most in (2, 5))

    async def go() -> tuple[FakeEngine, Channel]:
        engine, channel = FakeEngine(), Channel()
        for number in range(3):
            engine.store.submit(save(f"h{number}"), lambda _: None)
        async with asyncio.TaskGroup() as group:
            dashboard = Dashboard(few, engine=engine, loop=AsyncioLoop(group, lambda: NOW))
            engine.meanwhile = lambda: dashboard.change(many)
            for _ in range(2):
                dashboard.receive(head_of("/tasks"), b"", channel, ALICE)
        return engine, channel

    engine, channel = asyncio.run(go())
    assert engine.stretches == [2, 5]
    bodies = [body for body, _, _ in channel.replies]
    assert [(len(body["tasks"]), "nextCursor" in body) for body in bodies] == [(2, True), (3, False)]


def test_who_is_still_to_be_named_is_given_up_at_the_end() -> None:
    async def never(facts: RequestFacts) -> Caller:
        await asyncio.Event().wait()
        raise AssertionError

    channel = asyncio.run(asked(FakeEngine(), authenticate=never, stop=True))
    assert channel.replies == []


@pytest.mark.parametrize("wrong", ["fails", "names nobody"])
def test_sec1_a_function_that_names_nobody_lets_none_in(wrong: str) -> None:
    def authenticate(facts: RequestFacts) -> Any:
        if wrong == "fails":
            raise RuntimeError(SECRET)
        return "alice"

    channel = asyncio.run(asked(FakeEngine(), authenticate=authenticate))
    assert channel.refused == (500, "failed")
