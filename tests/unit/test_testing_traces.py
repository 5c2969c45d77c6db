"""Traces: what can be said in a script, and how effects are told."""

from __future__ import annotations

from textwrap import dedent
from typing import Any

import pytest

from mcp_tasks_proto import Limits, ListTasks, Reply, Send, StartTool
from mcp_tasks_proto.testing.traces import TraceError, play
from mcp_tasks_proto.testing.traces.effects import Teller
from mcp_tasks_proto.vocabulary import SERVER_INFO, SUBSCRIPTION_ID

TASK = """\
Title

    server   tool render optional
    +0       client   1 tools/call render
                      > start tool 1 render {}, may become a task
             handler  1 becomes T
                      > reply 1 task T working made +0
                      > start work T
"""


def script(*lines: str, before: str = TASK) -> str:
    """Return a script: a task that works, then these lines."""
    return before + "".join(f"             {line}\n" for line in lines)


def told(*lines: str, before: str = TASK) -> list[str]:
    """Play these lines and return what the engine said to the last of them."""
    played = play(script(*lines, before=before)).splitlines()
    says = len(played)
    while played[says - 1].lstrip().startswith(">"):
        says -= 1
    return [line.strip().removeprefix("> ") for line in played[says:]]


def fails(*lines: str, before: str = TASK) -> str:
    """Return why these lines cannot be played."""
    with pytest.raises(TraceError) as caught:
        play(script(*lines, before=before))
    assert caught.value.line == (before + "\n" * len(lines)).count("\n"), "it is the last line"
    return caught.value.problem


# -- playing ---------------------------------------------------------------------------------------


def test_a_right_trace_is_played_without_a_change() -> None:
    assert play(TASK) == TASK


def test_a_trace_without_the_engines_lines_gets_them() -> None:
    facts = "".join(line for line in TASK.splitlines(keepends=True) if not line.lstrip().startswith(">"))
    assert facts != TASK
    assert play(facts) == TASK


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("made +0", "made +1"),
        ("                      > start work T\n", ""),
        ("                      > start work T\n", "                      > start work T\n" * 2),
        (", may become a task", ""),
        ("T working", "T completed"),
    ],
)
def test_a_wrong_trace_is_changed(right: str, wrong: str) -> None:
    """Whatever is missing, too much, or another: the text that was played differs."""
    changed = TASK.replace(right, wrong)
    assert changed != TASK
    assert play(changed) == TASK


def test_prose_and_empty_lines_stay_where_they_are() -> None:
    text = "A title\n\nSome prose.\n  \n    server   tool render optional\nMore > prose.\n"
    assert play(text) == text


def test_a_line_goes_on_after_a_backslash() -> None:
    text = dedent("""\
        Title

            +0       client   1 {"jsonrpc": "2.0", \\
                                 "method": \\
                                 "notifications/x"}
                              > reply 1 nothing
        """)
    assert play(text) == text


def test_time_passes_in_milliseconds_from_the_start() -> None:
    later = '    +60      worker   T says "busy"\n    +61      client   2 tasks/get T\n'
    assert told(before=TASK + later) == ['reply 2 T working made +0 changed +60 "busy"']


