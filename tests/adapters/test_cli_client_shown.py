"""What a client command shows: results, progress, and nothing that a terminal would obey."""

from __future__ import annotations

import io
import json
import logging
import os
import re
from typing import Any, Final

import pytest
from mcp_tasks_adapters.cli.client import progress
from mcp_tasks_adapters.cli.client.exit_codes import MEANINGS, ExitCode, exit_code, outcome_name
from mcp_tasks_adapters.cli.client.harmless import harmless, one_line
from mcp_tasks_adapters.cli.client.log import kept_log
from mcp_tasks_adapters.cli.client.passing_on import lines_passed_on
from mcp_tasks_adapters.cli.client.people import PeopleScreen
from mcp_tasks_adapters.cli.client.polls import PollTroubles
from mcp_tasks_adapters.cli.client.progress import (
    LivePanel,
    PlainPanel,
    Watched,
    duration,
    progress_line,
)
from mcp_tasks_adapters.cli.client.results import result_lines
from mcp_tasks_adapters.cli.client.screen import Remains
from mcp_tasks_adapters.cli.client.signals import StopSignal
from mcp_tasks_adapters.client import (
    Cancelled,
    Completed,
    Expired,
    Failed,
    Fault,
    ObservationLost,
    Outcome,
    TaskView,
    TraceEntry,
)
from rich.console import Console

from mcp_tasks_proto.lifecycle import Status

NOW_MS: Final = 1_800_000_000_000
ERASE: Final = "\x1b[2K"
SHOW_CURSOR: Final = "\x1b[?25h"


def view(status: Status = Status.WORKING, message: str | None = None) -> TaskView:
    moment = "2027-01-15T08:00:00.000Z"
    return TaskView(
        task_id="t", status=status, created_at=moment, last_updated_at=moment, status_message=message
    )


def plain_console(width: int = 80) -> tuple[Console, io.StringIO]:
    stream = io.StringIO()
    return Console(file=stream, highlight=False, width=width), stream


# -- harmless --------------------------------------------------------------------------------------------


def test_spells_out_what_a_terminal_would_obey() -> None:
    assert harmless("a\x1b[2J\x07\x9b1m\x7f\r") == "a\\u001b[2J\\u0007\\u009b1m\\u007f\\r"
    assert harmless("\u202egpj.exe\u2066\u200b") == "\\u202egpj.exe\\u2066\\u200b"
    assert harmless("\U000e0041") == "\\udb40\\udc41"


def test_cuts_what_is_very_long() -> None:
    """LIM.3: a server's words may be megabytes, and a live line is drawn eight times a second."""
    assert one_line("x" * 10_000_000) == "x" * 2_000 + "…"
    assert len(one_line(" x" * 5_000_000)) == 2_001
    assert one_line("x" * 5_000, most=5_000) == "x" * 5_000


def test_leaves_text_as_it_is() -> None:
    text = "Grüße, 世界!\n\tindented \N{GRINNING FACE}"
    assert harmless(text) == text
    assert harmless("two\r\nlines") == "two\nlines"
    assert one_line("  two\n\tlines\x1b ") == "two lines\\u001b"


def test_json_stays_the_same_json() -> None:
    value = {"a": "\x9b\u202e\U000e0041"}
    assert json.loads(harmless(json.dumps(value, ensure_ascii=False))) == value


# -- results ---------------------------------------------------------------------------------------------


def lines(result: dict[str, Any]) -> list[str]:
    return [line if isinstance(line, str) else line.plain for line in result_lines(result)]


def test_shows_text_as_it_is_and_describes_the_rest() -> None:
    blocks = [
        {"type": "text", "text": "Done [bold]\x1b\r\a"},
        {"type": "image", "mimeType": "image/png", "data": "QUJD" * 1000},
        {"type": "audio", "mimeType": "audio/wav", "data": "QUI="},
        {"type": "resource_link", "name": "log", "uri": "file:///log"},
        {"type": "resource", "resource": {"uri": "file:///a", "mimeType": "text/plain", "text": "inside"}},
        {"type": "resource", "resource": {"uri": "file:///b", "blob": "QUJD"}},
        {"type": "hologram"},
    ]
    assert lines({"content": blocks}) == [
        "Done [bold]\x1b\r\a",
        "[image  image/png  2.9 KiB]",
        "[audio  audio/wav  2 bytes]",
        "[link  log  file:///log]",
        "[resource  file:///a  text/plain]",
        "inside",
        "[resource  file:///b  3 bytes]",
        "[hologram]",
    ]


