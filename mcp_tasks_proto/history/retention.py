"""How long what is kept (HIS.4): payloads at most a day from storage, metadata at most ninety."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from attrs import Attribute, field, frozen, validators

from mcp_tasks_proto.history.entries import TaskEntry

__all__ = ["DAY_MS", "LONGEST_METADATA_MS", "LONGEST_PAYLOAD_MS", "Retention", "of_project", "outlived"]

DAY_MS: Final = 86_400_000

LONGEST_PAYLOAD_MS: Final = DAY_MS
LONGEST_METADATA_MS: Final = 90 * DAY_MS


def _at_most(longest_ms: int) -> Any:
    def check(_: Any, attribute: Attribute[int], value: int) -> None:
        if not 0 < value <= longest_ms:
            raise ValueError(f"{attribute.name} is between 1 and {longest_ms}, and no longer (HIS.4)")

    return field(default=longest_ms, validator=[validators.instance_of(int), check])


@frozen(kw_only=True)
class Retention:
    """How long a proxy keeps what. Raises ``ValueError`` for more than HIS.4 allows."""

    payload_ms: int = _at_most(LONGEST_PAYLOAD_MS)
    """Results and errors of ended tasks, from the moment they are stored."""
    metadata_ms: int = _at_most(LONGEST_METADATA_MS)
    """Entries of the ledger with their timelines, from the creation of the task."""

    def has_payload(self, stored_at_ms: int, now: int) -> bool:
        """Whether a payload stored then is still to be kept."""
        return now < stored_at_ms + self.payload_ms

    def has_metadata(self, created_at_ms: int, now: int) -> bool:
        """Whether the entry of a task created then is still to be kept."""
        return now < created_at_ms + self.metadata_ms


def outlived(entries: Sequence[TaskEntry], retention: Retention, now: int) -> list[str]:
    """Return the handles whose entries are to be deleted, in the order given."""
    return [entry.handle for entry in entries if not retention.has_metadata(entry.created_at_ms, now)]


def of_project(entries: Mapping[str, TaskEntry], project: str) -> list[str]:
    """Return the handles that go with a project: entry, binding and payload of each are deleted at once."""
    return [handle for handle, entry in entries.items() if entry.project == project]
