"""The host that tests of the proxy run on: it holds the engine to its promises."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_tasks_proto import Reply, SaveFailed, Send, Status, TimePassed
from mcp_tasks_proto.history import Observation
from mcp_tasks_proto.legacy.proxy import DualEraProxyStep, ListHandles
from mcp_tasks_proto.proxy import DrawRandom, Note, ProxyEffect, ProxyStep, SaveBinding
from mcp_tasks_proto.testing import ProxyHost
from tests.unit.liar import Liar
from tests.unit.proxy_world import START, call, create, handed_out, make_proxy, methods


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

OVER = Reply(1, {}, 200)


@pytest.mark.parametrize(
    ("broken", "effects"),
    [
        ("one reply to each request", [OVER, OVER]),
        ("nothing is said after the reply", [OVER, Send(1, {})]),
        (
            "no two questions under one token",
            [DrawRandom(1), ListHandles(principal="ann", after=None, limit=5, token=1)],
        ),
    ],
)
def test_a_broken_promise_is_told(broken: str, effects: list[ProxyEffect | ListHandles]) -> None:
    engine: Any = Liar(DualEraProxyStep(tuple(effects)))
    with pytest.raises(AssertionError, match=broken):
        ProxyHost(engine=engine).send({})


def test_a_deadline_that_stays_in_the_past_is_told() -> None:
    engine: Any = Liar(ProxyStep((), START))
    with pytest.raises(AssertionError, match="a deadline that has passed"):
        ProxyHost(engine=engine, now=START).give(TimePassed())
