"""Notifications on their way to a peer: the streams of ``subscriptions/listen``, and those of calls.

One rule keeps slow readers harmless (SUB.2): at most one message of a stream is with the host at a time.
What happens meanwhile waits in an :class:`Outbox`, one place for each subject, where newer news replaces
older. So the queue is bounded by the subjects, a reader never gets a stale view, and the last thing it gets
of a task is its terminal view.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any

from attrs import define, field

from mcp_tasks_proto.effects import Send
from mcp_tasks_proto.records import TaskRecord
from mcp_tasks_proto.vocabulary import SUBSCRIPTION_ID
from mcp_tasks_proto.wire.jsonrpc import notification_message
from mcp_tasks_proto.wire.schema import task_view

__all__ = ["Outbox", "Stream", "Streams"]

TOOLS_CHANGED = ("tools",)
"""Outbox subject of a tools/list change; tuples cannot collide with task ids."""

Draft = Callable[[], dict[str, Any] | None]
"""Makes a message when it can be sent. ``None``: by now there is nothing to say."""


@define(eq=False, repr=False)
class Outbox:
    """What waits to be sent on one exchange: the latest of each subject, in order of first arrival."""

    exchange: Hashable
    _waiting: dict[Hashable, Draft] = field(init=False, factory=dict)
    _busy: bool = field(init=False, default=False)

    def put(self, subject: Hashable, message: Draft) -> tuple[Send, ...]:
        """Offer news of ``subject``; return what can be sent at once."""
        self._waiting[subject] = message
        return () if self._busy else self.ready()

    def ready(self) -> tuple[Send, ...]:
        """Note that the host has sent what it was given; return what comes next."""
        while self._waiting:
            message = self._waiting.pop(next(iter(self._waiting)))()
            if message is not None:
                self._busy = True
                return (Send(self.exchange, message),)
        self._busy = False
        return ()

    def flush(self) -> tuple[Send, ...]:
        """Return everything that waits: the stream is about to end."""
        waiting, self._waiting = self._waiting, {}
        messages = (message() for message in waiting.values())
        return tuple(Send(self.exchange, message) for message in messages if message is not None)

    def drop(self, subject: Hashable) -> None:
        """Take back what waits of ``subject``, if anything does."""
        self._waiting.pop(subject, None)


@define(eq=False, repr=False, kw_only=True)
class Stream:
    """One ``subscriptions/listen``, from its request to its end."""

    exchange: Hashable
    request_id: str | int
    principal: str | None
    tools_list_changed: bool
    task_ids: tuple[str, ...] | None
    """The ids asked for, all different; ``None``: none were."""
    unanswered: set[str] = field(init=False)
    """Ids whose first look-up is under way; the acknowledgement waits for them."""
    found: dict[str, TaskRecord] = field(factory=dict)
    """What is known of the agreed tasks before the acknowledgement."""
    sent: dict[str, int] = field(factory=dict)
    """For each agreed task that has not ended, the ``lastUpdatedAt`` of the view last offered."""
    acknowledged: bool = False
    outbox: Outbox = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.outbox = Outbox(self.exchange)
        self.unanswered = set(self.task_ids or ())

    def notification(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Return a message of this stream: every one names its subscription (SUB.1)."""
        params["_meta"] = {SUBSCRIPTION_ID: self.request_id}
        return notification_message(method, params)


