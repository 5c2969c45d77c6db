"""Who calls, and are tasks on: asked of the server's own functions before a message reaches the engine."""

from __future__ import annotations

import inspect
import logging
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from attrs import define, evolve

from mcp_tasks_adapters.jobs import Errand
from mcp_tasks_adapters.toolkit.errors import Unauthorized
from mcp_tasks_adapters.toolkit.outcomes import describe
from mcp_tasks_proto.errors import ErrorObject, internal_error, invalid_request, limit_reached
from mcp_tasks_proto.inputs import MessageReceived, SessionEnded, StreamRequested

if TYPE_CHECKING:
    from mcp_tasks_adapters.driver import Loop, RequestFacts

__all__ = ["Admission", "Arrival", "ChangingDoor", "Door", "Refusal"]

Arrival = MessageReceived | StreamRequested | SessionEnded
"""What comes in from outside, and must say whose it is."""

_Answers = tuple[Any, Any] | BaseException
"""What ``principal=`` and ``enabled=`` say, or what one of them raised."""

_log = logging.getLogger("mcp_tasks_adapters")


class Refusal(Protocol):
    """Answers a message that is not let in."""

    def __call__(
        self,
        received: Arrival,
        error: ErrorObject,
        http_status: int,
        headers: Sequence[tuple[str, str]] = (),
    ) -> None: ...


class Door(Protocol):
    """Whose functions are asked: a server, for example."""

    @property
    def principal(self) -> Callable[[RequestFacts], Any] | None:
        """Names the caller, or says more of it."""

    @property
    def enabled(self) -> Callable[[RequestFacts], Any] | None:
        """Says whether the Tasks extension is on."""

    @property
    def limits(self) -> _Exchanges:
        """Bound the messages on their way in."""


class _Exchanges(Protocol):
    @property
    def exchanges(self) -> int: ...


@define(eq=False, kw_only=True)
class ChangingDoor:
    """The :class:`Door` of a proxy: one function says all of a caller, and may be replaced while it runs."""

    principal: Callable[[RequestFacts], Any] | None
    enabled: None = None
    limits: _Exchanges


@define(eq=False)
class _Visitor:
    """A message on its way in."""

    received: Arrival
    principal: Any
    enabled: Any
    errand: Errand[_Answers] | None = None
    answers: _Answers | None = None
    """What the functions said, or how they failed; ``None`` also where they were cancelled."""
    known: bool = False
    """Whether the functions have nothing more to say."""


