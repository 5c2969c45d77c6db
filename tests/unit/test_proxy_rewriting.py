"""What changes on the way through: PRX.1, PRX.8, PRX.10, PRX.12, PRX.13."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_tasks_proto import ErrorObject, Status
from mcp_tasks_proto.history import Retention
from mcp_tasks_proto.proxy import InputKind, Snapshot, first_of, snapshot_from_json, snapshot_to_json
from mcp_tasks_proto.proxy.clamping import clamp_poll_interval, clamp_ttl
from mcp_tasks_proto.proxy.input_gate import check_answers, declarable, is_shown
from mcp_tasks_proto.proxy.rewriting import Rewriter, bounded, passing_meta
from mcp_tasks_proto.proxy.snapshots import is_readable
from mcp_tasks_proto.vocabulary import (
    CLIENT_CAPABILITIES,
    CLIENT_INFO,
    PROGRESS_TOKEN,
    PROTOCOL_VERSION,
    RELATED_TASK,
    SERVER_INFO,
    SUBSCRIPTION_ID,
)
from tests.unit.proxy_world import START
from tests.unit.world import ACCEPTED, form

PROXY = {"name": "proxy", "version": "1"}


def rewriter(upstream_id: str | None = "up-1", handle: str | None = "HANDLE", **bounds: int) -> Rewriter:
    most = {"most_bytes": 1000, "depth": 8, **bounds}
    return Rewriter(server_info=PROXY, upstream_task_id=upstream_id, handle=handle, **most)


# -- the id in texts -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "rewritten"),
    [
        ("up-1", "HANDLE"),
        ("Task up-1 is busy; see up-1.", "Task HANDLE is busy; see HANDLE."),
        ("(up-1)", "(HANDLE)"),
        ("up-12 and up-1x and cup-1", "up-12 and up-1x and cup-1"),
        ("", ""),
    ],
)
def test_prx8_exact_ids_are_rewritten_in_texts(text: str, rewritten: str) -> None:
    assert rewriter().text(text) == rewritten


@pytest.mark.parametrize("hostile", ["+", ".*", "(a", "é☃", "\\1", "a" * 4096, "HANDLE"])
def test_prx8_hostile_ids_are_taken_literally(hostile: str) -> None:
    assert rewriter(hostile).text(f"see {hostile} now") == "see HANDLE now"
    assert rewriter(hostile, "\\g<0>").text(f"{hostile}!") == "\\g<0>!"


@pytest.mark.parametrize("nothing", [None, ""])
def test_prx8_without_an_id_texts_stay(nothing: str | None) -> None:
    assert rewriter(nothing).text("anything") == "anything"
    error = ErrorObject(-1, "anything", {"a": 1})
    assert rewriter(nothing).error(error) is error


def test_prx8_an_id_that_nothing_stands_for_is_left_out() -> None:
    assert rewriter("up-1", None).text("up-1 is done") == " is done"


def test_prx8_an_error_keeps_its_code_and_its_data() -> None:
    error = ErrorObject(7, "up-1 broke", {"id": "up-1", "up-1": [1, "up-1", None]}, {"more": "up-1"})
    assert rewriter().error(error).to_wire() == {
        "code": 7,
        "message": "HANDLE broke",
        "data": {"id": "HANDLE", "HANDLE": [1, "HANDLE", None]},
        "more": "HANDLE",
    }


def test_wire2_data_that_no_message_can_have_is_left_out() -> None:
    deep: Any = "up-1"
    for _ in range(70):
        deep = [deep]
    assert rewriter().error(ErrorObject(7, "x", deep)).data is None


# -- metadata --------------------------------------------------------------------------------------------


def test_prx1_hop_keys_are_dropped_and_all_others_pass() -> None:
    hop = (CLIENT_CAPABILITIES, CLIENT_INFO, PROGRESS_TOKEN, PROTOCOL_VERSION, SERVER_INFO, SUBSCRIPTION_ID)
    meta = {
        **dict.fromkeys(hop, "x"),
        RELATED_TASK: {"taskId": "t"},
        "traceparent": "00-1",
        "app/x": {"a": [1]},
    }
    assert passing_meta(meta, most_bytes=1000, depth=8) == {"traceparent": "00-1", "app/x": {"a": [1]}}
    assert passing_meta("not an object", most_bytes=1000, depth=8) == {}


def test_prx8_metadata_survives_within_bounds() -> None:
    members = {"a": "x" * 50, "b": [[[1]]], "c": "y" * 50, "d": 1, "e": float("nan")}
    assert bounded(members, most_bytes=80, depth=2) == {"a": "x" * 50, "d": 1}
    assert bounded({"a": "x"}, most_bytes=len('{"a":"x"}'), depth=2) == {"a": "x"}


def test_prx8_related_task_names_the_handle() -> None:
    own = {RELATED_TASK: {"taskId": "up-1"}, "x": 1}
    assert rewriter().meta(own) == {RELATED_TASK: {"taskId": "HANDLE"}, "x": 1}
    assert rewriter().meta({RELATED_TASK: {"taskId": "another"}}) == {}
    assert rewriter(None, None).meta(own) == {"x": 1}
    assert rewriter().meta({RELATED_TASK: "up-1"}) == {}


def test_prx8_content_is_untouched_and_server_info_is_the_proxys() -> None:
    result = {
        "content": [{"type": "text", "text": "up-1"}],
        "structuredContent": {"taskId": "up-1"},
        "_meta": {SERVER_INFO: {"name": "hidden"}, RELATED_TASK: {"taskId": "up-1"}},
    }
    rewritten = rewriter().result(result)
    assert rewritten == {
        **result,
        "_meta": {SERVER_INFO: PROXY, RELATED_TASK: {"taskId": "HANDLE"}},
    }
    assert rewriter().inner_result(result) == {**rewritten, "resultType": "complete"}
    plain: dict[str, Any] = {"content": []}
    assert rewriter().inner_result(plain) == {"content": [], "resultType": "complete"}
    assert rewriter().inner_result({"content": [], "_meta": 7}) == {"content": [], "resultType": "complete"}


def test_prx8_input_requests_keep_all_but_the_id_in_metadata() -> None:
    asked = {"a": form(_meta={RELATED_TASK: {"taskId": "up-1"}}), "b": {"method": "roots/list"}}
    rewritten = rewriter().requests(asked)
    assert rewritten["a"]["params"]["_meta"] == {RELATED_TASK: {"taskId": "HANDLE"}}
    assert rewritten["b"] == asked["b"]
    assert asked["a"]["params"]["_meta"] == {RELATED_TASK: {"taskId": "up-1"}}


def test_prx8_unknown_members_survive_with_the_id_rewritten() -> None:
    assert rewriter().extra({"note": "up-1", "n": 1}) == {"note": "HANDLE", "n": 1}
    assert rewriter(None).extra({"note": "up-1"}) == {"note": "up-1"}
    assert rewriter().params({"progress": 1, "_meta": {SERVER_INFO: {}}}) == {"progress": 1}


# -- PRX.10 ----------------------------------------------------------------------------------------------

EVERYTHING: dict[str, Any] = {"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}}, "roots": {}}
ALL_KINDS = frozenset(InputKind)


@pytest.mark.parametrize(
    ("capabilities", "kinds", "declared"),
    [
        (EVERYTHING, {InputKind.FORM}, {"elicitation": {"form": {}}}),
        (EVERYTHING, {InputKind.URL}, {"elicitation": {"url": {}}}),
        (EVERYTHING, ALL_KINDS, EVERYTHING),
        (EVERYTHING, {InputKind.SAMPLING}, {"sampling": {"tools": {}}}),
        (EVERYTHING, set(), {}),
        ({"elicitation": {}}, ALL_KINDS, {"elicitation": {"form": {}}}),
        ({"elicitation": {"url": {}}}, {InputKind.FORM}, {}),
        ({"elicitation": True, "sampling": 1, "roots": None}, ALL_KINDS, {}),
        ({"experimental": {}}, ALL_KINDS, {}),
    ],
)
def test_prx10_an_upstream_hears_what_the_caller_declares_and_policy_allows(
    capabilities: dict[str, Any], kinds: set[InputKind], declared: dict[str, Any]
) -> None:
    assert declarable(capabilities, kinds) == declared


URL = {"method": "elicitation/create", "params": {"mode": "url", "message": "Go", "url": "https://a.example"}}


def test_prx10_all_that_was_declared_is_shown_or_nothing_is() -> None:
    forms: dict[str, Any] = {"elicitation": {"form": {}}}
    assert is_shown({"a": form(), "b": form()}, forms, 2)
    assert not is_shown({"a": form(), "b": URL}, forms, 9), "never a partial list"
    assert not is_shown({"a": form()}, {}, 9)
    assert not is_shown({"a": form(), "b": form()}, forms, 1)
    assert not is_shown({"a": {"method": "nonsense"}}, forms, 9)
    assert not is_shown([], forms, 9)


def test_upd4_what_the_author_of_a_form_should_mend_is_shown_all_the_same() -> None:
    schema = {"type": "object", "properties": {}, "required": ["nowhere"]}
    assert is_shown({"a": form(requestedSchema=schema)}, {"elicitation": {"form": {}}}, 9)


def test_prx10_an_update_must_declare_what_it_answers() -> None:
    outstanding = {"a": form(), "b": URL}
    forms: dict[str, Any] = {"elicitation": {}}
    assert check_answers(outstanding, {"a": ACCEPTED}, forms) is None
    gap = check_answers(outstanding, {"a": ACCEPTED, "b": {"action": "accept"}}, forms)
    assert gap is not None
    assert gap.code == -32021
    assert gap.data == {"requiredCapabilities": {"elicitation": {"form": {}, "url": {}}}}
    assert check_answers(outstanding, {}, {}) is None


def test_upd4_an_answer_must_fit_its_request() -> None:
    wrong = check_answers({"a": form()}, {"a": {"action": "perhaps"}}, {"elicitation": {}})
    assert wrong is not None
    assert wrong.code == -32602
    assert "'a'" in wrong.message


# -- PRX.12 ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "told"),
    [(None, 1000), (999, 999), (1000, 1000), (1001, 1000), (2**60, 1000), (0, 1), (-5, 1)],
)
def test_prx12_a_lifetime_is_clamped_and_never_lengthened(said: Any, told: int) -> None:
    assert clamp_ttl(said, 1000) == told


@pytest.mark.parametrize(
    ("said", "told"), [(None, 500), (0, 500), (-1, 500), (499, 500), (501, 501), (2**60, 2**60)]
)
def test_prx12_a_poll_hint_is_raised_and_never_lowered(said: int | None, told: int) -> None:
    assert clamp_poll_interval(said, 500) == told


# -- PRX.13 ----------------------------------------------------------------------------------------------


def snapshot(status: Status = Status.COMPLETED, stored_at_ms: int = START) -> Snapshot:
    return Snapshot(handle="h", status=status, view={"taskId": "h"}, stored_at_ms=stored_at_ms)


def test_prx13_the_first_end_stands() -> None:
    first, second = snapshot(), snapshot(Status.CANCELLED)
    assert first_of(None, first) is first
    assert first_of(first, second) is first


def test_prx13_an_end_is_kept_for_its_time_from_storage() -> None:
    kept = Retention(payload_ms=1000)
    assert is_readable(snapshot(), kept, START + 999)
    assert not is_readable(snapshot(), kept, START + 1000)
    assert not is_readable(None, kept, START)


def test_prx13_a_snapshot_survives_the_store() -> None:
    assert snapshot_from_json(snapshot_to_json(snapshot())) == snapshot()
    with pytest.raises(ValueError, match=r"^not a stored snapshot$"):
        snapshot_from_json([])
