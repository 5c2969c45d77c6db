"""Results and questions that are not as they should be, on both loops (REQ.1, REQ.4, REQ.8)."""

from __future__ import annotations

from typing import Any

import pytest
from mcp_tasks_adapters.client import (
    Completed,
    Failed,
    Fault,
    NoResultError,
    RequesterLimits,
    accept,
)
from mcp_tasks_adapters.client.results import OutputSchemas

from tests.adapters.client_harness import (
    DONE,
    LOOPS,
    Reply,
    Script,
    against,
    answers,
    done,
    failure,
    handle,
    one_after_the_other,
    outcome_of_call,
    scripted,
    task,
)


@pytest.fixture(params=LOOPS)
def loop(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


# -- results that are wrong ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "result",
    [
        {"resultType": "surprise"},
        {"resultType": "task", "taskId": "x"},
        {"resultType": "input_required"},
        {"resultType": "input_required", "inputRequests": {"k": {"method": "x"}}},
    ],
)
def test_a_result_of_no_known_kind_fails(loop: str, result: Any) -> None:
    """REQ.1, trap 9."""
    outcome = outcome_of_call(loop, scripted(tools_call=answers(result)))
    assert isinstance(outcome, Failed)
    assert outcome.fault is Fault.SERVER


def test_a_task_for_anything_but_a_tool_call_is_no_answer(loop: str) -> None:
    """REQ.1."""
    server = scripted(prompts_get=handle, server_discover=handle)

    async def scenario(on: Any, client: Any) -> None:
        with pytest.raises(NoResultError) as caught:
            await client.request("prompts/get", {"name": "x"})
        assert failure(caught.value.outcome).fault is Fault.SERVER
        with pytest.raises(NoResultError):
            await client.discover()

    against(loop, server, scenario)


@pytest.mark.parametrize("got", [{}, task("on holiday"), {**task(), "taskId": "task-2"}])
def test_what_is_got_for_a_task_and_is_none(loop: str, got: Any) -> None:
    async def scenario(on: Any, client: Any) -> None:
        with pytest.raises(NoResultError) as caught:
            await client.get_task("task-1")
        assert failure(caught.value.outcome).fault is Fault.SERVER

    against(loop, scripted(tasks_get=answers(got)), scenario)


@pytest.mark.parametrize(
    "listed",
    [
        {"tools": "none"},
        {},
        {"tools": [], "nextCursor": "again"},
    ],
)
def test_a_list_of_tools_that_is_none(loop: str, listed: Any) -> None:
    async def scenario(on: Any, client: Any) -> None:
        with pytest.raises(NoResultError):
            await client.list_tools()

    limits = RequesterLimits(tool_pages=3)
    against(loop, scripted(tools_list=answers(listed)), scenario, requester_limits=limits)


def test_tools_come_in_pages_and_those_wrongly_annotated_are_left_out(loop: str) -> None:
    """HTTP.3."""
    wrong = {"type": "object", "properties": {"x": {"type": "number", "x-mcp-header": "X"}}}

    def page(reply: Reply) -> None:
        if "cursor" not in reply.asked.params:
            reply.result(
                {"tools": [{"name": "a"}, {"name": "wrong", "inputSchema": wrong}], "nextCursor": "2"}
            )
        else:
            reply.result({"tools": [{"name": "b"}, 7]})

    async def scenario(on: Any, client: Any) -> None:
        assert [tool["name"] for tool in await client.list_tools()] == ["a", "b"]

    against(loop, scripted(tools_list=page), scenario)


def tool_with(schema: Any) -> Script:
    return answers({"tools": [{"name": "t", "inputSchema": {"type": "object"}, "outputSchema": schema}]})


COUNT = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


@pytest.mark.parametrize("as_task", [False, True])
@pytest.mark.parametrize(
    ("result", "says"),
    [
        ({"content": [], "structuredContent": {"n": "x"}}, "structuredContent.n"),
        ({"content": [], "structuredContent": {}}, "'n' is a required property"),
        ({"content": []}, "structuredContent is missing"),
        ({"content": [], "structuredContent": {"n": 1}}, None),
        ({"content": [], "isError": True}, None),
    ],
)
def test_a_final_result_is_held_to_its_output_schema(
    loop: str, result: Any, says: str | None, as_task: bool
) -> None:
    """REQ.8, trap 10: a task's handle is no result yet."""
    final = answers(task("completed", result=result))
    server = scripted(
        tools_list=tool_with(COUNT),
        tools_call=handle if as_task else answers(result),
        tasks_get=final,
    )
    outcome = outcome_of_call(loop, server, listen=False)
    if says is None:
        assert isinstance(outcome, Completed)
    else:
        assert isinstance(outcome, Failed)
        assert says in outcome.message
        assert (outcome.fault, outcome.data["content"]) == (Fault.SERVER, [])


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "nonsense"},
        {"$schema": "https://unknown.example/schema"},
        {"$schema": 7},
        {"$ref": "http://127.0.0.1:9/fetched"},
        {"$ref": "#"},
        {"type": "string", "pattern": "("},
        "not an object",
    ],
)
def test_an_output_schema_that_is_none_checks_nothing(loop: str, schema: Any) -> None:
    """And fetches nothing."""
    result = {"content": [], "structuredContent": "x"}
    server = scripted(tools_list=tool_with(schema), tools_call=answers(result))
    assert isinstance(outcome_of_call(loop, server), Completed)


