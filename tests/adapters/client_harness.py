"""Clients under test: one scenario on either loop, our own server beside it, and servers that misbehave.

A scenario is an async function that knows no loop but through :class:`On`. What should come and never does
fails it after ``PATIENCE_SECONDS``.
"""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, NoReturn, Protocol, Self

import trio
from attrs import define, evolve, field, frozen
from mcp_tasks_adapters import asyncio_h11, trio_h11
from mcp_tasks_adapters.client import Failed, Outcome, RequesterLimits
from mcp_tasks_adapters.toolkit import Server

PATIENCE_SECONDS = 120
LOOPS = ("trio", "asyncio")

QUICK = RequesterLimits(poll_floor_ms=1, poll_interval_ms=1, first_backoff_ms=1, listen_delay_ms=1)
"""So that tests need not wait."""
IMPATIENT = evolve(QUICK, request_timeout_ms=200, call_timeout_ms=200)
"""So that they need not wait for what never comes."""


# -- the loops ---------------------------------------------------------------------------------------------


class On(Protocol):
    """A loop, as a scenario needs it."""

    connect: Any
    connect_stdio: Any

    def event(self) -> Any: ...
    async def sleep(self, seconds: float) -> None: ...
    def spawn(self, run: Callable[[], Awaitable[Any]]) -> Any: ...
    def serving(self, server: Server, **options: Any) -> Any: ...

    def cancelled(self) -> type[BaseException]: ...


class OnTrio:
    connect = staticmethod(trio_h11.connect)
    connect_stdio = staticmethod(trio_h11.connect_stdio)

    def __init__(self, nursery: trio.Nursery) -> None:
        self._nursery = nursery

    def event(self) -> trio.Event:
        return trio.Event()

    async def sleep(self, seconds: float) -> None:
        await trio.sleep(seconds)

    def cancelled(self) -> type[BaseException]:
        return trio.Cancelled

    def spawn(self, run: Callable[[], Awaitable[Any]]) -> trio.CancelScope:
        """Run beside the scenario; what comes back can be cancelled."""
        scope = trio.CancelScope()

        async def go() -> None:
            with scope:
                await run()

        self._nursery.start_soon(go)
        return scope

    @asynccontextmanager
    async def serving(self, server: Server, **options: Any) -> AsyncIterator[str]:
        """Serve, for the length of the block; give the URL."""
        raised: BaseException | None = None
        async with trio.open_nursery() as nursery:

            async def serve(task_status: trio.TaskStatus[str]) -> None:
                await trio_h11.serve_http(server, task_status=task_status, **options)

            try:
                yield await nursery.start(serve)
            except Exception as error:
                raised = error
            nursery.cancel_scope.cancel()
        if raised is not None:
            raise raised


class OnAsyncio:
    connect = staticmethod(asyncio_h11.connect)
    connect_stdio = staticmethod(asyncio_h11.connect_stdio)

    def __init__(self, group: asyncio.TaskGroup) -> None:
        self._group = group
        self.spawned: list[asyncio.Task[None]] = []

    def event(self) -> asyncio.Event:
        return asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def cancelled(self) -> type[BaseException]:
        return asyncio.CancelledError

    def spawn(self, run: Callable[[], Awaitable[Any]]) -> asyncio.Task[None]:
        """Run beside the scenario; what comes back can be cancelled."""

        async def go() -> None:
            await run()

        task = self._group.create_task(go())
        self.spawned.append(task)
        return task

    @asynccontextmanager
    async def serving(self, server: Server, **options: Any) -> AsyncIterator[str]:
        """Serve, for the length of the block; give the URL."""
        ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        task = asyncio.create_task(asyncio_h11.serve_http(server, ready=ready.set_result, **options))
        try:
            yield await ready
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


Scenario = Callable[[Any], Awaitable[Any]]


def run(loop: str, scenario: Scenario) -> None:
    """Run a scenario on a loop. It leaves nothing behind."""
    if loop == "trio":
        trio.run(_on_trio, scenario, strict_exception_groups=True)
    else:
        asyncio.run(_on_asyncio(scenario), debug=False)


async def _on_trio(scenario: Scenario) -> None:
    with trio.fail_after(PATIENCE_SECONDS):
        failed: list[Exception] = []
        try:
            async with trio.open_nursery() as nursery:
                await _tried(scenario(OnTrio(nursery)), failed)
                nursery.cancel_scope.cancel()
        except BaseExceptionGroup:
            if not failed:
                raise
        if failed:
            raise failed[0]


async def _on_asyncio(scenario: Scenario) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        failed: list[Exception] = []
        try:
            async with asyncio.TaskGroup() as group:
                on = OnAsyncio(group)
                await _tried(scenario(on), failed)
                for task in on.spawned:
                    task.cancel()
        except BaseExceptionGroup:
            if not failed:
                raise
        if failed:
            raise failed[0]
    left = asyncio.all_tasks() - {asyncio.current_task()}
    assert not left, left


