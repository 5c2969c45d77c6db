"""Traces of a proxy: callers on one side of it, upstreams on the other, its store beneath.

Set up with ``proxy before renderer render delete`` (an upstream and its tools; it has tasks, unless
``without tasks`` follows, and is of 2025-11-25 if ``legacy`` does), ``proxy shows store``,
``proxy collapses``, ``proxy promotes 5000``, ``proxy keeps tools/call`` (results, where they say for how
long), ``proxy cuts 300`` (those that are longer), ``proxy project film`` (that callers are of),
``proxy keyed`` (they are API keys), ``proxy speaks 2025-11-25`` as well, ``proxy bridges``,
``proxy profile render`` (the tools that may be tasks), ``proxy gate closed``, and limits by name. What an
upstream is, it answers by itself, and nothing is said of it. Handles are called ``H1``, ``H2`` and so on, in
the order in which they are made.

``caller``
    As ``client`` in :mod:`mcp_tasks_proto.testing.traces.facts`.

``upstream``
    Answers or notifies, by the number of the request: ``3 returns "text"``, ``3 returns {…}``,
    ``3 fails -32602 "text"``, ``3 breaks`` (it was sent, and nobody knows), ``3 bounces`` (it was not sent),
    ``3 asks confirm state "x"``, ``3 makes up-7 working``, ``4 shows up-7 completed result "text"``,
    ``5 agrees up-7``, ``5 pushes up-7 working``. A view may have ``changed +100``, ``ttl``, ``poll``, a
    message, ``result "text"``, ``error -32603 "text"``, and last ``asks confirm``.

``store``
    ``does it``, ``fails``, where the proxy ``shows store``.

``clock``
    ``wakes`` the engine.

``viewer``
    As in :mod:`mcp_tasks_proto.testing.traces.ledger`.

``host``
    ``withdraws render``, ``deletes film`` (a project), ``assigns H1 carol``, ``loses H1 of node``,
    ``restarts`` (all but the store is gone), ``stops``.

==============================================  ==============================================================
``up 3 renderer tools/call render {}``          a request to an upstream; ``declaring tasks``, ``to up-7``,
                                                ``on the task path`` follow
``legacy 9 old tools/call {…}``                 a message of 2025-11-25 to one, with its params
``stop 3``                                      nobody waits for it any more
``draw``, ``load H1``                           questions to the host
``list handles of alice``                       another
``bind H1 to up-7``, ``keep H1 completed``      what is to be durable before it is told
``note H1 working``, ``drop H1``                the ledger; a task that nobody got
``remove all of film``                          what is kept of a project that is deleted
==============================================  ==============================================================
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from re import compile as pattern
from typing import Any, Final

from attrs import define, evolve, field, fields_dict, frozen

from mcp_tasks_proto.effects import Reply, Send, StopCall
from mcp_tasks_proto.history import TaskEntry, assign
from mcp_tasks_proto.inputs import (
    LoadFailed,
    MessageReceived,
    SaveFailed,
    ShutdownStarted,
    TimePassed,
    WorkLost,
)
from mcp_tasks_proto.legacy.proxy import DualEraProxy, ListHandles, SendLegacyUpstream
from mcp_tasks_proto.limits import Limits
from mcp_tasks_proto.negotiation import declares_tasks
from mcp_tasks_proto.proxy import (
    Access,
    DrawRandom,
    DropTask,
    LoadTask,
    Note,
    ProxyEngine,
    ProxyInput,
    ProxyLimits,
    ProxySettings,
    Purge,
    RandomDrawn,
    SaveBinding,
    SaveSnapshot,
    SendUpstream,
    SettingsChanged,
    StopUpstream,
    ToolProfile,
    Upstream,
    UpstreamAnswered,
    UpstreamFailed,
    UpstreamNotified,
)
from mcp_tasks_proto.request_state import HmacSealer
from mcp_tasks_proto.requester import NotificationReceived, RequestFailed, ResponseReceived
from mcp_tasks_proto.requester.inputs import HttpReply
from mcp_tasks_proto.testing.proxy_host import ProxyStore
from mcp_tasks_proto.testing.traces.effects import Teller
from mcp_tasks_proto.testing.traces.facts import Facts, error_in, questions_in, result_in
from mcp_tasks_proto.testing.traces.ledger import viewed
from mcp_tasks_proto.testing.traces.words import (
    LINE,
    START,
    Json,
    TraceError,
    Words,
    task_id,
    task_name,
    tell_json,
)
from mcp_tasks_proto.vocabulary import (
    CACHEABLE_METHODS,
    CLIENT_CAPABILITIES,
    LEGACY_VERSION,
    MODERN_VERSION,
    TASKS_EXTENSION,
)
from mcp_tasks_proto.wire.base64url import to_bytes
from mcp_tasks_proto.wire.jsonrpc import error_message, notification_message, result_message
from mcp_tasks_proto.wire.schema import timestamp

__all__ = ["ProxyStage"]

QUESTIONS: Final = (DrawRandom, LoadTask, ListHandles, SaveBinding, SaveSnapshot)
USUAL: Final = Limits(ttl_ms=60_000, poll_interval_ms=1000)
"""What an upstream's view says of lifetime and hint, where a trace does not."""
HANDLE: Final = pattern(r'"(\w+)-{9,}A"|(\w+)-{9,}A')
"""A handle, alone in quotes or among other words."""
_SHORT: Final = r"\1\2"


