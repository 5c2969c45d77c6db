"""What the stories of a proxy under test want and wait for, and what stories are.

A story is a generator. It yields what it wants of the store, of randomness, of an upstream or of the time,
and is resumed with what came of that: :mod:`tests.model.proxy_requests` has all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from functools import partial
from itertools import count
from typing import Any, Final, Protocol

from attrs import define, field

from mcp_tasks_proto.testing.model import PeerAnswer
from mcp_tasks_proto.testing.model.proxy import ModelBinding, ProxyModel, Said

__all__ = [
    "ANSWER_MS",
    "ATTEMPTS",
    "CALL_MS",
    "COLLAPSE_MS",
    "DUE",
    "FAILED",
    "FIRST_PAUSE_MS",
    "LOADED",
    "ORDER",
    "PROMOTE_MS",
    "SAVED",
    "STATE_MS",
    "TIMED_OUT",
    "Binds",
    "Draws",
    "Given",
    "Keeps",
    "Knows",
    "Loads",
    "Run",
    "Sends",
    "Stage",
    "Story",
    "Waits",
    "Want",
]

ATTEMPTS: Final = 3
ANSWER_MS: Final = 5_000
CALL_MS: Final = 20_000
PROMOTE_MS: Final = 3_000
FIRST_PAUSE_MS: Final = 250
COLLAPSE_MS: Final = 4_000
STATE_MS: Final = 200_000
DUE: Final = "due"
"""What a story is resumed with when its time has come."""
SAVED, LOADED, FAILED = "saved", "loaded", "failed"
TIMED_OUT: Final = Said(problem="unavailable")
ORDER: Final = count()
"""In which order times are set: what is due at the same time happens in this one."""


@define(eq=False, kw_only=True)
class Want:
    """Something that a story waits for."""

    story: Story | None = None
    token: Any = None
    """What the engine calls it, once it has asked for it."""
    early: Any = None
    """What came of it while its story waited for something else."""
    order: int = field(init=False, factory=partial(next, ORDER))


@define(eq=False, kw_only=True)
class Loads(Want):
    """What the store has under a handle: ``loaded`` or ``failed``."""

    handle: str


@define(eq=False, kw_only=True)
class Draws(Want):
    """Randomness, for the handle of a binding. Which of several gets which draw shows when it is saved."""

    binding: dict[str, Any]


@define(eq=False, kw_only=True)
class Binds(Want):
    """A binding to be kept: ``saved``, ``failed``, or the name of the bound that is full."""

    binding: dict[str, Any]
    apply: Callable[[str, int], PeerAnswer]
    """Tells the model, and returns what the caller will be told."""
    handle: str = ""
    answer: PeerAnswer | None = None


@define(eq=False, kw_only=True)
class Keeps(Want):
    """An end to be kept: the one that stands then, or ``failed``."""

    handle: str
    view: Mapping[str, Any]
    polled: bool = False
    stored_at_ms: int = 0


@define(eq=False, kw_only=True)
class Sends(Want):
    """A request to an upstream, and what it said; a call is never sent again under the same name."""

    upstream: str
    authorization: str
    method: str
    params: Mapping[str, Any]
    declares: bool = False
    kinds: frozenset[str] = frozenset()
    on_task_path: bool = False
    slow: bool = False
    timeout_at_ms: int = 0
    timed_out: bool = False


@define(eq=False, kw_only=True)
class Waits(Want):
    """So much time."""

    due_at_ms: int


@define(eq=False, kw_only=True)
class Knows(Want):
    """What an upstream is, to one authorization; or why nobody knows. Who asks meanwhile waits as well."""

    target: tuple[str, str]


Run = Generator[Want, Any, PeerAnswer | None]


@define(eq=False, kw_only=True)
class Given:
    """What stands behind a ``requestState`` that somebody was given (INP.4)."""

    principal: str | None
    tool: str
    asked: Mapping[str, Mapping[str, Any]]
    upstream_state: str | None = None
    handle: str | None = None
    """The hidden task of a collapsed call (PRX.17)."""
    until_ms: int


@define(eq=False, kw_only=True)
class Story:
    """One request of a caller's, or something that goes on in the background."""

    about: str
    exchange: int | None = None
    open: bool = True
    """Whether its caller still waits."""
    run: Run = field(init=False)
    awaited: Want | None = None
    leaves: Sends | None = None
    """What is stopped, with the story, when its caller leaves."""
    abandons: ModelBinding | None = None
    """Whose task is given up then: nobody can come back to it."""
    given: Given | None = None
    """What stands behind the state in its reply."""
    due_at_ms: int | None = None
    """When something happens that does not wait for what is awaited."""
    due_order: int = 0


class Stage(Protocol):
    """What happens at once."""

    model: ProxyModel
    now: int

    @property
    def node(self) -> str:
        """The engine's name."""

    def tell(self, story: Story, answer: PeerAnswer) -> None:
        """The caller is answered."""

    def note(self, handle: str, status: str, *, polled: bool) -> None:
        """Something is noted in the ledger."""

    def drop(self, handle: str) -> None:
        """A handle that nobody has got is removed."""

    def stop(self, want: Sends) -> None:
        """A request is given up, if it is in flight."""

    def forget(self, target: tuple[str, str]) -> None:
        """What was known of an upstream does not hold."""

    def begin(self, about: str, run: Run) -> None:
        """Something goes on in the background."""
