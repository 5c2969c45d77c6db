"""The server that the official conformance suite is run against.

Every tool, prompt and resource here stands in the description of at least one scenario; ``run.py`` runs them
and ``docs/conformance.md`` says which. To look at it by hand::

    mcp-tasks serve tests/conformance/fixture.py:server
"""

from __future__ import annotations

import asyncio
from typing import Any

from mcp_tasks_adapters.toolkit import (
    Answer,
    ProtocolError,
    Request,
    Server,
    TaskContext,
    ToolCall,
    ToolError,
    elicit,
    list_roots,
    sample,
    text,
)

from mcp_tasks_proto.errors import ErrorCode

server = Server(
    "conformance-fixture",
    version="1.0",
    title="Conformance fixture",
    capabilities={"logging": {}},
)

NO_ARGUMENTS: dict[str, Any] = {"type": "object"}


async def sleep(seconds: float) -> None:
    """Sleep on the running loop, whichever it is."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        import trio

        await trio.sleep(seconds)
    else:
        await asyncio.sleep(seconds)


def form(message: str, **fields: str) -> dict[str, Any]:
    """Return an elicitation of a form whose fields, all required, have these types."""
    properties = {name: {"type": kind} for name, kind in fields.items()}
    return elicit(
        message=message, schema={"type": "object", "properties": properties, "required": list(fields)}
    )


def field_of(answer: Answer | None, name: str, kind: type) -> Any:
    """Return a field of an accepted form; ``None`` where there is no such answer.

    An answer that comes without the request state of an earlier round has not been checked by anyone.
    """
    if answer is None or not answer.accepted or not isinstance(answer.content, dict):
        return None
    value = answer.content.get(name)
    return value if isinstance(value, kind) else None


# -- plain tools ---------------------------------------------------------------------------------------


@server.tool(task="forbidden", description="Answer with a fixed text", input_schema=NO_ARGUMENTS)
async def test_simple_text(call: ToolCall) -> Any:
    return text("This is a simple text response for testing.")


@server.tool(task="forbidden", description="Always fail, as a tool fails", input_schema=NO_ARGUMENTS)
async def test_error_handling(call: ToolCall) -> Any:
    raise ToolError("This tool intentionally returns an error for testing")


@server.tool(task="forbidden", description="Report progress on the way", input_schema=NO_ARGUMENTS)
async def test_tool_with_progress(call: ToolCall) -> Any:
    for done in (0, 50, 100):
        await call.progress(done, total=100)
        await sleep(0.05)
    return text("All of it is done.")


@server.tool(task="forbidden", description="Log at every level on the way", input_schema=NO_ARGUMENTS)
async def test_logging_tool(call: ToolCall) -> Any:
    for level in ("debug", "info", "warning", "error"):
        await call.log(level, f"A message of level {level}", logger="conformance")
    return text("Everything is logged.")


@server.tool(
    task="forbidden",
    description="Tool with JSON Schema 2020-12 features",
    input_schema={
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
            }
        },
        "properties": {
            "name": {"type": "string"},
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": {"type": "string"},
            "email": {"type": "string"},
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": False,
    },
)
async def json_schema_2020_12_tool(call: ToolCall) -> Any:
    return text(f"Valid arguments: {', '.join(sorted(call.arguments))}")


@server.tool(
    task="forbidden",
    description="Take a parameter that is mirrored into an HTTP header",
    input_schema={
        "type": "object",
        "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
        "required": ["region"],
    },
)
async def test_header_parameter(call: ToolCall) -> Any:
    return text(f"Region: {call.arguments['region']}")


# -- questions in the middle of a call, as 2025-11-25 has them -----------------------------------------


@server.tool(
    task="forbidden",
    description="Ask the user",
    input_schema={"type": "object", "properties": {"message": {"type": "string"}}, "required": ["message"]},
)
async def test_elicitation(call: ToolCall) -> Any:
    answer = call.answers.get("user")
    if answer is None:
        question = form(call.arguments["message"], username="string", email="string")
        return call.input_required({"user": question})
    return text(f"User response: {answer.response}")


@server.tool(
    task="forbidden",
    description="Ask the client's model",
    input_schema={"type": "object", "properties": {"prompt": {"type": "string"}}, "required": ["prompt"]},
)
async def test_sampling(call: ToolCall) -> Any:
    answer = call.answers.get("model")
    if answer is None:
        return call.input_required({"model": sample(call.arguments["prompt"], max_tokens=100)})
    return text(f"LLM response: {answer.content['text']}")


# -- what a client must be able to do ------------------------------------------------------------------


@server.tool(task="forbidden", description="Need sampling of every caller", input_schema=NO_ARGUMENTS)
async def test_missing_capability(call: ToolCall) -> Any:
    if "thought" not in call.answers:
        return call.input_required({"thought": sample("Think of something.", max_tokens=50)})
    return text("The client's model has thought of something.")


@server.tool(task="forbidden", description="Report, then ask the user", input_schema=NO_ARGUMENTS)
async def test_streaming_elicitation(call: ToolCall) -> Any:
    await call.progress(1, total=2)
    if "proceed" not in call.answers:
        return call.input_required({"proceed": form("Go on?", ok="boolean")})
    return text("Went on.")


# -- a list of tools that changes ----------------------------------------------------------------------


@server.tool(
    task="forbidden", description="Add a tool to the list, or take it away", input_schema=NO_ARGUMENTS
)
async def test_trigger_tool_change(call: ToolCall) -> Any:
    if "test_dynamic_tool" in server.tools:
        server.remove_tool("test_dynamic_tool")
        return text("One tool less.")
    server.tool(
        "test_dynamic_tool",
        task="forbidden",
        description="Here today, gone tomorrow",
        input_schema=NO_ARGUMENTS,
    )(test_simple_text)
    return text("One tool more.")


# -- rounds of questions before an answer (MRTR) -------------------------------------------------------


@server.tool(task="forbidden", description="Ask for a name, then greet", input_schema=NO_ARGUMENTS)
async def test_input_required_result_elicitation(call: ToolCall) -> Any:
    name = field_of(call.answers.get("user_name"), "name", str)
    if name is None:
        return call.input_required({"user_name": form("What is your name?", name="string")})
    return text(f"Hello, {name}!")


@server.tool(task="forbidden", description="Ask the client's model", input_schema=NO_ARGUMENTS)
async def test_input_required_result_sampling(call: ToolCall) -> Any:
    answer = call.answers.get("capital_question")
    if answer is None or not isinstance(answer.content, dict):
        question = sample("What is the capital of France?", max_tokens=100)
        return call.input_required({"capital_question": question})
    return text(str(answer.content.get("text")))


@server.tool(task="forbidden", description="Ask for the client's roots", input_schema=NO_ARGUMENTS)
async def test_input_required_result_list_roots(call: ToolCall) -> Any:
    answer = call.answers.get("client_roots")
    if answer is None:
        return call.input_required({"client_roots": list_roots()})
    return text("Roots: " + ", ".join(root["uri"] for root in answer.response["roots"]))


@server.tool(task="forbidden", description="Have state travel with a question", input_schema=NO_ARGUMENTS)
async def test_input_required_result_request_state(call: ToolCall) -> Any:
    if call.state != "waiting for ok" or "confirm" not in call.answers:
        return call.input_required({"confirm": form("Please confirm", ok="boolean")}, state="waiting for ok")
    return text("state-ok")


@server.tool(task="forbidden", description="Ask three kinds of questions at once", input_schema=NO_ARGUMENTS)
async def test_input_required_result_multiple_inputs(call: ToolCall) -> Any:
    if len(call.answers) < 3:
        questions = {
            "user_name": form("What is your name?", name="string"),
            "greeting": sample("Generate a greeting", max_tokens=50),
            "client_roots": list_roots(),
        }
        return call.input_required(questions, state="asked all three")
    name = call.answers["user_name"].content["name"]
    roots = call.answers["client_roots"].response["roots"]
    return text(f"{call.answers['greeting'].content['text']} {name}, with {len(roots)} root(s)")


@server.tool(task="forbidden", description="Ask in two rounds", input_schema=NO_ARGUMENTS)
async def test_input_required_result_multi_round(call: ToolCall) -> Any:
    name, color = call.answers.get("step1"), call.answers.get("step2")
    if isinstance(call.state, dict) and color is not None:
        return text(f"{call.state['name']} likes {color.content['color']}.")
    if name is not None:
        question = form("Step 2: What is your favorite color?", color="string")
        return call.input_required({"step2": question}, state={"name": name.content["name"]})
    return call.input_required({"step1": form("Step 1: What is your name?", name="string")}, state="round 1")


@server.tool(task="forbidden", description="Take no state but its own", input_schema=NO_ARGUMENTS)
async def test_input_required_result_tampered_state(call: ToolCall) -> Any:
    if call.state is None:
        return call.input_required({"confirm": form("Please confirm", ok="boolean")}, state="untouched")
    return text(f"The state is {call.state}.")


@server.tool(task="forbidden", description="Ask what the client can answer", input_schema=NO_ARGUMENTS)
async def test_input_required_result_capabilities(call: ToolCall) -> Any:
    questions = {
        "elicitation": form("What is your name?", name="string"),
        "sampling": sample("Say something.", max_tokens=50),
        "roots": list_roots(),
    }
    askable = {kind: question for kind, question in questions.items() if kind in call.client_capabilities}
    if not askable or call.answers:
        return text(f"Answered: {', '.join(call.answers) or 'nothing'}")
    return call.input_required(askable)


# -- tasks ---------------------------------------------------------------------------------------------


@server.tool(
    task="forbidden",
    description="Greet somebody",
    input_schema={"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
)
async def greet(call: ToolCall) -> Any:
    return text(f"Hello, {call.arguments['name']}!")


@server.tool(
    task="optional",
    description="Compute slowly",
    input_schema={
        "type": "object",
        "properties": {"seconds": {"type": "number", "minimum": 0}, "label": {"type": "string"}},
        "required": ["seconds"],
    },
)
async def slow_compute(call: ToolCall) -> Any:
    async def compute() -> Any:
        await sleep(call.arguments["seconds"])
        return text(f"Computed {call.arguments.get('label', 'it')}.")

    if not call.can_create_task:
        return await compute()

    async def run(task: TaskContext) -> Any:
        return await compute()

    return call.task(run, status_message="Computing", poll_interval_ms=200)


@server.tool(task="required", description="Fail, as a tool fails, after a while", input_schema=NO_ARGUMENTS)
async def failing_job(call: ToolCall) -> Any:
    async def run(task: TaskContext) -> Any:
        await sleep(1)
        raise ToolError("The job failed, as it always does.")

    return call.task(run, poll_interval_ms=200)


@server.tool(task="required", description="Fail with a protocol error", input_schema=NO_ARGUMENTS)
async def protocol_error_job(call: ToolCall) -> Any:
    async def run(task: TaskContext) -> Any:
        await sleep(0.2)
        raise ProtocolError(ErrorCode.INTERNAL_ERROR, "The job broke down.", {"reason": "fixture"})

    return call.task(run, poll_interval_ms=200)


@server.tool(
    task="required",
    description="Delete a file, if the user agrees",
    input_schema={"type": "object", "properties": {"filename": {"type": "string"}}, "required": ["filename"]},
)
async def confirm_delete(call: ToolCall) -> Any:
    filename = call.arguments["filename"]

    async def run(task: TaskContext) -> Any:
        answers = await task.request_input({"confirm": form(f"Delete {filename}?", confirm="boolean")})
        if field_of(answers["confirm"], "confirm", bool):
            return text(f"Deleted {filename}.")
        return text(f"Kept {filename}.")

    return call.task(run, poll_interval_ms=200)


@server.tool(task="required", description="Ask two questions at once", input_schema=NO_ARGUMENTS)
async def multi_input(call: ToolCall) -> Any:
    async def run(task: TaskContext) -> Any:
        questions = {"first": form("Who?", name="string"), "second": form("Really?", confirm="boolean")}
        answers = await task.request_input(questions)
        return text(f"{field_of(answers['first'], 'name', str)} is the one.")

    return call.task(run, poll_interval_ms=200)


@server.tool(task="required", description="Ask first, then go on as a task", input_schema=NO_ARGUMENTS)
async def test_tool_with_task(call: ToolCall) -> Any:
    name = field_of(call.answers.get("user_name"), "name", str)
    if name is None:
        return call.input_required({"user_name": form("What is your name?", name="string")})

    async def run(task: TaskContext) -> Any:
        return text(f"Hello, {name}!")

    return call.task(run, poll_interval_ms=200)


# -- prompts and resources: methods of the host --------------------------------------------------------

PROMPT = {
    "name": "test_input_required_result_prompt",
    "description": "A prompt that asks for its context first",
}
RESOURCE = {"uri": "test://static-text", "name": "static-text", "mimeType": "text/plain"}
TEMPLATE = {"uriTemplate": "test://template/{id}/data", "name": "template-data", "mimeType": "text/plain"}


@server.on_request("prompts/list")
async def list_prompts(request: Request) -> Any:
    return {"prompts": [PROMPT], "ttlMs": 60_000, "cacheScope": "public"}


@server.on_request("prompts/get")
async def get_prompt(request: Request) -> Any:
    if request.params.get("name") != PROMPT["name"]:
        raise ProtocolError(ErrorCode.INVALID_PARAMS, "There is no such prompt")
    context = field_of(request.answers.get("user_context"), "context", str)
    if context is None:
        question = form("What context should the prompt use?", context="string")
        return request.input_required({"user_context": question})
    return {"messages": [{"role": "user", "content": {"type": "text", "text": f"Context: {context}"}}]}


@server.on_request("resources/list")
async def list_resources(request: Request) -> Any:
    return {"resources": [RESOURCE], "ttlMs": 60_000, "cacheScope": "public"}


@server.on_request("resources/templates/list")
async def list_templates(request: Request) -> Any:
    return {"resourceTemplates": [TEMPLATE], "ttlMs": 60_000, "cacheScope": "public"}


@server.on_request("resources/read")
async def read_resource(request: Request) -> Any:
    if request.params.get("uri") != RESOURCE["uri"]:
        raise ProtocolError(ErrorCode.INVALID_PARAMS, "There is no such resource")
    content = {"uri": RESOURCE["uri"], "mimeType": RESOURCE["mimeType"], "text": "This text never changes."}
    return {"contents": [content], "ttlMs": 60_000, "cacheScope": "public"}
