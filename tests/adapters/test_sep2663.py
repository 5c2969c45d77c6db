"""What SEP-2663 asks of a server and the official conformance suite has no check for, over real HTTP.

``docs/conformance.md`` has the table: requirement, test. Each test runs on both loops, against a server in a
process of its own.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.adapters.sep2663_client import (
    DECLARING,
    LEGACY_DECLARING,
    NOT_DECLARING,
    PATIENCE_SECONDS,
    SUBSCRIPTION_ID,
    TASKS,
    Client,
    Reply,
    ServerProcess,
    answer,
    bare,
)

LOOPS = ("trio", "asyncio")


@pytest.fixture(scope="module", params=LOOPS)
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    """The server most tests talk to."""
    with ServerProcess("server", request.param) as server:
        yield server.url


@pytest.fixture
def ann(url: str) -> Client:
    """A caller who declares the extension."""
    return Client(url)


@pytest.fixture(params=LOOPS)
def own_server(request: pytest.FixtureRequest) -> Iterator[ServerProcess]:
    """A server that a test may stop."""
    with ServerProcess("server", request.param) as server:
        yield server


@pytest.fixture(params=LOOPS)
def cramped(request: pytest.FixtureRequest) -> Iterator[Client]:
    """A caller of a server with room for one task."""
    with ServerProcess("cramped", request.param) as server:
        yield Client(server.url)


def assert_missing_tasks(reply: Reply) -> None:
    """The reply says that the extension must be declared, and names it (NEG.5, NEG.6)."""
    assert reply.status == 400
    assert reply.error["code"] == -32021
    assert reply.error["data"] == {"requiredCapabilities": {"extensions": {TASKS: {}}}}


def assert_acknowledged(reply: Reply) -> None:
    """The reply is an empty acknowledgement (UPD.3, CAN.6)."""
    assert reply.result["resultType"] == "complete"
    assert bare(reply.result) == {}


def cancel(client: Client, task_id: str) -> None:
    """Leave no task behind that waits for ever."""
    client.cancel(task_id)
    client.poll(task_id, "cancelled")


class TestKeys:
    """INP.1: a key means one request, for the task's whole life."""

    def test_asking_again_gets_another_key(self, ann: Client) -> None:
        task_id = ann.start("ask_again")
        seen: list[str] = []
        for name in ("one", "two", "three"):
            (key,) = ann.poll(task_id, "input_required")["inputRequests"]
            assert key not in seen
            seen.append(key)
            assert_acknowledged(ann.update(task_id, {key: answer(name)}))
            assert key not in ann.get(task_id).get("inputRequests", {})
        assert seen == ["confirm", "confirm.2", "confirm.3"]
        view = ann.poll(task_id, "completed")
        assert [block["text"] for block in view["result"]["content"]] == ["one", "two", "three"]

    def test_a_late_answer_to_an_old_key_does_not_answer_the_new_one(self, ann: Client) -> None:
        task_id = ann.start("ask_again")
        ann.poll_key(task_id, "confirm")
        ann.update(task_id, {"confirm": answer("one")})
        before = ann.poll_key(task_id, "confirm.2")
        assert_acknowledged(ann.update(task_id, {"confirm": answer("once more")}))
        assert ann.get(task_id) == before
        ann.update(task_id, {"confirm.2": answer("two")})
        ann.poll_key(task_id, "confirm.3")
        ann.update(task_id, {"confirm.3": answer("three")})
        view = ann.poll(task_id, "completed")
        assert [block["text"] for block in view["result"]["content"]] == ["one", "two", "three"]


