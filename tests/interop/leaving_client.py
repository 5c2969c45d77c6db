"""A client that is gone before its task is: ``python -m tests.interop.leaving_client LOOP URL TOOL FILE``.

It answers the first question it is asked and keeps the task's reference in FILE. When it is asked the second
one it says so on stdout, and does nothing more, until it is killed.
"""

from __future__ import annotations

import asyncio
import sys
from functools import partial
from pathlib import Path
from typing import Any, Final

import trio
from mcp_tasks_adapters import asyncio_h11, trio_h11
from mcp_tasks_adapters.client import InputRequest, accept, save_reference

__all__ = ["ANSWER"]

ANSWER: Final = {"channel": "private"}


async def call(connect: Any, forever: Any, url: str, tool: str, file: str) -> None:
    """Call the tool, and never come to the end."""
    asked: list[str] = []

    async def answer(question: InputRequest) -> Any:
        asked.append(question.key)
        if len(asked) > 1:
            print("asked again", flush=True)
            await forever()
        return accept(ANSWER)

    async with connect(url, answer=answer) as client:
        called = await client.call_tool(tool, on_reference=partial(save_reference, Path(file)))
        await called.settle()


if __name__ == "__main__":
    loop, url, tool, file = sys.argv[1:]
    if loop == "trio":
        trio.run(call, trio_h11.connect, trio.sleep_forever, url, tool, file)
    else:
        asyncio.run(call(asyncio_h11.connect, asyncio.Event().wait, url, tool, file))
