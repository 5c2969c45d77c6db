"""Calls that a legacy server answers at once, and its questions on the way, as rounds of input (REQ.1).

To the engine each round is an ``input_required`` result, and what it sends with the answers goes on waiting
for the one answer of the server's. So nobody's patience but the person's counts while a question is open.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from functools import partial
from typing import Any, Final, Protocol

from attrs import define, field

from mcp_tasks_proto.errors import invalid_params, limit_reached
from mcp_tasks_proto.input_requests import unique_key
from mcp_tasks_proto.legacy.requester.channel import Answer, Channel
from mcp_tasks_proto.legacy.requester.questions import EMPTY_ANSWERS, Question, kind_of
from mcp_tasks_proto.requester.effects import WithdrawPrompt
from mcp_tasks_proto.requester.inputs import AnswerGiven, RequestFailed

__all__ = ["Calling", "PlainCall", "PlainCalls"]

STATE: Final = "2025-11-25:"
"""Begins the ``requestState`` of a round that was made here."""

Read = Callable[[int, Answer], None]
"""Takes the server's last word on a call to a request of the engine's."""


class Calling(Protocol):
    """Whoever calls the server: a requester engine, or what stands for one."""

    def call_of(self, request: int) -> Hashable | None:
        """Return the call that a request in flight carries, if it carries one."""

    def shows(self, call: Hashable, key: str) -> bool:
        """Whether this prompt of a call waits for its answer."""


@define(eq=False, repr=False, kw_only=True)
class PlainCall:
    """One of them."""

    key: Hashable | None
    """The engine's name for the call."""
    inner: int | None
    """The engine's request that waits; ``None``: a round is open."""
    began_ms: int
    outer: int = 0
    """The request that the server has."""
    read: Read
    capabilities: Mapping[str, Any]
    """What its caller declares."""
    waiting: list[Question] = field(factory=list)
    """Questions for the next round."""
    round: dict[str, Question] = field(factory=dict)
    """Questions of this one."""
    used: set[str] = field(factory=set)
    """Every key so far."""
    last_word: Answer | None = None
    """The server's, where it came while a round was open."""

    @property
    def state(self) -> str:
        """What names the call in ``requestState``; no call of another process, before or after, has it."""
        return f"{STATE}{self.outer}.{self.began_ms}"

    @property
    def kept_questions(self) -> int:
        """How many are kept for it: those of this round, and of the next."""
        return len(self.waiting) + len(self.round)


