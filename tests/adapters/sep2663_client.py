"""A small MCP client over raw HTTP, for tests that look at the wire.

It shares nothing with the code under test: every header and ``_meta`` key is written here as the
specification writes it, so that a mistake in the vocabulary cannot hide in both ends.
"""

from __future__ import annotations

import base64
import http.client
import itertools
import json
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

PROTOCOL_VERSION = "2026-07-28"
TASKS = "io.modelcontextprotocol/tasks"
SUBSCRIPTION_ID = "io.modelcontextprotocol/subscriptionId"

DECLARING: dict[str, Any] = {"elicitation": {}, "extensions": {TASKS: {}}}
NOT_DECLARING: dict[str, Any] = {"elicitation": {}}
LEGACY_DECLARING: dict[str, Any] = {
    "elicitation": {},
    "tasks": {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}},
}

NAME_SOURCE = {
    "tools/call": "name",
    "prompts/get": "name",
    "resources/read": "uri",
    "tasks/get": "taskId",
    "tasks/update": "taskId",
    "tasks/cancel": "taskId",
}
PATIENCE_SECONDS = 60
"""After so long without a byte a test fails instead of hanging."""


@dataclass(frozen=True)
class Reply:
    """One answer: the HTTP status, and the JSON-RPC message where there is one."""

    status: int
    message: Any

    @property
    def result(self) -> dict[str, Any]:
        """The result of a request that succeeded."""
        assert self.status == 200, self
        assert "error" not in self.message, self
        result: dict[str, Any] = self.message["result"]
        return result

    @property
    def error(self) -> dict[str, Any]:
        """The error of a request that did not."""
        assert "result" not in self.message, self
        error: dict[str, Any] = self.message["error"]
        return error


@dataclass
class Client:
    """One caller."""

    url: str
    capabilities: Mapping[str, Any] = field(default_factory=lambda: DECLARING)
    user: str = "ann"
    _ids: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def request(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        request_id: str | int | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> Reply:
        """Send a request and wait for its response."""
        message = self._message(method, params or {}, meta or {}, request_id)
        with self._post(message) as response:
            if response.headers.get_content_type() != "text/event-stream":
                return Reply(response.status, json.loads(response.read()))
            for event in _events(response):
                if "id" in event:
                    return Reply(response.status, event)
                assert event["method"] in ("notifications/progress", "notifications/message"), event
            raise AssertionError("the stream ended without a response")

    def notify(self, method: str, params: Mapping[str, Any]) -> int:
        """Send a notification; return the HTTP status."""
        with self._post({"jsonrpc": "2.0", "method": method, "params": dict(params)}) as response:
            assert response.read() == b""
            return response.status

    def call(self, tool: str, arguments: Mapping[str, Any] | None = None, **more: Any) -> Reply:
        """Call a tool."""
        return self.request("tools/call", {"name": tool, "arguments": dict(arguments or {}), **more})

    def start(self, tool: str, arguments: Mapping[str, Any] | None = None) -> str:
        """Call a tool that becomes a task; return the task's id."""
        created = self.call(tool, arguments).result
        assert created["resultType"] == "task", created
        return str(created["taskId"])

    def get(self, task_id: str) -> dict[str, Any]:
        """Return what ``tasks/get`` says."""
        return self.request("tasks/get", {"taskId": task_id}).result

    def update(self, task_id: str, responses: Mapping[str, Any]) -> Reply:
        """Send ``tasks/update``."""
        return self.request("tasks/update", {"taskId": task_id, "inputResponses": dict(responses)})

    def cancel(self, task_id: str) -> Reply:
        """Send ``tasks/cancel``."""
        return self.request("tasks/cancel", {"taskId": task_id})

    def poll(self, task_id: str, status: str) -> dict[str, Any]:
        """Poll until the task has this status; return that view."""
        for view in self._polls(task_id):
            if view["status"] == status:
                return view
            assert view["status"] in ("working", "input_required"), view
        raise AssertionError(f"never {status}")

    def poll_key(self, task_id: str, key: str) -> dict[str, Any]:
        """Poll until the task asks under ``key``; return that view."""
        for view in self._polls(task_id):
            if key in view.get("inputRequests", {}):
                return view
            assert view["status"] in ("working", "input_required"), view
        raise AssertionError(f"never asked for {key}")

    def _polls(self, task_id: str) -> Iterator[dict[str, Any]]:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            yield self.get(task_id)
            time.sleep(0.01)

    @contextmanager
    def listen(
        self, notifications: Mapping[str, Any], *, request_id: str | int = "listen"
    ) -> Iterator[Listening]:
        """Open ``subscriptions/listen``; leaving the context closes the stream."""
        params = {"notifications": dict(notifications)}
        message = self._message("subscriptions/listen", params, {}, request_id)
        with self._post(message) as response:
            assert response.status == 200, response.read()
            assert response.headers.get_content_type() == "text/event-stream"
            yield Listening(_events(response))

    def _message(
        self,
        method: str,
        params: Mapping[str, Any],
        meta: Mapping[str, Any],
        request_id: str | int | None,
    ) -> dict[str, Any]:
        own_meta = {
            "io.modelcontextprotocol/protocolVersion": PROTOCOL_VERSION,
            "io.modelcontextprotocol/clientInfo": {"name": "raw-client", "version": "1.0"},
            "io.modelcontextprotocol/clientCapabilities": self.capabilities,
        }
        return {
            "jsonrpc": "2.0",
            "id": next(self._ids) if request_id is None else request_id,
            "method": method,
            "params": {**params, "_meta": {**own_meta, **meta}},
        }

    @contextmanager
    def _post(self, message: Mapping[str, Any]) -> Iterator[http.client.HTTPResponse]:
        target = urlsplit(self.url)
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": PROTOCOL_VERSION,
            "Mcp-Method": message["method"],
            "X-User": self.user,
        }
        source = NAME_SOURCE.get(message["method"])
        if source is not None:
            headers["Mcp-Name"] = header_value(message["params"][source])
        connection = http.client.HTTPConnection(target.netloc, timeout=PATIENCE_SECONDS)
        try:
            connection.request("POST", target.path, json.dumps(message), headers)
            with connection.getresponse() as response:
                yield response
        finally:
            connection.close()


