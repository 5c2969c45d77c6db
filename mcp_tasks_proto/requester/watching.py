"""Living with a task: its polls, its views, its time to live, and its end (REQ.2, REQ.3, REQ.5 to REQ.7)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from attrs import define, field

from mcp_tasks_proto.errors import ErrorCode, ErrorObject
from mcp_tasks_proto.lifecycle import Status
from mcp_tasks_proto.requester.calls import Call, SentListen, SentPoll, SentUpdate, Watch
from mcp_tasks_proto.requester.cancellations import Cancellations
from mcp_tasks_proto.requester.effects import ShowView
from mcp_tasks_proto.requester.listening import Listener
from mcp_tasks_proto.requester.outcomes import (
    Expired,
    Fault,
    ObservationLost,
    Outcome,
    outcome_of,
)
from mcp_tasks_proto.requester.questions import Questions
from mcp_tasks_proto.requester.reference import TaskReference
from mcp_tasks_proto.requester.requests import Requests, backoff
from mcp_tasks_proto.timers import LAST_MS
from mcp_tasks_proto.wire.reading import is_older, read_view
from mcp_tasks_proto.wire.schema import ABSENT, ParamsError, TaskView

__all__ = ["Watcher"]


@define(eq=False, repr=False, kw_only=True)
class Watcher:
    """The tasks a requester watches.

    Each of them has a poll in flight, or one that is planned. What listen streams bring only saves polls.
    """

    requests: Requests
    listener: Listener
    questions: Questions
    cancellations: Cancellations
    settle: Callable[[Call, Outcome], None]
    _watched: dict[str, Watch] = field(init=False, factory=dict)

    # -- beginning and end -----------------------------------------------------------------------------

    def __contains__(self, task_id: str) -> bool:
        """Whether this task is being watched."""
        return task_id in self._watched

    def begin(self, call: Call, reference: TaskReference, view: TaskView) -> None:
        """Watch the task that a call has become; the first poll honours the hint (REQ.2).

        A handle carries no payload (LIFE.3), so that an end which it tells of has to be fetched.
        """
        watch = self._watch(call, reference)
        self.questions.keep(watch)
        if view.status.terminal:
            return self.poll_due(watch.task_id)
        self._plan_poll(watch)
        self.listener.want(watch)
        return self._take_in(watch, view)

    def resume(self, call: Call, reference: TaskReference) -> None:
        """Watch a task that another process has watched before (REQ.6)."""
        watch = self._watch(call, reference)
        self.poll_due(watch.task_id)
        self.listener.want(watch)

    def _watch(self, call: Call, reference: TaskReference) -> Watch:
        watch = Watch(call=call, reference=reference, last_poll_ms=self.requests.now)
        call.watch = self._watched[watch.task_id] = watch
        if reference.lifetime_ms is not None:
            self._set_timer("expiry", watch, reference.created_ms + reference.lifetime_ms)
        return watch

    def end(self, watch: Watch, outcome: Outcome) -> None:
        """Stop watching: the call is over."""
        del self._watched[watch.task_id]
        for name in ("poll", "update", "expiry"):
            self.requests.timers.clear((name, watch.task_id))
        for request in (watch.polling, watch.updating):
            if request is not None:
                self.requests.stop(request)
        self.listener.leave(watch)
        self.questions.withdraw(watch)
        if isinstance(outcome, ObservationLost):
            self.cancellations.release(watch)
        else:
            self.cancellations.drop(watch)

    def cancel(self, watch: Watch, *, wait: bool) -> None:
        """Tell the server that the task is no longer wanted (REQ.7)."""
        if not watch.cancelling:
            watch.cancelling = True
            self.cancellations.begin(watch)
            self.questions.withdraw(watch)
        if not wait:
            self.cancellations.release(watch)

    def update_due(self, task_id: str) -> None:
        """Time to repeat an update that failed."""
        self.questions.submit(self._watched[task_id])

    # -- polls -----------------------------------------------------------------------------------------------

    def poll_due(self, task_id: str) -> None:
        """Ask how a task stands; no other poll of it is in flight."""
        watch = self._watched[task_id]
        watch.last_poll_ms = self.requests.now
        watch.overtaken = watch.untold = False
        watch.polling = self.requests.send(SentPoll(watch=watch), "tasks/get", {"taskId": task_id})

    def poll_answered(self, watch: Watch, result: Mapping[str, Any]) -> None:
        """The server said how it stands."""
        try:
            view = read_view(result)
        except ParamsError as error:
            return self.poll_failed(watch, f"the server's answer is no task: {error}")
        if view.task_id != watch.task_id:
            return self.poll_failed(watch, "the server answered for another task")
        watch.polling = None
        self._heard(watch)
        if not watch.overtaken or not _stale(watch, view):
            self._take_in(watch, view)
        if watch.task_id in self._watched:
            self._plan_poll(watch)
        return None

    def poll_refused(self, watch: Watch, error: ErrorObject) -> None:
        """The server does not tell, and will not: the task is gone (REQ.6), or who asks may not know."""
        watch.polling = None
        if error.code == ErrorCode.INVALID_PARAMS:
            self.settle(watch.call, Expired(view=watch.view))
        else:
            reason = f"the server no longer tells: {error.message} ({error.code})"
            self.settle(watch.call, ObservationLost(reason=reason, view=watch.view))

    def poll_failed(self, watch: Watch, reason: str, pause_ms: int = 0) -> None:
        """A poll failed: that is not the task's end, unless its time is over (REQ.3, REQ.5)."""
        watch.polling, watch.trouble = None, reason
        watch.failures += 1
        if watch.overdue:
            return self.settle(watch.call, Expired(view=watch.view, unheard=True))
        watch.quiet_until_ms = self.requests.now + pause_ms
        return self._plan_poll(watch)

    def denied(self, sent: SentPoll | SentUpdate, http_status: int) -> None:
        """The server wants other credentials (REQ.3). Whoever adds them may have better ones the next time.

        Where they are no better, waiting does not help: the caller has to act, and can resume the task then.
        """
        watch, reason = sent.watch, f"the server denies access (HTTP {http_status})"
        if isinstance(sent, SentPoll):
            watch.polling = None
        else:
            watch.updating = None
        if type(sent) in watch.denied:
            lost = ObservationLost(reason, watch.view, fault=Fault.CALLER, http_status=http_status)
            return self.settle(watch.call, lost)
        watch.denied.add(type(sent))
        if isinstance(sent, SentUpdate):
            return self.questions.failed(watch, pause_ms=0)
        return self.poll_failed(watch, reason)

    def _plan_poll(self, watch: Watch, *, soon: bool = False) -> None:
        """Plan the next poll: never sooner than hint, floor, backoff and Retry-After allow (REQ.2).

        ``soon``: as soon as that, without the interval that it otherwise leaves after the last news.
        """
        settings, now = self.requests.settings, self.requests.now
        interval_ms = self._interval(watch)
        wait_ms = backoff(settings, watch.failures)
        if not soon:
            wait_ms = max(wait_ms, interval_ms)
            if watch.listening and not watch.failures and not watch.untold:
                wait_ms = max(wait_ms, settings.limits.listening_poll_ms)
        watch.next_poll_ms = max(now + wait_ms, watch.last_poll_ms + interval_ms, watch.quiet_until_ms)
        self._set_timer("poll", watch, watch.next_poll_ms)

    def _set_timer(self, name: str, watch: Watch, when: int) -> None:
        """Set a timer for a task, no later than a host can tell the time, whatever number the server gave."""
        self.requests.timers.set((name, watch.task_id), min(when, LAST_MS))

    def _interval(self, watch: Watch) -> int:
        """Return the server's hint, where it is usable, and never less than the floor."""
        limits, hint = self.requests.settings.limits, watch.reference.poll_interval_ms
        usable = limits.poll_interval_ms if hint is None or hint <= 0 else hint
        return max(usable, limits.poll_floor_ms)

    # -- news ----------------------------------------------------------------------------------------------

    def _heard(self, watch: Watch) -> None:
        """The task is there."""
        watch.failures, watch.trouble, watch.overdue = 0, None, False
        watch.denied.discard(SentPoll)
        self._set_backstop(watch)

    def _take_in(self, watch: Watch, view: TaskView) -> None:
        """Take in the newest view; the first terminal one wins, for it ends the call (REQ.5)."""
        known, watch.view, watch.seen = watch.view, view, view.last_updated_at
        changed = self._take_terms(watch, view)
        if view != known:
            self.requests.out.append(ShowView(watch.call.key, view))
        if (outcome := outcome_of(view)) is not None:
            return self.settle(watch.call, outcome)
        if view.status is not Status.INPUT_REQUIRED:
            return self.questions.compare(watch, {}, changed=changed)
        if view.input_requests is not None:
            return self.questions.compare(watch, view.input_requests, changed=changed)
        return self.questions.keep(watch) if changed else None

    def _take_terms(self, watch: Watch, view: TaskView) -> bool:
        """Take in what a view says of time to live and poll interval; whether that is new."""
        reference = watch.reference
        known = reference.ttl_ms, reference.poll_interval_ms
        if view.ttl_ms is not ABSENT:
            reference.ttl_ms = view.ttl_ms
        if view.poll_interval_ms is not None:
            reference.poll_interval_ms = view.poll_interval_ms
        changed = known != (reference.ttl_ms, reference.poll_interval_ms)
        if changed:
            self._set_backstop(watch)
        return changed

    # -- the time to live ------------------------------------------------------------------------------------

    def _set_backstop(self, watch: Watch) -> None:
        """Set when to give the task up if it is not heard of until then (REQ.5).

        One that is heard of after its time gets as much again: the server keeps it for longer than it said.
        """
        created_ms, lifetime_ms = watch.reference.created_ms, watch.reference.lifetime_ms
        if lifetime_ms is None:
            self.requests.timers.clear(("expiry", watch.task_id))
        else:
            begun_ms = created_ms if created_ms + lifetime_ms > self.requests.now else self.requests.now
            self._set_timer("expiry", watch, begun_ms + lifetime_ms)

    def expiry_due(self, task_id: str) -> None:
        """Nothing was heard of the task until its time was over: the next poll decides, if it comes soon."""
        watch = self._watched[task_id]
        watch.overdue = True
        patience_ms = max(watch.reference.ttl_ms or 0, self.requests.settings.limits.listening_poll_ms)
        if watch.polling is None and watch.next_poll_ms - self.requests.now > patience_ms:
            self.settle(watch.call, Expired(view=watch.view, unheard=True))

    # -- listen streams ------------------------------------------------------------------------------------

    def listen_due(self) -> None:
        """Time to open streams; what comes while a task changes its own, the next poll tells."""
        for watch in self.listener.due():
            if watch.polling is None:
                self._plan_poll(watch)

    def acknowledged(self, stream: SentListen, params: Mapping[str, Any]) -> None:
        """A stream has begun; tasks of which it will bring no news are polled as before."""
        for watch in self.listener.acknowledged(stream, params):
            self._poll_soon(watch)

    def notified(self, stream: SentListen, params: Mapping[str, Any]) -> None:
        """A stream brought news of a task (SUB.2, SUB.3)."""
        task_id = params.get("taskId")
        watch = stream.watches.get(task_id) if isinstance(task_id, str) else None
        if watch is None or not stream.acknowledged:
            return None
        try:
            view = read_view(params)
        except ParamsError:
            return None
        if _stale(watch, view):
            return None
        self._heard(watch)
        if _lacks_payload(view):
            watch.untold = True
            return self._poll_soon(watch)
        watch.overtaken = True
        self._take_in(watch, view)
        if watch.task_id in self._watched and watch.polling is None:
            self._plan_poll(watch)
        return None

    def stream_ended(self, stream: SentListen, *, refused: bool = False, pause_ms: int = 0) -> None:
        """A stream is gone, and with it what it may not have brought any more."""
        for watch in self.listener.ended(stream, refused=refused, pause_ms=pause_ms):
            self._poll_soon(watch)

    def _poll_soon(self, watch: Watch) -> None:
        if watch.polling is None:
            self._plan_poll(watch, soon=True)


def _lacks_payload(view: TaskView) -> bool:
    """Whether a view lacks what its status is about; some servers only notify that there is news."""
    match view.status:
        case Status.COMPLETED:
            return view.result is None
        case Status.FAILED:
            return view.error is None
        case Status.INPUT_REQUIRED:
            return view.input_requests is None
        case _:
            return False


def _stale(watch: Watch, view: TaskView) -> bool:
    """Whether a newer view came before this one. An end is news whenever it comes (REQ.5)."""
    return not view.status.terminal and is_older(view.last_updated_at, watch.seen)