class TestUpdate:
    """UPD.3: what is not outstanding is ignored, whatever it is."""

    @pytest.mark.parametrize(
        "responses",
        [
            pytest.param({}, id="nothing"),
            pytest.param({"never-asked": answer("x")}, id="never asked"),
            pytest.param({"never-asked": {"no": "answer"}}, id="never asked, of no known shape"),
        ],
    )
    def test_nothing_happens(self, ann: Client, responses: dict[str, Any]) -> None:
        task_id = ann.start("ask_both")
        before = ann.poll(task_id, "input_required")
        assert_acknowledged(ann.update(task_id, responses))
        assert ann.get(task_id) == before
        cancel(ann, task_id)

    def test_an_answered_key_is_answered_once(self, ann: Client) -> None:
        task_id = ann.start("ask_both")
        ann.poll(task_id, "input_required")
        assert_acknowledged(ann.update(task_id, {"a": answer("first")}))
        before = ann.get(task_id)
        assert list(before["inputRequests"]) == ["b"]
        assert_acknowledged(ann.update(task_id, {"a": answer("second")}))
        assert ann.get(task_id) == before
        assert_acknowledged(ann.update(task_id, {"a": answer("third"), "b": answer("last")}))
        view = ann.poll(task_id, "completed")
        assert [block["text"] for block in view["result"]["content"]] == ["first", "last"]

    def test_a_superseded_key_is_ignored(self, ann: Client) -> None:
        task_id = ann.start("change_of_mind")
        ann.poll_key(task_id, "old")
        ann.poll_key(task_id, "go_on")
        ann.update(task_id, {"go_on": answer("yes")})
        before = ann.poll_key(task_id, "new")
        assert list(before["inputRequests"]) == ["new"]
        assert_acknowledged(ann.update(task_id, {"old": answer("too late")}))
        assert ann.get(task_id) == before
        ann.update(task_id, {"new": answer("in time")})
        assert ann.poll(task_id, "completed")["result"]["content"][0]["text"] == "in time"

    def test_unknown_keys_beside_a_known_one(self, ann: Client) -> None:
        task_id = ann.start("ask_again")
        ann.poll_key(task_id, "confirm")
        responses = {"confirm": answer("one"), "other": answer("x"), "confirm.2": answer("too early")}
        assert_acknowledged(ann.update(task_id, responses))
        view = ann.poll_key(task_id, "confirm.2")
        assert list(view["inputRequests"]) == ["confirm.2"]
        cancel(ann, task_id)

    def test_a_finished_task_takes_nothing(self, ann: Client) -> None:
        task_id = ann.start("either_way")
        before = ann.poll(task_id, "completed")
        assert_acknowledged(ann.update(task_id, {"a": answer("x")}))
        assert ann.get(task_id) == before


class TestUnknownTasks:
    """GET.2: unknown, expired, foreign and malformed ids cannot be told apart."""

    def refusals(self, client: Client, task_id: str) -> list[Reply]:
        return [
            client.request("tasks/get", {"taskId": task_id}),
            client.update(task_id, {}),
            client.update(task_id, {"confirm": answer("x")}),
            client.cancel(task_id),
        ]

    def test_one_text_for_all(self, ann: Client) -> None:
        foreign = Client(ann.url, user="bob").start("work_on")
        expired = ann.start("live_briefly")
        deadline = time.monotonic() + PATIENCE_SECONDS
        while "result" in ann.request("tasks/get", {"taskId": expired}).message:
            assert time.monotonic() < deadline, "it never expires"
        well_formed = foreign[:-1] + ("a" if foreign[-1] != "a" else "b")
        replies = [
            reply
            for task_id in (well_formed, expired, foreign, "no id at all", "x" * 500, "námět", "")
            for reply in self.refusals(ann, task_id)
        ]
        assert {reply.status for reply in replies} == {200}
        errors = [reply.error for reply in replies]
        assert errors[0]["code"] == -32602
        assert all(error == errors[0] for error in errors)
        cancel(Client(ann.url, user="bob"), foreign)

    def test_ids_cannot_be_guessed(self, ann: Client) -> None:
        ids = {ann.start("either_way") for _ in range(20)}
        assert len(ids) == 20
        # 122 random bits need at least 21 characters of a 64-character alphabet (LIFE.6).
        assert all(re.fullmatch(r"[!-~]{21,}", task_id) for task_id in ids)


