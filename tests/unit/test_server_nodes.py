"""Many nodes over one store: any serves any request, and news travels: UPD.5, CAN.6, TTL.1, SUB.2."""

from __future__ import annotations

from typing import Any

from mcp_tasks_proto import (
    AcceptReport,
    CancelReason,
    DeliverInput,
    Limits,
    RecordChanged,
    RecordRemoved,
    RejectReport,
    Reply,
    RequestCancel,
    Send,
    StartWork,
    TtlChanged,
    WorkCompleted,
    WorkProgressed,
    WorkStopped,
)
from mcp_tasks_proto.testing import DictStore, ServerHost
from tests.unit.world import (
    ACCEPTED,
    DECLINED,
    DONE,
    NEVER,
    START,
    TASK,
    asked,
    cancel,
    listen,
    make_host,
    parked,
    read,
    update,
    view,
    working,
)

REQUESTED = RequestCancel(TASK, CancelReason.REQUESTED)
ENDED = RequestCancel(TASK, CancelReason.ENDED)
EXPIRED = RequestCancel(TASK, CancelReason.EXPIRED)


def two_nodes(limits: Limits | None = None) -> tuple[ServerHost, ServerHost]:
    """Return the node where the work will be, and another."""
    store = DictStore()
    return make_host(limits, store=store), make_host(limits, store=store)


def tell(host: ServerHost) -> list[Any]:
    """Tell a node how the task stands in the store now."""
    record = host.store.records.get(TASK)
    return host.give(RecordRemoved(TASK) if record is None else RecordChanged(record))


def test_any_node_serves_any_request() -> None:
    home, away = two_nodes()
    parked(home, principal="alice")
    assert view(away, principal="alice") == view(home, principal="alice")
    assert "error" in away.ask("tasks/get", {"taskId": TASK}, principal="bob")
    update(away, {"confirm": ACCEPTED}, principal="alice")
    assert view(home, principal="alice")["status"] == "working"
    assert not away.of(StartWork)
    assert not away.of(DeliverInput), "the worker is not there"


def test_upd5_an_answer_given_elsewhere_reaches_the_worker_once() -> None:
    home, away = two_nodes()
    parked(home, "a", "b")
    update(away, {"a": ACCEPTED})
    assert [type(effect) for effect in tell(home)] == [DeliverInput]
    assert tell(home) == [], "old news"
    update(home, {"b": DECLINED})
    delivered = [answer.key for one in home.of(DeliverInput) for answer in one.answers]
    assert delivered == ["a", "b"]


def test_upd5_news_may_be_overtaken() -> None:
    """The worker's report is saved on top of an answer that this node has not heard of: it comes with it."""
    home, away = two_nodes()
    parked(home)
    update(away, {"confirm": ACCEPTED})
    late = RecordChanged(home.store.records[TASK])
    home.give(WorkProgressed(task_id=TASK, token=1, status_message="busy"))
    assert len(home.of(DeliverInput)) == 1
    assert home.give(late) == []


def test_can6_a_cancel_elsewhere_reaches_the_worker_once() -> None:
    home, away = two_nodes()
    working(home)
    cancel(away)
    assert tell(home) == [REQUESTED]
    assert tell(home) == []
    home.give(WorkStopped(task_id=TASK, token=1))
    assert view(away)["status"] == "cancelled"


def test_can6_a_worker_that_asks_after_a_cancel_elsewhere_is_told_to_stop_first() -> None:
    """It would take the rejection for an error of its own, and the task would end as that says."""
    home, away = two_nodes()
    working(home)
    cancel(away)
    told, rejected = home.give(asked("first", "confirm", token="q"))[-2:]
    assert told == REQUESTED
    assert isinstance(rejected, RejectReport)
    assert tell(home) == [], "it knows"


