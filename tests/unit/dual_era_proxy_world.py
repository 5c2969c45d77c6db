"""What the tests of a proxy of both eras share: a host, a legacy upstream, legacy callers."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from itertools import count
from typing import Any, Final

from attrs import define, field, fields, has

from mcp_tasks_proto.inputs import HttpHead, MessageReceived, SessionEnded, StreamRequested
from mcp_tasks_proto.legacy.messages import ServerAsked
from mcp_tasks_proto.legacy.proxy import DualEraProxy, SendLegacyUpstream, UpstreamSaid
from mcp_tasks_proto.limits import Limits
from mcp_tasks_proto.proxy import (
    Access,
    HandleCodec,
    MessageAdmitted,
    SendUpstream,
    StopUpstream,
    StoredHandles,
    Upstream,
    UpstreamAnswered,
    UpstreamFailed,
    UpstreamNotified,
)
from mcp_tasks_proto.requester import NotificationReceived, RequestFailed, ResponseReceived
from mcp_tasks_proto.requester.inputs import HttpReply
from mcp_tasks_proto.testing import ProxyHost, ProxyStore
from mcp_tasks_proto.timers import Timers
from mcp_tasks_proto.vocabulary import LEGACY_VERSION
from mcp_tasks_proto.wire.jsonrpc import notification_message, request_message
from tests.unit.proxy_world import CREATED, START, make_settings

__all__ = ["DualEraHost", "held", "legacy_task", "make_dual_era"]

SESSION: Final = "upstream-session"
TASKS: Final[Mapping[str, Any]] = {"tasks": {"cancel": {}, "list": {}, "requests": {"tools": {"call": {}}}}}


@define(eq=False, kw_only=True)
class DualEraHost(ProxyHost):
    """A host that speaks to upstreams as a requester does, and has sessions with callers."""

    engine: Any
    http: bool = True
    """Whether upstreams are on HTTP."""
    effects: list[Any] = field(init=False, factory=list)
    legacy_sent: list[SendLegacyUpstream] = field(init=False, factory=list)
    _sessions: count[int] = field(init=False, factory=lambda: count(1))

    def give(self, fact: Any) -> list[Any]:
        """Hand in a fact, in the words that this engine has for it."""
        reply = HttpReply(status=200, session=SESSION) if self.http else None
        match fact:
            case UpstreamAnswered(request=name, message=message, http_status=status):
                self.in_flight.pop(name, None)
                http = reply if status is None else HttpReply(status=status)
                fact = ResponseReceived(request=name, message=message, http=http)
            case UpstreamFailed(request=name, sent=sent):
                self.in_flight.pop(name, None)
                fact = RequestFailed(name, "broken", sent=sent)
            case UpstreamNotified(request=name, message=message):
                fact = NotificationReceived(name, message)
        return ProxyHost.give(self, fact)

    def _take(self, effect: Any) -> None:
        if isinstance(effect, SendUpstream):
            self.effects.append(effect)
            self.in_flight[effect.request] = effect
        elif isinstance(effect, SendLegacyUpstream):
            self.effects.append(effect)
            self.legacy_sent.append(effect)
            self.in_flight[effect.send.request] = SendUpstream(
                request=effect.send.request,
                upstream=effect.upstream,
                authorization=effect.authorization,
                message=dict(effect.send.message or {"method": effect.send.verb}),
            )
            if "method" not in self.in_flight[effect.send.request].message:
                self.in_flight[effect.send.request].message["method"] = "a response"
        elif isinstance(effect, StopUpstream):
            self.effects.append(effect)
            assert effect.request in self.in_flight, effect
            del self.in_flight[effect.request]
        else:
            ProxyHost._take(self, effect)

    # -- a legacy upstream ---------------------------------------------------------------------------------

    def turn_legacy(self, *tools: Mapping[str, Any], capabilities: Any = None, **facts: Any) -> None:
        """Answer the first request as a legacy upstream does, open its session, and list its tools."""
        name = self.waiting("server/discover", **facts).request
        refusal = {"jsonrpc": "2.0", "id": "server-error", "error": {"code": -32600, "message": "No session"}}
        self.give(UpstreamAnswered(request=name, message=refusal, http_status=400))
        self.open_session(*tools, capabilities=capabilities, **facts)

    def open_session(self, *tools: Mapping[str, Any], capabilities: Any = None, **facts: Any) -> None:
        """Greet, and list the tools."""
        served = {"tools": {}, **TASKS} if capabilities is None else capabilities
        initialized = {
            "protocolVersion": LEGACY_VERSION,
            "capabilities": served,
            "serverInfo": {"name": "old", "version": "1"},
        }
        self.answer("initialize", initialized, **facts)
        self.accept("notifications/initialized", **facts)
        listed = tools or (legacy_tool("render", "optional"),)
        if any(one.message["method"] == "tools/list" for one in self.in_flight.values()):
            self.answer("tools/list", {"tools": list(listed)}, **facts)

    def answer_call(self, _: int) -> None:
        """Answer a call with nothing much."""
        self.answer("tools/call", {"content": []})

    def accept(self, method: str, **facts: Any) -> None:
        """Take a message that is owed no response."""
        name = self.waiting(method, **facts).request
        self.give(UpstreamAnswered(request=name, message=None, http_status=202))

    def streams_open(self) -> None:
        """Turn down the stream for what is said unasked, so that calls go ahead."""
        for name in [one.request for one in self.in_flight.values() if one.message["method"] == "GET"]:
            self.give(UpstreamAnswered(request=name, message=None, http_status=405))

    def asks(self, method: str, question: Mapping[str, Any], *, on: str | None, id: Any = "q1") -> None:  # noqa: A002
        """Have the upstream ask something, on the stream of a request or on none."""
        name = 0 if on is None else self.waiting(on).request
        asked = ServerAsked(request=name, message=request_message(id, method, question), new_id="t" * 30)
        if on is None:
            self.give(UpstreamSaid(upstream="renderer", authorization="", fact=asked))
        else:
            self.give(asked)

    def sent_legacy(self, method: str) -> list[dict[str, Any]]:
        """Return the messages of a method that went to a legacy upstream."""
        messages = [one.send.message or {} for one in self.legacy_sent]
        return [message for message in messages if message.get("method") == method]

    def responses(self) -> list[dict[str, Any]]:
        """Return the answers to questions of a legacy upstream."""
        return [
            one.send.message
            for one in self.legacy_sent
            if one.send.message
            and "id" in one.send.message
            and ("result" in one.send.message or "error" in one.send.message)
        ]

    # -- legacy callers ------------------------------------------------------------------------------------

    def arrive(
        self,
        message: Any,
        *,
        session: str | None = None,
        new_session: str | None = None,
        principal: str | None = None,
        access: Access | None = None,
        connection: Any = None,
        tasks_enabled: bool = True,
        stream: bool = True,
    ) -> int:
        """Hand in a message of 2025-11-25, and return its exchange."""
        exchange = next(self._exchanges)
        headers = (
            {} if session is None else {"mcp-session-id": session, "mcp-protocol-version": LEGACY_VERSION}
        )
        http = None if connection is not None else HttpHead(headers=headers, accepts_stream=stream)
        facts: dict[str, Any] = {
            "exchange": exchange,
            "message": message,
            "connection": connection,
            "http": http,
            "principal": principal,
            "tasks_enabled": tasks_enabled,
            "new_session": new_session,
        }
        admitted = MessageReceived(**facts) if access is None else MessageAdmitted(**facts, access=access)
        self.give(admitted)
        return exchange

    def initialize(
        self,
        capabilities: Mapping[str, Any] | None = None,
        *,
        id: Any = 1,  # noqa: A002
        **facts: Any,
    ) -> int:
        """Ask for a session."""
        params = {
            "protocolVersion": LEGACY_VERSION,
            "capabilities": dict(capabilities or {}),
            "clientInfo": {"name": "old client", "version": "1"},
        }
        if facts.get("connection") is None:
            facts.setdefault("new_session", f"session-{next(self._sessions)}")
        return self.arrive(request_message(id, "initialize", params), **facts)

    def ask(self, method: str, params: Mapping[str, Any] | None = None, *, id: Any = 2, **facts: Any) -> int:  # noqa: A002
        """Ask something in a session."""
        if facts.get("connection") is None:
            facts.setdefault("session", "session-1")
        return self.arrive(request_message(id, method, params or {}), **facts)

    def tell(self, method: str, params: Mapping[str, Any] | None = None, **facts: Any) -> int:
        """Tell something in a session."""
        if facts.get("connection") is None:
            facts.setdefault("session", "session-1")
        return self.arrive(notification_message(method, params or {}), **facts)

    def head(self, method: str, **facts: Any) -> int:
        """Send a GET or a DELETE."""
        exchange = next(self._exchanges)
        http = HttpHead(headers=session_headers("session-1"), method=method)
        kind = StreamRequested if method == "GET" else SessionEnded
        self.give(kind(exchange=exchange, http=http, **facts))
        return exchange


def make_dual_era(
    *upstreams: Upstream,
    store: ProxyStore | None = None,
    proxy_limits: Any = None,
    limits: Limits | None = None,
    http: bool = True,
    codec: HandleCodec | None = None,
    **settings: Any,
) -> DualEraHost:
    """Return a proxy before these upstreams, or before one with the name ``renderer``."""
    engine = DualEraProxy(
        settings=make_settings(
            *(upstreams or (Upstream(name="renderer", http=http),)), limits=proxy_limits, **settings
        ),
        limits=limits or Limits(),
        codec=codec or StoredHandles(),
        node="node-1",
    )
    return DualEraHost(engine=engine, store=store or ProxyStore(), now=START, http=http)


def held(engine: Any) -> int:
    """Return how much there is in all collections that can be reached from an engine; timers left out."""
    seen: set[int] = set()
    total = 0
    found = [engine]
    while found:
        thing = found.pop()
        if id(thing) in seen or isinstance(thing, Timers):
            continue
        seen.add(id(thing))
        if isinstance(thing, dict):
            found += [*thing, *thing.values()]
        elif isinstance(thing, (tuple, list, set, frozenset, deque)):
            found += thing
        elif has(type(thing)):
            found += [getattr(thing, known.name) for known in fields(type(thing))]
            continue
        else:
            continue
        total += len(thing)
    return total


def session_headers(session: str) -> dict[str, str]:
    """Return the headers of a later request."""
    return {"mcp-session-id": session, "mcp-protocol-version": LEGACY_VERSION}


def legacy_tool(name: str, support: str | None = None) -> dict[str, Any]:
    """Return a tool as a legacy upstream lists it."""
    tool: dict[str, Any] = {"name": name, "inputSchema": {"type": "object"}}
    return tool if support is None else {**tool, "execution": {"taskSupport": support}}


def legacy_task(status: str = "working", task_id: str = "old-7", **more: Any) -> dict[str, Any]:
    """Return a task as a legacy upstream writes it."""
    task = {
        "taskId": task_id,
        "status": status,
        "createdAt": CREATED,
        "lastUpdatedAt": CREATED,
        "ttl": 60_000,
    }
    return {**task, "pollInterval": 1000, **more}
