"""How a run of the kit goes about, and what tools it may have."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, Final

from attrs import field, frozen, validators

__all__ = ["KitSettings", "Role", "ToolCall"]


class Role(Enum):
    """What a tool can be of use for; the value is how it is named in reports and options."""

    COMPLETING = "completing"
    ERRING = "erring"
    FAILING = "failing"
    ASKING = "asking"
    ASKING_FIRST = "asking-first"
    SLOW = "slow"
    EXPIRING = "expiring"
    PLAIN = "plain"

    @property
    def meaning(self) -> str:
        """What a tool of this role does."""
        return _MEANINGS[self]


_MEANINGS: Final[Mapping[Role, str]] = {
    Role.COMPLETING: "gives a task that completes by itself",
    Role.ERRING: "gives a task that ends with isError",
    Role.FAILING: "gives a task that fails with a JSON-RPC error",
    Role.ASKING: "gives a task that asks for input",
    Role.ASKING_FIRST: "asks for input before anything else (input_required)",
    Role.SLOW: "gives a task that works until it is cancelled, or for long",
    Role.EXPIRING: "gives a task with a ttlMs of a few seconds",
    Role.PLAIN: "answers at once, and never gives a task",
}


@frozen
class ToolCall:
    """A tool, and the arguments to call it with; ``None``: some that fit its schema."""

    tool: str
    arguments: Mapping[str, Any] | None = None


def _positive(default: int) -> int:
    return field(default=default, validator=[validators.instance_of(int), validators.gt(0)])


@frozen(kw_only=True)
class KitSettings:
    """How a run goes about. Times are milliseconds."""

    calls: Mapping[Role, ToolCall] = field(factory=dict)
    """The tools that somebody named, by what they are named for."""
    search: bool = True
    """Whether tools that nobody named are called, to see what they do."""
    skipped: frozenset[str] = frozenset()
    """Tools that are never called for that."""
    searched_tools: int = _positive(40)
    """At most so many are."""
    answer_ms: int = _positive(10_000)
    """The longest wait for an answer."""
    task_ms: int = _positive(10_000)
    """The longest wait for a task to do what it is expected to."""
    look_ms: int = _positive(2_000)
    """How long a tool that nobody named may take to answer, and its task is watched, to see what it does."""
    quiet_ms: int = _positive(300)
    """For how long nothing may come before it counts as nothing."""
    total_ms: int = _positive(180_000)
    """The longest run."""
