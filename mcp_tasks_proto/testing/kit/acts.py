"""What the kit asks of whoever carries its messages, and what it is told.

An exchange is opened by what is sent on it; what comes back is fetched one piece at a time, each with a bound
on the wait. Over HTTP an exchange is one request with its response; on stdio it is whatever the server says
that belongs to one message.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any, Final, TypeVar

from attrs import evolve, field, frozen

__all__ = [
    "SECOND_RESPONSE",
    "Act",
    "Begun",
    "Came",
    "Close",
    "Done",
    "Ended",
    "Fact",
    "Next",
    "Open",
    "Pause",
    "Post",
    "Script",
    "Silent",
    "Unreadable",
]

_T = TypeVar("_T")

SECOND_RESPONSE: Final = "a second response to one request"
"""What :class:`Unreadable` says of a response to a request that has one."""


# -- what is sent ------------------------------------------------------------------------------------------


@frozen(kw_only=True)
class Post:
    """Something to send, exactly as it stands here."""

    body: bytes = b""
    message: Any = None
    """What the body says; ``None``: no JSON value."""
    verb: str = "POST"
    """The HTTP method; on stdio all that is not a POST has no meaning."""
    headers: tuple[tuple[str, str], ...] = ()
    """Over HTTP: names and values, beside ``Host``, ``Content-Length`` and those of the caller."""
    era: str = "modern"
    """``"modern"``, ``"legacy"``, or ``"none"`` for what no client of any era would send."""
    channel: int = 0
    """On stdio: the process that it is for. Another number is another process of the same server."""
    caller: int = 0
    """Over HTTP: whose credentials go with it; 0 is the first caller, 1 the other one."""

    def with_header(self, name: str, *values: str) -> Post:
        """Return it with these values of a header; with none the header is left out."""
        kept = tuple(one for one in self.headers if one[0].lower() != name.lower())
        return evolve(self, headers=kept + tuple((name, value) for value in values))

    @property
    def method(self) -> str | None:
        """The JSON-RPC method, where there is one."""
        found = self.message.get("method") if isinstance(self.message, Mapping) else None
        return found if isinstance(found, str) else None

    @property
    def params(self) -> Mapping[str, Any]:
        """The params, where there are any."""
        found = self.message.get("params") if isinstance(self.message, Mapping) else None
        return found if isinstance(found, Mapping) else {}


# -- acts --------------------------------------------------------------------------------------------------


@frozen
class Open:
    """Send a post on a new exchange. Answered with :class:`Done`, before anything has come back."""

    exchange: int
    post: Post


@frozen
class Next:
    """Fetch what comes next on an exchange."""

    exchange: int
    within_ms: int


@frozen
class Close:
    """Nothing more is wanted of an exchange: over HTTP its connection is closed."""

    exchange: int


@frozen
class Pause:
    """Let so much time pass."""

    ms: int


Act = Open | Next | Close | Pause


# -- facts -------------------------------------------------------------------------------------------------


@frozen
class Done:
    """Answer to every act but :class:`Next`."""


@frozen
class Begun:
    """The head of an HTTP response."""

    status: int
    headers: Mapping[str, str] = field(factory=dict)
    """Names in lower case."""


@frozen
class Came:
    """A JSON value came."""

    message: Any
    size_bytes: int = field(default=0, eq=False)
    """How long it was; a run takes in so much and no more."""


@frozen
class Unreadable:
    """Something came that is not JSON, or not what its place asks for; the text says what, in brief."""

    what: str
    over_limit: bool = False
    """Whether it is only too much for this side, and may be right."""


@frozen
class Ended:
    """Nothing more will come; ``trouble`` says why, unless that is as it should be."""

    trouble: str | None = None
    over_limit: bool = False
    """Whether more came than this side takes in, be it right or wrong."""
    unsent: bool = False
    """Whether there was no server to send anything to."""


@frozen
class Silent:
    """Nothing came in the time given; it still may."""


Fact = Done | Begun | Came | Unreadable | Ended | Silent

Script = Generator[Act, Any, _T]
"""A conversation: yields acts, is sent the fact that answers each, and returns something in the end."""
