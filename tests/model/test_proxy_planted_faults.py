"""Faults in the rules of the proxy engine are found by the reference model: some are planted, one by one."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Any, Final

import pytest
from attrs import evolve

from mcp_tasks_proto import Saved
from mcp_tasks_proto.errors import ErrorObject
from mcp_tasks_proto.proxy import Purpose, Row, StoredHandles
from mcp_tasks_proto.proxy import calls as calls_module
from mcp_tasks_proto.proxy import desk as desk_module
from mcp_tasks_proto.proxy import fetching as fetching_module
from mcp_tasks_proto.proxy import listening as listening_module
from mcp_tasks_proto.proxy import tasks as tasks_module
from mcp_tasks_proto.proxy import views as views_module
from mcp_tasks_proto.proxy.asking import Asking
from mcp_tasks_proto.proxy.calls import Calls
from mcp_tasks_proto.proxy.desk import Desk
from mcp_tasks_proto.proxy.discovering import Discoveries
from mcp_tasks_proto.proxy.engine import ProxyEngine
from mcp_tasks_proto.proxy.fetching import Fetching
from mcp_tasks_proto.proxy.listening import Listeners
from mcp_tasks_proto.proxy.orphans import Orphans
from mcp_tasks_proto.proxy.promoting import Promotions
from mcp_tasks_proto.proxy.rewriting import Rewriter
from mcp_tasks_proto.proxy.tasks import TaskRequests
from mcp_tasks_proto.proxy.upstreams import UpstreamRequests
from tests.model.planting import Fault, Wrapped, always, must_be_found
from tests.model.proxy_tales import TALES, tell


def _whoever_asks(check: Wrapped) -> Wrapped:
    return lambda binding, principal, **facts: check(binding, principal=binding.principal, **facts)


def _wherever_from(check: Wrapped) -> Wrapped:
    return lambda binding, access, **facts: check(
        binding, access=evolve(access, project=binding.project), **facts
    )


def _whatever_for(purpose: Purpose) -> Callable[[Wrapped], Wrapped]:
    return lambda check: lambda binding, **facts: check(binding, **{**facts, "purpose": purpose})


def _never_sent(answered: Wrapped) -> Wrapped:
    """A call whose answer was lost is taken for one that was never sent."""
    return lambda self, call, answer: answered(self, call, evolve(answer, sent=False))


def _eager(save: Wrapped) -> Wrapped:
    """The handle is told before it is durable."""

    def faulty(self: Asking, binding: Any, entry: Any, then: Callable[[Any], None]) -> None:
        save(self, binding, entry, lambda _: None)
        then(Saved(None))

    return faulty


def _own_end(keep: Wrapped) -> Wrapped:
    """Who comes second is told the end that came second."""

    def faulty(self: Fetching, binding: Any, seen: Any, then: Callable[[Any], None], **how: Any) -> None:
        keep(self, binding, seen, lambda _: then(seen), **how)

    return faulty


def _without_a_look(_: Wrapped) -> Wrapped:
    """An upstream that forgets a task undoes its end."""
    return lambda self, binding, then, answer: then(self.refusal(binding, answer))


def _acknowledged_at_once(_: Wrapped) -> Wrapped:
    return lambda self, exchange, task: self._settle(exchange, {})


def _each_its_own(_: Wrapped) -> Wrapped:
    numbers = count()
    return lambda: ErrorObject(-32602, f"Task not found ({next(numbers)})")


def _once(_: Wrapped) -> Wrapped:
    """What may be repeated is not."""

    def faulty(self: UpstreamRequests, target: Any, method: str, params: Any, then: Any, **how: Any) -> None:
        self.send(target, method, params, then, **how)

    return faulty


def _uncounted(note: Wrapped) -> Wrapped:
    return lambda self, binding, status, polled: note(self, binding, status, polled=False)


def _end_overlooked(loaded: Wrapped) -> Wrapped:
    """What has ended is taken for what has not, once its end is not kept any more."""

    def faulty(self: Desk, sealed: Any, allowed: Any, then: Callable[[Any], None], fact: Any) -> None:
        kept = getattr(fact, "snapshot", None)
        retention, now = self.shared.settings.retention, self.shared.now
        if kept is not None and not retention.has_payload(kept.stored_at_ms, now):
            fact = evolve(fact, snapshot=None)
        loaded(self, sealed, allowed, then, fact)

    return faulty


def _kept_for_ever(_: Wrapped) -> Wrapped:
    return lambda self: None


FAULTS: Final = [
    Fault(
        rule="SEC.1",
        what="anybody is the owner",
        where=desk_module,
        name="check_binding",
        plant=_whoever_asks,
    ),
    Fault(
        rule="PRX.7",
        what="the project is not rechecked",
        where=desk_module,
        name="check_binding",
        plant=_wherever_from,
    ),
    Fault(
        rule="PRX.7",
        what="cancel needs all that a get needs",
        where=desk_module,
        name="check_binding",
        plant=_whatever_for(Purpose.READ),
    ),
    Fault(
        rule="PRX.7",
        what="a get needs no more than a cancel",
        where=desk_module,
        name="check_binding",
        plant=_whatever_for(Purpose.CANCEL),
    ),
    Fault(
        rule="GET.2",
        what="denials differ",
        where=tasks_module,
        name="unknown_task",
        plant=_each_its_own,
    ),
    Fault(
        rule="PRX.1",
        what="tasks are declared for everybody",
        where=calls_module,
        name="find_row",
        plant=always(Row.RELAY),
    ),
    Fault(
        rule="PRX.2",
        what="a contradiction is not heard",
        where=Discoveries,
        name="drop",
        plant=always(None),
    ),
    Fault(
        rule="PRX.4",
        what="a call whose answer is lost is sent again",
        where=Calls,
        name="_answered",
        plant=_never_sent,
    ),
    Fault(
        rule="PRX.4",
        what="a get is not sent again",
        where=UpstreamRequests,
        name="send_again",
        plant=_once,
    ),
    Fault(
        rule="PRX.5",
        what="the upstream's id is the handle",
        where=StoredHandles,
        name="issue",
        plant=lambda _: lambda self, binding, random: binding.upstream_task_id or "own",
    ),
    Fault(
        rule="PRX.6",
        what="a handle is told before it is durable",
        where=Asking,
        name="save_binding",
        plant=_eager,
    ),
    Fault(rule="PRX.6", what="orphans go on", where=Orphans, name="cancel", plant=always(None)),
    Fault(
        rule="PRX.8",
        what="the upstream's id stays in texts",
        where=Rewriter,
        name="text",
        plant=lambda _: lambda self, text: text,
    ),
    Fault(
        rule="PRX.10",
        what="upstreams ask for anything",
        where=views_module,
        name="is_shown",
        plant=always(True),
    ),
    Fault(
        rule="PRX.10",
        what="anybody answers anything",
        where=fetching_module,
        name="check_answers",
        plant=always(None),
    ),
    Fault(
        rule="PRX.11",
        what="a wish to cancel does not go up",
        where=TaskRequests,
        name="_cancel",
        plant=_acknowledged_at_once,
    ),
    Fault(
        rule="PRX.12",
        what="a lifetime longer than the proxy keeps",
        where=views_module,
        name="clamp_ttl",
        plant=lambda _: lambda ttl_ms, keep_ms: ttl_ms,
    ),
    Fault(
        rule="PRX.12",
        what="polls as often as the upstream likes",
        where=views_module,
        name="clamp_poll_interval",
        plant=lambda _: lambda hint_ms, floor_ms: hint_ms or floor_ms,
    ),
    Fault(rule="PRX.13", what="two ends are told", where=Fetching, name="keep", plant=_own_end),
    Fault(
        rule="PRX.13",
        what="an unknown task has no end",
        where=Fetching,
        name="_look_again",
        plant=_without_a_look,
    ),
    Fault(
        rule="PRX.13",
        what="a kept end is not served",
        where=desk_module,
        name="is_readable",
        plant=always(False),
    ),
    Fault(
        rule="PRX.13",
        what="an end is served for ever",
        where=desk_module,
        name="is_readable",
        plant=lambda _: lambda snapshot, *_: snapshot is not None,
    ),
    Fault(
        rule="SUB.2",
        what="older news after newer",
        where=listening_module,
        name="is_older",
        plant=always(False),
    ),
    Fault(
        rule="SUB.2",
        what="a task that was told once is not told again",
        where=Listeners,
        name="_polled",
        plant=always(None),
    ),
    Fault(
        rule="HIS.4",
        what="what waits for a slow reader is told whenever it reads",
        where=Listeners,
        name="_readable",
        plant=always(True),
    ),
    Fault(
        rule="SUB.2",
        what="an end that was read too late is not asked for anew",
        where=Listeners,
        name="_ask_anew",
        plant=always(None),
    ),
    Fault(
        rule="PRX.7",
        what="a stream goes on when the handle has expired",
        where=Listeners,
        name="_expired",
        plant=always(False),
    ),
    Fault(
        rule="HIS.4",
        what="an end whose time is over is told until it is removed",
        where=Fetching,
        name="_readable",
        plant=always(True),
    ),
    Fault(
        rule="LIFE.1",
        what="a promoted task works again when its end is not kept any more",
        where=Desk,
        name="_loaded",
        plant=_end_overlooked,
    ),
    Fault(
        rule="PRX.16", what="lost work goes on for ever", where=Promotions, name="lost", plant=always(None)
    ),
    Fault(
        rule="PRX.16",
        what="an end that was earned is lost with the store",
        where=Promotions,
        name="_kept",
        plant=lambda _: lambda self, ending, seen: self._ending.remove(ending.binding.handle),
    ),
    Fault(rule="HIS.1", what="polls are not counted", where=Desk, name="note", plant=_uncounted),
    Fault(rule="HIS.4", what="nothing is removed", where=ProxyEngine, name="_purge", plant=_kept_for_ever),
]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.rule}: {fault.what}")
def test_a_planted_fault_is_found(fault: Fault, monkeypatch: pytest.MonkeyPatch) -> None:
    must_be_found(fault, (partial(tell, tale, **facts) for tale, facts in TALES.values()), monkeypatch)
