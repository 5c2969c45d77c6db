"""What the kit has to say of a right server, in memory or in a process: which checks see nothing, and why.

Such a server serves 2025-11-25 as well, and has the same tools everywhere.
"""

from __future__ import annotations

from typing import Final

from mcp_tasks_proto.testing.kit import Kit, Role, ToolCall, Verdict

__all__ = ["ALWAYS", "CALLS", "OF_HTTP", "OF_STDIO", "SERVED", "SERVES_LEGACY", "of"]

CALLS: Final = {
    Role.COMPLETING: ToolCall("render"),
    Role.ERRING: ToolCall("spoil"),
    Role.FAILING: ToolCall("collapse"),
    Role.ASKING: ToolCall("commission"),
    Role.ASKING_FIRST: ToolCall("book"),
    Role.SLOW: ToolCall("idle"),
    Role.EXPIRING: ToolCall("flash"),
    Role.PLAIN: ToolCall("greet", {"name": "Ada"}),
}
"""What its tools are for."""

ALWAYS: Final = {"tasks that are not advertised": "the server advertises the extension to everybody"}
SERVES_LEGACY: Final = {"initialize where it is not served": "the server serves 2025-11-25 as well"}
SERVED: Final = {
    **ALWAYS,
    **SERVES_LEGACY,
    "tasks that are not declared": "the server declares tasks for 2025-11-25",
}
"""Not to be seen of a right server, wherever it is."""
OF_HTTP: Final = {
    **dict.fromkeys(
        (
            "other verbs",
            "a foreign origin",
            "another content type",
            "an accept that takes nothing",
            "headers that are missing",
            "headers that differ",
            "headers that are repeated",
            "the name of a tool",
            "the name of another task",
            "a task without its name",
            "headers in other clothes",
            "mirrored arguments",
            "headers of sessions",
            "a notification",
            "kinds of bodies",
            "status codes",
            "status codes of malformed requests",
            "a task in both eras",
        ),
        "only over HTTP",
    ),
    "streams are not buffered": "there was no event stream",
    "tasks of others": "no credentials of another caller were given",
}
"""Nor these, on stdio."""
OF_STDIO: Final = dict.fromkeys(
    ("notifications are not answered", "ids in flight", "a stream is cancelled", "nothing but messages"),
    "only on stdio",
)
"""Nor these, over HTTP."""


def of(kit: Kit, verdict: Verdict) -> dict[str, str]:
    """Return the checks with a verdict, and the reasons."""
    return {one.check.name: one.reason for one in kit.findings if one.verdict is verdict}
