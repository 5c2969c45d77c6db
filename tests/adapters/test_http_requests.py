"""Requests over real sockets, on both loops: well-formed, unusual, broken (HTTP.1 to HTTP.5, LIM.3)."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from typing import Any

import pytest
from mcp_tasks_adapters.http_endpoint import HttpEndpoint, endpoint_policy, endpoint_url
from mcp_tasks_adapters.toolkit import Limits

from mcp_tasks_proto.wire.http import LOOPBACK_HOSTS
from tests.adapters.http_harness import (
    LOOPS,
    Client,
    Response,
    Running,
    call,
    chunked,
    mcp_headers,
    message,
    passes,
    post,
    raw,
    running,
)

HEADER_BYTES = 4096
MESSAGE_BYTES = 64 * 1024


@pytest.fixture(scope="module", params=LOOPS)
def server(request: pytest.FixtureRequest) -> Iterator[Running]:
    """A server for all tests here: none of them may disturb another."""
    limits = Limits(header_bytes=HEADER_BYTES, message_bytes=MESSAGE_BYTES)
    with running(request.param, limits=limits) as server:
        yield server


@pytest.fixture
def client(server: Running) -> Iterator[Client]:
    with server.connect() as client:
        yield client


def echoed(response: Response) -> str:
    """Return what the tool ``echo`` answered."""
    assert response.status == 200, response
    words: str = response.json["result"]["content"][0]["text"]
    return words


def assert_alive(server: Running) -> None:
    """The server answers others as if nothing had happened."""
    with server.connect() as other:
        assert echoed(other.ask(call("echo", text="alive"))) == "alive"


# -- one request after another ---------------------------------------------------------------------------


def test_a_connection_is_kept_for_further_requests(client: Client) -> None:
    for number in range(3):
        response = client.ask(call("echo", text=f"{number}", id=number))
        assert echoed(response) == f"{number}"
        assert response.json["id"] == number
        assert not response.closes


def test_a_response_carries_the_time_and_its_length(client: Client) -> None:
    response = client.ask(message("server/discover"))
    assert response.headers["date"].endswith(" GMT")
    assert int(response.headers["content-length"]) == len(response.body)


def test_pipelined_requests_are_answered_in_order(server: Running, client: Client) -> None:
    """The first one's tool does not answer until the last request has been sent."""
    client.send(post(call("wait", id="first")))
    assert passes(server.tools.started)
    client.send(post(call("echo", text="x", id="second")) + post(message("server/discover", id="third")))
    server.release()
    assert [client.response().json["id"] for _ in range(3)] == ["first", "second", "third"]


def test_more_pipelined_requests_than_the_server_wants_to_hold_are_all_answered(client: Client) -> None:
    """Sending and reading at the same time is the client's business; the server stops reading meanwhile."""
    requests = 300
    data = b"".join(post(call("echo", text="x" * 500, id=number)) for number in range(requests))
    assert len(data) > 4 * 65536
    client.socket.setblocking(True)
    sent = 0
    answered = 0
    while answered < requests:
        if sent < len(data):
            client.send(data[sent : sent + 4096])
            sent += 4096
        if sent >= len(data) or sent > 200_000:
            assert client.response().json["id"] == answered
            answered += 1


def test_ten_thousand_tiny_requests_on_one_connection(client: Client) -> None:
    body = {"jsonrpc": "2.0", "method": "notifications/nothing"}
    batch = 100
    for _ in range(100):
        client.send(post(body) * batch)
        for _ in range(batch):
            status, headers = client.head()
            assert (status, headers["content-length"]) == (202, "0")


def test_a_notification_is_accepted_with_nothing_to_say(client: Client) -> None:
    response = client.ask({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})
    assert (response.status, response.body) == (202, b"")


# -- framing ---------------------------------------------------------------------------------------------


def test_a_request_may_come_byte_by_byte(client: Client) -> None:
    for byte in post(call("echo", text="slow")):
        client.send(bytes([byte]))
    assert echoed(client.response()) == "slow"


