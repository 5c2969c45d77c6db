"""The smallest h11 servers that read the same JSON and answer the same JSON, one on each loop.

``python -m bench.bare LOOP RESULTS``: RESULTS maps a method to the result it gets, as JSON. No routing, no
checks, no store: what remains is the loop, h11 and json, which no server on them can do without.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import h11
import trio

from bench.lifeline import end_with_parent

RESULTS: dict[str, Any] = {}


class Connection:
    """One client's bytes, and h11 between."""

    def __init__(self) -> None:
        self._h11 = h11.Connection(h11.SERVER)
        self._body = b""

    def receive(self, data: bytes) -> bytes | None:
        """Take in bytes; return what to write, ``None`` at the end."""
        self._h11.receive_data(data)
        out = b""
        while True:
            event = self._h11.next_event()
            if type(event) is h11.Data:
                self._body += event.data
            elif type(event) is h11.EndOfMessage:
                out += self._answer(self._body)
                self._body = b""
                self._h11.start_next_cycle()
            elif event is h11.NEED_DATA:
                return out
            elif type(event) is not h11.Request:
                return None

    def _answer(self, body: bytes) -> bytes:
        request = json.loads(body)
        reply = {"jsonrpc": "2.0", "id": request["id"], "result": RESULTS[request["method"]]}
        data = json.dumps(reply).encode()
        headers = [("content-type", "application/json"), ("content-length", str(len(data)))]
        return (
            self._h11.send(h11.Response(status_code=200, headers=headers))
            + self._h11.send(h11.Data(data=data))
            + self._h11.send(h11.EndOfMessage())
        )


def say_ready(port: int) -> None:
    """Tell the benchmark where to connect."""
    print(f"http://127.0.0.1:{port}/", flush=True)


async def serve_trio() -> None:
    """Serve on trio until killed."""

    async def handle(stream: trio.SocketStream) -> None:
        connection = Connection()
        while (out := connection.receive(await stream.receive_some(65536))) is not None:
            await stream.send_all(out)

    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(trio.serve_tcp, handle, 0)
        say_ready(listeners[0].socket.getsockname()[1])


class Protocol(asyncio.Protocol):
    """The same on asyncio."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: Any = transport
        self._connection = Connection()

    def data_received(self, data: bytes) -> None:
        out = self._connection.receive(data)
        if out is None:
            self._transport.close()
        else:
            self._transport.write(out)


async def serve_asyncio() -> None:
    """Serve on asyncio until killed."""
    server = await asyncio.get_running_loop().create_server(Protocol, "127.0.0.1", 0)
    say_ready(server.sockets[0].getsockname()[1])
    await server.serve_forever()


if __name__ == "__main__":
    end_with_parent()
    RESULTS.update(json.loads(sys.argv[2]))
    match sys.argv[1]:
        case "trio":
            trio.run(serve_trio)
        case "asyncio":
            asyncio.run(serve_asyncio())
