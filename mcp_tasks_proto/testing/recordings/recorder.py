"""What stands before an engine and writes down all that it is told, and all that it says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from json import dumps
from typing import Any, Final, Generic, TypeVar

from attrs import define, evolve, field

from mcp_tasks_proto.inputs import HttpHead
from mcp_tasks_proto.testing.recordings.engines import (
    Engine,
    as_recorded,
    noted_engine,
    noted_fact,
    write_head,
)
from mcp_tasks_proto.testing.recordings.sealing import Note
from mcp_tasks_proto.testing.recordings.values import ValueWriter

__all__ = ["LINE_BYTES", "Recorder", "Take", "end_line", "is_recorded_header", "write_note"]

LINE_BYTES: Final = 64 * 1024 * 1024
"""The longest line that is written, or read. Lines are ASCII."""

Take = Callable[[str], bool | None]
"""Takes one line, without the newline, and keeps it. ``False``: it wants no more. It raises nothing."""

_E = TypeVar("_E", bound=Engine)


@define(eq=False)
class Recorder(Generic[_E]):
    """Takes the place of an engine, and gives ``take`` a line for each input: the input, its time, the step.

    ``engine`` is a new one of any role and era, which has taken in nothing yet. An equal engine works behind
    the recorder, :attr:`engine`; what else can be asked of an engine can be asked of the recorder.

    A recording holds payloads, arguments, task ids and session ids: whoever reads it can read the tasks, and
    use those that have not expired. It holds no keys (what they made is noted instead) and, of HTTP heads,
    only the headers that an engine looks at: ``Authorization`` and cookies are not among them (SEC.2).

    Raises ``TypeError`` for what is none of the engines, and
    :class:`~mcp_tasks_proto.testing.recordings.UnwritableError` where its settings cannot be written.
    """

    engine: _E
    _take: Take
    _notes: list[Note] = field(init=False, factory=list)
    """What was done with keys since the last input."""
    _writer: ValueWriter = field(init=False, factory=ValueWriter)
    _ended: bool = field(init=False, default=False)

    def __attrs_post_init__(self) -> None:
        noted = noted_engine(self.engine, self._notes)
        head = write_head(self.engine, self._writer)
        self.engine = noted
        self._say(dumps(head))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.engine, name)

    def handle(self, input: Any, *, now: int) -> Any:  # noqa: A002 - as for the engine
        """Take in one fact, as the engine does; return, or raise, what that does."""
        self._notes.clear()
        if self._ended:
            return self.engine.handle(input, now=now)
        line = self._begin(input, now)
        try:
            step = self.engine.handle(noted_fact(input, self._notes), now=now)
        except Exception as error:
            self._finish(line, {"raised": type(error).__name__, "text": str(error)})
            raise
        self._finish(line, None, step)
        return step

    def end(self, reason: str) -> None:
        """Record no more, and say why in a last line. The engine goes on."""
        if not self._ended:
            self._ended = True
            self._take(end_line(reason))

    # -- lines -----------------------------------------------------------------------------------------------

    def _begin(self, fact: Any, now: int) -> dict[str, Any] | None:
        """Write an input before the engine has it: nobody knows what becomes of its parts."""
        try:
            return {"now": now, "input": self._writer.write(as_recorded(_without_credentials(fact)))}
        except Exception as error:  # whatever it is, it is no reason for the engine not to go on
            self.end(f"{type(fact).__name__} could not be recorded: {error}")
            return None

    def _finish(
        self, line: dict[str, Any] | None, raised: Mapping[str, str] | None, step: Any = None
    ) -> None:
        if line is None:
            return
        try:
            if self._notes:
                line["keys"] = [write_note(self._writer, note) for note in self._notes]
            if raised is None:
                line["effects"] = [self._writer.write(effect) for effect in step.effects]
                line["deadline"] = step.deadline
            else:
                line |= raised
            text = dumps(line)
        except Exception as error:  # likewise: a value nested too deep, an integer with thousands of digits
            self.end(f"what came of an input could not be recorded: {error}")
        else:
            if len(text) <= LINE_BYTES:
                self._say(text)
            else:
                self.end(f"what came of an input takes more than {LINE_BYTES} bytes")

    def _say(self, line: str) -> None:
        if self._take(line) is False:
            self._ended = True


def write_note(writer: ValueWriter, note: Note) -> dict[str, Any]:
    """Return what stands in a line for one use of a key."""
    given = [writer.write(one) for one in note.given]
    return {"use": note.use, "given": given, "answer": writer.write(note.answer)}


def end_line(reason: str) -> str:
    """Return a last line, after which there is nothing."""
    return dumps({"end": reason})


# -- credentials ---------------------------------------------------------------------------------------------


def is_recorded_header(name: str) -> bool:
    """Whether a header is one that engines look at; all others stay out of a recording."""
    return name.startswith("mcp-") or name == "last-event-id"


def _without_credentials(fact: Any) -> Any:
    """Return an input without what its HTTP head carries for others than the engine."""
    http = getattr(fact, "http", None)
    if not isinstance(http, HttpHead):
        return fact
    headers = {name: value for name, value in http.headers.items() if is_recorded_header(name)}
    repeated = frozenset(name for name in http.repeated if is_recorded_header(name))
    return evolve(fact, http=evolve(http, headers=headers, repeated=repeated))
