"""Heads of requests to what stands beside an MCP endpoint: HTTP.1."""

from __future__ import annotations

import pytest

from mcp_tasks_proto.limits import Limits
from mcp_tasks_proto.wire.http import EndpointPolicy, Refusal
from mcp_tasks_proto.wire.pages import PageHead, check_page_head

HOST = (b"Host", b"localhost:8000")


def check(*headers: tuple[bytes, bytes], target: bytes | str = b"/projects/x") -> PageHead | Refusal:
    return check_page_head(b"GET", target, headers, EndpointPolicy(), Limits(message_bytes=10))


@pytest.mark.parametrize("target", [b"/projects/a%2Fb?view=all&x", "/projects/a%2Fb?view=all&x"])
def test_a_head_as_it_is(target: bytes | str) -> None:
    found = check(HOST, (b"X-Two", b"1"), (b"x-two", b" 2 "), target=target)
    assert found == PageHead(
        method="GET",
        path="/projects/a%2Fb",
        query="view=all&x",
        headers={"host": "localhost:8000", "x-two": "1, 2"},
    )
    assert check_page_head("PUT", "/", [HOST], EndpointPolicy(), Limits()) == PageHead(
        method="PUT", path="/", query="", headers={"host": "localhost:8000"}
    )


@pytest.mark.parametrize(
    ("header", "status"),
    [
        ((b"Host", b"evil.example"), 403),
        ((b"Origin", b"https://evil.example"), 403),
        ((b"Content-Length", b"many"), 400),
        ((b"Content-Length", b"11"), 413),
    ],
)
def test_http1_what_may_not_go_on(header: tuple[bytes, bytes], status: int) -> None:
    refused = check(header) if header[0] == b"Host" else check(HOST, header)
    assert isinstance(refused, Refusal)
    assert refused.status == status


@pytest.mark.parametrize(
    ("target", "authority", "allowed"),
    [
        (b"http://localhost/projects/x?a", "evil.example", True),
        (b"http://evil.example/projects/x", "localhost", False),
    ],
)
def test_http1_a_whole_url_names_the_host(target: bytes, authority: str, allowed: bool) -> None:
    found = check((b"Host", authority.encode()), target=target)
    assert isinstance(found, PageHead) is allowed
