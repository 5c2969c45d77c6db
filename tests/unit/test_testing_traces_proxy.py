"""Traces of a proxy: what can be said in them, what is told, and scripts that cannot be played."""

from __future__ import annotations

import pytest

from mcp_tasks_proto.testing.traces import TraceError, play

HEAD = """A trace

    proxy    before renderer render
"""


def trace(*lines: str) -> str:
    return HEAD + "".join(f"    {line}\n" for line in lines)


def told(*lines: str) -> list[str]:
    """Play a script, and return what its engine says."""
    return [line.strip() for line in play(trace(*lines)).splitlines() if line.lstrip().startswith(">")]


MADE = ("+0    caller   1 tools/call render", "      upstream 3 makes up-7 working")


def test_the_short_forms_of_a_view() -> None:
    lines = told(
        *MADE,
        "      caller   2 tasks/get H1",
        "      upstream 4 shows up-7 input_required changed +5 ttl unlimited poll 2000 \\",
        '               "up-7 asks" asks confirm',
        "      caller   3 tasks/get H1",
        '      upstream 5 shows up-7 failed ttl 5 error -5 "no"',
    )
    asks = '> reply 2 H1 input_required made +0 changed +5 ttl 604800000 poll 2000 "H1 asks" asks confirm'
    assert asks in lines
    assert lines[-1] == '> reply 3 H1 failed made +0 ttl 5 "no" error -5 "no"'


def test_an_upstream_asks_before_a_task_and_a_caller_answers() -> None:
    lines = told(
        "+0    caller   1 tools/call render",
        '      upstream 3 asks confirm state "s"',
        "      caller   2 tools/call render again 1 confirm=accept",
        "      upstream 4 asks confirm",
    )
    assert lines[1] == "> reply 1 asks confirm"
    assert '"requestState": "s"' in lines[2]


def test_what_is_not_said_to_the_engine_is_not_told() -> None:
    """A restart says nothing, nor does the engine's look for what is past its time; raw ids stay."""
    lines = told(
        *MADE,
        "      host     restarts",
        '+130000 caller 2 tasks/get "H1"',
        "      host     stops",
        "      caller   3 server/discover",
    )
    assert lines[2] == '> reply 2 error -32602 "Task not found"'
    assert lines[3].startswith('> reply 3 error -32603 "Internal error: the proxy is shutting down"')


def test_of_what_is_removed_nothing_is_told() -> None:
    assert told("+60000 clock    wakes") == []


def test_the_store_may_be_shown_where_it_lists_handles() -> None:
    greeting = '{"protocolVersion": "2025-11-25", "capabilities": {}}'
    lines = told(
        "proxy    bridges",
        "proxy    shows store",
        f'+0    caller 1 {{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {greeting}}} \\',
        "               as alice on stdio",
        '      caller 2 {"jsonrpc": "2.0", "id": 2, "method": "tasks/list"} as alice on stdio',
        "      store fails",
        '      caller 3 {"jsonrpc": "2.0", "id": 3, "method": "tasks/list"} as alice on stdio',
        "      store does it",
    )
    assert lines[1] == lines[3] == "> list handles of alice"
    assert '"store_unavailable"' in lines[2]
    assert lines[4] == '> reply 3 no resultType {"tasks": []}'


def test_a_message_of_any_kind_can_come() -> None:
    assert told('+0    caller   1 {"jsonrpc": "2.0"}')[0].startswith("> reply 1 error -32600")
    assert told("+0    caller   1 [1]")[0].startswith("> reply 1 error -32600")


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("proxy    dances", "a proxy has no dances"),
        ("?", "a line of the script is"),
        ("+0    nobody   1 x", "nobody is called nobody"),
        ("+0    clock    sleeps", "nobody is called clock"),
        ("+0    clock    wakes", "did not ask to be woken"),
        ("+0    upstream 3 returns 1", "no request 3 is in flight"),
        ("+0    store    does it", "the store was not asked"),
        ("+0    host     dances", "a host never dances"),
        ("+0    host     loses H1", "lost with its node"),
    ],
)
def test_a_script_that_cannot_be_played_says_why(line: str, problem: str) -> None:
    with pytest.raises(TraceError, match=f"line 4: .*{problem}"):
        play(trace(line))


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("proxy    collapses", "set up before"),
        ("+0    upstream 3 dances", "an upstream never dances"),
        ("+0    upstream 3 shows up-7 working dancing", "a view has no dancing"),
        ("+400000 caller 2 tasks/get H1", "wanted to be woken at"),
    ],
)
def test_so_does_one_that_went_well_so_far(line: str, problem: str) -> None:
    with pytest.raises(TraceError, match=f"line 5: .*{problem}"):
        play(trace("+0    caller   1 tools/call render", line))