# -- questions that were not invited -------------------------------------------------------------------------

QUESTION = {
    "method": "elicitation/create",
    "params": {"message": "Password?", "requestedSchema": {"type": "object", "properties": {}}},
}


def test_an_uninvited_question_before_a_task_is_cancelled(loop: str) -> None:
    """REQ.4: never silently accepted."""
    asks = answers({"resultType": "input_required", "inputRequests": {"k": QUESTION}, "requestState": "s"})
    server = scripted(tools_call=one_after_the_other(asks, answers(DONE)))
    assert isinstance(outcome_of_call(loop, server), Completed)
    first, second = server.all("tools/call")
    assert "inputResponses" not in first.params
    assert second.params["inputResponses"] == {"k": {"action": "cancel"}}
    assert second.params["requestState"] == "s"
    assert second.message["id"] != first.message["id"]


def test_an_uninvited_question_of_a_task_is_cancelled(loop: str) -> None:
    server = scripted(tools_call=handle, tasks_update=answers({}))

    def polled(reply: Reply) -> None:
        if server.count("tasks/update"):
            done(reply)
        else:
            reply.result(task("input_required", inputRequests={"k": QUESTION}))

    server.scripts["tasks/get"] = polled
    assert isinstance(outcome_of_call(loop, server), Completed)
    [update] = server.all("tasks/update")
    assert update.params["inputResponses"] == {"k": {"action": "cancel"}}


def test_a_question_is_asked_once_however_often_it_is_seen(loop: str) -> None:
    """REQ.4, also when an update fails and is sent again."""
    asked: list[str] = []
    update = one_after_the_other(lambda reply: reply.http(status="503 Busy"), answers({}))
    server = scripted(tools_call=handle, tasks_update=update)

    def polled(reply: Reply) -> None:
        if server.count("tasks/update") > 1:
            done(reply)
        else:
            reply.result(task("input_required", inputRequests={"k": QUESTION}))

    async def answer(request: Any) -> Any:
        asked.append(request.key)
        return accept()

    server.scripts["tasks/get"] = polled
    assert isinstance(outcome_of_call(loop, server, answer=answer), Completed)
    assert asked == ["k"]
    given = [one.params["inputResponses"] for one in server.all("tasks/update")]
    assert given == [{"k": {"action": "accept", "content": {}}}] * len(given)


# -- schemas that would keep a client busy -------------------------------------------------------------------


def doubling(depth: int) -> dict[str, Any]:
    """Return a small schema that takes two to the power of ``depth`` steps."""
    twice = {f"a{level}": {"allOf": [{"$ref": f"#/$defs/a{level + 1}"}] * 2} for level in range(depth)}
    return {"$ref": "#/$defs/a0", "$defs": {**twice, f"a{depth}": {"type": "object"}}}


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": {"pattern": "(a+)+$"}}},
        {"patternProperties": {"(a+)+$": {}}},
        {"patternProperties": {"(a+)+$": {}}, "additionalProperties": False},
        doubling(64),
        {**doubling(64), "unevaluatedProperties": False},
        {"properties": {f"p{number}": {"type": "string", "minLength": 1} for number in range(20_000)}},
        {"$ref": "#"},
        {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"},
    ],
)
def test_req8_an_output_schema_that_takes_for_ever_checks_nothing(schema: dict[str, Any]) -> None:
    """LIM.3: no server makes its clients run a regular expression, or follow references without end."""
    tool = {"name": "slow", "outputSchema": schema}
    result = {"structuredContent": {"a": "a" * 10_000 + "!", "a" * 10_000 + "!": 1}}
    assert OutputSchemas().problem(tool, result) is None


@pytest.mark.parametrize(
    "schema",
    [{"not": {"pattern": "^b"}}, {"oneOf": [{"pattern": "^a"}, {"pattern": "^b"}]}],
)
def test_req8_a_pattern_that_is_not_run_refuses_nothing(schema: dict[str, Any]) -> None:
    tool = {"name": "choosy", "outputSchema": {"properties": {"a": schema}}}
    assert OutputSchemas().problem(tool, {"structuredContent": {"a": "abc"}}) is None


def test_req8_the_rest_of_a_schema_with_a_pattern_is_checked() -> None:
    schema = {
        "properties": {"a": {"type": "string", "pattern": "^b", "maxLength": 2}, "b": {"type": "string"}}
    }
    tool = {"name": "tidy", "outputSchema": schema}
    said = OutputSchemas().problem(tool, {"structuredContent": {"a": "abc", "b": 1}})
    assert said is not None
    assert "structuredContent.a: 'abc' is too long" in said
    assert "structuredContent.b: 1 is not of type 'string'" in said
