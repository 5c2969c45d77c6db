"""Servers on stdio, on both loops: over pipes within this process, and as processes of their own (STD.1)."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
from attrs import define
from mcp_tasks_adapters import asyncio_h11, trio_h11
from mcp_tasks_adapters.toolkit import Limits

from tests.adapters.http_harness import LOOPS, PATIENCE_SECONDS, Tools, call, message, passes


@pytest.fixture(params=LOOPS)
def loop(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@define(eq=False)
class Peer:
    """The client's ends of two pipes to a server on a thread of its own."""

    tools: Tools
    to_server: Any
    from_server: Any
    thread: threading.Thread
    cancel: Callable[[], object]
    release: Callable[[], object]

    def send(self, value: Mapping[str, Any] | bytes) -> None:
        """Send a message, or bytes as they are."""
        self.to_server.write(value if isinstance(value, bytes) else json.dumps(value).encode() + b"\n")
        self.to_server.flush()

    def receive(self) -> Any:
        """Read a message; ``None`` at the end."""
        line = self.from_server.readline()
        return json.loads(line) if line else None

    def ask(self, value: Mapping[str, Any] | bytes) -> Any:
        """Send a request and read the next message."""
        self.send(value)
        return self.receive()

    def end(self) -> None:
        """Close the server's stdin."""
        self.to_server.close()

    def join(self) -> None:
        """Wait until the server has ended."""
        self.thread.join(PATIENCE_SECONDS)
        assert not self.thread.is_alive(), "the server did not end"


@contextmanager
def serving(loop: str, *, limits: Limits | None = None, legacy: str = "ignore") -> Iterator[Peer]:
    """Run a server on pipes."""
    tools = Tools(limits=limits or Limits(), loop=loop, legacy=legacy)
    read_end, to_server = os.pipe()
    from_server, write_end = os.pipe()
    handles: list[Any] = []
    ready = threading.Event()
    threads_before = threading.active_count()

    def say_ready(*what: Any) -> None:
        handles.extend(what)
        ready.set()

    def run() -> None:
        (_run_trio if loop == "trio" else _run_asyncio)(tools, (read_end, write_end), say_ready)
        os.close(write_end)

    thread = threading.Thread(target=run)
    thread.start()
    assert ready.wait(PATIENCE_SECONDS)
    run_on_loop, cancel = handles
    with os.fdopen(to_server, "wb") as writer, os.fdopen(from_server, "rb") as reader:
        yield Peer(
            tools,
            writer,
            reader,
            thread,
            lambda: run_on_loop(cancel),
            lambda: run_on_loop(tools.release),
        )
    thread.join(PATIENCE_SECONDS)
    assert not thread.is_alive(), "the server did not end"
    os.close(read_end)
    assert threading.active_count() <= threads_before


def _run_trio(tools: Tools, files: tuple[int, int], say_ready: Callable[..., None]) -> None:
    async def main() -> None:
        with trio.CancelScope() as scope:
            say_ready(trio.lowlevel.current_trio_token().run_sync_soon, scope.cancel)
            await trio_h11.serve_stdio(tools.server(), files=files)

    trio.run(main)


def _run_asyncio(tools: Tools, files: tuple[int, int], say_ready: Callable[..., None]) -> None:
    async def main() -> None:
        task = asyncio.current_task()
        assert task is not None
        say_ready(asyncio.get_running_loop().call_soon_threadsafe, task.cancel)
        try:
            await asyncio_h11.serve_stdio(tools.server(), files=files)
        except asyncio.CancelledError:
            assert task.cancelling()
        assert asyncio.all_tasks() == {task}

    asyncio.run(main())


def words(reply: Any) -> str:
    """Return the text of a tool's result."""
    text: str = reply["result"]["content"][0]["text"]
    return text


# -- messages --------------------------------------------------------------------------------------------


def test_one_message_a_line_each_way(loop: str) -> None:
    with serving(loop) as peer:
        assert words(peer.ask(call("echo", text="zwei\nZeilen ✓"))) == "zwei\nZeilen ✓"
        assert peer.ask(message("server/discover", id="d"))["id"] == "d"


def test_a_message_may_come_in_pieces_and_several_at_once(loop: str) -> None:
    with serving(loop) as peer:
        line = json.dumps(call("echo", text="x")).encode() + b"\r\n"
        for byte in line:
            peer.send(bytes([byte]))
        assert words(peer.receive()) == "x"
        peer.send(b"\n".join(json.dumps(message("server/discover", id=n)).encode() for n in range(5)) + b"\n")
        assert [peer.receive()["id"] for _ in range(5)] == [0, 1, 2, 3, 4]


def test_requests_are_answered_as_they_come_to_their_end(loop: str) -> None:
    """All share one channel; a slow one holds nobody up."""
    with serving(loop) as peer:
        peer.send(call("wait", id="slow"))
        assert passes(peer.tools.started)
        assert peer.ask(call("echo", text="x", id="fast"))["id"] == "fast"
        peer.release()
        assert peer.receive()["id"] == "slow"


