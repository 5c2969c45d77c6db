"""The client commands as a person at a terminal has them: asked, shown, interrupted, killed and resumed."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from mcp_tasks_adapters.cli.client.exit_codes import ExitCode

from tests.adapters.cli_client_harness import FARM, MCP_TASKS, Terminal, run, serving

CHANNEL: Final = {
    "type": "object",
    "properties": {"channel": {"type": "string", "enum": ["public", "private"], "default": "private"}},
    "required": ["channel"],
}
COUNT: Final = {"type": "object", "properties": {"count": {"type": "integer"}}, "required": ["count"]}

both_loops = pytest.mark.parametrize("loop", ["trio", "asyncio"])


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    file = tmp_path_factory.mktemp("farm") / "farm.py"
    file.write_text(FARM, encoding="utf-8")
    with serving(file) as url:
        yield url


def forms(*schemas: dict[str, Any], **more: Any) -> str:
    return json.dumps({"forms": schemas, **more})


def content_of(shown: str) -> Any:
    """Return the JSON that a command printed at the end."""
    return json.loads(shown[shown.index("{\n") :])


@both_loops
def test_asks_shows_progress_and_prints_the_result(url: str, loop: str, tmp_path: Path) -> None:
    go = tmp_path / "go"
    with Terminal("call", url, "ask", forms(CHANNEL, COUNT, after=str(go)), "--loop", loop) as terminal:
        terminal.expect("ask  working", "next poll in", "Waiting")
        go.touch()
        terminal.expect(f"ask at {url} asks", "Question 0?", "/decline", "/cancel")
        terminal.expect("channel  required", "1) public", "channel [private]> ")
        terminal.type("3")
        terminal.expect("'3' is not among the choices.", "channel [private]> ")
        terminal.type("1")
        terminal.expect("This is what will be sent:", "1) channel: public", "send> ")
        terminal.type("")
        terminal.expect("Question 1?", "count> ")
        terminal.type("7")
        terminal.expect("send> ")
        terminal.type("")
        code, shown = terminal.end()
    assert code == ExitCode.COMPLETED
    assert content_of(shown)["answers"] == [
        {"action": "accept", "content": {"channel": "public"}},
        {"action": "accept", "content": {"count": 7}},
    ]
    assert "ask completed after" in shown


def test_the_live_line_moves_and_keeps_to_its_line(url: str) -> None:
    """It is drawn anew while nothing happens; the count of seconds goes up."""
    with Terminal("call", url, "wait", columns=50) as terminal:
        terminal.expect("wait  working  1 s", "wait  working  2 s")
        assert "\n" not in terminal.text[terminal.text.index("wait  working  1 s") :]
        assert "\x1b[2K" in terminal.raw


@both_loops
@pytest.mark.parametrize(
    ("keys", "action", "said"),
    [
        ("/decline\r", "decline", "Declined: the server is told that you said no."),
        ("/cancel\r", "cancel", "Cancelled: the server is told that you did not answer."),
        ("\x04", "cancel", "Cancelled: the server is told that you did not answer."),
    ],
)
def test_declines_and_cancels(url: str, loop: str, keys: str, action: str, said: str) -> None:
    with Terminal("call", url, "ask", forms(CHANNEL), "--loop", loop) as terminal:
        terminal.expect("channel [private]> ")
        terminal.press(keys)
        terminal.expect(f"\n{said}\n")
        code, shown = terminal.end()
    assert (code, content_of(shown)) == (ExitCode.COMPLETED, {"answers": [{"action": action}]})


def test_what_was_typed_before_a_question_answers_nothing(url: str, tmp_path: Path) -> None:
    """An Enter that was meant for nothing in particular must not accept a default."""
    go = tmp_path / "go"
    with Terminal("call", url, "ask", forms(CHANNEL, after=str(go))) as terminal:
        terminal.expect("ask  working")
        terminal.type("", "", "typed ahead", "")
        terminal.expect("typed ahead")
        go.touch()
        terminal.expect("channel [private]> ")
        terminal.type("public")
        terminal.expect("1) channel: public", "send> ")
        terminal.type("/decline")
        code, shown = terminal.end()
    assert (code, content_of(shown)) == (ExitCode.COMPLETED, {"answers": [{"action": "decline"}]})


@both_loops
def test_several_questions_are_asked_one_by_one(url: str, loop: str) -> None:
    """INP.3: in the server's order, on either loop."""
    with Terminal("call", url, "ask_both", forms(CHANNEL, CHANNEL), "--loop", loop) as terminal:
        terminal.expect("First?", "channel [private]> ")
        terminal.type("public")
        terminal.expect("send> ")
        assert "Second?" not in terminal.text
        terminal.type("")
        terminal.expect("Second?", "channel [private]> ")
        terminal.type("/decline")
        code, shown = terminal.end()
    assert code == ExitCode.COMPLETED
    assert content_of(shown) == {
        "a": {"action": "accept", "content": {"channel": "public"}},
        "b": {"action": "decline"},
    }


