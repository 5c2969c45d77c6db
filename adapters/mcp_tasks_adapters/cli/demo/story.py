"""The story of ``mcp-tasks demo``: what the client asks, and what is worth noticing in the answers."""

from __future__ import annotations

import re
from typing import Final

from mcp_tasks_adapters.cli.demo.client import Client, Notices
from mcp_tasks_adapters.cli.demo.eras import tell_of_eras
from mcp_tasks_adapters.cli.demo.process import ServerProcess
from mcp_tasks_adapters.cli.demo.screen import Screen
from mcp_tasks_proto.vocabulary import LEGACY_VERSION, MODERN_VERSION, TASKS_EXTENSION

__all__ = ["tell"]

FRAMES: Final = 8

A_HANDLE: Final[Notices] = {
    "a handle, not a result: resultType is task": lambda task: task["resultType"] == "task",
    "it is durable already, so it may be polled at once": lambda task: isinstance(task["taskId"], str),
}
ACKNOWLEDGED: Final[Notices] = {
    "an acknowledgement, and no view of the task": lambda ack: (
        ack["resultType"] == "complete" and "status" not in ack
    ),
}


def tell(client: Client, screen: Screen, server: ServerProcess) -> None:
    """Tell it. Raises ``UnexpectedError`` at whatever is not as it should be."""
    screen.chapter("What is served here?")
    _discover(client)
    screen.chapter("A call becomes a task, outlives its server, asks a question, completes")
    _life(client, screen, server)
    screen.chapter("A task fails: a protocol error")
    _failure(client)
    screen.chapter("A tool errs: the task completes, with isError")
    _tool_error(client)
    screen.chapter("A task is cancelled")
    _cancellation(client)
    screen.chapter(f"A client of {LEGACY_VERSION}, on the same port")
    tell_of_eras(client, screen, server.url)


def _discover(client: Client) -> None:
    client.ask(
        "server/discover",
        {},
        "Which versions and extensions are served?",
        {
            f"it speaks {MODERN_VERSION}": lambda found: MODERN_VERSION in found["supportedVersions"],
            "the Tasks extension is advertised, with no settings": lambda found: (
                found["capabilities"]["extensions"][TASKS_EXTENSION] == {}
            ),
        },
    )


def _life(client: Client, screen: Screen, server: ServerProcess) -> None:
    task_id = client.ask(
        "tools/call",
        {"name": "render", "arguments": {"scene": "harbour", "frames": FRAMES}},
        "Render eight frames; this request's capabilities declare tasks",
        A_HANDLE,
    )["taskId"]
    client.poll(
        task_id,
        "working",
        "How does it stand?",
        {"it is in the middle of the render": lambda view: view["status"] == "working"},
        saying=f"Frame [2-{FRAMES}]",
    )
    _kill(client, screen, server)
    client.poll(
        task_id,
        "input_required",
        "The same handle, the same address: how does it stand?",
        {
            "the new process went on where the other had got to": lambda view: (
                re.search("going on after frame [1-9]", view["statusMessage"]) is not None
            ),
            "the task waits for us: the status is input_required": lambda view: (
                view["status"] == "input_required"
            ),
            "the question stands under a key of its own": lambda view: (
                view["inputRequests"]["publish"]["method"] == "elicitation/create"
            ),
        },
    )
    answer = {"action": "accept", "content": {"channel": "public"}}
    client.ask(
        "tasks/update",
        {"taskId": task_id, "inputResponses": {"publish": answer}},
        "Answer the question, under its key",
        ACKNOWLEDGED,
    )
    client.poll(
        task_id,
        "completed",
        "And now?",
        {
            "completed: the result is what the call would have returned": lambda view: (
                view["result"]["content"][0]["text"] == f"harbour: {FRAMES} frames, published on public."
            ),
            "no question is left": lambda view: "inputRequests" not in view,
        },
    )


def _kill(client: Client, screen: Screen, server: ServerProcess) -> None:
    server.kill()
    client.hang_up()
    screen.event("kill -9: the server's process is gone, with all that it had in memory.")
    server.start_again()
    screen.event("A new process serves the same file of tasks, on the same port.")


def _failure(client: Client) -> None:
    task_id = client.ask("tools/call", {"name": "archive"}, "Archive everything", A_HANDLE)["taskId"]
    client.poll(
        task_id,
        "failed",
        "How does it stand?",
        {
            "failed: an error in place of a result": lambda view: (
                view["error"]["code"] == -32603 and "result" not in view
            ),
            "the tool's own message and data": lambda view: (
                view["error"]["message"] == "The archive is offline"
                and view["error"]["data"] == {"retryAfterMs": 60_000}
            ),
            "a sentence for people, too": lambda view: bool(view["statusMessage"]),
        },
    )


def _tool_error(client: Client) -> None:
    task_id = client.ask("tools/call", {"name": "encode"}, "Encode in a codec that nobody has", A_HANDLE)[
        "taskId"
    ]
    client.poll(
        task_id,
        "completed",
        "How does it stand?",
        {
            "completed, not failed: the protocol did its part": lambda view: view["status"] == "completed",
            "isError tells the model that the tool did not": lambda view: view["result"]["isError"] is True,
        },
    )


def _cancellation(client: Client) -> None:
    task_id = client.ask(
        "tools/call",
        {"name": "render", "arguments": {"scene": "ocean", "frames": 10_000}},
        "Render ten thousand frames",
        A_HANDLE,
    )["taskId"]
    client.ask("tasks/get", {"taskId": task_id}, "How does it stand?", {})
    client.ask("tasks/cancel", {"taskId": task_id}, "Too many: cancel it", ACKNOWLEDGED)
    client.poll(
        task_id,
        "cancelled",
        "Has it stopped?",
        {
            "cancelled, once the tool had stopped": lambda view: view["status"] == "cancelled",
            "neither result nor error": lambda view: "result" not in view and "error" not in view,
        },
    )
