"""How a translator talks to the modern engine it wraps: as one more peer, over exchanges of its own.

What concerns those exchanges is told to whoever opened them; every other effect is the host's.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Hashable, Mapping
from itertools import count
from typing import Any, Final, Protocol

from attrs import define, evolve, field, frozen

from mcp_tasks_proto.effects import (
    AcceptReport,
    Effect,
    ListTasks,
    RejectReport,
    Reply,
    Send,
    StartTool,
    StopCall,
)
from mcp_tasks_proto.errors import ErrorCode, ErrorObject, LocalProtocolError
from mcp_tasks_proto.inputs import (
    DEFAULT,
    CallAskedInput,
    CallBecameTask,
    CallReturned,
    Default,
    ExchangeClosed,
    Input,
    LoadFailed,
    MessageReceived,
    StreamReady,
    TaskEnded,
    TasksListed,
)
from mcp_tasks_proto.legacy.translation import modern_params
from mcp_tasks_proto.records import TaskRecord
from mcp_tasks_proto.wire.jsonrpc import request_message

__all__ = ["Caller", "Inner", "InnerExchange", "InnerToken", "OwedTask", "check_page"]

Message = dict[str, Any]
Replied = Callable[[Message, int], None]
"""Takes the reply of an exchange, and the HTTP status that the engine gave it."""
Listed = Callable[[TasksListed | None], None]
"""Takes a page of tasks; ``None``: the store could not tell."""
Reported = Callable[[str | None], None]
"""Takes why a report was rejected; ``None``: it was not."""


@frozen
class InnerExchange:
    """An exchange of the translator's with the engine. A host meets it in effects about calls."""

    number: int


@frozen
class InnerToken:
    """A token of the translator's."""

    number: int


@frozen(kw_only=True)
class Caller:
    """On whose behalf the engine is asked."""

    principal: str | None
    capabilities: Mapping[str, Any]
    """What the session's client declares, as a modern request would."""
    tasks: bool
    """Whether tasks are served to it."""

    @property
    def rights(self) -> object:
        """What says which tasks it may read; for another with the same rights they are the same."""
        return self.principal

    def arrival(self, exchange: Hashable, message: Message) -> MessageReceived:
        """Return a message of its, as the engine is told of it."""
        return MessageReceived(
            exchange=exchange, message=message, principal=self.principal, tasks_enabled=self.tasks
        )


class Engine(Protocol):
    """A modern engine: a server's, or a proxy's."""

    def handle(self, input: Any, *, now: int) -> Any:  # noqa: A002 - the word of the whole package
        """Take in one fact; return a step."""

    def in_flight(self, connection: Hashable, request_id: str | int) -> bool:
        """Whether a request with this id awaits its answer."""


@frozen
class OwedTask:
    """The caller asked for a task, and maybe how long it should live."""

    ttl_ms: int | Default = DEFAULT


@define(eq=False, repr=False, kw_only=True)
class _Conversation:
    """An exchange that is open."""

    replied: Replied
    sent: Callable[[Message], None]
    owed: OwedTask | None
    became_task: bool = False


def _ignore(*_: Any) -> None:
    pass


_CLOSED: Final = _Conversation(replied=_ignore, sent=_ignore, owed=None)
"""In place of an exchange that was given up a moment ago."""

_OUTCOMES: Final = frozenset({CallBecameTask, CallReturned, CallAskedInput})


