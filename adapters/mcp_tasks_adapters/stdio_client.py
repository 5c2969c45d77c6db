"""Requests to a server on stdio: one process, one channel, and who an answer is for (STD.1).

:class:`StdioDialogue` is what is said, without I/O; :class:`StdioTransport` sees to the process, on
somebody's loop. A server that dies is started again when there is a request for it (core, "stdio").
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from secrets import token_urlsafe
from typing import Any, Final

from attrs import define, field

from mcp_tasks_adapters.client.loop import ClientLoop, Outgoing, Process, Unasked
from mcp_tasks_adapters.client.processes import look_after, see_off
from mcp_tasks_adapters.client.turns import Turn, pieces
from mcp_tasks_adapters.driver import Event
from mcp_tasks_adapters.jobs import Errand
from mcp_tasks_adapters.toolkit.outcomes import describe
from mcp_tasks_proto.errors import LimitExceeded, LocalProtocolError, RemoteProtocolError
from mcp_tasks_proto.legacy.messages import ConnectionLost, SendLegacy, ServerAsked
from mcp_tasks_proto.legacy.vocabulary import TOOLS_CHANGED
from mcp_tasks_proto.limits import Limits
from mcp_tasks_proto.requester import (
    Fault,
    NotificationReceived,
    RequestFailed,
    ResponseReceived,
)
from mcp_tasks_proto.timers import exponential_backoff
from mcp_tasks_proto.vocabulary import PROGRESS_TOKEN, SUBSCRIPTION_ID
from mcp_tasks_proto.wire.jsonrpc import (
    Notification,
    Request,
    Response,
    decode,
    encode,
    notification_message,
    parse_message,
)
from mcp_tasks_proto.wire.stdio import LineDecoder, frame

__all__ = ["StdioDialogue", "StdioTransport"]

Fact = ResponseReceived | NotificationReceived | ServerAsked | RequestFailed
Report = Callable[[Fact], None]

_log = logging.getLogger("mcp_tasks_adapters")


COMPLAINTS: Final = 16
"""How often the log has it that a server writes what it should not, in all its lives."""


@define(eq=False)
class _Asked:
    """A request that awaits its answer."""

    method: str
    """Empty: a response, or a notification, to which there is no answer."""
    progress_token: Any = None
    in_session: bool = False
    """Whether it is of 2025-11-25, and means nothing to another process."""
    written: bool = False


class StdioDialogue:
    """What is said with a server, over all its lives.

    A request's JSON-RPC id is the engine's name for it, which is never used twice.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._lines = LineDecoder(limits)
        self._asked: dict[int, _Asked] = {}
        self._output: dict[object, bytes] = {}  # in order; requests under their id
        self._taken: list[int] = []  # what was taken to be written, and has no answer
        self._complaints = 0

    @property
    def has_output(self) -> bool:
        """Whether something waits to be written."""
        return bool(self._output)

    def ask(self, request: Outgoing) -> None:
        """Have a message written. Raises :class:`LocalProtocolError` for what is not JSON."""
        message = request.message or {}
        self._output[request.request] = frame(encode(message))
        if "id" in message and "method" in message:
            token = message["params"].get("_meta", {}).get(PROGRESS_TOKEN)
            asked = _Asked(message["method"], token)
        else:
            asked = _Asked("")
        asked.in_session = isinstance(request, SendLegacy)
        self._asked[request.request] = asked

    def drop(self, request: int) -> dict[str, Any] | None:
        """Nobody waits for this request any more; return the message that will say so, if one has to."""
        asked = self._asked.pop(request, None)
        if asked is None:
            return None
        if not asked.written:
            del self._output[request]
            return None
        if not asked.method:
            return None
        message = notification_message("notifications/cancelled", {"requestId": request})
        self._output[object()] = frame(encode(message))
        return message

    def take_output(self) -> bytes:
        """Return the next message to write; empty: there is none. It counts as sent from now on."""
        if not self._output:
            return b""
        name = next(iter(self._output))
        if isinstance(name, int):
            asked = self._asked[name]
            asked.written = True
            if not asked.method:
                self._taken.append(name)
        return self._output.pop(name)

    def sent(self) -> list[Fact]:
        """Return what becomes of what was written and has no answer: that it was."""
        over = [name for name in self._taken if self._asked.pop(name, None) is not None]
        self._taken.clear()
        return [ResponseReceived(request=name, message=None) for name in over]

    def receive(self, data: bytes) -> list[Fact]:
        """Take in bytes from the server; return what they say to requests that await an answer."""
        facts: list[Fact] = []
        for line in self._lines.feed(data):
            fact = self._too_long() if isinstance(line, LimitExceeded) else self._take_line(line)
            if fact is not None:
                facts.append(fact)
        return facts

    def lost(self, reason: str) -> list[Fact]:
        """The server is gone: return what becomes of what it was sent.

        What it was not sent stays for the next one; but what was said in its session goes with that.
        """
        self._lines = LineDecoder(self._limits)
        written = [name for name, asked in self._asked.items() if asked.written]
        for name in list(self._output):
            if not isinstance(name, int):
                del self._output[name]  # there is nobody left to be told that an answer is not wanted
        moot = [name for name in self._output if isinstance(name, int) and self._asked[name].in_session]
        for name in moot:
            del self._output[name]
        return [self._failed(name, reason, sent=name in written) for name in (*written, *moot)]

    def refuse(self, reason: str) -> list[Fact]:
        """There is no server: return what becomes of the requests that were not sent."""
        unsent = [name for name, asked in self._asked.items() if not asked.written]
        for name in unsent:
            del self._output[name]
        return [self._failed(name, reason, sent=False) for name in unsent]

    def _failed(self, name: int, reason: str, *, sent: bool) -> RequestFailed:
        del self._asked[name]
        return RequestFailed(name, reason, sent=sent)

    # -- who it is for -------------------------------------------------------------------------------------

    def _take_line(self, line: bytes) -> Fact | None:
        try:
            message = decode(line, self._limits)
        except RemoteProtocolError as error:
            self._complain("the server wrote a line to stdout that is no message: %s", error)
            return None
        match parse_message(message):
            case Response(id=int() as name) if self._heard_of(name) is not None:
                del self._asked[name]
                return ResponseReceived(request=name, message=message)
            case Notification(method="notifications/cancelled", params=params):
                return self._cancelled(params.get("requestId")) or NotificationReceived(0, message)
            case Notification() as notification:
                meant = self._meant_by(notification)
                if meant is None and notification.method != TOOLS_CHANGED:
                    return None
                return NotificationReceived(meant or 0, message)
            case Request():
                return ServerAsked(message=message, new_id=token_urlsafe(24))
        return None

    def _heard_of(self, name: Any) -> _Asked | None:
        """Return what is asked under an id, if the server can know of it: a guess is no answer."""
        asked = self._asked.get(name) if type(name) is int else None
        return asked if asked is not None and asked.written else None

    def _cancelled(self, name: Any) -> Fact | None:
        """A server may end no request of ours but a listen stream, whose result is of no use then."""
        asked = self._heard_of(name)
        if asked is None or asked.method != "subscriptions/listen":
            return None
        return self._failed(name, "the server ended the stream", sent=True)

    def _meant_by(self, notification: Notification) -> int | None:
        """Return the request that a notification belongs to; all of them share the channel."""
        meta = notification.params.get("_meta")
        if isinstance(meta, dict) and SUBSCRIPTION_ID in meta:
            name = meta[SUBSCRIPTION_ID]
            return name if type(name) is int and name in self._asked else None
        if notification.method == "notifications/progress":
            token = notification.params.get(PROGRESS_TOKEN)
            named = [name for name, asked in self._asked.items() if asked.progress_token == token]
            return named[-1] if named and token is not None else None
        return self._only_call()

    def _only_call(self) -> int | None:
        """Return the one request in flight that can have messages on its way; ``None``: it may be several."""
        calls = [name for name, asked in self._asked.items() if asked.method == "tools/call"]
        return calls[0] if len(calls) == 1 else None

    def _too_long(self) -> Fact | None:
        """A line was skipped. Whose it was nobody knows, unless there is but one that it can be for."""
        self._complain("the server wrote a line that is over Limits.message_bytes")
        waiting = [
            name
            for name, asked in self._asked.items()
            if asked.written and asked.method not in ("", "subscriptions/listen")
        ]
        if len(waiting) != 1:
            return None
        reason = "the server's answer is over a limit of this side (Limits.message_bytes)"
        return self._failed(waiting[0], reason, sent=True)

    def _complain(self, what: str, *more: object) -> None:
        """Log what is wrong with a server, a number of times at most: one may do nothing else (LIM.3)."""
        self._complaints += 1
        if self._complaints <= COMPLAINTS:
            _log.warning(what, *more)
        if self._complaints == COMPLAINTS:
            _log.warning("no more is said of what this server writes")


