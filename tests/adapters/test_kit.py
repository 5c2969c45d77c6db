"""The kit over HTTP and on stdio, on both loops, and as a command: our own server keeps the contract."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from selectors import EVENT_READ, DefaultSelector
from typing import Any, Final

import pytest
from attrs import evolve
from click.testing import CliRunner
from mcp_tasks_adapters.asyncio_h11 import kit as asyncio_kit
from mcp_tasks_adapters.cli.kit.command import ROLES, kit_command
from mcp_tasks_adapters.cli.kit.report import JsonReport, PeopleReport
from mcp_tasks_adapters.cli.kit.selection import select
from mcp_tasks_adapters.kit import Progress
from mcp_tasks_adapters.trio_h11 import kit as trio_kit
from rich.console import Console

from mcp_tasks_proto.testing.kit import CHECKS, Finding, Kit, KitSettings, Role, ToolCall, Verdict
from tests.adapters.cli_client_harness import MCP_TASKS, PATIENCE_S, run, running, serving
from tests.adapters.client_harness import LOOPS
from tests.adapters.kit_server import make_server
from tests.unit.kit_expectations import CALLS, OF_HTTP, OF_STDIO, SERVED, of
from tests.unit.kit_world import KitServer

SERVER: Final = Path(__file__).parent / "kit_server.py"

SETTINGS: Final = KitSettings(
    calls=CALLS, search=False, answer_ms=60_000, task_ms=60_000, quiet_ms=50, total_ms=600_000
)
"""Patient with a machine that is busy; what is to stay away is waited for only briefly."""


def no_progress(_: Kit) -> None:
    """Where nobody looks."""


def over_http(loop: str, url: str, *, progress: Progress = no_progress) -> Kit:
    """Examine an endpoint."""
    callers: dict[str, Any] = {"headers": {"x-user": "ada"}, "other_headers": {"x-user": "bob"}}
    if loop == "trio":
        import trio

        return trio.run(lambda: trio_kit.examine_http(url, SETTINGS, progress=progress, **callers))
    import asyncio

    return asyncio.run(asyncio_kit.examine_http(url, SETTINGS, progress=progress, **callers))


def on_stdio(loop: str, *command: str, settings: KitSettings = SETTINGS) -> Kit:
    """Examine a server that is started."""
    if loop == "trio":
        import trio

        return trio.run(lambda: trio_kit.examine_stdio(command, settings, stderr=subprocess.DEVNULL))
    import asyncio

    return asyncio.run(asyncio_kit.examine_stdio(command, settings, stderr=subprocess.DEVNULL))


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with serving(SERVER) as url:
        yield url


@pytest.mark.parametrize("loop", LOOPS)
def test_our_server_passes_over_http(url: str, loop: str) -> None:
    done: list[int] = []
    kit = over_http(loop, url, progress=lambda kit: done.append(len(kit.findings)))
    assert of(kit, Verdict.FAIL) == {}
    assert of(kit, Verdict.NOT_OBSERVABLE) == {**SERVED, **OF_STDIO}
    assert done == sorted(done)
    assert done[-1] >= len(kit.checks) - 1


@pytest.mark.parametrize("loop", LOOPS)
def test_our_server_passes_on_stdio(loop: str) -> None:
    """On stdio nobody is told apart from anybody, so that there is no tasks/list either."""
    command = [*MCP_TASKS, "serve", f"{SERVER}:server", "--store", "memory:", "--stdio", "--loop", loop]
    kit = on_stdio(loop, *command)
    assert of(kit, Verdict.FAIL) == {}
    unlisted = {"tasks are listed": "the server does not list tasks"}
    assert of(kit, Verdict.NOT_OBSERVABLE) == {**SERVED, **OF_HTTP, **unlisted}


# -- those who do not answer ---------------------------------------------------------------------------------


@pytest.mark.parametrize("loop", LOOPS)
def test_nobody_listens(loop: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as place:
        url = f"http://127.0.0.1:{place.getsockname()[1]}/mcp"
    kit = over_http(loop, url)
    assert kit.unreachable is not None
    assert kit.unreachable.startswith("no connection to the server: ")


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize(
    ("command", "why"),
    [
        (["/no/such/command"], "the server cannot be started"),
        (["no\0command"], "the server cannot be started"),
        ([sys.executable, "-c", "raise SystemExit(3)"], "the server ended (exit code 3)"),
    ],
)
def test_a_server_that_does_not_run(loop: str, command: list[str], why: str) -> None:
    kit = on_stdio(loop, *command)
    assert str(kit.unreachable).startswith((why, "the server cannot be written to"))


NOISY: Final = """
import sys, json
print("Welcome to my server!", flush=True)
for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        result = {"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {}}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""


@pytest.mark.parametrize("loop", LOOPS)
def test_std1_a_greeting_on_stdout_is_a_failure_and_no_reason_to_stop(loop: str) -> None:
    """And a server that dies of a message is started again for the next one."""
    kit = on_stdio(loop, sys.executable, "-c", NOISY)
    failed = of(kit, Verdict.FAIL)
    said = "a line that is not JSON ('Welcome to my server!') came on stdout"
    assert failed["nothing but messages"] == said
    assert "the server ended" in failed["what is not json"]
    assert "ids come back as they were" not in failed


LEAVES_ONE_BEHIND: Final = """
import subprocess, sys
child = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); held = open({0!r}, 'w'); "
child += "print(flush=True); time.sleep(3600)"
words = [sys.executable, "-c", child]
subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE).stdout.readline()
sys.stdin.readline()
"""


@pytest.mark.parametrize("loop", LOOPS)
def test_what_a_server_has_started_ends_with_it(loop: str, tmp_path: Path) -> None:
    """Also when the server itself ends kindly: nothing of it shall be left."""
    held = tmp_path / "held"
    os.mkfifo(held)
    reader = os.open(held, os.O_RDONLY | os.O_NONBLOCK)
    try:
        on_stdio(loop, sys.executable, "-c", LEAVES_ONE_BEHIND.format(str(held)))
        with DefaultSelector() as waiting:
            waiting.register(reader, EVENT_READ)
            assert waiting.select(PATIENCE_S)
        assert os.read(reader, 1) == b"", "nobody holds it any more"
    finally:
        os.close(reader)


class Page(BaseHTTPRequestHandler):
    """A web page where a server should be; ``/404`` comes with that status, and so on."""

    def do_POST(self) -> None:
        """Answer with it."""
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(int(self.path[1:]) if self.path[1:].isdigit() else 200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<p>Hello!</p>")

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - so it is named there
        """Say nothing."""


@pytest.fixture(scope="module")
def page() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Page) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/mcp"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("loop", LOOPS)
def test_a_web_page_is_no_server(page: str, loop: str) -> None:
    kit = over_http(loop, page)
    assert of(kit, Verdict.FAIL) == {
        "discovery": "there came HTTP 200 without a JSON-RPC response where a result was due"
    }
    assert not of(kit, Verdict.PASS)


# -- the command ---------------------------------------------------------------------------------------------

CALLERS: Final = ("--header", "x-user: ada", "--other-header", "x-user: bob")


def test_the_command_finds_out_what_the_tools_do(url: str) -> None:
    """One JSON object a line: checks, rules, and a summary; the exit code says that nothing failed."""
    ran = run("kit", url, *CALLERS, "--json", "--time-limit", "600", "--wait", "60")
    lines = [json.loads(line) for line in ran.out.splitlines()]
    assert [line for line in lines if line.get("verdict") == "fail"] == []
    assert (ran.code, ran.err) == (0, "")
    assert {line["type"] for line in lines} == {"check", "rule", "summary"}
    (summary,) = (line for line in lines if line["type"] == "summary")
    assert summary["checks"]["fail"] == summary["rules"]["fail"] == 0
    assert summary["interrupted"] is False
    assert set(summary["tools"].values()) <= set(make_server().tools)


def test_the_command_shows_a_failure_to_people(page: str) -> None:
    """What was sent, what came, what was asked for, and where that stands."""
    ran = run("kit", page)
    assert ran.code == 1
    for said in (
        "NEG.9   fail            discovery (must)",
        "✗ discovery  NEG.9",
        "asked for: server/discover is answered",
        "source: MCP 2026-07-28, Discovery",
        "but: there came HTTP 200 without a JSON-RPC response",
        "→ POST\n",
        "→ Mcp-Method: server/discover",
        '"method": "server/discover"',
        "← HTTP 200 text/html",
        "1 fail",
        "1 check failed: 1 must",
    ):
        assert said in ran.out, ran.out


def test_a_report_is_written_in_any_encoding(page: str) -> None:
    """A failure of the server's is not to be taken for one of the report, nor the other way round."""
    ran = subprocess.run(
        [*MCP_TASKS, "kit", page, "--only", "NEG.9", "--accept", "discovery"],
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert r"\u2717 discovery  NEG.9" in ran.stdout


def test_a_report_that_cannot_be_written_is_no_failure_of_the_server(page: str) -> None:
    for how in ([], ["--json"]):
        with open("/dev/full", "wb") as full:
            ran = subprocess.run(
                [*MCP_TASKS, "kit", page, *how], stdout=full, stderr=subprocess.PIPE, text=True, check=False
            )
        said = "Error: what was found cannot be written: No space left on device.\n"
        assert (ran.returncode, ran.stderr) == (2, said)


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (429, ""),
        (
            401,
            "Nobody answers: everything is answered with HTTP 401: it wants to know who asks (--header has "
            "what it wants).\n",
        ),
    ],
)
def test_where_nothing_can_be_seen_nothing_has_passed(page: str, status: int, said: str) -> None:
    ran = run("kit", page.replace("/mcp", f"/{status}"), "--json")
    assert (ran.code, ran.err) == (3, said)
    assert {json.loads(line).get("verdict") for line in ran.out.splitlines()} <= {"not observable", None}


