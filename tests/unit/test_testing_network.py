"""The network of several engines over one store, step by step: what a fate does, and who hears of it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from attrs import define, field

from mcp_tasks_proto import (
    CallBecameTask,
    Effect,
    HmacSealer,
    Input,
    LegacyInput,
    MessageReceived,
    RejectReport,
    RequestCancel,
    ResumeWork,
    ServerEngine,
    ServerSettings,
    StartTool,
    StartWork,
    Step,
    ToolDeclaration,
    WorkCompleted,
)
from mcp_tasks_proto.server.tasks import Tasks
from mcp_tasks_proto.testing import Crash, Fate, Network, request
from tests.unit.world import DONE, TASK

QUIET = Fate()


def engine(name: str) -> ServerEngine:
    tool = ToolDeclaration(
        name="lasting", definition={"name": "lasting", "inputSchema": {"type": "object"}}, resumable=True
    )
    settings = ServerSettings(name="test", version="1", sealer=HmacSealer([b"k" * 32]))
    return ServerEngine(settings=settings, tools=[tool], node=name)


@define(eq=False)
class Story:
    """Two nodes; every call becomes the task, whose work goes on until the test ends it."""

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
        self.told.append((node, effect))
        if isinstance(effect, StartTool):
            return [(1, CallBecameTask(exchange=effect.exchange, task_id=TASK, ttl_ms=self.ttl_ms))]
        return []

    def ask(self, method: str, node: str = "node-1", **params: Any) -> None:
        self.network.ask(node, method, params, self.replies.append, self.heard.append)

    def create(self, *fates: Fate) -> None:
        """Call the tool; these are the fates from then on."""
        self.network._fates = iter(fates)
        self.ask("tools/call", name="lasting", arguments={})
        self.network.run(100)

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
    story.network._fates = iter([Fate(fails=True)])
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
    story.network._fates = iter([QUIET, Fate(delay_ms=50)])
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


def test_whoever_converses_hears_all_in_order_and_of_its_end() -> None:
    story = Story()
    story.ask("tools/call", name="lasting", arguments={})
    story.network.run(100)
    said: list[Any] = []
    wanted = request("subscriptions/listen", {"notifications": {"taskIds": [TASK]}}, id="mine")

    def arrives(number: int) -> Input:
        return MessageReceived(exchange=number, message=wanted)

    story.network._fates = iter([QUIET, Fate(delay_ms=50)])
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
    network = Network(make_engine=engine, work=lambda *_: [])
    with pytest.raises(AssertionError, match="a deadline that has passed"):
        network.run(100)