def test_shows_structured_content_once() -> None:
    repeated = {"type": "text", "text": '{"lamp":"on"}'}
    comment = {"type": "text", "text": "It is on."}
    result = {"content": [repeated, comment], "structuredContent": {"lamp": "on"}}
    assert lines(result) == ["It is on.", '{\n  "lamp": "on"\n}']
    assert lines({"content": [], "structuredContent": None}) == ["null"]


@pytest.mark.parametrize(
    "result",
    [
        {},
        {"content": None},
        {"content": [None, 7, {"type": 7}, {"type": "text"}, {"type": "resource", "resource": 1}]},
        {"content": [{"type": "text", "text": "[" * 100_000}], "structuredContent": []},
        {"content": [{"type": "image", "data": 7, "mimeType": []}]},
    ],
)
def test_shows_something_of_any_result(result: dict[str, Any]) -> None:
    """A peer cannot raise."""
    assert lines(result)


# -- progress --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("milliseconds", "shown"),
    [
        (-5, "0 s"),
        (59_999, "59 s"),
        (60_000, "1 min 00 s"),
        (3_599_999, "59 min 59 s"),
        (7_260_000, "2 h 01 min"),
    ],
)
def test_durations_are_for_people(milliseconds: int, shown: str) -> None:
    assert duration(milliseconds) == shown


@pytest.mark.parametrize(
    ("next_poll_ms", "shown"),
    [
        (NOW_MS + 2_500, "next poll in 2.5 s"),
        (NOW_MS + 29_000, "next poll in 29 s"),
        (NOW_MS, "asking the server"),
        (None, "asking the server"),
    ],
)
def test_a_line_says_how_a_task_stands_and_when_it_is_asked_next(
    next_poll_ms: int | None, shown: str
) -> None:
    watched = Watched(name="render", since_ms=NOW_MS - 12_000, next_poll_ms=lambda: next_poll_ms)
    watched.view = view(message="Frame 1/2\nand more\x1b[2J")
    line = progress_line(watched, NOW_MS)
    assert line.plain == f"render  working  12 s  {shown}  Frame 1/2 and more\\u001b[2J"


def test_a_line_says_what_goes_on_before_there_is_a_task() -> None:
    watched = Watched(name="render", since_ms=NOW_MS, note="3/7 Loading")
    assert progress_line(watched, NOW_MS + 1000).plain == "render  calling  1 s  3/7 Loading"


def test_a_line_says_why_nothing_is_heard() -> None:
    watched = Watched(name="render", since_ms=NOW_MS, next_poll_ms=lambda: NOW_MS + 4_000)
    watched.trouble = "HTTP 401"
    assert (
        progress_line(watched, NOW_MS).plain
        == "render  calling  0 s  next poll in 4.0 s  no answer: HTTP 401"
    )


@pytest.mark.parametrize(
    ("entry", "trouble"),
    [
        ({"event": "failed", "reason": "no connection"}, "no connection"),
        ({"event": "received", "http_status": 401}, "HTTP 401"),
        ({"event": "received", "http_status": 200, "message": {"result": {}}}, ""),
        ({"event": "received", "message": {"error": {"code": -32603, "message": "full"}}}, "full"),
        ({"event": "stopped"}, ""),
    ],
)
def test_polls_tell_how_they_fare(entry: dict[str, Any], trouble: str) -> None:
    told: list[tuple[str, str]] = []
    polls = PollTroubles(lambda task_id, trouble: told.append((task_id, trouble)))
    for request, method in [(1, "tasks/get"), (2, "tasks/update")]:
        message = {"method": method, "params": {"taskId": "t"}}
        polls.take(TraceEntry(at_ms=0, event="sent", request=request, message=message))
        polls.take(TraceEntry(at_ms=0, request=request, **entry))
    assert told == [("t", trouble)]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    now = [NOW_MS]
    monkeypatch.setattr(progress, "unix_ms", lambda: now[0])
    return now


