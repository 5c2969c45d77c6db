"""Requesters, proxy, servers and their stores together, whatever goes wrong on the way between them.

What a caller was told is what a server recorded (REQ.5, PRX.13). Nothing that was acknowledged is lost
(LIFE.4, PRX.6, UPD.5). A call is carried out once at most (PRX.4). Each question is answered once at most, by
whom it was put to (INP.1, PRX.10). No task has two workers. Once nothing goes wrong any more, every task ends
in bounded time (REQ.6, TTL.1), and a wish to cancel has reached the work (CAN.6, PRX.11).
"""

from __future__ import annotations

from typing import Any, Final

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from mcp_tasks_proto import Status
from mcp_tasks_proto.proxy import HandleKey, SealedHandles, StoredHandles
from mcp_tasks_proto.requester import Cancelled, Completed, Failed
from mcp_tasks_proto.testing import Crash, Fate
from tests.model.mill import Grinding
from tests.model.test_network import check_records, plans
from tests.model.whole import PEOPLE, TTL_MS, Errand, Weather, Whole
from tests.unit.proxy_world import ToyAead

CALM_MS: Final = 600_000
"""Longer than anything takes, once all is well."""
ERRANDS: Final = 4
CODECS: Final[dict[str, Any]] = {
    "stored": StoredHandles(),
    "sealed": SealedHandles([HandleKey("a", ToyAead(b"k"))]),
}
seldom = st.sampled_from([False, False, False, True])
delays = st.sampled_from([1, 5, 40, 300, 2_500, 9_000])
weathers = st.lists(
    st.builds(Weather, delay_ms=delays, lost=seldom, cut=seldom, twice=st.booleans()), min_size=1, max_size=4
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
        server_skews=st.lists(skews, max_size=4),
        proxy_skew_ms=skews,
        person_skew_ms=skews,
        then_ms=pauses,
    )
    def begin(
        self,
        plan: Grinding,
        codec: str,
        listen: bool,
        server_skews: list[int],
        proxy_skew_ms: int,
        person_skew_ms: int,
        then_ms: int,
    ) -> None:
        """There is somebody with an errand, mostly with a task by now."""
        self.whole = Whole(
            plan=plan,
            codec=CODECS[codec],
            listen=listen,
            skews=server_skews,
            proxy_skew_ms=proxy_skew_ms,
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
    def storm(self, weather: list[Weather], then_ms: int) -> None:
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
        """A process ends; or, for a server, sleeps for so long that it may be taken for gone."""
        nodes = self.whole.network.nodes
        if who == "proxy":
            self.whole.restart_proxy()
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
        whole = self.whole
        for errand in whole.errands:
            assert len(whole.started.get(errand.number, ())) <= 1, "PRX.4: a call is carried out once"
            if errand.reference is not None and errand.outcome is not None:
                self.check_outcome(errand)
        assert all(times == 1 for times in whole.mill.starts.values()), "a run is started once"

    def check_outcome(self, errand: Errand) -> None:
        """What was told of a task is what its server has written."""
        (task_id,) = self.whole.started[errand.number]
        record = self.whole.last_of(task_id)
        assert record is not None
        match errand.outcome:
            case Completed(result=result):
                assert record.status is Status.COMPLETED
                assert record.result is not None
                assert result["content"] == record.result["content"]
            case Cancelled():
                assert record.status is Status.CANCELLED
                assert errand.wants_cancel
            case Failed():
                assert record.status is Status.FAILED
                raise AssertionError("no work fails here")
            case _:
                raise AssertionError(f"PRX.6: what was acknowledged is lost: {errand.outcome}")

    def teardown(self) -> None:
        if hasattr(self, "whole"):
            self.whole.calm(CALM_MS)
            self.holds()
            self.check_end()

    def check_end(self) -> None:
        """Everybody knows how it ended; then nothing is left, and nothing waits."""
        whole = self.whole
        check_records(whole.network)
        for errand in whole.errands:
            assert errand.given_up or errand.outcome is not None, "REQ.6: every call has an outcome"
            if errand.reference is None:
                continue
            (task_id,) = whole.started[errand.number]
            record = whole.last_of(task_id)
            assert record is not None
            if record.status is Status.COMPLETED:
                assert whole.answered.get(task_id, set()) <= whole.plan.keys()
        self.check_servers()
        self.check_proxy()
        whole.network.run(TTL_MS + CALM_MS)
        left = [record for record in whole.network.store.records.values() if not record.status.terminal]
        assert not left, "TTL.1: nothing is left parked"
        for person in whole.people.values():
            assert not person.host.in_flight
            assert not person.host.on_show

    def check_servers(self) -> None:
        """No server is at a task that has ended, and every worker has learned of it."""
        network = self.whole.network
        for task_id, record in network.store.records.items():
            for node in network.nodes:
                if record.status.terminal:
                    assert not network._nodes[node].engine.concerns(task_id)
                    run = self.whole.mill.runs.get((node, task_id))
                    assert run is None or run.over, "CAN.6: a worker that nobody told to stop"

    def check_proxy(self) -> None:
        """The proxy holds nothing that is over, and its ledger says what its callers were told."""
        proxy = self.whole.proxy
        assert proxy is not None
        assert not proxy._asking._open
        assert not proxy._callers.by_key
        ends = {entry.handle: entry for entry in self.whole.store.entries.values()}
        for errand in self.whole.errands:
            if errand.reference is not None:
                entry = ends[errand.reference["taskId"]]
                status = "completed" if isinstance(errand.outcome, Completed) else "cancelled"
                noted = entry.status.value == status
                assert noted or self.whole.store_failed, "HIS.1: an end is noted"


WholeMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
TestWholeMachine = WholeMachine.TestCase
