"""A requester in virtual time, and what is between it and whoever serves it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, Final

from attrs import define, field

from mcp_tasks_proto.effects import Reply, Send
from mcp_tasks_proto.inputs import HttpHead, MessageReceived
from mcp_tasks_proto.requester import (
    AnswerGiven,
    CancelWanted,
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
from mcp_tasks_proto.testing.passages import Passage, from_now_on
from mcp_tasks_proto.testing.requester_host import RequesterHost
from mcp_tasks_proto.vocabulary import PROTOCOL_VERSION
from mcp_tasks_proto.wire.http import request_headers

__all__ = ["Connection", "RequesterSide"]

CALM: Final = Passage()


@define(eq=False, kw_only=True)
class Connection:
    """What carries one request, and what comes back."""

    number: int
    """The request, as the requester calls it."""
    exchange: int | None = None
    """The same, as the server calls it, once it has heard of it."""
    open: bool = True
    """Whether both ends still hold it, as far as the network knows."""
    silent: bool = False
    """Whether nothing gets through any more."""
    given_up: bool = False
    """Whether the server's end knows that nobody waits any more."""
    copy: Connection | None = None
    """What the request came on once more."""
    busy_until: dict[str, int] = field(factory=dict)
    """When the last message in one direction arrives."""


def _nothing() -> None:
    """What comes of a second arrival that makes no difference."""


def _no_answer(_: Prompt) -> tuple[int, dict[str, Any]] | None:
    return None


