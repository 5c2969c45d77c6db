"""A proxy engine before upstreams of either era, each of which shows by itself which it is of.

::

    host <-- SendUpstream, or SendLegacyUpstream --- translation <--- engine
         --- what comes of it --------------------->             --->

The engine knows one era only: what it asks of a legacy upstream is put into the words of 2025-11-25, and what
comes back into those of 2026-07-28, with the parts of which a requester does the same.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterator
from itertools import count
from typing import Any, Final

from attrs import define, field

from mcp_tasks_proto.errors import LocalProtocolError
from mcp_tasks_proto.inputs import TimePassed
from mcp_tasks_proto.legacy.messages import ConnectionLost, ServerAsked, StreamOpened
from mcp_tasks_proto.legacy.proxy.messages import (
    DualEraProxyEffect,
    DualEraProxyStep,
    UpstreamFact,
    UpstreamSaid,
    UpstreamsClosing,
)
from mcp_tasks_proto.legacy.proxy.upstream import DualEraUpstream, ToUpstream
from mcp_tasks_proto.proxy.effects import ProxyEffect, SendUpstream, StopUpstream
from mcp_tasks_proto.proxy.engine import ProxyEngine
from mcp_tasks_proto.proxy.handles import HandleCodec, StoredHandles
from mcp_tasks_proto.proxy.inputs import ProxyInput, SettingsChanged, UpstreamAnswered, UpstreamFailed
from mcp_tasks_proto.proxy.settings import ProxySettings, Upstream
from mcp_tasks_proto.requester.inputs import NotificationReceived, RequestFailed, ResponseReceived
from mcp_tasks_proto.timers import LAST_MS

__all__ = ["DualEraUpstreams"]

_FACTS: Final = frozenset({ResponseReceived, RequestFailed, NotificationReceived, ServerAsked, StreamOpened})
_OWN: Final = frozenset({UpstreamSaid, UpstreamsClosing, TimePassed, SettingsChanged})
"""Other facts that are not for the engine alone."""
_TO_UPSTREAMS: Final = frozenset({SendUpstream, StopUpstream})
"""Effects of the engine that are not for the host as they are."""


@define(eq=False, kw_only=True)
class DualEraUpstreams:
    """A :class:`~mcp_tasks_proto.proxy.ProxyEngine` whose upstreams may be legacy ones.

    It takes the place of the engine; of what upstreams say it is told as a requester is (``UpstreamFact``).
    Sessions with upstreams are kept here, in this process.
    """

    settings: ProxySettings
    """As for the engine, as are the next two."""
    codec: HandleCodec = field(factory=StoredHandles)
    node: str | None = None
    _names: Iterator[int] = field(init=False, factory=lambda: count(1))
    _engine: ProxyEngine = field(init=False)
    _ways: dict[tuple[str, str], DualEraUpstream] = field(init=False, factory=dict)
    """By upstream and authorization, those used longest ago first."""
    _sent: dict[int, DualEraUpstream] = field(init=False, factory=dict)
    """What is with the transport, by name."""
    _unsent: dict[int, DualEraUpstream] = field(init=False, factory=dict)
    """What a way wanted to send to a server that is not configured any more, by name."""
    _asked: dict[int, DualEraUpstream] = field(init=False, factory=dict)
    """What the engine waits for, by name."""
    _ticking: dict[DualEraUpstream, None] = field(init=False, factory=dict)
    """Ways on which something is due some time."""
    _newest: int = field(init=False, default=0)
    _inbox: deque[ProxyInput | RequestFailed] = field(init=False, factory=deque)
    """What the engine is to be told, and ways of what they could not send."""
    _out: list[DualEraProxyEffect] = field(init=False, factory=list)
    _now: int = field(init=False, default=0)
    _engine_deadline: int | None = field(init=False, default=None)

    def __attrs_post_init__(self) -> None:
        self._engine = ProxyEngine(
            settings=self.settings, codec=self.codec, node=self.node, names=self._names
        )

    def handle(self, input: Any, *, now: int) -> DualEraProxyStep:  # noqa: A002 - as for the engine
        """Take in one fact; return what to do about it, in order.

        As :meth:`ProxyEngine.handle <mcp_tasks_proto.proxy.ProxyEngine.handle>`, which raises what this
        raises.
        """
        if not 0 <= now <= LAST_MS:
            raise LocalProtocolError("now is Unix milliseconds, up to the end of the year 9999")
        before = self._now
        self._now = max(before, now)
        self._out.clear()
        try:
            self._take(input)
        except LocalProtocolError:
            self._now = before
            raise
        while self._inbox:
            fact = self._inbox.popleft()
            if isinstance(fact, RequestFailed):
                self._give_back(self._unsent.pop(fact.request, None), fact)
            else:
                self._run(fact)
        deadline = self._engine_deadline
        if self._ticking:
            deadlines = [way.timers.next for way in self._ticking]
            deadline = min((when for when in (deadline, *deadlines) if when is not None), default=None)
        return DualEraProxyStep(tuple(self._out), deadline)

    def in_flight(self, connection: Hashable, request_id: str | int) -> bool:
        """As the engine has it."""
        return self._engine.in_flight(connection, request_id)

    # -- inputs --------------------------------------------------------------------------------------------

    def _take(self, fact: Any) -> None:
        kind = type(fact)
        if kind in _FACTS:
            self._heard(fact)
        elif kind not in _OWN:  # by far the most of what comes
            self._run(fact)
        elif isinstance(fact, UpstreamSaid):
            self._give_back(self._ways.get((fact.upstream, fact.authorization)), fact.fact)
        elif isinstance(fact, UpstreamsClosing):
            for way in self._ways.values():
                way.close()
        elif isinstance(fact, TimePassed):
            for way in list(self._ticking):
                way.at(self._now)
                way.time_passed(self._now)
                self._touched(way)
            self._inbox.append(fact)  # after what these have led to
        else:
            self._run(fact)
            self._change(fact.settings)

    def _heard(self, fact: UpstreamFact) -> None:
        """Take in what comes of something that was sent. What was given up may still be answered."""
        name = fact.request
        if type(name) is not int or not 0 < name <= self._newest:
            raise LocalProtocolError(f"{type(fact).__name__}: no request has this name")
        last = isinstance(fact, ResponseReceived | RequestFailed)
        way = self._sent.pop(name, None) if last else self._sent.get(name)
        if way is not None and not way.passed_down(fact):
            self._give_back(way, fact)

    def _give_back(self, way: DualEraUpstream | None, fact: UpstreamFact | ConnectionLost) -> None:
        """Have a way take in a fact, if there is one that it still concerns."""
        if way is not None:
            way.at(self._now)
            way.take(fact)
            self._touched(way)

    def _run(self, fact: ProxyInput) -> None:
        """Have the engine take in a fact, and do what it says."""
        step = self._engine.handle(fact, now=self._now)
        self._engine_deadline = step.deadline
        for effect in step.effects:
            self._carry_out(effect)

    def _carry_out(self, effect: ProxyEffect) -> None:
        if type(effect) not in _TO_UPSTREAMS:
            self._out.append(effect)
        elif isinstance(effect, SendUpstream):
            way = self._way(effect)
            self._asked[effect.request] = way
            if not way.passed_up(effect):
                way.at(self._now)
                way.send(effect)
                self._touched(way)
        else:
            assert isinstance(effect, StopUpstream)  # the only other one of these
            stopped = self._asked.pop(effect.request, None)
            if stopped is not None:  # else what came of it is on its way to the engine
                stopped.at(self._now)
                stopped.stop(effect.request)
                self._touched(stopped)

    # -- ways ----------------------------------------------------------------------------------------------

    def _way(self, send: SendUpstream) -> DualEraUpstream:
        """Return the way to an upstream under one authorization; that it was used is noted."""
        target = send.upstream, send.authorization
        way = self._ways.pop(target, None)
        if way is None:
            self._make_room()
            known = self.settings.upstream(send.upstream)
            way = DualEraUpstream(
                upstream=send.upstream,
                authorization=send.authorization,
                settings=self.settings,
                http=known is None or known.http,
                only=None if known is None else known.era,
                names=self._names,
                out=self._send,
                tell=self._tell,
            )
        self._ways[target] = way
        return way

    def _make_room(self) -> None:
        """Let go of the way that was used longest ago and that nobody would miss, where there are many."""
        if len(self._ways) >= self.settings.limits.discoveries:
            idle = next((target for target, way in self._ways.items() if way.idle), None)
            if idle is not None:
                self._ways[idle].close()
                del self._ways[idle]

    def _touched(self, way: DualEraUpstream) -> None:
        """Note whether something is due on a way some time."""
        if way.timers.next is None:
            self._ticking.pop(way, None)
        else:
            self._ticking[way] = None

    def _change(self, settings: ProxySettings) -> None:
        """Let go of the ways to what is no upstream any more, or another one under its name (PRX.7)."""
        before, self.settings = self.settings, settings
        for target, way in list(self._ways.items()):
            one, other = before.upstream(way.upstream), settings.upstream(way.upstream)
            if one is None or other is None or _what_it_is(one) != _what_it_is(other):
                del self._ways[target]
                way.retire()
                self._touched(way)

    def _send(self, way: DualEraUpstream, effect: ToUpstream) -> None:
        """Have something sent on a way, or stopped. To its name there may be another server by now, which is
        to have none of it: neither a call, nor the id of a task, nor a session's (PRX.7)."""
        if isinstance(effect, StopUpstream):
            self._unsent.pop(effect.request, None)
            if self._sent.pop(effect.request, None) is not None:
                self._out.append(effect)
            return
        name = effect.request if isinstance(effect, SendUpstream) else effect.send.request
        if self._ways.get((way.upstream, way.authorization)) is way:
            self._sent[name] = way
            self._newest = max(self._newest, name)
            self._out.append(effect)
        else:
            self._unsent[name] = way
            self._inbox.append(RequestFailed(name, "the server is not configured any more", sent=False))

    def _tell(self, fact: ProxyInput) -> None:
        """Have the engine told something."""
        if isinstance(fact, UpstreamAnswered | UpstreamFailed):
            self._asked.pop(fact.request, None)
        self._inbox.append(fact)


def _what_it_is(upstream: Upstream) -> tuple[object, ...]:
    """Return what makes the way to an upstream another one when it changes."""
    return upstream.identity, upstream.http, upstream.era
