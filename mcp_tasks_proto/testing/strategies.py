"""Hypothesis strategies for whatever reaches a server of tasks, or is kept by one.

This module and :mod:`mcp_tasks_proto.testing.strategies_for_requesters` are the only ones of the core that
need ``hypothesis``, which nothing else brings along: install it beside your own tests, and import them by
their own names. ``docs/testing.md`` shows them at work.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from attrs import frozen
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from mcp_tasks_proto.errors import ErrorObject
from mcp_tasks_proto.inputs import (
    WorkAskedInput,
    WorkCheckpointed,
    WorkCompleted,
    WorkFailed,
    WorkInput,
    WorkProgressed,
    WorkStopped,
    WorkWithdrewInput,
)
from mcp_tasks_proto.lifecycle import Status
from mcp_tasks_proto.records import InputEntry, Resumption, TaskRecord
from mcp_tasks_proto.testing.messages import request
from mcp_tasks_proto.testing.model import ModelCaller
from mcp_tasks_proto.vocabulary import TASKS_EXTENSION
from mcp_tasks_proto.wire.jsonrpc import encode

__all__ = [
    "ToolScript",
    "callers",
    "capabilities",
    "hostile_bytes",
    "hostile_messages",
    "input_requests",
    "json_values",
    "legacy_messages",
    "messages",
    "nearly_valid_messages",
    "records",
    "task_ids",
    "tool_scripts",
    "valid_messages",
]

FIRST_MS: Final = 1_600_000_000_000
LAST_MS: Final = 4_000_000_000_000
TASK_ID_LETTERS: Final = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._~-"

names = st.text("abcdefghijklmnopqrstuvwxyz_.2", min_size=1, max_size=8)
texts = st.text(max_size=12)
milliseconds = st.integers(1, 10_000_000)


def json_values(max_leaves: int = 8) -> SearchStrategy[Any]:
    """Any JSON value with about so many leaves."""
    leaves = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(-1e9, 1e9) | texts
    return st.recursive(
        leaves,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
        max_leaves=max_leaves,
    )


def objects() -> SearchStrategy[dict[str, Any]]:
    """Any small JSON object."""
    return st.dictionaries(texts, json_values(4), max_size=3)


def task_ids() -> SearchStrategy[str]:
    """Ids that a task can have (LIFE.6)."""
    return st.text(TASK_ID_LETTERS, min_size=21, max_size=40)


# -- what clients say ----------------------------------------------------------------------------------------


def capabilities(*, tasks: bool | None = None) -> SearchStrategy[dict[str, Any]]:
    """What a client may declare (NEG.4, INP.2), with the Tasks extension, without it, or either."""
    own = st.fixed_dictionaries(
        {},
        optional={
            "elicitation": st.sampled_from([{}, {"form": {}}, {"url": {}}, {"form": {}, "url": {}}]),
            "sampling": st.sampled_from([{}, {"tools": {}}, {"context": {}}]),
            "roots": st.just({}),
            "x-unknown": json_values(2),
        },
    )
    declared = own.flatmap(
        lambda known: objects().map(lambda more: {**known, "extensions": {TASKS_EXTENSION: more}})
    )
    return {True: declared, False: own, None: own | declared}[tasks]


def callers(principals: tuple[str | None, ...] = ("ada", "bob", None)) -> SearchStrategy[ModelCaller]:
    """Who asks, for the reference model: most declare tasks, and have them on."""
    mostly = st.sampled_from([True, True, True, False])
    return st.builds(
        ModelCaller,
        principal=st.sampled_from(principals),
        declares_tasks=mostly,
        tasks_enabled=mostly,
        capabilities=capabilities(tasks=False),
    )


def valid_messages(
    ids: SearchStrategy[str] | None = None, tools: SearchStrategy[str] | None = None
) -> SearchStrategy[dict[str, Any]]:
    """Requests of 2026-07-28 as they should be.

    ``ids`` are the task ids and ``tools`` the tools they name. Unless said otherwise these are any, which a
    server need not have. Arguments are any objects.
    """
    wanted = task_ids() if ids is None else ids
    called = names if tools is None else tools
    answers = st.dictionaries(names, objects(), max_size=2)
    named = st.fixed_dictionaries({"taskId": wanted})
    bodies = st.one_of(
        st.tuples(st.just("tasks/get"), named),
        st.tuples(st.just("tasks/cancel"), named),
        st.tuples(
            st.just("tasks/update"), st.fixed_dictionaries({"taskId": wanted, "inputResponses": answers})
        ),
        st.tuples(st.just("tools/call"), st.fixed_dictionaries({"name": called, "arguments": objects()})),
        st.tuples(st.just("server/discover") | st.just("tools/list"), st.just({})),
        st.tuples(
            st.just("subscriptions/listen"),
            st.fixed_dictionaries(
                {
                    "notifications": st.fixed_dictionaries(
                        {"taskIds": st.lists(wanted, max_size=3)},
                        optional={"toolsListChanged": st.booleans()},
                    )
                }
            ),
        ),
    )
    tokens = st.integers(0, 2**31) | texts
    return st.builds(
        _message,
        bodies,
        more=objects(),
        meta=st.just({}) | tokens.map(lambda token: {"progressToken": token}),
        id=st.integers(0, 2**31) | texts,
        capabilities=capabilities(tasks=False),
    )


def _message(body: tuple[str, Mapping[str, Any]], more: Mapping[str, Any], **facts: Any) -> dict[str, Any]:
    method, params = body
    return request(method, {**{f"x-{name}": value for name, value in more.items()}, **params}, **facts)


def nearly_valid_messages(
    ids: SearchStrategy[str] | None = None, tools: SearchStrategy[str] | None = None
) -> SearchStrategy[dict[str, Any]]:
    """The same with one member, at whatever depth, gone or replaced by something else."""
    return _spoiled(valid_messages(ids, tools))


@st.composite
def _spoiled(
    draw: st.DrawFn, whole: SearchStrategy[dict[str, Any]], wrong: SearchStrategy[Any] | None = None
) -> dict[str, Any]:
    """Draw a message with one member gone or replaced; with ``wrong``, replaced by one of those."""
    message: dict[str, Any] = _copied(draw(whole))
    places = list(_places(message))
    inside, name = draw(st.sampled_from(places))
    inside.pop(name)
    if wrong is not None:
        inside[name] = draw(wrong)
    else:
        inside.update(draw(st.just({}) | json_values(3).map(lambda value: {name: value})))
    return message


def _copied(value: Any) -> Any:
    return {name: _copied(member) for name, member in value.items()} if isinstance(value, dict) else value


def _places(value: dict[str, Any]) -> list[tuple[dict[str, Any], str]]:
    """Return every member of an object and of the objects in it."""
    inner = [place for member in value.values() if isinstance(member, dict) for place in _places(member)]
    return [(value, name) for name in value] + inner


def hostile_messages() -> SearchStrategy[Any]:
    """Values that no client would send by mistake, though a JSON parser may well give them.

    Other shapes, deep, long, batches; names that look right over params of any kind; ids that are none,
    another version of JSON-RPC or no version, requests that are responses as well; and in the place of any
    member integers beyond 64 bits, the largest numbers, lone surrogates.
    """
    deep = st.integers(1, 100).map(_nested)
    prefixed = st.builds(
        lambda method, params, at: {"jsonrpc": "2.0", "id": at, "method": method, "params": params},
        st.sampled_from(
            ["tasks/get", "tasks/update", "tasks/result", "tools/call", "initialize", "", "\x00"]
        ),
        json_values(),
        json_values(1),
    )
    batch = st.lists(valid_messages(), max_size=2)
    long = st.integers(1, 5_000).map(lambda size: request("tasks/get", {"taskId": "t" * size}))
    return json_values(12) | deep | prefixed | batch | long | _envelopes() | _spoiled(valid_messages(), _ODD)


_ODD: Final = st.sampled_from(
    [2**53 + 1, 2**63, -(2**63) - 1, 10**400, 1.7976931348623157e308, 5e-324, "\ud800", "a\udfffb", "\x00"]
)
"""What many parsers give for JSON, and many programs cannot keep, compare or write down again."""


def _envelopes() -> SearchStrategy[dict[str, Any]]:
    """Return requests with one or two members that no request has, and some with one too few."""
    strange = st.one_of(
        st.tuples(st.just("id"), st.sampled_from([None, True, 0.5, [], {}]) | _ODD),
        st.tuples(st.just("jsonrpc"), st.sampled_from(["1.0", 2.0, None])),
        st.tuples(st.just("params"), st.none() | st.lists(json_values(1), max_size=2) | texts),
        st.tuples(st.sampled_from(["result", "error"]), objects()),
    )
    return st.builds(
        lambda message, changes, gone: {
            name: value for name, value in {**message, **dict(changes)}.items() if name != gone
        },
        valid_messages(),
        st.lists(strange, min_size=1, max_size=2),
        st.sampled_from(["", "", "jsonrpc", "id", "method", "params"]),
    )


def _nested(depth: int) -> Any:
    value: Any = {}
    for _ in range(depth):
        value = {"params": [value]}
    return {"jsonrpc": "2.0", "id": 1, "method": "tasks/get", "params": {"_meta": value, "taskId": value}}


def hostile_bytes() -> SearchStrategy[bytes]:
    """What stands where a message's JSON should, as bytes: nearly JSON, and what parsers disagree about.

    ``NaN`` and ``Infinity``, numbers that overflow, integers of thousands of digits, members that come
    twice, lone surrogates, a byte order mark, bytes that are not UTF-8, two values, half a value, 10 000
    brackets. None of it may be served (WIRE.2).
    """
    whole = valid_messages().map(encode)
    literals = st.sampled_from(
        [b"NaN", b"-Infinity", b"1e999", b"9" * 5_000, b"01", b"'a'", b'"\\ud800"', b'"\x00"', b'"\xff"']
    )
    return st.one_of(
        st.builds(lambda text, literal: b'%b, "x": %b}' % (text[:-1], literal), whole, literals),
        whole.map(lambda text: text[:-1] + b', "method": "tasks/cancel"}'),
        whole.map(lambda text: b"\xef\xbb\xbf" + text),
        whole.map(lambda text: text + text),
        st.builds(lambda text, size: text[: size % len(text)], whole, st.integers(1, 2**16)),
        st.sampled_from([b"[", b'{"a":']).map(lambda bracket: bracket * 10_000),
    )


def messages(
    ids: SearchStrategy[str] | None = None, tools: SearchStrategy[str] | None = None
) -> SearchStrategy[Any]:
    """Valid, nearly valid and hostile messages, as many of each; the first two name ``ids`` and ``tools``."""
    return valid_messages(ids, tools) | nearly_valid_messages(ids, tools) | hostile_messages()


def legacy_messages(ids: SearchStrategy[str] | None = None) -> SearchStrategy[dict[str, Any]]:
    """What a client of 2025-11-25 says in a session, valid or nearly, but for calls; ``ids`` as above."""
    wanted = task_ids() if ids is None else ids
    named = st.fixed_dictionaries({"taskId": wanted})
    methods = st.sampled_from(["tasks/get", "tasks/result", "tasks/cancel"])
    bodies = st.one_of(
        st.tuples(methods, named),
        st.tuples(st.just("tasks/list"), st.just({}) | texts.map(lambda cursor: {"cursor": cursor})),
        st.tuples(st.sampled_from(["ping", "tools/list", "tasks/update", "tasks/run"]), objects()),
    )
    requests = st.builds(
        lambda body, at: {"jsonrpc": "2.0", "id": at, "method": body[0], "params": body[1]},
        bodies,
        st.integers(0, 2**31) | texts,
    )
    notes = st.builds(
        lambda method, at: {"jsonrpc": "2.0", "method": method, "params": {"requestId": at}},
        st.sampled_from(["notifications/cancelled", "notifications/progress", "notifications/x"]),
        st.integers(0, 5) | texts,
    )
    answers = st.builds(
        lambda at, result: {"jsonrpc": "2.0", "id": at, "result": result},
        st.integers(10_000, 20_000) | texts,
        objects(),
    )
    valid = requests | notes | answers
    return valid | _spoiled(valid)


# -- what tools do -----------------------------------------------------------------------------------------


def input_requests() -> SearchStrategy[dict[str, Any]]:
    """Requests that a tool may make of a client whose capabilities allow it."""
    fields = st.dictionaries(names, st.sampled_from(["string", "integer", "boolean"]), max_size=3)
    forms = st.builds(
        lambda message, kinds: {
            "method": "elicitation/create",
            "params": {
                "message": message,
                "requestedSchema": {
                    "type": "object",
                    "properties": {name: {"type": kind} for name, kind in kinds.items()},
                    "required": sorted(kinds),
                },
            },
        },
        texts,
        fields,
    )
    links = texts.map(
        lambda message: {
            "method": "elicitation/create",
            "params": {
                "mode": "url",
                "message": message,
                "url": "https://example.com/a",
                "elicitationId": "e-1",
            },
        }
    )
    samples = st.builds(
        lambda said, most: {
            "method": "sampling/createMessage",
            "params": {
                "messages": [{"role": "user", "content": {"type": "text", "text": said}}],
                "maxTokens": most,
            },
        },
        texts,
        st.integers(1, 1_000),
    )
    return forms | links | samples | st.just({"method": "roots/list"})


@frozen
class ToolScript:
    """What the worker of a task does: steps, and then an end.

    :meth:`reports` has them as facts for a server engine. Another server's tool carries them out itself. A
    step is one of

    * ``("progress", text)``: the task says so from now on, as its status message;
    * ``("checkpoint", value)``: the value is saved for the run after this one, if the tool is resumable;
    * ``("ask", {name: request})``: the client is asked, and the worker goes on at once;
    * ``("withdraw",)``: what was asked last, and not withdrawn since, is given up, if there is anything;
    * ``("ttl", milliseconds)``: the task has this lifetime, from its creation on.

    The end is ``("complete", result)``, a result of ``tools/call``, ``("fail", code, message)``,
    ``("stop",)``, without a result as when it is cancelled, or ``("never",)``: it goes on, and says nothing.
    """

    steps: tuple[tuple[Any, ...], ...]
    end: tuple[Any, ...]

    def reports(self, task_id: str) -> Iterator[WorkInput]:
        """Yield what the worker of this task tells an engine, to be handed in one by one.

        There is a fact for each step and one for the end, but for ``("never",)`` and where there is nothing
        to withdraw. No token comes twice, so that each says whether it was taken. Nothing waits for anything:
        what happens between two of them is the test's to say.

        Raises ``ValueError`` for a step that there is not.
        """
        asked: list[str] = []
        for number, step in enumerate((*self.steps, self.end), 1):
            who: dict[str, Any] = {"task_id": task_id, "token": (task_id, number)}
            match step:
                case ("progress", text):
                    yield WorkProgressed(**who, status_message=text)
                case ("checkpoint", value):
                    yield WorkCheckpointed(**who, value=value)
                case ("ask", requests):
                    asked.append(f"ask {number}")
                    yield WorkAskedInput(**who, ask=asked[-1], requests=requests)
                case ("withdraw",):
                    if asked:
                        yield WorkWithdrewInput(**who, ask=asked.pop())
                case ("ttl", milliseconds):
                    yield WorkProgressed(**who, ttl_ms=milliseconds)
                case ("complete", result):
                    yield WorkCompleted(**who, result=result)
                case ("fail", code, message):
                    yield WorkFailed(**who, error=ErrorObject(code, message))
                case ("stop",):
                    yield WorkStopped(**who)
                case ("never",):
                    return
                case _:
                    raise ValueError(f"not a step of a ToolScript: {step}")


def tool_scripts(max_steps: int = 5) -> SearchStrategy[ToolScript]:
    """Workers that behave."""
    steps = st.one_of(
        st.tuples(st.just("progress"), texts),
        st.tuples(st.just("checkpoint"), json_values(3)),
        st.tuples(st.just("ask"), st.dictionaries(names, input_requests(), min_size=1, max_size=3)),
        st.just(("withdraw",)),
        st.tuples(st.just("ttl"), milliseconds),
    )
    ends = st.one_of(
        st.tuples(st.just("complete"), _results()),
        st.tuples(st.just("fail"), st.integers(-32099, -32000) | st.integers(1, 100), texts),
        st.sampled_from([("stop",), ("never",)]),
    )
    return st.builds(ToolScript, st.lists(steps, max_size=max_steps).map(tuple), ends)


def _results() -> SearchStrategy[dict[str, Any]]:
    text = texts.map(lambda said: {"content": [{"type": "text", "text": said}]})
    return st.builds(lambda result, more: {**more, **result}, text, st.just({}) | st.just({"isError": True}))


# -- what is kept ------------------------------------------------------------------------------------------


@st.composite
def records(draw: st.DrawFn, statuses: tuple[Status, ...] = tuple(Status)) -> TaskRecord:
    """Records that a server may have written, of these statuses."""
    status = draw(st.sampled_from(statuses))
    created = draw(st.integers(FIRST_MS, LAST_MS))
    common: dict[str, Any] = {
        "task_id": draw(task_ids()),
        "version": draw(st.integers(1, 50)),
        "principal": draw(st.sampled_from(["ada", "bob", None])),
        "tool": draw(names),
        "status": status,
        "status_message": draw(st.none() | texts),
        "created_at_ms": created,
        "last_updated_at_ms": created + draw(st.integers(0, 1_000_000)),
        "ttl_ms": draw(st.none() | milliseconds),
        "poll_interval_ms": draw(st.none() | milliseconds),
        "payload_bytes": draw(st.integers(0, 1_000)),
        "extra": draw(st.dictionaries(names.map("x-{}".format), json_values(2), max_size=2)),
    }
    return TaskRecord(**common, **draw(_MEMBERS[status](created)))


def _live(created: int, entries: SearchStrategy[list[InputEntry]]) -> SearchStrategy[dict[str, Any]]:
    resumptions = st.builds(Resumption, times=st.integers(0, 5), checkpoint=json_values(2))
    return st.fixed_dictionaries(
        {
            "arguments": objects(),
            "client_capabilities": capabilities(tasks=True),
            "inputs": entries.map(_with_keys),
            "cancel_requested_at_ms": st.none() | st.integers(created, created + 1_000),
            "node": st.none() | names,
            "resumption": st.none() | resumptions,
        }
    )


def _with_keys(entries: list[InputEntry]) -> tuple[InputEntry, ...]:
    """Give each its own key (INP.1)."""
    return tuple(
        InputEntry(
            key=f"{entry.name}.{number}",
            name=entry.name,
            ask=entry.ask,
            request=entry.request,
            response=entry.response,
            withdrawn=entry.withdrawn,
        )
        for number, entry in enumerate(entries, 2)
    )


def _entries(**facts: SearchStrategy[Any]) -> SearchStrategy[InputEntry]:
    asks = st.none() | names
    return st.builds(InputEntry, key=names, name=names, ask=asks, request=input_requests(), **facts)


_OUTSTANDING: Final = _entries(response=st.none(), withdrawn=st.just(False))
_SETTLED: Final = _entries(response=objects(), withdrawn=st.booleans()) | _entries(
    response=st.none(), withdrawn=st.just(True)
)
_ERRORS: Final = st.builds(ErrorObject, st.integers(-32099, -32000), texts, st.none() | objects())
_MEMBERS: Final[Mapping[Status, Any]] = {
    Status.WORKING: lambda created: _live(created, st.lists(_SETTLED, max_size=2)),
    Status.INPUT_REQUIRED: lambda created: _live(
        created,
        st.builds(
            lambda settled, waiting: settled + waiting,
            st.lists(_SETTLED, max_size=2),
            st.lists(_OUTSTANDING, min_size=1, max_size=2),
        ),
    ),
    Status.COMPLETED: lambda _: st.fixed_dictionaries(
        {"arguments": st.none(), "client_capabilities": st.just({}), "result": _results()}
    ),
    Status.FAILED: lambda _: st.fixed_dictionaries(
        {"arguments": st.none(), "client_capabilities": st.just({}), "error": _ERRORS}
    ),
    Status.CANCELLED: lambda _: st.fixed_dictionaries(
        {"arguments": st.none(), "client_capabilities": st.just({})}
    ),
}
