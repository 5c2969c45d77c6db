"""A server as its author declares it: tools, handlers, policies. No loop, no sockets, nothing running."""

from __future__ import annotations

import inspect
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

from mcp_tasks_adapters.toolkit.calls import Request
from mcp_tasks_adapters.toolkit.tools import Tool, ToolHandler, is_async
from mcp_tasks_adapters.toolkit.values import wire_value
from mcp_tasks_proto.limits import Limits
from mcp_tasks_proto.negotiation import OWNED_METHODS
from mcp_tasks_proto.request_state import HmacSealer
from mcp_tasks_proto.settings import InputVisibility, ServerSettings, ToolDeclaration

if TYPE_CHECKING:
    from mcp_tasks_adapters.driver import RequestFacts

__all__ = [
    "LEGACY_POLICIES",
    "EnabledFunction",
    "PrincipalFunction",
    "RecordFunction",
    "RequestHandler",
    "Server",
]

RequestHandler = Callable[[Request], Awaitable[Any]]
"""``async def handler(request)``: returns a result object, or ``request.input_required(...)``."""
PrincipalFunction = Callable[["RequestFacts"], "Awaitable[str | None] | str | None"]
"""Names the caller of one request; ``None``: a caller without a name."""
EnabledFunction = Callable[["RequestFacts"], "bool | Awaitable[bool]"]
"""Says whether the Tasks extension is on for one request."""
RecordFunction = Callable[[str], "bool | None"]
"""Takes what an engine is told and what it says, one line of JSON at a time, without the newline
(:mod:`mcp_tasks_proto.testing.recordings`); ``False``: it wants no more. It is called on the loop's thread,
raises nothing, and keeps what it gets to itself: the lines hold arguments, results and ids."""

LEGACY_POLICIES: Final = ("ignore", "serve", "refuse")
"""What ``legacy`` may be."""

_ToolHandler = TypeVar("_ToolHandler", bound=ToolHandler)
_RequestHandler = TypeVar("_RequestHandler", bound=RequestHandler)

_CAPABILITY_OF = {"prompts": "prompts", "resources": "resources", "completion": "completions"}
"""First part of a method -> the capability that a server with such a method declares."""


