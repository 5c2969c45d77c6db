"""HTTP as bytes: requests written by hand, responses read from a socket, a server on a thread of its own.

Nothing here uses the code under test to speak HTTP. A test that waits for what never comes fails after
``PATIENCE_SECONDS`` instead of hanging.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, BinaryIO
from urllib.parse import urlsplit

import trio
from attrs import define, field, frozen
from mcp_tasks_adapters import asyncio_h11, trio_h11
from mcp_tasks_adapters.toolkit import Limits, Server, TaskContext, TaskOffer, ToolCall, elicit, text

PATIENCE_SECONDS = 60
LOOPS = ("trio", "asyncio")
VERSION = "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": VERSION,
    "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {"extensions": {"io.modelcontextprotocol/tasks": {}}},
}
NAMED_BY = {"tools/call": "name", "tasks/get": "taskId", "tasks/update": "taskId", "tasks/cancel": "taskId"}

Headers = Sequence[tuple[str, str]]


# -- requests --------------------------------------------------------------------------------------------


def message(method: str, params: Mapping[str, Any] | None = None, *, id: Any = 1) -> dict[str, Any]:  # noqa: A002
    """Return a request that declares tasks."""
    params = dict(params or {})
    meta = {**META, **params.pop("_meta", {})}
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": {**params, "_meta": meta}}


def call(tool: str, *, id: Any = 1, **arguments: Any) -> dict[str, Any]:  # noqa: A002
    """Return a tools/call."""
    meta = {"progressToken": "p"} if tool == "count" else {}
    return message("tools/call", {"name": tool, "arguments": arguments, "_meta": meta}, id=id)


def mcp_headers(body: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the headers that go with a message."""
    headers = [
        ("Host", "localhost"),
        ("Content-Type", "application/json"),
        ("Accept", "application/json, text/event-stream"),
        ("MCP-Protocol-Version", VERSION),
        ("Mcp-Method", str(body.get("method"))),
    ]
    if name := NAMED_BY.get(str(body.get("method"))):
        headers.append(("Mcp-Name", body["params"][name]))
    return headers


def raw(
    body: bytes,
    headers: Headers,
    *,
    method: str = "POST",
    target: str = "/mcp",
    version: str = "1.1",
) -> bytes:
    """Return a request exactly as given."""
    head = [f"{method} {target} HTTP/{version}", *(f"{name}: {value}" for name, value in headers)]
    return "\r\n".join([*head, "", ""]).encode("latin-1") + body


def post(body: Mapping[str, Any] | bytes, *more: tuple[str, str], version: str = "1.1") -> bytes:
    """Return a POST of a message, with its headers, its length, and more headers."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    headers = mcp_headers({} if isinstance(body, bytes) else body)
    return raw(data, [*headers, ("Content-Length", str(len(data))), *more], version=version)


def chunked(body: Mapping[str, Any], *sizes: int, trailer: str = "") -> bytes:
    """Return a POST of a message in chunks of these sizes, the last of what is left."""
    data, chunks = json.dumps(body).encode(), []
    for size in sizes:
        chunks.append(data[:size])
        data = data[size:]
    framed = b"".join(b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in [*chunks, data])
    headers = [*mcp_headers(body), ("Transfer-Encoding", "chunked")]
    return raw(framed + b"0\r\n" + trailer.encode() + b"\r\n", headers)


# -- responses -------------------------------------------------------------------------------------------


@frozen
class Response:
    """What came back."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body as one JSON message."""
        assert self.headers["content-type"] == "application/json", self
        return json.loads(self.body)

    @property
    def events(self) -> list[Any]:
        """The body as the messages of an event stream."""
        assert self.headers["content-type"] == "text/event-stream", self
        return [json.loads(line[6:]) for line in self.body.decode().split("\n") if line.startswith("data: ")]

    @property
    def closes(self) -> bool:
        """Whether the server says that it closes the connection."""
        return self.headers.get("connection") == "close"


