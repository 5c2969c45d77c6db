"""Tasks of a legacy server, to an engine that knows modern ones only (LEG.3 to LEG.8).

``tasks/get`` says how a task stands and no more. What it ended with is fetched by ``tasks/result``. What it
asks comes as requests of the server's on the stream of an open ``tasks/result``: one is opened when a task
waits for input, and left open until it is answered (trap 24).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from functools import partial
from itertools import count
from re import compile as pattern
from typing import Any, Final

from attrs import define, field

from mcp_tasks_proto.errors import (
    ErrorCode,
    ErrorObject,
    internal_error,
    invalid_params,
    method_not_found,
)
from mcp_tasks_proto.legacy.requester.channel import Answer, Channel
from mcp_tasks_proto.legacy.requester.questions import Question, fingerprint, kind_of
from mcp_tasks_proto.legacy.requester.reading import complete, ended_view, modern_task
from mcp_tasks_proto.requester.inputs import HttpReply, RequestFailed
from mcp_tasks_proto.requester.outcomes import DENIED
from mcp_tasks_proto.requester.reference import KeyState
from mcp_tasks_proto.requester.requests import backoff

__all__ = ["Followed", "FollowedTasks"]

Task = Mapping[str, Any]


@define(eq=False, repr=False, kw_only=True)
class Followed:
    """A task that a call of this side has become, or that is resumed here."""

    task_id: str
    answered_before: frozenset[str]
    """Keys that another process has answered."""
    capabilities: Mapping[str, Any] | None = None
    """What its caller declares; ``None``: what every call does."""
    questions: dict[str, Question] = field(factory=dict)
    asked_last: int = 0
    """The last sent of the ``tasks/get`` that were answered."""
    seen: Task = field(factory=dict)
    """What that said."""
    result: int | None = None
    """The ``tasks/result`` that is open."""
    payload: Answer | None = None
    """What it was answered with."""
    ended: dict[int, Task] = field(factory=dict)
    """Polls that wait for that, and what ``tasks/get`` said."""
    withheld: int = 0
    """How often, with a pause each time, the server did not give what it ended with."""
    withheld_until_ms: int = 0
    """The end of that pause: what is asked meanwhile, for somebody else, does not count."""
    parked: dict[int, Task] = field(factory=dict)
    """Polls that wait for a question."""

    @property
    def undelivered(self) -> dict[str, Question]:
        """Questions whose answers the server waits for and does not have."""
        return {key: question for key, question in self.questions.items() if question.undelivered}

    def latest(self, name: int, task: Task) -> Task:
        """Return what the last sent ``tasks/get`` said: an answer that was overtaken says nothing more."""
        if name > self.asked_last:
            self.asked_last, self.seen = name, task
        return self.seen

    def key_of(self, question: Question) -> str | None:
        """Return the key of a question that is asked again (REQ.4); ``None``: it is another one."""
        for key, known in self.questions.items():
            if known.request == question.request and known.is_same_as(question):
                return key
        return None

    def has_room(self, key: str) -> bool:
        """Whether a new question can stand under this key: one that was used is not used again (INP.1)."""
        return key not in self.questions and key not in self.answered_before

    @property
    def kept_questions(self) -> int:
        """How many are kept for it: all that it has asked, for as long as it is followed."""
        return len(self.questions)


@define(eq=False, repr=False)
class FollowedTasks:
    """What one requester follows, and the single requests about any task."""

    channel: Channel
    can_answer: bool
    """Whether there is anybody here to be asked."""
    lasting_keys: bool = True
    """Whether what is asked again in another process has its key there: the ledger of who calls knows what
    was answered. A proxy's callers take that for accepted, and answer nothing under its key again (INP.1)."""
    _tasks: dict[str, Followed] = field(init=False, factory=dict)
    _calls: dict[Hashable, Followed] = field(init=False, factory=dict)
    """By the call that has become each of them."""
    _updates: dict[int, tuple[Question, ...]] = field(init=False, factory=dict)
    """Those of the engine's whose answers are on their way to the server, and what they answer."""

    def __len__(self) -> int:
        """How many are followed."""
        return len(self._tasks)

    def follow(self, call: Hashable, task_id: str, keys: Mapping[str, Any]) -> None:
        """Follow a task. ``keys`` is the ledger of its reference."""
        if call not in self._calls:
            answered = [key for key, entry in keys.items() if entry["state"] == KeyState.SENT.value]
            followed = Followed(task_id=task_id, answered_before=frozenset(answered))
            self._calls[call] = self._tasks[task_id] = followed

    def follows(self, call: Hashable) -> bool:
        """Whether a call has become a task that is followed."""
        return call in self._calls

    def settled(self, call: Hashable) -> None:
        """The engine's call is over, and with it the interest in its task."""
        followed = self._calls.pop(call, None)
        if followed is not None:
            del self._tasks[followed.task_id]
            self.channel.timers.clear(("parked", followed.task_id))
            if followed.result is not None:
                self.channel.stop(followed.result)
            for question in followed.questions.values():
                question.abandon()

    def get(self, task_id: str | None) -> Followed | None:
        """Return a task that is followed."""
        return None if task_id is None else self._tasks.get(task_id)

    def lose_streams(self) -> None:
        """The session is gone: what was asked in it may be asked again."""
        for followed in self._tasks.values():
            for question in followed.questions.values():
                question.lost = True

    # -- how a task stands ---------------------------------------------------------------------------------

    def poll(self, inner: int, params: Mapping[str, Any]) -> None:
        """``tasks/get``."""
        task_id = params["taskId"]
        self.channel.ask(inner, "tasks/get", {"taskId": task_id}, partial(self._polled, inner, task_id))

    def _polled(self, inner: int, task_id: str, answer: Answer) -> None:
        task = None if answer.response is None else answer.response.result
        if task is None:
            self.channel.relay(inner, answer)
            return
        followed = self._tasks.get(task_id)
        if followed is not None:
            task = followed.latest(answer.fact.request, task)
        match task.get("status"):
            case "completed" | "failed":
                self._fetch(inner, task_id, followed, task)
            case "input_required" if followed is not None and self.can_answer:
                self._wait_for_questions(inner, followed, task)
            case _:
                self._show(inner, followed, task)

    def _show(self, inner: int, followed: Followed | None, task: Task) -> None:
        """Answer a poll with a task that goes on, or was cancelled."""
        view = complete(modern_task(task))
        if followed is not None:
            _add_questions(followed, view)
        self.channel.reply(inner, view)

    # -- what it ended with --------------------------------------------------------------------------------

    def _fetch(self, inner: int, task_id: str, followed: Followed | None, task: Task) -> None:
        """Have the payload of a task that has ended; it is fetched once."""
        if followed is not None and followed.payload is not None:
            self._show_end(inner, followed, task, followed.payload)
        elif followed is not None and followed.result is not None:
            followed.ended[inner] = task
        else:
            self._ask_for_payload(inner, task_id, task)

    def _ask_for_payload(self, inner: int, task_id: str, task: Task) -> None:
        answered = partial(self._payload_came, inner, task_id, task)
        self.channel.ask(inner, "tasks/result", {"taskId": task_id}, answered)

    def _payload_came(self, inner: int, task_id: str, task: Task, payload: Answer) -> None:
        self._show_end(inner, self._tasks.get(task_id), task, payload)

    def _show_end(self, inner: int, followed: Followed | None, task: Task, payload: Answer) -> None:
        """Answer a poll with what its task has ended with, or as one that has failed (REQ.3)."""
        if payload.response is None or _denies(payload):
            self.channel.relay(inner, payload)
            return
        error = payload.response.error
        if error is not None and _withholds(task, error, payload.http) and self._goes_on_asking(followed):
            text = f"no result of a task that has ended: {error.message} ({error.code})"
            self.channel.refuse(inner, internal_error(text), payload.http)
        else:
            self.channel.reply(inner, ended_view(task, payload.response.result, error))

    def _goes_on_asking(self, followed: Followed | None) -> bool:
        """Whether what a task ended with is asked for once more; who only looks at one decides that himself.

        After so many times, as far apart as polls that fail, what the server says is taken for the end.
        """
        if followed is None:
            return True
        settings, now = self.channel.settings, self.channel.now
        if now >= followed.withheld_until_ms:
            followed.withheld += 1
            followed.withheld_until_ms = now + backoff(settings, followed.withheld)
        return followed.withheld < settings.limits.result_attempts

    # -- what it asks --------------------------------------------------------------------------------------

    def _wait_for_questions(self, inner: int, followed: Followed, task: Task) -> None:
        for question in followed.questions.values():
            question.keep_word()
        if followed.result is None and followed.payload is None:
            answered = partial(self._result_ended, followed)
            followed.result = self.channel.ask(None, "tasks/result", {"taskId": followed.task_id}, answered)
        if followed.result is None or followed.undelivered:
            self._show(inner, followed, task)
            return
        followed.parked[inner] = task
        self.channel.timers.set(
            ("parked", followed.task_id), self.channel.now + self.channel.settings.limits.question_wait_ms
        )

    def unpark(self, followed: Followed) -> None:
        """Answer the polls that wait for a question."""
        self.channel.timers.clear(("parked", followed.task_id))
        parked, followed.parked = followed.parked, {}
        for inner, task in parked.items():
            self._show(inner, followed, task)

    def release(self, task_id: str) -> None:
        """Have the polls of a task go on that wait for what comes to those who follow it."""
        followed = self._tasks.get(task_id)
        if followed is not None:
            if followed.ended:
                self._ask_anew(followed)
            self.unpark(followed)

    def waited_long_enough(self, task_id: str) -> None:
        """No question has come to a task that waits for input; it may have come before (LEG.8)."""
        self.unpark(self._tasks[task_id])

    def _result_ended(self, followed: Followed, answer: Answer) -> None:
        """``tasks/result`` was answered, or its stream broke: then it is opened again if need be."""
        followed.result = None
        if answer.response is None:
            for question in followed.questions.values():
                question.lost = True
        elif answer.response.error is None:
            followed.payload = answer
        ended, followed.ended = followed.ended, {}
        for inner, task in ended.items():
            self._show_end(inner, followed, task, answer)
        self.unpark(followed)

    def stop(self, inner: int) -> None:
        """The engine gives a poll or an update up. A payload that does not come is asked for anew."""
        for question in self._updates.pop(inner, ()):
            question.forget_update(inner)
        for followed in self._tasks.values():
            followed.parked.pop(inner, None)
            if followed.ended.pop(inner, None) is not None:
                self._ask_anew(followed)

    def _ask_anew(self, followed: Followed) -> None:
        """Have the payload for whoever still waits for it, by requests of their own."""
        assert followed.result is not None
        self.channel.stop(followed.result)
        followed.result = None
        ended, followed.ended = followed.ended, {}
        for inner, task in ended.items():
            self._ask_for_payload(inner, followed.task_id, task)

    def ask(self, followed: Followed, question: Question) -> None:
        """Take in a question of a task; one that was asked before is known by what it asks (REQ.4)."""
        key = followed.key_of(question)
        if key is None:
            followed.questions[self._new_key(followed, question)] = question
        else:
            followed.questions[key].ask_again(question)
        self.unpark(followed)

    def _new_key(self, followed: Followed, question: Question) -> str:
        base = f"{kind_of(question.request)}.{fingerprint(question.request)}"
        if not self.lasting_keys:
            base = f"{base}.{self.channel.now}"
        keys = (base if number == 1 else f"{base}.{number}" for number in count(1))
        return next(key for key in keys if followed.has_room(key))

    def asked_elsewhere(self, task_id: str, keys: Iterable[str]) -> bool:
        """Whether any of these keys may be of what the task has asked another process: it looks as if made
        there. Where keys last, no process has keys of its own.
        """
        followed = self._tasks.get(task_id)
        known: Mapping[str, Question] = {} if followed is None else followed.questions
        return not self.lasting_keys and any(_PASSING.fullmatch(key) for key in keys if key not in known)

    def withdraw(self, followed: Followed, message_id: str | int) -> None:
        """The server no longer waits for the answer to a question."""
        for question in followed.questions.values():
            question.over |= question.message_id == message_id

    def find(self, message_id: str | int) -> Question | None:
        """Return the question that the server may take back by the id of its request."""
        for followed in self._tasks.values():
            for question in followed.questions.values():
                if question.message_id == message_id and question.can_be_taken_back:
                    return question
        return None

    # -- what it is answered -------------------------------------------------------------------------------

    def update(self, inner: int, params: Mapping[str, Any]) -> None:
        """``tasks/update``: each answer goes where its question came from."""
        followed = self._tasks.get(params["taskId"])
        if followed is None:
            message = "a task of a 2025-11-25 server is answered by whoever follows it"
            self.channel.refuse(inner, invalid_params(message))
            return
        answers = {
            key: response
            for key, response in params["inputResponses"].items()
            if key in followed.questions and followed.questions[key].undelivered
        }
        if not answers:
            self.channel.reply(inner, complete({}))
            return
        waiting = set(answers)
        self._updates[inner] = tuple(followed.questions[key] for key in answers)
        for key, response in answers.items():
            followed.questions[key].answer(inner, response, partial(self._delivered, inner, waiting, key))

    def _delivered(self, inner: int, waiting: set[str], key: str, got_there: bool) -> None:
        """Acknowledge an update when all of it has got there. Else the engine comes again with all of it.

        What was asked again meanwhile may be under way for longer than the engine waits for it.
        """
        if not got_there:
            waiting.add("")
        waiting.discard(key)
        if not waiting <= {""}:
            return
        del self._updates[inner]
        if waiting:
            self.channel.give(RequestFailed(inner, "an answer did not reach the server"))
        else:
            self.channel.reply(inner, complete({}))

    # -- its end, wanted -----------------------------------------------------------------------------------

    def cancel(self, inner: int, params: Mapping[str, Any]) -> None:
        """``tasks/cancel``: -32602 may say that the task has ended, which is an acknowledgement (LEG.5).

        A session that declares nothing of tasks says little: one before it had this task.
        """
        session = self.channel.session
        assert session is not None
        if session.offers("tasks") and not session.offers("tasks", "cancel"):
            self.channel.refuse(inner, method_not_found("tasks/cancel"))
            return
        task = {"taskId": params["taskId"]}
        self.channel.ask(inner, "tasks/cancel", task, partial(self._cancelled, inner, task))

    def _cancelled(self, inner: int, task: dict[str, Any], answer: Answer) -> None:
        error = None if answer.response is None else answer.response.error
        if error is not None and error.code == ErrorCode.INVALID_PARAMS:
            self.channel.ask(inner, "tasks/get", task, partial(self._known, inner, error, answer))
        else:
            self.channel.relay(inner, answer, complete({}))

    def _known(self, inner: int, error: ErrorObject, refusal: Answer, answer: Answer) -> None:
        if answer.response is not None and answer.response.result is not None:
            self.channel.reply(inner, complete({}))
        else:
            self.channel.refuse(inner, error, refusal.http)


