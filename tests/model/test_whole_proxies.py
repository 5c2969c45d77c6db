"""Several processes of the proxy at the same time, over one store, before servers of 2025-11-25.

What such a server asks, it asks in the session of one of them. Whichever an answer comes to: it is brought to
its question, or its caller hears that it was not (UPD.3). Where all of a caller's requests go to the same
process, nobody is asked twice; where they move on to another one for good, that one is asked in the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

import pytest

from mcp_tasks_proto.legacy.proxy import DualEraUpstreams
from mcp_tasks_proto.legacy.proxy.upstream import DualEraUpstream
from mcp_tasks_proto.proxy import StoredHandles
from mcp_tasks_proto.proxy.fetching import Fetching
from mcp_tasks_proto.testing import Crash, Fate, Passage
from tests.model.mill import Grinding
from tests.model.planting import Fault, always, must_be_found
from tests.model.test_whole_machine import CODECS
from tests.model.test_whole_storms import WEATHER
from tests.model.whole import PEOPLE, Whole
from tests.model.whole_checks import check_end

PLAN: Final = Grinding(steps=((90, "ask"), (1, "checkpoint"), (1_500, "progress")))
THINKS_MS: Final = (1, 100, 500, 1_500, 4_000, 9_000)
MESSAGES: Final = 64
"""As many as there are in the story, and a few more."""
EFFECTS: Final = 45
"""Likewise, of the proxy's."""


def begin(**facts: Any) -> Whole:
    """Return two processes of a proxy, and two of the server: each of these asks its own callers."""
    usual = {"codec": StoredHandles(), "listen": False, "legacy_servers": True, "places": 2}
    return Whole(plan=PLAN, **{**usual, **facts})


def check_answers(whole: Whole) -> None:
    """UPD.3: what somebody heard to have been taken has got there."""
    got_there = {
        (number, key)
        for number, tasks in whole.started.items()
        for task_id in tasks
        for key in whole.answered.get(task_id, ())
    }
    taken = whole.acknowledged  # asserted of by itself: all there is would be written out else
    assert taken <= got_there, "UPD.3: an answer that was acknowledged is lost"


def stay(**facts: Any) -> None:
    """All requests of a caller go to the same process."""
    whole = begin(**facts)
    for name in PEOPLE:
        whole.call(name)
    check_end(whole)
    check_answers(whole)
    asked = whole.asked
    assert asked == dict.fromkeys(PEOPLE, 1), "INP.1: somebody is asked twice"


def alternate(**facts: Any) -> None:
    """Each request goes to another process than the one before, and the server asks one of them."""
    whole = begin(in_turn=True, server_processes=1, **facts)
    whole.call("ada")
    check_end(whole)
    check_answers(whole)
    asked = whole.asked
    assert asked == {"ada": 1}, "INP.1: somebody is asked twice"


def alternate_where_both_are_asked(**facts: Any) -> None:
    """Who is asked the same by each of them may not know which of the two to answer; nothing is lost."""
    whole = begin(in_turn=True, **facts)
    whole.call("ada")
    whole.network.run(60_000)
    check_answers(whole)


def move_on(*, at_ms: int, **facts: Any) -> None:
    """From some time on all requests go to the other process, and both go on."""
    whole = begin(server_processes=1, **facts)
    whole.call("ada")
    whole.network.run(at_ms)
    whole.moved += 1
    check_end(whole)
    check_answers(whole)
    times = whole.asked["ada"]
    assert times <= 2, "INP.1: once by each process"


@pytest.mark.parametrize("thinks_ms", THINKS_MS)
@pytest.mark.parametrize("codec", CODECS)
def test_inp1_where_callers_stay_with_one_process_nobody_is_asked_twice(codec: str, thinks_ms: int) -> None:
    stay(codec=CODECS[codec], thinks_ms=thinks_ms)


@pytest.mark.parametrize("thinks_ms", THINKS_MS)
@pytest.mark.parametrize("codec", CODECS)
def test_upd3_an_answer_gets_there_whichever_process_it_comes_to(codec: str, thinks_ms: int) -> None:
    alternate(codec=CODECS[codec], thinks_ms=thinks_ms)


@pytest.mark.parametrize("thinks_ms", THINKS_MS)
def test_upd3_an_answer_is_not_acknowledged_and_lost_where_both_are_asked(thinks_ms: int) -> None:
    alternate_where_both_are_asked(thinks_ms=thinks_ms)


@pytest.mark.parametrize("listen", [False, True], ids=["polling", "listening"])
@pytest.mark.parametrize("thinks_ms", [500, 4_000])
def test_leg8_who_has_moved_on_is_asked_by_the_other_process_in_the_end(thinks_ms: int, listen: bool) -> None:
    """A stream that is open stays where it is."""
    for at_ms in range(100, 4_000, 300):
        move_on(at_ms=at_ms, thinks_ms=thinks_ms, listen=listen)


def test_req6_whatever_becomes_of_one_process_at_one_effect() -> None:
    """Its callers are sent to the other one meanwhile, and come back."""
    for calm in range(EFFECTS):
        for thinks_ms in (100, 4_000):
            whole = begin(thinks_ms=thinks_ms)
            whole.proxy_fates.left.extend([Fate()] * calm + [Fate(crash=Crash.AFTER)])
            whole.call("ada")
            check_end(whole)
            check_answers(whole)


@pytest.mark.parametrize("what", ["lost", "cut", "twice"])
def test_upd3_whatever_becomes_of_one_message_on_its_way_to_either(what: str) -> None:
    for calm in range(MESSAGES):
        whole = begin(in_turn=True, server_processes=1)
        whole.weather.extend([Passage()] * calm + [WEATHER[what]])
        whole.call("ada")
        check_end(whole)
        check_answers(whole)


FAULTS: Final = [
    Fault(
        rule="UPD.3",
        what="what another process was asked is taken for answered",
        where=DualEraUpstreams,
        name="_asked_elsewhere",
        plant=always(False),
    ),
    Fault(
        rule="INP.1",
        what="a process that was not asked says that nothing is asked",
        where=DualEraUpstreams,
        name="_may_ask_elsewhere",
        plant=always(False),
    ),
    Fault(
        rule="LEG.8",
        what="a task is followed for ever by who was asked first",
        where=DualEraUpstream,
        name="extend_lease",
        plant=always(None),
    ),
    Fault(
        rule="LEG.8",
        what="a task is followed for as long as somebody listens",
        where=Fetching,
        name="fetch",
        plant=lambda fetch: lambda self, *given, listening=False, **more: fetch(self, *given, **more),
    ),
]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.what)
def test_a_fault_that_is_planted_in_processes_of_a_proxy_is_found(
    fault: Fault, monkeypatch: pytest.MonkeyPatch
) -> None:
    def tell_all() -> Iterator[Callable[[], None]]:
        for thinks_ms in (1, 500):
            yield partial(alternate, thinks_ms=thinks_ms)
            yield partial(alternate_where_both_are_asked, thinks_ms=thinks_ms)
            yield partial(move_on, at_ms=1_300, thinks_ms=thinks_ms)
        yield partial(move_on, at_ms=2_200, thinks_ms=4_000, listen=True)

    must_be_found(fault, tell_all(), monkeypatch)
