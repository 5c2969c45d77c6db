"""``mcp-tasks proxy``, as somebody at a terminal has it."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from hashlib import sha256
from http.client import HTTPConnection
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest
from click.testing import CliRunner
from mcp_tasks_adapters.cli.commands import mcp_tasks
from mcp_tasks_adapters.cli.proxy import choose_proxy_store, make_config
from mcp_tasks_adapters.cli.serve import ServeError
from mcp_tasks_adapters.proxy import HttpUpstream, MemoryProxyStore, SqliteProxyStore, StdioUpstream
from mcp_tasks_adapters.stores.sealing import RecordKeys
from mcp_tasks_adapters.storing import StoreError

from mcp_tasks_proto.vocabulary import MODERN_VERSION
from mcp_tasks_proto.wire.http import request_headers
from tests.adapters.proxy_harness import ask, save
from tests.adapters.store_harness import Bench
from tests.adapters.test_cli import MCP_TASKS, PATIENCE_S, Served, events, request

both_loops = pytest.mark.parametrize("loop", ["trio", "asyncio"])

FARM = """
from mcp_tasks_adapters.toolkit import Server, elicit, text

server = Server("farm")

@server.tool()
async def publish(call):
    async def run(task):
        await task.request_input({"sure": elicit(message="Sure?")})
        return text("Published.")
    return call.task(run)
