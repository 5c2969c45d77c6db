"""Reading the tables of a configuration file: every mistake is noted, with its line, and none of them raised.

Whoever reads asks for the keys that there are to be, one by one; what was not asked for is a mistake as well.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path as FilePath
from re import search
from typing import Any, Final

from attrs import define, field, frozen

from mcp_tasks_adapters.proxy.toml_lines import Path, find_lines

__all__ = ["MOST", "ConfigError", "Document", "Mistake", "Table", "listed", "meant"]


MOST: Final = 2**53 - 1
"""The largest number, where no smaller bound is said: what every clock, and JSON, can count with."""

NUL: Final = "\0"
HOLDS_NUL: Final = "holds a NUL character, which no name of a file, host or program has"


@frozen(order=True)
class Mistake:
    """Something in a file that is not as it has to be."""

    line: int
    """Counted from 1; 0: it is about the file as a whole."""
    text: str
    """What is wrong and what to do. No value is quoted that may be secret (SEC.2)."""


class ConfigError(Exception):
    """A configuration cannot be used; the message has a line for each of its mistakes."""

    def __init__(self, path: FilePath, mistakes: Sequence[Mistake]) -> None:
        self.path = path
        self.mistakes = tuple(sorted(mistakes))
        places = (f"{path}:{one.line}" if one.line else str(path) for one in self.mistakes)
        lines = (f"{place}: {one.text}" for place, one in zip(places, self.mistakes, strict=True))
        super().__init__("\n".join(lines))


@define(eq=False)
class Document:
    """A file that was read as TOML, and what was found to be wrong with it."""

    path: FilePath
    content: Mapping[str, Any]
    lines: Mapping[Path, int]
    mistakes: list[Mistake] = field(factory=list)

    @classmethod
    def read(cls, path: FilePath) -> Document:
        """Read a file. Raises :class:`ConfigError` where it cannot be read, or is not TOML."""
        try:
            text = path.read_text(encoding="utf-8")
            content = tomllib.loads(text)
            lines = find_lines(text)
        except OSError as error:
            raise ConfigError(path, [Mistake(0, f"cannot be read: {error.strerror}")]) from error
        except UnicodeDecodeError as error:
            raise ConfigError(path, [Mistake(0, "is not written in UTF-8")]) from error
        except tomllib.TOMLDecodeError as error:
            raise ConfigError(path, [_not_toml(error, text)]) from error
        except RecursionError as error:
            raise ConfigError(path, [Mistake(0, "is nested too deep")]) from error
        except ValueError as error:  # the one other thing that the reader does not put up with
            raise ConfigError(path, [_too_long(text)]) from error
        return cls(path, content, lines)

    @property
    def top(self) -> Table:
        """The document's own keys."""
        return Table(self, (), self.content)

    def note(self, path: Path, text: str) -> None:
        """Note a mistake, in the line of what stands at ``path``, or of what it would stand in."""
        known = next((path[:end] for end in range(len(path), 0, -1) if path[:end] in self.lines), None)
        where = "".join(f"[{one}]" if isinstance(one, int) else f".{_shown(one)}" for one in path)
        line = 0 if known is None else self.lines[known]
        self.mistakes.append(Mistake(line, f"{where[1:]}: {text}" if where else text))

    def check(self) -> None:
        """Raise :class:`ConfigError` if there are mistakes."""
        if self.mistakes:
            raise ConfigError(self.path, self.mistakes)


