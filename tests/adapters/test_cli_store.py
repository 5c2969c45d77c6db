"""``mcp-tasks serve``, and where it keeps tasks: nothing acknowledged is lost with the process (LIFE.4)."""

from __future__ import annotations

import base64
import json
import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest
from mcp_tasks_adapters.cli.store import choose_store, default_path, sqlite_path
from mcp_tasks_adapters.stores import MemoryStore, SqliteStore
from mcp_tasks_adapters.stores.postgres import PostgresStore
from mcp_tasks_adapters.storing import StoreError
from mcp_tasks_adapters.toolkit import Server

from tests.adapters.store_harness import Place
from tests.adapters.test_cli import MCP_TASKS, PATIENCE_S, Served, request

FARM = textwrap.dedent(
    """
    from mcp_tasks_adapters.toolkit import Server, elicit, text

    server = Server("render farm / 1")

    @server.tool()
    async def publish(call):
        async def run(task):
            answers = await task.request_input({"sure": elicit(message="Sure?")})
            return text("Published.")
        return call.task(run)
    """
)
YES = {"inputResponses": {"sure": {"action": "accept", "content": {}}}}

both_loops = pytest.mark.parametrize("loop", ["trio", "asyncio"])


@pytest.fixture
def farm(tmp_path: Path) -> Path:
    path = tmp_path / "farm.py"
    path.write_text(FARM, encoding="utf-8")
    return path


