"""Recordings: what a recorder writes, and what a replay says of it."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from mcp_tasks_proto import (
    CallAskedInput,
    CallBecameTask,
    CallNotified,
    CallReturned,
    ExpiredFound,
    HttpHead,
    LocalProtocolError,
    MessageReceived,
    Reply,
    Save,
    Saved,
    ServerEngine,
    ShutdownStarted,
    Step,
    TimePassed,
    WorkCompleted,
)
from mcp_tasks_proto.proxy import Access, MessageAdmitted, ProxyEngine, SettingsChanged
from mcp_tasks_proto.requester import CallWanted
from mcp_tasks_proto.testing import Recorder, Replay, ServerHost, replay, request
from mcp_tasks_proto.testing.recordings import LINE_BYTES, Kind, Unreadable, end_line
from tests.unit import requester_world
from tests.unit.proxy_world import ToySealer, make_settings
from tests.unit.world import (
    ACCEPTED,
    DONE,
    FORMS,
    START,
    TASK,
    TOOLS,
    call,
    form,
    head,
    make_engine,
    result,
    working,
)

COMPLETE: Final = {"resultType": "complete"}
TEXT: Final = {"type": "text", "text": "done"}
SECRET: Final = "Bearer a-secret-that-is-not-ours"


def recorded(*, node: str | None = None) -> tuple[ServerHost, list[str]]:
    """Return a host of a server that is recorded, and the recording."""
    lines: list[str] = []
    engine = ServerEngine(settings=make_engine().settings, tools=TOOLS, node=node)
    return ServerHost(engine=Recorder(engine, lines.append), now=START), lines


def session() -> list[str]:
    """Return the recording of a task that is made, asked for, and ends after a while."""
    host, lines = recorded()
    host.give(TimePassed())
    working(host)
    host.ask("tasks/get", {"taskId": TASK})
    host.advance(250)
    host.give(WorkCompleted(task_id=TASK, token="done", result=DONE))
    host.give(ShutdownStarted())
    return lines


def line_of(lines: list[str], kind: str) -> int:
    """Return the number of the first line with an input of a kind."""
    return next(
        number
        for number, line in enumerate(lines, start=1)
        if json.loads(line).get("input", {}).get("$type") == kind
    )


def effect_at(lines: list[str], kind: str) -> tuple[int, int]:
    """Return the number of the first line with an effect of a kind, and where it is among the effects."""
    for number, line in enumerate(lines, start=1):
        for place, effect in enumerate(json.loads(line).get("effects", [])):
            if effect["$type"] == kind:
                return number, place
    raise LookupError(kind)


def changed(lines: list[str], number: int, change: Callable[[Any], object]) -> list[str]:
    """Return a recording one line of which was changed."""
    line = json.loads(lines[number - 1])
    change(line)
    return [*lines[: number - 1], json.dumps(line), *lines[number:]]


def nested(depth: int) -> Any:
    """Return as many arrays, one within the other."""
    value: Any = 7
    for _ in range(depth):
        value = [value]
    return value


def why(lines: list[Any]) -> tuple[int | None, str]:
    """Return what cannot be read, which must be so."""
    found = replay(lines).unreadable
    assert found is not None
    return found.line, found.reason


# -- recording -----------------------------------------------------------------------------------------------


def test_a_recorder_takes_the_place_of_an_engine() -> None:
    host, lines = recorded()
    plain = ServerHost(engine=ServerEngine(settings=make_engine().settings, tools=TOOLS), now=START)
    for one in (host, plain):
        one.give(TimePassed())
        working(one)
    assert host.effects == plain.effects
    assert host.deadline == plain.deadline
    assert isinstance(host.engine, Recorder)
    assert host.engine.concerns(TASK), "what else can be asked of an engine"
    assert len(lines) > 4


def test_the_first_line_says_how_to_make_the_engine() -> None:
    head_line = json.loads(session()[0])
    assert head_line["recording"] == 1
    assert (head_line["role"], head_line["era"]) == ("server", "modern")
    assert head_line["engine"]["$type"] == "ServerEngine"
    assert head_line["engine"]["settings"]["limits"]["input_keys"] == 256, "defaults may be others one day"
    assert [tool["name"] for tool in head_line["engine"]["tools"]] == ["optional", "required", "forbidden"]


def test_the_version_in_a_recording_is_that_of_the_package() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))
    assert json.loads(session()[0])["library"] == project["project"]["version"]


def test_a_line_says_what_was_told_and_what_came_of_it() -> None:
    lines = session()
    first = json.loads(lines[1])
    assert first["now"] == START
    assert first["input"] == {"$type": "TimePassed"}
    (looks,) = first["effects"]
    assert looks == {"$type": "FindExpired", "now_ms": START, "limit": 256, "token": looks["token"]}
    assert first["deadline"] is None


def test_what_an_engine_raises_is_recorded_and_raised() -> None:
    host, lines = recorded()
    with pytest.raises(LocalProtocolError, match="outstanding"):
        host.give(Saved("nothing"))
    line = json.loads(lines[-1])
    assert line["raised"] == "LocalProtocolError"
    assert "outstanding" in line["text"]
    assert "effects" not in line
    assert replay(lines).same


def test_sec2_credentials_and_keys_are_not_in_a_recording() -> None:
    lines: list[str] = []
    engine = make_engine()
    host = ServerHost(engine=Recorder(engine, lines.append))
    message = request("tools/call", {"name": "optional", "arguments": {}}, capabilities=FORMS)
    http = head(message, authorization=SECRET, cookie=SECRET, x_api_key=SECRET)
    http = HttpHead(headers=http.headers, repeated=frozenset({"cookie", "mcp-name"}))
    exchange = host.send(message, http=http, principal="ada")
    assert SECRET not in "".join(lines)
    arrived = json.loads(lines[-1])["input"]["http"]
    assert set(arrived["headers"]) == {"mcp-protocol-version", "mcp-method", "mcp-name"}
    assert arrived["repeated"] == ["mcp-name"]
    assert "k" * 32 not in "".join(lines)
    assert json.loads(lines[0])["engine"]["settings"]["sealer"] == {"$type": "SomeSealer"}
    assert host.reply_to(exchange)["error"]["code"] == -32020
    assert replay(lines).same


def test_inp4_what_a_key_has_sealed_is_noted_in_place_of_the_key() -> None:
    host, lines = recorded()
    exchange = call(host, capabilities=FORMS)
    host.give(CallAskedInput(exchange, {"confirm": form()}, {"step": 1}))
    state = result(host.reply_to(exchange))["requestState"]
    (note,) = json.loads(lines[-1])["keys"]
    assert (note["use"], note["answer"]) == ("seal", state)
    assert '"step":1' in note["given"][0]["text"], "readable, where it is text"
    params = {"name": "optional", "requestState": state, "inputResponses": {"confirm": ACCEPTED}}
    host.send(request("tools/call", {"arguments": {}, **params}, capabilities=FORMS))
    (note,) = json.loads(lines[-1])["keys"]
    assert (note["use"], note["given"]) == ("open", [state])
    assert replay(lines).same


def test_a_replay_says_that_something_else_was_sealed() -> None:
    host, lines = recorded()
    exchange = call(host, capabilities=FORMS)
    host.give(CallAskedInput(exchange, {"confirm": form()}, {"step": 1}))

    def change(line: Any) -> None:
        line["input"]["state"] = {"step": 2}

    found = replay(changed(lines, len(lines), change))
    (difference,) = found.differences
    assert {part.kind for part in difference.parts} == {Kind.CHANGED, Kind.KEYS}
    (keys,) = [part for part in difference.parts if part.kind is Kind.KEYS]
    assert '"step":1' in str(keys.recorded)
    assert '"step":2' in str(keys.now)


def test_a_replay_says_that_something_else_was_opened() -> None:
    """INP.4: what is not noted was made by no key that is known here."""
    host, lines = recorded()
    exchange = call(host, capabilities=FORMS)
    host.give(CallAskedInput(exchange, {"confirm": form()}, {"step": 1}))
    state = result(host.reply_to(exchange))["requestState"]
    host.send(request("tools/call", {"name": "optional", "arguments": {}, "requestState": state}))

    def change(line: Any) -> None:
        line["input"]["message"]["params"]["requestState"] = "v1.other"

    (difference,) = replay(changed(lines, len(lines), change)).differences
    (keys,) = [part for part in difference.parts if part.kind is Kind.KEYS]
    assert [(one["use"], one["given"]) for one in keys.now] == [("open", ["v1.other"])]
    assert any("-32602" in str(part.now) for part in difference.parts)


def test_a_proxys_new_sealer_is_noted_as_well() -> None:
    lines: list[str] = []
    recorder = Recorder(ProxyEngine(settings=make_settings()), lines.append)
    recorder.handle(SettingsChanged(make_settings(sealer=ToySealer())), now=START)
    assert json.loads(lines[-1])["input"]["settings"]["sealer"] == {"$type": "SomeSealer"}
    assert replay(lines).same


def test_who_takes_lines_may_want_no_more() -> None:
    lines: list[str] = []

    def take(line: str) -> bool:
        lines.append(line)
        return len(lines) < 3

    recorder = Recorder(make_engine(), take)
    for _ in range(5):
        assert recorder.handle(TimePassed(), now=START) is not None
    assert len(lines) == 3


def test_a_recording_can_be_ended_and_the_engine_goes_on() -> None:
    lines: list[str] = []
    recorder = Recorder(make_engine(), lines.append)
    recorder.end("enough")
    recorder.end("more than enough")
    assert isinstance(recorder.handle(TimePassed(), now=START), Step)
    assert lines[1:] == [end_line("enough")]
    assert replay(lines).end == "enough"


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ({"params": bytearray(3)}, "a bytearray is neither JSON nor the name of anything"),
        ({"id": 10**5000}, "digits"),
        ({"id": "x" * LINE_BYTES}, "more than 67108864 bytes"),
        (nested(101), "nested more than 100 deep"),
    ],
    ids=["no JSON", "digits", "long", "deep"],
)
def test_what_cannot_be_recorded_ends_the_recording_and_nothing_else(message: Any, reason: str) -> None:
    lines: list[str] = []
    recorder = Recorder(make_engine(), lines.append)
    recorder.handle(TimePassed(), now=START)
    recorder.handle(MessageReceived(exchange=1, message=message), now=START)
    assert reason in json.loads(lines[-1])["end"]
    recorder.handle(TimePassed(), now=START)
    found = replay(lines)
    assert found.same
    assert found.inputs == 1


def test_an_effect_that_cannot_be_recorded_ends_the_recording() -> None:
    """It is nested by one level more than the input that it comes of."""
    host, lines = recorded()
    exchange = call(host, meta={"progressToken": 1})
    host.give(CallNotified(exchange, "notifications/progress", {"progress": 1, "deep": nested(98)}))
    assert len(host.sent_on(exchange)) == 1
    assert json.loads(lines[-1]) == {
        "end": "what came of an input could not be recorded: it is nested more than 100 deep"
    }


def test_only_engines_are_recorded() -> None:
    class Other:
        def handle(self, input: Any, *, now: int) -> None: ...  # noqa: A002

    class Derived(ServerEngine): ...

    for engine in (Other(), Derived(settings=make_engine().settings)):
        with pytest.raises(TypeError, match="no engine that can be recorded"):
            Recorder(engine, print)


# -- the same ------------------------------------------------------------------------------------------------


def test_the_same_inputs_have_the_same_effects() -> None:
    lines = session()
    found = replay(lines)
    assert found == Replay(
        library="0.1.0", role="server", era="modern", inputs=len(lines) - 1, differences=(), unreadable=None
    )
    assert found.describe() == [f"{len(lines) - 1} inputs of a server: the same effects"]


def test_lines_may_be_bytes_with_newlines_and_empty_ones_between() -> None:
    lines = session()
    assert replay([b"\n", *(f"{line}\n".encode() for line in lines), b"  \n"]).same


def test_one_input_is_told_of_in_the_singular() -> None:
    assert replay(session()[:2]).describe() == ["1 input of a server: the same effects"]


# -- differences ---------------------------------------------------------------------------------------------


def test_a_changed_effect_is_told_with_its_line_and_its_members() -> None:
    lines = session()
    number, place = effect_at(lines, "Reply")

    def change(line: Any) -> None:
        line["effects"][place]["message"]["result"]["status"] = "completed"
        line["effects"][place]["http_status"] = 202

    found = replay(changed(lines, number, change))
    assert not found.same
    (difference,) = found.differences
    assert (difference.line, difference.at_ms) == (number, START)
    (part,) = difference.parts
    assert (part.kind, part.place, part.effect) == (Kind.CHANGED, place + 1, "Reply")
    assert [(one.path, one.recorded, one.now) for one in part.members] == [
        ("message.result.status", "completed", "working"),
        ("http_status", 202, 200),
    ]
    text = "\n".join(found.describe())
    assert f"different from line {number} on" in text
    assert 'message.result.status: "completed" -> "working"' in text
    assert "HTTP.5" in text


def test_a_missing_effect_is_told() -> None:
    lines = session()
    number, place = effect_at(lines, "AcceptReport")

    def change(line: Any) -> None:
        line["effects"].insert(place, {"$type": "RequestCancel", "task_id": TASK, "reason": 1})

    (difference,) = replay(changed(lines, number, change)).differences
    (part,) = difference.parts
    assert (difference.line, part.kind, part.place, part.effect) == (
        number,
        Kind.MISSING,
        place + 1,
        "RequestCancel",
    )
    assert "CAN.6" in str(part.hint)
    assert "did not come" in "\n".join(difference.describe())


def test_an_added_effect_is_told() -> None:
    lines = session()
    number, place = effect_at(lines, "Save")
    (difference,) = replay(changed(lines, number, lambda line: line["effects"].pop(place))).differences
    (part,) = difference.parts
    assert (difference.line, part.kind, part.place, part.effect) == (number, Kind.ADDED, place + 1, "Save")
    assert "LIFE.4" in str(part.hint)
    assert "was not recorded" in "\n".join(difference.describe())


def test_another_order_is_told() -> None:
    """A reply before the work that it promises, and the other way round."""
    lines = session()
    number, place = effect_at(lines, "StartWork")
    assert place == 1
    (difference,) = replay(changed(lines, number, lambda line: line["effects"].reverse())).differences
    (part,) = difference.parts
    assert (difference.line, part.kind, part.place, part.effect) == (number, Kind.ORDER, 1, "StartWork")
    assert [effect["$type"] for effect in part.recorded] == ["StartWork", "Reply"]
    assert [effect["$type"] for effect in part.now] == ["Reply", "StartWork"]
    assert "in another order" in "\n".join(difference.describe())


def test_another_deadline_is_told() -> None:
    lines = session()
    number = line_of(lines, "Saved")
    (difference,) = replay(changed(lines, number, lambda line: line.update(deadline=1.0))).differences
    (part,) = difference.parts
    assert (difference.line, part.kind, part.recorded) == (number, Kind.DEADLINE, 1.0)
    assert "another deadline" in "\n".join(difference.describe())


def test_another_time_shows_in_what_depends_on_it() -> None:
    """LIFE.5: what comes of an input that comes later is said to be later."""
    lines = session()
    number = line_of(lines, "WorkCompleted")
    found = replay(changed(lines, number, lambda line: line.update(now=START + 9_000)))
    first = found.differences[0]
    assert first.line == number
    assert first.at_ms == START + 9_000
    assert first.parts[0].effect == "Save"
    assert {member.path for member in first.parts[0].members} == {"record.last_updated_at_ms"}


def test_what_is_raised_now_and_was_not_then_is_told() -> None:
    lines = session()
    number = line_of(lines, "Saved")
    first = replay(changed(lines, number, lambda line: line["input"].update(token="other"))).differences[0]
    assert first.line == number
    assert first.parts[0].kind is Kind.RAISED
    assert first.parts[0].recorded is None
    assert first.parts[0].now["raised"] == "LocalProtocolError"
    assert {part.kind for part in first.parts[1:]} == {Kind.MISSING}
    assert "what the engine raised" in "\n".join(first.describe())


def test_a_fault_that_is_mended_is_told() -> None:
    lines = session()

    def change(line: Any) -> None:
        del line["effects"], line["deadline"]
        line.update(raised="KeyError", text="'gone'")

    (difference,) = replay(changed(lines, 2, change)).differences
    raised, came = difference.parts
    assert (raised.kind, raised.recorded, raised.now) == (
        Kind.RAISED,
        {"raised": "KeyError", "text": "'gone'"},
        None,
    )
    assert (came.kind, came.effect) == (Kind.ADDED, "FindExpired")


def test_effects_that_stay_are_not_told_among_those_that_do_not() -> None:
    """Between two effects that are others stands one that is not."""
    host, lines = recorded()
    exchange = call(host, capabilities=FORMS)
    host.give(CallBecameTask(exchange=exchange, task_id=TASK))
    number, _ = effect_at(lines, "StartWork")
    accept = {"$type": "AcceptReport", "token": 1}

    def change(line: Any) -> None:
        reply, start = line["effects"]
        line["effects"] = [accept, reply, {**start, "task_id": "other"}, accept]

    (difference,) = replay(changed(lines, number, change)).differences
    assert [(part.kind, part.effect) for part in difference.parts] == [
        (Kind.MISSING, "AcceptReport"),
        (Kind.CHANGED, "StartWork"),
        (Kind.MISSING, "AcceptReport"),
    ]

    def change_first(line: Any) -> None:
        line["effects"][0]["http_status"] = 500

    (difference,) = replay(changed(lines, number, change_first)).differences
    assert [(part.kind, part.effect) for part in difference.parts] == [(Kind.CHANGED, "Reply")]

    def change_second(line: Any) -> None:
        line["effects"][1]["task_id"] = "other"

    (difference,) = replay(changed(lines, number, change_second)).differences
    assert [(part.kind, part.place) for part in difference.parts] == [(Kind.CHANGED, 2)]

    def change_last(line: Any) -> None:
        line["effects"] = [{"$type": "Divination"}, *line["effects"]]

    (difference,) = replay(changed(lines, number, change_last)).differences
    assert [(part.kind, part.effect, part.hint) for part in difference.parts] == [
        (Kind.MISSING, "Divination", None)
    ]
    assert len(difference.describe()) == 3

    def change_back(line: Any) -> None:
        line["effects"] = [line["effects"][1]]

    (difference,) = replay(changed(lines, number, change_back)).differences
    assert [(part.kind, part.effect) for part in difference.parts] == [(Kind.ADDED, "Reply")]

    def change_both(line: Any) -> None:
        reply, start = line["effects"]
        line["effects"] = [{**reply, "http_status": 500}, {"$type": "StopCall", "exchange": 1}, start, 7]

    (difference,) = replay(changed(lines, number, change_both)).differences
    assert [(part.kind, part.effect) for part in difference.parts] == [
        (Kind.CHANGED, "Reply"),
        (Kind.MISSING, "StopCall"),
        (Kind.MISSING, None),
    ]


@pytest.mark.parametrize(
    ("recorded_result", "members"),
    [
        ({"a": 1}, {"message.result.a", "message.result.content", "message.result.resultType"}),
        ({**COMPLETE, "content": [TEXT, 2]}, {"message.result.content[1]"}),
        ({**COMPLETE, "content": []}, {"message.result.content[0]"}),
        ({**COMPLETE, "content": [{**TEXT, "text": 5}]}, {"message.result.content[0].text"}),
        ({**COMPLETE, "content": {}}, {"message.result.content"}),
        (7, {"message.result"}),
    ],
)
def test_members_are_told_from_the_outside_in(recorded_result: Any, members: set[str]) -> None:
    host, lines = recorded()
    host.give(CallReturned(call(host), DONE))

    def change(line: Any) -> None:
        message = line["effects"][0]["message"]
        meta = {"_meta": message["result"]["_meta"]}
        told = {**recorded_result, **meta} if isinstance(recorded_result, dict) else recorded_result
        message["result"] = told

    (difference,) = replay(changed(lines, len(lines), change)).differences
    assert {member.path for member in difference.parts[0].members} == members
    assert json.loads(json.dumps(difference.to_json()))["parts"][0]["members"]


def test_of_very_many_members_only_some_are_told() -> None:
    host, lines = recorded()
    exchange = call(host)
    host.give(CallReturned(exchange, {"content": [], "rest": list(range(50))}))

    def change(line: Any) -> None:
        line["effects"][0]["message"]["result"]["rest"] = list(range(50, 100))

    (difference,) = replay(changed(lines, len(lines), change)).differences
    members = difference.parts[0].members
    assert len(members) == 20
    assert members[-1].path == "and 31 more"


def test_lim3_an_array_may_be_as_long_as_its_line_lets_it() -> None:
    """Whoever writes a recording decides that: nothing is copied, or kept, for each of its items."""
    host, lines = recorded()
    host.give(CallReturned(call(host), {"content": [], "rest": [0]}))

    def change(line: Any) -> None:
        line["effects"][0]["message"]["result"]["rest"] = [0] * 300_000

    (difference,) = replay(changed(lines, len(lines), change)).differences
    assert difference.parts[0].members[-1].path == f"and {300_000 - 20} more"


def test_of_very_many_effects_people_are_told_of_some() -> None:
    lines = session()
    many = [{"$type": "StopCall", "exchange": number} for number in range(3_000)]
    found = replay(changed(lines, 2, lambda line: line.update(effects=many)))
    (difference,) = found.differences
    assert len(difference.parts) == 3_001
    assert [part.kind for part in difference.parts[-2:]] == [Kind.MISSING, Kind.ADDED]
    assert difference.describe()[-1] == "  and 2981 more"
    assert len(difference.to_json()["parts"]) == 3_001


def test_an_error_code_is_explained() -> None:
    host, lines = recorded()
    host.ask("tasks/get", {"taskId": TASK})

    def change(line: Any) -> None:
        line["effects"][0]["message"]["error"]["code"] = -32099

    (difference,) = replay(changed(lines, len(lines), change)).differences
    assert "name an unknown task" in str(difference.parts[0].hint)
    assert "then -32099" in str(difference.parts[0].hint)


def test_a_view_that_moved_is_explained() -> None:
    lines = session()
    told = [number for number, line in enumerate(lines, start=1) if '"lastUpdatedAt"' in line]
    number = [number for number in told if '"Reply"' in lines[number - 1]][-1]

    def change(line: Any) -> None:
        line["effects"][0]["message"]["result"]["lastUpdatedAt"] = "2020"

    (difference,) = replay(changed(lines, number, change)).differences
    assert "LIFE.5" in str(difference.parts[0].hint)


def test_values_are_cut_where_people_read_and_whole_where_programs_do() -> None:
    lines = session()
    number, place = effect_at(lines, "Reply")

    def change(line: Any) -> None:
        line["effects"][place]["message"]["result"]["status"] = "x" * 500

    found = replay(changed(lines, number, change))
    assert max(map(len, found.differences[0].parts[0].members[0].recorded)) == 1
    assert "x" * 100 not in "\n".join(found.describe(width=80))
    assert "x" * 500 in json.dumps(found.to_json())


def test_one_difference_leads_to_others_and_the_rest_is_left() -> None:
    lines = session()
    found = replay([lines[0], *lines[3:]])
    assert len(found.differences) > 2
    found = replay([lines[0], *lines[3:]], most=2)
    assert len(found.differences) == 2
    assert found.stopped
    assert "the rest was not looked at: one difference leads to others" in found.describe()


def test_another_version_is_named_where_there_are_differences() -> None:
    lines = changed(session(), 1, lambda line: line.update(library="9.9"))
    assert len(replay(lines).describe()) == 1
    found = replay(changed(lines, 2, lambda line: line.update(deadline=7)))
    assert "it was recorded with version 9.9, and replayed with 0.1.0" in found.describe()


# -- what cannot be read -------------------------------------------------------------------------------------


def test_a_last_line_that_was_cut_off_is_left_out() -> None:
    """As a process leaves it that is killed while it writes."""
    lines = session()
    found = replay([*lines[:-1], lines[-1][:40]])
    assert found.same
    assert found.cut_off
    assert found.inputs == len(lines) - 2
    assert "the last line was cut off, and left out" in found.describe()


def test_a_last_line_that_came_to_its_end_was_not_cut_off() -> None:
    for last in ("garbage\n", b"\x00\x00\n", '{"now": 1\n'):
        assert why([*session()[:2], last]) == (3, "it is not JSON")


def test_the_first_reason_to_end_is_the_one() -> None:
    """What cannot be recorded ends a recording before its process ends, which is said as well."""
    found = replay([*session()[:2], end_line("full"), end_line("the process has ended")])
    assert found.same
    assert (found.inputs, found.end) == (1, "full")
    assert "the recording ends: full" in found.describe()
    assert replay([*session()[:2], end_line("full"), end_line("the process has ended")[:9]]).same


def test_nothing_follows_the_end() -> None:
    """Two recordings in one file are not taken for the first of them."""
    lines = session()
    for more in (lines[0], lines[2], "7"):
        number, reason = why([*lines[:2], end_line("full"), more, *lines])
        assert (number, reason) == (4, "it follows the end of the recording; a file holds one")
    number, reason = why([*lines, *lines])
    assert (number, reason) == (len(lines) + 1, "another recording begins here; a file holds one")


def test_there_may_be_nothing() -> None:
    assert why([]) == (None, "there is nothing in it")
    assert why(["", "\n"]) == (None, "there is nothing in it")
    found = replay([])
    assert not found.same
    assert found.describe() == ["not replayed", "it cannot be read: there is nothing in it"]
    assert found.to_json()["unreadable"] == {"line": None, "reason": "there is nothing in it"}


SERVER: Final = '{"recording": 1, "engine": {"$type": "ServerEngine", "settings": %s}}'


@pytest.mark.parametrize(
    ("first", "reason"),
    [
        ("garbage", "it is not JSON"),
        (b"\xff\xfe\xfa", "it is not JSON"),
        ("[" * 100_000, "it is not JSON"),
        ("7", "this is no recording"),
        (end_line("no room"), "nothing was recorded: no room"),
        ("{}", "this is no recording"),
        ('{"recording": true}', "this is no recording"),
        ('{"recording": 2, "library": "7.0"}', "it is in format 2, as mcp-tasks-proto 7.0 wrote it"),
        ('{"recording": 1}', "does not say which engine"),
        ('{"recording": 1, "engine": {"$type": 7}}', "does not say which engine"),
        ('{"recording": 1, "engine": {"$type": "Abacus"}}', "this version has no engine Abacus"),
        ('{"recording": 1, "engine": {"$type": "ServerEngine"}}', "no ServerEngine can be made of it"),
        ('{"recording": 1, "engine": {"$type": "ServerEngine", "more": 1}}', "ServerEngine has no more"),
        (SERVER % '{"$type": "Limits", "tasks": 0}', "this is no Limits"),
        (SERVER % "7", "no ServerEngine can be made of it"),
    ],
)
def test_the_first_line_may_be_anything(first: Any, reason: str) -> None:
    number, found = why([first, *session()[1:]])
    assert number == 1
    assert reason in found


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda engine: engine.update(codec=None), "no ProxyEngine can be made of it"),
        (lambda engine: engine["settings"].update(upstreams=["farm"]), "this is no ProxySettings"),
    ],
)
def test_the_engine_of_the_first_line_may_be_anything(change: Callable[[Any], object], reason: str) -> None:
    lines: list[str] = []
    Recorder(ProxyEngine(settings=make_settings()), lines.append)
    number, found = why(changed(lines, 1, lambda line: change(line["engine"])))
    assert number == 1
    assert reason in found


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda line: line.pop("now"), "it has no now, or no input"),
        (lambda line: line.update(now="soon"), "it has no now, or no input"),
        (lambda line: line.pop("input"), "it has no now, or no input"),
        (lambda line: line.pop("effects"), "what came of its input"),
        (lambda line: line.update(effects=7), "are no array"),
        (lambda line: line.update(keys=7), "are no array"),
        (lambda line: line.update(keys=[{"use": 7}]), "not as they are written"),
        (
            lambda line: line.update(keys=[{"use": "seal", "given": [nested(150)], "answer": None}]),
            "its keys were never recorded: it is nested more than 100 deep",
        ),
        (lambda line: line.update(input={"$type": "Premonition"}), "this version knows no Premonition"),
        (lambda line: line.update(input={"$type": 7}), "$type is not the name of a class"),
        (lambda line: line["input"].update(more=1), "TimePassed has no more in this version"),
        (lambda line: line.update(input={"$type": "Loaded"}), "this is no Loaded"),
        (lambda line: line.update(input={"$type": "Status", "value": "lost"}), "this is no Status"),
        (lambda line: line.update(input={"$type": "Status"}), "this is no Status"),
        (lambda line: line.update(input={"$type": "bytes", "base64url": "!"}), "this is no bytes"),
        (lambda line: line.update(input={"$type": "bytes", "text": 5}), "this is no bytes"),
        (lambda line: line.update(input={"$type": "float", "value": 10**400}), "this is no float"),
        (lambda line: line.update(input=float("nan")), "it is not JSON"),
        (lambda line: line.update(input={"$type": "set", "items": [[]]}), "this is no set"),
        (
            lambda line: line.update(input={"$type": "set", "items": [{"$type": "Premonition"}]}),
            "this version knows no Premonition",
        ),
        (lambda line: line.update(input=nested(500)), "it is nested more than 400 deep"),
    ],
)
def test_a_line_may_be_anything(change: Callable[[Any], object], reason: str) -> None:
    lines = session()
    number, found = why(changed(lines, 2, change))
    assert number == 2
    assert reason in found


@pytest.mark.parametrize("line", ["7", "garbage", "[" * 100_000])
def test_a_line_that_is_none_is_told_of_after_what_was_different_before(line: str) -> None:
    lines = changed(session(), 2, lambda line: line.update(deadline=7))
    found = replay([*lines[:3], line, *lines[3:]])
    assert [one.line for one in found.differences] == [2]
    assert found.unreadable is not None
    assert found.unreadable.line == 4
    assert any(text.startswith("line 4 cannot be read") for text in found.describe())


def test_a_line_that_is_too_long_is_not_read() -> None:
    assert why([*session(), "x" * (LINE_BYTES + 2)])[1] == f"it is longer than {LINE_BYTES} bytes"


def test_what_is_no_input_of_the_engine_is_what_it_raises_on() -> None:
    lines: list[str] = []
    recorder = Recorder(requester_world.make_engine(), lines.append)
    with pytest.raises(LocalProtocolError):
        recorder.handle(TASK, now=START)
    recorder.handle(CallWanted(call=("a", 1), tool="render"), now=START)
    assert replay(lines).same


def test_settings_of_another_role_are_found_out_when_the_engine_runs() -> None:
    """Whatever a file says, replaying it raises nothing."""
    other: list[str] = []
    Recorder(requester_world.make_engine(), other.append)
    lines = session()

    def change(line: Any) -> None:
        line["engine"]["settings"] = json.loads(other[0])["engine"]["settings"]

    found = replay(changed(lines, 1, change))
    assert not found.same


def test_a_replay_can_be_put_into_json() -> None:
    lines = session()
    found = replay(changed(lines, 2, lambda line: line.update(deadline=7)))
    told = json.loads(json.dumps(found.to_json()))
    assert told["same"] is False
    assert told["differences"][0]["line"] == 2
    assert told["differences"][0]["parts"] == [
        {"kind": "deadline", "hint": found.differences[0].parts[0].hint, "recorded": 7, "now": None}
    ]
    assert told["unreadable"] is None
    assert replay([]).unreadable == Unreadable(None, "there is nothing in it")


def test_numbers_that_json_has_not_are_told_in_json_all_the_same() -> None:
    """A deadline is infinite where somebody wrote that a lifetime is."""
    recorder_lines: list[str] = []
    recorder = Recorder(make_engine(), recorder_lines.append)
    recorder.handle(TimePassed(), now=START)
    recorder.handle(ExpiredFound(0, (), START + 1), now=START)

    def change(line: Any) -> None:
        line["input"]["next_expiry_ms"] = {"$type": "float", "value": "inf"}

    found = replay(changed(recorder_lines, len(recorder_lines), change))
    assert not found.same
    json.dumps(found.to_json(), allow_nan=False)


def test_access_and_connections_are_recorded() -> None:
    """PRX.7: what a caller may do comes with its message; a connection is whatever the host has."""
    lines: list[str] = []
    recorder = Recorder(ProxyEngine(settings=make_settings()), lines.append)
    pipe, access = object(), Access(project="p", authorizations={"renderer": "mine"})
    for exchange in (1, 2):
        recorder.handle(
            MessageAdmitted(exchange=exchange, message=7, connection=pipe, access=access), now=START
        )
    recorder.handle(MessageReceived(exchange=3, message=7, connection=object()), now=START)
    names = [json.loads(line)["input"]["connection"] for line in lines[1:]]
    assert names == [{"$type": "Name", "of": "object", "number": number} for number in (1, 1, 2)]
    assert replay(lines).same


def test_effects_are_carried_out_as_they_are() -> None:
    """A recorder hands on the engine's own steps."""
    host, _ = recorded()
    working(host)
    assert {type(effect) for effect in host.effects} >= {Reply}
    assert not host.of(Save), "the store's own are carried out"
