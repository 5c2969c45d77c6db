"""Results that a server allowed to be kept for a while (core, "Caching")."""

from __future__ import annotations

from collections.abc import Mapping
from json import loads
from typing import Any

from attrs import define, field

from mcp_tasks_proto.errors import LocalProtocolError
from mcp_tasks_proto.vocabulary import CACHEABLE_METHODS
from mcp_tasks_proto.wire.jsonrpc import encode

__all__ = ["ResultCache"]


@define(eq=False, repr=False)
class ResultCache:
    """Results by method and params, each until its time has passed; the oldest makes room for a new one.

    They are kept as bytes: whoever gets one may do with it as he likes.
    """

    _most: int
    _kept: dict[tuple[str, bytes], tuple[int, bytes]] = field(init=False, factory=dict)

    def get(self, method: str, params: Mapping[str, Any], now: int) -> dict[str, Any] | None:
        """Return a result that is still fresh, if there is one.

        Raises :class:`LocalProtocolError` when ``params`` of a cacheable method are not JSON.
        """
        if method not in CACHEABLE_METHODS:
            return None
        until, data = self._kept.get(_key(method, params), (now, b""))
        found: dict[str, Any] | None = loads(data) if now < until else None
        return found

    def put(self, method: str, params: Mapping[str, Any], result: Mapping[str, Any], now: int) -> None:
        """Keep a result, if it is of a kind that can be kept and its server allows it."""
        ttl_ms = result.get("ttlMs")
        if method not in CACHEABLE_METHODS or type(ttl_ms) is not int or ttl_ms <= 0:
            return
        key = _key(method, params)
        self._kept.pop(key, None)
        try:
            data = encode(result)
        except LocalProtocolError:
            return  # a host's parser may take more than JSON
        if len(self._kept) >= self._most:
            del self._kept[next(iter(self._kept))]
        self._kept[key] = (now + ttl_ms, data)


def _key(method: str, params: Mapping[str, Any]) -> tuple[str, bytes]:
    return method, encode(params)
