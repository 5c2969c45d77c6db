"""What a proxy is configured with: its upstreams, its policies, its bounds.

Nothing in it reaches outside: where an upstream is and which credentials go there is the host's to know.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from re import compile as pattern
from typing import Any, Final, Literal

from attrs import field, frozen, validators

from mcp_tasks_proto.history import Retention
from mcp_tasks_proto.proxy.patterns import matches
from mcp_tasks_proto.request_state import Sealer
from mcp_tasks_proto.vocabulary import CACHEABLE_METHODS, MODERN_VERSION, TASKS_EXTENSION

__all__ = [
    "DEFAULT_PROFILE",
    "SEPARATOR",
    "Access",
    "InputKind",
    "ProxyLimits",
    "ProxySettings",
    "ToolProfile",
    "Upstream",
]

SEPARATOR: Final = "__"
"""Between an upstream's name and its tool's, where there are many upstreams (PRX.15)."""

DEFAULT_PROFILE: Final = "default"

_UPSTREAM_NAME: Final = pattern(r"[A-Za-z0-9](?:[A-Za-z0-9-]|_(?!_))*(?<!_)")


class InputKind(Enum):
    """A kind of input that may be passed on to a caller (PRX.10)."""

    FORM = "form"
    """Elicitation by a form."""
    URL = "url"
    """Elicitation by an address to go to."""
    SAMPLING = "sampling"
    ROOTS = "roots"

    __hash__ = object.__hash__


def _positive(default: int) -> int:
    return field(default=default, validator=[validators.instance_of(int), validators.gt(0)])


@frozen(kw_only=True)
class ProxyLimits:
    """Bounds of a proxy, as positive integers: milliseconds where a name ends in ``_ms`` (LIM.3)."""

    exchanges: int = _positive(4096)
    """Requests of callers that await their reply, listen streams included."""
    streams: int = _positive(1024)
    """Open listen streams of callers."""
    streams_per_principal: int = _positive(64)
    stream_tasks: int = _positive(256)
    """Tasks on one listen stream."""
    tasks: int = _positive(100_000)
    """Bindings kept."""
    tasks_per_principal: int = _positive(10_000)
    promoted: int = _positive(1024)
    """Upstream calls that go on as tasks of the proxy's own (PRX.16)."""
    upstream_requests: int = _positive(8192)
    """Requests in flight to all upstreams."""
    discoveries: int = _positive(1024)
    """Discoveries kept, one for each upstream and authorization."""
    tools: int = _positive(4096)
    """Tools of one upstream."""
    tool_pages: int = _positive(100)
    """Pages of one upstream's ``tools/list``."""
    input_keys: int = _positive(256)
    """Input requests in one view, or one round."""
    handle_chars: int = _positive(8192)
    """Longest handle."""
    upstream_id_chars: int = _positive(4096)
    """Longest task id taken from an upstream."""
    request_state_chars: int = _positive(64 * 1024)
    """Longest ``requestState`` given to a caller."""
    meta_bytes: int = _positive(64 * 1024)
    """``_meta`` or unknown members that are passed on with one message (PRX.8)."""
    meta_depth: int = _positive(16)
    """How deep those may be nested."""
    request_state_ms: int = _positive(900_000)
    """How long a ``requestState`` is accepted (INP.4). Where there are several processes, one lets go of a
    legacy upstream's task that nobody has asked it about for as long."""
    request_timeout_ms: int = _positive(30_000)
    """For an upstream's answer to anything but a call that may take its time."""
    call_timeout_ms: int = _positive(300_000)
    """For an upstream's answer to such a call, from its last sign of life."""
    longest_call_ms: int = _positive(86_400_000)
    """For an answer to any request but a listen request, however many signs of life there are."""
    attempts: int = _positive(3)
    """Tries of a request that may be repeated (PRX.4)."""
    first_backoff_ms: int = _positive(250)
    """Before the second try of what nobody waits for; doubled with each further one."""
    last_backoff_ms: int = _positive(30_000)
    """The longest of these pauses."""
    listening_poll_ms: int = _positive(30_000)
    """Between polls of a task whose upstream pushes its news (PRX.14)."""
    listen_wait_ms: int = _positive(1_000)
    """For upstreams to agree to push, before a caller who asked to hear of other tools is told so."""
    poll_floor_ms: int = _positive(500)
    """Shortest poll hint that callers are given, and that the proxy itself keeps to (PRX.12)."""
    keep_ms: int = _positive(7 * 86_400_000)
    """How long a handle lives at most; what callers see as ``ttlMs`` is never more (PRX.12)."""
    collapse_ms: int = _positive(20_000)
    """How long a round of a collapsed task waits for news before its caller has to come again (PRX.17)."""
    followed_tasks: int = _positive(1024)
    """Tasks of one legacy upstream under one authorization whose questions are waited for; of those polled
    longest ago what they asked is forgotten."""
    listed_tasks: int = _positive(32)
    """Tasks on one page of a legacy caller's ``tasks/list``, each of which is asked for (LEG.7)."""
    cached_results: int = _positive(1024)
    """Results of ordinary calls that are kept (PRX.3)."""
    cached_bytes: int = _positive(16 * 1024 * 1024)
    """All of them together, as JSON."""
    cached_ms: int = _positive(3_600_000)
    """How long one is kept, whatever its upstream says."""
    purge_interval_ms: int = _positive(60_000)
    """Between two removals of what is past its retention."""
    ledger_page_entries: int = _positive(1000)
    """Entries of the ledger that are read for one page of a project's list, however few of them are shown
    (HIS.2)."""