@define(eq=False)
class Table:
    """One table. Each method that reads a key returns its default where it is not there, or is a mistake."""

    document: Document
    path: Path
    content: Mapping[str, Any]
    _asked: set[str] = field(factory=set, init=False)

    def __contains__(self, key: str) -> bool:
        return key in self.content

    def note(self, text: str, *path: str | int) -> None:
        """Note a mistake in this table, or further down."""
        self.document.note((*self.path, *path), text)

    def text(self, key: str, default: str | None = None) -> str | None:
        """Read a string that is not empty."""
        value: str | None = self._read(key, str, "is a string")
        if value == "":
            self.note("is empty: leave it out, or fill it in", key)
        elif value is not None and NUL in value:
            self.note(HOLDS_NUL, key)
            return default
        return value or default

    def flag(self, key: str, *, default: bool) -> bool:
        """Read true or false."""
        value = self._read(key, bool, "is true or false")
        return default if value is None else bool(value)

    def number(self, key: str, *, least: int = 1, most: int = MOST, why: str = "") -> int | None:
        """Read a whole number within bounds; ``why`` is said of one that is too large."""
        value: int | None = self._read(key, int, "is a whole number")
        if value is None:
            return None
        if value < least:
            self.note(f"is {least} at least", key)
            return None
        if value > most:
            self.note(f"is {most} at most{why}", key)
            return None
        return value

    def texts(self, key: str) -> Sequence[str] | None:
        """Read an array of strings; ``None`` where there is none."""
        values = self._read(key, list, "is an array of strings")
        if values is None:
            return None
        for number, value in enumerate(values):
            if not isinstance(value, str) or not value:
                self.note("is a string that is not empty", key, number)
            elif NUL in value:
                self.note(HOLDS_NUL, key, number)
        return [value for value in values if isinstance(value, str) and value and NUL not in value]

    def table(self, key: str) -> Table:
        """Read a table; an empty one where there is none."""
        value = self._read(key, dict, "is a table")
        return Table(self.document, (*self.path, key), value or {})

    def tables(self, key: str) -> Iterator[tuple[str, Table]]:
        """Read a table whose members are tables, by the names that they were given."""
        above = self.table(key)
        for name in above.content:
            if not name:
                above.note("a name is empty", name)
            table = above.table(name)
            if isinstance(above.content[name], dict):
                yield name, table

    def rows(self, key: str) -> Iterator[Table]:
        """Read an array of tables."""
        for number, row in enumerate(self._read(key, list, "is an array of tables") or ()):
            path = (*self.path, key, number)
            if isinstance(row, dict):
                yield Table(self.document, path, row)
            else:
                self.document.note(path, "is a table")

    def values(self, key: str, known: Sequence[str], what: str) -> Mapping[str, str]:
        """Read a table of strings whose keys are names that are ``known``."""
        table = self.table(key)
        found = {}
        for name in table.content:
            value = table.text(name)
            if name not in known:
                table.note(f"there is no {what} of this name{meant(name, known)}", name)
            elif value is not None:
                found[name] = value
        return found

    def choice(self, key: str, known: Sequence[str], what: str) -> str | None:
        """Read a string that is one of those ``known``."""
        value = self.text(key)
        if value is not None and value not in known:
            self.note(f"there is no {what} {value!r}{meant(value, known)}", key)
            return None
        return value

    def choices(self, key: str, known: Sequence[str], what: str) -> Sequence[str] | None:
        """Read an array of such strings; ``None`` where there is none."""
        values = self.texts(key)
        if values is None:
            return None
        for number, value in enumerate(self.content[key]):
            if isinstance(value, str) and value and value not in known:
                self.note(f"there is no {what} {value!r}{meant(value, known)}", key, number)
        return [value for value in values if value in known]

    def skip(self, *keys: str) -> None:
        """Leave keys alone, which is no mistake."""
        self._asked.update(keys)

    def close(self) -> None:
        """Note every key that nobody has asked for."""
        for key in self.content:
            if key not in self._asked:
                self.note(f"there is no such key{meant(key, sorted(self._asked))}", key)

    def _read(self, key: str, kind: type, what: str) -> Any:
        self._asked.add(key)
        value = self.content.get(key)
        # True is a number to Python, and to nobody else.
        if value is None or (isinstance(value, kind) and not (kind is int and isinstance(value, bool))):
            return value
        self.note(f"{what}, not {_KINDS.get(type(value), 'a date or a time')}", key)
        return None


_KINDS: Final[Mapping[type, str]] = {
    str: "a string",
    bool: "true or false",
    int: "a whole number",
    float: "a number with a fraction",
    list: "an array",
    dict: "a table",
}


def meant(name: str, known: Sequence[str]) -> str:
    """Return a question for whoever mistyped a name, or else a list of what there is."""
    close = get_close_matches(name, known, n=1)
    if close:
        return f"; did you mean {close[0]!r}?"
    return f"; there is {listed(known)}" if known else "; there is none"


def listed(words: Sequence[str], conjunction: str = "and") -> str:
    """Return words as a sentence has them."""
    *most, last = words
    return f"{', '.join(most)} {conjunction} {last}" if most else last


def _shown(name: str) -> str:
    return name if search(r"^[A-Za-z0-9_-]+$", name) else f'"{name}"'


def _too_long(text: str) -> Mistake:
    """Say in which line the number is that the reader does not read for its length."""
    number = search(r"[0-9_]{4000,}", text)
    line = 0 if number is None else text.count("\n", 0, number.start()) + 1
    return Mistake(line, "this number has too many digits")


def _not_toml(error: tomllib.TOMLDecodeError, text: str) -> Mistake:
    """Say what the reader says, which may quote a character or a name, and in which line."""
    said = str(error)
    place = search(r" \(at (?:line (\d+), column \d+|end of document)\)$", said)
    if place is None:
        return Mistake(0, f"is not TOML: {said}")
    line = int(place[1]) if place[1] else max(1, len(text.splitlines()))
    return Mistake(line, f"this is not TOML: {said[: place.start()]}")
