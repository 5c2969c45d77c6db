"""Protocol version 2025-11-25, beside the modern one: translators around the modern engines (LEG).

:class:`DualEraServer` takes the place of a :class:`~mcp_tasks_proto.server.ServerEngine`.
"""

from mcp_tasks_proto.legacy.server import DualEraServer, LegacyPolicy

__all__ = ["DualEraServer", "LegacyPolicy"]
