"""What the proxy says of itself and of the tools behind it: PRX.2, PRX.15, NEG.9."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_tasks_proto import MODERN_VERSION, TASKS_EXTENSION, ExchangeClosed, Reply
from mcp_tasks_proto.proxy import (
    Access,
    ProxyLimits,
    SendUpstream,
    SettingsChanged,
    ToolProfile,
    Upstream,
    UpstreamAnswered,
    UpstreamChanged,
)
from mcp_tasks_proto.testing import ProxyHost, request
from tests.unit.proxy_world import discover, error, make_proxy, make_settings, methods, reason, result
from tests.unit.world import head

FIRST, SECOND = Upstream(name="first"), Upstream(name="second")


def discovered(host: ProxyHost, *upstreams: dict[str, Any] | None, **facts: Any) -> dict[str, Any]:
    """Ask what the proxy can do, have each upstream answer (``None``: it is down), and return the result."""
    exchange = host.request("server/discover", **facts)
    for answer in upstreams:
        if answer is None:
            host.fail("server/discover")
        else:
            discover(host, **answer)
    return result(host.reply_to(exchange))


def advertises(found: dict[str, Any]) -> bool:
    return TASKS_EXTENSION in found["capabilities"].get("extensions", {})


def test_neg9_the_proxy_says_what_it_is() -> None:
    host = make_proxy(instructions="Call tools.")
    assert discovered(host, {"ttl_ms": 5000}) == {
        "resultType": "complete",
        "supportedVersions": ["2026-07-28"],
        "capabilities": {"tools": {"listChanged": True}, "extensions": {TASKS_EXTENSION: {}}},
        "ttlMs": 5000,
        "cacheScope": "private",
        "instructions": "Call tools.",
        "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "proxy", "version": "1"}},
    }


@pytest.mark.parametrize(
    ("settings", "upstreams", "facts", "expected"),
    [
        ({}, [{}], {}, True),
        ({}, [{"tasks": False}], {}, False),
        ({"tasks": False}, [{}], {}, False),
        ({"promote_after_ms": 1}, [{"tasks": False}], {}, True),
        ({}, [{}], {"tasks_enabled": False}, False),
        ({}, [{}], {"legacy": True}, False),
        ({"bridging": True}, [{}], {"legacy": True}, True),
        ({"promote_after_ms": 1, "bridging": True}, [{"tasks": False}], {"legacy": True}, False),
        ({"promote_after_ms": 1}, [], {"access": Access(authorizations={})}, False),
    ],
)
def test_prx2_tasks_are_advertised_where_they_can_be_served(
    settings: dict[str, Any], upstreams: list[dict[str, Any]], facts: dict[str, Any], expected: bool
) -> None:
    assert advertises(discovered(make_proxy(**settings), *upstreams, **facts)) is expected


def test_prx2_some_upstream_is_enough_if_the_caller_can_see_it() -> None:
    host = make_proxy(FIRST, SECOND)
    assert advertises(discovered(host, {"tasks": False}, {}))
    host = make_proxy(FIRST, SECOND)
    assert not advertises(discovered(host, {"tasks": False}, access=Access(authorizations={"first": "x"})))
    host = make_proxy(FIRST, Upstream(name="second", tasks=False))
    assert not advertises(discovered(host, {"tasks": False}, {}))


def test_prx15_an_only_upstreams_other_capabilities_are_the_proxys() -> None:
    offered = {"prompts": {"listChanged": True}, "logging": {}, "completions": {}}
    host = make_proxy(methods=frozenset({"prompts/get", "prompts/list"}))
    found = discovered(host, {"capabilities": offered})
    assert set(found["capabilities"]) == {"tools", "prompts", "extensions"}
    host = make_proxy(FIRST, SECOND)
    found = discovered(host, {"capabilities": offered}, {"capabilities": offered})
    assert set(found["capabilities"]) == {"tools", "extensions"}


def test_prx15_an_upstream_that_is_down_leaves_the_others_working() -> None:
    host = make_proxy(FIRST, SECOND, limits=ProxyLimits(attempts=1))
    found = discovered(host, None, {})
    assert advertises(found)
    assert found["ttlMs"] == 0, "not to be kept: the other one may be back any moment"
    host = make_proxy(limits=ProxyLimits(attempts=1))
    assert not advertises(discovered(host, None))


def names(host: ProxyHost, exchange: int) -> list[str]:
    return [tool["name"] for tool in result(host.reply_to(exchange))["tools"]]


def test_prx15_a_single_upstreams_tools_keep_their_names() -> None:
    host = make_proxy()
    exchange = host.request("tools/list")
    discover(host, "b", "a")
    assert names(host, exchange) == ["b", "a"]
    assert result(host.reply_to(exchange))["cacheScope"] == "private"


def test_prx15_many_upstreams_tools_begin_with_their_names() -> None:
    host = make_proxy(FIRST, SECOND)
    exchange = host.request("tools/list")
    discover(host, "a", "b", upstream="second")
    discover(host, "a", upstream="first")
    assert names(host, exchange) == ["first__a", "second__a", "second__b"]


def test_prx7_a_caller_sees_the_tools_that_it_may_call() -> None:
    host = make_proxy(profiles={"narrow": ToolProfile(tools=frozenset({"a"}))})
    exchange = host.request("tools/list", access=Access(profile="narrow"))
    discover(host, "a", "b")
    assert names(host, exchange) == ["a"]
    assert names(host, host.request("tools/list")) == []
    assert names(host, host.request("tools/list", access=Access(authorizations={}))) == []


def test_prx15_pages_have_the_proxys_own_cursors() -> None:
    host = make_proxy(page_size=2)
    exchange = host.request("tools/list")
    discover(host, "a", "b", "c")
    assert names(host, exchange) == ["a", "b"]
    cursor = result(host.reply_to(exchange))["nextCursor"]
    assert names(host, host.request("tools/list", {"cursor": cursor})) == ["c"]
    wrong = host.request("tools/list", {"cursor": "nonsense"})
    assert error(host.reply_to(wrong))["code"] == -32602


def test_prx15_tools_of_upstreams_that_are_up_are_listed() -> None:
    host = make_proxy(FIRST, SECOND, limits=ProxyLimits(attempts=1))
    exchange = host.request("tools/list")
    host.fail("server/discover", upstream="first")
    discover(host, "a", upstream="second")
    assert names(host, exchange) == ["second__a"]
    host = make_proxy(FIRST, SECOND, limits=ProxyLimits(attempts=1))
    exchange = host.request("tools/list")
    host.fail("server/discover", upstream="first")
    host.fail("server/discover", upstream="second")
    assert reason(host.reply_to(exchange)) == "upstream_unavailable"


@pytest.mark.parametrize("answer", ["nonsense", [], {"id": 99, "jsonrpc": "2.0", "result": {}}])
def test_an_upstream_that_answers_nonsense_has_refused_nothing(answer: Any) -> None:
    host = make_proxy()
    exchange = host.request("tools/list")
    host.give(UpstreamAnswered(request=host.waiting("server/discover").request, message=answer))
    assert reason(host.reply_to(exchange)) == "upstream_invalid"


def test_a_legacy_word_does_not_come_down() -> None:
    host = make_proxy()
    exchange = host.request("tools/list")
    host.answer("server/discover", {"supportedVersions": ["2025-11-25"], "capabilities": {"tools": {}}})
    tool = {"name": "a", "inputSchema": {}, "execution": {"taskSupport": "required"}}
    host.answer("tools/list", {"tools": [tool]})
    assert result(host.reply_to(exchange))["tools"] == [{"name": "a", "inputSchema": {}}]


def test_leg8_a_legacy_caller_is_told_of_the_tools_that_may_become_tasks() -> None:
    profile = ToolProfile(task_tools=frozenset({"render*"}))
    host = make_proxy(bridging=True, profiles={"default": profile})
    exchange = host.request("tools/list", legacy=True)
    discover(host, "render", "delete")
    told = {tool["name"]: tool.get("execution") for tool in result(host.reply_to(exchange))["tools"]}
    assert told == {"render": {"taskSupport": "optional"}, "delete": None}


def test_prx2_a_change_of_one_upstream_is_no_change_of_another() -> None:
    host = make_proxy(FIRST, SECOND)
    host.request("tools/list")
    discover(host, upstream="first")
    host.give(UpstreamChanged("first"))
    host.give(UpstreamChanged("second"))
    host.request("tools/list")
    asked = [one.upstream for one in host.of(SendUpstream) if one.message["method"] == "server/discover"]
    assert asked == ["first", "second", "first", "second"]
    for upstream in ("second", "first", "second"):
        discover(host, upstream=upstream)
    host.give(UpstreamChanged("first"))
    host.request("tools/list")
    asked = [one.upstream for one in host.of(SendUpstream) if one.message["method"] == "server/discover"]
    assert asked == ["first", "second", "first", "second", "first"]


def test_prx2_what_changed_while_it_was_asked_for_is_not_kept_though_another_changes_too() -> None:
    host = make_proxy(FIRST, SECOND)
    exchange = host.request("tools/list")
    host.give(UpstreamChanged("first"))
    host.give(UpstreamChanged("second"))
    discover(host, "old", upstream="first")
    discover(host, "old", upstream="second")
    assert names(host, exchange) == ["first__old", "second__old"]
    host.request("tools/list")
    assert methods(host).count("server/discover") == 4


def test_a_caller_who_leaves_is_not_answered() -> None:
    host = make_proxy()
    exchange = host.request("tools/list")
    host.give(ExchangeClosed(exchange))
    discover(host)
    with pytest.raises(LookupError):
        host.reply_to(exchange)


def test_prx2_other_settings_drop_what_is_known() -> None:
    host = make_proxy()
    host.request("tools/list")
    discover(host)
    host.give(SettingsChanged(make_settings()))
    exchange = host.request("tools/list")
    assert methods(host).count("server/discover") == 2
    host.give(SettingsChanged(make_settings(FIRST, SECOND)))
    host.answer("server/discover", {"supportedVersions": [MODERN_VERSION], "capabilities": {"tools": {}}})
    assert reason(host.reply_to(exchange)) == "upstream_unavailable"
    again = host.request("server/discover")
    host.give(SettingsChanged(make_settings(SECOND)))
    host.fail("server/discover", upstream="first")
    discover(host, upstream="second")
    assert advertises(result(host.reply_to(again)))
    assert methods(host).count("tools/list") == 2, "nothing more is asked of what is not configured (PRX.7)"


def test_prx2_who_comes_after_a_change_does_not_wait_for_what_is_out_of_date() -> None:
    host = make_proxy()
    before = host.request("tools/list")
    host.give(SettingsChanged(make_settings()))
    after = host.request("tools/list")
    assert methods(host).count("server/discover") == 2
    for tool, exchange in (("old", before), ("new", after)):
        discover(host, tool)
        assert names(host, exchange) == [tool]
    assert names(host, host.request("tools/list")) == ["new"]


def test_lim3_other_settings_have_another_bound_of_discoveries() -> None:
    host = make_proxy(FIRST, SECOND)
    host.give(SettingsChanged(make_settings(FIRST, SECOND, limits=ProxyLimits(discoveries=1))))
    for _ in range(2):
        host.request("tools/list")
        for upstream in ("first", "second"):
            if "server/discover" in [sent.message["method"] for sent in host.in_flight.values()]:
                discover(host, upstream=upstream)
    assert methods(host).count("server/discover") == 3


# -- where no tasks are to be had ----------------------------------------------------------------------------

TASK_METHODS = ("tasks/get", "tasks/update", "tasks/cancel")


def refusal(host: ProxyHost, method: str, **facts: Any) -> dict[str, Any]:
    return error(host.reply_to(host.request(method, {"taskId": "A" * 43, "inputResponses": {}}, **facts)))


@pytest.mark.parametrize("method", TASK_METHODS)
@pytest.mark.parametrize("facts", [{}, {"tasks": False}], ids=["declared", "not declared"])
@pytest.mark.parametrize("ttl_ms", [0, 60_000])
def test_neg7_where_no_tasks_are_advertised_their_methods_are_unknown(
    method: str, facts: dict[str, Any], ttl_ms: int
) -> None:
    """NEG.3: the method comes before what the caller declares; what was last heard counts, be it stale."""
    host = make_proxy()
    discovered(host, {"tasks": False, "ttl_ms": ttl_ms})
    host.now += 120_000
    asked = len(methods(host))
    assert refusal(host, method, **facts)["code"] == -32601
    assert len(methods(host)) == asked


@pytest.mark.parametrize("method", TASK_METHODS)
def test_neg6_get2_elsewhere_they_are_known(method: str) -> None:
    host = make_proxy()
    discovered(host, {})
    assert refusal(host, method)["code"] == -32602
    assert refusal(host, method, tasks=False)["code"] == -32021


def test_neg7_an_update_that_makes_no_sense_is_of_an_unknown_method_first() -> None:
    host = make_proxy()
    params = {"taskId": "A" * 43, "inputResponses": 7}
    assert error(host.reply_to(host.request("tasks/update", params)))["code"] == -32602
    discovered(host, {"tasks": False})
    assert error(host.reply_to(host.request("tasks/update", params)))["code"] == -32601


def test_neg7_what_is_not_known_may_have_tasks() -> None:
    """Until every upstream that the caller sees has been heard of; nor is one asked because of a guess."""
    host = make_proxy(FIRST, SECOND)
    assert refusal(host, "tasks/get")["code"] == -32602
    discovered(host, {"tasks": False, "upstream": "first"}, None, None, None)
    assert refusal(host, "tasks/get")["code"] == -32602
    discovered(host, {"tasks": False, "upstream": "second"})
    assert refusal(host, "tasks/get")["code"] == -32601
    assert refusal(host, "tasks/get", access=Access(authorizations={}))["code"] == -32602


def test_neg7_a_public_discovery_and_one_of_its_own_the_newest_counts() -> None:
    host = make_proxy()
    discovered(host, {"tasks": False, "scope": "public", "ttl_ms": 0})
    assert refusal(host, "tasks/get")["code"] == -32601
    host.now += 1
    discovered(host, {"ttl_ms": 0})
    assert refusal(host, "tasks/get")["code"] == -32602


def test_neg7_promotion_makes_tasks_of_its_own() -> None:
    host = make_proxy(promote_after_ms=1)
    discovered(host, {"tasks": False})
    assert refusal(host, "tasks/get")["code"] == -32602


def test_http1_what_is_wrong_with_a_message_comes_before_what_is_advertised() -> None:
    host = make_proxy()
    discovered(host, {"tasks": False})
    message = request("tasks/get", {"taskId": "A" * 43})
    exchange = host.send(message, http=head(message, mcp_name="B" * 43))
    assert error(host.reply_to(exchange))["code"] == -32020
    assert host.of(Reply)[-1].http_status == 400
