"""A proxy of this project as a subject of conversations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from attrs import define, evolve, field

from mcp_tasks_proto.effects import Reply, Send, StopCall
from mcp_tasks_proto.errors import ErrorObject
from mcp_tasks_proto.inputs import (
    ExchangeClosed,
    MessageReceived,
    SaveFailed,
    ShutdownStarted,
    StreamReady,
    TimePassed,
)
from mcp_tasks_proto.proxy import (
    Access,
    DrawRandom,
    DropTask,
    InputKind,
    LoadTask,
    Note,
    ProxyEngine,
    ProxyLimits,
    ProxySettings,
    Purge,
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
from mcp_tasks_proto.testing import ProxyStore
from mcp_tasks_proto.vocabulary import CACHEABLE_METHODS, MODERN_VERSION, TASKS_EXTENSION
from mcp_tasks_proto.wire.jsonrpc import error_message, notification_message, result_message
from tests.unit.vector_subjects.http import head_of

__all__ = ["ProxySubject"]

Output = dict[str, Any]
START: Final = 1_700_000_000_000
READS: Final = (LoadTask, DrawRandom)
WRITES: Final = (SaveBinding, SaveSnapshot)


@define(eq=False)
class ProxySubject:
    """Takes the steps of a conversation with a proxy between callers and upstreams."""

    setup: Mapping[str, Any]
    _store: ProxyStore = field(init=False, factory=ProxyStore)
    _settings: ProxySettings = field(init=False)
    _engine: ProxyEngine = field(init=False)
    _held: list[SaveBinding | SaveSnapshot] = field(init=False, factory=list)
    _now: int = field(init=False, default=START)
    _deadline: int | None = field(init=False, default=None)

    def __attrs_post_init__(self) -> None:
        setup = self.setup
        changes: dict[str, Any] = {
            name: setup[name] for name in ("collapse", "promote_after_ms", "response_bytes") if name in setup
        }
        if "task_tools" in setup:
            changes["profiles"] = {"default": ToolProfile(task_tools=frozenset(setup["task_tools"]))}
        if "cached_methods" in setup:
            changes["cached_methods"] = CACHEABLE_METHODS | frozenset(setup["cached_methods"])
        if "input_kinds" in setup:
            changes["input_kinds"] = frozenset(InputKind(kind) for kind in setup["input_kinds"])
        self._settings = ProxySettings(
            name="vectors",
            version="1",
            sealer=HmacSealer([bytes(32)]),
            upstreams=tuple(Upstream(name=one["name"]) for one in setup["upstreams"]),
            limits=ProxyLimits(**setup.get("limits", {})),
            access=Access(project=setup.get("project")),
            tasks=setup.get("gate_open", True),
            **changes,
        )
        self._start()

    def _start(self) -> None:
        self._engine = ProxyEngine(settings=self._settings, node="A")
        self._held.clear()
        self._tell(TimePassed())

    def step(self, at_ms: int, given: Mapping[str, Any]) -> list[Output]:
        """Let time pass, and tell of the fact."""
        outputs: list[Output] = []
        until = START + at_ms
        while self._deadline is not None and self._deadline <= until:
            self._now = max(self._now, self._deadline)
            outputs += self._tell(TimePassed())
        self._now = until
        match given["type"]:
            case "wait":
                return outputs
            case "store":
                effect = self._held.pop(0)
                committed = given["does"] == "commit"
                return outputs + self._tell(
                    self._store.answer(effect) if committed else SaveFailed(effect.token)
                )
            case "host" if given["does"] == "restart":
                self._start()
                return outputs
        return outputs + self._tell(self._fact(given))

    def _tell(self, fact: Any) -> list[Output]:
        outputs: list[Output] = []
        facts = [fact]
        while facts:
            step = self._engine.handle(facts.pop(0), now=self._now)
            self._deadline = step.deadline
            for effect in step.effects:
                if isinstance(effect, WRITES) and self.setup.get("store") == "held":
                    self._held.append(effect)
                elif isinstance(effect, WRITES + READS):
                    facts.append(self._store.answer(effect))
                elif isinstance(effect, SendUpstream) and (found := self._discovered(effect)) is not None:
                    facts.append(found)
                elif (told := self._told(effect)) is not None:
                    outputs.append(told)
                    if isinstance(effect, Send) and self.setup.get("readers") != "slow":
                        facts.append(StreamReady(effect.exchange))
        return outputs

    def _discovered(self, effect: SendUpstream) -> UpstreamAnswered | None:
        """Answer as an upstream what it is asked about itself."""
        behind = next(one for one in self.setup["upstreams"] if one["name"] == effect.upstream)
        if behind.get("down"):
            return None
        match effect.message["method"]:
            case "server/discover":
                extensions: dict[str, Any] = {TASKS_EXTENSION: {}} if behind.get("tasks", True) else {}
                capabilities = {"tools": {}, "extensions": extensions}
                result = {
                    "supportedVersions": [MODERN_VERSION],
                    "capabilities": capabilities,
                    "ttlMs": 86_400_000,
                }
            case "tools/list":
                listed = [{"name": name, "inputSchema": {"type": "object"}} for name in behind["tools"]]
                result = {"tools": listed, "ttlMs": 86_400_000}
            case _:
                return None
        return UpstreamAnswered(request=effect.request, message=result_message(effect.request, result))

    # -- facts ---------------------------------------------------------------------------------------------

    def _fact(self, given: Mapping[str, Any]) -> Any:
        match given["type"]:
            case "receive":
                return MessageReceived(
                    exchange=given["exchange"],
                    message=given["message"],
                    connection=given.get("channel"),
                    http=head_of(given["headers"]) if "headers" in given else None,
                    principal=given.get("principal"),
                    tasks_enabled=given.get("tasks_enabled", True),
                )
            case "disconnect":
                return ExchangeClosed(given["exchange"])
            case "drained":
                return StreamReady(given["exchange"])
            case "upstream":
                return self._upstream(given)
        if given["does"] == "shut_down":
            return ShutdownStarted()
        tools = {tool for one in self.setup["upstreams"] for tool in one["tools"]} - {given["tool"]}
        return SettingsChanged(
            evolve(self._settings, profiles={"default": ToolProfile(tools=frozenset(tools))})
        )

    def _upstream(self, given: Mapping[str, Any]) -> Any:
        request = given["request"]
        match given["does"]:
            case "return":
                return UpstreamAnswered(request=request, message=result_message(request, given["result"]))
            case "fail":
                error = ErrorObject(**given["error"])
                return UpstreamAnswered(request=request, message=error_message(request, error))
            case "notify":
                return UpstreamNotified(request, notification_message(given["method"], given["params"]))
        return UpstreamFailed(request, sent=given["sent"])

    # -- effects -------------------------------------------------------------------------------------------

    def _told(self, effect: Any) -> Output | None:
        match effect:
            case Reply():
                told = {"type": "reply", "exchange": effect.exchange, "message": effect.message}
                return {**told, "http_status": effect.http_status}
            case Send():
                return {"type": "send", "exchange": effect.exchange, "message": effect.message}
            case StopCall():
                return {"type": "stop_call", "exchange": effect.exchange}
            case SendUpstream():
                told = {"type": "upstream_request", "upstream": effect.upstream, "request": effect.request}
                return {**told, "message": effect.message, "task_path": effect.task_path}
            case StopUpstream():
                return {"type": "upstream_stop", "request": effect.request}
            case Note():
                self._store.note(effect)
            case DropTask():
                self._store.drop(effect.handle)
            case Purge():
                self._store.purge(effect)
        return None
