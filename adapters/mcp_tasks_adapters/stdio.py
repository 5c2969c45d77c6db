"""Messages over stdin and stdout, one a line (STD.1): shared by every loop.

:class:`StdioConnection` does no I/O. :class:`StdioPump` feeds it from two threads, which is the one way to
wait for a standard stream, be it a pipe, a file or a terminal, without changing it for the processes that
share it. Neither knows the loop, beyond a function that runs something on its thread.
"""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from queue import SimpleQueue
from threading import Semaphore, Thread
from typing import Any, Final

from mcp_tasks_adapters.driver import RequestFacts, Service
from mcp_tasks_proto.errors import LimitExceeded, RemoteProtocolError
from mcp_tasks_proto.limits import Limits
from mcp_tasks_proto.wire.jsonrpc import decode, encode, error_message
from mcp_tasks_proto.wire.stdio import LineDecoder, frame

__all__ = ["StdioConnection", "StdioPump", "claimed_stdio"]

READ_BYTES: Final = 64 * 1024
"""How much is read at a time."""

OUTPUT_BYTES: Final = 1024 * 1024
"""While more than this waits to be written, nothing is read."""

WRITE_BYTES: Final = 4096
"""How much a pipe that is ready takes without blocking."""

INTERRUPTIBLE: Final = hasattr(select, "poll")
"""Whether a thread that waits for a file can be told to stop."""

FACTS: Final = RequestFacts(transport="stdio", headers={})


class StdioConnection:
    """What happens between one client's lines and the driver.

    ``output_ready`` is called when there is something to write, ``settled`` when, after :meth:`end_input`,
    every request has been answered and every answer written.
    """

    def __init__(
        self,
        driver: Service,
        limits: Limits,
        *,
        output_ready: Callable[[], None],
        settled: Callable[[], None],
    ) -> None:
        self._driver = driver
        self._limits = limits
        self._output_ready = output_ready
        self._settled = settled
        self._lines = LineDecoder(limits)
        self._open: set[_Channel] = set()
        self._input_ended = False
        self._output: list[bytes] = []
        self._output_bytes = 0
        self._ready_is_due: list[_Channel] = []
        self._taken: tuple[int, list[_Channel]] | None = None

    @property
    def wants_input(self) -> bool:
        """Whether to read on."""
        return not self._input_ended and self._output_bytes <= OUTPUT_BYTES

    def receive(self, data: bytes) -> None:
        """Take in bytes from the client."""
        for line in self._lines.feed(data):
            if isinstance(line, LimitExceeded):
                self._refuse(line)
            else:
                self._receive_line(line)

    def end_input(self) -> None:
        """Note that no more comes; what is under way may still be answered."""
        self._input_ended = True
        self._check_settled()

    def take_output(self) -> bytes:
        """Return what to write next; empty: nothing, or what was taken before is still on its way."""
        if self._taken is not None or not self._output:
            return b""
        out = b"".join(self._output)
        self._taken = len(out), self._ready_is_due
        self._output, self._ready_is_due = [], []
        return out

    def written(self) -> None:
        """Note that what ``take_output`` gave has left."""
        assert self._taken is not None
        (size, channels), self._taken = self._taken, None
        self._output_bytes -= size
        for channel in channels:
            if channel in self._open and channel.exchange is not None:
                self._driver.ready(channel.exchange)
        self._check_settled()

    def close(self) -> None:
        """Give up what has not been answered: the client is gone, or has been waited for long enough."""
        self._input_ended = True
        still_open, self._open = self._open, set()
        for channel in still_open:
            if channel.exchange is not None:
                self._driver.closed(channel.exchange)
        self._driver.connection_closed(self)

    # -- what comes of a line ------------------------------------------------------------------------------

    def _receive_line(self, line: bytes) -> None:
        try:
            message = decode(line, self._limits)
        except RemoteProtocolError as error:
            self._refuse(error)
            return
        channel = _Channel(self)
        self._open.add(channel)
        channel.exchange = self._driver.receive(message, channel, facts=FACTS, connection=self)

    def _refuse(self, error: RemoteProtocolError) -> None:
        self._put(error_message(error.request_id, error.error))

    def _reply(self, channel: _Channel, message: dict[str, Any] | None) -> None:
        if channel in self._open:
            self._open.remove(channel)
            if message is not None:
                self._put(message)
            self._check_settled()

    def _send(self, channel: _Channel, message: dict[str, Any]) -> None:
        if channel in self._open:
            self._ready_is_due.append(channel)
            self._put(message)

    def _put(self, message: dict[str, Any]) -> None:
        line = frame(encode(message))
        self._output.append(line)
        self._output_bytes += len(line)
        self._output_ready()

    def _check_settled(self) -> None:
        if self._input_ended and not self._open and not self._output_bytes:
            self._settled()


class _Channel:
    """The way back for one message; what comes when it is over is dropped."""

    __slots__ = ("_connection", "exchange")

    def __init__(self, connection: StdioConnection) -> None:
        self._connection = connection
        self.exchange: int | None = None

    def reply(
        self,
        message: dict[str, Any] | None,
        http_status: int,
        headers: Sequence[tuple[str, str]] = (),
        event_id: str | None = None,
    ) -> None:
        """Send the last message."""
        self._connection._reply(self, message)

    def send(self, message: dict[str, Any], event_id: str | None = None) -> None:
        """Send a message on the way."""
        self._connection._send(self, message)

    def open(self) -> None:
        """A line is a line: there is nothing to open."""


