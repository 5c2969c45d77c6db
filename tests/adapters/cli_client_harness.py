"""``mcp-tasks`` as people and scripts use it: processes, a server of their own, and a terminal to type at."""

from __future__ import annotations

import codecs
import fcntl
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import Any, Final, Self

__all__ = ["FARM", "MCP_TASKS", "PATIENCE_S", "Ran", "Terminal", "run", "running", "serving"]

PATIENCE_S: Final = 60.0
"""For whatever should not take long, on a machine that is busy."""
MCP_TASKS: Final = [sys.executable, "-m", "mcp_tasks_adapters.cli"]

FARM: Final = '''
import asyncio, sys
from pathlib import Path
from mcp_tasks_adapters.toolkit import ProtocolError, Server, ToolError, elicit, elicit_url, structured

server = Server("farm", version="1", capabilities={"logging": {}})


async def pause(seconds):
    trio = sys.modules.get("trio")
    if trio is not None and trio.lowlevel.in_trio_run():
        await trio.sleep(seconds)
    else:
        await asyncio.sleep(seconds)


async def until_there(path):
    while not Path(path).exists():
        await pause(0.05)


@server.tool(
    title="What it says",
    description="Say something back.",
    input_schema={
        "type": "object",
        "properties": {
            "text": {"type": "string", "description": "What to say"},
            "times": {"type": "integer"},
            "tone": {"type": "string", "enum": ["loud", "soft"]},
        },
        "required": ["text"],
    },
)
async def say(call):
    await call.log("info", "about to say it")
    return call.arguments["text"] * call.arguments.get("times", 1)


@server.tool()
async def describe(call):
    return structured({"lamp": "on"})


@server.tool()
async def oops(call):
    raise ToolError("No encoder for that")


@server.tool()
async def visit(call):
    if not call.answers:
        return call.input_required({"pay": elicit_url(message="Please pay.", url="https://pay.example/x")})
    return f"it was {call.answers['pay'].response['action']}"


@server.tool(task="required")
async def broken(call):
    async def run(task):
        raise ProtocolError(-32603, "The archive is offline", {"retryAfterMs": 60000})

    return call.task(run)


@server.tool(task="required")
async def ask(call):
    """Asks the given forms, one after the other, each once the file it waits for is there."""

    async def run(task):
        answers = []
        for number, schema in enumerate(call.arguments["forms"]):
            if "after" in call.arguments:
                await task.update("Waiting")
                await until_there(call.arguments["after"])
            question = elicit(message=f"Question {number}?", schema=schema)
            answered = await task.request_input({f"q{number}": question})
            answers.append(answered[f"q{number}"].response)
            await task.update(f"Got {number}")
        return structured({"answers": answers})

    return call.task(run, status_message="Begun", poll_interval_ms=100)


@server.tool(task="required")
async def ask_both(call):
    """Asks two forms at once."""

    async def run(task):
        first, second = call.arguments["forms"]
        answers = await task.request_input(
            {"a": elicit(message="First?", schema=first), "b": elicit(message="Second?", schema=second)}
        )
        return structured({name: answer.response for name, answer in answers.items()})

    return call.task(run, poll_interval_ms=100)


@server.tool(task="required")
async def give_up(call):
    """Asks, and takes the question back once a file is there."""

    async def run(task):
        async def wait():
            await until_there(call.arguments["until"])

        trio = sys.modules.get("trio")
        question = {"late": elicit(message="Still there?", schema=call.arguments["form"])}
        if trio is not None and trio.lowlevel.in_trio_run():
            async with trio.open_nursery() as nursery:
                nursery.start_soon(task.request_input, question)
                await wait()
                nursery.cancel_scope.cancel()
        else:
            asking = asyncio.ensure_future(task.request_input(question))
            await wait()
            asking.cancel()
        return "went on without"

    return call.task(run, poll_interval_ms=100)


@server.tool(task="required")
async def wait(call):
    async def run(task):
        await task.update("Waiting for ever")
        await pause(3600)

    return call.task(run, poll_interval_ms=100)
'''
"""A server with a tool for every way in which a call can end."""