@frozen(kw_only=True)
class Upstream:
    """One server behind the proxy. Raises ``ValueError`` for a name that no tool could be called by."""

    name: str = field()
    """Letters, digits, ``-`` and single ``_``: it stands before its tools' names (PRX.15)."""
    label: str | None = None
    """What the ledger calls it; its name, if there is none."""
    identity: str = ""
    """What makes it this server and no other, such as a digest of its address: a task bound to another
    identity is not looked for here (PRX.7)."""
    tasks: bool = True
    """Its feature gate: whether tasks are used with it."""
    listen: bool = True
    """Whether it is asked to push; otherwise its tasks are polled (PRX.14)."""
    http: bool = True
    """Whether it is reached over Streamable HTTP; else on stdio. Only 2025-11-25 makes a difference there."""
    era: Literal["modern", "legacy"] | None = field(
        default=None, validator=validators.in_((None, "modern", "legacy"))
    )
    """The only protocol that is spoken with it; ``None``: it shows which. Of use to
    :class:`~mcp_tasks_proto.legacy.proxy.DualEraProxy` alone: the engine itself speaks the modern one."""

    @name.validator
    def _check_name(self, _: Any, name: str) -> None:
        if not _UPSTREAM_NAME.fullmatch(name):
            raise ValueError(f"an upstream's name has letters, digits, - and single _, not {name!r}")

    @property
    def shown_label(self) -> str:
        """What the ledger calls it."""
        return self.name if self.label is None else self.label


@frozen(kw_only=True)
class ToolProfile:
    """What the callers of a project may use. Names are those that callers see, and a ``*`` in one stands for
    any characters, or none; ``None``: all of them."""

    tools: frozenset[str] | None = None
    """Tools that may be called."""
    task_tools: frozenset[str] | None = None
    """Those of them whose calls may become tasks."""

    def allows(self, tool: str) -> bool:
        """Whether the tool may be called."""
        return _includes(self.tools, tool)

    def allows_tasks(self, tool: str) -> bool:
        """Whether a call of it may become a task."""
        return _includes(self.task_tools, tool)


def _includes(names: frozenset[str] | None, tool: str) -> bool:
    return names is None or tool in names or matches(names, tool)


@frozen(kw_only=True)
class Access:
    """What one caller may do at this moment, as the host's authentication says (PRX.7)."""

    project: str | None = None
    profile: str = DEFAULT_PROFILE
    """The name of a :class:`ToolProfile` in the settings; one that is not there allows nothing."""
    authorizations: Mapping[str, str] | None = None
    """Upstream -> the name of the authorization that this caller has there; an upstream that is missing does
    not exist for the caller. ``None``: every upstream, under the proxy's own authorization."""
    api_key: bool = False
    """Whether it is an API key and nobody in person (HIS.3)."""
    caller: str = ""
    """A label for the ledger."""

    def authorization(self, upstream: str) -> str | None:
        """Return the name of the authorization for an upstream; ``None``: there is none."""
        return "" if self.authorizations is None else self.authorizations.get(upstream)


