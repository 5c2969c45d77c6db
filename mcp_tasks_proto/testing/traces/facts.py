"""What can be said to an engine in a script, by whom.

``server``
    What it is made with, before anything else: ``tool render optional`` (or ``required``, ``forbidden``), and
    ``resumable`` after it; ``method prompts/list``, which handlers answer; ``visibility strict`` (or
    ``owner``); ``shows store``; ``node A``; ``speaks 2025-11-25`` as well; and any of
    :class:`~mcp_tasks_proto.limits.Limits` by its name, ``ttl_ms 5000``. Traces of a proxy begin with
    ``proxy`` lines instead: :mod:`mcp_tasks_proto.testing.traces.proxy`.

``client``
    A request, by its id and method, and what the method needs::

        1 tools/call render {"frames": 3}      name, and arguments if there are any
        2 tasks/get T                          a task by its short name, or any id in JSON
        3 tasks/update T confirm=accept a={}   ``accept``, ``decline``, ``cancel``, or an answer in JSON
        4 subscriptions/listen T U tools       tasks, and changes of the tools
        5 server/discover {"x": 1}             any other method, and params if there are any
        6 {"jsonrpc": "2.0"}                   any message at all
        7 {"params": {}, …} cursor 1           with the requestState of the reply 1 in the place of a cursor

    Then, in this order: ``again 1 confirm=accept``, which answers what the reply 1 asked; ``declaring`` and
    the capabilities (``tasks elicitation`` if it is not said; ``nothing``; or an object); and how it came:
    ``as alice``, ``on stdio``, ``over http``, ``header Mcp-Name "x"``, ``header Mcp-Name missing``,
    ``extension off``.

    Where ``server speaks 2025-11-25`` as well, ``initialize`` begins a session on the connection, and what
    comes on it is of that version from then on, and declares nothing::

        1 initialize on stdio                  ``declaring elicitation roots`` and so on, as above
        2 tools/call render {…} task on stdio  as a task; or ``task {"ttl": 5000}``
        3 tasks/result T on stdio              or ``tasks/get``, ``tasks/cancel``
        4 tasks/list cursor 1 on stdio         any other method; ``cursor`` as above
        5 notifications/initialized on stdio   a notification, as everything of such a name
        6 answers 1 accept on stdio            the server's request 1, as questions are answered above
        7 refuses 1 -1 "no" on stdio           the same, with an error

    Handlers are told of calls under the number of the line that led to them.

    Or what became of a request: ``1 leaves``, ``1 cancels`` (on stdio), ``1 reads`` what was sent so far.

``handler``
    ``1 returns "text"``, ``1 returns {…}``, ``1 fails -32603 "text"``, ``1 asks confirm size={…} state {…}``,
    ``1 becomes T`` with ``ttl 5000``, ``ttl unlimited``, ``poll 500``, ``poll unsaid`` and a message.

``worker``
    ``T says "text"`` with ``ttl`` and ``poll`` as above, ``T asks first confirm size={…}`` where ``first``
    names the question, ``T withdraws first``, ``T completes "text"``, ``T completes {…}``,
    ``T fails -32603 "text"``, ``T stops``, ``T saves {…} after first`` where the checkpoint stands for the
    answers to the question ``first``. After the task, ``run 1`` says that it is the first run resumed.

``store``
    ``does it``, the oldest thing that it was asked; or ``fails``. Only where the server ``shows store``;
    elsewhere a store answers at once, and nothing is said of it.

    Or what it tells by itself: ``tells T``, how the task stands now; ``loses T of A``, the work that ran on
    the node ``A``, which is gone.

``node``
    Other processes over the same store, of which only this is told: ``B takes T``, whose node is gone.

``process``
    ``B begins``, in place of the one before, which has ended without a word. ``server node A`` names the
    first.

``clock``
    ``wakes`` the engine, which must have asked for it by then.

``host``
    ``gives T ttl 5000``, ``stops`` the server.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any, Final

from attrs import define, field

from mcp_tasks_proto.errors import ErrorObject
from mcp_tasks_proto.inputs import (
    DEFAULT,
    CallAskedInput,
    CallBecameTask,
    CallFailed,
    CallReturned,
    ExchangeClosed,
    HttpHead,
    Input,
    MessageReceived,
    ShutdownStarted,
    StreamReady,
    TtlChanged,
    WorkAskedInput,
    WorkCheckpointed,
    WorkCompleted,
    WorkFailed,
    WorkProgressed,
    WorkStopped,
    WorkWithdrewInput,
)
from mcp_tasks_proto.testing.messages import request
from mcp_tasks_proto.testing.traces.words import ACCEPT, Json, Pair, TraceError, Words, question, task_id
from mcp_tasks_proto.vocabulary import LEGACY_VERSION, MODERN_VERSION
from mcp_tasks_proto.wire.http import request_headers
from mcp_tasks_proto.wire.jsonrpc import error_message, result_message

__all__ = ["Facts", "changes_in", "error_in", "questions_in", "result_in"]

STDIO: Final = "stdio"
"""The one connection that a script knows."""


@define(eq=False)
class Facts:
    """Reads facts, and remembers of the exchanges what later facts refer to."""

    request_ids: dict[Hashable, Any] = field(init=False, factory=dict)
    states: dict[Hashable, str] = field(init=False, factory=dict)
    """The ``requestState`` of each exchange that ended with a question."""
    sessions: set[str] = field(init=False, factory=set)
    """The connections on which a session of 2025-11-25 has begun."""

    def read(self, speaker: str, words: Words) -> Input:
        """Return what ``speaker`` says. Raises :class:`TraceError`."""
        speak = _SPEAKERS.get(speaker)
        if speak is None:
            raise TraceError(f"nobody is called {speaker}")
        fact = speak(self, words)
        words.end()
        return fact

    # -- clients -----------------------------------------------------------------------------------

    def _client(self, words: Words) -> Input:
        exchange = words.word("the request")
        if words.follows("leaves"):
            return ExchangeClosed(exchange)
        if words.follows("reads"):
            return StreamReady(exchange)
        if words.follows("cancels"):
            params = {"requestId": self.request_ids.get(exchange)}
            message = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}
            return MessageReceived(exchange=f"{exchange} cancels", message=message, connection=STDIO)
        raw, connection = words.json(), words.after("on")
        if raw is not None:
            self._note_session(raw.value, connection)
            return _received(exchange, self._with_cursor(raw.value, words), words)
        request_id = int(exchange) if exchange.isdecimal() else exchange
        self.request_ids[exchange] = request_id
        method = words.word("the method")
        self._note_session({"method": method}, connection)
        if connection in self.sessions:
            said = _said_in_session(request_id, method, words)
            return _received(exchange, self._with_cursor(said, words), words)
        params = _PARAMS.get(method, _other_params)(words)
        if words.follows("again"):
            params["requestState"] = self.states.get(words.word("the exchange"))
            params["inputResponses"] = _answers(words)
        declared = _declared(words)
        return _received(exchange, request(method, params, id=request_id, **declared), words)

    def _note_session(self, message: Any, connection: str | None) -> None:
        match message:
            case {"method": "initialize"} if connection is not None:
                self.sessions.add(connection)

    def _with_cursor(self, message: Any, words: Words) -> Any:
        """Return a message with a requestState in the place of a cursor, if that is said of it."""
        match message:
            case {"params": {**params}} if words.follows("cursor"):
                params["cursor"] = self.states.get(words.word("the exchange"))
                return {**message, "params": params}
        return message

    # -- handlers ----------------------------------------------------------------------------------

    def _handler(self, words: Words) -> Input:
        exchange, verb = words.word("the request"), words.word("what the handler does")
        match verb:
            case "returns":
                return CallReturned(exchange, result_in(words))
            case "fails":
                return CallFailed(exchange, error_in(words))
            case "asks":
                questions = questions_in(words)
                state = words.any_word("the state") if words.follows("state") else None
                return CallAskedInput(exchange, questions, _value(state))
            case "becomes":
                name = task_id(words.any_word("the task"))
                changes = changes_in(words)
                return CallBecameTask(
                    exchange=exchange,
                    task_id=name,
                    status_message=changes.get("status_message"),
                    ttl_ms=changes.get("ttl_ms", DEFAULT),
                    poll_interval_ms=changes.get("poll_interval_ms", DEFAULT),
                )
            case _:
                raise TraceError(f"a handler never {verb}")

    # -- workers -----------------------------------------------------------------------------------

    def _worker(self, words: Words) -> Input:
        name = words.word("the task")
        run = words.integer("the number of the run") if words.follows("run") else 0
        verb = words.word("what the worker does")
        who: dict[str, Any] = {
            "task_id": task_id(name),
            "token": f"{name} run {run} {verb}" if run else f"{name} {verb}",
            "resumption": run,
        }
        match verb:
            case "says":
                return WorkProgressed(**who, **changes_in(words))
            case "asks":
                ask = words.word("the name of the question")
                return WorkAskedInput(**who, ask=ask, requests=questions_in(words))
            case "withdraws":
                return WorkWithdrewInput(**who, ask=words.word("the question"))
            case "saves":
                value = _value(words.any_word("the checkpoint"))
                received = words.plain() if words.follows("after") else ()
                return WorkCheckpointed(**who, value=value, received=received)
            case "completes":
                return WorkCompleted(**who, result=result_in(words))
            case "fails":
                return WorkFailed(**who, error=error_in(words))
            case "stops":
                return WorkStopped(**who, **changes_in(words))
            case _:
                raise TraceError(f"a worker never {verb}")

    # -- the host ----------------------------------------------------------------------------------

    def _host(self, words: Words) -> Input:
        match words.word("what the host does"):
            case "stops":
                return ShutdownStarted()
            case "gives":
                name = words.word("the task")
                ttl_ms = changes_in(words).get("ttl_ms")
                return TtlChanged(task_id=task_id(name), ttl_ms=ttl_ms, token=f"{name} ttl")
            case verb:
                raise TraceError(f"a host never {verb}")


_SPEAKERS: Final[Mapping[str, Callable[[Facts, Words], Input]]] = {
    "client": Facts._client,
    "handler": Facts._handler,
    "worker": Facts._worker,
    "host": Facts._host,
}


# -- requests ------------------------------------------------------------------------------------

AFTER_PARAMS: Final = ("as", "declaring", "on", "over", "header", "extension", "again")
"""Words that end what a method needs."""


def _call_params(words: Words) -> dict[str, Any]:
    params: dict[str, Any] = {"name": words.word("the tool")}
    arguments = words.json()
    if arguments is not None:
        params["arguments"] = arguments.value
    return params


def _task_params(words: Words) -> dict[str, Any]:
    return {"taskId": task_id(words.any_word("the task"))}


def _update_params(words: Words) -> dict[str, Any]:
    return {**_task_params(words), "inputResponses": _answers(words)}


def _listen_params(words: Words) -> dict[str, Any]:
    wanted: dict[str, Any] = {}
    for word in words.plain(*AFTER_PARAMS):
        if word == "tools":
            wanted["toolsListChanged"] = True
        else:
            wanted.setdefault("taskIds", []).append(task_id(word))
    return {"notifications": wanted}


def _other_params(words: Words) -> dict[str, Any]:
    params = words.json()
    return {} if params is None else dict(params.value)


_PARAMS: Final[Mapping[str, Callable[[Words], dict[str, Any]]]] = {
    "tools/call": _call_params,
    "tasks/get": _task_params,
    "tasks/cancel": _task_params,
    "tasks/update": _update_params,
    "subscriptions/listen": _listen_params,
}


# -- what is said in a session of 2025-11-25 --------------------------------------------------------


def _said_in_session(request_id: Any, method: str, words: Words) -> dict[str, Any]:
    match method:
        case "answers":
            id_, answer = words.integer("the server's request"), Pair("", words.any_word("the answer"))
            return result_message(id_, _answer(answer))
        case "refuses":
            return error_message(words.integer("the server's request"), error_in(words))
    params = _SESSION_PARAMS.get(method, _other_params)(words)
    message = {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}
    if method.startswith("notifications/"):
        del message["id"]
    return message


def _initialize_params(words: Words) -> dict[str, Any]:
    declared = _declared(words)
    tasks: dict[str, Any] = {"tasks": {}} if declared.get("tasks") else {}
    return {
        "protocolVersion": LEGACY_VERSION,
        "capabilities": {**declared["capabilities"], **tasks},
        "clientInfo": {"name": "trace", "version": "1"},
    }


def _session_call_params(words: Words) -> dict[str, Any]:
    params = _call_params(words)
    if words.follows("task"):
        params["task"] = _other_params(words)
    return params


_SESSION_PARAMS: Final[Mapping[str, Callable[[Words], dict[str, Any]]]] = {
    "initialize": _initialize_params,
    "tools/call": _session_call_params,
    "tasks/get": _task_params,
    "tasks/result": _task_params,
    "tasks/cancel": _task_params,
}


# -- how a message came --------------------------------------------------------------------------------


def _declared(words: Words) -> dict[str, Any]:
    """Read what a request declares, as arguments of :func:`~mcp_tasks_proto.testing.messages.request`."""
    if not words.follows("declaring"):
        return {"capabilities": {"elicitation": {}}}
    given = words.json()
    if given is not None:
        return {"tasks": False, "capabilities": given.value}
    names = words.plain(*AFTER_PARAMS)
    capabilities: dict[str, Any] = {name: {} for name in names if name not in ("tasks", "nothing")}
    return {"tasks": "tasks" in names, "capabilities": capabilities}


def _received(exchange: str, message: Any, words: Words) -> Input:
    """Read how a message came."""
    principal = connection = None
    headers: dict[str, Any] = {}
    http, enabled = False, True
    while words:
        match words.word("how it came"):
            case "as":
                principal = words.word("the caller")
            case "on":
                connection = words.word("the connection")
            case "over":
                http = words.follows("http")
            case "header":
                name = words.word("the header").lower()
                headers[name] = None if words.follows("missing") else _value(words.any_word("its value"))
            case "extension":
                enabled = not words.follows("off")
            case other:
                raise TraceError(f"not understood: {other}")
    return MessageReceived(
        exchange=exchange,
        message=message,
        connection=connection,
        http=_head(message, headers) if http else None,
        principal=principal,
        tasks_enabled=enabled,
    )


def _head(message: Mapping[str, Any], changes: Mapping[str, str | None]) -> HttpHead:
    """Return the head that a good client sends, but for the changes."""
    match message:
        case {"method": str(method), "params": dict(params)}:
            sent = request_headers(method, params, MODERN_VERSION)
        case _:
            raise TraceError("only a request goes over http")
    headers = {**{name.lower(): value for name, value in sent}, **changes}
    return HttpHead(headers={name: value for name, value in headers.items() if value is not None})


# -- parts ---------------------------------------------------------------------------------------


def _value(word: Any) -> Any:
    return word.value if isinstance(word, Json) else word


def _answers(words: Words) -> dict[str, Any]:
    return {pair.name: _answer(pair) for pair in words.pairs()}


def _answer(pair: Pair) -> Any:
    if isinstance(pair.value, Json):
        return pair.value.value
    return ACCEPT if pair.value == "accept" else {"action": pair.value}


def questions_in(words: Words) -> dict[str, Any]:
    """Read questions: a name alone is short for a form."""
    questions: dict[str, Any] = {name: question(name) for name in words.plain("state")}
    return {**questions, **{pair.name: _value(pair.value) for pair in words.pairs()}}


def result_in(words: Words) -> dict[str, Any]:
    """Read a result: an object, or a text that is its content."""
    result = _value(words.any_word("the result"))
    return result if isinstance(result, dict) else {"content": [{"type": "text", "text": result}]}


def error_in(words: Words) -> ErrorObject:
    """Read an error: code, message, and data if there are any."""
    code, message = words.integer("the code"), _value(words.any_word("the message"))
    return ErrorObject(code, message, _value(words.json()))


def changes_in(words: Words) -> dict[str, Any]:
    """Read a message, a lifetime, a hint: whichever are there, in any order."""
    changes: dict[str, Any] = {}
    while words:
        if words.follows("ttl"):
            changes["ttl_ms"] = None if words.follows("unlimited") else words.integer("the ttl")
        elif words.follows("poll"):
            changes["poll_interval_ms"] = None if words.follows("unsaid") else words.integer("the hint")
        else:
            changes["status_message"] = _value(words.any_word("the message"))
    return changes
