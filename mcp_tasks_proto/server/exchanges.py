"""The requests whose reply a server owes: each that ``negotiate`` lets pass goes to the method it names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from attrs import define, field

from mcp_tasks_proto.effects import StopCall
from mcp_tasks_proto.errors import STOPPING, ErrorObject, internal_error
from mcp_tasks_proto.exchanges import OpenExchanges
from mcp_tasks_proto.inputs import MessageReceived, StreamReady
from mcp_tasks_proto.negotiation import Refused, negotiate
from mcp_tasks_proto.server.exchange import Awaits, Exchange
from mcp_tasks_proto.server.tools import Tools
from mcp_tasks_proto.settings import ServerSettings
from mcp_tasks_proto.subscriptions import Streams
from mcp_tasks_proto.vocabulary import SERVER_INFO
from mcp_tasks_proto.wire.jsonrpc import Request, result_message

__all__ = ["SHUTTING_DOWN", "Exchanges", "Method"]

SHUTTING_DOWN: Final = internal_error("the server is shutting down", reason=STOPPING)

Method = Callable[[Exchange], None]
"""Begins to answer a request."""


@define(eq=False, repr=False, kw_only=True)
class Exchanges(OpenExchanges[Exchange]):
    """The exchanges of one server."""

    settings: ServerSettings
    tools: Tools
    streams: Streams
    shutting_down: ErrorObject = SHUTTING_DOWN
    methods: Mapping[str, Method] = field(init=False)
    """The methods that the engine answers itself, by name."""
    other_method: Method = field(init=False)
    """Answers all others."""
    _info: dict[str, Any] = field(init=False)

    def __attrs_post_init__(self) -> None:
        settings = self.settings
        self._info = {**settings.info, "name": settings.name, "version": settings.version}

    def serve(self, methods: Mapping[str, Method], *, other: Method) -> None:
        """Hand requests to these from now on; before the first message."""
        self.methods = methods
        self.other_method = other

    @property
    def most(self) -> int:
        """How many there may be."""
        return self.settings.limits.exchanges

    def _begin(self, received: MessageReceived, request: Request) -> None:
        decision = negotiate(
            request,
            http=received.http,
            tasks_enabled=received.tasks_enabled,
            settings=self.settings,
            tools=self.tools.by_name,
        )
        if isinstance(decision, Refused):
            self._refuse(received, request.id, decision.error, decision.http_status)
            return
        exchange = Exchange(
            key=received.exchange,
            request=request,
            capabilities=decision.capabilities,
            may_use_tasks=decision.declares_tasks,
            tasks_enabled=received.tasks_enabled,
            connection=received.connection,
            principal=received.principal,
            takes_notifications=received.http is None or received.http.accepts_stream,
        )
        self._open(exchange)
        self.methods.get(request.method, self.other_method)(exchange)

    def _left(self, exchange: Exchange, *, cancelled: bool) -> None:
        if cancelled or exchange.awaits is Awaits.CALL:
            self.out.append(StopCall(exchange.key))

    def _forget(self, exchange: Exchange) -> None:
        OpenExchanges._forget(self, exchange)
        if exchange.awaits is Awaits.NEWS:
            self.streams.close(exchange.key)

    def stream_ready(self, ready: StreamReady) -> None:
        """What was sent on an exchange has left: there is room for what waits on it, and on its stream."""
        OpenExchanges.stream_ready(self, ready)
        if ready.exchange in self.by_key:
            self.out.extend(self.streams.ready(ready.exchange))

    def result(self, exchange: Exchange, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return a result as a message; every one says what it is and who gave it (WIRE.4)."""
        result = dict(body)
        result.setdefault("resultType", "complete")
        if self.settings.identify:
            result["_meta"] = {**body.get("_meta", {}), SERVER_INFO: self._info}
        return result_message(exchange.request.id, result)
