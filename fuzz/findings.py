"""Inputs that a target objects to: what is wrong, where, and the shortest input that still shows it."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from time import monotonic
from typing import Final

from attrs import frozen

from fuzz.paths import PROJECT, shown
from fuzz.targets import Check

__all__ = ["Finding", "examine", "minimise", "replay"]

MOST_TRIES: Final = 20_000
"""How often a shorter input is tried."""
MOST_SECONDS: Final = 60.0
"""For how long shorter inputs are tried: a state machine takes a tenth of a second for one."""


@frozen
class Finding:
    """What an input shows."""

    problem: str
    """The exception, in one line."""
    place: str
    """The innermost line of this project that it came through."""
    report: str
    """The whole traceback."""

    def is_like(self, other: Finding | None) -> bool:
        """Whether both show the same fault, as far as one can tell: the same exception at the same place."""
        return other is not None and (self.place, self._kind) == (other.place, other._kind)

    @property
    def _kind(self) -> str:
        return self.problem.partition(":")[0]


def examine(check: Check, data: bytes) -> Finding | None:
    """Give an input to a target; return what it objects to."""
    try:
        check(data)
    except Exception as error:
        own = [
            frame
            for frame in traceback.extract_tb(error.__traceback__)
            if Path(frame.filename).is_relative_to(PROJECT) and ".venv" not in frame.filename
        ]
        place = f"{shown(Path(own[-1].filename))}:{own[-1].lineno}"
        said = str(error).partition("\n")[0]
        return Finding(f"{type(error).__name__}: {said}", place, "".join(traceback.format_exception(error)))
    return None


def replay(check: Check, paths: Iterable[Path]) -> dict[Path, Finding]:
    """Give files to a target; return what it objects to, by file."""
    found = ((path, examine(check, path.read_bytes())) for path in paths)
    return {path: finding for path, finding in found if finding is not None}


def minimise(check: Check, data: bytes, tell: Callable[[int], None] = lambda size: None) -> bytes:
    """Return the shortest input found that shows the same fault as ``data``, which shows one.

    Parts are left out as long as that goes well: halves first, single bytes last. ``tell`` hears the size.
    """
    wanted = examine(check, data)
    assert wanted is not None, "there is nothing to be seen with this input"
    tries, length, end = 0, max(1, len(data) // 2), monotonic() + MOST_SECONDS
    while tries < MOST_TRIES and monotonic() < end:
        at, before = 0, len(data)
        while at < len(data) and tries < MOST_TRIES and monotonic() < end:
            shorter = data[:at] + data[at + length :]
            tries += 1
            if wanted.is_like(examine(check, shorter)):
                data = shorter
                tell(len(data))
            else:
                at += length
        if length > 1:
            length //= 2
        elif len(data) == before:
            break
    return data
