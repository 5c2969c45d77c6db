"""A proxy's store, as its driver sees it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from mcp_tasks_adapters.storing import Openable
from mcp_tasks_proto.inputs import LoadFailed, Saved, SaveFailed, SaveRefused, WorkLost
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

__all__ = ["LEDGER_FACTOR", "Answer", "ProxyStore", "ProxyStoreEffect", "ProxyStoreFact", "failed"]

ProxyStoreEffect = LoadTask | SaveBinding | SaveSnapshot | DropTask | Note | Purge
"""What a store is asked for."""
ProxyStoreFact = TaskLoaded | LoadFailed | Saved | SaveFailed | SaveRefused | SnapshotKept | WorkLost
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

        Once for ``LoadTask``, ``SaveBinding`` and ``SaveSnapshot``, never for ``DropTask`` and ``Note``; for
        ``Purge``, with a ``WorkLost`` for each promoted call whose node is gone and whose end is not kept.
        """


def failed(effect: ProxyStoreEffect) -> ProxyStoreFact | None:
    """Return what to answer when an effect could not be carried out; ``None``: nothing."""
    match effect:
        case LoadTask(token=token):
            return LoadFailed(token)
        case SaveBinding(token=token) | SaveSnapshot(token=token):
            return SaveFailed(token)
        case _:
            return None
