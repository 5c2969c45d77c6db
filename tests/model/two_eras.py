"""One requester and one server of both eras, that speak either over HTTP or on stdio, in virtual time.

Nothing goes wrong on the way, so whatever differs between the eras is theirs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from functools import partial
from heapq import heappop, heappush
from itertools import count
from typing import Any, Final

from attrs import define, field, frozen
from mcp_tasks_adapters.stdio_client import StdioDialogue

from mcp_tasks_proto import (
    CallAskedInput,
    CallFailed,
    CallReturned,
    Effect,
    ExchangeClosed,
    HmacSealer,
    HttpHead,
    Input,
    Limits,
    MessageReceived,
    OpenStream,
    Reply,
    Send,
    ServerSettings,
    SessionEnded,
    StartTool,
    StreamReady,
    StreamRequested,
    TaskRecord,
    TaskSupport,
    TimePassed,
    ToolDeclaration,
)
from mcp_tasks_proto.inputs import LegacyInput
from mcp_tasks_proto.legacy.messages import Era, SendLegacy, ServerAsked, StreamOpened
from mcp_tasks_proto.legacy.server import DualEraServer, LegacyPolicy
from mcp_tasks_proto.requester import (
    AnswerGiven,
    HttpReply,
    NotificationReceived,
    Outcome,
    Prompt,
    ResponseReceived,
    SendRequest,
    StopRequest,
)
from mcp_tasks_proto.testing import ServerHost
from mcp_tasks_proto.vocabulary import PROTOCOL_VERSION
from mcp_tasks_proto.wire.http import request_headers
from tests.model.workshop import BROKE, DONE, ERRED, START, Plan, Workshop, question
from tests.unit.legacy_requester_world import LegacyHost, make_dual

__all__ = ["Ending", "Script", "play"]

PASSAGE_MS: Final = 5
THINKING_MS: Final = 700
SOON_MS: Final = 60_000
"""Longer than anything takes that ends by itself."""
TOOLS: Final = {"render": TaskSupport.OPTIONAL, "greet": TaskSupport.FORBIDDEN}


@frozen(kw_only=True)
class Script:
    """What happens in one call, whatever the era."""

    plan: Plan
    """What the tool does: as a task, or of a plain call the questions and the end."""
    as_task: bool = True
    willing: tuple[bool, ...] = ()
    """Which questions are answered, and which declined, in their order; those after that are answered."""
    silent_after: int | None = None
    """The question from which on nobody answers any more."""
    cancels: bool = False
    """Whether the caller cancels when nothing else happens any more."""
    waits: bool = True
    """Whether it then waits for what the server says of that."""


@frozen(kw_only=True)
class Ending:
    """What there was to see, on both sides."""

    outcome: Outcome
    asked: list[Any]
    """What somebody was asked, in order."""
    told: list[Any]
    """The answers that reached the tool, by its own names."""
    record: TaskRecord | None
    """How the task stands in the end, if there is one."""


@define(eq=False)
class Stage(Workshop):
    """A workshop that has a tool for plain calls, too: it asks and ends as planned, and does nothing else."""

    heard: list[Any] = field(factory=list)
    """What plain calls were answered."""

    def work(self, effect: Effect) -> Iterable[tuple[int, Input]]:
        """Carry out one effect."""
        match effect:
            case StartTool(tool="greet", exchange=exchange, state=done, answers=answers):
                self.heard += sorted(answers.items())
                return [(20, self._go_on_plainly(exchange, done or 0))]
            case _:
                return super().work(effect)

    def _go_on_plainly(self, exchange: Any, done: int) -> Input:
        rounds = [kind for _, kind in self.plan.steps if kind != "progress"]
        if done < len(rounds):
            names = ("a", "b") if rounds[done] == "ask twice" else ("a",)
            requests = {name: question(f"{done}{name}?") for name in names}
            return CallAskedInput(exchange, requests, state=done + 1)
        if self.plan.end == "fail":
            return CallFailed(exchange, BROKE)
        return CallReturned(exchange, ERRED if self.plan.end == "err" else DONE)


@define(eq=False, kw_only=True)
class Line:
    """The two of them, and what carries the one's messages to the other."""

    script: Script
    stage: Stage
    requester: LegacyHost
    server: ServerHost
    channel: StdioDialogue | None = None
    """Of stdio; over HTTP there is none, and each request has a connection of its own."""
    asked: list[Any] = field(init=False, factory=list)
    _exchanges: count[int] = field(init=False, factory=lambda: count(1))
    _now: int = field(init=False, default=START)
    _agenda: list[tuple[int, int, Callable[[], None]]] = field(init=False, factory=list)
    _order: count[int] = field(init=False, factory=count)

    # -- time ------------------------------------------------------------------------------------------------

    def run(self, milliseconds: int, *, until: Callable[[], bool] = lambda: False) -> None:
        """Let time pass, so much at most."""
        last = self._now + milliseconds
        while not until() and (when := self._next()) is not None and when <= last:
            self._set_clocks(max(self._now, when))
            if self._agenda and self._agenda[0][0] <= self._now:
                heappop(self._agenda)[2]()
            elif self.requester.deadline is not None and self.requester.deadline <= self._now:
                self.tell_requester(TimePassed())
            else:
                self.tell_server(TimePassed())
        if not until():
            self._set_clocks(last)

    def _next(self) -> int | None:
        times = [when for when, _, _ in self._agenda[:1]]
        times += [when for when in (self.requester.deadline, self.server.deadline) if when is not None]
        return min(times, default=None)

    def _set_clocks(self, now: int) -> None:
        self._now = self.requester.now = self.server.now = now

    def _after(self, milliseconds: int, act: Callable[[], None]) -> None:
        heappush(self._agenda, (self._now + milliseconds, next(self._order), act))

    # -- the server's side -----------------------------------------------------------------------------------

    def tell_server(self, fact: Input | LegacyInput) -> None:
        """Hand a fact to the server, and see to what comes of it."""
        for effect in self.server.give(fact):
            match effect:
                case Reply(exchange=int()) | Send(exchange=int()) if self.channel is not None:
                    if effect.message is not None:
                        line = json.dumps(effect.message).encode() + b"\n"
                        self._after(PASSAGE_MS, partial(self._read, self.channel, line))
                    if isinstance(effect, Send):
                        self._after(PASSAGE_MS, partial(self.tell_server, StreamReady(effect.exchange)))
                case Reply(exchange=int() as number, message=message, http_status=status, session=session):
                    http = HttpReply(status=status, session=session)
                    answer = ResponseReceived(request=number, message=message, http=http)
                    self._after(PASSAGE_MS, partial(self._deliver, number, answer))
                case Send(exchange=int() as number, message=message):
                    asks = "id" in message
                    said = NotificationReceived(number, message)
                    asked = ServerAsked(request=number, message=message, new_id=f"received-{number}")
                    self._after(PASSAGE_MS, partial(self._deliver, number, asked if asks else said))
                    self._after(PASSAGE_MS, partial(self.tell_server, StreamReady(number)))
                case OpenStream(exchange=int() as number):
                    self._after(PASSAGE_MS, partial(self._deliver, number, StreamOpened(number)))
                case _:
                    for delay_ms, outcome in self.stage.work(effect):
                        self._after(delay_ms, partial(self.tell_server, outcome))

    def _deliver(self, number: int, fact: Any) -> None:
        """Hand a fact to the requester, unless it has closed the connection that it comes on."""
        if number in self.requester.in_flight:
            self.tell_requester(fact)

    def _read(self, channel: StdioDialogue, line: bytes) -> None:
        for fact in channel.receive(line):
            self.tell_requester(fact)

    # -- the requester's side --------------------------------------------------------------------------------

    def tell_requester(self, fact: Any) -> None:
        """Hand a fact to the requester, and see to what comes of it."""
        self.see_to(self.requester.give(fact))

    def see_to(self, effects: Iterable[Any]) -> None:
        """Carry out what the requester said."""
        for effect in effects:
            match effect:
                case SendRequest() | SendLegacy() if self.channel is not None:
                    self.channel.ask(effect)
                    self._write(self.channel)
                case StopRequest(request=number) if self.channel is not None:
                    self.channel.drop(number)
                    self._write(self.channel)
                case SendRequest() | SendLegacy():
                    self._after(PASSAGE_MS, partial(self.tell_server, arrival(effect)))
                case StopRequest(request=number):
                    self._after(PASSAGE_MS, partial(self.tell_server, ExchangeClosed(number)))
                case Prompt():
                    self._ask(effect)

    def _write(self, channel: StdioDialogue) -> None:
        while line := channel.take_output():
            exchange, message = next(self._exchanges), json.loads(line)
            arrived = MessageReceived(exchange=exchange, message=message, connection="stdio")
            self._after(PASSAGE_MS, partial(self.tell_server, arrived))
        for fact in channel.sent():
            self._after(0, partial(self.tell_requester, fact))

    def _ask(self, prompt: Prompt) -> None:
        number = len(self.asked)
        self.asked.append(prompt.request)
        if self.script.silent_after is not None and number >= self.script.silent_after:
            return
        willing = self.script.willing[number] if number < len(self.script.willing) else True
        response = (
            {"action": "accept", "content": {"name": f"Ada {number}"}} if willing else {"action": "decline"}
        )
        given = AnswerGiven(prompt.call, prompt.key, response)
        self._after(THINKING_MS, partial(self.tell_requester, given))