@both_loops
def test_a_withdrawn_question_gives_the_terminal_back(url: str, loop: str, tmp_path: Path) -> None:
    """REQ.4: it disappears with a sentence; half an answer goes nowhere."""
    until = tmp_path / "until"
    arguments = json.dumps({"until": str(until), "form": CHANNEL})
    with Terminal("call", url, "give_up", arguments, "--loop", loop, reads_on=True) as terminal:
        terminal.expect("Still there?", "channel [private]> ")
        terminal.press("publ")
        terminal.expect("publ")
        until.touch()
        terminal.expect("The question was withdrawn: it needs no answer any more.", "went on without")
        terminal.type("")
        code, shown = terminal.end()
    assert code == ExitCode.COMPLETED
    assert "left: []" in shown


@both_loops
def test_a_question_stays_open_when_nobody_waits_any_more(url: str, loop: str) -> None:
    """REQ.7: the server still wants its answer, and somebody may go on."""
    with Terminal("call", url, "ask", forms(CHANNEL), "--timeout", "10", "--loop", loop) as terminal:
        terminal.expect("channel [private]> ", "The question stays open.", "The task goes on.")
        code, _ = terminal.end()
    assert code == ExitCode.LOST
    assert "withdrawn" not in terminal.text


@both_loops
def test_a_question_of_a_task_that_is_cancelled_is_withdrawn(url: str, loop: str, tmp_path: Path) -> None:
    """Trap 20."""
    job = tmp_path / "job.json"
    with Terminal("call", url, "ask", forms(CHANNEL), "--save", str(job), "--loop", loop) as terminal:
        terminal.expect("channel [private]> ")
        assert run("cancel", url, json.loads(job.read_text())["taskId"]).code == ExitCode.COMPLETED
        terminal.expect("The question was withdrawn", "Cancelled.")
        code, _ = terminal.end()
    assert code == ExitCode.CANCELLED
    assert not job.exists()


@both_loops
@pytest.mark.parametrize("at_a_question", [True, False])
def test_ctrl_c_stops_watching_and_says_how_to_go_on(
    url: str, loop: str, at_a_question: bool, tmp_path: Path
) -> None:
    go, job = tmp_path / "go", tmp_path / "job.json"
    arguments = forms(CHANNEL, after=str(go))
    with Terminal(
        "call", url, "ask", arguments, "--save", "job.json", "--loop", loop, cwd=tmp_path
    ) as terminal:
        terminal.expect("ask  working")
        if at_a_question:
            go.touch()
            terminal.expect("channel [private]> ")
        terminal.press("\x03")
        terminal.expect("Stopped.", "The task goes on.", "mcp-tasks resume job.json", "mcp-tasks cancel")
        code, shown = terminal.end()
    assert code == ExitCode.INTERRUPTED
    assert "withdrawn" not in terminal.text
    assert ("The question stays open." in terminal.text) is at_a_question
    assert "working" not in shown, "the live line does not come back"
    assert terminal.raw.rfind("\x1b[?25h") >= terminal.raw.rfind("\x1b[?25l"), "the cursor is there again"
    go.touch()
    with Terminal("resume", str(job), "--loop", loop) as terminal:
        again = terminal.expect("channel [private]> ")
        assert ("It was asked before, and not answered." in again) is at_a_question
        terminal.type("")
        terminal.expect("send> ")
        terminal.type("")
        code, shown = terminal.end()
    assert (code, content_of(shown)["answers"][0]["action"]) == (ExitCode.COMPLETED, "accept")
    assert not job.exists()


@both_loops
def test_a_killed_call_is_resumed_without_asking_twice(url: str, loop: str, tmp_path: Path) -> None:
    """REQ.4: the question that was answered before the process was killed is not asked again."""
    job = tmp_path / "job.json"
    with Terminal("call", url, "ask", forms(CHANNEL, COUNT), "--save", str(job), "--loop", loop) as terminal:
        terminal.expect("Question 0?", "channel [private]> ")
        terminal.type("public")
        terminal.expect("send> ")
        terminal.type("")
        terminal.expect("Question 1?", "count> ")
        terminal.kill()
    assert job.stat().st_mode & 0o777 == 0o600
    with Terminal("resume", str(job), "--loop", loop) as terminal:
        terminal.expect("It was asked before, and not answered.", "Question 1?", "count> ")
        terminal.type("3")
        terminal.expect("send> ")
        terminal.type("")
        code, shown = terminal.end()
    assert code == ExitCode.COMPLETED
    assert "Question 0?" not in terminal.text
    assert content_of(shown)["answers"] == [
        {"action": "accept", "content": {"channel": "public"}},
        {"action": "accept", "content": {"count": 3}},
    ]
    assert list(tmp_path.iterdir()) == []


