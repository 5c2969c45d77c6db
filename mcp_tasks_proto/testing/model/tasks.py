"""A task, its questions and its callers, as the reference model has them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from attrs import evolve, field, frozen

__all__ = ["ModelCaller", "ModelTask", "Question"]

WORKING: Final = "working"
INPUT_REQUIRED: Final = "input_required"
ENDED: Final = ("completed", "failed", "cancelled")


@frozen(kw_only=True)
class ModelCaller:
    """Who asks, and what the request says of itself."""

    principal: str | None = None
    declares_tasks: bool = True
    tasks_enabled: bool = True
    capabilities: Mapping[str, Any] = field(factory=dict)


@frozen(kw_only=True)
class Question:
    """One input request, under its key."""

    name: str
    ask: str | None
    """``None``: asked by a run of the work that is gone, and not asked again since."""
    request: Mapping[str, Any]
    answer: Any = None
    withdrawn: bool = False

    @property
    def outstanding(self) -> bool:
        """Whether it still waits."""
        return self.answer is None and not self.withdrawn


@frozen(kw_only=True)
class ModelTask:
    """One task."""

    task_id: str
    owner: str | None
    capabilities: Mapping[str, Any] = field(factory=dict)
    """What the call that made it declared."""
    created_at_ms: int
    ttl_ms: int | None = None
    poll_interval_ms: int | None = None
    status: str = WORKING
    message: Any = None
    """What it says of itself, a text or nothing."""
    questions: Mapping[str, Question] = field(factory=dict)
    cancelled_at_ms: int | None = None
    """When cancellation was asked for."""
    result: Mapping[str, Any] | None = None
    error: Mapping[str, Any] | None = None
    resumable: bool = False
    run: int = 0
    """How often its work was taken over."""
    node: str | None = None
    checkpoint: Any = None

    @property
    def ended(self) -> bool:
        """Whether it has a terminal status."""
        return self.status in ENDED

    @property
    def outstanding(self) -> dict[str, Question]:
        """The questions that wait, by key."""
        return {key: question for key, question in self.questions.items() if question.outstanding}

    def expired(self, now: int) -> bool:
        """Whether it reads as unknown (TTL.1)."""
        return self.ttl_ms is not None and now >= self.created_at_ms + self.ttl_ms

    def view(self) -> dict[str, Any]:
        """What its owner sees, without ``lastUpdatedAt`` (GET.1, LIFE.5, LIFE.7)."""
        view: dict[str, Any] = {
            "taskId": self.task_id,
            "status": self.status,
            "createdAt": _written(self.created_at_ms),
            "ttlMs": self.ttl_ms,
        }
        if self.poll_interval_ms is not None:
            view["pollIntervalMs"] = self.poll_interval_ms
        if self.message is not None:
            view["statusMessage"] = self.message
        if self.status == INPUT_REQUIRED:
            view["inputRequests"] = {key: waiting.request for key, waiting in self.outstanding.items()}
        if self.status == "completed":
            view["result"] = {"resultType": "complete", **(self.result or {})}
        if self.status == "failed":
            view["error"] = self.error
        return view

    def settled(self) -> ModelTask:
        """The same with the status that its questions give it (INP.3)."""
        if self.ended:
            return self
        return evolve(self, status=INPUT_REQUIRED if self.outstanding else WORKING)


def _written(unix_ms: int) -> str:
    moment = datetime(1970, 1, 1) + timedelta(milliseconds=unix_ms)
    return moment.isoformat(timespec="milliseconds") + "Z"
