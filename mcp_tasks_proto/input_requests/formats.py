"""The formats that a string of a form may have, as JSON Schema defines them.

Their patterns have one way to go at every step, or never go back, so the work is linear in the length of what
a peer sent.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date
from typing import Final

from attrs import frozen

__all__ = ["FORMATS", "Format"]

EMAIL_CHARS: Final = 254
"""The longest mailbox that fits the path of an SMTP command (RFC 5321, 4.5.3.1.3)."""
LOCAL_PART_CHARS: Final = 64
"""The longest part before the @ (RFC 5321, 4.5.3.1.1)."""

# Possessive repetition is of single characters alone: that of groups goes wrong in Python 3.11.0 to 3.11.4.
_ATOM: Final = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]++"
_QUOTED: Final = r'"(?:[ !#-\[\]-~]|\\[ -~])*"'
_LABEL: Final = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_OCTET: Final = r"(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_ADDRESS: Final = rf"\[(?:{_OCTET}(?:\.{_OCTET}){{3}}|IPv6:[0-9A-Fa-f:.]{{2,45}})\]"
_EMAIL: Final = re.compile(
    rf"(?P<local>{_ATOM}(?:\.{_ATOM})*|{_QUOTED})@(?:{_LABEL}(?:\.{_LABEL})*|{_ADDRESS})"
)

_PLAIN: Final = r"A-Za-z0-9._~!$&'(*+),;=\-"
_URI: Final = re.compile(
    rf"[A-Za-z][A-Za-z0-9+.-]*+:"
    rf"(?://(?:[{_PLAIN}%:]*+@)?"
    rf"(?:\[[0-9A-Fa-f:.]++\]|\[v[0-9A-Fa-f]++\.[{_PLAIN}:]++\]|[{_PLAIN}%]*+)"
    rf"(?::[0-9]*+)?(?=[/?#]|\Z)|(?!//))"
    rf"[{_PLAIN}%:@/]*+"
    rf"(?:\?[{_PLAIN}%:@/?]*+)?"
    rf"(?:#[{_PLAIN}%:@/?]*+)?"
)
_BAD_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")

_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_DATE_TIME: Final = re.compile(
    r"([0-9-]{10})[Tt]([01][0-9]|2[0-3]):([0-5][0-9]):([0-5][0-9]|60)(?:\.[0-9]++)?"
    r"(?:[Zz]|([+-])([01][0-9]|2[0-3]):([0-5][0-9]))"
)
_MINUTES_A_DAY: Final = 1440


def _is_email(text: str) -> bool:
    """Whether this is a mailbox of RFC 5321."""
    if len(text) > EMAIL_CHARS:
        return False
    read = _EMAIL.fullmatch(text)
    return read is not None and len(read["local"]) <= LOCAL_PART_CHARS


def _is_uri(text: str) -> bool:
    """Whether this is an absolute URI, fragment allowed, of RFC 3986."""
    return _URI.fullmatch(text) is not None and _BAD_ESCAPE.search(text) is None


def _is_date(text: str) -> bool:
    """Whether this is a ``full-date`` of RFC 3339 in the years 1 to 9999."""
    if _DATE.fullmatch(text) is None:
        return False
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def _is_date_time(text: str) -> bool:
    """Whether this is a ``date-time`` of RFC 3339. A leap second is the last one of a day, in UTC."""
    read = _DATE_TIME.fullmatch(text)
    if read is None or not _is_date(read[1]):
        return False
    if read[4] != "60":
        return True
    offset = int(read[6] or 0) * 60 + int(read[7] or 0)
    utc = int(read[2]) * 60 + int(read[3]) + (offset if read[5] == "-" else -offset)
    return utc % _MINUTES_A_DAY == _MINUTES_A_DAY - 1


@frozen
class Format:
    """One format."""

    fits: Callable[[str], bool]
    wanted: str
    """What fits, as in "an email address"."""


FORMATS: Final[Mapping[str, Format]] = {
    "email": Format(_is_email, "an email address"),
    "uri": Format(_is_uri, "an absolute URI"),
    "date": Format(_is_date, "a date like 2026-07-28"),
    "date-time": Format(_is_date_time, "a date and time like 2026-07-28T12:00:00Z"),
}
"""The formats by their names."""
