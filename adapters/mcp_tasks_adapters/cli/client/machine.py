"""What a client command shows to a program: one JSON object a line on stdout, and nothing else there."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import click
from rich.console import Console

from mcp_tasks_adapters.cli.client.exit_codes import ExitCode, outcome_name
from mcp_tasks_adapters.cli.client.harmless import harmless
from mcp_tasks_adapters.cli.client.people import conversation_with
from mcp_tasks_adapters.cli.client.progress import NoPanel, Panel, Watched
from mcp_tasks_adapters.cli.client.screen import Remains, Say
from mcp_tasks_adapters.cli.client.signals import StopSignal
from mcp_tasks_adapters.client import (
    Completed,
    Expired,
    Failed,
    Fault,
    InputRequest,
    ObservationLost,
    Outcome,
    TaskView,
)
from mcp_tasks_proto.wire.jsonrpc import encode
from mcp_tasks_proto.wire.schema import unstructure

__all__ = ["JsonScreen"]


class JsonScreen:
    """Prints what a program may want to know. ``every_view``: each view of a task that is waited for, too."""

    def __init__(self, *, every_view: bool, stop: StopSignal, err: Console) -> None:
        self.panel: Panel = NoPanel()
        self._every_view = every_view
        self._stop = stop
        self._err = err

    def tools(self, tools: Sequence[Mapping[str, Any]]) -> None:
        for tool in tools:
            _print(tool)

    def task(self, view: TaskView) -> None:
        _print(unstructure(view))

    def acknowledged(self, task_id: str, sentence: str) -> None:
        _print({"taskId": task_id, "acknowledged": True})

    def view(self, watched: Watched, view: TaskView) -> None:
        if self._every_view:
            _print({"event": "view", "task": unstructure(view)})

    def notification(self, watched: Watched, method: str, params: Mapping[str, Any]) -> None:
        if self._every_view:
            _print({"event": "notification", "method": method, "params": params})

    @contextmanager
    def asking(self, request: InputRequest, stays_open: Callable[[], bool]) -> Iterator[Say]:
        with conversation_with(self._err, request, self._stop, stays_open) as say:
            yield say

    def answered(self, request: InputRequest, response: Mapping[str, Any], *, by: str) -> None:
        action = response.get("action")
        _print({"event": "answer", "key": request.key, "request": request.raw, "action": action, "by": by})

    def outcome(self, watched: Watched, outcome: Outcome, code: ExitCode, remains: Remains) -> None:
        event = {"event": "outcome", "outcome": outcome_name(outcome), "exitCode": int(code)}
        _print(event | _task_id(remains) | _details(outcome))

    def left(self, code: ExitCode, remains: Sequence[Remains]) -> None:
        for one in remains or [Remains()]:
            _print({"event": "outcome", "outcome": "interrupted", "exitCode": int(code)} | _task_id(one))

    def server_stderr(self) -> AbstractContextManager[None]:
        return nullcontext()

    def note(self, sentence: str) -> None:
        """Say nothing: a program does not need it."""


def _task_id(remains: Remains) -> dict[str, Any]:
    return {} if remains.task_id is None else {"taskId": remains.task_id}


def _details(outcome: Outcome) -> dict[str, Any]:
    match outcome:
        case Completed(result=result):
            return {"result": result}
        case Failed(code=code, message=message, data=data, fault=fault):
            error = {"code": code, "message": message, "data": data}
            return {
                "error": {name: value for name, value in error.items() if value is not None},
                "fault": fault.value,
            }
        case Expired(unheard=True):
            return {"reason": "its time is over, and nothing was heard of it"}
        case ObservationLost(reason=reason, fault=None):
            return {"reason": reason}
        case ObservationLost(reason=reason, fault=Fault() as fault):
            return {"reason": reason, "fault": fault.value}
    return {}


def _print(value: Mapping[str, Any]) -> None:
    line = encode(value)
    click.echo(harmless(line.decode()) if sys.stdout.isatty() else line)  # the same JSON, either way