def test_sec2_a_server_s_words_make_no_lines_of_the_report(capsys: pytest.CaptureFixture[str]) -> None:
    """Nor do they fill it."""
    words = "\x1b[2J\nSEC.1  pass\n" + "x" * 100_000
    finding = Finding(
        check=CHECKS[0], verdict=Verdict.NOT_OBSERVABLE, reason=f"the tool {words} gave no task"
    )
    kit = Kit(KitSettings(), speaks_http=True)
    kit.desk.calls[Role.PLAIN] = ToolCall(words)
    selection = select(only=(), accepted=(), required=(), strength="choice")
    PeopleReport(Console(width=200), selection).show([finding], kit, interrupted=False)
    JsonReport(selection).show([finding], kit, interrupted=False)
    printed = capsys.readouterr().out
    assert not [line for line in printed.splitlines() if line.startswith("SEC.1  pass")]
    assert "\x1b" not in printed
    assert len(printed) < 30_000


def test_the_command_reports_what_is_demanded_alone(page: str) -> None:
    ran = run("kit", page, "--strength", "must", "--json")
    strengths = {json.loads(line).get("strength") for line in ran.out.splitlines()}
    assert strengths == {"must", None}


def test_the_command_examines_by_what_it_is_told(page: str) -> None:
    """One rule alone, or one check."""
    ran = run("kit", page, "--only", "NEG.9", "--only", "unknown methods", "--json")
    lines = [json.loads(line) for line in ran.out.splitlines()]
    assert {line["rule"] for line in lines if line["type"] == "rule"} == {"NEG.9", "NEG.10"}
    assert "unknown methods" in {line["check"] for line in lines if line["type"] == "check"}
    assert lines[-1]["failed"] == {"must": 1, "should": 0, "choice": 0}
    section = [json.loads(line) for line in run("kit", page, "--only", "LIM", "--json").out.splitlines()]
    assert [line.get("rule") for line in section] == ["LIM.3", None]


