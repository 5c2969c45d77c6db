"""The network of several engines over one store, step by step: what a fate does, and who hears of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest
from attrs import define, evolve, field

from mcp_tasks_proto import (
    CallBecameTask,
    DeliverInput,
    Effect,
    ExchangeClosed,
    HmacSealer,
    HttpHead,
    Input,
    LegacyInput,
    MessageReceived,
    OpenStream,
    RejectReport,
    Reply,
    RequestCancel,
    ResumeWork,
    ServerEngine,
    ServerSettings,
    StartTool,
    StartWork,
    Step,
    StopCall,
    StreamRequested,
    TaskSupport,
    TimePassed,
    ToolDeclaration,
    WorkAskedInput,
    WorkCompleted,
)
from mcp_tasks_proto.legacy.server import DualEraServer, LegacyPolicy
from mcp_tasks_proto.server.tasks import Tasks
from mcp_tasks_proto.testing import Crash, Fate, Network, Passage, Promises, request
from mcp_tasks_proto.wire.jsonrpc import request_message
from tests.unit.world import DONE, OTHER, TASK

QUIET = Fate()
ROOTS = {"method": "roots/list"}


def engine(name: str) -> ServerEngine:
    tool = ToolDeclaration(
        name="lasting", definition={"name": "lasting", "inputSchema": {"type": "object"}}, resumable=True
    )
    settings = ServerSettings(name="test", version="1", sealer=HmacSealer([b"k" * 32]))
    return ServerEngine(settings=settings, tools=[tool], node=name)


def both_eras(name: str) -> DualEraServer:
    modern = engine(name)
    tools = [evolve(tool, task=TaskSupport.OPTIONAL) for tool in modern.tools]
    return DualEraServer(settings=modern.settings, tools=tools, node=name, policy=LegacyPolicy.SERVE)


@define(eq=False)
class Story:
    """Two nodes; the first call becomes the task, whose work goes on until the test ends it."""

    ttl_ms: int | None = None
    skews: tuple[int, ...] = ()
    told: list[tuple[str, Effect]] = field(factory=list)
    replies: list[dict[str, Any] | None] = field(factory=list)
    heard: list[dict[str, Any]] = field(factory=list)
    network: Network = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.network = Network(make_engine=engine, work=self._work, skews=self.skews)
        self.network.run(100)

    def _work(self, node: str, effect: Effect) -> Iterable[tuple[int, Input]]:
        task_id = OTHER if (node, StartTool) in self.kinds() else TASK
        self.told.append((node, effect))
        if isinstance(effect, StartTool):
            return [(1, CallBecameTask(exchange=effect.exchange, task_id=task_id, ttl_ms=self.ttl_ms))]
        return []

    def ask(self, method: str, node: str = "node-1", **params: Any) -> int:
        return self.network.ask(
            node, method, params, self.replies.append, self.heard.append, capabilities={"roots": {}}
        )

    def create(self, *fates: Fate) -> None:
        """Call the tool; these are the fates from then on."""
        self.network.fates = fates
        self.ask("tools/call", name="lasting", arguments={})
        self.network.run(100)

    def befall(self, *passages: Passage) -> None:
        """Let this become of the next messages of clients."""
        self.network.passages = passages

    def kinds(self) -> list[tuple[str, type]]:
        return [(node, type(effect)) for node, effect in self.told]


def test_when_all_is_well_a_task_is_made_and_ends() -> None:
    story = Story()
    story.create()
    assert story.kinds() == [("node-1", StartTool), ("node-1", StartWork)]
    assert [record.version for record in story.network.history] == [1]
    story.network.tell("node-1", WorkCompleted(task_id=TASK, token=1, result=DONE))
    story.network.run(100)
    story.ask("tasks/get", "node-2", taskId=TASK)
    story.network.run(100)
    assert story.replies[-1] is not None
    assert story.replies[-1]["result"]["status"] == "completed"


def test_a_process_that_ends_before_an_effect_never_comes_to_it() -> None:
    story = Story()
    story.create(QUIET, Fate(crash=Crash.BEFORE))
    assert story.replies == [None], "its clients learn that there will be no answer"
    assert story.network.history == []
    story.network.run(1_000)
    assert story.network.nodes == ["node-2", "node-3"]


def test_a_process_that_ends_after_an_effect_does_not_hear_what_came_of_it() -> None:
    story = Story()
    story.create(QUIET, Fate(crash=Crash.AFTER))
    assert story.replies == [None]
    assert [record.node for record in story.network.history] == ["node-1"]
    story.network.run(10_000)
    assert story.network.taken_for_gone == {"node-1"}
    assert story.kinds()[-1][1] is ResumeWork
    assert story.network.history[-1].resumptions == 1


def test_a_process_that_ends_comes_to_none_of_the_effects_that_are_left() -> None:
    story = Story()
    story.create(QUIET, QUIET, QUIET, Fate(crash=Crash.AFTER, delay_ms=50))
    assert story.kinds() == [("node-1", StartTool)], "nor does the reply find its client any more"
    assert story.replies == [None]
    assert len(story.network.history) == 1


def test_what_it_asked_long_ago_is_not_done_once_it_is_known_to_be_gone() -> None:
    story = Story()
    story.create(QUIET, Fate(crash=Crash.AFTER, delay_ms=60_000))
    story.network.run(120_000)
    assert story.network.history == []


def test_a_store_may_fail_at_anything() -> None:
    story = Story()
    story.create(QUIET, Fate(fails=True))
    assert story.replies[0] is not None
    assert story.replies[0]["error"]["data"] == {"reason": "store_unavailable"}
    story.network.fates = [Fate(fails=True)]
    story.ask("tasks/get", taskId=TASK)
    story.network.run(100)
    assert story.replies[1] is not None
    assert story.replies[1]["error"]["data"] == {"reason": "store_unavailable"}


def test_a_process_that_sleeps_too_long_is_taken_for_gone_until_it_wakes() -> None:
    story = Story()
    story.create(QUIET, QUIET, QUIET, Fate(sleep_ms=5_500))
    story.network.tell("node-1", WorkCompleted(task_id=TASK, token=1, result=DONE))
    story.network.run(5_000)
    assert story.network.taken_for_gone == {"node-1"}
    assert story.network.history[-1].node == "node-2"
    story.network.run(800)
    assert story.kinds()[-1] == ("node-1", RejectReport), "it woke, and its result is another's to give"
    story.network.run(5_000)
    story.network.crash("node-2")
    story.network.run(5_000)
    assert story.network.history[-1].node == "node-1", "it is there again"


def test_news_reaches_those_whom_it_concerns() -> None:
    story = Story(ttl_ms=3_000)
    story.create()
    story.ask("subscriptions/listen", "node-2", notifications={"taskIds": [TASK]})
    story.network.run(100)
    story.ask("tasks/cancel", "node-2", taskId=TASK)
    story.network.run(100)
    assert ("node-1", RequestCancel) in story.kinds()
    assert [message["method"] for message in story.heard] == [
        "notifications/subscriptions/acknowledged",
        "notifications/tasks",
    ]
    story.network.run(10_000)
    assert story.network.store.records == {}


def test_a_removal_is_news() -> None:
    story = Story(ttl_ms=3_000)
    story.create()
    story.network.sleep("node-1", 3_100)
    story.network.run(10_000)
    assert ("node-1", RequestCancel) in story.kinds()


def test_who_is_asked_after_its_end_does_not_answer() -> None:
    story = Story()
    story.network.crash("node-1")
    story.network.crash("node-1")
    story.ask("tasks/get", taskId=TASK)
    story.network.run(100)
    assert story.replies == [None]


def test_a_client_that_was_given_up_hears_no_more() -> None:
    story = Story()
    story.create()
    story.network.fates = [QUIET, Fate(delay_ms=50)]
    story.ask("subscriptions/listen", notifications={"taskIds": [TASK]})
    story.network.run(10)
    story.ask("subscriptions/listen", "node-2", notifications={"taskIds": [TASK]})
    story.network.run(10)
    answered = len(story.replies)
    story.network.crash("node-1")
    story.network.run(200)
    assert [message["params"]["_meta"] for message in story.heard] == [
        {"io.modelcontextprotocol/subscriptionId": 3},
        {"io.modelcontextprotocol/subscriptionId": 3},
    ]
    assert story.replies[answered:] == [None], "the other one has lost nothing"


def test_things_can_be_done_later() -> None:
    story = Story()
    done: list[int] = []
    story.network.later(50, lambda: done.append(story.network.now))
    begin = story.network.now
    story.network.run(100)
    assert done == [begin + 50]


def test_a_message_that_somebody_else_has_written_is_answered() -> None:
    story = Story()
    message = request("tools/call", {"name": "lasting", "arguments": {}}, id="mine")
    number = story.network.send("node-2", message, story.replies.append)
    story.network.run(100)
    assert story.replies[0] is not None
    assert story.replies[0]["id"] == "mine"
    story.network.close(number)  # it has its answer


def test_whoever_closes_a_request_hears_nothing_of_it() -> None:
    story = Story()
    message = request("tools/call", {"name": "lasting", "arguments": {}})
    number = story.network.send("node-1", message, story.replies.append)
    story.network.run(2)
    story.network.close(number)
    story.network.run(100)
    assert story.replies == []
    assert story.kinds() == [("node-1", StartTool)], "nor does work begin of which nobody has the handle"
    assert story.network.store.records == {}


def test_whoever_closes_a_stream_hears_no_more_of_it() -> None:
    """What was under way to it is left, and what the process says before it knows."""
    story = Story()
    story.create()
    story.network.fates = [QUIET, Fate(delay_ms=50)]
    slow = story.ask("subscriptions/listen", notifications={"taskIds": [TASK]})
    story.network.run(10)
    story.network.close(slow)
    story.network.run(100)
    assert story.heard == []

    def hear(message: dict[str, Any]) -> None:
        story.heard.append(message)
        story.network.close(number)

    wanted = request("subscriptions/listen", {"notifications": {"taskIds": [TASK]}})
    number = story.network.send("node-1", wanted, story.replies.append, hear)
    story.network.run(100)
    assert [message["method"] for message in story.heard] == ["notifications/subscriptions/acknowledged"]


def test_whoever_converses_hears_all_in_order_and_of_its_end() -> None:
    story = Story()
    story.ask("tools/call", name="lasting", arguments={})
    story.network.run(100)
    said: list[Any] = []
    wanted = request("subscriptions/listen", {"notifications": {"taskIds": [TASK]}}, id="mine")

    def arrives(number: int) -> Input:
        return MessageReceived(exchange=number, message=wanted)

    story.network.fates = [QUIET, Fate(delay_ms=50)]
    story.network.converse("node-1", arrives, said.append)
    story.network.run(30)
    assert said == [], "what comes after it does not overtake it"
    story.network.run(100)
    assert [one.message["method"] for one in said] == [
        "notifications/subscriptions/acknowledged",
        "notifications/tasks",
    ]
    story.network.crash("node-1")
    story.network.run(10)
    assert said[2:] == [None]
    story.network.converse("node-1", arrives, said.append)
    story.network.run(10)
    assert said[3:] == [None]


def test_a_clock_that_is_ahead_says_another_time_and_wakes_as_if_it_were_right() -> None:
    story = Story(ttl_ms=1_000, skews=(60_000,))
    made_at_ms = story.network.now
    story.create()
    (record,) = story.network.history
    assert record.created_at_ms > made_at_ms + 59_000
    story.network.run(2_000)
    assert story.network.store.records == {}, "its end comes by the clock that it was made by"


def test_each_step_is_seen_before_anything_of_it_is_carried_out() -> None:
    done: list[tuple[object, ...]] = []

    def work(node: str, effect: Effect) -> Iterable[tuple[int, Input]]:
        done.append((node, type(effect)))
        return []

    def seen(node: str, fact: Input | LegacyInput, step: Step, now: int) -> None:
        done.append((node, type(fact), [type(effect) for effect in step.effects], now))

    network = Network(make_engine=engine, work=work, seen=seen, size=1, skews=[60_000])
    network.run(100)
    done.clear()
    network.ask("node-1", "tools/call", {"name": "lasting"}, lambda _: None)
    network.run(1)
    assert done == [
        ("node-1", MessageReceived, [StartTool], network.now + 60_000),
        ("node-1", StartTool),
    ]


def test_an_engine_that_means_a_time_that_has_passed_does_not_stop_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Tasks, "time_passed", lambda self: None)
    with pytest.raises(AssertionError, match="a deadline that has passed"):
        Network(make_engine=engine, work=lambda *_: [])


class Stammering(ServerEngine):
    """Says each reply twice."""

    def handle(self, fact: Input, *, now: int) -> Step:
        """Do as told, and once more."""
        step = super().handle(fact, now=now)
        twice = [effect for effect in step.effects for _ in range(1 + isinstance(effect, Reply))]
        return evolve(step, effects=tuple(twice))


def stammering(name: str) -> ServerEngine:
    sound = engine(name)
    return Stammering(settings=sound.settings, tools=sound.tools, node=name)


def test_each_process_is_held_to_its_promises() -> None:
    """Although nobody would hear of a second reply."""
    replies: list[Any] = []
    network = Network(make_engine=stammering, work=lambda *_: [])
    network.ask("node-1", "server/discover", {}, replies.append)
    with pytest.raises(AssertionError, match="broken: one reply to each request"):
        network.run(100)
    assert replies == []


def test_the_promises_of_each_process_may_be_of_a_kind_that_knows_of_more() -> None:
    """They look at what was seen."""
    looks: list[object] = []

    class Watch(Promises):
        def look(self, fact: object, step: Any, now: int) -> None:
            looks.append((self, type(fact), now))
            super().look(fact, step, now)

    def seen(node: str, fact: Input | LegacyInput, step: Step, now: int) -> None:
        looks.append((node, type(fact), now))

    network = Network(make_engine=engine, work=lambda *_: [], seen=seen, promises=Watch, skews=[60_000])
    begin, (first, second) = network.now, looks[1::2]
    assert looks == [
        ("node-1", TimePassed, begin + 60_000),
        first,
        ("node-2", TimePassed, begin),
        second,
    ]
    (one, *_), (other, *_) = (look for look in (first, second) if isinstance(look, tuple))
    assert isinstance(one, Watch)
    assert one is not other


NO_SUCH_PROCESS: list[Callable[[Network, str], object]] = [
    lambda network, name: network.ask(name, "tasks/get", {"taskId": TASK}, print),
    lambda network, name: network.send(name, request("tasks/get", {"taskId": TASK}), print),
    lambda network, name: network.converse(name, lambda at: MessageReceived(exchange=at, message={}), print),
    lambda network, name: network.tell(name, TimePassed()),
    lambda network, name: network.crash(name),
    lambda network, name: network.sleep(name, 10),
]


@pytest.mark.parametrize("act", NO_SUCH_PROCESS)
def test_a_name_that_no_process_ever_had_is_told(act: Callable[[Network, str], object]) -> None:
    """But not that of one whose process has ended."""
    story = Story()
    with pytest.raises(LookupError, match=r"no process was ever called 'node-3', but \['node-1', 'node-2'\]"):
        act(story.network, "node-3")
    story.network.crash("node-1")
    act(story.network, "node-1")
    story.network.run(60_000)
    assert story.network.nodes == ["node-2", "node-3"]


NO_TIME: list[Callable[[Network], object]] = [
    lambda _: Fate(delay_ms=-5),
    lambda _: Fate(sleep_ms=-5),
    lambda _: Passage(delay_ms=-5),
    lambda _: Passage(again_ms=-5),
    lambda _: Network(make_engine=engine, work=lambda *_: [], lease_ms=0),
    lambda _: Network(make_engine=engine, work=lambda *_: [], restart_ms=-5),
    lambda network: network.run(-5),
    lambda network: network.later(-5, print),
    lambda network: network.sleep("node-1", -5),
]


@pytest.mark.parametrize("go_back", NO_TIME)
def test_time_does_not_go_back(go_back: Callable[[Network], object]) -> None:
    story = Story()
    said = (
        r"'\w+_ms' must be >= 0: -5|time does not go back: -5 ms from now|a lease of \d+ ms, a restart after"
    )
    with pytest.raises(ValueError, match=said):
        go_back(story.network)


def test_a_duration_of_none_is_one() -> None:
    story = Story()
    story.befall(Passage(delay_ms=0, again_ms=0))
    story.network.fates = [Fate(delay_ms=0)] * 4
    story.ask("tools/call", name="lasting", arguments={})
    story.network.run(0)
    assert story.kinds() == [("node-1", StartTool)] * 2


def test_time_passes_until_something_is_so() -> None:
    story = Story()
    begin = story.network.now
    story.network.later(50, lambda: story.replies.append(None))
    assert not story.network.run(40, until=lambda: bool(story.replies))
    assert story.network.now == begin + 40
    assert story.network.run(60_000, until=lambda: bool(story.replies))
    assert story.network.now == begin + 50
    assert story.network.run(60_000, until=lambda: bool(story.replies)), "no time is needed"
    assert story.network.now == begin + 50


def test_a_request_that_is_lost_is_never_answered_nor_heard_of() -> None:
    story = Story()
    story.befall(Passage(lost=True))
    number = story.ask("tools/call", name="lasting", arguments={})
    story.network.crash("node-1")
    story.network.run(60_000)
    assert story.told == []
    assert story.replies == [], "nobody is told"
    story.network.close(number)
    story.ask("tools/call", "node-2", name="lasting", arguments={})
    story.network.run(100)
    assert len(story.replies) == 1, "the next one arrives"


def test_a_reply_that_is_lost_leaves_a_task_behind() -> None:
    story = Story()
    story.create(QUIET, QUIET, QUIET, Fate(lost=True))
    assert TASK in story.network.store.records
    story.network.crash("node-1")
    story.network.run(100)
    assert story.replies == []


def test_a_poll_whose_reply_is_lost_can_be_given_up_and_repeated() -> None:
    story = Story()
    story.create()
    story.network.fates = [QUIET, Fate(lost=True)]
    number = story.ask("tasks/get", taskId=TASK)
    story.network.run(100)
    assert len(story.replies) == 1
    story.network.close(number)
    story.ask("tasks/get", taskId=TASK)
    story.network.run(100)
    assert story.replies[1] is not None
    assert story.replies[1]["result"]["status"] == "working"


def test_nothing_comes_after_what_was_lost_on_its_stream() -> None:
    story = Story()
    story.create()
    story.network.fates = [QUIET, QUIET, Fate(lost=True)]
    story.ask("subscriptions/listen", notifications={"taskIds": [TASK]})
    story.network.run(100)
    assert [message["method"] for message in story.heard] == ["notifications/subscriptions/acknowledged"]
    story.network.tell("node-1", WorkCompleted(task_id=TASK, token=1, result=DONE))
    story.network.run(100)
    assert len(story.heard) == 1
    assert story.network.store.records[TASK].status.terminal


def test_both_ends_hear_of_a_connection_that_breaks_before_the_request_arrives() -> None:
    story = Story()
    story.befall(Passage(cut=True, delay_ms=50))
    story.ask("tools/call", name="lasting", arguments={})
    story.network.run(49)
    assert story.replies == []
    story.network.run(1)
    assert story.replies == [None]
    assert story.told == []


def test_whoever_closes_a_request_before_its_connection_breaks_hears_no_more_of_it() -> None:
    """Nor is the process told of the end of what it has never heard of."""
    told: list[type] = []
    story = Story()
    story.network.seen = lambda node, fact, step, now: told.append(type(fact))
    story.befall(Passage(cut=True, delay_ms=50))
    number = story.ask("tools/call", name="lasting", arguments={})
    story.network.run(10)
    story.network.close(number)
    story.network.run(100)
    assert story.replies == []
    assert told == []
    story.network.close(story.ask("tools/call", name="lasting", arguments={}))
    story.network.run(100)
    assert told[:2] == [MessageReceived, ExchangeClosed], "one that arrives has an end"


def test_requests_overtake_each_other() -> None:
    story = Story()
    story.befall(Passage(delay_ms=50), Passage(delay_ms=2))
    for number in (1, 2):
        story.ask("tools/call", name="lasting", arguments={"number": number})
    story.network.run(100)
    started = [effect.arguments for _, effect in story.told if isinstance(effect, StartTool)]
    assert started == [{"number": 2}, {"number": 1}]


def test_a_slow_request_that_is_closed_arrives_before_its_end_does() -> None:
    story = Story()
    story.befall(Passage(delay_ms=50))
    story.network.close(story.ask("tools/call", name="lasting", arguments={}))
    story.network.run(100)
    assert story.kinds() == [("node-1", StartTool), ("node-1", StopCall)]
    assert story.replies == []
    assert story.network.store.records == {}


def test_a_call_that_arrives_twice_makes_two_tasks_and_one_is_heard_of() -> None:
    story = Story()
    story.befall(Passage(delay_ms=7, again_ms=40))
    story.create()
    records = story.network.store.records
    assert set(records) == {TASK, OTHER}
    assert records[OTHER].created_at_ms == records[TASK].created_at_ms + 40
    (reply,) = story.replies
    assert reply is not None
    assert reply["result"]["taskId"] == TASK


def test_an_update_that_arrives_twice_is_delivered_once() -> None:
    """Whether the second copy comes while the first is being saved, or long after."""
    for again_ms in (0, 1, 40):
        story = Story()
        story.create()
        story.network.tell(
            "node-1", WorkAskedInput(task_id=TASK, token=1, ask="where", requests={"where": ROOTS})
        )
        story.network.run(10)
        story.befall(Passage(again_ms=again_ms))
        story.ask("tasks/update", taskId=TASK, inputResponses={"where": {"roots": []}})
        story.network.run(100)
        delivered = [effect.answers for _, effect in story.told if isinstance(effect, DeliverInput)]
        assert [[answer.key for answer in answers] for answers in delivered] == [["where"]]
        assert [reply is not None and "result" in reply for reply in story.replies[1:]] == [True]


def test_a_cancellation_that_arrives_twice_is_told_once() -> None:
    for again_ms in (0, 1, 40):
        story = Story()
        story.create()
        story.befall(Passage(again_ms=again_ms))
        story.ask("tasks/cancel", taskId=TASK)
        story.network.run(100)
        assert story.kinds().count(("node-1", RequestCancel)) == 1
        assert [reply is not None and "result" in reply for reply in story.replies[1:]] == [True]


def test_a_second_copy_finds_nobody_where_the_process_has_ended() -> None:
    story = Story()
    story.befall(Passage(again_ms=40))
    story.ask("tools/call", name="lasting", arguments={})
    story.network.run(30)
    story.network.crash("node-1")
    story.network.run(30)
    assert story.kinds().count(("node-1", StartTool)) == 1
    assert len(story.replies) == 1


def test_what_is_said_to_a_copy_of_a_stream_is_said_to_nobody() -> None:
    story = Story()
    story.create()
    story.befall(Passage(again_ms=1))
    story.ask("subscriptions/listen", notifications={"taskIds": [TASK]})
    story.network.run(100)
    story.network.tell("node-1", WorkCompleted(task_id=TASK, token=1, result=DONE))
    story.network.run(100)
    assert [message["params"].get("status") for message in story.heard] == [None, "working", "completed"]


def test_what_is_said_in_a_conversation_may_come_twice_as_well() -> None:
    story = Story()
    said: list[Any] = []
    called = request("tools/call", {"name": "lasting", "arguments": {}})
    story.befall(Passage(again_ms=40))
    story.network.converse(
        "node-1", lambda number: MessageReceived(exchange=number, message=called), said.append
    )
    story.network.run(100)
    assert len(said) == 1
    assert set(story.network.store.records) == {TASK, OTHER}


def test_whoever_closes_a_request_that_arrives_twice_closes_both() -> None:
    """Whether the second has arrived by then or not: nobody is left to whom a server would go on talking."""
    for wait_ms in (0, 20, 80):
        story = Story()
        story.befall(Passage(again_ms=40))
        story.network.fates = [Fate(delay_ms=5_000)] * 2  # whatever it asks of its store
        number = story.ask("subscriptions/listen", notifications={"taskIds": [TASK]})
        story.network.run(wait_ms)
        story.network.close(number)
        story.network.run(100)
        node: Any = story.network._nodes["node-1"].engine
        assert not node._exchanges.by_key
        assert not story.network._exchanges


def test_a_process_that_speaks_2025_11_25_is_told_what_tasks_there_are() -> None:
    """Or that its store cannot tell."""
    story = Story()
    story.network = Network(make_engine=both_eras, work=story._work, size=1)
    said: list[Any] = []

    def say(message: dict[str, Any]) -> None:
        head = HttpHead(
            headers={} if not said else {"mcp-session-id": "s", "mcp-protocol-version": "2025-11-25"}
        )
        story.network.converse(
            "node-1",
            lambda number: MessageReceived(
                exchange=number, message=message, http=head, principal="ada", new_session="s"
            ),
            said.append,
        )
        story.network.run(100)

    about = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
    say(request_message(1, "initialize", about))
    say(request_message(2, "tools/call", {"name": "lasting", "arguments": {}, "task": {}}))
    say(request_message(3, "tasks/list", {}))
    assert [task["taskId"] for task in said[-1].message["result"]["tasks"]] == [TASK]
    story.network.fates = [Fate(fails=True)]
    say(request_message(4, "tasks/list", {}))
    assert said[-1].message["error"]["data"] == {"reason": "store_unavailable"}
    assert len(said) == 4
    head = HttpHead(headers={"mcp-session-id": "s", "mcp-protocol-version": "2025-11-25"}, method="GET")
    story.network.converse(
        "node-1", lambda number: StreamRequested(exchange=number, http=head, principal="ada"), said.append
    )
    story.network.run(100)
    assert [type(one) for one in said[4:]] == [OpenStream]
