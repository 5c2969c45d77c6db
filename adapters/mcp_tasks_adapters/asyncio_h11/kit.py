"""The kit on asyncio: examine a server over HTTP, or one that is started here."""

from __future__ import annotations

from mcp_tasks_adapters.asyncio_h11.client import open_loop
from mcp_tasks_adapters.kit import Examiner

__all__ = ["examine_http", "examine_stdio"]

_examiner = Examiner(open_loop)
examine_http = _examiner.examine_http
examine_stdio = _examiner.examine_stdio
