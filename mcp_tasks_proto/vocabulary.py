"""The specification's own words, written once: versions, method names, ``_meta`` keys."""

from __future__ import annotations

__all__ = [
    "CACHEABLE_METHODS",
    "CLIENT_CAPABILITIES",
    "CLIENT_INFO",
    "INPUT_METHODS",
    "LEGACY_VERSION",
    "LOG_LEVEL",
    "MODERN_VERSION",
    "PROGRESS_TOKEN",
    "PROTOCOL_VERSION",
    "RELATED_TASK",
    "SERVER_INFO",
    "SUBSCRIPTION_ID",
    "TASKS_EXTENSION",
]

MODERN_VERSION = "2026-07-28"
LEGACY_VERSION = "2025-11-25"

TASKS_EXTENSION = "io.modelcontextprotocol/tasks"

PROTOCOL_VERSION = "io.modelcontextprotocol/protocolVersion"
CLIENT_CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
CLIENT_INFO = "io.modelcontextprotocol/clientInfo"
LOG_LEVEL = "io.modelcontextprotocol/logLevel"
SERVER_INFO = "io.modelcontextprotocol/serverInfo"
RELATED_TASK = "io.modelcontextprotocol/related-task"
"""The ``_meta`` key that ties a message to a task: an object with a ``taskId``."""
SUBSCRIPTION_ID = "io.modelcontextprotocol/subscriptionId"
PROGRESS_TOKEN = "progressToken"

INPUT_METHODS = frozenset({"tools/call", "prompts/get", "resources/read"})
"""Methods that may be answered with ``input_required`` (core, "Multi Round-Trip Requests")."""

CACHEABLE_METHODS = frozenset(
    {
        "server/discover",
        "tools/list",
        "prompts/list",
        "resources/list",
        "resources/templates/list",
        "resources/read",
    }
)
"""Methods whose complete results carry ``ttlMs`` and ``cacheScope`` (core, "Caching")."""
