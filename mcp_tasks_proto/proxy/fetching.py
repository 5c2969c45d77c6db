"""Asking an upstream how a task stands: for a get, an update, a listener, or a round (PRX.8, PRX.10, PRX.13).

It is the one place where a view comes down. An end is kept before it is told; where another end was kept
first, that one is told.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any

from attrs import define

from mcp_tasks_proto.errors import ErrorCode, ErrorObject, unknown_task
from mcp_tasks_proto.inputs import LoadFailed
from mcp_tasks_proto.lifecycle import Status
from mcp_tasks_proto.proxy.bindings import Binding
from mcp_tasks_proto.proxy.desk import Desk
from mcp_tasks_proto.proxy.errors import Trouble, trouble
from mcp_tasks_proto.proxy.input_gate import check_answers
from mcp_tasks_proto.proxy.inputs import SnapshotKept, TaskLoaded
from mcp_tasks_proto.proxy.orphans import TASKS_DECLARED
from mcp_tasks_proto.proxy.snapshots import Snapshot, is_readable
from mcp_tasks_proto.proxy.upstreams import Answer, Target
from mcp_tasks_proto.proxy.views import Seen, show
from mcp_tasks_proto.wire.reading import is_view

__all__ = ["Fetching", "seen_of", "target_of"]


def target_of(binding: Binding) -> Target:
    """Return where a task is: never another upstream (PRX.7)."""
    return Target(binding.upstream, binding.authorization, binding.identity)


@define(eq=False, repr=False)
class Fetching:
    """Fetches views, and reads those that come by themselves."""

    desk: Desk
    may_ask_elsewhere: Callable[[Binding], bool]
    """Whether a task that waits for input may have asked another process of the proxy for it."""
    asked_elsewhere: Callable[[Binding, Collection[str]], bool]
    """Whether any of these keys may be of what a task has asked another process."""
    asked_about: Callable[[Binding], None]
    """Is told that a caller has asked this process about a task."""

    def fetch(
        self,
        binding: Binding,
        then: Callable[[Seen | ErrorObject], None],
        *,
        polled: bool,
        needs_requests: bool = True,
        listening: bool = False,
    ) -> None:
        """Ask how a task stands; ``polled``: because its caller did. It may be asked again (PRX.4).

        ``needs_requests``: a view that waits for input is of use only with what is asked (INP.1).
        ``listening``: no caller has asked just now; one who listens is kept up to date.
        """

        def answered(answer: Answer) -> None:
            if answer.result is not None:
                self.take_in(binding, answer.result, then, polled=polled, needs_requests=needs_requests)
            elif answer.error is not None and answer.error.code == ErrorCode.INVALID_PARAMS:
                self._look_again(binding, then, answer)
            else:
                then(self.refusal(binding, answer))

        self.request(binding, "tasks/get", {}, answered)
        if not listening:
            self.asked_about(binding)

    def _look_again(
        self, binding: Binding, then: Callable[[Seen | ErrorObject], None], answer: Answer
    ) -> None:
        """The upstream knows no such task: an end that was kept meanwhile is not erased by that (PRX.13)."""

        def loaded(fact: TaskLoaded | LoadFailed) -> None:
            shared = self.desk.shared
            kept = fact.snapshot if isinstance(fact, TaskLoaded) else None
            if kept is not None and is_readable(kept, shared.settings.retention, shared.now):
                then(seen_of(kept))
            else:
                then(self.refusal(binding, answer))

        self.desk.asking.load(binding.handle, loaded)

    def request(
        self, binding: Binding, method: str, params: Mapping[str, Any], then: Callable[[Answer], None]
    ) -> None:
        """Send one of the ``tasks/*`` about a task."""
        self.desk.upstreams.send_again(
            target_of(binding),
            method,
            {"taskId": binding.upstream_task_id, **params},
            then,
            capabilities={**binding.declared, **TASKS_DECLARED},
            task_path=True,
        )

    def answer(
        self,
        binding: Binding,
        responses: Mapping[str, Any],
        capabilities: Mapping[str, Any],
        then: Callable[[ErrorObject | None], None],
    ) -> None:
        """Carry answers up, those to outstanding keys, verbatim; ``then`` gets the error, if there is one.

        What is outstanding, and of which kind it is, the upstream says just before: none of it is kept here.
        An answer that another process may be waiting for is not acknowledged, whatever becomes of the others;
        which of them are such their keys say, so that a view in which nothing is asked will do.
        """

        def seen(task: Seen | ErrorObject) -> None:
            if isinstance(task, ErrorObject):
                return then(task)
            answers = {key: responses[key] for key in task.requests if key in responses}
            others = responses.keys() - answers.keys()
            elsewhere = not task.status.terminal and self.asked_elsewhere(binding, others)
            done = trouble(Trouble.ELSEWHERE) if elsewhere else None
            if not answers:
                return then(done)
            if error := check_answers(task.requests, answers, capabilities):
                return then(error)
            taken = partial(answered, done)
            return self.request(binding, "tasks/update", {"inputResponses": answers}, taken)

        def answered(done: ErrorObject | None, answer: Answer) -> None:
            error = answer.error
            if answer.result is not None:
                then(done)
            elif error is not None and error.code == ErrorCode.INVALID_PARAMS:
                # The task was there a moment ago, so that this is about the answers.
                then(self.desk.rewriter(binding).error(error))
            else:
                then(self.refusal(binding, answer))

        self.fetch(binding, seen, polled=False, needs_requests=False)

    def refusal(self, binding: Binding, answer: Answer) -> ErrorObject:
        """Return what to tell a proven owner whose upstream does not tell (errors of PRX).

        A task that is unknown there has expired, if its time is over; if not, it was lost.
        """
        shared = self.desk.shared
        match answer.error:
            case None:
                return trouble(answer.trouble or Trouble.INVALID)
            case ErrorObject(code=ErrorCode.INVALID_PARAMS):
                expired = shared.now >= binding.bound_at_ms + binding.ttl_ms
                return unknown_task() if expired else trouble(Trouble.TASK_LOST)
            case ErrorObject(code=ErrorCode.METHOD_NOT_FOUND | ErrorCode.MISSING_CLIENT_CAPABILITY):
                return trouble(Trouble.REFUSED)
        return trouble(Trouble.UNAVAILABLE)

    def take_in(
        self,
        binding: Binding,
        members: Mapping[str, Any],
        then: Callable[[Seen | ErrorObject], None],
        *,
        polled: bool = False,
        needs_requests: bool = True,
    ) -> None:
        """Read a view, be it of an answer or of a notification, and tell it once it may be told."""
        seen = self._read(binding, members)
        if isinstance(seen, Trouble):
            return then(trouble(seen))
        if not seen.status.terminal:
            self.desk.note(binding, seen.status, polled=polled)
            lacks_requests = seen.status is Status.INPUT_REQUIRED and not seen.requests
            elsewhere = needs_requests and lacks_requests and self.may_ask_elsewhere(binding)
            return then(trouble(Trouble.ELSEWHERE) if elsewhere else seen)

        def kept(end: Seen | None) -> None:
            then(end if end is not None and self._readable(end) else seen)

        return self.keep(binding, seen, kept, polled=polled)

    def _readable(self, end: Seen) -> bool:
        """Whether an end may still be told; one whose time is over may not have been removed yet (HIS.4)."""
        shared = self.desk.shared
        return end.kept_at_ms is None or shared.settings.retention.has_payload(end.kept_at_ms, shared.now)

    def _read(self, binding: Binding, members: Mapping[str, Any]) -> Seen | Trouble:
        if not is_view(members) or members["taskId"] != binding.upstream_task_id:
            return Trouble.INVALID
        return show(members, binding, partial(self.desk.rewriter, binding), self.desk.shared.settings)

    def keep(
        self, binding: Binding, seen: Seen, then: Callable[[Seen | None], None], *, polled: bool = False
    ) -> None:
        """Keep an end; ``then`` gets the one that stands, or ``None`` where the store could not.

        Of a project that is deleted nothing is kept, be it that a call of its was under way (HIS.4).
        """
        if binding.project in self.desk.shared.settings.deleted_projects:
            return then(seen)
        snapshot = Snapshot(
            handle=binding.handle,
            status=seen.status,
            view=seen.view,
            stored_at_ms=self.desk.shared.now,
        )
        return self.desk.asking.save_snapshot(
            snapshot,
            self.desk.observation(seen.status, polled=polled),
            lambda answer: then(seen_of(answer.snapshot) if isinstance(answer, SnapshotKept) else None),
        )


def seen_of(snapshot: Snapshot) -> Seen:
    """Return a kept end as it is told."""
    updated = snapshot.view["lastUpdatedAt"]
    return Seen(
        status=snapshot.status,
        view=snapshot.view,
        requests={},
        last_updated_at=updated,
        kept_at_ms=snapshot.stored_at_ms,
    )
