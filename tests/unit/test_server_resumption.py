"""Work that goes on elsewhere when its node is gone: LIFE.2, UPD.5, CAN.6, INP.1, SEC.1, LIM.3."""

from __future__ import annotations

from typing import Any, Final

import pytest
from attrs import evolve

from mcp_tasks_proto import (
    AcceptReport,
    CallAskedInput,
    CallBecameTask,
    CancelReason,
    DeliverInput,
    Effect,
    ErrorObject,
    Input,
    InputAnswer,
    Limits,
    Load,
    LoadFailed,
    RecordChanged,
    RejectReport,
    Reply,
    RequestCancel,
    ResumeWork,
    Save,
    Saved,
    SaveFailed,
    ServerEngine,
    ShutdownStarted,
    StartWork,
    StopCall,
    TimePassed,
    ToolDeclaration,
    ToolsChanged,
    WorkAskedInput,
    WorkCheckpointed,
    WorkCompleted,
    WorkFailed,
    WorkLost,
    WorkProgressed,
    WorkStopped,
    WorkWithdrewInput,
)
from mcp_tasks_proto.records import TaskRecord
from mcp_tasks_proto.testing import DictStore, ServerHost, request
from mcp_tasks_proto.wire.jsonrpc import json_size
from mcp_tasks_proto.wire.schema import record_from_json, record_to_json
from tests.unit.world import (
    ACCEPTED,
    DECLINED,
    DONE,
    FORMS,
    OTHER,
    START,
    TASK,
    TOOLS,
    asked,
    cancel,
    error,
    form,
    listen,
    make_engine,
    read,
    refused,
    result,
    update,
    view,
)

TOOL: Final = ToolDeclaration(
    name="lasting", definition={"name": "lasting", "inputSchema": {"type": "object"}}, resumable=True
)
LOST: Final = WorkLost(TASK, "home")
STOP: Final = RequestCancel(TASK, CancelReason.TAKEN_OVER)
TAKEN: Final = "the work of the task was taken over by another node"


def node(name: str | None, store: DictStore, limits: Limits | None = None) -> ServerHost:
    engine = ServerEngine(settings=make_engine(limits).settings, tools=(*TOOLS, TOOL), node=name)
    host = ServerHost(engine=engine, store=store, now=START)
    host.give(TimePassed())
    return host


def nodes(*names: str, limits: Limits | None = None) -> list[ServerHost]:
    """Return nodes over one store; the first will be gone."""
    store = DictStore()
    return [node(name, store, limits) for name in ("home", *names)]


def begin(host: ServerHost, *names: str, task_id: str = TASK, **facts: Any) -> None:
    """Make a task, which asks for these."""
    facts.setdefault("capabilities", FORMS)
    result(host.create_task("lasting", {"frames": 3}, task_id=task_id, **facts))
    if names:
        host.give(asked("1", *names, task_id=task_id))


def again(*names: str, ask: str = "1", resumption: int = 1, **requests: Any) -> WorkAskedInput:
    """Return what a later run of the work asks."""
    return evolve(asked(ask, *names, **requests), resumption=resumption)


def record(host: ServerHost) -> TaskRecord:
    return host.store.records[TASK]


def delivered(effects: list[Effect]) -> list[InputAnswer]:
    return [answer for one in effects if isinstance(one, DeliverInput) for answer in one.answers]


def keys(host: ServerHost) -> list[str]:
    """Return the keys that the client is asked."""
    return list(view(host).get("inputRequests", {}))


# -- taking over ----------------------------------------------------------------------------------------


def test_work_of_a_resumable_tool_goes_on_at_another_node() -> None:
    home, away = nodes("away")
    begin(home, principal="ada")
    before = view(home, principal="ada")
    (resumed,) = away.give(LOST)
    assert resumed == ResumeWork(
        task_id=TASK,
        resumption=1,
        tool="lasting",
        arguments={"frames": 3},
        client_capabilities=record(away).client_capabilities,
        principal="ada",
    )
    assert record(away).node == "away"
    assert view(away, principal="ada") == before, "its owner sees nothing of it"
    away.give(WorkCompleted(task_id=TASK, token="done", result=DONE, resumption=1))
    assert view(away, principal="ada")["status"] == "completed"


