"""What a client command shows, whoever reads it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from attrs import field, frozen
from rich.text import Text

from mcp_tasks_adapters.cli.client.exit_codes import ExitCode
from mcp_tasks_adapters.cli.client.progress import Panel, Watched
from mcp_tasks_adapters.client import InputRequest, Outcome, TaskView

__all__ = ["Remains", "Say", "Screen"]


class Say(Protocol):
    """Shows lines of a conversation."""

    def __call__(self, *lines: Text | str, end: str = "\n") -> None: ...


@frozen(kw_only=True)
class Remains:
    """What is left of a call that is not waited for any more, and what can be done about it."""

    task_id: str | None = None
    """``None``: the call had not become a task."""
    advice: Sequence[str] = field(default=())
    """Sentences and commands for a person."""


class Screen(Protocol):
    """Everything a client command may show."""

    panel: Panel
    """Where what is waited for is shown."""

    def tools(self, tools: Sequence[Mapping[str, Any]]) -> None:
        """The tools of a server."""

    def task(self, view: TaskView) -> None:
        """A task, as it stands."""

    def acknowledged(self, task_id: str, sentence: str) -> None:
        """The server took note of what was asked of it."""

    def view(self, watched: Watched, view: TaskView) -> None:
        """There is a new view of a task that is waited for."""

    def notification(self, watched: Watched, method: str, params: Mapping[str, Any]) -> None:
        """The server says something on the way to its first answer."""

    def asking(self, request: InputRequest, stays_open: Callable[[], bool]) -> AbstractContextManager[Say]:
        """Make place for a conversation with the person at the terminal, for the length of a block.

        ``stays_open`` says of a block that is cancelled whether the server still waits for an answer.
        """

    def answered(self, request: InputRequest, response: Mapping[str, Any], *, by: str) -> None:
        """A question was answered, by a "script", a "person", or "nobody"."""

    def outcome(self, watched: Watched, outcome: Outcome, code: ExitCode, remains: Remains) -> None:
        """A call is over, or not waited for any more."""

    def left(self, code: ExitCode, remains: Sequence[Remains]) -> None:
        """The command ends before what it waits for."""

    def server_stderr(self) -> AbstractContextManager[int | None]:
        """Give where the stderr of a server goes that is started here; ``None``: to that of this process."""

    def note(self, sentence: str) -> None:
        """Something that only a person needs to know."""