def environment(**variables: str) -> Mapping[str, str]:
    """Return this process's environment as somebody has it who has not heard of stores."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith("MCP_TASKS_")}
    return {**ours, **variables}


@contextmanager
def serving(farm: Path, *options: str, env: Mapping[str, str] | None = None) -> Iterator[Served]:
    command = [*MCP_TASKS, "serve", f"{farm}:server", *options]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=env) as process:
        try:
            assert process.stderr is not None
            said = process.stderr.readline()
            assert said.startswith("listening on http://"), said + process.stderr.read()
            yield Served(process, said.removeprefix("listening on ").strip())
        finally:
            process.kill()


def until(served: Served, task_id: str, status: str) -> dict[str, Any]:
    patience = monotonic() + PATIENCE_S
    while monotonic() < patience:
        view: dict[str, Any] = served.ask("tasks/get", {"taskId": task_id})["result"]
        if view["status"] == status:
            return view
        sleep(0.02)
    raise AssertionError(f"it is {view['status']}")


def parked(served: Served) -> str:
    task_id: str = served.ask("tools/call", {"name": "publish"})["result"]["taskId"]
    until(served, task_id, "input_required")
    return task_id


def finished(served: Served) -> str:
    task_id = parked(served)
    served.ask("tasks/update", {"taskId": task_id, **YES})
    until(served, task_id, "completed")
    return task_id


# -- a process that ends -------------------------------------------------------------------------------------


@both_loops
def test_life4_tasks_outlive_a_process_that_is_killed(loop: str, farm: Path, tmp_path: Path) -> None:
    options = ["--loop", loop, "--store", f"sqlite:{tmp_path / 'tasks.db'}"]
    with serving(farm, *options) as served:
        done, left = finished(served), parked(served)
        served.process.send_signal(signal.SIGKILL)
        served.process.wait(PATIENCE_S)
    with serving(farm, *options) as served:
        assert until(served, done, "completed")["result"]["content"][0]["text"] == "Published."
        view = until(served, left, "failed")
        assert view["error"]["code"] == -32603
        assert "lost" in view["statusMessage"]
        assert served.end(signal.SIGTERM) == (0, "")


@both_loops
def test_tasks_that_run_when_it_is_told_to_end_are_cancelled_for_good(
    loop: str, farm: Path, tmp_path: Path
) -> None:
    options = ["--loop", loop, "--store", f"sqlite:{tmp_path / 'tasks.db'}"]
    with serving(farm, *options) as served:
        left = parked(served)
        assert served.end(signal.SIGTERM) == (0, "")
    with serving(farm, *options) as served:
        assert (
            until(served, left, "cancelled")["statusMessage"]
            == "The server stopped before the work was done."
        )


def test_two_servers_on_one_store_work_as_one(farm: Path, place: Place) -> None:
    store = ["--store", place.option]
    with serving(farm, *store, "--loop", "trio") as home, serving(farm, *store, "--loop", "asyncio") as away:
        task_id = parked(home)
        assert until(away, task_id, "input_required")
        away.ask("tasks/update", {"taskId": task_id, **YES})
        assert until(away, task_id, "completed") == until(home, task_id, "completed")
        cancelled = parked(away)
        home.ask("tasks/cancel", {"taskId": cancelled})
        until(home, cancelled, "cancelled")
        lost = parked(home)
        home.process.kill()
        until(away, lost, "failed")


# -- where ---------------------------------------------------------------------------------------------------


def test_without_a_word_they_are_kept_in_a_file_of_the_servers_own(farm: Path, tmp_path: Path) -> None:
    env = environment(XDG_STATE_HOME=str(tmp_path / "state"))
    with serving(farm, env=env) as served:
        assert served.process.stderr is not None
        notice = served.process.stderr.readline()
        task_id = finished(served)
        served.process.kill()
    assert notice.startswith("keeping tasks in ")
    path = Path(notice.removeprefix("keeping tasks in ").strip())
    assert path.parent == tmp_path / "state" / "mcp-tasks"
    assert path.name.startswith("render-farm-1-")
    assert path.stat().st_mode & 0o077 == path.parent.stat().st_mode & 0o077 == 0, "nobody else's business"
    with serving(farm, env=env) as served:
        until(served, task_id, "completed")


def test_over_stdio_it_is_said_on_stderr(farm: Path, tmp_path: Path) -> None:
    message = json.dumps(request("server/discover", {}))
    ran = subprocess.run(
        [*MCP_TASKS, "serve", f"{farm}:server", "--stdio"],
        input=f"{message}\n",
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        env=environment(XDG_STATE_HOME=str(tmp_path)),
        check=True,
    )
    assert ran.stderr.startswith("keeping tasks in ")
    assert len(ran.stdout.splitlines()) == 1


def test_where_no_file_can_be_made_they_are_kept_in_memory_and_that_is_said(farm: Path) -> None:
    """A server must start where nothing can be written, unless it was told to write."""
    with serving(farm, env=environment(XDG_STATE_HOME=str(farm))) as served:
        assert served.process.stderr is not None
        assert served.process.stderr.readline().startswith("keeping tasks in memory only: ")
        finished(served)


@pytest.mark.parametrize("variable", [False, True])
def test_who_says_where_is_told_nothing(variable: bool, farm: Path, tmp_path: Path) -> None:
    path = tmp_path / "tasks.db"
    options = [] if variable else ["--store", f"sqlite:{path}"]
    env = environment(**({"MCP_TASKS_STORE": f"sqlite:{path}"} if variable else {}))
    with serving(farm, *options, env=env) as served:
        finished(served)
        assert served.end(signal.SIGTERM) == (0, "")
    assert path.is_file()


def refused(farm: Path, *options: str, env: Mapping[str, str] | None = None) -> str:
    ran = subprocess.run(
        [*MCP_TASKS, "serve", f"{farm}:server", *options],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        env=env,
        check=False,
    )
    assert ran.returncode == 1, ran
    assert "Traceback" not in ran.stderr
    return ran.stderr


@both_loops
@pytest.mark.parametrize("stdio", [False, True])
def test_says_why_a_file_cannot_be_used(stdio: bool, loop: str, farm: Path) -> None:
    options = ["--loop", loop, "--store", f"sqlite:{farm}", *(["--stdio"] if stdio else [])]
    assert refused(farm, *options) == f"Error: {farm} cannot be used: file is not a database.\n"
    assert farm.read_text(encoding="utf-8") == FARM


@pytest.mark.parametrize("store", ["", "sqlite", "memory", "memory:x", "redis:x", "tasks.db", "postgres"])
def test_says_which_stores_there_are(store: str, farm: Path) -> None:
    assert "there are sqlite:FILE, postgres:DSN and memory:" in refused(farm, "--store", store)


# -- keys ----------------------------------------------------------------------------------------------------


def test_sec2_records_are_sealed_with_the_keys_of_a_file_or_a_variable(farm: Path, tmp_path: Path) -> None:
    keys, path = base64.b64encode(bytes(32)).decode(), tmp_path / "tasks.db"
    key_file = tmp_path / "keys"
    key_file.write_text(keys)
    store = ["--store", f"sqlite:{path}"]
    with serving(farm, *store, "--store-key-file", str(key_file)) as served:
        task_id = finished(served)
        served.end(signal.SIGTERM)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT DISTINCT typeof(record) FROM tasks").fetchall() == [("blob",)]
    with serving(farm, *store, env=environment(MCP_TASKS_STORE_KEYS=keys)) as served:
        until(served, task_id, "completed")
        served.end(signal.SIGTERM)
    assert "no keys were given" in refused(farm, *store, env=environment())
    assert "cannot be read" in refused(farm, *store, "--store-key-file", str(tmp_path / "nowhere"))


# -- the choice itself ---------------------------------------------------------------------------------------


def chosen(wanted: str | None, **variables: str) -> Any:
    return choose_store(
        wanted, None, target="farm.py:server", server=Server("farm"), environment=variables
    ).store


def test_a_store_is_named_by_its_kind() -> None:
    assert isinstance(chosen("memory:"), MemoryStore)
    assert isinstance(chosen("sqlite:some/file:with:colons.db"), SqliteStore)
    assert isinstance(chosen("postgres:"), PostgresStore), "the rest is in libpq's variables"
    with pytest.raises(StoreError):
        chosen("memory:", MCP_TASKS_STORE_KEYS="x")


@pytest.mark.parametrize("place", ["", "//tasks.db", "///var/tasks.db", "file:tasks.db?mode=ro"])
def test_a_file_is_named_by_its_path(place: str) -> None:
    with pytest.raises(StoreError, match="path of a file"):
        chosen(f"sqlite:{place}")


def test_a_file_may_be_at_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert sqlite_path("~/tasks.db") == tmp_path / "tasks.db"
    assert sqlite_path("~nobody-at-all/tasks.db") == Path("~nobody-at-all/tasks.db")


def test_each_server_has_a_file_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    targets = ["farm.py:server", "farm.py:other", "barn.py:server", "json:server", "json.tool:server"]
    server = Server("farm")
    paths = {default_path(target, server, {"XDG_STATE_HOME": "/state"}) for target in targets}
    assert len(paths) == len(targets)
    assert {path.parent for path in paths} == {Path("/state/mcp-tasks")}
    absolute = default_path(f"{tmp_path}/farm.py:server", server, {"XDG_STATE_HOME": "/state"})
    assert absolute in paths, "however it is named"
    assert default_path("farm.py:server", server, {}).is_relative_to(Path.home())
    assert sys.modules["json"].__file__