# -- facts -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "effects"),
    [
        ("client 2 tasks/get T", ["reply 2 T working made +0"]),
        ("client two tasks/get T", ["reply two T working made +0"]),
        ("client 2 tasks/get T as bob", ['reply 2 error -32602 "Task not found"']),
        ('client 2 tasks/get "odd"', ['reply 2 error -32602 "Task not found"']),
        ("client 2 tasks/get T declaring nothing", ["reply 2 error -32021 needs tasks http 400"]),
        ("client 2 tasks/get T declaring elicitation", ["reply 2 error -32021 needs tasks http 400"]),
        ("client 2 tasks/get T declaring tasks roots", ["reply 2 T working made +0"]),
        (
            "client 2 tasks/get T extension off",
            ['reply 2 error -32601 "Method not found: tasks/get" http 404'],
        ),
        ("client 2 tasks/get T over http", ["reply 2 T working made +0"]),
        (
            'client 2 tasks/get T over http header MCP-Protocol-Version "x"',
            ['reply 2 error -32020 "Header mismatch: MCP-Protocol-Version differs from the body" http 400'],
        ),
        ("client 2 tasks/update T", ["reply 2 complete"]),
        ("client 2 tasks/cancel T", ["tell T to stop: requested", "reply 2 complete"]),
        ("client 2 subscriptions/listen T tools", ["send 2 acknowledged T tools"]),
        ("client 2 subscriptions/listen as alice", ["send 2 acknowledged"]),
        (
            "client 2 tools/list",
            [
                'reply 2 complete {"tools": [{"name": "render", "inputSchema": {"type": "object"}}], '
                '"ttlMs": 60000, "cacheScope": "private"}'
            ],
        ),
        (
            'client 2 tools/list {"cursor": 5}',
            [
                'reply 2 error -32602 "Invalid params: cursor is not one that this server gave out, '
                'or its tool is gone"'
            ],
        ),
        (
            'client 2 tools/call render {"frames": 3} as alice',
            ['start tool 2 render {"frames": 3} as alice, may become a task'],
        ),
        ("client 2 leaves", []),
        ("client 2 reads", []),
        ("client 2 cancels", ["reply 2 cancels nothing"]),
        ('worker T says "busy" ttl 5000 poll 50', ["accept T says"]),
        ("worker T says ttl unlimited poll unsaid", ["accept T says"]),
        ("worker T asks first a b", ["accept T asks"]),
        ("worker T withdraws first", ["accept T withdraws"]),
        ('worker T completes "done"', ["accept T completes"]),
        ('worker T fails -5 "no paint" {"left": 0}', ["accept T fails"]),
        ('worker T stops "enough"', ["accept T stops"]),
        ("host gives T ttl 5000", ["accept T ttl"]),
        ("host gives T ttl unlimited", ["accept T ttl"]),
        ("host stops", []),
    ],
)
def test_what_can_be_said(line: str, effects: list[str]) -> None:
    assert told(line) == effects


@pytest.mark.parametrize(
    ("line", "effect"),
    [
        ('handler 2 returns "done"', 'reply 2 complete "done"'),
        ('handler 2 returns {"content": []}', 'reply 2 complete {"content": []}'),
        (
            'handler 2 returns {"content": [{"type": "text", "text": "x", "y": 1}]}',
            'reply 2 complete {"content": [{"type": "text", "text": "x", "y": 1}]}',
        ),
        (
            'handler 2 returns {"content": [{"type": "text", "text": "x"}], "isError": true}',
            'reply 2 complete {"content": [{"type": "text", "text": "x"}], "isError": true}',
        ),
        ('handler 2 fails -5 "no paint"', 'reply 2 error -5 "no paint"'),
        ('handler 2 fails -5 "no paint" ["left"]', 'reply 2 error -5 "no paint" ["left"]'),
        ("handler 2 asks a b", "reply 2 asks a b"),
        (
            'handler 2 asks a b={"method": "roots/list"}',
            'reply 2 error -32021 "Missing required client capability: roots"',
        ),
        ('handler 2 becomes U "Queued" ttl 5 poll 6', 'reply 2 task U working made +0 ttl 5 poll 6 "Queued"'),
    ],
)
def test_what_may_come_of_a_call(line: str, effect: str) -> None:
    assert told("client 2 tools/call render", line)[0].startswith(effect)


@pytest.mark.parametrize(
    ("answer", "delivered"),
    [
        ("accept", "accept"),
        ("decline", "decline"),
        ('{"action": "accept", "content": {"ok": false}}', '{"action": "accept", "content": {"ok": false}}'),
    ],
)
def test_answers_in_short_and_in_full(answer: str, delivered: str) -> None:
    effects = told("worker T asks first confirm", f"client 2 tasks/update T confirm={answer}")
    assert effects == [f"deliver T first.confirm={delivered}", "reply 2 complete"]


