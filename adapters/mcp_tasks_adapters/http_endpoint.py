"""Where HTTP requests, however they were read, become messages for the driver."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final

from attrs import define, evolve, field

from mcp_tasks_adapters.driver import Channel, RequestFacts, Service, SessionService
from mcp_tasks_proto.errors import ErrorObject, RemoteProtocolError, invalid_request, limit_reached
from mcp_tasks_proto.inputs import HttpHead
from mcp_tasks_proto.limits import Limits
from mcp_tasks_proto.wire.http import (
    JSON_HEADERS,
    LOOPBACK_HOSTS,
    LOOPBACK_ORIGINS,
    EndpointPolicy,
    Refusal,
    check_head,
    split_target,
)
from mcp_tasks_proto.wire.jsonrpc import decode, encode_checked, error_message
from mcp_tasks_proto.wire.pages import PageHead, check_page_head

__all__ = [
    "OTHER_FILES",
    "Headers",
    "HttpEndpoint",
    "endpoint_policy",
    "endpoint_url",
    "most_connections",
    "over_limit",
    "response_parts",
]

Headers = tuple[tuple[str, str], ...]
"""Response headers: names in lower case, and values."""

EVERY_ADDRESS: Final = frozenset({"", "0.0.0.0", "::"})

OTHER_FILES: Final = 64
"""Files that a server needs beside those of its connections: its store's, its tools'."""


@define(eq=False, kw_only=True)
class HttpEndpoint:
    """The MCP endpoint of one server, and what is served beside it."""

    driver: Service
    policy: EndpointPolicy
    limits: Limits
    now_ms: Callable[[], int]
    """Unix milliseconds, for the ``Date`` header."""
    _arriving: int = field(init=False, default=0)

    def arrived(self, length: int) -> ErrorObject | None:
        """Note so many bytes of a body whose rest has not come yet; fewer than none: it has, or never will.

        Return the error where that is too much together (LIM.3).
        """
        self._arriving += length
        return limit_reached("arriving_bytes") if self._arriving > self.limits.arriving_bytes else None

    def check(
        self, method: bytes | str, target: bytes | str, headers: Iterable[tuple[bytes, bytes]]
    ) -> HttpHead | PageHead | Refusal:
        """Decide whether a request with this head may go on to its body (HTTP.1)."""
        if self.driver.pages is not None and self._is_page(target, self.driver.pages.prefix):
            return check_page_head(method, target, headers, self.policy, self.limits)
        return check_head(method, target, headers, self.policy, self.limits)

    def _is_page(self, target: bytes | str, prefix: str) -> bool:
        """Whether something else than the endpoint itself is asked for, below the path of that."""
        path, _, _ = split_target(target)
        return path.startswith(prefix) and path != self.policy.path

    def receive(
        self, head: HttpHead | PageHead, body: bytes | bytearray, channel: Channel, peer: str | None
    ) -> int | None:
        """Hand in a complete request; return its exchange, ``None`` when there is none to be told of."""
        facts = None
        if self.driver.asks_who_calls:
            facts = RequestFacts(transport="http", headers=head.headers, peer=peer)
        if isinstance(head, PageHead):
            assert self.driver.pages is not None  # whose requests alone have such a head
            self.driver.pages.receive(head, body, channel, facts)
            return None
        if head.method != "POST":
            assert isinstance(self.driver, SessionService)  # to others the policy lets none through (LEG.2)
            return self.driver.receive_head(channel, facts=facts, http=head)
        try:
            message = decode(body, self.limits)
        except RemoteProtocolError as error:
            channel.reply(error_message(error.request_id, error.error), error.error.http_status)
            return None
        return self.driver.receive(message, channel, facts=facts, http=head)


def response_parts(message: Mapping[str, Any] | None, headers: Headers = ()) -> tuple[Headers, bytes]:
    """Return the headers and the body of a response that is not a stream."""
    if message is None:
        return headers, b""
    return (*JSON_HEADERS, *headers) if headers else JSON_HEADERS, encode_checked(message)


def over_limit(limit: str) -> ErrorObject:
    """Return the error for a request that runs over a bound of its connection (LIM.3)."""
    return evolve(invalid_request(f"over the server's limit ({limit})"), data={"reason": limit})


def endpoint_policy(
    path: str,
    allowed_hosts: Collection[str],
    allowed_origins: Collection[str],
    *,
    sessions: bool,
    bound: str = "",
) -> EndpointPolicy:
    """Return the policy that allows these hosts and origins beside this machine's own; ``*`` allows any.

    ``sessions``: whether clients of 2025-11-25 are served. ``bound``: the name or address that the server
    listens on. It may be called by it; one that listens on every address has no name of its own.
    """
    own = LOOPBACK_HOSTS
    if bound not in EVERY_ADDRESS:
        own |= {f"[{bound}]:*".lower() if ":" in bound else f"{bound}:*".lower()}
    return EndpointPolicy(
        path=path,
        allowed_hosts=_with(allowed_hosts, own),
        allowed_origins=_with(allowed_origins, LOOPBACK_ORIGINS),
        sessions=sessions,
    )


def _with(more: Collection[str], usual: frozenset[str]) -> frozenset[str] | None:
    if isinstance(more, str):
        raise TypeError("allowed hosts and origins are collections of strings")
    return None if "*" in more else usual | {name.lower() for name in more}


def endpoint_url(address: tuple[Any, ...], path: str) -> str:
    """Return the URL of an endpoint on a listening socket with this address (IPv4 or IPv6)."""
    host, port = address[:2]
    return f"http://[{host}]:{port}{path}" if ":" in host else f"http://{host}:{port}{path}"


def most_connections(limits: Limits) -> int:
    """Return how many connections to hold: ``Limits.connections``, or what the process can (LIM.3).

    Out of files, it could not even tell a client that it is busy.
    """
    try:
        from resource import RLIM_INFINITY, RLIMIT_NOFILE, getrlimit
    except ImportError:  # on Windows there is no such bound
        return limits.connections
    files, _ = getrlimit(RLIMIT_NOFILE)
    if files == RLIM_INFINITY:
        return limits.connections
    return min(limits.connections, max(1, files - OTHER_FILES))
