"""Whatever a client of 2025-11-25 sends, in whatever order: nothing raises, and nothing is left (LIM.3)."""

from __future__ import annotations

from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_tasks_proto import (
    CallAskedInput,
    CallBecameTask,
    CallFailed,
    CallNotified,
    CallReturned,
    ErrorObject,
    ExchangeClosed,
    Limits,
    RequestCancel,
    Send,
    StartTool,
    StartWork,
    StopCall,
    StreamReady,
    WorkCompleted,
    WorkWithdrewInput,
)
from mcp_tasks_proto.testing import ServerHost
from tests.unit.legacy_world import LegacyClient, make_dual
from tests.unit.test_legacy_calls import SAMPLE
from tests.unit.world import DONE, NEVER, OTHER, TASK, asked, form

IDS: Final = [TASK, OTHER, NEVER, "x", 7, None, [TASK]]
METHODS: Final = [
    "initialize",
    "ping",
    "tools/list",
    "tools/call",
    "tasks/get",
    "tasks/result",
    "tasks/list",
    "tasks/cancel",
    "tasks/update",
    "notifications/initialized",
    "notifications/cancelled",
    "x/y",
]

odd: st.SearchStrategy[Any] = st.sampled_from([None, True, 0, -1, 1.5, "", "text", [], [1], {}, {"a": {}}])
params = st.fixed_dictionaries(
    {},
    optional={
        "name": st.sampled_from(["optional", "required", "forbidden"]) | odd,
        "arguments": odd,
        "task": st.sampled_from([{}, {"ttl": 50}, {"ttl": None}]) | odd,
        "taskId": st.sampled_from(IDS),
        "cursor": odd,
        "requestId": st.sampled_from([1, 2, "1", None, [1]]),
        "protocolVersion": st.just("2025-11-25") | odd,
        "capabilities": st.sampled_from([{}, {"elicitation": {}}]) | odd,
        "_meta": st.sampled_from([{"progressToken": 1}]) | odd,
        "inputResponses": odd,
        "requestState": odd,
    },
)
requests = st.fixed_dictionaries(
    {"jsonrpc": st.just("2.0"), "method": st.sampled_from(METHODS)},
    optional={"id": st.sampled_from([1, 2, 3, "1", None, True]), "params": params | odd},
)
responses = st.fixed_dictionaries(
    {"jsonrpc": st.just("2.0"), "id": st.sampled_from([1, 2, 3, "1"])},
    optional={
        "result": st.sampled_from([{"action": "accept", "content": {"name": "Ada"}}, {"action": "cancel"}])
        | odd,
        "error": st.sampled_from([{"code": -1, "message": "no"}]) | odd,
    },
)
calls = st.fixed_dictionaries(
    {"name": st.sampled_from(["optional", "required"])},
    optional={"task": st.sampled_from([{}, {"ttl": 50}]), "_meta": st.just({"progressToken": 1})},
)
named = st.sampled_from(["tasks/get", "tasks/result", "tasks/result", "tasks/cancel", "tasks/list"])
sensible = st.tuples(st.just("tools/call"), calls) | st.tuples(
    named, st.sampled_from([{"taskId": TASK}, {"taskId": OTHER}, {}])
)
answers = st.sampled_from(
    [{"result": {"action": "accept", "content": {"name": "A"}}}, {"result": {}}, {"error": {"code": 1}}]
)
few = st.integers(0, 2)
sensible_acts = st.one_of(
    st.tuples(st.just("ask for"), sensible),
    st.tuples(st.just("ask for"), sensible),
    st.tuples(st.just("answer"), answers),
    st.tuples(st.sampled_from(["return", "ask", "tell", "become", "become"]), few),
    st.tuples(st.just("work"), st.sampled_from(["ask", "ask", "ask for thought", "withdraw", "complete"])),
    st.tuples(st.just("read"), few),
    st.tuples(st.just("lose"), few),
    st.tuples(st.just("listen"), st.sampled_from([None, "1-1", "2-1", "nonsense"])),
)
other_acts = st.one_of(
    st.tuples(st.just("say"), requests | responses | odd),
    st.tuples(st.just("fail"), few),
    st.tuples(st.just("wait"), st.sampled_from([1, 60, 1000])),
    st.tuples(st.just("end"), st.none()),
)
acts = st.lists(sensible_acts | sensible_acts | sensible_acts | other_acts, min_size=5, max_size=30)


BEGINNING: Final[list[tuple[str, Any]]] = [
    ("ask for", ("tools/call", {"name": "optional", "task": {}})),
    ("become", 0),
    ("ask for", ("tasks/result", {"taskId": TASK})),
    ("ask for", ("tasks/result", {"taskId": TASK})),
]
"""A task, and two who wait for it."""

YES: Final = {"result": {"action": "accept", "content": {"name": "A"}}}
NO: Final = {"error": {"code": -1, "message": "no"}}
READ: Final = [("read", 1), ("read", 2)] * 3
ENDINGS: Final[dict[str, list[tuple[str, Any]]]] = {
    "answered": [("work", "ask"), *READ, ("answer", YES)],
    "answered with an error": [("work", "ask for thought"), *READ, ("answer", NO)],
    "withdrawn": [("work", "ask"), *READ, ("work", "withdraw")],
    "never": [("work", "ask"), *READ],
}
"""How a task's question may come to its end."""


