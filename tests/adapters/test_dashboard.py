"""The tasks of a project over HTTP: who sees what, and who may do what (HIS.1 to HIS.3)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest
from mcp_tasks_adapters.dashboard.answers import of_engine

from mcp_tasks_proto.proxy import TROUBLE_TABLE
from mcp_tasks_proto.proxy.errors import trouble
from tests.adapters.dashboard_harness import LOOPS, Scene, scene

PROJECTS = count()
FORM = {
    "method": "elicitation/create",
    "params": {
        "mode": "form",
        "message": "Sure?",
        "requestedSchema": {
            "type": "object",
            "properties": {"sure": {"type": "boolean"}},
            "required": ["sure"],
        },
    },
}
SURE = {"action": "accept", "content": {"sure": True}}
DONE = {"resultType": "complete", "content": [{"type": "text", "text": "canary-result"}]}
ASKING: dict[str, Any] = {"inputRequests": {"sure": FORM}}


@pytest.fixture(scope="module", params=LOOPS)
def shared(request: pytest.FixtureRequest) -> Iterator[Scene]:
    with scene(request.param) as found:
        yield found


@pytest.fixture
def here(shared: Scene) -> Scene:
    """The scene with a project of the test's own."""
    shared.project = f"film {next(PROJECTS)}/ü"
    shared.town.cut_off.clear()
    shared.town.profile = "default"
    shared.farm.down = False
    return shared


# -- reading -------------------------------------------------------------------------------------------------


def test_his2_a_list_by_view_newest_first(here: Scene) -> None:
    made = {status: here.make_ended(status) for status in ("cancelled",)}
    made["failed"] = here.make_ended("failed", error={"code": -32603, "message": "no"})
    made["completed"] = here.make_ended("completed", result=DONE)
    made["input_required"] = here.make_ended("input_required", **ASKING)
    made["working"] = here.make()

    def shown(view: str) -> list[str]:
        return [row["status"] for row in here.tasks(f"?view={view}")]

    assert shown("all") == [*reversed(made)]
    assert shown("pending") == ["working", "input_required"]
    assert [shown(view) for view in ("completed", "failed", "cancelled")] == [
        ["completed"],
        ["failed"],
        ["cancelled"],
    ]
    waiting = here.tasks("?view=pending")[1]
    assert waiting == {
        "taskId": made["input_required"],
        "project": here.project,
        "caller": "The laptop of alice",
        "upstream": "The farm",
        "tool": "work",
        "status": "input_required",
        "label": "Waiting for input",
        "createdAtMs": waiting["createdAtMs"],
        "updatedAtMs": waiting["updatedAtMs"],
        "assignee": None,
        "polls": 1,
    }


def test_his2_the_assigned_filter_is_independent_of_the_view(here: Scene) -> None:
    mine, others, nobodys = here.make(), here.make(), here.make()
    for handle, assignee in ((mine, "bob"), (others, "carol")):
        here.ask("PUT", here.path(handle, "/assignee"), "bob", {"assignee": assignee})

    def shown(assigned: str, view: str = "all") -> set[str]:
        return {row["taskId"] for row in here.tasks(f"?assigned={assigned}&view={view}", "bob")}

    assert shown("me") == {mine}
    assert shown("somebody", "pending") == {mine, others}
    assert shown("nobody") == {nobodys}
    assert shown("any") == {mine, others, nobodys}
    assert shown("me", "failed") == set()


def test_his2_a_long_list_comes_in_pages(here: Scene) -> None:
    made = [here.make() for _ in range(5)]
    seen: list[str] = []
    query = "?limit=2"
    for rows in (2, 2, 1):
        page = here.ask("GET", here.path() + query, "gil").json
        assert len(page["tasks"]) == rows
        seen += [row["taskId"] for row in page["tasks"]]
        query = f"?limit=2&cursor={page.get('nextCursor')}"
        here.make()  # what comes meanwhile moves no page
    assert seen == [*reversed(made)]
    assert "nextCursor" not in page


