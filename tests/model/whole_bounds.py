"""LIM.3 across all roles: what an engine holds is what is under way, and no more, after each step.

Where the world knows what that is, it is the same: callers' requests, requests upstream, what the store was
asked, workers, calls. The rest has its time, or is in proportion to that.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable
from typing import Any

from mcp_tasks_proto.legacy.proxy import DualEraProxy, DualEraUpstreams
from mcp_tasks_proto.legacy.requester import DualEraRequester
from mcp_tasks_proto.legacy.server import DualEraServer
from mcp_tasks_proto.legacy.server.inner import InnerExchange
from tests.model.watch import Watch
from tests.model.whole import Person, Process, Whole
from tests.model.whole_legacy import engine_of

__all__ = ["check_bounds"]


def check_bounds(whole: Whole) -> None:
    """What must be so at any time, of everybody who is there."""
    for node in whole.network.nodes:
        _check_server(whole, node)
    for process in filter(None, whole.processes):
        _check_proxy(whole, process)
    for person in whole.people.values():
        _check_requester(whole, person)


def _check_server(whole: Whole, node: str) -> None:
    engine, watch = whole.network._nodes[node].engine, whole.network._nodes[node].promises
    assert isinstance(watch, Watch)
    door = engine if isinstance(engine, DualEraServer) else None
    inner: Any = engine if door is None else door._engine
    tasks, exchanges = inner._tasks, inner._exchanges.by_key
    assert set(tasks._questions) <= watch.asked, "LIM.3: what a server has asked of its store"
    assert tasks._creations + tasks._resumptions <= len(watch.asked), "LIM.3: work that is about to begin"
    assert set(tasks._workers) <= set(watch.workers), "LIM.3: workers"
    assert set(inner._streams._streams) <= set(exchanges), "LIM.3: who listens to a server"
    _check_exchanges(exchanges, watch, door)
    # Of each task the end of its grace, of each trouble when to try again; and when to sweep.
    assert len(tasks.timers._when) <= len(whole.owners) + watch.troubles + 1, "LIM.3: times of a server"


def _check_proxy(whole: Whole, process: Process) -> None:
    engine, watch = engine_of(process.engine), process.watch
    exchanges, upstream = engine._callers.by_key, engine._upstreams._in_flight
    streams, times = engine._listeners._streams, engine._shared.timers._when
    assert set(engine._asking._open) <= watch.asked, "LIM.3: what a proxy has asked of its host"
    assert set(streams) <= set(exchanges), "LIM.3: who listens to a proxy"
    _check_exchanges(exchanges, watch, process.engine if isinstance(process.engine, DualEraProxy) else None)
    sent: Collection[int] = engine._sent if isinstance(engine, DualEraUpstreams) else upstream
    assert set(sent) == set(process.servers.open), "LIM.3: what a proxy has sent"
    listens = {source.request for stream in streams.values() for source in stream.sources}
    endless = [one.name for one in upstream.values() if one not in times and one.name not in listens]
    assert not endless, "LIM.3: what a proxy waits for has its time"
    # Of each task on a stream the next poll, of each errand what is to be done when nobody waits for it.
    polled = sum(len(stream.tasks) for stream in streams.values())
    under_way = len(upstream) + len(exchanges) + polled + len(whole.errands)
    assert len(times) <= under_way + 1, "LIM.3: times of a proxy"


def _check_exchanges(
    keys: Collection[Hashable], watch: Watch, door: DualEraServer | DualEraProxy | None
) -> None:
    """Each request that is owed a reply is known, here or in a session, and no other is."""
    inner = {key for key in keys if isinstance(key, InnerExchange)}
    known = set(keys) - inner
    if door is not None:
        registry = door._registry
        begun: Collection[Hashable] = door._greetings if isinstance(door, DualEraProxy) else ()
        known |= {*registry._exchanges, *registry._accepting, *begun}
        connected = len(registry._exchanges) + len(registry._all_lost)
        assert registry.requests <= connected, "LIM.3: requests of sessions"
        sessions = len(registry._sessions)
        assert len(door._timers._when) <= registry.requests + sessions, "LIM.3: times of sessions"
        assert inner == set(door._inner._open), "LIM.3: what is asked for sessions"
    assert known == watch.owed, "LIM.3: requests that are owed a reply"


def _check_requester(whole: Whole, person: Person) -> None:
    host = person.host
    engine: Any = host.engine
    inner = engine._engine if isinstance(engine, DualEraRequester) else engine
    calls = {errand.call for errand in whole.errands if errand.by == person.name and errand.open}
    sent, unheard = inner._requests._in_flight, len(inner._cancellations)
    assert set(inner._calls.by_key) == calls, "LIM.3: calls"
    assert len(inner._watcher._watched) <= len(calls), "LIM.3: tasks that are watched"
    assert len(inner._timers._when) <= 4 * len(calls) + unheard + len(sent) + 1, "LIM.3: times of a requester"
    assert len(sent) <= 4 * (len(calls) + unheard) + 1, "LIM.3: what a requester waits for"
    if inner is engine:
        assert set(sent) == set(host.in_flight), "LIM.3: what a requester has sent"
    else:
        pending = engine._channel._pending
        in_flight = {name for name, one in pending.items() if one.in_flight}
        assert in_flight == set(host.in_flight), "LIM.3: what a requester has sent in its session"
        held = len(pending) - len(in_flight)
        assert held <= 4 * (len(calls) + 1), "LIM.3: what waits for a session"
