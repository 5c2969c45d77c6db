"""Requesters, proxy and servers together, and one thing that goes wrong at each moment in turn.

The same story each time: somebody's task asks, is answered and ends, and another one is cancelled. Then
faults are planted in one role, one by one: what must hold across all of them finds each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

import pytest

from mcp_tasks_proto.legacy.requester.channel import Channel
from mcp_tasks_proto.legacy.requester.questions import fingerprint
from mcp_tasks_proto.legacy.requester.tasks import FollowedTasks
from mcp_tasks_proto.proxy import StoredHandles
from mcp_tasks_proto.requester import RequestFailed
from mcp_tasks_proto.testing import Crash, Fate, Passage
from tests.model import (
    test_planted_faults,
    test_planted_legacy_requester_faults,
    test_proxy_planted_faults,
)
from tests.model.mill import Grinding
from tests.model.planting import Fault, Wrapped, always, must_be_found
from tests.model.whole import PEOPLE, Whole
from tests.model.whole_checks import check_end, check_now

PLAN: Final = Grinding(steps=((90, "ask"), (1, "checkpoint"), (1_500, "progress")))
WEATHER: Final = {
    "lost": Passage(lost=True),
    "cut": Passage(cut=True),
    "twice": Passage(again_ms=40),
    "late": Passage(delay_ms=4_000),
}
FATES: Final = {
    "proxy ends before": Fate(crash=Crash.BEFORE),
    "proxy ends after": Fate(crash=Crash.AFTER),
    "proxy's store fails": Fate(fails=True),
}
MESSAGES: Final = 60
"""As many as there are in the story, and a few more."""
EFFECTS: Final = 50
"""Likewise, of the proxy's."""
LEGACY_MESSAGES: Final = 85
"""Likewise, where everybody speaks 2025-11-25."""
LEGACY_EFFECTS: Final = 70
UPSTREAM_MESSAGES: Final = 62
"""Likewise, where the servers speak 2025-11-25."""
SERVER_EFFECTS: Final = 66
"""Likewise, of theirs."""


def live(
    *,
    plan: Grinding = PLAN,
    weather: list[Passage] | None = None,
    fates: list[Fate] | None = None,
    server_fates: list[Fate] | None = None,
    **eras: Any,
) -> None:
    """Live through the story, with this on the way."""
    whole = Whole(plan=plan, codec=StoredHandles(), **eras)
    whole.weather.extend(weather or ())
    whole.proxy_fates.left.extend(fates or ())
    whole.server_fates.left.extend(server_fates or ())
    whole.call("ada")
    cancelled = whole.call("bob")
    whole.network.run(300)
    whole.cancel(cancelled)
    for _ in range(4):
        whole.network.run(1_000)
        check_now(whole)
    check_end(whole)


def live_through_all() -> None:
    """Live through the story again and again, each time with something else in its way."""
    for calm in range(MESSAGES):
        live(weather=[Passage()] * calm + [WEATHER["cut"]])
        live(fates=[Fate()] * calm + [FATES["proxy's store fails"]])


@pytest.mark.parametrize("what", WEATHER)
def test_prx4_whatever_becomes_of_one_message(what: str) -> None:
    for calm in range(MESSAGES):
        live(weather=[Passage()] * calm + [WEATHER[what]])


@pytest.mark.parametrize("what", FATES)
def test_prx6_whatever_becomes_of_the_proxy_at_one_effect(what: str) -> None:
    for calm in range(EFFECTS):
        live(fates=[Fate()] * calm + [FATES[what]])


@pytest.mark.parametrize("what", ["lost", "cut"])
def test_leg8_whatever_becomes_of_one_message_of_a_session(what: str) -> None:
    for calm in range(LEGACY_MESSAGES):
        live(weather=[Passage()] * calm + [WEATHER[what]], legacy=frozenset(PEOPLE))


def test_leg2_whatever_the_proxy_was_at_when_its_sessions_ended() -> None:
    for calm in range(LEGACY_EFFECTS):
        live(fates=[Fate()] * calm + [FATES["proxy ends before"]], legacy=frozenset(PEOPLE))


