"""The command line, as somebody at a terminal has it: processes, signals, exit codes, words on stderr."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from http.client import HTTPConnection, HTTPResponse
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib.metadata import version
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any, Final
from urllib.parse import urlsplit

import pytest
from mcp_tasks_adapters.cli import demo
from mcp_tasks_adapters.cli.serve import ServeError, prepare
from mcp_tasks_adapters.cli.target import TargetError, load_server
from mcp_tasks_adapters.toolkit import Limits, Server

from mcp_tasks_proto.lifecycle import render_mermaid, render_table
from mcp_tasks_proto.vocabulary import (
    CLIENT_CAPABILITIES,
    LEGACY_VERSION,
    MODERN_VERSION,
    PROTOCOL_VERSION,
    TASKS_EXTENSION,
)
from mcp_tasks_proto.wire.http import request_headers

PATIENCE_S: Final = 60.0
"""For whatever should not take long, on a machine that is busy."""
MCP_TASKS: Final = [sys.executable, "-m", "mcp_tasks_adapters.cli"]
METADATA: Final = {
    PROTOCOL_VERSION: MODERN_VERSION,
    CLIENT_CAPABILITIES: {"elicitation": {}, "extensions": {TASKS_EXTENSION: {}}},
}

AUTHORS_FILE: Final = textwrap.dedent(
    """
    import sys, threading, time
    from mcp_tasks_adapters.toolkit import Server, elicit

    server = Server("test", version="1")
    not_a_server = object()
    print("imported")

    @server.tool()
    async def wait(call):
        async def run(task):
            await task.request_input({"never": elicit(message="Wait.")})
        return call.task(run)

    @server.tool()
    async def linger(call):
        threading.Thread(target=time.sleep, args=(3600,)).start()
        return "left a thread behind"

    @server.tool()
    async def block(call):
        async def run(task):
            print("blocking", file=sys.stderr, flush=True)
            while True:
                time.sleep(0.1)
        return call.task(run)
    """
)

LOOPS: Final = ("trio", "asyncio")
both_loops = pytest.mark.parametrize("loop", LOOPS)


@pytest.fixture
def authors_file(tmp_path: Path) -> Path:
    path = tmp_path / "farm.py"
    path.write_text(AUTHORS_FILE, encoding="utf-8")
    return path


def run(*arguments: str, stdin: str = "", cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*MCP_TASKS, *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        cwd=cwd,
        check=False,
    )


# -- a served process and a client of it -------------------------------------------------------------


class Served:
    """A running ``mcp-tasks serve`` and one connection to it."""

    def __init__(self, process: subprocess.Popen[str], url: str) -> None:
        self.process = process
        self.url = url
        address = urlsplit(url)
        assert address.hostname is not None
        assert address.port is not None
        self.host: str = address.hostname
        self.port: int = address.port
        self.path = address.path

    def send(
        self, method: str, params: dict[str, Any], more_headers: Mapping[str, str] = {}
    ) -> HTTPConnection:
        """Send a request, on a connection of its own."""
        connection = HTTPConnection(self.host, self.port, timeout=PATIENCE_S)
        message = request(method, params)
        headers = dict(request_headers(method, message["params"], MODERN_VERSION))
        connection.request("POST", self.path, json.dumps(message), {**headers, **more_headers})
        return connection

    def ask(
        self, method: str, params: dict[str, Any], more_headers: Mapping[str, str] = {}
    ) -> dict[str, Any]:
        """Send a request and return the answer."""
        with closing(self.send(method, params, more_headers)) as connection:
            answer: dict[str, Any] = json.loads(connection.getresponse().read())
        return answer

    def end(self, number: signal.Signals) -> tuple[int, str]:
        """Send the signal; return the exit code and what was said on stderr since."""
        self.process.send_signal(number)
        _, said = self.process.communicate(timeout=PATIENCE_S)
        return self.process.returncode, said


def request(method: str, params: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": METADATA}}


@contextmanager
def serving(target: str, *options: str) -> Iterator[Served]:
    command = [*MCP_TASKS, "serve", target, *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            said = process.stderr.readline()
            assert said.startswith("listening on http://"), said + process.stderr.read()
            yield Served(process, said.removeprefix("listening on ").strip())
        finally:
            process.kill()


def events(response: HTTPResponse) -> Iterator[dict[str, Any]]:
    for line in response:
        if line.startswith(b"data:"):
            yield json.loads(line.removeprefix(b"data:"))


# -- serve, over HTTP --------------------------------------------------------------------------------


@both_loops
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_ends_cleanly_with_a_task_running_and_a_stream_open(
    loop: str, number: signal.Signals, authors_file: Path
) -> None:
    """SUB.4: the stream ends with its result, which HTTP brings to its end, before the process does."""
    with serving(f"{authors_file}:server", "--loop", loop) as served:
        task = served.ask("tools/call", {"name": "wait"})["result"]
        assert task["resultType"] == "task"
        listening = served.send("subscriptions/listen", {"notifications": {"taskIds": [task["taskId"]]}})
        stream = events(listening.getresponse())
        assert next(stream)["method"] == "notifications/subscriptions/acknowledged"
        code, said = served.end(number)
        *_, last = stream
        listening.close()
    assert last["result"]["resultType"] == "complete"
    assert (code, said) == (0, "")


def test_ends_without_a_tool_that_does_not_stop(authors_file: Path) -> None:
    """On both loops at once, since that takes its time."""
    with ExitStack() as stack:
        servers = [stack.enter_context(serving(f"{authors_file}:server", "--loop", loop)) for loop in LOOPS]
        for served in servers:
            stack.enter_context(closing(served.send("tools/call", {"name": "block"})))
            assert served.process.stderr is not None
            assert served.process.stderr.readline() == "blocking\n"
        for served in servers:
            served.process.send_signal(signal.SIGTERM)
        for served in servers:
            _, said = served.process.communicate(timeout=PATIENCE_S)
            assert served.process.returncode == 1
            assert said == "A tool did not stop when told to; ending without it.\n"


def test_serves_where_it_is_told_to(authors_file: Path) -> None:
    with serving(f"{authors_file}:server", "--host", "localhost", "--path", "/tasks") as served:
        assert served.path == "/tasks"
        assert served.ask("server/discover", {})["result"]["supportedVersions"] == [MODERN_VERSION]
        assert served.end(signal.SIGTERM)[0] == 0


def test_may_be_called_by_the_address_it_listens_on(authors_file: Path) -> None:
    with serving(f"{authors_file}:server", "--host", "127.0.0.2") as served:
        assert served.host == "127.0.0.2"
        assert served.ask("server/discover", {})["result"]["supportedVersions"] == [MODERN_VERSION]


def test_overrides_the_bounds_of_the_server(authors_file: Path) -> None:
    with serving(f"{authors_file}:server", "--ttl-ms", "12345", "--max-tasks", "1") as served:
        assert served.ask("tools/call", {"name": "wait"})["result"]["ttlMs"] == 12345
        refused = served.ask("tools/call", {"name": "wait"})["error"]
    assert refused["data"] == {"reason": "tasks"}


def test_keeps_the_bounds_that_were_not_overridden() -> None:
    server = Server("test", limits=Limits(ttl_ms=5, tasks=7, shutdown_grace_ms=60_000))
    prepare(server, ttl_ms=None, max_tasks=9)
    assert (server.limits.ttl_ms, server.limits.tasks) == (5, 9)
    assert server.limits.shutdown_grace_ms == 3_000, "the process promises to end within five seconds"


def test_a_bound_for_all_is_one_for_each_where_nobody_has_a_name() -> None:
    """LIM.3: callers without a principal share one, so its own bound must not undercut that for all."""
    server = Server("test", limits=Limits(tasks=7, tasks_per_principal=5))
    prepare(server, ttl_ms=None, max_tasks=20_000)
    assert (server.limits.tasks, server.limits.tasks_per_principal) == (20_000, 20_000)


def test_a_bound_for_all_leaves_that_of_each_principal() -> None:
    server = Server("test", principal=lambda facts: "ann", limits=Limits(tasks_per_principal=5))
    prepare(server, ttl_ms=None, max_tasks=20_000)
    assert (server.limits.tasks, server.limits.tasks_per_principal) == (20_000, 5)


def test_says_that_a_server_is_not_set_up_right() -> None:
    with pytest.raises(ServeError, match="The server is not set up right: "):
        prepare(Server("test", capabilities={"tasks": {}}), ttl_ms=None, max_tasks=None)


def test_says_what_is_wrong_with_a_path(authors_file: Path) -> None:
    ran = run("serve", f"{authors_file}:server", "--path", "mcp")
    assert ran.returncode == 2
    assert "Invalid value for '--path': a path begins with /" in ran.stderr


@pytest.mark.parametrize(
    ("options", "header", "status"),
    [
        ([], {"Host": "farm.example"}, 403),
        (["--allow-host", "farm.example"], {"Host": "farm.example"}, 200),
        (["--allow-host", "other.example", "--allow-host", "*"], {"Host": "farm.example"}, 200),
        (["--allow-host", "farm.example"], {}, 200),
        ([], {"Origin": "https://farm.example"}, 403),
        (["--allow-origin", "https://farm.example"], {"Origin": "https://farm.example"}, 200),
        (["--allow-origin", "*"], {"Origin": "https://farm.example"}, 200),
        (["--allow-origin", "https://farm.example"], {"Origin": "http://localhost:1"}, 200),
    ],
)
def test_serves_whom_it_is_told_to(
    options: list[str], header: dict[str, str], status: int, authors_file: Path
) -> None:
    """HTTP.1: what is allowed on the command line is allowed beside the loopback names."""
    with serving(f"{authors_file}:server", *options) as served:
        message = request("server/discover", {})
        headers = dict(request_headers("server/discover", message["params"], MODERN_VERSION)) | header
        connection = HTTPConnection(served.host, served.port, timeout=PATIENCE_S)
        connection.request("POST", served.path, json.dumps(message), headers)
        response = connection.getresponse()
        response.read()
        assert response.status == status
        connection.close()


@both_loops
def test_says_that_it_cannot_listen(loop: str, authors_file: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        ran = run("serve", f"{authors_file}:server", "--loop", loop, "--port", port)
    assert ran.returncode == 1
    assert ran.stderr == f"Error: Cannot listen on 127.0.0.1 port {port}: {os.strerror(98)}.\n"
    ran = run("serve", f"{authors_file}:server", "--loop", loop, "--host", "a..b")
    assert ran.returncode == 1
    assert ran.stderr == "Error: Cannot listen on a..b port 0: this cannot be the name of a host.\n"


# -- serve, over stdio -------------------------------------------------------------------------------


@both_loops
def test_serves_stdio_until_its_input_ends(loop: str, authors_file: Path) -> None:
    """STD.1: messages on stdout and nothing else."""
    message = json.dumps(request("tools/call", {"name": "wait"}))
    ran = run("serve", f"{authors_file}:server", "--stdio", "--loop", loop, stdin=f"{message}\n")
    assert (ran.returncode, ran.stderr) == (0, "imported\n")
    [answer] = map(json.loads, ran.stdout.splitlines())
    assert answer["result"]["resultType"] == "task"


def test_stdio_ends_without_a_tool_that_does_not_stop(authors_file: Path) -> None:
    """STD.1: no signal is needed; a client may know of no other way to end its server.

    On both loops at once, since that takes its time.
    """
    message = json.dumps(request("tools/call", {"name": "linger"}))
    serve = ["serve", f"{authors_file}:server", "--stdio"]
    with ThreadPoolExecutor() as pool:
        running = [pool.submit(run, *serve, "--loop", loop, stdin=f"{message}\n") for loop in LOOPS]
    for ran in (one.result() for one in running):
        assert ran.returncode == 1
        assert ran.stderr == "imported\nA tool did not stop when told to; ending without it.\n"
        assert json.loads(ran.stdout)["result"]["content"][0]["text"] == "left a thread behind"


@both_loops
def test_stdio_ends_on_a_signal(loop: str, authors_file: Path) -> None:
    command = [*MCP_TASKS, "serve", f"{authors_file}:server", "--stdio", "--loop", loop]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(json.dumps(request("server/discover", {})) + "\n")
        process.stdin.flush()
        assert "supportedVersions" in process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0
        assert process.stderr.read() == "imported\n"


# -- TARGET ------------------------------------------------------------------------------------------


def test_finds_a_server_in_a_file(authors_file: Path) -> None:
    assert load_server(f"{authors_file}:server").name == "test"


def test_finds_a_server_in_a_module(authors_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = authors_file.parent / "studio"
    package.mkdir()
    authors_file.rename(package / "main.py")
    monkeypatch.chdir(package.parent)
    monkeypatch.setattr(sys, "path", [*sys.path])
    assert load_server("studio.main:server").name == "test"


@pytest.mark.parametrize(
    ("target", "complaint"),
    [
        ("farm.py", "'farm.py' is not of the form package.module:attr or path/to/file.py:attr."),
        (":server", "':server' is not of the form package.module:attr or path/to/file.py:attr."),
        ("farm.py:", "'farm.py:' is not of the form package.module:attr or path/to/file.py:attr."),
        ("farm.py:the server", "'farm.py:the server' is not of the form"),
        ("./farm:server", "'./farm' is not the name of a module; for a file, end it in .py"),
        ("absent.py:server", "There is no file absent.py."),
        ("absent.module:server", "There is no module absent here or among the installed ones."),
        ("json.absent:server", "There is no module json.absent here or among the installed ones."),
        ("farm.py:sever", "farm.py has no attribute 'sever'. Did you mean farm.py:server?"),
        (
            "farm.py:not_a_server",
            "farm.py:not_a_server is a object, not a Server of mcp_tasks_adapters.toolkit.",
        ),
        ("json:dumps", "json:dumps is a function, not a Server of mcp_tasks_adapters.toolkit."),
    ],
)
def test_says_what_is_wrong_with_a_target(
    target: str, complaint: str, authors_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(authors_file.parent)
    monkeypatch.setattr(sys, "path", [*sys.path])
    with pytest.raises(TargetError) as caught:
        load_server(target)
    assert complaint in str(caught.value)
    assert not caught.value.author_traceback


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        ("def helper():\n    raise ValueError('no licence')\n\nhelper()\n", "ValueError: no licence"),
        ("import absent_library\n", "ModuleNotFoundError: No module named 'absent_library'"),
        ("raise SystemExit('not today')\n", "SystemExit: not today"),
        ("def helper(:\n", "SyntaxError: invalid syntax"),
    ],
)
@pytest.mark.parametrize("target", ["broken.py:server", "broken:server"])
def test_shows_where_the_authors_own_code_failed(
    source: str, complaint: str, target: str, tmp_path: Path
) -> None:
    (tmp_path / "broken.py").write_text(source, encoding="utf-8")
    ran = run("serve", target, cwd=tmp_path)
    place = target.removesuffix(":server")
    assert ran.returncode == 1
    assert f"Error: {place} could not be imported: {complaint}" in ran.stderr
    assert 'broken.py", line' in ran.stderr
    assert "importlib" not in ran.stderr
    assert "mcp_tasks_adapters" not in ran.stderr


def test_shows_the_whole_way_to_the_failure(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("def helper():\n    1 / 0\n\nhelper()\n", encoding="utf-8")
    ran = run("serve", "broken.py:server", cwd=tmp_path)
    assert "line 4, in <module>" in ran.stderr
    assert "line 2, in helper" in ran.stderr


# -- what is not installed ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("absent", "arguments", "advice"),
    [
        ("trio", ["serve", "{file}:server", "--loop", "trio"], "pip install 'mcp-tasks-proto[trio]'"),
        ("h11", ["serve", "{file}:server", "--loop", "asyncio"], "pip install 'mcp-tasks-proto[asyncio]'"),
        ("h11", ["proxy", "--upstream", "http://a.example/"], "pip install 'mcp-tasks-proto[asyncio]'"),
        ("trio", ["proxy", "--upstream", "http://a.example/", "--loop", "trio"], "mcp-tasks-proto[trio]"),
        ("click", ["--version"], "pip install 'mcp-tasks-proto[cli]'"),
        ("rich", ["demo"], "pip install 'mcp-tasks-proto[cli]'"),
    ],
)
def test_names_the_extra_that_is_missing(
    absent: str, arguments: list[str], advice: str, authors_file: Path
) -> None:
    filled = [argument.format(file=authors_file) for argument in arguments]
    program = textwrap.dedent(
        f"""
        import sys
        sys.modules[{absent!r}] = None
        sys.argv[1:] = {filled!r}
        from mcp_tasks_adapters.cli import main
        main()
        """
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert ran.returncode == 1
    assert absent in ran.stderr
    assert advice in ran.stderr
    assert "Traceback" not in ran.stderr


def test_asyncio_needs_no_trio(authors_file: Path) -> None:
    """A server on asyncio runs where trio is not installed."""
    program = textwrap.dedent(
        f"""
        import sys
        sys.modules["trio"] = None
        sys.argv[1:] = ["serve", {str(authors_file)!r} + ":server", "--stdio", "--loop", "asyncio"]
        from mcp_tasks_adapters.cli import main
        main()
        """
    )
    ran = subprocess.run(
        [sys.executable, "-c", program],
        input=json.dumps(request("server/discover", {})) + "\n",
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, "imported\n")
    assert json.loads(ran.stdout)["result"]["supportedVersions"] == [MODERN_VERSION]


# -- demo, diagram, --version ------------------------------------------------------------------------


@both_loops
def test_the_demo_shows_a_task_in_every_status(loop: str) -> None:
    ran = run("demo", "--loop", loop, "--json")
    assert ran.returncode == 0, ran.stderr
    everything = [json.loads(line) for line in ran.stdout.splitlines()]
    shown = [one for one in everything if LEGACY_VERSION not in one["chapter"]]
    messages = [one for one in shown if one["direction"] != "none"]
    assert [one["direction"] for one in messages] == ["request", "response"] * (len(messages) // 2)
    methods = {one["message"]["method"] for one in messages if one["direction"] == "request"}
    assert methods == {"server/discover", "tools/call", "tasks/get", "tasks/update", "tasks/cancel"}
    results = [one["message"]["result"] for one in messages if one["direction"] == "response"]
    statuses = {result.get("status") for result in results}
    assert statuses >= {"working", "input_required", "completed", "failed", "cancelled"}
    assert any(result.get("result", {}).get("isError") for result in results)
    its_own_server_is_killed_and_the_same_task_completes(shown)
    a_client_of_2025_lives_with_a_task_on_the_same_port(everything[len(shown) :])


def its_own_server_is_killed_and_the_same_task_completes(shown: list[dict[str, Any]]) -> None:
    """LIFE.4: what was handed out before the kill is there after it, on the same port, and goes on."""
    killed, started = (place for place, one in enumerate(shown) if one["direction"] == "none")
    assert "kill -9" in shown[killed]["headline"]
    [made] = [
        one["message"]["result"] for one in shown[:killed] if one["headline"] == "task, working, Queued"
    ]
    views = [one["message"]["result"] for one in shown[started:] if one["direction"] == "response"]
    [end] = [view for view in views if view.get("taskId") == made["taskId"] and view["status"] == "completed"]
    assert "going on after frame" in end["statusMessage"]
    assert end["createdAt"] == made["createdAt"]


def a_client_of_2025_lives_with_a_task_on_the_same_port(shown: list[dict[str, Any]]) -> None:
    """LEG.9: its questions come on a stream, and the client of 2026 sees the same task in the end."""
    said = [(one["direction"], one["message"].get("method")) for one in shown if one["message"] is not None]
    requests = [method for direction, method in said if direction == "request"]
    assert requests == [
        *("initialize", "notifications/initialized", "tools/call", "tasks/result"),
        *(None, "tasks/get"),
    ]
    asked = [method for direction, method in said if direction == "stream"]
    assert set(asked) == {"notifications/tasks/status", "elicitation/create"}
    sessions = [one["headers"].get("Mcp-Session-Id") for one in shown if one["direction"] == "request"]
    assert (sessions[0], sessions[-1]) == (None, None)
    assert len(set(sessions[1:-1])) == 1
    view = shown[-1]["message"]["result"]
    assert view["status"] == "completed"
    assert view["result"]["content"][0]["text"] == "bridge: 2 frames, published on private."


def test_the_demo_is_readable() -> None:
    ran = run("demo")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "→ tools/call" in ran.stdout
    assert "Mcp-Name: render" in ran.stdout
    assert "⚡ kill -9" in ran.stdout
    assert "✓ cancelled, once the tool had stopped" in ran.stdout
    assert "← elicitation/create  on the stream" in ran.stdout
    assert "→ response  The answer" in ran.stdout


class _Parrot(BaseHTTPRequestHandler):
    """A server that answers any request with an empty result."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": {}}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        """Say nothing."""


