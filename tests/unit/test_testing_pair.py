"""The pair: two engines and a network in virtual time."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice, repeat
from typing import Any

import pytest
from attrs import evolve

from mcp_tasks_proto.effects import Reply, Step
from mcp_tasks_proto.inputs import MessageReceived, ShutdownStarted, TimePassed
from mcp_tasks_proto.requester import (
    Cancelled,
    Completed,
    Expired,
    Failed,
    NotificationReceived,
    ObservationLost,
    Prompt,
    RequesterLimits,
    ResponseReceived,
)
from mcp_tasks_proto.testing import Pair, Passage, ServerHost
from tests.model.workshop import (
    START,
    Plan,
    Workshop,
    fits,
    make_pair,
    make_requester,
    outcome,
    restart,
)

LOST = Passage(lost=True)
CUT = Passage(cut=True)
DAY_MS = 86_400_000


class Tap:
    """An engine that notes what it is told, and when, in milliseconds after the start."""

    def __init__(self, engine: Any) -> None:
        self.engine = engine
        self.facts: list[tuple[int, Any]] = []

    def handle(self, fact: Any, *, now: int) -> Any:
        """Pass a fact on."""
        self.facts.append((now - START, fact))
        return self.engine.handle(fact, now=now)

    def of(self, *kinds: type) -> list[tuple[int, Any]]:
        """Return the facts of some kinds."""
        return [(when, fact) for when, fact in self.facts if isinstance(fact, kinds)]


def tapped(host: Any) -> Tap:
    """Put a tap between a host and its engine."""
    host.engine = Tap(host.engine)
    tap: Tap = host.engine
    return tap


def methods(tap: Tap) -> list[str]:
    """Return what a server was asked, in order."""
    return [fact.message["method"] for _, fact in tap.of(MessageReceived)]


def test_a_call_goes_there_and_back() -> None:
    workshop = Workshop(Plan(last_ms=2_500))
    pair = make_pair(workshop, listen=False)
    key = pair.call()
    assert pair.settle(key, within_ms=10_000)
    assert fits("complete", outcome(pair, key))
    assert pair.now - START == 5 + 10 + 5 + 3 * 1_010, (
        "two passages of 5 ms, and the third poll after 1 s each"
    )


def test_time_passes_for_both_sides_also_when_nothing_happens() -> None:
    pair = make_pair(Workshop(Plan()))
    pair.run(5_000)
    assert pair.now == pair.requester.now == pair.server.now == START + 5_000
    assert not pair.settle("never", within_ms=5_000)


def test_a_call_that_is_not_over_in_time_is_not() -> None:
    pair = make_pair(Workshop(Plan(last_ms=60_000)))
    key = pair.call()
    assert not pair.settle(key, within_ms=1_000)
    assert pair.settle(key, within_ms=120_000)


def test_the_server_sees_the_headers_that_belong_to_each_message() -> None:
    """HTTP.2: the server engine checks them, and refuses what does not fit."""
    pair = make_pair(Workshop(Plan()))
    tap = tapped(pair.server)
    assert pair.settle(pair.call(), within_ms=60_000)
    heads = [fact.http for _, fact in tap.of(MessageReceived)]
    assert [head.headers.get("mcp-name") for head in heads[:2]] == ["render", None]
    assert [head.headers["mcp-method"] for head in heads[:2]] == ["tools/call", "subscriptions/listen"]


def test_a_lost_request_is_never_answered() -> None:
    workshop = Workshop(Plan())
    pair = make_pair(workshop, passages=[LOST], limits=RequesterLimits(call_timeout_ms=60_000))
    key = pair.call()
    assert not pair.settle(key, within_ms=59_999)
    assert pair.settle(key, within_ms=1)
    assert isinstance(outcome(pair, key), ObservationLost)
    assert not workshop.answers


def test_a_lost_answer_leaves_a_task_behind() -> None:
    workshop = Workshop(Plan())
    pair = make_pair(workshop, passages=[Passage(), LOST], limits=RequesterLimits(call_timeout_ms=60_000))
    key = pair.call()
    assert pair.settle(key, within_ms=60_000)
    assert isinstance(outcome(pair, key), ObservationLost)
    assert len(workshop.answers) == 1


@pytest.mark.parametrize("passages", [[CUT], [Passage(), CUT]], ids=["before", "after"])
def test_both_ends_hear_of_a_connection_that_breaks(passages: list[Passage]) -> None:
    pair = make_pair(Workshop(Plan()), passages=passages)
    key = pair.call()
    assert pair.settle(key, within_ms=100)
    assert outcome(pair, key) == ObservationLost("the connection broke")


def test_a_connection_that_breaks_while_it_is_given_up_concerns_only_the_server() -> None:
    """The request arrives, the requester stops it, and the stop breaks the connection."""
    workshop = Workshop(Plan())
    pair = make_pair(workshop, passages=[Passage(), CUT])
    key = pair.call()
    pair.run(6)
    pair.cancel(key)
    pair.run(1_000)
    assert outcome(pair, key) == Cancelled()
    assert not workshop.answers, "no task was made for a caller who is gone"


def test_what_is_given_up_reaches_the_server_after_a_while() -> None:
    workshop = Workshop(Plan())
    pair = make_pair(workshop, passages=[Passage(), Passage(delay_ms=500)])
    key = pair.call()
    pair.run(6)
    pair.cancel(key)
    pair.run(1_000)
    assert outcome(pair, key) == Cancelled()
    assert len(workshop.answers) == 1, "the handle was on its way"


def test_messages_of_one_connection_do_not_overtake_each_other() -> None:
    """The acknowledgement of a stream is slow, its first news are fast."""
    slow, fast = Passage(delay_ms=300), Passage(delay_ms=1)
    pair = make_pair(Workshop(Plan(last_ms=10_000)), passages=[fast, fast, fast, slow, fast])
    tap = tapped(pair.requester)
    pair.call()
    pair.run(500)
    assert [(when, type(fact)) for when, fact in tap.of(ResponseReceived, NotificationReceived)] == [
        (12, ResponseReceived),
        (333, NotificationReceived),
        (333, NotificationReceived),
    ]


def test_messages_of_different_connections_do() -> None:
    pair = make_pair(
        Workshop(Plan(last_ms=10_000)), passages=[Passage(delay_ms=400), Passage(delay_ms=2)], listen=False
    )
    tap = tapped(pair.requester)
    pair.call()
    pair.call()
    pair.run(1_000)
    assert [when for when, _ in tap.of(ResponseReceived)] == [2 + 10 + 5, 400 + 10 + 5]


def test_questions_are_answered_and_answers_arrive_once() -> None:
    workshop = Workshop(Plan(steps=((100, "ask twice"), (100, "progress"), (100, "ask"))))
    pair = make_pair(workshop)
    key = pair.call()
    assert pair.settle(key, within_ms=60_000)
    (delivered,) = workshop.answers.values()
    assert list(delivered) == ["a", "b", "a.2"]


def test_nobody_may_answer() -> None:
    pair = make_pair(Workshop(Plan(steps=((100, "ask"),))), answer_ms=None)
    key = pair.call()
    assert not pair.settle(key, within_ms=60_000)
    assert (key, "a") in pair.requester.on_show


def test_a_server_may_do_no_work() -> None:
    pair = make_pair(Workshop(Plan()))
    idle = Pair(requester=make_requester(), server=ServerHost(engine=pair.server.engine))
    key = idle.call()
    idle.run(10_000)
    assert key not in idle.requester.outcomes


def test_there_may_be_nobody_to_ask() -> None:
    workshop = Workshop(Plan(steps=((100, "ask"),)))
    pair = make_pair(workshop)
    lonely = Pair(
        requester=make_requester(), server=ServerHost(engine=pair.server.engine), work=workshop.work
    )
    key = lonely.call()
    lonely.run(10_000)
    assert (key, "a") in lonely.requester.on_show


def test_a_request_is_seen_to_once() -> None:
    pair = make_pair(Workshop(Plan()))
    key = pair.call()
    with pytest.raises(ValueError, match="request 1 is on its way already"):
        pair.see_to(pair.requester.effects)
    assert pair.settle(key, within_ms=10_000)
    assert len(pair.server.store.records) == 1
    pair.requester.call("render")
    with pytest.raises(ValueError, match="request 1 is on its way already"):
        pair.see_to(pair.requester.effects)


def test_a_request_that_nobody_carries_is_told() -> None:
    pair = make_pair(Workshop(Plan()))
    key = pair.requester.call("render")
    for wait in (lambda: pair.run(10), lambda: pair.settle(key, within_ms=10)):
        with pytest.raises(ValueError, match=r"nobody carries the requester's requests \[1\]"):
            wait()
    pair.see_to(pair.requester.effects)
    assert pair.settle(key, within_ms=10_000)


def test_time_does_not_go_back() -> None:
    pair = make_pair(Workshop(Plan()))
    waits: list[Callable[[], object]] = [
        lambda: pair.run(-1_000),
        lambda: pair.settle("never", within_ms=-1_000),
    ]
    for wait in waits:
        with pytest.raises(ValueError, match="time does not go back: -1000 ms from now"):
            wait()
    assert pair.now == START


def test_no_work_is_done_before_it_is_begun() -> None:
    pair = make_pair(Workshop(Plan()))
    pair.work = lambda _: [(-5, TimePassed())]
    pair.call()
    with pytest.raises(ValueError, match="time does not go back: -5 ms from now"):
        pair.run(100)


def test_the_server_is_held_to_its_promises() -> None:
    """Although nobody would hear of a second reply."""

    class Stammering:
        def __init__(self, engine: Any) -> None:
            self.engine = engine

        def handle(self, fact: Any, *, now: int) -> Step:
            step: Step = self.engine.handle(fact, now=now)
            twice = [effect for effect in step.effects for _ in range(1 + isinstance(effect, Reply))]
            return evolve(step, effects=tuple(twice))

    pair = make_pair(Workshop(Plan()))
    stammering: Any = Stammering(pair.server.engine)
    pair.server.engine = stammering
    pair.call()
    with pytest.raises(AssertionError, match="broken: one reply to each request"):
        pair.run(100)


def test_the_server_is_told_who_calls() -> None:
    pair = make_pair(Workshop(Plan()))
    pair.principal = "ada"
    pair.call()
    pair.run(100)
    assert [record.principal for record in pair.server.store.records.values()] == ["ada"]


def test_the_weather_changes_when_another_is_set() -> None:
    pair = make_pair(Workshop(Plan()), passages=[LOST] * 9)
    key = pair.call()
    assert not pair.settle(key, within_ms=1_000), "its request is lost"
    pair.passages = [Passage(delay_ms=100)]
    another = pair.call()
    assert pair.settle(another, within_ms=10_000), "nothing is left of the storm"
    assert key not in pair.requester.outcomes


def test_both_engines_are_woken_at_their_deadlines() -> None:
    """CAN.6: the server gives up on a worker that does not stop, and the requester polls all the while."""
    pair = make_pair(Workshop(Plan(last_ms=10_000_000, obeys=False)), listen=False)
    key = pair.call()
    pair.run(500)
    pair.cancel(key, wait=True)
    assert pair.settle(key, within_ms=70_000)
    assert isinstance(outcome(pair, key), Cancelled)
    assert pair.now - START > 60_000


def test_a_server_that_shuts_down_ends_streams_gracefully() -> None:
    pair = make_pair(Workshop(Plan(last_ms=10_000)))
    key = pair.call()
    pair.run(1_000)
    pair.tell_server(ShutdownStarted())
    pair.run(60_000)
    assert key not in pair.requester.outcomes, "polls are refused with -32603, which is not the end"


def test_a_task_that_the_store_lost_is_expired() -> None:
    pair = make_pair(Workshop(Plan(last_ms=10_000)), listen=False)
    key = pair.call()
    pair.run(500)
    pair.server.store.records.clear()
    assert pair.settle(key, within_ms=5_000)
    assert isinstance(outcome(pair, key), Expired)


def test_a_process_can_end_and_another_goes_on() -> None:
    """The answer that the first one would have got is nobody's."""
    workshop = Workshop(Plan(steps=((100, "ask"),)))
    pair = make_pair(workshop, answer_ms=5_000)
    key = pair.call()
    pair.run(4_000)
    assert (key, "a") in pair.requester.on_show
    again = restart(pair, pair.requester.references[key])
    pair.run(4_000)
    assert not any(workshop.answers.values()), "the first process would have been answered by now"
    assert pair.settle(again, within_ms=60_000)
    assert fits("complete", outcome(pair, again))