class Server:
    """What a server offers. Give it to one of the loop modules to run.

    ``name``, ``version``, ``title`` and ``info`` (more of ``serverInfo``: ``websiteUrl``, ``icons``) say who
    it is; ``instructions`` tell a model how to use it.

    ``principal`` and ``enabled`` are asked on every request (SEC.1, NEG.7) and may be async. Without them
    nobody has a name, so every caller may use every task id it knows, and tasks are always on. Either may
    raise :class:`Unauthorized`.

    ``sealing_keys``, of 32 random bytes or more each, seal what travels through clients (INP.4): the first
    seals, all open (SEC.2). Without them each process makes its own, which serves one node until it restarts.

    ``capabilities`` are server capabilities beside ``tools`` and the Tasks extension; those of methods given
    to :meth:`on_request` are declared without being named here.

    ``legacy`` is what clients of 2025-11-25 get (LEG.1): ``"ignore"``, everything but tasks; ``"serve"``,
    tasks as well; ``"refuse"``, nothing. Their sessions are in memory, so over HTTP all requests of a client
    must reach the same process.

    Raises ``ValueError`` for what is not JSON, for keys that are too short, and for an unknown ``legacy``.
    """

    def __init__(
        self,
        name: str,
        version: str = "0",
        *,
        title: str | None = None,
        instructions: str | None = None,
        info: Mapping[str, Any] | None = None,
        principal: PrincipalFunction | None = None,
        enabled: EnabledFunction | None = None,
        limits: Limits | None = None,
        sealing_keys: Sequence[bytes] | None = None,
        capabilities: Mapping[str, Any] | None = None,
        input_visibility: InputVisibility = InputVisibility.OWNER,
        legacy: str = "ignore",
    ) -> None:
        self.name = name
        self.version = version
        self.instructions = instructions
        self.info: dict[str, Any] = wire_value(info or {})
        if title is not None:
            self.info["title"] = title
        self.principal = principal
        self.enabled = enabled
        self.limits = limits or Limits()
        """Read when the server starts; replace it before to change bounds."""
        self.capabilities: dict[str, Any] = wire_value(capabilities or {})
        self.input_visibility = input_visibility
        if legacy not in LEGACY_POLICIES:
            raise ValueError(f"legacy={legacy!r} is none of {', '.join(LEGACY_POLICIES)}")
        self.legacy = legacy
        """Read when the server starts, as the bounds are."""
        self.record: RecordFunction | None = None
        """Records the engine. Read when the server starts; each engine takes a function of its own."""
        self._sealer = HmacSealer((secrets.token_bytes(32),) if sealing_keys is None else tuple(sealing_keys))
        self._tools: dict[str, Tool] = {}
        self._handlers: dict[str, RequestHandler] = {}
        self._watchers: dict[object, Callable[[], None]] = {}

    # -- declaring -----------------------------------------------------------------------------------------

    def tool(
        self,
        name: str | None = None,
        *,
        task: str = "optional",
        resumable: bool = False,
        title: str | None = None,
        description: str | None = None,
        input_schema: Mapping[str, Any] | None = None,
        output_schema: Mapping[str, Any] | None = None,
        annotations: Mapping[str, Any] | None = None,
        icons: Sequence[Mapping[str, Any]] | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> Callable[[_ToolHandler], _ToolHandler]:
        """Declare the decorated async function as a tool; the function itself is left as it is.

        ``name`` defaults to the function's name, ``description`` to its docstring. ``task`` says whether a
        call may become a task: ``"forbidden"``, ``"optional"``, or ``"required"`` for a tool that cannot run
        without (callers who declare no tasks are refused, NEG.5).

        ``resumable`` says what becomes of a task whose process is gone, where tasks are kept in a store that
        outlives it: another process calls the handler again with what it was given first, and it returns
        ``call.task(...)`` again; :class:`TaskContext` says what the work finds. Otherwise the task fails.

        Arguments that do not fit ``input_schema`` never reach the handler: the caller gets a result with
        ``isError`` that names the problem. A result is checked against ``output_schema`` when it is final,
        be it the call's or the task's. Schemas are JSON Schema 2020-12, or what their ``$schema`` names.

        Raises ``ValueError`` for a name that is taken or malformed, an unknown ``task``, a schema that is
        invalid, not ``"type": "object"`` (input), or refers to what is not in it, and for a forbidden
        ``x-mcp-header``; ``TypeError`` for a handler that is not async.
        """
        if callable(name):
            raise TypeError("write @server.tool(), with parentheses")

        def declare(handler: _ToolHandler) -> _ToolHandler:
            tool = Tool(
                handler,
                name=getattr(handler, "__name__", "") if name is None else name,
                task=task,
                resumable=resumable,
                definition={
                    "title": title,
                    "description": inspect.getdoc(handler) if description is None else description,
                    "annotations": annotations,
                    "icons": icons,
                    "_meta": meta,
                },
                input_schema=input_schema,
                output_schema=output_schema,
            )
            if tool.name in self._tools:
                raise ValueError(f"there is a tool {tool.name} already")
            self._tools[tool.name] = tool
            self._tools_changed()
            return handler

        return declare

    def remove_tool(self, name: str) -> None:
        """Withdraw a tool: it is listed and called no more. Its tasks go on.

        Tools may come and go while the server runs, on the thread of its loop; clients that listen are told.
        Raises ``ValueError`` when there is no such tool.
        """
        if name not in self._tools:
            raise ValueError(f"there is no tool {name}")
        del self._tools[name]
        self._tools_changed()

    def watch_tools(self, watcher: Callable[[], None]) -> Callable[[], None]:
        """Call ``watcher`` whenever the tools change; return what ends this, called once or more."""
        key = object()
        self._watchers[key] = watcher

        def unwatch() -> None:
            self._watchers.pop(key, None)

        return unwatch

    def _tools_changed(self) -> None:
        for watcher in list(self._watchers.values()):
            watcher()

    def on_request(
        self, method: str, handler: RequestHandler | None = None
    ) -> Callable[[_RequestHandler], _RequestHandler]:
        """Answer ``method`` with ``handler``; without one, return a decorator.

        Declare handlers before the server starts: unlike tools they are read once.

        The handler takes a :class:`Request` and returns the result object. It may raise
        :class:`ProtocolError`, and for ``prompts/get`` and ``resources/read`` return
        ``request.input_required(...)``.

        Raises ``ValueError`` for a method that has a handler already, that the engine answers itself, or
        that belongs to it in another era (``tasks/…``, ``initialize``); ``TypeError`` for a handler that is
        not async.
        """
        if method in OWNED_METHODS or method.startswith("tasks/") or method == "initialize":
            raise ValueError(f"{method} is not for a handler: the engine answers it itself")
        if method in self._handlers:
            raise ValueError(f"there is a handler of {method} already")

        def declare(handler: _RequestHandler) -> _RequestHandler:
            if not is_async(handler):
                raise TypeError(f"the handler of {method} must be an async function")
            self._handlers[method] = handler
            return handler

        if handler is not None:
            declare(handler)
        return declare

    @property
    def serves_sessions(self) -> bool:
        """Whether clients of 2025-11-25 are served at all."""
        return self.legacy != "refuse"

    # -- running -------------------------------------------------------------------------------------------

    @property
    def tools(self) -> Mapping[str, Tool]:
        """The tools by name, in the order they were declared."""
        return self._tools

    @property
    def handlers(self) -> Mapping[str, RequestHandler]:
        """The handlers of :meth:`on_request` by method."""
        return self._handlers

    def declarations(self) -> tuple[ToolDeclaration, ...]:
        """Return the tools as an engine must know them."""
        return tuple(tool.declaration for tool in self._tools.values())

    def settings(self) -> ServerSettings:
        """Return what an engine of this server is configured with."""
        families = {method.partition("/")[0] for method in self._handlers}
        implied: dict[str, Any] = {
            capability: {} for family, capability in _CAPABILITY_OF.items() if family in families
        }
        return ServerSettings(
            name=self.name,
            version=self.version,
            info=dict(self.info),
            instructions=self.instructions,
            capabilities={**implied, **self.capabilities},
            methods=frozenset(self._handlers),
            sealer=self._sealer,
            limits=self.limits,
            input_visibility=self.input_visibility,
        )
