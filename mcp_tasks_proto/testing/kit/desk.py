"""What a check has to work with: messages to send, ways to send them, and what is known of the server."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from itertools import count
from typing import Any, Final

from attrs import define, evolve, field

from mcp_tasks_proto.errors import LocalProtocolError
from mcp_tasks_proto.testing.kit.acts import (
    Begun,
    Came,
    Close,
    Ended,
    Next,
    Open,
    Pause,
    Post,
    Script,
    Unreadable,
)
from mcp_tasks_proto.testing.kit.arguments import sample
from mcp_tasks_proto.testing.kit.checks import Answer, Broken, Need, Unseen
from mcp_tasks_proto.testing.kit.settings import KitSettings, Role, ToolCall
from mcp_tasks_proto.vocabulary import (
    CLIENT_CAPABILITIES,
    CLIENT_INFO,
    LEGACY_VERSION,
    MODERN_VERSION,
    PROTOCOL_VERSION,
    TASKS_EXTENSION,
)
from mcp_tasks_proto.wire.http import header_parameters, request_headers
from mcp_tasks_proto.wire.jsonrpc import encode

__all__ = [
    "ALL_INPUT",
    "HEARD_BYTES",
    "SILENT",
    "TERMINAL",
    "Desk",
    "KitSettings",
    "Role",
    "Stream",
    "ToolCall",
    "input_response",
    "requests_of",
    "status_of",
    "task_of",
]

ALL_INPUT: Final[Mapping[str, Any]] = {"elicitation": {}, "sampling": {}, "roots": {}}
"""Client capabilities with which anything may be asked."""

TERMINAL: Final = frozenset({"completed", "failed", "cancelled"})

TOO_MANY_REQUESTS: Final = 429
"""The HTTP status for who asks too often."""

SILENT: Final = "nothing came in time"
"""The trouble of an answer that was waited for in vain."""

MESSAGES: Final = 1000
"""The most that is taken of one answer."""

HEARD_BYTES: Final = 64 * 1024 * 1024
"""The most that is taken in a whole run, of which most is kept; a right server says some hundreds of KiB."""

ANSWERS: Final = 4000
"""The most exchanges that are kept; a whole run has some hundreds."""

POLL_MS: Final = 50
"""A task is not looked at more often, whatever it says."""

CLIENT: Final[Mapping[str, str]] = {"name": "mcp-tasks kit", "version": "1"}


@define(eq=False)
class Stream:
    """An exchange that stays open."""

    post: Post
    exchange: int
    sent_ms: int
    messages: list[Any] = field(factory=list)
    places: list[int] = field(factory=list)
    status: int | None = None
    headers: Mapping[str, str] = field(factory=dict)
    response: Mapping[str, Any] | None = None
    trouble: str | None = None
    over_limit: bool = False
    unsent: bool = False
    over: bool = False


@define(eq=False)
class Desk:
    """One for each run."""

    settings: KitSettings
    speaks_http: bool
    has_other_caller: bool = False
    now_ms: int = 0
    log: deque[Answer] = field(factory=lambda: deque(maxlen=ANSWERS))
    """Every exchange that is over, in order."""
    lacking: dict[Need, str] = field(factory=dict)
    """What the server, or the run, does not have, and why it is thought so."""
    tools: dict[str, Mapping[str, Any]] = field(factory=dict)
    """The tools listed to modern clients."""
    legacy_tools: dict[str, Mapping[str, Any]] = field(factory=dict)
    discovered: Mapping[str, Any] = field(factory=dict)
    """The result of ``server/discover``."""
    initialized: tuple[Answer, ...] = ()
    """The answer to ``initialize``, where that opened a session of 2025-11-25."""
    legacy_tasks: Mapping[str, Any] = field(factory=dict)
    """The capability ``tasks`` of 2025-11-25, where there is one."""
    session: str | None = None
    calls: dict[Role, ToolCall] = field(factory=dict)
    """What tools are known to do."""
    running: dict[str, str] = field(factory=dict)
    """Tasks that have not been seen to end, and the era in which they were made."""
    open: dict[int, Stream] = field(factory=dict)
    """Exchanges that are open."""
    heard_bytes: int = 0
    """How much the server has said."""
    gone: bool = False
    """Whether there was no server any more for what was sent last: that is a fault once."""
    _ids: count[int] = field(factory=lambda: count(1))
    _places: count[int] = field(factory=count)

    # -- messages ------------------------------------------------------------------------------------------

    def new_id(self) -> int:
        """Return an id for a request."""
        return next(self._ids)

    def request(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        id: str | int | None = None,  # noqa: A002 - the wire's own word
        tasks: bool = True,
        capabilities: Mapping[str, Any] = ALL_INPUT,
        meta: Mapping[str, Any] | None = None,
    ) -> Post:
        """Return a modern request, as a client should send it.

        ``tasks`` declares the Tasks extension beside ``capabilities``; ``meta`` is more of ``_meta``, in
        which ``None`` leaves a key out.
        """
        declared = dict(capabilities)
        if tasks:
            declared["extensions"] = {TASKS_EXTENSION: {}, **declared.get("extensions", {})}
        carried: dict[str, Any] = {
            PROTOCOL_VERSION: MODERN_VERSION,
            CLIENT_INFO: CLIENT,
            CLIENT_CAPABILITIES: declared,
            **(meta or {}),
        }
        carried = {name: value for name, value in carried.items() if value is not None}
        message = {
            "jsonrpc": "2.0",
            "id": self.new_id() if id is None else id,
            "method": method,
            "params": {**(params or {}), "_meta": carried},
        }
        return self.post(message)

    def post(self, message: Mapping[str, Any], *, era: str = "modern") -> Post:
        """Return a message, which has a method and params, with its headers."""
        headers = self._headers(message["method"], message["params"])
        return Post(body=encode(message), message=message, headers=headers, era=era)

    def _headers(self, method: str, params: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
        """Return the headers of a message, with those of a tool where there can be any (HTTP.3)."""
        tool = self.tools.get(str(params.get("name")), {}) if method == "tools/call" else {}
        try:
            parameters = header_parameters(tool.get("inputSchema", {}))
            return tuple(request_headers(method, params, MODERN_VERSION, parameters))
        except (ValueError, LocalProtocolError):
            return tuple(request_headers(method, params, MODERN_VERSION))

    def raw(self, body: bytes, method: str = "server/discover") -> Post:
        """Return bytes that are no message, in the clothes of a request with this method."""
        dressed = self.request(method)
        return evolve(dressed, body=body, message=None, era="none")

    def call(self, call: ToolCall, **options: Any) -> Post:
        """Return a ``tools/call``; ``params`` are more of its params, the rest is for :meth:`request`."""
        arguments = call.arguments
        if arguments is None:
            arguments = sample(self.tools.get(call.tool, {}).get("inputSchema")) or {}
        params = {"name": call.tool, "arguments": arguments, **options.pop("params", {})}
        return self.request("tools/call", params, **options)

    def legacy(self, method: str, params: Mapping[str, Any] | None = None, **more: Any) -> Post:
        """Return a request of 2025-11-25, in the session if there is one; ``id=None`` makes a notification.

        ``more`` are further members of the message.
        """
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "id": self.new_id(), **more}
        if message["id"] is None:
            del message["id"]
        if params is not None:
            message["params"] = params
        return self.legacy_post(message)

    def legacy_post(self, message: Mapping[str, Any]) -> Post:
        """Return any message of 2025-11-25."""
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": LEGACY_VERSION,
        }
        if self.session is not None:
            headers["Mcp-Session-Id"] = self.session
        sent = tuple(headers.items())
        return Post(body=encode(message), message=message, headers=sent, era="legacy", channel=1)

    def of_other_caller(self, post: Post) -> Post:
        """Return a post as the other caller's."""
        return evolve(post, caller=1)

    def changed(self, post: Post, **members: Any) -> Post:
        """Return a request with other members; the headers stay what they were."""
        message = {**post.message, **members}
        return evolve(post, body=encode(message), message=message)

    # -- conversations -------------------------------------------------------------------------------------

    def opened(self, post: Post) -> Script[Stream]:
        """Send a post, and leave its exchange open."""
        number = self.new_id()
        stream = Stream(post, number, self.now_ms)
        yield Open(number, post)
        self.open[number] = stream
        return stream

    def next_message(self, stream: Stream, within_ms: int | None = None) -> Script[Any]:
        """Return the next message of a stream; ``None``: it is over, or nothing came in time."""
        patience = self.settings.answer_ms if within_ms is None else within_ms
        until = self.now_ms + patience
        while not stream.over and self.now_ms <= until and len(stream.messages) < MESSAGES:
            match (yield Next(stream.exchange, until - self.now_ms)):
                case Begun(status=status, headers=headers):
                    stream.status, stream.headers = status, headers
                case Came(message=message, size_bytes=size_bytes):
                    self.heard_bytes += size_bytes
                    stream.messages.append(message)
                    stream.places.append(next(self._places))
                    if _is_response(message):
                        stream.response = message
                    return message
                case Unreadable(what=what, over_limit=over_limit):
                    stream.trouble, stream.over, stream.over_limit = what, over_limit, over_limit
                case Ended(trouble=trouble, over_limit=over_limit, unsent=unsent):
                    stream.trouble, stream.over = stream.trouble or trouble, True
                    stream.over_limit, stream.unsent = stream.over_limit or over_limit, unsent
                case _:
                    break
        return None

    def closed(self, stream: Stream) -> Script[Answer]:
        """Close a stream; return all that came on it.

        Raises :class:`Unseen` where what came says nothing of the server: it was over a limit of this side,
        the server wants to be left alone for a while, or it was gone before.
        """
        answer = yield from self.shut(stream)
        was_gone, self.gone = self.gone, stream.unsent
        if was_gone and self.gone:
            raise Unseen(f"the server is gone: {answer.trouble}")
        if answer.status == TOO_MANY_REQUESTS:
            raise Unseen(f"the server wants to be asked less often (HTTP {TOO_MANY_REQUESTS})")
        if answer.over_limit and answer.response is None:
            raise Unseen(answer.trouble or "")
        return answer

    def shut(self, stream: Stream) -> Script[Answer]:
        """Do the same for who wants to know whatever came."""
        del self.open[stream.exchange]
        yield Close(stream.exchange)
        answer = Answer(
            post=stream.post,
            over_http=self.speaks_http,
            at_ms=self.now_ms,
            sent_ms=stream.sent_ms,
            status=stream.status,
            headers=stream.headers,
            messages=tuple(stream.messages),
            places=tuple(stream.places),
            response=stream.response,
            trouble=stream.trouble,
            over_limit=stream.over_limit,
        )
        self._keep(answer)
        return answer

    def ask(self, post: Post, within_ms: int | None = None) -> Script[Answer]:
        """Send a post and wait for its answer. Raises :class:`Unseen` as :meth:`closed` does."""
        return (yield from self.closed((yield from self._listened(post, within_ms))))

    def tried(self, post: Post, within_ms: int | None = None) -> Script[Answer]:
        """Do the same for who wants to know whatever came."""
        return (yield from self.shut((yield from self._listened(post, within_ms))))

    def _listened(self, post: Post, within_ms: int | None) -> Script[Stream]:
        stream = yield from self.opened(post)
        until = self.now_ms + (self.settings.answer_ms if within_ms is None else within_ms)
        while (
            stream.response is None
            and (yield from self.next_message(stream, max(0, until - self.now_ms))) is not None
        ):
            pass
        if stream.response is None and stream.trouble is None and not stream.over:
            flooded = len(stream.messages) == MESSAGES
            stream.trouble = f"{MESSAGES} messages came, and no response" if flooded else SILENT
        return stream

    def told(self, post: Post) -> Script[Answer]:
        """Send a notification; over HTTP, wait until it has been taken. Raises as :meth:`ask` does."""
        stream = yield from self.opened(post)
        if self.speaks_http:
            yield from self.next_message(stream)
        return (yield from self.closed(stream))

    def pause(self, ms: int) -> Script[None]:
        """Let time pass."""
        yield Pause(max(0, ms))

    def _keep(self, answer: Answer) -> None:
        self.log.append(answer)
        era, result = answer.post.era, answer.result or {}
        nested = result.get("task")
        seen = nested if isinstance(nested, Mapping) else result
        task_id = seen.get("taskId")
        if not isinstance(task_id, str):
            return
        if status_of(seen) in TERMINAL:
            self.running.pop(task_id, None)
        elif answer.post.method == "tools/call":
            self.running[task_id] = era

    # -- tasks ---------------------------------------------------------------------------------------------

    def tool(self, *roles: Role) -> ToolCall:
        """Return a tool with one of these roles. Raises :class:`Unseen` where none is known."""
        for role in roles:
            if role in self.calls:
                return self.calls[role]
        raise Unseen(f"no tool is known that {roles[0].meaning} (--{roles[0].value} names one)")

    def create(self, *roles: Role, **options: Any) -> Script[Answer]:
        """Call a tool with one of these roles, and return the answer, which is a task.

        Raises :class:`Unseen` where there is no such tool, or its call gives no task this time.
        """
        call = self.tool(*roles)
        answer = yield from self.ask(self.call(call, **options))
        if task_of(answer) is None:
            raise Unseen(f"the tool {call.tool} gave no task")
        return answer

    def get(self, task_id: str, **options: Any) -> Script[Answer]:
        """Send ``tasks/get``."""
        return (yield from self.ask(self.request("tasks/get", {"taskId": task_id}, **options)))

    def update(self, task_id: str, responses: Any, **options: Any) -> Script[Answer]:
        """Send ``tasks/update``."""
        params = {"taskId": task_id, "inputResponses": responses}
        return (yield from self.ask(self.request("tasks/update", params, **options)))

    def cancel(self, task_id: str, **options: Any) -> Script[Answer]:
        """Send ``tasks/cancel``."""
        return (yield from self.ask(self.request("tasks/cancel", {"taskId": task_id}, **options)))

    def watch(
        self, task_id: str, *statuses: str, within_ms: int | None = None, **options: Any
    ) -> Script[Answer | None]:
        """Poll a task, as it wants to be polled, until it has one of these statuses, or has ended.

        It is looked at once more when the time is up, be that earlier than it wants. Returns the last answer;
        ``None``: it took too long. Raises :class:`Broken` for one without a view.
        """
        until = self.now_ms + (self.settings.task_ms if within_ms is None else within_ms)
        while True:
            answer = yield from self.get(task_id, **options)
            view = answer.result
            if view is None:
                raise Broken("tasks/get did not show the task that was just made", answer)
            if status_of(view) in (*statuses, *TERMINAL):
                return answer
            if self.now_ms >= until:
                return None
            hint = view.get("pollIntervalMs")
            hint = max(hint, POLL_MS) if isinstance(hint, int) and hint > 0 else 100
            yield from self.pause(min(hint, until - self.now_ms))

    def until(self, task_id: str, *statuses: str, **options: Any) -> Script[Answer]:
        """Poll a task until it has one of these statuses. Raises :class:`Unseen` where it never does."""
        answer = yield from self.watch(task_id, *statuses, **options)
        if answer is None:
            raise Unseen(f"no task became {' or '.join(statuses)} within {self.settings.task_ms} ms")
        status = status_of(answer.result or {})
        if status not in statuses:
            raise Unseen(f"the task ended as {status} before it was {' or '.join(statuses)}")
        return answer

    def ended(self, task_id: str) -> Script[Answer]:
        """Poll a task to its end. Raises :class:`Unseen` where it takes too long."""
        return (yield from self.until(task_id, *sorted(TERMINAL)))


