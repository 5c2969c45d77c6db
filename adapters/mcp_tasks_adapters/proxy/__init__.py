"""Running a proxy: what it stands before, who calls it, what it keeps. A loop module runs it."""

from mcp_tasks_adapters.proxy.callers import AuthenticateFunction, Caller, Credentials, CredentialsError
from mcp_tasks_adapters.proxy.encryption import AesGcm
from mcp_tasks_adapters.proxy.members import Members
from mcp_tasks_adapters.proxy.memory import MemoryProxyStore
from mcp_tasks_adapters.proxy.proxy import HttpUpstream, Policies, Proxy, StdioUpstream
from mcp_tasks_adapters.proxy.sqlite import SqliteProxyStore
from mcp_tasks_adapters.proxy.storing import ProxyStore

__all__ = [
    "AesGcm",
    "AuthenticateFunction",
    "Caller",
    "Credentials",
    "CredentialsError",
    "HttpUpstream",
    "Members",
    "MemoryProxyStore",
    "Policies",
    "Proxy",
    "ProxyStore",
    "SqliteProxyStore",
    "StdioUpstream",
]
