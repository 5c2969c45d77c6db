"""The proxy role: a server to its callers, a requester to its upstreams, and nobody's memory but its own.

:meth:`ProxyEngine.handle` takes one input and returns one step. From one input to the next the engine holds
what is under way: callers' requests, requests to upstreams, promoted calls, listen streams and discoveries,
each bounded by ``ProxyLimits``. Tasks it does not hold: a binding is in the store or in its handle, and how a
task stands is asked of its upstream. So any node serves any request, and a node that is gone takes nothing
along but the calls that were in flight.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Mapping
from itertools import count
from typing import Any, Final

from attrs import define, field

from mcp_tasks_proto.errors import LocalProtocolError
from mcp_tasks_proto.inputs import (
    ExchangeClosed,
    LoadFailed,
    MessageReceived,
    Saved,
    SaveFailed,
    SaveRefused,
    ShutdownStarted,
    StreamReady,
    TimePassed,
    WorkLost,
)
from mcp_tasks_proto.proxy.adopting import Adoptions
from mcp_tasks_proto.proxy.advertise import Advertisements
from mcp_tasks_proto.proxy.asking import Asking
from mcp_tasks_proto.proxy.bindings import Binding
from mcp_tasks_proto.proxy.callers import Callers, Exchange
from mcp_tasks_proto.proxy.calls import Call, Calls
from mcp_tasks_proto.proxy.collapsing import Collapsing, Watch
from mcp_tasks_proto.proxy.desk import Desk
from mcp_tasks_proto.proxy.discovering import Discoveries
from mcp_tasks_proto.proxy.effects import ProxyStep, Purge, SendUpstream, StopUpstream
from mcp_tasks_proto.proxy.fetching import Fetching
from mcp_tasks_proto.proxy.handles import HandleCodec, StoredHandles
from mcp_tasks_proto.proxy.inputs import (
    AccessChanged,
    MessageAdmitted,
    ProxyInput,
    RandomDrawn,
    SettingsChanged,
    SnapshotKept,
    TaskLoaded,
    UpstreamAnswered,
    UpstreamChanged,
    UpstreamFailed,
    UpstreamNotified,
)
from mcp_tasks_proto.proxy.listening import Listeners
from mcp_tasks_proto.proxy.orphans import Orphan, Orphans
from mcp_tasks_proto.proxy.promoting import Ending, Promotions
from mcp_tasks_proto.proxy.rounds import Rounds
from mcp_tasks_proto.proxy.settings import Access, ProxySettings
from mcp_tasks_proto.proxy.shared import Shared
from mcp_tasks_proto.proxy.streams import CallerStream, Listened
from mcp_tasks_proto.proxy.tasks import TaskRequests
from mcp_tasks_proto.proxy.upstreams import Sent, UpstreamRequests
from mcp_tasks_proto.timers import LAST_MS

__all__ = ["ProxyEngine"]

PURGE: Final = ("purge",)
"""Timer key: time to remove what is past its retention."""


@define(eq=False, repr=False, kw_only=True)
class ProxyEngine:
    """One proxy, as a state machine."""

    settings: ProxySettings
    """Those that it began with; ``SettingsChanged`` puts others in force."""
    codec: HandleCodec = field(factory=StoredHandles)
    node: str | None = None
    """A name that no other engine over the same store has, or ever had: with it, the promoted calls that run
    here can be told from those of other nodes (``WorkLost``)."""
    names: Iterator[int] = field(factory=lambda: count(1))
    """Names for requests to upstreams, each used once. Who translates them may take some for its own."""
    _handlers: dict[type, Callable[[Any], None]] = field(init=False)
    """What is done with each input."""
    _methods: Mapping[str, Callable[[Exchange], None]] = field(init=False)
    """What is done with requests of methods that are not just passed on."""
    _shared: Shared = field(init=False)
    _callers: Callers = field(init=False)
    _asking: Asking = field(init=False)
    _upstreams: UpstreamRequests = field(init=False)
    _discoveries: Discoveries = field(init=False)
    _advertisements: Advertisements = field(init=False)
    _orphans: Orphans = field(init=False)
    _promotions: Promotions = field(init=False)
    _collapsing: Collapsing = field(init=False)
    _calls: Calls = field(init=False)
    _tasks: TaskRequests = field(init=False)
    _listeners: Listeners = field(init=False)

    def __attrs_post_init__(self) -> None:
        shared = Shared(settings=self.settings, codec=self.codec, node=self.node)
        self._shared = shared
        self._callers = Callers(shared=shared, out=shared.out, begin=self._begin)
        self._asking = Asking(shared=shared)
        self._upstreams = UpstreamRequests(
            shared=shared,
            out=self._to_upstream,
            names=self.names,
            contradicted=lambda target: self._discoveries.drop(target),
        )
        self._discoveries = Discoveries(shared=shared, upstreams=self._upstreams)
        desk = Desk(
            shared=shared,
            callers=self._callers,
            asking=self._asking,
            upstreams=self._upstreams,
            discoveries=self._discoveries,
        )
        fetching = Fetching(
            desk,
            may_ask_elsewhere=self._may_ask_elsewhere,
            asked_elsewhere=self._asked_elsewhere,
            asked_about=self._asked_about,
        )
        rounds = Rounds(desk)
        self._advertisements = Advertisements(desk)
        self._orphans = Orphans(shared=shared, upstreams=self._upstreams)
        adoptions = Adoptions(desk, self._orphans)
        self._promotions = Promotions(desk, fetching)
        self._collapsing = Collapsing(desk=desk, fetching=fetching, rounds=rounds, adoptions=adoptions)
        self._calls = Calls(
            desk=desk,
            orphans=self._orphans,
            rounds=rounds,
            adoptions=adoptions,
            collapsing=self._collapsing,
            promotions=self._promotions,
        )
        self._tasks = TaskRequests(
            desk=desk,
            fetching=fetching,
            promotions=self._promotions,
            advertisements=self._advertisements,
        )
        self._listeners = Listeners(desk=desk, fetching=fetching, promotions=self._promotions)
        self._handlers = self._list_handlers()
        self._methods = {
            "server/discover": self._advertisements.discover,
            "tools/list": self._advertisements.list_tools,
            "tools/call": self._calls.call_tool,
            "tasks/get": self._tasks.get,
            "tasks/update": self._tasks.update,
            "tasks/cancel": self._tasks.cancel,
            "subscriptions/listen": self._listeners.open,
        }
        # What is past its time may be there from before: look once, as soon as there is a time.
        shared.timers.set(PURGE, 0)

    def _list_handlers(self) -> dict[type, Callable[[Any], None]]:
        answered = self._asking.answered
        return {
            MessageReceived: self._callers.received,
            MessageAdmitted: self._callers.received,
            ExchangeClosed: self._callers.closed,
            StreamReady: self._callers.stream_ready,
            UpstreamAnswered: self._upstream_answered,
            UpstreamNotified: self._upstream_notified,
            UpstreamFailed: self._upstream_failed,
            UpstreamChanged: self._upstream_changed,
            RandomDrawn: answered,
            TaskLoaded: answered,
            LoadFailed: answered,
            Saved: answered,
            SaveFailed: answered,
            SaveRefused: answered,
            SnapshotKept: answered,
            WorkLost: self._promotions.lost,
            SettingsChanged: self._settings_changed,
            AccessChanged: self._access_changed,
            TimePassed: self._time_passed,
            ShutdownStarted: self._shutdown_started,
        }

    def handle(self, input: ProxyInput, *, now: int) -> ProxyStep:  # noqa: A002 - the word of the whole package
        """Take in one fact; return what to do about it, in order.

        ``now`` is Unix milliseconds; where it is earlier than before, the engine keeps its own time.

        Raises :class:`LocalProtocolError` when the host breaks a rule of this interface, and only then. The
        engine is as it was before such a call.
        """
        handler = self._handlers.get(type(input))
        if handler is None:
            raise LocalProtocolError(f"{type(input).__name__} is not an input of a proxy engine")
        if not 0 <= now <= LAST_MS:
            raise LocalProtocolError("now is Unix milliseconds, up to the end of the year 9999")
        shared = self._shared
        before = shared.now
        shared.now = max(before, now)
        shared.out.clear()
        try:
            handler(input)
        except LocalProtocolError as error:
            shared.now = before
            raise LocalProtocolError(f"{type(input).__name__}: {error}") from error
        return ProxyStep(tuple(shared.out), shared.timers.next)

    def in_flight(self, connection: Hashable, request_id: str | int) -> bool:
        """Whether a request with this id awaits its reply on a channel that callers share (WIRE.3)."""
        return self._callers.in_flight(connection, request_id)

    # -- callers ---------------------------------------------------------------------------------------------

    def _begin(self, exchange: Exchange) -> None:
        begin = self._methods.get(exchange.request.method)
        if exchange.refusal is not None:
            self._advertisements.refuse(exchange, exchange.refusal)
        elif begin is None:
            self._calls.forward(exchange)
        else:
            begin(exchange)

    # -- upstreams -------------------------------------------------------------------------------------------

    def _to_upstream(self, effect: SendUpstream | StopUpstream) -> None:
        """Have something sent, or stopped."""
        self._shared.out.append(effect)

    def _may_ask_elsewhere(self, binding: Binding) -> bool:
        """Whether a task that waits for input may have asked another process for it. One of a modern upstream
        asks no process: what it asks is in its view."""
        return False

    def _asked_elsewhere(self, binding: Binding, keys: Collection[str]) -> bool:
        """Whether any of these keys may be of what a task has asked another process; likewise."""
        return False

    def _asked_about(self, binding: Binding) -> None:
        """A caller has asked this process about a task."""

    def _upstream_answered(self, answered: UpstreamAnswered) -> None:
        self._upstreams.answered(answered.request, answered.message, answered.http_status)

    def _upstream_notified(self, notified: UpstreamNotified) -> None:
        self._upstreams.notified(notified.request, notified.message)

    def _upstream_failed(self, failed: UpstreamFailed) -> None:
        self._upstreams.failed(failed.request, was_sent=failed.sent)

    # -- host ------------------------------------------------------------------------------------------------

    def _upstream_changed(self, changed: UpstreamChanged) -> None:
        self._discoveries.drop_all(changed.upstream)
        self._listeners.upstream_changed(changed.upstream)

    def _settings_changed(self, changed: SettingsChanged) -> None:
        before = self._shared.settings
        self._shared.put_in_force(changed.settings)
        self._discoveries.settings_changed()
        self._calls.forget_results()
        self._listeners.settings_changed()
        if changed.settings.deleted_projects - before.deleted_projects:
            self._purge()

    def _access_changed(self, changed: AccessChanged) -> None:
        if not isinstance(changed.access, Access | None):
            raise LocalProtocolError("access is an Access, or None")
        exchange = self._callers.find(changed.exchange)
        if exchange is None:
            return
        if changed.access is None or changed.principal != exchange.principal:
            self._listeners.withdraw(exchange)
        else:
            exchange.access = changed.access
            self._listeners.access_changed(exchange)

    def _shutdown_started(self, _: ShutdownStarted) -> None:
        self._callers.stopping = True
        self._listeners.shut_down()

    def _time_passed(self, _: TimePassed) -> None:
        shared = self._shared
        # One at a time: what the first one leads to may take back the next.
        while (key := shared.timers.pop(shared.now)) is not None:
            match key:
                case Call():
                    self._calls.promotion_due(key)
                case Watch():
                    self._collapsing.due(key)
                case CallerStream():
                    self._listeners.stream_due(key)
                case Listened():
                    self._listeners.due(key)
                case Ending():
                    self._promotions.due(key)
                case Orphan():
                    self._orphans.due(key)
                case Sent():
                    self._upstreams.timeout_due(key)
                case _:
                    self._purge()

    def _purge(self) -> None:
        shared = self._shared
        kept = shared.settings.retention
        shared.out.append(
            Purge(
                now_ms=shared.now,
                payloads_before_ms=shared.now - kept.payload_ms + 1,
                metadata_before_ms=shared.now - kept.metadata_ms + 1,
                projects=shared.settings.deleted_projects,
            )
        )
        shared.timers.set(PURGE, shared.now + shared.limits.purge_interval_ms)
        self._listeners.purge()