def task_of(answer: Answer) -> str | None:
    """Return the id of the task that a call became; ``None``: it became none."""
    result = answer.result or {}
    task_id = result.get("taskId")
    return task_id if result.get("resultType") == "task" and isinstance(task_id, str) else None


def status_of(view: Mapping[str, Any]) -> str:
    """Return the status of a task; empty where it has none that is a string."""
    found = view.get("status")
    return found if isinstance(found, str) else ""


def requests_of(answer: Answer) -> Mapping[str, Any]:
    """Return the input requests that an answer shows."""
    found = (answer.result or {}).get("inputRequests")
    return found if isinstance(found, Mapping) else {}


def input_response(request: Any) -> dict[str, Any]:
    """Return an answer to an input request, with made-up contents."""
    request = request if isinstance(request, Mapping) else {}
    match request.get("method"):
        case "sampling/createMessage":
            content = {"type": "text", "text": "kit"}
            return {"role": "assistant", "content": content, "model": "kit", "stopReason": "endTurn"}
        case "roots/list":
            return {"roots": []}
    params = request.get("params")
    schema = params.get("requestedSchema") if isinstance(params, Mapping) else None
    return {"action": "accept", "content": sample(schema) or {}}


def _is_response(message: Any) -> bool:
    return (
        isinstance(message, Mapping)
        and "method" not in message
        and ("result" in message or "error" in message)
    )
