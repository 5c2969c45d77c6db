"""The words of 2025-11-25 that the modern era does not have, written once."""

from __future__ import annotations

from typing import Final

__all__ = [
    "CANCELLED",
    "INITIALIZE",
    "INITIALIZED",
    "LAST_EVENT_ID_HEADER",
    "PING",
    "PROTOCOL_VERSION_HEADER",
    "SESSION_HEADER",
    "TASK_STATUS",
    "TOOLS_CHANGED",
]

INITIALIZE: Final = "initialize"
INITIALIZED: Final = "notifications/initialized"
PING: Final = "ping"
CANCELLED: Final = "notifications/cancelled"
TASK_STATUS: Final = "notifications/tasks/status"
TOOLS_CHANGED: Final = "notifications/tools/list_changed"

SESSION_HEADER: Final = "mcp-session-id"
"""Header names are in lower case here; HTTP does not care."""
PROTOCOL_VERSION_HEADER: Final = "mcp-protocol-version"
LAST_EVENT_ID_HEADER: Final = "last-event-id"
