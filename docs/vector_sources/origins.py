"""Where each rule stands in the specification, for vectors that do not name a section of their own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from docs.vector_sources.making import decided, legacy_spec, spec, tasks_spec

__all__ = ["ORIGINS"]

_HTTP: Final = "basic/transports/streamable-http"
_LEGACY_TASKS: Final = "basic/utilities/tasks"

ORIGINS: Final[Mapping[str, str]] = {
    "NEG.1": spec("basic/index", "_meta"),
    "NEG.4": tasks_spec("capability-negotiation"),
    "NEG.7": tasks_spec("capability-negotiation"),
    "LIFE.1": tasks_spec("task-status"),
    "LIFE.2": tasks_spec("task-execution-errors"),
    "LIFE.3": tasks_spec("task-creation"),
    "LIFE.5": tasks_spec("tasks-1"),
    "LIFE.8": tasks_spec("task-creation"),
    "GET.1": tasks_spec("task-polling"),
    "GET.2": tasks_spec("protocol-errors"),
    "UPD.3": tasks_spec("task-update-requests"),
    "UPD.5": tasks_spec("task-update-requests"),
    "CAN.6": tasks_spec("task-cancellation"),
    "INP.1": tasks_spec("task-update-requests"),
    "TTL.1": tasks_spec("tasks-1"),
    "TTL.3": tasks_spec("tasks-1"),
    "SUB.1": spec("basic/patterns/subscriptions", "acknowledgment"),
    "SUB.2": tasks_spec("task-status-notifications"),
    "HTTP.2": spec(_HTTP, "server-validation"),
    "REQ.1": tasks_spec("polymorphic-results"),
    "REQ.2": tasks_spec("task-polling"),
    "REQ.3": decided("REQ.3"),
    "REQ.4": tasks_spec("task-update-requests"),
    "REQ.5": tasks_spec("task-status-notifications"),
    "REQ.6": decided("REQ.6"),
    "REQ.7": tasks_spec("task-cancellation"),
    "REQ.8": spec("server/tools", "output-schema"),
    "LEG.1": tasks_spec("backwards-compatibility"),
    "LEG.2": legacy_spec("basic/lifecycle", "initialization"),
    "LEG.3": legacy_spec(_LEGACY_TASKS, "creating-tasks"),
    "LEG.4": legacy_spec(_LEGACY_TASKS, "result-retrieval"),
    "LEG.5": legacy_spec(_LEGACY_TASKS, "task-cancellation"),
    "LEG.6": legacy_spec(_LEGACY_TASKS, "task-execution-errors"),
    "LEG.7": legacy_spec(_LEGACY_TASKS, "task-listing"),
    "LEG.8": legacy_spec(_LEGACY_TASKS, "input-required-status"),
    "LEG.9": tasks_spec("backwards-compatibility"),
    "LEG.10": legacy_spec(_LEGACY_TASKS, "task-augmented-sampling-request"),
    **{f"PRX.{number}": decided(f"PRX.{number}") for number in range(1, 18)},
    "PRX.7": tasks_spec("security-considerations"),
    "PRX.9": spec(_HTTP, "server-validation"),
}
