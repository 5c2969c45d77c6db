"""The lines in which a story says what happens."""

from __future__ import annotations

from typing import Any

from attrs import define

from docs.vector_sources.stories.scene import UPSTREAM_HINT_MS, UPSTREAM_TTL_MS, Scene, value_in
from mcp_tasks_proto.inputs import (
    DEFAULT,
    KEEP,
    CallAskedInput,
    CallBecameTask,
    CallFailed,
    CallReturned,
    ExchangeClosed,
    MessageReceived,
    ShutdownStarted,
    StreamReady,
    TtlChanged,
    WorkAskedInput,
    WorkCompleted,
    WorkFailed,
    WorkProgressed,
    WorkStopped,
    WorkWithdrewInput,
)
from mcp_tasks_proto.testing.traces.facts import error_in, questions_in, result_in
from mcp_tasks_proto.testing.traces.words import Json, TraceError, Words, task_name

__all__ = ["FactReader"]

Given = dict[str, Any]
CHANGES = ("status_message", "ttl_ms", "poll_interval_ms")


@define(eq=False)
class FactReader:
    """Reads what happens, as a vector says it."""

    scene: Scene

    def read(self, speaker: str, words: Words) -> Given:
        """Return what ``speaker`` says or does. Raises :class:`TraceError` for what no vector says."""
        match speaker:
            case "clock":
                return {"type": "wait"}
            case "upstream":
                return self._upstream(words)
            case "host" if self.scene.proxy:
                return self._host(words)
        return self._fact(self.scene.facts.read("client" if speaker == "caller" else speaker, words))

    def _fact(self, fact: Any) -> Given:
        match fact:
            case MessageReceived():
                return self._received(fact)
            case ExchangeClosed(exchange=exchange):
                return {"type": "disconnect", "exchange": exchange}
            case StreamReady(exchange=exchange):
                return {"type": "drained", "exchange": exchange}
            case CallReturned() | CallFailed() | CallAskedInput() | CallBecameTask():
                return {"type": "handler", "exchange": fact.exchange, **self._handled(fact)}
            case ShutdownStarted():
                return {"type": "host", "does": "shut_down"}
        of = self.scene.made_by[task_name(fact.task_id)]
        if isinstance(fact, TtlChanged):
            return {"type": "host", "does": "set_ttl", "of": of, "ttl_ms": fact.ttl_ms}
        return {"type": "worker", "of": of, **_worked(fact)}

    def _handled(self, fact: CallReturned | CallFailed | CallAskedInput | CallBecameTask) -> Given:
        match fact:
            case CallReturned(result=result):
                return {"does": "return", "result": result}
            case CallFailed(error=error):
                return {"does": "fail", "error": error.to_wire()}
            case CallAskedInput(requests=requests, state=state):
                return {"does": "ask", "requests": requests, "state": state}
            case CallBecameTask(exchange=exchange, task_id=id_):
                self.scene.made_by[task_name(id_)] = str(exchange)
                return {"does": "become_task", **_said(fact, *CHANGES)}

    def _received(self, fact: MessageReceived) -> Given:
        told: Given = {
            "type": "receive",
            "exchange": str(fact.exchange),
            "message": self.scene.known_in(fact.message),
        }
        match fact.message:
            case {"method": "subscriptions/listen"}:
                self.scene.streams.add(told["exchange"])
        if fact.principal is not None:
            told["principal"] = fact.principal
        if fact.connection is not None:
            told["channel"] = fact.connection
        if fact.http is not None:
            told["headers"] = self.scene.known_in([list(header) for header in fact.http.headers.items()])
        if not fact.tasks_enabled:
            told["tasks_enabled"] = False
        return told

    def _upstream(self, words: Words) -> Given:
        said: Given = {"type": "upstream", "request": f"$up_{words.word('the request')}"}
        match words.word("what it does"):
            case "agrees":
                params = {"notifications": {"taskIds": words.plain()}}
                method = "notifications/subscriptions/acknowledged"
                return {**said, "does": "notify", "method": method, "params": params}
            case "pushes":
                return {
                    **said,
                    "does": "notify",
                    "method": "notifications/tasks",
                    "params": _upstream_view(words),
                }
            case "breaks":
                return {**said, "does": "break", "sent": True}
            case "bounces":
                return {**said, "does": "break", "sent": False}
            case "fails":
                return {**said, "does": "fail", "error": error_in(words).to_wire()}
            case "returns":
                return {**said, "does": "return", "result": result_in(words)}
            case "makes":
                return {**said, "does": "return", "result": {"resultType": "task", **_upstream_view(words)}}
            case "shows":
                return {**said, "does": "return", "result": _upstream_view(words)}
            case _:
                result = {"resultType": "input_required", "inputRequests": questions_in(words)}
                if words.follows("state"):
                    result["requestState"] = value_in(words)
                return {**said, "does": "return", "result": result}

    def _host(self, words: Words) -> Given:
        match words.word("what it does"):
            case "withdraws":
                return {"type": "host", "does": "withdraw", "tool": words.word("the tool")}
            case "restarts":
                return {"type": "host", "does": "restart"}
            case "stops":
                return {"type": "host", "does": "shut_down"}
            case verb:
                raise TraceError(f"no vector has a host that {verb}")


def _said(fact: Any, *names: str) -> Given:
    """Return what a fact says beside what it has to."""
    said = {name: getattr(fact, name) for name in names}
    return {
        name: value
        for name, value in said.items()
        if value is not DEFAULT and value is not KEEP and not (name == "status_message" and value is None)
    }


def _worked(fact: Any) -> Given:
    match fact:
        case WorkProgressed():
            return {"does": "report", **_said(fact, *CHANGES)}
        case WorkAskedInput(ask=asked, requests=requests):
            return {"does": "ask", "question": asked, "requests": requests}
        case WorkWithdrewInput(ask=asked):
            return {"does": "withdraw", "question": asked}
        case WorkCompleted(result=result):
            return {"does": "complete", "result": result}
        case WorkFailed(error=error):
            return {"does": "fail", "error": error.to_wire()}
        case WorkStopped():
            return {"does": "stop", **_said(fact, "status_message")}
    raise TraceError(f"no vector says {type(fact).__name__}")


def _upstream_view(words: Words) -> Given:
    """Read a view as an upstream writes it, whose times are those of the story."""
    view: Given = {
        "taskId": value_in(words),
        "status": words.word("the status"),
        "createdAt": _timestamp(0),
        "lastUpdatedAt": _timestamp(0),
        "ttlMs": UPSTREAM_TTL_MS,
        "pollIntervalMs": UPSTREAM_HINT_MS,
    }
    while words:
        match words.any_word("what else"):
            case "changed":
                view["lastUpdatedAt"] = _timestamp(words.integer("when"))
            case "ttl":
                view["ttlMs"] = None if words.follows("unlimited") else words.integer("the ttl")
            case "poll":
                view["pollIntervalMs"] = words.integer("the hint")
            case "asks":
                view["inputRequests"] = questions_in(words)
            case "result":
                view["result"] = result_in(words)
            case "error":
                view["error"] = error_in(words).to_wire()
            case Json(value=message):
                view["statusMessage"] = message
    return view


def _timestamp(after: int) -> str:
    """Return a time of the story, which begins at 2023-11-14T22:13:20Z."""
    minutes, milliseconds = divmod(after, 60_000)
    seconds, milliseconds = divmod(milliseconds + 20_000, 1000)
    return f"2023-11-14T22:{13 + minutes + seconds // 60:02}:{seconds % 60:02}.{milliseconds:03}Z"
