"""The host that tests of the proxy run on: it holds the engine to its promises."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_tasks_proto import ExchangeClosed, Reply, SaveFailed, Send, Status, StopCall, TimePassed
from mcp_tasks_proto.history import Observation
from mcp_tasks_proto.legacy.proxy import DualEraProxyStep, ListHandles
from mcp_tasks_proto.proxy import (
    DrawRandom,
    LoadTask,
    Note,
    ProxyEffect,
    ProxyStep,
    SaveBinding,
    SendUpstream,
    StopUpstream,
)
from mcp_tasks_proto.testing import ProxyHost
from tests.unit.liar import Liar
from tests.unit.proxy_world import call, create, handed_out, make_proxy, methods


def test_only_what_is_in_flight_can_be_answered() -> None:
    host = make_proxy()
    with pytest.raises(LookupError, match="no tools/call in flight"):
        host.answer("tools/call", {})
    call(host)
    with pytest.raises(LookupError, match="no tools/call in flight"):
        host.waiting("tools/call", "another")


def test_only_what_was_replied_to_has_a_reply() -> None:
    host = make_proxy()
    exchange = call(host)
    with pytest.raises(LookupError, match="0 replies"):
        host.reply_to(exchange)


def test_a_handle_is_taken_once() -> None:
    host = make_proxy()
    handed_out(host)
    host.held = True
    call(host)
    host.answer("tools/call", create("up-2"))
    host.answer_next()
    (saving,) = host.asked
    assert isinstance(saving, SaveBinding)
    assert not isinstance(host.store.answer(saving), SaveFailed)
    assert isinstance(host.store.answer(saving), SaveFailed)


def test_what_is_not_in_the_ledger_is_not_noted() -> None:
    host = make_proxy()
    host.store.note(Note("nobody's", Observation(status=Status.FAILED, at_ms=host.now)))
    assert host.store.entries == {}


def test_effects_are_found_by_kind() -> None:
    host = make_proxy()
    handed_out(host)
    assert methods(host) == ["server/discover", "tools/list", "tools/call"]


# -- what it holds an engine to --------------------------------------------------------------------


def lying(*steps: list[ProxyEffect | ListHandles], held: bool = False) -> ProxyHost:
    """Return a host of an engine that says this, step by step."""
    engine: Any = Liar(*(DualEraProxyStep(tuple(effects)) for effects in steps))
    return ProxyHost(engine=engine, held=held)


def upstream(name: int, request_id: int) -> SendUpstream:
    return SendUpstream(
        request=name, upstream="one", authorization="mine", message={"id": request_id, "method": "tools/list"}
    )


OVER = Reply(1, {}, 200)
SENT = Send(1, {})


@pytest.mark.parametrize(
    ("broken", "effects"),
    [
        ("one reply to each request", [Reply(2, {}, 200)]),
        ("nothing is said after the reply", [Send(2, {})]),
        ("one reply to each request", [OVER, OVER]),
        ("nothing is said after the reply", [OVER, SENT]),
        ("one reply to each request", [StopCall(1), OVER]),
        ("no two questions under one token", [LoadTask("a", 1), DrawRandom(1)]),
        (
            "no two questions under one token",
            [DrawRandom(1), ListHandles(principal="ann", after=None, limit=5, token=1)],
        ),
        ("not a request with a name of its own", [upstream(1, 1), upstream(1, 1)]),
        ("not a request with a name of its own", [upstream(1, 2)]),
        ("not a request in flight", [StopUpstream(1)]),
        ("not a request in flight", [upstream(1, 1), StopUpstream(1), StopUpstream(1)]),
    ],
)
@pytest.mark.parametrize("held", [False, True])
def test_a_broken_promise_is_told(broken: str, effects: list[ProxyEffect | ListHandles], held: bool) -> None:
    host = lying(effects, held=held)
    with pytest.raises(AssertionError, match=broken):
        host.send({})


def test_what_is_said_to_somebody_who_is_gone_is_told() -> None:
    host = lying([], [OVER])
    exchange = host.send({})
    with pytest.raises(AssertionError, match="one reply to each request, while somebody waits"):
        host.give(ExchangeClosed(exchange))


@pytest.mark.parametrize("ahead_ms", [-1, 0])
def test_a_deadline_that_stays_in_the_past_is_told(ahead_ms: int) -> None:
    engine: Any = Liar()
    host = ProxyHost(engine=engine)
    engine.steps.append(ProxyStep((), host.now + ahead_ms))
    with pytest.raises(AssertionError, match="a deadline that has passed"):
        host.give(TimePassed())


def test_kept_promises_are_not() -> None:
    """A token is free once it is answered; what callers read is no question."""
    host = lying([SENT, LoadTask("a", 1)], [], [LoadTask("b", 1), OVER], [])
    host.reads = True
    host.send({})
    assert host.of(Reply) == [OVER]


def test_nothing_is_answered_that_was_not_asked() -> None:
    with pytest.raises(LookupError, match="nothing is held back"):
        make_proxy().answer_next()
