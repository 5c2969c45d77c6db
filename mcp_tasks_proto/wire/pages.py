"""Requests to what stands beside an MCP endpoint, at paths of its own: their heads, checked in the same way.

Such a request may come from a web page as well, so that Host and Origin are looked at as the endpoint's are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from attrs import frozen

from mcp_tasks_proto.limits import Limits
from mcp_tasks_proto.wire.http import (
    EndpointPolicy,
    Refusal,
    check_length,
    check_reach,
    read_fields,
    split_target,
)

__all__ = ["PageHead", "check_page_head"]


@frozen(kw_only=True)
class PageHead:
    """A request that may go on to its body."""

    method: str
    path: str
    """Escapes and all."""
    query: str
    """What follows the question mark."""
    headers: Mapping[str, str]
    """Names in lower case; those of the same name joined."""


def check_page_head(
    method: bytes | str,
    target: bytes | str,
    headers: Iterable[tuple[bytes, bytes]],
    policy: EndpointPolicy,
    limits: Limits,
) -> PageHead | Refusal:
    """Decide whether a request may go on to its body (HTTP.1).

    What can be wrong is Host or Origin (403), and Content-Length (400, or 413 over ``Limits.message_bytes``).
    Whether there is anything at its path, and for that method, is not looked at.
    """
    fields, _ = read_fields(headers)
    path, query, authority = split_target(target)
    if refusal := check_reach(fields, authority, policy) or check_length(fields, limits):
        return refusal
    verb = method if isinstance(method, str) else str(method, "latin-1")
    return PageHead(method=verb, path=path, query=query, headers=fields)