def test_his1_a_task_with_its_timeline(here: Scene) -> None:
    handle = here.make_ended("input_required", **ASKING)
    here.ask("PUT", here.path(handle, "/assignee"), "bob", {"assignee": "carol"})
    here.farm.change("completed", result=DONE)
    here.mcp("tasks/get", {"taskId": handle})
    shown = here.ask("GET", here.path(handle), "gil").json["task"]
    told = [{name: event[name] for name in event if name != "atMs"} for event in shown["timeline"]]
    assert told == [
        {"kind": "created", "status": "working", "label": "Working"},
        {"kind": "status", "status": "input_required", "label": "Waiting for input"},
        {"kind": "assigned", "actor": "bob", "assignee": "carol"},
        {"kind": "status", "status": "completed", "label": "Completed"},
    ]
    assert (shown["polls"], shown["allowed"], shown["assignee"]) == (2, ["read"], "carol")
    assert "canary-result" not in str(shown)


def test_his3_a_page_says_what_its_viewer_may_do(here: Scene) -> None:
    handle = here.make()
    allowed = {
        who: here.ask("GET", here.path(handle), who).json["task"]["allowed"]
        for who in ("alice", "bob", "gil")
    }
    assert allowed == {
        "alice": ["read", "assign", "read_payload", "answer", "cancel"],
        "bob": ["read", "assign"],
        "gil": ["read"],
    }


# -- assignment ----------------------------------------------------------------------------------------------


def test_his2_assignment_is_taken_back_and_grants_nothing(here: Scene) -> None:
    handle = here.make()
    answered = here.ask("PUT", here.path(handle, "/assignee"), "bob", {"assignee": "gil"})
    assert (answered.status, answered.json["task"]["assignee"]) == (200, "gil")
    assert here.ask("GET", here.path(handle, "/payload"), "gil").reason == "not_allowed"
    answered = here.ask("DELETE", here.path(handle, "/assignee"), "carol")
    assert (answered.status, answered.json["task"]["assignee"]) == (200, None)
    assert answered.json["task"]["status"] == "working"
    events = answered.json["task"]["timeline"][1:]
    assert [(one["actor"], one["assignee"]) for one in events] == [("bob", "gil"), ("carol", None)]


def test_his3_direct_members_do_not_assign(here: Scene) -> None:
    handle = here.make()
    for method, body in (("PUT", {"assignee": "gil"}), ("DELETE", None)):
        refused = here.ask(method, here.path(handle, "/assignee"), "gil", body)
        assert (refused.status, refused.reason) == (403, "not_allowed")


def test_his2_an_assignee_may_look_at_the_project(here: Scene) -> None:
    refused = here.ask("PUT", here.path(here.make(), "/assignee"), "bob", {"assignee": "eve"})
    assert (refused.status, refused.reason) == (400, "no_such_member")


# -- what only the original user may -------------------------------------------------------------------------


def test_his3_the_original_user_answers_and_sees_the_result(here: Scene) -> None:
    handle = here.make()
    name = here.farm.change("input_required", **ASKING)
    shown = here.ask("GET", here.path(handle, "/payload")).json["task"]
    assert (shown["taskId"], shown["status"], shown["inputRequests"]) == (
        handle,
        "input_required",
        {"sure": FORM},
    )
    assert not {"_meta", "resultType"} & set(shown)
    body = {"inputResponses": {"sure": SURE}}
    assert here.ask("POST", here.path(handle, "/answers"), "alice", body).status == 202
    (asked,) = [one for one in here.farm.server.all("tasks/update") if one.params["taskId"] == name]
    assert asked.params["inputResponses"] == {"sure": SURE}
    here.farm.change("completed", result=DONE)
    shown = here.ask("GET", here.path(handle, "/payload")).json["task"]
    assert (shown["status"], shown["result"]) == ("completed", DONE)
    del here.farm.tasks[name]  # the upstream forgets; its end is kept (PRX.13)
    assert here.ask("GET", here.path(handle, "/payload")).json["task"] == shown


def test_upd4_an_answer_that_does_not_fit_is_named(here: Scene) -> None:
    handle = here.make_ended("input_required", **ASKING)
    wrong = {"inputResponses": {"sure": {"action": "accept", "content": {"sure": "perhaps"}}}}
    refused = here.ask("POST", here.path(handle, "/answers"), "alice", wrong)
    assert (refused.status, refused.reason) == (400, "invalid_answer")
    assert "sure" in refused.json["error"]["message"]


def test_his3_the_original_user_cancels(here: Scene) -> None:
    handle = here.make()
    name = [*here.farm.tasks][-1]
    answered = here.ask("POST", here.path(handle, "/cancel"))
    assert (answered.status, answered.json) == (202, {})
    assert [one for one in here.farm.server.all("tasks/cancel") if one.params["taskId"] == name]
    assert here.tasks()[0]["status"] == "working"  # no status is made up (PRX.11)


