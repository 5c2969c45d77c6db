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
from mcp_tasks_adapters.client import Client, Completed, Failed, InputRequest, Outcome, accept

__all__ = ["main"]

Scenario = Callable[[Client], Awaitable[None]]

EVERY_CAPABILITY: Final[Mapping[str, Any]] = {
    "elicitation": {"form": {}, "url": {}},
    "sampling": {},
    "roots": {},
}
TIMEOUT_S: Final = 20.0


async def called(client: Client, tool: str, arguments: Mapping[str, Any] | None = None) -> str:
    """Call a tool and return the text of its result."""
    outcome = await settled(client, tool, arguments)
    assert isinstance(outcome, Completed), outcome
    return "".join(block["text"] for block in outcome.result["content"])


async def refused(client: Client, tool: str, arguments: Mapping[str, Any] | None = None) -> Failed:
    """Call a tool and return how it failed."""
    outcome = await settled(client, tool, arguments)
    assert isinstance(outcome, Failed), outcome
    return outcome


async def settled(client: Client, tool: str, arguments: Mapping[str, Any] | None) -> Outcome:
    """Call a tool and return the outcome."""
    return await (await client.call_tool(tool, arguments, timeout=TIMEOUT_S)).settle()


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
    for tool in await client.list_tools():
        assert await called(client, tool["name"]) == "Headers test completed"
    for resource in (await client.request("resources/list"))["resources"]:
        await client.request("resources/read", {"uri": resource["uri"]})
    for prompt in (await client.request("prompts/list"))["prompts"]:
        await client.request("prompts/get", {"name": prompt["name"]})


async def call_as_told(client: Client) -> None:
    """Make the calls that the suite has chosen arguments for."""
    for call in json.loads(os.environ["MCP_CONFORMANCE_CONTEXT"])["toolCalls"]:
        assert await called(client, call["name"], call["arguments"]) == "Custom headers test completed"


async def call_every_tool(client: Client) -> None:
    """Call each tool, those that must not be used as well: they are known by being left out of the list."""
    assert [tool["name"] for tool in await client.list_tools()] == ["valid_tool"]
    assert await called(client, "valid_tool", {"region": "here"}) == "Tool call received"
    for tool in INVALID_TOOLS:
        await refused(client, tool)


INVALID_TOOLS: Final = (
    "invalid_empty_header",
    "invalid_object_header",
    "invalid_array_header",
    "invalid_null_header",
    "invalid_number_header",
    "invalid_duplicate_same_case",
    "invalid_duplicate_diff_case",
    "invalid_space_in_name",
    "invalid_colon_in_name",
    "invalid_non_ascii_name",
    "invalid_control_char_name",
)


async def answer_questions(client: Client) -> None:
    """Call tools that ask first; see :func:`play` for the answers."""
    assert await called(client, "test_mrtr_echo_state") == "echo-state-ok"
    assert await called(client, "test_mrtr_no_state") == "no-state-ok"
    assert await called(client, "test_mrtr_no_result_type") == "no-result-type-test-ok"


async def use_a_schema_that_leads_elsewhere(client: Client) -> None:
    """List a tool and call it, which the server does not offer."""
    [tool] = await client.list_tools()
    assert (await refused(client, tool["name"], {"id": "ada"})).code == -32601


async def give_a_schema_back(client: Client) -> None:
    """Send a tool's schema as it came."""
    schemas = {tool["name"]: tool["inputSchema"] for tool in await client.list_tools()}
    schema = schemas["json_schema_2020_12_tool"]
    assert await called(client, "json_schema_echo", {"schema": schema}) == "echoed"


async def begin_a_session(client: Client) -> None:
    """List no tools, in a session of 2025-11-25."""
    assert await client.list_tools() == []
    assert client.era == "legacy"


SCENARIOS: Final[Mapping[str, Scenario]] = {
    "initialize": begin_a_session,
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
            # In the midst of this call, another one.
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