def test_what_it_is_given_is_no_part_of_the_record() -> None:
    home, away = nodes("away")
    begin(home)
    (resumed,) = away.give(LOST)
    assert isinstance(resumed, ResumeWork)
    resumed.arguments["frames"] = 4  # type: ignore[index]
    assert record(away).arguments == {"frames": 3}


def test_one_node_of_several_wins() -> None:
    home, one, two = nodes("one", "two")
    begin(home)
    one.held = two.held = True
    one.give(LOST)
    two.give(LOST)
    told = [*one.answer_next(), *two.answer_next()]
    assert told == [], "both want it, and neither knows yet"
    assert [type(effect) for effect in one.answer_next()] == [ResumeWork]
    assert two.answer_next() == []
    assert record(home).node == "one"
    assert two.asked == []


def test_what_was_given_before_the_call_became_a_task_is_given_again() -> None:
    """INP.4: the answers of a round before, and the handler's own state."""
    home, away = nodes("away")
    params: dict[str, Any] = {"name": "lasting", "arguments": {}}
    first = home.send(request("tools/call", params, capabilities=FORMS))
    home.give(CallAskedInput(first, {"size": form()}, {"step": 1}))
    state = result(home.reply_to(first))["requestState"]
    params = {**params, "requestState": state, "inputResponses": {"size": ACCEPTED}}
    second = home.send(request("tools/call", params, capabilities=FORMS))
    home.give(CallBecameTask(exchange=second, task_id=TASK))
    assert record(home).payload_bytes == json_size({}) + json_size([{"size": ACCEPTED}, {"step": 1}])
    (resumed,) = away.give(LOST)
    assert isinstance(resumed, ResumeWork)
    assert (resumed.answers, resumed.state) == ({"size": ACCEPTED}, {"step": 1})


@pytest.mark.parametrize(
    ("answers", "state"), [({"size": ACCEPTED}, None), ({}, 7)], ids=["answers", "state"]
)
def test_ttl2_either_of_what_was_given_before_counts(answers: dict[str, Any], state: Any) -> None:
    home, _ = nodes("away")
    params: dict[str, Any] = {"name": "lasting", "arguments": {}}
    first = home.send(request("tools/call", params, capabilities=FORMS))
    home.give(CallAskedInput(first, {"size": form()}, state))
    params |= {"requestState": result(home.reply_to(first))["requestState"], "inputResponses": answers}
    second = home.send(request("tools/call", params, capabilities=FORMS))
    home.give(CallBecameTask(exchange=second, task_id=TASK))
    assert record(home).payload_bytes == json_size({}) + json_size([answers, state])


def test_can6_a_task_that_is_to_be_cancelled_is_not_resumed() -> None:
    home, away = nodes("away")
    begin(home)
    cancel(away)
    assert away.give(LOST) == []
    assert view(away)["status"] == "cancelled"


@pytest.mark.parametrize("why", ["made before", "not here", "no name"])
def test_life2_a_task_that_cannot_be_resumed_fails(why: str) -> None:
    home, away, unnamed = *nodes("away"), node(None, DictStore())
    unnamed.store = home.store
    if why == "made before":
        home.give(ToolsChanged([evolve(TOOL, resumable=False)]))
    begin(home)
    if why == "not here":
        away.give(ToolsChanged(TOOLS))
    survivor = unnamed if why == "no name" else away
    assert survivor.give(LOST) == []
    assert view(away)["error"]["data"] == {"reason": "worker_lost"}


def test_tools_may_become_resumable() -> None:
    home, away = nodes("away")
    begin(home)
    away.give(ToolsChanged(TOOLS))
    away.give(ToolsChanged([*TOOLS, TOOL]))
    assert [type(effect) for effect in away.give(LOST)] == [ResumeWork]


