"""Several processes of a proxy before one upstream of 2025-11-25: each is asked for itself (PRX.10, UPD.3).

What a legacy upstream asks, it asks in the session of one process, and only that one can answer. The others
say so: none of them takes an answer that it cannot bring to where it is waited for.
"""

from __future__ import annotations

from typing import Any, Final

import pytest

from mcp_tasks_proto.proxy import (
    HandleCodec,
    HandleKey,
    ProxyLimits,
    SealedHandles,
    SettingsChanged,
    StoredHandles,
    Upstream,
)
from tests.unit.dual_era_proxy_world import DualEraHost, legacy_task, make_dual_era
from tests.unit.proxy_world import (
    FORMS,
    ToyAead,
    ask,
    handed_out,
    make_settings,
    reason,
    result,
    task,
    view,
)
from tests.unit.world import ACCEPTED, form

FORM: Final[dict[str, Any]] = {
    **form()["params"],
    "_meta": {"io.modelcontextprotocol/related-task": {"taskId": "old-7"}},
}
OTHER_FORM: Final[dict[str, Any]] = {**FORM, "message": "And which colour?"}
MINUTE_MS: Final = 60_000
KNOWN: Final = Upstream(name="renderer", era="legacy")
SHARED: Final[dict[str, Any]] = {"several_processes": True}


def start(host: DualEraHost, **more: Any) -> str:
    """Have a process make a task; return its handle."""
    exchange = host.request("tools/call", {"name": "render", "arguments": {}}, capabilities=FORMS)
    host.open_session()
    host.streams_open()
    host.answer("tools/call", {"task": legacy_task(**more)})
    handle: str = result(host.reply_to(exchange))["taskId"]
    return handle


def beside(first: DualEraHost, **settings: Any) -> DualEraHost:
    """Return another process over the same store, a second later."""
    second = make_dual_era(KNOWN, store=first.store, **settings)
    second.now = first.now + 1_000
    return second


def poll(host: DualEraHost, handle: str, status: str = "input_required", **more: Any) -> int:
    """Have a task asked about; its upstream says how it stands."""
    exchange = host.request("tasks/get", {"taskId": handle}, capabilities=FORMS)
    if any(one.message["method"] == "initialize" for one in host.in_flight.values()):
        host.open_session()
        host.streams_open()
    host.answer("tasks/get", legacy_task(status, **more))
    return exchange


def asked(host: DualEraHost, handle: str, question: Any = FORM, id: str = "q1") -> list[str]:  # noqa: A002
    """Have a process asked; return the keys that its caller sees."""
    exchange = poll(host, handle)
    host.asks("elicitation/create", question, on="tasks/result", id=id)
    return list(view(host.reply_to(exchange))["inputRequests"])


def answer(host: DualEraHost, handle: str, *keys: str, status: str = "input_required") -> int:
    """Answer these keys; the upstream says how the task stands."""
    params = {"taskId": handle, "inputResponses": dict.fromkeys(keys, ACCEPTED)}
    exchange = host.request("tasks/update", params, capabilities=FORMS)
    if any(one.message["method"] == "initialize" for one in host.in_flight.values()):
        host.open_session()
        host.streams_open()
    host.answer("tasks/get", legacy_task(status))
    return exchange


# -- answers -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", ["input_required", "working"])
@pytest.mark.parametrize("settings", [{}, SHARED], ids=["told of no other", "told of others"])
def test_upd3_what_another_process_was_asked_is_not_acknowledged(
    status: str, settings: dict[str, Any]
) -> None:
    """Be that process gone, or be it there: this one cannot tell. Some ask without saying that they wait."""
    first = make_dual_era(KNOWN)
    handle = start(first)
    (key,) = asked(first, handle)
    second = beside(first, **settings)
    update = answer(second, handle, key, status=status)
    second.advance(2_000)
    assert reason(second.reply_to(update)) == "asked_elsewhere"
    assert second.reply_to(update)["error"]["data"]["retryable"] is True
    assert second.responses() == []
    update = answer(first, handle, key)
    first.accept("a response")
    assert view(first.reply_to(update)) == {}, "it is taken where it was asked"