class TestDeclaration:
    """NEG.4-NEG.6: this request's own declaration counts, and nothing else."""

    @pytest.mark.parametrize("capabilities", [NOT_DECLARING, LEGACY_DECLARING], ids=["none", "legacy"])
    def test_who_does_not_declare_gets_no_task(self, ann: Client, capabilities: dict[str, Any]) -> None:
        task_id = ann.start("ask_both")
        before = ann.poll(task_id, "input_required")
        other = Client(ann.url, capabilities)
        assert_missing_tasks(other.request("tasks/get", {"taskId": task_id}))
        assert_missing_tasks(other.update(task_id, {"a": answer("x"), "b": answer("y")}))
        assert_missing_tasks(other.cancel(task_id))
        assert_missing_tasks(other.call("work_on"))
        plain = other.call("either_way", task={"ttl": 60_000}).result
        assert plain["resultType"] == "complete"
        assert plain["content"] == [{"type": "text", "text": "at once"}]
        assert "taskId" not in plain
        assert "task" not in plain
        assert ann.get(task_id) == before
        cancel(ann, task_id)

    @pytest.mark.parametrize("capabilities", [NOT_DECLARING, LEGACY_DECLARING], ids=["none", "legacy"])
    def test_who_does_not_declare_cannot_listen_to_tasks(
        self, ann: Client, capabilities: dict[str, Any]
    ) -> None:
        task_id = ann.start("work_on")
        other = Client(ann.url, capabilities)
        filters: list[dict[str, Any]] = [
            {"taskIds": [task_id]},
            {"taskIds": []},
            {"taskIds": ["x"], "toolsListChanged": True},
        ]
        for wanted in filters:
            assert_missing_tasks(other.request("subscriptions/listen", {"notifications": wanted}))
        with other.listen({"toolsListChanged": True}) as stream:
            assert stream.next()["params"]["notifications"] == {"toolsListChanged": True}
        cancel(ann, task_id)

    def test_settings_inside_the_declaration_do_not_matter(self, ann: Client) -> None:
        declaring = {"extensions": {TASKS: {"some": "setting"}, "org.example/other": {}}}
        assert Client(ann.url, declaring).call("either_way").result["resultType"] == "task"

    def test_the_legacy_capability_is_not_advertised(self, ann: Client) -> None:
        for capabilities in (DECLARING, NOT_DECLARING, LEGACY_DECLARING):
            advertised = Client(ann.url, capabilities).request("server/discover").result["capabilities"]
            assert advertised["extensions"][TASKS] == {}
            assert "tasks" not in advertised


class TestRemovedAndReserved:
    """NEG.8: what 2025-11-25 had and SEP-2663 has not."""

    @pytest.mark.parametrize("capabilities", [DECLARING, NOT_DECLARING], ids=["declaring", "not"])
    @pytest.mark.parametrize("method", ["tasks/result", "tasks/list", "tasks/delete"])
    def test_removed_methods(self, ann: Client, method: str, capabilities: dict[str, Any]) -> None:
        task_id = ann.start("either_way")
        reply = Client(ann.url, capabilities).request(method, {"taskId": task_id})
        assert reply.status == 404
        assert reply.error["code"] == -32601

    def test_params_task_is_ignored(self, ann: Client) -> None:
        hint = {"ttl": 60_000, "pollInterval": 5}
        plain = ann.call("at_once", task=hint).result
        assert plain["resultType"] == "complete"
        assert "taskId" not in plain
        created = ann.call("either_way", task=hint).result
        assert created["resultType"] == "task"
        assert (created["ttlMs"], created["pollIntervalMs"]) == (600_000, 250)
        assert ann.call("either_way", task="nonsense").result["resultType"] == "task"

    def test_legacy_names_and_metadata_are_gone(self, ann: Client) -> None:
        created = ann.call("either_way").result
        view = ann.poll(created["taskId"], "completed")
        for shown in (created, view):
            assert not {"task", "ttl", "pollInterval", "requestState"} & set(shown)
        assert "io.modelcontextprotocol/related-task" not in view.get("_meta", {})
        assert "io.modelcontextprotocol/related-task" not in view["result"].get("_meta", {})

    def test_only_a_create_result_is_of_type_task(self, ann: Client) -> None:
        plain = ann.call("at_once").result
        created = ann.call("ask_both").result
        task_id = created["taskId"]
        ann.poll(task_id, "input_required")
        acknowledged = ann.update(task_id, {"a": answer("x"), "b": answer("y")}).result
        completed = ann.poll(task_id, "completed")
        cancelled = ann.cancel(task_id).result
        assert created["resultType"] == "task"
        for other in (plain, acknowledged, completed, completed["result"], cancelled):
            assert other["resultType"] == "complete"