def test_questions_in_short_and_in_full() -> None:
    """What is not the usual form is told in full."""
    odd = (
        '{"method": "elicitation/create", "params": {"mode": "form", "message": "Size?", '
        '"requestedSchema": {"type": "object", "properties": {}}}}'
    )
    assert told(f"worker T asks first confirm size={odd}", "client 2 tasks/get T") == [
        f"reply 2 T input_required made +0 changed +1 asks confirm size={odd}"
    ]


def test_a_call_is_made_again_with_its_answers() -> None:
    effects = told(
        "client 2 tools/call render",
        'handler 2 asks confirm state {"step": 1}',
        "client 3 tools/call render again 2 confirm=accept",
    )
    assert effects == ['start tool 3 render {} confirm=accept state {"step": 1}, may become a task']


def test_methods_of_the_host_are_forwarded() -> None:
    before = "    server   method prompts/get\n"
    assert told('client 1 prompts/get {"name": "x"} as alice', before=before) == [
        "forward 1 prompts/get as alice"
    ]


def test_a_shared_channel() -> None:
    effects = told("client 2 subscriptions/listen tools on stdio", "client 2 cancels", before=TASK)
    assert effects == ["stop call 2", "reply 2 cancels nothing"]
    effects = told("client 2 subscriptions/listen tools on stdio", "host stops")
    assert effects == ["send 2 ends the stream", 'reply 2 notifications/cancelled {"requestId": 2}']


def test_the_strict_policy() -> None:
    before = TASK.replace("    server   tool", "    server   visibility strict\n    server   tool")
    effects = told("worker T asks first confirm", "client 2 tasks/get T declaring tasks", before=before)
    assert effects == [
        'reply 2 error -32021 "Missing required client capability: elicitation (form)" '
        '{"requiredCapabilities": {"elicitation": {"form": {}}}} http 400'
    ]


def test_a_store_that_is_shown() -> None:
    before = TASK.replace("    server   tool", "    server   shows store\n    server   tool")
    assert told("store does it", "client 2 tasks/get T", before=before) == ["load T"]
    assert told("store fails", before=before)[0].startswith("reply 1 error -32603")
    assert told("store does it", "client 2 tasks/get T", "store fails", before=before)[0].startswith(
        "reply 2 error -32603"
    )
    expired = before.replace("becomes T", "becomes T ttl 10") + "             store    does it\n"
    sweep = expired + "    +10      clock    wakes\n"
    assert told(before=sweep) == ["find expired at +10, 256 at most"]
    assert told("store does it", before=sweep) == ["delete T 1"]
    assert told("store does it", "store does it", before=sweep) == ["tell T to stop: expired"]
    assert told("store fails", before=sweep) == []


# -- both eras -----------------------------------------------------------------------------------------

INITIALIZE = (
    'client 1 {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": '
    '{"protocolVersion": "2025-11-25", "capabilities": {}}} as ann on stdio'
)
LIST = 'client 2 {"jsonrpc": "2.0", "id": 2, "method": "tasks/list", "params": {}}'
BOTH = "    server   speaks 2025-11-25\n    server   tool render optional\n"


def test_a_server_that_speaks_2025_11_25_as_well_has_sessions_with_tasks() -> None:
    greeting, *_ = told(INITIALIZE, before=BOTH)
    assert '"tasks": {"list": {}' in greeting
    assert told(INITIALIZE, f"{LIST} as ann on stdio", before=BOTH) == ['reply 2 no resultType {"tasks": []}']
    assert told("client 1 tools/call render", before=BOTH) == ["start tool 1 render {}, may become a task"]


