"""What is on while a task is waited for: a line that moves, or lines as there is news."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from attrs import define
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from mcp_tasks_adapters.cli.client.harmless import one_line
from mcp_tasks_adapters.clock import unix_ms
from mcp_tasks_proto.wire.schema import TaskView

__all__ = ["LivePanel", "NoPanel", "Panel", "PlainPanel", "Watched", "duration", "progress_line"]

SPINNER: Final = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
PLAIN_SPINNER: Final = "|/-\\"
SPINNER_MS: Final = 125

PATIENCE_MS: Final = 2_000
"""How long a call without an answer needs no mention."""
SILENCE_MS: Final = 15_000
"""Without news for so long, a plain line says that the task is still waited for."""


@define(eq=False, kw_only=True)
class Watched:
    """A call that is waited for, as it stands."""

    name: str
    since_ms: int
    """When it began, in Unix milliseconds."""
    next_poll_ms: Callable[[], int | None] = lambda: None
    """When the server will be asked next, in Unix milliseconds, if that is planned."""
    view: TaskView | None = None
    """The newest view, once the call is a task."""
    note: str = ""
    """What the server last said on the way."""
    trouble: str = ""
    """Why the server could not say how the task stands, when it was asked last."""
    waiting: str = "calling"
    """What is going on before there is a view."""

    @property
    def status(self) -> str:
        """How it stands, in a word or two."""
        return self.waiting if self.view is None else self.view.status.value.replace("_", " ")

    @property
    def message(self) -> str:
        """What there is to say about it."""
        if self.trouble:
            return f"no answer: {one_line(self.trouble)}"
        return one_line((self.view.status_message if self.view is not None else None) or self.note)


class Panel(Protocol):
    """Where the calls that are waited for are shown."""

    interval_s: float
    """How often :meth:`tick` wants to be called."""

    def show(self, watched: Watched) -> None:
        """There is news of a call, or it is the first time."""

    def drop(self, watched: Watched) -> None:
        """It is over."""

    def tick(self) -> None:
        """Time has passed."""

    def pause(self) -> None:
        """Make place for a conversation."""

    def resume(self) -> None:
        """Go on after it."""

    def close(self) -> None:
        """Leave nothing behind."""


class NoPanel:
    """Shows nothing: a program reads along."""

    interval_s = 3600.0

    def show(self, watched: Watched) -> None:
        """Show nothing."""

    def drop(self, watched: Watched) -> None:
        """Show nothing."""

    def tick(self) -> None:
        """Show nothing."""

    def pause(self) -> None:
        """Show nothing."""

    def resume(self) -> None:
        """Show nothing."""

    def close(self) -> None:
        """Leave nothing."""


class LivePanel:
    """One line for each call, at the bottom of a terminal; the lines move."""

    interval_s = 0.125

    def __init__(self, console: Console) -> None:
        self._console = console
        self._spinner = SPINNER if console.encoding.startswith("utf") else PLAIN_SPINNER
        self._watched: list[Watched] = []
        self._live: Live | None = None
        self._paused = False

    def show(self, watched: Watched) -> None:
        if watched not in self._watched:
            self._watched.append(watched)
        self._update()

    def drop(self, watched: Watched) -> None:
        if watched in self._watched:
            self._watched.remove(watched)
        self._update()

    def tick(self) -> None:
        self._update()

    def pause(self) -> None:
        self._paused = True
        self._update()

    def resume(self) -> None:
        self._paused = False
        self._update()

    def close(self) -> None:
        self._watched.clear()
        self._update()

    def _update(self) -> None:
        if self._paused or not self._watched:
            if self._live is not None:
                self._live.stop()
                self._live = None
        elif self._live is None:
            self._live = Live(
                get_renderable=self._lines, console=self._console, auto_refresh=False, transient=True
            )
            self._live.start(refresh=True)
        else:
            self._live.refresh()

    def _lines(self) -> Group:
        now_ms = unix_ms()
        mark = self._spinner[now_ms // SPINNER_MS % len(self._spinner)]
        lines = [Text.assemble((mark, "cyan"), " ", progress_line(one, now_ms)) for one in self._watched]
        for line in lines:
            line.no_wrap, line.overflow = True, "ellipsis"
        return Group(*lines)


class PlainPanel:
    """A line whenever there is news, and now and then when there is none; no control codes."""

    interval_s = 1.0

    def __init__(self, console: Console) -> None:
        self._console = console
        self._printed: dict[Watched, tuple[str, str, int]] = {}
        """By call: status and message as they were printed, and when."""
        self._watched: list[Watched] = []

    def show(self, watched: Watched) -> None:
        if watched not in self._watched:
            self._watched.append(watched)
        self._print_news(watched)

    def drop(self, watched: Watched) -> None:
        if watched in self._watched:
            self._watched.remove(watched)

    def tick(self) -> None:
        for watched in self._watched:
            self._print_news(watched)

    def pause(self) -> None:
        """Nothing is in the way."""

    def resume(self) -> None:
        """Nothing was in the way."""

    def close(self) -> None:
        self._watched.clear()

    def _print_news(self, watched: Watched) -> None:
        now_ms = unix_ms()
        if watched.view is None and not watched.message and now_ms - watched.since_ms < PATIENCE_MS:
            return  # most calls are answered at once
        if watched.view is not None and watched.view.status.terminal:
            return  # its outcome follows
        status, message, printed_ms = self._printed.get(watched, ("", "", 0))
        if (status, message) != (watched.status, watched.message) or now_ms - printed_ms >= SILENCE_MS:
            self._printed[watched] = watched.status, watched.message, now_ms
            self._console.print(progress_line(watched, now_ms), soft_wrap=True)


def progress_line(watched: Watched, now_ms: int) -> Text:
    """Return how a call stands, on one line: what is short first, as the end may be cut off."""
    line = Text.assemble((watched.name, "bold"), f"  {watched.status}  {duration(now_ms - watched.since_ms)}")
    if watched.trouble or (watched.view is not None and not watched.view.status.terminal):
        line.append(f"  {_next_poll(watched.next_poll_ms(), now_ms)}", "dim")
    if watched.message:
        line.append(f"  {watched.message}", "yellow" if watched.trouble else "")
    return line


def _next_poll(due_ms: int | None, now_ms: int) -> str:
    if due_ms is None or due_ms <= now_ms:
        return "asking the server"
    remaining_ms = due_ms - now_ms
    exact = f"{remaining_ms / 1000:.1f} s" if remaining_ms < 10_000 else duration(remaining_ms)
    return f"next poll in {exact}"


def duration(milliseconds: int) -> str:
    """Return a duration for people; a negative one, as clocks differ, is none."""
    seconds = max(0, milliseconds) // 1000
    if seconds < 60:
        return f"{seconds} s"
    minutes, seconds = divmod(seconds, 60)
    if minutes < 60:
        return f"{minutes} min {seconds:02} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min"