def test_an_id_that_is_in_flight_is_refused_and_the_first_request_untouched(loop: str) -> None:
    """WIRE.3."""
    with serving(loop) as peer:
        peer.send(call("wait", id=7))
        assert passes(peer.tools.started)
        assert peer.ask(call("echo", text="x", id=7))["error"]["code"] == -32600
        peer.release()
        assert words(peer.receive()) == "released"


def test_cancelling_a_request_stops_its_tool_and_nothing_is_answered(loop: str) -> None:
    with serving(loop) as peer:
        peer.send(call("wait", id=1))
        assert passes(peer.tools.started)
        peer.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})
        assert passes(peer.tools.cancelled)
        assert peer.ask(message("server/discover", id=2))["id"] == 2


def test_a_cancelled_request_is_not_waited_for_at_the_end(loop: str) -> None:
    """STD.1: nothing is under way any more, so the end of input ends the server at once."""
    with serving(loop, limits=Limits(shutdown_grace_ms=3_600_000)) as peer:
        peer.send(call("wait", id=1))
        assert passes(peer.tools.started)
        peer.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})
        assert passes(peer.tools.cancelled)
        peer.end()
        peer.join()


@pytest.mark.parametrize(
    ("line", "code"),
    [(b"{nonsense\n", -32700), (b"\xff\xfe\n", -32700), (b"[]\n", -32600), (b"7\n", -32600)],
)
def test_a_line_that_is_no_message_is_answered_and_the_next_one_read(
    loop: str, line: bytes, code: int
) -> None:
    """WIRE.1."""
    with serving(loop) as peer:
        assert peer.ask(line)["error"]["code"] == code
        assert words(peer.ask(call("echo", text="next"))) == "next"


def test_blank_lines_are_nothing(loop: str) -> None:
    with serving(loop) as peer:
        peer.send(b"\n \n\r\n")
        assert words(peer.ask(call("echo", text="next"))) == "next"


def test_an_over_long_line_is_one_error(loop: str) -> None:
    """STD.1: and then the stream is in step again."""
    with serving(loop, limits=Limits(message_bytes=10_000)) as peer:
        peer.send(b"x" * 1_000_000)
        reply = peer.ask(b"\n")
        assert reply["error"]["data"] == {"reason": "message_bytes"}
        assert "id" not in reply
        assert words(peer.ask(call("echo", text="next"))) == "next"


def test_notifications_of_a_task_come_on_the_same_channel(loop: str) -> None:
    """SUB.1, SUB.2."""
    with serving(loop) as peer:
        task_id = peer.ask(call("work"))["result"]["taskId"]
        listen = message("subscriptions/listen", {"notifications": {"taskIds": [task_id]}}, id="s")
        assert peer.ask(listen)["method"] == "notifications/subscriptions/acknowledged"
        assert peer.receive()["params"]["status"] == "working"
        peer.release()
        assert peer.receive()["params"]["status"] == "completed"
        peer.end()
        rest = iter(peer.receive, None)
        assert [last["id"] for last in rest if "id" in last] == ["s"]


def test_progress_comes_before_the_result(loop: str) -> None:
    with serving(loop) as peer:
        assert peer.ask(call("count", to=1))["method"] == "notifications/progress"
        assert words(peer.receive()) == "counted"


def test_a_thousand_requests_sent_before_anything_is_read(loop: str) -> None:
    """The server stops reading when too much waits to be read; so it takes a thread to send meanwhile."""
    with serving(loop) as peer:
        text = "x" * 10_000

        def send() -> None:
            for number in range(1000):
                peer.send(call("echo", text=text, id=number))

        sender = threading.Thread(target=send)
        sender.start()
        sender.join(0.2)
        assert sorted(peer.receive()["id"] for _ in range(1000)) == list(range(1000))
        sender.join(PATIENCE_SECONDS)


# -- the end ---------------------------------------------------------------------------------------------


def test_the_end_of_input_is_the_end(loop: str) -> None:
    with serving(loop) as peer:
        assert words(peer.ask(call("echo", text="x"))) == "x"
        peer.end()
        assert peer.receive() is None
        peer.join()


def test_what_was_asked_before_the_end_is_answered(loop: str) -> None:
    with serving(loop) as peer:
        peer.send(call("wait", id=1))
        peer.send(call("echo", text="x", id=2))
        peer.end()
        assert peer.receive()["id"] == 2
        assert passes(peer.tools.started)
        peer.release()
        assert peer.receive()["id"] == 1
        assert peer.receive() is None


def test_what_takes_too_long_is_cancelled(loop: str) -> None:
    with serving(loop, limits=Limits(shutdown_grace_ms=50)) as peer:
        peer.send(call("wait"))
        assert passes(peer.tools.started)
        peer.end()
        assert peer.receive()["error"]["data"] == {"reason": "shutting_down"}
        assert peer.receive() is None
        assert passes(peer.tools.cancelled)


def test_running_tasks_are_cancelled_at_the_end(loop: str) -> None:
    with serving(loop) as peer:
        assert peer.ask(call("work"))["result"]["status"] == "working"
        assert passes(peer.tools.started)
        peer.end()
        assert peer.receive() is None
        assert passes(peer.tools.cancelled)