# -- threads -------------------------------------------------------------------------------------------


class StdioPump:
    """Moves bytes between two file descriptors and a :class:`StdioConnection`.

    ``run_on_loop`` runs a function on the loop's thread, soon, and may be called from any thread.
    ``input_ended`` and ``settled`` are called there: when no more input comes, and when it is all answered.
    Both files stay open. A context manager: at its end what is under way is given up, and no thread is left
    (where the system has no ``poll``, one may be left waiting for the client until the process ends).
    """

    def __init__(
        self,
        driver: Service,
        limits: Limits,
        *,
        stdin: int,
        stdout: int,
        run_on_loop: Callable[..., object],
        input_ended: Callable[[], None],
        settled: Callable[[], None],
    ) -> None:
        self._stdin = stdin
        self._stdout = stdout
        self._run_on_loop = run_on_loop
        self._input_ended = input_ended
        self._settled = settled
        self._patience_ms = limits.shutdown_grace_ms
        self._closed = False
        self._connection = StdioConnection(driver, limits, output_ready=self._flush, settled=settled)
        self._may_read = Semaphore(1)
        self._reads = True  # a read has been asked for and not come back yet
        self._to_write: SimpleQueue[bytes] = SimpleQueue()
        self._threads = [Thread(target=self._read, daemon=True), Thread(target=self._write, daemon=True)]

    def __enter__(self) -> StdioPump:
        self._stopped, self._stop = os.pipe()
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closed = True
        self._connection.close()
        os.close(self._stop)
        self._may_read.release()
        self._to_write.put(b"")
        if INTERRUPTIBLE:
            for thread in self._threads:
                thread.join()
        os.close(self._stopped)

    def end_input(self) -> None:
        """Take no more input; ``settled`` follows when what has come is answered."""
        self._connection.end_input()

    # -- on the loop's thread ------------------------------------------------------------------------------

    def _received(self, data: bytes) -> None:
        self._reads = False
        if self._closed:
            return
        if data:
            self._connection.receive(data)
            self._read_on()
        else:
            self._input_ended()

    def _wrote(self) -> None:
        if not self._closed:
            self._connection.written()
            self._flush()
            self._read_on()

    def _lost(self) -> None:
        """The client does not read any more."""
        if not self._closed:
            self._connection.close()
            self._input_ended()
            self._settled()

    def _read_on(self) -> None:
        if not self._reads and self._connection.wants_input:
            self._reads = True
            self._may_read.release()

    def _flush(self) -> None:
        if data := self._connection.take_output():
            self._to_write.put(data)

    # -- on threads of their own ---------------------------------------------------------------------------

    def _read(self) -> None:
        while True:
            self._may_read.acquire()
            if not self._ready(self._stdin, read=True):
                return
            try:
                data = os.read(self._stdin, READ_BYTES)
            except OSError:
                data = b""
            self._tell(self._received, data)
            if not data:
                return

    def _write(self) -> None:
        while data := self._to_write.get():
            view = memoryview(data)
            try:
                while view:
                    while not self._ready(self._stdout, read=False, patience_ms=self._patience_ms):
                        if self._closed or self._hung_up():
                            self._tell(self._lost)
                            return
                    view = view[os.write(self._stdout, view[:WRITE_BYTES]) :]
            except OSError:
                self._tell(self._lost)
                return
            self._tell(self._wrote)

    def _ready(self, file: int, *, read: bool, patience_ms: int | None = None) -> bool:
        """Wait until ``file`` can be read or written; false: there is no more need, or no more patience."""
        if not INTERRUPTIBLE:
            return not self._closed
        poller = select.poll()
        poller.register(file, select.POLLIN if read else select.POLLOUT)
        poller.register(self._stopped, select.POLLIN)
        ready = [one for one, _ in poller.poll(patience_ms)]
        return file in ready and self._stopped not in ready

    def _hung_up(self) -> bool:
        """Whether the client has closed stdin, read to its end or not.

        While it takes no output its input is not read, so nobody else would notice.
        """
        poller = select.poll()
        poller.register(self._stdin, 0)
        return bool(poller.poll(0))

    def _tell(self, function: Callable[..., None], *arguments: object) -> None:
        with suppress(RuntimeError):  # the loop has ended
            self._run_on_loop(function, *arguments)


@contextmanager
def claimed_stdio() -> Iterator[tuple[int, int]]:
    """Keep stdin and stdout for the protocol, and give their file descriptors (STD.1).

    Within the block everybody else, subprocesses included, finds stdin empty, and what they print to stdout
    goes to stderr.
    """
    stdin, stdout = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    try:
        os.dup2(nothing, 0)
        os.dup2(2, 1)
        print(end="", flush=True)  # what was printed before and is still in a buffer
        with redirect_stdout(sys.stderr):
            yield stdin, stdout
    finally:
        os.dup2(stdin, 0)
        os.dup2(stdout, 1)
        for file in (stdin, stdout, nothing):
            os.close(file)
