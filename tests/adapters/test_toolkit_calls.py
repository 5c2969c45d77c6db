"""What a handler and the work of a task can do: know, notify, offer, report, ask."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import trio
from mcp_tasks_adapters import (
    Answer,
    ProtocolError,
    ReportRejected,
    Server,
    TaskContext,
    ToolCall,
    ToolError,
    elicit,
    elicit_url,
    list_roots,
    sample,
)

from tests.adapters.driver_harness import (
    ELICITATION,
    YES,
    AsyncioLoop,
    World,
    on_both_loops,
    on_trio,
    served,
    texts,
    working,
)


async def nothing(call: ToolCall) -> None:
    return None


# -- what a call knows ---------------------------------------------------------------------------------------


@on_trio
async def test_a_call_knows_its_request(world: World) -> None:
    seen: list[ToolCall] = []

    async def handler(call: ToolCall) -> None:
        seen.append(call)

    server = served(handler)
    server.principal = lambda facts: "ann"
    world.serve(server)
    await world.ask(
        "tools/call",
        {"name": "tool", "arguments": {"a": [1]}, "later": True},
        capabilities=ELICITATION,
        meta={"example.com/trace": "t"},
    )
    [call] = seen
    assert call.arguments == {"a": [1]}
    assert call.params["later"] is True
    assert call.params["_meta"]["example.com/trace"] == "t"
    assert call.client_capabilities["elicitation"] == {}
    assert call.principal == "ann"
    assert call.can_create_task is True
    assert call.answers == {}
    assert call.state is None


@on_trio
async def test_progress_goes_to_callers_who_asked_for_it(world: World) -> None:
    async def handler(call: ToolCall) -> str:
        await call.progress(1, 4)
        await call.progress(2, message="half")
        return "done"

    world.serve(served(handler))
    listening = await world.call("tool", meta={"progressToken": 7})
    assert [message["params"] for message in listening.sent] == [
        {"progressToken": 7, "progress": 1, "total": 4},
        {"progressToken": 7, "progress": 2, "message": "half"},
    ]
    assert (await world.call("tool")).sent == []


@on_trio
async def test_log_messages_go_to_callers_who_asked_for_their_level(world: World) -> None:
    async def handler(call: ToolCall) -> str:
        await call.log("debug", "warming up")
        await call.log("error", {"lamp": 3}, logger="farm")
        return "done"

    world.serve(served(handler))
    listening = await world.call("tool", meta={"io.modelcontextprotocol/logLevel": "info"})
    assert [(message["method"], message["params"]) for message in listening.sent] == [
        ("notifications/message", {"level": "error", "data": {"lamp": 3}, "logger": "farm"})
    ]
    assert (await world.call("tool")).sent == []


@on_trio
async def test_what_cannot_be_notified_is_the_tools_error(world: World) -> None:
    async def handler(call: ToolCall) -> str:
        if call.arguments["what"] == "level":
            await call.log("loud", "x")
        await call.progress(float("nan"))
        return "done"

    world.serve(served(handler))
    for what, complaint in [("level", "level is one of debug"), ("progress", "not JSON")]:
        result = (await world.call("tool", {"what": what})).result
        assert result["isError"] is True
        assert complaint in texts(result)[0]


# -- offering a task -----------------------------------------------------------------------------------------


@on_trio
async def test_a_caller_without_tasks_gets_none(world: World) -> None:
    """NEG.5: offering one all the same is the author's error, and says how to avoid it."""

    async def handler(call: ToolCall) -> Any:
        return call.task(lambda task: nothing(call)) if not call.arguments.get("careful") else "at once"

    world.serve(served(handler))
    assert (await world.call("tool")).result["resultType"] == "task"
    result = (await world.call("tool", tasks=False)).result
    assert result["isError"] is True
    assert "call.can_create_task" in texts(result)[0]


@on_trio
async def test_a_required_tool_never_sees_a_caller_without_tasks(world: World) -> None:
    async def handler(call: ToolCall) -> Any:
        assert call.can_create_task
        return "at once"

    world.serve(served(handler, task="required"))
    assert (await world.call("tool", tasks=False)).error["code"] == -32021
    assert texts((await world.call("tool")).result) == ["at once"]


