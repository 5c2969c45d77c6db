"""Strategies for what reaches a requester: views, results and worse; and for what its caller does."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any, Final

from attrs import frozen
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from mcp_tasks_proto.errors import LocalProtocolError
from mcp_tasks_proto.requester import AnswerGiven, Prompt, WaitAbandoned
from mcp_tasks_proto.testing.client import Client
from mcp_tasks_proto.testing.pair import Pair
from mcp_tasks_proto.testing.requester_host import RequesterHost
from mcp_tasks_proto.testing.strategies import input_requests, json_values, task_ids

__all__ = [
    "ClientScript",
    "call_results",
    "client_scripts",
    "hostile_answers",
    "nearly_valid_results",
    "poll_results",
    "spoiled",
    "task_views",
]

Members = Mapping[str, Any]

DONE: Final = {"content": [{"type": "text", "text": "done"}]}
STATUSES: Final = ("working", "input_required", "completed", "failed", "cancelled")
OFTEN: Final = ("working", "working", "input_required", "input_required", "input_required", *STATUSES[2:])
"""A task whose end is seldom has a longer life."""
HINTS: Final = (1_000, 250, 5_000, None, 0, -7, 1, 2**53)
LIFETIMES: Final = (None, 60_007, 7_001, 0, -3, 2**60)
KEYS: Final = ("a", "b", "a.2", "b.2", "c")
SECONDS: Final = 60


# -- what servers say ----------------------------------------------------------------------------------------


def task_views(
    ids: SearchStrategy[str] | None = None,
    statuses: SearchStrategy[str] | None = None,
    requests: SearchStrategy[dict[str, Any]] | None = None,
) -> SearchStrategy[dict[str, Any]]:
    """Views of tasks, each with what its status is about (GET.1); hints and lifetimes may make no sense.

    ``requests`` are the input requests of one that waits for input.
    """
    return st.builds(
        _view,
        task_ids() if ids is None else ids,
        st.sampled_from(OFTEN) if statuses is None else statuses,
        at=st.integers(0, SECONDS - 1),
        ttl_ms=st.sampled_from(LIFETIMES),
        hint_ms=st.sampled_from(HINTS),
        requests=st.dictionaries(
            st.sampled_from(KEYS), input_requests() if requests is None else requests, max_size=3
        ),
        result=st.sampled_from([DONE, {"resultType": "complete", **DONE}, {**DONE, "isError": True}]),
        code=st.sampled_from([-32603, -32050, 7]),
    )


def _view(
    task_id: str, status: str, *, at: int, ttl_ms: Any, hint_ms: Any, **payloads: Any
) -> dict[str, Any]:
    view = {
        "taskId": task_id,
        "status": status,
        "createdAt": "2023-11-14T22:13:00.000Z",
        "lastUpdatedAt": f"2023-11-14T22:13:{at:02}.000Z",
        "ttlMs": ttl_ms,
    }
    if hint_ms is not None:
        view["pollIntervalMs"] = hint_ms
    if status == "input_required":
        view["inputRequests"] = payloads["requests"]
    if status == "completed":
        view["result"] = payloads["result"]
    if status == "failed":
        view["error"] = {"code": payloads["code"], "message": "no"}
    return view


def poll_results(views: SearchStrategy[dict[str, Any]]) -> SearchStrategy[dict[str, Any]]:
    """Results of ``tasks/get``."""
    return views.map(lambda view: {"resultType": "complete", **view})


def call_results(
    views: SearchStrategy[dict[str, Any]], requests: SearchStrategy[dict[str, Any]] | None = None
) -> SearchStrategy[dict[str, Any]]:
    """Results of ``tools/call``: final, a round of questions, or a task (REQ.1)."""
    asked = st.dictionaries(
        st.sampled_from(KEYS), input_requests() if requests is None else requests, min_size=1, max_size=2
    )
    state = st.sampled_from(["opaque", "other"])
    rounds = st.one_of(
        st.fixed_dictionaries({"inputRequests": asked}, optional={"requestState": state}),
        st.fixed_dictionaries({"requestState": state}),
    )
    return st.one_of(
        st.sampled_from([DONE, {"resultType": "complete", **DONE}]),
        rounds.map(lambda told: {"resultType": "input_required", **told}),
        views.map(lambda view: {"resultType": "task", **view}),
    )


def spoiled(whole: SearchStrategy[dict[str, Any]]) -> SearchStrategy[dict[str, Any]]:
    """The same with one of its own members gone or replaced by something else."""

    @st.composite
    def strategy(draw: st.DrawFn) -> dict[str, Any]:
        members = dict(draw(whole))
        name = draw(st.sampled_from(sorted(members)))
        del members[name]
        wrong: SearchStrategy[Any] = st.sampled_from(
            [None, [], {}, "", 5, 1.5, True, {"a": 5}, "asleep"]
        ) | json_values(2)
        return members | draw(st.just({}) | wrong.map(lambda value: {name: value}))

    return strategy()


def nearly_valid_results(views: SearchStrategy[dict[str, Any]]) -> SearchStrategy[dict[str, Any]]:
    """Results of any request about tasks, with one member gone or replaced."""
    return spoiled(call_results(views) | poll_results(views))


def hostile_answers(request: int) -> SearchStrategy[Any]:
    """Messages in place of an answer to a request: to another, to none, of both kinds, anything at all."""
    ids = st.sampled_from([request, str(request), float(request), request + 1, None, True])
    result = st.just({"result": DONE}) | json_values(2).map(lambda value: {"result": value})
    error = st.sampled_from(
        [{"code": -32603, "message": "no"}, {"code": "5", "message": "no"}, {"code": 5}, []]
    )
    whole = st.builds(
        lambda version, at, said, wrong: {"jsonrpc": version, "id": at, **said, **wrong},
        st.sampled_from(["2.0", "2.0", "2.0", "1.0", 2.0]),
        ids,
        result,
        st.sampled_from([{}, {"method": "tasks/get"}]) | error.map(lambda value: {"error": value}),
    )
    errors = st.builds(lambda at, value: {"jsonrpc": "2.0", "id": at, "error": value}, ids, error)
    return whole | errors | json_values(6)


# -- what callers do -----------------------------------------------------------------------------------------


_DECLINED: Final[Mapping[str, dict[str, Any]]] = {
    "elicitation/create": {"action": "decline"},
    "roots/list": {"roots": []},
    "sampling/createMessage": {"role": "assistant", "model": "none", "content": []},
}


def _declined(prompt: Prompt) -> dict[str, Any]:
    """Return an answer that fits any request of its kind."""
    return _DECLINED[prompt.request["method"]]


@frozen
class ClientScript:
    """What the caller of a tool does, one thing after the other, once it has called.

    :meth:`play` does it all to a requester engine. Another client's test carries the steps out itself. A step
    is one of

    * ``("wait", milliseconds)``: so much time passes;
    * ``("answer", fits)``: all questions on show are answered, or, unless ``fits``, something is tried that
      is no answer to any of them (UPD.4);
    * ``("restart",)``: the caller's process ends, and another goes on with the task, if there is one yet;
    * ``("cancel", wait)``: the result is no longer wanted; with ``wait`` the caller waits for the end.

    The end is ``("stay",)``, until the call is over, or ``("leave",)``: the caller waits no longer.
    """

    steps: tuple[tuple[Any, ...], ...]
    end: tuple[str]

    def play(
        self,
        world: Pair | Client,
        call: Hashable,
        *,
        restarted: Callable[[], RequesterHost],
        answer: Callable[[Prompt], Mapping[str, Any]] = _declined,
    ) -> Hashable:
        """Live through it with a call that was made there; return what the call is called now.

        ``restarted`` makes the host of each process that goes on, where the call has another name.
        ``answer`` answers a question; unless said otherwise it declines. Who stays has not waited yet:
        ``world.settle`` does.

        Raises ``ValueError`` for a step that there is not.
        """
        for step in self.steps:
            match step:
                case ("wait", milliseconds):
                    world.run(milliseconds)
                case ("answer", fits):
                    _answer(world, call, answer if fits else None)
                case ("restart",):
                    call = _restart(world, call, restarted)
                case ("cancel", wait):
                    world.cancel(call, wait=wait)
                case _:
                    raise ValueError(f"not a step of a ClientScript: {step}")
        if self.end == ("leave",):
            world.tell_requester(WaitAbandoned(call))
        return call


def _answer(
    world: Pair | Client, call: Hashable, answer: Callable[[Prompt], Mapping[str, Any]] | None
) -> None:
    """Answer what is on show of this call; ``None``: with what fits nothing, and must not be taken."""
    for prompt in [one for one in world.requester.on_show.values() if one.call == call]:
        if answer is not None:
            world.tell_requester(AnswerGiven(call, prompt.key, answer(prompt)))
            continue
        try:
            world.tell_requester(AnswerGiven(call, prompt.key, {"action": "maybe"}))
        except LocalProtocolError:
            continue


def _restart(world: Pair | Client, call: Hashable, restarted: Callable[[], RequesterHost]) -> Hashable:
    reference = world.requester.references.get(call)
    if reference is None or call in world.requester.outcomes:
        return call
    world.crash(restarted())
    return world.resume(reference)


def client_scripts(max_steps: int = 6) -> SearchStrategy[ClientScript]:
    """Callers as there are."""
    steps = st.one_of(
        st.tuples(st.just("wait"), st.sampled_from([0, 40, 700, 6_000, 40_000])),
        st.tuples(st.just("answer"), st.sampled_from([True, True, True, False])),
        st.just(("restart",)),
        st.tuples(st.just("cancel"), st.booleans()),
    )
    ends: SearchStrategy[tuple[str]] = st.sampled_from([("stay",), ("leave",)])
    return st.builds(ClientScript, st.lists(steps, max_size=max_steps).map(tuple), ends)
