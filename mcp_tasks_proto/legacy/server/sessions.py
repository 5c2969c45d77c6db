"""A session and what is open in it: requests of its client, and questions to it (LEG.2, LEG.8)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from itertools import count
from typing import Any

from attrs import define, field, frozen

from mcp_tasks_proto.effects import Effect, Reply, Send
from mcp_tasks_proto.errors import ErrorObject
from mcp_tasks_proto.legacy.server.events import EventLog, Place, event_id
from mcp_tasks_proto.legacy.server.inner import Caller, InnerExchange
from mcp_tasks_proto.legacy.translation import legacy_error, plain_result, with_related_task
from mcp_tasks_proto.legacy.vocabulary import CANCELLED
from mcp_tasks_proto.subscriptions import Outbox
from mcp_tasks_proto.wire.jsonrpc import (
    Request,
    Response,
    error_message,
    notification_message,
    request_message,
    result_message,
)

__all__ = ["ClientRequest", "Outlet", "OwnStream", "Question", "Session"]


@define(eq=False, repr=False, kw_only=True)
class Outlet:
    """Where messages for one request go: an exchange, while its connection lasts, and the session's log."""

    number: int
    exchange: Hashable
    """``None``: the connection was lost; over HTTP that does not cancel the request."""
    can_stream: bool
    """Whether the client takes more than the one answer."""
    log: EventLog | None
    """``None`` where nothing can be taken up again: on stdio."""
    out: list[Effect]
    streaming: bool = field(init=False, default=False)
    """Whether anything was sent on it before the last message."""
    _sent: int = field(init=False, default=0)

    def send(self, message: dict[str, Any]) -> bool:
        """Send a message on the stream; return whether the host will say ``StreamReady``."""
        self.streaming = True
        name = self._logged(message, last=False)
        if self.exchange is None:
            return False
        self.out.append(Send(self.exchange, message, name))
        return True

    def end(self, message: dict[str, Any], http_status: int) -> None:
        """Send the last message."""
        name = None
        if self.streaming:
            name = self._logged(message, last=True)
        if self.exchange is not None:
            self.out.append(Reply(self.exchange, message, http_status, event_id=name))

    def _logged(self, message: dict[str, Any], *, last: bool) -> str | None:
        if self.log is None:
            return None
        self._sent += 1
        place = Place(self.number, self._sent)
        self.log.add(place, message, last=last)
        return event_id(place)


Answered = Callable[[Response, Callable[[], None]], None]
"""Takes an answer, and what to call once it need not come again."""


@frozen(eq=False)
class Question:
    """A request of this server's that the client has not answered."""

    number: int
    answered: Answered


@define(eq=False, repr=False, kw_only=True)
class ClientRequest:
    """A request of the client's that is owed an answer."""

    session: Session
    request: Request
    outlet: Outlet
    caller: Caller
    inner: InnerExchange | None = None
    """The exchange with the engine that its answer waits for, or whose news it shows."""
    asks: dict[str, Question] = field(factory=dict)
    """What was asked on its stream and is not answered, by the name or key of the input request."""
    survives: bool = False
    """Whether it goes on when its connection is lost, as a call does over HTTP."""
    ended: Callable[[], None] | None = None
    """To be called when it ends, however that comes about."""
    over: bool = False

    def succeed(self, result: Mapping[str, Any]) -> None:
        """Answer with a result."""
        self._end(result_message(self.request.id, result), 200)

    def fail(self, error: ErrorObject, http_status: int = 200) -> None:
        """Answer with an error. Those of this era's methods come with HTTP 200: 404 would end the session."""
        self._end(error_message(self.request.id, error), http_status)

    def answer(self, message: Mapping[str, Any], http_status: int) -> None:
        """Answer as the engine did."""
        if "error" in message:
            body = {"jsonrpc": "2.0", "id": self.request.id, "error": legacy_error(message["error"])}
            self._end(body, 503 if http_status == 503 else 200)
        else:
            self.succeed(plain_result(message["result"]))

    def drop(self) -> None:
        """End without an answer."""
        self.over = True
        for name in list(self.asks):
            self.withdraw(name)
        self.session.forget(self)
        if self.ended is not None:
            self.ended()

    def _end(self, message: dict[str, Any], http_status: int) -> None:
        if self.over:
            return  # its client has left: what it waited for comes to nobody
        self.drop()
        self.outlet.end(message, http_status)

    # -- asking the client -----------------------------------------------------------------------------

    def ask(
        self,
        name: str,
        request: Mapping[str, Any],
        answered: Answered,
        *,
        task_id: str | None = None,
    ) -> None:
        """Ask the client on this request's own stream (LEG.8)."""
        number = self.session.next_question()
        params = dict(request.get("params", {}))
        if params.get("mode") == "url":
            params.setdefault("elicitationId", f"elicitation-{number}")
        if task_id is not None:
            params = with_related_task(params, task_id)
        question = Question(number, answered)
        self.asks[name] = question
        self.session.questions[number] = question
        self.outlet.send(request_message(number, request["method"], params))

    def withdraw(self, name: str) -> None:
        """Take a question back; the client may take it off the screen."""
        number = self.asks.pop(name).number
        del self.session.questions[number]
        params = {"requestId": number, "reason": "The answer is no longer needed."}
        self.outlet.send(notification_message(CANCELLED, params))


