"""What ordinary calls are answered with: kept for as long as the upstream says, and cut where it is too long.

Neither is for the task path, where a call is never answered from here and its answer passes whole (PRX.3,
trap 29). Nor are rounds of input: what they lead to hangs on more than the request, and they carry no hints.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from hashlib import sha256
from typing import Any, Final

from attrs import define, field, frozen

from mcp_tasks_proto.errors import LocalProtocolError
from mcp_tasks_proto.proxy.settings import ProxyLimits
from mcp_tasks_proto.proxy.upstreams import Target
from mcp_tasks_proto.wire.jsonrpc import encode, json_size

__all__ = ["ResultCache", "fingerprint", "limited"]

TRACE_KEYS: Final = frozenset({"traceparent", "tracestate", "baggage"})
"""Keys of ``_meta`` that are another with each request, and change nothing of its result."""

NOTE: Final = "[The proxy has left out the rest: the result is longer than it passes on.]"


# -- kept ----------------------------------------------------------------------------------------------


def fingerprint(
    method: str, params: Mapping[str, Any], meta: Mapping[str, Any], capabilities: Mapping[str, Any]
) -> str | None:
    """Return what is the same for two requests whose results are; ``None``: it cannot be told.

    ``params`` are those that go up, ``meta`` what passes of the caller's, ``capabilities`` what it declares.
    """
    telling = {name: value for name, value in meta.items() if name not in TRACE_KEYS}
    try:
        return sha256(encode({"of": [method, params, telling, capabilities]})).hexdigest()
    except LocalProtocolError:
        return None  # a host's parser may take more than JSON


@frozen
class _Kept:
    result: Mapping[str, Any]
    until_ms: int
    size: int


@define(eq=False, repr=False)
class ResultCache:
    """Results by upstream, authorization and request. Those used longest ago make room for new ones."""

    _kept: dict[Hashable, _Kept] = field(init=False, factory=dict)
    _bytes: int = field(init=False, default=0)

    def get(self, target: Target, request: str, now: int) -> dict[str, Any] | None:
        """Return a fresh result, which says for how much longer it is."""
        for key in ((target.upstream, target.authorization, request), (target.upstream, None, request)):
            kept = self._remove(key)
            if kept is not None and now < kept.until_ms:
                self._add(key, kept)
                return {**kept.result, "ttlMs": kept.until_ms - now}
        return None

    def put(
        self, target: Target, request: str, result: Mapping[str, Any], now: int, limits: ProxyLimits
    ) -> None:
        """Keep a result for its ``ttlMs``: for everybody where it is public, else for this authorization."""
        ttl_ms = result.get("ttlMs")
        if type(ttl_ms) is not int or ttl_ms <= 0:
            return
        try:
            size = json_size(result)
        except LocalProtocolError:
            return
        if size > limits.cached_bytes:
            return
        public = result.get("cacheScope") == "public"
        key = (target.upstream, None if public else target.authorization, request)
        self._remove(key)
        while self._kept and (
            len(self._kept) >= limits.cached_results or self._bytes + size > limits.cached_bytes
        ):
            self._remove(next(iter(self._kept)))
        self._add(key, _Kept(result, now + min(ttl_ms, limits.cached_ms), size))

    def _add(self, key: Hashable, kept: _Kept) -> None:
        self._kept[key] = kept
        self._bytes += kept.size

    def _remove(self, key: Hashable) -> _Kept | None:
        kept = self._kept.pop(key, None)
        if kept is not None:
            self._bytes -= kept.size
        return kept


# -- cut -----------------------------------------------------------------------------------------------


def limited(method: str, result: dict[str, Any], most_bytes: int) -> dict[str, Any] | None:
    """Return a result that is at most so long, as JSON; ``None``: it is longer, and must not be cut.

    Only what a person or a model reads can be cut: the content of a tool's result, where nothing structured
    stands beside it. It keeps its beginning, to within a text, and says that there was more.
    """
    try:
        if json_size(result) <= most_bytes:
            return result
    except LocalProtocolError:
        return result
    content = result.get("content")
    if method != "tools/call" or not isinstance(content, list) or "structuredContent" in result:
        return None
    note = {"type": "text", "text": NOTE}
    room = most_bytes - json_size({**result, "content": [note]})
    return None if room < 0 else {**result, "content": [*_beginning(content, room), note]}


def _beginning(content: list[Any], room: int) -> list[Any]:
    """Return as much of the content as there is room for, which is not all of it."""
    kept: list[Any] = []
    blocks = iter(content)
    while _size(block := next(blocks)) <= room:
        room -= _size(block)
        kept.append(block)
    if isinstance(block, Mapping) and isinstance(block.get("text"), str):
        cut = _cut(block, room)
        kept += [] if cut is None else [cut]
    return kept


def _size(block: Any) -> int:
    """Return how much a block takes in a list, its comma included."""
    return json_size(block) + len(",")


def _cut(block: Mapping[str, Any], room: int) -> dict[str, Any] | None:
    """Return a block of text with as much of its text as there is room for."""
    fits, most = 0, min(len(block["text"]), room)
    while fits < most:
        middle = (fits + most + 1) // 2
        if _size({**block, "text": block["text"][:middle]}) <= room:
            fits = middle
        else:
            most = middle - 1
    return {**block, "text": block["text"][:fits]} if fits else None