class Client:
    """One connection, as a client's socket."""

    def __init__(self, port: int, *, receive_buffer: int | None = None) -> None:
        self.socket = socket.socket()
        self.socket.settimeout(PATIENCE_SECONDS)
        if receive_buffer is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        try:
            self.socket.connect(("127.0.0.1", port))
        except OSError:
            self.socket.close()
            raise
        self._file: BinaryIO = self.socket.makefile("rb")

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Go away."""
        self._file.close()
        self.socket.close()

    def reset(self) -> None:
        """Go away with a reset, as a process does that is killed with data unread."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self.close()

    def send(self, data: bytes) -> None:
        """Send bytes."""
        self.socket.sendall(data)

    def send_until_reset(self, data: bytes) -> None:
        """Send this again and again, without reading anything, until the server resets the connection."""
        with suppress(BrokenPipeError, ConnectionResetError):
            while True:
                self.send(data)

    def end(self) -> None:
        """Send no more."""
        self.socket.shutdown(socket.SHUT_WR)

    def head(self) -> tuple[int, dict[str, str]]:
        """Read the head of a response."""
        line = self._file.readline()
        assert line.startswith(b"HTTP/1.1 "), line
        headers = http.client.parse_headers(self._file)
        return int(line.split()[1]), {name.lower(): value for name, value in headers.items()}

    def response(self, *, to_head: bool = False) -> Response:
        """Read a whole response."""
        status, headers = self.head()
        if to_head or status < 200:
            body = b""
        elif headers.get("transfer-encoding") == "chunked":
            body = b"".join(self.chunks())
        elif "content-length" in headers:
            body = self._file.read(int(headers["content-length"]))
        else:
            body = self._file.read()
        return Response(status, headers, body)

    def chunks(self) -> Iterator[bytes]:
        """Read the chunks of a body to its end."""
        while chunk := self.chunk():
            yield chunk

    def chunk(self) -> bytes:
        """Read one chunk; empty: the last."""
        size = int(self._file.readline(), 16)
        data = self._file.read(size)
        assert self._file.readline() == b"\r\n"
        return data

    def end_of_stream(self) -> None:
        """Read the end of a chunked body."""
        assert self.chunk() == b""

    def event(self) -> Any:
        """Read chunks up to the next message of an event stream, which comes in one chunk."""
        while not (chunk := self.chunk()).startswith(b"data: "):
            assert chunk == b":\n\n", chunk
        return json.loads(chunk.removeprefix(b"data: "))

    def ask(self, body: Mapping[str, Any] | bytes, *more: tuple[str, str]) -> Response:
        """Post a message and read the response."""
        self.send(post(body, *more))
        return self.response()

    def at_end(self) -> bool:
        """Wait until something comes; return whether it is the end."""
        try:
            return self._file.read(1) == b""
        except ConnectionResetError:
            return True


# -- the server ------------------------------------------------------------------------------------------


@define(eq=False)
class Tools:
    """A server with tools to test with, and what has become of their calls."""

    limits: Limits = field(factory=Limits)
    loop: str = "trio"
    legacy: str = "ignore"
    started: threading.Semaphore = field(factory=lambda: threading.Semaphore(0))
    """One more for each call or task of ``wait`` and ``work`` that has begun."""
    cancelled: threading.Semaphore = field(factory=lambda: threading.Semaphore(0))
    """One more for each that was cancelled."""
    _released: Any = None

    def server(self) -> Server:
        """Return the server; on its loop's thread."""
        server = Server("raw", limits=self.limits, legacy=self.legacy)
        self._released = self._event()

        @server.tool()
        async def echo(call: ToolCall) -> dict[str, Any]:
            """Say it again."""
            return text(call.arguments["text"])

        @server.tool()
        async def large(call: ToolCall) -> dict[str, Any]:
            """Say a lot."""
            return text("x" * call.arguments["size"])

        @server.tool()
        async def wait(call: ToolCall) -> dict[str, Any]:
            """Wait until released."""
            await self._hold()
            return text("released")

        @server.tool()
        async def count(call: ToolCall) -> dict[str, Any]:
            """Report progress, then wait until released if told to."""
            for number in range(call.arguments["to"]):
                await call.progress(number)
            if call.arguments.get("wait"):
                await self._hold()
            return text("counted")

        @server.tool()
        async def ask(call: ToolCall) -> Any:
            """Ask for a name, then greet."""
            if "name" not in call.answers:
                fields = {"type": "object", "properties": {"name": {"type": "string"}}}
                return call.input_required({"name": elicit(message="Who?", schema=fields)})
            return text(f"Hello, {call.answers['name'].content['name']}!")

        @server.tool()
        async def grow(call: ToolCall) -> dict[str, Any]:
            """Add a tool."""
            server.tool(call.arguments["name"])(echo)
            return text("grown")

        @server.tool(task="required")
        async def work(call: ToolCall) -> TaskOffer:
            """Work until released, for a task of ``ttl_ms``."""

            async def run(task: TaskContext) -> dict[str, Any]:
                await self._hold()
                return text("worked")

            return call.task(run, ttl_ms=call.arguments.get("ttl_ms"))

        return server

    def release(self) -> None:
        """Let the calls and tasks that wait now go on; to be called on the loop's thread."""
        self._released.set()
        self._released = self._event()

    def _event(self) -> Any:
        return trio.Event() if self.loop == "trio" else asyncio.Event()

    async def _hold(self) -> None:
        self.started.release()
        try:
            await self._released.wait()
        except BaseException:
            self.cancelled.release()
            raise


