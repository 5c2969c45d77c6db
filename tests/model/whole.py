"""All roles at once: people with requester engines, a proxy, several server processes, and all their stores.

The servers are those of :class:`mcp_tasks_proto.testing.Network`, whose time is everybody's. Each request has
a connection of its own on each of its two ways. What goes wrong is data: each message takes the next passage,
each effect of the proxy the next of its fates, each effect of a server the next of theirs, and when there are
none left all is well. Any process may end at any time, and another one begins that knows what was saved;
clocks may be wrong.
"""

from __future__ import annotations

import json
from collections import Counter, deque
from collections.abc import Hashable, Iterable, Iterator
from functools import partial
from itertools import count
from typing import Any, Final

from attrs import define, evolve, field

from mcp_tasks_proto import (
    CallBecameTask,
    CallReturned,
    DeliverInput,
    Effect,
    ExchangeClosed,
    HmacSealer,
    HttpHead,
    Input,
    LoadFailed,
    MessageReceived,
    OpenStream,
    Reply,
    SaveFailed,
    Send,
    StartTool,
    StreamReady,
    TimePassed,
)
from mcp_tasks_proto.legacy.messages import Closing, Era, SendLegacy
from mcp_tasks_proto.legacy.proxy import (
    DualEraProxy,
    DualEraProxyEffect,
    DualEraProxyInput,
    SendLegacyUpstream,
    UpstreamsClosing,
)
from mcp_tasks_proto.proxy import (
    DrawRandom,
    DropTask,
    HandleCodec,
    LoadTask,
    Note,
    ProxyEngine,
    ProxyInput,
    ProxyLimits,
    ProxySettings,
    Purge,
    SaveBinding,
    SaveSnapshot,
    SendUpstream,
    StopUpstream,
    Upstream,
)
from mcp_tasks_proto.records import TaskRecord
from mcp_tasks_proto.requester import (
    AnswerGiven,
    CallWanted,
    Outcome,
    Prompt,
    RequesterEngine,
    RequesterSettings,
    RequestFailed,
    SendRequest,
    StopRequest,
)
from mcp_tasks_proto.testing import Crash, Fate, Network, Passage, ProxyStore, RequesterHost
from mcp_tasks_proto.vocabulary import PROTOCOL_VERSION
from mcp_tasks_proto.wire.http import request_headers
from tests.model.mill import Grinding, Mill, answer_to, make_engine
from tests.model.watch import Watch
from tests.model.whole_legacy import arrival, legacy_host, make_legacy_engine, news_for_proxy, news_of
from tests.model.whole_roads import Connection, Roads
from tests.model.whole_servers import Servers

__all__ = ["DONE", "PEOPLE", "TTL_MS", "Errand", "Person", "Process", "Whole"]

PEOPLE: Final = ("ada", "bob")
TTL_MS: Final = 900_000
RESTART_MS: Final = 700
THINKS_MS: Final = 500
KEEP_ALIVE_MS: Final = 60_000
LEAVING_MS: Final = 1_000
CLOSING_MS: Final = 100
DONE: Final[dict[str, Any]] = {"content": [{"type": "text", "text": "done plainly"}]}


@define(eq=False)
class Fates:
    """What is still to go wrong, and may be added to: an iterator that has an end only until then."""

    left: deque[Fate] = field(factory=deque)

    def __iter__(self) -> Iterator[Fate]:
        return self

    def __next__(self) -> Fate:
        if not self.left:
            raise StopIteration
        return self.left.popleft()


@define(eq=False, kw_only=True)
class Errand:
    """What somebody wants done, from the call to its outcome, in however many processes."""

    number: int
    by: str
    call: Hashable = None
    """Its name in the process that is at it."""
    reference: dict[str, Any] | None = None
    """The newest that was kept."""
    outcome: Outcome | None = None
    given_up: bool = False
    """Whether the process ended before it had a reference."""
    wants_cancel: bool = False

    @property
    def open(self) -> bool:
        """Whether its process waits for the outcome."""
        return self.outcome is None and not self.given_up