@define(eq=False, repr=False, kw_only=True)
class Inner:
    """The modern engine, and the translator's exchanges with it."""

    engine: Engine
    out: list[Any]
    """Where effects for the host go, in order."""
    now: int = 0
    deadline: int | None = None
    """The engine's own."""
    recheck_ms: int | None = None
    """Between two looks at a task that is waited for; ``None``: the engine tells all that becomes of it."""
    _open: dict[Hashable, _Conversation] = field(init=False, factory=dict)
    _reports: dict[Hashable, Reported] = field(init=False, factory=dict)
    _listings: dict[Hashable, Listed] = field(init=False, factory=dict)
    _facts: deque[Any] = field(init=False, factory=deque)
    _numbers: count[int] = field(init=False, factory=lambda: count(1))

    @property
    def quiet(self) -> bool:
        """Whether no exchange and no report of the translator's is open."""
        return not (self._open or self._reports or self._listings)

    # -- asking ----------------------------------------------------------------------------------------

    def exchange(self) -> InnerExchange:
        """Return a new exchange, to be given to :meth:`request`."""
        return InnerExchange(next(self._numbers))

    def request(
        self,
        method: str,
        params: Mapping[str, Any],
        *,
        caller: Caller,
        replied: Replied,
        exchange: InnerExchange | None = None,
        sent: Callable[[Message], None] = _ignore,
        declares_tasks: bool = False,
        owed: OwedTask | None = None,
    ) -> InnerExchange:
        """Ask the engine; ``sent`` hears its notifications and says :meth:`ready` to each of them."""
        exchange = self.exchange() if exchange is None else exchange
        self._open[exchange] = _Conversation(replied=replied, sent=sent, owed=owed)
        message = request_message(
            exchange.number, method, modern_params(params, caller.capabilities, tasks=declares_tasks)
        )
        self._facts.append(caller.arrival(exchange, message))
        return exchange

    def close(self, exchange: InnerExchange) -> None:
        """Give up an exchange; its handler, if one runs, is stopped. Harmless when it is over."""
        if self._open.pop(exchange, None) is not None:
            self._facts.append(ExchangeClosed(exchange))

    def ready(self, exchange: InnerExchange) -> None:
        """Note that there is room for more notifications."""
        self._facts.append(StreamReady(exchange))

    def end_task(self, reported: Reported, **fields: Any) -> None:
        """End a task as the host would; ``fields`` are those of ``TaskEnded``."""
        token = InnerToken(next(self._numbers))
        self._reports[token] = reported
        self._facts.append(TaskEnded(token=token, **fields))

    def fail_task(self, task_id: str, caller: Caller, error: ErrorObject, ended: Callable[[], None]) -> None:
        """End a task whose question was answered with an error; ``ended`` is called once that is done."""
        self.end_task(lambda _: ended(), task_id=task_id, error=error)

    def list_tasks(self, principal: str, after: str | None, limit: int, listed: Listed) -> None:
        """Ask the store for tasks of one principal."""
        token = InnerToken(next(self._numbers))
        self._listings[token] = listed
        self.out.append(ListTasks(principal=principal, after=after, limit=limit, token=token))

    # -- hearing ---------------------------------------------------------------------------------------

    def is_gone(self, error: Mapping[str, Any]) -> bool:
        """Whether the error of a ``tasks/get`` means that there is no such task, now or later."""
        return bool(error["code"] == ErrorCode.INVALID_PARAMS)

    def take(self, fact: Input) -> None:
        """Take in a fact of the host's. Raises :class:`LocalProtocolError`; nothing has happened then."""
        if isinstance(fact, TasksListed | LoadFailed) and fact.token in self._listings:
            if isinstance(fact, TasksListed):
                check_page(fact, fact.records, TaskRecord)
            self._listings.pop(fact.token)(fact if isinstance(fact, TasksListed) else None)
            return
        conversation = None
        if type(fact) in _OUTCOMES:
            conversation = self._open.get(fact.exchange)  # type: ignore[union-attr]
        if conversation is not None and conversation.owed is not None:
            fact = _owed(fact, conversation.owed)
        self._run(fact)
        if conversation is not None and isinstance(fact, CallBecameTask):
            conversation.became_task = True

    def drain(self) -> None:
        """Let the engine see everything that was asked."""
        while self._facts:
            self._run(self._facts.popleft())

    def _run(self, fact: Input) -> None:
        step = self.engine.handle(fact, now=self.now)
        self.deadline = step.deadline
        for effect in step.effects:
            self._carry_out(effect)

    def _carry_out(self, effect: Effect) -> None:
        match effect:
            case Reply(exchange=InnerExchange() as exchange, message=message, http_status=status):
                conversation = self._open.pop(exchange, _CLOSED)
                answer: Any = message
                if conversation.became_task and "error" in answer:
                    self.out.append(StopCall(exchange))  # the host keeps an offer that will not be taken
                conversation.replied(answer, status)
            case Send(exchange=InnerExchange() as exchange, message=message):
                self._open[exchange].sent(message)
            case StartTool(exchange=InnerExchange() as exchange):
                owed = self._open[exchange].owed is not None
                self.out.append(evolve(effect, must_create_task=owed))
            case AcceptReport(token=InnerToken() as token):
                self._reports.pop(token)(None)
            case RejectReport(token=InnerToken() as token, reason=reason):
                self._reports.pop(token)(reason)
            case _:
                self.out.append(effect)


def check_page(listed: Any, entries: Collection[Any], kind: type) -> None:
    """Refuse, as :class:`LocalProtocolError`, a page of entries of another kind, or one that more follows and
    that has no last entry."""
    name = type(listed).__name__
    if not all(isinstance(entry, kind) for entry in entries):
        raise LocalProtocolError(f"{name}: an entry is a {kind.__name__}")
    if listed.more and not entries:
        raise LocalProtocolError(f"{name}: more comes after nothing; a page has a last entry")


def _owed(fact: Any, owed: OwedTask) -> Input:
    """Return what a handler says, of which the caller wants a task (LEG.3)."""
    if not isinstance(fact, CallBecameTask):
        raise LocalProtocolError(f"{type(fact).__name__}: this caller is owed a task (LEG.3)")
    return evolve(fact, ttl_ms=owed.ttl_ms) if fact.ttl_ms is DEFAULT else fact
