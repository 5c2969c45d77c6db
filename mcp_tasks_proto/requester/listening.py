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


@define(eq=False)
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

    def want(self, watch: Watch) -> None:
        """Have a stream opened for a task, soon, and together with others."""
        settings, timers, now = self.requests.settings, self.requests.timers, self.requests.now
        if self._refused or not settings.listen:
            return
        self._waiting[watch.task_id] = watch
        when = timers.get(LISTEN)
        if when is None:
            when = now + max(settings.limits.listen_delay_ms, backoff(settings, self._failures))
        timers.set(LISTEN, max(when, self._quiet_until_ms))

    def due(self) -> None:
        """Open streams for all that wait."""
        while self._waiting:
            batch = dict(islice(self._waiting.items(), self.requests.settings.limits.stream_tasks))
            params = {"notifications": {"taskIds": list(batch)}}
            stream = SentListen(watches=batch)
            self.requests.send(stream, "subscriptions/listen", params)
            for task_id, watch in batch.items():
                del self._waiting[task_id]
                watch.stream = stream

    def leave(self, watch: Watch) -> None:
        """Bring no more news of this task; a stream goes with the last of its tasks."""
        if self._waiting.pop(watch.task_id, None) is not None and not self._waiting:
            self.requests.timers.clear(LISTEN)
        stream, watch.stream, watch.listening = watch.stream, None, False
        if stream is not None:
            del stream.watches[watch.task_id]
            if not stream.watches:
                self.requests.stop(stream.name)

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
        watches = list(stream.watches.values())
        for watch in watches:
            watch.stream, watch.listening = None, False
            self.want(watch)
        return watches