class TestViews:
    """LIFE.2, GET.1: exactly the fields of its status."""

    COMMON = frozenset({"taskId", "status", "createdAt", "lastUpdatedAt", "ttlMs", "pollIntervalMs"})

    def fields(self, view: dict[str, Any]) -> set[str]:
        assert view["resultType"] == "complete"
        assert set(bare(view)) >= self.COMMON
        return set(bare(view)) - self.COMMON - {"statusMessage"}

    def test_working_and_cancelled(self, ann: Client) -> None:
        task_id = ann.start("work_on")
        assert self.fields(ann.poll(task_id, "working")) == set()
        assert_acknowledged(ann.cancel(task_id))
        assert self.fields(ann.poll(task_id, "cancelled")) == set()
        assert_acknowledged(ann.cancel(task_id))

    def test_input_required(self, ann: Client) -> None:
        task_id = ann.start("ask_both")
        view = ann.poll(task_id, "input_required")
        assert self.fields(view) == {"inputRequests"}
        assert {key: asked["method"] for key, asked in view["inputRequests"].items()} == {
            "a": "elicitation/create",
            "b": "elicitation/create",
        }
        cancel(ann, task_id)

    def test_a_protocol_error_is_failed(self, ann: Client) -> None:
        view = ann.poll(ann.start("break_down"), "failed")
        assert self.fields(view) == {"error"}
        assert view["error"] == {"code": -31_000, "message": "The render node is lost", "data": {"node": 7}}
        assert isinstance(view["statusMessage"], str)
        assert view["statusMessage"]

    @pytest.mark.parametrize("kind", ["tool error", "raised", "returned"])
    def test_every_other_failure_is_completed(self, ann: Client, kind: str) -> None:
        view = ann.poll(ann.start("fail", {"kind": kind}), "completed")
        assert self.fields(view) == {"result"}
        assert view["result"]["isError"] is True
        assert view["result"]["content"][0]["text"]


class TestCancellation:
    """CAN.7: a notification about a request says nothing about a task."""

    def test_notifications_cancelled_does_not_cancel_a_task(self, ann: Client) -> None:
        reply = ann.request("tools/call", {"name": "ask_both", "arguments": {}}, request_id="the-call")
        task_id = reply.result["taskId"]
        before = ann.poll(task_id, "input_required")
        for request_id in ("the-call", task_id):
            assert ann.notify("notifications/cancelled", {"requestId": request_id}) == 202
        assert ann.get(task_id) == before
        ann.update(task_id, {"a": answer("x"), "b": answer("y")})
        ann.poll(task_id, "completed")

    def test_a_listener_that_leaves_does_not_cancel_a_task(self, ann: Client) -> None:
        task_id = ann.start("ask_both")
        before = ann.poll(task_id, "input_required")
        with ann.listen({"taskIds": [task_id]}) as stream:
            stream.next()
            stream.until(task_id, "input_required")
        assert ann.get(task_id) == before
        cancel(ann, task_id)