@pytest.mark.parametrize("sizes", [(), (1,), (10, 20, 30), (1,) * 50])
def test_a_body_may_be_chunked(client: Client, sizes: tuple[int, ...]) -> None:
    client.send(chunked(call("echo", text="in pieces"), *sizes))
    assert echoed(client.response()) == "in pieces"
    assert echoed(client.ask(call("echo", text="again"))) == "again"


def test_a_chunked_body_may_have_trailers(client: Client) -> None:
    client.send(chunked(call("echo", text="x"), 5, trailer="Expires: never\r\n"))
    assert echoed(client.response()) == "x"
    assert echoed(client.ask(call("echo", text="again"))) == "again"


@pytest.mark.parametrize("chunk", [b"zz\r\n", b"5\r\nabcdeXX", b"-1\r\n", b"5 5\r\n"])
def test_a_malformed_chunk_is_a_bad_request(server: Running, client: Client, chunk: bytes) -> None:
    client.send(raw(chunk, [*mcp_headers(call("echo")), ("Transfer-Encoding", "chunked")]))
    response = client.response()
    assert response.status == 400
    assert response.json["error"]["code"] == -32600
    assert response.closes
    assert client.at_end()
    assert_alive(server)


def test_a_body_longer_than_declared_spoils_the_next_request_only(client: Client) -> None:
    body = json.dumps(call("echo", text="x")).encode()
    headers = [*mcp_headers(call("echo")), ("Content-Length", str(len(body)))]
    client.send(raw(body + b"and more\r\n\r\n", headers))
    assert echoed(client.response()) == "x"
    assert client.response().status == 400
    assert client.at_end()


def test_a_body_shorter_than_declared_is_a_bad_request(server: Running, client: Client) -> None:
    client.send(post(call("echo", text="x"))[:-5])
    client.end()
    response = client.response()
    assert response.status == 400
    assert response.json["error"]["code"] == -32600
    assert "id" not in response.json
    assert client.at_end()
    assert_alive(server)


def test_a_head_that_ends_in_the_middle_is_a_bad_request(client: Client) -> None:
    client.send(b"POST /mcp HTTP/1.1\r\nHost: loc")
    client.end()
    assert client.response().status == 400
    assert client.at_end()


def test_a_connection_that_ends_before_a_request_is_nothing(client: Client) -> None:
    client.end()
    assert client.at_end()


def test_a_half_closed_client_gets_the_answers_that_are_there_at_once(client: Client) -> None:
    client.send(post(message("server/discover", id=1)) + post(message("server/discover", id=2)))
    client.end()
    assert client.response().json["id"] == 1
    assert client.response().json["id"] == 2
    assert client.at_end()


@pytest.mark.parametrize("coding", ["gzip", "gzip, chunked", "chunked, chunked", "identity"])
def test_other_transfer_codings_are_not_implemented(server: Running, client: Client, coding: str) -> None:
    client.send(raw(b"0\r\n\r\n", [*mcp_headers(call("echo")), ("Transfer-Encoding", coding)]))
    response = client.response()
    assert response.status == 501
    assert response.closes
    assert client.at_end()
    assert_alive(server)


def test_a_length_beside_chunks_is_refused(client: Client) -> None:
    """Whoever reads only one of the two sees another request than we do."""
    smuggled = chunked(call("echo", text="x")).replace(b"\r\n\r\n", b"\r\nContent-Length: 4\r\n\r\n", 1)
    client.send(smuggled)
    assert client.response().status == 400
    assert client.at_end()


def test_chunks_in_http_1_0_are_refused(client: Client) -> None:
    client.send(chunked(call("echo", text="x")).replace(b"HTTP/1.1", b"HTTP/1.0", 1))
    assert client.response().status == 400
    assert client.at_end()