def handle(name: str) -> str:
    """Return the handle that is called ``H1`` or the like: what 256 bits look like, as text."""
    return name + "-" * (42 - len(name)) + "A"


@frozen
class _Behind:
    """An upstream."""

    tools: list[str]
    tasks: bool
    legacy: bool


@define(eq=False)
class ProxyStage:
    """A proxy, its store, and the time."""

    _settings: ProxySettings | None = field(init=False, default=None)
    _changes: dict[str, Any] = field(init=False, factory=dict)
    _limits: dict[str, int] = field(init=False, factory=dict)
    _upstreams: dict[str, _Behind] = field(init=False, factory=dict)
    _both_eras: bool = field(init=False, default=False)
    _access: Access = field(init=False, factory=Access)
    _store: ProxyStore = field(init=False, factory=ProxyStore)
    _store_is_shown: bool = field(init=False, default=False)
    _facts: Facts = field(init=False, factory=Facts)
    _engine: ProxyEngine | DualEraProxy | None = field(init=False, default=None)
    _asked: list[Any] = field(init=False, factory=list)
    _sent: set[int] = field(init=False, factory=set)
    _handles: count[int] = field(init=False, factory=lambda: count(1))
    _nodes: count[int] = field(init=False, factory=lambda: count(1))
    _now: int = field(init=False, default=START)
    _deadline: int | None = field(init=False, default=None)

    def play(self, line: str) -> list[str]:
        """Live through one line; return the engine's."""
        match = LINE.fullmatch(line)
        if match is None:
            raise TraceError("a line of the script is: time, if it moves on; who; what")
        speaker, words = match["speaker"], Words(match["words"])
        if speaker == "proxy":
            self._set_up(words)
            words.end()
            return []
        if self._engine is None:
            self._start()
        if match["time"] is not None:
            self._move_on(START + int(match["time"]))
        indent = " " * match.start("words")
        if speaker == "viewer":
            told = viewed(words, self._entries(), self._access.project or "", self._now)
            words.end()
            return [f"{indent}> {HANDLE.sub(_SHORT, line)}" for line in told]
        fact = self._fact(speaker, words)
        words.end()
        return [f"{indent}> {told}" for told in self._give(fact)] if fact is not None else []

    # -- setting up ----------------------------------------------------------------------------------------

    def _set_up(self, words: Words) -> None:
        if self._engine is not None:
            raise TraceError("the proxy is set up before anything is said to it")
        match words.word("what is set up"):
            case "before":
                name, tools = words.word("the upstream"), words.plain("without", "legacy")
                tasks = not (words.follows("without") and words.follows("tasks"))
                legacy = words.follows("legacy")
                self._both_eras |= legacy
                self._upstreams[name] = _Behind(tools, tasks, legacy)
            case "shows":
                self._store_is_shown = words.word("what is shown") == "store"
            case "collapses":
                self._changes["collapse"] = True
            case "promotes":
                self._changes["promote_after_ms"] = words.integer("after how long")
            case "project":
                self._access = evolve(self._access, project=words.word("the project"))
            case "keyed":
                self._access = evolve(self._access, api_key=True)
            case "speaks":
                self._both_eras = words.word("the version") == LEGACY_VERSION
            case "bridges":
                self._both_eras = self._changes["bridging"] = True
            case "profile":
                profile = ToolProfile(task_tools=frozenset(words.plain()))
                self._changes["profiles"] = {"default": profile}
            case "gate":
                self._changes["tasks"] = words.word("how it is") != "closed"
            case "keeps":
                self._changes["cached_methods"] = CACHEABLE_METHODS | {words.word("the method")}
            case "cuts":
                self._changes["response_bytes"] = words.integer("how long a result may be")
            case limit if limit in fields_dict(ProxyLimits):
                self._limits[limit] = words.integer("the limit")
            case other:
                raise TraceError(f"a proxy has no {other}")

    def _start(self) -> None:
        """Start an engine that has looked already for what is past its time."""
        self._settings = ProxySettings(
            name="trace",
            version="1",
            sealer=HmacSealer([bytes(32)]),
            upstreams=tuple(Upstream(name=name) for name in self._upstreams),
            limits=ProxyLimits(**self._limits),
            access=self._access,
            **self._changes,
        )
        engine = DualEraProxy if self._both_eras else ProxyEngine
        self._engine = engine(settings=self._settings, node=f"node-{next(self._nodes)}")
        self._deadline = self._engine.handle(TimePassed(), now=self._now).deadline
        self._sent.clear()
        self._asked.clear()

    # -- facts ---------------------------------------------------------------------------------------------

    def _move_on(self, now: int) -> None:
        if now < self._now:
            raise TraceError("time does not go back")
        while self._deadline is not None and self._deadline < now:
            self._wake_for_nothing()
        self._now = now

    def _wake_for_nothing(self) -> None:
        """Wake the engine at a deadline at which it only looks for what is past its time."""
        assert self._engine is not None
        assert self._deadline is not None
        due, self._now = self._deadline, max(self._now, self._deadline)
        step = self._engine.handle(TimePassed(), now=self._now)
        self._deadline = step.deadline
        if not all(isinstance(effect, Purge) for effect in step.effects):
            raise TraceError(f"the engine wanted to be woken at +{due - START}")

    def _fact(self, speaker: str, words: Words) -> ProxyInput | None:
        match speaker:
            case "caller":
                return self._caller(words)
            case "upstream":
                return self._upstream(words)
            case "store":
                return self._store_speaks(words)
            case "host":
                return self._host(words)
            case "clock" if words.follows("wakes"):
                if self._deadline is None or self._deadline > self._now:
                    raise TraceError("the engine did not ask to be woken by now")
                return TimePassed()
        raise TraceError(f"nobody is called {speaker}, or does that")

    def _caller(self, words: Words) -> ProxyInput:
        fact: Any = self._facts.read("client", words)
        if isinstance(fact, MessageReceived) and isinstance(fact.message, dict):
            params = fact.message.get("params", {})
            if "taskId" in params:
                params["taskId"] = _to_handle(params["taskId"])
            wanted = params.get("notifications", {})
            if "taskIds" in wanted:
                wanted["taskIds"] = [_to_handle(one) for one in wanted["taskIds"]]
        given: ProxyInput = fact
        return given

    def _upstream(self, words: Words) -> ProxyInput:
        name = words.integer("the request")
        if name not in self._sent:
            raise TraceError(f"no request {name} is in flight")
        match words.word("what the upstream does"):
            case "agrees":
                agreed = {"notifications": {"taskIds": words.plain()}}
                method = "notifications/subscriptions/acknowledged"
                return UpstreamNotified(name, notification_message(method, agreed))
            case "pushes":
                return UpstreamNotified(name, notification_message("notifications/tasks", _view(words)))
            case "breaks":
                return UpstreamFailed(name)
            case "bounces":
                return UpstreamFailed(name, sent=False)
            case "fails":
                return UpstreamAnswered(request=name, message=error_message(name, error_in(words)))
            case "returns":
                result = result_in(words)
            case "makes":
                result = {"resultType": "task", **_view(words)}
            case "shows":
                result = _view(words)
            case "asks":
                result = {"resultType": "input_required", "inputRequests": questions_in(words)}
                result |= {"requestState": _value(words)} if words.follows("state") else {}
            case verb:
                raise TraceError(f"an upstream never {verb}")
        return UpstreamAnswered(request=name, message=result_message(name, result))

    def _store_speaks(self, words: Words) -> ProxyInput:
        if not self._asked:
            raise TraceError("the store was not asked anything")
        effect = self._asked.pop(0)
        if words.follows("fails"):
            asks = isinstance(effect, LoadTask | ListHandles)
            return (LoadFailed if asks else SaveFailed)(effect.token)
        if words.follows("does") and words.follows("it"):
            return self._answer(effect)
        raise TraceError("a store does it, or fails")

    def _host(self, words: Words) -> ProxyInput | None:
        assert self._settings is not None
        match words.word("what the host does"):
            case "stops":
                return ShutdownStarted()
            case "restarts":
                self._start()
                return None
            case "withdraws":
                tool = words.word("the tool")
                others = frozenset(name for one in self._upstreams.values() for name in one.tools) - {tool}
                profiles = {"default": ToolProfile(tools=others)}
                return SettingsChanged(evolve(self._settings, profiles=profiles))
            case "deletes":
                gone = self._settings.deleted_projects | {words.word("the project")}
                self._settings = evolve(self._settings, deleted_projects=gone)
                return SettingsChanged(self._settings)
            case "assigns":
                name, assignee = handle(words.word("the task")), words.word("to whom")
                entry = assign(self._store.entries[name], actor="host", assignee=assignee, now=self._now)
                self._store.entries[name] = entry
                return None
            case "loses":
                name = words.word("the task")
                if not words.follows("of"):
                    raise TraceError("a task is lost with its node: loses H1 of node-1")
                return WorkLost(handle(name), words.word("the node"))
            case verb:
                raise TraceError(f"a host never {verb}")

    # -- effects -------------------------------------------------------------------------------------------

    def _give(self, fact: ProxyInput) -> list[str]:
        """Hand in a fact; return what is told of the effects. What is not shown is answered at once."""
        assert self._engine is not None
        told: list[str] = []
        facts: list[ProxyInput] = [fact]
        while facts:
            given = facts.pop(0)
            step = self._engine.handle(self._heard(given), now=self._now)
            if isinstance(given, (UpstreamAnswered, UpstreamFailed)):
                self._sent.discard(given.request)
            self._deadline = step.deadline
            for effect in step.effects:
                if (answer := self._answered_at_once(effect)) is not None:
                    facts.append(answer)
                else:
                    told.extend(HANDLE.sub(_SHORT, line) for line in self._tell(effect))
        return told

    def _heard(self, fact: ProxyInput) -> Any:
        """Return a fact in the words of the engine that there is."""
        if not self._both_eras:
            return fact
        match fact:
            case UpstreamAnswered(request=name, message=message, http_status=status):
                http = HttpReply(status=200 if status is None else status, session="session")
                return ResponseReceived(request=name, message=message, http=http)
            case UpstreamFailed(request=name, sent=sent):
                return RequestFailed(name, "it broke", sent=sent)
            case UpstreamNotified(request=name, message=message):
                return NotificationReceived(name, message)
        return fact

    def _answered_at_once(self, effect: Any) -> ProxyInput | None:
        if isinstance(effect, QUESTIONS):
            if not self._store_is_shown:
                return self._answer(effect)
            self._asked.append(effect)
        if isinstance(effect, SendLegacyUpstream):
            return self._answered_in_session(effect)
        if isinstance(effect, SendUpstream):
            behind, name = self._upstreams[effect.upstream], effect.request
            if behind.legacy:
                return UpstreamAnswered(request=name, message=None, http_status=400)
            result = _discovered(effect.message["method"], behind)
            if result is not None:
                return UpstreamAnswered(request=name, message=result_message(name, result))
            self._sent.add(name)
        return None

    def _answered_in_session(self, effect: SendLegacyUpstream) -> ProxyInput | None:
        """Answer as a legacy upstream what it is asked about itself, or is only told."""
        send, behind = effect.send, self._upstreams[effect.upstream]
        method = send.verb if send.message is None else send.message.get("method", "a response")
        match method:
            case "initialize":
                result = _initialized(behind)
            case "tools/list":
                result = {"tools": [_legacy_tool(name, behind) for name in behind.tools]}
            case "GET":
                return UpstreamAnswered(request=send.request, message=None, http_status=405)
            case "notifications/initialized" | "a response":
                return UpstreamAnswered(request=send.request, message=None, http_status=202)
            case _:
                self._sent.add(send.request)
                return None
        return UpstreamAnswered(request=send.request, message=result_message(send.request, result))

    def _answer(self, effect: Any) -> ProxyInput:
        if isinstance(effect, DrawRandom):
            random = to_bytes(handle(f"H{next(self._handles)}"))
            assert random is not None
            return RandomDrawn(effect.token, random)
        answer: ProxyInput = self._store.answer(effect)
        return answer

    def _entries(self) -> dict[str, TaskEntry]:
        """Return the ledger by short names."""
        return {name.partition("-")[0]: entry for name, entry in self._store.entries.items()}

    def _tell(self, effect: Any) -> list[str]:
        match effect:
            case SendUpstream():
                return [_sent(effect)]
            case SendLegacyUpstream(upstream=upstream, send=send):
                assert send.message is not None
                params = tell_json(send.message["params"])
                return [f"legacy {send.request} {upstream} {send.message['method']} {params}"]
            case StopUpstream(request=name):
                self._sent.discard(name)
                return [f"stop {name}"]
            case DrawRandom():
                return ["draw"]
            case LoadTask(handle=name):
                return [f"load {name}"]
            case ListHandles(principal=principal):
                return [f"list handles of {principal}"]
            case SaveBinding(binding=binding):
                assert binding is not None
                kept = binding.upstream_task_id or f"a call on {binding.node}"
                return [f"bind {binding.handle} to {kept}"]
            case SaveSnapshot(snapshot=snapshot):
                return [f"keep {snapshot.handle} {snapshot.status.value}"]
            case Note(handle=name, observation=seen):
                self._store.note(effect)
                return [f"note {name} {seen.status.value}" + (" polled" if seen.polled else "")]
            case DropTask(handle=name):
                self._store.drop(name)
                return [f"drop {name}"]
            case Purge(projects=projects):
                if projects:
                    self._store.purge(effect)
                return [f"remove all of {project}" for project in sorted(projects)]
        return [self._told_to_caller(effect)]

    def _told_to_caller(self, effect: Reply | Send | StopCall) -> str:
        info = {"name": "trace", "version": "1"}
        if isinstance(effect, Reply):
            result = (effect.message or {}).get("result", {})
            if "requestState" in result:
                self._facts.states[effect.exchange] = result["requestState"]
        return Teller(START, USUAL, info, self._facts.request_ids).tell(effect)


