"""A run: a server is killed again and again under load, started again over the same store, and judged."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import Random
from threading import Event as Flag
from threading import Thread
from time import monotonic, sleep
from typing import Final

from attrs import define, field, frozen
from mcp_tasks_adapters.cli.store import choose_store
from mcp_tasks_adapters.toolkit import Server

from mcp_tasks_proto.effects import FindExpired, Load
from mcp_tasks_proto.inputs import ExpiredFound, Loaded
from tests.adapters.store_harness import Bench, opened
from tests.crash.checker import ENDED, find_faults, was_lost
from tests.crash.customers import Customer, Life
from tests.crash.history import (
    AnswerAcknowledged,
    Began,
    CancelAcknowledged,
    Checkpointed,
    Created,
    Delivered,
    Event,
    Killed,
    Note,
    Refused,
    Viewed,
)
from tests.crash.kinds import MANY

__all__ = ["NotStartedError", "Plan", "Verdict", "run"]

PROJECT: Final = Path(__file__).parents[2]
READY: Final = "listening on "
START_S: Final = 60.0
STOP_S: Final = 20.0
PATIENCE_S: Final = 60.0
"""For what nobody acknowledged to end, once nobody kills any more."""
BREATH_S: Final = 0.05
CUSTOMERS: Final = 8

MOST_EVENTS: Final = 250
"""In the history of a life until it is killed: a slow machine makes it longer, and not emptier."""
LAST_MOMENT_S: Final = 0.02
"""And then it lives for up to this much longer, so that it dies at any point of what it does."""
AFTERMATH_EVENTS: Final = 50
"""How long the others work on before the next one is started."""
LONGEST_LIFE_S: Final = 30.0
EARLY_SHARE: Final = 0.1
"""Of the kills: while the server is starting, perhaps before it has looked at its store."""
EARLY_S: Final = (0.2, 1.0)
"""From its start until such a kill. Before that there is nothing but an interpreter that starts."""

FAR_FUTURE_MS: Final = 2**50
SLICE: Final = 1_000


@frozen(kw_only=True)
class Plan:
    """What to do."""

    store: str
    """As ``mcp-tasks serve --store`` takes it."""
    kills: int
    seed: int
    """Of what customers choose and of the moments of the kills. The machine's timing has no seed."""
    servers: int
    """How many work at a time; one of them is killed at a time."""
    loops: Sequence[str]
    """Each life takes one of these."""
    folder: Path
    """For the tools' diary."""


class NotStartedError(Exception):
    """A server did not start; the message has what it said."""


@frozen(kw_only=True)
class Verdict:
    """What came of it."""

    faults: Sequence[str]
    history: Sequence[Event]
    notes: Sequence[Note]
    counts: Counter[str]
    """How much of what there was, so that nobody takes an idle run for a good one."""


def run(plan: Plan, say: Callable[[str], None] = lambda _: None) -> Verdict:
    """Carry out ``plan``; ``say`` is told how it goes."""
    return _Run(plan, say).run()


