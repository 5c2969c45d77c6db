"""How the engine's effects are told, one line each.

What is as the settings, the request or the short forms would have it is left out; everything else is told,
in JSON where there is no shorter way. Of what a handler is given, its copy of the request and the client's
capabilities are left out.

==============================================  ==============================================================
``reply 1 complete``                            a result; other members follow
``reply 1 task T working made +0``              the handle of a new task
``reply 2 T working made +0 changed +100``      a task's view
``reply 3 asks confirm``                        input is required before the call can go on
``reply 4 error -32602 "Task not found"``       an error; its data, and ``http 400`` if it is not 200, follow
``reply 4 error -32021 needs tasks http 400``   the extension was not declared
``reply 5 nothing``                             a notification was taken
``reply 6 ends the stream``                     the server ends a listen stream
``send 6 acknowledged T U tools``               a stream's first message
``send 6 T completed made +0 result "done"``    a notification with a view
``send 2 elicitation/create id 1 {…}``          a question to a client of 2025-11-25, by its id and params
``start tool 1 render {}, may become a task``   ``as alice``, ``state`` and answers follow where there are any
``resume work T run 1 render {} from {"at": 2}``  the tool is to run again, from what was saved; ``as alice``
                                                and so on follow
``deliver T first.confirm=accept``              an answer to what was asked in the question ``first``
``tell T to stop: requested``                   or ``expired``, ``ended``, ``taken over``
``accept T completes``                          the report is durable, or was too late to matter
``save T 1 -> 2 working``                       or ``save T new working``
``list tasks of alice after T, 100 at most``    for a caller of 2025-11-25; of a first page, without ``after``
==============================================  ==============================================================
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from attrs import frozen

from mcp_tasks_proto.effects import (
    AcceptReport,
    Delete,
    DeliverInput,
    Effect,
    FindExpired,
    Forward,
    ListTasks,
    Load,
    RejectReport,
    Reply,
    RequestCancel,
    ResumeWork,
    Save,
    Send,
    StartTool,
    StartWork,
    StopCall,
)
from mcp_tasks_proto.errors import missing_capability
from mcp_tasks_proto.limits import Limits
from mcp_tasks_proto.testing.traces.words import ACCEPT, question, task_name, tell_json
from mcp_tasks_proto.vocabulary import SERVER_INFO, SUBSCRIPTION_ID

__all__ = ["Teller"]


@frozen
class Teller:
    """Tells effects. ``start`` is the time called ``+0``, in Unix milliseconds."""

    start: int
    limits: Limits
    server_info: Mapping[str, Any]
    request_ids: Mapping[Hashable, Any]
    """The request id of each exchange, which messages of its stream must name."""

    def tell(self, effect: Effect) -> str:
        """Return an effect as one line."""
        return _TELL[type(effect)](self, effect)

    # -- to the peer -----------------------------------------------------------------------------

    def _reply(self, reply: Reply) -> str:
        if reply.message is None:
            return f"reply {reply.exchange} nothing"
        if "error" in reply.message:
            status = "" if reply.http_status == 200 else f" http {reply.http_status}"
            return f"reply {reply.exchange} {_error(reply.message['error'])}{status}"
        return f"reply {reply.exchange} {self._message(reply.exchange, reply.message)}"

    def _send(self, send: Send) -> str:
        return f"send {send.exchange} {self._message(send.exchange, send.message)}"

    def _message(self, exchange: Hashable, message: dict[str, Any]) -> str:
        """Tell a message that is no error; on a shared channel a stream's result is not its last one."""
        if "id" in message and "method" in message:
            asked = f"{message['method']} id {tell_json(message['id'])}"
            return _joined(asked, _rest(message.get("params", {})))
        if "method" in message:
            return self._notification(exchange, message["method"], message["params"])
        result, usual = message["result"], {SERVER_INFO: self.server_info}
        if result == {"resultType": "complete", "_meta": {**usual, **self._subscription(exchange)}}:
            return "ends the stream"
        return self._result(_without_meta(result, usual))

    def _result(self, result: dict[str, Any]) -> str:
        kind = result.pop("resultType", "no resultType")
        if kind == "input_required":
            del result["requestState"]
            return _joined("asks", _questions(result.pop("inputRequests")), _rest(result))
        if "taskId" in result:
            return _joined("" if kind == "complete" else kind, self._view(result))
        return _joined(kind, _content(result))

    def _notification(self, exchange: Hashable, method: str, members: dict[str, Any]) -> str:
        params = _without_meta(members, self._subscription(exchange))
        match method:
            case "notifications/tasks" if "_meta" not in params:
                return self._view(params)
            case "notifications/subscriptions/acknowledged" if "_meta" not in params:
                agreed = params.pop("notifications")
                ids = [task_name(id_) for id_ in agreed.pop("taskIds", ())]
                tools = "tools" if agreed.pop("toolsListChanged", False) else ""
                return _joined("acknowledged", *ids, tools, _rest({**agreed, **params}))
            case _:
                return _joined(method, _rest(params))

    def _subscription(self, exchange: Hashable) -> dict[str, Any]:
        """Return the ``_meta`` of a stream's messages (SUB.1)."""
        return {SUBSCRIPTION_ID: self.request_ids.get(exchange)}

    def _view(self, view: dict[str, Any]) -> str:
        made, changed = self._time(view.pop("createdAt")), self._time(view.pop("lastUpdatedAt"))
        return _joined(
            task_name(view.pop("taskId")),
            view.pop("status"),
            f"made {made}",
            "" if changed == made else f"changed {changed}",
            _setting("ttl", view.pop("ttlMs", "missing"), self.limits.ttl_ms, "unlimited"),
            _setting("poll", view.pop("pollIntervalMs", None), self.limits.poll_interval_ms, "unsaid"),
            tell_json(view.pop("statusMessage")) if "statusMessage" in view else "",
            f"asks {_questions(view.pop('inputRequests'))}" if "inputRequests" in view else "",
            f"result {_inner(view.pop('result'))}" if "result" in view else "",
            _error(view.pop("error")) if "error" in view else "",
            _rest(view),
        )

    def _time(self, text: str) -> str:
        """Return a time of the wire as it is told in the script."""
        since = datetime.fromisoformat(text.removesuffix("Z")) - _EPOCH
        return f"+{since // _MILLISECOND - self.start}"

    # -- to handlers and workers -------------------------------------------------------------------

    def _start_tool(self, start: StartTool) -> str:
        told = _joined(
            f"start tool {start.exchange} {start.tool} {tell_json(start.arguments)}",
            _given(start.principal, start.answers, start.state),
        )
        return f"{told}, may become a task" if start.can_create_task else told

    def _forward(self, forward: Forward) -> str:
        given = _given(forward.principal, forward.answers, forward.state)
        return _joined(f"forward {forward.exchange} {forward.method}", given)

    def _stop_call(self, stop: StopCall) -> str:
        return f"stop call {stop.exchange}"

    def _start_work(self, start: StartWork) -> str:
        return f"start work {task_name(start.task_id)}"

    def _resume_work(self, resume: ResumeWork) -> str:
        return _joined(
            f"resume work {task_name(resume.task_id)} run {resume.resumption} {resume.tool}",
            tell_json(resume.arguments),
            "" if resume.checkpoint is None else f"from {tell_json(resume.checkpoint)}",
            _given(resume.principal, resume.answers, resume.state),
        )

    def _deliver(self, deliver: DeliverInput) -> str:
        answers = (
            f"{one.ask}.{one.name}={_answer(one.response)}"
            + ("" if one.key == one.name else f" for {one.key}")
            for one in deliver.answers
        )
        return _joined(f"deliver {task_name(deliver.task_id)}", *answers)

    def _cancel(self, cancel: RequestCancel) -> str:
        return f"tell {task_name(cancel.task_id)} to stop: {cancel.reason.value}"

    def _accept(self, accept: AcceptReport) -> str:
        return f"accept {accept.token}"

    def _reject(self, reject: RejectReport) -> str:
        return f"reject {reject.token}: {reject.reason}"

    # -- to the store ------------------------------------------------------------------------------

    def _load(self, load: Load) -> str:
        return f"load {task_name(load.task_id)}"

    def _save(self, save: Save) -> str:
        record = save.record
        version = "new" if save.expected_version is None else f"{save.expected_version} -> {record.version}"
        return f"save {task_name(record.task_id)} {version} {record.status.value}"

    def _delete(self, delete: Delete) -> str:
        return f"delete {task_name(delete.task_id)} {delete.expected_version}"

    def _find_expired(self, find: FindExpired) -> str:
        return f"find expired at +{find.now_ms - self.start}, {find.limit} at most"

    def _list_tasks(self, listed: ListTasks) -> str:
        after = "" if listed.after is None else f" after {task_name(listed.after)}"
        return f"list tasks of {listed.principal}{after}, {listed.limit} at most"


