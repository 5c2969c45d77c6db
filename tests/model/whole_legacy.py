"""People and servers of :mod:`tests.model.whole` who speak 2025-11-25, and the proxy between them."""

from __future__ import annotations

from typing import Any, Final

from attrs import evolve

from mcp_tasks_proto import (
    HttpHead,
    MessageReceived,
    OpenStream,
    Reply,
    Send,
    SessionEnded,
    StreamRequested,
)
from mcp_tasks_proto.legacy.messages import SendLegacy, ServerAsked, StreamOpened
from mcp_tasks_proto.legacy.proxy import DualEraProxy, DualEraProxyInput
from mcp_tasks_proto.legacy.server import DualEraServer, LegacyPolicy
from mcp_tasks_proto.legacy.server.registry import Registry
from mcp_tasks_proto.proxy import ProxyEngine, UpstreamAnswered, UpstreamFailed, UpstreamNotified
from mcp_tasks_proto.requester import HttpReply, NotificationReceived, RequestFailed, ResponseReceived
from mcp_tasks_proto.testing import Network
from tests.model.mill import LIMITS, make_engine
from tests.unit.legacy_requester_world import LegacyHost, make_dual

__all__ = [
    "SESSION_IDLE_MS",
    "arrival",
    "engine_of",
    "is_own_stream",
    "legacy_host",
    "make_legacy_engine",
    "news_for_proxy",
    "news_of",
    "registry_of",
]

SESSION_IDLE_MS: Final = 8_000
"""Sessions of servers end after so much silence."""


def legacy_host(*, listen: bool) -> LegacyHost:
    """Return a host of a requester whose server is known to speak 2025-11-25."""
    host = make_dual(era="legacy", capabilities={"elicitation": {}}, listen=listen)
    host.slow = True
    return host


def make_legacy_engine(name: str) -> DualEraServer:
    """Return the engine of a server process that is spoken to in 2025-11-25; its sessions end soon."""
    modern = make_engine(name, limits=evolve(LIMITS, session_idle_ms=SESSION_IDLE_MS))
    return DualEraServer(settings=modern.settings, tools=modern.tools, node=name, policy=LegacyPolicy.SERVE)


def arrival(
    sent: SendLegacy, exchange: int, principal: str | None = None
) -> MessageReceived | StreamRequested | SessionEnded:
    """Return what a proxy sees of what somebody sent, or a server of what its proxy did."""
    headers = {
        "mcp-protocol-version": sent.version,
        "mcp-session-id": sent.session,
        "last-event-id": sent.last_event_id,
    }
    given = {name: value for name, value in headers.items() if value is not None}
    head = HttpHead(headers=given, method=sent.verb)
    match sent.verb:
        case "GET":
            return StreamRequested(exchange=exchange, http=head, principal=principal)
        case "DELETE":
            return SessionEnded(exchange=exchange, http=head, principal=principal)
    return MessageReceived(
        exchange=exchange,
        message=sent.message,
        http=head,
        principal=principal,
        new_session=f"session-{exchange:020}",
    )


def news_of(effect: Reply | Send | OpenStream, number: int, new_id: str) -> Any:
    """Return what somebody hears of what the proxy says on a request of theirs, or a server to the proxy."""
    match effect:
        case OpenStream():
            return StreamOpened(number)
        case Send(message=message) if "id" in message:
            return ServerAsked(request=number, message=message, new_id=new_id)
        case Send(message=message):
            return NotificationReceived(number, message)
    http = HttpReply(status=effect.http_status, session=effect.session)
    return ResponseReceived(request=number, message=effect.message, http=http)


def news_for_proxy(fact: DualEraProxyInput) -> Any:
    """Return what a proxy that may have servers of both eras is told of one of theirs."""
    match fact:
        case UpstreamAnswered(request=name, message=message):
            return ResponseReceived(request=name, message=message, http=HttpReply(status=200))
        case UpstreamFailed(request=name, sent=sent):
            return RequestFailed(name, "the connection broke", sent)
        case UpstreamNotified(request=name, message=message):
            return NotificationReceived(name, message)
    return fact


def is_own_stream(sent: Any) -> bool:
    """Whether this is the stream of a session: when its process leaves, no engine stops it."""
    return isinstance(sent, SendLegacy) and sent.verb == "GET" and sent.last_event_id is None


def engine_of(proxy: Any) -> ProxyEngine:
    """Return the engine of a proxy, whichever eras it knows."""
    inner: Any = proxy._inner.engine if isinstance(proxy, DualEraProxy) else None
    engine = proxy if inner is None else inner
    assert isinstance(engine, ProxyEngine)
    return engine


def registry_of(network: Network, node: str) -> Registry:
    """Return the sessions that a server process has."""
    engine: Any = network._nodes[node].engine
    assert isinstance(engine, DualEraServer)
    return engine._registry
