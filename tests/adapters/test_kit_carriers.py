"""What the kit's carriers make of bytes: responses of any kind, and lines that belong to this or that."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Final, cast

import pytest
from mcp_tasks_adapters.http_exchange import HttpAddress
from mcp_tasks_adapters.kit.carrier import MOST_BYTES, MOST_FACTS, Unfetched
from mcp_tasks_adapters.kit.http import Response
from mcp_tasks_adapters.kit.stdio import OVER, Sorter, StdioCarrier

from mcp_tasks_proto.limits import Limits
from mcp_tasks_proto.testing.kit import SECOND_RESPONSE, Begun, Came, Ended, Fact, Post, Unreadable

ADDRESS: Final = HttpAddress.parse("http://localhost:8000/mcp?a=b")
SMALL: Final = Limits(message_bytes=100)


# -- HTTP --------------------------------------------------------------------------------------------------


def sent(post: Post, **more: str) -> list[str]:
    """Return the lines of a request."""
    return Response(Limits()).begin(post, ADDRESS, more).decode("latin-1").split("\r\n")


def test_a_request_is_what_the_post_says_and_no_more() -> None:
    lines = sent(
        Post(body=b"[]", headers=(("Mcp-Name", "  x "), ("Mcp-Name", "y"))), Authorization="Bearer z"
    )
    assert lines == [
        "POST /mcp?a=b HTTP/1.1",
        "Host: localhost:8000",
        "User-Agent: mcp-tasks-kit",
        "Authorization: Bearer z",
        "Mcp-Name:   x ",
        "Mcp-Name: y",
        "Content-Length: 2",
        "",
        "[]",
    ]
    assert sent(Post(verb="GET"))[0] == "GET /mcp?a=b HTTP/1.1"
    assert not [line for line in sent(Post(verb="DELETE")) if line.startswith("Content-Length")]


def told(*parts: bytes, limits: Limits | None = None) -> list[Fact]:
    """Return what comes of the bytes of a response, and of its end."""
    response = Response(limits or Limits())
    response.begin(Post(body=b"{}"), ADDRESS, {})
    facts: list[Fact] = []
    for part in (*parts, b""):
        if not any(isinstance(fact, Ended) for fact in facts):
            facts += response.receive(part)
    return facts


def response(body: bytes, kind: str = "application/json", status: int = 200) -> bytes:
    """Return a response with a body."""
    head = f"HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def of(status: int, facts: Iterable[Fact]) -> list[Fact]:
    """Return the facts after the head, which must be there."""
    begun, *rest = facts
    assert isinstance(begun, Begun)
    assert begun.status == status
    return rest


@pytest.mark.parametrize(
    ("data", "facts"),
    [
        (response(b'{"a":1}'), [Came({"a": 1}), Ended()]),
        (response(b'{"a":1}', "text/html"), [Came({"a": 1}), Ended()]),
        (response(b"<p>", "text/html"), [Ended()]),
        (response(b"", "text/html"), [Ended()]),
    ],
)
def test_a_body_is_a_message_where_it_is_json(data: bytes, facts: list[Fact]) -> None:
    """Whatever the Content-Type says: the checks judge that."""
    assert of(200, told(data)) == facts
    assert of(200, told(*(bytes([byte]) for byte in data))) == facts, "byte by byte"


def test_a_body_that_should_be_json_and_is_not() -> None:
    unreadable, end = of(200, told(response(b'{"a":')))
    assert isinstance(unreadable, Unreadable)
    assert end == Ended()


def test_a_stream_of_events() -> None:
    events = b': ping\n\ndata: {"a":1}\n\nevent: other\ndata: {}\n\ndata: {"b":2}\n\n'
    assert of(200, told(response(events, "text/event-stream"))) == [Came({"a": 1}), Came({"b": 2}), Ended()]
    unreadable, end = of(200, told(response(b"data: {\n\n", "text/event-stream")))
    assert isinstance(unreadable, Unreadable)
    assert end == Ended()


def test_a_stream_that_goes_on_says_what_there_is() -> None:
    head = b"HTTP/1.1 200 X\r\nContent-Type: text/event-stream\r\n\r\n"
    reader = Response(Limits())
    reader.begin(Post(body=b"{}"), ADDRESS, {})
    assert of(200, reader.receive(head + b"data: 1\n\n")) == [Came(1)]
    assert reader.receive(b"data: 2") == []
    assert reader.receive(b"\n\n") == [Came(2)]
    assert reader.receive(b"") == [Ended()]
    assert reader.receive(b"") == [Ended()], "and nothing else, however often it is asked"


@pytest.mark.parametrize(
    ("data", "trouble"),
    [
        (b"", "the server closed the connection without an answer"),
        (b"HTTP/1.1 200", "the server closed the connection without an answer"),
        (b"HTTP/1.1 100 X\r\n\r\n", "the server closed the connection without an answer"),
        (response(b'{"a":1}')[:-1], "the server closed the connection within its answer"),
        (b"SSH-2.0-hello\r\n\r\n", "what came is not HTTP: illegal status line"),
    ],
)
def test_what_is_no_whole_response_has_its_trouble(data: bytes, trouble: str) -> None:
    last = told(data)[-1]
    assert isinstance(last, Ended)
    assert (last.trouble or "").startswith(trouble)


def test_a_response_has_its_bounds() -> None:
    body = json.dumps("x" * 200).encode()
    for kind, before in (
        ("application/json", b""),
        ("text/event-stream", b"data: "),
        ("text/event-stream", b"data: 1\n\ndata: "),
    ):
        last = told(response(before + body, kind), limits=SMALL)[-1]
        assert isinstance(last, Ended)
        assert "over a limit of this side" in str(last.trouble)
        assert last.over_limit, "it may be right"


# -- stdio, processes ----------------------------------------------------------------------------------------


class NoTime:
    """A loop on which all that takes time takes too long."""

    def now_ms(self) -> int:
        """Return the time."""
        return 0

    async def within(self, seconds: float | None, run: Callable[[], Awaitable[object]]) -> bool:
        """Do nothing."""
        return False


class Unread:
    """A process that does not read."""

    def __init__(self) -> None:
        self.ends: list[str] = []

    async def send(self, data: bytes) -> None:
        """Take nothing."""

    async def receive(self) -> bytes:
        """Say nothing."""
        return b""

    async def close_input(self) -> None:
        """Note it."""
        self.ends.append("close_input")

    async def wait(self) -> int:
        """Never."""
        return 0

    def terminate(self) -> None:
        """Note it."""
        self.ends.append("terminate")

    def kill(self) -> None:
        """Note it."""
        self.ends.append("kill")

    async def close(self) -> None:
        """Note it."""
        self.ends.append("close")


def test_a_process_that_does_not_read_is_ended_for_half_a_line_may_be_in_its_pipe() -> None:
    processes: list[Unread] = []

    async def spawn() -> Unread:
        processes.append(Unread())
        return processes[-1]

    async def run() -> list[Fact]:
        carrier = StdioCarrier(spawn, loop=cast(Any, NoTime()), limits=Limits())
        facts = []
        for exchange in (1, 2):
            await carrier.open(exchange, request(exchange))
            facts.append(await carrier.next(exchange, 1_000))
            await carrier.close(exchange)
        return facts

    assert asyncio.run(run()) == [Ended("the server does not read")] * 2
    assert [process.ends[-1] for process in processes] == ["close", "close"]


# -- stdio -------------------------------------------------------------------------------------------------


def request(id_: Any, method: str = "tools/call", **more: Any) -> Post:
    """Return a post with an id."""
    message = {"jsonrpc": "2.0", "id": id_, "method": method, "params": {}, **more}
    return Post(message=message, body=json.dumps(message).encode())


def says(sorter: Sorter, *messages: Mapping[str, Any] | str) -> None:
    """Have the server say something."""
    for message in messages:
        line = message if isinstance(message, str) else json.dumps(message)
        sorter.receive(line.encode() + b"\n")


def test_an_answer_goes_to_its_request_and_the_rest_to_the_last() -> None:
    sorter = Sorter(Limits())
    sorter.add(1, request(7))
    sorter.add(2, request("7"))
    sorter.add(3, Post(body=b"{"))
    says(sorter, {"id": 7}, {"id": "7"}, {"id": None, "error": {}}, {"method": "a"}, "[]", "Hello!")
    assert list(sorter.facts[1]) == [Came({"id": 7})]
    assert list(sorter.facts[2]) == [Came({"id": "7"})]
    nobody_s = [Came({"id": None, "error": {}}), Came({"method": "a"}), Came([])]
    assert list(sorter.facts[3]) == [*nobody_s, Unreadable("a line that is not JSON ('Hello!')")]


def test_notifications_of_a_subscription_go_to_it() -> None:
    sorter = Sorter(Limits())
    sorter.add(1, request(7, "subscriptions/listen"))
    sorter.add(2, request(8))
    meta = {"io.modelcontextprotocol/subscriptionId": 7}
    news = {"method": "notifications/tasks", "params": {"_meta": meta}}
    says(sorter, news)
    assert list(sorter.facts[1]) == [Came(news)]


def test_of_two_requests_with_one_id_the_later_is_meant() -> None:
    """WIRE.3: it is the one that should not have been sent."""
    sorter = Sorter(Limits())
    sorter.add(1, request(7))
    sorter.add(2, request(7))
    says(sorter, {"id": 7, "error": {}})
    assert not sorter.facts[1]
    assert sorter.facts[2]


def test_a_request_that_is_given_up_is_cancelled_and_its_late_answer_is_nobody_s() -> None:
    sorter = Sorter(Limits())
    sorter.add(1, request(7))
    line = sorter.drop(1)
    assert line is not None
    assert json.loads(line) == {
        "jsonrpc": "2.0",
        "method": "notifications/cancelled",
        "params": {"requestId": 7},
    }
    sorter.add(2, request(8))
    says(sorter, {"id": 7, "result": {}})
    assert not sorter.facts[2]


def test_a_second_response_belongs_to_nobody_and_is_told_as_that() -> None:
    """WIRE.3: it must not be taken for the answer to something else."""
    again = Unreadable(SECOND_RESPONSE)
    sorter = Sorter(Limits())
    sorter.add(1, request(7))
    says(sorter, {"id": 7, "result": {}})
    sorter.drop(1)
    sorter.add(2, request(8))
    says(sorter, {"id": 7, "result": {}})
    assert list(sorter.facts[2]) == [again]
    says(sorter, {"id": 8, "result": {}}, {"id": 8, "result": {}})
    sorter.drop(2)
    sorter.add(3, request(9))
    assert list(sorter.facts[3]) == [again], "also when both came at once"
    sorter.add(4, request(9))
    says(sorter, {"id": 9, "error": {}}, {"id": 9, "result": {}})
    sorter.add(5, request(10))
    assert not sorter.facts[5], "of two requests with an id each has an answer"


def test_requests_that_are_over_are_remembered_in_a_bounded_number() -> None:
    sorter = Sorter(Limits())
    for number in range(OVER + 1):
        sorter.add(number, request(number))
        says(sorter, {"id": number, "result": {}})
        sorter.drop(number)
    sorter.add(OVER + 1, request("next"))
    says(sorter, {"id": 0, "result": {}}, {"id": 1, "result": {}})
    assert list(sorter.facts[OVER + 1]) == [Came({"id": 0, "result": {}}), Unreadable(SECOND_RESPONSE)]


def test_what_nobody_fetches_is_kept_to_a_bound() -> None:
    """LIM.3: what comes after that is not."""
    flood = Ended("the server says more than anybody can listen to", over_limit=True)
    unfetched = Unfetched()
    unfetched += [Came(1, 1_000)] * (MOST_FACTS + 5)
    assert len(unfetched) == MOST_FACTS + 1
    assert list(unfetched)[-1] == flood
    large = Unfetched()
    large += [Came(1, MOST_BYTES)]
    assert large.popleft() == Came(1)
    large += [Came(1, MOST_BYTES), Came(2, 1)]
    assert list(large) == [Came(1), flood]


@pytest.mark.parametrize(
    "post",
    [
        Post(body=b"{"),
        Post(message={"method": "notifications/kit"}),
        Post(message={"id": 7, "result": {}}),
        Post(message={"id": 7, "method": "a"}, era="none"),
    ],
)
def test_what_is_no_request_is_not_cancelled(post: Post) -> None:
    sorter = Sorter(Limits())
    sorter.add(1, post)
    assert sorter.drop(1) is None


def test_what_was_answered_is_not_cancelled_either() -> None:
    sorter = Sorter(Limits())
    sorter.add(1, request(7))
    says(sorter, {"id": 7, "result": {}})
    assert sorter.drop(1) is None


def test_an_id_that_is_none_is_cancelled_and_not_remembered() -> None:
    sorter = Sorter(Limits())
    sorter.add(1, request([]))
    assert sorter.drop(1) is not None
    sorter.add(2, request(8))
    says(sorter, {"id": [], "result": {}})
    assert sorter.facts[2]


def test_a_server_that_is_gone_answers_nobody() -> None:
    sorter = Sorter(Limits())
    sorter.add(1, request(7))
    sorter.receive(b'{"id"')
    sorter.lost("it ended")
    assert list(sorter.facts[1]) == [Ended("it ended")]
    says(sorter, {"id": 7})
    assert list(sorter.facts[1])[1:] == [Came({"id": 7})], "half a line of the first one is forgotten"


def test_lines_have_a_bound_and_those_for_nobody_are_dropped() -> None:
    sorter = Sorter(SMALL)
    says(sorter, {"id": 1}, "x" * 200)
    sorter.add(1, request(7))
    says(sorter, "x" * 200)
    too_long = Unreadable("a line over a limit of this side (message_bytes)", over_limit=True)
    assert list(sorter.facts[1]) == [too_long]


def test_std1_of_a_line_that_is_no_message_the_beginning_is_told() -> None:
    """Enough to find out who printed it."""
    sorter = Sorter(Limits())
    sorter.add(1, request(7))
    sorter.receive(b"\xff" + b"x" * 100 + b"\n")
    (told,) = sorter.facts[1]
    assert told == Unreadable(f"a line that is not JSON ('\ufffd{'x' * 79}'…)")
