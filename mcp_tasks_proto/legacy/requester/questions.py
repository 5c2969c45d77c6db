"""Questions of a legacy server on their way to a person: requests of its own, and whom an answer goes to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from hashlib import sha256
from typing import Any, Final

from attrs import define, field

from mcp_tasks_proto.errors import LocalProtocolError
from mcp_tasks_proto.wire.jsonrpc import encode

__all__ = ["EMPTY_ANSWERS", "QUESTIONS", "Question", "fingerprint", "kind_of"]

QUESTIONS: Final = frozenset({"elicitation/create", "sampling/createMessage", "roots/list"})
"""What a server may ask of a client's people and programs."""

EMPTY_ANSWERS: Final[Mapping[str, Mapping[str, Any]]] = {
    "elicitation/create": {"action": "cancel"},
    "sampling/createMessage": {
        "role": "assistant",
        "content": {"type": "text", "text": ""},
        "model": "none",
    },
    "roots/list": {"roots": []},
}
"""What ends a question that is moot within this side; it is never sent."""

Delivered = Callable[[bool], None]
Reply = Callable[[Mapping[str, Any], Delivered], None]


@define(eq=False, repr=False, kw_only=True)
class Question:
    """One question. What it asks does not change; whom it is answered to may."""

    request: Mapping[str, Any]
    """As an input request: ``method`` and ``params``."""
    message_id: str | int
    """What the server calls its request."""
    reply: Reply
    """Takes the answer to the server, and says whether it has got there."""
    drop: Callable[[], None] | None = None
    """Is called when nobody here will answer it any more."""
    response: Mapping[str, Any] | None = None
    """The answer, once it was given."""
    delivered: bool = False
    """Whether the server has it."""
    over: bool = False
    """Whether the server no longer waits for it."""
    lost: bool = False
    """Whether its stream has ended: the server may ask it again, or still wait."""
    confirmed: bool = False
    """Whether its task was seen to wait for input since it came."""
    _on_its_way: object | None = field(init=False, default=None)
    """The attempt to take its answer to where it was asked last, until it is known what became of it."""
    _hearers: dict[int, Delivered] = field(init=False, factory=dict)
    """Who is to hear whether it gets there, by the update of the engine's that waits for that. There are no
    more of these than updates in flight, which the engine bounds: one that it gives up is forgotten."""
    _accepted: Mapping[str, Any] | None = field(init=False, default=None)
    """The answer of which somebody heard that it got there: from then on nobody else brings one."""

    @property
    def awaits_person(self) -> bool:
        """Whether somebody here is still to give the answer, and the server to hear it."""
        return self.response is None and not self.over

    @property
    def can_be_taken_back(self) -> bool:
        """Whether ``notifications/cancelled`` of the server's ends it: nobody here has answered, nor was its
        request answered with a task, which ``tasks/cancel`` is for (LEG.10)."""
        return self.awaits_person and self.drop is None

    @property
    def undelivered(self) -> bool:
        """Whether the server waits for the answer and does not have it, be it that somebody has given it."""
        return not self.delivered and not self.over

    def is_same_as(self, other: Question) -> bool:
        """Whether another question that asks the same is this one, asked again."""
        return not self.over and (self.lost or self.message_id == other.message_id)

    def answer(self, update: int, response: Mapping[str, Any], delivered: Delivered) -> None:
        """Take the answer to the server, unless one is on its way; ``delivered`` hears if that gets there.

        One that was accepted stays the answer (UPD.3). ``update`` names the engine's request that brings it.
        """
        self._hearers[update] = delivered
        if self._on_its_way is None:
            self.response = response if self._accepted is None else self._accepted
            self._send(self.response)

    def forget_update(self, update: int) -> None:
        """The engine has given an update up: nothing of its answer is to be told any more (LIM.3)."""
        self._hearers.pop(update, None)

    def ask_again(self, question: Question) -> None:
        """The server asks the same again; what was answered is not put to anybody again (REQ.4).

        The same request once more, as of a stream that is taken up again, wants no second response.
        """
        responded = not self.lost and (self._on_its_way is not None or self.delivered)
        self.message_id, self.reply, self.drop = question.message_id, question.reply, question.drop
        self.lost = False
        if self.response is not None and not responded:
            self._send(self.response)

    def keep_word(self) -> None:
        """Take an answer to the server once more that was said to have got there, and has not since."""
        if self._accepted is not None and self.undelivered and self._on_its_way is None:
            self._send(self._accepted)

    def _send(self, response: Mapping[str, Any]) -> None:
        attempt = self._on_its_way = object()
        self.reply(response, partial(self._arrived, attempt))

    def _arrived(self, attempt: object, got_there: bool) -> None:
        """Take in what became of an attempt; the last one counts."""
        if attempt is not self._on_its_way:
            return
        self._on_its_way, self.delivered = None, got_there
        if got_there:
            self._accepted = self.response
        hearers, self._hearers = self._hearers, {}
        for delivered in hearers.values():
            delivered(got_there)

    def abandon(self) -> None:
        """Nobody here will answer it any more."""
        if self.awaits_person and self.drop is not None:
            self.drop()


def kind_of(request: Mapping[str, Any]) -> str:
    """Return what a question is, in a word: for its key."""
    return str(request["method"]).partition("/")[0]


def fingerprint(request: Mapping[str, Any]) -> str:
    """Return what tells a question from others, and is the same in another process (REQ.4)."""
    try:
        return sha256(encode(request)).hexdigest()[:8]
    except LocalProtocolError:
        return "0"  # a host's parser may take more than JSON