def _to_handle(id_: Any) -> Any:
    """Return the handle that a short name stands for; what is in JSON is taken as it is."""
    named = isinstance(id_, str) and id_ == task_id(task_name(id_))
    return handle(task_name(id_)) if named else id_


def _initialized(behind: _Behind) -> dict[str, Any]:
    """Return how a legacy upstream greets."""
    tasks: dict[str, Any] = {"tasks": {"cancel": {}, "requests": {"tools": {"call": {}}}}}
    capabilities = {"tools": {}, **(tasks if behind.tasks else {})}
    return {
        "protocolVersion": LEGACY_VERSION,
        "capabilities": capabilities,
        "serverInfo": {"name": "old", "version": "1"},
    }


def _legacy_tool(name: str, behind: _Behind) -> dict[str, Any]:
    support = "optional" if behind.tasks else "forbidden"
    return {"name": name, "inputSchema": {"type": "object"}, "execution": {"taskSupport": support}}


def _discovered(method: str, behind: _Behind) -> dict[str, Any] | None:
    """Return what an upstream says of itself, if that is what it is asked."""
    if method == "server/discover":
        extensions: dict[str, Any] = {TASKS_EXTENSION: {}} if behind.tasks else {}
        capabilities = {"tools": {}, "extensions": extensions}
        return {"supportedVersions": [MODERN_VERSION], "capabilities": capabilities, "ttlMs": 86_400_000}
    if method == "tools/list":
        listed = [{"name": name, "inputSchema": {"type": "object"}} for name in behind.tools]
        return {"tools": listed, "ttlMs": 86_400_000}
    return None


