"""The other client of ``mcp-tasks demo``: one of 2025-11-25, with a session and streams."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPException, HTTPResponse
from typing import Any, Final
from urllib.parse import urlsplit

from mcp_tasks_adapters.cli.demo.client import ANSWER_S, Notices, UnexpectedError, judge
from mcp_tasks_adapters.cli.demo.screen import Screen
from mcp_tasks_proto.legacy.vocabulary import INITIALIZE, INITIALIZED
from mcp_tasks_proto.limits import Limits
from mcp_tasks_proto.vocabulary import LEGACY_VERSION
from mcp_tasks_proto.wire.sse import EventDecoder

__all__ = ["LegacyClient"]

CHUNK_BYTES: Final = 65_536


class LegacyClient:
    """One session; each message has a connection of its own."""

    def __init__(self, url: str, screen: Screen) -> None:
        self._url = urlsplit(url)
        self._screen = screen
        self._session: str | None = None
        self._requests = 0

    def open(self, headline: str, notices: Notices) -> None:
        """Open the session. Raises :class:`UnexpectedError`, as everything here does."""
        params = {
            "protocolVersion": LEGACY_VERSION,
            "capabilities": {"elicitation": {}},
            "clientInfo": {"name": "mcp-tasks demo, of old", "version": "1"},
        }
        message = self._request(INITIALIZE, params)
        with self._sent(message, headline) as response:
            self._session = response.getheader("Mcp-Session-Id")
            judge(self._screen, message, response.status, json.loads(response.read()), notices)
        self._tell({"jsonrpc": "2.0", "method": INITIALIZED}, "The session is open")

    def ask(self, method: str, params: Mapping[str, Any], headline: str, notices: Notices) -> Any:
        """Send a request and return its result, in which every one of ``notices`` must be so."""
        message = self._request(method, params)
        with self._sent(message, headline) as response:
            return judge(self._screen, message, response.status, json.loads(response.read()), notices)

    def wait(self, task_id: str, answer: Mapping[str, Any], headline: str, notices: Notices) -> Any:
        """Wait for the result of a task, and answer whatever is asked on the way with ``answer``."""
        message = self._request("tasks/result", {"taskId": task_id})
        with self._sent(message, headline) as response:
            for heard in _messages(response):
                if "method" not in heard:
                    return judge(self._screen, message, response.status, heard, notices)
                self._screen.heard(heard)
                if "id" in heard:
                    reply = {"jsonrpc": "2.0", "id": heard["id"], "result": answer}
                    self._tell(reply, "The answer, as a message of its own")
        raise UnexpectedError("tasks/result: its stream ended without a result")

    def _request(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        self._requests += 1
        return {"jsonrpc": "2.0", "id": self._requests, "method": method, "params": params}

    def _tell(self, message: dict[str, Any], headline: str) -> None:
        """Send what is no request: the server takes it, and says no more."""
        with self._sent(message, headline) as response:
            status = response.status
        self._screen.response(status, None, [])
        if status != 202:
            raise UnexpectedError(f"{headline}: HTTP 202 was due")

    @contextmanager
    def _sent(self, message: dict[str, Any], headline: str) -> Iterator[HTTPResponse]:
        """Send a message; give the response, of which there is only the head yet."""
        headers = [
            ("Content-Type", "application/json"),
            ("Accept", "application/json, text/event-stream"),
            ("MCP-Protocol-Version", LEGACY_VERSION),
        ]
        if self._session is not None:
            headers.append(("Mcp-Session-Id", self._session))
        self._screen.request(headline, self._url.path, headers, message)
        assert self._url.hostname is not None
        connection = HTTPConnection(self._url.hostname, self._url.port, timeout=ANSWER_S)
        try:
            connection.request("POST", self._url.path, json.dumps(message), dict(headers))
            yield connection.getresponse()
        except (OSError, HTTPException, ValueError) as error:
            raise UnexpectedError(f"{headline}: no answer that could be read ({error!r})") from error
        finally:
            connection.close()


def _messages(response: HTTPResponse) -> Iterator[dict[str, Any]]:
    """Give the messages of a stream as they come."""
    decoder = EventDecoder(limits=Limits())
    while chunk := response.read1(CHUNK_BYTES):
        for event in decoder.feed(chunk):
            yield json.loads(event.data)