@define(eq=False, kw_only=True)
class Person:
    """Somebody's process."""

    name: str
    host: RequesterHost
    skew_ms: int = 0
    connections: dict[int, Connection] = field(factory=dict)
    heard: int = 0
    """How many effects were looked at."""


@define(eq=False, kw_only=True)
class Process:
    """One process of the proxy."""

    place: int
    """Which of those that are there at the same time."""
    engine: ProxyEngine | DualEraProxy
    servers: Servers = field(init=False)
    """As it sees them."""
    watch: Watch = field(init=False, factory=Watch)
    callers: dict[Hashable, tuple[Person, int, Connection]] = field(init=False, factory=dict)
    """Requests of people's, as it calls them."""
    deadline: int | None = field(init=False, default=None)


@define(eq=False, kw_only=True)
class Whole:
    """Everything there is."""

    plan: Grinding
    codec: HandleCodec
    listen: bool = True
    legacy: frozenset[str] = frozenset()
    """The people who speak 2025-11-25."""
    legacy_servers: bool = False
    """Whether the servers do."""
    era_is_known: bool = True
    """Whether the proxy is told which of the two the servers speak; else it finds out."""
    server_processes: int = 2
    thinks_ms: int = THINKS_MS
    """How long people take to answer."""
    places: int = 1
    """How many processes the proxy has at the same time."""
    in_turn: bool = False
    """Whether requests go to each of them in turn; else all of one person's go to the same."""
    patience_ms: int = 60_000
    """How long one of several follows a task that nobody asks it about."""
    moved: int = 0
    """By how many places everybody has moved on from where they began."""
    skews: Iterable[int] = ()
    proxy_skew_ms: int = 0
    weather: deque[Passage] = field(factory=deque)
    server_fates: Fates = field(factory=Fates)
    proxy_fates: Fates = field(factory=Fates)
    store: ProxyStore = field(factory=ProxyStore)
    network: Network = field(init=False)
    mill: Mill = field(init=False)
    people: dict[str, Person] = field(init=False)
    errands: list[Errand] = field(init=False, factory=list)
    started: dict[int, list[str]] = field(init=False, factory=dict)
    """The servers' tasks, by errand."""
    plain: Counter[int] = field(init=False, factory=Counter)
    """How often the tool ran without a task, by errand."""
    owners: dict[str, str] = field(init=False, factory=dict)
    """Whose each of them is."""
    answered: dict[str, set[str]] = field(init=False, factory=dict)
    """The keys of each that had an answer, from whoever."""
    acknowledged: set[tuple[int, str]] = field(init=False, factory=set)
    """Errand and question of every answer of which somebody heard that it was taken."""
    asked: Counter[str] = field(init=False, factory=Counter)
    """How often each person was asked something."""
    processes: list[Process | None] = field(init=False)
    """Those of the proxy. ``None``: one has ended, and the next one has not begun."""
    proxies: int = field(init=False, default=0)
    """How many of them there were."""
    roads: Roads = field(init=False)
    store_failed: bool = field(init=False, default=False)
    """Whether the proxy's store ever did."""
    _numbers: count[int] = field(init=False, factory=lambda: count(1))

    def __attrs_post_init__(self) -> None:
        self.mill = Mill(self.plan)
        self.network = Network(
            make_engine=make_legacy_engine if self.legacy_servers else make_engine,
            work=self._work,
            promises=Watch,
            size=self.server_processes,
            fates=self.server_fates,
            skews=self.skews,
        )
        self.roads = Roads(self.network, self.weather)
        self.people = {name: Person(name=name, host=self._host(name)) for name in PEOPLE}
        self.processes = [None] * self.places
        for place in range(self.places):
            self._begin_proxy(place)

    @property
    def now(self) -> int:
        """The right time."""
        return self.network.now

    @property
    def knows_both_eras(self) -> bool:
        """Whether the proxy does."""
        return bool(self.legacy) or self.legacy_servers or not self.era_is_known

    # -- work ------------------------------------------------------------------------------------------------

    def _work(self, node: str, effect: Effect) -> Iterable[tuple[int, Input]]:
        """Have the mill do it; each answer must be that of whose task it is."""
        errand = -1
        if isinstance(effect, StartTool):
            errand = effect.arguments["errand"]
            if not effect.can_create_task:  # of 2025-11-25, who could not find out that it may
                self.plain[errand] += 1
                return [(1, CallReturned(effect.exchange, DONE))]
        if isinstance(effect, DeliverInput):
            effect = self._checked(effect)
        facts = list(self.mill.work(node, effect))
        return [(delay_ms, self._noted(fact, errand)) for delay_ms, fact in facts]

    def _noted(self, fact: Input, errand: int) -> Input:
        if not isinstance(fact, CallBecameTask):
            return fact
        self.started.setdefault(errand, []).append(fact.task_id)
        self.owners[fact.task_id] = self.errands[errand].by
        return evolve(fact, ttl_ms=TTL_MS)

    def _checked(self, delivery: DeliverInput) -> DeliverInput:
        owner, plain = self.owners[delivery.task_id], []
        for answer in delivery.answers:
            content = dict(answer.response["content"])
            assert content.pop("by") == owner, "an answer is its asker's"
            self.answered.setdefault(delivery.task_id, set()).add(answer.key)
            plain.append(evolve(answer, response={**answer.response, "content": content}))
        return evolve(delivery, answers=tuple(plain))

    # -- people ----------------------------------------------------------------------------------------------

    def _host(self, name: str) -> RequesterHost:
        if name in self.legacy:
            return legacy_host(listen=self.listen)
        settings = RequesterSettings(
            name="test",
            version="1",
            endpoint="https://example.com/mcp",
            capabilities={"elicitation": {}},
            listen=self.listen,
        )
        return RequesterHost(engine=RequesterEngine(settings=settings))

    def call(self, name: str) -> Errand:
        """Somebody calls the tool."""
        errand = Errand(number=len(self.errands), by=name)
        errand.call = f"errand {errand.number}"
        self.errands.append(errand)
        arguments = {"errand": errand.number}
        self.tell_person(self.people[name], CallWanted(call=errand.call, tool="grind", arguments=arguments))
        return errand

    def cancel(self, errand: Errand) -> None:
        """Whoever wants it done does not any more, and waits to see what comes of that."""
        if errand.open:
            errand.wants_cancel = True
            person = self.people[errand.by]
            self._set_clock(person)
            person.host.cancel(errand.call, wait=True)
            self._see_to_person(person)

    def tell_person(self, person: Person, fact: Any) -> None:
        """Hand a fact to somebody's engine, and see to what comes of it."""
        self._set_clock(person)
        person.host.give(fact)
        self._see_to_person(person)

    def _set_clock(self, person: Person) -> None:
        person.host.now = max(person.host.now, self.now + person.skew_ms)

    def _see_to_person(self, person: Person) -> None:
        host = person.host
        effects, person.heard = host.effects[person.heard :], len(host.effects)
        for effect in effects:
            self._see_to(person, effect)
        for errand in self.errands:
            if errand.by == person.name and errand.open:
                errand.reference = host.references.get(errand.call, errand.reference)
                errand.outcome = host.outcomes.get(errand.call)
        if host.deadline is not None:
            wait_ms = max(1, host.deadline - person.skew_ms - self.now)
            self.network.later(wait_ms, partial(self._wake_person, person, host.deadline))

    def _wake_person(self, person: Person, deadline: int) -> None:
        if self.people[person.name] is person and person.host.deadline == deadline:
            self.tell_person(person, TimePassed())

    def _see_to(self, person: Person, effect: Any) -> None:
        match effect:
            case SendRequest():
                self._request(person, effect)
            case SendLegacy():
                self._send_legacy(person, effect)
            case StopRequest(request=number):
                connection = person.connections[number]
                self.roads.carry(connection, "there", connection.close)
            case Prompt():
                self.asked[person.name] += 1
                if person.name not in self.legacy:
                    self._check_prompt(person, effect)
                self.network.later(self.thinks_ms, partial(self._answer, person, effect))

    def _check_prompt(self, person: Person, prompt: Prompt) -> None:
        """What was answered is not asked again, nor what is on show already (REQ.4, INP.1).

        Of somebody who speaks 2025-11-25 it may be: an answer is a response there, which nobody acknowledges
        with a result. The proxy asks once more where it does not know whether the task has got it.
        """
        message, call = prompt.request["params"]["message"], prompt.call
        (errand,) = [one for one in self.errands if one.by == person.name and one.open and one.call == call]
        for task_id in self.started[errand.number]:
            assert message not in self.answered.get(task_id, ()), "REQ.4: what was answered is asked again"
        for (owner, key), other in person.host.on_show.items():
            if owner == call and key != prompt.key:
                assert other.request["params"]["message"] != message, "INP.1: it has a key already"

    def _answer(self, person: Person, prompt: Prompt) -> None:
        if self.people[person.name] is person and (prompt.call, prompt.key) in person.host.on_show:
            response = answer_to(prompt.request["params"]["message"])
            response["content"]["by"] = person.name
            self.tell_person(person, AnswerGiven(prompt.call, prompt.key, response))

    def _request(self, person: Person, effect: SendRequest) -> None:
        """Bring a request to the proxy; where there is none, its sender is told."""
        message, number = effect.message, effect.request
        key = next(self._numbers)
        connection = Connection(stop=partial(self._close_at, key), fail=partial(self._fail, person, number))
        person.connections[number] = connection
        params = message["params"]
        sent = request_headers(
            message["method"], params, params["_meta"][PROTOCOL_VERSION], effect.parameters
        )
        head = HttpHead(headers={name.lower(): value for name, value in sent})

        def arrive(key: Hashable) -> None:
            received = MessageReceived(exchange=key, message=message, http=head, principal=person.name)
            self._arrive(person, number, connection, key, received)

        def once_more() -> None:
            """A second copy of what may be repeated: nobody hears what comes of it."""
            process = self._process_for(person)
            if process is not None and message["method"].startswith("tasks/"):
                received = MessageReceived(
                    exchange=next(self._numbers), message=message, http=head, principal=person.name
                )
                self.tell_proxy(process, received)

        self.roads.carry(connection, "there", partial(arrive, key), again=once_more)

    def _arrive(self, person: Person, number: int, connection: Connection, key: Hashable, fact: Any) -> None:
        """Have a request reach the proxy, if there is one."""
        process = self._process_for(person)
        if process is None:
            connection.open = False
            self._fail(person, number, False)
            return
        connection.reached = True
        process.callers[key] = (person, number, connection)
        self.tell_proxy(process, fact)

    def _process_for(self, person: Person) -> Process | None:
        """Return which process somebody's request reaches: another one where the one meant has ended."""
        if self.in_turn:
            self.moved += 1
        first = PEOPLE.index(person.name) + self.moved
        places = [(first + offset) % self.places for offset in range(self.places)]
        return next((self.processes[place] for place in places if self.processes[place]), None)

    def _send_legacy(self, person: Person, effect: SendLegacy) -> None:
        """Bring what somebody says in a session, or on the way to one, to the proxy."""
        number, key = effect.request, next(self._numbers)
        connection = Connection(
            stop=partial(self._close_at, key),
            fail=partial(self._fail, person, number),
            last_event_id=effect.last_event_id,
        )
        person.connections[number] = connection

        def arrive() -> None:
            self._arrive(person, number, connection, key, arrival(effect, key, person.name))

        self.roads.carry(connection, "there", arrive)

    def _fail(self, person: Person, number: int, sent: bool) -> None:
        if self.people[person.name] is person and number in person.host.in_flight:
            heard = person.connections[number].last_event_id
            failed = RequestFailed(number, "the connection broke", sent, last_event_id=heard)
            self.tell_person(person, failed)

    def restart_person(self, name: str) -> None:
        """Somebody's process ends, and the next one goes on with what was kept."""
        old = self.people[name]
        for connection in old.connections.values():
            connection.vanish()
        person = self.people[name] = Person(name=name, host=self._host(name), skew_ms=old.skew_ms)
        self._set_clock(person)
        for errand in self.errands:
            if errand.by != name or not errand.open:
                continue
            if errand.reference is None:
                errand.given_up = True
            else:
                errand.call = person.host.resume(json.loads(json.dumps(errand.reference)))
                if errand.wants_cancel:
                    person.host.cancel(errand.call, wait=True)
        self._see_to_person(person)

    # -- the proxy -------------------------------------------------------------------------------------------

    def _begin_proxy(self, place: int) -> None:
        self.proxies += 1
        era: Era = "legacy" if self.legacy_servers else "modern"
        upstream = Upstream(name="next", listen=self.listen, era=era if self.era_is_known else None)
        settings = ProxySettings(
            name="proxy",
            version="1",
            sealer=HmacSealer([b"p" * 32]),
            upstreams=(upstream,),
            bridging=bool(self.legacy),
            several_processes=self.places > 1,
            limits=ProxyLimits() if self.places == 1 else ProxyLimits(request_state_ms=self.patience_ms),
        )
        make = DualEraProxy if self.knows_both_eras else ProxyEngine
        engine = make(settings=settings, codec=self.codec, node=f"proxy-{self.proxies}")
        process = self.processes[place] = Process(place=place, engine=engine)
        process.servers = Servers(
            roads=self.roads,
            network=self.network,
            legacy=self.legacy_servers,
            place=place,
            tell=partial(self.tell_proxy, process),
        )
        self.tell_proxy(process, TimePassed())

    def restart_proxy(self, place: int = 0) -> None:
        """A process of the proxy's ends, and another one begins after a while."""
        process = self.processes[place]
        if process is None:
            return
        self.processes[place] = None
        for person, number, connection in process.callers.values():
            if connection.open:
                connection.open = False
                self.network.later(1, partial(self._fail, person, number, True))
        process.servers.hang_up()
        self.network.later(RESTART_MS, partial(self._begin_proxy, place))

    def close_proxy(self) -> None:
        """The proxy's processes are told to end: sessions with servers that no task needs are ended first."""
        self.close_sessions()
        for process in filter(None, self.processes):
            self.network.later(CLOSING_MS, partial(self._end_proxy, process))

    def close_sessions(self) -> None:
        """Have the proxy end its sessions with servers."""
        for process in filter(None, list(self.processes)):
            if isinstance(process.engine, DualEraProxy):
                self.tell_proxy(process, UpstreamsClosing())

    def _end_proxy(self, process: Process) -> None:
        if self.processes[process.place] is process:
            self.restart_proxy(process.place)

    def tell_proxy(self, process: Process, fact: DualEraProxyInput) -> None:
        """Hand a fact to a process of the proxy's, if it has not ended, and see to what comes of it."""
        if self.processes[process.place] is not process:
            return None
        told: Any = news_for_proxy(fact) if self.knows_both_eras else fact
        now = self.now + self.proxy_skew_ms
        step = process.engine.handle(told, now=now)
        process.watch.look(told, step, now)
        for effect in step.effects:
            fate = next(self.proxy_fates, Fate())
            if fate.crash is Crash.BEFORE:
                return self.restart_proxy(process.place)
            self._see_to_proxy(process, effect, fate)
            if fate.crash is Crash.AFTER:
                return self.restart_proxy(process.place)
        process.deadline = step.deadline
        if step.deadline is not None:
            wait_ms = max(1, step.deadline - now)  # what is due already comes next
            self.network.later(wait_ms, partial(self._wake_proxy, process, step.deadline))
        return None

    def _wake_proxy(self, process: Process, deadline: int) -> None:
        if process.deadline == deadline:
            self.tell_proxy(process, TimePassed())

    def _see_to_proxy(self, process: Process, effect: DualEraProxyEffect, fate: Fate) -> None:
        match effect:
            case Reply(exchange=key) | Send(exchange=key) | OpenStream(exchange=key):
                self._down(process, key, effect)
            case SendUpstream():
                process.servers.send(effect)
            case StopUpstream(request=name):
                process.servers.stop(name)
            case SendLegacyUpstream(send=sent):
                process.servers.send_legacy(sent)
            case LoadTask() | SaveBinding() | SaveSnapshot() | DrawRandom():
                self.network.later(fate.delay_ms, partial(self._serve, process, effect, fate))
            case DropTask(handle=handle):
                self.store.drop(handle)
            case Note():
                self.store.note(effect)
            case Purge():
                self.store.purge(effect)

    def _serve(
        self,
        process: Process,
        effect: LoadTask | SaveBinding | SaveSnapshot | DrawRandom,
        fate: Fate,
    ) -> None:
        """Carry out what was asked of the store, also for a process that has ended since."""
        answer: ProxyInput
        if fate.fails and not isinstance(effect, DrawRandom):
            self.store_failed = True
            answer = (LoadFailed if isinstance(effect, LoadTask) else SaveFailed)(effect.token)
        else:
            answer = self.store.answer(effect)
        self.tell_proxy(process, answer)

    def _close_at(self, key: Hashable) -> None:
        """Whoever sent a request wants no more of it."""
        for process in filter(None, list(self.processes)):
            if process.callers.pop(key, None) is not None:
                self.tell_proxy(process, ExchangeClosed(key))

    def _down(self, process: Process, key: Hashable, effect: Reply | Send | OpenStream) -> None:
        """Bring what the proxy says to whom it says it."""
        if key not in process.callers:  # whoever sent it is gone: a second reply would not have come so far
            return
        person, number, connection = process.callers[key]
        host = person.host

        news = news_of(effect, number, f"received-{next(self._numbers)}")
        legacy = person.name in self.legacy

        def hear() -> None:
            connection.open = connection.open and not isinstance(effect, Reply)
            if isinstance(effect, Send):
                connection.last_event_id = effect.event_id or connection.last_event_id
            if self.people[person.name].host is host and (number in host.in_flight or not legacy):
                self._note_what_is_taken(person, number, effect)
                self.tell_person(person, news)

        self.roads.carry(connection, "back", hear, again=None if legacy else hear)
        if isinstance(effect, Send):
            self.network.later(1, partial(self.tell_proxy, process, StreamReady(key)))
        elif isinstance(effect, Reply):
            del process.callers[key]

    def _note_what_is_taken(self, person: Person, number: int, effect: Reply | Send | OpenStream) -> None:
        """Note which answers somebody hears to have been taken."""
        sent = person.host.in_flight.get(number)
        taken = isinstance(effect, Reply) and effect.message is not None and "result" in effect.message
        if not taken or not isinstance(sent, SendRequest) or sent.message["method"] != "tasks/update":
            return
        params = sent.message["params"]
        for errand in self.errands:
            if errand.reference is not None and errand.reference["taskId"] == params["taskId"]:
                names = [response["content"]["name"] for response in params["inputResponses"].values()]
                self.acknowledged |= {(errand.number, name) for name in names}

    # -- in the end ------------------------------------------------------------------------------------------

    def calm(self, milliseconds: int) -> None:
        """Let nothing go wrong from now on, for so long."""
        self.weather.clear()
        self.server_fates.left.clear()
        self.proxy_fates.left.clear()
        self.network.later(KEEP_ALIVE_MS, self.roads.find_dead)
        self.network.run(milliseconds)

    def leave(self) -> None:
        """Whoever speaks 2025-11-25 ends the session, and closes the stream that belongs to it."""
        for name in self.legacy:
            self.tell_person(self.people[name], Closing())
        self.network.run(LEAVING_MS)
        for name in self.legacy:
            for connection in self.people[name].connections.values():
                if connection.open:
                    connection.close()
        self.network.run(LEAVING_MS)

    def last_of(self, task_id: str) -> TaskRecord | None:
        """Return the last that was written of a task."""
        versions = [record for record in self.network.history if record.task_id == task_id]
        return versions[-1] if versions else None
