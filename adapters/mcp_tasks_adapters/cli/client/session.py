"""What the client commands do, on whichever loop."""

from __future__ import annotations

import shlex
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any, Final

from attrs import define, evolve, field, frozen

from mcp_tasks_adapters.cli.client.arguments import InputError
from mcp_tasks_adapters.cli.client.asking import Asker
from mcp_tasks_adapters.cli.client.exit_codes import ExitCode, exit_code
from mcp_tasks_adapters.cli.client.harmless import one_line
from mcp_tasks_adapters.cli.client.loops import Loop
from mcp_tasks_adapters.cli.client.place import Place
from mcp_tasks_adapters.cli.client.polls import PollTroubles
from mcp_tasks_adapters.cli.client.prepared import PreparedAnswers, response_from
from mcp_tasks_adapters.cli.client.progress import Watched
from mcp_tasks_adapters.cli.client.questions import headline
from mcp_tasks_adapters.cli.client.reference_file import ReferenceFile
from mcp_tasks_adapters.cli.client.screen import Remains, Screen
from mcp_tasks_adapters.client import (
    AnswerFunction,
    Call,
    Cancelled,
    Client,
    Completed,
    Expired,
    Failed,
    NoResultError,
    ObservationLost,
    Outcome,
    TaskView,
    TraceEntry,
)
from mcp_tasks_adapters.client.driver import TraceFunction
from mcp_tasks_adapters.clock import unix_ms
from mcp_tasks_adapters.toolkit.server import RecordFunction
from mcp_tasks_proto.errors import ErrorCode
from mcp_tasks_proto.input_requests import check_requests, check_response
from mcp_tasks_proto.vocabulary import LOG_LEVEL

__all__ = ["Answering", "Session", "TroubleError"]


QUESTIONS_ANNOUNCED: Final = 100
"""Of one task; it may ask for ever."""

Show = Callable[[], None]
"""Shows the answer to a request."""


class TroubleError(Exception):
    """The command cannot go on, through no fault of what was typed; the message says why."""


@frozen(kw_only=True)
class Answering:
    """Who answers questions."""

    prepared: PreparedAnswers
    somebody_is_there: bool