@pytest.mark.parametrize("lengths", [["1", "2"], ["x"], ["-1"], ["1" * 30], ["1, 2"]])
def test_a_length_that_is_not_one_number_is_a_bad_request(client: Client, lengths: list[str]) -> None:
    headers = [*mcp_headers(call("echo")), *(("Content-Length", length) for length in lengths)]
    client.send(raw(b"", headers))
    assert client.response().status == 400
    assert client.at_end()


@pytest.mark.parametrize(
    "data",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"hello\r\n\r\n",
        b"POST /mcp HTTP/1.1\r\n\r\n",
        b"POST /mcp HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        b"POST /mcp HTTP/1.1\r\nHost: a\r\nBad Header: b\r\n\r\n",
        b"POST /mcp HTTP/1.1\r\nHost: a\r\nName: a\x00b\r\n\r\n",
        b"POST /mcp HTTP/1.1\r\nHost : a\r\n\r\n",
        b"POST /mcp HTTP/9\r\nHost: a\r\n\r\n",
        b"POST /mcp HTTP/3.0\r\nHost: localhost\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"POST  /mcp HTTP/1.1\r\nHost: a\r\n\r\n",
    ],
    ids=[
        "tls",
        "no request",
        "no host",
        "two hosts",
        "name",
        "value",
        "space",
        "version",
        "later",
        "http/2",
        "spaces",
    ],
)
def test_what_is_not_http_is_a_bad_request(server: Running, client: Client, data: bytes) -> None:
    client.send(data)
    response = client.response()
    assert response.status == 400
    assert response.json["error"]["code"] == -32600
    assert response.closes
    assert client.at_end()
    assert_alive(server)


def test_secrets_in_a_broken_head_do_not_come_back(client: Client) -> None:
    client.send(b"POST /mcp HTTP/1.1\r\nHost: a\r\nAuthorization Bearer s3cret\r\n\r\n")
    assert b"s3cret" not in client.response().body


# -- bounds ----------------------------------------------------------------------------------------------


def test_a_message_of_the_largest_size_is_taken_and_one_more_byte_is_not(client: Client) -> None:
    empty = len(json.dumps(call("echo", text="")))
    words = "x" * (MESSAGE_BYTES - empty)
    assert echoed(client.ask(call("echo", text=words))) == words
    response = client.ask(call("echo", text=words + "x"))
    assert response.status == 413
    assert response.json["error"]["data"] == {"reason": "message_bytes"}
    assert response.closes


def test_a_body_over_the_limit_is_refused_before_it_comes(server: Running, client: Client) -> None:
    client.send(post(call("echo", text="x" * MESSAGE_BYTES)).partition(b"\r\n\r\n")[0] + b"\r\n\r\n")
    assert client.response().status == 413
    assert_alive(server)


def test_a_client_that_sends_all_of_a_large_body_first_still_reads_the_refusal(client: Client) -> None:
    client.send(post(call("echo", text="x" * 100 * MESSAGE_BYTES)))
    assert client.response().status == 413
    client.end()
    assert client.at_end()


def test_a_chunked_body_over_the_limit_is_refused_as_soon_as_that_shows(client: Client) -> None:
    client.send(raw(b"", [*mcp_headers(call("echo")), ("Transfer-Encoding", "chunked")]))
    client.send(b"1000\r\n" + b" " * 0x1000 + b"\r\n")
    client.send(b"ffff\r\n" + b" " * 0xFFFF + b"\r\n")
    response = client.response()
    assert response.status == 413
    assert response.json["error"]["data"] == {"reason": "message_bytes"}


def test_a_refused_request_with_a_body_over_the_limit_is_told_the_first_reason(client: Client) -> None:
    headers = [("Host", "evil.example"), ("Transfer-Encoding", "chunked")]
    client.send(raw(b"%x\r\n%s\r\n" % (MESSAGE_BYTES + 1, b" " * (MESSAGE_BYTES + 1)), headers))
    response = client.response()
    assert response.status == 403
    assert response.closes


