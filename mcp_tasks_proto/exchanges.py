"""Requests whose reply is owed, and the messages that they come in: alike for a server and for a proxy.

A message is parsed and counted; what becomes of a request that may come in is the role's to say. Each is
answered once, unless whoever waits for it goes away.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping
from typing import Any, Generic, Protocol, TypeVar

from attrs import define, field

from mcp_tasks_proto.effects import Reply
from mcp_tasks_proto.errors import ErrorObject, LocalProtocolError, invalid_request, limit_reached
from mcp_tasks_proto.inputs import (
    ExchangeClosed,
    MessageReceived,
    SessionEnded,
    StreamReady,
    StreamRequested,
)
from mcp_tasks_proto.subscriptions import Outbox
from mcp_tasks_proto.wire.jsonrpc import (
    Malformed,
    Notification,
    Request,
    Response,
    error_message,
    is_id,
    parse_message,
)

__all__ = ["OpenExchanges", "Owed", "refusal_of"]


class Owed(Protocol):
    """A request whose reply is owed."""

    @property
    def key(self) -> Hashable:
        """The host's name for the exchange."""

    @property
    def request(self) -> Request:
        """What was asked."""

    @property
    def connection(self) -> Hashable | None:
        """The channel it came on, where that is shared with others."""

    @property
    def outbox(self) -> Outbox | None:
        """What waits to be sent before the reply."""


_Exchange = TypeVar("_Exchange", bound=Owed)


@define(eq=False, repr=False, kw_only=True)
class OpenExchanges(ABC, Generic[_Exchange]):
    """The exchanges of one engine that are open."""

    out: list[Any]
    """Where effects go, in order."""
    shutting_down: ErrorObject
    """What new requests are told once ``stopping``."""
    stopping: bool = False
    """Whether new requests are refused."""
    by_key: dict[Hashable, _Exchange] = field(init=False, factory=dict)
    _by_request_id: dict[tuple[Hashable, str | int], _Exchange] = field(init=False, factory=dict)

    @property
    @abstractmethod
    def most(self) -> int:
        """How many there may be (``Limits.exchanges``)."""

    @abstractmethod
    def _begin(self, received: MessageReceived, request: Request) -> None:
        """Check a request that may come in; :meth:`_refuse` or :meth:`_open` it."""

    @abstractmethod
    def _left(self, exchange: _Exchange, *, cancelled: bool) -> None:
        """Whoever waited for an exchange is gone, or has ``cancelled`` it; it is forgotten already."""

    @abstractmethod
    def result(self, exchange: _Exchange, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return a result as a message; every one says what it is and who gave it (WIRE.4)."""

    def in_flight(self, connection: Hashable, request_id: str | int) -> bool:
        """Whether a request with this id awaits its answer on this shared channel (WIRE.3)."""
        return (connection, request_id) in self._by_request_id

    # -- in ------------------------------------------------------------------------------------------

    def received(self, received: MessageReceived) -> None:
        """Take in a message."""
        if received.exchange in self.by_key:
            raise LocalProtocolError("this exchange is open already")
        message = parse_message(received.message)
        if isinstance(message, Request):
            self._request(received, message)
        elif isinstance(message, Notification):
            self._notification(received, message)
            self.out.append(Reply(received.exchange, None, 202))
        elif isinstance(message, Malformed):
            self._refuse(received, message.id, message.error)
        elif received.connection is None:
            self._refuse(received, None, invalid_request("no responses are taken here"))
        else:  # two who answer each other's answers never end
            self.out.append(Reply(received.exchange, None, 202))

    def _request(self, received: MessageReceived, request: Request) -> None:
        if received.connection is not None and self.in_flight(received.connection, request.id):
            self._refuse(received, request.id, invalid_request("a request with this id is in flight"))
        elif self.stopping:
            self._refuse(received, request.id, self.shutting_down, 503)
        elif len(self.by_key) >= self.most:
            self._refuse(received, request.id, limit_reached("exchanges"))
        else:
            self._begin(received, request)

    def _notification(self, received: MessageReceived, notification: Notification) -> None:
        """Over HTTP a closed stream is what cancels; a notification that is not understood is ignored."""
        request_id = notification.params.get("requestId")
        if notification.method != "notifications/cancelled" or not is_id(request_id):
            return
        exchange = self._by_request_id.get((received.connection, request_id))
        if exchange is not None:
            self._forget(exchange)
            self._left(exchange, cancelled=True)

    def _refuse(
        self,
        received: MessageReceived,
        request_id: str | int | None,
        error: ErrorObject,
        http_status: int | None = None,
    ) -> None:
        status = error.http_status if http_status is None else http_status
        self.out.append(Reply(received.exchange, error_message(request_id, error), status))

    def _open(self, exchange: _Exchange) -> None:
        self.by_key[exchange.key] = exchange
        if exchange.connection is not None:
            self._by_request_id[exchange.connection, exchange.request.id] = exchange

    def closed(self, closed: ExchangeClosed) -> None:
        """Whoever waited for an exchange is gone."""
        exchange = self.by_key.get(closed.exchange)
        if exchange is not None:
            self._forget(exchange)
            self._left(exchange, cancelled=False)

    def stream_ready(self, ready: StreamReady) -> None:
        """What was sent on an exchange has left."""
        exchange = self.by_key.get(ready.exchange)
        if exchange is not None and exchange.outbox is not None:
            self.out.extend(exchange.outbox.ready())

    def _forget(self, exchange: _Exchange) -> None:
        """Forget an exchange: it was answered, or nobody waits for it any more."""
        del self.by_key[exchange.key]
        if exchange.connection is not None:
            del self._by_request_id[exchange.connection, exchange.request.id]

    # -- out -----------------------------------------------------------------------------------------

    def reply(self, exchange: _Exchange, body: Mapping[str, Any]) -> None:
        """End an exchange with a result."""
        self.finish(exchange, self.result(exchange, body), 200)

    def fail(self, exchange: _Exchange, error: ErrorObject) -> None:
        """End an exchange with an error."""
        self.finish(exchange, error_message(exchange.request.id, error), error.http_status)

    def settle(self, exchange: _Exchange, outcome: Mapping[str, Any] | ErrorObject) -> None:
        """End an exchange either way."""
        if isinstance(outcome, ErrorObject):
            self.fail(exchange, outcome)
        else:
            self.reply(exchange, outcome)

    def finish(self, exchange: _Exchange, message: dict[str, Any], http_status: int) -> None:
        """End an exchange with a message, after all that waits to be sent on it."""
        if exchange.outbox is not None:
            self.out.extend(exchange.outbox.flush())
        self.out.append(Reply(exchange.key, message, http_status))
        self._forget(exchange)


def refusal_of(
    received: MessageReceived | StreamRequested | SessionEnded, error: ErrorObject
) -> dict[str, Any] | None:
    """Return what is said to somebody whose message is not let in, by a host or an engine (WIRE.1).

    ``None``: nothing, as to a notification, and to a response on a channel where both sides ask.
    """
    if not isinstance(received, MessageReceived):
        return error_message(None, error)
    message = parse_message(received.message)
    if isinstance(message, Response):
        return None if received.connection is not None else error_message(None, error)
    return None if isinstance(message, Notification) else error_message(message.id, error)
