"""The client commands, run: from what was typed to an exit code."""

from __future__ import annotations

import shlex
import signal
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import click
from attrs import frozen
from rich.console import Console

from mcp_tasks_adapters.cli.client import loops
from mcp_tasks_adapters.cli.client.arguments import InputError, read_arguments, read_object
from mcp_tasks_adapters.cli.client.exit_codes import ExitCode
from mcp_tasks_adapters.cli.client.log import kept_log
from mcp_tasks_adapters.cli.client.loops import Loop
from mcp_tasks_adapters.cli.client.machine import JsonScreen
from mcp_tasks_adapters.cli.client.people import PeopleScreen
from mcp_tasks_adapters.cli.client.place import STDIO, Place, read_headers, recording, tracing
from mcp_tasks_adapters.cli.client.prepared import PreparedAnswers
from mcp_tasks_adapters.cli.client.reference_file import ReferenceFile
from mcp_tasks_adapters.cli.client.screen import Screen
from mcp_tasks_adapters.cli.client.session import Answering, Session, TroubleError
from mcp_tasks_adapters.cli.client.signals import StopSignal
from mcp_tasks_adapters.cli.client.terminal import somebody_is_there
from mcp_tasks_proto.legacy.messages import Era

__all__ = ["run"]

Job = Callable[[Session, Loop], Awaitable[ExitCode]]


@frozen(kw_only=True)
class Plan:
    """What a command is about to do."""

    place: Place
    job: Job
    every_view: bool = False
    several: bool = False
    """Whether more than one task is waited for."""
    save: ReferenceFile | None = None


@frozen(kw_only=True)
class Typed:
    """What was typed: the words, and every option of any command."""

    words: Sequence[str]
    stdio: str | None
    headers: Sequence[str]
    ca_file: str | None
    as_json: bool
    trace: str | None
    record: str | None
    loop: str
    era: Era | None
    watch: bool = False
    timeout: float | None = None
    save: str | None = None
    answers: Sequence[str] = ()
    answers_file: str | None = None

    def place(self, usage: str) -> tuple[Place, Sequence[str]]:
        """Return the server, and the words that are left. Raises :class:`InputError`."""
        if self.stdio is not None:
            return self.place_at(f"{STDIO}{self.stdio}"), self.words
        if not self.words:
            raise _misuse(usage)
        return self.place_at(self.words[0]), self.words[1:]

    def place_and_task(self, usage: str) -> tuple[Place, str]:
        """Return the server and the one task. Raises :class:`InputError`."""
        place, rest = self.place(usage)
        if len(rest) != 1:
            raise _misuse(usage)
        return place, rest[0]

    def place_at(self, endpoint: str) -> Place:
        """Return the server at an endpoint. Raises :class:`InputError`."""
        return Place.of(endpoint, read_headers(self.headers), self.era, self.ca_file)

    def answering(self) -> Answering:
        """Return who answers questions. Raises :class:`InputError`."""
        prepared = PreparedAnswers.read(self.answers, self.answers_file)
        return Answering(prepared=prepared, somebody_is_there=somebody_is_there())


def run(name: str, **options: Any) -> ExitCode:
    """Run the command of this name; say what is wrong, if anything is."""
    typed = Typed(**options)
    try:
        return _carry_out(_PLANS[name](typed), typed)
    except InputError as error:
        return _explained(error)


def _explained(error: InputError | TroubleError) -> ExitCode:
    click.echo(f"Error: {error}", err=True)
    return ExitCode.USAGE if isinstance(error, InputError) else ExitCode.TROUBLE


def _carry_out(plan: Plan, typed: Typed) -> ExitCode:
    err = Console(stderr=True, highlight=False)
    stop = StopSignal()
    stop.listen()
    screen: Screen
    if typed.as_json:
        screen = JsonScreen(every_view=plan.every_view, stop=stop, err=err)
    else:
        out = Console(highlight=False)
        screen = PeopleScreen(
            every_view=plan.every_view,
            several=plan.several,
            modern_only=typed.era == "modern",
            stop=stop,
            out=out,
            err=err,
        )
    with tracing(typed.trace) as on_trace, recording(typed.record) as record:
        session = Session(
            place=plan.place,
            screen=screen,
            on_trace=on_trace,
            record=record,
            save=plan.save,
            timeout=typed.timeout,
        )
        try:
            with kept_log():
                code = loops.run(typed.loop, partial(plan.job, session), stop)
            if code is not None:
                return code
            code = ExitCode.INTERRUPTED if stop.number == signal.SIGINT else ExitCode.TERMINATED
        except (InputError, TroubleError) as error:
            code = _explained(error)
        session.left(code)
        return code


