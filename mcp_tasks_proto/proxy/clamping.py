"""Times that an upstream says, as the proxy can promise them (PRX.12)."""

from __future__ import annotations

__all__ = ["clamp_poll_interval", "clamp_ttl"]


def clamp_ttl(upstream_ttl_ms: int | None, keep_ms: int) -> int:
    """Return the ``ttlMs`` to tell a caller: what the upstream says, never more than the proxy keeps.

    Unlimited is what the proxy keeps, and so is a time that is missing. One that is not positive, which no
    server may say, is the shortest there is.
    """
    if upstream_ttl_ms is None:
        return keep_ms
    return max(1, min(upstream_ttl_ms, keep_ms))


def clamp_poll_interval(upstream_hint_ms: int | None, floor_ms: int) -> int:
    """Return the ``pollIntervalMs`` to tell a caller: the upstream's hint, raised to the floor."""
    return floor_ms if upstream_hint_ms is None else max(upstream_hint_ms, floor_ms)
