"""Servers of one era and of both, and what anybody says to them (NEG, WIRE, LEG). The input came on stdio.

The tools behind are obliging: ``render`` becomes a task that asks for input and ends when it is answered or
told to stop, ``ask`` asks before, and all others answer at once.

* Nothing that a peer says makes an engine raise.
* Each request gets at most one reply, under its own id; what needs no input from outside gets one at once.
  Notifications and responses get none.
* Errors have the codes of the contract, and those about unknown tasks one text. Modern results say what they
  are, and whose.
* When the connection ends nothing of it is left.
"""

from __future__ import annotations

from collections.abc import Hashable
from itertools import count
from typing import Any, Final

from attrs import define, field

from mcp_tasks_proto import (
    CallAskedInput,
    CallBecameTask,
    CallReturned,
    ConnectionClosed,
    DeliverInput,
    ErrorCode,
    ErrorObject,
    ExchangeClosed,
    Forward,
    HmacSealer,
    Limits,
    Reply,
    RequestCancel,
    Send,
    ServerEngine,
    ServerSettings,
    StartTool,
    StartWork,
    StreamReady,
    TimePassed,
    ToolDeclaration,
    WorkAskedInput,
    WorkCompleted,
    WorkStopped,
)
from mcp_tasks_proto.errors import LimitExceeded, RemoteProtocolError
from mcp_tasks_proto.legacy.server import DualEraServer, LegacyPolicy
from mcp_tasks_proto.settings import TaskSupport
from mcp_tasks_proto.testing import ServerHost
from mcp_tasks_proto.vocabulary import INPUT_METHODS
from mcp_tasks_proto.wire.jsonrpc import Notification, Request, Response, decode, encode, parse_message
from mcp_tasks_proto.wire.stdio import LineDecoder

LIMITS: Final = Limits(message_bytes=2048, message_depth=12, exchanges=8, sessions=2, tasks=4)
SETTINGS: Final = ServerSettings(name="fuzz", version="1", sealer=HmacSealer([b"k" * 32]), limits=LIMITS)
TOOLS: Final = tuple(
    ToolDeclaration(name=name, definition={"name": name, "inputSchema": {"type": "object"}}, task=support)
    for name, support in (
        ("render", TaskSupport.OPTIONAL),
        ("ask", TaskSupport.FORBIDDEN),
        ("ready", TaskSupport.OPTIONAL),
    )
)
FORM: Final = {
    "method": "elicitation/create",
    "params": {
        "message": "Your name?",
        "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}},
    },
}
DONE: Final = {"content": [{"type": "text", "text": "done"}]}
CONNECTION: Final = "stdio"
CODES: Final = frozenset(map(int, ErrorCode))
HELD: Final = frozenset({"subscriptions/listen"})
"""Methods whose reply may be long in coming."""
HELD_BY_EITHER: Final = HELD | INPUT_METHODS | {"tasks/result"}
"""Those where 2025-11-25 is served as well: a call waits for what its client is asked on the way."""


def check(data: bytes) -> None:
    """Say it to either server."""
    _converse(data, ServerEngine(settings=SETTINGS, tools=TOOLS))
    _converse(data, DualEraServer(settings=SETTINGS, tools=TOOLS, policy=LegacyPolicy.SERVE))


def _converse(data: bytes, engine: ServerEngine | DualEraServer) -> None:
    room = Room(ServerHost(engine=engine))
    for line in LineDecoder(LIMITS).feed(data):
        if isinstance(line, LimitExceeded):
            continue
        try:
            message = decode(line, LIMITS)
        except RemoteProtocolError:
            continue
        room.say(message)
    room.leave()


