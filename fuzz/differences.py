"""Where we accept something else than the official SDK's types do, and by which rule. All else is a finding.

:mod:`fuzz.targets.codec` reads this table, and a test replays an example of each row.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from attrs import field, frozen

__all__ = ["DIFFERENCES", "Case", "Difference", "is_by_contract"]


@frozen(kw_only=True)
class Case:
    """A message of which the two think differently."""

    value: Any
    """The message, or the params of a request: whatever was looked at, read as leniently as can be."""
    ours: str = ""
    """Why we refuse; empty: we do not."""
    theirs: tuple[str, ...] = ()
    """The members that they object to, with dots between names; none: they accept."""
    kinds: tuple[str, str] | None = None
    """What we take it for and what they do, where both accept it."""


@frozen(kw_only=True)
class Difference:
    """One row."""

    rule: str
    what: str
    """What one side accepts and the other refuses."""
    applies: Callable[[Case], bool] = field(repr=False)


def is_by_contract(case: Case) -> bool:
    """Whether a row of the table explains a difference."""
    return any(row.applies(case) for row in DIFFERENCES)


def _we_refuse(why: str, wrong: Callable[[Any], bool] = lambda value: True) -> Callable[[Case], bool]:
    """We refuse for this reason; if a member is named there, its value is ``wrong``."""

    def applies(case: Case) -> bool:
        found = re.search(why, case.ours)
        if found is None:
            return False
        member = found.groupdict().get("member")
        return member is None or wrong(_at(case.value, member))

    return applies


def _they_refuse(member: str) -> Callable[[Case], bool]:
    """They refuse for the sake of this member alone, and what is in it."""
    return lambda case: bool(case.theirs) and all(re.match(member, name) for name in case.theirs)


def _at(value: Any, member: str) -> Any:
    for name in member.split("."):
        if not isinstance(value, Mapping):
            return None
        value = value.get(name)
    return value


def _is_null(value: Any) -> bool:
    return value is None


def _lacks_id(case: Case) -> bool:
    """Whether it is an error in answer to something unreadable."""
    lacks = isinstance(case.value, Mapping) and "error" in case.value and "id" not in case.value
    return lacks and case.kinds is None


def _answers(value: Any) -> bool:
    """Whether a message has members of a response."""
    return not {"result", "error"}.isdisjoint(value)


def _asks_and_answers(case: Case) -> bool:
    """Whether it is a request with members of a response, and taken for either."""
    asked = case.kinds is not None and case.kinds[0] == "JSONRPCRequest"
    return asked and _answers(case.value)


DIFFERENCES: Final = (
    # -- JSON
    Difference(rule="WIRE.2", what="they take NaN and Infinity", applies=_we_refuse("NaN and Infinity")),
    Difference(rule="WIRE.2", what="they take 1e999", applies=_we_refuse("a number is out of range")),
    Difference(rule="WIRE.2", what="they take a member twice", applies=_we_refuse("two members of")),
    Difference(rule="WIRE.2", what="they take deeper nesting", applies=_we_refuse("nested [0-9]+ levels")),
    # -- messages
    Difference(
        rule="WIRE.1",
        what="they take a request with an id that is none for a notification",
        applies=_we_refuse('"(?P<member>id)" must be', lambda value: type(value) not in (str, int)),
    ),
    Difference(
        rule="WIRE.1",
        what="they take null for params that are not there",
        applies=_we_refuse('"(?P<member>params)" must be an object', _is_null),
    ),
    Difference(
        rule="WIRE.1",
        what="they take a result with an error beside it",
        applies=lambda case: (
            'one of "result" and "error"' in case.ours and {"result", "error"} <= set(case.value)
        ),
    ),
    Difference(
        rule="WIRE.1",
        what="they take a response that has a method or params which are none",
        applies=lambda case: (
            re.search('"(method|params)" must be', case.ours) is not None and _answers(case.value)
        ),
    ),
    Difference(
        rule="WIRE.1",
        what="they convert an error's code to an integer",
        applies=lambda case: (
            '"error" must have' in case.ours and type(_at(case.value, "error.code")) is not int
        ),
    ),
    Difference(rule="WIRE.1", what="we take an error without an id", applies=_lacks_id),
    Difference(
        rule="WIRE.1",
        what="they take a request with a result or an error for what it has more members of",
        applies=_asks_and_answers,
    ),
    # -- params
    Difference(rule="NEG.2", what="they take any version", applies=_we_refuse("Unsupported protocol")),
    Difference(
        rule="NEG.6",
        what="they know nothing of taskIds, and of who may ask for them",
        applies=_we_refuse("Missing required client capability|notifications.taskIds"),
    ),
    Difference(
        rule="NEG.1",
        what="we look at no more of _meta than we need: the version, and capabilities that are an object",
        applies=_they_refuse(r"_meta\.(?!io\.modelcontextprotocol/protocolVersion)[^.]"),
    ),
    Difference(
        rule="WIRE.5",
        what="they take null for a member that is not there",
        applies=_we_refuse(
            r"(?P<member>arguments|inputResponses|requestState|reason|notifications\.\w+) must be", _is_null
        ),
    ),
    Difference(
        rule="SUB.1",
        what="they convert filters to true and false",
        applies=_we_refuse(
            r"(?P<member>notifications\.\w+Changed) must be", lambda value: type(value) is not bool
        ),
    ),
    Difference(
        rule="WIRE.3",
        what="they convert the id of a cancelled request",
        applies=_we_refuse(r"(?P<member>requestId) must be", lambda value: type(value) not in (str, int)),
    ),
    Difference(
        rule="INP.4",
        what="we check answers against what was asked, and let go of all others",
        applies=_they_refuse(r"inputResponses\."),
    ),
    Difference(rule="NEG.3", what="we look at a cursor last", applies=_they_refuse(r"cursor$")),
)
