"""A host for one proxy engine: it is the store, and a test plays callers and upstreams by hand."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from itertools import count
from typing import Any, TypeVar

from attrs import define, evolve, field

from mcp_tasks_proto.effects import Reply, Send
from mcp_tasks_proto.history import TaskEntry, observe, of_project
from mcp_tasks_proto.inputs import (
    HttpHead,
    MessageReceived,
    Saved,
    SaveFailed,
    SaveRefused,
    StreamReady,
    TimePassed,
)
from mcp_tasks_proto.legacy.proxy import HandlesListed, ListHandles
from mcp_tasks_proto.proxy import (
    RANDOM_BYTES,
    Access,
    Binding,
    DrawRandom,
    DropTask,
    LoadTask,
    MessageAdmitted,
    Note,
    ProxyEffect,
    ProxyEngine,
    ProxyInput,
    Purge,
    RandomDrawn,
    SaveBinding,
    SaveSnapshot,
    SendUpstream,
    Snapshot,
    SnapshotKept,
    StopUpstream,
    TaskLoaded,
    UpstreamAnswered,
    UpstreamFailed,
    UpstreamNotified,
    first_of,
)
from mcp_tasks_proto.testing.messages import request
from mcp_tasks_proto.testing.promises import Promises
from mcp_tasks_proto.testing.recordings import Recorder
from mcp_tasks_proto.wire.jsonrpc import notification_message, result_message

__all__ = ["ProxyHost", "ProxyStore"]

E = TypeVar("E")
Question = LoadTask | SaveBinding | SaveSnapshot | DrawRandom | ListHandles
"""The effects that a store, or the source of randomness, answers."""


@define(eq=False)
class ProxyStore:
    """What outlives an engine: bindings, ends and the ledger, by handle; and where randomness comes from."""

    bindings: dict[str, Binding] = field(factory=dict)
    snapshots: dict[str, Snapshot] = field(factory=dict)
    entries: dict[str, TaskEntry] = field(factory=dict)
    drawn: int = 0
    """How much randomness was drawn; what comes next is made of it."""

    def answer(self, effect: Question) -> Any:
        """Carry out one effect and return what a host would tell the engine."""
        match effect:
            case DrawRandom(token=token):
                self.drawn += 1
                return RandomDrawn(token, self.drawn.to_bytes(RANDOM_BYTES, "big"))
            case LoadTask(handle=handle, token=token):
                return TaskLoaded(token, self.bindings.get(handle), self.snapshots.get(handle))
            case SaveSnapshot(snapshot=offered, observation=seen, token=token):
                kept = first_of(self.snapshots.get(offered.handle), offered)
                self.snapshots[offered.handle] = kept
                self.note(Note(offered.handle, evolve(seen, status=kept.status)))
                return SnapshotKept(token, kept)
            case ListHandles(principal=principal, after=after, limit=limit, token=token):
                own = sorted(
                    handle
                    for handle, one in self.entries.items()
                    if one.owner == principal and handle > (after or "")
                )
                return HandlesListed(token, own[:limit], len(own) > limit)
        return self._bind(effect)

    def _bind(self, effect: SaveBinding) -> ProxyInput:
        handle, quota = effect.entry.handle, effect.quota
        owned = sum(one.owner == effect.entry.owner for one in self.entries.values())
        if len(self.entries) >= quota.tasks:
            return SaveRefused(effect.token, "tasks")
        if owned >= quota.tasks_per_principal:
            return SaveRefused(effect.token, "tasks_per_principal")
        if handle in self.entries:
            return SaveFailed(effect.token)
        if effect.binding is not None:
            self.bindings[handle] = effect.binding
        self.entries[handle] = effect.entry
        return Saved(effect.token)

    def note(self, note: Note) -> None:
        """Note in the ledger; what is not there is not noted."""
        entry = self.entries.get(note.handle)
        if entry is not None:
            self.entries[note.handle] = observe(entry, note.observation)

    def drop(self, handle: str) -> None:
        """Remove a task whose handle nobody has got."""
        self.bindings.pop(handle, None)
        self.entries.pop(handle, None)

    def purge(self, purge: Purge) -> None:
        """Remove what is past its time, and what belongs to projects that are deleted."""
        for project in purge.projects:
            unlisted = {one.handle for one in self.bindings.values() if one.project == project}
            for handle in unlisted.union(of_project(self.entries, project)):
                self.snapshots.pop(handle, None)
                self.drop(handle)
        for handle, snapshot in list(self.snapshots.items()):
            if snapshot.stored_at_ms < purge.payloads_before_ms:
                del self.snapshots[handle]
                if handle in self.bindings and self.bindings[handle].promoted:
                    del self.bindings[handle]
        for handle, binding in list(self.bindings.items()):
            if binding.expires_at_ms <= purge.now_ms and handle not in self.snapshots:
                del self.bindings[handle]
        for handle, entry in list(self.entries.items()):
            if entry.created_at_ms < purge.metadata_before_ms:
                del self.entries[handle]


@define(eq=False, kw_only=True)
class ProxyHost:
    """Drives an engine step by step.

    With ``held`` true, questions pile up in ``asked`` until :meth:`answer_next`. Whatever a test does, this
    host holds the engine to its :class:`~mcp_tasks_proto.testing.Promises`, and to this: a request has a name
    of its own, which is its id, and is stopped only while it is in flight.
    """

    engine: ProxyEngine | Recorder[Any]
    store: ProxyStore = field(factory=ProxyStore)
    now: int = 1_700_000_000_000
    held: bool = False
    reads: bool = False
    """Whether callers take what is sent on their streams at once."""
    asked: list[Question] = field(init=False, factory=list)
    effects: list[ProxyEffect] = field(init=False, factory=list)
    """Every effect so far but the questions, oldest first."""
    deadline: int | None = field(init=False, default=None)
    in_flight: dict[int, SendUpstream] = field(init=False, factory=dict)
    """Requests to upstreams that wait for an answer, by name."""
    _promises: Promises = field(init=False, factory=Promises)
    _newest: int = field(init=False, default=0)
    _exchanges: count[int] = field(init=False, factory=lambda: count(1))

    # -- any fact ----------------------------------------------------------------------------------------

    def give(self, fact: ProxyInput) -> list[ProxyEffect]:
        """Hand in a fact; return what it led to, questions carried out and left out."""
        before = len(self.effects)
        facts: list[Any] = [fact]
        while facts:
            given = facts.pop(0)
            step = self.engine.handle(given, now=self.now)
            self._promises.look(given, step, self.now)
            if isinstance(given, (UpstreamAnswered, UpstreamFailed)):
                self.in_flight.pop(given.request, None)
            self.deadline = step.deadline
            for effect in step.effects:
                if not isinstance(effect, Question):
                    self._take(effect)
                    if self.reads and isinstance(effect, Send):
                        facts.append(StreamReady(effect.exchange))
                elif self.held:
                    self.asked.append(effect)
                else:
                    facts.append(self.store.answer(effect))
        return self.effects[before:]

    def _take(self, effect: ProxyEffect) -> None:
        self.effects.append(effect)
        match effect:
            case SendUpstream(request=name, message=message):
                assert message["id"] == name > self._newest, f"not a request with a name of its own: {effect}"
                self._newest = name
                self.in_flight[name] = effect
            case StopUpstream(request=name):
                assert name in self.in_flight, f"not a request in flight: {effect}"
                del self.in_flight[name]
            case DropTask(handle=handle):
                self.store.drop(handle)
            case Note():
                self.store.note(effect)
            case Purge():
                self.store.purge(effect)

    def answer_next(self) -> list[ProxyEffect]:
        """Carry out the oldest question that is held back (``LookupError``: none is)."""
        if not self.asked:
            raise LookupError("nothing is held back: the engine waits for no answer")
        return self.give(self.store.answer(self.asked.pop(0)))

    def of(self, kind: type[E]) -> list[E]:
        """Return every effect of one kind so far, oldest first."""
        return [effect for effect in self.effects if isinstance(effect, kind)]

    def advance(self, milliseconds: int) -> list[ProxyEffect]:
        """Let time pass, waking the engine at each of its deadlines on the way."""
        before = len(self.effects)
        until = self.now + milliseconds
        while self.deadline is not None and self.deadline <= until:
            self.now = max(self.now, self.deadline)
            self.give(TimePassed())
        self.now = until
        return self.effects[before:]

    # -- callers -------------------------------------------------------------------------------------------

    def send(
        self,
        message: Any,
        *,
        principal: str | None = None,
        access: Access | None = None,
        legacy: bool = False,
        connection: Hashable | None = None,
        http: HttpHead | None = None,
        tasks_enabled: bool = True,
    ) -> int:
        """Hand in a message on a new exchange, and return that exchange."""
        exchange = next(self._exchanges)
        facts: dict[str, Any] = {
            "exchange": exchange,
            "message": message,
            "principal": principal,
            "connection": connection,
            "http": http,
            "tasks_enabled": tasks_enabled,
        }
        if access is None and not legacy:
            self.give(MessageReceived(**facts))
        else:
            self.give(MessageAdmitted(**facts, access=access or Access(), legacy=legacy))
        return exchange

    def request(self, method: str, params: Mapping[str, Any] | None = None, **facts: Any) -> int:
        """Send a well-formed request, and return its exchange."""
        names = ("principal", "access", "legacy", "connection", "http", "tasks_enabled")
        caller = {name: facts.pop(name) for name in names if name in facts}
        return self.send(request(method, params, **facts), **caller)

    def reply_to(self, exchange: int) -> dict[str, Any]:
        """Return the one reply this exchange got (``LookupError`` if it has none)."""
        replies = [effect for effect in self.of(Reply) if effect.exchange == exchange]
        if len(replies) != 1 or replies[0].message is None:
            raise LookupError(f"exchange {exchange} has {len(replies)} replies")
        return replies[0].message

    def sent_on(self, exchange: int) -> list[dict[str, Any]]:
        """Return the notifications sent on this exchange, oldest first."""
        return [effect.message for effect in self.of(Send) if effect.exchange == exchange]

    # -- upstreams -----------------------------------------------------------------------------------------

    def waiting(self, method: str, upstream: str | None = None) -> SendUpstream:
        """Return the oldest request of a method in flight (``LookupError`` if there is none)."""
        for sent in self.in_flight.values():
            if sent.message["method"] == method and upstream in (None, sent.upstream):
                return sent
        raise LookupError(
            f"no {method} in flight: {[one.message['method'] for one in self.in_flight.values()]}"
        )

    def answer(
        self, method: str, result: Mapping[str, Any], *, upstream: str | None = None
    ) -> list[ProxyEffect]:
        """Answer the oldest request of a method with a result."""
        name = self.waiting(method, upstream).request
        return self.give(UpstreamAnswered(request=name, message=result_message(name, result)))

    def refuse(
        self, method: str, error: Mapping[str, Any], *, upstream: str | None = None
    ) -> list[ProxyEffect]:
        """Answer the oldest request of a method with an error."""
        name = self.waiting(method, upstream).request
        message = {"jsonrpc": "2.0", "id": name, "error": dict(error)}
        return self.give(UpstreamAnswered(request=name, message=message))

    def fail(self, method: str, *, sent: bool = True, upstream: str | None = None) -> list[ProxyEffect]:
        """Have the transport of the oldest request of a method fail."""
        return self.give(UpstreamFailed(self.waiting(method, upstream).request, sent=sent))

    def notify(
        self, method: str, notification: str, params: Mapping[str, Any], *, upstream: str | None = None
    ) -> list[ProxyEffect]:
        """Send a notification on the way to the answer of the oldest request of a method."""
        name = self.waiting(method, upstream).request
        return self.give(UpstreamNotified(name, notification_message(notification, params)))
