"""The requests whose reply is owed: how messages come in, and how replies go out.

A message is parsed, counted and checked by ``negotiate``; a request that passes is handed to the method that
it names, and answered once.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any, Final

from attrs import define, field

from mcp_tasks_proto.effects import Effect, Reply, StopCall
from mcp_tasks_proto.errors import (
    ErrorObject,
    LocalProtocolError,
    internal_error,
    invalid_request,
    limit_reached,
)
from mcp_tasks_proto.inputs import ExchangeClosed, MessageReceived, StreamReady
from mcp_tasks_proto.negotiation import Refused, negotiate
from mcp_tasks_proto.server.exchange import Awaits, Exchange
from mcp_tasks_proto.server.tools import Tools
from mcp_tasks_proto.settings import ServerSettings
from mcp_tasks_proto.subscriptions import Streams
from mcp_tasks_proto.vocabulary import SERVER_INFO
from mcp_tasks_proto.wire.jsonrpc import (
    Malformed,
    Notification,
    Request,
    error_message,
    is_id,
    parse_message,
    result_message,
)

__all__ = ["SHUTTING_DOWN", "Exchanges", "Method"]

SHUTTING_DOWN: Final = internal_error("the server is shutting down", reason="shutting_down")

Method = Callable[[Exchange], None]
"""Begins to answer a request."""


@define(eq=False, kw_only=True)
class Exchanges:
    """The exchanges of one engine."""

    settings: ServerSettings
    tools: Tools
    streams: Streams
    out: list[Effect]
    """Where effects go, in order."""
    stopping: bool = False
    """Whether new requests are refused."""
    by_key: dict[Hashable, Exchange] = field(init=False, factory=dict)
    """Those that are open."""
    methods: Mapping[str, Method] = field(init=False)
    """The methods that the engine answers itself, by name."""
    other_method: Method = field(init=False)
    """Answers all others."""
    _by_request_id: dict[tuple[Hashable, str | int], Exchange] = field(init=False, factory=dict)
    _info: dict[str, Any] = field(init=False)

    def __attrs_post_init__(self) -> None:
        settings = self.settings
        self._info = {**settings.info, "name": settings.name, "version": settings.version}

    def serve(self, methods: Mapping[str, Method], *, other: Method) -> None:
        """Hand requests to these from now on; before the first message."""
        self.methods = methods
        self.other_method = other

    def in_flight(self, connection: Hashable, request_id: str | int) -> bool:
        """Whether a request with this id awaits its answer on this shared channel (WIRE.3)."""
        return (connection, request_id) in self._by_request_id

    # -- in ------------------------------------------------------------------------------------------

    def received(self, received: MessageReceived) -> None:
        """Take in a message."""
        if received.exchange in self.by_key:
            raise LocalProtocolError("MessageReceived: this exchange is open already")
        message = parse_message(received.message)
        if isinstance(message, Request):
            self._request(received, message)
        elif isinstance(message, Notification):
            self._notification(received, message)
            self.out.append(Reply(received.exchange, None, 202))
        elif isinstance(message, Malformed):
            self._refuse(received, message.id, message.error)
        elif received.connection is None:
            self._refuse(received, None, invalid_request("a server takes no responses"))
        else:  # two who answer each other's answers never end
            self.out.append(Reply(received.exchange, None, 202))

    def _request(self, received: MessageReceived, request: Request) -> None:
        key, settings = received.exchange, self.settings
        if self.in_flight(received.connection, request.id):
            return self._refuse(received, request.id, invalid_request("a request with this id is in flight"))
        if self.stopping:
            return self._refuse(received, request.id, SHUTTING_DOWN, 503)
        if len(self.by_key) >= settings.limits.exchanges:
            return self._refuse(received, request.id, limit_reached("exchanges"))
        decision = negotiate(
            request,
            http=received.http,
            tasks_enabled=received.tasks_enabled,
            settings=settings,
            tools=self.tools.by_name,
        )
        if isinstance(decision, Refused):
            return self._refuse(received, request.id, decision.error, decision.http_status)
        exchange = Exchange(
            key=key,
            request=request,
            capabilities=decision.capabilities,
            may_use_tasks=decision.declares_tasks,
            tasks_enabled=received.tasks_enabled,
            connection=received.connection,
            principal=received.principal,
            takes_notifications=received.http is None or received.http.accepts_stream,
        )
        self.by_key[key] = exchange
        if received.connection is not None:
            self._by_request_id[received.connection, request.id] = exchange
        self.methods.get(request.method, self.other_method)(exchange)
        return None

    def _notification(self, received: MessageReceived, notification: Notification) -> None:
        """Over HTTP a closed stream is what cancels; a notification that is not understood is ignored."""
        if received.connection is None or notification.method != "notifications/cancelled":
            return
        request_id = notification.params.get("requestId")
        if not is_id(request_id):
            return
        exchange = self._by_request_id.get((received.connection, request_id))
        if exchange is not None:
            self._drop(exchange)
            self.out.append(StopCall(exchange.key))

    def _refuse(
        self,
        received: MessageReceived,
        request_id: str | int | None,
        error: ErrorObject,
        http_status: int | None = None,
    ) -> None:
        status = error.http_status if http_status is None else http_status
        self.out.append(Reply(received.exchange, error_message(request_id, error), status))

    def closed(self, closed: ExchangeClosed) -> None:
        """Whoever waited for an exchange is gone."""
        exchange = self.by_key.get(closed.exchange)
        if exchange is not None:
            self._drop(exchange)
            if exchange.awaits is Awaits.CALL:
                self.out.append(StopCall(exchange.key))

    def stream_ready(self, ready: StreamReady) -> None:
        """What was sent on an exchange has left."""
        exchange = self.by_key.get(ready.exchange)
        if exchange is None:
            return
        if exchange.outbox is not None:
            self.out.extend(exchange.outbox.ready())
        self.out.extend(self.streams.ready(ready.exchange))

    # -- out -----------------------------------------------------------------------------------------

    def reply(self, exchange: Exchange, body: dict[str, Any]) -> None:
        """End an exchange with a result."""
        self.finish(exchange, self.result(exchange, body), 200)

    def result(self, exchange: Exchange, body: dict[str, Any]) -> dict[str, Any]:
        """Return a result as a message; every one says what it is and who gave it (WIRE.4)."""
        body.setdefault("resultType", "complete")
        if self.settings.identify:
            body["_meta"] = {**body.get("_meta", {}), SERVER_INFO: self._info}
        return result_message(exchange.request.id, body)

    def fail(self, exchange: Exchange, error: ErrorObject) -> None:
        """End an exchange with an error."""
        self.finish(exchange, error_message(exchange.request.id, error), error.http_status)

    def settle(self, exchange: Exchange, outcome: dict[str, Any] | ErrorObject) -> None:
        """End an exchange either way."""
        if isinstance(outcome, ErrorObject):
            self.fail(exchange, outcome)
        else:
            self.reply(exchange, outcome)

    def finish(self, exchange: Exchange, message: dict[str, Any], http_status: int) -> None:
        """End an exchange with a message, after all that waits to be sent on it."""
        if exchange.outbox is not None:
            self.out.extend(exchange.outbox.flush())
        self.out.append(Reply(exchange.key, message, http_status))
        self._drop(exchange)

    def _drop(self, exchange: Exchange) -> None:
        """Forget an exchange: it was answered, or nobody waits for it any more."""
        del self.by_key[exchange.key]
        if exchange.connection is not None:
            del self._by_request_id[exchange.connection, exchange.request.id]
        if exchange.awaits is Awaits.NEWS:
            self.streams.close(exchange.key)
