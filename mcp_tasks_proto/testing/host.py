"""A host for one server engine: it answers the store's effects itself, keeps the others to look at, and holds
the engine to its promises."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from itertools import count
from typing import Any, TypeVar

from attrs import define, field

from mcp_tasks_proto.effects import Effect, Reply, Send, StartTool, StoreEffect
from mcp_tasks_proto.inputs import (
    DEFAULT,
    CallBecameTask,
    Default,
    HttpHead,
    Input,
    LegacyInput,
    MessageReceived,
    TimePassed,
)
from mcp_tasks_proto.legacy.server import DualEraServer
from mcp_tasks_proto.server import ServerEngine
from mcp_tasks_proto.testing.messages import request
from mcp_tasks_proto.testing.promises import Promises
from mcp_tasks_proto.testing.recordings import Recorder
from mcp_tasks_proto.testing.store import DictStore

__all__ = ["ServerHost"]

E = TypeVar("E")


@define(eq=False, kw_only=True)
class ServerHost:
    """Drives an engine step by step.

    With ``held`` true, store effects pile up in ``asked`` until :meth:`answer_next`: that is how tests put
    something between a decision and its save. Whatever a test does, this host holds the engine to its
    :class:`~mcp_tasks_proto.testing.Promises`.
    """

    engine: ServerEngine | DualEraServer | Recorder[Any]
    store: DictStore = field(factory=DictStore)
    now: int = 1_700_000_000_000
    held: bool = False
    asked: list[StoreEffect] = field(init=False, factory=list)
    effects: list[Effect] = field(init=False, factory=list)
    """Every effect so far but the store's, oldest first."""
    deadline: int | None = field(init=False, default=None)
    _exchanges: count[int] = field(init=False, factory=lambda: count(1))
    _promises: Promises = field(init=False, factory=Promises)

    def give(self, fact: Input | LegacyInput) -> list[Effect]:
        """Hand in a fact; return what it led to, the store's own effects carried out and left out."""
        before = len(self.effects)
        facts: list[Any] = [fact]
        while facts:
            given = facts.pop(0)
            step = self.engine.handle(given, now=self.now)
            self._promises.look(given, step, self.now)
            self.deadline = step.deadline
            for effect in step.effects:
                if not isinstance(effect, StoreEffect):
                    self.effects.append(effect)
                elif self.held:
                    self.asked.append(effect)
                else:
                    facts.append(self.store.answer(effect))
        return self.effects[before:]

    def answer_next(self) -> list[Effect]:
        """Carry out the oldest store effect that is held back (``LookupError``: none is)."""
        if not self.asked:
            raise LookupError("nothing is held back: the engine waits for no answer of the store")
        return self.give(self.store.answer(self.asked.pop(0)))

    def send(
        self,
        message: Any,
        *,
        principal: str | None = None,
        connection: Hashable | None = None,
        http: HttpHead | None = None,
        tasks_enabled: bool = True,
    ) -> int:
        """Hand in a message on a new exchange, and return that exchange."""
        exchange = next(self._exchanges)
        self.give(
            MessageReceived(
                exchange=exchange,
                message=message,
                connection=connection,
                http=http,
                principal=principal,
                tasks_enabled=tasks_enabled,
            )
        )
        return exchange

    def ask(self, method: str, params: Mapping[str, Any] | None = None, **facts: Any) -> dict[str, Any]:
        """Send a well-formed request and return the reply, which must have come by the time this returns.

        ``principal``, ``connection``, ``http`` and ``tasks_enabled`` are facts; the rest is for
        :func:`~mcp_tasks_proto.testing.messages.request`.
        """
        transport = {
            name: facts.pop(name)
            for name in ("principal", "connection", "http", "tasks_enabled")
            if name in facts
        }
        return self.reply_to(self.send(request(method, params, **facts), **transport))

    def reply_to(self, exchange: int) -> dict[str, Any]:
        """Return the one reply this exchange got (``LookupError`` if it has none)."""
        for effect in self.of(Reply):
            if effect.exchange == exchange and effect.message is not None:
                return effect.message
        raise LookupError(f"exchange {exchange} has no reply")

    def sent_on(self, exchange: int) -> list[dict[str, Any]]:
        """Return the notifications sent on this exchange, oldest first."""
        return [effect.message for effect in self.of(Send) if effect.exchange == exchange]

    def of(self, kind: type[E]) -> list[E]:
        """Return every effect of one kind so far, oldest first."""
        return [effect for effect in self.effects if isinstance(effect, kind)]

    def create_task(
        self,
        tool: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        task_id: str,
        ttl_ms: int | Default | None = DEFAULT,
        **facts: Any,
    ) -> dict[str, Any]:
        """Call a tool that goes on as a task at once, and return the reply."""
        transport = {name: facts.pop(name) for name in ("principal", "connection") if name in facts}
        exchange = self.send(
            request("tools/call", {"name": tool, "arguments": dict(arguments or {})}, **facts), **transport
        )
        assert any(started.exchange == exchange for started in self.of(StartTool)), self.effects[-1]
        self.give(CallBecameTask(exchange=exchange, task_id=task_id, ttl_ms=ttl_ms))
        return self.reply_to(exchange)

    def advance(self, milliseconds: int) -> list[Effect]:
        """Let time pass, waking the engine at each of its deadlines on the way."""
        before = len(self.effects)
        until = self.now + milliseconds
        while self.deadline is not None and self.deadline <= until:
            self.now = max(self.now, self.deadline)
            self.give(TimePassed())
        self.now = until
        return self.effects[before:]
