"""A requester whose servers are the processes of a network, in virtual time."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any, Final

import pytest

from mcp_tasks_proto import ExchangeClosed, Input, LegacyInput, MessageReceived, Step
from mcp_tasks_proto.requester import Cancelled, Completed, Failed, Fault, ObservationLost, Prompt
from mcp_tasks_proto.testing import Client, Crash, Fate, Network, Passage
from tests.model.mill import Grinding, Mill, answer_to, make_engine
from tests.model.workshop import make_requester

LOST: Final = Passage(lost=True)
CUT: Final = Passage(cut=True)
LONG_MS: Final = 600_000
DAY_MS: Final = 86_400_000


def answered(prompt: Prompt) -> tuple[int, dict[str, Any]]:
    return 100, answer_to(prompt.request["params"]["message"])


class World:
    """A network of two processes, and a client of theirs."""

    def __init__(self, plan: Grinding | None = None, *, listen: bool = False, **more: Any) -> None:
        self.mill = Mill(plan or Grinding())
        self.heard: list[tuple[int, str, Any]] = []
        """What processes were told: when, which, and what."""
        network = {name: more.pop(name) for name in ("fates", "size") if name in more}
        self.network = Network(make_engine=make_engine, work=self.mill.work, seen=self._seen, **network)
        self.begin = self.network.now
        self.client = self.another(listen=listen, **more)

    def another(self, *, listen: bool = False, **more: Any) -> Client:
        """Return one more client."""
        return Client(network=self.network, requester=make_requester(listen=listen), answer=answered, **more)

    def _seen(self, node: str, fact: Input | LegacyInput, step: Step, now: int) -> None:
        self.heard.append((now, node, fact))

    def asked(self) -> list[tuple[int, str, str]]:
        """Return what was asked: after how many milliseconds, of which process, and what."""
        return [
            (when - self.begin, node, fact.message["method"])
            for when, node, fact in self.heard
            if isinstance(fact, MessageReceived)
        ]

    def outcome(self, call: int) -> Any:
        return self.client.requester.outcomes[call]


def test_a_call_goes_to_the_processes_in_turn() -> None:
    world = World()
    call = world.client.call("grind")
    assert world.client.settle(call, within_ms=10_000)
    assert isinstance(world.outcome(call), Completed)
    assert world.asked() == [(5, "node-2", "tools/call"), (1_019, "node-1", "tasks/get")]
    assert world.client.now == world.network.now == world.begin + 1_019 + 3 + 5


def test_a_call_that_is_not_over_in_time_is_not() -> None:
    world = World(Grinding(steps=((50_000, "progress"),)))
    call = world.client.call("grind")
    assert not world.client.settle(call, within_ms=1_000)
    assert world.client.requester.now == world.network.now == world.begin + 1_000
    assert world.client.settle(call, within_ms=LONG_MS)


def test_a_request_that_nobody_carries_is_told() -> None:
    world = World()
    call = world.client.requester.call("grind")
    with pytest.raises(ValueError, match=r"nobody carries the requester's requests \[1\]"):
        world.client.settle(call, within_ms=10)
    world.client.see_to(world.client.requester.effects)
    assert world.client.settle(call, within_ms=10_000)


def test_a_task_outlives_the_processes_that_work_at_it() -> None:
    world = World(Grinding(steps=((1, "ask"), (4_000, "checkpoint"), (4_000, "ask twice"))), listen=True)
    call = world.client.call("grind")
    for _ in range(3):
        world.network.run(3_000)
        world.network.crash(world.network.nodes[0])
    assert world.client.settle(call, within_ms=LONG_MS)
    assert isinstance(world.outcome(call), Completed)
    (key, *resumed) = world.mill.starts
    assert resumed, "somebody has taken it over"
    assert len(world.client.requester.of(Prompt)) == 3
    assert world.network.store.records[key[0]].status.terminal


def test_a_request_whose_process_ends_has_failed() -> None:
    world = World(fates=[Fate()] * 2 + [Fate(crash=Crash.BEFORE)])
    call = world.client.call("grind")
    assert world.client.settle(call, within_ms=100)
    assert world.outcome(call) == ObservationLost("the connection broke")


def test_where_there_is_no_process_nothing_is_sent() -> None:
    world = World(size=1)
    world.network.crash("node-1")
    call = world.client.call("grind")
    assert world.client.settle(call, within_ms=100)
    assert isinstance(world.outcome(call), Failed), "it is known that there is no task"
    assert world.outcome(call).fault is Fault.NETWORK
    assert world.client.now - world.begin == 5 + 5, "there and back"


@pytest.mark.parametrize("passages", [[CUT], [Passage(), CUT]], ids=["there", "back"])
def test_both_ends_hear_of_a_connection_that_breaks(passages: list[Passage]) -> None:
    world = World(passages=passages)
    call = world.client.call("grind")
    assert world.client.settle(call, within_ms=100)
    assert world.outcome(call) == ObservationLost("the connection broke")
    assert len(world.asked()) == len(passages) - 1


@pytest.mark.parametrize(
    ("passages", "fates"),
    [([LOST], []), ([Passage(), LOST], []), ([], [Fate(lost=True)] * 9)],
    ids=["there", "back", "as its process says it"],
)
def test_nobody_hears_of_what_is_lost(passages: list[Passage], fates: list[Fate]) -> None:
    world = World(passages=passages, fates=fates)
    call = world.client.call("grind")
    assert not world.client.settle(call, within_ms=299_000)
    assert world.client.settle(call, within_ms=1_000), "it waits no longer than it has to"
    assert isinstance(world.outcome(call), ObservationLost)
    assert len(world.mill.starts) == (passages != [LOST])


def test_the_passages_of_others_are_for_others() -> None:
    world = World()
    world.network.passages = [LOST] * 9
    other = world.another(passages=[LOST] * 9)
    call = world.client.call("grind")
    lost = other.call("grind")
    assert world.client.settle(call, within_ms=10_000)
    assert lost not in other.requester.outcomes


def test_what_a_process_says_on_a_stream_is_heard() -> None:
    world = World(Grinding(steps=((1, "ask"), (1, "progress"))), listen=True)
    call = world.client.call("grind")
    assert world.client.settle(call, within_ms=LONG_MS)
    assert Counter(method for _, _, method in world.asked()) == {
        "tools/call": 1,
        "subscriptions/listen": 1,
        "tasks/update": 1,
    }


def test_a_call_that_arrives_twice_makes_two_tasks_and_one_is_heard_of() -> None:
    world = World(passages=[Passage(again_ms=40)])
    call = world.client.call("grind")
    assert world.client.settle(call, within_ms=10_000)
    assert isinstance(world.outcome(call), Completed)
    assert [when for when, _, method in world.asked() if method == "tools/call"] == [5, 45]
    assert len(world.network.store.records) == 2


@pytest.mark.parametrize("crash", [False, True], ids=["cancelled", "its process ends"])
def test_a_process_hears_that_nobody_waits_any_more(crash: bool) -> None:
    """Also those to whom the request comes again, and only of what they have heard of."""
    world = World(fates=[Fate()] * 2 + [Fate(delay_ms=5_000)] * 9, passages=[Passage(again_ms=100)])
    call = world.client.call("grind")
    world.client.call("grind")
    world.network.run(50)
    if crash:
        world.client.crash(make_requester())
    else:
        world.client.cancel(call)
        assert world.outcome(call) == Cancelled()
    world.network.run(1_000)
    closed = [when - world.begin for when, _, fact in world.heard if isinstance(fact, ExchangeClosed)]
    assert closed == ([56, 56, 106] if crash else [56, 106])


def test_another_process_goes_on_from_what_was_kept() -> None:
    """What the first one would have done is left: it is not woken, nor are its questions answered."""
    world = World(Grinding(steps=((1, "ask"), (1, "progress"))))
    call = world.client.call("grind")
    world.network.run(1_080)
    assert world.client.requester.on_show
    kept = json.loads(json.dumps(world.client.requester.references[call]))
    first, told = world.client.requester, len(world.client.requester.effects)
    world.client.crash(make_requester(listen=False))
    again = world.client.resume(kept)
    assert world.client.settle(again, within_ms=LONG_MS)
    assert isinstance(world.outcome(again), Completed)
    assert len(first.effects) == told
    assert len(world.client.requester.of(Prompt)) == 1
    world.client.call("grind")
    world.client.crash(make_requester())
    world.network.run(LONG_MS)
    assert world.client.requester.effects == [], "what was on its way is nobody's"


@pytest.mark.parametrize("skew_ms", [-DAY_MS, 1, DAY_MS])
def test_a_wrong_clock_changes_nothing(skew_ms: int) -> None:
    ends = []
    for skew in (0, skew_ms):
        world = World(Grinding(steps=((1, "ask"),)), listen=True, skew_ms=skew)
        call = world.client.call("grind", deadline_ms=world.client.now + LONG_MS)
        assert world.client.requester.now == world.client.now == world.network.now + skew
        assert world.client.settle(call, within_ms=LONG_MS)
        assert isinstance(world.outcome(call), Completed)
        ends.append(world.network.now)
    assert ends[0] == ends[1]


def test_clients_are_who_they_are() -> None:
    world = World(principal="ada")
    bob = world.another(principal="bob")
    call = world.client.call("grind")
    world.network.run(100)
    stolen = bob.resume(world.client.requester.references[call])
    own = bob.call("grind")
    assert bob.settle(stolen, within_ms=LONG_MS)
    assert not isinstance(bob.requester.outcomes[stolen], Completed)
    assert bob.settle(own, within_ms=LONG_MS)
    assert world.client.settle(call, within_ms=0), "time has passed for everybody"
    assert {record.principal for record in world.network.store.records.values()} == {"ada", "bob"}