def padded(size: int, header: str = "X-Padding") -> bytes:
    """Return a request whose head has this size."""
    body = call("echo", text="padded")
    bare_size = len(post(body, (header, "")).partition(b"\r\n\r\n")[0]) + 4
    return post(body, (header, "x" * (size - bare_size)))


def test_a_head_of_the_largest_size_is_taken(client: Client) -> None:
    client.send(padded(HEADER_BYTES))
    assert echoed(client.response()) == "padded"


@pytest.mark.parametrize("size", [HEADER_BYTES + 1, 2 * HEADER_BYTES, 100 * HEADER_BYTES])
def test_a_larger_head_is_refused(server: Running, client: Client, size: int) -> None:
    client.send(padded(size))
    response = client.response()
    assert response.status == 431
    assert response.json["error"]["data"] == {"reason": "header_bytes"}
    assert response.closes
    assert_alive(server)


def test_a_head_without_end_is_refused(server: Running, client: Client) -> None:
    client.send(b"POST /mcp HTTP/1.1\r\nHost: localhost\r\n" + b"X: y\r\n" * HEADER_BYTES)
    assert client.response().status == 431
    assert_alive(server)


# -- connection headers ----------------------------------------------------------------------------------


def test_a_client_that_wants_no_further_request_gets_the_end(client: Client) -> None:
    response = client.ask(call("echo", text="once"), ("Connection", "close"))
    assert echoed(response) == "once"
    assert response.closes
    assert client.at_end()


def test_http_1_0_gets_an_answer_and_the_end(client: Client) -> None:
    client.send(post(call("echo", text="old"), version="1.0"))
    response = client.response()
    assert echoed(response) == "old"
    assert client.at_end()


def test_http_1_0_gets_a_stream_without_chunks(client: Client) -> None:
    client.send(post(call("count", to=2), version="1.0"))
    response = client.response()
    assert "transfer-encoding" not in response.headers
    assert [event.get("method", "result") for event in response.events] == [
        "notifications/progress",
        "notifications/progress",
        "result",
    ]
    assert client.at_end()


def test_a_client_that_waits_to_be_told_to_continue_is_told(client: Client) -> None:
    head, _, body = post(call("echo", text="go on"), ("Expect", "100-continue")).partition(b"\r\n\r\n")
    client.send(head + b"\r\n\r\n")
    assert client.response().status == 100
    client.send(body)
    assert echoed(client.response()) == "go on"
    assert echoed(client.ask(call("echo", text="again"))) == "again"


def test_a_client_that_does_not_wait_is_not_told(client: Client) -> None:
    assert echoed(client.ask(call("echo", text="all at once"), ("Expect", "100-continue"))) == "all at once"


def test_a_client_that_waits_is_refused_at_once(client: Client) -> None:
    request = raw(b"", [("Host", "evil.example"), ("Expect", "100-continue"), ("Content-Length", "5")])
    client.send(request)
    response = client.response()
    assert response.status == 403
    assert response.closes


def test_an_upgrade_is_ignored(client: Client) -> None:
    response = client.ask(call("echo", text="no"), ("Connection", "Upgrade"), ("Upgrade", "h2c"))
    assert echoed(response) == "no"


# -- the endpoint ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT", "OPTIONS", "PATCH", "TRACE"])
def test_only_post_is_allowed(client: Client, method: str) -> None:
    """HTTP.1; the connection stays usable."""
    client.send(raw(b"", [("Host", "localhost")], method=method))
    response = client.response()
    assert (response.status, response.headers["allow"]) == (405, "POST")
    assert echoed(client.ask(call("echo", text="next"))) == "next"


def test_head_is_not_allowed_and_has_no_body(client: Client) -> None:
    client.send(raw(b"", [("Host", "localhost")], method="HEAD"))
    assert client.response(to_head=True).status == 405
    client.send(raw(b"", [("Host", "evil.example")], method="HEAD"))
    assert client.response(to_head=True).status == 403
    assert echoed(client.ask(call("echo", text="next"))) == "next"