@frozen(kw_only=True)
class ProxySettings:
    """Everything a :class:`~mcp_tasks_proto.proxy.ProxyEngine` is told. ``ValueError`` for contradictions."""

    name: str
    version: str
    info: Mapping[str, Any] = field(factory=dict)
    """More of ``serverInfo``: title, websiteUrl, icons."""
    instructions: str | None = None
    upstreams: tuple[Upstream, ...]
    profiles: Mapping[str, ToolProfile] = field(factory=lambda: {DEFAULT_PROFILE: ToolProfile()})
    access: Access = field(factory=Access)
    """Of messages that come without one of their own."""
    tasks: bool = True
    """The feature gate of the task path as a whole."""
    bridging: bool = False
    """Whether legacy callers may have tasks of modern upstreams."""
    legacy_callers: bool = True
    """Whether callers of 2025-11-25 are let in at all (LEG.9); else they are told what is spoken here."""
    promote_after_ms: int | None = field(
        default=None, validator=validators.optional([validators.instance_of(int), validators.gt(0)])
    )
    """After how long an upstream call becomes a task of the proxy's own; ``None``: never (PRX.16)."""
    collapse: bool = False
    """Whether callers who do not declare tasks get them as rounds of input (PRX.17)."""
    input_kinds: frozenset[InputKind] = frozenset({InputKind.FORM})
    """The kinds of input that upstreams may ask for (PRX.10)."""
    extensions: frozenset[str] = frozenset()
    """Other extensions that callers may declare to upstreams; what belongs to them passes untouched."""
    methods: frozenset[str] = frozenset(
        {
            "completion/complete",
            "prompts/get",
            "prompts/list",
            "resources/list",
            "resources/read",
            "resources/templates/list",
        }
    )
    """Methods that are passed on to the upstream, where there is one only."""
    cached_methods: frozenset[str] = CACHEABLE_METHODS
    """Methods of ordinary calls whose results are kept, where they say for how long. ``tools/call`` may be
    among them: then a tool whose result carries ``ttlMs`` is not called again within that time (PRX.3)."""
    response_bytes: int | None = field(
        default=None, validator=validators.optional([validators.instance_of(int), validators.gt(0)])
    )
    """The longest result of an ordinary call that is passed on whole; ``None``: whatever the host reads. The
    text of a longer one is cut, and what cannot be cut is refused (PRX.3)."""
    retention: Retention = field(factory=Retention)
    deleted_projects: frozenset[str] = frozenset()
    """Projects of which nothing is to be kept: what there is, is removed at once (HIS.4). Whoever names them
    gives nobody access to them any more."""
    several_processes: bool = False
    """Whether other processes of this proxy serve the same handles, as from one store. Of sealed handles that
    is taken for granted. It matters to :class:`~mcp_tasks_proto.legacy.proxy.DualEraProxy` alone: a legacy
    upstream asks one of them."""
    sealer: Sealer
    """Seals ``requestState``. One that encrypts, where upstreams' own states must not be read by callers."""
    limits: ProxyLimits = field(factory=ProxyLimits)
    discovery_ttl_ms: int = _positive(60_000)
    """The longest that callers may keep what ``server/discover`` and ``tools/list`` said."""
    page_size: int = _positive(100)
    """Tools on one page of ``tools/list``."""
    versions: tuple[str, ...] = (MODERN_VERSION,)
    """Protocol versions spoken to callers and to upstreams, the best first."""

    def __attrs_post_init__(self) -> None:
        names = [upstream.name for upstream in self.upstreams]
        if not names:
            raise ValueError("a proxy needs an upstream")
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise ValueError(f"two upstreams have the same name, {twice!r}")
        for method in sorted(self.methods):
            if method.startswith("tasks/"):
                raise ValueError(f"{method}: the prefix tasks/ is reserved for the Tasks extension")
        if TASKS_EXTENSION in self.extensions:
            raise ValueError(f"{TASKS_EXTENSION} is decided call by call, and never just passed on")

    def upstream(self, name: str) -> Upstream | None:
        """Return the upstream of this name."""
        for upstream in self.upstreams:
            if upstream.name == name:
                return upstream
        return None

    def profile(self, access: Access) -> ToolProfile:
        """Return the caller's profile; one that is not configured allows nothing."""
        return self.profiles.get(access.profile, _NOTHING)

    @property
    def single(self) -> bool:
        """Whether there is one upstream only, whose tools keep their names."""
        return len(self.upstreams) == 1


_NOTHING: Final = ToolProfile(tools=frozenset(), task_tools=frozenset())