def test_upd3_what_was_asked_here_is_answered_beside_what_was_not() -> None:
    """The same update again does no harm: what was answered is not answered twice."""
    first = make_dual_era(KNOWN)
    handle = start(first)
    (other,) = asked(first, handle)
    second = beside(first)
    (key,) = asked(second, handle)
    assert key != other
    update = answer(second, handle, key, other)
    second.accept("a response")
    assert reason(second.reply_to(update)) == "asked_elsewhere"
    update = answer(second, handle, key, other)
    second.advance(2_000)
    assert reason(second.reply_to(update)) == "asked_elsewhere"
    assert len(second.responses()) == 1


def test_upd3_what_was_answered_or_never_asked_is_ignored() -> None:
    host = make_dual_era(KNOWN)
    handle = start(host)
    (key,) = asked(host, handle)
    update = answer(host, handle, key)
    host.accept("a response")
    assert view(host.reply_to(update)) == {}
    for ignored in (key, "confirm", "elicitation", f"{key}.", f"x{key}"):
        update = answer(host, handle, ignored)
        host.advance(2_000)
        assert view(host.reply_to(update)) == {}, ignored
    assert len(host.responses()) == 1


def test_upd3_a_modern_upstream_is_asked_in_no_process_and_its_keys_are_its_own() -> None:
    host = make_dual_era(Upstream(name="renderer", era="modern"), **SHARED)
    handle = handed_out(host)
    params = {"inputResponses": {"elicitation.0.1": ACCEPTED}}
    update = ask(host, "tasks/update", handle, params=params)
    host.answer("tasks/get", {"resultType": "complete", **task("working")})
    assert view(host.reply_to(update)) == {}


def test_upd3_where_nobody_can_be_asked_no_answer_is_acknowledged_either() -> None:
    """Other processes may have been started with other settings."""
    host = make_dual_era(KNOWN, input_kinds=frozenset())
    handle = start(host)
    update = answer(host, handle, "elicitation.0.1", status="working")
    assert reason(host.reply_to(update)) == "asked_elsewhere"


def test_upd3_an_answer_of_a_task_that_makes_room_for_another_is_not_acknowledged() -> None:
    host = make_dual_era(KNOWN, proxy_limits=ProxyLimits(followed_tasks=1))
    update = answer(host, start(host), "elicitation.0.1")
    host.request("tools/call", {"name": "render", "arguments": {}}, capabilities=FORMS)
    host.answer("tools/call", {"task": legacy_task(task_id="old-8")})
    assert reason(host.reply_to(update)) == "asked_elsewhere"


def test_upd3_what_was_answered_here_is_answered_whatever_others_are_asked() -> None:
    """Its acknowledgement may have been lost; the task has not gone on yet, and asks nothing more here."""
    host = make_dual_era(KNOWN, **SHARED)
    handle = start(host)
    (key,) = asked(host, handle)
    update = answer(host, handle, key)
    host.accept("a response")
    assert view(host.reply_to(update)) == {}
    update = answer(host, handle, key)
    host.advance(2_000)
    assert view(host.reply_to(update)) == {}
    assert len(host.responses()) == 1


def test_upd5_nobody_waits_for_answers_to_what_has_ended() -> None:
    first = make_dual_era(KNOWN)
    handle = start(first)
    (key,) = asked(first, handle)
    second = beside(first, **SHARED)
    update = answer(second, handle, key, status="completed")
    second.answer("tasks/result", {"content": []})
    assert view(second.reply_to(update)) == {}


def test_upd4_an_answer_that_does_not_fit_is_told_first() -> None:
    """Nothing of that update is applied."""
    first = make_dual_era(KNOWN)
    handle = start(first)
    (other,) = asked(first, handle)
    second = beside(first)
    (key,) = asked(second, handle)
    answers = {key: {"action": "perhaps"}, other: ACCEPTED}
    update = second.request("tasks/update", {"taskId": handle, "inputResponses": answers}, capabilities=FORMS)
    second.answer("tasks/get", legacy_task("input_required"))
    assert second.reply_to(update)["error"]["code"] == -32602
    assert second.responses() == []


def test_prx7_what_was_asked_by_a_server_that_is_configured_no_more_is_not_acknowledged() -> None:
    """Nobody knows any more what that was."""
    first = make_dual_era(KNOWN)
    handle = start(first)
    (key,) = asked(first, handle)
    second = beside(first)
    view(second.reply_to(poll(second, handle, "working")))
    params = {"taskId": handle, "inputResponses": {key: ACCEPTED}}
    update = second.request("tasks/update", params, capabilities=FORMS)
    replaced = make_settings(Upstream(name="renderer", era="legacy", identity="another"))
    second.give(SettingsChanged(replaced))
    second.answer("tasks/get", legacy_task("working"))
    assert reason(second.reply_to(update)) == "asked_elsewhere"