@on_trio
async def test_a_forbidden_tool_is_never_offered_a_task(world: World) -> None:
    async def handler(call: ToolCall) -> str:
        return str(call.can_create_task)

    world.serve(served(handler, task="forbidden"))
    assert texts((await world.call("tool")).result) == ["False"]


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({"ttl_ms": 0}, "ValueError: ttl_ms must be positive"),
        ({"ttl_ms": 1.5}, "TypeError: ttl_ms is an integer"),
        ({"ttl_ms": True}, "TypeError: ttl_ms is an integer"),
        ({"poll_interval_ms": -1}, "ValueError: poll_interval_ms must be positive"),
        ({"status_message": 3}, "TypeError: status_message is a string"),
        ({"status_message": "\ud800"}, "ValueError: status_message has a lone surrogate"),
    ],
)
def test_an_impossible_offer_is_the_tools_error(options: dict[str, Any], kind: str) -> None:
    @on_trio
    async def check(world: World) -> None:
        async def handler(call: ToolCall) -> Any:
            return call.task(lambda task: nothing(call), **options)

        world.serve(served(handler))
        result = (await world.call("tool")).result
        assert result["isError"] is True
        assert texts(result)[0].startswith(kind)

    check()


@on_both_loops
async def test_an_offer_says_how_the_task_begins(world: World) -> None:
    release = world.loop.event()

    async def run(task: TaskContext) -> str:
        await release.wait()
        return "done"

    async def handler(call: ToolCall) -> Any:
        return call.task(run, status_message="Queued", ttl_ms=None, poll_interval_ms=250)

    world.serve(served(handler))
    view = await world.get(await world.create("tool"))
    assert view["status"] == "working"
    assert view["statusMessage"] == "Queued"
    assert view["ttlMs"] is None
    assert view["pollIntervalMs"] == 250
    release.set()


# -- the work of a task --------------------------------------------------------------------------------------


@on_both_loops
async def test_what_the_work_returns_is_the_tasks_result(world: World) -> None:
    async def run(task: TaskContext) -> str:
        return f"{task.arguments['scene']} done"

    world.serve(working(run))
    view = await world.get(await world.create("tool", {"scene": "beach"}))
    assert view["status"] == "completed"
    assert texts(view["result"]) == ["beach done"]


@on_both_loops
async def test_updates_are_durable_when_they_return(world: World) -> None:
    go_on = world.loop.event()

    async def run(task: TaskContext) -> str:
        await task.update("Frame 1/2", ttl_ms=90_000, poll_interval_ms=50)
        await task.update(poll_interval_ms=None)
        await go_on.wait()
        await task.update(None, ttl_ms=None)
        await world.loop.event().wait()
        return "done"

    world.serve(working(run))
    task_id = await world.create("tool")
    view = await world.get(task_id)
    assert (view["statusMessage"], view["ttlMs"]) == ("Frame 1/2", 90_000)
    assert "pollIntervalMs" not in view
    go_on.set()
    view = await world.get(task_id)
    assert "statusMessage" not in view
    assert view["ttlMs"] is None
    await world.cancel(task_id)


@on_both_loops
async def test_a_busy_worker_does_not_keep_the_loop_to_itself(world: World) -> None:
    """A store that answers at once must not turn update() into a way to starve everybody."""
    stop = False
    turns = 0

    async def run(task: TaskContext) -> str:
        nonlocal turns
        while turns < 1000:
            turns += 1
            await task.update(str(turns))
            if stop:
                return "stopped"
        return "nobody else ever ran"

    world.serve(working(run))
    created = world.start("tools/call", {"name": "tool"})
    while not turns:
        await world.loop.checkpoint()
    stop = True
    await world.settle()
    view = await world.get(created.result["taskId"])
    assert texts(view["result"]) == ["stopped"]


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({"ttl_ms": 0}, ValueError),
        ({"ttl_ms": "1"}, TypeError),
        ({"poll_interval_ms": -5}, ValueError),
        ({"status_message": 5}, TypeError),
        ({"status_message": "\udfff"}, ValueError),
    ],
)
def test_an_impossible_update_is_refused_on_the_spot(changes: dict[str, Any], kind: type[Exception]) -> None:
    @on_trio
    async def check(world: World) -> None:
        async def run(task: TaskContext) -> str:
            with pytest.raises(kind):
                await task.update(**changes)
            return "done"

        world.serve(working(run))
        view = await world.get(await world.create("tool"))
        assert texts(view["result"]) == ["done"]

    check()