@define(eq=False)
class Room:
    """One server, its tools and its one client."""

    host: ServerHost
    said: dict[Hashable, Any] = field(init=False, factory=dict)
    """Every message, by its exchange."""
    replied: dict[Hashable, Any] = field(init=False, factory=dict)
    unknown: set[str] = field(init=False, factory=set)
    """How the answers about unknown tasks read."""
    _tasks: count[int] = field(init=False, factory=lambda: count(1))
    _tokens: count[int] = field(init=False, factory=lambda: count(1))
    _seen: int = field(init=False, default=0)

    def say(self, message: Any) -> None:
        """Send a message, have the tools do what they do, and look at the replies."""
        exchange = self.host.send(message, principal="ada", connection=CONNECTION)
        self.said[exchange] = message
        self._work()
        match parse_message(message):
            case Request(method=method):
                held = HELD if isinstance(self.host.engine, ServerEngine) else HELD_BY_EITHER
                assert exchange in self.replied or method in held, "WIRE.3: a request without a reply"
            case Notification() | Response():
                assert self.replied.get(exchange) is None, "WIRE.3: something that is no request has a reply"

    def leave(self) -> None:
        """End the connection: what is kept is the tasks alone (CAN.7)."""
        for exchange in self.said:
            if exchange not in self.replied:
                self.host.give(ExchangeClosed(exchange))
        engine = self.host.engine
        inner = engine._engine if isinstance(engine, DualEraServer) else engine
        if engine is not inner:
            self.host.give(ConnectionClosed(CONNECTION))
        self._work()
        self.host.give(TimePassed())
        assert not inner._exchanges.by_key, "LIM.3: an exchange is left when its connection has ended"
        assert len(self.host.store.records) <= LIMITS.tasks, "LIM.3: more tasks than may be"

    def _work(self) -> None:
        while self._seen < len(self.host.effects):
            effect = self.host.effects[self._seen]
            self._seen += 1
            self._see_to(effect)

    def _see_to(self, effect: Any) -> None:
        give = self.host.give
        match effect:
            case Reply(exchange=exchange, message=message):
                self._reply(exchange, message)
            case Send(exchange=exchange, message=message):
                encode(message)
                assert exchange not in self.replied, "SUB.4: a notification after the reply"
                give(StreamReady(exchange))
            case StartTool(exchange=exchange, tool="render") if effect.can_create_task:
                give(
                    CallBecameTask(exchange=exchange, task_id=f"task-{next(self._tasks):020}", ttl_ms=60_000)
                )
            case StartTool(exchange=exchange, tool="ask") if not effect.answers:
                give(CallAskedInput(exchange, {"name": FORM}, state=[effect.arguments]))
            case StartTool(exchange=exchange) | Forward(exchange=exchange):
                give(CallReturned(exchange, DONE))
            case StartWork(task_id=task_id):
                requests = {"name": FORM}
                give(
                    WorkAskedInput(task_id=task_id, token=next(self._tokens), ask="first", requests=requests)
                )
            case DeliverInput(task_id=task_id):
                give(WorkCompleted(task_id=task_id, token=next(self._tokens), result=DONE))
            case RequestCancel(task_id=task_id):
                give(WorkStopped(task_id=task_id, token=next(self._tokens)))

    def _reply(self, exchange: Hashable, message: Any) -> None:
        assert exchange not in self.replied, "WIRE.3: two replies"
        self.replied[exchange] = message
        if message is None:
            return
        encode(message)
        asked = parse_message(self.said[exchange])
        answer = parse_message(message)
        assert isinstance(answer, Response), "WIRE.1: a reply that is none"
        name = getattr(asked, "id", None)
        assert (type(answer.id), answer.id) == (type(name), name), "WIRE.3: a reply under another id"
        if answer.error is not None:
            self._check_error(answer.error)
        elif isinstance(self.host.engine, ServerEngine):
            assert answer.result is not None
            kind = answer.result.get("resultType")
            assert kind in ("complete", "task", "input_required"), (
                "WIRE.4: a result that does not say what it is"
            )
            assert "io.modelcontextprotocol/serverInfo" in answer.result["_meta"], "WIRE.4: nor whose it is"

    def _check_error(self, error: ErrorObject) -> None:
        assert error.code in CODES, f"the code {error.code} is never emitted"
        if "not found" in error.message and error.code == ErrorCode.INVALID_PARAMS:
            self.unknown.add(error.message)
            assert len(self.unknown) == 1, "GET.2: two texts about unknown tasks"
