"""Records in a PostgreSQL database, for several machines. Needs the extra ``postgres``.

See :class:`PostgresStore`.
"""

from mcp_tasks_adapters.stores.postgres.store import PostgresStore

__all__ = ["PostgresStore"]
