"""What a client command shows to a person: results on stdout, everything else on stderr."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import Any, Final

import click
from rich.console import Console
from rich.text import Text

from mcp_tasks_adapters.cli.client.exit_codes import ExitCode
from mcp_tasks_adapters.cli.client.harmless import cut, harmless, one_line
from mcp_tasks_adapters.cli.client.passing_on import lines_passed_on
from mcp_tasks_adapters.cli.client.progress import LivePanel, Panel, PlainPanel, Watched, duration
from mcp_tasks_adapters.cli.client.questions import details, headline
from mcp_tasks_adapters.cli.client.results import as_json, result_lines
from mcp_tasks_adapters.cli.client.screen import Remains, Say
from mcp_tasks_adapters.cli.client.signals import StopSignal
from mcp_tasks_adapters.client import (
    Cancelled,
    Completed,
    Expired,
    Failed,
    Fault,
    InputRequest,
    ObservationLost,
    Outcome,
    TaskView,
)
from mcp_tasks_adapters.clock import unix_ms
from mcp_tasks_proto.errors import ErrorCode
from mcp_tasks_proto.wire.schema import unstructure

__all__ = ["PeopleScreen", "conversation_with"]

LINES_HELD_BACK: Final = 1000
"""While a question is on the screen; of more, the last ones are kept."""

DESCRIPTION_CHARS: Final = 20_000
"""The most that is shown of what a server says of a tool."""

HINTS: Final[Mapping[int, str]] = {
    **dict.fromkeys((401, 403), "The server wants to know who you are: --header 'Authorization: Bearer …'"),
    **dict.fromkeys(
        (301, 302, 303, 307, 308), "It redirects, and redirects are not followed: call where it leads to."
    ),
    **dict.fromkeys(
        (404, 405), "Is that the path of its endpoint? Many servers have it at /mcp: http://HOST:PORT/mcp"
    ),
}
"""What to do about an HTTP status."""

WHO_VOUCHES: Final = "Where an authority of your own vouches for it: --ca-file FILE, with its certificate."

WRONG_ERA: Final = (
    "Only 2026-07-28 is spoken, for --era says so; without it the server is asked what it speaks."
)


class PeopleScreen:
    """Shows it to a person. ``every_view``: each view of a task gets a line that stays.

    ``several``: more than one task is waited for, so that results need a name. ``modern_only``: no other era
    is spoken, which may be why something fails. ``stop`` tells a question that
    is withdrawn from one that is left.
    """

    def __init__(
        self,
        *,
        every_view: bool,
        several: bool,
        modern_only: bool = False,
        stop: StopSignal,
        out: Console,
        err: Console,
    ) -> None:
        self._every_view = every_view
        self._several = several
        self._modern_only = modern_only
        self._stop = stop
        self._out = out
        self._err = err
        self._asking = False
        self._to_say: deque[Text] = deque(maxlen=LINES_HELD_BACK)
        moves = sys.stderr.isatty() and not err.is_dumb_terminal
        self.panel: Panel = LivePanel(err) if moves else PlainPanel(err)

    # -- single requests -----------------------------------------------------------------------------------

    def tools(self, tools: Sequence[Mapping[str, Any]]) -> None:
        if not tools:
            self.note("The server has no tools.")
        for number, tool in enumerate(tools):
            self._print(*([Text()] if number else []), *_tool_lines(tool))

    def task(self, view: TaskView) -> None:
        self._print(Text.assemble((one_line(view.task_id), "bold"), "  ", _status(view)))
        for name, value in unstructure(view).items():
            if name in {"createdAt", "lastUpdatedAt", "ttlMs", "pollIntervalMs"}:
                self._print(Text.assemble((f"  {name}: ", "dim"), one_line(str(value))))
        for key, request in (view.input_requests or {}).items():
            self._print(Text.assemble("  asks ", (one_line(key), "bold cyan"), f": {headline(request)}"))
            self._print(*(Text(f"    {line}") for line in details(request)))
        if view.result is not None:
            self._result(view.result)
        if view.error is not None:
            self._print(as_json(view.error.to_wire()))

    def acknowledged(self, task_id: str, sentence: str) -> None:
        self.note(sentence)

    # -- while a call is waited for --------------------------------------------------------------------------

    def view(self, watched: Watched, view: TaskView) -> None:
        if self._every_view and isinstance(self.panel, LivePanel):  # the other prints them anyway
            when = duration(unix_ms() - watched.since_ms)
            self._say(Text.assemble((f"{watched.name}  ", "bold"), (f"{when:>6}  ", "dim"), _status(view)))

    def notification(self, watched: Watched, method: str, params: Mapping[str, Any]) -> None:
        if method == "notifications/message" and "data" in params:
            logged = params.get("data")
            data = logged if isinstance(logged, str) else as_json(logged).plain
            level = one_line(str(params.get("level", "log")))
            self._say(Text.assemble((f"{level}: ", "dim"), one_line(data)))

    @contextmanager
    def asking(self, request: InputRequest, stays_open: Callable[[], bool]) -> Iterator[Say]:
        self.panel.pause()
        self._asking = True
        try:
            with conversation_with(self._err, request, self._stop, stays_open) as say:
                yield say
        finally:
            self._asking = False
            self._say_what_waits()
            self.panel.resume()

    def answered(self, request: InputRequest, response: Mapping[str, Any], *, by: str) -> None:
        key, message = one_line(request.key), one_line(request.message or "")
        if by == "script":
            self._say(Text(f"Asked {key!r}: {message} Answered as prepared: {response.get('action')}."))
        elif by == "nobody":
            self._say(
                Text(
                    f"Asked {key!r}: {message} Nobody is here to answer, so it was cancelled; "
                    f"to answer from a script: --answer {key}=JSON",
                    "yellow",
                )
            )

    # -- ends ------------------------------------------------------------------------------------------------

    def outcome(self, watched: Watched, outcome: Outcome, code: ExitCode, remains: Remains) -> None:
        name = f"{watched.name}: " if self._several else ""
        match outcome:
            case Completed(result=result) if code is ExitCode.TOOL_ERROR:
                self._error(f"{name}The tool reports an error:")
                for line in result_lines(result):
                    self._say(Text(_for_a_terminal(line).plain, "red"))
            case Completed(result=result):
                if self._several:
                    self._print(Text(f"{name}completed", "bold green"))
                elif isinstance(self.panel, LivePanel) and watched.view is not None and not self._every_view:
                    self._say(
                        Text(
                            f"{watched.name} completed after {duration(unix_ms() - watched.since_ms)}", "dim"
                        )
                    )
                self._result(result)
            case Failed():
                self._failed(name, outcome)
            case Cancelled(view=view):
                self._say(Text(f"{name}Cancelled.{_last_words(view)}", "yellow"))
            case Expired(view=view, unheard=True):
                self._error(f"{name}Its time is over, and nothing was heard of it.{_last_words(view)}")
            case Expired(view=view):
                self._error(f"{name}The server does not know this task, or no longer.{_last_words(view)}")
            case ObservationLost(reason=reason):
                self._error(f"{name}What became of it is not known here: {one_line(reason)}.")
                self._hint(outcome.http_status)
        self._advise(remains)

    def left(self, code: ExitCode, remains: Sequence[Remains]) -> None:
        if self._stop.number is not None:
            self._say(Text("Stopped.", "yellow"))
        for one in remains:
            if one.task_id is not None or self._stop.number is not None:
                self._advise(one)

    def server_stderr(self) -> AbstractContextManager[int | None]:
        if isinstance(self.panel, LivePanel):
            return lines_passed_on(lambda line: self._say(Text(harmless(line), "dim")))
        return nullcontext()

    def note(self, sentence: str) -> None:
        self._say(Text(sentence))

    # -- details -------------------------------------------------------------------------------------------

    def _failed(self, name: str, failed: Failed) -> None:
        code = "" if failed.code is None else f" (code {failed.code})"
        self._error(f"{name}Failed: {one_line(failed.message)}{code}")
        if failed.data is not None:
            self._say(Text(as_json(failed.data).plain, "red"))
        if "certificate is not accepted" in failed.message:
            self._say(Text(WHO_VOUCHES))
        elif failed.fault is Fault.NETWORK:
            self._say(Text("Is the server running, and is that its address?"))
        elif failed.code is None or failed.http_status in (401, 403):
            self._hint(failed.http_status)
        refused = failed.code == ErrorCode.UNSUPPORTED_PROTOCOL_VERSION or failed.http_status == 400
        if self._modern_only and refused:
            self._say(Text(WRONG_ERA))

    def _hint(self, http_status: int | None) -> None:
        if hint := HINTS.get(http_status or 0):
            self._say(Text(hint))

    def _result(self, result: Mapping[str, Any]) -> None:
        for line in result_lines(result):
            if self._out.is_terminal:
                self._print(_for_a_terminal(line))
            else:
                click.echo(line if isinstance(line, str) else line.plain, color=True)  # nothing is cut out

    def _advise(self, remains: Remains) -> None:
        for sentence in remains.advice:
            self._say(Text(sentence))

    def _error(self, sentence: str) -> None:
        self._say(Text(sentence, "bold red"))

    def _print(self, *lines: Text) -> None:
        for line in lines:
            self._out.print(line, soft_wrap=True)

    def _say(self, line: Text) -> None:
        """Say it, once no question is on the screen: there the person's own line is the last."""
        self._to_say.append(line)
        if not self._asking:
            self._say_what_waits()

    def _say_what_waits(self) -> None:
        # Lines also come from the thread that reads a server's stderr.
        with suppress(IndexError):
            while True:
                self._err.print(self._to_say.popleft(), soft_wrap=True)


