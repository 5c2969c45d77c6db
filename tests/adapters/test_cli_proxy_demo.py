"""``mcp-tasks demo --proxy``: an id on each side, a stranger's refusal, an end that the server forgot."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from mcp_tasks_adapters.cli import demo

from tests.adapters.test_cli import run

both_loops = pytest.mark.parametrize("loop", ["trio", "asyncio"])


@both_loops
def test_prx5_prx7_prx13_the_demo_of_the_proxy(loop: str) -> None:
    ran = run("demo", "--proxy", "--loop", loop, "--json")
    assert (ran.returncode, ran.stderr) == (0, "")
    shown = [json.loads(line) for line in ran.stdout.splitlines()]
    messages = [one for one in shown if one["direction"] != "none"]
    assert [one["direction"] for one in messages] == ["request", "response"] * (len(messages) // 2)
    asked = [(one["message"], two["message"]) for one, two in zip(messages[::2], messages[1::2], strict=True)]
    handle, task_id = ids_on_each_side(shown, asked)
    assert handle != task_id

    def answers(named: str, status: str) -> list[dict[str, Any]]:
        told = [two for one, two in asked if one["params"].get("taskId") == named]
        return [one["result"] for one in told if one.get("result", {}).get("status") == status]

    before, after = answers(handle, "completed")
    assert before == after
    assert (
        answers(task_id, "completed") == []
    )  # its server was asked while it worked, and when it had forgotten
    refusals = [two for _, two in asked if "error" in two]
    assert len(refusals) == 4
    assert {json.dumps(one["error"]) for one in refusals} == {'{"code": -32602, "message": "Task not found"}'}
    assert refusals[0] == refusals[1]


def ids_on_each_side(shown: list[dict[str, Any]], asked: list[Any]) -> tuple[str, str]:
    told = [one["headline"] for one in shown if one["direction"] == "none"]
    [handle] = [two["result"]["taskId"] for one, two in asked if one["method"] == "tools/call"]
    assert told[0] == f"The proxy's id of the task: {handle}"
    assert told[1].startswith("The server's id of it: ")
    assert [one for one in told if "byte for byte" in one]
    return handle, told[1].split()[5]


def test_the_demo_of_the_proxy_is_readable() -> None:
    ran = run("demo", "--proxy")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "A proxy before it runs at http://127.0.0.1:" in ran.stdout
    assert "→ tasks/get  Bob, who has a token of his own, asks of Alice's task" in ran.stdout
    assert "⚡ The two refusals are the same, byte for byte" in ran.stdout
    assert "✓ the proxy kept the end when it saw it, for a day" in ran.stdout


def test_the_demo_of_the_proxy_fails_where_there_is_no_proxy(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its checks can fail: here the server itself stands where the proxy should."""

    @contextmanager
    def no_proxy(loop: str, server: Any, callers: str) -> Iterator[Any]:
        yield server

    monkeypatch.setattr(demo, "running_proxy", no_proxy)
    assert demo.run_demo(loop="asyncio", as_json=True, proxy=True) == 1
    assert "the proxy gives its own name, and not the server's" in capsys.readouterr().err