def test_lim3_it_is_resumed_so_often_and_then_fails() -> None:
    home, one, two = nodes("one", "two", limits=Limits(resumptions=2))
    begin(home)
    assert one.give(LOST)
    assert two.give(WorkLost(TASK, "one"))
    assert record(two).resumptions == 2
    assert one.give(WorkLost(TASK, "two")) == [STOP]
    shown = view(one)
    assert shown["status"] == "failed"
    assert shown["error"]["data"] == {"reason": "resumptions"}
    assert "2 times" in shown["statusMessage"]


def test_lim3_a_node_without_room_leaves_it_to_others() -> None:
    home, away = nodes("away", limits=Limits(workers=1))
    begin(home)
    begin(away, task_id=OTHER)
    assert away.give(LOST) == []
    assert record(home).node == "home"
    away.give(WorkCompleted(task_id=OTHER, token=1, result=DONE))
    assert [type(effect) for effect in away.give(LOST)] == [ResumeWork]


def test_lim3_what_is_being_taken_over_takes_a_place() -> None:
    home, away = nodes("away", limits=Limits(workers=1))
    begin(home)
    home.give(WorkStopped(task_id=TASK, token=1))
    begin(home, task_id=OTHER)
    away.held = True
    away.give(WorkLost(OTHER, "home"))
    away.answer_next()
    exchange = away.send(request("tools/call", {"name": "lasting"}))
    away.give(CallBecameTask(exchange=exchange, task_id=TASK))
    assert error(away.reply_to(exchange))["data"] == {"reason": "workers"}


def test_lim3_all_that_is_being_taken_over_takes_places() -> None:
    home, away = nodes("away", limits=Limits(workers=2))
    for task_id in (TASK, OTHER):
        begin(home, task_id=task_id)
    away.held = True
    for task_id in (TASK, OTHER):
        away.give(WorkLost(task_id, "home"))
        away.give(away.store.answer(away.asked.pop()))
    exchange = away.send(request("tools/call", {"name": "lasting"}))
    away.give(CallBecameTask(exchange=exchange, task_id="task-more-0123456789abcdef"))
    assert error(away.reply_to(exchange))["data"] == {"reason": "workers"}


def test_a_place_is_given_back_when_it_is_not_taken_over() -> None:
    home, away = nodes("away", limits=Limits(workers=1))
    begin(home)
    away.held = True
    away.give(LOST)
    away.answer_next()
    away.give(SaveFailed(away.asked.pop().token))
    away.held = False
    assert [type(effect) for effect in away.give(LOST)] == [ResumeWork]


def test_a_server_that_stops_takes_nothing_over() -> None:
    home, away = nodes("away")
    begin(home)
    away.give(ShutdownStarted())
    assert away.give(LOST) == []
    assert record(home).node == "home"


def test_sub2_listeners_are_not_told_of_it() -> None:
    home, away = nodes("away")
    begin(home)
    stream = listen(away, TASK)
    before = len(read(away, stream))
    away.give(LOST)
    assert len(read(away, stream)) == before
    away.give(WorkCompleted(task_id=TASK, token=1, result=DONE, resumption=1))
    assert read(away, stream)[-1]["params"]["status"] == "completed"


@pytest.mark.parametrize("meanwhile", ["cancel", "removal"])
def test_what_comes_before_it_is_known_to_run_here_reaches_it(meanwhile: str) -> None:
    """CAN.6, TTL.1: while the save is under way, news of the task is of no concern here."""
    home, away = nodes("away")
    begin(home)
    away.held = True
    away.give(LOST)
    away.answer_next()
    (save,) = away.asked
    saved = away.store.answer(away.asked.pop())
    assert isinstance(save, Save)
    assert isinstance(saved, Saved)
    if meanwhile == "cancel":
        cancel(home)
    else:
        del home.store.records[TASK]
    assert [type(effect) for effect in away.give(saved)] == [ResumeWork]
    reason = {"cancel": CancelReason.REQUESTED, "removal": CancelReason.EXPIRED}[meanwhile]
    assert away.answer_next() == [RequestCancel(TASK, reason)]