@define(eq=False, repr=False)
class PlainCalls:
    """All of them that are under way, by the name of the server's request."""

    channel: Channel
    engine: Calling
    patience_ms: int | None = None
    """How long an open round waits for its caller to come again; ``None``: the engine says when to stop."""
    guesses: bool = True
    """Whether a question whose call nobody can tell may be put to the one that has waited longest. It must
    not where calls are those of different callers."""
    _calls: dict[int, PlainCall] = field(init=False, factory=dict)

    def __len__(self) -> int:
        """How many there are."""
        return len(self._calls)

    def begin(
        self,
        inner: int,
        method: str,
        params: Mapping[str, Any],
        read: Read,
        capabilities: Mapping[str, Any],
    ) -> None:
        """Send what begins a call, if there may be another."""
        if len(self._calls) >= self.channel.settings.limits.calls:
            self.channel.refuse(inner, limit_reached("calls"))
            return
        call = PlainCall(
            key=self.engine.call_of(inner),
            inner=inner,
            began_ms=self.channel.now,
            read=read,
            capabilities=capabilities,
        )
        call.outer = self.channel.ask(inner, method, params, partial(self._answered, call))
        self._calls[call.outer] = call

    def owner(self, request: int, *, of_task: bool) -> PlainCall | None:
        """Return the call on whose stream something came, or the oldest one, where that is not known.

        ``of_task``: it names a task, though none that is followed.
        """
        waiting = [call for call in self._calls.values() if self.channel.has(call.outer)]
        untied = not of_task and self.channel.is_nobodys(request)
        certain = self.guesses or (untied and len(waiting) == 1)
        return self._calls.get(request) or (waiting[0] if waiting and certain else None)

    # -- rounds ------------------------------------------------------------------------------------------

    def ask(self, call: PlainCall, question: Question) -> None:
        """The server asks something on the way."""
        call.waiting.append(question)
        self._open_round(call)

    def _open_round(self, call: PlainCall) -> None:
        call.waiting = [question for question in call.waiting if not question.over]
        if call.inner is None or not call.waiting:
            return
        call.round = {}
        for question in call.waiting:
            key = unique_key(kind_of(question.request), call.used)
            call.used.add(key)
            call.round[key] = question
        call.waiting = []
        inner, call.inner = call.inner, None
        self.channel.serve(call.outer, None)
        if self.patience_ms is not None:
            self.channel.timers.set(("round", call.outer), self.channel.now + self.patience_ms)
        asked = {key: question.request for key, question in call.round.items()}
        result = {
            "resultType": "input_required",
            "inputRequests": asked,
            "requestState": call.state,
        }
        self.channel.reply(inner, result)

    def go_on(self, inner: int, params: Mapping[str, Any]) -> bool:
        """Take the answers of a round; whether these params are of one."""
        state = params.get("requestState")
        if not isinstance(state, str) or not state.startswith(STATE):
            return False
        call = next((call for call in self._calls.values() if state == call.state), None)
        if call is None or call.inner is not None:
            lost, answered = "the call of this round is over, or was lost", "this round was answered before"
            self.channel.refuse(inner, invalid_params(lost if call is None else answered))
            return True
        call.inner = inner
        self.channel.timers.clear(("round", call.outer))
        if call.last_word is not None:
            self._end(call, call.last_word)
            return True
        self.channel.serve(call.outer, inner)
        answers, asked, call.round = params.get("inputResponses", {}), call.round, {}
        # What is not answered is asked again, unless it is over.
        call.waiting += [question for key, question in asked.items() if key not in answers]
        for key, question in asked.items():
            if key in answers and question.awaits_person:
                self._reply(call, question, answers[key])
        if call.outer in self._calls:  # an answer that does not get there ends it
            self._open_round(call)
        return True

    def answered(self, call: Hashable, key: str, response: Mapping[str, Any]) -> None:
        """Somebody has answered one question of a round, whose others may be open for long.

        To the server they are single requests: this one is answered now (LEG.8, LEG.10).
        """
        for one in self._calls.values():
            question = one.round.get(key) if one.key == call else None
            if question is not None and question.awaits_person:
                self._reply(one, question, response)

    def _reply(self, call: PlainCall, question: Question, response: Mapping[str, Any]) -> None:
        question.response = response
        question.reply(response, partial(self._delivered, call))

    def _delivered(self, call: PlainCall, got_there: bool) -> None:
        """An answer that does not get there leaves the server waiting for ever."""
        if got_there or call.outer not in self._calls:
            return
        failure = RequestFailed(call.outer, "the answer to the server's question did not reach it")
        self.channel.stop(call.outer)
        self._answered(call, Answer(failure, None))

    # -- ends ----------------------------------------------------------------------------------------------

    def _answered(self, call: PlainCall, answer: Answer) -> None:
        """The server's last word. Questions that are still on show are moot."""
        for question in (*call.waiting, *call.round.values()):
            question.abandon()
        if call.inner is not None:
            self._end(call, answer)
            return
        call.last_word = answer
        for question in call.round.values():
            self.withdraw(call, question)

    def withdraw(self, call: PlainCall, question: Question) -> None:
        """Nobody waits for the answer to a question any more."""
        question.over = True
        for key, one in call.round.items():
            if one is question and self.engine.shows(call.key, key):
                self.channel.out.append(WithdrawPrompt(call.key, key))
                self.channel.give(AnswerGiven(call.key, key, EMPTY_ANSWERS[question.request["method"]]))

    def _end(self, call: PlainCall, answer: Answer) -> None:
        del self._calls[call.outer]
        assert call.inner is not None
        call.read(call.inner, answer)

    def settled(self, key: Hashable) -> None:
        """The engine's call is over, be it that the server has not answered."""
        for call in [call for call in self._calls.values() if call.key == key]:
            self._give_up(call)

    def stopped(self, inner: int) -> None:
        """The engine has given a request up, and its call with it."""
        for call in [call for call in self._calls.values() if call.inner == inner]:
            self._give_up(call)

    def round_due(self, outer: int) -> None:
        """Nobody has come again with the answers of a round."""
        self._give_up(self._calls[outer])

    def _give_up(self, call: PlainCall) -> None:
        del self._calls[call.outer]
        self.channel.stop(call.outer)
        for question in (*call.waiting, *call.round.values()):
            question.abandon()

    def find(self, message_id: str | int) -> tuple[PlainCall, Question] | None:
        """Return the question that the server may take back by the id of its request, and whose it is."""
        for call in self._calls.values():
            for question in (*call.waiting, *call.round.values()):
                if question.message_id == message_id and question.can_be_taken_back:
                    return call, question
        return None
