"""A world around one driver: a loop, a clock that the test moves, and clients that remember what they got.

``@on_both_loops`` runs an async test once on trio and once on asyncio. The clock stands still but for
:meth:`World.advance`; :meth:`World.settle` lets everything run until nothing is left to do.
"""

from __future__ import annotations

import asyncio
import functools
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sized
from contextlib import contextmanager
from typing import Any

import pytest
import trio
import trio.testing
from attrs import define, field
from mcp_tasks_adapters.driver import Driver, Event, Job, RequestFacts, Store, StoreEffect
from mcp_tasks_adapters.stores import MemoryStore
from mcp_tasks_adapters.toolkit import Limits, Server, ToolCall, Work
from mcp_tasks_adapters.toolkit.tools import ToolHandler

from mcp_tasks_proto.inputs import HttpHead, StoreInput
from mcp_tasks_proto.testing.messages import request

ELICITATION: dict[str, Any] = {"elicitation": {}}
"""Client capabilities with which forms may be asked."""
YES = {"action": "accept", "content": {}}
HTTP = RequestFacts(transport="http", headers={}, peer="192.0.2.1")
TURNS = 50
"""Turns of the asyncio loop after which nothing in these tests is left to do."""


@define(eq=False)
class Exchange:
    """What a client got for one message; it is the message's channel at the same time."""

    driver: Driver | None = None
    number: int = 0
    replies: list[dict[str, Any] | None] = field(factory=list)
    status: int | None = None
    headers: dict[str, str] = field(factory=dict)
    sent: list[dict[str, Any]] = field(factory=list)
    slow: bool = False
    """Whether what is sent stays unread until :meth:`read`."""
    opened: bool = False
    """Whether it was made a stream before anything was sent."""

    def reply(
        self,
        message: dict[str, Any] | None,
        http_status: int,
        headers: Any = (),
        event_id: str | None = None,
    ) -> None:
        self.replies.append(message)
        self.status = http_status
        self.headers = dict(headers)

    def open(self) -> None:
        self.opened = True

    def send(self, message: dict[str, Any], event_id: str | None = None) -> None:
        self.sent.append(message)
        # Before receive() has returned nobody knows the number yet, so nothing can have left.
        if self.number and not self.slow:
            self.read()

    def read(self) -> None:
        assert self.driver is not None
        self.driver.ready(self.number)

    @property
    def message(self) -> dict[str, Any]:
        assert len(self.replies) == 1, f"{len(self.replies)} replies"
        assert self.replies[0] is not None
        return self.replies[0]

    @property
    def result(self) -> dict[str, Any]:
        assert "result" in self.message, self.message
        return dict(self.message["result"])

    @property
    def error(self) -> dict[str, Any]:
        assert "error" in self.message, self.message
        return dict(self.message["error"])


class TrioLoop:
    """A nursery as a driver sees it."""

    cancelled = trio.Cancelled

    def __init__(self, nursery: trio.Nursery) -> None:
        self._nursery = nursery
        self.now = 1_700_000_000_000
        self.deadline: int | None = None
        self.jobs = 0

    def another(self) -> TrioLoop:
        """Return what a driver in another process would have."""
        return TrioLoop(self._nursery)

    def now_ms(self) -> int:
        return self.now

    def wake_at(self, deadline_ms: int | None) -> None:
        self.deadline = deadline_ms

    def event(self) -> Event:
        return trio.Event()

    def post(self, call: Callable[[], object]) -> None:
        trio.lowlevel.current_trio_token().run_sync_soon(call)

    async def checkpoint(self) -> None:
        await trio.lowlevel.checkpoint()

    def spawn(self, run: Callable[[], Awaitable[None]]) -> Job:
        scope = trio.CancelScope()
        self._nursery.start_soon(self._run, scope, run)
        return scope

    async def _run(self, scope: trio.CancelScope, run: Callable[[], Awaitable[None]]) -> None:
        self.jobs += 1
        with scope:
            await run()
        self.jobs -= 1

    async def sleep(self, seconds: float) -> None:
        await trio.sleep(seconds)

    async def settle(self) -> None:
        await trio.testing.wait_all_tasks_blocked()

    def timeout(self, seconds: float) -> Any:
        return trio.move_on_after(seconds)

    def shield(self) -> Any:
        return trio.CancelScope(shield=True)


class AsyncioLoop:
    """A task group as a driver sees it."""

    cancelled = asyncio.CancelledError

    def __init__(self, group: asyncio.TaskGroup) -> None:
        self._group = group
        self.now = 1_700_000_000_000
        self.deadline: int | None = None
        self.jobs = 0

    def another(self) -> AsyncioLoop:
        """Return what a driver in another process would have."""
        return AsyncioLoop(self._group)

    def now_ms(self) -> int:
        return self.now

    def wake_at(self, deadline_ms: int | None) -> None:
        self.deadline = deadline_ms

    def event(self) -> Event:
        return asyncio.Event()

    def post(self, call: Callable[[], object]) -> None:
        asyncio.get_running_loop().call_soon(call)

    async def checkpoint(self) -> None:
        await asyncio.sleep(0)

    def spawn(self, run: Callable[[], Awaitable[None]]) -> Job:
        task = self._group.create_task(self._run(run))
        return _AsyncioJob(task)

    async def _run(self, run: Callable[[], Awaitable[None]]) -> None:
        self.jobs += 1
        try:
            await run()
        finally:
            self.jobs -= 1

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def settle(self) -> None:
        for _ in range(TURNS):
            await asyncio.sleep(0)

    def timeout(self, seconds: float) -> Any:
        return _AsyncioTimeout(seconds)


