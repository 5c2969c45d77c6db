"""Living with a task: polls, listen streams, prompts, answers, and its end (REQ.2 to REQ.7)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from datetime import datetime
from typing import Any, Final

from attrs import define, field

from mcp_tasks_proto.errors import ErrorCode, ErrorObject
from mcp_tasks_proto.input_requests import missing_capabilities
from mcp_tasks_proto.lifecycle import Status
from mcp_tasks_proto.requester.calls import Call, Purpose, Sent, Watch
from mcp_tasks_proto.requester.effects import (
    KeepReference,
    Prompt,
    RequesterEffect,
    ShowView,
    WithdrawPrompt,
)
from mcp_tasks_proto.requester.outcomes import (
    Cancelled,
    Completed,
    Expired,
    Failed,
    Fault,
    ObservationLost,
    Outcome,
)
from mcp_tasks_proto.requester.reference import KeyState, LedgerEntry
from mcp_tasks_proto.requester.settings import RequesterSettings
from mcp_tasks_proto.timers import Timers
from mcp_tasks_proto.wire.schema import ParamsError, TaskView, structure

__all__ = ["Watcher", "backoff", "read_view"]

LISTEN: Final = ("listen",)
"""Timer key: time to open a stream for the tasks that have none."""


def backoff(settings: RequesterSettings, failures: int) -> int:
    """Return how long to wait after this many failures in a row; nothing after none."""
    if failures == 0:
        return 0
    limits = settings.limits
    return min(limits.first_backoff_ms << min(failures - 1, 16), limits.last_backoff_ms)


@define(eq=False, kw_only=True)
class Watcher:
    """The tasks a requester watches."""

    settings: RequesterSettings
    timers: Timers
    out: list[RequesterEffect]
    sent: dict[int, Sent]
    """The requests in flight, by name."""
    send: Callable[[Sent, str, Mapping[str, Any]], int]
    """Sends a request; returns its name."""
    stop: Callable[[int], None]
    """Gives a request up."""
    settle: Callable[[Call, Outcome], None]
    now: int = 0
    _watched: dict[Hashable, Call] = field(init=False, factory=dict)
    _listens: bool = field(init=False)
    _listen_failures: int = field(init=False, default=0)
    _streamless: dict[Hashable, Call] = field(init=False, factory=dict)
    """Calls that wait for a listen stream."""

    def __attrs_post_init__(self) -> None:
        self._listens = self.settings.listen

    # -- beginning and end -----------------------------------------------------------------------------

    def watch(self, call: Call, watch: Watch, *, poll_at_once: bool) -> None:
        """Begin to watch the task that a call has become, or that was resumed."""
        call.watch = watch
        self._watched[call.key] = call
        watch.last_poll_ms = self.now
        if watch.reference.ttl_ms is not None:
            self._set_backstop(call, watch)
        if poll_at_once:
            self.timers.set(("poll", call.key), self.now)
        else:
            self._plan_poll(call, watch)
        self._want_stream(call)

    def forget(self, call: Call) -> None:
        """Stop watching: the call is over."""
        watch = call.watch
        if watch is None:
            return
        del self._watched[call.key]
        self._streamless.pop(call.key, None)
        for name in ("poll", "update", "expiry"):
            self.timers.clear((name, call.key))
        for request in (watch.polling, watch.updating):
            if request is not None:
                self.stop(request)
        if watch.stream is not None:
            self._leave_stream(watch.stream, watch.task_id)
        self.withdraw_prompts(call, watch)

    def withdraw_prompts(self, call: Call, watch: Watch) -> None:
        """Take every prompt of a task off the screen."""
        for key, entry in watch.reference.ledger.items():
            if entry.prompted:
                entry.prompted = False
                self.out.append(WithdrawPrompt(call.key, key))

    # -- news ----------------------------------------------------------------------------------------------

    def view_received(self, call: Call, watch: Watch, view: TaskView) -> None:
        """Take in a view, unless a newer one came before it; the first terminal one wins (REQ.5)."""
        if _older(view.last_updated_at, watch.seen) and not view.status.terminal:
            return None
        watch.seen = view.last_updated_at
        reference = watch.reference
        changed = False
        ttl_ms = view.ttl_ms if isinstance(view.ttl_ms, int) else None
        if (ttl_ms, view.poll_interval_ms) != (reference.ttl_ms, reference.poll_interval_ms):
            reference.ttl_ms, reference.poll_interval_ms = ttl_ms, view.poll_interval_ms
            self._set_backstop(call, watch)
            changed = True
        if view != watch.view:
            watch.view = view
            self.out.append(ShowView(call.key, view))
        match view.status:
            case Status.COMPLETED:
                return self.settle(call, Completed(view.result or {}))
            case Status.FAILED:
                return self.settle(call, _failed(view.error or _NO_ERROR))
            case Status.CANCELLED:
                return self.settle(call, Cancelled(view=view))
            case _:
                self._compare_inputs(call, watch, view.input_requests or {}, changed)
        return None

    def _compare_inputs(
        self, call: Call, watch: Watch, outstanding: Mapping[str, Mapping[str, Any]], changed: bool
    ) -> None:
        """Prompt for what is new, withdraw what is moot, repeat what may have been lost (REQ.4)."""
        ledger = watch.reference.ledger
        new = [key for key in outstanding if key not in ledger and self._can_answer(outstanding[key])]
        if len(ledger) + len(new) > self.settings.limits.ledger_keys:
            message = "the task has made too many input requests (RequesterLimits.ledger_keys)"
            return self.settle(call, Failed(code=None, message=message, fault=Fault.SERVER))
        for key, entry in ledger.items():
            if entry.prompted and key not in outstanding:
                entry.prompted = False
                self.out.append(WithdrawPrompt(call.key, key))
        if watch.cancelling:
            return None
        for key in new:
            ledger[key] = LedgerEntry(KeyState.SHOWN)
        if new or changed:
            self.keep(call, watch)
        for key, request in outstanding.items():
            known = ledger.get(key)
            if known is not None and known.state is KeyState.SHOWN and not known.prompted:
                known.prompted = True
                self.out.append(Prompt(call=call.key, key=key, request=request, again=key not in new))
        return self.submit(call, watch)

    def _can_answer(self, request: Mapping[str, Any]) -> bool:
        return missing_capabilities({"": request}, self.settings.capabilities) is None

    def keep(self, call: Call, watch: Watch) -> None:
        """Have the reference saved."""
        self.out.append(KeepReference(call.key, watch.reference.to_json()))

    # -- polls -----------------------------------------------------------------------------------------------

    def poll_due(self, key: Hashable) -> None:
        """Ask how a task stands."""
        call = self._watched[key]
        watch = call.watch
        if watch is not None and watch.polling is None:
            watch.last_poll_ms = self.now
            watch.polling = self.send(Sent(Purpose.POLL, call), "tasks/get", {"taskId": watch.task_id})

    def poll_answered(self, call: Call, watch: Watch, result: Mapping[str, Any]) -> None:
        """The server said how it stands."""
        watch.polling = None
        try:
            view = read_view(result)
        except ParamsError as error:
            return self.poll_failed(call, watch, f"the server's answer is no task: {error}")
        if view.task_id != watch.task_id:
            return self.poll_failed(call, watch, "the server answered for another task")
        watch.failures = 0
        self._plan_poll(call, watch)
        return self.view_received(call, watch, view)

    def poll_refused(self, call: Call, watch: Watch, error: ErrorObject, pause_ms: int) -> None:
        """The server answered with an error; only some of them say that the task is gone (REQ.3, REQ.6)."""
        watch.polling = None
        if error.code == ErrorCode.INVALID_PARAMS:
            return self.settle(call, Expired(view=watch.view))
        if error.code in _LASTING:
            reason = f"the server no longer tells: {error.message} ({error.code})"
            return self.settle(call, ObservationLost(reason=reason, view=watch.view))
        return self.poll_failed(call, watch, error.message, pause_ms)

    def poll_failed(self, call: Call, watch: Watch, reason: str, pause_ms: int = 0) -> None:
        """A poll failed: that is not the task's end (REQ.3)."""
        watch.polling = None
        watch.failures += 1
        ttl_ms = watch.reference.ttl_ms
        if ttl_ms is not None and self.now >= watch.reference.created_ms + ttl_ms:
            return self.settle(call, Expired(view=watch.view))
        return self._plan_poll(call, watch, pause_ms)

    def expiry_due(self, key: Hashable) -> None:
        """The time to live has passed on this side: ask once more, and then believe it (REQ.5)."""
        call = self._watched[key]
        watch = call.watch
        if watch is None:
            return
        if watch.failures:
            self.settle(call, Expired(view=watch.view))
        elif watch.polling is None:
            earliest = watch.last_poll_ms + self._interval(watch)
            self.timers.set(("poll", key), max(self.now, min(earliest, self._next_poll(key))))

    def _next_poll(self, key: Hashable) -> int:
        planned = self.timers.get(("poll", key))
        return self.now if planned is None else planned

    def _plan_poll(self, call: Call, watch: Watch, pause_ms: int = 0) -> None:
        """Plan the next poll: never sooner than hint, floor, backoff and Retry-After (REQ.2)."""
        wait = max(self._interval(watch), backoff(self.settings, watch.failures), pause_ms)
        if watch.listening and watch.failures == 0:
            wait = max(wait, self.settings.limits.listening_poll_ms)
        self.timers.set(("poll", call.key), max(watch.last_poll_ms + self._interval(watch), self.now + wait))

    def _interval(self, watch: Watch) -> int:
        """Return the server's hint, where it is usable, and never less than the floor."""
        limits = self.settings.limits
        hint = watch.reference.poll_interval_ms
        usable = hint if hint is not None and hint > 0 else limits.poll_interval_ms
        return max(usable, limits.poll_floor_ms)

    def _set_backstop(self, call: Call, watch: Watch) -> None:
        ttl_ms = watch.reference.ttl_ms
        if ttl_ms is None:
            self.timers.clear(("expiry", call.key))
        else:
            self.timers.set(("expiry", call.key), watch.reference.created_ms + ttl_ms)

    # -- answers ---------------------------------------------------------------------------------------------

    def answer(self, call: Call, watch: Watch, key: str, response: Mapping[str, Any]) -> None:
        """Take an answer in, and send it as soon as no other update is under way (REQ.4)."""
        entry = watch.reference.ledger.get(key)
        if entry is None or not entry.prompted:
            return
        entry.prompted = False
        entry.state, entry.response = KeyState.ANSWERED, response
        self.keep(call, watch)
        self.submit(call, watch)

    def submit(self, call: Call, watch: Watch) -> None:
        """Send every answer that the server may not have."""
        answered = {
            key: entry.response
            for key, entry in watch.reference.ledger.items()
            if entry.state is KeyState.ANSWERED and entry.response is not None
        }
        if not answered or watch.updating is not None or self.timers.get(("update", call.key)) is not None:
            return
        watch.submitted = tuple(answered)
        params = {"taskId": watch.task_id, "inputResponses": answered}
        watch.updating = self.send(Sent(Purpose.UPDATE, call), "tasks/update", params)

    def update_due(self, key: Hashable) -> None:
        """Time to repeat an update that failed."""
        call = self._watched[key]
        if call.watch is not None:
            self.submit(call, call.watch)

    def update_settled(self, call: Call, watch: Watch) -> None:
        """The server has the answers, or will never take them: they are not sent again."""
        watch.updating, watch.update_failures = None, 0
        for key in watch.submitted:
            entry = watch.reference.ledger[key]
            entry.state, entry.response = KeyState.SENT, None
        watch.submitted = ()
        self.keep(call, watch)
        self.submit(call, watch)

    def update_failed(self, call: Call, watch: Watch, pause_ms: int = 0) -> None:
        """It is not known whether the server has the answers: the same ones are sent again."""
        watch.updating = None
        watch.submitted = ()
        watch.update_failures += 1
        wait = max(backoff(self.settings, watch.update_failures), pause_ms)
        self.timers.set(("update", call.key), self.now + wait)

    # -- listen streams ------------------------------------------------------------------------------------

    def _want_stream(self, call: Call) -> None:
        if self._listens:
            self._streamless[call.key] = call
            if self.timers.get(LISTEN) is None:
                wait = max(
                    self.settings.limits.listen_delay_ms, backoff(self.settings, self._listen_failures)
                )
                self.timers.set(LISTEN, self.now + wait)

    def listen_due(self) -> None:
        """Open a stream for tasks that have none."""
        batch = list(self._streamless.values())[: self.settings.limits.stream_tasks]
        calls: dict[str, Call] = {}
        for call in batch:
            if call.watch is not None and call.watch.task_id not in calls:
                del self._streamless[call.key]
                calls[call.watch.task_id] = call
        params = {"notifications": {"taskIds": list(calls)}}
        request = self.send(Sent(Purpose.LISTEN, None, calls), "subscriptions/listen", params)
        for watch in _watches(calls):
            watch.stream = request
        if self._streamless:
            self.timers.set(LISTEN, self.now)

    def notified(self, request: int, sent: Sent, method: str, params: Mapping[str, Any]) -> None:
        """A listen stream brought something."""
        if method == "notifications/subscriptions/acknowledged":
            return self._acknowledged(request, sent, params)
        call = sent.calls.get(str(params.get("taskId")))
        watch = None if call is None else call.watch
        if method != "notifications/tasks" or call is None or watch is None or not sent.acknowledged:
            return None
        try:
            view = read_view(params)
        except ParamsError:
            return None
        watch.failures = 0
        if watch.polling is None:
            watch.last_poll_ms = self.now
            self._plan_poll(call, watch)
        return self.view_received(call, watch, view)

    def _acknowledged(self, request: int, sent: Sent, params: Mapping[str, Any]) -> None:
        sent.acknowledged = True
        self._listen_failures = 0
        agreed = params.get("notifications")
        task_ids = agreed.get("taskIds") if isinstance(agreed, dict) else None
        for watch in _watches(sent.calls):
            if isinstance(task_ids, list) and watch.task_id in task_ids:
                watch.listening = True
            else:
                watch.stream = None
                self._leave_stream(request, watch.task_id)

    def _leave_stream(self, request: int, task_id: str) -> None:
        """One of a stream's tasks needs it no more; the stream goes with the last."""
        sent = self.sent[request]
        del sent.calls[task_id]
        if not sent.calls:
            self.stop(request)

    def stream_ended(self, sent: Sent, error: ErrorObject | None) -> None:
        """A stream is gone: poll, and try to listen again unless the server will not (REQ)."""
        if error is not None and not sent.acknowledged and error.code in _NO_LISTENING:
            self._listens = False
        self._listen_failures += 1
        for call in list(sent.calls.values()):
            watch = call.watch
            if watch is not None:
                watch.stream, watch.listening = None, False
                if watch.polling is None:
                    self._plan_poll(call, watch)
                self._want_stream(call)