async def _tried(scenario: Awaitable[Any], failed: list[Exception]) -> None:
    """Await a scenario; what it raises matters more than what its jobs raise because of it."""
    try:
        await scenario
    except Exception as error:
        failed.append(error)


# -- a server that does what it is told ----------------------------------------------------------------------


@frozen(kw_only=True)
class Asked:
    """A request as it came in."""

    headers: Mapping[str, str]
    message: Any
    connection: int
    """Which connection it came on, counted from 1."""

    @property
    def method(self) -> str:
        """Its JSON-RPC method."""
        method: str = self.message["method"]
        return method

    @property
    def params(self) -> dict[str, Any]:
        """Its params."""
        params: dict[str, Any] = self.message["params"]
        return params


class HungUpError(Exception):
    """The server, or its client, has closed the connection."""


@define(eq=False)
class Reply:
    """The server's side of one connection, at the time of one request."""

    _socket: socket.socket
    asked: Asked
    _stopping: threading.Event

    def raw(self, *parts: bytes) -> Self:
        """Send bytes."""
        for part in parts:
            self._socket.sendall(part)
        return self

    def http(self, body: bytes = b"", *headers: str, status: str = "200 OK") -> Self:
        """Send a response."""
        head = [f"HTTP/1.1 {status}", *headers, f"Content-Length: {len(body)}", "", ""]
        return self.raw("\r\n".join(head).encode() + body)

    def json(self, message: Any, *headers: str, status: str = "200 OK") -> Self:
        """Send a response with a message."""
        return self.http(
            json.dumps(message).encode(), "Content-Type: application/json", *headers, status=status
        )

    def result(self, result: Mapping[str, Any]) -> Self:
        """Send a result."""
        return self.json(self.message(result))

    def error(self, code: int, message: str = "no", *headers: str, status: str = "200 OK") -> Self:
        """Send an error."""
        error = {"code": code, "message": message}
        return self.json(
            {"jsonrpc": "2.0", "id": self.asked.message["id"], "error": error}, *headers, status=status
        )

    def message(self, result: Mapping[str, Any]) -> dict[str, Any]:
        """Return the response with this result."""
        return {
            "jsonrpc": "2.0",
            "id": self.asked.message["id"],
            "result": {"resultType": "complete", **result},
        }

    def stream(self, *headers: str) -> Self:
        """Begin an event stream that ends with the connection."""
        head = ["HTTP/1.1 200 OK", "Content-Type: text/event-stream", *headers, "", ""]
        return self.raw("\r\n".join(head).encode())

    def event(self, message: Any) -> Self:
        """Send a message on the stream."""
        return self.raw(b"data: " + json.dumps(message).encode() + b"\n\n")

    def notify(self, method: str, **params: Any) -> Self:
        """Send a notification on the stream."""
        return self.event({"jsonrpc": "2.0", "method": method, "params": params})

    def forever(self, *parts: bytes) -> None:
        """Send this again and again, until the client goes away."""
        while not self._stopping.is_set():
            self.raw(*parts)
            self._stopping.wait(0.01)

    def hang(self) -> NoReturn:
        """Do nothing until the client goes away."""
        while self._socket.recv(65536):
            pass
        raise HungUpError

    def close(self) -> NoReturn:
        """Close the connection."""
        raise HungUpError

    def reset(self) -> NoReturn:
        """Close the connection with a reset."""
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        raise HungUpError


Script = Callable[[Reply], object]


def no_tools(reply: Reply) -> None:
    """Answer tools/list."""
    reply.result({"tools": []})


@define(eq=False)
class ScriptedServer:
    """Answers each method as its script says, on threads of its own; a context manager."""

    scripts: dict[str, Script]
    tls: ssl.SSLContext | None = None
    asked: list[Asked] = field(factory=list)
    connections: int = 0
    """Those that there have been."""
    open: int = 0
    """Those that there are."""
    port: int = 0
    """Where it listens."""
    _listener: socket.socket = field(init=False)
    _threads: list[threading.Thread] = field(init=False, factory=list)
    _sockets: list[socket.socket] = field(init=False, factory=list)
    _stopping: threading.Event = field(init=False, factory=threading.Event)
    _lock: threading.Lock = field(init=False, factory=threading.Lock)
    errors: list[BaseException] = field(init=False, factory=list)

    def __enter__(self) -> ScriptedServer:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._start(self._accept)
        return self

    def __exit__(self, *exc: object) -> None:
        self._stopping.set()
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for one in list(self._sockets):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(PATIENCE_SECONDS)
            assert not thread.is_alive()
        if exc[0] is None:
            assert not self.errors, self.errors

    @property
    def url(self) -> str:
        """Where it is."""
        scheme = "http" if self.tls is None else "https"
        return f"{scheme}://localhost:{self.port}/mcp?tenant=1"

    def count(self, method: str) -> int:
        """Return how often it was asked this."""
        return len(self.all(method))

    def all(self, method: str) -> list[Asked]:
        """Return every request with this method."""
        return [asked for asked in self.asked if asked.method == method]

    def _start(self, run: Callable[..., None], *arguments: Any) -> None:
        thread = threading.Thread(target=run, args=arguments)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with self._lock:
                self.connections += 1
                self.open += 1
                number = self.connections
            self._sockets.append(connection)
            self._start(self._serve, connection, number)

    def _serve(self, connection: socket.socket, number: int) -> None:
        try:
            if self.tls is not None:
                connection = self.tls.wrap_socket(connection, server_side=True)
            with connection, connection.makefile("rb") as file:
                while (asked := _read(file, number)) is not None:
                    self.asked.append(asked)
                    script = self.scripts.get(asked.method, no_tools)
                    script(Reply(connection, asked, self._stopping))
                    self._sockets.append(connection)
        except (HungUpError, OSError):
            pass
        except BaseException as error:
            self.errors.append(error)
        finally:
            connection.close()
            with self._lock:
                self.open -= 1