class _AsyncioTimeout:
    """``asyncio.timeout``, quiet about it."""

    def __init__(self, seconds: float) -> None:
        self._timeout = asyncio.timeout(seconds)

    async def __aenter__(self) -> None:
        await self._timeout.__aenter__()

    async def __aexit__(self, *exc: Any) -> bool:
        try:
            await self._timeout.__aexit__(*exc)
        except TimeoutError:
            return True
        return False


@define(eq=False)
class _AsyncioJob:
    task: asyncio.Task[None]

    def cancel(self) -> None:
        self.task.cancel()


class World:
    """One driver and those around it."""

    def __init__(self, loop: TrioLoop | AsyncioLoop) -> None:
        self.loop = loop
        self.driver: Driver = None  # type: ignore[assignment]
        self.store: Store = None  # type: ignore[assignment]

    def serve(self, server: Server, store: Store | None = None) -> Driver:
        """Start a driver for ``server``."""
        self.store = MemoryStore() if store is None else store
        self.driver = Driver(server, store=self.store, loop=self.loop)
        return self.driver

    # -- clients ---------------------------------------------------------------------------------------------

    def send(
        self,
        message: Any,
        *,
        facts: RequestFacts | None = HTTP,
        connection: str | None = None,
        http: HttpHead | None = None,
        slow: bool = False,
    ) -> Exchange:
        """Send any JSON value; return what comes of it, now and later."""
        exchange = Exchange(self.driver, slow=slow)
        exchange.number = self.driver.receive(
            message, exchange, facts=facts, connection=connection, http=http
        )
        if exchange.sent and not slow:
            exchange.read()
        return exchange

    def start(self, method: str, params: Mapping[str, Any] | None = None, **options: Any) -> Exchange:
        """Send a request as a well-behaved client writes it."""
        transport = {
            name: options.pop(name) for name in ("facts", "connection", "http", "slow") if name in options
        }
        return self.send(request(method, params, **options), **transport)

    async def ask(self, method: str, params: Mapping[str, Any] | None = None, **options: Any) -> Exchange:
        """Send a request, with nothing left to do before and after it."""
        await self.loop.settle()
        exchange = self.start(method, params, **options)
        await self.loop.settle()
        return exchange

    async def call(self, tool: str, arguments: Mapping[str, Any] | None = None, **options: Any) -> Exchange:
        """Call a tool and let things settle."""
        return await self.ask("tools/call", {"name": tool, "arguments": dict(arguments or {})}, **options)

    async def create(self, tool: str, arguments: Mapping[str, Any] | None = None, **options: Any) -> str:
        """Call a tool that becomes a task, and return the task's id."""
        created = (await self.call(tool, arguments, **options)).result
        assert created["resultType"] == "task", created
        return str(created["taskId"])

    async def get(self, task_id: str, **options: Any) -> dict[str, Any]:
        """Return the view of a task."""
        return (await self.ask("tasks/get", {"taskId": task_id}, **options)).result

    async def update(self, task_id: str, responses: Mapping[str, Any], **options: Any) -> Exchange:
        """Answer a task's questions."""
        return await self.ask("tasks/update", {"taskId": task_id, "inputResponses": responses}, **options)

    async def cancel(self, task_id: str, **options: Any) -> Exchange:
        """Ask for a task's cancellation."""
        return await self.ask("tasks/cancel", {"taskId": task_id}, **options)

    # -- time ------------------------------------------------------------------------------------------------

    async def settle(self) -> None:
        """Let everything run until nothing is left to do."""
        await self.loop.settle()

    async def advance(self, milliseconds: int) -> None:
        """Let time pass, waking the driver at each of its deadlines on the way."""
        until = self.loop.now + milliseconds
        while self.loop.deadline is not None and self.loop.deadline <= until:
            self.loop.now = max(self.loop.now, self.loop.deadline)
            self.loop.deadline = None
            self.driver.wake()
            await self.settle()
        self.loop.now = until


WorldTest = Callable[[World], Awaitable[None]]


def on_trio(test: WorldTest) -> Callable[[], None]:
    """Run an async test on trio."""

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            with trio.fail_after(30):
                await test(World(TrioLoop(nursery)))
            nursery.cancel_scope.cancel()

    @functools.wraps(test)
    def run() -> None:
        trio.run(main)

    del run.__wrapped__  # or pytest would take ``world`` for a fixture
    return run