@on_both_loops
async def test_a_tool_error_completes_the_task(world: World) -> None:
    """LIFE.2: ``failed`` is for protocol errors alone."""

    async def run(task: TaskContext) -> str:
        raise ToolError("out of lamps")

    world.serve(working(run))
    view = await world.get(await world.create("tool"))
    assert view["status"] == "completed"
    assert view["result"]["isError"] is True
    assert texts(view["result"]) == ["out of lamps"]


@on_both_loops
async def test_an_exception_completes_the_task(world: World) -> None:
    async def run(task: TaskContext) -> str:
        raise ZeroDivisionError("division by zero")

    world.serve(working(run))
    view = await world.get(await world.create("tool"))
    assert view["status"] == "completed"
    assert view["result"]["isError"] is True
    assert texts(view["result"]) == ["ZeroDivisionError: division by zero"]


@on_both_loops
async def test_a_protocol_error_fails_the_task(world: World) -> None:
    """LIFE.2: exactly that code, message and data."""

    async def run(task: TaskContext) -> str:
        raise ProtocolError(-32077, "The farm burned down", {"lamps": 0})

    world.serve(working(run))
    view = await world.get(await world.create("tool"))
    assert view["status"] == "failed"
    assert view["error"] == {"code": -32077, "message": "The farm burned down", "data": {"lamps": 0}}
    assert view["statusMessage"] == "The farm burned down"
    assert "result" not in view


@on_both_loops
async def test_a_result_that_is_no_json_completes_the_task_with_an_error(world: World) -> None:
    async def run(task: TaskContext) -> Any:
        return {"content": [{"type": "text", "text": object()}]}

    world.serve(working(run))
    view = await world.get(await world.create("tool"))
    assert view["status"] == "completed"
    assert view["result"]["isError"] is True
    assert "not JSON" in texts(view["result"])[0]


@on_both_loops
async def test_a_result_is_what_it_was_when_it_was_returned(world: World) -> None:
    """LIFE.1: a finished task does not change with the author's objects."""
    shared: dict[str, Any] = {"content": [{"type": "text", "text": "first"}]}

    async def run(task: TaskContext) -> Any:
        return shared

    world.serve(working(run))
    task_id = await world.create("tool")
    before = await world.get(task_id)
    shared["content"][0]["text"] = "second"
    assert await world.get(task_id) == before


@on_both_loops
async def test_a_task_that_has_ended_takes_no_reports(world: World) -> None:
    kept: list[TaskContext] = []

    async def run(task: TaskContext) -> str:
        kept.append(task)
        return "done"

    world.serve(working(run))
    await world.create("tool", capabilities=ELICITATION)
    with pytest.raises(ReportRejected, match="ended"):
        await kept[0].update("still here")
    with pytest.raises(ReportRejected, match="ended"):
        await kept[0].request_input({"q": elicit(message="?")})


# -- asking --------------------------------------------------------------------------------------------------


@on_both_loops
async def test_several_questions_are_answered_one_at_a_time(world: World) -> None:
    """INP.3."""
    heard: list[Mapping[str, Answer]] = []

    async def run(task: TaskContext) -> str:
        heard.append(await task.request_input({"a": elicit(message="A?"), "b": elicit(message="B?")}))
        return "done"

    world.serve(working(run))
    task_id = await world.create("tool", capabilities=ELICITATION)
    view = await world.get(task_id)
    assert view["status"] == "input_required"
    assert view["inputRequests"] == {"a": elicit(message="A?"), "b": elicit(message="B?")}
    await world.update(task_id, {"b": {"action": "decline"}})
    assert list((await world.get(task_id))["inputRequests"]) == ["a"]
    assert heard == []
    await world.update(task_id, {"a": YES})
    [answers] = heard
    assert list(answers) == ["a", "b"]
    assert answers["a"].accepted
    assert answers["b"].declined
    assert (await world.get(task_id))["status"] == "completed"


