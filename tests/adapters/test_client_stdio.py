"""Clients that start their servers, on both loops: ours, and some that misbehave (STD.1)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from mcp_tasks_adapters.client import (
    Cancelled,
    Failed,
    Fault,
    Limits,
    NoResultError,
    ObservationLost,
    TraceEntry,
    accept,
)

from tests.adapters.client_harness import LOOPS, QUICK, run, texts

SOON = Limits(shutdown_grace_ms=200)
"""For servers that do not end by themselves."""


@pytest.fixture(params=LOOPS)
def loop(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


OURS = """
import os, sys
import trio
from mcp_tasks_adapters import trio_h11
from mcp_tasks_adapters.toolkit import Server, elicit, text

server = Server("stdio-farm", version="1")
form = {"type": "object", "properties": {"name": {"type": "string"}}}

@server.tool()
async def add(call):
    return text(str(call.arguments["a"] + call.arguments["b"]))

@server.tool()
async def pid(call):
    return text(str(os.getpid()))

@server.tool()
async def slow(call):
    try:
        await call.progress(1, message="slow")
        await trio.sleep_forever()
    finally:
        print("stopped", file=sys.stderr, flush=True)

@server.tool(task="required")
async def ask(call):
    async def run(task):
        await task.update("asking")
        answer = (await task.request_input({"who": elicit(message="Who?", schema=form)}))["who"]
        return text(answer.content["name"])
    return call.task(run, poll_interval_ms=1)

@server.tool(task="required")
async def work(call):
    async def run(task):
        await trio.sleep_forever()
    return call.task(run, poll_interval_ms=1)

@server.tool()
async def die(call):
    os._exit(7)

trio.run(trio_h11.serve_stdio, server)
print("ended in good order", file=sys.stderr)
"""

SCRIPT = """
import json, os, sys, time

def read():
    line = sys.stdin.readline()
    return json.loads(line) if line else None

def write(value):
    sys.stdout.write(value if isinstance(value, str) else json.dumps(value) + "\\n")
    sys.stdout.flush()

def result(request, **members):
    write({"jsonrpc": "2.0", "id": request["id"], "result": {"resultType": "complete", **members}})

def read_past_discovery():
    request = read()
    if request["method"] == "server/discover":
        result(request, supportedVersions=["2026-07-28"])
        request = read()
    return request

