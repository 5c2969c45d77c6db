"""Handles and bindings: PRX.5, PRX.7, PRX.15."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve, fields
from hypothesis import given
from hypothesis import strategies as st

from mcp_tasks_proto.proxy import (
    Access,
    Binding,
    Denial,
    HandleKey,
    Purpose,
    SealedHandles,
    StoredHandles,
    ToolProfile,
    Upstream,
    binding_from_json,
    binding_to_json,
    check_binding,
)
from mcp_tasks_proto.proxy.bindings import exposed_name, find_tool, with_handle
from mcp_tasks_proto.wire.http import encode_header_value
from tests.unit.proxy_world import RANDOM, UPSTREAM_TASK, ToyAead, make_binding, make_settings

NEW = HandleKey("2026-02", ToyAead(b"new"))
OLD = HandleKey("2026-01", ToyAead(b"old"))
SEALED = SealedHandles([NEW, OLD])


# -- stored ------------------------------------------------------------------------------------------


def test_prx5_a_stored_handle_is_all_randomness() -> None:
    codec = StoredHandles()
    handle = codec.issue(make_binding(), RANDOM)
    assert handle == codec.issue(make_binding(principal="bob"), RANDOM)
    assert handle != codec.issue(make_binding(), bytes(32))
    assert encode_header_value(handle) == handle
    assert codec.well_formed(handle)
    assert codec.open(handle) is None
    assert codec.stored


@pytest.mark.parametrize(
    "handle", ["", "x", "é" * 43, "+" * 43, "a" * 42, "a" * 44, "a" * 42 + "\n", "a" * 4096]
)
def test_prx5_what_has_not_the_form_of_a_handle_is_never_looked_up(handle: str) -> None:
    assert not StoredHandles().well_formed(handle)
    assert not SEALED.well_formed(handle)


def test_prx5_a_binding_gets_its_handle_and_is_the_same_otherwise() -> None:
    others: dict[str, Any] = {field.name: f"its {field.name}" for field in fields(Binding)}
    binding = Binding(**others)
    assert with_handle(binding, "handle") == evolve(binding, handle="handle")


# -- sealed ------------------------------------------------------------------------------------------


def test_prx5_a_sealed_handle_carries_its_binding_and_shows_nothing() -> None:
    binding = make_binding()
    handle = SEALED.issue(binding, RANDOM)
    assert not SEALED.stored
    assert SEALED.well_formed(handle)
    assert encode_header_value(handle) == handle
    assert UPSTREAM_TASK not in handle
    assert SEALED.open(handle) == evolve(binding, handle=handle)


def test_prx5_what_was_presented_is_echoed() -> None:
    handle = SEALED.issue(make_binding(), RANDOM)
    opened = SEALED.open(handle)
    assert opened is not None
    assert opened.handle == handle


def test_prx5_old_keys_open_and_new_ones_seal() -> None:
    before = SealedHandles([OLD]).issue(make_binding(), RANDOM)
    assert SEALED.open(before) == evolve(make_binding(), handle=before)
    assert SEALED.issue(make_binding(), RANDOM).startswith("p1.2026-02.")
    assert SealedHandles([NEW]).open(before) is None


@given(st.integers(0, 10_000), st.integers(1, 255))
def test_prx5_a_changed_handle_opens_nothing(at: int, by: int) -> None:
    handle = SEALED.issue(make_binding(), RANDOM)
    at %= len(handle)
    forged = handle[:at] + chr((ord(handle[at]) + by) % 256) + handle[at + 1 :]
    assert SEALED.open(forged) is None


def test_prx5_a_seal_is_bound_to_its_key_name_and_to_its_use() -> None:
    """The same cipher key under two names: what one sealed, the other does not open."""
    twins = SealedHandles([HandleKey("a", ToyAead(b"k")), HandleKey("b", ToyAead(b"k"))])
    handle = twins.issue(make_binding(), RANDOM)
    assert twins.open(handle.replace("p1.a.", "p1.b.")) is None
    other_use = ToyAead(b"k").encrypt(RANDOM[:12], b"{}", b"something else")
    assert twins.open("p1.a." + handle.split(".")[2][:16] + other_use.hex()) is None


def test_prx5_a_handle_of_a_later_version_opens_nothing() -> None:
    class Later(ToyAead):
        def encrypt(self, nonce: bytes, plaintext: bytes, associated: bytes) -> bytes:
            return super().encrypt(nonce, plaintext.replace(b'"schema":1', b'"schema":9'), associated)

    handle = SealedHandles([HandleKey("a", Later(b"k"))]).issue(make_binding(), RANDOM)
    assert SealedHandles([HandleKey("a", ToyAead(b"k"))]).open(handle) is None


def test_prx5_keys_are_there_and_differ() -> None:
    with pytest.raises(ValueError, match="needs a key"):
        SealedHandles([])
    with pytest.raises(ValueError, match="same name"):
        SealedHandles([NEW, NEW])
    with pytest.raises(ValueError, match="key's name"):
        HandleKey("a.b", ToyAead(b"k"))
    assert "new" not in repr(NEW)


# -- bindings ----------------------------------------------------------------------------------------


def test_a_binding_survives_the_store() -> None:
    binding = make_binding(handle="h", node="n", collapsed=True, upstream_task_id=None, project="film")
    assert binding_from_json(binding_to_json(binding)) == binding
    assert binding.promoted
    assert not make_binding().promoted
    with pytest.raises(ValueError, match=r"^not a stored binding$"):
        binding_from_json({})


PROFILES = {
    "default": ToolProfile(),
    "narrow": ToolProfile(tools=frozenset({"other"})),
    "renders": ToolProfile(tools=frozenset({"render"})),
}

DENIALS: list[tuple[str, dict[str, Any], dict[str, Any], Denial | None, Denial | None]] = [
    ("its owner", {}, {}, None, None),
    ("its owner, who may call this tool alone", {}, {"profile": "renders"}, None, None),
    ("foreign", {"principal": "bob"}, {}, Denial.FOREIGN, Denial.FOREIGN),
    ("nobody's", {"principal": None}, {}, Denial.FOREIGN, Denial.FOREIGN),
    ("another project", {}, {"project": "film"}, Denial.PROJECT, None),
    ("upstream gone", {"upstream": "gone"}, {}, Denial.UPSTREAM_GONE, Denial.UPSTREAM_GONE),
    ("upstream is another", {"identity": "old"}, {}, Denial.UPSTREAM_GONE, Denial.UPSTREAM_GONE),
    ("upstream hidden", {}, {"authorizations": {}}, Denial.UPSTREAM_HIDDEN, None),
    ("authorization changed", {}, {"authorizations": {"renderer": "x"}}, Denial.AUTHORIZATION, None),
    ("hidden", {"collapsed": True}, {}, Denial.HIDDEN, Denial.HIDDEN),
    ("tool withdrawn", {}, {"profile": "narrow"}, Denial.TOOL, None),
]


@pytest.mark.parametrize(
    ("binding", "access", "read", "cancel"), [row[1:] for row in DENIALS], ids=[row[0] for row in DENIALS]
)
def test_prx7_every_operation_rechecks(
    binding: dict[str, Any], access: dict[str, Any], read: Denial | None, cancel: Denial | None
) -> None:
    """Cancel needs ownership and the upstream only (trap 28)."""
    settings = make_settings(profiles=PROFILES)
    for purpose, denial in ((Purpose.READ, read), (Purpose.CANCEL, cancel)):
        found = check_binding(
            make_binding(**binding),
            principal="alice",
            access=Access(**access),
            settings=settings,
            purpose=purpose,
        )
        assert found is denial


def test_prx17_a_round_is_for_hidden_tasks_only() -> None:
    for collapsed, denial in ((True, None), (False, Denial.HIDDEN)):
        found = check_binding(
            make_binding(collapsed=collapsed),
            principal="alice",
            access=Access(),
            settings=make_settings(),
            purpose=Purpose.ROUND,
        )
        assert found is denial


# -- names of tools --------------------------------------------------------------------------------------


def test_prx15_a_single_upstreams_tools_keep_their_names() -> None:
    settings = make_settings(profiles=PROFILES)
    only = settings.upstreams[0]
    assert exposed_name(settings, only, "a__b") == "a__b"
    assert find_tool(settings, Access(), "a__b") == (only, "a__b")
    assert find_tool(settings, Access(authorizations={}), "a__b") is None
    assert find_tool(settings, Access(profile="narrow"), "a__b") is None


def test_prx15_many_upstreams_stand_before_their_tools() -> None:
    first, second = Upstream(name="first"), Upstream(name="second")
    settings = make_settings(first, second, profiles=PROFILES)
    assert exposed_name(settings, first, "a__b") == "first__a__b"
    assert find_tool(settings, Access(), "first__a__b") == (first, "a__b")
    assert find_tool(settings, Access(), "second__a__b") == (second, "a__b")
    for name in ("a__b", "render", "first", "third__render", "__render", "first_render"):
        assert find_tool(settings, Access(), name) is None
    assert find_tool(settings, Access(authorizations={"first": "x"}), "second__a") is None
