"""Threads of stores: one that carries out what is put before it, and one that opens what takes its time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from threading import Event, Thread
from typing import Final, Generic, TypeVar

from mcp_tasks_adapters.storing import LoopThread

__all__ = ["StoreThread", "opened_on_a_thread"]

GROUP: Final = 512
"""How much is carried out at once at most."""

_Job = TypeVar("_Job")
_Opened = TypeVar("_Opened")


class StoreThread(Generic[_Job]):
    """Calls ``carry_out`` with the jobs that wait, in order; with none when ``idle`` says that it is time.

    ``idle`` returns how many seconds there are until then; ``None``: no need. Neither raises. At the end
    ``ended`` is called, on the thread, as everything else.
    """

    def __init__(
        self,
        name: str,
        carry_out: Callable[[Sequence[_Job]], None],
        ended: Callable[[], None],
        idle: Callable[[], float | None] = lambda: None,
    ) -> None:
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._carry_out = carry_out
        self._idle = idle
        self._ended = ended
        self.closing = Event()
        """Set when what takes long is to be given up."""
        # A process that ends does not wait for it: a transaction is written down whole or not at all.
        self._thread = Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def put(self, job: _Job) -> None:
        """Have something done; from any thread."""
        self._jobs.put(job)

    def stop(self) -> None:
        """End, after what was put before."""
        self.closing.set()
        self._jobs.put(None)

    def _run(self) -> None:
        going_on = True
        while going_on:
            jobs, going_on = self._take()
            self._carry_out(jobs)
        self._ended()

    def _take(self) -> tuple[list[_Job], bool]:
        """Wait for a job, or until it is time; return those that wait, and whether there will be more."""
        jobs: list[_Job] = []
        try:
            job = self._jobs.get(timeout=self._idle())
            while job is not None:
                jobs.append(job)
                if len(jobs) == GROUP:
                    return jobs, True
                job = self._jobs.get_nowait()
        except Empty:
            return jobs, True
        return jobs, False


async def opened_on_a_thread(
    loop: LoopThread, open_it: Callable[[], _Opened], let_go: Callable[[_Opened], object]
) -> _Opened:
    """Return what ``open_it`` returns, or raise what it raises, on a thread where it may take its time.

    If the waiting is cancelled, nobody has what is opened nevertheless: ``let_go`` is called with it, on a
    thread too.
    """
    outcome: Future[_Opened] = Future()
    ready = loop.event()

    def run() -> None:
        try:
            outcome.set_result(open_it())
        except Exception as error:
            outcome.set_exception(error)
        loop.post(ready.set)

    def discard() -> None:
        if outcome.exception() is None:
            let_go(outcome.result())

    Thread(target=run, name="mcp-tasks-opener", daemon=True).start()
    try:
        await ready.wait()
    except BaseException:
        Thread(target=discard, name="mcp-tasks-discarder", daemon=True).start()
        raise
    return outcome.result()
