"""How checks ask a store, and what they expect of its answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar

from attrs import frozen

from mcp_tasks_proto.effects import Delete, FindExpired, ListTasks, Load, Quota, Save, StoreEffect
from mcp_tasks_proto.inputs import (
    ExpiredFound,
    Loaded,
    RecordChanged,
    RecordRemoved,
    SaveConflict,
    Saved,
    SaveRefused,
    StoreInput,
    TasksListed,
    WorkLost,
)
from mcp_tasks_proto.records import TaskRecord
from mcp_tasks_proto.testing.store import DictStore

__all__ = ["Ask", "Asker", "BrokenPromise", "Check", "News", "Nodes", "StoreEffect", "compare", "expect"]

Ask = Callable[[Sequence[StoreEffect]], Sequence[StoreInput]]
"""Put these effects to the store, all before its first answer, and return the answers in the same order."""

News = RecordChanged | RecordRemoved | WorkLost


class Nodes(Protocol):
    """Two nodes over the same records, which are none at first."""

    @property
    def here_name(self) -> str:
        """The node name of the first."""

    def here(self, effects: Sequence[StoreEffect]) -> Sequence[StoreInput]:
        """Ask through the first node."""

    def there(self, effects: Sequence[StoreEffect]) -> Sequence[StoreInput]:
        """Ask through the second node."""

    def heard(self) -> Sequence[News]:
        """Return what the second node has heard since this was called last.

        It watches all task ids from the beginning. Wait until what happened by now must have reached it.
        """

    def lose(self) -> None:
        """Let the first node end as in a crash: without a word, and with what it holds released."""


class BrokenPromise(AssertionError):  # noqa: N818 - named for what happened, as StopIteration is
    """A store has answered what it must not; the text names the rule."""


_Subject = TypeVar("_Subject")


@frozen
class Check(Generic[_Subject]):
    """One promise. Call it with the store, or the nodes; it raises :class:`BrokenPromise`."""

    name: str
    promise: str
    """In a sentence that names its rule."""
    _run: Callable[[_Subject], None]

    def __call__(self, subject: _Subject) -> None:
        self._run(subject)

    def __str__(self) -> str:
        return self.name


def expect(promise: str, wanted: object, got: object) -> None:
    """Raise :class:`BrokenPromise` unless the answer is the one wanted."""
    if got != wanted:
        raise BrokenPromise(f"{promise}\n  expected: {wanted!r}\n  answered: {got!r}")


@frozen
class Asker:
    """Asks a store, and expects answers of it."""

    ask: Ask
    promise: str

    def all(self, effects: Sequence[StoreEffect]) -> Sequence[StoreInput]:
        """Ask all of these at once; each must be answered under its own token."""
        answers = self.ask(effects)
        if [isinstance(answer, StoreInput) for answer in answers] != [True] * len(effects):
            expect("Asked a list of effects, it returns the list of their answers.", [*effects], answers)
        asked = [effect.token for effect in effects]
        tokens = [getattr(answer, "token", None) for answer in answers]
        expect("An answer has the token of its question, untouched.", asked, tokens)
        return answers

    def one(self, effect: StoreEffect) -> StoreInput:
        """Ask one thing."""
        return self.all([effect])[0]

    def expect(self, effect: StoreEffect, answer: StoreInput) -> None:
        """Ask one thing that has only one right answer."""
        expect(self.promise, answer, self.one(effect))

    def save(self, record: TaskRecord, expected: int | None = None, quota: Quota | None = None) -> None:
        """Save what must be taken."""
        self.expect(Save(record, expected, "save", quota), Saved("save"))

    def conflict(self, record: TaskRecord, expected: int | None, current: TaskRecord | None) -> None:
        """Save what must meet a conflict."""
        self.expect(Save(record, expected, "save"), SaveConflict("save", current))

    def refused(self, record: TaskRecord, quota: Quota, limit: str, expected: int | None = None) -> None:
        """Save what must be refused."""
        self.expect(Save(record, expected, "save", quota), SaveRefused("save", limit))

    def load(self, task_id: str, record: TaskRecord | None) -> None:
        """Load what must be this."""
        self.expect(Load(task_id, "load"), Loaded("load", record))

    def delete(self, task_id: str, expected: int) -> None:
        """Delete what must be there."""
        self.expect(Delete(task_id, expected, "delete"), Saved("delete"))

    def find(self, now: int, limit: int, found: Sequence[str], next_expiry_ms: int | None) -> None:
        """Find these expired records, in this order."""
        answer = self.one(FindExpired(now, limit, "find"))
        got: object = answer
        if isinstance(answer, ExpiredFound):
            got = [record.task_id for record in answer.records], answer.next_expiry_ms
        expect(self.promise, (list(found), next_expiry_ms), got)

    def list_tasks(
        self, principal: str, after: str | None, limit: int, found: Sequence[TaskRecord], *, more: bool
    ) -> None:
        """List these records, in this order."""
        answer = self.one(ListTasks(principal=principal, after=after, limit=limit, token="list"))
        got: object = answer
        if isinstance(answer, TasksListed):
            got = [*answer.records], answer.more
        expect(self.promise, ([*found], more), got)


def compare(ask: Ask, effects: Sequence[StoreEffect]) -> None:
    """Put ``effects`` to a store, one after another; its answers must be those of a :class:`DictStore`.

    Which of two records that expire at the same moment is found first is open. Raises
    :class:`BrokenPromise`.
    """
    obvious, store = DictStore(), Asker(ask, "")
    for number, effect in enumerate(effects, start=1):
        wanted, got = obvious.answer(effect), store.one(effect)
        if isinstance(wanted, ExpiredFound) and isinstance(got, ExpiredFound):
            said = [(one.task_id, one.version, one.expires_at_ms) for one in got.records]
            kept = {(one.task_id, one.version, one.expires_at_ms) for one in obvious.records.values()}
            expect(f"Effect {number}: what is found is there.", set(), set(said) - kept)
            expect(f"Effect {number}: each is found once.", len(set(said)), len(said))
            expect(f"Effect {number}: {effect!r}", _expiries(wanted), _expiries(got))
        elif isinstance(wanted, TasksListed) and isinstance(got, TasksListed):
            expect(f"Effect {number}: {effect!r}", _listed(wanted), _listed(got))
        else:
            expect(f"Effect {number}: {effect!r}", wanted, got)


def _listed(answer: TasksListed) -> tuple[list[TaskRecord], bool]:
    return [*answer.records], answer.more


def _expiries(answer: ExpiredFound) -> tuple[list[int | None], int | None]:
    return [record.expires_at_ms for record in answer.records], answer.next_expiry_ms
