"""The client commands as a script has them: exit codes, JSON lines, files, signals; no terminal."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import pytest
from mcp_tasks_adapters.cli.client.exit_codes import MEANINGS, ExitCode
from mcp_tasks_adapters.client import save_reference

from tests.adapters.cli_client_harness import FARM, MCP_TASKS, PATIENCE_S, run, running, serving

LOOPS: Final = ["trio", "asyncio"]
CHANNEL: Final = {
    "type": "object",
    "properties": {"channel": {"type": "string", "enum": ["public", "private"], "default": "private"}},
    "required": ["channel"],
}
EVERY_COMMAND: Final = ["tools", "call", "resume", "get", "cancel", "update", "watch"]

both_loops = pytest.mark.parametrize("loop", LOOPS)


@pytest.fixture(scope="module")
def farm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("farm") / "farm.py"
    file.write_text(FARM, encoding="utf-8")
    return file


@pytest.fixture(scope="module")
def url(farm: Path) -> Iterator[str]:
    with serving(farm) as url:
        yield url


def forms(*schemas: dict[str, Any], **more: Any) -> str:
    return json.dumps({"forms": schemas, **more})


def begin(url: str, tool: str, *arguments: str) -> str:
    """Make a task, and die as soon as there is one; return its id."""
    with running("call", url, tool, *arguments, "--json", "--watch") as calling:
        assert calling.stdout is not None
        task_id: str = json.loads(calling.stdout.readline())["task"]["taskId"]
    return task_id


# -- how a call can end ------------------------------------------------------------------------------------


@both_loops
def test_a_result_is_on_stdout_and_nothing_else(url: str, loop: str) -> None:
    ran = run("call", url, "say", "text=ho ", "times:=2", "--loop", loop)
    assert (ran.code, ran.out) == (ExitCode.COMPLETED, "ho ho \n")
    assert ran.err == "info: about to say it\n"
    assert run("call", url, "say", "text=a\x1b[1m\ab", "--loop", loop).out == "a\x1b[1m\ab\n", "as it is"


@both_loops
@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["oops"], ExitCode.TOOL_ERROR, "The tool reports an error:\nNo encoder for that\n"),
        (["say", "times=x"], ExitCode.TOOL_ERROR, "arguments"),
        (["broken"], ExitCode.FAILED, "Failed: The archive is offline (code -32603)\n"),
        (["absent"], ExitCode.FAILED, "Failed: "),
        (["wait", "--timeout", "0.5"], ExitCode.LOST, "What became of it is not known here: "),
    ],
)
def test_other_ends_are_on_stderr_and_in_the_exit_code(
    url: str, loop: str, words: list[str], code: ExitCode, said: str
) -> None:
    ran = run("call", url, *words, "--loop", loop)
    assert (ran.code, ran.out) == (code, "")
    assert said in ran.err
    assert "\x1b" not in ran.err, "no control codes where there is no terminal"


@both_loops
def test_a_task_that_is_cancelled_elsewhere(url: str, loop: str) -> None:
    task_id = begin(url, "wait")
    with running("watch", url, task_id, "--json", "--loop", loop) as watching:
        assert watching.stdout is not None
        assert json.loads(watching.stdout.readline())["task"]["status"] == "working"
        acknowledged = run("cancel", url, task_id, "--json", "--loop", loop)
        assert acknowledged.code == ExitCode.COMPLETED
        assert acknowledged.lines == [{"taskId": task_id, "acknowledged": True}]
        *_, last = map(json.loads, watching.stdout)
        assert watching.wait() == ExitCode.CANCELLED
    assert last == {"event": "outcome", "outcome": "cancelled", "exitCode": 5, "taskId": task_id}


@pytest.mark.parametrize(
    "words", [["get"], ["cancel"], ["watch"], ["update", '{"q": "accept"}'], ["resume"]], ids=lambda it: it[0]
)
def test_a_task_that_the_server_does_not_know(url: str, words: list[str]) -> None:
    """REQ.6: it has expired, as far as anybody can tell (GET.2)."""
    command, *rest = words
    ran = run(command, url, "no-such-task", *rest)
    assert (ran.code, ran.out) == (ExitCode.EXPIRED, "")
    assert "The server does not know this task, or no longer." in ran.err
    shown = run(command, url, "no-such-task", *rest, "--json")
    assert shown.code == ExitCode.EXPIRED
    assert shown.lines == [
        {"event": "outcome", "outcome": "expired", "exitCode": 6, "taskId": "no-such-task"}
    ]


@pytest.mark.parametrize("words", [["-hf-loop"], ["--json", "-8h"], ["--", "--json"]])
def test_a_task_id_may_begin_with_a_dash(url: str, words: list[str]) -> None:
    ran = run("get", url, *words)
    assert ran.code == ExitCode.EXPIRED, ran.err


@pytest.mark.parametrize("buffered", [True, False])
@pytest.mark.parametrize(
    "words",
    [["diagram"], ["proxy", "--help"], ["tools", "URL"], ["call", "URL", "say", "text=ho", "--json"]],
)
def test_output_that_cannot_be_written_is_said_in_a_line(url: str, words: list[str], buffered: bool) -> None:
    """And there is no traceback, be it noticed while something is written or as the process ends."""
    words = [url if word == "URL" else word for word in words]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with open("/dev/full", "wb") as full:
        ran = subprocess.run(
            [*MCP_TASKS, *words],
            stdin=subprocess.DEVNULL,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            env=environment if buffered else {**environment, "PYTHONUNBUFFERED": "1"},
        )
    assert ran.stderr.splitlines()[-1] == "Error: the output cannot be written: No space left on device."
    assert "Traceback" not in ran.stderr
    assert ran.returncode == 1


def test_standard_output_may_be_closed() -> None:
    """Whoever started it wants to see nothing: that is no failure."""
    closed = subprocess.run(
        [*MCP_TASKS, "diagram"], stderr=subprocess.PIPE, preexec_fn=lambda: os.close(1), check=False
    )
    assert (closed.returncode, closed.stderr) == (0, b"")


@pytest.mark.parametrize("closed", [[0], [1], [2], [0, 1, 2]])
def test_any_standard_stream_may_be_closed(url: str, closed: list[int]) -> None:
    def close() -> None:
        for number in closed:
            os.close(number)

    ran = subprocess.run(
        [*MCP_TASKS, "call", url, "say", "text=ho", "--json"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        preexec_fn=close,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    outcomes = [json.loads(line)["outcome"] for line in ran.stdout.splitlines()]
    assert outcomes == ([] if 1 in closed else ["completed"])


def test_what_belongs_on_stderr_goes_nowhere_else() -> None:
    """Where stderr is closed; stdout has messages of the protocol alone."""
    ran = subprocess.run(
        [*MCP_TASKS, "proxy", "--stdio", "--upstream", "http://127.0.0.1:1/mcp"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        preexec_fn=lambda: os.close(2),
        check=False,
    )
    assert (ran.returncode, ran.stdout) == (0, b"")


def test_a_server_that_cannot_be_reached() -> None:
    ran = run("call", "http://127.0.0.1:1/mcp", "say", "text=x")
    assert ran.code == ExitCode.FAILED
    assert "no connection to the server: connection refused" in ran.err
    assert "Is the server running, and is that its address?" in ran.err
    shown = run("tools", "http://127.0.0.1:1/mcp", "--json")
    assert shown.code == ExitCode.FAILED
    [outcome] = shown.lines
    assert (outcome["outcome"], outcome["fault"]) == ("failed", "network")


def test_what_was_misspelled_is_said_with_what_to_do(url: str) -> None:
    ran = run("call", url, "sya", "text=x")
    assert ran.code == ExitCode.FAILED
    assert f"mcp-tasks tools {url}" in ran.err
    ran = run("tools", url.replace("/mcp", "/mpc"))
    assert ran.code == ExitCode.FAILED
    assert "Many servers have it at /mcp" in ran.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["call"], "Error: it is mcp-tasks call URL TOOL [ARGS]..."),
        (["call", "http://127.0.0.1:1/mcp"], "Error: it is mcp-tasks call URL TOOL [ARGS]..."),
        (["call", "http://127.0.0.1:1/mcp", "say", "text"], "Error: 'text' is no argument"),
        (["call", "farm.example", "say"], "Error: 'farm.example' is no server"),
        (["call", "http://127.0.0.1:1/", "say", "--answer", "x"], "Error: --answer 'x': write KEY=JSON"),
        (["call", "http://127.0.0.1:1/", "say", "--timeout", "0"], "Invalid value for '--timeout'"),
        (["call", "http://127.0.0.1:1/", "say", "--trace", "/"], "Error: --trace: cannot write /"),
        (["call", "http://127.0.0.1:1/", "say", "--save", "/"], "Error: --save: / is there already"),
        (["resume", "absent.json"], "Error: Cannot read absent.json: No such file or directory."),
        (["get", "http://127.0.0.1:1/mcp"], "Error: it is mcp-tasks get URL TASK_ID"),
        (["tools", "http://127.0.0.1:1/mcp", "more"], "Error: it is mcp-tasks tools URL"),
        (["update", "http://127.0.0.1:1/mcp", "t", "[]"], "Error: ANSWERS must be a JSON object."),
        (["update", "http://127.0.0.1:1/mcp", "t"], "Error: it is mcp-tasks update URL TASK_ID ANSWERS"),
        (["tools", "http://127.0.0.1:1/mcp", "--jsn"], "No such option"),
        (["call", "http://127.0.0.1:1/mcp", "say", "--wach"], "--watch"),
        (["watch", "http://127.0.0.1:1/mcp"], "Error: it is mcp-tasks watch URL TASK_ID..."),
        (["tools", "http://127.0.0.1:1/mcp", "--header", "x"], "Error: --header takes 'Name: value'."),
    ],
)
def test_what_cannot_be_used_is_said(words: list[str], said: str) -> None:
    ran = run(*words)
    assert (ran.code, ran.out) == (ExitCode.USAGE, "")
    assert said in ran.err
    assert "Traceback" not in ran.err


def test_a_task_of_one_era_is_not_resumed_in_the_other(tmp_path: Path) -> None:
    """It would be polled without end."""
    job = tmp_path / "job.json"
    reference = {
        "schema": 1,
        "endpoint": "http://127.0.0.1:1/mcp",
        "taskId": "t",
        "tool": "say",
        "capabilities": {},
        "createdMs": 0,
        "ttlMs": None,
        "pollIntervalMs": None,
        "keys": {},
        "era": "legacy",
    }
    save_reference(job, reference)
    ran = run("resume", str(job), "--era", "modern")
    assert ran.code == ExitCode.USAGE
    assert "is one of 2025-11-25: leave out --era modern" in ran.err


@pytest.mark.parametrize("command", EVERY_COMMAND)
def test_every_help_has_the_exit_codes(command: str) -> None:
    helped = run(command, "--help").out
    assert run(command, "-h").out == helped
    for code, meaning in MEANINGS.items():
        assert re.search(rf"^ +{int(code)}  {re.escape(meaning)}$", helped, re.MULTILINE)


def test_the_page_has_the_exit_codes_and_the_options() -> None:
    page = (Path(__file__).parents[2] / "docs" / "client.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| (\d+) \| (.+) \|$", page, re.MULTILINE))
    assert rows == {str(int(code)): meaning for code, meaning in MEANINGS.items()}
    for command in EVERY_COMMAND:
        for option in re.findall(r"--[a-z]+", run(command, "--help").out):
            assert option in page or option == "--help", option


# -- tools, get ----------------------------------------------------------------------------------------------


@both_loops
def test_lists_tools_as_they_are_called(url: str, loop: str) -> None:
    ran = run("tools", url, "--loop", loop)
    assert ran.code == ExitCode.COMPLETED
    assert ran.out.startswith(
        "say  What it says\n"
        "  Say something back.\n"
        "    text=string  required  What to say\n"
        "    times:=integer\n"
        "    tone=string  one of loud, soft\n"
        "\n"
        "describe\n"
    )
    definitions = run("tools", url, "--json", "--loop", loop).lines
    assert [tool["name"] for tool in definitions][:2] == ["say", "describe"]
    assert definitions[0]["inputSchema"]["required"] == ["text"]


def test_shows_a_task_and_what_it_asks(url: str, tmp_path: Path) -> None:
    task_id = begin(url, "ask", forms(CHANNEL, after=str(tmp_path / "go")))
    assert run("get", url, task_id, "--json").lines[0]["status"] == "working"
    (tmp_path / "go").touch()
    with running("watch", url, task_id) as watching:
        assert watching.stderr is not None
        said = iter(watching.stderr.readline, "")
        question = next(line for line in said if "asks" in line)
        assert question == f"{task_id} asks 'q0': Question 0?\n"
        assert next(said) == f"  To answer: mcp-tasks resume {url} {task_id}\n"
    shown = run("get", url, task_id).out
    assert shown.startswith(f"{task_id}  input required")
    assert "asks q0: Question 0?\n    channel  required  of public, private\n" in shown


def test_watches_several_tasks_and_names_their_results(url: str) -> None:
    waits = begin(url, "wait")
    asks = begin(url, "ask", forms())
    ran = run("watch", url, asks, waits, "no-such-task", "--timeout", "2")
    assert ran.code == ExitCode.LOST, "the code of the first one that is not completed"
    assert ran.out == f'{asks}: completed\n{{\n  "answers": []\n}}\n'
    assert f"{waits}: What became of it is not known here" in ran.err
    assert "no-such-task: The server does not know this task" in ran.err


# -- answers ---------------------------------------------------------------------------------------------


@both_loops
def test_nothing_is_accepted_without_a_person_or_an_answer(url: str, loop: str) -> None:
    """INP: what can be cancelled is cancelled, and said so."""
    ran = run("call", url, "ask", forms(CHANNEL), "--loop", loop)
    assert (ran.code, json.loads(ran.out)) == (ExitCode.COMPLETED, {"answers": [{"action": "cancel"}]})
    assert "Asked 'q0': Question 0? Nobody is here to answer, so it was cancelled" in ran.err
    assert "--answer q0=JSON" in ran.err
    visited = run("call", url, "visit", "--loop", loop)
    assert visited.out == "it was cancel\n"


@both_loops
def test_answers_beforehand(url: str, loop: str, tmp_path: Path) -> None:
    file = tmp_path / "answers.json"
    file.write_text(json.dumps({"q1": "decline", "q9": "accept"}), encoding="utf-8")
    options = ["--answer", 'q0={"channel": "public"}', "--answer", "*=accept", "--answers", str(file)]
    ran = run("call", url, "ask", forms(CHANNEL, CHANNEL, CHANNEL), *options, "--loop", loop)
    assert ran.code == ExitCode.COMPLETED
    assert json.loads(ran.out)["answers"] == [
        {"action": "accept", "content": {"channel": "public"}},
        {"action": "decline"},
        {"action": "accept", "content": {"channel": "private"}},
    ]
    assert "Asked 'q0': Question 0? Answered as prepared: accept.\n" in ran.err
    assert "Nobody asked for the prepared answers to q9.\n" in ran.err
    assert run("call", url, "visit", "--answer", "pay=accept", "--loop", loop).out == "it was accept\n"


@both_loops
def test_an_answer_that_does_not_fit_leaves_the_question_open(url: str, loop: str, tmp_path: Path) -> None:
    job = tmp_path / "job.json"
    wrong = ["--answer", 'q0={"channel": "secret"}']
    ran = run("call", url, "ask", forms(CHANNEL), "--save", str(job), *wrong, "--json", "--loop", loop)
    assert ran.code == ExitCode.USAGE
    assert ran.err.startswith("Error: The prepared answer to 'q0' does not fit: ")
    [left] = ran.lines
    assert (left["outcome"], left["exitCode"]) == ("interrupted", ExitCode.USAGE)
    assert run("get", url, left["taskId"], "--json").lines[0]["status"] == "input_required"
    resumed = run("resume", str(job), "--answer", "q0=accept", "--loop", loop)
    assert resumed.code == ExitCode.COMPLETED
    assert not job.exists()


def test_update_of_a_task_that_asks_nothing(url: str) -> None:
    refused = run("update", url, begin(url, "wait"), '{"q0": "accept"}')
    assert refused.code == ExitCode.USAGE
    assert refused.err == "Error: The task does not ask 'q0': it asks nothing at present.\n"


def test_update_checks_answers_before_they_are_sent(url: str, tmp_path: Path) -> None:
    go = tmp_path / "go"
    task_id = begin(url, "ask", forms(CHANNEL, after=str(go)))
    with running("watch", url, task_id, "--json") as watching:
        assert watching.stdout is not None
        go.touch()
        while json.loads(watching.stdout.readline())["task"]["status"] != "input_required":
            pass
        other = run("update", url, task_id, '{"q7": "accept"}')
        assert (other.code, other.err) == (2, "Error: The task does not ask 'q7': it asks q0.\n")
        wrong = run("update", url, task_id, '{"q0": {"channel": 7}}')
        assert (wrong.code, wrong.out) == (2, "")
        assert "The answer to 'q0' does not fit: answer.content['channel'] must be a string." in wrong.err
        right = run("update", url, task_id, "-", stdin='{"q0": {"channel": "public"}}')
        assert (right.code, right.err) == (0, "The server has the answers to q0.\n")
        *_, last = map(json.loads, watching.stdout)
        assert watching.wait() == ExitCode.COMPLETED
    [answer] = last["result"]["structuredContent"]["answers"]
    assert answer == {"action": "accept", "content": {"channel": "public"}}


# -- JSON ------------------------------------------------------------------------------------------------


@both_loops
def test_json_lines_tell_everything(url: str, loop: str) -> None:
    ran = run(
        "call", url, "ask", forms(CHANNEL), "--json", "--watch", "--answer", "q0=decline", "--loop", loop
    )
    assert (ran.code, ran.err) == (ExitCode.COMPLETED, "")
    *events, outcome = ran.lines
    statuses = [event["task"]["status"] for event in events if event["event"] == "view"]
    assert statuses[0] == "working"
    assert statuses[-1] == "completed"
    [answer] = [event for event in events if event["event"] == "answer"]
    assert answer["request"]["params"]["requestedSchema"] == CHANNEL
    assert (answer["key"], answer["action"], answer["by"]) == ("q0", "decline", "script")
    assert (outcome["outcome"], outcome["exitCode"]) == ("completed", 0)
    assert outcome["taskId"] == events[0]["task"]["taskId"]
    assert outcome["result"]["structuredContent"] == {"answers": [{"action": "decline"}]}


def test_json_has_one_line_for_a_call_that_is_not_watched(url: str) -> None:
    [outcome] = run("call", url, "describe", "--json").lines
    assert outcome["result"]["structuredContent"] == {"lamp": "on"}
    [failed] = run("call", url, "broken", "--json").lines
    assert failed["error"] == {
        "code": -32603,
        "message": "The archive is offline",
        "data": {"retryAfterMs": 60000},
    }
    [erred] = run("call", url, "oops", "--json").lines
    assert (erred["outcome"], erred["exitCode"]) == ("completed", ExitCode.TOOL_ERROR)
    assert erred["result"]["isError"] is True


def test_traces_the_wire(url: str, tmp_path: Path) -> None:
    trace = tmp_path / "trace.jsonl"
    secret = ["--header", "Authorization: Bearer secret"]
    assert run("call", url, "broken", "--trace", str(trace), *secret).code == ExitCode.FAILED
    text = trace.read_text(encoding="utf-8")
    entries = [json.loads(line) for line in text.splitlines()]
    methods = [entry["message"]["method"] for entry in entries if entry["event"] == "sent"]
    assert methods[:2] == ["tools/list", "tools/call"]
    assert any(entry["event"] == "received" and "result" in entry["message"] for entry in entries)
    assert "secret" not in text


# -- files and signals -----------------------------------------------------------------------------------


@both_loops
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, ExitCode.INTERRUPTED), (signal.SIGTERM, ExitCode.TERMINATED)]
)
def test_a_signal_stops_the_watching_and_not_the_task(
    url: str, loop: str, number: signal.Signals, code: ExitCode, tmp_path: Path
) -> None:
    """REQ.7: an abandoned wait does not cancel the task."""
    job = tmp_path / "my job.json"
    with running("call", url, "wait", "--save", str(job), "--loop", loop) as calling:
        assert calling.stderr is not None
        assert "working" in calling.stderr.readline()
        calling.send_signal(number)
        said = calling.stderr.read()
        assert calling.wait() == code
    task_id = json.loads(job.read_text(encoding="utf-8"))["taskId"]
    assert "The task goes on." in said
    assert f"  To go on with it:  mcp-tasks resume {shlex.quote(str(job))}\n" in said
    assert f"  To cancel it:      mcp-tasks cancel {url} {task_id}\n" in said
    assert run("get", url, task_id, "--json").lines[0]["status"] == "working"


def test_a_signal_before_there_is_a_task_says_so(tmp_path: Path) -> None:
    file = tmp_path / "slow.py"
    file.write_text(
        FARM + "\n\n@server.tool()\nasync def slow(call):\n    print('called', file=sys.stderr, flush=True)\n"
        "    await pause(3600)\n",
        encoding="utf-8",
    )
    command = shlex.join([*MCP_TASKS, "serve", f"{file}:server", "--stdio"])
    with running("call", "--stdio", command, "slow", "--json") as calling:
        assert calling.stderr is not None
        assert calling.stderr.readline() == "called\n"
        calling.send_signal(signal.SIGINT)
        assert calling.wait() == ExitCode.INTERRUPTED
        assert calling.stdout is not None
        assert json.loads(calling.stdout.read()) == {
            "event": "outcome",
            "outcome": "interrupted",
            "exitCode": 130,
        }


@both_loops
def test_says_why_nothing_is_heard_of_a_task(farm: Path, loop: str) -> None:
    """REQ.3: a server that does not answer is not the end of the task."""
    with ExitStack() as server:
        url = server.enter_context(serving(farm))
        with running("call", url, "wait", "--loop", loop) as calling:
            assert calling.stderr is not None
            said = iter(calling.stderr.readline, "")
            assert "working" in next(said)
            server.close()
            # A request that was on its way is told of first: its connection was closed.
            trouble = next(line for line in said if "no connection to the server" in line)
            assert "no answer: " in trouble
            assert "next poll in" in trouble or "asking the server" in trouble
            calling.send_signal(signal.SIGINT)
            assert "The task goes on." in calling.stderr.read()
            assert calling.wait() == ExitCode.INTERRUPTED


@both_loops
def test_a_killed_call_goes_on_in_another_process(url: str, loop: str, tmp_path: Path) -> None:
    """REQ.4, REQ.6: the same task, at whatever moment the first process died."""
    go, job = tmp_path / "go", tmp_path / "job.json"
    arguments = forms(CHANNEL, after=str(go))
    with running("call", url, "ask", arguments, "--save", str(job), "--json", "--watch") as calling:
        assert calling.stdout is not None
        task_id = json.loads(calling.stdout.readline())["task"]["taskId"]
        calling.kill()
    assert json.loads(job.read_text(encoding="utf-8"))["taskId"] == task_id
    go.touch()
    resumed = run("resume", str(job), "--answer", "*=accept", "--json", "--loop", loop)
    assert resumed.code == ExitCode.COMPLETED
    assert resumed.lines[-1]["taskId"] == task_id
    assert not job.exists(), "the task is over"


def test_a_reference_is_kept_while_the_task_may_go_on(url: str, tmp_path: Path) -> None:
    job = tmp_path / "job.json"
    with running("call", url, "wait", "--save", str(job)) as calling:
        assert calling.stderr is not None
        assert "working" in calling.stderr.readline()
    kept = json.loads(job.read_text(encoding="utf-8"))
    again = run("call", url, "wait", "--save", str(job))
    assert (again.code, json.loads(job.read_text(encoding="utf-8"))) == (ExitCode.USAGE, kept)
    assert "is there already" in again.err
    assert run("resume", str(job), "--timeout", "1").code == ExitCode.LOST
    assert run("cancel", url, kept["taskId"]).code == ExitCode.COMPLETED
    assert run("resume", str(job)).code == ExitCode.CANCELLED
    assert not job.exists()


def test_a_reference_is_kept_when_its_time_is_over_and_the_server_away(tmp_path: Path) -> None:
    """REQ.5: expired; but the server may keep the task for longer than it said."""
    job = tmp_path / "job.json"
    reference = {"schema": 1, "endpoint": "http://127.0.0.1:1/mcp", "taskId": "t", "tool": "say", "ttlMs": 1}
    times = {"capabilities": {}, "createdMs": 1_700_000_000_000, "pollIntervalMs": 1, "keys": {}}
    job.write_text(json.dumps(reference | times), encoding="utf-8")
    ran = run("resume", str(job))
    assert ran.code == ExitCode.EXPIRED
    assert "Its time is over, and nothing was heard of it." in ran.err
    assert f"To go on with it:  mcp-tasks resume {job}" in ran.err
    [outcome] = run("resume", str(job), "--json").lines
    assert (outcome["outcome"], "reason" in outcome) == ("expired", True)
    assert job.exists()


def test_a_reference_that_cannot_be_saved_stops_the_command(url: str, tmp_path: Path) -> None:
    """What could not be resumed must be known before the process dies, not after."""
    go, job = tmp_path / "go", tmp_path / "folder" / "job.json"
    job.parent.mkdir()
    command = ["call", url, "ask", forms(CHANNEL, after=str(go)), "--save", str(job), "--answer", "*=accept"]
    with running(*command) as calling:
        assert calling.stderr is not None
        assert "working" in calling.stderr.readline()
        job.unlink()
        job.mkdir()
        go.touch()
        said = calling.stderr.read()
        assert calling.wait() == ExitCode.TROUBLE
    assert f"Error: Cannot write {job}: " in said
    assert "The task goes on." in said


def test_a_second_signal_ends_it_at_once(tmp_path: Path) -> None:
    """Whatever the first one waits for: a server that does not end when its stdin does, and is killed now."""
    server = tmp_path / "stubborn.py"
    server.write_text(
        "import signal, sys, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "print('ready', file=sys.stderr, flush=True)\n"
        "sys.stdin.read()\n"
        "print('told to end', file=sys.stderr, flush=True)\n"
        "time.sleep(3600)\n",
        encoding="utf-8",
    )
    with running("call", "--stdio", shlex.join([sys.executable, str(server)]), "say") as calling:
        assert calling.stderr is not None
        assert calling.stderr.readline() == "ready\n"
        calling.send_signal(signal.SIGTERM)
        assert calling.stderr.readline() == "told to end\n"
        calling.send_signal(signal.SIGTERM)
        assert calling.wait() == ExitCode.TERMINATED
        assert calling.stderr.read() == "", "to its end, which the server would have kept away"


# -- what is not installed ---------------------------------------------------------------------------------


def without(absent: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command where a package is not installed."""
    program = f"""
import sys
sys.modules[{absent!r}] = None
sys.argv[1:] = {list(arguments)!r}
from mcp_tasks_adapters.cli import main
main()
"""
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )


