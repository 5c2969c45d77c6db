"""A proxy's store in memory: for tests, and where nothing has to outlive the process."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort

from attrs import define, evolve, field

from mcp_tasks_adapters.proxy.storing import (
    LEDGER_FACTOR,
    Answer,
    AssignTask,
    EntriesRead,
    ProxyStoreEffect,
    ProxyStoreFact,
    ReadEntries,
    ReadEntry,
)
from mcp_tasks_adapters.storing import LoopThread
from mcp_tasks_proto.history import (
    Observation,
    Place,
    TaskEntry,
    assign,
    count_polls,
    observe,
    place_of,
    repeats,
)
from mcp_tasks_proto.inputs import Saved, SaveFailed, SaveRefused
from mcp_tasks_proto.legacy.proxy import HandlesListed, ListHandles
from mcp_tasks_proto.proxy import (
    Binding,
    DropTask,
    LoadTask,
    Note,
    Purge,
    SaveBinding,
    SaveSnapshot,
    Snapshot,
    SnapshotKept,
    TaskLoaded,
    first_of,
)

__all__ = ["MemoryProxyStore"]


@define(eq=False)
class MemoryProxyStore:
    """A :class:`~mcp_tasks_adapters.proxy.storing.ProxyStore` that answers at once."""

    node: None = field(init=False, default=None)
    _bindings: dict[str, Binding | None] = field(init=False, factory=dict)
    """``None``: the handle carries it."""
    _owned: dict[str | None, int] = field(init=False, factory=dict)
    _snapshots: dict[str, Snapshot] = field(init=False, factory=dict)
    _entries: dict[str, TaskEntry] = field(init=False, factory=dict)
    _polls: dict[str, int] = field(init=False, factory=dict)
    """Polls that are not in the entries yet: most are of tasks whose entry nobody reads before the next."""
    _owners: dict[str, str | None] = field(init=False, factory=dict)
    _projects: dict[str, list[Place]] = field(init=False, factory=dict)
    """Where the entries of each project stand in its list, in order."""

    async def open(self, loop: LoopThread) -> None:
        """There is nothing to open."""

    async def close(self) -> None:
        """There is nothing to close."""

    def submit(self, effect: ProxyStoreEffect, answer: Answer) -> None:
        """Carry out ``effect``, and answer before this returns."""
        match effect:
            case LoadTask(handle=handle, token=token):
                answer(TaskLoaded(token, self._bindings.get(handle), self._snapshots.get(handle)))
            case Note(handle=handle, observation=observation):
                self._observe(handle, observation)
            case SaveBinding():
                answer(self._bind(effect))
            case SaveSnapshot():
                answer(self._keep(effect))
            case DropTask(handle=handle):
                self._unbind(handle)
                self._forget(handle)
            case Purge():
                self._purge(effect)
            case ListHandles(principal=principal, after=after, limit=limit, token=token):
                start = after or ""
                own = sorted(one for one, of in self._owners.items() if of == principal and one > start)
                answer(HandlesListed(token, own[:limit], len(own) > limit))
            case ReadEntries():
                answer(EntriesRead(effect.token, self._stretch(effect)))
            case ReadEntry(handle=handle, token=token):
                answer(EntriesRead(token, self._found(handle)))
            case AssignTask(handle=handle):
                for entry in self._found(handle):
                    self._entries[handle] = assign(
                        entry, actor=effect.actor, assignee=effect.assignee, now=effect.now_ms
                    )
                answer(EntriesRead(effect.token, self._found(handle)))

    def _bind(self, effect: SaveBinding) -> ProxyStoreFact:
        handle, owner, quota = effect.entry.handle, effect.entry.owner, effect.quota
        if len(self._bindings) >= quota.tasks or len(self._entries) >= quota.tasks * LEDGER_FACTOR:
            return SaveRefused(effect.token, "tasks")
        if self._owned.get(owner, 0) >= quota.tasks_per_principal:
            return SaveRefused(effect.token, "tasks_per_principal")
        if handle in self._bindings or handle in self._entries:
            return SaveFailed(effect.token)
        self._bindings[handle] = effect.binding
        self._owners[handle] = owner
        self._owned[owner] = self._owned.get(owner, 0) + 1
        self._entries[handle] = effect.entry
        if effect.entry.project is not None:
            insort(self._projects.setdefault(effect.entry.project, []), place_of(effect.entry))
        return Saved(effect.token)

    def _unbind(self, handle: str) -> None:
        if handle not in self._bindings:
            return
        del self._bindings[handle]
        owner = self._owners.pop(handle)
        self._owned[owner] -= 1
        if not self._owned[owner]:
            del self._owned[owner]

    def _forget(self, handle: str) -> None:
        """Remove an entry, if there is one."""
        entry = self._entries.pop(handle, None)
        self._polls.pop(handle, None)
        if entry is None or entry.project is None:
            return
        places = self._projects[entry.project]
        del places[bisect_left(places, place_of(entry))]
        if not places:
            del self._projects[entry.project]

    def _remove(self, project: str) -> None:
        """Remove all there is of a project."""
        listed = {place.handle for place in self._projects.get(project, ())}
        unlisted = {one.handle for one in self._bindings.values() if one and one.project == project}
        for handle in listed | unlisted:
            self._snapshots.pop(handle, None)
            self._unbind(handle)
            self._forget(handle)

    def _entry(self, handle: str) -> TaskEntry:
        """Return an entry that there is, with all that was noted."""
        entry = self._entries[handle]
        if handle in self._polls:
            entry = self._entries[handle] = count_polls(entry, self._polls.pop(handle))
        return entry

    def _found(self, handle: str) -> tuple[TaskEntry, ...]:
        return (self._entry(handle),) if handle in self._entries else ()

    def _stretch(self, wanted: ReadEntries) -> tuple[TaskEntry, ...]:
        places = self._projects.get(wanted.project, [])
        start = 0 if wanted.after is None else bisect_right(places, wanted.after)
        return tuple(self._entry(place.handle) for place in places[start : start + wanted.most])

    def _keep(self, effect: SaveSnapshot) -> ProxyStoreFact:
        handle = effect.snapshot.handle
        kept = first_of(self._snapshots.get(handle), effect.snapshot)
        self._snapshots[handle] = kept
        self._observe(handle, evolve(effect.observation, status=kept.status))
        return SnapshotKept(effect.token, kept)

    def _observe(self, handle: str, observation: Observation) -> None:
        entry = self._entries.get(handle)
        if entry is None:
            return
        if not repeats(entry, observation):
            self._entries[handle] = observe(self._entry(handle), observation)
        elif observation.polled:
            self._polls[handle] = self._polls.get(handle, 0) + 1

    def _purge(self, purge: Purge) -> None:
        for project in purge.projects:
            self._remove(project)
        for handle, snapshot in list(self._snapshots.items()):
            if snapshot.stored_at_ms < purge.payloads_before_ms:
                del self._snapshots[handle]
                binding = self._bindings.get(handle)
                if binding is not None and binding.promoted:
                    self._unbind(handle)
        for handle, entry in list(self._entries.items()):
            if entry.created_at_ms < purge.metadata_before_ms:
                self._forget(handle)
        for handle, binding in list(self._bindings.items()):
            if binding is None:
                over = handle not in self._entries
            else:
                over = binding.expires_at_ms <= purge.now_ms and handle not in self._snapshots
            if over:
                self._unbind(handle)
