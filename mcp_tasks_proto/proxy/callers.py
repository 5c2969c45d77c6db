"""The callers' side: requests that await their reply, and how they get it.

It is as with a server: parsed, counted, checked by ``negotiate``, answered once.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any, Final

from attrs import define, field

from mcp_tasks_proto.effects import StopCall
from mcp_tasks_proto.errors import STOPPING, ErrorObject, LocalProtocolError, internal_error
from mcp_tasks_proto.exchanges import OpenExchanges
from mcp_tasks_proto.inputs import HttpHead, MessageReceived
from mcp_tasks_proto.negotiation import TASK_METHODS, Accepted, Reason, negotiate
from mcp_tasks_proto.proxy.inputs import MessageAdmitted
from mcp_tasks_proto.proxy.settings import Access
from mcp_tasks_proto.proxy.shared import Shared
from mcp_tasks_proto.subscriptions import Outbox
from mcp_tasks_proto.vocabulary import LOG_LEVEL, PROGRESS_TOKEN, SERVER_INFO
from mcp_tasks_proto.wire.jsonrpc import (
    Notification,
    Request,
    is_id,
    notification_message,
    result_message,
)

__all__ = ["SHUTTING_DOWN", "Callers", "Exchange"]

SHUTTING_DOWN: Final = internal_error("the proxy is shutting down", reason=STOPPING)

LOG_BACKLOG: Final = 64
"""Log messages that may wait on one exchange; the oldest gives way."""


def _nothing() -> None:
    """Do nothing: there is nothing to be given up."""


@define(eq=False, repr=False, kw_only=True)
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


@define(eq=False, repr=False, kw_only=True)
class Callers(OpenExchanges[Exchange]):
    """The exchanges of one proxy with its callers."""

    shared: Shared
    begin: Callable[[Exchange], None]
    """Called for a request that passed the checks."""
    shutting_down: ErrorObject = SHUTTING_DOWN

    @property
    def most(self) -> int:
        """How many there may be."""
        return self.shared.limits.exchanges

    def _begin(self, received: MessageReceived, request: Request) -> None:
        shared = self.shared
        decision = negotiate(
            request,
            http=received.http,
            tasks_enabled=received.tasks_enabled,
            settings=shared.served,
            tools={},
        )
        capabilities: Mapping[str, Any] = {}
        may_use_tasks, refusal = False, None
        if isinstance(decision, Accepted):
            capabilities, may_use_tasks = decision.capabilities, decision.declares_tasks
        elif decision.reason is Reason.CAPABILITY and request.method in TASK_METHODS:
            # The method comes before the capability (NEG.3), and whether it is served the engine finds out.
            refusal = decision.error
        else:
            self._refuse(received, request.id, decision.error, decision.http_status)
            return
        access, legacy = shared.settings.access, False
        if isinstance(received, MessageAdmitted):
            access, legacy = received.access, received.legacy
            if not isinstance(access, Access):
                raise LocalProtocolError("access is an Access")
        exchange = Exchange(
            key=received.exchange,
            request=request,
            capabilities=capabilities,
            may_use_tasks=may_use_tasks,
            tasks_enabled=received.tasks_enabled,
            connection=received.connection,
            principal=received.principal,
            access=access,
            legacy=legacy,
            http=received.http,
            refusal=refusal,
        )
        self._open(exchange)
        self.begin(exchange)

    def find(self, key: Hashable) -> Exchange | None:
        """Return an exchange whose reply is owed."""
        return self.by_key.get(key)

    def _left(self, exchange: Exchange, *, cancelled: bool) -> None:
        exchange.abandoned()
        if cancelled:
            self.out.append(StopCall(exchange.key))

    def _forget(self, exchange: Exchange) -> None:
        exchange.open = False
        OpenExchanges._forget(self, exchange)

    def result(self, exchange: Exchange, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return a result as a message; every one says what it is and who gave it (WIRE.4)."""
        meta = {SERVER_INFO: self.shared.server_info}
        if "_meta" in body:
            meta = {**body["_meta"], **meta}
        return result_message(exchange.request.id, {"resultType": "complete", **body, "_meta": meta})

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
        self.out.extend(exchange.outbox.put(subject, lambda: notification_message(method, params)))