"""


def program(tmp_path: Path, text: str) -> list[str]:
    file = tmp_path / "program.py"
    file.write_text(text)
    return [sys.executable, str(file)]


def script(tmp_path: Path, text: str) -> list[str]:
    """Return the command for a server that is nothing but a script."""
    return program(tmp_path, SCRIPT + textwrap.dedent(text))


def against(
    loop: str, command: list[str], scenario: Callable[[Any, Any], Awaitable[None]], **options: Any
) -> None:
    """Run a scenario with a client of this command."""
    options = {"requester_limits": QUICK, "limits": SOON, **options}

    async def main(on: Any) -> None:
        async with on.connect_stdio(command, **{"era": "modern", **options}) as client:
            await scenario(on, client)

    run(loop, main)


# -- our server ----------------------------------------------------------------------------------------------


def test_calls_tasks_and_questions(loop: str, tmp_path: Path) -> None:
    entries: list[TraceEntry] = []

    async def scenario(on: Any, client: Any) -> None:
        assert (await client.discover())["supportedVersions"] == ["2026-07-28"]
        call = await client.call_tool("add", {"a": 1, "b": 2})
        assert texts(call.outcome.result) == ["3"]
        asking = await client.call_tool("ask")
        assert [view.status.value async for view in asking.updates()][-1] == "completed"
        assert texts((await asking.settle()).result) == ["Ada"]
        assert client.endpoint.startswith("stdio:")

    against(
        loop,
        program(tmp_path, OURS),
        scenario,
        answer=lambda _: accept({"name": "Ada"}),
        on_trace=entries.append,
        limits=Limits(),
    )
    sent = [entry.message["method"] for entry in entries if entry.event == "sent"]
    assert "subscriptions/listen" in sent
    assert "tools/list" not in sent  # there are no headers to mirror anything into


def test_its_stderr_is_passed_on_and_it_ends_in_good_order(
    loop: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    async def scenario(on: Any, client: Any) -> None:
        await client.discover()

    against(loop, program(tmp_path, OURS), scenario, limits=Limits())
    assert capfd.readouterr().err == "ended in good order\n"


def test_its_stderr_may_go_elsewhere(loop: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    async def scenario(on: Any, client: Any) -> None:
        await client.discover()

    with (tmp_path / "log").open("wb") as log:
        against(loop, program(tmp_path, OURS), scenario, limits=Limits(), stderr=log)
    assert (tmp_path / "log").read_text() == "ended in good order\n"
    assert capfd.readouterr().err == ""


def test_its_environment_and_directory(loop: str, tmp_path: Path) -> None:
    command = script(
        tmp_path, "result(read(), cwd=os.getcwd(), env=os.environ.get('ONLY'), path='HOME' in os.environ)"
    )

    async def scenario(on: Any, client: Any) -> None:
        found = await client.discover()
        assert (found["cwd"], found["env"], found["path"]) == (str(tmp_path), "this", False)

    against(loop, command, scenario, env={"ONLY": "this"}, cwd=tmp_path)


def test_a_call_that_is_cancelled_is_cancelled_at_the_server(
    loop: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """On a shared channel a message has to say so."""
    entries: list[TraceEntry] = []

    async def scenario(on: Any, client: Any) -> None:
        begun = on.event()

        async def call() -> None:
            await client.call_tool("slow", on_notification=lambda method, params: begun.set())

        job = on.spawn(call)
        await begun.wait()
        job.cancel()
        added = await client.call_tool("add", {"a": 1, "b": 1})
        assert texts(added.outcome.result) == ["2"]

    against(loop, program(tmp_path, OURS), scenario, on_trace=entries.append, limits=Limits())
    assert "stopped" in capfd.readouterr().err
    [stopped] = [entry for entry in entries if entry.event == "stopped"]
    assert stopped.message["method"] == "notifications/cancelled"
    assert stopped.message["params"]["requestId"] == stopped.request


def test_cancelling_a_task(loop: str, tmp_path: Path) -> None:
    async def scenario(on: Any, client: Any) -> None:
        call = await client.call_tool("work")
        assert isinstance(await call.cancel(wait=True), Cancelled)
        assert (await client.get_task(call.task_id)).status.value == "cancelled"

    against(loop, program(tmp_path, OURS), scenario, limits=Limits())


def test_a_server_that_dies_is_started_again_for_the_next_request(loop: str, tmp_path: Path) -> None:
    """What was in flight is lost, and said to be; a listen stream is opened anew (core, "stdio")."""

    async def scenario(on: Any, client: Any) -> None:
        first = texts((await client.call_tool("pid")).outcome.result)
        task = await client.call_tool("work")
        dead = (await client.call_tool("die")).outcome
        assert isinstance(dead, ObservationLost)
        assert "exit code 7" in dead.reason
        second = texts((await client.call_tool("pid")).outcome.result)
        assert first != second
        # The new process knows nothing of the old one's tasks.
        assert type(await task.settle()).__name__ == "Expired"

    against(loop, program(tmp_path, OURS), scenario, limits=Limits())


def test_lim3_a_server_that_ends_again_and_again_is_started_ever_less_often(
    loop: str, tmp_path: Path
) -> None:
    """It answers one request each time; its task asks to be polled every millisecond."""
    starts = tmp_path / "starts"
    answers_once = f"""
with open({str(starts)!r}, "a") as file:
    file.write("x")
request = read_past_discovery()
task = {{"taskId": "task-0123456789abcdefghij", "status": "working", "createdAt": "2026-01-01T00:00:00Z",
    "lastUpdatedAt": "2026-01-01T00:00:00Z", "ttlMs": None, "pollIntervalMs": 1}}
if request["method"] == "tools/call":
    task["resultType"] = "task"