"""
KEY = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
TOKEN = "a-token-of-alices-0123"


@contextmanager
def running(*command: str) -> Iterator[Served]:
    ours = {name: value for name, value in os.environ.items() if not name.startswith("MCP_TASKS_")}
    with subprocess.Popen([*MCP_TASKS, *command], stderr=subprocess.PIPE, text=True, env=ours) as process:
        try:
            assert process.stderr is not None
            said = process.stderr.readline()
            assert said.startswith("listening on http://"), said + process.stderr.read()
            yield Served(process, said.removeprefix("listening on ").strip())
        finally:
            process.kill()


@pytest.fixture
def farm(tmp_path: Path) -> Iterator[Served]:
    path = tmp_path / "farm.py"
    path.write_text(FARM, encoding="utf-8")
    with running("serve", f"{path}:server", "--store", "memory:") as served:
        yield served


def until(served: Served, task_id: str, status: str) -> dict[str, Any]:
    patience = monotonic() + PATIENCE_S
    while monotonic() < patience:
        view: dict[str, Any] = served.ask("tasks/get", {"taskId": task_id})["result"]
        if view["status"] == status:
            return view
        sleep(0.02)
    raise AssertionError(f"it is {view['status']}")


@both_loops
def test_prx6_a_proxy_is_killed_and_its_handles_go_on(loop: str, farm: Served, tmp_path: Path) -> None:
    (tmp_path / "key").write_text(KEY)
    options = ("--loop", loop, "--store", f"sqlite:{tmp_path / 'proxy.db'}")
    command = ("proxy", "--upstream", farm.url, *options, "--store-key-file", str(tmp_path / "key"))
    with running(*command) as proxy:
        task_id = proxy.ask("tools/call", {"name": "publish", "arguments": {}})["result"]["taskId"]
        until(proxy, task_id, "input_required")
        proxy.process.kill()
    with running(*command) as proxy:
        (asked,) = until(proxy, task_id, "input_required")["inputRequests"]
        answers = {asked: {"action": "accept", "content": {}}}
        proxy.ask("tasks/update", {"taskId": task_id, "inputResponses": answers})
        view = until(proxy, task_id, "completed")
        assert view["result"]["content"][0]["text"] == "Published."
        assert proxy.end(signal.SIGTERM) == (0, "")


@both_loops
def test_prx7_those_in_the_file_are_let_in(loop: str, farm: Served, tmp_path: Path) -> None:
    callers = tmp_path / "callers.toml"
    callers.write_text(f'[[caller]]\nprincipal = "alice"\ntoken = "{TOKEN}"\n')
    command = ("proxy", "--upstream", farm.url, "--loop", loop, "--store", "memory:")
    with running(*command, "--callers", str(callers)) as proxy:
        message = request("tools/list", {})
        headers = dict(request_headers("tools/list", message["params"], MODERN_VERSION))
        for more, status in (({}, 401), ({"Authorization": f"Bearer {TOKEN}"}, 200)):
            connection = HTTPConnection(proxy.host, proxy.port, timeout=PATIENCE_S)
            connection.request("POST", proxy.path, json.dumps(message), {**headers, **more})
            response = connection.getresponse()
            assert response.status == status
            connection.close()
        assert proxy.end(signal.SIGINT) == (0, "")


def test_prx15_tools_of_several_upstreams_have_their_names(farm: Served) -> None:
    with running("proxy", "--upstream", f"one={farm.url}", "--upstream", f"two={farm.url}") as proxy:
        listed = proxy.ask("tools/list", {})["result"]["tools"]
        assert [tool["name"] for tool in listed] == ["one__publish", "two__publish"]


@pytest.mark.parametrize(
    ("command", "complaint"),
    [
        ([], "give a CONFIG, --upstream or --upstream-stdio"),
        (["none.toml", "--input", "form"], "--input is for a proxy without a file"),
        (["none.toml", "--upstream-stdio", "x"], "--upstream-stdio is for a proxy without a file"),
        (["none.toml"], "none.toml: cannot be read: No such file"),
        (["--upstream", "http://a.example/", "--json"], "--json goes with --check"),
        (["--upstream-stdio", "a=x", "--upstream-stdio", "x y"], "needs a name: --upstream-stdio 'NAME=x y'"),
        (["--upstream-stdio", "a__b=x"], "an upstream's name"),
        (["--upstream-stdio", "a= "], "there is no command"),
        (["--upstream-stdio", "'"], "No closing quotation"),
        (["--upstream", "http://a.example/", "--upstream", "b=http://b.example/"], "each needs a name"),
        (["--upstream", "ftp://a.example/"], "an endpoint is an http:// or https:// URL"),
        (["--upstream", "a__b=http://a.example/"], "an upstream's name"),
        (["--upstream", "a=http://a.example/", "--upstream", "a=http://b.example/"], "the same name, 'a'"),
        (["http://a.example/mcp"], "CONFIG is a file; a server is named with --upstream URL"),
        (
            ["--upstream", "http://a.example/", "--allow-origin", "a.example"],
            "a.example is an origin as browsers",
        ),
        (
            ["--upstream", "http://a.example/", "--allow-host", "http://a"],
            "http://a is a host, with no http://",
        ),
        (["--upstream", "http://a.example/", "--store", "postgres:x"], "sqlite:FILE or memory:"),
        (["--upstream", "http://a.example/", "--callers", "none.toml"], "none.toml cannot be read"),
    ],
)
def test_a_mistake_on_the_command_line_is_named(command: list[str], complaint: str) -> None:
    ended = CliRunner().invoke(mcp_tasks, ["proxy", *command])
    assert ended.exit_code != 0
    assert complaint in ended.output


def test_sec2_a_password_in_an_address_is_not_repeated() -> None:
    ended = CliRunner().invoke(mcp_tasks, ["proxy", "--upstream", "a=http://me:canary@a.example/mcp"])
    assert ended.exit_code == 1
    assert "a CONFIG has a place for them" in ended.output
    assert "canary" not in ended.output


@pytest.mark.parametrize("name", ["upstream", "a"])
def test_an_address_may_have_an_equals_sign(name: str) -> None:
    url = "http://a.example/mcp?tenant=1"
    (upstream,) = make_config([url if name == "upstream" else f"{name}={url}"]).upstreams
    assert upstream == HttpUpstream(name=name, url=url)


def test_sec2_a_server_that_is_started_does_not_hear_of_the_stores_keys(monkeypatch: Any) -> None:
    monkeypatch.setenv("MCP_TASKS_STORE_KEYS", KEY)
    monkeypatch.setenv("OTHER", "1")
    config = make_config(["farm=http://a.example/"], stdio=["old=python 'a server.py' X=1"])
    _, upstream = config.upstreams
    assert isinstance(upstream, StdioUpstream)
    assert (upstream.name, upstream.command) == ("old", ("python", "a server.py", "X=1"))
    assert upstream.env is not None
    assert upstream.env["OTHER"] == "1"
    assert "MCP_TASKS_STORE_KEYS" not in upstream.env


def test_prx15_names_are_checked_before_anything_is_served() -> None:
    with pytest.raises(ServeError, match=r"--upstream =http://a\.example/: an upstream's name"):
        make_config(["=http://a.example/"])


def test_sec2_a_file_takes_a_key(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="which takes a key"):
        choose_proxy_store(f"sqlite:{tmp_path / 'proxy.db'}", None, {})
    keyed = choose_proxy_store(f"sqlite:{tmp_path / 'proxy.db'}", None, {"MCP_TASKS_STORE_KEYS": KEY})
    assert isinstance(keyed.store, SqliteProxyStore)
    chosen, default = choose_proxy_store("memory:", None, {}), choose_proxy_store(None, None, {})
    assert isinstance(chosen.store, MemoryProxyStore)
    assert isinstance(default.store, MemoryProxyStore)
    assert (chosen.notice, default.notice) == (None, "keeping handles in memory only; see --store")


# -- a configuration that changes ----------------------------------------------------------------------------

ALICE = {"Authorization": f"Bearer {TOKEN}"}
BOB = {"Authorization": "Bearer a-token-of-bobs-012345"}


def written(farm: Served, *, name: str = "studio", bob: bool = True, **more: str) -> str:
    """Write a configuration with one upstream, for Alice and perhaps Bob."""
    digest = sha256(TOKEN.encode()).hexdigest()
    lines = [
        f'name = "{name}"',
        *(f"{table} {rows}" for table, rows in more.items()),
        f'[upstreams.farm]\nurl = "{farm.url}"',
        f'[members.alice]\ntokens = [ {{ sha256 = "{digest}" }} ]',
    ]
    if bob:
        lines.append('[members.bob]\ntokens = [ { variable = "BOBS_TOKEN" } ]')
    return "\n".join(lines)


@both_loops
def test_prx2_sighup_changes_the_configuration_and_drops_no_stream(
    loop: str, farm: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BOBS_TOKEN", "a-token-of-bobs-012345")
    path = tmp_path / "proxy.toml"
    path.write_text(written(farm), encoding="utf-8")
    with running("proxy", str(path), "--loop", loop, "--store", "memory:") as proxy, ExitStack() as stack:
        assert proxy.process.stderr is not None

        def hang_up(*said: str) -> None:
            proxy.process.send_signal(signal.SIGHUP)
            for line in said:
                assert proxy.process.stderr is not None
                assert proxy.process.stderr.readline() == f"{line}\n"

        def name(headers: Mapping[str, str]) -> str:
            meta = proxy.ask("server/discover", {}, headers)["result"]["_meta"]
            return str(meta["io.modelcontextprotocol/serverInfo"]["name"])

        def listening(headers: Mapping[str, str], **wanted: Any) -> Iterator[dict[str, Any]]:
            params = {"notifications": {"toolsListChanged": True, **wanted}}
            connection = stack.enter_context(closing(proxy.send("subscriptions/listen", params, headers)))
            stream = events(connection.getresponse())
            assert next(stream)["method"] == "notifications/subscriptions/acknowledged"
            return stream

        call = {"name": "publish", "arguments": {}}
        task_id = proxy.ask("tools/call", call, ALICE)["result"]["taskId"]
        alices, bobs = listening(ALICE, taskIds=[task_id]), listening(BOB)
        assert name(BOB) == "studio"

        # A wrong file changes nothing.
        path.write_text(written(farm, title='"x"'), encoding="utf-8")
        hang_up(
            "the configuration cannot be used.",
            f"{path}:2: this is not TOML: Expected '=' after a key in a key/value pair",
            "the configuration before stays in force",
        )
        assert name(BOB) == "studio"

        # Another one is in force at once: Bob is not let in any more, and Alice's stream goes on.
        path.write_text(
            written(farm, name="atelier", bob=False, **{"[listen]": "\nport = 1"}), encoding="utf-8"
        )
        hang_up(
            "the configuration is reloaded",
            "what has changed in [listen] takes a restart, and is not in force",
        )
        *_, last = bobs
        assert last["result"]["resultType"] == "complete"
        assert name(ALICE) == "atelier"
        assert "not authorized" in proxy.ask("server/discover", {}, BOB)["error"]["message"]
        while (seen := next(alices)).get("params", {}).get("status") != "input_required":
            pass
        answers = {key: {"action": "accept", "content": {}} for key in seen["params"]["inputRequests"]}
        assert "result" in proxy.ask("tasks/update", {"taskId": task_id, "inputResponses": answers}, ALICE)
        while (seen := next(alices)).get("params", {}).get("status") != "completed":
            pass
        assert seen["params"]["taskId"] == task_id
        assert proxy.end(signal.SIGTERM) == (0, "")
        *_, last = alices
        assert last["result"]["resultType"] == "complete"


def test_what_the_command_line_says_goes_before_the_file(farm: Served, tmp_path: Path) -> None:
    path = tmp_path / "proxy.toml"
    path.write_text(f'[listen]\npath = "/other"\nport = 1\n[upstreams.farm]\nurl = "{farm.url}"\n')
    with running("proxy", str(path), "--port", "0", "--store", "memory:") as proxy:
        assert proxy.path == "/other"
        listed = proxy.ask("tools/list", {})["result"]["tools"]
        assert [tool["name"] for tool in listed] == ["publish"]
        proxy.process.send_signal(signal.SIGHUP)
        assert proxy.process.stderr is not None
        assert proxy.process.stderr.readline() == "the configuration is reloaded\n"
        assert proxy.end(signal.SIGTERM) == (0, "")


# -- forgetting a project ------------------------------------------------------------------------------------


def forget(folder: Path, *words: str) -> tuple[int, str]:
    ended = CliRunner().invoke(mcp_tasks, ["proxy", *words], env={"MCP_TASKS_STORE_KEYS": KEY})
    return ended.exit_code, ended.output.replace(str(folder), "")


def test_his4_a_project_is_forgotten_while_no_proxy_runs(tmp_path: Path) -> None:
    bench = Bench(SqliteProxyStore(tmp_path / "proxy.db", keys=RecordKeys.from_text(KEY)))
    bench.open()
    ask(bench, save("h1"), save("h2", project="film"))
    place = f"sqlite:{tmp_path / 'proxy.db'}"
    assert forget(tmp_path, "--store", place, "--forget-project", "film") == (
        1,
        "Error: /proxy.db is in use: another proxy has it open.\n",
    )
    bench.close()
    path = tmp_path / "proxy.toml"
    path.write_text(
        f'[store]\nplace = "{place}"\n[upstreams.a]\nurl = "http://a.example/"\n[projects.film]\n'
        "[members.x]\nroles = { film = 'team' }\n"
    )
    code, said = forget(tmp_path, str(path), "--forget-project", "film")
    assert (code, "film is a project of the configuration" in said) == (1, True)
    path.write_text(f'[store]\nplace = "{place}"\n[upstreams.a]\nurl = "http://a.example/"\n')
    assert forget(tmp_path, str(path), "--forget-project", "film") == (
        0,
        "removed from sqlite:/proxy.db: 2 tasks of film\n",
    )
    assert forget(tmp_path, "--store", place, "--forget-project", "film") == (
        0,
        "removed from sqlite:/proxy.db: 0 tasks of film\n",
    )


def test_what_is_kept_in_memory_cannot_be_forgotten(tmp_path: Path) -> None:
    code, said = forget(tmp_path, "--forget-project", "film")
    assert (code, "What is kept in memory ends with its proxy" in said) == (1, True)


# -- on stdio ------------------------------------------------------------------------------------------------


@both_loops
def test_std1_a_proxy_for_one_caller_on_stdio(loop: str, farm: Served) -> None:
    proxy = [*MCP_TASKS, "proxy", "--stdio", "--loop", loop, "--upstream", f"farm={farm.url}"]
    ended = CliRunner().invoke(mcp_tasks, ["tools", "--stdio", shlex.join(proxy)])
    assert (ended.exit_code, ended.stdout.split()[0]) == (0, "publish")


def test_prx7_on_stdio_nobody_says_who_calls(tmp_path: Path) -> None:
    path = tmp_path / "proxy.toml"
    path.write_text(
        '[upstreams.a]\nurl = "http://a.example/"\n[members.x]\n'
        f"tokens = [ {{ sha256 = '{sha256(TOKEN.encode()).hexdigest()}' }} ]\n"
    )
    code, said = forget(tmp_path, str(path), "--stdio")
    assert (code, "Over stdin nobody can say who calls" in said) == (1, True)