def test_his3_an_ended_task_has_nothing_to_control(here: Scene) -> None:
    handle = here.make_ended("completed", result=DONE)
    body = {"inputResponses": {"sure": SURE}}
    for part, given in (("/answers", body), ("/cancel", None)):
        refused = here.ask("POST", here.path(handle, part), "alice", given)
        assert (refused.status, refused.reason) == (409, "ended")
        assert here.ask("POST", here.path(handle, part), "bob", given).reason == "not_allowed"


def test_errors_of_the_upstream_have_their_reason(here: Scene) -> None:
    handle = here.make()
    here.farm.down = True
    refused = here.ask("GET", here.path(handle, "/payload"))
    assert (refused.status, refused.reason) == (503, "upstream_unavailable")
    here.farm.down = False
    here.farm.tasks.popitem()
    refused = here.ask("GET", here.path(handle, "/payload"))
    assert (refused.status, refused.reason) == (502, "upstream_lost_task")


def test_errors_that_pass_by_themselves_have_a_status_that_says_so() -> None:
    """As far as the proxy knows of them: the same request may be sent again."""
    for reason, (_, retryable) in TROUBLE_TABLE.items():
        assert (of_engine(trouble(reason)).status == 503) is (retryable is True), reason


def test_prx7_a_tool_that_was_withdrawn_keeps_its_payload_to_itself(here: Scene) -> None:
    handle = here.make_ended("completed", result=DONE)
    here.town.profile = "none"
    refused = here.ask("GET", here.path(handle, "/payload"))
    assert (refused.status, refused.reason) == (404, "payload_gone")


# -- denials -------------------------------------------------------------------------------------------------

REQUESTS: list[tuple[str, str, Any]] = [
    ("GET", "", None),
    ("PUT", "/assignee", {"assignee": "bob"}),
    ("DELETE", "/assignee", None),
    ("GET", "/payload", None),
    ("POST", "/answers", {"inputResponses": {"sure": SURE}}),
    ("POST", "/cancel", None),
]


def test_his3_what_nobody_may_know_of_has_one_answer(here: Scene) -> None:
    """The oracle: a project or a task, there or not, or of others: the same bytes, whatever is asked."""
    handle = here.make()
    here.project, project = "elsewhere", here.project
    alien = here.make("zoe")
    here.project = project
    answers = set()
    for method, part, body in REQUESTS:
        for who, where, task in (
            ("eve", project, handle),
            ("key-1", project, handle),
            ("alice", "elsewhere", alien),
            ("alice", "elsewhere", handle),
            ("alice", "no-such-project", "A" * 43),
            ("alice", project, alien),
            ("alice", project, "A" * 43),
            ("alice", project, "x" * 4096),
            ("alice", project, "é☃ + =?base64?aGk=?="),
            ("alice", "no-such-project", handle),
        ):
            asked = here.ask(method, here.path(task, part, where), who, body)
            answers.add(asked.bytes_but_for_date)
    for who, where in (("eve", project), ("key-1", project), ("alice", "elsewhere"), ("eve", "none")):
        answers.add(here.ask("GET", here.path(project=where), who).bytes_but_for_date)
    for path in (
        "/projects/",
        "/projects/film",
        "/projects/%ff/tasks",
        f"{here.path(handle)}/more",
        "/projects//",
    ):
        answers.add(here.ask("GET", path).bytes_but_for_date)
    assert len(answers) == 1
    assert here.ask("GET", here.path("nothing")).status == 404


def test_his3_what_a_reader_may_not_do_has_one_answer(here: Scene) -> None:
    """Of somebody else, of an API key, without an authorization: what may be read tells no more than that."""
    handle, of_key = here.make(), here.make("key-1")
    answers = set()
    for method, part, body in REQUESTS[3:]:
        for who, task in (("bob", handle), ("gil", handle), ("alice", of_key)):
            answers.add(here.ask(method, here.path(task, part), who, body).bytes_but_for_date)
        here.town.cut_off.add("alice")
        answers.add(here.ask(method, here.path(handle, part), "alice", body).bytes_but_for_date)
        here.town.cut_off.clear()
    answers.add(here.ask("DELETE", here.path(handle, "/assignee"), "gil").bytes_but_for_date)
    (answer,) = answers
    assert b"not_allowed" in answer
    assert here.ask("GET", here.path(of_key), "alice").json["task"]["allowed"] == ["read", "assign"]


