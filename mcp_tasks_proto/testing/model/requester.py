"""The requester role: one method for each thing that can happen to a client of tasks."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any, Final

from attrs import define, evolve

from mcp_tasks_proto.testing.model.following import CANCELLED_ANSWER, FAILED, LOST, Following
from mcp_tasks_proto.testing.model.forms import may_be_asked
from mcp_tasks_proto.testing.model.received import (
    CALLERS_FAULT,
    ModelOutcome,
    error_of,
    failed,
    is_input_request,
    outcome_of,
    result_of,
    somebody_can_answer,
    view_of,
)
from mcp_tasks_proto.testing.model.watched import Flight, ModelCall, SavedTask, Shown, Withdrawn

__all__ = ["RequesterModel"]

KINDS: Final[Mapping[str, str]] = {
    "tools/call": "call",
    "tasks/get": "poll",
    "tasks/update": "update",
    "tasks/cancel": "cancel",
}
DENIED: Final = (401, 403)
VERSION: Final = "2026-07-28"


@define(eq=False, kw_only=True)
class RequesterModel(Following):
    """A requester of one server, as its callers and that server see it.

    Tell it of everything in order, the time first (:meth:`at`). Then :meth:`news` is what callers must have
    been told, :meth:`sent` says of each request that goes out what is wrong with it, :meth:`overdue` what did
    not go out, and ``flights`` has the requests that somebody still waits for: the others must have been
    stopped.
    """

    # -- callers -------------------------------------------------------------------------------------------

    def called(
        self, key: Hashable, tool: str, arguments: Mapping[str, Any], *, deadline_ms: int | None = None
    ) -> None:
        """Somebody wants a tool called (REQ.1)."""
        params = {"name": tool, "arguments": dict(arguments)}
        self.calls[key] = ModelCall(params=params, deadline_ms=deadline_ms)
        self.plan("call", key, self.now)

    def resumed(self, key: Hashable, saved: SavedTask, *, deadline_ms: int | None = None) -> None:
        """Somebody goes on with a task that another process watched (REQ.6)."""
        watched = self.watcher_of(saved.task_id)
        self.calls[key] = ModelCall(params={}, deadline_ms=deadline_ms)
        if watched is not None:
            self.end(key, FAILED)
            return
        self.watch(key, saved)
        self.plan("poll", key, self.now)

    def saved(self, key: Hashable) -> SavedTask | None:
        """Return what has to be saved of a call at this moment; ``None``: it has no task, or is over."""
        call = self.calls.get(key)
        return None if call is None or call.task is None else call.task.saved

    def answered(self, key: Hashable, question: str, response: Mapping[str, Any]) -> None:
        """Somebody answers what was put to him; anything else is ignored (REQ.4)."""
        call = self.calls.get(key)
        if call is None:
            return
        task = call.task
        if task is None:
            if call.asked.pop(question, None) is not None:
                call.params["inputResponses"][question] = response
                if not call.asked:
                    self.plan("call", key, self.now)
        elif task.on_show.pop(question, None) is not None:
            task.saved = evolve(task.saved, answers={**task.saved.answers, question: response})
            self.submit(key)

    def cancelled(self, key: Hashable, *, wait: bool) -> None:
        """The caller no longer wants the result (REQ.7)."""
        call = self.calls.get(key)
        if call is None:
            return
        task = call.task
        if task is not None:
            if not task.cancelling:
                task.cancelling = True
                self.begin_cancellation(key, task.saved.task_id)
                self._news += [Withdrawn(key, question) for question in task.on_show]
                task.on_show.clear()
            if wait:
                return
            for cancellation in self.cancellations.values():
                if cancellation.call == key:
                    self.release(cancellation)
        self.end(key, ModelOutcome(kind="cancelled"))

    def abandoned(self, key: Hashable) -> None:
        """The caller stops watching; its task goes on (REQ.7)."""
        if key in self.calls:
            self.end(key, LOST)

    # -- what goes out -------------------------------------------------------------------------------------

    def sent(self, request: int, method: str, params: Mapping[str, Any]) -> str | None:
        """A request goes out; say what is wrong with that, or ``None``. ``params`` are without ``_meta``."""
        kind = KINDS.get(method)
        if kind is None:
            return f"nobody wants {method}"
        owners = [owner for known, owner in self.due if known == kind and self._is_of(kind, owner, params)]
        if not owners:
            return f"nothing called for {method} {dict(params)}"
        owner = min(owners, key=lambda one: self.due[kind, one])
        early_ms = self.due[kind, owner] - self.now
        if early_ms > 0:
            return f"{method} {early_ms} ms too early"
        submitted = tuple(params.get("inputResponses", ())) if kind == "update" else ()
        problem = self._check_answers(owner, params["inputResponses"]) if kind == "update" else None
        del self.due[kind, owner]
        timeout_ms = self.bounds.call_timeout_ms if kind == "call" else self.bounds.request_timeout_ms
        self.flights[request] = Flight(
            kind=kind, owner=owner, until_ms=self.now + timeout_ms, submitted=submitted
        )
        if kind == "poll":
            task = self.task_of(owner)
            task.last_poll_ms, task.overtaken, task.untold = self.now, False, False
        return problem

    def _is_of(self, kind: str, owner: Any, params: Mapping[str, Any]) -> bool:
        if kind == "call":
            return self.calls[owner].params == params
        if kind == "cancel":
            return {"taskId": self.cancellations[owner].task_id} == params
        named = {name: value for name, value in params.items() if name != "inputResponses"}
        return named == {"taskId": self.task_of(owner).saved.task_id}

    def _check_answers(self, key: Hashable, responses: Mapping[str, Any]) -> str | None:
        """All that is to be said goes out together, or one at a time where the server wants that."""
        task = self.task_of(key)
        alone = task.one_by_one and len(responses) == 1
        if alone and responses.items() <= task.unsent.items():
            return None
        return None if responses == task.unsent else f"answers {list(responses)} of {list(task.unsent)}"

    # -- what comes in -------------------------------------------------------------------------------------

    def received(
        self, request: int, message: Any, *, http_status: int = 200, retry_after_ms: int = 0
    ) -> None:
        """A request was answered with a message, ``None`` for none, over HTTP or with its status for 200."""
        flight = self.flights.pop(request, None)
        if flight is None:
            return
        ok = 200 <= http_status < 300
        result, error = result_of(message, request), error_of(message, request)
        if result is not None:
            self._result(flight, result)
        elif http_status in DENIED and flight.kind in ("poll", "update"):
            self.denied(flight.owner, flight.kind)
        elif error is not None:
            self._error(flight, error, retry_after_ms)
        else:
            self._nothing(flight, 0 if ok else retry_after_ms, FAILED)

    def broke(self, request: int, *, sent: bool = True) -> None:
        """A connection broke, or a request was given up; ``sent``: the server may have it (REQ.3)."""
        flight = self.flights.pop(request, None)
        if flight is not None:
            self._nothing(flight, 0, LOST if sent else FAILED)

    def alive(self, request: int) -> None:
        """The server says something on the way to an answer: whoever waits for a call goes on waiting."""
        flight = self.flights.get(request)
        if flight is not None and flight.kind == "call":
            flight.until_ms = self.now + self.bounds.call_timeout_ms

    def listening(self, task_ids: Iterable[str]) -> None:
        """A stream will bring news of these tasks (SUB.1)."""
        for key in self._watchers(task_ids):
            self.task_of(key).listening = True

    def deaf(self, task_ids: Iterable[str]) -> None:
        """A stream that was asked about these tasks will not bring news of them, or no more."""
        for key in self._watchers(task_ids):
            self.task_of(key).listening = False
            self.poll_soon(key)

    def told(self, task_id: Any, params: Mapping[str, Any]) -> None:
        """A stream that had agreed to bring news of this task did (SUB.2, REQ.5)."""
        key = self.watcher_of(task_id)
        if key is not None:
            self.notified(key, params)

    def passed(self, now: int) -> None:
        """Time has passed: deadlines, lifetimes, and requests that nobody answered, oldest first."""
        while (first := self._first_due(now)) is not None:
            what, name = first
            self.at(now)
            if what == "deadline":
                self.end(name, LOST)
            elif what == "flight":
                self.broke(int(name))
            else:
                self._expire(name)
        self.at(now)
        for kind, key in [name for name, at_ms in self.due.items() if at_ms <= now]:
            if kind == "update" and (self.task_of(key).cancelling or not self.task_of(key).unsent):
                del self.due[kind, key]  # there is nothing left to repeat

    def _first_due(self, now: int) -> tuple[str, Any] | None:
        times: list[tuple[int, str, Any]] = [
            (flight.until_ms, "flight", name) for name, flight in self.flights.items()
        ]
        for key, call in self.calls.items():
            if call.deadline_ms is not None:
                times.append((call.deadline_ms, "deadline", key))
            if call.task is not None and call.task.expires_ms is not None:
                times.append((call.task.expires_ms, "expiry", key))
        at_ms, what, name = min(times, key=lambda one: one[0], default=(now + 1, "", None))
        return (what, name) if at_ms <= now else None

    def _expire(self, key: Hashable) -> None:
        """No news until its time was over: the next poll decides, unless that is too far away (REQ.5)."""
        task = self.task_of(key)
        task.overdue, task.expires_ms = True, None
        patience_ms = max(task.saved.ttl_ms or 0, self.bounds.listening_poll_ms)
        if not self.in_flight("poll", key) and self.due["poll", key] - self.now > patience_ms:
            self.end(key, ModelOutcome(kind="expired"))

    def _watchers(self, task_ids: Iterable[str]) -> list[Hashable]:
        wanted = set(task_ids)
        return [key for key, call in self.calls.items() if call.task and call.task.saved.task_id in wanted]

    # -- what answers mean ---------------------------------------------------------------------------------

    def _result(self, flight: Flight, result: Mapping[str, Any]) -> None:
        kind, owner = result.get("resultType", "complete"), flight.owner
        if flight.kind == "call":
            self._called(owner, kind, result)
        elif kind != "complete":
            self._nothing(flight, 0, FAILED)
        elif flight.kind == "poll":
            self.polled(owner, result)
        elif flight.kind == "update":
            self.acknowledged(owner, flight.submitted)
        else:
            self.cancellation_known(owner)

    def _error(self, flight: Flight, error: Mapping[str, Any], pause_ms: int) -> None:
        owner = flight.owner
        if flight.kind == "call":
            self._call_refused(owner, error)
        elif flight.kind == "poll":
            self.poll_refused(owner, error, pause_ms)
        elif flight.kind == "update":
            self.update_refused(owner, error, flight.submitted, pause_ms)
        elif error["code"] in CALLERS_FAULT:
            self.cancellation_known(owner)
        else:
            self.cancellation_failed(owner, pause_ms)

    def _nothing(self, flight: Flight, pause_ms: int, outcome: ModelOutcome) -> None:
        """There is no answer, or none that means anything: the end of a call, and of nothing else."""
        if flight.kind == "call":
            self.end(flight.owner, outcome)
        elif flight.kind == "poll":
            self.poll_failed(flight.owner, pause_ms)
        elif flight.kind == "update":
            self.update_failed(flight.owner, pause_ms)
        else:
            self.cancellation_failed(flight.owner, pause_ms)

    def _called(self, key: Hashable, kind: Any, result: Mapping[str, Any]) -> None:
        if kind == "complete":
            self.end(key, ModelOutcome(kind="completed", result=result))
        elif kind == "input_required":
            self._round(key, result)
        elif kind == "task":
            self._handed(key, result)
        else:
            self.end(key, FAILED)

    def _call_refused(self, key: Hashable, error: Mapping[str, Any]) -> None:
        call, data = self.calls[key], error.get("data")
        offered = data.get("supported") if isinstance(data, dict) else None
        if error["code"] == -32022 and isinstance(offered, list) and VERSION in offered and not call.mended:
            call.mended = True  # which it had named already; once is enough of that
            self.plan("call", key, self.now)
        else:
            self.end(key, failed(error))

    def _handed(self, key: Hashable, result: Mapping[str, Any]) -> None:
        """The call has become a task. An end that its handle tells of is fetched (LIFE.3)."""
        view = view_of(result)
        if view is None or self.watcher_of(view["taskId"]) is not None:
            self.end(key, FAILED)
            return
        saved = SavedTask(
            task_id=view["taskId"],
            tool=self.calls[key].params["name"],
            capabilities=self.capabilities,
            created_ms=self.now,
            ttl_ms=view.get("ttlMs"),
            hint_ms=view.get("pollIntervalMs"),
        )
        self.watch(key, saved)
        if outcome_of(view) is not None:
            self.plan("poll", key, self.now)
        else:
            self.plan_poll(key)
            self.take(key, view)

    def _round(self, key: Hashable, result: Mapping[str, Any]) -> None:
        """The call is answered with questions, before there is a task (MRTR)."""
        call = self.calls[key]
        requests, state = result.get("inputRequests", {}), result.get("requestState")
        if call.rounds >= self.bounds.input_rounds or not self._makes_sense(requests, state):
            self.end(key, FAILED)
            return
        call.rounds += 1
        call.asked = {
            name: asked for name, asked in requests.items() if somebody_can_answer(asked, self.capabilities)
        }
        call.params.pop("inputResponses", None)
        call.params.pop("requestState", None)
        if requests:
            call.params["inputResponses"] = {
                name: CANCELLED_ANSWER for name in requests if name not in call.asked
            }
        if state is not None:
            call.params["requestState"] = state
        self._news += [Shown(call=key, key=name, request=asked) for name, asked in call.asked.items()]
        if not call.asked:
            self.plan("call", key, self.now + self.backoff(call.rounds))

    def _makes_sense(self, requests: Any, state: Any) -> bool:
        """Whether a round may be answered. Of what was not declared, only elicitations can be cancelled."""
        return (
            isinstance(requests, dict)
            and isinstance(state, str | None)
            and (bool(requests) or state is not None)
            and len(requests) <= self.bounds.ledger_keys
            and all(name and is_input_request(asked) for name, asked in requests.items())
            and all(
                asked["method"] == "elicitation/create" or may_be_asked(asked, self.capabilities)
                for asked in requests.values()
            )
        )