def test_a_process_that_ends_takes_its_messages_with_it() -> None:
    workshop = Workshop(Plan())
    pair = make_pair(workshop)
    pair.call()
    pair.crash(make_requester())
    pair.run(60_000)
    assert not workshop.answers
    assert not pair.requester.effects


def test_a_poll_that_is_lost_is_sent_again() -> None:
    pair = make_pair(Workshop(Plan()), passages=[Passage(), Passage(), LOST], listen=False)
    tap = tapped(pair.server)
    key = pair.call()
    assert pair.settle(key, within_ms=600_000)
    assert fits("complete", outcome(pair, key))
    assert len(pair.requester.sent("tasks/get")) == 1 + methods(tap).count("tasks/get")


def test_a_call_that_arrives_twice_makes_two_tasks_and_one_is_heard_of() -> None:
    workshop = Workshop(Plan(last_ms=2_500))
    pair = make_pair(workshop, passages=[Passage(again_ms=40)], listen=False)
    there, back = tapped(pair.server), tapped(pair.requester)
    key = pair.call()
    assert pair.settle(key, within_ms=10_000)
    assert fits("complete", outcome(pair, key))
    calls = [(when, fact.message["method"]) for when, fact in there.of(MessageReceived)][:2]
    assert calls == [(5, "tools/call"), (45, "tools/call")]
    assert [when for when, _ in back.of(ResponseReceived)][:2] == [20, 20 + 1_010], "a reply, and then polls"
    first, second = pair.server.store.records
    assert {params["taskId"] for params in pair.requester.sent("tasks/get")} == {first}
    assert second in workshop.answers, "its work was begun all the same"


