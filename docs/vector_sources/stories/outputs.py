"""The lines in which a story tells what the engine does."""

from __future__ import annotations

import re
from typing import Any, Final

from attrs import define

from docs.vector_sources.speaking import (
    ANY,
    CAPABILITIES,
    EXTENSION,
    PAYLOADS,
    SERVER_INFO,
    SUBSCRIPTION,
    TASKS,
    TEXT,
    Output,
    has,
)
from docs.vector_sources.stories.scene import HANDLE, Scene, value_in
from mcp_tasks_proto.testing.traces.facts import result_in
from mcp_tasks_proto.testing.traces.words import ACCEPT, Json, Pair, Words, question

__all__ = ["OutputReader"]

OWN_CODES: Final = (-32700, -32600, -32601, -32602, -32603, -32020, -32021, -32022)
"""With these codes goes a text of the engine's; with others, one that somebody gave it."""


@define(eq=False)
class OutputReader:
    """Reads what is told, as a vector expects it."""

    scene: Scene

    def read(self, words: Words, line: str) -> Output | None:
        """Return what is told; ``None``: it is told to the host alone, and no vector looks at it."""
        match words.word("what"):
            case "reply":
                return self._reply(words)
            case "send":
                exchange = words.word("the exchange")
                return {"type": "send", "exchange": exchange, "message": self._message(exchange, words)}
            case "start":
                return self._starts(words, line)
            case "stop":
                if words.follows("call"):
                    return {"type": "stop_call", "exchange": words.word("the exchange")}
                return {"type": "upstream_stop", "request": f"$up_{words.word('the request')}"}
            case "deliver":
                return self._deliver(words)
            case "tell":
                of = self.scene.made_by[words.word("the task")]
                return {"type": "stop_work", "of": of, "reason": line.rpartition(": ")[2]}
            case "reject":
                return {"type": "report_refused", "of": self.scene.made_by[words.word("the task")]}
            case "forward":
                exchange, method = words.word("the exchange"), words.word("the method")
                return {"type": "forward", "exchange": exchange, "method": method}
            case "up":
                return self._asked_upstream(words)
        return None  # what the engine only tells its host

    def _reply(self, words: Words) -> dict[str, Any] | None:
        exchange = words.word("the exchange")
        if words.follows("cancels"):
            exchange += " cancels"
        told: dict[str, Any] = {"type": "reply", "exchange": exchange}
        if words.follows("nothing"):
            return None  # on a channel nothing is written
        if words.follows("error"):
            error = self._error(words)
            status = {"http_status": words.integer("the status")} if words.follows("http") else {}
            message: dict[str, Any] = {"jsonrpc": "2.0", "error": error}
            if exchange in self.scene.facts.request_ids:
                message["id"] = self.scene.facts.request_ids[exchange]
            else:
                message = has((), **message)
            return {**told, "message": message, **status}
        return {**told, "message": self._message(exchange, words)}

    def _message(self, exchange: str, words: Words) -> dict[str, Any]:
        id_ = self.scene.facts.request_ids.get(exchange, ANY)
        stream = has((), **{SUBSCRIPTION: id_})
        if words.follows("ends"):
            return {"jsonrpc": "2.0", "id": id_, "result": has((), resultType="complete", _meta=stream)}
        if words.follows("acknowledged"):
            names = words.plain("tools")
            agreed: dict[str, Any] = {}
            if names:
                agreed["taskIds"] = {"$unordered": [self.scene.placeholder(name) for name in names]}
            if words.follows("tools"):
                agreed["toolsListChanged"] = True
            method = "notifications/subscriptions/acknowledged"
            return _notification(method, has((), notifications=agreed, _meta=stream))
        if words.follows("asks"):
            state = f"$state_{exchange}"
            self.scene.facts.states[exchange] = state
            requests = {"$has": _requests(words)}
            return _result(
                id_, has((), resultType="input_required", inputRequests=requests, requestState=state)
            )
        if words.follows("complete"):
            content = result_in(words) if words else {}
            return _result(id_, has((), resultType="complete", **content))
        if words.follows("task"):
            return _result(id_, self._view(words, resultType="task"))
        found = words.any_word("the task or method")
        if isinstance(found, str) and found.startswith("notifications/"):
            return _notification(found, has((), **(value_in(words) if words else {})))
        seen = self._view(words, found)
        if exchange in self.scene.streams:
            seen["$has"]["_meta"] = stream
            return _notification("notifications/tasks", seen)
        seen["$has"]["resultType"] = "complete"
        return _result(id_, seen)

    def _view(self, words: Words, name: Any = None, **members: Any) -> dict[str, Any]:
        name = words.word("the task") if name is None else name
        view: dict[str, Any] = {
            "taskId": self.scene.placeholder(name),
            **members,
            "status": words.word("the status"),
        }
        view["ttlMs"] = self.scene.ttl_ms
        words.follows("made")
        made = self.scene.time(words, name)
        view |= {"createdAt": made, "lastUpdatedAt": made}
        lacks = []
        shown_hint: int | None = self.scene.poll_interval_ms
        while words:
            match words.any_word("what else"):
                case "changed":
                    view["lastUpdatedAt"] = self.scene.time(words, name)
                case "ttl":
                    view["ttlMs"] = None if words.follows("unlimited") else words.integer("the ttl")
                case "poll":
                    shown_hint = None if words.follows("unsaid") else words.integer("the hint")
                case "asks":
                    view["inputRequests"] = _requests(words)
                case "result":
                    view["result"] = has((), resultType="complete", **result_in(words))
                case "error":
                    view["error"] = self._error(words)
                case Json(value=str(message)):
                    view["statusMessage"] = message
        if shown_hint is None:
            lacks.append("pollIntervalMs")
        else:
            view["pollIntervalMs"] = shown_hint
        lacks += [one for one in PAYLOADS if one not in view]
        return self._with_handles(has(tuple(lacks), **view))

    def _with_handles(self, view: dict[str, Any]) -> dict[str, Any]:
        """Leave texts with a handle inside to whoever made the handle."""
        if not self.scene.proxy:
            return view
        for holder in (view["$has"], view["$has"].get("error", {}).get("$has", {})):
            for name in ("statusMessage", "message"):
                if isinstance(holder.get(name), str) and re.search(HANDLE, holder[name]):
                    holder[name] = {
                        "$pattern": re.sub(HANDLE, r"\\S+", re.escape(holder[name]).replace("\\ ", " "))
                    }
        return view

    def _error(self, words: Words) -> dict[str, Any]:
        code = words.integer("the code")
        if words.follows("needs"):
            words.follows("tasks")
            return has((), code=code, message=TEXT, data={"requiredCapabilities": TASKS})
        text = value_in(words)
        data = words.json()
        told: dict[str, Any] = {"code": code, "message": TEXT if code in OWN_CODES else text}
        if text == "Task not found":
            told["message"] = "$unknown"
        if data is None:
            return has(("data",), **told)
        return has((), **told, data=data.value)

    def _starts(self, words: Words, line: str) -> dict[str, Any]:
        if words.follows("work"):
            return {"type": "start_work", "of": self.scene.made_by[words.word("the task")]}
        words.follows("tool")
        exchange, tool, arguments = (
            words.word("the exchange"),
            words.word("the tool"),
            words.any_word("arguments"),
        )
        return {
            "type": "start_tool",
            "exchange": exchange,
            "tool": tool,
            "may_become_task": line.endswith(", may become a task"),
            "arguments": arguments.value if isinstance(arguments, Json) else {},
        }

    def _deliver(self, words: Words) -> dict[str, Any]:
        of, answers = self.scene.made_by[words.word("the task")], []
        while words:
            pair = words.any_word("an answer")
            if isinstance(pair, Pair):
                asked, _, name = pair.name.partition(".")
                answers.append({"question": asked, "name": name, "response": _response(pair.value)})
        return {"type": "deliver", "of": of, "answers": answers}

    def _asked_upstream(self, words: Words) -> dict[str, Any]:
        request, upstream, method = (words.word("a word") for _ in range(3))
        params: dict[str, Any] = {}
        declared, task_path = False, False
        while words:
            match words.any_word("what else"):
                case "declaring":
                    declared = words.follows("tasks")
                case "to":
                    params["taskId"] = words.word("the id")
                case "on":
                    task_path = words.follows("the")
                    words.plain()
                case Json(value=value) if method == "tools/call":
                    params["arguments"] = value
                case Json(value=value):
                    params |= value
                case str(name):
                    params["name"] = name
        capabilities = has((), extensions=has((), **{EXTENSION: ANY})) if declared else has(("extensions",))
        meta = has((SERVER_INFO, SUBSCRIPTION), **{CAPABILITIES: capabilities})
        message = has((), jsonrpc="2.0", method=method, params=has((), **params, _meta=meta))
        told = {"type": "upstream_request", "upstream": upstream, "request": f"$up_{request}"}
        return {**told, "message": message, "task_path": task_path}


def _notification(method: str, params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, "params": params}


def _result(id_: Any, result: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id_, "result": result}


def _requests(words: Words) -> dict[str, Any]:
    """Read questions by their keys: one alone is short for a form of that name."""
    names = words.plain("result", "error", "state", "changed", "ttl", "poll")
    found = {key: question(key.partition(".")[0]) for key in names}
    return {**found, **{pair.name: pair.value.value for pair in words.pairs()}}  # type: ignore[union-attr]


def _response(value: str | Json) -> Any:
    if isinstance(value, Json):
        return value.value
    return dict(ACCEPT) if value == "accept" else {"action": value}
