"""The way to one upstream, under one authorization, of whichever era it is.

To the engine it is modern. What a requester uses for a legacy server is used here as well: the session is one
for all callers, and each of them hears of what it declared itself, and of no one else's questions.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Mapping
from typing import Any, Final

from attrs import define, evolve, field

from mcp_tasks_proto.errors import ErrorCode
from mcp_tasks_proto.legacy.messages import (
    ConnectionLost,
    DualEraEffect,
    Era,
    SendLegacy,
    ServerAsked,
    StreamOpened,
)
from mcp_tasks_proto.legacy.proxy.messages import SendLegacyUpstream, UpstreamFact
from mcp_tasks_proto.legacy.requester.channel import Answer, Channel
from mcp_tasks_proto.legacy.requester.detection import Sign, read_sign
from mcp_tasks_proto.legacy.requester.era import EraFinder
from mcp_tasks_proto.legacy.requester.legacy_server import LegacyServer
from mcp_tasks_proto.legacy.requester.reading import at
from mcp_tasks_proto.legacy.vocabulary import TOOLS_CHANGED
from mcp_tasks_proto.lifecycle import TERMINAL
from mcp_tasks_proto.proxy.effects import SendUpstream, StopUpstream
from mcp_tasks_proto.proxy.inputs import (
    ProxyInput,
    UpstreamAnswered,
    UpstreamChanged,
    UpstreamFailed,
    UpstreamNotified,
)
from mcp_tasks_proto.proxy.settings import InputKind, ProxySettings
from mcp_tasks_proto.requester.effects import SendRequest, StopRequest
from mcp_tasks_proto.requester.inputs import NotificationReceived, RequestFailed, ResponseReceived
from mcp_tasks_proto.requester.settings import RequesterLimits, RequesterSettings
from mcp_tasks_proto.timers import LAST_MS, Timers
from mcp_tasks_proto.vocabulary import CLIENT_CAPABILITIES
from mcp_tasks_proto.wire.jsonrpc import Notification, notification_message, parse_message

__all__ = ["DualEraUpstream", "ToUpstream"]

ENDED: Final = frozenset(status.value for status in TERMINAL)

ToUpstream = SendUpstream | SendLegacyUpstream | StopUpstream


@define(eq=False, repr=False, kw_only=True)
class DualEraUpstream:
    """One of them. ``out`` takes what is to be sent, ``tell`` what the engine is to hear."""

    upstream: str
    authorization: str
    settings: ProxySettings
    http: bool
    only: Era | None = None
    """What alone is spoken with it; ``None``: it shows."""
    several: bool = False
    """Whether other processes of the proxy may follow the same tasks."""
    names: Iterator[int]
    out: Callable[[DualEraUpstream, ToUpstream], None]
    tell: Callable[[ProxyInput], None]
    era: Era | None = field(init=False)
    """``None``: it has yet to show, or to show again."""
    _before: Era | None = field(init=False, default=None)
    """What it was when it last showed."""
    timers: Timers = field(init=False, factory=Timers)
    _asked: dict[int, SendUpstream] = field(init=False, factory=dict)
    """The engine's requests that it waits for."""
    _direct: set[int] = field(init=False, factory=set)
    """Those that were sent as they are."""
    _tasks: dict[str, None] = field(init=False, factory=dict)
    """Tasks that are followed, those asked for longest ago first."""
    _made_tasks: bool = field(init=False, default=False)
    """Whether a task was made in the session, which may need it."""
    _wanted: list[DualEraEffect] = field(init=False, factory=list)
    _finder: EraFinder = field(init=False)
    _channel: Channel = field(init=False)
    _legacy: LegacyServer = field(init=False)

    def __attrs_post_init__(self) -> None:
        settings = _as_requester(self.settings)
        self.era = self.only
        self._finder = EraFinder(
            settings=settings,
            http=self.http,
            modern_only=False,
            names=self.names,
            out=self._wanted,
            timers=self.timers,
            give=self._give,
            decide=self._decide,
        )
        self._channel = Channel(
            settings=settings,
            http=self.http,
            names=self.names,
            out=self._wanted,
            timers=self.timers,
            give=self._give,
            failed=self._no_session,
            lost=lambda: self._legacy.session_lost(),
        )
        patience_ms = self.settings.limits.request_state_ms
        self._legacy = LegacyServer(
            self._channel, _ManyCallers(), patience_ms=patience_ms, guesses=False, lasting_keys=False
        )
        self._finder.channel = self._channel

    @property
    def idle(self) -> bool:
        """Whether nobody would miss it: what it knows can be found out again."""
        return not self._asked and not self._legacy.may_be_asked and not self._channel.busy

    def at(self, now: int) -> None:
        """Take note of the time."""
        self._finder.now = now
        self._legacy.tell_time(now)

    # -- what the engine wants -----------------------------------------------------------------------------

    def takes_as_it_is(self, send: SendUpstream) -> bool:
        """Whether a request of the engine's may be sent as it is: if the upstream is known to be modern. Then
        it is waited for."""
        if self.era != "modern":
            return False
        self._asked[send.request] = send
        self._direct.add(send.request)
        return True

    def send(self, send: SendUpstream) -> None:
        """Send a request of the engine's, in the words of the upstream's era."""
        self._asked[send.request] = send
        self._carry_out(send)
        self._flush()

    def _carry_out(self, send: SendUpstream) -> None:
        if self.takes_as_it_is(send):
            self.out(self, send)
        elif self.era is None:
            self._finder.send(_request(send))
        elif send.message["method"] == "subscriptions/listen":
            self._listen(send)
        else:
            params = send.message["params"]
            if send.message["method"].startswith("tasks/"):
                self._follow(params["taskId"], params["_meta"][CLIENT_CAPABILITIES])
            self._legacy.begin(_request(send))

    def stop(self, name: int) -> None:
        """The engine gives a request up."""
        del self._asked[name]
        if name in self._direct:
            self._direct.discard(name)
            self.out(self, StopUpstream(name))
        elif not self._finder.stop(name):
            self._legacy.stop(name)
        self._flush()

    def _listen(self, send: SendUpstream) -> None:
        """Nothing is agreed to: no more is pushed than that there are other tools, which is told anyway."""
        agreed = notification_message("notifications/subscriptions/acknowledged", {})
        self.tell(UpstreamNotified(send.request, agreed))

    def close(self) -> None:
        """End the session, unless it may be needed for a task of it."""
        self._legacy.end_stream()
        if not self._made_tasks:
            self._channel.end_session()
        self._flush()

    def retire(self) -> None:
        """Another server is meant by this name now: what is in flight may still be answered, and no more."""
        self._channel.forget_session()
        self._flush()

    # -- what the upstream says ----------------------------------------------------------------------------

    def answers_as_it_is(self, name: int) -> bool:
        """Whether the engine is told of the answer to its request as it is: if it went out so, and the answer
        does not say of what era the upstream is. Then it is waited for no longer."""
        if name not in self._direct or self._asked[name].message["method"] == "server/discover":
            return False
        self._direct.discard(name)
        del self._asked[name]
        return True

    def take(self, fact: UpstreamFact | ConnectionLost) -> None:
        """Take in what comes of something that was sent, or was said unasked."""
        if isinstance(fact, ConnectionLost):
            self._channel.forget_session()
        elif fact.request in self._direct:
            self._take_direct(fact)
        elif isinstance(fact, ResponseReceived | RequestFailed):
            if not self._finder.received(fact):
                self._channel.received(fact)
        elif self.era == "legacy":
            self._take_legacy(fact)
        self._flush()

    def _take_direct(self, fact: UpstreamFact) -> None:
        """A modern upstream answers, unless it is one no longer."""
        if isinstance(fact, NotificationReceived):
            self.tell(UpstreamNotified(fact.request, fact.message))
        elif isinstance(fact, ResponseReceived | RequestFailed):
            self._direct.discard(fact.request)
            discovers = self._asked[fact.request].message["method"] == "server/discover"
            if discovers and read_sign(fact, self.settings.versions, http=self.http) is Sign.LEGACY:
                self.era = self.only
            self._give(fact)

    def _take_legacy(self, fact: NotificationReceived | ServerAsked | StreamOpened) -> None:
        if isinstance(fact, ServerAsked):
            self._legacy.asked(fact)
        elif isinstance(fact, StreamOpened):
            self._legacy.opened()
        else:
            said = parse_message(fact.message)
            if isinstance(said, Notification) and said.method == TOOLS_CHANGED:
                self.tell(UpstreamChanged(self.upstream))
            self._legacy.heard(fact)

    def time_passed(self, now: int) -> None:
        """Do what is due."""
        while (timer := self.timers.pop(now)) is not None:
            match timer:
                case "lease", str() as task_id:
                    self._leave(task_id)
                case _ if not self._finder.timer(timer):
                    self._legacy.timer(timer)
        self._flush()

    # -- the era -------------------------------------------------------------------------------------------

    def _decide(self, era: Era, held: list[SendRequest]) -> None:
        if self._before not in (None, era):
            self.tell(UpstreamChanged(self.upstream))
        self.era = self._before = era
        for send in held:
            self._carry_out(self._asked[send.request])

    def _no_session(self, answer: Answer) -> bool:
        """There is no session to be had: if there was one before, the upstream may be another by now."""
        if self._finder.greeting_failed(answer):
            return True
        self.era = self.only
        return False

    # -- to the engine -------------------------------------------------------------------------------------

    def _give(self, fact: Any) -> None:
        """Tell the engine what became of a request of its own; of one that it gave up nothing comes."""
        if isinstance(fact, NotificationReceived):
            self.tell(UpstreamNotified(fact.request, fact.message))
            return
        send = self._asked.pop(fact.request)
        if isinstance(fact, RequestFailed):
            self.tell(UpstreamFailed(fact.request, sent=fact.sent))
            return
        message = self._read(send, fact.message) if self.era == "legacy" else fact.message
        status = None if fact.http is None else fact.http.status
        self.tell(UpstreamAnswered(request=fact.request, message=message, http_status=status))

    def _read(self, send: SendUpstream, message: Any) -> Any:
        """Read an answer of a legacy upstream, which was put into modern words already."""
        method, params = send.message["method"], send.message["params"]
        result = at(message, "result")
        if method == "tools/call" and at(result, "resultType") == "task":
            self._made_tasks = True
            self._follow(result.get("taskId"), params["_meta"][CLIENT_CAPABILITIES])
        elif method == "tasks/get" and _is_over(result, message):
            self._leave(params["taskId"])
        if result is None:
            return message
        if method in ("server/discover", "tools/list"):
            result = {**result, **self._described(method)}
        elif method == "tasks/get":
            result = {**_missing(result), **result}
        return {**message, "result": result}

    def _described(self, method: str) -> dict[str, Any]:
        """Return what a legacy upstream does not say of itself: for how long it is so. Its capabilities are
        told as it has them."""
        described: dict[str, Any] = {"ttlMs": self.settings.discovery_ttl_ms}
        if method == "server/discover":
            assert self._channel.session is not None  # what it said in it is the answer
            declared = at(self._channel.session.initialized, "capabilities")
            described["capabilities"] = declared if isinstance(declared, Mapping) else {}
        return described

    # -- tasks whose questions are waited for --------------------------------------------------------------

    def _follow(self, task_id: Any, capabilities: Mapping[str, Any]) -> None:
        if not isinstance(task_id, str):
            return
        known = self._tasks.pop(task_id, self)
        if known is self and len(self._tasks) >= self.settings.limits.followed_tasks:
            self._leave(next(iter(self._tasks)))
        self._tasks[task_id] = None
        self._legacy.follow_task(task_id, capabilities)
        if known is self:
            self.extend_lease(task_id, 0)

    def extend_lease(self, task_id: str, poll_interval_ms: int) -> None:
        """Where there are other processes, follow a task only for as long as its caller asks about it here.

        Most servers ask one session at a time: were a task followed for good, a caller whose requests go to
        another process by now would never be asked there.
        """
        if self.several and task_id in self._tasks:
            patience_ms = max(self.settings.limits.request_state_ms, 2 * poll_interval_ms)
            self.timers.set(("lease", task_id), min(self._finder.now + patience_ms, LAST_MS))

    def _leave(self, task_id: str) -> None:
        self._tasks.pop(task_id, None)
        self.timers.clear(("lease", task_id))
        self._legacy.leave_task(task_id)

    def may_ask_elsewhere(self) -> bool:
        """Whether a task that waits for input, and asks nothing here, may be asking another process."""
        return self.several and self.era == "legacy" and self._legacy.can_answer

    def asked_elsewhere(self, task_id: str, keys: Collection[str]) -> bool:
        """Whether any of these keys may be of what a task has asked another process."""
        return self.era != "modern" and self._legacy.asked_elsewhere(task_id, keys)

    # -- to the upstream -----------------------------------------------------------------------------------

    def _flush(self) -> None:
        """Hand on what was to be sent."""
        wanted, self._wanted[:] = list(self._wanted), []
        for effect in wanted:
            if isinstance(effect, SendLegacy):
                self.out(self, self._legacy_message(effect))
            elif isinstance(effect, SendRequest):
                self.out(self, self._asked.get(effect.request) or self._upstream_message(effect))
            else:
                assert isinstance(effect, StopRequest)
                self.out(self, StopUpstream(effect.request))

    def _legacy_message(self, send: SendLegacy) -> SendLegacyUpstream:
        waits = send.message is not None and send.message.get("method") == "tasks/result"
        nobody_polls = waits and self._channel.inner_of(send.request) is None
        return SendLegacyUpstream(
            upstream=self.upstream,
            authorization=self.authorization,
            send=send,
            streams=send.verb == "GET" or nobody_polls,
        )

    def _upstream_message(self, probe: SendRequest) -> SendUpstream:
        return SendUpstream(
            request=probe.request,
            upstream=self.upstream,
            authorization=self.authorization,
            message=probe.message,
        )


