"""The reference model of the proxy by itself: against the table, the ledger's decisions, and by hand."""

from __future__ import annotations

from itertools import product
from typing import Any, Final

import pytest
from attrs import evolve

from mcp_tasks_proto import Status, TaskSupport
from mcp_tasks_proto.history import (
    Action,
    Assigned,
    Observation,
    ProjectView,
    Retention,
    TaskEntry,
    Viewer,
    assign,
    decide_access,
    observe,
    opened,
    project_list,
)
from mcp_tasks_proto.proxy import Circumstances, Era, decide
from mcp_tasks_proto.testing.model import ErrorAnswer, ResultAnswer
from mcp_tasks_proto.testing.model.proxy import (
    ModelBinding,
    ModelDiscovery,
    ModelEntry,
    ModelLedger,
    ModelViewer,
    Path,
    ProxyCaller,
    ProxyModel,
    row_of,
)

START: Final = 1_700_000_000_000
METADATA_MS: Final = 1_000
SWITCHES: Final = (False, True)
ADA: Final = ProxyCaller(principal="ada", project="p", authorizations={"left": "a"})


def test_prx_the_table_is_the_contracts() -> None:
    """Each of the 1536 circumstances that there are."""
    for facts in product(SWITCHES, SWITCHES, SWITCHES, SWITCHES, SWITCHES, SWITCHES, list(TaskSupport)):
        legacy_caller, declares, profile_allows, gate_open, legacy_upstream, upstream_tasks, tool = facts
        for promotes, collapses, bridges in product(SWITCHES, repeat=3):
            decided = decide(
                Circumstances(
                    caller=Era.LEGACY if legacy_caller else Era.MODERN,
                    declares=declares,
                    profile_allows=profile_allows,
                    gate_open=gate_open,
                    upstream=Era.LEGACY if legacy_upstream else Era.MODERN,
                    upstream_tasks=upstream_tasks,
                    tool=tool,
                    promotion=promotes,
                    collapse=collapses,
                    bridging=bridges,
                )
            )
            row = row_of(
                legacy_caller=legacy_caller,
                declares=declares,
                profile_allows=profile_allows,
                gate_open=gate_open,
                legacy_upstream=legacy_upstream,
                upstream_tasks=upstream_tasks,
                tool=tool.value,
                promotes=promotes,
                collapses=collapses,
                bridges=bridges,
            )
            assert decided.row.value == row


# -- the ledger ----------------------------------------------------------------------------------------------


def entries() -> list[TaskEntry]:
    """Return entries of all kinds, each status and assignment among them."""
    found = []
    owners: list[tuple[str | None, str | None, bool]] = [
        ("p", "ada", False),
        ("p", "eve", False),
        ("p", "key", True),
        ("q", "ada", False),
        (None, "ada", False),
        (None, "ada", True),
    ]
    for number, ((project, owner, api_key), status) in enumerate(product(owners, Status)):
        entry = opened(
            handle=f"handle-{number:02}",
            project=project,
            owner=owner,
            caller="somebody",
            api_key=api_key,
            upstream=["left", "right"][number % 2],
            tool="make",
            status=Status.WORKING,
            now=START + number % 3,
        )
        entry = observe(entry, Observation(status=status, at_ms=START + 5, polled=True))
        assignee = [None, "ada", "eve"][number % 3]
        found.append(assign(entry, actor="eve", assignee=assignee, now=START + 6))
    return found


def modelled(entries: list[TaskEntry]) -> ModelLedger:
    """Return the same in the model's words."""
    ledger = ModelLedger(metadata_ms=METADATA_MS)
    for entry in entries:
        ledger.entries[entry.handle] = ModelEntry(
            handle=entry.handle,
            project=entry.project,
            owner=entry.owner,
            api_key=entry.api_key,
            upstream=entry.upstream,
            tool=entry.tool,
            created_at_ms=entry.created_at_ms,
        )
        ledger.seen(entry.handle, entry.status.value, polled=True)
        ledger.assigned(entry.handle, entry.assignee)
    return ledger


def viewers() -> list[Viewer]:
    """Return people of all kinds."""
    some: list[frozenset[str]] = [frozenset(), frozenset({"p"}), frozenset({"p", "q"})]
    upstreams: list[frozenset[str]] = [frozenset(), frozenset({"left"})]
    return [
        Viewer(principal=principal, teams=teams, direct=direct, upstreams=reached)
        for principal, teams, direct, reached in product(["ada", "mal"], some, some, upstreams)
    ]


