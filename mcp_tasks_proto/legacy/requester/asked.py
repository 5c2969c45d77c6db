"""What a legacy server asks of its client: whose question it is, and what nobody has to be asked for."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from attrs import define

from mcp_tasks_proto.errors import (
    ErrorObject,
    internal_error,
    invalid_params,
    limit_reached,
    method_not_found,
)
from mcp_tasks_proto.legacy.messages import ServerAsked
from mcp_tasks_proto.legacy.requester.calls import PlainCall, PlainCalls
from mcp_tasks_proto.legacy.requester.channel import Channel, Session
from mcp_tasks_proto.legacy.requester.questions import QUESTIONS, Delivered, Question, kind_of
from mcp_tasks_proto.legacy.requester.reading import asks_for_task, question_in, related_task
from mcp_tasks_proto.legacy.requester.receiver import RECEIVER_METHODS, Receiver
from mcp_tasks_proto.legacy.requester.tasks import Followed, FollowedTasks
from mcp_tasks_proto.legacy.translation import with_related_task
from mcp_tasks_proto.legacy.vocabulary import PING
from mcp_tasks_proto.requester.rounds import answerable
from mcp_tasks_proto.wire.jsonrpc import Request, parse_message

__all__ = ["Reception"]

Owner = Followed | PlainCall

_NOBODY: Final = "nobody here answers this"


@define(eq=False, repr=False, kw_only=True)
class Reception:
    """Where the server's requests arrive."""

    channel: Channel
    calls: PlainCalls
    tasks: FollowedTasks
    receiver: Receiver

    def take(self, asked: ServerAsked) -> None:
        """Take in a request of the server's."""
        request = parse_message(asked.message)
        if not isinstance(request, Request):
            return
        if request.method == PING:
            self.channel.respond(request.id, {})
        elif request.method in RECEIVER_METHODS and self._receives():
            self.receiver.handle(request.id, request.method, request.params)
        elif request.method in QUESTIONS:
            self._take_question(asked, request)
        else:
            self.channel.respond(request.id, method_not_found(request.method))

    def _receives(self) -> bool:
        """Whether the server was told that it can make tasks here (LEG.10)."""
        settings = self.channel.settings
        return settings.tasks and any(name in settings.capabilities for name in ("sampling", "elicitation"))

    def _take_question(self, asked: ServerAsked, request: Request) -> None:
        owner = self._owner(asked.request, request)
        question = question_in(request.method, request.params)
        error = self._refusal(question, owner)
        as_task = asks_for_task(request.params) and request.method != "roots/list" and self._receives()
        if error is None and as_task:
            error = self.receiver.refuses(asked.new_id)
        if error is not None or owner is None:
            self.channel.respond(request.id, error or internal_error(_NOBODY))
        elif as_task:
            self._receive(asked, request, question, owner)
        else:
            reply = partial(self._answer, self.channel.session, request.id, related_task(request.params))
            self._put(owner, Question(request=question, message_id=request.id, reply=reply))

    def _owner(self, stream: int, request: Request) -> Owner | None:
        """Return the task or the call that a question is part of."""
        task_id = related_task(request.params)
        return self.tasks.get(task_id) or self.calls.owner(stream, of_task=task_id is not None)

    def _refusal(self, question: Mapping[str, Any], owner: Owner | None) -> ErrorObject | None:
        """Say why a question is not put to anybody."""
        settings = self.channel.settings
        own = None if owner is None else owner.capabilities
        declared = settings.capabilities if own is None else own
        if kind_of(question) not in declared:
            return method_not_found(str(question["method"]))
        if not answerable(question, declared):
            return invalid_params("the request is not as it should be, or of a mode that was not declared")
        if owner is not None and owner.kept_questions >= settings.limits.ledger_keys:
            return limit_reached("ledger_keys")
        return None

    def _put(self, owner: Owner, question: Question) -> None:
        if isinstance(owner, Followed):
            self.tasks.ask(owner, question)
        else:
            self.calls.ask(owner, question)

    def _answer(
        self,
        session: Session | None,
        request_id: str | int,
        task_id: str | None,
        response: Mapping[str, Any],
        delivered: Delivered,
    ) -> None:
        """Answer a question in its session; what belongs to a task says so.

        In the next one the id may be another question's. Who asks again there gets the answer then.
        """
        if session is not self.channel.session:
            delivered(True)
            return
        result = response if task_id is None else with_related_task(response, task_id)
        self.channel.respond(request_id, result, delivered)

    def _receive(
        self, asked: ServerAsked, request: Request, question: Mapping[str, Any], owner: Owner
    ) -> None:
        """Make a task of a question, and put it to somebody."""

        def reply(response: Mapping[str, Any], delivered: Delivered) -> None:
            self.receiver.answered(asked.new_id, response)
            delivered(True)

        put = Question(
            request=question,
            message_id=request.id,
            reply=reply,
            drop=partial(self.receiver.failed, asked.new_id, _NOBODY),
        )
        withdraw = partial(self._withdraw, owner, put)
        self.receiver.create(request.id, request.method, request.params, asked.new_id, withdraw)
        self._put(owner, put)

    def _withdraw(self, owner: Owner, question: Question) -> None:
        if isinstance(owner, Followed):
            self.tasks.withdraw(owner, question.message_id)
        else:
            self.calls.withdraw(owner, question)

    def cancelled(self, request_id: Any) -> None:
        """The server no longer waits for the answer to one of its requests."""
        if found := self.calls.find(request_id):
            self.calls.withdraw(*found)
        elif question := self.tasks.find(request_id):
            question.over = True
