"""What must hold across all roles: at any time, and once nothing goes wrong any more."""

from __future__ import annotations

from typing import Final

from mcp_tasks_proto import Status
from mcp_tasks_proto.records import TaskRecord
from mcp_tasks_proto.requester import Cancelled, Completed, Failed
from tests.model.test_network import check_records
from tests.model.whole import DONE, TTL_MS, Errand, Whole
from tests.model.whole_bounds import check_bounds
from tests.model.whole_legacy import SESSION_IDLE_MS, engine_of, is_own_stream, registry_of

__all__ = ["check_end", "check_now"]

CALM_MS: Final = 300_000
"""Longer than anything takes, once all is well."""


def check_now(whole: Whole) -> None:
    """PRX.4, LIFE.2, LIM.3: a call is carried out once at most, a run begun once; what was told is so; and
    nothing is held but what is under way. Each step of an engine has its own watch by then."""
    for errand in whole.errands:
        times = len(whole.started.get(errand.number, ())) + whole.plain[errand.number]
        assert times <= 1, "PRX.4: a call is carried out once"
        if errand.reference is not None and errand.outcome is not None:
            _check_outcome(whole, errand)
    assert all(times == 1 for times in whole.mill.starts.values()), "a run is started once"
    check_bounds(whole)


def _check_outcome(whole: Whole, errand: Errand) -> None:
    """What was told of a task is what its server has written (REQ.5, PRX.13)."""
    if whole.plain[errand.number]:
        _check_own_task(whole, errand)
        return
    (task_id,) = whole.started[errand.number]
    record = whole.last_of(task_id)
    assert record is not None
    match errand.outcome:
        case Completed(result=result):
            assert record.status is Status.COMPLETED
            assert record.result is not None
            assert result["content"] == record.result["content"]
        case Cancelled():
            assert record.status is Status.CANCELLED
            assert errand.wants_cancel
        case _:
            raise AssertionError(f"PRX.6: what was acknowledged is lost: {errand.outcome}")


def _check_own_task(whole: Whole, errand: Errand) -> None:
    """A task of the proxy's own, for the call ran as none: its tools could not be listed, and so a server of
    2025-11-25 is asked for none. Such a task ends with its process, unless its end was kept (PRX.16)."""
    assert whole.legacy_servers
    assert errand.by in whole.legacy
    match errand.outcome:
        case Completed(result=result):
            assert result["content"] == DONE["content"]
        case _:
            assert isinstance(errand.outcome, Failed)
            assert whole.store_failed or whole.proxies > 1, f"PRX.16: it is lost: {errand.outcome}"


def check_end(whole: Whole) -> None:
    """All goes well from now on: everybody learns how it ended; then nothing is left, and nothing waits."""
    whole.calm(CALM_MS)
    check_now(whole)
    check_records(whole.network)
    for errand in whole.errands:
        assert errand.given_up or errand.outcome is not None, "REQ.6: every call has an outcome"
        for task_id in whole.started.get(errand.number, ()):
            assert whole.answered.get(task_id, set()) <= whole.plan.keys()
    whole.leave()
    _check_servers(whole)
    _check_proxy(whole)
    if _parked(whole):  # nobody knows of these tasks, and nobody answers what they ask
        whole.network.run(TTL_MS)
    assert not _parked(whole), "TTL.1: nothing is left parked"
    if whole.legacy_servers:
        _check_sessions(whole)
    for person in whole.people.values():
        assert all(map(is_own_stream, person.host.in_flight.values()))
        assert not person.host.on_show


def _parked(whole: Whole) -> list[TaskRecord]:
    return [record for record in whole.network.store.records.values() if not record.status.terminal]


def _check_servers(whole: Whole) -> None:
    """No server is at a task that has ended, and every worker has learned of it."""
    network = whole.network
    for task_id, record in network.store.records.items():
        for node in network.nodes:
            if record.status.terminal:
                assert not network._nodes[node].engine.concerns(task_id)
                run = whole.mill.runs.get((node, task_id))
                assert run is None or run.over, "CAN.6: a worker that nobody told to stop"


def _check_sessions(whole: Whole) -> None:
    """Nothing is open in a session any more; once the proxy closes, no server keeps one for long (LEG.2)."""
    for node in whole.network.nodes:
        assert not registry_of(whole.network, node).requests, "LEG.4: a request that nobody ends"
    whole.close_sessions()
    whole.network.run(2 * SESSION_IDLE_MS)
    for process in whole.processes:
        assert process is not None
        assert not process.servers.open
    for node in whole.network.nodes:
        assert not registry_of(whole.network, node)._sessions, "LEG.2: a session that nobody ends"


def _check_proxy(whole: Whole) -> None:
    """The proxy holds nothing that is over, and its ledger says what its callers were told."""
    for process in whole.processes:
        assert process is not None
        engine = engine_of(process.engine)
        assert not engine._asking._open
        assert not engine._callers.by_key
    for errand in whole.errands:
        if errand.reference is not None:
            entry = whole.store.entries[errand.reference["taskId"]]
            assert errand.outcome is not None
            noted = entry.status.value == type(errand.outcome).__name__.lower()
            assert noted or whole.store_failed, "HIS.1: an end is noted"