def test_that_look_is_tried_again_when_the_store_fails() -> None:
    home, away = nodes("away")
    begin(home)
    away.held = True
    away.give(LOST)
    away.answer_next()
    away.answer_next()
    (load,) = away.asked
    assert isinstance(load, Load)
    cancel(home)
    away.give(LoadFailed(away.asked.pop().token))
    away.held = False
    assert away.advance(60_000)[0] == RequestCancel(TASK, CancelReason.REQUESTED)


# -- fencing --------------------------------------------------------------------------------------------

REPORTS: Final[dict[str, Input]] = {
    "progress": WorkProgressed(task_id=TASK, token="r", status_message="busy"),
    "checkpoint": WorkCheckpointed(task_id=TASK, token="r", value=1),
    "question": asked("2", "more", token="r"),
    "withdrawal": WorkWithdrewInput(task_id=TASK, token="r", ask="1"),
    "result": WorkCompleted(task_id=TASK, token="r", result=DONE),
    "too much": WorkCompleted(task_id=TASK, token="r", result={"content": ["x" * 1000]}),
    "failure": WorkFailed(task_id=TASK, token="r", error=ErrorObject(-32000, "no")),
    "stop": WorkStopped(task_id=TASK, token="r"),
}


@pytest.mark.parametrize("report", REPORTS)
def test_a_node_that_was_taken_for_gone_changes_nothing(report: str) -> None:
    """LIFE.1: whatever it reports is refused, and its worker told to stop, once."""
    home, away = nodes("away", limits=Limits(result_bytes=900))
    begin(home, "confirm")
    away.give(LOST)
    before = record(away)
    told = home.give(REPORTS[report])
    ended = report in ("result", "too much", "failure", "stop")
    assert told == [*([] if ended else [STOP]), RejectReport("r", TAKEN)]
    assert record(away) == before
    assert home.give(RecordChanged(before)) == []


def test_a_result_over_the_limit_is_taken_of_whoever_runs_the_work() -> None:
    home, away = nodes("away", limits=Limits(result_bytes=900))
    begin(home)
    away.give(LOST)
    report = REPORTS["too much"]
    assert isinstance(report, WorkCompleted)
    assert away.give(evolve(report, resumption=1)) == [AcceptReport("r")]
    assert view(away)["error"]["data"] == {"reason": "result_bytes"}


def test_it_is_told_to_stop_as_soon_as_it_hears() -> None:
    home, away = nodes("away")
    begin(home, "confirm")
    away.give(LOST)
    assert home.give(RecordChanged(record(away))) == [STOP]
    update(home, {"confirm": ACCEPTED})
    assert home.of(DeliverInput) == [], "its worker is not to have this answer any more"


def test_a_client_that_speaks_to_it_tells_it_as_well() -> None:
    home, away = nodes("away")
    begin(home, "confirm")
    away.give(LOST)
    assert view(home)["status"] == "input_required"
    assert home.of(RequestCancel) == [STOP]


def test_old_news_does_not_stop_the_new_worker() -> None:
    home, away = nodes("away")
    begin(home)
    before = record(home)
    away.give(LOST)
    assert away.give(RecordChanged(before)) == []


def test_of_two_runs_at_one_node_the_last_one_counts() -> None:
    """A node that was taken for gone takes over from its successor, while its own first run still goes on."""
    home, away = nodes("away")
    begin(home)
    away.give(LOST)
    told = home.give(WorkLost(TASK, "away"))
    assert [type(effect) for effect in told] == [RequestCancel, ResumeWork]
    assert told[0] == STOP
    late = home.give(WorkCompleted(task_id=TASK, token="first", result=DONE))
    assert late == [RejectReport("first", TAKEN)]
    assert home.engine.concerns(TASK), "the end of the first run is not that of the second"
    assert away.give(WorkStopped(task_id=TASK, token="other", resumption=1)) == [RejectReport("other", TAKEN)]
    last = home.give(WorkCompleted(task_id=TASK, token="last", result=DONE, resumption=2))
    assert last == [AcceptReport("last")]
    assert view(home)["status"] == "completed"