def test_plain_lines_come_with_news_and_now_and_then_without(clock: list[int]) -> None:
    console, stream = plain_console(width=20)
    panel = PlainPanel(console)
    watched = Watched(name="render", since_ms=NOW_MS, next_poll_ms=lambda: clock[0] + 1000)
    panel.show(watched)
    panel.tick()
    assert stream.getvalue() == "", "most calls are answered at once"
    watched.view = view(message="Frame 1/2")
    panel.show(watched)
    panel.show(watched)
    clock[0] += 5_000
    panel.tick()
    watched.view = view(message="Frame 2/2")
    panel.show(watched)
    clock[0] += 15_000
    panel.tick()
    panel.drop(watched)
    clock[0] += 15_000
    panel.tick()
    assert stream.getvalue().splitlines() == [
        "render  working  0 s  next poll in 1.0 s  Frame 1/2",
        "render  working  5 s  next poll in 1.0 s  Frame 2/2",
        "render  working  20 s  next poll in 1.0 s  Frame 2/2",
    ]


def test_plain_lines_come_of_a_call_that_takes_its_time(clock: list[int]) -> None:
    console, stream = plain_console()
    panel = PlainPanel(console)
    panel.show(Watched(name="render", since_ms=NOW_MS))
    clock[0] += 2_000
    panel.tick()
    assert stream.getvalue() == "render  calling  2 s\n"


def controls_at_end(shown: str) -> set[str]:
    """Return the control codes after the last of the text."""
    controls = re.search(r"(?:\x1b\[[?0-9]*[A-Za-z]|[\r\n])*\Z", shown)
    assert controls is not None
    return set(re.findall(r"\x1b\[[?0-9]*[A-Za-z]", controls[0]))


def test_the_live_line_moves_keeps_to_its_line_and_clears_away(clock: list[int]) -> None:
    stream = io.StringIO()
    panel = LivePanel(Console(file=stream, force_terminal=True, width=50, highlight=False, _environ={}))
    watched = Watched(name="render", since_ms=NOW_MS, next_poll_ms=lambda: NOW_MS + 3_000)
    watched.view = view(message="x" * 100)
    panel.show(watched)
    clock[0] += 1_000
    panel.tick()
    shown = stream.getvalue()
    assert "next poll in 3.0" in shown
    assert "next poll in 2.0" in shown
    assert "x" * 50 not in shown
    panel.pause()
    paused = stream.getvalue()
    clock[0] += 1_000
    panel.tick()
    assert stream.getvalue() == paused
    assert {ERASE, SHOW_CURSOR} <= controls_at_end(paused)
    panel.resume()
    assert "next poll in 1.0" in stream.getvalue()
    panel.close()
    panel.resume()
    assert {ERASE, SHOW_CURSOR} <= controls_at_end(stream.getvalue())


# -- outcomes --------------------------------------------------------------------------------------------

OUTCOMES: Final[list[tuple[Outcome, ExitCode, str]]] = [
    (Completed({"content": []}), ExitCode.COMPLETED, "completed"),
    (Completed({"content": [], "isError": True}), ExitCode.TOOL_ERROR, "completed"),
    (Failed(code=-32603, message="x", fault=Fault.SERVER), ExitCode.FAILED, "failed"),
    (Cancelled(), ExitCode.CANCELLED, "cancelled"),
    (Expired(), ExitCode.EXPIRED, "expired"),
    (ObservationLost(reason="x"), ExitCode.LOST, "observation_lost"),
]


@pytest.mark.parametrize(("outcome", "code", "name"), OUTCOMES)
def test_every_outcome_has_a_code_and_a_name(outcome: Outcome, code: ExitCode, name: str) -> None:
    """REQ.6."""
    assert (exit_code(outcome), outcome_name(outcome)) == (code, name)


