"""Where task records are kept. The rules every store follows are in ``contract.md`` beside this file."""

from mcp_tasks_adapters.stores.memory import MemoryStore
from mcp_tasks_adapters.stores.sqlite import SqliteStore

__all__ = ["MemoryStore", "SqliteStore"]