def test_the_end_of_a_sessions_request_and_of_its_handler_are_told_apart() -> None:
    calls = LIST.replace("tasks/list", "tools/call").replace("{}", '{"name": "render"}')
    cancels = 'client 3 {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}}'
    says = told(INITIALIZE, f"{calls} as ann on stdio", f"{cancels} as ann on stdio", before=BOTH)
    assert says == ["exchange 2 is over", "reply 3 nothing", "stop call 2"]


def test_a_server_that_speaks_no_other_version_has_no_sessions() -> None:
    before = BOTH.replace("2025-11-25", "2026-07-28")
    assert told(INITIALIZE, before=before)[0].startswith("reply 1 error -32")


WHOLE = "T-0123456789abcdefghijk"
HELLO = "client 1 initialize declaring elicitation roots on stdio"


def test_a_call_of_a_session_goes_by_the_number_of_its_request() -> None:
    called = "client 2 tools/call render {} task on stdio"
    assert told(HELLO, called, before=BOTH) == ["start tool 2 render {}, may become a task"]
    reply, start = told(HELLO, called, "handler 2 becomes T", before=BOTH)
    assert reply.startswith(f'reply 2 no resultType {{"task": {{"taskId": "{WHOLE}", "status": "working"')
    assert start == "start work T"
    plain = "client 2 tools/call render on stdio"
    assert told(HELLO, plain, 'handler 2 returns "done"', before=BOTH) == ['reply 2 no resultType "done"']
    assert told(HELLO, plain, 'handler 2 fails -32603 "no"', before=BOTH)[0].startswith(
        "reply 2 error -32603"
    )


def test_what_a_session_says_of_a_task_has_short_forms() -> None:
    """LEG.4: the client's lifetime counts, and ``tasks/result`` waits for the end."""
    made = (HELLO, 'client 2 tools/call render task {"ttl": 5000} on stdio', "handler 2 becomes T")
    assert '"ttl": 5000' in told(*made, before=BOTH)[0]
    (shown,) = told(*made, "client 3 tasks/get T on stdio", before=BOTH)
    assert shown.startswith("reply 3 no resultType T working")
    waits = (*made, "client 3 tasks/result T on stdio", "client 3 reads")
    assert not any(line.startswith("reply") for line in told(*waits, before=BOTH))
    done = told(*waits, 'worker T completes "done"', before=BOTH)
    assert any(line.startswith('reply 3 no resultType {"content": ') for line in done)
    *_, cancelled = told(*made, "client 3 tasks/cancel T on stdio", before=BOTH)
    assert cancelled.startswith("reply 3 no resultType T cancelled")
    unknown = told(*made, f'client 3 tasks/get "{WHOLE}!" on stdio', before=BOTH)
    assert unknown[0].startswith("reply 3 error -32602")


def test_a_notification_of_a_session_has_no_id() -> None:
    """JSON-RPC: nothing answers it, where an unknown request is refused."""
    assert told(HELLO, "client 2 notifications/initialized on stdio", before=BOTH) == []
    assert told(HELLO, "client 2 initialized on stdio", before=BOTH)[0].startswith("reply 2 error -32601")


def test_a_session_declares_what_is_said_or_takes_forms() -> None:
    """LEG.2, INP.2: a client is asked what it declared when it said hello."""
    call = "client 2 tools/call render on stdio"
    for hello in (
        "initialize",
        "initialize declaring elicitation",
        'initialize declaring {"elicitation": {}}',
    ):
        asked = told(f"client 1 {hello} on stdio", call, "handler 2 asks confirm", before=BOTH)
        assert asked[0].startswith("send 2 elicitation/create id 1")
    for hello in ("initialize declaring nothing", "initialize declaring tasks roots"):
        asked = told(f"client 1 {hello} on stdio", call, "handler 2 asks confirm", before=BOTH)
        assert asked[0].startswith("reply 2 error")