# -- the commands --------------------------------------------------------------------------------------------


def _tools(typed: Typed) -> Plan:
    usage = "tools URL"
    place, rest = typed.place(usage)
    if rest:
        raise _misuse(usage)
    return Plan(place=place, job=Session.tools)


def _get(typed: Typed) -> Plan:
    place, task_id = typed.place_and_task("get URL TASK_ID")
    return Plan(place=place, job=lambda session, loop: session.get(task_id, loop))


def _cancel(typed: Typed) -> Plan:
    place, task_id = typed.place_and_task("cancel URL TASK_ID")
    return Plan(place=place, job=lambda session, loop: session.cancel(task_id, loop))


def _update(typed: Typed) -> Plan:
    usage = "update URL TASK_ID ANSWERS"
    place, rest = typed.place(usage)
    if len(rest) != 2:
        raise _misuse(usage)
    task_id, answers = rest[0], read_object(rest[1], "ANSWERS")
    return Plan(place=place, job=lambda session, loop: session.update(task_id, answers, loop))


def _call(typed: Typed) -> Plan:
    usage = "call URL TOOL [ARGS]..."
    place, rest = typed.place(usage)
    if not rest:
        raise _misuse(usage)
    tool, arguments, answering = rest[0], read_arguments(rest[1:]), typed.answering()
    save = None
    if typed.save is not None:
        save = ReferenceFile(typed.save)
        save.claim()
    return Plan(
        place=place,
        job=lambda session, loop: session.call(tool, arguments, answering, loop),
        every_view=typed.watch,
        save=save,
    )


def _resume(typed: Typed) -> Plan:
    answering = typed.answering()
    if len(typed.words) == 1 and (typed.stdio is None or Path(typed.words[0]).is_file()):
        save = ReferenceFile(typed.words[0])
        reference = save.load()
        if typed.era == "modern" and reference.get("era") == "legacy":
            raise InputError(f"The task of {save.path} is one of 2025-11-25: leave out --era modern.")
        return Plan(
            place=_place_of(reference, save, typed),
            job=lambda session, loop: session.resume(reference, answering, loop),
            every_view=typed.watch,
            save=save,
        )
    place, task_id = typed.place_and_task("resume FILE, or mcp-tasks resume URL TASK_ID")
    return Plan(
        place=place,
        job=lambda session, loop: session.take_over(task_id, answering, loop),
        every_view=typed.watch,
    )


def _place_of(reference: Mapping[str, Any], save: ReferenceFile, typed: Typed) -> Place:
    """Return the server of a saved task. Raises :class:`InputError`: no file decides what is run."""
    if typed.stdio is not None:
        return typed.place_at(f"{STDIO}{typed.stdio}")
    place = typed.place_at(reference["endpoint"])
    if place.is_started_here:
        raise InputError(
            f"The server of {save.path} is one that is started here. If its command is to be run:\n"
            f"  mcp-tasks resume {place.typed} {shlex.quote(str(save.path))}"
        )
    return place


def _watch(typed: Typed) -> Plan:
    usage = "watch URL TASK_ID..."
    place, task_ids = typed.place(usage)
    if not task_ids:
        raise _misuse(usage)
    return Plan(
        place=place,
        job=lambda session, loop: session.watch(task_ids, loop),
        every_view=True,
        several=len(set(task_ids)) > 1,
    )


def _misuse(usage: str) -> InputError:
    name = usage.partition(" ")[0]
    return InputError(
        f"it is mcp-tasks {usage}, or with --stdio COMMAND in place of URL.\nTry 'mcp-tasks {name} --help'."
    )


_PLANS: Final[Mapping[str, Callable[[Typed], Plan]]] = {
    "tools": _tools,
    "call": _call,
    "resume": _resume,
    "get": _get,
    "cancel": _cancel,
    "update": _update,
    "watch": _watch,
}