class TestListen:
    """SUB.1-SUB.4."""

    @pytest.mark.parametrize("request_id", [7, "7", "a listener"])
    def test_the_acknowledgement_comes_first(self, ann: Client, request_id: str | int) -> None:
        task_id = ann.start("ask_both")
        ann.poll(task_id, "input_required")
        with ann.listen({"taskIds": [task_id]}, request_id=request_id) as stream:
            acknowledgement = stream.next()
            assert acknowledgement["method"] == "notifications/subscriptions/acknowledged"
            assert acknowledgement["params"]["notifications"] == {"taskIds": [task_id]}
            stream.next_task()
            ann.cancel(task_id)
            stream.until(task_id, "cancelled")
            for message in stream.seen:
                assert "id" not in message
                given = message["params"]["_meta"][SUBSCRIPTION_ID]
                assert (given, type(given)) == (request_id, type(request_id))

    def test_only_known_ids_of_the_caller_are_agreed_to(self, ann: Client) -> None:
        bob = Client(ann.url, user="bob")
        own, foreign = ann.start("work_on"), bob.start("work_on")
        wanted = {"taskIds": [foreign, own, "no-such-task", own], "promptsListChanged": True}
        with ann.listen(wanted) as stream:
            assert stream.next()["params"]["notifications"] == {"taskIds": [own]}
            assert stream.next_task()["taskId"] == own
            bob.cancel(foreign)
            bob.poll(foreign, "cancelled")
            ann.cancel(own)
            assert {stream.until(own, "cancelled")["taskId"]} == {own}
            assert {message["params"]["taskId"] for message in stream.seen[1:]} == {own}

    def test_each_notification_is_what_get_says(self, ann: Client) -> None:
        task_id = ann.start("ask_again")
        ann.poll_key(task_id, "confirm")
        with ann.listen({"taskIds": [task_id]}) as stream:
            stream.next()
            for key in ("confirm", "confirm.2", "confirm.3"):
                while key not in (view := stream.next_task()).get("inputRequests", {}):
                    pass
                # The task is parked: both see the same moment.
                assert bare(view) == bare(ann.get(task_id))
                ann.update(task_id, {key: answer(key)})
            assert bare(stream.until(task_id, "completed")) == bare(ann.get(task_id))
            moments = [message["params"]["lastUpdatedAt"] for message in stream.seen[1:]]
            assert moments == sorted(set(moments))

    @pytest.mark.parametrize(
        ("tool", "status"), [("break_down", "failed"), ("fail", "completed"), ("either_way", "completed")]
    )
    def test_a_finished_task_is_shown_as_get_shows_it(self, ann: Client, tool: str, status: str) -> None:
        task_id = ann.start(tool)
        view = ann.poll(task_id, status)
        with ann.listen({"taskIds": [task_id]}) as stream:
            stream.next()
            assert bare(stream.next_task()) == bare(view)

    def test_nothing_follows_a_terminal_view(self, ann: Client) -> None:
        ended, other = ann.start("ask_both"), ann.start("ask_again")
        with ann.listen({"taskIds": [ended, other]}) as stream:
            ann.poll(ended, "input_required")
            ann.cancel(ended)
            ann.poll(ended, "cancelled")
            ann.cancel(ended)
            ann.update(ended, {"a": answer("too late")})
            ann.poll_key(other, "confirm")
            ann.cancel(other)
            ann.poll(other, "cancelled")
            stream.next()
            stream.until(other, "cancelled")
            of_ended = [
                message["params"]["status"]
                for message in stream.seen[1:]
                if message["params"]["taskId"] == ended
            ]
            assert of_ended[-1] == "cancelled"
            assert "cancelled" not in of_ended[:-1]

    def test_no_progress_and_no_log_messages(self, ann: Client) -> None:
        meta = {"progressToken": "p", "io.modelcontextprotocol/logLevel": "debug"}
        task_id = ann.request("tools/call", {"name": "chatter", "arguments": {}}, meta=meta).result["taskId"]
        with ann.listen({"taskIds": [task_id]}) as stream:
            stream.next()
            ann.poll_key(task_id, "go_on")
            ann.update(task_id, {"go_on": answer("x")})
            while stream.next()["params"].get("status") != "completed":
                pass
            assert {message["method"] for message in stream.seen[1:]} == {"notifications/tasks"}

    def test_a_stopping_server_ends_streams_gracefully(self, own_server: ServerProcess) -> None:
        ann = Client(own_server.url)
        task_id = ann.start("work_on")
        with (
            ann.listen({"taskIds": [task_id]}, request_id=7) as one,
            ann.listen({"toolsListChanged": True}, request_id="seven") as two,
        ):
            one.next()
            one.until(task_id, "working")
            two.next()
            status = own_server.terminate()
            for stream, request_id in ((one, 7), (two, "seven")):
                result = stream.rest()[-1]
                assert result["id"] == request_id
                assert result["result"]["resultType"] == "complete"
                assert result["result"]["_meta"][SUBSCRIPTION_ID] == request_id
        assert status == 0


