"""Carries what :mod:`mcp_tasks_proto.testing.kit` sends, to servers over HTTP and on stdio.

:mod:`mcp_tasks_adapters.trio_h11.kit` and :mod:`mcp_tasks_adapters.asyncio_h11.kit` examine a server;
``mcp-tasks kit`` is that with a report for people.
"""

from mcp_tasks_adapters.kit.carrier import Carrier
from mcp_tasks_adapters.kit.examiner import Examiner, Progress
from mcp_tasks_adapters.kit.http import HttpCarrier
from mcp_tasks_adapters.kit.stdio import StdioCarrier

__all__ = ["Carrier", "Examiner", "HttpCarrier", "Progress", "StdioCarrier"]