@pytest.mark.parametrize("when", [42, 60, 120], ids=["before either", "between", "after both"])
@pytest.mark.parametrize("how", ["stop", "crash", "cut"])
def test_whoever_gives_up_a_request_that_arrives_twice_gives_up_both(when: int, how: str) -> None:
    """Whether the second has arrived by then or not: nobody is left to whom a server would go on talking."""
    end = CUT if how == "cut" else Passage()
    pair = make_pair(
        Workshop(Plan(last_ms=600_000)), passages=[Passage(), Passage(), Passage(again_ms=40), end]
    )
    tap = tapped(pair.server)
    key = pair.call()
    pair.run(when)  # a stream begins after 45 milliseconds, and again after 85
    if how == "stop":
        pair.see_to(pair.requester.abandon(key))
    elif how == "crash":
        pair.crash(make_requester())
    pair.run(200)
    assert methods(tap)[-1] == "subscriptions/listen"
    assert not tap.engine._exchanges.by_key


def test_a_poll_that_arrives_twice_is_answered_once() -> None:
    pair = make_pair(Workshop(Plan()), listen=False)
    key = pair.call()
    pair.run(100)
    pair.calm = Passage(again_ms=40)
    there, back = tapped(pair.server), tapped(pair.requester)
    pair.run(1_000)
    pair.calm = Passage()
    assert methods(there) == ["tasks/get", "tasks/get"]
    numbers = [fact.request for _, fact in back.of(ResponseReceived)]
    assert len(numbers) == 2, "the only reply that is heard comes twice as well"
    assert len(set(numbers)) == 1
    assert pair.settle(key, within_ms=10_000)


