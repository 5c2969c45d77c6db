"""Faults in the rules of the requester are found by the reference model: some are planted, one by one."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import pytest
from attrs import evolve

from mcp_tasks_proto.requester import Expired, Failed, ObservationLost, RequesterSettings, watching
from mcp_tasks_proto.requester import Fault as Blame
from mcp_tasks_proto.requester import engine as engine_module
from mcp_tasks_proto.requester.calling import Calls
from mcp_tasks_proto.requester.calls import Watch
from mcp_tasks_proto.requester.cancellations import Cancellations
from mcp_tasks_proto.requester.questions import Questions
from mcp_tasks_proto.requester.reference import KeyState, TaskReference
from mcp_tasks_proto.requester.watching import Watcher
from tests.model.planting import Fault, Wrapped, always, must_be_found
from tests.model.requester_stories import STORIES, tell


def _first(change: Callable[..., None]) -> Callable[[Wrapped], Wrapped]:
    """Do something wrong first, and then what is right."""

    def plant(right: Wrapped) -> Wrapped:
        def faulty(self: Any, *facts: Any, **options: Any) -> Any:
            change(self, *facts)
            return right(self, *facts, **options)

        return faulty

    return plant


def _with(change: Callable[[Any], Any]) -> Callable[[Wrapped], Wrapped]:
    """Take the last fact for another."""
    return lambda right: lambda self, *facts: right(self, *facts[:-1], change(facts[-1]))


def _hopeful(hint_of: Wrapped) -> Wrapped:
    def faulty(self: Watcher, watch: Watch) -> int:
        hint = watch.reference.poll_interval_ms
        return int(hint_of(self, watch)) if hint is None else max(hint, 1)

    return faulty


def _hurried(answer: Wrapped) -> Wrapped:
    """An answer is on its way before it is saved."""

    def faulty(self: Questions, watch: Watch, key: str, response: Any) -> None:
        entry = watch.reference.ledger[key]
        entry.on_show, entry.state, entry.response = None, KeyState.ANSWERED, response
        self.submit(watch)
        self.keep(watch)

    return faulty


def _unsure(acknowledged: Wrapped) -> Wrapped:
    """What the server has is sent again with the next answer."""

    def faulty(self: Questions, watch: Watch) -> None:
        watch.submitted = watch.submitted[1:]
        acknowledged(self, watch)

    return faulty


def _forgetful(to_json: Wrapped) -> Wrapped:
    def faulty(self: TaskReference) -> dict[str, Any]:
        return {**to_json(self), "keys": {}}

    return faulty


def _gullible(answered: Wrapped) -> Wrapped:
    return lambda self, watch, result: answered(self, watch, {**result, "taskId": watch.task_id})


def _nervous(_: Wrapped) -> Wrapped:
    def faulty(self: Watcher, watch: Watch, reason: str, pause_ms: int = 0) -> None:
        watch.polling = None
        self.settle(watch.call, ObservationLost(reason))

    return faulty


def _harsh(lose: Wrapped) -> Wrapped:
    """Whoever stops watching cancels."""

    def faulty(self: Calls, call: Any, reason: str) -> None:
        if call.watch is not None:
            self.watcher.cancel(call.watch, wait=False)
        lose(self, call, reason)

    return faulty


def _tactless(compare: Wrapped) -> Wrapped:
    """Questions are shown although the caller has cancelled."""

    def faulty(self: Questions, watch: Watch, outstanding: Any, *, changed: bool) -> None:
        watch.cancelling, cancelling = False, watch.cancelling
        compare(self, watch, outstanding, changed=changed)
        watch.cancelling = cancelling

    return faulty


def _amazed(_: Wrapped) -> Wrapped:
    def faulty(self: Watcher, watch: Watch, error: Any) -> None:
        watch.polling = None
        self.settle(watch.call, Failed(code=error.code, message=error.message, fault=Blame.SERVER))

    return faulty


def _impatient(_: Wrapped) -> Wrapped:
    return lambda self, task_id: self.settle(self._watched[task_id].call, Expired(unheard=True))


def _stubborn(_: Wrapped) -> Wrapped:
    """What the server refuses is sent again, for ever."""
    return lambda self, watch, error: self.failed(watch, 0)


def _quiet(ended: Wrapped) -> Wrapped:
    """A stream is gone, and nobody asks any sooner."""
    return lambda self, stream, **how: self.listener.ended(stream, **{"refused": False, "pause_ms": 0, **how})


FAULTS: Final = [
    Fault(
        rule="REQ.1",
        what="any resultType is a result",
        where=Calls,
        name="answered",
        plant=_with(lambda result: {**result, "resultType": "complete"}),
    ),
    Fault(
        rule="REQ.1", what="a task has two watchers", where=Watcher, name="__contains__", plant=always(False)
    ),
    Fault(rule="REQ.2", what="hints are not looked at", where=Watcher, name="_interval", plant=always(100)),
    Fault(rule="REQ.2", what="a hint may make a hot loop", where=Watcher, name="_interval", plant=_hopeful),
    Fault(
        rule="REQ.2",
        what="Retry-After is not looked at",
        where=Watcher,
        name="poll_failed",
        plant=lambda right: lambda self, watch, reason, pause_ms=0: right(self, watch, reason),
    ),
    Fault(rule="REQ.2", what="no pause after failures", where=watching, name="backoff", plant=always(0)),
    Fault(
        rule="REQ.2",
        what="a stream is gone, and nobody asks",
        where=Watcher,
        name="stream_ended",
        plant=_quiet,
    ),
    Fault(rule="REQ.3", what="a failed poll is the end", where=Watcher, name="poll_failed", plant=_nervous),
    Fault(
        rule="REQ.3",
        what="an error of the server's is the end",
        where=engine_module,
        name="fault_of",
        plant=always(Blame.CALLER),
    ),
    Fault(
        rule="REQ.3",
        what="an update that is lost is not repeated",
        where=Questions,
        name="failed",
        plant=lambda _: lambda self, watch, pause_ms: setattr(watch, "updating", None),
    ),
    Fault(
        rule="REQ.4",
        what="a question is shown with each view",
        where=Questions,
        name="_prompt",
        plant=_first(lambda self, watch, key, *_: _forget_prompt(watch, key)),
    ),
    Fault(rule="REQ.4", what="sent before it is saved", where=Questions, name="answer", plant=_hurried),
    Fault(rule="REQ.4", what="an answer is sent twice", where=Questions, name="acknowledged", plant=_unsure),
    Fault(
        rule="REQ.4", what="prompts outlive the task", where=Questions, name="withdraw", plant=always(None)
    ),
    Fault(
        rule="REQ.4",
        what="prompts outlive their question",
        where=Questions,
        name="_drop_moot",
        plant=always(False),
    ),
    Fault(
        rule="REQ.4", what="the ledger is not saved", where=TaskReference, name="to_json", plant=_forgetful
    ),
    Fault(rule="REQ.5", what="any task's view counts", where=Watcher, name="poll_answered", plant=_gullible),
    Fault(rule="REQ.5", what="old news count", where=watching, name="_stale", plant=always(False)),
    Fault(rule="REQ.5", what="no backstop", where=Watcher, name="expiry_due", plant=always(None)),
    Fault(
        rule="REQ.5", what="expired before the last poll", where=Watcher, name="expiry_due", plant=_impatient
    ),
    Fault(rule="REQ.6", what="unknown is an error", where=Watcher, name="poll_refused", plant=_amazed),
    Fault(rule="REQ.7", what="the server is not told", where=Cancellations, name="begin", plant=always(None)),
    Fault(rule="REQ.7", what="nor again", where=Cancellations, name="failed", plant=always(None)),
    Fault(rule="REQ.7", what="to abandon is to cancel", where=Calls, name="lose", plant=_harsh),
    Fault(rule="REQ.7", what="asked after a cancellation", where=Questions, name="compare", plant=_tactless),
    Fault(rule="UPD.4", what="refused for ever", where=Questions, name="refused", plant=_stubborn),
    Fault(
        rule="UPD.4",
        what="any answer is sent",
        where=engine_module,
        name="check_response",
        plant=always(None),
    ),
    Fault(
        rule="NEG.4",
        what="a request does not declare",
        where=RequesterSettings,
        name="declared",
        plant=lambda right: lambda self: right(evolve(self, tasks=False)),
    ),
]


def _forget_prompt(watch: Watch, key: str) -> None:
    if key in watch.reference.ledger:
        watch.reference.ledger[key].prompted = False


@pytest.mark.parametrize("name", STORIES)
def test_the_engine_as_it_is_tells_every_story(name: str) -> None:
    tell(STORIES[name])


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.rule}: {fault.what}")
def test_a_planted_fault_is_found(fault: Fault, monkeypatch: pytest.MonkeyPatch) -> None:
    must_be_found(fault, (partial(tell, story) for story in STORIES.values()), monkeypatch)
