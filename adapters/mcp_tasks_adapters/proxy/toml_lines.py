"""In which line of a TOML document each of its keys stands: the standard library's reader does not tell.

The document has been read by it before: it is known to be TOML, so that what is here only has to find where
keys, strings and brackets end.
"""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_right
from collections.abc import Mapping
from typing import Any, Final

__all__ = ["Path", "find_lines"]

Path = tuple[str | int, ...]
"""Names of keys, and places in arrays, from the top of a document down."""

_BLANK: Final = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_KEY: Final = re.compile(r"""(?:"(?:[^"\\\n]|\\.)*"|'[^'\n]*'|[A-Za-z0-9_-]+|[ \t]|\.)+""")
_STRING: Final = re.compile(
    r'''"""(?:[^\\]|\\.)*?"""(?:"{0,2})'''
    r"""|'{3}.*?'{3}(?:'{0,2})"""
    r"""|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'""",
    re.DOTALL,
)
_SCALAR: Final = re.compile(r"[^,\]}#\n]*")


def find_lines(text: str) -> Mapping[Path, int]:
    """Return the line, counted from 1, of each key and each member of an array in a valid document."""
    finder = _Finder(text)
    finder.read_document()
    return finder.lines


class _Finder:
    def __init__(self, text: str) -> None:
        self._text = text
        self._place = 0
        self._breaks = [match.start() for match in re.finditer("\n", text)]
        self._arrays: dict[Path, int] = {}
        """Arrays of tables, and how many tables each has so far."""
        self.lines: dict[Path, int] = {}

    def read_document(self) -> None:
        table: Path = ()
        while self._skip_blank():
            if self._text[self._place] == "[":
                table = self._read_header()
            else:
                self._read_pair(table)

    def _read_header(self) -> Path:
        line = self._line()
        double = self._text.startswith("[[", self._place)
        self._place += 2 if double else 1
        *above, last = self._read_key()
        self._place += 2 if double else 1
        path: Path = ()
        for name in above:
            path = self._newest((*path, name))
            self.lines.setdefault(path, line)
        path = (*path, last)
        if double:
            self.lines.setdefault(path, line)
            self._arrays[path] = self._arrays.get(path, 0) + 1
            path = self._newest(path)
        self.lines[path] = line
        return path

    def _newest(self, path: Path) -> Path:
        """Return the last table of an array of tables; of anything else, itself."""
        tables = self._arrays.get(path)
        return path if tables is None else (*path, tables - 1)

    def _read_pair(self, table: Path) -> None:
        line = self._line()
        path = table
        for name in self._read_key():
            path = (*path, name)
            self.lines.setdefault(path, line)
        self._place += 1  # the equals sign
        self._skip_blank()
        self._skip_value(path)

    def _read_key(self) -> list[str]:
        raw = self._take(_KEY)
        found: Any = tomllib.loads(f"{raw} = 0")
        names = []
        while isinstance(found, dict):
            ((name, found),) = found.items()
            names.append(name)
        return names

    def _skip_value(self, path: Path) -> None:
        match self._text[self._place]:
            case '"' | "'":
                self._take(_STRING)
            case "[":
                self._skip_members("]", lambda number: self._skip_member((*path, number)))
            case "{":
                self._skip_members("}", lambda _: self._read_pair(path))
            case _:
                self._take(_SCALAR)

    def _skip_member(self, path: Path) -> None:
        self.lines[path] = self._line()
        self._skip_value(path)

    def _skip_members(self, end: str, skip: Any) -> None:
        self._place += 1
        number = 0
        self._skip_blank()
        while self._text[self._place] != end:
            skip(number)
            number += 1
            self._skip_blank()
            if self._text[self._place] == ",":
                self._place += 1
                self._skip_blank()
        self._place += 1

    def _skip_blank(self) -> bool:
        """Go on to what comes next; return whether there is anything."""
        self._take(_BLANK)
        return self._place < len(self._text)

    def _take(self, pattern: re.Pattern[str]) -> str:
        found = pattern.match(self._text, self._place)
        assert found is not None, "the document has been read before"
        self._place = found.end()
        return found.group()

    def _line(self) -> int:
        return bisect_right(self._breaks, self._place) + 1
