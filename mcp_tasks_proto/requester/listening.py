"""Listen streams: opened for tasks that have none, given up where the server will not have them (SUB)."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any, Final

from attrs import define, field

from mcp_tasks_proto.requester.calls import SentListen, Watch
from mcp_tasks_proto.requester.requests import Requests, backoff

__all__ = ["LISTEN", "Listener"]

LISTEN: Final = ("listen",)
"""Timer key: time to open a stream for the tasks that have none."""


@define(eq=False, repr=False)
class Listener:
    """The listen streams of one requester. What they bring is for the tasks' watcher to take in."""

    requests: Requests
    _refused: bool = field(init=False, default=False)
    """Whether the server said that it does not do this."""
    _failures: int = field(init=False, default=0)
    """Streams in a row that did not last."""
    _quiet_until_ms: int = field(init=False, default=0)
    """Until when the server asked to be left alone."""
    _waiting: dict[str, Watch] = field(init=False, factory=dict)
    """Tasks that wait for a stream, by id."""
    _open: list[SentListen] = field(init=False, factory=list)

    def want(self, watch: Watch) -> None:
        """Have a stream opened for a task, soon, and together with others."""
        if self._refused or not self.requests.settings.listen:
            return
        self._waiting[watch.task_id] = watch
        self._plan()

    def _plan(self) -> None:
        """Open streams soon, but no sooner than is allowed."""
        settings, timers, now = self.requests.settings, self.requests.timers, self.requests.now
        when = timers.get(LISTEN)
        if when is None:
            when = now + max(settings.limits.listen_delay_ms, backoff(settings, self._failures))
        timers.set(LISTEN, max(when, self._quiet_until_ms))

    def due(self) -> list[Watch]:
        """Open streams for all that wait, as far as there may be; return the tasks that change theirs.

        One more than there may be takes the place of the two that have the fewest tasks: tasks that come one
        by one change streams a few times only. Where these two would fill one, tasks wait, and are polled
        meanwhile.
        """
        limits, moved = self.requests.settings.limits, list[Watch]()
        while self._waiting:
            if len(self._open) >= limits.listen_streams:
                smallest = sorted(self._open, key=lambda stream: len(stream.watches))[:2]
                if sum(len(stream.watches) for stream in smallest) >= limits.stream_tasks:
                    break
                closed = [watch for stream in smallest for watch in self._close(stream)]
                self._waiting = {watch.task_id: watch for watch in closed} | self._waiting
                moved += closed
            self._listen(dict(islice(self._waiting.items(), limits.stream_tasks)))
        return moved

    def _listen(self, watches: dict[str, Watch]) -> None:
        stream = SentListen(watches=watches)
        self.requests.send(stream, "subscriptions/listen", {"notifications": {"taskIds": list(watches)}})
        self._open.append(stream)
        for task_id, watch in watches.items():
            del self._waiting[task_id]
            watch.stream = stream

    def _close(self, stream: SentListen) -> list[Watch]:
        """Give a stream up; return its tasks, which have none now."""
        watches = list(stream.watches.values())
        stream.watches.clear()
        self._open.remove(stream)
        self.requests.stop(stream.name)
        for watch in watches:
            watch.stream, watch.listening = None, False
        return watches

    def leave(self, watch: Watch) -> None:
        """Bring no more news of this task; a stream goes with the last of its tasks."""
        if self._waiting.pop(watch.task_id, None) is not None and not self._waiting:
            self.requests.timers.clear(LISTEN)
        stream, watch.stream, watch.listening = watch.stream, None, False
        if stream is not None:
            del stream.watches[watch.task_id]
            if not stream.watches:
                self._close(stream)
            if self._waiting:
                self._plan()

    def acknowledged(self, stream: SentListen, params: Mapping[str, Any]) -> list[Watch]:
        """The server says of which tasks it will bring news (SUB.1); return those that it leaves out."""
        stream.acknowledged = True
        self.requests.keep_open(stream)
        agreed = params.get("notifications")
        task_ids = agreed.get("taskIds") if isinstance(agreed, dict) else None
        named = {one for one in task_ids if isinstance(one, str)} if isinstance(task_ids, list) else set()
        left_out = [watch for task_id, watch in stream.watches.items() if task_id not in named]
        for watch in left_out:
            self.leave(watch)
        for watch in stream.watches.values():
            watch.listening = True
        return left_out

    def ended(self, stream: SentListen, *, refused: bool, pause_ms: int) -> list[Watch]:
        """A stream is gone; return the tasks that were on it. They wait for another, unless it is refused.

        A server that refuses before it has acknowledged anything is not asked again.
        """
        now, limits = self.requests.now, self.requests.settings.limits
        lasted = stream.acknowledged and now - stream.since_ms >= limits.last_backoff_ms
        self._failures = 1 if lasted else self._failures + 1
        self._quiet_until_ms = max(self._quiet_until_ms, now + pause_ms)
        if refused and not stream.acknowledged:
            self._refused = True
            self._waiting.clear()
            self.requests.timers.clear(LISTEN)
        self._open.remove(stream)
        watches = list(stream.watches.values())
        for watch in watches:
            watch.stream, watch.listening = None, False
            self.want(watch)
        return watches
