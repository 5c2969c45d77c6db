"""The callers' side: requests that await their reply, and how they get it.

It is as with a server: parsed, counted, checked by ``negotiate``, answered once.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any, Final

from attrs import define, field, frozen

from mcp_tasks_proto.effects import Reply
from mcp_tasks_proto.errors import (
    ErrorObject,
    LocalProtocolError,
    internal_error,
    invalid_request,
    limit_reached,
)
from mcp_tasks_proto.inputs import HttpHead, MessageReceived
from mcp_tasks_proto.negotiation import TASK_METHODS, Reason, Refused, negotiate
from mcp_tasks_proto.proxy.inputs import MessageAdmitted
from mcp_tasks_proto.proxy.settings import Access
from mcp_tasks_proto.proxy.shared import Shared
from mcp_tasks_proto.subscriptions import Outbox
from mcp_tasks_proto.vocabulary import LOG_LEVEL, PROGRESS_TOKEN, SERVER_INFO
from mcp_tasks_proto.wire.jsonrpc import (
    Malformed,
    Notification,
    Request,
    error_message,
    is_id,
    notification_message,
    parse_message,
    result_message,
)

__all__ = ["SHUTTING_DOWN", "Callers", "Exchange"]

SHUTTING_DOWN: Final = internal_error("the proxy is shutting down", reason="shutting_down")

LOG_BACKLOG: Final = 64
"""Log messages that may wait on one exchange; the oldest gives way."""


def _nothing() -> None:
    """Do nothing: there is nothing to be given up."""


@define(eq=False, kw_only=True)
class Exchange:
    """A caller's request whose reply is owed."""

    key: Hashable
    request: Request
    capabilities: Mapping[str, Any]
    may_use_tasks: bool
    """Whether the extension is on for this request, and declared by it."""
    tasks_enabled: bool
    connection: Hashable | None
    principal: str | None
    access: Access
    legacy: bool
    http: HttpHead | None
    refusal: ErrorObject | None = None
    """What to say to a request about tasks that declares none, if there are any to be had (NEG.6, NEG.7)."""
    open: bool = True
    """Whether its caller can still be answered."""
    abandoned: Callable[[], None] = _nothing
    """Called when its caller goes away."""
    outbox: Outbox | None = None
    _logged: int = field(init=False, default=0)

    @property
    def takes_notifications(self) -> bool:
        """Whether there can be anything before the reply."""
        return self.http is None or self.http.accepts_stream


@frozen
class _Served:
    """What is served to one caller; for :func:`negotiate`."""

    versions: tuple[str, ...]
    methods: frozenset[str]


