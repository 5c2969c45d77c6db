"""A proxy's store, as its driver sees it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Final, Protocol

from attrs import frozen

from mcp_tasks_adapters.storing import Openable
from mcp_tasks_proto.history import Place, TaskEntry
from mcp_tasks_proto.inputs import LoadFailed, Saved, SaveFailed, SaveRefused, WorkLost
from mcp_tasks_proto.legacy.proxy import HandlesListed, ListHandles
from mcp_tasks_proto.proxy import (
    DropTask,
    LoadTask,
    Note,
    Purge,
    SaveBinding,
    SaveSnapshot,
    SnapshotKept,
    TaskLoaded,
)

__all__ = [
    "LEDGER_FACTOR",
    "Answer",
    "AssignTask",
    "EntriesRead",
    "ProxyStore",
    "ProxyStoreEffect",
    "ProxyStoreFact",
    "ReadEntries",
    "ReadEntry",
    "failed",
]


# -- for dashboards, which read the ledger; all else is asked by an engine -----------------------------------


@frozen(kw_only=True)
class ReadEntries:
    """Answer with ``EntriesRead``: a stretch of a project's ledger, newest task first, or ``LoadFailed``."""

    project: str
    after: Place | None
    """Behind which place it begins; ``None``: with the newest."""
    most: int
    token: Hashable


@frozen
class ReadEntry:
    """Answer with ``EntriesRead``: the entry of this handle, if there is one, or ``LoadFailed``."""

    handle: str
    token: Hashable


@frozen(kw_only=True)
class AssignTask:
    """Assign a task, whoever may (``history.assign``), with no other writer between.

    Answer with ``EntriesRead``, the entry as it is then, if there is one; or with ``SaveFailed``.
    """

    handle: str
    actor: str
    assignee: str | None
    now_ms: int
    token: Hashable


@frozen
class EntriesRead:
    """Entries of the ledger."""

    token: Hashable
    entries: Sequence[TaskEntry]


# -- all of it -----------------------------------------------------------------------------------------------

ProxyStoreEffect = (
    LoadTask
    | SaveBinding
    | SaveSnapshot
    | DropTask
    | Note
    | Purge
    | ListHandles
    | ReadEntries
    | ReadEntry
    | AssignTask
)
"""What a store is asked for."""
ProxyStoreFact = (
    TaskLoaded
    | LoadFailed
    | Saved
    | SaveFailed
    | SaveRefused
    | SnapshotKept
    | WorkLost
    | HandlesListed
    | EntriesRead
)
"""What it answers."""
Answer = Callable[[ProxyStoreFact], None]

LEDGER_FACTOR: Final = 16
"""The ledger outlives the bindings: it may hold so many times as many tasks, and no more (LIM.3)."""


class ProxyStore(Openable, Protocol):
    """Where bindings, ends and the ledger are kept. The effects' own words are what it promises."""

    @property
    def node(self) -> str | None:
        """The name of whoever works through this store while it is open; nobody else ever had it.

        ``None``: what is kept here ends with this process.
        """

    def submit(self, effect: ProxyStoreEffect, answer: Answer) -> None:
        """Carry out ``effect``, after those before it, and call ``answer`` on the loop's thread.

        Never for ``DropTask`` and ``Note``; for ``Purge``, with a ``WorkLost`` for each promoted call whose
        node is gone and whose end is not kept; once for each of the others.
        """


def failed(effect: ProxyStoreEffect) -> ProxyStoreFact | None:
    """Return what to answer when an effect could not be carried out; ``None``: nothing."""
    match effect:
        case (
            LoadTask(token=token)
            | ListHandles(token=token)
            | ReadEntries(token=token)
            | ReadEntry(token=token)
        ):
            return LoadFailed(token)
        case SaveBinding(token=token) | SaveSnapshot(token=token) | AssignTask(token=token):
            return SaveFailed(token)
        case _:
            return None
