"""What can be wrong with the hosts and origins that an endpoint is told to let in."""

from __future__ import annotations

__all__ = ["host_problem", "origin_problem"]


def host_problem(value: str) -> str | None:
    """Return what is wrong with a ``Host`` to accept; ``None``: nothing."""
    if "/" in value:
        return "is a host, with no http:// and no path: example.org, example.org:8000 or example.org:*"
    return None


def origin_problem(value: str) -> str | None:
    """Return what is wrong with an ``Origin`` to accept; ``None``: nothing."""
    scheme, _, host = value.partition("://")
    if value in ("*", "null") or (scheme and host and "/" not in host):
        return None
    return "is an origin as browsers send it, https://example.org, or * for any"
