"""The adapter kit: a right server passes, what cannot be seen is said, and every check sees its fault."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pytest

from docs.rules import SECTIONS
from mcp_tasks_proto.legacy.server import LegacyPolicy
from mcp_tasks_proto.testing.kit import (
    CHECKS,
    NOT_CHECKED,
    Kit,
    KitSettings,
    Role,
    ToolCall,
    Verdict,
    rules_of,
)
from mcp_tasks_proto.testing.kit.all_checks import WATCHES
from tests.unit.kit_faults import ALL
from tests.unit.kit_world import KitServer


NAMED: Final = KitSettings(
    calls={
        Role.COMPLETING: ToolCall("render"),
        Role.ERRING: ToolCall("spoil"),
        Role.FAILING: ToolCall("collapse"),
        Role.ASKING: ToolCall("commission"),
        Role.ASKING_FIRST: ToolCall("book"),
        Role.SLOW: ToolCall("idle"),
        Role.EXPIRING: ToolCall("flash"),
        Role.PLAIN: ToolCall("greet", {"name": "Ada"}),
    },
    search=False,
)


def of(kit: Kit, verdict: Verdict) -> dict[str, str]:
    """Return the checks with a verdict, and the reasons."""
    return {one.check.name: one.reason for one in kit.findings if one.verdict is verdict}


@pytest.mark.parametrize(
    ("check", "server"), ALL, ids=[f"{number}-{check}" for number, (check, _) in enumerate(ALL)]
)
def test_a_fault_is_seen(check: str, server: Callable[[], KitServer]) -> None:
    """Each check is tried alone, but for those that look at what all the others have said."""
    looks_back = any(one.name == check for one in WATCHES)
    checks = CHECKS if looks_back else [one for one in CHECKS if one.name == check]
    kit = server().examine(NAMED, has_other_caller=True, checks=checks)
    assert check in of(kit, Verdict.FAIL)


def test_every_check_can_fail() -> None:
    assert {check for check, _ in ALL} == {check.name for check in CHECKS}


# -- a right server ----------------------------------------------------------------------------------------

ONLY_HTTP = "only over HTTP"
ONLY_STDIO = "only on stdio"
OF_HTTP: Final = dict.fromkeys(
    (
        "other verbs",
        "a foreign origin",
        "another content type",
        "an accept that takes nothing",
        "headers that are missing",
        "headers that differ",
        "headers that are repeated",
        "the name of a tool",
        "the name of another task",
        "a task without its name",
        "headers in other clothes",
        "mirrored arguments",
        "headers of sessions",
        "a notification",
        "kinds of bodies",
        "status codes",
        "status codes of malformed requests",
    ),
    ONLY_HTTP,
)
OF_STDIO: Final = dict.fromkeys(
    ("notifications are not answered", "ids in flight", "a stream is cancelled", "nothing but messages"),
    ONLY_STDIO,
)
OF_LEGACY_TASKS: Final = (
    "the capability",
    "a call with a task",
    "a plain call of a task tool",
    "a task of a plain tool",
    "the result of a task",
    "a task is cancelled",
    "a tool error",
    "unknown tasks",
    "tasks are listed",
    "a task asks",
    "a task in both eras",
)
ALWAYS: Final = {"tasks that are not advertised": "the server advertises the extension to everybody"}
SERVED: Final = {
    **ALWAYS,
    "initialize where it is not served": "the server serves 2025-11-25 as well",
    "tasks that are not declared": "the server declares tasks for 2025-11-25",
}
IGNORED: Final = {
    **ALWAYS,
    "initialize where it is not served": "the server serves 2025-11-25 as well",
    **dict.fromkeys(OF_LEGACY_TASKS, "the server has no tasks for clients of 2025-11-25"),
}
REFUSED: Final = {
    **ALWAYS,
    **dict.fromkeys(
        ("tasks that are not declared", *OF_LEGACY_TASKS),
        "the server does not answer initialize with 2025-11-25",
    ),
}


@pytest.mark.parametrize(
    ("legacy", "unseen"), [(LegacyPolicy.SERVE, SERVED), (LegacyPolicy.IGNORE, IGNORED), (None, REFUSED)]
)
def test_a_right_server_passes_over_http(legacy: LegacyPolicy | None, unseen: dict[str, str]) -> None:
    """It is found out which tool does what, and every check passes that can see something."""
    kit = KitServer(legacy=legacy).examine(has_other_caller=True)
    assert of(kit, Verdict.FAIL) == {}
    assert of(kit, Verdict.NOT_OBSERVABLE) == {**unseen, **OF_STDIO}
    assert kit.desk.calls == {role: ToolCall(call.tool) for role, call in NAMED.calls.items()}


def test_a_right_server_passes_on_stdio() -> None:
    kit = KitServer(http=False).examine()
    assert of(kit, Verdict.FAIL) == {}
    assert of(kit, Verdict.NOT_OBSERVABLE) == {
        **SERVED,
        **OF_HTTP,
        "tasks of others": "no credentials of another caller were given",
        "a task in both eras": ONLY_HTTP,
        "streams are not buffered": "there was no event stream",
    }


def test_the_kit_leaves_no_task_behind() -> None:
    server = KitServer()
    server.examine(has_other_caller=True)
    left = [one for one in server.host.store.records.values() if not one.status.is_terminal]
    assert not left


# -- servers that have less --------------------------------------------------------------------------------


def test_neg7_a_server_without_the_extension() -> None:
    kit = KitServer(tasks_enabled=False, tools=("greet",)).examine()
    assert of(kit, Verdict.FAIL) == {}
    assert of(kit, Verdict.NOT_OBSERVABLE)["getting an unknown task"] == (
        "the server does not advertise the Tasks extension"
    )
    assert "tasks that are not advertised" in of(kit, Verdict.PASS)


def test_a_server_without_tools() -> None:
    kit = KitServer(tools=()).examine()
    assert of(kit, Verdict.FAIL) == {}
    assert of(kit, Verdict.NOT_OBSERVABLE)["a task completes"] == (
        "no tool is known that gives a task that completes by itself (--completing names one)"
    )