def test_a_line_without_its_end_is_lost(loop: str) -> None:
    with serving(loop) as peer:
        peer.send(json.dumps(call("echo", text="x")).encode())
        peer.end()
        assert peer.receive() is None


def test_being_cancelled_ends_in_good_order(loop: str) -> None:
    with serving(loop) as peer:
        listen = message("subscriptions/listen", {"notifications": {}}, id="s")
        assert peer.ask(listen)["method"] == "notifications/subscriptions/acknowledged"
        peer.send(call("wait", id=1))
        assert passes(peer.tools.started)
        peer.cancel()
        while peer.receive().get("id") != "s":
            pass
        assert peer.receive()["method"] == "notifications/cancelled"
        assert peer.ask(call("echo", text="x", id=2))["error"]
        peer.release()
        assert peer.receive()["id"] == 1
        assert peer.receive() is None
        peer.join()


def test_a_client_that_stops_reading_is_gone(loop: str) -> None:
    with serving(loop) as peer:
        peer.send(call("wait"))
        assert passes(peer.tools.started)
        peer.from_server.close()
        peer.send(message("server/discover"))
        assert passes(peer.tools.cancelled)
        peer.join()


def test_a_client_that_reads_nothing_may_still_leave(loop: str) -> None:
    """STD.1: while it takes no output its input is not read, and the end of that has to be seen."""
    with serving(loop, limits=Limits(shutdown_grace_ms=50)) as peer:
        peer.send(call("large", size=4_000_000, id=1))
        assert peer.from_server.read(1) == b"{"
        peer.send(call("echo", text="x", id=2))  # the last that is read
        peer.end()
        peer.join()


def test_being_cancelled_while_the_client_reads_nothing(loop: str) -> None:
    with serving(loop, limits=Limits(shutdown_grace_ms=50)) as peer:
        peer.send(call("echo", text="x" * 1_000_000, id=1))
        peer.send(call("wait", id=2))
        assert passes(peer.tools.started)
        peer.cancel()
        peer.join()


# -- a process -------------------------------------------------------------------------------------------

PROGRAM = """
    import subprocess, sys
    from mcp_tasks_adapters import {loop}_h11
    from mcp_tasks_adapters.toolkit import Server, text

    print("printed before")
    server = Server("loud")

    @server.tool()
    async def shout(call):
        print("printed by a tool")
        subprocess.run([sys.executable, "-c", "print('printed by a child')"], check=True)
        return text(sys.stdin.read() + subprocess.run(["cat"], capture_output=True, text=True).stdout)

    {run}
    print("printed after")
"""
RUN = {
    "trio": "import trio; trio.run(trio_h11.serve_stdio, server)",
    "asyncio": "import asyncio; asyncio.run(asyncio_h11.serve_stdio(server))",
}


def start(tmp_path: Path, loop: str, **options: Any) -> subprocess.Popen[bytes]:
    program = tmp_path / "program.py"
    program.write_text(textwrap.dedent(PROGRAM).format(loop=loop, run=RUN[loop]))
    buffering = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    return subprocess.Popen(
        [sys.executable, str(program)],
        env=buffering,
        **{"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options},
    )


def test_nothing_but_messages_on_stdout(tmp_path: Path, loop: str) -> None:
    """STD.1: whoever prints, and nobody else reads what the client writes."""
    with start(tmp_path, loop) as process:
        request = json.dumps(call("shout")).encode() + b"\n"
        out, err = process.communicate(request, timeout=PATIENCE_SECONDS)
    served, _, after = out.partition(b"\n")
    assert words(json.loads(served)) == ""
    assert after == b"printed after\n"
    assert sorted(err.decode().splitlines()) == ["printed before", "printed by a child", "printed by a tool"]
    assert process.returncode == 0


def test_input_and_output_may_be_files(tmp_path: Path, loop: str) -> None:
    source, target = tmp_path / "in", tmp_path / "out"
    source.write_text("\n".join(json.dumps(message("server/discover", id=n)) for n in (1, 2)) + "\n")
    with (
        source.open("rb") as stdin,
        target.open("wb") as stdout,
        start(tmp_path, loop, stdin=stdin, stdout=stdout) as process,
    ):
        assert process.wait(PATIENCE_SECONDS) == 0
    lines = target.read_bytes().splitlines()
    assert [json.loads(line)["id"] for line in lines[:2]] == [1, 2]
    assert lines[2:] == [b"printed after"]


def test_a_process_without_input_ends(tmp_path: Path, loop: str) -> None:
    with start(tmp_path, loop, stdin=subprocess.DEVNULL) as process:
        out, _ = process.communicate(timeout=PATIENCE_SECONDS)
    assert (out, process.returncode) == (b"printed after\n", 0)


def test_an_interrupted_process_does_not_wait_for_its_client(tmp_path: Path, loop: str) -> None:
    with start(tmp_path, loop) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(message("server/discover")).encode() + b"\n")
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["id"] == 1
        process.send_signal(signal.SIGINT)
        process.wait(PATIENCE_SECONDS)
