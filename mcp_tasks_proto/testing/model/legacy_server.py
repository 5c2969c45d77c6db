"""The server role toward clients of 2025-11-25: what each answer must be, and who is asked what (LEG)."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from typing import Any, Final

from attrs import define, evolve, field, frozen

from mcp_tasks_proto.testing.model.answers import SOME_TEXT, UNKNOWN, ErrorAnswer, PeerAnswer, ResultAnswer
from mcp_tasks_proto.testing.model.forms import answer_fits, may_be_asked
from mcp_tasks_proto.testing.model.server import ServerModel
from mcp_tasks_proto.testing.model.tasks import ModelCaller, ModelTask

__all__ = ["LegacyCaller", "LegacyServerModel", "WantedTask", "legacy_view"]

NO_SUCH_METHOD: Final = ErrorAnswer(code=-32601)
BAD_PARAMS: Final = ErrorAnswer(code=-32602)
CANCELLED_ANSWER: Final[Mapping[str, Any]] = {"action": "cancel"}
NAMES: Final[Mapping[str, str]] = {"ttlMs": "ttl", "pollIntervalMs": "pollInterval"}
NEVER_SHOWN: Final = ("result", "error", "inputRequests")


@frozen(kw_only=True)
class LegacyCaller:
    """Whose session it is, and what its client said of itself in ``initialize``."""

    principal: str | None = None
    capabilities: Mapping[str, Any] = field(factory=dict)
    takes_streams: bool = True
    """Whether it accepts more than the one answer to a request."""
    tasks_enabled: bool = True


@frozen
class WantedTask:
    """A call that is to become a task (LEG.3)."""

    ttl_ms: int | None
    """For how long, unless the tool says so; ``None``: as the server likes."""


@frozen
class Waiter:
    """A ``tasks/result`` that is not answered."""

    task_id: str
    caller: LegacyCaller


@define(eq=False, kw_only=True)
class LegacyServerModel:
    """A server with sessions, as their clients see it. Its tasks are those of a :class:`ServerModel`."""

    tasks: ServerModel = field(factory=ServerModel)
    """What happens to tasks by their workers and by clients of 2026-07-28 is told to this one."""
    serves_tasks: bool = True
    """The policy of LEG.1."""
    requested_ttl_ms: int = 86_400_000
    """The longest lifetime that a client gets."""
    waiters: dict[Hashable, Waiter] = field(factory=dict)
    asked: dict[tuple[str, str], Hashable] = field(factory=dict)
    """Task and key of each question that is with a client, and the request on whose stream it went out."""

    # -- sessions ------------------------------------------------------------------------------------------

    def capability(self, caller: LegacyCaller) -> dict[str, Any] | None:
        """Return what ``initialize`` says of tasks; ``None``: nothing (LEG.1, LEG.2)."""
        if not self._served(caller):
            return None
        served: dict[str, Any] = {"cancel": {}, "requests": {"tools": {"call": {}}}}
        return served if caller.principal is None else {"list": {}, **served}

    def _served(self, caller: LegacyCaller) -> bool:
        return self.serves_tasks and caller.tasks_enabled

    def called(
        self, support: str, params: Mapping[str, Any], caller: LegacyCaller
    ) -> WantedTask | ErrorAnswer | None:
        """A tool is called that declares this support; ``None``: plainly (LEG.3)."""
        task = params.get("task")
        if task is None or not self._served(caller):
            return NO_SUCH_METHOD if support == "required" else None
        if support == "forbidden":
            return NO_SUCH_METHOD
        if not isinstance(task, dict):
            return BAD_PARAMS
        if "ttl" not in task:
            return WantedTask(None)
        ttl = self.requested_ttl_ms if task["ttl"] is None else task["ttl"]
        if type(ttl) not in (int, float) or not ttl >= 1:
            return BAD_PARAMS
        return WantedTask(int(min(ttl, self.requested_ttl_ms)))

    # -- tasks ---------------------------------------------------------------------------------------------

    def created(self, task: ModelTask) -> PeerAnswer:
        """A call became this task: its result is nested, and begins as working (LEG.3)."""
        self.tasks.created(task)
        return ResultAnswer({"task": {**legacy_view(task), "lastUpdatedAt": SOME_TEXT}})

    def read(self, task_id: Any, caller: LegacyCaller, now: int) -> ModelTask | ErrorAnswer:
        """Return a task of the caller's (LEG.7, SEC.1)."""
        if not self._served(caller):
            return NO_SUCH_METHOD
        task = self.tasks.read(task_id, now)
        return UNKNOWN if task is None or task.owner != caller.principal else task

    def get(self, task_id: Any, caller: LegacyCaller, now: int) -> PeerAnswer:
        """``tasks/get`` (LEG.6)."""
        task = self.read(task_id, caller, now)
        return task if isinstance(task, ErrorAnswer) else ResultAnswer(legacy_view(task))

    def cancel(self, task_id: Any, caller: LegacyCaller, now: int) -> PeerAnswer:
        """``tasks/cancel`` ends the task at once, unless it has ended (LEG.5)."""
        task = self.read(task_id, caller, now)
        if isinstance(task, ErrorAnswer):
            return task
        if task.ended:
            return BAD_PARAMS
        self.tasks.host_ended(task.task_id, now, None)
        cancelled = evolve(self.tasks.tasks[task.task_id], message=SOME_TEXT)
        self.tasks.tasks[task.task_id] = cancelled
        return ResultAnswer(legacy_view(cancelled))

    def listed(self, caller: LegacyCaller, now: int) -> list[dict[str, Any]] | ErrorAnswer:
        """Return all that ``tasks/list`` gives, over all its pages (LEG.7)."""
        if not self._served(caller) or caller.principal is None:
            return NO_SUCH_METHOD
        own = [one for one in self.tasks.tasks.values() if one.owner == caller.principal]
        alive = sorted((one for one in own if not one.expired(now)), key=lambda one: one.task_id)
        return [{**legacy_view(one), "lastUpdatedAt": SOME_TEXT} for one in alive]

    # -- results -------------------------------------------------------------------------------------------

    def awaited(self, request: Hashable, task_id: Any, caller: LegacyCaller, now: int) -> PeerAnswer | None:
        """``tasks/result``; ``None``: it waits, and :meth:`due` tells when it is over (LEG.4)."""
        task = self.read(task_id, caller, now)
        if isinstance(task, ErrorAnswer):
            return task
        if task.ended:
            return final_answer(task)
        self.waiters[request] = Waiter(task.task_id, caller)
        return None

    def left(self, request: Hashable) -> None:
        """A ``tasks/result`` is over, or its client is gone: what it was asked is for another."""
        del self.waiters[request]
        for place, asked_on in list(self.asked.items()):
            if asked_on == request:
                del self.asked[place]

    def due(self, now: int) -> dict[Hashable, PeerAnswer]:
        """Return those that are answered now, and how: the end of a task reaches all of them (LEG.4)."""
        answers: dict[Hashable, PeerAnswer] = {}
        for request, waiter in self.waiters.items():
            task = self.tasks.read(waiter.task_id, now)
            if task is None:
                answers[request] = UNKNOWN
            elif task.ended:
                answers[request] = final_answer(task)
        for request in answers:
            self.left(request)
        return answers

    # -- questions -----------------------------------------------------------------------------------------

    def can_be_asked(self, request: Hashable, key: str, now: int) -> bool:
        """Whether the client of a ``tasks/result`` is one to ask this of its task (LEG.8, INP.2)."""
        waiter = self.waiters[request]
        task = self.tasks.read(waiter.task_id, now)
        if task is None or key not in task.outstanding or not waiter.caller.takes_streams:
            return False
        return may_be_asked(task.outstanding[key].request, waiter.caller.capabilities)

    def unasked(self, now: int) -> Iterator[tuple[str, str]]:
        """Return the task and key of every question that must be with a client and is not (INP.1)."""
        for request, waiter in self.waiters.items():
            task = self.tasks.read(waiter.task_id, now)
            for key in () if task is None else task.outstanding:
                if (waiter.task_id, key) not in self.asked and self.can_be_asked(request, key, now):
                    yield waiter.task_id, key

    def moot(self, now: int) -> list[tuple[str, str]]:
        """Return those that are with a client although nobody waits for the answer any more."""
        found = []
        for task_id, key in self.asked:
            task = self.tasks.read(task_id, now)
            if task is None or key not in task.outstanding:
                found.append((task_id, key))
        return found

    def answered(
        self,
        task_id: str,
        key: str,
        answer: Mapping[str, Any] | None,
        error: Mapping[str, Any] | None,
        now: int,
    ) -> None:
        """A client answered, with a result or an error.

        To an elicitation that counts as cancelled, and so does an answer that does not fit; another question
        fails its task with it.
        """
        del self.asked[task_id, key]
        task = self.tasks.tasks[task_id]
        asked = task.outstanding[key].request
        if answer is not None and not answer_fits(asked, answer):
            answer, error = None, {"code": -32602, "message": SOME_TEXT}
        if answer is None and asked["method"] == "elicitation/create":
            answer = CANCELLED_ANSWER
        if answer is None:
            self.tasks.host_ended(task_id, now, error)
        else:
            owner = ModelCaller(principal=task.owner)
            self.tasks.update(task_id, {key: answer}, owner, now)


def legacy_view(task: ModelTask) -> dict[str, Any]:
    """Return a task as this era has it, without ``lastUpdatedAt``; ``isError`` is failed (LEG.3, LEG.6)."""
    view = {NAMES.get(name, name): value for name, value in task.view().items() if name not in NEVER_SHOWN}
    if task.status == "completed" and (task.result or {}).get("isError") is True:
        view |= {"status": "failed", "statusMessage": SOME_TEXT}
    return view


def final_answer(task: ModelTask) -> PeerAnswer:
    """Return what the call would have returned (LEG.4)."""
    if task.status == "completed":
        result = task.result or {}
        return ResultAnswer({name: value for name, value in result.items() if name != "resultType"})
    if task.status == "failed" and task.error is not None:
        return ErrorAnswer(code=task.error["code"], data=task.error.get("data"))
    return BAD_PARAMS
