"""base64url: one text for each sequence of bytes, and only that text is read (INP.4)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_tasks_proto.wire.base64url import to_bytes, to_text


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", ""),
        (b"f", "Zg"),
        (b"fo", "Zm8"),
        (b"foo", "Zm9v"),
        (b"\xfb\xff", "-_8"),
        (b"\x5d\xd7\x57", "XddX"),
    ],
)
def test_bytes_are_written_without_padding_and_read_again(data: bytes, text: str) -> None:
    assert to_text(data) == text
    assert to_bytes(text) == data


@pytest.mark.parametrize("text", ["Zg==", "Zh", "Z", "Zm9v ", "+/8", "Zm\n9v", "é", "Zg=", "XX=XX"])
def test_no_other_way_to_write_them_is_read(text: str) -> None:
    assert to_bytes(text) is None


@given(st.binary())
def test_all_bytes_come_back(data: bytes) -> None:
    assert to_bytes(to_text(data)) == data
