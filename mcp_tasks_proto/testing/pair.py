"""A requester and a server engine with a network between them, in virtual time.

What the network does is data: each message takes the next :class:`Passage`, and when there are none left the
weather is fair. So a test can write a storm down, or have one made up, and the same storm comes again.

A request has a connection of its own, as over HTTP. Messages of one connection never overtake each other;
those of different ones do, where their passages take different times. Where one arrives twice, it is in order
the first time, and comes the second time whenever it does.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from functools import partial
from heapq import heappop, heappush
from itertools import count
from typing import Any

from attrs import Attribute, define, field, frozen

from mcp_tasks_proto.effects import Effect, Reply, Send
from mcp_tasks_proto.inputs import ExchangeClosed, HttpHead, Input, MessageReceived, StreamReady, TimePassed
from mcp_tasks_proto.requester import (
    AnswerGiven,
    HttpReply,
    NotificationReceived,
    Prompt,
    RequesterEffect,
    RequesterInput,
    RequestFailed,
    ResponseReceived,
    SendRequest,
    StopRequest,
)
from mcp_tasks_proto.testing.host import ServerHost
from mcp_tasks_proto.testing.requester_host import RequesterHost
from mcp_tasks_proto.vocabulary import PROTOCOL_VERSION
from mcp_tasks_proto.wire.http import request_headers

__all__ = ["Pair", "Passage"]


@frozen(kw_only=True)
class Passage:
    """What the network does with one message."""

    delay_ms: int = 5
    """How long it is on its way."""
    lost: bool = False
    """It never arrives, nor does anything after it on its connection, and nobody is told."""
    cut: bool = False
    """Its connection breaks when it would have arrived, and both ends are told."""
    again_ms: int | None = None
    """How long after it has arrived it does so once more, even if its connection is closed by then.

    A request is then told to the server twice, as when something on the way sends it again, and nobody hears
    what the server says to the second. A reply or a notification the requester hears twice. The end of a
    connection does not come again, nor does what is lost or cut. ``None``: it does not.
    """


def from_now_on(of: Any, named: Attribute[Any], anew: Iterable[Any]) -> Iterable[Any]:
    """Have what is set anew in place of what is left of what was there before."""
    setattr(of, f"_{named.name}", iter(anew))
    return anew


@define(eq=False, kw_only=True)
class _Connection:
    """What carries one request, and what comes back."""

    number: int
    """The request, as the requester calls it."""
    exchange: int
    """The same, as the server calls it."""
    open: bool = True
    """Whether both ends still hold it, as far as the network knows."""
    silent: bool = False
    """Whether nothing gets through any more."""
    reached: bool = False
    """Whether the server has heard of it."""
    busy_until: dict[str, int] = field(factory=dict)
    """When the last message in one direction arrives."""


def _no_work(_: Effect) -> Iterable[tuple[int, Input]]:
    return ()


def _nothing() -> None:
    """What comes of a second arrival that makes no difference."""


def _no_answer(_: Prompt) -> tuple[int, dict[str, Any]] | None:
    return None


@define(eq=False, kw_only=True)
class Pair:
    """Runs both sides for a time, or until a call is over."""

    requester: RequesterHost
    server: ServerHost
    work: Callable[[Effect], Iterable[tuple[int, Input]]] = _no_work
    """The server's tools and workers: what comes of an effect, each thing after so many milliseconds."""
    answer: Callable[[Prompt], tuple[int, dict[str, Any]] | None] = _no_answer
    """Who is asked: after how many milliseconds there is which answer; ``None``: there is none."""
    passages: Iterable[Passage] = field(default=(), on_setattr=from_now_on)
    """The storm, message by message. One that is set anew begins at once."""
    calm: Passage = Passage()
    """What the network does when the storm is over."""
    now: int = 1_700_000_000_000
    """The time by the requester's clock."""
    skew_ms: int = 0
    """By how much the server's clock is ahead of it."""
    _passages: Iterator[Passage] = field(init=False)
    _agenda: list[tuple[int, int, Callable[[], None]]] = field(init=False, factory=list)
    _order: count[int] = field(init=False, factory=count)
    _exchanges: count[int] = field(init=False, factory=lambda: count(1))
    _by_number: dict[int, _Connection] = field(init=False, factory=dict)
    _by_exchange: dict[int, _Connection] = field(init=False, factory=dict)

    def __attrs_post_init__(self) -> None:
        self._passages = iter(self.passages)
        self._set_clocks()

    # -- running -------------------------------------------------------------------------------------------

    def tell_requester(self, fact: RequesterInput) -> None:
        """Hand a fact to the requester, and see to what comes of it."""
        self.see_to(self.requester.give(fact))

    def tell_server(self, fact: Input) -> None:
        """Hand a fact to the server, and see to what comes of it."""
        for effect in self.server.give(fact):
            match effect:
                case Reply(exchange=int() as exchange, message=message, http_status=status):
                    self._reply(self._by_exchange[exchange], message, status)
                case Send(exchange=int() as exchange, message=message):
                    self._notify(self._by_exchange[exchange], message)
                    self.tell_server(StreamReady(exchange))
                case _:
                    for delay_ms, outcome in self.work(effect):
                        self._after(delay_ms, partial(self.tell_server, outcome))

    def see_to(self, effects: Iterable[RequesterEffect]) -> None:
        """Carry out what the requester said, for tests that speak to its host directly: each effect once.

        Raises ``ValueError`` for a request that is on its way already. A host's ``effects`` are all that
        there ever were: of a later call leave out those from before it, or use :meth:`tell_requester`, which
        sees to what comes of its fact.
        """
        for effect in effects:
            match effect:
                case SendRequest():
                    self._request(effect)
                case StopRequest(request=number):
                    self._stop(self._by_number[number])
                case Prompt() if (answer := self.answer(effect)) is not None:
                    delay_ms, response = answer
                    given = AnswerGiven(effect.call, effect.key, response)
                    self._after(delay_ms, partial(self._give, self.requester, given))

    def crash(self, successor: RequesterHost) -> None:
        """The requester's process ends, and another takes its place.

        Its connections break, and the questions that it had on show are gone with it.
        """
        for connection in self._by_number.values():
            connection.open = False
            self._after(self.calm.delay_ms, partial(self.tell_server, ExchangeClosed(connection.exchange)))
        self._by_number.clear()
        self.requester = successor
        self._set_clocks()

    def _give(self, to: RequesterHost, answer: AnswerGiven) -> None:
        if to is self.requester:
            self.tell_requester(answer)

    def run(self, milliseconds: int) -> None:
        """Let so many milliseconds pass, from now on, for both sides and the network.

        Raises ``ValueError`` where the requester has sent what nobody carries: what its host returned was not
        handed to :meth:`see_to`.
        """
        self._check_that_all_is_carried()
        until = self.now + milliseconds
        while (when := self._next()) is not None and when <= until:
            self._step(when)
        self.now = until
        self._set_clocks()

    def settle(self, call: Hashable, *, within_ms: int) -> bool:
        """Let time pass until a call is over, or until so much has passed; return whether it is over.

        Raises ``ValueError`` as :meth:`run` does.
        """
        self._check_that_all_is_carried()
        until = self.now + within_ms
        while call not in self.requester.outcomes:
            when = self._next()
            if when is None or when > until:
                self.run(until - self.now)
                return False
            self._step(when)
        return True

    def _check_that_all_is_carried(self) -> None:
        left = sorted(self.requester.in_flight.keys() - self._by_number.keys())
        if left:
            raise ValueError(f"nobody carries the requester's requests {left}: hand its effects to see_to")

    def _next(self) -> int | None:
        times = [self._agenda[0][0]] if self._agenda else []
        if self.requester.deadline is not None:
            times.append(self.requester.deadline)
        if self.server.deadline is not None:
            times.append(self.server.deadline - self.skew_ms)
        return min(times, default=None)

    def _step(self, when: int) -> None:
        """Go to the next moment at which something happens, and let one thing happen."""
        self.now = max(self.now, when)
        self._set_clocks()
        if self._agenda and self._agenda[0][0] <= self.now:
            heappop(self._agenda)[2]()
        elif self.requester.deadline is not None and self.requester.deadline <= self.now:
            self.tell_requester(TimePassed())
        else:
            self.tell_server(TimePassed())

    def _set_clocks(self) -> None:
        self.requester.now, self.server.now = self.now, self.now + self.skew_ms

    def _after(self, delay_ms: int, act: Callable[[], None]) -> None:
        heappush(self._agenda, (self.now + delay_ms, next(self._order), act))

    # -- the network -----------------------------------------------------------------------------------------

    def _carry(
        self,
        connection: _Connection,
        direction: str,
        arrive: Callable[[], None],
        again: Callable[[], None] = _nothing,
    ) -> None:
        """Take one message along; ``arrive`` is called when it is there, ``again`` when it is once more."""
        passage = next(self._passages, self.calm)
        connection.silent |= passage.lost
        if connection.silent:
            return
        when = max(self.now + passage.delay_ms, connection.busy_until.get(direction, 0))
        connection.busy_until[direction] = when
        act = partial(self._cut, connection) if passage.cut else arrive
        self._after(when - self.now, partial(self._arrive, connection, act))
        if passage.again_ms is not None and not passage.cut:
            self._after(when - self.now + passage.again_ms, again)

    def _arrive(self, connection: _Connection, act: Callable[[], None]) -> None:
        if connection.open:
            act()

    def _request(self, send: SendRequest) -> None:
        if send.request in self._by_number:
            raise ValueError(f"request {send.request} is on its way already: see to each effect once")
        connection = self._connect(send.request)
        self._by_number[connection.number] = connection
        message = send.message
        version = message["params"]["_meta"][PROTOCOL_VERSION]
        headers = request_headers(message["method"], message["params"], version, send.parameters)
        head = HttpHead(headers={name.lower(): value for name, value in headers})

        def arrive(on: _Connection) -> None:
            on.reached = True
            self.tell_server(MessageReceived(exchange=on.exchange, message=message, http=head))

        def again() -> None:
            arrive(self._connect(send.request, silent=True))

        self._carry(connection, "there", partial(arrive, connection), again)

    def _connect(self, number: int, *, silent: bool = False) -> _Connection:
        connection = _Connection(number=number, exchange=next(self._exchanges), silent=silent)
        self._by_exchange[connection.exchange] = connection
        return connection

    def _reply(self, connection: _Connection, message: dict[str, Any] | None, status: int) -> None:
        http = HttpReply(status=status)
        response = ResponseReceived(request=connection.number, message=message, http=http)

        def arrive() -> None:
            connection.open = False
            self.tell_requester(response)

        self._carry(connection, "back", arrive, partial(self._repeat, connection, response))

    def _notify(self, connection: _Connection, message: dict[str, Any]) -> None:
        notification = NotificationReceived(connection.number, message)
        arrive = partial(self.tell_requester, notification)
        self._carry(connection, "back", arrive, partial(self._repeat, connection, notification))

    def _repeat(self, connection: _Connection, fact: RequesterInput) -> None:
        """Have the requester hear something once more, if its process is still the one that it was for."""
        if self._by_number.get(connection.number) is connection:
            self.tell_requester(fact)

    def _stop(self, connection: _Connection) -> None:
        """The requester closes its end. What is under way to it may still come, as on a shared channel."""
        self._carry(connection, "there", partial(self._close, connection))

    def _close(self, connection: _Connection) -> None:
        connection.open = False
        self.tell_server(ExchangeClosed(connection.exchange))

    def _cut(self, connection: _Connection) -> None:
        if connection.reached:
            self._close(connection)
        connection.open = False
        if connection.number in self.requester.in_flight:
            self.tell_requester(RequestFailed(connection.number, "the connection broke"))
