"""What the work of a task is given: its way to report, to ask, and to hear of its cancellation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from mcp_tasks_adapters.toolkit.content import Answer
from mcp_tasks_adapters.toolkit.errors import ReportRejected
from mcp_tasks_adapters.toolkit.values import check_milliseconds, check_text, wire_value
from mcp_tasks_proto.effects import InputAnswer
from mcp_tasks_proto.inputs import (
    KEEP,
    Keep,
    WorkAskedInput,
    WorkCheckpointed,
    WorkInput,
    WorkProgressed,
    WorkWithdrewInput,
)

if TYPE_CHECKING:
    from mcp_tasks_adapters.driver import Event, Loop

__all__ = ["Cancellation", "Report", "TaskContext"]


class Report:
    """One thing a worker told the engine, on its way to being durable. It is its own token."""

    __slots__ = ("_event", "_next", "_rejection", "_settled")

    def __init__(self) -> None:
        self._event: Event | None = None
        self._next: Callable[[], None] | None = None
        self._rejection: str | None = None
        self._settled = False

    def settle(self, rejection: str | None) -> None:
        """The engine took it, or rejected it for this reason."""
        self._settled = True
        self._rejection = rejection
        if self._event is not None:
            self._event.set()
        if self._next is not None and rejection is None:
            self._next()

    def once_accepted(self, action: Callable[[], None]) -> None:
        """Call ``action`` when the report is durable; never, if it is rejected."""
        if not self._settled:
            self._next = action
        elif self._rejection is None:
            action()

    async def wait(self, loop: Loop) -> None:
        """Return when it is durable. Raises :class:`ReportRejected`."""
        if self._settled:
            # A store that answers at once must not let a busy worker keep the loop to itself.
            await loop.checkpoint()
        else:
            self._event = loop.event()
            await self._event.wait()
        if self._rejection is not None:
            raise ReportRejected(self._rejection)


class Cancellation:
    """Whether the task was told to stop: true in ``if task.cancelled``, and awaitable with :meth:`wait`.

    The work is cancelled by its loop all the same; this is for code that shields itself, or runs in a thread
    (reading is safe there, waiting is not).
    """

    __slots__ = ("_event", "_loop", "_told")

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._event: Event | None = None
        """For those who wait: most work never does."""
        self._told = False

    def __bool__(self) -> bool:
        return self._told

    def is_set(self) -> bool:
        """Whether the task was told to stop."""
        return self._told

    async def wait(self) -> None:
        """Return once the task was told to stop."""
        if self._event is None:
            self._event = self._loop.event()
            if self._told:
                self._event.set()
        await self._event.wait()

    def _tell(self) -> None:
        self._told = True
        if self._event is not None:
            self._event.set()


class _Question:
    """One ``request_input``, until all its answers are there."""

    __slots__ = ("answered", "answers", "names")

    def __init__(self, names: Sequence[str], answered: Event) -> None:
        self.names = names
        self.answers: dict[str, Answer] = {}
        self.answered = answered

    def take(self, name: str, answer: Answer) -> None:
        self.answers[name] = answer
        if len(self.answers) == len(self.names):
            self.answered.set()

    def in_order(self) -> dict[str, Answer]:
        return {name: self.answers[name] for name in self.names}


class TaskContext:
    """The task, as its work sees it.

    Where the tool is declared ``resumable``, the work may be run again in another process, from its
    beginning: :attr:`resumed` is true then, and :attr:`checkpointed` is what the run before saved with
    :meth:`checkpoint`. It asks its questions again as if for the first time. One with the same name and the
    same request as a question of a run before is that question: its answer comes at once, or is still waited
    for, and the caller is never asked twice. So ask in the same order, and put nothing into a request that
    differs from run to run.
    """

    def __init__(
        self,
        task_id: str,
        arguments: Mapping[str, Any],
        *,
        feed: Callable[[WorkInput], None],
        loop: Loop,
        resumption: int = 0,
        checkpointed: Any = None,
    ) -> None:
        self._task_id = task_id
        self._arguments = arguments
        self._feed = feed
        self._loop = loop
        self._resumption = resumption
        self._received: list[str] = []
        self.checkpointed = checkpointed
        """What a run before saved last; ``None`` in the first run, and when nothing was saved."""
        self._questions: dict[str, _Question] = {}
        self._asked = 0
        self._record_gone = False
        self._ended = False
        self.cancelled = Cancellation(loop)
        """Whether the task was told to stop."""

    @property
    def task_id(self) -> str:
        """The task's id."""
        return self._task_id

    @property
    def arguments(self) -> Mapping[str, Any]:
        """The arguments of the call that became this task."""
        return self._arguments

    @property
    def resumed(self) -> bool:
        """Whether the work ran before, in a process that is gone."""
        return self._resumption > 0

    async def checkpoint(self, value: Any) -> None:
        """Save where the work has got to, for the case that it is resumed; returns once that is durable.

        ``value`` is small JSON (``Limits.checkpoint_bytes``), in place of the one before: what
        :attr:`checkpointed` will be. It stands for the answers received so far as well: what is asked after
        it is new, also if it looks like a question before. Raises ``ValueError`` for what is not JSON,
        :class:`ReportRejected` when it is too large, the tool is not resumable or the task is over.
        """
        received = tuple(self._received)
        report = Report()
        checkpointed = WorkCheckpointed(
            task_id=self._task_id,
            token=report,
            value=wire_value(value),
            received=received,
            resumption=self._resumption,
        )
        self._tell(checkpointed)
        await report.wait(self._loop)
        self._received = [ask for ask in self._received if ask not in received]

    async def update(
        self,
        status_message: str | Keep | None = KEEP,
        *,
        ttl_ms: int | Keep | None = KEEP,
        poll_interval_ms: int | Keep | None = KEEP,
    ) -> None:
        """Say how it stands; returns once that is durable, or the task is over and it no longer matters.

        ``ttl_ms`` counts from the task's creation; ``None`` means unlimited, as ``None`` removes a message or
        a poll hint. Raises :class:`ReportRejected` when it was not taken, ``ValueError`` or ``TypeError`` for
        a message or times that are none.
        """
        if status_message is not KEEP:
            check_text("status_message", status_message)
        if ttl_ms is not KEEP:
            check_milliseconds("ttl_ms", ttl_ms)
        if poll_interval_ms is not KEEP:
            check_milliseconds("poll_interval_ms", poll_interval_ms)
        report = Report()
        progressed = WorkProgressed(
            task_id=self._task_id,
            token=report,
            status_message=status_message,
            ttl_ms=ttl_ms,
            poll_interval_ms=poll_interval_ms,
            resumption=self._resumption,
        )
        self._tell(progressed)
        await report.wait(self._loop)

    async def request_input(self, requests: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Answer]:
        """Ask the caller, and return all the answers by their names.

        ``requests`` maps names of your own to what :func:`elicit` and its siblings build. Several at once
        are answered in any order (INP.3). To give up waiting, cancel this call by the loop's own means, a
        timeout for example: the questions are withdrawn. Raises ``ValueError`` when ``requests`` is empty or
        not JSON, :class:`ReportRejected` when the caller may not be asked this (INP.2) or the task is over.
        """
        if not requests:
            raise ValueError("ask for at least one input")
        copied: Mapping[str, Mapping[str, Any]] = wire_value(requests)
        self._asked += 1
        ask = str(self._asked)
        question = self._questions[ask] = _Question(tuple(copied), self._loop.event())
        report = Report()
        try:
            asked = WorkAskedInput(
                task_id=self._task_id,
                token=report,
                ask=ask,
                requests=copied,
                resumption=self._resumption,
            )
            self._tell(asked)
            await report.wait(self._loop)
            await question.answered.wait()
            self._received.append(ask)
            return question.in_order()
        except ReportRejected:
            raise
        except BaseException:
            # Not before it is asked: the two reports could overtake each other on their way.
            report.once_accepted(partial(self._withdraw, ask))
            raise
        finally:
            del self._questions[ask]

    def _withdraw(self, ask: str) -> None:
        if not self._record_gone and not self._ended:
            withdrew = WorkWithdrewInput(
                task_id=self._task_id, token=Report(), ask=ask, resumption=self._resumption
            )
            self._feed(withdrew)

    def _tell(self, report: WorkInput) -> None:
        if self._ended:
            raise ReportRejected("the task has ended")
        self._feed(report)

    # -- the driver's side ---------------------------------------------------------------------------------

    def take_answers(self, answers: Sequence[InputAnswer]) -> None:
        """Hand over answers; those to questions that were given up meanwhile are dropped."""
        for answer in answers:
            question = self._questions.get(answer.ask)
            if question is not None:
                question.take(answer.name, Answer(wire_value(answer.response)))

    def told_to_stop(self, *, record_gone: bool) -> None:
        """Note the cancellation; ``record_gone``: the task has ended, or goes on, without this work."""
        self._record_gone = self._record_gone or record_gone
        self.cancelled._tell()

    def over(self) -> None:
        """The work has ended; what it left running can report nothing more."""
        self._ended = True