def test_every_code_is_explained() -> None:
    assert set(MEANINGS) == set(ExitCode)
    assert len({code for _, code, _ in OUTCOMES}) == len(OUTCOMES)


def screen(*, modern_only: bool = False) -> tuple[PeopleScreen, io.StringIO, io.StringIO]:
    (out, stdout), (err, stderr) = plain_console(), plain_console()
    people = PeopleScreen(
        every_view=False, several=False, modern_only=modern_only, stop=StopSignal(), out=out, err=err
    )
    return people, stdout, stderr


def test_an_unauthorized_call_says_what_to_do() -> None:
    people, _, stderr = screen()
    failed = Failed(code=None, message="the server answered HTTP 401", fault=Fault.CALLER, http_status=401)
    people.outcome(Watched(name="say", since_ms=NOW_MS), failed, ExitCode.FAILED, Remains())
    assert "--header 'Authorization: Bearer …'" in stderr.getvalue()


@pytest.mark.parametrize(
    ("status", "hint"),
    [(401, "--header 'Authorization"), (404, "at /mcp"), (307, "redirects are not followed"), (500, None)],
)
def test_says_what_to_do_about_a_status(status: int, hint: str | None) -> None:
    people, _, stderr = screen()
    watched = Watched(name="say", since_ms=NOW_MS)
    fault = Fault.SERVER if status == 500 else Fault.CALLER
    failed = Failed(code=None, message="without a message", fault=fault, http_status=status)
    people.outcome(watched, failed, ExitCode.FAILED, Remains())
    lost = ObservationLost("denied", fault=fault, http_status=status)
    people.outcome(watched, lost, ExitCode.LOST, Remains())
    assert stderr.getvalue().count("\n") == (2 if hint is None else 4)
    assert hint is None or stderr.getvalue().count(hint) == 2


@pytest.mark.parametrize(("code", "status"), [(-32022, None), (None, 400), (-32000, 400)])
@pytest.mark.parametrize("modern_only", [True, False])
def test_says_what_may_be_wrong_with_the_era_that_was_asked_for(
    code: int | None, status: int | None, modern_only: bool
) -> None:
    people, _, stderr = screen(modern_only=modern_only)
    failed = Failed(code=code, message="no", fault=Fault.CALLER, http_status=status)
    people.outcome(Watched(name="say", since_ms=NOW_MS), failed, ExitCode.FAILED, Remains())
    assert ("without it the server is asked" in stderr.getvalue()) is modern_only


def test_what_is_logged_again_and_again_is_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    """LIM.3: a server that writes nonsense to stdout may do so for days."""
    with kept_log():
        for number in range(100_000):
            logging.getLogger("mcp_tasks_adapters").warning("no message: %s", number % 50 if number else "x")
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 20
    assert said[1] == "mcp-tasks: no message: 1 (2000 times)"


def test_a_line_without_end_is_passed_on_in_parts() -> None:
    """LIM.3: what a server writes to stderr is not kept until it ends its line."""
    said: list[str] = []
    with lines_passed_on(said.append) as file, os.fdopen(os.dup(file), "wb") as stream:
        stream.write(b"x" * 1_000_000 + b"\nend\n")
    assert said == ["x" * 10_000] * 100 + ["", "end"]


@pytest.mark.parametrize(
    "tool",
    [
        {},
        {"name": 7, "title": [], "description": 7, "inputSchema": 7},
        {"name": "a\x1b[2J", "inputSchema": {"properties": {"x": 7, "y": {"type": [1], "enum": 7}}}},
        {"name": "b", "inputSchema": {"properties": [], "required": 7}},
    ],
)
def test_any_list_of_tools_can_be_shown(tool: dict[str, Any]) -> None:
    """A peer cannot raise, nor tell the terminal what to do."""
    people, stdout, _ = screen()
    people.tools([tool])
    assert "\x1b" not in stdout.getvalue()
