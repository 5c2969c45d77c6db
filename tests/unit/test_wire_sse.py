"""Server-sent events: HTTP.4, SUB.4."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_tasks_proto.errors import LimitExceeded
from mcp_tasks_proto.limits import Limits
from mcp_tasks_proto.wire.sse import KEEP_ALIVE, Event, EventDecoder, encode_event

SMALL = Limits(message_bytes=8)


def read(*chunks: bytes) -> list[Event]:
    decoder = EventDecoder(Limits())
    return [event for chunk in chunks for event in decoder.feed(chunk)]


def data(*chunks: bytes) -> list[bytes]:
    return [event.data for event in read(*chunks)]


# -- writing -----------------------------------------------------------------------------------------


def test_an_event_is_its_data() -> None:
    assert encode_event(b'{"a":1}') == b'data: {"a":1}\n\n'


@pytest.mark.parametrize("ending", [b"\n", b"\r", b"\r\n"])
def test_lines_of_data_reach_the_reader_as_lines(ending: bytes) -> None:
    assert data(encode_event(b"{" + ending + b"}")) == [b"{\n}"]


@settings(deadline=None)
@given(st.lists(st.binary(max_size=20).filter(lambda raw: b"\r" not in raw)))
def test_events_come_back(messages: list[bytes]) -> None:
    stream = b"".join(encode_event(message) + KEEP_ALIVE for message in messages)
    assert data(stream) == messages


def test_a_keep_alive_is_no_event() -> None:
    """SUB.4."""
    assert KEEP_ALIVE.startswith(b":")
    assert data(KEEP_ALIVE, encode_event(b"x"), KEEP_ALIVE) == [b"x"]


# -- reading -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
def test_every_kind_of_line_end(end: bytes) -> None:
    stream = end.join([b"data: a", b"data: b", b"", b"data: c", b"", b""])
    assert data(stream) == [b"a\nb", b"c"]
    assert data(*(stream[at : at + 1] for at in range(len(stream)))) == [b"a\nb", b"c"]


def test_a_crlf_may_be_split_between_chunks() -> None:
    assert data(b"data: a\r", b"\ndata: b\r", b"", b"\n\r", b"\n") == [b"a\nb"]


def test_a_newline_after_more_than_a_carriage_return_is_a_line_end() -> None:
    assert data(b"data: a\r\rdata: b", b"\n\n") == [b"a", b"b"]


def test_an_event_ends_at_a_carriage_return_without_waiting_for_more() -> None:
    assert data(b"data: a\r\r") == [b"a"]


def test_a_carriage_return_is_a_line_end_though_no_newline_follows() -> None:
    assert data(b"data: a\r", b"data: b\r", b"\r") == [b"a\nb"]


def test_one_space_after_the_colon_is_left_out() -> None:
    assert data(b"data:a\n\n", b"data: a\n\n", b"data:  a\n\n") == [b"a", b"a", b" a"]


def test_a_field_may_have_no_colon_and_no_value() -> None:
    assert data(b"data\n\n", b"data:\n\n", b"data\ndata\n\n") == [b"", b"", b"\n"]


def test_comments_and_unknown_fields_are_left_out() -> None:
    assert data(b": hello\ndata: a\nfoo: b\nDATA: c\n data: d\n:\n\n") == [b"a"]


def test_blank_lines_without_data_are_no_event() -> None:
    assert data(b"\n\n\nevent: x\n\ndata: a\n\n") == [b"a"]


def test_a_type_is_forgotten_with_its_event() -> None:
    events = read(b"event: x\n\nevent: y\ndata: a\n\ndata: b\n\n")
    assert [event.event for event in events] == ["y", "message"]
    (event,) = read(b"\nevent: x\n\ndata: a\n\n")
    assert event.event == "message"


def test_an_id_stays_until_the_next() -> None:
    events = read(b"id: 1\ndata: a\n\ndata: b\n\nid: 2\0\ndata: c\n\nid\ndata: d\n\n")
    assert [event.last_event_id for event in events] == ["1", "1", "1", ""]


@pytest.mark.parametrize(
    ("value", "retry_ms"),
    [
        (b"1500", 1500),
        (b"0", 0),
        (b"9" * 15, 10**15 - 1),
        (b"9" * 16, None),
        (b"1.5", None),
        (b"-1", None),
        (b"", None),
        (b"9" * 5000, None),
    ],
)
def test_retry_takes_digits_alone(value: bytes, retry_ms: int | None) -> None:
    decoder = EventDecoder(Limits(message_bytes=10_000))
    assert decoder.feed(b"retry: " + value + b"\n") == []
    assert decoder.retry_ms == retry_ms


def test_an_event_knows_the_retry_before_it_and_not_the_one_behind_it() -> None:
    events = read(b"data: a\n\nretry: 5\ndata: b\n\nretry: 7\n")
    assert [event.retry_ms for event in events] == [None, 5]


def test_a_byte_order_mark_may_come_first_and_only_first() -> None:
    assert data(b"\xef\xbb\xbfdata: a\n\n") == [b"a"]
    assert data(b"\xef", b"\xbb", b"\xbf", b"data: a\n\n") == [b"a"]
    assert data(b"data: a\n\xef\xbb\xbfdata: b\n\n") == [b"a"]


def test_names_that_are_not_utf8_do_not_crash() -> None:
    (event,) = read(b"event: \xff\nid: \xff\ndata: \xff\n\n")
    assert event == Event(data=b"\xff", event="\ufffd", last_event_id="\ufffd")


@pytest.mark.parametrize(
    ("stream", "cut_off"),
    [
        (b"", False),
        (b"data: a\n\n", False),
        (b"data: a\n\n: comment\n", False),
        (b"data: a\n", True),
        (b"data: a\n\nda", True),
    ],
)
def test_close_says_whether_an_event_was_cut_off(stream: bytes, cut_off: bool) -> None:
    decoder = EventDecoder(Limits())
    decoder.feed(stream)
    assert decoder.close() is cut_off


# -- bounds ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "stream", [b"data: 12345678\n\n", b"data: 123\ndata: 4567\n\n", b"data: 12345678\r\n\r\n"]
)
def test_an_event_of_exactly_the_limit_passes(stream: bytes) -> None:
    assert len(EventDecoder(SMALL).feed(stream)) == 1
    assert len(EventDecoder(SMALL).feed(stream * 3)) == 3


@pytest.mark.parametrize(
    "stream",
    [
        b"data: 123456789\n",
        b"data:123456789\n",
        b"data: 123456789",
        b"data: 123\ndata: 45678\n",
        b"data\n" * 10,
        b": a long comment\n",
        b"event: 12345678901234567890\n",
        b"x" * 100_000,
    ],
)
def test_an_event_over_the_limit_is_an_error(stream: bytes) -> None:
    """LIM.3."""
    decoder = EventDecoder(SMALL)
    with pytest.raises(LimitExceeded) as caught:
        decoder.feed(stream)
    assert caught.value.limit == "message_bytes"
    with pytest.raises(LimitExceeded):
        decoder.feed(b"data: a\n\n")
    with pytest.raises(LimitExceeded):
        decoder.close()


def test_events_before_the_error_are_not_lost() -> None:
    decoder = EventDecoder(SMALL)
    assert [event.data for event in decoder.feed(b"data: a\n\ndata: 123456789\n\ndata: b\n\n")] == [b"a"]
    with pytest.raises(LimitExceeded):
        decoder.feed(b"")


def until_overrun(chunks: list[bytes], limits: Limits) -> tuple[list[Event], bool | str]:
    """Return the events, then how it ended: cut off, clean, or over the limit."""
    decoder = EventDecoder(limits)
    found: list[Event] = []
    try:
        for chunk in chunks:
            found += decoder.feed(chunk)
        return found, decoder.close()
    except LimitExceeded as overrun:
        return found, overrun.limit


PARTS = [
    b"data",
    b"event",
    b"id",
    b":",
    b" ",
    b"\r",
    b"\n",
    b"\r\n",
    b"abc",
    b"\xef\xbb\xbf",
    b"\n\n",
    b"1234567",
]


@settings(deadline=None, max_examples=500)
@given(st.lists(st.sampled_from(PARTS), max_size=16), st.sampled_from([SMALL, Limits()]), st.data())
def test_the_borders_of_chunks_do_not_matter(parts: list[bytes], limits: Limits, draw: st.DataObject) -> None:
    stream = b"".join(parts)
    whole = until_overrun([stream], limits)
    assert until_overrun([stream[at : at + 1] for at in range(len(stream))], limits) == whole
    cut = draw.draw(st.integers(0, len(stream)))
    assert until_overrun([stream[:cut], stream[cut:]], limits) == whole


def test_leg2_an_event_may_have_an_id() -> None:
    assert encode_event(b"{}", "3-7") == b"id: 3-7\ndata: {}\n\n"
    (event,) = EventDecoder(Limits()).feed(encode_event(b"a\nb", "3-7"))
    assert (event.data, event.last_event_id) == (b"a\nb", "3-7")