def late_answer(host: ServerHost, *facts: Input) -> Input:
    """Hand in these facts, and return the store's answer to the save they lead to, which has not come yet."""
    host.held = True
    for fact in facts:
        host.give(fact)
    while isinstance(host.asked[0], Load):
        host.answer_next()
    (answer,) = [host.store.answer(effect) for effect in host.asked]
    host.asked.clear()
    host.held = False
    return answer


def test_a_take_over_that_is_known_too_late_starts_no_earlier_run() -> None:
    """LIFE.4: the later run that is here already is not forgotten for it."""
    home, away = nodes("away")
    begin(home)
    saved = late_answer(away, LOST)
    home.give(WorkLost(TASK, "away"))
    away.give(WorkLost(TASK, "home"))
    assert away.give(saved) == []
    assert [resumed.resumption for resumed in away.of(ResumeWork)] == [3]
    away.give(again("confirm", ask="3", resumption=3))
    update(away, {"confirm": ACCEPTED})
    assert [answer.key for answer in delivered(away.effects)] == ["confirm"]


def test_a_creation_that_is_known_too_late_starts_no_earlier_run() -> None:
    """LIFE.4: the handle goes out; what was offered is not started, since a later run is here already."""
    home, away = nodes("away")
    exchange = home.send(request("tools/call", {"name": "lasting"}, capabilities=FORMS))
    saved = late_answer(home, CallBecameTask(exchange=exchange, task_id=TASK))
    away.give(LOST)
    home.give(WorkLost(TASK, "away"))
    replied, stopped = home.give(saved)
    assert isinstance(replied, Reply)
    assert stopped == StopCall(exchange)
    assert home.reply_to(exchange)["result"]["taskId"] == TASK
    assert home.of(StartWork) == []
    told = home.give(WorkCompleted(task_id=TASK, token="last", result=DONE, resumption=2))
    assert told == [AcceptReport("last")]


def test_a_run_that_the_record_does_not_know_is_nobody() -> None:
    (home,) = nodes()
    begin(home)
    told = home.give(WorkCompleted(task_id=TASK, token=1, result=DONE, resumption=7))
    assert told == [RejectReport(1, TAKEN)]


def test_a_worker_is_told_to_stop_once_whatever_the_reasons() -> None:
    home, away = nodes("away")
    begin(home)
    cancel(home)
    home.store.records[TASK] = evolve(record(home), cancel_requested_at_ms=None)
    away.give(LOST)
    home.give(RecordChanged(record(away)))
    assert home.of(RequestCancel) == [RequestCancel(TASK, CancelReason.REQUESTED)]


# -- questions that were asked before -------------------------------------------------------------------


def test_inp1_a_question_that_was_answered_is_not_asked_again() -> None:
    home, away = nodes("away")
    begin(home, "confirm")
    update(home, {"confirm": ACCEPTED})
    assert away.give(LOST)[1:] == [], "an answer is for whoever asks"
    told = away.give(again("confirm", ask="first"))
    assert told == [
        DeliverInput(TASK, (InputAnswer("confirm", "first", "confirm", ACCEPTED),)),
        AcceptReport("asked"),
    ]
    assert view(away)["status"] == "working"
    assert len(record(away).inputs) == 1


def test_inp1_a_question_that_is_outstanding_keeps_its_key() -> None:
    home, away = nodes("away")
    begin(home, "confirm")
    away.give(LOST)
    before = view(away)
    assert away.give(again("confirm")) == [AcceptReport("asked")]
    assert view(away) == before
    update(home, {"confirm": ACCEPTED})
    assert delivered(away.give(RecordChanged(record(home)))) == [
        InputAnswer("confirm", "1", "confirm", ACCEPTED)
    ]


def test_upd5_an_answer_that_comes_before_it_is_asked_again_is_kept_for_it() -> None:
    home, away = nodes("away")
    begin(home, "confirm")
    away.give(LOST)
    update(home, {"confirm": ACCEPTED})
    assert away.give(RecordChanged(record(home))) == []
    assert view(away)["status"] == "working"
    assert [one.key for one in delivered(away.give(again("confirm")))] == ["confirm"]