@on_both_loops
async def test_a_name_may_be_asked_again(world: World) -> None:
    """INP.1: the peer sees another key, the author the same name."""

    async def run(task: TaskContext) -> str:
        rounds = 0
        while True:
            rounds += 1
            answers = await task.request_input({"confirm": elicit(message="Sure?")})
            if answers["confirm"].accepted:
                return str(rounds)

    world.serve(working(run))
    task_id = await world.create("tool", capabilities=ELICITATION)
    keys = []
    for action in ("decline", "cancel", "accept"):
        [key] = (await world.get(task_id))["inputRequests"]
        keys.append(key)
        await world.update(task_id, {key: {"action": action}})
    assert len(set(keys)) == 3
    assert texts((await world.get(task_id))["result"]) == ["3"]


@on_trio
async def test_concurrent_questions_each_get_their_own_answers(world: World) -> None:
    heard: dict[str, str] = {}

    async def ask(task: TaskContext, who: str) -> None:
        answers = await task.request_input({"name": elicit(message=who)})
        heard[who] = answers["name"].content["is"]

    async def run(task: TaskContext) -> str:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask, task, "first")
            nursery.start_soon(ask, task, "second")
        return "done"

    world.serve(working(run))
    task_id = await world.create("tool", capabilities=ELICITATION)
    asked = (await world.get(task_id))["inputRequests"]
    assert len(asked) == 2
    for key in reversed(list(asked)):
        content = {"is": f"answer to {asked[key]['params']['message']}"}
        await world.update(task_id, {key: {"action": "accept", "content": content}})
    assert heard == {"first": "answer to first", "second": "answer to second"}


@on_both_loops
async def test_a_question_that_is_given_up_is_withdrawn(world: World) -> None:
    """A timeout of the author's own; the task goes on working, and no answer comes any more."""
    go_on = world.loop.event()

    async def run(task: TaskContext) -> str:
        timeout = world.loop.timeout(1.0)
        if isinstance(world.loop, AsyncioLoop):
            async with timeout:
                await task.request_input({"q": elicit(message="?")})
        else:
            with timeout:
                await task.request_input({"q": elicit(message="?")})
        await go_on.wait()
        return "went on"

    world.serve(working(run))
    task_id = await world.create("tool", capabilities=ELICITATION)
    assert (await world.get(task_id))["status"] == "input_required"
    while (view := await world.get(task_id))["status"] == "input_required":
        await world.loop.sleep(0.01)
    assert view["status"] == "working"
    assert "inputRequests" not in view
    assert (await world.update(task_id, {"q": YES})).result["resultType"] == "complete"
    go_on.set()
    assert texts((await world.get(task_id))["result"]) == ["went on"]


@on_both_loops
async def test_asking_for_what_the_caller_never_declared_is_the_authors_error(world: World) -> None:
    """INP.2."""

    async def run(task: TaskContext) -> str:
        await task.request_input({"q": elicit(message="?")})
        return "done"

    world.serve(working(run))
    view = await world.get(await world.create("tool"))
    assert view["status"] == "completed"
    assert view["result"]["isError"] is True
    assert "elicitation" in texts(view["result"])[0]


@on_both_loops
async def test_asking_for_nothing_or_nonsense_is_refused(world: World) -> None:
    async def run(task: TaskContext) -> str:
        with pytest.raises(ValueError, match="at least one"):
            await task.request_input({})
        with pytest.raises(ValueError, match="not JSON"):
            await task.request_input({"q": {"method": "elicitation/create", "params": {"message": object()}}})
        with pytest.raises(ReportRejected):
            await task.request_input({"q": {"method": "no/such"}})
        return "done"

    world.serve(working(run))
    view = await world.get(await world.create("tool", capabilities=ELICITATION))
    assert texts(view["result"]) == ["done"]