def _read(file: Any, number: int) -> Asked | None:
    """Read a request; ``None``: no more come."""
    line = file.readline()
    if not line:
        return None
    verb, _, rest = line.partition(b" ")
    assert rest == b"/mcp?tenant=1 HTTP/1.1\r\n", line
    headers: dict[str, str] = {}
    while line := file.readline().strip():
        name, _, value = line.decode().partition(":")
        assert name.lower() not in headers
        headers[name.lower()] = value.strip()
    body = file.read(int(headers["content-length"]))
    if verb != b"POST":
        assert (verb, body) in ((b"GET", b""), (b"DELETE", b""))  # 2025-11-25 alone has them
    message = json.loads(body) if verb == b"POST" else {"method": verb.decode()}
    return Asked(headers=headers, message=message, connection=number)


# -- what scripts say ----------------------------------------------------------------------------------------


def one_after_the_other(*scripts: Script) -> Script:
    """Return a script that is another one each time; the last goes on."""
    left = list(scripts)

    def script(reply: Reply) -> None:
        (left.pop(0) if len(left) > 1 else left[0])(reply)

    return script


def task(status: str = "working", **more: Any) -> dict[str, Any]:
    """Return a task as it is seen."""
    return {
        "taskId": "task-1",
        "status": status,
        "createdAt": "2026-01-01T00:00:00.000Z",
        "lastUpdatedAt": "2026-01-01T00:00:00.000Z",
        "ttlMs": None,
        "pollIntervalMs": 1,
        **more,
    }


def handle(reply: Reply) -> None:
    """Answer a tool call with a task."""
    reply.result({**task(), "resultType": "task"})


def answers(result: Mapping[str, Any]) -> Script:
    """Return a script that answers with a result."""
    return lambda reply: reply.result(result)


def then_close(script: Script) -> Script:
    """Return a script that closes the connection when it has said what it says."""

    def closing(reply: Reply) -> NoReturn:
        script(reply)
        reply.close()

    return closing


DONE: Mapping[str, Any] = {"content": [{"type": "text", "text": "done"}]}


def done(reply: Reply) -> None:
    """Answer a poll: it is completed."""
    reply.result(task("completed", result=dict(DONE)))


def no_listening(reply: Reply) -> None:
    """Refuse a listen stream."""
    reply.error(-32601, status="404 Not Found")


def scripted(tls: ssl.SSLContext | None = None, **scripts: Script) -> ScriptedServer:
    """Return a server with these scripts; ``tools_call=`` is for ``tools/call``."""
    usual: dict[str, Script] = {"subscriptions/listen": no_listening}
    named = {name.replace("_", "/", 1): script for name, script in scripts.items()}
    return ScriptedServer({**usual, **named}, tls)


def texts(result: Mapping[str, Any]) -> Sequence[str]:
    """Return the text of a tool's result."""
    return [block["text"] for block in result["content"]]


# -- clients of it -------------------------------------------------------------------------------------------


def against(
    loop: str, server: ScriptedServer, scenario: Callable[[Any, Any], Awaitable[None]], **options: Any
) -> None:
    """Run a scenario with a client of this server."""
    options = {"requester_limits": QUICK, **options}

    async def main(on: Any) -> None:
        async with on.connect(server.url, **options) as client:
            await scenario(on, client)

    with server:
        run(loop, main)


def outcome_of_call(loop: str, server: ScriptedServer, **options: Any) -> Any:
    """Return the outcome of calling the tool ``t``."""
    outcomes = []

    async def scenario(on: Any, client: Any) -> None:
        outcomes.append(await (await client.call_tool("t")).settle())

    against(loop, server, scenario, **options)
    return outcomes[0]


def failure(outcome: Outcome) -> Failed:
    """Return an outcome that is a failure."""
    assert isinstance(outcome, Failed), outcome
    return outcome
