"""Anything, in any order: the requester toward servers of 2025-11-25 and the reference model are of one mind.

After each step hold, as :mod:`tests.model.legacy_requester_world` checks them: a call ends once, and as what
the server said of it has to be read (LEG.4, LEG.6); each request of the server's is answered once, as the
model says (LEG.8, LEG.10); a question is shown once, and answered with what somebody said; there is one poll
and one ``tasks/result`` of a task at a time (REQ.2, trap 24); what nobody cancelled is not cancelled; and the
requester holds what is under way, and no more (LIM.3).
"""

from __future__ import annotations

from typing import Any, Final

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from mcp_tasks_proto.legacy.messages import ServerAsked
from mcp_tasks_proto.testing.strategies import hostile_messages
from tests.model.legacy_requester_world import BROKE, GONE, World, form, sampling

numbers = st.integers(0, 9)
often = st.sampled_from([True, True, True, False])
payloads = st.sampled_from(["done", "done", "empty", "broke"])
statuses = st.sampled_from(
    ["working", "working", "input_required", "input_required", "completed", "failed", "cancelled"]
)
errors = st.sampled_from([GONE, {"code": -32603, "message": "down"}, BROKE])
kinds = st.sampled_from(["form", "form", "form", "sampling", "as task", "as task", "roots", "malformed"])
about = st.sampled_from(["tasks/get", "tasks/result", "tasks/result", "tasks/cancel", "tasks/list"])
CALLS: Final = 4