def test_the_builders_write_the_specifications_shapes() -> None:
    form = {"type": "object", "properties": {"name": {"type": "string"}}}
    assert elicit(message="Who?", schema=form) == {
        "method": "elicitation/create",
        "params": {"mode": "form", "message": "Who?", "requestedSchema": form},
    }
    assert elicit(message="Sure?")["params"]["requestedSchema"] == {"type": "object", "properties": {}}
    assert elicit_url(message="Sign in", url="https://example.com/in") == {
        "method": "elicitation/create",
        "params": {"mode": "url", "message": "Sign in", "url": "https://example.com/in"},
    }
    assert sample("Capital of France?", max_tokens=10, systemPrompt="Be brief.") == {
        "method": "sampling/createMessage",
        "params": {
            "messages": [{"role": "user", "content": {"type": "text", "text": "Capital of France?"}}],
            "maxTokens": 10,
            "systemPrompt": "Be brief.",
        },
    }
    assert sample([{"role": "user", "content": []}], max_tokens=1)["params"]["messages"] == [
        {"role": "user", "content": []}
    ]
    assert list_roots() == {"method": "roots/list", "params": {}}


@pytest.mark.parametrize(
    ("response", "said", "content"),
    [
        ({"action": "accept", "content": {"name": "Ann"}}, "accepted", {"name": "Ann"}),
        ({"action": "accept"}, "accepted", None),
        ({"action": "decline"}, "declined", None),
        ({"action": "cancel"}, "cancelled", None),
        ({"role": "assistant", "content": {"type": "text", "text": "Paris"}, "model": "m"}, "accepted", ...),
        ({"roots": []}, "accepted", None),
    ],
)
def test_an_answer_is_one_of_three(response: dict[str, Any], said: str, content: Any) -> None:
    answer = Answer(response)
    assert [word for word in ("accepted", "declined", "cancelled") if getattr(answer, word)] == [said]
    assert answer.content == (response["content"] if content is ... else content)
    assert answer.response == response


# -- asking before there is a task (MRTR) --------------------------------------------------------------------


@on_both_loops
async def test_a_tool_may_ask_first(world: World) -> None:
    """INP.4: the handler runs again, with the answers and with the state it left."""

    async def handler(call: ToolCall) -> Any:
        if "name" not in call.answers:
            return call.input_required({"name": elicit(message="Who?")}, state={"asked": 1})
        return f"Hello {call.answers['name'].content['name']} {call.state['asked']}"

    world.serve(served(handler))
    first = (await world.call("tool", capabilities=ELICITATION)).result
    assert first["resultType"] == "input_required"
    assert first["inputRequests"] == {"name": elicit(message="Who?")}
    again = await world.ask(
        "tools/call",
        {
            "name": "tool",
            "arguments": {},
            "requestState": first["requestState"],
            "inputResponses": {"name": {"action": "accept", "content": {"name": "Ann"}}},
        },
        capabilities=ELICITATION,
        id=2,
    )
    assert texts(again.result) == ["Hello Ann 1"]


@on_both_loops
async def test_a_handler_that_changes_its_arguments_can_still_be_answered(world: World) -> None:
    """The state is sealed over the arguments as the caller sent them."""

    async def handler(call: ToolCall) -> Any:
        call.arguments["scene"] = call.arguments["scene"].upper()  # type: ignore[index]
        if not call.answers:
            return call.input_required({"ok": elicit(message="?")})
        return call.arguments["scene"]

    world.serve(served(handler))
    params = {"name": "tool", "arguments": {"scene": "beach"}}
    first = (await world.ask("tools/call", params, capabilities=ELICITATION)).result
    retry = {**params, "requestState": first["requestState"], "inputResponses": {"ok": YES}}
    again = await world.ask("tools/call", retry, capabilities=ELICITATION, id=2)
    assert texts(again.result) == ["BEACH"]


@on_trio
async def test_asking_nonsense_is_the_tools_error(world: World) -> None:
    async def handler(call: ToolCall) -> Any:
        requests = {"q": {"method": "no/such"}} if call.arguments["what"] == "requests" else {}
        return call.input_required(requests, state=object())

    world.serve(served(handler))
    for what in ("requests", "state"):
        result = (await world.call("tool", {"what": what}, capabilities=ELICITATION)).result
        assert result["isError"] is True
        assert texts(result)[0].startswith("ValueError")


# -- other methods -------------------------------------------------------------------------------------------


