"""Recordings of each engine: today's engines do what those did that were recorded, effect by effect.

``pytest tests/traces --update-traces`` records anew; read the difference. A recording that was made by an
earlier version is as good: it is not compared with that of today, only lived through.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from mcp_tasks_proto.testing import replay
from mcp_tasks_proto.testing.recordings import Kind
from tests.traces.sessions import SESSIONS, live

RECORDINGS: Final = Path(__file__).parent / "recordings"
KINDS: Final = {
    "server": {"StartTool", "Save", "FindExpired", "DeliverInput", "RequestCancel", "Send", "Delete"},
    "server-of-both-eras": {"OpenStream", "Send", "DeliverInput", "ListTasks"},
    "requester": {"SendRequest", "StopRequest", "Prompt", "ShowView", "KeepReference", "Settle"},
    "requester-of-both-eras": {"SendLegacy", "Prompt", "KeepReference"},
    "proxy": {"SendUpstream", "DrawRandom", "SaveBinding", "SaveSnapshot", "Note", "Purge"},
    "proxy-of-both-eras": {"SendLegacyUpstream", "SaveBinding", "LoadTask"},
}
"""Some of what each session leads to."""


def recording_of(name: str) -> Path:
    return RECORDINGS / f"{name}.jsonl"


@pytest.mark.parametrize("name", SESSIONS)
def test_a_recorded_engine_does_the_same_again(name: str, pytestconfig: pytest.Config) -> None:
    path = recording_of(name)
    if pytestconfig.getoption("--update-traces"):
        path.write_text("".join(f"{line}\n" for line in live(name)), encoding="ascii")
    with path.open(encoding="ascii") as lines:
        result = replay(lines)
    assert result.same, "\n".join(result.describe())
    assert result.inputs == len(path.read_text(encoding="ascii").splitlines()) - 1


@pytest.mark.parametrize("name", SESSIONS)
def test_a_session_of_today_is_the_same_again(name: str) -> None:
    lines = live(name)
    assert replay(lines).same
    assert live(name) == lines, "nothing in a recording differs from run to run"


@pytest.mark.parametrize("name", SESSIONS)
def test_a_recording_goes_where_its_engine_does_most(name: str) -> None:
    lines: list[Any] = [json.loads(line) for line in live(name)]
    effects = {effect["$type"] for line in lines[1:] for effect in line.get("effects", [])}
    assert effects >= KINDS[name]


def test_there_is_nothing_else() -> None:
    assert {path.stem for path in RECORDINGS.iterdir()} == set(SESSIONS)


def altered(line: Any) -> None:
    effect = line["effects"][-1]
    member = list(effect)[-1]
    effect[member] = {"was": effect[member]}


def missing(line: Any) -> None:
    line["effects"].append({"$type": "Note", "handle": "planted"})


def added(line: Any) -> None:
    del line["effects"][0]


def reordered(line: Any) -> None:
    line["effects"].reverse()


PLANTED: Final[Mapping[Kind, Callable[[Any], None]]] = {
    Kind.CHANGED: altered,
    Kind.MISSING: missing,
    Kind.ADDED: added,
    Kind.ORDER: reordered,
}


@pytest.mark.parametrize("kind", PLANTED)
@pytest.mark.parametrize("name", SESSIONS)
def test_a_change_of_a_recording_is_told_at_its_line(name: str, kind: Kind) -> None:
    """Of each kind, in the middle of each recording; nothing is told of what comes before or after."""
    lines = live(name)
    steps = [json.loads(line).get("effects", []) for line in lines]
    able = [
        at for at, effects in enumerate(steps) if effects and (kind is not Kind.ORDER or len(effects) > 1)
    ]
    at = able[len(able) // 2]
    changed = json.loads(lines[at])
    PLANTED[kind](changed)
    (difference,) = replay([*lines[:at], json.dumps(changed), *lines[at + 1 :]]).differences
    assert difference.line == at + 1
    assert [part.kind for part in difference.parts] == [kind]


@pytest.mark.parametrize("name", SESSIONS)
def test_another_time_is_told_from_its_line_on(name: str) -> None:
    lines = live(name)
    at = len(lines) // 2
    later = json.loads(lines[at])
    later["now"] += 3_600_000
    found = replay([*lines[:at], json.dumps(later), *lines[at + 1 :]])
    assert found.differences
    assert found.differences[0].line > at