@define(eq=False, kw_only=True)
class Callers:
    """The exchanges of one engine."""

    shared: Shared
    begin: Callable[[Exchange], None]
    """Called for a request that passed the checks."""
    stopping: bool = False
    _exchanges: dict[Hashable, Exchange] = field(init=False, factory=dict)
    _by_request_id: dict[tuple[Hashable, str | int], Exchange] = field(init=False, factory=dict)

    def in_flight(self, connection: Hashable, request_id: str | int) -> bool:
        """Whether a request with this id awaits its reply on a channel (WIRE.3)."""
        return (connection, request_id) in self._by_request_id

    # -- in --------------------------------------------------------------------------------------------

    def received(self, received: MessageReceived) -> None:
        """Take in a message."""
        if received.exchange in self._exchanges:
            raise LocalProtocolError("MessageReceived: this exchange is open already")
        message = parse_message(received.message)
        if isinstance(message, Request):
            self._request(received, message)
        elif isinstance(message, Notification):
            self._notification(received, message)
            self.shared.out.append(Reply(received.exchange, None, 202))
        elif isinstance(message, Malformed):
            self._refuse(received, message.id, message.error)
        else:
            self._refuse(received, None, invalid_request("a proxy takes no responses"))

    def _request(self, received: MessageReceived, request: Request) -> None:
        if self.in_flight(received.connection, request.id):
            return self._refuse(received, request.id, invalid_request("a request with this id is in flight"))
        if self.stopping:
            return self._refuse(received, request.id, SHUTTING_DOWN, 503)
        if len(self._exchanges) >= self.shared.limits.exchanges:
            return self._refuse(received, request.id, limit_reached("exchanges"))
        settings = self.shared.settings
        access = received.access if isinstance(received, MessageAdmitted) else settings.access
        methods = settings.methods if settings.single else frozenset[str]()
        decision = negotiate(
            request,
            http=received.http,
            tasks_enabled=received.tasks_enabled,
            settings=_Served(settings.versions, methods),
            tools={},
        )
        refused = decision if isinstance(decision, Refused) else None
        # The method comes before the capability (NEG.3), and whether it is served the engine finds out first.
        undecided = refused and refused.reason is Reason.CAPABILITY and request.method in TASK_METHODS
        if refused is not None and not undecided:
            return self._refuse(received, request.id, refused.error, refused.http_status)
        exchange = Exchange(
            key=received.exchange,
            request=request,
            capabilities={} if isinstance(decision, Refused) else decision.capabilities,
            may_use_tasks=not isinstance(decision, Refused) and decision.declares_tasks,
            tasks_enabled=received.tasks_enabled,
            connection=received.connection,
            principal=received.principal,
            access=access,
            legacy=isinstance(received, MessageAdmitted) and received.legacy,
            http=received.http,
            refusal=None if refused is None else refused.error,
        )
        self._exchanges[exchange.key] = exchange
        if exchange.connection is not None:
            self._by_request_id[exchange.connection, request.id] = exchange
        return self.begin(exchange)

    def _notification(self, received: MessageReceived, notification: Notification) -> None:
        """Over HTTP a closed stream is what cancels; a notification that is not understood is ignored."""
        request_id = notification.params.get("requestId")
        if notification.method == "notifications/cancelled" and is_id(request_id):
            exchange = self._by_request_id.get((received.connection, request_id))
            if exchange is not None:
                self._abandon(exchange)

    def _refuse(
        self,
        received: MessageReceived,
        request_id: str | int | None,
        error: ErrorObject,
        http_status: int | None = None,
    ) -> None:
        status = error.http_status if http_status is None else http_status
        self.shared.out.append(Reply(received.exchange, error_message(request_id, error), status))

    def find(self, key: Hashable) -> Exchange | None:
        """Return an exchange whose reply is owed."""
        return self._exchanges.get(key)

    def closed(self, key: Hashable) -> None:
        """A caller has gone."""
        exchange = self._exchanges.get(key)
        if exchange is not None:
            self._abandon(exchange)

    def stream_ready(self, key: Hashable) -> None:
        """What was sent on an exchange has left."""
        exchange = self._exchanges.get(key)
        if exchange is not None and exchange.outbox is not None:
            self.shared.out.extend(exchange.outbox.ready())

    def _abandon(self, exchange: Exchange) -> None:
        self._forget(exchange)
        exchange.abandoned()

    def _forget(self, exchange: Exchange) -> None:
        exchange.open = False
        del self._exchanges[exchange.key]
        if exchange.connection is not None:
            del self._by_request_id[exchange.connection, exchange.request.id]

    # -- out -------------------------------------------------------------------------------------------

    def result(self, exchange: Exchange, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return a result as a message; every one says what it is and who gave it."""
        meta = {**body.get("_meta", {}), SERVER_INFO: self.shared.server_info}
        return result_message(exchange.request.id, {"resultType": "complete", **body, "_meta": meta})

    def reply(self, exchange: Exchange, body: Mapping[str, Any]) -> None:
        """End an exchange with a result."""
        self.finish(exchange, self.result(exchange, body), 200)

    def fail(self, exchange: Exchange, error: ErrorObject) -> None:
        """End an exchange with an error."""
        self.finish(exchange, error_message(exchange.request.id, error), error.http_status)

    def settle(self, exchange: Exchange, outcome: Mapping[str, Any] | ErrorObject) -> None:
        """End an exchange either way."""
        if isinstance(outcome, ErrorObject):
            self.fail(exchange, outcome)
        else:
            self.reply(exchange, outcome)

    def finish(self, exchange: Exchange, message: dict[str, Any], http_status: int) -> None:
        """End an exchange with a message, after all that waits to be sent on it."""
        if exchange.outbox is not None:
            self.shared.out.extend(exchange.outbox.flush())
        self.shared.out.append(Reply(exchange.key, message, http_status))
        self._forget(exchange)

    def relay(self, exchange: Exchange, notification: Notification, params: Mapping[str, Any]) -> None:
        """Pass on what an upstream reports on the way, if the caller asked for it: progress, under the
        caller's own token, and log messages."""
        meta = exchange.request.params["_meta"]
        if not exchange.takes_notifications:
            return
        match notification.method:
            case "notifications/progress" if is_id(meta.get(PROGRESS_TOKEN)):
                subject: Hashable = "progress"
                params = {**params, PROGRESS_TOKEN: meta[PROGRESS_TOKEN]}
            case "notifications/message" if LOG_LEVEL in meta:
                exchange._logged += 1
                subject = exchange._logged
            case _:
                return
        if exchange.outbox is None:
            exchange.outbox = Outbox(exchange.key)
        exchange.outbox.drop(exchange._logged - LOG_BACKLOG)
        method = notification.method
        self.shared.out.extend(exchange.outbox.put(subject, lambda: notification_message(method, params)))