@define(eq=False, repr=False)
class Streams:
    """The listen streams open at one engine."""

    _streams: dict[Hashable, Stream] = field(init=False, factory=dict)
    _by_task: dict[str, dict[Hashable, Stream]] = field(init=False, factory=dict)
    _by_principal: dict[str | None, int] = field(init=False, factory=dict)

    def __len__(self) -> int:
        return len(self._streams)

    def of_principal(self, principal: str | None) -> int:
        """Return how many streams this principal has open."""
        return self._by_principal.get(principal, 0)

    def listened_to(self, task_id: str) -> bool:
        """Whether a stream listens to this task."""
        return task_id in self._by_task

    def open(self, stream: Stream) -> tuple[Send, ...]:
        """Take in a stream; acknowledge it at once if it waits for no look-up."""
        self._streams[stream.exchange] = stream
        self._by_principal[stream.principal] = self.of_principal(stream.principal) + 1
        for task_id in stream.unanswered:
            self._by_task.setdefault(task_id, {})[stream.exchange] = stream
        return () if stream.unanswered else self._acknowledge(stream)

    def looked_up(self, exchange: Hashable, task_id: str, record: TaskRecord | None) -> tuple[Send, ...]:
        """Take in what the store said of one id; ``None``: not there, or not this caller's."""
        stream = self._streams[exchange]
        stream.unanswered.discard(task_id)
        if record is None:
            self._forget(stream, task_id)
        else:
            self._learn(stream, record)
        return () if stream.unanswered else self._acknowledge(stream)

    def offer(self, record: TaskRecord) -> Iterable[Send]:
        """Tell every stream that listens to this task how it stands now."""
        listening = self._by_task.get(record.task_id)
        return self._offer(list(listening.values()), record) if listening else ()

    def _offer(self, streams: Iterable[Stream], record: TaskRecord) -> Iterable[Send]:
        for stream in streams:
            if stream.acknowledged:
                yield from self._push(stream, record)
            elif record.principal == stream.principal:
                self._learn(stream, record)

    def tools_changed(self) -> Iterable[Send]:
        """Tell every stream that asked for it that the list of tools changed."""
        for stream in self._streams.values():
            if stream.acknowledged and stream.tools_list_changed:
                yield from self._push_tools_changed(stream)

    def removed(self, task_id: str) -> None:
        """Forget a task that cannot be read any more; there is nothing to say of it."""
        for stream in list(self._by_task.get(task_id, {}).values()):
            stream.outbox.drop(task_id)
            self._forget(stream, task_id)

    def ready(self, exchange: Hashable) -> tuple[Send, ...]:
        """Note that the host has sent what it was given on this stream."""
        stream = self._streams.get(exchange)
        return () if stream is None else stream.outbox.ready()

    def close(self, exchange: Hashable) -> None:
        """Forget a stream that has ended."""
        stream = self._streams.pop(exchange)
        left = self.of_principal(stream.principal) - 1
        if left:
            self._by_principal[stream.principal] = left
        else:
            del self._by_principal[stream.principal]
        for task_id in {*stream.unanswered, *stream.found, *stream.sent}:
            self._forget(stream, task_id)

    def acknowledged(self, exchange: Hashable) -> bool:
        """Whether this stream is past its acknowledgement."""
        return self._streams[exchange].acknowledged

    def waiting(self, exchange: Hashable) -> tuple[Send, ...]:
        """Take what waits to be sent on this stream: the server is about to end it."""
        return self._streams[exchange].outbox.flush()

    def cancelled(self, exchange: Hashable) -> dict[str, Any]:
        """Return the notification that this stream is over, for a channel that goes on without it."""
        stream = self._streams[exchange]
        return stream.notification("notifications/cancelled", {"requestId": stream.request_id})

    def _learn(self, stream: Stream, record: TaskRecord) -> None:
        """Note the newest that is known of a task before the acknowledgement."""
        known = stream.found.get(record.task_id)
        if known is None or record.version > known.version:
            stream.found[record.task_id] = record

    def _acknowledge(self, stream: Stream) -> tuple[Send, ...]:
        """Say what was agreed to, then one snapshot for each agreed task (SUB.1, SUB.2)."""
        stream.acknowledged = True
        agreed: dict[str, Any] = {}
        if stream.tools_list_changed:
            agreed["toolsListChanged"] = True
        known, stream.found = stream.found, {}
        if stream.task_ids is not None:
            agreed["taskIds"] = [task_id for task_id in stream.task_ids if task_id in known]
        method, params = "notifications/subscriptions/acknowledged", {"notifications": agreed}
        sends = list(stream.outbox.put(("acknowledged",), lambda: stream.notification(method, params)))
        for task_id in agreed.get("taskIds", ()):
            sends.extend(self._push(stream, known[task_id]))
        return tuple(sends)

    def _push(self, stream: Stream, record: TaskRecord) -> tuple[Send, ...]:
        """Offer a view, unless the stream has it or a later one."""
        task_id = record.task_id
        sent = stream.sent.get(task_id)
        if sent is not None and record.last_updated_at_ms <= sent:
            return ()
        stream.sent[task_id] = record.last_updated_at_ms
        if record.status.terminal:
            self._forget(stream, task_id)
        return stream.outbox.put(
            task_id, lambda: stream.notification("notifications/tasks", task_view(record))
        )

    def _push_tools_changed(self, stream: Stream) -> tuple[Send, ...]:
        return stream.outbox.put(
            TOOLS_CHANGED, lambda: stream.notification("notifications/tools/list_changed", {})
        )

    def _forget(self, stream: Stream, task_id: str) -> None:
        """Stop listening to a task on a stream."""
        stream.found.pop(task_id, None)
        stream.sent.pop(task_id, None)
        listening = self._by_task.get(task_id)
        if listening is not None and listening.pop(stream.exchange, None) is not None and not listening:
            del self._by_task[task_id]