_LASTING: Final = frozenset(
    {
        ErrorCode.METHOD_NOT_FOUND,
        ErrorCode.MISSING_CLIENT_CAPABILITY,
        ErrorCode.UNSUPPORTED_PROTOCOL_VERSION,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.PARSE_ERROR,
        ErrorCode.HEADER_MISMATCH,
    }
)
"""Errors that the same request would meet again."""

_NO_LISTENING: Final = _LASTING | {ErrorCode.INVALID_PARAMS}

_NO_ERROR: Final = ErrorObject(ErrorCode.INTERNAL_ERROR, "the server did not say what failed")


def read_view(members: Mapping[str, Any]) -> TaskView:
    """Read a view from a result or notification, without what belongs to its envelope.

    Raises :class:`~mcp_tasks_proto.wire.schema.ParamsError`.
    """
    own = {name: value for name, value in members.items() if name not in ("_meta", "resultType")}
    return structure(TaskView, own)


def _watches(calls: Mapping[str, Call]) -> list[Watch]:
    return [call.watch for call in calls.values() if call.watch is not None]


def _failed(error: ErrorObject) -> Failed:
    return Failed(code=error.code, message=error.message, data=error.data, fault=Fault.SERVER)


def _older(one: str, other: str) -> bool:
    """Whether one RFC 3339 time is before another; a time that cannot be read is never."""
    try:
        return datetime.fromisoformat(one) < datetime.fromisoformat(other)
    except (ValueError, TypeError):
        return False
