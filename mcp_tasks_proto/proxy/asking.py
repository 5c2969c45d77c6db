"""What the engine asks of its host and waits for: the store, and randomness. Each answer is used once."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import partial
from itertools import count
from typing import Any

from attrs import define, field

from mcp_tasks_proto.errors import LocalProtocolError
from mcp_tasks_proto.history import Observation, TaskEntry
from mcp_tasks_proto.inputs import LoadFailed, Saved, SaveFailed, SaveRefused
from mcp_tasks_proto.proxy.bindings import Binding
from mcp_tasks_proto.proxy.effects import (
    DrawRandom,
    LoadTask,
    SaveBinding,
    SaveSnapshot,
)
from mcp_tasks_proto.proxy.handles import MOST_RANDOM_BYTES, RANDOM_BYTES, check_random
from mcp_tasks_proto.proxy.inputs import RandomDrawn, SnapshotKept, TaskLoaded
from mcp_tasks_proto.proxy.shared import Shared
from mcp_tasks_proto.proxy.snapshots import Snapshot

__all__ = ["Asking", "HostAnswer"]

HostAnswer = RandomDrawn | TaskLoaded | LoadFailed | Saved | SaveFailed | SaveRefused | SnapshotKept


@define(eq=False, repr=False, kw_only=True)
class Asking:
    """The questions that are open."""

    shared: Shared
    _open: dict[Hashable, tuple[tuple[type, ...], Callable[[Any], None]]] = field(init=False, factory=dict)
    _tokens: count[int] = field(init=False, factory=count)
    _random: bytes = field(init=False, default=b"", repr=False)
    """For handles to come."""

    def answered(self, fact: HostAnswer) -> None:
        """The host answers. Raises :class:`LocalProtocolError` for an answer to what was not asked."""
        kinds, then = self._open.get(fact.token, ((), None))
        if then is None or not isinstance(fact, kinds):
            raise LocalProtocolError("its token is that of an open question that it answers")
        _check(fact)
        del self._open[fact.token]
        then(fact)

    def random(self, then: Callable[[bytes], None]) -> None:
        """Call ``then`` with randomness for one handle: at once, if there is some left."""
        if self._random:
            then(self._take_random())
        else:
            self.shared.out.append(DrawRandom(self._ask((RandomDrawn,), partial(self._drawn, then))))

    def _drawn(self, then: Callable[[bytes], None], drawn: RandomDrawn) -> None:
        self._random = (self._random + drawn.random)[:MOST_RANDOM_BYTES]
        then(self._take_random())

    def _take_random(self) -> bytes:
        random, self._random = self._random[:RANDOM_BYTES], self._random[RANDOM_BYTES:]
        return random

    def load(self, handle: str, then: Callable[[TaskLoaded | LoadFailed], None]) -> None:
        """Ask for what is kept under a handle."""
        self.shared.out.append(LoadTask(handle, self._ask((TaskLoaded, LoadFailed), then)))

    def save_binding(
        self,
        binding: Binding | None,
        entry: TaskEntry,
        then: Callable[[Saved | SaveFailed | SaveRefused], None],
    ) -> None:
        """Ask for a binding to be kept, with its entry in the ledger."""
        self.shared.out.append(
            SaveBinding(
                binding=binding,
                entry=entry,
                quota=self.shared.quota,
                token=self._ask((Saved, SaveFailed, SaveRefused), then),
            )
        )

    def save_snapshot(
        self,
        snapshot: Snapshot,
        observation: Observation,
        then: Callable[[SnapshotKept | SaveFailed], None],
    ) -> None:
        """Ask for an end to be kept."""
        token = self._ask((SnapshotKept, SaveFailed), then)
        self.shared.out.append(SaveSnapshot(snapshot, observation, token))

    def _ask(self, kinds: tuple[type, ...], then: Callable[[Any], None]) -> int:
        token = next(self._tokens)
        self._open[token] = (kinds, then)
        return token


def _check(fact: HostAnswer) -> None:
    """Refuse, as :class:`LocalProtocolError`, an answer that is none."""
    if isinstance(fact, RandomDrawn):
        check_random(fact.random)
    elif isinstance(fact, TaskLoaded):
        if not isinstance(fact.binding, Binding | None) or not isinstance(fact.snapshot, Snapshot | None):
            raise LocalProtocolError("what is loaded is a Binding and a Snapshot, or None")
    elif isinstance(fact, SnapshotKept):
        if not isinstance(fact.snapshot, Snapshot):
            raise LocalProtocolError("what is kept is a Snapshot")
    elif isinstance(fact, SaveRefused) and not isinstance(fact.limit, str):
        raise LocalProtocolError("limit is a string")
