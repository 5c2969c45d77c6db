"""The client that the official conformance suite puts against servers of its own.

``python tests/conformance/client.py LOOP URL``: the suite adds the URL, and says in the environment which
scenario it plays. What the client does there, and that it got what it should, is told here; what it sent is
the suite's to check. It says nothing and exits with 0, or raises.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Final

import trio

from mcp_tasks_adapters import asyncio_h11, trio_h11
from mcp_tasks_adapters.client import Client, Completed, Failed, InputRequest, accept

__all__ = ["main"]

Scenario = Callable[[Client], Awaitable[None]]

EVERY_CAPABILITY: Final = {"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}}
TIMEOUT_S: Final = 20.0


async def called(client: Client, tool: str, arguments: Mapping[str, Any] | None = None) -> str:
    """Call a tool and return the text of its result."""
    call = await client.call_tool(tool, arguments, timeout=TIMEOUT_S)
    outcome = await call.settle()
    assert isinstance(outcome, Completed), outcome
    return "".join(block["text"] for block in outcome.result["content"])


# -- what is done in each scenario -----------------------------------------------------------------------


async def add_numbers(client: Client) -> None:
    """Call a tool with arguments."""
    assert await called(client, "add_numbers", {"a": 5, "b": 3}) == "The sum of 5 and 3 is 8"


async def ask_for_everything(client: Client) -> None:
    """Send requests of several kinds; the first of them is refused for its version, and tried again."""
    await client.discover()
    assert await client.list_tools() == []
    assert await called(client, "anything") == ""


async def send_every_method(client: Client) -> None:
    """Send each request that has headers of its own."""
    tools = await client.list_tools()
    for tool in tools:
        assert await called(client, tool["name"]) == "Headers test completed"
    resources = (await client.request("resources/list"))["resources"]
    for resource in resources:
        await client.request("resources/read", {"uri": resource["uri"]})
    prompts = (await client.request("prompts/list"))["prompts"]
    for prompt in prompts:
        await client.request("prompts/get", {"name": prompt["name"]})
    assert tools and resources and prompts


async def call_as_told(client: Client) -> None:
    """Make the calls that the suite has chosen arguments for."""
    calls = json.loads(os.environ["MCP_CONFORMANCE_CONTEXT"])["toolCalls"]
    for call in calls:
        assert await called(client, call["name"], call["arguments"]) == "Custom headers test completed"
    assert calls


async def call_every_tool(client: Client) -> None:
    """Call each tool, those that must not be used as well: they are known by being left out of the list."""
    assert [tool["name"] for tool in await client.list_tools()] == ["valid_tool"]
    assert await called(client, "valid_tool", {"region": "here"}) == "Tool call received"
    for tool in INVALID_TOOLS:
        outcome = await (await client.call_tool(tool, {}, timeout=TIMEOUT_S)).settle()
        assert isinstance(outcome, Failed), (tool, outcome)


INVALID_TOOLS: Final = (
    "invalid_empty_header",
    "invalid_object_header",
    "invalid_array_header",
    "invalid_null_header",
    "invalid_duplicate_same_case",
    "invalid_duplicate_diff_case",
    "invalid_space_in_name",
    "invalid_colon_in_name",
    "invalid_non_ascii_name",
    "invalid_control_char_name",
)


async def answer_questions(client: Client) -> None:
    """Call tools that ask first; another call goes on in the midst of the first."""
    assert await called(client, "test_mrtr_echo_state") == "echo-state-ok"
    assert await called(client, "test_mrtr_no_state") == "no-state-ok"
    assert await called(client, "test_mrtr_no_result_type") == "no-result-type-test-ok"


async def use_a_schema_that_leads_elsewhere(client: Client) -> None:
    """List a tool and call it, which the server does not offer."""
    [tool] = await client.list_tools()
    outcome = await (await client.call_tool(tool["name"], {"id": "ada"}, timeout=TIMEOUT_S)).settle()
    assert isinstance(outcome, Failed) and outcome.code == -32601, outcome


async def give_a_schema_back(client: Client) -> None:
    """Send a tool's schema as it came."""
    schemas = {tool["name"]: tool["inputSchema"] for tool in await client.list_tools()}
    schema = schemas["json_schema_2020_12_tool"]
    assert await called(client, "json_schema_echo", {"schema": schema}) == "echoed"


SCENARIOS: Final[Mapping[str, Scenario]] = {
    "tools_call": add_numbers,
    "request-metadata": ask_for_everything,
    "http-standard-headers": send_every_method,
    "http-custom-headers": call_as_told,
    "http-invalid-tool-headers": call_every_tool,
    "sep-2322-client-request-state": answer_questions,
    "json-schema-ref-no-deref": use_a_schema_that_leads_elsewhere,
    "json-schema-2020-12-preservation": give_a_schema_back,
}


# -- running ---------------------------------------------------------------------------------------------


async def play(connect: Any, scenario: Scenario, url: str) -> None:
    """Connect and play a scenario."""

    async def answer(question: InputRequest) -> Any:
        assert question.method == "elicitation/create"
        if question.tool == "test_mrtr_echo_state":
            assert await called(client, "test_mrtr_unrelated") == "unrelated-ok"
        return accept({"confirmed": True})

    async with connect(url, answer=answer, capabilities=EVERY_CAPABILITY) as client:
        await scenario(client)


def main() -> None:
    """Read the command line and the environment, and play."""
    loop, url = sys.argv[1:]
    scenario = SCENARIOS[os.environ["MCP_CONFORMANCE_SCENARIO"]]
    if loop == "trio":
        trio.run(partial(play, trio_h11.connect, scenario, url))
    else:
        asyncio.run(play(asyncio_h11.connect, scenario, url))


if __name__ == "__main__":
    main()
