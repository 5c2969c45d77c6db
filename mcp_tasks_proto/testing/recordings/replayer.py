"""Living through a recording once more: the same inputs at the same times, and what differs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from json import loads
from typing import Any, Final, NoReturn

from attrs import define, field, frozen

from mcp_tasks_proto.testing.recordings.differences import (
    Difference,
    Part,
    compare_keys,
    compare_lines,
)
from mcp_tasks_proto.testing.recordings.engines import LIBRARY, Head, played_fact, read_head
from mcp_tasks_proto.testing.recordings.recorder import LINE_BYTES, write_note
from mcp_tasks_proto.testing.recordings.sealing import Note, Playing
from mcp_tasks_proto.testing.recordings.values import (
    UnreadableError,
    UnwritableError,
    ValueWriter,
    check_depth,
    read_value,
)

__all__ = ["DIFFERENCES", "Replay", "Unreadable", "replay"]

DIFFERENCES: Final = 10
"""Inputs with differences that are told of, if nothing else is said. One difference leads to others."""


@frozen
class Unreadable:
    """Why a recording cannot be replayed, or no further."""

    line: int | None
    """Counted from 1; ``None``: it is about no line, as where there is no such file."""
    reason: str


@frozen(kw_only=True)
class Replay:
    """What became of a recording that was lived through again."""

    library: str | None = None
    """The version of this package that recorded it; ``None``: the first line could not be read."""
    role: str | None = None
    era: str | None = None
    inputs: int = 0
    """How many inputs the engine was given."""
    differences: tuple[Difference, ...] = ()
    """In their order. Those after the first one may follow from it."""
    stopped: bool = False
    """Whether there were so many differences that the rest was not looked at."""
    unreadable: Unreadable | None = None
    end: str | None = None
    """Why no more was recorded, as the last line says; ``None``: it does not, or was not reached."""
    cut_off: bool = False
    """Whether the last line is only the beginning of one, as a process that is killed leaves it."""

    @property
    def same(self) -> bool:
        """Whether all of it was read, and the engine did the same."""
        return not self.differences and self.unreadable is None

    def to_json(self) -> dict[str, Any]:
        """Return it as one JSON object."""
        unreadable = self.unreadable
        return {
            "same": self.same,
            "recordedWith": self.library,
            "replayedWith": LIBRARY,
            "role": self.role,
            "era": self.era,
            "inputs": self.inputs,
            "differences": [difference.to_json() for difference in self.differences],
            "stopped": self.stopped,
            "unreadable": None
            if unreadable is None
            else {"line": unreadable.line, "reason": unreadable.reason},
            "end": self.end,
            "cutOff": self.cut_off,
        }

    def describe(self, *, width: int = 300) -> list[str]:
        """Return it as lines for a person; a value takes ``width`` characters at most."""
        lines = [self._summary()]
        for difference in self.differences:
            lines += difference.describe(width=width)
        if self.stopped:
            lines.append("the rest was not looked at: one difference leads to others")
        if self.unreadable is not None:
            line = self.unreadable.line
            what = "it" if line is None else f"line {line}"
            lines.append(f"{what} cannot be read: {self.unreadable.reason}")
        if self.cut_off:
            lines.append("the last line was cut off, and left out")
        if self.end is not None:
            lines.append(f"the recording ends: {self.end}")
        if self.differences and self.library != LIBRARY:
            lines.append(f"it was recorded with version {self.library}, and replayed with {LIBRARY}")
        return lines

    def _summary(self) -> str:
        if self.role is None:
            return "not replayed"
        inputs = f"{self.inputs} input{'' if self.inputs == 1 else 's'} of a {self.role}"
        if not self.differences:
            return f"{inputs}: the same effects"
        return f"{inputs}: different from line {self.differences[0].line} on"


def replay(lines: Iterable[str | bytes], *, most: int = DIFFERENCES) -> Replay:
    """Live through a recording, line by line, and compare every step.

    Stops after ``most`` inputs with differences. Holds two lines at a time, and the differences. Raises
    nothing for what stands in the lines, whatever it is.
    """
    run = _Run(most)
    for number, text, is_last in _numbered(lines):
        if not run.take(number, text, is_last):
            break
    return run.result()


def _numbered(lines: Iterable[str | bytes]) -> Iterator[tuple[int, str | bytes, bool]]:
    """Give each line with its number, and whether it is the last one; empty ones are passed over."""
    before: tuple[int, str | bytes] | None = None
    for number, line in enumerate(lines, start=1):
        if line.strip():
            if before is not None:
                yield (*before, False)
            before = number, line
    if before is not None:
        yield (*before, True)


@define(eq=False)
class _Run:
    """One replay, as far as it is."""

    most: int
    playing: Playing = field(init=False, factory=Playing)
    writer: ValueWriter = field(init=False, factory=ValueWriter)
    head: Head | None = field(init=False, default=None)
    inputs: int = field(init=False, default=0)
    differences: list[Difference] = field(init=False, factory=list)
    unreadable: Unreadable | None = field(init=False, default=None)
    end: str | None = field(init=False, default=None)
    cut_off: bool = field(init=False, default=False)

    def take(self, number: int, text: str | bytes, is_last: bool) -> bool:
        """Take a line; return whether to go on."""
        if len(text) > LINE_BYTES + 1:  # with its newline
            self.unreadable = Unreadable(number, f"it is longer than {LINE_BYTES} bytes")
            return False
        try:
            line = loads(text, parse_constant=_refuse)
        except (ValueError, RecursionError):
            if is_last and self.head is not None and text[-1:] not in ("\n", b"\n"):
                self.cut_off = True
            else:
                self.unreadable = Unreadable(number, "it is not JSON")
            return False
        try:
            check_depth(line)
            return self._take(number, line)
        except UnreadableError as error:
            self.unreadable = Unreadable(number, str(error))
        except UnwritableError as error:  # keys that were not asked for are told of, as they would be written
            self.unreadable = Unreadable(number, f"its keys were never recorded: {error}")
        return False

    def _take(self, number: int, line: Any) -> bool:
        if self.head is None:
            self.head = read_head(line, self.playing)
            return True
        if isinstance(line, dict) and "end" in line:
            # An engine's recording may end before its process does, and both are said. The first is why.
            self.end = str(line["end"]) if self.end is None else self.end
            return True
        if self.end is not None:
            raise UnreadableError("it follows the end of the recording; a file holds one")
        parts = self._compare(self.head, _checked(line))
        self.inputs += 1
        if parts:
            self.differences.append(
                Difference(line=number, at_ms=line["now"], input=line["input"], parts=tuple(parts))
            )
        return len(self.differences) < self.most

    def _compare(self, head: Head, line: dict[str, Any]) -> list[Part]:
        """Give the engine an input, and compare what comes of it with what came of it then."""
        fact = read_value(line["input"])
        self.playing.begin([_read_note(note) for note in line.get("keys", [])])
        came: dict[str, Any]
        try:
            step = head.engine.handle(played_fact(fact, self.playing), now=line["now"])
            effects = [self.writer.write(effect) for effect in step.effects]
            came = {"effects": effects, "deadline": self.writer.write(step.deadline)}
        except Exception as error:  # whatever it is, it is what the engine does now
            came = {"raised": type(error).__name__, "text": str(error)}
        parts = compare_lines(line, came)
        return parts + compare_keys(self._written(self.playing.notes), self._written(self.playing.unknown))

    def _written(self, notes: list[Note]) -> list[Any]:
        return [write_note(self.writer, note) for note in notes]

    def result(self) -> Replay:
        """Return what became of it."""
        head, unreadable = self.head, self.unreadable
        if head is None and unreadable is None:
            unreadable = Unreadable(None, "there is nothing in it")
        return Replay(
            library=None if head is None else head.library,
            role=None if head is None else head.role,
            era=None if head is None else head.era,
            inputs=self.inputs,
            differences=tuple(self.differences),
            stopped=len(self.differences) >= self.most,
            unreadable=unreadable,
            end=self.end,
            cut_off=self.cut_off,
        )


def _refuse(name: str) -> NoReturn:
    """Take ``NaN`` and the like for what they are: no JSON. A recording says ``float`` in their place."""
    raise ValueError(name)


def _checked(line: Any) -> dict[str, Any]:
    """Return a line that tells of an input."""
    if isinstance(line, dict) and "recording" in line:
        raise UnreadableError("another recording begins here; a file holds one")
    if not isinstance(line, dict) or type(line.get("now")) is not int or "input" not in line:
        raise UnreadableError("it tells of no input: it has no now, or no input")
    if not isinstance(line.get("effects", []), list) or not isinstance(line.get("keys", []), list):
        raise UnreadableError("its effects, or its keys, are no array")
    if "effects" not in line and "raised" not in line:
        raise UnreadableError("it does not tell what came of its input")
    return line


def _read_note(written: Any) -> Note:
    match written:
        case {"use": str(use), "given": list(given), "answer": answer}:
            return Note(use, tuple(read_value(given)), read_value(answer))
    raise UnreadableError("its keys are not as they are written")
