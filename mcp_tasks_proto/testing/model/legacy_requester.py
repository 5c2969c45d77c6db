"""The requester role toward servers of 2025-11-25: what they are answered, and how their tasks end (LEG)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from attrs import define, field

from mcp_tasks_proto.testing.model.answers import SOME_TEXT, UNKNOWN, ErrorAnswer, PeerAnswer, ResultAnswer
from mcp_tasks_proto.testing.model.legacy_server import legacy_view
from mcp_tasks_proto.testing.model.received import (
    ModelOutcome,
    failed,
    is_input_request,
    somebody_can_answer,
)
from mcp_tasks_proto.testing.model.tasks import ModelTask

__all__ = ["LegacyRequesterModel", "PutQuestion", "is_no_end", "legacy_outcome"]

QUESTIONS: Final = ("elicitation/create", "sampling/createMessage", "roots/list")
RECEIVED: Final = ("tasks/get", "tasks/result", "tasks/list", "tasks/cancel")
RELATED: Final = "io.modelcontextprotocol/related-task"
BAD_PARAMS: Final = ErrorAnswer(code=-32602)

Answers = list[tuple[str | int, PeerAnswer]]
"""Ids of requests, and what they are answered; each request once."""


@define(eq=False, kw_only=True)
class PutQuestion:
    """A request of the server's that is for somebody here."""

    ids: list[str | int]
    """What the server called it, the last time last."""
    request: Mapping[str, Any]
    """As an input request: without whose task it is, and what is to become of it."""
    task_id: str | None
    """The server's task that asks; ``None``: a call does."""
    received: str | None = None
    """The task that it has become here (LEG.10)."""
    answer: Mapping[str, Any] | None = None
    moot: bool = False
    lost: bool = False
    """Whether its stream has broken: the server may ask it again."""

    @property
    def waits(self) -> bool:
        """Whether somebody is still to answer it."""
        return self.answer is None and not self.moot


@define(eq=False, kw_only=True)
class LegacyRequesterModel:
    """A client of 2025-11-25, as its server sees it."""

    capabilities: Mapping[str, Any] = field(factory=dict)
    """Kinds of input that somebody here can give."""
    received_ttl_ms: int = 3_600_000
    poll_interval_ms: int = 1_000
    questions: list[PutQuestion] = field(factory=list)
    received: dict[str, ModelTask] = field(factory=dict)
    """The tasks that the server has made here (LEG.10)."""
    waiters: dict[str, list[str | int]] = field(factory=dict)
    """Requests for their results that wait."""

    # -- what the server asks --------------------------------------------------------------------------------

    def asked(
        self,
        request_id: str | int,
        method: str,
        params: Mapping[str, Any],
        *,
        new_id: str,
        now: int,
        under_way: bool,
    ) -> Answers:
        """A request of the server's; nothing is returned where somebody is asked, or it waits.

        ``under_way``: whether there is a call, or the task that the request names. Nobody else can be asked.
        """
        if method == "ping":
            return [(request_id, ResultAnswer({}))]
        if method in RECEIVED and self._receives():
            return self._of_received(request_id, method, params)
        if method not in QUESTIONS:
            return [(request_id, ErrorAnswer(code=-32601))]
        refused = self._refused(method, params, under_way=under_way)
        if refused is not None:
            return [(request_id, refused)]
        return self._put(request_id, method, params, new_id, now)

    def _receives(self) -> bool:
        """Whether ``initialize`` has said that tasks can be made here."""
        return any(name in self.capabilities for name in ("elicitation", "sampling"))

    def _refused(self, method: str, params: Mapping[str, Any], *, under_way: bool) -> ErrorAnswer | None:
        """INP.2: a kind that was not declared, what is none, and what nobody can be asked."""
        if method.partition("/")[0] not in self.capabilities:
            return ErrorAnswer(code=-32601)
        request = _request(method, params)
        if not is_input_request(request) or not somebody_can_answer(request, self.capabilities):
            return BAD_PARAMS
        return None if under_way else ErrorAnswer(code=-32603)

    def _put(
        self, request_id: str | int, method: str, params: Mapping[str, Any], new_id: str, now: int
    ) -> Answers:
        request, task_id = _request(method, params), related_task(params)
        wants_task = isinstance(params.get("task"), dict) and method != "roots/list"
        for known in self.questions:
            again = known.lost and (known.task_id, known.request) == (task_id, request)
            if again and not known.moot and not wants_task:  # the same one, asked again (REQ.4)
                known.ids.append(request_id)
                known.lost = False
                return [] if known.answer is None else [(request_id, ResultAnswer(known.answer))]
        put = PutQuestion(ids=[request_id], request=request, task_id=task_id)
        self.questions.append(put)
        if not wants_task:
            return []
        put.received = new_id
        ttl = params["task"].get("ttl")
        usable = type(ttl) is int and 0 < ttl <= self.received_ttl_ms
        made = ModelTask(
            task_id=new_id,
            owner=None,
            created_at_ms=now,
            ttl_ms=ttl if usable else self.received_ttl_ms,
            poll_interval_ms=self.poll_interval_ms,
        )
        self.received[new_id] = made
        return [(request_id, ResultAnswer({"task": {**legacy_view(made), "lastUpdatedAt": SOME_TEXT}}))]

    def withdrawn(self, request_id: Any) -> None:
        """The server no longer waits for the answer to one of its requests, if it has none yet."""
        for put in self.questions:
            if put.ids[-1] == request_id and put.waits and put.received is None:
                put.moot = True

    # -- what somebody answers -------------------------------------------------------------------------------

    def answered(self, put: PutQuestion, response: Mapping[str, Any]) -> Answers:
        """Somebody has answered: the server is told so, once (LEG.8)."""
        put.answer = response
        if put.received is None:
            return [(put.ids[-1], ResultAnswer(response))]
        return self._end(put.received, status="completed", result=response)

    def over(self, put: PutQuestion) -> Answers:
        """Nobody here will answer it: its call is over. Who waits for a task of this side is told."""
        if not put.waits:
            return []
        put.moot = True
        if put.received is None or put.received not in self.received:
            return []
        return self._end(put.received, status="failed", error={"code": -32603, "message": SOME_TEXT})

    # -- tasks of this side ----------------------------------------------------------------------------------

    def _of_received(self, request_id: str | int, method: str, params: Mapping[str, Any]) -> Answers:
        """LEG.4 to LEG.7, in the other direction."""
        if method == "tasks/list":
            tasks = [{**legacy_view(one), "lastUpdatedAt": SOME_TEXT} for one in self.received.values()]
            right = params.get("cursor") is None
            return [(request_id, ResultAnswer({"tasks": tasks}) if right else BAD_PARAMS)]
        wanted = params.get("taskId")
        task = self.received.get(wanted) if isinstance(wanted, str) else None
        if task is None:
            return [(request_id, UNKNOWN)]
        if method == "tasks/get":
            return [(request_id, ResultAnswer(legacy_view(task)))]
        if method == "tasks/cancel":
            return self._cancel(request_id, task)
        if task.ended:
            return [(request_id, _final(task))]
        self.waiters.setdefault(task.task_id, []).append(request_id)
        return []

    def _cancel(self, request_id: str | int, task: ModelTask) -> Answers:
        if task.ended:
            return [(request_id, BAD_PARAMS)]
        told = self._end(task.task_id, status="cancelled")
        for put in self.questions:
            if put.received == task.task_id:
                put.moot = True
        return [*told, (request_id, ResultAnswer(legacy_view(self.received[task.task_id])))]

    def _end(self, task_id: str, *, status: str, result: Any = None, error: Any = None) -> Answers:
        task = self.received[task_id]
        message = SOME_TEXT if status == "failed" else None
        ended = ModelTask(
            task_id=task_id,
            owner=None,
            created_at_ms=task.created_at_ms,
            ttl_ms=task.ttl_ms,
            poll_interval_ms=task.poll_interval_ms,
            status=status,
            message=message,
            result=result,
            error=error,
        )
        self.received[task_id] = ended
        return [(waiter, _final(ended)) for waiter in self.waiters.pop(task_id, [])]

    def passed(self, now: int) -> Answers:
        """Time has passed: tasks of this side are gone when theirs is (LEG.7)."""
        told: Answers = []
        for task_id, task in list(self.received.items()):
            if task.expired(now):
                del self.received[task_id]
                told += [(waiter, UNKNOWN) for waiter in self.waiters.pop(task_id, [])]
                for put in self.questions:
                    put.moot |= put.received == task_id
        return told


