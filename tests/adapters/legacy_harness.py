"""A client of 2025-11-25, written by hand: its messages, its session, its streams."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import uvicorn
from attrs import define, field
from mcp_tasks_adapters.asgi import asgi_app
from mcp_tasks_adapters.toolkit import Limits

from tests.adapters.http_harness import PATIENCE_SECONDS, Client, Response, Tools, raw, running

HOSTS = ("trio", "asyncio", "asgi")
"""What may carry a server: both loops, and an ASGI server."""

EVERYTHING: Mapping[str, Any] = {"elicitation": {}, "sampling": {}, "roots": {}}


def message(method: str, params: Any = None, *, id: Any = None) -> dict[str, Any]:  # noqa: A002
    """Return a request, or without an id a notification."""
    wanted: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
    if id is not None:
        wanted["id"] = id
    if params is not None:
        wanted["params"] = params
    return wanted


def initialize(**capabilities: Any) -> dict[str, Any]:
    """Return what opens a session."""
    params = {
        "protocolVersion": "2025-11-25",
        "capabilities": capabilities or EVERYTHING,
        "clientInfo": {"name": "raw", "version": "1"},
    }
    return message("initialize", params, id=0)


@define(eq=False)
class Place:
    """Where a server listens, and what its tools do."""

    port: int
    tools: Tools
    release: Any


@define(eq=False)
class Session:
    """A session over HTTP. Each request has a connection of its own."""

    port: int
    id: str = ""
    _open: list[Client] = field(factory=list)

    def send(
        self, value: Any = None, *more: tuple[str, str], method: str = "POST", session: str | None = None
    ) -> Client:
        """Send a request; return the connection, on which the answer comes."""
        client = Client(self.port)
        self._open.append(client)
        headers = [("Host", "localhost"), ("Accept", "application/json, text/event-stream"), *more]
        key = self.id if session is None else session
        if key:
            headers += [("Mcp-Session-Id", key), ("MCP-Protocol-Version", "2025-11-25")]
        body = b"" if value is None else json.dumps(value).encode()
        if value is not None:
            headers += [("Content-Type", "application/json"), ("Content-Length", str(len(body)))]
        client.send(raw(body, headers, method=method))
        return client

    def ask(self, value: Any = None, *more: tuple[str, str], **options: Any) -> Response:
        """Send a request, and read the whole answer."""
        return self.send(value, *more, **options).response()

    def result(self, method: str, params: Any = None) -> dict[str, Any]:
        """Send a request that is answered at once, and return the result."""
        answer = self.ask(message(method, params, id=method)).json
        assert "result" in answer, answer
        found: dict[str, Any] = answer["result"]
        return found

    def open(self, **capabilities: Any) -> dict[str, Any]:
        """Open the session; return the result."""
        response = self.ask(initialize(**capabilities))
        assert response.status == 200, response
        self.id = response.headers["mcp-session-id"]
        assert self.ask(message("notifications/initialized")).status == 202
        result: dict[str, Any] = response.json["result"]
        return result

    def close(self) -> None:
        """Close every connection."""
        for client in self._open:
            client.close()


@contextmanager
def session(port: int, **capabilities: Any) -> Iterator[Session]:
    """Open a session, and close its connections in the end."""
    opened = Session(port)
    try:
        opened.open(**capabilities)
        yield opened
    finally:
        opened.close()


def event(client: Client) -> tuple[str | None, Any]:
    """Read the next event of a stream; return its id and its message."""
    while (chunk := client.chunk()) == b":\n\n":
        pass
    lines = dict(line.split(": ", 1) for line in chunk.decode().strip().split("\n"))
    return lines.get("id"), json.loads(lines["data"])


@contextmanager
def place(host: str, *, legacy: str = "serve", limits: Limits | None = None) -> Iterator[Place]:
    """Run a server on one of ``HOSTS``."""
    if host != "asgi":
        with running(host, legacy=legacy, limits=limits) as server:
            yield Place(server.port, server.tools, server.release)
        return
    tools = Tools(loop="asyncio", legacy=legacy, limits=limits or Limits())
    started = threading.Event()
    made: list[Any] = []

    async def serve() -> None:
        options = uvicorn.Config(
            asgi_app(tools.server()), port=0, log_config=None, timeout_graceful_shutdown=1
        )
        server = uvicorn.Server(options)
        made.extend([server, asyncio.get_running_loop()])
        serving = asyncio.ensure_future(server.serve())
        while not server.started:
            await asyncio.sleep(0.01)
        started.set()
        await serving

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    assert started.wait(PATIENCE_SECONDS)
    server, loop = made
    try:
        port = server.servers[0].sockets[0].getsockname()[1]
        yield Place(port, tools, lambda: loop.call_soon_threadsafe(tools.release))
    finally:
        server.should_exit = True
        thread.join(PATIENCE_SECONDS)
        assert not thread.is_alive()
