"""A host for one server engine: it answers the store's effects itself, keeps the others to look at, and holds
the engine to its promises."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from itertools import count
from typing import Any, TypeVar

from attrs import define, field

from mcp_tasks_proto.effects import (
    AcceptReport,
    Delete,
    DeliverInput,
    Effect,
    FindExpired,
    ListTasks,
    Load,
    RejectReport,
    Reply,
    RequestCancel,
    ResumeWork,
    Save,
    Send,
    StartTool,
    StartWork,
)
from mcp_tasks_proto.inputs import (
    DEFAULT,
    CallBecameTask,
    Default,
    HttpHead,
    Input,
    LegacyInput,
    MessageReceived,
    TimePassed,
    WorkInput,
)
from mcp_tasks_proto.legacy.server import DualEraServer
from mcp_tasks_proto.server import ServerEngine
from mcp_tasks_proto.testing.messages import request
from mcp_tasks_proto.testing.open_exchanges import OpenExchanges
from mcp_tasks_proto.testing.recordings import Recorder
from mcp_tasks_proto.testing.store import DictStore

__all__ = ["ServerHost"]

E = TypeVar("E")


@define(eq=False, kw_only=True)
class ServerHost:
    """Drives an engine step by step.

    With ``held`` true, store effects pile up in ``asked`` until :meth:`answer_next`: that is how tests put
    something between a decision and its save. Whatever a test does, this host asserts what every host relies
    on:

    * nothing is sent on an exchange before it is opened, nor once it has had its reply, is closed or stopped:
      there is one reply at most;
    * a report is accepted or rejected once;
    * no two questions wait at the store under one token;
    * only a worker that was begun here hears anything, each answer once, and once that it is to stop (UPD.5,
      CAN.6);
    * once time was told, the next deadline lies ahead.
    """

    engine: ServerEngine | DualEraServer | Recorder[Any]
    store: DictStore = field(factory=DictStore)
    now: int = 1_700_000_000_000
    held: bool = False
    asked: list[Load | Save | Delete | FindExpired | ListTasks] = field(init=False, factory=list)
    effects: list[Effect] = field(init=False, factory=list)
    """Every effect so far but the store's, oldest first."""
    deadline: int | None = field(init=False, default=None)
    _exchanges: count[int] = field(init=False, factory=lambda: count(1))
    _open: OpenExchanges = field(init=False, factory=OpenExchanges)
    _reports: dict[Hashable, int] = field(init=False, factory=dict)
    """How many reports under one token have no answer."""
    _delivered: dict[str, set[str]] = field(init=False, factory=dict)
    """Which answers each worker has, by task and key."""
    _told: set[str] = field(init=False, factory=set)
    """Tasks whose workers are told to stop."""

    def give(self, fact: Input | LegacyInput) -> list[Effect]:
        """Hand in a fact; return what it led to, the store's own effects carried out and left out."""
        before = len(self.effects)
        facts: list[Any] = [fact]
        while facts:
            given = facts.pop(0)
            step = self.engine.handle(given, now=self.now)
            self._note(given)
            self.deadline = step.deadline
            for effect in step.effects:
                if not isinstance(effect, (Load, Save, Delete, FindExpired, ListTasks)):
                    self._take(effect)
                    continue
                waiting = [one.token for one in self.asked] + [one.token for one in facts]
                assert effect.token not in waiting, f"not a question with a token of its own: {effect}"
                if self.held:
                    self.asked.append(effect)
                else:
                    facts.append(self.store.answer(effect))
            if isinstance(given, TimePassed):
                ahead = step.deadline is None or step.deadline > self.now
                assert ahead, f"a deadline that has passed: {step.deadline} at {self.now}"
        return self.effects[before:]

    def _note(self, given: Any) -> None:
        """Note what the engine owes an answer to, or no longer."""
        self._open.note(given)
        if isinstance(given, WorkInput):
            self._reports[given.token] = self._reports.get(given.token, 0) + 1

    def _take(self, effect: Effect) -> None:
        self.effects.append(effect)
        self._open.check(effect)
        match effect:
            case AcceptReport(token=token) | RejectReport(token=token):
                assert self._reports.get(token), f"not to a report without an answer: {effect}"
                self._reports[token] -= 1
            case StartWork(task_id=task_id) | ResumeWork(task_id=task_id):
                self._delivered[task_id] = set()
                self._told.discard(task_id)
            case DeliverInput(task_id=task_id, answers=answers):
                assert task_id in self._delivered, f"not to a worker that was begun: {effect}"
                for answer in answers:
                    assert answer.key not in self._delivered[task_id], (
                        f"an answer that was delivered before: {effect}"
                    )
                    self._delivered[task_id].add(answer.key)
            case RequestCancel(task_id=task_id):
                assert task_id in self._delivered, f"not to a worker that was begun: {effect}"
                assert task_id not in self._told, f"a worker that was told to stop before: {effect}"
                self._told.add(task_id)

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
