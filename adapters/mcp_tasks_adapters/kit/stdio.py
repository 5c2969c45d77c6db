"""Posts on stdio: processes of one server, and which post a line belongs to."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from attrs import define, field

from mcp_tasks_adapters.client.loop import ClientLoop, Process
from mcp_tasks_adapters.client.processes import look_after, see_off
from mcp_tasks_adapters.kit.carrier import Unfetched, in_time
from mcp_tasks_proto.errors import LimitExceeded, RemoteProtocolError
from mcp_tasks_proto.limits import Limits
from mcp_tasks_proto.testing.kit import SECOND_RESPONSE, Came, Ended, Fact, Post, Silent, Unreadable
from mcp_tasks_proto.vocabulary import SUBSCRIPTION_ID
from mcp_tasks_proto.wire.jsonrpc import decode, encode, is_id, notification_message
from mcp_tasks_proto.wire.stdio import LineDecoder, frame

__all__ = ["Sorter", "StdioCarrier"]

WRITE_MS: Final = 10_000
"""For a line to be taken."""
OVER: Final = 4096
"""Requests that are over and are remembered; a whole run has some hundreds."""
SHOWN_BYTES: Final = 80
"""The most that is told of a line that is no message."""
GRACE_MS: Final = 3_000
"""For a server to end when its stdin is closed, again when it is told to, and again when it is killed."""


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
                look_after(channel.process)
        except OSError as error:
            channel.sorter.lost(f"the server cannot be started: {error}", unsent=True)
        else:
            await self._write(channel, channel.process, frame(post.body))

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
        """Take no more of what belongs to it, and tell the server where it goes on."""
        channel = self._channel_of.pop(exchange)
        line = channel.sorter.drop(exchange)
        process = channel.process
        if line is not None and process is not None:
            await self._write(channel, process, line)

    async def _write(self, channel: _Channel, process: Process, line: bytes) -> None:
        try:
            if not await self._loop.within(WRITE_MS / 1000, lambda: process.send(line)):
                channel.process = None  # half a line may have been written
                channel.sorter.lost("the server does not read")
                await self._end(process)
        except OSError as error:
            channel.sorter.lost(f"the server cannot be written to: {error}")

    async def finish(self) -> None:
        """End every process."""
        for channel in self._channels.values():
            if channel.process is not None:
                await self._end(channel.process)
        self._channels.clear()

    async def _end(self, process: Process) -> int | None:
        return await see_off(process, self._loop, GRACE_MS / 1000)


@define(eq=False)
class _Channel:
    sorter: Sorter
    process: Process | None = None


@define(eq=False)
class Sorter:
    """Tells to which post a line belongs, without I/O."""

    limits: Limits
    facts: dict[int, Unfetched] = field(init=False, factory=dict)
    """What has come for each exchange that is open, and was not fetched yet."""
    _posts: dict[int, Post] = field(init=False, factory=dict)
    _lines: LineDecoder = field(init=False)
    _answered: set[int] = field(init=False, factory=set)
    _over: dict[tuple[type, str | int], bool] = field(init=False, factory=dict)
    """Ids of requests that are over, and whether they were answered."""
    _twice: bool = field(init=False, default=False)
    """Whether a request was answered again while it was not over yet, which is still to be told."""

    def __attrs_post_init__(self) -> None:
        self._lines = LineDecoder(self.limits)

    def add(self, exchange: int, post: Post) -> None:
        """There is a new exchange."""
        self._posts[exchange] = post
        self.facts[exchange] = Unfetched()
        if self._twice:
            self._twice = False
            self._give(exchange, Unreadable(SECOND_RESPONSE))

    def drop(self, exchange: int) -> bytes | None:
        """An exchange is over; return the line that says so to the server, if it was not answered."""
        post = self._posts.pop(exchange)
        del self.facts[exchange]
        if post.era == "none" or not isinstance(post.message, Mapping) or "id" not in post.message:
            return None
        id_ = post.message["id"]
        answered = exchange in self._answered
        if is_id(id_) and post.method is not None:
            self._over[type(id_), id_] = answered
            if len(self._over) > OVER:
                del self._over[next(iter(self._over))]
        if answered or post.method is None:
            return None
        return frame(encode(notification_message("notifications/cancelled", {"requestId": id_})))

    def receive(self, data: bytes) -> None:
        """Take in bytes from stdout."""
        for line in self._lines.feed(data):
            if isinstance(line, LimitExceeded):
                self._give(None, _too_large(line))
                continue
            try:
                message = decode(line, self.limits)
            except LimitExceeded as overrun:
                self._give(None, _too_large(overrun))
            except RemoteProtocolError:
                beginning = line[:SHOWN_BYTES].decode("utf-8", "replace")
                more = "…" if len(line) > SHOWN_BYTES else ""
                self._give(None, Unreadable(f"a line that is not JSON ({beginning!r}{more})"))
            else:
                self._sort(message, len(line))

    def lost(self, trouble: str, *, unsent: bool = False) -> None:
        """Nothing more comes for any of the exchanges."""
        self._lines = LineDecoder(self.limits)
        for facts in self.facts.values():
            facts += [Ended(trouble, unsent=unsent)]

    def _sort(self, message: Any, size_bytes: int) -> None:
        known, id_ = _named(message)
        named = self._with_id(id_) if known else []
        exchange = named[-1] if named else None
        is_response = known and "method" not in message
        if exchange is None and known and is_id(id_) and (type(id_), id_) in self._over:
            if is_response and self._over[type(id_), id_]:
                self._give(None, Unreadable(SECOND_RESPONSE))
            return  # what still comes for a request that was cancelled is of no interest
        if exchange is not None and is_response:
            self._twice = self._twice or (exchange in self._answered and len(named) == 1)
            self._answered.add(exchange)
        self._give(exchange, Came(message, size_bytes))

    def _give(self, exchange: int | None, fact: Fact) -> None:
        """Give a fact to its exchange; what belongs to none goes to the one that was opened last."""
        if exchange is None and self.facts:
            exchange = max(self.facts)
        if exchange is not None:
            self.facts[exchange] += [fact]

    def _with_id(self, id_: Any) -> list[int]:
        """Return the exchanges whose request has this id; where there are several, the last is meant."""
        return [
            exchange
            for exchange, post in self._posts.items()
            if isinstance(post.message, Mapping)
            and "id" in post.message
            and post.message["id"] == id_
            and type(post.message["id"]) is type(id_)
        ]


def _too_large(overrun: LimitExceeded) -> Unreadable:
    return Unreadable(f"a line over a limit of this side ({overrun.limit})", over_limit=True)


def _named(message: Any) -> tuple[bool, Any]:
    """Return whether a message names a request, and the id of that."""
    if not isinstance(message, Mapping):
        return False, None
    params = message.get("params")
    meta = params.get("_meta") if isinstance(params, Mapping) else None
    if isinstance(meta, Mapping) and SUBSCRIPTION_ID in meta:
        return True, meta[SUBSCRIPTION_ID]
    return "method" not in message, message.get("id")
