"""``tasks/result``: requests that wait for the end of a task and carry its questions (LEG.4, LEG.8).

A waiter listens to its task as a modern client would, with ``subscriptions/listen``. Each view that comes is
told as ``notifications/tasks/status``. Behind a proxy none may come although the task is gone: there it is
looked at now and then. What the task asks goes out on the stream of one waiter, once, and on that of another
when the first one leaves. Answers go in as ``tasks/update``.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from functools import partial
from typing import Any, Final

from attrs import define, field

from mcp_tasks_proto.errors import STORE_UNAVAILABLE, ErrorObject, invalid_params
from mcp_tasks_proto.input_requests import check_response, missing_capabilities
from mcp_tasks_proto.legacy.server.inner import Inner, InnerExchange
from mcp_tasks_proto.legacy.server.sessions import ClientRequest
from mcp_tasks_proto.legacy.translation import expiry_ms, final_answer, legacy_task, without_related_task
from mcp_tasks_proto.legacy.vocabulary import TASK_STATUS
from mcp_tasks_proto.lifecycle import TERMINAL
from mcp_tasks_proto.timers import Timers
from mcp_tasks_proto.wire.jsonrpc import Response, notification_message

__all__ = ["Waiter", "Waiting", "answer_of"]

RETRY_MS: Final = 1000
"""Until a task is looked at: no news of it came, or it could not be seen, or it is there after its time."""

ENDED: Final = frozenset(status.value for status in TERMINAL)


def answer_of(request: Mapping[str, Any], response: Response) -> Mapping[str, Any] | ErrorObject:
    """Return what a client's response to ``request`` means to whoever asked.

    An elicitation that the client cannot or will not show counts as cancelled; an error of any other kind is
    one for the call itself. Whose task it is means nothing to who asked.
    """
    if response.error is None:
        return without_related_task(response.result or {})
    return _meaning_of(response.error, request)


def _meaning_of(error: ErrorObject, request: Mapping[str, Any]) -> Mapping[str, Any] | ErrorObject:
    return {"action": "cancel"} if request["method"] == "elicitation/create" else error


@define(eq=False, repr=False)
class Waiter:
    """One ``tasks/result`` that is open."""

    request: ClientRequest
    task_id: str
    listen: InnerExchange | None = None
    """The exchange with the engine that brings its news; ``None``: the store could not tell of the task when
    it was to begin."""
    view: Mapping[str, Any] = field(factory=dict)
    """The latest, as the modern era has it."""
    asking: dict[str, None] = field(factory=dict)
    """Keys of what was asked on its stream and is not answered, in that order."""

    @property
    def outstanding(self) -> Mapping[str, Any]:
        """The input requests of the view."""
        requests: Mapping[str, Any] = self.view.get("inputRequests", {})
        return requests

    def can_ask(self, key: str) -> bool:
        """Whether its client can be asked this: it is there, takes streams, and declares what that needs."""
        capabilities = self.request.caller.capabilities
        asked = self.outstanding.get(key)
        return (
            asked is not None
            and not self.request.session.ended
            and self.request.outlet.can_stream
            and not missing_capabilities({key: asked}, capabilities)
        )


@define(eq=False, repr=False, kw_only=True)
class Waiting:
    """All waiters of a server."""

    inner: Inner
    timers: Timers
    shutting_down: ErrorObject
    """What is said to all of them when the engine stops."""
    _by_task: dict[str, dict[Hashable, Waiter]] = field(init=False, factory=dict)
    _asked: set[tuple[str, str]] = field(init=False, factory=set)
    """Task id and key of what was asked and is not settled: each is asked once at a time."""
    _done: dict[str, set[str]] = field(init=False, factory=dict)
    """Keys whose answers have got there, by task. No key is used twice (INP.1), so that a view that still
    asks for one was on its way, from a proxy's upstream."""

    def begin(self, request: ClientRequest, task_id: str) -> None:
        """Wait for the end of a task."""
        waiter = Waiter(request, task_id)
        self._by_task.setdefault(task_id, {})[request] = waiter
        request.ended = partial(self._end, waiter)
        self._listen(waiter)

    def _listen(self, waiter: Waiter) -> None:
        waiter.listen = waiter.request.inner = self.inner.exchange()
        self.inner.request(
            "subscriptions/listen",
            exchange=waiter.listen,
            params={"notifications": {"taskIds": [waiter.task_id]}},
            caller=waiter.request.caller,
            declares_tasks=True,
            replied=partial(self._listening_ended, waiter),
            sent=partial(self._heard, waiter, waiter.listen),
        )

    def time_passed(self, waiter: Waiter) -> None:
        """The task of a waiter may be gone: look."""
        if waiter.listen is None:
            self._listen(waiter)
        else:
            self._look(waiter)

    def _look(self, waiter: Waiter) -> None:
        self.inner.request(
            "tasks/get",
            {"taskId": waiter.task_id},
            caller=waiter.request.caller,
            declares_tasks=True,
            replied=partial(self._looked, waiter),
        )

    def waits(self, request: ClientRequest) -> bool:
        """Whether this is one of them: whoever takes its rights away ends it, and says so (PRX.7)."""
        return any(request in waiters for waiters in self._by_task.values())

    # -- news ------------------------------------------------------------------------------------------

    def _listening_ended(self, waiter: Waiter, message: Mapping[str, Any], http_status: int) -> None:
        """The engine does not listen any more, or never did. Without an error it does so when it stops: for a
        caller who may not listen any more it has nothing to end (:meth:`waits`)."""
        match message:
            case {"error": {"data": {"reason": reason}}} if reason == STORE_UNAVAILABLE:
                waiter.listen = waiter.request.inner = None
                self._retry(waiter)
            case {"error": _}:
                waiter.request.answer(message, http_status)
            case _:
                waiter.request.fail(self.shutting_down, 503)

    def _retry(self, waiter: Waiter, pause_ms: int = RETRY_MS) -> None:
        """It cannot be told now. Any error would be taken for that of the call, or the task for gone."""
        self.timers.set(waiter, self.inner.now + pause_ms)

    def _heard(self, waiter: Waiter, listen: InnerExchange, message: Mapping[str, Any]) -> None:
        params = message["params"]
        if message["method"] != "notifications/tasks":
            if not params["notifications"]["taskIds"]:
                self.inner.close(listen)
                waiter.listen = waiter.request.inner = None
                self._look(waiter)
                return
            if self.inner.recheck_ms is not None:
                self._retry(waiter)
            self.inner.ready(listen)
            return
        if params["status"] in ENDED:
            self._settle(waiter, params)
        else:
            waiter.view = params
            self._show(waiter, listen)

    def _settle(self, waiter: Waiter, view: Mapping[str, Any]) -> None:
        self._ask_no_more(self._by_task[waiter.task_id].values())
        answer = final_answer(view)
        if isinstance(answer, ErrorObject):
            waiter.request.fail(answer)
        else:
            waiter.request.succeed(answer)

    def _show(self, waiter: Waiter, listen: InnerExchange) -> None:
        """Tell the client how its task stands, and ask what the task asks."""
        request, view = waiter.request, waiter.view
        self._look_later(waiter, view)
        if not request.outlet.can_stream:
            self.inner.ready(listen)
            return
        request.outlet.send(notification_message(TASK_STATUS, legacy_task(view)))
        for key in [key for key in waiter.asking if key not in waiter.outstanding]:
            request.withdraw(key)
            del waiter.asking[key]
            self._asked.discard((waiter.task_id, key))
        for key in waiter.outstanding:
            self._ask(waiter, key)

    def _look_later(self, waiter: Waiter, view: Mapping[str, Any]) -> None:
        """Look again when the task may have expired, or before."""
        now, expiry = self.inner.now, expiry_ms(view)
        looks = [] if expiry is None else [expiry if expiry > now else now + RETRY_MS]
        if self.inner.recheck_ms is not None:
            looks.append(now + self.inner.recheck_ms)
        if looks:
            self.timers.set(waiter, min(looks))
        else:
            self.timers.clear(waiter)

    def _looked(self, waiter: Waiter, message: Mapping[str, Any], http_status: int) -> None:
        """A task that is not listened to is unknown, or the store could not tell: then it is asked again."""
        request, listens = waiter.request, waiter.listen is not None
        if request.over:
            return
        if "error" in message and self.inner.is_gone(message["error"]):
            # Or its caller may not read it any more, and another may.
            waiters, rights = self._by_task[waiter.task_id].values(), request.caller.rights
            self._ask_no_more([one for one in waiters if one.request.caller.rights == rights])
            request.answer(message, http_status)
        elif "result" in message and message["result"]["status"] in ENDED:
            self._settle(waiter, message["result"])  # it was not heard of, or is not yet
        elif "result" in message and listens:
            self._look_later(waiter, message["result"])
        else:
            self._retry(waiter, (self.inner.recheck_ms or RETRY_MS) if listens else RETRY_MS)

    # -- questions -------------------------------------------------------------------------------------

    def _ask(self, waiter: Waiter, key: str) -> None:
        """Ask on this waiter's stream, if it can, unless somebody asks already."""
        place = waiter.task_id, key
        done = key in self._done.get(waiter.task_id, ())
        if place not in self._asked and not done and waiter.can_ask(key):
            self._asked.add(place)
            waiter.asking[key] = None
            request = waiter.outstanding[key]
            waiter.request.ask(
                key, request, partial(self._answered, waiter, key, request), task_id=waiter.task_id
            )

    def _answered(
        self,
        waiter: Waiter,
        key: str,
        asked: Mapping[str, Any],
        response: Response,
        taken: Callable[[], None],
    ) -> None:
        del waiter.request.asks[key]
        del waiter.asking[key]
        answer = answer_of(asked, response)
        if not isinstance(answer, ErrorObject) and (problem := check_response(asked, answer)):
            # There is nobody to tell but the task: the client has said what it has to say.
            error = invalid_params(f"the client's answer to {asked['method']} does not fit it: {problem}")
            answer = _meaning_of(error, asked)
        if isinstance(answer, ErrorObject):
            failed = partial(self._failed, waiter.task_id, key, taken)
            self.inner.fail_task(waiter.task_id, waiter.request.caller, answer, failed)
            return
        self.inner.request(
            "tasks/update",
            {"taskId": waiter.task_id, "inputResponses": {key: answer}},
            caller=waiter.request.caller,
            declares_tasks=True,
            replied=partial(self._updated, waiter.task_id, key, taken),
        )

    def _failed(self, task_id: str, key: str, taken: Callable[[], None]) -> None:
        """The task has ended with the answer, which is none."""
        taken()
        self._release(task_id, key, again=False)

    def _updated(
        self, task_id: str, key: str, taken: Callable[[], None], message: Mapping[str, Any], _: int
    ) -> None:
        """The task has the answer; or it could not be kept, and is asked for once more."""
        taken()
        if "error" not in message and task_id in self._by_task:
            self._done.setdefault(task_id, set()).add(key)
        self._release(task_id, key, again="error" in message)

    def _end(self, waiter: Waiter) -> None:
        """A waiter is gone: what it asked is asked by another."""
        self.timers.clear(waiter)
        if waiter.listen is not None:
            self.inner.close(waiter.listen)
        others = self._by_task[waiter.task_id]
        del others[waiter.request]
        if not others:
            del self._by_task[waiter.task_id]
            self._done.pop(waiter.task_id, None)
        for key in waiter.asking:
            self._release(waiter.task_id, key, again=True)

    def _ask_no_more(self, waiters: Iterable[Waiter]) -> None:
        """A task is over: who has yet to hear of it is not asked what the first to hear was."""
        for waiter in waiters:
            waiter.view = {}

    def _release(self, task_id: str, key: str, *, again: bool) -> None:
        """Nobody asks this any more; ``again``: the first who can asks it now."""
        self._asked.discard((task_id, key))
        if again:
            for waiter in list(self._by_task.get(task_id, {}).values()):
                self._ask(waiter, key)