def test_sec1_nobody_is_shown_anything_without_a_name(here: Scene) -> None:
    handle = here.make()
    answers = {
        here.ask(method, here.path(handle, part), None, body).bytes_but_for_date
        for method, part, body in REQUESTS
    }
    answers.add(here.ask("GET", here.path(), None).bytes_but_for_date)
    (answer,) = answers
    assert b"401" in answer
    assert b"('www-authenticate', 'Bearer')" in answer
    assert b"not_authorized" in answer


# -- how requests are written --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "query",
    [
        "?view=mine",
        "?assigned=eve",
        "?limit=0",
        "?limit=201",
        "?limit=many",
        "?cursor=1",
        "?cursor=x.y",
        "?cursor=1.%00",
        "?view=all&view=all",
        "?color=blue",
        "?view",
        "?view=%ff",
    ],
)
def test_a_query_that_is_none_is_named(here: Scene, query: str) -> None:
    refused = here.ask("GET", here.path() + query)
    assert (refused.status, refused.reason) == (400, "bad_request")


@pytest.mark.parametrize(
    ("part", "body"),
    [
        ("/assignee", b"{"),
        ("/assignee", b"[]"),
        ("/assignee", {}),
        ("/assignee", {"assignee": ""}),
        ("/assignee", {"assignee": "x" * 257}),
        ("/assignee", {"assignee": None}),
        ("/assignee", {"assignee": "bob", "status": "completed"}),
        ("/answers", {"inputResponses": []}),
        ("/answers", {"inputResponses": {}, "taskId": "other"}),
        ("/answers", b'{"inputResponses": {}, "inputResponses": {}}'),
    ],
)
def test_a_body_that_is_none_is_refused(here: Scene, part: str, body: Any) -> None:
    method = "PUT" if part == "/assignee" else "POST"
    refused = here.ask(method, here.path("x", part), "alice", body)
    assert (refused.status, refused.reason) == (400, "bad_request")


@pytest.mark.parametrize(
    ("method", "part", "allowed"),
    [
        ("POST", "", "GET"),
        ("DELETE", "", "GET"),
        ("POST", "/assignee", "PUT, DELETE"),
        ("POST", "/payload", "GET"),
        ("GET", "/answers", "POST"),
        ("GET", "/cancel", "POST"),
    ],
)
def test_other_methods_are_told_which_there_are(here: Scene, method: str, part: str, allowed: str) -> None:
    refused = here.ask(method, here.path("x", part))
    assert (refused.status, refused.reason, refused.headers["allow"]) == (405, "bad_method", allowed)
    assert here.ask("PUT", here.path()).headers["allow"] == "GET"


def test_http1_bodies_are_bounded_and_json(here: Scene) -> None:
    path = here.path("x", "/answers")
    assert here.ask("POST", path, "alice", b" " * 70_000).status == 413
    plain = {"Content-Type": "text/plain"}
    assert here.ask("POST", path, "alice", b"{}", plain).status == 415


def test_http1_pages_of_others_are_kept_away(here: Scene) -> None:
    for headers in ({"Host": "evil.example"}, {"Origin": "https://evil.example"}):
        assert here.ask("GET", here.path(), "alice", None, headers).status == 403
    own = {"Origin": "http://localhost:5173"}
    assert here.ask("GET", here.path(), "alice", None, own).status == 200


def test_answers_are_for_one_person_at_one_moment(here: Scene) -> None:
    for answered in (here.ask("GET", here.path()), here.ask("GET", here.path("x"))):
        assert answered.headers["cache-control"] == "no-store"
        assert answered.headers["content-type"] == "application/json"
        assert answered.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("without", ["members", "authenticate"])
def test_his3_without_people_there_is_nothing_to_look_at(without: str) -> None:
    with scene("asyncio", **{without: None}) as empty:
        answered = empty.ask("GET", empty.path())
        assert (answered.status, answered.body) == (404, b"")


@pytest.mark.parametrize("loop", LOOPS)
def test_an_endpoint_among_the_projects_is_still_the_endpoint(loop: str) -> None:
    with scene(loop, path="/projects/mcp") as found:
        assert found.mcp("server/discover", {})["result"]["supportedVersions"]
        assert found.ask("GET", found.path()).json == {"tasks": []}
