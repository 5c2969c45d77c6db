"""Posts on stdio: processes of one server, and which post a line belongs to."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from attrs import define, field

from mcp_tasks_adapters.client.loop import ClientLoop, Process
from mcp_tasks_adapters.kit.carrier import in_time
from mcp_tasks_proto.errors import LimitExceeded, RemoteProtocolError
from mcp_tasks_proto.limits import Limits
from mcp_tasks_proto.testing.kit import Came, Ended, Fact, Post, Silent, Unreadable
from mcp_tasks_proto.vocabulary import SUBSCRIPTION_ID
from mcp_tasks_proto.wire.jsonrpc import decode
from mcp_tasks_proto.wire.stdio import LineDecoder, frame

__all__ = ["Sorter", "StdioCarrier"]

WRITE_MS: Final = 10_000
"""For a line to be taken."""
GRACE_MS: Final = 3_000
"""For a server to end when its stdin is closed, and again when it is told to."""


class StdioCarrier:
    """The way to a server that is started here, as often as there are channels."""

    def __init__(self, spawn: Callable[[], Awaitable[Process]], *, loop: ClientLoop, limits: Limits) -> None:
        self._spawn = spawn
        self._loop = loop
        self._limits = limits
        self._channels: dict[int, _Channel] = {}
        self._channel_of: dict[int, _Channel] = {}

    async def open(self, exchange: int, post: Post) -> None:
        """Send a line, to a process that is started if there is none."""
        channel = self._channels.get(post.channel)
        if channel is None:
            channel = self._channels[post.channel] = _Channel(Sorter(self._limits))
        self._channel_of[exchange] = channel
        channel.sorter.add(exchange, post)
        try:
            if channel.process is None:
                channel.process = await self._spawn()
            process = channel.process
            if not await self._loop.within(WRITE_MS / 1000, lambda: process.send(frame(post.body))):
                channel.sorter.lost("the server does not read")
        except OSError as error:
            channel.sorter.lost(f"the server cannot be written to: {error}")

    async def next(self, exchange: int, within_ms: int) -> Fact:
        """Read until there is something to tell of this exchange."""
        channel = self._channel_of[exchange]
        facts = channel.sorter.facts[exchange]
        until_ms = self._loop.now_ms() + within_ms
        while not facts and channel.process is not None:
            left_ms = max(0, until_ms - self._loop.now_ms())
            data = await in_time(self._loop, left_ms, channel.process.receive)
            if data is None:
                return Silent()
            if isinstance(data, OSError) or not data:
                code = await self._end(channel.process)
                channel.process = None
                channel.sorter.lost(f"the server ended (exit code {code})")
            else:
                channel.sorter.receive(data)
        return facts.popleft() if facts else Ended()

    async def close(self, exchange: int) -> None:
        """Take no more of what belongs to it."""
        self._channel_of.pop(exchange).sorter.drop(exchange)

    async def finish(self) -> None:
        """End every process."""
        for channel in self._channels.values():
            if channel.process is not None:
                await self._end(channel.process)
        self._channels.clear()

    async def _end(self, process: Process) -> int | None:
        """See a process off; return its exit code, ``None`` when it outlived even that."""
        code: list[int] = []

        async def wait() -> None:
            try:
                while await process.receive():
                    pass  # a server that is not read may not be able to end
            except OSError:
                pass
            code.append(await process.wait())

        try:
            await process.close_input()
            if not await self._loop.within(GRACE_MS / 1000, wait):
                process.terminate()
                await self._loop.within(GRACE_MS / 1000, wait)
        finally:
            process.kill()
            await process.close()
        return code[0] if code else None


@define(eq=False)
class _Channel:
    sorter: Sorter
    process: Process | None = None


@define(eq=False)
class Sorter:
    """Tells to which post a line belongs, without I/O."""

    limits: Limits
    facts: dict[int, deque[Fact]] = field(init=False, factory=dict)
    """What has come for each exchange that is open, and was not fetched yet."""
    _posts: dict[int, Post] = field(init=False, factory=dict)
    _lines: LineDecoder = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._lines = LineDecoder(self.limits)

    def add(self, exchange: int, post: Post) -> None:
        """There is a new exchange."""
        self._posts[exchange] = post
        self.facts[exchange] = deque()

    def drop(self, exchange: int) -> None:
        """An exchange is over."""
        del self._posts[exchange], self.facts[exchange]

    def receive(self, data: bytes) -> None:
        """Take in bytes from stdout."""
        for line in self._lines.feed(data):
            if isinstance(line, LimitExceeded):
                self._give(None, Unreadable("a line over a limit of this side (message_bytes)"))
                continue
            try:
                message = decode(line, self.limits)
            except RemoteProtocolError:
                self._give(None, Unreadable("a line that is not JSON"))
            else:
                self._give(self._meant(message), Came(message))

    def lost(self, trouble: str) -> None:
        """Nothing more comes for any of the exchanges."""
        self._lines = LineDecoder(self.limits)
        for facts in self.facts.values():
            facts.append(Ended(trouble))

    def _give(self, exchange: int | None, fact: Fact) -> None:
        """Give a fact to its exchange; what belongs to none goes to the one that was opened last."""
        if exchange is None and self.facts:
            exchange = max(self.facts)
        if exchange is not None:
            self.facts[exchange].append(fact)

    def _meant(self, message: Any) -> int | None:
        if not isinstance(message, Mapping):
            return None
        params = message.get("params")
        meta = params.get("_meta") if isinstance(params, Mapping) else None
        if isinstance(meta, Mapping) and SUBSCRIPTION_ID in meta:
            return self._with_id(meta[SUBSCRIPTION_ID])
        return None if "method" in message else self._with_id(message.get("id"))

    def _with_id(self, id_: Any) -> int | None:
        """Return the exchange, the last if there are several, whose request has this id."""
        found = [
            exchange
            for exchange, post in self._posts.items()
            if isinstance(post.message, Mapping)
            and "id" in post.message
            and post.message["id"] == id_
            and type(post.message["id"]) is type(id_)
        ]
        return found[-1] if found else None
