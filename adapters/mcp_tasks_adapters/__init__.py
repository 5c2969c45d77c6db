"""Running MCP Tasks: servers and clients on trio and asyncio, stores, a toolkit for authors of tools.

The names a server's author needs are here; a loop module, such as ``mcp_tasks_adapters.trio_h11``, runs what
they declare.
"""

from mcp_tasks_adapters.driver import Driver, RequestFacts
from mcp_tasks_adapters.stores import MemoryStore
from mcp_tasks_adapters.toolkit import (
    DEFAULT,
    KEEP,
    Answer,
    InputVisibility,
    Limits,
    ProtocolError,
    ReportRejected,
    Request,
    Server,
    TaskContext,
    ToolCall,
    ToolError,
    Unauthorized,
    elicit,
    elicit_url,
    error_text,
    list_roots,
    sample,
    structured,
    text,
)

__all__ = [
    "DEFAULT",
    "KEEP",
    "Answer",
    "Driver",
    "InputVisibility",
    "Limits",
    "MemoryStore",
    "ProtocolError",
    "ReportRejected",
    "Request",
    "RequestFacts",
    "Server",
    "TaskContext",
    "ToolCall",
    "ToolError",
    "Unauthorized",
    "elicit",
    "elicit_url",
    "error_text",
    "list_roots",
    "sample",
    "structured",
    "text",
]