def _nobody(_: Unasked) -> None:
    """Where nobody wants to hear of what belongs to no request."""


# -- the process ---------------------------------------------------------------------------------------------


STEADY_MS: Final = 10_000
"""A server that lived so long is started again at once."""
FIRST_PAUSE_MS: Final = 250
LAST_PAUSE_MS: Final = 30_000
"""One that did not, from the second time on, after the first, then ever longer, up to the last."""


@define(eq=False)
class StdioTransport:
    """The way to a server on stdio. ``spawn`` starts its process, and raises ``OSError`` where it cannot."""

    _loop: ClientLoop
    _spawn: Callable[[], Awaitable[Process]]
    _limits: Limits
    _dialogue: StdioDialogue = field(init=False)
    _reports: dict[int, Report] = field(init=False, factory=dict)
    _process: Process | None = field(init=False, default=None)
    _life: Errand[None] | None = field(init=False, default=None)
    _life_over: Event = field(init=False)
    _writer: Errand[None] | None = field(init=False, default=None)
    _unasked: Callable[[Any], None] = field(init=False, default=_nobody)
    _to_write: Event = field(init=False)
    _began_ms: int = field(init=False, default=0)
    _short_lives: int = field(init=False, default=0)
    """How many one after the other."""

    def __attrs_post_init__(self) -> None:
        self._dialogue = StdioDialogue(self._limits)
        self._to_write = self._loop.event()
        self._life_over = self._loop.event()

    # -- for the driver ------------------------------------------------------------------------------------

    speaks_http: Final = False

    def unasked(self, report: Callable[[Unasked], None]) -> None:
        """Have it told what the server says that belongs to no request."""
        self._unasked = report

    async def open(self) -> None:
        """Start the server. Raises ``OSError``."""
        self._process = await self._started()
        self._begin_life()

    def send(self, request: Outgoing, report: Report, *, once: bool = False) -> None:
        """Send a request, and report what comes of it. Here everything is sent ``once`` at most."""
        try:
            self._dialogue.ask(request)
        except LocalProtocolError as error:
            report(RequestFailed(request.request, str(error), sent=False, fault=Fault.CALLER))
            return
        self._reports[request.request] = report
        if self._life is None:
            self._begin_life()
        self._to_write.set()

    def stop(self, request: int) -> Mapping[str, Any] | None:
        """Cancel a request; return the message that says so, if the server has to be told."""
        self._reports.pop(request, None)
        message = self._dialogue.drop(request)
        self._to_write.set()
        return message

    async def close(self) -> None:
        """End the server: close its stdin, and wait; a server that does not end by itself is ended.

        Takes three times ``Limits.shutdown_grace_ms`` at the most.
        """
        if self._life is not None:
            life, self._life = self._life, None
            life.cancel()
            await self._life_over.wait()
        if self._process is not None:
            await self._end(self._process)

    def _tell(self, facts: list[Fact]) -> None:
        for fact in facts:
            if isinstance(fact, ServerAsked) or fact.request == 0:
                self._unasked(fact)
                continue
            last = not isinstance(fact, NotificationReceived)
            report = self._reports.pop(fact.request, None) if last else self._reports.get(fact.request)
            if report is not None:
                report(fact)

    # -- one life ------------------------------------------------------------------------------------------

    def _begin_life(self) -> None:
        self._life_over = self._loop.event()
        self._life = Errand(self._loop, self._live, self._life_ended)

    async def _live(self) -> None:
        """Talk with a server until it ends, or cannot be started."""
        try:
            if self._process is None:
                await self._pause()
                self._process = await self._started()
        except OSError as error:
            self._tell(self._dialogue.refuse(f"the server cannot be started: {error}"))
            return
        self._began_ms = self._loop.now_ms()
        self._writer = Errand(self._loop, self._write, lambda _: None)
        try:
            await self._read(self._process)
        except OSError:
            pass  # nothing comes any more, whatever the reason
        except Exception as error:
            _log.error("the client of a stdio server failed: %s", describe(error))
        finally:
            self._writer.cancel()
        code = await self._end(self._process)
        self._process = None
        lived_ms = self._loop.now_ms() - self._began_ms
        self._short_lives = 0 if lived_ms >= STEADY_MS else self._short_lives + 1
        lost = self._dialogue.lost(f"the server ended (exit code {code})")
        self._unasked(ConnectionLost())
        self._tell(lost)

    async def _started(self) -> Process:
        process = await self._spawn()
        look_after(process)
        return process

    async def _pause(self) -> None:
        """Wait before a server is started that ends again and again (LIM.3)."""
        if self._short_lives > 1:
            pause_ms = exponential_backoff(self._short_lives - 1, FIRST_PAUSE_MS, LAST_PAUSE_MS)
            await self._loop.within(pause_ms / 1000, self._loop.event().wait)

    def _life_ended(self, _: None) -> None:
        self._life_over.set()
        if self._life is None:
            return  # this client is being closed
        self._life = None
        if self._dialogue.has_output:
            self._begin_life()

    async def _read(self, process: Process) -> None:
        while data := await process.receive():
            turn = Turn(self._loop)
            for piece in pieces(data):
                self._tell(self._dialogue.receive(piece))
                await turn.share()

    async def _write(self) -> None:
        while self._process is not None:
            while data := self._dialogue.take_output():
                try:
                    await self._process.send(data)
                except OSError:
                    self._process.terminate()  # a server that cannot be asked is of no use
                    return
                self._tell(self._dialogue.sent())
            self._to_write = self._loop.event()
            await self._to_write.wait()

    async def _end(self, process: Process) -> int | None:
        return await see_off(process, self._loop, self._limits.shutdown_grace_ms / 1000)
