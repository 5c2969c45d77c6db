"""What a check is, and what it finds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any

from attrs import field, frozen

from mcp_tasks_proto.testing.kit.acts import Post, Script

if TYPE_CHECKING:
    from mcp_tasks_proto.testing.kit.desk import Desk

__all__ = [
    "Answer",
    "Broken",
    "Check",
    "Finding",
    "Need",
    "Strength",
    "Unseen",
    "Verdict",
    "check",
]


class Verdict(Enum):
    """What is known of a check, or a rule, in the end."""

    PASS = "pass"
    FAIL = "fail"
    NOT_OBSERVABLE = "not observable"


class Strength(Enum):
    """How strongly the specification asks for what is checked."""

    MUST = "must"
    """The specification demands it."""
    SHOULD = "should"
    """The specification recommends it."""
    CHOICE = "choice"
    """The specification leaves it open, and this project's contract decides it."""


class Need(Enum):
    """Without what a check can see nothing; the value is the reason that is given then."""

    HTTP = "only over HTTP"
    STDIO = "only on stdio"
    MODERN = "the server answers no request of 2026-07-28"
    TASKS = "the server does not advertise the Tasks extension"
    LISTEN = "the server does not serve subscriptions/listen"
    LEGACY = "the server does not answer initialize with 2025-11-25"
    LEGACY_TASKS = "the server has no tasks for clients of 2025-11-25"
    OTHER_CALLER = "no credentials of another caller were given"


@frozen(kw_only=True)
class Answer:
    """A post, and all that came of it."""

    post: Post
    over_http: bool = False
    """Whether the verb and the headers of the post were sent with it."""
    at_ms: int
    """When it was complete, in Unix milliseconds."""
    sent_ms: int
    """When the post was sent, likewise."""
    status: int | None = None
    """The HTTP status; ``None`` on stdio, and where there was no response."""
    headers: Mapping[str, str] = field(factory=dict)
    messages: Sequence[Any] = ()
    """Everything in order, the response last if there is one."""
    places: Sequence[int] = ()
    """Of each of these, which of all messages of the run it was."""
    response: Mapping[str, Any] | None = None
    """What answers the post: an object with ``result`` or ``error``."""
    trouble: str | None = None
    """Why there is nothing more."""
    over_limit: bool = False
    """Whether that is because there came more than this side takes in."""

    @property
    def result(self) -> Mapping[str, Any] | None:
        """The result, where that is what came."""
        found = None if self.response is None else self.response.get("result")
        return found if isinstance(found, Mapping) else None

    @property
    def error(self) -> Mapping[str, Any] | None:
        """The error, where that is what came."""
        found = None if self.response is None else self.response.get("error")
        return found if isinstance(found, Mapping) else None

    @property
    def code(self) -> Any:
        """The error's code; ``None``: there is no error."""
        return None if self.error is None else self.error.get("code")


class Broken(Exception):  # noqa: N818 - named for what happened, as StopIteration is
    """A rule is broken; ``answers`` show it."""

    def __init__(self, reason: str, *answers: Answer) -> None:
        super().__init__(reason)
        self.reason = reason
        self.answers = answers


class Unseen(Exception):  # noqa: N818 - as above
    """Nothing can be said, for this reason."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@frozen(kw_only=True)
class Check:
    """One thing that a server can do right or wrong, and how to find out."""

    name: str
    rules: tuple[str, ...]
    """Those of the contract that it belongs to."""
    strength: Strength
    asks: str
    """What a server has to do."""
    source: str
    """Where the specification says so; for a choice, what it says, or that it says nothing."""
    needs: tuple[Need, ...] = ()
    run: Callable[[Desk], Script[None] | None]
    """Returns the conversation, or ``None`` where looking at what was said before is enough.

    Raises, or its conversation does, :class:`Broken` and :class:`Unseen`.
    """


def check(
    *rules: str, strength: Strength, asks: str, source: str, needs: Sequence[Need] = ()
) -> Callable[[Callable[[Desk], Script[None] | None]], Check]:
    """Make a check of a function, named after it."""

    def make(run: Callable[[Desk], Script[None] | None]) -> Check:
        return Check(
            name=run.__name__.replace("_", " "),
            rules=rules,
            strength=strength,
            asks=asks,
            source=source,
            needs=tuple(needs),
            run=run,
        )

    return make


@frozen(kw_only=True)
class Finding:
    """What became of a check."""

    check: Check
    verdict: Verdict
    reason: str = ""
    """Why it failed, or why nothing can be said."""
    answers: tuple[Answer, ...] = ()
    """The exchanges that show a failure."""
