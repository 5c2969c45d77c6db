"""``mcp-tasks kit``, run: from what was typed to an exit code."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import ExitStack
from enum import IntEnum
from importlib import import_module
from typing import Any, Final

import click
from rich.console import Console

from mcp_tasks_adapters.cli.client import loops
from mcp_tasks_adapters.cli.client.arguments import InputError, read_json
from mcp_tasks_adapters.cli.client.harmless import one_line
from mcp_tasks_adapters.cli.client.place import read_headers
from mcp_tasks_adapters.cli.client.signals import StopSignal
from mcp_tasks_adapters.cli.kit.command import STRENGTHS
from mcp_tasks_adapters.cli.kit.report import JsonReport, PeopleReport, ProgressLine
from mcp_tasks_adapters.cli.reports import reporting
from mcp_tasks_adapters.http_exchange import HttpAddress
from mcp_tasks_adapters.kit import Progress
from mcp_tasks_proto.testing.kit import Kit, KitSettings, Role, ToolCall, Verdict

__all__ = ["ExitCode", "run"]

Examination = Callable[[Progress], Awaitable[Kit]]

SHOWN_CHARS: Final = 300
"""The most that is shown of why nobody answers."""

ROLES_BY_OPTION: Final = {role.value.replace("-", "_"): role for role in Role}


class ExitCode(IntEnum):
    """How the command ends."""

    NOTHING_FAILED = 0
    SOMETHING_FAILED = 1
    USAGE = 2
    NOTHING_SEEN = 3


def run(
    *,
    url: str | None,
    stdio: str | None,
    headers: Sequence[str],
    other_headers: Sequence[str],
    as_json: bool,
    server_log: str | None,
    loop: str,
    strength: str,
    **typed: Any,
) -> int:
    """Examine a server and report; say what is wrong with what was typed, if anything is."""
    with ExitStack() as stack:
        try:
            settings = _settings(**typed)
            module = import_module(f"mcp_tasks_adapters.{loop}_h11.kit")
            if stdio is not None:
                if url is not None or headers or other_headers:
                    raise InputError("--stdio takes the place of URL, and has no headers.")
                stderr = _log(server_log, stack)
                examination = _on_stdio(module, _words(stdio), settings, stderr)
            elif url is not None:
                examination = _over_http(module, url, settings, headers, other_headers)
            else:
                raise InputError("it is mcp-tasks kit URL, or mcp-tasks kit --stdio COMMAND.")
        except InputError as error:
            click.echo(f"Error: {error}", err=True)
            return ExitCode.USAGE
        return _examine(
            examination, loop, as_json=as_json, strengths=STRENGTHS[: STRENGTHS.index(strength) + 1]
        )


def _examine(examination: Examination, loop: str, *, as_json: bool, strengths: Sequence[str]) -> int:
    stop = StopSignal()
    stop.listen()
    seen: list[Kit] = []
    with ProgressLine(Console(stderr=True, highlight=False)) as line:

        def progress(kit: Kit) -> None:
            seen[:] = [kit]
            line.show(kit)

        loops.run(loop, lambda _: examination(progress), stop)
    if not seen:
        return 128 + (stop.number or 0)
    (kit,) = seen
    if kit.unreachable is not None:
        click.echo(f"Nobody answers: {one_line(kit.unreachable, SHOWN_CHARS)}.", err=True)
        return ExitCode.NOTHING_SEEN
    findings = [one for one in kit.findings if one.check.strength.value in strengths]
    report = JsonReport() if as_json else PeopleReport(Console(highlight=False))
    with reporting(ExitCode.USAGE):
        report.show(findings, kit.desk.calls, interrupted=stop.number is not None)
    if stop.number is not None:
        return 128 + stop.number
    verdicts = {one.verdict for one in findings}
    if Verdict.FAIL in verdicts:
        return ExitCode.SOMETHING_FAILED
    return ExitCode.NOTHING_FAILED if Verdict.PASS in verdicts else ExitCode.NOTHING_SEEN


# -- what was typed ------------------------------------------------------------------------------------------


def _over_http(
    module: Any, url: str, settings: KitSettings, headers: Sequence[str], other_headers: Sequence[str]
) -> Examination:
    try:
        HttpAddress.parse(url)
    except ValueError as error:
        raise InputError(f"{url!r} is no server: {error}.") from None
    own, other = read_headers(headers), read_headers(other_headers)

    def examine(progress: Progress) -> Awaitable[Kit]:
        found: Awaitable[Kit] = module.examine_http(
            url, settings, headers=own, other_headers=other or None, progress=progress
        )
        return found

    return examine


def _on_stdio(module: Any, command: Sequence[str], settings: KitSettings, stderr: Any) -> Examination:
    def examine(progress: Progress) -> Awaitable[Kit]:
        found: Awaitable[Kit] = module.examine_stdio(command, settings, stderr=stderr, progress=progress)
        return found

    return examine


def _words(command: str) -> Sequence[str]:
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise InputError(f"--stdio: {error}.") from None
    if not words:
        raise InputError("--stdio needs the command that starts the server.")
    return words


def _log(path: str | None, stack: ExitStack) -> Any:
    """Return where the stderr of a server goes."""
    if path is None:
        return subprocess.DEVNULL
    try:
        return stack.enter_context(open(path, "wb"))
    except OSError as error:
        raise InputError(f"--server-log: cannot write {path}: {error.strerror}.") from None


def _settings(
    *, wait: float, time_limit: float, no_search: bool, skipped: Sequence[str], **named: str | None
) -> KitSettings:
    calls = {
        ROLES_BY_OPTION[option]: _call(option, text) for option, text in named.items() if text is not None
    }
    return KitSettings(
        calls=calls,
        search=not no_search,
        skipped=frozenset(skipped),
        answer_ms=int(wait * 1000),
        task_ms=int(wait * 1000),
        total_ms=int(time_limit * 1000),
    )


def _call(option: str, text: str) -> ToolCall:
    """Read ``TOOL`` or ``TOOL=ARGS``."""
    tool, equals, given = text.partition("=")
    if not equals:
        return ToolCall(tool)
    what = f"The arguments of --{option.replace('_', '-')}"
    arguments = read_json(given, what)
    if not isinstance(arguments, Mapping):
        raise InputError(f"{what} must be a JSON object.")
    return ToolCall(tool, arguments)
