"""``mcp-tasks proxy``, killed again and again under load: no call is sent twice, and no handle is dead."""

from __future__ import annotations

import threading
from collections import Counter
from contextlib import suppress
from http.client import HTTPException
from itertools import count
from pathlib import Path
from random import Random
from time import sleep
from typing import Any

import pytest

from mcp_tasks_proto.vocabulary import MODERN_VERSION, TASKS_EXTENSION
from tests.adapters.client_harness import Reply, ScriptedServer, task
from tests.adapters.test_cli import Served
from tests.adapters.test_cli_proxy import KEY, running

KILLS = 5
CALLERS = 4
SCRIPTS: dict[str, Any] = {
    "server/discover": lambda reply: reply.result(
        {
            "supportedVersions": [MODERN_VERSION],
            "capabilities": {"tools": {}, "extensions": {TASKS_EXTENSION: {}}},
            "ttlMs": 60_000,
            "cacheScope": "private",
        }
    ),
    "tools/list": lambda reply: reply.result(
        {
            "tools": [{"name": "work", "inputSchema": {"type": "object"}}],
            "ttlMs": 60_000,
            "cacheScope": "private",
        }
    ),
}


def make_task(reply: Reply) -> None:
    number = reply.asked.params["arguments"]["number"]
    reply.result({**task(taskId=f"task-{number}"), "resultType": "task"})


def show_task(reply: Reply) -> None:
    """Every second one has ended."""
    task_id = reply.asked.params["taskId"]
    ended = int(task_id.removeprefix("task-")) % 2 == 0
    done = {"result": {"resultType": "complete", "content": [{"type": "text", "text": task_id}]}}
    reply.result(task("completed", taskId=task_id, **done) if ended else task(taskId=task_id))


def calling(proxy: Served, numbers: Any, handles: dict[int, str]) -> None:
    """Call, and look at what comes of it, until the proxy is gone."""
    with suppress(OSError, HTTPException):
        while True:
            number = next(numbers)
            created = proxy.ask("tools/call", {"name": "work", "arguments": {"number": number}})
            handles[number] = created["result"]["taskId"]
            proxy.ask("tasks/get", {"taskId": handles[number]})


@pytest.mark.parametrize("loop", ["trio", "asyncio"])
def test_prx4_prx6_killed_under_load(loop: str, tmp_path: Path) -> None:
    (tmp_path / "key").write_text(KEY)
    store = ("--store", f"sqlite:{tmp_path / 'proxy.db'}", "--store-key-file", str(tmp_path / "key"))
    numbers, handles, random = count(1), dict[int, str](), Random(5)
    scripts = {**SCRIPTS, "tools/call": make_task, "tasks/get": show_task}
    with ScriptedServer(scripts) as server:
        command = ("proxy", "--upstream", server.url, "--loop", loop, *store)
        for _ in range(KILLS):
            with running(*command) as proxy:
                callers = [
                    threading.Thread(target=calling, args=(proxy, numbers, handles)) for _ in range(CALLERS)
                ]
                for caller in callers:
                    caller.start()
                sleep(random.uniform(0.05, 0.5))
                proxy.process.kill()
                for caller in callers:
                    caller.join()
        sent = Counter(asked.params["arguments"]["number"] for asked in server.all("tools/call"))
        assert set(sent.values()) == {1}
        assert handles
        with running(*command) as proxy:
            for number, handle in handles.items():
                view = proxy.ask("tasks/get", {"taskId": handle})["result"]
                assert view["taskId"] == handle
                assert view["status"] == ("working" if number % 2 else "completed")
            assert {len(handle) for handle in handles.values()} == {43}
            assert len(set(handles.values())) == len(handles)
            proxy.process.kill()