def on_asyncio(test: WorldTest) -> Callable[[], None]:
    """Run an async test on asyncio."""

    async def main() -> None:
        async with asyncio.TaskGroup() as group:
            async with asyncio.timeout(30):
                await test(World(AsyncioLoop(group)))
            for task in asyncio.all_tasks():
                if task is not asyncio.current_task():
                    task.cancel()

    @functools.wraps(test)
    def run() -> None:
        asyncio.run(main())

    del run.__wrapped__  # or pytest would take ``world`` for a fixture
    return run


def on_both_loops(test: WorldTest) -> Callable[[str], None]:
    """Run an async test on trio, and again on asyncio."""

    @functools.wraps(test)
    def run(loop: str) -> None:
        (on_trio if loop == "trio" else on_asyncio)(test)()

    del run.__wrapped__
    return pytest.mark.parametrize("loop", ["trio", "asyncio"])(run)


# -- servers and stores --


class HeldStore(MemoryStore):
    """A store that answers when the test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.held = False
        self.waiting: deque[tuple[StoreEffect, Callable[[StoreInput], None]]] = deque()

    def submit(self, effect: StoreEffect, answer: Callable[[StoreInput], None]) -> None:
        if self.held:
            self.waiting.append((effect, answer))
        else:
            super().submit(effect, answer)

    def answer_next(self, kind: type) -> None:
        """Carry out the oldest effect, which must be of this kind."""
        effect, answer = self.waiting.popleft()
        assert type(effect) is kind, effect
        super().submit(effect, answer)

    def answer_in_turn(self) -> None:
        """Carry out everything that waits, and what comes of it, each after all that was asked before."""
        while self.waiting:
            effect, answer = self.waiting.popleft()
            super().submit(effect, answer)

    def let_go(self) -> None:
        """Carry out everything, now and from here on."""
        self.held = False
        while self.waiting:
            super().submit(*self.waiting.popleft())


class BrokenStore(MemoryStore):
    """A store that raises, though it must not, on one kind of effect."""

    def __init__(self, broken: type) -> None:
        super().__init__()
        self.broken: type | None = broken

    def submit(self, effect: StoreEffect, answer: Callable[[StoreInput], None]) -> None:
        if type(effect) is self.broken:
            raise OSError("disk on fire")
        super().submit(effect, answer)


def served(
    handler: Any, *, limits: Limits | None = None, principal: Any = None, enabled: Any = None, **options: Any
) -> Server:
    """Return a server with one tool, ``tool``, declared with ``options``."""
    server = Server("test", limits=limits, principal=principal, enabled=enabled)
    server.tool("tool", **options)(handler)
    return server


def working(run: Work, **options: Any) -> Server:
    """Return a server whose ``tool`` always becomes a task with this work."""

    async def handler(call: ToolCall) -> Any:
        return call.task(run)

    return served(handler, **options)


def waiting_handler(world: World, said: list[str]) -> ToolHandler:
    """Return a handler that waits for ever, and says when it begins and stops."""

    async def handler(call: ToolCall) -> str:
        said.append("began")
        try:
            await world.loop.event().wait()
        finally:
            said.append("stopped")
        return "done"

    return handler


@contextmanager
def logged() -> Iterator[list[str]]:
    """Yield what the adapters log meanwhile."""
    lines: list[str] = []

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(record.getMessage())

    listener = Listener()
    logger = logging.getLogger("mcp_tasks_adapters")
    logger.addHandler(listener)
    try:
        yield lines
    finally:
        logger.removeHandler(listener)


def texts(result: Mapping[str, Any]) -> list[str]:
    """Return the texts of a tool result."""
    return [block["text"] for block in result["content"]]


WITHIN = {
    "Admission",
    "Calls",
    "DualEraServer",
    "Exchanges",
    "Feeder",
    "Inner",
    "Registry",
    "ServerEngine",
    "Streams",
    "Tasks",
    "Waiting",
    "Workers",
}
"""What a driver is made of, and may hold something itself."""


def leftovers(driver: Driver) -> dict[str, Any]:
    """Every collection of the driver, its engine and its door that still holds something."""
    fixed = {"_tools", "_handlers", "_actions", "_info", "methods", "tools"}
    found: dict[str, Any] = {}
    pending: list[Any] = [driver]
    while pending:
        owner = pending.pop()
        slots = [name for kind in type(owner).__mro__ for name in getattr(kind, "__slots__", ())]
        names = [*getattr(owner, "__dict__", ()), *slots]
        for name in names:
            value = getattr(owner, name, None)
            place = f"{type(owner).__name__}.{name}"
            if name in fixed or value is None or isinstance(value, str | bytes):
                continue
            if type(value).__name__ in WITHIN:
                if all(value is not other for other in pending):
                    pending.append(value)
            elif isinstance(value, dict | deque | set | list) and isinstance(value, Sized) and len(value):
                found[place] = value
    # The engine's last effects lie there until its next input.
    return {place: value for place, value in found.items() if not place.endswith(("._out", ".out"))}