@pytest.mark.parametrize("listen", [False, True], ids=["polls", "listens"])
@pytest.mark.parametrize("again_ms", [0, 3, 700, 5_000])
def test_whatever_comes_twice_is_asked_answered_and_delivered_once(again_ms: int, listen: bool) -> None:
    """That an answer is delivered once, and that nobody is asked twice, the hosts see to."""
    workshop = Workshop(Plan(steps=((100, "ask twice"), (100, "progress"), (100, "ask")), end="fail"))
    pair = make_pair(workshop, listen=listen)
    pair.calm = Passage(again_ms=again_ms)
    tap = tapped(pair.server)
    key = pair.call()
    assert pair.settle(key, within_ms=60_000)
    pair.run(10_000)
    assert fits("fail", outcome(pair, key))
    assert methods(tap).count("tasks/update") == 2 * len(pair.requester.sent("tasks/update")) > 2
    assert len(pair.requester.of(Prompt)) == 3
    assert list(workshop.answers[pair.requester.references[key]["taskId"]]) == ["a", "b", "a.2"]


def test_a_cancellation_that_comes_twice_is_told_once() -> None:
    """CAN.6."""
    workshop = Workshop(Plan(last_ms=60_000))
    pair = make_pair(workshop, listen=False)
    key = pair.call()
    pair.run(500)
    pair.calm = Passage(again_ms=40)
    tap = tapped(pair.server)
    pair.cancel(key, wait=True)
    assert pair.settle(key, within_ms=10_000)
    assert isinstance(outcome(pair, key), Cancelled)
    assert methods(tap).count("tasks/cancel") == 2
    assert list(workshop.told.values()) == [1]


