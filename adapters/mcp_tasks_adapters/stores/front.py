"""The loop's side of a store that works on threads: what waits is counted, answers and news come back."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from attrs import frozen

from mcp_tasks_adapters.storing import LoopThread, News, StoreEffect
from mcp_tasks_adapters.toolkit.outcomes import describe
from mcp_tasks_proto.effects import Delete, FindExpired, ListTasks, Load, Save
from mcp_tasks_proto.inputs import LoadFailed, SaveFailed, StoreInput

__all__ = ["Answer", "Front", "Look", "Read", "Write"]

Answer = Callable[[StoreInput], None]
Question = Load | FindExpired | ListTasks
"""What is asked of the reader; everything else is written."""

_log = logging.getLogger("mcp_tasks_adapters")


@frozen
class Read:
    """To be answered by whoever reads."""

    effect: Question
    answer: Answer


@frozen
class Look:
    """Tasks that others changed and somebody here wants to know about."""

    task_ids: Sequence[str]


@frozen
class Write:
    """To be answered by whoever writes."""

    effect: Save | Delete
    answer: Answer


@frozen
class _Watcher:
    concerns: Callable[[str], bool]
    hear: Callable[[News], None]


class Front:
    """Made on any thread. At most ``most_waiting`` requests wait for their answer at a time."""

    def __init__(self, loop: LoopThread, most_waiting: int) -> None:
        self._loop = loop
        self._most_waiting = most_waiting
        self._waiting = 0
        self._watcher: _Watcher | None = None
        self._open = True

    # -- on the loop's thread ------------------------------------------------------------------------------

    def submit(
        self,
        effect: StoreEffect,
        answer: Answer,
        *,
        read: Callable[[Read], None],
        write: Callable[[Write], None],
    ) -> None:
        """Hand ``effect`` to whoever reads, or to whoever writes; if too much waits, it fails at once."""
        if self._waiting >= self._most_waiting:
            answer(LoadFailed(effect.token) if isinstance(effect, Question) else SaveFailed(effect.token))
            return
        self._waiting += 1
        if isinstance(effect, Question):
            read(Read(effect, answer))
        else:
            write(Write(effect, answer))

    def watch(self, concerns: Callable[[str], bool], hear: Callable[[News], None]) -> None:
        """Tell ``hear`` what other nodes did."""
        self._watcher = _Watcher(concerns, hear)

    def unwatch(self) -> None:
        """Tell nobody."""
        self._watcher = None

    def close(self) -> None:
        """Let no answer through any more, and no news."""
        self._open = False
        self.unwatch()

    # -- on any thread -------------------------------------------------------------------------------------

    @property
    def watched(self) -> bool:
        """Whether anybody wants news."""
        return self._watcher is not None

    def answer(self, answers: Sequence[tuple[Answer, StoreInput]]) -> None:
        """Give these answers."""
        if answers:
            self._loop.post(partial(self._answer, answers))

    def tell(self, news: Sequence[News]) -> None:
        """Tell these news."""
        if news:
            self._loop.post(partial(self._tell, news))

    def sift(self, task_ids: Sequence[str], look: Callable[[Look], None]) -> None:
        """Have a look at those of these tasks that are of interest here; ``look`` is called on the loop's."""
        if task_ids:
            self._loop.post(partial(self._sift, task_ids, look))

    # ------------------------------------------------------------------------------------------------------

    def _answer(self, answers: Sequence[tuple[Answer, StoreInput]]) -> None:
        self._waiting -= len(answers)
        for answer, outcome in answers:
            if self._open:
                _contained(answer, outcome)

    def _tell(self, news: Sequence[News]) -> None:
        for one in news:
            if self._watcher is not None:
                _contained(self._watcher.hear, one)

    def _sift(self, task_ids: Sequence[str], look: Callable[[Look], None]) -> None:
        watcher = self._watcher
        if watcher is not None and (wanted := [one for one in task_ids if watcher.concerns(one)]):
            look(Look(wanted))


def _contained(call: Callable[[Any], None], fact: StoreInput) -> None:
    """Make a call that is none of the store's business; the next one must not suffer from it."""
    try:
        call(fact)
    except Exception as error:
        _log.error("an answer of the store met %s", describe(error))
