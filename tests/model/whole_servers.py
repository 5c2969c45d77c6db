"""How one process of the proxy of :mod:`tests.model.whole` reaches the servers, of whichever era they are."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Any, Final

from attrs import define, field

from mcp_tasks_proto import OpenStream, Reply, Send
from mcp_tasks_proto.errors import invalid_request
from mcp_tasks_proto.legacy.messages import SendLegacy
from mcp_tasks_proto.proxy import SendUpstream, UpstreamAnswered, UpstreamFailed, UpstreamNotified
from mcp_tasks_proto.requester import HttpReply, RequestFailed, ResponseReceived
from mcp_tasks_proto.testing import Network
from mcp_tasks_proto.wire.jsonrpc import error_message
from tests.model.whole_legacy import arrival, news_of
from tests.model.whole_roads import Connection, Roads

__all__ = ["Servers"]

NO_SESSION: Final = error_message("server-error", invalid_request("Missing session ID"))
"""What a server of 2025-11-25 alone says to a modern message."""


@define(eq=False, kw_only=True)
class Servers:
    """The servers, as one process of the proxy sees them."""

    roads: Roads
    network: Network
    legacy: bool
    """Whether they speak 2025-11-25 alone."""
    place: int = 0
    """Which of the processes it is that are there at the same time: each begins with another server."""
    tell: Callable[[Any], None]
    """Tells the process a fact, if it has not ended."""
    open: dict[int, Connection] = field(init=False, factory=dict)
    """Its requests, by name."""
    _homes: dict[str, str] = field(init=False, factory=dict)
    """In which server process each session is kept: what belongs to one goes there."""
    _answers: dict[tuple[str | None, Any], int] = field(init=False, factory=dict)
    """Which request carries the answer to a question, or has brought it there, by session and question."""
    _numbers: count[int] = field(init=False, factory=lambda: count(1))

    def stop(self, name: int) -> None:
        """A request is given up."""
        self._forget_answer(name)
        connection = self.open.pop(name)
        self.roads.carry(connection, "there", connection.close)

    def hang_up(self) -> None:
        """The process has ended."""
        for connection in self.open.values():
            connection.vanish()

    # -- modern requests -----------------------------------------------------------------------------------

    def send(self, effect: SendUpstream) -> None:
        """Bring a modern request to one of the servers, to each in its turn."""
        name = effect.request
        numbers: list[int] = []

        def answered(message: dict[str, Any] | None) -> None:
            fact: Any = UpstreamAnswered(request=name, message=message)
            if message is None:
                fact = UpstreamFailed(name)
            numbers.clear()
            arrive = partial(self._end, name, connection, fact)
            self.roads.carry(connection, "back", arrive, again=partial(self.tell, fact))

        def heard(message: dict[str, Any]) -> None:
            arrive = partial(self.tell, UpstreamNotified(name, message))
            self.roads.carry(connection, "back", arrive, again=arrive)

        def arrive() -> None:
            connection.reached = True
            node = self._node(name)
            if node is None:
                connection.open = False
                fail(False)
            elif self.legacy:
                refused = ResponseReceived(request=name, message=NO_SESSION, http=HttpReply(status=400))
                self.roads.carry(connection, "back", partial(self._end, name, connection, refused))
            else:
                numbers.append(self.network.send(node, effect.message, answered, heard))

        def once_more() -> None:
            if self.network.nodes and effect.message["method"].startswith("tasks/"):
                self.network.send(self.network.nodes[0], effect.message, lambda _: None)

        def stop() -> None:
            for number in numbers:
                self.network.close(number)

        def fail(sent: bool) -> None:
            self._end(name, connection, UpstreamFailed(name, sent=sent))

        connection = self.open[name] = Connection(stop=stop, fail=fail)
        self.roads.carry(connection, "there", arrive, again=once_more)

    # -- messages of 2025-11-25 ----------------------------------------------------------------------------

    def send_legacy(self, sent: SendLegacy) -> None:
        """Bring a message to the server in which its session is kept, or to any: that one may not know it."""
        name, answer = sent.request, _answered_by(sent)
        numbers: list[int] = []
        if answer is not None:
            assert answer not in self._answers, "INP.1: an answer is not given twice"
            self._answers[answer] = name

        def hear(node: str, said: Reply | Send | OpenStream | None) -> None:
            if said is None or isinstance(said, Reply):
                numbers.clear()
            if isinstance(said, Reply) and said.session is not None:
                self._homes[said.session] = node
            news = None if said is None else news_of(said, name, f"received-{next(self._numbers)}")
            self.roads.carry(connection, "back", partial(take, said, news))

        def take(said: Reply | Send | OpenStream | None, news: Any) -> None:
            if said is None:
                fail(True)
            elif isinstance(said, Reply):
                if said.http_status != 202:
                    self._forget_answer(name)
                self._end(name, connection, news)
            else:
                if isinstance(said, Send):
                    connection.last_event_id = said.event_id or connection.last_event_id
                self.tell(news)

        def arrive() -> None:
            connection.reached = True
            node = self._node(name, sent.session)
            if node is None:
                fail(False)
            else:
                numbers.append(
                    self.network.converse(node, lambda number: arrival(sent, number), partial(hear, node))
                )

        def once_more() -> None:
            node = self._node(name, sent.session)
            if node is not None and _may_be_repeated(sent):
                self.network.converse(node, lambda number: arrival(sent, number), lambda _: None)

        def stop() -> None:
            for number in numbers:
                self.network.close(number)

        def fail(sent: bool) -> None:
            heard = connection.last_event_id
            self._forget_answer(name)
            self._end(
                name, connection, RequestFailed(name, "the connection broke", sent, last_event_id=heard)
            )

        connection = self.open[name] = Connection(stop=stop, fail=fail, last_event_id=sent.last_event_id)
        self.roads.carry(connection, "there", arrive, again=once_more)

    def _forget_answer(self, name: int) -> None:
        """If this request carried an answer, it may not have got there: it may be given once more."""
        self._answers = {answer: by for answer, by in self._answers.items() if by != name}

    # -- both ----------------------------------------------------------------------------------------------

    def _node(self, name: int, session: str | None = None) -> str | None:
        """Return the server process that a message reaches; ``None``: there is none at present."""
        nodes = self.network.nodes
        home = None if session is None else self._homes.get(session)
        if home in nodes:
            return home
        return nodes[(name + self.place) % len(nodes)] if nodes else None

    def _end(self, name: int, connection: Connection, fact: Any) -> None:
        """Nothing more comes of a request."""
        connection.open = False
        if self.open.get(name) is connection:
            del self.open[name]
        self.tell(fact)


def _answered_by(sent: SendLegacy) -> tuple[str | None, Any] | None:
    """Return which question this answers, and in which session; ``None``: it is no answer."""
    message = sent.message or {}
    return (sent.session, message["id"]) if "result" in message else None


def _may_be_repeated(sent: SendLegacy) -> bool:
    """Whether it does no harm that something arrives twice, as far as its kind goes."""
    method = (sent.message or {}).get("method", "an answer")
    return sent.verb == "POST" and method in ("an answer", "tasks/get", "tasks/cancel")