def legacy_outcome(
    status: str, result: Mapping[str, Any] | None, error: Mapping[str, Any] | None
) -> ModelOutcome:
    """Return how a call ends whose task has this status and this answer to ``tasks/result`` (LEG.4, LEG.6).

    ``failed`` with a result is a tool's own error, and a result for the caller (LIFE.2, trap 21).
    """
    if status == "cancelled":
        return ModelOutcome(kind="cancelled")
    if result is None:
        return failed(error or {"code": None})
    told = {name: value for name, value in result.items() if name != "_meta"}
    if status == "failed":
        if "content" not in told and "structuredContent" not in told:
            return ModelOutcome(kind="failed")
        told["isError"] = True
    return ModelOutcome(kind="completed", result={**told, "resultType": "complete"})


def is_no_end(status: str, error: Mapping[str, Any], *, http_status: int = 200) -> bool:
    """Whether an error that ``tasks/result`` is answered with may be about that request alone (REQ.3).

    The request of a ``completed`` task was successful, and its result is there: -32603 is an internal error
    of the server's, -32602 an id that is nobody's (2025-11-25, "Protocol Errors"), -32600 a request that is
    not taken. What such a task ended with is asked for again, a few times. Any error may be why a task
    ``failed``, but for a failure of HTTP's.
    """
    return http_status >= 500 or (status == "completed" and error["code"] in (-32600, -32602, -32603))


def related_task(params: Mapping[str, Any]) -> str | None:
    """Return the id of the task that a request of the server's is for."""
    meta = params.get("_meta")
    related = meta.get(RELATED) if isinstance(meta, dict) else None
    task_id = related.get("taskId") if isinstance(related, dict) else None
    return task_id if isinstance(task_id, str) else None


def _request(method: str, params: Mapping[str, Any]) -> dict[str, Any]:
    own = {name: value for name, value in params.items() if name not in ("_meta", "task")}
    return {"method": method, "params": own}


def _final(task: ModelTask) -> PeerAnswer:
    """Return what the question would have been answered (LEG.4)."""
    if task.status == "completed":
        return ResultAnswer(task.result or {})
    if task.status == "failed" and task.error is not None:
        return ErrorAnswer(code=task.error["code"])
    return BAD_PARAMS