# -- a server ------------------------------------------------------------------------------------------


@contextmanager
def serving(file: Path, loop: str = "asyncio") -> Iterator[str]:
    """Serve ``file:server`` in a process of its own; give its URL."""
    command = [*MCP_TASKS, "serve", f"{file}:server", "--loop", loop]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            said = process.stderr.readline()
            assert said.startswith("listening on "), said + process.stderr.read()
            yield said.removeprefix("listening on ").strip()
        finally:
            process.kill()


# -- a script ------------------------------------------------------------------------------------------


class Ran:
    """A command that has ended."""

    def __init__(self, ran: subprocess.CompletedProcess[str]) -> None:
        self.code = ran.returncode
        self.out = ran.stdout
        self.err = ran.stderr

    @property
    def lines(self) -> list[Any]:
        """What is on stdout, which is JSON, one value a line, and nothing else."""
        return [json.loads(line) for line in self.out.splitlines()]


def run(*arguments: str, stdin: str = "", cwd: Path | None = None) -> Ran:
    """Run a command without a terminal."""
    return Ran(
        subprocess.run(
            [*MCP_TASKS, *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            cwd=cwd,
            check=False,
        )
    )


@contextmanager
def running(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Start a command without a terminal."""
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [*MCP_TASKS, *arguments], stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


# -- a person ------------------------------------------------------------------------------------------

_CONTROLS: Final = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


_READS_ON: Final = ["sh", "-c", '"$@"; code=$?; read -r line; echo "left: [$line]"; exit $code', "sh"]


class Terminal:
    """A command at a terminal, and what a person sees there and types.

    ``reads_on``: at the end a line is read by who started the command, and shown as ``left: [line]``.
    """

    def __init__(
        self, *arguments: str, cwd: Path | None = None, columns: int = 100, reads_on: bool = False
    ) -> None:
        self._master, slave = pty.openpty()
        termios.tcsetwinsize(slave, (40, columns))
        environment = {**os.environ, "TERM": "xterm-256color"}
        environment.pop("NO_COLOR", None)
        self._process = subprocess.Popen(
            [*(_READS_ON if reads_on else []), *MCP_TASKS, *arguments],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            cwd=cwd,
            env=environment,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(slave)
        self.raw = ""
        """Everything that was written to the terminal, control codes included."""
        self._seen = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._master)

    @property
    def text(self) -> str:
        """The same as plain text."""
        return _CONTROLS.sub("", self.raw).replace("\r", "")

    def expect(self, *texts: str) -> str:
        """Wait until each text has been shown, after the one before; return what was shown up to the last."""
        begun = self._seen
        for text in texts:
            deadline = monotonic() + PATIENCE_S
            while (at := self.text.find(text, self._seen)) < 0:
                assert self._read(deadline), f"{text!r} was not shown in:\n{self.text[begun:]}"
            self._seen = at + len(text)
        return self.text[begun : self._seen]

    def type(self, *lines: str) -> None:
        """Type lines, each with Enter."""
        for line in lines:
            os.write(self._master, f"{line}\r".encode())

    def press(self, keys: str) -> None:
        """Press keys, without Enter."""
        os.write(self._master, keys.encode())

    def end(self) -> tuple[int, str]:
        """Wait for the end of the command; return its exit code, and what it showed since the last text."""
        begun = self._seen
        deadline = monotonic() + PATIENCE_S
        while self._read(deadline):
            pass
        code = self._process.wait(PATIENCE_S)
        return code, self.text[begun:]

    def kill(self) -> None:
        """Kill the command, as a power cut would."""
        self._process.send_signal(signal.SIGKILL)
        self._process.wait(PATIENCE_S)

    def _read(self, deadline: float) -> bool:
        """Take in what is shown next; false: nothing will be, or not in time."""
        ready, _, _ = select.select([self._master], [], [], max(0.0, deadline - monotonic()))
        if not ready:
            return False
        try:
            data = os.read(self._master, 65536)
        except OSError:  # the command has ended
            return False
        self.raw += self._decoder.decode(data)
        return bool(data)