def test_only_the_connection_of_a_session_has_its_version() -> None:
    """LEG.1: also where the session was begun by a message in JSON."""
    for hello in (f"{HELLO[:-9]} as ann on stdio", INITIALIZE):
        listed = told(hello, "client 2 tasks/list as ann on stdio", before=BOTH)
        assert listed == ['reply 2 no resultType {"tasks": []}']
        for elsewhere in ("client 2 tasks/list as ann on other", "client 2 tasks/list as ann"):
            assert told(hello, elsewhere, before=BOTH)[0].startswith("reply 2 error -32601")
    assert told("client 1 initialize", before=BOTH)[0].startswith("reply 1 error -32601")


def test_a_question_of_a_session_says_its_id() -> None:
    plain, asks = "client 2 tools/call render on stdio", "handler 2 asks confirm"
    (asked,) = told(HELLO, plain, asks, before=BOTH)
    assert asked.startswith('send 2 elicitation/create id 1 {"mode": "form"')
    decline = "client 3 answers 1 decline on stdio"
    again = told(HELLO, plain, asks, decline, before=BOTH)
    assert again == ["reply 3 nothing", "start tool 3 render {} confirm=decline"]
    assert told(HELLO, plain, asks, decline, 'handler 3 returns "done"', before=BOTH) == [
        'reply 2 no resultType "done"'
    ]
    *_, filled = told(HELLO, plain, asks, "client 3 answers 1 accept on stdio", before=BOTH)
    assert filled == "start tool 3 render {} confirm=accept"
    where = 'handler 2 asks where={"method": "roots/list"}'
    (asked,) = told(HELLO, plain, where, before=BOTH)
    assert asked.startswith("send 2 roots/list id 1")
    *_, answered = told(HELLO, plain, where, 'client 3 answers 1 {"roots": []} on stdio', before=BOTH)
    assert answered == 'start tool 3 render {} where={"roots": []}'


def test_a_client_of_a_session_refuses_to_be_asked() -> None:
    """Which is told to the handler as a person's wish to stop."""
    asked = (HELLO, "client 2 tools/call render on stdio", "handler 2 asks confirm")
    refused = told(*asked, 'client 3 refuses 1 -1 "not now" on stdio', before=BOTH)
    assert refused == ["reply 3 nothing", "start tool 3 render {} confirm=cancel"]


def test_another_request_of_a_session_is_forwarded_and_stopped_by_its_number() -> None:
    before = BOTH + "    server   method prompts/list\n"
    listed = "client 2 prompts/list on stdio"
    assert told(HELLO, listed, before=before) == ["forward 2 prompts/list"]
    assert told(HELLO, listed, "handler 2 returns {}", before=before) == ["reply 2 no resultType"]
    stopped = 'client 3 notifications/cancelled {"requestId": 2} on stdio'
    assert "stop call 2" in told(HELLO, listed, stopped, before=before)
    assert "stop call 2" in told(HELLO, listed, "client 2 cancels", before=before)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (
            "tool render sometimes",
            "whether its calls become tasks is forbidden or optional or required, not sometimes",
        ),
        ("speaks 2024-11-05", "the version is 2026-07-28 or 2025-11-25, not 2024-11-05"),
        ("shows stor", "what is shown is store, not stor"),
        ("visibility all", "who sees questions is owner or strict, not all"),
    ],
)
def test_a_server_is_set_up_with_what_there_is(line: str, problem: str) -> None:
    with pytest.raises(TraceError, match=f"line 1: {problem}"):
        play(f"    server {line}\n")


def test_a_request_state_in_the_place_of_a_cursor() -> None:
    asked = ("client 0 tools/call render as ann", "handler 0 asks confirm")
    refused = told(*asked, INITIALIZE, f"{LIST} cursor 0 as ann on stdio", before=BOTH)
    assert refused[0].startswith('reply 2 error -32602 "Invalid params: cursor')
    listed = told(*asked, INITIALIZE, f"{LIST} as ann on stdio", before=BOTH)
    assert listed == ['reply 2 no resultType {"tasks": []}']


def test_what_has_no_place_for_a_cursor_has_none() -> None:
    assert "not understood: cursor" in fails('client 2 {"jsonrpc": "2.0"} cursor 1')


