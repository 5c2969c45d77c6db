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
from mcp_tasks_adapters.cli.kit.report import JsonReport, PeopleReport, ProgressLine
from mcp_tasks_adapters.cli.kit.selection import Selection, select
from mcp_tasks_adapters.cli.reports import reporting
from mcp_tasks_adapters.http_exchange import HttpAddress
from mcp_tasks_adapters.kit import Progress
from mcp_tasks_proto.testing.kit import CHECKS, Kit, KitSettings, Role, ToolCall, Verdict

__all__ = ["ExitCode", "run"]

Examination = Callable[[Progress], Awaitable[Kit]]

SHOWN_CHARS: Final = 300
"""The most that is shown of why nobody answers."""
LISTED_CHARS: Final = 500
"""The most that is told of the tools that there are."""

ROLES_BY_OPTION: Final = {role.value.replace("-", "_"): role for role in Role}


class ExitCode(IntEnum):
    """How the command ends."""

    NOTHING_FAILED = 0
    SOMETHING_FAILED = 1
    USAGE = 2
    NOT_EXAMINED = 3


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
    only: Sequence[str],
    accepted: Sequence[str],
    required: Sequence[str],
    **typed: Any,
) -> int:
    """Examine a server and report; say what is wrong with what was typed, if anything is."""
    with ExitStack() as stack:
        try:
            settings = _settings(**typed)
            selection = select(only=only, accepted=accepted, required=required, strength=strength)
            module = import_module(f"mcp_tasks_adapters.{loop}_h11.kit")
            if stdio is not None:
                if url is not None or headers or other_headers:
                    raise InputError("--stdio takes the place of URL, and has no headers.")
                stderr = _log(server_log, stack)
                examination = _on_stdio(module, _words(stdio), settings, stderr, selection)
            elif url is not None:
                examination = _over_http(module, url, settings, headers, other_headers, selection)
            else:
                raise InputError("it is mcp-tasks kit URL, or mcp-tasks kit --stdio COMMAND.")
        except InputError as error:
            click.echo(f"Error: {error}", err=True)
            return ExitCode.USAGE
        unheard = stdio is not None and server_log is None
        return _examine(examination, loop, as_json=as_json, selection=selection, unheard=unheard)


def _examine(
    examination: Examination, loop: str, *, as_json: bool, selection: Selection, unheard: bool
) -> int:
    stop = StopSignal()
    stop.listen()
    seen: list[Kit] = []
    with ProgressLine(Console(stderr=True, highlight=False), selection) as line:

        def progress(kit: Kit) -> None:
            seen[:] = [kit]
            line.show(kit)

        loops.run(loop, lambda _: examination(progress), stop)
    if not seen:
        return 128 + (stop.number or 0)
    (kit,) = seen
    if kit.unreachable is not None:
        click.echo(f"Nobody answers: {one_line(kit.unreachable, SHOWN_CHARS)}.", err=True)
        if unheard:
            click.echo("--server-log FILE keeps what the server says on its stderr.", err=True)
        return ExitCode.NOT_EXAMINED
    if kit.unlisted:
        click.echo(f"Error: {_unlisted(kit)}", err=True)
        return ExitCode.USAGE
    findings = selection.reported(kit.findings)
    report = JsonReport(selection) if as_json else PeopleReport(Console(highlight=False), selection)
    with reporting(ExitCode.USAGE):
        report.show(findings, kit, interrupted=stop.number is not None)
    if stop.number is not None:
        return 128 + stop.number
    failed = any(map(selection.counts, findings)) or selection.not_passed(selection.rules_of(findings))
    if failed:
        return ExitCode.SOMETHING_FAILED
    # With --only it is for --require to say what has to be seen.
    everything = len(kit.checks) == len(CHECKS)
    seen_nothing = everything and all(one.verdict is Verdict.NOT_OBSERVABLE for one in findings)
    return ExitCode.NOT_EXAMINED if kit.out_of_time or seen_nothing else ExitCode.NOTHING_FAILED


def _unlisted(kit: Kit) -> str:
    """Say which tools were named in vain, and which there are."""
    named = " and ".join(map(repr, kit.unlisted))
    listed = one_line(", ".join(kit.desk.tools), LISTED_CHARS)
    return f"the server lists no tool {named}; it lists {listed or 'none'}. No tool was called."


# -- what was typed ------------------------------------------------------------------------------------------


def _over_http(
    module: Any,
    url: str,
    settings: KitSettings,
    headers: Sequence[str],
    other_headers: Sequence[str],
    selection: Selection,
) -> Examination:
    try:
        HttpAddress.parse(url)
    except ValueError as error:
        raise InputError(f"{url!r} is no server: {error}.") from None
    own, other = read_headers(headers), read_headers(other_headers)

    def examine(progress: Progress) -> Awaitable[Kit]:
        found: Awaitable[Kit] = module.examine_http(
            url,
            settings,
            headers=own,
            other_headers=other or None,
            progress=progress,
            checks=selection.checks,
        )
        return found

    return examine


def _on_stdio(
    module: Any, command: Sequence[str], settings: KitSettings, stderr: Any, selection: Selection
) -> Examination:
    def examine(progress: Progress) -> Awaitable[Kit]:
        found: Awaitable[Kit] = module.examine_stdio(
            command, settings, stderr=stderr, progress=progress, checks=selection.checks
        )
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
    for option, role in ROLES_BY_OPTION.items():
        if role in calls and calls[role].tool in skipped:
            both = f"--skip and --{option.replace('_', '-')} name {calls[role].tool!r}"
            raise InputError(f"{both}: it is to be called, or it is not.")
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
