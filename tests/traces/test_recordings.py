"""Recordings of each engine: today's engines do what those did that were recorded, effect by effect.

``pytest tests/traces --update-traces`` records anew; read the difference. A recording that was made by an
earlier version is as good: it is not compared with that of today, only lived through.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest

from mcp_tasks_proto.testing import replay
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