def test_time_does_not_go_back() -> None:
    with pytest.raises(TraceError, match="does not go back"):
        play(trace("+5    caller   1 server/discover", "+4    caller   2 server/discover"))


def test_a_store_that_is_shown_answers_when_it_is_told_to() -> None:
    lines = (
        "proxy    shows store",
        *MADE,
        "      store    does it",
        "      store    does it",
        "      caller   2 tasks/get H1",
    )
    assert told(*lines, "      store    fails")[-1].startswith("> reply 2 error -32603")
    with pytest.raises(TraceError, match="a store does it, or fails"):
        play(trace(*lines, "      store    sleeps"))


def test_a_task_that_the_caller_did_not_get_is_dropped() -> None:
    lines = told(
        "proxy    shows store",
        *MADE,
        "      store    does it",
        "      caller   1 leaves",
        "      store    does it",
    )
    assert lines[-2:] == [
        "> drop H1",
        "> up 4 renderer tasks/cancel to up-7 declaring tasks on the task path",
    ]


# -- both eras, and the ledger -------------------------------------------------------------------------------

OLD = """A trace

    proxy    before old render legacy
"""


def told_of_old(*lines: str, head: str = OLD) -> list[str]:
    text = head + "".join(f"    {line}\n" for line in lines)
    return [line.strip() for line in play(text).splitlines() if line.lstrip().startswith(">")]


def test_a_legacy_upstream_describes_itself_and_is_asked_in_its_own_words() -> None:
    lines = told_of_old("+0    caller   1 tools/call render", "      upstream 8 breaks")
    assert lines[0] == '> legacy 8 old tools/call {"name": "render", "task": {}}'
    assert '"outcome_unknown"' in lines[1]
    plain = OLD.replace("render legacy", "render without tasks legacy")
    assert told_of_old("+0 caller 1 tools/call render", head=plain) == [
        '> legacy 8 old tools/call {"name": "render"}'
    ]


def test_in_both_eras_a_modern_upstream_is_as_ever() -> None:
    head = HEAD + "    proxy    speaks 2025-11-25\n"
    lines = told_of_old(
        "+0    caller   1 tools/call render",
        "      upstream 3 makes up-7 working",
        "      caller   2 subscriptions/listen H1",
        "      upstream 4 agrees up-7",
        "      upstream 4 pushes up-7 working changed +5",
        "      caller   2 leaves",
        head=head,
    )
    assert "> stop 4" in lines


def test_a_legacy_upstream_that_is_answered_takes_note() -> None:
    text = (
        '{"task": {"taskId": "old-7", "status": "working", "createdAt": "2023-11-14T22:13:20.000Z", '
        '"lastUpdatedAt": "2023-11-14T22:13:20.000Z", "ttl": null}}'
    )
    lines = told_of_old(
        "+0    caller   1 tools/call render",
        f"      upstream 8 returns {text}",
        "      caller   2 tasks/cancel H1",
        "      upstream 10 returns {}",
        "      caller   3 tools/call render declaring nothing",
        "      caller   3 leaves",
    )
    assert lines[-2] == "> stop 12"
    assert "notifications/cancelled" in lines[-1]


LEDGER = HEAD + "    proxy    project film\n" + "".join(f"    {line}\n" for line in MADE)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("viewer bob dances", "never dances"),
        ("viewer bob sees H9", "no H9"),
        ("viewer bob lists everything", "everything"),
        ("viewer", "a line of the script"),
    ],
)
def test_a_viewer_who_makes_no_sense(line: str, problem: str) -> None:
    with pytest.raises(TraceError, match=problem):
        play(LEDGER + f"    {line}\n")


def test_a_viewer_sees_what_the_ledger_shows() -> None:
    lines = ("viewer gil directly in film sees H1", "viewer bob in team film opens H1")
    played = play(LEDGER + "".join(f"    {line}\n" for line in lines))
    assert "read: yes, a direct member of the project" in played
    assert '+0 created {"status": "working"}' in played
