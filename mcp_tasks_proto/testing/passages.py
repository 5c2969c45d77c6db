"""What a network does with messages, and when: of all that is in virtual time here."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from attrs import Attribute, field, frozen, validators

__all__ = ["NEVER_MS", "Passage", "duration", "from_now_on", "moment"]

NEVER_MS: Final = 2**63
NO_LESS_THAN_NONE: Final = validators.ge(0)


def duration(default_ms: int) -> Any:
    """Return the field of a duration in milliseconds."""
    return field(default=default_ms, validator=NO_LESS_THAN_NONE)


def moment(now: int, milliseconds: int) -> int:
    """Return when so many milliseconds have passed (``ValueError``: less than none)."""
    if milliseconds < 0:
        raise ValueError(f"time does not go back: {milliseconds} ms from now")
    return now + milliseconds


def from_now_on(of: Any, named: Attribute[Any], anew: Iterable[Any]) -> Iterable[Any]:
    """Have what is set anew in place of what is left of what was there before."""
    setattr(of, f"_{named.name}", iter(anew))
    return anew


@frozen(kw_only=True)
class Passage:
    """What the network does with one message. Raises ``ValueError`` for less than no time."""

    delay_ms: int = duration(5)
    """How long it is on its way."""
    lost: bool = False
    """It never arrives, nor does anything after it on its connection, and nobody is told."""
    cut: bool = False
    """Its connection breaks when it would have arrived, and both ends are told."""
    again_ms: int | None = field(default=None, validator=validators.optional(NO_LESS_THAN_NONE))
    """How long after it has arrived it does so once more, even if its connection is closed by then.

    A request is then told to the server twice, as when something on the way sends it again, and nobody hears
    what the server says to the second; whoever gives up the first gives up both. A reply or a notification
    the requester hears twice. The end of a connection does not come again, nor does what is lost or cut.
    ``None``: it does not.
    """
