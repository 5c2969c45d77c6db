"""The load: customers who make tasks and see to them, and write down every acknowledgement that they get.

They speak plain HTTP, one request at a time on a connection: what was acknowledged is exactly what was read
to its last byte. What was sent and not acknowledged may have been done or not, and counts as neither.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import partial
from http.client import HTTPConnection, HTTPException
from random import Random
from threading import Event as Flag
from time import monotonic, sleep, time_ns
from typing import Any, Final
from urllib.parse import urlsplit

from attrs import define, field, frozen

from mcp_tasks_proto.vocabulary import CLIENT_CAPABILITIES, MODERN_VERSION, PROTOCOL_VERSION, TASKS_EXTENSION
from mcp_tasks_proto.wire.http import request_headers
from tests.crash.checker import ENDED
from tests.crash.history import (
    AnswerAcknowledged,
    AnswerSent,
    CancelAcknowledged,
    CancelSent,
    Created,
    Event,
    Refused,
    View,
    Viewed,
)
from tests.crash.kinds import ASKING, KINDS

__all__ = ["Customer", "Life"]

ANSWER_S: Final = 60.0
"""For one answer, on a machine that is busy."""
SETTLING_S: Final = 120.0
"""For all tasks to end, once nobody kills any more."""
BREATH_S: Final = 0.01

AT_ONCE: Final = 6
"""Tasks that a customer sees to at a time."""
CANCELLED_SHARE: Final = 0.15
"""Of the tasks that would end by themselves."""
REREAD_SHARE: Final = 0.15
"""Of the requests: for a task that has ended."""
TWICE_SHARE: Final = 0.2
"""Of the answers: they are sent again, with another value."""

METADATA: Final = {
    PROTOCOL_VERSION: MODERN_VERSION,
    CLIENT_CAPABILITIES: {"elicitation": {}, "extensions": {TASKS_EXTENSION: {}}},
}
UNKNOWN_TASK: Final = -32602


@frozen(eq=False)
class Life:
    """One server process, as customers know it."""

    number: int
    url: str
    killed: Flag
    """Set before it is killed, or never."""


class _GoneError(Exception):
    """There is nothing more to be had from this life."""


@define(eq=False)
class _Followed:
    """A task that a customer sees to."""

    task_id: str
    kind: str
    view: View
    to_cancel: bool
    over: bool = False
    """It has ended or expired."""


@define(eq=False)
class Customer:
    """Has tasks of its own; each is looked at by nobody else."""

    random: Random
    history: list[Event]
    _under_way: list[_Followed] = field(init=False, factory=list)
    _over: list[_Followed] = field(init=False, factory=list)
    _connections: dict[Life, HTTPConnection] = field(init=False, factory=dict)
    """To the servers that are there, as far as is known."""
    _life: Life = field(init=False)
    """The one that is asked at the moment."""

    # -- what it does --------------------------------------------------------------------------------------

    def work(self, lives: Sequence[Life], stop: Flag) -> None:
        """Make tasks and see to them, asking now this server, now that."""
        with self._connected(lives):
            while self._connections and not stop.is_set():
                self._one_after_another([self._next_step])

    def settle(self, lives: Sequence[Life], stop: Flag) -> None:
        """See every task to its end; then look at each once more."""
        with self._connected(lives):
            patience = monotonic() + SETTLING_S
            while self._under_way and monotonic() < patience:
                self._one_after_another([partial(self._see_to, task) for task in self._under_way])
                sleep(BREATH_S)
            self._one_after_another([partial(self._look, task) for task in [*self._over, *self._under_way]])

    @contextmanager
    def _connected(self, lives: Sequence[Life]) -> Iterator[None]:
        with ExitStack() as stack:
            for life in lives:
                address = urlsplit(life.url)
                assert address.hostname is not None
                connection = HTTPConnection(address.hostname, address.port, timeout=ANSWER_S)
                self._connections[life] = stack.enter_context(closing(connection))
            yield
        self._connections.clear()

    def _one_after_another(self, steps: Sequence[Callable[[], None]]) -> None:
        for step in steps:
            if self._connections:
                self._life = self.random.choice(list(self._connections))
                with suppress(_GoneError):
                    step()

    def _next_step(self) -> None:
        if self._over and self.random.random() < REREAD_SHARE:
            self._look(self.random.choice(self._over))
        elif len(self._under_way) < AT_ONCE and self.random.random() < 1 / (1 + len(self._under_way)):
            self._create(self.random.choice(KINDS))
        elif self._under_way:
            self._see_to(self.random.choice(self._under_way))

    # -- one task ------------------------------------------------------------------------------------------

    def _create(self, kind: str) -> None:
        view = self._ask("tools/call", {"name": kind, "arguments": {}})
        assert view is not None
        task_id = view["taskId"]
        self.history.append(Created(task_id=task_id, life=self._life.number, kind=kind, view=view))
        to_cancel = kind == "endless" or (kind != "brief" and self.random.random() < CANCELLED_SHARE)
        self._under_way.append(_Followed(task_id, kind, view, to_cancel))

    def _see_to(self, task: _Followed) -> None:
        """Look how it stands, and do what is to be done about that."""
        self._look(task)
        if task.over:
            self._under_way.remove(task)
            self._over.append(task)
        elif task.to_cancel and self.random.random() < 0.5:
            self._cancel(task)
        elif task.kind in ASKING and task.view["status"] == "input_required":
            self._answer(task, task.view["inputRequests"])

    def _look(self, task: _Followed) -> None:
        asked_at_ms = unix_ms()
        view = self._ask("tasks/get", {"taskId": task.task_id})
        if view == task.view:
            view = task.view  # one object for all that are equal keeps the history small
        self.history.append(
            Viewed(
                task_id=task.task_id,
                life=self._life.number,
                asked_at_ms=asked_at_ms,
                answered_at_ms=unix_ms(),
                view=view,
            )
        )
        if view is None:
            task.over = True
        else:
            task.view = view
            task.over = view["status"] in ENDED

    def _cancel(self, task: _Followed) -> None:
        self.history.append(CancelSent(task_id=task.task_id, life=self._life.number))
        if self._ask("tasks/cancel", {"taskId": task.task_id}) is not None:
            self.history.append(CancelAcknowledged(task_id=task.task_id, life=self._life.number))

    def _answer(self, task: _Followed, asked: Mapping[str, Any]) -> None:
        """Answer some of the questions; at times once more, which must change nothing (UPD.3)."""
        keys = self.random.sample(sorted(asked), self.random.randint(1, len(asked)))
        for _ in range(2 if self.random.random() < TWICE_SHARE else 1):
            responses = {}
            for key in keys:
                value = f"{self.random.getrandbits(64):x}"
                responses[key] = {"action": "accept", "content": {"value": value}}
                self.history.append(
                    AnswerSent(
                        task_id=task.task_id,
                        life=self._life.number,
                        key=key,
                        question=asked[key]["params"]["message"],
                        value=value,
                    )
                )
            if self._ask("tasks/update", {"taskId": task.task_id, "inputResponses": responses}) is None:
                return
            for key in keys:
                self.history.append(AnswerAcknowledged(task_id=task.task_id, life=self._life.number, key=key))

    # -- one request ---------------------------------------------------------------------------------------

    def _ask(self, method: str, params: Mapping[str, Any]) -> View | None:
        """Return the result; ``None``: there is no such task. Raises :class:`_GoneError`."""
        params = {**params, "_meta": METADATA}
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        headers = dict(request_headers(method, params, MODERN_VERSION))
        connection = self._connections[self._life]
        try:
            connection.request("POST", urlsplit(self._life.url).path, json.dumps(message).encode(), headers)
            answer = json.loads(connection.getresponse().read())
        except (OSError, HTTPException) as error:
            if not self._life.killed.is_set():
                self._refused(method, f"the connection ended with {error!r}")
            del self._connections[self._life]
            raise _GoneError from error
        if "result" in answer:
            result: View = answer["result"]
            return result
        if method == "tools/call" or answer["error"]["code"] != UNKNOWN_TASK:
            self._refused(method, str(answer["error"]))
            raise _GoneError
        return None

    def _refused(self, method: str, why: str) -> None:
        self.history.append(Refused(life=self._life.number, method=method, why=why))


def unix_ms() -> int:
    """Return the time, as the server's clock has it: it is the same."""
    return time_ns() // 1_000_000