def passes(semaphore: threading.Semaphore) -> bool:
    """Wait for one more."""
    return semaphore.acquire(timeout=PATIENCE_SECONDS)


@define(eq=False)
class Running:
    """A server that runs on a thread of its own."""

    tools: Tools
    url: str
    _run_on_loop: Callable[[Callable[[], object]], object]
    _cancel: Callable[[], object]
    _thread: threading.Thread
    _ended: list[BaseException | None]

    @property
    def port(self) -> int:
        """Where it listens."""
        port = urlsplit(self.url).port
        assert port is not None
        return port

    def connect(self, **options: Any) -> Client:
        """Connect to it."""
        return Client(self.port, **options)

    def release(self) -> None:
        """Let the tools that wait go on."""
        self._run_on_loop(self.tools.release)

    def begin_to_stop(self) -> None:
        """Cancel it."""
        self._run_on_loop(self._cancel)

    def stop(self) -> None:
        """Cancel it, and wait until nothing of it is left."""
        if self._thread.is_alive():
            self.begin_to_stop()
        self.join()

    def join(self) -> None:
        """Wait until it has ended; raise what it ended with."""
        self._thread.join(PATIENCE_SECONDS)
        assert not self._thread.is_alive(), "the server did not end"
        error = self._ended[0]
        if error is not None:
            raise error


@contextmanager
def running(
    loop: str, *, limits: Limits | None = None, legacy: str = "ignore", **options: Any
) -> Iterator[Running]:
    """Run a server on ``loop``, with these options of ``serve_http``."""
    tools = Tools(limits=limits or Limits(), loop=loop, legacy=legacy)
    ready: list[Any] = []
    is_ready = threading.Event()
    ended: list[BaseException | None] = [None]

    def say_ready(*what: Any) -> None:
        ready.extend(what)
        is_ready.set()

    def run() -> None:
        try:
            (_run_trio if loop == "trio" else _run_asyncio)(tools, options, say_ready)
        except BaseException as error:
            ended[0] = error
        finally:
            is_ready.set()

    thread = threading.Thread(target=run)
    thread.start()
    assert is_ready.wait(PATIENCE_SECONDS)
    if ended[0] is not None:
        raise ended[0]
    url, run_on_loop, cancel = ready
    server = Running(tools, url, run_on_loop, cancel, thread, ended)
    try:
        yield server
    finally:
        server.stop()


def _run_trio(tools: Tools, options: dict[str, Any], say_ready: Callable[..., None]) -> None:
    async def main() -> None:
        run_on_loop = trio.lowlevel.current_trio_token().run_sync_soon
        with trio.CancelScope() as scope:
            await trio_h11.serve_http(
                tools.server(), ready=lambda url: say_ready(url, run_on_loop, scope.cancel), **options
            )

    trio.run(main, strict_exception_groups=True)


def _run_asyncio(tools: Tools, options: dict[str, Any], say_ready: Callable[..., None]) -> None:
    async def main() -> None:
        task = asyncio.current_task()
        assert task is not None
        run_on_loop = asyncio.get_running_loop().call_soon_threadsafe
        await _none_left(
            asyncio_h11.serve_http(
                tools.server(), ready=lambda url: say_ready(url, run_on_loop, task.cancel), **options
            )
        )

    asyncio.run(main())


async def _none_left(serve: Awaitable[None]) -> None:
    """Await ``serve``, which is cancelled in the end and must leave no task behind."""
    try:
        await serve
    except asyncio.CancelledError:
        left = asyncio.all_tasks() - {asyncio.current_task()}
        assert not left, left