result(request, **task)
"""

    async def scenario(on: Any, client: Any) -> None:
        call = await client.call_tool("t")
        with pytest.raises(TimeoutError):
            await call.settle(timeout=2)

    against(loop, script(tmp_path, answers_once), scenario)
    assert 3 <= len(starts.read_text()) <= 7


def test_a_server_that_is_killed_while_nothing_is_asked(loop: str, tmp_path: Path) -> None:
    async def scenario(on: Any, client: Any) -> None:
        pid = int(texts((await client.call_tool("pid")).outcome.result)[0])
        os.kill(pid, signal.SIGKILL)
        while client._driver._transport._life is not None:
            await on.sleep(0.01)
        assert int(texts((await client.call_tool("pid")).outcome.result)[0]) != pid

    against(loop, program(tmp_path, OURS), scenario, limits=Limits())


# -- servers that misbehave ----------------------------------------------------------------------------------


def test_what_cannot_be_started(loop: str, tmp_path: Path) -> None:
    async def main(on: Any) -> None:
        with pytest.raises(FileNotFoundError):
            async with on.connect_stdio([str(tmp_path / "nothing-here")]):
                pass

    run(loop, main)


def test_what_cannot_be_started_again(loop: str, tmp_path: Path) -> None:
    command = script(tmp_path, "result(read()); sys.exit(3)")
    link = tmp_path / "python"
    link.symlink_to(command[0])

    async def scenario(on: Any, client: Any) -> None:
        await client.discover()
        while client._driver._transport._life is not None:
            await on.sleep(0.01)
        link.unlink()
        outcome = (await client.call_tool("t")).outcome
        assert isinstance(outcome, Failed)
        assert (outcome.fault, "cannot be started" in outcome.message) == (Fault.NETWORK, True)

    against(loop, [str(link), command[1]], scenario)


def test_a_server_that_ends_at_once(loop: str, tmp_path: Path) -> None:
    async def scenario(on: Any, client: Any) -> None:
        for _ in range(2):
            with pytest.raises(NoResultError, match="exit code 3"):
                await client.discover()

    against(loop, script(tmp_path, "read(); sys.exit(3)"), scenario)


@pytest.mark.parametrize(
    "noise",
    [
        'write("Listening on stdin...\\n")',
        'write("\\x00\\x01\\n")',
        'sys.stdout.buffer.write(b"\\xff\\xfe\\n"); sys.stdout.buffer.flush()',
        'write("[1, 2]\\n\\n  \\r\\n")',
        'write({"jsonrpc": "2.0", "id": 999, "result": {}})',
        'write({"jsonrpc": "2.0", "id": "1", "result": {}})',
        'write({"jsonrpc": "2.0", "error": {"code": -32700, "message": "what?"}})',
        'write({"jsonrpc": "2.0", "id": 1, "method": "roots/list"})',
        'write({"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": 1}})',
        'write({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": "x"}})',
        'write({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})',
        'write({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": [1]}})',
        'write({"jsonrpc": "2.0", "method": "notifications/tasks", "params": {"_meta": '
        '{"io.modelcontextprotocol/subscriptionId": [7]}}})',
    ],
)
def test_noise_on_stdout_is_passed_over(loop: str, tmp_path: Path, noise: str) -> None:
    command = script(tmp_path, f"request = read()\n{noise}\nresult(request, n=1)\nread()")

    async def scenario(on: Any, client: Any) -> None:
        assert (await client.discover())["n"] == 1

    against(loop, command, scenario)


def test_an_over_long_line_is_one_lost_answer(loop: str, tmp_path: Path) -> None:
    """LIM.3: the channel is in step again after it."""
    command = script(tmp_path, 'result(read(), x="y" * 1_000_000)\nresult(read(), n=2)\nread()')

    async def scenario(on: Any, client: Any) -> None:
        with pytest.raises(NoResultError, match="message_bytes"):
            await client.discover()
        assert (await client.discover())["n"] == 2

    against(loop, command, scenario, limits=evolve(SOON, message_bytes=10_000))


def test_answers_come_in_any_order(loop: str, tmp_path: Path) -> None:
    command = script(
        tmp_path,
        """
        requests = [read_past_discovery(), read(), read()]
        for request in reversed(requests):
            result(request, uri=request["params"].get("uri"))
        read()
        """,
    )

    async def scenario(on: Any, client: Any) -> None:
        answered: dict[str, str] = {}

        async def ask(uri: str) -> None:
            answered[uri] = (await client.request("resources/read", {"uri": uri}))["uri"]

        for name in "abc":
            on.spawn(lambda name=name: ask(name))
        while len(answered) < 3:
            await on.sleep(0.01)
        assert answered == {"a": "a", "b": "b", "c": "c"}

    against(loop, command, scenario)


def test_a_server_that_never_answers(loop: str, tmp_path: Path) -> None:
    entries: list[TraceEntry] = []
    command = script(tmp_path, "while read():\n    pass")

    async def scenario(on: Any, client: Any) -> None:
        call = await client.call_tool("t")
        assert isinstance(call.outcome, ObservationLost)

    impatient = evolve(QUICK, call_timeout_ms=100)
    against(loop, command, scenario, requester_limits=impatient, on_trace=entries.append)
    assert [entry.event for entry in entries] == ["sent", "stopped"]


def test_a_server_that_never_reads(loop: str, tmp_path: Path) -> None:
    """What was not written when it was given up is not sent at all."""
    command = script(tmp_path, "time.sleep(60)")

    async def scenario(on: Any, client: Any) -> None:
        large = "x" * 1_000_000
        calls = [await client.call_tool("t", {"large": large}) for _ in range(3)]
        assert all(isinstance(call.outcome, ObservationLost) for call in calls)

    against(loop, command, scenario, requester_limits=evolve(QUICK, call_timeout_ms=50))


def test_a_server_that_writes_without_end_is_ended(loop: str, tmp_path: Path) -> None:
    command = script(tmp_path, 'while True:\n    write({"jsonrpc": "2.0", "method": "x", "params": {}})')

    async def scenario(on: Any, client: Any) -> None:
        with pytest.raises(NoResultError):
            await client.request("server/discover", timeout=0.1)

    against(loop, command, scenario)


@pytest.mark.parametrize("stubborn", [False, True])
def test_a_server_that_does_not_end_by_itself_is_ended(
    loop: str, tmp_path: Path, stubborn: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    """Asked by the end of its stdin, then by SIGTERM, then not asked any more."""
    command = script(
        tmp_path,
        f"""
        import signal
        def told(*_):
            print("told", file=sys.stderr, flush=True)
            {stubborn} or sys.exit()
        signal.signal(signal.SIGTERM, told)
        result(read(), pid=os.getpid())
        while True:
            time.sleep(60)
        """,
    )
    pids: list[int] = []

    async def scenario(on: Any, client: Any) -> None:
        pids.append((await client.discover())["pid"])

    against(loop, command, scenario)
    with pytest.raises(ProcessLookupError):
        os.kill(pids[0], 0)
    assert capfd.readouterr().err == "told\n"


def test_what_is_asked_while_a_server_is_ending_is_for_the_next_one(loop: str, tmp_path: Path) -> None:
    command = script(tmp_path, "result(read(), pid=os.getpid())\nos.close(1)\ntime.sleep(60)")

    async def scenario(on: Any, client: Any) -> None:
        first = await client.discover()
        await on.sleep(0.3)  # it has closed its stdout, and has some time left to end
        assert (await client.discover())["pid"] != first["pid"]

    against(loop, command, scenario, limits=Limits(shutdown_grace_ms=1000))


def test_a_server_is_ended_also_when_the_block_is_left_by_an_exception(loop: str, tmp_path: Path) -> None:
    pids: list[int] = []

    async def fail(on: Any, client: Any) -> None:
        pids.append((await client.discover())["pid"])
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        against(loop, script(tmp_path, "result(read(), pid=os.getpid())\nread()"), fail)
    with pytest.raises(ProcessLookupError):
        os.kill(pids[0], 0)


def test_a_server_is_ended_also_when_the_block_is_cancelled(loop: str, tmp_path: Path) -> None:
    pids: list[int] = []
    command = script(tmp_path, "result(read(), pid=os.getpid())\nread()")

    async def main(on: Any) -> None:
        begun, over = on.event(), on.event()

        async def use() -> None:
            try:
                async with on.connect_stdio(command, limits=SOON, era="modern") as client:
                    pids.append((await client.discover())["pid"])
                    begun.set()
                    await on.event().wait()
            finally:
                over.set()

        job = on.spawn(use)
        await begun.wait()
        job.cancel()
        await over.wait()

    run(loop, main)
    with pytest.raises(ProcessLookupError):
        os.kill(pids[0], 0)


def test_a_server_whose_child_keeps_stdout_open_is_let_go(loop: str, tmp_path: Path) -> None:
    child = [sys.executable, "-c", "import time; time.sleep(5)"]
    command = script(
        tmp_path,
        f"""
        import subprocess
        child = subprocess.Popen({child!r}, stdin=subprocess.DEVNULL)
        result(read(), child=child.pid)
        read()
        """,
    )
    children: list[int] = []

    async def scenario(on: Any, client: Any) -> None:
        children.append((await client.discover())["child"])

    against(loop, command, scenario)
    os.kill(children[0], signal.SIGKILL)


def test_no_process_is_left_when_the_program_dies(tmp_path: Path, loop: str) -> None:
    """The end of its stdin is enough for a well-behaved server."""
    command = script(
        tmp_path, "result(read(), pid=os.getpid())\nread()\nprint('server ends', file=sys.stderr)"
    )
    user = tmp_path / "user.py"
    module = "trio_h11" if loop == "trio" else "asyncio_h11"
    runner = "trio.run(main)" if loop == "trio" else "asyncio.run(main())"
    user.write_text(
        f"import asyncio, os, trio\nfrom mcp_tasks_adapters.{module} import connect_stdio\n"
        "async def main():\n"
        f"    async with connect_stdio({command!r}, era='modern') as client:\n"
        "        await client.discover()\n"
        "        os._exit(9)\n"
        f"{runner}\n"
    )
    ended = subprocess.run([sys.executable, str(user)], capture_output=True, timeout=20, check=False)
    assert (ended.returncode, ended.stderr) == (9, b"server ends\n")