@pytest.mark.parametrize(
    "passage", [Passage(lost=True, again_ms=40), Passage(cut=True, again_ms=40)], ids=["lost", "cut"]
)
def test_what_does_not_arrive_does_not_do_so_again(passage: Passage) -> None:
    pair = make_pair(Workshop(Plan()), passages=[passage])
    tap = tapped(pair.server)
    pair.call()
    pair.run(1_000)
    assert methods(tap) == []


def test_what_comes_again_is_for_the_process_that_it_was_for() -> None:
    """The next one has a request of the same number in flight."""
    passages = [Passage(), Passage(again_ms=1_000), Passage(delay_ms=5_000)]
    pair = make_pair(Workshop(Plan()), passages=passages, listen=False)
    pair.call()
    pair.run(100)
    pair.crash(make_requester())
    key = pair.call()
    tap = tapped(pair.requester)
    pair.run(2_000)
    assert tap.facts == []
    assert pair.settle(key, within_ms=60_000)


@pytest.mark.parametrize("skew_ms", [-DAY_MS, -1, 1, DAY_MS])
def test_wrong_clocks_change_no_outcome(skew_ms: int) -> None:
    for plan, kind in (
        (Plan(steps=((100, "ask"),), ttl_ms=60_000), Completed),
        (Plan(last_ms=5_000, end="fail"), Failed),
        (Plan(end="never", ttl_ms=30_000), Expired),
    ):
        ends = []
        for skew in (0, skew_ms):
            pair = make_pair(Workshop(plan), skew_ms=skew)
            key = pair.call()
            assert pair.settle(key, within_ms=120_000)
            assert isinstance(outcome(pair, key), kind)
            ends.append(pair.now)
        assert ends[0] == ends[1]


@pytest.mark.parametrize("skew_ms", [-DAY_MS, DAY_MS])
def test_the_server_has_its_own_clock_and_is_woken_by_it(skew_ms: int) -> None:
    """CAN.6: it gives up on a worker that does not stop, a minute after it was told."""
    pair = make_pair(Workshop(Plan(last_ms=10_000_000, obeys=False)), listen=False, skew_ms=skew_ms)
    key = pair.call()
    pair.run(500)
    (record,) = pair.server.store.records.values()
    assert record.created_at_ms == START + 15 + skew_ms
    assert pair.server.now == pair.requester.now + skew_ms == START + 500 + skew_ms
    pair.cancel(key, wait=True)
    assert not pair.settle(key, within_ms=60_000)
    assert pair.settle(key, within_ms=5_000)
    assert isinstance(outcome(pair, key), Cancelled)


def test_the_same_storm_comes_again() -> None:
    storm = [Passage(delay_ms=7, again_ms=300), LOST, CUT, Passage(delay_ms=900), *islice(repeat(CUT), 4)]
    runs = []
    for _ in range(2):
        pair = make_pair(Workshop(Plan(steps=((300, "ask"),))), passages=storm)
        key = pair.call(deadline_ms=START + 120_000)
        pair.run(120_000)
        runs.append((repr(pair.requester.effects), repr(pair.server.effects)))
        assert key in pair.requester.outcomes
    assert runs[0] == runs[1]