def test_a_store_that_is_shown_lists_tasks() -> None:
    before = "    server   shows store\n" + BOTH
    asks = (INITIALIZE, f"{LIST} as ann on stdio")
    assert told(*asks, before=before) == ["list tasks of ann, 100 at most"]
    assert told(*asks, "store does it", before=before) == ['reply 2 no resultType {"tasks": []}']
    assert told(*asks, "store fails", before=before)[0].startswith("reply 2 error -32603")


# -- what cannot be played -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("nonsense", "time, if it moves on; who; what"),
        ("nobody says it", "nobody is called nobody"),
        ("server tool paint optional", "before anything is said"),
        ("client 2", "the method is missing"),
        ('client "2" tasks/get T', "plain word"),
        ("client 2 tasks/get", "the task is missing"),
        ("client 2 tasks/get T sideways", "not understood: sideways"),
        ("client 2 tasks/get T as alice 5", "not understood: 5"),
        ('client 2 {"method": 5} over http', "only a request"),
        ("client 2 tools/call render {", "not JSON"),
        ("client 2 leaves early", "not understood from 'early'"),
        ("handler 1", "missing"),
        ("handler 1 sleeps", "a handler never sleeps"),
        ('handler 1 returns "done" twice', "not understood"),
        ("worker T sleeps", "a worker never sleeps"),
        ("worker T says ttl soon", "a whole number, not soon"),
        ("worker T says ttl -5", "positive"),
        ("host sleeps", "a host never sleeps"),
        ("store does it", "not asked anything"),
        ("clock strikes", "a clock wakes"),
        ("clock wakes", "did not ask to be woken"),
    ],
)
def test_what_cannot_be_played_says_why_and_where(line: str, problem: str) -> None:
    assert problem in fails(line)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("server tool render sometimes", "sometimes"),
        ("server visibility nobody", "nobody"),
        ("server wheels 4", "a server has no wheels"),
        ("server ttl_ms 0", "ttl_ms"),
        ("server tool render optional today", "not understood"),
    ],
)
def test_a_server_that_cannot_be_set_up(line: str, problem: str) -> None:
    assert problem in fails(line, before="Title\n")


def test_a_store_does_it_or_fails() -> None:
    before = TASK.replace("    server   tool", "    server   shows store\n    server   tool")
    assert "a store never sleeps" in fails("store sleeps", before=before)
    assert "a store never does" in fails("store does nothing", before=before)


def test_time_does_not_go_back_and_no_deadline_is_slept_through() -> None:
    late = TASK.replace("becomes T", "becomes T ttl 10")
    assert "woken at +10" in fails(before=late + "    +11      host     stops\n")
    assert "go back" in fails(
        before=TASK + "    +5       client   2 tasks/get T\n    +4       host     stops\n"
    )


def test_without_a_deadline_nobody_wakes_the_engine() -> None:
    late = TASK.replace("becomes T", "becomes T ttl unlimited")
    assert "did not ask" in fails("clock wakes", before=late)


# -- telling ----------------------------------------------------------------------------------------------


def tell(message: dict[str, Any], *, sent: bool = False) -> str:
    teller = Teller(0, Limits(), {"name": "trace"}, {"5": 5})
    return teller.tell(Send("5", message) if sent else Reply("5", message, 200))


VIEW = {
    "taskId": "T-0123456789abcdefghijk",
    "status": "working",
    "createdAt": "1970-01-01T00:00:00.000Z",
    "lastUpdatedAt": "1970-01-01T00:00:00.000Z",
    "ttlMs": 3_600_000,
    "pollIntervalMs": 1_000,
}
META = {SERVER_INFO: {"name": "trace"}}


