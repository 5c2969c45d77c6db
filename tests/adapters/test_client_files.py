"""References to tasks in files (REQ.6)."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import pytest
from mcp_tasks_adapters.client import load_reference, save_reference

REFERENCE = {
    "schema": 1,
    "endpoint": "http://x/mcp",
    "taskId": "t-ü",
    "tool": "render",
    "capabilities": {},
    "createdMs": 1,
    "ttlMs": None,
    "pollIntervalMs": None,
    "keys": {"k": {"state": "answered", "response": {"action": "accept"}}},
}


def test_what_was_saved_is_loaded(tmp_path: Path) -> None:
    file = tmp_path / "task.json"
    save_reference(file, REFERENCE)
    assert load_reference(file) == REFERENCE
    save_reference(str(file), {**REFERENCE, "tool": "other"})
    assert load_reference(str(file))["tool"] == "other"
    assert os.listdir(tmp_path) == ["task.json"]


def test_only_its_owner_reads_it(tmp_path: Path) -> None:
    file = tmp_path / "task.json"
    file.write_text("{}")
    file.chmod(0o644)
    save_reference(file, REFERENCE)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.parametrize("unfit", [{"x": object()}, {**REFERENCE, "tool": "\ud800"}])
def test_what_cannot_be_written_leaves_what_was_there(tmp_path: Path, unfit: Any) -> None:
    file = tmp_path / "task.json"
    save_reference(file, REFERENCE)
    if "schema" in unfit:
        save_reference(file, unfit)  # JSON can escape it
        assert load_reference(file) == unfit
        return
    with pytest.raises(TypeError):
        save_reference(file, unfit)
    assert load_reference(file) == REFERENCE
    assert os.listdir(tmp_path) == ["task.json"]


def test_a_place_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        save_reference(tmp_path / "nowhere" / "task.json", REFERENCE)
    with pytest.raises(FileNotFoundError):
        load_reference(tmp_path / "task.json")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "Expecting value"),
        ("7", "JSON object"),
        ("{}", "schema"),
        ('{"schema": 99}', "99"),
        ('{"schema": 1}', "endpoint"),
        ("[" * 100_000, "nested"),
    ],
)
def test_a_file_that_holds_anything_else(tmp_path: Path, text: str, says: str) -> None:
    file = tmp_path / "task.json"
    file.write_text(text)
    with pytest.raises(ValueError, match=says):
        load_reference(file)


def test_a_file_that_is_not_utf8(tmp_path: Path) -> None:
    file = tmp_path / "task.json"
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(ValueError, match="utf-8"):
        load_reference(file)