@define(eq=False, kw_only=True)
class Session:
    """One run of a client command."""

    place: Place
    screen: Screen
    on_trace: TraceFunction | None = None
    record: RecordFunction | None = None
    save: ReferenceFile | None = None
    """Where the reference of the task is kept."""
    timeout: float | None = None
    """How long to wait for an outcome, in seconds."""
    _open: dict[str, Remains] = field(init=False, factory=dict)
    """What is waited for, by name."""
    _tasks: dict[str, Watched] = field(init=False, factory=dict)
    """The tasks that are waited for, by id."""
    _troubles: PollTroubles = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._troubles = PollTroubles(self._poll_fared)

    # -- single requests -----------------------------------------------------------------------------------

    async def tools(self, loop: Loop) -> ExitCode:
        """List the tools."""

        async def ask(client: Client) -> Show:
            return partial(self.screen.tools, await client.list_tools())

        return await self._ask(loop, ask)

    async def get(self, task_id: str, loop: Loop) -> ExitCode:
        """Show how a task stands."""

        async def ask(client: Client) -> Show:
            return partial(self.screen.task, await client.get_task(task_id))

        return await self._ask(loop, ask, task_id)

    async def cancel(self, task_id: str, loop: Loop) -> ExitCode:
        """Tell the server that a task's result is not wanted any more."""

        async def ask(client: Client) -> Show:
            await client.cancel_task(task_id)
            sentence = "The server was told. The task may take a moment to stop, or be done before it can."
            return partial(self.screen.acknowledged, task_id, sentence)

        return await self._ask(loop, ask, task_id)

    async def update(self, task_id: str, answers: Mapping[str, Any], loop: Loop) -> ExitCode:
        """Answer a task's questions. Raises :class:`InputError` for answers that do not fit them."""

        async def ask(client: Client) -> Show:
            view = await client.get_task(task_id)
            responses = _responses(answers, view.input_requests or {})
            await client.update_task(task_id, responses)
            sentence = f"The server has the answers to {_names(responses)}."
            return partial(self.screen.acknowledged, task_id, sentence)

        return await self._ask(loop, ask, task_id)

    async def _ask(
        self, loop: Loop, ask: Callable[[Client], Awaitable[Show]], task_id: str | None = None
    ) -> ExitCode:
        """Have something asked, and what comes of it shown, once nothing moves on the screen any more."""
        watched = Watched(
            name=one_line(task_id or self.place.endpoint), since_ms=unix_ms(), waiting="asking the server"
        )
        async with self._panel(loop), self._connect(loop) as client:
            self.screen.panel.show(watched)
            try:
                show, code = await ask(client), ExitCode.COMPLETED
            except NoResultError as error:
                outcome = error.outcome if task_id is None else _of_task(error.outcome)
                code = exit_code(outcome)
                show = partial(self.screen.outcome, watched, outcome, code, Remains(task_id=task_id))
        show()
        return code

    # -- calls and tasks -----------------------------------------------------------------------------------

    async def call(
        self, tool: str, arguments: Mapping[str, Any], answering: Answering, loop: Loop
    ) -> ExitCode:
        """Call a tool and wait for what comes of it.

        Raises :class:`InputError` for an answer that does not fit, and :class:`TroubleError`.
        """
        watched = Watched(name=one_line(tool), since_ms=unix_ms())

        async def begin(client: Client) -> Call:
            return await client.call_tool(
                tool,
                arguments,
                meta={LOG_LEVEL: "info"},
                timeout=self.timeout,
                on_reference=partial(self._keep, watched),
                on_notification=partial(self._notified, watched),
            )

        return await self._wait_for(watched, begin, answering, loop)

    async def resume(self, reference: Mapping[str, Any], answering: Answering, loop: Loop) -> ExitCode:
        """Go on with a task. Raises as :meth:`call` does."""
        task_id, tool = one_line(reference["taskId"]), one_line(reference["tool"])
        watched = Watched(name=tool or task_id, since_ms=reference["createdMs"], waiting="asking the server")
        self._note(watched, reference["taskId"])

        async def begin(client: Client) -> Call:
            return client.resume(reference, timeout=self.timeout, on_reference=partial(self._keep, watched))

        return await self._wait_for(watched, begin, answering, loop)

    async def take_over(self, task_id: str, answering: Answering, loop: Loop) -> ExitCode:
        """Go on with a task of which only the id is known. Raises as :meth:`call` does."""
        watched = Watched(name=one_line(task_id), since_ms=unix_ms(), waiting="asking the server")
        self._note(watched, task_id)

        async def begin(client: Client) -> Call:
            return client.watch(task_id, timeout=self.timeout)

        return await self._wait_for(watched, begin, answering, loop)

    async def watch(self, task_ids: Sequence[str], loop: Loop) -> ExitCode:
        """Watch tasks to their ends, and answer none of their questions.

        The exit code is that of the first one, in the order given, that is not completed.
        """
        async with self._panel(loop), self._connect(loop) as client:

            async def watch_one(task_id: str) -> ExitCode:
                name = one_line(task_id)
                watched = Watched(name=name, since_ms=unix_ms(), waiting="asking the server")
                call = client.watch(task_id, timeout=self.timeout)
                self._note(watched, task_id)
                return await self._follow(watched, call, asks_here=False)

            codes = await loop.gather([partial(watch_one, task_id) for task_id in dict.fromkeys(task_ids)])
        return next((code for code in codes if code is not ExitCode.COMPLETED), ExitCode.COMPLETED)

    def left(self, code: ExitCode) -> None:
        """Say what becomes of what was waited for, when the command ends before it."""
        self.screen.left(code, list(self._open.values()))

    async def _wait_for(
        self,
        watched: Watched,
        begin: Callable[[Client], Awaitable[Call]],
        answering: Answering,
        loop: Loop,
    ) -> ExitCode:
        begun: list[Call] = []
        asker = Asker(
            loop,
            self.screen,
            answering.prepared,
            somebody_is_there=answering.somebody_is_there,
            stays_open=lambda: any(isinstance(call.outcome, ObservationLost) for call in begun),
        )
        self._open.setdefault(watched.name, self._remains(None))
        async with self._panel(loop), self._connect(loop, answer=asker.answer) as client:
            self.screen.panel.show(watched)
            begun.append(await begin(client))
            code = await self._follow(watched, begun[0], asks_here=True)
        if unused := answering.prepared.unused:
            self.screen.note(f"Nobody asked for the prepared answers to {_names(unused)}.")
        return code

    async def _follow(self, watched: Watched, call: Call, *, asks_here: bool) -> ExitCode:
        """Show what becomes of a call, to its end. ``asks_here``: its questions are put to who is here."""
        watched.next_poll_ms = lambda: call.next_poll_ms
        announced: set[str] = set()
        async for view in call.updates():
            watched.view = view
            self.screen.view(watched, view)
            self.screen.panel.show(watched)
            self._announce(view, announced, (call.reference() or {}).get("keys", {}) if asks_here else {})
        outcome = await call.settle()
        self.screen.panel.drop(watched)
        self._tasks.pop(call.task_id or "", None)
        remains = self._open.pop(watched.name, Remains())
        over = _is_over(call, outcome)
        code = exit_code(outcome)
        self.screen.outcome(watched, outcome, code, evolve(remains, advice=()) if over else remains)
        if isinstance(outcome, Failed) and outcome.code == ErrorCode.INVALID_PARAMS and call.task_id is None:
            self.screen.note(f"  Its tools, and what they take:  mcp-tasks tools {self.place.typed}")
        if over and self.save is not None:
            self._remove(self.save)
        return code

    def _announce(self, view: TaskView, announced: set[str], ledger: Mapping[str, Any]) -> None:
        """Say what a task asks that is not asked here, and how it is answered; once.

        ``ledger``: the keys that are, or were. What was answered is not asked again (REQ.4).
        """
        task = self.place.words(view.task_id)
        for key, request in (view.input_requests or {}).items():
            state = ledger.get(key, {}).get("state")
            if key in announced or len(announced) >= QUESTIONS_ANNOUNCED or state in ("shown", "answered"):
                continue
            announced.add(key)
            again = "" if state is None else ", which was answered here"
            self.screen.note(f"{one_line(view.task_id)} asks {one_line(key)!r}{again}: {headline(request)}")
            proper = not check_requests({key: request}, from_peer=True)
            if state is None and proper and request["method"] == "elicitation/create":
                self.screen.note(f"  To answer: mcp-tasks resume {task}")
            else:
                self.screen.note(f"  To answer: mcp-tasks update {task} ANSWERS")

    # -- what is left --------------------------------------------------------------------------------------

    def _keep(self, watched: Watched, reference: Mapping[str, Any]) -> None:
        """Save the reference before anything is sent that depends on it (REQ.6)."""
        if self.save is not None:
            try:
                self.save.save(reference)
            except OSError as error:
                raise TroubleError(f"Cannot write {self.save.path}: {error.strerror}.") from error
        self._note(watched, reference["taskId"])

    def _note(self, watched: Watched, task_id: str) -> None:
        self._tasks[task_id] = watched
        self._open[watched.name] = self._remains(task_id)

    def _traced(self, entry: TraceEntry) -> None:
        if self.on_trace is not None:
            self.on_trace(entry)
        self._troubles.take(entry)

    def _poll_fared(self, task_id: str, trouble: str) -> None:
        watched = self._tasks.get(task_id)
        if watched is not None:
            watched.trouble = trouble  # the panel shows it once the next poll is planned

    def _notified(self, watched: Watched, method: str, params: Mapping[str, Any]) -> None:
        if method == "notifications/progress":
            watched.note = _progress(params)
            self.screen.panel.show(watched)
        self.screen.notification(watched, method, params)

    def _remains(self, task_id: str | None) -> Remains:
        if task_id is None:
            return Remains(advice=["The call had not become a task: there is nothing to go on with."])
        if self.place.is_started_here:
            advice = ["Its server was started by this command, and has ended with it."]
            if self.save is not None:
                resume = f"mcp-tasks resume {self.place.typed} {shlex.quote(str(self.save.path))}"
                advice.append(f"If it keeps its tasks:  {resume}")
            return Remains(task_id=task_id, advice=advice)
        task = self.place.words(task_id)
        how = task if self.save is None else shlex.quote(str(self.save.path))
        advice = [
            "The task goes on.",
            f"  To go on with it:  mcp-tasks resume {how}",
            f"  To cancel it:      mcp-tasks cancel {task}",
        ]
        return Remains(task_id=task_id, advice=advice)

    def _remove(self, save: ReferenceFile) -> None:
        try:
            save.remove()
        except OSError as error:
            self.screen.note(f"The task is over, but {save.path} could not be removed: {error.strerror}.")

    # -- the server and the screen -------------------------------------------------------------------------

    @asynccontextmanager
    async def _connect(self, loop: Loop, answer: AnswerFunction | None = None) -> AsyncIterator[Client]:
        """Give a client. Raises :class:`TroubleError` when the server cannot be started."""
        async with AsyncExitStack() as stack:
            stderr = stack.enter_context(self.screen.server_stderr()) if self.place.is_started_here else None
            connecting = self.place.connect(
                loop, answer=answer, on_trace=self._traced, record=self.record, stderr=stderr
            )
            try:
                client = await stack.enter_async_context(connecting)
            except OSError as error:
                raise TroubleError(
                    f"The server cannot be started: {error.strerror}: {error.filename}."
                ) from error
            yield client

    @asynccontextmanager
    async def _panel(self, loop: Loop) -> AsyncIterator[None]:
        """Keep the panel moving, and clear it away at the end, however that comes."""
        panel = self.screen.panel

        async def move() -> None:
            while True:
                await loop.sleep(panel.interval_s)
                panel.tick()

        try:
            async with loop.alongside(move):
                yield
        finally:
            panel.close()


