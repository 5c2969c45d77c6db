"""What a proxy is told, and what it will not be told: PRX.15, LIM.3."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import fields

from mcp_tasks_proto import TASKS_EXTENSION, HmacSealer
from mcp_tasks_proto.proxy import Access, ProxyLimits, ProxySettings, ToolProfile, Upstream

RENDERER = Upstream(name="renderer", label="The renderer")


def settings(*upstreams: Upstream, **more: Any) -> ProxySettings:
    return ProxySettings(
        name="proxy",
        version="1",
        sealer=HmacSealer([b"k" * 32]),
        upstreams=upstreams or (RENDERER,),
        **more,
    )


@pytest.mark.parametrize("name", ["a", "render-2", "a_b", "A9"])
def test_prx15_an_upstreams_name_stands_before_its_tools(name: str) -> None:
    assert Upstream(name=name).shown_label == name


@pytest.mark.parametrize("name", ["", "a__b", "a_", "-a", "_a", "a b", "é"])
def test_prx15_no_name_may_be_mistaken_for_another(name: str) -> None:
    with pytest.raises(ValueError, match="upstream's name"):
        Upstream(name=name)


def test_the_ledger_shows_a_label() -> None:
    assert RENDERER.shown_label == "The renderer"


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        ({"methods": frozenset({"tasks/get"})}, "reserved"),
        ({"extensions": frozenset({TASKS_EXTENSION})}, "call by call"),
        ({"promote_after_ms": 0}, "promote_after_ms"),
        ({"page_size": 0}, "page_size"),
    ],
)
def test_contradictions_are_refused(wrong: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        settings(**wrong)


def test_upstreams_are_there_and_differ() -> None:
    with pytest.raises(ValueError, match="needs an upstream"):
        ProxySettings(name="p", version="1", sealer=HmacSealer([b"k" * 32]), upstreams=())
    with pytest.raises(ValueError, match="two upstreams have the same name, 'renderer'"):
        settings(Upstream(name="other"), RENDERER, RENDERER)


@pytest.mark.parametrize("name", [bound.name for bound in fields(ProxyLimits)])
def test_lim3_bounds_are_positive(name: str) -> None:
    assert getattr(ProxyLimits(**{name: 1}), name) == 1
    with pytest.raises(ValueError, match=name):
        ProxyLimits(**{name: 0})


def test_upstreams_and_profiles_are_found_by_name() -> None:
    narrow = ToolProfile(tools=frozenset({"render"}), task_tools=frozenset())
    found = settings(profiles={"narrow": narrow})
    assert found.single
    assert not settings(RENDERER, Upstream(name="other")).single
    assert found.upstream("renderer") is RENDERER
    assert found.upstream("nobody") is None
    assert found.profile(Access(profile="narrow")) is narrow
    assert narrow.allows("render")
    assert not narrow.allows("delete")
    assert not narrow.allows_tasks("render")
    assert ToolProfile().allows("anything")
    assert ToolProfile().allows_tasks("anything")


def test_a_profile_that_is_not_configured_allows_nothing() -> None:
    nothing = settings().profile(Access(profile="nobody's"))
    assert not nothing.allows("render")
    assert not nothing.allows_tasks("render")


def test_prx7_an_upstream_without_authorization_does_not_exist_for_the_caller() -> None:
    assert Access().authorization("renderer") == ""
    assert Access(authorizations={"renderer": "alice's"}).authorization("renderer") == "alice's"
    assert Access(authorizations={}).authorization("renderer") is None