@pytest.mark.parametrize("what", ["lost", "cut"])
def test_leg8_whatever_becomes_of_one_message_of_a_session_with_a_server(what: str) -> None:
    for calm in range(UPSTREAM_MESSAGES):
        live(weather=[Passage()] * calm + [WEATHER[what]], legacy_servers=True, era_is_known=calm % 2 == 0)


def test_req6_whatever_a_server_was_at_when_its_sessions_ended() -> None:
    """The proxy opens another one with the next server, and goes on there with the same tasks."""
    for calm in range(SERVER_EFFECTS):
        live(server_fates=[Fate()] * calm + [Fate(crash=Crash.AFTER)], legacy_servers=True)


def live_on(*, calm: int, proxy_ends_at: int) -> None:
    """Live through a part of the story: a server ends at one of its effects, and later the proxy."""
    whole = Whole(plan=PLAN, codec=StoredHandles(), listen=False, legacy_servers=True)
    whole.server_fates.left.extend([Fate()] * calm + [Fate(crash=Crash.BEFORE)])
    whole.call("ada")
    whole.network.run(proxy_ends_at)
    whole.restart_proxy()
    check_end(whole)


def test_upd5_an_answer_that_was_accepted_and_lost_is_asked_for_again() -> None:
    """A server of 2025-11-25 may have accepted it (HTTP 202) when it ends."""
    for calm in range(19, 27):
        for proxy_ends_at in range(1_550, 2_350, 200):
            live_on(calm=calm, proxy_ends_at=proxy_ends_at)


def _obstinate(received: Wrapped) -> Wrapped:
    """A call whose connection breaks is sent once more."""

    def faulty(self: Channel, fact: Any) -> None:
        pending = self._pending.get(fact.request)
        calls = pending is not None and (pending.sent.message or {}).get("method") == "tools/call"
        if pending is not None and calls and isinstance(fact, RequestFailed) and not pending.only_once:
            pending.only_once, pending.in_flight = True, False
            self._hold(pending)
        else:
            received(self, fact)

    return faulty


UPSTREAM_FAULTS: Final = [
    Fault(
        rule="REQ.6",
        what="a session that is gone is not given up",
        where=Channel,
        name="forget_session",
        plant=always(None),
    ),
    Fault(
        rule="PRX.4",
        what="a call is sent again in its session",
        where=Channel,
        name="received",
        plant=_obstinate,
    ),
    Fault(
        rule="INP.1",
        what="an acknowledged key is asked again",
        where=FollowedTasks,
        name="_new_key",
        plant=lambda _: lambda self, followed, question: fingerprint(question.request),
    ),
    *(fault for fault in test_planted_legacy_requester_faults.FAULTS if "answers are" in fault.what),
]


@pytest.mark.parametrize("fault", UPSTREAM_FAULTS, ids=lambda fault: fault.what)
def test_a_fault_that_is_planted_before_servers_of_2025_is_found(
    fault: Fault, monkeypatch: pytest.MonkeyPatch
) -> None:
    def tell_all() -> Iterator[Callable[[], None]]:
        for calm in (12, 18, 36, 37, 38):
            yield partial(live, server_fates=[Fate()] * calm + [Fate(crash=Crash.AFTER)], legacy_servers=True)
            yield partial(live, weather=[Passage()] * calm + [WEATHER["cut"]], legacy_servers=True)
        for proxy_ends_at in range(1_550, 2_350, 200):
            yield partial(live_on, calm=20, proxy_ends_at=proxy_ends_at)

    must_be_found(fault, tell_all(), monkeypatch)


PLANTED: Final[tuple[Any, ...]] = (*test_planted_faults.FAULTS, *test_proxy_planted_faults.FAULTS)
FAULTS: Final = {fault.what: fault for fault in PLANTED}
SEEN: Final = (
    "a call whose answer is lost is sent again",
    "a handle is told before it is durable",
    "a wish to cancel does not go up",
    "a worker is never told to stop",
    "answers are delivered again",
)
"""Faults that anybody can see from where they stand."""


@pytest.mark.parametrize("what", SEEN)
def test_a_planted_fault_is_found(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    must_be_found(FAULTS[what], [live_through_all], monkeypatch)
