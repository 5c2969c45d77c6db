"""A server of this project, or several over one store, as a subject of conversations."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from itertools import count
from typing import Any, Final

from attrs import define, field

from mcp_tasks_proto import (
    DEFAULT,
    KEEP,
    AcceptReport,
    CallAskedInput,
    CallBecameTask,
    CallFailed,
    CallNotified,
    CallReturned,
    ConnectionClosed,
    Delete,
    DeliverInput,
    ErrorObject,
    ExchangeClosed,
    FindExpired,
    Forward,
    HmacSealer,
    InputVisibility,
    Limits,
    ListTasks,
    Load,
    MessageReceived,
    OpenStream,
    RejectReport,
    Reply,
    RequestCancel,
    Save,
    SaveFailed,
    Send,
    ServerEngine,
    ServerSettings,
    SessionEnded,
    ShutdownStarted,
    StartTool,
    StartWork,
    StopCall,
    StreamReady,
    StreamRequested,
    TimePassed,
    TtlChanged,
    WorkAskedInput,
    WorkCompleted,
    WorkFailed,
    WorkProgressed,
    WorkStopped,
    WorkWithdrewInput,
)
from mcp_tasks_proto.legacy.server import DualEraServer, LegacyPolicy
from mcp_tasks_proto.testing import DictStore
from tests.unit.vector_subjects.core import tool_of
from tests.unit.vector_subjects.http import head_of

__all__ = ["ServerSubject"]

Output = dict[str, Any]
START: Final = 1_700_000_000_000
WRITES: Final = (Save, Delete)
READS: Final = (Load, FindExpired, ListTasks)
KEY: Final = bytes(32)


@define(eq=False)
class _Node:
    """One process."""

    engine: ServerEngine | DualEraServer
    deadline: int | None = None


@define(eq=False)
class ServerSubject:
    """Takes the steps of a conversation with a server."""

    setup: Mapping[str, Any]
    _store: DictStore = field(init=False, factory=DictStore)
    _nodes: dict[str, _Node] = field(init=False, factory=dict)
    _held: list[tuple[_Node, Save | Delete]] = field(init=False, factory=list)
    _now: int = field(init=False, default=START)
    _keys: list[bytes] = field(init=False, factory=lambda: [KEY])
    _tasks: dict[str, str] = field(init=False, factory=dict)
    """The id of the task that each exchange became."""
    _ids: Iterator[int] = field(init=False, factory=lambda: count(1))
    _on_channels: set[Hashable] = field(init=False, factory=set)
    _inner: dict[str, Hashable] = field(init=False, factory=dict)
    """Exchanges that an engine has of its own, by the names that they have in the conversation."""

    def step(self, at_ms: int, given: Mapping[str, Any]) -> list[Output]:
        """Let time pass, and tell of the fact."""
        outputs = self._wait(START + at_ms)
        node = self._node(given.get("node", "A"))
        match given["type"]:
            case "wait":
                pass
            case "store":
                outputs += self._store_does(given["does"])
            case "host":
                outputs += self._host_does(node, given)
            case _:
                outputs += self._tell(node, self._fact(given))
        return outputs

    # -- the engines ---------------------------------------------------------------------------------------

    def _node(self, name: str) -> _Node:
        if name not in self._nodes:
            node = _Node(self._engine())
            self._nodes[name] = node
            self._tell(node, TimePassed())
        return self._nodes[name]

    def _engine(self) -> ServerEngine | DualEraServer:
        setup = self.setup
        settings = ServerSettings(
            name="vectors",
            version="1",
            sealer=HmacSealer(self._keys),
            limits=Limits(**setup.get("limits", {})),
            methods=frozenset(setup.get("methods", ())),
            input_visibility=InputVisibility(setup.get("input_visibility", "owner")),
            page_size=setup.get("page_size", 100),
        )
        tools = [tool_of(one) for one in setup.get("tools", ())]
        if "legacy" in setup:
            return DualEraServer(settings=settings, tools=tools, policy=LegacyPolicy(setup["legacy"]))
        return ServerEngine(settings=settings, tools=tools)

    def _tell(self, node: _Node, fact: Any) -> list[Output]:
        outputs: list[Output] = []
        facts = [fact]
        while facts:
            step = node.engine.handle(facts.pop(0), now=self._now)
            node.deadline = step.deadline
            for effect in step.effects:
                if isinstance(effect, WRITES) and self.setup.get("store") == "held":
                    self._held.append((node, effect))
                elif isinstance(effect, WRITES + READS):
                    facts.append(self._store.answer(effect))
                elif (told := self._told(effect)) is not None:
                    outputs.append(told)
                    if isinstance(effect, (Send, OpenStream)) and self.setup.get("readers") != "slow":
                        facts.append(StreamReady(effect.exchange))
        return outputs

    def _wait(self, until: int) -> list[Output]:
        outputs: list[Output] = []
        while due := [
            one for one in self._nodes.values() if one.deadline is not None and one.deadline <= until
        ]:
            node = min(due, key=lambda one: one.deadline or 0)
            self._now = max(self._now, node.deadline or 0)
            outputs += self._tell(node, TimePassed())
        self._now = until
        return outputs

    # -- facts ---------------------------------------------------------------------------------------------

    def _store_does(self, what: str) -> list[Output]:
        node, effect = self._held.pop(0)
        failed = SaveFailed(effect.token)
        return self._tell(node, self._store.answer(effect) if what == "commit" else failed)

    def _host_does(self, node: _Node, given: Mapping[str, Any]) -> list[Output]:
        match given["does"]:
            case "restart":
                self._nodes.clear()
                self._held.clear()
                return []
            case "rotate_keys":
                self._keys.insert(0, bytes([len(self._keys)] * 32))
                return []
            case "drop_keys":
                del self._keys[1:]
                return []
            case "shut_down":
                return self._tell(node, ShutdownStarted())
            case _:
                fact = TtlChanged(task_id=self._tasks[given["of"]], ttl_ms=given["ttl_ms"], token=given["of"])
                return self._tell(node, fact)

    def _fact(self, given: Mapping[str, Any]) -> Any:
        match given["type"]:
            case "receive":
                return self._received(given)
            case "disconnect":
                return ExchangeClosed(given["exchange"])
            case "close_channel":
                return ConnectionClosed(given["channel"])
            case "drained":
                return StreamReady(given["exchange"])
            case "open_stream":
                head = head_of(given["headers"])
                return StreamRequested(
                    exchange=given["exchange"], http=head, principal=given.get("principal")
                )
            case "end_session":
                head = head_of(given["headers"])
                return SessionEnded(exchange=given["exchange"], http=head, principal=given.get("principal"))
            case "handler":
                return self._handler(given)
            case _:
                return self._worker(given)

    def _received(self, given: Mapping[str, Any]) -> MessageReceived:
        http = None
        if "channel" in given:
            self._on_channels.add(given["exchange"])
        if "headers" in given:
            http = head_of(given["headers"], accepts_stream=given.get("accepts_stream", True))
        return MessageReceived(
            exchange=given["exchange"],
            message=given["message"],
            connection=given.get("channel"),
            http=http,
            principal=given.get("principal"),
            tasks_enabled=given.get("tasks_enabled", True),
            new_session=given.get("new_session"),
        )

    def _handler(self, given: Mapping[str, Any]) -> Any:
        exchange = self._inner.get(given["exchange"], given["exchange"])
        match given["does"]:
            case "return":
                return CallReturned(exchange, given["result"])
            case "fail":
                return CallFailed(exchange, ErrorObject(**given["error"]))
            case "ask":
                return CallAskedInput(exchange, given["requests"], given.get("state"))
            case "notify":
                return CallNotified(exchange, given["method"], given["params"])
        task_id = f"task-{next(self._ids)}-0123456789abcdefghijk"
        self._tasks[given["exchange"]] = task_id
        return CallBecameTask(
            exchange=exchange,
            task_id=task_id,
            status_message=given.get("status_message"),
            ttl_ms=given.get("ttl_ms", DEFAULT),
            poll_interval_ms=given.get("poll_interval_ms", DEFAULT),
        )

    def _worker(self, given: Mapping[str, Any]) -> Any:
        who: dict[str, Any] = {"task_id": self._tasks[given["of"]], "token": given["of"]}
        message = given.get("status_message", KEEP)
        match given["does"]:
            case "report":
                return WorkProgressed(
                    **who,
                    status_message=message,
                    ttl_ms=given.get("ttl_ms", KEEP),
                    poll_interval_ms=given.get("poll_interval_ms", KEEP),
                )
            case "ask":
                return WorkAskedInput(**who, ask=given["question"], requests=given["requests"])
            case "withdraw":
                return WorkWithdrewInput(**who, ask=given["question"])
            case "complete":
                return WorkCompleted(**who, result=given["result"], status_message=message)
            case "fail":
                return WorkFailed(
                    **who,
                    error=ErrorObject(**given["error"]),
                    status_message=given.get("status_message"),
                )
        return WorkStopped(**who, status_message=message)

    # -- effects -------------------------------------------------------------------------------------------

    def _of(self, task_id: str) -> str:
        return next(exchange for exchange, id_ in self._tasks.items() if id_ == task_id)

    def _name(self, exchange: Hashable) -> str:
        """Return what an exchange is called; those of an engine's own get a name."""
        if isinstance(exchange, str):
            return exchange
        known = next((name for name, inner in self._inner.items() if inner == exchange), None)
        name = f"inner-{len(self._inner) + 1}" if known is None else known
        self._inner[name] = exchange
        return name

    def _told(self, effect: Any) -> Output | None:
        match effect:
            case Reply(message=None, exchange=exchange) if exchange in self._on_channels:
                return None  # nothing is written there
            case Reply():
                told = {"type": "reply", "exchange": effect.exchange, "message": effect.message}
                return {**told, "http_status": effect.http_status, "session": effect.session}
            case Send():
                return {"type": "send", "exchange": effect.exchange, "message": effect.message}
            case StartTool():
                return {
                    "type": "start_tool",
                    "exchange": self._name(effect.exchange),
                    "tool": effect.tool,
                    "arguments": dict(effect.arguments),
                    "may_become_task": effect.can_create_task,
                    "must_become_task": effect.must_create_task,
                    "principal": effect.principal,
                    "answers": dict(effect.answers),
                    "state": effect.state,
                    "params": dict(effect.params),
                }
            case Forward():
                told = {"type": "forward", "exchange": self._name(effect.exchange), "method": effect.method}
                return {**told, "params": dict(effect.params)}
            case StopCall():
                return {"type": "stop_call", "exchange": self._name(effect.exchange)}
            case StartWork():
                return {"type": "start_work", "of": self._of(effect.task_id)}
            case DeliverInput():
                answers = [
                    {"question": one.ask, "name": one.name, "response": one.response}
                    for one in effect.answers
                ]
                return {"type": "deliver", "of": self._of(effect.task_id), "answers": answers}
            case RequestCancel():
                told = {"type": "stop_work", "of": self._of(effect.task_id)}
                return {**told, "reason": effect.reason.value}
            case RejectReport():
                return {"type": "report_refused", "of": effect.token}
            case AcceptReport() | OpenStream():
                return None
        raise AssertionError(f"an effect that no vector knows: {effect}")