def arrival(sent: SendRequest | SendLegacy) -> Input | LegacyInput:
    """Return what the server sees of a message over HTTP, where an exchange is the request's number."""
    number = sent.request
    if isinstance(sent, SendRequest):
        params = sent.message["params"]
        version = params["_meta"][PROTOCOL_VERSION]
        named = request_headers(sent.message["method"], params, version, sent.parameters)
        head = HttpHead(headers={name.lower(): value for name, value in named})
        return MessageReceived(exchange=number, message=sent.message, http=head)
    headers = {"mcp-protocol-version": sent.version, "mcp-session-id": sent.session}
    given = {name: value for name, value in headers.items() if value is not None}
    head = HttpHead(headers=given, method=sent.verb)
    match sent.verb:
        case "GET":
            return StreamRequested(exchange=number, http=head)
        case "DELETE":
            return SessionEnded(exchange=number, http=head)
        case _:
            session = f"session-{number:020}"
            return MessageReceived(exchange=number, message=sent.message, http=head, new_session=session)


def play(script: Script, era: Era, *, http: bool) -> Ending:
    """Play a script in one era, over HTTP or on stdio."""
    settings = ServerSettings(
        name="test", version="1", sealer=HmacSealer([b"k" * 32]), limits=Limits(cancel_grace_ms=SOON_MS)
    )
    tools = [
        ToolDeclaration(name=name, definition={"name": name, "inputSchema": {"type": "object"}}, task=support)
        for name, support in TOOLS.items()
    ]
    engine = DualEraServer(settings=settings, tools=tools, policy=LegacyPolicy.SERVE)
    requester = make_dual(era=era, http=http, listen=True)
    requester.slow = True
    stage = Stage(script.plan)
    line = Line(
        script=script,
        stage=stage,
        requester=requester,
        server=ServerHost(engine=engine),
        channel=None if http else StdioDialogue(Limits()),
    )
    line.run(0)
    line.tell_server(TimePassed())
    call = requester.call("render" if script.as_task else "greet")
    line.see_to(requester.effects[:])
    line.run(SOON_MS, until=lambda: call in requester.outcomes)
    if script.cancels:
        before = len(requester.effects)
        requester.cancel(call, wait=script.waits)
        line.see_to(requester.effects[before:])
        line.run(2 * SOON_MS, until=lambda: call in requester.outcomes)
    line.run(2 * SOON_MS)
    records = list(line.server.store.records.values())
    told = [sorted(answers.items()) for answers in stage.answers.values()] or [stage.heard]
    return Ending(
        outcome=requester.outcomes[call], asked=line.asked, told=told, record=records[0] if records else None
    )
