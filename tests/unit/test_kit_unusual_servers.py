"""Servers that are right and unlike ours: the adapter kit finds no fault that the specification denies.

And those that are wrong where nothing can be seen: they pass nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import count
from typing import Any, Final

import pytest

from mcp_tasks_proto.legacy.server import LegacyPolicy
from mcp_tasks_proto.testing.kit import (
    CHECKS,
    Begun,
    Came,
    Ended,
    Fact,
    Kit,
    KitSettings,
    Next,
    Post,
    Role,
    Strength,
    ToolCall,
    Unreadable,
    Verdict,
)
from mcp_tasks_proto.testing.kit.desk import ANSWERS, HEARD_BYTES, MESSAGES, POLL_MS
from tests.unit.kit_expectations import CALLS, of
from tests.unit.kit_world import START, Fault, KitServer

NAMED: Final = KitSettings(calls=CALLS, search=False)
SLOW: Final = KitSettings(calls={Role.SLOW: ToolCall("idle")}, search=False)

Alter = Callable[[Post, dict[str, Any]], Any]


def saying(alter: Alter) -> Fault:
    """Return what changes messages: ``alter`` returns another one, or ``None``, which leaves it as it is."""

    def says(post: Post, fact: Fact) -> Fact | None:
        changed = alter(post, fact.message) if isinstance(fact, Came) else None
        return fact if changed is None else Came(changed)

    return Fault(says=says)


def silent(when: Callable[[Post], bool]) -> Fault:
    """Return what swallows the messages of some exchanges."""
    return Fault(says=lambda post, fact: None if when(post) else fact)


def refusal(code: int, message: str = "no", id_: Any = None) -> dict[str, Any]:
    """Return an error."""
    return {"jsonrpc": "2.0", "id": id_, "error": {"code": code, "message": message}}


def of_check(kit: Kit, name: str) -> tuple[Verdict, str]:
    """Return what is said of a check."""
    (finding,) = (one for one in kit.findings if one.check.name == name)
    return finding.verdict, finding.reason


def judged(
    name: str, server: KitServer, settings: KitSettings = NAMED, **options: Any
) -> tuple[Verdict, str]:
    """Return what a check alone says of a server."""
    checks = [one for one in CHECKS if one.name == name]
    return of_check(server.examine(settings, checks=checks, **options), name)


def demanded(kit: Kit) -> set[str]:
    """Return the checks that failed of those that the specification demands."""
    failed = [one for one in kit.findings if one.verdict is Verdict.FAIL]
    return {one.check.name for one in failed if one.check.strength is Strength.MUST}


PASS: Final = (Verdict.PASS, "")


def unseen(reason: str) -> tuple[Verdict, str]:
    """Return a verdict."""
    return Verdict.NOT_OBSERVABLE, reason


# -- other eras --------------------------------------------------------------------------------------------


def _knows_no_modern_request(post: Post, fact: Fact) -> Fact | None:
    if post.era == "legacy":
        return fact
    if isinstance(fact, Begun):
        return Begun(400, fact.headers)
    return Came(refusal(-32000, "Bad Request: no valid session")) if isinstance(fact, Came) else fact


@pytest.mark.parametrize(
    "server",
    [
        KitServer(fault=Fault(says=_knows_no_modern_request)),
        KitServer(http=False, fault=Fault(says=_knows_no_modern_request)),
        KitServer(http=False, fault=silent(lambda post: post.era != "legacy")),
    ],
    ids=["HTTP", "stdio", "silent until it is initialized"],
)
def test_a_server_of_2025_11_25_alone_owes_nothing_to_2026_07_28(server: KitServer) -> None:
    kit = server.examine()
    assert kit.unreachable is None
    assert of(kit, Verdict.FAIL) == {}
    assert of_check(kit, "discovery") == unseen("the server serves 2025-11-25 alone")
    assert of_check(kit, "unknown tasks") == PASS, "what needs no tool is seen"


def test_neg9_a_modern_server_that_is_not_to_be_discovered_is_still_examined() -> None:
    fault = saying(lambda post, _: refusal(-32603) if post.method == "server/discover" else None)
    kit = KitServer(fault=fault).examine(NAMED)
    assert "discovery" in of(kit, Verdict.FAIL)
    assert of_check(kit, "tasks that are not advertised") == unseen(
        "the server does not say what it advertises"
    )
    assert of_check(kit, "unknown methods") == PASS


def test_neg9_an_older_version_may_be_served_too() -> None:
    older = {"jsonrpc": "2.0", "id": 2, "result": {"protocolVersion": "2025-06-18", "capabilities": {}}}
    fault = saying(lambda post, _: older if post.method == "initialize" else None)
    assert judged("initialize where it is not served", KitServer(legacy=None, fault=fault)) == unseen(
        "the server serves another version: 2025-06-18"
    )


@pytest.mark.parametrize("status", [400, 404, 405])
def test_http1_a_server_with_sessions_may_miss_one(status: int) -> None:
    def says(post: Post, fact: Fact) -> Fact | None:
        return Begun(status) if post.era == "none" and isinstance(fact, Begun) else fact

    assert judged("other verbs", KitServer(fault=Fault(says=says))) == PASS


def test_http1_a_server_of_2025_11_25_that_needs_no_session_opens_a_stream() -> None:
    def says(post: Post, fact: Fact) -> Fact | None:
        if post.verb == "GET":
            return Begun(200, {"content-type": "text/event-stream"}) if isinstance(fact, Begun) else None
        return fact

    assert judged("other verbs", KitServer(fault=Fault(says=says))) == PASS


def test_http2_a_request_without_a_version_may_be_an_older_one() -> None:
    """2026-07-28, Protocol Version Header: it may be treated as of 2025-03-26, which knows no such method."""

    def says(post: Post, fact: Fact) -> Fact | None:
        if post.era != "modern" or any(name == "MCP-Protocol-Version" for name, _ in post.headers):
            return fact
        if isinstance(fact, Begun):
            return Begun(200, fact.headers)
        return Came(refusal(-32601)) if isinstance(fact, Came) else fact

    assert judged("headers that are missing", KitServer(fault=Fault(says=says))) == PASS
    verdict, _ = judged("headers that are missing", KitServer(fault=Fault(says=says), legacy=None))
    assert verdict is Verdict.FAIL, "where there is no older one"


# -- who is let in, and how often --------------------------------------------------------------------------


@pytest.mark.parametrize("status", [401, 403])
def test_a_server_that_wants_credentials_is_not_examined(status: int) -> None:
    kit = KitServer(
        fault=Fault(says=lambda _, fact: Begun(status) if isinstance(fact, Begun) else Ended())
    ).examine()
    assert f"HTTP {status}" in str(kit.unreachable)
    assert kit.findings == []


def test_a_server_that_is_asked_too_often_says_nothing_of_a_rule() -> None:
    def says(post: Post, fact: Fact) -> Fact | None:
        if post.method not in ("kit/unknown", "tools/call", "notifications/initialized"):
            return fact
        return Begun(429) if isinstance(fact, Begun) else Ended()

    kit = KitServer(fault=Fault(says=says)).examine()
    assert of_check(kit, "unknown methods") == unseen("the server wants to be asked less often (HTTP 429)")
    assert of(kit, Verdict.FAIL) == {}


def test_sec1_a_caller_who_is_let_in_nowhere_shows_nothing() -> None:
    """A refusal of whatever he asks is none of this task."""
    fault = saying(lambda post, _: refusal(-32602) if post.caller else None)
    verdict, reason = judged("tasks of others", KitServer(fault=fault), has_other_caller=True)
    assert verdict is Verdict.NOT_OBSERVABLE
    assert reason.startswith("the other caller is let in nowhere: ")


def test_sec1_tasks_are_kept_from_others_also_where_nobody_can_listen() -> None:
    fault = saying(lambda post, _: refusal(-32601) if post.method == "subscriptions/listen" else None)
    assert judged("tasks of others", KitServer(fault=fault), has_other_caller=True) == PASS


# -- what there need not be --------------------------------------------------------------------------------


def test_leg5_tasks_of_2025_11_25_need_not_be_cancelled() -> None:
    def alter(post: Post, message: dict[str, Any]) -> Any:
        if post.method == "initialize":
            tasks: dict[str, Any] = {"requests": {"tools": {"call": {}}}}
            return {**message, "result": {**message["result"], "capabilities": {"tasks": tasks}}}
        knows = post.era != "legacy" or post.method != "tasks/cancel"
        return None if knows else refusal(-32601, id_=message.get("id"))

    kit = KitServer(fault=saying(alter)).examine(NAMED, checks=_with("unknown tasks", "a task is cancelled"))
    assert of_check(kit, "unknown tasks") == PASS
    assert of_check(kit, "a task is cancelled") == unseen("the server does not cancel tasks of 2025-11-25")


def test_leg8_a_question_may_come_on_another_stream() -> None:
    """2025-11-25, Tasks: messages are to be expected on any stream; on stdio there is but one."""

    def says(post: Post, fact: Fact) -> Fact | None:
        asks = isinstance(fact, Came) and fact.message.get("method") == "elicitation/create"
        return None if asks and post.era == "legacy" else fact

    assert judged("a task asks", KitServer(fault=Fault(says=says))) == unseen(
        "no question came with tasks/result; on HTTP it may come on any stream"
    )
    assert judged("a task asks", KitServer(fault=Fault(says=says), http=False))[0] is Verdict.FAIL


def test_http3_all_else_that_a_tool_wants_is_in_its_call() -> None:
    """Or its server might refuse that first."""
    schema = {
        "properties": {
            "query": {"type": "string"},
            "place": {"properties": {"region": {"enum": ["eu"], "type": "string", "x-mcp-header": "Region"}}},
        },
        "required": ["query", "place"],
    }

    def alter(post: Post, message: dict[str, Any]) -> Any:
        if post.method != "tools/list" or "result" not in message:
            return None
        return {
            **message,
            "result": {**message["result"], "tools": [{"name": "ship", "inputSchema": schema}]},
        }

    server = KitServer(fault=saying(alter))
    judged("mirrored arguments", server, KitSettings(search=False))
    (arguments, *_) = [post.params["arguments"] for post in server.sent if post.method == "tools/call"]
    assert arguments == {"query": "kit", "place": {"region": "eu"}}


# -- other ways to say it ----------------------------------------------------------------------------------


def test_wire1_the_http_status_of_what_is_malformed_is_left_open() -> None:
    def says(_: Post, fact: Fact) -> Fact | None:
        return Begun(200, fact.headers) if isinstance(fact, Begun) and fact.status == 400 else fact

    kit = KitServer(fault=Fault(says=says)).examine(NAMED)
    assert not {"what is not json", "what is no request", "ids that are none"} & demanded(kit)


def test_neg1_a_header_without_its_field_is_a_difference_too() -> None:
    """Both are demanded: -32602 for the field that is missing, and -32020 for what differs."""

    def alter(post: Post, message: Mapping[str, Any]) -> Any:
        meta = post.params.get("_meta")
        missing = isinstance(meta, dict) and "io.modelcontextprotocol/protocolVersion" not in meta
        return refusal(-32020, id_=message.get("id")) if missing else None

    assert judged("metadata that is missing", KitServer(fault=saying(alter))) == PASS
    verdict, _ = judged("metadata that is missing", KitServer(fault=saying(alter), http=False))
    assert verdict is Verdict.FAIL, "there are no headers on stdio"


def test_get2_an_empty_name_may_count_as_none() -> None:
    fault = saying(
        lambda post, message: (
            refusal(-32020, id_=message.get("id")) if post.params.get("taskId") == "" else None
        )
    )
    assert judged("getting an unknown task", KitServer(fault=fault)) == PASS


@pytest.mark.parametrize(
    "when",
    [
        "2026-07-28T10:30Z",
        "2026-07-28T10:30:00",
        "2026-07-28T10:30:00,5+02",
        "20260728T103000Z",
        "20260728T1030+0200",
    ],
)
def test_life5_iso_8601_has_many_forms(when: str) -> None:
    def alter(_: Post, message: dict[str, Any]) -> Any:
        result = message.get("result")
        if not isinstance(result, dict) or "createdAt" not in result:
            return None
        return {**message, "result": {**result, "createdAt": when, "lastUpdatedAt": when}}

    kit = KitServer(fault=saying(alter)).examine(NAMED, checks=_with("a task is there at once", "timestamps"))
    assert of_check(kit, "timestamps") == PASS


def _with(*names: str) -> list[Any]:
    return [one for one in CHECKS if one.name in names]


def test_life5_that_durations_are_positive_is_a_choice() -> None:
    def alter(_: Post, message: dict[str, Any]) -> Any:
        result = message.get("result")
        if not isinstance(result, dict) or "taskId" not in result:
            return None
        return {**message, "result": {**result, "ttlMs": 0, "pollIntervalMs": 0}}

    kit = KitServer(fault=saying(alter)).examine(NAMED)
    assert demanded(kit) == set()
    assert "durations are positive" in of(kit, Verdict.FAIL)


def test_inp4_a_state_that_may_be_tampered_with_is_a_choice() -> None:
    """Protection may be omitted where nothing worse than a failure comes of it."""
    kit = KitServer(fault=saying(_takes_any_state)).examine(NAMED)
    assert set(of(kit, Verdict.FAIL)) == {"a state that was tampered with", "how a state is refused"}
    assert demanded(kit) == set()


def _takes_any_state(post: Post, message: dict[str, Any]) -> Any:
    if "error" not in message or "requestState" not in post.params:
        return None
    return {
        "jsonrpc": "2.0",
        "id": message["id"],
        "result": {
            "resultType": "complete",
            "content": [],
            "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "a", "version": "1"}},
        },
    }


def test_sub2_an_end_may_differ_in_what_moves() -> None:
    """ttlMs and pollIntervalMs may change, and lastUpdatedAt with them."""

    def alter(post: Post, message: dict[str, Any]) -> Any:
        if message.get("method") != "notifications/tasks":
            return None
        params = {**message["params"], "ttlMs": 1, "pollIntervalMs": 1, "lastUpdatedAt": "2026-07-28T00:00Z"}
        return {**message, "params": params}

    assert judged("the end is told in full", KitServer(fault=saying(alter))) == PASS


# -- servers that take their time --------------------------------------------------------------------------


def _plain_call(*tools: str) -> Callable[[Post], bool]:
    return lambda post: post.method == "tools/call" and post.params.get("name") in tools


@pytest.mark.parametrize(
    ("check", "server"),
    [
        (
            "a task tool undeclared",
            KitServer(fault=silent(lambda post: "extensions" not in str(post.message))),
        ),
        ("asking for a task", KitServer(fault=silent(_plain_call("greet")))),
        ("plain results stay plain", KitServer(fault=silent(_plain_call("greet")))),
        ("input that was not declared", KitServer(fault=silent(_plain_call("book")))),
        ("a round before a result", KitServer(fault=silent(_plain_call("book")))),
        (
            "a round is answered",
            KitServer(fault=silent(lambda post: "inputResponses" in post.params)),
        ),
        ("nothing undeclared is asked", KitServer(fault=silent(_plain_call("commission")))),
        (
            "tasks that are not declared",
            KitServer(fault=silent(_plain_call("greet")), legacy=LegacyPolicy.IGNORE),
        ),
    ],
)
def test_a_tool_may_take_longer_than_anybody_waits_here(check: str, server: KitServer) -> None:
    assert judged(check, server) == unseen("the tool takes too long to answer")


@pytest.mark.parametrize("check", ["the result of a task", "a tool error", "a task asks"])
def test_leg4_a_task_of_2025_11_25_may_take_longer_as_well(check: str) -> None:
    calls = {**CALLS, **dict.fromkeys((Role.COMPLETING, Role.ERRING, Role.ASKING), ToolCall("idle"))}
    settings = KitSettings(calls=calls, search=False, task_ms=2_000)
    assert judged(check, KitServer(), settings) == unseen("the task is at work for more than 2000 ms")


def test_leg5_a_task_that_had_ended_cannot_be_cancelled() -> None:
    settings = KitSettings(calls={Role.SLOW: ToolCall("render")}, search=False)
    server = KitServer(travels_ms=lambda post: 1_000 if post.method == "tools/call" else 0)
    assert judged("a task is cancelled", server, settings) == unseen(
        "the task was completed before it was cancelled"
    )


def test_sub2_an_end_before_anybody_listened_need_not_be_told() -> None:
    """The specification has no snapshot: only changes are told of."""

    def says(post: Post, fact: Fact) -> Fact | None:
        told = isinstance(fact, Came) and fact.message.get("method") == "notifications/tasks"
        return None if told else fact

    server = KitServer(
        fault=Fault(says=says), travels_ms=lambda post: 1_000 if post.method == "tools/call" else 0
    )
    assert judged("the end is told in full", server) == unseen("the task had ended before anybody listened")


def test_get1_a_task_that_works_may_get_on_between_two_looks() -> None:
    counts = count()

    def alter(post: Post, message: dict[str, Any]) -> Any:
        if post.method != "tasks/get" or "result" not in message:
            return None
        return {**message, "result": {**message["result"], "statusMessage": f"{next(counts)} frames"}}

    assert judged("a look changes nothing", KitServer(fault=saying(alter), tools=("idle",)), SLOW) == unseen(
        "the task does not stand still: statusMessage"
    )
    assert judged("a look changes nothing", KitServer(fault=saying(alter)))[0] is Verdict.FAIL


def test_life1_what_lay_in_a_stream_may_be_older_than_an_end_seen_elsewhere() -> None:
    """What was told before the end is fetched after a look that shows it."""
    server = KitServer(travels_ms=lambda post: 1_000 if post.method == "subscriptions/listen" else 0)
    kit = server.examine(NAMED, checks=_with("the end is told in full", "no status after the end"))
    assert of(kit, Verdict.PASS).keys() == {"the end is told in full", "no status after the end"}


def test_ttl1_a_task_is_as_old_as_its_call_at_most() -> None:
    """The create result may have taken its time: here, all of the time for which the task lives."""
    settings = KitSettings(calls={Role.COMPLETING: ToolCall("flash")}, search=False)

    def alter(_: Post, message: dict[str, Any]) -> Any:
        result = message.get("result")
        if not isinstance(result, dict) or "ttlMs" not in result:
            return None
        return {**message, "result": {**result, "ttlMs": 4_000}}

    server = KitServer(
        fault=saying(alter), travels_ms=lambda post: 4_000 if post.method == "tools/call" else 0
    )
    kit = server.examine(settings, checks=_with("a task is there at once", "no task goes before its time"))
    assert of_check(kit, "no task goes before its time") == PASS


def test_a_poll_interval_of_a_day_does_not_hide_an_end() -> None:
    def alter(_: Post, message: dict[str, Any]) -> Any:
        result = message.get("result")
        if not isinstance(result, dict) or "taskId" not in result:
            return None
        return {**message, "result": {**result, "pollIntervalMs": 86_400_000}}

    server = KitServer(fault=saying(alter))
    assert judged("a task completes", server) == PASS
    assert server.now - START < 60_000


def _in_no_time(_: Post, message: dict[str, Any]) -> Any:
    result = message.get("result")
    if not isinstance(result, dict) or "taskId" not in result:
        return None
    return {**message, "result": {**result, "pollIntervalMs": 1}}


def test_a_poll_interval_of_a_millisecond_is_not_kept_to() -> None:
    server = KitServer(fault=saying(_in_no_time))
    settings = KitSettings(calls={Role.COMPLETING: ToolCall("idle")}, search=False)
    assert judged("a task completes", server, settings)[0] is Verdict.NOT_OBSERVABLE
    assert len(server.sent) < 250


def test_leg2_what_was_said_first_is_known_after_very_many_answers() -> None:
    """Only so many are kept."""
    calls = {Role.COMPLETING: ToolCall("idle")}
    settings = KitSettings(calls=calls, search=False, task_ms=POLL_MS * (ANSWERS + 100), total_ms=10**9)
    kit = KitServer(fault=saying(_in_no_time)).examine(
        settings, checks=_with("a task completes", "the capability")
    )
    assert len(kit.desk.log) == ANSWERS
    assert of_check(kit, "the capability") == PASS


# -- what was not seen -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("check", "http"), [("hanging up leaves the task", True), ("a stream is cancelled", False)]
)
def test_sub4_nobody_hangs_up_who_was_not_listened_to(check: str, http: bool) -> None:
    def alter(_: Post, message: dict[str, Any]) -> Any:
        acknowledged = message.get("method") == "notifications/subscriptions/acknowledged"
        return {**message, "params": {**message["params"], "notifications": {}}} if acknowledged else None

    server = KitServer(fault=saying(alter), http=http)
    assert judged(check, server) == unseen("the server tells of no tasks")


def test_sub4_a_task_that_does_not_change_tells_nothing_of_a_stream() -> None:
    def alter(post: Post, message: dict[str, Any]) -> Any:
        result = message.get("result")
        if not isinstance(result, dict) or "status" not in result:
            return None
        return {**message, "result": {**result, "status": "working"}}

    assert judged("a stream is cancelled", KitServer(fault=saying(alter), http=False)) == unseen(
        "the task did not change, so that there was nothing to tell"
    )


def test_inp2_no_answer_is_no_restraint() -> None:
    def says(post: Post, fact: Fact) -> Fact | None:
        return Ended("it hung up") if _plain_call("commission")(post) else fact

    assert judged("nothing undeclared is asked", KitServer(fault=Fault(says=says), http=False)) == unseen(
        "there came no JSON-RPC response: it hung up"
    )


# -- more than anybody can take ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "fact", [Ended("it is too long", over_limit=True), Unreadable("it is too long", True)]
)
def test_an_answer_over_a_limit_of_the_kit_s_may_be_right(fact: Fact) -> None:
    def says(post: Post, said: Fact) -> Fact | None:
        return fact if post.method in ("kit/unknown", "tools/list") and isinstance(said, Came) else said

    for http in (True, False):
        kit = KitServer(fault=Fault(says=says), http=http).examine()
        assert of_check(kit, "unknown methods") == unseen("it is too long")
        assert of(kit, Verdict.FAIL) == {}


def test_a_flood_is_no_answer() -> None:
    """So many messages are taken of an exchange, and so many bytes in a run; what comes later is not seen."""
    news = Came({"jsonrpc": "2.0", "method": "notifications/kit"}, 10_000)
    kit, server, heard = Kit(KitSettings(), speaks_http=True), KitServer(), 0
    act = kit.begin(START)
    while act is not None:
        floods = isinstance(act, Next) and kit.doing != "looking at the server"
        heard += floods
        act = kit.take(news if floods else server.carry(act), server.now)
    assert heard <= HEARD_BYTES / 10_000 + 64 * MESSAGES
    failed = of(kit, Verdict.FAIL)
    assert f"{MESSAGES} messages came, and no response" in failed["what is not json"]
    last = f"the server has said more than a run takes in ({HEARD_BYTES} bytes)"
    assert of_check(kit, "other verbs") == unseen(last)


def test_nothing_is_known_of_a_server_whose_first_answer_is_over_a_limit() -> None:
    fault = Fault(says=lambda _, fact: Ended("it is too long", over_limit=True))
    assert KitServer(fault=fault).examine().unreachable == "its answer cannot be taken: it is too long"


def test_that_a_server_is_gone_is_a_fault_once_and_no_other_rule_s() -> None:
    """It may come back."""
    gone: list[Post] = []

    def says(post: Post, fact: Fact) -> Fact | None:
        if post.method == "kit/unknown" and isinstance(fact, Begun):
            gone.append(post)
        refuses = 0 < len(gone) < 2 and isinstance(fact, Begun)
        return Ended("no connection to the server", unsent=True) if refuses else fact

    names = ("unknown methods", "discovery", "what is advertised", "unknown methods", "discovery")
    checks = [one for name in names for one in _with(name)]
    kit = KitServer(fault=Fault(says=says)).examine(NAMED, checks=checks)
    verdicts = [finding.verdict for finding in kit.findings]
    hidden = Verdict.NOT_OBSERVABLE
    assert verdicts == [Verdict.FAIL, hidden, hidden, Verdict.PASS, Verdict.PASS]
    assert kit.findings[1].reason == "the server is gone: no connection to the server"
