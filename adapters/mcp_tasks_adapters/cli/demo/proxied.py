"""The story of ``mcp-tasks demo --proxy``: a task with an id on each side, a stranger, a server's loss."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Final

from mcp_tasks_adapters.cli.demo.client import Client, Notices, UnexpectedError
from mcp_tasks_adapters.cli.demo.process import ServerProcess
from mcp_tasks_adapters.cli.demo.screen import Screen
from mcp_tasks_adapters.cli.demo.story import A_HANDLE, ACKNOWLEDGED
from mcp_tasks_proto.vocabulary import TASKS_EXTENSION

__all__ = ["CALLERS", "tell_of_the_proxy"]

ALICE: Final = "a-token-of-alices"
BOB: Final = "another-one-of-bobs"
CALLERS: Final = f"""
[[caller]]
principal = "alice"
token = "{ALICE}"

[[caller]]
principal = "bob"
token = "{BOB}"
"""
NEVER: Final = "A" * 43
"""An id that no task ever had, of the form of a handle."""

UNKNOWN: Final[Notices] = {
    "-32602, and no more than that": lambda error: error == {"code": -32602, "message": "Task not found"},
}


def tell_of_the_proxy(screen: Screen, server: ServerProcess, proxy: str) -> None:
    """Tell it; the proxy is at this URL. Raises ``UnexpectedError`` at whatever is not as it should be."""
    with Client(proxy, screen, ALICE) as alice:
        screen.chapter("What is served at the proxy?")
        _discover(alice)
        screen.chapter("A call becomes a task, with an id on each side")
        handle, task_id = _two_ids(alice, screen, server)
        screen.chapter("A question comes down, the answer goes up")
        _answer(alice, handle)
        screen.chapter("A stranger asks")
        _strangers(alice, screen, proxy, handle, task_id)
        screen.chapter("The server forgets; the proxy does not")
        _loss(alice, screen, server, handle, task_id)


def _discover(alice: Client) -> None:
    alice.ask(
        "server/discover",
        {},
        "Alice, with a token of hers: which extensions are served?",
        {
            "tasks are advertised, for the server behind has them": lambda found: (
                found["capabilities"]["extensions"][TASKS_EXTENSION] == {}
            ),
            "the proxy gives its own name, and not the server's": lambda found: (
                "render" not in str(found["_meta"])
            ),
        },
    )


def _two_ids(alice: Client, screen: Screen, server: ServerProcess) -> tuple[str, str]:
    """Return the id that the proxy gave, and the server's."""
    handle = alice.ask(
        "tools/call",
        {"name": "render", "arguments": {"scene": "harbour", "frames": 2}},
        "Alice, to the proxy: render two frames",
        A_HANDLE,
    )["taskId"]
    (task_id,) = _task_ids(server.file)
    screen.event(f"The proxy's id of the task: {handle}")
    screen.event(f"The server's id of it:      {task_id} (from the server's own file; no caller sees it)")
    if handle == task_id:
        raise UnexpectedError("the proxy has given away the server's id")
    with Client(server.url, screen) as direct:
        direct.ask(
            "tasks/get",
            {"taskId": task_id},
            "Straight to the server, past the proxy, by the server's id",
            {"there the task is, under that id": lambda view: view["taskId"] == task_id},
        )
    return handle, task_id


def _task_ids(file: Path) -> list[str]:
    with closing(sqlite3.connect(file)) as database:
        return [task_id for (task_id,) in database.execute("SELECT task_id FROM tasks")]


def _answer(alice: Client, handle: str) -> None:
    alice.poll(
        handle,
        "input_required",
        "Alice, to the proxy: how does it stand?",
        {
            "it waits for input; the form is the server's, word for word": lambda view: (
                view["inputRequests"]["publish"]["method"] == "elicitation/create"
            ),
        },
    )
    answer = {"action": "accept", "content": {"channel": "public"}}
    alice.ask(
        "tasks/update",
        {"taskId": handle, "inputResponses": {"publish": answer}},
        "Answer the question; the proxy carries it up",
        ACKNOWLEDGED,
    )
    _completed(alice, handle, "And now?")


def _completed(alice: Client, handle: str, headline: str, more: Notices | None = None) -> None:
    alice.poll(
        handle,
        "completed",
        headline,
        {
            "completed, with what the tool has returned": lambda view: (
                view["result"]["content"][0]["text"] == "harbour: 2 frames, published on public."
            ),
            **(more or {}),
        },
    )


def _strangers(alice: Client, screen: Screen, proxy: str, handle: str, task_id: str) -> None:
    answers = []
    for about, asked in (("of Alice's task", handle), ("of a task that never was", NEVER)):
        # A connection of its own for each, so that the requests have the same id as well.
        with Client(proxy, screen, BOB) as bob:
            headline = f"Bob, who has a token of his own, asks {about}"
            answers.append(bob.refused("tasks/get", {"taskId": asked}, headline, UNKNOWN))
    if len(set(answers)) > 1:
        raise UnexpectedError("the two refusals should have the same bytes")
    screen.event(f"The two refusals are the same, byte for byte ({len(answers[0])} bytes).")
    alice.refused(
        "tasks/get",
        {"taskId": task_id},
        "And Alice, by the server's id, which is none to the proxy",
        UNKNOWN,
    )


def _loss(alice: Client, screen: Screen, server: ServerProcess, handle: str, task_id: str) -> None:
    server.kill()
    screen.event("kill -9: the server is gone.")
    server.start_again(server.file.with_name("empty.db"))
    screen.event("A new process serves an empty file, on the same port.")
    with Client(server.url, screen) as direct:
        direct.refused("tasks/get", {"taskId": task_id}, "Straight to the server, by its own id", UNKNOWN)
    _completed(
        alice,
        handle,
        "Alice, to the proxy: how did it end?",
        {"the proxy kept the end when it saw it, for a day": lambda view: view["taskId"] == handle},
    )