@define(eq=False)
class _Run:
    plan: Plan
    say: Callable[[str], None]
    random: Random = field(init=False)
    history: list[Event] = field(init=False, factory=list)
    customers: Sequence[Customer] = field(init=False)
    counts: Counter[str] = field(init=False, factory=Counter)
    _lives: int = field(init=False, default=0)
    _servers: list[_ServerProcess] = field(init=False, factory=list)
    """Those that are alive."""
    _stack: ExitStack = field(init=False, factory=ExitStack)

    def __attrs_post_init__(self) -> None:
        seed = self.plan.seed
        self.random = Random(seed)
        self.customers = [Customer(Random(f"{seed}/{number}"), self.history) for number in range(CUSTOMERS)]

    def run(self) -> Verdict:
        with self._stack:
            for _ in range(self.plan.kills):
                self._kill_one()
                if self.counts["kills"] % 10 == 0:
                    self.say(f"{self.counts['kills']} kills, {len(self.history)} events")
            left = self._settle()
        notes = list(self._notes())
        self._count(notes)
        faults = [*find_faults(self.history, notes), *left]
        return Verdict(faults=faults, history=self.history, notes=notes, counts=self.counts)

    # -- lives ---------------------------------------------------------------------------------------------

    def _kill_one(self) -> None:
        fresh = self._start()
        if self.random.random() < EARLY_SHARE:
            sleep(self.random.uniform(*EARLY_S))
            self._kill(fresh)
            self.counts["kills while starting"] += 1
        else:
            while len(self._servers) < self.plan.servers:
                self._start()
            with self._busy(Customer.work) as stop:
                try:
                    self._let_live(self.random.randint(0, MOST_EVENTS))
                    self._kill(self.random.choice(self._servers))
                    if self._servers:
                        self._let_live(AFTERMATH_EVENTS)
                finally:
                    stop.set()
        self.counts["kills"] += 1

    def _start(self) -> _ServerProcess:
        self._lives += 1
        loop = self.random.choice(self.plan.loops)
        server = self._stack.enter_context(_ServerProcess(self._lives, self.plan.store, loop, self._diary))
        self._servers.append(server)
        return server

    def _kill(self, server: _ServerProcess) -> None:
        self._servers.remove(server)
        self.history.append(Killed(life=server.number))
        server.killed.set()
        server.kill()
        self._listen_to(server)

    def _let_live(self, events: int) -> None:
        enough, patience = len(self.history) + events, monotonic() + LONGEST_LIFE_S
        while len(self.history) < enough and monotonic() < patience:
            sleep(LAST_MOMENT_S / 10)
        sleep(self.random.uniform(0, LAST_MOMENT_S))

    def _settle(self) -> Sequence[str]:
        """See everything to its end; return what is wrong with what is left in the store."""
        while len(self._servers) < self.plan.servers:
            self._start()
        with self._busy(Customer.settle):
            pass
        left = self._never_ended()
        for server in self._servers:
            if server.end() != 0:
                left = [*left, f"life {server.number} did not end as it should"]
            self._listen_to(server)
        return left

    @contextmanager
    def _busy(self, what: Callable[[Customer, Sequence[Life], Flag], None]) -> Iterator[Flag]:
        """Let all customers do something during the block; leave it when they are done."""
        lives = [Life(server.number, server.url(), server.killed) for server in self._servers]
        stop = Flag()
        threads = [Thread(target=what, args=[customer, lives, stop]) for customer in self.customers]
        for thread in threads:
            thread.start()
        try:
            yield stop
        finally:
            for thread in threads:
                thread.join()

    def _listen_to(self, server: _ServerProcess) -> None:
        """A server that is well has nothing to say."""
        if words := server.last_words():
            self.history.append(Refused(life=server.number, method="any", why=f"it said {words!r}"))

    # -- what is left --------------------------------------------------------------------------------------

    @property
    def _diary(self) -> Path:
        return self.plan.folder / "diary.jsonl"

    def _notes(self) -> Iterator[Note]:
        """Read the diary. Each line was written in one go: it is there, or it is not."""
        for line in self._diary.read_text().splitlines():
            note = json.loads(line)
            match note.pop("what"):
                case "began":
                    yield Began(**note)
                case "delivered":
                    yield Delivered(**note)
                case "checkpointed":
                    yield Checkpointed(task_id=note["task_id"], round=note["round"])

    def _never_ended(self) -> Sequence[str]:
        """Look into the store itself, where those are as well whose creation nobody acknowledged.

        The server is still there to end what needs ending. Of those, the resumable ones wait for answers that
        nobody will give, as long as their time to live allows.
        """
        store = choose_store(self.plan.store, None, target="", server=Server("judge")).store
        with opened(store) as bench:
            waiting = _not_ended(bench, _all_ids(bench))
            patience = monotonic() + PATIENCE_S
            while waiting and monotonic() < patience:
                sleep(BREATH_S)
                waiting = _not_ended(bench, waiting)
        return [f"{task_id}: it waits in the store for ever" for task_id in waiting]

    def _count(self, notes: Sequence[Note]) -> None:
        names = {Created: "creations", AnswerAcknowledged: "answers", CancelAcknowledged: "cancellations"}
        ends = {}
        for event in self.history:
            if isinstance(event, Viewed):
                self.counts["looks"] += 1
                if event.view is not None and event.view["status"] in ENDED:
                    self.counts["looks at an end"] += 1
                    ends[event.task_id] = "lost" if was_lost(event.view) else event.view["status"]
                elif event.view is None:
                    ends.setdefault(event.task_id, "expired")
            elif type(event) in names:
                self.counts[f"{names[type(event)]} acknowledged"] += 1
        self.counts.update(f"ended: {end}" for end in ends.values())
        self.counts["answers delivered"] = sum(isinstance(note, Delivered) for note in notes)
        begun = Counter(note.task_id for note in notes if isinstance(note, Began))
        self.counts["resumptions"] = begun.total() - len(begun)


def _all_ids(bench: Bench) -> Sequence[str]:
    [found] = bench.ask([FindExpired(FAR_FUTURE_MS, MANY, 0)])
    assert isinstance(found, ExpiredFound), found
    return [record.task_id for record in found.records]


def _not_ended(bench: Bench, task_ids: Sequence[str]) -> Sequence[str]:
    waiting = []
    for start in range(0, len(task_ids), SLICE):
        for answer in bench.ask([Load(task_id, 0) for task_id in task_ids[start : start + SLICE]]):
            assert isinstance(answer, Loaded), answer
            record = answer.record
            if record is not None and not record.status.terminal and record.tool != "resumable":
                waiting.append(record.task_id)
    return waiting


class _ServerProcess:
    """A real ``mcp-tasks serve``, killed at the end if it was not before."""

    def __init__(self, number: int, store: str, loop: str, diary: Path) -> None:
        self.number = number
        self.killed = Flag()
        """Set before it is killed."""
        self._url = ""
        command = [sys.executable, "-m", "mcp_tasks_adapters.cli", "serve", "tests.crash.tools:server"]
        self._process = subprocess.Popen(
            [*command, "--store", store, "--loop", loop],
            cwd=PROJECT,
            env={**os.environ, "CRASH_DIARY": str(diary)},
            stderr=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> _ServerProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        assert self._process.stderr is not None
        self._process.stderr.close()
        self._process.wait()

    def url(self) -> str:
        """Wait until it listens, and return where. Raises :class:`NotStartedError` when it does not."""
        if self._url:
            return self._url
        assert self._process.stderr is not None
        ready, _, _ = select.select([self._process.stderr], [], [], START_S)
        said = self._process.stderr.readline() if ready else "nothing"
        if not said.startswith(READY):
            self.kill()
            raise NotStartedError(f"the server did not start: it said {said}{self.last_words()}")
        self._url = said.removeprefix(READY).strip()
        return self._url

    def kill(self) -> None:
        """SIGKILL: nothing of the process has a chance to put anything in order."""
        self._process.kill()

    def end(self) -> int:
        """Ask it to end, and return its exit code."""
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(STOP_S)

    def last_words(self) -> str:
        """Return what it said once it has ended, beside where it listens."""
        assert self._process.stderr is not None
        with self._process.stderr:
            words = "".join(line for line in self._process.stderr if not line.startswith(READY))
        self._process.wait()
        return words
