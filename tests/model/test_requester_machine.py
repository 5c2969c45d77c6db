"""Anything, in any order: the requester engine and the reference model stay of one mind.

After each step hold, as :mod:`tests.model.requester_world` checks them: an outcome never changes, and there
is one (REQ.6); a question is shown once, its answer sent until the server has it and then never again, and no
sooner than it is saved (REQ.4); nothing is polled sooner than hint, floor, backoff and Retry-After allow, nor
later (REQ.2); after a cancellation go out only what tells the server and the polls of who waits (REQ.7); what
is saved is all there is to know, so that a restart changes nothing (REQ.6); what nobody waits for is stopped,
and the engine holds what is under way and no more (LIM.3).
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Final

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from mcp_tasks_proto.testing.strategies_for_requesters import (
    call_results,
    hostile_answers,
    nearly_valid_results,
    poll_results,
    task_views,
)
from tests.model.requester_world import DONE, FORM, ROOTS, SAMPLING, World, handle, view

TASKS: Final = ("one", "two")
CALLS: Final = 5
"""In one process."""
asked = st.sampled_from(
    [FORM, FORM, FORM, FORM, ROOTS, SAMPLING, {}, {"method": "elicitation/create", "params": 5}]
)
well_asked = st.sampled_from([FORM, FORM, FORM, {"method": "elicitation/create", "params": 5}, SAMPLING])
views = task_views(st.sampled_from(TASKS), requests=asked)
numbers = st.integers(0, 9)
often = st.sampled_from([True, True, True, False])
seldom = st.sampled_from([False, False, False, True])
lives = st.sampled_from([None, None, None, 30_011])
codes = st.sampled_from([-32603, -32603, -32602, -32601, -32003, -32021, -32022, -32000, 7])
pauses = st.sampled_from([0, 0, 9_001])


class RequesterMachine(RuleBasedStateMachine):
    """What callers, servers, networks, crashes and time may do."""

    world: World

    @initialize(
        listen=st.booleans(),
        keys=st.lists(st.sampled_from(["a", "b"]), max_size=2, unique=True),
        tasks=st.sampled_from([1, 1, 2]),
        ttl=st.sampled_from([None, 7_001]),
    )
    def begin(self, listen: bool, keys: list[str], tasks: int, ttl: int | None) -> None:
        """There is a task, or two, and mostly it has asked something."""
        self.world = World(listen=listen, capabilities={"elicitation": {}})
        for task_id in TASKS[:tasks]:
            self.world.call()
            self.world.reply("tools/call", handle(task_id, ttlMs=ttl))
        if listen:
            self.world.wait(20)
            for stream in self.world.streams:
                self.world.agree(stream, set(TASKS))
        if keys:
            self.world.wait(1_000)
            for task_id in TASKS[:tasks]:
                self.world.reply("tasks/get", view("input_required", task_id, keys=keys, at=1, ttlMs=ttl))

    # -- choices ---------------------------------------------------------------------------------------------

    def some_call(self, number: int) -> Hashable:
        """Return one of the calls of this process, mostly one that is not over."""
        alive = list(self.world.model.calls) or [0]
        return alive[number % len(alive)] if number < 8 else number

    def request(self, number: int, method: str | None = None) -> int | None:
        """Return a request in flight, if there is one; of a method, if there is one of it."""
        flights = list(self.world.host.in_flight)
        wanted = self.world.host.waiting(method) if method is not None else []
        found = wanted or flights
        return found[number % len(found)] if found else None

    # -- the caller ------------------------------------------------------------------------------------------

    @precondition(lambda self: len(self.world.model.calls) < CALLS)
    @rule(life_ms=lives)
    def call(self, life_ms: int | None) -> None:
        self.world.call(life_ms=life_ms)

    @precondition(lambda self: self.world.saved and len(self.world.model.calls) < CALLS)
    @rule(number=numbers, life_ms=lives)
    def resume(self, number: int, life_ms: int | None) -> None:
        """REQ.6, also while somebody watches the same task, and when it is long over."""
        known = list(self.world.saved)
        self.world.resume(known[number % len(known)], life_ms=life_ms)

    @rule(number=numbers, fits=often)
    def answer(self, number: int, fits: bool) -> None:
        on_show = list(self.world.host.on_show)
        call, key = on_show[number % len(on_show)] if on_show else (number, "a")
        self.world.answer(call, key, None if fits else {"action": "maybe"})

    @rule(number=numbers, key=st.sampled_from(["a", "b", "a.2", "c"]))
    def answer_at_random(self, number: int, key: str) -> None:
        """REQ.4: what is not on show, or no more, is not answered."""
        self.world.answer(self.some_call(number), key)

    @rule(number=numbers, wait=st.booleans())
    def cancel(self, number: int, wait: bool) -> None:
        self.world.cancel(self.some_call(number), wait=wait)

    @rule(number=numbers, really=seldom)
    def abandon(self, number: int, really: bool) -> None:
        if really:
            self.world.abandon(self.some_call(number))

    @precondition(lambda self: self.world.processes < 4)
    @rule(able=often, resumes=often)
    def restart(self, able: bool, resumes: bool) -> None:
        """Between any two steps; the next process may not be able to put questions to anybody."""
        self.world.restart(capabilities={"elicitation": {}} if able else {}, resumes=resumes)

    # -- the server ------------------------------------------------------------------------------------------

    @rule(number=numbers, seen=views, own=often)
    def tell_how_it_stands(self, number: int, seen: dict[str, Any], own: bool) -> None:
        """A poll is answered, mostly for the right task (REQ.5)."""
        request = self.request(number, "tasks/get")
        if request is not None:
            task_id = self.world.host.params_of(request).get("taskId", TASKS[0]) if own else seen["taskId"]
            self.world.reply(request, {"resultType": "complete", **seen, "taskId": task_id})

    @rule(number=numbers, result=call_results(views, well_asked))
    def return_(self, number: int, result: dict[str, Any]) -> None:
        """A call is answered, in each of the ways that there are (REQ.1)."""
        request = self.request(number, "tools/call")
        if request is not None:
            self.world.reply(request, result)

    @rule(number=numbers, method=st.sampled_from(["tasks/update", "tasks/update", "tasks/cancel"]))
    def acknowledge(self, number: int, method: str) -> None:
        request = self.request(number, method)
        if request is not None:
            self.world.reply(request, {"resultType": "complete"})

    @rule(
        number=numbers,
        method=st.sampled_from(["tasks/update", "tasks/get", None]),
        code=codes,
        pause_ms=pauses,
    )
    def refuse(self, number: int, method: str | None, code: int, pause_ms: int) -> None:
        """REQ.3: with an error, over HTTP perhaps with one that asks for patience."""
        request = self.request(number, method)
        if request is not None:
            data = {"requiredCapabilities": {}, "supported": ["2026-07-28"]}
            http = {"status": 503, "retry_after_ms": pause_ms} if pause_ms else {}
            self.world.refuse(request, code, data, **http)

    @rule(number=numbers, status=st.sampled_from([202, 401, 401, 403, 404, 429, 503]), pause_ms=pauses)
    def answer_with_a_status(self, number: int, status: int, pause_ms: int) -> None:
        request = self.request(number)
        if request is not None and request not in self.world.streams:
            self.world.receive(request, None, status=status, retry_after_ms=pause_ms if status > 400 else 0)

    @rule(number=numbers, result=nearly_valid_results(views) | poll_results(views))
    def answer_nearly(self, number: int, result: dict[str, Any]) -> None:
        """Nearly valid, or valid and not for this request."""
        request = self.request(number)
        if request is not None:
            self.world.reply(request, result)

    @rule(number=numbers, data=st.data())
    def answer_with_anything(self, number: int, data: st.DataObject) -> None:
        request = self.request(number)
        if request is not None:
            self.world.receive(request, data.draw(hostile_answers(request)))

    @rule(number=st.integers(0, 60), seen=views)
    def answer_again(self, number: int, seen: dict[str, Any]) -> None:
        """What is over, or never was, is answered: nothing comes of it."""
        if number not in self.world.host.in_flight:
            self.world.receive(number, {"jsonrpc": "2.0", "id": number, "result": seen})

    # -- streams ---------------------------------------------------------------------------------------------

    @precondition(lambda self: self.world.streams)
    @rule(number=numbers, task_ids=st.sampled_from([set(TASKS), set(TASKS), {"one"}, set()]))
    def agree(self, number: int, task_ids: set[str]) -> None:
        streams = list(self.world.streams)
        self.world.agree(streams[number % len(streams)], set(task_ids))

    @precondition(lambda self: self.world.streams)
    @rule(number=numbers, seen=views, more=st.just({}) | st.just({"inputRequests": None}))
    def notify(self, number: int, seen: dict[str, Any], more: dict[str, Any]) -> None:
        """SUB.2, REQ.5: news, of a task that the stream is not about as well, and without a payload."""
        streams = list(self.world.streams)
        told = {name: value for name, value in seen.items() if name not in more}
        self.world.notify(streams[number % len(streams)], told)

    @rule(number=numbers, sent=often)
    def lose(self, number: int, sent: bool) -> None:
        """REQ.3: a request, or its answer, is lost."""
        request = self.request(number)
        if request is not None:
            self.world.fail(request, sent=sent)

    @rule(number=numbers)
    def show_life(self, number: int) -> None:
        request = self.request(number, "tools/call")
        if request is not None and request not in self.world.streams:
            self.world.notify(request, {"progress": 1}, "notifications/progress")

    @rule(number=numbers)
    def finish(self, number: int) -> None:
        """A call is done at once."""
        request = self.request(number, "tools/call")
        if request is not None:
            self.world.reply(request, DONE)

    # -- time ------------------------------------------------------------------------------------------------

    @rule(milliseconds=st.sampled_from([1, 20, 250, 1_000, 1_000, 4_000, 6_000, 20_000]))
    def wait(self, milliseconds: int) -> None:
        self.world.wait(milliseconds)

    @precondition(lambda self: not self.world.listen)
    @rule(milliseconds=st.sampled_from([300, 5_500, 40_000]))
    def sleep(self, milliseconds: int) -> None:
        """The engine hears of time late: of all its deadlines at once."""
        self.world.host.now += milliseconds
        self.world.wake()

    @rule(milliseconds=st.sampled_from([1, 2_000, 86_400_000]))
    def set_the_clock_back(self, milliseconds: int) -> None:
        """The engine keeps its own time."""
        self.world.host.now -= milliseconds
        self.world.answer(0, "nothing")
        self.world.host.now += milliseconds

    def teardown(self) -> None:
        if hasattr(self, "world"):
            self.world.bring_to_an_end()


RequesterMachine.TestCase.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
TestRequesterMachine = RequesterMachine.TestCase
