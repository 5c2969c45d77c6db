"""Tools for testing the engines, and programs built on them. Pure, like the engines themselves."""

from mcp_tasks_proto.testing.host import ServerHost
from mcp_tasks_proto.testing.messages import request
from mcp_tasks_proto.testing.store import DictStore

__all__ = ["DictStore", "ServerHost", "request"]
