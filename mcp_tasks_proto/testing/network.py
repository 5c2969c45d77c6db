"""Several server engines over one store, in virtual time: processes that crash, fall asleep and come back.

What goes wrong is data: each effect of any engine takes the next :class:`Fate`, each message of a client's
the next :class:`~mcp_tasks_proto.testing.Passage`, and when there are none left all is well. So a process can
end between any two effects, before or after the last one was carried out, a request can come twice, it or its
reply never, and the same story comes again.

A process that has ended, or sleeps for longer than its lease, is taken for gone: the others hear of the work
that it leaves (``WorkLost``), again and again. One that wakes up after that is there again under its old
name, with workers that others may have succeeded, and nothing stops it from writing: that it does no harm is
the engines' part. Processes may have clocks of their own, which are wrong.

For every process that ends another one begins, under a name of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from enum import Enum
from functools import partial
from heapq import heappop, heappush
from itertools import count
from typing import Any

from attrs import define, field, frozen

from mcp_tasks_proto.effects import Delete, Effect, OpenStream, Reply, Save, Send, Step, StoreEffect
from mcp_tasks_proto.inputs import (
    ExchangeClosed,
    Input,
    LegacyInput,
    MessageReceived,
    RecordChanged,
    RecordRemoved,
    Saved,
    StreamReady,
    TimePassed,
    WorkLost,
)
from mcp_tasks_proto.legacy.server import DualEraServer
from mcp_tasks_proto.records import TaskRecord
from mcp_tasks_proto.server import ServerEngine
from mcp_tasks_proto.testing.messages import request
from mcp_tasks_proto.testing.passages import NEVER_MS, Passage, duration, from_now_on, moment
from mcp_tasks_proto.testing.promises import Promises
from mcp_tasks_proto.testing.store import DictStore

__all__ = ["Crash", "Fate", "Network"]


class Crash(Enum):
    """Whether a process ends at one of its effects."""

    NEVER = "never"
    BEFORE = "before"
    """It never comes to that effect, nor to those after it."""
    AFTER = "after"
    """The effect is carried out, or on its way; its outcome finds nobody."""


@frozen(kw_only=True)
class Fate:
    """What becomes of one effect. Raises ``ValueError`` for less than no time."""

    delay_ms: int = duration(1)
    """How long it is on its way, and how long what comes of it is on its way back."""
    crash: Crash = Crash.NEVER
    fails: bool = False
    """Whether the store cannot do it (for what is asked of a store)."""
    sleep_ms: int = duration(0)
    """How long the process hears nothing after it."""
    lost: bool = False
    """Whether it never arrives, nor does anything after it on its exchange, and nobody is told (for what is
    said to a client)."""


CALM = Fate()
CALM_PASSAGE = Passage(delay_ms=1)


@define(eq=False)
class _Node:
    engine: ServerEngine | DualEraServer
    promises: Promises
    deadline: int | None = None
    skew_ms: int = 0
    """By how much its clock is ahead."""
    asleep_since: int = 0
    awake_at: int = 0


@define(eq=False)
class _Exchange:
    node: str
    said: Callable[[Reply | Send | OpenStream | None], None]
    in_order: bool = False
    """Whether nothing that is said on it overtakes what was said before."""
    busy_until: int = 0
    arrives_at: int | None = None
    """When the process hears of it; ``None``: it does not."""
    again: int | None = None
    """The exchange on which it hears of the same once more."""

    def fall_silent(self) -> None:
        """Nothing that is said on it gets through any more."""
        self.said = _unheeded


def _unheeded(*_: object) -> None:
    """What nobody listens to, or looks at."""


def _never() -> bool:
    return False


@define(eq=False, kw_only=True)
class Network:
    """Runs all of it, for as long as :meth:`run` says.

    ``make_engine`` makes the engine of the process with a name. ``work`` is every process's tools and
    workers: what comes of an effect there, each thing after so many milliseconds. ``seen`` is called with
    each step before anything of it is carried out: whose it is, what the process was told, what it said to
    that, and when, by its own clock. Then, and still before that, the ``promises`` of the process look at it,
    which raise ``AssertionError`` where it breaks one: each process has its own, and those that it makes may
    be of a subclass that knows of more.

    A name that no process has ever had raises ``LookupError``; one whose process has ended does not. Raises
    ``ValueError`` where anything is to happen before now.
    """

    make_engine: Callable[[str], ServerEngine | DualEraServer]
    work: Callable[[str, Effect], Iterable[tuple[int, Input]]]
    seen: Callable[[str, Input | LegacyInput, Step, int], None] = _unheeded
    promises: Callable[[], Promises] = Promises
    """Makes what a process's engine is held to."""
    size: int = 2
    """How many processes there are."""
    fates: Iterable[Fate] = field(default=(), on_setattr=from_now_on)
    """What becomes of effects, one by one, and of the news that another process has changed a task, of which
    the delay alone counts. Those that are set anew count from then on."""
    passages: Iterable[Passage] = field(default=(), on_setattr=from_now_on)
    """What the network does with what clients send, message by message. What arrives again does so at the
    same process, if that is still there. Those that are set anew count from then on."""
    lease_ms: int = 2_000
    """After so much silence a process is taken for gone."""
    restart_ms: int = 500
    """From the end of a process to the beginning of the next."""
    skews: Iterable[int] = ()
    """By how many milliseconds the clock of each process is ahead, in the order in which they begin; of those
    for which there is none it is right."""
    now: int = 1_700_000_000_000
    store: DictStore = field(init=False, factory=DictStore)
    history: list[TaskRecord] = field(init=False, factory=list)
    """Everything that was ever written, in order."""
    taken_for_gone: set[str] = field(init=False, factory=set)
    """Who ever was, rightly or not."""
    _gone: set[str] = field(init=False, factory=set)
    """Who is at present."""
    _fates: Iterator[Fate] = field(init=False)
    _passages: Iterator[Passage] = field(init=False)
    _nodes: dict[str, _Node] = field(init=False, factory=dict)
    _ended: dict[str, int] = field(init=False, factory=dict)
    """When each process ended that is not known to be gone yet."""
    _names: Iterator[str] = field(init=False)
    _begun: set[str] = field(init=False, factory=set)
    """The names of all that there ever were."""
    _skews: Iterator[int] = field(init=False)
    _agenda: list[tuple[int, int, Callable[[], None]]] = field(init=False, factory=list)
    _order: count[int] = field(init=False, factory=count)
    _exchanges: dict[Hashable, _Exchange] = field(init=False, factory=dict)
    _numbers: count[int] = field(init=False, factory=lambda: count(1))

    def __attrs_post_init__(self) -> None:
        if self.lease_ms <= 0 or self.restart_ms < 0:  # no validators, which would make every assignment slow
            raise ValueError(f"a lease of {self.lease_ms} ms, a restart after {self.restart_ms} ms")
        self._fates, self._passages = iter(self.fates), iter(self.passages)
        self._skews = iter(self.skews)
        self._names = (f"node-{number}" for number in count(1))
        for _ in range(self.size):
            self._begin()
        self._after(self.lease_ms, self._look_around)

    # -- for tests -----------------------------------------------------------------------------------------

    @property
    def nodes(self) -> list[str]:
        """The processes there are, oldest first; those that sleep are among them."""
        return list(self._nodes)

    def ask(
        self,
        node: str,
        method: str,
        params: Mapping[str, Any],
        answered: Callable[[dict[str, Any] | None], None],
        heard: Callable[[dict[str, Any]], None] = _unheeded,
        **facts: Any,
    ) -> int:
        """Send a request to a process. ``answered`` is called with the reply, or ``None`` if there is none.

        If something is lost it is not called at all: whoever waits no more says so with :meth:`close`, by the
        number that this returns. ``heard`` is called with what comes before it; ``facts`` are for
        :func:`~mcp_tasks_proto.testing.messages.request`.
        """
        number = next(self._numbers)
        self._send(number, node, request(method, params, id=number, **facts), answered, heard)
        return number

    def send(
        self,
        node: str,
        message: Any,
        answered: Callable[[dict[str, Any] | None], None],
        heard: Callable[[dict[str, Any]], None] = _unheeded,
    ) -> int:
        """Send a request that somebody else has written, and return a number to :meth:`close` it by."""
        number = next(self._numbers)
        self._send(number, node, message, answered, heard)
        return number

    def _send(
        self,
        number: int,
        node: str,
        message: Any,
        answered: Callable[[dict[str, Any] | None], None],
        heard: Callable[[dict[str, Any]], None],
    ) -> None:
        def said(effect: Reply | Send | OpenStream | None) -> None:
            if isinstance(effect, Send):
                heard(effect.message)
            else:
                answered(effect.message if isinstance(effect, Reply) else None)

        self._set_out(number, _Exchange(node, said), lambda at: MessageReceived(exchange=at, message=message))

    def converse(
        self,
        node: str,
        arrives: Callable[[int], Input | LegacyInput],
        said: Callable[[Reply | Send | OpenStream | None], None],
        *,
        passage: Passage | None = None,
    ) -> int:
        """Have something arrive at a process, as the fact that ``arrives`` makes of its exchange.

        ``said`` is called with all that the process says on it, in order, or with ``None`` if the process
        ends. So a client of 2025-11-25 is carried, who has sessions and streams. ``passage`` is what becomes
        of it on the way, in place of the next of ``passages``. Return the exchange, for :meth:`close`.
        """
        number = next(self._numbers)
        self._set_out(number, _Exchange(node, said, in_order=True), arrives, passage)
        return number

    def close(self, number: int) -> None:
        """Whoever sent a request waits no more, and hears nothing of it. The process is told, after it.

        Where the request arrives twice, so is it told of the second one.
        """
        exchange = self._exchanges.pop(number, None)
        if exchange is not None:
            if exchange.arrives_at is not None:
                wait_ms = max(1, exchange.arrives_at - self.now)
                self._after(wait_ms, partial(self.tell, exchange.node, ExchangeClosed(number)))
            if exchange.again is not None:
                self.close(exchange.again)

    def later(self, milliseconds: int, act: Callable[[], None]) -> None:
        """Do something after a while."""
        self._after(milliseconds, act)

    def crash(self, node: str) -> None:
        """End a process. Who waits for an answer of it learns that none will come."""
        if self._find(node) is None:
            return
        del self._nodes[node]
        self._ended[node] = self.now
        self._after(self.restart_ms, self._begin)
        for number, exchange in list(self._exchanges.items()):
            if exchange.node == node:
                self._after(1, partial(self._break, number))

    def sleep(self, node: str, milliseconds: int) -> None:
        """Let a process hear nothing for a while; what is said to it waits."""
        found = self._find(node)
        if found is not None:
            found.asleep_since, found.awake_at = self.now, moment(self.now, milliseconds)

    def run(self, milliseconds: int, *, until: Callable[[], bool] = _never) -> bool:
        """Let so many milliseconds pass, from now on, or until something is so; return whether it is."""
        end = moment(self.now, milliseconds)
        while not until():
            when = self._next()
            if when > end:
                self.now = end
                return False
            self.now = max(self.now, when)
            if self._agenda[0][0] <= self.now:
                heappop(self._agenda)[2]()
            else:
                self._wake()
        return True

    # -- time ----------------------------------------------------------------------------------------------

    def _after(self, milliseconds: int, act: Callable[[], None]) -> None:
        heappush(self._agenda, (moment(self.now, milliseconds), next(self._order), act))

    def _next(self) -> int:
        """Return when something happens next. Something always does: who is gone is looked for for ever."""
        return min([self._agenda[0][0], *(_due(node) for node in self._nodes.values())])

    def _wake(self) -> None:
        for name, node in list(self._nodes.items()):
            if _due(node) <= self.now:
                node.deadline = None
                self.tell(name, TimePassed())

    # -- processes -----------------------------------------------------------------------------------------

    def _begin(self) -> None:
        name = next(self._names)
        self._begun.add(name)
        self._nodes[name] = _Node(self.make_engine(name), self.promises(), skew_ms=next(self._skews, 0))
        self.tell(name, TimePassed())

    def tell(self, name: str, fact: Input | LegacyInput) -> None:
        """Hand a fact to a process's engine as soon as it is awake, and see to what comes of it."""
        node = self._find(name)
        if node is None:
            return
        if node.awake_at > self.now:
            self._after(node.awake_at - self.now, partial(self.tell, name, fact))
            return
        told: Any = fact  # which facts it knows its era says
        now = self.now + node.skew_ms
        step = node.engine.handle(told, now=now)
        self.seen(name, fact, step, now)
        node.promises.look(fact, step, now)
        node.deadline = None if step.deadline is None else step.deadline - node.skew_ms
        for effect in step.effects:
            if name in self._nodes:
                self._see_to(name, effect)

    def _find(self, name: str) -> _Node | None:
        """Return a process; ``None``: it has ended (``LookupError``: there never was one of this name)."""
        node = self._nodes.get(name)
        if node is None and name not in self._begun:
            raise LookupError(f"no process was ever called {name!r}, but {sorted(self._begun)}")
        return node

    def _see_to(self, name: str, effect: Effect) -> None:
        fate = next(self._fates, CALM)
        if fate.crash is Crash.BEFORE:
            self.crash(name)
            return
        match effect:
            case _ if isinstance(effect, StoreEffect):
                self._after(fate.delay_ms, partial(self._serve, name, effect, fate))
            case Reply(exchange=exchange):
                self._say(exchange, fate, partial(self._answer, exchange, effect))
            case Send(exchange=exchange) | OpenStream(exchange=exchange):
                self._say(exchange, fate, partial(self._hear, name, exchange, effect))
            case _:
                for delay_ms, outcome in self.work(name, effect):
                    self._after(delay_ms, partial(self.tell, name, outcome))
        if fate.crash is Crash.AFTER:
            self.crash(name)
        elif fate.sleep_ms:
            self.sleep(name, fate.sleep_ms)

    # -- the store -----------------------------------------------------------------------------------------

    def _serve(self, name: str, effect: StoreEffect, fate: Fate) -> None:
        """Carry out what a process asked; also one that has ended, as long as it is not known to be gone."""
        if name in self._gone and name not in self._nodes:
            return
        if fate.fails:
            self._after(fate.delay_ms, partial(self.tell, name, self.store.fail(effect)))
            return
        answer = self.store.answer(effect)
        if isinstance(answer, Saved) and isinstance(effect, Save):
            self.history.append(effect.record)
            self._spread(name, effect.record.task_id)
        elif isinstance(answer, Saved) and isinstance(effect, Delete):
            self._spread(name, effect.task_id)
        self._after(fate.delay_ms, partial(self.tell, name, answer))

    def _spread(self, writer: str, task_id: str) -> None:
        for name in self._nodes:
            if name != writer:
                delay_ms = next(self._fates, CALM).delay_ms
                self._after(delay_ms, partial(self._tell_news, name, task_id))

    def _tell_news(self, name: str, task_id: str) -> None:
        """Tell a process how a task stands now, if it is of concern there."""
        node = self._nodes.get(name)
        if node is not None and node.engine.concerns(task_id):
            record = self.store.records.get(task_id)
            self.tell(name, RecordRemoved(task_id) if record is None else RecordChanged(record))

    def _look_around(self) -> None:
        """See who is gone, and tell the others what they left; again after a while."""
        self._after(self.lease_ms, self._look_around)
        for name, when in list(self._ended.items()):
            if when + self.lease_ms <= self.now:
                self._lose(name)
                del self._ended[name]
        for name, node in self._nodes.items():
            if node.awake_at <= self.now:
                self._gone.discard(name)
            elif node.asleep_since + self.lease_ms <= self.now:
                self._lose(name)
        for record in list(self.store.records.values()):
            if record.node is not None and record.node in self._gone:
                for name in self.nodes:
                    if name != record.node:
                        self.tell(name, WorkLost(record.task_id, record.node))

    def _lose(self, name: str) -> None:
        self._gone.add(name)
        self.taken_for_gone.add(name)

    # -- clients -------------------------------------------------------------------------------------------

    def _set_out(
        self,
        number: int,
        exchange: _Exchange,
        arrives: Callable[[int], Input | LegacyInput],
        passage: Passage | None = None,
    ) -> None:
        """Have something of a client's on its way, as the fact that ``arrives`` makes of its exchange."""
        self._find(exchange.node)
        passage = passage or next(self._passages, CALM_PASSAGE)
        if passage.lost:
            return
        if passage.cut:
            self._exchanges[number] = exchange
            self._after(passage.delay_ms, partial(self._break, number))
            return
        self._depart(number, exchange, passage.delay_ms, arrives(number))
        if passage.again_ms is not None:
            copy, nobody = next(self._numbers), _Exchange(exchange.node, _unheeded)
            exchange.again = copy
            self._depart(copy, nobody, passage.delay_ms + passage.again_ms, arrives(copy))

    def _depart(self, number: int, exchange: _Exchange, delay_ms: int, fact: Input | LegacyInput) -> None:
        self._exchanges[number] = exchange
        exchange.arrives_at = self.now + delay_ms
        self._after(delay_ms, partial(self._arrive, exchange.node, number, fact))

    def _arrive(self, node: str, number: int, fact: Input | LegacyInput) -> None:
        if node in self._nodes:
            self.tell(node, fact)
        else:
            self._break(number)

    def _say(self, number: Hashable, fate: Fate, arrive: Callable[[], None]) -> None:
        """Have something that is said on an exchange on its way; ``arrive`` is called when it is there."""
        exchange = self._exchanges.get(number)
        if exchange is None:
            return
        when = self.now + fate.delay_ms
        if exchange.in_order:
            when = exchange.busy_until = max(exchange.busy_until, when)
        if fate.lost:
            self._after(when - self.now, exchange.fall_silent)
        self._after(when - self.now, arrive)

    def _answer(self, number: Hashable, reply: Reply | None) -> None:
        exchange = self._exchanges.pop(number, None)
        if exchange is not None:
            exchange.said(reply)

    def _hear(self, name: str, number: Hashable, effect: Send | OpenStream) -> None:
        exchange = self._exchanges.get(number)
        if exchange is not None:
            exchange.said(effect)
            if isinstance(effect, Send):
                self.tell(name, StreamReady(number))

    def _break(self, number: Hashable) -> None:
        self._answer(number, None)


def _due(node: _Node) -> int:
    """Return when a process wants to be woken, or can be."""
    return NEVER_MS if node.deadline is None else max(node.deadline, node.awake_at)