def test_can6_either_node_ends_the_grace() -> None:
    home, away = two_nodes(Limits(cancel_grace_ms=500))
    working(home)
    cancel(away)
    tell(home)
    assert home.deadline == away.deadline == START + 500
    away.advance(500)
    assert view(home)["status"] == "cancelled"
    tell(home)
    home.advance(500)
    assert view(home)["status"] == "cancelled"
    assert home.of(RequestCancel) == [REQUESTED]


def test_can6_a_grace_is_not_ended_twice() -> None:
    home, away = two_nodes(Limits(cancel_grace_ms=500))
    working(home)
    cancel(away)
    tell(home)
    away.advance(500)
    before = view(home)
    home.advance(500)
    assert view(home) == before


def test_a_task_ended_elsewhere_stops_its_worker() -> None:
    """It was thought to be gone, say, and another node gave up on it."""
    home, away = two_nodes(Limits(cancel_grace_ms=500))
    working(home)
    cancel(away)
    away.advance(500)
    assert tell(home) == [ENDED], "it never heard of the wish"
    assert tell(home) == []
    assert home.deadline == START + 3_600_000, "only the expiry is left"


def test_ttl1_a_task_removed_elsewhere_stops_its_worker() -> None:
    home, away = two_nodes()
    parked(home, ttl_ms=1_000)
    away.now += 1_000
    assert "error" in away.ask("tasks/get", {"taskId": TASK})
    assert tell(home) == [EXPIRED]
    assert tell(home) == []
    assert home.give(RecordRemoved(NEVER)) == []


def test_ttl3_a_lifetime_changed_elsewhere_is_seen() -> None:
    home, away = two_nodes()
    working(home, ttl_ms=60_000)
    away.give(TtlChanged(task_id=TASK, ttl_ms=1_000, token=1))
    tell(home)
    assert view(home)["ttlMs"] == 1_000
    away.advance(1_000)
    assert tell(home) == [EXPIRED]


def test_ttl3_a_lifetime_changed_elsewhere_gives_way_to_a_later_report() -> None:
    """The report asks for what this node takes for the lifetime it has."""
    home, away = two_nodes()
    working(home, ttl_ms=60_000)
    away.give(TtlChanged(task_id=TASK, ttl_ms=1_000, token=1))
    home.give(WorkProgressed(task_id=TASK, token=2, ttl_ms=60_000))
    assert view(away)["ttlMs"] == 60_000


def test_ttl3_a_lifetime_prolonged_elsewhere_saves_a_result() -> None:
    """This node takes the task for expired."""
    home, away = two_nodes()
    working(home, ttl_ms=60_000)
    away.give(TtlChanged(task_id=TASK, ttl_ms=None, token=1))
    home.now += 60_000
    home.give(WorkCompleted(task_id=TASK, token=2, result=DONE))
    assert view(away)["status"] == "completed"


def test_ttl1_a_report_finds_that_its_task_was_removed_elsewhere() -> None:
    """Nobody told this node."""
    home, away = two_nodes()
    working(home, ttl_ms=60_000)
    away.give(TtlChanged(task_id=TASK, ttl_ms=1_000, token=1))
    away.advance(1_000)
    assert home.give(WorkProgressed(task_id=TASK, token=2, status_message="busy")) == [
        EXPIRED,
        AcceptReport(2),
    ]


def test_sub2_listeners_hear_of_changes_elsewhere() -> None:
    home, away = two_nodes()
    working(home)
    stream = listen(away, TASK)
    read(away, stream)
    home.give(asked("first", "confirm"))
    assert [type(effect) for effect in tell(away)] == [Send]
    assert tell(away) == [], "they have it already"
    home.give(WorkCompleted(task_id=TASK, token=1, result=DONE))
    tell(away)
    read(away, stream)
    statuses = [message["params"].get("status") for message in away.sent_on(stream)]
    assert statuses[1:] == ["working", "input_required", "completed"]


def test_news_of_tasks_that_concern_nobody_here_means_nothing() -> None:
    home, away = two_nodes()
    working(home)
    assert tell(away) == []
    assert not away.of(Reply)
