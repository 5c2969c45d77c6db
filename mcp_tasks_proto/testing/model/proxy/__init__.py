"""The proxy role at its most naïve: where each call goes, what each answer must be, and who may see what.

:class:`ProxyModel` was written from the contract (PRX, HIS) and knows no engine and no store: dictionaries of
bindings, ends and ledger entries, and one method for each thing that happens or must be decided. Tell it
what your proxy made durable, in that order, and what the upstreams said; it returns what must be told.
Times are Unix milliseconds and are given with each event.

What it leaves to the proxy: which requests go up to find out how a task stands, how often one that may be
repeated is, texts of its own, rounds of input before a task, and the bounds of a store. ``docs/testing.md``
shows it at work.
"""

from mcp_tasks_proto.testing.model.proxy.calls import ASKED, Path, call_failed, in_the_way, kinds_of, row_of
from mcp_tasks_proto.testing.model.proxy.ledger import ModelEntry, ModelLedger, ModelViewer
from mcp_tasks_proto.testing.model.proxy.model import ProxyModel, complete
from mcp_tasks_proto.testing.model.proxy.parts import (
    ModelBinding,
    ModelDiscovery,
    ModelEnd,
    ProxyCaller,
    Said,
)

__all__ = [
    "ASKED",
    "ModelBinding",
    "ModelDiscovery",
    "ModelEnd",
    "ModelEntry",
    "ModelLedger",
    "ModelViewer",
    "Path",
    "ProxyCaller",
    "ProxyModel",
    "Said",
    "call_failed",
    "complete",
    "in_the_way",
    "kinds_of",
    "row_of",
]
