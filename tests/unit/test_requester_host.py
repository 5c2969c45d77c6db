"""The test host itself: it tells apart engines that keep their promises and engines that do not."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_tasks_proto.inputs import TimePassed
from mcp_tasks_proto.requester import (
    Cancelled,
    KeepReference,
    Prompt,
    RequesterEffect,
    RequesterStep,
    SendRequest,
    Settle,
    ShowView,
    StopRequest,
    WithdrawPrompt,
)
from mcp_tasks_proto.testing import RequesterHost
from tests.unit.liar import Liar
from tests.unit.requester_world import START, form, make_host

SENT = SendRequest(request=1, message={"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {}})
OVER = Settle(1, Cancelled())
KEPT = KeepReference(1, {})
ASKED = Prompt(call=1, key="k", request=form())
MOOT = WithdrawPrompt(1, "k")


def lying(*steps: list[RequesterEffect]) -> RequesterHost:
    """Return a host of such an engine."""
    engine: Any = Liar(*(RequesterStep(tuple(effects)) for effects in steps))
    return RequesterHost(engine=engine)


@pytest.mark.parametrize(
    ("broken", "effects"),
    [
        ("a request with a number of its own", [SENT, SENT]),
        ("a request in flight", [StopRequest(1)]),
        ("a request in flight", [SENT, StopRequest(1), StopRequest(1)]),
        ("a call that is under way", [OVER, OVER]),
        ("a call that is under way", [OVER, KEPT]),
        ("a call that is under way", [Settle(2, Cancelled())]),
        ("a prompt that is on show already", [ASKED, ASKED]),
        ("a question of a task that was shown before", [KEPT, ASKED, MOOT, ASKED]),
        ("not a prompt that is on show", [MOOT]),
        ("a call of which prompts are on show", [ASKED, OVER]),
    ],
)
def test_a_broken_promise_is_told(broken: str, effects: list[RequesterEffect]) -> None:
    host = lying(effects)
    with pytest.raises(AssertionError, match=broken):
        host.call()


def test_a_request_whose_number_is_not_its_id_is_told() -> None:
    message = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {}}
    host = lying([SendRequest(request=1, message=message)])
    with pytest.raises(AssertionError, match="a number of its own"):
        host.call()


def test_a_deadline_that_stays_in_the_past_is_told() -> None:
    engine: Any = Liar(RequesterStep((), START), RequesterStep((), START))
    host = RequesterHost(engine=engine, now=START)
    host.call()
    with pytest.raises(AssertionError, match="a deadline that has passed"):
        host.give(TimePassed())


def test_kept_promises_are_not() -> None:
    """The same key in another round of a plain call is another question."""
    host = lying([SENT, ASKED, MOOT, ASKED], [KEPT, StopRequest(1), OVER])
    call = host.call()
    host.answer(call, "k", {"action": "decline"})
    assert host.outcomes == {call: Cancelled()}
    assert host.references == {call: {}}
    assert not host.on_show
    assert not host.in_flight


def test_a_resumed_call_is_a_task_from_the_beginning() -> None:
    host = lying([ASKED, MOOT, ASKED])
    with pytest.raises(AssertionError, match="shown before"):
        host.resume({})


def test_requests_are_found_by_method_the_oldest_first() -> None:
    host = make_host()
    host.call("one")
    host.call("two")
    assert host.number_of("tools/call") == 1
    assert host.number_of(2) == 2
    assert host.waiting("tools/call") == [1, 2]
    assert [params["name"] for params in host.sent("tools/call")] == ["one", "two"]
    with pytest.raises(LookupError, match="no tasks/get in flight"):
        host.number_of("tasks/get")


def test_effects_are_found_by_kind() -> None:
    host = make_host()
    host.call()
    assert [type(effect) for effect in host.of(SendRequest)] == [SendRequest]
    assert host.of(ShowView) == []
