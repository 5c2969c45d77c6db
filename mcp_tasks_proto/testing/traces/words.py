"""The words of a trace's script: how a line is taken apart, and the short forms for what is often said."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise, takewhile
from json import JSONDecodeError, JSONDecoder, dumps
from re import compile as pattern
from typing import Any, Final

from attrs import define, field, frozen

__all__ = [
    "ACCEPT",
    "LINE",
    "START",
    "Json",
    "Pair",
    "TraceError",
    "Words",
    "question",
    "task_id",
    "task_name",
    "tell_json",
]

START: Final = 1_700_000_000_000
"""The moment called ``+0``."""

LINE: Final = pattern(r"(?P<margin>\s+(?:\+(?P<time>\d+)\s+)?)(?P<speaker>[a-z]+)\s+(?P<words>.*)")
"""A line of the script that is not the engine's."""


class TraceError(ValueError):
    """A script that cannot be played; the text says what is wrong, and with :attr:`line`, where."""

    def __init__(self, problem: str, line: int | None = None) -> None:
        super().__init__(problem if line is None else f"line {line}: {problem}")
        self.problem = problem
        self.line = line


@frozen
class Json:
    """A word that is an object, an array or a string, in JSON."""

    value: Any


@frozen
class Pair:
    """Two words with an equals sign between them: ``confirm=accept``."""

    name: str
    value: str | Json


def _split(text: str) -> list[str | Json | Pair]:
    words: list[str | Json | Pair] = []
    at = 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        word, at = _one(text, at)
        if isinstance(word, str) and text[at : at + 1] == "=":
            value, at = _one(text, at + 1)
            words.append(Pair(word, value))
        else:
            words.append(word)
    return words


def _one(text: str, at: int) -> tuple[str | Json, int]:
    if text[at : at + 1] in ('"', "{", "["):
        try:
            value, at = _DECODER.raw_decode(text, at)
        except JSONDecodeError as error:
            raise TraceError(f"not JSON: {error.msg} at {text[error.pos :]!r}") from None
        return Json(value), at
    end = at
    while end < len(text) and not text[end].isspace() and text[end] != "=":
        end += 1
    return text[at:end], end


_DECODER: Final = JSONDecoder()


@define(eq=False)
class Words:
    """What is left of a line, to be read from left to right. Everything here raises :class:`TraceError`."""

    _left: list[str | Json | Pair] = field(converter=_split)

    def __bool__(self) -> bool:
        return bool(self._left)

    def word(self, what: str) -> str:
        """Read one plain word; ``what`` says what it is."""
        word = self.any_word(what)
        if not isinstance(word, str):
            raise TraceError(f"{what} is one plain word")
        return word

    def any_word(self, what: str) -> Any:
        """Read one word, plain or not."""
        if not self._left:
            raise TraceError(f"{what} is missing")
        return self._left.pop(0)

    def one_of(self, what: str, *known: str) -> str:
        """Read one plain word of those that there are."""
        word = self.word(what)
        if word not in known:
            raise TraceError(f"{what} is {' or '.join(known)}, not {word}")
        return word

    def integer(self, what: str) -> int:
        """Read a whole number."""
        word = self.word(what)
        try:
            return int(word)
        except ValueError:
            raise TraceError(f"{what} is a whole number, not {word}") from None

    def follows(self, word: str) -> bool:
        """Read ``word``, if it comes next; whether it did."""
        if self._left and self._left[0] == word:
            del self._left[0]
            return True
        return False

    def after(self, word: str) -> str | None:
        """Return the plain word after ``word``, wherever it comes; it stays to be read."""
        for one, following in pairwise(self._left):
            if one == word and isinstance(following, str):
                return following
        return None

    def json(self) -> Json | None:
        """Read a word in JSON, if one comes next."""
        found = self._left[0] if self._left else None
        if not isinstance(found, Json):
            return None
        del self._left[0]
        return found

    def plain(self, *but: str) -> list[str]:
        """Read the plain words that come next, up to one of ``but``."""
        return self._while(lambda word: isinstance(word, str) and word not in but)

    def pairs(self) -> list[Pair]:
        """Read the pairs that come next."""
        return self._while(lambda word: isinstance(word, Pair))

    def _while(self, fits: Callable[[str | Json | Pair], bool]) -> list[Any]:
        read = list(takewhile(fits, self._left))
        del self._left[: len(read)]
        return read

    def end(self) -> None:
        """Make sure that nothing is left."""
        if self._left:
            raise TraceError(f"not understood from {self._left[0]!r} on")


# -- short forms ---------------------------------------------------------------------------------

ACCEPT: Final[Mapping[str, Any]] = {"action": "accept", "content": {"ok": True}}
"""What ``accept`` is short for."""

_FILLING: Final = "-0123456789abcdefghijk"
"""Makes a short name an id as the engine wants it (LIFE.6)."""


def question(name: str) -> dict[str, Any]:
    """Return the form that ``name`` alone is short for."""
    schema = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
    params = {"mode": "form", "message": f"{name}?", "requestedSchema": schema}
    return {"method": "elicitation/create", "params": params}


def task_id(name: str | Json) -> Any:
    """Return the id of the task that is called ``name``; what is in JSON is taken as it is."""
    return name.value if isinstance(name, Json) else name + _FILLING


def task_name(id_: str) -> str:
    """Return what a task is called in the script."""
    return id_.removesuffix(_FILLING) if id_.endswith(_FILLING) else tell_json(id_)


def tell_json(value: Any) -> str:
    """Return a value as JSON on one line."""
    return dumps(value, ensure_ascii=False)