def _is_over(result: Any, message: Any) -> bool:
    """Whether a poll says that its task has ended, or is gone; one that fails says nothing of it (REQ.3)."""
    if result is None:
        return bool(at(message, "error", "code") == ErrorCode.INVALID_PARAMS)
    return at(result, "status") in ENDED


def _missing(view: Mapping[str, Any]) -> dict[str, Any]:
    """Return what every modern view of its status has, and that of a legacy task may not: what it asks may
    yet have to come, and one that failed may have said no more than that."""
    match view.get("status"):
        case "input_required":
            return {"inputRequests": {}}
        case "failed":
            text = view.get("statusMessage")
            why = text if isinstance(text, str) else "the task failed, and it is not known why"
            return {"error": {"code": int(ErrorCode.INTERNAL_ERROR), "message": why}}
    return {}


class _ManyCallers:
    """In place of a requester's engine: a proxy knows no calls beyond their requests, and prompts nobody."""

    def call_of(self, request: int) -> Hashable:
        """Return the request itself."""
        return request

    def shows(self, call: Hashable, key: str) -> bool:
        """Nobody here is shown anything."""
        return False


def _request(send: SendUpstream) -> SendRequest:
    """Return a request as a requester sends it; what else belongs to it is known by its name."""
    return SendRequest(request=send.request, message=send.message)


def _as_requester(settings: ProxySettings) -> RequesterSettings:
    """Return how the proxy speaks to an upstream: in a session it declares all that its policy lets pass, for
    that is said once; what each call may be asked is decided by what its caller declares."""
    forms: dict[str, Any] = {
        kind.value: {} for kind in (InputKind.FORM, InputKind.URL) if kind in settings.input_kinds
    }
    capabilities: dict[str, Any] = {"elicitation": forms} if forms else {}
    for kind in (InputKind.SAMPLING, InputKind.ROOTS):
        if kind in settings.input_kinds:
            capabilities[kind.value] = {}
    limits = settings.limits
    return RequesterSettings(
        name=settings.name,
        version=settings.version,
        endpoint="",
        capabilities=capabilities,
        versions=settings.versions,
        limits=evolve(
            RequesterLimits(),
            calls=limits.upstream_requests,
            ledger_keys=limits.input_keys,
            tool_pages=limits.tool_pages,
            request_timeout_ms=limits.request_timeout_ms,
            first_backoff_ms=limits.first_backoff_ms,
            last_backoff_ms=limits.last_backoff_ms,
            poll_interval_ms=limits.poll_floor_ms,
        ),
    )