def test_a_failure_may_be_accepted(page: str) -> None:
    """It is reported all the same, and the exit code does not count it."""
    ran = run("kit", page, "--only", "NEG.9", "--accept", "discovery")
    assert ran.code == 0
    assert "✗ discovery  NEG.9  (accepted)" in ran.out
    assert "1 check failed: 1 must; 1 accepted" in ran.out
    (*_, summary) = run("kit", page, "--only", "NEG.9", "--accept", "discovery", "--json").out.splitlines()
    assert json.loads(summary)["accepted"] == ["discovery"]


def test_what_is_required_has_to_be_seen(page: str) -> None:
    """An exit code of 0 must not mean that there was nothing to see."""
    words = ("kit", page, "--only", "NEG.2")
    assert run(*words).code == 0
    ran = run(*words, "--require", "NEG.2")
    assert ran.code == 1
    assert ran.out.endswith("NEG.2 was required, and has not passed\n")
    (*_, summary) = run(*words, "--require", "NEG.2", "--json").out.splitlines()
    assert json.loads(summary)["requiredButNotPassed"] == ["NEG.2"]


def test_what_was_not_examined_in_time_has_not_passed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server in virtual time, that is not done when it is over: nothing failed, and that is not enough."""

    async def examine(url: str, settings: KitSettings, *, progress: Progress, **_: Any) -> Kit:
        kit = KitServer().examine(evolve(settings, total_ms=3_000))
        progress(kit)
        return kit

    monkeypatch.setattr(asyncio_kit, "examine_http", examine)
    ran = CliRunner().invoke(kit_command, ["http://x/mcp"])
    assert ran.exit_code == 3
    assert ran.stdout.endswith("The time was over before everything was examined (--time-limit)\n")
    ran = CliRunner().invoke(kit_command, ["http://x/mcp", "--json"])
    assert (ran.exit_code, json.loads(ran.stdout.splitlines()[-1])["outOfTime"]) == (3, True)


def test_a_tool_that_there_is_not_is_a_slip(url: str) -> None:
    ran = run("kit", url, "--skip", "spoyl", "--slow", "idle", "--wait", "60")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("Error: the server lists no tool 'spoyl'; it lists ")
    assert "spoil" in ran.err
    assert ran.err.endswith("No tool was called.\n")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "it is mcp-tasks kit URL, or mcp-tasks kit --stdio COMMAND."),
        (["ftp://x"], "'ftp://x' is no server"),
        (["http://x/mcp", "--stdio", "server"], "--stdio takes the place of URL"),
        (["--stdio", "'"], "--stdio: No closing quotation."),
        (["--stdio", ""], "--stdio needs the command"),
        (["http://x/mcp", "--slow", "idle={"], "The arguments of --slow: "),
        (
            ["http://x/mcp", "--asking-first", "book=[]"],
            "The arguments of --asking-first must be a JSON object.",
        ),
        (
            ["http://x/mcp", "--slow", "idle={}", "--skip", "spoil", "--asking-first", "spoil"],
            "--skip and --asking-first name 'spoil': it is to be called, or it is not.",
        ),
        (["http://x/mcp", "--header", "secret"], "--header takes 'Name: value'."),
        (["--stdio", "server", "--server-log", "/no/such/folder/log"], "--server-log: cannot write"),
        (["http://x/mcp", "--only", "nonsense"], "--only: there is no rule or check 'nonsense'"),
        (["http://x/mcp", "--accept", "NEG.1"], "--accept: there is no check 'NEG.1'"),
        (["http://x/mcp", "--require", "discovery"], "--require: there is no rule 'discovery'"),
    ],
)
def test_what_cannot_be_used_is_said(words: list[str], said: str) -> None:
    ran = CliRunner().invoke(kit_command, words)
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert said in ran.stderr


def test_nobody_answers_the_command(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    script = "import sys; sys.exit('it is not my day')"
    ran = run("kit", "--stdio", f'{sys.executable} -c "{script}"', "--server-log", str(log))
    assert (ran.code, ran.out) == (3, "")
    assert ran.err.startswith("Nobody answers: the server ")
    assert "it is not my day" in log.read_text()


def test_who_hears_nothing_of_a_server_is_told_how() -> None:
    ran = run("kit", "--stdio", f"{sys.executable} -c 'raise SystemExit(1)'")
    assert ran.code == 3
    assert ran.err.endswith("\n--server-log FILE keeps what the server says on its stderr.\n")


def test_a_run_can_be_stopped(tmp_path: Path) -> None:
    """What is known by then is reported."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/mcp"
        with running("kit", url, "--json") as examining:
            asked, _ = silent.accept()
            with asked:
                asked.recv(1)
                examining.send_signal(signal.SIGINT)
                out, err = examining.communicate(timeout=PATIENCE_S)
    assert (examining.returncode, err) == (130, "")
    summary = json.loads(out.splitlines()[-1])
    assert summary["interrupted"] is True
    assert summary["checks"] == {"pass": 0, "fail": 0, "not observable": 0}


def test_each_role_can_be_named() -> None:
    assert ROLES.keys() == {role.value for role in Role}
