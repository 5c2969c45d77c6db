"""What a server is configured with: its tools, its identity, its policies."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any

from attrs import field, frozen

from mcp_tasks_proto.limits import Limits
from mcp_tasks_proto.request_state import Sealer
from mcp_tasks_proto.vocabulary import MODERN_VERSION, TASKS_EXTENSION
from mcp_tasks_proto.wire.http import HeaderParameter, header_parameters

__all__ = ["InputVisibility", "ServerSettings", "TaskSupport", "ToolDeclaration"]


class TaskSupport(Enum):
    """Whether calls of a tool may, must or must not become tasks."""

    FORBIDDEN = "forbidden"
    OPTIONAL = "optional"
    REQUIRED = "required"

    __hash__ = object.__hash__


class InputVisibility(Enum):
    """Who sees a task's outstanding input requests (INP.2)."""

    OWNER = "owner"
    """The owner, on every poll, whatever that poll declares."""
    STRICT = "strict"
    """Only a poll that declares the kinds asked for; others get -32021."""


@frozen(kw_only=True)
class ToolDeclaration:
    """One tool, as the engine must know it.

    Raises ``ValueError`` when the definition has another name or no input schema, and when that carries an
    ``x-mcp-header`` annotation that the specification forbids (HTTP.3).
    """

    name: str
    definition: Mapping[str, Any]
    """The tool as ``tools/list`` shows it: name, description, inputSchema and so on."""
    task: TaskSupport = TaskSupport.OPTIONAL
    resumable: bool = False
    """Whether the work of its tasks is run again elsewhere when its node is gone (``ResumeWork``); otherwise
    such a task fails."""
    header_parameters: tuple[HeaderParameter, ...] = field(init=False)

    @header_parameters.default
    def _read_annotations(self) -> tuple[HeaderParameter, ...]:
        return header_parameters(self.definition.get("inputSchema", {}))

    def __attrs_post_init__(self) -> None:
        if self.definition.get("name") != self.name:
            raise ValueError(f"tool {self.name}: its definition has another name, or none")
        if not isinstance(self.definition.get("inputSchema"), Mapping):
            raise ValueError(f"tool {self.name}: its definition has no inputSchema")


@frozen(kw_only=True)
class ServerSettings:
    """Everything a :class:`~mcp_tasks_proto.server.ServerEngine` is told at its making."""

    name: str
    version: str
    info: Mapping[str, Any] = field(factory=dict)
    """More of ``serverInfo``: title, websiteUrl, icons."""
    instructions: str | None = None
    capabilities: Mapping[str, Any] = field(factory=dict)
    """Server capabilities beside ``tools`` and the Tasks extension, for what the host itself serves."""
    methods: frozenset[str] = frozenset()
    """Methods the host answers itself; they come to it as ``Forward`` (WIRE.5)."""
    sealer: Sealer
    """Seals ``requestState`` (INP.4)."""
    limits: Limits = field(factory=Limits)
    input_visibility: InputVisibility = InputVisibility.OWNER
    identify: bool = True
    """Whether results carry ``serverInfo`` in ``_meta`` (WIRE.4)."""
    discovery_ttl_ms: int = 60_000
    """How long clients may keep what ``server/discover`` and ``tools/list`` said."""
    page_size: int = 100
    """Tools on one page of ``tools/list``."""
    cache_scope: str = "private"
    """``"public"`` when what is said there is the same for every caller."""
    versions: tuple[str, ...] = (MODERN_VERSION,)
    """Protocol versions served."""

    def __attrs_post_init__(self) -> None:
        """Refuse, as ``ValueError``, what the specification keeps for the Tasks extension."""
        for method in sorted(self.methods):
            if method.startswith("tasks/"):
                raise ValueError(f"{method}: the prefix tasks/ is reserved for the Tasks extension")
        if "tasks" in self.capabilities:
            raise ValueError("capabilities.tasks belongs to 2025-11-25 and is not advertised (NEG.9)")
        if TASKS_EXTENSION in self.capabilities.get("extensions", {}):
            raise ValueError(f"{TASKS_EXTENSION} is advertised by the engine, exactly when served (NEG.9)")