# -- views ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "codec", [StoredHandles(), SealedHandles([HandleKey("a", ToyAead(b"k"))])], ids=["stored", "sealed"]
)
def test_inp1_a_process_that_was_not_asked_does_not_say_that_nothing_is_asked(codec: HandleCodec) -> None:
    settings = SHARED if codec.stored else {}
    first = make_dual_era(KNOWN, codec=codec, **settings)
    handle = start(first)
    (key,) = asked(first, handle)
    second = beside(first, codec=codec, **settings)
    exchange = poll(second, handle)
    second.advance(2_000)
    assert reason(second.reply_to(exchange)) == "asked_elsewhere"
    exchange = poll(second, handle, "working")
    assert view(second.reply_to(exchange))["status"] == "working"
    assert list(view(first.reply_to(poll(first, handle)))["inputRequests"]) == [key]


def test_his1_that_it_waits_is_noted_all_the_same() -> None:
    first = make_dual_era(KNOWN, **SHARED)
    handle = start(first)
    second = beside(first, **SHARED)
    poll(second, handle)
    second.advance(2_000)
    assert second.store.entries[handle].status.value == "input_required"


def test_inp1_where_nobody_can_be_asked_nothing_is() -> None:
    """No process of this proxy declares that it can."""
    first = make_dual_era(KNOWN, input_kinds=frozenset(), **SHARED)
    exchange = poll(first, start(first))
    assert view(first.reply_to(exchange))["inputRequests"] == {}


def test_leg3_a_caller_of_2025_is_told_that_its_task_waits() -> None:
    """What is asked is no part of that: it comes as a request of its own."""
    host = make_dual_era(KNOWN, bridging=True, **SHARED)
    opening = host.initialize(FORMS)
    host.open_session()
    assert "result" in host.reply_to(opening)
    call = host.ask("tools/call", {"name": "render", "arguments": {}, "task": {}})
    host.streams_open()
    host.answer("tools/call", {"task": legacy_task()})
    handle = result(host.reply_to(call))["task"]["taskId"]
    exchange = host.ask("tasks/get", {"taskId": handle})
    host.answer("tasks/get", legacy_task("input_required"))
    host.advance(2_000)
    assert result(host.reply_to(exchange))["status"] == "input_required"


def test_sub2_who_listens_is_told_when_it_is_asked_here() -> None:
    host = make_dual_era(KNOWN, **SHARED)
    host.reads = True
    handle = start(host, pollInterval=5_000)
    wanted = {"notifications": {"taskIds": [handle]}}
    stream = host.request("subscriptions/listen", wanted, capabilities=FORMS)
    host.answer("tasks/get", legacy_task("input_required"))
    host.advance(2_000)
    told = [one for one in host.sent_on(stream) if one["method"] == "notifications/tasks"]
    assert told == []
    host.advance(4_999)
    assert len(host.sent_legacy("tasks/get")) == 1, "as often as its upstream wants to be asked"
    host.advance(1)
    host.answer("tasks/get", legacy_task("input_required"))
    host.asks("elicitation/create", FORM, on="tasks/result")
    told = [one for one in host.sent_on(stream) if one["method"] == "notifications/tasks"]
    assert [len(one["params"]["inputRequests"]) for one in told] == [1]


def test_prx17_a_collapsed_call_comes_again() -> None:
    host = make_dual_era(KNOWN, collapse=True, proxy_limits=ProxyLimits(collapse_ms=3_000), **SHARED)
    wanted = {"name": "paint", "arguments": {}}
    exchange = host.request("tools/call", wanted, capabilities=FORMS, tasks=False)
    host.open_session({"name": "paint", "inputSchema": {}, "execution": {"taskSupport": "required"}})
    host.streams_open()
    host.answer("tools/call", {"task": legacy_task()})
    for _ in range(2):
        host.answer("tasks/get", legacy_task("input_required"))
        host.advance(2_500)
    round_ = result(host.reply_to(exchange))
    assert (round_["resultType"], "inputRequests" in round_) == ("input_required", False)


# -- for how long --------------------------------------------------------------------------------------------


