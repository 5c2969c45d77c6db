"""``subscriptions/listen`` of callers: fanned in from upstreams that push, polled where none does (PRX.14).

A caller's stream has one upstream stream for each upstream that it needs, and none is shared. What those
bring only saves polls: every task has a poll in flight or planned, so that a stream that dies takes nothing
with it.

What waits for a slow reader is looked at again when it can be sent: nothing is told on a stream that
``tasks/get`` would not tell by then.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from attrs import define, field

from mcp_tasks_proto.effects import Send
from mcp_tasks_proto.errors import (
    ErrorObject,
    invalid_params,
    invalid_request,
    limit_reached,
    unknown_task,
)
from mcp_tasks_proto.proxy.bindings import Binding, Purpose, check_binding
from mcp_tasks_proto.proxy.callers import SHUTTING_DOWN, Exchange
from mcp_tasks_proto.proxy.desk import Desk, KnownTask, Lookup
from mcp_tasks_proto.proxy.errors import Trouble, trouble
from mcp_tasks_proto.proxy.fetching import Fetching, seen_of, target_of
from mcp_tasks_proto.proxy.orphans import TASKS_DECLARED
from mcp_tasks_proto.proxy.promoting import Promotions
from mcp_tasks_proto.proxy.streams import CallerStream, Listened, Source
from mcp_tasks_proto.proxy.upstreams import Answer, Target
from mcp_tasks_proto.proxy.views import Seen
from mcp_tasks_proto.subscriptions import Outbox
from mcp_tasks_proto.vocabulary import SUBSCRIPTION_ID
from mcp_tasks_proto.wire.jsonrpc import Notification, error_message, notification_message
from mcp_tasks_proto.wire.reading import is_older
from mcp_tasks_proto.wire.schema import ListenParams, ParamsError, structure

__all__ = ["Listeners"]


@define(eq=False, repr=False, kw_only=True)
class Listeners:
    """The callers' streams open at one engine."""

    desk: Desk
    fetching: Fetching
    promotions: Promotions
    _streams: dict[Any, CallerStream] = field(init=False, factory=dict)

    # -- beginning -----------------------------------------------------------------------------------------

    def open(self, exchange: Exchange) -> None:
        """Take in a ``subscriptions/listen``."""
        callers = self.desk.callers
        try:
            wanted = structure(ListenParams, exchange.request.params).notifications
        except ParamsError as problem:
            return callers.fail(exchange, invalid_params(str(problem)))
        if not exchange.takes_notifications:
            error = invalid_request("subscriptions/listen is answered with text/event-stream; accept it")
            return callers.finish(exchange, error_message(exchange.request.id, error), 406)
        handles: tuple[str, ...] | None = None
        if wanted.task_ids is not None and exchange.tasks_enabled:
            handles = tuple(dict.fromkeys(wanted.task_ids))
        if (full := self._full(exchange, len(handles or ()))) is not None:
            return callers.fail(exchange, limit_reached(full))
        exchange.outbox = Outbox(exchange.key)
        stream = CallerStream(
            exchange=exchange,
            outbox=exchange.outbox,
            tools_list_changed=wanted.tools_list_changed,
            asked_for_tasks=handles is not None,
            handles=handles or (),
            unanswered=len(handles or ()),
        )
        self._streams[exchange.key] = stream
        exchange.abandoned = partial(self._close, stream)
        for handle in stream.handles:
            self.desk.look_up(
                handle,
                principal=exchange.principal,
                access=exchange.access,
                purpose=Purpose.READ,
                then=partial(self._looked_up, stream, handle),
            )
        if not stream.handles:
            self._begin(stream)
        return None

    def _full(self, exchange: Exchange, tasks: int) -> str | None:
        """Return the bound that this stream would break, if it would break one."""
        limits = self.desk.shared.limits
        if tasks > limits.stream_tasks:
            return "stream_tasks"
        if len(self._streams) >= limits.streams:
            return "streams"
        principals = [stream.exchange.principal for stream in self._streams.values()]
        if principals.count(exchange.principal) >= limits.streams_per_principal:
            return "streams_per_principal"
        return None

    def _looked_up(self, stream: CallerStream, handle: str, task: Lookup) -> None:
        if isinstance(task, KnownTask):
            stream.found[handle] = task
        stream.unanswered -= 1
        if not stream.unanswered and stream.exchange.open:
            self._begin(stream)

    def _begin(self, stream: CallerStream) -> None:
        """Open the upstreams' streams, and acknowledge the caller's (SUB.1).

        News of tasks is asked for as well, so that nothing is missed meanwhile. That there are other tools is
        told by nobody twice: this is agreed to once the upstreams' streams are open, or have had their time.
        """
        for handle in stream.handles:
            if handle in stream.found:
                binding = stream.found[handle].binding
                stream.tasks[handle] = Listened(stream=stream, binding=binding)
        if not stream.tools_list_changed:
            self._acknowledge(stream)
            self._open_sources(stream)
            return self._ask(stream)
        shared = self.desk.shared
        shared.timers.set(stream, shared.now + shared.limits.listen_wait_ms)
        self._open_sources(stream)
        stream.begun = True
        return self._see_whether_open(stream)

    def _see_whether_open(self, stream: CallerStream) -> None:
        waits = stream.begun and not stream.acknowledged
        if waits and all(source.open for source in stream.sources):
            self.stream_due(stream)

    def stream_due(self, stream: CallerStream) -> None:
        """The upstreams' streams are open, or have had their time."""
        self.desk.shared.timers.clear(stream)
        self._acknowledge(stream)
        if stream.tools_changed:
            self._put_tools_changed(stream)
        self._ask(stream)

    def _acknowledge(self, stream: CallerStream) -> None:
        """Say what was agreed to."""
        stream.acknowledged = True
        agreed: dict[str, Any] = {}
        if stream.tools_list_changed:
            agreed["toolsListChanged"] = True
        if stream.asked_for_tasks:
            agreed["taskIds"] = list(stream.tasks)
        self._put(
            stream, ("acknowledged",), "notifications/subscriptions/acknowledged", {"notifications": agreed}
        )

    def _ask(self, stream: CallerStream) -> None:
        """Begin to bring news of tasks."""
        found, stream.found = stream.found, {}
        for handle, listened in list(stream.tasks.items()):
            if (snapshot := found[handle].snapshot) is not None:
                self._tell(listened, seen_of(snapshot))
            else:
                self.due(listened)

    def _open_sources(self, stream: CallerStream) -> None:
        """Open a stream to each upstream that pushes and is needed."""
        settings, access = self.desk.shared.settings, stream.exchange.access
        by_target: dict[Target, dict[str, Listened]] = {}
        for listened in stream.tasks.values():
            task_id = listened.binding.upstream_task_id
            if task_id is not None:
                by_target.setdefault(target_of(listened.binding), {})[task_id] = listened
        if stream.tools_list_changed:
            for upstream in settings.upstreams:
                authorization = access.authorization(upstream.name)
                if authorization is not None:
                    by_target.setdefault(Target(upstream.name, authorization, upstream.identity), {})
        has_source = {source.target for source in stream.sources}
        for target, tasks in by_target.items():
            if target not in has_source and self._pushes(target):
                self._open_source(stream, Source(target=target, tasks=tasks))

    def _pushes(self, target: Target) -> bool:
        """Whether this server is configured, and is asked to push."""
        known = self.desk.shared.settings.upstream(target.upstream)
        return known is not None and known.identity == target.identity and known.listen

    def _open_source(self, stream: CallerStream, source: Source) -> None:
        wanted: dict[str, Any] = {"taskIds": list(source.tasks)} if source.tasks else {}
        if stream.tools_list_changed:
            wanted["toolsListChanged"] = True
        stream.sources.append(source)
        source.request = self.desk.upstreams.send(
            source.target,
            "subscriptions/listen",
            {"notifications": wanted},
            partial(self._source_ended, stream, source),
            capabilities=TASKS_DECLARED,
            heard=partial(self._heard, stream, source),
            streams=True,
            task_path=True,
        )

    # -- news ------------------------------------------------------------------------------------------------

    def _heard(self, stream: CallerStream, source: Source, notification: Notification) -> None:
        """An upstream says something on its stream."""
        params = notification.params
        match notification.method:
            case "notifications/subscriptions/acknowledged":
                self._source_agreed(source, params)
                self._see_whether_open(stream)
            case "notifications/tasks" if stream.acknowledged:
                task_id = params.get("taskId")
                listened = source.tasks.get(task_id) if isinstance(task_id, str) else None
                if listened is not None and not listened.taking and not self._expired(listened):
                    listened.taking = True
                    self.fetching.take_in(listened.binding, params, partial(self._pushed, listened))
            case "notifications/tools/list_changed":
                self.desk.discoveries.drop_all(source.target.upstream)
                self._tools_changed(stream)

    def _source_agreed(self, source: Source, params: Mapping[str, Any]) -> None:
        """Tasks that the upstream agreed to are polled less often."""
        source.open = True
        self.desk.upstreams.keep_open(source.request)
        agreed = params.get("notifications")
        task_ids = agreed.get("taskIds") if isinstance(agreed, Mapping) else None
        for task_id in task_ids if isinstance(task_ids, list) else ():
            listened = source.tasks.get(task_id) if isinstance(task_id, str) else None
            if listened is not None:
                listened.source = source

    def _source_ended(self, stream: CallerStream, source: Source, _: Answer) -> None:
        """An upstream's stream is gone."""
        source.request = None
        self._drop_source(stream, source)

    def _drop_source(self, stream: CallerStream, source: Source) -> None:
        """Do without an upstream's stream, and what it may not have brought: its tasks are polled."""
        stream.sources.remove(source)
        self.desk.upstreams.stop(source.request)
        for listened in list(source.tasks.values()):
            if listened.source is source:
                listened.source = None
                if stream.acknowledged:
                    self.due(listened)
        self._see_whether_open(stream)

    def due(self, listened: Listened) -> None:
        """Ask how a task stands: its upstream, or where only the store can tell, the store."""
        if listened.polling:
            return
        listened.polling = True
        if listened.binding.promoted or self._expired(listened):
            exchange = listened.stream.exchange
            self.desk.look_up(
                listened.binding.handle,
                principal=exchange.principal,
                access=exchange.access,
                purpose=Purpose.READ,
                then=partial(self._looked_again, listened),
            )
        else:
            polled = partial(self._polled, listened)
            self.fetching.fetch(listened.binding, polled, polled=False, listening=True)

    def _looked_again(self, listened: Listened, task: Lookup) -> None:
        if isinstance(task, KnownTask):
            kept = task.snapshot
            self._polled(listened, self.promotions.seen(task.binding) if kept is None else seen_of(kept))
        else:
            self._polled(listened, trouble(task or Trouble.TASK_LOST))

    def _polled(self, listened: Listened, seen: Seen | ErrorObject) -> None:
        listened.polling = False
        self._take_in(listened, seen)

    def _pushed(self, listened: Listened, seen: Seen | ErrorObject) -> None:
        """A push that cannot be told, as of a server that only says that there is news, is asked for soon."""
        listened.taking = False
        if isinstance(seen, Seen):
            self._take_in(listened, seen)
        else:
            shared = self.desk.shared
            shared.timers.set(listened, shared.now + shared.limits.poll_floor_ms)

    def _take_in(self, listened: Listened, seen: Seen | ErrorObject) -> None:
        if not self._goes_on(listened):
            return
        shared = self.desk.shared
        interval_ms = shared.limits.poll_floor_ms
        if isinstance(seen, Seen):
            self._tell(listened, seen)
            interval_ms = seen.poll_interval_ms
        elif seen in _GONE:
            self._let_go(listened)
        elif seen == trouble(Trouble.ELSEWHERE):  # its upstream has answered
            interval_ms = listened.binding.poll_interval_ms
        elif seen not in _PASSING:
            interval_ms = shared.limits.listening_poll_ms
        if self._goes_on(listened):
            if listened.source is not None:
                interval_ms = max(interval_ms, shared.limits.listening_poll_ms)
            shared.timers.set(listened, shared.now + interval_ms)

    def _tell(self, listened: Listened, seen: Seen) -> None:
        """Offer a view, unless the caller has it, or a later one. An end is the last of them (SUB.2)."""
        terminal = seen.status.terminal
        if terminal:
            self._forget(listened)
        elif seen.view == listened.told or is_older(seen.last_updated_at, listened.updated_at):
            return
        stream, handle = listened.stream, listened.binding.handle
        listened.told, listened.updated_at = seen.view, seen.last_updated_at
        listened.kept_at_ms = seen.kept_at_ms
        stream.waiting[handle] = listened
        message = partial(self._view_message, listened, seen.view)
        self.desk.shared.out.extend(stream.outbox.put(handle, message))

    def _view_message(self, listened: Listened, view: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return a view as it is sent, however long it has waited; ``None``: it cannot be read any more."""
        del listened.stream.waiting[listened.binding.handle]
        if self._readable(listened):
            return listened.stream.notification("notifications/tasks", view)
        self._ask_anew(listened)
        return None

    def _readable(self, listened: Listened) -> bool:
        """Whether what was to be told of a task may still be read: an end that is kept, for as long as it is
        (HIS.4), and whatever else while the handle lives."""
        shared = self.desk.shared
        if listened.kept_at_ms is None:
            return not self._expired(listened)
        return shared.settings.retention.has_payload(listened.kept_at_ms, shared.now)

    def _expired(self, listened: Listened) -> bool:
        return self.desk.shared.now >= listened.binding.expires_at_ms

    def _ask_anew(self, listened: Listened) -> None:
        """Ask how a task stands of which nothing was told in time: it may be there all the same."""
        stream = listened.stream
        if self._streams.get(stream.exchange.key) is stream:
            stream.tasks[listened.binding.handle] = listened
            listened.told = listened.kept_at_ms = None
            self.due(listened)

    def _put(self, stream: CallerStream, subject: Any, method: str, params: Mapping[str, Any]) -> None:
        message = partial(stream.notification, method, params)
        self.desk.shared.out.extend(stream.outbox.put(subject, message))

    def _tools_changed(self, stream: CallerStream) -> None:
        """Tell a caller who wants to know that there are other tools, now or as soon as it may be told."""
        if stream.acknowledged and stream.tools_list_changed:
            self._put_tools_changed(stream)
        stream.tools_changed = True

    def _put_tools_changed(self, stream: CallerStream) -> None:
        self._put(stream, ("tools",), "notifications/tools/list_changed", {})

    # -- the end ---------------------------------------------------------------------------------------------

    def _goes_on(self, listened: Listened) -> bool:
        return listened.stream.tasks.get(listened.binding.handle) is listened

    def _let_go(self, listened: Listened) -> None:
        """Tell no more of a task, not even what waits to be told."""
        self._take_back(listened)
        if self._goes_on(listened):
            self._forget(listened)

    def _take_back(self, listened: Listened) -> None:
        stream, handle = listened.stream, listened.binding.handle
        stream.waiting.pop(handle, None)
        stream.outbox.drop(handle)

    def _forget(self, listened: Listened) -> None:
        """Bring no more news of a task; an upstream's stream goes with the last of its tasks."""
        stream = listened.stream
        del stream.tasks[listened.binding.handle]
        listened.source = None
        self.desk.shared.timers.clear(listened)
        for source in list(stream.sources):
            # Two upstreams may well have tasks of the same id.
            if source.tasks.get(listened.binding.upstream_task_id or "") is not listened:
                continue
            del source.tasks[listened.binding.upstream_task_id or ""]
            if not source.tasks and not stream.tools_list_changed:
                stream.sources.remove(source)
                self.desk.upstreams.stop(source.request)

    def _close(self, stream: CallerStream) -> None:
        """A caller's stream is gone."""
        del self._streams[stream.exchange.key]
        self.desk.shared.timers.clear(stream)
        for listened in list(stream.tasks.values()):
            self._forget(listened)
        for source in stream.sources:
            self.desk.upstreams.stop(source.request)

    # -- while it is open ------------------------------------------------------------------------------------

    def upstream_changed(self, upstream: str) -> None:
        """An upstream has other tools: whoever sees it and wants to know is told."""
        for stream in self._streams.values():
            if stream.exchange.access.authorization(upstream) is not None:
                self._tools_changed(stream)

    def settings_changed(self) -> None:
        """Other settings are in force."""
        for stream in self._streams.values():
            self._recheck(stream)

    def access_changed(self, exchange: Exchange) -> None:
        """A caller may do other things than before; harmless for one who does not listen."""
        stream = self._streams.get(exchange.key)
        if stream is not None:
            self._recheck(stream)

    def withdraw(self, exchange: Exchange) -> None:
        """Whoever listens is not let in any more, nor told what waits; harmless for who does not listen."""
        stream = self._streams.get(exchange.key)
        if stream is not None:
            for listened in list(stream.waiting.values()):
                self._take_back(listened)
            self._end(stream, WITHDRAWN)

    def purge(self) -> None:
        """What is removed from the store is not kept here, for a reader who may never come (HIS.4)."""
        deleted = self.desk.shared.settings.deleted_projects
        for stream in self._streams.values():
            for handle, task in list(stream.found.items()):
                if task.binding.project in deleted:
                    del stream.found[handle]
            for listened in [*stream.tasks.values(), *stream.waiting.values()]:
                if listened.binding.project in deleted:
                    self._let_go(listened)
                elif listened.kept_at_ms is not None and not self._readable(listened):
                    self._take_back(listened)
                    self._ask_anew(listened)

    def _recheck(self, stream: CallerStream) -> None:
        """Bring no more news of what is not allowed now, and have it from where it comes from now (PRX.7)."""
        for handle, task in list(stream.found.items()):
            if self._is_denied(stream, task.binding):
                del stream.found[handle]
        for listened in [*stream.tasks.values(), *stream.waiting.values()]:
            if self._is_denied(stream, listened.binding):
                self._let_go(listened)
        for source in list(stream.sources):
            authorization = stream.exchange.access.authorization(source.target.upstream)
            if authorization != source.target.authorization or not self._pushes(source.target):
                self._drop_source(stream, source)
        if stream.begun:
            self._open_sources(stream)
        self._tools_changed(stream)

    def _is_denied(self, stream: CallerStream, binding: Binding) -> bool:
        denial = check_binding(
            binding,
            principal=stream.exchange.principal,
            access=stream.exchange.access,
            settings=self.desk.shared.settings,
            purpose=Purpose.READ,
        )
        return denial is not None

    def shut_down(self) -> None:
        """End every stream gracefully."""
        for stream in list(self._streams.values()):
            self._end(stream, SHUTTING_DOWN)

    def _end(self, stream: CallerStream, why: ErrorObject) -> None:
        """End a stream gracefully (SUB.4); one that was not acknowledged has no such end, and is told why."""
        self._close(stream)
        exchange, callers = stream.exchange, self.desk.callers
        body = {"_meta": {SUBSCRIPTION_ID: exchange.request.id}}
        if not stream.acknowledged:
            callers.fail(exchange, why)
        elif exchange.connection is None:
            callers.reply(exchange, body)
        else:
            # On a channel that does not close with the stream the core wants a notification as well; the
            # result comes first, or clients take the stream for lost.
            out = self.desk.shared.out
            out.extend(stream.outbox.flush())
            out.append(Send(exchange.key, callers.result(exchange, body)))
            cancelled = {"requestId": exchange.request.id}
            callers.finish(exchange, notification_message("notifications/cancelled", cancelled), 200)


WITHDRAWN: Final = invalid_request("not authorized")
"""For a stream whose caller is not let in any more."""


_GONE: Final = (unknown_task(), trouble(Trouble.TASK_LOST))
"""After this there is nothing more to hear of a task; whatever else is in the way may end (SUB.2)."""
_PASSING: Final = tuple(trouble(one) for one in (Trouble.UNAVAILABLE, Trouble.STORE, Trouble.INVALID))
"""What may be better at the next poll."""
