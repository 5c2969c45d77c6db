"""The server role of MCP Tasks: :class:`ServerEngine`."""

from mcp_tasks_proto.server.engine import ServerEngine

__all__ = ["ServerEngine"]
