"""The store contract at its simplest: a dictionary, searched from end to end."""

from __future__ import annotations

from attrs import define, field

from mcp_tasks_proto.effects import Delete, FindExpired, ListTasks, Load, Quota, Save, StoreEffect
from mcp_tasks_proto.inputs import (
    ExpiredFound,
    Loaded,
    LoadFailed,
    SaveConflict,
    Saved,
    SaveFailed,
    SaveRefused,
    StoreInput,
    TasksListed,
)
from mcp_tasks_proto.records import TaskRecord

__all__ = ["DictStore"]


@define(eq=False)
class DictStore:
    """Records by task id. Slow and obvious: what other stores are compared with."""

    records: dict[str, TaskRecord] = field(factory=dict)

    def answer(self, effect: StoreEffect) -> StoreInput:
        """Carry out one effect and return what a host would tell the engine."""
        match effect:
            case Load():
                return Loaded(effect.token, self.records.get(effect.task_id))
            case Save():
                return self._save(effect)
            case Delete():
                current = self.records.get(effect.task_id)
                if current is None or current.version != effect.expected_version:
                    return SaveConflict(effect.token, current)
                del self.records[effect.task_id]
                return Saved(effect.token)
            case ListTasks():
                return self._list(effect)
        return self._find_expired(effect)

    def fail(self, effect: StoreEffect) -> LoadFailed | SaveFailed:
        """Return what a host would tell the engine of one effect that could not be carried out."""
        return (SaveFailed if isinstance(effect, (Save, Delete)) else LoadFailed)(effect.token)

    def _save(self, effect: Save) -> StoreInput:
        current = self.records.get(effect.record.task_id)
        version = None if current is None else current.version
        if version != effect.expected_version:
            return SaveConflict(effect.token, current)
        if effect.quota is not None and (limit := self._over(effect.quota, effect.record)):
            return SaveRefused(effect.token, limit)
        self.records[effect.record.task_id] = effect.record
        return Saved(effect.token)

    def _over(self, quota: Quota, record: TaskRecord) -> str | None:
        """Return the name of the limit that ``record`` would break, if it would break one."""
        kept = [one for one in self.records.values() if one.task_id != record.task_id]
        if len(kept) >= quota.tasks:
            return "tasks"
        if sum(one.principal == record.principal for one in kept) >= quota.tasks_per_principal:
            return "tasks_per_principal"
        if sum(one.payload_bytes for one in kept) + record.payload_bytes > quota.task_bytes:
            return "task_bytes"
        return None

    def _list(self, effect: ListTasks) -> TasksListed:
        later = [
            self.records[task_id]
            for task_id in sorted(self.records)
            if (effect.after is None or task_id > effect.after)
            and self.records[task_id].principal == effect.principal
        ]
        return TasksListed(effect.token, later[: effect.limit], len(later) > effect.limit)

    def _find_expired(self, effect: FindExpired) -> ExpiredFound:
        expiring = sorted(
            (record for record in self.records.values() if record.expires_at_ms is not None),
            key=lambda record: (record.expires_at_ms, record.task_id),
        )
        expired = [record for record in expiring if record.expired(effect.now_ms)][: effect.limit]
        others = expiring[len(expired) :]
        return ExpiredFound(effect.token, expired, others[0].expires_at_ms if others else None)