_PASSING: Final = pattern(r"(elicitation|sampling|roots)\.[0-9a-f]{1,8}\.[0-9]+(\.[0-9]+)?")
"""A key that does not last: with the time at which it was made."""


def _denies(payload: Answer) -> bool:
    """Whether an answer is about who asks (REQ.3)."""
    return payload.http is not None and payload.http.status in DENIED


def _withholds(task: Task, error: ErrorObject, http: HttpReply | None) -> bool:
    """Whether an error is that of ``tasks/result`` itself, and not what its task ended with (REQ.3, LEG.4).

    That it failed, a server may say by its HTTP status. A task that is ``completed`` has a result: there
    -32603 says that the server could not give it, -32602 that it knows no such task, as the next poll will
    show, and -32600 that it takes no such request. One that is ``failed`` may well have ended with any.
    """
    if http is not None and http.status >= 500:
        return True
    own = (ErrorCode.INTERNAL_ERROR, ErrorCode.INVALID_PARAMS, ErrorCode.INVALID_REQUEST)
    return task["status"] == "completed" and error.code in own


def _add_questions(followed: Followed, view: dict[str, Any]) -> None:
    """Add to a view what its task asks.

    A task that works again is done with what it had asked when it was last seen to wait. Some ask without
    saying that they wait.
    """
    if view.get("status") == "working":
        for question in followed.questions.values():
            question.over |= question.confirmed and (question.response is None or question.delivered)
        if followed.undelivered:
            view["status"] = "input_required"
    if view.get("status") == "input_required" and followed.questions:
        for question in followed.questions.values():
            question.confirmed = True
        view["inputRequests"] = {key: one.request for key, one in followed.undelivered.items()}
