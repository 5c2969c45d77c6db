"""The requester role in both eras: :class:`DualEraRequester` takes the place of a ``RequesterEngine``."""

from mcp_tasks_proto.legacy.requester.engine import DualEraRequester

__all__ = ["DualEraRequester"]
