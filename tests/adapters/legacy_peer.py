"""A server of 2025-11-25 on stdio, by hand and from the standard library alone: what a client may meet.

``python legacy_peer.py``: a tool that is called as a task and asks, one that is called plainly and asks, and
one that ends the process.
"""

from __future__ import annotations

import json
import sys
from typing import Any

NAME: dict[str, Any] = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
RELATED = {"io.modelcontextprotocol/related-task": {"taskId": "t1"}}
TIMES = {"createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:00Z"}

answers: dict[Any, dict[str, Any]] = {}


def write(message: dict[str, Any]) -> None:
    """Send a message."""
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def read() -> dict[str, Any]:
    """Return the next message; the end of the input ends the process."""
    line = sys.stdin.readline()
    if not line:
        sys.exit(0)
    message: dict[str, Any] = json.loads(line)
    return message


def result(request: dict[str, Any], **members: Any) -> None:
    """Answer a request."""
    write({"id": request["id"], "result": members})


def ask(message_id: str, **meta: Any) -> dict[str, Any]:
    """Ask the client's user for a name; return the answer."""
    params = {"message": "Your name?", "requestedSchema": NAME, **({"_meta": meta} if meta else {})}
    write({"id": message_id, "method": "elicitation/create", "params": params})
    while True:
        message = read()
        if message.get("id") == message_id and "result" in message:
            answer: dict[str, Any] = message["result"]
            return answer
        handle(message)


def text(words: str) -> dict[str, Any]:
    """Return a tool's result."""
    return {"content": [{"type": "text", "text": words}]}


def call(request: dict[str, Any]) -> None:
    """Call a tool."""
    match request["params"]["name"]:
        case "greet" if "task" in request["params"]:
            task = {"taskId": "t1", "status": "working", **TIMES, "ttl": 60_000, "pollInterval": 50}
            result(request, task=task)
        case "welcome":
            answer = ask("q-welcome")
            result(request, **text(f"Welcome, {answer['content']['name']}!"))
        case "die":
            sys.exit(7)
        case name:
            write({"id": request["id"], "error": {"code": -32601, "message": f"{name} needs a task"}})


def handle(message: dict[str, Any]) -> None:
    """Take in one message."""
    match message.get("method"):
        case "initialize":
            tasks: dict[str, Any] = {"cancel": {}, "requests": {"tools": {"call": {}}}}
            result(
                message,
                protocolVersion="2025-11-25",
                capabilities={"tools": {}, "tasks": tasks},
                serverInfo={"name": "peer", "version": "1"},
            )
        case "tools/list":
            greet = {"name": "greet", "inputSchema": {}, "execution": {"taskSupport": "required"}}
            plain: list[Any] = [{"name": name, "inputSchema": {}} for name in ("welcome", "die")]
            result(message, tools=[greet, *plain])
        case "tools/call":
            call(message)
        case "tasks/get":
            status = "completed" if "name" in answers else "input_required"
            result(message, taskId="t1", status=status, **TIMES, ttl=60_000, pollInterval=50)
        case "tasks/result":
            if "name" not in answers:
                answers["name"] = ask("q-task", **RELATED)
            assert answers["name"]["_meta"] == RELATED
            result(message, **text(f"Hello, {answers['name']['content']['name']}!"), _meta=RELATED)
        case None | "notifications/initialized" | "notifications/cancelled":
            pass
        case method:
            if "id" in message:
                write({"id": message["id"], "error": {"code": -32601, "message": f"no {method}"}})


if __name__ == "__main__":
    while True:
        handle(read())
