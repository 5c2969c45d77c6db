"""What a server's author declares, what a handler returns and raises, and what a peer sees of it."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import pytest
from mcp_tasks_adapters import (
    Limits,
    ProtocolError,
    Server,
    ToolCall,
    ToolError,
    Unauthorized,
    elicit,
    error_text,
    structured,
    text,
)
from mcp_tasks_adapters.toolkit.schemas import Schema

from tests.adapters.driver_harness import (
    ELICITATION,
    YES,
    World,
    logged,
    on_both_loops,
    on_trio,
    served,
    texts,
)

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


async def nothing(call: ToolCall) -> None:
    return None


def declared(server: Server, name: str) -> Mapping[str, Any]:
    return next(tool.definition for tool in server.declarations() if tool.name == name)


# -- declaring tools -----------------------------------------------------------------------------------------


def test_a_tool_is_called_and_described_as_its_function_is() -> None:
    server = Server("test")

    @server.tool()
    async def render(call: ToolCall) -> str:
        """Render frames.

        With care.
        """
        return "done"

    assert declared(server, "render") == {
        "name": "render",
        "description": "Render frames.\n\nWith care.",
        "inputSchema": {"type": "object"},
    }


def test_everything_said_of_a_tool_is_shown() -> None:
    server = Server("test")
    server.tool(
        "weather.now",
        title="Weather",
        description="The weather",
        input_schema=CITY,
        output_schema={"type": "number"},
        annotations={"readOnlyHint": True},
        icons=[{"src": "https://example.com/icon.png"}],
        meta={"example.com/cost": 3},
    )(nothing)
    assert declared(server, "weather.now") == {
        "name": "weather.now",
        "title": "Weather",
        "description": "The weather",
        "inputSchema": CITY,
        "outputSchema": {"type": "number"},
        "annotations": {"readOnlyHint": True},
        "icons": [{"src": "https://example.com/icon.png"}],
        "_meta": {"example.com/cost": 3},
    }


def test_the_decorator_leaves_the_function_alone() -> None:
    assert Server("test").tool()(nothing) is nothing


def test_tools_keep_the_order_of_their_declaration() -> None:
    server = Server("test")
    for name in ("b", "c", "a"):
        server.tool(name)(nothing)
    assert [tool.name for tool in server.declarations()] == ["b", "c", "a"]


def test_what_was_declared_does_not_change_with_the_authors_objects() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    server = served(nothing, input_schema=schema)
    schema["properties"] = {}
    assert declared(server, "tool")["inputSchema"]["properties"] == {"n": {"type": "integer"}}


@pytest.mark.parametrize("task", ["forbidden", "optional", "required"])
def test_task_support_is_one_of_three_words(task: str) -> None:
    server = served(nothing, task=task)
    assert server.declarations()[0].task.value == task


@pytest.mark.parametrize("task", ["Optional", "", "always"])
def test_any_other_word_is_refused(task: str) -> None:
    with pytest.raises(ValueError, match="forbidden, optional, required"):
        served(nothing, task=task)


@pytest.mark.parametrize("name", ["", "two words", "a/b", "é", "x" * 129])
def test_a_malformed_name_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="tool name"):
        Server("test").tool(name)(nothing)


def test_a_name_is_given_once() -> None:
    server = served(nothing)
    with pytest.raises(ValueError, match="there is a tool tool already"):
        server.tool("tool")(nothing)


def test_a_handler_is_an_async_function() -> None:
    def render(call: ToolCall) -> str:
        return "done"

    with pytest.raises(TypeError, match="tool render: the handler must be an async function"):
        Server("test").tool()(render)  # type: ignore[type-var]


def test_anything_that_is_called_like_an_async_function_will_do() -> None:
    class Renderer:
        async def __call__(self, call: ToolCall) -> str:
            return "done"

        async def render(self, call: ToolCall) -> str:
            return "done"

    server = Server("test")
    server.tool("object")(Renderer())
    server.tool("method")(Renderer().render)
    server.tool("partial")(functools.partial(nothing))
    assert list(server.tools) == ["object", "method", "partial"]


def test_the_decorator_wants_its_parentheses() -> None:
    with pytest.raises(TypeError, match="parentheses"):
        Server("test").tool(nothing)  # type: ignore[arg-type]


# -- schemas -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schema", "complaint"),
    [
        ({}, '"type": "object"'),
        ({"type": "array"}, '"type": "object"'),
        ({"type": "object", "required": "city"}, r"not a valid schema, at \$\.required"),
        ({"type": "object", "$schema": "https://example.com/mine"}, "dialect 'https://example.com/mine'"),
        (
            {"type": "object", "$ref": "https://example.com/schema"},
            "'https://example.com/schema' leads nowhere",
        ),
        ({"type": "object", "properties": {"a": {"$ref": "#/$defs/b"}}}, "'#/\\$defs/b' leads nowhere"),
        ({"type": "object", "allOf": [{"items": {"$ref": "#name"}}]}, "'#name' leads nowhere"),
        ({"type": "object", "properties": {"a": {"type": "number", "x-mcp-header": "A"}}}, "x-mcp-header"),
    ],
)
def test_a_bad_input_schema_is_refused_when_it_is_declared(schema: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        served(nothing, input_schema=schema)


def test_a_bad_output_schema_is_refused_too() -> None:
    with pytest.raises(ValueError, match="tool tool: not a valid schema"):
        served(nothing, output_schema={"type": "strange"})


@pytest.mark.parametrize(
    "schema",
    [
        {"$defs": {"name": {"type": "string"}}, "properties": {"a": {"$ref": "#/$defs/name"}}},
        {"properties": {"a": {"$ref": "https://json-schema.org/draft/2020-12/schema"}}},
        {"properties": {"a": {"$anchor": "here"}, "b": {"$ref": "#here"}}},
        # "$ref" as the name of a property, or in plain data, refers to nothing.
        {"properties": {"$ref": {"type": "string"}}},
        {"properties": {"a": {"const": {"$ref": "#/nowhere"}}}},
        {"$schema": "http://json-schema.org/draft-07/schema#", "properties": {"a": {"type": "string"}}},
    ],
)
def test_references_within_the_schema_are_welcome(schema: dict[str, Any]) -> None:
    served(nothing, input_schema={"type": "object", **schema})


@on_trio
async def test_arguments_that_do_not_fit_never_reach_the_handler(world: World) -> None:
    """A tool execution error, which a model can learn from; not a protocol error."""

    async def handler(call: ToolCall) -> str:
        pytest.fail("the handler ran")

    schema = {
        "type": "object",
        "properties": {"frames": {"type": "array", "items": {"type": "integer"}}},
        "required": ["scene"],
        "additionalProperties": False,
    }
    world.serve(served(handler, input_schema=schema))
    result = (await world.call("tool", {"frames": [1, "two"], "extra": 1})).result
    assert result["isError"] is True
    [said] = texts(result)
    assert "arguments.frames[1]: 'two' is not of type 'integer'" in said
    assert "'scene' is a required property" in said
    assert "'extra' was unexpected" in said


@on_trio
async def test_a_wrong_argument_is_quoted_briefly(world: World) -> None:
    world.serve(served(nothing, input_schema=CITY))
    result = (await world.call("tool", {"city": ["x" * 10_000] * 10})).result
    assert result["isError"] is True
    assert len(texts(result)[0]) < 1000


@on_trio
async def test_the_dialect_is_the_one_the_schema_names(world: World) -> None:
    """In draft-07 ``items`` may be a list; 2020-12 says ``prefixItems`` and reads ``dependentRequired``."""

    async def handler(call: ToolCall) -> str:
        return "ran"

    server = Server("test")
    server.tool(
        "old",
        input_schema={
            "$schema": "http://json-schema.org/draft-07/schema#",
            "type": "object",
            "properties": {"pair": {"items": [{"type": "string"}]}},
        },
    )(handler)
    server.tool("new", input_schema={"type": "object", "dependentRequired": {"a": ["b"]}})(handler)
    world.serve(server)
    assert (await world.call("old", {"pair": [1]})).result["isError"] is True
    assert texts((await world.call("old", {"pair": ["1"]})).result) == ["ran"]
    assert (await world.call("new", {"a": 1})).result["isError"] is True
    assert texts((await world.call("new", {"a": 1, "b": 1})).result) == ["ran"]


UNIQUE = {"type": "object", "properties": {"them": {"uniqueItems": True}, "inner": {"$ref": "#"}}}


@pytest.mark.parametrize(
    ("items", "unique"),
    [
        ([], True),
        ([1, 2, "1", True, None, "true", "null"], True),
        ([1, 1.0], False),
        ([0, -0.0], False),
        ([1, True], True),
        ([[1], [True], [1.0]], False),
        ([{"a": 1, "b": [0]}, {"b": [0], "a": 1.0}], False),
        ([{"a": 1}, {"a": "1"}, {"b": 1}, {}], True),
        ("aa", True),
    ],
)
def test_items_are_unique_as_json_has_it(items: Any, unique: bool) -> None:
    schema = Schema(UNIQUE, owner="test")
    assert schema.problem({"them": items}, "arguments") == (
        None if unique else "arguments.them: has non-unique elements"
    )


@pytest.mark.parametrize("dialect", [{}, {"$schema": "https://json-schema.org/draft/2020-12/schema"}])
def test_many_items_are_found_unique_in_reasonable_time(dialect: dict[str, Any]) -> None:
    """LIM.3: comparing each with each other would take hours, in which nobody else is served."""
    schema = Schema({**UNIQUE, **dialect}, owner="test")
    items = [{"number": number} for number in range(20_000)]
    assert schema.problem({"them": items}, "arguments") is None
    assert schema.problem({"inner": {"them": items}}, "arguments") is None
    colliding = [number * (2**61 - 1) for number in range(20_000)]
    assert schema.problem({"them": colliding}, "arguments") is None


@on_trio
async def test_a_number_too_large_to_be_checked_is_the_callers_error(world: World) -> None:
    schema = {"type": "object", "properties": {"price": {"multipleOf": 0.01}}}
    world.serve(served(nothing, input_schema=schema))
    with logged() as lines:
        result = (await world.call("tool", {"price": 10**400})).result
    assert result["isError"] is True
    assert "too large" in texts(result)[0]
    assert lines == []


@on_trio
async def test_a_tool_without_a_schema_takes_any_arguments(world: World) -> None:
    async def handler(call: ToolCall) -> str:
        return ",".join(call.arguments)

    world.serve(served(handler))
    assert texts((await world.call("tool", {"a": 1, "b": None})).result) == ["a,b"]


# -- what a handler returns ----------------------------------------------------------------------------------


async def outcome(world: World, returned: Any, **options: Any) -> dict[str, Any]:
    """The result that a peer gets of a tool that returns this."""

    async def handler(call: ToolCall) -> Any:
        return returned

    world.serve(served(handler, **options))
    result = (await world.call("tool")).result
    assert result.pop("resultType") == "complete"
    result.pop("_meta", None)
    return result


@pytest.mark.parametrize(
    ("returned", "result"),
    [
        ("done", {"content": [{"type": "text", "text": "done"}]}),
        (None, {"content": []}),
        (text("a", "b"), {"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}),
        (error_text("no"), {"content": [{"type": "text", "text": "no"}], "isError": True}),
        (structured([1]), {"content": [{"type": "text", "text": "[1]"}], "structuredContent": [1]}),
        (structured(1, "one"), {"content": [{"type": "text", "text": "one"}], "structuredContent": 1}),
        ({"structuredContent": {"a": 1}}, structured({"a": 1})),
        ({"content": [], "custom": {"kept": None}}, {"content": [], "custom": {"kept": None}}),
        (MappingProxyType({"content": []}), {"content": []}),
    ],
)
def test_what_is_returned_is_the_result(returned: Any, result: dict[str, Any]) -> None:
    @on_trio
    async def check(world: World) -> None:
        assert await outcome(world, returned) == result

    check()


@pytest.mark.parametrize(
    ("returned", "problem"),
    [
        (42, "TypeError: a tool without an output schema returns text"),
        ({"answer": 42}, "TypeError: a tool without an output schema returns text"),
        ({"content": "text"}, "TypeError: a tool without an output schema returns text"),
        ({"content": [object()]}, "ValueError: not JSON: a value of type object"),
        ({"content": [{"score": float("nan")}]}, "ValueError: not JSON"),
        ({"content": [{1: "one"}]}, "ValueError: not JSON: a member name that is not a string"),
        ("\ud800", "ValueError: the text of a result has a lone surrogate"),
        ({"content": [], "resultType": "task"}, "ValueError: return call.task"),
        ({"content": [], "resultType": "input_required"}, "ValueError: return call.task"),
        ({"content": [], "_meta": 1}, "ValueError: the _meta of a result"),
    ],
)
def test_what_cannot_be_a_result_is_the_tools_error(returned: Any, problem: str) -> None:
    @on_trio
    async def check(world: World) -> None:
        result = await outcome(world, returned)
        assert result["isError"] is True
        assert texts(result)[0].startswith(problem)

    check()


WEATHER = {"type": "object", "properties": {"temperature": {"type": "number"}}, "required": ["temperature"]}


@pytest.mark.parametrize(
    ("schema", "returned"),
    [
        (WEATHER, {"temperature": 22.5}),
        (WEATHER, {"temperature": 22.5, "content": "sunny"}),
        ({"type": "array"}, [1, 2]),
        ({"type": "string"}, "sunny"),
        ({"type": ["null"]}, None),
        ({"type": "boolean"}, False),
    ],
)
def test_with_an_output_schema_a_value_is_structured_content(schema: dict[str, Any], returned: Any) -> None:
    @on_trio
    async def check(world: World) -> None:
        assert await outcome(world, returned, output_schema=schema) == structured(returned)

    check()


@pytest.mark.parametrize(
    ("returned", "problem"),
    [
        ({"temperature": "hot"}, "result.temperature: 'hot' is not of type 'number'"),
        ({}, "result: 'temperature' is a required property"),
        (text("22.5"), "no structured content"),
    ],
)
def test_a_result_that_breaks_the_output_schema_is_the_tools_error(returned: Any, problem: str) -> None:
    @on_trio
    async def check(world: World) -> None:
        result = await outcome(world, returned, output_schema=WEATHER)
        assert result["isError"] is True
        assert "structuredContent" not in result
        assert problem in texts(result)[0]

    check()


@on_trio
async def test_an_error_result_needs_no_structured_content(world: World) -> None:
    assert await outcome(world, error_text("no"), output_schema=WEATHER) == error_text("no")


# -- what a handler raises -----------------------------------------------------------------------------------


@on_both_loops
async def test_a_tool_error_is_told_word_for_word(world: World) -> None:
    async def handler(call: ToolCall) -> str:
        raise ToolError("The farm is closed on Sundays.")

    world.serve(served(handler))
    result = (await world.call("tool")).result
    assert result["isError"] is True
    assert texts(result) == ["The farm is closed on Sundays."]


@on_both_loops
async def test_any_other_exception_is_a_tool_error_without_a_traceback(world: World) -> None:
    """LIFE.2."""

    async def handler(call: ToolCall) -> str:
        scenes: dict[str, str] = {}
        return scenes["scene"]

    world.serve(served(handler))
    result = (await world.call("tool")).result
    assert result["isError"] is True
    assert texts(result) == ["KeyError: 'scene'"]


@on_both_loops
async def test_a_protocol_error_is_the_reply(world: World) -> None:
    async def handler(call: ToolCall) -> str:
        raise ProtocolError(-32050, "No such scene", {"scene": "x"})

    world.serve(served(handler))
    exchange = await world.call("tool")
    assert exchange.error == {"code": -32050, "message": "No such scene", "data": {"scene": "x"}}


@on_both_loops
async def test_even_an_exit_stops_nothing_but_the_call(world: World) -> None:
    async def handler(call: ToolCall) -> str:
        raise SystemExit(2)

    world.serve(served(handler))
    assert (await world.call("tool")).result["isError"] is True
    assert (await world.call("tool")).result["isError"] is True


@on_both_loops
async def test_nor_does_an_exit_in_a_group(world: World) -> None:
    async def handler(call: ToolCall) -> str:
        raise BaseExceptionGroup("nursery", [SystemExit(2)])

    world.serve(served(handler))
    result = (await world.call("tool")).result
    assert result["isError"] is True
    assert texts(result) == ["SystemExit: 2"]


@on_both_loops
async def test_an_exception_is_found_in_the_groups_around_it(world: World) -> None:
    """Nurseries and task groups wrap what their children raise."""

    async def handler(call: ToolCall) -> str:
        raise ExceptionGroup("outer", [ExceptionGroup("inner", [ToolError("closed")])])

    world.serve(served(handler))
    assert texts((await world.call("tool")).result) == ["closed"]


@on_both_loops
async def test_a_message_that_json_cannot_carry_is_escaped(world: World) -> None:
    async def handler(call: ToolCall) -> str:
        raise FileNotFoundError("scene\udcff.blend")

    world.serve(served(handler))
    assert texts((await world.call("tool")).result) == ["FileNotFoundError: scene\\udcff.blend"]


@on_trio
async def test_logs_say_where_but_not_what(world: World) -> None:
    """SEC.2: a message may hold payloads."""

    async def handler(call: ToolCall) -> str:
        raise ValueError(f"cannot open {call.arguments['secret']}")

    world.serve(served(handler))
    with logged() as lines:
        await world.call("tool", {"secret": "hunter2"})
    [line] = lines
    assert "tool tool raised ValueError" in line
    assert "test_toolkit.py" in line
    assert "hunter2" not in line


@pytest.mark.parametrize(
    ("code", "message", "data", "kind"),
    [
        ("-32000", "no", None, TypeError),
        (True, "no", None, TypeError),
        (-32000, b"no", None, TypeError),
        (-32000, "\ud800", None, ValueError),
        (-32000, "no", object(), ValueError),
    ],
)
def test_a_protocol_error_is_one_from_the_start(code: Any, message: Any, data: Any, kind: type) -> None:
    with pytest.raises(kind):
        ProtocolError(code, message, data)


def test_a_challenge_fits_a_header() -> None:
    assert Unauthorized("no", 'Bearer realm="farm"').www_authenticate == 'Bearer realm="farm"'
    with pytest.raises(ValueError, match="printable ASCII"):
        Unauthorized("no", "Bearer\r\nset-cookie: x")


# -- the server as a whole -----------------------------------------------------------------------------------


def test_settings_say_what_was_declared() -> None:
    server = Server(
        "farm",
        "2.1",
        title="Render farm",
        info={"websiteUrl": "https://example.com"},
        instructions="Be patient.",
        capabilities={"logging": {}, "prompts": {"listChanged": True}},
        limits=Limits(tasks=7),
    )
    server.on_request("prompts/get", nothing)  # type: ignore[arg-type]
    server.on_request("resources/read", nothing)  # type: ignore[arg-type]
    server.on_request("completion/complete", nothing)  # type: ignore[arg-type]
    settings = server.settings()
    assert (settings.name, settings.version, settings.instructions) == ("farm", "2.1", "Be patient.")
    assert settings.info == {"websiteUrl": "https://example.com", "title": "Render farm"}
    assert settings.capabilities == {
        "prompts": {"listChanged": True},
        "resources": {},
        "completions": {},
        "logging": {},
    }
    assert settings.methods == {"prompts/get", "resources/read", "completion/complete"}
    assert settings.limits.tasks == 7


def test_every_server_seals_with_keys_of_its_own_unless_told() -> None:
    @on_trio
    async def check(world: World) -> None:
        async def handler(call: ToolCall) -> Any:
            return "answered" if call.answers else call.input_required({"q": elicit(message="?")})

        def server(*keys: bytes) -> Server:
            made = Server("test", sealing_keys=keys or None)
            made.tool("tool")(handler)
            return made

        async def retried_at(first: Server, second: Server) -> bool:
            world.serve(first)
            asked = (await world.call("tool", capabilities=ELICITATION)).result
            world.serve(second)
            params = {
                "name": "tool",
                "arguments": {},
                "requestState": asked["requestState"],
                "inputResponses": {"q": YES},
            }
            return "result" in (await world.ask("tools/call", params, capabilities=ELICITATION, id=2)).message

        old, new = b"o" * 32, b"n" * 32
        assert not await retried_at(server(), server())
        assert await retried_at(server(old), server(old))
        assert await retried_at(server(old), server(new, old))  # SEC.2: the first seals, all open
        assert not await retried_at(server(new), server(old))

    check()
