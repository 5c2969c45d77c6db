"""Records in an SQLite file, which outlive the process. See :class:`SqliteStore`."""

from mcp_tasks_adapters.stores.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]