@contextmanager
def conversation_with(
    console: Console, request: InputRequest, stop: StopSignal, stays_open: Callable[[], bool]
) -> Iterator[Say]:
    """Show a question, with who asks it; when the block is cancelled, say why it needs no answer now."""

    def say(*lines: Text | str, end: str = "\n") -> None:
        for line in lines:
            console.print(Text(line) if isinstance(line, str) else line, end=end, soft_wrap=True)

    by = f"{one_line(request.tool)} at " if request.tool else ""
    console.print()
    console.rule(Text(f"{by}{one_line(request.endpoint)} asks", "bold yellow"), align="left", style="yellow")
    if request.again:
        say(Text("It was asked before, and not answered.", "dim"))
    try:
        yield say
    except BaseException:
        withdrawn = "The question was withdrawn: it needs no answer any more."
        open_still = stop.number is not None or stays_open()
        say("", Text("The question stays open." if open_still else withdrawn, "yellow"))
        raise
    finally:
        console.rule(style="yellow")


def _status(view: TaskView) -> Text:
    message = f"  {one_line(view.status_message)}" if view.status_message else ""
    return Text(f"{view.status.value.replace('_', ' ')}{message}")


def _last_words(view: TaskView | None) -> str:
    if view is None or not view.status_message:
        return ""
    return f" The last it said: {one_line(view.status_message)}"


