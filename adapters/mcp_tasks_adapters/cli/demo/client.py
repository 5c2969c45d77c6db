"""The client of ``mcp-tasks demo``: plain HTTP from the standard library, and nothing taken on trust."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from http.client import HTTPConnection, HTTPException
from time import monotonic, sleep
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import urlsplit

from mcp_tasks_adapters.cli.demo.screen import Screen
from mcp_tasks_proto.vocabulary import (
    CLIENT_CAPABILITIES,
    CLIENT_INFO,
    MODERN_VERSION,
    PROTOCOL_VERSION,
    TASKS_EXTENSION,
)
from mcp_tasks_proto.wire.http import request_headers

__all__ = ["ANSWER_S", "Client", "Notices", "UnexpectedError", "judge"]

Notices = Mapping[str, Callable[[Any], bool]]
"""What a reader should notice in a result -> whether it is so."""

ANSWER_S: Final = 10.0
"""For one answer."""
POLLING_S: Final = 20.0
"""For a task to get to where it should."""

METADATA: Final = {
    PROTOCOL_VERSION: MODERN_VERSION,
    CLIENT_INFO: {"name": "mcp-tasks demo", "version": "1"},
    CLIENT_CAPABILITIES: {"elicitation": {}, "extensions": {TASKS_EXTENSION: {}}},
}
"""Said anew on every request: there are no sessions."""


class UnexpectedError(Exception):
    """Something was not as expected; the message says what."""


class Client:
    """One keep-alive connection, each message shown on ``screen`` as it goes and comes."""

    def __init__(self, url: str, screen: Screen, token: str | None = None) -> None:
        """``token``: a bearer token to say with each request who asks."""
        address = urlsplit(url)
        assert address.hostname is not None
        self._credentials = {} if token is None else {"Authorization": f"Bearer {token}"}
        self._connection = HTTPConnection(address.hostname, address.port, timeout=ANSWER_S)
        self._path = address.path
        self._screen = screen
        self._requests = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()

    def ask(self, method: str, params: Mapping[str, Any], headline: str, notices: Notices) -> Any:
        """Send a request and return its result, in which every one of ``notices`` must be so.

        Raises :class:`UnexpectedError` when one is not, or anything but a result comes back.
        """
        message, status, body = self._request(method, params, headline)
        return judge(self._screen, message, status, json.loads(body), notices)

    def refused(self, method: str, params: Mapping[str, Any], headline: str, notices: Notices) -> bytes:
        """Send a request that is answered with an error, and return the answer's bytes.

        Raises :class:`UnexpectedError` when one of ``notices`` is not so of the error, or it is none.
        """
        message, status, body = self._request(method, params, headline)
        answer = json.loads(body)
        error = answer.get("error")
        unmet = _show(self._screen, status, answer, error, notices)
        if answer.get("id") != message["id"] or not isinstance(error, dict):
            raise UnexpectedError(f"{method}: an error was due, with the id of the request")
        _all_met(method, unmet)
        return body

    def poll(
        self, task_id: str, until: str, headline: str, notices: Notices, saying: str | None = None
    ) -> Any:
        """Get the task, as often as it asks to be polled, until its status is ``until``; return that view.

        ``saying`` is a pattern that its status message must match, too. ``notices`` are about that view.
        Raises :class:`UnexpectedError` when the task gets elsewhere.
        """
        deadline = monotonic() + POLLING_S

        def there(view: Any) -> bool:
            said = saying is None or re.search(saying, view["statusMessage"]) is not None
            return view["status"] == until and said

        while True:
            message, status, body = self._request("tasks/get", {"taskId": task_id}, headline)
            answer = json.loads(body)
            arrived = _holds(there, answer.get("result"))
            view = judge(self._screen, message, status, answer, notices if arrived else STILL_WORKING)
            if arrived:
                return view
            if monotonic() > deadline:
                raise UnexpectedError(f"the task should have become {until} within {POLLING_S:g} s")
            sleep(view["pollIntervalMs"] / 1000)

    def hang_up(self) -> None:
        """Close the connection; the next request opens another one."""
        self._connection.close()

    def _request(
        self, method: str, params: Mapping[str, Any], headline: str
    ) -> tuple[dict[str, Any], int, bytes]:
        """Send a request; return it, and the status and body of the answer, which is JSON."""
        self._requests += 1
        params = {**params, "_meta": METADATA}
        message = {"jsonrpc": "2.0", "id": self._requests, "method": method, "params": params}
        headers = request_headers(method, params, MODERN_VERSION)
        self._screen.request(headline, self._path, headers, message)
        try:
            fields = {**dict(headers), **self._credentials}
            self._connection.request("POST", self._path, json.dumps(message), fields)
            response = self._connection.getresponse()
            body = response.read()
            json.loads(body)
        except (OSError, HTTPException, ValueError) as error:
            raise UnexpectedError(f"{method}: no answer that could be read ({error!r})") from error
        return message, response.status, body


STILL_WORKING: Final[Notices] = {
    "still working; it says when to come back": lambda view: (
        view["status"] == "working" and view["pollIntervalMs"] > 0
    ),
}


def judge(
    screen: Screen, request: Mapping[str, Any], status: int, answer: dict[str, Any], notices: Notices
) -> Any:
    """Show the answer to a request, and return its result, in which every one of ``notices`` must be so.

    Raises :class:`UnexpectedError` when one is not, or it is no answer with a result.
    """
    method, result = request["method"], answer.get("result")
    unmet = _show(screen, status, answer, result, notices)
    if status != 200 or answer.get("id") != request["id"] or not isinstance(result, dict):
        raise UnexpectedError(f"{method}: a result was due, with HTTP 200 and the id of the request")
    _all_met(method, unmet)
    return result


def _show(screen: Screen, status: int, answer: dict[str, Any], looked_at: Any, notices: Notices) -> list[str]:
    """Show an answer with the notices that are so of what is looked at in it; return the others."""
    unmet = [notice for notice, holds in notices.items() if not _holds(holds, looked_at)]
    screen.response(status, answer, [notice for notice in notices if notice not in unmet])
    return unmet


def _all_met(method: str, unmet: Sequence[str]) -> None:
    if unmet:
        raise UnexpectedError(f"{method}: this should be so, and is not: {'; '.join(unmet)}")


def _holds(holds: Callable[[Any], bool], result: Any) -> bool:
    """Whether it is so; a result that lacks what is looked at is one where it is not."""
    try:
        return holds(result)
    except (KeyError, IndexError, TypeError):
        return False
