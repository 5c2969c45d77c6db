"""The proxy role in both eras: :class:`DualEraProxy` takes the place of a ``ProxyEngine``."""

from mcp_tasks_proto.legacy.proxy.engine import DualEraProxy
from mcp_tasks_proto.legacy.proxy.messages import (
    DualEraProxyEffect,
    DualEraProxyInput,
    DualEraProxyStep,
    HandlesListed,
    ListHandles,
    SendLegacyUpstream,
    UpstreamFact,
    UpstreamSaid,
    UpstreamsClosing,
)
from mcp_tasks_proto.legacy.proxy.upstreams import DualEraUpstreams

__all__ = [
    "DualEraProxy",
    "DualEraProxyEffect",
    "DualEraProxyInput",
    "DualEraProxyStep",
    "DualEraUpstreams",
    "HandlesListed",
    "ListHandles",
    "SendLegacyUpstream",
    "UpstreamFact",
    "UpstreamSaid",
    "UpstreamsClosing",
]
