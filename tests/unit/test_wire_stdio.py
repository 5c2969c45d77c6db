"""Framing on stdio: STD.1."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_tasks_proto.errors import LimitExceeded, LocalProtocolError
from mcp_tasks_proto.limits import Limits
from mcp_tasks_proto.wire.stdio import LineDecoder, frame

SMALL = Limits(message_bytes=8)


def outcomes(found: list[bytes | LimitExceeded]) -> list[bytes | str]:
    return [item.limit if isinstance(item, LimitExceeded) else item for item in found]


def read(*chunks: bytes, limits: Limits = SMALL) -> tuple[list[bytes | str], bool]:
    """Return what the chunks hold, and whether the end cut something off."""
    decoder = LineDecoder(limits)
    found = [item for chunk in chunks for item in decoder.feed(chunk)]
    return outcomes(found), decoder.close()


def test_a_message_is_a_line() -> None:
    assert frame(b'{"a":1}') == b'{"a":1}\n'
    assert read(frame(b'{"a":1}') + frame(b"{}")) == ([b'{"a":1}', b"{}"], False)


def test_a_message_with_a_newline_is_the_hosts_error() -> None:
    with pytest.raises(LocalProtocolError, match="newline"):
        frame(b'{"a":\n1}')


def test_lines_may_come_in_pieces() -> None:
    assert read(b"{", b'"a"', b":1", b"}\n{", b"}", b"\n") == ([b'{"a":1}', b"{}"], False)


def test_a_carriage_return_before_the_newline_is_left_out() -> None:
    assert read(b"{}\r\n[]\r", b"\n") == ([b"{}", b"[]"], False)


def test_blank_lines_are_left_out() -> None:
    assert read(b"\n\r\n  \t\n{}\n\n") == ([b"{}"], False)


@pytest.mark.parametrize(
    ("rest", "cut_off"), [(b"", False), (b" \r", False), (b"{", True), (b"123456789", True)]
)
def test_close_says_whether_a_line_was_cut_off(rest: bytes, cut_off: bool) -> None:
    assert read(b"{}\n" + rest)[1] is cut_off


def test_close_after_the_end_of_an_over_long_line_finds_nothing_cut_off() -> None:
    assert read(b"123456789\n") == (["message_bytes"], False)


def test_a_line_of_exactly_the_limit_passes() -> None:
    assert read(b"12345678\n12345678\r\n") == ([b"12345678", b"12345678"], False)


@pytest.mark.parametrize("line", [b"123456789", b"12345678\r\r", b"x" * 100_000])
def test_an_over_long_line_is_one_error_and_the_next_line_is_read(line: bytes) -> None:
    assert read(b"{}\n" + line + b"\n[]\n") == ([b"{}", "message_bytes", b"[]"], False)
    pieces = [line[start : start + 7] for start in range(0, len(line), 7)]
    assert read(*pieces, b"\n[]\n") == (["message_bytes", b"[]"], False)


def test_an_over_long_line_is_reported_before_it_ends() -> None:
    decoder = LineDecoder(SMALL)
    assert outcomes(decoder.feed(b"123456789")) == ["message_bytes"]
    assert decoder.feed(b"more" * 1000) == []
    assert decoder.feed(b"end\n{}\n") == [b"{}"]


def test_the_error_is_one_that_can_be_answered() -> None:
    (error,) = LineDecoder(SMALL).feed(b"123456789")
    assert isinstance(error, LimitExceeded)
    assert error.error.code == -32600
    assert error.error.data == {"reason": "message_bytes"}
    assert error.request_id is None


@settings(deadline=None)
@given(st.lists(st.sampled_from([b"a", b"12345678", b"\r", b"\n", b" ", b"{}"]), max_size=12), st.data())
def test_the_borders_of_chunks_do_not_matter(parts: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(parts)
    whole = read(stream)
    assert read(*(stream[at : at + 1] for at in range(len(stream)))) == whole
    cut = data.draw(st.integers(0, len(stream)))
    assert read(stream[:cut], stream[cut:]) == whole


@settings(deadline=None)
@given(st.lists(st.binary(min_size=1, max_size=20).map(lambda raw: raw.hex().encode())))
def test_framed_messages_come_back(messages: list[bytes]) -> None:
    assert read(b"".join(map(frame, messages)), limits=Limits()) == (messages, False)


@pytest.mark.parametrize("other", [b"\x0b", b"\x0c", b"X"])
def test_std1_only_the_blanks_of_json_are_taken_off_a_line(other: bytes) -> None:
    assert read(other + b"{}" + other + b"\n") == ([other + b"{}" + other], False)
    assert read(other) == ([], True)