class Admission:
    """The way in. Messages of one connection come in as they arrived, however long the functions take.

    A function that fails lets nobody in: "no name" is an answer that only the function itself gives (SEC.1).
    ``named`` returns a message with what they said; it raises ``TypeError`` where that says nothing.
    """

    def __init__(
        self,
        server: Door,
        loop: Loop,
        *,
        admit: Callable[[Arrival], None],
        refuse: Refusal,
        named: Callable[[Arrival, Any, Any], Arrival] | None = None,
    ) -> None:
        self._server = server
        self._named = named or _with_principal
        self._loop = loop
        self._admit = admit
        self._refuse = refuse
        self._visitors: dict[Hashable, _Visitor] = {}
        # Those of one connection, in the order they came.
        self._queues: dict[Hashable, deque[_Visitor]] = {}

    def ask(self, received: Arrival, facts: RequestFacts | None) -> None:
        """Ask the functions, and let the message in or answer it, now or when they know."""
        server = self._server
        principal: Any = None
        enabled: Any = True
        try:
            if facts is None:
                raise ValueError("the facts of the request are not known")
            if server.principal is not None:
                principal = server.principal(facts)
            if server.enabled is not None:
                enabled = server.enabled(facts)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            _discard(principal)
            self._turn_away(received, error)
            return
        waits = inspect.isawaitable(principal) or inspect.isawaitable(enabled)
        if not waits and _connection(received) not in self._queues:
            self._let_in(received, principal, enabled)
        elif len(self._visitors) >= server.limits.exchanges:
            _discard(principal)
            _discard(enabled)
            full = limit_reached("exchanges")
            self._refuse(received, full, full.http_status)
        else:
            self._wait(_Visitor(received, principal, enabled))

    def cancel(self, exchange: Hashable) -> bool:
        """Forget the message of this exchange if it is still on its way in; return whether it was."""
        visitor = self._visitors.pop(exchange, None)
        if visitor is None:
            return False
        if visitor.errand is not None:
            visitor.errand.cancel()
        return True

    def cancel_all(self) -> None:
        """Forget every message that is still on its way in."""
        for exchange in list(self._visitors):
            self.cancel(exchange)

    def _wait(self, visitor: _Visitor) -> None:
        connection = _connection(visitor.received)
        self._visitors[visitor.received.exchange] = visitor
        if connection is not None:
            self._queues.setdefault(connection, deque()).append(visitor)
        run = partial(_answers, visitor.principal, visitor.enabled, self._loop.cancelled)
        visitor.errand = Errand(self._loop, run, partial(self._answered, visitor))

    def _answered(self, visitor: _Visitor, answers: _Answers | None) -> None:
        _discard(visitor.principal)
        _discard(visitor.enabled)
        visitor.answers = answers
        visitor.known = True
        connection = _connection(visitor.received)
        queue = self._queues.get(connection)
        if queue is None:
            self._pass(visitor)
            return
        while queue and queue[0].known:
            self._pass(queue.popleft())
        if not queue:
            self._queues.pop(connection, None)

    def _pass(self, visitor: _Visitor) -> None:
        if self._visitors.pop(visitor.received.exchange, None) is None:
            return  # nobody waits for it any more
        if isinstance(visitor.answers, tuple):
            self._let_in(visitor.received, *visitor.answers)
        else:
            cancelled = RuntimeError("cancelled, and not from here")
            self._turn_away(visitor.received, visitor.answers or cancelled)

    def _let_in(self, received: Arrival, principal: Any, enabled: Any) -> None:
        try:
            admitted = self._named(received, principal, enabled)
        except TypeError as error:
            self._turn_away(received, error)
        else:
            self._admit(admitted)

    def _turn_away(self, received: Arrival, error: BaseException) -> None:
        if isinstance(error, Unauthorized):
            headers = (
                () if error.www_authenticate is None else (("www-authenticate", error.www_authenticate),)
            )
            self._refuse(received, invalid_request("not authorized"), 401, headers)
            return
        _log.error("a principal= or enabled= function failed: %s", describe(error))
        failed = internal_error("the caller could not be identified")
        self._refuse(received, failed, failed.http_status)


def _with_principal(received: Arrival, principal: Any, enabled: Any) -> Arrival:
    """Return a message with its caller's name, and whether tasks are on. Raises ``TypeError``."""
    if not isinstance(principal, str | None) or not isinstance(enabled, bool):
        raise TypeError("principal= names a str or None, enabled= says a bool")
    if isinstance(received, MessageReceived):
        return evolve(received, principal=principal, tasks_enabled=enabled)
    return evolve(received, principal=principal)


def _connection(received: Arrival) -> Hashable:
    """Return the shared channel that it came on, if it came on one."""
    return received.connection if isinstance(received, MessageReceived) else None


async def _answers(principal: Any, enabled: Any, cancelled: type[BaseException]) -> _Answers:
    """Return what the functions say, or how they fail."""
    try:
        return (
            await principal if inspect.isawaitable(principal) else principal,
            await enabled if inspect.isawaitable(enabled) else enabled,
        )
    except (cancelled, KeyboardInterrupt):
        raise
    except BaseException as error:
        return error


def _discard(awaitable: Any) -> None:
    """Close a coroutine that nobody will await; harmless on one that has run, and on anything else."""
    if inspect.iscoroutine(awaitable):
        awaitable.close()