@define(eq=False, repr=False)
class OwnStream:
    """The stream that belongs to no request: of a GET, or on stdio, of the connection."""

    session: Session
    outbox: Outbox
    inner: InnerExchange | None = None
    """The exchange with the engine that brings what is said on it, where one does."""
    ended: Callable[[], None] | None = None
    """To be called when it ends, however that comes about."""

    def end(self) -> None:
        """Have nothing said on it any more."""
        self.session.own = None
        if self.ended is not None:
            self.ended()

    @property
    def exchange(self) -> Hashable:
        """The exchange that it is sent on."""
        return self.outbox.exchange


@define(eq=False, repr=False, kw_only=True)
class Session:
    """What one ``initialize`` opened."""

    key: Hashable
    """The session's id over HTTP; on stdio, the connection."""
    principal: str | None
    capabilities: Mapping[str, Any]
    """What the client declared, as a modern request declares it."""
    log: EventLog | None
    used_ms: int
    """When the client was heard last."""
    caller: Caller | None = None
    """On whose behalf its latest request was made."""
    ended: bool = field(init=False, default=False)
    """Whether it is over: nobody in it is asked anything more."""
    requests: dict[str | int, ClientRequest] = field(init=False, factory=dict)
    lost: dict[ClientRequest, None] = field(init=False, factory=dict)
    """Those that go on although their connection was lost, in the order of their loss."""
    questions: dict[str | int | None, Question] = field(init=False, factory=dict)
    """Those that are not answered, by their ids; an answer may name whatever it likes."""
    own: OwnStream | None = field(init=False, default=None)
    _left: Callable[[ClientRequest], None]
    _questions_to_come: Iterator[int]
    """Their ids, shared by all sessions."""
    _streams: count[int] = field(init=False, factory=lambda: count(1))

    @property
    def busy(self) -> bool:
        """Whether somebody waits at the other end of a stream."""
        streams = [request.outlet for request in self.requests.values()]
        return self.own is not None or any(outlet.exchange is not None for outlet in streams)

    def stream(self, number: int) -> ClientRequest | None:
        """Return the open request whose stream has this number."""
        return next((one for one in self.requests.values() if one.outlet.number == number), None)

    def next_stream(self) -> int:
        """Return the number of a new stream."""
        return next(self._streams)

    def next_question(self) -> int:
        """Return the id of a new question."""
        return next(self._questions_to_come)

    def forget(self, request: ClientRequest) -> None:
        """A request is over."""
        del self.requests[request.request.id]
        self.lost.pop(request, None)
        self._left(request)

    def take_answer(self, response: Response, taken: Callable[[], None]) -> None:
        """Give an answer of the client's to whoever asked; one to nothing is ignored.

        ``taken`` is called once it need not come again.
        """
        question = self.questions.pop(response.id, None)
        if question is None:
            taken()
        else:
            question.answered(response, taken)