def test_what_is_not_as_it_must_be_is_told_in_full() -> None:
    good = {"resultType": "complete", **VIEW, "_meta": META}
    assert tell({"result": good}) == "reply 5 T working made +0"
    assert tell({"result": {**good, "_meta": {}}}) == 'reply 5 T working made +0 {"_meta": {}}'
    assert tell({"result": {**good, "odd": 1}}) == 'reply 5 T working made +0 {"odd": 1}'
    assert tell({"result": {**VIEW, "_meta": META}}) == "reply 5 no resultType T working made +0"
    without = {name: value for name, value in good.items() if name != "ttlMs"}
    assert tell({"result": without}) == "reply 5 T working made +0 ttl missing"
    assert tell({"result": {**good, "taskId": "odd"}}) == 'reply 5 "odd" working made +0'
    assert tell({"result": {**good, "result": {"content": []}}}).endswith(
        'result {"content": []} without resultType'
    )
    complete = {"resultType": "complete", "content": []}
    assert tell({"result": {**good, "result": complete}}).endswith('result {"content": []}')


def test_a_message_that_does_not_name_its_stream_is_told_in_full() -> None:
    method = "notifications/tasks"
    meta = {SUBSCRIPTION_ID: 5}
    assert (
        tell({"method": method, "params": {**VIEW, "_meta": meta}}, sent=True) == "send 5 T working made +0"
    )
    wrong = tell({"method": method, "params": {"taskId": "x", "_meta": {SUBSCRIPTION_ID: "5"}}}, sent=True)
    assert wrong == 'send 5 notifications/tasks {"taskId": "x", "_meta": {"' + SUBSCRIPTION_ID + '": "5"}}'
    acknowledged = {"notifications": {"taskIds": [], "odd": 1}, "_meta": meta}
    method = "notifications/subscriptions/acknowledged"
    assert tell({"method": method, "params": acknowledged}, sent=True) == 'send 5 acknowledged {"odd": 1}'
    del acknowledged["_meta"]
    assert tell({"method": "x", "params": acknowledged}, sent=True).startswith('send 5 x {"notifications"')


def test_a_call_that_may_not_become_a_task() -> None:
    start = StartTool(
        exchange="5",
        tool="render",
        arguments={},
        can_create_task=False,
        client_capabilities={},
        principal=None,
    )
    assert Teller(0, Limits(), {}, {}).tell(start) == "start tool 5 render {}"


def test_where_a_page_of_tasks_begins() -> None:
    listed = ListTasks(principal="ann", after="T-0123456789abcdefghijk", limit=5, token=0)
    assert Teller(0, Limits(), {}, {}).tell(listed) == "list tasks of ann after T, 5 at most"


# -- several nodes ---------------------------------------------------------------------------------

SHARED = """\
Title

    server   tool render optional resumable
    server   node A
    +0       client   1 tools/call render
                      > start tool 1 render {}, may become a task
             handler  1 becomes T
                      > reply 1 task T working made +0
                      > start work T
"""


def test_another_process_takes_a_task_over() -> None:
    lines = ["worker   T saves {}", "node     B takes T", "store    tells T"]
    assert told(*lines, before=SHARED) == ["tell T to stop: taken over"]


def test_another_process_begins_in_place_of_this_one() -> None:
    lines = ['worker   T saves "x"', "process  B begins", "store    loses T of A"]
    assert told(*lines, before=SHARED) == ['resume work T run 1 render {} from "x"']
    assert told(*lines, "worker   T run 1 stops", before=SHARED) == ["accept T run 1 stops"]


def test_the_store_tells_that_a_task_is_gone() -> None:
    assert told("store    tells V", before=SHARED) == []


def test_what_cannot_be_of_several_nodes_is_named() -> None:
    assert "a process begins" in fails("process  B ends", before=SHARED)
    assert "another node takes a task" in fails("node     B has T", before=SHARED)
    assert "no such task" in fails("node     B takes V", before=SHARED)
    assert "nobody runs it" in fails("worker   T stops", "node     B takes T", before=SHARED)
    assert "the node is missing" in fails("store    loses T of", before=SHARED)
    assert "of is missing" in fails("store    loses T", before=SHARED)
