"""Results of ordinary calls, kept and cut: PRX.3, trap 29, core "Caching"."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_tasks_proto.proxy import Access, ProxyLimits, SettingsChanged, UpstreamChanged
from mcp_tasks_proto.proxy.results import NOTE
from mcp_tasks_proto.testing import ProxyHost
from mcp_tasks_proto.vocabulary import CACHEABLE_METHODS
from mcp_tasks_proto.wire.jsonrpc import encode
from tests.unit.proxy_world import (
    FORMS,
    completed,
    create,
    discover_all,
    get,
    handed_out,
    make_proxy,
    make_settings,
    methods,
    reason,
    result,
    view,
)
from tests.unit.world import ACCEPTED, form

PAGE: dict[str, Any] = {
    "contents": [{"uri": "file:///x", "text": "x"}],
    "ttlMs": 5000,
    "cacheScope": "private",
}
TOOLS = CACHEABLE_METHODS | {"tools/call"}


def read(host: ProxyHost, answer: dict[str, Any] | None = None, uri: str = "file:///x", **facts: Any) -> Any:
    """Read a resource; return the result. ``answer``: what the upstream says, who is asked then."""
    return ask(host, "resources/read", {"uri": uri, **facts.pop("params", {})}, answer, **facts)


def ask(
    host: ProxyHost, method: str, params: dict[str, Any], answer: dict[str, Any] | None, **facts: Any
) -> dict[str, Any]:
    before = methods(host).count(method)
    exchange = host.request(method, params, **facts)
    discover_all(host)
    assert methods(host).count(method) - before == (answer is not None)
    if answer is not None:
        host.answer(method, answer)
    return view(host.reply_to(exchange))


# -- kept ----------------------------------------------------------------------------------------------------


def test_prx3_a_result_is_kept_for_its_time() -> None:
    host = make_proxy()
    assert read(host, PAGE) == PAGE
    host.now += 1000
    assert read(host) == {**PAGE, "ttlMs": 4000}
    host.now += 3999
    assert read(host)["ttlMs"] == 1
    host.now += 1
    assert read(host, PAGE) == PAGE


@pytest.mark.parametrize("hint", [0, -1, True, "5000", None])
def test_prx3_without_a_time_it_is_not_kept(hint: Any) -> None:
    host = make_proxy()
    read(host, {**PAGE, "ttlMs": hint})
    read(host, PAGE)


@pytest.mark.parametrize(
    "other",
    [
        {"uri": "file:///y"},
        {"params": {"unknown": 1}},
        {"meta": {"app": "other"}},
        {"capabilities": FORMS},
    ],
)
def test_prx3_a_result_is_for_the_same_request_only(other: dict[str, Any]) -> None:
    host = make_proxy()
    read(host, PAGE)
    read(host, PAGE, **other)


def test_prx3_a_result_is_for_the_same_method_only() -> None:
    host = make_proxy()
    prompts, resources = ({kind: [], "ttlMs": 5000} for kind in ("prompts", "resources"))
    assert ask(host, "prompts/list", {}, prompts) == prompts
    assert ask(host, "resources/list", {}, resources) == resources


def test_prx3_where_a_trace_comes_from_makes_no_other_request() -> None:
    host = make_proxy()
    read(host, PAGE, meta={"traceparent": "00-1", "app": 1}, id=1)
    read(host, meta={"traceparent": "00-2", "app": 1}, id=2)


def test_prx3_a_private_result_is_for_its_authorization_and_a_public_one_for_all() -> None:
    alice, bob = (Access(authorizations={"renderer": name}) for name in ("alice", "bob"))
    host = make_proxy()
    read(host, PAGE, access=alice)
    read(host, PAGE, access=bob)
    read(host, access=alice)
    public = {**PAGE, "cacheScope": "public"}
    read(host, public, "file:///y", access=alice)
    read(host, None, "file:///y", access=bob)


def test_prx3_methods_that_are_not_named_are_asked_again() -> None:
    host = make_proxy(cached_methods=frozenset())
    read(host, PAGE)
    read(host, PAGE)


def test_prx3_a_tool_is_not_called_again_where_that_is_wanted() -> None:
    host = make_proxy(cached_methods=TOOLS)
    answer = {"content": [], "ttlMs": 5000, "cacheScope": "private"}
    for given in (answer, None):
        ask(host, "tools/call", {"name": "render"}, given, tasks=False)
    ask(host, "tools/call", {"name": "render", "arguments": {"x": 1}}, answer, tasks=False)


def test_trap29_the_task_path_reads_and_writes_no_cache() -> None:
    """Also where the upstream completes at once."""
    host = make_proxy(cached_methods=TOOLS)
    answer = {"content": [], "ttlMs": 5000, "cacheScope": "public"}
    for tasks in (True, False, True):
        ask(host, "tools/call", {"name": "render"}, answer, tasks=tasks)
    ask(host, "tools/call", {"name": "render"}, None, tasks=False)


def test_trap29_a_collapsed_call_that_is_declared_after_all_is_not_kept() -> None:
    host = make_proxy(cached_methods=TOOLS, collapse=True)
    needs: dict[str, Any] = {"requiredCapabilities": {"extensions": {"io.modelcontextprotocol/tasks": {}}}}
    exchange = host.request("tools/call", {"name": "render"}, tasks=False)
    discover_all(host)
    host.refuse("tools/call", {"code": -32021, "message": "needs tasks", "data": needs})
    host.answer("tools/call", {"content": [], "ttlMs": 5000})
    assert view(host.reply_to(exchange))["content"] == []
    host.request("tools/call", {"name": "render"}, tasks=False)
    discover_all(host)
    assert methods(host).count("tools/call") == 3


def test_trap29_a_round_of_input_is_not_kept_nor_what_it_leads_to() -> None:
    host = make_proxy()
    asks = {"resultType": "input_required", "inputRequests": {"a": form()}, "ttlMs": 5000}
    asked = read(host, asks, capabilities=FORMS)
    assert "ttlMs" not in asked
    again = {"requestState": asked["requestState"], "inputResponses": {"a": ACCEPTED}}
    read(host, PAGE, params=again, capabilities=FORMS)
    read(host, PAGE, params={"inputResponses": {"a": ACCEPTED}}, capabilities=FORMS)
    read(host, asks, capabilities=FORMS)


@pytest.mark.parametrize("brings", ["answers", "state"])
def test_trap29_a_round_that_is_repeated_is_asked_again(brings: str) -> None:
    host = make_proxy()
    asks = {"resultType": "input_required", "requestState": "round 1"}
    state = read(host, asks, capabilities=FORMS)["requestState"]
    again = {"requestState": state} if brings == "state" else {"inputResponses": {"a": ACCEPTED}}
    for _ in range(2):
        read(host, PAGE, params=again, capabilities=FORMS)


def test_prx3_other_settings_drop_what_is_kept() -> None:
    host = make_proxy()
    read(host, PAGE)
    host.give(SettingsChanged(make_settings()))
    read(host, PAGE)


def test_prx3_what_was_asked_before_is_not_kept_under_other_settings() -> None:
    """It may be of another server, or was seen under an authorization that is another one now."""
    host = make_proxy()
    exchange = host.request("resources/read", {"uri": "file:///x"})
    discover_all(host)
    host.give(SettingsChanged(make_settings()))
    host.answer("resources/read", {**PAGE, "cacheScope": "public"})
    assert view(host.reply_to(exchange))["contents"] == PAGE["contents"]
    assert read(host, PAGE) == PAGE


def test_prx3_what_was_kept_under_other_settings_is_not_for_who_asked_before() -> None:
    """Nor where that waits for what the upstream is, while the settings change."""
    host = make_proxy()
    assert read(host, PAGE) == PAGE
    host.give(UpstreamChanged("renderer"))
    exchange = host.request("resources/read", {"uri": "file:///x"})
    host.give(SettingsChanged(make_settings()))
    discover_all(host)
    host.answer("resources/read", {**PAGE, "ttlMs": 7})
    assert view(host.reply_to(exchange))["ttlMs"] == 7


def test_prx3_no_result_is_kept_for_too_long() -> None:
    host = make_proxy(limits=ProxyLimits(cached_ms=10))
    read(host, {**PAGE, "ttlMs": 2**53})
    assert read(host)["ttlMs"] == 10
    host.now += 10
    read(host, PAGE)


def test_lim3_those_used_longest_ago_make_room() -> None:
    host = make_proxy(limits=ProxyLimits(cached_results=2))
    read(host, PAGE, "a")
    read(host, PAGE, "b")
    read(host, None, "a")
    read(host, PAGE, "c")
    read(host, None, "a")
    read(host, None, "c")
    read(host, PAGE, "b")


def test_lim3_results_take_so_many_bytes_together() -> None:
    size = len(encode(result_as_kept(PAGE)))
    host = make_proxy(limits=ProxyLimits(cached_bytes=2 * size + 1))
    read(host, PAGE, "a")
    read(host, PAGE, "b")
    read(host, None, "a")
    read(host, {**PAGE, "ttlMs": 5001}, "b2")
    read(host, PAGE, "b")
    read(host, {**PAGE, "more": "x" * 3 * size}, "c")
    read(host, PAGE, "c")


def test_lim3_what_has_no_time_takes_no_room() -> None:
    host = make_proxy(limits=ProxyLimits(cached_results=1))
    read(host, PAGE, "a")
    read(host, {**PAGE, "ttlMs": 0}, "b")
    read(host, None, "a")


def test_lim3_the_shortest_time_is_a_time() -> None:
    host = make_proxy()
    read(host, {**PAGE, "ttlMs": 1})
    assert read(host)["ttlMs"] == 1


def test_lim3_results_fill_their_bytes_to_the_last_one() -> None:
    size = len(encode(result_as_kept(PAGE)))
    host = make_proxy(limits=ProxyLimits(cached_bytes=size))
    read(host, PAGE, "a")
    read(host, None, "a")
    host = make_proxy(limits=ProxyLimits(cached_bytes=2 * size))
    for answer in (PAGE, None):
        read(host, answer, "a")
        read(host, answer, "b")


def test_lim3_what_is_over_or_replaced_takes_no_room() -> None:
    size = len(encode(result_as_kept(PAGE)))
    host = make_proxy(limits=ProxyLimits(cached_bytes=3 * size))
    read(host, PAGE, "a")
    read(host, PAGE, "b")
    host.now += 5000
    read(host, PAGE, "a")
    read(host, PAGE, "b")
    same = [host.request("resources/read", {"uri": "c"}) for _ in range(2)]
    for exchange in same:
        host.answer("resources/read", PAGE)
        assert view(host.reply_to(exchange)) == PAGE
    for uri in ("a", "b", "c"):
        read(host, None, uri)
    read(host, PAGE, "d")
    for uri in ("b", "c", "d"):
        read(host, None, uri)
    read(host, PAGE, "a")


def result_as_kept(answer: dict[str, Any]) -> dict[str, Any]:
    """Return a result with what each one has when it is kept."""
    info = {"name": "proxy", "version": "1"}
    return {**answer, "_meta": {"io.modelcontextprotocol/serverInfo": info}}


def test_prx3_what_a_parser_takes_beside_json_is_not_kept() -> None:
    host = make_proxy()
    read(host, {**PAGE, "odd": float("nan")})
    read(host, PAGE)
    for _ in range(2):
        read(host, PAGE, params={"cursor": float("nan")})


# -- cut -----------------------------------------------------------------------------------------------------


def called(host: ProxyHost, answer: dict[str, Any], **facts: Any) -> dict[str, Any]:
    """Call a tool, and return its reply."""
    exchange = host.request("tools/call", {"name": "render"}, **{"tasks": False, **facts})
    discover_all(host)
    host.answer("tools/call", answer)
    return host.reply_to(exchange)


def texts(*texts: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text} for text in texts]}


def test_prx3_a_result_that_is_not_too_long_passes_whole() -> None:
    whole = texts("x" * 1000)
    assert view(called(make_proxy(response_bytes=2000), whole)) == whole
    assert view(called(make_proxy(), texts("x" * 100_000))) == texts("x" * 100_000)


@pytest.mark.parametrize("letter", ["x", "ž", '"', "\n", "😀"])
def test_prx3_the_text_of_a_longer_one_is_cut(letter: str) -> None:
    cut = view(called(make_proxy(response_bytes=1000), texts("first", letter * 1000, "last")))
    first, second, note = cut["content"]
    assert first["text"] == "first"
    assert set(second["text"]) == {letter}
    assert note == {"type": "text", "text": NOTE}
    longer = {"content": [first, {**second, "text": second["text"] + letter}, note]}
    assert len(encode(result_as_kept(cut))) <= 1000 < len(encode(result_as_kept(longer))) + len(letter) * 8


@pytest.mark.parametrize("spare", range(8))
def test_prx3_not_a_letter_is_cut_that_has_room(spare: int) -> None:
    whole = texts("first", "x" * 1000)
    most = len(encode(result_as_kept(texts("first", "x" * 40, NOTE)))) + spare
    cut = view(called(make_proxy(response_bytes=most), whole))
    assert cut == texts("first", "x" * (40 + spare), NOTE)
    assert len(encode(result_as_kept(cut))) == most


def test_prx3_a_result_may_be_as_long_as_that() -> None:
    whole = texts("first", "x" * 1000)
    most = len(encode(result_as_kept(whole)))
    assert view(called(make_proxy(response_bytes=most), whole)) == whole
    assert view(called(make_proxy(response_bytes=most - 1), whole)) != whole


def test_prx3_a_block_that_just_fits_is_whole() -> None:
    most = len(encode(result_as_kept(texts("first", NOTE))))
    cut = view(called(make_proxy(response_bytes=most), texts("first", "x" * 1000)))
    assert cut == texts("first", NOTE)


def test_prx3_what_is_no_text_is_left_out_whole() -> None:
    image = {"type": "image", "data": "A" * 2000, "mimeType": "image/png"}
    answer = {"content": [*texts("first")["content"], image, *texts("last")["content"]], "isError": True}
    cut = view(called(make_proxy(response_bytes=600), answer))
    assert cut == {"content": [*texts("first", NOTE)["content"]], "isError": True}


def test_prx3_what_is_no_text_and_just_fits_is_left_in() -> None:
    image = {"type": "image", "data": "A" * 2000, "mimeType": "image/png"}
    kept = {"content": [image, *texts(NOTE)["content"]]}
    whole = {"content": [image, *texts("x" * 1000)["content"]]}
    most = len(encode(result_as_kept(kept)))
    assert view(called(make_proxy(response_bytes=most), whole)) == kept


def test_prx3_not_even_the_beginning_of_a_text_may_fit() -> None:
    bare = len(encode(result_as_kept(texts(NOTE))))
    for spare in (0, 5):
        cut = view(called(make_proxy(response_bytes=bare + spare), texts("x" * 1000)))
        assert cut == texts(NOTE)
    assert reason(called(make_proxy(response_bytes=bare - 1), texts("x" * 1000))) == "response_too_long"


@pytest.mark.parametrize(
    "answer",
    [
        {"content": [], "structuredContent": {"x": "x" * 1000}},
        {**texts("x" * 1000), "structuredContent": {"x": 1}},
        {"content": "x" * 1000},
        {**texts("short"), "more": "x" * 1000},
    ],
    ids=["structured", "beside something structured", "no list", "something else"],
)
def test_prx3_what_cannot_be_cut_is_refused(answer: dict[str, Any]) -> None:
    assert reason(called(make_proxy(response_bytes=600), answer)) == "response_too_long"


def test_prx3_a_resource_is_whole_or_refused() -> None:
    host = make_proxy(response_bytes=600)
    exchange = host.request("resources/read", {"uri": "file:///x"})
    discover_all(host)
    host.answer("resources/read", {"contents": [{"uri": "file:///x", "text": "x" * 1000}]})
    assert reason(host.reply_to(exchange)) == "response_too_long"


def test_trap29_the_task_path_cuts_nothing() -> None:
    """Neither a result at once, nor a task, nor its end."""
    host = make_proxy(response_bytes=10)
    whole = texts("x" * 1000)
    assert view(called(host, whole, tasks=True)) == whole
    assert result(called(host, create(), tasks=True))["resultType"] == "task"
    handle = handed_out(host, "up-2")
    ended = completed(taskId="up-2") | {"result": whole}
    assert result(get(host, handle, ended))["result"]["content"] == whole["content"]


def test_trap29_a_round_of_input_is_not_cut() -> None:
    host = make_proxy(response_bytes=10)
    asks = {"resultType": "input_required", "inputRequests": {"a": form()}}
    assert "inputRequests" in view(called(host, asks, capabilities=FORMS))


def test_prx3_what_a_parser_takes_beside_json_is_not_measured() -> None:
    odd = {"content": [], "odd": float("inf")}
    assert view(called(make_proxy(response_bytes=10), odd)) == odd
