"""The kit judges as hard as the specification, and no harder: what is left open breaks no must."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pytest

from mcp_tasks_proto.testing.kit import CHECKS, Kit, KitSettings, Post, Strength, Verdict
from tests.unit.kit_expectations import CALLS, of
from tests.unit.kit_faults.ways import DISCOVER, EXTENSION, answers, errors, results, statuses
from tests.unit.kit_world import Fault, KitServer

NAMED: Final = KitSettings(calls=CALLS, search=False)


def examined(fault: Fault, *names: str, http: bool = True) -> Kit:
    """Examine a server with this peculiarity, by these checks alone."""
    checks = [one for one in CHECKS if one.name in names]
    assert len(checks) == len(names)
    return KitServer(fault=fault, http=http).examine(NAMED, checks=checks)


def passed(fault: Fault, *names: str, http: bool = True) -> bool:
    """Whether it passes all of them."""
    return set(of(examined(fault, *names, http=http), Verdict.PASS)) == set(names)


def error(message: Mapping[str, Any], code: int) -> dict[str, Any]:
    """Return an answer with this error."""
    return {"jsonrpc": "2.0", "id": message.get("id"), "error": {"code": code, "message": "no"}}


def _compares_headers_first(post: Post, message: dict[str, Any]) -> Any:
    """The first thing that is wrong is that a header and the body are of two minds."""
    comparable = post.method is not None and "_meta" in post.params
    version = "io.modelcontextprotocol/protocolVersion" in post.params.get("_meta", {})
    return None if post.era == "none" or (comparable and version) else error(message, -32020)


HEADERS_FIRST: Final = answers(_compares_headers_first)


@pytest.mark.parametrize("check", ["what is no request", "metadata that is missing"])
def test_neg3_headers_may_be_looked_at_first(check: str) -> None:
    """The specification gives no order, and demands both."""
    assert passed(HEADERS_FIRST, check)


def test_neg3_the_contract_has_an_order() -> None:
    assert of(examined(HEADERS_FIRST, "the order of the checks"), Verdict.FAIL)


def test_wire1_without_headers_there_is_one_code() -> None:
    names = ("what is no request", "metadata that is missing")
    assert set(of(examined(HEADERS_FIRST, *names, http=False), Verdict.FAIL)) == set(names)


def test_http5_the_status_of_what_is_malformed_is_left_open() -> None:
    """A choice of the contract, which one check is about, and no other."""
    fault = statuses(400, 200)
    assert passed(fault, "what is not json", "what is no request", "ids that are none")
    names = ("what is not json", "status codes of malformed requests")
    assert list(of(examined(fault, *names), Verdict.FAIL)) == ["status codes of malformed requests"]


@pytest.mark.parametrize("code", [-32000, -32001, -32019])
def test_wire1_codes_that_were_free_once_should_not_be_used(code: int) -> None:
    names = ("getting an unknown task", "codes that are not to be used", "codes of before")
    failed = of(examined(errors(-32602, code), *names), Verdict.FAIL)
    assert set(failed) == {"getting an unknown task", "codes of before"}


def test_wire1_codes_that_were_given_up_must_not_be_used() -> None:
    names = ("getting an unknown task", "codes that are not to be used", "codes of before")
    failed = of(examined(errors(-32602, -32002), *names), Verdict.FAIL)
    assert set(failed) == {"getting an unknown task", "codes that are not to be used"}


def test_neg9_settings_that_nobody_knows_are_a_choice() -> None:
    def advertises(post: Post, result: dict[str, Any]) -> dict[str, Any] | None:
        capabilities = {**result.get("capabilities", {}), "extensions": {EXTENSION: {"kit": 1}}}
        return {**result, "capabilities": capabilities} if post.method == DISCOVER else None

    kit = examined(results(advertises), "what is advertised", "settings of the extension")
    assert of(kit, Verdict.FAIL) == {"settings of the extension": "the extension has settings"}


def _refuses_in_a_result(_: Post, message: dict[str, Any]) -> Any:
    if message.get("error", {}).get("code") != -32602:
        return None
    result = {"resultType": "complete", "isError": True, "content": []}
    return {"jsonrpc": "2.0", "id": message["id"], "result": result}


@pytest.mark.parametrize("fault", [errors(-32602, -32600), answers(_refuses_in_a_result)])
def test_inp4_how_a_state_is_refused_is_left_open(fault: Fault) -> None:
    assert passed(fault, "a state that was tampered with")
    assert of(examined(fault, "how a state is refused"), Verdict.FAIL)


def test_inp2_a_task_that_is_not_shown_asks_for_nothing() -> None:
    """As behind a proxy, whose server has asked for what was not declared."""
    fault = answers(lambda post, message: error(message, -32603) if post.method == "tasks/get" else None)
    kit = examined(fault, "nothing undeclared is asked")
    said = "there came error -32603 (HTTP 200) where the task was due"
    assert of(kit, Verdict.NOT_OBSERVABLE) == {"nothing undeclared is asked": said}


FOLLOWED: Final = (
    "no status after the end",
    "timestamps",
    "ids cannot be guessed",
    "no task goes before its time",
)


@pytest.mark.parametrize("task_id", [7, None])
def test_life3_a_task_without_an_id_is_one_fault_and_not_five(task_id: Any) -> None:
    """Two tasks of which nobody can say that they are one are not compared."""

    def changed(_: Post, result: dict[str, Any]) -> dict[str, Any] | None:
        return {**result, "taskId": task_id} if "taskId" in result else None

    kit = KitServer(fault=results(changed)).examine(NAMED)
    failed = of(kit, Verdict.FAIL)
    assert "create results are flat" in failed
    assert not failed.keys() & set(FOLLOWED)


def test_life6_of_ids_that_come_twice_the_two_are_shown() -> None:
    """Whichever tasks have it, and not the first that come."""
    made: list[str] = []

    def changed(_: Post, result: dict[str, Any]) -> dict[str, Any] | None:
        if result.get("resultType") != "task":
            return None
        made.append(result["taskId"])
        return {**result, "taskId": made[1] if len(made) == 4 else result["taskId"]}

    kit = KitServer(fault=results(changed)).examine(NAMED)
    (failure,) = [one for one in kit.findings if one.check.name == "ids cannot be guessed"]
    assert failure.reason == "two tasks have the same id"
    assert {(answer.result or {})["taskId"] for answer in failure.answers} == {made[1]}


def test_a_check_says_where_the_specification_asks_for_it() -> None:
    assert all(check.source for check in CHECKS)
    assert {check.strength for check in CHECKS} == set(Strength)