def test_inp3_each_of_several_finds_its_own() -> None:
    home, away = nodes("away")
    begin(home, "a", "b")
    update(home, {"b": DECLINED})
    away.give(LOST)
    assert [one.key for one in delivered(away.give(again("a", "b", "c")))] == ["b"]
    assert keys(away) == ["a", "c"]
    update(away, {"a": ACCEPTED, "c": ACCEPTED})
    assert [one.key for one in delivered(away.effects)] == ["b", "a", "c"]
    asked_bytes = json_size({"a": form(), "b": form()}) + json_size({"c": form()})
    answer_bytes = json_size(DECLINED) + 2 * json_size(ACCEPTED)
    assert record(away).payload_bytes == json_size({"frames": 3}) + asked_bytes + answer_bytes


def test_inp1_the_second_of_a_name_is_the_second_one() -> None:
    home, away = nodes("away")
    begin(home, "confirm")
    update(home, {"confirm": ACCEPTED})
    home.give(asked("2", "confirm"))
    update(home, {"confirm.2": DECLINED})
    away.give(LOST)
    for ask, key, response in (("1", "confirm", ACCEPTED), ("2", "confirm.2", DECLINED)):
        told = delivered(away.give(again("confirm", ask=ask)))
        assert told == [InputAnswer(key, ask, "confirm", response)]
    assert delivered(away.give(again("confirm", ask="3"))) == []
    assert keys(away) == ["confirm.3"], "an answered key is never used again"


def test_inp1_another_question_under_the_same_name_is_asked() -> None:
    """Nobody's answer to one question is taken for another's; the one before is superseded."""
    home, away = nodes("away")
    begin(home, "confirm", "other")
    away.give(LOST)
    away.give(again(confirm=form("Another name?")))
    assert keys(away) == ["other", "confirm.2"]
    update(away, {"confirm": ACCEPTED})
    assert keys(away) == ["other", "confirm.2"]


def test_an_answer_to_another_question_stays_where_it_is() -> None:
    home, away = nodes("away")
    begin(home, "confirm")
    update(home, {"confirm": ACCEPTED})
    away.give(LOST)
    assert delivered(away.give(again(confirm=form("Another name?")))) == []
    assert keys(away) == ["confirm.2"]


def test_what_was_withdrawn_is_asked_anew() -> None:
    home, away = nodes("away")
    begin(home, "confirm")
    home.give(WorkWithdrewInput(task_id=TASK, token="w", ask="1"))
    away.give(LOST)
    away.give(again("confirm"))
    assert keys(away) == ["confirm.2"]


def test_what_was_asked_before_can_be_withdrawn_by_who_asked_it_again() -> None:
    home, away = nodes("away")
    begin(home, "confirm")
    away.give(LOST)
    away.give(WorkWithdrewInput(task_id=TASK, token="w", ask="1", resumption=1))
    assert keys(away) == ["confirm"], "the question of that name was another run's"
    away.give(again("confirm"))
    away.give(WorkWithdrewInput(task_id=TASK, token="w", ask="1", resumption=1))
    assert keys(away) == []
    assert view(away)["status"] == "working"


def test_lim3_questions_asked_again_do_not_count() -> None:
    home, away = nodes("away", limits=Limits(input_keys=2))
    begin(home, "a", "b")
    away.give(LOST)
    assert away.give(again("a", "b")) == [AcceptReport("asked")]
    (told,) = away.give(again("c", ask="2"))
    assert isinstance(told, RejectReport)
    assert "input_keys" in told.reason


def test_can6_once_cancellation_was_requested_nothing_is_asked_again() -> None:
    home, away = nodes("away")
    begin(home, "confirm")
    away.give(LOST)
    cancel(away)
    (told,) = away.give(again("confirm"))
    assert isinstance(told, RejectReport)


def test_the_third_run_finds_what_both_before_it_asked() -> None:
    home, one, two = nodes("one", "two")
    begin(home, "a")
    update(home, {"a": ACCEPTED})
    one.give(LOST)
    one.give(again("a"))
    one.give(again("b", ask="2"))
    update(two, {"b": DECLINED})
    (resumed,) = two.give(WorkLost(TASK, "one"))
    assert isinstance(resumed, ResumeWork)
    assert resumed.resumption == 2
    told = delivered(two.give(again("a", "b", resumption=2)))
    assert [(one.key, one.response) for one in told] == [("a", ACCEPTED), ("b", DECLINED)]


