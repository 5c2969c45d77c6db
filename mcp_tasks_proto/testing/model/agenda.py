"""What a requester has to send and when, what it waits for, and what it tells its callers."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Final

from attrs import define, field, frozen

from mcp_tasks_proto.testing.model.received import ModelOutcome
from mcp_tasks_proto.testing.model.watched import Ended, Flight, ModelCall, Told, WatchedTask, Withdrawn

__all__ = ["LAST_MS", "Agenda", "Cancellation", "ModelBounds"]

LAST_MS: Final = 253_402_300_799_999
"""The end of the year 9999: no time is later."""


@frozen(kw_only=True)
class ModelBounds:
    """What a requester may choose, in milliseconds where a name ends in ``_ms``."""

    poll_interval_ms: int = 1_000
    """Between polls of a task whose server gives no usable hint."""
    poll_floor_ms: int = 100
    listening_poll_ms: int = 30_000
    """Between polls of a task that a stream brings news of."""
    first_backoff_ms: int = 500
    """The pause after the first failure; doubled with each further one."""
    last_backoff_ms: int = 30_000
    request_timeout_ms: int = 30_000
    call_timeout_ms: int = 300_000
    cancel_attempts: int = 5
    input_rounds: int = 32
    ledger_keys: int = 1024


@define(eq=False)
class Cancellation:
    """A wish to cancel that the server may not have heard of (REQ.7)."""

    task_id: str
    call: Hashable | None
    """Who waits for the end; ``None``: nobody."""
    attempts: int = 0


@define(eq=False, kw_only=True)
class Agenda:
    """The part of the model that knows no messages."""

    bounds: ModelBounds = field(factory=ModelBounds)
    now: int = 0
    calls: dict[Hashable, ModelCall] = field(factory=dict)
    """Those that are not over."""
    due: dict[tuple[str, Hashable], int] = field(factory=dict)
    """What has to be sent, by kind and owner, and exactly when."""
    flights: dict[int, Flight] = field(factory=dict)
    """What awaits an answer, by request id; of listen streams the model knows nothing."""
    cancellations: dict[int, Cancellation] = field(factory=dict)
    _news: list[Told] = field(factory=list)
    _cancelled: int = 0

    def news(self) -> list[Told]:
        """Return what callers must have been told since this was asked last."""
        news, self._news = self._news, []
        return news

    def overdue(self) -> list[tuple[str, Hashable]]:
        """Return what should have been sent by now."""
        return [name for name, at_ms in self.due.items() if at_ms <= self.now]

    def next_ms(self) -> int | None:
        """Return when something happens although nobody says anything."""
        times = [*self.due.values(), *(flight.until_ms for flight in self.flights.values())]
        times += [call.deadline_ms for call in self.calls.values() if call.deadline_ms is not None]
        times += [task.expires_ms for task in self.watched() if task.expires_ms is not None]
        return min(times, default=None)

    def watched(self) -> list[WatchedTask]:
        """Return the tasks that calls have become."""
        return [call.task for call in self.calls.values() if call.task is not None]

    def watcher_of(self, task_id: Any) -> Hashable | None:
        """Return the call that watches a task, if one does."""
        for key, call in self.calls.items():
            if call.task is not None and call.task.saved.task_id == task_id:
                return key
        return None

    def task_of(self, key: Hashable) -> WatchedTask:
        """Return the task that a call has become."""
        task = self.calls[key].task
        assert task is not None
        return task

    # -- time ----------------------------------------------------------------------------------------------

    def at(self, now: int) -> None:
        """Note the time. It does not go back, whatever a clock says."""
        self.now = max(self.now, now)

    def plan(self, kind: str, owner: Hashable, at_ms: int) -> None:
        """Have something sent at a time."""
        self.due[kind, owner] = min(at_ms, LAST_MS)

    def backoff(self, failures: int) -> int:
        """Return the pause after so many failures in a row."""
        bounds = self.bounds
        return min(bounds.first_backoff_ms * 2 ** (failures - 1), bounds.last_backoff_ms) if failures else 0

    def in_flight(self, kind: str, owner: Hashable) -> bool:
        """Whether a request awaits its answer."""
        return any((flight.kind, flight.owner) == (kind, owner) for flight in self.flights.values())

    # -- ends ----------------------------------------------------------------------------------------------

    def end(self, key: Hashable, outcome: ModelOutcome) -> None:
        """End a call: its questions are withdrawn, and nobody waits for its requests (REQ.4, REQ.6)."""
        call = self.calls.pop(key)
        for kind in ("call", "poll", "update"):
            self._forget(kind, key)
        on_show = call.asked if call.task is None else call.task.on_show
        self._news += [Withdrawn(key, question) for question in on_show]
        for number, cancellation in list(self.cancellations.items()):
            if cancellation.call == key and cancellation.call is not None:
                self._leave(number, cancellation, outcome)
        self._news.append(Ended(key, outcome))

    def _leave(self, number: int, cancellation: Cancellation, outcome: ModelOutcome) -> None:
        """Who waits for the end of a task leaves; only where it has ended is there nothing left to say."""
        if outcome.kind == "observation_lost":
            self.release(cancellation)
        else:
            del self.cancellations[number]
            self._forget("cancel", number)

    def _forget(self, kind: str, owner: Hashable) -> None:
        self.due.pop((kind, owner), None)
        for request, flight in list(self.flights.items()):
            if (flight.kind, flight.owner) == (kind, owner):
                del self.flights[request]

    # -- cancelling ----------------------------------------------------------------------------------------

    def begin_cancellation(self, key: Hashable, task_id: str) -> None:
        """Have the server told."""
        self._cancelled += 1
        self.cancellations[self._cancelled] = Cancellation(task_id, key)
        self.plan("cancel", self._cancelled, self.now)

    def release(self, cancellation: Cancellation) -> None:
        """Nobody waits for the end of the task any more; the server is told all the same, for a while."""
        cancellation.call, cancellation.attempts = None, 0

    def cancellation_known(self, number: Any) -> None:
        """The server knows, or will not hear of it."""
        del self.cancellations[number]

    def cancellation_failed(self, number: Any, pause_ms: int) -> None:
        """It is told again, unless nobody waits for it and it was told often enough."""
        cancellation = self.cancellations[number]
        cancellation.attempts += 1
        if cancellation.call is None and cancellation.attempts >= self.bounds.cancel_attempts:
            del self.cancellations[number]
        else:
            self.plan("cancel", number, self.now + max(self.backoff(cancellation.attempts), pause_ms))
