"""A proxy engine before upstreams of either era, each of which shows by itself which it is of.

::

    host <-- SendUpstream, or SendLegacyUpstream --- translation <--- engine
         --- what comes of it --------------------->             --->

The engine knows one era only: what it asks of a legacy upstream is put into the words of 2025-11-25, and what
comes back into those of 2026-07-28, with the parts of which a requester does the same.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection
from typing import Any

from attrs import define, field

from mcp_tasks_proto.errors import LocalProtocolError
from mcp_tasks_proto.inputs import TimePassed
from mcp_tasks_proto.legacy.messages import ConnectionLost, ServerAsked, StreamOpened
from mcp_tasks_proto.legacy.proxy.messages import (
    DualEraProxyStep,
    UpstreamFact,
    UpstreamSaid,
    UpstreamsClosing,
)
from mcp_tasks_proto.legacy.proxy.upstream import DualEraUpstream, ToUpstream
from mcp_tasks_proto.proxy.bindings import Binding
from mcp_tasks_proto.proxy.effects import ProxyStep, SendUpstream, StopUpstream
from mcp_tasks_proto.proxy.engine import ProxyEngine
from mcp_tasks_proto.proxy.inputs import ProxyInput, SettingsChanged, UpstreamAnswered, UpstreamFailed
from mcp_tasks_proto.proxy.settings import ProxySettings, Upstream
from mcp_tasks_proto.requester.inputs import NotificationReceived, RequestFailed, ResponseReceived

__all__ = ["DualEraUpstreams"]


@define(eq=False, repr=False, kw_only=True)
class DualEraUpstreams(ProxyEngine):
    """A :class:`~mcp_tasks_proto.proxy.ProxyEngine` whose upstreams may be legacy ones.

    It takes the place of the engine; of what upstreams say it is told as a requester is (``UpstreamFact``).
    Sessions with upstreams are kept here, in this process.
    """

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

    def _list_handlers(self) -> dict[type, Callable[[Any], None]]:
        return ProxyEngine._list_handlers(self) | {
            ResponseReceived: self._response_received,
            RequestFailed: self._heard,
            NotificationReceived: self._heard,
            ServerAsked: self._heard,
            StreamOpened: self._heard,
            UpstreamSaid: self._said,
            UpstreamsClosing: self._closing,
        }

    # It takes other facts than the engine, and asks for other things: it is one in how it works, not in this.
    def handle(  # type: ignore[override]
        self,
        input: Any,  # noqa: A002 - as for the engine
        *,
        now: int,
    ) -> DualEraProxyStep | ProxyStep:
        """Take in one fact; return what to do about it, in order.

        As :meth:`ProxyEngine.handle <mcp_tasks_proto.proxy.ProxyEngine.handle>`, which raises what this
        raises.
        """
        step = ProxyEngine.handle(self, input, now=now)
        if not self._inbox and not self._ticking:  # as almost always
            return step
        while self._inbox:
            fact = self._inbox.popleft()
            if isinstance(fact, RequestFailed):
                self._give_back(self._unsent.pop(fact.request), fact)
            elif isinstance(fact, TimePassed):
                ProxyEngine._time_passed(self, fact)
            else:
                self._handlers[type(fact)](fact)
        deadlines = [self._shared.timers.next, *(way.timers.next for way in self._ticking)]
        deadline = min(when for when in deadlines if when is not None)  # the engine always has one
        return DualEraProxyStep(tuple(self._shared.out), deadline)

    # -- inputs --------------------------------------------------------------------------------------------

    def _response_received(self, received: ResponseReceived) -> None:
        name, http = received.request, received.http
        way = self._sent.get(name) if type(name) is int else None
        if way is None or not way.answers_as_it_is(name):
            self._heard(received)
            return
        del self._sent[name], self._asked[name]
        self._upstreams.answered(name, received.message, None if http is None else http.status)

    def _heard(self, fact: UpstreamFact) -> None:
        """Take in what comes of something that was sent. What was given up may still be answered."""
        name = fact.request
        if type(name) is not int or not 0 < name <= self._newest:
            raise LocalProtocolError("no request has this name")
        last = isinstance(fact, ResponseReceived | RequestFailed)
        self._give_back(self._sent.pop(name, None) if last else self._sent.get(name), fact)

    def _said(self, said: UpstreamSaid) -> None:
        self._give_back(self._ways.get((said.upstream, said.authorization)), said.fact)

    def _closing(self, _: UpstreamsClosing) -> None:
        for way in self._ways.values():
            self._close(way)

    def _time_passed(self, passed: TimePassed) -> None:
        now = self._shared.now
        for way in list(self._ticking):
            way.at(now)
            way.time_passed(now)
            self._touched(way)
        self._inbox.append(passed)  # after what these have led to

    def _settings_changed(self, changed: SettingsChanged) -> None:
        self._change(changed.settings)  # first: what the engine asks for now, it asks of these upstreams
        ProxyEngine._settings_changed(self, changed)

    def _give_back(self, way: DualEraUpstream | None, fact: UpstreamFact | ConnectionLost) -> None:
        """Have a way take in a fact, if there is one that it still concerns."""
        if way is not None:
            way.at(self._shared.now)
            way.take(fact)
            self._touched(way)

    def _to_upstream(self, effect: SendUpstream | StopUpstream) -> None:
        if isinstance(effect, SendUpstream):
            way = self._way(effect)
            self._asked[effect.request] = way
            if way.takes_as_it_is(effect):
                self._sent[effect.request] = way
                self._newest = max(self._newest, effect.request)
                self._shared.out.append(effect)
            else:
                way.at(self._shared.now)
                way.send(effect)
                self._touched(way)
        elif (stopped := self._asked.pop(effect.request, None)) is not None:
            # Else what came of it is on its way to the engine.
            stopped.at(self._shared.now)
            stopped.stop(effect.request)
            self._touched(stopped)

    # -- what tasks of legacy upstreams ask ----------------------------------------------------------------

    def _may_ask_elsewhere(self, binding: Binding) -> bool:
        way = self._way_of(binding)
        return way is not None and way.may_ask_elsewhere()

    def _asked_elsewhere(self, binding: Binding, keys: Collection[str]) -> bool:
        way = self._way_of(binding)
        assert binding.upstream_task_id is not None  # it was just asked about
        # There is no way to a server that is not configured any more: what it asked, nobody knows.
        return bool(keys) if way is None else way.asked_elsewhere(binding.upstream_task_id, keys)

    def _asked_about(self, binding: Binding) -> None:
        way = self._way_of(binding)
        assert binding.upstream_task_id is not None  # it was just asked about
        if way is not None:  # there is none where nothing could be sent
            way.extend_lease(binding.upstream_task_id, binding.poll_interval_ms)
            self._touched(way)

    def _way_of(self, binding: Binding) -> DualEraUpstream | None:
        """Return the way that what is asked about a task goes."""
        return self._ways.get((binding.upstream, binding.authorization))

    # -- ways ----------------------------------------------------------------------------------------------

    def _way(self, send: SendUpstream) -> DualEraUpstream:
        """Return the way to an upstream under one authorization; that it was used is noted."""
        target = send.upstream, send.authorization
        way = self._ways.pop(target, None)
        if way is None:
            self._make_room()
            known = self.settings.upstream(send.upstream)
            assert known is not None  # the engine asks nothing of others
            way = DualEraUpstream(
                upstream=send.upstream,
                authorization=send.authorization,
                settings=self.settings,
                http=known.http,
                only=known.era,
                several=self.settings.several_processes or not self.codec.stored,
                names=self.names,
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
                self._close(self._ways[idle])
                del self._ways[idle]

    def _close(self, way: DualEraUpstream) -> None:
        way.at(self._shared.now)
        way.close()
        self._touched(way)

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
                way.at(self._shared.now)
                way.retire()
                self._touched(way)

    def _send(self, way: DualEraUpstream, effect: ToUpstream) -> None:
        """Have something sent on a way, or stopped. To its name there may be another server by now, which is
        to have none of it: neither a call, nor the id of a task, nor a session's (PRX.7)."""
        if isinstance(effect, StopUpstream):
            if self._sent.pop(effect.request, None) is not None:
                self._shared.out.append(effect)
            return
        name = effect.request if isinstance(effect, SendUpstream) else effect.send.request
        if self._ways.get((way.upstream, way.authorization)) is way:
            self._sent[name] = way
            self._newest = max(self._newest, name)
            self._shared.out.append(effect)
        else:
            self._unsent[name] = way
            self._inbox.append(RequestFailed(name, "the server is not configured any more", sent=False))

    def _tell(self, fact: ProxyInput) -> None:
        """Have the engine told something."""
        if isinstance(fact, UpstreamAnswered | UpstreamFailed):
            del self._asked[fact.request]
        self._inbox.append(fact)


def _what_it_is(upstream: Upstream) -> tuple[object, ...]:
    """Return what makes the way to an upstream another one when it changes."""
    return upstream.identity, upstream.http, upstream.era