def _view(words: Words) -> dict[str, Any]:
    """Read a view as an upstream writes it."""
    view: dict[str, Any] = {
        "taskId": _value(words),
        "status": words.word("the status"),
        "createdAt": timestamp(START),
        "lastUpdatedAt": timestamp(START),
        "ttlMs": USUAL.ttl_ms,
        "pollIntervalMs": USUAL.poll_interval_ms,
    }
    while words:
        match words.any_word("what else"):
            case "changed":
                view["lastUpdatedAt"] = timestamp(START + words.integer("when it changed"))
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
            case other:
                raise TraceError(f"a view has no {other}")
    return view


def _value(words: Words) -> Any:
    word = words.any_word("a value")
    return word.value if isinstance(word, Json) else word


def _sent(effect: SendUpstream) -> str:
    """Tell a request to an upstream, without what every one has."""
    params: Mapping[str, Any] = effect.message["params"]
    known = ("_meta", "name", "taskId", "arguments")
    rest = {name: value for name, value in params.items() if name not in known}
    parts = [
        f"up {effect.request} {effect.upstream} {effect.message['method']}",
        params.get("name", ""),
        tell_json(params["arguments"]) if "arguments" in params else "",
        f"to {params['taskId']}" if "taskId" in params else "",
        tell_json(rest) if rest else "",
        "declaring tasks" if declares_tasks(params["_meta"][CLIENT_CAPABILITIES]) else "",
        "on the task path" if effect.task_path else "",
    ]
    return " ".join(part for part in parts if part)