class LegacyRequesterMachine(RuleBasedStateMachine):
    """What callers, servers, crashes and time may do."""

    world: World

    @initialize(http=st.booleans(), asks=st.booleans(), plain=st.booleans())
    def begin(self, http: bool, asks: bool, plain: bool) -> None:
        """There is a task, and mostly it has asked something."""
        self.world = World(http=http)
        self.asked = 0
        self.processes = 1
        self.world.call("render")
        self.world.hand_out(next(iter(self.world.outer)))
        if plain:
            self.world.call("greet")
        if asks:
            self.world.wait(1_000)
            self.world.tell(self.world.host.number_of("tasks/get"), "input_required")
            self.ask(0, "form", True, 0, text=False)

    # -- choices ---------------------------------------------------------------------------------------------

    def request(self, number: int, *methods: str) -> int | None:
        """Return a request in flight of one of these methods, if there is one."""
        found = [request for method in methods for request in self.world.host.waiting(method)]
        return found[number % len(found)] if found else None

    def task(self, number: int) -> str | None:
        tasks = list(self.world.tasks)
        return tasks[number % len(tasks)] if tasks else None

    # -- the caller ------------------------------------------------------------------------------------------

    @precondition(lambda self: len(self.world.plain) + len(self.world.tasks) < CALLS)
    @rule(tool=st.sampled_from(["render", "draw", "greet"]))
    def call(self, tool: str) -> None:
        self.world.call(tool)

    @precondition(lambda self: self.world.shown)
    @rule(number=numbers)
    def answer(self, number: int) -> None:
        on_show = list(self.world.shown)
        self.world.answer(*on_show[number % len(on_show)])

    @precondition(lambda self: self.world.plain or self.world.tasks)
    @rule(number=numbers, wait=st.booleans(), leaves=st.sampled_from([False, False, True]))
    def cancel(self, number: int, wait: bool, leaves: bool) -> None:
        calls = [*self.world.plain, *(task.call for task in self.world.tasks.values())]
        call = calls[number % len(calls)]
        if leaves:
            self.world.abandon(call)
        else:
            self.world.cancel(call, wait=wait)

    @precondition(lambda self: self.processes < 3)
    @rule(really=st.booleans())
    def restart(self, really: bool) -> None:
        """REQ.6."""
        if really:
            self.processes += 1
            self.world.restart()

    # -- the server ------------------------------------------------------------------------------------------

    @precondition(lambda self: self.world.outer)
    @rule(number=numbers, how=st.sampled_from(["task", "task", "task", "done", "broke", "lost"]))
    def answer_a_call(self, number: int, how: str) -> None:
        requests = list(self.world.outer)
        request = requests[number % len(requests)]
        wants_task = "task" in (self.world.host.legacy(request).message or {})["params"]
        if how == "lost":
            self.world.lose_call(request)
        elif how != "task":
            self.world.finish(request, how)
        elif wants_task:
            self.world.hand_out(request)

    @rule(number=numbers, status=statuses)
    def tell(self, number: int, status: str) -> None:
        request = self.request(number, "tasks/get")
        if request is not None:
            self.world.tell(request, status)

    @rule(number=numbers, payload=payloads)
    def give_the_result(self, number: int, payload: str) -> None:
        request = self.request(number, "tasks/result")
        if request is not None:
            self.world.result(request, payload)

    @rule(number=numbers, error=errors)
    def refuse(self, number: int, error: dict[str, Any]) -> None:
        request = self.request(number, "tasks/get", "tasks/result", "tasks/cancel")
        if request is not None:
            self.world.refuse(request, error)

    @rule(number=numbers, error=errors, http_status=st.sampled_from([200, 500, 503]))
    def withhold_the_result(self, number: int, error: dict[str, Any], http_status: int) -> None:
        """REQ.3: not every error is the end of a task."""
        request = self.request(number, "tasks/result")
        if request is not None:
            self.world.refuse(request, error, http_status=http_status if self.world.http else 200)

    @rule(number=numbers)
    def lose(self, number: int) -> None:
        request = self.request(number, "tasks/result", "tasks/get", "tasks/cancel")
        if request is not None:
            self.world.lose(request)

    @rule(number=numbers, kind=kinds, of_task=often, on=numbers, text=st.booleans())
    def ask(self, number: int, kind: str, of_task: bool, on: int, text: bool) -> None:
        """LEG.8, LEG.10: of a task or of a call, as a task or not, what may be asked and what may not."""
        self.asked += 1
        name = f"question {self.asked}"
        method, params = "elicitation/create", form(name)
        if kind == "sampling":
            method, params = "sampling/createMessage", sampling(name)
        elif kind == "as task":
            params |= {"task": {"ttl": 20_011} if text else {}}
        elif kind == "roots":
            method, params = "roots/list", {}
        elif kind == "malformed":
            params = {"message": 5}
        streams = [0, *self.world.outer]
        task_id = self.task(number) if of_task else None
        self.world.ask(self.named(text), method, params, task_id=task_id, on=streams[on % len(streams)])

    def named(self, text: bool) -> Any:
        """Return the id of a new request of the server's."""
        return f"q{self.asked}" if text else self.asked

    @rule(number=numbers)
    def ask_again(self, number: int) -> None:
        """LEG.8: what was asked on a stream that broke."""
        lost = [put for put in self.world.model.questions if put.lost and not put.moot]
        lost = [put for put in lost if put.task_id in self.world.tasks and put.received is None]
        if lost:
            self.asked += 1
            put = lost[number % len(lost)]
            self.world.ask(self.asked, put.request["method"], put.request["params"], task_id=put.task_id)

    @rule(number=numbers, method=about, known=often)
    def ask_about_a_task_here(self, number: int, method: str, known: bool) -> None:
        """LEG.10: LEG.4 to LEG.7, in that direction."""
        self.asked += 1
        received = list(self.world.model.received)
        task_id = received[number % len(received)] if received and known else "none"
        params = {} if method == "tasks/list" else {"taskId": task_id}
        self.world.ask(self.asked, method, params)

    @rule(method=st.sampled_from(["ping", "tools/list", "nothing", "tasks/update"]), text=st.booleans())
    def ask_anything(self, method: str, text: bool) -> None:
        self.asked += 1
        self.world.ask(self.named(text), method, {})

    @rule(number=numbers)
    def withdraw(self, number: int) -> None:
        waiting = [put for put in self.world.model.questions if put.waits]
        if waiting:
            self.world.withdraw(waiting[number % len(waiting)])

    @rule(message=hostile_messages())
    def say_anything(self, message: Any) -> None:
        """WIRE.1: what is no request is not answered, and nothing raises."""
        if not (isinstance(message, dict) and "method" in message and "id" in message):
            self.world.say(ServerAsked(request=0, message=message, new_id="hostile"))

    # -- time ------------------------------------------------------------------------------------------------

    @rule(milliseconds=st.sampled_from([1, 1_000, 1_000, 2_000, 20_000]))
    def wait(self, milliseconds: int) -> None:
        self.world.wait(milliseconds)

    @rule(milliseconds=st.sampled_from([1, 86_400_000]))
    def set_the_clock_back(self, milliseconds: int) -> None:
        """The requester keeps its own time."""
        self.world.set_back(milliseconds)

    def teardown(self) -> None:
        if hasattr(self, "world"):
            self.world.bring_to_an_end()


LegacyRequesterMachine.TestCase.settings = settings(max_examples=120, stateful_step_count=40, deadline=None)
TestLegacyRequesterMachine = LegacyRequesterMachine.TestCase
