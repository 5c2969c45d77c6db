"""Telling, round after round, what the nodes that are gone have left behind (rule 12)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, Generic, TypeVar

from attrs import frozen

from mcp_tasks_proto.inputs import WorkLost

__all__ = ["LOST_SLICE", "LostWork", "Rounds"]

LOST_SLICE: Final = 256
"""How much lost work of a node is told at once."""

_Place = TypeVar("_Place")


@frozen
class LostWork:
    """What there is to tell of nodes that are gone."""

    work: Sequence[WorkLost]
    more: bool
    """Whether there is more to tell at once."""
    forgettable: Sequence[str]
    """Nodes that are gone and that no task names any more."""


class Rounds(Generic[_Place]):
    """Remembers how far the work of each node was told; places are where tasks are, in some order."""

    def __init__(self, first: _Place) -> None:
        self._first = first
        self._told: dict[str, _Place] = {}

    def under_way(self, node: str) -> bool:
        """Whether some of this node's work was told in this round, and some was not yet."""
        return node in self._told

    def tell(
        self, gone: Iterable[str], after: Callable[[str, _Place], Sequence[tuple[_Place, str]]]
    ) -> LostWork:
        """Return what was not told in this round; ``after`` finds up to a slice of a node's tasks.

        When all is told, a new round begins. Raises what ``after`` raises; nothing is left out for that.
        """
        work: list[WorkLost] = []
        forgettable: list[str] = []
        told: dict[str, _Place] = {}
        for node in gone:
            since = self._told.get(node, self._first)
            found = after(node, since)
            work.extend(WorkLost(task_id, node) for _, task_id in found)
            if len(found) == LOST_SLICE:
                told[node] = found[-1][0]
            elif not found and since == self._first:
                forgettable.append(node)
        self._told = told
        return LostWork(work, bool(told), forgettable)
