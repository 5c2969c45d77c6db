"""A proxy that is told anew what it stands before, and for whom, while it runs: PRX.2, PRX.7."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from attrs import define, evolve, field
from mcp_tasks_adapters import RequestFacts, Unauthorized
from mcp_tasks_adapters.proxy import Caller, HttpUpstream, MemoryProxyStore, Proxy, StdioUpstream
from mcp_tasks_adapters.proxy.driver import ProxyDriver
from mcp_tasks_adapters.proxy.transports import Transports

from mcp_tasks_proto.legacy.messages import ConnectionLost
from mcp_tasks_proto.proxy import Access, ProxyLimits
from mcp_tasks_proto.requester import NotificationReceived, ResponseReceived, SendRequest
from mcp_tasks_proto.requester.inputs import HttpReply
from mcp_tasks_proto.vocabulary import LEGACY_VERSION, MODERN_VERSION
from tests.adapters.driver_harness import Exchange, World, on_both_loops, on_trio

FARM = HttpUpstream(name="farm", url="http://farm.example/mcp", headers={"Authorization": "Bearer one"})
LOCAL = StdioUpstream(name="local", command=("run",), env={})
TOOLS = {"notifications": {"toolsListChanged": True}}
DISCOVERED = {"supportedVersions": [MODERN_VERSION], "capabilities": {}, "ttlMs": 60_000}


@define(eq=False)
class Way:
    """A transport that remembers what it was asked, and answers when a test says so."""

    declared: Any
    headers: Any = None
    asked: dict[int, SendRequest] = field(factory=dict)
    reports: dict[int, Callable[[Any], None]] = field(factory=dict)
    closed: int = 0
    broken: bool = False
    says: Callable[[Any], None] = field(default=lambda _: None)
    """Takes what belongs to no request."""

    def send(self, request: Any, report: Callable[[Any], None], *, once: bool) -> None:
        self.asked[request.request] = request
        self.reports[request.request] = report

    def unasked(self, report: Callable[[Any], None]) -> None:
        self.says = report

    def stop(self, request: int) -> None:
        del self.asked[request]

    async def close(self) -> None:
        self.closed += 1
        if self.broken:
            raise OSError("the canary is not for logs")

    @property
    def methods(self) -> list[str]:
        """What is in flight."""
        return [request.message["method"] for request in self.asked.values() if request.message]

    def answer(self, method: str, result: Mapping[str, Any]) -> None:
        """Answer the oldest request of a method."""
        self._report(method, 200, lambda name: {"id": name, "result": {"resultType": "complete", **result}})

    def _report(self, method: str, status: int, said: Callable[[int], Mapping[str, Any]]) -> None:
        name = next(one for one, request in self.asked.items() if request.message["method"] == method)
        del self.asked[name]
        message, http = {"jsonrpc": "2.0", **said(name)}, HttpReply(status=status)
        self.reports.pop(name)(ResponseReceived(request=name, message=message, http=http))

    def greet(self) -> None:
        """Open a session of 2025-11-25, as a server that knows no other era."""
        if "server/discover" in self.methods:
            refusal = {"id": "server-error", "error": {"code": -32600, "message": "No session"}}
            self._report("server/discover", 400, lambda _: refusal)
        self.answer("initialize", {"protocolVersion": LEGACY_VERSION, "capabilities": {"tools": {}}})
        self.answer("notifications/initialized", {})

    def notify(self, method: str, params: Mapping[str, Any]) -> None:
        """Say something on every stream."""
        message = {"jsonrpc": "2.0", "method": method, "params": dict(params)}
        for name in [one for one, request in self.asked.items() if request.streams]:
            self.reports[name](NotificationReceived(name, message))


@define(eq=False)
class Running:
    """A proxy's driver and the transports that were made for it."""

    world: World
    proxy: Proxy
    ways: list[Way] = field(factory=list)
    driver: Any = field(init=False)
    transports: Transports = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.transports = Transports(self.proxy, http=self._http, stdio=self._stdio)  # type: ignore[arg-type]
        loop: Any = self.world.loop
        self.driver = ProxyDriver(self.proxy, store=MemoryProxyStore(), loop=loop, ways=self.transports)
        self.world.driver = self.driver

    def _http(self, declared: HttpUpstream, headers: Any) -> Way:
        self.ways.append(Way(declared, headers))
        return self.ways[-1]

    def _stdio(self, declared: StdioUpstream) -> Way:
        self.ways.append(Way(declared))
        return self.ways[-1]

    async def listen(self, **options: Any) -> Exchange:
        """Open a stream, to which the upstreams agree."""
        exchange = await self.world.ask("subscriptions/listen", TOOLS, **options)
        await self.agree()
        return exchange

    async def agree(self) -> None:
        """Have each upstream say what it is, where it is asked first, and agree to push."""
        for way in list(self.ways):
            if "server/discover" in way.methods:
                way.answer("server/discover", DISCOVERED)
        await self.world.settle()
        for way in self.ways:
            way.notify("notifications/subscriptions/acknowledged", TOOLS)
        await self.world.settle()

    async def reconfigure(self, *upstreams: HttpUpstream | StdioUpstream, **options: Any) -> None:
        sealer = self.proxy.settings.sealer
        self.driver.reconfigure(Proxy(upstreams or (FARM,), sealer=sealer, **options))
        await self.world.settle()


