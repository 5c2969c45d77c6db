"""The server role in both eras: :class:`DualEraServer` takes the place of a ``ServerEngine``."""

from mcp_tasks_proto.legacy.server.engine import DualEraServer, LegacyPolicy

__all__ = ["DualEraServer", "LegacyPolicy"]