@define(eq=False, kw_only=True)
class RequesterSide(ABC):
    """What a :class:`~mcp_tasks_proto.testing.Pair` and a :class:`~mcp_tasks_proto.testing.Client` share."""

    requester: RequesterHost
    answer: Callable[[Prompt], tuple[int, dict[str, Any]] | None] = _no_answer
    """Who is asked: after how many milliseconds there is which answer; ``None``: there is none."""
    principal: str | None = None
    """Who it is to the server."""
    passages: Iterable[Passage] = field(default=(), on_setattr=from_now_on)
    """The storm, message by message. One that is set anew begins at once."""
    calm: Passage = CALM
    """What the network does when the storm is over."""
    _passages: Iterator[Passage] = field(init=False)
    _by_number: dict[int, Connection] = field(init=False, factory=dict)

    def __attrs_post_init__(self) -> None:
        self._passages = iter(self.passages)
        self._set_clocks()

    # -- what the caller wants -------------------------------------------------------------------------------

    def call(
        self,
        tool: str = "render",
        arguments: Mapping[str, Any] | None = None,
        *,
        meta: Mapping[str, Any] | None = None,
        deadline_ms: int | None = None,
    ) -> int:
        """Call a tool, and return the call."""
        host = self.requester
        return self._begin(partial(host.call, tool, arguments, meta=meta, deadline_ms=deadline_ms))

    def resume(self, reference: Any, *, deadline_ms: int | None = None) -> int:
        """Go on with a task of which there is a reference, and return the call."""
        return self._begin(partial(self.requester.resume, reference, deadline_ms=deadline_ms))

    def _begin(self, want: Callable[[], int]) -> int:
        self._set_clocks()
        before = len(self.requester.effects)
        call = want()
        self.see_to(self.requester.effects[before:])
        return call

    def cancel(self, call: Hashable, *, wait: bool = False) -> None:
        """Cancel a call."""
        self.tell_requester(CancelWanted(call, wait))

    def crash(self, successor: RequesterHost) -> None:
        """The requester's process ends, and another takes its place, which may :meth:`resume` what was kept.

        Its connections break, and the questions that it had on show are gone with it.
        """
        for connection in self._by_number.values():
            if connection.open:
                connection.open = False
                self._after(self.calm.delay_ms, partial(self._give_up, connection))
        self._by_number.clear()
        self.requester = successor
        self._set_clocks()

    def run(self, milliseconds: int) -> None:
        """Let so many milliseconds pass, from now on, for everybody.

        Raises ``ValueError`` as :meth:`settle` does.
        """
        self._pass(milliseconds, lambda: False)

    def settle(self, call: Hashable, *, within_ms: int) -> bool:
        """Let time pass until a call is over, or until so much has passed; return whether it is over.

        Raises ``ValueError`` where the requester has sent what nobody carries: what its host returned was not
        handed to :meth:`see_to`.
        """
        return self._pass(within_ms, lambda: call in self.requester.outcomes)

    # -- the requester ---------------------------------------------------------------------------------------

    def tell_requester(self, fact: RequesterInput) -> None:
        """Hand a fact to the requester, and see to what comes of it."""
        self._set_clocks()
        self.see_to(self.requester.give(fact))

    def see_to(self, effects: Iterable[RequesterEffect]) -> None:
        """Carry out what the requester said, for tests that speak to its host directly: each effect once.

        Raises ``ValueError`` for a request that is on its way already. A host's ``effects`` are all that
        there ever were: of a later call leave out those from before it, or use :meth:`call`,
        :meth:`tell_requester` and their like, which see to what comes of them.
        """
        for effect in effects:
            match effect:
                case SendRequest():
                    self._request(effect)
                case StopRequest(request=number):
                    connection = self._by_number[number]  # what is under way to it may still come
                    self._carry(connection, "there", partial(self._give_up, connection))
                case Prompt() if (answer := self.answer(effect)) is not None:
                    delay_ms, response = answer
                    given = AnswerGiven(effect.call, effect.key, response)
                    self._after(delay_ms, partial(self._give, self.requester, given))

    def _give(self, to: RequesterHost, answer: AnswerGiven) -> None:
        if to is self.requester:
            self.tell_requester(answer)

    def _check_that_all_is_carried(self) -> None:
        left = sorted(self.requester.in_flight.keys() - self._by_number.keys())
        if left:
            raise ValueError(f"nobody carries the requester's requests {left}: hand its effects to see_to")

    # -- the network -----------------------------------------------------------------------------------------

    def _carry(
        self,
        connection: Connection,
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
        act = partial(self._break, connection) if passage.cut else arrive
        self._after(when - self.now, partial(self._arrive, connection, act))
        if passage.again_ms is not None and not passage.cut:
            self._after(when - self.now + passage.again_ms, again)

    def _arrive(self, connection: Connection, act: Callable[[], None]) -> None:
        if connection.open:
            act()

    def _request(self, send: SendRequest) -> None:
        if send.request in self._by_number:
            raise ValueError(f"request {send.request} is on its way already: see to each effect once")
        connection = self._by_number[send.request] = Connection(number=send.request)
        message = send.message
        version = message["params"]["_meta"][PROTOCOL_VERSION]
        headers = request_headers(message["method"], message["params"], version, send.parameters)
        head = HttpHead(headers={name.lower(): value for name, value in headers})

        def received(exchange: int) -> MessageReceived:
            return MessageReceived(exchange=exchange, message=message, http=head, principal=self.principal)

        def again() -> None:
            copy = connection.copy = Connection(number=send.request, silent=True)
            self._reach(copy, received)
            if connection.given_up:
                self._give_up(copy)

        self._carry(connection, "there", partial(self._reach, connection, received), again)

    def _bring(self, connection: Connection, said: Reply | Send) -> None:
        """Have what the server said on its way back."""
        number, is_reply = connection.number, isinstance(said, Reply)
        news: RequesterInput
        if isinstance(said, Reply):
            http = HttpReply(status=said.http_status)
            news = ResponseReceived(request=number, message=said.message, http=http)
        else:
            news = NotificationReceived(number, said.message)

        def arrive() -> None:
            connection.open = not is_reply
            self.tell_requester(news)

        def again() -> None:
            if self._by_number.get(number) is connection:  # else another process has a request of this number
                self.tell_requester(news)

        self._carry(connection, "back", arrive, again)

    def _give_up(self, connection: Connection) -> None:
        """The requester's end is closed, and the server hears of it."""
        connection.open, connection.given_up = False, True
        if connection.exchange is not None:
            self._close(connection.exchange)
        if connection.copy is not None:
            self._give_up(connection.copy)

    def _break(self, connection: Connection, *, sent: bool = True) -> None:
        """Both ends hear that a connection is no more."""
        self._give_up(connection)
        if connection.number in self.requester.in_flight:
            self.tell_requester(RequestFailed(connection.number, "the connection broke", sent))

    # -- the other side, and the time ------------------------------------------------------------------------

    @abstractmethod
    def _reach(self, connection: Connection, received: Callable[[int], MessageReceived]) -> None:
        """A request is there."""

    @abstractmethod
    def _close(self, exchange: int) -> None:
        """The server hears that nobody waits any more."""

    @property
    @abstractmethod
    def now(self) -> int:
        """The time by the requester's clock."""

    def _set_clocks(self) -> None:
        self.requester.now = self.now

    @abstractmethod
    def _after(self, milliseconds: int, act: Callable[[], None]) -> None:
        """Do something later."""

    @abstractmethod
    def _pass(self, milliseconds: int, done: Callable[[], bool]) -> bool:
        """Let so much time pass, or until it is done; return whether it is."""