def test_connect_is_refused(client: Client) -> None:
    client.send(raw(b"", [("Host", "localhost")], method="CONNECT", target="localhost:80"))
    assert client.response().status in (403, 404, 405)


@pytest.mark.parametrize(
    ("change", "status"),
    [
        (("Host", "evil.example"), 403),
        (("Origin", "https://evil.example"), 403),
        (("Content-Type", "text/plain"), 415),
        (("Accept", "text/html"), 406),
    ],
)
def test_a_head_that_is_refused_costs_only_its_own_request(
    client: Client, change: tuple[str, str], status: int
) -> None:
    """HTTP.1: the body is read over and the connection stays usable."""
    body = json.dumps(call("echo", text="x")).encode()
    headers = [header for header in mcp_headers(call("echo")) if header[0] != change[0]]
    client.send(raw(body, [*headers, change, ("Content-Length", str(len(body)))]))
    response = client.response()
    assert response.status == status
    assert response.json["error"]["code"] == -32600
    assert "id" not in response.json
    assert not response.closes
    assert echoed(client.ask(call("echo", text="next"))) == "next"


def test_another_path_is_not_found(client: Client) -> None:
    client.send(raw(b"{}", [("Host", "localhost"), ("Content-Length", "2")], target="/other"))
    response = client.response()
    assert (response.status, response.body) == (404, b"")


@pytest.mark.parametrize("name", ["MCP-Protocol-Version", "Mcp-Method", "Mcp-Name"])
def test_a_standard_header_that_stands_there_twice_is_a_mismatch(client: Client, name: str) -> None:
    """HTTP.2, also when both say the same."""
    body = call("echo", text="x")
    value = dict(mcp_headers(body))[name]
    response = client.ask(body, (name.lower(), value))
    assert (response.status, response.json["error"]["code"]) == (400, -32020)


def test_space_around_header_values_is_not_part_of_them(client: Client) -> None:
    """Trap 12."""
    body = call("echo", text="x")
    data = json.dumps(body).encode()
    headers = [(name, f" \t {value} \t") for name, value in mcp_headers(body)]
    client.send(raw(data, [*headers, ("Content-Length", f" {len(data)} ")]))
    assert echoed(client.response()) == "x"


def test_header_names_come_in_any_case(client: Client) -> None:
    body = call("echo", text="x")
    data = json.dumps(body).encode()
    headers = [(name.upper(), value) for name, value in mcp_headers(body)]
    client.send(raw(data, [*headers, ("CONTENT-LENGTH", str(len(data)))]))
    assert echoed(client.response()) == "x"


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", -32700),
        (b"{", -32700),
        (b"\xff", -32700),
        (b"[]", -32600),
        (b"3", -32600),
        (b"{}", -32600),
    ],
)
def test_a_body_that_is_no_message_is_a_bad_request(client: Client, body: bytes, code: int) -> None:
    """WIRE.1, and the connection stays usable."""
    response = client.ask(body)
    assert (response.status, response.json["error"]["code"]) == (400, code)
    assert echoed(client.ask(call("echo", text="next"))) == "next"


def test_a_message_nested_too_deeply_is_a_bad_request(server: Running, client: Client) -> None:
    response = client.ask(b"[" * 30_000 + b"]" * 30_000)
    assert response.status == 400
    assert response.json["error"]["data"] == {"reason": "message_depth"}
    assert_alive(server)


def test_an_unknown_method_is_not_found(client: Client) -> None:
    response = client.ask(message("tools/unheard-of"))
    assert (response.status, response.json["error"]["code"]) == (404, -32601)


def test_the_url_of_an_endpoint_on_ipv6() -> None:
    assert endpoint_url(("::1", 8000, 0, 0), "/mcp") == "http://[::1]:8000/mcp"


