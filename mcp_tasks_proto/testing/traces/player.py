"""Playing a trace: the script's facts go to an engine, and what comes back is written under them."""

from __future__ import annotations

from collections.abc import Hashable
from enum import Enum
from re import compile as pattern
from typing import Any, Final

from attrs import define, evolve, field, fields_dict

from mcp_tasks_proto.effects import Effect, FindExpired, Forward, Reply, StartTool, StopCall, StoreEffect
from mcp_tasks_proto.errors import LocalProtocolError
from mcp_tasks_proto.inputs import (
    CallAskedInput,
    CallBecameTask,
    CallFailed,
    CallReturned,
    Input,
    MessageReceived,
    RecordChanged,
    RecordRemoved,
    TimePassed,
    WorkLost,
)
from mcp_tasks_proto.legacy.server import DualEraServer, LegacyPolicy
from mcp_tasks_proto.legacy.server.inner import InnerExchange
from mcp_tasks_proto.limits import Limits
from mcp_tasks_proto.request_state import HmacSealer
from mcp_tasks_proto.server import ServerEngine
from mcp_tasks_proto.settings import InputVisibility, ServerSettings, TaskSupport, ToolDeclaration
from mcp_tasks_proto.testing.store import DictStore
from mcp_tasks_proto.testing.traces.effects import Teller
from mcp_tasks_proto.testing.traces.facts import Facts
from mcp_tasks_proto.testing.traces.proxy import ProxyStage
from mcp_tasks_proto.testing.traces.words import LINE, START, TraceError, Words, task_id
from mcp_tasks_proto.vocabulary import LEGACY_VERSION, MODERN_VERSION

__all__ = ["play"]

PROXY: Final = pattern(r"(?m)^\s+proxy\s")
"""A line that sets a proxy up: the trace is one of a proxy."""


def play(text: str) -> str:
    """Live through a trace and return it, with the engine's lines as they really are.

    Raises :class:`TraceError` for a script that cannot be played: a line that is not understood, a fact that
    the engine refuses as a host's mistake, a time at which it wanted to be woken and was not.
    """
    stage: _Stage | ProxyStage = ProxyStage() if PROXY.search(text) else _Stage()
    played: list[str] = []
    unfinished = ""
    for number, line in enumerate(text.splitlines(), start=1):
        is_script = line.startswith(" ") and bool(line.strip())
        if is_script and line.lstrip().startswith(">"):
            continue
        played.append(line)
        if is_script and line.endswith("\\"):
            unfinished += line.removesuffix("\\")
        elif is_script:
            try:
                played.extend(stage.play(unfinished + line))
            except (ValueError, LocalProtocolError) as error:
                raise TraceError(str(error), number) from None
            unfinished = ""
    return "".join(f"{line}\n" for line in played)


