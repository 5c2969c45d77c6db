"""The last chapter of ``mcp-tasks demo``: a client of 2025-11-25 comes to the same port."""

from __future__ import annotations

from mcp_tasks_adapters.cli.demo.client import Client
from mcp_tasks_adapters.cli.demo.legacy import LegacyClient
from mcp_tasks_adapters.cli.demo.screen import Screen
from mcp_tasks_proto.vocabulary import LEGACY_VERSION, RELATED_TASK

__all__ = ["tell_of_eras"]


def tell_of_eras(client: Client, screen: Screen, url: str) -> None:
    """Tell it. Raises ``UnexpectedError`` at whatever is not as it should be."""
    legacy = LegacyClient(url, screen)
    legacy.open(
        "A client of the version before opens a session, at the same address",
        {
            f"it is served as {LEGACY_VERSION}": lambda found: found["protocolVersion"] == LEGACY_VERSION,
            "tasks are a capability there, and no extension": lambda found: (
                found["capabilities"]["tasks"]["requests"]["tools"] == {"call": {}}
            ),
        },
    )
    task_id = legacy.ask(
        "tools/call",
        {"name": "render", "arguments": {"scene": "bridge", "frames": 2}, "task": {"ttl": 60_000}},
        "It is the caller who asks for a task",
        {
            "the handle is nested, and says nothing of a resultType": lambda result: (
                result["task"]["status"] == "working" and "resultType" not in result
            ),
        },
    )["task"]["taskId"]
    legacy.wait(
        task_id,
        {"action": "accept", "content": {"channel": "private"}},
        "Wait for the result, on a stream",
        {
            "the question came on the stream; now its last message is the result": lambda result: (
                result["content"][0]["text"] == "bridge: 2 frames, published on private."
            ),
            "it says whose it is": lambda result: result["_meta"][RELATED_TASK] == {"taskId": task_id},
        },
    )
    client.ask(
        "tasks/get",
        {"taskId": task_id},
        "And the first client, which speaks the newer version, asks about that task",
        {
            "it is one task: completed here, too, and the result is with it": lambda view: (
                view["status"] == "completed" and view["result"]["content"][0]["type"] == "text"
            ),
        },
    )
