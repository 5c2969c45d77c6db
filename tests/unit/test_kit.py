"""The adapter kit: a right server passes, what cannot be seen is said, and every check sees its fault."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any, Final

import pytest
from attrs import evolve

from docs.rules import SECTIONS
from mcp_tasks_proto.legacy.server import LegacyPolicy
from mcp_tasks_proto.lifecycle import Status
from mcp_tasks_proto.testing.kit import (
    CHECKS,
    NOT_CHECKED,
    Begun,
    Came,
    Ended,
    Fact,
    Kit,
    KitSettings,
    Next,
    Pause,
    Post,
    Role,
    ToolCall,
    Unreadable,
    Verdict,
    counted,
    failures,
    finding_to_json,
    rule_to_json,
    rules_of,
)
from mcp_tasks_proto.testing.kit.all_checks import WATCHES
from mcp_tasks_proto.wire.jsonrpc import encode
from tests.unit.kit_expectations import ALWAYS, CALLS, OF_HTTP, OF_STDIO, SERVED, SERVES_LEGACY, of
from tests.unit.kit_faults import ALL
from tests.unit.kit_world import START, SUPPORT, Fault, KitServer

NAMED: Final = KitSettings(calls=CALLS, search=False)


@pytest.mark.parametrize(
    ("check", "server"), ALL, ids=[f"{number}-{check}" for number, (check, _) in enumerate(ALL)]
)
def test_a_fault_is_seen(check: str, server: Callable[[], KitServer]) -> None:
    """Each check is tried alone, but for those that look at what all the others have said."""
    looks_back = any(one.name == check for one in WATCHES)
    checks = CHECKS if looks_back else [one for one in CHECKS if one.name == check]
    examined = server()
    listed = {role: call for role, call in CALLS.items() if call.tool in examined.tools}
    kit = examined.examine(evolve(NAMED, calls=listed), has_other_caller=True, checks=checks)
    assert check in of(kit, Verdict.FAIL)


def test_every_check_can_fail() -> None:
    assert {check for check, _ in ALL} == {check.name for check in CHECKS}


# -- a right server ----------------------------------------------------------------------------------------

OF_LEGACY_TASKS: Final = (
    "the capability",
    "a call with a task",
    "a plain call of a task tool",
    "a task of a plain tool",
    "the result of a task",
    "a task is cancelled",
    "a tool error",
    "unknown tasks",
    "tasks are listed",
    "a task asks",
    "a task in both eras",
)
IGNORED: Final = {
    **ALWAYS,
    **SERVES_LEGACY,
    **dict.fromkeys(OF_LEGACY_TASKS, "the server has no tasks for clients of 2025-11-25"),
}
REFUSED: Final = {
    **ALWAYS,
    **dict.fromkeys(
        ("tasks that are not declared", *OF_LEGACY_TASKS),
        "the server does not answer initialize with 2025-11-25",
    ),
}


@pytest.mark.parametrize(
    ("legacy", "unseen"), [(LegacyPolicy.SERVE, SERVED), (LegacyPolicy.IGNORE, IGNORED), (None, REFUSED)]
)
def test_a_right_server_passes_over_http(legacy: LegacyPolicy | None, unseen: dict[str, str]) -> None:
    """It is found out which tool does what, and every check passes that can see something."""
    kit = KitServer(legacy=legacy).examine(has_other_caller=True)
    assert of(kit, Verdict.FAIL) == {}
    assert of(kit, Verdict.NOT_OBSERVABLE) == {**unseen, **OF_STDIO}
    assert kit.desk.calls == {role: ToolCall(call.tool) for role, call in CALLS.items()}


def test_a_right_server_passes_on_stdio() -> None:
    kit = KitServer(http=False).examine()
    assert of(kit, Verdict.FAIL) == {}
    assert of(kit, Verdict.NOT_OBSERVABLE) == {**SERVED, **OF_HTTP}


def test_the_kit_leaves_no_task_behind() -> None:
    """A cancelled one stops by itself, a little later."""
    server = KitServer()
    server.examine(has_other_caller=True)
    server.carry(Pause(1_000))
    left = {record.status for record in server.host.store.records.values()}
    assert left <= {Status.COMPLETED, Status.FAILED, Status.CANCELLED}


def test_what_destroys_things_is_not_called_and_neither_is_what_one_names() -> None:
    server = KitServer()
    kit = server.examine(KitSettings(skipped=frozenset({"idle"})))
    assert not {"wipe", "idle"} & set(server.work.called)
    assert Role.SLOW not in kit.desk.calls


def test_at_most_so_many_tools_are_tried() -> None:
    server = KitServer()
    server.examine(KitSettings(searched_tools=1))
    assert set(server.work.called) == {"greet"}


def test_one_tool_of_a_kind_is_enough() -> None:
    """Once all roles are known, no more tools are called."""
    server = KitServer(tools=tuple(SUPPORT))
    server.examine(checks=())
    assert "greet2" not in server.work.called


# -- servers that have less --------------------------------------------------------------------------------


def test_neg7_a_server_without_the_extension() -> None:
    kit = KitServer(tasks_enabled=False, tools=("greet",)).examine()
    assert of(kit, Verdict.FAIL) == {}
    assert of(kit, Verdict.NOT_OBSERVABLE)["getting an unknown task"] == (
        "the server does not advertise the Tasks extension"
    )
    assert "tasks that are not advertised" in of(kit, Verdict.PASS)


def test_a_server_without_tools() -> None:
    kit = KitServer(tools=()).examine()
    assert of(kit, Verdict.FAIL) == {}
    assert of(kit, Verdict.NOT_OBSERVABLE)["a task completes"] == (
        "no tool is known that gives a task that completes by itself (--completing names one)"
    )


def test_a_tool_that_is_named_in_vain() -> None:
    settings = KitSettings(calls={Role.COMPLETING: ToolCall("greet", {"name": "Ada"})}, search=False)
    kit = KitServer().examine(settings)
    assert of(kit, Verdict.NOT_OBSERVABLE)["a task completes"] == "the tool greet gave no task"


def test_a_task_that_does_not_do_what_its_tool_is_named_for() -> None:
    calls = {Role.ASKING: ToolCall("spoil"), Role.COMPLETING: ToolCall("idle"), Role.SLOW: ToolCall("idle")}
    settings = KitSettings(calls=calls, search=False, task_ms=500)
    unseen = of(KitServer().examine(settings), Verdict.NOT_OBSERVABLE)
    assert unseen["what is asked is shown"] == "the task ended as completed before it was input_required"
    assert unseen["a task completes"] == "no task became cancelled or completed or failed within 500 ms"
    assert unseen["the end is told in full"] == "the task takes too long"
    assert unseen["an expired task is unknown"].startswith("no tool is known")


def test_tasks_that_live_for_longer_than_anybody_waits() -> None:
    settings = KitSettings(calls={Role.EXPIRING: ToolCall("idle")}, search=False)
    unseen = of(KitServer().examine(settings), Verdict.NOT_OBSERVABLE)
    assert unseen["an expired task is unknown"] == "the task lives longer than anybody waits here"


def test_a_server_whose_slow_task_is_all_it_has() -> None:
    """What needs any task takes what there is."""
    kit = KitServer(tools=("idle",)).examine()
    assert of(kit, Verdict.FAIL) == {}
    assert "a look changes nothing" in of(kit, Verdict.PASS)


def altered(alter: Callable[[Post, Any], Any]) -> Fault:
    """Return what changes every message that comes."""

    def says(post: Post, fact: Fact) -> Fact | None:
        return Came(alter(post, fact.message)) if isinstance(fact, Came) else fact

    return Fault(says=says)


def one_round_after_the_other(post: Post, message: Any) -> Any:
    """Ask again and again: before a result, and within a task."""
    if post.params.get("name") == "book" and "result" in message:
        asked = {"a": {"method": "sampling/createMessage"}, "b": {"method": "roots/list"}, "c": 1}
        return {**message, "result": {"resultType": "input_required", "inputRequests": asked}}
    return message


def test_a_tool_that_never_stops_asking() -> None:
    kit = KitServer(fault=altered(one_round_after_the_other)).examine(NAMED)
    unseen = of(kit, Verdict.NOT_OBSERVABLE)
    assert unseen["a round is answered"] == "the tool asked more than 10 times"
    assert unseen["a state that was tampered with"] == "the tool gives no requestState"
    assert of(kit, Verdict.FAIL)["a round before a result"] == "an input request has the method None"


def asks_for_ever() -> Fault:
    """A task that asks something new whenever its last question was answered."""
    asked: dict[str, int] = {}

    def alter(post: Post, message: Any) -> Any:
        task_id = str(post.params.get("taskId"))
        if post.method == "tasks/update" and post.params.get("inputResponses"):
            asked[task_id] = asked.get(task_id, 0) + 1
        if post.method == "tasks/get" and task_id in asked and "result" in message:
            view = {name: value for name, value in message["result"].items() if name != "result"}
            question = {f"key {asked[task_id]}": {"method": "roots/list"}}
            return {**message, "result": {**view, "status": "input_required", "inputRequests": question}}
        return message

    return altered(alter)


def test_a_task_that_never_stops_asking() -> None:
    unseen = of(KitServer(fault=asks_for_ever()).examine(NAMED), Verdict.NOT_OBSERVABLE)
    assert unseen["a task goes on when all is answered"] == "the task asked more than 10 times"


def test_a_call_that_does_without_what_was_not_declared() -> None:
    """INP.2: instead of -32021, a result of another kind."""

    def alter(post: Post, message: Any) -> Any:
        if "error" in message and message["error"]["code"] == -32021:
            return {
                "jsonrpc": "2.0",
                "id": message["id"],
                "result": {"resultType": "complete", "content": []},
            }
        return message

    kit = KitServer(fault=altered(alter)).examine(NAMED)
    assert "input that was not declared" in of(kit, Verdict.PASS)


def test_tools_whose_schemas_make_no_sense() -> None:
    """Nobody can say what is to be in a header; everything else goes on."""
    wrong = {"properties": {"a": {"type": "object", "x-mcp-header": "A"}}, "default": {"a": {}}}

    def alter(post: Post, message: Any) -> Any:
        if post.method != "tools/list" or post.era != "modern" or "result" not in message:
            return message
        tools = [{**tool, "inputSchema": wrong} for tool in message["result"]["tools"]]
        return {**message, "result": {**message["result"], "tools": tools}}

    kit = KitServer(fault=altered(alter)).examine(NAMED)
    assert (
        of(kit, Verdict.NOT_OBSERVABLE)["mirrored arguments"] == "no tool has a parameter with x-mcp-header"
    )


def test_arguments_that_no_header_can_carry() -> None:
    """The call goes out without, and the server says what it thinks of that."""

    def alter(post: Post, message: Any) -> Any:
        if post.method != "tools/list" or "result" not in message:
            return message
        schema = {
            "properties": {"a": {"properties": {"b": {"type": "string", "x-mcp-header": "Region"}}}},
            "default": {"a": {"b": {}}},
        }
        tools = [{**tool, "inputSchema": schema} for tool in message["result"]["tools"]]
        return {**message, "result": {**message["result"], "tools": tools}}

    kit = KitServer(fault=altered(alter), tools=("ship",)).examine()
    assert "mirrored arguments" in of(kit, Verdict.FAIL), "for it has another schema in truth"


def test_many_pages_of_tools() -> None:
    kit = KitServer(settings={"page_size": 1}).examine(NAMED, checks=())
    assert set(kit.desk.tools) == set(SUPPORT) - {"greet2"}

    def alter(post: Post, message: Any) -> Any:
        return {"id": 1, "result": {"nextCursor": "again"}} if post.method == "tools/list" else message

    server = KitServer(fault=altered(alter))
    server.examine(NAMED, checks=())
    assert sum(post.method == "tools/list" for post in server.sent) < 30


def test_a_server_that_cannot_be_listened_to() -> None:
    def alter(post: Post, message: Any) -> Any:
        if post.method != "subscriptions/listen":
            return message
        return {"id": 1, "error": {"code": -32601, "message": "there is no such method"}}

    unseen = of(KitServer(fault=altered(alter)).examine(NAMED), Verdict.NOT_OBSERVABLE)
    assert unseen["a snapshot comes first"] == "the server does not serve subscriptions/listen"


def test_a_task_that_is_cancelled_by_itself_is_of_no_use() -> None:
    def alter(post: Post, message: Any) -> Any:
        if post.method != "tasks/get" or "result" not in message:
            return message
        return {**message, "result": {**message["result"], "status": "cancelled"}}

    assert KitServer(fault=altered(alter), tools=("render",)).examine(checks=()).desk.calls == {}


# -- servers that are not there, or nobody else's ------------------------------------------------------------


def test_nobody_is_there() -> None:
    kit = KitServer(fault=Fault(says=lambda *_: Ended("refused"))).examine()
    assert (kit.unreachable, kit.findings) == ("refused", [])
    kit = KitServer(http=False, fault=Fault(says=lambda *_: None)).examine()
    silent = "server/discover was not answered within 10000 ms (--wait lengthens that)"
    assert (kit.unreachable, kit.findings) == (silent, [])


def test_a_web_page_instead_of_a_server() -> None:
    """Everything fails that asks for an answer, or cannot be seen."""

    def says(_: Post, fact: Fact) -> Fact | None:
        return Begun(200, {"content-type": "text/html"}) if isinstance(fact, Begun) else Ended()

    kit = KitServer(fault=Fault(says=says)).examine()
    assert kit.unreachable is None
    assert set(of(kit, Verdict.FAIL)) == {"discovery"}
    assert not of(kit, Verdict.PASS)


def test_what_is_not_json_is_told_where_it_comes() -> None:
    def says(post: Post, fact: Fact) -> Fact | None:
        return (
            Unreadable("a body that is not JSON") if isinstance(fact, Came) and "kit" in post.params else fact
        )

    failed = of(KitServer(fault=Fault(says=says)).examine(NAMED), Verdict.FAIL)
    assert failed["what nobody knows"] == (
        "there came HTTP 200 without a JSON-RPC response: a body that is not JSON where a result was due"
    )


JUNK: Final[tuple[Any, ...]] = (
    None,
    True,
    7,
    -1.5,
    "",
    "kit",
    [],
    [[]],
    {},
    {"a": {"b": []}},
    "\u0000" * 5000,
)


def spoiled(value: Any, turn: int) -> Any:
    """Return a JSON value, one part of which is replaced by something that does not belong there."""
    if isinstance(value, dict) and value and turn % 5:
        name = sorted(value)[turn % len(value)]
        return {**value, name: spoiled(value[name], turn // 5)}
    return JUNK[turn % len(JUNK)]


@pytest.mark.parametrize("seed", range(10))
def test_nothing_that_a_server_says_stops_the_kit(seed: int) -> None:
    """Any part of any answer may be anything."""
    turns = count(seed * 7919)

    def alter(_: Post, message: Any) -> Any:
        turn = next(turns)
        return spoiled(message, turn * 31 // 4) if turn % 4 == 0 else message

    kit = KitServer(fault=altered(alter)).examine(KitSettings(answer_ms=500, total_ms=60_000))
    assert kit.unreachable or len(kit.findings) == len(CHECKS)
    for finding in kit.findings:
        encode(finding_to_json(finding))
    encode({"rules": [rule_to_json(rule) for rule in rules_of(kit.findings)]})


# -- runs --------------------------------------------------------------------------------------------------


def test_a_run_takes_no_longer_than_it_may() -> None:
    server = KitServer()
    kit = server.examine(KitSettings(total_ms=3_000))
    assert server.now - START <= 8_000, "five seconds are for leaving the server as it was"
    late = of(kit, Verdict.NOT_OBSERVABLE)
    assert late["other verbs"] == "the time for the whole run was over (3000 ms)"
    assert kit.out_of_time
    assert len(kit.findings) == len(CHECKS)


def test_time_that_is_up_while_one_looks_around() -> None:
    kit = KitServer().examine(KitSettings(total_ms=10))
    assert of(kit, Verdict.FAIL) == {}
    assert len(kit.findings) == len(CHECKS)


def test_a_server_that_takes_for_ever_is_left_as_it_is_in_time() -> None:
    """Cancelling what is left over has its time, too."""

    def says(post: Post, fact: Fact) -> Fact | None:
        return None if post.method == "tasks/cancel" else fact

    server = KitServer(fault=Fault(says=says))
    kit = server.examine(NAMED, checks=[one for one in CHECKS if one.name == "a task is there at once"] * 3)
    assert len(kit.desk.running) > 0
    assert server.now - START < 20_000


def test_no_wait_is_longer_than_what_is_left() -> None:
    server = KitServer(fault=Fault(says=lambda post, fact: None if post.method == "kit/unknown" else fact))
    kit = Kit(KitSettings(total_ms=30_000), speaks_http=True)
    act = kit.begin(START)
    while act is not None:
        if isinstance(act, Next):
            assert act.within_ms <= max(START + 30_000 - server.now, 5_000)
        act = kit.take(server.carry(act), server.now)
    assert kit.doing == "leaving the server as it was"


def test_a_clock_that_goes_back_does_not_take_time_back() -> None:
    kit = Kit(KitSettings(), speaks_http=True)
    kit.begin(START)
    kit.take(Ended(), START - 1_000)
    assert kit.desk.now_ms == START


def test_a_run_of_nothing() -> None:
    kit = KitServer().examine(NAMED, checks=())
    assert (kit.findings, kit.unreachable) == ([], None)


# -- reports -----------------------------------------------------------------------------------------------


def test_each_rule_is_checked_or_has_a_reason() -> None:
    """The rules about servers, none of them twice; the others are about clients and proxies."""
    checked = {rule for check in CHECKS for rule in check.rules}
    about_servers = {rule for section in SECTIONS.values() for rule in section}
    about_servers = {rule for rule in about_servers if not rule.startswith(("REQ.", "PRX.", "HIS."))}
    assert checked | set(NOT_CHECKED) == about_servers
    assert not checked & set(NOT_CHECKED)
    assert len({check.name for check in CHECKS}) == len(CHECKS)


def test_a_rule_fails_with_one_of_its_checks_and_passes_with_the_first() -> None:
    kit = KitServer(settings={"identify": False}).examine(NAMED)
    rules = {rule.rule: rule for rule in rules_of(kit.findings)}
    assert rules["WIRE.4"].verdict is Verdict.FAIL, "one of two"
    assert rules["WIRE.3"].verdict is Verdict.PASS, "what cannot be seen takes nothing away"
    assert rules["STD.1"].verdict is Verdict.NOT_OBSERVABLE
    assert rules["STD.1"].reason == "only on stdio"
    assert rules["SEC.2"].reason == "logs are not seen from outside"
    names = list(rules)
    assert names.index("NEG.9") < names.index("NEG.10") < names.index("LIFE.1")
    assert counted(list(rules.values()))[Verdict.FAIL] == 1
    assert rule_to_json(rules["WIRE.4"]) == {
        "type": "rule",
        "rule": "WIRE.4",
        "verdict": "fail",
        "checks": {"results say their kind": "pass", "results say whose they are": "fail"},
    }
    assert rule_to_json(rules["SEC.2"])["reason"] == "logs are not seen from outside"


def test_a_failure_shows_what_was_sent_what_came_and_what_was_asked_for() -> None:
    kit = KitServer(settings={"identify": False}).examine(NAMED)
    (failure,) = failures(kit.findings)
    shown = finding_to_json(failure)
    (exchange,) = shown.pop("exchanges")
    assert shown == {
        "type": "check",
        "check": "results say whose they are",
        "rules": ["WIRE.4"],
        "verdict": "fail",
        "strength": "should",
        "asks": "Every result says whose it is: _meta, io.modelcontextprotocol/serverInfo.",
        "source": "MCP 2026-07-28, Overview: _meta, Per-response protocol fields",
        "reason": "a result has no serverInfo",
    }
    assert exchange["sent"]["message"]["method"] == "server/discover"
    assert "Mcp-Method: server/discover" in exchange["sent"]["headers"]
    assert exchange["came"]["status"] == 200
    assert exchange["came"]["messages"][0]["result"]["resultType"] == "complete"


def test_failures_of_the_specification_come_first() -> None:
    def says(post: Post, fact: Fact) -> Fact | None:
        return Begun(418, fact.headers) if isinstance(fact, Begun) else fact

    kit = KitServer(fault=Fault(says=says)).examine(NAMED)
    strengths = [one.check.strength.value for one in failures(kit.findings)]
    assert strengths == sorted(strengths, key=["must", "should", "choice"].index)
    assert len(set(strengths)) == 3
    verbs = next(one for one in failures(kit.findings) if one.check.name == "other verbs")
    assert finding_to_json(verbs)["exchanges"][0]["sent"]["verb"] == "GET"


def test_what_is_long_is_cut_in_a_report() -> None:
    def alter(post: Post, message: Any) -> Any:
        if post.method == "server/discover":
            deep: Any = []
            for _ in range(30):
                deep = [deep]
            error = {"code": 1, "message": "x" * 9_000, "data": [deep, *range(100)]}
            return {"id": message.get("id"), "error": error}
        return message

    kit = KitServer(http=False, fault=altered(alter)).examine(NAMED)
    failure = next(one for one in failures(kit.findings) if one.check.name == "discovery")
    (exchange,) = finding_to_json(failure)["exchanges"]
    error = exchange["came"]["messages"][0]["error"]
    assert len(error["message"]) == 2_001
    assert len(error["data"]) == 50
    assert "…" in str(error["data"][0])
    assert "status" not in exchange["came"]


def test_troubles_are_in_the_report() -> None:
    def says(post: Post, fact: Fact) -> Fact | None:
        return Ended("it hung up") if post.method == "kit/unknown" else fact

    kit = KitServer(fault=Fault(says=says)).examine(NAMED)
    failure = next(one for one in failures(kit.findings) if one.check.name == "unknown methods")
    assert finding_to_json(failure)["exchanges"][0]["came"]["trouble"] == "it hung up"


def test_bytes_that_are_no_message_are_shown_as_they_are() -> None:
    def alter(post: Post, message: Any) -> Any:
        return {"id": 1, "result": {}} if post.message is None else message

    kit = KitServer(fault=altered(alter)).examine(NAMED)
    failure = next(one for one in failures(kit.findings) if one.check.name == "what is not json")
    assert (
        finding_to_json(failure)["exchanges"][0]["sent"]["message"]
        == '{"jsonrpc": "2.0", "id": 0, "method": '
    )


def test_limits_of_a_run_are_positive_integers() -> None:
    with pytest.raises(ValueError, match="total_ms"):
        KitSettings(total_ms=0)
    with pytest.raises(TypeError, match="answer_ms"):
        KitSettings(answer_ms=1.5)  # type: ignore[arg-type]