class TestRoundsBeforeATask:
    """INP.4, LIFE.8: a question may come before there is a task; TRAPS 8."""

    def test_the_answer_goes_into_the_task(self, ann: Client) -> None:
        asked = ann.call("ask_first").result
        assert asked["resultType"] == "input_required"
        assert list(asked["inputRequests"]) == ["user"]
        assert "taskId" not in asked
        created = ann.call(
            "ask_first", inputResponses={"user": answer("Ann")}, requestState=asked["requestState"]
        ).result
        assert created["resultType"] == "task"
        assert not {"inputRequests", "requestState", "result", "error"} & set(created)
        # The task has keys of its own: the same name is free there.
        task_id = created["taskId"]
        ann.poll_key(task_id, "user")
        ann.update(task_id, {"user": answer("Bob")})
        assert ann.poll(task_id, "completed")["result"]["content"][0]["text"] == "Ann, and Bob"

    def test_a_state_is_good_for_its_caller_and_its_call_only(self, ann: Client) -> None:
        sealed = ann.call("ask_first").result["requestState"]
        retry = {"inputResponses": {"user": answer("Ann")}, "requestState": sealed}
        bob = Client(ann.url, user="bob")
        refused = [
            bob.call("ask_first", **retry),
            ann.call("ask_first", {"other": "arguments"}, **retry),
            ann.call("ask_both", **retry),
        ]
        assert [reply.error["code"] for reply in refused] == [-32602] * 3
        assert ann.call("ask_first", **retry).result["resultType"] == "task"

    def test_no_task_is_minted_before_and_none_by_a_call_that_fails(self, cramped: Client) -> None:
        sealed = cramped.call("ask_first").result["requestState"]
        for name in ("nobody", "outlaw"):
            cramped.call("ask_first")
            reply = cramped.call("ask_first", inputResponses={"user": answer(name)}, requestState=sealed)
            assert ("error" in reply.message) == (name == "outlaw")
        middle = len(sealed) // 2
        tampered = sealed[:middle] + ("A" if sealed[middle] != "A" else "B") + sealed[middle + 1 :]
        for state in (tampered, sealed + "x", "", "nonsense"):
            refused = cramped.call("ask_first", inputResponses={"user": answer("Ann")}, requestState=state)
            assert refused.error["code"] == -32602
        # There is room for one task: had any of these made one, this would be refused.
        created = cramped.call("ask_first", inputResponses={"user": answer("Ann")}, requestState=sealed)
        assert created.result["resultType"] == "task"
        again = cramped.call("ask_first", inputResponses={"user": answer("Bob")})
        assert again.error["code"] == -32603
        assert again.error["data"] == {"reason": "tasks"}