@pytest.mark.parametrize("as_json", [False, True])
def test_the_demo_fails_when_a_message_is_not_as_expected(
    as_json: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    @contextmanager
    def parrot(loop: str) -> Iterator[SimpleNamespace]:
        with HTTPServer(("127.0.0.1", 0), _Parrot) as server:
            thread = Thread(target=server.serve_forever)
            thread.start()
            try:
                yield SimpleNamespace(url=f"http://127.0.0.1:{server.server_port}/mcp")
            finally:
                server.shutdown()
                thread.join()

    monkeypatch.setattr(demo, "running_server", parrot)
    assert demo.run_demo(loop="asyncio", as_json=as_json) == 1
    out, err = capsys.readouterr()
    assert f"server/discover: this should be so, and is not: it speaks {MODERN_VERSION}" in (
        err if as_json else out
    )


def test_the_demo_fails_when_the_server_does_not_start(capsys: pytest.CaptureFixture[str]) -> None:
    assert demo.run_demo(loop="no such loop", as_json=True) == 1
    assert "the server did not start" in capsys.readouterr().err


def test_prints_the_state_machine() -> None:
    assert run("diagram").stdout == render_mermaid()
    assert run("diagram", "--format", "table").stdout == render_table()


def test_prints_its_version() -> None:
    assert run("--version").stdout == f"mcp-tasks {version('mcp-tasks-proto')}\n"


# -- clients of 2025-11-25 -----------------------------------------------------------------------------


def legacy_post(
    served: Served, message: dict[str, Any], session: str | None = None
) -> tuple[Any, HTTPResponse]:
    """Post a message of that version; return its answer, and the response."""
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    if session is not None:
        headers |= {"Mcp-Session-Id": session, "MCP-Protocol-Version": "2025-11-25"}
    with closing(HTTPConnection(served.host, served.port, timeout=PATIENCE_S)) as connection:
        connection.request("POST", served.path, json.dumps(message), headers)
        response = connection.getresponse()
        return json.loads(response.read()), response


@both_loops
@pytest.mark.parametrize("policy", [None, "ignore", "serve", "refuse"])
def test_leg1_serves_legacy_clients_as_it_is_told_to(
    loop: str, policy: str | None, authors_file: Path
) -> None:
    options = [] if policy is None else ["--legacy", policy]
    params = {"protocolVersion": "2025-11-25", "capabilities": {}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    with serving(f"{authors_file}:server", "--loop", loop, *options) as served:
        answer, response = legacy_post(served, message)
        if policy == "refuse":
            assert answer["error"]["data"]["supported"] == [MODERN_VERSION]
            return
        assert ("tasks" in answer["result"]["capabilities"]) is (policy == "serve")
        session = response.getheader("Mcp-Session-Id")
        call = {"name": "wait", "task": {}}
        wanted = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call}
        made, _ = legacy_post(served, wanted, session)
        assert ("task" in made.get("result", {})) is (policy == "serve")
        assert served.ask("tools/call", {"name": "wait"})["result"]["resultType"] == "task"