def _responses(
    answers: Mapping[str, Any], questions: Mapping[str, Mapping[str, Any]]
) -> dict[str, Mapping[str, Any]]:
    """Return the responses that answers stand for. Raises :class:`InputError` where one does not fit."""
    responses = {}
    for key, answer in answers.items():
        if key not in questions:
            open_ones = f"it asks {_names(questions)}" if questions else "it asks nothing at present"
            raise InputError(f"The task does not ask {key!r}: {open_ones}.")
        question = questions[key]
        if problem := check_requests({key: question}, from_peer=True):
            raise InputError(f"The server's question {key!r} is malformed, and has no answer: {problem}.")
        responses[key] = response_from(answer, question)
        if problem := check_response(question, responses[key]):
            raise InputError(f"The answer to {key!r} does not fit: {problem}.")
    return responses


def _names(keys: Iterable[str]) -> str:
    return ", ".join(map(one_line, keys)) or "nothing"


def _of_task(outcome: Outcome) -> Outcome:
    """Return the outcome of a request about a task: invalid params mean that there is none (GET.2)."""
    if isinstance(outcome, Failed) and outcome.code == ErrorCode.INVALID_PARAMS:
        return Expired()
    return outcome


def _is_over(call: Call, outcome: Outcome) -> bool:
    """Whether nothing more can come of it."""
    if isinstance(outcome, Failed):
        return call.task_id is None or (call.view is not None and call.view.status.terminal)
    if isinstance(outcome, Expired):
        return not outcome.unheard
    return isinstance(outcome, Completed | Cancelled)


def _progress(params: Mapping[str, Any]) -> str:
    """Return what ``notifications/progress`` says, in a few words."""
    done, total, message = params.get("progress"), params.get("total"), params.get("message")
    amount = f"{done}/{total}" if total is not None else f"{done}"
    return f"{amount} {message}" if isinstance(message, str) else amount