@on_both_loops
async def test_other_methods_are_the_authors(world: World) -> None:
    server = Server("test")

    @server.on_request("prompts/get")
    async def get_prompt(request: Any) -> dict[str, Any]:
        assert request.method == "prompts/get"
        return {"messages": [{"role": "user", "content": {"type": "text", "text": request.params["name"]}}]}

    world.serve(server)
    result = (await world.ask("prompts/get", {"name": "greet"})).result
    assert result["messages"][0]["content"]["text"] == "greet"
    assert result["resultType"] == "complete"
    assert (await world.ask("prompts/list")).error["code"] == -32601


@on_both_loops
async def test_a_handler_may_fail_with_an_error_of_its_own(world: World) -> None:
    async def missing(request: Any) -> Any:
        raise ProtocolError(-32602, "No such prompt")

    async def broken(request: Any) -> Any:
        raise ValueError("secret detail")

    async def odd(request: Any) -> Any:
        return "a string"

    server = Server("test")
    server.on_request("prompts/get", missing)
    server.on_request("prompts/list", broken)
    server.on_request("resources/list", odd)
    world.serve(server)
    assert (await world.ask("prompts/get", {"name": "x"})).error == {
        "code": -32602,
        "message": "No such prompt",
    }
    for method in ("prompts/list", "resources/list"):
        error = (await world.ask(method)).error
        assert error["code"] == -32603
        assert "secret" not in error["message"]


@on_both_loops
async def test_a_prompt_may_ask_first_as_well(world: World) -> None:
    async def get_prompt(request: Any) -> Any:
        if not request.answers:
            return request.input_required({"who": elicit(message="Who?")}, state="s")
        return {"messages": [], "who": request.answers["who"].content["name"], "state": request.state}

    server = Server("test")
    server.on_request("prompts/get", get_prompt)
    world.serve(server)
    first = (await world.ask("prompts/get", {"name": "p"}, capabilities=ELICITATION)).result
    retry = {
        "name": "p",
        "requestState": first["requestState"],
        "inputResponses": {"who": {"action": "accept", "content": {"name": "Ann"}}},
    }
    result = (await world.ask("prompts/get", retry, capabilities=ELICITATION, id=2)).result
    assert (result["who"], result["state"]) == ("Ann", "s")


@on_both_loops
async def test_a_method_that_may_not_ask_fails_alone(world: World) -> None:
    async def complete(request: Any) -> Any:
        return request.input_required({"who": elicit(message="Who?")})

    server = Server("test")
    server.on_request("completion/complete", complete)
    world.serve(server)
    assert (await world.ask("completion/complete", capabilities=ELICITATION)).error["code"] == -32603
    assert (await world.ask("server/discover")).result["resultType"] == "complete"


@pytest.mark.parametrize(
    "method",
    [
        "tools/call",
        "tools/list",
        "server/discover",
        "subscriptions/listen",
        "tasks/get",
        "tasks/list",
        "initialize",
    ],
)
def test_what_the_engine_answers_is_not_for_a_handler(method: str) -> None:
    with pytest.raises(ValueError, match=method):
        Server("test").on_request(method, nothing)  # type: ignore[arg-type]


def test_a_method_has_one_handler_and_it_is_async() -> None:
    server = Server("test")
    server.on_request("prompts/list", nothing)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="already"):
        server.on_request("prompts/list", nothing)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="async"):
        server.on_request("prompts/get", lambda request: {})  # type: ignore[arg-type, return-value]


@on_both_loops
async def test_what_a_handler_does_to_what_it_was_given_reaches_no_record(world: World) -> None:
    """TRAP 7 and INP.2: a task keeps its call's capabilities, whatever its handler did to its own."""

    async def run(task: TaskContext) -> str:
        await task.request_input({"q": sample("?", max_tokens=1)})
        return "asked what was not declared"

    async def handler(call: ToolCall) -> Any:
        dict.update(call.arguments, injected=1)
        dict.update(call.client_capabilities, sampling={})
        return call.task(run)

    world.serve(served(handler))
    task_id = await world.create("tool", {})
    view = await world.get(task_id)
    assert view["result"]["isError"] is True
    assert "declare" in texts(view["result"])[0]