# -- checkpoints ----------------------------------------------------------------------------------------


def checkpoint(value: Any, *received: str, resumption: int = 0) -> WorkCheckpointed:
    return WorkCheckpointed(
        task_id=TASK, token="saved", value=value, received=received, resumption=resumption
    )


def test_the_next_run_begins_with_the_last_checkpoint() -> None:
    home, away = nodes("away")
    begin(home)
    before, size = view(home), record(home).payload_bytes
    assert home.give(checkpoint({"frame": 1})) == [AcceptReport("saved")]
    assert home.give(checkpoint({"frame": 20})) == [AcceptReport("saved")]
    assert record(home).payload_bytes == size + json_size({"frame": 20})
    assert view(home) == before, "LIFE.5: it is no part of the view"
    (resumed,) = away.give(LOST)
    assert isinstance(resumed, ResumeWork)
    assert resumed.checkpoint == {"frame": 20}
    away.give(checkpoint(None, resumption=1))
    assert record(away).payload_bytes == size


def test_what_a_checkpoint_takes_into_account_answers_no_later_question() -> None:
    """INP.1: a loop that asks the same in every round is asked anew, and no answer counts twice."""
    home, away = nodes("away")
    begin(home, "more")
    update(home, {"more": ACCEPTED})
    home.give(checkpoint({"round": 1}, "1"))
    away.give(LOST)
    assert delivered(away.give(again("more"))) == []
    assert keys(away) == ["more.2"]


def test_what_it_does_not_is_still_there() -> None:
    home, away = nodes("away")
    begin(home, "a")
    home.give(asked("2", "b"))
    update(home, {"a": ACCEPTED})
    home.give(checkpoint(7, "2"))
    away.give(LOST)
    assert [one.key for one in delivered(away.give(again("a", "b")))] == ["a"]
    assert keys(away) == ["b"], "an outstanding question has no answer to take into account"


def test_lim3_a_checkpoint_is_small() -> None:
    (home,) = nodes("away", limits=Limits(checkpoint_bytes=10))[:1]
    begin(home)
    (told,) = home.give(checkpoint("x" * 9))
    assert told == RejectReport("saved", "the checkpoint is too large (Limits.checkpoint_bytes)")
    assert home.give(checkpoint("x" * 8)) == [AcceptReport("saved")]


def test_a_checkpoint_that_is_no_json_is_the_hosts_mistake() -> None:
    (home,) = nodes()
    begin(home)
    assert "JSON" in refused(home, checkpoint(float("nan")))


def test_a_tool_that_is_not_resumable_saves_nothing() -> None:
    (home,) = nodes()
    result(home.create_task("optional", task_id=TASK))
    (told,) = home.give(checkpoint(1))
    assert isinstance(told, RejectReport)
    assert "resumable" in told.reason


@pytest.mark.parametrize("end", ["ended", "removed"])
def test_life1_a_checkpoint_that_is_too_late_changes_nothing(end: str) -> None:
    (home,) = nodes()
    begin(home)
    home.give(WorkStopped(task_id=TASK, token=1))
    if end == "removed":
        del home.store.records[TASK]
    before = dict(home.store.records)
    assert home.give(checkpoint(1)) == [AcceptReport("saved")]
    assert home.store.records == before


def test_an_ended_task_keeps_nothing_of_it() -> None:
    (home,) = nodes()
    begin(home)
    home.give(checkpoint(1))
    home.give(WorkCompleted(task_id=TASK, token=1, result=DONE))
    assert record(home).resumption is None
    assert record(home).resumptions == 0


def test_a_record_keeps_it_as_json() -> None:
    home, away = nodes("away")
    begin(home, "confirm")
    home.give(checkpoint([{"deep": None}]))
    away.give(LOST)
    assert record_from_json(record_to_json(record(away))) == record(away)