def test_takes_over_a_task_by_its_id(url: str) -> None:
    with Terminal("call", url, "ask", forms(CHANNEL)) as terminal:
        terminal.expect("channel [private]> ")
        terminal.press("\x03")
        terminal.expect("mcp-tasks resume ")
        _, shown = terminal.end()
    command = re.search(r"mcp-tasks resume (?:-- )?(\S+) (\S+)", terminal.text)
    assert command is not None
    with Terminal("resume", "--", *command.groups()) as terminal:
        terminal.expect("channel [private]> ")
        terminal.type("public")
        terminal.expect("send> ")
        terminal.type("")
        code, shown = terminal.end()
    assert (code, content_of(shown)["answers"][0]["content"]) == (ExitCode.COMPLETED, {"channel": "public"})


@both_loops
def test_an_address_is_shown_and_agreed_to(url: str, loop: str) -> None:
    with Terminal("call", url, "visit", "--loop", loop) as terminal:
        terminal.expect(
            "Please pay.", "https://pay.example/x", "Nothing is opened for you", "agree? yes/no> "
        )
        terminal.type("")
        terminal.expect("Type yes or no, or /cancel.", "agree? yes/no> ")
        terminal.type("yes")
        code, shown = terminal.end()
    assert code == ExitCode.COMPLETED
    assert "it was accept" in shown


def test_json_keeps_the_conversation_off_stdout(url: str, tmp_path: Path) -> None:
    """Both are the terminal here; the JSON lines are whole ones all the same."""
    with Terminal("call", url, "ask", forms(CHANNEL), "--json", columns=200) as terminal:
        terminal.expect("channel [private]> ")
        terminal.type("")
        terminal.expect("send> ")
        terminal.type("")
        code, _ = terminal.end()
    assert code == ExitCode.COMPLETED
    events = [json.loads(line) for line in terminal.text.splitlines() if line.startswith('{"')]
    assert [event["event"] for event in events] == ["answer", "outcome"]
    assert (events[0]["by"], events[0]["action"]) == ("person", "accept")


def test_errors_are_red_and_a_servers_words_obey_nobody(url: str) -> None:
    with Terminal("call", url, "oops") as terminal:
        code, _ = terminal.end()
    assert code == ExitCode.TOOL_ERROR
    assert "\x1b[31mNo encoder for that" in terminal.raw
    with Terminal("call", url, "say", "text=a\x1b]0;title\x07b") as terminal:
        assert terminal.end()[0] == ExitCode.COMPLETED
    assert "a\\u001b]0;title\\u0007b" in terminal.text
    assert "\x1b]0;" not in terminal.raw


def test_every_change_can_be_made_to_stand(url: str, tmp_path: Path) -> None:
    with Terminal("call", url, "ask", forms(CHANNEL), "--watch") as terminal:
        terminal.expect("channel [private]> ")
        terminal.type("/nothing of the kind")
        terminal.expect("not among the choices", "channel [private]> ")
        assert "input required" not in terminal.text, "a change does not stand where something is typed"
        terminal.type("/decline")
        terminal.expect("input required  Begun")
        code, _ = terminal.end()
    assert code == ExitCode.COMPLETED
    assert re.search(r"ask +0 s  working  Begun\n", terminal.text)
    assert re.search(r"ask +\d+ s  completed  Got 0\n", terminal.text)


@both_loops
def test_a_server_started_here_does_not_write_into_the_live_line(loop: str, tmp_path: Path) -> None:
    file = tmp_path / "noisy.py"
    file.write_text(
        FARM + "\n\n@server.tool()\nasync def noisy(call):\n    async def run(task):\n"
        "        for number in range(3):\n            print(f'line {number}', file=sys.stderr, flush=True)\n"
        "            await task.update(f'Step {number}')\n            await pause(0.2)\n"
        "    return call.task(run)\n",
        encoding="utf-8",
    )
    command = shlex.join([*MCP_TASKS, "serve", f"{file}:server", "--stdio"])
    with Terminal("call", "--stdio", command, "noisy", "--loop", loop) as terminal:
        code, _ = terminal.end()
    assert code == ExitCode.COMPLETED
    for number in range(3):
        assert re.search(rf"(?:^|\n|\x1b\[2K)(?:\x1b\[[0-9;]*m)*line {number}(?:\x1b\[0m)?\r\n", terminal.raw)
