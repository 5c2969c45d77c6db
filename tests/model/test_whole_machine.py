"""Requesters, proxy, servers and their stores together, whatever goes wrong on the way between them.

What a caller was told is what a server recorded (REQ.5, PRX.13). Nothing that was acknowledged is lost
(LIFE.4, PRX.6, UPD.5). A call is carried out once at most (PRX.4). Each question is answered once at most, by
whom it was put to (INP.1, PRX.10). No task has two workers. Each request has one reply, who reads a task sees
all that it asks, and no deadline is met again and again (:mod:`tests.model.watch`); nothing is held but what
is under way (LIM.3, :mod:`tests.model.whole_bounds`). Once nothing goes wrong any more, every task ends in
bounded time (REQ.6, TTL.1), and a wish to cancel has reached the work (CAN.6, PRX.11).
"""

from __future__ import annotations

from typing import Any, Final

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from mcp_tasks_proto.proxy import HandleKey, SealedHandles, StoredHandles
from mcp_tasks_proto.testing import Crash, Fate, Passage
from tests.model.mill import Grinding
from tests.model.test_network import plans
from tests.model.whole import PEOPLE, Whole
from tests.model.whole_checks import check_end, check_now
from tests.unit.proxy_world import ToyAead

ERRANDS: Final = 4
CODECS: Final[dict[str, Any]] = {
    "stored": StoredHandles(),
    "sealed": SealedHandles([HandleKey("a", ToyAead(b"k"))]),
}
SERVERS: Final[dict[str, Any]] = {
    "modern": {},
    "legacy": {"legacy_servers": True},
    "modern, found out": {"era_is_known": False},
    "legacy, found out": {"legacy_servers": True, "era_is_known": False},
    "legacy, by several": {"legacy_servers": True, "places": 2},
}
"""What they speak, whether the proxy has to find that out, and of how many processes it is."""
seldom = st.sampled_from([False, False, False, True])
delays = st.sampled_from([1, 5, 40, 300, 2_500, 9_000])
repeats = st.booleans().map(lambda twice: 40 if twice else None)
weathers = st.lists(
    st.builds(Passage, delay_ms=delays, lost=seldom, cut=seldom, again_ms=repeats), min_size=1, max_size=4
)
fates = st.lists(
    st.builds(
        Fate,
        delay_ms=st.sampled_from([1, 60, 900, 5_000]),
        crash=st.sampled_from([Crash.NEVER, Crash.NEVER, Crash.NEVER, Crash.BEFORE, Crash.AFTER]),
        fails=seldom,
    ),
    min_size=1,
    max_size=4,
)
naps = st.sampled_from([0, 0, 3_000, 9_000])
skews = st.sampled_from([0, 0, -4_000, 3_000])
numbers = st.integers(0, 9)
pauses = st.sampled_from([1, 20, 400, 400, 3_000, 20_000])


class WholeMachine(RuleBasedStateMachine):
    """What people want, and what may go wrong anywhere."""

    whole: Whole

    @initialize(
        plan=plans,
        codec=st.sampled_from(list(CODECS)),
        listen=st.booleans(),
        legacy=st.sampled_from([(), (), PEOPLE[:1], PEOPLE[1:], PEOPLE]),
        server_skews=st.lists(skews, max_size=4),
        proxy_skew_ms=skews,
        person_skew_ms=skews,
        then_ms=pauses,
        servers=st.sampled_from(["modern", "modern", "legacy", "legacy", "legacy, found out", *SERVERS]),
    )
    def begin(
        self,
        plan: Grinding,
        codec: str,
        listen: bool,
        legacy: tuple[str, ...],
        server_skews: list[int],
        proxy_skew_ms: int,
        person_skew_ms: int,
        then_ms: int,
        servers: str,
    ) -> None:
        """There is somebody with an errand, mostly with a task by now.

        Callers of several processes speak the modern era: sessions belong to one of them.
        """
        facts = SERVERS[servers]
        self.whole = Whole(
            plan=plan,
            codec=CODECS[codec],
            listen=listen,
            legacy=frozenset(() if "places" in facts else legacy),
            skews=server_skews,
            proxy_skew_ms=proxy_skew_ms,
            **facts,
        )
        self.whole.people[PEOPLE[0]].skew_ms = person_skew_ms
        self.whole.call(PEOPLE[0])
        self.run(then_ms)

    # -- people ----------------------------------------------------------------------------------------------

    @precondition(lambda self: len(self.whole.errands) < ERRANDS)
    @rule(name=st.sampled_from(PEOPLE), then_ms=pauses)
    def call(self, name: str, then_ms: int) -> None:
        self.whole.call(name)
        self.run(then_ms)

    @precondition(lambda self: any(errand.reference for errand in self.whole.errands))
    @rule(number=numbers, then_ms=pauses)
    def cancel(self, number: int, then_ms: int) -> None:
        known = [errand for errand in self.whole.errands if errand.reference is not None]
        self.whole.cancel(known[number % len(known)])
        self.run(then_ms)

    @rule(number=numbers)
    def cancel_anything(self, number: int) -> None:
        """Be there a task or not."""
        self.whole.cancel(self.whole.errands[number % len(self.whole.errands)])

    # -- what goes wrong -------------------------------------------------------------------------------------

    @rule(weather=weathers, then_ms=pauses)
    def storm(self, weather: list[Passage], then_ms: int) -> None:
        """Messages are late, lost, out of order, or come twice."""
        self.whole.weather.extend(weather)
        self.run(then_ms)

    @rule(fates=fates, then_ms=pauses)
    def befall_servers(self, fates: list[Fate], then_ms: int) -> None:
        self.whole.server_fates.left.extend(fates)
        self.run(then_ms)

    @rule(fates=fates, then_ms=pauses)
    def befall_proxy(self, fates: list[Fate], then_ms: int) -> None:
        self.whole.proxy_fates.left.extend(fates)
        self.run(then_ms)

    @rule(who=st.sampled_from(["proxy", "server", *PEOPLE]), number=numbers, nap_ms=naps, then_ms=pauses)
    def restart(self, who: str, number: int, nap_ms: int, then_ms: int) -> None:
        """A process ends; or, for a server, sleeps for so long that it may be taken for gone.

        The proxy's may be told to end: then it ends its sessions first.
        """
        nodes = self.whole.network.nodes
        if who == "proxy" and nap_ms:
            self.whole.close_proxy()
        elif who == "proxy":
            self.whole.restart_proxy(number % self.whole.places)
        elif who in PEOPLE:
            self.whole.restart_person(who)
        elif nodes and nap_ms:
            self.whole.network.sleep(nodes[number % len(nodes)], nap_ms)
        elif nodes:
            self.whole.network.crash(nodes[number % len(nodes)])
        self.run(then_ms)

    def run(self, milliseconds: int) -> None:
        """Let time pass."""
        self.whole.network.run(milliseconds)

    # -- always ----------------------------------------------------------------------------------------------

    @invariant()
    def holds(self) -> None:
        check_now(self.whole)

    def teardown(self) -> None:
        if hasattr(self, "whole"):
            check_end(self.whole)


WholeMachine.TestCase.settings = settings(max_examples=45, stateful_step_count=25, deadline=None)
TestWholeMachine = WholeMachine.TestCase
