"""An upstream, or a server, that says very much leaves others their turns: LIM.3, PRX.15."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any, Final

from attrs import define, field
from mcp_tasks_adapters.client.processes import kill_left
from mcp_tasks_adapters.client.turns import PIECE_BYTES, pieces
from mcp_tasks_adapters.stdio_client import StdioTransport

from mcp_tasks_proto.limits import Limits
from mcp_tasks_proto.requester import ResponseReceived, SendRequest
from mcp_tasks_proto.vocabulary import MODERN_VERSION, PROTOCOL_VERSION
from mcp_tasks_proto.wire.jsonrpc import request_message
from tests.adapters.driver_harness import World, on_both_loops

FLOODS: Final = 10
PARAMS: Final = {"name": "t", "_meta": {PROTOCOL_VERSION: MODERN_VERSION}}
ASKED: Final = SendRequest(request=1, message=request_message(1, "tools/call", PARAMS))
ANSWER: Final = json.dumps({"jsonrpc": "2.0", "id": 1, "result": {}}).encode()


@define(eq=False)
class Peer:
    """A process, or a connection, whose words are there as soon as they are asked for."""

    said: list[bytes]
    heard: list[bytes] = field(factory=list)
    killed: int = 0

    async def receive(self) -> bytes:
        return self.said.pop(0) if self.said else b""

    async def send(self, data: bytes) -> None:
        self.heard.append(data)

    async def close_input(self) -> None:
        """Nobody looks at it."""

    async def wait(self) -> int:
        return 0

    def kill(self) -> None:
        self.killed += 1

    async def close(self) -> None:
        """There is nothing to be let go."""


def slow(world: World) -> Any:
    """Return a loop on which a millisecond passes whenever somebody looks at the clock."""
    loop: Any = world.loop

    def now_ms() -> int:
        loop.now += 1
        return int(loop.now)

    async def within(_: float, run: Callable[[], Awaitable[object]]) -> bool:
        await run()
        return True

    loop.now_ms, loop.within = now_ms, within
    return loop


async def turns_of_others(world: World, peer: Peer, reports: list[Any]) -> int:
    """Return how many turns somebody else had before the answer was there."""
    turns = 0
    while not reports and turns < 1000:
        turns += 1
        await world.loop.checkpoint()
    assert [one.message for one in reports if isinstance(one, ResponseReceived)] == [json.loads(ANSWER)]
    assert peer.said == []
    return turns


def test_what_is_received_is_taken_in_pieces() -> None:
    assert list(pieces(b"")) == [b""]
    assert list(pieces(b"x" * PIECE_BYTES)) == [b"x" * PIECE_BYTES]
    assert list(pieces(b"x" * PIECE_BYTES + b"y")) == [b"x" * PIECE_BYTES, b"y"]


@on_both_loops
async def test_lim3_a_server_on_stdio_that_floods_leaves_others_their_turns(world: World) -> None:
    peer = Peer([(b"x" * 100 + b"\n") * 222] * FLOODS + [ANSWER + b"\n"])

    async def spawn() -> Any:
        if not peer.said:
            raise OSError("it is started once")
        return peer

    reports: list[Any] = []
    transport = StdioTransport(slow(world), spawn, Limits())
    transport.send(ASKED, reports.append)
    assert await turns_of_others(world, peer, reports) >= FLOODS


@on_both_loops
async def test_std1_a_server_is_looked_after_until_it_has_been_seen_off(world: World) -> None:
    """Whoever has to end at once leaves none of them behind."""
    loop = slow(world)
    silence = loop.event()

    class Silent(Peer):
        async def receive(self) -> bytes:
            await silence.wait()
            return b""

    peer = Silent([])

    async def spawn() -> Any:
        return peer

    transport = StdioTransport(loop, spawn, Limits())
    await transport.open()
    kill_left()
    assert peer.killed == 1
    silence.set()
    await transport.close()
    kill_left()
    assert peer.killed == 2, "by whoever saw it off"
