"""Where what an engine says now is not what it said then, told so that a person sees it at once."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from itertools import islice
from json import dumps
from typing import Any, Final

from attrs import frozen

from mcp_tasks_proto.errors import ERROR_TABLE
from mcp_tasks_proto.testing.recordings.values import TYPE

__all__ = ["ABSENT", "Difference", "Kind", "Member", "Part", "compare_keys", "compare_lines", "compare_steps"]

MEMBERS: Final = 20
"""Members that are told of one effect; the rest is counted with the last of them."""


PARTS: Final = 20
"""Effects that a person is told of, for one input."""


class Kind(Enum):
    """In what way two steps differ."""

    CHANGED = "changed"
    """An effect has other fields."""
    MISSING = "missing"
    """An effect did not come."""
    ADDED = "added"
    """An effect came that was not there."""
    ORDER = "order"
    """The same effects came in another order."""
    DEADLINE = "deadline"
    """The engine wants to be woken at another time."""
    RAISED = "raised"
    """The engine raised, or raised something else, or did not raise."""
    KEYS = "keys"
    """The engine had other things sealed or opened."""


ABSENT: Final = "(absent)"
"""In place of a member that is not there."""


@frozen
class Member:
    """One member in which two effects differ."""

    path: str
    """The way to it: ``message.result.content[0].text``."""
    recorded: Any
    """JSON; :data:`ABSENT` where it is not there."""
    now: Any


@frozen(kw_only=True)
class Part:
    """One thing in which two steps differ."""

    kind: Kind
    place: int | None = None
    """Which of the recorded effects, counted from 1; of those that came now, where it is one of them."""
    effect: str | None = None
    """Its class."""
    recorded: Any = None
    """JSON: the effect, the deadline, what was raised; ``None`` where there was none."""
    now: Any = None
    members: tuple[Member, ...] = ()
    """What is different in an effect that changed."""
    hint: str | None = None
    """What that may have to do with, by the ids of the rules."""


@frozen(kw_only=True)
class Difference:
    """One input on which an engine does something else."""

    line: int
    """Of the recording, counted from 1."""
    at_ms: int
    """The time of the input."""
    input: Any
    """The input, as it was recorded."""
    parts: tuple[Part, ...]

    def to_json(self) -> dict[str, Any]:
        """Return it as one JSON object."""
        return {
            "line": self.line,
            "atMs": self.at_ms,
            "input": self.input,
            "parts": [_part_to_json(part) for part in self.parts],
        }

    def describe(self, *, width: int = 300) -> list[str]:
        """Return it as lines for a person; a value takes ``width`` characters at most. They are ASCII."""
        lines = [f"line {self.line}, at {self.at_ms}: {_shown(self.input, width)}"]
        for part in self.parts[:PARTS]:
            lines += [f"  {line}" for line in _described(part, width)]
        if len(self.parts) > PARTS:
            lines.append(f"  and {len(self.parts) - PARTS} more")
        return lines


# -- comparing -----------------------------------------------------------------------------------------------


def compare_lines(recorded: Mapping[str, Any], now: Mapping[str, Any]) -> list[Part]:
    """Compare what came of an input: ``effects`` and ``deadline``, or what was ``raised``, with its text."""
    parts: list[Part] = []
    raised, raises = _raised(recorded), _raised(now)
    if raised != raises:
        parts.append(Part(kind=Kind.RAISED, recorded=raised or None, now=raises or None, hint=_RAISED))
    if not raised or not raises:
        parts += compare_steps(recorded.get("effects", []), now.get("effects", []))
    if not raised and not raises and not _same(recorded.get("deadline"), now.get("deadline")):
        parts.append(
            Part(
                kind=Kind.DEADLINE, recorded=recorded.get("deadline"), now=now.get("deadline"), hint=_DEADLINE
            )
        )
    return parts


def _raised(line: Mapping[str, Any]) -> dict[str, Any]:
    return {name: line[name] for name in ("raised", "text") if name in line}


def compare_steps(recorded: Sequence[Any], now: Sequence[Any]) -> list[Part]:
    """Compare effects one by one: those that are the same are left out, wherever it can be told which they
    are."""
    if _same(list(recorded), list(now)):
        return []
    begin = 0
    while begin < min(len(recorded), len(now)) and _same(recorded[begin], now[begin]):
        begin += 1
    there, here = list(enumerate(recorded))[begin:], list(enumerate(now))[begin:]
    while there and here and _same(there[-1][1], here[-1][1]):
        there.pop()
        here.pop()
    if _unordered(there) == _unordered(here):
        return [
            Part(
                kind=Kind.ORDER,
                place=begin + 1,
                effect=_class_of(there[0][1]),
                recorded=[effect for _, effect in there],
                now=[effect for _, effect in here],
                hint="effects are carried out in order: a save before what it promises (LIFE.4), "
                "an acknowledgement before what follows it (SUB.1)",
            )
        ]
    return list(_unpaired(*_without_same(there, here)))


def compare_keys(left: Sequence[Any], unknown: Sequence[Any]) -> list[Part]:
    """Tell of uses of keys that were noted and did not come, and of those that came and were not noted."""
    if not left and not unknown:
        return []
    return [Part(kind=Kind.KEYS, recorded=list(left), now=list(unknown), hint=_KEYS)]


_Placed = tuple[int, Any]


def _unordered(effects: list[_Placed]) -> list[str]:
    return sorted(_key(effect) for _, effect in effects)


def _key(effect: Any) -> str:
    """Return a text that is the same for the same effect."""
    return dumps(effect, sort_keys=True)


def _without_same(there: list[_Placed], here: list[_Placed]) -> tuple[list[_Placed], list[_Placed]]:
    """Leave out what is the same, in the same order, with something else between."""
    positions: dict[str, list[int]] = {}
    for position, (_, effect) in enumerate(here):
        positions.setdefault(_key(effect), []).append(position)
    left: list[_Placed] = []
    found: set[int] = set()
    reached = 0
    for placed in there:
        same = next((one for one in positions.get(_key(placed[1]), ()) if one >= reached), None)
        if same is None:
            left.append(placed)
        else:
            found.add(same)
            reached = same + 1
    return left, [placed for position, placed in enumerate(here) if position not in found]


def _unpaired(there: list[_Placed], here: list[_Placed]) -> Iterator[Part]:
    """Tell of each effect that has no equal: with one of the same class in its place, or alone."""
    others: dict[str | None, deque[_Placed]] = {}
    for placed in here:
        others.setdefault(_class_of(placed[1]), deque()).append(placed)
    for place, effect in there:
        cls = _class_of(effect)
        if others.get(cls):
            yield _changed(place, cls, effect, others[cls].popleft()[1])
        else:
            hint = _RULES.get(cls or "")
            yield Part(kind=Kind.MISSING, place=place + 1, effect=cls, recorded=effect, hint=hint)
    for place, effect in sorted((placed for rest in others.values() for placed in rest), key=_place):
        cls = _class_of(effect)
        yield Part(kind=Kind.ADDED, place=place + 1, effect=cls, now=effect, hint=_RULES.get(cls or ""))


def _changed(place: int, cls: str | None, effect: Any, other: Any) -> Part:
    members = _bounded(_members(effect, other, ""))
    return Part(
        kind=Kind.CHANGED,
        place=place + 1,
        effect=cls,
        recorded=effect,
        now=other,
        members=members,
        hint=_hint(cls, members),
    )


def _place(placed: _Placed) -> int:
    return placed[0]


def _same(one: Any, other: Any) -> bool:
    """Whether two JSON values are the same: 1, 1.0 and true are three."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_same(value, other[name]) for name, value in one.items())
    if isinstance(one, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(one == other)


def _members(one: Any, other: Any, path: str) -> Iterator[Member]:
    """Find the members in which two JSON values differ, from the outside in."""
    if isinstance(one, dict) and isinstance(other, dict):
        for name in [*one, *(name for name in other if name not in one)]:
            way = f"{path}.{name}" if path else name
            if name not in one or name not in other:
                yield Member(way, one.get(name, ABSENT), other.get(name, ABSENT))
            else:
                yield from _members(one[name], other[name], way)
    elif isinstance(one, list) and isinstance(other, list):
        for at in range(max(len(one), len(other))):
            if at >= len(one):
                yield Member(f"{path}[{at}]", ABSENT, other[at])
            elif at >= len(other):
                yield Member(f"{path}[{at}]", one[at], ABSENT)
            else:
                yield from _members(one[at], other[at], f"{path}[{at}]")
    elif not _same(one, other):
        yield Member(path, one, other)


def _bounded(members: Iterator[Member]) -> tuple[Member, ...]:
    """Return the first members, and count the others: whoever writes a recording may make any number."""
    first = tuple(islice(members, MEMBERS))
    more = sum(1 for _ in members)
    if not more:
        return first
    return (*first[:-1], Member(f"and {more + 1} more", ABSENT, ABSENT))


def _class_of(effect: Any) -> str | None:
    name = effect.get(TYPE) if isinstance(effect, dict) else None
    return name if isinstance(name, str) else None


# -- hints ---------------------------------------------------------------------------------------------------

_DEADLINE: Final = (
    "the engine wants TimePassed at another time: a lifetime (TTL.1), the grace of a cancellation (CAN.6), "
    "a poll (REQ.2), a timeout"
)
_RAISED: Final = (
    "LocalProtocolError is for a host that breaks the rules; anything else is a fault of the engine"
)
_KEYS: Final = "requestState is sealed for a call (INP.4), a handle for its binding (PRX.5)"

_RULES: Final[Mapping[str, str]] = {
    "AcceptReport": "a report is accepted once it is durable (LIFE.4)",
    "Delete": "a record is removed when its time is over, or when nobody got its handle (TTL.1, CAN.7)",
    "DeliverInput": "each answer is delivered once (UPD.3, UPD.5)",
    "DropTask": "a task whose handle nobody got is dropped (PRX.6)",
    "FindExpired": "expired tasks are looked for at deadlines (TTL.2)",
    "KeepReference": "what a new process needs is saved before it is acted on (REQ.6)",
    "Load": "every request looks the task up (GET.1)",
    "LoadTask": "every use of a handle is checked anew (PRX.7)",
    "Prompt": "each question is shown once (REQ.4)",
    "RejectReport": "what may be asked depends on what the call declared (INP.2)",
    "Reply": "one reply for each request, after its save (WIRE.3, LIFE.4)",
    "RequestCancel": "a worker is told once (CAN.6)",
    "ResumeWork": "one run of a task's work at a time",
    "Save": "nothing is promised before it is saved (LIFE.4)",
    "SaveBinding": "a handle is given out once its binding is durable (PRX.6)",
    "SaveSnapshot": "the first end of a task is kept (PRX.13)",
    "Send": "one notification for each change of the view, the latest (SUB.2)",
    "SendLegacyUpstream": "what may be sent to an upstream twice, and what not (PRX.4)",
    "SendRequest": "polls keep to their pace, and calls are not repeated (REQ.2, REQ.3)",
    "SendUpstream": "what may be sent to an upstream twice, and what not (PRX.4)",
    "Settle": "a call settles once (REQ.6)",
    "StartTool": "what is refused is refused before the handler runs (NEG.5)",
    "StartWork": "work starts when its task is durable, and once (LIFE.4)",
    "StopCall": "who goes away cancels the request, never a task (CAN.7)",
    "WithdrawPrompt": "a question is withdrawn when its task ends (REQ.4)",
}
"""By the class of an effect, what decides whether it comes."""


def _hint(cls: str | None, members: Sequence[Member]) -> str | None:
    """Return what a change of these members may have to do with."""
    for member in members:
        if member.path.endswith("error.code"):
            return f"now {_code(member.now)}; then {_code(member.recorded)}"
        if member.path == "http_status":
            return "the HTTP status goes with the code (HTTP.5)"
        if member.path.endswith("lastUpdatedAt"):
            return "lastUpdatedAt moves when the view changes, and only then (LIFE.5)"
    return _RULES.get(cls or "")


def _code(code: Any) -> str:
    row = ERROR_TABLE.get(code) if type(code) is int else None  # type: ignore[call-overload]
    return f"{code}" if row is None else f"{code}, {row[1]}"


# -- telling -------------------------------------------------------------------------------------------------


def _part_to_json(part: Part) -> dict[str, Any]:
    told: dict[str, Any] = {"kind": part.kind.value}
    more = {"place": part.place, "effect": part.effect, "hint": part.hint}
    told |= {name: value for name, value in more.items() if value is not None}
    told |= {"recorded": part.recorded, "now": part.now}
    if part.members:
        told["members"] = [
            {"path": member.path, "recorded": member.recorded, "now": member.now} for member in part.members
        ]
    return told


def _described(part: Part, width: int) -> Iterator[str]:
    where = "" if part.place is None else f"effect {part.place}"
    named = where if part.effect is None else f"{where} {part.effect}"
    yield f"{named + ': ' if named else ''}{_HEADINGS[part.kind]}"
    if part.members:
        for member in part.members:
            yield f"  {member.path}: {_shown(member.recorded, width)} -> {_shown(member.now, width)}"
    else:
        if part.kind is not Kind.ADDED:
            yield f"  recorded: {_shown(part.recorded, width)}"
        if part.kind is not Kind.MISSING:
            yield f"  now:      {_shown(part.now, width)}"
    if part.hint is not None:
        yield f"  see: {part.hint}"


_HEADINGS: Final[Mapping[Kind, str]] = {
    Kind.CHANGED: "changed (recorded -> now)",
    Kind.MISSING: "did not come",
    Kind.ADDED: "came, and was not recorded",
    Kind.ORDER: "and those after it came in another order",
    Kind.DEADLINE: "another deadline",
    Kind.RAISED: "what the engine raised",
    Kind.KEYS: "what was sealed or opened",
}


def _shown(value: Any, width: int) -> str:
    text = value if value is ABSENT else _text(value)
    return text if len(text) <= width else f"{text[: width - 3]}..."


def _text(value: Any) -> str:
    return dumps(value)
