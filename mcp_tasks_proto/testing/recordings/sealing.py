"""What an engine does with keys, recorded in place of the keys.

A recording must not hold a key, and an engine cannot run without. So each use of one is noted, what was given
and what came out, and a replay hands out what was noted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any, Final

from attrs import define, evolve, field, frozen

from mcp_tasks_proto.proxy import Binding, HandleCodec, StoredHandles
from mcp_tasks_proto.request_state import Sealer

__all__ = [
    "Note",
    "NotedHandles",
    "NotedSealer",
    "PlayedHandles",
    "PlayedSealer",
    "Playing",
    "SomeHandles",
    "SomeSealer",
    "with_handles",
    "with_sealer",
]


@frozen
class SomeSealer:
    """In place of a sealer, in a recording."""


@frozen
class SomeHandles:
    """In place of a codec of handles that has keys, in a recording."""

    stored: bool


@frozen
class Note:
    """One use of a key."""

    use: str
    """``"seal"`` and ``"open"`` of a sealer; ``"issue"``, ``"well formed"``, ``"open handle"`` of a codec."""
    given: tuple[Any, ...]
    answer: Any


# -- recording -----------------------------------------------------------------------------------------------


@frozen(eq=False)
class NotedSealer:
    """A sealer whose uses are noted."""

    sealer: Sealer
    notes: list[Note]

    def seal(self, payload: bytes) -> str:
        """As the sealer does."""
        token = self.sealer.seal(payload)
        self.notes.append(Note("seal", (payload,), token))
        return token

    def open(self, token: str) -> bytes | None:
        """As the sealer does."""
        payload = self.sealer.open(token)
        self.notes.append(Note("open", (token,), payload))
        return payload


@frozen(eq=False)
class NotedHandles:
    """A codec whose uses are noted."""

    codec: HandleCodec
    notes: list[Note]

    @property
    def stored(self) -> bool:
        """As the codec has it; it never changes."""
        return self.codec.stored

    def issue(self, binding: Binding, random: bytes) -> str:
        """As the codec does."""
        handle = self.codec.issue(binding, random)
        self.notes.append(Note("issue", (binding, random), handle))
        return handle

    def well_formed(self, handle: str) -> bool:
        """As the codec does."""
        answer = self.codec.well_formed(handle)
        self.notes.append(Note("well formed", (handle,), answer))
        return answer

    def open(self, handle: str) -> Binding | None:
        """As the codec does."""
        binding = self.codec.open(handle)
        self.notes.append(Note("open handle", (handle,), binding))
        return binding


# -- replaying -----------------------------------------------------------------------------------------------


@define(eq=False)
class Playing:
    """The notes of one input, as a replay uses them up."""

    notes: list[Note] = field(factory=list)
    """Those that were not asked for yet."""
    unknown: list[Note] = field(factory=list)
    """What was asked for and is not noted, with the answer that was made up."""

    def begin(self, notes: list[Note]) -> None:
        """Begin with another input."""
        self.notes, self.unknown = notes, []

    def answer(self, use: str, *given: Any) -> Any:
        """Return what was noted of this use, each note once; or make an answer up."""
        for at, note in enumerate(self.notes):
            if note.use == use and note.given == given:
                del self.notes[at]
                return note.answer
        answer = _MADE_UP.get(use, _no_answer)(given)
        self.unknown.append(Note(use, given, answer))
        return answer


def _no_answer(_: tuple[Any, ...]) -> Any:
    return None


def _token(given: tuple[Any, ...]) -> Any:
    return "unrecorded." + sha256(repr(given).encode("utf-8", "backslashreplace")).hexdigest()


_MADE_UP: Final[Mapping[str, Callable[[tuple[Any, ...]], Any]]] = {
    "seal": _token,
    "issue": _token,
    "well formed": lambda _: False,
}


@frozen(eq=False)
class PlayedSealer:
    """A sealer that answers from notes."""

    playing: Playing

    def seal(self, payload: bytes) -> str:
        """As it was noted."""
        token: str = self.playing.answer("seal", payload)
        return token

    def open(self, token: str) -> bytes | None:
        """As it was noted."""
        payload: bytes | None = self.playing.answer("open", token)
        return payload


@frozen(eq=False)
class PlayedHandles:
    """A codec that answers from notes."""

    playing: Playing
    stored: bool

    def issue(self, binding: Binding, random: bytes) -> str:
        """As it was noted."""
        handle: str = self.playing.answer("issue", binding, random)
        return handle

    def well_formed(self, handle: str) -> bool:
        """As it was noted."""
        answer: bool = self.playing.answer("well formed", handle)
        return answer

    def open(self, handle: str) -> Binding | None:
        """As it was noted."""
        binding: Binding | None = self.playing.answer("open handle", handle)
        return binding


# -- where keys are ------------------------------------------------------------------------------------------


def with_sealer(settings: Any, change: Callable[[Any], Any]) -> Any:
    """Return settings with another sealer, if they have one."""
    sealer = getattr(settings, "sealer", None)
    return settings if sealer is None else evolve(settings, sealer=change(sealer))


def with_handles(codec: Any, change: Callable[[Any], Any]) -> Any:
    """Return another codec in place of one that has keys."""
    return codec if isinstance(codec, StoredHandles) else change(codec)
