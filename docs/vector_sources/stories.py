"""Conversations from the traces of ``tests/traces``: stories in plain text.

Their language is that of ``mcp_tasks_proto.testing.traces``. Each line is taken apart here, and put into the
words of the vectors; no engine is asked. A told time that is no time of the story, and every text of an
error, is another implementation's own affair: a placeholder stands for it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from attrs import define, field

from docs.vector_sources.making import Vector, conversation
from docs.vector_sources.origins import ORIGINS
from docs.vector_sources.speaking import (
    ANY,
    CAPABILITIES,
    EXTENSION,
    PAYLOADS,
    SERVER_INFO,
    SUBSCRIPTION,
    TEXT,
    has,
)
from mcp_tasks_proto.inputs import (
    DEFAULT,
    KEEP,
    CallAskedInput,
    CallBecameTask,
    CallFailed,
    CallReturned,
    ExchangeClosed,
    HttpHead,
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
from mcp_tasks_proto.testing.traces.facts import Facts, error_in, questions_in, result_in
from mcp_tasks_proto.testing.traces.proxy import handle
from mcp_tasks_proto.testing.traces.words import ACCEPT, LINE, Json, Pair, Words, question, task_id, task_name

__all__ = ["LEFT_OUT", "TRACES", "vectors"]

ROOT: Final = Path(__file__).parents[2]
TRACES: Final = sorted((ROOT / "tests/traces").glob("*.txt"))

LEFT_OUT: Final[Mapping[str, str]] = {
    "shows store": "its store answers step by step, in an order that is the engine's own",
    " process ": "processes take one another's work over: that is the host's affair",
    " viewer ": "people look at the ledger: the vectors of HIS say the same of each step",
    " legacy\n": "an upstream of 2025-11-25 is asked in an order that is the engine's own",
    " proxy    bridges": "the same of a caller of 2025-11-25",
    " proxy    speaks": "the same of a caller of 2025-11-25",
    " promotes ": "which process ran a call is the host's affair",
    " cuts ": "how a result that is too long is cut is the proxy's choice",
    "=?base64?": "who writes a server's id in Base64 has to know it: the functions of HTTP.2 say the same",
    " keyed\n": "API keys matter to the ledger alone",
}
"""Traces with these words are no vectors, for this reason."""

TOLD: Final = re.compile(r"\s+> (?P<told>.*)")
PROSE: Final = re.compile(r"((?:[A-Z]+\.\d+(?:, |\. ))+)")
HANDLE: Final = re.compile(r"H\d+")
USUAL: Final[dict[str, Any]] = {"server": (3_600_000, 1000), "proxy": (60_000, 1000)}
"""Lifetime and poll hint, where a story does not say them."""


def vectors() -> list[Vector]:
    """Return the conversation of each trace that can be one."""
    found = []
    for path in TRACES:
        text = path.read_text(encoding="utf-8")
        if not any(words in text for words in LEFT_OUT):
            found.append(_Story(text).vector(path.stem))
    return found


def _at_most(words: Words) -> Any:
    word = words.any_word("a value")
    return word.value if isinstance(word, Json) else word


@define(eq=False)
class _Story:
    """One trace, as it becomes a conversation."""

    text: str
    rules: list[str] = field(init=False)
    _title: str = field(init=False)
    _proxy: bool = field(init=False)
    _setup: dict[str, Any] = field(init=False, factory=dict)
    _steps: list[dict[str, Any]] = field(init=False, factory=list)
    _facts: Facts = field(init=False, factory=Facts)
    _times: set[int] = field(init=False, factory=lambda: {0})
    _now: int = field(init=False, default=0)
    _known: dict[str, str] = field(init=False, factory=dict)
    """Ids, and the placeholders that stand for them from now on."""
    _made_by: dict[str, str] = field(init=False, factory=dict)
    """Tasks, and the exchange whose call became each."""

    def __attrs_post_init__(self) -> None:
        self._title, _, why, *_ = self.text.splitlines()
        prose = PROSE.match(why)
        assert prose is not None
        self.rules = prose[1].replace(".", " ").split()
        self.rules = re.findall(r"[A-Z]+\.\d+", prose[1])
        self._proxy = re.search(r"(?m)^\s+proxy\s", self.text) is not None

    def vector(self, name: str) -> Vector:
        """Return the conversation."""
        role = "proxy" if self._proxy else "server"
        self._setup = {"readers": "slow"}
        if not self._proxy:
            self._setup["limits"] = {"ttl_ms": USUAL[role][0], "poll_interval_ms": USUAL[role][1]}
        unfinished = ""
        for line in self.text.splitlines()[2:]:
            if not line.startswith(" ") or not line.strip():
                continue
            if told := TOLD.fullmatch(line):
                expect = self._told(Words(told["told"]), told["told"])
                if expect is not None:
                    self._steps[-1]["expect"].append(expect)
            elif line.endswith("\\"):
                unfinished += line.removesuffix("\\")
            else:
                self._line(unfinished + line)
                unfinished = ""
        return conversation(
            role,
            f"{self.rules[0]}/trace/{name}",
            self._title,
            self._steps,
            rules=" ".join(self.rules),
            source=ORIGINS[self.rules[0]],
            setup=self._setup,
        )

    def _line(self, line: str) -> None:
        match = LINE.fullmatch(line)
        assert match is not None
        speaker, words = match["speaker"], Words(match["words"])
        if speaker in ("server", "proxy"):
            self._set_up(words)
            return
        step: dict[str, Any] = {}
        if match["time"] is not None and int(match["time"]) != self._now:
            self._now = step["at_ms"] = int(match["time"])
            self._times.add(self._now)
        self._steps.append({**step, "given": self._given(speaker, words), "expect": []})

    # -- set up --------------------------------------------------------------------------------------------

    def _set_up(self, words: Words) -> None:
        match words.word("what"):
            case "tool":
                tool = {"name": words.word("its name"), "task": words.word("support")}
                self._setup.setdefault("tools", []).append(tool)
            case "method":
                self._setup.setdefault("methods", []).append(words.word("its name"))
            case "visibility":
                self._setup["input_visibility"] = words.word("which")
            case "before":
                name, tools = words.word("its name"), words.plain("without")
                upstream = {"name": name, "tools": tools, "tasks": not words.follows("without")}
                self._setup.setdefault("upstreams", []).append(upstream)
            case "collapses":
                self._setup["collapse"] = True
            case "profile":
                self._setup["task_tools"] = words.plain()
            case "gate":
                self._setup["gate_open"] = False
            case "project":
                self._setup["project"] = words.word("its name")
            case "keeps":
                self._setup["cached_methods"] = words.plain()
            case "cuts":
                self._setup["response_bytes"] = words.integer("how long")
            case limit:
                self._setup.setdefault("limits", {})[limit] = words.integer("the limit")

    # -- facts ---------------------------------------------------------------------------------------------

    def _given(self, speaker: str, words: Words) -> dict[str, Any]:
        match speaker:
            case "clock":
                return {"type": "wait"}
            case "upstream":
                return self._upstream(words)
            case "host" if self._proxy:
                return self._host(words)
        return self._fact(self._facts.read("client" if speaker == "caller" else speaker, words))

    def _fact(self, fact: Any) -> dict[str, Any]:
        match fact:
            case MessageReceived():
                return self._received(fact)
            case ExchangeClosed(exchange=exchange):
                return {"type": "disconnect", "exchange": exchange}
            case StreamReady(exchange=exchange):
                return {"type": "drained", "exchange": exchange}
            case CallReturned(exchange=exchange, result=result):
                return {"type": "handler", "exchange": exchange, "does": "return", "result": result}
            case CallFailed(exchange=exchange, error=error):
                return {"type": "handler", "exchange": exchange, "does": "fail", "error": error.to_wire()}
            case CallAskedInput(exchange=exchange, requests=requests, state=state):
                told = {"type": "handler", "exchange": exchange, "does": "ask", "requests": requests}
                return {**told, "state": state}
            case CallBecameTask(exchange=exchange, task_id=id_):
                self._made_by[task_name(id_)] = str(exchange)
                said = {"type": "handler", "exchange": exchange, "does": "become_task"}
                return {**said, **_said(fact, "status_message", "ttl_ms", "poll_interval_ms")}
            case ShutdownStarted():
                return {"type": "host", "does": "shut_down"}
            case TtlChanged(task_id=id_, ttl_ms=ttl_ms):
                return {
                    "type": "host",
                    "does": "set_ttl",
                    "of": self._made_by[task_name(id_)],
                    "ttl_ms": ttl_ms,
                }
        return {"type": "worker", "of": self._made_by[task_name(fact.task_id)], **_work(fact)}

    def _received(self, fact: MessageReceived) -> dict[str, Any]:
        told: dict[str, Any] = {
            "type": "receive",
            "exchange": str(fact.exchange),
            "message": self._known_in(fact.message),
        }
        if fact.principal is not None:
            told["principal"] = fact.principal
        if fact.connection is not None:
            told["channel"] = fact.connection
        if fact.http is not None:
            told["headers"] = self._headers(fact.http)
        if not fact.tasks_enabled:
            told["tasks_enabled"] = False
        return told

    def _headers(self, head: HttpHead) -> list[list[str]]:
        return [[name, self._known.get(value, value)] for name, value in head.headers.items()]

    def _known_in(self, value: Any) -> Any:
        """Put placeholders in the place of ids that are known by now."""
        if isinstance(value, dict):
            return {name: self._known_in(member) for name, member in value.items()}
        if isinstance(value, list):
            return [self._known_in(item) for item in value]
        if isinstance(value, str):
            named = task_name(value) if value == task_id(task_name(value)) else ""
            if self._proxy and HANDLE.fullmatch(named):
                value = handle(named)
            return self._known.get(value, value)
        return value

    def _upstream(self, words: Words) -> dict[str, Any]:
        said: dict[str, Any] = {"type": "upstream", "request": f"$up_{words.word('the request')}"}
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
                    result["requestState"] = _at_most(words)
                return {**said, "does": "return", "result": result}

    def _host(self, words: Words) -> dict[str, Any]:
        match words.word("what it does"):
            case "withdraws":
                return {"type": "host", "does": "withdraw", "tool": words.word("the tool")}
            case "restarts":
                return {"type": "host", "does": "restart"}
            case verb:
                assert verb == "stops"
                return {"type": "host", "does": "shut_down"}

    # -- what is told --------------------------------------------------------------------------------------

    def _told(self, words: Words, line: str) -> dict[str, Any] | None:
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
                of = self._made_by[words.word("the task")]
                return {"type": "stop_work", "of": of, "reason": line.rpartition(": ")[2]}
            case "reject":
                return {"type": "report_refused", "of": self._made_by[words.word("the task")]}
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
            if exchange in self._facts.request_ids:
                message["id"] = self._facts.request_ids[exchange]
            else:
                message = has((), **message)
            return {**told, "message": message, **status}
        return {**told, "message": self._message(exchange, words)}

    def _message(self, exchange: str, words: Words) -> dict[str, Any]:
        id_ = self._facts.request_ids.get(exchange, ANY)
        stream = has((), **{SUBSCRIPTION: id_})
        if words.follows("ends"):
            return {"jsonrpc": "2.0", "id": id_, "result": has((), resultType="complete", _meta=stream)}
        if words.follows("acknowledged"):
            names = words.plain("tools")
            agreed: dict[str, Any] = {}
            if names:
                agreed["taskIds"] = {"$unordered": [self._placeholder(name) for name in names]}
            if words.follows("tools"):
                agreed["toolsListChanged"] = True
            method = "notifications/subscriptions/acknowledged"
            return _notification(method, has((), notifications=agreed, _meta=stream))
        if words.follows("asks"):
            state = f"$state_{exchange}"
            self._facts.states[exchange] = state
            requests = {"$has": _requests(words)}
            return self._result(
                id_, has((), resultType="input_required", inputRequests=requests, requestState=state)
            )
        if words.follows("complete"):
            content = result_in(words) if words else {}
            return self._result(id_, has((), resultType="complete", **content))
        if words.follows("task"):
            return self._result(id_, self._view(words, resultType="task"))
        found = words.any_word("the task or method")
        if isinstance(found, str) and found.startswith("notifications/"):
            return _notification(found, has((), **(_at_most(words) if words else {})))
        seen = self._view(words, found)
        if any(step["given"].get("exchange") == exchange for step in self._steps if _listens(step)):
            seen["$has"]["_meta"] = stream
            return _notification("notifications/tasks", seen)
        seen["$has"]["resultType"] = "complete"
        return self._result(id_, seen)

    def _result(self, id_: Any, result: Any) -> dict[str, Any]:
        return {"jsonrpc": "2.0", "id": id_, "result": result}

    def _placeholder(self, name: str) -> str:
        """Return what stands for a task from now on."""
        id_ = handle(name) if self._proxy else task_id(name)
        return self._known.setdefault(id_, f"${name}")

    def _view(self, words: Words, name: Any = None, **members: Any) -> dict[str, Any]:
        name = words.word("the task") if name is None else name
        ttl_ms, hint = USUAL["proxy" if self._proxy else "server"]
        if not self._proxy:
            ttl_ms, hint = self._setup["limits"]["ttl_ms"], self._setup["limits"]["poll_interval_ms"]
        view: dict[str, Any] = {
            "taskId": self._placeholder(name),
            **members,
            "status": words.word("the status"),
        }
        view["ttlMs"] = ttl_ms
        words.follows("made")
        made = self._time(words, name)
        view |= {"createdAt": made, "lastUpdatedAt": made}
        lacks = []
        shown_hint: int | None = hint
        while words:
            match words.any_word("what else"):
                case "changed":
                    view["lastUpdatedAt"] = self._time(words, name)
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
        if not self._proxy:
            return view
        for holder in (view["$has"], view["$has"].get("error", {}).get("$has", {})):
            for name in ("statusMessage", "message"):
                if isinstance(holder.get(name), str) and HANDLE.search(holder[name]):
                    holder[name] = {
                        "$pattern": HANDLE.sub(r"\\S+", re.escape(holder[name]).replace("\\ ", " "))
                    }
        return view

    def _time(self, words: Words, name: str) -> Any:
        after = words.integer("a time")
        return {"$time": after} if after in self._times else f"$changed_{name}_{after}"

    def _error(self, words: Words) -> dict[str, Any]:
        code = words.integer("the code")
        if words.follows("needs"):
            words.follows("tasks")
            return has(
                (), code=code, message=TEXT, data={"requiredCapabilities": {"extensions": {EXTENSION: {}}}}
            )
        text = _at_most(words)
        data = words.json()
        told: dict[str, Any] = {"code": code, "message": TEXT if code in _OWN_CODES else text}
        if text == "Task not found":
            told["message"] = "$unknown"
        if data is None:
            return has(("data",), **told)
        return has((), **told, data=data.value)

    def _starts(self, words: Words, line: str) -> dict[str, Any]:
        if words.follows("work"):
            return {"type": "start_work", "of": self._made_by[words.word("the task")]}
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
        of, answers = self._made_by[words.word("the task")], []
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


_OWN_CODES: Final = (-32700, -32600, -32601, -32602, -32603, -32020, -32021, -32022)


def _notification(method: str, params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, "params": params}


def _listens(step: Mapping[str, Any]) -> bool:
    message = step["given"].get("message")
    return isinstance(message, dict) and message.get("method") == "subscriptions/listen"


def _said(fact: Any, *names: str) -> dict[str, Any]:
    """Return what a fact says beside what it has to."""
    said = {name: getattr(fact, name) for name in names}
    return {
        name: value
        for name, value in said.items()
        if value is not DEFAULT and value is not KEEP and not (name == "status_message" and value is None)
    }


def _work(fact: Any) -> dict[str, Any]:
    match fact:
        case WorkProgressed():
            return {"does": "report", **_said(fact, "status_message", "ttl_ms", "poll_interval_ms")}
        case WorkAskedInput(ask=asked, requests=requests):
            return {"does": "ask", "question": asked, "requests": requests}
        case WorkWithdrewInput(ask=asked):
            return {"does": "withdraw", "question": asked}
        case WorkCompleted(result=result):
            return {"does": "complete", "result": result}
        case WorkFailed(error=error):
            return {"does": "fail", "error": error.to_wire()}
        case _:
            assert isinstance(fact, WorkStopped)
            return {"does": "stop", **_said(fact, "status_message")}


def _requests(words: Words) -> dict[str, Any]:
    """Read questions by their keys: one alone is short for a form of that name."""
    names = words.plain("result", "error", "state", "changed", "ttl", "poll")
    found = {key: question(key.partition(".")[0]) for key in names}
    return {**found, **{pair.name: pair.value.value for pair in words.pairs()}}  # type: ignore[union-attr]


def _response(value: str | Json) -> Any:
    if isinstance(value, Json):
        return value.value
    return dict(ACCEPT) if value == "accept" else {"action": value}


def _upstream_view(words: Words) -> dict[str, Any]:
    """Read a view as an upstream writes it, whose times are those of the story."""
    view: dict[str, Any] = {
        "taskId": _at_most(words),
        "status": words.word("the status"),
        "createdAt": _timestamp(0),
        "lastUpdatedAt": _timestamp(0),
        "ttlMs": USUAL["proxy"][0],
        "pollIntervalMs": USUAL["proxy"][1],
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