class Stage:
    """A server, the handlers that run in it, and what its clients have open."""

    def __init__(self, *, on_stdio: bool) -> None:
        self.host: ServerHost = make_dual(Limits(session_idle_ms=500, streams=2, ttl_ms=200))
        self.client = LegacyClient(self.host, connection="stdio" if on_stdio else None, principal="ann")
        self.client.initialize()
        self.exchanges: list[str] = []
        self.calls: dict[Any, StartTool] = {}
        self.tasks: list[str] = []
        self.free = [OTHER, TASK]
        self.questions: list[int] = []
        self.asks = 0
        self.seen = 0

    def look(self) -> None:
        """Do what a host does about the effects since the last time."""
        for effect in self.host.effects[self.seen :]:
            match effect:
                case StartTool():
                    self.calls[effect.exchange] = effect
                case StopCall(exchange=exchange):
                    self.calls.pop(exchange, None)
                case StartWork(task_id=task_id):
                    self.tasks.append(task_id)
                case RequestCancel(task_id=task_id) if task_id in self.tasks:
                    self.tasks.remove(task_id)
                case Send(message={"id": int() as question}):
                    self.questions.append(question)
        self.seen = len(self.host.effects)

    def act(self, act: str, what: Any) -> None:
        """Let one thing happen, if it can."""
        client, host = self.client, self.host
        call = self._call_for(act, what)
        match act:
            case "say":
                opens = isinstance(what, dict) and what.get("method") == "initialize"
                self.exchanges.append(client.send(what, new_session=client.session if opens else None))
            case "ask for":
                self.exchanges.append(client.request(what[0], what[1]))
            case "answer" if self.questions:
                self.exchanges.append(client.send({"jsonrpc": "2.0", "id": self.questions.pop(), **what}))
            case "read" if self.exchanges:
                host.give(StreamReady(self.exchanges[what % len(self.exchanges)]))
            case "lose" if self.exchanges:
                host.give(ExchangeClosed(self.exchanges.pop(what % len(self.exchanges))))
            case "listen" if client.connection is None:
                self.exchanges.append(client.get(last_event_id=what))
            case "end":
                client.hang_up() if client.connection is not None else client.delete()
            case "wait":
                host.advance(what)
            case "work" if self.tasks:
                self._work(what)
            case _ if call is not None:
                self._answer(act, call)
        self.look()

    def _call_for(self, act: str, what: Any) -> StartTool | None:
        """Return a call whose handler may do this."""
        if act not in ("return", "fail", "ask", "tell", "become"):
            return None
        owing = act == "become"
        fitting = [one for one in self.calls.values() if one.must_create_task is owing or act == "fail"]
        return fitting[what % len(fitting)] if fitting else None

    def _answer(self, act: str, call: StartTool) -> None:
        key, give = call.exchange, self.host.give
        if act == "tell":
            give(CallNotified(key, "notifications/progress", {"progress": 1}))
            return
        del self.calls[key]
        match act:
            case "return":
                give(CallReturned(key, DONE))
            case "fail":
                give(CallFailed(key, ErrorObject(-1, "no")))
            case "ask":
                give(CallAskedInput(key, {"name": form()}))
            case _:
                give(CallBecameTask(exchange=key, task_id=self.free.pop() if self.free else NEVER))

    def _work(self, what: str) -> None:
        task_id = self.tasks[0]
        if what == "ask":
            self.asks += 1
            self.host.give(asked(f"ask-{self.asks}", "name", task_id=task_id))
        elif what == "ask for thought":
            self.asks += 1
            self.host.give(asked(f"ask-{self.asks}", task_id=task_id, thought=SAMPLE))
        elif what == "withdraw":
            self.host.give(WorkWithdrewInput(task_id=task_id, token="w", ask=f"ask-{self.asks}"))
        else:
            self.tasks.remove(task_id)
            self.host.give(WorkCompleted(task_id=task_id, token="done", result=DONE))


@settings(deadline=None, max_examples=150)
@given(st.booleans(), st.booleans(), acts)
def test_lim3_no_client_makes_it_raise_and_nothing_is_left(
    on_stdio: bool, begun: bool, script: list[tuple[str, Any]]
) -> None:
    stage = Stage(on_stdio=on_stdio)
    for act, what in BEGINNING if begun else ():
        stage.act(act, what)
    for act, what in script:
        stage.act(act, what)
    _end(stage, on_stdio=on_stdio)


@pytest.mark.parametrize("ending", ENDINGS)
def test_lim3_however_a_question_ends_nothing_is_left_of_it(ending: str) -> None:
    stage = Stage(on_stdio=False)
    for act, what in [*BEGINNING, *ENDINGS[ending], *READ]:
        stage.act(act, what)
    assert any("id" in one.message for one in stage.host.of(Send)), "nobody was asked"
    if ending != "never":
        assert stage.host.engine._waiting._asked == set()  # type: ignore[union-attr]
    _end(stage, on_stdio=False)


def _end(stage: Stage, *, on_stdio: bool) -> None:
    """Let the client leave, and look for what is left of it."""
    for exchange in stage.exchanges:
        stage.host.give(ExchangeClosed(exchange))
    stage.client.hang_up() if on_stdio else stage.client.delete()
    stage.look()
    assert stage.calls == {}, "a handler runs that nobody waits for"
    stage.host.advance(10_000)
    engine: Any = stage.host.engine
    assert engine._inner.quiet
    assert engine._registry._exchanges == {}
    assert engine._registry._sessions == {}
    assert engine._registry.requests == 0
    assert engine._waiting._by_task == {}
    assert engine._waiting._asked == set()
    assert engine._waiting._done == {}
    assert engine._timers.next is None
    assert engine._inner.engine._exchanges.by_key == {}