# -- options ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loop", LOOPS)
def test_the_endpoint_can_be_elsewhere_and_open_to_others(loop: str) -> None:
    options: dict[str, Any] = {
        "path": "/rpc",
        "allowed_hosts": ["Tasks.example"],
        "allowed_origins": ["https://app.example:*"],
    }
    with running(loop, **options) as server, server.connect() as client:
        assert server.url == f"http://127.0.0.1:{server.port}/rpc"
        body = json.dumps(call("echo", text="x")).encode()
        headers = [*mcp_headers(call("echo"))[1:], ("Content-Length", str(len(body)))]
        for more, status in [
            ([("Host", "tasks.example")], 200),
            ([("Host", "localhost:1")], 200),
            ([("Host", "tasks.example"), ("Origin", "https://app.example:8443")], 200),
            ([("Host", "tasks.example:1")], 403),
            ([("Host", "tasks.example"), ("Origin", "http://app.example")], 403),
        ]:
            client.send(raw(body, [*more, *headers], target="/rpc"))
            assert client.response().status == status, more


@pytest.mark.parametrize("loop", LOOPS)
def test_a_star_allows_every_host_and_origin(loop: str) -> None:
    with running(loop, allowed_hosts=["*"], allowed_origins=["*"]) as server, server.connect() as client:
        body = json.dumps(call("echo", text="x")).encode()
        headers = [*mcp_headers(call("echo"))[1:], ("Content-Length", str(len(body)))]
        client.send(raw(body, [("Host", "anywhere"), ("Origin", "https://anyone"), *headers]))
        assert client.response().status == 200


@pytest.mark.parametrize("loop", LOOPS)
def test_a_server_may_be_called_by_the_address_it_listens_on(loop: str) -> None:
    with running(loop, host="127.0.0.2") as server:
        body = json.dumps(call("echo", text="x")).encode()
        headers = [*mcp_headers(call("echo"))[1:], ("Content-Length", str(len(body)))]
        for name, status in ((f"127.0.0.2:{server.port}", 200), ("127.0.0.3", 403)):
            connection = socket.create_connection(("127.0.0.2", server.port), timeout=10)
            with connection, connection.makefile("rb") as reader:
                connection.sendall(raw(body, [("Host", name), *headers]))
                assert reader.readline().split()[1] == str(status).encode()


@pytest.mark.parametrize(
    ("bound", "allowed"),
    [
        ("Farm.example", "farm.example:*"),
        ("::1", "[::1]:*"),
        ("2001:db8::1", "[2001:db8::1]:*"),
        ("0.0.0.0", None),
        ("::", None),
        ("", None),
    ],
)
def test_a_server_that_listens_everywhere_has_no_name_of_its_own(bound: str, allowed: str | None) -> None:
    policy = endpoint_policy("/mcp", ["other.example"], (), sessions=False, bound=bound)
    own = {allowed} if allowed else set()
    assert policy.allowed_hosts == LOOPBACK_HOSTS | {"other.example"} | own


@pytest.mark.parametrize("loop", LOOPS)
def test_sec2_an_error_of_the_server_itself_ends_one_connection_and_is_logged_without_its_message(
    loop: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise ValueError("the secret that a peer sent")

    with running(loop) as server, server.connect() as other:
        with monkeypatch.context() as patch, server.connect() as client:
            patch.setattr(HttpEndpoint, "receive", fail)
            client.send(post(call("echo", text="x")))
            assert client.at_end()
        other.send(post(call("echo", text="x")))
        assert other.response().status == 200
    assert "ValueError" in caplog.text
    assert "secret" not in caplog.text


@pytest.mark.parametrize("loop", LOOPS)
def test_a_port_that_is_taken_is_an_os_error(loop: str) -> None:
    with running(loop) as server, pytest.raises(OSError, match="in use"), running(loop, port=server.port):
        pass


@pytest.mark.parametrize("loop", LOOPS)
def test_a_string_where_a_collection_belongs_is_refused(loop: str) -> None:
    with pytest.raises(TypeError), running(loop, allowed_hosts="tasks.example"):
        pass
