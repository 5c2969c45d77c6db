"""How an engine is run on a loop: facts go in one at a time, effects are carried out, a timer is kept."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from mcp_tasks_adapters.toolkit.outcomes import describe
from mcp_tasks_proto.inputs import TimePassed

if TYPE_CHECKING:
    from mcp_tasks_adapters.driver import Loop
    from mcp_tasks_adapters.toolkit.server import RecordFunction

__all__ = ["Engine", "Feeder", "recorded"]

_Fact = TypeVar("_Fact")

_log = logging.getLogger("mcp_tasks_adapters")


class _Step(Protocol):
    @property
    def effects(self) -> Sequence[Any]: ...
    @property
    def deadline(self) -> int | None: ...


class Engine(Protocol):
    """An engine, whatever its role."""

    def handle(self, input: Any, *, now: int) -> _Step:  # noqa: A002 - as the engines have it
        """Take in one fact; return what to do about it, and when to come back."""


_E = TypeVar("_E", bound=Engine)


def recorded(engine: _E, record: RecordFunction | None) -> tuple[_E, Engine]:
    """Return an engine, equal to this new one, and what is to be fed in its place, so that it is recorded.

    Without a ``record`` it is the engine itself, and nothing is imported.
    """
    if record is None:
        return engine, engine
    from mcp_tasks_proto.testing.recordings import Recorder

    recorder = Recorder(engine, partial(_kept, record))
    return recorder.engine, recorder


def _kept(record: RecordFunction, line: str) -> bool | None:
    """Hand a line to whoever records. An error there ends the recording, and nothing else."""
    try:
        return record(line)
    except Exception as error:
        _log.error("a record= function failed, and nothing more is recorded: %s", describe(error))
        return False


class Feeder(Generic[_Fact]):
    """Feeds one engine on one loop, on behalf of a driver; everything here happens on the loop's thread.

    An effect may bring about the next fact while it is carried out: a store answers, a channel reports or a
    caller's function calls back within the very call that set it off. Such facts wait in an inbox: the engine
    takes one at a time, and all effects of one are carried out before those of the next.

    ``actions`` carry out the effects, by their type; none of them raises. ``not_taken`` is told of a fact
    that the engine raised on, once that is logged, without payloads (SEC.2): nobody shall wait in vain for
    what was to come of it.
    """

    def __init__(
        self,
        engine: Engine,
        loop: Loop,
        *,
        actions: Mapping[type, Callable[[Any], None]],
        not_taken: Callable[[_Fact | TimePassed], None],
    ) -> None:
        self.engine = engine
        self._loop = loop
        self._now_ms = loop.now_ms
        self._actions = actions
        self._not_taken = not_taken
        self._inbox: deque[_Fact | TimePassed] = deque()
        self._feeding = False
        self._closed = False
        self._deadline: int | None = None
        """What the loop was asked for last; ``None`` also once that time has come."""

    def feed(self, fact: _Fact | TimePassed) -> None:
        """Hand a fact to the engine, now or when it is done with those before, and do what it says."""
        if self._closed:
            return
        inbox = self._inbox
        inbox.append(fact)
        if self._feeding:
            return
        self._feeding = True
        try:
            while inbox:
                fact = inbox.popleft()
                try:
                    step = self.engine.handle(fact, now=self._now_ms())
                except Exception as error:
                    _log.error("the engine did not take %s: %s", type(fact).__name__, describe(error))
                    self._not_taken(fact)
                    continue
                for effect in step.effects:
                    self._actions[type(effect)](effect)
                if step.deadline != self._deadline:
                    self._deadline = step.deadline
                    self._loop.wake_at(step.deadline)
        finally:
            self._feeding = False

    def wake(self) -> None:
        """The time asked for by ``Loop.wake_at`` has come."""
        self._deadline = None
        self.feed(TimePassed())

    def close(self) -> None:
        """Take in nothing any more."""
        self._closed = True
