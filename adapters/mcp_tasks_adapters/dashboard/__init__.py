"""What a dashboard shows of the tasks of a project, as JSON over HTTP (HIS).

The proxy's HTTP servers hand it every request below :data:`PREFIX`; nothing here knows a loop or a socket.
"""

from mcp_tasks_adapters.dashboard.api import Dashboard
from mcp_tasks_adapters.dashboard.requests import PREFIX

__all__ = ["PREFIX", "Dashboard"]
