"""A thread that carries out what is put before it, as much at once as waits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from threading import Event, Thread
from typing import Final, Generic, TypeVar

__all__ = ["StoreThread"]

GROUP: Final = 512
"""How much is carried out at once at most."""

_Job = TypeVar("_Job")


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