class Listening:
    """An open listen stream."""

    def __init__(self, events: Iterator[dict[str, Any]]) -> None:
        self._events = events
        self.seen: list[dict[str, Any]] = []

    def next(self) -> dict[str, Any]:
        """Wait for the next message."""
        message = next(self._events)
        self.seen.append(message)
        return message

    def next_task(self) -> dict[str, Any]:
        """Wait for the next message, which must be a task's view; return its params."""
        message = self.next()
        assert message["method"] == "notifications/tasks", message
        params: dict[str, Any] = message["params"]
        return params

    def until(self, task_id: str, *statuses: str) -> dict[str, Any]:
        """Wait for a view of this task with one of these statuses; return its params."""
        while True:
            view = self.next_task()
            if view["taskId"] == task_id and view["status"] in statuses:
                return view

    def rest(self) -> list[dict[str, Any]]:
        """Wait for the end of the stream; return what still came."""
        rest = list(self._events)
        self.seen += rest
        return rest


def bare(view: Mapping[str, Any]) -> dict[str, Any]:
    """Return a task's own fields: a view without what its envelope adds."""
    return {name: value for name, value in view.items() if name not in ("_meta", "resultType")}


def answer(name: str) -> dict[str, Any]:
    """Return the answer of a user who fills in ``name``."""
    return {"action": "accept", "content": {"name": name}}


def header_value(value: str) -> str:
    """Return a value as it goes into a header: plain where that is safe, or else in Base64."""
    safe = re.fullmatch(r"[!-~]([ -~]*[!-~])?", value) is not None
    if safe and not (value.startswith("=?base64?") and value.endswith("?=")):
        return value
    return f"=?base64?{base64.b64encode(value.encode()).decode('ascii')}?="


def _events(response: http.client.HTTPResponse) -> Iterator[dict[str, Any]]:
    """Read an event stream; comments are skipped, and do not count as signs of life."""
    data: list[str] = []
    deadline = time.monotonic() + PATIENCE_SECONDS
    while line := response.readline().decode():
        assert time.monotonic() < deadline, "nothing but comments"
        name, _, value = line.rstrip("\r\n").partition(":")
        if not name and not value and data:
            yield json.loads("\n".join(data))
            data = []
            deadline = time.monotonic() + PATIENCE_SECONDS
        elif name == "data":
            data.append(value.removeprefix(" "))


class ServerProcess:
    """``mcp-tasks serve`` for one of the servers of ``sep2663_server.py``."""

    def __init__(self, attribute: str, loop: str) -> None:
        target = f"{Path(__file__).with_name('sep2663_server.py')}:{attribute}"
        serve = [sys.executable, "-m", "mcp_tasks_adapters.cli", "serve", target]
        command = [*serve, "--loop", loop, "--port", "0"]
        self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self._log: list[str] = []
        self.url = self._await_url()
        self._reader = threading.Thread(target=self._read_log, daemon=True)
        self._reader.start()

    def terminate(self) -> int:
        """Ask it to end; return its exit status."""
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(PATIENCE_SECONDS)

    def __enter__(self) -> ServerProcess:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        self._reader.join()
        assert self._process.stderr is not None
        self._process.stderr.close()

    def _await_url(self) -> str:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self._log.append(line)
            if found := re.search(r"listening on (\S+)", line):
                return found[1]
        self._process.wait()
        self._process.stderr.close()
        raise AssertionError("the server did not start:\n" + "".join(self._log))

    def _read_log(self) -> None:
        assert self._process.stderr is not None
        self._log.extend(self._process.stderr)