@pytest.mark.parametrize(
    ("absent", "options", "advice"),
    [
        ("h11", [], "this needs h11, which is not installed: pip install 'mcp-tasks-proto[cli]'"),
        (
            "trio",
            ["--loop", "trio"],
            "this needs trio, which is not installed: pip install 'mcp-tasks-proto[trio]'",
        ),
        ("rich", [], "mcp-tasks needs rich, which is not installed: pip install 'mcp-tasks-proto[cli]'"),
    ],
)
def test_names_the_extra_that_is_missing(url: str, absent: str, options: list[str], advice: str) -> None:
    ran = without(absent, "tools", url, *options)
    assert ran.returncode == 1
    assert advice in ran.stderr
    assert "Traceback" not in ran.stderr


def test_asyncio_needs_no_trio(url: str) -> None:
    assert without("trio", "call", url, "describe").stdout == '{\n  "lamp": "on"\n}\n'


# -- stdio ---------------------------------------------------------------------------------------------------


@both_loops
def test_starts_a_server_on_stdio(farm: Path, loop: str) -> None:
    command = shlex.join([*MCP_TASKS, "serve", f"{farm}:server", "--stdio", "--loop", loop])
    ran = run("call", "--stdio", command, "ask", forms(CHANNEL), "--answer", "q0=accept", "--loop", loop)
    assert ran.code == ExitCode.COMPLETED
    assert json.loads(ran.out)["answers"][0]["content"] == {"channel": "private"}
    assert run("tools", "--stdio", command, "--loop", loop).out.startswith("say  What it says\n")


