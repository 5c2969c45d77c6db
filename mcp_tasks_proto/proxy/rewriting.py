"""What is changed in a message on its way through, and nothing else is (PRX.1, PRX.8).

Down to the caller: the upstream's task id becomes the handle where it stands as an id - ``taskId``,
``related-task`` metadata, a status message, an error's text and data - and ``serverInfo`` becomes the
proxy's. What a tool wrote, the content of results, is passed on untouched. Up to the upstream: what belongs
to one hop of a request's ``_meta`` is dropped, and minted anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from re import escape, sub
from typing import Any, Final

from attrs import define, evolve

from mcp_tasks_proto.errors import ErrorObject, LocalProtocolError
from mcp_tasks_proto.vocabulary import (
    CLIENT_CAPABILITIES,
    CLIENT_INFO,
    PROGRESS_TOKEN,
    PROTOCOL_VERSION,
    RELATED_TASK,
    SERVER_INFO,
    SUBSCRIPTION_ID,
)
from mcp_tasks_proto.wire.jsonrpc import deeper_than, json_size

__all__ = ["HOP_KEYS", "Rewriter", "bounded", "passing_meta"]

HOP_KEYS: Final = frozenset(
    {
        CLIENT_CAPABILITIES,
        CLIENT_INFO,
        PROGRESS_TOKEN,
        PROTOCOL_VERSION,
        RELATED_TASK,
        SERVER_INFO,
        SUBSCRIPTION_ID,
    }
)
"""Keys of ``_meta`` that say something of one hop only; all others pass."""

MESSAGE_DEPTH: Final = 64
"""No message is nested deeper (WIRE.2), unless its host's own parser lets it."""


def bounded(members: Mapping[str, Any], *, most_bytes: int, depth: int) -> dict[str, Any]:
    """Return the members that keep within the bounds, taken in their order; those past them are dropped."""
    kept: dict[str, Any] = {}
    room = most_bytes
    for name, value in members.items():
        size = _size(name, value, depth)
        if size is not None and size <= room:
            room -= size
            kept[name] = value
    return kept


def _size(name: str, value: Any, depth: int) -> int | None:
    """Return the size of a member in bytes; ``None``: it is too deep or no JSON, and does not pass."""
    if deeper_than(value, depth):
        return None
    try:
        return json_size({name: value})
    except LocalProtocolError:
        return None  # a host's parser may take more than JSON


def passing_meta(meta: Any, *, most_bytes: int, depth: int) -> dict[str, Any]:
    """Return what passes of a ``_meta``: trace context, an application's and other extensions' keys."""
    if not isinstance(meta, dict):
        return {}
    if HOP_KEYS.issuperset(meta):
        return {}
    passing = {name: value for name, value in meta.items() if name not in HOP_KEYS}
    return bounded(passing, most_bytes=most_bytes, depth=depth)


@define(eq=False, repr=False, kw_only=True)
class Rewriter:
    """Rewrites what comes down from one upstream, of one task or of none."""

    server_info: Mapping[str, Any]
    """The proxy's own."""
    upstream_task_id: str | None = None
    """``None``: there is no id to look for."""
    handle: str | None = None
    """What stands in its place."""
    most_bytes: int
    """Of ``_meta`` and of unknown members, in one message."""
    depth: int

    def text(self, text: str) -> str:
        """Rewrite a status message or an error's text."""
        task_id, handle = self.upstream_task_id, self.handle or ""
        if not task_id or task_id not in text:
            return text
        # An id within a longer word is not the id.
        return sub(rf"(?<![A-Za-z0-9_-]){escape(task_id)}(?![A-Za-z0-9_-])", lambda _: handle, text)

    def error(self, error: ErrorObject) -> ErrorObject:
        """Rewrite an error; its code stays, and its data but for the id in texts."""
        if not self.upstream_task_id:
            return error
        data = None if deeper_than(error.data, MESSAGE_DEPTH) else self._texts(error.data)
        return evolve(error, message=self.text(error.message), data=data, extra=self.extra(error.extra or {}))

    def _texts(self, value: Any) -> Any:
        """Rewrite the texts in a JSON value, to the depth that a message may have."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {self.text(name): self._texts(member) for name, member in value.items()}
        return [self._texts(item) for item in value] if isinstance(value, list) else value

    def meta(self, meta: Any, *, of_result: bool = False) -> dict[str, Any]:
        """Rewrite the ``_meta`` of something that comes down; a result says who gave it (WIRE.4)."""
        passing = passing_meta(meta, most_bytes=self.most_bytes, depth=self.depth)
        related = meta.get(RELATED_TASK) if isinstance(meta, Mapping) else None
        own = isinstance(related, Mapping) and related.get("taskId") == self.upstream_task_id
        if own and self.handle is not None:
            passing[RELATED_TASK] = {"taskId": self.handle}
        return {**passing, SERVER_INFO: self.server_info} if of_result else passing

    def result(self, result: Mapping[str, Any]) -> dict[str, Any]:
        """Rewrite a result from a tool: its ``_meta`` only."""
        return self._with_meta(result, of_result=True)

    def inner_result(self, result: Mapping[str, Any]) -> dict[str, Any]:
        """Rewrite the result in a task's view, which is complete whether it says so or not (LIFE.7)."""
        inner = self._with_meta(result, of_result=SERVER_INFO in _meta_of(result))
        return {**inner, "resultType": "complete"}

    def requests(self, requests: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
        """Rewrite input requests: the ``_meta`` of their params only."""
        rewritten = {}
        for key, request in requests.items():
            params = request.get("params")
            changed = dict(request)
            if isinstance(params, Mapping):
                changed["params"] = self._with_meta(params)
            rewritten[key] = changed
        return rewritten

    def params(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Rewrite the params of a notification that an upstream sends on the way to an answer."""
        return self._with_meta(params)

    def extra(self, members: Mapping[str, Any]) -> dict[str, Any]:
        """Return the unknown members of an envelope that pass, with the id rewritten in their texts."""
        if not members:
            return {}
        kept = bounded(members, most_bytes=self.most_bytes, depth=self.depth)
        return dict(self._texts(kept)) if kept and self.upstream_task_id else kept

    def _with_meta(self, members: Mapping[str, Any], *, of_result: bool = False) -> dict[str, Any]:
        rewritten = dict(members)
        meta = self.meta(rewritten.pop("_meta", None), of_result=of_result)
        return {**rewritten, "_meta": meta} if meta else rewritten


def _meta_of(members: Mapping[str, Any]) -> Mapping[str, Any]:
    meta = members.get("_meta")
    return meta if isinstance(meta, Mapping) else {}