def by(name: str) -> RequestFacts:
    return RequestFacts(transport="http", headers={"x-who": name})


def known(*names: str) -> Callable[[RequestFacts], Caller]:
    def authenticate(facts: RequestFacts) -> Caller:
        name = facts.headers.get("x-who", "")
        if name not in names:
            raise Unauthorized
        return Caller(name, Access(caller=name))

    return authenticate


def later(authenticate: Callable[[RequestFacts], Caller]) -> Any:
    async def asked(facts: RequestFacts) -> Caller:
        return authenticate(facts)

    return asked


# -- upstreams -----------------------------------------------------------------------------------------------


@on_both_loops
async def test_prx2_what_is_under_way_is_answered_on_the_way_it_went(world: World) -> None:
    running = Running(world, Proxy([FARM]))
    stream = await running.listen()
    before = await world.ask("tools/list")
    asking, streaming = running.ways
    await running.reconfigure(evolve(FARM, headers={"Authorization": "Bearer two"}))
    assert stream.replies == []
    assert (streaming.methods, asking.methods) == (["subscriptions/listen"], ["server/discover"])
    after = await world.ask("tools/list")
    assert running.ways[2].headers == {"Authorization": "Bearer two"}
    asking.answer("server/discover", DISCOVERED)
    await world.settle()
    assert (before.result["tools"], asking.closed) == ([], 1)
    assert after.replies == [], "what was discovered before the change is not kept (PRX.2)"
    running.ways[2].answer("server/discover", DISCOVERED)
    assert after.result["tools"] == []
    streaming.notify("notifications/tools/list_changed", {})
    assert [one["method"] for one in stream.sent][-1] == "notifications/tools/list_changed"
    assert streaming.closed == 0
    running.driver.closed(stream.number)
    await world.settle()
    assert (streaming.closed, running.transports.old) == (1, ())


@on_both_loops
async def test_prx2_an_upstream_that_is_as_before_keeps_its_way(world: World) -> None:
    running = Running(world, Proxy([FARM, LOCAL]))
    await running.listen()
    assert len(running.ways) == 3, "two to the farm: streams have connections of their own"
    await running.reconfigure(evolve(FARM, label="The farm"), evolve(LOCAL, tasks=False))
    await running.listen()
    assert (len(running.ways), running.transports.old) == (3, ())
    await running.reconfigure(FARM, evolve(LOCAL, env={"X": "1"}))
    await running.listen()
    assert (len(running.ways), [way.closed for way in running.ways]) == (4, [0, 0, 0, 0])


@on_both_loops
async def test_leg2_another_process_has_another_session(world: World) -> None:
    await changes_its_way(world, LOCAL, evolve(LOCAL, env={"X": "1"}))


@on_both_loops
async def test_leg2_another_authorization_has_another_session(world: World) -> None:
    """What was seen under the one is not for the other (PRX.7)."""
    await changes_its_way(world, FARM, evolve(FARM, headers={"Authorization": "Bearer two"}))


async def changes_its_way(world: World, before: Any, after: Any) -> None:
    """Have a server of 2025-11-25 asked, and asked again when the way to it is another one."""
    running = Running(world, Proxy([before]))
    exchange = await world.ask("tools/list")
    (old,) = running.ways
    old.greet()
    old.answer("tools/list", {"tools": []})
    assert exchange.result["tools"] == []
    await running.reconfigure(after)
    exchange = await world.ask("tools/list")
    new = running.ways[-1]
    assert (old is not new, new.methods) == (True, ["initialize"])
    new.greet()
    old.says(ConnectionLost())
    new.answer("tools/list", {"tools": [{"name": "new", "inputSchema": {"type": "object"}}]})
    assert [tool["name"] for tool in exchange.result["tools"]] == ["new"]


