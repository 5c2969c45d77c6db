"""The smallest h11 relays, one on each loop: what a proxy cannot do without.

``python -m bench.relay LOOP PORT`` passes every request on to PORT and every response back: a request is read
and written by h11, and so is its response. Bodies are bytes. Each client has a connection to PORT of its own.
"""

from __future__ import annotations

import asyncio
import sys
from functools import partial
from typing import Any, cast

import h11
import trio

from bench.bare import say_ready
from bench.lifeline import end_with_parent


class Relay:
    """One client's connection and the one behind it, with h11 on both."""

    def __init__(self) -> None:
        self._front = h11.Connection(h11.SERVER)
        self._back = h11.Connection(h11.CLIENT)

    def from_client(self, data: bytes) -> bytes | None:
        """Take in a client's bytes; return what to write behind, ``None`` at the end."""
        return self._pass_on(data, self._front, self._back)

    def from_server(self, data: bytes) -> bytes | None:
        """Take in bytes from behind; return what to write to the client, ``None`` at the end."""
        out = self._pass_on(data, self._back, self._front)
        if self._front.our_state is h11.DONE and self._back.their_state is h11.DONE:
            self._front.start_next_cycle()
            self._back.start_next_cycle()
        return out

    def _pass_on(self, data: bytes, source: h11.Connection, sink: h11.Connection) -> bytes | None:
        source.receive_data(data)
        out = b""
        while True:
            event = source.next_event()
            if event is h11.NEED_DATA or event is h11.PAUSED:
                return out
            if type(event) is h11.ConnectionClosed:
                return None
            out += sink.send(cast(h11.Event, event)) or b""
            if type(event) is h11.EndOfMessage:
                return out


async def serve_trio(port: int) -> None:
    """Relay on trio until killed."""

    async def handle(stream: trio.SocketStream) -> None:
        relay = Relay()
        behind = await trio.open_tcp_stream("127.0.0.1", port)

        async def back() -> None:
            while (out := relay.from_server(await behind.receive_some(65536))) is not None:
                await stream.send_all(out)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(back)
            while (out := relay.from_client(await stream.receive_some(65536))) is not None:
                await behind.send_all(out)
            nursery.cancel_scope.cancel()

    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(trio.serve_tcp, handle, 0)
        say_ready(listeners[0].socket.getsockname()[1])


class Front(asyncio.Protocol):
    """A client's side on asyncio."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._relay = Relay()
        self._early = b""
        self._behind: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: Any = transport
        self._opening = asyncio.ensure_future(self._open())

    async def _open(self) -> None:
        loop = asyncio.get_running_loop()
        make = partial(Back, self._relay, self._transport)
        self._behind, _ = await loop.create_connection(make, "127.0.0.1", self._port)
        if self._early:
            self.data_received(self._early)

    def data_received(self, data: bytes) -> None:
        if self._behind is None:
            self._early += data
        elif out := self._relay.from_client(data):
            self._behind.write(out)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._behind is not None:
            self._behind.close()


class Back(asyncio.Protocol):
    """The side behind it."""

    def __init__(self, relay: Relay, client: Any) -> None:
        self._relay = relay
        self._client = client

    def data_received(self, data: bytes) -> None:
        out = self._relay.from_server(data)
        if out:
            self._client.write(out)

    def connection_lost(self, exc: Exception | None) -> None:
        self._client.close()


async def serve_asyncio(port: int) -> None:
    """Relay on asyncio until killed."""
    server = await asyncio.get_running_loop().create_server(lambda: Front(port), "127.0.0.1", 0)
    say_ready(server.sockets[0].getsockname()[1])
    await server.serve_forever()


if __name__ == "__main__":
    end_with_parent()
    match sys.argv[1]:
        case "trio":
            trio.run(serve_trio, int(sys.argv[2]))
        case "asyncio":
            asyncio.run(serve_asyncio(int(sys.argv[2])))
