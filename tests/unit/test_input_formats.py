"""The formats of a form's strings: UPD.4."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta, timezone
from itertools import count
from typing import Final

import jsonschema  # type: ignore[import-untyped]
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.input_samples import (
    filled,
)

# -- formats --------------------------------------------------------------------------------------------

FORMATS: Final[Mapping[str, tuple[Sequence[str], Sequence[str]]]] = {
    "email": (
        [
            "user@example.com",
            "first.last+tag@mail.example.co.uk",
            "!#$%&'*+/=?^_`{|}~-@example.com",
            "a@b",
            "1@2.3",
            '"with space and @"@example.com',
            r'"quo\"te"@example.com',
            "user@[127.0.0.1]",
            "user@[IPv6:::1]",
            "u" * 64 + "@example.com",
            "user@" + "d" * 63 + ".org",
            "u" * 64 + "@" + ".".join(["d" * 63, "d" * 63, "d" * 61]),
        ],
        [
            "",
            "user",
            "@example.com",
            "user@",
            "a@b@c",
            ".user@example.com",
            "user.@example.com",
            "us..er@example.com",
            "us er@example.com",
            "user@-example.com",
            "user@example-.com",
            "user@exa_mple.com",
            "user@example..com",
            "user@example.com.",
            "user@[127.0.0.300]",
            "user@[IPv4:127.0.0.1]",
            "user@example.com\n",
            "usér@example.com",
            "user@exämple.com",
            "User <user@example.com>",
            '"unclosed@example.com',
            "u" * 65 + "@example.com",
            "user@" + "d" * 64 + ".org",
            "u" * 64 + "@" + ".".join(["d" * 63, "d" * 63, "d" * 62]),
        ],
    ),
    "uri": (
        [
            "https://example.com",
            "https://user:pw@example.com:8080/a/b;c=1?q=a+b&c#frag/?x",
            "http://[2001:db8::7]/c=GB?objectClass?one",
            "http://[v1.a:b]/",
            "file:///etc/hosts",
            "file://server/share",
            "mailto:John.Doe@example.com",
            "urn:oasis:names:specification:docbook:dtd:xml:4.1.2",
            "tel:+1-816-555-1212",
            "a:",
            "x:/",
            "http://a%20b/",
            "http://",
            "http://host:/",
        ],
        [
            "",
            "example.com",
            "//example.com/",
            "/abc",
            ":x",
            "1a:b",
            "a_b:c",
            "http:// space.com",
            "http://example.com/a b",
            "http://example.com/ä",
            "http://example.com/%2",
            "http://example.com/%zz",
            "http://example.com/<>",
            'http://example.com/"',
            "http://example.com/\\x",
            "http://example.com/{}|^`",
            "http://example.com/#a#b",
            "http://exa[mple.com",
            "http://[::1/",
            "http://[g::1]/",
            "http://host:8o/",
            "http://a@b@c/",
            "http://example.com\n",
        ],
    ),
    "date": (
        ["2026-07-28", "2024-02-29", "0001-01-01", "9999-12-31"],
        [
            "",
            "2026-7-28",
            "2026-02-29",
            "2026-13-01",
            "2026-00-10",
            "2026-07-32",
            "20260728",
            "2026-W31-2",
            "2026-07-28T",
            " 2026-07-28",
            "2026-07-28\n",
            "২০২৬-07-28",
            "26-07-28",
        ],
    ),
    "date-time": (
        [
            "2026-07-28T12:00:00Z",
            "2026-07-28t12:00:00.123456789z",
            "2026-07-28T23:59:59+23:59",
            "2026-07-28T00:00:00-00:00",
            "1990-12-31T23:59:60Z",
            "1990-12-31T15:59:60-08:00",
            "1991-01-01T00:59:60.5+01:00",
            "1991-01-01T05:29:60+05:30",
            "1990-12-31T20:29:60-03:30",
        ],
        [
            "",
            "2026-07-28",
            "2026-07-28T12:00:00",
            "2026-07-28 12:00:00Z",
            "2026-07-28T24:00:00Z",
            "2026-07-28T12:60:00Z",
            "2026-07-28T12:00:61Z",
            "2026-07-28T12:00:60Z",
            "1990-12-31T23:59:60+01:00",
            "2026-02-29T12:00:00Z",
            "2026-07-28T12:00Z",
            "2026-07-28T12:00:00.Z",
            "2026-07-28T12:00:00+24:00",
            "2026-07-28T12:00:00+0100",
            "2026-07-28T12:00:00 Z",
            "2026-07-28T12:00:00Z\n",
            "2026-07-28T১২:00:00Z",
        ],
    ),
}


@pytest.mark.parametrize("name", FORMATS)
def test_formats(name: str) -> None:
    good, bad = FORMATS[name]
    field = {"type": "string", "format": name}
    assert [one for one in good if filled(field, one) is not None] == []
    assert [one for one in bad if filled(field, one) is None] == []


def test_what_a_format_wants_is_said() -> None:
    wanted = {name: filled({"type": "string", "format": name}, "x") for name in FORMATS}
    assert wanted == {
        "email": " must be an email address",
        "uri": " must be an absolute URI",
        "date": " must be a date like 2026-07-28",
        "date-time": " must be a date and time like 2026-07-28T12:00:00Z",
    }


@settings(deadline=None)
@given(st.dates().map(str) | st.from_regex(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", fullmatch=True))
def test_dates_are_those_of_jsonschema(date: str) -> None:
    fits = jsonschema.Draft202012Validator.FORMAT_CHECKER.conforms(date, "date")
    assert (filled({"type": "string", "format": "date"}, date) is None) == fits


OFFSETS: Final = st.integers(-1439, 1439).map(lambda minutes: timezone(timedelta(minutes=minutes)))


@settings(deadline=None)
@given(st.datetimes(timezones=OFFSETS))
def test_every_date_and_time_that_python_writes(moment: datetime) -> None:
    assert filled({"type": "string", "format": "date-time"}, moment.isoformat()) is None


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize(
    "attack",
    [
        "a" * 1_000_000,
        "a@" + "a-" * 500_000,
        "a." * 500_000 + "@",
        '"' + "\\a" * 500_000,
        "a@[IPv6:" + ":" * 1_000_000,
        "a:" * 500_000,
        "a://" + "a:" * 500_000 + "\0",
        "a://" + "%41" * 300_000 + "@\0",
        "a://" + "a" * 1_000_000 + "@" + "a" * 1_000_000 + "[",
        "a://[" + ":" * 1_000_000,
        "a:" + "/" * 1_000_000 + "\0",
        "a:?" + "?" * 1_000_000 + "\0",
        "2026-07-28T12:00:00." + "0" * 1_000_000,
        "0" * 1_000_000,
    ],
    ids=count(),
)
def test_no_text_keeps_a_format_busy(name: str, attack: str) -> None:
    """Work that grows faster than the text would not end within the patience of anyone who runs this."""
    assert filled({"type": "string", "format": name}, attack) is not None or name == "uri"


def test_a_large_selection_is_checked_at_once() -> None:
    offered = [str(number) for number in range(50_000)]
    field = {"type": "array", "items": {"type": "string", "enum": offered}}
    assert filled(field, offered) is None
    assert filled(field, [*offered, "x"]) == " must be among the choices offered"