@on_both_loops
async def test_prx7_a_server_that_is_not_configured_any_more_is_let_go(world: World) -> None:
    running = Running(world, Proxy([FARM, LOCAL]))
    stream = await running.listen()
    _, local, farm = running.ways
    await running.reconfigure(FARM)
    assert (stream.replies, farm.methods) == ([], ["subscriptions/listen"])
    assert (local.methods, local.closed) == ([], 1)
    assert running.transports.find("local", "", False) is None
    await running.transports.close()
    assert (farm.closed, local.closed) == (1, 1)


@on_both_loops
async def test_a_way_that_does_not_end_well_is_let_go_all_the_same(world: World) -> None:
    running = Running(world, Proxy([FARM, LOCAL]))
    await running.listen()
    running.ways[1].broken = True
    await running.reconfigure(FARM)
    assert running.transports.old == ()
    await running.transports.end(running.ways[1])  # which is none of its own any more
    assert running.ways[1].closed == 1


@on_both_loops
async def test_an_old_way_that_is_still_in_use_is_ended_with_the_proxy(world: World) -> None:
    running = Running(world, Proxy([FARM]))
    await running.listen()
    await running.reconfigure(evolve(FARM, headers=None))
    await running.transports.close()
    assert [way.closed for way in running.ways] == [1, 1]


# -- callers -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("when", [known, lambda *names: later(known(*names))])
def test_prx7_whoever_listens_is_authenticated_anew(when: Any) -> None:
    @on_trio
    async def check(world: World) -> None:
        running = Running(world, Proxy([FARM], authenticate=when("alice", "bob")))
        alices, bobs = await running.listen(facts=by("alice")), await running.listen(facts=by("bob"))
        await running.reconfigure(authenticate=when("alice"))
        assert alices.replies == []
        assert bobs.result["resultType"] == "complete"
        assert (await running.listen(facts=by("bob"))).status == 401
        # Twice in a row: what the first one asks is not waited for.
        running.driver.reconfigure(Proxy([FARM], authenticate=when("alice")))
        await running.reconfigure(authenticate=when("bob"))
        assert alices.result["resultType"] == "complete"

    check()


@on_both_loops
async def test_prx7_callers_get_names_and_lose_them(world: World) -> None:
    running = Running(world, Proxy([FARM]))
    assert not running.driver.asks_who_calls
    nameless = await running.listen(facts=None)
    await running.reconfigure()
    assert nameless.replies == []
    await running.reconfigure(authenticate=known("alice"))
    assert running.driver.asks_who_calls
    assert nameless.result["resultType"] == "complete"
    alices = await running.listen(facts=by("alice"))
    await running.reconfigure()
    assert alices.result["resultType"] == "complete"


@on_both_loops
async def test_prx7_a_caller_who_has_left_is_not_asked_for(world: World) -> None:
    running = Running(world, Proxy([FARM], authenticate=later(known("alice"))))
    stream = await running.listen(facts=by("alice"))
    running.driver.reconfigure(Proxy([FARM], authenticate=later(known("bob"))))
    running.driver.closed(stream.number)
    await world.settle()
    assert stream.replies == []


@on_both_loops
async def test_prx7_whoever_is_about_to_be_let_in_is_asked_for_by_the_new_rules(world: World) -> None:
    running = Running(world, Proxy([FARM], authenticate=later(known("alice", "bob"))))
    streams = [world.start("subscriptions/listen", TOOLS, facts=by(name)) for name in ("alice", "bob")]
    running.driver.reconfigure(Proxy([FARM], authenticate=later(known("alice"))))
    await world.settle()
    await running.agree()
    assert [stream.status for stream in streams] == [None, 401]
    assert streams[0].sent[0]["method"] == "notifications/subscriptions/acknowledged"
    nameless = world.start("subscriptions/listen", TOOLS, facts=by("eve"))
    running.driver.reconfigure(Proxy([FARM]))
    await world.settle()
    assert nameless.replies == []


@on_both_loops
async def test_lim3_other_bounds_are_in_force_at_once(world: World) -> None:
    running = Running(world, Proxy([FARM]))
    await running.listen()
    await running.reconfigure(proxy_limits=ProxyLimits(streams=1))
    assert (await running.listen()).error["data"] == {"reason": "streams"}
