"""A server's clients: what a benchmark asks of one server, whichever it is."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import Any

from bench.load import CONNECTIONS, Measured, drive, exchange, send
from bench.messages import COMPLETED, call_load, get_load, task_of

__all__ = ["Client"]

WARM_UP_SECONDS = 0.3
SETTLE_SECONDS = 60.0


class Client:
    """Makes tasks on the server at ``port`` and polls them.

    ``task_ids`` are the tasks to poll; without them, it makes some and waits until they have completed.
    """

    def __init__(self, port: int, *, task_ids: Sequence[str] | None = None) -> None:
        self._port = port
        self._calls = call_load(port)
        if task_ids is None:
            bodies = [exchange(port, self._calls.requests[0], self._calls.marker) for _ in range(CONNECTIONS)]
            self._settle(bodies)
            task_ids = [task_of(body) for body in bodies]
        self.task_ids = task_ids
        self._gets = get_load(port, task_ids)

    def results_json(self) -> str:
        """Return what the server answers to both methods, as a server in ``bare.py`` takes it."""
        call, get = self._calls.requests[0], self._gets.requests[0]
        results: dict[str, Any] = {
            "tools/call": json.loads(exchange(self._port, call))["result"],
            "tasks/get": json.loads(exchange(self._port, get))["result"],
        }
        return json.dumps(results)

    def rate(self, operation: str, seconds: float) -> float:
        """Return how many replies a second ``"get"`` or ``"create"`` gives under full load."""
        if operation == "get":
            return drive(self._port, self._gets, seconds=seconds, warm_up=WARM_UP_SECONDS).rate
        measured = drive(self._port, self._calls, seconds=seconds, warm_up=WARM_UP_SECONDS)
        self._settle(measured.last_bodies)
        return measured.rate

    def create(self, tasks: int) -> Measured:
        """Make at least this many tasks and wait until they have completed."""
        measured = send(self._port, self._calls, replies=tasks)
        self._settle(measured.last_bodies)
        return measured

    def _settle(self, bodies: Sequence[bytes]) -> None:
        """Wait until these tasks have completed: their work must not run into what is measured next."""
        end = time.monotonic() + SETTLE_SECONDS
        for body in bodies:
            poll = get_load(self._port, [task_of(body)]).requests[0]
            while COMPLETED not in exchange(self._port, poll):
                if time.monotonic() > end:
                    raise TimeoutError("tasks that should complete at once do not")
                time.sleep(0.01)