@both_loops
def test_a_saved_task_of_such_a_server_is_gone_on_with(farm: Path, loop: str, tmp_path: Path) -> None:
    """Its command is typed again: a file that came from somewhere must not decide what is run."""
    job, store = tmp_path / "job.json", tmp_path / "tasks.db"
    command = shlex.join([*MCP_TASKS, "serve", f"{farm}:server", "--stdio", "--store", f"sqlite:{store}"])
    with running("call", "--stdio", command, "wait", "--save", str(job), "--loop", loop) as calling:
        assert calling.stderr is not None
        while "working" not in calling.stderr.readline():
            pass
        calling.send_signal(signal.SIGINT)
        assert f"mcp-tasks resume --stdio {shlex.quote(command)} {job}" in calling.stderr.read()
    ran = run("resume", str(job), "--loop", loop)
    assert (ran.code, ran.out) == (ExitCode.USAGE, "")
    assert f"mcp-tasks resume --stdio {shlex.quote(command)} {job}" in ran.err
    ran = run("resume", "--stdio", command, str(job), "--loop", loop)
    assert ran.code == ExitCode.CANCELLED, "its work ended with the server"
    assert not job.exists()


def test_a_server_that_cannot_be_started() -> None:
    ran = run("call", "--stdio", "no-such-command --at-all", "say")
    assert (ran.code, ran.out) == (ExitCode.TROUBLE, "")
    assert ran.err == "Error: The server cannot be started: No such file or directory: no-such-command.\n"


def test_a_server_that_dies(tmp_path: Path) -> None:
    ran = run("call", "--stdio", f"{sys.executable} -c pass", "say", "--timeout", "20")
    assert ran.code in (ExitCode.FAILED, ExitCode.LOST)
    assert "Traceback" not in ran.err