_TELL: Final[Mapping[type, Callable[[Teller, Any], str]]] = {
    Reply: Teller._reply,
    Send: Teller._send,
    StartTool: Teller._start_tool,
    Forward: Teller._forward,
    StopCall: Teller._stop_call,
    StartWork: Teller._start_work,
    ResumeWork: Teller._resume_work,
    DeliverInput: Teller._deliver,
    RequestCancel: Teller._cancel,
    AcceptReport: Teller._accept,
    RejectReport: Teller._reject,
    Load: Teller._load,
    Save: Teller._save,
    Delete: Teller._delete,
    FindExpired: Teller._find_expired,
    ListTasks: Teller._list_tasks,
}

_EPOCH: Final = datetime(1970, 1, 1)
_MILLISECOND: Final = timedelta(milliseconds=1)


def _joined(*parts: str) -> str:
    return " ".join(part for part in parts if part)


def _without_meta(members: Mapping[str, Any], usual: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy without ``_meta``, if that is as usual."""
    copy = dict(members)
    if copy.get("_meta") == usual:
        del copy["_meta"]
    return copy


def _rest(members: Mapping[str, Any]) -> str:
    return tell_json(members) if members else ""


def _setting(name: str, value: Any, usual: int, none: str) -> str:
    if value == usual:
        return ""
    return f"{name} {none if value is None else value}"


def _error(error: Mapping[str, Any]) -> str:
    if error == missing_capability().to_wire():
        return f"error {error['code']} needs tasks"
    data = tell_json(error["data"]) if "data" in error else ""
    others = {name: value for name, value in error.items() if name not in ("code", "message", "data")}
    return _joined(f"error {error['code']} {tell_json(error['message'])}", data, _rest(others))


def _inner(result: Mapping[str, Any]) -> str:
    """Return the result in a task's view, which must say that it is complete (LIFE.7)."""
    content = {name: value for name, value in result.items() if name != "resultType"}
    kind = result.get("resultType", "without resultType")
    return _joined(_content(content) or "{}", "" if kind == "complete" else kind)


def _content(result: Mapping[str, Any]) -> str:
    """Return a result; one text alone is told as that text."""
    match result:
        case {"content": [{"type": "text", "text": text, **others}]} if len(result) == 1 and not others:
            return tell_json(text)
    return _rest(result)


def _questions(requests: Mapping[str, Any]) -> str:
    return _joined(
        *(
            key if request == question(key.partition(".")[0]) else f"{key}={tell_json(request)}"
            for key, request in requests.items()
        )
    )


def _answer(response: Mapping[str, Any]) -> str:
    if response == ACCEPT:
        return "accept"
    return str(response["action"]) if set(response) == {"action"} else tell_json(response)


def _given(principal: str | None, answers: Mapping[str, Any], state: Any) -> str:
    return _joined(
        "" if principal is None else f"as {principal}",
        *(f"{name}={_answer(response)}" for name, response in answers.items()),
        "" if state is None else f"state {tell_json(state)}",
    )
