"""Telling a server that a task is no longer wanted, until it knows (REQ.7)."""

from __future__ import annotations

from attrs import define, field

from mcp_tasks_proto.requester.calls import SentCancel, Watch
from mcp_tasks_proto.requester.requests import Requests, backoff

__all__ = ["Cancellations"]


@define(eq=False, repr=False)
class Cancellations:
    """The cancellations that their server may not have heard of.

    One that is waited for is tried until the task ends. One that nobody waits for outlives its call, and is
    tried ``RequesterLimits.cancel_attempts`` times.
    """

    requests: Requests
    _unwaited: set[SentCancel] = field(init=False, factory=set)

    def __len__(self) -> int:
        """How many there are that nobody waits for."""
        return len(self._unwaited)

    def begin(self, watch: Watch) -> None:
        """Tell the server for the first time."""
        watch.cancellation = SentCancel(task_id=watch.task_id, watch=watch)
        self.send(watch.cancellation)

    def send(self, sent: SentCancel) -> None:
        """Tell the server, or tell it again."""
        self.requests.send(sent, "tasks/cancel", {"taskId": sent.task_id})

    def release(self, watch: Watch) -> None:
        """Go on without the task's call, if the server does not know yet: the call ends."""
        sent, watch.cancellation = watch.cancellation, None
        if sent is not None:
            sent.watch, sent.attempts = None, 0
            self._unwaited.add(sent)

    def drop(self, watch: Watch) -> None:
        """Leave it be: the task has ended."""
        sent, watch.cancellation = watch.cancellation, None
        if sent is None:
            return
        if self.requests.get(sent.name) is None:
            self.requests.timers.clear(("cancel", sent))
        else:
            self.requests.stop(sent.name)

    def known(self, sent: SentCancel) -> None:
        """The server knows, or will not hear of it."""
        self._unwaited.discard(sent)
        if sent.watch is not None:
            sent.watch.cancellation = None

    def failed(self, sent: SentCancel, pause_ms: int) -> None:
        """It is not known whether the server knows: try again later."""
        settings = self.requests.settings
        sent.attempts += 1
        if sent.watch is None and sent.attempts >= settings.limits.cancel_attempts:
            return self._unwaited.discard(sent)
        wait_ms = max(backoff(settings, sent.attempts), pause_ms)
        return self.requests.timers.set(("cancel", sent), self.requests.now + wait_ms)