def waits(host: DualEraHost) -> bool:
    """Whether a process waits for questions of the task."""
    return any(one.message["method"] == "tasks/result" for one in host.in_flight.values())


def test_leg8_a_task_that_nobody_asks_about_is_left_to_the_other_processes() -> None:
    """Its caller may have been sent on to one of them, which is not asked before."""
    host = make_dual_era(KNOWN, proxy_limits=ProxyLimits(request_state_ms=MINUTE_MS), **SHARED)
    handle = start(host)
    (key,) = asked(host, handle)
    host.advance(MINUTE_MS - 1)
    assert list(view(host.reply_to(poll(host, handle)))["inputRequests"]) == [key]
    host.advance(MINUTE_MS - 1)
    assert waits(host)
    host.advance(1)
    assert not waits(host)
    (later,) = asked(host, handle)
    assert later != key, "it may have been answered by others since"


def test_leg8_a_process_is_as_patient_as_the_upstream_wants_its_polls_to_be() -> None:
    host = make_dual_era(KNOWN, proxy_limits=ProxyLimits(request_state_ms=MINUTE_MS), **SHARED)
    handle = start(host, pollInterval=5 * MINUTE_MS)
    asked(host, handle)
    host.advance(10 * MINUTE_MS - 1)
    assert waits(host)
    host.advance(1)
    assert not waits(host)


def test_leg8_no_process_waits_beyond_the_end_of_time() -> None:
    host = make_dual_era(KNOWN, **SHARED)
    poll(host, start(host, pollInterval=2**60))
    assert host.deadline is not None


def test_leg8_who_only_listens_here_may_ask_elsewhere() -> None:
    """A stream may stay open where its caller was for a while only; the others are asked in the end."""
    host = make_dual_era(KNOWN, proxy_limits=ProxyLimits(request_state_ms=MINUTE_MS), **SHARED)
    host.reads = True
    handle = start(host)
    host.request("subscriptions/listen", {"notifications": {"taskIds": [handle]}}, capabilities=FORMS)
    host.answer("tasks/get", legacy_task("input_required"))
    host.asks("elicitation/create", FORM, on="tasks/result")
    opened = len(host.sent_legacy("tasks/result"))
    for _ in range(59):
        host.advance(1_000)
        host.answer("tasks/get", legacy_task("input_required"))
    assert len(host.sent_legacy("tasks/result")) == opened
    host.advance(1_000)
    assert not waits(host)
    host.answer("tasks/get", legacy_task("input_required"))
    assert len(host.sent_legacy("tasks/result")) == opened + 1, "it waits again, but not as the first"


def test_leg8_a_look_that_waits_when_the_task_is_left_goes_on() -> None:
    """It waits for a question, until nobody waits for questions any more."""
    host = make_dual_era(KNOWN, proxy_limits=ProxyLimits(request_state_ms=MINUTE_MS), **SHARED)
    host.reads = True
    handle = start(host)
    host.request("subscriptions/listen", {"notifications": {"taskIds": [handle]}}, capabilities=FORMS)
    host.answer("tasks/get", legacy_task())
    for _ in range(58):
        host.advance(1_000)
        host.answer("tasks/get", legacy_task())
    host.advance(1_000)
    host.answer("tasks/get", legacy_task("input_required"))
    host.advance(1_000)
    assert not waits(host)
    host.advance(1_000)
    host.answer("tasks/get", legacy_task("input_required"))


def test_leg8_where_there_are_no_others_a_person_has_all_the_time_there_is() -> None:
    host = make_dual_era(KNOWN, proxy_limits=ProxyLimits(request_state_ms=MINUTE_MS))
    handle = start(host)
    (key,) = asked(host, handle)
    host.advance(60 * MINUTE_MS)
    assert list(view(host.reply_to(poll(host, handle)))["inputRequests"]) == [key]


def test_lim3_a_task_that_cannot_be_asked_about_is_not_followed() -> None:
    first = make_dual_era(KNOWN)
    handle = start(first)
    limits = ProxyLimits(upstream_requests=1)
    second = make_dual_era(KNOWN, Upstream(name="other"), store=first.store, proxy_limits=limits, **SHARED)
    second.request("tools/call", {"name": "other__tool", "arguments": {}})
    exchange = second.request("tasks/get", {"taskId": handle}, capabilities=FORMS)
    assert reason(second.reply_to(exchange)) == "upstream_unavailable"
    assert not waits(second)
