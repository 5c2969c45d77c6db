"""Whether a history keeps the promises: nothing acknowledged is lost, whenever a process was killed.

It knows nothing of servers and stores: a history goes in, faults in plain words come out.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence, Set
from datetime import datetime
from itertools import chain
from typing import Any, Final

from attrs import define, field

from tests.crash.history import (
    AnswerAcknowledged,
    AnswerSent,
    Began,
    CancelAcknowledged,
    CancelSent,
    Checkpointed,
    Created,
    Delivered,
    Event,
    Killed,
    Note,
    Refused,
    View,
    Viewed,
)
from tests.crash.kinds import ERRING_TEXT, FAILING_CODE, FAILING_MESSAGE, ROUNDS, question

__all__ = ["find_faults", "was_lost"]

ENDED: Final = frozenset({"completed", "failed", "cancelled"})
ALL_QUESTIONS: Final = {question(number, name) for number, names in enumerate(ROUNDS) for name in names}


def find_faults(history: Iterable[Event], notes: Iterable[Note]) -> Sequence[str]:
    """Return what is wrong; empty when every promise was kept.

    The history is complete: each task was looked at until it had ended or expired, and once more.
    """
    faults: list[str] = []
    tasks: dict[str, _Task] = {}
    killed: set[int] = set()
    for event in history:
        match event:
            case Killed(life=life):
                killed.add(life)
            case Refused(life=life, method=method, why=why):
                faults.append(f"life {life} did not do as it was asked by {method}: {why}")
            case Created(task_id=task_id) if task_id in tasks:
                faults.append(f"{task_id}: two creations got this id")
            case Created(task_id=task_id):
                tasks[task_id] = _Task(event, killed)
            case _:
                tasks[event.task_id].take(event)
    by_task: defaultdict[str, list[Note]] = defaultdict(list)
    for note in notes:
        by_task[note.task_id].append(note)
    for task_id, noted in by_task.items():
        faults += [f"{task_id}: {fault}" for fault in _faults_of_work(noted)]
    for task_id, task in tasks.items():
        task.conclude([note for note in by_task[task_id] if isinstance(note, Delivered)])
        faults += [f"{task_id} ({task.kind}): {fault}" for fault in task.faults]
    return faults


def was_lost(view: View) -> bool:
    """Whether a task ended because the process that ran its work is gone."""
    reason = view.get("error", {}).get("data", {}).get("reason")
    return (
        view["status"] == "failed"
        and reason == "worker_lost"
        and view["error"]["code"] == -32603
        and "lost" in view["statusMessage"]
    )


def _faults_of_work(noted: Sequence[Note]) -> Iterator[str]:
    """What must hold of the work of any task, be its creation acknowledged or not."""
    beginnings = [note for note in noted if isinstance(note, Began)]
    if len(beginnings) > 1 and beginnings[0].kind != "resumable":
        yield f"its work began {len(beginnings)} times"
    for times in Counter(note.process for note in beginnings).values():
        if times > 1:
            yield f"its work began {times} times in one process"
    yield from _faults_of_deliveries([note for note in noted if isinstance(note, Delivered)])
    reached = 0
    for note in noted:
        if isinstance(note, Checkpointed):
            reached = max(reached, note.round)
        elif isinstance(note, Began) and note.round < reached:
            yield f"its work went on at round {note.round}, and a checkpoint of round {reached} was durable"


def _faults_of_deliveries(delivered: Sequence[Delivered]) -> Iterator[str]:
    """Each run has an answer once; of several runs each has the same."""
    for (asked, _), times in Counter((note.question, note.process) for note in delivered).items():
        if times > 1:
            yield f"the answer to {asked!r} was delivered {times} times"
    for asked, answers in Counter(
        note for note, _ in {(note.question, note.value) for note in delivered}
    ).items():
        if answers > 1:
            yield f"{asked!r} was answered in {answers} ways"


@define(eq=False)
class _Answers:
    """What was sent under one key."""

    question: str
    values: list[str] = field(factory=list)
    """Those that may have been taken: up to the first that was acknowledged."""
    acknowledged: bool = False


@define(eq=False)
class _Task:
    """One task, from its creation on."""

    created: Created
    _killed: Set[int]
    """The lives that were, by now."""
    faults: list[str] = field(factory=list)
    _view: View = field(init=False)
    """The newest one."""
    _gone: bool = field(init=False, default=False)
    _questions: dict[str, str] = field(init=False, factory=dict)
    """By key."""
    _answers: dict[str, _Answers] = field(init=False, factory=dict)
    """By key."""
    _cancel_sent: bool = field(init=False, default=False)
    _cancelled_in_time: bool = field(init=False, default=False)
    """Whether a cancel was acknowledged while the process was alive that ran the work."""

    def __attrs_post_init__(self) -> None:
        self._view = self.created.view
        if self._view["resultType"] != "task":
            self.faults.append("its creation was no handle")

    @property
    def kind(self) -> str:
        """Which tool made it."""
        return self.created.kind

    # -- one event after another ---------------------------------------------------------------------------

    def take(self, event: Event) -> None:
        """Take the next event in."""
        match event:
            case Viewed(view=None):
                self._unknown(event)
            case Viewed(view=view) if view is not None:
                self._viewed(event, view)
            case AnswerSent():
                answers = self._answers.setdefault(event.key, _Answers(event.question))
                if not answers.acknowledged:
                    answers.values.append(event.value)
            case AnswerAcknowledged():
                # After a cancellation answers are acknowledged, and ignored.
                self._answers[event.key].acknowledged |= not self._cancel_sent
            case CancelSent():
                self._cancel_sent = True
            case CancelAcknowledged():
                self._cancelled_in_time |= self._at_work

    def _unknown(self, event: Viewed) -> None:
        self._gone = True
        if event.answered_at_ms < self._expires_at_ms:
            early = self._expires_at_ms - event.answered_at_ms
            self.faults.append(f"life {event.life} does not know it, {early} ms before its time is over")

    def _viewed(self, event: Viewed, view: View) -> None:
        before, self._view = self._view, view
        if self._gone:
            self.faults.append(f"life {event.life} knows it again, after it was unknown")
        elif event.asked_at_ms >= self._expires_at_ms:
            self.faults.append(f"life {event.life} still knows it after its time")
        if before["status"] in ENDED and before.get("resultType") == "complete":
            if changed := _differing(before, view):
                self.faults.append(f"life {event.life} shows another end: {', '.join(changed)} changed")
        else:
            self._moved(event, before, view)

    def _moved(self, event: Viewed, before: View, view: View) -> None:
        """A task that had not ended was looked at again."""
        if _unix_ms(view["lastUpdatedAt"]) < _unix_ms(before["lastUpdatedAt"]):
            self.faults.append(f"life {event.life} shows an older state than was seen before")
        if before["resultType"] == "complete" and before["lastUpdatedAt"] == view["lastUpdatedAt"]:
            self.faults += [
                f"life {event.life}: {name} changed, and lastUpdatedAt did not"
                for name in _differing(before, view)
            ]
        for key, request in view.get("inputRequests", {}).items():
            self._outstanding(event, key, request["params"]["message"])
        if view["status"] in ENDED:
            self._ended(event, view)

    def _outstanding(self, event: Viewed, key: str, asked: str) -> None:
        if self._questions.setdefault(key, asked) != asked:
            self.faults.append(f"life {event.life} uses the key {key!r} for another question")
        elif key in self._answers and self._answers[key].acknowledged:
            self.faults.append(f"life {event.life} still asks {key!r}, whose answer was acknowledged")

    def _ended(self, event: Viewed, view: View) -> None:
        if was_lost(view) and self.kind != "resumable":
            if self._at_work:
                self.faults.append(f"life {event.life} says the worker was lost, whose process is alive")
            elif self._cancelled_in_time:
                self.faults.append("its cancellation was acknowledged, and it ended as lost")
        elif view["status"] == "cancelled":
            if not self._cancel_sent:
                self.faults.append(f"life {event.life} cancelled it, and nobody had asked for that")
        elif not self._as_its_tool_ends(view):
            self.faults.append(f"life {event.life} shows an end that its tool never makes: {view['status']}")

    def _as_its_tool_ends(self, view: View) -> bool:
        task, result, error = self.created.task_id, view.get("result", {}), view.get("error", {})
        content = result.get("structuredContent", {})
        match self.kind, view["status"]:
            case "plain", "completed":
                expected = content == {"task": task}
            case (("asking" | "resumable"), "completed"):  # what they say is compared with what was delivered
                expected = content.get("task") == task and set(content.get("answers", {})) == ALL_QUESTIONS
            case "resumable", "failed":
                expected = error.get("data") == {"reason": "resumptions"}
            case "erring", "completed":
                said = {"isError": True, "content": [{"type": "text", "text": ERRING_TEXT}]}
                expected = result == {**result, **said}
            case "failing", "failed":
                expected = error == {"code": FAILING_CODE, "message": FAILING_MESSAGE, "data": {"task": task}}
            case _:
                expected = False
        return bool(expected)

    # -- in the end ----------------------------------------------------------------------------------------

    def conclude(self, delivered: Sequence[Delivered]) -> None:
        """Nothing more will happen."""
        if self._view["status"] not in ENDED and not self._gone:
            self.faults.append(f"it never ended: it is {self._view['status']}")
        values = {one.question: one.value for one in delivered}
        sent = {answers.question: answers for answers in self._answers.values()}
        for asked, value in values.items():
            if asked not in sent or value not in sent[asked].values:
                self.faults.append(f"{asked!r} was answered with what nobody sent")
        if self._view["status"] == "completed":
            said = self._view.get("result", {}).get("structuredContent", {}).get("answers", {})
            if said != values:
                self.faults.append("its result is not made of the answers that were delivered")
            self.faults += [
                f"the acknowledged answer to {asked!r} was never delivered"
                for asked, answers in sent.items()
                if answers.acknowledged and asked not in values
            ]

    @property
    def _at_work(self) -> bool:
        return self.created.life not in self._killed

    @property
    def _expires_at_ms(self) -> int:
        return _unix_ms(self._view["createdAt"]) + int(self._view["ttlMs"])


def _differing(one: View, other: View) -> Sequence[str]:
    """Return the names of the members that differ, absent ones included."""
    return [name for name in dict.fromkeys(chain(one, other)) if _member(one, name) != _member(other, name)]


_ABSENT: Final = object()


def _member(view: View, name: str) -> Any:
    return view.get(name, _ABSENT)


def _unix_ms(timestamp: str) -> int:
    moment = datetime.fromisoformat(timestamp)
    return round(moment.timestamp() * 1000)