def test_his3_who_may_do_what_is_the_contracts() -> None:
    """HIS.2, HIS.3, HIS.4: everybody, at every entry, in its time and after it; and every list of theirs."""
    retention, known = Retention(metadata_ms=METADATA_MS), entries()
    ledger = modelled(known)
    for viewer, now in product(viewers(), (START + 10, START + METADATA_MS + 1)):
        same = ModelViewer(
            principal=viewer.principal,
            teams=viewer.teams,
            direct=viewer.direct,
            upstreams=viewer.upstreams,
        )
        for entry, action in product(known, Action):
            decided = decide_access(entry, viewer, action, retention, now)
            assert decided.allowed is ledger.may(same, entry.handle, action.value, now)
        for project, view, assigned in product(("p", "q"), ProjectView, Assigned):
            rows = project_list(
                known,
                viewer,
                project=project,
                view=view,
                assigned=assigned,
                retention=retention,
                now=now,
            )
            listed = ledger.listed(same, project, now, view=view.value, assigned=assigned.value)
            assert [row["taskId"] for row in rows] == listed


def test_his1_a_timeline_is_the_contracts() -> None:
    """HIS.1, HIS.2, HIS.4: each event once, in order; what was kept long enough is removed."""
    known = entries()
    ledger = modelled(known)
    for entry in known:
        events = [
            (event.kind, event.assignee if event.status is None else event.status.value)
            for event in entry.timeline
        ]
        assert events == ledger.entries[entry.handle].timeline
        ledger.seen(entry.handle, "working")
        ended = entry.status.terminal
        assert (ledger.entries[entry.handle].status == entry.status.value) is ended or entry.status is (
            Status.WORKING
        )
    ledger.seen("another", "working")
    ledger.purge(START + METADATA_MS + 1)
    assert {entry.created_at_ms for entry in ledger.entries.values()} == {START + 2}


# -- by hand -------------------------------------------------------------------------------------------------


def model(**facts: Any) -> ProxyModel:
    return ProxyModel(upstreams={"left": True}, **facts)


def discovery(**facts: Any) -> ModelDiscovery:
    return ModelDiscovery(tools={"make": "optional", "need": "required"}, until_ms=START, **facts)


def test_prx15_the_tools_of_an_only_upstream_keep_their_names() -> None:
    assert model().place_of("make", ADA) == ("left", "make")
    assert isinstance(model().place_of("make", evolve(ADA, authorizations={})), ErrorAnswer)


def test_prx7_a_tool_that_was_withdrawn_meanwhile_is_unknown() -> None:
    withdrawn = evolve(ADA, tools=frozenset({"need"}))
    for caller, name in ((withdrawn, "make"), (ADA, "other")):
        told = model().called(name, caller, discovery())
        assert told == ErrorAnswer(code=-32602, names=f"unknown tool: {name}")


def test_neg5_a_tool_that_needs_a_task_is_for_those_who_take_one() -> None:
    """PRX.17: or for those whose calls are collapsed."""
    undeclared = evolve(ADA, declares_tasks=False)
    refused = model().called("need", undeclared, discovery())
    assert isinstance(refused, ErrorAnswer)
    assert refused.code == -32021
    collapsed = model(collapses=True).called("need", undeclared, discovery())
    assert isinstance(collapsed, Path)
    assert (collapsed.row, collapsed.declares) == ("collapse", True)
    relayed = model().called("need", ADA, discovery())
    assert isinstance(relayed, Path)
    assert relayed.row == "relay"


@pytest.mark.parametrize(("purpose", "found"), [("read", False), ("cancel", False), ("round", True)])
def test_prx17_the_task_of_a_call_in_rounds_has_no_handle(purpose: str, found: bool) -> None:
    proxy = model(collapses=True)
    path = proxy.called("make", evolve(ADA, declares_tasks=False), discovery())
    assert isinstance(path, Path)
    view = {
        "taskId": "up-1",
        "status": "working",
        "createdAt": "2023-11-14T22:13:20.000Z",
        "lastUpdatedAt": "2023-11-14T22:13:20.000Z",
        "ttlMs": None,
    }
    told = proxy.made("handle", "make", path, ADA, view, START)
    assert isinstance(told, ResultAnswer)
    binding = proxy.find("handle", ADA, START, purpose=purpose)
    assert isinstance(binding, ModelBinding) is found
