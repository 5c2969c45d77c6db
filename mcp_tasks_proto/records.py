"""The stored task, as values. A host's store keeps them; no engine does.

A record changes by being replaced: every engine decision makes a new one with the next
:attr:`TaskRecord.version`, and the store accepts it only where the version before is still current
(compare-and-set). Times are Unix milliseconds.

A record has no slots: to make a frozen value that has some takes attrs twice as long.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from attrs import field, frozen

from mcp_tasks_proto.errors import ErrorObject
from mcp_tasks_proto.lifecycle import Status

__all__ = ["InputEntry", "Resumption", "TaskRecord"]


@frozen(kw_only=True)
class InputEntry:
    """One input request of a task, from the moment it is asked until the task ends (INP.1).

    ``key`` is what the peer sees, unique for the task's life. ``name`` is what the tool called it and
    ``ask`` the tool's call that made it, so that the answer finds its way back.
    """

    key: str
    name: str
    ask: str | None
    """``None``: the work was resumed since, and has not asked this again."""
    request: Mapping[str, Any]
    """The request as the peer sees it: ``{"method": …, "params": …}``."""
    response: Mapping[str, Any] | None = None
    """The peer's answer, verbatim; ``None`` until one came."""
    withdrawn: bool = False
    """The tool no longer waits for it, or for its answer where there is one."""

    @property
    def outstanding(self) -> bool:
        """Whether an answer to it would still be taken."""
        return self.response is None and not self.withdrawn


@frozen(kw_only=True)
class Resumption:
    """What it takes to run a task's work again when its node is gone, and how often that was done."""

    times: int = 0
    """How often the work was taken over. Each run of the work has its own number: what a run says that has
    another is not taken."""
    checkpoint: Any = None
    """What the work saved last for the next run: any JSON value, ``None`` if nothing."""
    answers: Mapping[str, Any] = field(factory=dict)
    """What the handler was given when the call became a task: the answers of a round before (INP.4) …"""
    state: Any = None
    """… and its state."""


@frozen(kw_only=True, slots=False)
class TaskRecord:
    """Everything that is known of one task. What a peer sees of it is its *view*."""

    task_id: str
    version: int
    """1 when created, one more with each save."""
    principal: str | None
    """Who owns it; ``None``: made by a caller without a principal, readable by such callers only (SEC.1)."""
    tool: str
    arguments: Mapping[str, Any] | None
    """The call's arguments; dropped once the task has ended."""
    client_capabilities: Mapping[str, Any]
    """What the creating call declared: the kinds of input that may be asked (INP.2). Dropped likewise."""

    status: Status
    status_message: str | None = None
    created_at_ms: int
    last_updated_at_ms: int
    ttl_ms: int | None
    """Lifetime from creation; ``None``: unlimited."""
    poll_interval_ms: int | None = None
    node: str | None = None
    """Where the work runs, as the engine there was named; ``None``: it has no name, or the task has ended."""
    resumption: Resumption | None = None
    """``None``: the tool was not declared resumable when the task was made, or the task has ended."""

    inputs: tuple[InputEntry, ...] = ()
    """Every input request ever made, in order; emptied once the task has ended."""
    cancel_requested_at_ms: int | None = None
    result: Mapping[str, Any] | None = None
    """With ``completed`` only."""
    error: ErrorObject | None = None
    """With ``failed`` only."""

    payload_bytes: int = 0
    """Arguments, input requests, answers, checkpoint and result as JSON; counts against
    ``Limits.task_bytes``."""
    extra: Mapping[str, Any] = field(factory=dict)
    """Fields that a later version of this package wrote; carried along."""

    @property
    def expires_at_ms(self) -> int | None:
        """From this moment on the task reads as unknown (TTL.1); ``None``: never."""
        return None if self.ttl_ms is None else self.created_at_ms + self.ttl_ms

    def expired(self, now: int) -> bool:
        """Whether the task reads as unknown at ``now``."""
        return self.ttl_ms is not None and now >= self.created_at_ms + self.ttl_ms

    @property
    def resumptions(self) -> int:
        """How often the work was taken over: the number of the run that may report."""
        return 0 if self.resumption is None else self.resumption.times

    @property
    def outstanding(self) -> tuple[InputEntry, ...]:
        """The input requests that wait for an answer, oldest first."""
        return tuple(entry for entry in self.inputs if entry.outstanding)

    def changed(self, now: int, **changes: Any) -> TaskRecord:
        """Return the next version of this record, with ``changes``.

        ``last_updated_at_ms`` moves, and always forward, exactly when a field of the view differs (LIFE.5).
        """
        for name, value in changes.items():
            if _seen(name, value) != _seen(name, getattr(self, name)):
                changes["last_updated_at_ms"] = max(now, self.last_updated_at_ms + 1)
                break
        # attrs.evolve does the same, at several times the cost, for a class that it has to look at first.
        return TaskRecord(**{**vars(self), **changes, "version": self.version + 1})


_UNSEEN: Final = frozenset(
    {
        "arguments",
        "client_capabilities",
        "cancel_requested_at_ms",
        "node",
        "resumption",
        "payload_bytes",
        "extra",
    }
)
"""Fields that a peer never sees."""


def _seen(name: str, value: Any) -> Any:
    """Return what a peer sees of a field with this value."""
    if name in _UNSEEN:
        return None
    return [entry.key for entry in value if entry.outstanding] if name == "inputs" else value
