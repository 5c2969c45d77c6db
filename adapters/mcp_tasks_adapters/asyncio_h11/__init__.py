"""Servers, clients and proxies on asyncio: over HTTP with h11, and on stdio."""

from mcp_tasks_adapters.asyncio_h11.client import connect, connect_stdio
from mcp_tasks_adapters.asyncio_h11.loop import open_driver
from mcp_tasks_adapters.asyncio_h11.proxy import open_proxy, serve_proxy, serve_proxy_stdio
from mcp_tasks_adapters.asyncio_h11.server import HttpServer, serve_http
from mcp_tasks_adapters.asyncio_h11.stdio import serve_stdio

__all__ = [
    "HttpServer",
    "connect",
    "connect_stdio",
    "open_driver",
    "open_proxy",
    "serve_http",
    "serve_proxy",
    "serve_proxy_stdio",
    "serve_stdio",
]
