"""A server in memory and in virtual time for the adapter kit to examine, by HTTP or stdio, and its faults.

What is sent goes through the same checks of the head as with a real server; what a fault changes is what the
server is given, or what it says.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from heapq import heappop, heappush
from itertools import count
from typing import Any, Final
from uuid import UUID

from attrs import define, field, frozen

from mcp_tasks_proto import (
    CallAskedInput,
    CallBecameTask,
    CallReturned,
    ConnectionClosed,
    DeliverInput,
    Effect,
    ErrorObject,
    ExchangeClosed,
    HmacSealer,
    Input,
    MessageReceived,
    OpenStream,
    Reply,
    RequestCancel,
    Send,
    ServerSettings,
    SessionEnded,
    StartTool,
    StartWork,
    StreamReady,
    StreamRequested,
    TaskSupport,
    TimePassed,
    ToolDeclaration,
    WorkAskedInput,
    WorkCompleted,
    WorkFailed,
    WorkProgressed,
    WorkStopped,
)
from mcp_tasks_proto.errors import RemoteProtocolError
from mcp_tasks_proto.legacy.server import DualEraServer, LegacyPolicy
from mcp_tasks_proto.limits import Limits
from mcp_tasks_proto.server import ServerEngine
from mcp_tasks_proto.testing import DictStore, ServerHost
from mcp_tasks_proto.testing.kit import (
    Act,
    Begun,
    Came,
    Close,
    Done,
    Ended,
    Fact,
    Kit,
    KitSettings,
    Next,
    Open,
    Pause,
    Post,
    Silent,
)
from mcp_tasks_proto.wire.http import EndpointPolicy, Refusal, check_head
from mcp_tasks_proto.wire.jsonrpc import decode, encode, error_message

START: Final = 1_700_000_000_000
DONE: Final[Mapping[str, Any]] = {"content": [{"type": "text", "text": "done"}]}
NAME: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {"name": {"type": "string"}},
    "required": ["name"],
}
LIMITS: Final = Limits(poll_interval_ms=50, cancel_grace_ms=500)
OF_MESSAGES: Final = Limits()
"""Bounds of what is read here."""


def form(message: str) -> dict[str, Any]:
    """Return a question."""
    params = {"mode": "form", "message": message, "requestedSchema": NAME}
    return {"method": "elicitation/create", "params": params}


# -- tools -------------------------------------------------------------------------------------------------

SUPPORT: Final[Mapping[str, TaskSupport]] = {
    "greet": TaskSupport.FORBIDDEN,
    "ship": TaskSupport.FORBIDDEN,
    "book": TaskSupport.FORBIDDEN,
    "render": TaskSupport.OPTIONAL,
    "spoil": TaskSupport.REQUIRED,
    "collapse": TaskSupport.REQUIRED,
    "commission": TaskSupport.REQUIRED,
    "idle": TaskSupport.REQUIRED,
    "flash": TaskSupport.REQUIRED,
    "wipe": TaskSupport.REQUIRED,
    "greet2": TaskSupport.FORBIDDEN,
}
"""Each tool is named after what it does; ``flash`` is gone after a second, and ``wipe`` destroys things."""

SCHEMAS: Final[Mapping[str, Mapping[str, Any]]] = {
    "greet": NAME,
    "ship": {
        "type": "object",
        "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
    },
}


def declared(name: str) -> ToolDeclaration:
    """Return a tool as the engine wants it."""
    definition: dict[str, Any] = {"name": name, "inputSchema": SCHEMAS.get(name, {"type": "object"})}
    if name == "wipe":
        definition["annotations"] = {"destructiveHint": True}
    return ToolDeclaration(name=name, definition=definition, task=SUPPORT[name])


@define(eq=False)
class Tools:
    """What the handlers and workers do."""

    called: list[str] = field(factory=list)
    _ids: count[int] = field(factory=lambda: count(1))
    _tool: dict[str, str] = field(factory=dict)
    _waiting: dict[str, int] = field(factory=dict)

    def work(self, effect: Effect) -> Iterable[tuple[int, Input]]:
        """Return what comes of an effect, each thing after so many milliseconds."""
        match effect:
            case StartTool():
                return self._start(effect)
            case StartWork(task_id=task_id):
                return self._work(task_id)
            case DeliverInput(task_id=task_id, answers=answers):
                self._waiting[task_id] -= len(answers)
                if self._waiting[task_id]:
                    return []
                return [(20, WorkCompleted(task_id=task_id, token=None, result=DONE))]
            case RequestCancel(task_id=task_id):
                return [(20, WorkStopped(task_id=task_id, token=None))]
        return []

    def _start(self, start: StartTool) -> list[tuple[int, Input]]:
        self.called.append(start.tool)
        exchange = start.exchange
        if start.tool == "book" and not start.answers:
            return [(5, CallAskedInput(exchange=exchange, requests={"who": form("Who?")}, state="asked"))]
        if not (start.can_create_task or start.must_create_task) or start.tool in (
            "greet",
            "greet2",
            "ship",
            "book",
        ):
            return [(5, CallReturned(exchange, DONE))]
        number = next(self._ids)
        task_id = str(UUID(int=number * 0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C834 % 2**128))
        self._tool[task_id] = start.tool
        if start.tool == "flash":
            return [(5, CallBecameTask(exchange=exchange, task_id=task_id, ttl_ms=1_000))]
        return [(5, CallBecameTask(exchange=exchange, task_id=task_id))]

    def _work(self, task_id: str) -> list[tuple[int, Input]]:
        match self._tool[task_id]:
            case "render":
                progress = WorkProgressed(task_id=task_id, token=None, status_message="half")
                return [(60, progress), (160, WorkCompleted(task_id=task_id, token=None, result=DONE))]
            case "spoil":
                erred = {**DONE, "isError": True}
                return [(60, WorkCompleted(task_id=task_id, token=None, result=erred))]
            case "collapse":
                error = ErrorObject(-32603, "it fell in")
                return [(60, WorkFailed(task_id=task_id, token=None, error=error))]
            case "commission":
                requests = {"who": form("Who?"), "where": form("Where?")}
                self._waiting[task_id] = len(requests)
                return [(30, WorkAskedInput(task_id=task_id, token=None, ask="a", requests=requests))]
        return []


# -- faults ------------------------------------------------------------------------------------------------


def _unread(post: Post) -> Post:
    return post


def _as_said(_: Post, fact: Fact) -> Fact | None:
    return fact


def _at_once(_: Post) -> int:
    return 0


@frozen(kw_only=True)
class Fault:
    """What is wrong with a server."""

    reads: Callable[[Post], Post] = _unread
    """What it makes of what it is sent."""
    says: Callable[[Post, Fact], Fact | None] = _as_said
    """What comes of what it should say; ``None``: nothing."""


# -- the server --------------------------------------------------------------------------------------------


@define(eq=False)
class _Exchange:
    post: Post
    facts: deque[Fact] = field(factory=deque)
    begun: bool = False


@define(eq=False, kw_only=True)
class KitServer:
    """A server, the network to it, and the time."""

    http: bool = True
    legacy: LegacyPolicy | None = LegacyPolicy.SERVE
    fault: Fault = Fault()
    tools: tuple[str, ...] = tuple(SUPPORT)[:-1]
    work: Tools = field(factory=Tools)
    settings: Mapping[str, Any] = field(factory=dict)
    callers: tuple[str | None, ...] = ("ada", "bob")
    tasks_enabled: bool = True
    travels_ms: Callable[[Post], int] = _at_once
    """How long what is said takes to get here."""
    sent: list[Post] = field(init=False, factory=list)
    host: ServerHost = field(init=False)
    now: int = field(init=False, default=START)
    _exchanges: dict[int, _Exchange] = field(init=False, factory=dict)
    _agenda: list[tuple[int, int, Callable[[], None]]] = field(init=False, factory=list)
    _order: count[int] = field(init=False, factory=count)

    def __attrs_post_init__(self) -> None:
        settings = ServerSettings(
            name="memory", version="1", sealer=HmacSealer([b"k" * 32]), limits=LIMITS, **self.settings
        )
        tools = [declared(name) for name in self.tools]
        engine: ServerEngine | DualEraServer
        if self.legacy is None:
            engine = ServerEngine(settings=settings, tools=tools)
        else:
            engine = DualEraServer(settings=settings, tools=tools, policy=self.legacy)
        self.host = ServerHost(engine=engine, store=DictStore(), now=START)
        self._tell(TimePassed())

    def examine(self, settings: KitSettings | None = None, **options: Any) -> Kit:
        """Have the kit examine it, to the end."""
        kit = Kit(settings or KitSettings(), self.http, **options)
        act = kit.begin(self.now)
        while act is not None:
            act = kit.take(self.carry(act), self.now)
        return kit

    def carry(self, act: Act) -> Fact:
        """Carry out an act."""
        match act:
            case Open(exchange=name, post=post):
                self.sent.append(post)
                self._exchanges[name] = _Exchange(post)
                self._send(name, self.fault.reads(post))
            case Next(exchange=name, within_ms=within_ms):
                exchange, until = self._exchanges[name], self.now + within_ms
                self._pass(min(until, self.now + self.travels_ms(exchange.post)))
                return self._next(exchange, until)
            case Close(exchange=name):
                del self._exchanges[name]
                if self.http:
                    self._tell(ExchangeClosed(name))
            case Pause(ms=ms):
                self._pass(self.now + ms)
        return Done()

    def _next(self, exchange: _Exchange, until: int) -> Fact:
        while not exchange.facts and self._step(until):
            pass
        return exchange.facts.popleft() if exchange.facts else Silent()

    # -- what is sent --------------------------------------------------------------------------------------

    def _send(self, name: int, post: Post) -> None:
        http = None
        if self.http:
            headers = [("Host", "localhost"), ("Content-Length", str(len(post.body))), *post.headers]
            raw = [(one.encode(), value.encode("latin-1")) for one, value in headers]
            sessions = EndpointPolicy(sessions=self.legacy is not None)
            head = check_head(post.verb, "/mcp", raw, sessions, OF_MESSAGES)
            if isinstance(head, Refusal):
                message = None if head.error is None else error_message(None, head.error)
                return self._reply(name, message, head.status)
            http = head
        principal = self.callers[post.caller]
        if http is not None and http.method != "POST":
            arrival = StreamRequested if http.method == "GET" else SessionEnded
            return self._tell(arrival(exchange=name, http=http, principal=principal))
        try:
            message = decode(post.body, OF_MESSAGES)
        except RemoteProtocolError as error:
            return self._reply(name, error_message(error.request_id, error.error), error.error.http_status)
        return self._tell(
            MessageReceived(
                exchange=name,
                message=message,
                connection=None if self.http else f"process {post.channel}",
                http=http,
                principal=principal,
                tasks_enabled=self.tasks_enabled,
                new_session=f"session-{name}" if self.http else None,
            )
        )

    # -- what comes ----------------------------------------------------------------------------------------

    def _tell(self, fact: Any) -> None:
        self.host.now = self.now
        for effect in self.host.give(fact):
            match effect:
                case Reply(exchange=int() as name, message=reply, http_status=status, session=session):
                    self._reply(name, reply, status, session)
                case Send(exchange=int() as name, message=message):
                    self._begin(name, 200, {"content-type": "text/event-stream", "x-accel-buffering": "no"})
                    self._put(name, Came(message))
                    self._after(0, partial(self._tell, StreamReady(name)))
                case OpenStream(exchange=int() as name):
                    self._begin(name, 200, {"content-type": "text/event-stream", "x-accel-buffering": "no"})
                case _:
                    for delay_ms, outcome in self.work.work(effect):
                        self._after(delay_ms, partial(self._tell, outcome))

    def _reply(self, name: int, message: Any, status: int, session: str | None = None) -> None:
        headers = {} if message is None else {"content-type": "application/json"}
        if session is not None:
            headers["mcp-session-id"] = session
        self._begin(name, status, headers)
        if message is not None:
            self._put(name, Came(decode(encode(message), OF_MESSAGES)))
        if self.http:
            self._put(name, Ended())

    def _begin(self, name: int, status: int, headers: Mapping[str, str]) -> None:
        exchange = self._exchanges.get(name)
        if self.http and exchange is not None and not exchange.begun:
            exchange.begun = True
            self._put(name, Begun(status, headers))

    def _put(self, name: int, fact: Fact) -> None:
        exchange = self._exchanges.get(name)
        if exchange is not None:
            said = self.fault.says(exchange.post, fact)
            if said is not None:
                exchange.facts.append(said)

    # -- time ----------------------------------------------------------------------------------------------

    def _after(self, delay_ms: int, act: Callable[[], None]) -> None:
        heappush(self._agenda, (self.now + delay_ms, next(self._order), act))

    def _pass(self, until: int) -> None:
        while self._step(until):
            pass

    def _step(self, until: int) -> bool:
        """Let the next thing happen that is due by then; return whether there was one. Else it is then."""
        due = [one for one in (self.host.deadline,) if one is not None]
        due += [self._agenda[0][0]] if self._agenda else []
        if not due or min(due) > until:
            self.now = max(self.now, until)
            return False
        self.now = max(self.now, min(due))
        if self._agenda and self._agenda[0][0] <= self.now:
            heappop(self._agenda)[2]()
        else:
            self._tell(TimePassed())
        return True


__all__ = ["START", "ConnectionClosed", "Fault", "KitServer", "Tools"]
