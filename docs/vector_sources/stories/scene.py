"""What a story has told so far, and what stands for it in a vector."""

from __future__ import annotations

from re import fullmatch
from typing import Any, Final

from attrs import define, field

from mcp_tasks_proto.testing.traces.facts import Facts
from mcp_tasks_proto.testing.traces.proxy import handle
from mcp_tasks_proto.testing.traces.words import Json, Words, task_id, task_name

__all__ = ["HANDLE", "UPSTREAM_HINT_MS", "UPSTREAM_TTL_MS", "Scene", "value_in"]

HANDLE: Final = "H[0-9]+"
"""What a proxy's handles are called in stories."""
UPSTREAM_TTL_MS: Final = 60_000
"""Lifetime that an upstream gives, where a story does not say it."""
UPSTREAM_HINT_MS: Final = 1000
"""Likewise, its poll hint."""


def value_in(words: Words) -> Any:
    """Read one word, in JSON or not."""
    word = words.any_word("a value")
    return word.value if isinstance(word, Json) else word


@define(eq=False, kw_only=True)
class Scene:
    """The memory of one story."""

    proxy: bool
    """Whether it is about a proxy; else it is about a server."""
    ttl_ms: int
    """What a view says of its lifetime, where the story does not say it."""
    poll_interval_ms: int
    facts: Facts = field(init=False, factory=Facts)
    times: set[int] = field(init=False, factory=lambda: {0})
    """The moments at which something has happened, after the beginning."""
    streams: set[str] = field(init=False, factory=set)
    """Exchanges that are listen streams."""
    made_by: dict[str, str] = field(init=False, factory=dict)
    """Tasks of a server, and the exchange whose call became each."""
    _known: dict[str, str] = field(init=False, factory=dict)

    def placeholder(self, name: str) -> str:
        """Return what stands for a task from now on."""
        id_ = handle(name) if self.proxy else task_id(name)
        return self._known.setdefault(id_, f"${name}")

    def known_in(self, value: Any) -> Any:
        """Put placeholders in the place of ids that are known by now."""
        if isinstance(value, dict):
            return {name: self.known_in(member) for name, member in value.items()}
        if isinstance(value, list):
            return [self.known_in(item) for item in value]
        if not isinstance(value, str):
            return value
        name = task_name(value)
        id_ = handle(name) if self.proxy and value == task_id(name) and fullmatch(HANDLE, name) else value
        return self._known.get(id_, id_)

    def time(self, words: Words, name: str) -> Any:
        """Read a time. One at which nothing has happened is the engine's own, to keep its times apart."""
        after = words.integer("a time")
        return {"$time": after} if after in self.times else f"$changed_{name}_{after}"