def _for_a_terminal(line: str | Text) -> Text:
    """Return a line of a result such that a terminal can show it: a server's own words are made harmless."""
    return Text(harmless(line)) if isinstance(line, str) else line


def _tool_lines(tool: Mapping[str, Any]) -> Iterator[Text]:
    name, title = tool.get("name"), tool.get("title")
    heading = Text(one_line(str(name)), "bold cyan")
    if isinstance(title, str) and title.casefold() != str(name).casefold():
        heading.append(f"  {one_line(title)}", "bold")
    yield heading
    description = tool.get("description")
    if isinstance(description, str):
        for line in harmless(cut(description, DESCRIPTION_CHARS)).strip().splitlines():
            yield Text(f"  {line}")
    schema = tool.get("inputSchema")
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    if isinstance(schema, Mapping) and isinstance(properties, Mapping):
        required = schema.get("required")
        for argument, definition in properties.items():
            yield _argument_line(argument, definition, isinstance(required, list) and argument in required)


def _argument_line(name: str, definition: Any, required: bool) -> Text:
    """Return an argument as it is typed, and what is said of it."""
    members = definition if isinstance(definition, Mapping) else {}
    kind = members.get("type")
    kinds = " or ".join(map(str, kind)) if isinstance(kind, list) else str(kind or "json")
    equals = "=" if kind == "string" else ":="
    line = Text.assemble("    ", (f"{one_line(name)}{equals}", "bold"), one_line(kinds))
    if required:
        line.append("  required", "yellow")
    choices = members.get("enum")
    if isinstance(choices, list):
        line.append(f"  one of {one_line(', '.join(map(str, choices)))}")
    if isinstance(members.get("description"), str):
        line.append(f"  {one_line(members['description'])}", "dim")
    return line
