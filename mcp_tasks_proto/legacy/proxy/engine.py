"""One proxy for both eras, on both of its sides: the sessions of legacy callers before
:class:`~mcp_tasks_proto.legacy.proxy.DualEraUpstreams`."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from functools import partial
from typing import Any

from attrs import define, evolve, field, frozen

from mcp_tasks_proto.effects import Reply
from mcp_tasks_proto.errors import LocalProtocolError
from mcp_tasks_proto.inputs import ExchangeClosed, MessageReceived
from mcp_tasks_proto.legacy.proxy.inner import ProxyCaller, ProxyInner
from mcp_tasks_proto.legacy.proxy.messages import DualEraProxyStep
from mcp_tasks_proto.legacy.proxy.requests import Cancelling, ProxyRequests
from mcp_tasks_proto.legacy.proxy.upstreams import DualEraUpstreams
from mcp_tasks_proto.legacy.server.door import LegacyDoor, session_key
from mcp_tasks_proto.legacy.server.inner import Caller, InnerExchange
from mcp_tasks_proto.legacy.server.sessions import ClientRequest, Session
from mcp_tasks_proto.legacy.translation import initialize_result, legacy_error, modern_capabilities
from mcp_tasks_proto.legacy.vocabulary import TOOLS_CHANGED
from mcp_tasks_proto.limits import Limits
from mcp_tasks_proto.proxy.callers import SHUTTING_DOWN
from mcp_tasks_proto.proxy.effects import ProxyStep
from mcp_tasks_proto.proxy.handles import HandleCodec, StoredHandles
from mcp_tasks_proto.proxy.inputs import AccessChanged, MessageAdmitted, SettingsChanged
from mcp_tasks_proto.proxy.settings import Access, ProxySettings
from mcp_tasks_proto.vocabulary import TASKS_EXTENSION
from mcp_tasks_proto.wire.jsonrpc import Request

__all__ = ["DualEraProxy"]


@define(eq=False, repr=False, kw_only=True)
class DualEraProxy(LegacyDoor[DualEraProxyStep | ProxyStep]):
    """A :class:`~mcp_tasks_proto.proxy.ProxyEngine` with legacy callers and legacy upstreams as well.

    It takes the place of the engine: the same inputs and effects, and those of
    :mod:`mcp_tasks_proto.legacy.proxy.messages` beside them. Whether callers of 2025-11-25 are served says
    ``ProxySettings.legacy_callers``, and whether they have tasks ``ProxySettings.bridging``.
    """

    settings: ProxySettings
    """As for the engine, as are the next two."""
    codec: HandleCodec = field(factory=StoredHandles)
    node: str | None = None
    limits: Limits = field(factory=Limits)
    """Bound the sessions of callers."""
    _requests: ProxyRequests = field(init=False)
    _greetings: dict[Hashable, _Greeting] = field(init=False, factory=dict)
    """Each ``initialize`` that is not answered, by its exchange."""

    def __attrs_post_init__(self) -> None:
        engine = DualEraUpstreams(settings=self.settings, codec=self.codec, node=self.node)
        limits = self.settings.limits
        inner = ProxyInner(engine=engine, out=self._out, recheck_ms=limits.listening_poll_ms)
        self._set_up(
            inner,
            self.limits,
            step=DualEraProxyStep,
            shutting_down=SHUTTING_DOWN,
            handlers={
                MessageReceived: DualEraProxy._message_received,
                MessageAdmitted: DualEraProxy._message_received,
                ExchangeClosed: DualEraProxy._exchange_closed,
                SettingsChanged: DualEraProxy._settings_changed,
                AccessChanged: DualEraProxy._access_changed,
            },
        )
        self._requests = ProxyRequests(
            inner=inner,
            waiting=self._waiting,
            timers=self._timers,
            limits=self.limits,
            proxy_limits=limits,
            sealer=self.settings.sealer,
        )

    # -- for the door --------------------------------------------------------------------------------------

    @property
    def _versions(self) -> tuple[str, ...]:
        return self.settings.versions

    def _caller(self, received: MessageReceived, capabilities: Mapping[str, Any]) -> Caller:
        return ProxyCaller(
            principal=received.principal,
            capabilities=capabilities,
            tasks=self.settings.bridging and received.tasks_enabled,
            access=received.access if isinstance(received, MessageAdmitted) else self.settings.access,
        )

    def _message_received(self, received: MessageReceived) -> None:
        """Where there are no sessions, the engine says to an ``initialize`` what is spoken here (NEG.9)."""
        if isinstance(received, MessageAdmitted):
            _check_access(received, received.access)
        if self.settings.legacy_callers:
            LegacyDoor._message_received(self, received)
        else:
            self._take(received)

    def _begin(self, request: ClientRequest) -> None:
        self._requests.begin(request)

    def _due(self, owner: Any) -> None:
        if isinstance(owner, Cancelling):
            self._requests.look(owner)
        else:
            LegacyDoor._due(self, owner)

    def _settings_changed(self, changed: SettingsChanged) -> None:
        self._take(changed)
        self.settings = changed.settings
        if not self.settings.legacy_callers:
            self._registry.end_all()
            self._hand_greetings_on()
        self._requests.proxy_limits = changed.settings.limits
        self._requests.sealer = changed.settings.sealer
        self._inner.recheck_ms = changed.settings.limits.listening_poll_ms

    def _open_own_stream(self, session: Session, exchange: Hashable) -> None:
        """Listen on behalf of a client who can be told that there are other tools."""
        LegacyDoor._open_own_stream(self, session, exchange)
        own, caller = session.own, session.caller
        assert own is not None
        assert caller is not None
        listen = self._inner.exchange()
        own.inner = listen
        own.ended = partial(self._inner.close, listen)
        self._inner.request(
            "subscriptions/listen",
            {"notifications": {"toolsListChanged": True}},
            exchange=listen,
            caller=caller,
            replied=lambda *_: None,
            sent=partial(self._heard, session, listen),
        )

    def _heard(self, session: Session, listen: InnerExchange, message: Mapping[str, Any]) -> None:
        if message["method"] == TOOLS_CHANGED:
            self._registry.tell_tools_changed(session)
        self._inner.ready(listen)

    # -- initialize ----------------------------------------------------------------------------------------

    def _greet(self, received: MessageReceived, request: Request, capabilities: Mapping[str, Any]) -> None:
        """Ask the engine what there is for this caller, and then open its session with that."""
        asked = self._inner.request(
            "server/discover",
            {},
            caller=self._caller(received, modern_capabilities(capabilities)),
            replied=partial(self._described, received, request, capabilities),
        )
        self._greetings[received.exchange] = _Greeting(asked, received, request.id)

    def _greets(self, connection: Hashable, request_id: str | int) -> bool:
        return any(
            (one.received.connection, one.request_id) == (connection, request_id)
            for one in self._greetings.values()
        )

    def _hand_greetings_on(self) -> None:
        """Legacy callers are let in no more: who was about to be is told what is spoken here (NEG.9)."""
        greetings, self._greetings = self._greetings, {}
        for greeting in greetings.values():
            self._inner.close(greeting.asked)
            self._take(greeting.received)

    def _described(
        self,
        received: MessageReceived,
        request: Request,
        capabilities: Mapping[str, Any],
        message: Mapping[str, Any],
        http_status: int,
    ) -> None:
        del self._greetings[received.exchange]
        if "error" in message:
            error = {"jsonrpc": "2.0", "id": request.id, "error": legacy_error(message["error"])}
            self._out.append(Reply(received.exchange, error, http_status))
            return
        served = message["result"]["capabilities"]
        introduced = _Introduced(
            name=self.settings.name,
            version=self.settings.version,
            info=self.settings.info,
            instructions=self.settings.instructions,
            capabilities=served,
        )
        tasks = TASKS_EXTENSION in served.get("extensions", {})
        result = initialize_result(
            introduced, tasks=tasks, list_tasks=tasks and received.principal is not None
        )
        self._open(received, request, capabilities, result)
        session = self._registry.find(session_key(received), received.principal)
        if session is not None:
            session.caller = self._caller(received, session.capabilities)

    def _holds(self, exchange: Hashable) -> bool:
        return exchange in self._greetings or LegacyDoor._holds(self, exchange)

    def _exchange_closed(self, closed: ExchangeClosed) -> None:
        greeting = self._greetings.pop(closed.exchange, None)
        if greeting is None:
            LegacyDoor._exchange_closed(self, closed)
        else:
            self._inner.close(greeting.asked)

    # -- other rights --------------------------------------------------------------------------------------

    def _access_changed(self, changed: AccessChanged) -> None:
        """What a session waits for is asked for with the rights that its caller has now (PRX.7)."""
        if changed.access is not None:
            _check_access(changed, changed.access)
        if not self._registry.holds(changed.exchange):
            self._take(changed)
            return
        owner = self._registry.owner(changed.exchange)
        if owner is None:  # an answer has been passed on by now
            return
        if isinstance(owner, ClientRequest):
            self._requests.access_changed(owner, changed)
        elif changed.access is None or changed.principal != owner.session.principal:
            self._registry.close_own_stream(owner.session)
        if owner.inner is not None and self._registry.holds(changed.exchange):
            self._take(evolve(changed, exchange=owner.inner))


def _check_access(fact: MessageAdmitted | AccessChanged, access: Any) -> None:
    """Refuse rights that are none, as the engine does, before anything of a session is changed."""
    if not isinstance(access, Access):
        raise LocalProtocolError(f"{type(fact).__name__}: access is an Access")


@frozen
class _Greeting:
    """An ``initialize`` that is answered once the upstreams have been asked what they are."""

    asked: InnerExchange
    """What the engine is asked for it."""
    received: MessageReceived
    request_id: str | int


@frozen(kw_only=True)
class _Introduced:
    """What is said of the proxy."""

    name: str
    version: str
    info: Mapping[str, Any]
    instructions: str | None
    capabilities: Mapping[str, Any]
