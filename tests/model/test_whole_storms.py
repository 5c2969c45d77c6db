"""Requesters, proxy and servers together, and one thing that goes wrong at each moment in turn.

The same story each time: somebody's task asks, is answered and ends, and another one is cancelled. Then
faults are planted in one role, one by one: what must hold across all of them finds each.
"""

from __future__ import annotations

from typing import Any, Final

import pytest

from mcp_tasks_proto.proxy import StoredHandles
from mcp_tasks_proto.testing import Crash, Fate
from tests.model import test_planted_faults, test_proxy_planted_faults
from tests.model.mill import Grinding
from tests.model.whole import PEOPLE, Whole
from tests.model.whole_checks import check_end, check_now
from tests.model.whole_roads import Weather

PLAN: Final = Grinding(steps=((90, "ask"), (1, "checkpoint"), (1_500, "progress")))
WEATHER: Final = {
    "lost": Weather(lost=True),
    "cut": Weather(cut=True),
    "twice": Weather(twice=True),
    "late": Weather(delay_ms=4_000),
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


def live(
    *,
    weather: list[Weather] | None = None,
    fates: list[Fate] | None = None,
    server_fates: list[Fate] | None = None,
    **eras: Any,
) -> None:
    """Live through the story, with this on the way."""
    whole = Whole(plan=PLAN, codec=StoredHandles(), **eras)
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
        live(weather=[Weather()] * calm + [WEATHER["cut"]])
        live(fates=[Fate()] * calm + [FATES["proxy's store fails"]])


@pytest.mark.parametrize("what", WEATHER)
def test_prx4_whatever_becomes_of_one_message(what: str) -> None:
    for calm in range(MESSAGES):
        live(weather=[Weather()] * calm + [WEATHER[what]])


@pytest.mark.parametrize("what", FATES)
def test_prx6_whatever_becomes_of_the_proxy_at_one_effect(what: str) -> None:
    for calm in range(EFFECTS):
        live(fates=[Fate()] * calm + [FATES[what]])


@pytest.mark.parametrize("what", ["lost", "cut"])
def test_leg8_whatever_becomes_of_one_message_of_a_session(what: str) -> None:
    for calm in range(LEGACY_MESSAGES):
        live(weather=[Weather()] * calm + [WEATHER[what]], legacy=frozenset(PEOPLE))


def test_leg2_whatever_the_proxy_was_at_when_its_sessions_ended() -> None:
    for calm in range(LEGACY_EFFECTS):
        live(fates=[Fate()] * calm + [FATES["proxy ends before"]], legacy=frozenset(PEOPLE))


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
    fault = FAULTS[what]
    monkeypatch.setattr(fault.where, fault.name, fault.plant(getattr(fault.where, fault.name)))
    with pytest.raises(AssertionError):
        live_through_all()