@define(eq=False)
class _Stage:
    """An engine, its store, and the time."""

    _settings: ServerSettings = field(init=False)
    _tools: list[ToolDeclaration] = field(init=False, factory=list)
    _both_eras: bool = field(init=False, default=False)
    _store: DictStore = field(init=False, factory=DictStore)
    _store_is_shown: bool = field(init=False, default=False)
    _facts: Facts = field(init=False, factory=Facts)
    _calls: dict[Hashable, InnerExchange] = field(init=False, factory=dict)
    """What the engine calls the requests of a session, where a handler is to answer them."""
    _node: str | None = field(init=False, default=None)
    _engine: ServerEngine | DualEraServer | None = field(init=False, default=None)
    _asked: list[StoreEffect] = field(init=False, factory=list)
    _now: int = field(init=False, default=START)
    _deadline: int | None = field(init=False, default=None)

    def __attrs_post_init__(self) -> None:
        self._settings = ServerSettings(name="trace", version="1", sealer=HmacSealer([bytes(32)]))

    def play(self, line: str) -> list[str]:
        """Live through one line; return the engine's."""
        match = LINE.fullmatch(line)
        if match is None:
            raise TraceError("a line of the script is: time, if it moves on; who; what")
        speaker, words = match["speaker"], Words(match["words"])
        if speaker == "server":
            self._set_up(words)
            words.end()
            return []
        if self._engine is None:
            self._engine = self._begin(self._node)
        if match["time"] is not None:
            self._move_on(START + int(match["time"]))
        if speaker in ("node", "process"):
            (self._take_over if speaker == "node" else self._replace)(words)
            words.end()
            return []
        indent = " " * match.start("words")
        return [f"{indent}> {told}" for told in self._give(self._fact(speaker, words))]

    def _begin(self, node: str | None) -> ServerEngine | DualEraServer:
        """Return an engine that has looked already for what expired before it began."""
        engine: ServerEngine | DualEraServer
        if self._both_eras:
            engine = DualEraServer(
                settings=self._settings, tools=self._tools, node=node, policy=LegacyPolicy.SERVE
            )
        else:
            engine = ServerEngine(settings=self._settings, tools=self._tools, node=node)
        (find,) = engine.handle(TimePassed(), now=self._now).effects
        assert isinstance(find, FindExpired)
        self._deadline = engine.handle(self._store.answer(find), now=self._now).deadline
        return engine

    def _replace(self, words: Words) -> None:
        """End this process without a word; another one begins."""
        self._asked.clear()
        self._engine = self._begin(words.word("its name"))
        if not words.follows("begins"):
            raise TraceError("a process begins")

    def _take_over(self, words: Words) -> None:
        """Let another process take a task over, of which only the store tells here."""
        deadline, name = self._deadline, words.word("its name")
        engine = self._begin(name)
        self._deadline = deadline
        if not words.follows("takes"):
            raise TraceError("another node takes a task")
        record = self._store.records.get(task_id(words.any_word("the task")))
        if record is None or record.node is None:
            raise TraceError("there is no such task, or nobody runs it")
        facts: list[Input] = [WorkLost(record.task_id, record.node)]
        while facts:
            effects = engine.handle(facts.pop(0), now=self._now).effects
            facts.extend(self._store.answer(effect) for effect in effects if isinstance(effect, StoreEffect))

    def _set_up(self, words: Words) -> None:
        """Read what the server is told at its making: a tool, a limit, a policy."""
        if self._engine is not None:
            raise TraceError("the server is set up before anything is said to it")
        what = words.word("what is set up")
        if what == "tool":
            name = words.word("its name")
            support = TaskSupport(words.one_of("whether its calls become tasks", *_values(TaskSupport)))
            resumable = words.follows("resumable")
            definition = {"name": name, "inputSchema": {"type": "object"}}
            tool = ToolDeclaration(name=name, definition=definition, task=support, resumable=resumable)
            self._tools.append(tool)
        elif what == "node":
            self._node = words.word("its name")
        elif what == "method":
            methods = self._settings.methods | {words.word("its name")}
            self._settings = evolve(self._settings, methods=methods)
        elif what == "shows":
            self._store_is_shown = words.one_of("what is shown", "store") == "store"
        elif what == "speaks":
            self._both_eras = words.one_of("the version", MODERN_VERSION, LEGACY_VERSION) == LEGACY_VERSION
        elif what == "visibility":
            visibility = InputVisibility(words.one_of("who sees questions", *_values(InputVisibility)))
            self._settings = evolve(self._settings, input_visibility=visibility)
        elif what in fields_dict(Limits):
            limit: dict[str, Any] = {what: words.integer("the limit")}
            self._settings = evolve(self._settings, limits=evolve(self._settings.limits, **limit))
        else:
            raise TraceError(f"a server has no {what}")

    def _move_on(self, now: int) -> None:
        if now < self._now:
            raise TraceError("time does not go back")
        if self._deadline is not None and self._deadline < now:
            raise TraceError(f"the engine wanted to be woken at +{self._deadline - START}")
        self._now = now

    def _fact(self, speaker: str, words: Words) -> Input:
        if speaker == "store":
            return self._store_speaks(words)
        if speaker != "clock":
            return self._facts.read(speaker, words)
        if not words.follows("wakes"):
            raise TraceError("a clock wakes")
        if self._deadline is None or self._deadline > self._now:
            raise TraceError("the engine did not ask to be woken by now")
        return TimePassed()

    def _store_speaks(self, words: Words) -> Input:
        if words.follows("tells"):
            name = task_id(words.any_word("the task"))
            record = self._store.records.get(name)
            return RecordRemoved(name) if record is None else RecordChanged(record)
        if words.follows("loses"):
            name = task_id(words.any_word("the task"))
            if not words.follows("of"):
                raise TraceError("of is missing, and the node")
            return WorkLost(name, words.word("the node"))
        if not self._asked:
            raise TraceError("the store was not asked anything")
        match words.word("what the store does"):
            case "fails":
                return self._store.fail(self._asked.pop(0))
            case "does" if words.follows("it"):
                return self._store.answer(self._asked.pop(0))
            case verb:
                raise TraceError(f"a store never {verb}")

    def _give(self, fact: Input) -> list[str]:
        """Hand in a fact; return what is told of the effects. A store that is not shown answers at once."""
        assert self._engine is not None
        teller = Teller(
            START,
            self._settings.limits,
            {"name": self._settings.name, "version": self._settings.version},
            self._facts.request_ids,
        )
        told: list[str] = []
        facts = [self._to_the_engine(fact)]
        while facts:
            step = self._engine.handle(facts.pop(0), now=self._now)
            self._deadline = step.deadline
            for effect in step.effects:
                if isinstance(effect, StoreEffect) and not self._store_is_shown:
                    facts.append(self._store.answer(effect))
                    continue
                if isinstance(effect, StoreEffect):
                    self._asked.append(effect)
                if isinstance(effect, Reply):
                    self._remember_state(effect)
                if isinstance(effect, StopCall) and effect.exchange in self._calls:
                    told.append(f"exchange {effect.exchange} is over")  # its handler is another's to stop
                else:
                    told.append(teller.tell(self._to_the_script(effect, fact)))
        return told

    def _to_the_engine(self, fact: Input) -> Input:
        """Return what a handler says under the engine's name for the request of a session."""
        match fact:
            case (
                CallReturned(exchange=exchange)
                | CallFailed(exchange=exchange)
                | CallAskedInput(exchange=exchange)
                | CallBecameTask(exchange=exchange)
            ) if exchange in self._calls:
                return evolve(fact, exchange=self._calls[exchange])
        return fact

    def _to_the_script(self, effect: Effect, fact: Input) -> Effect:
        """Return what is asked of a handler under the script's name for the request of a session."""
        match effect, fact:
            case (
                StartTool(exchange=InnerExchange() as inner) | Forward(exchange=InnerExchange() as inner),
                MessageReceived(exchange=name),
            ):
                self._calls[name] = inner
                return evolve(effect, exchange=name)
            case StopCall(exchange=InnerExchange() as inner), _:
                (*_, name) = (name for name, called in self._calls.items() if called == inner)
                return evolve(effect, exchange=name)
        return effect

    def _remember_state(self, reply: Reply) -> None:
        result = (reply.message or {}).get("result", {})
        if "requestState" in result:
            self._facts.states[reply.exchange] = result["requestState"]


def _values(kind: type[Enum]) -> list[str]:
    return [one.value for one in kind]
