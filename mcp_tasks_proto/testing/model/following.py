"""Tasks as a requester lives with them: polls, views, questions, lifetimes (REQ.2 to REQ.6)."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, Final

from attrs import define, evolve, field

from mcp_tasks_proto.testing.model.agenda import LAST_MS, Agenda
from mcp_tasks_proto.testing.model.forms import may_be_asked
from mcp_tasks_proto.testing.model.received import (
    CALLERS_FAULT,
    ModelOutcome,
    failed,
    is_earlier,
    lacks_payload,
    outcome_of,
    somebody_can_answer,
    view_of,
)
from mcp_tasks_proto.testing.model.watched import SavedTask, Shown, Viewed, WatchedTask, Withdrawn

__all__ = ["CANCELLED_ANSWER", "FAILED", "LOST", "Following"]

LOST: Final = ModelOutcome(kind="observation_lost")
EXPIRED: Final = ModelOutcome(kind="expired")
FAILED: Final = ModelOutcome(kind="failed")
CANCELLED_ANSWER: Final[Mapping[str, Any]] = {"action": "cancel"}
"""To an elicitation that nobody can be shown."""


@define(eq=False, kw_only=True)
class Following(Agenda):
    """The part of the model that watches tasks."""

    capabilities: Mapping[str, Any] = field(factory=dict)
    """Kinds of input that somebody here can give."""

    # -- polls ---------------------------------------------------------------------------------------------

    def watch(self, key: Hashable, saved: SavedTask) -> WatchedTask:
        """Begin to watch a task."""
        task = WatchedTask(saved=saved, last_poll_ms=self.now)
        self.calls[key].task = task
        if saved.ttl_ms is not None and saved.ttl_ms > 0:
            task.expires_ms = min(saved.created_ms + saved.ttl_ms, LAST_MS)
        return task

    def interval(self, task: WatchedTask) -> int:
        """Return the least time between two polls: the hint, where it makes sense, and the floor."""
        hint = task.saved.hint_ms
        usable = self.bounds.poll_interval_ms if hint is None or hint <= 0 else hint
        return max(usable, self.bounds.poll_floor_ms)

    def plan_poll(self, key: Hashable, *, soon: bool = False) -> None:
        """Plan the next poll, at the latest of all that it has to wait for (REQ.2).

        ``soon``: the interval since the last poll is enough; else there is one from now on, and a longer one
        while a stream brings the news.
        """
        task = self.task_of(key)
        interval = self.interval(task)
        times = [self.now + self.backoff(task.failures), task.last_poll_ms + interval, task.quiet_until_ms]
        if not soon:
            times.append(self.now + interval)
            if task.listening and not task.failures and not task.untold:
                times.append(self.now + self.bounds.listening_poll_ms)
        self.plan("poll", key, max(times))

    def poll_soon(self, key: Hashable) -> None:
        """There is a reason to ask again, unless that is being done."""
        if not self.in_flight("poll", key):
            self.plan_poll(key, soon=True)

    def poll_failed(self, key: Hashable, pause_ms: int = 0) -> None:
        """A poll failed: that is not the task's end, unless its time is over (REQ.3, REQ.5)."""
        task = self.task_of(key)
        task.failures += 1
        if task.overdue:
            self.end(key, EXPIRED)
        else:
            task.quiet_until_ms = self.now + pause_ms
            self.plan_poll(key)

    def poll_refused(self, key: Hashable, error: Mapping[str, Any], pause_ms: int) -> None:
        """-32602: there is no such task (REQ.6). Others that would come again end the watching."""
        if error["code"] == -32602:
            self.end(key, EXPIRED)
        elif error["code"] in CALLERS_FAULT:
            self.end(key, LOST)
        else:
            self.poll_failed(key, pause_ms)

    def polled(self, key: Hashable, result: Mapping[str, Any]) -> None:
        """The answer to a poll."""
        task, view = self.task_of(key), view_of(result)
        if view is None or view["taskId"] != task.saved.task_id:
            self.poll_failed(key)
            return
        self.heard(task)
        if not (task.overtaken and self.stale(task, view)):
            self.take(key, view)
        if key in self.calls:
            self.plan_poll(key)

    # -- news ----------------------------------------------------------------------------------------------

    def heard(self, task: WatchedTask) -> None:
        """The task is there, and lives on for as long as it was said, or as long again (REQ.5)."""
        task.failures, task.overdue = 0, False
        task.denied.discard("poll")
        self.live_on(task)

    def live_on(self, task: WatchedTask) -> None:
        """Set when it is given up unless there is news."""
        ttl_ms, created_ms = task.saved.ttl_ms, task.saved.created_ms
        if ttl_ms is None or ttl_ms <= 0:
            task.expires_ms = None
        else:
            since = created_ms if created_ms + ttl_ms > self.now else self.now
            task.expires_ms = min(since + ttl_ms, LAST_MS)

    def stale(self, task: WatchedTask, view: Mapping[str, Any]) -> bool:
        """Whether something newer is known. An end is news whenever it comes."""
        seen = "" if task.view is None else task.view["lastUpdatedAt"]
        return outcome_of(view) is None and is_earlier(view["lastUpdatedAt"], seen)

    def take(self, key: Hashable, view: dict[str, Any]) -> None:
        """Take a view in; the first terminal one ends the call (REQ.5)."""
        task = self.task_of(key)
        if view != task.view:
            self._news.append(Viewed(key, view))
        task.view = view
        task.saved = evolve(
            task.saved,
            ttl_ms=view.get("ttlMs", task.saved.ttl_ms),
            hint_ms=view.get("pollIntervalMs", task.saved.hint_ms),
        )
        self.live_on(task)
        outcome = outcome_of(view)
        if outcome is not None:
            self.end(key, outcome)
        elif view["status"] != "input_required":
            self.ask(key, {})
        elif "inputRequests" in view:
            self.ask(key, view["inputRequests"])

    def notified(self, key: Hashable, params: Mapping[str, Any]) -> None:
        """A stream brought news of the task that it was asked about."""
        task, view = self.task_of(key), view_of(params)
        if view is None or self.stale(task, view):
            return
        self.heard(task)
        if lacks_payload(view):
            task.untold = True
            self.poll_soon(key)
            return
        task.overtaken = True
        self.take(key, view)
        if key in self.calls and not self.in_flight("poll", key):
            self.plan_poll(key)

    # -- questions -----------------------------------------------------------------------------------------

    def ask(self, key: Hashable, outstanding: Mapping[str, Mapping[str, Any]]) -> None:
        """Compare what a task asks with what is known: each question is shown once (REQ.4)."""
        task = self.task_of(key)
        self._drop_moot(key, task, outstanding)
        if task.cancelling:
            return
        answers, new = dict(task.saved.answers), set[str]()
        for question, request in outstanding.items():
            if question not in answers and self._can_be_settled(task, request):
                new.add(question)
                shown = somebody_can_answer(request, self.capabilities)
                answers[question] = None if shown else CANCELLED_ANSWER
        if new and len(answers) > self.bounds.ledger_keys:
            self.end(key, FAILED)
            return
        refused = [task.refused[question] for question in outstanding if question in task.refused]
        if refused:
            self.end(key, failed(refused[0]))
            return
        task.saved = evolve(task.saved, answers=answers)
        for question, request in outstanding.items():
            known = question in answers and answers[question] is None and question not in task.saved.sent
            can_answer = somebody_can_answer(request, self.capabilities)
            if known and question not in task.prompted and (question in new or can_answer):
                task.prompted.add(question)
                task.on_show[question] = request
                self._news.append(Shown(call=key, key=question, request=request))
        self.submit(key)

    def _can_be_settled(self, task: WatchedTask, request: Mapping[str, Any]) -> bool:
        """Whether a new question is one for this process: to be shown, or to be cancelled for good.

        An elicitation is cancelled where nobody can ever be shown it: malformed, or not declared by anybody.
        """
        if somebody_can_answer(request, self.capabilities):
            return True
        if request.get("method") != "elicitation/create":
            return False
        shaped = {**request, "params": request["params"] if isinstance(request.get("params"), dict) else {}}
        here = may_be_asked(shaped, self.capabilities)
        return here or not may_be_asked(shaped, task.saved.capabilities)

    def _drop_moot(self, key: Hashable, task: WatchedTask, outstanding: Mapping[str, Any]) -> None:
        """Withdraw what the server no longer waits for; nor is it answered any more."""
        submitted = [
            question
            for flight in self.flights.values()
            if (flight.kind, flight.owner) == ("update", key)
            for question in flight.submitted
        ]
        for question in task.saved.answers:
            if question in outstanding:
                continue
            if question in task.on_show:
                del task.on_show[question]
                self._news.append(Withdrawn(key, question))
            if question in task.unsent and question not in submitted:
                self._settle(task, question)

    def _settle(self, task: WatchedTask, question: str) -> None:
        task.saved = evolve(
            task.saved,
            answers={**task.saved.answers, question: None},
            sent=task.saved.sent | {question},
        )

    # -- answers -------------------------------------------------------------------------------------------

    def submit(self, key: Hashable) -> None:
        """Have all answers sent that the server may not have, unless that is under way, or over."""
        task = self.task_of(key)
        if task.cancelling or self.in_flight("update", key) or ("update", key) in self.due or not task.unsent:
            return
        self.plan("update", key, self.now)

    def acknowledged(self, key: Hashable, submitted: tuple[str, ...]) -> None:
        """The server has these answers: they are never sent again."""
        task = self.task_of(key)
        task.update_failures = 0
        task.denied.discard("update")
        for question in submitted:
            self._settle(task, question)
        self.submit(key)

    def update_refused(
        self, key: Hashable, error: Mapping[str, Any], submitted: tuple[str, ...], pause_ms: int
    ) -> None:
        """All of an update or nothing (UPD.4): each is tried alone, and a wrong one never again."""
        if error["code"] not in CALLERS_FAULT:
            self.update_failed(key, pause_ms)
        elif len(submitted) > 1:
            self.task_of(key).one_by_one = True
            self.submit(key)
        else:
            self.task_of(key).refused |= dict.fromkeys(submitted, error)
            self.acknowledged(key, submitted)

    def update_failed(self, key: Hashable, pause_ms: int = 0) -> None:
        """It is not known whether the server has the answers: the same ones go out again, later."""
        task = self.task_of(key)
        task.update_failures += 1
        self.plan("update", key, self.now + max(self.backoff(task.update_failures), pause_ms))

    def denied(self, key: Hashable, kind: str) -> None:
        """Other credentials are wanted; where the next ones are no better, the caller has to act (REQ.3)."""
        task = self.task_of(key)
        if kind in task.denied:
            self.end(key, LOST)
            return
        task.denied.add(kind)
        if kind == "poll":
            self.poll_failed(key)
        else:
            self.update_failed(key)
